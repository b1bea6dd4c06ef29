// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Schedule/Rules/ScatterAxes.h"
#include "Schedule/Terms/Affine.h"

enum { WIDE = 16 }; // Bytes that a thread stores side by side.

// Whether the index stands alone in one of the target's axes, within it, so
// that points that differ in it go to different elements.
static bool stands_alone(const hd_definition_t *d, const hd_index_t *index) {
  const hd_task_value_t *target = d->targets[0];
  for (uint32_t i = 0; i < target->rank; i++)
    if (d->at[i]->kind == HD_TERM_INDEX && d->at[i]->u.index == index)
      return hd_flat_range(index) <= hd_flat_size(target, i);
  return false;
}

// What a place is where the point is not dropped.
static const hd_term_t *kept_place(const hd_definition_t *d, uint32_t axis) {
  const hd_term_t *at = d->at[axis];
  while (d->drops && at->kind == HD_TERM_SELECT) {
    bool dropped = hd_flat_is_int(at->operands[1], -1);
    if (!dropped && !hd_flat_is_int(at->operands[2], -1))
      break;
    at = at->operands[dropped ? 2 : 1];
  }
  return at;
}

bool hd_scatter_tells_apart(hd_arena_t *arena, const hd_definition_t *d,
                            const hd_index_t *index) {
  hd_linear_t sum;
  if (stands_alone(d, index))
    return true;
  for (uint32_t i = 0; i < d->targets[0]->rank; i++) {
    bool found = false, ok = true;
    if (!hd_affine_of(arena, kept_place(d, i), &sum))
      continue;
    for (unsigned k = 0; k < sum.size; k++) {
      const hd_term_t *atom = sum.terms[k].term;
      bool is_it = atom->kind == HD_TERM_INDEX && atom->u.index == index;
      found |= is_it;
      for (uint32_t n = 0; !is_it && n < d->num_indices; n++)
        ok &= !hd_flat_uses(atom, d->indices[n]) ||
              stands_alone(d, d->indices[n]);
    }
    if (found && ok)
      return true;
  }
  return false;
}

int hd_scatter_own_axis(const hd_definition_t *d, const hd_index_t *index) {
  int own = -1;
  for (uint32_t i = 0; i < d->targets[0]->rank; i++) {
    bool is_it = d->at[i]->kind == HD_TERM_INDEX && d->at[i]->u.index == index;
    if (is_it && own < 0)
      own = (int)i;
    else if (hd_flat_uses(d->at[i], index))
      return -1;
  }
  return own;
}

int64_t hd_scatter_neighbours(const hd_definition_t *d) {
  const hd_task_value_t *target = d->targets[0];
  const hd_index_t *last =
      d->num_indices ? d->indices[d->num_indices - 1] : NULL;
  int64_t count = WIDE * 8 / hd_scalar_bits(target->type.scalar);
  if (!last || !target->rank ||
      hd_scatter_own_axis(d, last) != (int)target->rank - 1 ||
      hd_flat_range(last) > hd_flat_size(target, target->rank - 1))
    return 1;
  while (hd_flat_range(last) % count != 0 ||
         hd_flat_size(target, target->rank - 1) % count != 0)
    count /= 2;
  return count;
}
