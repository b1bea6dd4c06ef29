// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The left side of a rewrite, so that each rule meets what it is for: an
// instance as the prover draws it (Graph/RewriteInstance.h), with operands that
// are leaves or values that are there.
#include "Fuzz.h"

#include "Graph/Rewrite/RewriteInstance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *fuzz_rules[FUZZ_MAX_RULES];
size_t fuzz_num_rules;

void fuzz_rules_init(hd_context_t *context) {
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  hd_rewrites_t rules = {0};
  if (!hd_rewrites_find(context, NULL, &arena, &rules) ||
      rules.size > FUZZ_MAX_RULES) {
    fprintf(stderr, "graph_fuzz: the rewrites cannot be had\n");
    exit(2);
  }
  for (size_t i = 0; i < rules.size; i++)
    fuzz_rules[fuzz_num_rules++] = strdup(rules.data[i]->name);
  hd_arena_fini(&arena);
}

// One that is there and has the type and the shape.
static fuzz_value_t *find(fuzz_graph_t *g, const hd_tensor_type_t *type) {
  for (int tries = 0; g->values.size && tries < 12; tries++) {
    fuzz_value_t *v =
        g->values.data[fuzz_in(g, 0, (int64_t)g->values.size - 1)];
    hd_tensor_type_t has = fuzz_type_of(v);
    if (memcmp(&has, type, sizeof has) == 0)
      return v;
  }
  return NULL;
}

// The numbers may be what the rule asks for, so they are kept.
static fuzz_value_t *operand(fuzz_graph_t *g, const hd_rule_value_t *value,
                             const hd_host_tensor_t *drawn, bool single) {
  hd_tensor_type_t type = hd_tensor_type_of(drawn);
  if (single && type.type == HD_F64)
    type.type = HD_F32;
  fuzz_value_t *v =
      value->constant || !fuzz_once_in(g, 2) ? NULL : find(g, &type);
  if (v)
    return v;
  hd_host_tensor_t *data =
      hd_host_tensor_make(&g->arena, type.type, type.shape, type.rank);
  for (int64_t i = 0; i < drawn->count; i++)
    if (fuzz_is_float(type.type))
      hd_host_tensor_set(data, i, hd_host_tensor_get(drawn, i));
    else
      hd_host_tensor_set_int(data, i, hd_host_tensor_get_int(drawn, i));
  return fuzz_leaf_of(g, data, value->constant);
}

static bool put(fuzz_graph_t *g, const hd_instance_t *n,
                const hd_rule_node_t *node, fuzz_value_t **values) {
  fuzz_value_t *inputs[FUZZ_MAX_INPUTS];
  for (uint32_t i = 0; i < node->num_inputs; i++)
    inputs[i] = values[node->inputs[i]->index];
  if (!node->task) {
    const hd_rule_value_t *to = node->outputs[0];
    hd_tensor_type_t type = hd_tensor_type_of(n->left[to->index]);
    type.type = inputs[0]->data->type;
    values[to->index] = fuzz_reshape(g, inputs[0], &type);
    return true;
  }
  hd_attribute_list_t attributes = {0};
  if (!hd_rule_attributes(node, n->binding, HD_PRECISION_MODEL, &g->arena,
                          &attributes))
    return false;
  unsigned wanted = 0;
  for (uint32_t i = 0; i < node->num_outputs; i++)
    wanted |= node->outputs[i] ? 1u << i : 0;
  fuzz_node_t *made =
      fuzz_node(g, node->op, inputs, node->num_inputs, attributes.data,
                (uint32_t)attributes.size, wanted);
  for (uint32_t i = 0; made && i < node->num_outputs; i++)
    if (node->outputs[i])
      values[node->outputs[i]->index] = made->outputs[i];
  return made != NULL;
}

static void put_all(fuzz_graph_t *g, const hd_instance_t *n) {
  fuzz_value_t **values =
      HD_ARENA_ARRAY(&g->arena, fuzz_value_t *, n->rule->values.size + 1);
  bool single = !fuzz_once_in(g, 3);
  for (size_t i = 0; i < n->rule->values.size; i++)
    if (n->rule->values.data[i]->operand)
      values[i] = operand(g, n->rule->values.data[i], n->left[i], single);
  for (size_t i = 0; i < n->rule->left.size; i++)
    if (!put(g, n, n->rule->left.data[i], values))
      return;
}

void fuzz_pattern(fuzz_graph_t *g) {
  hd_rewrites_t rules = {0};
  if (!hd_rewrites_find(g->context, NULL, &g->arena, &rules) || !rules.size)
    return;
  const hd_rewrite_t *rule = rules.data[fuzz_in(g, 0, (int64_t)rules.size - 1)];
  hd_random_t random = {random_bits(&g->random)};
  for (int tries = 0; tries < 8; tries++) {
    hd_instance_t n;
    bool drawn = hd_instance_draw(&n, g->context, &g->arena, rule, &random,
                                  (hd_draw_t){HD_DRAW_ORDINARY, 0, 0});
    hd_diagnostics_clear(&g->context->diags);
    if (drawn)
      put_all(g, &n);
    hd_instance_end(&n);
    if (drawn)
      return;
  }
}
