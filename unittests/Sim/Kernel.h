// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels written by hand as CodeGen would make them: a coroutine is a function
// that jumps to where it left off, on a frame whose first word is itself.
//
//   static void body(void *pointer) {
//     FRAME(pointer);
//     BEGIN();
//     ...
//     BARRIER();
//     ...
//     END();
//   }
//   KERNEL(name, body)
//
// What must outlive a suspension lies in the frame: f->i, f->x, f->slots.
#ifndef HIDET_UNITTESTS_SIM_KERNEL_H
#define HIDET_UNITTESTS_SIM_KERNEL_H

#include "CodeGen/SimAbi.h"
#include "Sim/Functions.h"
#include "Sim/Sim.h"
#include "UnitTest.h"

#include <string.h>

typedef struct frame {
  void (*resume)(void *);
  hd_sim_thread_t *thread;
  void *const *args;
  int step, i;
  float x;
  uint64_t slots[16];
  uint32_t registers[16];
} frame_t;

static inline void *enter(void *const *args, hd_sim_thread_t *thread,
                          void (*body)(void *)) {
  frame_t *f = hd_sim_frame(thread, sizeof *f, 16);
  *f = (frame_t){.resume = body, .thread = thread, .args = args};
  body(f);
  return f;
}

// A pointer argument.
#define ARG(type, i) (*(type **)f->args[i])
#define SHARED(type) ((type *)(void *)f->thread->block->shared)
#define FRAME(pointer)                                                         \
  frame_t *f = (pointer);                                                      \
  const int t = f->thread->linear, b = f->thread->block->block[0];             \
  (void)t, (void)b
#define BEGIN()                                                                \
  switch (f->step) {                                                           \
  case 0:
#define END()                                                                  \
  }                                                                            \
  f->resume = NULL
// Steps are numbered by __COUNTER__, so that a macro may suspend twice.
#define SUSPEND(asked, called, at)                                             \
  SUSPEND_AS(asked, called, at, __COUNTER__ + 1)
#define SUSPEND_AS(asked, called, at, number)                                  \
  do {                                                                         \
    f->thread->request = (asked);                                              \
    f->thread->function = (void *)(uintptr_t)(called);                         \
    f->thread->site = (at);                                                    \
    f->thread->slots = f->slots;                                               \
    f->step = (number);                                                        \
    return;                                                                    \
  case (number):;                                                              \
  } while (0)
#define BARRIER_AT(site) SUSPEND(HD_SIM_BLOCK, hd_sim_barrier, site)
#define BARRIER() BARRIER_AT(NULL)
#define COLLECTIVE(name) SUSPEND(HD_SIM_WARP, name, NULL)
#define YIELD() SUSPEND(HD_SIM_YIELD, NULL, NULL)
#define CALL(name, ...)                                                        \
  do {                                                                         \
    const uint64_t given[] = {__VA_ARGS__};                                    \
    memcpy(f->slots, given, sizeof given);                                     \
    name(f->thread, f->slots);                                                 \
  } while (0)
#define KERNEL(name, body)                                                     \
  static void *name(void *const *args, hd_sim_thread_t *thread) {              \
    return enter(args, thread, body);                                          \
  }

static inline uint64_t bits_of(const void *pointer) {
  return (uint64_t)(uintptr_t)pointer;
}

// A launch of one dimension.
static inline hd_sim_kernel_t kernel_of(void *entry, bool coroutine,
                                        void *const *args, int grid, int block,
                                        size_t shared_bytes) {
  return (hd_sim_kernel_t){.name = "k",
                           .entry = entry,
                           .coroutine = coroutine,
                           .args = args,
                           .grid = {grid, 1, 1},
                           .block = {block, 1, 1},
                           .cluster = {1, 1, 1},
                           .shared_bytes = shared_bytes};
}

#define CODE(function) ((void *)(uintptr_t)(function))

// Launches and checks that it went well.
static inline void launch_well(const hd_sim_kernel_t *kernel,
                               const hd_sim_options_t *options) {
  hd_diagnostics_t diags;
  hd_diagnostics_init(&diags);
  bool good = hd_sim_launch(kernel, options, &diags, NULL);
  if (diags.first)
    print_error("%s\n", diags.first->message);
  assert_true(good);
  assert_null(diags.first);
  hd_diagnostics_fini(&diags);
}

// Launches and checks that the first error is this one and says this.
static inline void launch_badly(const hd_sim_kernel_t *kernel,
                                const hd_sim_options_t *options,
                                hd_diagnostic_code_t code, const char *text) {
  hd_diagnostics_t diags;
  hd_diagnostics_init(&diags);
  assert_false(hd_sim_launch(kernel, options, &diags, NULL));
  assert_non_null(diags.first);
  if (diags.first->code != code || !strstr(diags.first->message, text))
    print_error("%s: %s\n", hd_diagnostic_code_name(diags.first->code),
                diags.first->message);
  assert_int_equal(diags.first->code, code);
  assert_non_null(strstr(diags.first->message, text));
  hd_diagnostics_fini(&diags);
}

#endif
