// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Schedule/Terms/Side.h"

#include "Schedule/Terms/Affine.h"

static bool is_summed(const hd_reduction_t *sum, const hd_index_t *index) {
  for (uint32_t i = 0; i < sum->num_indices; i++)
    if (sum->indices[i] == index)
      return true;
  return false;
}

bool hd_side_read(hd_arena_t *arena, const hd_term_t *load, uint32_t axis,
                  const hd_reduction_t *sum, hd_side_t *side) {
  hd_linear_t place;
  *side = (hd_side_t){.axis = axis, .step = 1, .dilation = 1};
  if (!hd_affine_of(arena, load->operands[axis], &place))
    return false;
  side->first = place.constant;
  for (unsigned i = 0; i < place.size; i++) {
    const hd_term_t *term = place.terms[i].term;
    if (term->kind != HD_TERM_INDEX || place.terms[i].factor <= 0)
      return false;
    bool in = is_summed(sum, term->u.index);
    if (in ? side->in : side->at)
      return false;
    *(in ? &side->in : &side->at) = term->u.index;
    *(in ? &side->dilation : &side->step) = place.terms[i].factor;
  }
  return true;
}

bool hd_side_is_plain(const hd_side_t *side) {
  return !(side->at && side->in) && side->first == 0 && side->step == 1 &&
         side->dilation == 1;
}

int64_t hd_side_reach(const hd_side_t *side) {
  int64_t at = side->at ? hd_flat_range(side->at) : 1;
  int64_t in = side->in ? hd_flat_range(side->in) : 1;
  return (at - 1) * side->step + (in - 1) * side->dilation + 1;
}

static bool is_zero(const hd_term_t *term) {
  return term->kind == HD_TERM_CONST &&
         (hd_type_is_float(hd_type(term->type.scalar)) ? term->u.f == 0
                                                       : term->u.i == 0);
}

bool hd_is_image(const hd_term_t *load) {
  return load->kind == HD_TERM_LOAD ||
         (load->kind == HD_TERM_LOADELSE &&
          is_zero(load->operands[load->u.value->rank]));
}
