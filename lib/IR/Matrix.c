// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Matrix.h"

enum {
  CORE_ROWS = 8,   // Of a core matrix; each is
  CORE_BYTES = 16, // long.
};

// Strides in bytes, from the constant shape of a row-major or tiled tensor.
typedef struct shape {
  int64_t sizes[HD_MAX_RANK];
  int64_t strides[HD_MAX_RANK]; // Of tiled ones: from tile to tile.
  int64_t element;              // Bytes.
} shape_t;

static const char *read_shape(const hd_tensor_t *tensor, shape_t *shape) {
  unsigned bits = hd_type_bits(tensor->element);
  if (bits < 8)
    return "elements smaller than a byte";
  shape->element = bits / 8;
  int64_t stride = shape->element;
  for (uint32_t i = tensor->rank; i-- > 0;) {
    // The first axis' size does not matter to any stride.
    if (!hd_expr_fold_int(tensor->shape[i], &shape->sizes[i])) {
      if (i > 0)
        return "a shape that is no constant";
      shape->sizes[i] = INT64_MAX;
    }
    shape->strides[i] = stride;
    if (i > 0 && __builtin_mul_overflow(stride, shape->sizes[i], &stride))
      return "a shape that is too large";
  }
  return NULL;
}

// Core matrices as tiles of 8 rows of 16 bytes, tiles in row-major order.
static const char *find_tiled(const hd_tensor_t *tensor, hd_major_t major,
                              const shape_t *shape, hd_matrix_t *matrix) {
  static const char *const why =
      "without a swizzle the last two axes must be in tiles of 8 rows of 16 "
      "bytes: layout(tile(.., 8, 16 bytes))";
  const hd_layout_item_t *item = tensor->layout ? tensor->layout->items : NULL;
  if (!item || tensor->layout->num_items != 1 || item->kind != HD_LAYOUT_TILE ||
      item->num_values != tensor->rank)
    return why;
  uint32_t rank = tensor->rank;
  int64_t line = CORE_BYTES / shape->element;
  for (uint32_t i = 0; i < rank; i++) {
    int64_t tile, wanted = i + 1 == rank ? line : i + 2 == rank ? CORE_ROWS : 1;
    if (!hd_expr_fold_int(item->values[i], &tile) || tile != wanted)
      return why;
  }
  // Along the rows' axis of tiles, and along the lines'.
  uint32_t next = CORE_ROWS * CORE_BYTES;
  int64_t lines = (shape->sizes[rank - 1] + line - 1) / line;
  uint32_t down = next * (uint32_t)lines;
  // PTX: K-major has the step along k as leading, along mn as stride; MN-major
  // without a swizzle has the step along k as leading too.
  matrix->leading = major == HD_MAJOR_K ? next : down;
  matrix->stride = major == HD_MAJOR_K ? down : next;
  return NULL;
}

uint32_t hd_matrix_swizzle(const hd_tensor_t *tensor) {
  const hd_layout_t *layout = tensor->layout;
  int64_t bytes = 0;
  if (!layout || layout->num_items == 0)
    return 0;
  const hd_layout_item_t *last = &layout->items[layout->num_items - 1];
  bool is_row =
      layout->num_items == 1 ||
      (layout->num_items == 2 && layout->items[0].kind == HD_LAYOUT_ROW);
  if (!is_row || last->kind != HD_LAYOUT_SWIZZLE || last->num_values != 1 ||
      !hd_expr_fold_int(last->values[0], &bytes))
    return 0;
  return (uint32_t)bytes;
}

const char *hd_matrix_find(const hd_tensor_t *tensor, hd_major_t major,
                           unsigned extent, hd_matrix_t *matrix) {
  shape_t shape;
  *matrix = (hd_matrix_t){0};
  if (tensor->rank < 2)
    return "a matrix has two axes";
  const char *why = read_shape(tensor, &shape);
  if (why)
    return why;
  matrix->swizzle = hd_matrix_swizzle(tensor);
  if (!matrix->swizzle)
    return find_tiled(tensor, major, &shape, matrix);
  uint32_t rank = tensor->rank;
  int64_t row = shape.sizes[rank - 1] * shape.element;
  if (row != matrix->swizzle)
    return "the last axis must be as many bytes as the swizzle";
  if (tensor->align < CORE_ROWS * matrix->swizzle)
    return "a swizzled matrix must be aligned to eight rows: align(1024) for "
           "swizzle(128)";
  matrix->stride = (uint32_t)(CORE_ROWS * row);
  if (major == HD_MAJOR_K || extent <= shape.sizes[rank - 1])
    return NULL;
  if (rank < 3)
    return "MN-major and wider than the swizzle, so it needs a third axis that "
           "counts the pieces: [mn / size, k, size]";
  if (extent % shape.sizes[rank - 1])
    return "its width is no multiple of the last axis";
  matrix->leading = (uint32_t)shape.strides[rank - 3];
  return NULL;
}

// The instruction reads extent rows or columns, 32 bytes of k.
static const char *find_missing(const hd_tensor_t *tensor, hd_major_t major,
                                unsigned extent) {
  shape_t shape;
  if (read_shape(tensor, &shape))
    return NULL;
  uint32_t rank = tensor->rank;
  int64_t rows = shape.sizes[rank - 2], line = shape.sizes[rank - 1];
  int64_t depth = 2 * CORE_BYTES / shape.element;
  bool is_k = major == HD_MAJOR_K;
  if (!is_k && hd_matrix_swizzle(tensor) && extent > line)
    line = shape.sizes[rank - 3] < extent / line ? 0 : extent;
  return (is_k ? rows : line) < extent || (is_k ? line : rows) < depth
             ? "it is smaller than what the instruction reads"
             : NULL;
}

static bool is_below(const hd_expr_t *index, int64_t rest, int64_t size) {
  int64_t first;
  return !hd_expr_fold_int(index, &first) ||
         (first >= 0 && first <= size - rest);
}

static bool is_multiple(const hd_expr_t *index, int64_t of) {
  int64_t first;
  return !hd_expr_fold_int(index, &first) || first % of == 0;
}

// Where the matrix begins, as far as it is constant; for the rest the simulator
// looks. The rows of a swizzle's pattern are counted by the address, so that
// any is one to begin at; core matrices are taken whole.
static const char *find_misplaced(const hd_expr_t *place, hd_major_t major,
                                  unsigned extent) {
  const hd_tensor_t *tensor = place->u.var->tensor;
  uint32_t rank = tensor->rank;
  shape_t shape;
  if (place->linear || place->num_operands != rank ||
      read_shape(tensor, &shape))
    return NULL;
  const hd_expr_t *row = place->operands[rank - 2];
  const hd_expr_t *column = place->operands[rank - 1];
  int64_t depth = 2 * CORE_BYTES / shape.element;
  if (!hd_matrix_swizzle(tensor) && !is_multiple(row, CORE_ROWS))
    return "without a swizzle it must begin at a multiple of 8 along the last "
           "axis but one";
  if (!is_multiple(column, CORE_BYTES / shape.element))
    return "it must begin at a multiple of 16 bytes along the last axis";
  bool is_k = major == HD_MAJOR_K;
  int64_t line = shape.sizes[rank - 1];
  int64_t across = extent < line ? (int64_t)extent : line; // Of one piece.
  if (!is_below(row, is_k ? (int64_t)extent : depth, shape.sizes[rank - 2]) ||
      !is_below(column, is_k ? depth : across, line))
    return "what the instruction reads leaves the matrix";
  return NULL;
}

const char *hd_matrix_operand(const hd_intrinsic_info_t *info,
                              const hd_expr_t *call, unsigned i,
                              hd_matrix_t *matrix) {
  unsigned before = 0; // Matrices.
  bool is_b = true;
  for (unsigned k = 0; k < info->num_params; k++) {
    bool is_matrix = info->params[k].form == HD_PARAM_MATRIX;
    before += is_matrix && k < i;
    is_b &= !(is_matrix && k > i);
  }
  hd_major_t major = HD_MAJOR_K;
  for (unsigned k = 0; k < info->num_params; k++)
    if (info->params[k].form == HD_PARAM_MAJOR && before-- == 0)
      major = (hd_major_t)call->operands[k]->u.i;
  int64_t n = call->operands[info->count]->u.i;
  const hd_tensor_t *tensor = call->operands[i]->u.var->tensor;
  unsigned extent = is_b ? (unsigned)n : 64;
  const char *why = hd_matrix_find(tensor, major, extent, matrix);
  why = why ? why : find_missing(tensor, major, extent);
  return why ? why : find_misplaced(call->operands[i], major, extent);
}

uint64_t hd_matrix_encode(const hd_matrix_t *matrix) {
  uint64_t leading = matrix->leading ? matrix->leading / CORE_BYTES : 1;
  uint64_t stride = matrix->stride / CORE_BYTES;
  uint64_t swizzle = matrix->swizzle == 128  ? 1
                     : matrix->swizzle == 64 ? 2
                     : matrix->swizzle == 32 ? 3
                                             : 0;
  return leading << 16 | stride << 32 | swizzle << 62;
}
