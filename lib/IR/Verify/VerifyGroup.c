// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Groups of nodes, and the schedules that nodes have. That nothing outside a
// group lies between its nodes follows from their standing together, as each
// node stands after those whose results it uses.
#include "IR/Verify/GraphVerifier.h"

static void fault(hd_graph_verifier_t *g, const hd_node_t *node,
                  const char *what) {
  hd_error(g->v.diags, node->loc, HD_E0315, what);
  g->v.errors++;
}

static void verify_member(hd_graph_verifier_t *g, const hd_node_t *node) {
  if (node->anchor && !node->group)
    fault(g, node, "an anchor stands outside");
  if (node->anchor && hd_node_is_reshape(node))
    fault(g, node, "a reshape is no anchor");
  if (node->group && node->domain)
    fault(g, node,
          hd_arena_printf(&g->v.arena, "'%s%d.%s' is no task", node->domain,
                          node->version, node->op));
}

static void verify_schedule(hd_graph_verifier_t *g, const hd_node_t *node) {
  const hd_func_t *func = node->schedule;
  const hd_expr_t **sizes =
      HD_ARENA_ARRAY(&g->v.arena, const hd_expr_t *, func->num_params + 1);
  const char *why = hd_node_bind_schedule(&g->v.arena, node, sizes);
  if (!why)
    return;
  hd_error(g->v.diags, node->loc, HD_E0316, func->name, node->op, why);
  g->v.errors++;
}

void hd_verify_groups(hd_graph_verifier_t *g) {
  const hd_graph_t *graph = g->graph;
  uint32_t last = 0; // The largest number so far.
  for (size_t i = 0; i < graph->nodes.size;) {
    const hd_node_t *first = graph->nodes.data[i];
    bool anchored = first->group == 0;
    if (first->group && first->group <= last)
      fault(g, first,
            hd_arena_printf(&g->v.arena,
                            "the nodes of number %u do not stand together, or "
                            "come after a larger one's",
                            first->group));
    last = first->group > last ? first->group : last;
    for (; i < graph->nodes.size; i++) {
      const hd_node_t *node = graph->nodes.data[i];
      if (node->group != first->group)
        break;
      verify_member(g, node);
      if (node->schedule)
        verify_schedule(g, node);
      anchored |= node->anchor;
    }
    if (!anchored)
      fault(g, first, "it has no anchor");
  }
}
