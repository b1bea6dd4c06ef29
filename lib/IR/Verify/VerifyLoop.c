// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops of graphs: that the body takes and gives what goes around and out.
#include "IR/Graph/Loop.h"
#include "IR/Verify/GraphVerifier.h"

// Whether two values, as far as that is known, are of one type; of a slice, the
// first axis of the whole, which has the size of the loop's steps, is not
// compared.
static bool same_type(const hd_value_t *whole, const hd_value_t *value,
                      bool slice, int64_t steps) {
  if (whole->form != HD_HOLDS_TENSOR || value->form != HD_HOLDS_TENSOR ||
      (whole->type != HD_VOID && value->type != HD_VOID &&
       whole->type != value->type))
    return false;
  if (whole->rank < 0 || value->rank < 0)
    return true;
  int64_t a, b;
  if (whole->rank != value->rank + slice ||
      (slice && whole->shape[0] && hd_expr_fold_int(whole->shape[0], &a) &&
       a != steps))
    return false;
  for (int i = 0; i < value->rank; i++)
    if (whole->shape[i + slice] && value->shape[i] &&
        hd_expr_fold_int(whole->shape[i + slice], &a) &&
        hd_expr_fold_int(value->shape[i], &b) && a != b)
      return false;
  return true;
}

static bool is_known(const hd_value_t *value) {
  return hd_value_is_concrete(value);
}

static bool verify_attribute(hd_graph_verifier_t *g, const hd_node_t *node,
                             const char *name, hd_attribute_kind_t kind,
                             int64_t least) {
  const hd_attribute_t *a = hd_node_attribute(node, name);
  if (a && a->kind == kind &&
      (kind != HD_ATTRIBUTE_INT || (a->u.i >= least && a->u.i <= INT32_MAX)))
    return true;
  hd_verify_fault(&g->v, a ? a->loc : node->loc,
                  kind == HD_ATTRIBUTE_INT
                      ? "'%s' of a loop is a number from %lld to 2147483647"
                      : "'%s' of a loop is a graph",
                  name, (long long)least);
  return false;
}

static bool verify_counts(hd_graph_verifier_t *g, const hd_node_t *node,
                          const hd_loop_t *loop) {
  const hd_graph_t *body = loop->body;
  bool fits = body->inputs.size >= node->num_inputs && loop->counts <= 1 &&
              (uint64_t)loop->states + loop->scanned <= node->num_inputs &&
              body->outputs.size == node->num_outputs &&
              loop->states <= node->num_outputs && !body->dims.size;
  for (uint32_t i = 0; fits && i < node->num_inputs; i++)
    fits = node->inputs[i] != NULL;
  if (!fits)
    hd_verify_fault(&g->v, node->loc,
                    "a loop of %u operands and %u results, with %u states and "
                    "%u that are scanned, has a body of %zu and %zu",
                    node->num_inputs, node->num_outputs, loop->states,
                    loop->scanned, body->inputs.size, body->outputs.size);
  return fits;
}

static void fault_type(hd_graph_verifier_t *g, const hd_node_t *node,
                       const hd_value_t *value) {
  hd_verify_fault(&g->v, node->loc,
                  "'%s' of the loop's body has another type than what goes "
                  "there",
                  value->name);
}

void hd_verify_loop(hd_graph_verifier_t *g, const hd_node_t *node) {
  bool ok = verify_attribute(g, node, "steps", HD_ATTRIBUTE_INT, 1);
  ok &= verify_attribute(g, node, "states", HD_ATTRIBUTE_INT, 0);
  ok &= verify_attribute(g, node, "scanned", HD_ATTRIBUTE_INT, 0);
  ok &= verify_attribute(g, node, "body", HD_ATTRIBUTE_GRAPH, 0);
  if (node->num_attributes != 4) {
    hd_verify_fault(&g->v, node->loc,
                    "a loop has the attributes steps, states, scanned and "
                    "body");
    return;
  }
  if (!ok)
    return;
  hd_loop_t loop = hd_node_loop(node);
  if (!verify_counts(g, node, &loop))
    return;
  const hd_value_t *const *inputs = loop.body->inputs.data;
  for (size_t i = 0; i < loop.body->inputs.size; i++)
    if (!is_known(inputs[i]) ||
        (i < loop.counts &&
         (inputs[i]->type != HD_I64 || inputs[i]->rank != 0))) {
      fault_type(g, node, inputs[i]);
      return;
    }
  inputs += loop.counts;
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (!same_type(node->inputs[i], inputs[i],
                   i >= loop.states && i < loop.states + loop.scanned,
                   loop.steps))
      fault_type(g, node, inputs[i]);
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    const hd_value_t *given = loop.body->outputs.data[i];
    bool state = i < loop.states;
    if ((state && !same_type(inputs[i], given, false, 0)) ||
        (node->outputs[i] &&
         !same_type(node->outputs[i], given, !state, loop.steps)))
      fault_type(g, node, given);
  }
}
