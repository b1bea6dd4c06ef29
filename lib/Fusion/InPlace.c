// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   y: f32[8, 16, 4] = append(x, u, at)           x comes in, y goes out
//   // task append(x: f32[8, 16, 4], u: f32[8, 1, 4], at: i64[1]) -> y: ... {
//   //   scatter last(i: 8, r: 1, k: 4) y[i, at[0], k] = u[i, 0, k] onto x
//   // }
//
//   y: f32[8, 16, 4] = append_in_place(u, at)
//   // task append_in_place(u: f32[8, 1, 4], at: i64[1]) -> y: ... {
//   //   scatter last(i: 8, r: 1, k: 4) y[i, at[0], k] = u[i, 0, k] onto y
//   // }
//
// Nothing says then that whoever reads x has to come before: nobody does.
#include "Fusion/InPlace.h"

#include "Fusion/Append.h"
#include "Schedule/Schedule.h"
#include "Schedule/Terms/Flatten.h"
#include "Support/Map.h"

typedef struct placer {
  hd_module_t *module;
  hd_arena_t *arena;
  const hd_graph_t *graph;
  hd_ptr_map_t givers;  // Values to nodes.
  hd_ptr_map_t readers; // Values to one of the nodes that read them,
  hd_ptr_map_t shared;  // and those that several do, or that come out.
  hd_key_map_t tasks;   // By their text.
  hd_ptr_map_t made;    // Nodes to what takes their place.
} placer_t;

static void look(placer_t *p) {
  for (size_t i = 0; i < p->graph->nodes.size; i++) {
    const hd_node_t *node = p->graph->nodes.data[i];
    for (uint32_t k = 0; k < node->num_inputs; k++) {
      const hd_value_t *value = node->inputs[k];
      if (hd_ptr_map_get(&p->readers, value))
        hd_ptr_map_set(p->arena, &p->shared, value, value);
      hd_ptr_map_set(p->arena, &p->readers, value, node);
    }
    for (uint32_t k = 0; k < node->num_outputs; k++)
      if (node->outputs[k])
        hd_ptr_map_set(p->arena, &p->givers, node->outputs[k], node);
  }
  for (size_t i = 0; i < p->graph->outputs.size; i++)
    hd_ptr_map_set(p->arena, &p->shared, p->graph->outputs.data[i], p->graph);
}

// The node that gives a value, reshapes left aside; NULL: none.
static const hd_node_t *giver_of(const placer_t *p, const hd_value_t *value) {
  const hd_node_t *giver = hd_ptr_map_get(&p->givers, value);
  while (giver && hd_node_is_reshape(giver))
    giver = hd_ptr_map_get(&p->givers, giver->inputs[0]);
  return giver;
}

// What one node alone reads of an input, perhaps in another shape; NULL: it is
// not one alone.
static const hd_value_t *only_read(const placer_t *p, const hd_value_t *value,
                                   const hd_node_t **reader) {
  for (;;) {
    *reader = hd_ptr_map_get(&p->readers, value);
    if (!*reader || hd_ptr_map_get(&p->shared, value))
      return NULL;
    if (!hd_node_is_reshape(*reader))
      return value;
    value = (*reader)->outputs[0];
  }
}

static bool same_shape(const hd_task_value_t *x, const hd_task_value_t *y) {
  bool same = x->rank == y->rank;
  for (unsigned i = 0; same && i < x->rank; i++)
    same = hd_flat_size(x, i) == hd_flat_size(y, i);
  return same;
}

static bool reads(const hd_definition_t *d, const hd_task_value_t *value) {
  bool any = hd_flat_reads(d->term, value);
  for (uint32_t i = 0; i < d->targets[0]->rank; i++)
    any |= hd_flat_reads(d->at[i], value);
  return any;
}

// The flat task's one definition as a scatter onto its input of that number;
// NULL: it is none.
static hd_definition_t *scatter_of(placer_t *p, const hd_task_t *flat,
                                   uint32_t input) {
  const hd_definition_t *d =
      flat->definitions.size == 1 ? flat->definitions.data[0] : NULL;
  if (!d || flat->outputs.size != 1 || d->targets[0] != flat->outputs.data[0])
    return NULL;
  hd_definition_t *scatter = HD_ARENA_COPY(p->arena, hd_definition_t, d);
  if (d->kind != HD_SCATTER &&
      !hd_append_find(p->arena, d, flat->inputs.data[input], scatter))
    return NULL;
  return scatter->onto == flat->inputs.data[input] &&
                 same_shape(scatter->onto, scatter->targets[0]) &&
                 !reads(scatter, scatter->onto)
             ? scatter
             : NULL;
}

static const hd_task_t *known_task(placer_t *p, hd_task_t *task) {
  hd_buffer_t text;
  hd_buffer_init_local(&text, p->arena->budget);
  hd_task_print(task, &text);
  const hd_task_t *known =
      hd_key_map_find_name(&p->tasks, hd_buffer_text(&text));
  if (!known)
    hd_key_map_set_name(
        p->arena, &p->tasks,
        hd_arena_strndup(p->arena, hd_buffer_text(&text), text.size), task);
  hd_buffer_fini(&text);
  return known ? known : task;
}

// The node without that input.
static const hd_node_t *make_node(placer_t *p, const hd_node_t *node,
                                  const hd_task_t *flat,
                                  hd_definition_t *scatter, uint32_t input) {
  hd_task_t *task = HD_ARENA_NEW(p->arena, hd_task_t);
  hd_node_t *made = HD_ARENA_NEW(p->arena, hd_node_t);
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(p->arena, const hd_value_t *, node->num_inputs + 1);
  uint32_t count = 0;
  scatter->onto = scatter->targets[0];
  *task =
      (hd_task_t){.name = hd_arena_printf(p->arena, "%s_in_place", node->op),
                  .loc = flat->loc};
  for (uint32_t i = 0; i < flat->inputs.size; i++)
    if (i != input) {
      hd_vec_push(p->arena, &task->inputs, flat->inputs.data[i]);
      inputs[count++] = node->inputs[i];
    }
  hd_vec_push(p->arena, &task->outputs, flat->outputs.data[0]);
  hd_vec_push(p->arena, &task->definitions, (const hd_definition_t *)scatter);
  *made = *node;
  made->task = known_task(p, task);
  made->op = made->task->name;
  made->num_inputs = count;
  made->inputs = inputs;
  made->num_attributes = 0;
  return made;
}

// Whether the value is an output before that one, too: the plan knows it by the
// first.
static bool is_earlier_output(const placer_t *p, uint32_t output) {
  uint32_t first = 0;
  while (p->graph->outputs.data[first] != p->graph->outputs.data[output])
    first++;
  return first < output;
}

// Why an output does not take the memory of an input; NULL: it does.
static const char *place(placer_t *p, const hd_inout_t *pair) {
  const hd_value_t *in = p->graph->inputs.data[pair->input];
  const hd_value_t *out = p->graph->outputs.data[pair->output];
  const hd_node_t *reader, *giver = giver_of(p, out);
  hd_tensor_type_t from = hd_scheduled_type(in), to = hd_scheduled_type(out);
  const hd_value_t *read = only_read(p, in, &reader);
  uint32_t input = 0;
  int64_t coming, going;
  if (from.type != to.type || !hd_shape_count(from.shape, from.rank, &coming) ||
      !hd_shape_count(to.shape, to.rank, &going) || coming != going)
    return "their sizes differ";
  if (is_earlier_output(p, pair->output))
    return "it is an earlier output, too";
  if (!giver || !giver->task)
    return "no task gives what comes out";
  if (!read)
    return "others read what comes in, too";
  if (reader != giver)
    return hd_arena_printf(p->arena, "%s '%s' stands between them", reader->op,
                           hd_node_label(reader));
  if (giver->schedule || giver->pin || giver->group)
    return "its schedule is given";
  while (giver->inputs[input] != read)
    input++;
  const hd_task_binding_t *binding =
      hd_node_bind(p->module->context, p->arena, giver);
  const hd_task_t *flat =
      binding
          ? hd_task_flatten(p->module->context, p->arena, binding, giver->loc)
          : NULL;
  hd_definition_t *scatter = flat ? scatter_of(p, flat, input) : NULL;
  if (!scatter)
    return "what gives it does not keep the rest of what comes in";
  hd_ptr_map_set(p->arena, &p->made, giver,
                 make_node(p, giver, flat, scatter, input));
  return NULL;
}

static void say(const placer_t *p, const hd_inout_t *pair, const char *why) {
  const hd_value_t *in = p->graph->inputs.data[pair->input];
  const hd_value_t *out = p->graph->outputs.data[pair->output];
  hd_diagnostics_t *diags = &p->module->context->diags;
  if (why)
    hd_remark(diags, out->loc, "inout: '%s' is not stored in '%s': %s",
              hd_value_label(out), hd_value_label(in), why);
  else
    hd_remark(diags, out->loc, "inout: '%s' is stored in '%s'",
              hd_value_label(out), hd_value_label(in));
}

const hd_graph_t *hd_graph_in_place(hd_module_t *module,
                                    const hd_graph_t *graph,
                                    const hd_inouts_t *inouts, bool explain,
                                    hd_inouts_t *placed) {
  placer_t p = {.module = module, .arena = &module->arena, .graph = graph};
  *placed = (hd_inouts_t){0};
  if (!inouts->count)
    return graph;
  hd_inout_t *pairs = HD_ARENA_ARRAY(p.arena, hd_inout_t, inouts->count);
  look(&p);
  for (size_t i = 0; i < inouts->count; i++) {
    const char *why = place(&p, &inouts->pairs[i]);
    if (!why)
      pairs[placed->count++] = inouts->pairs[i];
    if (explain)
      say(&p, &inouts->pairs[i], why);
  }
  placed->pairs = pairs;
  hd_graph_t *made = HD_ARENA_COPY(p.arena, hd_graph_t, graph);
  made->nodes.data =
      HD_ARENA_ARRAY(p.arena, const hd_node_t *, graph->nodes.size + 1);
  made->nodes.capacity = graph->nodes.size + 1;
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    const hd_node_t *other = hd_ptr_map_get(&p.made, node);
    made->nodes.data[i] = other ? other : node;
  }
  return made;
}
