// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The task of a product whose columns stand in pairs:
//
//   s[i, j] = sum(p) x[i, p] * w[p, j]
//   t[i, j] = sum(p) x[i, p] * v[p, j]
//   y[i, j] = f(s[i, j], t[i, j])
//
// becomes
//
//   t[i, j] = sum(p) x[i, p] * u[p, j]
//   y[i, j] = f(t[i, 2 * j], t[i, 2 * j + 1])
//
// with the columns of w and v in turns in u (ComposePairsMatrix.c). One
// product, of which y reads t[i, j] and t[i, j + n], becomes the same. Where
// rows are normalized by what their parts' squares come to, that is computed
// once, before t.
#include "Fusion/Compose/ComposePairs.h"
#include "Schedule/Product/Pairs.h"
#include "Schedule/Terms/Affine.h"

// --- What there is ---

static bool is_same_element(const hd_term_t *a, const hd_term_t *b) {
  return a->kind == HD_TERM_LOAD && b->kind == HD_TERM_LOAD &&
         a->u.value == b->u.value;
}

// Whether rows are normalized by the same numbers, or not at all.
static bool are_normed_alike(const hd_normed_t *a, const hd_normed_t *b) {
  if (!a || !b)
    return a == b;
  const hd_term_t *x = a->epsilon.term, *y = b->epsilon.term;
  return a->squares.same == b->squares.same && x->kind == HD_TERM_CONST &&
         y->kind == HD_TERM_CONST && x->type.scalar == y->type.scalar &&
         x->u.f == y->u.f;
}

static const char *find_products(hd_pairer_t *p) {
  const hd_task_t *from = p->from->flat;
  const hd_definition_t *const *all = from->definitions.data;
  unsigned size = (unsigned)from->definitions.size;
  hd_product_form_t normed;
  p->each =
      size > 2 && !hd_pairs_product_find(p->arena, all, 2, &normed) ? 2 : 1;
  p->count = size ? (size - 1) / p->each : 0;
  if (p->count < 1 || p->count > 2 || size != p->count * p->each + 1)
    return "what is between cannot be one task";
  p->gate = all[size - 1];
  for (unsigned i = 0; i < p->count; i++) {
    const hd_definition_t *const *d = &all[i * p->each];
    if (!hd_flat_is_local(d[p->each - 1]) ||
        hd_pairs_product_find(p->arena, d, p->each, &p->forms[i]) ||
        p->forms[i].c.same != d[p->each - 1]->targets[0])
      return "a product's sums are more than rounded";
  }
  const hd_product_form_t *first = &p->forms[0], *second = &p->forms[1];
  p->n = first->sizes[HD_AXIS_N] / (3 - p->count);
  if (p->count == 1)
    return first->sizes[HD_AXIS_N] % 2 ? "its columns are an odd number" : NULL;
  for (int i = 0; i < HD_PRODUCT_AXES; i++)
    if (first->sizes[i] != second->sizes[i])
      return "the products are not of the same sizes";
  return first->type == second->type &&
                 first->c.same->type.scalar == second->c.same->type.scalar &&
                 is_same_element(first->a.term, second->a.term) &&
                 are_normed_alike(first->normed, second->normed)
             ? NULL
             : "the products' first operands are not the same";
}

// --- Terms ---

const hd_term_t *hd_pair_put_place(void *argument, const hd_term_t *term) {
  const hd_pair_places_t *p = argument;
  for (int i = 0; term->kind == HD_TERM_INDEX && i < 4; i++)
    if (p->from[i] == term->u.index)
      return p->to[i];
  return hd_index_simplify_load(p->arena, term);
}

hd_definition_t *hd_pair_define(const hd_pairer_t *p,
                                const hd_task_value_t *target,
                                const hd_index_t *const *indices,
                                const hd_term_t *term) {
  hd_definition_t *d = hd_flat_define(p->arena, target, indices, term);
  d->loc = p->gate->loc;
  return d;
}

// --- The product, and what is made of pairs ---

// What rows are normalized by; NULL: they are not.
static const hd_definition_t *inverse_of(const hd_pairer_t *p) {
  return p->each == 2 ? p->from->flat->definitions.data[0] : NULL;
}

// A row's sum, times what the row is normalized by.
static const hd_term_t *make_normal(const hd_pairer_t *p, const hd_term_t *sum,
                                    const hd_index_t *row) {
  if (!inverse_of(p))
    return sum;
  const hd_task_value_t *inverse = inverse_of(p)->targets[0];
  int64_t shape[HD_MAX_RANK];
  const hd_term_t *at[HD_MAX_RANK];
  for (uint32_t i = 0; i < inverse->rank; i++)
    shape[i] = hd_flat_size(inverse, i);
  hd_index_places(p->arena, hd_flat_index(p->arena, row), shape, inverse->rank,
                  at);
  return hd_flat_operate(p->arena, HD_EXPR_MUL, sum,
                         hd_flat_load(p->arena, inverse, at));
}

// Of form's first operand, and the matrix in pairs: hd_flat_cast(sum(p) a * b).
static const hd_term_t *make_sum(const hd_pairer_t *p, const hd_term_t *a,
                                 const hd_term_t *b, const hd_index_t *row,
                                 const hd_index_t *summed) {
  hd_arena_t *arena = p->arena;
  const hd_term_t *like = p->forms[0].result.reduced.reduction;
  hd_scalar_t sums = like->type.scalar;
  const hd_term_t *product =
      hd_flat_operate(arena, HD_EXPR_MUL, hd_flat_cast(arena, a, sums),
                      hd_flat_cast(arena, b, sums));
  hd_reduction_t *r = HD_ARENA_COPY(arena, hd_reduction_t, like->u.reduction);
  const hd_index_t **indices = HD_ARENA_ARRAY(arena, const hd_index_t *, 1);
  indices[0] = summed;
  r->num_indices = 1;
  r->indices = indices;
  hd_term_t *sum =
      hd_term_make(arena, HD_TERM_REDUCE, hd_flat_type(sums), &product, 1);
  sum->u.reduction = r;
  return hd_flat_cast(arena, make_normal(p, sum, row), p->t->type.scalar);
}

// NULL, and why.
static const hd_definition_t *make_product(hd_pairer_t *p, const char **why) {
  const hd_product_form_t *form = &p->forms[0];
  hd_arena_t *arena = p->arena;
  const int64_t *sizes = form->sizes;
  const hd_index_t *z_p_j[] = {
      hd_flat_index_make(arena, "z", sizes[HD_AXIS_BATCH]),
      hd_flat_index_make(arena, "p", sizes[HD_AXIS_K]),
      hd_flat_index_make(arena, "j", 2 * p->n)};
  const hd_term_t *b = hd_pair_matrix(p, z_p_j, why);
  if (!b)
    return NULL;
  const hd_index_t *own[] = {
      z_p_j[0], hd_flat_index_make(arena, "i", sizes[HD_AXIS_M]), z_p_j[2]};
  int64_t shape[3];
  for (int i = 0; i < 3; i++)
    shape[i] = hd_flat_range(own[i]);
  p->t = hd_flat_value_make(arena, "t", HD_VALUE_LOCAL,
                            form->c.same->type.scalar, shape, 3);
  hd_pair_places_t places = {
      arena,
      {form->a.indices[0], form->a.indices[1], form->a.indices[2]},
      {hd_flat_index(arena, own[0]), hd_flat_index(arena, own[1]),
       hd_flat_index(arena, z_p_j[1])}};
  const hd_term_t *a =
      hd_flat_rewrite(arena, form->a.term, hd_pair_put_place, &places);
  return hd_pair_define(p, p->t, own, make_sum(p, a, b, own[1], z_p_j[1]));
}

// For hd_flat_rewrite(): elements of the products are those of the one whose
// columns stand in pairs.
static const hd_term_t *put_pair(void *argument, const hd_term_t *term) {
  hd_pairer_t *p = argument;
  unsigned of = 0;
  bool loads = hd_flat_is_load(term);
  while (loads && of < p->count && p->forms[of].c.same != term->u.value)
    of++;
  if (!loads || of == p->count)
    return term;
  const hd_task_value_t *value = term->u.value;
  int64_t shape[HD_MAX_RANK];
  const hd_term_t *at[3];
  for (uint32_t i = 0; i < value->rank; i++)
    shape[i] = hd_flat_size(value, i);
  hd_index_places(p->arena,
                  hd_index_linear(p->arena, shape, value->rank, term->operands),
                  p->forms[of].c.shape, 3, at);
  hd_range_t range = hd_term_range(at[2]);
  if (range.least >= p->n) {
    at[2] = hd_flat_operate_int(p->arena, HD_EXPR_SUB, at[2], p->n);
    of = 1;
  }
  p->fits &= term->kind == HD_TERM_LOAD &&
             (range.greatest < p->n || range.least >= p->n);
  p->seen[of] = true;
  at[2] = hd_index_simplify(
      p->arena, hd_flat_operate_int(
                    p->arena, HD_EXPR_ADD,
                    hd_flat_operate_int(p->arena, HD_EXPR_MUL, at[2], 2), of));
  return hd_flat_load(p->arena, p->t, at);
}

static void keep_inputs(const hd_pairer_t *p, hd_merged_t *merged) {
  const hd_task_t *from = p->from->flat;
  hd_task_t *flat = p->flat;
  for (size_t i = 0; i < from->inputs.size; i++) {
    bool reads = false;
    for (size_t k = 0; k < flat->definitions.size; k++)
      reads |=
          hd_flat_reads(flat->definitions.data[k]->term, from->inputs.data[i]);
    if (!reads)
      continue;
    hd_vec_push(p->arena, &flat->inputs, from->inputs.data[i]);
    hd_vec_push(p->arena, &merged->inputs, p->from->inputs.data[i]);
  }
  for (size_t i = 0; i < p->matrices.size; i++) {
    hd_vec_push(p->arena, &flat->inputs, p->matrices.data[i]);
    hd_vec_push(p->arena, &merged->inputs, (const hd_value_t *)NULL);
  }
}

const char *hd_pair_task(hd_arena_t *arena, const hd_merged_t *merged,
                         const hd_ptr_map_t *known, hd_packing_t packing,
                         hd_paired_t *paired) {
  static const char apart[] =
      "what meets is not the element at the same place of both";
  hd_product_form_t form;
  *paired = (hd_paired_t){.merged = *merged};
  if (!hd_pairs_form_find(arena, merged->flat, &form))
    return NULL;
  hd_pairer_t p = {.arena = arena,
                   .from = merged,
                   .known = known,
                   .packing = packing,
                   .fits = true,
                   .paired = paired};
  const char *why = find_products(&p), *no_matrix;
  const hd_definition_t *product = why ? NULL : make_product(&p, &no_matrix);
  if (!product)
    return why ? why : no_matrix;
  p.flat = HD_ARENA_NEW(arena, hd_task_t);
  p.flat->name = merged->flat->name;
  p.flat->outputs = merged->flat->outputs;
  p.flat->monoids = merged->flat->monoids;
  if (inverse_of(&p)) {
    hd_vec_push(arena, &p.flat->definitions, inverse_of(&p));
    hd_vec_push(arena, &p.flat->locals, inverse_of(&p)->targets[0]);
  }
  hd_vec_push(arena, &p.flat->definitions, product);
  hd_vec_push(arena, &p.flat->locals, p.t);
  hd_definition_t *gate = HD_ARENA_COPY(arena, hd_definition_t, p.gate);
  gate->term = hd_flat_rewrite(arena, gate->term, put_pair, &p);
  hd_vec_push(arena, &p.flat->definitions, (const hd_definition_t *)gate);
  if (!p.fits || !p.seen[0] || !p.seen[1] ||
      hd_pairs_form_find(arena, p.flat, &form))
    return apart;
  paired->merged = (hd_merged_t){.flat = p.flat};
  keep_inputs(&p, &paired->merged);
  return NULL;
}
