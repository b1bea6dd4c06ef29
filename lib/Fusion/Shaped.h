// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes of flat tasks among values that have other shapes.
#ifndef HIDET_FUSION_SHAPED_H
#define HIDET_FUSION_SHAPED_H

#include "Graph/Names.h"
#include "IR/Graph/Graph.h"

typedef void (*hd_put_node_fn_t)(void *argument, const hd_node_t *node);

// Puts a copy of the node, whose task is flat, and reshapes before and after it
// where its inputs and outputs (NULL: not asked for) have other shapes than the
// task's tensors, of as many elements. All are made in the arena; values
// between have unique names.
void hd_put_shaped(hd_arena_t *arena, hd_key_map_t *names,
                   const hd_node_t *node, hd_put_node_fn_t put, void *argument);

#endif
