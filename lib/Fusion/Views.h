// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Concatenations that move nothing: whoever makes an operand stores it where it
// belongs in the result.
#ifndef HIDET_FUSION_VIEWS_H
#define HIDET_FUSION_VIEWS_H

#include "IR/Graph/Graph.h"

enum { HD_MAX_PARTS = 4 };

// Whether a node puts its operands one after the other, each in one piece that
// a view may be of (docs/IR.md). offsets, one for each, are set to where, in
// elements. The node's shapes are known.
bool hd_node_concatenates(hd_context_t *context, const hd_node_t *node,
                          int64_t offsets[HD_MAX_PARTS]);

#endif
