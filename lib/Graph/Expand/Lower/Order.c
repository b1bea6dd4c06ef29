// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that sort and select. Where the size of the result depends on the
// data, it is computed here, from what is known by then.
#include "Graph/Expand/Lower/Lower.h"

#include <stdlib.h>
#include <string.h>

// --- TopK ---

static bool read_k(hd_lowering_t *l, int64_t *k) {
  size_t count;
  if (hd_lower_version(l) < 10) {
    *k = hd_lower_int(l, "k", -1);
    return true;
  }
  const int64_t *data = hd_lower_data_ints(l, hd_lower_input(l, 1), &count);
  if (!data)
    return false;
  *k = data[0];
  return count == 1 || hd_lower_invalid(l, "K has %zu elements, not 1", count);
}

// Sorted, always: that is one of the orders that sorted = 0 allows.
bool hd_onnx_top_k(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  int64_t axis, k;
  if (!hd_lower_axis(l, "axis", -1, x->rank, &axis) || !read_k(l, &k))
    return false;
  int64_t n = hd_lower_size(x, (int)axis);
  if (k < 0 || k > n)
    return hd_lower_invalid(l, "the first %lld of %lld elements", (long long)k,
                            (long long)n);
  hd_attributes_t take = {0};
  hd_attributes_int(l, &take, "m", k);
  const char *task =
      hd_lower_int(l, "largest", 1) ? "sort_descending" : "sort_ascending";
  const hd_value_t *input = hd_lower_around(l, x, axis), *outputs[2];
  if (!input || !hd_lower_task(l, task, &input, 1, &take, outputs))
    return false;
  for (uint32_t i = 0; i < 2; i++)
    if (hd_lower_wants_output(l, i) &&
        !hd_lower_output(l, i, hd_lower_unfold(l, outputs[i], x, axis, k)))
      return false;
  return true;
}

// --- NonZero, Compress ---

static bool is_zero(const hd_host_tensor_t *data, int64_t i) {
  return hd_type_is_float(hd_type(data->type))
             ? hd_host_tensor_get(data, i) == 0
             : hd_host_tensor_get_int(data, i) == 0;
}

bool hd_onnx_non_zero(hd_lowering_t *l) {
  const hd_host_tensor_t *data = hd_lower_data(l, hd_lower_input(l, 0));
  if (!data)
    return false;
  // A single number counts as one axis.
  unsigned rank = data->rank ? data->rank : 1;
  int64_t count = 0, at = 0;
  for (int64_t i = 0; i < data->count; i++)
    count += !is_zero(data, i);
  hd_host_tensor_t *result;
  const hd_value_t *y =
      hd_lower_constant(l, HD_I64, (int64_t[]){rank, count}, 2, &result);
  if (!y)
    return false;
  for (int64_t i = 0; i < data->count; i++) {
    if (is_zero(data, i))
      continue;
    int64_t rest = i;
    for (unsigned axis = rank; axis-- > 0;) {
      int64_t size = data->rank ? data->shape[axis] : 1;
      hd_host_tensor_set_int(result, axis * count + at, rest % size);
      rest /= size;
    }
    at++;
  }
  return hd_lower_output(l, 0, y);
}

bool hd_onnx_compress(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  const hd_host_tensor_t *condition = hd_lower_data(l, hd_lower_input(l, 1));
  if (!condition)
    return false;
  int64_t axis = 0;
  if (hd_node_attribute(hd_lower_node(l), "axis")) {
    if (!hd_lower_axis(l, "axis", 0, x->rank, &axis))
      return false;
  } else {
    int64_t count = hd_lower_count(x);
    if (!(x = hd_lower_reshape(l, x, &count, 1)))
      return false;
  }
  if (condition->rank != 1 || condition->count > hd_lower_size(x, (int)axis))
    return hd_lower_invalid(l, "%lld conditions for an axis of %lld",
                            (long long)condition->count,
                            (long long)hd_lower_size(x, (int)axis));
  int64_t *chosen =
      HD_ARENA_ARRAY(hd_lower_arena(l), int64_t, (size_t)condition->count + 1);
  size_t count = 0;
  for (int64_t i = 0; i < condition->count; i++)
    if (!is_zero(condition, i))
      chosen[count++] = i;
  const hd_value_t *index = hd_lower_ints_constant(l, chosen, count);
  return index && hd_lower_output(l, 0, hd_lower_gather(l, x, index, axis));
}

// --- Unique ---

// The rows of a tensor [outer, n, inner] along n.
typedef struct rows {
  const hd_host_tensor_t *data;
  int64_t outer, n, inner;
} rows_t;

typedef struct row {
  const rows_t *rows;
  int64_t at;
} row_t;

// NaN after all others, and equal to NaN.
static int compare_elements(const hd_host_tensor_t *data, int64_t a,
                            int64_t b) {
  if (hd_type_is_float(hd_type(data->type))) {
    double x = hd_host_tensor_get(data, a), y = hd_host_tensor_get(data, b);
    if (x != x || y != y)
      return (x != x) - (y != y);
    return (x > y) - (x < y);
  }
  int64_t x = hd_host_tensor_get_int(data, a);
  int64_t y = hd_host_tensor_get_int(data, b);
  if (data->type == HD_U64)
    return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
  return (x > y) - (x < y);
}

static int compare_rows(const rows_t *rows, int64_t a, int64_t b) {
  for (int64_t i = 0; i < rows->outer; i++)
    for (int64_t k = 0; k < rows->inner; k++) {
      int64_t base = i * rows->n * rows->inner + k;
      int order = compare_elements(rows->data, base + a * rows->inner,
                                   base + b * rows->inner);
      if (order)
        return order;
    }
  return 0;
}

static int compare(const void *a, const void *b) {
  const row_t *x = a, *y = b;
  int order = compare_rows(x->rows, x->at, y->at);
  return order ? order : (x->at > y->at) - (x->at < y->at);
}

// Equal rows: where the first one is, how many, and the first's place in the
// sorted list.
typedef struct same {
  int64_t first, count, from;
} same_t;

static int compare_first(const void *a, const void *b) {
  const same_t *x = a, *y = b;
  return (x->first > y->first) - (x->first < y->first);
}

static size_t group_rows(const rows_t *rows, row_t *sorted, same_t *groups) {
  size_t count = 0;
  for (int64_t i = 0; i < rows->n; i++)
    sorted[i] = (row_t){rows, i};
  if (rows->n)
    qsort(sorted, (size_t)rows->n, sizeof *sorted, compare);
  for (int64_t i = 0; i < rows->n; i++)
    if (i > 0 && compare_rows(rows, sorted[i - 1].at, sorted[i].at) == 0)
      groups[count - 1].count++;
    else
      groups[count++] = (same_t){sorted[i].at, 1, i};
  return count;
}

static bool set_ints(hd_lowering_t *l, uint32_t i, const int64_t *values,
                     size_t count) {
  return !hd_lower_wants_output(l, i) ||
         hd_lower_output(l, i, hd_lower_ints_constant(l, values, count));
}

bool hd_onnx_unique(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  const hd_host_tensor_t *data = hd_lower_data(l, x);
  if (!data)
    return false;
  rows_t rows = {data, 1, data->count, 1};
  hd_tensor_type_t type = {.rank = 1};
  int64_t axis = 0;
  if (hd_node_attribute(hd_lower_node(l), "axis")) {
    if (!hd_lower_axis(l, "axis", 0, x->rank, &axis))
      return false;
    type = hd_lower_type(x);
    rows.outer = hd_lower_product(x, 0, (int)axis);
    rows.n = hd_lower_size(x, (int)axis);
    rows.inner = hd_lower_product(x, (int)axis + 1, x->rank);
  }
  hd_arena_t *arena = hd_lower_arena(l);
  size_t n = (size_t)rows.n + 1; // None of no elements.
  row_t *sorted = HD_ARENA_ARRAY(arena, row_t, n);
  same_t *groups = HD_ARENA_ARRAY(arena, same_t, n);
  int64_t *lists[3]; // Indices, inverse, counts.
  for (int i = 0; i < 3; i++)
    lists[i] = HD_ARENA_ARRAY(arena, int64_t, n);
  size_t count = group_rows(&rows, sorted, groups);
  if (!hd_lower_int(l, "sorted", 1) && count)
    qsort(groups, count, sizeof *groups, compare_first);
  for (size_t g = 0; g < count; g++) {
    lists[0][g] = groups[g].first;
    lists[2][g] = groups[g].count;
    for (int64_t i = 0; i < groups[g].count; i++)
      lists[1][sorted[groups[g].from + i].at] = (int64_t)g;
  }
  type.shape[axis] = (int64_t)count;
  hd_host_tensor_t *result;
  const hd_value_t *y =
      hd_lower_constant(l, x->type, type.shape, type.rank, &result);
  if (!y)
    return false;
  size_t bytes = hd_host_element_bytes(x->type), row = (size_t)rows.inner;
  for (int64_t o = 0; o < rows.outer; o++)
    for (size_t g = 0; g < count && row; g++)
      memcpy(result->data + ((size_t)o * count + g) * row * bytes,
             data->data + (size_t)(o * rows.n + groups[g].first) * row * bytes,
             row * bytes);
  return hd_lower_output(l, 0, y) && set_ints(l, 1, lists[0], count) &&
         set_ints(l, 2, lists[1], (size_t)rows.n) &&
         set_ints(l, 3, lists[2], count);
}
