// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is said of ranges, against every pair of numbers in them, which are
// computed with one by one.
#include "IR/Range.h"
#include "IR/Scalar.h"
#include "UnitTest.h"

enum { LEAST = -5, GREATEST = 5 };

static const hd_expr_kind_t operators[] = {
    HD_EXPR_ADD,   HD_EXPR_SUB,    HD_EXPR_MUL, HD_EXPR_DIV,
    HD_EXPR_MOD,   HD_EXPR_SHL,    HD_EXPR_SHR, HD_EXPR_BITAND,
    HD_EXPR_BITOR, HD_EXPR_BITXOR, HD_EXPR_MIN, HD_EXPR_MAX};
static const hd_expr_kind_t comparisons[] = {
    HD_EXPR_LT, HD_EXPR_LE, HD_EXPR_GT, HD_EXPR_GE, HD_EXPR_EQ, HD_EXPR_NE};

static bool compute(hd_expr_kind_t op, int64_t x, int64_t y, int64_t *result) {
  hd_number_t out;
  if (!hd_scalar_operate(op, HD_I64, (hd_number_t){.i = x},
                         (hd_number_t){.i = y}, &out))
    return false;
  *result = out.i;
  return true;
}

static const char *name_of(hd_expr_kind_t op) { return hd_expr_info(op)->name; }

static void check_operator(hd_expr_kind_t op, hd_range_t a, hd_range_t b) {
  const hd_range_t all = hd_type_range(hd_type(HD_I64));
  hd_range_t range = hd_range_operate(op, a, b, all);
  assert_true(range.least <= range.greatest);
  for (int64_t x = (int64_t)a.least; x <= a.greatest; x++)
    for (int64_t y = (int64_t)b.least; y <= b.greatest; y++) {
      int64_t result;
      if (compute(op, x, y, &result) &&
          (result < range.least || result > range.greatest))
        fail_msg("%s of %lld and %lld is %lld, outside of %lld .. %lld",
                 name_of(op), (long long)x, (long long)y, (long long)result,
                 (long long)range.least, (long long)range.greatest);
    }
}

static void check_comparison(hd_expr_kind_t op, hd_range_t a, hd_range_t b) {
  bool can[2] = {false, false};
  for (int64_t x = (int64_t)a.least; x <= a.greatest; x++)
    for (int64_t y = (int64_t)b.least; y <= b.greatest; y++) {
      int64_t result, opposite;
      assert_true(compute(op, x, y, &result));
      assert_true(compute(hd_comparison_opposite(op), x, y, &opposite));
      assert_int_equal(opposite, !result);
      can[result] = true;
    }
  int answer = hd_range_compare(op, a, b);
  if (answer != (can[0] && can[1] ? -1 : can[1]))
    fail_msg("%s of %lld .. %lld and %lld .. %lld: %d", name_of(op),
             (long long)a.least, (long long)a.greatest, (long long)b.least,
             (long long)b.greatest, answer);
}

// Calls check for all pairs of ranges.
static void each_pair(hd_expr_kind_t op,
                      void (*check)(hd_expr_kind_t op, hd_range_t a,
                                    hd_range_t b)) {
  for (int i = LEAST; i <= GREATEST; i++)
    for (int j = i; j <= GREATEST; j++)
      for (int k = LEAST; k <= GREATEST; k++)
        for (int n = k; n <= GREATEST; n++)
          check(op, (hd_range_t){i, j}, (hd_range_t){k, n});
}

static void operators_stay_in_their_range(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
    each_pair(operators[i], check_operator);
}

// -1 only where both answers come.
static void comparisons_are_decided(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof comparisons / sizeof comparisons[0]; i++)
    each_pair(comparisons[i], check_comparison);
}

// By hand: a range is no wider than what index arithmetic needs.
static void ranges_are_tight(void **state) {
  (void)state;
  static const struct {
    hd_expr_kind_t op;
    hd_range_t a, b, expected;
  } rows[] = {
      {HD_EXPR_ADD, {0, 7}, {-1, 2}, {-1, 9}},
      {HD_EXPR_MUL, {-2, 3}, {4, 4}, {-8, 12}},
      {HD_EXPR_DIV, {-7, 7}, {2, 2}, {-3, 3}},
      {HD_EXPR_MOD, {0, 100}, {8, 8}, {0, 7}},
      {HD_EXPR_MOD, {18, 21}, {8, 8}, {2, 5}},
      {HD_EXPR_MOD, {-3, 1}, {8, 8}, {-3, 1}},
      {HD_EXPR_SHR, {8, 31}, {3, 3}, {1, 3}},
      {HD_EXPR_BITAND, {0, 100}, {15, 15}, {0, 15}},
      {HD_EXPR_MIN, {0, 9}, {4, 20}, {0, 9}},
      {HD_EXPR_MAX, {0, 9}, {4, 20}, {4, 20}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    hd_range_t range = hd_range_operate(rows[i].op, rows[i].a, rows[i].b,
                                        hd_type_range(hd_type(HD_I64)));
    assert_int_equal(range.least, rows[i].expected.least);
    assert_int_equal(range.greatest, rows[i].expected.greatest);
  }
  // Products of any two i64 are exact.
  hd_range_t all = hd_type_range(hd_type(HD_I64));
  hd_range_t square = hd_range_operate(HD_EXPR_MUL, all, all, all);
  assert_true(square.greatest == (hd_wide_t)1 << 126);
}

static void hulls_and_meets(void **state) {
  (void)state;
  hd_range_t a = {0, 4}, b = {2, 9}, c = {6, 7};
  hd_range_t hull = hd_range_hull(a, c), both = hd_range_meet(a, b);
  assert_true(hull.least == 0 && hull.greatest == 7);
  assert_true(both.least == 2 && both.greatest == 4);
  both = hd_range_meet(a, c); // Nothing is in both.
  assert_true(both.least == 0 && both.greatest == 4);
}

HD_UNIT_TESTS(cmocka_unit_test(operators_stay_in_their_range),
              cmocka_unit_test(comparisons_are_decided),
              cmocka_unit_test(ranges_are_tight),
              cmocka_unit_test(hulls_and_meets))
