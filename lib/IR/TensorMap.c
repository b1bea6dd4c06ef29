// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/TensorMap.h"

#include <stdarg.h>
#include <stdio.h>

static const int64_t most_size = INT64_C(1) << 32;
static const int64_t stride_limit = INT64_C(1) << 40;
enum { UNIT = 16 }; // Bytes that addresses and strides are counted in.

typedef struct maker {
  hd_diagnostics_t *diags;
  const hd_env_t *env;
  const hd_func_t *kernel;
  const hd_var_t *var;
  hd_tensor_map_t *map;
} maker_t;

static bool fail(const maker_t *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool fail(const maker_t *m, const char *format, ...) {
  char text[300];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  return hd_error(m->diags, m->var->loc, HD_E0611, m->kernel->name,
                  m->map->name, m->map->tensor, text);
}

// The value of an expression of the map, between two bounds.
static bool read(const maker_t *m, const hd_expr_t *e, const char *what,
                 uint32_t axis, int64_t least, int64_t most, int64_t *value) {
  if (!hd_eval_int(m->env, e, value))
    return fail(m, "%s of axis %u is not known", what, axis);
  return (*value >= least && *value <= most) ||
         fail(m, "%s of axis %u is %lld, and %lld to %lld are possible", what,
              axis, (long long)*value, (long long)least, (long long)most);
}

// Strides in elements: as a layout strides(...) says, else row-major.
static bool read_strides(const maker_t *m, int64_t *strides) {
  const hd_tensor_t *tensor = m->var->map->tensor->tensor;
  const hd_layout_t *layout = tensor->layout;
  bool is_strided = layout && layout->num_items > 0 &&
                    layout->items[0].kind == HD_LAYOUT_STRIDES;
  strides[tensor->rank - 1] = 1;
  for (uint32_t i = tensor->rank - 1; i-- > 0;) {
    if (!is_strided)
      strides[i] = strides[i + 1] * m->map->sizes[i + 1];
    else if (!read(m, layout->items[0].values[i], "the stride", i, 0,
                   stride_limit, &strides[i]))
      return false;
    if (strides[i] > stride_limit) // The next product must not wrap.
      return fail(m, "the stride of axis %u is 2^40 bytes or more", i);
  }
  return true;
}

static bool read_geometry(const maker_t *m) {
  const hd_tensor_t *tensor = m->var->map->tensor->tensor;
  hd_tensor_map_t *map = m->map;
  int64_t strides[HD_MAP_MAX_RANK];
  for (uint32_t i = 0; i < map->rank; i++)
    if (!read(m, tensor->shape[i], "the size", i, 1, most_size, &map->sizes[i]))
      return false;
  if (!read_strides(m, strides))
    return false;
  for (uint32_t i = 0; i < map->rank; i++) {
    int64_t bytes = strides[i] * map->element_bytes;
    map->strides[i] = bytes;
    if (i + 1 == map->rank)
      break;
    if (bytes % UNIT)
      return fail(m,
                  "the stride of axis %u is %lld bytes, and the copy engine "
                  "needs a multiple of %d (%u elements of %s)",
                  i, (long long)bytes, UNIT, UNIT / map->element_bytes,
                  hd_type_name(tensor->element));
    if (bytes >= stride_limit)
      return fail(m, "the stride of axis %u is 2^40 bytes or more", i);
  }
  return true;
}

// What the verifier has seen as constants is looked at again: a map may have
// been made by other means than the parser.
static bool read_box(const maker_t *m) {
  static const int64_t most_pixels = 1024, most_extent = 256;
  const hd_map_t *from = m->var->map;
  hd_tensor_map_t *map = m->map;
  int64_t box[HD_MAP_MAX_RANK];
  uint32_t count = from->num_box;
  if (count != (from->im2col ? 2 : map->rank))
    return fail(m, "its box has %u extents", count);
  for (uint32_t i = 0; i < count; i++) {
    int64_t most = from->im2col && i == 0 ? most_pixels : most_extent;
    if (!read(m, from->box[i], "the box's extent", i, 1, most, &box[i]))
      return false;
    map->box[i] = from->im2col ? 0 : (uint32_t)box[i];
  }
  if (from->im2col) {
    map->pixels = (uint32_t)box[0];
    map->channels = (uint32_t)box[1];
  }
  int64_t inner = box[count - 1] * map->element_bytes;
  if (inner % UNIT)
    return fail(m,
                "its box is %lld bytes along the last axis, and the copy "
                "engine needs a multiple of %d",
                (long long)inner, UNIT);
  return !map->swizzle || inner <= map->swizzle ||
         fail(m,
              "its box is %lld bytes along the last axis, longer than the "
              "swizzle's pattern of %u",
              (long long)inner, map->swizzle);
}

// Corners have 16, 8 or 5 bits, by the number of inner axes.
static bool read_corners(const maker_t *m) {
  static const int64_t limits[] = {0, 1 << 15, 1 << 7, 1 << 4};
  const hd_map_t *from = m->var->map;
  hd_tensor_map_t *map = m->map;
  uint32_t count = map->rank - 2;
  for (uint32_t i = 0; i < count; i++) {
    int64_t lower, upper, step, limit = limits[count];
    if (!read(m, from->lower[i], "the lower corner", i + 1, -limit, limit - 1,
              &lower) ||
        !read(m, from->upper[i], "the upper corner", i + 1, -limit, limit - 1,
              &upper) ||
        !read(m, from->step[i], "the step", i + 1, 1, 8, &step))
      return false;
    if (map->sizes[i + 1] - 1 + upper < lower)
      return fail(m,
                  "the window has no position along axis %u: it would go from "
                  "%lld to %lld",
                  i + 1, (long long)lower,
                  (long long)(map->sizes[i + 1] - 1 + upper));
    map->lower[i] = (int32_t)lower;
    map->upper[i] = (int32_t)upper;
    map->step[i] = (int32_t)step;
  }
  return true;
}

bool hd_tensor_map_make(hd_diagnostics_t *diags, const hd_env_t *env,
                        const hd_func_t *kernel, uint32_t i,
                        hd_tensor_map_t *map) {
  const hd_var_t *var = kernel->maps[i];
  const hd_var_t *tensor = var->map->tensor;
  *map = (hd_tensor_map_t){
      .name = var->name,
      .tensor = tensor->name,
      .type = (hd_scalar_t)tensor->type.scalar,
      .element_bytes = hd_type_bits(tensor->type) / 8,
      .rank = tensor->tensor->rank,
      .swizzle = var->map->swizzle,
      .l2 = var->map->l2,
      .im2col = var->map->im2col,
  };
  maker_t m = {diags, env, kernel, var, map};
  if (map->rank < (map->im2col ? 3 : 1) || map->rank > HD_MAP_MAX_RANK)
    return fail(&m, "its tensor has %u axes", map->rank);
  return read_geometry(&m) && read_box(&m) &&
         (!map->im2col || read_corners(&m));
}

bool hd_tensor_map_place(hd_diagnostics_t *diags, const hd_func_t *kernel,
                         hd_tensor_map_t *map, uint64_t base) {
  static const hd_loc_t nowhere;
  map->base = base;
  return base % UNIT == 0 ||
         hd_error(diags, nowhere, HD_E0611, kernel->name, map->name,
                  map->tensor, "the tensor's address is no multiple of 16");
}

int64_t hd_tensor_map_span(const hd_tensor_map_t *map) {
  int64_t bytes = map->element_bytes;
  for (uint32_t i = 0; i < map->rank; i++)
    bytes += (map->sizes[i] - 1) * map->strides[i];
  return bytes;
}
