// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the importer share. A function that returns false or NULL
// has reported why.
#ifndef HIDET_GRAPH_ONNX_STATE_H
#define HIDET_GRAPH_ONNX_STATE_H

#include "Graph/ONNX/Wire.h"
#include "Support/Map.h"

enum {
  HD_ONNX_MAX_NODES = 1 << 18,  // With those of functions put in place.
  HD_ONNX_MAX_CALLS = 64,       // Of functions, one within the other.
  HD_ONNX_MAX_DENSE = 64 << 20, // Bytes that a sparse tensor may become.
  HD_ONNX_INLINE = 16,          // Elements up to which a constant is printed.
  HD_ONNX_SMALL = 4096, // Bytes up to which constants are loaded at once.
};

// Which version of a domain's operators is meant.
typedef struct hd_onnx_opset {
  const char *domain; // As the model writes it; "" for ONNX's own.
  const char *name;   // "onnx"
  int version;
} hd_onnx_opset_t;

// A function that is being put in the place of a node.
typedef struct hd_onnx_call {
  const struct hd_onnx_call *outer;
  const HdOnnx__Function *function;
  const HdOnnx__Node *node; // The one that calls it,
  bool in_graph;            // in a graph of an attribute.
  HD_VEC(const hd_attribute_t *) attributes;
} hd_onnx_call_t;

// The names that are visible: those of a graph and of the graphs around it, or
// those of a function's body.
typedef struct hd_onnx_scope {
  const struct hd_onnx_scope *outer; // NULL: the main graph's, a function's.
  hd_graph_t *graph;                 // Where nodes go.
  hd_key_map_t values;               // Boxes of them, by name.
  // A body's results as it declares them, made before its nodes. NULL: none.
  const struct hd_onnx_scope *declared;
  const hd_onnx_call_t *call; // NULL: not in a function.
  const hd_onnx_opset_t *opsets;
  size_t num_opsets;
} hd_onnx_scope_t;

typedef struct hd_onnx_import {
  hd_context_t *context;
  hd_diagnostics_t *diags;
  hd_module_t *module;
  hd_arena_t *arena;   // The module's.
  hd_arena_t *scratch; // Until the import ends.
  const char *name;    // Of the model, for messages.
  const char *file;    // Where the bytes come from; NULL: memory.
  const unsigned char *bytes;
  const char *folder; // Of external data; NULL: there is none.
  int folder_fd;      // -1: not opened yet.
  const hd_onnx_piece_t *pieces;
  const HdOnnx__Model *model;
  hd_key_map_t names;     // That are taken.
  hd_key_map_t dims;      // Variables.
  hd_key_map_t functions; // By domain, name and overload.
  size_t num_nodes;
  bool failed; // Something is not supported; the rest is looked at, too.
} hd_onnx_import_t;

// Names.c. An identifier that no other value or dimension has, made from a
// name, which becomes the label where they differ.
const char *hd_import_identifier(hd_onnx_import_t *im, const char *name);
// A word made of letters, digits and underscores, not unique.
const char *hd_import_word(hd_arena_t *arena, const char *name);
// Binds a name in a scope (value NULL: left out). False where it is taken.
bool hd_import_bind(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                    const char *name, const hd_value_t *value);
// Whether a name is known there; what it is bound to.
bool hd_import_find(const hd_onnx_scope_t *scope, const char *name,
                    const hd_value_t **value);
// The dimension of that name, made where there is none and make says so.
const hd_var_t *hd_import_dimension(hd_onnx_import_t *im, hd_graph_t *graph,
                                    const char *name, bool make);

// Values.c.
hd_value_t *hd_import_value(hd_onnx_import_t *im, const char *label);
// Form, type and shape as declared. An input brings dimensions along, another
// value may only use them. what: "input", for messages.
bool hd_import_declare(hd_onnx_import_t *im, hd_graph_t *graph,
                       hd_value_t *value, const HdOnnx__Type *type,
                       const char *what, bool input);

// Tensors.c. A constant of the tensor's elements. what and name are for
// messages ("initializer", its name). NULL after errors; where the element type
// is none of ours that is E1104, im->failed is set, and a value without
// elements comes back.
hd_value_t *hd_import_constant(hd_onnx_import_t *im,
                               const HdOnnx__Tensor *tensor, const char *what,
                               const char *name);
// Sparse.c: the same of a sparse tensor, made dense.
hd_value_t *hd_import_sparse(hd_onnx_import_t *im,
                             const HdOnnx__SparseTensor *tensor,
                             const char *what, const char *name);
// Elements that stand in fields of their own (float_data, ...) as bytes of the
// element type, packed below a byte; exactly bytes of them. Reports E1103.
bool hd_import_decode(hd_onnx_import_t *im, const HdOnnx__Tensor *tensor,
                      hd_scalar_t type, int64_t count, const char *what,
                      const char *name, unsigned char *out, size_t bytes);

// External.c. The bytes of external data, in a file that the module keeps
// mapped.
bool hd_import_external(hd_onnx_import_t *im, const HdOnnx__Tensor *tensor,
                        const char *name, int64_t bytes,
                        hd_constant_t *constant);

// Attributes.c. NULL in *attribute: the attribute refers to one of a function
// that the call leaves out.
bool hd_import_attribute(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                         const HdOnnx__Attribute *proto, const char *node,
                         const hd_attribute_t **attribute);

// Functions.c.
bool hd_import_add_functions(hd_onnx_import_t *im);
const HdOnnx__Function *hd_import_function(const hd_onnx_import_t *im,
                                           const HdOnnx__Node *node);
bool hd_import_call(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                    const HdOnnx__Node *node, const HdOnnx__Function *function,
                    const char *what);

// Domains.c.
bool hd_import_opsets(hd_onnx_import_t *im, HdOnnx__OpsetId *const *imports,
                      size_t count, hd_onnx_scope_t *scope);
const hd_onnx_opset_t *hd_import_opset(const hd_onnx_scope_t *scope,
                                       const char *domain);

// Nodes.c. "node 'name' (Op)", for messages; in the scratch arena.
const char *hd_import_describe(hd_onnx_import_t *im, const HdOnnx__Node *node,
                               size_t index);
bool hd_import_nodes(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                     HdOnnx__Node *const *nodes, size_t count);

// Graphs.c. A graph of an attribute.
const hd_graph_t *hd_import_subgraph(hd_onnx_import_t *im,
                                     const hd_onnx_scope_t *outer,
                                     const HdOnnx__Graph *proto);
// The main graph.
hd_graph_t *hd_import_graph(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                            const HdOnnx__Graph *proto);

// Reports E1103 (wrong) or E1104 (not supported): "what 'name'" and why.
bool hd_import_fault(hd_onnx_import_t *im, hd_diagnostic_code_t code,
                     const char *what, const char *name, const char *format,
                     ...) __attribute__((format(printf, 5, 6)));
#define hd_import_invalid(im, ...) hd_import_fault(im, HD_E1103, __VA_ARGS__)
#define hd_import_unsupported(im, ...)                                         \
  hd_import_fault(im, HD_E1104, __VA_ARGS__)

#endif
