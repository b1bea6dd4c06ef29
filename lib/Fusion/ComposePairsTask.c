// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The task of a product whose columns stand in pairs:
//
//   t0[i, j] = sum(p) x[i, p] * w[p, j]      t1[i, j] = sum(p) x[i, p] * v[p,
//   j] y[i, j] = f(t0[i, j], t1[i, j])
//
// becomes
//
//   t[i, j] = sum(p) x[i, p] * u[p, j]
//   y[i, j] = f(t[i, 2 * j], t[i, 2 * j + 1])
//
// where u[p, j] = j % 2 == 0 ? w[p, j / 2] : v[p, j / 2] is computed once, of
// constants. One product, of which y reads t0[i, j] and t0[i, j + n], becomes
// the same: there u[p, j] = w[p, j / 2 + j % 2 * n].
#include "Fusion/ComposePairs.h"
#include "Schedule/Affine.h"
#include "Schedule/Pairs.h"

typedef struct maker {
  hd_arena_t *arena;
  const hd_merged_t *from;
  hd_product_form_t forms[2]; // Of the products,
  unsigned count;             // so many.
  const hd_definition_t *gate;
  int64_t n; // Pairs.
  hd_task_t *flat;
  const hd_task_value_t *t, *matrix;
  bool seen[2], fits;
} maker_t;

// --- What there is ---

static bool is_local(const hd_definition_t *d) {
  return d->kind == HD_DEFINE && d->num_targets == 1 &&
         d->targets[0]->kind == HD_VALUE_LOCAL;
}

// The index along which the operand's columns run.
static const hd_index_t *column_of(const hd_product_form_t *form) {
  return form->b.indices[form->rows ? 1 : 2];
}

static const hd_index_t *summed_of(const hd_product_form_t *form) {
  return form->b.indices[form->rows ? 2 : 1];
}

static bool is_same_element(const hd_term_t *a, const hd_term_t *b) {
  return a->kind == HD_TERM_LOAD && b->kind == HD_TERM_LOAD &&
         a->u.value == b->u.value;
}

static const char *find_products(maker_t *m) {
  const hd_task_t *from = m->from->flat;
  m->count = (unsigned)from->definitions.size - 1;
  if (from->definitions.size < 2 || m->count > 2)
    return "what is between cannot be one task";
  m->gate = from->definitions.data[m->count];
  for (unsigned i = 0; i < m->count; i++) {
    const hd_definition_t *d = from->definitions.data[i];
    if (!is_local(d) || hd_product_form_find_few(m->arena, d, &m->forms[i]) ||
        m->forms[i].c.same != d->targets[0])
      return "a product's sums are more than rounded";
  }
  const hd_product_form_t *first = &m->forms[0], *second = &m->forms[1];
  m->n = first->sizes[HD_AXIS_N] / (3 - m->count);
  if (m->count == 1)
    return first->sizes[HD_AXIS_N] % 2 ? "its columns are an odd number" : NULL;
  for (int i = 0; i < HD_PRODUCT_AXES; i++)
    if (first->sizes[i] != second->sizes[i])
      return "the products are not of the same sizes";
  return first->type == second->type &&
                 first->c.same->type.scalar == second->c.same->type.scalar &&
                 is_same_element(first->a.term, second->a.term)
             ? NULL
             : "the products' first operands are not the same";
}

// --- Terms ---

// What stands for indices; those that are not named stay.
typedef struct places {
  hd_arena_t *arena;
  const hd_index_t *from[4];
  const hd_term_t *to[4];
} places_t;

static const hd_term_t *put_place(void *argument, const hd_term_t *term) {
  const places_t *p = argument;
  for (int i = 0; term->kind == HD_TERM_INDEX && i < 4; i++)
    if (p->from[i] == term->u.index)
      return p->to[i];
  if (term->kind != HD_TERM_LOAD && term->kind != HD_TERM_LOADELSE)
    return term;
  const hd_term_t *operands[HD_MAX_RANK + 1];
  for (unsigned i = 0; i < term->num_operands; i++)
    operands[i] = i < term->u.value->rank
                      ? hd_index_simplify(p->arena, term->operands[i])
                      : term->operands[i];
  return hd_flat_rebuild(p->arena, term, operands);
}

static const hd_term_t *operate(const maker_t *m, hd_expr_kind_t op,
                                const hd_term_t *term, int64_t number) {
  return hd_flat_operate(m->arena, op, term,
                         hd_flat_int(m->arena, HD_I64, number));
}

static const hd_term_t *as(hd_arena_t *arena, const hd_term_t *term,
                           hd_scalar_t type) {
  return term->type.scalar == type
             ? term
             : hd_term_make(arena, HD_TERM_CAST, hd_flat_type(type), &term, 1);
}

static hd_definition_t *define(const maker_t *m, const hd_task_value_t *target,
                               const hd_index_t *const *indices,
                               const hd_term_t *term) {
  hd_definition_t *d = HD_ARENA_NEW(m->arena, hd_definition_t);
  const hd_task_value_t **targets =
      HD_ARENA_ARRAY(m->arena, const hd_task_value_t *, 1);
  const hd_index_t **own =
      HD_ARENA_ARRAY(m->arena, const hd_index_t *, target->rank);
  targets[0] = target;
  for (uint32_t i = 0; i < target->rank; i++)
    own[i] = indices[i];
  *d = (hd_definition_t){.kind = HD_DEFINE,
                         .loc = m->gate->loc,
                         .num_targets = 1,
                         .targets = targets,
                         .num_indices = target->rank,
                         .indices = own,
                         .term = term};
  return d;
}

// The matrix' axes: the batch, where there is one, then the sum and the
// columns.
static unsigned matrix_axes(const maker_t *m, bool rows,
                            const hd_index_t *const z_p_j[3],
                            const hd_index_t **axes) {
  unsigned rank = 0;
  if (m->forms[0].sizes[HD_AXIS_BATCH] > 1)
    axes[rank++] = z_p_j[0];
  axes[rank++] = z_p_j[rows ? 2 : 1];
  axes[rank++] = z_p_j[rows ? 1 : 2];
  return rank;
}

static hd_task_value_t *matrix_value(const maker_t *m, hd_value_kind_t kind,
                                     const char *name,
                                     const hd_index_t *const *axes,
                                     unsigned rank) {
  int64_t shape[3];
  for (unsigned i = 0; i < rank; i++)
    shape[i] = hd_flat_range(axes[i]);
  return hd_flat_value_make(m->arena, name, kind,
                            m->forms[0].b.term->type.scalar, shape, rank);
}

static void make_indices(const maker_t *m, const hd_index_t *z_p_j[3]) {
  const int64_t *sizes = m->forms[0].sizes;
  z_p_j[0] = hd_flat_index_make(m->arena, "z", sizes[HD_AXIS_BATCH]);
  z_p_j[1] = hd_flat_index_make(m->arena, "p", sizes[HD_AXIS_K]);
  z_p_j[2] = hd_flat_index_make(m->arena, "j", 2 * m->n);
}

// --- The matrix ---

// A product's matrix at z and p, and at this column.
static const hd_term_t *column_at(const maker_t *m, unsigned which,
                                  const hd_index_t *const z_p_j[3],
                                  const hd_term_t *column) {
  const hd_product_form_t *form = &m->forms[which];
  places_t places = {m->arena,
                     {form->b.indices[0], summed_of(form), column_of(form)},
                     {hd_flat_index(m->arena, z_p_j[0]),
                      hd_flat_index(m->arena, z_p_j[1]), column}};
  return hd_flat_rewrite(m->arena, form->b.term, put_place, &places);
}

// Adds the inputs that a term reads; false where one of them is no constant.
static bool add_known(const maker_t *m, const hd_term_t *term,
                      const hd_ptr_map_t *known, hd_merged_t *packing) {
  const hd_task_t *from = m->from->flat;
  for (size_t i = 0; i < from->inputs.size; i++) {
    const hd_value_t *value = m->from->inputs.data[i];
    if (!hd_flat_reads(term, from->inputs.data[i]))
      continue;
    if (!hd_ptr_map_get(known, value))
      return false;
    hd_vec_push(m->arena, &packing->flat->inputs, from->inputs.data[i]);
    hd_vec_push(m->arena, &packing->inputs, value);
  }
  return true;
}

static const char *make_packing(const maker_t *m, const hd_ptr_map_t *known,
                                bool rows, hd_merged_t *packing) {
  const hd_index_t *z_p_j[3], *axes[3];
  make_indices(m, z_p_j);
  unsigned rank = matrix_axes(m, rows, z_p_j, axes);
  const hd_term_t *j = hd_flat_index(m->arena, z_p_j[2]);
  const hd_term_t *pair = operate(m, HD_EXPR_DIV, j, 2);
  const hd_term_t *which = operate(m, HD_EXPR_MOD, j, 2), *term;
  if (m->count == 1)
    term = column_at(m, 0, z_p_j,
                     hd_flat_operate(m->arena, HD_EXPR_ADD, pair,
                                     operate(m, HD_EXPR_MUL, which, m->n)));
  else
    term = hd_flat_select(m->arena, operate(m, HD_EXPR_EQ, which, 0),
                          column_at(m, 0, z_p_j, pair),
                          column_at(m, 1, z_p_j, pair));
  packing->flat = HD_ARENA_NEW(m->arena, hd_task_t);
  packing->flat->name = "pairs";
  if (!add_known(m, term, known, packing))
    return "the products' matrices are no constants, whose columns could be "
           "put side by side";
  const hd_task_value_t *target =
      matrix_value(m, HD_VALUE_OUTPUT, "y0", axes, rank);
  hd_vec_push(m->arena, &packing->flat->outputs, target);
  hd_vec_push(m->arena, &packing->flat->definitions,
              (const hd_definition_t *)define(m, target, axes, term));
  return NULL;
}

// --- The product, and what is made of pairs ---

static const hd_definition_t *make_product(maker_t *m, bool rows) {
  const hd_product_form_t *form = &m->forms[0];
  hd_arena_t *arena = m->arena;
  const hd_index_t *z_p_j[3], *axes[3];
  make_indices(m, z_p_j);
  unsigned rank = matrix_axes(m, rows, z_p_j, axes);
  m->matrix = matrix_value(m, HD_VALUE_INPUT, "u", axes, rank);
  const hd_index_t *own[] = {
      z_p_j[0], hd_flat_index_make(arena, "i", form->sizes[HD_AXIS_M]),
      z_p_j[2]};
  int64_t shape[3];
  for (int i = 0; i < 3; i++)
    shape[i] = hd_flat_range(own[i]);
  hd_task_value_t *t = hd_flat_value_make(arena, "t", HD_VALUE_LOCAL,
                                          form->c.same->type.scalar, shape, 3);
  m->t = t;
  places_t places = {
      arena,
      {form->a.indices[0], form->a.indices[1], form->a.indices[2]},
      {hd_flat_index(arena, own[0]), hd_flat_index(arena, own[1]),
       hd_flat_index(arena, z_p_j[1])}};
  const hd_term_t *at[3];
  for (unsigned i = 0; i < rank; i++)
    at[i] = hd_flat_index(arena, axes[i]);
  hd_scalar_t sums = form->result.reduced.reduction->type.scalar;
  const hd_term_t *product = hd_flat_operate(
      arena, HD_EXPR_MUL,
      as(arena, hd_flat_rewrite(arena, form->a.term, put_place, &places), sums),
      as(arena, hd_flat_load(arena, m->matrix, at), sums));
  hd_reduction_t *r = HD_ARENA_NEW(arena, hd_reduction_t);
  const hd_index_t **summed = HD_ARENA_ARRAY(arena, const hd_index_t *, 1);
  summed[0] = z_p_j[1];
  *r = *form->result.reduced.reduction->u.reduction;
  r->num_indices = 1;
  r->indices = summed;
  hd_term_t *sum =
      hd_term_make(arena, HD_TERM_REDUCE, hd_flat_type(sums), &product, 1);
  sum->u.reduction = r;
  return define(m, t, own, as(arena, sum, t->type.scalar));
}

// For hd_flat_rewrite(): elements of the products are those of the one whose
// columns stand in pairs.
static const hd_term_t *put_pair(void *argument, const hd_term_t *term) {
  maker_t *m = argument;
  unsigned of = 0;
  bool loads = term->kind == HD_TERM_LOAD || term->kind == HD_TERM_LOADELSE;
  while (loads && of < m->count && m->forms[of].c.same != term->u.value)
    of++;
  if (!loads || of == m->count)
    return term;
  const hd_task_value_t *value = term->u.value;
  int64_t shape[HD_MAX_RANK];
  const hd_term_t *at[3];
  for (uint32_t i = 0; i < value->rank; i++)
    shape[i] = hd_flat_size(value, i);
  hd_index_places(m->arena,
                  hd_index_linear(m->arena, shape, value->rank, term->operands),
                  m->forms[of].c.shape, 3, at);
  hd_range_t range = hd_term_range(at[2]);
  if (range.least >= m->n) {
    at[2] = operate(m, HD_EXPR_SUB, at[2], m->n);
    of = 1;
  }
  m->fits &= term->kind == HD_TERM_LOAD &&
             (range.greatest < m->n || range.least >= m->n);
  m->seen[of] = true;
  at[2] = hd_index_simplify(
      m->arena, operate(m, HD_EXPR_ADD, operate(m, HD_EXPR_MUL, at[2], 2), of));
  return hd_flat_load(m->arena, m->t, at);
}

static void keep_inputs(const maker_t *m, hd_merged_t *merged) {
  const hd_task_t *from = m->from->flat;
  hd_task_t *flat = m->flat;
  for (size_t i = 0; i < from->inputs.size; i++)
    if (hd_flat_reads(flat->definitions.data[0]->term, from->inputs.data[i]) ||
        hd_flat_reads(flat->definitions.data[1]->term, from->inputs.data[i])) {
      hd_vec_push(m->arena, &flat->inputs, from->inputs.data[i]);
      hd_vec_push(m->arena, &merged->inputs, m->from->inputs.data[i]);
    }
  hd_vec_push(m->arena, &flat->inputs, m->matrix);
  hd_vec_push(m->arena, &merged->inputs, (const hd_value_t *)NULL);
}

const char *hd_pair_task(hd_arena_t *arena, const hd_merged_t *merged,
                         const hd_ptr_map_t *known, bool rows,
                         hd_paired_t *paired) {
  static const char apart[] =
      "what meets is not the element at the same place of both";
  hd_product_form_t form;
  *paired = (hd_paired_t){.merged = *merged};
  if (!hd_pairs_form_find(arena, merged->flat, &form))
    return NULL;
  maker_t m = {.arena = arena, .from = merged, .fits = true};
  const char *why = find_products(&m);
  if (!why)
    why = make_packing(&m, known, rows, &paired->packing);
  if (why)
    return why;
  m.flat = HD_ARENA_NEW(arena, hd_task_t);
  m.flat->name = merged->flat->name;
  m.flat->outputs = merged->flat->outputs;
  m.flat->monoids = merged->flat->monoids;
  hd_vec_push(arena, &m.flat->definitions, make_product(&m, rows));
  hd_vec_push(arena, &m.flat->locals, m.t);
  hd_definition_t *gate = HD_ARENA_NEW(arena, hd_definition_t);
  *gate = *m.gate;
  gate->term = hd_flat_rewrite(arena, gate->term, put_pair, &m);
  hd_vec_push(arena, &m.flat->definitions, (const hd_definition_t *)gate);
  if (!m.fits || !m.seen[0] || !m.seen[1] ||
      hd_pairs_form_find(arena, m.flat, &form))
    return apart;
  paired->merged = (hd_merged_t){.flat = m.flat};
  keep_inputs(&m, &paired->merged);
  return NULL;
}
