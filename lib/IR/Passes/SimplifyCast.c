// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules of simplify for conversions: those that need not be made, and
// floats that are integers already; and for what is clamped twice.
//
//   let v = min(max(x - 12582912.0, -128.0), 127.0)
//   f32(i8(v)) * 0.5
//   i8(v)
//
// becomes, for 12582912 is 1.5 * 2^23, and no f32 between 2^23 and 2^24 has a
// fraction,
//
//   v * 0.5
//   i8(bitcast(i32, min(max(x, 12582784.0), 12583039.0)))
//
// the second with resolve-layouts, when all of the first have been seen. Both
// leave out the unit that converts, an eighth as fast as the one that adds.

#include "IR/Passes/Simplifier.h"

#include <math.h>

static bool is_integer(const hd_expr_t *e) {
  return e->type.lanes == 1 && hd_type_is_integer(e->type);
}

static bool is_whole(hd_type_t type) {
  return type.lanes == 1 && (hd_type_is_integer(type) || hd_type_is_bool(type));
}

static bool is_f32(const hd_expr_t *e) {
  return e->type.scalar == HD_F32 && e->type.lanes == 1;
}

// e is a kind b with a constant b, which goes to value.
static const hd_expr_t *left_of(const hd_expr_t *e, hd_expr_kind_t kind,
                                double *value) {
  if (e->kind != kind || !hd_expr_is_const(e->operands[1]))
    return NULL;
  *value = e->operands[1]->u.f;
  return e->operands[0];
}

// A bound that no other zero compares equal to.
static bool is_bound(const hd_expr_t *e) {
  return hd_expr_is_const(e) && !isnan(e->u.f) &&
         (e->u.f != 0 || !signbit(e->u.f));
}

// kind(x, a) and kind(., b) are one; max(min(max(x, a), b), c) is
// min(max(x, c), max(b, c)) where a <= b and a <= c. Both drop NaN.
const hd_expr_t *hd_simplify_clamp(hd_simplifier_t *s, const hd_expr_t *e) {
  const hd_expr_t *inner = e->operands[0], *bound = e->operands[1];
  hd_expr_kind_t kind = (hd_expr_kind_t)e->kind;
  double a, b, c = bound->u.f;
  if (!is_f32(e) || !is_bound(bound) || inner->num_operands != 2 ||
      !is_bound(inner->operands[1]))
    return e;
  const hd_expr_t *x = left_of(inner, kind, &b);
  if (x) {
    double one = kind == HD_EXPR_MIN ? fmin(b, c) : fmax(b, c);
    return hd_expr_binary(s->arena, kind, x,
                          hd_expr_float(s->arena, e->type, one));
  }
  x = kind == HD_EXPR_MAX ? left_of(inner, HD_EXPR_MIN, &b) : NULL;
  const hd_expr_t *least = x;
  x = least ? left_of(least, HD_EXPR_MAX, &a) : NULL;
  if (!x || !is_bound(least->operands[1]) || a > b || a > c)
    return e;
  least = hd_expr_binary(s->arena, HD_EXPR_MAX, x, bound);
  return hd_expr_binary(s->arena, HD_EXPR_MIN, least,
                        hd_expr_float(s->arena, e->type, fmax(b, c)));
}

enum { MOST_SHIFT = 4096 };

// min(max(x - shift, least), most)
typedef struct clamped {
  const hd_expr_t *x;
  double shift, least, most;
} clamped_t;

// Not -0, which an integer would lose.
static bool is_i32(double value) {
  return value == (int32_t)value && (value != 0 || !signbit(value));
}

// Whether e is one of a type's values, and neither -0 nor NaN: clamped to them,
// as min and max drop NaN, and where it is not clamped the difference of two
// integers from 2^23 to 2^24.
static bool is_one_of(const hd_expr_t *e, hd_type_t type, clamped_t *c) {
  if (!is_f32(e) || hd_type_bits(type) > 16)
    return false;
  e = left_of(e, HD_EXPR_MIN, &c->most);
  e = e ? left_of(e, HD_EXPR_MAX, &c->least) : NULL;
  c->x = e ? left_of(e, HD_EXPR_SUB, &c->shift) : NULL;
  hd_range_t range = hd_type_range(type);
  return c->x && c->least >= (double)range.least &&
         c->most <= (double)range.greatest && c->least <= c->most &&
         c->least + c->shift >= 0x1p23 && c->most + c->shift <= 0x1p24 - 1 &&
         is_i32(c->least) && is_i32(c->most) && is_i32(c->shift);
}

// The bits of an f32 from 2^23 to 2^24 count its integers.
static const hd_expr_t *by_bits(hd_simplifier_t *s, const hd_expr_t *e,
                                const clamped_t *c) {
  hd_arena_t *arena = s->arena;
  hd_type_t type = c->x->type, bits = hd_type(HD_I32);
  const hd_expr_t *x =
      hd_expr_binary(arena, HD_EXPR_MAX, c->x,
                     hd_expr_float(arena, type, c->least + c->shift));
  x = hd_expr_binary(arena, HD_EXPR_MIN, x,
                     hd_expr_float(arena, type, c->most + c->shift));
  x = hd_expr_make(arena, HD_EXPR_BITCAST, bits, e, &x, 1);
  // Higher ones are cut off.
  int64_t less =
      (int64_t)(c->shift - 0x1p23) % (INT64_C(1) << hd_type_bits(e->type));
  if (less)
    x = hd_expr_binary(arena, HD_EXPR_SUB, x, hd_expr_int(arena, bits, less));
  return hd_expr_cast(arena, e->type, x);
}

// A clamped integer and another: the integer is the shift's, and the bounds'.
const hd_expr_t *hd_simplify_shifted(hd_simplifier_t *s, const hd_expr_t *e) {
  const hd_expr_t *by = e->operands[1];
  clamped_t c;
  if (!is_f32(e) || !hd_expr_is_const(by) || !is_i32(by->u.f) ||
      fabs(by->u.f) > MOST_SHIFT ||
      !is_one_of(e->operands[0], hd_type(HD_I16), &c))
    return e;
  double less = e->kind == HD_EXPR_SUB ? by->u.f : -by->u.f;
  hd_type_t type = e->type;
  const hd_expr_t *x =
      hd_expr_binary(s->arena, HD_EXPR_SUB, c.x,
                     hd_expr_float(s->arena, type, c.shift + less));
  x = hd_expr_binary(s->arena, HD_EXPR_MAX, x,
                     hd_expr_float(s->arena, type, c.least - less));
  return hd_expr_binary(s->arena, HD_EXPR_MIN, x,
                        hd_expr_float(s->arena, type, c.most - less));
}

// What a name stands for, where that is known.
static const hd_expr_t *named(hd_simplifier_t *s, const hd_expr_t *e) {
  const hd_expr_t *value =
      e->kind == HD_EXPR_VAR ? hd_facts_value(s->facts, e->u.var) : NULL;
  return value ? value : e;
}

const hd_expr_t *hd_simplify_cast(hd_simplifier_t *s, const hd_expr_t *e) {
  const hd_expr_t *a = e->operands[0];
  if (hd_type_equal(a->type, e->type))
    return a;
  if (e->kind != HD_EXPR_CAST)
    return e;
  clamped_t clamped;
  const hd_expr_t *from = named(s, a);
  if (from->kind == HD_EXPR_CAST && is_f32(e) && is_integer(from) &&
      is_one_of(from->operands[0], from->type, &clamped))
    return from->operands[0];
  if (!is_integer(e))
    return e;
  if (s->resolve && is_one_of(a, e->type, &clamped))
    return by_bits(s, e, &clamped);
  // A conversion between that keeps the value need not be made.
  if (a->kind != HD_EXPR_CAST || !is_integer(a) ||
      !is_whole(a->operands[0]->type) ||
      !hd_range_inside(hd_facts_range(s->facts, a->operands[0]),
                       hd_type_range(a->type)))
    return e;
  if (hd_type_equal(a->operands[0]->type, e->type))
    return a->operands[0];
  return hd_expr_cast(s->arena, e->type, a->operands[0]);
}
