// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention of the standard.
#include "Graph/Expand/Lower/Attention.h"

#include "Graph/Expand/Lower/Products.h"

#include <math.h>
#include <string.h>

const hd_value_t *hd_lower_split_heads(hd_lowering_t *l, const hd_value_t *x,
                                       int64_t heads) {
  static const int64_t order[] = {0, 2, 1, 3};
  if (x->rank != 3 || heads < 1 || hd_lower_size(x, 2) % heads != 0)
    return hd_lower_invalid(l,
                            "a tensor of rank %d does not split into %lld "
                            "heads",
                            x->rank, (long long)heads),
           NULL;
  int64_t shape[] = {hd_lower_size(x, 0), hd_lower_size(x, 1), heads,
                     hd_lower_size(x, 2) / heads};
  x = hd_lower_reshape(l, x, shape, 4);
  return x ? hd_lower_transpose(l, x, order) : NULL;
}

const hd_value_t *hd_lower_join_heads(hd_lowering_t *l, const hd_value_t *x) {
  static const int64_t order[] = {0, 2, 1, 3};
  int64_t shape[] = {hd_lower_size(x, 0), hd_lower_size(x, 2),
                     hd_lower_size(x, 1) * hd_lower_size(x, 3)};
  x = hd_lower_transpose(l, x, order);
  return x ? hd_lower_reshape(l, x, shape, 3) : NULL;
}

static const hd_value_t *append(hd_lowering_t *l, const hd_value_t *past,
                                const hd_value_t *x) {
  const hd_value_t *items[] = {past, x};
  return past ? hd_lower_concat(l, items, 2, 2) : x;
}

// [b, h, ...] as [b, groups, h / groups, ...].
static const hd_value_t *group_heads(hd_lowering_t *l, const hd_value_t *x,
                                     int64_t groups) {
  int64_t shape[] = {hd_lower_size(x, 0), groups, hd_lower_size(x, 1) / groups,
                     hd_lower_size(x, 2), hd_lower_size(x, 3)};
  return hd_lower_reshape(l, x, shape, 5);
}

static const hd_value_t *ungroup_heads(hd_lowering_t *l, const hd_value_t *x) {
  int64_t shape[] = {hd_lower_size(x, 0),
                     hd_lower_size(x, 1) * hd_lower_size(x, 2),
                     hd_lower_size(x, 3), hd_lower_size(x, 4)};
  return hd_lower_reshape(l, x, shape, 4);
}

// A product of each head with the head of keys or values that it belongs to.
static const hd_value_t *head_product(hd_lowering_t *l, const hd_value_t *a,
                                      const hd_value_t *b, bool transpose) {
  int64_t heads = hd_lower_size(a, 1), groups = hd_lower_size(b, 1);
  if (heads == groups)
    return hd_lower_matmul(l, a, b, false, transpose);
  if (groups < 1 || heads % groups != 0)
    return hd_lower_invalid(l, "%lld heads for %lld heads of keys",
                            (long long)heads, (long long)groups),
           NULL;
  a = group_heads(l, a, groups);
  b = group_heads(l, b, groups);
  const hd_value_t *c =
      a && b ? hd_lower_matmul(l, a, b, false, transpose) : NULL;
  return c ? ungroup_heads(l, c) : NULL;
}

static const hd_value_t *with_int(hd_lowering_t *l, const char *task,
                                  const hd_value_t *x, const char *name,
                                  int64_t value) {
  hd_attributes_t list = {0};
  hd_attributes_int(l, &list, name, value);
  return hd_lower_task(l, task, &x, 1, &list, NULL);
}

// A bound of the keys that a query sees, by its place.
static const hd_value_t *mask_beside(hd_lowering_t *l, const hd_value_t *x,
                                     const hd_attention_t *a, bool left) {
  const hd_value_t *inputs[] = {x, a->length};
  hd_attributes_t list = {0};
  if (left) {
    hd_attributes_int(l, &list, "left", a->left);
    if (!a->at_end)
      hd_attributes_int(l, &list, "past", a->past);
    return hd_lower_task(l, a->at_end ? "mask_left_end" : "mask_left", inputs,
                         a->at_end ? 2 : 1, &list, NULL);
  }
  if (!a->at_end)
    return with_int(l, "mask_causal", x, "past", a->past + a->right);
  hd_attributes_int(l, &list, "right", a->right);
  return hd_lower_task(l, "mask_causal_end", inputs, 2, &list, NULL);
}

static const hd_value_t *mask_scores(hd_lowering_t *l, const hd_value_t *x,
                                     const hd_attention_t *a) {
  const hd_value_t *inputs[] = {x, a->mask};
  if (a->mask && a->mask->rank < 1)
    return hd_lower_invalid(l, "a mask of rank 0"), NULL;
  if (a->mask)
    x = hd_lower_task(l,
                      a->mask->type == HD_BOOL ? "mask_scores" : "bias_scores",
                      inputs, 2, NULL, NULL);
  if (x && a->has_left)
    x = mask_beside(l, x, a, true);
  if (x && a->has_right)
    x = mask_beside(l, x, a, false);
  // Who sees no key behind the last one needs no other bound.
  if (x && a->length && !(a->at_end && a->has_right && a->right == 0)) {
    const hd_value_t *pair[] = {x, a->length};
    x = hd_lower_task(l, "mask_length", pair, 2, NULL, NULL);
  }
  return x;
}

// Who sees all that was before sees the first key.
static bool may_see_none(const hd_attention_t *a) {
  return a->mask || a->length || a->has_left;
}

// The weights of scores [b, heads, m, n] beside a score of each head.
static const hd_value_t *softmax_with_sink(hd_lowering_t *l,
                                           const hd_value_t *x,
                                           const hd_value_t *sink) {
  hd_tensor_type_t type = hd_lower_type(x);
  int64_t start[4] = {0}, column[] = {1, type.shape[1], 1, 1};
  if (sink->rank != 1 || hd_lower_size(sink, 0) != type.shape[1])
    return hd_lower_invalid(l, "sinks are not one for each of %lld heads",
                            (long long)type.shape[1]),
           NULL;
  sink = hd_lower_reshape(l, hd_lower_cast(l, sink, x->type), column, 4);
  int64_t shape[] = {type.shape[0], type.shape[1], type.shape[2], 1};
  const hd_value_t *items[] = {x, sink ? hd_lower_expand(l, sink, shape, 4)
                                       : NULL};
  x = items[1] ? hd_lower_concat(l, items, 2, 3) : NULL;
  x = x ? with_int(l, "softmax", x, "s", 3) : NULL;
  return x ? hd_lower_slice(l, x, start, type.shape, NULL) : NULL;
}

static const hd_value_t *weigh(hd_lowering_t *l, const hd_value_t *x,
                               const hd_attention_t *a) {
  if (a->sink)
    return softmax_with_sink(l, x, a->sink);
  return may_see_none(a)
             ? hd_lower_task(l, "softmax_counted", &x, 1, NULL, NULL)
             : with_int(l, "softmax", x, "s", 3);
}

// Queries alone are scaled: they are fewer, and kernels copy keys as they lie.
// By what makes them larger keys take a root, so that narrow floats do not
// overflow.
static const hd_value_t *score(hd_lowering_t *l, const hd_attention_t *a) {
  bool both = hd_scalar_bits(a->query->type) < 32 && a->scale > 1;
  const hd_value_t *q =
      hd_lower_scale(l, a->query, both ? sqrt(a->scale) : a->scale);
  const hd_value_t *k =
      both ? hd_lower_scale(l, a->key, sqrt(a->scale)) : a->key;
  return q && k ? head_product(l, q, k, true) : NULL;
}

// x through a graph that gives a tensor of the same type and shape.
static const hd_value_t *modify(hd_lowering_t *l, const hd_graph_t *graph,
                                const hd_value_t *x) {
  const hd_value_t *y;
  if (!graph)
    return x;
  if (graph->outputs.size != 1)
    return hd_lower_invalid(l, "its graph has %zu outputs, not one",
                            graph->outputs.size),
           NULL;
  if (!hd_lower_graph(l, graph, &x, 1, &y))
    return NULL;
  bool same = y->type == x->type && y->rank == x->rank;
  for (int i = 0; same && i < x->rank; i++)
    same = hd_lower_size(x, i) == hd_lower_size(y, i);
  return same ? y
              : (hd_lower_invalid(l, "its graph changes the type or shape"),
                 NULL);
}

const hd_value_t *hd_lower_attention(hd_lowering_t *l,
                                     const hd_attention_t *a) {
  const hd_value_t *stages[4] = {NULL}, *x;
  if (a->query->rank != 4 || a->key->rank != 4 || a->value->rank != 4)
    return hd_lower_invalid(l, "queries, keys and values of rank %d, %d and %d",
                            a->query->rank, a->key->rank, a->value->rank),
           NULL;
  x = stages[0] = score(l, a);
  if (x && a->softcap != 0) {
    hd_attributes_t list = {0};
    hd_attributes_float(l, &list, "cap", a->softcap);
    x = hd_lower_task(l, "softcap", &x, 1, &list, NULL);
  }
  stages[1] = x;
  x = stages[2] = x ? mask_scores(l, x, a) : NULL;
  if (x && a->precision != HD_VOID)
    x = hd_lower_cast(l, x, a->precision);
  x = x ? modify(l, a->score_graph, x) : NULL;
  x = x ? weigh(l, x, a) : NULL;
  x = x ? modify(l, a->weight_graph, x) : NULL;
  x = stages[3] = x ? hd_lower_cast(l, x, a->value->type) : NULL;
  if (!x)
    return NULL;
  if (a->stage) {
    *a->stage = hd_lower_cast(l, stages[a->stage_number], a->query->type);
    if (!*a->stage)
      return NULL;
  }
  x = head_product(l, x, a->value, false);
  return x ? hd_lower_cast(l, x, a->query->type) : NULL;
}

static bool read_precision(hd_lowering_t *l, hd_scalar_t *type) {
  // Numbers of TensorProto.DataType.
  static const struct {
    int64_t number;
    hd_scalar_t type;
  } types[] = {
      {0, HD_VOID}, {1, HD_F32}, {10, HD_F16}, {11, HD_F64}, {16, HD_BF16}};
  int64_t number = hd_lower_int(l, "softmax_precision", 0);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].number == number) {
      *type = types[i].type;
      return true;
    }
  return hd_lower_unsupported(l, "softmax_precision %lld", (long long)number);
}

// is_causal is a right side of 0; of both the narrower one holds. Lengths
// without a past are those of a cache that the queries' own keys are in
// already.
static void read_window(hd_lowering_t *l, hd_attention_t *a) {
  a->left = hd_lower_int(l, "left_window_size", -1);
  a->right = hd_lower_int(l, "right_window_size", -1);
  if (hd_lower_int(l, "is_causal", 0) != 0)
    a->right = 0;
  a->has_left = a->left >= 0;
  a->has_right = a->right >= 0;
  a->at_end = a->length && !hd_lower_input(l, 4);
}

bool hd_onnx_attention(hd_lowering_t *l) {
  hd_attention_t a = {.query = hd_lower_input(l, 0),
                      .key = hd_lower_input(l, 1),
                      .value = hd_lower_input(l, 2),
                      .mask = hd_lower_input(l, 3),
                      .length = hd_lower_input(l, 6),
                      .softcap = hd_lower_float(l, "softcap", 0)};
  const hd_value_t *past_key = hd_lower_input(l, 4), *stage = NULL;
  bool flat = a.query->rank == 3;
  a.stage_number = hd_lower_int(l, "qk_matmul_output_mode", 0);
  if (a.stage_number < 0 || a.stage_number > 3)
    return hd_lower_invalid(l, "qk_matmul_output_mode is %lld",
                            (long long)a.stage_number);
  read_window(l, &a);
  if (!read_precision(l, &a.precision))
    return false;
  if (flat) {
    int64_t heads = hd_lower_int(l, "q_num_heads", 0);
    int64_t groups = hd_lower_int(l, "kv_num_heads", 0);
    a.query = hd_lower_split_heads(l, a.query, heads);
    a.key = a.query ? hd_lower_split_heads(l, a.key, groups) : NULL;
    a.value = a.key ? hd_lower_split_heads(l, a.value, groups) : NULL;
    if (!a.value)
      return false;
  }
  a.past = past_key && past_key->rank == 4 ? hd_lower_size(past_key, 2) : 0;
  a.key = append(l, past_key, a.key);
  a.value = append(l, hd_lower_input(l, 5), a.value);
  if (!a.key || !a.value)
    return false;
  int64_t head = a.query->rank == 4 ? hd_lower_size(a.query, 3) : 1;
  a.scale = hd_lower_float(l, "scale", 1 / sqrt((double)(head ? head : 1)));
  if (a.scale < 0)
    return hd_lower_unsupported(l, "a scale below 0");
  if (hd_lower_wants_output(l, 3))
    a.stage = &stage;
  const hd_value_t *y = hd_lower_attention(l, &a);
  y = y && flat ? hd_lower_join_heads(l, y) : y;
  return hd_lower_output(l, 0, y) &&
         (!hd_lower_wants_output(l, 1) || hd_lower_output(l, 1, a.key)) &&
         (!hd_lower_wants_output(l, 2) || hd_lower_output(l, 2, a.value)) &&
         (!stage || hd_lower_output(l, 3, stage));
}

static const hd_graph_t *find_graph(const hd_lowering_t *l, const char *name) {
  const hd_attribute_t *a = hd_node_attribute(hd_lower_node(l), name);
  return a && a->kind == HD_ATTRIBUTE_GRAPH ? a->u.graph : NULL;
}

bool hd_onnx_flex_attention(hd_lowering_t *l) {
  hd_attention_t a = {.query = hd_lower_input(l, 0),
                      .key = hd_lower_input(l, 1),
                      .value = hd_lower_input(l, 2),
                      .score_graph = find_graph(l, "score_mod"),
                      .weight_graph = find_graph(l, "prob_mod")};
  if (!read_precision(l, &a.precision))
    return false;
  if (a.precision == HD_VOID)
    a.precision = a.query->type == HD_F64 ? HD_F64 : HD_F32;
  int64_t head = a.query->rank == 4 ? hd_lower_size(a.query, 3) : 1;
  a.scale = hd_lower_float(l, "scale", 1 / sqrt((double)(head ? head : 1)));
  if (a.scale < 0)
    return hd_lower_unsupported(l, "a scale below 0");
  a.value = hd_lower_cast(l, a.value, a.precision);
  const hd_value_t *y = a.value ? hd_lower_attention(l, &a) : NULL;
  return hd_lower_output(l, 0, y);
}

// Of positions: the rows of a cache [n, r]; else the cache is [b, s, r].
static const hd_value_t *read_cache(hd_lowering_t *l, const hd_value_t *cache,
                                    const hd_value_t *positions) {
  return positions ? hd_lower_gather(l, cache, positions, 0) : cache;
}

const hd_value_t *hd_lower_rotary(hd_lowering_t *l, const hd_value_t *x,
                                  int64_t heads, const hd_value_t *cosine,
                                  const hd_value_t *sine, bool interleaved) {
  int64_t shape[4];
  for (int i = 0; i < x->rank && i < 4; i++)
    shape[i] = hd_lower_size(x, i);
  if (x->rank == 3 && (heads < 1 || shape[2] % heads != 0))
    return hd_lower_invalid(l, "%lld features in %lld heads",
                            (long long)shape[2], (long long)heads),
           NULL;
  if ((x->rank != 3 && x->rank != 4) || cosine->rank != 3)
    return hd_lower_invalid(l, "a tensor of rank %d, a cache of rank %d",
                            x->rank, cosine->rank),
           NULL;
  int64_t flat[] = {shape[0], 1, shape[1], heads,
                    x->rank == 3 ? shape[2] / heads : 0};
  int64_t split[] = {shape[0], shape[1], shape[2], 1,
                     x->rank == 4 ? shape[3] : 0};
  const int64_t *view = x->rank == 3 ? flat : split;
  if (hd_lower_size(cosine, 2) > view[4] / 2)
    return hd_lower_invalid(l, "a cache of %lld features for heads of %lld",
                            (long long)hd_lower_size(cosine, 2),
                            (long long)view[4]),
           NULL;
  const hd_value_t *inputs[] = {hd_lower_reshape(l, x, view, 5), cosine, sine};
  hd_attributes_t list = {0};
  hd_attributes_int(l, &list, "interleaved", interleaved);
  const hd_value_t *y =
      inputs[0] ? hd_lower_task(l, "rotary_embedding", inputs, 3, &list, NULL)
                : NULL;
  return y ? hd_lower_reshape(l, y, shape, (unsigned)x->rank) : NULL;
}

bool hd_onnx_rotary_embedding(hd_lowering_t *l) {
  const hd_value_t *positions = hd_lower_input(l, 3);
  const hd_value_t *cosine = read_cache(l, hd_lower_input(l, 1), positions);
  const hd_value_t *sine = read_cache(l, hd_lower_input(l, 2), positions);
  const hd_value_t *y =
      cosine && sine
          ? hd_lower_rotary(l, hd_lower_input(l, 0),
                            hd_lower_int(l, "num_heads", 0), cosine, sine,
                            hd_lower_int(l, "interleaved", 0) != 0)
          : NULL;
  return hd_lower_output(l, 0, y);
}
