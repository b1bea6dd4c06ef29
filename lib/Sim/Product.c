// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How wgmma finds its operands ("Shared memory matrix layout" and "Matrix
// descriptor format" of the PTX manual; the layouts are written as in CUTLASS'
// mma_sm90_desc). A line of 16 bytes lies as it is; L and S are the leading and
// the stride offset, w the swizzle's bytes.
//   K-major, no swizzle   row r, line c: S (r / 8) + 16 (r % 8) + L c
//   K-major, swizzled     row r, line c: S (r / 8) + w (r % 8) + 16 c
//   MN-major, no swizzle  line c, k: S c + 16 (k % 8) + L (k / 8)
//   MN-major, swizzled    line c, k: 16 (c % (w / 16)) + L (c / (w / 16))
//                                    + w (k % 8) + S (k / 8)
// and then bits 4 to 6 of the address are xored with bits 7 to 9, as many as
// the swizzle has.
#include "Sim/Product.h"
#include "Support/Float.h"

#include <pthread.h>
#include <string.h>

static const struct {
  uint32_t bytes;
} operands[] = {
    [HD_SIM_F16] = {2},    [HD_SIM_BF16] = {2},   [HD_SIM_TF32] = {4},
    [HD_SIM_F8E4M3] = {1}, [HD_SIM_F8E5M2] = {1}, [HD_SIM_I8] = {1},
    [HD_SIM_U8] = {1},
};

uint32_t hd_sim_operand_bytes(hd_sim_operand_t type) {
  return operands[type].bytes;
}
uint32_t hd_sim_product_k(hd_sim_operand_t type) {
  return 32 / operands[type].bytes;
}
uint32_t hd_sim_sum_bytes(hd_sim_sum_t type) {
  return type == HD_SIM_SUM_F16 ? 2 : 4;
}

// --- Addresses ---

typedef struct layout {
  uint32_t leading, stride, swizzle;
} layout_t;

static layout_t decode(uint64_t descriptor) {
  static const uint32_t swizzles[] = {0, 128, 64, 32};
  return (layout_t){(uint32_t)(descriptor >> 16 & 0x3fff) * 16,
                    (uint32_t)(descriptor >> 32 & 0x3fff) * 16,
                    swizzles[descriptor >> 62]};
}

static uint32_t line_offset(const layout_t *l, bool mn_major, uint32_t c,
                            uint32_t i) {
  uint32_t width = l->swizzle ? l->swizzle : HD_SIM_LINE;
  if (!mn_major)
    return l->stride * (i / 8) + width * (i % 8) +
           (l->swizzle ? HD_SIM_LINE : l->leading) * c;
  if (!l->swizzle)
    return l->stride * c + HD_SIM_LINE * (i % 8) + l->leading * (i / 8);
  uint32_t lines = width / HD_SIM_LINE;
  return HD_SIM_LINE * (c % lines) + l->leading * (c / lines) +
         width * (i % 8) + l->stride * (i / 8);
}

// Line c of row (or of k) i.
static uint32_t offset_of(const hd_sim_view_t *view, const layout_t *l,
                          uint32_t c, uint32_t i) {
  uint32_t at = view->start + line_offset(l, view->mn_major, c, i);
  return l->swizzle ? at ^ ((at >> 7 & (l->swizzle / 16 - 1)) << 4) : at;
}

static uint32_t elements_a_line(hd_sim_operand_t type) {
  return HD_SIM_LINE / operands[type].bytes;
}

void hd_sim_view_walk(const hd_sim_view_t *view,
                      void (*visit)(void *argument, uint32_t line,
                                    uint32_t offset),
                      void *argument) {
  layout_t layout = decode(view->descriptor);
  uint32_t lines =
      view->mn_major ? view->extent / elements_a_line(view->type) : 2;
  uint32_t count = view->mn_major ? hd_sim_product_k(view->type) : view->extent;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t c = 0; c < lines; c++)
      visit(argument, i * lines + c, offset_of(view, &layout, c, i));
}

// --- Elements ---

static double f16_values[1 << 16], f8_values[2][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_values(void) {
  for (uint32_t bits = 0; bits < 1 << 16; bits++)
    f16_values[bits] = (double)hd_f16_to_f32((uint16_t)bits);
  for (uint32_t bits = 0; bits < 256; bits++) {
    f8_values[0][bits] = hd_float_decode(HD_FLOAT_F8E4M3, bits);
    f8_values[1][bits] = hd_float_decode(HD_FLOAT_F8E5M2, bits);
  }
}

static double from_f32_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return (double)value;
}

// The elements of 16 bytes.
static void decode_line(hd_sim_operand_t type, const char *line,
                        double values[HD_SIM_LINE]) {
  uint8_t bytes[HD_SIM_LINE];
  uint16_t halves[HD_SIM_LINE / 2];
  uint32_t words[HD_SIM_LINE / 4];
  memcpy(bytes, line, sizeof bytes);
  memcpy(halves, line, sizeof halves);
  memcpy(words, line, sizeof words);
  switch (type) {
  case HD_SIM_F16:
    for (int i = 0; i < HD_SIM_LINE / 2; i++)
      values[i] = f16_values[halves[i]];
    break;
  case HD_SIM_BF16:
    for (int i = 0; i < HD_SIM_LINE / 2; i++)
      values[i] = from_f32_bits((uint32_t)halves[i] << 16);
    break;
  case HD_SIM_TF32: // The low 13 bits are dropped.
    for (int i = 0; i < HD_SIM_LINE / 4; i++)
      values[i] = from_f32_bits(words[i] & ~0x1fffu);
    break;
  case HD_SIM_F8E4M3:
  case HD_SIM_F8E5M2:
    for (int i = 0; i < HD_SIM_LINE; i++)
      values[i] = f8_values[type == HD_SIM_F8E5M2][bytes[i]];
    break;
  case HD_SIM_I8:
    for (int i = 0; i < HD_SIM_LINE; i++)
      values[i] = (double)(int8_t)bytes[i];
    break;
  case HD_SIM_U8:
    for (int i = 0; i < HD_SIM_LINE; i++)
      values[i] = (double)bytes[i];
    break;
  }
}

// --- Operands ---

void hd_sim_view_b(const hd_sim_view_t *view, hd_sim_b_t b) {
  pthread_once(&once, fill_values);
  layout_t layout = decode(view->descriptor);
  uint32_t each = elements_a_line(view->type);
  double values[HD_SIM_LINE];
  if (!view->mn_major) {
    for (uint32_t n = 0; n < view->extent; n++)
      for (uint32_t c = 0; c < 2; c++) {
        decode_line(view->type, view->shared + offset_of(view, &layout, c, n),
                    values);
        for (uint32_t i = 0; i < each; i++)
          b[c * each + i][n] = values[i];
      }
    return;
  }
  for (uint32_t k = 0; k < hd_sim_product_k(view->type); k++)
    for (uint32_t c = 0; c < view->extent / each; c++)
      decode_line(view->type, view->shared + offset_of(view, &layout, c, k),
                  &b[k][c * each]);
}

void hd_sim_view_a(const hd_sim_view_t *view, uint32_t first, hd_sim_a_t a) {
  pthread_once(&once, fill_values);
  layout_t layout = decode(view->descriptor);
  uint32_t each = elements_a_line(view->type);
  double values[HD_SIM_LINE];
  if (!view->mn_major) {
    for (uint32_t row = 0; row < HD_SIM_PRODUCT_ROWS; row++)
      for (uint32_t c = 0; c < 2; c++) {
        uint32_t at = offset_of(view, &layout, c, first + row);
        decode_line(view->type, view->shared + at, &a[row][c * each]);
      }
    return;
  }
  for (uint32_t k = 0; k < hd_sim_product_k(view->type); k++)
    for (uint32_t row = 0; row < HD_SIM_PRODUCT_ROWS; row += each) {
      uint32_t at = offset_of(view, &layout, (first + row) / each, k);
      decode_line(view->type, view->shared + at, values);
      for (uint32_t i = 0; i < each; i++)
        a[row + i][k] = values[i];
    }
}

// As mma's fragment of a (Mma.c): four registers; register r holds row
// lane / 4 + 8 (r % 2), k = w (lane % 4) + 4 w (r / 2) and following, w
// elements a register.
void hd_sim_fragment_a(hd_sim_operand_t type, char *const *lanes,
                       hd_sim_a_t a) {
  pthread_once(&once, fill_values);
  uint32_t width = 4 / operands[type].bytes;
  for (uint32_t lane = 0; lane < 32; lane++) {
    double values[HD_SIM_LINE];
    decode_line(type, lanes[lane], values);
    for (uint32_t r = 0; r < 4; r++)
      for (uint32_t i = 0; i < width; i++)
        a[lane / 4 + 8 * (r % 2)]
         [width * (lane % 4) + 4 * width * (r / 2) + i] = values[width * r + i];
  }
}

// --- Sums ---

static void add_row(hd_sim_sum_t type, char *c, uint32_t i, bool keep,
                    double sum) {
  switch (type) {
  case HD_SIM_F32: {
    float *at = (float *)(void *)c + i;
    *at = (float)(keep ? (double)*at + sum : sum);
    break;
  }
  case HD_SIM_SUM_F16: {
    uint16_t *at = (uint16_t *)(void *)c + i;
    *at = hd_f16_from_f64(keep ? f16_values[*at] + sum : sum);
    break;
  }
  case HD_SIM_I32: { // Wraps.
    uint32_t *at = (uint32_t *)(void *)c + i;
    *at = (keep ? *at : 0) + (uint32_t)(int64_t)sum;
    break;
  }
  }
}

// Element 4 j + e of a lane: row lane / 4 + 8 (e / 2), column 8 j + 2 (lane %
// 4)
// + e % 2.
static void scatter(hd_sim_sum_t type, uint32_t row, uint32_t n, bool keep,
                    const double *sums, char *const *lanes) {
  for (uint32_t column = 0; column < n; column++) {
    uint32_t lane = row % 8 * 4 + column % 8 / 2;
    uint32_t i = column / 8 * 4 + row / 8 * 2 + column % 2;
    add_row(type, lanes[lane], i, keep, sums[column]);
  }
}

void hd_sim_product(hd_sim_sum_t type, uint32_t k, uint32_t n, bool keep,
                    hd_sim_a_t a, hd_sim_b_t b, char *const *lanes) {
  for (uint32_t row = 0; row < HD_SIM_PRODUCT_ROWS; row++) {
    double sums[HD_SIM_PRODUCT_N];
    for (uint32_t j = 0; j < n; j++)
      sums[j] = a[row][0] * b[0][j];
    for (uint32_t p = 1; p < k; p++) {
      const double x = a[row][p], *restrict line = b[p];
      for (uint32_t j = 0; j < n; j++)
        sums[j] += x * line[j];
    }
    scatter(type, row, n, keep, sums, lanes);
  }
}
