// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What placing a tensor's elements and counting them share (Layout.c,
// Storage.c), and the verifier.
#ifndef HIDET_IR_LAYOUTPARTS_H
#define HIDET_IR_LAYOUTPARTS_H

#include "IR/Mapping.h"

// Elements change places in groups of 2^(base + bits): bits of the row's
// number, `shift` above, are exclusive-or'ed with those from `base` on.
typedef struct hd_swizzle {
  int64_t bits, base, shift;
} hd_swizzle_t;

hd_swizzle_t hd_swizzle_of(const hd_tensor_t *tensor,
                           const hd_layout_item_t *item);
// What lies under the swizzles: rows where nothing is said.
const hd_layout_item_t *hd_layout_base(const hd_tensor_t *tensor);
// The type of the tensor's offsets.
hd_type_t hd_layout_index_type(const hd_tensor_t *tensor);
int64_t hd_layout_number(const hd_expr_t *e); // 0 where it is no constant.
// Whether all values of an item are constants in a range.
bool hd_layout_item_within(const hd_layout_item_t *item, int64_t least,
                           int64_t most);
// Without what constants settle.
const hd_expr_t *hd_layout_binary(hd_arena_t *arena, hd_expr_kind_t kind,
                                  const hd_expr_t *a, const hd_expr_t *b);
// e as another type of index arithmetic.
const hd_expr_t *hd_layout_convert(hd_arena_t *arena, hd_type_t type,
                                   const hd_expr_t *e);

#endif
