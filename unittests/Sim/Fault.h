// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of --sanitize share: checked accesses by hand-written kernels
// to an input, an output, flags and shared memory, and a launch at five seeds,
// with late and with early copies, that expects one fault or none.
#ifndef HIDET_UNITTESTS_SIM_FAULT_H
#define HIDET_UNITTESTS_SIM_FAULT_H

#include "IR/Tensor.h"
#include "Kernel.h"

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
static inline int32_t checked_load(frame_t *f, const hd_sim_site_t *site,
                                   const int32_t *base, int64_t index,
                                   int64_t size) {
  const int64_t values[] = {index, size};
  bool good = hd_sim_check(f->thread, site, values, base + index);
  return good ? base[index] : 0;
}
static inline void checked_store(frame_t *f, const hd_sim_site_t *site,
                                 int32_t *base, int64_t index, int64_t size,
                                 int32_t value) {
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
static inline uint64_t place(frame_t *f, const hd_sim_site_t *site,
                             const void *base, int64_t index, int64_t size) {
  const int64_t values[] = {index, size};
  const char *address = (const char *)base + 4 * index;
  return hd_sim_check(f->thread, site, values, address) ? bits_of(address) : 0;
}
#define IN_SHARED(index)                                                       \
  place(f, &into, SHARED(int32_t), index, SHARED_WORDS), bits_of(&into)
#define IN_A(index)                                                            \
  place(f, &from, ARG(int32_t, 0), index, GLOBAL_WORDS), bits_of(&from)
#define FLAG bits_of(ARG(int32_t, 2)), bits_of(&flag)

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
static inline bool is_fault(const hd_diagnostic_t *diagnostic,
                            const fault_t *fault) {
  return diagnostic->severity == HD_ERROR && diagnostic->code == fault->code &&
         strstr(diagnostic->message, fault->text) &&
         (!fault->line || diagnostic->loc.offset == 2 * fault->line);
}

static inline void check_result(bool good, const hd_diagnostics_t *diags,
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

static inline void run_once(void *entry, int blocks, int threads, uint64_t seed,
                            hd_sim_async_t async, const fault_t *fault,
                            hd_sim_stats_t *stats) {
  int32_t *pointers[] = {in, out, flags};
  void *args[] = {&pointers[0], &pointers[1], &pointers[2]};
  memset(flags, 0, sizeof flags);
  memset(written, 0, sizeof written);
  const hd_sim_buffer_t buffers[] = {
      {"a", in, sizeof in, 4, true, NULL, 0},
      {"c", out, sizeof out, 4, false, written, 0},
      {"flag", flags, sizeof flags, 4, false, NULL, 0}};
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

static inline void run(void *entry, int blocks, int threads, fault_t fault) {
  for (uint64_t seed = 0; seed < 5; seed++) {
    run_once(entry, blocks, threads, seed, HD_SIM_ASYNC_LATEST, &fault, NULL);
    run_once(entry, blocks, threads, seed, HD_SIM_ASYNC_EARLIEST, &fault, NULL);
  }
}

#define RUN(name, blocks, threads, code, text, line, other)                    \
  run(CODE(name), blocks, threads, (fault_t){code, text, line, other})
#define RUN_WELL(name, blocks, threads) run(CODE(name), blocks, threads, none)

#endif
