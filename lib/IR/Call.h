// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a function and its caller have to agree on: a tensor is passed by
// reference, so its shape, its layout and where it lies are those that the
// parameter says. Sizes that the parameter leaves open follow from the tensor:
//
//   fn f(in a: f32[m, 8] layout(strides(s, 1)))     binds m and s
#ifndef HIDET_IR_CALL_H
#define HIDET_IR_CALL_H

#include "IR/Module.h"

// The size's value in the terms of the caller, and of its own type; of a call
// that agrees.
const hd_expr_t *hd_call_size(hd_arena_t *arena, const hd_func_t *func,
                              const hd_expr_t *const *args, uint32_t size);

// The first argument that does not agree with its parameter, among those that
// are tensors of the parameter's element type and rank; -1: none. *wanted,
// which may be NULL: what the parameter is in the terms of the caller.
int hd_call_disagrees(hd_arena_t *arena, const hd_func_t *func,
                      const hd_expr_t *const *args, const hd_tensor_t **wanted);

// Whether a number in the type of a fn's tensor is what a function may find: of
// sizes and constants, without an argument, which would say it again.
bool hd_func_finds(const hd_func_t *func, const hd_expr_t *number);

// The size of func that stands as entry number `place` of the shape (of the
// strides: is_stride) of a parameter, where it gets its value; -1: none does.
int hd_func_find_size(const hd_func_t *func, uint32_t param, uint32_t place,
                      bool is_stride);

#endif
