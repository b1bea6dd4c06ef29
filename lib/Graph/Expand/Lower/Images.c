// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators on images: sampling, regions, blocks, cropping.
#include "Graph/Expand/Lower/Products.h"
#include "Graph/Expand/Lower/Window.h"

#include <math.h>
#include <string.h>

static bool is(const char *a, const char *b) { return strcmp(a, b) == 0; }

// mode was renamed in version 20.
static int64_t read_taps(hd_lowering_t *l) {
  static const struct {
    const char *mode;
    int64_t taps;
  } modes[] = {{"nearest", 1},
               {"linear", 2},
               {"bilinear", 2},
               {"cubic", 4},
               {"bicubic", 4}};
  const char *mode = hd_lower_string(l, "mode", "linear");
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (is(mode, modes[i].mode))
      return modes[i].taps;
  hd_lower_invalid(l, "mode is '%s'", mode);
  return 0;
}

static int64_t read_padding(hd_lowering_t *l) {
  static const char *const modes[] = {"zeros", "border", "reflection"};
  const char *mode = hd_lower_string(l, "padding_mode", "zeros");
  for (int64_t i = 0; i < 3; i++)
    if (is(mode, modes[i]))
      return i;
  hd_lower_invalid(l, "padding_mode is '%s'", mode);
  return -1;
}

// grid: [n, ..out, r]; the neighbours of its points, then what lies there.
bool hd_onnx_grid_sample(hd_lowering_t *l) {
  static const char *const tasks[2][2] = {
      {"grid_sample_2d", "grid_sample_3d"},
      {"grid_nearest_2d", "grid_nearest_3d"}};
  const hd_value_t *x = hd_lower_input(l, 0), *grid = hd_lower_input(l, 1);
  int r = x->rank - 2;
  if (grid->rank != x->rank || r < 1 || hd_lower_size(grid, r + 1) != r)
    return hd_lower_invalid(l, "a grid of rank %d for a tensor of rank %d",
                            grid->rank, x->rank);
  if (r != 2 && r != 3)
    return hd_lower_unsupported(l, "%d axes: only 2 or 3", r);
  int64_t taps = read_taps(l), padding = read_padding(l);
  if (taps == 0 || padding < 0)
    return false;
  int64_t points[] = {hd_lower_size(grid, 0), hd_lower_product(grid, 1, r + 1),
                      r};
  int64_t shape[HD_MAX_RANK] = {hd_lower_size(x, 0), hd_lower_size(x, 1)};
  int64_t sizes[3];
  for (int i = 0; i < r; i++) {
    shape[i + 2] = hd_lower_size(grid, i + 1);
    sizes[i] = hd_lower_size(x, i + 2);
  }
  const hd_value_t *places[] = {hd_lower_reshape(l, grid, points, 3),
                                hd_lower_ints_constant(l, sizes, (size_t)r)};
  hd_attributes_t list = {0};
  hd_attributes_int(l, &list, "k", taps);
  hd_attributes_int(l, &list, "padding", padding);
  hd_attributes_int(l, &list, "aligned",
                    hd_lower_int(l, "align_corners", 0) != 0);
  const hd_value_t *found[2];
  if (!places[0] || !places[1] ||
      !hd_lower_task(l, "grid_places", places, 2, &list, found))
    return false;
  const hd_value_t *inputs[] = {x, found[0], found[1]};
  const hd_value_t *y = hd_lower_task(l, tasks[taps == 1][r - 2], inputs,
                                      taps == 1 ? 2 : 3, NULL, NULL);
  y = y ? hd_lower_reshape(l, y, shape, (unsigned)x->rank) : NULL;
  return hd_lower_output(l, 0, y);
}

// The points of a regular grid, [points, r + 1], the last axis first, then 1.
static const hd_value_t *regular_grid(hd_lowering_t *l, hd_scalar_t type,
                                      const int64_t *sizes, int r,
                                      bool aligned) {
  int64_t shape[] = {1, r + 1};
  for (int i = 0; i < r; i++)
    if (__builtin_mul_overflow(shape[0], sizes[i], &shape[0]))
      return hd_lower_invalid(l, "the grid's sizes overflow"), NULL;
  hd_host_tensor_t *data;
  const hd_value_t *grid = hd_lower_constant(l, type, shape, 2, &data);
  for (int64_t i = 0; grid && i < shape[0]; i++) {
    int64_t rest = i;
    for (int axis = r; axis-- > 0; rest /= sizes[axis]) {
      double at = (double)(rest % sizes[axis]), n = (double)sizes[axis];
      double place = !aligned ? (2 * at + 1) / n - 1
                     : n == 1 ? -1
                              : 2 * at / (n - 1) - 1;
      hd_host_tensor_set(data, i * (r + 1) + (r - 1 - axis), place);
    }
    hd_host_tensor_set(data, i * (r + 1) + r, 1);
  }
  return grid;
}

bool hd_onnx_affine_grid(hd_lowering_t *l) {
  const hd_value_t *theta = hd_lower_input(l, 0);
  size_t count;
  const int64_t *size = hd_lower_data_ints(l, hd_lower_input(l, 1), &count);
  if (!size)
    return false;
  int r = (int)count - 2;
  if ((r != 2 && r != 3) || theta->rank != 3 || hd_lower_size(theta, 1) != r ||
      hd_lower_size(theta, 2) != r + 1)
    return hd_lower_invalid(l, "size has %zu entries, theta rank %d", count,
                            theta->rank);
  int64_t shape[5] = {hd_lower_size(theta, 0)};
  for (int i = 0; i < r; i++) {
    shape[i + 1] = size[i + 2];
    if (size[i + 2] < 1)
      return hd_lower_invalid(l, "a size of %lld", (long long)size[i + 2]);
  }
  shape[r + 1] = r;
  const hd_value_t *grid = regular_grid(
      l, theta->type, size + 2, r, hd_lower_int(l, "align_corners", 0) != 0);
  const hd_value_t *y =
      grid ? hd_lower_matmul(l, grid, theta, false, true) : NULL;
  y = y ? hd_lower_reshape(l, y, shape, (unsigned)r + 2) : NULL;
  return hd_lower_output(l, 0, y);
}

// What is too much goes at both ends, what is missing comes as zeros.
bool hd_onnx_center_crop_pad(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  hd_axes_t axes;
  size_t count;
  int64_t before[HD_MAX_RANK] = {0}, size[HD_MAX_RANK];
  if (!hd_lower_axes(l, NULL, "axes", x->rank, &axes))
    return false;
  const int64_t *wanted = hd_lower_data_ints(l, hd_lower_input(l, 1), &count);
  if (!wanted)
    return false;
  if (!axes.given)
    for (axes.count = 0; (int)axes.count < x->rank; axes.count++)
      axes.axes[axes.count] = (int64_t)axes.count;
  if (count != axes.count)
    return hd_lower_invalid(l, "%zu sizes for %zu axes", count, axes.count);
  for (int i = 0; i < x->rank; i++)
    size[i] = hd_lower_size(x, i);
  for (size_t i = 0; i < count; i++) {
    int64_t axis = axes.axes[i];
    if (wanted[i] < 0)
      return hd_lower_invalid(l, "a size of %lld", (long long)wanted[i]);
    // Of an odd difference the smaller half is at the beginning.
    before[axis] = (wanted[i] - size[axis]) / 2;
    size[axis] = wanted[i];
  }
  const hd_value_t *y = hd_lower_pad(l, x, before, size, NULL);
  return hd_lower_output(l, 0, y);
}

// x: [n, c * block, places].
bool hd_onnx_col2im(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  size_t rank, block_rank;
  const int64_t *image = hd_lower_data_ints(l, hd_lower_input(l, 1), &rank);
  const int64_t *block =
      image ? hd_lower_data_ints(l, hd_lower_input(l, 2), &block_rank) : NULL;
  if (!block)
    return false;
  if (x->rank != 3 || block_rank != rank || rank < 1 ||
      2 * rank + 2 > HD_MAX_RANK)
    return hd_lower_invalid(l, "blocks of rank %zu of an image of rank %zu",
                            block_rank, rank);
  hd_window_t w = {.rank = (unsigned)rank};
  int64_t shape[HD_MAX_RANK] = {hd_lower_size(x, 0), hd_lower_size(x, 1)};
  if (!hd_window_ints(l, "strides", 1, 1, w.rank, w.strides) ||
      !hd_window_ints(l, "dilations", 1, 1, w.rank, w.dilations) ||
      !hd_window_pads(l, &w))
    return false;
  for (size_t i = 0; i < rank; i++) {
    if (block[i] < 1 || image[i] < 0 || block[i] > INT32_MAX ||
        image[i] > INT64_C(1) << 40)
      return hd_lower_invalid(l, "blocks of %lld of an image of %lld",
                              (long long)block[i], (long long)image[i]);
    if (shape[1] % block[i] != 0)
      return hd_lower_invalid(l, "%lld rows do not divide into blocks",
                              (long long)hd_lower_size(x, 1));
    shape[1] /= block[i];
    shape[2 + i] = block[i];
    int64_t room = image[i] + w.begin[i] + w.end[i] -
                   ((block[i] - 1) * w.dilations[i] + 1);
    if (room < 0)
      return hd_lower_invalid(l, "a block is larger than the image");
    shape[2 + rank + i] = room / w.strides[i] + 1;
    w.sizes[i] = image[i];
  }
  x = hd_lower_reshape(l, x, shape, (unsigned)(2 * rank + 2));
  hd_attributes_t list = {0};
  hd_window_attributes(l, &w, &list);
  const hd_value_t *y =
      x ? hd_lower_task(l, "col2im", &x, 1, &list, NULL) : NULL;
  return hd_lower_output(l, 0, y);
}

// How many samples of a bin there are at most: as many as the largest region
// has elements for each of its bins.
static int64_t count_samples(hd_lowering_t *l, const hd_value_t *rois,
                             double scale, double offset, int64_t rows,
                             int64_t columns) {
  const hd_host_tensor_t *data = hd_lower_data(l, rois);
  double most = 1;
  if (!data)
    return 0;
  for (int64_t i = 0; i < data->count; i += 4)
    for (int side = 0; side < 2; side++) {
      double extent = (hd_host_tensor_get(data, i + side + 2) -
                       hd_host_tensor_get(data, i + side)) *
                      scale;
      extent = offset == 0 && extent < 1 ? 1 : extent;
      double samples = ceil(extent / (double)(side ? rows : columns)) + 1;
      most = samples > most ? samples : most;
    }
  if (most < 1e6)
    return (int64_t)most;
  hd_lower_invalid(l, "a region with %g samples for each bin", most);
  return 0;
}

bool hd_onnx_roi_align(hd_lowering_t *l) {
  const hd_value_t *inputs[] = {hd_lower_input(l, 0), hd_lower_input(l, 1),
                                hd_lower_input(l, 2)};
  const char *mode = hd_lower_string(l, "mode", "avg");
  const char *coordinates = hd_lower_string(
      l, "coordinate_transformation_mode",
      hd_lower_version(l) < 16 ? "output_half_pixel" : "half_pixel");
  int64_t rows = hd_lower_int(l, "output_height", 1);
  int64_t columns = hd_lower_int(l, "output_width", 1);
  int64_t samples = hd_lower_int(l, "sampling_ratio", 0);
  double scale = hd_lower_float(l, "spatial_scale", 1);
  double offset = is(coordinates, "half_pixel") ? 0.5 : 0;
  if (!is(mode, "avg") && !is(mode, "max"))
    return hd_lower_invalid(l, "mode is '%s'", mode);
  if (inputs[0]->rank != 4 || inputs[1]->rank != 2 ||
      hd_lower_size(inputs[1], 1) != 4)
    return hd_lower_invalid(l,
                            "regions of rank %d in a tensor of rank %d; 2, of "
                            "4 numbers each, and 4 are needed",
                            inputs[1]->rank, inputs[0]->rank);
  if (rows < 1 || columns < 1 || samples < 0 || samples > 1000000)
    return hd_lower_invalid(l, "%lld x %lld bins of %lld samples along an axis",
                            (long long)rows, (long long)columns,
                            (long long)samples);
  int64_t most =
      samples ? samples
              : count_samples(l, inputs[1], scale, offset, rows, columns);
  if (most == 0)
    return false;
  hd_attributes_t list = {0};
  hd_attributes_int(l, &list, "rows", rows);
  hd_attributes_int(l, &list, "columns", columns);
  hd_attributes_int(l, &list, "samples", samples);
  hd_attributes_int(l, &list, "most", most);
  hd_attributes_float(l, &list, "scale", scale);
  hd_attributes_float(l, &list, "offset", offset);
  hd_attributes_int(l, &list, "takes_max", is(mode, "max"));
  const hd_value_t *y = hd_lower_task(l, "roi_align", inputs, 3, &list, NULL);
  return hd_lower_output(l, 0, y);
}

bool hd_onnx_max_roi_pool(hd_lowering_t *l) {
  const hd_value_t *inputs[] = {hd_lower_input(l, 0), hd_lower_input(l, 1)};
  size_t count;
  const int64_t *shape = hd_lower_ints(l, "pooled_shape", &count);
  if (!shape || count != 2 || shape[0] < 1 || shape[1] < 1)
    return hd_lower_invalid(l, "pooled_shape has no two sizes");
  hd_attributes_t list = {0};
  hd_attributes_int(l, &list, "rows", shape[0]);
  hd_attributes_int(l, &list, "columns", shape[1]);
  hd_attributes_float(l, &list, "scale", hd_lower_float(l, "spatial_scale", 1));
  const hd_value_t *y =
      hd_lower_task(l, "max_roi_pool", inputs, 2, &list, NULL);
  return hd_lower_output(l, 0, y);
}
