// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several flat tasks as one: what a norm is that a model spells out by means,
// differences and quotients, each a node of its own.
#ifndef HIDET_SCHEDULE_TERMS_MERGE_H
#define HIDET_SCHEDULE_TERMS_MERGE_H

#include "IR/Graph/Graph.h"
#include "Schedule/Terms/Terms.h"
#include "Support/Map.h"

// A node: its task, or a reshape.
typedef struct hd_merge_part {
  const hd_task_t *flat; // Prepared or not; NULL: a reshape.
  const hd_node_t *node; // Whose inputs and outputs are the task's, in order.
} hd_merge_part_t;

typedef struct hd_merged {
  hd_task_t *flat;
  // What its inputs are: values that no part gives. They, and outputs, may have
  // another shape there, of the same elements in row-major order.
  HD_VEC(const hd_value_t *) inputs;
} hd_merged_t;

// Parts in an order in which each comes after what it reads; outputs are those
// of their values that are to be tensors in memory, and become the task's, in
// that order. Inner values become locals. Reshapes become index maps: axes are
// split until places are plain indices, where that is possible. Inputs are
// named x0, x1, ..., outputs y0, ..., so that parts which compute the same
// become tasks of the same text. Shapes are known. False where a part scatters,
// has tensors without elements, or looks past the end of a tensor that is
// reshaped.
bool hd_flat_merge(hd_arena_t *arena, const char *name,
                   const hd_merge_part_t *parts, size_t num_parts,
                   const hd_value_t *const *outputs, size_t num_outputs,
                   hd_merged_t *merged);

// Splits axes of tensors and the indices that run along them, so that places
// like a * 128 + b, i / 128 and i % 128 become plain indices. Inputs and
// outputs get other shapes of the same elements in row-major order.
void hd_flat_split_axes(hd_arena_t *arena, hd_task_t *task);

// Whether a flat task, prepared or not, becomes exactly one kernel over rows
// (RowsFind.c says which do).
bool hd_rows_fit(hd_arena_t *arena, const hd_task_t *flat);

#endif
