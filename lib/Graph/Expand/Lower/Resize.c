// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Resize and Upsample. Interpolation goes axis by axis, and each element along
// an axis is a sum of neighbours, whose places and weights are computed here:
// tables, for shapes are known.
#include "Graph/Expand/Lower/Lower.h"

#include <math.h>
#include <string.h>

typedef enum { NEAREST, LINEAR, CUBIC } interpolation_t;

typedef struct resize {
  interpolation_t mode;
  const char *coordinates, *rounding;
  bool antialias, exclude_outside;
  double a; // Of the cubic.
  double extrapolation;
  // For each axis of x:
  double scales[HD_MAX_RANK];
  int64_t sizes[HD_MAX_RANK];
  double start[HD_MAX_RANK], end[HD_MAX_RANK]; // Of the region, 0 to 1.
} resize_t;

// The neighbours of every element along an axis.
typedef struct taps {
  int64_t inputs, outputs, count;
  double scale;
  hd_host_tensor_t *at, *weight, *outside;
} taps_t;

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static bool crops(const resize_t *r) {
  return is(r->coordinates, "tf_crop_and_resize");
}

// Whether an axis stays as it is.
static bool keeps(const resize_t *r, const hd_value_t *x, int axis) {
  return fabs(r->scales[axis] - 1) < 1e-9 &&
         r->sizes[axis] == hd_lower_size(x, axis) &&
         (!crops(r) || (r->start[axis] == 0 && r->end[axis] == 1));
}

// Where element i of the result lies among x's.
static double place(const resize_t *r, int axis, const taps_t *t, int64_t i) {
  double in = (double)t->inputs, length = r->scales[axis] * in;
  double half = ((double)i + 0.5) / r->scales[axis] - 0.5;
  if (is(r->coordinates, "align_corners"))
    return length == 1 ? 0 : (double)i * (in - 1) / (length - 1);
  if (is(r->coordinates, "asymmetric"))
    return (double)i / r->scales[axis];
  if (is(r->coordinates, "pytorch_half_pixel"))
    return length == 1 ? -0.5 : half;
  if (is(r->coordinates, "half_pixel_symmetric"))
    return (in - 1 + (double)(2 * i + 1 - t->outputs) / r->scales[axis]) / 2;
  if (!crops(r))
    return half;
  double span = (r->end[axis] - r->start[axis]) * (in - 1);
  return r->start[axis] * (in - 1) +
         (length == 1 ? span / 2 : (double)i * span / (length - 1));
}

static double linear_weight(double x) {
  x = fabs(x);
  return x < 1 ? 1 - x : 0;
}

static double cubic_weight(double x, double a) {
  x = fabs(x);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// How far the neighbours reach to the left, and how many there are. Narrowing
// with antialias, more take part.
static int64_t reach(const resize_t *r, double scale, int64_t *count) {
  double radius = r->mode == CUBIC ? 2 : 1;
  if (r->antialias && scale < 1)
    radius /= scale;
  int64_t start = (int64_t)floor(-radius) + 1;
  *count = 2 - 2 * start;
  return start;
}

static int64_t nearest(const resize_t *r, double x) {
  double low = floor(x), ratio = x - low;
  bool up = is(r->rounding, "ceil") ||
            (is(r->rounding, "round_prefer_floor") && ratio > 0.5) ||
            (is(r->rounding, "round_prefer_ceil") && ratio >= 0.5);
  return (int64_t)(ratio != 0 && up ? low + 1 : low);
}

static int64_t clamp(int64_t i, int64_t size) {
  return i < 0 ? 0 : i < size ? i : size - 1;
}

// Row i of the tables. An element that lies on one of x's counts as at the end
// of the step from the one before.
static void fill_row(const resize_t *r, const taps_t *t, int64_t i, double x) {
  double low = floor(x), ratio = x - low, sum = 0;
  int64_t count = t->count, ignored, first;
  if (r->mode == NEAREST) {
    hd_host_tensor_set_int(t->at, i, clamp(nearest(r, x), t->inputs));
    hd_host_tensor_set(t->weight, i, 1);
    return;
  }
  if (ratio == 0) {
    low -= 1;
    ratio = 1;
  }
  int64_t start = reach(r, t->scale, &ignored);
  double narrow = r->antialias && t->scale < 1 ? t->scale : 1;
  first = (int64_t)low + start;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t k = 0; k < count; k++) {
      double distance = narrow * ((double)(start + k) - ratio);
      double weight = r->mode == CUBIC ? cubic_weight(distance, r->a)
                                       : linear_weight(distance);
      int64_t at = first + k;
      if (r->exclude_outside && (at < 0 || at >= t->inputs))
        weight = 0;
      if (pass == 0) {
        sum += weight;
        continue;
      }
      bool normalize = (r->antialias || r->exclude_outside) && sum != 0;
      hd_host_tensor_set_int(t->at, i * count + k, clamp(at, t->inputs));
      hd_host_tensor_set(t->weight, i * count + k,
                         normalize ? weight / sum : weight);
    }
}

// Elements of x whose nearest ones along all axes go on evenly; NULL: they do
// not.
static const hd_value_t *resize_evenly(hd_lowering_t *l, const resize_t *r,
                                       const hd_value_t *x) {
  hd_spacing_t spacing[HD_MAX_RANK];
  for (int axis = 0; axis < x->rank; axis++) {
    taps_t t = {.inputs = hd_lower_size(x, axis), .outputs = r->sizes[axis]};
    if (t.inputs == 0 || t.outputs == 0 || t.outputs > HD_SPACING_PLACES)
      return NULL;
    int64_t *places = HD_ARENA_ARRAY(hd_lower_arena(l), int64_t, t.outputs);
    for (int64_t i = 0; i < t.outputs; i++) {
      double at = keeps(r, x, axis) ? (double)i : place(r, axis, &t, i);
      if (!(fabs(at) < 1e15))
        return NULL;
      places[i] = clamp(nearest(r, at), t.inputs);
    }
    if (!hd_spacing_find(places, t.outputs, &spacing[axis]))
      return NULL;
  }
  return hd_lower_sample(l, x, spacing, r->sizes);
}

static const hd_value_t *resize_axis(hd_lowering_t *l, const resize_t *r,
                                     const hd_value_t *x, int axis) {
  taps_t t = {.inputs = hd_lower_size(x, axis),
              .outputs = r->sizes[axis],
              .count = 1,
              .scale = r->scales[axis]};
  bool gathers = r->mode == NEAREST && !crops(r);
  if (t.inputs == 0)
    return hd_lower_invalid(l, "axis %d is empty", axis), NULL;
  if (r->mode != NEAREST)
    reach(r, t.scale, &t.count);
  int64_t shape[] = {t.outputs, t.count};
  hd_scalar_t type = gathers ? HD_F32 : x->type;
  const hd_value_t *inputs[] = {
      x, hd_lower_constant(l, HD_I64, shape, gathers ? 1 : 2, &t.at),
      hd_lower_constant(l, type, shape, 2, &t.weight),
      hd_lower_constant(l, HD_BOOL, shape, 1, &t.outside)};
  if (!inputs[1] || !inputs[2] || !inputs[3])
    return NULL;
  for (int64_t i = 0; i < t.outputs; i++) {
    double at = place(r, axis, &t, i);
    bool outside = crops(r) && (at < 0 || at > (double)(t.inputs - 1));
    if (!(fabs(at) < 1e15))
      return hd_lower_invalid(l, "an element lies at %g", at), NULL;
    hd_host_tensor_set_int(t.outside, i, outside);
    fill_row(r, &t, i, at);
  }
  if (gathers)
    return hd_lower_gather(l, x, inputs[1], axis);
  hd_attributes_t list = {0};
  hd_attributes_int(l, &list, "s", axis);
  if (crops(r))
    hd_attributes_float(l, &list, "value", r->extrapolation);
  return hd_lower_task(l, crops(r) ? "resample_else" : "resample", inputs,
                       crops(r) ? 4 : 3, &list, NULL);
}

// Sums of weights and elements are taken in floats.
static const hd_value_t *resize(hd_lowering_t *l, const resize_t *r,
                                const hd_value_t *x) {
  hd_scalar_t type = x->type;
  bool sums = r->mode != NEAREST || crops(r);
  bool is_float = hd_type_is_float(hd_type(type));
  const hd_value_t *even = sums ? NULL : resize_evenly(l, r, x);
  if (even)
    return even;
  if (sums)
    x = hd_lower_cast(l, x, is_float ? hd_scalar_accumulator(type) : HD_F32);
  for (int axis = 0; x && axis < x->rank; axis++) {
    if (!keeps(r, x, axis))
      x = resize_axis(l, r, x, axis);
  }
  if (x && sums && !is_float)
    x = hd_lower_unary(l, "round", x);
  return x ? hd_lower_cast(l, x, type) : NULL;
}

static bool read_modes(hd_lowering_t *l, resize_t *r) {
  static const char *const coordinates[] = {
      "half_pixel",          "half_pixel_symmetric", "pytorch_half_pixel",
      "align_corners",       "asymmetric",           "tf_crop_and_resize",
      "tf_half_pixel_for_nn"};
  static const char *const roundings[] = {"round_prefer_floor",
                                          "round_prefer_ceil", "floor", "ceil"};
  bool old = hd_lower_version(l) < 11 || is(hd_lower_node(l)->op, "Upsample");
  const char *mode = hd_lower_string(l, "mode", "nearest");
  r->coordinates =
      old ? "asymmetric"
          : hd_lower_string(l, "coordinate_transformation_mode", "half_pixel");
  r->rounding =
      old ? "floor" : hd_lower_string(l, "nearest_mode", "round_prefer_floor");
  bool known = false;
  for (size_t i = 0; i < sizeof coordinates / sizeof *coordinates; i++)
    known |= is(r->coordinates, coordinates[i]);
  if (!known)
    return hd_lower_unsupported(l, "coordinate_transformation_mode '%s'",
                                r->coordinates);
  if (is(r->coordinates, "tf_half_pixel_for_nn"))
    return hd_lower_unsupported(l, "coordinate_transformation_mode '%s'",
                                r->coordinates);
  known = false;
  for (size_t i = 0; i < sizeof roundings / sizeof *roundings; i++)
    known |= is(r->rounding, roundings[i]);
  if (!known)
    return hd_lower_invalid(l, "nearest_mode is '%s'", r->rounding);
  if (!is(mode, "nearest") && !is(mode, "linear") && !is(mode, "cubic") &&
      !is(mode, "bilinear"))
    return hd_lower_invalid(l, "mode is '%s'", mode);
  r->mode = is(mode, "nearest") ? NEAREST : is(mode, "cubic") ? CUBIC : LINEAR;
  r->antialias = hd_lower_int(l, "antialias", 0) != 0;
  r->exclude_outside = hd_lower_int(l, "exclude_outside", 0) != 0;
  r->a = hd_lower_float(l, "cubic_coeff_a", -0.75);
  r->extrapolation = hd_lower_float(l, "extrapolation_value", 0);
  return true;
}

static bool set_scale(hd_lowering_t *l, resize_t *r, const hd_value_t *x,
                      int64_t axis, double scale) {
  double size = floor(scale * (double)hd_lower_size(x, (int)axis));
  if (!(scale > 0) || !(size < 0x1p53))
    return hd_lower_invalid(l, "a scale of %g along axis %lld", scale,
                            (long long)axis);
  r->scales[axis] = scale;
  r->sizes[axis] = (int64_t)size;
  return true;
}

// Scales follow from sizes; a policy takes one for all axes named.
static bool set_sizes(hd_lowering_t *l, resize_t *r, const hd_value_t *x,
                      const hd_axes_t *axes, const int64_t *sizes) {
  const char *policy =
      hd_lower_string(l, "keep_aspect_ratio_policy", "stretch");
  bool larger = is(policy, "not_smaller");
  double chosen = 0;
  if (!larger && !is(policy, "not_larger") && !is(policy, "stretch"))
    return hd_lower_invalid(l, "keep_aspect_ratio_policy is '%s'", policy);
  for (size_t i = 0; i < axes->count; i++) {
    double in = (double)hd_lower_size(x, (int)axes->axes[i]);
    if (sizes[i] < 0 || (in == 0 && sizes[i] != 0))
      return hd_lower_invalid(l, "a size of %lld", (long long)sizes[i]);
    double scale = in == 0 ? 1 : (double)sizes[i] / in;
    r->scales[axes->axes[i]] = scale;
    r->sizes[axes->axes[i]] = sizes[i];
    if (i == 0 || (larger ? scale > chosen : scale < chosen))
      chosen = scale;
  }
  for (size_t i = 0; !is(policy, "stretch") && i < axes->count; i++) {
    int64_t axis = axes->axes[i];
    r->scales[axis] = chosen;
    r->sizes[axis] =
        (int64_t)floor(chosen * (double)hd_lower_size(x, (int)axis) + 0.5);
  }
  return true;
}

static bool read_region(hd_lowering_t *l, resize_t *r, const hd_axes_t *axes,
                        const hd_value_t *roi) {
  const hd_host_tensor_t *data = roi ? hd_lower_data(l, roi) : NULL;
  if (roi && !data)
    return false;
  if (!data || data->count != (int64_t)(2 * axes->count))
    return hd_lower_invalid(l, "a region of %zu axes is missing", axes->count);
  for (size_t i = 0; i < axes->count; i++) {
    r->start[axes->axes[i]] = hd_host_tensor_get(data, (int64_t)i);
    r->end[axes->axes[i]] =
        hd_host_tensor_get(data, (int64_t)(axes->count + i));
  }
  return true;
}

// Scales are an attribute before version 9, the second input before 11; then
// scales or sizes come behind the region.
static bool read_scales(hd_lowering_t *l, resize_t *r, const hd_value_t *x,
                        const hd_axes_t *axes) {
  bool upsample = is(hd_lower_node(l)->op, "Upsample");
  int version = hd_lower_version(l);
  const hd_value_t *scales =
      hd_lower_input(l, version < 11 || upsample ? 1 : 2);
  const hd_value_t *sizes = hd_lower_input(l, 3);
  if (upsample && version < 9) {
    const hd_attribute_t *list =
        hd_lower_attribute(l, "scales", HD_ATTRIBUTE_FLOATS);
    if (!list || list->count != axes->count)
      return hd_lower_invalid(l, "there is not a scale for each axis");
    for (size_t i = 0; i < axes->count; i++)
      if (!set_scale(l, r, x, axes->axes[i], list->u.floats[i]))
        return false;
    return true;
  }
  if (sizes && hd_lower_count(sizes) > 0) {
    size_t count;
    const int64_t *data = hd_lower_data_ints(l, sizes, &count);
    if (data && count != axes->count)
      return hd_lower_invalid(l, "%zu sizes for %zu axes", count, axes->count);
    return data && set_sizes(l, r, x, axes, data);
  }
  const hd_host_tensor_t *data = scales ? hd_lower_data(l, scales) : NULL;
  if (scales && !data)
    return false;
  if (!data || data->count != (int64_t)axes->count)
    return hd_lower_invalid(l, "there is not a scale for each axis");
  for (size_t i = 0; i < axes->count; i++)
    if (!set_scale(l, r, x, axes->axes[i],
                   hd_host_tensor_get(data, (int64_t)i)))
      return false;
  return true;
}

bool hd_onnx_resize(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  resize_t r = {0};
  hd_axes_t axes;
  if (!read_modes(l, &r) || !hd_lower_axes(l, NULL, "axes", x->rank, &axes))
    return false;
  for (int i = 0; i < x->rank; i++) {
    r.scales[i] = r.end[i] = 1;
    r.sizes[i] = hd_lower_size(x, i);
  }
  if (!axes.given)
    for (axes.count = 0; (int)axes.count < x->rank; axes.count++)
      axes.axes[axes.count] = (int64_t)axes.count;
  if (!read_scales(l, &r, x, &axes))
    return false;
  if (is(r.coordinates, "tf_crop_and_resize") &&
      !read_region(l, &r, &axes, hd_lower_input(l, 1)))
    return false;
  const hd_value_t *y = resize(l, &r, x);
  return hd_lower_output(l, 0, y);
}
