// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gathers and scatters, brought to rows: [before, axis, after].
#include "Graph/Expand/Lower/Lower.h"

#include <string.h>

// The elements at indices that are known, and go on evenly; NULL: at others.
static const hd_value_t *gather_evenly(hd_lowering_t *l, const hd_value_t *x,
                                       const hd_value_t *index, int64_t axis) {
  const hd_host_tensor_t *data = hd_lower_find_data(l, index);
  int64_t n = hd_lower_size(x, (int)axis), size[HD_MAX_RANK];
  hd_spacing_t spacing[HD_MAX_RANK];
  if (!data || index->rank > 1 || data->count < 1 ||
      data->count > HD_SPACING_PLACES)
    return NULL;
  int64_t *places = HD_ARENA_ARRAY(hd_lower_arena(l), int64_t, data->count);
  for (int64_t i = 0; i < data->count; i++) {
    int64_t at = hd_host_tensor_get_int(data, i);
    places[i] = at < 0 ? at + n : at;
    if (places[i] < 0 || places[i] >= n)
      return NULL;
  }
  for (int i = 0; i < x->rank; i++) {
    spacing[i] = (hd_spacing_t){1, 0, 1};
    size[i] = hd_lower_size(x, i);
  }
  size[axis] = data->count;
  if (!hd_spacing_find(places, data->count, &spacing[axis]))
    return NULL;
  return hd_lower_sample(l, x, spacing, size);
}

const hd_value_t *hd_lower_gather(hd_lowering_t *l, const hd_value_t *x,
                                  const hd_value_t *index, int64_t axis) {
  int rank = x->rank + index->rank - 1;
  if (rank > HD_MAX_RANK) {
    hd_lower_unsupported(l, "a tensor of rank %d", rank);
    return NULL;
  }
  int64_t shape[HD_MAX_RANK], count = hd_lower_count(index);
  int to = 0;
  for (int i = 0; i < axis; i++)
    shape[to++] = hd_lower_size(x, i);
  for (int i = 0; i < index->rank; i++)
    shape[to++] = hd_lower_size(index, i);
  for (int i = (int)axis + 1; i < x->rank; i++)
    shape[to++] = hd_lower_size(x, i);
  const hd_value_t *even = gather_evenly(l, x, index, axis);
  if (even)
    return hd_lower_reshape(l, even, shape, (unsigned)rank);
  const hd_value_t *inputs[] = {hd_lower_around(l, x, axis),
                                hd_lower_reshape(l, index, &count, 1)};
  if (!inputs[0] || !inputs[1])
    return NULL;
  const hd_value_t *y = hd_lower_task(l, "gather", inputs, 2, NULL, NULL);
  return y ? hd_lower_reshape(l, y, shape, (unsigned)rank) : NULL;
}

bool hd_onnx_gather(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  int64_t axis;
  return hd_lower_axis(l, "axis", 0, x->rank, &axis) &&
         hd_lower_output(l, 0,
                         hd_lower_gather(l, x, hd_lower_input(l, 1), axis));
}

// Whether index fits x in all axes but one: not longer anywhere.
static bool check_elements(hd_lowering_t *l, const hd_value_t *x,
                           const hd_value_t *index, int64_t axis) {
  if (index->rank != x->rank)
    return hd_lower_invalid(l, "indices of rank %d for a tensor of rank %d",
                            index->rank, x->rank);
  for (int i = 0; i < x->rank; i++)
    if (i != axis && hd_lower_size(index, i) > hd_lower_size(x, i))
      return hd_lower_invalid(
          l, "axis %d of the indices has %lld elements, that of the data %lld",
          i, (long long)hd_lower_size(index, i),
          (long long)hd_lower_size(x, i));
  return true;
}

bool hd_onnx_gather_elements(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *index = hd_lower_input(l, 1);
  int64_t axis;
  if (!hd_lower_axis(l, "axis", 0, x->rank, &axis) ||
      !check_elements(l, x, index, axis))
    return false;
  // Only where the indices are is x read.
  int64_t start[HD_MAX_RANK] = {0};
  hd_tensor_type_t type = hd_lower_type(index);
  type.shape[axis] = hd_lower_size(x, (int)axis);
  x = hd_lower_slice(l, x, start, type.shape, NULL);
  const hd_value_t *inputs[] = {x ? hd_lower_around(l, x, axis) : NULL,
                                hd_lower_around(l, index, axis)};
  const hd_value_t *y =
      inputs[0] && inputs[1]
          ? hd_lower_task(l, "gather_elements", inputs, 2, NULL, NULL)
          : NULL;
  return hd_lower_output(
      l, 0,
      hd_lower_unfold(l, y, index, axis, hd_lower_size(index, (int)axis)));
}

// The suffix of the tasks for an attribute `reduction`; NULL after an error.
static const char *reduction_suffix(hd_lowering_t *l) {
  static const char *const names[] = {"none", "add", "mul", "max", "min"};
  static const char *const suffixes[] = {"", "_add", "_mul", "_max", "_min"};
  const char *name = hd_lower_string(l, "reduction", "none");
  for (int i = 0; i < 5; i++)
    if (strcmp(names[i], name) == 0)
      return suffixes[i];
  hd_lower_invalid(l,
                   "reduction is '%s', not 'none', 'add', 'mul', 'max' or "
                   "'min'",
                   name);
  return NULL;
}

// x with another part from its beginning on; axis by axis, the rest of x stands
// behind what there is.
static const hd_value_t *put_back(hd_lowering_t *l, const hd_value_t *x,
                                  const hd_value_t *part) {
  for (int i = 0; part && i < x->rank; i++) {
    int64_t start[HD_MAX_RANK] = {0};
    hd_tensor_type_t rest = hd_lower_type(part);
    start[i] = rest.shape[i];
    rest.shape[i] = hd_lower_size(x, i) - start[i];
    if (!rest.shape[i])
      continue;
    const hd_value_t *items[] = {part,
                                 hd_lower_slice(l, x, start, rest.shape, NULL)};
    part = items[1] ? hd_lower_concat(l, items, 2, i) : NULL;
  }
  return part;
}

bool hd_onnx_scatter_elements(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *index = hd_lower_input(l, 1);
  const hd_value_t *updates = hd_lower_input(l, 2);
  const char *suffix = reduction_suffix(l);
  int64_t axis;
  if (!suffix || !hd_lower_axis(l, "axis", 0, x->rank, &axis) ||
      !check_elements(l, x, index, axis))
    return false;
  hd_tensor_type_t a = hd_lower_type(index), b = hd_lower_type(updates);
  if (a.rank != b.rank || memcmp(a.shape, b.shape, a.rank * sizeof *a.shape))
    return hd_lower_invalid(l, "indices and updates differ in shape");
  // Only where the indices are is x written.
  static const int64_t start[HD_MAX_RANK] = {0};
  a.shape[axis] = hd_lower_size(x, (int)axis);
  const hd_value_t *part = hd_lower_slice(l, x, start, a.shape, NULL);
  const hd_value_t *inputs[] = {part ? hd_lower_around(l, part, axis) : NULL,
                                hd_lower_around(l, index, axis),
                                hd_lower_around(l, updates, axis)};
  if (!inputs[0] || !inputs[1] || !inputs[2])
    return false;
  const char *task =
      hd_arena_printf(hd_lower_arena(l), "scatter_elements%s", suffix);
  const hd_value_t *y = hd_lower_task(l, task, inputs, 3, NULL, NULL);
  y = hd_lower_unfold(l, y, part, axis, hd_lower_size(x, (int)axis));
  return hd_lower_output(l, 0, put_back(l, x, y));
}

// --- Tuples of indices ---

// x as [batch, rows, row], and the number of the row that each tuple of
// index[batch.., .., d] names: [batch, m].
typedef struct tuples {
  const hd_value_t *x, *at;
  int64_t batch, m, row;
  int depth; // Axes of x that a tuple names.
} tuples_t;

static bool read_tuples(hd_lowering_t *l, int batch_dims, tuples_t *t) {
  const hd_value_t *x = hd_lower_input(l, 0), *index = hd_lower_input(l, 1);
  int64_t d = index->rank ? hd_lower_size(index, index->rank - 1) : 0;
  bool fits = index->rank > batch_dims && x->rank >= batch_dims && d >= 1 &&
              d <= x->rank - batch_dims;
  for (int i = 0; fits && i < batch_dims; i++)
    fits = hd_lower_size(x, i) == hd_lower_size(index, i);
  if (!fits)
    return hd_lower_invalid(
        l,
        "tuples of %lld indices into a tensor of rank %d, %d of them batches",
        (long long)d, x->rank, batch_dims);
  t->depth = (int)d;
  t->batch = hd_lower_product(x, 0, batch_dims);
  t->m = hd_lower_product(index, batch_dims, index->rank - 1);
  t->row = hd_lower_product(x, batch_dims + t->depth, x->rank);
  int64_t sizes[HD_MAX_RANK], strides[HD_MAX_RANK], rows = 1;
  for (int i = t->depth; i-- > 0;) {
    sizes[i] = hd_lower_size(x, batch_dims + i);
    strides[i] = rows;
    rows = hd_size_times(rows, sizes[i]);
  }
  int64_t shape[] = {t->batch, t->m, d};
  const hd_value_t *inputs[] = {
      hd_lower_reshape(l, index, shape, 3),
      hd_lower_ints_constant(l, sizes, (size_t)d),
      hd_lower_ints_constant(l, strides, (size_t)d),
  };
  if (!inputs[0] || !inputs[1] || !inputs[2])
    return false;
  t->at = hd_lower_task(l, "flat_index", inputs, 3, NULL, NULL);
  t->x = hd_lower_reshape(l, x, (int64_t[]){t->batch, rows, t->row}, 3);
  return t->at && t->x;
}

bool hd_onnx_gather_nd(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *index = hd_lower_input(l, 1);
  int64_t batch_dims = hd_lower_int(l, "batch_dims", 0);
  if (batch_dims < 0 || batch_dims > HD_MAX_RANK)
    return hd_lower_invalid(l, "batch_dims is %lld", (long long)batch_dims);
  tuples_t t;
  if (!read_tuples(l, (int)batch_dims, &t))
    return false;
  int64_t shape[2 * HD_MAX_RANK];
  int rank = 0;
  for (int i = 0; i + 1 < index->rank; i++)
    shape[rank++] = hd_lower_size(index, i);
  for (int i = (int)batch_dims + t.depth; i < x->rank; i++)
    shape[rank++] = hd_lower_size(x, i);
  if (rank > HD_MAX_RANK)
    return hd_lower_unsupported(l, "a tensor of rank %d", rank);
  const hd_value_t *inputs[] = {t.x, t.at};
  const hd_value_t *y = hd_lower_task(l, "gather_rows", inputs, 2, NULL, NULL);
  return y &&
         hd_lower_output(l, 0, hd_lower_reshape(l, y, shape, (unsigned)rank));
}

bool hd_onnx_scatter_nd(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *updates = hd_lower_input(l, 2);
  const char *suffix = reduction_suffix(l);
  tuples_t t;
  if (!suffix || !read_tuples(l, 0, &t))
    return false;
  if (hd_lower_count(updates) != hd_size_times(t.m, t.row))
    return hd_lower_invalid(l, "%lld updates, not %lld",
                            (long long)hd_lower_count(updates),
                            (long long)hd_size_times(t.m, t.row));
  const hd_value_t *inputs[] = {
      t.x, t.at,
      hd_lower_reshape(l, updates, (int64_t[]){t.batch, t.m, t.row}, 3)};
  if (!inputs[2])
    return false;
  const char *task =
      hd_arena_printf(hd_lower_arena(l), "scatter_rows%s", suffix);
  const hd_value_t *y = hd_lower_task(l, task, inputs, 3, NULL, NULL);
  hd_tensor_type_t type = hd_lower_type(x);
  return y &&
         hd_lower_output(l, 0, hd_lower_reshape(l, y, type.shape, type.rank));
}

// --- TensorScatter ---

bool hd_onnx_tensor_scatter(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *u = hd_lower_input(l, 1);
  const hd_value_t *at = hd_lower_input(l, 2);
  const char *mode = hd_lower_string(l, "mode", "linear");
  bool circular = strcmp(mode, "circular") == 0;
  if (!circular && strcmp(mode, "linear") != 0)
    return hd_lower_invalid(l, "mode is '%s', not 'linear' or 'circular'",
                            mode);
  int64_t axis;
  if (!hd_lower_axis(l, "axis", -2, x->rank, &axis))
    return false;
  bool fits = axis > 0 && u->rank == x->rank;
  for (int i = 0; fits && i < x->rank; i++)
    fits = i == axis ? hd_lower_size(u, i) <= hd_lower_size(x, i)
                     : hd_lower_size(u, i) == hd_lower_size(x, i);
  if (!fits)
    return hd_lower_invalid(l,
                            "the update does not fit the cache along axis "
                            "%lld",
                            (long long)axis);
  int64_t shape[4] = {hd_lower_size(x, 0), hd_lower_product(x, 1, (int)axis),
                      hd_lower_size(x, (int)axis),
                      hd_lower_product(x, (int)axis + 1, x->rank)};
  hd_host_tensor_t *zeros;
  at = at ? at : hd_lower_constant(l, HD_I64, shape, 1, &zeros);
  const hd_value_t *inputs[3] = {hd_lower_reshape(l, x, shape, 4)};
  shape[2] = hd_lower_size(u, (int)axis);
  inputs[1] = hd_lower_reshape(l, u, shape, 4);
  inputs[2] = at;
  if (!inputs[0] || !inputs[1] || !inputs[2])
    return false;
  hd_attributes_t attributes = {0};
  hd_attributes_int(l, &attributes, "circular", circular);
  const hd_value_t *y =
      hd_lower_task(l, "tensor_scatter", inputs, 3, &attributes, NULL);
  return hd_lower_output(
      l, 0, hd_lower_unfold(l, y, x, axis, hd_lower_size(x, (int)axis)));
}
