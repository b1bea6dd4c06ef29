// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the tuner share: Tune.c (what is known, what is chosen),
// Foresee.c (the same for groups of which only the keys are there), Compile.c
// (candidates to code), Measure.c (the worker at work).
#ifndef HIDET_TUNE_TUNERSTATE_H
#define HIDET_TUNE_TUNERSTATE_H

#include "Tune/Database.h"
#include "Tune/Message.h"
#include "Tune/Process.h"
#include "Tune/Tune.h"

// A group at work.
typedef struct hd_tune_work {
  hd_tuned_t *tuned;
  const hd_tunable_t *tunable;
  const char *prelude;   // Before each text: what it may use.
  const hd_pin_t **pins; // One for each candidate.
  const char *reference; // The text of the rules' kernel.
  const char **texts;    // One for each candidate.
} hd_tune_work_t;

struct hd_tuner {
  hd_device_t *device;
  hd_tune_options_t options;
  hd_arena_t arena;
  hd_thread_pool_t *pool;
  hd_tune_database_t *database;
  hd_tune_process_t process;
  hd_message_t message; // The last that came.
  hd_tune_report_t report;
  const hd_module_t *base_of; // Whose items these are, and of how many:
  size_t base_items;
  const char *base;
  HD_VEC(hd_tuned_t *) last; // The groups that were asked for last.
  const char *whole;         // The key of all of them.
  bool was_exchanged;        // That is known.
  const char *asked; // The groups since hd_choosing_t.asked() was; NULL:
  bool asked_others; // none. For several graphs.
  double done, total;
  uint64_t until_ns; // 0: no limit.
};

// Settles what became of a candidate: it is kept, and where it is left out, a
// warning names it.
void hd_tuner_settle(hd_tuner_t *tuner, hd_tune_work_t *work, size_t candidate,
                     hd_tune_status_t status, double us, const char *note);
// The candidate of a choice that was measured; NULL: none.
const hd_tune_candidate_t *hd_tuned_find(const hd_tuned_t *tuned,
                                         const char *choice);
void hd_tuner_step(hd_tuner_t *tuner); // For the progress.
// What this process knows of a group; NULL: nothing yet.
hd_tuned_t *hd_tuner_find(const hd_tuner_t *tuner, const char *key);
// The key of groups as one, by their keys and uses.
const char *hd_tuner_whole(hd_tuner_t *tuner, hd_tuned_t *const *tuned,
                           size_t count);
// The order of candidates that were measured; of those that take the same it is
// that of their choices' text, for that of their prices is not known
// everywhere.
bool hd_tune_is_faster(const hd_tune_candidate_t *a,
                       const hd_tune_candidate_t *b);
// Sets tuned->best, of its measured candidates: what the whole takes, where
// that is known; else the fastest; NULL where there is none.
void hd_tuner_find_best(hd_tuner_t *tuner, const char *whole,
                        hd_tuned_t *tuned);
// They are what choose() is asked for.
void hd_tuner_note_asked(hd_tuner_t *tuner, hd_tuned_t *const *tuned,
                         size_t count);

// Compiles the candidates that are open, into the cache of the device's code,
// on all threads; those that do not compile are settled.
void hd_tuner_compile(hd_tuner_t *tuner, hd_tune_work_t *works, size_t count);

// Runs what is open of a group, and settles it.
void hd_tuner_measure(hd_tuner_t *tuner, hd_tune_work_t *work);

// Explain.c. Of a group's rows, which are by time, the first measured one that
// is none of its candidates.
void hd_tuned_note_gone(hd_tuned_t *tuned, const hd_tune_rows_t *rows);
// What is known of a group's candidates, as remarks.
void hd_tuner_explain(hd_tuner_t *t, const hd_tuned_t *tuned, hd_loc_t loc);

#endif
