// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layouts applied: indices to offsets.
#include "IR/LayoutParts.h"

int64_t hd_layout_number(const hd_expr_t *e) {
  int64_t value = 0;
  hd_expr_fold_int(e, &value);
  return value;
}

// Arithmetic that leaves out what constants settle, so that offsets print the
// way a person would write them.
static const hd_expr_t *add_offsets(hd_arena_t *arena, const hd_expr_t *a,
                                    const hd_expr_t *b) {
  if (!a || hd_expr_is_int(a, 0))
    return b;
  if (hd_expr_is_int(b, 0))
    return a;
  return hd_expr_binary(arena, HD_EXPR_ADD, a, b);
}

const hd_expr_t *hd_layout_binary(hd_arena_t *arena, hd_expr_kind_t kind,
                                  const hd_expr_t *a, const hd_expr_t *b) {
  if (kind == HD_EXPR_MUL && hd_expr_is_int(a, 1))
    return b;
  if ((kind == HD_EXPR_MUL || kind == HD_EXPR_DIV) && hd_expr_is_int(b, 1))
    return a;
  if (kind == HD_EXPR_MOD && hd_expr_is_int(b, 1))
    return hd_expr_int(arena, a->type, 0);
  const hd_expr_t *e = hd_expr_binary(arena, kind, a, b);
  const hd_expr_t *folded = hd_expr_fold(arena, e);
  return folded ? folded : e;
}

// e as the type of the index arithmetic.
const hd_expr_t *hd_layout_convert(hd_arena_t *arena, hd_type_t type,
                                   const hd_expr_t *e) {
  if (hd_type_equal(e->type, type))
    return e;
  const hd_expr_t *cast = hd_expr_cast(arena, type, e);
  const hd_expr_t *folded = hd_expr_fold(arena, cast);
  return folded ? folded : cast;
}

const hd_layout_item_t *hd_layout_base(const hd_tensor_t *tensor) {
  static const hd_layout_item_t row = {HD_LAYOUT_ROW, 0, NULL, NULL};
  const hd_layout_t *layout = tensor->layout;
  if (!layout || layout->num_items == 0 ||
      layout->items[0].kind == HD_LAYOUT_SWIZZLE)
    return &row;
  return &layout->items[0];
}

// Shapes whose product is no constant may be large.
hd_type_t hd_layout_index_type(const hd_tensor_t *tensor) {
  int64_t elements;
  if (tensor->scope != HD_SCOPE_GLOBAL)
    return hd_type(HD_I32);
  return hd_type(hd_tensor_storage_const(tensor, &elements) &&
                         elements <= INT32_MAX
                     ? HD_I32
                     : HD_I64);
}

// Row-major over axes in the given order (NULL: as they stand).
static const hd_expr_t *linearize(hd_arena_t *arena, hd_type_t type,
                                  const hd_expr_t *const *shape,
                                  const hd_expr_t *const *indices,
                                  const hd_expr_t *const *order,
                                  unsigned rank) {
  const hd_expr_t *offset = NULL;
  for (unsigned i = 0; i < rank; i++) {
    unsigned axis = order ? (unsigned)hd_layout_number(order[i]) : i;
    if (offset)
      offset = hd_layout_binary(arena, HD_EXPR_MUL, offset,
                                hd_layout_convert(arena, type, shape[axis]));
    offset = add_offsets(arena, offset,
                         hd_layout_convert(arena, type, indices[axis]));
  }
  return offset ? offset : hd_expr_int(arena, type, 0);
}

static const hd_expr_t *strided(hd_arena_t *arena, hd_type_t type,
                                const hd_layout_item_t *item,
                                const hd_expr_t *const *indices,
                                unsigned rank) {
  const hd_expr_t *offset = NULL;
  for (unsigned i = 0; i < rank; i++)
    offset = add_offsets(
        arena, offset,
        hd_layout_binary(arena, HD_EXPR_MUL,
                         hd_layout_convert(arena, type, indices[i]),
                         hd_layout_convert(arena, type, item->values[i])));
  return offset ? offset : hd_expr_int(arena, type, 0);
}

static const hd_expr_t *tiled(hd_arena_t *arena, hd_type_t type,
                              const hd_tensor_t *tensor,
                              const hd_layout_item_t *item,
                              const hd_expr_t *const *indices) {
  const hd_expr_t *shape[2 * HD_MAX_RANK], *index[2 * HD_MAX_RANK];
  unsigned rank = tensor->rank;
  for (unsigned i = 0; i < rank; i++) {
    int64_t tile = hd_layout_number(item->values[i]);
    const hd_expr_t *size = hd_expr_int(arena, type, tile);
    const hd_expr_t *x = hd_layout_convert(arena, type, indices[i]);
    index[i] = hd_layout_binary(arena, HD_EXPR_DIV, x, size);
    index[rank + i] = hd_layout_binary(arena, HD_EXPR_MOD, x, size);
    const hd_expr_t *rounded =
        add_offsets(arena, hd_layout_convert(arena, type, tensor->shape[i]),
                    hd_expr_int(arena, type, tile - 1));
    const hd_expr_t *folded = hd_expr_fold(arena, rounded);
    shape[i] =
        hd_layout_binary(arena, HD_EXPR_DIV, folded ? folded : rounded, size);
    shape[rank + i] = size;
  }
  return linearize(arena, type, shape, index, NULL, 2 * rank);
}

// The place of a task among those of its worker. Splits the task index by the
// composed mappings, inner dimensions first: what a repeat gets counts, what a
// spatial gets is the worker's own business.
static const hd_expr_t *local_place(hd_arena_t *arena,
                                    const hd_mapping_t *mapping,
                                    const hd_expr_t *const *indices,
                                    int64_t *count) {
  hd_type_t type = hd_type(HD_I32);
  const hd_expr_t *outer[HD_MAX_RANK], *inner[HD_MAX_RANK], *place = NULL;
  *count = 1;
  switch (mapping->kind) {
  case HD_MAPPING_SPATIAL:
    return hd_expr_i32(arena, 0);
  case HD_MAPPING_REPEAT:
    for (unsigned i = 0; i < mapping->rank; i++) {
      unsigned axis = mapping->order ? mapping->order[i] : i;
      int64_t dim = mapping->dims[axis];
      if (place)
        place = hd_layout_binary(arena, HD_EXPR_MUL, place,
                                 hd_expr_int(arena, type, dim));
      if (dim > 1)
        place = add_offsets(arena, place, indices[axis]);
      *count *= dim;
    }
    return place ? place : hd_expr_i32(arena, 0);
  case HD_MAPPING_COMPOSE: {
    for (unsigned i = 0; i < mapping->rank; i++) {
      const hd_expr_t *dim = hd_expr_int(arena, type, mapping->right->dims[i]);
      bool outermost = mapping->left->dims[i] == 1;
      outer[i] = outermost
                     ? hd_expr_int(arena, type, 0)
                     : hd_layout_binary(arena, HD_EXPR_DIV, indices[i], dim);
      inner[i] = outermost
                     ? indices[i]
                     : hd_layout_binary(arena, HD_EXPR_MOD, indices[i], dim);
    }
    int64_t outer_count, inner_count;
    const hd_expr_t *a = local_place(arena, mapping->left, outer, &outer_count);
    const hd_expr_t *b =
        local_place(arena, mapping->right, inner, &inner_count);
    *count = outer_count * inner_count;
    return add_offsets(arena,
                       hd_layout_binary(arena, HD_EXPR_MUL, a,
                                        hd_expr_int(arena, type, inner_count)),
                       b);
  }
  case HD_MAPPING_AUTO:
    // The verifier lets none of these be a layout.
  case HD_MAPPING_CUSTOM:
  case HD_MAPPING_WITHIN:
  case HD_MAPPING_IDLE:
    break;
  }
  return hd_expr_i32(arena, 0);
}

static unsigned log2_of(int64_t value) {
  unsigned bits = 0;
  while (value > 1) {
    value >>= 1;
    bits++;
  }
  return bits;
}

hd_swizzle_t hd_swizzle_of(const hd_tensor_t *tensor,
                           const hd_layout_item_t *item) {
  if (item->num_values == 3)
    return (hd_swizzle_t){hd_layout_number(item->values[0]),
                          hd_layout_number(item->values[1]),
                          hd_layout_number(item->values[2])};
  // 16-byte chunks of 128-byte groups: the hardware's pattern counts rows of
  // 128 bytes, and of two or four of them for the narrow forms.
  int64_t bytes = hd_layout_number(item->values[0]);
  return (hd_swizzle_t){log2_of(bytes / 16),
                        log2_of(128 / hd_type_bits(tensor->element)), 3};
}

// A place of which bits of the row's number are turned over.
static const hd_expr_t *swizzled_by(hd_arena_t *arena, hd_swizzle_t s,
                                    const hd_expr_t *place,
                                    const hd_expr_t *row) {
  hd_type_t type = row->type;
  row = hd_expr_binary(arena, HD_EXPR_BITAND, row,
                       hd_expr_int(arena, type, (INT64_C(1) << s.bits) - 1));
  row =
      hd_expr_binary(arena, HD_EXPR_SHL, row, hd_expr_int(arena, type, s.base));
  const hd_expr_t *e = hd_expr_binary(arena, HD_EXPR_BITXOR, place, row);
  const hd_expr_t *folded = hd_expr_fold(arena, e);
  return folded ? folded : e;
}

static const hd_expr_t *swizzled(hd_arena_t *arena, const hd_tensor_t *tensor,
                                 const hd_layout_item_t *item,
                                 const hd_expr_t *offset) {
  hd_swizzle_t s = hd_swizzle_of(tensor, item);
  const hd_expr_t *row =
      hd_expr_binary(arena, HD_EXPR_SHR, offset,
                     hd_expr_int(arena, offset->type, s.base + s.shift));
  return swizzled_by(arena, s, offset, row);
}

// A swizzle straight on rows whose bits it does not cross: the rows' part stays
// a term of its own, and only the place in the row is swizzled by the row's
// number. So steps along the rows are constants added to an address, and a
// swizzled column can be computed once, outside the loops.
static const hd_expr_t *swizzled_rows(hd_arena_t *arena,
                                      const hd_tensor_t *tensor,
                                      const hd_expr_t *const *indices) {
  unsigned last = tensor->rank - 1;
  const hd_layout_t *layout = tensor->layout;
  uint32_t first = layout && layout->num_items > 1 ? 1 : 0;
  int64_t columns;
  if (!layout || layout->num_items != first + 1 || tensor->rank < 2 ||
      layout->items[first].kind != HD_LAYOUT_SWIZZLE ||
      hd_layout_base(tensor)->kind != HD_LAYOUT_ROW ||
      !hd_expr_fold_int(tensor->shape[last], &columns))
    return NULL;
  hd_swizzle_t s = hd_swizzle_of(tensor, &layout->items[first]);
  int64_t group = INT64_C(1) << (s.base + s.shift);
  if (columns % (INT64_C(1) << (s.base + s.bits)) ||
      (columns % group && group % columns))
    return NULL;
  hd_type_t type = hd_layout_index_type(tensor);
  const hd_expr_t *row =
      linearize(arena, type, tensor->shape, indices, NULL, last);
  const hd_expr_t *column = hd_layout_convert(arena, type, indices[last]);
  // The number of the group of 2^(base + shift) elements that this one is in.
  const hd_expr_t *number;
  if (columns >= group) {
    number = hd_layout_binary(arena, HD_EXPR_MUL, row,
                              hd_expr_int(arena, type, columns / group));
    if (columns > group)
      number = add_offsets(arena, number,
                           hd_layout_binary(arena, HD_EXPR_DIV, column,
                                            hd_expr_int(arena, type, group)));
  } else {
    number = hd_layout_binary(arena, HD_EXPR_DIV, row,
                              hd_expr_int(arena, type, group / columns));
  }
  return add_offsets(arena,
                     hd_layout_binary(arena, HD_EXPR_MUL, row,
                                      hd_expr_int(arena, type, columns)),
                     swizzled_by(arena, s, column, number));
}

const hd_expr_t *hd_tensor_bare_offset(hd_arena_t *arena,
                                       const hd_tensor_t *tensor,
                                       const hd_expr_t *const *indices) {
  hd_type_t type = hd_layout_index_type(tensor);
  const hd_layout_item_t *base = hd_layout_base(tensor);
  const hd_expr_t *reversed[HD_MAX_RANK], *offset = NULL;
  int64_t count;
  switch (base->kind) {
  case HD_LAYOUT_ROW:
  case HD_LAYOUT_SWIZZLE:
    offset = linearize(arena, type, tensor->shape, indices, NULL, tensor->rank);
    break;
  case HD_LAYOUT_COLUMN:
    for (unsigned i = 0; i < tensor->rank; i++)
      reversed[i] = hd_expr_i32(arena, tensor->rank - 1 - i);
    offset =
        linearize(arena, type, tensor->shape, indices, reversed, tensor->rank);
    break;
  case HD_LAYOUT_PERMUTE:
    offset = linearize(arena, type, tensor->shape, indices, base->values,
                       tensor->rank);
    break;
  case HD_LAYOUT_STRIDES:
    offset = strided(arena, type, base, indices, tensor->rank);
    break;
  case HD_LAYOUT_TILE:
    offset = tiled(arena, type, tensor, base, indices);
    break;
  case HD_LAYOUT_LOCAL: {
    const hd_expr_t *converted[HD_MAX_RANK];
    for (unsigned i = 0; i < tensor->rank; i++)
      converted[i] = hd_layout_convert(arena, type, indices[i]);
    offset = local_place(arena, base->mapping, converted, &count);
    break;
  }
  }
  return offset;
}

const hd_expr_t *hd_tensor_offset(hd_arena_t *arena, const hd_tensor_t *tensor,
                                  const hd_expr_t *const *indices) {
  const hd_expr_t *offset = swizzled_rows(arena, tensor, indices);
  if (offset)
    return offset;
  offset = hd_tensor_bare_offset(arena, tensor, indices);
  for (unsigned i = 0; tensor->layout && i < tensor->layout->num_items; i++)
    if (tensor->layout->items[i].kind == HD_LAYOUT_SWIZZLE)
      offset = swizzled(arena, tensor, &tensor->layout->items[i], offset);
  return offset;
}

const char *hd_tensor_why_apart(const hd_tensor_t *tensor, unsigned lanes) {
  int64_t bits = hd_type_bits(tensor->element);
  const hd_layout_t *layout = tensor->layout;
  for (uint32_t i = 0; layout && i < layout->num_items; i++) {
    const hd_layout_item_t *item = &layout->items[i];
    const hd_expr_t *last =
        item->num_values ? item->values[item->num_values - 1] : NULL;
    int64_t value = 0;
    switch (item->kind) {
    case HD_LAYOUT_ROW:
      break;
    case HD_LAYOUT_COLUMN:
      if (tensor->rank > 1)
        return "runs along the last axis, which a column-major layout keeps "
               "apart";
      break;
    case HD_LAYOUT_STRIDES:
      if (!last || !hd_expr_is_int(last, 1))
        return "needs a last stride of 1";
      break;
    case HD_LAYOUT_PERMUTE:
      if (!last || !hd_expr_fold_int(last, &value) ||
          value != (int64_t)tensor->rank - 1)
        return "runs along the last axis, which this layout keeps apart";
      break;
    case HD_LAYOUT_TILE:
      if (!last || !hd_expr_fold_int(last, &value) || value % lanes)
        return "would leave its tile";
      break;
    case HD_LAYOUT_SWIZZLE:
      if (bits && item->num_values == 1) // void has its own fault.
        value = 128 / bits;
      else if (item->num_values > 1 &&
               hd_expr_fold_int(item->values[1], &value))
        // A shift out of range has its own fault.
        value = INT64_C(1) << (value >= 0 && value < 32 ? value : 31);
      if ((int64_t)lanes > value)
        return "would leave the swizzle's unit";
      break;
    case HD_LAYOUT_LOCAL:
      break; // Settled by the place, which is a constant in the end.
    }
  }
  return NULL;
}

bool hd_layout_item_within(const hd_layout_item_t *item, int64_t least,
                           int64_t most) {
  for (uint32_t i = 0; i < item->num_values; i++) {
    int64_t value;
    if (!hd_expr_fold_int(item->values[i], &value) || value < least ||
        value > most)
      return false;
  }
  return true;
}

const hd_layout_t *hd_layout_make(hd_arena_t *arena, hd_layout_item_t item) {
  hd_layout_t *layout = hd_arena_alloc(arena, sizeof(*layout) + sizeof(item));
  layout->num_items = 1;
  layout->items[0] = item;
  return layout;
}

bool hd_tensor_is_row_major(const hd_tensor_t *tensor) {
  const hd_layout_t *layout = tensor->layout;
  return !layout ||
         (layout->num_items == 1 && layout->items[0].kind == HD_LAYOUT_ROW);
}
