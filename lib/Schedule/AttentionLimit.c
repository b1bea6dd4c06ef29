// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys that need not be looked at: where a term is -inf from some j on, by a
// condition that is affine in i and j (a causal mask).
#include "Schedule/AttentionState.h"

#include "Schedule/Affine.h"

typedef struct limits {
  hd_arena_t *arena;
  const hd_attention_form_t *form;
  const hd_term_t *limit; // NULL: none yet.
} limits_t;

static void add_limit(limits_t *l, const hd_term_t *end) {
  l->limit =
      l->limit ? hd_flat_operate(l->arena, HD_EXPR_MIN, l->limit, end) : end;
}

// factor * i + constant
static void add_line(limits_t *l, int64_t factor, int64_t constant) {
  const hd_index_t *i = l->form->indices[HD_ATTENTION_QUERY];
  if (factor < 0)
    return; // It would not grow with i.
  add_limit(
      l, hd_flat_operate(l->arena, HD_EXPR_ADD,
                         hd_flat_operate(l->arena, HD_EXPR_MUL,
                                         hd_flat_index(l->arena, i),
                                         hd_flat_int(l->arena, HD_I64, factor)),
                         hd_flat_int(l->arena, HD_I64, constant)));
}

// x > y, or x >= y where it is not strict, hides (or else shows) a key.
static void compare(limits_t *l, const hd_term_t *x, const hd_term_t *y,
                    bool strict, bool hides) {
  hd_linear_t sum;
  int64_t along[2] = {0, 0}; // i, j
  if (x->type.scalar != HD_I64 ||
      !hd_affine_of(l->arena, hd_flat_operate(l->arena, HD_EXPR_SUB, x, y),
                    &sum))
    return;
  for (unsigned n = 0; n < sum.size; n++) {
    const hd_term_t *atom = sum.terms[n].term;
    bool is_i = atom->kind == HD_TERM_INDEX &&
                atom->u.index == l->form->indices[HD_ATTENTION_QUERY];
    bool is_j = atom->kind == HD_TERM_INDEX &&
                atom->u.index == l->form->indices[HD_ATTENTION_KEY];
    if (!is_i && !is_j)
      return;
    along[is_j] = sum.terms[n].factor;
  }
  if (hides && along[1] == 1) // j > -a i - c
    add_line(l, -along[0], strict - sum.constant);
  else if (!hides && along[1] == -1) // j < a i + c
    add_line(l, along[0], sum.constant + !strict);
}

static void learn(limits_t *l, const hd_term_t *c, bool hides) {
  if (c->kind != HD_TERM_OPERATOR)
    return;
  const hd_term_t *a = c->operands[0];
  const hd_term_t *b = c->num_operands > 1 ? c->operands[1] : NULL;
  hd_expr_kind_t op = c->u.op;
  if (op == HD_EXPR_NOT)
    learn(l, a, !hides);
  if (op == (hides ? HD_EXPR_OR : HD_EXPR_AND)) {
    learn(l, a, hides);
    learn(l, b, hides);
  }
  if (op == HD_EXPR_GT || op == HD_EXPR_GE)
    compare(l, a, b, op == HD_EXPR_GT, hides);
  if (op == HD_EXPR_LT || op == HD_EXPR_LE)
    compare(l, b, a, op == HD_EXPR_LT, hides);
}

const hd_term_t *hd_attention_limit(hd_arena_t *arena,
                                    const hd_attention_form_t *form) {
  limits_t l = {arena, form, NULL};
  const hd_term_t *term = hd_attention_unrounded(form->term);
  while (term->kind == HD_TERM_SELECT) {
    bool hides = hd_attention_is_lowest(term->operands[1]);
    if (!hides && !hd_attention_is_lowest(term->operands[2]))
      break;
    learn(&l, term->operands[0], hides);
    term = hd_attention_unrounded(term->operands[hides ? 2 : 1]);
  }
  const hd_term_t *all =
      hd_flat_int(arena, HD_I64, form->sizes[HD_ATTENTION_KEY]);
  if (!l.limit)
    return all;
  return hd_flat_operate(arena, HD_EXPR_MAX,
                         hd_flat_operate(arena, HD_EXPR_MIN, l.limit, all),
                         hd_flat_int(arena, HD_I64, 0));
}
