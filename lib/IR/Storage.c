// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a tensor's layout takes: elements of storage, alignment.
#include "IR/LayoutParts.h"

// The number of tasks of a worker, for LOCAL.
static int64_t local_size(const hd_mapping_t *mapping) {
  if (mapping->kind == HD_MAPPING_COMPOSE)
    return local_size(mapping->left) * local_size(mapping->right);
  int64_t size = 1;
  if (mapping->kind == HD_MAPPING_REPEAT)
    for (unsigned i = 0; i < mapping->rank; i++)
      size *= mapping->dims[i];
  return size;
}

static bool multiply(int64_t *product, int64_t factor) {
  const int64_t most = INT64_C(1) << 62;
  if (factor < 0 || (factor > 0 && *product > most / factor))
    return false;
  *product *= factor;
  return true;
}

// 1 + the offset of the last element.
static bool strided_size(const hd_tensor_t *tensor,
                         const hd_layout_item_t *item, int64_t *elements) {
  *elements = 1;
  for (unsigned i = 0; i < tensor->rank; i++) {
    int64_t size, stride;
    if (!hd_expr_fold_int(tensor->shape[i], &size) ||
        !hd_expr_fold_int(item->values[i], &stride))
      return false;
    int64_t span = size > 0 ? size - 1 : 0;
    if (!multiply(&span, stride) || *elements > INT64_MAX / 2 - span)
      return false;
    *elements += span;
  }
  return true;
}

// A swizzle moves elements inside groups of this size, so storage holds whole
// groups.
static int64_t group_of(const hd_tensor_t *tensor) {
  int64_t group = 1;
  for (unsigned i = 0; tensor->layout && i < tensor->layout->num_items; i++) {
    const hd_layout_item_t *item = &tensor->layout->items[i];
    if (item->kind != HD_LAYOUT_SWIZZLE)
      continue;
    hd_swizzle_t s = hd_swizzle_of(tensor, item);
    if (s.bits > 0 && INT64_C(1) << (s.base + s.bits) > group)
      group = INT64_C(1) << (s.base + s.bits);
  }
  return group;
}

static bool base_size(const hd_tensor_t *tensor, int64_t *elements) {
  const hd_layout_item_t *base = hd_layout_base(tensor);
  *elements = 1;
  if (base->kind == HD_LAYOUT_LOCAL) {
    *elements = local_size(base->mapping);
    return true;
  }
  if (base->kind == HD_LAYOUT_STRIDES)
    return strided_size(tensor, base, elements);
  for (unsigned i = 0; i < tensor->rank; i++) {
    int64_t size;
    if (!hd_expr_fold_int(tensor->shape[i], &size))
      return false;
    if (base->kind == HD_LAYOUT_TILE) {
      int64_t tile = hd_layout_number(base->values[i]);
      if (size > INT64_MAX - tile)
        return false;
      size = (size + tile - 1) / tile * tile;
    }
    if (!multiply(elements, size))
      return false;
  }
  return true;
}

// The verifier asks for sizes also where it has found a layout wrong.
static bool is_sound(const hd_tensor_t *tensor) {
  if (hd_type_bits(tensor->element) == 0 || tensor->rank > HD_MAX_RANK)
    return false;
  for (uint32_t i = 0; tensor->layout && i < tensor->layout->num_items; i++) {
    const hd_layout_item_t *item = &tensor->layout->items[i];
    bool per_axis = item->num_values == tensor->rank, sound = true;
    switch (item->kind) {
    case HD_LAYOUT_ROW:
    case HD_LAYOUT_COLUMN:
      break;
    case HD_LAYOUT_STRIDES:
      sound = per_axis;
      break;
    case HD_LAYOUT_PERMUTE:
      sound =
          per_axis && hd_layout_item_within(item, 0, (int64_t)tensor->rank - 1);
      break;
    case HD_LAYOUT_TILE:
      sound = per_axis && hd_layout_item_within(item, 1, HD_MAX_TILE);
      break;
    case HD_LAYOUT_SWIZZLE:
      sound = item->num_values == 3
                  ? hd_layout_item_within(item, 0, HD_MAX_SWIZZLE_BITS)
              : item->num_values == 1 ? hd_layout_item_within(item, 32, 128)
                                      : false;
      break;
    case HD_LAYOUT_LOCAL:
      sound = item->mapping->rank == tensor->rank;
      break;
    }
    if (!sound)
      return false;
  }
  return true;
}

bool hd_tensor_storage_const(const hd_tensor_t *tensor, int64_t *elements) {
  if (!is_sound(tensor) || !base_size(tensor, elements))
    return false;
  int64_t group = group_of(tensor);
  *elements = (*elements + group - 1) / group * group;
  return true;
}

uint32_t hd_tensor_align(const hd_tensor_t *tensor) {
  int64_t align = tensor->align > 16 ? tensor->align : 16;
  for (uint32_t i = 0; tensor->layout && i < tensor->layout->num_items; i++) {
    const hd_layout_item_t *item = &tensor->layout->items[i];
    int64_t bytes;
    if (tensor->scope == HD_SCOPE_SHARED && item->kind == HD_LAYOUT_SWIZZLE &&
        item->num_values == 1 && hd_expr_fold_int(item->values[0], &bytes) &&
        8 * bytes > align)
      align = 8 * bytes;
  }
  return (uint32_t)align;
}

static const hd_expr_t *round_up(hd_arena_t *arena, const hd_expr_t *e,
                                 const hd_expr_t *unit) {
  const hd_expr_t *one = hd_expr_int(arena, e->type, 1);
  e = hd_expr_binary(arena, HD_EXPR_ADD, e,
                     hd_layout_binary(arena, HD_EXPR_SUB, unit, one));
  return hd_layout_binary(arena, HD_EXPR_MUL,
                          hd_layout_binary(arena, HD_EXPR_DIV, e, unit), unit);
}

const hd_expr_t *hd_tensor_storage(hd_arena_t *arena,
                                   const hd_tensor_t *tensor) {
  int64_t elements;
  if (hd_tensor_storage_const(tensor, &elements))
    return hd_expr_int(arena, hd_type(elements <= INT32_MAX ? HD_I32 : HD_I64),
                       elements);
  hd_type_t type = hd_layout_index_type(tensor);
  const hd_layout_item_t *base = hd_layout_base(tensor);
  const hd_expr_t *one = hd_expr_int(arena, type, 1);
  const hd_expr_t *size = one;
  for (unsigned i = 0; i < tensor->rank; i++) {
    const hd_expr_t *dim = hd_layout_convert(arena, type, tensor->shape[i]);
    if (base->kind == HD_LAYOUT_STRIDES) {
      const hd_expr_t *span = hd_expr_binary(arena, HD_EXPR_SUB, dim, one);
      size = hd_expr_binary(
          arena, HD_EXPR_ADD, size,
          hd_layout_binary(arena, HD_EXPR_MUL, span,
                           hd_layout_convert(arena, type, base->values[i])));
      continue;
    }
    if (base->kind == HD_LAYOUT_TILE)
      dim =
          round_up(arena, dim, hd_layout_convert(arena, type, base->values[i]));
    size = hd_layout_binary(arena, HD_EXPR_MUL, size, dim);
  }
  int64_t group = group_of(tensor);
  return group > 1 ? round_up(arena, size, hd_expr_int(arena, type, group))
                   : size;
}
