// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A run walks the graph with its inputs in hand, segment after segment; values
// live on the device (or, for `ref`, in the host's memory) until the run ends.
// A graph that is one segment, whatever is in its inputs, is walked once for
// each set of shapes: its program, its values' memory and all are kept.

#include "Runtime/Session.h"
#include "Fusion/FoldNorms.h"
#include "Fusion/Fuse.h"
#include "Fusion/Layouts.h"
#include "Graph/Prepare.h"
#include "Graph/Reference/Reference.h"
#include "Graph/Rewrite/Rewrite.h"
#include "Runtime/GraphProgram.h"
#include "Runtime/Store.h"

#include <stdlib.h>
#include <string.h>

// A segment, compiled.
typedef struct segment {
  const hd_graph_t *graph;
  hd_module_t *made; // Its plan and kernels.
  hd_program_t program;
  hd_slot_t *slots; // The plan's parameters.
  // Those that depend on constants alone: from the first to before the end.
  uint32_t first_constant, end_constant;
} segment_t;

// A walk for one set of shapes, and what it made.
typedef struct run {
  hd_expander_t *expander;
  hd_tensor_type_t *inputs;
  const hd_graph_t *last;
  const bool
      *planned;      // Which of its outputs a plan gives; NULL: not known yet.
  hd_store_t values; // All but the model's constants.
  segment_t segment; // The one at work.
  struct run *next;
} run_t;

struct hd_session {
  hd_module_t *module;
  const hd_graph_t *graph;
  hd_device_t *device;
  hd_session_options_t options;
  hd_session_stats_t stats;
  hd_schedule_options_t schedules;
  bool prepares;        // What is compiled runs once, on constants.
  hd_ptr_map_t shared;  // The model's constants.
  hd_store_t constants; // Those on the device, for every run.
  run_t *kept;          // Runs that can be run again.
  run_t *now;           // The last; NULL where it was not kept.
  run_t *running;       // Not kept yet: so that unwinding does not lose it.
};

static hd_context_t *context_of(const hd_session_t *s) {
  return s->module->context;
}

static double ms_since(uint64_t start) {
  return (double)(hd_clock_ns() - start) * 1e-6;
}

// Enters what every run has in common: constants, also of inner graphs.
static void share(hd_session_t *s, const hd_graph_t *graph) {
  hd_arena_t *arena = &s->constants.arena;
  for (size_t i = 0; i < graph->constants.size; i++)
    hd_ptr_map_set(arena, &s->shared, graph->constants.data[i], graph);
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    for (uint32_t k = 0; k < node->num_attributes; k++) {
      const hd_attribute_t *a = node->attributes[k];
      if (a->kind == HD_ATTRIBUTE_TENSOR)
        hd_ptr_map_set(arena, &s->shared, a->u.tensor, graph);
      else if (a->kind == HD_ATTRIBUTE_GRAPH)
        share(s, a->u.graph);
    }
  }
}

// Templates are chosen for the GPU that the launches are for.
static void settle_schedules(hd_session_t *s) {
  const hd_schedule_options_t *given = context_of(s)->schedules;
  if (given)
    s->schedules = *given;
  s->schedules.module = s->module;
  s->schedules.explain = s->options.explain;
  hd_machine_t *machine = &s->schedules.machine;
  if (s->device && hd_machine_find(s->device->info.target->sm, machine))
    hd_machine_resize(machine, s->device->info.sms);
  s->schedules.simulated = s->device && !s->device->ops->replay;
}

hd_session_t *hd_session_create(hd_module_t *module, const hd_graph_t *graph,
                                hd_device_t *device,
                                const hd_session_options_t *options) {
  hd_session_t *s = calloc(1, sizeof(*s));
  if (!s)
    hd_budget_exhausted(&module->context->budget, HD_EXHAUSTED_MEMORY);
  s->module = module;
  s->graph = graph;
  s->device = device;
  s->options = *options;
  settle_schedules(s);
  hd_store_init(&s->constants, module, device);
  share(s, graph);
  return s;
}

static void end_segment(segment_t *segment) {
  hd_program_fini(&segment->program);
  hd_module_destroy(segment->made);
  *segment = (segment_t){0};
}

static void end_run(run_t *run) {
  if (!run)
    return;
  end_segment(&run->segment);
  hd_store_fini(&run->values);
  free(run);
}

void hd_session_destroy(hd_session_t *s) {
  if (!s)
    return;
  while (s->kept) {
    run_t *run = s->kept;
    s->kept = run->next;
    end_run(run);
  }
  end_run(s->running);
  if (context_of(s)->schedules == &s->schedules) // It unwound.
    context_of(s)->schedules = NULL;
  hd_store_fini(&s->constants);
  free(s);
}

void hd_session_choose(hd_session_t *s, hd_choose_fn_t choose, void *argument) {
  s->options.choose = choose;
  s->options.choose_argument = argument;
}

hd_device_t *hd_session_device(const hd_session_t *s) { return s->device; }

const hd_session_stats_t *hd_session_stats(const hd_session_t *s) {
  return &s->stats;
}

static hd_store_t *store_of(hd_session_t *s, run_t *run,
                            const hd_value_t *value) {
  return hd_ptr_map_get(&s->shared, value) ? &s->constants : &run->values;
}

static const hd_host_tensor_t *fetch(hd_session_t *s, run_t *run,
                                     const hd_value_t *value) {
  return hd_store_fetch(store_of(s, run, value), value);
}

// A reshape has the same elements; the view does not own them.
static void view(run_t *run, const hd_value_t *value,
                 const hd_host_tensor_t *data) {
  hd_host_tensor_t *as = HD_ARENA_NEW(&run->values.arena, hd_host_tensor_t);
  *as = *data;
  as->rank = (unsigned)value->rank;
  for (int i = 0; i < value->rank; i++)
    as->shape[i] = value->shape[i]->u.i;
  hd_store_find(&run->values, value)->data = as;
}

static bool evaluate(hd_session_t *s, run_t *run, const hd_node_t *node) {
  hd_arena_t *arena = &run->values.arena;
  const hd_host_tensor_t **inputs =
      HD_ARENA_ARRAY(arena, const hd_host_tensor_t *, node->num_inputs + 1);
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(arena, hd_tensor_type_t, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    inputs[i] = fetch(s, run, node->inputs[i]);
    if (!inputs[i])
      return false;
    types[i] = hd_tensor_type_of(inputs[i]);
  }
  if (hd_node_is_reshape(node)) {
    view(run, node->outputs[0], inputs[0]);
    return true;
  }
  const hd_task_binding_t *binding =
      node->task ? hd_task_bind(context_of(s), arena, node->task, types,
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
  if (binding ? !hd_task_evaluate(context_of(s), binding, inputs, outputs,
                                  node->loc)
              : !hd_loop_evaluate(s->module, node, inputs, outputs))
    return false;
  // Nothing here unwinds, so that all of them find their owner.
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    stored[i]->own = outputs[i];
    stored[i]->data = &stored[i]->own;
  }
  return true;
}

static bool run_reference(hd_session_t *s, run_t *run,
                          const hd_graph_t *graph) {
  uint64_t start = hd_clock_ns();
  size_t part = hd_times_enter(&context_of(s)->times, "run");
  bool ok = true;
  for (size_t i = 0; ok && i < graph->nodes.size; i++) {
    hd_budget_check(&context_of(s)->budget);
    ok = evaluate(s, run, graph->nodes.data[i]);
  }
  hd_times_leave(&context_of(s)->times, part);
  s->stats.run_ms += ms_since(start);
  return ok;
}

// Whether a compilation is one of those of a search (Support/Steps.h).
static bool counts_steps(const hd_session_t *s) {
  return hd_steps_matter(&s->module->context->steps);
}

static bool compile(hd_session_t *s, segment_t *segment) {
  hd_graph_program_options_t options = {
      .keep_layouts = s->options.keep_layouts,
      .explain = s->options.explain,
      .unfused = s->options.unfused || s->options.watch || counts_steps(s),
      .in_turn = s->options.in_turn};
  s->schedules.choose = s->prepares ? NULL : s->options.choose;
  s->schedules.choose_argument = s->options.choose_argument;
  segment->made = hd_module_create(context_of(s));
  return hd_graph_program_init(&segment->program, s->device, segment->made,
                               segment->graph, &s->schedules, &options) &&
         hd_program_load(&segment->program);
}

bool hd_session_compile_again(hd_session_t *s, hd_session_version_t *version) {
  segment_t segment = {.graph = s->now->segment.graph};
  bool explain = s->options.explain;
  *version = (hd_session_version_t){0};
  s->options.explain = s->schedules.explain = false; // It has been said.
  bool ok = compile(s, &segment);
  s->options.explain = s->schedules.explain = explain;
  *version = (hd_session_version_t){segment.made, segment.program};
  return ok;
}

void hd_session_version_end(hd_session_version_t *version) {
  hd_program_fini(&version->program);
  hd_module_destroy(version->made);
  *version = (hd_session_version_t){0};
}

void hd_session_version_take(hd_session_t *s, hd_session_version_t *version) {
  segment_t *segment = &s->now->segment;
  hd_session_version_t before = {segment->made, segment->program};
  segment->made = version->made;
  segment->program = version->program;
  *version = (hd_session_version_t){0};
  hd_session_version_end(&before);
}

// Settles where parameter n of the plan is.
static bool place_param(hd_session_t *s, run_t *run, const hd_value_t *value,
                        uint32_t n, bool fill) {
  segment_t *segment = &run->segment;
  hd_store_t *store = store_of(s, run, value);
  const hd_var_t *param = segment->program.entry->params[n];
  if (!hd_store_place(store, value, param, fill))
    return false;
  segment->slots[n] = hd_store_find(store, value)->slot;
  return true;
}

// The plan's parameters: the graph's inputs, its constants, its outputs.
static bool place_params(hd_session_t *s, run_t *run) {
  segment_t *segment = &run->segment;
  const hd_graph_t *graph = segment->graph;
  uint32_t n = 0;
  segment->slots = HD_ARENA_ARRAY(&run->values.arena, hd_slot_t,
                                  segment->program.entry->num_params + 1);
  for (size_t i = 0; i < graph->inputs.size; i++)
    if (!place_param(s, run, graph->inputs.data[i], n++, true))
      return false;
  hd_values_t constants = hd_planned_constants(&run->values.arena, graph);
  for (size_t i = 0; i < constants.size; i++) {
    if (!place_param(s, run, constants.data[i], n, true))
      return false;
    s->stats.weights_bytes += (int64_t)segment->slots[n++].bytes;
  }
  const bool *planned = hd_planned_outputs(&run->values.arena, graph);
  for (size_t i = 0; i < graph->outputs.size; i++)
    if (planned[i] && !place_param(s, run, graph->outputs.data[i], n++, false))
      return false;
  return true;
}

static bool run_program(hd_session_t *s, segment_t *segment) {
  uint64_t start = hd_clock_ns();
  bool ok = hd_program_run(&segment->program, segment->slots);
  s->stats.run_ms += ms_since(start);
  return ok;
}

static void count(hd_session_t *s, const segment_t *segment) {
  const hd_program_t *program = &segment->program;
  hd_moved_t moved =
      hd_program_moved(program, segment->first_constant, segment->end_constant);
  s->stats.segments++;
  s->stats.kernels += (unsigned)program->variants.size;
  s->stats.launches += (unsigned)program->num_launches;
  s->stats.moved.activations += moved.activations;
  s->stats.moved.constants += moved.constants;
  if (program->block_bytes > s->stats.arena_bytes) {
    s->stats.arena_bytes = program->block_bytes;
    s->stats.arena_bound = program->block_bound;
  }
}

static bool run_graph(hd_session_t *s, run_t *run, const hd_graph_t *graph) {
  segment_t *segment = &run->segment;
  end_segment(segment);
  segment->graph = graph;
  uint64_t start = hd_clock_ns();
  bool ok = compile(s, segment);
  s->stats.compile_ms += ms_since(start);
  if (!ok)
    return false;
  start = hd_clock_ns();
  size_t part = hd_times_enter(&context_of(s)->times, "load");
  ok = place_params(s, run);
  hd_times_leave(&context_of(s)->times, part);
  s->stats.load_ms += ms_since(start);
  return ok && run_program(s, segment);
}

static const hd_graph_t *with_node(hd_arena_t *arena, const hd_graph_t *graph,
                                   size_t i, const hd_node_t *node) {
  hd_graph_t *copy = HD_ARENA_NEW(arena, hd_graph_t);
  *copy = *graph;
  memset(&copy->nodes, 0, sizeof(copy->nodes));
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
static size_t count_scheduled(hd_session_t *s, const hd_graph_t **graph) {
  hd_steps_t *steps = &context_of(s)->steps;
  size_t end;
  for (size_t i = 0; i < (*graph)->nodes.size; i = end) {
    size_t anchor = find_anchor(*graph, i, &end);
    const hd_node_t *node = (*graph)->nodes.data[anchor];
    if (!node->task)
      continue;
    if (!hd_step(steps, HD_STEP_KERNEL, "of %s '%s'", node->op,
                 node->label ? node->label : node->outputs[0]->name))
      return i;
    const hd_node_t *made = hd_step_made(steps, s->module, node);
    if (made != node)
      *graph = with_node(&s->module->arena, *graph, anchor, made);
  }
  return (*graph)->nodes.size;
}

// Step by step: what is not scheduled any more is evaluated. Groups live with
// the graph, for the values that they add are entered in the run's store.
static bool run_steps(hd_session_t *s, run_t *run, const hd_graph_t *graph) {
  if (!s->options.unfused)
    graph = hd_graph_fuse(s->module, graph, s->options.explain);
  if (!graph)
    return false;
  size_t count = count_scheduled(s, &graph);
  if (count > 0 &&
      !run_graph(s, run, hd_graph_first(&s->module->arena, graph, count)))
    return false;
  bool ok = true;
  for (size_t i = count; ok && i < graph->nodes.size; i++) {
    hd_budget_check(&context_of(s)->budget);
    ok = evaluate(s, run, graph->nodes.data[i]);
  }
  return ok;
}

static bool run_part(hd_session_t *s, run_t *run, const hd_graph_t *graph) {
  return counts_steps(s) ? run_steps(s, run, graph) : run_graph(s, run, graph);
}

// Who watches nodes sees their values as the model has them.
static const hd_graph_t *choose_layouts(hd_session_t *s,
                                        const hd_graph_t *graph) {
  hd_context_t *context = context_of(s);
  if (s->options.watch)
    return graph;
  const hd_schedule_options_t *outer = context->schedules;
  size_t part = hd_times_enter(&context->times, "choose-layouts");
  context->schedules = &s->schedules;
  graph = hd_graph_fold_norms(s->module, graph, s->options.explain);
  graph = hd_graph_choose_layouts(s->module, graph, s->options.explain);
  context->schedules = outer;
  hd_times_leave(&context->times, part);
  return graph;
}

// What depends on constants alone is computed once; its results stay where the
// rest reads them.
static bool run_device(hd_session_t *s, run_t *run, const hd_graph_t *graph) {
  const hd_graph_t *prepare, *rest;
  graph = choose_layouts(s, graph);
  if (!graph)
    return false;
  hd_graph_split(&s->module->arena, graph, &prepare, &rest);
  double before = s->stats.run_ms; // Of the segments before.
  s->prepares = true;
  if (prepare->nodes.size > 0 && !run_part(s, run, prepare))
    return false;
  s->prepares = false;
  s->stats.load_ms += s->stats.run_ms - before;
  s->stats.run_ms = before;
  if (rest->nodes.size == 0) {
    end_segment(&run->segment);
    return true;
  }
  if (!run_part(s, run, rest))
    return false;
  if (!run->segment.slots) // Nothing of it was scheduled.
    return true;
  // What was prepared stands behind the inputs.
  segment_t *segment = &run->segment;
  segment->first_constant = (uint32_t)graph->inputs.size;
  segment->end_constant =
      (uint32_t)(rest->inputs.size +
                 hd_planned_constants(&run->values.arena, rest).size);
  count(s, segment);
  return true;
}

static run_t *begin(hd_session_t *s, const hd_host_tensor_t *inputs) {
  run_t *run = calloc(1, sizeof(*run));
  if (!run)
    hd_budget_exhausted(&context_of(s)->budget, HD_EXHAUSTED_MEMORY);
  end_run(s->running); // Of a run that unwound.
  s->running = run;
  hd_store_init(&run->values, s->module, s->device);
  hd_arena_t *arena = &run->values.arena;
  size_t size = s->graph->inputs.size;
  const hd_host_tensor_t **data =
      HD_ARENA_ARRAY(arena, const hd_host_tensor_t *, size + 1);
  run->inputs = HD_ARENA_ARRAY(arena, hd_tensor_type_t, size + 1);
  for (size_t i = 0; i < size; i++) {
    run->inputs[i] = hd_tensor_type_of(&inputs[i]);
    data[i] = &inputs[i];
  }
  run->expander = hd_expander_create(s->module, s->graph, run->inputs, data);
  for (size_t i = 0; i < size; i++)
    hd_store_find(&run->values, hd_expander_input(run->expander, i))->data =
        &inputs[i];
  return run;
}

// What the passes over graphs make of a segment; NULL after an error. Rewrites
// leave no trace of what they replace: who watches nodes sees them as they are.
static const hd_graph_t *transform(hd_session_t *s, const hd_graph_t *graph,
                                   hd_ptr_map_t *held) {
  hd_context_t *context = context_of(s);
  bool watched = s->options.watch;
  hd_rewrite_options_t options =
      context->rewrites ? *context->rewrites : hd_rewrite_defaults;
  options.precision = s->options.precision;
  size_t part = hd_times_enter(&context->times, "rewrite");
  bool ok = s->options.unrewritten || watched ||
            hd_graph_rewrite(s->module, graph, &options, &graph,
                             context->rewrite_stats);
  hd_times_leave(&context->times, part);
  part = hd_times_enter(&context->times, "lower-precision");
  if (ok)
    graph = hd_graph_lower_precision(s->module, graph, s->options.precision,
                                     watched ? held : NULL);
  hd_times_leave(&context->times, part);
  return ok ? graph : NULL;
}

// Shows what the nodes of the expanded graph have come to.
static bool show(hd_session_t *s, run_t *run, const hd_graph_t *tasks,
                 const hd_ptr_map_t *held) {
  for (size_t i = 0; i < tasks->nodes.size; i++) {
    const hd_node_t *node = tasks->nodes.data[i];
    for (uint32_t k = 0; k < node->num_outputs; k++) {
      const hd_value_t *value = node->outputs[k];
      const hd_value_t *stands = value ? hd_ptr_map_get(held, value) : NULL;
      const hd_host_tensor_t *data =
          value ? fetch(s, run, stands ? stands : value) : NULL;
      if (value && !data)
        return false;
      if (data)
        s->options.watch(s->options.watch_argument, node, k, data);
    }
  }
  return true;
}

static bool run_segment(hd_session_t *s, run_t *run) {
  const hd_graph_t *graph = run->last;
  if (!s->device)
    return run_reference(s, run, graph);
  return run_device(
      s, run,
      s->options.watch ? hd_graph_exposed(&s->module->arena, graph) : graph);
}

// *walks counts the times that the walk began.
static bool run_segments(hd_session_t *s, run_t *run, unsigned *walks) {
  for (;;) {
    uint64_t start = hd_clock_ns();
    size_t part = hd_times_enter(&context_of(s)->times, "expand");
    hd_expand_state_t state = hd_expander_run(run->expander, &run->last);
    hd_times_leave(&context_of(s)->times, part);
    const hd_graph_t *tasks = run->last;
    hd_ptr_map_t held = {0};
    if (state != HD_EXPAND_FAILED)
      run->last = transform(s, tasks, &held);
    s->stats.expand_ms += ms_since(start);
    ++*walks;
    if (state == HD_EXPAND_FAILED || !run->last)
      return false;
    if (run->last->nodes.size > 0 && !run_segment(s, run))
      return false;
    if (s->options.watch && !show(s, run, tasks, &held))
      return false;
    if (state == HD_EXPAND_DONE)
      return true;
    const hd_value_t *wanted = hd_expander_wanted(run->expander);
    const hd_host_tensor_t *data = fetch(s, run, wanted);
    if (!data)
      return false;
    hd_expander_give(run->expander, wanted, data);
  }
}

static bool take_outputs(hd_session_t *s, run_t *run,
                         hd_host_tensor_t *outputs) {
  hd_context_t *context = context_of(s);
  size_t count = run->last->outputs.size;
  for (size_t i = 0; i < count; i++)
    if (!fetch(s, run, run->last->outputs.data[i]))
      return false;
  // Nothing here unwinds: the caller has no hold on them yet.
  for (size_t i = 0; i < count; i++) {
    const hd_value_t *value = run->last->outputs.data[i];
    const hd_host_tensor_t *data = fetch(s, run, value);
    if (!hd_host_tensor_init(&outputs[i], &context->diags, &context->budget,
                             value->name, data->type, data->shape, data->rank))
      return false;
    memcpy(outputs[i].data, data->data, data->bytes);
  }
  return true;
}

// A run of these shapes that was kept.
static run_t *find_run(hd_session_t *s, const hd_host_tensor_t *inputs) {
  size_t size = s->graph->inputs.size;
  for (run_t *run = s->kept; run; run = run->next) {
    size_t same = 0;
    while (same < size && run->inputs[same].type == inputs[same].type &&
           run->inputs[same].rank == inputs[same].rank &&
           memcmp(run->inputs[same].shape, inputs[same].shape,
                  sizeof(int64_t) * inputs[same].rank) == 0)
      same++;
    if (same == size)
      return run;
  }
  return NULL;
}

static bool run_again(hd_session_t *s, run_t *run,
                      const hd_host_tensor_t *inputs) {
  count(s, &run->segment);
  for (size_t i = 0; i < s->graph->inputs.size; i++)
    if (!hd_store_update(&run->values, hd_expander_input(run->expander, i),
                         &inputs[i]))
      return false;
  if (!run->planned)
    run->planned = hd_planned_outputs(&run->values.arena, run->last);
  for (size_t i = 0; i < run->last->outputs.size; i++)
    if (run->planned[i])
      hd_store_find(&run->values, run->last->outputs.data[i])->data = NULL;
  return run_program(s, &run->segment);
}

bool hd_session_run(hd_session_t *s, const hd_host_tensor_t *inputs,
                    hd_host_tensor_t *outputs) {
  memset(outputs, 0, sizeof(*outputs) * s->graph->outputs.size);
  s->stats = (hd_session_stats_t){0};
  s->now = find_run(s, inputs);
  if (s->now)
    return run_again(s, s->now, inputs) && take_outputs(s, s->now, outputs);
  unsigned walks = 0;
  run_t *run = begin(s, inputs);
  bool ok = run_segments(s, run, &walks) && take_outputs(s, run, outputs);
  s->running = NULL;
  if (!ok || !s->device || walks > 1 || !run->segment.slots ||
      counts_steps(s) || s->options.watch ||
      hd_expander_looked(run->expander)) {
    end_run(run);
    return ok;
  }
  run->next = s->kept;
  s->kept = s->now = run;
  return true;
}

hd_program_t *hd_session_program(hd_session_t *s, const hd_slot_t **slots) {
  if (!s->now)
    return NULL;
  *slots = s->now->segment.slots;
  return &s->now->segment.program;
}
