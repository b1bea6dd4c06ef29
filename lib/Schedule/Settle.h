// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules that were written for any sizes (`with NAME`, docs/IR.md), made for
// those of one node: what the scheduler makes itself has no sizes, and fusion
// wants shapes that are constants.
#ifndef HIDET_SCHEDULE_SETTLE_H
#define HIDET_SCHEDULE_SETTLE_H

#include "IR/Graph/Graph.h"
#include "Support/Map.h"

// What has been made, so that nodes of the same sizes share it.
typedef struct hd_settler {
  hd_module_t *module;
  hd_ptr_map_t made; // By what it was made of, a list.
} hd_settler_t;

// The schedule of a node whose shapes are known, with tensors alone for
// parameters, of constant shapes: the node's inputs, then its outputs. It is
// the node's own where that is so already; else a new item of the module, whose
// name is the old one with sizes behind it. A plan's launches are of such
// kernels, too, where it gives their sizes as constants. Reports what does not
// fit (E0316), or breaks a rule for these sizes; then NULL.
const hd_func_t *hd_settler_settle(hd_settler_t *settler,
                                   const hd_node_t *node);

#endif
