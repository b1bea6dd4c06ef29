// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that make tensors from numbers: ranges, filled ones, windows; and
// the determinant, which makes numbers from small ones.
#include "Graph/Expand/Lower/Lower.h"

#include <math.h>
#include <string.h>

// The only element of an input that must be known.
static bool one_int(hd_lowering_t *l, uint32_t input, const char *name,
                    int64_t *value) {
  const hd_host_tensor_t *data = hd_lower_data(l, hd_lower_input(l, input));
  if (!data)
    return false;
  if (data->count != 1)
    return hd_lower_invalid(l, "%s has %lld elements, not 1", name,
                            (long long)data->count);
  if (!hd_type_is_float(hd_type(data->type))) {
    *value = hd_host_tensor_get_int(data, 0);
    return true;
  }
  double number = hd_host_tensor_get(data, 0);
  if (!(fabs(number) < 0x1p62))
    return hd_lower_invalid(l, "%s is %g", name, number);
  *value = (int64_t)number;
  return true;
}

// --- Range ---

static bool count_floats(const hd_host_tensor_t *const *d, int64_t *n) {
  double start = hd_host_tensor_get(d[0], 0);
  double count =
      ceil((hd_host_tensor_get(d[1], 0) - start) / hd_host_tensor_get(d[2], 0));
  *n = count > 0 ? (int64_t)fmin(count, 0x1p62) : 0;
  return count == count && count < 0x1p62;
}

static bool count_ints(const hd_host_tensor_t *const *d, int64_t *n) {
  __int128 start = hd_host_tensor_get_int(d[0], 0);
  __int128 distance = hd_host_tensor_get_int(d[1], 0) - start;
  __int128 step = hd_host_tensor_get_int(d[2], 0);
  if (step == 0)
    return false;
  __int128 count = distance / step + (distance % step != 0);
  bool ahead = step > 0 ? distance > 0 : distance < 0;
  *n = ahead ? (int64_t)count : 0;
  return !ahead || count <= INT64_MAX;
}

bool hd_onnx_range(hd_lowering_t *l) {
  const hd_host_tensor_t *data[3];
  const hd_value_t *values[3];
  for (uint32_t i = 0; i < 3; i++) {
    if (!(data[i] = hd_lower_data(l, hd_lower_input(l, i))))
      return false;
    if (data[i]->count != 1)
      return hd_lower_invalid(l, "input %u has %lld elements, not 1", i,
                              (long long)data[i]->count);
    if (!(values[i] = hd_lower_reshape(l, hd_lower_input(l, i), NULL, 0)))
      return false;
  }
  if (hd_lower_int(l, "stash_type", 1) != 1)
    return hd_lower_unsupported(l, "a stash_type that is not float");
  bool is_float = hd_type_is_float(hd_type(values[0]->type));
  int64_t n;
  if (!(is_float ? count_floats : count_ints)(data, &n))
    return hd_lower_invalid(l, "there is no such range");
  hd_attributes_t attributes = {0};
  hd_attributes_int(l, &attributes, "n", n);
  const hd_value_t *inputs[] = {values[0], values[2]};
  return hd_lower_output(
      l, 0, hd_lower_task(l, "range", inputs, 2, &attributes, NULL));
}

const hd_value_t *hd_lower_iota(hd_lowering_t *l, hd_scalar_t type,
                                const int64_t *shape, unsigned rank) {
  hd_host_tensor_t *data;
  const hd_value_t *y = hd_lower_constant(l, type, shape, rank, &data);
  for (int64_t i = 0; y && i < data->count; i++)
    hd_host_tensor_set_int(data, i, i);
  return y;
}

// --- One value, or one place ---

bool hd_onnx_constant_of_shape(hd_lowering_t *l) {
  size_t rank;
  const int64_t *shape = hd_lower_data_ints(l, hd_lower_input(l, 0), &rank);
  if (!shape)
    return false;
  if (rank > HD_MAX_RANK)
    return hd_lower_unsupported(l, "a tensor of rank %zu", rank);
  for (size_t i = 0; i < rank; i++)
    if (shape[i] < 0)
      return hd_lower_invalid(l, "a size of %lld", (long long)shape[i]);
  const hd_attribute_t *a = hd_node_attribute(hd_lower_node(l), "value");
  const hd_value_t *value;
  if (!a)
    value = hd_lower_scalar(l, HD_F32, 0);
  else if (a->kind != HD_ATTRIBUTE_TENSOR || hd_lower_count(a->u.tensor) != 1)
    return hd_lower_invalid(l, "'value' is no tensor of one element");
  else
    value = hd_lower_reshape(l, hd_lower_tensor(l, a->u.tensor), NULL, 0);
  return value && hd_lower_output(
                      l, 0, hd_lower_expand(l, value, shape, (unsigned)rank));
}

bool hd_onnx_eye_like(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  if (x->rank != 2)
    return hd_lower_invalid(l, "the input has rank %d, not 2", x->rank);
  hd_scalar_t type = hd_lower_scalar_type(l, "dtype", x->type);
  if (type == HD_VOID)
    return false;
  hd_attributes_t attributes = {0};
  hd_attributes_type(l, &attributes, "T", type);
  hd_attributes_int(l, &attributes, "n", hd_lower_size(x, 0));
  hd_attributes_int(l, &attributes, "m", hd_lower_size(x, 1));
  hd_attributes_int(l, &attributes, "k", hd_lower_int(l, "k", 0));
  return hd_lower_output(l, 0,
                         hd_lower_task(l, "eye", NULL, 0, &attributes, NULL));
}

bool hd_onnx_one_hot(hd_lowering_t *l) {
  const hd_value_t *index = hd_lower_input(l, 0),
                   *values = hd_lower_input(l, 2);
  int64_t axis, depth;
  if (!hd_lower_axis(l, "axis", -1, index->rank + 1, &axis) ||
      !one_int(l, 1, "depth", &depth))
    return false;
  if (depth < 0 || hd_lower_count(values) != 2 || index->rank == HD_MAX_RANK)
    return hd_lower_invalid(l, "a depth of %lld with %lld values",
                            (long long)depth,
                            (long long)hd_lower_count(values));
  int64_t shape[HD_MAX_RANK],
      flat[] = {hd_lower_product(index, 0, (int)axis),
                hd_lower_product(index, (int)axis, index->rank)};
  for (int i = 0, from = 0; i <= index->rank; i++)
    shape[i] = i == axis ? depth : hd_lower_size(index, from++);
  hd_attributes_t attributes = {0};
  hd_attributes_int(l, &attributes, "n", depth);
  const hd_value_t *inputs[] = {hd_lower_reshape(l, index, flat, 2), values};
  const hd_value_t *y =
      inputs[0] ? hd_lower_task(l, "one_hot", inputs, 2, &attributes, NULL)
                : NULL;
  return y &&
         hd_lower_output(
             l, 0, hd_lower_reshape(l, y, shape, (unsigned)index->rank + 1));
}

// --- Windows ---

static double window(const char *name, double turn) {
  if (strcmp(name, "hann") == 0)
    return 0.5 - 0.5 * cos(turn);
  if (strcmp(name, "hamming") == 0)
    return 25.0 / 46 - 21.0 / 46 * cos(turn);
  return 0.42 - 0.5 * cos(turn) + 0.08 * cos(2 * turn); // blackman
}

// The argument says which.
bool hd_onnx_window(hd_lowering_t *l) {
  static const double two_pi = 6.283185307179586;
  int64_t size;
  hd_scalar_t type = hd_lower_scalar_type(l, "output_datatype", HD_F32);
  if (type == HD_VOID || !one_int(l, 0, "size", &size))
    return false;
  if (size < 0)
    return hd_lower_invalid(l, "a size of %lld", (long long)size);
  int64_t period = hd_lower_int(l, "periodic", 1) ? size : size - 1;
  hd_host_tensor_t *data;
  const hd_value_t *y = hd_lower_constant(l, type, &size, 1, &data);
  for (int64_t i = 0; y && i < size; i++) {
    double turn = period > 0 ? two_pi * (double)i / (double)period : 0;
    hd_host_tensor_set(data, i, window(hd_lower_argument(l), turn));
  }
  return hd_lower_output(l, 0, y);
}

// --- Det ---

// By elimination with the greatest pivot; the matrix is overwritten.
static double determinant(hd_budget_t *budget, double *m, int64_t n) {
  double product = 1;
  for (int64_t c = 0; c < n; c++) {
    hd_budget_check(budget);
    int64_t pivot = c;
    for (int64_t r = c + 1; r < n; r++)
      if (fabs(m[r * n + c]) > fabs(m[pivot * n + c]))
        pivot = r;
    if (m[pivot * n + c] == 0)
      return 0;
    for (int64_t k = 0; pivot != c && k < n; k++) {
      double swap = m[c * n + k];
      m[c * n + k] = m[pivot * n + k];
      m[pivot * n + k] = swap;
    }
    product *= pivot != c ? -m[c * n + c] : m[c * n + c];
    for (int64_t r = c + 1; r < n; r++) {
      double factor = m[r * n + c] / m[c * n + c];
      for (int64_t k = c; k < n; k++)
        m[r * n + k] -= factor * m[c * n + k];
    }
  }
  return product;
}

// As many as there are matrices, which the shape says.
static bool find_determinants(hd_finding_t *f) {
  const hd_host_tensor_t *data = f->inputs[0];
  int64_t n = data->shape[data->rank - 1];
  hd_host_tensor_t *result =
      hd_host_tensor_make(f->arena, data->type, data->shape, data->rank - 2);
  // As large as one of the matrices, and there may be none.
  double *matrix =
      HD_ARENA_ARRAY(f->arena, double, data->count ? (size_t)(n * n) : 1);
  for (int64_t i = 0; i < result->count; i++) {
    for (int64_t k = 0; k < n * n; k++)
      matrix[k] = hd_host_tensor_get(data, i * n * n + k);
    hd_host_tensor_set(result, i, determinant(&f->context->budget, matrix, n));
  }
  f->outputs[0] = result;
  return true;
}

bool hd_onnx_det(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *y;
  if (x->rank < 2 ||
      hd_lower_size(x, x->rank - 1) != hd_lower_size(x, x->rank - 2))
    return hd_lower_invalid(l, "the input is no square matrix");
  hd_tensor_type_t type = hd_lower_type(x);
  type.rank -= 2;
  hd_find_t find = {.run = find_determinants,
                    .num_inputs = 1,
                    .inputs = {x},
                    .num_outputs = 1,
                    .outputs = {type}};
  return hd_lower_find(l, &find, &y) && hd_lower_output(l, 0, y);
}
