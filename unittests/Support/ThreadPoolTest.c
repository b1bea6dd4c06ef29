// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Support/ThreadPool.h"
#include "UnitTest.h"

#include <stdatomic.h>

enum { PIECES = 1000, WORKERS = 4 };

typedef struct job {
  atomic_uint times[PIECES];
  atomic_uint busy[WORKERS];
  atomic_uint clashes;
} job_t;

static void count(void *argument, unsigned piece, unsigned worker) {
  job_t *job = argument;
  if (worker >= WORKERS || atomic_fetch_add(&job->busy[worker], 1) != 0)
    atomic_fetch_add(&job->clashes, 1);
  atomic_fetch_add(&job->times[piece], 1);
  if (worker < WORKERS)
    atomic_fetch_sub(&job->busy[worker], 1);
}

static void each_piece_runs_once(void **state) {
  (void)state;
  hd_thread_pool_t *pool = hd_thread_pool_create(WORKERS);
  assert_non_null(pool);
  assert_in_range(hd_thread_pool_size(pool), 1, WORKERS);
  for (unsigned round = 1; round <= 50; round++) {
    static job_t job;
    if (round == 1)
      job = (job_t){0};
    hd_thread_pool_run(pool, PIECES, count, &job);
    for (unsigned i = 0; i < PIECES; i++)
      assert_int_equal(job.times[i], round);
    assert_int_equal(job.clashes, 0);
  }
  hd_thread_pool_run(pool, 0, count, NULL);
  hd_thread_pool_destroy(pool);
}

static void no_pool_runs_on_the_caller(void **state) {
  (void)state;
  static job_t job;
  hd_thread_pool_run(NULL, PIECES, count, &job);
  assert_int_equal(job.times[PIECES - 1], 1);
  assert_int_equal(hd_thread_pool_size(NULL), 1);
  hd_thread_pool_destroy(NULL);
}

static void sizes_follow_the_machine(void **state) {
  (void)state;
  hd_thread_pool_t *pool = hd_thread_pool_create(0);
  assert_non_null(pool);
  assert_true(hd_thread_pool_size(pool) >= 1);
  hd_thread_pool_destroy(pool);
}

HD_UNIT_TESTS(cmocka_unit_test(each_piece_runs_once),
              cmocka_unit_test(no_pool_runs_on_the_caller),
              cmocka_unit_test(sizes_follow_the_machine))
