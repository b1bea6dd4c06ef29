// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators of com.microsoft that exports of transformers commonly hold.
#include "Graph/Expand/Lower/Attention.h"
#include "Graph/Expand/Lower/ControlFlow.h"
#include "Graph/Expand/Lower/Products.h"

#include <math.h>
#include <string.h>

// The sum of its inputs, through a task of one operand.
static bool activate(hd_lowering_t *l, const char *task,
                     const hd_attributes_t *list) {
  const hd_value_t *x = hd_lower_input(l, 0), *bias = hd_lower_input(l, 1);
  x = bias ? hd_lower_binary(l, "add", x, bias) : x;
  x = x ? hd_lower_task(l, task, &x, 1, list, NULL) : NULL;
  return hd_lower_output(l, 0, x);
}

bool hd_onnx_ms_gelu(hd_lowering_t *l) {
  return activate(l, hd_lower_argument(l), NULL);
}

bool hd_onnx_ms_quick_gelu(hd_lowering_t *l) {
  hd_attributes_t list = {0};
  hd_attributes_float(l, &list, "alpha", hd_lower_float(l, "alpha", 1.702));
  return activate(l, "swish", &list);
}

bool hd_onnx_ms_fused_matmul(hd_lowering_t *l) {
  const hd_value_t *a = hd_lower_input(l, 0), *b = hd_lower_input(l, 1);
  bool ta = hd_lower_int(l, "transA", 0), tb = hd_lower_int(l, "transB", 0);
  if (hd_lower_int(l, "transBatchA", 0) || hd_lower_int(l, "transBatchB", 0))
    return hd_lower_unsupported(l, "transBatchA and transBatchB");
  const hd_value_t *y = a->rank < 2 || b->rank < 2
                            ? hd_lower_numpy_matmul(l, a, b)
                            : hd_lower_matmul(l, a, b, ta, tb);
  y = y ? hd_lower_scale(l, y, hd_lower_float(l, "alpha", 1)) : NULL;
  return hd_lower_output(l, 0, y);
}

// Normalizes a sum, over the last axis, and gives the sum as well.
static bool skip_norm(hd_lowering_t *l, bool rms) {
  const hd_value_t *x = hd_lower_input(l, 0), *skip = hd_lower_input(l, 1);
  const hd_value_t *scale = hd_lower_input(l, 2);
  const hd_value_t *shift = rms ? NULL : hd_lower_input(l, 3);
  const hd_value_t *bias = hd_lower_input(l, rms ? 3 : 4);
  if (hd_lower_wants_output(l, 1) || hd_lower_wants_output(l, 2))
    return hd_lower_unsupported(l, "mean and deviation as results");
  x = hd_lower_binary(l, "add", x, skip);
  x = x && bias ? hd_lower_binary(l, "add", x, bias) : x;
  if (!x)
    return false;
  int64_t width = hd_lower_size(x, x->rank - 1);
  if (scale->rank != 1 || hd_lower_size(scale, 0) != width ||
      (shift && (shift->rank != 1 || hd_lower_size(shift, 0) != width)))
    return hd_lower_invalid(l, "scale and shift have %lld elements",
                            (long long)width);
  hd_host_tensor_t *data;
  if (!rms && !shift)
    shift = hd_lower_constant(l, scale->type, &width, 1, &data);
  const hd_value_t *inputs[] = {x, scale, shift};
  hd_attributes_t list = {0};
  hd_attributes_int(l, &list, "s", x->rank - 1);
  hd_attributes_int(l, &list, "count", width);
  hd_attributes_float(l, &list, "epsilon", hd_lower_float(l, "epsilon", 1e-12));
  const hd_value_t *y =
      rms || shift ? hd_lower_task(l, rms ? "rms_norm_scale" : "layer_norm",
                                   inputs, rms ? 2 : 3, &list, NULL)
                   : NULL;
  return hd_lower_output(l, 0, y) &&
         (!hd_lower_wants_output(l, 3) || hd_lower_output(l, 3, x));
}

bool hd_onnx_ms_skip_layer_norm(hd_lowering_t *l) {
  return skip_norm(l, false);
}

bool hd_onnx_ms_skip_rms_norm(hd_lowering_t *l) { return skip_norm(l, true); }

// positions: those of each token, or the first one's.
bool hd_onnx_ms_rotary_embedding(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *positions = hd_lower_input(l, 1);
  int64_t dimension = hd_lower_int(l, "rotary_embedding_dim", 0);
  int64_t heads = hd_lower_int(l, "num_heads", 0);
  if (hd_lower_int(l, "is_packed_batching", 0) ||
      hd_lower_float(l, "scale", 1) != 1)
    return hd_lower_unsupported(l, "is_packed_batching, scale");
  const hd_value_t *cosine = hd_lower_input(l, 2);
  if ((x->rank != 3 && x->rank != 4) || cosine->rank != 2)
    return hd_lower_invalid(l, "a tensor of rank %d, a cache of rank %d",
                            x->rank, cosine->rank);
  if (x->rank == 3 && heads == 0) {
    int64_t head = dimension ? 0 : 2 * hd_lower_size(cosine, 1);
    if (head == 0)
      return hd_lower_invalid(l, "num_heads is missing");
    heads = hd_lower_size(x, 2) / head;
  }
  if (hd_lower_count(positions) == 1) {
    int64_t length = hd_lower_size(x, x->rank == 3 ? 1 : 2);
    int64_t shape[] = {1, length};
    const hd_value_t *steps = hd_lower_iota(l, HD_I64, shape, 2);
    positions = hd_lower_reshape(l, positions, NULL, 0);
    positions =
        positions && steps ? hd_lower_binary(l, "add", steps, positions) : NULL;
  }
  cosine = positions ? hd_lower_gather(l, cosine, positions, 0) : NULL;
  const hd_value_t *sine =
      cosine ? hd_lower_gather(l, hd_lower_input(l, 3), positions, 0) : NULL;
  const hd_value_t *y =
      sine ? hd_lower_rotary(l, x, heads, cosine, sine,
                             hd_lower_int(l, "interleaved", 0) != 0)
           : NULL;
  return hd_lower_output(l, 0, y);
}

// What is added to scores of keys that do not count.
static double filter_value(hd_lowering_t *l) {
  return hd_lower_float(l, "mask_filter_value", -10000);
}

// A mask of ones and zeros over the keys, of all queries or of each, as what is
// added to scores.
static const hd_value_t *mask_bias(hd_lowering_t *l, const hd_value_t *mask,
                                   hd_scalar_t type) {
  int64_t shape[] = {hd_lower_size(mask, 0), 1,
                     mask->rank == 3 ? hd_lower_size(mask, 1) : 1,
                     hd_lower_size(mask, mask->rank - 1)};
  double filter = filter_value(l);
  const hd_value_t *inputs[] = {hd_lower_convert(l, mask, HD_BOOL),
                                hd_lower_scalar(l, type, 0),
                                hd_lower_scalar(l, type, filter)};
  if (!inputs[0] || !inputs[1] || !inputs[2])
    return NULL;
  mask = hd_lower_task(l, "where", inputs, 3, NULL, NULL);
  return mask ? hd_lower_reshape(l, mask, shape, 4) : NULL;
}

// How many keys count, where the others' weights are 0 then. Where none does,
// the same is added to the scores of all, and all do.
static const hd_value_t *key_counts(hd_lowering_t *l, const hd_value_t *length,
                                    int64_t keys) {
  const hd_value_t *one = hd_lower_scalar(l, length->type, 1);
  const hd_value_t *all = hd_lower_scalar(l, length->type, (double)keys);
  const hd_value_t *less[] = {length, one};
  const hd_value_t *none =
      one && all ? hd_lower_task(l, "less", less, 2, NULL, NULL) : NULL;
  const hd_value_t *inputs[] = {none, all, length};
  return none ? hd_lower_task(l, "where", inputs, 3, NULL, NULL) : NULL;
}

// Whether it says of keys, or of queries and keys, which count.
static bool is_mask(const hd_attention_t *a, const hd_value_t *mask) {
  int rank = mask->rank;
  return (rank == 2 || (rank == 3 && hd_lower_size(mask, 1) ==
                                         hd_lower_size(a->query, 2))) &&
         hd_lower_size(mask, 0) == hd_lower_size(a->query, 0) &&
         hd_lower_size(mask, rank - 1) == hd_lower_size(a->key, 2);
}

// Whether keys are before an end of each sequence, and not before a start; ends
// come first in x.
static const hd_value_t *mask_between(hd_lowering_t *l, const hd_value_t *x,
                                      int64_t batch, int64_t keys) {
  const hd_value_t *within[2];
  int64_t column[] = {batch, 1};
  const hd_value_t *at = hd_lower_iota(l, x->type, &keys, 1);
  for (int64_t i = 0; i < 2; i++) {
    int64_t start = i * batch;
    const hd_value_t *bound = hd_lower_slice(l, x, &start, &batch, NULL);
    bound = bound && at ? hd_lower_reshape(l, bound, column, 2) : NULL;
    if (!bound || !(within[i] = hd_lower_binary(l, i ? "greater_equal" : "less",
                                                at, bound)))
      return NULL;
  }
  return hd_lower_binary(l, "and", within[0], within[1]);
}

// Of keys: how many there are, or which; and what else is added to scores.
static bool read_masks(hd_lowering_t *l, hd_attention_t *a,
                       const hd_value_t *mask, const hd_value_t *bias) {
  int64_t batch = hd_lower_size(a->query, 0), keys = hd_lower_size(a->key, 2);
  if (mask && mask->rank == 1 && hd_lower_size(mask, 0) == 2 * batch &&
      !(mask = mask_between(l, mask, batch, keys)))
    return false;
  if (mask && mask->rank == 1 && hd_lower_size(mask, 0) == batch) {
    if (filter_value(l) > -1000)
      return hd_lower_unsupported(l, "mask_filter_value %g with lengths",
                                  filter_value(l));
    if (!(a->length = key_counts(l, mask, keys)))
      return false;
  } else if (mask && is_mask(a, mask)) {
    if (!(a->mask = mask_bias(l, mask, a->query->type)))
      return false;
  } else if (mask) {
    return hd_lower_unsupported(l, "a mask of rank %d of that shape",
                                mask->rank);
  }
  if (bias && a->mask)
    a->mask = hd_lower_binary(l, "add", a->mask, bias);
  else if (bias)
    a->mask = bias;
  return !bias || a->mask;
}

static bool attend(hd_lowering_t *l, hd_attention_t *a) {
  int64_t head = hd_lower_size(a->query, 3);
  double scale = hd_lower_float(l, "scale", 0);
  a->scale = scale != 0 ? scale : 1 / sqrt((double)(head ? head : 1));
  a->has_right = hd_lower_int(l, "unidirectional", 0) != 0;
  if (a->scale < 0)
    return hd_lower_unsupported(l, "a scale below 0");
  const hd_value_t *y = hd_lower_attention(l, a);
  y = y ? hd_lower_join_heads(l, y) : NULL;
  return hd_lower_output(l, 0, y);
}

// Columns [start, start + size) of the last axis.
static const hd_value_t *columns(hd_lowering_t *l, const hd_value_t *x,
                                 int64_t from, int64_t size) {
  int64_t start[HD_MAX_RANK] = {0};
  hd_tensor_type_t type = hd_lower_type(x);
  start[type.rank - 1] = from;
  type.shape[type.rank - 1] = size;
  return hd_lower_slice(l, x, start, type.shape, NULL);
}

// What was before the keys and values, [2, b, heads, n, d], put before them.
static bool add_past(hd_lowering_t *l, hd_attention_t *a,
                     const hd_value_t *past) {
  const hd_value_t **both[] = {&a->key, &a->value};
  if (past->rank != 5 || hd_lower_size(past, 0) != 2)
    return hd_lower_invalid(l, "past keys and values of rank %d", past->rank);
  a->past = hd_lower_size(past, 3);
  for (int i = 0; i < 2; i++) {
    const hd_value_t *items[] = {hd_lower_take(l, past, 0, i), *both[i]};
    if (!items[0] || !(*both[i] = hd_lower_concat(l, items, 2, 2)))
      return false;
  }
  return true;
}

bool hd_lower_packed_attention(hd_lowering_t *l, const hd_value_t *all,
                               const hd_value_t *mask, const hd_value_t *bias,
                               const hd_value_t *past) {
  int64_t heads = hd_lower_int(l, "num_heads", 0), at = 0;
  size_t count;
  const int64_t *given = hd_lower_ints(l, "qkv_hidden_sizes", &count);
  const hd_value_t *parts[3];
  if (hd_lower_int(l, "past_present_share_buffer", 0) ||
      hd_lower_int(l, "do_rotary", 0))
    return hd_lower_unsupported(l, "past_present_share_buffer, do_rotary");
  if (given && count != 3)
    return hd_lower_invalid(l, "qkv_hidden_sizes has %zu entries", count);
  if (all->rank != 3)
    return hd_lower_invalid(l, "an input of rank %d", all->rank);
  int64_t width = hd_lower_size(all, 2);
  for (int i = 0; i < 3; i++) {
    int64_t size = given ? given[i] : width / 3;
    if (size < 1 || at > width - size)
      return hd_lower_invalid(l, "the hidden sizes pass %lld",
                              (long long)width);
    parts[i] = columns(l, all, at, size);
    parts[i] = parts[i] ? hd_lower_split_heads(l, parts[i], heads) : NULL;
    if (!parts[i])
      return false;
    at += size;
  }
  hd_attention_t a = {.query = parts[0], .key = parts[1], .value = parts[2]};
  if (past && !add_past(l, &a, past))
    return false;
  const hd_value_t *present[] = {a.key, a.value};
  return read_masks(l, &a, mask, bias) && attend(l, &a) &&
         (!hd_lower_wants_output(l, 1) ||
          hd_lower_output(l, 1, hd_lower_stack(l, present, 2, 0)));
}

// Queries, keys and values come from one product.
bool hd_onnx_ms_attention(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *bias = hd_lower_input(l, 2);
  if (hd_lower_input(l, 6))
    return hd_lower_unsupported(l, "past_sequence_length");
  const hd_value_t *all = hd_lower_numpy_matmul(l, x, hd_lower_input(l, 1));
  all = all && bias ? hd_lower_binary(l, "add", all, bias) : all;
  return all &&
         hd_lower_packed_attention(l, all, hd_lower_input(l, 3),
                                   hd_lower_input(l, 5), hd_lower_input(l, 4));
}

// x [b, n, hidden], with its part of the bias, by heads; what has them already
// is left as it is.
static const hd_value_t *to_heads(hd_lowering_t *l, const hd_value_t *x,
                                  const hd_value_t *bias, int64_t from,
                                  int64_t heads) {
  if (x->rank == 4)
    return x;
  if (bias) {
    bias = columns(l, bias, from, hd_lower_size(x, x->rank - 1));
    x = bias ? hd_lower_binary(l, "add", x, bias) : NULL;
  }
  return x ? hd_lower_split_heads(l, x, heads) : NULL;
}

bool hd_onnx_ms_multi_head_attention(hd_lowering_t *l) {
  const hd_value_t *q = hd_lower_input(l, 0), *k = hd_lower_input(l, 1);
  const hd_value_t *v = hd_lower_input(l, 2), *bias = hd_lower_input(l, 3);
  const hd_value_t *past[] = {hd_lower_input(l, 6), hd_lower_input(l, 7)};
  int64_t heads = hd_lower_int(l, "num_heads", 0);
  if (!k || !v || q->rank != 3)
    return hd_lower_unsupported(l, "packed queries, keys and values");
  int64_t width = hd_lower_size(q, 2);
  hd_attention_t a = {.query = to_heads(l, q, bias, 0, heads)};
  a.key = a.query ? to_heads(l, k, bias, width, heads) : NULL;
  a.value = a.key ? to_heads(l, v, bias, 2 * width, heads) : NULL;
  if (!a.value)
    return false;
  const hd_value_t **both[] = {&a.key, &a.value};
  for (int i = 0; i < 2; i++) {
    const hd_value_t *items[] = {past[i], *both[i]};
    if (past[i] && !(*both[i] = hd_lower_concat(l, items, 2, 2)))
      return false;
  }
  a.past = past[0] ? hd_lower_size(past[0], 2) : 0;
  return read_masks(l, &a, hd_lower_input(l, 4), hd_lower_input(l, 5)) &&
         attend(l, &a) &&
         (!hd_lower_wants_output(l, 1) || hd_lower_output(l, 1, a.key)) &&
         (!hd_lower_wants_output(l, 2) || hd_lower_output(l, 2, a.value));
}
