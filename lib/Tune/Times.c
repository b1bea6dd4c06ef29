// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Candidates in turn, so that what changes meanwhile changes all of them; each
// is a recording of many runs, on one set of operands after the other.
#include "Support/Samples.h"
#include "Tune/WorkerState.h"

#include <math.h>

enum {
  MAX_RUNS = 512,   // Of a replay,
  REPLAY_US = 400,  // which takes about so long.
  EARLY_ROUNDS = 3, // After so many, those that are slow are out.
  HOST_ROUNDS = 3,  // Where a device has no clock.
};

static const double slow = 1.2; // Over the best: it will not come first.

static bool record(hd_tune_worker_t *w, hd_tune_entry_t *e, unsigned runs) {
  hd_device_t *device = w->device;
  if (e->recording)
    device->ops->recording_free(device, e->recording);
  e->recording = NULL;
  e->runs = runs;
  if (!device->ops->record_begin(device))
    return false;
  bool ok = true;
  for (unsigned i = 0; ok && i < runs; i++)
    ok = hd_program_run(&e->p.program,
                        w->slots + (size_t)(i % w->num_sets) * w->num_params);
  e->recording = device->ops->record_end(device);
  return ok && e->recording;
}

static bool replay(hd_tune_worker_t *w, hd_tune_entry_t *e, double *us) {
  double ms, host_us;
  uint64_t start = hd_clock_ns();
  if (!w->device->ops->replay) {
    bool ok = hd_program_run(&e->p.program, w->slots);
    *us = (double)(hd_clock_ns() - start) * 1e-3;
    return ok;
  }
  if (!w->device->ops->replay(w->device, e->recording, &ms, &host_us))
    return false;
  *us = ms * 1e3 / e->runs;
  return true;
}

// As many runs as take REPLAY_US, whole rounds of the sets.
static bool prepare(hd_tune_worker_t *w, hd_tune_entry_t *e) {
  double us;
  if (!w->device->ops->replay)
    return true;
  if (!record(w, e, w->num_sets) || !replay(w, e, &us) || !replay(w, e, &us))
    return false;
  double rounds = ceil(REPLAY_US / (us * w->num_sets));
  if (rounds * w->num_sets > MAX_RUNS)
    rounds = floor((double)MAX_RUNS / w->num_sets);
  return rounds <= 1 || record(w, e, (unsigned)rounds * w->num_sets);
}

static double least(const hd_tune_entry_t *e) {
  double us = INFINITY;
  for (unsigned i = 0; i < e->samples; i++)
    us = e->us[i] < us ? e->us[i] : us;
  return us;
}

static void leave_slow_ones(hd_tune_worker_t *w) {
  double best = INFINITY;
  for (size_t i = 0; i < w->entries.size; i++)
    best = fmin(best, least(w->entries.data[i]));
  for (size_t i = 0; i < w->entries.size; i++) {
    hd_tune_entry_t *e = w->entries.data[i];
    e->out |= least(e) > slow * best;
    if (e->out && e->recording) {
      w->device->ops->recording_free(w->device, e->recording);
      e->recording = NULL;
    }
  }
}

// Each candidate once; first: to be prepared.
static bool measure_round(hd_tune_worker_t *w, bool first) {
  for (size_t i = 0; i < w->entries.size; i++) {
    hd_tune_entry_t *e = w->entries.data[i];
    if (e->out)
      continue;
    hd_budget_check(&w->context->budget);
    if (!hd_message_send(w->socket, HD_MESSAGE_AT, e->number, "") ||
        !(first ? prepare(w, e) : replay(w, e, &e->us[e->samples])))
      return false;
    e->samples += !first;
  }
  return true;
}

bool hd_tune_measure(hd_tune_worker_t *w) {
  unsigned rounds = w->device->ops->replay ? HD_TUNE_ROUNDS : HOST_ROUNDS;
  for (unsigned n = 0; n <= rounds; n++) {
    if (!measure_round(w, n == 0)) {
      w->has_ended = true;
      return false;
    }
    if (n == EARLY_ROUNDS)
      leave_slow_ones(w);
  }
  for (size_t i = 0; i < w->entries.size; i++) {
    hd_tune_entry_t *e = w->entries.data[i];
    hd_samples_sort(e->us, e->samples);
    hd_buffer_printf(&w->said, "%u %.4f %u\n", e->number, e->us[e->samples / 2],
                     e->samples);
  }
  return true;
}
