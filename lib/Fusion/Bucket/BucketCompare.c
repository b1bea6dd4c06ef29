// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Flat tasks of a node at several sizes, compared term by term, and the numbers
// that are met, in a fixed order: what a bucket is made from, and what another
// size is held against.

#include "Fusion/Bucket/BucketState.h"
#include "Schedule/Schedule.h"
#include "Schedule/Terms/Flatten.h"

#include <string.h>

// --- Numbers ---

bool hd_bucket_meet(hd_bucketer_t *b, const int64_t *values, int *slot) {
  bool same = true;
  for (size_t i = 1; i < b->count; i++)
    same &= values[i] == values[0];
  for (size_t i = 0; b->comparing && i < 2; i++)
    hd_vec_push(b->arena, &b->comparing->numbers, values[i]);
  if (!b->holds) {
    *slot = same ? -1 : hd_bucket_slot(b, values);
    hd_vec_push(b->arena, &b->record->numbers, *slot);
    return true;
  }
  if (b->number >= b->record->numbers.size)
    return false;
  *slot = b->record->numbers.data[b->number++];
  if (*slot < 0)
    return same;
  hd_slot_values_t *kept = &b->slots.data[*slot];
  if (kept->values[0] == INT64_MIN) // Not met yet.
    kept->values[0] = values[1];
  return kept->values[0] == values[1];
}

bool hd_bucket_is_bounded(const hd_bucketer_t *b, const int64_t *values) {
  bool same = true, fits = true;
  for (size_t i = 1; i < b->count; i++) {
    same &= values[i] == values[0];
    fits &= values[i] >= 1 && values[i] <= values[0];
  }
  return same || fits;
}

static bool meet_term(hd_bucketer_t *b, const void *term,
                      const int64_t *values) {
  const hd_extent_t *known = hd_ptr_map_get(&b->numbers, term);
  hd_extent_t *extent = HD_ARENA_NEW(b->arena, hd_extent_t);
  extent->bound = values[0];
  if (!hd_bucket_meet(b, values, &extent->slot) ||
      (known && known->slot != extent->slot))
    return false;
  hd_ptr_map_set(b->arena, &b->numbers, term, extent);
  return true;
}

hd_extent_t hd_bucket_number(const hd_bucketer_t *b, const void *term,
                             int64_t bound) {
  const hd_extent_t *known = hd_ptr_map_get(&b->numbers, term);
  return known ? *known : (hd_extent_t){bound, -1};
}

// --- Terms ---

static bool same_terms(hd_bucketer_t *b, const hd_term_t *const *terms);

static bool stand(hd_bucketer_t *b, const void *other, const void *first) {
  hd_ptr_map_set(b->arena, &b->stands, other, first);
  return true;
}

static bool stands(const hd_bucketer_t *b, const void *other,
                   const void *first) {
  return hd_ptr_map_get(&b->stands, other) == first;
}

static bool same_indices(hd_bucketer_t *b,
                         const hd_index_t *const *const *indices,
                         uint32_t count) {
  int64_t values[HD_BUCKET_GRAPHS];
  for (uint32_t k = 0; k < count; k++) {
    for (size_t i = 0; i < b->count; i++) {
      values[i] = hd_flat_range(indices[i][k]);
      stand(b, indices[i][k], indices[0][k]);
    }
    if (!hd_bucket_is_bounded(b, values) ||
        !meet_term(b, indices[0][k], values))
      return false;
  }
  return true;
}

static bool same_reductions(hd_bucketer_t *b, const hd_term_t *const *terms) {
  const hd_reduction_t *first = terms[0]->u.reduction;
  const hd_index_t *const *indices[HD_BUCKET_GRAPHS];
  const hd_term_t *at[HD_BUCKET_GRAPHS];
  for (size_t i = 0; i < b->count; i++) {
    const hd_reduction_t *r = terms[i]->u.reduction;
    if (r->num_indices != first->num_indices || r->part != first->part ||
        r->monoid->builtin != first->monoid->builtin ||
        r->monoid->size != first->monoid->size ||
        r->monoid->in_order != first->monoid->in_order)
      return false;
    indices[i] = r->indices;
    at[i] = r->at;
  }
  return same_indices(b, indices, first->num_indices) &&
         (terms[0]->kind != HD_TERM_SCAN || same_terms(b, at));
}

static bool same_constants(hd_bucketer_t *b, const hd_term_t *const *terms) {
  int64_t values[HD_BUCKET_GRAPHS];
  bool is_float = hd_type_is_float(hd_type(terms[0]->type.scalar));
  for (size_t i = 0; i < b->count; i++)
    if (is_float)
      memcpy(&values[i], &terms[i]->u.f, sizeof(values[i]));
    else
      values[i] = terms[i]->u.i;
  return meet_term(b, terms[0], values);
}

static bool same_payload(hd_bucketer_t *b, const hd_term_t *term,
                         const hd_term_t *first) {
  switch ((hd_term_kind_t)term->kind) {
  case HD_TERM_INDEX:
    return stands(b, term->u.index, first->u.index);
  case HD_TERM_LOAD:
  case HD_TERM_LOADELSE:
    return stands(b, term->u.value, first->u.value);
  case HD_TERM_OPERATOR:
    return term->u.op == first->u.op;
  case HD_TERM_FUNCTION:
    return term->u.function == first->u.function;
  case HD_TERM_LIMIT:
    return term->u.limit == first->u.limit;
  default:
    return true;
  }
}

static bool same_terms(hd_bucketer_t *b, const hd_term_t *const *terms) {
  const hd_term_t *first = terms[0], *operands[HD_BUCKET_GRAPHS];
  for (size_t i = 1; i < b->count; i++)
    if (terms[i]->kind != first->kind ||
        terms[i]->num_operands != first->num_operands ||
        terms[i]->type.scalar != first->type.scalar ||
        !same_payload(b, terms[i], first))
      return false;
  if (first->kind == HD_TERM_CONST)
    return same_constants(b, terms);
  if (hd_flat_is_reduction(first) && !same_reductions(b, terms))
    return false;
  for (unsigned k = 0; k < first->num_operands; k++) {
    for (size_t i = 0; i < b->count; i++)
      operands[i] = terms[i]->operands[k];
    if (!same_terms(b, operands))
      return false;
  }
  return true;
}

// --- Tasks ---

static bool same_definitions(hd_bucketer_t *b, const hd_task_t *const *flats,
                             size_t n) {
  const hd_definition_t *first = flats[0]->definitions.data[n];
  const hd_index_t *const *indices[HD_BUCKET_GRAPHS];
  const hd_term_t *terms[HD_BUCKET_GRAPHS];
  if (first->kind != HD_DEFINE)
    return false;
  for (size_t i = 0; i < b->count; i++) {
    const hd_definition_t *d = flats[i]->definitions.data[n];
    if (d->kind != first->kind || d->num_targets != first->num_targets ||
        d->num_indices != first->num_indices)
      return false;
    for (uint32_t k = 0; k < d->num_targets; k++)
      stand(b, d->targets[k], first->targets[k]);
    indices[i] = d->indices;
    terms[i] = d->term;
  }
  return same_indices(b, indices, first->num_indices) && same_terms(b, terms);
}

static bool same_flats(hd_bucketer_t *b, const hd_task_t *const *flats) {
  const hd_task_t *first = flats[0];
  for (size_t i = 1; i < b->count; i++) {
    if (flats[i]->definitions.size != first->definitions.size ||
        flats[i]->inputs.size != first->inputs.size)
      return false;
    for (size_t k = 0; k < first->inputs.size; k++)
      stand(b, flats[i]->inputs.data[k], first->inputs.data[k]);
  }
  for (size_t k = 0; k < first->inputs.size; k++)
    stand(b, first->inputs.data[k], first->inputs.data[k]);
  for (size_t n = 0; n < first->definitions.size; n++)
    if (!same_definitions(b, flats, n))
      return false;
  return true;
}

static bool has_data_sizes(const hd_task_t *task) {
  for (size_t i = 0; i < task->sizes.size; i++)
    if (task->sizes.data[i]->bound)
      return true;
  return false;
}

static const hd_task_t *flatten(hd_bucketer_t *b, const hd_node_t *node) {
  const hd_task_binding_t *binding =
      hd_node_bind(b->module->context, b->arena, node);
  return binding
             ? hd_task_flatten(b->module->context, b->arena, binding, node->loc)
             : NULL;
}

static bool compare(hd_bucketer_t *b, const hd_node_t *const *nodes) {
  const hd_task_t *flats[HD_BUCKET_GRAPHS];
  if (has_data_sizes(nodes[0]->task))
    return hd_bucket_refuse(b, nodes[0], "its data decide a size");
  for (size_t i = 0; i < b->count; i++) {
    flats[i] = i == 0 && b->holds ? hd_ptr_map_get(&b->record->flats, nodes[0])
                                  : flatten(b, nodes[i]);
    if (!flats[i])
      return false;
  }
  if (!b->holds)
    hd_ptr_map_set(b->arena, &b->record->flats, nodes[0], flats[0]);
  return same_flats(b, flats) ||
         hd_bucket_refuse(b, nodes[0], "it computes otherwise at another size");
}

// --- Nodes like others ---

static bool is_like(const hd_node_t *x, const hd_node_t *y) {
  if (!hd_bucket_same_kind(x, y))
    return false;
  for (uint32_t i = 0; i < x->num_inputs; i++)
    if (x->inputs[i]->type != y->inputs[i]->type)
      return false;
  return hd_bucket_same_numbers(x, y);
}

static bool meet_again(hd_bucketer_t *b, const hd_bucket_compared_t *known) {
  int slot;
  for (size_t i = 0; i < known->numbers.size; i += 2)
    if (!hd_bucket_meet(b, &known->numbers.data[i], &slot))
      return false;
  return true;
}

// Layers of a model are alike, and a graph is held against a record for each
// length of a text.
static bool hold(hd_bucketer_t *b, const hd_node_t *const *nodes) {
  const hd_task_t *task = nodes[0]->task;
  hd_bucket_compared_t *last = hd_ptr_map_find(&b->compared, task);
  for (const hd_bucket_compared_t *c = last; c; c = c->next)
    if (is_like(c->nodes[0], nodes[0]) && is_like(c->nodes[1], nodes[1]))
      return meet_again(b, c);
  hd_bucket_compared_t *c = HD_ARENA_NEW(b->arena, hd_bucket_compared_t);
  memcpy(c->nodes, nodes, sizeof(c->nodes));
  c->next = last;
  b->comparing = c;
  bool ok = compare(b, nodes);
  b->comparing = NULL;
  hd_ptr_map_set(b->arena, &b->compared, task, c);
  return ok;
}

bool hd_bucket_compare(hd_bucketer_t *b, const hd_node_t *const *nodes) {
  return b->holds ? hold(b, nodes) : compare(b, nodes);
}
