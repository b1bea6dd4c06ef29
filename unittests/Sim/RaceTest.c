// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Planted races in shared and global memory, each found and named; and what is
// ordered by barriers, atomics and fences, of which nothing is said.
#include "Fault.h"
#include "IR/Intrinsic.h"

// --- Races in shared memory ---

static void turn_body(void *pointer) { // Right.
  FRAME(pointer);
  const int n = f->thread->block->block_dim[0];
  BEGIN();
  for (f->i = 0; f->i < 3; f->i++) {
    PUT(t, t);
    BARRIER();
    f->x += (float)GET(n - 1 - t);
    BARRIER();
  }
  END();
}
KERNEL(turn, turn_body)

static void no_barrier_body(void *pointer) {
  FRAME(pointer);
  const int n = f->thread->block->block_dim[0];
  BEGIN();
  PUT(t, t);
  BARRIER();
  f->x = (float)GET((t + 1) % n);
  PUT(t, t); // Others may not have read yet.
  END();
}
KERNEL(no_barrier, no_barrier_body)

static void both_write_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  PUT(t % 33, t);
  END();
}
KERNEL(both_write, both_write_body)

static void warp_order_body(void *pointer) { // Right: within warps.
  FRAME(pointer);
  BEGIN();
  PUT(t, t);
  COLLECTIVE(hd_sim_warp_sync);
  f->x = (float)GET(t ^ 1);
  COLLECTIVE(hd_sim_warp_sync);
  PUT(t, t);
  END();
}
KERNEL(warp_order, warp_order_body)

static void across_warps_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  PUT(t, t);
  COLLECTIVE(hd_sim_warp_sync);
  f->x = (float)GET(t ^ 32);
  END();
}
KERNEL(across_warps, across_warps_body)

// Many read one word; then one writes it too early.
static void many_readers_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  if (t == 0)
    PUT(0, 1);
  BARRIER();
  f->x = (float)GET(0);
  COLLECTIVE(hd_sim_warp_sync);
  if (t == 0)
    PUT(0, 2);
  END();
}
KERNEL(many_readers, many_readers_body)

static void named_body(void *pointer) { // Right: named barriers both ways.
  FRAME(pointer);
  BEGIN();
  for (f->i = 0; f->i < 4; f->i++) {
    if (t < 32 && f->i > 0) {
      f->slots[0] = 2, f->slots[1] = 64;
      SUSPEND(HD_SIM_BLOCK, hd_sim_barrier_sync, NULL);
    }
    if (t < 32) {
      PUT(t, f->i);
      f->slots[0] = 1, f->slots[1] = 64;
      SUSPEND(HD_SIM_BLOCK, hd_sim_barrier_arrive, NULL);
    } else {
      f->slots[0] = 1, f->slots[1] = 64;
      SUSPEND(HD_SIM_BLOCK, hd_sim_barrier_sync, NULL);
      f->x += (float)GET(63 - t);
      f->slots[0] = 2, f->slots[1] = 64;
      if (f->i < 3)
        SUSPEND(HD_SIM_BLOCK, hd_sim_barrier_arrive, NULL);
    }
  }
  END();
}
KERNEL(named, named_body)

static void too_early_body(void *pointer) { // The writer does not wait.
  FRAME(pointer);
  BEGIN();
  for (f->i = 0; f->i < 2; f->i++) {
    if (t < 32) {
      PUT(t, f->i);
      f->slots[0] = 1 + (uint64_t)f->i, f->slots[1] = 64;
      SUSPEND(HD_SIM_BLOCK, hd_sim_barrier_arrive, NULL);
    } else {
      f->slots[0] = 1 + (uint64_t)f->i, f->slots[1] = 64;
      SUSPEND(HD_SIM_BLOCK, hd_sim_barrier_sync, NULL);
      f->x += (float)GET(63 - t);
    }
  }
  END();
}
KERNEL(too_early, too_early_body)

static void races_in_shared_memory_are_found(void **state) {
  (void)state;
  RUN_WELL(turn, 3, 96);
  RUN_WELL(turn, 1, 1024);
  RUN_WELL(warp_order, 2, 64);
  RUN_WELL(named, 2, 64);
  RUN(both_write, 1, 64, HD_E0703, "writes 'sa'[", 10, 10);
  RUN(across_warps, 1, 64, HD_E0703, "nothing orders the two", 0, 0);
  RUN(many_readers, 1, 1024, HD_E0703, "writes 'sa'[0], which thread", 10, 20);
  RUN(no_barrier, 1, 64, HD_E0703, "nothing orders the two", 0, 0);
  RUN(too_early, 1, 64, HD_E0703, "nothing orders the two", 0, 0);
}

// --- Global memory: blocks, atomics, scopes ---

static void same_place_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  STORE(t, b);
  END();
}
KERNEL(same_place, same_place_body)

// Block 0 hands a value to block 1 through a flag; x is the order's strength.
#define HAND_OVER(name, give, take, scope)                                     \
  static void name##_body(void *pointer) {                                     \
    FRAME(pointer);                                                            \
    BEGIN();                                                                   \
    if (b == 0) {                                                              \
      STORE(t, 5);                                                             \
      BARRIER();                                                               \
      if (t == 0)                                                              \
        CALL(hd_sim_atomic_store_i32, FLAG, 1, give, scope);                   \
    } else {                                                                   \
      for (;;) {                                                               \
        CALL(hd_sim_atomic_load_i32, 0, FLAG, take, scope);                    \
        if (f->slots[0] || f->thread->block->stop)                             \
          break;                                                               \
        YIELD();                                                               \
      }                                                                        \
      f->x = (float)LOAD_C(t);                                                 \
    }                                                                          \
    END();                                                                     \
  }                                                                            \
  KERNEL(name, name##_body)
HAND_OVER(handed, HD_RELEASE, HD_ACQUIRE, HD_SYNC_DEVICE)
HAND_OVER(relaxed_give, HD_RELAXED, HD_ACQUIRE, HD_SYNC_DEVICE)
HAND_OVER(relaxed_take, HD_RELEASE, HD_RELAXED, HD_SYNC_DEVICE)
HAND_OVER(narrow, HD_RELEASE, HD_ACQUIRE, HD_SYNC_BLOCK)

// The same by fences and relaxed atomics; the barrier carries it on.
static void fenced_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  if (b == 0) {
    STORE(t, 5);
    BARRIER();
    if (t == 0) {
      CALL(hd_sim_fence, HD_RELEASE, HD_SYNC_DEVICE);
      CALL(hd_sim_atomic_add_i32, 0, FLAG, 1, HD_RELAXED, HD_SYNC_DEVICE);
    }
  } else {
    while (t == 0) {
      CALL(hd_sim_atomic_load_i32, 0, FLAG, HD_RELAXED, HD_SYNC_DEVICE);
      if (f->slots[0] || f->thread->block->stop)
        break;
      YIELD();
    }
    CALL(hd_sim_fence, HD_ACQUIRE, HD_SYNC_DEVICE);
    BARRIER();
    f->x = (float)LOAD_C(t);
  }
  END();
}
KERNEL(fenced, fenced_body)

// All blocks write, meet, and read what the others wrote, twice.
static void meet_body(void *pointer) {
  FRAME(pointer);
  const int blocks = f->thread->block->grid_dim[0];
  const int n = f->thread->block->block_dim[0];
  BEGIN();
  for (f->i = 1; f->i <= 3; f->i++) {
    STORE(b * n + t, f->i);
    BARRIER();
    if (t == 0) {
      CALL(hd_sim_atomic_add_i32, 0, FLAG, 1, HD_ACQ_REL, HD_SYNC_DEVICE);
      for (;;) {
        CALL(hd_sim_atomic_load_i32, 0, FLAG, HD_ACQUIRE, HD_SYNC_DEVICE);
        if ((int)f->slots[0] >= (2 * f->i - 1) * blocks ||
            f->thread->block->stop)
          break;
        YIELD();
      }
    }
    BARRIER();
    f->x += (float)LOAD_C((b + 1) % blocks * n + t);
    BARRIER();
    if (t == 0) {
      CALL(hd_sim_atomic_add_i32, 0, FLAG, 1, HD_ACQ_REL, HD_SYNC_DEVICE);
      for (;;) {
        CALL(hd_sim_atomic_load_i32, 0, FLAG, HD_ACQUIRE, HD_SYNC_DEVICE);
        if ((int)f->slots[0] >= 2 * f->i * blocks || f->thread->block->stop)
          break;
        YIELD();
      }
    }
    BARRIER();
  }
  END();
}
KERNEL(meet, meet_body)

static void histogram_body(void *pointer) { // Right.
  FRAME(pointer);
  BEGIN();
  if (t < 8)
    PUT(t, 0);
  BARRIER();
  CALL(hd_sim_atomic_add_i32, 0, bits_of(SHARED(int32_t) + t % 8),
       bits_of(&count), 1, HD_RELAXED, HD_SYNC_BLOCK);
  BARRIER();
  if (t < 8)
    CALL(hd_sim_atomic_add_i32, 0, bits_of(ARG(int32_t, 2) + t % 4),
         bits_of(&flag), (uint64_t)GET(t), HD_RELAXED, HD_SYNC_DEVICE);
  END();
}
KERNEL(histogram, histogram_body)

static void early_look_body(void *pointer) {
  FRAME(pointer);
  BEGIN();
  if (t < 8)
    PUT(t, 0);
  BARRIER();
  CALL(hd_sim_atomic_add_i32, 0, bits_of(SHARED(int32_t) + t % 8),
       bits_of(&count), 1, HD_RELAXED, HD_SYNC_BLOCK);
  COLLECTIVE(hd_sim_warp_sync);
  if (t < 8)
    f->x = (float)GET(t);
  END();
}
KERNEL(early_look, early_look_body)

static void races_in_global_memory_are_found(void **state) {
  (void)state;
  RUN(same_place, 2, 32, HD_E0703, "of block 0 wrote; nothing orders the two",
      50, 50);
}

static void blocks_are_ordered_by_atomics(void **state) {
  (void)state;
  RUN_WELL(handed, 2, 32);
  RUN_WELL(fenced, 2, 64);
  RUN_WELL(meet, 4, 64);
  RUN_WELL(histogram, 3, 96);
  RUN(relaxed_give, 2, 32, HD_E0703, "of block 1 reads 'c'[", 51, 50);
  RUN(relaxed_take, 2, 32, HD_E0703, "of block 1 reads 'c'[", 51, 50);
  RUN(narrow, 2, 32, HD_E0703, "does an atomic on 'flag'", 60, 60);
}

static void atomics_race_with_plain_reads(void **state) {
  (void)state;
  RUN(early_look, 1, 96, HD_E0703, "nothing orders the two", 0, 0);
}

HD_UNIT_TESTS(cmocka_unit_test(races_in_shared_memory_are_found),
              cmocka_unit_test(races_in_global_memory_are_found),
              cmocka_unit_test(blocks_are_ordered_by_atomics),
              cmocka_unit_test(atomics_race_with_plain_reads))
