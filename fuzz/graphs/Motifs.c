// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chains of nodes that stand together in models, and that fusion and rewriting
// look for. Each goes on with a value that is there, and ends where one of its
// nodes is refused.
#include "Steps.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef fuzz_value_t *V;

// --- Pointwise ---

static void pointwise(fuzz_graph_t *g) {
  fuzz_chain(g, fuzz_some(g, 0, 5), fuzz_in(g, 1, 5));
}

static void scale_and_shift(fuzz_graph_t *g) {
  V x = fuzz_some(g, 1, 4);
  hd_tensor_type_t type = fuzz_shape(x->data->type, 1, fuzz_last_of(x), 0, 0);
  x = fuzz_two(g, "mul", x, fuzz_weight(g, type));
  x = x ? fuzz_two(g, "add", x, fuzz_weight(g, type)) : NULL;
  if (x && fuzz_once_in(g, 2))
    fuzz_one(g, "relu", x);
}

static void gelu_in_parts(fuzz_graph_t *g) {
  V x = fuzz_some(g, 1, 4);
  V e =
      fuzz_one(g, "erf", fuzz_two(g, "mul", x, fuzz_number(g, x, 0.70710677)));
  e = e ? fuzz_two(g, "add", e, fuzz_number(g, x, 1)) : NULL;
  e = fuzz_two(g, "mul", x, e);
  if (e)
    fuzz_two(g, "mul", e, fuzz_number(g, x, 0.5));
}

static void there_and_back(fuzz_graph_t *g) {
  V x = fuzz_some(g, 0, 4);
  hd_scalar_t from = x->data->type;
  V y = fuzz_with(g, "cast", x);
  y = y && fuzz_is_float(y->data->type) ? fuzz_chain(g, y, fuzz_in(g, 0, 2))
                                        : y;
  hd_attribute_t *a = HD_ARENA_NEW(&g->arena, hd_attribute_t);
  *a = (hd_attribute_t){.name = "U", .kind = HD_ATTRIBUTE_TYPE};
  a->u.type = from;
  const hd_attribute_t *list[] = {a};
  if (y)
    fuzz_node(g, "cast", &y, 1, list, 1, 1);
}

// --- Products ---

// x * w, which is given transposed.
static V times(fuzz_graph_t *g, V x, V w, bool turned) {
  hd_attribute_t *a = HD_ARENA_NEW(&g->arena, hd_attribute_t);
  *a = (hd_attribute_t){.name = "tb", .kind = HD_ATTRIBUTE_INT, .u.i = 1};
  const hd_attribute_t *list[] = {a};
  V inputs[] = {x, w};
  fuzz_node_t *node =
      x && w ? fuzz_node(g, "matmul", inputs, 2, list, turned, 1) : NULL;
  return node ? node->outputs[0] : NULL;
}

static V permuted(fuzz_graph_t *g, V x, const int64_t *order) {
  if (!x)
    return NULL;
  hd_attribute_t *a = HD_ARENA_NEW(&g->arena, hd_attribute_t);
  unsigned rank = x->data->rank;
  int64_t *ints = HD_ARENA_ARRAY(&g->arena, int64_t, rank);
  for (unsigned i = 0; i < rank; i++)
    ints[i] = order[i];
  *a = (hd_attribute_t){.name = "order",
                        .kind = HD_ATTRIBUTE_INTS,
                        .count = rank,
                        .u.ints = ints};
  const hd_attribute_t *list[] = {a};
  fuzz_node_t *node = fuzz_node(g, "transpose", &x, 1, list, 1, 1);
  return node ? node->outputs[0] : NULL;
}

// The first two of three axes change places.
static V exchanged(fuzz_graph_t *g, V x) {
  static const int64_t order[] = {1, 0, 2};
  return permuted(g, x, order);
}

static V product(fuzz_graph_t *g, V x, int64_t n) {
  hd_scalar_t type = x->data->type;
  bool turned = fuzz_once_in(g, 3);
  int64_t k = fuzz_last_of(x);
  V w = fuzz_weight(g, turned ? fuzz_shape(type, 2, n, k, 0)
                              : fuzz_shape(type, 2, k, n, 0));
  return times(g, x, w, turned);
}

static V with_bias(fuzz_graph_t *g, V x) {
  return x ? fuzz_two(g, "add", x,
                      fuzz_weight(g, fuzz_shape(x->data->type, 1,
                                                fuzz_last_of(x), 0, 0)))
           : NULL;
}

static void linear(fuzz_graph_t *g) {
  V x = fuzz_some(g, 2, 4), y = product(g, x, fuzz_size(g));
  y = fuzz_once_in(g, 4) ? y : with_bias(g, y);
  y = y && fuzz_once_in(g, 2) ? fuzz_activate(g, y) : y;
  if (y && fuzz_last_of(x) == fuzz_last_of(y) && x->data->rank == y->data->rank)
    fuzz_two(g, "add", x, y);
  else
    fuzz_chain(g, y, fuzz_in(g, 0, 2));
}

static void perceptron(fuzz_graph_t *g) {
  V x = fuzz_some(g, 2, 3), y = with_bias(g, product(g, x, fuzz_size(g)));
  y = y ? fuzz_activate(g, y) : NULL;
  y = y ? with_bias(g, product(g, y, fuzz_last_of(x))) : NULL;
  fuzz_two(g, "add", x, y);
}

// Of the last axis from..from + size.
static V part(fuzz_graph_t *g, V x, int64_t from, int64_t size) {
  unsigned rank = x->data->rank;
  const char *const names[] = {"start", "stride", "size"};
  const hd_attribute_t *list[3];
  for (int k = 0; k < 3; k++) {
    hd_attribute_t *a = HD_ARENA_NEW(&g->arena, hd_attribute_t);
    int64_t *values = HD_ARENA_ARRAY(&g->arena, int64_t, rank);
    for (unsigned i = 0; i < rank; i++)
      values[i] = k == 0 ? 0 : k == 1 ? 1 : x->data->shape[i];
    if (k != 1)
      values[rank - 1] = k ? size : from;
    *a = (hd_attribute_t){
        .name = names[k], .kind = HD_ATTRIBUTE_INTS, .count = rank};
    a->u.ints = values;
    list[k] = a;
  }
  fuzz_node_t *node = fuzz_node(g, "slice", &x, 1, list, 3, 1);
  return node ? node->outputs[0] : NULL;
}

static void gated(fuzz_graph_t *g) {
  V x = fuzz_some(g, 2, 3);
  int64_t half = fuzz_in(g, 1, 6);
  V y = product(g, x, 2 * half);
  V a = y ? part(g, y, 0, half) : NULL, b = y ? part(g, y, half, half) : NULL;
  fuzz_two(g, "mul", a ? fuzz_activate(g, a) : NULL, b);
}

static void gated_apart(fuzz_graph_t *g) {
  V x = fuzz_some(g, 2, 3);
  int64_t n = fuzz_size(g);
  V a = product(g, x, n), b = product(g, x, n);
  V y = fuzz_two(g, "mul", a ? fuzz_with(g, "swish", a) : NULL, b);
  if (y)
    product(g, y, fuzz_last_of(x));
}

// Along the last axis.
static V joined(fuzz_graph_t *g, V a, V b) {
  if (!a || !b)
    return NULL;
  hd_tensor_type_t type = fuzz_type_of(a);
  hd_scalar_t t = type.type;
  type.shape[type.rank - 1] += fuzz_last_of(b);
  return fuzz_reshaped(
      g,
      fuzz_two(
          g, "concat",
          fuzz_reshaped(g, a,
                        fuzz_shape(t, 3, fuzz_rows_of(a), fuzz_last_of(a), 1)),
          fuzz_reshaped(g, b,
                        fuzz_shape(t, 3, fuzz_rows_of(b), fuzz_last_of(b), 1))),
      type);
}

static void parallel(fuzz_graph_t *g) {
  V x = fuzz_some(g, 2, 3);
  V a = product(g, x, fuzz_size(g)), b = product(g, x, fuzz_size(g));
  V y = joined(g, a ? with_bias(g, a) : NULL, b);
  fuzz_chain(g, y, fuzz_in(g, 0, 2));
}

static void rotary(fuzz_graph_t *g) {
  V x = fuzz_some(g, 2, 4);
  int64_t half = fuzz_last_of(x) / 2;
  if (half == 0)
    return;
  if (2 * half != fuzz_last_of(x))
    x = part(g, x, 0, 2 * half);
  V a = x ? part(g, x, 0, half) : NULL, b = x ? part(g, x, half, half) : NULL;
  V r = joined(g, fuzz_one(g, "neg", b), a);
  if (!r)
    return;
  hd_tensor_type_t type = fuzz_shape(x->data->type, 1, 2 * half, 0, 0);
  fuzz_two(g, "add", fuzz_two(g, "mul", x, fuzz_weight(g, type)),
           fuzz_two(g, "mul", r, fuzz_weight(g, type)));
}

static V heads(fuzz_graph_t *g, V x, int64_t m, int64_t h, int64_t e) {
  V y = fuzz_reshaped(g, product(g, x, h * e),
                      fuzz_shape(x->data->type, 3, m, h, e));
  return exchanged(g, y);
}

static void attention(fuzz_graph_t *g) {
  V x = fuzz_some(g, 2, 2);
  int64_t m = x->data->shape[0], h = fuzz_in(g, 1, 3), e = fuzz_in(g, 1, 4);
  V q = heads(g, x, m, h, e), k = heads(g, x, m, h, e);
  V s = times(g, q, k, true);
  s = s ? fuzz_two(g, "mul", s, fuzz_number(g, s, 1 / sqrt((double)e))) : NULL;
  if (s && fuzz_once_in(g, 2))
    s = fuzz_with(g, fuzz_once_in(g, 2) ? "mask_causal" : "add", s);
  s = s ? fuzz_with(g, "softmax", s) : NULL;
  V y = fuzz_two(g, "matmul", s, heads(g, x, m, h, e));
  y = fuzz_reshaped(g, exchanged(g, y),
                    fuzz_shape(x->data->type, 2, m, h * e, 0));
  y = y ? product(g, y, fuzz_last_of(x)) : NULL;
  fuzz_two(g, "add", x, y);
}

// --- Rows ---

// A reduction of the last axis, which stays as one of size 1.
static V reduced(fuzz_graph_t *g, const char *task, V x) {
  hd_tensor_type_t type = fuzz_type_of(x);
  type.shape[type.rank - 1] = 1;
  V y = fuzz_reshaped(
      g, x, fuzz_shape(type.type, 3, fuzz_rows_of(x), fuzz_last_of(x), 1));
  return fuzz_reshaped(g, fuzz_one(g, task, y), type);
}

static void softmax_in_parts(fuzz_graph_t *g) {
  V x = fuzz_some(g, 1, 3), m = reduced(g, "reduce_max", x);
  V e = fuzz_one(g, "exp", fuzz_two(g, "sub", x, m));
  V s = e ? reduced(g, "reduce_sum", e) : NULL;
  fuzz_two(g, "div", e, s);
}

static void norm_in_parts(fuzz_graph_t *g) {
  V x = fuzz_some(g, 1, 3), m = reduced(g, "reduce_mean", x);
  V d = fuzz_two(g, "sub", x, m);
  V v = fuzz_two(g, "mul", d, d);
  v = v ? reduced(g, "reduce_mean", v) : NULL;
  v = v ? fuzz_one(g, "sqrt", fuzz_two(g, "add", v, fuzz_number(g, v, 0.001)))
        : NULL;
  V y = fuzz_two(g, "div", d, v);
  if (!y)
    return;
  hd_tensor_type_t type = fuzz_shape(y->data->type, 1, fuzz_last_of(y), 0, 0);
  y = fuzz_two(g, "mul", y, fuzz_weight(g, type));
  if (y)
    fuzz_two(g, "add", y, fuzz_weight(g, type));
}

static void rows(fuzz_graph_t *g) {
  static const char *const tasks[] = {
      "softmax",        "log_softmax", "layer_norm",   "rms_norm",
      "rms_norm_scale", "group_norm",  "l2_normalize", "layer_norm"};
  V x = fuzz_chain(g, fuzz_some(g, 1, 4), fuzz_in(g, 0, 2));
  fuzz_chain(g, fuzz_with(g, tasks[fuzz_in(g, 0, 7)], x), fuzz_in(g, 0, 2));
}

static void reduction(fuzz_graph_t *g) {
  static const char *const tasks[] = {
      "reduce_sum", "reduce_mean",       "reduce_max",
      "reduce_l2",  "reduce_sum_square", "reduce_log_sum_exp"};
  V x = fuzz_chain(g, fuzz_some(g, 3, 3), fuzz_in(g, 0, 3));
  fuzz_chain(g, fuzz_with(g, tasks[fuzz_in(g, 0, 5)], x), fuzz_in(g, 0, 2));
}

static void sorted_rows(fuzz_graph_t *g) {
  V x = fuzz_chain(g, fuzz_some(g, 3, 3), fuzz_in(g, 0, 2));
  fuzz_chain(
      g,
      fuzz_with(g, fuzz_once_in(g, 2) ? "sort_ascending" : "sort_descending",
                x),
      fuzz_in(g, 0, 2));
}

// --- Images ---

static void convolution(fuzz_graph_t *g) {
  V x = fuzz_some(g, 3, 4);
  V y = fuzz_with(g, "conv", x);
  if (y && fuzz_once_in(g, 2))
    y = fuzz_with(g, "batch_norm", y);
  else if (y)
    y = fuzz_two(
        g, "add", y,
        fuzz_weight(g, fuzz_shape(y->data->type, 3, y->data->shape[1], 1, 1)));
  y = y && !fuzz_once_in(g, 3) ? fuzz_one(g, "relu", y) : y;
  if (y && fuzz_once_in(g, 3))
    fuzz_with(g, fuzz_once_in(g, 2) ? "max_pool" : "average_pool", y);
}

static void residual(fuzz_graph_t *g) {
  V x = fuzz_some(g, 4, 4);
  int64_t c = x->data->shape[1];
  hd_tensor_type_t type = {x->data->type, 4, {c, c, 1, 1}};
  hd_attribute_t ones = {.kind = HD_ATTRIBUTE_INTS, .count = 2};
  const char *const names[] = {"strides", "pads", "dilations", "sizes"};
  const hd_attribute_t *list[4];
  for (int k = 0; k < 4; k++) {
    hd_attribute_t *a = HD_ARENA_NEW(&g->arena, hd_attribute_t);
    int64_t *values = HD_ARENA_ARRAY(&g->arena, int64_t, 2);
    for (int i = 0; i < 2; i++)
      values[i] = k == 3 ? x->data->shape[2 + i] : k == 1 ? 0 : 1;
    *a = ones;
    a->name = names[k];
    a->u.ints = values;
    list[k] = a;
  }
  V inputs[] = {x, fuzz_weight(g, type)};
  fuzz_node_t *node = fuzz_node(g, "conv", inputs, 2, list, 4, 1);
  V y = node ? fuzz_with(g, "batch_norm", node->outputs[0]) : NULL;
  y = fuzz_two(g, "add", x, y);
  if (y)
    fuzz_one(g, "relu", y);
}

static void pooled(fuzz_graph_t *g) {
  static const char *const tasks[] = {"max_pool", "average_pool",
                                      "global_average_pool", "global_max_pool"};
  V x = fuzz_chain(g, fuzz_some(g, 3, 4), fuzz_in(g, 0, 2));
  fuzz_chain(g, fuzz_with(g, tasks[fuzz_in(g, 0, 3)], x), fuzz_in(g, 0, 2));
}

// --- Places ---

static void moved(fuzz_graph_t *g) {
  static const char *const tasks[] = {
      "slice", "pad_constant", "expand",   "tile",   "concat",
      "trilu", "concat",       "pad_edge", "gather", "slice"};
  V x = fuzz_some(g, 0, 4);
  for (int64_t n = fuzz_in(g, 1, 3); x && n > 0; n--) {
    V y = fuzz_with(g, tasks[fuzz_in(g, 0, 9)], x);
    x = y ? y : x;
    x = fuzz_once_in(g, 3) ? fuzz_chain(g, x, 1) : x;
  }
}

static V turned(fuzz_graph_t *g, V x) {
  unsigned rank = x->data->rank;
  int64_t order[16];
  for (unsigned i = 0; i < rank; i++) {
    unsigned k = (unsigned)fuzz_in(g, 0, i);
    order[i] = order[k];
    order[k] = i;
  }
  return rank ? permuted(g, x, order) : x;
}

// The same elements under a shape of some other axes.
static V folded(fuzz_graph_t *g, V x) {
  hd_tensor_type_t type = {x->data->type, 0, {0}};
  int64_t left = x->data->count;
  while (type.rank < 4 && left > 1) {
    int64_t size = fuzz_in(g, 1, 8);
    if (left % size == 0) {
      type.shape[type.rank++] = size;
      left /= size;
    } else if (fuzz_once_in(g, 8)) {
      break;
    }
  }
  if (left > 1 || type.rank == 0)
    type.shape[type.rank++] = left;
  return fuzz_reshape(g, x, &type);
}

static void views(fuzz_graph_t *g) {
  V x = fuzz_some(g, 1, 5);
  for (int64_t n = fuzz_in(g, 1, 4); x && n > 0; n--) {
    V y = fuzz_once_in(g, 2) ? turned(g, x) : folded(g, x);
    x = y ? y : x;
    x = fuzz_once_in(g, 3) ? fuzz_chain(g, x, 1) : x;
  }
}

static void quantized(fuzz_graph_t *g) {
  V q = fuzz_with(g, "quantize", fuzz_some(g, 1, 3));
  if (q)
    fuzz_with(g, "dequantize", q);
}

// --- Elements below a byte ---

static hd_scalar_t packed_type(fuzz_graph_t *g) {
  static const hd_scalar_t types[] = {HD_I4, HD_U4, HD_I2, HD_U2, HD_F4E2M1};
  return types[fuzz_in(g, 0, 4)];
}

static void packed_weights(fuzz_graph_t *g) {
  V x = fuzz_some(g, 2, 2);
  hd_scalar_t type = x->data->type;
  hd_tensor_type_t of =
      fuzz_shape(packed_type(g), 2, fuzz_last_of(x), fuzz_size(g), 0);
  V w = fuzz_cast_to(g, fuzz_leaf(g, &of, 1, 0, !fuzz_once_in(g, 3)), type);
  if (w)
    w = fuzz_two(g, "mul", w,
                 fuzz_weight(g, fuzz_shape(type, 1, fuzz_last_of(w), 0, 0)));
  fuzz_chain(g, fuzz_two(g, "matmul", x, w), fuzz_in(g, 0, 2));
}

static void packed_between(fuzz_graph_t *g) {
  V x = fuzz_once_in(g, 3)
            ? times(g, fuzz_some(g, 2, 2), fuzz_some(g, 2, 2), true)
            : fuzz_some(g, 1, 4);
  x = fuzz_chain(g, x ? x : fuzz_some(g, 1, 4), fuzz_in(g, 0, 2));
  V y = fuzz_cast_to(g, x, packed_type(g));
  if (y && fuzz_once_in(g, 3))
    y = fuzz_with(g, fuzz_once_in(g, 2) ? "maximum" : "add", y);
  fuzz_chain(g, y ? fuzz_cast_to(g, y, x->data->type) : NULL, fuzz_in(g, 0, 3));
}

typedef void (*motif_t)(fuzz_graph_t *g);

// Some more often.
static const motif_t motifs[] = {
    pointwise,       pointwise,      pointwise,
    scale_and_shift, gelu_in_parts,  there_and_back,
    linear,          linear,         perceptron,
    gated,           gated_apart,    parallel,
    rotary,          attention,      softmax_in_parts,
    norm_in_parts,   rows,           rows,
    reduction,       sorted_rows,    convolution,
    convolution,     residual,       pooled,
    moved,           moved,          views,
    views,           fuzz_embedding, fuzz_experts,
    quantized,       packed_weights, packed_between,
    fuzz_recurrent,  fuzz_recurrent};

bool fuzz_motif(fuzz_graph_t *g) {
  size_t before = g->nodes.size;
  motifs[fuzz_in(g, 0, sizeof motifs / sizeof motifs[0] - 1)](g);
  return g->nodes.size > before;
}
