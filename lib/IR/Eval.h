// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What expressions are worth at a launch: sizes, grids, offsets.
#ifndef HIDET_IR_EVAL_H
#define HIDET_IR_EVAL_H

#include "IR/Module.h"

typedef struct hd_var_value {
  const hd_var_t *var; // A scalar.
  hd_number_t value;
} hd_var_value_t;

typedef struct hd_env {
  HD_VEC(hd_var_value_t) values;
  int64_t sms; // device.sms
} hd_env_t;

// The variable has no value yet.
void hd_env_add(hd_arena_t *arena, hd_env_t *env, const hd_var_t *var,
                hd_number_t value);
// The variable may have a value, which it loses.
void hd_env_set(hd_arena_t *arena, hd_env_t *env, const hd_var_t *var,
                hd_number_t value);
// NULL where the variable has no value.
const hd_number_t *hd_env_find(const hd_env_t *env, const hd_var_t *var);

// The value of an integer or bool expression, wrapped at its type as on the
// device. False where a variable has no value, or it divides by zero, or it is
// no such expression. Takes no memory: offsets are asked for by the million.
bool hd_eval_int(const hd_env_t *env, const hd_expr_t *e, int64_t *value);

// The same of a size or a count of blocks, which is none where a signed sum,
// difference or product on the way does not fit its type: then *wrapped is true
// and the result false.
bool hd_eval_size(const hd_env_t *env, const hd_expr_t *e, int64_t *value,
                  bool *wrapped);

// Of any scalar expression.
bool hd_eval(const hd_env_t *env, const hd_expr_t *e, hd_number_t *value);

#endif
