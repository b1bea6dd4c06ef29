// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Schedule/Terms/Prepare.h"

// Reductions of fewer points stay loops where they are.
enum { SMALL = 64 };

typedef struct hoister {
  hd_arena_t *arena;
  hd_task_t *task;
  const hd_definition_t *definition;
  HD_VEC(const hd_index_t *) scope; // The domain, then those of reductions.
  HD_VEC(const hd_definition_t *) out;
  unsigned heavy; // Reductions of weight over the domain as a whole.
} hoister_t;

// The free indices of a term, in the order of the scope; returns the number.
static unsigned free_indices(const hoister_t *h, const hd_term_t *term,
                             const hd_index_t **indices) {
  unsigned count = 0;
  for (size_t i = 0; i < h->scope.size; i++)
    if (hd_flat_range(h->scope.data[i]) > 1 &&
        hd_flat_uses(term, h->scope.data[i]))
      indices[count++] = h->scope.data[i];
  return count;
}

static int64_t weight(const hd_term_t *term) {
  const hd_reduction_t *r = term->u.reduction;
  return hd_flat_points(r->indices, r->num_indices);
}

// term as a local tensor of its own; what reads it.
static const hd_term_t *put_local(hoister_t *h, const hd_term_t *term,
                                  const hd_index_t *const *indices,
                                  unsigned count) {
  int64_t shape[HD_MAX_RANK];
  const hd_term_t *places[HD_MAX_RANK];
  for (unsigned i = 0; i < count; i++) {
    shape[i] = hd_flat_range(indices[i]);
    places[i] = hd_flat_index(h->arena, indices[i]);
  }
  const char *name =
      hd_arena_printf(h->arena, "%s_part", h->definition->targets[0]->name);
  hd_task_value_t *local = hd_flat_value_make(h->arena, name, HD_VALUE_LOCAL,
                                              term->type.scalar, shape, count);
  local->loc = h->definition->loc;
  hd_vec_push(h->arena, &h->task->locals, (const hd_task_value_t *)local);
  hd_vec_push(
      h->arena, &h->out,
      (const hd_definition_t *)hd_flat_define(h->arena, local, indices, term));
  return hd_flat_load(h->arena, local, places);
}

static const hd_term_t *hoist(hoister_t *h, const hd_term_t *term, bool lazy,
                              bool is_root);

static const hd_term_t *hoist_operands(hoister_t *h, const hd_term_t *term,
                                       bool lazy) {
  const hd_term_t **operands =
      HD_ARENA_ARRAY(h->arena, const hd_term_t *, term->num_operands);
  bool changed = false;
  for (unsigned i = 0; i < term->num_operands; i++) {
    operands[i] =
        hoist(h, term->operands[i], lazy || hd_flat_is_lazy(term, i), false);
    changed |= operands[i] != term->operands[i];
  }
  return changed ? hd_flat_rebuild(h->arena, term, operands) : term;
}

// Whether a reduction, not a definition's own, becomes a tensor.
static bool is_worth_it(const hoister_t *h, const hd_term_t *term, bool lazy,
                        const hd_index_t *const *indices, unsigned count) {
  if ((lazy && hd_flat_is_risky(term)) || count > HD_MAX_RANK)
    return false;
  if (term->kind == HD_TERM_SCAN)
    return true;
  int64_t own = hd_flat_points(indices, count);
  int64_t all = hd_flat_points(h->scope.data, (unsigned)h->scope.size);
  bool is_whole = h->scope.size == h->definition->num_indices;
  return own < all || (is_whole && h->heavy > 1 && weight(term) > SMALL);
}

static const hd_term_t *hoist(hoister_t *h, const hd_term_t *term, bool lazy,
                              bool is_root) {
  if (!hd_flat_is_reduction(term))
    return hoist_operands(h, term, lazy);
  const hd_reduction_t *r = term->u.reduction;
  size_t outer = h->scope.size;
  for (uint32_t i = 0; i < r->num_indices; i++)
    hd_vec_push(h->arena, &h->scope, r->indices[i]);
  term = hoist_operands(h, term, lazy);
  h->scope.size = outer;
  if (is_root)
    return term;
  const hd_index_t **indices =
      HD_ARENA_ARRAY(h->arena, const hd_index_t *, outer);
  unsigned count = free_indices(h, term, indices);
  return is_worth_it(h, term, lazy, indices, count)
             ? put_local(h, term, indices, count)
             : term;
}

static bool count_heavy(void *argument, const hd_term_t *term) {
  hoister_t *h = argument;
  bool reduces = hd_flat_is_reduction(term);
  h->heavy += reduces && weight(term) > SMALL;
  return !reduces;
}

void hd_task_hoist(hd_arena_t *arena, hd_task_t *task) {
  hoister_t h = {.arena = arena, .task = task};
  for (size_t i = 0; i < task->definitions.size; i++) {
    hd_definition_t *d =
        HD_ARENA_COPY(arena, hd_definition_t, task->definitions.data[i]);
    h.definition = d;
    h.scope.size = 0;
    h.heavy = 0;
    for (uint32_t k = 0; k < d->num_indices; k++)
      hd_vec_push(arena, &h.scope, d->indices[k]);
    hd_flat_walk(d->term, count_heavy, &h);
    d->term = hoist(&h, d->term, false, d->kind == HD_DEFINE);
    const hd_term_t **at = HD_ARENA_ARRAY(arena, const hd_term_t *,
                                          d->at ? d->targets[0]->rank : 0);
    for (uint32_t k = 0; d->at && k < d->targets[0]->rank; k++)
      at[k] = hoist(&h, d->at[k], false, false);
    d->at = d->at ? at : NULL;
    hd_vec_push(arena, &h.out, d);
  }
  task->definitions.data = h.out.data;
  task->definitions.size = h.out.size;
  task->definitions.capacity = h.out.capacity;
}
