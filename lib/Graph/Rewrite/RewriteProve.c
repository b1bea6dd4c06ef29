// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Proves rewrites on random instances: RewriteInstance.c makes one, here both
// sides are evaluated and compared.
#include "Graph/Rewrite/RewriteInstance.h"

#include <math.h>

// Instances that are drawn for each that is wanted.
enum { MAX_TRIES = 400 };

// --- Comparing ---

static double tolerance_of(hd_scalar_t type) {
  switch (hd_host_element_bytes(type)) {
  case 8:
    return 1e-9;
  case 4:
    return 1e-4;
  case 2:
    return 3e-2;
  default:
    return 0.25;
  }
}

// Sums of products are compared with what their terms may be, so small numbers
// with 1.
static bool elements_agree(const hd_host_tensor_t *a, const hd_host_tensor_t *b,
                           int64_t i) {
  if (hd_scalar_class(a->type) != HD_CLASS_FLOAT)
    return hd_host_tensor_get_int(a, i) == hd_host_tensor_get_int(b, i);
  double x = hd_host_tensor_get(a, i), y = hd_host_tensor_get(b, i);
  if (isnan(x) || isnan(y))
    return isnan(x) && isnan(y);
  if (isinf(x) || isinf(y))
    return x == y;
  return fabs(x - y) <= tolerance_of(a->type) * fmax(1, fmax(fabs(x), fabs(y)));
}

typedef struct prover {
  hd_context_t *context;
  const hd_rewrite_t *rule;
  hd_instance_t *instance;
} prover_t;

static void note_operands(const prover_t *p) {
  const hd_rewrite_t *r = p->rule;
  hd_diagnostics_t *diags = &p->context->diags;
  hd_buffer_t text = {0};
  hd_instance_print(p->instance, &text);
  hd_note(diags, r->loc, "%s", hd_buffer_text(&text));
  hd_buffer_fini(&text);
}

static bool refuse(const prover_t *p, const char *why) {
  hd_error(&p->context->diags, p->rule->loc, HD_E1105, p->rule->name, why);
  note_operands(p);
  return false;
}

static bool refuse_element(const prover_t *p, const char *name,
                           const hd_host_tensor_t *left,
                           const hd_host_tensor_t *right, int64_t i) {
  hd_buffer_t a = {0}, b = {0};
  char index[200];
  hd_host_tensor_print_element(left, i, &a);
  hd_host_tensor_print_element(right, i, &b);
  bool ok = refuse(p, hd_arena_printf(p->instance->arena,
                                      "'%s' at %s is %s, and was %s", name,
                                      hd_index_text(left->shape, left->rank, i,
                                                    index, sizeof index),
                                      hd_buffer_text(&b), hd_buffer_text(&a)));
  hd_buffer_fini(&a);
  hd_buffer_fini(&b);
  return ok;
}

static bool compare(const prover_t *p, const hd_rule_value_t *value) {
  const hd_host_tensor_t *left = p->instance->left[value->index];
  const hd_host_tensor_t *right = p->instance->right[value->index];
  hd_tensor_type_t was = hd_tensor_type_of(left), is = hd_tensor_type_of(right);
  char a[200], b[200];
  if (!hd_tensor_type_equal(&was, &is))
    return refuse(
        p, hd_arena_printf(p->instance->arena, "'%s' is %s%s, and was %s%s",
                           value->name, hd_scalar_name(is.type),
                           hd_shape_text(is.shape, is.rank, b, sizeof b),
                           hd_scalar_name(was.type),
                           hd_shape_text(was.shape, was.rank, a, sizeof a)));
  for (int64_t i = 0; i < left->count; i++)
    if (!elements_agree(left, right, i))
      return refuse_element(p, value->name, left, right, i);
  return true;
}

// --- An instance ---

// Draws that fit are too often those without axes: these prove little.
static bool is_trivial(const prover_t *p) {
  for (size_t i = 0; i < p->rule->values.size; i++)
    if (p->rule->values.data[i]->operand && p->instance->left[i]->count > 1)
      return false;
  return true;
}

// *valid: the left side has a meaning. False: the right side has another.
static bool prove_one(prover_t *p, hd_random_t *random, bool *valid,
                      bool *trivial) {
  hd_arena_t arena;
  hd_instance_t instance;
  bool ok = true;
  hd_arena_init_local(&arena, &p->context->budget);
  p->instance = &instance;
  *valid = hd_instance_draw(&instance, p->context, &arena, p->rule, random);
  *trivial = *valid && is_trivial(p);
  if (*valid && !hd_instance_run_right(&instance))
    ok = refuse(p, instance.fault);
  *valid &= !instance.refused;
  for (size_t i = 0; *valid && ok && i < p->rule->values.size; i++) {
    const hd_rule_value_t *value = p->rule->values.data[i];
    if (value->left && value->right)
      ok = compare(p, value);
  }
  hd_instance_end(&instance);
  hd_arena_fini(&arena);
  return ok;
}

bool hd_rewrite_prove(hd_context_t *context, const hd_rewrite_t *rule,
                      unsigned wanted, uint64_t seed, unsigned *valid) {
  prover_t p = {.context = context, .rule = rule};
  hd_random_t random = {seed * 0x9e3779b97f4a7c15 + 1};
  unsigned num_trivial = 0;
  *valid = 0;
  for (int64_t tries = 0;
       *valid < wanted && tries < (int64_t)wanted * MAX_TRIES; tries++) {
    bool is_valid, trivial;
    hd_budget_check(&context->budget);
    if (!prove_one(&p, &random, &is_valid, &trivial))
      return false;
    num_trivial += trivial;
    // Unless there seem to be no others.
    bool counts = !trivial || num_trivial <= wanted / 5 ||
                  tries > (int64_t)wanted * MAX_TRIES / 2;
    *valid += is_valid && counts;
  }
  if (*valid >= wanted)
    return true;
  hd_arena_t arena;
  hd_arena_init_local(&arena, &context->budget);
  hd_error(&context->diags, rule->loc, HD_E1105, rule->name,
           hd_arena_printf(&arena,
                           "only %u of %u instances could be found that its "
                           "left side and conditions allow",
                           *valid, wanted));
  hd_arena_fini(&arena);
  return false;
}
