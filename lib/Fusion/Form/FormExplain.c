// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --explain: of each pair of neighbours, whether they are one kernel, or what
// kept them apart. That is what was said when they were tried, or that they
// were not, because one of them was in a kernel already.
#include "Fusion/Form/FormState.h"
#include "IR/Graph/Loop.h"

static const char *kernel_of(hd_former_t *f, uint32_t node) {
  const hd_forming_t *group = &f->groups.data[f->nodes[node].group];
  const hd_node_t *anchor = f->nodes[group->anchor].node;
  return hd_arena_printf(f->arena, "the kernel of %s '%s'", anchor->op,
                         hd_node_label(anchor));
}

static bool share_group(const hd_former_t *f, uint32_t a, uint32_t b) {
  if (f->nodes[a].group && f->nodes[a].group == f->nodes[b].group)
    return true;
  return f->nodes[a].is_prologue && f->nodes[b].group;
}

// What a group said to a node that would have followed it.
static const char *no_epilogue(const hd_formed_t *node, uint32_t group) {
  for (size_t i = 0; i < node->no_epilogue.size; i++)
    if (node->no_epilogue.data[i].group == group)
      return node->no_epilogue.data[i].why;
  return NULL;
}

// The node would have had to go into the kernels of all that read it.
static const char *no_prologue(hd_former_t *f, uint32_t giver, uint32_t user) {
  const hd_refusal_t *no = &f->nodes[giver].no_prologue;
  if (!no->group || no->group == f->nodes[user].group)
    return no->why;
  return hd_arena_printf(f->arena, "%s reads it, too: %s",
                         kernel_of(f, f->groups.data[no->group].anchor),
                         no->why);
}

static const char *reason(hd_former_t *f, uint32_t giver, uint32_t user) {
  const hd_formed_t *a = &f->nodes[giver], *b = &f->nodes[user];
  const hd_forming_t *group = &f->groups.data[a->group];
  if (b->is_view || a->is_view)
    return b->is_view ? b->why : a->why;
  if (hd_node_is_loop(a->node) || hd_node_is_loop(b->node))
    return "a loop is launches of its own";
  if (!a->node->task || !b->node->task)
    return "a reshape moves nothing";
  if (a->why && b->why)
    return hd_arena_printf(
        f->arena, "neither is pointwise: of %s, %s; of %s, %s",
        hd_node_label(a->node), a->why, hd_node_label(b->node), b->why);
  if (group->is_fixed || f->groups.data[b->group].is_fixed)
    return "the graph says itself which nodes belong together";
  const char *refused = b->why ? NULL : no_epilogue(b, a->group);
  if (refused)
    return refused;
  if (a->no_prologue.why)
    return no_prologue(f, giver, user);
  if (!b->why && group->closed)
    return hd_arena_printf(f->arena, "of %s, %s", hd_node_label(a->node),
                           group->closed);
  return b->why
             ? hd_arena_printf(f->arena, "of %s, %s; and %s is in %s already",
                               hd_node_label(b->node), b->why,
                               hd_node_label(a->node), kernel_of(f, giver))
             : hd_arena_printf(f->arena, "%s is in %s already",
                               hd_node_label(b->node), kernel_of(f, user));
}

void hd_former_explain(hd_former_t *f) {
  for (uint32_t i = 0; i < f->graph->nodes.size; i++) {
    const hd_node_t *user = f->nodes[i].node;
    for (uint32_t k = 0; k < user->num_inputs; k++) {
      int64_t giver =
          user->inputs[k] ? hd_former_uses(f, user->inputs[k])->giver : -1;
      if (giver < 0)
        continue;
      const hd_node_t *from = f->nodes[giver].node;
      bool one = share_group(f, (uint32_t)giver, i);
      hd_remark(&f->module->context->diags, user->loc,
                "fuse: %s '%s' and %s '%s': %s%s", from->op,
                hd_node_label(from), user->op, hd_node_label(user),
                one ? "one kernel" : "two kernels: ",
                one ? "" : reason(f, (uint32_t)giver, i));
    }
  }
}
