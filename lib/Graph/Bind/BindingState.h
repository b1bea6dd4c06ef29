// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the binder share (Binding.c, BindRanks.c, BindTerms.c).
#ifndef HIDET_GRAPH_BIND_BINDINGSTATE_H
#define HIDET_GRAPH_BIND_BINDINGSTATE_H

#include "Graph/Bind/Binding.h"

#include <limits.h>

// Not bound yet.
#define HD_UNBOUND_SIZE INT64_MIN
#define HD_UNBOUND_RANK UINT_MAX

typedef struct hd_binder {
  hd_context_t *context;
  hd_arena_t *arena;
  const hd_task_t *task;
  hd_loc_t loc;
  const char *what;
  bool quiet;                              // Faults are not reported.
  const hd_attribute_t *const *attributes; // As they are given.
  uint32_t num_attributes;
  hd_task_binding_t *binding; // Points to the arrays that follow.
  hd_scalar_t *types;         // HD_VOID: not bound.
  int64_t *sizes;
  hd_extents_t *packs; // values is NULL: not bound.
  hd_tensor_type_t *inputs, *outputs;
  hd_bound_attribute_t *values;
  const hd_host_tensor_t **known; // May be NULL.
} hd_binder_t;

// Reports E1103 and returns false.
bool hd_bind_fault(hd_binder_t *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// An attribute as it is given; NULL: it is not.
const hd_attribute_t *hd_bind_find(const hd_binder_t *b, const char *name);

// --- BindAttributes.c ---

bool hd_bind_types(hd_binder_t *b);
// The attribute that is an input of the task, when the ranks of packs are
// known.
bool hd_bind_attribute(hd_binder_t *b, size_t input);

// --- BindRanks.c ---

// How many axes each pack has.
bool hd_bind_ranks(hd_binder_t *b);

// --- BindBounds.c ---

// That no access leaves its tensor whatever the data is; when all is bound.
bool hd_bind_bounds(hd_binder_t *b);

// --- BindTerms.c ---

// Where something stands in the task's lists.
size_t hd_task_pack_at(const hd_task_t *task, const hd_pack_t *pack);
size_t hd_task_size_at(const hd_task_t *task, const hd_size_t *size);
size_t hd_task_input_at(const hd_task_t *task, const hd_task_value_t *value);

#endif
