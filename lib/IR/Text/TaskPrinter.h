// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of a task's text that rewrites have as well (PrintTask.c).
#ifndef HIDET_IR_TEXT_TASKPRINTER_H
#define HIDET_IR_TEXT_TASKPRINTER_H

#include "IR/Graph/Task.h"

// What stands behind a value's name and colon.
void hd_print_task_type(hd_buffer_t *out, const hd_task_t *task,
                        const hd_task_value_t *value);
// Terms with commas, those over packs with "..".
void hd_print_task_axes(hd_buffer_t *out, const hd_term_t *const *terms,
                        unsigned count);
// The conditions after `before`; false where there are none.
bool hd_print_task_where(hd_buffer_t *out, const hd_task_t *task,
                         const char *before);

#endif
