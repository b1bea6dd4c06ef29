// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the rule for rows share: RowsFind.c, which definitions are
// one kernel over rows; RowsPlan.c, who computes what when; Rows.c, the kernel;
// RowsCombine.c, what the threads of a row combine to.
//
// Some axes number the rows, others the elements of a row. What is computed is
// a list of steps, each of which reads the inputs and what steps before it
// gave:
//
//   reduce  m    = max x[r, e]          a number for each row
//   vector  k    = exp(x[r, e] - m)     a number for each element
//   reduce  s    = sum k
//   vector  y    = k / s                which is stored
//
// Phase p goes over the elements and computes the reductions that read those of
// phases before; the last phase stores.
#ifndef HIDET_SCHEDULE_ROWS_H
#define HIDET_SCHEDULE_ROWS_H

#include "Schedule/Rules.h"

typedef enum hd_row_kind {
  HD_ROW_REDUCE, // A reduction over the elements.
  HD_ROW_SCALAR,
  HD_ROW_VECTOR,
} hd_row_kind_t;

enum { HD_MAX_PHASES = 31 };

typedef struct hd_row_step {
  hd_row_kind_t kind;
  // Over rows->row and rows->element; of a reduction, the term itself, whose
  // own indices mean nothing any more.
  const hd_term_t *term;
  uint32_t num_values; // Several of a reduction of tuples.
  // What stands for the results in the terms of later steps, whatever the
  // indices.
  const hd_task_value_t *const *values;
  uint32_t stored; // A bit for each value that is a tensor in memory,
  const hd_definition_t *definition; // whose indices say where.
  // Of a reduction the phase that computes it, else the first one that could.
  unsigned phase;
  uint32_t phases; // VECTOR: a bit for each phase that reads it.
  bool is_kept;    // VECTOR: in registers, from the first phase to the last.
  const hd_var_t *cells[HD_MAX_COMPONENTS]; // The registers.
} hd_row_step_t;

// Some indices, the last fastest.
typedef struct hd_row_axes {
  const hd_index_t *indices[HD_MAX_RANK];
  unsigned count;
  int64_t points;
} hd_row_axes_t;

typedef struct hd_rows {
  hd_arena_t *arena;
  hd_row_axes_t row, element;
  HD_VEC(hd_row_step_t *) steps;
  bool ordered;    // A monoid may not commute: threads take neighbours.
  unsigned phases; // Before the last, which stores.
  // Threads of a row; rows of a block; elements side by side that a thread
  // takes at a time; times.
  int64_t threads, rows, lanes, turns;
  bool along;       // Neighbouring threads take elements, and not rows.
  bool first_alone; // The last reductions matter to the first thread alone.
} hd_rows_t;

// Whether the definitions first .. end - 1 are one kernel; then its steps.
bool hd_rows_find(hd_arena_t *arena, const hd_task_t *flat, size_t first,
                  size_t end, hd_rows_t *rows);
// Phases, threads and what is kept; false where rows are too few and too long.
// multiprocessors: of the GPU that is meant; 0: it runs on a host.
bool hd_rows_plan(hd_rows_t *rows, int multiprocessors);
// Whether that pays for one definition alone: elements are read at plain
// indices, and neighbours by neighbouring threads, or there are many.
bool hd_rows_pay(const hd_rows_t *rows);

// --- The kernel ---

typedef struct hd_row_maker {
  hd_kernel_draft_t draft;
  hd_rows_t *rows;
  const hd_expr_t *worker; // The thread's number among those of its row,
  const hd_expr_t *slot;   // the row's number in its block.
  const hd_expr_t *exists; // The row does; NULL: always.
} hd_row_maker_t;

// From what each thread of a row has combined to what all have, in the
// reduction's registers of every thread, or of the first one where that is
// enough. All threads of the block come here.
void hd_rows_combine(hd_row_maker_t *m, const hd_row_step_t *step);

#endif
