// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --bench --sessions=N: inferences of a model in flight at once. Each session
// has a thread, and its inputs where a run has left them; what a GPU runs is
// recorded. One session is measured for as long before, so that what they gain
// is seen.
#include "Support/File.h"
#include "Tools/RunTool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SESSIONS = 256 };

typedef struct crowd {
  hd_run_t *run;
  const hd_host_tensor_t *inputs;
  int64_t count, ms;    // Of runs of each; or for how long.
  pthread_mutex_t lock; // Whoever has it keeps those that started back.
  bool calls_off;       // Not all could be.
  uint64_t until_ns;
} crowd_t;

typedef struct client {
  crowd_t *crowd;
  hd_context_t context;
  hd_device_t *device;
  hd_session_t *session;
  hd_program_t *program; // NULL: the session runs it.
  const hd_slot_t *slots;
  hd_recording_t *recording; // NULL: it is not recorded.
  hd_host_tensor_t *outputs;
  pthread_t thread;
  uint64_t runs;
  bool ok;
} client_t;

// --- A session ---

static bool run_whole(client_t *c) {
  size_t count = c->crowd->run->graph->outputs.size;
  bool ok = hd_session_run(c->session, c->crowd->inputs, c->outputs);
  for (size_t i = 0; i < count; i++)
    hd_host_tensor_fini(&c->outputs[i]);
  return ok;
}

static bool record_program(client_t *c) {
  hd_device_t *device = c->device;
  if (!c->program || !device->ops->replay)
    return true;
  if (!device->ops->record_begin(device))
    return false;
  bool ok = hd_program_run(c->program, c->slots);
  c->recording = device->ops->record_end(device);
  return ok && c->recording;
}

static void prepare_client(void *argument) {
  client_t *c = argument;
  hd_run_t *run = c->crowd->run;
  c->device = hd_device_fork(run->device, &c->context);
  if (!c->device)
    return;
  c->session =
      hd_session_join(hd_session_model(run->session), &c->context, c->device);
  if (!run_whole(c))
    return;
  c->program = hd_session_program(c->session, &c->slots);
  c->ok = record_program(c);
}

static bool run_once(client_t *c) {
  double ms, host_us;
  return c->recording
             ? c->device->ops->replay(c->device, c->recording, &ms, &host_us)
         : c->program ? hd_program_run(c->program, c->slots)
                      : run_whole(c);
}

static void run_client(void *argument) {
  client_t *c = argument;
  const crowd_t *crowd = c->crowd;
  c->ok = true;
  const hd_times_t *times = &c->context.times;
  while (c->ok && (crowd->count ? c->runs < (uint64_t)crowd->count
                                : hd_clock_ns() < crowd->until_ns)) {
    uint64_t start = times->trace ? hd_clock_ns() : 0;
    c->ok = run_once(c);
    if (times->trace)
      hd_trace_add(times->trace, times->lane, "inference", NULL, start,
                   hd_clock_ns());
    c->runs++;
  }
}

static void *work_client(void *argument) {
  client_t *c = argument;
  pthread_mutex_lock(&c->crowd->lock);
  bool ended = c->crowd->calls_off;
  pthread_mutex_unlock(&c->crowd->lock);
  if (ended)
    return NULL;
  if (hd_budget_guard(&c->context.budget, run_client, c) !=
      HD_EXHAUSTED_NOTHING)
    c->ok = false;
  return NULL;
}

static void end_client(client_t *c) {
  hd_diagnostics_t *diags = hd_run_diags(c->crowd->run);
  if (c->recording)
    c->device->ops->recording_free(c->device, c->recording);
  hd_session_destroy(c->session);
  hd_device_close(c->device);
  hd_diagnostics_take(diags, &c->context.diags);
  hd_context_fini(&c->context);
  free(c->outputs);
}

// --- Several ---

static bool start_clients(client_t *clients, unsigned count, double *rate) {
  crowd_t *crowd = clients->crowd;
  unsigned started = 0;
  uint64_t runs = 0;
  pthread_mutex_lock(&crowd->lock);
  while (started < count && !pthread_create(&clients[started].thread, NULL,
                                            work_client, &clients[started]))
    started++;
  uint64_t start = hd_clock_ns();
  crowd->until_ns = start + (uint64_t)crowd->ms * 1000000u;
  crowd->calls_off = started < count;
  pthread_mutex_unlock(&crowd->lock);
  bool ok =
      started == count || hd_error(hd_run_diags(crowd->run), (hd_loc_t){0},
                                   HD_E0904, "no more threads");
  for (unsigned i = 0; i < started; i++) {
    pthread_join(clients[i].thread, NULL);
    ok &= clients[i].ok;
    runs += clients[i].runs;
  }
  *rate = (double)runs * 1e9 / (double)(hd_clock_ns() - start);
  return ok;
}

// Runs a second of so many at once.
static bool measure_rate(crowd_t *crowd, unsigned count, double *rate) {
  hd_budget_t *budget = &crowd->run->process.context.budget;
  client_t *clients = calloc(count, sizeof(*clients));
  unsigned made = 0;
  bool ok = clients != NULL;
  for (; ok && made < count; made++) {
    client_t *c = &clients[made];
    c->crowd = crowd;
    hd_context_init(&c->context);
    c->context.budget.deadline_ns = budget->deadline_ns;
    c->context.budget.interrupted = budget->interrupted;
    c->context.times.trace = crowd->run->process.context.times.trace;
    c->context.times.lane = HD_RUN_SESSION_LANE + made;
    c->outputs =
        calloc(crowd->run->graph->outputs.size + 1, sizeof(*c->outputs));
    ok = c->outputs &&
         hd_budget_guard(&c->context.budget, prepare_client, c) ==
             HD_EXHAUSTED_NOTHING &&
         c->ok;
  }
  ok = ok && start_clients(clients, count, rate);
  for (unsigned i = 0; i < made; i++)
    end_client(&clients[i]);
  free(clients);
  return ok;
}

static void report_rates(hd_run_t *run) {
  hd_buffer_t text = {0};
  if (run->process.quiet)
    return;
  hd_buffer_printf(
      &text, "%u sessions: %.6g runs a second, %.3g times one's %.6g\n",
      run->sessions, run->rate, run->rate / run->rate_of_one, run->rate_of_one);
  hd_file_write_buffer(hd_run_diags(run), "-", &text);
  hd_buffer_fini(&text);
}

bool hd_run_check_sessions(hd_run_t *run) {
  int64_t count = hd_option_number(&run->options, RUN_SESSIONS, 1);
  if (hd_option_given(&run->options, RUN_SESSIONS) &&
      !hd_option_given(&run->options, RUN_BENCH))
    return hd_error(hd_run_diags(run), (hd_loc_t){0}, HD_E1003,
                    "--sessions is measured by --bench");
  return (count >= 1 && count <= MOST_SESSIONS) ||
         hd_error(hd_run_diags(run), (hd_loc_t){0}, HD_E1002, "--sessions",
                  "needs a number from 1 to 256");
}

bool hd_run_sessions(hd_run_t *run, int64_t count, int64_t ms) {
  unsigned sessions =
      (unsigned)hd_option_number(&run->options, RUN_SESSIONS, 1);
  if (sessions == 1)
    return true;
  if (!run->graph || !run->device)
    return hd_error(hd_run_diags(run), (hd_loc_t){0}, HD_E1003,
                    "--sessions is for models, on a device that compiles them");
  crowd_t crowd = {.run = run,
                   .inputs = hd_run_model_inputs(run),
                   .count = count,
                   .ms = ms ? ms : 1000};
  pthread_mutex_init(&crowd.lock, NULL);
  bool ok = measure_rate(&crowd, 1, &run->rate_of_one) &&
            measure_rate(&crowd, sessions, &run->rate);
  pthread_mutex_destroy(&crowd.lock);
  run->sessions = ok ? sessions : 0;
  if (ok)
    report_rates(run);
  return ok;
}
