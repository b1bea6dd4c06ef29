// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules with lists of operands: how many operands each list has, so that the
// nodes around a node may be the left side. The rule is walked as it is for one
// of each list, where a list is one entry among a node's operands; a node that
// has a list with an unknown number is divided in every way.
#include "Graph/Rewrite/RewriteState.h"

#include <string.h>

typedef struct walk {
  const hd_rule_t *rule;
  hd_rw_lists_fn_t *use;
  void *argument;
  // By value, of lists the first; NULL: not met, or of an empty list.
  hd_rw_value_t **values;
  uint32_t counts[HD_MAX_LISTS];
  bool is_counted[HD_MAX_LISTS];
} walk_t;

static bool walk_step(walk_t *w, uint32_t step);

static bool keep_operands(const hd_rule_nodes_t *nodes,
                          const uint32_t *counts) {
  for (size_t i = 0; i < nodes->size; i++) {
    const hd_rule_node_t *node = nodes->data[i];
    uint32_t count = 0;
    for (uint32_t n = 0; n < node->num_inputs; n++)
      count += node->inputs[n]->list ? counts[node->inputs[n]->list - 1] : 1;
    if (node->num_inputs && !count)
      return false;
  }
  return true;
}

bool hd_rewrite_keeps_operands(const hd_rewrite_t *rewrite,
                               const uint32_t *counts) {
  return keep_operands(&rewrite->left, counts) &&
         keep_operands(&rewrite->right, counts);
}

// From an entry of the pattern's operands, and from an operand of the node on.
static bool divide(walk_t *w, uint32_t step, const hd_rw_node_t *node,
                   uint32_t entry, uint32_t at) {
  const hd_rule_node_t *wanted = w->rule->steps[step].node;
  uint32_t left = node->node.num_inputs - at;
  if (entry == wanted->num_inputs)
    return left == 0 && walk_step(w, step + 1);
  const hd_rule_value_t *value = wanted->inputs[entry];
  hd_rw_value_t **slot = &w->values[value->index], *was = *slot;
  bool done = false;
  if (!value->list) {
    if (!left || (was && was != node->inputs[at]))
      return false;
    *slot = node->inputs[at];
    done = divide(w, step, node, entry + 1, at + 1);
    *slot = was;
    return done;
  }
  uint32_t *count = &w->counts[value->list - 1];
  bool *is_counted = &w->is_counted[value->list - 1];
  if (*is_counted)
    return *count <= left && (!*count || was == node->inputs[at]) &&
           divide(w, step, node, entry + 1, at + *count);
  *is_counted = true;
  for (uint32_t n = 0; n <= left && n <= HD_MAX_LISTED && !done; n++) {
    *count = n;
    *slot = n ? node->inputs[at] : NULL;
    done = divide(w, step, node, entry + 1, at + n);
  }
  *is_counted = false;
  *slot = was;
  return done;
}

static bool may_be(const hd_rule_node_t *wanted, const hd_rw_node_t *node) {
  return !node->dead && wanted->num_outputs == node->node.num_outputs &&
         (hd_rw_node_key(&node->node) ==
              hd_rw_node_key(&(hd_node_t){.task = wanted->task}) ||
          (!node->node.group && !node->node.schedule && !node->node.pin &&
           wanted->task &&
           hd_task_is_same_item(node->node.task, wanted->task)));
}

static bool try_node(walk_t *w, uint32_t step, const hd_rw_node_t *node) {
  const hd_rule_node_t *wanted = w->rule->steps[step].node;
  if (!may_be(wanted, node))
    return false;
  for (uint32_t i = 0; i < wanted->num_outputs; i++)
    if (wanted->outputs[i])
      w->values[wanted->outputs[i]->index] = node->outputs[i];
  return divide(w, step, node, 0, 0);
}

static bool walk_step(walk_t *w, uint32_t step) {
  const hd_rewrite_t *rewrite = w->rule->rewrite;
  if (step == w->rule->num_steps)
    return hd_rewrite_keeps_operands(rewrite, w->counts) &&
           w->use(w->argument, w->counts);
  const hd_rule_step_t *s = &w->rule->steps[step];
  const hd_rw_value_t *from = w->values[s->from->index];
  if (!from || s->defines)
    return from && from->def && try_node(w, step, from->def);
  for (size_t i = 0; i < from->users.size; i++)
    if (try_node(w, step, from->users.data[i]))
      return true;
  return false;
}

bool hd_rw_walk_lists(const hd_rule_t *rule, hd_arena_t *scratch,
                      const hd_rw_node_t *root, hd_rw_lists_fn_t *use,
                      void *argument) {
  walk_t w = {.rule = rule, .use = use, .argument = argument};
  if (!may_be(rule->steps[0].node, root))
    return false;
  w.values =
      HD_ARENA_ARRAY(scratch, hd_rw_value_t *, rule->rewrite->values.size + 1);
  return try_node(&w, 0, root);
}
