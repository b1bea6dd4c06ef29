// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arithmetic of wgmma: matrices in shared memory as their descriptors tell,
// and products of a warp's 16 rows.
#ifndef HIDET_SIM_PRODUCT_H
#define HIDET_SIM_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum hd_sim_operand {
  HD_SIM_F16,
  HD_SIM_BF16,
  HD_SIM_TF32,
  HD_SIM_F8E4M3,
  HD_SIM_F8E5M2,
  HD_SIM_I8,
  HD_SIM_U8,
} hd_sim_operand_t;

typedef enum hd_sim_sum { HD_SIM_F32, HD_SIM_SUM_F16, HD_SIM_I32 } hd_sim_sum_t;

typedef struct hd_sim_shape {
  hd_sim_operand_t a, b;
  hd_sim_sum_t c;
} hd_sim_shape_t;

enum {
  HD_SIM_PRODUCT_ROWS = 16, // Of a warp.
  HD_SIM_PRODUCT_K = 32,    // At most.
  HD_SIM_PRODUCT_N = 256,   // At most.
  HD_SIM_LINE = 16,         // Bytes that lie side by side in any layout.
};

// A matrix in shared memory: `extent` rows of a or columns of b, k deep.
typedef struct hd_sim_view {
  const char *shared;  // The block's.
  uint32_t start;      // Offset in it of the first element.
  uint64_t descriptor; // With an address of 0.
  hd_sim_operand_t type;
  bool mn_major;
  uint32_t extent;
} hd_sim_view_t;

uint32_t hd_sim_operand_bytes(hd_sim_operand_t type);
uint32_t hd_sim_product_k(hd_sim_operand_t type); // Of one instruction.
uint32_t hd_sim_sum_bytes(hd_sim_sum_t type);

// The offsets in shared memory of the matrix' lines of 16 bytes; calls visit
// with each, which, where K-major, is of row `line / 2` and, where MN-major, of
// k `line / (extent / elements a line)`.
void hd_sim_view_walk(const hd_sim_view_t *view,
                      void (*visit)(void *argument, uint32_t line,
                                    uint32_t offset),
                      void *argument);

// b: [k][n]; a: [row][k], 16 rows.
typedef double hd_sim_b_t[HD_SIM_PRODUCT_K][HD_SIM_PRODUCT_N];
typedef double hd_sim_a_t[HD_SIM_PRODUCT_ROWS][HD_SIM_PRODUCT_K];

void hd_sim_view_b(const hd_sim_view_t *view, hd_sim_b_t b);
// Rows first .. first + 15 of the matrix.
void hd_sim_view_a(const hd_sim_view_t *view, uint32_t first, hd_sim_a_t a);
// From a warp's fragments of 16 bytes a lane.
void hd_sim_fragment_a(hd_sim_operand_t type, char *const *lanes, hd_sim_a_t a);

// c = c * keep + a * b; lanes[i] holds lane i's n / 2 elements of c. Each sum
// is exact to f64 and rounded once.
void hd_sim_product(hd_sim_sum_t type, uint32_t k, uint32_t n, bool keep,
                    hd_sim_a_t a, hd_sim_b_t b, char *const *lanes);

#endif
