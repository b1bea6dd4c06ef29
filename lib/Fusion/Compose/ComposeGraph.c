// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The graph that comes out of composing: composites with their tasks, reshapes
// at their edges, all after what they read.
#include "Fusion/Compose/ComposeState.h"
#include "Graph/Names.h"

#include <string.h>

// --- Tasks ---

// The same task where the text is the same.
static const hd_task_t *find_task(hd_composer_t *c, hd_composite_t *made) {
  hd_buffer_t text;
  hd_buffer_init_local(&text, c->arena->budget);
  hd_task_print(made->merged.flat, &text);
  hd_task_t *task = hd_key_map_find_name(&c->tasks, hd_buffer_text(&text));
  if (!task) {
    task = HD_ARENA_NEW(c->arena, hd_task_t);
    hd_key_map_set_name(
        c->arena, &c->tasks,
        hd_arena_strndup(c->arena, hd_buffer_text(&text), text.size), task);
    *task = *made->merged.flat;
    task->name = hd_module_fresh_name(
        c->arena, c->module,
        hd_arena_printf(c->arena, "%s_%s",
                        c->nodes[made->members[made->lead]].node->op,
                        made->name));
    hd_item_t item = {.kind = HD_ITEM_TASK, .u.task = task};
    hd_vec_push(c->arena, &c->module->items, item);
  }
  hd_buffer_fini(&text);
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

static void take_name(hd_composer_t *c, const hd_value_t *value) {
  if (value)
    hd_name_unique(c->arena, &c->names, value->name);
}

static void take_names(hd_composer_t *c) {
  for (size_t i = 0; i < c->num_nodes; i++)
    for (uint32_t k = 0; k < c->nodes[i].node->num_outputs; k++)
      take_name(c, c->nodes[i].node->outputs[k]);
  for (size_t i = 0; i < c->graph->inputs.size; i++)
    take_name(c, c->graph->inputs.data[i]);
  for (size_t i = 0; i < c->graph->constants.size; i++)
    take_name(c, c->graph->constants.data[i]);
}

// A value of the same elements in the tensor's shape.
static hd_value_t *shaped_value(hd_composer_t *c, const hd_value_t *like,
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
  value->name = hd_name_unique(
      c->arena, &c->names, hd_arena_printf(c->arena, "%s_split", like->name));
  return value;
}

static void put_reshape(hd_composer_t *c, const hd_value_t *from,
                        const hd_value_t *to, hd_loc_t loc) {
  const hd_node_t *node =
      hd_node_between(c->arena, "reshape", NULL, from, to, NULL, loc);
  hd_vec_push(c->arena, &c->made->nodes, node);
}

static void put_composite(hd_composer_t *c, hd_composite_t *made) {
  const hd_task_t *flat = made->merged.flat;
  const hd_node_t *first = c->nodes[made->members[made->lead]].node;
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
                      .pin = made->pin,
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

static void put_node(hd_composer_t *c, hd_composed_node_t *info);

static void put_givers(hd_composer_t *c, const hd_node_t *node) {
  for (uint32_t k = 0; k < node->num_inputs; k++) {
    hd_composed_node_t *giver = hd_composer_giver(c, node->inputs[k]);
    if (giver)
      put_node(c, giver);
  }
}

// After all that it reads.
static void put_node(hd_composer_t *c, hd_composed_node_t *info) {
  if (info->is_done)
    return;
  info->is_done = true;
  if (!info->composite) {
    put_givers(c, info->node);
    hd_vec_push(c->arena, &c->made->nodes, info->node);
    return;
  }
  hd_composite_t *made = c->composites.data[info->composite - 1];
  for (size_t i = 0; i < made->num_members; i++)
    c->nodes[made->members[i]].is_done = true;
  for (size_t i = 0; i < made->num_members; i++)
    put_givers(c, c->nodes[made->members[i]].node);
  put_composite(c, made);
}

// What nobody reads any more: reshapes, since composites read what is before,
// and what they have copies of.
static void drop_dead(hd_composer_t *c) {
  hd_ptr_map_t used = {0};
  size_t kept = c->made->nodes.size;
  for (size_t i = c->made->nodes.size; i-- > 0;) {
    const hd_node_t *node = c->made->nodes.data[i];
    bool is_used = false;
    for (uint32_t k = 0; k < node->num_outputs; k++)
      is_used |=
          node->outputs[k] && (hd_ptr_map_get(&used, node->outputs[k]) ||
                               hd_ptr_map_get(&c->outputs, node->outputs[k]));
    if (!is_used)
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

static void explain_composite(hd_composer_t *c, const hd_composite_t *made) {
  const hd_node_t *first = c->nodes[made->members[made->lead]].node;
  hd_remark(&c->module->context->diags, first->loc,
            "fuse: %zu nodes from %s '%s' on are one task over %s, '%s'",
            made->num_members, first->op, hd_node_label(first), made->name,
            made->task->name);
}

const hd_graph_t *hd_composer_graph(hd_composer_t *c, bool explain) {
  c->made = HD_ARENA_NEW(c->arena, hd_graph_t);
  *c->made = *c->graph;
  memset(&c->made->nodes, 0, sizeof(c->made->nodes));
  take_names(c);
  for (size_t i = 0; i < c->composites.size; i++) {
    c->composites.data[i]->task = find_task(c, c->composites.data[i]);
    if (explain)
      explain_composite(c, c->composites.data[i]);
  }
  for (size_t i = 0; i < c->num_nodes; i++)
    put_node(c, &c->nodes[i]);
  drop_dead(c);
  return c->made;
}
