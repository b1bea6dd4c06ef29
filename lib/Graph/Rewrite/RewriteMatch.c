// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the left side of a rule. It begins with the node that stands last there
// and goes on to nodes that give or use what has been met, in an order that is
// made once for a rule. Where there is a choice (operands that may be swapped,
// several users of a value) each is tried. What fits so far is bound by the
// binder of tasks, which knows sizes, packs and conditions.
#include "Graph/Rewrite/RewriteState.h"
#include "IR/Graph/Loop.h"

#include <string.h>

// --- Rules ---

const void *hd_rw_node_key(const hd_node_t *node) {
  static const char reshape;
  if (node->group || node->schedule || node->pin ||
      (node->op && hd_node_is_loop(node)))
    return node; // What has its kernel, or several, stays as it is.
  return node->task ? (const void *)node->task : &reshape;
}

const void *hd_rule_key(const hd_rule_t *rule) {
  const hd_rule_node_t *first = rule->steps[0].node;
  return hd_rw_node_key(&(hd_node_t){.task = first->task});
}

static void read_by(const hd_rewrite_t *rewrite, const hd_term_t *term,
                    bool *is_read) {
  if (term->kind == HD_TERM_LOAD)
    is_read[hd_rewrite_typed(rewrite, term->u.value)->index] = true;
  for (unsigned i = 0; i < term->num_operands; i++)
    read_by(rewrite, term->operands[i], is_read);
}

static void find_read(const hd_rewrite_t *rewrite, bool *is_read) {
  for (size_t i = 0; i < rewrite->signature->conditions.size; i++)
    read_by(rewrite, rewrite->signature->conditions.data[i], is_read);
  for (size_t i = 0; i < rewrite->right.size; i++)
    for (uint32_t n = 0; n < rewrite->right.data[i]->num_attributes; n++) {
      const hd_rule_attribute_t *a = rewrite->right.data[i]->attributes[n];
      if (a->term)
        read_by(rewrite, a->term, is_read);
      for (uint32_t t = 0; t < a->count; t++)
        read_by(rewrite, a->terms[t], is_read);
    }
}

static bool is_inner(const hd_rewrite_t *rewrite, const hd_rule_value_t *v) {
  for (size_t i = 0; i < rewrite->right.size; i++)
    if (hd_rule_node_reads(rewrite->right.data[i], v))
      return false;
  return v->left && !v->right;
}

// How a node that has not been placed is reached from values that were met.
static bool reach(const hd_rule_node_t *node, const bool *met,
                  hd_rule_step_t *step) {
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (node->outputs[i] && met[node->outputs[i]->index]) {
      *step = (hd_rule_step_t){node, node->outputs[i], true, false};
      return true;
    }
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (met[node->inputs[i]->index]) {
      *step = (hd_rule_step_t){node, node->inputs[i], false, false};
      return true;
    }
  return false;
}

static void meet(const hd_rule_node_t *node, bool *met) {
  for (uint32_t i = 0; i < node->num_inputs; i++)
    met[node->inputs[i]->index] = true;
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (node->outputs[i])
      met[node->outputs[i]->index] = true;
}

static void order_steps(hd_rule_t *rule, bool *met, bool *placed) {
  const hd_rewrite_t *r = rule->rewrite;
  size_t count = r->left.size;
  rule->steps[0] = (hd_rule_step_t){.node = r->left.data[count - 1]};
  rule->num_steps = 1;
  placed[count - 1] = true;
  meet(r->left.data[count - 1], met);
  while (rule->num_steps < count) {
    size_t best = count;
    hd_rule_step_t *step = &rule->steps[rule->num_steps], found;
    for (size_t i = count; i-- > 0;)
      // What gives a value is one node; users may be many.
      if (!placed[i] && reach(r->left.data[i], met, &found) &&
          (best == count || (found.defines && !step->defines))) {
        best = i;
        *step = found;
      }
    placed[best] = true;
    meet(r->left.data[best], met);
    rule->num_steps++;
  }
}

static bool is_load_of(const hd_term_t *term, const hd_task_value_t *value) {
  return term->kind == HD_TERM_LOAD && term->u.value == value;
}

// y[..i] = a[..i] * b[..i], where both are indexed alike.
static bool is_commutative(const hd_task_t *task) {
  static const hd_expr_kind_t ops[] = {
      HD_EXPR_ADD, HD_EXPR_MUL,    HD_EXPR_AND,   HD_EXPR_OR,    HD_EXPR_EQ,
      HD_EXPR_NE,  HD_EXPR_BITAND, HD_EXPR_BITOR, HD_EXPR_BITXOR};
  if (!task || task->inputs.size != 2 || task->definitions.size != 1)
    return false;
  const hd_definition_t *d = task->definitions.data[0];
  const hd_task_value_t *a = task->inputs.data[0], *b = task->inputs.data[1];
  if (d->kind != HD_DEFINE || d->term->kind != HD_TERM_OPERATOR ||
      d->term->num_operands != 2 || a->rank != b->rank ||
      !hd_task_type_equal(a->type, b->type) ||
      !is_load_of(d->term->operands[0], a) ||
      !is_load_of(d->term->operands[1], b))
    return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (a->shape[i]->kind != HD_TERM_PACK ||
        b->shape[i]->kind != HD_TERM_PACK ||
        !hd_term_equal(d->term->operands[0]->operands[i],
                       d->term->operands[1]->operands[i]))
      return false;
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
    if (d->term->u.op == ops[i])
      return true;
  return false;
}

hd_rule_t *hd_rule_make(hd_arena_t *arena, const hd_rewrite_t *rewrite) {
  hd_rule_t *rule = HD_ARENA_NEW(arena, hd_rule_t);
  size_t values = rewrite->values.size, nodes = rewrite->left.size;
  rule->rewrite = rewrite;
  rule->steps = HD_ARENA_ARRAY(arena, hd_rule_step_t, nodes);
  rule->is_read = HD_ARENA_ARRAY(arena, bool, values);
  rule->is_inner = HD_ARENA_ARRAY(arena, bool, values);
  rule->values = HD_ARENA_ARRAY(arena, hd_rw_value_t *, values);
  rule->nodes = HD_ARENA_ARRAY(arena, hd_rw_node_t *, nodes);
  rule->met = HD_ARENA_ARRAY(arena, uint32_t, values);
  find_read(rewrite, rule->is_read);
  for (size_t i = 0; i < values; i++)
    rule->is_inner[i] = is_inner(rewrite, rewrite->values.data[i]);
  for (size_t i = 0; i < rewrite->signature->inputs.size; i++)
    rule->num_tensors +=
        rewrite->signature->inputs.data[i]->kind == HD_VALUE_INPUT;
  order_steps(rule, HD_ARENA_ARRAY(arena, bool, values),
              HD_ARENA_ARRAY(arena, bool, nodes));
  for (uint32_t i = 0; i < rule->num_steps; i++) {
    const hd_rule_node_t *node = rule->steps[i].node;
    rule->steps[i].swaps =
        is_commutative(node->task) && node->inputs[0] != node->inputs[1];
  }
  return rule;
}

// --- Nodes ---

static bool meet_value(hd_rw_match_t *m, const hd_rule_value_t *wanted,
                       hd_rw_value_t *value) {
  hd_rw_value_t **slot = &m->values[wanted->index];
  if (*slot)
    return *slot == value;
  if (wanted->constant && !value->constant)
    return false;
  if (m->rule->is_read[wanted->index] &&
      (hd_tensor_type_count(&value->type) != 1 ||
       !hd_rw_known(m->g, value, &m->failed)))
    return false;
  *slot = value;
  m->rule->met[m->num_met++] = wanted->index;
  return true;
}

static void forget_values(hd_rw_match_t *m, uint32_t num_met) {
  while (m->num_met > num_met)
    m->values[m->rule->met[--m->num_met]] = NULL;
}

static bool meet_values(hd_rw_match_t *m, const hd_rule_node_t *wanted,
                        const hd_rw_node_t *node, bool swapped) {
  for (uint32_t i = 0; i < wanted->num_outputs; i++) {
    hd_rw_value_t *output = node->outputs[i];
    bool is_used = output && (output->users.size || output->num_outputs);
    if (!wanted->outputs[i]
            ? is_used
            : !output || !meet_value(m, wanted->outputs[i], output))
      return false;
  }
  for (uint32_t i = 0; i < wanted->num_inputs; i++)
    if (!meet_value(m, wanted->inputs[swapped ? 1 - i : i], node->inputs[i]))
      return false;
  return true;
}

static bool match_step(hd_rw_match_t *m, uint32_t step);

static bool try_node(hd_rw_match_t *m, uint32_t step, hd_rw_node_t *node) {
  const hd_rule_node_t *wanted = m->rule->steps[step].node;
  uint32_t num_met = m->num_met;
  if (node->dead || wanted->num_inputs != node->node.num_inputs ||
      wanted->num_outputs != node->node.num_outputs ||
      hd_rw_node_key(&node->node) !=
          hd_rw_node_key(&(hd_node_t){.task = wanted->task}))
    return false;
  for (uint32_t i = 0; i < step; i++)
    if (m->nodes[i] == node)
      return false;
  bool swaps = m->rule->steps[step].swaps;
  m->nodes[step] = node;
  for (int swapped = 0; swapped <= swaps && !m->failed; swapped++) {
    if (meet_values(m, wanted, node, swapped) && match_step(m, step + 1))
      return true;
    forget_values(m, num_met);
  }
  return false;
}

// --- All of them ---

// What is gone is used by nobody else.
static bool inner_values_die(const hd_rw_match_t *m) {
  const hd_rule_t *rule = m->rule;
  for (size_t i = 0; i < rule->rewrite->values.size; i++) {
    const hd_rw_value_t *value = m->values[i];
    if (!rule->is_inner[i] || !value)
      continue;
    if (value->num_outputs)
      return false;
    for (size_t u = 0; u < value->users.size; u++) {
      bool met = false;
      for (uint32_t n = 0; n < rule->num_steps && !met; n++)
        met = m->nodes[n] == value->users.data[u];
      if (!met)
        return false;
    }
  }
  return true;
}

// Whether a value depends on what one of the nodes gives. What has a lower rank
// than all of them does not, nor does what it needs.
static bool depends(hd_rw_match_t *m, const hd_rw_value_t *value,
                    hd_ptr_map_t *seen) {
  HD_VEC(const hd_rw_node_t *) open = {0};
  uint32_t least = UINT32_MAX;
  for (uint32_t i = 0; i < m->rule->num_steps; i++)
    if (m->nodes[i]->rank < least)
      least = m->nodes[i]->rank;
  if (value->def)
    hd_vec_push(m->scratch, &open, (const hd_rw_node_t *)value->def);
  while (open.size) {
    const hd_rw_node_t *node = open.data[--open.size];
    for (uint32_t i = 0; i < m->rule->num_steps; i++)
      if (m->nodes[i] == node)
        return true;
    if (node->rank < least || hd_ptr_map_get(seen, node))
      continue;
    hd_ptr_map_set(m->scratch, seen, node, node);
    for (uint32_t i = 0; i < node->node.num_inputs; i++)
      if (node->inputs[i]->def)
        hd_vec_push(m->scratch, &open,
                    (const hd_rw_node_t *)node->inputs[i]->def);
  }
  return false;
}

static const hd_rule_node_t *gives_on_right(const hd_rule_value_t *value) {
  return value ? value->right : NULL;
}

static uint32_t count_roots(const hd_rewrite_t *r) {
  uint32_t roots = 0;
  for (size_t i = 0; i < r->left.size; i++)
    for (uint32_t n = 0; n < r->left.data[i]->num_outputs; n++)
      roots += gives_on_right(r->left.data[i]->outputs[n]) != NULL;
  return roots;
}

static bool is_used_by_all_ends(const hd_rewrite_t *r,
                                const hd_rule_value_t *operand) {
  for (size_t i = 0; i < r->left.size; i++)
    if (!hd_rule_node_reads(r->left.data[i], operand))
      return false;
  return true;
}

// With several results, an operand may come from another one: then no order of
// the right side's nodes exists. One that every node uses cannot.
static bool is_acyclic(hd_rw_match_t *m) {
  const hd_rewrite_t *r = m->rule->rewrite;
  hd_ptr_map_t seen = {0};
  if (count_roots(r) < 2)
    return true;
  for (size_t i = 0; i < r->values.size; i++) {
    const hd_rule_value_t *value = r->values.data[i];
    if (value->operand && !is_used_by_all_ends(r, value) &&
        depends(m, m->values[i], &seen))
      return false;
  }
  return true;
}

static bool bind(hd_rw_match_t *m) {
  const hd_rewrite_t *r = m->rule->rewrite;
  hd_attribute_list_t list = {0};
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(m->scratch, hd_tensor_type_t, m->rule->num_tensors + 1);
  const hd_host_tensor_t **known = HD_ARENA_ARRAY(
      m->scratch, const hd_host_tensor_t *, m->rule->num_tensors + 1);
  uint32_t count = 0;
  for (uint32_t i = 0; i < m->rule->num_steps; i++)
    if (!hd_rule_collect(m->rule->steps[i].node, m->nodes[i]->node.attributes,
                         m->nodes[i]->node.num_attributes, m->scratch, &list))
      return false;
  for (size_t i = 0; i < r->signature->inputs.size; i++) {
    const hd_rule_value_t *value =
        hd_rewrite_typed(r, r->signature->inputs.data[i]);
    if (!value)
      continue;
    types[count] = m->values[value->index]->type;
    if (m->rule->is_read[value->index])
      known[count] = m->values[value->index]->known;
    count++;
  }
  m->binding =
      hd_task_try_bind(m->g->module->context, m->scratch, r->signature, types,
                       known, count, list.data, (uint32_t)list.size);
  for (uint32_t i = 0; m->binding && i < m->rule->num_steps; i++)
    if (!hd_rule_check(m->rule->steps[i].node, m->nodes[i]->node.attributes,
                       m->nodes[i]->node.num_attributes, m->binding,
                       m->scratch))
      return false;
  return m->binding != NULL;
}

static bool match_step(hd_rw_match_t *m, uint32_t step) {
  if (step == m->rule->num_steps)
    return inner_values_die(m) && hd_rw_are_apart(m) && bind(m) &&
           is_acyclic(m) && hd_rw_plan(m);
  const hd_rule_step_t *s = &m->rule->steps[step];
  hd_rw_value_t *from = m->values[s->from->index];
  if (s->defines)
    return from->def && try_node(m, step, from->def);
  for (size_t i = 0; i < from->users.size && !m->failed; i++)
    if (try_node(m, step, from->users.data[i]))
      return true;
  return false;
}

bool hd_rw_match(hd_rw_match_t *m, hd_rw_node_t *root) {
  m->values = m->rule->values;
  m->nodes = m->rule->nodes;
  memset(m->values, 0, m->rule->rewrite->values.size * sizeof *m->values);
  return try_node(m, 0, root) && !m->failed;
}
