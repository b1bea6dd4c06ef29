// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The matrix whose columns stand in pairs, of constants: one tensor,
//
//   u[p, j] = j % 2 == 0 ? w[p, j / 2] : v[p, j / 2]
//
// or each tensor that the matrices are computed from where they are read, such
// as narrow integers and their scales: w[p, j] = f(q[j, p], s[j]) and v of r
// and t become f(q'[j, p], s'[j]), where
//
//   q'[j, p] = j % 2 == 0 ? q[j / 2, p] : r[j / 2, p]
//   s'[j] = j % 2 == 0 ? s[j / 2] : t[j / 2]
//
// Of one product with 2 * n columns, column j is j / 2 + j % 2 * n of its own.
#include "Fusion/Compose/ComposePairs.h"
#include "Schedule/Terms/Affine.h"

enum { MOST_LOADS = 16 }; // Of a matrix' term.

// Adds an input of the task, and what computes it: the term, for each of these
// indices. NULL where it reads what is no constant.
static const hd_task_value_t *pack(hd_pairer_t *p,
                                   const hd_index_t *const *indices,
                                   unsigned rank, const hd_term_t *term) {
  hd_arena_t *arena = p->arena;
  int64_t shape[HD_MAX_RANK];
  for (unsigned i = 0; i < rank; i++)
    shape[i] = hd_flat_range(indices[i]);
  hd_merged_t packing = {.flat = HD_ARENA_NEW(arena, hd_task_t)};
  const hd_task_t *from = p->from->flat;
  packing.flat->name = "pairs";
  for (size_t i = 0; i < from->inputs.size; i++) {
    const hd_value_t *value = p->from->inputs.data[i];
    if (!hd_flat_reads(term, from->inputs.data[i]))
      continue;
    if (!hd_ptr_map_get(p->known, value))
      return NULL;
    hd_vec_push(arena, &packing.flat->inputs, from->inputs.data[i]);
    hd_vec_push(arena, &packing.inputs, value);
  }
  const hd_task_value_t *target = hd_flat_value_make(
      arena, "y0", HD_VALUE_OUTPUT, term->type.scalar, shape, rank);
  hd_vec_push(arena, &packing.flat->outputs, target);
  hd_vec_push(
      arena, &packing.flat->definitions,
      (const hd_definition_t *)hd_pair_define(p, target, indices, term));
  hd_vec_push(arena, &p->paired->packings, packing);
  const hd_task_value_t *input = hd_flat_value_make(
      arena, hd_arena_printf(arena, "w%zu", p->matrices.size), HD_VALUE_INPUT,
      term->type.scalar, shape, rank);
  hd_vec_push(arena, &p->matrices, input);
  return input;
}

// What the first product or the second one has at j, a column of those in
// pairs, by `at`, of the term for its own columns.
typedef const hd_term_t *(*at_column_t)(const void *argument, unsigned which,
                                        const hd_term_t *column);

static const hd_term_t *of_pairs(const hd_pairer_t *p, const hd_term_t *j,
                                 at_column_t at, const void *argument) {
  const hd_term_t *pair = hd_flat_operate_int(p->arena, HD_EXPR_DIV, j, 2);
  const hd_term_t *which = hd_flat_operate_int(p->arena, HD_EXPR_MOD, j, 2);
  if (p->count == 1)
    return at(argument, 0,
              hd_flat_operate(
                  p->arena, HD_EXPR_ADD, pair,
                  hd_flat_operate_int(p->arena, HD_EXPR_MUL, which, p->n)));
  return hd_flat_select(p->arena,
                        hd_flat_operate_int(p->arena, HD_EXPR_EQ, which, 0),
                        at(argument, 0, pair), at(argument, 1, pair));
}

// --- One tensor ---

// The index along which a product's columns run, and that of its sum.
static const hd_index_t *column_of(const hd_product_form_t *form) {
  return form->b.indices[form->rows ? 1 : 2];
}

static const hd_index_t *summed_of(const hd_product_form_t *form) {
  return form->b.indices[form->rows ? 2 : 1];
}

typedef struct whole {
  const hd_pairer_t *p;
  const hd_index_t *const *z_p_j;
} whole_t;

static const hd_term_t *matrix_at(const void *argument, unsigned which,
                                  const hd_term_t *column) {
  const whole_t *w = argument;
  const hd_product_form_t *form = &w->p->forms[which];
  hd_pair_places_t places = {
      w->p->arena,
      {form->b.indices[0], summed_of(form), column_of(form)},
      {hd_flat_index(w->p->arena, w->z_p_j[0]),
       hd_flat_index(w->p->arena, w->z_p_j[1]), column}};
  return hd_flat_rewrite(w->p->arena, form->b.term, hd_pair_put_place, &places);
}

// The batch, where there is one, then the sum and the columns, or the other
// way round.
static const hd_term_t *make_whole(hd_pairer_t *p,
                                   const hd_index_t *const z_p_j[3]) {
  bool rows = p->packing == HD_PACK_ROWS;
  const hd_index_t *axes[3];
  const hd_term_t *at[3];
  unsigned rank = 0;
  if (p->forms[0].sizes[HD_AXIS_BATCH] > 1)
    axes[rank++] = z_p_j[0];
  axes[rank++] = z_p_j[rows ? 2 : 1];
  axes[rank++] = z_p_j[rows ? 1 : 2];
  for (unsigned i = 0; i < rank; i++)
    at[i] = hd_flat_index(p->arena, axes[i]);
  whole_t whole = {p, z_p_j};
  const hd_term_t *j = hd_flat_index(p->arena, z_p_j[2]);
  const hd_task_value_t *matrix =
      pack(p, axes, rank, of_pairs(p, j, matrix_at, &whole));
  return matrix ? hd_flat_load(p->arena, matrix, at) : NULL;
}

// --- Each tensor ---

typedef struct loads {
  unsigned count;
  const hd_term_t *data[MOST_LOADS];
} loads_t;

static bool collect(void *argument, const hd_term_t *term) {
  loads_t *loads = argument;
  if (hd_flat_is_load(term) && loads->count++ < MOST_LOADS)
    loads->data[loads->count - 1] = term;
  return true;
}

// A tensor that a matrix is computed from, of either product, with columns
// along an axis; what takes its place.
typedef struct part {
  const hd_pairer_t *p;
  const hd_task_value_t *from[2];
  unsigned axis;
  const hd_task_value_t *to;
  const hd_index_t *indices[HD_MAX_RANK]; // Of that.
} part_t;

typedef struct parts {
  hd_arena_t *arena;
  const hd_index_t *column;
  unsigned count;
  part_t data[MOST_LOADS];
} parts_t;

static const part_t *find_part(const parts_t *parts,
                               const hd_task_value_t *value) {
  for (unsigned i = 0; i < parts->count; i++)
    if (parts->data[i].from[0] == value)
      return &parts->data[i];
  return NULL;
}

static const hd_term_t *part_at(const void *argument, unsigned which,
                                const hd_term_t *column) {
  const part_t *part = argument;
  const hd_term_t *at[HD_MAX_RANK];
  for (uint32_t i = 0; i < part->from[0]->rank; i++)
    at[i] = i == part->axis ? hd_index_simplify(part->p->arena, column)
                            : hd_flat_index(part->p->arena, part->indices[i]);
  return hd_flat_load(part->p->arena, part->from[which], at);
}

// The axis that a load's columns run along; rank: it does not depend on them,
// -1: it does otherwise.
static int axis_of(const hd_term_t *load, const hd_index_t *column) {
  int rank = (int)load->u.value->rank, axis = rank;
  for (int i = 0; i < rank; i++) {
    const hd_term_t *at = load->operands[i];
    bool is_column = at->kind == HD_TERM_INDEX && at->u.index == column;
    if (hd_flat_uses(at, column) && (!is_column || axis < rank))
      return -1;
    axis = is_column ? i : axis;
  }
  return load->kind == HD_TERM_LOAD ? axis : -1;
}

static bool same_shape(const hd_task_value_t *a, const hd_task_value_t *b) {
  bool same = a->rank == b->rank && a->type.scalar == b->type.scalar;
  for (uint32_t i = 0; same && i < a->rank; i++)
    same = hd_flat_size(a, i) == hd_flat_size(b, i);
  return same;
}

// Adds the tensor of a load; second: the same load of the other product, or of
// this one.
static bool add_part(hd_pairer_t *p, parts_t *parts, const hd_term_t *load,
                     const hd_term_t *second) {
  const hd_task_value_t *value = load->u.value;
  const part_t *known = find_part(parts, value);
  int axis = axis_of(load, parts->column);
  if (axis == (int)value->rank)
    return !known && value == second->u.value;
  if (axis < 0 || (known && known->axis != (unsigned)axis) ||
      (known && known->from[1] != second->u.value) ||
      !same_shape(value, second->u.value) ||
      hd_flat_size(value, (unsigned)axis) != hd_flat_range(parts->column))
    return false;
  if (known)
    return true;
  part_t *part = &parts->data[parts->count++];
  *part = (part_t){
      .p = p, .from = {value, second->u.value}, .axis = (unsigned)axis};
  for (uint32_t i = 0; i < value->rank; i++)
    part->indices[i] =
        hd_flat_index_make(p->arena, hd_arena_printf(p->arena, "at%u", i),
                           i == part->axis ? 2 * p->n : hd_flat_size(value, i));
  const hd_term_t *j = hd_flat_index(p->arena, part->indices[part->axis]);
  part->to = pack(p, part->indices, value->rank, of_pairs(p, j, part_at, part));
  return part->to;
}

// For hd_flat_rewrite().
static const hd_term_t *put_part(void *argument, const hd_term_t *term) {
  const parts_t *parts = argument;
  const part_t *part =
      term->kind == HD_TERM_LOAD ? find_part(parts, term->u.value) : NULL;
  return part ? hd_flat_load(parts->arena, part->to, term->operands) : term;
}

static const hd_term_t *make_parts(hd_pairer_t *p,
                                   const hd_index_t *const z_p_j[3]) {
  const hd_product_form_t *form = &p->forms[0];
  parts_t parts = {.arena = p->arena, .column = column_of(form)};
  loads_t first = {0}, second = {0};
  hd_flat_walk(form->b.term, collect, &first);
  hd_flat_walk(p->forms[p->count - 1].b.term, collect, &second);
  if (first.count != second.count || first.count > MOST_LOADS)
    return NULL;
  for (unsigned i = 0; i < first.count; i++)
    if (!add_part(p, &parts, first.data[i], second.data[i]))
      return NULL;
  whole_t whole = {p, z_p_j};
  const hd_term_t *matrix =
      matrix_at(&whole, 0, hd_flat_index(p->arena, z_p_j[2]));
  return hd_flat_rewrite(p->arena, matrix, put_part, &parts);
}

const hd_term_t *hd_pair_matrix(hd_pairer_t *p,
                                const hd_index_t *const z_p_j[3],
                                const char **why) {
  const hd_term_t *matrix =
      p->packing == HD_PACK_PARTS ? make_parts(p, z_p_j) : make_whole(p, z_p_j);
  *why = "the second operand, whose columns would be put side by side, is no "
         "constant";
  return matrix;
}
