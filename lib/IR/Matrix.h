// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix operands in shared memory, as wgmma reads them: which layouts the
// hardware knows, and the descriptor that says so. From the PTX manual, "Matrix
// descriptor format" and "Shared memory matrix layout".
#ifndef HIDET_IR_MATRIX_H
#define HIDET_IR_MATRIX_H

#include "IR/Intrinsic.h"
#include "IR/Tensor.h"

// A descriptor without its address: everything in bytes.
typedef struct hd_matrix {
  uint32_t leading; // 0 where the hardware does not look at it.
  uint32_t stride;
  uint32_t swizzle; // 0, 32, 64, 128
} hd_matrix_t;

// The matrix of `extent` rows (of a) or columns (of b) at a place in a shared
// tensor. major K: the last two axes are [mn, k]; MN: they are [k, mn], and
// where extent passes the last axis the one before counts its repetitions:
// [mn / size, k, size]. NULL if the hardware can read it; else why it cannot.
const char *hd_matrix_find(const hd_tensor_t *tensor, hd_major_t major,
                           unsigned extent, hd_matrix_t *matrix);

// Likewise of the operand i (a matrix) of a call of wgmma.
const char *hd_matrix_operand(const hd_intrinsic_info_t *info,
                              const hd_expr_t *call, unsigned i,
                              hd_matrix_t *matrix);

// The bytes of the hardware's swizzle in a row-major tensor's layout; 0: none.
uint32_t hd_matrix_swizzle(const hd_tensor_t *tensor);

// The 64 bits with an address of 0: PTX has the address' bits 17-4 in bits
// 13-0, as it is before the swizzle (hd_tensor_bare_offset). The base offset is
// 0 wherever a matrix begins: the pattern goes by the address (on an H200 a
// base offset of the row modulo 8 gave wrong results).
uint64_t hd_matrix_encode(const hd_matrix_t *matrix);

#endif
