// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   graph group(x0: f16[128, 768], x1: f16[768, 768], x2: f16[768]) -> v3 {
//     v0: f16[128, 768] = copy(x0)
//     group {
//       anchor v1: f16[128, 768] = matmul(v0, x1)
//       v2: f16[128, 768] = add(v1, x2)
//       v3: f16[128, 768] = relu(v2)
//     }
//   }
#include "Fusion/Form/Choose.h"
#include "Fusion/Group/GroupState.h"
#include "IR/Graph/Loop.h"
#include "IR/Text/Library.h"

#include <string.h>

typedef struct chooser {
  hd_module_t *module;
  hd_arena_t *arena;
  hd_scheduler_t *scheduler;
  hd_fusion_t *fusion;
  hd_tunables_t tunables;
  hd_key_map_t known;      // By text.
  hd_ptr_map_t of_anchors; // Anchors to their tunables.
  hd_ptr_map_t turning;    // What a loop's body gets of launches.
  int64_t times;           // That the graph at hand runs.
} chooser_t;

// --- A group as a graph of its own ---

typedef struct extract {
  chooser_t *c;
  hd_graph_t *graph;
  const hd_node_t *const *nodes;
  size_t count;
  hd_ptr_map_t values; // Of the group to those of the graph.
  unsigned inputs, made;
} extract_t;

static hd_value_t *new_value(extract_t *e, const hd_value_t *like,
                             const char *format, unsigned number) {
  hd_value_t *value = HD_ARENA_NEW(e->c->arena, hd_value_t);
  *value = (hd_value_t){.name = hd_arena_printf(e->c->arena, format, number),
                        .loc = like->loc,
                        .form = like->form,
                        .type = like->type,
                        .rank = like->rank,
                        .shape = like->shape};
  return value;
}

static const hd_value_t *copy_of(extract_t *e, const hd_value_t *from) {
  hd_arena_t *arena = e->c->arena;
  const hd_value_t *made = new_value(e, from, "v%u", e->made++);
  const hd_node_t *node = hd_node_between(
      arena, "copy", hd_library_task(e->c->module->context, "copy"), from, made,
      NULL, from->loc);
  hd_vec_push(arena, &e->graph->nodes, node);
  return made;
}

// What the group reads of others. A number stays what it is: it stands in the
// kernel.
static const hd_value_t *take_input(extract_t *e, const hd_value_t *value) {
  hd_arena_t *arena = e->c->arena;
  if (hd_group_is_literal(value) && hd_constant_elements(arena, value)) {
    hd_value_t *made = new_value(e, value, "c%u", e->inputs++);
    made->constant = value->constant;
    hd_vec_push(arena, &e->graph->constants, (const hd_value_t *)made);
    return made;
  }
  const hd_value_t *made = new_value(e, value, "x%u", e->inputs++);
  hd_vec_push(arena, &e->graph->inputs, made);
  bool is_given = hd_ptr_map_get(&e->c->fusion->givers, value) ||
                  hd_ptr_map_get(&e->c->turning, value);
  return is_given ? copy_of(e, made) : made;
}

static bool is_given(const extract_t *e, const hd_value_t *value) {
  const hd_node_t *giver = hd_ptr_map_get(&e->c->fusion->givers, value);
  for (size_t i = 0; giver && i < e->count; i++)
    if (e->nodes[i] == giver)
      return true;
  return false;
}

static void take_inputs(extract_t *e) {
  for (size_t i = 0; i < e->count; i++)
    for (uint32_t k = 0; k < e->nodes[i]->num_inputs; k++) {
      const hd_value_t *value = e->nodes[i]->inputs[k];
      if (value && !is_given(e, value) && !hd_ptr_map_get(&e->values, value))
        hd_ptr_map_set(e->c->arena, &e->values, value, take_input(e, value));
    }
}

static void take_node(extract_t *e, const hd_node_t *node) {
  hd_arena_t *arena = e->c->arena;
  hd_node_t *made = HD_ARENA_NEW(arena, hd_node_t);
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(arena, const hd_value_t *, node->num_inputs + 1);
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(arena, const hd_value_t *, node->num_outputs + 1);
  for (uint32_t k = 0; k < node->num_inputs; k++)
    inputs[k] = hd_ptr_map_get(&e->values, node->inputs[k]);
  for (uint32_t k = 0; k < node->num_outputs; k++) {
    if (!node->outputs[k])
      continue;
    outputs[k] = new_value(e, node->outputs[k], "v%u", e->made++);
    hd_ptr_map_set(arena, &e->values, node->outputs[k], outputs[k]);
  }
  *made = *node;
  made->inputs = inputs;
  made->outputs = outputs;
  made->label = NULL;
  made->group = 1;
  made->anchor = node->anchor || !node->group;
  hd_vec_push(arena, &e->graph->nodes, (const hd_node_t *)made);
}

static void take_outputs(extract_t *e) {
  hd_values_t values = hd_fusion_leaving(e->c->fusion, e->nodes, e->count);
  for (size_t i = 0; i < values.size; i++)
    hd_vec_push(e->c->arena, &e->graph->outputs,
                (const hd_value_t *)hd_ptr_map_get(&e->values, values.data[i]));
}

static const hd_graph_t *extract(chooser_t *c, const hd_node_t *const *nodes,
                                 size_t count) {
  extract_t e = {.c = c, .nodes = nodes, .count = count};
  e.graph = HD_ARENA_NEW(c->arena, hd_graph_t);
  *e.graph = (hd_graph_t){.name = "group", .loc = nodes[0]->loc};
  take_inputs(&e);
  for (size_t i = 0; i < count; i++)
    take_node(&e, nodes[i]);
  take_outputs(&e);
  return e.graph;
}

void hd_tunable_print(hd_arena_t *arena, const hd_tunable_t *tunable,
                      const hd_pin_t *pin, hd_buffer_t *out) {
  hd_graph_t graph = *tunable->graph;
  memset(&graph.nodes, 0, sizeof(graph.nodes));
  for (size_t i = 0; i < tunable->graph->nodes.size; i++)
    hd_vec_push(arena, &graph.nodes, tunable->graph->nodes.data[i]);
  hd_node_t anchor = *graph.nodes.data[tunable->anchor];
  anchor.pin = pin;
  graph.nodes.data[tunable->anchor] = &anchor;
  hd_graph_print(&graph, out);
}

// --- What there is to choose ---

// Attributes that hold tensors and graphs are nobody's that is scheduled here.
static bool is_plain(const hd_node_t *node) {
  if (node->domain || node->schedule)
    return false;
  for (uint32_t i = 0; i < node->num_attributes; i++)
    if (node->attributes[i]->kind == HD_ATTRIBUTE_TENSOR ||
        node->attributes[i]->kind == HD_ATTRIBUTE_GRAPH)
      return false;
  return true;
}

static size_t find_anchor(const hd_graph_t *graph) {
  size_t i = 0;
  while (!graph->nodes.data[i]->anchor)
    i++;
  return i;
}

// What is known of a graph's text; *known is false where it is new.
static hd_tunable_t *find_tunable(chooser_t *c, const hd_graph_t *graph,
                                  bool *known) {
  hd_tunable_t *tunable = HD_ARENA_NEW(c->arena, hd_tunable_t);
  hd_buffer_t text;
  hd_buffer_init_local(&text, c->arena->budget);
  *tunable = (hd_tunable_t){.graph = graph, .anchor = find_anchor(graph)};
  hd_tunable_print(c->arena, tunable, NULL, &text);
  hd_tunable_t *found = hd_key_map_find_name(&c->known, hd_buffer_text(&text));
  *known = found;
  if (!found) {
    found = tunable;
    found->text = hd_arena_strndup(c->arena, hd_buffer_text(&text), text.size);
    hd_key_map_set_name(c->arena, &c->known, found->text, found);
  }
  hd_buffer_fini(&text);
  return found;
}

// One that was met for the first time; without candidates there is nothing to
// choose. False after an error.
static bool look_at_new(chooser_t *c, hd_tunable_t *tunable,
                        const hd_node_t *anchor, const hd_node_t *const *nodes,
                        size_t count) {
  hd_flattened_t *flattened = hd_fusion_flatten(c->fusion, anchor);
  uint64_t computed = hd_node_computed(anchor, nodes, count);
  uint64_t gathered =
      hd_node_gathered(c->scheduler, anchor, nodes, count, computed);
  if (!flattened ||
      !hd_task_candidates(c->module->context, c->arena, flattened->flat,
                          computed, gathered, &tunable->candidates))
    return false;
  tunable->name =
      hd_arena_printf(c->arena, "%s '%s'", anchor->op, hd_node_label(anchor));
  tunable->loc = anchor->loc;
  if (tunable->candidates.size)
    hd_vec_push(c->arena, &c->tunables.list, tunable);
  return true;
}

// False after an error.
static bool look_at_group(chooser_t *c, const hd_node_t *const *nodes,
                          size_t count) {
  const hd_node_t *anchor = NULL;
  for (size_t i = 0; i < count; i++) {
    if (!is_plain(nodes[i]) || (anchor && nodes[i]->anchor))
      return true;
    if (nodes[i]->anchor || !nodes[i]->group)
      anchor = nodes[i];
  }
  if (!anchor || !anchor->task || anchor->pin)
    return true;
  bool known;
  hd_tunable_t *tunable = find_tunable(c, extract(c, nodes, count), &known);
  tunable->uses += (unsigned)c->times;
  hd_ptr_map_set(c->arena, &c->of_anchors, anchor, tunable);
  return known || look_at_new(c, tunable, anchor, nodes, count);
}

static bool look(chooser_t *c, const hd_graph_t *graph);

// A loop's body, which runs at each turn. States and slices change with it.
static bool look_at_body(chooser_t *c, const hd_loop_t *loop) {
  hd_fusion_t *outer = c->fusion;
  int64_t times = c->times;
  for (uint32_t i = 0; i < loop->counts + loop->states + loop->scanned; i++)
    hd_ptr_map_set(c->arena, &c->turning, loop->body->inputs.data[i], loop);
  c->fusion = hd_fusion_create(c->module, c->scheduler, loop->body);
  c->times *= loop->steps;
  bool ok = look(c, loop->body);
  c->fusion = outer;
  c->times = times;
  return ok;
}

static bool look(chooser_t *c, const hd_graph_t *graph) {
  for (size_t i = 0, end; i < graph->nodes.size; i = end) {
    const hd_node_t *first = graph->nodes.data[i];
    end = i + 1;
    while (first->group && end < graph->nodes.size &&
           graph->nodes.data[end]->group == first->group)
      end++;
    if (hd_node_is_loop(first)) {
      hd_loop_t loop = hd_node_loop(first);
      if (!look_at_body(c, &loop))
        return false;
    } else if (!look_at_group(c, &graph->nodes.data[i], end - i)) {
      return false;
    }
  }
  return true;
}

static const hd_graph_t *with_pins(void *argument, const hd_graph_t *graph) {
  chooser_t *c = argument;
  hd_graph_t *made = hd_graph_without_nodes(c->arena, graph);
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    const hd_tunable_t *tunable = hd_ptr_map_get(&c->of_anchors, node);
    if (tunable && tunable->pin) {
      hd_node_t *copy = HD_ARENA_COPY(c->arena, hd_node_t, node);
      copy->pin = tunable->pin;
      node = copy;
    }
    hd_vec_push(c->arena, &made->nodes, node);
  }
  return hd_graph_change_bodies(c->arena, made, with_pins, c);
}

const hd_graph_t *hd_graph_choose(hd_module_t *module,
                                  hd_scheduler_t *scheduler,
                                  const hd_graph_t *graph) {
  const hd_schedule_options_t *options = module->context->schedules;
  if (!options || !options->choose || !options->machine.count)
    return graph;
  size_t part = hd_times_enter(&module->context->times, "choose");
  chooser_t c = {.module = module,
                 .arena = &module->arena,
                 .scheduler = scheduler,
                 .times = 1};
  c.fusion = hd_fusion_create(module, scheduler, graph);
  bool ok = look(&c, graph) &&
            (!c.tunables.list.size ||
             options->choose(options->choose_argument, module, &c.tunables));
  graph = ok ? with_pins(&c, graph) : NULL;
  hd_times_leave(&module->context->times, part);
  return graph;
}
