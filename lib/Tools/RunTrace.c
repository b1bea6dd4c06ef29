// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --trace: what the process did, as the JSON of Chrome's trace events
// ("complete" ones, in microseconds), which chrome://tracing and Perfetto show.
// One process of it is hidet-run, with a lane for each thread; the other, where
// there is a GPU, is one inference there: its kernels overlap, so each launch
// has what it adds to the time of all (Runtime/ProgramProfile.c), one behind
// the other.
#include "Tools/Json.h"
#include "Tools/RunTool.h"

enum { HOST = 1, GPU = 2 };

bool hd_run_begin_trace(hd_run_t *run) {
  run->process.context.times.trace = hd_trace_create();
  return run->process.context.times.trace ||
         hd_error(hd_run_diags(run), (hd_loc_t){0}, HD_E0904,
                  "not enough memory for --trace");
}

static void add_event(json_t *events, int process, unsigned lane,
                      const char *name, double us, double duration_us,
                      json_t *arguments) {
  json_array_append_new(
      events, json_pack("{s:s, s:s, s:i, s:i, s:f, s:f, s:o*}", "ph", "X",
                        "name", name, "pid", process, "tid", (int)lane, "ts",
                        us, "dur", duration_us, "args", arguments));
}

// What a process or a lane is called.
static void add_name(json_t *events, const char *of, int process, unsigned lane,
                     const char *name) {
  json_array_append_new(events,
                        json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M",
                                  "name", of, "pid", process, "tid", (int)lane,
                                  "args", "name", name));
}

static void add_host(const hd_run_t *run, json_t *events) {
  size_t count;
  const hd_trace_t *trace = run->process.context.times.trace;
  const hd_trace_span_t *spans = hd_trace_spans(trace, &count);
  uint64_t start = run->process.start_ns;
  uint8_t lanes[HD_RUN_SESSION_LANE * 2] = {1}; // Whether one has spans.
  add_name(events, "process_name", HOST, 0, run->process.name);
  add_event(events, HOST, 0, run->process.name, 0,
            (double)(hd_clock_ns() - start) * 1e-3, NULL);
  for (size_t i = 0; i < count; i++) {
    const hd_trace_span_t *span = &spans[i];
    if (span->lane < sizeof(lanes))
      lanes[span->lane] = 1;
    add_event(events, HOST, span->lane, span->name,
              (double)(span->begin_ns - start) * 1e-3,
              (double)(span->end_ns - span->begin_ns) * 1e-3,
              span->detail ? json_pack("{s:s}", "of", span->detail) : NULL);
  }
  for (unsigned i = 0; i < sizeof(lanes); i++) {
    char name[32];
    if (!lanes[i])
      continue;
    if (i < HD_RUN_SESSION_LANE)
      snprintf(name, sizeof(name), i ? "thread %u" : "main thread", i);
    else
      snprintf(name, sizeof(name), "session %u", i - HD_RUN_SESSION_LANE);
    add_name(events, "thread_name", HOST, i, name);
  }
}

static void add_gpu(const hd_run_t *run, json_t *events) {
  const hd_profile_t *profile = &run->profile;
  if (!profile->rows.size)
    return;
  add_name(events, "process_name", GPU, 0, run->device->info.name);
  add_name(events, "thread_name", GPU, 0, "what each launch adds to a run");
  double at = 0;
  for (size_t i = 0; i < profile->rows.size; i++) {
    const hd_profile_row_t *row = &profile->rows.data[i];
    const hd_kernel_launch_t *launch = row->launch;
    double us = row->us > 0 ? row->us : 0; // Noise.
    add_event(events, GPU, 0, row->kernel->func->name, at, us,
              json_pack("{s:I, s:I, s:[i, i, i], s:[i, i, i]}", "launches",
                        (json_int_t)row->launches, "bytes",
                        (json_int_t)row->bytes, "grid", launch->grid[0],
                        launch->grid[1], launch->grid[2], "block",
                        launch->block[0], launch->block[1], launch->block[2]));
    at += us;
  }
}

bool hd_run_write_trace(hd_run_t *run, const char *path) {
  hd_times_t *times = &run->process.context.times;
  if (!times->trace)
    return false;
  hd_times_total(times); // What unwinding has left open ends.
  json_t *events = json_array();
  add_host(run, events);
  add_gpu(run, events);
  json_t *object =
      json_pack("{s:o, s:s}", "traceEvents", events, "displayTimeUnit", "ms");
  if (hd_trace_lost(times->trace))
    json_object_set_new(object, "lost",
                        json_integer((json_int_t)hd_trace_lost(times->trace)));
  return hd_json_write(hd_run_diags(run), path, object);
}
