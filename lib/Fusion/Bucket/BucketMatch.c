// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs of one source for several sizes, laid side by side, from their results
// back. Nodes have the same tasks; where their attributes or shapes differ,
// their tasks are compared term by term (BucketCompare.c).

#include "Fusion/Bucket/BucketState.h"
#include "IR/Graph/Loop.h"

#include <string.h>

typedef const hd_value_t *row_t[HD_BUCKET_GRAPHS];

bool hd_bucket_refuse(hd_bucketer_t *b, const hd_node_t *node,
                      const char *why) {
  if (!b->refusal.why)
    b->refusal = (hd_bucket_refusal_t){why, node};
  return false;
}

// --- Nodes ---

static const hd_node_t *giver(const hd_bucketer_t *b, const hd_value_t *value) {
  return hd_ptr_map_get(&b->givers, value);
}

static bool same_shapes(const hd_value_t *x, const hd_value_t *y) {
  bool same = x->rank == y->rank;
  for (int i = 0; same && i < x->rank; i++)
    same = x->shape[i]->u.i == y->shape[i]->u.i;
  return same;
}

bool hd_bucket_same_kind(const hd_node_t *x, const hd_node_t *y) {
  if (x->task != y->task || x->num_inputs != y->num_inputs ||
      x->num_outputs != y->num_outputs ||
      x->num_attributes != y->num_attributes || strcmp(x->op, y->op) != 0)
    return false;
  for (uint32_t i = 0; i < x->num_outputs; i++)
    if (!x->outputs[i] != !y->outputs[i])
      return false;
  for (uint32_t i = 0; i < x->num_attributes; i++)
    if (strcmp(x->attributes[i]->name, y->attributes[i]->name) != 0)
      return false;
  return true;
}

bool hd_bucket_same_numbers(const hd_node_t *x, const hd_node_t *y) {
  for (uint32_t i = 0; i < x->num_inputs; i++)
    if (!same_shapes(x->inputs[i], y->inputs[i]))
      return false;
  for (uint32_t i = 0; i < x->num_outputs; i++)
    if (x->outputs[i] && !same_shapes(x->outputs[i], y->outputs[i]))
      return false;
  for (uint32_t i = 0; i < x->num_attributes; i++)
    if (!hd_attribute_equal(x->attributes[i], y->attributes[i]))
      return false;
  return true;
}

static bool same_elements(hd_bucketer_t *b, const hd_value_t *x,
                          const hd_value_t *y) {
  if (x == y ||
      (x->constant->file && y->constant->file &&
       x->constant->offset == y->constant->offset &&
       !strcmp(x->constant->file, y->constant->file) && same_shapes(x, y)))
    return true;
  if (x->constant->mapped && x->constant->mapped == y->constant->mapped)
    return same_shapes(x, y);
  if (!same_shapes(x, y))
    return false;
  const hd_host_tensor_t *a = hd_constant_load(b->module, x);
  const hd_host_tensor_t *c = hd_constant_load(b->module, y);
  return a && c && a->bytes == c->bytes &&
         memcmp(a->data, c->data, a->bytes) == 0;
}

// --- Values side by side ---

typedef HD_VEC(const hd_value_t *) pending_t;

// Notes what stands beside a value; where that is new, it is looked at later.
static bool join(hd_bucketer_t *b, pending_t *pending, const row_t row) {
  const hd_value_t *const *known = hd_ptr_map_get(&b->matched, row[0]);
  if (known)
    return memcmp(known, row, b->count * sizeof(*row)) == 0;
  const hd_value_t **kept =
      HD_ARENA_ARRAY(b->arena, const hd_value_t *, b->count);
  memcpy(kept, row, b->count * sizeof(*row));
  hd_ptr_map_set(b->arena, &b->matched, row[0], kept);
  hd_vec_push(b->arena, pending, row[0]);
  return true;
}

static bool is_given(const hd_bucketer_t *b, const hd_value_t *value) {
  for (size_t i = 0; i < b->given.size; i++)
    if (b->given.data[i] == value)
      return true;
  return false;
}

static bool match_constants(hd_bucketer_t *b, const hd_value_t *const *row) {
  bool same = true;
  for (size_t i = 1; i < b->count; i++) {
    if (!row[i]->constant || row[i]->rank != row[0]->rank ||
        row[i]->type != row[0]->type)
      return hd_bucket_refuse(b, NULL, "constants differ with the size");
    same &= same_elements(b, row[0], row[i]);
  }
  if (!same && !is_given(b, row[0])) {
    if (b->holds)
      return false;
    hd_vec_push(b->arena, &b->given, row[0]);
  }
  return true;
}

static bool match_nodes(hd_bucketer_t *b, pending_t *pending,
                        const hd_value_t *const *row) {
  const hd_node_t *first = giver(b, row[0]);
  row_t next;
  for (size_t i = 1; i < b->count; i++) {
    const hd_node_t *other = giver(b, row[i]);
    if (!other || !hd_bucket_same_kind(first, other))
      return hd_bucket_refuse(b, first, "the graph is another at other sizes");
    for (uint32_t k = 0; k < first->num_outputs; k++)
      if (first->outputs[k] == row[0] && other->outputs[k] != row[i])
        return hd_bucket_refuse(b, first,
                                "the graph is another at other sizes");
  }
  for (uint32_t k = 0; k < first->num_inputs; k++) {
    for (size_t i = 0; i < b->count; i++)
      next[i] = giver(b, row[i])->inputs[k];
    if (!join(b, pending, next))
      return hd_bucket_refuse(b, first, "the graph is another at other sizes");
  }
  return true;
}

static bool match_values(hd_bucketer_t *b, pending_t *pending) {
  while (pending->size) {
    const hd_value_t *value = pending->data[--pending->size];
    const hd_value_t *const *row = hd_ptr_map_get(&b->matched, value);
    bool ok = value->constant   ? match_constants(b, row)
              : giver(b, value) ? match_nodes(b, pending, row)
                                : true; // An input, beside which itself lies.
    if (!ok)
      return hd_bucket_refuse(b, giver(b, value),
                              "the graph is another at other sizes");
  }
  return true;
}

// --- Graphs side by side ---

static void find_givers(hd_bucketer_t *b) {
  for (size_t i = 0; i < b->count; i++)
    for (size_t n = 0; n < b->graphs[i]->nodes.size; n++) {
      const hd_node_t *node = b->graphs[i]->nodes.data[n];
      for (uint32_t k = 0; k < node->num_outputs; k++)
        if (node->outputs[k])
          hd_ptr_map_set(b->arena, &b->givers, node->outputs[k], node);
    }
}

static bool match_ends(hd_bucketer_t *b, pending_t *pending) {
  const hd_graph_t *first = b->graphs[0];
  row_t row;
  for (size_t i = 1; i < b->count; i++)
    if (b->graphs[i]->inputs.size != first->inputs.size ||
        b->graphs[i]->outputs.size != first->outputs.size)
      return hd_bucket_refuse(b, NULL, "the graph is another at other sizes");
  for (size_t k = 0; k < first->inputs.size; k++) {
    for (size_t i = 0; i < b->count; i++)
      row[i] = b->graphs[i]->inputs.data[k];
    if (!join(b, pending, row))
      return false;
  }
  for (size_t k = 0; k < first->outputs.size; k++) {
    for (size_t i = 0; i < b->count; i++)
      row[i] = b->graphs[i]->outputs.data[k];
    if (!join(b, pending, row))
      return hd_bucket_refuse(b, NULL, "the graph is another at other sizes");
  }
  return true;
}

// The sizes of a value. Where graphs are held against a record alone, which is
// done for each length of a text, nothing is kept of them.
static bool meet_value(hd_bucketer_t *b, const hd_value_t *value) {
  const hd_value_t *const *row = hd_ptr_map_get(&b->matched, value);
  hd_bucket_tensor_t *t =
      b->holds ? NULL : HD_ARENA_NEW(b->arena, hd_bucket_tensor_t);
  int64_t values[HD_BUCKET_GRAPHS];
  if (t)
    t->rank = (unsigned)value->rank;
  for (int k = 0; k < value->rank; k++) {
    for (size_t i = 0; i < b->count; i++) {
      const hd_value_t *other = row ? row[i] : value;
      if (other->rank != value->rank)
        return false;
      values[i] = other->shape[k]->u.i;
    }
    hd_extent_t size = {.bound = values[0]};
    if (!hd_bucket_is_bounded(b, values) ||
        !hd_bucket_meet(b, values, &size.slot))
      return false;
    if (t) {
      t->sizes[k] = size;
      t->axes[k] = hd_digits_of(size);
    }
  }
  if (t)
    hd_ptr_map_set(b->arena, &b->tensors, value, t);
  return true;
}

hd_bucket_tensor_t *hd_bucket_tensor(hd_bucketer_t *b,
                                     const hd_value_t *value) {
  hd_bucket_tensor_t *t = hd_ptr_map_find(&b->tensors, value);
  if (t)
    return t;
  t = HD_ARENA_NEW(b->arena, hd_bucket_tensor_t);
  t->rank = (unsigned)value->rank;
  for (int k = 0; k < value->rank; k++) {
    t->sizes[k] = (hd_extent_t){value->shape[k]->u.i, -1};
    t->axes[k] = hd_digits_of(t->sizes[k]);
  }
  hd_ptr_map_set(b->arena, &b->tensors, value, t);
  return t;
}

static bool meet_node(hd_bucketer_t *b, size_t n, bool *differs) {
  const hd_node_t *node = b->graphs[0]->nodes.data[n];
  const hd_node_t *nodes[HD_BUCKET_GRAPHS] = {node};
  bool same = true;
  const hd_value_t *const *row = NULL;
  for (uint32_t k = 0; k < node->num_outputs && !row; k++)
    row = hd_ptr_map_get(&b->matched, node->outputs[k]);
  if (!row) // Nothing needs it.
    return hd_bucket_refuse(b, node, "it is not needed");
  for (size_t i = 1; i < b->count; i++) {
    nodes[i] = giver(b, row[i]);
    same &= hd_bucket_same_numbers(node, nodes[i]);
  }
  for (uint32_t k = 0; k < node->num_outputs; k++) {
    row_t outputs;
    for (size_t i = 0; i < b->count; i++)
      outputs[i] = nodes[i]->outputs[k];
    pending_t pending = {0};
    if (node->outputs[k] &&
        (!join(b, &pending, outputs) || !meet_value(b, node->outputs[k])))
      return hd_bucket_refuse(b, node, "its results are others");
  }
  if (hd_node_is_loop(node))
    return hd_bucket_refuse(b, node, "it is a loop");
  if (b->holds && !*differs)
    return same || hd_bucket_refuse(b, node, "it differs");
  *differs = b->holds || !same;
  return !*differs || !node->task || hd_bucket_compare(b, nodes);
}

bool hd_bucket_match(hd_bucketer_t *b) {
  const hd_graph_t *first = b->graphs[0];
  pending_t pending = {0};
  find_givers(b);
  if (!match_ends(b, &pending) || !match_values(b, &pending))
    return false;
  for (size_t i = 0; i < first->inputs.size; i++)
    if (!meet_value(b, first->inputs.data[i]))
      return hd_bucket_refuse(b, NULL, "its inputs are others");
  for (size_t i = 0; i < b->given.size; i++)
    if (!meet_value(b, b->given.data[i]))
      return hd_bucket_refuse(b, NULL, "its constants are others");
  bool *differs = HD_ARENA_ARRAY(b->arena, bool, first->nodes.size + 1);
  if (b->holds)
    memcpy(differs, b->record->differs, first->nodes.size * sizeof(*differs));
  else
    b->record->differs = differs;
  for (size_t n = 0; n < first->nodes.size; n++)
    if (!meet_node(b, n, &differs[n]))
      return false;
  return true;
}
