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
#include "Schedule/Rows.h"

enum { SMALL = 64 };

typedef enum role { UNKNOWN, ROW, ELEMENT } role_t;

// Indices that are the same axis form a class, which the one without `same`
// stands for.
typedef struct axis {
  struct axis *same;
  const hd_index_t *index;
  role_t role;
} axis_t;

typedef struct finder {
  hd_arena_t *arena;
  const hd_task_t *flat;
  size_t first, end;
  hd_rows_t *rows;
  hd_ptr_map_t axes;   // Indices to axes.
  hd_ptr_map_t makers; // What is defined to its definition.
  hd_ptr_map_t hints;  // Inputs to the axes where the seed reads them.
  axis_t *row[HD_MAX_RANK], *element[HD_MAX_RANK];
  const hd_term_t *seed; // The longest reduction,
  const hd_definition_t *seeded;
  const hd_definition_t *definition; // At hand.
  bool fits;
} finder_t;

static axis_t *axis_of(finder_t *f, const hd_index_t *index) {
  axis_t *const *known = hd_ptr_map_get(&f->axes, index);
  if (!known) {
    axis_t **fresh = HD_ARENA_NEW(f->arena, axis_t *);
    *fresh = HD_ARENA_NEW(f->arena, axis_t);
    (*fresh)->index = index;
    hd_ptr_map_set(f->arena, &f->axes, index, fresh);
    return *fresh;
  }
  axis_t *axis = *known;
  while (axis->same)
    axis = axis->same;
  return axis;
}

static void unify(finder_t *f, axis_t *a, axis_t *b) {
  if (a == b)
    return;
  if (hd_flat_range(a->index) != hd_flat_range(b->index) ||
      (a->role != b->role && a->role != UNKNOWN && b->role != UNKNOWN)) {
    f->fits = false;
    return;
  }
  if (a->role != UNKNOWN) {
    axis_t *swap = a;
    a = b;
    b = swap;
  }
  a->same = b;
}

static bool is_load(const hd_term_t *term) {
  return term->kind == HD_TERM_LOAD || term->kind == HD_TERM_LOADELSE;
}

// --- What reads what ---

static void link_place(finder_t *f, const hd_index_t *index,
                       const hd_term_t *place) {
  if (place->kind == HD_TERM_INDEX)
    unify(f, axis_of(f, place->u.index), axis_of(f, index));
  else
    f->fits &= place->kind == HD_TERM_CONST && hd_flat_range(index) == 1;
}

static bool link_term(void *argument, const hd_term_t *term) {
  finder_t *f = argument;
  f->fits &= term->kind != HD_TERM_SCAN &&
             (term->kind != HD_TERM_REDUCE || hd_can_share(term));
  const hd_definition_t *maker =
      is_load(term) ? hd_ptr_map_get(&f->makers, term->u.value) : NULL;
  if (maker) {
    f->fits &= term->kind == HD_TERM_LOAD;
    for (uint32_t i = 0; i < maker->num_indices; i++)
      link_place(f, maker->indices[i], term->operands[i]);
  }
  return f->fits;
}

static void link_definition(finder_t *f, const hd_definition_t *d) {
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

static int64_t reduced_points(const hd_term_t *term) {
  const hd_reduction_t *r = term->u.reduction;
  return hd_flat_points(r->indices, r->num_indices);
}

static bool look_for_seed(void *argument, const hd_term_t *term) {
  finder_t *f = argument;
  if (term->kind != HD_TERM_REDUCE)
    return true;
  if (!f->seed || reduced_points(term) > reduced_points(f->seed)) {
    f->seed = term;
    f->seeded = f->definition;
  }
  return false;
}

static bool note_hint(void *argument, const hd_term_t *term) {
  finder_t *f = argument;
  if (!is_load(term) || hd_ptr_map_get(&f->makers, term->u.value) ||
      hd_ptr_map_get(&f->hints, term->u.value))
    return true;
  uint32_t rank = term->u.value->rank;
  axis_t **axes = HD_ARENA_ARRAY(f->arena, axis_t *, rank + 1);
  for (uint32_t i = 0; i < rank; i++)
    axes[i] = term->operands[i]->kind == HD_TERM_INDEX
                  ? axis_of(f, term->operands[i]->u.index)
                  : NULL;
  hd_ptr_map_set(f->arena, &f->hints, term->u.value, axes);
  return true;
}

static bool take_axes(finder_t *f, const hd_index_t *const *indices,
                      unsigned count, role_t role, axis_t **axes,
                      hd_row_axes_t *out) {
  for (unsigned i = 0; i < count; i++) {
    if (hd_flat_range(indices[i]) == 1)
      continue;
    axis_t *axis = axis_of(f, indices[i]);
    if (axis->role != UNKNOWN || out->count == HD_MAX_RANK)
      return false;
    axis->role = role;
    axes[out->count] = axis;
    out->indices[out->count++] = axis->index;
  }
  out->points = hd_flat_points(out->indices, out->count);
  return out->points <= INT32_MAX / 2;
}

static bool plant_seed(finder_t *f) {
  for (size_t i = f->first; i < f->end; i++) {
    f->definition = f->flat->definitions.data[i];
    hd_flat_walk(f->definition->term, look_for_seed, f);
  }
  if (!f->seed || reduced_points(f->seed) <= 1)
    return false;
  const hd_definition_t *d = f->seeded;
  const hd_reduction_t *r = f->seed->u.reduction;
  if (!take_axes(f, d->indices, d->num_indices, ROW, f->row, &f->rows->row) ||
      !take_axes(f, r->indices, r->num_indices, ELEMENT, f->element,
                 &f->rows->element))
    return false;
  hd_flat_walk(f->seed, note_hint, f);
  return true;
}

// --- The axes of a domain or a reduction ---

typedef struct placing {
  finder_t *f;
  const hd_index_t *const *indices;
  unsigned count;
  axis_t **axes; // For each index; NULL where it has one value or is not known.
} placing_t;

static bool is_taken(const placing_t *p, const axis_t *axis) {
  for (unsigned i = 0; i < p->count; i++)
    if (p->axes[i] == axis)
      return true;
  return false;
}

static bool is_open(const placing_t *p, unsigned i) {
  return !p->axes[i] && hd_flat_range(p->indices[i]) > 1;
}

static void place_index(placing_t *p, unsigned i, axis_t *axis) {
  if (is_open(p, i) &&
      hd_flat_range(p->indices[i]) == hd_flat_range(axis->index) &&
      !is_taken(p, axis))
    p->axes[i] = axis;
}

static bool place_by_hint(void *argument, const hd_term_t *term) {
  placing_t *p = argument;
  axis_t *const *hint =
      is_load(term) ? hd_ptr_map_get(&p->f->hints, term->u.value) : NULL;
  for (uint32_t k = 0; hint && k < term->u.value->rank; k++)
    for (unsigned i = 0; hint[k] && i < p->count; i++)
      if (term->operands[k]->kind == HD_TERM_INDEX &&
          term->operands[k]->u.index == p->indices[i]) {
        axis_t *axis = axis_of(p->f, hint[k]->index);
        if (axis->role != UNKNOWN)
          place_index(p, i, axis);
      }
  return true;
}

static void place_by_range(placing_t *p, axis_t *const *axes, unsigned count) {
  for (unsigned i = 0; i < p->count; i++)
    for (unsigned k = 0; k < count; k++)
      place_index(p, i, axes[k]);
}

// Axes for all indices, none of them twice; term is read at them.
static bool place_indices(placing_t *p, const hd_term_t *term, bool of_rows) {
  finder_t *f = p->f;
  p->axes = HD_ARENA_ARRAY(f->arena, axis_t *, p->count + 1);
  for (unsigned i = 0; i < p->count; i++) {
    axis_t *axis =
        hd_flat_range(p->indices[i]) > 1 ? axis_of(f, p->indices[i]) : NULL;
    bool known = axis && axis->role != UNKNOWN;
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

static unsigned count_role(const placing_t *p, role_t role) {
  unsigned count = 0;
  for (unsigned i = 0; i < p->count; i++)
    count += p->axes[i] && p->axes[i]->role == role;
  return count;
}

static void keep_places(const placing_t *p) {
  for (unsigned i = 0; i < p->count; i++)
    if (p->axes[i])
      unify(p->f, axis_of(p->f, p->indices[i]), p->axes[i]);
}

// --- Steps ---

static hd_row_step_t *add_step(finder_t *f, hd_row_kind_t kind,
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
static const hd_term_t *add_inner(finder_t *f, hd_row_kind_t kind,
                                  const char *name, const hd_term_t *term) {
  const hd_task_value_t **values =
      HD_ARENA_ARRAY(f->arena, const hd_task_value_t *, 1);
  values[0] = hd_flat_value_make(f->arena, name, HD_VALUE_LOCAL,
                                 term->type.scalar, NULL, 0);
  add_step(f, kind, term, values, 1);
  return hd_flat_load(f->arena, values[0], NULL);
}

static const hd_term_t *put_axis(void *argument, const hd_term_t *term) {
  finder_t *f = argument;
  if (term->kind != HD_TERM_INDEX)
    return term;
  axis_t *axis = axis_of(f, term->u.index);
  return axis->index == term->u.index ? term
                                      : hd_flat_index(f->arena, axis->index);
}

// Whether a load is of an element of the row, certainly inside its tensor.
static bool is_of_element(finder_t *f, const hd_term_t *term) {
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
    role_t role = axis_of(f, at->u.index)->role;
    if (role == UNKNOWN)
      return false;
    found |= role == ELEMENT;
  }
  return found;
}

// Loads of elements become steps of their own, which several phases may share.
static const hd_term_t *put_loads(finder_t *f, const hd_term_t *term,
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

static const hd_term_t *canonical(finder_t *f, const hd_term_t *term,
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
  if (is_load(term) && term->u.value == value)
    return true;
  for (unsigned i = 0; i < term->num_operands; i++)
    if (is_read(term->operands[i], value))
      return true;
  return term->kind == HD_TERM_SCAN && is_read(term->u.reduction->at, value);
}

static bool is_in_memory(const finder_t *f, const hd_task_value_t *value) {
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

static uint32_t stored_targets(const finder_t *f, const hd_definition_t *d) {
  uint32_t stored = 0;
  for (uint32_t i = 0; i < d->num_targets; i++)
    if (is_in_memory(f, d->targets[i]))
      stored |= UINT32_C(1) << i;
  return stored;
}

// The definition at the axes' indices.
static const hd_definition_t *place_definition(finder_t *f,
                                               const hd_definition_t *d) {
  hd_definition_t *copy = HD_ARENA_NEW(f->arena, hd_definition_t);
  const hd_index_t **indices =
      HD_ARENA_ARRAY(f->arena, const hd_index_t *, d->num_indices);
  for (uint32_t i = 0; i < d->num_indices; i++)
    indices[i] = hd_flat_range(d->indices[i]) > 1
                     ? axis_of(f, d->indices[i])->index
                     : d->indices[i];
  *copy = *d;
  copy->indices = indices;
  return copy;
}

// --- Definitions ---

// Whether a reduction, of the definition of a number for each row, goes over
// the elements. Else it stays where it is, if it is small.
static bool goes_over_elements(finder_t *f, const hd_term_t *term) {
  const hd_reduction_t *r = term->u.reduction;
  placing_t p = {f, r->indices, r->num_indices, NULL};
  bool all = place_indices(&p, term, false) &&
             count_role(&p, ELEMENT) == f->rows->element.count &&
             count_role(&p, ROW) == 0;
  unsigned next = 0;
  if (all)
    keep_places(&p);
  for (uint32_t i = 0; all && i < r->num_indices; i++)
    if (p.axes[i]) // In another order only where that is nothing.
      f->fits &= r->monoid->builtin != HD_MONOID_COUNT ||
                 p.axes[i] == f->element[next++];
  return all;
}

static bool is_small(finder_t *f, const hd_term_t *term) {
  const hd_reduction_t *r = term->u.reduction;
  for (uint32_t i = 0; i < r->num_indices; i++)
    if (hd_flat_range(r->indices[i]) > 1 &&
        axis_of(f, r->indices[i])->role != UNKNOWN)
      return false;
  return reduced_points(term) <= SMALL;
}

typedef struct inner {
  finder_t *f;
  HD_VEC(const hd_term_t *) over_elements;
  bool is_vector;
} inner_t;

static void look_at_reductions(inner_t *n, const hd_term_t *term, bool lazy) {
  finder_t *f = n->f;
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

static const hd_term_t *reduce_elements(finder_t *f, const hd_definition_t *d,
                                        const hd_term_t *reduction) {
  f->rows->ordered |=
      reduction->u.reduction->monoid->builtin == HD_MONOID_COUNT;
  const char *name = hd_arena_printf(f->arena, "%s_all", d->targets[0]->name);
  return add_inner(f, HD_ROW_REDUCE, name, canonical(f, reduction, true));
}

static void add_definition(finder_t *f, const hd_definition_t *d) {
  placing_t p = {f, d->indices, d->num_indices, NULL};
  if (!place_indices(&p, d->term, true)) {
    f->fits = false;
    return;
  }
  keep_places(&p);
  inner_t inner = {.f = f, .is_vector = count_role(&p, ELEMENT) > 0};
  look_at_reductions(&inner, d->term, false);
  uint32_t stored = stored_targets(f, d);
  bool reduces = inner.over_elements.size > 0;
  bool whole =
      count_role(&p, ROW) == f->rows->row.count &&
      (!inner.is_vector || count_role(&p, ELEMENT) == f->rows->element.count);
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
  finder_t f = {.arena = arena,
                .flat = flat,
                .first = first,
                .end = end,
                .rows = rows,
                .fits = true};
  for (size_t i = first; f.fits && i < end; i++)
    link_definition(&f, flat->definitions.data[i]);
  if (!f.fits || !plant_seed(&f))
    return false;
  for (size_t i = first; f.fits && i < end; i++)
    add_definition(&f, flat->definitions.data[i]);
  return f.fits;
}
