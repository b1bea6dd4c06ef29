// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a run of graph_fuzz came to.
#include "Session.h"

#include <math.h>
#include <stdio.h>

static int64_t taken(const fuzz_session_t *f, size_t task) {
  return f->board->taken[task];
}

// Says how often tasks were taken; whether all were often enough.
static bool tell_tasks(const fuzz_session_t *f) {
  unsigned pairs = 0, never = 0, seldom = 0;
  for (size_t i = 0; i < fuzz_num_tasks; i++) {
    pairs += (unsigned)__builtin_popcount(f->board->types[i]);
    never += taken(f, i) == 0;
    seldom += taken(f, i) < f->least;
    if (f->tasks)
      printf("%8lld  %2d types  %s\n", (long long)taken(f, i),
             __builtin_popcount(f->board->types[i]), fuzz_tasks[i]);
  }
  printf("%zu tasks, %u never taken, %u pairs of a task and a result's type\n",
         fuzz_num_tasks, never, pairs);
  for (size_t i = 0; i < fuzz_num_tasks; i++)
    if (taken(f, i) < f->least)
      printf("  taken %lld times: %s\n", (long long)taken(f, i), fuzz_tasks[i]);
  return seldom == 0;
}

static void tell_rules(const fuzz_session_t *f) {
  int64_t all = 0;
  unsigned never = 0;
  for (size_t i = 0; i < fuzz_num_rules; i++) {
    int64_t count = f->board->rewrites[i];
    all += count;
    never += count == 0;
    if (f->tasks || (f->least && count == 0))
      printf("%8lld  rewrite %s\n", (long long)count, fuzz_rules[i]);
  }
  printf("%zu rewrites, %u never done, %lld steps\n", fuzz_num_rules, never,
         (long long)all);
}

// What the comparison noticed of the faults that changed a result.
int fuzz_conclude_planted(const fuzz_session_t *f) {
  static const char *const names[FUZZ_FAULTS] = {
      "another operator", "inputs in another order", "another attribute",
      "another element"};
  const fuzz_board_t *b = f->board;
  for (int i = 0; i < FUZZ_FAULTS; i++)
    printf("%-24s %5lld noticed, %5lld missed (%.1f %%)\n", names[i],
           (long long)b->noticed[i], (long long)b->missed[i],
           100.0 * (double)b->missed[i] /
               fmax(1, (double)(b->noticed[i] + b->missed[i])));
  printf("%lld refused, %lld without effect\n",
         (long long)b->verdicts[FUZZ_FAILED],
         (long long)b->verdicts[FUZZ_IDENTICAL]);
  return 0;
}

int fuzz_conclude(const fuzz_session_t *f) {
  const fuzz_board_t *b = f->board;
  int64_t count = b->died;
  for (int i = 0; i < FUZZ_VERDICTS; i++)
    count += b->verdicts[i];
  bool often = tell_tasks(f);
  tell_rules(f);
  double seconds = fuzz_seconds_since(f->start);
  printf("%lld graphs, %lld nodes, %lld launches; %lld the same, %lld of them "
         "to the bit; %lld different, %lld failed, %lld died, %lld unsettled; "
         "seed %llu, %.1f graphs a second\n",
         (long long)count, (long long)b->nodes, (long long)b->launches,
         (long long)(b->verdicts[FUZZ_SAME] + b->verdicts[FUZZ_IDENTICAL]),
         (long long)b->verdicts[FUZZ_IDENTICAL],
         (long long)b->verdicts[FUZZ_DIFFERENT],
         (long long)b->verdicts[FUZZ_FAILED], (long long)b->died,
         (long long)b->verdicts[FUZZ_UNSETTLED],
         (unsigned long long)f->options.seed, (double)count / seconds);
  bool bad = b->verdicts[FUZZ_DIFFERENT] || b->verdicts[FUZZ_FAILED] ||
             b->died || !often;
  return bad ? 1 : 0;
}
