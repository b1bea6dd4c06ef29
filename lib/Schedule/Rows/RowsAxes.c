// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which indices of the definitions over rows are the same axis, and whether it
// is one of rows or of elements. What the rules are, RowsFind.c says.
#include "Schedule/Rows/RowsFind.h"

hd_row_axis_t *hd_rows_axis(hd_rows_finder_t *f, const hd_index_t *index) {
  hd_row_axis_t *const *known = hd_ptr_map_get(&f->axes, index);
  if (!known) {
    hd_row_axis_t **fresh = HD_ARENA_NEW(f->arena, hd_row_axis_t *);
    *fresh = HD_ARENA_NEW(f->arena, hd_row_axis_t);
    (*fresh)->index = index;
    hd_ptr_map_set(f->arena, &f->axes, index, fresh);
    return *fresh;
  }
  hd_row_axis_t *axis = *known;
  while (axis->same)
    axis = axis->same;
  return axis;
}

static void unify(hd_rows_finder_t *f, hd_row_axis_t *a, hd_row_axis_t *b) {
  if (a == b)
    return;
  if (hd_flat_range(a->index) != hd_flat_range(b->index) ||
      (a->role != b->role && a->role != HD_ROLE_UNKNOWN &&
       b->role != HD_ROLE_UNKNOWN)) {
    f->fits = false;
    return;
  }
  if (a->role != HD_ROLE_UNKNOWN) {
    hd_row_axis_t *swap = a;
    a = b;
    b = swap;
  }
  a->same = b;
}

// --- What reads what ---

static void link_place(hd_rows_finder_t *f, const hd_index_t *index,
                       const hd_term_t *place) {
  if (place->kind == HD_TERM_INDEX)
    unify(f, hd_rows_axis(f, place->u.index), hd_rows_axis(f, index));
  else
    f->fits &= place->kind == HD_TERM_CONST && hd_flat_range(index) == 1;
}

static bool link_term(void *argument, const hd_term_t *term) {
  hd_rows_finder_t *f = argument;
  f->fits &= term->kind != HD_TERM_SCAN &&
             (term->kind != HD_TERM_REDUCE || hd_can_share(term));
  const hd_definition_t *maker =
      hd_rows_is_load(term) ? hd_ptr_map_get(&f->makers, term->u.value) : NULL;
  if (maker) {
    f->fits &= term->kind == HD_TERM_LOAD;
    for (uint32_t i = 0; i < maker->num_indices; i++)
      link_place(f, maker->indices[i], term->operands[i]);
  }
  return f->fits;
}

void hd_rows_link(hd_rows_finder_t *f, const hd_definition_t *d) {
  f->fits &= d->kind == HD_DEFINE && d->num_targets <= HD_MAX_COMPONENTS;
  for (uint32_t i = 0; f->fits && i < d->num_targets; i++)
    f->fits = hd_scalar_bits(d->targets[i]->type.scalar) >= 8;
  if (!f->fits)
    return;
  hd_flat_walk(d->term, link_term, f);
  for (uint32_t i = 0; i < d->num_targets; i++)
    hd_ptr_map_set(f->arena, &f->makers, d->targets[i], d);
}

// --- The seed ---

static bool look_for_seed(void *argument, const hd_term_t *term) {
  hd_rows_finder_t *f = argument;
  if (term->kind != HD_TERM_REDUCE)
    return true;
  if (!f->seed ||
      hd_rows_reduced_points(term) > hd_rows_reduced_points(f->seed)) {
    f->seed = term;
    f->seeded = f->definition;
  }
  return false;
}

static bool note_hint(void *argument, const hd_term_t *term) {
  hd_rows_finder_t *f = argument;
  if (!hd_rows_is_load(term) || hd_ptr_map_get(&f->makers, term->u.value) ||
      hd_ptr_map_get(&f->hints, term->u.value))
    return true;
  uint32_t rank = term->u.value->rank;
  hd_row_axis_t **axes = HD_ARENA_ARRAY(f->arena, hd_row_axis_t *, rank + 1);
  for (uint32_t i = 0; i < rank; i++)
    axes[i] = term->operands[i]->kind == HD_TERM_INDEX
                  ? hd_rows_axis(f, term->operands[i]->u.index)
                  : NULL;
  hd_ptr_map_set(f->arena, &f->hints, term->u.value, axes);
  return true;
}

static bool take_axes(hd_rows_finder_t *f, const hd_index_t *const *indices,
                      unsigned count, hd_row_role_t role, hd_row_axis_t **axes,
                      hd_row_axes_t *out) {
  for (unsigned i = 0; i < count; i++) {
    if (hd_flat_range(indices[i]) == 1)
      continue;
    hd_row_axis_t *axis = hd_rows_axis(f, indices[i]);
    if (axis->role != HD_ROLE_UNKNOWN || out->count == HD_MAX_RANK)
      return false;
    axis->role = role;
    axes[out->count] = axis;
    out->indices[out->count++] = axis->index;
  }
  out->points = hd_flat_points(out->indices, out->count);
  return out->points <= INT32_MAX / 2;
}

bool hd_rows_plant_seed(hd_rows_finder_t *f) {
  for (size_t i = f->first; i < f->end; i++) {
    f->definition = f->flat->definitions.data[i];
    hd_flat_walk(f->definition->term, look_for_seed, f);
  }
  if (!f->seed || hd_rows_reduced_points(f->seed) <= 1)
    return false;
  const hd_definition_t *d = f->seeded;
  const hd_reduction_t *r = f->seed->u.reduction;
  if (!take_axes(f, d->indices, d->num_indices, HD_ROLE_ROW, f->row,
                 &f->rows->row) ||
      !take_axes(f, r->indices, r->num_indices, HD_ROLE_ELEMENT, f->element,
                 &f->rows->element))
    return false;
  hd_flat_walk(f->seed, note_hint, f);
  return true;
}

// --- The axes of a domain or a reduction ---

static bool is_taken(const hd_row_placing_t *p, const hd_row_axis_t *axis) {
  for (unsigned i = 0; i < p->count; i++)
    if (p->axes[i] == axis)
      return true;
  return false;
}

static bool is_open(const hd_row_placing_t *p, unsigned i) {
  return !p->axes[i] && hd_flat_range(p->indices[i]) > 1;
}

static void place_index(hd_row_placing_t *p, unsigned i, hd_row_axis_t *axis) {
  if (is_open(p, i) &&
      hd_flat_range(p->indices[i]) == hd_flat_range(axis->index) &&
      !is_taken(p, axis))
    p->axes[i] = axis;
}

static bool place_by_hint(void *argument, const hd_term_t *term) {
  hd_row_placing_t *p = argument;
  hd_row_axis_t *const *hint = hd_rows_is_load(term)
                                   ? hd_ptr_map_get(&p->f->hints, term->u.value)
                                   : NULL;
  for (uint32_t k = 0; hint && k < term->u.value->rank; k++)
    for (unsigned i = 0; hint[k] && i < p->count; i++)
      if (term->operands[k]->kind == HD_TERM_INDEX &&
          term->operands[k]->u.index == p->indices[i]) {
        hd_row_axis_t *axis = hd_rows_axis(p->f, hint[k]->index);
        if (axis->role != HD_ROLE_UNKNOWN)
          place_index(p, i, axis);
      }
  return true;
}

static void place_by_range(hd_row_placing_t *p, hd_row_axis_t *const *axes,
                           unsigned count) {
  for (unsigned i = 0; i < p->count; i++)
    for (unsigned k = 0; k < count; k++)
      place_index(p, i, axes[k]);
}

bool hd_rows_place(hd_row_placing_t *p, const hd_term_t *term, bool of_rows) {
  hd_rows_finder_t *f = p->f;
  p->axes = HD_ARENA_ARRAY(f->arena, hd_row_axis_t *, p->count + 1);
  for (unsigned i = 0; i < p->count; i++) {
    hd_row_axis_t *axis = hd_flat_range(p->indices[i]) > 1
                              ? hd_rows_axis(f, p->indices[i])
                              : NULL;
    bool known = axis && axis->role != HD_ROLE_UNKNOWN;
    if (known && is_taken(p, axis))
      return false;
    if (known)
      p->axes[i] = axis;
  }
  hd_flat_walk(term, place_by_hint, p);
  place_by_range(p, f->element, f->rows->element.count);
  if (of_rows)
    place_by_range(p, f->row, f->rows->row.count);
  for (unsigned i = 0; i < p->count; i++)
    if (is_open(p, i))
      return false;
  return true;
}

unsigned hd_rows_count_role(const hd_row_placing_t *p, hd_row_role_t role) {
  unsigned count = 0;
  for (unsigned i = 0; i < p->count; i++)
    count += p->axes[i] && p->axes[i]->role == role;
  return count;
}

void hd_rows_keep_places(const hd_row_placing_t *p) {
  for (unsigned i = 0; i < p->count; i++)
    if (p->axes[i])
      unify(p->f, hd_rows_axis(p->f, p->indices[i]), p->axes[i]);
}
