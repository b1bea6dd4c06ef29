// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a rule changes of one element, as the freedoms that a rule has to have
// said (Freedoms.def). Floats are held against what the left side gives in f64,
// where its type does not round and does not overflow; how far off the left
// side itself may be is measured in other instances, much like this one.
#include "Graph/Rewrite/RewriteInstance.h"

#include <math.h>

enum {
  ULPS = 4,      // That are nothing, of an operation or two.
  TIMES = 8,     // What chance leaves out of the errors of neighbours.
  AMISS = 1 << 9 // Of a result that was an infinity: it has no neighbours.
};

static const uint32_t rounding =
    HD_FREEDOM_BIT(ROUNDING) | HD_FREEDOM_BIT(ORDER);
static const uint32_t overflow =
    HD_FREEDOM_BIT(OVERFLOW) | HD_FREEDOM_BIT(ORDER);

static double largest(const hd_comparison_t *c) {
  return hd_scalar_limit(HD_LIMIT_LARGEST, c->type).f;
}

// Between neighbours, at a number of the type.
static double spacing(hd_scalar_t type, double x) {
  double least = hd_scalar_limit(HD_LIMIT_SMALLEST, type).f;
  return ldexp(fmax(fabs(x), least), 1 - (int)hd_scalar_digits(type));
}

// Where the largest magnitude of an element's row stands.
static int64_t place_in(const hd_host_tensor_t *most, const hd_host_tensor_t *x,
                        int64_t i) {
  int64_t place = 0, stride = 1;
  for (unsigned a = x->rank; a-- > 0; i /= x->shape[a]) {
    place += most->shape[a] == 1 ? 0 : i % x->shape[a] * stride;
    stride *= most->shape[a];
  }
  return place;
}

// --- The left side again ---

static const hd_host_tensor_t **
run_again(hd_comparison_t *c,
          double (*change)(hd_comparison_t *c, size_t operand, int64_t i),
          bool wide) {
  hd_instance_t *n = c->instance;
  size_t count = n->rule->values.size;
  const hd_host_tensor_t **values =
      HD_ARENA_ARRAY(n->arena, const hd_host_tensor_t *, count + 1);
  for (size_t i = 0; i < count; i++) {
    const hd_host_tensor_t *x = n->left[i];
    if (!n->rule->values.data[i]->operand)
      continue;
    values[i] = x;
    if (hd_scalar_class(x->type) != HD_CLASS_FLOAT)
      continue;
    hd_scalar_t type = wide ? HD_F64 : x->type;
    hd_host_tensor_t *changed =
        hd_host_tensor_make(n->arena, type, x->shape, x->rank);
    for (int64_t k = 0; k < x->count; k++)
      hd_host_tensor_set(changed, k, change(c, i, k));
    values[i] = changed;
  }
  return hd_instance_run_left(n, values, wide) ? values : NULL;
}

static double keep(hd_comparison_t *c, size_t operand, int64_t i) {
  return hd_host_tensor_get(c->instance->left[operand], i);
}

static double magnitude(hd_comparison_t *c, size_t operand, int64_t i) {
  return fabs(keep(c, operand, i));
}

// Up to a quarter away: another instance much like this one. 0 stays.
static double change(hd_comparison_t *c, size_t operand, int64_t i) {
  const hd_host_tensor_t *x = c->instance->left[operand];
  double by = (double)hd_random_pick(&c->random, 1 << 20) / (1 << 21) - 0.25;
  double changed = hd_float_round(x->type, hd_host_tensor_get(x, i) * (1 + by));
  return isfinite(changed) ? changed : hd_host_tensor_get(x, i);
}

// What rounding does to an operand: to elements that a rule asks the largest
// magnitudes of, what it does to the largest ones. 0 and infinities stay.
static double move(hd_comparison_t *c, size_t operand, int64_t i) {
  const hd_host_tensor_t *tensor = c->instance->left[operand];
  const hd_host_tensor_t *most = c->most[operand];
  double x = hd_host_tensor_get(tensor, i), magnitude = fabs(x);
  if (most)
    magnitude =
        fmax(magnitude, hd_host_tensor_get(most, place_in(most, tensor, i)));
  double by = TIMES * spacing(tensor->type, magnitude);
  if (x == 0 || !isfinite(x))
    return x;
  return hd_random_pick(&c->random, 2) ? x + by : x - by;
}

static void run_all(hd_comparison_t *c) {
  static const uint64_t seed = 1;
  if (c->ran)
    return;
  c->ran = true;
  c->random.state = seed;
  c->wide = run_again(c, keep, true);
  c->magnitudes = run_again(c, magnitude, true);
}

static void find_rows(hd_comparison_t *c) {
  const hd_rewrite_t *rule = c->instance->rule;
  c->most = HD_ARENA_ARRAY(c->instance->arena, const hd_host_tensor_t *,
                           rule->values.size + 1);
  for (size_t i = 0; i < rule->right.size; i++)
    if (hd_rule_node_is_magnitudes(rule->right.data[i]))
      c->most[rule->right.data[i]->inputs[0]->index] =
          c->instance->right[rule->right.data[i]->outputs[0]->index];
}

static void run_others(hd_comparison_t *c) {
  if (c->most)
    return;
  find_rows(c);
  for (int i = 0; i < HD_OTHER_INSTANCES; i++) {
    hd_random_t before = c->random;
    c->others[i] = run_again(c, change, false);
    c->random = before; // The same in f64.
    c->others_wide[i] = run_again(c, change, true);
    c->moved[i] = run_again(c, move, true);
  }
}

static double element(const hd_host_tensor_t *const *values,
                      const hd_rule_value_t *value, int64_t i,
                      double otherwise) {
  return values ? hd_host_tensor_get(values[value->index], i) : otherwise;
}

// --- Verdicts ---

// How far from exact the left side may come: its errors in instances much like
// this one, and what rounding of its operands does to it.
static double noise(hd_comparison_t *c, const hd_rule_value_t *value, int64_t i,
                    double exact) {
  double most = 0;
  run_others(c);
  for (int k = 0; k < HD_OTHER_INSTANCES; k++) {
    double error = element(c->others[k], value, i, 0) -
                   element(c->others_wide[k], value, i, 0);
    double moved = element(c->moved[k], value, i, exact) - exact;
    if (isfinite(error))
      most = fmax(most, TIMES * fabs(error));
    if (isfinite(moved))
      most = fmax(most, fabs(moved));
  }
  return most;
}

// Whether the terms of the left side, one by one, come to more than the type
// holds: so may a sum of theirs in another order.
static bool may_overflow(hd_comparison_t *c, const hd_rule_value_t *value,
                         int64_t i) {
  run_all(c);
  return !(element(c->magnitudes, value, i, 0) <= largest(c) / 2);
}

static bool is_near(hd_comparison_t *c, const hd_rule_value_t *value, int64_t i,
                    double exact, double r) {
  return fabs(r - exact) <= AMISS * spacing(c->type, exact) ||
         fabs(r - exact) <= noise(c, value, i, exact);
}

// l is an infinity or NaN, r something else.
static uint32_t where_it_was_none(hd_comparison_t *c,
                                  const hd_rule_value_t *value, int64_t i,
                                  double l, double r) {
  run_all(c);
  double exact = element(c->wide, value, i, l);
  if (isnan(l) && (!c->finite || isnan(exact)))
    return HD_FREEDOM_BIT(NAN);
  if (!c->finite)
    return HD_NO_FREEDOM;
  if (isfinite(r) && isfinite(exact) && is_near(c, value, i, exact, r))
    return overflow;
  if (isfinite(l) ? false : hd_float_round(c->type, exact) == r)
    return overflow;
  if (may_overflow(c, value, i))
    return HD_FREEDOM_BIT(ORDER);
  return isnan(l) ? HD_FREEDOM_BIT(NAN) : HD_NO_FREEDOM;
}

// r is an infinity or NaN, l a number.
static uint32_t where_it_is_none(hd_comparison_t *c,
                                 const hd_rule_value_t *value, int64_t i,
                                 double l, double r) {
  run_all(c);
  double exact = element(c->wide, value, i, l);
  if (!c->finite)
    return HD_NO_FREEDOM;
  if (isinf(r) && (hd_float_round(c->type, exact) == r ||
                   fabs(l) >= largest(c) - ULPS * spacing(c->type, l)))
    return rounding;
  return may_overflow(c, value, i) ? HD_FREEDOM_BIT(ORDER) : HD_NO_FREEDOM;
}

static uint32_t of_numbers(hd_comparison_t *c, const hd_rule_value_t *value,
                           int64_t i, double l, double r) {
  if (fabs(l - r) <= ULPS * spacing(c->type, fmax(fabs(l), fabs(r))))
    return rounding;
  run_all(c);
  double exact = element(c->wide, value, i, l);
  double allowed = fmax(fabs(l - exact), ULPS * spacing(c->type, exact));
  if (fabs(r - exact) <= allowed ||
      fabs(r - exact) <= noise(c, value, i, exact))
    return rounding;
  return HD_NO_FREEDOM;
}

uint32_t hd_compare_element(hd_comparison_t *c, const hd_rule_value_t *value,
                            int64_t i) {
  const hd_host_tensor_t *left = c->instance->left[value->index];
  const hd_host_tensor_t *right = c->instance->right[value->index];
  if (hd_scalar_class(left->type) != HD_CLASS_FLOAT)
    return hd_host_tensor_get_int(left, i) == hd_host_tensor_get_int(right, i)
               ? 0
               : HD_NO_FREEDOM;
  double l = hd_host_tensor_get(left, i), r = hd_host_tensor_get(right, i);
  c->type = left->type;
  if (isnan(l) && isnan(r))
    return 0;
  if (l == r)
    return l == 0 && signbit(l) != signbit(r) ? HD_FREEDOM_BIT(ZEROS) : 0;
  if (!isfinite(l))
    return where_it_was_none(c, value, i, l, r);
  if (!isfinite(r))
    return where_it_is_none(c, value, i, l, r);
  return of_numbers(c, value, i, l, r);
}

static bool is_finite(const hd_host_tensor_t *x) {
  if (hd_scalar_class(x->type) != HD_CLASS_FLOAT)
    return true;
  for (int64_t i = 0; i < x->count; i++)
    if (!isfinite(hd_host_tensor_get(x, i)))
      return false;
  return true;
}

void hd_comparison_begin(hd_comparison_t *c, hd_instance_t *instance) {
  *c = (hd_comparison_t){.instance = instance, .finite = true};
  for (size_t i = 0; i < instance->rule->values.size; i++)
    if (instance->rule->values.data[i]->operand)
      c->finite &= is_finite(instance->left[i]);
}
