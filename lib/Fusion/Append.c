// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which index of a definition goes along what is put in is found by an access:
// u[i, j - p], where u has n places on that axis, is reached by j = r + p for
// the r below n alone. So it is enough to go over these, whatever else the
// condition says, which stands in the scatter's place once more.
#include "Fusion/Append.h"

#include "Schedule/Terms/Affine.h"

typedef struct finder {
  hd_arena_t *arena;
  const hd_definition_t *d;
  const hd_task_value_t *onto;
  unsigned axis;          // Of the target.
  const hd_term_t *place; // r + p; NULL: none was found.
  const hd_index_t *r;
} finder_t;

static bool is_index(const hd_term_t *term, const hd_index_t *index) {
  return (term->kind == HD_TERM_INDEX && term->u.index == index) ||
         (hd_flat_range(index) == 1 && hd_flat_is_int(term, 0));
}

// An element of `onto` in its own place.
static bool is_kept(const finder_t *f, const hd_term_t *term) {
  if (term->kind != HD_TERM_LOAD || term->u.value != f->onto ||
      f->onto->rank != f->d->num_indices)
    return false;
  for (unsigned i = 0; i < f->onto->rank; i++)
    if (!is_index(term->operands[i], f->d->indices[i]))
      return false;
  return true;
}

// r + p, from a place that is j - p; false where it is no such.
static bool solve(finder_t *f, const hd_term_t *place, int64_t size) {
  hd_linear_t sum, rest;
  if (!hd_affine_of(f->arena, place, &sum))
    return false;
  int found = -1;
  hd_linear_set_like(&rest, &sum, -sum.constant);
  for (unsigned i = 0; i < sum.size; i++) {
    const hd_term_t *atom = sum.terms[i].term;
    for (unsigned k = 0; k < f->d->num_indices; k++)
      if (found < 0 && is_index(atom, f->d->indices[k]) &&
          sum.terms[i].factor == 1 && size < hd_flat_range(f->d->indices[k]))
        found = (int)(f->axis = k);
    if ((found < 0 || !is_index(atom, f->d->indices[found])) &&
        !hd_linear_add_term(&rest, atom, -sum.terms[i].factor))
      return false;
  }
  const hd_term_t *p = found < 0 ? NULL : hd_affine_term(f->arena, &rest);
  if (!p || hd_flat_uses(p, f->d->indices[found]))
    return false;
  f->r = hd_flat_index_make(f->arena, f->d->indices[found]->name, size);
  f->place = hd_flat_operate(f->arena, HD_EXPR_ADD,
                             size == 1 ? hd_flat_int(f->arena, HD_I64, 0)
                                       : hd_flat_index(f->arena, f->r),
                             p);
  return true;
}

static bool find_place(void *argument, const hd_term_t *term) {
  finder_t *f = argument;
  bool loads = term->kind == HD_TERM_LOAD;
  for (unsigned i = 0; loads && !f->place && i < term->u.value->rank; i++)
    solve(f, term->operands[i], hd_flat_size(term->u.value, i));
  return !f->place && term->kind != HD_TERM_SELECT;
}

// Puts r + p in the place of j.
static const hd_term_t *put_place(void *argument, const hd_term_t *term) {
  finder_t *f = argument;
  if (is_index(term, f->d->indices[f->axis]) && term->kind == HD_TERM_INDEX)
    return f->place;
  return hd_index_simplify_load(f->arena, term);
}

static void make_scatter(finder_t *f, const hd_term_t *condition, bool if_true,
                         const hd_term_t *put, hd_definition_t *scatter) {
  hd_arena_t *arena = f->arena;
  const hd_definition_t *d = f->d;
  const hd_index_t **indices =
      HD_ARENA_ARRAY(arena, const hd_index_t *, d->num_indices + 1);
  const hd_term_t **at =
      HD_ARENA_ARRAY(arena, const hd_term_t *, d->num_indices + 1);
  const hd_term_t *nowhere = hd_flat_int(arena, HD_I64, -1);
  for (uint32_t i = 0; i < d->num_indices; i++) {
    indices[i] = i == f->axis ? f->r : d->indices[i];
    at[i] = hd_flat_range(indices[i]) == 1 ? hd_flat_int(arena, HD_I64, 0)
                                           : hd_flat_index(arena, indices[i]);
  }
  const hd_term_t *where = hd_flat_rewrite(arena, condition, put_place, f);
  at[f->axis] = hd_flat_select(arena, where, if_true ? f->place : nowhere,
                               if_true ? nowhere : f->place);
  *scatter = *d;
  scatter->kind = HD_SCATTER;
  scatter->indices = indices;
  scatter->term = hd_flat_rewrite(arena, put, put_place, f);
  scatter->drops = true;
  scatter->duplicates = HD_DUPLICATES_LAST;
  scatter->at = at;
  scatter->onto = f->onto;
}

bool hd_append_find(hd_arena_t *arena, const hd_definition_t *d,
                    const hd_task_value_t *onto, hd_definition_t *scatter) {
  finder_t f = {.arena = arena, .d = d, .onto = onto};
  if (d->kind != HD_DEFINE || d->num_targets != 1 ||
      d->term->kind != HD_TERM_SELECT)
    return false;
  const hd_term_t *condition = d->term->operands[0];
  bool if_true = is_kept(&f, d->term->operands[2]);
  const hd_term_t *kept = d->term->operands[if_true ? 2 : 1];
  const hd_term_t *put = d->term->operands[if_true ? 1 : 2];
  if (!is_kept(&f, kept) || hd_flat_reads(condition, onto) ||
      hd_flat_reads(put, onto))
    return false;
  hd_flat_walk(put, find_place, &f);
  if (!f.place)
    return false;
  make_scatter(&f, condition, if_true, put, scatter);
  return true;
}
