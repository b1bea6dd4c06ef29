// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A task bound to its operands: what its type variables, sizes, packs and
// attributes are for inputs of given types and shapes. From here on everything
// about a task is a number; the reference evaluator and the scheduler work on
// bindings.
#ifndef HIDET_GRAPH_BIND_BINDING_H
#define HIDET_GRAPH_BIND_BINDING_H

#include "IR/Graph/Graph.h"
#include "IR/Scalar.h"

// Element type and shape of a tensor, all known.
typedef struct hd_tensor_type {
  hd_scalar_t type;
  unsigned rank;
  int64_t shape[HD_MAX_RANK];
} hd_tensor_type_t;

static inline hd_tensor_type_t
hd_tensor_type_of(const hd_host_tensor_t *tensor) {
  hd_tensor_type_t type = {tensor->type, tensor->rank, {0}};
  for (unsigned i = 0; i < tensor->rank; i++)
    type.shape[i] = tensor->shape[i];
  return type;
}

bool hd_tensor_type_equal(const hd_tensor_type_t *a, const hd_tensor_type_t *b);

// The sizes of a pack's axes; or the values of an attribute over one.
typedef struct hd_extents {
  unsigned rank;
  const int64_t *values;
} hd_extents_t;

typedef struct hd_bound_attribute {
  unsigned rank;        // Values; 1 where it is one number, not over a pack.
  const int64_t *ints;  // Of an integer type or bool, else NULL.
  const double *floats; // Of a float type, rounded to it; else NULL.
} hd_bound_attribute_t;

typedef struct hd_task_binding {
  const hd_task_t *task;
  const hd_scalar_t *types;  // In the order of task->types.
  const int64_t *sizes;      // Of task->sizes; those that the data decides are
                             // at their bound.
  const hd_extents_t *packs; // Of task->packs.
  const hd_tensor_type_t *inputs; // Of task->inputs; attributes' are unused.
  const hd_bound_attribute_t *attributes; // Of task->inputs; tensors' unused.
  const hd_tensor_type_t *outputs;        // Of task->outputs, at the bounds.
  // Of task->inputs: a tensor of one element where it is known, which terms may
  // read. NULL: none is.
  const hd_host_tensor_t *const *known;
} hd_task_binding_t;

// Binds. inputs: one for each input of the task that is a tensor, in order.
// attributes name, in any order,
//   the task's attributes: INT or FLOAT (INT serves for a float), for one over
//   a
//     pack INTS or FLOATS, or one number that stands for every axis; a bool is
//     an INT, 0 or 1;
//   its type variables (TYPE), which inputs may bind as well;
//   its packs (INT): how many axes a pack has, where the inputs' ranks leave it
//     open (x: T[..s, n, ..t] needs s = 1).
// What has a default may be left out. The ranks of packs follow from the
// attributes that name them, from the inputs' ranks where one pack is left in
// question, and from the lengths of the attributes over them, in this order.
//
// Reports at loc what does not fit: an element type outside its set (E1104), a
// rank, sizes that differ, a condition that does not hold, an attribute
// unknown, missing or of a wrong kind or length, a size below 0 or a tensor of
// more than 2^62 elements, counting the local ones, an access that leaves its
// tensor whatever the data is (E1103); then NULL. what
// names the node for messages. Lives in the arena.
const hd_task_binding_t *
hd_task_bind(hd_context_t *context, hd_arena_t *arena, const hd_task_t *task,
             const hd_tensor_type_t *inputs, uint32_t num_inputs,
             const hd_attribute_t *const *attributes, uint32_t num_attributes,
             hd_loc_t loc, const char *what);

// The same without a word: NULL where something does not fit. known: as
// hd_task_binding_t has it, one for each input that is a tensor; may be NULL.
const hd_task_binding_t *
hd_task_try_bind(hd_context_t *context, hd_arena_t *arena,
                 const hd_task_t *task, const hd_tensor_type_t *inputs,
                 const hd_host_tensor_t *const *known, uint32_t num_inputs,
                 const hd_attribute_t *const *attributes,
                 uint32_t num_attributes);

// The scalar that a type stands for.
hd_scalar_t hd_binding_type(const hd_task_binding_t *binding,
                            hd_task_type_t type);
// How many axes a pack of the task has, a broadcast too.
unsigned hd_binding_rank(const hd_task_binding_t *binding,
                         const hd_pack_t *pack);
// The type of any tensor of the task, local ones too.
hd_tensor_type_t hd_binding_tensor(const hd_task_binding_t *binding,
                                   const hd_task_value_t *value);
// The axis of a tensor, of that rank, at which an axis of its shape lies, where
// an attribute orders them (hd_task_value_t.by).
unsigned hd_binding_place(const hd_task_binding_t *binding,
                          const hd_task_value_t *value, unsigned rank,
                          unsigned axis);
// What a term over sizes, packs, attributes and constants is worth on an axis
// of its pack (0 where it has none). False where it overflows or divides by
// zero, or does not depend on those alone.
bool hd_binding_extent(const hd_task_binding_t *binding, const hd_term_t *term,
                       unsigned axis, int64_t *extent);
// The same of any type.
bool hd_binding_number(const hd_task_binding_t *binding, const hd_term_t *term,
                       unsigned axis, hd_number_t *number);
// As hd_binding_extent() for all axes of the pack; one where it has none.
bool hd_binding_extents(const hd_task_binding_t *binding, hd_arena_t *arena,
                        const hd_term_t *term, hd_extents_t *extents);
// What a constant term is worth, rounded to its type.
hd_number_t hd_binding_constant(const hd_task_binding_t *binding,
                                const hd_term_t *term);
// An attribute's number on an axis of its pack.
hd_number_t hd_binding_attribute(const hd_task_binding_t *binding,
                                 const hd_task_value_t *value, unsigned axis);

#endif
