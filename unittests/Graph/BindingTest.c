// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tasks are bound to operands: what each name stands for, and what is refused.
#include "TaskHelp.h"

#include "Support/Buffer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void expect_tensor(const hd_tensor_type_t *found, const char *text) {
  hd_tensor_type_t expected = hd_test_type(text);
  char shape[128];
  if (found->type != expected.type || found->rank != expected.rank ||
      memcmp(found->shape, expected.shape, found->rank * sizeof(int64_t)) != 0)
    fail_msg("%s%s, not %s", hd_scalar_name(found->type),
             hd_shape_text(found->shape, found->rank, shape, sizeof shape),
             text);
}

// The first outputs are of the types named.
static void expect(const hd_test_case_t *test, const char *outputs) {
  hd_context_t context;
  hd_context_init(&context);
  const hd_task_binding_t *binding = hd_test_bind(&context, test);
  if (!binding) {
    hd_buffer_t said = {0};
    hd_diagnostics_print(&context.diags, false, &said);
    fail_msg("%s\n%s", test->task, hd_buffer_text(&said));
  }
  const char *at = outputs;
  for (size_t i = 0; *at; i++) {
    assert_true(i < binding->task->outputs.size);
    expect_tensor(&binding->outputs[i], at);
    at += strcspn(at, "]") + 1;
    at += strspn(at, " ");
  }
  hd_context_fini(&context);
}

// It is refused, with one error that says so.
static void refuse(const hd_test_case_t *test, hd_diagnostic_code_t code,
                   const char *message) {
  hd_context_t context;
  hd_context_init(&context);
  assert_null(hd_test_bind(&context, test));
  assert_int_equal(context.diags.num_errors, 1);
  assert_int_equal(context.diags.first->code, code);
  if (!strstr(context.diags.first->message, message))
    fail_msg("'%s', not '%s'", context.diags.first->message, message);
  hd_context_fini(&context);
}

static const char matmul[] =
    "task matmul(a: T[..s, m, k], b: T[..t, k, n]) ->\n"
    "  c: T[..broadcast(s, t), m, n], d: A[m] where T in float, A = acc(T) {\n"
    "  c[..i, x, y] = T(sum(p: k) A(a[..i, x, p]) * A(b[..i, p, y]))\n"
    "  d[i] = 0\n}\n";
static const char softmax[] =
    "task softmax(x: T[..s, n, ..t]) -> y: T[..s], z: T[n, ..t]\n"
    "  where T in float {\n  y[..i] = 0\n  z[i, ..j] = 0\n}\n";
static const char conv[] =
    "task conv(x: T[b, c, ..s], w: T[o, c, ..k like s],\n"
    "  strides: i64 over s = 1, pads: i64 over s) ->\n"
    "  y: T[b, o, ..((s + 2 * pads - k) / strides + 1)]\n"
    "  where T in float, o % 2 == 0, strides > 0 {\n"
    "  y[n, f, ..i] = sum(p: c, ..q: k)\n"
    "    x[n, p, ..(i * strides + q - pads)] else 0 * w[f, p, ..q]\n}\n";
static const char expand[] =
    "task expand(x: T[..s], shape: i64 over t) -> y: T[..broadcast(s, t)]\n"
    "  where T in any {\n  y[..i] = x[..i]\n}\n";
static const char resize[] =
    "task resize(x: f32[..s], sizes: i64 over s, scale: f32 over s = 1) ->\n"
    "  y: f32[..sizes] {\n"
    "  y[..i] = x[..min(i, s - 1)]\n}\n";
static const char cast[] = "task cast(x: T[..s]) -> y: U[..s]\n"
                           "  where T in any, U in any {\n"
                           "  y[..i] = U(x[..i])\n}\n";
static const char nonzero[] =
    "task nonzero(x: T[..s, n], most: i64) -> at: i64[count <= n * most] {\n"
    "  size count = n\n  at[i] = i\n}\n";

static void types_are_bound(void **state) {
  (void)state;
  expect(&(hd_test_case_t){matmul, "f16[2, 3] f16[3, 5]", {0}},
         "f16[2, 5] f32[2]");
  expect(&(hd_test_case_t){matmul, "f64[2, 3] f64[3, 5]", {0}},
         "f64[2, 5] f64[2]");
  expect(&(hd_test_case_t){cast, "u4[2, 3]", {hd_test_type_of("U", HD_F8E4M3)}},
         "f8e4m3[2, 3]");
  expect(&(hd_test_case_t){cast, "u4[]", {hd_test_type_of("U", HD_BOOL)}},
         "bool[]");
  refuse(&(hd_test_case_t){cast, "u4[]", {0}}, HD_E1103,
         "type U of task 'cast' is not known");
  refuse(&(hd_test_case_t){matmul, "i32[2, 3] i32[3, 5]", {0}}, HD_E1104,
         "task 'matmul' does not take type i32");
  refuse(&(hd_test_case_t){matmul, "f32[2, 3] f16[3, 5]", {0}}, HD_E1103,
         "input 'b' has type f16, and f32 is needed");
  refuse(&(hd_test_case_t){cast,
                           "u4[]",
                           {hd_test_type_of("T", HD_I8),
                            hd_test_type_of("U", HD_I8)}},
         HD_E1103, "input 'x' has type u4, and i8 is needed");
  refuse(&(hd_test_case_t){cast, "u4[]", {hd_test_int("U", 3)}}, HD_E1103,
         "attribute 'U' is a type");
  refuse(&(hd_test_case_t){matmul,
                           "f16[2, 3] f16[3, 5]",
                           {hd_test_type_of("A", HD_F16)}},
         HD_E1103, "attribute 'A' is a type");
  static const char accumulated[] =
      "task t(x: T[n], y: A[n]) -> z: A[n] where A = acc(T) {\n"
      "  z[i] = A(x[i]) + y[i]\n}\n";
  expect(&(hd_test_case_t){accumulated, "u8[7] i32[7]", {0}}, "i32[7]");
  expect(&(hd_test_case_t){accumulated, "u16[7] u32[7]", {0}}, "u32[7]");
  refuse(&(hd_test_case_t){accumulated, "u8[7] u32[7]", {0}}, HD_E1103,
         "input 'y' has type u32, and i32 is needed");
}

static void sizes_are_bound(void **state) {
  (void)state;
  expect(&(hd_test_case_t){matmul, "f32[7, 1, 2, 3] f32[4, 3, 5]", {0}},
         "f32[7, 4, 2, 5] f32[2]");
  expect(&(hd_test_case_t){matmul, "f32[0, 2, 3] f32[1, 3, 0]", {0}},
         "f32[0, 2, 0]");
  refuse(&(hd_test_case_t){matmul, "f32[2, 3] f32[4, 5]", {0}}, HD_E1103,
         "axis 0 of input 'b' has size 4, and 3 is needed");
  refuse(&(hd_test_case_t){matmul, "f32[2, 2, 3] f32[3, 3, 5]", {0}}, HD_E1103,
         "do not broadcast");
  refuse(&(hd_test_case_t){matmul, "f32[3] f32[3, 5]", {0}}, HD_E1103,
         "input 'a' has rank 1, which does not fit");
  refuse(&(hd_test_case_t){matmul, "f32[2, 3]", {0}}, HD_E1103,
         "task 'matmul' has 2 inputs, found 1");
  static const char doubled[] = "task t(x: f32[n], y: f32[2 * n + 1]) ->\n"
                                "  z: f32[n * n - 4] {\n  z[i] = 0\n}\n";
  expect(&(hd_test_case_t){doubled, "f32[3] f32[7]", {0}}, "f32[5]");
  refuse(&(hd_test_case_t){doubled, "f32[3] f32[8]", {0}}, HD_E1103,
         "axis 0 of input 'y' has size 8, and 7 is needed");
  refuse(&(hd_test_case_t){doubled, "f32[1] f32[3]", {0}}, HD_E1103,
         "axis 0 of 'z' has size -3");
  refuse(&(hd_test_case_t){"task t(n: i64) -> z: f32[n * n] {\n  z[i] = 0\n}\n",
                           "",
                           {hd_test_int("n", INT64_C(1) << 40)}},
         HD_E1103, "the shape of 'z' cannot be computed");
  refuse(
      &(hd_test_case_t){"task t(n: i64) -> z: f32[n, n] {\n  z[i, j] = 0\n}\n",
                        "",
                        {hd_test_int("n", INT64_C(1) << 40)}},
      HD_E1103, "'z' spans more than 2^62 elements (a size of 0 counts as 1)");
  refuse(&(hd_test_case_t){"task t(n: i64) -> z: f32[4 / n] {\n  z[i] = 0\n}\n",
                           "",
                           {hd_test_int("n", 0)}},
         HD_E1103, "the shape of 'z' cannot be computed");
  refuse(&(hd_test_case_t){"task t(x: f32[n]) -> z: f32[] {\n"
                           "  z[] = sum(p: n - 1) x[p]\n}\n",
                           "f32[0]",
                           {0}},
         HD_E1103, "the range of 'p' is -1");
}

static void ranks_of_packs_are_found(void **state) {
  (void)state;
  expect(&(hd_test_case_t){softmax, "f32[2, 3, 4, 5]", {hd_test_int("s", 2)}},
         "f32[2, 3] f32[4, 5]");
  expect(&(hd_test_case_t){softmax, "f32[2, 3, 4, 5]", {hd_test_int("t", 0)}},
         "f32[2, 3, 4] f32[5]");
  expect(&(hd_test_case_t){softmax,
                           "f32[2, 3]",
                           {hd_test_int("t", 1), hd_test_int("s", 0)}},
         "f32[] f32[2, 3]");
  refuse(&(hd_test_case_t){softmax, "f32[2, 3]", {0}}, HD_E1103,
         "say so by an attribute 's'");
  refuse(&(hd_test_case_t){softmax, "f32[2, 3]", {hd_test_int("s", 2)}},
         HD_E1103, "input 'x' has rank 2, which does not fit");
  refuse(&(hd_test_case_t){softmax, "f32[2, 3]", {hd_test_int("s", -1)}},
         HD_E1103, "pack 's' cannot have -1 axes");
  refuse(&(hd_test_case_t){softmax,
                           "f32[2, 3]",
                           {hd_test_int("s", 1), hd_test_int("t", 1)}},
         HD_E1103, "input 'x' has rank 2, which does not fit");
  // Another input binds it first; one that stands after helps, too.
  expect(
      &(hd_test_case_t){
          "task t(x: f32[..s, n, ..t], z: f32[..t]) -> y: f32[..s] {\n"
          "  y[..i] = 0\n}\n",
          "f32[2, 3, 4, 5] f32[5]",
          {0}},
      "f32[2, 3]");
  // Twice in one shape.
  expect(
      &(hd_test_case_t){
          "task t(x: f32[..s, n, ..r like s]) -> y: f32[..(s * r)] {\n"
          "  y[..i] = 0\n}\n",
          "f32[2, 3, 4, 5, 6]",
          {0}},
      "f32[10, 18]");
  // The length of an attribute over it.
  static const int64_t pads[] = {3, 5};
  static const char pad[] =
      "task pad(x: f32[..s, ..t], pads: i64 over s) -> y: f32[..(s + pads)] {\n"
      "  y[..i] = 0\n}\n";
  expect(
      &(hd_test_case_t){pad, "f32[1, 2, 3]", {hd_test_ints("pads", 2, pads)}},
      "f32[4, 7]");
  expect(&(hd_test_case_t){pad,
                           "f32[1, 2, 3]",
                           {hd_test_int("pads", 2), hd_test_int("t", 2)}},
         "f32[3]");
}

static void attributes_are_bound(void **state) {
  (void)state;
  static const int64_t pads[] = {1, 0, 2}, minus[] = {1, -2};
  expect(&(hd_test_case_t){conv,
                           "f32[1, 3, 8, 9] f32[4, 3, 3, 3]",
                           {hd_test_ints("pads", 2, pads)}},
         "f32[1, 4, 8, 7]");
  expect(&(hd_test_case_t){conv,
                           "f32[1, 3, 8, 9] f32[4, 3, 3, 3]",
                           {hd_test_int("strides", 2), hd_test_int("pads", 1)}},
         "f32[1, 4, 4, 5]");
  refuse(&(hd_test_case_t){conv, "f32[1, 3, 8] f32[4, 3, 3]", {0}}, HD_E1103,
         "attribute 'pads' is missing");
  refuse(&(hd_test_case_t){conv,
                           "f32[1, 3, 8, 9] f32[4, 3, 3, 3]",
                           {hd_test_ints("pads", 3, pads)}},
         HD_E1103, "attribute 'pads' has 3 values, and pack 's' has 2 axes");
  refuse(&(hd_test_case_t){conv,
                           "f32[1, 3, 8] f32[4, 3, 3]",
                           {hd_test_float("pads", 1)}},
         HD_E1103, "attribute 'pads' is an integer");
  refuse(&(hd_test_case_t){conv,
                           "f32[1, 3, 8] f32[4, 3, 3]",
                           {hd_test_int("pads", 1), hd_test_int("padz", 1)}},
         HD_E1103, "task 'conv' has no attribute 'padz'");
  refuse(&(hd_test_case_t){conv,
                           "f32[1, 3, 8] f32[4, 3, 3]",
                           {hd_test_int("pads", 1), hd_test_int("pads", 1)}},
         HD_E1103, "attribute 'pads' is given twice");
  refuse(&(hd_test_case_t){conv,
                           "f32[1, 3, 8, 8] f32[4, 3, 3, 3]",
                           {hd_test_int("pads", 1),
                            hd_test_ints("strides", 2, minus)}},
         HD_E1103, "a condition of task 'conv' does not hold");
  refuse(&(hd_test_case_t){conv,
                           "f32[1, 3, 8] f32[3, 3, 3]",
                           {hd_test_int("pads", 1)}},
         HD_E1103, "a condition of task 'conv' does not hold");
  static const char numbers[] =
      "task t(x: T[n], b: i8 = -5, c: bool) -> y: T[n] {\n  y[i] = x[i]\n}\n";
  refuse(&(hd_test_case_t){numbers,
                           "f32[1]",
                           {hd_test_int("c", 1), hd_test_int("b", 128)}},
         HD_E1103, "attribute 'b' is 128, which i8 does not hold");
}

static void attributes_have_their_types(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  static const double e[] = {0.5, 0.1};
  const hd_task_binding_t *binding = hd_test_bind(
      &context,
      &(hd_test_case_t){
          "task t(x: T[n], z: f32[..s], a: T = 1, b: i8 = -5, c: bool,\n"
          "       d: f16 = 0.1, e: f32 over s = 2, f: f32 over s = 7) ->\n"
          "  y: T[n] {\n  y[i] = x[i]\n}\n",
          "f64[1] f32[1, 1]",
          {hd_test_int("c", 1), hd_test_floats("e", 2, e)}});
  assert_non_null(binding);
  const hd_bound_attribute_t *a = binding->attributes;
  assert_true(a[2].floats && a[2].floats[0] == 1 && !a[2].ints);
  assert_true(a[3].ints && a[3].ints[0] == -5 && !a[3].floats);
  assert_true(a[4].ints && a[4].ints[0] == 1);
  assert_true(a[5].floats[0] == 0.0999755859375); // The nearest f16.
  assert_true(a[6].rank == 2 && a[6].floats[0] == 0.5 &&
              a[6].floats[1] == (double)0.1f);
  assert_true(a[7].rank == 2 && a[7].floats[1] == 7);
  hd_context_fini(&context);
}

static void axes_lie_as_attributes_say(void **state) {
  (void)state;
  static const char product[] =
      "task t(a: T[..s, m, k] by ta, b: T[k, n], ta: bool = false) ->\n"
      "  c: T[..s, m, n] {\n"
      "  c[..i, x, y] = sum(p: k) a[..i, x, p] * b[p, y]\n}\n";
  expect(&(hd_test_case_t){product, "f32[4, 2, 3] f32[3, 5]", {0}},
         "f32[4, 2, 5]");
  expect(&(hd_test_case_t){product,
                           "f32[4, 3, 2] f32[3, 5]",
                           {hd_test_int("ta", 1)}},
         "f32[4, 2, 5]");
  refuse(&(hd_test_case_t){product,
                           "f32[4, 2, 3] f32[3, 5]",
                           {hd_test_int("ta", 1)}},
         HD_E1103, "axis 0 of input 'b' has size 3, and 2 is needed");
  static const char transpose[] =
      "task t(x: T[..s] by order, order: i64 over s) ->\n"
      "  y: T[..s], z: T[..permute(s, order)] {\n"
      "  y[..i] = x[..i]\n  z[..i] = T(i64(0))\n}\n";
  // numpy.transpose's shapes of (2, 3, 5) by (1, 2, 0), and of that again.
  expect(&(hd_test_case_t){transpose,
                           "f32[2, 3, 5]",
                           {hd_test_ints("order", 3, (int64_t[]){1, 2, 0})}},
         "f32[3, 5, 2] f32[5, 2, 3]");
  expect(
      &(hd_test_case_t){transpose, "f32[]", {hd_test_ints("order", 0, NULL)}},
      "f32[] f32[]");
  static const int64_t wrong[][3] = {{0, 1, 1}, {0, 1, 3}, {-1, 1, 2}};
  for (size_t i = 0; i < 3; i++)
    refuse(&(hd_test_case_t){transpose,
                             "f32[2, 3, 5]",
                             {hd_test_ints("order", 3, wrong[i])}},
           HD_E1103, "attribute 'order' is no order of the axes of 'x'");
}

static void types_are_chosen(void **state) {
  (void)state;
  static const char product[] =
      "task t(a: T[m, k], b: T[k, n]) -> c: R[m, n]\n"
      "  where R = T or A, A = acc(T) {\n"
      "  c[x, y] = R(sum(p: k) A(a[x, p]) * A(b[p, y]))\n}\n";
  expect(&(hd_test_case_t){product, "i8[2, 3] i8[3, 5]", {0}}, "i8[2, 5]");
  expect(&(hd_test_case_t){product,
                           "i8[2, 3] i8[3, 5]",
                           {hd_test_type_of("R", HD_I32)}},
         "i32[2, 5]");
  refuse(&(hd_test_case_t){product,
                           "i8[2, 3] i8[3, 5]",
                           {hd_test_type_of("R", HD_I64)}},
         HD_E1103, "type R of task 't' is i8 or i32, not i64");
}

static void packs_come_from_attributes(void **state) {
  (void)state;
  static const int64_t shape[] = {4, 1, 3}, sizes[] = {5, 0};
  expect(
      &(hd_test_case_t){expand, "i4[2, 1]", {hd_test_ints("shape", 3, shape)}},
      "i4[4, 2, 3]");
  expect(
      &(hd_test_case_t){expand, "i4[2, 1]", {hd_test_ints("shape", 0, NULL)}},
      "i4[2, 1]");
  refuse(
      &(hd_test_case_t){expand, "i4[2, 2]", {hd_test_ints("shape", 3, shape)}},
      HD_E1103, "do not broadcast");
  refuse(&(hd_test_case_t){expand,
                           "i4[]",
                           {hd_test_ints("shape", 2, (int64_t[]){1, -1})}},
         HD_E1103, "size 1 of pack 't' is -1");
  expect(
      &(hd_test_case_t){resize, "f32[2, 3]", {hd_test_ints("sizes", 2, sizes)}},
      "f32[5, 0]");
  // Alone: nothing is read.
  expect(&(hd_test_case_t){"task fill(shape: i64 over s, value: f32) ->\n"
                           "  y: f32[..s] {\n  y[..i] = value\n}\n",
                           "",
                           {hd_test_ints("shape", 3, shape),
                            hd_test_float("value", 1)}},
         "f32[4, 1, 3]");
}

static void data_sizes_are_at_their_bounds(void **state) {
  (void)state;
  expect(&(hd_test_case_t){nonzero, "u8[2, 3, 7]", {hd_test_int("most", 2)}},
         "i64[14]");
  refuse(&(hd_test_case_t){nonzero, "u8[7]", {hd_test_int("most", -1)}},
         HD_E1103, "size 'count' is -7");
}

static void locals_and_terms_are_known(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  static const int64_t pads[] = {1, 0};
  const hd_task_binding_t *binding = hd_test_bind(
      &context,
      &(hd_test_case_t){"task t(x: T[..s, n], pads: i64 over s) -> y: T[]\n"
                        "  where A = acc(T) {\n"
                        "  l[..i, ..j: s + pads, k: 2 * n] = A(x[..i, 0])\n"
                        "  y[] = 0\n}\n",
                        "u8[2, 3, 5]",
                        {hd_test_ints("pads", 2, pads)}});
  assert_non_null(binding);
  hd_tensor_type_t local =
      hd_binding_tensor(binding, binding->task->locals.data[0]);
  expect_tensor(&local, "i32[2, 3, 3, 3, 10]");
  hd_extents_t extents;
  const hd_term_t *range =
      binding->task->definitions.data[0]->indices[1]->range;
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  assert_true(hd_binding_extents(binding, &arena, range, &extents));
  assert_int_equal(extents.rank, 2);
  assert_int_equal(extents.values[0], 3);
  assert_int_equal(extents.values[1], 3);
  hd_arena_fini(&arena);
  hd_context_fini(&context);
}

HD_UNIT_TESTS(cmocka_unit_test(types_are_bound),
              cmocka_unit_test(sizes_are_bound),
              cmocka_unit_test(ranks_of_packs_are_found),
              cmocka_unit_test(attributes_are_bound),
              cmocka_unit_test(attributes_have_their_types),
              cmocka_unit_test(axes_lie_as_attributes_say),
              cmocka_unit_test(types_are_chosen),
              cmocka_unit_test(packs_come_from_attributes),
              cmocka_unit_test(data_sizes_are_at_their_bounds),
              cmocka_unit_test(locals_and_terms_are_known))
