// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bodies of Loop and Scan as bodies of loops: walked once, with values of which
// nothing is known but their types.
#include "Graph/Expand/Lower/ControlLoop.h"
#include "Graph/Expand/Expander.h"
#include "Graph/Expand/LoweringLoop.h"

// --- Whether there is anything to run ---

// Whether a graph reads, of what is around it, a value that is not known.
static bool reads_unknown(hd_lowering_t *l, const hd_graph_t *graph) {
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    for (uint32_t k = 0; k < node->num_inputs; k++) {
      const hd_value_t *value =
          node->inputs[k] ? hd_walk_find(l->walk, node->inputs[k]) : NULL;
      if (value &&
          (value->form != HD_HOLDS_TENSOR ||
           (value != &hd_value_poison && !hd_lower_find_data(l, value))))
        return true;
    }
    for (uint32_t k = 0; k < node->num_attributes; k++)
      if (node->attributes[k]->kind == HD_ATTRIBUTE_GRAPH &&
          reads_unknown(l, node->attributes[k]->u.graph))
        return true;
  }
  return false;
}

static bool is_unknown(hd_lowering_t *l, const hd_value_t *value) {
  return !hd_lower_find_data(l, value);
}

// What is known is computed here, turn by turn: it may be a shape.
static bool is_to_be_run(hd_lowering_t *l, const hd_control_loop_t *c) {
  for (uint32_t i = 0; i < c->num_states; i++)
    if (c->states[i]->form != HD_HOLDS_TENSOR)
      return false;
  if (c->steps < 2 || c->steps > INT32_MAX)
    return false;
  for (uint32_t i = 0; i < c->num_states; i++)
    if (is_unknown(l, c->states[i]))
      return true;
  for (uint32_t i = 0; i < c->num_slices; i++)
    if (is_unknown(l, c->wholes[i]))
      return true;
  return reads_unknown(l, c->body);
}

// --- The body ---

static bool same_type(const hd_value_t *a, const hd_value_t *b) {
  if (a->form != HD_HOLDS_TENSOR || b->form != HD_HOLDS_TENSOR)
    return false;
  hd_tensor_type_t x = hd_lower_type(a), y = hd_lower_type(b);
  return hd_tensor_type_equal(&x, &y);
}

// Whether the condition after a turn is what it was, true.
static bool goes_on(hd_lowering_t *l, const hd_control_loop_t *c,
                    const hd_value_t *condition) {
  if (condition == c->condition)
    return true;
  const hd_host_tensor_t *data = condition->form == HD_HOLDS_TENSOR
                                     ? hd_lower_find_data(l, condition)
                                     : NULL;
  return data && data->count == 1 && hd_host_tensor_get_int(data, 0) != 0;
}

static bool is_loop(hd_lowering_t *l, const hd_control_loop_t *c,
                    const hd_value_t *const *states,
                    const hd_value_t *const *results) {
  uint32_t conditions = c->condition != NULL;
  if (conditions && !goes_on(l, c, results[0]))
    return false;
  results += conditions;
  for (uint32_t i = 0; i < c->num_states; i++)
    if (!same_type(states[i], results[i]))
      return false;
  for (uint32_t i = 0; i < c->num_results; i++)
    if (results[c->num_states + i]->form != HD_HOLDS_TENSOR)
      return false;
  return true;
}

hd_control_t hd_lower_control_loop(hd_lowering_t *l, const hd_control_loop_t *c,
                                   const hd_value_t **outputs) {
  hd_arena_t *arena = hd_lower_arena(l);
  hd_lower_loop_t loop;
  hd_lower_values_t inputs = {0};
  uint32_t conditions = c->condition != NULL;
  uint32_t gives = c->num_states + c->num_results;
  if (!is_to_be_run(l, c))
    return HD_CONTROL_TURNS;
  hd_lower_loop_begin(l, &loop, c->steps);
  if (c->condition) {
    hd_vec_push(arena, &inputs, hd_lower_loop_turn(l, &loop));
    hd_vec_push(arena, &inputs, c->condition);
  }
  for (uint32_t i = 0; i < c->num_states; i++)
    hd_vec_push(arena, &inputs, hd_lower_loop_state(l, &loop, c->states[i]));
  for (uint32_t i = 0; i < c->num_slices; i++)
    hd_vec_push(arena, &inputs, hd_lower_loop_slice(l, &loop, c->wholes[i]));
  const hd_value_t **results =
      HD_ARENA_ARRAY(arena, const hd_value_t *, conditions + gives + 1);
  bool ok = hd_lower_graph_once(l, c->body, inputs.data, (uint32_t)inputs.size,
                                results);
  hd_control_t state =
      ok || l->x->wanted ? HD_CONTROL_TURNS : HD_CONTROL_FAILED;
  l->x->wanted = NULL; // It is the body's, and not known before it runs.
  if (ok && is_loop(l, c, inputs.data + 2 * conditions, results))
    state = hd_lower_loop_end(l, &loop, results + conditions, gives, outputs)
                ? HD_CONTROL_DONE
                : HD_CONTROL_FAILED;
  hd_lower_loop_drop(l, &loop);
  return state;
}
