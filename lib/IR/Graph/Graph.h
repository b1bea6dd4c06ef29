// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs: operators on tensors, each value given once (docs/IR.md, "Graphs").
// A node names a task ("softmax"), or an operator of another standard with the
// version that it is meant by ("onnx13.Softmax"), which the pass expand turns
// into tasks. Everything is immutable once made and lives in the module's
// arena.
#ifndef HIDET_IR_GRAPH_GRAPH_H
#define HIDET_IR_GRAPH_GRAPH_H

#include "IR/Graph/HostTensor.h"
#include "IR/Graph/Pin.h"
#include "IR/Graph/Task.h"

typedef struct hd_node hd_node_t;

enum { HD_MAX_OPERATOR_VERSION = 99999 };

typedef enum hd_value_form {
  HD_HOLDS_TENSOR,
  HD_HOLDS_SEQUENCE, // Of tensors.
  HD_HOLDS_OPTIONAL, // A tensor or a sequence, or nothing.
} hd_value_form_t;

// The elements of a constant: in memory, in a file that the module has mapped,
// or in one that is mapped when they are needed. At least one of the three is
// there. hd_constant_load() fills in what is not: the one thing in a graph that
// changes.
typedef struct hd_constant {
  const hd_host_tensor_t *tensor; // NULL: not loaded yet.
  const void *mapped; // Little-endian, packed below a byte (the first element
                      // in the low bits), of any alignment; NULL: not mapped.
  const char *file;   // Beneath the module's folder; NULL: none.
  int64_t offset;     // In bytes.
} hd_constant_t;

typedef struct hd_value {
  const char *name;  // An identifier, once in a graph and those around it.
  const char *label; // As the model names it; NULL: the same.
  hd_loc_t loc;
  hd_value_form_t form;
  hd_scalar_t type;              // HD_VOID: not known.
  int rank;                      // -1: not known.
  const hd_expr_t *const *shape; // i64, over the graph's dimensions; an entry
                                 // is NULL where the size is not known.
  hd_constant_t *constant;       // NULL: not a constant.
} hd_value_t;

typedef enum hd_attribute_kind {
  HD_ATTRIBUTE_INT,
  HD_ATTRIBUTE_FLOAT,
  HD_ATTRIBUTE_STRING,
  HD_ATTRIBUTE_INTS,
  HD_ATTRIBUTE_FLOATS,
  HD_ATTRIBUTE_STRINGS,
  HD_ATTRIBUTE_TENSOR,
  HD_ATTRIBUTE_GRAPH,
  HD_ATTRIBUTE_TYPE, // Of an element: what a task's type variable stands for.
  HD_ATTRIBUTE_SIZE, // An integer that follows from the graph's dimensions.
  HD_ATTRIBUTE_SIZES,
  HD_ATTRIBUTE_KINDS
} hd_attribute_kind_t;

typedef struct hd_attribute {
  const char *name;
  hd_attribute_kind_t kind;
  hd_loc_t loc;
  size_t count; // Of a list.
  union {
    int64_t i;
    double f;
    const char *s;
    const int64_t *ints;
    const double *floats;
    const char *const *strings;
    const hd_value_t *tensor; // A constant.
    const hd_graph_t *graph;  // May use values of the graphs around it.
    hd_scalar_t type;
    // i64, over the graph's dimensions: one, or a list.
    const hd_expr_t *const *sizes;
  } u;
} hd_attribute_t;

struct hd_node {
  const char *domain; // "onnx", "microsoft"; NULL: the operator is a task.
  int version;        // Of the domain's operator set, from 1 on.
  const char *op;
  const hd_task_t *task; // Where the domain is NULL.
  const char *label;     // As the model names the node; NULL: not.
  hd_loc_t loc;
  uint32_t num_inputs; // An entry is NULL where it is left out.
  const hd_value_t *const *inputs;
  uint32_t num_outputs; // Likewise.
  const hd_value_t *const *outputs;
  uint32_t num_attributes;
  const hd_attribute_t *const *attributes;
  // Nodes that stand together under one number, from 1 on, become one kernel;
  // 0: alone. The anchor's kernel is the one that the others are fused into.
  uint32_t group;
  bool anchor;
  // Computes a node of a task: a kernel or a plan whose parameters are the
  // node's inputs, then its outputs. NULL: not scheduled yet.
  const hd_func_t *schedule;
  // Where there is no schedule: what is to be chosen for it. NULL: nothing is
  // said.
  const hd_pin_t *pin;
};

struct hd_graph {
  const char *name; // NULL: that of an attribute.
  hd_loc_t loc;
  const hd_graph_t *outer;       // Of an attribute: the graph around it.
  HD_VEC(const hd_var_t *) dims; // Its dimensions, i64.
  HD_VEC(const hd_value_t *) inputs;
  HD_VEC(const hd_value_t *) outputs; // Of any origin.
  HD_VEC(const hd_value_t *) constants;
  HD_VEC(const hd_node_t *) nodes; // Each after those whose results it uses.
};

// Whether two attributes have the same value of the same kind, floats bit by
// bit; their names may differ. False of strings, tensors and graphs.
bool hd_attribute_equal(const hd_attribute_t *a, const hd_attribute_t *b);
// Whether two nodes have the same, of the same names in the same order.
bool hd_attributes_equal(const hd_node_t *a, const hd_node_t *b);
// A hash that goes on from key: of the name, and of what hd_attribute_equal()
// compares.
uint64_t hd_attribute_key(uint64_t key, const hd_attribute_t *a);

// A value of this name and shape.
hd_value_t *hd_value_make(hd_arena_t *arena, const char *name, hd_scalar_t type,
                          const int64_t *shape, unsigned rank, hd_loc_t loc);
// A node that makes one value of another. task: NULL where op is no task.
// attribute: NULL where it has none.
hd_node_t *hd_node_between(hd_arena_t *arena, const char *op,
                           const hd_task_t *task, const hd_value_t *from,
                           const hd_value_t *to,
                           const hd_attribute_t *attribute, hd_loc_t loc);

// Whether several elements share a byte in a device's memory.
static inline bool hd_value_is_packed(const hd_value_t *value) {
  return hd_scalar_bits(value->type) < 8;
}
// What the model calls it; for messages.
static inline const char *hd_value_label(const hd_value_t *value) {
  return value->label ? value->label : value->name;
}
static inline const char *hd_node_label(const hd_node_t *node) {
  for (uint32_t i = 0; !node->label && i < node->num_outputs; i++)
    if (node->outputs[i])
      return hd_value_label(node->outputs[i]);
  return node->label ? node->label : node->op;
}
// What an axis is called whose size the model leaves open: "image_0".
const char *hd_value_axis_name(hd_arena_t *arena, const hd_value_t *value,
                               int axis);
// Whether type, rank and every size are known, the sizes as constants.
bool hd_value_is_concrete(const hd_value_t *value);
// The elements of a constant, at their natural alignment and unpacked; where
// that takes no change it is the mapped file itself, so they are read alone.
// They live as long as the module. NULL after an error: E0801, E0804.
const hd_host_tensor_t *hd_constant_load(hd_module_t *module,
                                         const hd_value_t *value);
// The same where the elements are in memory or mapped, without keeping what is
// made for it, in the arena; NULL where they are in a file alone.
const hd_host_tensor_t *hd_constant_elements(hd_arena_t *arena,
                                             const hd_value_t *value);
// Elements and bytes, packed below a byte, of a tensor; false where the shape
// has no count (hd_shape_count()) or takes 2^63 bits.
bool hd_packed_size(hd_scalar_t type, const int64_t *shape, unsigned rank,
                    int64_t *count, int64_t *bytes);
// Elements packed below a byte, one each byte, the bits above them zero: as in
// host tensors.
void hd_unpack_elements(hd_scalar_t type, const void *packed, int64_t count,
                        unsigned char *out);
// NULL where there is none of that name.
const hd_attribute_t *hd_node_attribute(const hd_node_t *node,
                                        const char *name);
// Whether the node's task has an attribute of that name of type bool: then its
// integers are written as words, 0 as `false` and 1 as `true`.
bool hd_node_has_bool(const hd_node_t *node, const char *name);
const char *hd_attribute_kind_name(hd_attribute_kind_t kind); // "an integer"
// The one operator that is no task: the same elements under another shape.
bool hd_node_is_reshape(const hd_node_t *node);
// The type that the floats among a node's attributes are rounded to: f32 of an
// operator of a standard, as that has them, f64 of a task.
hd_scalar_t hd_node_float_type(const hd_node_t *node);

// Why a node's schedule does not compute the node, as far as that is seen in
// the types and shapes that are known; NULL: it does. sizes, one for each of
// the schedule's parameters, are set to what the node's shapes make of the
// scalar ones, constants; NULL where a tensor or not known. Made in the arena.
const char *hd_node_bind_schedule(hd_arena_t *arena, const hd_node_t *node,
                                  const hd_expr_t **sizes);

// Makes groups of what is left of groups after nodes were added, copied or
// taken away: numbers count from 1 on; what stands together under one number is
// a group, and is none where it has no anchor. Nodes are copied where they
// change.
void hd_graph_settle_groups(hd_arena_t *arena, hd_graph_t *graph);

// The same graph, to be filled with nodes anew.
hd_graph_t *hd_graph_without_nodes(hd_arena_t *arena, const hd_graph_t *graph);

// The rules of docs/IR.md; reports every fault.
bool hd_graph_verify(hd_context_t *context, const hd_graph_t *graph);
void hd_graph_print(const hd_graph_t *graph, hd_buffer_t *out);
// The same for Graphviz, without constants and attributes.
void hd_graph_print_dot(const hd_graph_t *graph, hd_buffer_t *out);

// Calls visit with every constant of a graph and of the graphs inside its
// nodes, those that are attributes, too, until it returns false; whether it
// never did.
bool hd_graph_walk_constants(const hd_graph_t *graph,
                             bool (*visit)(void *argument,
                                           const hd_value_t *constant),
                             void *argument);

#endif
