// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether two results meet again element by element, as the two products of a
// gated layer do: silu(x W) * (x V). Such products stay two, for what they meet
// in is computed where the second one is; of one product it would be a kernel.
#include "Graph/Rewrite/RewriteState.h"

enum { MAX_WALKED = 32 }; // Nodes behind a result.

static bool reduces(const hd_term_t *term) {
  if (term->kind == HD_TERM_REDUCE || term->kind == HD_TERM_SCAN)
    return true;
  for (unsigned i = 0; i < term->num_operands; i++)
    if (reduces(term->operands[i]))
      return true;
  return false;
}

// Whether each element comes of those at its place, or may: the shape stays,
// and nothing is summed up. A reshape keeps elements in their order.
static bool is_by_element(const hd_rw_node_t *node, const hd_rw_value_t *from) {
  const hd_task_t *task = node->node.task;
  if (hd_node_is_reshape(&node->node) && node->outputs[0])
    return true;
  if (!task || node->node.num_outputs != 1 || !node->outputs[0] ||
      node->outputs[0]->type.rank != from->type.rank)
    return false;
  for (unsigned i = 0; i < from->type.rank; i++)
    if (node->outputs[0]->type.shape[i] != from->type.shape[i])
      return false;
  for (size_t i = 0; i < task->definitions.size; i++)
    if (task->definitions.data[i]->kind != HD_DEFINE ||
        reduces(task->definitions.data[i]->term))
      return false;
  return true;
}

// Marks what is computed of a value element by element; whether that meets what
// is marked as met.
static bool walk(hd_rw_match_t *m, const hd_rw_value_t *value,
                 hd_ptr_map_t *met, hd_ptr_map_t *marked) {
  HD_VEC(const hd_rw_value_t *) open = {0};
  hd_vec_push(m->scratch, &open, value);
  for (size_t i = 0; i < open.size && i < MAX_WALKED; i++)
    for (size_t u = 0; u < open.data[i]->users.size; u++) {
      const hd_rw_node_t *node = open.data[i]->users.data[u];
      if (hd_ptr_map_get(marked, node) || !is_by_element(node, open.data[i]))
        continue;
      if (hd_ptr_map_get(met, node))
        return true;
      hd_ptr_map_set(m->scratch, marked, node, node);
      hd_vec_push(m->scratch, &open, (const hd_rw_value_t *)node->outputs[0]);
    }
  return false;
}

bool hd_rw_are_apart(hd_rw_match_t *m) {
  const hd_rule_value_t *const *apart = m->rule->rewrite->apart;
  hd_ptr_map_t first = {0}, second = {0}, none = {0};
  if (!apart[0])
    return true;
  walk(m, m->values[apart[0]->index], &none, &first);
  return !walk(m, m->values[apart[1]->index], &first, &second);
}
