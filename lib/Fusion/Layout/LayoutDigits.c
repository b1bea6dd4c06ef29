// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which axes are digits of one: of channels that a reshape makes groups of
// channels, y[b, g, d, i] = x[b, g * 10 + d, i], or back, y[b, c, i] =
// x[b, c / 10, c % 10, i]. Where the one axis is last in memory, so should its
// digits be, in their order: then the reshape moves nothing.
#include "Fusion/Layout/LayoutState.h"
#include "Schedule/Terms/Affine.h"

#include <limits.h>

// How many indices of the result, up to an axis, make up a place; 1: that one,
// whatever else does.
static unsigned count_result(hd_arena_t *arena, const hd_term_t *place,
                             const hd_definition_t *d, unsigned axis) {
  hd_linear_t sum;
  int64_t factor = 1;
  unsigned found = 0;
  if (!hd_affine_of(arena, place, &sum) || sum.constant != 0)
    return 1;
  for (unsigned n = 0; n <= axis && found < sum.size; n++) {
    const hd_index_t *index = d->indices[axis - n];
    bool is_digit = false;
    for (unsigned i = 0; i < sum.size; i++)
      is_digit |= sum.terms[i].term->kind == HD_TERM_INDEX &&
                  sum.terms[i].term->u.index == index &&
                  sum.terms[i].factor == factor;
    if (!is_digit)
      return 1;
    found++;
    factor *= hd_flat_range(index);
  }
  return found == sum.size && found > 0 ? found : 1;
}

static bool find_other(void *argument, const hd_term_t *term) {
  const hd_index_t **index = argument;
  if (term->kind == HD_TERM_INDEX && term->u.index != *index)
    *index = NULL;
  return *index != NULL;
}

// How many places of a load, up to an axis, are digits of one index.
static unsigned count_load(hd_arena_t *arena, const hd_term_t *load,
                           unsigned axis, const hd_index_t *index) {
  const hd_term_t *places[HD_MAX_RANK];
  int64_t shape[HD_MAX_RANK];
  unsigned count = 0;
  for (; count <= axis; count++) {
    const hd_term_t *place = load->operands[axis - count];
    const hd_index_t *alone = index;
    hd_flat_walk(place, find_other, &alone);
    if (!alone || !hd_flat_uses(place, index))
      break;
  }
  if (count < 2)
    return 1;
  for (unsigned i = 0; i < count; i++) {
    places[i] = load->operands[axis + 1 - count + i];
    shape[i] = hd_flat_size(load->u.value, axis + 1 - count + i);
  }
  hd_linear_t sum;
  bool whole =
      hd_affine_of(arena, hd_index_linear(arena, shape, count, places), &sum);
  return whole && sum.constant == 0 && sum.size == 1 &&
                 sum.terms[0].factor == 1 &&
                 sum.terms[0].term->kind == HD_TERM_INDEX
             ? count
             : 1;
}

int hd_layout_digit_of(hd_arena_t *arena, const hd_term_t *load, unsigned axis,
                       const hd_definition_t *d) {
  for (uint32_t i = 0; i < d->num_indices; i++)
    if (hd_flat_range(d->indices[i]) > 1 &&
        count_load(arena, load, axis, d->indices[i]) > 1)
      return (int)i;
  return -1;
}

hd_layout_digits_t hd_layout_digits(hd_arena_t *arena, const hd_term_t *load,
                                    unsigned axis, const hd_definition_t *d,
                                    unsigned result_axis) {
  return (hd_layout_digits_t){
      count_load(arena, load, axis, d->indices[result_axis]),
      count_result(arena, load->operands[axis], d, result_axis)};
}

int hd_layout_block(const hd_term_t *load, unsigned axis,
                    const hd_definition_t *d, unsigned count) {
  int first = INT_MAX, last = -1;
  for (unsigned i = 0; i < count && count <= axis + 1; i++) {
    const hd_term_t *place = load->operands[axis - i];
    int at = -1;
    for (uint32_t k = 0; k < d->num_indices; k++)
      if (place->kind == HD_TERM_INDEX && place->u.index == d->indices[k])
        at = (int)k;
    if (at < 0)
      return -1;
    first = at < first ? at : first;
    last = at > last ? at : last;
  }
  return last >= 0 && last - first + 1 == (int)count ? last : -1;
}
