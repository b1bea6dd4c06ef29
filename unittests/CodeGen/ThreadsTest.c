// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Eight threads compile with a context each, for GPUs and the host, and get
// what one thread gets. (Run under ThreadSanitizer by the preset tsan.)
#include "CodeGenTest.h"

#include <pthread.h>

static const char text[] = "kernel scale(n: i32, in a: f16[n], out c: f16[n])\n"
                           "  grid(ceildiv(n, 128)) block(128) {\n"
                           "  shared s: f16[128]\n"
                           "  let i = block * 128 + thread\n"
                           "  s[thread] = a[i] else 0\n"
                           "  barrier()\n"
                           "  if i < n {\n"
                           "    c[i] = s[thread ^ 1] * f16(2.0) + s[thread]\n"
                           "  }\n"
                           "}\n";

static const char *const targets[] = {"sm_75", "sm_80", "sm_86",
                                      "sm_89", "sm_90", "sm_90a"};
enum { TARGETS = 6, THREADS = 8, ROUNDS = 3 };

static char *expected[TARGETS];

static void *no_symbol(const char *name) {
  static void *const somewhere = &expected;
  return strncmp(name, "hd_sim_", 7) == 0 ? somewhere : NULL;
}

static void *work(void *argument) {
  (void)argument;
  size_t wrong = 0;
  for (int round = 0; round < ROUNDS; round++)
    for (int t = 0; t < TARGETS; t++) {
      program_t p;
      program_init(&p, text);
      char *ptx = program_ptx(&p, targets[t]);
      wrong += !ptx || strcmp(ptx, expected[t]) != 0;
      free(ptx);
      hd_codegen_options_t options = {.target = hd_target_find("host")};
      hd_host_code_t *code =
          hd_host_code_create(p.module, program_kernel(&p), &options);
      wrong += !code || !hd_host_code_is_coroutine(code);
      hd_host_code_destroy(code);
      program_fini(&p);
    }
  return (void *)wrong;
}

static void threads_compile_side_by_side(void **state) {
  (void)state;
  hd_host_code_set_symbols(no_symbol);
  for (int t = 0; t < TARGETS; t++) {
    program_t p;
    program_init(&p, text);
    expected[t] = program_ptx(&p, targets[t]);
    assert_non_null(expected[t]);
    program_fini(&p);
  }
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
  for (int i = 0; i < THREADS; i++) {
    void *wrong;
    pthread_join(threads[i], &wrong);
    assert_null(wrong);
  }
  for (int t = 0; t < TARGETS; t++)
    free(expected[t]);
}

// A target machine serves so many kernels, then another one takes its place.
static void kernels_get_the_same_one_after_the_other(void **state) {
  (void)state;
  enum { KERNELS = 1100 };
  char *first = NULL;
  program_t p;
  program_init(&p, text);
  for (int i = 0; i < KERNELS; i++) {
    char *ptx = program_ptx(&p, "sm_90");
    assert_non_null(ptx);
    if (!first) {
      first = ptx;
      continue;
    }
    assert_string_equal(ptx, first);
    free(ptx);
  }
  free(first);
  program_fini(&p);
}

HD_UNIT_TESTS(cmocka_unit_test(threads_compile_side_by_side),
              cmocka_unit_test(kernels_get_the_same_one_after_the_other))
