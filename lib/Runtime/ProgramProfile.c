// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What each launch of a program adds to the time of a run. Kernels overlap, so
// there is no time that is one's own: recorded are the first launch, the first
// two, and so on to the whole, each again and again until a replay takes a
// millisecond, and the differences of their medians are given. They add up to
// what a run takes.
#include "Runtime/ProgramState.h"
#include "Support/Samples.h"

enum { REPLAYS = 15, WARM_UP = 2, MAX_RUNS = 1024 };

typedef struct profiler {
  hd_program_t *program;
  const hd_slot_t *params;
  hd_recording_t *recording;
} profiler_t;

static void free_recording(void *argument) {
  profiler_t *p = argument;
  hd_device_t *device = p->program->device;
  if (p->recording)
    device->ops->recording_free(device, p->recording);
  p->recording = NULL;
}

static bool record(profiler_t *p, size_t end, unsigned runs) {
  hd_device_t *device = p->program->device;
  if (!device->ops->record_begin(device))
    return false;
  bool ok = true;
  for (unsigned i = 0; ok && i < runs; i++)
    ok = hd_program_run_until(p->program, p->params, end);
  p->recording = device->ops->record_end(device);
  return ok && p->recording;
}

static bool replay(profiler_t *p, unsigned runs, double *us) {
  hd_device_t *device = p->program->device;
  double samples[REPLAYS], ms, host_us;
  for (int i = -WARM_UP; i < REPLAYS; i++) {
    hd_budget_check(&device->context->budget);
    if (!device->ops->replay(device, p->recording, &ms, &host_us))
      return false;
    if (i >= 0)
      samples[i] = ms;
  }
  hd_samples_sort(samples, REPLAYS);
  *us = hd_samples_percentile(samples, REPLAYS, 0.5) * 1000 / runs;
  return true;
}

// The time of a run that ends before an action. runs: how often a recording
// holds it, doubled until a replay takes a millisecond.
static bool measure(profiler_t *p, size_t end, unsigned *runs, double *us) {
  hd_cleanup_t cleanup;
  hd_budget_t *budget = &p->program->device->context->budget;
  for (;;) {
    hd_budget_defer(budget, &cleanup, free_recording, p);
    bool ok = record(p, end, *runs) && replay(p, *runs, us);
    hd_budget_clean(budget, &cleanup);
    if (!ok || *us * *runs >= 1000 || *runs * 2 > MAX_RUNS)
      return ok;
    *runs *= 2;
  }
}

// The action behind a launch, or behind the loop that begins there.
static size_t end_of(const hd_program_t *p, size_t at) {
  const hd_action_t *action = p->actions.data[at];
  return (action->does == HD_ACTION_BEGINS_LOOP ? action->other : at) + 1;
}

static void note_launch(hd_profile_row_t *row, const hd_action_t *action) {
  row->kernel = row->kernel ? row->kernel : action->kernel;
  row->launch = row->launch ? row->launch : &action->launch;
  row->launches += action->times;
  for (uint32_t k = 0; k < action->launch.num_tensors; k++) {
    const hd_var_t *param =
        action->kernel->func->params[action->tensor_args[k]];
    row->bytes += action->times * (param->direction == HD_DIR_INOUT ? 2 : 1) *
                  (int64_t)action->tensors[k].bytes;
  }
}

bool hd_program_profile(hd_program_t *program, const hd_slot_t *params,
                        hd_arena_t *arena, hd_profile_t *profile) {
  profiler_t p = {.program = program, .params = params};
  double before = 0, us = 0;
  unsigned runs = 1;
  for (size_t at = 0, end; at < program->actions.size; at = end) {
    hd_profile_row_t row = {0};
    end = end_of(program, at);
    for (size_t i = at; i < end; i++)
      if (program->actions.data[i]->does == HD_ACTION_LAUNCHES)
        note_launch(&row, program->actions.data[i]);
    if (!row.launches)
      continue; // A fill's time is that of the launch behind it.
    runs = runs > 1 ? runs / 2 : 1;
    if (!measure(&p, end, &runs, &us))
      return false;
    row.us = us - before;
    before = us;
    hd_vec_push(arena, &profile->rows, row);
  }
  profile->us = us;
  return true;
}
