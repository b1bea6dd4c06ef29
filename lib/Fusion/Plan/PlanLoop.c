// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops of graphs, as loops of the plan: the body's kernels are made once.
//
//   workspace h: f32[2 * 64]                  a state and what it will be, in
//   view h_in: f32[64] = h@[0]                turns
//   launch copy(h0, h_in)
//   for turn in i64(0)..steps {
//     view h1: f32[64] = h@[turn % 2 * 64]
//     view g: f32[64] = h@[(turn + 1) % 2 * 64]
//     view x: f32[32] = xs@[turn * 32]        what is scanned, and what is
//     view y: f32[64] = ys@[turn * 64]        stacked, where it lies
//     launch ...
//   }
//   view last: f32[64] = h@[steps % 2 * 64]
//
// Slices that do not begin at multiples of 16 bytes are copied; empty ones are
// views that nothing reads.
#include "Fusion/Plan/PlanState.h"
#include "IR/Graph/Loop.h"
#include "IR/Text/Parser.h"
#include "Schedule/Translate/Build.h"

#include <string.h>

enum { SLICE_BITS = 128 }; // What a tensor begins at a multiple of.

// From one tensor to another; from NULL: where the body has put the value.
typedef struct copy {
  const hd_value_t *like;
  const hd_var_t *from, *to;
} copy_t;

typedef struct loop_planner {
  hd_planner_t *outer;
  hd_planner_t body;
  const hd_node_t *node;
  hd_loop_t loop;
  const hd_var_t *turn;
  const hd_var_t **buffers; // Of the states.
  HD_VEC(copy_t) copies;    // After the body.
} loop_planner_t;

static hd_arena_t *arena_of(const loop_planner_t *l) { return l->outer->arena; }

static const hd_expr_t *number(const loop_planner_t *l, int64_t value) {
  return hd_expr_int(arena_of(l), hd_type(HD_I64), value);
}

static const hd_expr_t *op(const loop_planner_t *l, hd_expr_kind_t kind,
                           const hd_expr_t *x, int64_t y) {
  return hd_expr_binary(arena_of(l), kind, x, number(l, y));
}

static int64_t count_of(const hd_value_t *value) {
  hd_tensor_type_t type = hd_scheduled_type(value);
  int64_t count = 1;
  for (unsigned i = 0; i < type.rank; i++)
    count *= type.shape[i];
  return count;
}

// Elements from one state to the next.
static int64_t stride_of(const hd_value_t *state) {
  int64_t bits = hd_scalar_bits(state->type), count = count_of(state);
  int64_t unit = SLICE_BITS / bits;
  return (count + unit - 1) / unit * unit;
}

static bool is_aligned(const hd_value_t *slice) {
  return count_of(slice) * (int64_t)hd_scalar_bits(slice->type) % SLICE_BITS ==
         0;
}

// A tensor for a value, at an offset of another, which may be a view.
static const hd_var_t *view_of(hd_planner_t *p, const hd_value_t *value,
                               const hd_var_t *base, const hd_expr_t *offset) {
  const hd_expr_t *outer = hd_ptr_map_get(p->views, base);
  if (outer) {
    base = outer->u.var;
    offset = hd_expr_binary(
        p->arena, HD_EXPR_ADD, offset,
        hd_expr_cast(p->arena, hd_type(HD_I64), outer->operands[0]));
  }
  return hd_planner_view(p, value, base, offset);
}

// --- Copies of slices ---

// kernel take_f32_5_of_50(turn: i64, in from: f32[50], out to: f32[5])
static const hd_func_t *slice_kernel(const loop_planner_t *l,
                                     const hd_value_t *slice, bool takes) {
  hd_module_t *module = l->outer->module;
  const char *type = hd_scalar_name(slice->type);
  long long size = (long long)count_of(slice);
  long long whole = size * (long long)l->loop.steps;
  const char *name =
      hd_arena_printf(arena_of(l), "%s_%s_%lld_of_%lld",
                      takes ? "take" : "stack", type, size, whole);
  const hd_func_t *known = hd_module_find(module, name, HD_FUNC_KERNEL);
  if (known)
    return known;
  const char *text = hd_arena_printf(
      arena_of(l),
      "kernel %s(turn: i64, in from: %s[%lld], out to: %s[%lld])\n"
      "  grid(%lld) block(256)\n{\n"
      "  let i = block * 256 + thread\n"
      "  if i < %lld {\n"
      "    to[%si64(i)] = from[%si64(i)]\n  }\n}\n",
      name, type, takes ? whole : size, type, takes ? size : whole,
      (size + 255) / 256, size,
      takes ? "" : hd_arena_printf(arena_of(l), "turn * %lld + ", size),
      takes ? hd_arena_printf(arena_of(l), "turn * %lld + ", size) : "");
  return hd_module_parse_into(module, name, text, strlen(text), 1)
             ? hd_module_find(module, name, HD_FUNC_KERNEL)
             : NULL;
}

static bool copy_slice(loop_planner_t *l, const copy_t *copy, bool takes) {
  if (hd_scalar_bits(copy->like->type) < 8)
    return hd_error(&l->outer->module->context->diags, l->node->loc, HD_E1104,
                    hd_node_label(l->node),
                    "a loop over slices that are no multiple of 16 bytes, of "
                    "elements smaller than a byte");
  const hd_func_t *kernel = slice_kernel(l, copy->like, takes);
  if (!kernel)
    return false;
  const hd_expr_t **args = HD_ARENA_ARRAY(arena_of(l), const hd_expr_t *, 3);
  args[0] = hd_expr_var(arena_of(l), l->turn);
  args[1] = hd_expr_var(arena_of(l), copy->from);
  args[2] = hd_expr_var(arena_of(l), copy->to);
  hd_planner_launch(&l->body, kernel, args, l->node->loc);
  return true;
}

// The turn's number as a tensor.
static bool place_turn(loop_planner_t *l, const hd_value_t *value) {
  static const char name[] = "store_turn";
  static const char text[] = "kernel store_turn(turn: i64, out to: i64[1])\n"
                             "  block(1)\n{\n  to[thread] = turn\n}\n";
  hd_module_t *module = l->outer->module;
  const hd_func_t *kernel = hd_module_find(module, name, HD_FUNC_KERNEL);
  if (!kernel && hd_module_parse_into(module, name, text, sizeof(text) - 1, 1))
    kernel = hd_module_find(module, name, HD_FUNC_KERNEL);
  if (!kernel)
    return false;
  const hd_expr_t **args = HD_ARENA_ARRAY(arena_of(l), const hd_expr_t *, 2);
  args[0] = hd_expr_var(arena_of(l), l->turn);
  args[1] = hd_expr_var(arena_of(l), hd_planner_tensor(&l->body, value));
  hd_planner_launch(&l->body, kernel, args, l->node->loc);
  return true;
}

// --- What goes in ---

// Two tensors, of which one is the state and the other what it will be.
static bool place_state(loop_planner_t *l, uint32_t k) {
  const hd_value_t *state = l->loop.body->inputs.data[l->loop.counts + k];
  int64_t stride = stride_of(state);
  hd_tensor_type_t type = {state->type, 1, {2 * stride}};
  const hd_var_t *buffer = hd_planner_workspace(l->outer, state->name, &type);
  const hd_expr_t *turn = hd_expr_var(arena_of(l), l->turn);
  l->buffers[k] = buffer;
  const hd_var_t *first =
      hd_planner_view(l->outer, state, buffer, number(l, 0));
  const hd_var_t *now =
      hd_planner_view(&l->body, state, buffer,
                      op(l, HD_EXPR_MUL, op(l, HD_EXPR_MOD, turn, 2), stride));
  hd_ptr_map_set(arena_of(l), &l->body.tensors, state, now);
  return hd_planner_copy(
      l->outer, state, hd_planner_tensor(l->outer, l->node->inputs[k]), first);
}

static bool place_slice(loop_planner_t *l, const hd_value_t *slice,
                        const hd_value_t *whole) {
  const hd_var_t *from = hd_planner_tensor(l->outer, whole);
  if (!is_aligned(slice))
    return copy_slice(
        l, &(copy_t){slice, from, hd_planner_tensor(&l->body, slice)}, true);
  const hd_expr_t *turn = hd_expr_var(arena_of(l), l->turn);
  hd_ptr_map_set(arena_of(l), &l->body.tensors, slice,
                 view_of(&l->body, slice, from,
                         op(l, HD_EXPR_MUL, turn, count_of(slice))));
  return true;
}

static bool place_inputs(loop_planner_t *l) {
  const hd_value_t *const *inputs = l->loop.body->inputs.data + l->loop.counts;
  for (uint32_t i = 0; i < l->node->num_inputs; i++) {
    const hd_value_t *given = l->node->inputs[i];
    if (i < l->loop.states) {
      if (!place_state(l, i))
        return false;
    } else if (i < l->loop.states + l->loop.scanned) {
      if (!place_slice(l, inputs[i], given))
        return false;
    } else {
      hd_ptr_map_set(arena_of(l), &l->body.tensors, inputs[i],
                     hd_planner_tensor(l->outer, given));
    }
  }
  return !l->loop.counts || place_turn(l, l->loop.body->inputs.data[0]);
}

// --- What comes out ---

static const hd_var_t *state_target(loop_planner_t *l, uint32_t k) {
  const hd_value_t *given = l->loop.body->outputs.data[k];
  const hd_expr_t *next =
      op(l, HD_EXPR_ADD, hd_expr_var(arena_of(l), l->turn), 1);
  int64_t stride = stride_of(given);
  return hd_planner_view(
      &l->body, given, l->buffers[k],
      op(l, HD_EXPR_MUL, op(l, HD_EXPR_MOD, next, 2), stride));
}

// Where a result is stacked; NULL: it is copied there.
static const hd_var_t *stack_target(loop_planner_t *l, uint32_t k) {
  const hd_value_t *given = l->loop.body->outputs.data[k];
  const hd_value_t *whole = l->node->outputs[k];
  if (!whole || !is_aligned(given))
    return NULL;
  const hd_expr_t *turn = hd_expr_var(arena_of(l), l->turn);
  return view_of(&l->body, given, hd_planner_tensor(l->outer, whole),
                 op(l, HD_EXPR_MUL, turn, count_of(given)));
}

// A value of the body is stored where it goes, if a node gives it and it goes
// nowhere else; else it is copied when all is done.
static void place_output(loop_planner_t *l, uint32_t k) {
  const hd_value_t *given = l->loop.body->outputs.data[k];
  const hd_var_t *to =
      k < l->loop.states ? state_target(l, k) : stack_target(l, k);
  if (!to)
    return;
  if (hd_ptr_map_get(&l->body.fusion->givers, given) &&
      !hd_ptr_map_get(&l->body.tensors, given))
    hd_ptr_map_set(arena_of(l), &l->body.tensors, given, to);
  else
    hd_vec_push(arena_of(l), &l->copies, ((copy_t){given, NULL, to}));
}

static bool copy_outputs(loop_planner_t *l) {
  for (size_t i = 0; i < l->copies.size; i++) {
    const copy_t *copy = &l->copies.data[i];
    if (!hd_planner_copy(&l->body, copy->like,
                         hd_planner_tensor(&l->body, copy->like), copy->to))
      return false;
  }
  for (uint32_t k = l->loop.states; k < l->node->num_outputs; k++) {
    const hd_value_t *given = l->loop.body->outputs.data[k];
    const hd_value_t *whole = l->node->outputs[k];
    if (!whole || is_aligned(given))
      continue;
    if (!copy_slice(l,
                    &(copy_t){given, hd_planner_tensor(&l->body, given),
                              hd_planner_tensor(l->outer, whole)},
                    false))
      return false;
  }
  return true;
}

static bool place_last_states(loop_planner_t *l) {
  for (uint32_t k = 0; k < l->loop.states; k++) {
    const hd_value_t *value = l->node->outputs[k];
    if (!value)
      continue;
    const hd_var_t *to = hd_ptr_map_get(&l->outer->tensors, value);
    const hd_var_t *last =
        hd_planner_view(l->outer, value, l->buffers[k],
                        number(l, l->loop.steps % 2 * stride_of(value)));
    if (!to)
      hd_ptr_map_set(arena_of(l), &l->outer->tensors, value, last);
    else if (!hd_planner_copy(l->outer, value, last, to))
      return false;
  }
  return true;
}

// --- The loop ---

static bool plan_body(loop_planner_t *l) {
  if (!place_inputs(l))
    return false;
  for (uint32_t k = 0; k < l->node->num_outputs; k++)
    place_output(l, k);
  if (!hd_planner_nodes(&l->body) || !copy_outputs(l))
    return false;
  hd_stmt_t *stmt = hd_stmt_make(arena_of(l), HD_STMT_FOR, l->node->loc);
  stmt->u.loop.var = l->turn;
  stmt->u.loop.first = number(l, 0);
  stmt->u.loop.limit = number(l, l->loop.steps);
  stmt->u.loop.body =
      hd_block_make(arena_of(l), l->body.body.data, l->body.body.size);
  hd_stmt_list_push(arena_of(l), &l->outer->body, stmt);
  return place_last_states(l);
}

bool hd_planner_loop(hd_planner_t *p, const hd_node_t *node) {
  loop_planner_t l = {
      .outer = p, .node = node, .loop = hd_node_loop(node), .body = *p};
  const hd_graph_t *graph = l.loop.body;
  memset(&l.body.tensors, 0, sizeof l.body.tensors);
  memset(&l.body.viewed, 0, sizeof l.body.viewed);
  memset(&l.body.recipes, 0, sizeof l.body.recipes);
  memset(&l.body.body, 0, sizeof l.body.body);
  l.body.graph = graph;
  l.body.fusion = hd_fusion_create(p->module, p->scheduler, graph);
  l.buffers = HD_ARENA_ARRAY(p->arena, const hd_var_t *, l.loop.states + 1);
  l.turn =
      hd_var_make(p->arena, "turn", HD_VAR_LOOP, hd_type(HD_I64), node->loc);
  for (size_t i = 0; i < graph->constants.size; i++)
    hd_ptr_map_set(p->arena, &l.body.tensors, graph->constants.data[i],
                   hd_ptr_map_get(&p->tensors, graph->constants.data[i]));
  return plan_body(&l);
}
