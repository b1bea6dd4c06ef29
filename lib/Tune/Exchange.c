// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The best of each group alone, against the next best of one of them in the
// whole inference. Both programs are there at once and run in turn, so that
// what changes meanwhile changes both.
#include "Support/Samples.h"
#include "Tune/TunerState.h"

#include <stdlib.h>

enum {
  GROUPS = 4,       // The heaviest ones,
  NEXT_BEST = 2,    // and so many candidates of each,
  PASSES = 3,       // again while something gains;
  ROUNDS = 15,      // times of each program.
  HOST_ROUNDS = 3,  // Where a device has no clock.
  REPLAY_US = 1000, // A recording takes so long at least.
  MAX_RUNS = 256
};

// Over the best alone: what is slower by more gains nothing; and below what is
// there: else it may be noise.
static const double near = 1.15, gain = 0.997;
// What made the whole so much slower is not tried again.
static const double far = 1.01;

typedef struct timed {
  hd_program_t *program;
  hd_recording_t *recording;
  unsigned runs, samples;
  double us[ROUNDS];
} timed_t;

typedef struct exchange {
  hd_tuner_t *t;
  hd_session_t *session;
  const hd_slot_t *slots;
  hd_session_version_t version;
  timed_t timed[2]; // What is there, and the other one.
} exchange_t;

static void end_timed(exchange_t *x) {
  for (int i = 0; i < 2; i++) {
    if (x->timed[i].recording)
      x->t->device->ops->recording_free(x->t->device, x->timed[i].recording);
    x->timed[i] = (timed_t){0};
  }
}

static void end_exchange(void *argument) {
  exchange_t *x = argument;
  end_timed(x);
  hd_session_version_end(&x->version);
}

static bool record(exchange_t *x, timed_t *timed, unsigned runs) {
  hd_device_t *device = x->t->device;
  if (timed->recording)
    device->ops->recording_free(device, timed->recording);
  timed->recording = NULL;
  timed->runs = runs;
  if (!device->ops->record_begin(device))
    return false;
  bool ok = true;
  for (unsigned i = 0; ok && i < runs; i++)
    ok = hd_program_run(timed->program, x->slots);
  timed->recording = device->ops->record_end(device);
  return ok && timed->recording;
}

static bool run_timed(exchange_t *x, timed_t *timed, double *us) {
  hd_device_t *device = x->t->device;
  double ms, host_us;
  uint64_t start = hd_clock_ns();
  bool ok = device->ops->replay
                ? device->ops->replay(device, timed->recording, &ms, &host_us)
                : hd_program_run(timed->program, x->slots);
  *us = device->ops->replay ? ms * 1e3 / timed->runs
                            : (double)(hd_clock_ns() - start) * 1e-3;
  return ok;
}

static bool prepare(exchange_t *x, timed_t *timed) {
  double us;
  if (!x->t->device->ops->replay)
    return true;
  if (!record(x, timed, 1) || !run_timed(x, timed, &us) ||
      !run_timed(x, timed, &us))
    return false;
  double runs = REPLAY_US / us + 1;
  return runs < 2 ||
         record(x, timed, runs > MAX_RUNS ? MAX_RUNS : (unsigned)runs);
}

static double median(timed_t *timed) {
  hd_samples_sort(timed->us, timed->samples);
  return timed->us[timed->samples / 2];
}

static bool time_both(exchange_t *x) {
  unsigned rounds = x->t->device->ops->replay ? ROUNDS : HOST_ROUNDS;
  for (int i = 0; i < 2; i++)
    if (!prepare(x, &x->timed[i]))
      return false;
  for (unsigned n = 0; n < rounds; n++)
    for (int i = 0; i < 2; i++) {
      timed_t *timed = &x->timed[i];
      hd_budget_check(&x->t->device->context->budget);
      if (!run_timed(x, timed, &timed->us[timed->samples]))
        return false;
      timed->samples++;
    }
  return true;
}

// Takes another candidate for a group where the whole gains by that. False
// after an error.
static bool try_candidate(exchange_t *x, hd_tuned_t *group,
                          const hd_tune_candidate_t *to) {
  hd_tuner_t *t = x->t;
  hd_tune_exchange_t row = {.group = group, .from = group->best, .to = to};
  group->best = to;
  bool ok = hd_session_compile_again(x->session, &x->version);
  x->timed[0].program = hd_session_program(x->session, &x->slots);
  x->timed[1].program = &x->version.program;
  ok = ok && time_both(x);
  if (ok) {
    row.from_us = median(&x->timed[0]);
    row.to_us = median(&x->timed[1]);
    row.taken = row.to_us < gain * row.from_us;
    hd_vec_push(&t->arena, &t->report.exchanges, row);
  }
  end_timed(x);
  if (row.taken)
    ok = hd_session_version_take(x->session, &x->version) && ok;
  else
    group->best = row.from;
  hd_session_version_end(&x->version);
  return ok;
}

// --- Which are tried ---

static double weight(const hd_tuned_t *tuned) {
  return tuned->best ? tuned->best->us * tuned->uses : 0;
}

static int by_weight(const void *a, const void *b) {
  double x = weight(*(hd_tuned_t *const *)a);
  double y = weight(*(hd_tuned_t *const *)b);
  return (x < y) - (x > y);
}

// The fastest candidate that is slower than another one; NULL: none is near.
static const hd_tune_candidate_t *next_best(const hd_tuned_t *tuned,
                                            const hd_tune_candidate_t *before,
                                            double most) {
  const hd_tune_candidate_t *next = NULL;
  for (size_t i = 0; i < tuned->candidates.size; i++) {
    const hd_tune_candidate_t *c = &tuned->candidates.data[i];
    if (c->status == HD_TUNE_MEASURED && hd_tune_is_faster(before, c) &&
        c->us <= most && (!next || hd_tune_is_faster(c, next)))
      next = c;
  }
  return next;
}

static bool was_far(const exchange_t *x, const hd_tuned_t *group,
                    const hd_tune_candidate_t *to) {
  const hd_tune_report_t *report = &x->t->report;
  for (size_t i = 0; i < report->exchanges.size; i++) {
    const hd_tune_exchange_t *row = &report->exchanges.data[i];
    if (row->group == group && row->to == to && row->to_us > far * row->from_us)
      return true;
  }
  return false;
}

static bool try_group(exchange_t *x, hd_tuned_t *group) {
  const hd_tune_candidate_t *first = group->best, *at = first;
  for (int i = 0; i < NEXT_BEST; i++) {
    at = next_best(group, at, first->us * near);
    if (!at)
      return true;
    if (x->t->until_ns && hd_clock_ns() > x->t->until_ns)
      return true;
    if (!was_far(x, group, at) && !try_candidate(x, group, at))
      return false;
  }
  return true;
}

// Each of the heaviest groups once. False after an error, or where nothing
// gained.
static bool try_groups(exchange_t *x, hd_tuned_t *const *groups, size_t count,
                       bool *ok) {
  const hd_tune_report_t *report = &x->t->report;
  size_t before = report->exchanges.size;
  for (size_t i = 0; *ok && i < count && i < GROUPS; i++)
    *ok = !groups[i]->best || try_group(x, groups[i]);
  for (size_t i = before; *ok && i < report->exchanges.size; i++)
    if (report->exchanges.data[i].taken)
      return true;
  return false;
}

bool hd_tuner_exchange(hd_tuner_t *t, hd_session_t *session) {
  exchange_t x = {.t = t, .session = session};
  if (!t->options.most || !t->last.size || t->was_exchanged ||
      !hd_session_program(session, &x.slots))
    return true;
  uint64_t start = hd_clock_ns();
  size_t count = t->last.size;
  hd_tuned_t **groups = HD_ARENA_ARRAY(&t->arena, hd_tuned_t *, count);
  for (size_t i = 0; i < count; i++)
    groups[i] = t->last.data[i];
  qsort(groups, count, sizeof(*groups), by_weight);
  hd_cleanup_t cleanup;
  hd_budget_t *budget = &t->device->context->budget;
  hd_budget_defer(budget, &cleanup, end_exchange, &x);
  bool ok = true;
  for (int pass = 0; pass < PASSES && try_groups(&x, groups, count, &ok);)
    pass++;
  hd_budget_clean(budget, &cleanup);
  for (size_t i = 0; ok && i < count; i++)
    if (groups[i]->best)
      hd_tune_database_exchange(t->database, t->whole, groups[i]->key,
                                groups[i]->best->choice);
  t->report.ms += (double)(hd_clock_ns() - start) * 1e-6;
  return ok;
}
