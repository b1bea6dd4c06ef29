// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --bench. On a device with a clock of its own, a recording (a CUDA graph) of
// many runs, each on the next set of operands, is replayed; a sample is the
// time of a replay over its number of runs. There are so many sets that
// together they pass twice the L2 cache, and so many runs that a replay takes a
// millisecond at least. Without such a clock a sample is a run by the host's.
// What has been measured leaves the outputs that are reported.
#include "Support/File.h"
#include "Support/Samples.h"
#include "Tools/Progress.h"
#include "Tools/RunTool.h"

#include <errno.h>
#include <stdlib.h>

enum {
  MAX_SETS = 1024,
  MAX_RUNS_A_REPLAY = 4096,
  WARM_UP = 3,
  MIN_SAMPLES = 5
};

static const hd_loc_t nowhere;

typedef struct bench {
  hd_run_t *run;
  hd_program_t *program;  // NULL: a graph that is more than one program.
  unsigned sets, runs;    // Runs a replay: a multiple of sets.
  const hd_slot_t *slots; // sets times the program's parameters.
  int64_t count;          // Samples wanted; 0: until the time is over.
  uint64_t start_ns, until_ns;
  hd_progress_t progress;
  HD_VEC(double) samples;
  double host_us;
  hd_recording_t *recording; // The one that is replayed.
} bench_t;

static int64_t operand_bytes(const hd_run_t *run) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < run->num_params; i++)
    bytes += (int64_t)run->tensors[i].slot.bytes;
  return bytes;
}

// Another set of the operands, with the inputs' elements.
static bool make_set(bench_t *b, hd_slot_t *slots) {
  hd_run_t *run = b->run;
  hd_device_t *device = run->device;
  for (uint32_t i = 0; i < run->num_params; i++) {
    hd_run_tensor_t *t = &run->tensors[i];
    if (!t->param)
      continue;
    slots[i] = t->slot;
    if (!device->ops->alloc(device, t->param->name, t->slot.bytes,
                            &slots[i].address))
      return false;
    run->sets[run->num_sets++] = slots[i].address;
    if (t->storage && !device->ops->upload(device, slots[i].address, t->storage,
                                           t->slot.bytes))
      return false;
  }
  return true;
}

static bool make_sets(bench_t *b) {
  hd_run_t *run = b->run;
  int64_t bytes = operand_bytes(run);
  int64_t wanted = 2 * run->device->info.l2_bytes;
  bool rotate = bytes && run->device->ops->replay;
  int64_t sets = rotate ? (wanted + bytes - 1) / bytes : 1;
  b->sets = sets < 1 ? 1 : sets > MAX_SETS ? MAX_SETS : (unsigned)sets;
  size_t count = (size_t)b->sets * (run->num_params + 1);
  hd_slot_t *slots = HD_ARENA_ARRAY(&run->arena, hd_slot_t, count);
  run->sets = HD_ARENA_ARRAY(&run->arena, hd_address_t, count);
  for (uint32_t i = 0; i < run->num_params; i++)
    slots[i] = run->tensors[i].slot;
  for (unsigned k = 1; k < b->sets; k++)
    if (!make_set(b, slots + (size_t)k * run->num_params))
      return false;
  b->slots = slots;
  return true;
}

// A kernel's operands are rotated; a graph's weights are its own.
static bool settle_program(bench_t *b) {
  hd_run_t *run = b->run;
  b->sets = 1;
  if (!run->graph) {
    b->program = &run->program;
    return make_sets(b);
  }
  b->program = hd_session_program(run->session, &b->slots);
  return true;
}

static hd_recording_t *record(bench_t *b) {
  hd_run_t *run = b->run;
  hd_device_t *device = run->device;
  if (!device->ops->record_begin(device))
    return NULL;
  bool ok = true;
  for (unsigned i = 0; ok && i < b->runs; i++)
    ok = hd_program_run(b->program,
                        b->slots + (size_t)(i % b->sets) * run->num_params);
  hd_recording_t *recording = device->ops->record_end(device);
  if (ok || !recording)
    return recording;
  device->ops->recording_free(device, recording);
  return NULL;
}

static void add_sample(bench_t *b, double ms) {
  hd_vec_push(&b->run->arena, &b->samples, ms);
}

static bool enough(bench_t *b) {
  if (b->count) {
    hd_progress_step(&b->progress, (double)b->samples.size, (double)b->count);
    return (int64_t)b->samples.size >= b->count;
  }
  uint64_t now = hd_clock_ns();
  hd_progress_step(&b->progress, (double)(now - b->start_ns) * 1e-9,
                   (double)(b->until_ns - b->start_ns) * 1e-9);
  return b->samples.size >= MIN_SAMPLES && now >= b->until_ns;
}

static void free_recording(void *argument) {
  bench_t *b = argument;
  b->run->device->ops->recording_free(b->run->device, b->recording);
}

static bool replay(bench_t *b, hd_recording_t *recording) {
  hd_device_t *device = b->run->device;
  double ms, host_us;
  for (unsigned i = 0; i < WARM_UP; i++)
    if (!device->ops->replay(device, recording, &ms, &host_us))
      return false;
  while (!enough(b)) {
    hd_budget_check(&b->run->process.context.budget);
    if (!device->ops->replay(device, recording, &ms, &host_us))
      return false;
    add_sample(b, ms / b->runs);
    b->host_us += host_us / b->runs;
  }
  return true;
}

// How many runs a replay holds: measured by one of one run a set.
static bool settle_runs(bench_t *b) {
  hd_device_t *device = b->run->device;
  b->runs = b->sets;
  hd_recording_t *recording = record(b);
  double ms = 0, host_us;
  bool ok = recording != NULL;
  for (int i = 0; ok && i < 2; i++) // The first is a warm-up.
    ok = device->ops->replay(device, recording, &ms, &host_us);
  if (recording)
    device->ops->recording_free(device, recording);
  while (ok && ms < 1 && b->runs * 2 <= MAX_RUNS_A_REPLAY) {
    b->runs *= 2;
    ms *= 2;
  }
  return ok;
}

static bool bench_by_device(bench_t *b) {
  if (!settle_runs(b))
    return false;
  b->recording = record(b);
  if (!b->recording)
    return false;
  hd_cleanup_t cleanup;
  hd_budget_t *budget = &b->run->process.context.budget;
  hd_budget_defer(budget, &cleanup, free_recording, b);
  bool ok = replay(b, b->recording);
  hd_budget_clean(budget, &cleanup);
  return ok;
}

static bool bench_by_host(bench_t *b) {
  b->runs = 1;
  while (!enough(b)) {
    uint64_t start = hd_clock_ns();
    if (!(b->program ? hd_program_run(b->program, b->slots)
                     : hd_run_model_again(b->run)))
      return false;
    add_sample(b, (double)(hd_clock_ns() - start) * 1e-6);
  }
  return true;
}

static double percentile(const bench_t *b, double p) {
  return hd_samples_percentile(b->samples.data, b->samples.size, p);
}

static void finish(bench_t *b) {
  hd_run_t *run = b->run;
  hd_samples_sort(b->samples.data, b->samples.size);
  hd_measurement_t *m = &run->measurement;
  *m = (hd_measurement_t){.runs = (unsigned)b->samples.size,
                          .median_ms = percentile(b, 0.5),
                          .p10_ms = percentile(b, 0.1),
                          .p90_ms = percentile(b, 0.9),
                          .host_us = b->host_us / (double)b->samples.size,
                          .sets = b->sets};
  if (run->process.quiet)
    return;
  hd_buffer_t text = {0};
  hd_buffer_printf(
      &text,
      "median %.6g ms, 10%% %.6g, 90%% %.6g; %u samples of %u runs, %u sets "
      "of operands; %.1f GB/s\n",
      m->median_ms, m->p10_ms, m->p90_ms, m->runs, b->runs, b->sets,
      (double)(run->moved.activations + run->moved.constants) /
          (m->median_ms * 1e6));
  hd_file_write_buffer(hd_run_diags(run), "-", &text);
  hd_buffer_fini(&text);
}

// --bench=N or --bench=TIME; of nothing there is no median.
static bool parse_length(const char *text, int64_t *count, int64_t *ms) {
  char *end;
  errno = 0;
  *count = *text >= '1' && *text <= '9' ? strtoll(text, &end, 10) : 0;
  if (*count && !*end)
    return errno == 0;
  *count = 0;
  return hd_parse_duration(text, ms) && *ms > 0;
}

bool hd_run_check_bench(hd_run_t *run) {
  const char *text = hd_option_text(&run->options, RUN_BENCH, NULL);
  int64_t count, ms;
  bool ok = !text || parse_length(text, &count, &ms) ||
            hd_error(hd_run_diags(run), nowhere, HD_E1002, "--bench",
                     "needs a number of samples or a time such as 5s");
  return ok && hd_run_check_sessions(run);
}

bool hd_run_bench(hd_run_t *run) {
  bench_t b = {.run = run, .start_ns = hd_clock_ns()};
  if (!settle_program(&b))
    return false;
  bool clock = b.program && run->device->ops->replay;
  const char *text = hd_option_text(&run->options, RUN_BENCH, NULL);
  b.count = clock ? 50 : MIN_SAMPLES;
  int64_t ms = 0;
  if (text && parse_length(text, &b.count, &ms))
    b.until_ns = b.start_ns + (uint64_t)ms * 1000000u;
  hd_progress_begin(&b.progress, b.count ? "bench: samples" : "bench: seconds",
                    run->process.quiet);
  bool ok = clock ? bench_by_device(&b) : bench_by_host(&b);
  hd_progress_end(&b.progress);
  if (ok)
    finish(&b);
  return ok && hd_run_sessions(run, text && !ms ? b.count : 0, ms) &&
         (!run->graph || !b.program || hd_run_model_outputs(run));
}
