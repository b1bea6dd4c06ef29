// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What stands between two products: definitions put in the place of what is
// read, until nothing is left but the first product's sum, reductions over rows
// of it, and inputs; and whether that has a running form.
#include "Schedule/Attention/AttentionState.h"

#include "Schedule/Terms/Affine.h"

#include <math.h>

enum { MOST_TERMS = 2000 };

static const hd_term_t *no(hd_attention_finder_t *f, const hd_term_t *term,
                           const char *why) {
  if (!f->why)
    f->why = why;
  return term;
}

bool hd_attention_uses(const hd_term_t *term, const hd_axis_t *axis) {
  for (unsigned i = 0; i < axis->count; i++)
    if (hd_flat_range(axis->indices[i]) > 1 &&
        hd_flat_uses(term, axis->indices[i]))
      return true;
  return false;
}

// --- Indices ---

typedef struct put {
  const hd_index_t *const *indices;
  const hd_term_t *const *terms;
  uint32_t count;
} put_t;

static const hd_term_t *put_index(void *argument, const hd_term_t *term) {
  const put_t *p = argument;
  for (uint32_t i = 0; term->kind == HD_TERM_INDEX && i < p->count; i++)
    if (p->indices[i] == term->u.index)
      return p->terms[i];
  return term;
}

const hd_term_t *hd_attention_put(hd_arena_t *arena, const hd_term_t *term,
                                  const hd_index_t *const *indices,
                                  const hd_term_t *const *terms,
                                  uint32_t count) {
  put_t put = {indices, terms, count};
  return hd_flat_rewrite(arena, term, put_index, &put);
}

// --- Expanding ---

static const hd_term_t *bound(hd_arena_t *arena, const hd_variable_t *v) {
  hd_term_t *term = hd_term_make(arena, HD_TERM_BOUND, v->type, NULL, 0);
  term->u.variable = v;
  return term;
}

const hd_term_t *hd_attention_wide(hd_arena_t *arena, const hd_term_t *term) {
  return hd_flat_cast(arena, term, HD_F32);
}

static const hd_variable_t *variable(hd_arena_t *arena, const char *name) {
  hd_variable_t *v = HD_ARENA_NEW(arena, hd_variable_t);
  *v = (hd_variable_t){.name = name, .type = hd_flat_type(HD_F32)};
  return v;
}

// An element of the first product: all that is read is the same one.
static const hd_term_t *expand_score(hd_attention_finder_t *f,
                                     const hd_term_t *load) {
  const hd_definition_t *d = f->first.d;
  for (uint32_t i = 0; i < d->num_indices; i++) {
    const hd_term_t *place = hd_index_simplify(f->arena, load->operands[i]);
    if (!f->is_read)
      f->places[i] = place;
    else if (!hd_term_equal(f->places[i], place))
      return no(f, load, "several scores are read for one weight");
  }
  f->is_read = true;
  return hd_attention_put(f->arena, f->first.reduced.result, d->indices,
                          f->places, d->num_indices);
}

static const hd_term_t *expand_load(hd_attention_finder_t *f,
                                    const hd_term_t *term) {
  const hd_definition_t *d = hd_attention_definition(f, term->u.value);
  if (!d)
    return term;
  if (term->kind != HD_TERM_LOAD || d->kind != HD_DEFINE || d->num_targets > 1)
    return no(f, term, "what is between the products is no plain definition");
  if (d == f->first.d)
    return expand_score(f, term);
  const hd_term_t *at = hd_attention_put(f->arena, d->term, d->indices,
                                         term->operands, d->num_indices);
  return hd_attention_expand(f, at);
}

const hd_term_t *hd_attention_unrounded(const hd_term_t *term) {
  while (term->kind == HD_TERM_CAST &&
         hd_type_is_float(hd_type(term->type.scalar)) &&
         hd_type_is_float(hd_type(term->operands[0]->type.scalar)))
    term = term->operands[0];
  return term;
}

bool hd_attention_is_lowest(const hd_term_t *term) {
  term = hd_attention_unrounded(term);
  if (term->kind == HD_TERM_OPERATOR && term->u.op == HD_EXPR_NEG)
    return term->operands[0]->kind == HD_TERM_CONST &&
           term->operands[0]->u.f == INFINITY;
  return term->kind == HD_TERM_CONST && term->u.f == -INFINITY;
}

static bool is_variable(const hd_term_t *term, const hd_variable_t *v) {
  return term->kind == HD_TERM_BOUND && term->u.variable == v;
}

static bool is_operation(const hd_term_t *term, hd_expr_kind_t op,
                         const hd_variable_t *a, const hd_variable_t *b) {
  return term->kind == HD_TERM_OPERATOR && term->u.op == op &&
         is_variable(term->operands[0], a) && is_variable(term->operands[1], b);
}

// v > w ? v : w, or v > w || v != v ? v : w, from -inf on: which of them a NaN
// gives makes no difference, for the sum of exponentials is NaN then.
static bool is_maximum(const hd_monoid_t *m) {
  if (m->builtin != HD_MONOID_COUNT)
    return m->builtin == HD_MONOID_MAX;
  if (m->size != 1 || m->result[0]->kind != HD_TERM_SELECT)
    return false;
  const hd_variable_t *v = m->left[0], *w = m->right[0];
  const hd_term_t *choice = m->result[0], *c = choice->operands[0];
  const hd_term_t *from = m->identity[0];
  if (c->kind == HD_TERM_OPERATOR && c->u.op == HD_EXPR_OR &&
      is_operation(c->operands[1], HD_EXPR_NE, v, v))
    c = c->operands[0];
  return is_operation(c, HD_EXPR_GT, v, w) &&
         is_variable(choice->operands[1], v) &&
         is_variable(choice->operands[2], w) && hd_attention_is_lowest(from);
}

// The first index of the keys of a reduction's length that none before it has;
// NULL: there is none.
static const hd_index_t *key_of(const hd_axis_t *keys, const hd_index_t *index,
                                uint32_t *taken) {
  for (uint32_t i = 0; i < keys->count; i++)
    if (!(*taken >> i & 1) &&
        hd_flat_range(keys->indices[i]) == hd_flat_range(index)) {
      *taken |= UINT32_C(1) << i;
      return keys->indices[i];
    }
  return NULL;
}

// A reduction over all of j, whatever its own indices are called and whichever
// comes first.
static const hd_term_t *expand_row(hd_attention_finder_t *f,
                                   const hd_term_t *term) {
  const hd_reduction_t *r = term->u.reduction;
  const hd_axis_t *keys = &f->last.k;
  const hd_term_t *js[HD_MAX_RANK];
  uint32_t taken = 0;
  bool fits = term->num_operands == 1 && r->num_indices == keys->count &&
              !hd_attention_uses(term, keys);
  for (uint32_t i = 0; fits && i < r->num_indices; i++) {
    const hd_index_t *key = key_of(keys, r->indices[i], &taken);
    fits = key != NULL;
    js[i] = fits ? hd_flat_index(f->arena, key) : NULL;
  }
  if (!fits)
    return no(f, term, "a reduction between the products is not over the keys");
  const hd_term_t *body =
      hd_attention_expand(f, hd_attention_put(f->arena, term->operands[0],
                                              r->indices, js, r->num_indices));
  bool is_max = is_maximum(r->monoid);
  bool is_sum = r->monoid->builtin == HD_MONOID_SUM;
  for (unsigned i = 0; i < f->num_rows; i++)
    if ((f->rows[i].is_max ? is_max : is_sum) &&
        hd_term_equal(f->rows[i].body, body))
      return hd_flat_cast(f->arena, bound(f->arena, f->rows[i].cell),
                          term->type.scalar);
  bool is_exact = is_max && hd_type_is_float(hd_type(term->type.scalar)) &&
                  hd_scalar_bits(term->type.scalar) <= 32;
  if (f->num_rows == HD_MOST_STATISTICS || !(is_max || is_sum) ||
      (term->type.scalar != HD_F32 && !is_exact))
    return no(f, term, "what is reduced over the keys has no running form");
  const hd_variable_t *cell = variable(f->arena, f->num_rows ? "total" : "top");
  f->rows[f->num_rows++] = (hd_statistic_t){is_max, body, cell};
  return hd_flat_cast(f->arena, bound(f->arena, cell), term->type.scalar);
}

// The term by the first product's sum, rows and inputs.
const hd_term_t *hd_attention_expand(hd_attention_finder_t *f,
                                     const hd_term_t *term) {
  if (f->why)
    return term;
  if (++f->num_terms > MOST_TERMS)
    return no(f, term, "the terms between the products are too large");
  if (term->kind == HD_TERM_SCAN)
    return no(f, term, "there is a scan between the products");
  if (term->kind == HD_TERM_REDUCE)
    return expand_row(f, term);
  const hd_term_t *operands[HD_MAX_RANK + 1];
  bool changed = false;
  for (unsigned i = 0; i < term->num_operands && i <= HD_MAX_RANK; i++) {
    operands[i] = hd_attention_expand(f, term->operands[i]);
    changed |= operands[i] != term->operands[i];
  }
  if (changed && !f->why)
    term = hd_flat_rebuild(f->arena, term, operands);
  return hd_flat_is_load(term) ? expand_load(f, term) : term;
}

// --- The running form ---

static bool is_cell(const hd_term_t *term, const hd_variable_t *cell) {
  term = hd_attention_unrounded(term);
  return term->kind == HD_TERM_BOUND && term->u.variable == cell;
}

static bool is_zero(const hd_term_t *term) {
  return term->kind == HD_TERM_CONST &&
         hd_type_is_float(hd_type(term->type.scalar)) && term->u.f == 0;
}

// c ? 0 : x, whose x is put into *of. Returns c, or NULL.
static const hd_term_t *zero_where(const hd_term_t *term,
                                   const hd_term_t **of) {
  if (term->kind != HD_TERM_SELECT)
    return NULL;
  const hd_term_t *c = term->operands[0], *zero = term->operands[1];
  while (c->kind == HD_TERM_CAST)
    c = c->operands[0];
  *of = term->operands[2];
  return is_zero(zero) ? c : NULL;
}

// top == -inf ? 0 : top
static bool is_finite_top(const hd_attention_finder_t *f,
                          const hd_term_t *term) {
  const hd_term_t *of, *c = zero_where(hd_attention_unrounded(term), &of);
  return c && hd_flat_is_operator(c, HD_EXPR_EQ) &&
         is_cell(c->operands[0], f->rows[0].cell) &&
         is_cell(of, f->rows[0].cell) &&
         hd_attention_is_lowest(hd_attention_unrounded(c->operands[1]));
}

// exp(t - top), or what is exp(t) in a row without a finite top.
static bool is_weight(const hd_attention_finder_t *f, const hd_term_t *term) {
  term = hd_attention_unrounded(term);
  if (term->kind != HD_TERM_FUNCTION ||
      (term->u.function != HD_TASK_EXP &&
       term->u.function != HD_TASK_EXP_COARSE))
    return false;
  const hd_term_t *difference = hd_attention_unrounded(term->operands[0]);
  return hd_flat_is_operator(difference, HD_EXPR_SUB) &&
         hd_term_equal(hd_attention_unrounded(difference->operands[0]),
                       hd_attention_unrounded(f->rows[0].body)) &&
         (is_cell(difference->operands[1], f->rows[0].cell) ||
          is_finite_top(f, difference->operands[1]));
}

// The same for all of a row.
static bool is_of_row(const hd_attention_finder_t *f, const hd_term_t *term) {
  if ((term->kind == HD_TERM_BOUND && term->u.variable == f->score) ||
      hd_attention_uses(term, &f->last.k))
    return false;
  for (unsigned i = 0; i < term->num_operands; i++)
    if (!is_of_row(f, term->operands[i]))
      return false;
  return true;
}

static const hd_term_t *inverse(hd_attention_finder_t *f,
                                const hd_term_t *term) {
  return hd_flat_operate(f->arena, HD_EXPR_DIV,
                         hd_flat_float(f->arena, HD_F32, 1),
                         hd_attention_wide(f->arena, term));
}

static const hd_term_t *times(hd_attention_finder_t *f,
                              const hd_term_t *divisor, const hd_term_t *by) {
  by = hd_attention_wide(f->arena, by);
  return divisor ? hd_flat_operate(f->arena, HD_EXPR_MUL, divisor, by) : by;
}

// x != x ? 0 : x
static bool masks_nan(const hd_term_t *term, const hd_term_t **of) {
  const hd_term_t *c = zero_where(term, of);
  return c && hd_flat_is_operator(c, HD_EXPR_NE) &&
         hd_term_equal(c->operands[0], c->operands[1]) &&
         hd_term_equal(hd_attention_unrounded(c->operands[0]),
                       hd_attention_unrounded(*of));
}

// total == 0 ? 0 : x. Of exp(t - top) no total is 0, of exp(t - 0) those are of
// rows that are -inf throughout.
static bool masks_empty(const hd_attention_finder_t *f, const hd_term_t *term,
                        const hd_term_t **of) {
  const hd_term_t *c = zero_where(term, of);
  const hd_term_t *body = hd_attention_unrounded(f->rows[1].body);
  const hd_term_t *difference = hd_attention_unrounded(body->operands[0]);
  return c && hd_flat_is_operator(c, HD_EXPR_EQ) &&
         is_cell(c->operands[0], f->rows[1].cell) &&
         is_zero(hd_attention_unrounded(c->operands[1])) &&
         is_finite_top(f, difference->operands[1]);
}

static bool has_total(const hd_attention_finder_t *f, const hd_term_t *term) {
  if (is_cell(term, f->rows[1].cell))
    return true;
  for (unsigned i = 0; i < term->num_operands; i++)
    if (has_total(f, term->operands[i]))
      return true;
  return false;
}

// Whether a term is exp(t - top) over a divisor, which is put into *divisor; it
// stays NULL where there is none.
static bool find_divisor(hd_attention_finder_t *f, const hd_term_t *term,
                         const hd_term_t **divisor) {
  const hd_term_t *of;
  term = hd_attention_unrounded(term);
  if (is_weight(f, term))
    return true;
  if (masks_nan(term, &of)) {
    // All of a row is NaN where its sum is, but only what is divided by that.
    const hd_term_t *inner = NULL;
    if (!find_divisor(f, of, &inner) || !inner || !has_total(f, inner))
      return false;
    f->masks_nan = true;
    *divisor = times(f, *divisor, inner);
    return true;
  }
  if (masks_empty(f, term, &of)) {
    f->masks_empty = true;
    return find_divisor(f, of, divisor);
  }
  bool divides = hd_flat_is_operator(term, HD_EXPR_DIV);
  if (!divides && !hd_flat_is_operator(term, HD_EXPR_MUL))
    return false;
  for (unsigned i = 0; i < (divides ? 1 : 2); i++) {
    const hd_term_t *other = term->operands[1 - i];
    if (!is_of_row(f, other) || !find_divisor(f, term->operands[i], divisor))
      continue;
    *divisor = times(f, *divisor, divides ? other : inverse(f, other));
    return true;
  }
  return false;
}

// A term with a variable in the place of the weight that it is made of.
static const hd_term_t *put_weight(hd_attention_finder_t *f,
                                   const hd_term_t *term,
                                   const hd_variable_t *weight,
                                   const hd_term_t **divisor) {
  static const char *const NO_WEIGHT =
      "the rows between the products have no running form: a weight is made "
      "of more than an exponential over what is the same for its row";
  const hd_term_t *found = NULL;
  if (find_divisor(f, term, &found)) {
    if (f->weight && !hd_term_equal(f->weight, term))
      return no(f, term, NO_WEIGHT);
    f->weight = term;
    *divisor = found;
    return hd_flat_cast(f->arena, bound(f->arena, weight), term->type.scalar);
  }
  if (term->kind == HD_TERM_BOUND)
    return no(f, term, NO_WEIGHT);
  const hd_term_t *operands[HD_MAX_RANK + 1];
  bool changed = false;
  for (unsigned i = 0; i < term->num_operands && i <= HD_MAX_RANK; i++) {
    operands[i] = put_weight(f, term->operands[i], weight, divisor);
    changed |= operands[i] != term->operands[i];
  }
  return changed && !f->why ? hd_flat_rebuild(f->arena, term, operands) : term;
}

// What is left where a row's sum is NaN, or its top -inf: no weight is. A row
// that has NaN, +inf or nothing but -inf has NaN for its sum, and NaN for its
// top where it has NaN and nothing but -inf.
static const hd_term_t *masked_divisor(hd_attention_finder_t *f,
                                       const hd_term_t *divisor) {
  const hd_term_t *total = bound(f->arena, f->rows[1].cell);
  const hd_term_t *top = bound(f->arena, f->rows[0].cell);
  const hd_term_t *infinite = hd_flat_float(f->arena, HD_F32, INFINITY);
  if (f->masks_nan)
    divisor = hd_flat_select(
        f->arena, hd_flat_operate(f->arena, HD_EXPR_NE, total, total), infinite,
        divisor);
  if (f->masks_empty)
    divisor = hd_flat_select(
        f->arena,
        hd_flat_operate(f->arena, HD_EXPR_EQ, top,
                        hd_flat_float(f->arena, HD_F32, -INFINITY)),
        infinite, divisor);
  return divisor;
}

const char *hd_attention_running(hd_attention_finder_t *f,
                                 const hd_term_t *weight,
                                 hd_attention_form_t *form) {
  if (f->num_rows != 2 || !f->rows[0].is_max || f->rows[1].is_max ||
      !is_weight(f, f->rows[1].body))
    return "the rows between the products have no running form: no maximum "
           "and sum of exponentials";
  const hd_term_t *divisor = NULL;
  if (!find_divisor(f, weight, &divisor)) {
    form->weight = variable(f->arena, "weight");
    form->weighed = hd_attention_wide(
        f->arena, put_weight(f, weight, form->weight, &divisor));
    if (f->why)
      return f->why;
    if (!f->weight)
      return "the rows between the products have no running form: a weight is "
             "no exponential over what is the same for its row";
  }
  if (!divisor)
    divisor = hd_flat_float(f->arena, HD_F32, 1);
  form->term =
      hd_attention_wide(f->arena, hd_attention_unrounded(f->rows[0].body));
  form->divisor = masked_divisor(f, divisor);
  form->score = f->score;
  form->top = f->rows[0].cell;
  form->total = f->rows[1].cell;
  return NULL;
}
