// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computes nodes, a strip at a time, and only where something moved.
#include "Graph/Reference/ReferenceState.h"

#include <string.h>

// Work, in lanes, until the budget is asked; it asks a clock.
enum { STEPS = 4096 };

void hd_ref_check_budget(hd_ref_t *r) {
  if (r->steps-- > 0)
    return;
  r->steps = STEPS;
  hd_budget_check(&r->context->budget);
}

void hd_ref_move(hd_ref_t *r, unsigned level, int64_t at) {
  r->levels[level].at = at;
  r->levels[level].moved = ++r->clock;
}

int64_t hd_ref_affine_at(const hd_ref_t *r, const hd_ref_affine_t *affine,
                         int64_t *step) {
  int64_t sum = affine->base;
  *step = 0;
  for (unsigned i = 0; i < affine->count; i++) {
    sum += affine->terms[i].by * r->levels[affine->terms[i].level].at;
    if ((int)affine->terms[i].level == r->lane_level)
      *step = affine->terms[i].by;
  }
  return sum;
}

hd_ref_lanes_t hd_ref_out(hd_ref_t *r, hd_ref_node_t *node) {
  if (!node->out.any)
    node->out.any =
        hd_arena_alloc(r->arena, hd_ref_element((hd_ref_form_t)node->form) *
                                     (node->varies ? HD_REF_LANES : 1));
  return node->out;
}

static bool is_current(const hd_ref_t *r, const hd_ref_node_t *node) {
  if (node->computed == 0)
    return false;
  for (uint64_t deps = node->deps; deps; deps &= deps - 1)
    if (r->levels[__builtin_ctzll(deps)].moved > node->computed)
      return false;
  return true;
}

static void copy_lanes(hd_ref_node_t *node, const hd_ref_node_t *from,
                       int count) {
  hd_ref_form_t form = (hd_ref_form_t)node->form;
  if (from->varies || !node->varies)
    memcpy(node->out.any, from->out.any, (size_t)count * hd_ref_element(form));
  else
    hd_ref_fill(form, count, node->out, from->out);
}

// Both sides are computed, each lane takes one.
static void merge(hd_ref_node_t *node, int count) {
  const hd_ref_node_t *c = node->operands[0], *a = node->operands[1],
                      *b = node->operands[2];
  int as = a->varies, bs = b->varies;
  if (node->form == HD_REF_FLOAT) {
    for (int i = 0; i < count; i++)
      node->out.f[i] = c->out.i[i] ? a->out.f[i * as] : b->out.f[i * bs];
  } else {
    for (int i = 0; i < count; i++)
      node->out.i[i] = c->out.i[i] ? a->out.i[i * as] : b->out.i[i * bs];
  }
}

// Only what is needed is computed, unless it costs less than to ask.
static bool run_select(hd_ref_t *r, hd_ref_node_t *node, const uint8_t *mask) {
  hd_ref_node_t *c = node->operands[0], *a = node->operands[1],
                *b = node->operands[2];
  int count = hd_ref_count(r, node);
  if (!hd_ref_run(r, c, mask))
    return false;
  if (!c->varies) {
    hd_ref_node_t *taken = c->out.i[0] ? a : b;
    if (!hd_ref_run(r, taken, mask))
      return false;
    copy_lanes(node, taken, count);
    return true;
  }
  if (a->simple && b->simple) {
    if (!hd_ref_run(r, a, NULL) || !hd_ref_run(r, b, NULL))
      return false;
    merge(node, count);
    return true;
  }
  if (!node->u.masks)
    node->u.masks = hd_arena_alloc(r->arena, 2 * HD_REF_LANES);
  uint8_t *yes = node->u.masks, *no = yes + HD_REF_LANES;
  int num_yes = 0, num_no = 0;
  for (int i = 0; i < count; i++) {
    bool wanted = !mask || mask[i];
    num_yes += yes[i] = wanted && c->out.i[i];
    num_no += no[i] = wanted && !c->out.i[i];
  }
  if ((num_yes && !hd_ref_run(r, a, num_yes == count ? NULL : yes)) ||
      (num_no && !hd_ref_run(r, b, num_no == count ? NULL : no)))
    return false;
  hd_ref_out(r, a); // There, if not computed.
  hd_ref_out(r, b);
  merge(node, count);
  return true;
}

static bool run_operands(hd_ref_t *r, hd_ref_node_t *node,
                         const uint8_t *mask) {
  for (unsigned i = 0; i < node->num_operands; i++)
    if (!hd_ref_run(r, node->operands[i], mask))
      return false;
  return true;
}

static void run_affine(hd_ref_t *r, hd_ref_node_t *node, int count) {
  int64_t step, at = hd_ref_affine_at(r, node->affine, &step);
  for (int i = 0; i < count; i++)
    node->out.i[i] = at + i * step;
}

static bool run_operator(hd_ref_t *r, hd_ref_node_t *node,
                         const uint8_t *mask) {
  if (!run_operands(r, node, mask))
    return false;
  const hd_ref_node_t *a = node->operands[0];
  const hd_ref_node_t *b = node->num_operands > 1 ? node->operands[1] : a;
  hd_ref_operate(node->u.op, node->type, node->from, hd_ref_count(r, node),
                 node->out, a->out, a->varies, b->out, b->varies);
  return true;
}

static bool run_function(hd_ref_t *r, hd_ref_node_t *node,
                         const uint8_t *mask) {
  if (!run_operands(r, node, mask))
    return false;
  hd_ref_lanes_t args[3] = {{0}};
  bool varies[3] = {false};
  for (unsigned i = 0; i < node->num_operands; i++) {
    args[i] = node->operands[i]->out;
    varies[i] = node->operands[i]->varies;
  }
  hd_ref_call(node->u.function, node->type, hd_ref_count(r, node), node->out,
              args, varies);
  return true;
}

static bool run_node(hd_ref_t *r, hd_ref_node_t *node, const uint8_t *mask) {
  switch ((hd_term_kind_t)node->kind) {
  case HD_TERM_CONST:
    hd_ref_set((hd_ref_form_t)node->form, node->out, node->u.number);
    return true;
  case HD_TERM_INDEX:
    run_affine(r, node, hd_ref_count(r, node));
    return true;
  case HD_TERM_OPERATOR:
    return run_operator(r, node, mask);
  case HD_TERM_SELECT:
    return run_select(r, node, mask);
  case HD_TERM_CAST:
    if (!run_operands(r, node, mask))
      return false;
    hd_ref_convert(node->type, node->from, hd_ref_count(r, node), node->out,
                   node->operands[0]->out);
    return true;
  case HD_TERM_BITCAST:
    if (!run_operands(r, node, mask))
      return false;
    hd_ref_bitcast(node->type, node->from, hd_ref_count(r, node), node->out,
                   node->operands[0]->out);
    return true;
  case HD_TERM_FUNCTION:
    return run_function(r, node, mask);
  case HD_TERM_LOAD:
  case HD_TERM_LOADELSE:
    return hd_ref_load(r, node, mask);
  case HD_TERM_REDUCE:
    return hd_ref_reduce(r, node, mask);
  case HD_TERM_SCAN:
    return hd_ref_scan(r, node, mask);
  case HD_TERM_BOUND: // Whoever binds it says where its value lies.
  case HD_TERM_LIMIT:
  case HD_TERM_SIZE:
  case HD_TERM_PACK:
  case HD_TERM_BROADCAST:
  case HD_TERM_PERMUTE:
  case HD_TERM_ATTRIBUTE: // Constants by now.
  case HD_TERM_COUNT:
    break;
  }
  return true;
}

bool hd_ref_run(hd_ref_t *r, hd_ref_node_t *node, const uint8_t *mask) {
  if (node->kind == HD_TERM_BOUND || is_current(r, node))
    return true;
  if (!node->varies)
    mask = NULL;
  hd_ref_out(r, node);
  // What is computed takes what its operands depend on as it stands now.
  uint64_t now = r->clock;
  if (node->affine)
    run_affine(r, node, hd_ref_count(r, node));
  else if (!run_node(r, node, mask))
    return false;
  node->computed = mask ? 0 : now;
  return true;
}
