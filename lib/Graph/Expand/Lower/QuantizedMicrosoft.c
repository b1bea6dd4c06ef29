// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators of bytes of com.microsoft, as ONNX Runtime's tools write them: what
// an operator of ONNX makes of the numbers that the bytes are worth, as bytes,
// and products of bytes. ONNX Runtime gives the same bytes but for ties, and
// for the softmax, whose result it scales by 1 / scale rounded to an integer.
#include "Graph/Expand/Lower/Attention.h"
#include "Graph/Expand/Lower/Products.h"
#include "Graph/Expand/Lower/Quantize.h"

// What ONNX's operators are lowered as: of the versions that have axes as an
// attribute.
enum { VERSION = 13 };

// A scale or a zero point that is one number.
static const hd_value_t *one_number(hd_lowering_t *l, uint32_t input) {
  const hd_value_t *v = hd_lower_input(l, input);
  if (!v)
    return hd_lower_invalid(l, "input %u is missing", input), NULL;
  if (hd_lower_count(v) != 1)
    return hd_lower_invalid(l, "input %u has %lld elements, and one is needed",
                            input, (long long)hd_lower_count(v)),
           NULL;
  return hd_lower_reshape(l, v, NULL, 0);
}

static bool is_byte(hd_lowering_t *l, const hd_value_t *v) {
  return v->type == HD_I8 || v->type == HD_U8 ||
         hd_lower_unsupported(l, "elements of type %s",
                              hd_scalar_name(v->type));
}

// Scale and zero point of bytes of a type; 0 where no zero point is given.
typedef struct steps {
  const hd_value_t *scale, *zero;
} steps_t;

static bool read_steps(hd_lowering_t *l, uint32_t scale, uint32_t zero,
                       hd_scalar_t type, steps_t *s) {
  s->scale = one_number(l, scale);
  if (s->scale)
    s->zero = hd_lower_input(l, zero) ? one_number(l, zero)
                                      : hd_lower_scalar(l, type, 0);
  if (!s->scale || !s->zero)
    return false;
  return s->zero->type == type ||
         hd_lower_invalid(l, "a zero point of type %s for elements of type %s",
                          hd_scalar_name(s->zero->type), hd_scalar_name(type));
}

// What the bytes of three inputs are worth: elements, scale, zero point.
static const hd_value_t *read_numbers(hd_lowering_t *l, uint32_t input) {
  const hd_value_t *x = hd_lower_input(l, input);
  steps_t s;
  if (!x)
    return hd_lower_invalid(l, "input %u is missing", input), NULL;
  return is_byte(l, x) && read_steps(l, input + 1, input + 2, x->type, &s)
             ? hd_lower_dequantize(l, x, s.scale, s.zero, s.scale->type)
             : NULL;
}

static const hd_value_t *to_bytes(hd_lowering_t *l, const hd_value_t *x,
                                  const steps_t *s) {
  hd_attributes_t list = {0};
  hd_attributes_type(l, &list, "P", HD_F32);
  const hd_value_t *inputs[] = {x, s->scale, s->zero};
  return hd_lower_task(l, "quantize", inputs, 3, &list, NULL);
}

// --- Element by element, and pools ---

// [n, ..., c] to [n, c, ...], or back.
static const hd_value_t *move_channels(hd_lowering_t *l, const hd_value_t *x,
                                       bool back) {
  int64_t order[HD_MAX_RANK];
  for (int i = 0; i < x->rank; i++)
    order[i] = i == 0 ? 0 : back ? i + 1 : i - 1;
  if (x->rank > 1)
    order[back ? x->rank - 1 : 1] = back ? 1 : x->rank - 1;
  return hd_lower_transpose(l, x, order);
}

// The scale and the zero point of the result come last.
static bool between_bytes(hd_lowering_t *l, uint32_t count) {
  const hd_value_t *x[2];
  steps_t s;
  bool channels_last = hd_lower_int(l, "channels_last", 0) != 0;
  int64_t version = hd_lower_int(l, "opset", VERSION);
  for (uint32_t i = 0; i < count; i++) {
    x[i] = read_numbers(l, 3 * i);
    x[i] = x[i] && channels_last ? move_channels(l, x[i], false) : x[i];
    if (!x[i])
      return false;
  }
  if (version < 1 || version > INT32_MAX)
    return hd_lower_invalid(l, "opset is %lld", (long long)version);
  if (!read_steps(l, 3 * count, 3 * count + 1, hd_lower_input(l, 0)->type, &s))
    return false;
  const hd_value_t *y =
      hd_lower_as(l, "onnx", hd_lower_argument(l), (int)version, x, count);
  y = y && channels_last ? move_channels(l, y, true) : y;
  return hd_lower_output(l, 0, y ? to_bytes(l, y, &s) : NULL);
}

bool hd_onnx_ms_qlinear(hd_lowering_t *l) { return between_bytes(l, 1); }
bool hd_onnx_ms_qlinear_binary(hd_lowering_t *l) { return between_bytes(l, 2); }

// --- What only moves bytes: to the steps of the result before that ---

// Of bytes at an input.
static const hd_value_t *to_steps(hd_lowering_t *l, uint32_t input,
                                  const steps_t *s) {
  const hd_value_t *x = read_numbers(l, input);
  return x ? to_bytes(l, x, s) : NULL;
}

bool hd_onnx_ms_qlinear_where(hd_lowering_t *l) {
  steps_t s;
  if (!read_steps(l, 7, 8, hd_lower_input(l, 1)->type, &s))
    return false;
  const hd_value_t *x[] = {hd_lower_input(l, 0), to_steps(l, 1, &s), NULL};
  x[2] = x[1] ? to_steps(l, 4, &s) : NULL;
  return hd_lower_output(
      l, 0, x[2] ? hd_lower_as(l, "onnx", "Where", VERSION, x, 3) : NULL);
}

bool hd_onnx_ms_qlinear_concat(hd_lowering_t *l) {
  uint32_t count = hd_lower_num_inputs(l) / 3;
  const hd_value_t *zero = hd_lower_input(l, 1);
  const hd_value_t **x =
      HD_ARENA_ARRAY(hd_lower_arena(l), const hd_value_t *, count + 1);
  steps_t s;
  if (hd_lower_num_inputs(l) != 3 * count + 2 || count == 0)
    return hd_lower_invalid(l, "%u inputs, and not two and three for each part",
                            hd_lower_num_inputs(l));
  if (!read_steps(l, 0, 1, zero->type, &s))
    return false;
  for (uint32_t i = 0; i < count; i++)
    if (!(x[i] = to_steps(l, 3 * i + 2, &s)))
      return false;
  return hd_lower_output(l, 0,
                         hd_lower_as(l, "onnx", "Concat", VERSION, x, count));
}

bool hd_onnx_ms_qlinear_conv(hd_lowering_t *l) {
  const hd_value_t *x[9];
  bool channels_last = hd_lower_int(l, "channels_last", 0) != 0;
  for (uint32_t i = 0; i < 9; i++)
    x[i] = hd_lower_input(l, i);
  x[0] = channels_last ? move_channels(l, x[0], false) : x[0];
  const hd_value_t *y =
      hd_lower_as(l, "onnx", "QLinearConv", VERSION, x, x[8] ? 9 : 8);
  y = y && channels_last ? move_channels(l, y, true) : y;
  return hd_lower_output(l, 0, y);
}

bool hd_onnx_ms_nhwc_max_pool(hd_lowering_t *l) {
  const hd_value_t *x = move_channels(l, hd_lower_input(l, 0), false);
  const hd_value_t *y = hd_lower_as(l, "onnx", "MaxPool", VERSION, &x, 1);
  return hd_lower_output(l, 0, y ? move_channels(l, y, true) : NULL);
}

// --- Products ---

// Sums of products as numbers, and a bias.
static const hd_value_t *scaled(hd_lowering_t *l, const hd_value_t *sums,
                                const hd_value_t *a, const hd_value_t *b,
                                const hd_value_t *bias) {
  const hd_value_t *factor =
      sums && a && b ? hd_lower_binary(l, "mul", a, b) : NULL;
  const hd_value_t *y =
      factor ? hd_lower_dequantize(l, sums, factor, NULL, factor->type) : NULL;
  return y && bias ? hd_lower_binary(l, "add", y, bias) : y;
}

// Scales or zero points of b: one, or one for each column.
static bool are_of_columns(hd_lowering_t *l, uint32_t input, int64_t columns) {
  const hd_value_t *v = hd_lower_input(l, input);
  int64_t count = v ? hd_lower_count(v) : 1;
  return (count == 1 || (v->rank == 1 && count == columns)) ||
         hd_lower_invalid(l, "input %u has %lld elements for %lld columns",
                          input, (long long)count, (long long)columns);
}

bool hd_onnx_ms_qgemm(hd_lowering_t *l) {
  const hd_value_t *a = hd_lower_input(l, 0), *b = hd_lower_input(l, 3);
  const hd_value_t *c = hd_lower_input(l, 6), *zb = hd_lower_input(l, 5);
  bool ta = hd_lower_int(l, "transA", 0), tb = hd_lower_int(l, "transB", 0);
  steps_t sa, sy;
  if (a->rank != 2 || b->rank != 2)
    return hd_lower_invalid(l, "matrices of ranks %d and %d", a->rank, b->rank);
  int64_t columns = hd_lower_size(b, tb ? 0 : 1), column[] = {columns, 1};
  bool narrows = hd_lower_input(l, 7) != NULL;
  if (narrows != (hd_lower_input(l, 8) != NULL))
    return hd_lower_invalid(l, "y_scale and y_zero_point are not both given");
  if (!are_of_columns(l, 4, columns) || !are_of_columns(l, 5, columns) ||
      !read_steps(l, 1, 2, a->type, &sa) ||
      (narrows && !read_steps(l, 7, 8, hd_lower_input(l, 8)->type, &sy)))
    return false;
  if (tb && zb->rank == 1 && hd_lower_count(zb) > 1)
    zb = hd_lower_reshape(l, zb, column, 2);
  a = hd_lower_subtract_zero(l, a, sa.zero);
  b = a && zb ? hd_lower_subtract_zero(l, b, zb) : NULL;
  const hd_value_t *y = b ? hd_lower_matmul(l, a, b, ta, tb) : NULL;
  y = y && c ? hd_lower_binary(l, "add", y, c) : y;
  const hd_value_t *alpha =
      hd_lower_scale(l, sa.scale, hd_lower_float(l, "alpha", 1));
  if (!y || !alpha)
    return false;
  const hd_value_t *scale = hd_lower_input(l, 4);
  y = narrows ? hd_lower_requantize(l, y, alpha, scale, sy.scale, sy.zero)
              : scaled(l, y, alpha, scale, NULL);
  return hd_lower_output(l, 0, y);
}

// Bytes by the matrix that is input 1, whose columns have scales and zero
// points at inputs, and the result a bias.
static const hd_value_t *scaled_product(hd_lowering_t *l, const hd_value_t *a,
                                        const steps_t *s, uint32_t scale,
                                        uint32_t zero, uint32_t bias) {
  const hd_value_t *b = hd_lower_input(l, 1);
  if (!is_byte(l, a) || !is_byte(l, b))
    return NULL;
  int64_t columns = b->rank ? hd_lower_size(b, b->rank - 1) : 0;
  if (!are_of_columns(l, scale, columns) || !are_of_columns(l, zero, columns))
    return NULL;
  const hd_value_t *y =
      hd_lower_integer_matmul(l, a, s->zero, b, hd_lower_input(l, zero));
  return scaled(l, y, s->scale, hd_lower_input(l, scale),
                hd_lower_input(l, bias));
}

bool hd_onnx_ms_matmul_to_float(hd_lowering_t *l) {
  const hd_value_t *a = hd_lower_input(l, 0);
  steps_t s;
  return read_steps(l, 2, 4, a->type, &s) &&
         hd_lower_output(l, 0, scaled_product(l, a, &s, 3, 5, 6));
}

bool hd_onnx_ms_dynamic_matmul(hd_lowering_t *l) {
  const hd_value_t *a[3];
  if (!hd_lower_dynamic_quantize(l, hd_lower_input(l, 0), a))
    return false;
  steps_t s = {.scale = a[1], .zero = a[2]};
  return hd_lower_output(l, 0, scaled_product(l, a[0], &s, 2, 3, 4));
}

bool hd_onnx_ms_qattention(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  steps_t s;
  if (hd_lower_input(l, 8))
    return hd_lower_unsupported(l, "past keys and values");
  const hd_value_t *all = read_steps(l, 3, 6, x->type, &s)
                              ? scaled_product(l, x, &s, 4, 7, 2)
                              : NULL;
  return all && hd_lower_packed_attention(l, all, hd_lower_input(l, 5), NULL);
}
