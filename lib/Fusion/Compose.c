// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions over the same rows become one node, with what stands between them:
//
//   m = reduce_mean(x)      v = reduce_mean(q)
//   d = sub(x, m)           r = sqrt(v)
//   q = mul(d, d)           y = div(d, r)
//
// becomes y = reduce_mean_rows(x), whose task is all of theirs
// (Schedule/Merge.h) and which the scheduler makes one kernel: a norm that a
// model spells out. Where the task has the elements of a tensor in another
// shape, a reshape stands at the edge.
//
// From each reduction on, nodes are taken that read what is there and nothing
// that depends on it and was not taken: pointwise ones wait until a reduction
// needs them, reductions are taken if all so far stay one kernel. What still
// waits in the end comes along if it fits.
#include "Fusion/Compose.h"

#include "Schedule/Merge.h"

#include <string.h>

enum { MOST_AHEAD = 200, MOST_NODES = 40 };

typedef enum state {
  NOT_READ, // Does not depend on what is taken.
  TAKEN,
  WAITS,
  BARRED, // Depends on it, and stays outside.
} state_t;

typedef struct node_info {
  const hd_node_t *node;
  const hd_task_t *flat; // NULL: a reshape, or nothing to be composed.
  bool is_pointwise, reduces;
  uint32_t composite; // Number + 1; 0: none.
  state_t state;      // In the search at hand.
  bool is_done;       // Written.
} node_info_t;

typedef struct composite {
  uint32_t *members; // In the graph's order.
  size_t num_members;
  HD_VEC(const hd_value_t *) outputs;
  hd_merged_t merged;
  const hd_task_t *task;
} composite_t;

typedef struct composer {
  hd_module_t *module;
  hd_arena_t *arena;
  const hd_graph_t *graph;
  node_info_t *nodes;
  size_t num_nodes;
  hd_ptr_map_t givers;  // Values to node_info_t.
  hd_ptr_map_t outputs; // Of the graph.
  HD_VEC(composite_t *) composites;
  hd_graph_t *made;
} composer_t;

// --- The graph ---

static node_info_t *giver_of(const composer_t *c, const hd_value_t *value) {
  node_info_t *const *box = value ? hd_ptr_map_get(&c->givers, value) : NULL;
  return box ? *box : NULL;
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

static void look(composer_t *c, hd_fusion_t *fusion) {
  c->num_nodes = c->graph->nodes.size;
  c->nodes = HD_ARENA_ARRAY(c->arena, node_info_t, c->num_nodes + 1);
  for (size_t i = 0; i < c->num_nodes; i++) {
    node_info_t *info = &c->nodes[i];
    const hd_node_t *node = info->node = c->graph->nodes.data[i];
    hd_pointwise_t p;
    info->is_pointwise = !hd_fusion_pointwise(fusion, node, &p);
    const hd_prepared_t *prepared =
        node->task && !node->schedule ? hd_fusion_prepare(fusion, node) : NULL;
    info->flat = prepared ? prepared->flat : NULL;
    info->reduces = !info->is_pointwise && info->flat &&
                    all_defined(info->flat) && has_reduction(info->flat) &&
                    hd_rows_fit(c->arena, info->flat);
    for (uint32_t k = 0; k < node->num_outputs; k++) {
      node_info_t **box = HD_ARENA_NEW(c->arena, node_info_t *);
      *box = info;
      if (node->outputs[k])
        hd_ptr_map_set(c->arena, &c->givers, node->outputs[k], box);
    }
  }
  for (size_t i = 0; i < c->graph->outputs.size; i++)
    hd_ptr_map_set(c->arena, &c->outputs, c->graph->outputs.data[i], c);
}

// --- Sets of nodes ---

static bool is_read_outside(const composer_t *c, const hd_value_t *value,
                            const bool *in) {
  if (hd_ptr_map_get(&c->outputs, value))
    return true;
  for (size_t i = 0; i < c->num_nodes; i++) {
    const hd_node_t *node = c->nodes[i].node;
    for (uint32_t k = 0; !in[i] && k < node->num_inputs; k++)
      if (node->inputs[k] == value)
        return true;
  }
  return false;
}

static bool is_read_inside(const composer_t *c, const hd_value_t *value,
                           const bool *in) {
  for (size_t i = 0; i < c->num_nodes; i++) {
    const hd_node_t *node = c->nodes[i].node;
    for (uint32_t k = 0; in[i] && k < node->num_inputs; k++)
      if (node->inputs[k] == value)
        return true;
  }
  return false;
}

typedef HD_VEC(hd_merge_part_t) parts_t;

// What a node reads is read before reshapes, so that it is the same tensor
// wherever it is read.
static void add_reshapes(const composer_t *c, const hd_node_t *node,
                         const bool *in, parts_t *parts) {
  for (uint32_t k = 0; k < node->num_inputs; k++) {
    const node_info_t *giver = giver_of(c, node->inputs[k]);
    if (!giver || in[giver - c->nodes] || !hd_node_is_reshape(giver->node))
      continue;
    add_reshapes(c, giver->node, in, parts);
    hd_vec_push(c->arena, parts, ((hd_merge_part_t){NULL, giver->node}));
  }
}

// The task of a set of nodes; false where that is not one kernel over rows.
static bool compose(composer_t *c, const bool *in, composite_t *out) {
  *out = (composite_t){0};
  size_t count = 0;
  out->members = HD_ARENA_ARRAY(c->arena, uint32_t, c->num_nodes);
  for (size_t i = 0; i < c->num_nodes; i++)
    if (in[i])
      out->members[count++] = (uint32_t)i;
  out->num_members = count;
  if (count > MOST_NODES)
    return false;
  parts_t parts = {0};
  for (size_t i = 0; i < count; i++) {
    const node_info_t *info = &c->nodes[out->members[i]];
    add_reshapes(c, info->node, in, &parts);
    hd_vec_push(c->arena, &parts, ((hd_merge_part_t){info->flat, info->node}));
    for (uint32_t k = 0; k < info->node->num_outputs; k++)
      if (info->node->outputs[k] &&
          is_read_outside(c, info->node->outputs[k], in))
        hd_vec_push(c->arena, &out->outputs, info->node->outputs[k]);
  }
  hd_budget_check(&c->module->context->budget);
  return hd_flat_merge(c->arena, "rows", parts.data, parts.size,
                       out->outputs.data, out->outputs.size, &out->merged) &&
         hd_rows_fit(c->arena, out->merged.flat);
}

// Adds what waits of all that a node reads.
static void add_waiting(const composer_t *c, const hd_node_t *node, bool *in) {
  for (uint32_t k = 0; k < node->num_inputs; k++) {
    const node_info_t *giver = giver_of(c, node->inputs[k]);
    if (!giver || giver->state != WAITS || in[giver - c->nodes])
      continue;
    in[giver - c->nodes] = true;
    add_waiting(c, giver->node, in);
  }
}

static void take(composer_t *c, const bool *in) {
  for (size_t i = 0; i < c->num_nodes; i++)
    if (in[i])
      c->nodes[i].state = TAKEN;
}

static void copy_taken(const composer_t *c, bool *in) {
  for (size_t i = 0; i < c->num_nodes; i++)
    in[i] = c->nodes[i].state == TAKEN;
}

static state_t state_of_inputs(const composer_t *c, const hd_node_t *node) {
  state_t most = NOT_READ;
  for (uint32_t k = 0; k < node->num_inputs; k++) {
    const node_info_t *giver = giver_of(c, node->inputs[k]);
    if (giver && giver->state > most)
      most = giver->state;
  }
  return most;
}

// A reshape at the edge moves nothing where it is.
static void drop_reshapes(const composer_t *c, bool *in) {
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < c->num_nodes; i++) {
      const hd_node_t *node = c->nodes[i].node;
      if (in[i] && hd_node_is_reshape(node) &&
          !is_read_inside(c, node->outputs[0], in)) {
        in[i] = false;
        more = true;
      }
    }
  }
}

// --- The search ---

static void add_rest(composer_t *c, bool *in) {
  composite_t all;
  copy_taken(c, in);
  for (size_t i = 0; i < c->num_nodes; i++)
    in[i] |= c->nodes[i].state == WAITS;
  if (compose(c, in, &all)) {
    take(c, in);
    return;
  }
  for (size_t i = 0; i < c->num_nodes; i++) {
    node_info_t *info = &c->nodes[i];
    if (info->state != WAITS)
      continue;
    copy_taken(c, in);
    in[i] = true;
    bool ok = state_of_inputs(c, info->node) <= TAKEN && compose(c, in, &all);
    info->state = ok ? TAKEN : BARRED;
  }
}

// How many reductions are taken, from one on.
static unsigned search(composer_t *c, size_t first, bool *in) {
  unsigned reductions = 1, waiting = 0;
  for (size_t i = 0; i < c->num_nodes; i++)
    c->nodes[i].state = NOT_READ;
  c->nodes[first].state = TAKEN;
  for (size_t i = first + 1; i < c->num_nodes && i < first + MOST_AHEAD; i++) {
    node_info_t *info = &c->nodes[i];
    state_t read = state_of_inputs(c, info->node);
    if (read == NOT_READ)
      continue;
    info->state = BARRED;
    if (read == BARRED || info->composite)
      continue;
    if (info->is_pointwise && waiting < MOST_NODES) {
      info->state = WAITS;
      waiting++;
    } else if (info->reduces) {
      composite_t tried;
      copy_taken(c, in);
      in[i] = true;
      add_waiting(c, info->node, in);
      if (compose(c, in, &tried)) {
        take(c, in);
        reductions++;
      }
    }
  }
  return reductions;
}

// Whether a path leads out of the set and back; other composites are passed as
// a whole.
static bool comes_back(composer_t *c, const bool *in) {
  bool *seen = HD_ARENA_ARRAY(c->arena, bool, c->num_nodes);
  bool *units = HD_ARENA_ARRAY(c->arena, bool, c->composites.size + 1);
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < c->num_nodes; i++) {
      const node_info_t *info = &c->nodes[i];
      bool reached = info->composite && units[info->composite - 1];
      for (uint32_t k = 0; !reached && k < info->node->num_inputs; k++) {
        const node_info_t *giver = giver_of(c, info->node->inputs[k]);
        size_t from = giver ? (size_t)(giver - c->nodes) : 0;
        reached = giver && (seen[from] || (in[from] && !in[i]));
      }
      if (!reached || seen[i])
        continue;
      if (in[i])
        return true;
      seen[i] = true;
      if (info->composite)
        units[info->composite - 1] = true;
      more = true;
    }
  }
  return false;
}

static bool is_asked_for(composer_t *c, const composite_t *found) {
  const hd_node_t *first = c->nodes[found->members[0]].node;
  const hd_node_t *last = c->nodes[found->members[found->num_members - 1]].node;
  return hd_step(&c->module->context->steps, HD_STEP_FUSION,
                 "of %zu nodes from %s '%s' to %s '%s' into one task",
                 found->num_members, first->op, hd_node_label(first), last->op,
                 hd_node_label(last));
}

static void compose_from(composer_t *c, size_t first, bool *in) {
  composite_t *found = HD_ARENA_NEW(c->arena, composite_t);
  if (search(c, first, in) < 2)
    return;
  add_rest(c, in);
  copy_taken(c, in);
  drop_reshapes(c, in);
  if (comes_back(c, in) || !compose(c, in, found) || !is_asked_for(c, found))
    return;
  hd_vec_push(c->arena, &c->composites, found);
  for (size_t i = 0; i < found->num_members; i++)
    c->nodes[found->members[i]].composite = (uint32_t)c->composites.size;
}

// --- Tasks ---

// The same task where the text is the same.
static const hd_task_t *find_task(composer_t *c, composite_t *made) {
  hd_buffer_t text = {0};
  hd_task_print(made->merged.flat, &text);
  const hd_task_t *found = NULL;
  for (size_t i = 0; !found && i < c->composites.size; i++) {
    const composite_t *other = c->composites.data[i];
    if (!other->task)
      continue;
    hd_buffer_t theirs = {0};
    hd_task_print(other->merged.flat, &theirs);
    if (strcmp(hd_buffer_text(&text), hd_buffer_text(&theirs)) == 0)
      found = other->task;
    hd_buffer_fini(&theirs);
  }
  hd_buffer_fini(&text);
  if (found)
    return found;
  hd_task_t *task = HD_ARENA_NEW(c->arena, hd_task_t);
  *task = *made->merged.flat;
  task->name = hd_module_fresh_name(
      c->arena, c->module,
      hd_arena_printf(c->arena, "%s_rows",
                      c->nodes[made->members[0]].node->op));
  hd_item_t item = {.kind = HD_ITEM_TASK, .u.task = task};
  hd_vec_push(c->arena, &c->module->items, item);
  return task;
}

// --- The new graph ---

static bool has_shape(const hd_value_t *value, const hd_task_value_t *tensor) {
  hd_tensor_type_t type = hd_scheduled_type(value);
  bool same = type.rank == tensor->rank;
  for (uint32_t i = 0; same && i < tensor->rank; i++)
    same = type.shape[i] == hd_flat_size(tensor, i);
  return same;
}

static bool is_name(const composer_t *c, const char *name) {
  const hd_graph_t *graphs[] = {c->graph, c->made};
  for (int g = 0; g < 2; g++) {
    for (size_t i = 0; i < graphs[g]->nodes.size; i++) {
      const hd_node_t *node = graphs[g]->nodes.data[i];
      for (uint32_t k = 0; k < node->num_outputs; k++)
        if (node->outputs[k] && strcmp(node->outputs[k]->name, name) == 0)
          return true;
    }
    for (size_t i = 0; i < graphs[g]->inputs.size; i++)
      if (strcmp(graphs[g]->inputs.data[i]->name, name) == 0)
        return true;
    for (size_t i = 0; i < graphs[g]->constants.size; i++)
      if (strcmp(graphs[g]->constants.data[i]->name, name) == 0)
        return true;
  }
  return false;
}

// A value of the same elements in the tensor's shape.
static hd_value_t *shaped_value(composer_t *c, const hd_value_t *like,
                                const hd_task_value_t *tensor) {
  hd_value_t *value = HD_ARENA_NEW(c->arena, hd_value_t);
  const hd_expr_t **shape =
      HD_ARENA_ARRAY(c->arena, const hd_expr_t *, tensor->rank);
  for (uint32_t i = 0; i < tensor->rank; i++)
    shape[i] = hd_expr_int(c->arena, hd_type(HD_I64), hd_flat_size(tensor, i));
  *value = *like;
  value->constant = NULL;
  value->label = NULL;
  value->rank = (int)tensor->rank;
  value->shape = shape;
  for (unsigned i = 1;; i++) {
    value->name = hd_arena_printf(c->arena, "%s_split_%u", like->name, i);
    if (!is_name(c, value->name))
      return value;
  }
}

static void put_reshape(composer_t *c, const hd_value_t *from,
                        const hd_value_t *to, hd_loc_t loc) {
  hd_node_t *node = HD_ARENA_NEW(c->arena, hd_node_t);
  const hd_value_t **ends = HD_ARENA_ARRAY(c->arena, const hd_value_t *, 2);
  ends[0] = from;
  ends[1] = to;
  *node = (hd_node_t){.op = "reshape",
                      .loc = loc,
                      .num_inputs = 1,
                      .inputs = &ends[0],
                      .num_outputs = 1,
                      .outputs = &ends[1]};
  hd_vec_push(c->arena, &c->made->nodes, (const hd_node_t *)node);
}

static void put_composite(composer_t *c, composite_t *made) {
  const hd_task_t *flat = made->merged.flat;
  const hd_node_t *first = c->nodes[made->members[0]].node;
  size_t num_inputs = flat->inputs.size, num_outputs = flat->outputs.size;
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(c->arena, const hd_value_t *, num_inputs + 1);
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(c->arena, const hd_value_t *, num_outputs + 1);
  for (size_t i = 0; i < num_inputs; i++) {
    const hd_value_t *value = inputs[i] = made->merged.inputs.data[i];
    if (has_shape(value, flat->inputs.data[i]))
      continue;
    inputs[i] = shaped_value(c, value, flat->inputs.data[i]);
    put_reshape(c, value, inputs[i], first->loc);
  }
  for (size_t i = 0; i < num_outputs; i++) {
    outputs[i] = made->outputs.data[i];
    if (!has_shape(outputs[i], flat->outputs.data[i]))
      outputs[i] = shaped_value(c, outputs[i], flat->outputs.data[i]);
  }
  hd_node_t *node = HD_ARENA_NEW(c->arena, hd_node_t);
  *node = (hd_node_t){.op = made->task->name,
                      .task = made->task,
                      .label = first->label,
                      .loc = first->loc,
                      .num_inputs = (uint32_t)num_inputs,
                      .inputs = inputs,
                      .num_outputs = (uint32_t)num_outputs,
                      .outputs = outputs};
  hd_vec_push(c->arena, &c->made->nodes, (const hd_node_t *)node);
  for (size_t i = 0; i < num_outputs; i++)
    if (outputs[i] != made->outputs.data[i])
      put_reshape(c, outputs[i], made->outputs.data[i], first->loc);
}

static void put_node(composer_t *c, node_info_t *info);

static void put_givers(composer_t *c, const hd_node_t *node) {
  for (uint32_t k = 0; k < node->num_inputs; k++) {
    node_info_t *giver = giver_of(c, node->inputs[k]);
    if (giver)
      put_node(c, giver);
  }
}

// After all that it reads.
static void put_node(composer_t *c, node_info_t *info) {
  if (info->is_done)
    return;
  info->is_done = true;
  if (!info->composite) {
    put_givers(c, info->node);
    hd_vec_push(c->arena, &c->made->nodes, info->node);
    return;
  }
  composite_t *made = c->composites.data[info->composite - 1];
  for (size_t i = 0; i < made->num_members; i++)
    c->nodes[made->members[i]].is_done = true;
  for (size_t i = 0; i < made->num_members; i++)
    put_givers(c, c->nodes[made->members[i]].node);
  put_composite(c, made);
}

// Reshapes that nobody reads any more, since composites read what is before.
static void drop_dead(composer_t *c) {
  hd_ptr_map_t used = {0};
  size_t kept = c->made->nodes.size;
  for (size_t i = c->made->nodes.size; i-- > 0;) {
    const hd_node_t *node = c->made->nodes.data[i];
    if (hd_node_is_reshape(node) && !hd_ptr_map_get(&used, node->outputs[0]) &&
        !hd_ptr_map_get(&c->outputs, node->outputs[0]))
      continue;
    for (uint32_t k = 0; k < node->num_inputs; k++)
      if (node->inputs[k])
        hd_ptr_map_set(c->arena, &used, node->inputs[k], node);
    c->made->nodes.data[--kept] = node;
  }
  size_t count = c->made->nodes.size - kept;
  memmove(&c->made->nodes.data[0], &c->made->nodes.data[kept],
          count * sizeof(c->made->nodes.data[0]));
  c->made->nodes.size = count;
}

static void explain_composite(composer_t *c, const composite_t *made) {
  const hd_node_t *first = c->nodes[made->members[0]].node;
  hd_remark(&c->module->context->diags, first->loc,
            "fuse: %zu nodes from %s '%s' on are one task over rows, '%s'",
            made->num_members, first->op, hd_node_label(first),
            made->task->name);
}

const hd_graph_t *hd_graph_compose(hd_fusion_t *fusion, const hd_graph_t *graph,
                                   bool explain) {
  composer_t c = {
      .module = fusion->module, .arena = fusion->arena, .graph = graph};
  look(&c, fusion);
  bool *in = HD_ARENA_ARRAY(c.arena, bool, c.num_nodes + 1);
  for (size_t i = 0; i < c.num_nodes; i++)
    if (c.nodes[i].reduces && !c.nodes[i].composite)
      compose_from(&c, i, in);
  if (c.composites.size == 0)
    return graph;
  c.made = HD_ARENA_NEW(c.arena, hd_graph_t);
  *c.made = *graph;
  memset(&c.made->nodes, 0, sizeof(c.made->nodes));
  for (size_t i = 0; i < c.composites.size; i++) {
    c.composites.data[i]->task = find_task(&c, c.composites.data[i]);
    if (explain)
      explain_composite(&c, c.composites.data[i]);
  }
  for (size_t i = 0; i < c.num_nodes; i++)
    put_node(&c, &c.nodes[i]);
  drop_dead(&c);
  return c.made;
}
