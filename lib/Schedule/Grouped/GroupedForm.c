// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The normal form of a flat task that multiplies rows by chosen matrices.
#include "Schedule/Grouped/Grouped.h"
#include "Schedule/Product/Product.h"
#include "Schedule/Terms/Affine.h"

// --- What is chosen of a product with all ---

typedef struct choice {
  hd_arena_t *arena;
  const hd_definition_t *product;
  const hd_term_t *const *places; // Of the element of it that is taken.
} choice_t;

static const hd_term_t *put_place(void *argument, const hd_term_t *term) {
  const choice_t *c = argument;
  for (uint32_t i = 0;
       term->kind == HD_TERM_INDEX && i < c->product->num_indices; i++)
    if (c->product->indices[i] == term->u.index)
      return c->places[i];
  return hd_index_simplify_load(c->arena, term);
}

// number / stride % size; a size of 0: all of the quotient.
typedef struct digit {
  const hd_term_t *number;
  int64_t stride, size;
} digit_t;

static digit_t digit_of(const hd_term_t *place) {
  bool divides = hd_flat_is_operator(place, HD_EXPR_DIV);
  if ((!divides && !hd_flat_is_operator(place, HD_EXPR_MOD)) ||
      place->operands[1]->kind != HD_TERM_CONST || place->operands[1]->u.i < 1)
    return (digit_t){place, 1, 0};
  int64_t by = place->operands[1]->u.i;
  digit_t of = digit_of(place->operands[0]);
  if (of.size % by != 0)
    return (digit_t){place, 1, 0};
  return divides ? (digit_t){of.number, of.stride * by, of.size / by}
                 : (digit_t){of.number, of.stride, by};
}

// The number that the places are the digits of; NULL: they are not.
static const hd_term_t *number_of_digits(const hd_term_t *load,
                                         const int64_t *shape) {
  const hd_term_t *number = NULL;
  int64_t stride = 1;
  for (unsigned i = load->num_operands; i-- > 0; stride *= shape[i]) {
    digit_t digit = digit_of(load->operands[i]);
    if (hd_flat_is_int(load->operands[i], 0) && shape[i] == 1)
      continue;
    if (digit.stride != stride || (digit.size && digit.size != shape[i]) ||
        (number && !hd_term_equal(number, digit.number)))
      return NULL;
    number = digit.number;
  }
  return number;
}

// Places that are the digits of a sum, rows * (z * n) + at * n + column: each
// is the terms that are multiples of its stride. at is one of the matrices, or
// an error of the data, so nothing is carried, which no range tells.
static bool part_place(hd_arena_t *arena, const hd_term_t *load,
                       const hd_term_t *places[HD_MAX_RANK]) {
  int64_t shape[HD_MAX_RANK], stride = 1;
  uint32_t rank = load->u.value->rank;
  hd_linear_t sum;
  for (uint32_t i = 0; i < rank; i++) {
    shape[i] = hd_flat_size(load->u.value, i);
    stride *= shape[i];
  }
  const hd_term_t *number = number_of_digits(load, shape);
  if (!number || !hd_affine_of(arena, number, &sum) || sum.constant != 0)
    return false;
  for (uint32_t i = 0; i < rank; i++) {
    hd_linear_t digit = sum;
    digit.size = 0;
    stride /= shape[i];
    for (unsigned k = 0; k < sum.size; k++)
      if (sum.terms[k].factor % stride == 0) {
        hd_linear_term_t term = sum.terms[k];
        term.factor /= stride;
        digit.terms[digit.size++] = term;
        sum.terms[k--] = sum.terms[--sum.size];
      }
    places[i] = hd_affine_term(arena, &digit);
  }
  return true;
}

// y[i, j] = t[i / s, at[i] * n + j] of t[i, x] = sum(p) a[i, p] * b[x, p] is
// sum(p) a[i / s, p] * b[at[i] * n + j, p]. NULL: a task is nothing of that
// kind.
static const hd_definition_t *definition_of(hd_arena_t *arena,
                                            const hd_task_t *flat) {
  size_t count = flat->definitions.size;
  const hd_definition_t *last =
      count == 1 || count == 2 ? flat->definitions.data[count - 1] : NULL;
  if (!last || last->kind != HD_DEFINE || count == 1)
    return last && last->kind == HD_DEFINE ? last : NULL;
  const hd_definition_t *product = flat->definitions.data[0];
  if (!hd_flat_is_local(product) || last->term->kind != HD_TERM_LOAD ||
      last->term->u.value != product->targets[0])
    return NULL;
  const hd_term_t *places[HD_MAX_RANK];
  choice_t choice = {arena, product, last->term->operands};
  if (part_place(arena, last->term, places))
    choice.places = places;
  hd_definition_t *made = HD_ARENA_COPY(arena, hd_definition_t, last);
  made->term = hd_flat_rewrite(arena, product->term, put_place, &choice);
  return made;
}

// --- Rows ---

// A definition whose rows, the indices that say which matrix, are one index:
// y[i, s, j] of at[i, s] is y[r, j] of some tensor at[r].
typedef struct rows {
  hd_arena_t *arena;
  const hd_definition_t *d;
  const hd_term_t *load; // Of the matrix' number.
  unsigned count;        // The first indices of the definition are rows,
  const hd_term_t *at;   // and the joined definition has this in its place.
  const hd_term_t *places[HD_MAX_RANK]; // What the indices are, by a row.
} rows_t;

static bool take_load(void *argument, const hd_term_t *term) {
  rows_t *r = argument;
  if (!r->load && term->kind == HD_TERM_LOAD)
    r->load = term;
  return !r->load;
}

// The first load that stands in the place of another.
static bool note_load(void *argument, const hd_term_t *term) {
  rows_t *r = argument;
  for (uint32_t i = 0; hd_flat_is_load(term) && i < term->num_operands; i++)
    hd_flat_walk(term->operands[i], take_load, r);
  return !r->load;
}

static const hd_term_t *put_at(void *argument, const hd_term_t *term) {
  const rows_t *r = argument;
  return hd_term_equal(term, r->load) ? r->at : term;
}

static const hd_term_t *put_rows(void *argument, const hd_term_t *term) {
  const rows_t *r = argument;
  for (unsigned i = 0; term->kind == HD_TERM_INDEX && i < r->count; i++)
    if (term->u.index == r->d->indices[i])
      return r->places[i];
  return hd_index_simplify_load(r->arena, term);
}

static void set_places(rows_t *r, const hd_index_t *row) {
  int64_t shape[HD_MAX_RANK];
  for (unsigned i = 0; i < r->count; i++)
    shape[i] = hd_flat_range(r->d->indices[i]);
  hd_index_places(r->arena, hd_flat_index(r->arena, row), shape, r->count,
                  r->places);
}

// NULL: nothing says which matrix, or it is not by the first indices alone.
static const hd_definition_t *join_rows(rows_t *r) {
  const hd_definition_t *d = r->d;
  hd_flat_walk(d->term, note_load, r);
  for (uint32_t i = 0; r->load && i < d->num_indices; i++)
    if (hd_flat_uses(r->load, d->indices[i]))
      r->count = i + 1;
  if (!r->count || r->count == d->num_indices)
    return NULL;
  int64_t count = hd_flat_points(d->indices, r->count);
  hd_index_t *row = hd_flat_index_make(r->arena, "row", count);
  const hd_term_t *place = hd_flat_index(r->arena, row);
  r->at = hd_flat_load(r->arena,
                       hd_flat_value_make(r->arena, "at", HD_VALUE_INPUT,
                                          r->load->type.scalar, &count, 1),
                       &place);
  set_places(r, row);
  unsigned rest = d->num_indices - r->count;
  int64_t shape[HD_MAX_RANK] = {count};
  const hd_index_t *indices[HD_MAX_RANK] = {row};
  for (unsigned i = 0; i < rest; i++) {
    indices[1 + i] = d->indices[r->count + i];
    shape[1 + i] = hd_flat_range(indices[1 + i]);
  }
  const hd_term_t *term = hd_flat_rewrite(r->arena, d->term, put_at, r);
  return hd_flat_define(r->arena,
                        hd_flat_value_make(r->arena, "rows", HD_VALUE_OUTPUT,
                                           d->targets[0]->type.scalar, shape,
                                           1 + rest),
                        indices, hd_flat_rewrite(r->arena, term, put_rows, r));
}

static const hd_term_t *put_load(void *argument, const hd_term_t *term) {
  const rows_t *r = argument;
  bool is_at = term->kind == HD_TERM_LOAD && term->u.value == r->at->u.value;
  return is_at ? r->load : term;
}

// The number of the matrix, and where the result goes, by the form's row.
static void part_rows(rows_t *r, hd_grouped_form_t *form) {
  hd_form_result_t *result = &form->result;
  unsigned rest = r->d->num_indices - r->count;
  form->at = hd_flat_rewrite(r->arena, form->at, put_load, r);
  set_places(r, form->row);
  form->at = hd_flat_rewrite(r->arena, form->at, put_rows, r);
  for (unsigned i = rest; i-- > 0;)
    result->places[r->count + i] = result->places[1 + i];
  for (unsigned i = 0; i < r->count; i++)
    result->places[i] = r->places[i];
  result->d = r->d;
}

// --- Operands ---

// The factor of a term in a sum, which is taken out; 0: it is not there.
static int64_t take_index(hd_linear_t *sum, const hd_index_t *index) {
  for (unsigned i = 0; i < sum->size; i++) {
    if (sum->terms[i].term->kind != HD_TERM_INDEX ||
        sum->terms[i].term->u.index != index)
      continue;
    int64_t factor = sum->terms[i].factor;
    sum->terms[i] = sum->terms[--sum->size];
    return factor;
  }
  return 0;
}

static bool number_of(hd_arena_t *arena, const hd_term_t *load,
                      hd_linear_t *sum) {
  return hd_form_number(arena, load, sum) && sum->constant == 0;
}

// How many parts of so many elements an operand has, read along p one after the
// other: what else its place depends on is left in sum. 0: it is not so.
static int64_t parts_of(hd_arena_t *arena, const hd_form_tensor_t *operand,
                        int64_t size, hd_linear_t *sum) {
  const hd_term_t *load = operand->term;
  int64_t count = load->kind == HD_TERM_LOAD ? hd_flat_count(load->u.value) : 0;
  return count % size == 0 && count > 0 && number_of(arena, load, sum) &&
                 take_index(sum, operand->indices[2]) == 1
             ? count / size
             : 0;
}

// a[i / sharing, p], row-major.
static bool set_rows(hd_arena_t *arena, hd_grouped_form_t *form,
                     const hd_product_form_t *product) {
  hd_linear_t sum;
  int64_t m = form->sizes[HD_GROUPED_M], k = form->sizes[HD_GROUPED_K];
  int64_t rows = parts_of(arena, &product->a, k, &sum);
  if (rows == 0 || m % rows != 0)
    return false;
  form->sharing = m / rows;
  if (rows == 1)
    return sum.size == 0;
  if (form->sharing == 1)
    return take_index(&sum, form->row) == k && sum.size == 0;
  const hd_term_t *group = sum.size == 1 ? sum.terms[0].term : NULL;
  return group && sum.terms[0].factor == k &&
         hd_flat_is_operator(group, HD_EXPR_DIV) &&
         group->operands[0]->kind == HD_TERM_INDEX &&
         group->operands[0]->u.index == form->row &&
         hd_flat_is_int(group->operands[1], form->sharing);
}

// b[at[i], j, p], row-major; what is left of the place is at[i].
static bool set_matrix(hd_arena_t *arena, hd_grouped_form_t *form,
                       const hd_product_form_t *product) {
  hd_linear_t sum;
  int64_t n = form->sizes[HD_GROUPED_N], k = form->sizes[HD_GROUPED_K];
  int64_t matrices = parts_of(arena, &product->b, n * k, &sum);
  if (matrices == 0 || matrices > INT32_MAX / 2 ||
      take_index(&sum, form->column) != k || sum.size != 1 ||
      sum.terms[0].factor != n * k)
    return false;
  form->sizes[HD_GROUPED_MATRIX] = matrices;
  form->at = sum.terms[0].term;
  return hd_flat_has(form->at, HD_TERM_LOAD) &&
         !hd_flat_uses(form->at, form->column) &&
         !hd_flat_uses(form->at, product->b.indices[2]);
}

// A tensor of the task as the kernel has it.
static void set_tensor(hd_form_tensor_t *tensor, const hd_form_tensor_t *like,
                       unsigned rank, const int64_t *shape) {
  int64_t bits = (int64_t)hd_scalar_bits(like->term->type.scalar);
  *tensor = *like;
  tensor->rank = rank;
  for (unsigned i = 0; i < rank; i++)
    tensor->shape[i] = shape[i];
  tensor->pitch = shape[rank - 1];
  tensor->same = like->term->u.value;
  tensor->no_map = tensor->pitch * bits % 128 == 0
                       ? NULL
                       : "has rows that are no multiples of 16 bytes";
}

static void set_result(hd_arena_t *arena, hd_grouped_form_t *form) {
  const hd_task_value_t *target = form->result.d->targets[0];
  form->c = (hd_form_tensor_t){
      .rank = 2,
      .indices = {form->row, form->column},
      .shape = {form->sizes[HD_GROUPED_M], form->sizes[HD_GROUPED_N]},
      .pitch = form->sizes[HD_GROUPED_N]};
  if (!form->result.value &&
      hd_form_tensor_is(arena, &form->c, target, form->result.places))
    form->c.same = target;
}

// NULL, or why a product with a row for each matrix is none of this form.
static const char *product_obstacle(const hd_product_form_t *product) {
  if (product->sizes[HD_AXIS_M] != 1)
    return "a matrix of it multiplies several rows at once";
  if (!product->rows)
    return "its matrices do not have what is summed over side by side";
  return product->second != HD_VOID || hd_scalar_bits(product->type) > 16
             ? "its operands are not of one type of 16 bits or fewer"
             : NULL;
}

const char *hd_grouped_form_find(hd_arena_t *arena, const hd_task_t *flat,
                                 hd_grouped_form_t *form) {
  rows_t rows = {.arena = arena, .d = definition_of(arena, flat)};
  const hd_definition_t *joined = rows.d ? join_rows(&rows) : NULL;
  hd_product_form_t product;
  if (!joined)
    return "no index chooses a matrix for each of its rows";
  const char *why = hd_product_form_find_few(arena, joined, &product);
  why = why ? why : product_obstacle(&product);
  if (why)
    return why;
  *form = (hd_grouped_form_t){
      .result = product.result,
      .sizes = {[HD_GROUPED_M] = product.sizes[HD_AXIS_BATCH],
                [HD_GROUPED_N] = product.sizes[HD_AXIS_N],
                [HD_GROUPED_K] = product.sizes[HD_AXIS_K]},
      .type = product.type,
      .row = product.a.indices[0],
      .column = product.b.indices[1]};
  if (!set_rows(arena, form, &product))
    return "its rows are not those of one tensor, one after the other";
  if (!set_matrix(arena, form, &product))
    return "its matrices are not those of one tensor, one after the other";
  part_rows(&rows, form);
  const int64_t *sizes = form->sizes;
  int64_t lines[] = {sizes[HD_GROUPED_M] / form->sharing, sizes[HD_GROUPED_K]};
  int64_t matrices[] = {sizes[HD_GROUPED_MATRIX], sizes[HD_GROUPED_N],
                        sizes[HD_GROUPED_K]};
  set_tensor(&form->a, &product.a, 2, lines);
  set_tensor(&form->b, &product.b, 3, matrices);
  set_result(arena, form);
  return NULL;
}

void hd_grouped_form_mark(hd_grouped_form_t *form, const hd_task_t *flat,
                          uint64_t computed) {
  hd_form_tensor_t *operands[] = {&form->a, &form->b};
  for (size_t i = 0; i < flat->inputs.size && i < 64; i++)
    for (int k = 0; computed >> i & 1 && k < 2; k++)
      if (operands[k]->same == flat->inputs.data[i])
        operands[k]->no_map = "is computed where it is loaded";
}
