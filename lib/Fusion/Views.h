// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Concatenations that move nothing: whoever makes an operand stores it where it
// belongs in the result.
#ifndef HIDET_FUSION_VIEWS_H
#define HIDET_FUSION_VIEWS_H

#include "Schedule/Schedule.h"

enum { HD_MAX_PARTS = 4 };

// Operands that lie side by side in every row of the result, in elements. Where
// there is one row alone each is one piece.
typedef struct hd_concatenation {
  unsigned count;
  int64_t offsets[HD_MAX_PARTS]; // In a row.
  int64_t widths[HD_MAX_PARTS];
  int64_t rows, pitch; // From one row to the next.
} hd_concatenation_t;

// Whether a node puts its operands one after the other along an axis, where
// views may be of them (docs/IR.md). The node's shapes are known.
bool hd_node_concatenates(hd_scheduler_t *scheduler, const hd_node_t *node,
                          hd_concatenation_t *c);

// The layout of a row-major tensor of that shape whose rows of `width` elements
// lie `pitch` apart; NULL where no axis begins a row.
const hd_layout_t *hd_layout_rows(hd_arena_t *arena, const int64_t *shape,
                                  unsigned rank, int64_t width, int64_t pitch);

// What such a layout has: whether the tensor's is one.
bool hd_layout_find_rows(const hd_tensor_t *tensor, int64_t *width,
                         int64_t *pitch);

#endif
