// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs: kernels specialized to the sizes of their launches.
#include "Runtime/Program.h"
#include "IR/Text/Parser.h"
#include "IR/Text/Printer.h"
#include "TaskMapping/Passes.h"
#include "UnitTest.h"

#include <stdlib.h>
#include <string.h>

static const char text[] =
    "fn put(inout c: f32[n], i: i32, x: f32) {\n"
    "  for p in 0..1 {\n"
    "    c[i] = x\n"
    "    return\n" // From inside a loop: not inlined.
    "  }\n"
    "}\n"
    "kernel fill(n: i32, seed: i32, inout c: f32[n])\n"
    "  grid(ceildiv(n, 64)) block(64) {\n"
    "  let i = block * 64 + thread\n"
    "  if i < n { put(c, i, f32(seed + n)) }\n"
    "}\n"
    "kernel some(n: i32, m: i32, inout c: f32[n]) grid(1) block(64) {\n"
    "  if m > 0 {\n"
    "    shared s: f32[m]\n"
    "    if thread < m { s[thread] = 2 }\n"
    "    barrier()\n"
    "    if thread < n { c[thread] = s[0] }\n"
    "  }\n"
    "}\n"
    "kernel even(n: i32, inout c: f32[n]) grid(1) block(1) {\n"
    "  let half = n / 2\n"
    "  assert n % 2 == 0, \"n is even\"\n"
    "  c[half] = 1\n"
    "}\n"
    "kernel sum(n: i32, in a: f32[n], in b: f32[n], out c: f32[n])\n"
    "  grid(1) block(32) {\n"
    "  if thread < n { c[thread] = a[thread] + b[thread] }\n"
    "}\n"
    "plan main(n: i32, inout c: f32[n], inout d: f32[n * 2]) {\n"
    "  launch fill(n, 1, c)\n"
    "  launch fill(n, 2, c)\n"
    "  launch fill(n * 2, 3, d)\n"
    "}\n";

typedef struct fixture {
  hd_context_t context;
  hd_module_t *module;
  hd_device_t *device;
  hd_arena_t arena;
  hd_program_t program;
} fixture_t;

static int setup(void **state) {
  fixture_t *f = calloc(1, sizeof(*f));
  hd_context_init(&f->context);
  hd_arena_init(&f->arena, NULL);
  f->module = hd_module_create(&f->context);
  assert_true(
      hd_module_parse_into(f->module, "test.hir", text, strlen(text), 1));
  hd_device_options_t options = {.threads = 1};
  f->device = hd_device_open_sim(&f->context, &options);
  *state = f;
  return f->device == NULL;
}

static int teardown(void **state) {
  fixture_t *f = *state;
  hd_program_fini(&f->program);
  hd_device_close(f->device);
  hd_context_fini(&f->context);
  hd_arena_fini(&f->arena);
  free(f);
  return 0;
}

// Values of the entry's scalar parameters, in order.
static void make(fixture_t *f, const char *name, const int64_t *values,
                 bool specialize) {
  const hd_func_t *entry = hd_module_find(f->module, name, -1);
  hd_env_t env = {.sms = f->device->info.sms};
  for (uint32_t i = 0; i < entry->num_params; i++)
    if (!entry->params[i]->tensor)
      assert_true(hd_bind_int(&f->context, &env, &f->arena, entry->params[i],
                              *values++));
  hd_program_options_t options = {.specialize = specialize, .explain = true};
  hd_program_fini(&f->program);
  assert_true(hd_program_init(&f->program, f->device, f->module, entry, &env,
                              &options));
}

static void has(const hd_module_t *module, const char *part, bool wanted) {
  hd_buffer_t out = {0};
  hd_module_print(module, &out);
  if ((strstr(hd_buffer_text(&out), part) != NULL) != wanted)
    fail_msg("'%s' is %s in\n%s", part, wanted ? "not" : "", out.data);
  hd_buffer_fini(&out);
}

// Sizes that an assertion rules out are told before anything runs.
static void refuses_what_is_ruled_out(void **state) {
  fixture_t *f = *state;
  hd_env_t env = {.sms = 132};
  const hd_func_t *entry = hd_module_find(f->module, "even", -1);
  assert_true(hd_bind_int(&f->context, &env, &f->arena, entry->params[0], 7));
  hd_program_options_t options = {.specialize = true};
  assert_false(hd_program_init(&f->program, f->device, f->module, entry, &env,
                               &options));
  assert_int_equal(f->context.diags.first->code, HD_E0708);
  assert_string_equal(f->context.diags.first->message,
                      "assertion failed: n is even");
}

static void lower_and_load(fixture_t *f) {
  const hd_pass_t lower = {.name = "lower",
                           .run = hd_pass_lower,
                           .level = HD_LEVEL_KERNEL,
                           .options = "",
                           .summary = ""};
  hd_pass_config_t config = {.verify_each = true};
  assert_true(hd_pass_run(f->program.module, &lower, NULL, &config).ok);
  assert_true(hd_program_load(&f->program));
}

// A kernel for each set of sizes; other scalars stay arguments.
static void makes_a_kernel_for_each_size(void **state) {
  fixture_t *f = *state;
  int64_t n = 100;
  make(f, "main", &n, true);
  assert_int_equal(f->program.sites.size, 3);
  assert_int_equal(f->program.variants.size, 2);
  assert_int_equal(f->program.sites.data[1].variant, 0);
  assert_int_equal(f->program.sites.data[2].variant, 1);
  has(f->program.module, "inout c: f32[100]", true);
  has(f->program.module, "inout c: f32[200]", true);
  has(f->program.module, "grid((100 + 64 - 1) / 64)", true);
  has(f->program.module, "seed + 100", true);
  has(f->module, "100", false);

  make(f, "main", &n, false);
  assert_int_equal(f->program.variants.size, 1);
  has(f->program.module, "100", false);
}

// What is run does not depend on it, and the module serves other sizes.
static void runs_at_its_sizes(void **state) {
  fixture_t *f = *state;
  static const int64_t sizes[] = {100, 7, 100};
  for (int k = 0; k < 3; k++) {
    int64_t n = sizes[k];
    make(f, "main", &n, k < 2);
    lower_and_load(f);
    float c[100] = {0}, d[200] = {0};
    hd_slot_t slots[3] = {{0},
                          {NULL, (uintptr_t)c, (size_t)n * 4},
                          {NULL, (uintptr_t)d, (size_t)n * 8}};
    assert_true(hd_program_run(&f->program, slots));
    for (int64_t i = 0; i < 2 * n; i++) {
      assert_true(d[i] == (float)(2 * n + 3));
      assert_true(i >= n || c[i] == (float)(n + 2));
    }
    has(f->module, "for p in 0..1", true); // Not lowered.
  }
}

// A dimension of 0 may not be written down; behind a condition it does no harm.
static void stays_general_where_it_must(void **state) {
  fixture_t *f = *state;
  int64_t values[] = {4, 0};
  make(f, "some", values, true);
  has(f->program.module, "shared s: f32[m]", true);
  assert_int_equal(f->context.diags.num_errors, 0);
  assert_non_null(strstr(f->context.diags.last->message, "stays general"));
  values[1] = 64;
  make(f, "some", values, true);
  has(f->program.module, "shared s: f32[64]", true);
}

// What is written is given once; what is read may be shared.
static void refuses_overlapping_tensors(void **state) {
  fixture_t *f = *state;
  int64_t n = 8;
  float memory[24] = {0};
  uintptr_t at = (uintptr_t)memory;
  make(f, "sum", &n, true);
  lower_and_load(f);
  hd_slot_t slots[4] = {{0}, {NULL, at, 32}, {NULL, at, 32}, {NULL, at, 32}};
  assert_false(hd_program_run(&f->program, slots));
  assert_int_equal(f->context.diags.last->code, HD_E0809);
  assert_non_null(strstr(f->context.diags.last->message,
                         "'c', which 'sum' writes, lies in the same memory as "
                         "'a'"));
  slots[3].address = at + 28; // Its first element is the last of the others'.
  assert_false(hd_program_run(&f->program, slots));
  slots[3].address = at + 32;
  for (int i = 0; i < 8; i++)
    memory[i] = (float)i;
  assert_true(hd_program_run(&f->program, slots));
  assert_true(memory[8 + 7] == 14);
}

HD_UNIT_TESTS(cmocka_unit_test_setup_teardown(refuses_overlapping_tensors,
                                              setup, teardown),
              cmocka_unit_test_setup_teardown(makes_a_kernel_for_each_size,
                                              setup, teardown),
              cmocka_unit_test_setup_teardown(runs_at_its_sizes, setup,
                                              teardown),
              cmocka_unit_test_setup_teardown(refuses_what_is_ruled_out, setup,
                                              teardown),
              cmocka_unit_test_setup_teardown(stays_general_where_it_must,
                                              setup, teardown))
