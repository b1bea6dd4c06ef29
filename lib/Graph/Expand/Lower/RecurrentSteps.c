// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What RNN, GRU and LSTM do in a step.
#include "Graph/Expand/Lower/ControlFlow.h"
#include "Graph/Expand/Lower/Products.h"
#include "Graph/Expand/Lower/Recurrent.h"

enum {
  MOST_READ = 8 << 20, // Bytes, from the L2 cache mostly.
  MOST_ROWS = 7 // More are products: the scheduler takes each gate's alone.
};

const hd_value_t *hd_recurrent_zeros(hd_lowering_t *l, hd_scalar_t type,
                                     const int64_t *shape, unsigned rank) {
  hd_host_tensor_t *data;
  return hd_lower_constant(l, type, shape, rank, &data);
}

const hd_value_t *hd_recurrent_add(hd_lowering_t *l, const hd_value_t *a,
                                   const hd_value_t *b) {
  return a && b ? hd_lower_binary(l, "add", a, b) : NULL;
}

static const hd_value_t *mul(hd_lowering_t *l, const hd_value_t *a,
                             const hd_value_t *b) {
  return a && b ? hd_lower_binary(l, "mul", a, b) : NULL;
}

// Gates [first, first + count) of [.., gates * hidden].
const hd_value_t *hd_recurrent_gate(hd_lowering_t *l, const hd_recurrence_t *r,
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

static const hd_value_t *activate(hd_lowering_t *l, const hd_recurrence_t *r,
                                  const hd_activation_t *a,
                                  const hd_value_t *x) {
  if (x && r->clips) {
    const hd_value_t *inputs[] = {x, hd_lower_scalar(l, x->type, -r->clip),
                                  hd_lower_scalar(l, x->type, r->clip)};
    x = inputs[1] && inputs[2] ? hd_lower_task(l, "clip", inputs, 3, NULL, NULL)
                               : NULL;
  }
  hd_attributes_t list = {0};
  if (a->info->alpha_name)
    hd_attributes_float(l, &list, "alpha", a->alpha);
  if (a->info->beta_name)
    hd_attributes_float(l, &list, "beta", a->beta);
  return x ? hd_lower_task(l, a->info->task, &x, 1, &list, NULL) : NULL;
}

static const hd_value_t *recur(hd_lowering_t *l, const hd_sweep_t *d) {
  return hd_lower_matmul(l, d->state, d->r, false, true);
}

bool hd_step_rnn(hd_lowering_t *l, const hd_recurrence_t *r, hd_sweep_t *d,
                 const hd_value_t *x) {
  d->state =
      activate(l, r, &d->functions[0], hd_recurrent_add(l, x, recur(l, d)));
  return d->state != NULL;
}

bool hd_step_gru(hd_lowering_t *l, const hd_recurrence_t *r, hd_sweep_t *d,
                 const hd_value_t *x) {
  const hd_value_t *h;
  const hd_value_t *both = recur(l, d);
  const hd_value_t *z =
      activate(l, r, &d->functions[0],
               hd_recurrent_add(l, hd_recurrent_gate(l, r, x, 0, 1),
                                hd_recurrent_gate(l, r, both, 0, 1)));
  const hd_value_t *reset =
      activate(l, r, &d->functions[0],
               hd_recurrent_add(l, hd_recurrent_gate(l, r, x, 1, 1),
                                hd_recurrent_gate(l, r, both, 1, 1)));
  if (!z || !reset)
    return false;
  if (r->linear_before_reset) {
    h = mul(l, reset,
            hd_recurrent_add(l, hd_recurrent_gate(l, r, both, 2, 1),
                             d->reset_bias));
  } else {
    int64_t start[] = {2 * r->hidden, 0}, size[] = {r->hidden, r->hidden};
    const hd_value_t *weights = hd_lower_slice(l, d->r, start, size, NULL);
    h = mul(l, reset, d->state);
    h = h && weights ? hd_lower_matmul(l, h, weights, false, true) : NULL;
    h = hd_recurrent_add(l, h, d->reset_bias);
  }
  h = activate(l, r, &d->functions[1],
               hd_recurrent_add(l, hd_recurrent_gate(l, r, x, 2, 1), h));
  const hd_value_t *inputs[] = {z, h, d->state};
  d->state = h ? hd_lower_task(l, "mix", inputs, 3, NULL, NULL) : NULL;
  return d->state != NULL;
}

static const hd_value_t *peek(hd_lowering_t *l, const hd_sweep_t *d,
                              int64_t which, const hd_value_t *gates,
                              const hd_value_t *cell) {
  if (!d->peephole || !gates)
    return gates;
  const hd_value_t *weights = hd_lower_take(l, d->peephole, 0, which);
  return hd_recurrent_add(l, gates, mul(l, weights, cell));
}

// Gates stand in the order input, output, forget, cell.
bool hd_step_lstm(hd_lowering_t *l, const hd_recurrence_t *r, hd_sweep_t *d,
                  const hd_value_t *x) {
  const hd_value_t *g = hd_recurrent_add(l, x, recur(l, d));
  const hd_activation_t *f = d->functions;
  const hd_value_t *i = activate(
      l, r, &f[0], peek(l, d, 0, hd_recurrent_gate(l, r, g, 0, 1), d->cell));
  const hd_value_t *c = activate(l, r, &f[1], hd_recurrent_gate(l, r, g, 3, 1));
  if (!i || !c)
    return false;
  if (r->input_forget) {
    const hd_value_t *inputs[] = {i, d->cell, c};
    d->cell = hd_lower_task(l, "mix", inputs, 3, NULL, NULL);
  } else {
    const hd_value_t *forget = activate(
        l, r, &f[0], peek(l, d, 2, hd_recurrent_gate(l, r, g, 2, 1), d->cell));
    d->cell = hd_recurrent_add(l, mul(l, forget, d->cell), mul(l, i, c));
  }
  const hd_value_t *o =
      d->cell
          ? activate(l, r, &f[0],
                     peek(l, d, 1, hd_recurrent_gate(l, r, g, 1, 1), d->cell))
          : NULL;
  d->state = o ? mul(l, o, activate(l, r, &f[2], d->cell)) : NULL;
  return d->state != NULL;
}

// --- All directions at once, with the usual functions ---

// [directions, batch, gates * hidden] by gates.
static const hd_value_t *by_gates(hd_lowering_t *l, const hd_recurrence_t *r,
                                  const hd_value_t *x) {
  int64_t shape[] = {r->directions, r->batch, r->gates, r->hidden};
  return x ? hd_lower_reshape(l, x, shape, 4) : NULL;
}

bool hd_step_rnn_usual(hd_lowering_t *l, const hd_recurrence_t *r,
                       hd_sweep_t *d, const hd_value_t *x) {
  (void)r;
  const hd_value_t *inputs[] = {x, d->state, d->r};
  d->state = hd_lower_task(l, "rnn_step", inputs, 3, NULL, NULL);
  return d->state != NULL;
}

// Whether a step multiplies for itself: by kernels for rows, which read the
// weights for each row of the batch, in the type that the model has them in.
// That is to take no longer than the launch that it saves.
static bool multiplies(const hd_recurrence_t *r, const hd_value_t *x) {
  double weights = (double)r->directions * (double)(r->gates * r->hidden) *
                   (double)r->hidden * hd_scalar_bits(x->type) / 8;
  return r->batch <= MOST_ROWS && (double)r->batch * weights <= MOST_READ;
}

static const hd_value_t *weights_by_gates(hd_lowering_t *l,
                                          const hd_recurrence_t *r,
                                          const hd_sweep_t *d) {
  int64_t shape[] = {r->directions, r->gates, r->hidden, r->hidden};
  return hd_lower_reshape(l, d->r, shape, 4);
}

bool hd_step_gru_usual(hd_lowering_t *l, const hd_recurrence_t *r,
                       hd_sweep_t *d, const hd_value_t *x) {
  const hd_value_t *own[] = {by_gates(l, r, x), d->state, NULL, d->reset_bias};
  const hd_value_t *apart[] = {own[0], NULL, d->state, d->reset_bias};
  bool multiplied = multiplies(r, x);
  if (multiplied)
    own[2] = weights_by_gates(l, r, d);
  else
    apart[1] = by_gates(l, r, recur(l, d));
  if (!own[0] || !(multiplied ? own[2] : apart[1]))
    return false;
  d->state = hd_lower_task(l, multiplied ? "gru_step" : "gru_cell",
                           multiplied ? own : apart, 4, NULL, NULL);
  return d->state != NULL;
}

// The cell's state and what the gate makes of it: one kernel stores both.
bool hd_step_lstm_usual(hd_lowering_t *l, const hd_recurrence_t *r,
                        hd_sweep_t *d, const hd_value_t *x) {
  const hd_value_t *gates = by_gates(l, r, x), *outputs[2];
  if (!gates)
    return false;
  if (multiplies(r, x)) {
    const hd_value_t *inputs[] = {gates, d->state, weights_by_gates(l, r, d),
                                  d->cell, d->peephole};
    if (!inputs[2] || !hd_lower_task(l, "lstm_step", inputs, 5, NULL, outputs))
      return false;
    d->cell = outputs[0];
    d->state = outputs[1];
    return true;
  }
  const hd_value_t *inputs[] = {gates, by_gates(l, r, recur(l, d)), d->cell,
                                d->peephole};
  if (!inputs[1] ||
      !(d->cell = hd_lower_task(l, "lstm_cell", inputs, 4, NULL, NULL)))
    return false;
  inputs[2] = d->cell;
  d->state = hd_lower_task(l, "lstm_state", inputs, 4, NULL, NULL);
  return d->state != NULL;
}
