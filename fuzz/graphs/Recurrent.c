// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Motifs with loops: a state or two that go from turn to turn.
#include "Steps.h"

#include <string.h>

typedef fuzz_value_t *V;

enum { MOST = 6 }; // States and what is scanned.

typedef struct recurrence {
  fuzz_graph_t *g, *body;
  int64_t steps;
  uint32_t states, scanned;
  V inner[MOST], outer[MOST];
  V next[MOST]; // Of the states.
} recurrence_t;

static hd_host_tensor_t *copy_of(fuzz_graph_t *g, const hd_host_tensor_t *x) {
  hd_host_tensor_t *y =
      hd_host_tensor_make(&g->arena, x->type, x->shape, x->rank);
  memcpy(y->data, x->data, y->bytes);
  return y;
}

static V state(recurrence_t *r, V x) {
  uint32_t k = r->states++;
  r->outer[k] = x;
  return r->inner[k] = fuzz_leaf_of(r->body, copy_of(r->body, x->data), false);
}

// All states are there before. A slice for each turn.
static V scanned(recurrence_t *r, hd_tensor_type_t type, double low,
                 double high) {
  hd_tensor_type_t whole = {type.type, type.rank + 1, {r->steps}};
  memcpy(whole.shape + 1, type.shape, type.rank * sizeof *type.shape);
  uint32_t k = r->states + r->scanned++;
  r->outer[k] = fuzz_leaf(r->g, &whole, low, high, fuzz_once_in(r->g, 4));
  hd_host_tensor_t *first =
      hd_host_tensor_make(&r->body->arena, type.type, type.shape, type.rank);
  memcpy(first->data, r->outer[k]->data->data, first->bytes);
  return r->inner[k] = fuzz_leaf_of(r->body, first, false);
}

// A number or a tensor, of this turn or of all, sometimes of what is made of
// it.
static V factor(recurrence_t *r, V like, double low, double high) {
  fuzz_graph_t *body = r->body;
  hd_tensor_type_t type = fuzz_type_of(like);
  if (fuzz_once_in(r->g, 4))
    return fuzz_number(body, like, fuzz_real(r->g, low, high));
  V x = r->states + r->scanned < MOST && !fuzz_once_in(r->g, 4)
            ? scanned(r, type, low, high)
            : fuzz_leaf(body, &type, low, high, fuzz_once_in(r->g, 2));
  return fuzz_once_in(r->g, 3) ? fuzz_chain(body, x, fuzz_in(r->g, 1, 2)) : x;
}

static V either(recurrence_t *r, const char *task, V a, V b) {
  return fuzz_once_in(r->g, 2) ? fuzz_two(r->body, task, a, b)
                               : fuzz_two(r->body, task, b, a);
}

// s * a + b, in any order, some of it or more of it.
static V fading(recurrence_t *r, V s) {
  static const char *const adds[] = {"add", "add", "sub"};
  V x = s;
  for (int64_t n = fuzz_in(r->g, 1, 2); n > 0; n--) {
    if (!fuzz_once_in(r->g, 5))
      x = either(r, "mul", x, factor(r, s, -1, 1));
    if (!fuzz_once_in(r->g, 5))
      x = either(r, adds[fuzz_in(r->g, 0, 2)], x, factor(r, s, -2, 2));
  }
  return x;
}

static V extreme(recurrence_t *r, V s) {
  V x = either(r, fuzz_once_in(r->g, 2) ? "maximum" : "minimum", s,
               factor(r, s, -2, 2));
  return fuzz_once_in(r->g, 4) ? either(r, "mul", x, factor(r, s, 0, 1)) : x;
}

// tanh(s * u + x), and what is kept of s.
static V layer(recurrence_t *r, V s) {
  hd_scalar_t type = s->data->type;
  int64_t n = s->data->rank ? fuzz_last_of(s) : 0;
  V u = fuzz_weight(r->body, fuzz_shape(type, 2, n, n, 0));
  V y = s->data->rank == 2 ? fuzz_two(r->body, "matmul", s, u) : s;
  y = either(r, "add", y, factor(r, s, -1, 1));
  y = y ? fuzz_one(r->body, fuzz_once_in(r->g, 2) ? "tanh" : "sigmoid", y)
        : NULL;
  if (!y || fuzz_once_in(r->g, 2))
    return y;
  V z = fuzz_one(r->body, "sigmoid", factor(r, s, -2, 2));
  return fuzz_two(r->body, "add", s,
                  fuzz_two(r->body, "mul", z, fuzz_two(r->body, "sub", y, s)));
}

static V free_form(recurrence_t *r, V s) {
  V x =
      either(r, fuzz_once_in(r->g, 2) ? "add" : "mul", s, factor(r, s, -1, 1));
  return fuzz_chain(r->body, x, fuzz_in(r->g, 1, 3));
}

static bool same_type(V a, V b) {
  hd_tensor_type_t s = fuzz_type_of(a), t = fuzz_type_of(b);
  return s.type == t.type && s.rank == t.rank &&
         memcmp(s.shape, t.shape, s.rank * sizeof *s.shape) == 0;
}

// What is stacked: a state before the turn or after it, or what is made of it.
static void stacked(recurrence_t *r) {
  uint32_t k = (uint32_t)fuzz_in(r->g, 0, r->states - 1);
  V x = fuzz_once_in(r->g, 2) ? r->inner[k] : r->next[k];
  x = x == r->inner[k] || fuzz_once_in(r->g, 2)
          ? fuzz_chain(r->body, fuzz_one(r->body, "copy", x),
                       fuzz_in(r->g, 0, 3))
          : x;
  if (x)
    hd_vec_push(&r->body->arena, &r->body->outputs, x);
}

void fuzz_recurrent(fuzz_graph_t *g) {
  static V (*const forms[])(recurrence_t *, V) = {fading, fading, extreme,
                                                  layer, free_form};
  V x = fuzz_some(g, 1, 3);
  recurrence_t r = {.g = g, .body = fuzz_body(g)};
  r.steps = fuzz_once_in(g, 6) ? fuzz_in(g, 8, 40) : fuzz_in(g, 1, 6);
  state(&r, x);
  hd_tensor_type_t type = fuzz_type_of(x);
  if (fuzz_once_in(g, 4)) // From zeros on, or from anything.
    state(&r, fuzz_once_in(g, 2) ? fuzz_leaf(g, &type, 0, 0, true)
                                 : fuzz_weight(g, type));
  for (uint32_t k = 0; k < r.states; k++) {
    r.next[k] = forms[fuzz_in(g, 0, 4)](&r, r.inner[k]);
    if (!r.next[k] || r.next[k] == r.inner[k] ||
        !same_type(r.next[k], r.inner[k]))
      return;
    hd_vec_push(&r.body->arena, &r.body->outputs, r.next[k]);
  }
  for (int64_t n = fuzz_in(g, 0, 2); n > 0; n--)
    stacked(&r);
  fuzz_node_t *node =
      fuzz_loop(g, r.body, r.inner, r.outer, r.states, r.scanned, r.steps);
  if (node)
    fuzz_chain(g, node->outputs[fuzz_in(g, 0, node->node.num_outputs - 1)],
               fuzz_in(g, 0, 2));
}
