// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the rows of ONNX/Operators.def are written in: how one operator becomes
// tasks. A function of a row takes a lowering, reads the node's operands and
// attributes, puts nodes and sets the outputs. Shapes of operands are numbers.
//
//   bool hd_lower_softmax(hd_lowering_t *l) {
//     const hd_value_t *x = hd_lower_input(l, 0);
//     int64_t axis;
//     if (!hd_lower_axis(l, "axis", -1, x->rank, &axis))
//       return false;
//     ...
//     return hd_lower_output(l, 0, y);
//   }
//
// What fails has been reported, naming the node, and gives NULL or false; that
// a value must be known and is not is no error: the function is called again
// when it is, so it puts nothing before it has asked for all that it needs.
#ifndef HIDET_GRAPH_EXPAND_LOWERING_H
#define HIDET_GRAPH_EXPAND_LOWERING_H

#include "Graph/Expand/Expand.h"

typedef struct hd_lowering hd_lowering_t;
typedef bool (*hd_lower_fn_t)(hd_lowering_t *lowering);

// The node, as the model has it.
const hd_node_t *hd_lower_node(const hd_lowering_t *l);
int hd_lower_version(const hd_lowering_t *l);
// The row's last column: mostly the name of a task.
const char *hd_lower_argument(const hd_lowering_t *l);
hd_arena_t *hd_lower_arena(hd_lowering_t *l);
hd_context_t *hd_lower_context(hd_lowering_t *l);

// Input i; NULL where it is left out. An input that must be there is checked
// by the row's arity before the function is called.
const hd_value_t *hd_lower_input(const hd_lowering_t *l, uint32_t i);
uint32_t hd_lower_num_inputs(const hd_lowering_t *l);
bool hd_lower_wants_output(const hd_lowering_t *l, uint32_t i);
uint32_t hd_lower_num_outputs(const hd_lowering_t *l);
// Sets output i. value NULL: what made it has failed; false.
bool hd_lower_output(hd_lowering_t *l, uint32_t i, const hd_value_t *value);

// Attributes; otherwise where it is absent. One of a wrong kind is reported,
// and the node fails whatever its function returns.
const hd_attribute_t *hd_lower_attribute(hd_lowering_t *l, const char *name,
                                         hd_attribute_kind_t kind);
// The tensor of an attribute as a value.
const hd_value_t *hd_lower_tensor(hd_lowering_t *l, const hd_value_t *tensor);
int64_t hd_lower_int(hd_lowering_t *l, const char *name, int64_t otherwise);
double hd_lower_float(hd_lowering_t *l, const char *name, double otherwise);
const char *hd_lower_string(hd_lowering_t *l, const char *name,
                            const char *otherwise);
// NULL (and *count 0) where it is absent.
const int64_t *hd_lower_ints(hd_lowering_t *l, const char *name, size_t *count);
// An axis of a tensor of that rank, negative ones counted from the end.
bool hd_lower_axis(hd_lowering_t *l, const char *name, int64_t otherwise,
                   int rank, int64_t *axis);

// Shapes and what is known. The sizes of a value:
int64_t hd_lower_size(const hd_value_t *value, int axis);
int64_t hd_lower_count(const hd_value_t *value); // Of elements.
// The product of the sizes of axes from .. to - 1.
int64_t hd_lower_product(const hd_value_t *x, int from, int to);
// Sizes, at least 0, multiplied; INT64_MAX where the product is too large. So
// is a count, or a product of a part of the axes: an empty tensor may have
// axes that no memory would hold.
int64_t hd_size_times(int64_t a, int64_t b);
hd_tensor_type_t hd_lower_type(const hd_value_t *value);
// The elements, where they are known now; else NULL.
const hd_host_tensor_t *hd_lower_find_data(hd_lowering_t *l,
                                           const hd_value_t *value);
// The same of what must be known: NULL stops the walk.
const hd_host_tensor_t *hd_lower_data(hd_lowering_t *l,
                                      const hd_value_t *value);
// Integer elements of what must be known; NULL stops the walk.
const int64_t *hd_lower_data_ints(hd_lowering_t *l, const hd_value_t *value,
                                  size_t *count);

// What find says, one for each of its outputs: constants where its inputs are
// known. False stops the walk, or after an error. A node finds once.
bool hd_lower_find(hd_lowering_t *l, const hd_find_t *find,
                   const hd_value_t **outputs);

// Attributes for a task, in the arena.
typedef HD_VEC(const hd_attribute_t *) hd_attributes_t;
void hd_attributes_int(hd_lowering_t *l, hd_attributes_t *list,
                       const char *name, int64_t value);
void hd_attributes_float(hd_lowering_t *l, hd_attributes_t *list,
                         const char *name, double value);
void hd_attributes_ints(hd_lowering_t *l, hd_attributes_t *list,
                        const char *name, const int64_t *values, size_t count);
void hd_attributes_type(hd_lowering_t *l, hd_attributes_t *list,
                        const char *name, hd_scalar_t type);

void hd_attributes_graph(hd_lowering_t *l, hd_attributes_t *list,
                         const char *name, const hd_graph_t *graph);

// Puts a node that computes a task of the library (lib/Graph/operators) or of
// the module. attributes may be NULL. Where all inputs are known and the work
// is small it is evaluated at once and the result is a constant. Returns the
// first output; outputs (may be NULL) takes all of them.
const hd_value_t *hd_lower_task(hd_lowering_t *l, const char *task,
                                const hd_value_t *const *inputs,
                                uint32_t num_inputs,
                                const hd_attributes_t *attributes,
                                const hd_value_t **outputs);
const hd_value_t *hd_lower_unary(hd_lowering_t *l, const char *task,
                                 const hd_value_t *x);
const hd_value_t *hd_lower_binary(hd_lowering_t *l, const char *task,
                                  const hd_value_t *a, const hd_value_t *b);
// The same elements under another shape of as many: moves nothing.
const hd_value_t *hd_lower_reshape(hd_lowering_t *l, const hd_value_t *x,
                                   const int64_t *shape, unsigned rank);
const hd_value_t *hd_lower_transpose(hd_lowering_t *l, const hd_value_t *x,
                                     const int64_t *permutation);
const hd_value_t *hd_lower_cast(hd_lowering_t *l, const hd_value_t *x,
                                hd_scalar_t type);
// x broadcast to a shape (numpy's rule).
const hd_value_t *hd_lower_expand(hd_lowering_t *l, const hd_value_t *x,
                                  const int64_t *shape, unsigned rank);
// The name that values of this node get.
const char *hd_lower_value_name(const hd_lowering_t *l);
// New constants. The data is made here, zeroed, to be filled in. NULL after an
// error: too many axes, or more elements (2^27) than are computed on the host.
const hd_value_t *hd_lower_constant(hd_lowering_t *l, hd_scalar_t type,
                                    const int64_t *shape, unsigned rank,
                                    hd_host_tensor_t **data);
const hd_value_t *hd_lower_scalar(hd_lowering_t *l, hd_scalar_t type,
                                  double value);
const hd_value_t *hd_lower_ints_constant(hd_lowering_t *l,
                                         const int64_t *values, size_t count);
// Of elements that live as long as the arena.
const hd_value_t *hd_lower_known(hd_lowering_t *l,
                                 const hd_host_tensor_t *data);

// Sequences and optionals, which exist during the walk alone.
const hd_value_t *hd_lower_sequence(hd_lowering_t *l,
                                    const hd_value_t *const *items,
                                    size_t count);
const hd_value_t *const *hd_lower_items(const hd_value_t *sequence,
                                        size_t *count);
// Nothing, or the value held; *present says which.
const hd_value_t *hd_lower_optional(hd_lowering_t *l, const hd_value_t *value);
const hd_value_t *hd_lower_held(const hd_value_t *optional, bool *present);

// Walks a graph of an attribute: its inputs are the values given, values of the
// graphs around it are found. outputs takes its results.
bool hd_lower_graph(hd_lowering_t *l, const hd_graph_t *graph,
                    const hd_value_t *const *inputs, uint32_t num_inputs,
                    const hd_value_t **outputs);

// The same of a walk that is not gone on with when it stops.
bool hd_lower_graph_once(hd_lowering_t *l, const hd_graph_t *graph,
                         const hd_value_t *const *inputs, uint32_t num_inputs,
                         const hd_value_t **outputs);

// Errors that name the node. Not supported (E1104, exit 4):
bool hd_lower_unsupported(hd_lowering_t *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// A fault of the model (E1103, exit 3):
bool hd_lower_invalid(hd_lowering_t *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// What another operator of that version gives first, of these inputs and by the
// attributes of the node.
const hd_value_t *hd_lower_as(hd_lowering_t *l, const char *domain,
                              const char *op, int version,
                              const hd_value_t **inputs, uint32_t num_inputs);
// The same, all that it gives being what the node gives.
bool hd_lower_become(hd_lowering_t *l, const char *domain, const char *op,
                     int version, const hd_value_t **inputs,
                     uint32_t num_inputs);

// The row for an operator of that version; NULL where there is none.
typedef struct hd_operator_row {
  const char *domain, *op;
  int since; // The first version that the row is for.
  hd_lower_fn_t lower;
  const char *argument;
  int min_inputs, max_inputs; // -1: any.
} hd_operator_row_t;
const hd_operator_row_t *hd_operator_find(const char *domain, const char *op,
                                          int version);
// The names of its attributes, each followed by a space or the end.
const char *hd_operator_attributes(const char *domain, const char *op,
                                   int version);
// All of them, in the order of the table; NULL past the last.
const hd_operator_row_t *hd_operator_row(size_t index);
// Whether its inputs may be sequences and optionals; all others get tensors.
bool hd_operator_takes_lists(const hd_operator_row_t *row);
// Whether none of its nodes can be run, whatever their sizes; so it is of NULL.
bool hd_operator_is_refused(const hd_operator_row_t *row);

#endif
