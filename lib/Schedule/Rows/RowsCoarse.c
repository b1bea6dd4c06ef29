// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of which only numbers of 16 bits are stored: what is computed for each
// element in f32 may be off by a few units of its last place, thousandths of a
// unit of what is stored. So
//
//   e = exp(x - m)                 becomes   ex2_approx((x - m) * log2(e))
//   y = e / s, s of the row                  e * factor * inverse
//
// where, once for each row, inverse = 1 / (s * factor). factor is 1, or for
// tiny s large enough that the inverse is a number. Functions are the
// translator's business (hd_translator_t.is_coarse).
#include "Schedule/Rows/Rows.h"

// |s| below TINY is scaled by LARGE: 1 / (s * LARGE) is finite even for the
// least s, and what e * LARGE makes infinite would be so in the quotient.
static const double TINY = 0x1p-66, LARGE = 0x1p60;

typedef struct coarsener {
  hd_rows_t *rows;
  hd_arena_t *arena;
  HD_VEC(hd_row_step_t *) steps; // Those that take the old ones' place.
  HD_VEC(const hd_term_t *) divisors;
  HD_VEC(const hd_term_t *) factors;
  HD_VEC(const hd_term_t *) inverses; // Of each of them.
} coarsener_t;

// A step for a number of each row, and what stands for it.
static const hd_term_t *add_number(coarsener_t *c, const char *name,
                                   const hd_term_t *term) {
  const hd_task_value_t **values =
      HD_ARENA_ARRAY(c->arena, const hd_task_value_t *, 1);
  hd_row_step_t *step = HD_ARENA_NEW(c->arena, hd_row_step_t);
  values[0] = hd_flat_value_make(c->arena, name, HD_VALUE_LOCAL,
                                 term->type.scalar, NULL, 0);
  *step = (hd_row_step_t){
      .kind = HD_ROW_SCALAR, .term = term, .num_values = 1, .values = values};
  hd_vec_push(c->arena, &c->steps, step);
  return hd_flat_load(c->arena, values[0], NULL);
}

static size_t find_divisor(coarsener_t *c, const hd_term_t *divisor) {
  hd_arena_t *arena = c->arena;
  for (size_t i = 0; i < c->divisors.size; i++)
    if (hd_term_equal(c->divisors.data[i], divisor))
      return i;
  const hd_term_t *one = hd_flat_float(arena, HD_F32, 1);
  const hd_term_t *tiny = hd_flat_float(arena, HD_F32, TINY);
  const hd_term_t *minus = hd_flat_float(arena, HD_F32, -TINY);
  const hd_term_t *number = add_number(c, "divisor", divisor);
  const hd_term_t *is_tiny = hd_flat_operate(
      arena, HD_EXPR_AND, hd_flat_operate(arena, HD_EXPR_LT, number, tiny),
      hd_flat_operate(arena, HD_EXPR_GT, number, minus));
  const hd_term_t *factor = add_number(
      c, "factor",
      hd_flat_select(arena, is_tiny, hd_flat_float(arena, HD_F32, LARGE), one));
  const hd_term_t *inverse = add_number(
      c, "inverse",
      hd_flat_operate(arena, HD_EXPR_DIV, one,
                      hd_flat_operate(arena, HD_EXPR_MUL, number, factor)));
  hd_vec_push(arena, &c->divisors, divisor);
  hd_vec_push(arena, &c->factors, factor);
  hd_vec_push(arena, &c->inverses, inverse);
  return c->divisors.size - 1;
}

// A number for each row, certainly there.
static bool is_number(const hd_rows_t *rows, const hd_term_t *term) {
  return hd_rows_is_number(rows, term) && !hd_flat_is_risky(term);
}

// For hd_flat_rewrite().
static const hd_term_t *put_inverse(void *argument, const hd_term_t *term) {
  coarsener_t *c = argument;
  if (term->kind != HD_TERM_OPERATOR || term->u.op != HD_EXPR_DIV ||
      term->type.scalar != HD_F32 || !is_number(c->rows, term->operands[1]) ||
      is_number(c->rows, term->operands[0]))
    return term;
  size_t i = find_divisor(c, term->operands[1]);
  const hd_term_t *scaled = hd_flat_operate(
      c->arena, HD_EXPR_MUL, term->operands[0], c->factors.data[i]);
  return hd_flat_operate(c->arena, HD_EXPR_MUL, scaled, c->inverses.data[i]);
}

static bool stores_narrow(const hd_rows_t *rows) {
  for (size_t i = 0; i < rows->steps.size; i++) {
    const hd_row_step_t *step = rows->steps.data[i];
    for (uint32_t k = 0; k < step->num_values; k++) {
      hd_scalar_t type = step->values[k]->type.scalar;
      if ((step->stored >> k & 1) && type != HD_F16 && type != HD_BF16)
        return false;
    }
  }
  return true;
}

// The largest of numbers of 16 bits, compared as f32, where each is already or
// will be: no number is rounded.
static const hd_term_t *widen_extreme(hd_arena_t *arena,
                                      const hd_term_t *term) {
  int builtin = (int)term->u.reduction->monoid->builtin;
  hd_scalar_t type = term->type.scalar;
  if ((builtin != HD_MONOID_MAX && builtin != HD_MONOID_MIN) ||
      (type != HD_F16 && type != HD_BF16) || term->num_operands != 1)
    return term;
  const hd_term_t *cast = hd_term_make(arena, HD_TERM_CAST,
                                       hd_flat_type(HD_F32), term->operands, 1);
  hd_term_t *wide =
      hd_term_make(arena, HD_TERM_REDUCE, hd_flat_type(HD_F32), &cast, 1);
  wide->u = term->u;
  wide->loc = term->loc;
  return wide;
}

void hd_rows_coarsen(hd_rows_t *rows) {
  coarsener_t c = {.rows = rows, .arena = rows->arena};
  rows->is_coarse = stores_narrow(rows);
  for (size_t i = 0; i < rows->steps.size; i++) {
    hd_row_step_t *step = rows->steps.data[i];
    if (step->kind == HD_ROW_REDUCE)
      step->term = widen_extreme(c.arena, step->term);
    if (step->kind == HD_ROW_VECTOR && rows->is_coarse)
      step->term = hd_flat_rewrite(c.arena, step->term, put_inverse, &c);
    hd_vec_push(c.arena, &c.steps, step);
  }
  rows->steps.size = 0;
  for (size_t i = 0; i < c.steps.size; i++)
    hd_vec_push(c.arena, &rows->steps, c.steps.data[i]);
}
