// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Planted faults, each found and named at five seeds with late and early
// copies; and what is right, of which nothing is said.

#include "IR/Intrinsic.h"
#include "IR/Tensor.h"
#include "SimKernel.h"

#include <stdio.h>

// Places in a text of a hundred lines; offset is the line.
#define SITE(line, name, how, where, wide)                                     \
  {.source = 1,                                                                \
   .offset = 2 * (line),                                                       \
   .tensor = name,                                                             \
   .access = how,                                                              \
   .scope = where,                                                             \
   .rank = 1,                                                                  \
   .element_bits = 32,                                                         \
   .lanes = wide}
static const hd_sim_site_t
    put = SITE(10, "sa", HD_SIM_STORE, HD_SCOPE_SHARED, 1),
    get = SITE(20, "sa", HD_SIM_LOAD, HD_SCOPE_SHARED, 1),
    get4 = SITE(21, "sa", HD_SIM_LOAD, HD_SCOPE_SHARED, 4),
    into = SITE(30, "sa", HD_SIM_PLACE, HD_SCOPE_SHARED, 1),
    from = SITE(31, "a", HD_SIM_PLACE, HD_SCOPE_GLOBAL, 1),
    load = SITE(40, "a", HD_SIM_LOAD, HD_SCOPE_GLOBAL, 1),
    store = SITE(50, "c", HD_SIM_STORE, HD_SCOPE_GLOBAL, 1),
    load_c = SITE(51, "c", HD_SIM_LOAD, HD_SCOPE_GLOBAL, 1),
    flag = SITE(60, "flag", HD_SIM_PLACE, HD_SCOPE_GLOBAL, 1),
    count = SITE(61, "sa", HD_SIM_PLACE, HD_SCOPE_SHARED, 1),
    wait_1 = SITE(70, "barrier", HD_SIM_PLACE, HD_SCOPE_SHARED, 1),
    wait_2 = SITE(71, "barrier", HD_SIM_PLACE, HD_SCOPE_SHARED, 1),
    claim = SITE(80, "n is even", HD_SIM_PLACE, HD_SCOPE_SHARED, 1);

enum { SHARED_WORDS = 1024, GLOBAL_WORDS = 256 };

// A checked load of a word, of those of shared memory or of a buffer.
static int32_t checked_load(frame_t *f, const hd_sim_site_t *site,
                            const int32_t *base, int64_t index, int64_t size) {
  const int64_t values[] = {index, size};
  bool good = hd_sim_check(f->thread, site, values, base + index);
  return good ? base[index] : 0;
}
static void checked_store(frame_t *f, const hd_sim_site_t *site, int32_t *base,
                          int64_t index, int64_t size, int32_t value) {
  const int64_t values[] = {index, size};
  if (hd_sim_check(f->thread, site, values, base + index))
    base[index] = value;
}
#define GET(index) checked_load(f, &get, SHARED(int32_t), index, SHARED_WORDS)
#define PUT(index, value)                                                      \
  checked_store(f, &put, SHARED(int32_t), index, SHARED_WORDS, value)
#define LOAD(index) checked_load(f, &load, ARG(int32_t, 0), index, GLOBAL_WORDS)
#define LOAD_C(index)                                                          \
  checked_load(f, &load_c, ARG(int32_t, 1), index, GLOBAL_WORDS)
#define STORE(index, value)                                                    \
  checked_store(f, &store, ARG(int32_t, 1), index, GLOBAL_WORDS, value)
// A place in shared memory or in `a`, as the two slots that it takes.
static uint64_t place(frame_t *f, const hd_sim_site_t *site, const void *base,
                      int64_t index, int64_t size) {
  const int64_t values[] = {index, size};
  const char *address = (const char *)base + 4 * index;
  return hd_sim_check(f->thread, site, values, address) ? bits_of(address) : 0;
}
#define IN_SHARED(index)                                                       \
  place(f, &into, SHARED(int32_t), index, SHARED_WORDS), bits_of(&into)
#define IN_A(index)                                                            \
  place(f, &from, ARG(int32_t, 0), index, GLOBAL_WORDS), bits_of(&from)
#define FLAG bits_of(ARG(int32_t, 2)), bits_of(&flag)

// --- Running ---

typedef struct fault {
  hd_diagnostic_code_t code; // HD_DIAGNOSTIC_COUNT: none.
  const char *text;
  unsigned line;       // Of the first finding.
  unsigned other_line; // Of its note; 0: none.
} fault_t;

static const fault_t none = {HD_DIAGNOSTIC_COUNT, "", 0, 0};

static int32_t in[GLOBAL_WORDS], out[GLOBAL_WORDS], flags[4];
static uint8_t written[GLOBAL_WORDS / 2];

// Whether the diagnostic is the fault's. A read too many may come before the
// write that it races with, and so be of what nobody has written: then that is
// told first.
static bool is_fault(const hd_diagnostic_t *diagnostic, const fault_t *fault) {
  return diagnostic->severity == HD_ERROR && diagnostic->code == fault->code &&
         strstr(diagnostic->message, fault->text) &&
         (!fault->line || diagnostic->loc.offset == 2 * fault->line);
}

static void check_result(bool good, const hd_diagnostics_t *diags,
                         const fault_t *fault) {
  bool expected = fault->code == HD_DIAGNOSTIC_COUNT;
  const hd_diagnostic_t *found = diags->first;
  while (found && !is_fault(found, fault))
    found = found->next;
  if (expected ? diags->first != NULL : !found)
    for (const hd_diagnostic_t *d = diags->first; d; d = d->next)
      print_error("%s: %s\n", hd_diagnostic_code_name(d->code), d->message);
  assert_int_equal(good, expected);
  if (expected) {
    assert_null(diags->first);
    return;
  }
  assert_non_null(found);
  if (!fault->other_line)
    return;
  assert_non_null(found->next);
  assert_int_equal(found->next->severity, HD_NOTE);
  assert_int_equal(found->next->loc.offset, 2 * fault->other_line);
}

static void run_once(void *entry, int blocks, int threads, uint64_t seed,
                     hd_sim_async_t async, const fault_t *fault,
                     hd_sim_stats_t *stats) {
  int32_t *pointers[] = {in, out, flags};
  void *args[] = {&pointers[0], &pointers[1], &pointers[2]};
  memset(flags, 0, sizeof flags);
  memset(written, 0, sizeof written);
  const hd_sim_buffer_t buffers[] = {
      {"a", in, sizeof in, 4, true, NULL},
      {"c", out, sizeof out, 4, false, written},
      {"flag", flags, sizeof flags, 4, false, NULL}};
  hd_sim_kernel_t kernel =
      kernel_of(entry, true, args, blocks, threads, 4 * SHARED_WORDS);
  kernel.buffers = buffers;
  kernel.num_buffers = 3;
  hd_diagnostics_t diags;
  hd_diagnostics_init(&diags);
  hd_sim_options_t options = {.sanitize = true, .seed = seed, .async = async};
  bool good = hd_sim_launch(&kernel, &options, &diags, stats);
  check_result(good, &diags, fault);
  hd_diagnostics_fini(&diags);
}

static void run(void *entry, int blocks, int threads, fault_t fault) {
  for (uint64_t seed = 0; seed < 5; seed++) {
    run_once(entry, blocks, threads, seed, HD_SIM_ASYNC_LATEST, &fault, NULL);
    run_once(entry, blocks, threads, seed, HD_SIM_ASYNC_EARLIEST, &fault, NULL);
  }
}

#define RUN(name, blocks, threads, code, text, line, other)                    \
  run(CODE(name), blocks, threads, (fault_t){code, text, line, other})
#define RUN_WELL(name, blocks, threads) run(CODE(name), blocks, threads, none)

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

// --- Asynchronous copies ---

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
  RUN(claim_kernel, 1, 32, HD_E0708, "n is even (thread 6 of block 0)", 80, 0);
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
              cmocka_unit_test(races_in_shared_memory_are_found),
              cmocka_unit_test(races_in_global_memory_are_found),
              cmocka_unit_test(blocks_are_ordered_by_atomics),
              cmocka_unit_test(atomics_race_with_plain_reads),
              cmocka_unit_test(faulty_barriers_are_found),
              cmocka_unit_test(missing_waits_are_found),
              cmocka_unit_test(deadlock_is_found),
              cmocka_unit_test(misaligned_accesses_are_found),
              cmocka_unit_test(assertions_and_divisions_are_told),
              cmocka_unit_test(bank_conflicts_are_counted))
