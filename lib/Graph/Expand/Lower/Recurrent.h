// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the lowering of recurrent layers shares: Recurrent.c reads a node and
// makes the loop, RecurrentSteps.c what is done in a step.
#ifndef HIDET_GRAPH_EXPAND_LOWER_RECURRENT_H
#define HIDET_GRAPH_EXPAND_LOWER_RECURRENT_H

#include "Graph/Expand/Lower/Lower.h"

enum { HD_MAX_ACTIVATIONS = 3 }; // Of a direction.

// A function that activations may name.
typedef struct hd_activation_info {
  const char *name, *task;
  const char *alpha_name, *beta_name; // NULL: takes none.
  double alpha, beta;
} hd_activation_info_t;

typedef struct hd_activation {
  const hd_activation_info_t *info;
  double alpha, beta;
} hd_activation_t;

typedef struct hd_recurrence {
  int gates;
  unsigned num_functions;
  bool usual; // All functions are those that the standard has by default.
  bool clips;
  double clip;
  bool linear_before_reset, input_forget;
  int64_t steps, batch, hidden, directions;
  const hd_value_t *lengths; // i64[batch], or NULL.
  hd_activation_t activations[2 * HD_MAX_ACTIVATIONS];
} hd_recurrence_t;

// What one direction works with; or all together, then with a first axis of
// them (x: a second one).
typedef struct hd_sweep {
  const hd_activation_t *functions;
  const hd_value_t *x;          // [steps, batch, gates * hidden], with biases.
  const hd_value_t *r;          // [gates * hidden, hidden]
  const hd_value_t *reset_bias; // GRU: [hidden]
  const hd_value_t *peephole;   // LSTM: [3, hidden], or NULL.
  const hd_value_t *state, *cell;
} hd_sweep_t;

// A step: x is a turn of d->x; the states become the next ones.
typedef bool hd_step_fn_t(hd_lowering_t *l, const hd_recurrence_t *r,
                          hd_sweep_t *d, const hd_value_t *x);
hd_step_fn_t hd_step_rnn, hd_step_gru, hd_step_lstm;
// With the functions that the standard has by default, of all directions; the
// LSTM has peepholes, then, and the GRU applies its gate to the product.
hd_step_fn_t hd_step_rnn_usual, hd_step_gru_usual, hd_step_lstm_usual;

// NULL operands give NULL.
const hd_value_t *hd_recurrent_zeros(hd_lowering_t *l, hd_scalar_t type,
                                     const int64_t *shape, unsigned rank);
const hd_value_t *hd_recurrent_add(hd_lowering_t *l, const hd_value_t *a,
                                   const hd_value_t *b);
// Gates [first, first + count) of [.., gates * hidden].
const hd_value_t *hd_recurrent_gate(hd_lowering_t *l, const hd_recurrence_t *r,
                                    const hd_value_t *x, int64_t first,
                                    int64_t count);

#endif
