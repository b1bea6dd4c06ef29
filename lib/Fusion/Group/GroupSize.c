// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How large a group is: the terms that its kernel computes and the parameters
// that it takes. Kept up to date as nodes come and go, so that what joins and
// what does not is asked where the group grows, and at the same price for the
// hundredth node as for the first.
#include "Fusion/Group/GroupState.h"

// Terms that one kernel computes in all places: beyond that nobody would write
// it. A function is as much code as so many.
enum { MOST_TERMS = 2000, FUNCTION_TERMS = 8 };

// Of the parameters, what the anchor's schedule may take for itself: workspaces
// and tensor maps.
enum { SCHEDULE_BYTES = 1024 };

typedef struct group_node {
  const hd_node_t *node;
  bool is_prologue;
  uint64_t terms; // Of its element, those of prologues in the place of loads.
} group_node_t;

typedef struct reading {
  group_node_t *reader;
  unsigned loads; // Of the value, in the reader's own term.
} reading_t;

// A value that the group reads or gives.
typedef struct count {
  group_node_t *giver; // NULL: nobody in the group.
  bool is_literal;     // A number in terms, never loaded.
  HD_VEC(reading_t) readings;
} count_t;

static count_t *count_of(hd_group_t *g, const hd_value_t *value) {
  hd_arena_t *arena = g->fusion->arena;
  count_t *count = hd_ptr_map_find(&g->counts, value);
  if (!count) {
    count = HD_ARENA_NEW(arena, count_t);
    count->is_literal = hd_group_is_literal(value);
    hd_ptr_map_set(arena, &g->counts, value, count);
  }
  return count;
}

// --- A node's own term ---

typedef struct loads {
  const hd_task_value_t *value; // NULL: all terms.
  unsigned count;
} loads_t;

static bool count_loads(void *argument, const hd_term_t *term) {
  loads_t *l = argument;
  if (l->value)
    l->count += hd_flat_is_load(term) && term->u.value == l->value;
  else
    l->count += term->kind == HD_TERM_FUNCTION ? FUNCTION_TERMS : 1;
  return true;
}

// How often input i stands in what a node computes.
static unsigned loads_of(const hd_group_t *g, const hd_node_t *node,
                         uint32_t i) {
  const hd_flattened_t *flattened =
      node->task ? hd_fusion_flatten(g->fusion, node) : NULL;
  if (!flattened)
    return 1;
  loads_t l = {.value = flattened->flat->inputs.data[i]};
  for (size_t k = 0; k < flattened->flat->definitions.size; k++)
    hd_flat_walk(flattened->flat->definitions.data[k]->term, count_loads, &l);
  return l.count;
}

// The anchor's own are its schedule's business. A reshape is a load, at another
// place.
static unsigned own_terms(const hd_group_t *g, const hd_node_t *node) {
  hd_pointwise_t p;
  loads_t l = {0};
  if (node == g->anchor || !node->task ||
      hd_fusion_pointwise(g->fusion, node, &p))
    return 2;
  hd_flat_walk(p.definition->term, count_loads, &l);
  return l.count;
}

// --- Kept up to date ---

// The terms for a prologue's element stand wherever it is read: so many more
// (modulo 2^64: or fewer), `loads` times. The largest element that changes is
// noted.
static void add_terms(hd_group_t *g, group_node_t *node, uint64_t more) {
  node->terms += more;
  if (node->node != g->anchor && node->terms > g->largest)
    g->largest = node->terms;
  if (!node->is_prologue) {
    g->terms += more;
    return;
  }
  count_t *count = count_of(g, node->node->outputs[0]);
  for (size_t i = 0; i < count->readings.size; i++)
    add_terms(g, count->readings.data[i].reader,
              more * count->readings.data[i].loads);
}

static bool is_read_outside(const hd_group_t *g, const hd_value_t *value,
                            const count_t *count) {
  return count->readings.size < hd_fusion_readers(g->fusion, value);
}

// Whether input i is the first place where the node reads that value.
static bool is_first(const hd_node_t *node, uint32_t i) {
  for (uint32_t k = 0; k < i; k++)
    if (node->inputs[k] == node->inputs[i])
      return false;
  return true;
}

static unsigned loads_of_value(const hd_group_t *g, const hd_node_t *node,
                               uint32_t first) {
  unsigned loads = 0;
  for (uint32_t k = first; k < node->num_inputs; k++)
    if (node->inputs[k] == node->inputs[first])
      loads += loads_of(g, node, k);
  return loads;
}

static void add_readings(hd_group_t *g, group_node_t *n) {
  const hd_node_t *node = n->node;
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    if (!node->inputs[i] || !is_first(node, i))
      continue;
    count_t *count = count_of(g, node->inputs[i]);
    reading_t reading = {n, loads_of_value(g, node, i)};
    bool was_kept = count->giver && !count->giver->is_prologue &&
                    is_read_outside(g, node->inputs[i], count);
    g->tensors_read +=
        !count->giver && !count->is_literal && !count->readings.size;
    hd_vec_push(g->fusion->arena, &count->readings, reading);
    g->tensors_kept -= was_kept && !is_read_outside(g, node->inputs[i], count);
    if (count->giver && count->giver->is_prologue)
      n->terms += reading.loads * (count->giver->terms - 1);
  }
}

static void drop_readings(hd_group_t *g, group_node_t *n) {
  const hd_node_t *node = n->node;
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    if (!node->inputs[i] || !is_first(node, i))
      continue;
    count_t *count = count_of(g, node->inputs[i]);
    bool gives = count->giver && !count->giver->is_prologue;
    g->tensors_kept += gives && !is_read_outside(g, node->inputs[i], count);
    count->readings.size--; // Who came last goes first.
    g->tensors_read -=
        !count->giver && !count->is_literal && !count->readings.size;
  }
}

static void count_node(hd_group_t *g, const hd_node_t *node, bool is_prologue) {
  group_node_t *n = HD_ARENA_NEW(g->fusion->arena, group_node_t);
  *n = (group_node_t){.node = node, .is_prologue = is_prologue};
  n->terms = own_terms(g, node);
  add_readings(g, n);
  g->largest = n->terms;
  g->terms += is_prologue ? 0 : n->terms;
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    if (!node->outputs[i])
      continue;
    count_t *count = count_of(g, node->outputs[i]);
    count->giver = n;
    g->tensors_read -= count->readings.size > 0;
    g->tensors_kept +=
        !is_prologue && is_read_outside(g, node->outputs[i], count);
    for (size_t k = 0; is_prologue && k < count->readings.size; k++)
      add_terms(g, count->readings.data[k].reader,
                (n->terms - 1) * count->readings.data[k].loads);
  }
}

void hd_group_uncount(hd_group_t *g, const hd_node_t *node) {
  group_node_t *n = count_of(g, node->outputs[0])->giver;
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    if (!node->outputs[i])
      continue;
    count_t *count = count_of(g, node->outputs[i]);
    for (size_t k = 0; n->is_prologue && k < count->readings.size; k++)
      add_terms(g, count->readings.data[k].reader,
                (1 - n->terms) * count->readings.data[k].loads);
    g->tensors_kept -=
        !n->is_prologue && is_read_outside(g, node->outputs[i], count);
    g->tensors_read += count->readings.size > 0;
    count->giver = NULL;
  }
  g->terms -= n->is_prologue ? 0 : n->terms;
  drop_readings(g, n);
}

// --- What is too much ---

const char *hd_group_excess(const hd_group_t *g) {
  hd_arena_t *arena = g->fusion->arena;
  if (g->terms > MOST_TERMS)
    return hd_arena_printf(
        arena, "the kernel would compute %llu terms, and %d are the most",
        (unsigned long long)g->terms, MOST_TERMS);
  size_t bytes = g->own_bytes + 8 * ((size_t)g->tensors_read + g->tensors_kept);
  if (bytes > HD_LEAST_PARAM_BYTES)
    return hd_arena_printf(
        arena,
        "the kernel would take %zu bytes of parameters, and a launch has room "
        "for %d",
        bytes, HD_LEAST_PARAM_BYTES);
  return NULL;
}

const char *hd_group_count(hd_group_t *g, const hd_node_t *node,
                           bool is_prologue, uint64_t most_terms) {
  count_node(g, node, is_prologue);
  uint64_t most = most_terms < MOST_TERMS ? most_terms : MOST_TERMS;
  const char *why =
      g->largest > most ? "its term would grow too large" : hd_group_excess(g);
  if (why)
    hd_group_uncount(g, node);
  return why;
}

void hd_group_count_anchor(hd_group_t *g) {
  const hd_func_t *schedule = g->anchor->schedule;
  g->own_bytes = SCHEDULE_BYTES;
  if (schedule && schedule->kind == HD_FUNC_KERNEL) {
    size_t tensors = 0;
    for (uint32_t i = 0; i < schedule->num_params; i++)
      tensors += schedule->params[i]->kind == HD_VAR_TENSOR;
    g->own_bytes = hd_func_param_bytes(schedule) - 8 * tensors;
  }
  count_node(g, g->anchor, false);
}

bool hd_group_is_kept(const hd_group_t *g, const hd_value_t *value) {
  const count_t *count = hd_ptr_map_get(&g->counts, value);
  return is_read_outside(g, value, count);
}

const hd_node_t *hd_group_reader(const hd_group_t *g, const hd_value_t *value,
                                 size_t i) {
  const count_t *count = hd_ptr_map_get(&g->counts, value);
  return count && i < count->readings.size
             ? count->readings.data[i].reader->node
             : NULL;
}
