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
  return x[2] && hd_lower_become(l, "onnx", "Where", VERSION, x, 3);
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
  return hd_lower_become(l, "onnx", "Concat", VERSION, x, count);
}

// An operator of images whose channels come last.
static bool with_channels_last(hd_lowering_t *l, const char *op,
                               const hd_value_t **x, uint32_t count) {
  x[0] = move_channels(l, x[0], false);
  const hd_value_t *y =
      x[0] ? hd_lower_as(l, "onnx", op, VERSION, x, count) : NULL;
  return hd_lower_output(l, 0, y ? move_channels(l, y, true) : NULL);
}

bool hd_onnx_ms_qlinear_conv(hd_lowering_t *l) {
  const hd_value_t *x[9];
  for (uint32_t i = 0; i < 9; i++)
    x[i] = hd_lower_input(l, i);
  return hd_lower_int(l, "channels_last", 0)
             ? with_channels_last(l, "QLinearConv", x, 9)
             : hd_lower_become(l, "onnx", "QLinearConv", VERSION, x, 9);
}

bool hd_onnx_ms_nhwc_max_pool(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0);
  return with_channels_last(l, "MaxPool", &x, 1);
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
  const hd_value_t *all = read_steps(l, 3, 6, x->type, &s)
                              ? scaled_product(l, x, &s, 4, 7, 2)
                              : NULL;
  return all && hd_lower_packed_attention(l, all, hd_lower_input(l, 5), NULL,
                                          hd_lower_input(l, 8));
}

// Weights of a recurrent layer, [directions, k, n], as it has them in ONNX; one
// scale and zero point for each direction, or for each of its columns.
static const hd_value_t *read_weights(hd_lowering_t *l, uint32_t input,
                                      uint32_t steps) {
  static const int64_t order[] = {0, 2, 1};
  const hd_value_t *w = hd_lower_input(l, input), *y[2];
  if (!is_byte(l, w))
    return NULL;
  if (w->rank != 3)
    return hd_lower_invalid(l, "weights of rank %d", w->rank), NULL;
  for (uint32_t i = 0; i < 2; i++) {
    const hd_value_t *v = hd_lower_input(l, steps + i);
    int64_t shape[] = {hd_lower_size(w, 0), 1, 1};
    if (v->rank == 2)
      shape[2] = hd_lower_size(w, 2);
    if (hd_lower_count(v) != hd_size_times(shape[0], shape[2]))
      return hd_lower_invalid(l, "input %u has %lld elements", steps + i,
                              (long long)hd_lower_count(v)),
             NULL;
    if (!(y[i] = hd_lower_reshape(l, v, shape, 3)))
      return NULL;
  }
  w = hd_lower_dequantize(l, w, y[0], y[1], y[0]->type);
  return w ? hd_lower_transpose(l, w, order) : NULL;
}

// Only the weights are narrow: inputs and states keep their fractions, which
// ONNX Runtime rounds to bytes by the range of as many rows as a thread has.
bool hd_onnx_ms_dynamic_lstm(hd_lowering_t *l) {
  const hd_value_t *x[8];
  for (uint32_t i = 0; i < 8; i++)
    x[i] = hd_lower_input(l, i);
  for (uint32_t i = 8; i < 12; i++)
    if (!hd_lower_input(l, i))
      return hd_lower_invalid(l, "input %u is missing", i);
  x[1] = read_weights(l, 1, 8);
  x[2] = x[1] ? read_weights(l, 2, 10) : NULL;
  return x[2] && hd_lower_become(l, "onnx", "LSTM", VERSION, x, 8);
}

// --- Embeddings ---

// The numbers of a table of EmbedLayerNormalization, or of that of bytes, whose
// scales are inputs 6 further on, and zero points 5 behind these.
static const hd_value_t *read_table(hd_lowering_t *l, uint32_t input,
                                    bool narrow, int rank,
                                    const hd_value_t *rows) {
  const hd_value_t *x = hd_lower_input(l, input);
  steps_t s;
  if (!x || x->rank != rank)
    return hd_lower_invalid(l, "input %u is no table of rank %d", input, rank),
           NULL;
  if (narrow &&
      (!is_byte(l, x) || !read_steps(l, input + 6, input + 11, x->type, &s)))
    return NULL;
  x = rows ? hd_lower_gather(l, x, rows, 0) : x;
  return x && narrow ? hd_lower_dequantize(l, x, s.scale, s.zero, s.scale->type)
                     : x;
}

// Of each sequence how many tokens a mask has; of no mask, none.
static const hd_value_t *count_tokens(hd_lowering_t *l, const hd_value_t *ids,
                                      const hd_value_t *mask) {
  int64_t batch = hd_lower_size(ids, 0);
  int64_t shape[] = {batch, hd_lower_size(ids, 1), 1};
  hd_host_tensor_t *zeros;
  if (!mask)
    return hd_lower_constant(l, HD_I32, &batch, 1, &zeros);
  if (hd_lower_count(mask) != hd_lower_count(ids))
    return hd_lower_invalid(l, "a mask of %lld elements for %lld tokens",
                            (long long)hd_lower_count(mask),
                            (long long)hd_lower_count(ids)),
           NULL;
  mask = hd_lower_cast(l, mask, HD_I32);
  mask = mask ? hd_lower_reshape(l, mask, shape, 3) : NULL;
  mask = mask ? hd_lower_unary(l, "reduce_sum", mask) : NULL;
  return mask ? hd_lower_reshape(l, mask, &batch, 1) : NULL;
}

// The rows of tables for tokens, their places and their segments, summed and
// normalized.
static bool embed(hd_lowering_t *l, bool narrow) {
  const hd_value_t *ids = hd_lower_input(l, 0),
                   *segments = hd_lower_input(l, 1);
  if (ids->rank != 2)
    return hd_lower_invalid(l, "tokens of rank %d", ids->rank);
  const hd_value_t *places = narrow ? NULL : hd_lower_input(l, 8);
  const hd_value_t *table = hd_lower_input(l, 3);
  int64_t length = hd_lower_size(ids, 1);
  if (!places && table && table->rank == 2 && hd_lower_size(table, 0) < length)
    return hd_lower_invalid(l, "%lld tokens, and a table of %lld places",
                            (long long)length,
                            (long long)hd_lower_size(table, 0));
  places = places ? places : hd_lower_iota(l, HD_I64, &length, 1);
  const hd_value_t *x = places ? read_table(l, 2, narrow, 2, ids) : NULL;
  const hd_value_t *y = x ? read_table(l, 3, narrow, 2, places) : NULL;
  x = y ? hd_lower_binary(l, "add", x, y) : NULL;
  if (x && segments) {
    y = read_table(l, 4, narrow, 2, segments);
    x = y ? hd_lower_binary(l, "add", x, y) : NULL;
  }
  if (!x)
    return false;
  const hd_value_t *inputs[] = {x, read_table(l, 5, narrow, 1, NULL), NULL};
  inputs[2] = inputs[1] ? read_table(l, 6, narrow, 1, NULL) : NULL;
  if (!inputs[2])
    return false;
  hd_attributes_t list = {0};
  hd_attributes_int(l, &list, "s", 2);
  hd_attributes_int(l, &list, "count", hd_lower_size(x, 2));
  hd_attributes_float(l, &list, "epsilon", hd_lower_float(l, "epsilon", 1e-12));
  y = hd_lower_task(l, "layer_norm", inputs, 3, &list, NULL);
  return hd_lower_output(l, 0, y) &&
         (!hd_lower_wants_output(l, 1) ||
          hd_lower_output(l, 1, count_tokens(l, ids, hd_lower_input(l, 7)))) &&
         (!hd_lower_wants_output(l, 2) || hd_lower_output(l, 2, x));
}

bool hd_onnx_ms_embed(hd_lowering_t *l) { return embed(l, false); }
bool hd_onnx_ms_embed_bytes(hd_lowering_t *l) { return embed(l, true); }
