// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules for the anchors of a graph, each by itself.
#include "Fusion/Fuse.h"
#include "Fusion/Group/GroupRows.h"
#include "Fusion/Views.h"
#include "IR/Graph/Loop.h"
#include "Schedule/Settle.h"

// Whether no dimension of a kernel's tensor holds an axis, be there elements or
// not.
static bool is_too_long(const hd_value_t *value) {
  int64_t size;
  for (int i = 0; i < value->rank; i++)
    if (hd_expr_fold_int(value->shape[i], &size) && size > INT32_MAX)
      return true;
  return false;
}

// Why no kernel takes or gives a value, or NULL.
static const char *unscheduled(const hd_value_t *value) {
  if (!hd_value_is_concrete(value))
    return "a tensor whose shape is not known cannot be scheduled; --expand "
           "finds shapes";
  return is_too_long(value)
             ? "an axis of more than 2147483647 elements cannot be scheduled; "
               "two axes can"
             : NULL;
}

// node: that gives them; NULL: none.
static bool check_values(hd_module_t *module, const hd_value_t *const *values,
                         size_t count, const hd_node_t *node) {
  hd_diagnostics_t *diags = &module->context->diags;
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(diags);
  for (size_t i = 0; i < count; i++) {
    const char *why = values[i] ? unscheduled(values[i]) : NULL;
    if (!why)
      continue;
    const char *name = values[i]->name;
    if (node && node->label)
      name =
          hd_arena_printf(&module->arena, "node '%s': %s", node->label, name);
    hd_error(diags, values[i]->loc, HD_E1104, name, why);
    if (node)
      hd_diagnostics_name_node(diags, mark, hd_node_label(node));
    return false;
  }
  return true;
}

bool hd_graph_check_tasks(hd_module_t *module, const hd_graph_t *graph) {
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    if (node->domain)
      return hd_error(&module->context->diags, node->loc, HD_E1104, node->op,
                      "an operator is expanded before it is scheduled: "
                      "--expand --schedule");
  }
  bool ok =
      check_values(module, graph->inputs.data, graph->inputs.size, NULL) &&
      check_values(module, graph->constants.data, graph->constants.size, NULL);
  for (size_t i = 0; ok && i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    ok = check_values(module, node->outputs, node->num_outputs, node) &&
         (!hd_node_is_loop(node) ||
          hd_graph_check_tasks(module, hd_node_loop(node).body));
  }
  return ok &&
         check_values(module, graph->outputs.data, graph->outputs.size, NULL);
}

// Whether a node of the group gives a value, reshapes left aside.
static bool is_computed(const hd_value_t *value, const hd_node_t *const *group,
                        size_t count) {
  for (size_t i = count; value && i-- > 0;) {
    const hd_node_t *node = group[i];
    bool gives = false;
    for (uint32_t k = 0; k < node->num_outputs; k++)
      gives |= node->outputs[k] == value;
    if (gives && !hd_node_is_reshape(node))
      return true;
    if (gives)
      value = node->inputs[0];
  }
  return false;
}

uint64_t hd_node_computed(const hd_node_t *node, const hd_node_t *const *group,
                          size_t count) {
  uint64_t computed = 0;
  for (uint32_t i = 0; i < node->num_inputs && i < 64; i++)
    if (is_computed(node->inputs[i], group, count))
      computed |= UINT64_C(1) << i;
  return computed;
}

const hd_value_t *hd_node_input_of(const hd_node_t *node, const hd_task_t *flat,
                                   const hd_task_value_t *tensor) {
  for (size_t i = 0; i < flat->inputs.size; i++)
    if (flat->inputs.data[i] == tensor)
      return node->inputs[i];
  return NULL;
}

// Whether what the group computes a value from lies where a table says.
static bool is_gathered(hd_scheduler_t *scheduler, const hd_value_t *value,
                        const hd_node_t *const *group, size_t count) {
  const hd_node_t *giver = NULL;
  while (value && !giver && count-- > 0)
    for (uint32_t k = 0; k < group[count]->num_outputs; k++)
      if (group[count]->outputs[k] == value)
        giver = group[count];
  const hd_flattened_t *of = giver && giver->task && !giver->schedule
                                 ? hd_scheduler_flatten(scheduler, giver)
                                 : NULL;
  for (size_t i = 0; of && i < of->flat->definitions.size; i++)
    if (of->flat->definitions.data[i]->term &&
        hd_flat_gathers(of->flat->definitions.data[i]->term))
      return true;
  for (uint32_t i = 0; giver && i < giver->num_inputs; i++)
    if (is_gathered(scheduler, giver->inputs[i], group, count))
      return true;
  return false;
}

uint64_t hd_node_gathered(hd_scheduler_t *scheduler, const hd_node_t *node,
                          const hd_node_t *const *group, size_t count,
                          uint64_t computed) {
  uint64_t gathered = 0;
  for (uint32_t i = 0; i < node->num_inputs && i < 64; i++)
    if (computed >> i & 1 &&
        is_gathered(scheduler, node->inputs[i], group, count))
      gathered |= UINT64_C(1) << i;
  return gathered;
}

// Bits of the widest element that the anchor and what comes behind it store.
static unsigned leaving_bits(const hd_members_t *group) {
  unsigned most = 0;
  hd_values_t values =
      hd_fusion_leaving(group->fusion, group->nodes + group->anchor,
                        group->count - group->anchor);
  for (size_t i = 0; i < values.size; i++) {
    unsigned bits = hd_scalar_bits(hd_scheduled_type(values.data[i]).type);
    most = bits > most ? bits : most;
  }
  return most;
}

// Of the rows that are computed where the anchor's kernel stores.
static int64_t neighbours_of(hd_scheduler_t *scheduler,
                             const hd_members_t *group) {
  for (size_t i = group->anchor + 1; i < group->count; i++) {
    const hd_node_t *node = group->nodes[i];
    hd_rows_t rows;
    const hd_flattened_t *of = node->task && !node->schedule
                                   ? hd_scheduler_flatten(scheduler, node)
                                   : NULL;
    if (of &&
        hd_group_rows_find(hd_scheduler_arena(scheduler), of->flat, &rows))
      return rows.element.points;
  }
  return 0;
}

const hd_node_t *hd_node_schedule(hd_module_t *module,
                                  hd_scheduler_t *scheduler,
                                  const hd_node_t *node,
                                  const hd_members_t *group) {
  hd_times_t *times = &module->context->times;
  size_t part = hd_times_enter(times, "schedule");
  hd_flattened_t *flattened = hd_scheduler_flatten(scheduler, node);
  if (!flattened) {
    hd_times_leave(times, part);
    return NULL;
  }
  hd_node_t *copy = HD_ARENA_COPY(&module->arena, hd_node_t, node);
  hd_surroundings_t around = {0};
  if (group) {
    uint64_t computed = hd_node_computed(node, group->nodes, group->anchor);
    around = (hd_surroundings_t){
        .computed = computed,
        .gathered = hd_node_gathered(scheduler, node, group->nodes,
                                     group->anchor, computed),
        .leaving = group->fusion ? leaving_bits(group) : 0,
        .neighbours = neighbours_of(scheduler, group)};
  }
  copy->schedule =
      hd_scheduler_schedule(scheduler, flattened, &around, node->op, node->loc);
  hd_times_leave(times, part);
  return copy->schedule ? copy : NULL;
}

// A schedule that is there already, made for the node's sizes.
static const hd_node_t *settle(hd_settler_t *settler, const hd_node_t *node) {
  const hd_func_t *schedule = hd_settler_settle(settler, node);
  if (!schedule || schedule == node->schedule)
    return schedule ? node : NULL;
  hd_node_t *copy = HD_ARENA_COPY(&settler->module->arena, hd_node_t, node);
  copy->schedule = schedule;
  return copy;
}

static const hd_graph_t *settle_body(void *module, const hd_graph_t *body) {
  return hd_graph_settle(module, body);
}

const hd_graph_t *hd_graph_settle(hd_module_t *module,
                                  const hd_graph_t *graph) {
  hd_settler_t settler = {.module = module};
  hd_graph_t *made = HD_ARENA_COPY(&module->arena, hd_graph_t, graph);
  made->nodes.data =
      HD_ARENA_ARRAY(&module->arena, const hd_node_t *, graph->nodes.size + 1);
  made->nodes.capacity = graph->nodes.size + 1;
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    made->nodes.data[i] = node->schedule ? settle(&settler, node) : node;
    if (!made->nodes.data[i])
      return NULL;
  }
  return hd_graph_change_bodies(&module->arena, made, settle_body, module);
}

typedef struct anchors {
  hd_module_t *module;
  hd_scheduler_t *scheduler;
  bool joins;
} anchors_t;

static bool is_anchor(hd_scheduler_t *scheduler, const hd_node_t *node) {
  hd_concatenation_t c;
  if (node->schedule || !node->task || (node->group && !node->anchor))
    return false;
  // The plan places its operands, or gives it a kernel.
  return node->group || !hd_node_concatenates(scheduler, node, &c);
}

// The nodes of a settled graph, which is changed in place.
static const hd_graph_t *schedule(void *argument, const hd_graph_t *graph) {
  const anchors_t *a = argument;
  const hd_node_t **nodes = graph->nodes.data;
  const hd_fusion_t *fusion =
      a->joins ? hd_fusion_create(a->module, a->scheduler, graph) : NULL;
  for (size_t i = 0; i < graph->nodes.size; i++) {
    if (!is_anchor(a->scheduler, nodes[i]))
      continue;
    size_t first = i, end = i + 1; // Of its group, whose nodes stand together.
    while (nodes[i]->group && first > 0 &&
           nodes[first - 1]->group == nodes[i]->group)
      first--;
    while (nodes[i]->group && end < graph->nodes.size &&
           nodes[end]->group == nodes[i]->group)
      end++;
    hd_members_t group = {fusion, nodes + first, end - first, i - first};
    nodes[i] = hd_node_schedule(a->module, a->scheduler, nodes[i], &group);
    if (!graph->nodes.data[i])
      return NULL;
  }
  return hd_graph_change_bodies(&a->module->arena, graph, schedule, argument);
}

const hd_graph_t *hd_graph_schedule_anchors(hd_module_t *module,
                                            hd_scheduler_t *scheduler,
                                            const hd_graph_t *graph,
                                            bool joins) {
  anchors_t a = {module, scheduler, joins};
  if (!hd_graph_check_tasks(module, graph) ||
      !(graph = hd_graph_settle(module, graph)))
    return NULL;
  return schedule(&a, graph);
}
