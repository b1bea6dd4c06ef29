// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of a task's text: terms (PrintTerm.c), and what rewrites have as
// well (PrintTask.c).
#ifndef HIDET_IR_TEXT_TASKPRINTER_H
#define HIDET_IR_TEXT_TASKPRINTER_H

#include "IR/Graph/Task.h"

// --- PrintTerm.c ---

// asked: its surroundings give a bare number its type. least: the loosest
// precedence that needs no parentheses.
void hd_print_term(hd_buffer_t *out, const hd_term_t *term, int least,
                   bool asked);
// Over a pack, with ".." before it.
void hd_print_task_axis(hd_buffer_t *out, const hd_term_t *term, bool asked);
// Several, with commas.
void hd_print_task_axes(hd_buffer_t *out, const hd_term_t *const *terms,
                        unsigned count, bool asked);
// Indices with the ranges that were written.
void hd_print_task_indices(hd_buffer_t *out, const hd_index_t *const *indices,
                           unsigned count);

// --- PrintTask.c ---

// What stands behind a value's name and colon.
void hd_print_task_type(hd_buffer_t *out, const hd_task_t *task,
                        const hd_task_value_t *value);
// The conditions after `before`; false where there are none.
bool hd_print_task_where(hd_buffer_t *out, const hd_task_t *task,
                         const char *before);

#endif
