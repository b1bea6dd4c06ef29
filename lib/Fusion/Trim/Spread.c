// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Fusion/Trim/Spread.h"

#include "IR/Effects.h"
#include "IR/Range.h"

static const hd_spread_t unknown;

// --- Bases ---

enum { MAX_NODES = 200 }; // Of a base.

static int64_t common(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

// A number that a base is a multiple of; 0: it is 0.
static int64_t divisor(const hd_spreads_t *s, const hd_expr_t *e) {
  if (!e)
    return 0;
  switch ((hd_expr_kind_t)e->kind) {
  case HD_EXPR_CONST:
    return e->u.i < 0 ? -e->u.i : e->u.i;
  case HD_EXPR_CAST:
    return divisor(s, e->operands[0]);
  case HD_EXPR_VAR: {
    const hd_expr_t *is = hd_ptr_map_get(&s->named, e->u.var);
    return is ? divisor(s, is) : 1;
  }
  case HD_EXPR_MUL: {
    int64_t product;
    return __builtin_mul_overflow(divisor(s, e->operands[0]),
                                  divisor(s, e->operands[1]), &product)
               ? 1
               : product;
  }
  case HD_EXPR_ADD:
  case HD_EXPR_SUB:
  case HD_EXPR_MIN:
  case HD_EXPR_MAX:
    return common(divisor(s, e->operands[0]), divisor(s, e->operands[1]));
  default:
    return 1;
  }
}

static bool is_multiple(const hd_spreads_t *s, const hd_expr_t *e, int64_t of) {
  return divisor(s, e) % of == 0;
}

static bool is_natural(const hd_spreads_t *s, const hd_expr_t *e) {
  if (!e || e->kind == HD_EXPR_BUILTIN)
    return true;
  switch ((hd_expr_kind_t)e->kind) {
  case HD_EXPR_CONST:
    return e->u.i >= 0;
  case HD_EXPR_CAST:
    return is_natural(s, e->operands[0]);
  case HD_EXPR_VAR: {
    const hd_expr_t *is = hd_ptr_map_get(&s->named, e->u.var);
    return is && is_natural(s, is);
  }
  case HD_EXPR_MUL:
  case HD_EXPR_ADD:
  case HD_EXPR_DIV:
  case HD_EXPR_MOD:
  case HD_EXPR_MIN:
    return is_natural(s, e->operands[0]) && is_natural(s, e->operands[1]);
  case HD_EXPR_MAX:
    return is_natural(s, e->operands[0]) || is_natural(s, e->operands[1]);
  default:
    return false;
  }
}

const hd_expr_t *hd_spread_end(const hd_spreads_t *s, hd_type_t type,
                               const hd_expr_t *base, int64_t number) {
  const hd_expr_t *n = hd_expr_int(s->arena, type, number);
  return !base         ? n
         : number == 0 ? base
                       : hd_expr_binary(s->arena, HD_EXPR_ADD, base, n);
}

static const hd_expr_t *operate(const hd_spreads_t *s, hd_expr_kind_t op,
                                const hd_expr_t *a, const hd_expr_t *b) {
  const hd_expr_t *e = hd_expr_binary(s->arena, op, a, b);
  const hd_expr_t *folded = hd_expr_fold(s->arena, e);
  return folded ? folded : e;
}

// --- Operators ---

static hd_spread_t made(const hd_expr_t *base, int64_t least, int64_t most) {
  if (base && hd_expr_count(base, MAX_NODES) >= MAX_NODES)
    return unknown;
  return (hd_spread_t){true, base,
                       least < -HD_SPREAD_FAR ? -HD_SPREAD_FAR : least,
                       most > HD_SPREAD_FAR ? HD_SPREAD_FAR : most};
}

static bool is_one(hd_spread_t x) { return x.least == x.most; }

static hd_spread_t sum_of(const hd_spreads_t *s, hd_spread_t a, hd_spread_t b) {
  const hd_expr_t *base = !a.base   ? b.base
                          : !b.base ? a.base
                                    : operate(s, HD_EXPR_ADD, a.base, b.base);
  return made(base, a.least + b.least, a.most + b.most);
}

static hd_spread_t multiply(const hd_spreads_t *s, hd_type_t type,
                            hd_spread_t a, int64_t by) {
  hd_spread_t product = {true, NULL, 0, 0};
  if (by == 0)
    return product;
  if (a.base)
    product.base =
        operate(s, HD_EXPR_MUL, a.base, hd_expr_int(s->arena, type, by));
  if (__builtin_mul_overflow(by > 0 ? a.least : a.most, by, &product.least) ||
      __builtin_mul_overflow(by > 0 ? a.most : a.least, by, &product.most))
    return unknown;
  return made(product.base, product.least, product.most);
}

// By a constant that is greater than 0.
static hd_spread_t divide(const hd_spreads_t *s, hd_type_t type, hd_spread_t a,
                          int64_t by) {
  const hd_expr_t *number = hd_expr_int(s->arena, type, by);
  if (a.least < 0 || !is_natural(s, a.base))
    return unknown;
  if (!a.base)
    return made(NULL, a.least / by, a.most / by);
  if (is_multiple(s, a.base, by))
    return made(operate(s, HD_EXPR_DIV, a.base, number), a.least / by,
                a.most / by);
  return made(
      operate(s, HD_EXPR_DIV, hd_spread_end(s, type, a.base, a.least), number),
      0, (a.most - a.least + by - 1) / by);
}

static hd_spread_t rest_of(const hd_spreads_t *s, hd_type_t type, hd_spread_t a,
                           int64_t by) {
  const hd_expr_t *number = hd_expr_int(s->arena, type, by);
  if (a.least < 0 || !is_natural(s, a.base))
    return unknown;
  int64_t step = divisor(s, a.base);
  if (step % by == 0 && a.least / by == a.most / by)
    return made(NULL, a.least % by, a.most % by);
  // What is beside the base stays within one of its steps.
  if (step > 0 && by % step == 0 && a.most < step)
    return made(operate(s, HD_EXPR_MOD, a.base, number), a.least, a.most);
  return made(NULL, 0, by - 1);
}

// min or max with what is the same everywhere.
static hd_spread_t limit(const hd_spreads_t *s, hd_expr_kind_t op,
                         hd_type_t type, hd_spread_t a, hd_spread_t b) {
  if (!is_one(b)) {
    hd_spread_t other = a;
    a = b;
    b = other;
  }
  if (!is_one(b))
    return unknown;
  if (!a.base && !b.base)
    return op == HD_EXPR_MIN ? made(NULL, a.least < b.least ? a.least : b.least,
                                    a.most < b.most ? a.most : b.most)
                             : made(NULL, a.least > b.least ? a.least : b.least,
                                    a.most > b.most ? a.most : b.most);
  return made(operate(s, op, hd_spread_end(s, type, a.base, a.least),
                      hd_spread_end(s, type, b.base, b.least)),
              0, a.most - a.least);
}

static hd_spread_t spread_operator(const hd_spreads_t *s, const hd_expr_t *e) {
  hd_expr_kind_t op = (hd_expr_kind_t)e->kind;
  hd_spread_t a = hd_spread_of(s, e->operands[0]);
  hd_spread_t b = hd_spread_of(s, e->operands[1]);
  bool by_number = b.known && !b.base && is_one(b);
  if (!a.known || !b.known)
    return unknown;
  if (op == HD_EXPR_ADD)
    return sum_of(s, a, b);
  if (op == HD_EXPR_SUB)
    return sum_of(s, a, multiply(s, e->type, b, -1));
  if (op == HD_EXPR_MUL && by_number)
    return multiply(s, e->type, a, b.least);
  if (op == HD_EXPR_MUL && !a.base && is_one(a))
    return multiply(s, e->type, b, a.least);
  if (op == HD_EXPR_MIN || op == HD_EXPR_MAX)
    return limit(s, op, e->type, a, b);
  if (op == HD_EXPR_DIV && by_number && b.least > 0 && !is_one(a))
    return divide(s, e->type, a, b.least);
  if (op == HD_EXPR_MOD && by_number && b.least > 0 && !is_one(a))
    return rest_of(s, e->type, a, b.least);
  if (!is_one(a) || !is_one(b))
    return unknown;
  return made(operate(s, op, hd_spread_end(s, e->type, a.base, a.least),
                      hd_spread_end(s, e->type, b.base, b.least)),
              0, 0);
}

// --- Expressions ---

static hd_spread_t spread_builtin(const hd_spreads_t *s, const hd_expr_t *e) {
  int64_t last = s->threads - 1, c = s->cluster;
  int64_t first = s->least[e->u.builtin];
  switch (e->u.builtin) {
  case HD_BUILTIN_THREAD:
    return made(NULL, first, last);
  case HD_BUILTIN_LANE_ID:
    return made(NULL, first, last < 31 ? last : 31);
  case HD_BUILTIN_WARP:
    return made(NULL, first, last / 32);
  case HD_BUILTIN_WARPGROUP:
    return made(NULL, first, last / 128);
  case HD_BUILTIN_CLUSTER:
    return made(NULL, first, c - 1);
  case HD_BUILTIN_GRID_DIM:
    return made(e, 0, 0);
  case HD_BUILTIN_BLOCK:
  case HD_BUILTIN_BLOCK_X: {
    const hd_expr_t *number = hd_expr_int(s->arena, e->type, c);
    if (!s->is_line)
      return unknown;
    return c == 1 ? made(e, 0, 0)
                  : made(operate(s, HD_EXPR_MUL,
                                 operate(s, HD_EXPR_DIV, e, number), number),
                         0, c - 1);
  }
  default:
    return unknown;
  }
}

static hd_spread_t spread_cast(const hd_spreads_t *s, const hd_expr_t *e) {
  hd_spread_t of = hd_spread_of(s, e->operands[0]);
  if (!hd_type_is_integer(e->type) || !hd_type_is_integer(e->operands[0]->type))
    return unknown;
  hd_range_t range = hd_type_range(e->type),
             before = hd_type_range(e->operands[0]->type);
  bool wraps =
      of.base ? before.least < range.least || before.greatest > range.greatest
              : of.least < range.least || of.most > range.greatest;
  if (!of.known || wraps)
    return unknown;
  if (of.base)
    of.base = hd_expr_cast(s->arena, e->type, of.base);
  return of;
}

static hd_spread_t spread_select(const hd_spreads_t *s, const hd_expr_t *e) {
  int64_t holds;
  if (hd_expr_fold_int(e->operands[0], &holds))
    return hd_spread_of(s, e->operands[holds ? 1 : 2]);
  hd_spread_t a = hd_spread_of(s, e->operands[1]);
  hd_spread_t b = hd_spread_of(s, e->operands[2]);
  if (!a.known || !b.known || a.base || b.base)
    return unknown;
  return made(NULL, a.least < b.least ? a.least : b.least,
              a.most > b.most ? a.most : b.most);
}

hd_spread_t hd_spread_of(const hd_spreads_t *s, const hd_expr_t *e) {
  int64_t number;
  if (!hd_type_is_integer(e->type) || e->type.lanes > 1)
    return unknown;
  if (hd_expr_fold_int(e, &number))
    return made(NULL, number, number);
  switch ((hd_expr_kind_t)e->kind) {
  case HD_EXPR_VAR: {
    const hd_spread_t *known = hd_ptr_map_get(&s->vars, e->u.var);
    return known ? *known : unknown;
  }
  case HD_EXPR_BUILTIN:
    return spread_builtin(s, e);
  case HD_EXPR_CAST:
    return spread_cast(s, e);
  case HD_EXPR_SELECT:
    return spread_select(s, e);
  case HD_EXPR_ADD:
  case HD_EXPR_SUB:
  case HD_EXPR_MUL:
  case HD_EXPR_DIV:
  case HD_EXPR_MOD:
  case HD_EXPR_MIN:
  case HD_EXPR_MAX:
    return spread_operator(s, e);
  default:
    return unknown;
  }
}

// --- Names ---

void hd_spread_set(hd_spreads_t *s, const hd_var_t *var, hd_spread_t spread) {
  hd_spread_t *kept = HD_ARENA_NEW(s->arena, hd_spread_t);
  *kept = spread;
  hd_ptr_map_set(s->arena, &s->vars, var, kept);
}

void hd_spread_name(hd_spreads_t *s, const hd_var_t *var,
                    const hd_expr_t *base) {
  hd_spread_set(s, var, (hd_spread_t){true, hd_expr_var(s->arena, var), 0, 0});
  hd_ptr_map_set(s->arena, &s->named, var, base);
}

void hd_spreads_init(hd_spreads_t *s, hd_arena_t *arena,
                     const hd_func_t *kernel) {
  const hd_launch_t *launch = &kernel->launch;
  *s = (hd_spreads_t){.arena = arena,
                      .threads = hd_func_block_threads(kernel),
                      .cluster = 1,
                      .is_line = true};
  for (int i = 0; i < 3; i++) {
    int64_t extent = 1;
    if (launch->cluster[i] && !hd_expr_fold_int(launch->cluster[i], &extent))
      extent = 0;
    s->cluster *= extent;
    s->is_line &= i == 0 || (!launch->grid[i] && extent == 1);
  }
  s->is_line &= s->cluster > 0 && s->threads > 0;
}
