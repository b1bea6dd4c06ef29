// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What evaluating an expression does besides giving a value: the questions that
// a pass asks before it moves, copies or drops one. Calls are looked into.
#ifndef HIDET_IR_EFFECTS_H
#define HIDET_IR_EFFECTS_H

#include "IR/Module.h"

// No effect: evaluating it twice, or not at all, changes nothing. It may read.
bool hd_expr_is_pure(const hd_expr_t *e);
// Its value depends on what lies in a tensor, registers too. What a function
// that is given no tensor declares for itself does not count.
bool hd_expr_reads_memory(const hd_expr_t *e);
// Pure and reads no memory: the same value wherever it is evaluated.
bool hd_expr_is_stable(const hd_expr_t *e);
// Evaluating it twice does the same as once: it writes nothing that lasts and
// waits for no other thread. What e is where it is not pure: a function may
// read through tensors, and may loop.
bool hd_expr_is_repeatable(const hd_expr_t *e);

// Of all expressions of a list. NULL among them is no expression.
bool hd_exprs_are_pure(const hd_expr_t *const *exprs, size_t count);

// A call has no effect and depends on its arguments alone.
bool hd_func_is_pure(const hd_func_t *func);
// Whether a function may write through one of its tensor parameters, by itself
// or by what it calls.
bool hd_func_writes(const hd_func_t *func, const hd_var_t *param);

// Whether it is an element, or a few, of a tensor in global memory.
bool hd_expr_is_global_load(const hd_expr_t *e);

#endif
