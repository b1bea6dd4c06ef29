// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of normalized rows: the statistics of an operand's rows, and a
// product with it of which the definition makes what the product with the
// normalized rows would be.
//
//   mean[i]    = sum(p) x[i, p] / k
//   inverse[i] = 1 / sqrt(sum(p) (x[i, p] - mean[i]) * (x[i, p] - mean[i]) / k
//                         + epsilon)
//   y[i, j]    = (sum(p) x[i, p] * w[p, j] - mean[i] * u[j]) * inverse[i] +
//   v[j]
//
// or, without a mean,
//
//   inverse[i] = 1 / sqrt(sum(p) x[i, p] * x[i, p] / k + epsilon)
//   y[i, j]    = sum(p) x[i, p] * w[p, j] * inverse[i]
//
// or with the statistics of the rows' parts at hand, of g elements each:
//
//   mean[i]    = sum(q) centre[i, q] / t
//   inverse[i] = 1 / sqrt(sum(q) (squares[i, q] + (centre[i, q] - mean[i]) *
//                                (centre[i, q] - mean[i]) * g) / k + epsilon)
//   y[i, j]    = sum(p) (p < k ? x[i, p] : centre[i, p - k] - mean[i]) * w[p,
//   j]
//                * inverse[i] + v[j]
//
// or, of rows without a mean, with the squares of parts at hand,
//
//   inverse[i] = 1 / sqrt(sum(q) squares[i, q] / k + epsilon)
//   y[i, j]    = sum(p) x[i, p] * w[p, j] * inverse[i]
#include "Schedule/Product/Product.h"
#include "Schedule/Terms/Affine.h"

typedef struct finder {
  hd_arena_t *arena;
  hd_product_form_t *form;
  hd_normed_t *normed;
  const hd_task_value_t *x, *mean;
  const hd_task_value_t *centre, *squares; // Of parts; NULL: there are none.
} finder_t;

// What is converted to f32, once; else the term itself.
static const hd_term_t *without_cast(const hd_term_t *term) {
  const hd_term_t *narrow = hd_form_narrow(term, HD_F32);
  return narrow ? narrow : term;
}

static bool is_number(const hd_term_t *term, double number) {
  term = without_cast(term);
  return term->kind == HD_TERM_CONST &&
         (hd_type_is_float(hd_type(term->type.scalar))
              ? term->u.f
              : (double)term->u.i) == number;
}

// Whether a term is an element of a tensor, which is counted row-major by these
// indices.
static bool is_element_at(const finder_t *f, const hd_term_t *term,
                          const hd_task_value_t *value,
                          const hd_index_t *const *indices, unsigned count) {
  int64_t shape[HD_MAX_RANK], own[HD_MAX_RANK];
  const hd_term_t *places[HD_MAX_RANK];
  term = without_cast(term);
  if (term->kind != HD_TERM_LOAD || term->u.value != value)
    return false;
  for (unsigned i = 0; i < count; i++) {
    own[i] = hd_flat_range(indices[i]);
    places[i] = own[i] == 1 ? hd_flat_int(f->arena, HD_I64, 0)
                            : hd_flat_index(f->arena, indices[i]);
  }
  for (uint32_t i = 0; i < value->rank; i++)
    shape[i] = hd_flat_size(value, i);
  return hd_flat_count(value) == hd_flat_points(indices, count) &&
         hd_index_same_number(
             f->arena, &(hd_index_place_t){value->rank, shape, term->operands},
             &(hd_index_place_t){count, own, places});
}

// sum(p) term / count, for each row; the summand, and the indices of its
// elements.
static const hd_term_t *summand(const hd_definition_t *d, const hd_term_t *term,
                                int64_t count, const hd_index_t **indices) {
  const hd_term_t *sum =
      hd_flat_is_operator(term, HD_EXPR_DIV) ? term->operands[0] : term;
  if (sum == term || sum->kind != HD_TERM_REDUCE || sum->num_operands != 1 ||
      sum->u.reduction->monoid->builtin != HD_MONOID_SUM ||
      sum->u.reduction->num_indices != 1 || sum->type.scalar != HD_F32 ||
      !is_number(term->operands[1], (double)count) ||
      d->num_indices >= HD_MAX_RANK)
    return NULL;
  for (uint32_t i = 0; i < d->num_indices; i++)
    indices[i] = d->indices[i];
  indices[d->num_indices] = sum->u.reduction->indices[0];
  return sum->operands[0];
}

static bool is_definition(const hd_definition_t *d) {
  return d->kind == HD_DEFINE && d->num_targets == 1 &&
         d->targets[0]->type.scalar == HD_F32;
}

static bool is_mean(finder_t *f, const hd_definition_t *d) {
  const hd_index_t *indices[HD_MAX_RANK];
  int64_t count = f->centre ? f->normed->parts : f->form->sizes[HD_AXIS_K];
  const hd_term_t *x =
      is_definition(d) ? summand(d, d->term, count, indices) : NULL;
  f->mean = d->targets[0];
  return x && is_element_at(f, x, f->centre ? f->centre : f->x, indices,
                            d->num_indices + 1);
}

// x, or x - mean, at the indices of which the last one is the sum's.
static bool is_distance(const finder_t *f, const hd_term_t *term,
                        const hd_index_t *const *indices, unsigned count) {
  if (!f->mean)
    return is_element_at(f, term, f->x, indices, count);
  return hd_flat_is_operator(term, HD_EXPR_SUB) &&
         is_element_at(f, term->operands[0], f->centre ? f->centre : f->x,
                       indices, count) &&
         is_element_at(f, term->operands[1], f->mean, indices, count - 1);
}

static bool is_square(const finder_t *f, const hd_term_t *term,
                      const hd_index_t *const *indices, unsigned count) {
  return hd_flat_is_operator(term, HD_EXPR_MUL) &&
         is_distance(f, term->operands[0], indices, count) &&
         is_distance(f, term->operands[1], indices, count);
}

// The squares of a part's elements, with those of its mean's distance.
static bool is_part(finder_t *f, const hd_term_t *term,
                    const hd_index_t *const *indices, unsigned count) {
  const hd_normed_t *n = f->normed;
  if (!hd_flat_is_operator(term, HD_EXPR_ADD) ||
      term->operands[0]->kind != HD_TERM_LOAD)
    return false;
  f->squares = term->operands[0]->u.value;
  const hd_term_t *between = term->operands[1];
  return is_element_at(f, term->operands[0], f->squares, indices, count) &&
         hd_flat_is_operator(between, HD_EXPR_MUL) &&
         is_square(f, between->operands[0], indices, count) &&
         is_number(between->operands[1],
                   (double)(f->form->a.shape[2] / n->parts));
}

// An element of the squares of parts, of rows without a mean.
static bool is_squares(finder_t *f, const hd_term_t *term,
                       const hd_index_t *const *indices, unsigned count) {
  if (f->mean || term->kind != HD_TERM_LOAD ||
      f->form->sizes[HD_AXIS_BATCH] != 1)
    return false;
  f->squares = term->u.value;
  f->normed->parts = hd_flat_range(indices[count - 1]);
  return f->form->sizes[HD_AXIS_K] % f->normed->parts == 0 &&
         is_element_at(f, term, f->squares, indices, count);
}

static bool is_inverse(finder_t *f, const hd_definition_t *d) {
  const hd_index_t *indices[HD_MAX_RANK];
  if (!is_definition(d) || !hd_flat_is_operator(d->term, HD_EXPR_DIV) ||
      !is_number(d->term->operands[0], 1))
    return false;
  const hd_term_t *root = d->term->operands[1];
  const hd_term_t *sum =
      root->kind == HD_TERM_FUNCTION && root->u.function == HD_TASK_SQRT
          ? root->operands[0]
          : NULL;
  if (!sum || !hd_flat_is_operator(sum, HD_EXPR_ADD) ||
      without_cast(sum->operands[1])->kind != HD_TERM_CONST)
    return false;
  f->normed->epsilon.term = sum->operands[1];
  const hd_term_t *square =
      summand(d, sum->operands[0], f->form->a.shape[2], indices);
  unsigned count = d->num_indices + 1;
  return square &&
         (f->centre ? is_part(f, square, indices, count)
                    : (f->x && is_square(f, square, indices, count)) ||
                          is_squares(f, square, indices, count));
}

// --- An operand of x and the distances of its parts' means ---

typedef struct shorter {
  hd_arena_t *arena;
  const hd_index_t *from, *to;
} shorter_t;

static const hd_term_t *put_shorter(void *argument, const hd_term_t *term) {
  const shorter_t *s = argument;
  return term->kind == HD_TERM_INDEX && term->u.index == s->from
             ? hd_flat_index(s->arena, s->to)
             : term;
}

// T(centre[i, p - k] - mean[i])
static bool is_distance_behind(finder_t *f, const hd_term_t *term, int64_t k) {
  const hd_form_tensor_t *a = &f->form->a;
  if (term->kind == HD_TERM_CAST)
    term = term->operands[0];
  if (!hd_flat_is_operator(term, HD_EXPR_SUB) ||
      term->operands[0]->kind != HD_TERM_LOAD ||
      term->operands[1]->kind != HD_TERM_LOAD)
    return false;
  const hd_term_t *centre = term->operands[0];
  f->centre = centre->u.value;
  f->mean = term->operands[1]->u.value;
  int64_t shape[HD_MAX_RANK];
  const int64_t own[] = {a->shape[1], f->normed->parts};
  const hd_term_t *places[] = {
      hd_flat_index(f->arena, a->indices[1]),
      hd_flat_operate_int(f->arena, HD_EXPR_SUB,
                          hd_flat_index(f->arena, a->indices[2]), k)};
  for (uint32_t i = 0; i < f->centre->rank; i++)
    shape[i] = hd_flat_size(f->centre, i);
  return hd_flat_count(f->centre) == own[0] * own[1] &&
         hd_index_same_number(
             f->arena,
             &(hd_index_place_t){f->centre->rank, shape, centre->operands},
             &(hd_index_place_t){2, own, places}) &&
         is_element_at(f, term->operands[1], f->mean, a->indices, 2);
}

// Where a is p < k ? x[i, p] : T(centre[i, p - k] - mean[i]), it becomes x.
static bool find_parts(finder_t *f) {
  hd_form_tensor_t *a = &f->form->a;
  const hd_term_t *term = a->term;
  const hd_term_t *less =
      term->kind == HD_TERM_SELECT ? term->operands[0] : NULL;
  if (!less || !hd_flat_is_operator(less, HD_EXPR_LT) ||
      less->operands[0]->kind != HD_TERM_INDEX ||
      less->operands[0]->u.index != a->indices[2] ||
      less->operands[1]->kind != HD_TERM_CONST ||
      term->operands[1]->kind != HD_TERM_LOAD ||
      f->form->sizes[HD_AXIS_BATCH] != 1)
    return false;
  int64_t k = less->operands[1]->u.i;
  f->normed->parts = a->shape[2] - k;
  if (k <= 0 || f->normed->parts <= 0 || k % f->normed->parts != 0 ||
      !is_distance_behind(f, term->operands[2], k))
    return false;
  shorter_t shorter = {f->arena, a->indices[2],
                       hd_flat_index_make(f->arena, "p", k)};
  const hd_term_t *x =
      hd_flat_rewrite(f->arena, term->operands[1], put_shorter, &shorter);
  *a = (hd_form_tensor_t){.rank = 3,
                          .indices = {a->indices[0], a->indices[1], shorter.to},
                          .shape = {a->shape[0], a->shape[1], k},
                          .pitch = k};
  hd_form_tensor_load(a, &(hd_form_digits_t){.arena = f->arena}, x, false);
  f->x = a->same;
  return a->same;
}

// An element of a row of n numbers.
static bool is_column(const finder_t *f, const hd_term_t *term,
                      hd_form_tensor_t *tensor) {
  const hd_index_t *n[] = {f->form->c.indices[2]};
  if (term->kind != HD_TERM_LOAD || term->type.scalar != HD_F32 ||
      !is_element_at(f, term, term->u.value, n, 1))
    return false;
  tensor->term = term;
  tensor->same = term->u.value;
  return true;
}

// cell * inverse, (cell - mean * u) * inverse + v, or, of parts, cell * inverse
// + v.
static bool is_result(const finder_t *f, const hd_term_t *term,
                      const hd_task_value_t *inverse) {
  const hd_index_t *const *rows = f->form->c.indices;
  hd_normed_t *normed = f->normed;
  if (term->kind == HD_TERM_CAST) // Rounded by what the kernel stores.
    term = term->operands[0];
  if (term->type.scalar != HD_F32)
    return false;
  if (f->mean) {
    if (!hd_flat_is_operator(term, HD_EXPR_ADD) ||
        !is_column(f, term->operands[1], &normed->v))
      return false;
    term = term->operands[0];
  }
  if (!hd_flat_is_operator(term, HD_EXPR_MUL) ||
      !is_element_at(f, term->operands[1], inverse, rows, 2))
    return false;
  term = term->operands[0];
  if (f->mean && !f->centre) {
    if (!hd_flat_is_operator(term, HD_EXPR_SUB) ||
        !hd_flat_is_operator(term->operands[1], HD_EXPR_MUL) ||
        !is_element_at(f, term->operands[1]->operands[0], f->mean, rows, 2) ||
        !is_column(f, term->operands[1]->operands[1], &normed->u))
      return false;
    term = term->operands[0];
  }
  return term->kind == HD_TERM_BOUND &&
         term->u.variable == f->form->result.reduced.cell;
}

// The tensors beside a, b and c, as functions of indices of theirs.
static void set_tensors(finder_t *f, const hd_task_value_t *inverse) {
  hd_normed_t *normed = f->normed;
  const hd_product_form_t *form = f->form;
  const hd_term_t *none = hd_flat_float(f->arena, HD_F32, 0);
  hd_form_tensor_t *columns[] = {&normed->u, &normed->v};
  for (int i = 0; i < 2; i++) {
    columns[i]->rank = 1;
    columns[i]->indices[0] = form->c.indices[2];
    columns[i]->shape[0] = form->sizes[HD_AXIS_N];
    if (!columns[i]->term)
      columns[i]->term = none;
  }
  normed->epsilon.rank = 1;
  normed->epsilon.indices[0] = hd_flat_index_make(f->arena, "none", 1);
  normed->epsilon.shape[0] = 1;
  hd_form_tensor_t *parts[] = {&normed->centre, &normed->squares};
  for (int i = 0; i < 2 && normed->parts; i++) {
    parts[i]->rank = 2;
    parts[i]->indices[0] = form->c.indices[1];
    parts[i]->shape[0] = form->c.shape[1];
    parts[i]->indices[1] = hd_flat_index_make(f->arena, "q", normed->parts);
    parts[i]->shape[1] = normed->parts;
    parts[i]->term = none;
  }
  normed->centre.same = f->centre;
  normed->squares.same = f->squares;
  hd_form_tensor_t *rows[] = {&normed->mean, &normed->inverse};
  for (int i = 0; i < 2; i++) {
    rows[i]->rank = 2;
    for (int n = 0; n < 2; n++) {
      rows[i]->indices[n] = form->c.indices[n];
      rows[i]->shape[n] = form->c.shape[n];
    }
  }
  // Of parts, a kernel need not store what is nobody's result.
  normed->keeps = !normed->parts || inverse->kind != HD_VALUE_LOCAL ||
                  (f->mean && f->mean->kind != HD_VALUE_LOCAL);
  normed->mean.same = normed->keeps ? f->mean : NULL;
  normed->inverse.same = normed->keeps ? inverse : NULL;
  normed->centred = f->mean;
}

const char *hd_normed_definitions_find(hd_arena_t *arena,
                                       const hd_definition_t *const *data,
                                       size_t count, hd_product_form_t *form) {
  static const char no_norm[] = "it is no product of normalized rows";
  if (count != 2 && count != 3)
    return no_norm;
  const hd_definition_t *last = data[count - 1], *inverse = data[count - 2];
  if (last->kind != HD_DEFINE || last->num_targets != 1 ||
      hd_product_form_find(arena, last, form) || !form->result.value)
    return no_norm;
  hd_normed_t *normed = HD_ARENA_NEW(arena, hd_normed_t);
  finder_t f = {
      .arena = arena, .form = form, .normed = normed, .x = form->a.same};
  if (count == 3 && !f.x && (!find_parts(&f) || f.mean != data[0]->targets[0]))
    return no_norm;
  if ((count == 3 && !is_mean(&f, data[0])) || !is_inverse(&f, inverse) ||
      !is_result(&f, form->result.value, inverse->targets[0]))
    return no_norm;
  set_tensors(&f, inverse->targets[0]);
  form->normed = normed;
  hd_product_form_round(arena, form);
  return NULL;
}

const char *hd_normed_form_find(hd_arena_t *arena, const hd_task_t *flat,
                                hd_product_form_t *form) {
  return hd_normed_definitions_find(arena, flat->definitions.data,
                                    flat->definitions.size, form);
}
