// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A group's candidates are given to the worker one by one, then measured
// together. Where the worker goes or says nothing any more, the candidate that
// it was at is left out, another worker is started, and gets what was right
// so far.
#include "Tune/TunerState.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The reference runs rules, whose kernels may be slow, and begins a process.
enum { REFERENCE_LIMITS = 12 };

static void give_up(hd_tuner_t *t, const hd_tune_work_t *work,
                    const char *why) {
  hd_warning(&t->device->context->diags, work->tunable->loc,
             "tune: nothing is measured of %s: %s", work->tuned->name, why);
}

// Numbers that go over the socket: 0 is the reference.
static bool is_reference(const hd_tune_work_t *work, size_t candidate) {
  return work->texts[candidate] == work->reference;
}

static hd_received_t receive(hd_tuner_t *t, unsigned limits) {
  uint64_t limit = (uint64_t)t->options.limit_ms * 1000000u * limits;
  return hd_message_receive(t->process.socket, hd_clock_ns() + limit,
                            &t->device->context->budget, &t->message);
}

static hd_tune_status_t failure_of(hd_received_t received,
                                   hd_message_kind_t kind) {
  if (received != HD_RECEIVED)
    return received == HD_RECEIVED_LATE ? HD_TUNE_HANG : HD_TUNE_FAULT;
  return kind == HD_MESSAGE_READY   ? HD_TUNE_READY
         : kind == HD_MESSAGE_WRONG ? HD_TUNE_WRONG
         : kind == HD_MESSAGE_FAULT ? HD_TUNE_FAULT
                                    : HD_TUNE_REFUSED;
}

static const char *note_of(hd_tuner_t *t, hd_received_t received) {
  if (received == HD_RECEIVED)
    return hd_buffer_text(&t->message.text);
  return received == HD_RECEIVED_END
             ? "the process that ran it ended"
             : hd_arena_printf(&t->arena, "nothing came of it in %lld ms",
                               (long long)t->options.limit_ms);
}

// Whether the worker is there and knows the group; it is started where it is
// not there.
static bool begin_group(hd_tuner_t *t, const hd_tune_work_t *work) {
  if (!t->process.pid && !hd_tune_process_start(&t->process, t->options.worker,
                                                t->options.verbose)) {
    give_up(t, work, "no process can be started");
    return false;
  }
  hd_message_send(t->process.socket, HD_MESSAGE_GROUP, 0, work->reference);
  hd_received_t received = receive(t, REFERENCE_LIMITS);
  if (received == HD_RECEIVED && t->message.kind == HD_MESSAGE_READY)
    return true;
  give_up(t, work,
          hd_arena_printf(&t->arena, "the rules' kernel: %s",
                          note_of(t, received)));
  hd_tune_process_end(&t->process);
  return false;
}

// What a worker makes of a candidate; it is ended where it is of no more use.
static hd_tune_status_t try_candidate(hd_tuner_t *t, const hd_tune_work_t *work,
                                      size_t i, const char **note) {
  hd_message_send(t->process.socket, HD_MESSAGE_TRY, (uint32_t)i + 1,
                  work->texts[i]);
  hd_received_t received = receive(t, 1);
  hd_tune_status_t status = failure_of(received, t->message.kind);
  *note = note_of(t, received);
  if (status == HD_TUNE_HANG || status == HD_TUNE_FAULT)
    hd_tune_process_end(&t->process);
  return status;
}

// Another worker that has all that was right so far; false: it cannot be.
static bool begin_again(hd_tuner_t *t, hd_tune_work_t *work) {
  if (!begin_group(t, work))
    return false;
  for (size_t i = 0; i < work->tuned->candidates.size; i++) {
    const char *note;
    if (work->tuned->candidates.data[i].status != HD_TUNE_READY ||
        is_reference(work, i))
      continue;
    hd_tune_status_t status = try_candidate(t, work, i, &note);
    if (status == HD_TUNE_READY)
      continue;
    hd_tuner_settle(t, work, i, status, 0, note);
    if (!t->process.pid && !begin_again(t, work))
      return false;
  }
  return true;
}

static bool try_all(hd_tuner_t *t, hd_tune_work_t *work) {
  for (size_t i = 0; i < work->tuned->candidates.size; i++) {
    hd_tune_candidate_t *c = &work->tuned->candidates.data[i];
    const char *note = "";
    if (c->status != HD_TUNE_OPEN)
      continue;
    hd_tune_status_t status = is_reference(work, i)
                                  ? HD_TUNE_READY
                                  : try_candidate(t, work, i, &note);
    if (status == HD_TUNE_READY)
      c->status = status;
    else
      hd_tuner_settle(t, work, i, status, 0, note);
    hd_tuner_step(t);
    if (!t->process.pid && !begin_again(t, work))
      return false;
  }
  return true;
}

// "number us samples", a line each.
static void take_times(hd_tuner_t *t, hd_tune_work_t *work) {
  unsigned number, samples;
  double us;
  const char *line = hd_buffer_text(&t->message.text);
  for (; line && sscanf(line, "%u %lf %u", &number, &us, &samples) == 3;
       line = strchr(line, '\n'), line = line ? line + 1 : NULL)
    for (size_t i = 0; i < work->tuned->candidates.size; i++)
      if (work->tuned->candidates.data[i].status == HD_TUNE_READY &&
          (is_reference(work, i) ? number == 0 : number == i + 1))
        hd_tuner_settle(t, work, i, HD_TUNE_MEASURED, us, "");
}

// Whether there is nothing more to be done.
static bool measure(hd_tuner_t *t, hd_tune_work_t *work) {
  hd_message_send(t->process.socket, HD_MESSAGE_MEASURE, 0, "");
  uint32_t at = 0;
  for (;;) {
    hd_received_t received = receive(t, at ? 1 : REFERENCE_LIMITS);
    if (received == HD_RECEIVED && t->message.kind == HD_MESSAGE_AT) {
      at = t->message.number;
      continue;
    }
    if (received == HD_RECEIVED && t->message.kind == HD_MESSAGE_TIMES) {
      take_times(t, work);
      return true;
    }
    hd_tune_status_t status = failure_of(received, HD_MESSAGE_FAULT);
    const char *note = hd_arena_printf(&t->arena, "%s", note_of(t, received));
    hd_tune_process_end(&t->process);
    if (!at || at > work->tuned->candidates.size) {
      give_up(t, work, note);
      return true;
    }
    hd_tuner_settle(t, work, at - 1, status, 0, note);
    return !begin_again(t, work);
  }
}

void hd_tuner_measure(hd_tuner_t *t, hd_tune_work_t *work) {
  if (begin_group(t, work) && try_all(t, work))
    while (!measure(t, work))
      ;
  for (size_t i = 0; i < work->tuned->candidates.size; i++)
    if (work->tuned->candidates.data[i].status == HD_TUNE_READY)
      work->tuned->candidates.data[i].status = HD_TUNE_OPEN;
}
