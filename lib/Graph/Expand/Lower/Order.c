// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that sort and select. Where the size of the result depends on the
// data, it is found on the host, once they are known (hd_find_t).
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

static int64_t count_non_zero(const hd_host_tensor_t *data) {
  int64_t count = 0;
  for (int64_t i = 0; i < data->count; i++)
    count += !is_zero(data, i);
  return count;
}

// The places of what is not zero, an axis after the other.
static bool find_non_zero(hd_finding_t *f) {
  const hd_host_tensor_t *data = f->inputs[0];
  // A single number counts as one axis.
  unsigned rank = data->rank ? data->rank : 1;
  int64_t count = count_non_zero(data), at = 0;
  hd_host_tensor_t *result =
      hd_host_tensor_make(f->arena, HD_I64, (int64_t[]){rank, count}, 2);
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
  f->outputs[0] = result;
  return true;
}

bool hd_onnx_non_zero(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *y;
  hd_find_t find = {
      .run = find_non_zero,
      .num_inputs = 1,
      .inputs = {x},
      .num_outputs = 1,
      .outputs = {{HD_I64, 2, {x->rank ? x->rank : 1, -1}}},
      .most = hd_lower_count(x),
  };
  return hd_lower_find(l, &find, &y) && hd_lower_output(l, 0, y);
}

static bool find_chosen(hd_finding_t *f) {
  const hd_host_tensor_t *condition = f->inputs[0];
  int64_t count = count_non_zero(condition), at = 0;
  hd_host_tensor_t *chosen = hd_host_tensor_make(f->arena, HD_I64, &count, 1);
  for (int64_t i = 0; i < condition->count; i++)
    if (!is_zero(condition, i))
      hd_host_tensor_set_int(chosen, at++, i);
  f->outputs[0] = chosen;
  return true;
}

bool hd_onnx_compress(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *condition = hd_lower_input(l, 1);
  const hd_value_t *index;
  bool flat = !hd_node_attribute(hd_lower_node(l), "axis");
  int64_t axis = 0, size = hd_lower_count(x);
  if (!flat && !hd_lower_axis(l, "axis", 0, x->rank, &axis))
    return false;
  if (!flat)
    size = hd_lower_size(x, (int)axis);
  if (condition->rank != 1 || hd_lower_count(condition) > size)
    return hd_lower_invalid(l, "%lld conditions for an axis of %lld",
                            (long long)hd_lower_count(condition),
                            (long long)size);
  hd_find_t find = {
      .run = find_chosen,
      .num_inputs = 1,
      .inputs = {condition},
      .num_outputs = 1,
      .outputs = {{HD_I64, 1, {-1}}},
      .most = hd_lower_count(condition),
  };
  if (!hd_lower_find(l, &find, &index))
    return false;
  if (flat && !(x = hd_lower_reshape(l, x, &size, 1)))
    return false;
  return hd_lower_output(l, 0, hd_lower_gather(l, x, index, axis));
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

static const hd_host_tensor_t *make_ints(hd_arena_t *arena,
                                         const int64_t *values, int64_t count) {
  hd_host_tensor_t *made = hd_host_tensor_make(arena, HD_I64, &count, 1);
  for (int64_t i = 0; i < count; i++)
    hd_host_tensor_set_int(made, i, values[i]);
  return made;
}

static rows_t rows_of(const hd_host_tensor_t *data, int64_t axis) {
  rows_t rows = {data, 1, data->count, 1};
  if (axis < 0)
    return rows;
  rows.n = data->shape[axis];
  for (unsigned i = 0; i < data->rank; i++)
    if (i != (unsigned)axis)
      *(i < (unsigned)axis ? &rows.outer : &rows.inner) *= data->shape[i];
  return rows;
}

// The first of equal rows each.
static const hd_host_tensor_t *take_rows(hd_arena_t *arena, const rows_t *rows,
                                         int64_t axis, const same_t *groups,
                                         size_t count) {
  const hd_host_tensor_t *data = rows->data;
  int64_t shape[HD_TENSOR_MAX_RANK];
  memcpy(shape, data->shape, sizeof(shape));
  shape[axis < 0 ? 0 : axis] = (int64_t)count;
  hd_host_tensor_t *made =
      hd_host_tensor_make(arena, data->type, shape, axis < 0 ? 1 : data->rank);
  size_t bytes =
      (size_t)rows->inner * (size_t)hd_host_element_bytes(data->type);
  for (int64_t o = 0; o < rows->outer; o++)
    for (size_t g = 0; g < count && bytes; g++)
      memcpy(made->data + ((size_t)o * count + g) * bytes,
             data->data + (size_t)(o * rows->n + groups[g].first) * bytes,
             bytes);
  return made;
}

// options: the axis, -1: none; whether the rows are to be sorted.
static bool find_unique(hd_finding_t *f) {
  int64_t axis = f->find->options[0];
  rows_t rows = rows_of(f->inputs[0], axis);
  size_t n = (size_t)rows.n + 1; // None of no elements.
  row_t *sorted = HD_ARENA_ARRAY(f->arena, row_t, n);
  same_t *groups = HD_ARENA_ARRAY(f->arena, same_t, n);
  int64_t *lists[3]; // Indices, inverse, counts.
  for (int i = 0; i < 3; i++)
    lists[i] = HD_ARENA_ARRAY(f->arena, int64_t, n);
  size_t count = group_rows(&rows, sorted, groups);
  if (!f->find->options[1] && count)
    qsort(groups, count, sizeof *groups, compare_first);
  for (size_t g = 0; g < count; g++) {
    lists[0][g] = groups[g].first;
    lists[2][g] = groups[g].count;
    for (int64_t i = 0; i < groups[g].count; i++)
      lists[1][sorted[groups[g].from + i].at] = (int64_t)g;
  }
  f->outputs[0] = take_rows(f->arena, &rows, axis, groups, count);
  f->outputs[1] = make_ints(f->arena, lists[0], (int64_t)count);
  f->outputs[2] = make_ints(f->arena, lists[1], rows.n);
  f->outputs[3] = make_ints(f->arena, lists[2], (int64_t)count);
  return true;
}

bool hd_onnx_unique(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *outputs[HD_FIND_OUTPUTS];
  bool flat = !hd_node_attribute(hd_lower_node(l), "axis");
  int64_t axis = -1;
  if (!flat && !hd_lower_axis(l, "axis", 0, x->rank, &axis))
    return false;
  int64_t n = flat ? hd_lower_count(x) : hd_lower_size(x, (int)axis);
  hd_tensor_type_t type = {.type = x->type, .rank = 1};
  if (!flat)
    type = hd_lower_type(x);
  type.shape[flat ? 0 : axis] = -1;
  hd_find_t find = {
      .run = find_unique,
      .options = {axis, hd_lower_int(l, "sorted", 1)},
      .num_inputs = 1,
      .inputs = {x},
      .num_outputs = 4,
      .outputs = {type, {HD_I64, 1, {-1}}, {HD_I64, 1, {n}}, {HD_I64, 1, {-1}}},
      .most = n,
  };
  if (!hd_lower_find(l, &find, outputs))
    return false;
  for (uint32_t i = 0; i < 4; i++)
    if (hd_lower_wants_output(l, i) && !hd_lower_output(l, i, outputs[i]))
      return false;
  return true;
}
