// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accesses at a constant index outside of a constant shape:
//
//   register t: f32[4]
//   t[4] = 0
//
// Where it is reached for certain that is an error. Where a condition stands
// before it that is settled at run time it is a warning: passes leave such code
// of what is right, as specialize(m = 4) of
//
//   kernel k(m: i32, n: i32, out y: f32[m])  // n is 4 at most
//     if n > m {
//       y[m] = 0
//
// and what they print is read again. What constants rule out is not looked at.
//
// The variable of a loop that is unrolled is a constant in each copy:
//
//   for i in 0..5 unroll
//     t[i] = 0
//
// Where a function has such loops it is looked at again for their first turns,
// and for their last ones. Only what is certain is said of these.
#include "IR/Verify/Verifier.h"

#include "IR/Generic.h"
#include "IR/Rewrite.h"
#include "Support/Map.h"

typedef enum turn { TURN_ANY, TURN_FIRST, TURN_LAST, TURN_COUNT } turn_t;

typedef struct bounds {
  hd_diagnostics_t *diags;
  hd_arena_t arena;     // Scratch.
  turn_t turn;          // Of unrolled loops.
  hd_ptr_map_t values;  // Of lets that are constants, and variables of loops.
  hd_ptr_map_t told;    // By the indices of an access.
  hd_ptr_map_t leaving; // Loops that may be left before their last turn.
  bool has_unrolled;
  bool is_certain; // Whether what is looked at is reached wherever the function
                   // is called, unless...
  bool has_left;   // ...a return, break or continue came before.
  bool ok;
} bounds_t;

static bool value_of(void *argument, const hd_expr_t *leaf,
                     hd_number_t *value) {
  const bounds_t *b = argument;
  const hd_expr_t *known = leaf->kind == HD_EXPR_VAR
                               ? hd_ptr_map_get(&b->values, leaf->u.var)
                               : NULL;
  if (known)
    *value = hd_expr_number(known);
  return known;
}

static bool fold(bounds_t *b, const hd_expr_t *e, int64_t *value) {
  const hd_fold_t folds = {.leaf = value_of, .argument = b};
  hd_number_t number;
  bool known = e->type.lanes == 1 && !hd_type_is_float(e->type) &&
               hd_expr_value(&folds, e, &number);
  if (known)
    *value = number.i;
  return known;
}

// A condition, also where one side of && and || settles it and the other is not
// known.
static bool decide(bounds_t *b, const hd_expr_t *e, int64_t *value) {
  bool is_and = e->kind == HD_EXPR_AND;
  if (e->kind == HD_EXPR_NOT && decide(b, e->operands[0], value)) {
    *value = !*value;
    return true;
  }
  if (!is_and && e->kind != HD_EXPR_OR)
    return fold(b, e, value);
  int64_t left, right;
  bool knows_left = decide(b, e->operands[0], &left);
  bool knows_right = decide(b, e->operands[1], &right);
  *value = !is_and;
  if ((knows_left && !left == is_and) || (knows_right && !right == is_and))
    return true;
  *value = is_and;
  return knows_left && knows_right;
}

static void report(bounds_t *b, const char *name, hd_loc_t loc, int64_t index,
                   uint32_t axis, int64_t last) {
  if (b->is_certain && !b->has_left)
    b->ok = hd_error(b->diags, loc, HD_E0319, name, (long long)index, (int)axis,
                     (long long)last);
  else if (b->turn == TURN_ANY)
    hd_warning(b->diags, loc,
               "where this is reached, '%s' is accessed out of bounds: index "
               "%lld of axis %d is not within 0 .. %lld",
               name, (long long)index, (int)axis, (long long)last);
}

static void check_place(bounds_t *b, const hd_var_t *var,
                        const hd_expr_t *const *indices, uint32_t lanes,
                        hd_loc_t loc) {
  const hd_tensor_t *tensor = var->tensor;
  for (uint32_t i = 0; i < tensor->rank; i++) {
    int64_t index, size, more = i + 1 == tensor->rank ? lanes - 1 : 0;
    if (!hd_expr_fold_int(tensor->shape[i], &size) ||
        !fold(b, indices[i], &index) || (index >= 0 && index < size - more))
      continue;
    if (!hd_ptr_map_get(&b->told, indices))
      report(b, var->name, loc, index < 0 ? index : index + more, i, size - 1);
    if (b->turn == TURN_ANY || (b->is_certain && !b->has_left))
      hd_ptr_map_set(&b->arena, &b->told, indices, b);
    return;
  }
}

static bool look_at(void *argument, const hd_expr_t *e) {
  bounds_t *b = argument;
  int64_t chosen;
  bool is_lazy = e->kind == HD_EXPR_SELECT || e->kind == HD_EXPR_AND ||
                 e->kind == HD_EXPR_OR;
  if (is_lazy && decide(b, e->operands[0], &chosen)) {
    if (e->kind == HD_EXPR_SELECT)
      look_at(b, e->operands[chosen ? 1 : 2]);
    else if (!chosen == (e->kind == HD_EXPR_OR))
      look_at(b, e->operands[1]);
    return true;
  }
  bool is_certain = b->is_certain;
  for (uint32_t i = 0; i < e->num_operands; i++) {
    b->is_certain = is_certain && !hd_expr_is_lazy(e, i);
    look_at(b, e->operands[i]);
  }
  b->is_certain = is_certain;
  if ((e->kind == HD_EXPR_LOAD || e->kind == HD_EXPR_REF) && !e->linear)
    check_place(b, e->u.var, e->operands,
                e->kind == HD_EXPR_LOAD ? e->type.lanes : 1, e->loc);
  return true;
}

// Returns whether what follows may be reached.
static bool look_at_block(bounds_t *b, hd_block_t block);

static bool look_at_some(bounds_t *b, hd_block_t block, bool is_certain) {
  bool outer = b->is_certain;
  b->is_certain = outer && is_certain;
  bool goes_on = look_at_block(b, block);
  b->is_certain = outer;
  return goes_on;
}

static bool look_at_branches(bounds_t *b, const hd_stmt_t *stmt) {
  int64_t chosen;
  if (decide(b, stmt->u.branch.condition, &chosen))
    return look_at_block(b, chosen ? stmt->u.branch.then
                                   : stmt->u.branch.otherwise);
  bool then = look_at_some(b, stmt->u.branch.then, false);
  return look_at_some(b, stmt->u.branch.otherwise, false) || then;
}

// Whether every worker has a task.
static bool has_task(const hd_mapping_t *mapping) {
  if (mapping->kind == HD_MAPPING_COMPOSE)
    return has_task(mapping->left) && has_task(mapping->right);
  return mapping->kind != HD_MAPPING_WITHIN && mapping->kind != HD_MAPPING_IDLE;
}

// Gives the variable of a loop that is unrolled its value in the turn that is
// looked at.
static void take_turn(bounds_t *b, const hd_stmt_t *stmt, int64_t first,
                      int64_t limit) {
  const hd_var_t *var = stmt->u.loop.var;
  int64_t step = 1;
  b->has_unrolled = true;
  if (b->turn == TURN_ANY ||
      (stmt->u.loop.step && (!fold(b, stmt->u.loop.step, &step) || step <= 0)))
    return;
  if (b->turn == TURN_LAST) { // As far away as 2^64.
    uint64_t by = (uint64_t)step, way = (uint64_t)limit - 1 - (uint64_t)first;
    first = (int64_t)((uint64_t)first + way / by * by);
  }
  hd_ptr_map_set(&b->arena, &b->values, var,
                 hd_expr_int(&b->arena, var->type, first));
}

static void look_at_loop(bounds_t *b, const hd_stmt_t *stmt) {
  int64_t first = 0, limit = 0;
  bool is_known = fold(b, stmt->u.loop.first, &first) &&
                  fold(b, stmt->u.loop.limit, &limit);
  bool had_left = b->has_left;
  bool leaves = hd_ptr_map_get(&b->leaving, stmt) != NULL;
  if (is_known && first >= limit)
    return;
  if (is_known && stmt->u.loop.unroll == HD_UNROLL_FULL)
    take_turn(b, stmt, first, limit);
  b->has_left = had_left || (leaves && b->turn == TURN_LAST);
  look_at_some(b, stmt->u.loop.body, is_known);
  if (b->turn == TURN_ANY && !had_left && b->has_left)
    hd_ptr_map_set(&b->arena, &b->leaving, stmt, b);
  b->has_left = b->has_left || leaves;
}

static bool look_at_stmt(bounds_t *b, const hd_stmt_t *stmt) {
  int64_t value;
  if (stmt->kind != HD_STMT_POINT) // Outside, these are 0 or left out.
    hd_walk_roots(stmt, look_at, b);
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_LET:
    if (fold(b, stmt->u.let.value, &value))
      hd_ptr_map_set(&b->arena, &b->values, stmt->u.let.var,
                     hd_expr_int(&b->arena, stmt->u.let.var->type, value));
    return true;
  case HD_STMT_STORE:
    if (!stmt->u.store.linear)
      check_place(b, stmt->u.store.var, stmt->u.store.indices,
                  stmt->u.store.value->type.lanes, stmt->loc);
    return true;
  case HD_STMT_FOR:
    look_at_loop(b, stmt);
    return true;
  case HD_STMT_MAPFOR:
    look_at_some(b, stmt->u.mapfor.body, has_task(stmt->u.mapfor.mapping));
    return true;
  case HD_STMT_WHILE:
    if (!decide(b, stmt->u.branch.condition, &value) || value)
      look_at_some(b, stmt->u.branch.then, false);
    return true;
  case HD_STMT_IF:
    return look_at_branches(b, stmt);
  case HD_STMT_RETURN:
  case HD_STMT_BREAK:
  case HD_STMT_CONTINUE:
    b->has_left = true;
    return false;
  case HD_STMT_DECLARE:
  case HD_STMT_POINT:
  case HD_STMT_ASSERT:
  case HD_STMT_EVAL:
  case HD_STMT_PRINT:
  case HD_STMT_LAUNCH:
  case HD_STMT_COUNT:
    return true;
  }
  return true;
}

static bool look_at_block(bounds_t *b, hd_block_t block) {
  for (uint32_t i = 0; i < block.size; i++)
    if (!look_at_stmt(b, block.stmts[i]))
      return false;
  return true;
}

bool hd_func_verify_bounds(hd_context_t *context, const hd_func_t *func) {
  bounds_t b = {.diags = &context->diags, .ok = true};
  if (func->kind == HD_FUNC_PLAN)
    return true;
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(&context->diags);
  hd_arena_init_local(&b.arena, &context->budget);
  for (b.turn = TURN_ANY; b.turn < TURN_COUNT; b.turn++) {
    b.values = (hd_ptr_map_t){0};
    b.is_certain = true;
    b.has_left = false;
    look_at_block(&b, func->body);
    if (!b.has_unrolled)
      break;
  }
  hd_arena_fini(&b.arena);
  hd_func_note_instance(&context->diags, mark, func);
  return b.ok;
}
