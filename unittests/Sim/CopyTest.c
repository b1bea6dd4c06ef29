// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies by cp_async whose end is not waited for, or not told to others.
#include "Fault.h"

#define COPY(name, commit, wait, meet, whose)                                  \
  static void name##_body(void *pointer) {                                     \
    FRAME(pointer);                                                            \
    BEGIN();                                                                   \
    CALL(hd_sim_cp_async, IN_SHARED(4 * t), IN_A(4 * t), 16, 0);               \
    commit;                                                                    \
    wait;                                                                      \
    meet;                                                                      \
    f->x = (float)GET((4 * t + (whose)) % 256);                                \
    END();                                                                     \
  }                                                                            \
  KERNEL(name, name##_body)
#define COMMIT CALL(hd_sim_cp_async_commit, 0)
#define WAIT(left) CALL(hd_sim_cp_async_wait, left)
COPY(own_copy, COMMIT, WAIT(0), (void)0, 1)
COPY(shared_copy, COMMIT, WAIT(0), BARRIER(), 5)
COPY(wait_all, (void)0, CALL(hd_sim_cp_async_wait_all, 0), BARRIER(), 5)
COPY(no_wait, COMMIT, (void)0, (void)0, 1)
COPY(no_wait_met, COMMIT, (void)0, BARRIER(), 5)
COPY(no_commit, (void)0, WAIT(0), BARRIER(), 1)
COPY(short_wait, COMMIT, WAIT(1), BARRIER(), 5)
COPY(no_meeting, COMMIT, WAIT(0), (void)0, 5)

// Two stages: the copy for the next round is under way during this one.
static void stages_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  CALL(hd_sim_cp_async, IN_SHARED(4 * t), IN_A(4 * t), 16, 0);
  COMMIT;
  for (f->i = 0; f->i < 4; f->i++) {
    if (f->i < 3)
      CALL(hd_sim_cp_async, IN_SHARED((f->i + 1) % 2 * 256 + 4 * t),
           IN_A(4 * t), 16, 0);
    COMMIT;
    WAIT(1);
    BARRIER();
    f->x += (float)GET(f->i % 2 * 256 + (4 * t + 5) % 256);
    BARRIER();
  }
  END();
}
KERNEL(stages, stages_body)

// Without the second barrier a slow thread's buffer is overwritten.
static void overwrite_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  for (f->i = 0; f->i < 4; f->i++) {
    CALL(hd_sim_cp_async, IN_SHARED(4 * t), IN_A(4 * t), 16, 0);
    COMMIT;
    WAIT(0);
    BARRIER();
    f->x += (float)GET((4 * t + 5) % 256);
  }
  END();
}
KERNEL(overwrite, overwrite_body)

static void missing_waits_are_found(void **state) {
  (void)state;
  RUN_WELL(own_copy, 1, 64);
  RUN_WELL(shared_copy, 2, 64);
  RUN_WELL(wait_all, 1, 64);
  RUN_WELL(stages, 2, 64);
  RUN(no_wait, 1, 1, HD_E0705,
      "thread 0 of block 0 reads 'sa'[1], which a cp_async of thread 0 of "
      "block 0 may still be writing",
      20, 30);
  RUN(no_wait, 1, 64, HD_E0705, "may still be writing", 20, 30);
  RUN(no_wait_met, 1, 64, HD_E0705, "may still be writing", 20, 30);
  RUN(no_commit, 1, 64, HD_E0705, "may still be writing", 20, 30);
  RUN(short_wait, 1, 64, HD_E0705, "may still be writing", 20, 30);
  RUN(overwrite, 1, 64, HD_E0703, "nothing orders the two", 0, 0);
  RUN(no_meeting, 1, 64, HD_E0702, "nobody has written", 20, 0);
  RUN(no_meeting, 1, 64, HD_E0703, "nothing orders the two", 0, 0);
}

HD_UNIT_TESTS(cmocka_unit_test(missing_waits_are_found))
