// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions over the same rows become one node, with what stands between them:
//
//   m = reduce_mean(x)      v = reduce_mean(q)
//   d = sub(x, m)           r = sqrt(v)
//   q = mul(d, d)           y = div(d, r)
//
// becomes y = reduce_mean_rows(x), whose task is all of theirs
// (Schedule/Terms/Merge.h) and which the scheduler makes one kernel: a norm
// that a model spells out. Where the task has the elements of a tensor in
// another shape, a reshape stands at the edge.
//
// From each reduction on, nodes are taken that read what is there and nothing
// that depends on it and was not taken: pointwise ones wait until a reduction
// needs them, reductions are taken if all so far stay one kernel. What still
// waits in the end comes along if it fits.
#include "Fusion/Compose/ComposeState.h"
#include "Schedule/Attention/Attention.h"
#include "Schedule/Product/Pairs.h"

enum { MOST_AHEAD = 200, MOST_NODES = 40 };

// --- The graph ---

static void add_reader(hd_composer_t *c, const hd_value_t *value, size_t node) {
  hd_numbers_t *readers = hd_ptr_map_find(&c->readers, value);
  if (!readers) {
    readers = HD_ARENA_NEW(c->arena, hd_numbers_t);
    hd_ptr_map_set(c->arena, &c->readers, value, readers);
  }
  hd_vec_push(c->arena, readers, (uint32_t)node);
}

static void look_at_values(hd_composer_t *c, hd_composed_node_t *info) {
  const hd_node_t *node = info->node;
  for (uint32_t k = 0; k < node->num_inputs; k++)
    if (node->inputs[k])
      add_reader(c, node->inputs[k], (size_t)(info - c->nodes));
  for (uint32_t k = 0; k < node->num_outputs; k++) {
    if (!node->outputs[k])
      continue;
    hd_composed_node_t **box = HD_ARENA_NEW(c->arena, hd_composed_node_t *);
    *box = info;
    hd_ptr_map_set(c->arena, &c->givers, node->outputs[k], box);
  }
}

static bool all_defined(const hd_task_t *flat) {
  for (size_t i = 0; i < flat->definitions.size; i++)
    if (flat->definitions.data[i]->kind != HD_DEFINE)
      return false;
  return true;
}

static bool has_reduction(const hd_task_t *flat) {
  for (size_t i = 0; i < flat->definitions.size; i++)
    if (hd_flat_has(flat->definitions.data[i]->term, HD_TERM_REDUCE))
      return true;
  return false;
}

// Whether nodes may join it: it reduces, and is no kernel by itself, as an
// attention is, or a product and its gate.
static bool reduces(const hd_composer_t *c, const hd_task_t *flat) {
  hd_attention_form_t attention;
  hd_product_form_t pairs;
  return all_defined(flat) && has_reduction(flat) &&
         hd_rows_fit(c->arena, flat) &&
         hd_attention_form_find(c->arena, flat, &attention) &&
         hd_pairs_form_find(c->arena, flat, &pairs);
}

// Nodes that compute the same share a flat task, and are asked about once.
static bool look_at_task(hd_composer_t *c, hd_ptr_map_t *looked,
                         const hd_task_t *flat) {
  static const bool answers[] = {false, true};
  const bool *known = hd_ptr_map_get(looked, flat);
  if (!known) {
    known = &answers[reduces(c, flat)];
    hd_ptr_map_set(c->arena, looked, flat, known);
  }
  return *known;
}

void hd_composer_look(hd_composer_t *c, hd_fusion_t *fusion) {
  hd_ptr_map_t looked = {0};
  c->num_nodes = c->graph->nodes.size;
  c->nodes = HD_ARENA_ARRAY(c->arena, hd_composed_node_t, c->num_nodes + 1);
  c->in = HD_ARENA_ARRAY(c->arena, bool, c->num_nodes + 1);
  for (size_t i = 0; i < c->num_nodes; i++) {
    hd_composed_node_t *info = &c->nodes[i];
    const hd_node_t *node = info->node = c->graph->nodes.data[i];
    hd_pointwise_t p;
    info->is_pointwise = !hd_fusion_pointwise(fusion, node, &p);
    const hd_flattened_t *flattened =
        node->task && !node->schedule ? hd_fusion_flatten(fusion, node) : NULL;
    info->flat = flattened ? flattened->flat : NULL;
    info->reduces = !info->is_pointwise && info->flat &&
                    look_at_task(c, &looked, info->flat);
    look_at_values(c, info);
  }
  for (size_t i = 0; i < c->graph->outputs.size; i++)
    hd_ptr_map_set(c->arena, &c->outputs, c->graph->outputs.data[i], c);
}

// --- Sets of nodes ---

bool hd_composer_is_read_outside(const hd_composer_t *c,
                                 const hd_value_t *value) {
  if (hd_ptr_map_get(&c->outputs, value))
    return true;
  const hd_numbers_t *readers = hd_ptr_map_get(&c->readers, value);
  for (size_t i = 0; readers && i < readers->size; i++)
    if (!c->in[readers->data[i]])
      return true;
  return false;
}

static bool is_read_inside(const hd_composer_t *c, const hd_value_t *value) {
  for (size_t i = c->low; i < c->high; i++) {
    const hd_node_t *node = c->nodes[i].node;
    for (uint32_t k = 0; c->in[i] && k < node->num_inputs; k++)
      if (node->inputs[k] == value)
        return true;
  }
  return false;
}

typedef HD_VEC(hd_merge_part_t) parts_t;

// What a node reads is read before reshapes, so that it is the same tensor
// wherever it is read.
static void add_reshapes(const hd_composer_t *c, hd_arena_t *arena,
                         const hd_node_t *node, parts_t *parts) {
  for (uint32_t k = 0; k < node->num_inputs; k++) {
    const hd_composed_node_t *giver = hd_composer_giver(c, node->inputs[k]);
    if (!giver || c->in[giver - c->nodes] || !hd_node_is_reshape(giver->node))
      continue;
    add_reshapes(c, arena, giver->node, parts);
    hd_vec_push(arena, parts, ((hd_merge_part_t){NULL, giver->node}));
  }
}

bool hd_composer_merge(hd_composer_t *c, hd_arena_t *arena, const char *name,
                       hd_composite_t *out) {
  *out = (hd_composite_t){.name = name};
  out->members = HD_ARENA_ARRAY(arena, uint32_t, MOST_NODES);
  for (size_t i = c->low; i < c->high; i++) {
    if (c->in[i] && out->num_members == MOST_NODES)
      return false;
    if (c->in[i])
      out->members[out->num_members++] = (uint32_t)i;
  }
  parts_t parts = {0};
  for (size_t i = 0; i < c->copied.size; i++) {
    const hd_composed_node_t *info = &c->nodes[c->copied.data[i]];
    add_reshapes(c, arena, info->node, &parts);
    hd_vec_push(arena, &parts, ((hd_merge_part_t){info->flat, info->node}));
  }
  for (size_t i = 0; i < out->num_members; i++) {
    const hd_composed_node_t *info = &c->nodes[out->members[i]];
    add_reshapes(c, arena, info->node, &parts);
    hd_vec_push(arena, &parts, ((hd_merge_part_t){info->flat, info->node}));
    for (uint32_t k = 0; k < info->node->num_outputs; k++)
      if (info->node->outputs[k] &&
          hd_composer_is_read_outside(c, info->node->outputs[k]))
        hd_vec_push(arena, &out->outputs, info->node->outputs[k]);
  }
  hd_budget_check(&c->module->context->budget);
  return hd_flat_merge(arena, name, parts.data, parts.size, out->outputs.data,
                       out->outputs.size, &out->merged);
}

// The task of the set; false where that is not one kernel over rows.
static bool compose(hd_composer_t *c, hd_arena_t *arena, hd_composite_t *out) {
  if (!hd_composer_merge(c, arena, "rows", out))
    return false;
  hd_arena_t scratch;
  hd_arena_init_local(&scratch, &c->module->context->budget);
  bool fits = hd_rows_fit(&scratch, out->merged.flat);
  hd_arena_fini(&scratch);
  return fits;
}

// Whether the set can be composed; nothing of it is kept.
static bool is_composable(hd_composer_t *c) {
  hd_arena_t scratch;
  hd_composite_t tried;
  hd_arena_init_local(&scratch, &c->module->context->budget);
  bool ok = compose(c, &scratch, &tried);
  hd_arena_fini(&scratch);
  return ok;
}

// Adds what waits of all that a node reads.
static void add_waiting(const hd_composer_t *c, const hd_node_t *node) {
  for (uint32_t k = 0; k < node->num_inputs; k++) {
    const hd_composed_node_t *giver = hd_composer_giver(c, node->inputs[k]);
    if (!giver || giver->state != HD_COMPOSE_WAITS || c->in[giver - c->nodes])
      continue;
    c->in[giver - c->nodes] = true;
    add_waiting(c, giver->node);
  }
}

static void take_set(hd_composer_t *c) {
  for (size_t i = c->low; i < c->high; i++)
    if (c->in[i])
      c->nodes[i].state = HD_COMPOSE_TAKEN;
}

static void copy_taken(hd_composer_t *c) {
  for (size_t i = c->low; i < c->high; i++)
    c->in[i] = c->nodes[i].state == HD_COMPOSE_TAKEN;
}

static void forget(hd_composer_t *c) {
  for (size_t i = c->low; i < c->high; i++) {
    c->in[i] = false;
    c->nodes[i].state = HD_COMPOSE_NOT_READ;
  }
}

static hd_compose_state_t state_of_inputs(const hd_composer_t *c,
                                          const hd_node_t *node) {
  hd_compose_state_t most = HD_COMPOSE_NOT_READ;
  for (uint32_t k = 0; k < node->num_inputs; k++) {
    const hd_composed_node_t *giver = hd_composer_giver(c, node->inputs[k]);
    if (giver && giver->state > most)
      most = giver->state;
  }
  return most;
}

// A reshape at the edge moves nothing where it is.
static void drop_reshapes(hd_composer_t *c) {
  for (bool more = true; more;) {
    more = false;
    for (size_t i = c->low; i < c->high; i++) {
      const hd_node_t *node = c->nodes[i].node;
      if (c->in[i] && hd_node_is_reshape(node) &&
          !is_read_inside(c, node->outputs[0])) {
        c->in[i] = false;
        more = true;
      }
    }
  }
}

// --- The search ---

static void add_rest(hd_composer_t *c) {
  copy_taken(c);
  for (size_t i = c->low; i < c->high; i++)
    c->in[i] |= c->nodes[i].state == HD_COMPOSE_WAITS;
  if (is_composable(c)) {
    take_set(c);
    return;
  }
  for (size_t i = c->low; i < c->high; i++) {
    hd_composed_node_t *info = &c->nodes[i];
    if (info->state != HD_COMPOSE_WAITS)
      continue;
    copy_taken(c);
    c->in[i] = true;
    bool ok =
        state_of_inputs(c, info->node) <= HD_COMPOSE_TAKEN && is_composable(c);
    info->state = ok ? HD_COMPOSE_TAKEN : HD_COMPOSE_BARRED;
  }
}

// How many reductions are taken, from one on.
static unsigned search(hd_composer_t *c, size_t first) {
  unsigned reductions = 1, waiting = 0;
  forget(c);
  c->low = first;
  c->high =
      c->num_nodes - first > MOST_AHEAD ? first + MOST_AHEAD : c->num_nodes;
  c->nodes[first].state = HD_COMPOSE_TAKEN;
  for (size_t i = first + 1; i < c->high; i++) {
    hd_composed_node_t *info = &c->nodes[i];
    hd_compose_state_t read = state_of_inputs(c, info->node);
    if (read == HD_COMPOSE_NOT_READ)
      continue;
    info->state = HD_COMPOSE_BARRED;
    if (read == HD_COMPOSE_BARRED || info->composite)
      continue;
    if (info->is_pointwise && waiting < MOST_NODES) {
      info->state = HD_COMPOSE_WAITS;
      waiting++;
    } else if (info->reduces) {
      copy_taken(c);
      c->in[i] = true;
      add_waiting(c, info->node);
      if (is_composable(c)) {
        take_set(c);
        reductions++;
      }
    }
  }
  return reductions;
}

// A walk along the edges from the set, within the nodes from `from` on.
typedef struct walk {
  hd_composer_t *c;
  size_t from;
  bool seen[2 * MOST_AHEAD];
} walk_t;

// Whether a node reads what the walk has come to, or is in a composite that
// does: those are passed as a whole.
static bool is_reached(const walk_t *w, size_t i) {
  const hd_composer_t *c = w->c;
  const hd_composed_node_t *info = &c->nodes[i];
  if (info->composite &&
      c->composites.data[info->composite - 1]->seen == c->walk)
    return true;
  for (uint32_t k = 0; k < info->node->num_inputs; k++) {
    const hd_composed_node_t *giver =
        hd_composer_giver(c, info->node->inputs[k]);
    size_t from = giver ? (size_t)(giver - c->nodes) : 0;
    if (giver && ((from >= w->from && w->seen[from - w->from]) ||
                  (c->in[from] && !c->in[i])))
      return true;
  }
  return false;
}

// Whether a path leads out of the set and back. One that leads too far back, by
// another composite, counts as one that does.
static bool comes_back(hd_composer_t *c) {
  walk_t w = {.c = c, .from = c->low > MOST_AHEAD ? c->low - MOST_AHEAD : 0};
  c->walk++;
  for (bool more = true; more;) {
    more = false;
    for (size_t i = w.from; i < c->high; i++) {
      if (w.seen[i - w.from] || !is_reached(&w, i))
        continue;
      const hd_composed_node_t *info = &c->nodes[i];
      hd_composite_t *of =
          info->composite ? c->composites.data[info->composite - 1] : NULL;
      if (c->in[i] || (of && of->members[0] < w.from))
        return true;
      w.seen[i - w.from] = true;
      if (of)
        of->seen = c->walk;
      more = true;
    }
  }
  return false;
}

bool hd_composer_asks(hd_composer_t *c, const hd_composite_t *found) {
  const hd_node_t *first = c->nodes[found->members[0]].node;
  const hd_node_t *last = c->nodes[found->members[found->num_members - 1]].node;
  return hd_step(&c->module->context->steps, HD_STEP_FUSION,
                 "of %zu nodes from %s '%s' to %s '%s' into one task",
                 found->num_members, first->op, hd_node_label(first), last->op,
                 hd_node_label(last));
}

void hd_composer_take(hd_composer_t *c, hd_composite_t *found) {
  hd_vec_push(c->arena, &c->composites, found);
  for (size_t i = 0; i < found->num_members; i++)
    c->nodes[found->members[i]].composite = (uint32_t)c->composites.size;
}

static void compose_from(hd_composer_t *c, size_t first) {
  if (search(c, first) < 2)
    return;
  add_rest(c);
  copy_taken(c);
  drop_reshapes(c);
  if (comes_back(c))
    return;
  hd_composite_t *found = HD_ARENA_NEW(c->arena, hd_composite_t);
  if (compose(c, c->arena, found) && hd_composer_asks(c, found))
    hd_composer_take(c, found);
}

const hd_graph_t *hd_graph_compose(hd_fusion_t *fusion, const hd_graph_t *graph,
                                   bool explain) {
  hd_composer_t c = {
      .module = fusion->module, .arena = fusion->arena, .graph = graph};
  hd_composer_look(&c, fusion);
  for (size_t i = 0; i < c.num_nodes; i++)
    if (c.nodes[i].reduces && !c.nodes[i].composite)
      compose_from(&c, i);
  return c.composites.size ? hd_composer_graph(&c, explain) : graph;
}
