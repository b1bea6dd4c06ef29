// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The importer: an ONNX file becomes a graph of the operators of its standard.
// Nothing is computed here; names become identifiers, functions of the model
// and of the standard are put in place of the nodes that call them, weights
// stay in the mapped file.
//
// A model is not trusted: docs/ARCHITECTURE.md, "Models from strangers".
#ifndef HIDET_GRAPH_ONNX_IMPORT_H
#define HIDET_GRAPH_ONNX_IMPORT_H

#include "IR/Graph/Graph.h"

// Reads the model at path into a new module with the graph `main`, which the
// caller ends; the module keeps the mapped files. NULL after errors: E0801
// (cannot be opened), E1101 (no ONNX file, or malformed: what and where), E1102
// (external data: what is wrong with the file), E1103 (breaks a rule of ONNX:
// which node), E0901/E0904.
hd_module_t *hd_onnx_import(hd_context_t *context, const char *path);

// The same of a model in memory (for fuzzing and embedding): bytes must outlive
// the module. External data is looked for in folder; NULL: there is none.
hd_module_t *hd_onnx_import_memory(hd_context_t *context, const char *name,
                                   const void *bytes, size_t size,
                                   const char *folder);

// Reads a TensorProto from a file (.pb), as ONNX's test data has them. *tensor
// is made here and the caller's to end (all zero after an error: E0801, E1101,
// E1102, E1103, E1104).
bool hd_onnx_read_tensor(hd_context_t *context, const char *path,
                         hd_host_tensor_t *tensor);

// A value as a file of test data holds it: a tensor, or a list of them.
typedef struct hd_onnx_data {
  hd_value_form_t form; // SEQUENCE also of an optional that holds one.
  bool present;         // False: an optional that holds nothing.
  size_t count;         // Of tensors; 1 of a tensor.
  hd_host_tensor_t *tensors;
} hd_onnx_data_t;

// The same of a file with a TensorProto, SequenceProto or OptionalProto; which
// one it is the file does not say, so the form is asked for. *data is made here
// and ended by hd_onnx_data_fini(), also after an error.
bool hd_onnx_read_value(hd_context_t *context, const char *path,
                        hd_value_form_t form, hd_onnx_data_t *data);
// The same of a file's content; name is for messages.
bool hd_onnx_decode_value(hd_context_t *context, const char *name,
                          const void *bytes, size_t size, hd_value_form_t form,
                          hd_onnx_data_t *data);
void hd_onnx_data_fini(hd_onnx_data_t *data);

// The element type of ONNX's number for it; HD_VOID where we have none.
hd_scalar_t hd_onnx_scalar(int32_t data_type);
const char *hd_onnx_type_name(int32_t data_type);

#endif
