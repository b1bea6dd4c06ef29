// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Choosing by measuring. A tuner is asked for a graph's groups before they are
// scheduled (Fusion/Form/Choose.h). It looks for what is known of them in a
// database; what is not, it compiles, all candidates at once on all threads,
// and lets a worker process run them (Worker.h): each is compared with what the
// rules' kernel gives, and timed, turn by turn. One that does not compile or
// fit, faults, hangs or computes something else is named and left out, and what
// is left is measured all the same.
#ifndef HIDET_TUNE_TUNE_H
#define HIDET_TUNE_TUNE_H

#include "Fusion/Form/Choose.h"
#include "Runtime/Session.h"

typedef struct hd_tuner hd_tuner_t;

typedef struct hd_tune_options {
  unsigned most;        // Candidates of a group that are measured; 0: none are,
                        // what is known decides.
  int64_t time_ms;      // After that no group is begun; 0: no limit.
  int64_t limit_ms;     // That a candidate may be at work; then it hangs.
  unsigned threads;     // 0: one for each core.
  const char *database; // A file; NULL: nothing is kept.
  // The program that works (hd_tune_work()) and its arguments, NULL behind the
  // last. Its device has the same cache of code.
  const char *const *worker;
  bool verbose; // What the worker prints is seen.
  // May be NULL. total: of the groups that it is at.
  void (*progress)(void *argument, double done, double total);
  void *progress_argument;
} hd_tune_options_t;

// What became of a candidate.
typedef enum hd_tune_status {
#define HD_TUNE_STATUS(name, text) HD_TUNE_##name,
#include "Tune/Statuses.def"
#undef HD_TUNE_STATUS
  HD_TUNE_STATUSES
} hd_tune_status_t;

const char *hd_tune_status_text(hd_tune_status_t status);

typedef struct hd_tune_candidate {
  const char *choice; // "product_mma(BM = 64, ...)", "rules()"
  double expected_us; // 0: nothing is expected of rules.
  hd_tune_status_t status;
  double us;        // Where it was measured: a run, with what gives its input.
  const char *note; // Why it was left out; "" where it was not.
  bool was_known;   // From the database.
} hd_tune_candidate_t;

typedef struct hd_tuned {
  const char *name, *text, *key;
  unsigned uses;
  HD_VEC(hd_tune_candidate_t) candidates;
  const hd_tune_candidate_t *best; // NULL: none was measured.
  // The fastest that the database has and that is no candidate here; NULL:
  // none.
  const char *gone;
  double gone_us;
} hd_tuned_t;

// A group's choice, exchanged for another one in the whole inference.
typedef struct hd_tune_exchange {
  const hd_tuned_t *group;
  const hd_tune_candidate_t *from, *to;
  double from_us, to_us; // Of a run of the whole.
  bool taken;            // It gains.
} hd_tune_exchange_t;

typedef struct hd_tune_report {
  HD_VEC(hd_tuned_t *) groups;          // What was asked for, in order.
  HD_VEC(hd_tune_exchange_t) exchanges; // That were tried, in order.
  double ms;
  unsigned measured; // Candidates, of this process.
} hd_tune_report_t;

// The device, the options and what they name outlive the tuner. NULL where
// memory runs out.
hd_tuner_t *hd_tuner_create(hd_device_t *device,
                            const hd_tune_options_t *options);
void hd_tuner_destroy(hd_tuner_t *tuner);

// For hd_schedule_options_t.choose, with the tuner as the argument.
bool hd_tuner_choose(void *tuner, hd_module_t *module,
                     const hd_tunables_t *groups);

// For hd_model_options_t.choosing; NULL: what it measures decides, or there is
// no tuner.
const hd_choosing_t *hd_tuner_choosing(const hd_tuner_t *tuner);

// Tries the next best candidates of the groups that take the longest in the
// last run of the session, one at a time, and keeps what makes the whole
// faster: a candidate that is the best by itself need not be that among its
// neighbours. What is found is kept in the database for graphs of the same
// groups. Nothing where the session has no program, the tuner measures nothing,
// or the whole was tried before. False after an error.
bool hd_tuner_exchange(hd_tuner_t *tuner, hd_session_t *session);

const hd_tune_report_t *hd_tuner_report(const hd_tuner_t *tuner);

#endif
