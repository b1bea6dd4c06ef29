// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Planted faults of single threads and of barriers, each found and named; bank
// conflicts, counted.
#include "Fault.h"
#include "IR/Intrinsic.h"

// --- Bounds ---

static void bounds_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  STORE(t, LOAD(t == 7 ? 256 : t));
  END();
}
KERNEL(bounds, bounds_body)

static void below_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  PUT(t - (t == 9) * 10, 1);
  END();
}
KERNEL(below, below_body)

static void wide_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  const int64_t values[] = {SHARED_WORDS - 3, SHARED_WORDS};
  hd_sim_check(f->thread, &get4, values, SHARED(int32_t) + SHARED_WORDS - 3);
  END();
}
KERNEL(wide, wide_body)

static void far_copy_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  CALL(hd_sim_cp_async, IN_SHARED(4 * t), IN_A(t < 64 ? 4 * t : 254), 16, 0);
  END();
}
KERNEL(far_copy, far_copy_body)

static void out_of_bounds_is_found(void **state) {
  (void)state;
  RUN(bounds, 1, 32, HD_E0701,
      "thread 7 of block 0 reads 'a'[256]: index 256 of axis 0 is not within "
      "0 .. 255",
      40, 0);
  RUN(below, 3, 32, HD_E0701, "thread 9 of block 0 writes 'sa'[-1]", 10, 0);
  RUN(wide, 1, 1, HD_E0701, "index 1024 of axis 0", 21, 0);
  RUN(far_copy, 1, 65, HD_E0701, "thread 64 of block 0 touches 16 bytes", 31,
      0);
}

// --- Uninitialized reads ---

static void unwritten_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  if (t != 3)
    PUT(t, t);
  BARRIER();
  STORE(t, GET(31 - t));
  END();
}
KERNEL(unwritten, unwritten_body)

static void unwritten_out_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  STORE(t, 1);
  STORE(t, LOAD_C(t) + LOAD_C(t + (t == 5) * 100));
  END();
}
KERNEL(unwritten_out, unwritten_out_body)

static void uninitialized_reads_are_found(void **state) {
  (void)state;
  RUN(unwritten, 2, 32, HD_E0702,
      "thread 28 of block 0 reads 'sa'[3], which nobody has written", 20, 0);
  RUN(unwritten_out, 1, 32, HD_E0702, "thread 5 of block 0 reads 'c'[105]", 51,
      0);
}

// --- Barriers ---

static void divergent_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  if (t % 2 == 0)
    BARRIER_AT(&wait_1);
  else
    BARRIER_AT(&wait_2);
  END();
}
KERNEL(divergent, divergent_body)

static void missing_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  if (t < 40)
    BARRIER_AT(&wait_1);
  END();
}
KERNEL(missing, missing_body)

static void odd_count_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  f->slots[0] = 1, f->slots[1] = 33;
  SUSPEND(HD_SIM_BLOCK, hd_sim_barrier_sync, &wait_1);
  END();
}
KERNEL(odd_count, odd_count_body)

static void faulty_barriers_are_found(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 5; seed++) {
    // Which side comes second is the seed's; both are named.
    hd_diagnostics_t diags;
    hd_diagnostics_init(&diags);
    hd_sim_kernel_t kernel = kernel_of(CODE(divergent), true, NULL, 1, 64, 0);
    assert_false(hd_sim_launch(
        &kernel, &(hd_sim_options_t){.sanitize = true, .seed = seed}, &diags,
        NULL));
    assert_int_equal(diags.first->code, HD_E0704);
    assert_non_null(strstr(diags.first->message, "different barriers"));
    assert_int_equal(diags.first->loc.offset + diags.first->next->loc.offset,
                     2 * (70 + 71));
    hd_diagnostics_fini(&diags);
  }
  RUN(missing, 2, 64, HD_E0704, "40 of 64 threads have come, 24 have ended", 70,
      0);
  RUN(odd_count, 1, 64, HD_E0704, "33 threads, not a multiple of 32", 70, 0);
}

// --- The rest ---

static void stuck_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  for (;;) {
    CALL(hd_sim_atomic_load_i32, 0, FLAG, HD_ACQUIRE, HD_SYNC_DEVICE);
    if (f->slots[0] || f->thread->block->stop)
      break;
    SUSPEND(HD_SIM_YIELD, NULL, &flag);
  }
  END();
}
KERNEL(stuck, stuck_body)

static void deadlock_is_found(void **state) {
  (void)state;
  RUN(stuck, 3, 32, HD_E0706, "96 threads wait", 60, 0);
}

static void crooked_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  const int64_t values[] = {t + 1, SHARED_WORDS};
  hd_sim_check(f->thread, &get4, values, SHARED(int32_t) + t + 1);
  END();
}
KERNEL(crooked, crooked_body)

static void crooked_copy_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  CALL(hd_sim_cp_async, IN_SHARED(4), IN_A(2), 16, 0);
  END();
}
KERNEL(crooked_copy, crooked_copy_body)

static void misaligned_accesses_are_found(void **state) {
  (void)state;
  RUN(crooked, 1, 1, HD_E0707, "16 bytes at 'sa'[1], whose address 16", 21, 0);
  RUN(crooked_copy, 1, 1, HD_E0707, "16 bytes at 'a'[2], whose address 16", 31,
      0);
}

static void claim_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  if (t == 6)
    hd_sim_assert_failed(f->thread, f->thread->block, &claim);
  END();
}
KERNEL(claim_kernel, claim_body)

static void zero_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  if (t == 4)
    hd_sim_divided_by_zero(f->thread, &claim);
  END();
}
KERNEL(zero, zero_body)

static void assertions_and_divisions_are_told(void **state) {
  (void)state;
  RUN(claim_kernel, 1, 32, HD_E0708,
      "n is even (kernel 'k', thread 6 of block 0)", 80, 0);
  RUN(zero, 1, 32, HD_E0709, "thread 4 of block 0", 80, 0);
}

// Thread t of a warp touches word t * stride.
static void column_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  PUT(t * 32, t);
  PUT(t, t);
  END();
}
KERNEL(column, column_body)

static void broadcast_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  PUT(t * 2 % 64, t);
  BARRIER();
  f->x = (float)GET(0);
  END();
}
KERNEL(broadcast, broadcast_body)

static void bank_conflicts_are_counted(void **state) {
  (void)state;
  hd_sim_stats_t stats;
  hd_sim_kernel_t kernel =
      kernel_of(CODE(broadcast), true, NULL, 1, 32, 4 * SHARED_WORDS);
  hd_diagnostics_t diags;
  hd_diagnostics_init(&diags);
  assert_true(hd_sim_launch(&kernel, &(hd_sim_options_t){.sanitize = true},
                            &diags, &stats));
  // Stride 2: two passes. The read of one word by all is one.
  assert_int_equal(stats.num_bank_sites, 1);
  assert_int_equal(stats.bank_sites[0].accesses, 1);
  assert_int_equal(stats.bank_sites[0].passes, 2);
  assert_int_equal(stats.bank_sites[0].least, 1);
  assert_string_equal(stats.bank_sites[0].tensor, "sa");
  hd_diagnostics_clear(&diags);
  // A column of a 32-wide tile: 32 passes; the row after it, one.
  kernel.entry = CODE(column);
  hd_sim_launch(&kernel, &(hd_sim_options_t){.sanitize = true}, &diags, &stats);
  assert_int_equal(stats.num_bank_sites, 1);
  assert_int_equal(stats.bank_sites[0].accesses, 2);
  assert_int_equal(stats.bank_sites[0].passes, 33);
  assert_int_equal(stats.bank_sites[0].least, 2);
  hd_diagnostics_fini(&diags);
}

HD_UNIT_TESTS(cmocka_unit_test(out_of_bounds_is_found),
              cmocka_unit_test(uninitialized_reads_are_found),
              cmocka_unit_test(faulty_barriers_are_found),
              cmocka_unit_test(deadlock_is_found),
              cmocka_unit_test(misaligned_accesses_are_found),
              cmocka_unit_test(assertions_and_divisions_are_told),
              cmocka_unit_test(bank_conflicts_are_counted))
