// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "IR/Intrinsic.h"
#include "Kernel.h"

#include <signal.h>
#include <stdlib.h>

static hd_thread_pool_t *pool;

static int make_pool(void **state) {
  (void)state;
  pool = hd_thread_pool_create(3);
  return pool ? 0 : -1;
}

static int drop_pool(void **state) {
  (void)state;
  hd_thread_pool_destroy(pool);
  return 0;
}

// --- The loop form ---

static void fill_kernel(void *const *args, hd_sim_block_t *block) {
  int32_t *out = *(int32_t **)args[0];
  const int32_t *grid = block->grid_dim, *dim = block->block_dim;
  int32_t threads = dim[0] * dim[1] * dim[2];
  int32_t number =
      block->block[0] + grid[0] * (block->block[1] + grid[1] * block->block[2]);
  for (int32_t t = 0; t < threads; t++)
    out[number * threads + t] += number * 1000 + t;
}

static void loop_form_runs_each_block_once(void **state) {
  (void)state;
  enum { BLOCKS = 7 * 3 * 2, THREADS = 4 * 3 * 2 };
  static int32_t out[BLOCKS * THREADS];
  int32_t *pointer = out;
  void *args[] = {&pointer};
  hd_sim_kernel_t kernel = kernel_of(CODE(fill_kernel), false, args, 7, 4, 0);
  kernel.grid[1] = 3;
  kernel.grid[2] = 2;
  kernel.block[1] = 3;
  kernel.block[2] = 2;
  launch_well(&kernel, &(hd_sim_options_t){.pool = pool});
  for (int i = 0; i < BLOCKS * THREADS; i++)
    assert_int_equal(out[i], i / THREADS * 1000 + i % THREADS);
}

static void no_block_is_no_work(void **state) {
  (void)state;
  hd_sim_kernel_t kernel = kernel_of(CODE(fill_kernel), false, NULL, 0, 4, 0);
  launch_well(&kernel, &(hd_sim_options_t){0});
}

// --- Barriers ---

// Turns each block's part around, twice.
static void reverse_body(void *pointer) {
  FRAME(pointer);
  const int n = f->thread->block->block_dim[0];
  BEGIN();
  SHARED(int32_t)[t] = ARG(int32_t, 0)[b * n + t];
  BARRIER();
  f->i = SHARED(int32_t)[n - 1 - t];
  BARRIER();
  SHARED(int32_t)[t] = f->i + 1;
  BARRIER();
  ARG(int32_t, 1)[b * n + t] = SHARED(int32_t)[n - 1 - t];
  END();
}
KERNEL(reverse, reverse_body)

static void barriers_order_shared_memory(void **state) {
  (void)state;
  enum { BLOCKS = 50 };
  for (uint64_t seed = 0; seed < 5; seed++) {
    for (int threads = 1; threads <= 1024; threads = threads * 3 + 5) {
      int32_t *in = malloc(sizeof(int32_t) * BLOCKS * 1024);
      int32_t *out = malloc(sizeof(int32_t) * BLOCKS * 1024);
      void *args[] = {&in, &out};
      for (int i = 0; i < BLOCKS * threads; i++)
        in[i] = i * 7;
      hd_sim_kernel_t kernel =
          kernel_of(CODE(reverse), true, args, BLOCKS, threads, 4096);
      launch_well(&kernel, &(hd_sim_options_t){.seed = seed, .pool = pool});
      for (int i = 0; i < BLOCKS * threads; i++)
        assert_int_equal(out[i], i * 7 + 1);
      free(in);
      free(out);
    }
  }
}

// Warp 0 fills, warp 1 empties, over two named barriers (full 1, empty 2).
static void pipe_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  for (f->i = 0; f->i < 10; f->i++) {
    if (t < 32) {
      if (f->i > 0) {
        f->slots[0] = 2;
        f->slots[1] = 64;
        SUSPEND(HD_SIM_BLOCK, hd_sim_barrier_sync, NULL);
      }
      SHARED(int32_t)[t] = f->i * 100 + t;
      f->slots[0] = 1;
      f->slots[1] = 64;
      SUSPEND(HD_SIM_BLOCK, hd_sim_barrier_arrive, NULL);
    } else {
      f->slots[0] = 1;
      f->slots[1] = 64;
      SUSPEND(HD_SIM_BLOCK, hd_sim_barrier_sync, NULL);
      ARG(int32_t, 0)[f->i * 32 + t - 32] = SHARED(int32_t)[63 - t];
      f->slots[0] = 2;
      f->slots[1] = 64;
      if (f->i < 9)
        SUSPEND(HD_SIM_BLOCK, hd_sim_barrier_arrive, NULL);
    }
  }
  END();
}
KERNEL(pipe_kernel, pipe_body)

static void named_barriers_pair_warps(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 5; seed++) {
    int32_t out[320], *pointer = out;
    void *args[] = {&pointer};
    hd_sim_kernel_t kernel =
        kernel_of(CODE(pipe_kernel), true, args, 1, 64, 128);
    launch_well(&kernel, &(hd_sim_options_t){.seed = seed});
    for (int i = 0; i < 320; i++)
      assert_int_equal(out[i], i / 32 * 100 + 31 - i % 32);
  }
}

// --- Blocks that wait for each other ---

// Every block adds one and spins until all have: a barrier of the grid.
static void grid_barrier_body(void *pointer) {
  FRAME(pointer);
  const int blocks = f->thread->block->grid_dim[0];
  BEGIN();
  if (t == 0) {
    CALL(hd_sim_atomic_add_i32, 0, bits_of(ARG(int32_t, 0)), 0, 1, HD_ACQ_REL,
         HD_SYNC_DEVICE);
    for (;;) {
      CALL(hd_sim_atomic_load_i32, 0, bits_of(ARG(int32_t, 0)), 0, HD_ACQUIRE,
           HD_SYNC_DEVICE);
      if ((int32_t)f->slots[0] >= blocks || f->thread->block->stop)
        break;
      YIELD();
    }
  }
  BARRIER();
  ARG(int32_t, 1)[b] = (int32_t)*ARG(int32_t, 0);
  END();
}
KERNEL(grid_barrier, grid_barrier_body)

static void blocks_may_wait_for_later_ones(void **state) {
  (void)state;
  enum { BLOCKS = 264 };
  for (int workers = 0; workers < 2; workers++) {
    int32_t counter = 0, out[BLOCKS], *pointers[] = {&counter, out};
    void *args[] = {&pointers[0], &pointers[1]};
    hd_sim_kernel_t kernel =
        kernel_of(CODE(grid_barrier), true, args, BLOCKS, 64, 0);
    launch_well(&kernel, &(hd_sim_options_t){.pool = workers ? pool : NULL});
    for (int i = 0; i < BLOCKS; i++)
      assert_int_equal(out[i], BLOCKS);
  }
}

// --- Clusters ---

static void cluster_body(void *pointer) {
  FRAME(pointer);
  const hd_sim_block_t *block = f->thread->block;
  BEGIN();
  int32_t *out = ARG(int32_t, 0) + 3 * (b + 8 * block->block[1]);
  out[0] = block->cluster;
  out[1] = block->cluster_dim;
  out[2]++;
  END();
}
KERNEL(cluster_kernel, cluster_body)

static void clusters_tile_the_grid(void **state) {
  (void)state;
  int32_t out[8 * 6 * 3] = {0}, *pointer = out;
  void *args[] = {&pointer};
  hd_sim_kernel_t kernel = kernel_of(CODE(cluster_kernel), true, args, 8, 1, 0);
  kernel.grid[1] = 6;
  kernel.cluster[0] = 2;
  kernel.cluster[1] = 3;
  launch_well(&kernel, &(hd_sim_options_t){.pool = pool});
  for (int y = 0; y < 6; y++) {
    for (int x = 0; x < 8; x++) {
      assert_int_equal(out[3 * (x + 8 * y)], x % 2 + 2 * (y % 3));
      assert_int_equal(out[3 * (x + 8 * y) + 1], 6);
      assert_int_equal(out[3 * (x + 8 * y) + 2], 1);
    }
  }
  kernel.grid[0] = 7;
  launch_badly(&kernel, &(hd_sim_options_t){0}, HD_E0606,
               "clusters do not divide the grid");
}

// --- Asynchronous copies ---

// Looks at the copy before and after the wait.
static void copy_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  int32_t *here = &SHARED(int32_t)[4 * t];
  memset(here, 0, 16);
  CALL(hd_sim_cp_async, bits_of(here), 0, bits_of(ARG(int32_t, 0)), 0, 16, 0);
  CALL(hd_sim_cp_async_commit, 0);
  ARG(int32_t, 1)[0] = here[3];
  CALL(hd_sim_cp_async_zfill, bits_of(here), 0, bits_of(ARG(int32_t, 0) + 4), 0,
       16, 8, 0);
  CALL(hd_sim_cp_async_commit, 0);
  CALL(hd_sim_cp_async_wait, 1);
  ARG(int32_t, 1)[1] = here[3];
  CALL(hd_sim_cp_async_wait, 0);
  ARG(int32_t, 1)[2] = here[1];
  ARG(int32_t, 1)[3] = here[2];
  END();
}
KERNEL(copy_kernel, copy_body)

static void copies_land_late_or_early(void **state) {
  (void)state;
  int32_t in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[4];
  int32_t *pointers[] = {in, out};
  void *args[] = {&pointers[0], &pointers[1]};
  hd_sim_kernel_t kernel = kernel_of(CODE(copy_kernel), true, args, 1, 1, 16);
  launch_well(&kernel, &(hd_sim_options_t){.async = HD_SIM_ASYNC_LATEST});
  const int32_t late[] = {0, 4, 6, 0};
  assert_memory_equal(out, late, sizeof out);
  launch_well(&kernel, &(hd_sim_options_t){.async = HD_SIM_ASYNC_EARLIEST});
  const int32_t early[] = {4, 0, 6, 0};
  assert_memory_equal(out, early, sizeof out);
}

// --- What goes wrong ---

static void missing_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  if (t % 64 != 5)
    BARRIER();
  END();
}
KERNEL(missing, missing_body)

static void a_barrier_that_not_all_reach_is_told(void **state) {
  (void)state;
  hd_sim_kernel_t kernel = kernel_of(CODE(missing), true, NULL, 3, 128, 0);
  launch_badly(&kernel, &(hd_sim_options_t){.pool = pool}, HD_E0704,
               "126 of 128 threads have come, 2 have ended");
}

static void apart_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  f->slots[2] = 1;
  if (t == 3)
    BARRIER();
  else
    COLLECTIVE(hd_sim_shfl_xor);
  END();
}
KERNEL(apart, apart_body)

static void mixed_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  f->slots[2] = 1;
  if (t == 3)
    COLLECTIVE(hd_sim_ballot);
  else
    COLLECTIVE(hd_sim_shfl_xor);
  END();
}
KERNEL(mixed, mixed_body)

static void a_warp_torn_apart_is_told(void **state) {
  (void)state;
  hd_sim_kernel_t kernel = kernel_of(CODE(apart), true, NULL, 1, 32, 0);
  launch_badly(&kernel, &(hd_sim_options_t){0}, HD_E0710,
               "for the other threads of its warp");
  kernel.entry = CODE(mixed);
  launch_badly(&kernel, &(hd_sim_options_t){0}, HD_E0710, "thread 3");
}

// Not a constant: the compiler would see through it.
static volatile uintptr_t wild_address = 64;

static void wild_kernel(void *const *args, hd_sim_block_t *block) {
  (void)args;
  if (block->block[0] == 2)
    *(volatile int *)wild_address = 1;
}

// ThreadSanitizer's own handler does not let a fault be left by a jump.
#if defined(__SANITIZE_THREAD__)
#define FAULTS_END_THE_PROCESS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FAULTS_END_THE_PROCESS 1
#endif
#endif

static volatile sig_atomic_t other_faults;

static void on_fault(int number) {
  hd_sim_handle_fault();
  other_faults = 1;
  signal(number, SIG_DFL);
}

static void an_illegal_access_ends_the_kernel_alone(void **state) {
  (void)state;
#ifdef FAULTS_END_THE_PROCESS
  skip();
#endif
  hd_sim_kernel_t kernel = kernel_of(CODE(wild_kernel), false, NULL, 9, 32, 0);
  struct sigaction action = {.sa_handler = on_fault}, before, during;
  sigaction(SIGSEGV, &action, &before);
  launch_badly(&kernel, &(hd_sim_options_t){.pool = pool}, HD_E0607,
               "illegal memory access; --sanitize finds the place");
  launch_badly(&kernel, &(hd_sim_options_t){0}, HD_E0607, "'k' failed");
  // Twice: the signal is not left blocked, and the handler is the program's.
  launch_badly(&kernel, &(hd_sim_options_t){0}, HD_E0607, "'k' failed");
  sigaction(SIGSEGV, &before, &during);
  assert_ptr_equal(during.sa_handler, on_fault);
  assert_int_equal(other_faults, 0);
}

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { NUM_SIGNALS = sizeof signals / sizeof *signals };
static struct sigaction seen[NUM_SIGNALS];

static void looking_kernel(void *const *args, hd_sim_block_t *block) {
  (void)args;
  (void)block;
  for (size_t i = 0; i < NUM_SIGNALS; i++)
    sigaction(signals[i], NULL, &seen[i]);
}

static void signals_are_the_host_programs(void **state) {
  (void)state;
  hd_sim_kernel_t kernel =
      kernel_of(CODE(looking_kernel), false, NULL, 1, 32, 0);
  struct sigaction before[NUM_SIGNALS], after;
  for (size_t i = 0; i < NUM_SIGNALS; i++)
    sigaction(signals[i], NULL, &before[i]);
  launch_well(&kernel, &(hd_sim_options_t){0});
  for (size_t i = 0; i < NUM_SIGNALS; i++) {
    sigaction(signals[i], NULL, &after);
    assert_ptr_equal(seen[i].sa_handler, before[i].sa_handler);
    assert_ptr_equal(after.sa_handler, before[i].sa_handler);
  }
}

static void endless_kernel(void *const *args, hd_sim_block_t *block) {
  (void)args;
  while (!__atomic_load_n(&block->stop, __ATOMIC_RELAXED))
    ;
}

static void spinning_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  while (t == 1)
    YIELD();
  BARRIER();
  END();
}
KERNEL(spinning, spinning_body)

typedef struct bounded {
  hd_sim_kernel_t kernel;
  hd_sim_options_t options;
  hd_diagnostics_t *diags;
} bounded_t;

static void run_bounded(void *argument) {
  bounded_t *bounded = argument;
  hd_sim_launch(&bounded->kernel, &bounded->options, bounded->diags, NULL);
}

static void check_stopped(void *entry, bool coroutine) {
  hd_diagnostics_t diags;
  hd_diagnostics_init(&diags);
  hd_budget_t budget = {.deadline_ns = hd_clock_ns() + 50 * 1000 * 1000};
  bounded_t bounded = {kernel_of(entry, coroutine, NULL, 5, 64, 0),
                       {.pool = pool, .budget = &budget},
                       &diags};
  assert_int_equal(hd_budget_guard(&budget, run_bounded, &bounded),
                   HD_EXHAUSTED_TIME);
  budget.deadline_ns = 0;
  atomic_bool interrupted = true;
  budget.interrupted = &interrupted;
  assert_int_equal(hd_budget_guard(&budget, run_bounded, &bounded),
                   HD_EXHAUSTED_INTERRUPT);
  hd_diagnostics_fini(&diags);
}

static void a_runaway_kernel_is_stopped(void **state) {
  (void)state;
  check_stopped(CODE(endless_kernel), false);
  check_stopped(CODE(spinning), true);
}

static void impossible_launches_are_refused(void **state) {
  (void)state;
  hd_sim_kernel_t kernel = kernel_of(CODE(reverse), true, NULL, 1, 1025, 0);
  launch_badly(&kernel, &(hd_sim_options_t){0}, HD_E0606, "1024 threads");
  kernel = kernel_of(CODE(reverse), true, NULL, 1, 0, 0);
  launch_badly(&kernel, &(hd_sim_options_t){0}, HD_E0606, "below one");
  kernel = kernel_of(CODE(reverse), true, NULL, 65536, 1, 0);
  kernel.grid[1] = 65535;
  launch_badly(&kernel, &(hd_sim_options_t){0}, HD_E0606,
               "65536 x 65535 x 1 blocks, and the simulator runs 2^31 - 1");
  kernel.grid[1] = 65536;
  launch_badly(&kernel, &(hd_sim_options_t){0}, HD_E0606, "65535");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_pool, drop_pool)
HD_UNIT_TESTS(TEST(loop_form_runs_each_block_once), TEST(no_block_is_no_work),
              TEST(barriers_order_shared_memory),
              TEST(named_barriers_pair_warps),
              TEST(blocks_may_wait_for_later_ones),
              TEST(clusters_tile_the_grid), TEST(copies_land_late_or_early),
              TEST(a_barrier_that_not_all_reach_is_told),
              TEST(a_warp_torn_apart_is_told),
              TEST(an_illegal_access_ends_the_kernel_alone),
              TEST(signals_are_the_host_programs),
              TEST(a_runaway_kernel_is_stopped),
              TEST(impossible_launches_are_refused))
