// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which definitions are one kernel over rows.
//
// The longest reduction among them decides: the indices of its definition are
// the axes of rows, its own ones those of elements. Definitions fit together
// where
//   each defines every element of its targets by a term (no scatter, no scan),
//   tensors of elements of a byte or more, and is no sum of products for tiles;
//   what one defines, others read at plain indices alone, which then are the
//   same axis; so no axis is one of rows and of elements, or twice in a domain;
//   the indices of each domain are axes of rows and elements: by what it reads
//   of the others, by where inputs are read (x[i, q, j] in the reduction makes
//   p in x[i, p, j] the axis q), or by their ranges;
//   what is stored, or has a reduction, is over all axes of rows, and over all
//   of the elements' or none of them;
//   the reductions inside definitions of a number for each row go over the
//   axes of elements; others, there and elsewhere, are SMALL.
// Any pairing of the axes of a target with those of rows and elements is right:
// that of inputs and ranges decides who reads what alone.
#include "Schedule/Rows/RowsFind.h"

enum { SMALL = 64 };

// --- Steps ---

static hd_row_step_t *add_step(hd_rows_finder_t *f, hd_row_kind_t kind,
                               const hd_term_t *term,
                               const hd_task_value_t *const *values,
                               uint32_t count) {
  hd_row_step_t *step = HD_ARENA_NEW(f->arena, hd_row_step_t);
  *step = (hd_row_step_t){
      .kind = kind, .term = term, .num_values = count, .values = values};
  hd_vec_push(f->arena, &f->rows->steps, step);
  return step;
}

// A step of one value, which stands for the term: a load of it.
static const hd_term_t *add_inner(hd_rows_finder_t *f, hd_row_kind_t kind,
                                  const char *name, const hd_term_t *term) {
  const hd_task_value_t **values =
      HD_ARENA_ARRAY(f->arena, const hd_task_value_t *, 1);
  values[0] = hd_flat_value_make(f->arena, name, HD_VALUE_LOCAL,
                                 term->type.scalar, NULL, 0);
  add_step(f, kind, term, values, 1);
  return hd_flat_load(f->arena, values[0], NULL);
}

static const hd_term_t *put_axis(void *argument, const hd_term_t *term) {
  hd_rows_finder_t *f = argument;
  if (term->kind != HD_TERM_INDEX)
    return term;
  hd_row_axis_t *axis = hd_rows_axis(f, term->u.index);
  return axis->index == term->u.index ? term
                                      : hd_flat_index(f->arena, axis->index);
}

// Whether a load is of an element of the row, certainly inside its tensor.
static bool is_of_element(hd_rows_finder_t *f, const hd_term_t *term) {
  bool found = false;
  if (term->kind != HD_TERM_LOAD || hd_ptr_map_get(&f->makers, term->u.value) ||
      term->num_operands != term->u.value->rank)
    return false;
  for (uint32_t i = 0; i < term->num_operands; i++) {
    const hd_term_t *at = term->operands[i];
    int64_t size = hd_flat_size(term->u.value, i);
    if (at->kind == HD_TERM_CONST && at->u.i >= 0 && at->u.i < size)
      continue;
    if (at->kind != HD_TERM_INDEX || hd_flat_range(at->u.index) > size)
      return false;
    hd_row_role_t role = hd_rows_axis(f, at->u.index)->role;
    if (role == HD_ROLE_UNKNOWN)
      return false;
    found |= role == HD_ROLE_ELEMENT;
  }
  return found;
}

// Loads of elements become steps of their own, which several phases may share.
static const hd_term_t *put_loads(hd_rows_finder_t *f, const hd_term_t *term,
                                  bool lazy) {
  if (is_of_element(f, term)) {
    for (size_t i = 0; i < f->rows->steps.size; i++)
      if (hd_term_equal(f->rows->steps.data[i]->term, term))
        return hd_flat_load(f->arena, f->rows->steps.data[i]->values[0], NULL);
    return lazy ? term : add_inner(f, HD_ROW_VECTOR, term->u.value->name, term);
  }
  const hd_term_t **operands =
      HD_ARENA_ARRAY(f->arena, const hd_term_t *, term->num_operands);
  bool changed = false;
  for (unsigned i = 0; i < term->num_operands; i++) {
    operands[i] = put_loads(f, term->operands[i],
                            lazy || hd_flat_is_lazy(term, i) ||
                                hd_flat_is_reduction(term));
    changed |= operands[i] != term->operands[i];
  }
  return changed ? hd_flat_rebuild(f->arena, term, operands) : term;
}

static const hd_term_t *canonical(hd_rows_finder_t *f, const hd_term_t *term,
                                  bool is_root) {
  term = hd_flat_rewrite(f->arena, term, put_axis, f);
  if (!is_root)
    return put_loads(f, term, false);
  const hd_term_t *operands[HD_MAX_COMPONENTS];
  for (unsigned i = 0; i < term->num_operands; i++)
    operands[i] = put_loads(f, term->operands[i], false);
  return hd_flat_rebuild(f->arena, term, operands);
}

static bool is_read(const hd_term_t *term, const hd_task_value_t *value) {
  if (hd_rows_is_load(term) && term->u.value == value)
    return true;
  for (unsigned i = 0; i < term->num_operands; i++)
    if (is_read(term->operands[i], value))
      return true;
  return term->kind == HD_TERM_SCAN && is_read(term->u.reduction->at, value);
}

static bool is_in_memory(const hd_rows_finder_t *f,
                         const hd_task_value_t *value) {
  if (value->kind == HD_VALUE_OUTPUT)
    return true;
  for (size_t i = f->end; i < f->flat->definitions.size; i++) {
    const hd_definition_t *d = f->flat->definitions.data[i];
    bool found = d->onto == value || is_read(d->term, value);
    for (uint32_t k = 0; d->at && k < d->targets[0]->rank; k++)
      found |= is_read(d->at[k], value);
    if (found)
      return true;
  }
  return false;
}

static uint32_t stored_targets(const hd_rows_finder_t *f,
                               const hd_definition_t *d) {
  uint32_t stored = 0;
  for (uint32_t i = 0; i < d->num_targets; i++)
    if (is_in_memory(f, d->targets[i]))
      stored |= UINT32_C(1) << i;
  return stored;
}

// The definition at the axes' indices.
static const hd_definition_t *place_definition(hd_rows_finder_t *f,
                                               const hd_definition_t *d) {
  hd_definition_t *copy = HD_ARENA_NEW(f->arena, hd_definition_t);
  const hd_index_t **indices =
      HD_ARENA_ARRAY(f->arena, const hd_index_t *, d->num_indices);
  for (uint32_t i = 0; i < d->num_indices; i++)
    indices[i] = hd_flat_range(d->indices[i]) > 1
                     ? hd_rows_axis(f, d->indices[i])->index
                     : d->indices[i];
  *copy = *d;
  copy->indices = indices;
  return copy;
}

// --- Definitions ---

// Whether a reduction, of the definition of a number for each row, goes over
// the elements. Else it stays where it is, if it is small.
static bool goes_over_elements(hd_rows_finder_t *f, const hd_term_t *term) {
  const hd_reduction_t *r = term->u.reduction;
  hd_row_placing_t p = {f, r->indices, r->num_indices, NULL};
  bool all =
      hd_rows_place(&p, term, false) &&
      hd_rows_count_role(&p, HD_ROLE_ELEMENT) == f->rows->element.count &&
      hd_rows_count_role(&p, HD_ROLE_ROW) == 0;
  unsigned next = 0;
  if (all)
    hd_rows_keep_places(&p);
  for (uint32_t i = 0; all && i < r->num_indices; i++)
    if (p.axes[i]) // In another order only where that is nothing.
      f->fits &= r->monoid->builtin != HD_MONOID_COUNT ||
                 p.axes[i] == f->element[next++];
  return all;
}

static bool is_small(hd_rows_finder_t *f, const hd_term_t *term) {
  const hd_reduction_t *r = term->u.reduction;
  for (uint32_t i = 0; i < r->num_indices; i++)
    if (hd_flat_range(r->indices[i]) > 1 &&
        hd_rows_axis(f, r->indices[i])->role != HD_ROLE_UNKNOWN)
      return false;
  return hd_rows_reduced_points(term) <= SMALL;
}

typedef struct inner {
  hd_rows_finder_t *f;
  HD_VEC(const hd_term_t *) over_elements;
  bool is_vector;
} inner_t;

static void look_at_reductions(inner_t *n, const hd_term_t *term, bool lazy) {
  hd_rows_finder_t *f = n->f;
  bool was_vector = n->is_vector;
  if (term->kind == HD_TERM_REDUCE) {
    if (!n->is_vector && goes_over_elements(f, term)) {
      f->fits &= !lazy || !hd_flat_is_risky(term);
      hd_vec_push(f->arena, &n->over_elements, term);
      n->is_vector = true;
    } else {
      f->fits &= is_small(f, term);
    }
  }
  for (unsigned i = 0; i < term->num_operands; i++)
    look_at_reductions(n, term->operands[i], lazy || hd_flat_is_lazy(term, i));
  n->is_vector = was_vector;
}

static const hd_term_t *reduce_elements(hd_rows_finder_t *f,
                                        const hd_definition_t *d,
                                        const hd_term_t *reduction) {
  f->rows->ordered |=
      reduction->u.reduction->monoid->builtin == HD_MONOID_COUNT;
  const char *name = hd_arena_printf(f->arena, "%s_all", d->targets[0]->name);
  return add_inner(f, HD_ROW_REDUCE, name, canonical(f, reduction, true));
}

static void add_definition(hd_rows_finder_t *f, const hd_definition_t *d) {
  hd_row_placing_t p = {f, d->indices, d->num_indices, NULL};
  if (!hd_rows_place(&p, d->term, true)) {
    f->fits = false;
    return;
  }
  hd_rows_keep_places(&p);
  inner_t inner = {.f = f,
                   .is_vector = hd_rows_count_role(&p, HD_ROLE_ELEMENT) > 0};
  look_at_reductions(&inner, d->term, false);
  uint32_t stored = stored_targets(f, d);
  bool reduces = inner.over_elements.size > 0;
  bool whole = hd_rows_count_role(&p, HD_ROLE_ROW) == f->rows->row.count &&
               (!inner.is_vector || hd_rows_count_role(&p, HD_ROLE_ELEMENT) ==
                                        f->rows->element.count);
  bool is_tuple = d->num_targets > 1;
  f->fits &= whole || (!stored && !hd_flat_has(d->term, HD_TERM_REDUCE));
  f->fits &= !is_tuple || (reduces && inner.over_elements.data[0] == d->term);
  if (!f->fits)
    return;
  hd_row_step_t *step;
  if (is_tuple) {
    f->rows->ordered |=
        d->term->u.reduction->monoid->builtin == HD_MONOID_COUNT;
    const hd_term_t *term = canonical(f, d->term, true);
    step = add_step(f, HD_ROW_REDUCE, term, d->targets, d->num_targets);
  } else {
    const hd_term_t *term = d->term;
    for (size_t i = 0; i < inner.over_elements.size; i++) {
      const hd_term_t *over = inner.over_elements.data[i];
      term = hd_flat_replace(f->arena, term, over, reduce_elements(f, d, over));
    }
    term = canonical(f, term, false);
    step = add_step(f, inner.is_vector ? HD_ROW_VECTOR : HD_ROW_SCALAR, term,
                    d->targets, 1);
  }
  step->stored = stored;
  step->definition = place_definition(f, d);
}

bool hd_rows_find(hd_arena_t *arena, const hd_task_t *flat, size_t first,
                  size_t end, hd_rows_t *rows) {
  *rows = (hd_rows_t){.arena = arena};
  hd_rows_finder_t f = {.arena = arena,
                        .flat = flat,
                        .first = first,
                        .end = end,
                        .rows = rows,
                        .fits = true};
  for (size_t i = first; f.fits && i < end; i++)
    hd_rows_link(&f, flat->definitions.data[i]);
  if (!f.fits || !hd_rows_plant_seed(&f))
    return false;
  for (size_t i = first; f.fits && i < end; i++)
    add_definition(&f, flat->definitions.data[i]);
  return f.fits;
}
