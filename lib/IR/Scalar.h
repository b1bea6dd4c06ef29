// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic on single numbers by the rules of docs/IR.md, the same as the
// emitted code gives. Pure functions; thread-safe.
#ifndef HIDET_IR_SCALAR_H
#define HIDET_IR_SCALAR_H

#include "IR/Expr.h"

// The low bits of an integer, as its type reads them; bool: whether it is not
// 0.
int64_t hd_int_wrap(hd_scalar_t type, int64_t value);
// Towards zero, to the nearest that the integer type holds; NaN gives 0.
int64_t hd_int_saturate(hd_scalar_t type, double value);

// An operator of form UNARY (b is not looked at), BINARY or COMPARE, MIN or
// MAX, of two operands of a type; a comparison gives a bool. False where an
// integer is divided by zero, and where the type has no such operator.
bool hd_scalar_operate(hd_expr_kind_t op, hd_scalar_t type, hd_number_t a,
                       hd_number_t b, hd_number_t *out);
hd_number_t hd_scalar_convert(hd_scalar_t to, hd_scalar_t from, hd_number_t a);

typedef enum hd_limit {
  HD_LIMIT_LARGEST,  // Of floats, of those that are finite.
  HD_LIMIT_SMALLEST, // Above 0; of floats, of those that are normal.
} hd_limit_t;

// Of an integer type or a float.
hd_number_t hd_scalar_limit(hd_limit_t limit, hd_scalar_t type);

#endif
