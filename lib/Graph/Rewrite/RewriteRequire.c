// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a rule asks of constants before it computes with them: `require` on the
// right side names a task, which is evaluated here and now. What it reads are
// constants of the graph, weights among them, and what the nodes before it make
// of these. Answers are kept: a rule comes by again and again.
#include "Graph/Rewrite/RewriteState.h"

#include "Graph/Reference/Reference.h"

#include <string.h>

enum {
  MAX_READ = 1 << 27,     // Elements that are looked at.
  MAX_COMPUTED = 1 << 20, // Elements that are computed to be looked at.
  MAX_DEPTH = 8,          // Nodes one after the other.
};

typedef struct answer {
  uint64_t key;
  bool holds;
} answer_t;

typedef struct required {
  const hd_rw_match_t *m;
  hd_rw_graph_t *g;
  hd_arena_t arena;
  HD_VEC(hd_host_tensor_t *) made; // To be ended.
  hd_cleanup_t cleanup;
  bool failed; // After an error.
} required_t;

static void end_made(void *argument) {
  required_t *r = argument;
  for (size_t i = 0; i < r->made.size; i++)
    hd_host_tensor_fini(r->made.data[i]);
}

static const hd_host_tensor_t *
data_of_value(required_t *r, const hd_rw_value_t *value, unsigned depth);
static const hd_host_tensor_t *
data_of(required_t *r, const hd_rule_value_t *value, unsigned depth);

static const hd_host_tensor_t *reshaped(required_t *r,
                                        const hd_host_tensor_t *x,
                                        const hd_tensor_type_t *type) {
  hd_host_tensor_t *view = HD_ARENA_COPY(&r->arena, hd_host_tensor_t, x);
  view->rank = type->rank;
  memcpy(view->shape, type->shape, type->rank * sizeof(int64_t));
  return view;
}

// What a node gives; NULL where it gives too much, or after an error.
static const hd_host_tensor_t *compute(required_t *r, const hd_node_t *node,
                                       uint32_t output,
                                       const hd_host_tensor_t *const *data) {
  hd_context_t *context = r->g->module->context;
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(&r->arena, hd_tensor_type_t, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    types[i] = hd_tensor_type_of(data[i]);
  const hd_task_binding_t *binding = hd_task_try_bind(
      context, &r->arena, node->task, types, NULL, node->num_inputs,
      node->attributes, node->num_attributes);
  if (!binding)
    return NULL;
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (hd_tensor_type_count(&binding->outputs[i]) > MAX_COMPUTED)
      return NULL;
  hd_host_tensor_t *results =
      HD_ARENA_ARRAY(&r->arena, hd_host_tensor_t, node->num_outputs + 1);
  if (!hd_task_evaluate(context, binding, data, results, node->loc)) {
    r->failed = true;
    return NULL;
  }
  for (uint32_t i = 0; i < node->num_outputs; i++)
    hd_vec_push(&r->arena, &r->made, &results[i]);
  return &results[output];
}

static const hd_host_tensor_t *
data_of_node(required_t *r, const hd_rw_value_t *value, unsigned depth) {
  const hd_rw_node_t *def = value->def;
  const hd_host_tensor_t **data = HD_ARENA_ARRAY(
      &r->arena, const hd_host_tensor_t *, def->node.num_inputs + 1);
  for (uint32_t i = 0; i < def->node.num_inputs; i++)
    if (!(data[i] = data_of_value(r, def->inputs[i], depth + 1)))
      return NULL;
  if (!def->node.task && !hd_node_is_reshape(&def->node))
    return NULL;
  if (hd_node_is_reshape(&def->node))
    return reshaped(r, data[0], &value->type);
  uint32_t output = 0;
  while (def->outputs[output] != value)
    output++;
  return compute(r, &def->node, output, data);
}

static const hd_host_tensor_t *
data_of_value(required_t *r, const hd_rw_value_t *value, unsigned depth) {
  int64_t most = value->def ? MAX_COMPUTED : MAX_READ;
  if (depth > MAX_DEPTH || !value->constant ||
      hd_tensor_type_count(&value->type) > most)
    return NULL;
  if (value->def)
    return data_of_node(r, value, depth);
  const hd_host_tensor_t *data = hd_constant_elements(&r->arena, value->value);
  if (!data)
    data = hd_constant_load(r->g->module, value->value);
  r->failed |= !data;
  return data;
}

// A weight as the file has it, aligned or not, else the elements.
static const hd_host_tensor_t *
weight_of(required_t *r, const hd_rule_value_t *value, unsigned depth) {
  const hd_rw_value_t *met = value->right ? NULL : r->m->values[value->index];
  const hd_constant_t *constant =
      met && !met->def ? met->value->constant : NULL;
  if (!constant || constant->tensor || !constant->mapped ||
      hd_scalar_bits(met->type.type) < 8 ||
      hd_tensor_type_count(&met->type) > MAX_READ)
    return data_of(r, value, depth);
  hd_host_tensor_t *view = HD_ARENA_NEW(&r->arena, hd_host_tensor_t);
  view->type = met->type.type;
  view->count = hd_tensor_type_count(&met->type);
  view->data = (unsigned char *)(uintptr_t)constant->mapped;
  return reshaped(r, view, &met->type);
}

static const hd_host_tensor_t *
magnitudes(required_t *r, const hd_rule_node_t *node, unsigned depth) {
  const hd_tensor_type_t *type = &r->m->types[node->outputs[0]->index];
  const hd_host_tensor_t *x = weight_of(r, node->inputs[0], depth + 1);
  if (!x || hd_tensor_type_count(type) > MAX_COMPUTED)
    return NULL;
  hd_host_tensor_t *made =
      hd_host_tensor_make(&r->arena, HD_F64, type->shape, type->rank);
  hd_magnitudes(&r->arena, x, made);
  return made;
}

// Of a node of the rule's right side.
static const hd_host_tensor_t *
data_of_made(required_t *r, const hd_rule_value_t *value, unsigned depth) {
  const hd_rewrite_t *rewrite = r->m->rule->rewrite;
  const hd_rule_node_t *node = value->right;
  if (hd_rule_node_is_magnitudes(node))
    return magnitudes(r, node, depth);
  const hd_host_tensor_t **data =
      HD_ARENA_ARRAY(&r->arena, const hd_host_tensor_t *, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (!(data[i] = data_of(r, node->inputs[i], depth + 1)))
      return NULL;
  if (!node->op)
    return data[0];
  if (!node->task)
    return reshaped(r, data[0], &r->m->types[value->index]);
  size_t at = 0;
  while (rewrite->right.data[at] != node)
    at++;
  uint32_t output = 0;
  while (node->outputs[output] != value)
    output++;
  return compute(r, &r->m->made[at], output, data);
}

static const hd_host_tensor_t *
data_of(required_t *r, const hd_rule_value_t *value, unsigned depth) {
  if (depth > MAX_DEPTH)
    return NULL;
  return value->right ? data_of_made(r, value, depth)
                      : data_of_value(r, r->m->values[value->index], depth);
}

static bool ask(required_t *r, const hd_rule_node_t *node,
                const hd_node_t *made) {
  const hd_host_tensor_t **data =
      HD_ARENA_ARRAY(&r->arena, const hd_host_tensor_t *, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (!(data[i] = data_of(r, node->inputs[i], 0)))
      return false;
  hd_node_t asked = *made;
  asked.num_outputs = 1;
  const hd_host_tensor_t *answer = compute(r, &asked, 0, data);
  return answer && hd_host_tensor_get_int(answer, 0) != 0;
}

// What an answer depends on: the constants that were met, and the attributes.
static uint64_t key_of(const hd_rw_match_t *m, const hd_rule_node_t *node,
                       const hd_node_t *made) {
  const hd_rewrite_t *rewrite = m->rule->rewrite;
  uint64_t key = (uint64_t)(uintptr_t)node;
  for (size_t i = 0; i < rewrite->values.size; i++)
    if (rewrite->values.data[i]->constant)
      key = hd_hash(key, &m->values[i], sizeof m->values[i]);
  for (size_t n = 0; n < rewrite->right.size; n++)
    for (uint32_t i = 0; i < m->made[n].num_attributes; i++)
      key = hd_attribute_key(key, m->made[n].attributes[i]);
  for (uint32_t i = 0; i < made->num_attributes; i++)
    key = hd_attribute_key(key, made->attributes[i]);
  return key;
}

bool hd_rw_require(hd_rw_match_t *m, const hd_rule_node_t *node,
                   const hd_node_t *made) {
  hd_rw_graph_t *g = m->g;
  uint64_t key = key_of(m, node, made);
  answer_t *answer = hd_key_map_find(&g->answers, &key, sizeof(key));
  if (answer)
    return answer->holds;
  hd_budget_t *budget = &g->module->context->budget;
  required_t r = {.m = m, .g = g};
  hd_arena_init_local(&r.arena, budget);
  hd_budget_defer(budget, &r.cleanup, end_made, &r);
  answer = HD_ARENA_NEW(g->arena, answer_t);
  *answer = (answer_t){key, ask(&r, node, made)};
  hd_key_map_set(g->arena, &g->answers, &answer->key, sizeof(key), answer);
  m->failed |= r.failed;
  hd_budget_clean(budget, &r.cleanup);
  hd_arena_fini(&r.arena);
  return answer->holds;
}
