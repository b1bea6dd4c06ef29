// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mma.sync: c += a * b on fragments spread over a warp. Fragment layouts are
// those of the PTX manual (version 8.5, 9.7.14.5, "Matrix fragments for
// mma.mNnNkN"): they are given here by the number of bits of an element and of
// registers, since the manual's layouts are one pattern:
//   a 32-bit register of a or b holds w = 32 / bits elements side by side in k;
//   lane t is of group g = t / 4 and has place p = t % 4 in it.
//   a: register r holds row g + 8 (r % 2), k = w p + 4 w (r / 2) and following
//      (where m is 8: row g, k = w p)
//   b: register r holds column g, k = w p + 4 w r and following
//   c: element i is row g + 8 (i / 2), column 2 p + i % 2
// A sum is exact to f64 and rounded once; hardware's rounding is not specified.
//   slots: c, a, b (registers)
#include "Sim/Check.h"
#include "Sim/Functions.h"
#include "Sim/Matrix.h"
#include "Support/Float.h"

#include <math.h>
#include <string.h>

typedef double (*decode_t)(const char *element);

typedef struct shape {
  unsigned m, k; // n is 8.
  unsigned bits; // Of an element of a and b.
} shape_t;

enum { N = 8, MAX_M = 16, MAX_K = 32 };

typedef struct operands {
  double a[MAX_M][MAX_K], b[MAX_K][N];
} operands_t;

// --- Elements ---

static double decode_f16(const char *element) {
  uint16_t bits;
  memcpy(&bits, element, sizeof bits);
  return (double)hd_f16_to_f32(bits);
}
static double decode_bf16(const char *element) {
  uint16_t bits;
  memcpy(&bits, element, sizeof bits);
  return (double)hd_bf16_to_f32(bits);
}
static double decode_tf32(const char *element) { // The low 13 bits are dropped.
  uint32_t bits;
  memcpy(&bits, element, sizeof bits);
  bits &= ~0x1fffu;
  float value;
  memcpy(&value, &bits, sizeof value);
  return (double)value;
}
static double decode_i8(const char *element) {
  return (double)*(const int8_t *)element;
}
static double decode_u8(const char *element) {
  return (double)*(const uint8_t *)element;
}

static double f8_values[2][256];
static pthread_once_t f8_once = PTHREAD_ONCE_INIT;

static void fill_f8_values(void) {
  for (unsigned bits = 0; bits < 256; bits++) {
    f8_values[0][bits] = hd_float_decode(HD_FLOAT_F8E4M3, bits);
    f8_values[1][bits] = hd_float_decode(HD_FLOAT_F8E5M2, bits);
  }
}
static double decode_f8e4m3(const char *element) {
  return f8_values[0][(uint8_t)*element];
}
static double decode_f8e5m2(const char *element) {
  return f8_values[1][(uint8_t)*element];
}

// --- Fragments ---

static void gather(const hd_sim_warp_t *warp, const shape_t *shape,
                   decode_t decode_a, decode_t decode_b, operands_t *x) {
  unsigned width = 32 / shape->bits, bytes = shape->bits / 8;
  unsigned rows = shape->m / 8, chunks = shape->k / (4 * width);
  for (unsigned lane = 0; lane < HD_SIM_WARP_SIZE; lane++) {
    const char *a = (const char *)(uintptr_t)warp->slots[lane][1];
    const char *b = (const char *)(uintptr_t)warp->slots[lane][2];
    unsigned group = lane / 4, start = lane % 4 * width;
    for (unsigned chunk = 0; chunk < chunks; chunk++) {
      unsigned k = start + 4 * width * chunk;
      for (unsigned half = 0; half < rows; half++)
        for (unsigned i = 0; i < width; i++, a += bytes)
          x->a[group + 8 * half][k + i] = decode_a(a);
      for (unsigned i = 0; i < width; i++, b += bytes)
        x->b[k + i][group] = decode_b(b);
    }
  }
}

// Each sum in the order of k.
static void sum_up(const shape_t *shape, const operands_t *x,
                   double sums[MAX_M][N]) {
  for (unsigned row = 0; row < shape->m; row++) {
    double sum[N] = {0};
    for (unsigned k = 0; k < shape->k; k++)
      for (unsigned column = 0; column < N; column++)
        sum[column] += x->a[row][k] * x->b[k][column];
    memcpy(sums[row], sum, sizeof sum);
  }
}

typedef void (*add_t)(char *c, unsigned i, double value);

static void add_f32(char *c, unsigned i, double value) {
  float *element = (float *)(void *)c + i;
  *element = (float)((double)*element + value);
}
static void add_f16(char *c, unsigned i, double value) {
  uint16_t *element = (uint16_t *)(void *)c + i;
  *element = hd_f16_from_f64((double)hd_f16_to_f32(*element) + value);
}
static void add_i32(char *c, unsigned i, double value) { // Wraps.
  uint32_t *element = (uint32_t *)(void *)c + i;
  *element += (uint32_t)(int64_t)value;
}

static void multiply(hd_sim_warp_t *warp, shape_t shape, decode_t decode_a,
                     decode_t decode_b, add_t add) {
  if (!hd_sim_whole_warp(warp))
    return;
  operands_t x;
  double sums[MAX_M][N];
  gather(warp, &shape, decode_a, decode_b, &x);
  sum_up(&shape, &x, sums);
  for (unsigned lane = 0; lane < HD_SIM_WARP_SIZE; lane++) {
    char *c = (char *)(uintptr_t)warp->slots[lane][0];
    for (unsigned i = 0; i < shape.m / 4; i++)
      add(c, i, sums[lane / 4 + 8 * (i / 2)][lane % 4 * 2 + i % 2]);
  }
}

static void multiply_f8(hd_sim_warp_t *warp, decode_t decode_a,
                        decode_t decode_b) {
  pthread_once(&f8_once, fill_f8_values);
  multiply(warp, (shape_t){16, 32, 8}, decode_a, decode_b, add_f32);
}

// --- The functions ---

#define MMA(name, m, k, bits, a, b, c)                                         \
  void hd_sim_mma_##name(hd_sim_warp_t *warp) {                                \
    multiply(warp, (shape_t){m, k, bits}, decode_##a, decode_##b, add_##c);    \
  }
#define MMA_F8(name, a, b)                                                     \
  void hd_sim_mma_m16n8k32_f32_##name(hd_sim_warp_t *warp) {                   \
    multiply_f8(warp, decode_##a, decode_##b);                                 \
  }

MMA(m16n8k8_f32_f16, 16, 8, 16, f16, f16, f32)
MMA(m16n8k8_f16_f16, 16, 8, 16, f16, f16, f16)
MMA(m16n8k8_f32_bf16, 16, 8, 16, bf16, bf16, f32)
MMA(m16n8k8_f32_tf32, 16, 8, 32, tf32, tf32, f32)
MMA(m16n8k16_f32_f16, 16, 16, 16, f16, f16, f32)
MMA(m16n8k16_f16_f16, 16, 16, 16, f16, f16, f16)
MMA(m16n8k16_f32_bf16, 16, 16, 16, bf16, bf16, f32)
MMA(m8n8k16_i32_i8, 8, 16, 8, i8, i8, i32)
MMA(m8n8k16_i32_i8_u8, 8, 16, 8, i8, u8, i32)
MMA(m8n8k16_i32_u8_i8, 8, 16, 8, u8, i8, i32)
MMA(m8n8k16_i32_u8, 8, 16, 8, u8, u8, i32)
MMA(m16n8k32_i32_i8, 16, 32, 8, i8, i8, i32)
MMA(m16n8k32_i32_i8_u8, 16, 32, 8, i8, u8, i32)
MMA(m16n8k32_i32_u8_i8, 16, 32, 8, u8, i8, i32)
MMA(m16n8k32_i32_u8, 16, 32, 8, u8, u8, i32)
MMA_F8(f8e4m3, f8e4m3, f8e4m3)
MMA_F8(f8e4m3_f8e5m2, f8e4m3, f8e5m2)
MMA_F8(f8e5m2_f8e4m3, f8e5m2, f8e4m3)
MMA_F8(f8e5m2, f8e5m2, f8e5m2)
