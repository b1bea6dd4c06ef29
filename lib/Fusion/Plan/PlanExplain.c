// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --explain: which kernels a group or a node has become, in the order in which
// they run. Nodes that are alike have one schedule, which was made, and
// explained, at the first of them.
#include "Fusion/Plan/PlanState.h"

// The names of kernels launched from a statement on.
static const char *kernels_from(const hd_planner_t *p, uint32_t first) {
  const char *names = "";
  for (uint32_t i = first; i < p->body.size; i++) {
    const hd_stmt_t *stmt = p->body.data[i];
    if (stmt->kind == HD_STMT_LAUNCH)
      names = hd_arena_printf(p->arena, "%s%s%s", names, *names ? ", " : "",
                              stmt->u.launch.kernel->name);
  }
  return names;
}

void hd_planner_explain(const hd_planner_t *p, const hd_node_t *const *nodes,
                        size_t count, uint32_t first) {
  const char *names = kernels_from(p, first);
  if (!*names)
    return; // Views and reshapes.
  const hd_node_t *named = nodes[count - 1];
  for (size_t i = 0; i < count; i++)
    if (nodes[i]->anchor)
      named = nodes[i];
  const char *more =
      count > 1 ? hd_arena_printf(p->arena, " and %zu more", count - 1) : "";
  hd_diagnostics_t *diags = &p->module->context->diags;
  hd_remark(diags, named->loc, "plan: %s '%s'%s: %s", named->op,
            hd_node_label(named), more, names);
  if (named->schedule && named->schedule->loc.offset != named->loc.offset)
    hd_note(diags, named->schedule->loc, "its schedule was made for this one");
}
