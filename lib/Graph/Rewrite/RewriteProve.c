// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Proves rewrites on instances: RewriteInstance.c makes one, RewriteCompare.c
// compares what both sides give of it. Those at the edges of each type come
// first, all of them, then random ones.
#include "Graph/Rewrite/RewriteInstance.h"
#include "IR/Text/Parser.h"

// Instances that are drawn for each that is wanted: at random, and of edges.
enum { MAX_TRIES = 400, MAX_EDGE_TRIES = 20 };

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

// What the rule would have to say for it.
static const char *advice(const prover_t *p, uint32_t freedoms) {
  const char *text = "";
  for (int i = 0; freedoms != HD_NO_FREEDOM && i < HD_FREEDOM_COUNT; i++)
    if (freedoms >> i & 1)
      text = hd_arena_printf(p->instance->arena, "%s%s'may change %s'", text,
                             *text ? " or " : ": it does not say ",
                             hd_freedom_name((hd_freedom_t)i));
  return text;
}

static bool refuse_element(const prover_t *p, const char *name,
                           const hd_host_tensor_t *left,
                           const hd_host_tensor_t *right, int64_t i,
                           uint32_t freedoms) {
  hd_buffer_t a = {0}, b = {0};
  char index[200];
  hd_host_tensor_print_element(left, i, &a);
  hd_host_tensor_print_element(right, i, &b);
  bool ok = refuse(
      p, hd_arena_printf(
             p->instance->arena, "'%s' at %s is %s, and was %s%s", name,
             hd_index_text(left->shape, left->rank, i, index, sizeof index),
             hd_buffer_text(&b), hd_buffer_text(&a), advice(p, freedoms)));
  hd_buffer_fini(&a);
  hd_buffer_fini(&b);
  return ok;
}

static bool compare(const prover_t *p, hd_comparison_t *c,
                    const hd_rule_value_t *value) {
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
  for (int64_t i = 0; i < left->count; i++) {
    uint32_t freedoms = hd_compare_element(c, value, i);
    if (freedoms &&
        (freedoms == HD_NO_FREEDOM || !(freedoms & p->rule->freedoms)))
      return refuse_element(p, value->name, left, right, i, freedoms);
  }
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
static bool prove_one(prover_t *p, hd_random_t *random, hd_draw_t draw,
                      bool *valid, bool *trivial) {
  hd_arena_t arena;
  hd_instance_t instance;
  hd_comparison_t comparison;
  bool ok = true;
  hd_arena_init_local(&arena, &p->context->budget);
  p->instance = &instance;
  *valid =
      hd_instance_draw(&instance, p->context, &arena, p->rule, random, draw);
  *trivial = *valid && is_trivial(p);
  if (*valid && !hd_instance_run_right(&instance))
    ok = refuse(p, instance.fault);
  *valid &= !instance.refused;
  if (*valid && ok)
    hd_comparison_begin(&comparison, &instance);
  for (size_t i = 0; *valid && ok && i < p->rule->values.size; i++) {
    const hd_rule_value_t *value = p->rule->values.data[i];
    if (value->left && value->right)
      ok = compare(p, &comparison, value);
  }
  hd_instance_end(&instance);
  hd_arena_fini(&arena);
  return ok;
}

// --- Edges ---

// How many there are of the type variable that may be the most types.
static unsigned count_types(const hd_task_t *signature) {
  unsigned most = 1;
  for (size_t i = 0; i < signature->types.size; i++) {
    const hd_type_var_t *var = signature->types.data[i];
    unsigned count = (unsigned)__builtin_popcount(var->scalars);
    if (hd_task_type_is_free((hd_task_type_t){HD_VOID, var}) && count > most)
      most = count;
  }
  return most;
}

// Of each type every edge comes first once. Where there are none that the left
// side and the conditions allow, nothing is proven of them.
static bool prove_edges(prover_t *p, hd_random_t *random) {
  static const struct {
    hd_draw_kind_t kind;
    unsigned count;
  } kinds[] = {
      {HD_DRAW_SPECIAL, 8}, {HD_DRAW_EXTREME, 12}, {HD_DRAW_RANGE, 40}};
  unsigned types = count_types(p->rule->signature);
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
    for (unsigned i = 0; i < types * kinds[k].count; i++) {
      hd_draw_t draw = {kinds[k].kind, i / kinds[k].count, i % kinds[k].count};
      bool valid = false, trivial;
      hd_budget_check(&p->context->budget);
      for (int tries = 0; !valid && tries < MAX_EDGE_TRIES; tries++)
        if (!prove_one(p, random, draw, &valid, &trivial))
          return false;
    }
  return true;
}

// What is wrong is reported; *valid counts the random instances.
static bool prove_rule(hd_context_t *context, const hd_rewrite_t *rule,
                       bool edges, unsigned wanted, int64_t most_tries,
                       uint64_t seed, unsigned *valid) {
  prover_t p = {.context = context, .rule = rule};
  hd_random_t random = {seed * 0x9e3779b97f4a7c15 + 1};
  const hd_draw_t ordinary = {HD_DRAW_ORDINARY, 0, 0};
  unsigned num_trivial = 0;
  *valid = 0;
  if (edges && !prove_edges(&p, &random))
    return false;
  for (int64_t tries = 0; *valid < wanted && tries < most_tries; tries++) {
    bool is_valid, trivial;
    hd_budget_check(&context->budget);
    if (!prove_one(&p, &random, ordinary, &is_valid, &trivial))
      return false;
    num_trivial += trivial;
    // Unless there seem to be no others.
    bool counts =
        !trivial || num_trivial <= wanted / 5 || tries > most_tries / 2;
    *valid += is_valid && counts;
  }
  return true;
}

// Of a rule with lists, for one way to count the operands of each.
static bool prove_way(hd_context_t *context, const hd_rewrite_t *rule,
                      const uint32_t *counts, bool edges, unsigned wanted,
                      uint64_t seed, unsigned *valid) {
  enum { TRIES = 20 };
  unsigned found = 0;
  if (!hd_rewrite_keeps_operands(rule, counts))
    return true;
  const hd_rewrite_t *made = hd_rewrite_for(rule, counts);
  bool ok = made && prove_rule(context, made, edges && made == rule, wanted,
                               (int64_t)wanted * TRIES, seed, &found);
  *valid += found;
  return ok;
}

// With lists of operands, for none, one and two of each, as far as nodes keep
// operands: what conditions do not allow needs no proof. The edges are those of
// one each.
static bool prove_lists(hd_context_t *context, const hd_rewrite_t *rule,
                        unsigned wanted, uint64_t seed, unsigned *valid) {
  enum { MOST = 3, ROUNDS = 20 };
  unsigned ways = 1, num_lists = rule->text->num_lists;
  for (unsigned i = 0; i < num_lists; i++)
    ways *= MOST;
  for (unsigned round = 0; round < ROUNDS && *valid < wanted; round++)
    for (unsigned way = 0; way < ways; way++) {
      uint32_t counts[HD_MAX_LISTS] = {0};
      for (unsigned i = 0, rest = way; i < num_lists; i++, rest /= MOST)
        counts[i] = rest % MOST;
      if (!prove_way(context, rule, counts, round == 0, wanted / 4 + 1,
                     seed + round, valid))
        return false;
    }
  *valid = *valid > wanted ? wanted : *valid;
  return true;
}

bool hd_rewrite_prove(hd_context_t *context, const hd_rewrite_t *rule,
                      unsigned wanted, uint64_t seed, unsigned *valid) {
  *valid = 0;
  bool has_lists = rule->text && rule->text->rewrites.data[0] == rule;
  if (has_lists ? !prove_lists(context, rule, wanted, seed, valid)
                : !prove_rule(context, rule, true, wanted,
                              (int64_t)wanted * MAX_TRIES, seed, valid))
    return false;
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
