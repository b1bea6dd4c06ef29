// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The floating-point formats, exactly: f64 <-> every float of IR/Scalars.def.
// A double holds every value of each format, so decoding is exact and encoding
// rounds once, to nearest even. Pure functions; thread-safe; they do not look
// at the machine's rounding mode.
//
// What does not fit:
//   f16 bf16 tf32 f32     overflow gives an infinity
//   f8e4m3 f8e5m2         saturate, infinities too; NaN stays NaN
//   f8e4m3fnuz f8e5m2fnuz likewise; there is no negative zero
//   f4e2m1                saturates; NaN gives the largest value, as PTX does
//   f8e8m0                powers of two from 2^-127: zero and what is smaller
//                         give 2^-127, negative numbers NaN
// NaN becomes the one canonical NaN of PTX (0x7fff in f16).
#ifndef HIDET_SUPPORT_FLOAT_H
#define HIDET_SUPPORT_FLOAT_H

#include <stdint.h>
#include <string.h>

// In the order of IR/Scalars.def, whose names these are.
typedef enum hd_float_format {
  HD_FLOAT_F4E2M1,
  HD_FLOAT_F8E4M3,
  HD_FLOAT_F8E5M2,
  HD_FLOAT_F8E4M3FNUZ,
  HD_FLOAT_F8E5M2FNUZ,
  HD_FLOAT_F8E8M0,
  HD_FLOAT_F16,
  HD_FLOAT_BF16,
  HD_FLOAT_TF32, // In 32 bits; the 13 low ones are zero.
  HD_FLOAT_F32,
  HD_FLOAT_F64,
  HD_FLOAT_COUNT
} hd_float_format_t;

// The value's bits, from bit 0 up.
uint64_t hd_float_encode(hd_float_format_t format, double value);
// Bits above the format's size are not looked at.
double hd_float_decode(hd_float_format_t format, uint64_t bits);

// The same for the two that inner loops convert, from f32 and to it.
uint16_t hd_f16_from_f32(float value);
float hd_f16_to_f32(uint16_t bits);
uint16_t hd_bf16_from_f32(float value);
float hd_bf16_to_f32(uint16_t bits);

// An f32 and its bits.
static inline uint32_t hd_f32_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static inline float hd_f32_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// The sum of f16 products and the like need one rounding from f64.
static inline uint16_t hd_f16_from_f64(double value) {
  return (uint16_t)hd_float_encode(HD_FLOAT_F16, value);
}
static inline uint16_t hd_bf16_from_f64(double value) {
  return (uint16_t)hd_float_encode(HD_FLOAT_BF16, value);
}

#endif
