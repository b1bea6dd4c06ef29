// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A run walks the graph with its inputs in hand, segment after segment; values
// live on the device (or, for `ref`, in the host's memory) until the run ends.
// A graph that is one segment, whatever is in its inputs, is walked once for
// each set of shapes: its program, its values' memory and all are kept.

#include "Runtime/SessionState.h"

#include "Fusion/Fuse.h"
#include "Graph/Rewrite/Rewrite.h"

#include <stdlib.h>
#include <string.h>

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
  const hd_schedule_options_t *given = hd_session_context(s)->schedules;
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

static void end_run(hd_session_turn_t *run) {
  if (!run)
    return;
  hd_session_segment_end(&run->segment);
  hd_store_fini(&run->values);
  free(run);
}

void hd_session_destroy(hd_session_t *s) {
  if (!s)
    return;
  while (s->kept) {
    hd_session_turn_t *run = s->kept;
    s->kept = run->next;
    end_run(run);
  }
  end_run(s->running);
  if (hd_session_context(s)->schedules == &s->schedules) // It unwound.
    hd_session_context(s)->schedules = NULL;
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

bool hd_session_compile_again(hd_session_t *s, hd_session_version_t *version) {
  hd_session_segment_t segment = {.graph = s->now->segment.graph};
  bool explain = s->options.explain;
  *version = (hd_session_version_t){0};
  s->options.explain = s->schedules.explain = false; // It has been said.
  bool ok = hd_session_compile(s, &segment);
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
  hd_session_segment_t *segment = &s->now->segment;
  hd_session_version_t before = {segment->made, segment->program};
  segment->made = version->made;
  segment->program = version->program;
  *version = (hd_session_version_t){0};
  hd_session_version_end(&before);
}

static hd_session_turn_t *begin(hd_session_t *s,
                                const hd_host_tensor_t *inputs) {
  hd_session_turn_t *run = calloc(1, sizeof(*run));
  if (!run)
    hd_budget_exhausted(&hd_session_context(s)->budget, HD_EXHAUSTED_MEMORY);
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
  hd_context_t *context = hd_session_context(s);
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
static bool show(hd_session_t *s, hd_session_turn_t *run,
                 const hd_graph_t *tasks, const hd_ptr_map_t *held) {
  for (size_t i = 0; i < tasks->nodes.size; i++) {
    const hd_node_t *node = tasks->nodes.data[i];
    for (uint32_t k = 0; k < node->num_outputs; k++) {
      const hd_value_t *value = node->outputs[k];
      const hd_value_t *stands = value ? hd_ptr_map_get(held, value) : NULL;
      const hd_host_tensor_t *data =
          value ? hd_session_fetch(s, run, stands ? stands : value) : NULL;
      if (value && !data)
        return false;
      if (data)
        s->options.watch(s->options.watch_argument, node, k, data);
    }
  }
  return true;
}

// *walks counts the times that the walk began.
static bool run_segments(hd_session_t *s, hd_session_turn_t *run,
                         unsigned *walks) {
  for (;;) {
    uint64_t start = hd_clock_ns();
    size_t part = hd_times_enter(&hd_session_context(s)->times, "expand");
    hd_expand_state_t state = hd_expander_run(run->expander, &run->last);
    hd_times_leave(&hd_session_context(s)->times, part);
    const hd_graph_t *tasks = run->last;
    hd_ptr_map_t held = {0};
    if (state != HD_EXPAND_FAILED)
      run->last = transform(s, tasks, &held);
    s->stats.expand_ms += hd_ms_since(start);
    ++*walks;
    if (state == HD_EXPAND_FAILED || !run->last)
      return false;
    if (run->last->nodes.size > 0 && !hd_session_run_segment(s, run))
      return false;
    if (s->options.watch && !show(s, run, tasks, &held))
      return false;
    if (state == HD_EXPAND_DONE)
      return true;
    const hd_value_t *wanted = hd_expander_wanted(run->expander);
    const hd_host_tensor_t *data = hd_session_fetch(s, run, wanted);
    if (!data)
      return false;
    hd_expander_give(run->expander, wanted, data);
  }
}

static bool take_outputs(hd_session_t *s, hd_session_turn_t *run,
                         hd_host_tensor_t *outputs) {
  hd_context_t *context = hd_session_context(s);
  size_t count = run->last->outputs.size;
  for (size_t i = 0; i < count; i++)
    if (!hd_session_fetch(s, run, run->last->outputs.data[i]))
      return false;
  // Nothing here unwinds: the caller has no hold on them yet.
  for (size_t i = 0; i < count; i++) {
    const hd_value_t *value = run->last->outputs.data[i];
    const hd_host_tensor_t *data = hd_session_fetch(s, run, value);
    if (!hd_host_tensor_init(&outputs[i], &context->diags, &context->budget,
                             value->name, data->type, data->shape, data->rank))
      return false;
    memcpy(outputs[i].data, data->data, data->bytes);
  }
  return true;
}

// A run of these shapes that was kept.
static hd_session_turn_t *find_run(hd_session_t *s,
                                   const hd_host_tensor_t *inputs) {
  size_t size = s->graph->inputs.size;
  for (hd_session_turn_t *run = s->kept; run; run = run->next) {
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

static bool run_again(hd_session_t *s, hd_session_turn_t *run,
                      const hd_host_tensor_t *inputs) {
  hd_session_count(s, &run->segment);
  for (size_t i = 0; i < s->graph->inputs.size; i++)
    if (!hd_store_update(&run->values, hd_expander_input(run->expander, i),
                         &inputs[i]))
      return false;
  if (!run->planned)
    run->planned = hd_planned_outputs(&run->values.arena, run->last);
  for (size_t i = 0; i < run->last->outputs.size; i++)
    if (run->planned[i])
      hd_store_find(&run->values, run->last->outputs.data[i])->data = NULL;
  return hd_session_run_program(s, &run->segment);
}

bool hd_session_run(hd_session_t *s, const hd_host_tensor_t *inputs,
                    hd_host_tensor_t *outputs) {
  memset(outputs, 0, sizeof(*outputs) * s->graph->outputs.size);
  s->stats = (hd_session_stats_t){0};
  s->now = find_run(s, inputs);
  if (s->now)
    return run_again(s, s->now, inputs) && take_outputs(s, s->now, outputs);
  unsigned walks = 0;
  hd_session_turn_t *run = begin(s, inputs);
  bool ok = run_segments(s, run, &walks) && take_outputs(s, run, outputs);
  s->running = NULL;
  if (!ok || !s->device || walks > 1 || !run->segment.slots ||
      hd_session_counts_steps(s) || s->options.watch ||
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
