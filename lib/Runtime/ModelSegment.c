// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A segment of a walk: its nodes evaluated, or compiled to a program and run;
// what depends on constants alone before the rest. Of a walk that is kept the
// rest is compiled alone: sessions run it.
#include "Runtime/ModelState.h"

#include "Fusion/Fuse.h"
#include "Graph/Prepare.h"
#include "Graph/Reference/Reference.h"

#include <string.h>

void hd_model_segment_end(hd_model_segment_t *segment) {
  hd_program_fini(&segment->program);
  hd_module_destroy(segment->made);
  *segment = (hd_model_segment_t){0};
}

static hd_store_t *store_of(hd_model_t *m, hd_turn_t *run,
                            const hd_value_t *value) {
  return hd_ptr_map_get(&m->shared, value) ? &m->constants : &run->values;
}

const hd_host_tensor_t *hd_model_fetch(hd_model_t *m, hd_turn_t *run,
                                       const hd_value_t *value) {
  return hd_store_fetch(store_of(m, run, value), value);
}

// A reshape has the same elements; the view does not own them.
static void view(hd_turn_t *run, const hd_value_t *value,
                 const hd_host_tensor_t *data) {
  hd_host_tensor_t *as =
      HD_ARENA_COPY(&run->values.arena, hd_host_tensor_t, data);
  as->rank = (unsigned)value->rank;
  for (int i = 0; i < value->rank; i++)
    as->shape[i] = value->shape[i]->u.i;
  hd_store_find(&run->values, value)->data = as;
}

static bool evaluate(hd_model_t *m, hd_turn_t *run, const hd_node_t *node) {
  hd_arena_t *arena = &run->values.arena;
  const hd_host_tensor_t **inputs =
      HD_ARENA_ARRAY(arena, const hd_host_tensor_t *, node->num_inputs + 1);
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(arena, hd_tensor_type_t, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    inputs[i] = hd_model_fetch(m, run, node->inputs[i]);
    if (!inputs[i])
      return false;
    types[i] = hd_tensor_type_of(inputs[i]);
  }
  if (hd_node_is_reshape(node)) {
    view(run, node->outputs[0], inputs[0]);
    return true;
  }
  const hd_task_binding_t *binding =
      node->task ? hd_task_bind(hd_model_context(m), arena, node->task, types,
                                node->num_inputs, node->attributes,
                                node->num_attributes, node->loc, node->op)
                 : NULL;
  if (node->task && !binding)
    return false;
  size_t count = node->num_outputs;
  hd_host_tensor_t *outputs =
      HD_ARENA_ARRAY(arena, hd_host_tensor_t, count + 1);
  hd_stored_t **stored = HD_ARENA_ARRAY(arena, hd_stored_t *, count + 1);
  for (uint32_t i = 0; i < node->num_outputs; i++)
    stored[i] = hd_store_find(&run->values, node->outputs[i]);
  if (binding ? !hd_task_evaluate(hd_model_context(m), binding, inputs, outputs,
                                  node->loc)
              : !hd_loop_evaluate(m->module, node, inputs, outputs))
    return false;
  // Nothing here unwinds, so that all of them find their owner.
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    stored[i]->own = outputs[i];
    stored[i]->data = &stored[i]->own;
  }
  return true;
}

static bool run_reference(hd_model_t *m, hd_turn_t *run,
                          const hd_graph_t *graph) {
  uint64_t start = hd_clock_ns();
  size_t part = hd_times_enter(&hd_model_context(m)->times, "run");
  bool ok = true;
  for (size_t i = 0; ok && i < graph->nodes.size; i++) {
    hd_budget_check(&hd_model_context(m)->budget);
    ok = evaluate(m, run, graph->nodes.data[i]);
  }
  hd_times_leave(&hd_model_context(m)->times, part);
  m->stats.run_ms += hd_ms_since(start);
  return ok;
}

bool hd_model_counts_steps(const hd_model_t *m) {
  return hd_steps_matter(&m->module->context->steps);
}

// Settles where parameter n of the plan is.
static bool place_param(hd_model_t *m, hd_turn_t *run, const hd_value_t *value,
                        uint32_t n, bool fill) {
  hd_model_segment_t *segment = &run->segment;
  hd_store_t *store = store_of(m, run, value);
  const hd_var_t *param = segment->program.entry->params[n];
  if (!hd_store_place(store, value, param, fill))
    return false;
  segment->slots[n] = hd_store_find(store, value)->slot;
  return true;
}

// The plan's parameters: the graph's inputs, its constants, its outputs. Those
// that are not the first ones, so many, depend on constants alone where the
// walk is kept, and what comes in and out is left to sessions.
static bool place_params(hd_model_t *m, hd_turn_t *run, size_t given,
                         bool keep) {
  hd_model_segment_t *segment = &run->segment;
  const hd_graph_t *graph = segment->graph;
  uint32_t n = keep ? (uint32_t)given : 0;
  segment->slots = HD_ARENA_ARRAY(&run->values.arena, hd_slot_t,
                                  segment->program.entry->num_params + 1);
  for (size_t i = n; i < graph->inputs.size; i++)
    if (!place_param(m, run, graph->inputs.data[i], n++, true))
      return false;
  hd_values_t constants = hd_planned_constants(&run->values.arena, graph);
  for (size_t i = 0; i < constants.size; i++) {
    if (!place_param(m, run, constants.data[i], n, true))
      return false;
    m->stats.weights_bytes += (int64_t)segment->slots[n++].bytes;
  }
  const bool *planned = hd_planned_outputs(&run->values.arena, graph);
  if (keep)
    hd_model_note_outputs(run, planned);
  for (size_t i = 0; !keep && i < graph->outputs.size; i++)
    if (planned[i] && !place_param(m, run, graph->outputs.data[i], n++, false))
      return false;
  return true;
}

static bool run_program(hd_model_t *m, hd_model_segment_t *segment) {
  uint64_t start = hd_clock_ns();
  bool ok = hd_program_run(&segment->program, segment->slots);
  m->stats.run_ms += hd_ms_since(start);
  return ok;
}

void hd_model_segment_count(const hd_model_segment_t *segment,
                            const hd_program_t *program,
                            hd_session_stats_t *stats) {
  hd_moved_t moved =
      hd_program_moved(program, segment->first_constant, segment->end_constant);
  stats->segments++;
  stats->kernels += (unsigned)program->variants.size;
  stats->launches += (unsigned)program->num_launches;
  stats->moved.activations += moved.activations;
  stats->moved.constants += moved.constants;
  if (program->block_bytes > stats->arena_bytes) {
    stats->arena_bytes = program->block_bytes;
    stats->arena_bound = program->block_bound;
  }
}

// given: of the graph's inputs, those that the first ones are of the whole.
static bool make_program(hd_model_t *m, hd_turn_t *run, const hd_graph_t *graph,
                         size_t given, bool keep) {
  hd_model_segment_t *segment = &run->segment;
  hd_model_segment_end(segment);
  segment->graph = graph;
  if (keep)
    segment->inouts = hd_model_inouts(m, run, graph);
  uint64_t start = hd_clock_ns();
  bool ok = hd_model_compile(m, segment, !keep);
  m->stats.compile_ms += hd_ms_since(start);
  if (!ok)
    return false;
  start = hd_clock_ns();
  size_t part = hd_times_enter(&hd_model_context(m)->times, "load");
  ok = place_params(m, run, given, keep);
  hd_times_leave(&hd_model_context(m)->times, part);
  m->stats.load_ms += hd_ms_since(start);
  return ok;
}

static bool run_graph(hd_model_t *m, hd_turn_t *run, const hd_graph_t *graph) {
  return make_program(m, run, graph, 0, false) && run_program(m, &run->segment);
}

static const hd_graph_t *with_node(hd_arena_t *arena, const hd_graph_t *graph,
                                   size_t i, const hd_node_t *node) {
  hd_graph_t *copy = hd_graph_without_nodes(arena, graph);
  for (size_t k = 0; k < graph->nodes.size; k++)
    hd_vec_push(arena, &copy->nodes, k == i ? node : graph->nodes.data[k]);
  return copy;
}

// The node that gives a kernel its name: the anchor of the group that begins
// at node i, or the node alone. *end: of the group.
static size_t find_anchor(const hd_graph_t *graph, size_t i, size_t *end) {
  uint32_t group = graph->nodes.data[i]->group;
  size_t anchor = i;
  *end = i + 1;
  while (group && *end < graph->nodes.size &&
         graph->nodes.data[*end]->group == group)
    ++*end;
  for (size_t k = i; k < *end; k++)
    if (graph->nodes.data[k]->anchor)
      anchor = k;
  return anchor;
}

// How many nodes come before the first whose kernel is left undone.
static size_t count_scheduled(hd_model_t *m, hd_turn_t *run,
                              const hd_graph_t **graph) {
  hd_steps_t *steps = &hd_model_context(m)->steps;
  size_t end;
  for (size_t i = 0; i < (*graph)->nodes.size; i = end) {
    size_t anchor = find_anchor(*graph, i, &end);
    const hd_node_t *node = (*graph)->nodes.data[anchor];
    if (!node->task)
      continue;
    if (!hd_step(steps, HD_STEP_KERNEL, "of %s '%s'", node->op,
                 node->label ? node->label : node->outputs[0]->name))
      return i;
    const hd_node_t *made = hd_step_made(steps, run->module, node);
    if (made != node)
      *graph = with_node(&run->module->arena, *graph, anchor, made);
  }
  return (*graph)->nodes.size;
}

// Step by step: what is not scheduled any more is evaluated. Groups live with
// the graph, for the values that they add are entered in the run's store.
static bool run_steps(hd_model_t *m, hd_turn_t *run, const hd_graph_t *graph) {
  hd_context_t *context = hd_model_context(m);
  const hd_schedule_options_t *outer = context->schedules;
  context->schedules = &m->schedules;
  if (!m->options.unfused)
    graph = hd_graph_fuse(run->module, graph, m->options.explain);
  context->schedules = outer;
  if (!graph)
    return false;
  size_t count = count_scheduled(m, run, &graph);
  if (count > 0 &&
      !run_graph(m, run, hd_graph_first(&run->module->arena, graph, count)))
    return false;
  bool ok = true;
  for (size_t i = count; ok && i < graph->nodes.size; i++) {
    hd_budget_check(&hd_model_context(m)->budget);
    ok = evaluate(m, run, graph->nodes.data[i]);
  }
  return ok;
}

static bool run_part(hd_model_t *m, hd_turn_t *run, const hd_graph_t *graph) {
  return hd_model_counts_steps(m) ? run_steps(m, run, graph)
                                  : run_graph(m, run, graph);
}

// Who watches nodes sees their values as the model has them.
static const hd_graph_t *choose_layouts(hd_model_t *m, hd_turn_t *run,
                                        const hd_graph_t *graph) {
  hd_context_t *context = hd_model_context(m);
  if (m->options.watch)
    return graph;
  const hd_schedule_options_t *outer = context->schedules;
  size_t part = hd_times_enter(&context->times, "choose-layouts");
  context->schedules = &m->schedules;
  graph = hd_model_run_passes(run->module, graph, m->options.left_out,
                              m->options.unfused, m->options.explain);
  context->schedules = outer;
  hd_times_leave(&context->times, part);
  return graph;
}

// What depends on constants alone is computed once; its results stay where the
// rest reads them.
static bool run_prepare(hd_model_t *m, hd_turn_t *run,
                        const hd_graph_t *prepare) {
  double before = m->stats.run_ms; // Of the segments before.
  m->prepares = true;
  bool ok = prepare->nodes.size == 0 || run_part(m, run, prepare);
  m->prepares = false;
  m->stats.load_ms += m->stats.run_ms - before;
  m->stats.run_ms = before;
  return ok;
}

// Reads the value where it is on the device already, of another executable;
// false where it is not.
static bool borrow(hd_turn_t *run, const hd_value_t *value,
                   hd_prepared_t *prepared) {
  if (!prepared || !prepared->slot.address)
    return false;
  hd_vec_push(&run->values.arena, &run->prepared, prepared);
  prepared->users++;
  hd_store_borrow(&run->values, value, &prepared->slot);
  return true;
}

// Others may read it where it is now.
static void lend(hd_model_t *m, hd_turn_t *run, const hd_value_t *value,
                 hd_prepared_t *prepared) {
  if (!prepared || prepared->slot.address ||
      !hd_store_find(&run->values, value)->slot.address)
    return;
  hd_vec_push(&run->values.arena, &run->prepared, prepared);
  prepared->users++;
  hd_store_give(&run->values, value, &m->constants, &prepared->slot);
}

// What is not on the device already is computed.
static bool prepare_shared(hd_model_t *m, hd_turn_t *run,
                           const hd_graph_t *prepare) {
  hd_arena_t *arena = &run->values.arena;
  hd_ptr_map_t numbers = {0};
  hd_graph_t *missing = HD_ARENA_NEW(arena, hd_graph_t);
  hd_numbering_add(&m->numbering, arena, prepare, &numbers);
  *missing = *prepare;
  memset(&missing->outputs, 0, sizeof(missing->outputs));
  for (size_t i = 0; i < prepare->outputs.size; i++) {
    const hd_value_t *value = prepare->outputs.data[i];
    if (!borrow(run, value, hd_ptr_map_find(&numbers, value)))
      hd_vec_push(arena, &missing->outputs, value);
  }
  const hd_graph_t *needed = hd_graph_needed(&run->module->arena, missing);
  if (!run_prepare(m, run, needed))
    return false;
  for (size_t i = 0; i < needed->outputs.size; i++) {
    const hd_value_t *value = needed->outputs.data[i];
    lend(m, run, value, hd_ptr_map_find(&numbers, value));
  }
  return true;
}

// Makes the program of the rest. Constants that expansion has made are where
// those of another executable are.
static bool make_shared(hd_model_t *m, hd_turn_t *run, const hd_graph_t *rest,
                        size_t given) {
  hd_arena_t *arena = &run->values.arena;
  hd_ptr_map_t numbers = {0};
  hd_values_t constants = hd_planned_constants(arena, rest);
  for (size_t i = 0; i < constants.size; i++)
    if (!hd_ptr_map_get(&m->shared, constants.data[i]))
      borrow(
          run, constants.data[i],
          hd_numbering_find(&m->numbering, arena, constants.data[i], &numbers));
  if (!make_program(m, run, rest, given, true))
    return false;
  for (size_t i = 0; i < constants.size; i++)
    if (!hd_ptr_map_get(&m->shared, constants.data[i]))
      lend(m, run, constants.data[i],
           hd_ptr_map_find(&numbers, constants.data[i]));
  return true;
}

// Constants that nothing reads but what has been prepared leave the device.
static void drop_originals(hd_model_t *m, hd_turn_t *run,
                           const hd_graph_t *prepare, const hd_graph_t *rest) {
  hd_arena_t *arena = &run->values.arena;
  hd_values_t read = hd_planned_constants(arena, rest);
  hd_values_t constants = hd_planned_constants(arena, prepare);
  for (size_t i = 0; i < read.size; i++)
    if (hd_ptr_map_get(&m->shared, read.data[i]))
      hd_store_find(&m->constants, read.data[i])->pinned = true;
  for (size_t i = 0; i < constants.size; i++)
    hd_store_drop(store_of(m, run, constants.data[i]), constants.data[i]);
}

static bool run_device(hd_model_t *m, hd_turn_t *run, const hd_graph_t *graph,
                       bool keep) {
  const hd_graph_t *prepare, *rest;
  hd_model_segment_t *segment = &run->segment;
  graph = choose_layouts(m, run, graph);
  if (!graph)
    return false;
  hd_graph_split(&run->module->arena, graph, &prepare, &rest);
  bool shared = keep && !run->alone;
  if (!(shared ? prepare_shared(m, run, prepare)
               : run_prepare(m, run, prepare)))
    return false;
  if (keep)
    drop_originals(m, run, prepare, rest);
  if (rest->nodes.size == 0) {
    hd_model_segment_end(segment);
    return true;
  }
  if (shared ? !make_shared(m, run, rest, graph->inputs.size)
      : keep ? !make_program(m, run, rest, graph->inputs.size, true)
             : !run_part(m, run, rest))
    return false;
  if (!segment->slots) // Nothing of it was scheduled.
    return true;
  // What was prepared stands behind the inputs.
  segment->first_constant = (uint32_t)graph->inputs.size;
  segment->end_constant =
      (uint32_t)(rest->inputs.size +
                 hd_planned_constants(&run->values.arena, rest).size);
  if (!keep)
    hd_model_segment_count(segment, &segment->program, &m->stats);
  return true;
}

bool hd_model_run_segment(hd_model_t *m, hd_turn_t *run, bool keep) {
  const hd_graph_t *graph = run->last;
  if (!m->device)
    return run_reference(m, run, graph);
  return run_device(
      m, run,
      m->options.watch ? hd_graph_exposed(&run->module->arena, graph) : graph,
      keep);
}
