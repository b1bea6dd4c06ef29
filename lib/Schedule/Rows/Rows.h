// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the files share that make kernels over rows: RowsFind.c, which
// definitions are one kernel (RowsAxes.c, over which axes); RowsPlan.c, what is
// computed when, and by whom where no template says; RowsKernel.c, the
// statements; RowsCombine.c, what the threads of a row combine to;
// RowsTemplate.c, kernels by templates; Rows.c, the rule.
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
#ifndef HIDET_SCHEDULE_ROWS_ROWS_H
#define HIDET_SCHEDULE_ROWS_ROWS_H

#include "Schedule/Rules/Rules.h"
#include "Schedule/Template/Candidates.h"

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
  bool is_early;   // VECTOR: it reads what all rows have in common, before all.
  bool is_kept;    // VECTOR: in registers, from the first phase to the last.
  bool in_place;   // VECTOR: it takes the place that main's element had.
  const hd_var_t *cells[HD_MAX_COMPONENTS]; // The registers.
  // REDUCE: what blocks of the grid leave for the launches behind.
  const hd_task_value_t *parts[HD_MAX_COMPONENTS];
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
  bool ordered; // A monoid may not commute: threads take neighbours.
  // The step that reads the largest tensor of which each element is read once;
  // NULL: there is none.
  const hd_row_step_t *main;
  double bytes, main_bytes; // Of all that is read and stored; of main's tensor.
  double instructions;      // Of an element.
  double kept;              // Registers that an element of a row may take.
  bool is_simulated;        // A host takes the GPU's place.
  bool is_coarse;           // Only numbers of 16 bits are stored.
  hd_scalar_t place; // Of those elements, which are at hand in places of their
                     // own that may be written; HD_VOID: they are not.
  bool has_early;    // Some step is.
  bool is_given;     // A template has its elements at hand: they are not kept.
  unsigned phases;   // Before the last, which stores.
  // Threads of a row; rows of a block; elements side by side that a thread
  // takes at a time; times.
  int64_t threads, rows, lanes, turns;
  bool along;       // Neighbouring threads take elements, and not rows.
  bool first_alone; // The last reductions matter to the first thread alone.
} hd_rows_t;

// Whether the definitions first .. end - 1 are one kernel; then its steps.
bool hd_rows_find(hd_arena_t *arena, const hd_task_t *flat, size_t first,
                  size_t end, hd_rows_t *rows);
// Which phase computes what; how the axes are best counted: rows->lanes
// elements lie side by side where a row, and each multiple of them, begins;
// along: those of a row are closer to each other than rows. False where the
// phases are too many.
bool hd_rows_order(hd_rows_t *rows);
// Whether a term of a step is a number for each row.
bool hd_rows_is_number(const hd_rows_t *rows, const hd_term_t *term);
// What is asked for before all else, of what all rows have in common, where a
// thread has so many elements of a row and registers for it: of constants that
// is before the kernel waits for the one before it. What is kept is known.
void hd_rows_ask_early(hd_rows_t *rows, int64_t each);
// What stays in registers where a thread has so many elements of a row.
void hd_rows_keep(hd_rows_t *rows, int64_t each);
// Of rows in order, threads and what is kept; false where rows are too few and
// too long. multiprocessors: of the GPU that is meant; 0: it runs on a host.
bool hd_rows_plan(hd_rows_t *rows, int multiprocessors);
// Whether that pays for one definition alone: elements are read at plain
// indices, and neighbours by neighbouring threads, or there are many.
bool hd_rows_pay(const hd_rows_t *rows);

// --- Templates ---

// The first definitions of a flat task that are rows, in order; false where
// there are none.
bool hd_rows_first(hd_arena_t *arena, const hd_task_t *flat, hd_rows_t *rows);
// Rows in order as templates are asked about them; or why they are not.
const char *hd_rows_ask(hd_arena_t *arena, hd_rows_t *rows, bool simulated,
                        hd_form_t *form);
// Makes what is computed for each element cheaper, where nothing but numbers of
// 16 bits is stored (is_coarse); the steps are to be put in order again.
void hd_rows_coarsen(hd_rows_t *rows);
// The kernel by the best template. False where there is none; after an error
// (reported) rules->failed.
bool hd_rows_by_template(hd_rules_t *rules, hd_rows_t *rows);

// --- The kernel ---

typedef struct hd_row_maker {
  hd_kernel_draft_t draft;
  hd_rows_t *rows;
  uint16_t across[HD_ACROSS_COUNT]; // Who has a row; thread 0: neighbours have.
  int64_t slots;                    // Rows of a block.
  const hd_expr_t *worker; // The thread's number among the block's of its row,
  const hd_expr_t *slot;   // the row's number in its block.
  const hd_expr_t *first;  // It is the row's first thread; NULL: the only one.
  const hd_expr_t *row;    // The row's number.
  const hd_expr_t *exists; // The row does; NULL: always.
  // Where blocks of the grid have a row, each phase is a launch: which one this
  // is, and the block's number among those of its row.
  unsigned launch;
  const hd_expr_t *rank;
  // The loop over a row's elements, one axis, by those of a block or cluster
  // who have it; only its mapping, worker and unroll count. And what a template
  // has for the element of rows->main, by the loop's variable; NULL: that is
  // read.
  const hd_stmt_t *loop;
  const hd_expr_t *given;
  // What the loop's variable is counted from, where the block has a part of a
  // row; NULL: 0.
  const hd_expr_t *base;
  // The cluster's blocks have said that they are there, and nobody has waited
  // for that.
  bool arrived;
} hd_row_maker_t;

// Names worker, slot and first, of across and slots.
void hd_rows_place_thread(hd_row_maker_t *m);
// All that is done with the row, whose indices are bound.
void hd_rows_put(hd_row_maker_t *m);

// Before its elements are gone over, where blocks of a cluster have a row: they
// say that they have begun, which hd_rows_combine waits for. All threads come
// here.
void hd_rows_arrive(hd_row_maker_t *m);

// Where blocks of the grid have a row: the first thread of its part leaves what
// the block has combined; threads take what all blocks of a row have left,
// which is to be combined across them.
void hd_rows_leave_parts(hd_row_maker_t *m, const hd_row_step_t *step);
void hd_rows_take_parts(hd_row_maker_t *m, const hd_row_step_t *step);

// From what each thread of a row has combined to what all have, in the
// reduction's registers of every thread, or of the first one where that is
// enough. All threads of the block come here.
void hd_rows_combine(hd_row_maker_t *m, const hd_row_step_t *step);

#endif
