// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What motifs are made of.
#include "Steps.h"

hd_tensor_type_t fuzz_shape(hd_scalar_t type, unsigned rank, int64_t a,
                            int64_t b, int64_t c) {
  return (hd_tensor_type_t){type, rank, {a, b, c}};
}

fuzz_value_t *fuzz_call(fuzz_graph_t *g, const char *task, fuzz_value_t *a,
                        fuzz_value_t *b, fuzz_value_t *c) {
  fuzz_value_t *inputs[] = {a, b, c};
  if (!a || (c && !b))
    return NULL;
  fuzz_node_t *node =
      fuzz_node(g, task, inputs, 1 + (b != NULL) + (c != NULL), NULL, 0, 1);
  return node ? node->outputs[0] : NULL;
}

fuzz_value_t *fuzz_one(fuzz_graph_t *g, const char *task, fuzz_value_t *x) {
  return x ? fuzz_call(g, task, x, NULL, NULL) : NULL;
}

fuzz_value_t *fuzz_two(fuzz_graph_t *g, const char *task, fuzz_value_t *a,
                       fuzz_value_t *b) {
  return a && b ? fuzz_call(g, task, a, b, NULL) : NULL;
}

// Whatever the task needs besides x is drawn.
fuzz_value_t *fuzz_with(fuzz_graph_t *g, const char *task, fuzz_value_t *x) {
  fuzz_node_t *node = x ? fuzz_pick(g, task, x) : NULL;
  for (size_t i = 0; node && i < FUZZ_MAX_INPUTS; i++)
    if (node->outputs[i])
      return node->outputs[i];
  return NULL;
}

fuzz_value_t *fuzz_reshaped(fuzz_graph_t *g, fuzz_value_t *x,
                            hd_tensor_type_t type) {
  return x && x->data->count == fuzz_count(&type) ? fuzz_reshape(g, x, &type)
                                                  : NULL;
}

fuzz_value_t *fuzz_weight(fuzz_graph_t *g, hd_tensor_type_t type) {
  return fuzz_leaf(g, &type, -1, 1, !fuzz_once_in(g, 3));
}

// A number for every element, of rank 0 or of one element.
fuzz_value_t *fuzz_number(fuzz_graph_t *g, fuzz_value_t *like, double value) {
  hd_tensor_type_t type =
      fuzz_shape(like->data->type, (unsigned)fuzz_in(g, 0, 1), 1, 0, 0);
  return fuzz_leaf(g, &type, value, value, true);
}

// --- What a motif goes on with ---

static bool suits(const fuzz_value_t *v, unsigned least, unsigned most) {
  return fuzz_is_float(v->data->type) && hd_scalar_bits(v->data->type) >= 16 &&
         v->data->type != HD_TF32 && v->data->rank >= least &&
         v->data->rank <= most && v->data->count > 0 && !v->infinite;
}

fuzz_value_t *fuzz_some(fuzz_graph_t *g, unsigned least, unsigned most) {
  size_t size = g->values.size;
  for (int tries = 0; size && tries < 12; tries++) {
    double u = fuzz_real(g, 0, 1);
    fuzz_value_t *v = g->values.data[size - 1 - (size_t)(u * u * (double)size)];
    if (suits(v, least, most) && (!v->users || fuzz_once_in(g, 3)))
      return v;
  }
  hd_tensor_type_t type = {
      fuzz_type(g, 1u << HD_F32 | 1u << HD_F16 | 1u << HD_BF16 | 1u << HD_F64),
      (unsigned)fuzz_in(g, least, most > 4 ? 4 : most),
      {0}};
  do
    for (unsigned i = 0; i < type.rank; i++)
      type.shape[i] = fuzz_size(g);
  while (fuzz_count(&type) > 10000);
  return fuzz_leaf(g, &type, 1, 0, fuzz_once_in(g, 6));
}

int64_t fuzz_last_of(fuzz_value_t *x) {
  return x->data->shape[x->data->rank - 1];
}

int64_t fuzz_rows_of(fuzz_value_t *x) {
  return x->data->count / fuzz_last_of(x);
}

fuzz_value_t *fuzz_activate(fuzz_graph_t *g, fuzz_value_t *x) {
  static const char *const tasks[] = {
      "relu", "gelu", "sigmoid",  "tanh",        "swish", "hard_swish",
      "elu",  "mish", "softplus", "leaky_relu",  "neg",   "gelu_tanh",
      "sin",  "erf",  "softsign", "hard_sigmoid"};
  return fuzz_with(g, tasks[fuzz_in(g, 0, 15)], x);
}

static fuzz_value_t *combine(fuzz_graph_t *g, fuzz_value_t *x) {
  static const char *const tasks[] = {"add", "mul",     "sub",     "add",
                                      "mul", "maximum", "minimum", "div"};
  return fuzz_with(g, tasks[fuzz_in(g, 0, 7)], x);
}

fuzz_value_t *fuzz_chain(fuzz_graph_t *g, fuzz_value_t *x, int64_t length) {
  for (; x && length > 0; length--) {
    fuzz_value_t *y = fuzz_once_in(g, 2) ? fuzz_activate(g, x) : combine(g, x);
    x = y ? y : x;
  }
  return x;
}

fuzz_value_t *fuzz_cast_to(fuzz_graph_t *g, fuzz_value_t *x, hd_scalar_t type) {
  hd_attribute_t *a = HD_ARENA_NEW(&g->arena, hd_attribute_t);
  *a = (hd_attribute_t){.name = "U", .kind = HD_ATTRIBUTE_TYPE};
  a->u.type = type;
  const hd_attribute_t *list[] = {a};
  fuzz_node_t *node = x ? fuzz_node(g, "cast", &x, 1, list, 1, 1) : NULL;
  return node ? node->outputs[0] : NULL;
}
