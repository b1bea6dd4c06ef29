// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LinearAttention: a state of a matrix for each head, one step after the other;
// and CausalConvWithState, which models have before it.
#include "Graph/Expand/Lower/ControlFlow.h"
#include "Graph/Expand/Lower/Recurrent.h"

#include "Support/Budget.h"

#include <math.h>
#include <string.h>

enum { MAX_STEPS = 100000 };

typedef struct linear {
  const hd_value_t *query, *key, *value, *decay, *beta; // [b, steps, heads, d]
  const hd_value_t *state;                              // f32[b, heads, k, v]
  int64_t batch, steps, heads, groups;
  bool gated, delta;
  double scale;
} linear_t;

// [b, steps, heads * d] as [b, steps, heads, d].
static const hd_value_t *split(hd_lowering_t *l, const hd_value_t *x,
                               const char *name, int64_t heads) {
  if (x->rank != 3 || heads < 1 || hd_lower_size(x, 2) % heads != 0)
    return hd_lower_invalid(l, "%s of rank %d does not split into %lld heads",
                            name, x->rank, (long long)heads),
           NULL;
  int64_t shape[] = {hd_lower_size(x, 0), hd_lower_size(x, 1), heads,
                     hd_lower_size(x, 2) / heads};
  return hd_lower_reshape(l, x, shape, 4);
}

static bool read_rule(hd_lowering_t *l, linear_t *a) {
  const char *rule = hd_lower_string(l, "update_rule", "gated_delta");
  a->gated = strncmp(rule, "gated", 5) == 0;
  a->delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
  if (!a->delta && strcmp(rule, "linear") != 0 && strcmp(rule, "gated") != 0)
    return hd_lower_invalid(l, "update_rule is '%s'", rule);
  if (a->gated && !hd_lower_input(l, 4))
    return hd_lower_invalid(l, "update_rule '%s' without decay", rule);
  if (a->delta && !hd_lower_input(l, 5))
    return hd_lower_invalid(l, "update_rule '%s' without beta", rule);
  return true;
}

// exp(0) is 1: a state that does not fade.
static bool read_gates(hd_lowering_t *l, linear_t *a) {
  const int64_t none[] = {a->batch, a->steps, a->groups, 1};
  hd_scalar_t type = a->query->type;
  a->decay = a->gated ? split(l, hd_lower_input(l, 4), "decay", a->groups)
                      : hd_recurrent_zeros(l, type, none, 4);
  a->beta =
      a->delta ? hd_lower_input(l, 5) : hd_recurrent_zeros(l, type, none, 3);
  return a->decay && a->beta;
}

static bool read_operands(hd_lowering_t *l, linear_t *a) {
  a->heads = hd_lower_int(l, "q_num_heads", 0);
  a->groups = hd_lower_int(l, "kv_num_heads", 0);
  a->query = split(l, hd_lower_input(l, 0), "query", a->heads);
  a->key = a->query ? split(l, hd_lower_input(l, 1), "key", a->groups) : NULL;
  a->value = a->key ? split(l, hd_lower_input(l, 2), "value", a->groups) : NULL;
  if (!a->value || !read_rule(l, a))
    return false;
  a->batch = hd_lower_size(a->query, 0);
  a->steps = hd_lower_size(a->query, 1);
  if (a->steps > MAX_STEPS)
    return hd_lower_unsupported(l, "%lld steps", (long long)a->steps);
  int64_t width = hd_lower_size(a->key, 3);
  a->scale = hd_lower_float(l, "scale", 0);
  if (a->scale == 0)
    a->scale = 1 / sqrt((double)(width > 0 ? width : 1));
  const int64_t shape[] = {a->batch, a->groups, width,
                           hd_lower_size(a->value, 3)};
  const hd_value_t *past = hd_lower_input(l, 3);
  a->state = past ? hd_lower_cast(l, past, HD_F32)
                  : hd_recurrent_zeros(l, HD_F32, shape, 4);
  return a->state && read_gates(l, a);
}

static const hd_value_t *step(hd_lowering_t *l, linear_t *a, int64_t i) {
  const hd_value_t *at = hd_lower_index(l, i);
  const hd_value_t *inputs[] = {a->state, a->key,  a->value,
                                a->decay, a->beta, at};
  hd_attributes_t rule = {0}, scale = {0};
  hd_attributes_int(l, &rule, "delta", a->delta);
  hd_attributes_float(l, &scale, "scale", (double)(float)a->scale);
  a->state =
      at ? hd_lower_task(l, "linear_attention_step", inputs, 6, &rule, NULL)
         : NULL;
  const hd_value_t *read[] = {a->query, a->state, at};
  return a->state
             ? hd_lower_task(l, "linear_attention_read", read, 3, &scale, NULL)
             : NULL;
}

bool hd_onnx_linear_attention(hd_lowering_t *l) {
  linear_t a = {0};
  if (!read_operands(l, &a))
    return false;
  const int64_t shape[] = {a.batch, a.steps,
                           a.heads * hd_lower_size(a.value, 3)};
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(hd_lower_arena(l), const hd_value_t *, a.steps + 1);
  for (int64_t i = 0; i < a.steps; i++) {
    hd_budget_check(&hd_lower_context(l)->budget);
    outputs[i] = step(l, &a, i);
    if (!outputs[i])
      return false;
  }
  const hd_value_t *y = a.steps
                            ? hd_lower_stack(l, outputs, (size_t)a.steps, 1)
                            : hd_recurrent_zeros(l, a.query->type, shape, 3);
  y = y ? hd_lower_reshape(l, y, shape, 3) : NULL;
  const hd_value_t *past = hd_lower_input(l, 3);
  const hd_value_t *state =
      hd_lower_cast(l, a.state, past ? past->type : a.query->type);
  return y && state && hd_lower_output(l, 0, y) &&
         (!hd_lower_wants_output(l, 1) || hd_lower_output(l, 1, state));
}

// What came before x: the state, or zeros.
static const hd_value_t *put_before(hd_lowering_t *l, const hd_value_t *x,
                                    int64_t count) {
  const hd_value_t *past = hd_lower_input(l, 3);
  if (count == 0)
    return x;
  if (past) {
    const hd_value_t *items[] = {past, x};
    return hd_lower_concat(l, items, 2, 2);
  }
  const int64_t before[] = {0, 0, count};
  const int64_t size[] = {hd_lower_size(x, 0), hd_lower_size(x, 1),
                          hd_lower_size(x, 2) + count};
  return hd_lower_pad(l, x, before, size, NULL);
}

static bool is_silu(hd_lowering_t *l, bool *silu) {
  const char *name = hd_lower_string(l, "activation", "none");
  *silu = strcmp(name, "silu") == 0 || strcmp(name, "swish") == 0;
  return *silu || strcmp(name, "none") == 0 ||
         hd_lower_invalid(l, "activation is '%s'", name);
}

bool hd_onnx_causal_conv(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *filter = hd_lower_input(l, 1);
  const hd_value_t *bias = hd_lower_input(l, 2), *past = hd_lower_input(l, 3);
  bool silu;
  if (x->rank != 3 || filter->rank != 3 || (past && past->rank != 3))
    return hd_lower_invalid(l, "an input and a filter of rank %d and %d",
                            x->rank, filter->rank);
  if (!is_silu(l, &silu))
    return false;
  int64_t kept = hd_lower_size(filter, 2) - 1, channels = hd_lower_size(x, 1);
  if (kept < 0 || (past && hd_lower_size(past, 2) != kept))
    return hd_lower_invalid(l, "a filter of %lld elements",
                            (long long)(kept + 1));
  x = put_before(l, x, kept);
  if (!bias)
    bias = hd_recurrent_zeros(l, filter->type, &channels, 1);
  const hd_value_t *inputs[] = {x, filter, bias};
  const hd_value_t *y =
      x && bias ? hd_lower_task(l, "causal_conv", inputs, 3, NULL, NULL) : NULL;
  if (y && silu)
    y = hd_lower_unary(l, "swish", y);
  if (!y || !hd_lower_output(l, 0, y))
    return false;
  if (!hd_lower_wants_output(l, 1))
    return true;
  const int64_t start[] = {0, 0, hd_lower_size(x, 2) - kept};
  const int64_t size[] = {hd_lower_size(x, 0), channels, kept};
  const hd_value_t *state = kept ? hd_lower_slice(l, x, start, size, NULL)
                                 : hd_recurrent_zeros(l, x->type, size, 3);
  return hd_lower_output(l, 1, state);
}
