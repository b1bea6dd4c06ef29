// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The value of an integer term of a flat task, as the language defines it.
#ifndef HIDET_UNITTESTS_TERMEVAL_H
#define HIDET_UNITTESTS_TERMEVAL_H

#include "Schedule/Terms/Terms.h"
#include "UnitTest.h"

enum { MAX_VALUES = 64 };

// What indices are worth.
typedef struct term_values {
  unsigned count;
  const hd_index_t *indices[MAX_VALUES];
  int64_t values[MAX_VALUES];
} term_values_t;

static inline void term_set(term_values_t *v, const hd_index_t *index,
                            int64_t value) {
  unsigned i = 0;
  while (i < v->count && v->indices[i] != index)
    i++;
  assert_true(i < MAX_VALUES);
  v->indices[i] = index;
  v->values[i] = value;
  v->count += i == v->count;
}

static inline int64_t term_eval(const term_values_t *v, const hd_term_t *term) {
  if (term->kind == HD_TERM_CONST)
    return term->u.i;
  if (term->kind == HD_TERM_INDEX) {
    for (unsigned i = 0; i < v->count; i++)
      if (v->indices[i] == term->u.index)
        return v->values[i];
    fail_msg("an index has no value");
  }
  assert_int_equal(term->kind, HD_TERM_OPERATOR);
  int64_t a = term_eval(v, term->operands[0]);
  if (term->u.op == HD_EXPR_AND && !a)
    return 0; // What follows may not have a meaning.
  if (term->u.op == HD_EXPR_NEG)
    return -a;
  int64_t b = term_eval(v, term->operands[1]);
  switch (term->u.op) {
  case HD_EXPR_AND:
    return b;
  case HD_EXPR_ADD:
    return a + b;
  case HD_EXPR_SUB:
    return a - b;
  case HD_EXPR_MUL:
    return a * b;
  case HD_EXPR_DIV:
    assert_true(b != 0);
    return a / b;
  case HD_EXPR_MOD:
    assert_true(b != 0);
    return a % b;
  case HD_EXPR_MIN:
    return a < b ? a : b;
  case HD_EXPR_MAX:
    return a > b ? a : b;
  case HD_EXPR_LT:
    return a < b;
  case HD_EXPR_LE:
    return a <= b;
  case HD_EXPR_GT:
    return a > b;
  case HD_EXPR_GE:
    return a >= b;
  case HD_EXPR_EQ:
    return a == b;
  case HD_EXPR_NE:
    return a != b;
  default:
    fail_msg("operator %s", hd_expr_info(term->u.op)->spelling);
    return 0;
  }
}

#endif
