// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The graph that comes out of composing: composites with their tasks, reshapes
// at their edges, all after what they read.
#include "Fusion/Compose/ComposeState.h"
#include "Graph/Names.h"
#include "Graph/Prepare.h"

// --- The new graph ---

double hd_composer_bytes(const hd_value_t *value) {
  hd_tensor_type_t type = hd_scheduled_type(value);
  double bytes = (double)hd_scalar_bits(type.type) / 8;
  for (unsigned i = 0; i < type.rank; i++)
    bytes *= (double)type.shape[i];
  return bytes;
}

bool hd_composer_is_read_once(const hd_composer_t *composer,
                              const hd_value_t *value) {
  const hd_numbers_t *readers = hd_ptr_map_get(&composer->readers, value);
  return readers && readers->size == 1 &&
         !hd_ptr_map_get(&composer->outputs, value);
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

// The values that a flat task reads, in the shapes that it has them in.
static const hd_value_t **put_inputs(hd_composer_t *c, const hd_task_t *flat,
                                     const hd_value_t *const *values,
                                     hd_loc_t loc) {
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(c->arena, const hd_value_t *, flat->inputs.size + 1);
  for (size_t i = 0; i < flat->inputs.size; i++) {
    inputs[i] = values[i];
    if (hd_scheduled_has_shape(values[i], flat->inputs.data[i]))
      continue;
    inputs[i] = shaped_value(c, values[i], flat->inputs.data[i]);
    put_reshape(c, values[i], inputs[i], loc);
  }
  return inputs;
}

static void put_packing(hd_composer_t *c, const hd_node_t *packing) {
  hd_node_t *node = HD_ARENA_NEW(c->arena, hd_node_t);
  *node = *packing;
  node->inputs = put_inputs(c, packing->task, packing->inputs, packing->loc);
  hd_vec_push(c->arena, &c->made->nodes, (const hd_node_t *)node);
}

static void put_composite(hd_composer_t *c, hd_composite_t *made) {
  const hd_task_t *flat = made->merged.flat;
  const hd_node_t *first = c->nodes[made->members[made->lead]].node;
  size_t num_inputs = flat->inputs.size, num_outputs = flat->outputs.size;
  const hd_value_t **inputs =
      put_inputs(c, flat, made->merged.inputs.data, first->loc);
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(c->arena, const hd_value_t *, num_outputs + 1);
  for (size_t i = 0; i < num_outputs; i++) {
    outputs[i] = made->outputs.data[i];
    if (!hd_scheduled_has_shape(outputs[i], flat->outputs.data[i]))
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
  for (size_t i = 0; i < made->merged.inputs.size; i++) {
    const hd_node_t *packing =
        hd_ptr_map_get(&c->packed, made->merged.inputs.data[i]);
    if (packing)
      put_packing(c, packing);
  }
  put_composite(c, made);
}

static void explain_composite(hd_composer_t *c, const hd_composite_t *made) {
  const hd_node_t *first = c->nodes[made->members[made->lead]].node;
  hd_remark(&c->module->context->diags, first->loc,
            "fuse: %zu nodes from %s '%s' on are one task over %s, '%s'",
            made->num_members, first->op, hd_node_label(first), made->name,
            made->task->name);
}

const hd_graph_t *hd_composer_graph(hd_composer_t *c, bool explain) {
  c->made = hd_graph_without_nodes(c->arena, c->graph);
  hd_names_take(c->arena, &c->names, c->graph);
  for (size_t i = 0; i < c->composites.size; i++) {
    hd_composite_t *made = c->composites.data[i];
    made->task = hd_task_shared(
        c->arena, c->module, &c->tasks, made->merged.flat,
        hd_arena_printf(c->arena, "%s_%s",
                        c->nodes[made->members[made->lead]].node->op,
                        made->name));
    if (explain)
      explain_composite(c, made);
  }
  for (size_t i = 0; i < c->num_nodes; i++)
    put_node(c, &c->nodes[i]);
  // Nobody reads some reshapes any more, since composites read what is before,
  // and what they have copies of.
  hd_graph_drop_unread(c->arena, c->made);
  return c->made;
}
