// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Quantized operators.
#include "Graph/Expand/Lower/Quantize.h"
#include "Graph/Expand/Lower/Products.h"
#include "Graph/Expand/Lower/Window.h"

#include <string.h>

// The number that zero points are known to be; false: they are several, or not
// known.
static bool one_zero(hd_lowering_t *l, const hd_value_t *zero,
                     int64_t *number) {
  const hd_host_tensor_t *data = hd_type_is_integer(hd_type(zero->type))
                                     ? hd_lower_find_data(l, zero)
                                     : NULL;
  int64_t count = data ? hd_lower_count(zero) : 0;
  for (int64_t i = 0; i < count; i++)
    if (i == 0)
      *number = hd_host_tensor_get_int(data, 0);
    else if (hd_host_tensor_get_int(data, i) != *number)
      return false;
  return count;
}

// Whether zero points are of x's type, and as many as there are places along
// its axes. Of others their task says what is wrong.
static bool lies_beside(const hd_value_t *x, const hd_value_t *zero) {
  bool fits = x->type == zero->type && zero->rank <= x->rank;
  for (int i = 0; fits && i < zero->rank; i++) {
    int64_t size = hd_lower_size(zero, i);
    fits = size == 1 || size == hd_lower_size(x, x->rank - zero->rank + i);
  }
  return fits;
}

// Bytes and their zero points as products like them: without such where that is
// possible. Bytes of the other sign have none where it is the least byte, or
// the middle one. False after an error.
static bool simplify_zeros(hd_lowering_t *l, const hd_value_t **x,
                           const hd_value_t **zero) {
  int64_t number;
  hd_scalar_t type = (*x)->type;
  if (!*zero || !lies_beside(*x, *zero) || !one_zero(l, *zero, &number))
    return true;
  const char *other = type == HD_I8 && number == -128  ? "to_unsigned"
                      : type == HD_U8 && number == 128 ? "to_signed"
                                                       : NULL;
  if (other)
    *x = hd_lower_task(l, other, x, 1, NULL, NULL);
  if (other || number == 0)
    *zero = NULL;
  else
    *zero = hd_lower_scalar(l, (*zero)->type, (double)number);
  return *x && (other || number == 0 || *zero);
}

// How scales and zero points lie beside x: with a scalar they broadcast as they
// are; of an axis they become a column; of blocks along an axis, x takes a view
// in which a block is an axis.
typedef struct scaling {
  const hd_value_t *x;
  const hd_value_t *scale, *zero; // zero may be NULL.
  unsigned rank;                  // Of the result: x's shape.
  int64_t shape[HD_MAX_RANK];
} scaling_t;

// v of size n as [n, 1, ...] with rank - axis axes.
static const hd_value_t *as_column(hd_lowering_t *l, const hd_value_t *v,
                                   int64_t axis, int rank) {
  int64_t shape[HD_MAX_RANK] = {hd_lower_count(v)};
  for (int i = 1; i < rank - axis; i++)
    shape[i] = 1;
  return hd_lower_reshape(l, v, shape, (unsigned)(rank - axis));
}

static const hd_value_t *split_blocks(hd_lowering_t *l, const hd_value_t *v,
                                      int64_t axis, int64_t blocks,
                                      int64_t size) {
  int64_t shape[HD_MAX_RANK];
  for (int i = 0; i < v->rank; i++)
    shape[i + (i > axis)] = hd_lower_size(v, i);
  shape[axis] = blocks;
  shape[axis + 1] = size;
  return hd_lower_reshape(l, v, shape, (unsigned)v->rank + 1);
}

// The scale of each element along the axis, where the last block is short.
static const hd_value_t *repeat_blocks(hd_lowering_t *l, const hd_value_t *v,
                                       int64_t axis, int64_t block,
                                       int64_t size) {
  hd_host_tensor_t *data;
  const hd_value_t *index = hd_lower_constant(l, HD_I64, &size, 1, &data);
  for (int64_t i = 0; index && i < size; i++)
    hd_host_tensor_set_int(data, i, i / block);
  return index ? hd_lower_gather(l, v, index, axis) : NULL;
}

static bool place_blocks(hd_lowering_t *l, scaling_t *s, int64_t axis,
                         int64_t block) {
  int64_t size = hd_lower_size(s->x, (int)axis);
  int64_t blocks = size / block + (size % block != 0);
  const hd_value_t **both[] = {&s->scale, &s->zero};
  bool even = size % block == 0 && s->x->rank < HD_MAX_RANK;
  for (int i = 0; i < 2; i++) {
    const hd_value_t *v = *both[i];
    if (!v)
      continue;
    if (v->rank != s->x->rank || hd_lower_size(v, (int)axis) != blocks)
      return hd_lower_invalid(l, "%lld blocks along axis %lld are expected",
                              (long long)blocks, (long long)axis);
    *both[i] = even ? split_blocks(l, v, axis, blocks, 1)
                    : repeat_blocks(l, v, axis, block, size);
    if (!*both[i])
      return false;
  }
  s->x = even ? split_blocks(l, s->x, axis, blocks, block) : s->x;
  return s->x != NULL;
}

static bool place_scales(hd_lowering_t *l, scaling_t *s) {
  int64_t block = hd_lower_int(l, "block_size", 0), axis;
  s->x = hd_lower_input(l, 0);
  s->scale = hd_lower_input(l, 1);
  s->zero = hd_lower_input(l, 2);
  s->rank = (unsigned)s->x->rank;
  for (unsigned i = 0; i < s->rank; i++)
    s->shape[i] = hd_lower_size(s->x, (int)i);
  if (s->zero && hd_lower_count(s->zero) != hd_lower_count(s->scale))
    return hd_lower_invalid(l, "%lld scales, but %lld zero points",
                            (long long)hd_lower_count(s->scale),
                            (long long)hd_lower_count(s->zero));
  if (block < 0)
    return hd_lower_invalid(l, "block_size is %lld", (long long)block);
  if (block > 0)
    return hd_lower_axis(l, "axis", 1, s->x->rank, &axis) &&
           place_blocks(l, s, axis, block);
  if (hd_lower_count(s->scale) == 1) {
    s->scale = hd_lower_reshape(l, s->scale, NULL, 0);
    s->zero = s->zero ? hd_lower_reshape(l, s->zero, NULL, 0) : NULL;
    return s->scale != NULL;
  }
  if (!hd_lower_axis(l, "axis", 1, s->x->rank, &axis))
    return false;
  if (s->scale->rank != 1 ||
      hd_lower_count(s->scale) != hd_lower_size(s->x, (int)axis))
    return hd_lower_invalid(l, "%lld scales for %lld elements along axis %lld",
                            (long long)hd_lower_count(s->scale),
                            (long long)hd_lower_size(s->x, (int)axis),
                            (long long)axis);
  s->scale = as_column(l, s->scale, axis, s->x->rank);
  s->zero = s->zero ? as_column(l, s->zero, axis, s->x->rank) : NULL;
  return s->scale != NULL;
}

// 0 stands for no type at all.
static hd_scalar_t read_type(hd_lowering_t *l, const char *name,
                             hd_scalar_t otherwise) {
  return hd_lower_int(l, name, 0) ? hd_lower_scalar_type(l, name, otherwise)
                                  : otherwise;
}

// Floats below 16 bits have no zero point but 0, f4 apart.
static const hd_value_t *quantize_to_float(hd_lowering_t *l, const scaling_t *s,
                                           hd_scalar_t type,
                                           const hd_attributes_t *list) {
  const hd_value_t *inputs[] = {s->x, s->scale};
  const hd_value_t *y =
      hd_lower_task(l, "quantize_scale", inputs, 2, list, NULL);
  if (y && s->zero && type == HD_F4E2M1) {
    const hd_value_t *zero = hd_lower_cast(l, s->zero, y->type);
    y = zero ? hd_lower_binary(l, "add", y, zero) : NULL;
  }
  if (y && !hd_lower_int(l, "saturate", 1))
    return hd_lower_unsupported(l, "saturate = 0"), NULL;
  return y ? hd_lower_convert(l, y, type) : NULL;
}

bool hd_onnx_quantize(hd_lowering_t *l) {
  scaling_t s;
  if (!place_scales(l, &s))
    return false;
  hd_scalar_t type =
      s.zero ? s.zero->type : read_type(l, "output_dtype", HD_U8);
  hd_scalar_t precision = read_type(l, "precision", HD_F32);
  if (type == HD_VOID || precision == HD_VOID)
    return false;
  hd_attributes_t list = {0};
  hd_attributes_type(l, &list, "P", precision);
  const hd_value_t *y;
  if (hd_type_is_float(hd_type(type))) {
    y = quantize_to_float(l, &s, type, &list);
  } else {
    const hd_value_t *inputs[] = {
        s.x, s.scale, s.zero ? s.zero : hd_lower_scalar(l, type, 0)};
    y = inputs[2] ? hd_lower_task(l, "quantize", inputs, 3, &list, NULL) : NULL;
  }
  y = y ? hd_lower_reshape(l, y, s.shape, s.rank) : NULL;
  return hd_lower_output(l, 0, y);
}

const hd_value_t *hd_lower_dequantize(hd_lowering_t *l, const hd_value_t *x,
                                      const hd_value_t *scale,
                                      const hd_value_t *zero,
                                      hd_scalar_t type) {
  if (!simplify_zeros(l, &x, &zero))
    return NULL;
  bool plain = !zero || hd_type_is_float(hd_type(x->type));
  hd_attributes_t list = {0};
  hd_attributes_type(l, &list, "R", type);
  const hd_value_t *inputs[] = {x, scale, zero};
  return hd_lower_task(l, plain ? "dequantize_scale" : "dequantize", inputs,
                       plain ? 2 : 3, &list, NULL);
}

bool hd_onnx_dequantize(hd_lowering_t *l) {
  scaling_t s;
  if (!place_scales(l, &s))
    return false;
  hd_scalar_t type = read_type(l, "output_dtype", s.scale->type);
  if (type == HD_VOID)
    return false;
  const hd_value_t *y = hd_lower_dequantize(l, s.x, s.scale, s.zero, type);
  y = y ? hd_lower_reshape(l, y, s.shape, s.rank) : NULL;
  return hd_lower_output(l, 0, y);
}

// A row has a thread block or less, and all of x would have no more.
bool hd_lower_dynamic_quantize(hd_lowering_t *l, const hd_value_t *x,
                               const hd_value_t **outputs) {
  const hd_value_t *range[2];
  int64_t n = x->rank ? hd_lower_size(x, x->rank - 1) : 1;
  const int64_t shape[] = {n ? hd_lower_count(x) / n : 0, n};
  const hd_value_t *rows = hd_lower_reshape(l, x, shape, 2);
  if (!rows || !hd_lower_task(l, "range_of_rows", &rows, 1, NULL, range) ||
      !hd_lower_task(l, "scale_of_range", range, 2, NULL, &outputs[1]))
    return false;
  hd_attributes_t list = {0};
  hd_attributes_type(l, &list, "P", HD_F32);
  const hd_value_t *inputs[] = {x, outputs[1], outputs[2]};
  outputs[0] = hd_lower_task(l, "quantize", inputs, 3, &list, NULL);
  return outputs[0] != NULL;
}

bool hd_onnx_dynamic_quantize(hd_lowering_t *l) {
  const hd_value_t *outputs[3];
  if (!hd_lower_dynamic_quantize(l, hd_lower_input(l, 0), outputs))
    return false;
  for (unsigned i = 0; i < 3; i++)
    if (hd_lower_wants_output(l, i) && !hd_lower_output(l, i, outputs[i]))
      return false;
  return true;
}

const hd_value_t *hd_lower_subtract_zero(hd_lowering_t *l, const hd_value_t *x,
                                         const hd_value_t *zero) {
  if (!hd_type_is_integer(hd_type(x->type)))
    return hd_lower_unsupported(l, "elements of type %s",
                                hd_scalar_name(x->type)),
           NULL;
  if (!simplify_zeros(l, &x, &zero))
    return NULL;
  const hd_value_t *inputs[] = {x, zero};
  return zero ? hd_lower_task(l, "subtract_zero", inputs, 2, NULL, NULL)
              : hd_lower_cast(l, x, HD_I32);
}

// A vector of rows' values: a column.
static const hd_value_t *of_rows(hd_lowering_t *l, const hd_value_t *v) {
  return v && v->rank == 1 && hd_lower_count(v) > 1 ? as_column(l, v, 0, 2) : v;
}

// Of a's rows and b's columns.
const hd_value_t *hd_lower_integer_matmul(hd_lowering_t *l, const hd_value_t *a,
                                          const hd_value_t *za,
                                          const hd_value_t *b,
                                          const hd_value_t *zb) {
  const hd_value_t *rows = of_rows(l, za);
  if (za && !rows)
    return NULL;
  a = hd_lower_subtract_zero(l, a, rows);
  b = a ? hd_lower_subtract_zero(l, b, zb) : NULL;
  return b ? hd_lower_numpy_matmul(l, a, b) : NULL;
}

bool hd_onnx_matmul_integer(hd_lowering_t *l) {
  const hd_value_t *y =
      hd_lower_integer_matmul(l, hd_lower_input(l, 0), hd_lower_input(l, 2),
                              hd_lower_input(l, 1), hd_lower_input(l, 3));
  return hd_lower_output(l, 0, y);
}

const hd_value_t *hd_lower_requantize(hd_lowering_t *l, const hd_value_t *x,
                                      const hd_value_t *a, const hd_value_t *b,
                                      const hd_value_t *y,
                                      const hd_value_t *zero) {
  const hd_value_t *factor = a && b ? hd_lower_binary(l, "mul", a, b) : NULL;
  factor = factor && y ? hd_lower_binary(l, "div", factor, y) : NULL;
  const hd_value_t *inputs[] = {x, factor, zero};
  return factor ? hd_lower_task(l, "requantize", inputs, 3, NULL, NULL) : NULL;
}

bool hd_onnx_qlinear_matmul(hd_lowering_t *l) {
  const hd_value_t *in[8];
  for (unsigned i = 0; i < 8; i++)
    in[i] = hd_lower_input(l, i);
  if (!hd_type_is_integer(hd_type(in[7]->type)))
    return hd_lower_unsupported(l, "elements of type %s",
                                hd_scalar_name(in[7]->type));
  const hd_value_t *y = hd_lower_integer_matmul(l, in[0], in[2], in[3], in[5]);
  y = y ? hd_lower_requantize(l, y, of_rows(l, in[1]), in[4], of_rows(l, in[6]),
                              of_rows(l, in[7]))
        : NULL;
  return hd_lower_output(l, 0, y);
}

// The convolution of integers; zero points of w may be of each filter.
static const hd_value_t *
integer_convolution(hd_lowering_t *l, const hd_value_t *x, const hd_value_t *zx,
                    const hd_value_t *w, const hd_value_t *zw) {
  if (zw && hd_lower_count(zw) > 1 && !(zw = as_column(l, zw, 0, w->rank)))
    return NULL;
  if (zw && hd_lower_count(zw) == 1 && !(zw = hd_lower_reshape(l, zw, NULL, 0)))
    return NULL;
  if (zx && !(zx = hd_lower_reshape(l, zx, NULL, 0)))
    return NULL;
  x = hd_lower_subtract_zero(l, x, zx);
  w = x ? hd_lower_subtract_zero(l, w, zw) : NULL;
  return w ? hd_lower_convolution(l, x, w) : NULL;
}

bool hd_onnx_conv_integer(hd_lowering_t *l) {
  const hd_value_t *y =
      integer_convolution(l, hd_lower_input(l, 0), hd_lower_input(l, 2),
                          hd_lower_input(l, 1), hd_lower_input(l, 3));
  return hd_lower_output(l, 0, y);
}

bool hd_onnx_qlinear_conv(hd_lowering_t *l) {
  const hd_value_t *in[9];
  for (unsigned i = 0; i < 9; i++)
    in[i] = hd_lower_input(l, i);
  const hd_value_t *y = integer_convolution(l, in[0], in[2], in[3], in[5]);
  y = y ? hd_lower_channel_bias(l, y, in[8]) : NULL;
  const hd_value_t *ws = y ? in[4] : NULL;
  if (ws && hd_lower_count(ws) > 1)
    ws = as_column(l, ws, 1, y->rank);
  else if (ws)
    ws = hd_lower_reshape(l, ws, NULL, 0);
  const hd_value_t *xs = ws ? hd_lower_reshape(l, in[1], NULL, 0) : NULL;
  const hd_value_t *ys = xs ? hd_lower_reshape(l, in[6], NULL, 0) : NULL;
  const hd_value_t *zy = ys ? hd_lower_reshape(l, in[7], NULL, 0) : NULL;
  y = zy ? hd_lower_requantize(l, y, xs, ws, ys, zy) : NULL;
  return hd_lower_output(l, 0, y);
}
