// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The graph that comes out of composing: composites with their tasks, reshapes
// at their edges, all after what they read.
#include "Fusion/Compose/ComposeState.h"
#include "Fusion/Shaped.h"
#include "Graph/Names.h"
#include "Graph/Prepare.h"

// --- The new graph ---

bool hd_composer_is_read_once(const hd_composer_t *composer,
                              const hd_value_t *value) {
  const hd_numbers_t *readers = hd_ptr_map_get(&composer->readers, value);
  return readers && readers->size == 1 &&
         !hd_ptr_map_get(&composer->outputs, value);
}

static void put_composed(void *argument, const hd_node_t *node) {
  hd_composer_t *c = argument;
  hd_vec_push(c->arena, &c->made->nodes, node);
}

static void put_composite(hd_composer_t *c, hd_composite_t *made) {
  const hd_node_t *first = c->nodes[made->members[made->lead]].node;
  hd_node_t node = {.op = made->task->name,
                    .task = made->task,
                    .label = first->label,
                    .pin = made->pin,
                    .loc = first->loc,
                    .num_inputs = (uint32_t)made->merged.flat->inputs.size,
                    .inputs = made->merged.inputs.data,
                    .num_outputs = (uint32_t)made->merged.flat->outputs.size,
                    .outputs = made->outputs.data};
  hd_put_shaped(c->arena, &c->names, &node, put_composed, c);
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
      hd_put_shaped(c->arena, &c->names, packing, put_composed, c);
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
