// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Flat tasks, brought into the form that the rules want.
#ifndef HIDET_SCHEDULE_TERMS_PREPARE_H
#define HIDET_SCHEDULE_TERMS_PREPARE_H

#include "Schedule/Terms/Terms.h"

// Reductions inside definitions that are the same for many of their elements
// become local tensors, and scans do always:
//
//   y[i, p] = e[i, p] / sum(q: n) e[i, q]
//
// becomes
//
//   y_part[i] = sum(q: n) e[i, q]
//   y[i, p]   = e[i, p] / y_part[i]
//
// A definition is left with one reduction of weight at most.
void hd_task_hoist(hd_arena_t *arena, hd_task_t *task);

// Local tensors that cost less to compute again than to keep are replaced by
// what they are.
void hd_task_inline(hd_arena_t *arena, hd_task_t *task);
// The same whatever it costs, as far as it is possible.
void hd_task_inline_all(hd_arena_t *arena, hd_task_t *task);

// How often a definition reads elements of a tensor, for all of its points, is
// added to `times`. is_decided: somewhere data say which, or whether any.
typedef struct hd_flat_reads {
  const hd_task_value_t *value;
  double times;
  bool is_decided;
} hd_flat_reads_t;
void hd_flat_count_reads(const hd_definition_t *d, hd_flat_reads_t *reads);

// Elements below a byte are written by pointwise definitions alone, which know
// to keep bytes together: others get a wider local tensor.
void hd_task_widen(hd_arena_t *arena, hd_task_t *task);

#endif
