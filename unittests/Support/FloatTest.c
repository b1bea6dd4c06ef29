// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every pattern of every small format, against the compiler's own _Float16, and
// against values computed from the formats' fields as their papers define them.

#include "Support/Float.h"
#include "UnitTest.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static bool same(double a, double b) {
  return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static float native_f16(uint16_t bits) {
  _Float16 value;
  memcpy(&value, &bits, sizeof value);
  return (float)value;
}

static uint16_t native_f16_from_f32(float value) {
  _Float16 half = (_Float16)value;
  uint16_t bits;
  memcpy(&bits, &half, sizeof bits);
  return bits;
}

static void f16_decodes_every_pattern(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    float expected = native_f16((uint16_t)bits);
    assert_true(same(hd_f16_to_f32((uint16_t)bits), expected));
    assert_true(same(hd_float_decode(HD_FLOAT_F16, bits), expected));
  }
}

static void check_f16_from(float value) {
  uint16_t got = hd_f16_from_f32(value);
  assert_int_equal(got, hd_float_encode(HD_FLOAT_F16, value));
  if (isnan(value))
    assert_int_equal(got, 0x7fff);
  else
    assert_int_equal(got, native_f16_from_f32(value));
}

// Each value, each midpoint between neighbours and what lies beside them; then
// f32 patterns throughout.
static void f16_encodes_to_nearest_even(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    float here = native_f16((uint16_t)bits);
    check_f16_from(here);
    float middle = (here + native_f16((uint16_t)(bits + 1))) / 2;
    check_f16_from(middle);
    check_f16_from(nextafterf(middle, INFINITY));
    check_f16_from(nextafterf(middle, -INFINITY));
  }
  for (uint64_t bits = 0; bits < 0x100000000u; bits += 4093)
    check_f16_from(hd_f32_of_bits((uint32_t)bits));
}

static void f16_from_f64_rounds_once(void **state) {
  (void)state;
  // By way of f32 this would round to 1 + 2^-11 and then to even: 1.
  double value = 1 + 0x1p-11 + 0x1p-40;
  assert_int_equal(hd_f16_from_f64(value), 0x3c01);
  assert_int_equal(hd_f16_from_f32((float)value), 0x3c00);
  assert_int_equal(hd_bf16_from_f64(1 + 0x1p-8 + 0x1p-40), 0x3f81);
}

static void bf16_is_the_upper_half_of_f32(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    float expected = hd_f32_of_bits(bits << 16);
    assert_true(same(hd_bf16_to_f32((uint16_t)bits), expected));
    assert_true(same(hd_float_decode(HD_FLOAT_BF16, bits), expected));
    if (isnan(expected))
      continue;
    assert_int_equal(hd_bf16_from_f32(expected), bits);
    assert_int_equal(hd_float_encode(HD_FLOAT_BF16, expected), bits);
    // The midpoint to the next one goes to the even pattern.
    float middle = hd_f32_of_bits((bits << 16) + 0x8000);
    if (isnan(middle))
      continue;
    uint32_t even = bits + (bits & 1);
    assert_int_equal(hd_bf16_from_f32(middle), even);
    assert_int_equal(hd_float_encode(HD_FLOAT_BF16, middle), even);
    assert_int_equal(hd_bf16_from_f32(hd_f32_of_bits((bits << 16) + 0x7fff)),
                     bits);
    assert_int_equal(hd_bf16_from_f32(hd_f32_of_bits((bits << 16) + 0x8001)),
                     bits + 1);
  }
}

// A format's fields, as its definition tells them.
typedef struct definition {
  hd_float_format_t format;
  int exponent_bits, mantissa_bits, bias;
  double greatest, least; // The least positive one.
  enum { IEEE, FN, FNUZ, NONE } specials;
} definition_t;

static const definition_t definitions[] = {
    {HD_FLOAT_F4E2M1, 2, 1, 1, 6, 0.5, NONE},
    {HD_FLOAT_F8E4M3, 4, 3, 7, 448, 0x1p-9, FN},
    {HD_FLOAT_F8E5M2, 5, 2, 15, 57344, 0x1p-16, IEEE},
    {HD_FLOAT_F8E4M3FNUZ, 4, 3, 8, 240, 0x1p-10, FNUZ},
    {HD_FLOAT_F8E5M2FNUZ, 5, 2, 16, 57344, 0x1p-17, FNUZ},
};
enum { NUM_DEFINITIONS = sizeof definitions / sizeof *definitions };

static double value_by_definition(const definition_t *d, unsigned code) {
  unsigned mantissa = code & ((1u << d->mantissa_bits) - 1);
  unsigned exponent = code >> d->mantissa_bits & ((1u << d->exponent_bits) - 1);
  bool negative = code >> (d->mantissa_bits + d->exponent_bits);
  unsigned top = (1u << d->exponent_bits) - 1;
  if (d->specials == IEEE && exponent == top)
    return mantissa ? NAN : negative ? -INFINITY : INFINITY;
  if (d->specials == FN && exponent == top &&
      mantissa == (1u << d->mantissa_bits) - 1)
    return NAN;
  if (d->specials == FNUZ && negative && !exponent && !mantissa)
    return NAN;
  double fraction = mantissa / (double)(1u << d->mantissa_bits);
  double value = exponent ? pow(2, (int)exponent - d->bias) * (1 + fraction)
                          : pow(2, 1 - d->bias) * fraction;
  return negative ? -value : value;
}

// By search: the nearest of all finite values, ties to the even code.
static unsigned encode_by_search(const definition_t *d, double value) {
  int bits = 1 + d->exponent_bits + d->mantissa_bits;
  unsigned best = 0;
  double distance = INFINITY;
  for (unsigned code = 0; code < 1u << (bits - 1); code++) {
    double candidate = value_by_definition(d, code);
    if (!isfinite(candidate))
      continue;
    double away = fabs(candidate - fabs(value));
    if (away < distance || (away == distance && !(code & 1))) {
      best = code;
      distance = away;
    }
  }
  bool negative = signbit(value) && !(d->specials == FNUZ && best == 0);
  return best | (negative ? 1u << (bits - 1) : 0);
}

static void check_small(const definition_t *d, double value) {
  // Beyond the greatest value the nearest is the greatest: saturation.
  double near = fmin(fmax(value, -2 * d->greatest), 2 * d->greatest);
  assert_int_equal(hd_float_encode(d->format, value),
                   encode_by_search(d, near));
}

static void small_formats_follow_their_definitions(void **state) {
  (void)state;
  for (int i = 0; i < NUM_DEFINITIONS; i++) {
    const definition_t *d = &definitions[i];
    unsigned codes = 1u << (1 + d->exponent_bits + d->mantissa_bits);
    double greatest = 0, least = INFINITY;
    for (unsigned code = 0; code < codes; code++) {
      double value = value_by_definition(d, code);
      assert_true(same(hd_float_decode(d->format, code), value));
      if (!isfinite(value))
        continue;
      greatest = fmax(greatest, value);
      if (value > 0)
        least = fmin(least, value);
      assert_int_equal(hd_float_encode(d->format, value), code);
      double next = value_by_definition(d, (code + 1) % codes);
      if (!isfinite(next))
        continue;
      double middle = (value + next) / 2;
      check_small(d, middle);
      check_small(d, nextafter(middle, INFINITY));
      check_small(d, nextafter(middle, -INFINITY));
    }
    assert_true(greatest == d->greatest);
    assert_true(least == d->least);
    check_small(d, 1e30);
    check_small(d, -1e30);
    check_small(d, INFINITY);
    check_small(d, -INFINITY);
    check_small(d, -1e-30);
    check_small(d, -0.0);
  }
  assert_int_equal(hd_float_encode(HD_FLOAT_F8E4M3, NAN), 0x7f);
  assert_int_equal(hd_float_encode(HD_FLOAT_F8E5M2, NAN), 0x7f);
  assert_int_equal(hd_float_encode(HD_FLOAT_F8E4M3FNUZ, NAN), 0x80);
  assert_int_equal(hd_float_encode(HD_FLOAT_F8E5M2FNUZ, NAN), 0x80);
  assert_int_equal(hd_float_encode(HD_FLOAT_F4E2M1, NAN), 7);
}

static void e8m0_holds_powers_of_two(void **state) {
  (void)state;
  for (int code = 0; code < 255; code++) {
    double value = pow(2, code - 127);
    assert_true(hd_float_decode(HD_FLOAT_F8E8M0, (unsigned)code) == value);
    assert_int_equal(hd_float_encode(HD_FLOAT_F8E8M0, value), code);
    int above = code < 254 ? code + 1 : 254;
    int even = code & 1 ? above : code;
    assert_int_equal(hd_float_encode(HD_FLOAT_F8E8M0, value * 1.5), even);
    assert_int_equal(hd_float_encode(HD_FLOAT_F8E8M0, value * 1.49), code);
    assert_int_equal(hd_float_encode(HD_FLOAT_F8E8M0, value * 1.51), above);
  }
  assert_true(isnan(hd_float_decode(HD_FLOAT_F8E8M0, 0xff)));
  assert_int_equal(hd_float_encode(HD_FLOAT_F8E8M0, NAN), 0xff);
  assert_int_equal(hd_float_encode(HD_FLOAT_F8E8M0, -1), 0xff);
  assert_int_equal(hd_float_encode(HD_FLOAT_F8E8M0, 0), 0);
  assert_int_equal(hd_float_encode(HD_FLOAT_F8E8M0, INFINITY), 0xfe);
}

static void f32_and_tf32_round_to_nearest_even(void **state) {
  (void)state;
  for (uint64_t bits = 0; bits < 0x100000000u; bits += 4099) {
    float value = hd_f32_of_bits((uint32_t)bits);
    if (isnan(value))
      continue;
    assert_int_equal(hd_float_encode(HD_FLOAT_F32, value), bits);
    double beside = (double)value * (1 + 0x1p-26) + 0x1p-160;
    assert_int_equal(hd_float_encode(HD_FLOAT_F32, beside),
                     hd_f32_bits((float)beside));
    uint32_t low = (uint32_t)bits & 0x1fff, high = (uint32_t)bits - low;
    bool up = low > 0x1000 || (low == 0x1000 && (high & 0x2000));
    if (isinf(value))
      up = false;
    assert_int_equal(hd_float_encode(HD_FLOAT_TF32, value),
                     high + (up ? 0x2000 : 0));
    assert_true(same(hd_float_decode(HD_FLOAT_TF32, high),
                     (double)hd_f32_of_bits(high)));
  }
  assert_int_equal(hd_float_encode(HD_FLOAT_TF32, NAN), 0x7fffffff);
  assert_int_equal(hd_float_encode(HD_FLOAT_F64, -2), 0xc000000000000000u);
}

HD_UNIT_TESTS(cmocka_unit_test(f16_decodes_every_pattern),
              cmocka_unit_test(f16_encodes_to_nearest_even),
              cmocka_unit_test(f16_from_f64_rounds_once),
              cmocka_unit_test(bf16_is_the_upper_half_of_f32),
              cmocka_unit_test(small_formats_follow_their_definitions),
              cmocka_unit_test(e8m0_holds_powers_of_two),
              cmocka_unit_test(f32_and_tf32_round_to_nearest_even))
