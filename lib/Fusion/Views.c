// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Fusion/Views.h"

#include "Schedule/Terms/Affine.h"

#include <string.h>

// What views begin at multiples of, in bytes.
enum { VIEW_ALIGN = 16 };

typedef struct parts {
  hd_arena_t *arena;
  const hd_task_t *flat;
  const hd_definition_t *d;
  int axis; // Of the result; -1: no part has said so yet.
  unsigned count;
  int64_t ends[HD_MAX_PARTS];
} parts_t;

// The axis that a term is the index of; -1: none.
static int axis_of(const parts_t *p, const hd_term_t *term) {
  for (uint32_t i = 0; i < p->d->num_indices; i++)
    if (term->kind == HD_TERM_INDEX && term->u.index == p->d->indices[i])
      return (int)i;
  return -1;
}

// Whether a tensor is read along the whole of an axis, which is the result's.
static bool is_same_axis(const parts_t *p, const hd_term_t *load,
                         uint32_t axis) {
  const hd_term_t *place = load->operands[axis];
  int64_t range = hd_flat_range(p->d->indices[axis]);
  return hd_flat_size(load->u.value, axis) == range &&
         (axis_of(p, place) == (int)axis ||
          (hd_flat_is_int(place, 0) && range == 1));
}

// Whether a term is the next input's element, from where the last one ended.
static bool take_part(parts_t *p, const hd_term_t *term) {
  int64_t begin = p->count ? p->ends[p->count - 1] : 0;
  hd_linear_t at;
  if (term->kind != HD_TERM_LOAD || p->count == p->flat->inputs.size ||
      p->count == HD_MAX_PARTS ||
      term->u.value != p->flat->inputs.data[p->count] ||
      term->num_operands != p->d->num_indices)
    return false;
  for (uint32_t i = 0; i < term->num_operands; i++)
    if ((int)i != p->axis && !is_same_axis(p, term, i))
      return false;
  const hd_term_t *place = term->operands[p->axis];
  if (!hd_affine_of(p->arena, place, &at) || at.constant != -begin ||
      at.size != 1 || at.terms[0].factor != 1 ||
      axis_of(p, at.terms[0].term) != p->axis)
    return false;
  p->ends[p->count++] = begin + hd_flat_size(term->u.value, (unsigned)p->axis);
  return true;
}

// j < 4 ? a[i, j] : j < 9 ? b[i, j - 4] : ...
static bool take_parts(parts_t *p) {
  const hd_term_t *term = p->d->term;
  while (term->kind == HD_TERM_SELECT) {
    const hd_term_t *c = term->operands[0];
    if (c->kind != HD_TERM_OPERATOR || c->u.op != HD_EXPR_LT ||
        c->operands[1]->kind != HD_TERM_CONST)
      return false;
    int axis = axis_of(p, c->operands[0]);
    if (axis < 0 || (p->axis >= 0 && axis != p->axis))
      return false;
    p->axis = axis;
    if (!take_part(p, term->operands[1]) ||
        p->ends[p->count - 1] != c->operands[1]->u.i)
      return false;
    term = term->operands[2];
  }
  return p->axis >= 0 && take_part(p, term) &&
         p->count == p->flat->inputs.size &&
         p->ends[p->count - 1] ==
             hd_flat_size(p->d->targets[0], (unsigned)p->axis);
}

static bool is_aligned(int64_t elements, hd_scalar_t type) {
  return elements % VIEW_ALIGN * ((int64_t)hd_scalar_bits(type) / 8) %
             VIEW_ALIGN ==
         0;
}

bool hd_node_concatenates(hd_scheduler_t *scheduler, const hd_node_t *node,
                          hd_concatenation_t *c) {
  if (!node->task || node->num_inputs < 2 || node->num_inputs > HD_MAX_PARTS ||
      node->num_outputs != 1 || !node->outputs[0] ||
      hd_value_is_packed(node->outputs[0]))
    return false;
  const hd_flattened_t *flattened = hd_scheduler_flatten(scheduler, node);
  if (!flattened || flattened->flat->definitions.size != 1 ||
      flattened->flat->definitions.data[0]->kind != HD_DEFINE)
    return false;
  parts_t p = {.arena = hd_scheduler_arena(scheduler),
               .flat = flattened->flat,
               .d = flattened->flat->definitions.data[0],
               .axis = -1};
  if (!take_parts(&p))
    return false;
  const hd_task_value_t *y = p.d->targets[0];
  int64_t inner = 1;
  for (uint32_t i = (uint32_t)p.axis + 1; i < y->rank; i++)
    inner *= hd_flat_size(y, i);
  *c = (hd_concatenation_t){.count = p.count, .rows = 1};
  for (int i = 0; i < p.axis; i++)
    c->rows *= hd_flat_size(y, (unsigned)i);
  c->pitch = hd_flat_size(y, (unsigned)p.axis) * inner;
  bool ok = c->rows == 1 || is_aligned(c->pitch, y->type.scalar);
  for (unsigned i = 0; i < p.count; i++) {
    int64_t begin = i ? p.ends[i - 1] : 0;
    c->offsets[i] = begin * inner;
    c->widths[i] = (p.ends[i] - begin) * inner;
    ok &= c->widths[i] > 0 && is_aligned(c->offsets[i], y->type.scalar);
  }
  return ok;
}

const hd_layout_t *hd_layout_rows(hd_arena_t *arena, const int64_t *shape,
                                  unsigned rank, int64_t width, int64_t pitch) {
  const hd_expr_t **values = HD_ARENA_ARRAY(arena, const hd_expr_t *, rank + 1);
  int64_t stride = 1;
  unsigned axis = rank;
  for (; axis > 0 && stride < width; stride *= shape[axis])
    values[--axis] = hd_expr_i32(arena, stride);
  if (stride != width)
    return NULL;
  for (stride = pitch; axis > 0; stride *= shape[axis])
    values[--axis] = hd_expr_int(
        arena, hd_type(stride > INT32_MAX ? HD_I64 : HD_I32), stride);
  return hd_layout_make(arena, (hd_layout_item_t){.kind = HD_LAYOUT_STRIDES,
                                                  .num_values = rank,
                                                  .values = values});
}

bool hd_layout_find_rows(const hd_tensor_t *tensor, int64_t *width,
                         int64_t *pitch) {
  const hd_layout_t *layout = tensor->layout;
  if (!layout || layout->items[0].kind != HD_LAYOUT_STRIDES)
    return false;
  int64_t inner = 1;
  for (uint32_t i = tensor->rank; i-- > 0;) {
    int64_t size, stride;
    if (!hd_expr_fold_int(tensor->shape[i], &size) ||
        !hd_expr_fold_int(layout->items[0].values[i], &stride))
      return false;
    if (size > 1 && stride != inner) {
      *width = inner;
      *pitch = stride;
      return true;
    }
    inner *= size;
  }
  return false;
}
