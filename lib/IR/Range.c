// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Range.h"

#define RANGE_SIGNED(bits)                                                     \
  {-((hd_wide_t)1 << ((bits) - 1)), ((hd_wide_t)1 << ((bits) - 1)) - 1}
#define RANGE_UNSIGNED(bits) {0, ((hd_wide_t)1 << (bits)) - 1}
#define RANGE_BOOL(bits) {0, 1}
#define RANGE_VOID(bits) {INT64_MIN, INT64_MAX}
#define RANGE_FLOAT RANGE_VOID
#define RANGE_OPAQUE RANGE_VOID

const hd_range_t hd_scalar_ranges[HD_SCALAR_COUNT] = {
#define HD_SCALAR(name, text, bits, class, digits, most, least)                \
  RANGE_##class(bits),
#include "IR/Scalars.def"
#undef HD_SCALAR
};

static hd_wide_t smaller(hd_wide_t a, hd_wide_t b) { return a < b ? a : b; }
static hd_wide_t larger(hd_wide_t a, hd_wide_t b) { return a > b ? a : b; }

static hd_range_t multiply(hd_range_t a, hd_range_t b, hd_range_t otherwise) {
  hd_wide_t corners[4];
  if (__builtin_mul_overflow(a.least, b.least, &corners[0]) ||
      __builtin_mul_overflow(a.least, b.greatest, &corners[1]) ||
      __builtin_mul_overflow(a.greatest, b.least, &corners[2]) ||
      __builtin_mul_overflow(a.greatest, b.greatest, &corners[3]))
    return otherwise;
  hd_range_t range = {corners[0], corners[0]};
  for (unsigned i = 1; i < 4; ++i)
    range = hd_range_hull(range, (hd_range_t){corners[i], corners[i]});
  return range;
}

// Division towards zero grows with the dividend, and with a positive divisor
// shrinks towards zero.
static hd_range_t divide(hd_range_t a, hd_range_t b, hd_range_t otherwise) {
  if (b.least < 1)
    return otherwise;
  return (hd_range_t){smaller(a.least / b.least, a.least / b.greatest),
                      larger(a.greatest / b.least, a.greatest / b.greatest)};
}

static hd_range_t remainder_of(hd_range_t a, hd_range_t b,
                               hd_range_t otherwise) {
  if (b.least < 1)
    return otherwise;
  if (b.least == b.greatest && a.least >= 0 &&
      a.least / b.least == a.greatest / b.least)
    return (hd_range_t){a.least % b.least, a.greatest % b.least};
  hd_wide_t most = b.greatest - 1;
  return (hd_range_t){a.least < 0 ? larger(a.least, -most) : 0,
                      a.greatest > 0 ? smaller(a.greatest, most) : 0};
}

// The least 2^n - 1 that is not below value >= 0.
static hd_wide_t all_ones(hd_wide_t value) {
  hd_wide_t ones = 0;
  while (ones < value)
    ones = ones * 2 + 1;
  return ones;
}

static hd_range_t bitwise(hd_expr_kind_t kind, hd_range_t a, hd_range_t b,
                          hd_range_t otherwise) {
  if (kind == HD_EXPR_BITAND) {
    if (a.least >= 0 && b.least >= 0)
      return (hd_range_t){0, smaller(a.greatest, b.greatest)};
    if (a.least >= 0)
      return (hd_range_t){0, a.greatest};
    return b.least >= 0 ? (hd_range_t){0, b.greatest} : otherwise;
  }
  if (a.least < 0 || b.least < 0)
    return otherwise;
  return (hd_range_t){kind == HD_EXPR_BITOR ? larger(a.least, b.least) : 0,
                      all_ones(larger(a.greatest, b.greatest))};
}

static hd_range_t shift(hd_expr_kind_t kind, hd_range_t a, hd_range_t b,
                        hd_range_t otherwise) {
  if (b.least != b.greatest || b.least < 0 || b.least > 62)
    return otherwise;
  hd_wide_t power = (hd_wide_t)1 << b.least;
  if (kind == HD_EXPR_SHL)
    return multiply(a, (hd_range_t){power, power}, otherwise);
  // Right shifts round down.
  return (hd_range_t){a.least >> b.least, a.greatest >> b.least};
}

hd_range_t hd_range_operate(hd_expr_kind_t kind, hd_range_t a, hd_range_t b,
                            hd_range_t all) {
  switch (kind) {
  case HD_EXPR_ADD:
    return (hd_range_t){a.least + b.least, a.greatest + b.greatest};
  case HD_EXPR_SUB:
    return (hd_range_t){a.least - b.greatest, a.greatest - b.least};
  case HD_EXPR_MUL:
    return multiply(a, b, all);
  case HD_EXPR_DIV:
    return divide(a, b, all);
  case HD_EXPR_MOD:
    return remainder_of(a, b, all);
  case HD_EXPR_SHL:
  case HD_EXPR_SHR:
    return shift(kind, a, b, all);
  case HD_EXPR_BITAND:
  case HD_EXPR_BITOR:
  case HD_EXPR_BITXOR:
    return bitwise(kind, a, b, all);
  case HD_EXPR_MIN:
    return (hd_range_t){smaller(a.least, b.least),
                        smaller(a.greatest, b.greatest)};
  case HD_EXPR_MAX:
    return (hd_range_t){larger(a.least, b.least),
                        larger(a.greatest, b.greatest)};
  default:
    return all;
  }
}

// Whether a < b: 1 always, 0 never, -1 as it comes.
static int is_less(hd_range_t a, hd_range_t b) {
  return a.greatest < b.least ? 1 : a.least >= b.greatest ? 0 : -1;
}

static int negated(int answer) { return answer < 0 ? answer : !answer; }

static int is_equal(hd_range_t a, hd_range_t b) {
  if (a.greatest < b.least || b.greatest < a.least)
    return 0;
  return a.least == a.greatest && b.least == b.greatest ? 1 : -1;
}

int hd_range_compare(hd_expr_kind_t kind, hd_range_t a, hd_range_t b) {
  switch (kind) {
  case HD_EXPR_LT:
    return is_less(a, b);
  case HD_EXPR_GE:
    return negated(is_less(a, b));
  case HD_EXPR_GT:
    return is_less(b, a);
  case HD_EXPR_LE:
    return negated(is_less(b, a));
  case HD_EXPR_EQ:
    return is_equal(a, b);
  case HD_EXPR_NE:
    return negated(is_equal(a, b));
  default:
    return -1;
  }
}

hd_expr_kind_t hd_comparison_opposite(hd_expr_kind_t kind) {
  switch (kind) {
  case HD_EXPR_LT:
    return HD_EXPR_GE;
  case HD_EXPR_LE:
    return HD_EXPR_GT;
  case HD_EXPR_GT:
    return HD_EXPR_LE;
  case HD_EXPR_GE:
    return HD_EXPR_LT;
  case HD_EXPR_EQ:
    return HD_EXPR_NE;
  case HD_EXPR_NE:
    return HD_EXPR_EQ;
  default:
    return kind;
  }
}
