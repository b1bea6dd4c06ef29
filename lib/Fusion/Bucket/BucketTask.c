// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a node needs to be right for extents below its bounds. Its flat task is
// looked at: an index that runs along an axis has that axis' digits; where a
// term computes with one, its places have to be the true ones. What reads at
// such places alone, and reduces over what is real, stays as it is.
//
//   y[i] = x[i] + x[n - 1 - i]      a term reads n
//   y[i] = sum(p: n) x[i, p]        x is 0 past n, or the sum leaves it out
//   y[i] = x[at[i]]                 what lies past n reads nowhere, and what is
//                                   real below x's true size

#include "Fusion/Bucket/BucketState.h"
#include "Schedule/Terms/Affine.h"

#include <string.h>

hd_bucket_index_t *hd_bucket_index(const hd_bucket_node_t *n,
                                   const hd_index_t *index) {
  return hd_ptr_map_find(&n->indices, index);
}

hd_bucket_tensor_t *hd_bucket_flat_tensor(const hd_bucket_node_t *n,
                                          const hd_task_value_t *value) {
  return hd_ptr_map_find(&n->tensors, value);
}

static bool refuse(const hd_bucket_node_t *n, const char *why) {
  return hd_bucket_refuse(n->b, n->node, why);
}

// --- Indices ---

static void add_indices(hd_bucket_node_t *n, const hd_index_t *const *indices,
                        uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (hd_bucket_index(n, indices[i]))
      continue;
    hd_bucket_index_t *index = HD_ARENA_NEW(n->b->arena, hd_bucket_index_t);
    index->index = indices[i];
    index->range =
        hd_bucket_number(n->b, indices[i], hd_flat_range(indices[i]));
    index->digits = hd_digits_of(index->range);
    hd_ptr_map_set(n->b->arena, &n->indices, indices[i], index);
  }
}

bool hd_bucket_links(const hd_bucket_node_t *n, const hd_term_t *load,
                     unsigned i) {
  const hd_bucket_tensor_t *t = hd_bucket_flat_tensor(n, load->u.value);
  if (load->operands[i]->kind != HD_TERM_INDEX)
    return false;
  hd_extent_t range = hd_bucket_index(n, load->operands[i]->u.index)->range;
  return range.bound == t->sizes[i].bound && range.slot == t->sizes[i].slot;
}

static bool link(hd_bucket_node_t *n, hd_bucket_index_t *index,
                 const hd_digits_t *axis) {
  if (index->linked && !hd_digits_equal(&index->digits, axis))
    return refuse(n, "axes that it runs along have holes in other places");
  index->digits = *axis;
  index->linked = true;
  return true;
}

bool hd_bucket_is_chosen(const hd_bucket_node_t *n, const hd_term_t *place) {
  if (hd_flat_is_load(place) && hd_bucket_flat_tensor(n, place->u.value))
    return true;
  for (unsigned i = 0; i < place->num_operands; i++)
    if (hd_bucket_is_chosen(n, place->operands[i]))
      return true;
  return false;
}

// Whether a place may be outside, whatever the index terms say.
static bool may_leave(const hd_bucket_node_t *n, const hd_term_t *load,
                      unsigned i) {
  hd_range_t range = hd_term_range(load->operands[i]);
  bool reads = hd_bucket_number(n->b, load->operands[i], 0).slot >= 0;
  const hd_bucket_tensor_t *t = hd_bucket_flat_tensor(n, load->u.value);
  return reads || range.least < 0 ||
         range.greatest >= hd_flat_size(load->u.value, i) ||
         (hd_digits_vary(&t->axes[i]) &&
          hd_bucket_is_chosen(n, load->operands[i]));
}

// --- Terms ---

static bool note_term(hd_bucket_node_t *n, const hd_term_t *term);

static bool note_operands(hd_bucket_node_t *n, const hd_term_t *term,
                          unsigned from) {
  for (unsigned i = from; i < term->num_operands; i++)
    if (!note_term(n, term->operands[i]))
      return false;
  return true;
}

static bool has_numbers(const hd_bucket_node_t *n, const hd_term_t *term) {
  if (term->kind == HD_TERM_CONST && hd_bucket_number(n->b, term, 0).slot >= 0)
    return true;
  for (unsigned i = 0; i < term->num_operands; i++)
    if (has_numbers(n, term->operands[i]))
      return true;
  return false;
}

static bool note_load(hd_bucket_node_t *n, const hd_term_t *term) {
  hd_bucket_tensor_t *t = hd_bucket_flat_tensor(n, term->u.value);
  unsigned rank = term->u.value->rank;
  for (unsigned i = 0; i < rank; i++) {
    const hd_term_t *place = term->operands[i];
    if (hd_bucket_links(n, term, i)) {
      if (!link(n, hd_bucket_index(n, place->u.index), &t->axes[i]))
        return false;
      continue;
    }
    if (t->axes[i].count > 1)
      return refuse(n, "it reads at computed places of an axis with holes");
    n->guards |= term->kind == HD_TERM_LOADELSE && hd_digits_vary(&t->axes[i]);
    n->risks |= term->kind == HD_TERM_LOAD &&
                (may_leave(n, term, i) || has_numbers(n, place));
    if (!note_term(n, place))
      return false;
  }
  return note_operands(n, term, rank);
}

static bool note_reduction(hd_bucket_node_t *n, const hd_term_t *term) {
  const hd_reduction_t *r = term->u.reduction;
  add_indices(n, r->indices, r->num_indices);
  if (term->kind == HD_TERM_SCAN) {
    hd_bucket_index(n, r->indices[0])->valued = true;
    if (!note_term(n, r->at))
      return false;
  }
  return note_operands(n, term, 0);
}

static bool note_term(hd_bucket_node_t *n, const hd_term_t *term) {
  switch ((hd_term_kind_t)term->kind) {
  case HD_TERM_INDEX:
    hd_bucket_index(n, term->u.index)->valued = true;
    return true;
  case HD_TERM_CONST:
    n->numbers |= hd_bucket_number(n->b, term, 0).slot >= 0;
    return true;
  case HD_TERM_LOAD:
  case HD_TERM_LOADELSE:
    return note_load(n, term);
  case HD_TERM_REDUCE:
  case HD_TERM_SCAN:
    return note_reduction(n, term);
  default:
    return note_operands(n, term, 0);
  }
}

bool hd_bucket_reduces(const hd_bucket_node_t *n, const hd_term_t *term) {
  const hd_reduction_t *r = term->u.reduction;
  bool past = term->kind == HD_TERM_REDUCE || r->part == HD_SCAN_FROM ||
              r->part == HD_SCAN_AFTER;
  for (uint32_t i = 0; past && i < r->num_indices; i++)
    if (hd_digits_vary(&hd_bucket_index(n, r->indices[i])->digits))
      return true;
  return false;
}

typedef struct reducing {
  hd_bucket_node_t *n;
  bool any;
} reducing_t;

static bool note_reduces(void *argument, const hd_term_t *term) {
  reducing_t *r = argument;
  r->any |= hd_flat_is_reduction(term) && hd_bucket_reduces(r->n, term);
  return true;
}

// --- Definitions ---

static hd_bucket_tensor_t *define(hd_bucket_node_t *n, const hd_definition_t *d,
                                  const hd_task_value_t *target) {
  hd_bucket_tensor_t *t = HD_ARENA_NEW(n->b->arena, hd_bucket_tensor_t);
  t->rank = target->rank;
  for (unsigned i = 0; i < target->rank; i++) {
    const hd_bucket_index_t *index = hd_bucket_index(n, d->indices[i]);
    t->sizes[i] = index->range;
    t->axes[i] = index->digits;
  }
  hd_ptr_map_set(n->b->arena, &n->tensors, target, t);
  return t;
}

static bool note_definition(hd_bucket_node_t *n, const hd_definition_t *d) {
  reducing_t r = {n, false};
  if (d->kind != HD_DEFINE)
    return refuse(n, "it scatters, or its data decide a size");
  add_indices(n, d->indices, d->num_indices);
  if (!note_term(n, d->term))
    return false;
  hd_flat_walk(d->term, note_reduces, &r);
  n->reduces |= r.any;
  for (uint32_t i = 0; i < d->num_targets; i++)
    define(n, d, d->targets[i]);
  return true;
}

// Its digits may be known after terms that compute with it.
static bool check_values(hd_bucket_node_t *n, const hd_term_t *term) {
  if (term->kind == HD_TERM_INDEX) {
    const hd_bucket_index_t *index = hd_bucket_index(n, term->u.index);
    if (index->valued && index->digits.count > 1)
      return refuse(n, "it computes with places on an axis with holes");
  }
  if (hd_flat_is_reduction(term)) {
    const hd_reduction_t *r = term->u.reduction;
    const hd_bucket_index_t *index = hd_bucket_index(n, r->indices[0]);
    if (index->valued && index->digits.count > 1)
      return refuse(n, "it computes with places on an axis with holes");
  }
  for (unsigned i = 0; i < term->num_operands; i++)
    if (!check_values(n, term->operands[i]))
      return false;
  return true;
}

static bool note_task(hd_bucket_node_t *n) {
  const hd_task_t *flat = n->flat;
  for (size_t i = 0; i < flat->inputs.size; i++)
    hd_ptr_map_set(n->b->arena, &n->tensors, flat->inputs.data[i],
                   hd_bucket_tensor(n->b, n->node->inputs[i]));
  for (size_t i = 0; i < flat->definitions.size; i++)
    if (!note_definition(n, flat->definitions.data[i]) ||
        !check_values(n, flat->definitions.data[i]->term))
      return false;
  return true;
}

// --- Results ---

// Axes of results are those of the indices that define them.
static void set_results(hd_bucket_node_t *n) {
  for (uint32_t k = 0; k < n->node->num_outputs; k++) {
    const hd_bucket_tensor_t *flat =
        hd_bucket_flat_tensor(n, n->flat->outputs.data[k]);
    if (!n->node->outputs[k] || !flat)
      continue;
    hd_bucket_tensor_t *t = hd_bucket_tensor(n->b, n->node->outputs[k]);
    memcpy(t->axes, flat->axes, sizeof(t->axes));
    memcpy(t->known, flat->known, sizeof(t->known));
    memcpy(t->past, flat->past, sizeof(t->past));
  }
}

static bool is_changed(const hd_value_t *const *a, const hd_value_t *const *b,
                       uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (a[i] != b[i])
      return true;
  return false;
}

// The node with what stands for its inputs.
static void put_same(hd_bucket_node_t *n) {
  hd_bucketer_t *b = n->b;
  const hd_node_t *node = n->node;
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(b->arena, const hd_value_t *, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    inputs[i] = n->seals && n->seals[i].any
                    ? hd_bucket_sealed(b, node->inputs[i], &n->seals[i])
                    : hd_bucket_stands(b, node->inputs[i]);
  }
  if (is_changed(inputs, node->inputs, node->num_inputs)) {
    hd_node_t *copy = HD_ARENA_COPY(b->arena, hd_node_t, node);
    copy->inputs = inputs;
    node = copy;
  }
  hd_vec_push(b->arena, &b->made->nodes, node);
}

static bool put_changed(hd_bucket_node_t *n) {
  hd_bucketer_t *b = n->b;
  const hd_node_t *node = n->node;
  if (node->group || node->schedule || node->pin)
    return refuse(n, "its schedule is given");
  hd_task_t *task = hd_bucket_task(n);
  if (!task)
    return refuse(n, "several results would have to be left out together");
  if (!hd_bucket_reads(task)) { // All that it computes is real.
    put_same(n);
    return true;
  }
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(b->arena, const hd_value_t *, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    inputs[i] = hd_bucket_stands(b, node->inputs[i]);
  hd_bucket_put(b, node->op, task, node, inputs, node->outputs);
  return true;
}

// The same node, reading inputs without holes; NULL where that changes nothing.
static const hd_node_t *with_whole(hd_bucketer_t *b, const hd_node_t *node) {
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(b->arena, const hd_value_t *, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    inputs[i] = hd_bucket_whole(b, node->inputs[i]);
  if (!is_changed(inputs, node->inputs, node->num_inputs))
    return NULL;
  hd_node_t *copy = HD_ARENA_COPY(b->arena, hd_node_t, node);
  copy->inputs = inputs;
  return copy;
}

// Holes stand in the way of some tasks.
static bool note_any(hd_bucket_node_t *n) {
  if (note_task(n))
    return true;
  const hd_node_t *node = with_whole(n->b, n->node);
  if (!node)
    return false;
  n->b->refusal = (hd_bucket_refusal_t){0};
  *n = (hd_bucket_node_t){.b = n->b, .node = node, .flat = n->flat};
  return note_task(n);
}

bool hd_bucket_put_task(hd_bucketer_t *b, const hd_node_t *node) {
  hd_bucket_node_t n = {.b = b, .node = node};
  n.flat = hd_ptr_map_get(&b->record->flats, node);
  if (!n.flat) { // It is the same at all sizes.
    put_same(&n);
    return true;
  }
  if (!note_any(&n))
    return false;
  hd_bucket_append_t *append = hd_bucket_append_at(b, node, NULL, NULL);
  if (append) {
    if (!hd_bucket_put_append(&n, append))
      return false;
    set_results(&n);
    return true;
  }
  bool seals = (n.reduces || n.guards) && !n.numbers && !n.risks &&
               hd_bucket_find_seals(&n);
  if (n.numbers || n.risks || ((n.reduces || n.guards) && !seals)) {
    n.seals = NULL;
    if (!put_changed(&n))
      return false;
  } else {
    hd_bucket_find_past(&n);
    put_same(&n);
  }
  set_results(&n);
  return true;
}
