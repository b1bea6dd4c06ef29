// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RNN, GRU and LSTM: a loop over the steps. The products with the inputs of all
// steps come first, as one.
#include "Graph/Expand/Lower/Recurrent.h"
#include "Graph/Expand/Lower/ControlFlow.h"
#include "Graph/Expand/Lower/Products.h"
#include "Graph/Expand/LoweringLoop.h"

#include <string.h>
#include <strings.h>

enum { MAX_STEPS = INT32_MAX };

// The functions that activations may name. Parameters that one takes are
// consumed from the lists activation_alpha and activation_beta.
static const hd_activation_info_t functions[] = {
    {"Relu", "relu", NULL, NULL, 0, 0},
    {"Tanh", "tanh", NULL, NULL, 0, 0},
    {"Sigmoid", "sigmoid", NULL, NULL, 0, 0},
    {"Affine", "affine", "alpha", "beta", 1, 0},
    {"LeakyRelu", "leaky_relu", "alpha", NULL, 0.01, 0},
    {"ThresholdedRelu", "thresholded_relu", "alpha", NULL, 1, 0},
    {"ScaledTanh", "scaled_tanh", "alpha", "beta", 1, 1},
    {"HardSigmoid", "hard_sigmoid", "alpha", "beta", 0.2, 0.5},
    {"Elu", "elu", "alpha", NULL, 1, 0},
    {"Softsign", "softsign", NULL, NULL, 0, 0},
    {"Softplus", "softplus", NULL, NULL, 0, 0},
};

// --- What the node says ---

static const hd_activation_info_t *find_function(const char *name) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (strcasecmp(functions[i].name, name) == 0)
      return &functions[i];
  return NULL;
}

static bool read_activations(hd_lowering_t *l, hd_recurrence_t *r,
                             const char *const *usual) {
  const hd_attribute_t *names =
      hd_lower_attribute(l, "activations", HD_ATTRIBUTE_STRINGS);
  const hd_attribute_t *alphas =
      hd_lower_attribute(l, "activation_alpha", HD_ATTRIBUTE_FLOATS);
  const hd_attribute_t *betas =
      hd_lower_attribute(l, "activation_beta", HD_ATTRIBUTE_FLOATS);
  size_t count = (size_t)r->directions * r->num_functions;
  size_t alpha = 0, beta = 0;
  if (names && names->count != count)
    return hd_lower_invalid(l, "%zu activations, and not %zu", names->count,
                            count);
  r->usual = true;
  for (size_t i = 0; i < count; i++) {
    const char *standard = usual[i % r->num_functions];
    const char *name = names ? names->u.strings[i] : standard;
    hd_activation_t *a = &r->activations[i];
    a->info = find_function(name);
    if (!a->info)
      return hd_lower_unsupported(l, "the activation '%s'", name);
    r->usual = r->usual && strcasecmp(name, standard) == 0;
    a->alpha = a->info->alpha;
    a->beta = a->info->beta;
    if (a->info->alpha_name && alphas && alpha < alphas->count)
      a->alpha = alphas->u.floats[alpha++];
    if (a->info->beta_name && betas && beta < betas->count)
      a->beta = betas->u.floats[beta++];
  }
  return true;
}

static bool has_shape(const hd_value_t *v, int64_t a, int64_t b, int64_t c) {
  int64_t shape[] = {a, b, c};
  int rank = c < 0 ? 2 : 3;
  bool same = !v || v->rank == rank;
  for (int i = 0; same && v && i < rank; i++)
    same = hd_lower_size(v, i) == shape[i];
  return same;
}

// [batch, n, ...] for [n, batch, ...] and back.
static const hd_value_t *swap(hd_lowering_t *l, const hd_value_t *x) {
  static const int64_t order[] = {1, 0, 2};
  return hd_lower_transpose(l, x, order);
}

static bool check_shapes(hd_lowering_t *l, const hd_recurrence_t *r,
                         const hd_value_t *x, const hd_value_t *const *in) {
  int64_t d = r->directions, rows = r->gates * r->hidden;
  bool fits = has_shape(in[1], d, rows, hd_lower_size(x, 2)) &&
              has_shape(in[2], d, rows, r->hidden) &&
              has_shape(in[3], d, 2 * rows, -1) &&
              has_shape(in[7], d, 3 * r->hidden, -1);
  for (int i = 5; fits && i < 7; i++)
    fits = has_shape(in[i], d, r->batch, r->hidden);
  if (fits && in[4])
    fits = in[4]->rank == 1 && hd_lower_size(in[4], 0) == r->batch;
  return fits || hd_lower_invalid(l, "the shapes of its inputs do not fit");
}

static const hd_value_t *reverse(hd_lowering_t *l, const hd_recurrence_t *r,
                                 const hd_value_t *x) {
  if (!r->lengths) {
    hd_tensor_type_t type = hd_lower_type(x);
    int64_t start[] = {r->steps - 1, 0, 0}, stride[] = {-1, 1, 1};
    return hd_lower_slice(l, x, start, type.shape, stride);
  }
  const hd_value_t *inputs[] = {x, r->lengths};
  return hd_lower_task(l, "reverse_time_first", inputs, 2, NULL, NULL);
}

// The products with the inputs, with both biases; but not that which the reset
// gate of a GRU is applied to.
static const hd_value_t *project(hd_lowering_t *l, const hd_recurrence_t *r,
                                 hd_sweep_t *d, const hd_value_t *x,
                                 const hd_value_t *w, const hd_value_t *bias) {
  int64_t rows = r->gates * r->hidden;
  const hd_value_t *y = hd_lower_matmul(l, x, w, false, true);
  if (r->gates == 3)
    d->reset_bias = bias ? hd_recurrent_gate(l, r, bias, 5, 1)
                         : hd_recurrent_zeros(l, x->type, &r->hidden, 1);
  if (!bias || !y)
    return y;
  int64_t start = rows, size = rows, none = 0;
  const hd_value_t *first = hd_lower_slice(l, bias, &none, &size, NULL);
  const hd_value_t *second = hd_lower_slice(l, bias, &start, &size, NULL);
  if (!first || !second)
    return NULL;
  if (r->gates == 3) {
    const hd_value_t *items[] = {hd_recurrent_gate(l, r, second, 0, 2),
                                 hd_recurrent_zeros(l, x->type, &r->hidden, 1)};
    second = items[0] && items[1] ? hd_lower_concat(l, items, 2, 0) : NULL;
  }
  return hd_recurrent_add(l, hd_recurrent_add(l, y, first), second);
}

static const hd_value_t *mask(hd_lowering_t *l, const hd_recurrence_t *r,
                              const hd_value_t *x, const hd_value_t *old,
                              const hd_value_t *turn) {
  const hd_value_t *inputs[] = {x, old, r->lengths, turn};
  return x && old && turn
             ? hd_lower_task(l, "within_length", inputs, 4, NULL, NULL)
             : NULL;
}

// One turn: d->state and d->cell become what they are after it. What is stacked
// of it; NULL after an error.
static const hd_value_t *take_turn(hd_lowering_t *l, const hd_recurrence_t *r,
                                   hd_sweep_t *d, hd_step_fn_t *step,
                                   hd_lower_loop_t *loop) {
  const hd_value_t *old = d->state = hd_lower_loop_state(l, loop, d->state);
  const hd_value_t *old_cell = d->cell =
      d->cell ? hd_lower_loop_state(l, loop, d->cell) : NULL;
  const hd_value_t *x = hd_lower_loop_slice(l, loop, d->x);
  if (!x || !step(l, r, d, x))
    return NULL;
  if (!r->lengths)
    return d->state;
  const hd_value_t *turn = hd_lower_loop_turn(l, loop);
  hd_tensor_type_t type = hd_lower_type(d->state);
  const hd_value_t *kept =
      mask(l, r, d->state,
           hd_recurrent_zeros(l, x->type, type.shape, type.rank), turn);
  d->state = mask(l, r, d->state, old, turn);
  if (old_cell)
    d->cell = mask(l, r, d->cell, old_cell, turn);
  return kept && d->state && (!old_cell || d->cell) ? kept : NULL;
}

// The states of all steps, [steps, batch, hidden]; d keeps the last ones.
static const hd_value_t *run_steps(hd_lowering_t *l, const hd_recurrence_t *r,
                                   hd_sweep_t *d, hd_step_fn_t *step) {
  const hd_value_t *results[3], *outputs[3];
  size_t count = 0;
  hd_lower_loop_t loop;
  hd_lower_loop_begin(l, &loop, r->steps);
  const hd_value_t *kept = take_turn(l, r, d, step, &loop);
  results[count++] = d->state;
  if (d->cell)
    results[count++] = d->cell;
  results[count++] = kept;
  bool ok = kept && hd_lower_loop_end(l, &loop, results, count, outputs);
  hd_lower_loop_drop(l, &loop);
  if (!ok)
    return NULL;
  d->state = outputs[0];
  d->cell = d->cell ? outputs[1] : NULL;
  return outputs[count - 1];
}

static const hd_value_t *of_direction(hd_lowering_t *l, const hd_value_t *x,
                                      int64_t d) {
  return x ? hd_lower_take(l, x, 0, d) : NULL;
}

static const hd_value_t *run_direction(hd_lowering_t *l,
                                       const hd_recurrence_t *r, hd_sweep_t *d,
                                       hd_step_fn_t *step, const hd_value_t *x,
                                       const hd_value_t *const *in,
                                       int64_t which, bool backwards) {
  int64_t shape[] = {r->batch, r->hidden}, peepholes[] = {3, r->hidden};
  d->functions = &r->activations[which * r->num_functions];
  x = backwards ? reverse(l, r, x) : x;
  const hd_value_t *w = of_direction(l, in[1], which);
  const hd_value_t *bias = of_direction(l, in[3], which);
  d->r = of_direction(l, in[2], which);
  d->state = in[5] ? of_direction(l, in[5], which)
                   : hd_recurrent_zeros(l, x->type, shape, 2);
  if (r->gates == 4) {
    d->cell = in[6] ? of_direction(l, in[6], which)
                    : hd_recurrent_zeros(l, x->type, shape, 2);
    d->peephole = of_direction(l, in[7], which);
    if (d->peephole)
      d->peephole = hd_lower_reshape(l, d->peephole, peepholes, 2);
    if (!d->cell || (in[7] && !d->peephole))
      return NULL;
  }
  if (!x || !w || !d->r || !d->state || (in[3] && !bias))
    return NULL;
  d->x = project(l, r, d, x, w, bias);
  if (!d->x || (r->gates == 3 && !d->reset_bias))
    return NULL;
  const hd_value_t *y = run_steps(l, r, d, step);
  return y && backwards ? reverse(l, r, y) : y;
}

// What all directions give, [steps, batch, hidden] each, by one loop whose
// steps are of all of them.
static bool run_together(hd_lowering_t *l, const hd_recurrence_t *r,
                         hd_sweep_t *d, hd_step_fn_t *step, const hd_value_t *x,
                         const hd_value_t *const *in, bool reversed,
                         const hd_value_t **all) {
  const hd_value_t *gates[2], *biases[2];
  int64_t shape[] = {r->directions, r->batch, r->hidden};
  int64_t peepholes[] = {r->directions, 3, r->hidden};
  for (int64_t n = 0; n < r->directions; n++) {
    const hd_value_t *from = reversed || n == 1 ? reverse(l, r, x) : x;
    const hd_value_t *w = of_direction(l, in[1], n);
    const hd_value_t *bias = of_direction(l, in[3], n);
    if (!from || !w || (in[3] && !bias) ||
        !(gates[n] = project(l, r, d, from, w, bias)))
      return false;
    biases[n] = d->reset_bias;
    if (r->gates == 3 && !biases[n])
      return false;
  }
  d->x = hd_lower_stack(l, gates, (size_t)r->directions, 1);
  d->r = in[2];
  d->state = in[5] ? in[5] : hd_recurrent_zeros(l, x->type, shape, 3);
  if (r->gates == 3) {
    d->reset_bias = hd_lower_stack(l, biases, (size_t)r->directions, 0);
    if (!d->reset_bias)
      return false;
  } else if (r->gates == 4) {
    d->cell = in[6] ? in[6] : hd_recurrent_zeros(l, x->type, shape, 3);
    d->peephole = in[7] ? hd_lower_reshape(l, in[7], peepholes, 3)
                        : hd_recurrent_zeros(l, x->type, peepholes, 3);
    if (!d->cell || !d->peephole)
      return false;
  }
  const hd_value_t *y = d->x && d->state ? run_steps(l, r, d, step) : NULL;
  for (int64_t n = 0; y && n < r->directions; n++) {
    all[n] = hd_lower_take(l, y, 1, n);
    if (all[n] && (reversed || n == 1))
      all[n] = reverse(l, r, all[n]);
    if (!all[n])
      return false;
  }
  return y != NULL;
}

static bool set_states(hd_lowering_t *l, uint32_t output, const hd_value_t *y,
                       bool batch_first) {
  if (!hd_lower_wants_output(l, output))
    return true;
  y = y && batch_first ? swap(l, y) : y;
  return hd_lower_output(l, output, y);
}

static bool recurrent(hd_lowering_t *l, int gates, const char *const *usual,
                      hd_step_fn_t *step) {
  static const int64_t batch_order[] = {2, 0, 1, 3};
  const hd_value_t *in[8] = {NULL}, *all[2], *states[2], *cells[2];
  const char *direction = hd_lower_string(l, "direction", "forward");
  bool both = strcmp(direction, "bidirectional") == 0;
  bool reversed = strcmp(direction, "reverse") == 0;
  bool batch_first = hd_lower_int(l, "layout", 0) != 0;
  if (!both && !reversed && strcmp(direction, "forward") != 0)
    return hd_lower_invalid(l, "direction is '%s'", direction);
  for (uint32_t i = 0; i < 8 && i < hd_lower_num_inputs(l); i++)
    in[i] = hd_lower_input(l, i);
  const hd_value_t *x = in[0];
  if (x->rank != 3 || in[2]->rank != 3)
    return hd_lower_invalid(l, "an input of rank %d", x->rank);
  for (int i = 5; batch_first && i < 7; i++)
    if (in[i] && (in[i]->rank != 3 || !(in[i] = swap(l, in[i]))))
      return hd_lower_invalid(l, "an initial state is of another rank");
  x = batch_first ? swap(l, x) : x;
  if (!x)
    return false;
  hd_recurrence_t r = {
      .gates = gates,
      .num_functions = gates == 4   ? 3
                       : gates == 3 ? 2
                                    : 1,
      .clips = hd_node_attribute(hd_lower_node(l), "clip") != NULL,
      .clip = hd_lower_float(l, "clip", 0),
      .linear_before_reset = hd_lower_int(l, "linear_before_reset", 0) != 0,
      .input_forget = hd_lower_int(l, "input_forget", 0) != 0,
      .steps = hd_lower_size(x, 0),
      .batch = hd_lower_size(x, 1),
      .hidden = hd_lower_size(in[2], 2),
      .directions = both ? 2 : 1};
  if (r.steps < 1 || r.steps > MAX_STEPS)
    return hd_lower_unsupported(l, "%lld steps: 1 to %d", (long long)r.steps,
                                (int)MAX_STEPS);
  if (!check_shapes(l, &r, x, in) || !read_activations(l, &r, usual))
    return false;
  r.usual = r.usual && !r.clips && !r.input_forget;
  if (in[4] && !(r.lengths = hd_lower_cast(l, in[4], HD_I64)))
    return false;
  hd_sweep_t sweep = {0};
  size_t count = (size_t)r.directions;
  if (r.usual && (gates != 3 || r.linear_before_reset)) {
    step = gates == 4   ? hd_step_lstm_usual
           : gates == 3 ? hd_step_gru_usual
                        : hd_step_rnn_usual;
    if (!run_together(l, &r, &sweep, step, x, in, reversed, all))
      return false;
  } else {
    for (int64_t d = 0; d < r.directions; d++) {
      hd_sweep_t one = {0};
      all[d] = run_direction(l, &r, &one, step, x, in, d, reversed || d == 1);
      if (!all[d])
        return false;
      states[d] = one.state;
      cells[d] = one.cell;
    }
    sweep.state = hd_lower_stack(l, states, count, 0);
    sweep.cell = gates == 4 ? hd_lower_stack(l, cells, count, 0) : NULL;
  }
  if (hd_lower_wants_output(l, 0)) {
    const hd_value_t *y = hd_lower_stack(l, all, count, 1);
    y = y && batch_first ? hd_lower_transpose(l, y, batch_order) : y;
    if (!y || !hd_lower_output(l, 0, y))
      return false;
  }
  return set_states(l, 1, sweep.state, batch_first) &&
         (gates != 4 || set_states(l, 2, sweep.cell, batch_first));
}

bool hd_onnx_rnn(hd_lowering_t *l) {
  static const char *const usual[] = {"Tanh"};
  return recurrent(l, 1, usual, hd_step_rnn);
}

bool hd_onnx_gru(hd_lowering_t *l) {
  static const char *const usual[] = {"Sigmoid", "Tanh"};
  return recurrent(l, 3, usual, hd_step_gru);
}

bool hd_onnx_lstm(hd_lowering_t *l) {
  static const char *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
  return recurrent(l, 4, usual, hd_step_lstm);
}
