// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The normal form of rows, each multiplied by one of several matrices, which an
// index chooses:
//
//   c[i, j] = sum(p) a[i / sharing, p] * b[at[i], j, p]
//
// Experts of a layer are such. Rows are ordered by their matrices first, so
// that each matrix is read once for all of its rows.
#ifndef HIDET_SCHEDULE_GROUPED_GROUPED_H
#define HIDET_SCHEDULE_GROUPED_GROUPED_H

#include "Schedule/Template/Candidates.h"
#include "Schedule/Template/FormTensor.h"

typedef enum hd_grouped_axis {
  HD_GROUPED_MATRIX, // The matrices that there are.
  HD_GROUPED_M,
  HD_GROUPED_N,
  HD_GROUPED_K,
  HD_GROUPED_AXES
} hd_grouped_axis_t;

typedef struct hd_grouped_form {
  hd_form_result_t result; // In c.
  int64_t sizes[HD_GROUPED_AXES];
  hd_scalar_t type;               // Of a and b.
  int64_t sharing;                // Rows that are one of a's.
  const hd_index_t *row, *column; // i and j.
  hd_form_tensor_t a, b, c;       // [m / sharing, k], [z, n, k], [m, n]
  const hd_term_t *at;            // By the row.
} hd_grouped_form_t;

// NULL, or why a flat task is no such product with operands of one narrow type
// that are tensors, summed in f32. What multiplies rows by all matrices and
// then takes the chosen part is one, too.
const char *hd_grouped_form_find(hd_arena_t *arena, const hd_task_t *flat,
                                 hd_grouped_form_t *form);

// As hd_product_form_mark() does.
void hd_grouped_form_mark(hd_grouped_form_t *form, const hd_task_t *flat,
                          uint64_t computed);

// The form as templates are asked about it.
hd_form_t hd_grouped_form_ask(hd_arena_t *arena, const hd_grouped_form_t *form);

#endif
