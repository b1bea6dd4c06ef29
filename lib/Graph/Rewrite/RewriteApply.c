// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The right side of a rule in the place of the left: planned under the match's
// binding, then made.
#include "Graph/Rewrite/RewriteState.h"

#include <string.h>

static bool same_count(const hd_tensor_type_t *a, const hd_tensor_type_t *b) {
  return a->type == b->type &&
         hd_tensor_type_count(a) == hd_tensor_type_count(b);
}

// Of a reshape: as written, or that of the left side's value.
static bool plan_reshape(hd_rw_match_t *m, const hd_rule_value_t *value,
                         const hd_tensor_type_t *input,
                         hd_tensor_type_t *type) {
  if (value->left) {
    *type = m->values[value->index]->type;
    return same_count(type, input);
  }
  *type = hd_rule_written_type(m->binding, value);
  return same_count(type, input);
}

static bool plan_magnitudes(hd_rw_match_t *m, const hd_rule_value_t *value,
                            const hd_tensor_type_t *input,
                            hd_tensor_type_t *type) {
  *type = hd_rule_written_type(m->binding, value);
  bool fits = type->rank == input->rank;
  for (unsigned i = 0; fits && i < type->rank; i++)
    fits = type->shape[i] == 1 || type->shape[i] == input->shape[i];
  return fits;
}

// One number for all axes of a pack becomes a list, as graphs have it.
static void spread(const hd_task_binding_t *b, hd_arena_t *arena,
                   hd_attribute_list_t *list) {
  const hd_task_t *task = b->task;
  for (size_t i = 0; i < task->inputs.size; i++) {
    const hd_task_value_t *value = task->inputs.data[i];
    for (size_t n = 0; value->pack && n < list->size; n++) {
      const hd_attribute_t *a = list->data[n];
      if (strcmp(a->name, value->name) != 0 ||
          (a->kind != HD_ATTRIBUTE_INT && a->kind != HD_ATTRIBUTE_FLOAT))
        continue;
      const hd_bound_attribute_t *bound = &b->attributes[i];
      hd_attribute_t *all = HD_ARENA_NEW(arena, hd_attribute_t);
      size_t size = (bound->rank + 1) * sizeof(int64_t);
      void *values = hd_arena_alloc(arena, size);
      all->name = a->name;
      all->count = bound->rank;
      all->kind = bound->ints ? HD_ATTRIBUTE_INTS : HD_ATTRIBUTE_FLOATS;
      if (bound->rank)
        memcpy(values,
               bound->ints ? (const void *)bound->ints
                           : (const void *)bound->floats,
               bound->rank * sizeof(int64_t));
      if (bound->ints)
        all->u.ints = values;
      else
        all->u.floats = values;
      list->data[n] = all;
    }
  }
}

static bool plan_task(hd_rw_match_t *m, const hd_rule_node_t *node,
                      hd_node_t *made, const hd_tensor_type_t *inputs) {
  hd_attribute_list_t list = {0};
  if (!hd_rule_attributes(node, m->binding, m->g->precision, m->g->arena,
                          &list))
    return false;
  const hd_task_binding_t *b =
      hd_task_try_bind(m->g->module->context, m->scratch, node->task, inputs,
                       NULL, node->num_inputs, list.data, (uint32_t)list.size);
  if (!b)
    return false;
  if (node->required) {
    // Its one result has no name.
    *made = (hd_node_t){.op = node->op,
                        .task = node->task,
                        .loc = node->loc,
                        .num_inputs = node->num_inputs,
                        .num_attributes = (uint32_t)list.size,
                        .attributes = list.data};
    return hd_rw_require(m, node, made);
  }
  spread(b, m->g->arena, &list);
  m->made_types[made - m->made] = b->outputs;
  made->attributes = list.data;
  made->num_attributes = (uint32_t)list.size;
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (node->outputs[i])
      m->types[node->outputs[i]->index] = b->outputs[i];
  return true;
}

static bool plan_node(hd_rw_match_t *m, const hd_rule_node_t *node,
                      hd_node_t *made) {
  hd_tensor_type_t *inputs =
      HD_ARENA_ARRAY(m->scratch, hd_tensor_type_t, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    inputs[i] = m->types[node->inputs[i]->index];
  *made = (hd_node_t){.op = node->op,
                      .task = node->task,
                      .num_inputs = node->num_inputs,
                      .num_outputs = node->num_outputs};
  if (!node->op)
    m->types[node->outputs[0]->index] = inputs[0];
  else if (hd_rule_node_is_magnitudes(node)) {
    if (!plan_magnitudes(m, node->outputs[0], &inputs[0],
                         &m->types[node->outputs[0]->index]))
      return false;
  } else if (!node->task && !plan_reshape(m, node->outputs[0], &inputs[0],
                                          &m->types[node->outputs[0]->index]))
    return false;
  else if (node->task && !plan_task(m, node, made, inputs))
    return false;
  if (!node->task)
    m->made_types[made - m->made] = &m->types[node->outputs[0]->index];
  // What stays has its type.
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    const hd_rule_value_t *value = node->outputs[i];
    if (value && value->left &&
        !hd_tensor_type_equal(&m->types[value->index],
                              &m->values[value->index]->type))
      return false;
  }
  // A graph's output has one name: what has another keeps it.
  return node->op || hd_rw_can_replace(m->values[node->outputs[0]->index],
                                       m->values[node->inputs[0]->index]);
}

bool hd_rw_plan(hd_rw_match_t *m) {
  const hd_rewrite_t *r = m->rule->rewrite;
  m->types = HD_ARENA_ARRAY(m->scratch, hd_tensor_type_t, r->values.size + 1);
  m->made = HD_ARENA_ARRAY(m->scratch, hd_node_t, r->right.size + 1);
  m->made_types =
      HD_ARENA_ARRAY(m->scratch, const hd_tensor_type_t *, r->right.size + 1);
  for (size_t i = 0; i < r->values.size; i++)
    if (m->values[i])
      m->types[i] = m->values[i]->type;
  for (size_t i = 0; i < r->right.size; i++)
    if (!plan_node(m, r->right.data[i], &m->made[i]))
      return false;
  return true;
}

// --- Making it ---

static const hd_rw_value_t *given_by(const hd_rw_match_t *m,
                                     const hd_rule_node_t *node) {
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (node->outputs[i] && node->outputs[i]->left &&
        m->values[node->outputs[i]->index]->num_outputs)
      return m->values[node->outputs[i]->index];
  return NULL;
}

static hd_rw_value_t **make_node(hd_rw_match_t *m, const hd_rule_node_t *node,
                                 hd_node_t *made, hd_rw_value_t **now) {
  const hd_node_t *root = &m->nodes[0]->node;
  hd_rw_value_t **inputs =
      HD_ARENA_ARRAY(m->scratch, hd_rw_value_t *, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    inputs[i] = now[node->inputs[i]->index];
  if (!node->op)
    return inputs;
  made->label = root->label;
  made->loc = root->loc;
  const char *base = m->nodes[0]->outputs[0]->value->name;
  return hd_rw_put(m->g, made, inputs, m->made_types[made - m->made],
                   m->nodes[0], base, given_by(m, node));
}

bool hd_rw_apply(hd_rw_match_t *m, bool *changed) {
  const hd_rewrite_t *r = m->rule->rewrite;
  hd_rw_value_t **now =
      HD_ARENA_ARRAY(m->scratch, hd_rw_value_t *, r->values.size + 1);
  for (size_t i = 0; i < r->values.size; i++)
    now[i] = m->values[i];
  for (size_t i = 0; i < r->right.size; i++) {
    const hd_rule_node_t *node = r->right.data[i];
    if (node->required || hd_rule_node_is_magnitudes(node))
      continue;
    hd_rw_value_t **outputs = make_node(m, node, &m->made[i], now);
    if (!outputs)
      return false;
    for (uint32_t n = 0; n < node->num_outputs; n++)
      if (node->outputs[n])
        now[node->outputs[n]->index] = outputs[n];
  }
  *changed = false;
  for (size_t i = 0; i < r->values.size; i++)
    if (r->values.data[i]->left && now[i] != m->values[i] &&
        hd_rw_can_replace(m->values[i], now[i])) {
      *changed = true;
      hd_rw_replace(m->g, m->values[i], now[i]);
    }
  // What was made and is not used after all.
  for (size_t i = 0; i < r->values.size; i++)
    if (now[i] && now[i]->def)
      hd_rw_drop(m->g, now[i]->def);
  return true;
}
