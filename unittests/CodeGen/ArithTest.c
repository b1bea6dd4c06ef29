// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic of host code at its edges: docs/IR.md's rules, not C's.
#include "CodeGenTest.h"
#include "Support/Float.h"

#include <math.h>

enum { N = 4096 };

static uint64_t random_bits(void) {
  static uint64_t s = 88172645463325252u;
  s ^= s << 13, s ^= s >> 7, s ^= s << 17;
  return s;
}

// c[i] = expression over a[i] and b[i].
static void run(const char *type, const char *result, const char *expression,
                void *a, void *b, void *c) {
  char text[640];
  snprintf(text, sizeof text,
           "kernel compute(in p: %s[%d], in q: %s[%d], out r: %s[%d])\n"
           "  grid(%d) block(32) {\n"
           "  let i = block * 32 + thread\n"
           "  let a = p[i]\n"
           "  let b = q[i]\n"
           "  r[i] = %s\n"
           "}\n",
           type, N, type, N, result, N, N / 32, expression);
  program_t p;
  program_init(&p, text);
  void *args[] = {&a, &b, &c};
  program_run(&p, args, N / 32, 1);
  program_fini(&p);
}

static void integers_wrap_and_never_trap(void **state) {
  (void)state;
  static int32_t a[N], b[N], c[N];
  for (int i = 0; i < N; i++) {
    a[i] = i % 5 == 0 ? INT32_MIN : (int32_t)random_bits();
    b[i] = i % 7 == 0 ? -1 : i % 11 == 0 ? 0 : (int32_t)random_bits() >> i % 30;
  }
  run("i32", "i32", "a / b", a, b, c);
  for (int i = 0; i < N; i++)
    assert_int_equal(c[i], b[i] == 0 ? 0 : (int32_t)((int64_t)a[i] / b[i]));
  run("i32", "i32", "a % b", a, b, c);
  for (int i = 0; i < N; i++)
    assert_int_equal(c[i], b[i] == 0 ? 0 : (int32_t)((int64_t)a[i] % b[i]));
  run("i32", "i32", "a * b - a", a, b, c);
  for (int i = 0; i < N; i++)
    assert_int_equal(
        c[i], (int32_t)((uint32_t)a[i] * (uint32_t)b[i] - (uint32_t)a[i]));
}

static void shifts_take_any_amount(void **state) {
  (void)state;
  static int32_t a[N], b[N], c[N];
  for (int i = 0; i < N; i++) {
    a[i] = (int32_t)random_bits();
    b[i] = i % 3 ? i % 40 : (int32_t)random_bits();
  }
  run("i32", "i32", "a << b", a, b, c);
  for (int i = 0; i < N; i++)
    assert_int_equal(
        c[i], b[i] < 0 || b[i] > 31 ? 0 : (int32_t)((uint32_t)a[i] << b[i]));
  run("i32", "i32", "a >> b", a, b, c);
  for (int i = 0; i < N; i++)
    assert_int_equal(c[i], a[i] >> (b[i] < 0 || b[i] > 31 ? 31 : b[i]));
  run("u32", "u32", "a >> b", a, b, c);
  for (int i = 0; i < N; i++)
    assert_int_equal(
        c[i], b[i] < 0 || b[i] > 31 ? 0 : (int32_t)((uint32_t)a[i] >> b[i]));
}

// Small floats: one rounding of the exact result, which a double holds.
static void small_floats_round_once(void **state) {
  (void)state;
  static const struct {
    const char *name;
    hd_float_format_t format;
  } types[] = {{"f16", HD_FLOAT_F16}, {"bf16", HD_FLOAT_BF16}};
  static const char *const expressions[] = {"a + b", "a - b", "a * b", "a / b"};
  static uint16_t a[N], b[N], c[N];
  for (size_t t = 0; t < 2; t++)
    for (int x = 0; x < 4; x++) {
      hd_float_format_t format = types[t].format;
      for (int i = 0; i < N; i++) {
        a[i] = (uint16_t)random_bits();
        // Near one another, so that sums lose bits.
        b[i] = (uint16_t)(i % 2 ? random_bits() : a[i] + random_bits() % 64);
      }
      run(types[t].name, types[t].name, expressions[x], a, b, c);
      for (int i = 0; i < N; i++) {
        double p = hd_float_decode(format, a[i]);
        double q = hd_float_decode(format, b[i]);
        // A quotient rounded to 53 bits and then to 11 is right (2p + 2).
        double exact = x == 0 ? p + q : x == 1 ? p - q : x == 2 ? p * q : p / q;
        uint64_t want = hd_float_encode(format, exact);
        bool nan = isnan(hd_float_decode(format, c[i]));
        assert_true(isnan(exact) ? nan : c[i] == want);
      }
    }
}

static void min_and_max_leave_nan_and_order_zeros(void **state) {
  (void)state;
  static float a[N], b[N], c[N];
  for (int i = 0; i < N; i++) {
    a[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? -0.0f : (float)i;
    b[i] = i % 4 == 0 ? NAN : i % 4 == 1 ? 0.0f : (float)-i;
  }
  for (int is_min = 0; is_min < 2; is_min++) {
    run("f32", "f32", is_min ? "min(a, b)" : "max(a, b)", a, b, c);
    for (int i = 0; i < N; i++) {
      if (isnan(a[i]) || isnan(b[i])) {
        float other = isnan(a[i]) ? b[i] : a[i];
        assert_true(isnan(other) ? isnan(c[i]) : c[i] == other);
      } else if (a[i] == 0 && b[i] == 0) {
        bool any = signbit(a[i]) || signbit(b[i]);
        bool both = signbit(a[i]) && signbit(b[i]);
        assert_int_equal(signbit(c[i]) != 0, is_min ? any : both);
      } else {
        bool first = is_min ? a[i] < b[i] : a[i] > b[i];
        assert_true(c[i] == (first ? a[i] : b[i]));
      }
    }
  }
}

static void multiplies_and_adds_round_twice(void **state) {
  (void)state;
  static float a[N], b[N], c[N], d[N];
  for (int i = 0; i < N; i++) {
    a[i] = 1 + (float)(random_bits() % (1 << 23)) * 0x1p-23f;
    b[i] = 1 + (float)(random_bits() % (1 << 23)) * 0x1p-23f;
  }
  run("f32", "f32", "a * b - b", a, b, c);
  run("f32", "f32", "fma(a, b, -b)", a, b, d);
  int differ = 0;
  for (int i = 0; i < N; i++) {
    volatile float product = a[i] * b[i];
    assert_true(c[i] == product - b[i]);
    assert_true(d[i] == fmaf(a[i], b[i], -b[i]));
    differ += c[i] != d[i];
  }
  assert_true(differ > N / 2);
}

static void choices_are_lazy(void **state) {
  (void)state;
  static int32_t a[N], b[N], c[N];
  for (int i = 0; i < N; i++) {
    a[i] = (int32_t)(random_bits() % N);
    b[i] = (int32_t)(random_bits() % 3) - 1;
  }
  // Outside the tensor, the element must not be looked at.
  run("i32", "i32", "b < 0 ? 5 : a < 100 && p[a] > 3 || b == 1 ? q[a] : 7", a,
      b, c);
  for (int i = 0; i < N; i++)
    assert_int_equal(c[i], b[i] < 0                                   ? 5
                           : (a[i] < 100 && a[a[i]] > 3) || b[i] == 1 ? b[a[i]]
                                                                      : 7);
  run("i32", "i32", "p[i + b * 5000] else -1", a, b, c);
  for (int i = 0; i < N; i++)
    assert_int_equal(c[i], b[i] == 0 ? a[i] : -1);
}

static void partial_vectors_take_the_default(void **state) {
  (void)state;
  static const char text[] =
      "kernel edges(n: i32, in a: f32[2, n], out c: f32[2, 16])\n"
      "  grid(1) block(2, 4) {\n"
      "  c[thread.x, thread.y * 4 +: 4] =\n"
      "    a[thread.x, thread.y * 4 +: 4] else f32x4(-1.0)\n"
      "}\n";
  int32_t n = 10;
  static float a[20], c[32];
  for (int i = 0; i < 20; i++)
    a[i] = (float)i;
  float *pa = a, *pc = c;
  void *args[] = {&n, &pa, &pc};
  program_t p;
  program_init(&p, text);
  program_run(&p, args, 1, 1);
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 16; j++)
      assert_true(c[i * 16 + j] == (j < n ? (float)(i * n + j) : -1));
  program_fini(&p);
}

static void loops_and_functions(void **state) {
  (void)state;
  static const char text[] =
      "fn sign(x: i32) -> i32 {\n"
      "  if x < 0 {\n    return -1\n  }\n"
      "  if x == 0 {\n    return 0\n  }\n"
      "  return 1\n"
      "}\n"
      "fn twice(x: i32) -> i32 {\n  return x * 2\n}\n"
      "kernel loops(n: i32, out c: i32[6]) grid(1) block(1) {\n"
      "  register s: i32 = 0\n"
      "  for i in 0..n step 3 {\n    s = s + i\n  }\n"
      "  c[0] = s\n  s = 0\n"
      "  for i in 0..n unroll(4) {\n    s = s + i * sign(i - 5)\n  }\n"
      "  c[1] = s\n  s = 0\n"
      "  for i in 0..10 step 4 unroll {\n    s = s + i\n  }\n"
      "  c[2] = s\n  s = 1\n"
      "  while s < 1000 {\n    s = twice(twice(s)) + 1\n  }\n"
      "  c[3] = s\n  s = 0\n"
      "  for i in 2147483640..2147483647 step 5 {\n    s = s + 1\n  }\n"
      "  c[4] = s\n  s = 0\n"
      "  for i in n..2 {\n    s = s + 1\n  }\n"
      "  c[5] = s\n"
      "}\n";
  int32_t n = 11, c[6] = {0}, *pc = c;
  void *args[] = {&n, &pc};
  program_t p;
  program_init(&p, text);
  program_run(&p, args, 1, 1);
  program_fini(&p);
  assert_int_equal(c[0], 0 + 3 + 6 + 9);
  assert_int_equal(c[1], -(1 + 2 + 3 + 4) + 6 + 7 + 8 + 9 + 10);
  assert_int_equal(c[2], 0 + 4 + 8);
  assert_int_equal(c[3], 1365); // 1 5 21 85 341 1365
  assert_int_equal(c[4], 2);
  assert_int_equal(c[5], 0);
}

HD_UNIT_TESTS(cmocka_unit_test(integers_wrap_and_never_trap),
              cmocka_unit_test(shifts_take_any_amount),
              cmocka_unit_test(small_floats_round_once),
              cmocka_unit_test(min_and_max_leave_nan_and_order_zeros),
              cmocka_unit_test(multiplies_and_adds_round_twice),
              cmocka_unit_test(choices_are_lazy),
              cmocka_unit_test(partial_vectors_take_the_default),
              cmocka_unit_test(loops_and_functions))
