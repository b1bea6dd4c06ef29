// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sessions: a graph of a module, for instance an ONNX model, that runs on
// arrays in the caller's memory.
//
//   hidet_module_import(context, "model.onnx", &module);
//   hidet_session_create(module, NULL, device, &session);
//   hidet_session_run(session, inputs, 1, outputs, 1);

#ifndef HIDET_SESSION_H
#define HIDET_SESSION_H

#include "hidet/Device.h"

HIDET_C_BEGIN

typedef struct hidet_session hidet_session_t;

enum { HIDET_MAX_RANK = 16 };

// An array, row-major. type is an element type of the language ("f32", "i64",
// "bool"); an element below a byte takes one.
typedef struct hidet_array {
  const char *type;
  unsigned rank;
  int64_t shape[HIDET_MAX_RANK];
  const void *data;
} hidet_array_t;

// What is known of an input or an output before a run.
typedef struct hidet_value {
  const char *name; // As the model names it. Lives as long as the module.
  const char *type; // NULL: not known.
  int rank;         // -1: not known.
  int64_t shape[HIDET_MAX_RANK]; // -1: the size varies, or is not known.
} hidet_value_t;

// Reads an ONNX model. On HIDET_OK *module is a new module with the graph
// `main`; it keeps the model's file mapped until hidet_module_destroy().
HIDET_API hidet_status_t hidet_module_import(hidet_context_t *context,
                                             const char *path,
                                             hidet_module_t **module);

// A session for a graph of the module; graph NULL: the last one. device NULL:
// the reference evaluator, which compiles nothing. Nothing is compiled here:
// that is done by the first run with inputs of other shapes than before. The
// session is ended by hidet_session_destroy(), before the module and the
// device.
HIDET_API hidet_status_t hidet_session_create(hidet_module_t *module,
                                              const char *graph,
                                              hidet_device_t *device,
                                              hidet_session_t **session);
HIDET_API void hidet_session_destroy(hidet_session_t *session);

// From here on what is compiled takes the schedules that `hidet-run --tune` has
// found to be the fastest, on a device of the same name and by the same build
// of the library, and kept in the file (docs/TUNING.md); what is not known is
// chosen by what is expected. NULL: all is. A file that is not there holds
// nothing, nor does one that is damaged: a warning says so. HIDET_USAGE for a
// session without a device.
HIDET_API hidet_status_t hidet_session_use_measured(hidet_session_t *session,
                                                    const char *file);

HIDET_API size_t hidet_session_num_inputs(const hidet_session_t *session);
HIDET_API size_t hidet_session_num_outputs(const hidet_session_t *session);
// i is less than their number, or *value is one of which nothing is known.
HIDET_API void hidet_session_input(const hidet_session_t *session, size_t i,
                                   hidet_value_t *value);
HIDET_API void hidet_session_output(const hidet_session_t *session, size_t i,
                                    hidet_value_t *value);

// Runs it and returns when the run is done. inputs and outputs: one for each,
// in order; HIDET_USAGE otherwise, and where an input has not the type or shape
// that it must have. The inputs are only read. outputs take type, shape and
// data of the results, which belong to the session and are valid until its next
// run or its end. After an error they are all zero.
HIDET_API hidet_status_t hidet_session_run(hidet_session_t *session,
                                           const hidet_array_t *inputs,
                                           size_t num_inputs,
                                           hidet_array_t *outputs,
                                           size_t num_outputs);

HIDET_C_END

#endif
