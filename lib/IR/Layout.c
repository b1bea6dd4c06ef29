// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layouts applied: indices to offsets, shapes to storage.
#include "IR/Mapping.h"

static int64_t constant(const hd_expr_t *e) {
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

static const hd_expr_t *binary(hd_arena_t *arena, hd_expr_kind_t kind,
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

static const hd_expr_t *integer(hd_arena_t *arena, hd_type_t type,
                                int64_t value) {
  return hd_expr_int(arena, type, value);
}

// e as the type of the index arithmetic.
static const hd_expr_t *convert(hd_arena_t *arena, hd_type_t type,
                                const hd_expr_t *e) {
  if (hd_type_equal(e->type, type))
    return e;
  const hd_expr_t *cast = hd_expr_cast(arena, type, e);
  const hd_expr_t *folded = hd_expr_fold(arena, cast);
  return folded ? folded : cast;
}

static const hd_layout_item_t *base_of(const hd_tensor_t *tensor) {
  static const hd_layout_item_t row = {HD_LAYOUT_ROW, 0, NULL, NULL};
  const hd_layout_t *layout = tensor->layout;
  if (!layout || layout->num_items == 0 ||
      layout->items[0].kind == HD_LAYOUT_SWIZZLE)
    return &row;
  return &layout->items[0];
}

// Shapes whose product is no constant may be large.
static hd_type_t index_type(const hd_tensor_t *tensor) {
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
    unsigned axis = order ? (unsigned)constant(order[i]) : i;
    if (offset)
      offset =
          binary(arena, HD_EXPR_MUL, offset, convert(arena, type, shape[axis]));
    offset = add_offsets(arena, offset, convert(arena, type, indices[axis]));
  }
  return offset ? offset : integer(arena, type, 0);
}

static const hd_expr_t *strided(hd_arena_t *arena, hd_type_t type,
                                const hd_layout_item_t *item,
                                const hd_expr_t *const *indices,
                                unsigned rank) {
  const hd_expr_t *offset = NULL;
  for (unsigned i = 0; i < rank; i++)
    offset =
        add_offsets(arena, offset,
                    binary(arena, HD_EXPR_MUL, convert(arena, type, indices[i]),
                           convert(arena, type, item->values[i])));
  return offset ? offset : integer(arena, type, 0);
}

static const hd_expr_t *tiled(hd_arena_t *arena, hd_type_t type,
                              const hd_tensor_t *tensor,
                              const hd_layout_item_t *item,
                              const hd_expr_t *const *indices) {
  const hd_expr_t *shape[2 * HD_MAX_RANK], *index[2 * HD_MAX_RANK];
  unsigned rank = tensor->rank;
  for (unsigned i = 0; i < rank; i++) {
    int64_t tile = constant(item->values[i]);
    const hd_expr_t *size = integer(arena, type, tile);
    const hd_expr_t *x = convert(arena, type, indices[i]);
    index[i] = binary(arena, HD_EXPR_DIV, x, size);
    index[rank + i] = binary(arena, HD_EXPR_MOD, x, size);
    const hd_expr_t *rounded =
        add_offsets(arena, convert(arena, type, tensor->shape[i]),
                    integer(arena, type, tile - 1));
    const hd_expr_t *folded = hd_expr_fold(arena, rounded);
    shape[i] = binary(arena, HD_EXPR_DIV, folded ? folded : rounded, size);
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
        place = binary(arena, HD_EXPR_MUL, place, integer(arena, type, dim));
      if (dim > 1)
        place = add_offsets(arena, place, indices[axis]);
      *count *= dim;
    }
    return place ? place : hd_expr_i32(arena, 0);
  case HD_MAPPING_COMPOSE: {
    for (unsigned i = 0; i < mapping->rank; i++) {
      const hd_expr_t *dim = integer(arena, type, mapping->right->dims[i]);
      bool outermost = mapping->left->dims[i] == 1;
      outer[i] = outermost ? integer(arena, type, 0)
                           : binary(arena, HD_EXPR_DIV, indices[i], dim);
      inner[i] =
          outermost ? indices[i] : binary(arena, HD_EXPR_MOD, indices[i], dim);
    }
    int64_t outer_count, inner_count;
    const hd_expr_t *a = local_place(arena, mapping->left, outer, &outer_count);
    const hd_expr_t *b =
        local_place(arena, mapping->right, inner, &inner_count);
    *count = outer_count * inner_count;
    return add_offsets(
        arena, binary(arena, HD_EXPR_MUL, a, integer(arena, type, inner_count)),
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

typedef struct swizzle {
  int64_t bits, base, shift;
} swizzle_t;

static swizzle_t swizzle_of(const hd_tensor_t *tensor,
                            const hd_layout_item_t *item) {
  if (item->num_values == 3)
    return (swizzle_t){constant(item->values[0]), constant(item->values[1]),
                       constant(item->values[2])};
  // 16-byte chunks of 128-byte groups: the hardware's pattern counts rows of
  // 128 bytes, and of two or four of them for the narrow forms.
  int64_t bytes = constant(item->values[0]);
  return (swizzle_t){log2_of(bytes / 16),
                     log2_of(128 / hd_type_bits(tensor->element)), 3};
}

static const hd_expr_t *swizzled(hd_arena_t *arena, const hd_tensor_t *tensor,
                                 const hd_layout_item_t *item,
                                 const hd_expr_t *offset) {
  swizzle_t s = swizzle_of(tensor, item);
  hd_type_t type = offset->type;
  const hd_expr_t *row = hd_expr_binary(arena, HD_EXPR_SHR, offset,
                                        integer(arena, type, s.base + s.shift));
  row = hd_expr_binary(arena, HD_EXPR_BITAND, row,
                       integer(arena, type, (INT64_C(1) << s.bits) - 1));
  row = hd_expr_binary(arena, HD_EXPR_SHL, row, integer(arena, type, s.base));
  const hd_expr_t *e = hd_expr_binary(arena, HD_EXPR_BITXOR, offset, row);
  const hd_expr_t *folded = hd_expr_fold(arena, e);
  return folded ? folded : e;
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
      base_of(tensor)->kind != HD_LAYOUT_ROW ||
      !hd_expr_fold_int(tensor->shape[last], &columns))
    return NULL;
  swizzle_t s = swizzle_of(tensor, &layout->items[first]);
  int64_t group = INT64_C(1) << (s.base + s.shift);
  if (columns % (INT64_C(1) << (s.base + s.bits)) ||
      (columns % group && group % columns))
    return NULL;
  hd_type_t type = index_type(tensor);
  const hd_expr_t *row =
      linearize(arena, type, tensor->shape, indices, NULL, last);
  const hd_expr_t *column = convert(arena, type, indices[last]);
  // The number of the group of 2^(base + shift) elements that this one is in.
  const hd_expr_t *number;
  if (columns >= group) {
    number =
        binary(arena, HD_EXPR_MUL, row, integer(arena, type, columns / group));
    if (columns > group)
      number = add_offsets(
          arena, number,
          binary(arena, HD_EXPR_DIV, column, integer(arena, type, group)));
  } else {
    number =
        binary(arena, HD_EXPR_DIV, row, integer(arena, type, group / columns));
  }
  number = hd_expr_binary(arena, HD_EXPR_BITAND, number,
                          integer(arena, type, (INT64_C(1) << s.bits) - 1));
  number =
      hd_expr_binary(arena, HD_EXPR_SHL, number, integer(arena, type, s.base));
  const hd_expr_t *place =
      hd_expr_binary(arena, HD_EXPR_BITXOR, column, number);
  const hd_expr_t *folded = hd_expr_fold(arena, place);
  return add_offsets(
      arena, binary(arena, HD_EXPR_MUL, row, integer(arena, type, columns)),
      folded ? folded : place);
}

const hd_expr_t *hd_tensor_bare_offset(hd_arena_t *arena,
                                       const hd_tensor_t *tensor,
                                       const hd_expr_t *const *indices) {
  hd_type_t type = index_type(tensor);
  const hd_layout_item_t *base = base_of(tensor);
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
      converted[i] = convert(arena, type, indices[i]);
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
    swizzle_t s = swizzle_of(tensor, item);
    if (s.bits > 0 && INT64_C(1) << (s.base + s.bits) > group)
      group = INT64_C(1) << (s.base + s.bits);
  }
  return group;
}

static bool base_size(const hd_tensor_t *tensor, int64_t *elements) {
  const hd_layout_item_t *base = base_of(tensor);
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
      int64_t tile = constant(base->values[i]);
      if (size > INT64_MAX - tile)
        return false;
      size = (size + tile - 1) / tile * tile;
    }
    if (!multiply(elements, size))
      return false;
  }
  return true;
}

static bool within(const hd_layout_item_t *item, int64_t least, int64_t most) {
  for (uint32_t i = 0; i < item->num_values; i++) {
    int64_t value;
    if (!hd_expr_fold_int(item->values[i], &value) || value < least ||
        value > most)
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
      sound = per_axis && within(item, 0, (int64_t)tensor->rank - 1);
      break;
    case HD_LAYOUT_TILE:
      sound = per_axis && within(item, 1, HD_MAX_TILE);
      break;
    case HD_LAYOUT_SWIZZLE:
      sound = item->num_values == 3   ? within(item, 0, HD_MAX_SWIZZLE_BITS)
              : item->num_values == 1 ? within(item, 32, 128)
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
  const hd_expr_t *one = integer(arena, e->type, 1);
  e = hd_expr_binary(arena, HD_EXPR_ADD, e,
                     binary(arena, HD_EXPR_SUB, unit, one));
  return binary(arena, HD_EXPR_MUL, binary(arena, HD_EXPR_DIV, e, unit), unit);
}

const hd_expr_t *hd_tensor_storage(hd_arena_t *arena,
                                   const hd_tensor_t *tensor) {
  int64_t elements;
  if (hd_tensor_storage_const(tensor, &elements))
    return hd_expr_int(arena, hd_type(elements <= INT32_MAX ? HD_I32 : HD_I64),
                       elements);
  hd_type_t type = index_type(tensor);
  const hd_layout_item_t *base = base_of(tensor);
  const hd_expr_t *one = integer(arena, type, 1);
  const hd_expr_t *size = one;
  for (unsigned i = 0; i < tensor->rank; i++) {
    const hd_expr_t *dim = convert(arena, type, tensor->shape[i]);
    if (base->kind == HD_LAYOUT_STRIDES) {
      const hd_expr_t *span = hd_expr_binary(arena, HD_EXPR_SUB, dim, one);
      size = hd_expr_binary(arena, HD_EXPR_ADD, size,
                            binary(arena, HD_EXPR_MUL, span,
                                   convert(arena, type, base->values[i])));
      continue;
    }
    if (base->kind == HD_LAYOUT_TILE)
      dim = round_up(arena, dim, convert(arena, type, base->values[i]));
    size = binary(arena, HD_EXPR_MUL, size, dim);
  }
  int64_t group = group_of(tensor);
  return group > 1 ? round_up(arena, size, integer(arena, type, group)) : size;
}
