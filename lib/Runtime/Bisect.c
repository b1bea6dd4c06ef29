// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Runtime/Bisect.h"

#include <string.h>

typedef struct search {
  hd_module_t *module;
  const hd_graph_t *graph;
  hd_device_t *device;
  const hd_model_options_t *options;
  const hd_host_tensor_t *inputs;
  hd_host_tensor_t *truth;
  hd_tolerance_t tolerance;
  hd_bisection_t *bisection;
  hd_step_info_t last; // The last step that was done.
  char name[200];      // Its.
} search_t;

static void note(void *argument, const hd_step_info_t *step) {
  search_t *s = argument;
  if (!step->done)
    return;
  s->last = *step;
  memcpy(s->name, step->name, strlen(step->name) + 1);
}

static void end_outputs(const search_t *s, hd_host_tensor_t *outputs) {
  for (size_t i = 0; i < s->graph->outputs.size; i++)
    hd_host_tensor_fini(&outputs[i]);
}

// Runs it with the first steps done, up to a limit.
static bool run_steps(search_t *s, hd_device_t *device, bool limited,
                      uint64_t limit, hd_host_tensor_t *outputs) {
  hd_steps_t *steps = &s->module->context->steps;
  hd_model_options_t options = *s->options;
  options.watch = NULL;
  options.unrewritten |= device == NULL; // The truth is the graph as it was.
  steps->count = 0;
  steps->limited = limited;
  steps->limit = limit;
  s->last = (hd_step_info_t){0};
  hd_session_t *session =
      hd_session_create(s->module, s->graph, device, &options);
  bool ok = hd_session_run(session, s->inputs, outputs);
  hd_session_destroy(session);
  s->bisection->runs++;
  return ok;
}

// The first element that is wrong: -1 where it is the shape, -2 where none is.
static int64_t find_wrong(const search_t *s, const hd_host_tensor_t *found,
                          const hd_host_tensor_t *wanted) {
  if (found->type != wanted->type || found->rank != wanted->rank ||
      memcmp(found->shape, wanted->shape, sizeof(int64_t) * wanted->rank) != 0)
    return -1;
  hd_tolerance_t tolerance = hd_tolerance_for(s->tolerance, wanted);
  for (int64_t i = 0; i < wanted->count; i++)
    if (!hd_tolerance_holds(tolerance, hd_host_tensor_get(found, i),
                            hd_host_tensor_get(wanted, i)))
      return i;
  return -2;
}

// Whether an output is wrong, which is then noted with the last step done.
static bool is_wrong(search_t *s, const hd_host_tensor_t *outputs) {
  hd_bisection_t *b = s->bisection;
  for (size_t i = 0; i < s->graph->outputs.size; i++) {
    int64_t element = find_wrong(s, &outputs[i], &s->truth[i]);
    if (element == -2)
      continue;
    b->number = s->last.number ? s->last.number : 1;
    b->kind = s->last.kind;
    memcpy(b->name, s->name, sizeof(b->name));
    b->output = i;
    b->element = element;
    b->found = element < 0 ? 0 : hd_host_tensor_get(&outputs[i], element);
    b->wanted = element < 0 ? 0 : hd_host_tensor_get(&s->truth[i], element);
    return true;
  }
  return false;
}

// One run, and whether it is wrong.
static bool try_limit(search_t *s, bool limited, uint64_t limit, bool *wrong) {
  hd_host_tensor_t *outputs = HD_ARENA_ARRAY(
      &s->module->arena, hd_host_tensor_t, s->graph->outputs.size + 1);
  bool ok = run_steps(s, s->device, limited, limit, outputs);
  *wrong = ok && is_wrong(s, outputs);
  end_outputs(s, outputs);
  return ok;
}

static bool search(search_t *s, void (*progress)(uint64_t, uint64_t)) {
  hd_bisection_t *b = s->bisection;
  bool wrong;
  if (!try_limit(s, false, 0, &wrong))
    return false;
  b->steps = s->module->context->steps.count;
  uint64_t low = 0, high = b->steps; // Good, and bad.
  while (wrong && high - low > 1) {
    uint64_t middle = low + (high - low) / 2;
    bool is_bad;
    if (progress)
      progress(low + 1, high);
    if (!try_limit(s, true, middle, &is_bad))
      return false;
    *(is_bad ? &high : &low) = middle;
  }
  // What is no step, like sharing equal nodes, is done at every limit.
  return b->number != 1 || try_limit(s, true, 0, &b->always);
}

bool hd_bisect(hd_module_t *module, const hd_graph_t *graph,
               hd_device_t *device, const hd_model_options_t *options,
               const hd_host_tensor_t *inputs, hd_tolerance_t tolerance,
               void (*progress)(uint64_t low, uint64_t high),
               hd_bisection_t *bisection) {
  *bisection = (hd_bisection_t){0};
  search_t s = {.module = module,
                .graph = graph,
                .device = device,
                .options = options,
                .inputs = inputs,
                .tolerance = tolerance,
                .bisection = bisection};
  hd_steps_t *steps = &module->context->steps, before = *steps;
  s.truth =
      HD_ARENA_ARRAY(&module->arena, hd_host_tensor_t, graph->outputs.size + 1);
  steps->watch = note;
  steps->watch_argument = &s;
  bool ok = run_steps(&s, NULL, true, 0, s.truth) && search(&s, progress);
  end_outputs(&s, s.truth);
  *steps = before;
  return ok;
}
