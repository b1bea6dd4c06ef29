// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RNN, GRU and LSTM: a loop over the steps. The products with the inputs of all
// steps come first, as one.
#include "Graph/Expand/Lower/ControlFlow.h"
#include "Graph/Expand/Lower/Products.h"
#include "Graph/Expand/LoweringLoop.h"

#include <string.h>
#include <strings.h>

enum { MAX_STEPS = INT32_MAX, MAX_FUNCTIONS = 3 };

// The functions that activations may name. Parameters that one takes are
// consumed from the lists activation_alpha and activation_beta.
static const struct {
  const char *name, *task;
  const char *alpha_name, *beta_name; // NULL: takes none.
  double alpha, beta;
} functions[] = {
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

typedef struct activation {
  size_t function;
  double alpha, beta;
} activation_t;

typedef struct recurrence {
  int gates;
  unsigned num_functions;
  bool usual; // All functions are those that the standard has by default.
  bool clips;
  double clip;
  bool linear_before_reset, input_forget;
  int64_t steps, batch, hidden, directions;
  const hd_value_t *lengths; // i64[batch], or NULL.
  activation_t activations[2 * MAX_FUNCTIONS];
} recurrence_t;

// What one direction works with.
typedef struct sweep {
  const activation_t *functions;
  const hd_value_t *x;          // [steps, batch, gates * hidden], with biases.
  const hd_value_t *r;          // [gates * hidden, hidden]
  const hd_value_t *reset_bias; // GRU: [hidden]
  const hd_value_t *peephole;   // LSTM: [3, hidden], or NULL.
  const hd_value_t *state, *cell;
} sweep_t;

typedef bool (*step_fn_t)(hd_lowering_t *l, const recurrence_t *r, sweep_t *d,
                          const hd_value_t *x);

static const hd_value_t *zeros(hd_lowering_t *l, hd_scalar_t type,
                               const int64_t *shape, unsigned rank) {
  hd_host_tensor_t *data;
  return hd_lower_constant(l, type, shape, rank, &data);
}

static const hd_value_t *add_values(hd_lowering_t *l, const hd_value_t *a,
                                    const hd_value_t *b) {
  return a && b ? hd_lower_binary(l, "add", a, b) : NULL;
}

static const hd_value_t *mul(hd_lowering_t *l, const hd_value_t *a,
                             const hd_value_t *b) {
  return a && b ? hd_lower_binary(l, "mul", a, b) : NULL;
}

// Gates [first, first + count) of [.., gates * hidden].
static const hd_value_t *gate(hd_lowering_t *l, const recurrence_t *r,
                              const hd_value_t *x, int64_t first,
                              int64_t count) {
  int64_t start[HD_MAX_RANK] = {0};
  if (!x)
    return NULL;
  hd_tensor_type_t type = hd_lower_type(x);
  start[type.rank - 1] = first * r->hidden;
  type.shape[type.rank - 1] = count * r->hidden;
  return hd_lower_slice(l, x, start, type.shape, NULL);
}

static const hd_value_t *activate(hd_lowering_t *l, const recurrence_t *r,
                                  const activation_t *a, const hd_value_t *x) {
  if (x && r->clips) {
    const hd_value_t *inputs[] = {x, hd_lower_scalar(l, x->type, -r->clip),
                                  hd_lower_scalar(l, x->type, r->clip)};
    x = inputs[1] && inputs[2] ? hd_lower_task(l, "clip", inputs, 3, NULL, NULL)
                               : NULL;
  }
  hd_attributes_t list = {0};
  if (functions[a->function].alpha_name)
    hd_attributes_float(l, &list, "alpha", a->alpha);
  if (functions[a->function].beta_name)
    hd_attributes_float(l, &list, "beta", a->beta);
  return x ? hd_lower_task(l, functions[a->function].task, &x, 1, &list, NULL)
           : NULL;
}

static const hd_value_t *recur(hd_lowering_t *l, const sweep_t *d) {
  return hd_lower_matmul(l, d->state, d->r, false, true);
}

static bool step_rnn(hd_lowering_t *l, const recurrence_t *r, sweep_t *d,
                     const hd_value_t *x) {
  d->state = activate(l, r, &d->functions[0], add_values(l, x, recur(l, d)));
  return d->state != NULL;
}

// [batch, gates * hidden] by gates.
static const hd_value_t *by_gates(hd_lowering_t *l, const recurrence_t *r,
                                  const hd_value_t *x) {
  int64_t shape[] = {r->batch, r->gates, r->hidden};
  return x ? hd_lower_reshape(l, x, shape, 3) : NULL;
}

static bool step_gru_usual(hd_lowering_t *l, const recurrence_t *r, sweep_t *d,
                           const hd_value_t *x) {
  const hd_value_t *inputs[] = {by_gates(l, r, x), by_gates(l, r, recur(l, d)),
                                d->state, d->reset_bias};
  d->state = inputs[0] && inputs[1]
                 ? hd_lower_task(l, "gru_cell", inputs, 4, NULL, NULL)
                 : NULL;
  return d->state != NULL;
}

static bool step_gru(hd_lowering_t *l, const recurrence_t *r, sweep_t *d,
                     const hd_value_t *x) {
  if (r->usual && r->linear_before_reset)
    return step_gru_usual(l, r, d, x);
  const hd_value_t *h;
  const hd_value_t *both = recur(l, d);
  const hd_value_t *z =
      activate(l, r, &d->functions[0],
               add_values(l, gate(l, r, x, 0, 1), gate(l, r, both, 0, 1)));
  const hd_value_t *reset =
      activate(l, r, &d->functions[0],
               add_values(l, gate(l, r, x, 1, 1), gate(l, r, both, 1, 1)));
  if (!z || !reset)
    return false;
  if (r->linear_before_reset) {
    h = mul(l, reset, add_values(l, gate(l, r, both, 2, 1), d->reset_bias));
  } else {
    int64_t start[] = {2 * r->hidden, 0}, size[] = {r->hidden, r->hidden};
    const hd_value_t *weights = hd_lower_slice(l, d->r, start, size, NULL);
    h = mul(l, reset, d->state);
    h = h && weights ? hd_lower_matmul(l, h, weights, false, true) : NULL;
    h = add_values(l, h, d->reset_bias);
  }
  h = activate(l, r, &d->functions[1], add_values(l, gate(l, r, x, 2, 1), h));
  const hd_value_t *inputs[] = {z, h, d->state};
  d->state = h ? hd_lower_task(l, "mix", inputs, 3, NULL, NULL) : NULL;
  return d->state != NULL;
}

static const hd_value_t *peek(hd_lowering_t *l, const sweep_t *d, int64_t which,
                              const hd_value_t *gates, const hd_value_t *cell) {
  if (!d->peephole || !gates)
    return gates;
  const hd_value_t *weights = hd_lower_take(l, d->peephole, 0, which);
  return add_values(l, gates, mul(l, weights, cell));
}

// Gates stand in the order input, output, forget, cell.
static bool step_lstm(hd_lowering_t *l, const recurrence_t *r, sweep_t *d,
                      const hd_value_t *x) {
  const hd_value_t *g = add_values(l, x, recur(l, d));
  const activation_t *f = d->functions;
  const hd_value_t *i =
      activate(l, r, &f[0], peek(l, d, 0, gate(l, r, g, 0, 1), d->cell));
  const hd_value_t *c = activate(l, r, &f[1], gate(l, r, g, 3, 1));
  if (!i || !c)
    return false;
  if (r->input_forget) {
    const hd_value_t *inputs[] = {i, d->cell, c};
    d->cell = hd_lower_task(l, "mix", inputs, 3, NULL, NULL);
  } else {
    const hd_value_t *forget =
        activate(l, r, &f[0], peek(l, d, 2, gate(l, r, g, 2, 1), d->cell));
    d->cell = add_values(l, mul(l, forget, d->cell), mul(l, i, c));
  }
  const hd_value_t *o =
      d->cell
          ? activate(l, r, &f[0], peek(l, d, 1, gate(l, r, g, 1, 1), d->cell))
          : NULL;
  d->state = o ? mul(l, o, activate(l, r, &f[2], d->cell)) : NULL;
  return d->state != NULL;
}

// The cell's state and what the gate makes of it: one kernel stores both.
static bool step_lstm_usual(hd_lowering_t *l, const recurrence_t *r, sweep_t *d,
                            const hd_value_t *x) {
  int64_t shape[] = {3, r->hidden};
  const hd_value_t *inputs[] = {
      by_gates(l, r, x), by_gates(l, r, recur(l, d)), d->cell,
      d->peephole ? d->peephole : zeros(l, x->type, shape, 2)};
  d->cell = hd_lower_task(l, "lstm_cell", inputs, 4, NULL, NULL);
  inputs[2] = d->cell;
  d->state = hd_lower_task(l, "lstm_state", inputs, 4, NULL, NULL);
  return d->state != NULL;
}

// --- What the node says ---

static bool read_activations(hd_lowering_t *l, recurrence_t *r,
                             const char *const *usual) {
  const hd_attribute_t *names =
      hd_lower_attribute(l, "activations", HD_ATTRIBUTE_STRINGS);
  const hd_attribute_t *alphas =
      hd_lower_attribute(l, "activation_alpha", HD_ATTRIBUTE_FLOATS);
  const hd_attribute_t *betas =
      hd_lower_attribute(l, "activation_beta", HD_ATTRIBUTE_FLOATS);
  size_t count = (size_t)r->directions * r->num_functions;
  size_t alpha = 0, beta = 0, num = sizeof functions / sizeof *functions;
  if (names && names->count != count)
    return hd_lower_invalid(l, "%zu activations, and not %zu", names->count,
                            count);
  r->usual = true;
  for (size_t i = 0; i < count; i++) {
    const char *standard = usual[i % r->num_functions];
    const char *name = names ? names->u.strings[i] : standard;
    activation_t *a = &r->activations[i];
    a->function = 0;
    while (a->function < num &&
           strcasecmp(functions[a->function].name, name) != 0)
      a->function++;
    if (a->function == num)
      return hd_lower_unsupported(l, "the activation '%s'", name);
    r->usual = r->usual && strcasecmp(name, standard) == 0;
    a->alpha = functions[a->function].alpha;
    a->beta = functions[a->function].beta;
    if (functions[a->function].alpha_name && alphas && alpha < alphas->count)
      a->alpha = alphas->u.floats[alpha++];
    if (functions[a->function].beta_name && betas && beta < betas->count)
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

static bool check_shapes(hd_lowering_t *l, const recurrence_t *r,
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

static const hd_value_t *reverse(hd_lowering_t *l, const recurrence_t *r,
                                 const hd_value_t *x) {
  const hd_value_t *lengths = r->lengths;
  hd_host_tensor_t *data;
  if (!lengths) {
    lengths = hd_lower_constant(l, HD_I64, &r->batch, 1, &data);
    for (int64_t i = 0; lengths && i < r->batch; i++)
      hd_host_tensor_set_int(data, i, r->steps);
  }
  const hd_value_t *inputs[] = {x, lengths};
  return lengths ? hd_lower_task(l, "reverse_time_first", inputs, 2, NULL, NULL)
                 : NULL;
}

// The products with the inputs, with both biases; but not that which the reset
// gate of a GRU is applied to.
static const hd_value_t *project(hd_lowering_t *l, const recurrence_t *r,
                                 sweep_t *d, const hd_value_t *x,
                                 const hd_value_t *w, const hd_value_t *bias) {
  int64_t rows = r->gates * r->hidden;
  const hd_value_t *y = hd_lower_matmul(l, x, w, false, true);
  if (r->gates == 3)
    d->reset_bias =
        bias ? gate(l, r, bias, 5, 1) : zeros(l, x->type, &r->hidden, 1);
  if (!bias || !y)
    return y;
  int64_t start = rows, size = rows, none = 0;
  const hd_value_t *first = hd_lower_slice(l, bias, &none, &size, NULL);
  const hd_value_t *second = hd_lower_slice(l, bias, &start, &size, NULL);
  if (!first || !second)
    return NULL;
  if (r->gates == 3) {
    const hd_value_t *items[] = {gate(l, r, second, 0, 2),
                                 zeros(l, x->type, &r->hidden, 1)};
    second = items[0] && items[1] ? hd_lower_concat(l, items, 2, 0) : NULL;
  }
  return add_values(l, add_values(l, y, first), second);
}

static const hd_value_t *mask(hd_lowering_t *l, const recurrence_t *r,
                              const hd_value_t *x, const hd_value_t *old,
                              const hd_value_t *turn) {
  const hd_value_t *inputs[] = {x, old, r->lengths, turn};
  return x && old && turn
             ? hd_lower_task(l, "within_length", inputs, 4, NULL, NULL)
             : NULL;
}

// One turn: d->state and d->cell become what they are after it. What is stacked
// of it; NULL after an error.
static const hd_value_t *take_turn(hd_lowering_t *l, const recurrence_t *r,
                                   sweep_t *d, step_fn_t step,
                                   hd_lower_loop_t *loop) {
  int64_t shape[] = {r->batch, r->hidden};
  const hd_value_t *old = d->state = hd_lower_loop_state(l, loop, d->state);
  const hd_value_t *old_cell = d->cell =
      d->cell ? hd_lower_loop_state(l, loop, d->cell) : NULL;
  const hd_value_t *x = hd_lower_loop_slice(l, loop, d->x);
  if (!x || !step(l, r, d, x))
    return NULL;
  if (!r->lengths)
    return d->state;
  const hd_value_t *turn = hd_lower_loop_turn(l, loop);
  const hd_value_t *kept =
      mask(l, r, d->state, zeros(l, x->type, shape, 2), turn);
  d->state = mask(l, r, d->state, old, turn);
  if (old_cell)
    d->cell = mask(l, r, d->cell, old_cell, turn);
  return kept && d->state && (!old_cell || d->cell) ? kept : NULL;
}

// The states of all steps, [steps, batch, hidden]; d keeps the last ones.
static const hd_value_t *run_steps(hd_lowering_t *l, const recurrence_t *r,
                                   sweep_t *d, step_fn_t step) {
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

static const hd_value_t *run_direction(hd_lowering_t *l, const recurrence_t *r,
                                       sweep_t *d, step_fn_t step,
                                       const hd_value_t *x,
                                       const hd_value_t *const *in,
                                       int64_t which, bool backwards) {
  int64_t shape[] = {r->batch, r->hidden}, peepholes[] = {3, r->hidden};
  d->functions = &r->activations[which * r->num_functions];
  x = backwards ? reverse(l, r, x) : x;
  const hd_value_t *w = of_direction(l, in[1], which);
  const hd_value_t *bias = of_direction(l, in[3], which);
  d->r = of_direction(l, in[2], which);
  d->state =
      in[5] ? of_direction(l, in[5], which) : zeros(l, x->type, shape, 2);
  if (r->gates == 4) {
    d->cell =
        in[6] ? of_direction(l, in[6], which) : zeros(l, x->type, shape, 2);
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

static bool set_states(hd_lowering_t *l, uint32_t output,
                       const hd_value_t *const *states, int64_t count,
                       bool batch_first) {
  if (!hd_lower_wants_output(l, output))
    return true;
  const hd_value_t *y = hd_lower_stack(l, states, (size_t)count, 0);
  y = y && batch_first ? swap(l, y) : y;
  return hd_lower_output(l, output, y);
}

static bool recurrent(hd_lowering_t *l, int gates, const char *const *usual,
                      step_fn_t step) {
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
  recurrence_t r = {
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
  if (gates == 4 && r.usual)
    step = step_lstm_usual;
  for (int64_t d = 0; d < r.directions; d++) {
    sweep_t one = {0};
    all[d] = run_direction(l, &r, &one, step, x, in, d, reversed || d == 1);
    if (!all[d])
      return false;
    states[d] = one.state;
    cells[d] = one.cell;
  }
  if (hd_lower_wants_output(l, 0)) {
    const hd_value_t *y = hd_lower_stack(l, all, (size_t)r.directions, 1);
    y = y && batch_first ? hd_lower_transpose(l, y, batch_order) : y;
    if (!y || !hd_lower_output(l, 0, y))
      return false;
  }
  return set_states(l, 1, states, r.directions, batch_first) &&
         (gates != 4 || set_states(l, 2, cells, r.directions, batch_first));
}

bool hd_onnx_rnn(hd_lowering_t *l) {
  static const char *const usual[] = {"Tanh"};
  return recurrent(l, 1, usual, step_rnn);
}

bool hd_onnx_gru(hd_lowering_t *l) {
  static const char *const usual[] = {"Sigmoid", "Tanh"};
  return recurrent(l, 3, usual, step_gru);
}

bool hd_onnx_lstm(hd_lowering_t *l) {
  static const char *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
  return recurrent(l, 4, usual, step_lstm);
}
