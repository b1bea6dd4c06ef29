// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PURE functions: half-precision arithmetic, approximate math (by
// exact math, rounded to the type) and bits.
#include "Sim/Functions.h"
#include "Support/Float.h"

#include <math.h>
#include <string.h>

float hd_sim_tf32_rna(float value) {
  uint32_t bits = hd_f32_bits(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return hd_f32_of_bits(0x7fffffff);
  if ((bits & 0x7fffffff) == 0x7f800000)
    return value;
  return hd_f32_of_bits((bits + 0x1000) & ~0x1fffu);
}

// --- Fused multiply-add of halves ---

// a + b, the last bit set where the sum is inexact: a later rounding to fewer
// than 52 bits then comes out as if there had been one rounding (Boldo and
// Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
static double add_to_odd(double a, double b) {
  double sum = a + b;
  if (!isfinite(sum))
    return sum;
  double part = sum - a;
  double error = (a - (sum - part)) + (b - part); // Knuth's two-sum: exact.
  uint64_t bits;
  memcpy(&bits, &sum, sizeof bits);
  if (error == 0 || (bits & 1))
    return sum;
  bits += (error > 0) == (sum > 0) ? 1 : (uint64_t)-1;
  memcpy(&sum, &bits, sizeof sum);
  return sum;
}

uint16_t hd_sim_fma_f16(uint16_t a, uint16_t b, uint16_t c) {
  double product = (double)hd_f16_to_f32(a) * (double)hd_f16_to_f32(b);
  return hd_f16_from_f64(add_to_odd(product, (double)hd_f16_to_f32(c)));
}

uint16_t hd_sim_fma_bf16(uint16_t a, uint16_t b, uint16_t c) {
  double product = (double)hd_bf16_to_f32(a) * (double)hd_bf16_to_f32(b);
  return hd_bf16_from_f64(add_to_odd(product, (double)hd_bf16_to_f32(c)));
}

// --- Approximate math ---

static float flush(float value) {
  return fpclassify(value) == FP_SUBNORMAL ? copysignf(0, value) : value;
}

// Each function in f64, whose error vanishes in the rounding to f32.
#define APPROXIMATE(name, expression)                                          \
  float hd_sim_##name##_approx(float value) {                                  \
    double x = (double)value;                                                  \
    return (float)(expression);                                                \
  }
#define APPROXIMATE_FTZ(name)                                                  \
  float hd_sim_##name##_approx_ftz(float value) {                              \
    return flush(hd_sim_##name##_approx(flush(value)));                        \
  }

APPROXIMATE(ex2, exp2(x))
APPROXIMATE(lg2, log2(x))
APPROXIMATE(rcp, 1 / x)
APPROXIMATE(rsqrt, 1 / sqrt(x))
APPROXIMATE(sqrt, sqrt(x))
APPROXIMATE(sin, sin(x))
APPROXIMATE(cos, cos(x))
APPROXIMATE(tanh, tanh(x))
APPROXIMATE_FTZ(ex2)
APPROXIMATE_FTZ(lg2)
APPROXIMATE_FTZ(rcp)
APPROXIMATE_FTZ(rsqrt)
APPROXIMATE_FTZ(sqrt)

float hd_sim_div_approx(float a, float b) {
  return (float)((double)a / (double)b);
}

uint16_t hd_sim_ex2_approx_f16(uint16_t x) {
  return hd_f16_from_f64(exp2((double)hd_f16_to_f32(x)));
}
uint16_t hd_sim_ex2_approx_bf16(uint16_t x) { // Subnormals become zero.
  float result = (float)exp2((double)flush(hd_bf16_to_f32(x)));
  uint16_t bits = hd_bf16_from_f32(result);
  return bits & 0x7f80 ? bits : bits & 0x8000;
}
uint16_t hd_sim_tanh_approx_f16(uint16_t x) {
  return hd_f16_from_f64(tanh((double)hd_f16_to_f32(x)));
}
uint16_t hd_sim_tanh_approx_bf16(uint16_t x) {
  return hd_bf16_from_f64(tanh((double)hd_bf16_to_f32(x)));
}

// --- Integers and bits ---

#define BITS(type, word, suffix)                                               \
  int32_t hd_sim_popc_##type(word x) { return __builtin_popcount##suffix(x); } \
  int32_t hd_sim_clz_##type(word x) {                                          \
    return x ? __builtin_clz##suffix(x) : (int32_t)sizeof x * 8;               \
  }                                                                            \
  int32_t hd_sim_ffs_##type(word x) {                                          \
    return x ? __builtin_ctz##suffix(x) + 1 : 0;                               \
  }
BITS(i32, uint32_t, )
BITS(u32, uint32_t, )
BITS(i64, uint64_t, ll)
BITS(u64, uint64_t, ll)

int32_t hd_sim_mulhi_i32(int32_t a, int32_t b) {
  return (int32_t)((int64_t)a * b >> 32);
}
uint32_t hd_sim_mulhi_u32(uint32_t a, uint32_t b) {
  return (uint32_t)((uint64_t)a * b >> 32);
}
__extension__ typedef __int128 wide_t;
__extension__ typedef unsigned __int128 unsigned_wide_t;
int64_t hd_sim_mulhi_i64(int64_t a, int64_t b) {
  return (int64_t)((wide_t)a * b >> 64);
}
uint64_t hd_sim_mulhi_u64(uint64_t a, uint64_t b) {
  return (uint64_t)((unsigned_wide_t)a * b >> 64);
}

// Each nibble of the selector picks one of eight bytes; its top bit asks for
// the byte's sign, eight times.
uint32_t hd_sim_prmt(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t bytes = (uint64_t)b << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; i++) {
    uint32_t pick = selector >> (4 * i) & 0xf;
    uint32_t byte = (uint32_t)(bytes >> (8 * (pick & 7))) & 0xff;
    if (pick & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

// The sum wraps.
#define DP4A(name, type, a_type, b_type)                                       \
  type hd_sim_dp4a_##name(uint32_t a, uint32_t b, type c) {                    \
    uint32_t sum = (uint32_t)c;                                                \
    for (int i = 0; i < 4; i++)                                                \
      sum += (uint32_t)((int32_t)(a_type)(a >> (8 * i)) *                      \
                        (int32_t)(b_type)(b >> (8 * i)));                      \
    return (type)sum;                                                          \
  }
DP4A(ss, int32_t, int8_t, int8_t)
DP4A(su, int32_t, int8_t, uint8_t)
DP4A(us, int32_t, uint8_t, int8_t)
DP4A(uu, uint32_t, uint8_t, uint8_t)
