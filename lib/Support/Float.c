// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/Float.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

// Codes are those of the magnitude; the sign is the bit above.
typedef struct format {
  int magnitude_bits; // Without the sign.
  int digits;         // Of the significand, with the hidden one.
  int least_exponent; // Of the normal numbers.
  uint32_t max_code;  // The largest finite magnitude.
  uint32_t infinity;  // 0: there is none.
  uint32_t nan;       // The canonical one, sign included; 0: there is none.
  int low_zeros;      // Bits below the significand's.
  bool saturates;
  bool negative_zero;
} format_t;

// clang-format off
static const format_t formats[HD_FLOAT_COUNT] = {
  //                        bits digits least   max code  infinity  nan       zeros saturates -0
  [HD_FLOAT_F4E2M1]     = {  3,  2,     0,      0x7,      0,        0,        0,    true,  true},
  [HD_FLOAT_F8E4M3]     = {  7,  4,    -6,      0x7e,     0,        0x7f,     0,    true,  true},
  [HD_FLOAT_F8E5M2]     = {  7,  3,   -14,      0x7b,     0x7c,     0x7f,     0,    true,  true},
  [HD_FLOAT_F8E4M3FNUZ] = {  7,  4,    -7,      0x7f,     0,        0x80,     0,    true,  false},
  [HD_FLOAT_F8E5M2FNUZ] = {  7,  3,   -15,      0x7f,     0,        0x80,     0,    true,  false},
  [HD_FLOAT_F8E8M0]     = {  8,  1,  -127,      0xfe,     0,        0xff,     0,    true,  false},
  [HD_FLOAT_F16]        = { 15, 11,   -14,      0x7bff,   0x7c00,   0x7fff,   0,    false, true},
  [HD_FLOAT_BF16]       = { 15,  8,  -126,      0x7f7f,   0x7f80,   0x7fff,   0,    false, true},
  [HD_FLOAT_TF32]       = { 18, 11,  -126,      0x3fbff,  0x3fc00,  0x3ffff,  13,   false, true},
  [HD_FLOAT_F32]        = { 31, 24,  -126,      0x7f7fffff, 0x7f800000, 0x7fffffff, 0, false, true},
};
// clang-format on

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// value >= 0 and below 2^53, to nearest even.
static uint64_t round_to_integer(double value) {
  uint64_t whole = (uint64_t)value;
  double rest = value - (double)whole;
  return whole + (rest > 0.5 || (rest == 0.5 && (whole & 1)));
}

// Powers of two alone: code c is 2^(c - 127).
static uint64_t encode_e8m0(double value) {
  if (!(value >= 0))
    return 0xff;
  if (value <= 0x1p-127)
    return 0;
  if (value >= 0x1p127)
    return 0xfe;
  int exponent;
  double fraction = frexp(value, &exponent) * 2; // In [1, 2).
  uint64_t code = (uint64_t)(exponent - 1 + 127);
  return code + (fraction > 1.5 || (fraction == 1.5 && (code & 1)));
}

// The code of a positive finite value, which may pass max_code.
static uint64_t encode_magnitude(const format_t *f, double value) {
  int exponent;
  frexp(value, &exponent);
  exponent -= 1;
  bool normal = exponent >= f->least_exponent;
  int lowest = normal ? exponent : f->least_exponent;
  uint64_t digits = round_to_integer(ldexp(value, f->digits - 1 - lowest));
  if (!normal)
    return digits;
  // A carry out of the digits becomes the next exponent by itself.
  uint64_t biased = (uint64_t)(exponent - f->least_exponent + 1);
  return ((biased - 1) << (f->digits - 1)) + digits;
}

uint64_t hd_float_encode(hd_float_format_t format, double value) {
  if (format == HD_FLOAT_F64)
    return isnan(value) ? 0x7fffffffffffffffu : bits_of(value);
  if (format == HD_FLOAT_F8E8M0)
    return encode_e8m0(value);
  const format_t *f = &formats[format];
  if (isnan(value))
    return f->nan
               ? (uint64_t)f->nan << f->low_zeros | ((1u << f->low_zeros) - 1)
               : f->max_code;
  uint64_t sign = bits_of(value) >> 63;
  double magnitude = fabs(value);
  uint64_t code = 0;
  if (isinf(magnitude))
    code = (uint64_t)f->max_code + 1;
  else if (magnitude > 0)
    code = encode_magnitude(f, magnitude);
  if (code > f->max_code)
    code = f->saturates ? f->max_code : f->infinity;
  if (code == 0 && !f->negative_zero)
    sign = 0;
  return (sign << f->magnitude_bits | code) << f->low_zeros;
}

double hd_float_decode(hd_float_format_t format, uint64_t bits) {
  if (format == HD_FLOAT_F64) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }
  const format_t *f = &formats[format];
  bits >>= f->low_zeros;
  if (format == HD_FLOAT_F8E8M0)
    return (bits & 0xff) == 0xff ? NAN : ldexp(1, (int)(bits & 0xff) - 127);
  uint64_t code = bits & ((1ull << f->magnitude_bits) - 1);
  bool negative = bits >> f->magnitude_bits & 1;
  if (!f->negative_zero && negative && code == 0)
    return NAN;
  if (code > f->max_code)
    return code == f->infinity ? (negative ? -INFINITY : INFINITY) : NAN;
  uint64_t hidden = 1ull << (f->digits - 1);
  uint64_t biased = code >> (f->digits - 1);
  uint64_t digits = code & (hidden - 1);
  if (biased)
    digits |= hidden;
  int exponent = f->least_exponent + (biased ? (int)biased - 1 : 0);
  double value = ldexp((double)digits, exponent - (f->digits - 1));
  return negative ? -value : value;
}

uint16_t hd_bf16_from_f32(float value) {
  uint32_t bits = hd_f32_bits(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return 0x7fff;
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float hd_bf16_to_f32(uint16_t bits) {
  return hd_f32_of_bits((uint32_t)bits << 16);
}

uint16_t hd_f16_from_f32(float value) {
  uint32_t bits = hd_f32_bits(value);
  uint32_t magnitude = bits & 0x7fffffff;
  uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
  if (magnitude > 0x7f800000)
    return 0x7fff;
  if (magnitude >= 0x47800000) // 2^16: infinite after rounding.
    return sign | 0x7c00;
  if (magnitude >= 0x38800000) { // Normal in f16, from 2^-14 on.
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return sign | (uint16_t)((rounded - 0x38000000) >> 13);
  }
  if (magnitude <= 0x33000000) // Half of the least value: zero, ties too.
    return sign;
  uint32_t digits = (magnitude & 0x7fffff) | 0x800000;
  unsigned shift = 126 - (magnitude >> 23); // 14 to 24.
  uint32_t half = 1u << (shift - 1);
  uint32_t rounded = (digits + half - 1 + (digits >> shift & 1)) >> shift;
  return sign | (uint16_t)rounded;
}

float hd_f16_to_f32(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
  uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) // Infinity or NaN.
    return hd_f32_of_bits(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x400)
    return hd_f32_of_bits(sign | ((magnitude << 13) + 0x38000000));
  // Subnormal: exact, as an integer times 2^-24.
  return hd_f32_of_bits(sign | hd_f32_bits((float)magnitude * 0x1p-24f));
}
