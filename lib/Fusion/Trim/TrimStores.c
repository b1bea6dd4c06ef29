// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When nothing that a block computes is needed: each of its stores is past an
// extent from which on nobody needs what is stored, or stores a constant
// there, or is not done by this block.
//
//   let row = block / 24 * 32
//   for i, j in spatial(32, 4) on thread {
//     a[row + i, j] = x                               row >= extents[0]
//     if j + block % 24 * 4 < 32 {
//       b[row + i, j] = row + i < extents[0] ? x : 0  row >= extents[0], stores
//       0 c[row + i, j] = x                             block % 24 * 4 >= 32
//     }
//   }
#include "Fusion/Trim/TrimState.h"

#include "IR/Effects.h"
#include "IR/Intrinsic.h"

#include <math.h>

static void fail(hd_trim_t *t, const char *why, const char *name) {
  if (!t->why)
    t->why = hd_arena_printf(t->arena, why, name);
}

// --- Conditions ---

// base + number >= extent; where the base is the same for all blocks, nothing
// is gained.
static const hd_expr_t *reaches(const hd_trim_t *t, hd_type_t type,
                                hd_spread_t at, const hd_expr_t *extent) {
  if (!at.known || !at.base)
    return NULL;
  const hd_expr_t *end = hd_spread_end(&t->spreads, type, at.base, at.least);
  return hd_expr_binary(t->arena, HD_EXPR_GE,
                        hd_expr_cast(t->arena, extent->type, end), extent);
}

static const hd_expr_t *either(const hd_trim_t *t, const hd_expr_t *a,
                               const hd_expr_t *b) {
  return !a ? b : !b ? a : hd_expr_binary(t->arena, HD_EXPR_OR, a, b);
}

// Of a place that is stored to: past what is needed.
static const hd_expr_t *find_unneeded(const hd_trim_t *t, uint32_t param,
                                      const hd_expr_t *const *indices,
                                      unsigned count) {
  const hd_need_t *need = t->needs[param];
  const hd_expr_t *found = NULL;
  for (unsigned i = 0; need && i < count; i++) {
    if (!need->axes[i].input)
      continue;
    const hd_expr_t *at =
        hd_expr_int(t->arena, hd_type(HD_I32), need->axes[i].at);
    const hd_expr_t *extent =
        hd_expr_access(t->arena, HD_EXPR_LOAD,
                       t->vector(t->argument, need->axes[i].input), 1, &at, 1);
    found = either(t, found,
                   reaches(t, indices[i]->type,
                           hd_spread_of(&t->spreads, indices[i]), extent));
  }
  return found;
}

static const hd_expr_t *value_of(const hd_trim_t *t, const hd_expr_t *e) {
  const hd_expr_t *is;
  while ((e->kind == HD_EXPR_VAR || e->kind == HD_EXPR_LOAD) &&
         (is = hd_ptr_map_get(&t->lets, e->u.var)))
    e = is;
  return e;
}

// Whether it is the same for all of a run.
static bool is_extent(const hd_trim_t *t, const hd_expr_t *e) {
  if (e->kind != HD_EXPR_LOAD || e->num_operands != 1 ||
      !hd_expr_is_const(e->operands[0]))
    return false;
  for (uint32_t i = 0; i < t->kernel->num_params; i++)
    if (t->kernel->params[i] == e->u.var)
      return t->constant[i];
  return false;
}

// Where a condition holds nowhere: a place is not below an extent.
static const hd_expr_t *find_past(const hd_trim_t *t, const hd_expr_t *e) {
  e = value_of(t, e);
  if (e->kind == HD_EXPR_AND)
    return either(t, find_past(t, e->operands[0]),
                  find_past(t, e->operands[1]));
  if (e->kind != HD_EXPR_LT)
    return NULL;
  const hd_expr_t *extent = value_of(t, e->operands[1]);
  return is_extent(t, extent)
             ? reaches(t, e->operands[0]->type,
                       hd_spread_of(&t->spreads, e->operands[0]), extent)
             : NULL;
}

// Of a store of `place < extent ? x : constant`.
static const hd_expr_t *find_sealed(hd_trim_t *t, const hd_stmt_t *stmt,
                                    const hd_expr_t *value) {
  value = value_of(t, value);
  if (value->kind != HD_EXPR_SELECT)
    return NULL;
  const hd_expr_t *constant = value_of(t, value->operands[2]);
  const hd_expr_t *folded = hd_expr_fold(t->arena, constant);
  bool is_cast =
      constant->kind == HD_EXPR_CAST && hd_expr_is_const(constant->operands[0]);
  const hd_expr_t *past = find_past(t, value->operands[0]);
  if (past && (folded || is_cast))
    hd_ptr_map_set(t->arena, &t->kept, stmt, folded ? folded : constant);
  return folded || is_cast ? past : NULL;
}

// Where x < y holds nowhere (or x <= y, where it is not strict).
static const hd_expr_t *find_never(const hd_trim_t *t, const hd_expr_t *x,
                                   const hd_expr_t *y, bool strict) {
  hd_spread_t by = hd_spread_of(&t->spreads, y);
  hd_spread_t at = hd_spread_of(&t->spreads, x);
  if (!at.known || !by.known || (!at.base && !by.base))
    return NULL;
  return hd_expr_binary(t->arena, strict ? HD_EXPR_GE : HD_EXPR_GT,
                        hd_spread_end(&t->spreads, x->type, at.base, at.least),
                        hd_spread_end(&t->spreads, y->type, by.base, by.most));
}

static const hd_expr_t *find_false(const hd_trim_t *t, const hd_expr_t *e,
                                   bool holds) {
  e = value_of(t, e);
  hd_expr_kind_t op = (hd_expr_kind_t)e->kind;
  if (op == HD_EXPR_NOT)
    return find_false(t, e->operands[0], !holds);
  if (op == (holds ? HD_EXPR_AND : HD_EXPR_OR))
    return either(t, find_false(t, e->operands[0], holds),
                  find_false(t, e->operands[1], holds));
  if (op != HD_EXPR_LT && op != HD_EXPR_LE && op != HD_EXPR_GT &&
      op != HD_EXPR_GE)
    return NULL;
  bool less = (op == HD_EXPR_LT || op == HD_EXPR_LE) == holds;
  bool strict = (op == HD_EXPR_LT || op == HD_EXPR_GT) == holds;
  return find_never(t, e->operands[less ? 0 : 1], e->operands[less ? 1 : 0],
                    strict);
}

static const hd_expr_t *find_undone(const hd_trim_t *t) {
  const hd_expr_t *found = NULL;
  for (const hd_trim_guard_t *g = t->guards; g; g = g->outer)
    found = either(t, found, find_false(t, g->condition, g->holds));
  return found;
}

// --- Stores ---

// What nobody may read: NaN, or a large number.
static const hd_expr_t *poison(const hd_trim_t *t, hd_type_t type) {
  if (hd_type_is_float(type))
    return hd_expr_float(t->arena, type, hd_float_round(type.scalar, NAN));
  return hd_type_is_bool(type) ? hd_expr_bool(t->arena, true)
                               : hd_expr_int(t->arena, type, 1);
}

static void add_condition(hd_trim_t *t, const hd_expr_t *condition) {
  for (size_t i = 0; i < t->conditions.size; i++)
    if (hd_expr_equal(t->conditions.data[i], condition))
      return;
  hd_vec_push(t->arena, &t->conditions, condition);
}

static void look_at_store(hd_trim_t *t, const hd_stmt_t *stmt,
                          const hd_var_t *var, const hd_expr_t *const *indices,
                          unsigned count, const hd_expr_t *value) {
  const hd_func_t *kernel = t->kernel;
  uint32_t param = 0;
  while (param < kernel->num_params && kernel->params[param] != var)
    param++;
  if (!t->walk && !t->conditions.size)
    t->walk = t->within;
  if (t->within != t->walk)
    fail(t, "it writes '%s' outside of a loop over tiles", var->name);
  if (param == kernel->num_params || var->direction != HD_DIR_OUT ||
      count != var->tensor->rank)
    fail(t, "it writes '%s' by other means", var->name);
  if (t->why)
    return;
  const hd_expr_t *past = find_unneeded(t, param, indices, count);
  if (past && t->poisons)
    hd_ptr_map_set(t->arena, &t->kept, stmt, poison(t, var->type));
  if (!past)
    past = find_sealed(t, stmt, value);
  if (!past)
    past = find_undone(t);
  if (past)
    add_condition(t, past);
  else
    fail(t, "all of '%s' is needed, or any block may write any of it",
         var->name);
}

static bool is_global(const hd_var_t *var) {
  var = var->map ? var->map->tensor : var;
  return var->tensor && var->tensor->scope == HD_SCOPE_GLOBAL;
}

// What is read early holds one extent in all of its elements, and nothing else:
// no value before, either. value: NULL where an operation writes it.
static void look_at_register(hd_trim_t *t, const hd_var_t *var,
                             const hd_expr_t *value) {
  const hd_expr_t *known = hd_ptr_map_get(&t->lets, var);
  bool extent = value && is_extent(t, value);
  if (extent && !known)
    hd_ptr_map_set(t->arena, &t->lets, var, value);
  if (!extent)
    hd_ptr_map_set(t->arena, &t->others, var, var);
  if ((known && extent && !hd_expr_equal(known, value)) ||
      ((known || extent) && hd_ptr_map_get(&t->others, var)))
    fail(t, "'%s' is several numbers", var->name);
}

// Whether an expression leaves global memory as it is.
static bool look_at_expr(void *argument, const hd_expr_t *e) {
  hd_trim_t *t = argument;
  if (e->kind == HD_EXPR_CALL) {
    for (uint32_t i = 0; i < e->num_operands && i < e->u.func->num_params; i++)
      if (e->operands[i]->kind == HD_EXPR_TENSOR &&
          is_global(e->operands[i]->u.var))
        fail(t, "it calls '%s'", e->u.func->name);
    return true;
  }
  if (e->kind != HD_EXPR_INTRINSIC)
    return true;
  const hd_intrinsic_info_t *info = hd_intrinsic_of(e);
  for (unsigned i = 0; i < e->num_operands && i < info->num_params; i++) {
    const hd_expr_t *x = e->operands[i];
    if (!info->params[i].writes ||
        (x->kind != HD_EXPR_REF && x->kind != HD_EXPR_VAR))
      continue;
    if (is_global(x->u.var))
      fail(t, "it writes '%s' by other means", x->u.var->name);
    else
      look_at_register(t, x->u.var, NULL);
  }
  return true;
}

// --- Statements ---

static void look_at_block(hd_trim_t *t, hd_block_t block);

static void look_at_let(hd_trim_t *t, const hd_stmt_t *stmt) {
  const hd_var_t *var = stmt->u.let.var;
  hd_spread_t spread = hd_spread_of(&t->spreads, stmt->u.let.value);
  if (t->leading && spread.known && spread.base && spread.least == spread.most)
    hd_spread_name(
        &t->spreads, var,
        hd_spread_end(&t->spreads, var->type, spread.base, spread.least));
  else
    hd_spread_set(&t->spreads, var, spread);
  hd_ptr_map_set(t->arena, &t->lets, var, stmt->u.let.value);
}

static bool is_same(const hd_expr_t *a, const hd_expr_t *b) {
  return a && b ? hd_expr_equal(a, b) : a == b;
}

bool hd_trim_is_walk(const hd_trim_t *t, const hd_stmt_t *loop) {
  return is_same(t->walk->u.loop.first, loop->u.loop.first) &&
         is_same(t->walk->u.loop.limit, loop->u.loop.limit) &&
         is_same(t->walk->u.loop.step, loop->u.loop.step);
}

static void look_at_loop(hd_trim_t *t, const hd_stmt_t *stmt) {
  const hd_stmt_t *within = t->within;
  hd_spread_t first = hd_spread_of(&t->spreads, stmt->u.loop.first);
  hd_spread_t limit = hd_spread_of(&t->spreads, stmt->u.loop.limit);
  bool walks = first.known && first.base && first.least == first.most;
  if (first.known && !first.base)
    hd_spread_set(&t->spreads, stmt->u.loop.var,
                  (hd_spread_t){true, NULL, first.least,
                                limit.known && !limit.base ? limit.most - 1
                                                           : HD_SPREAD_FAR});
  if (walks && !within) { // All walks are in one variable.
    t->within = t->walk && hd_trim_is_walk(t, stmt) ? t->walk : stmt;
    const hd_var_t *var = t->within->u.loop.var;
    hd_spread_name(&t->spreads, var, NULL);
    hd_spread_set(&t->spreads, stmt->u.loop.var,
                  (hd_spread_t){true, hd_expr_var(t->arena, var), 0, 0});
  }
  look_at_block(t, stmt->u.loop.body);
  t->within = within;
}

static void look_at_mapfor(hd_trim_t *t, const hd_stmt_t *stmt) {
  const hd_mapping_t *mapping = stmt->u.mapfor.mapping;
  for (uint32_t i = 0; i < mapping->rank; i++)
    hd_spread_set(&t->spreads, stmt->u.mapfor.vars[i],
                  (hd_spread_t){true, NULL, 0, mapping->dims[i] - 1});
  look_at_block(t, stmt->u.mapfor.body);
}

// if warpgroup == 0 { ... } else { here it is 1 or more }
static void look_at_if(hd_trim_t *t, const hd_stmt_t *stmt) {
  const hd_expr_t *condition = stmt->u.branch.condition;
  hd_trim_guard_t guard = {condition, true, t->guards};
  int64_t *least = NULL, before = 0;
  t->guards = &guard;
  look_at_block(t, stmt->u.branch.then);
  guard.holds = false;
  if (condition->kind == HD_EXPR_EQ &&
      condition->operands[0]->kind == HD_EXPR_BUILTIN &&
      hd_expr_is_int(condition->operands[1], 0)) {
    least = &t->spreads.least[condition->operands[0]->u.builtin];
    before = *least;
    *least = 1;
  }
  look_at_block(t, stmt->u.branch.otherwise);
  if (least)
    *least = before;
  t->guards = guard.outer;
}

static void look_at_stmt(hd_trim_t *t, const hd_stmt_t *stmt) {
  hd_walk_stmt(stmt, look_at_expr, t);
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_LET:
    look_at_let(t, stmt);
    break;
  case HD_STMT_DECLARE:
    if (stmt->u.declare.init)
      look_at_register(t, stmt->u.declare.var, stmt->u.declare.init);
    break;
  case HD_STMT_STORE:
    if (is_global(stmt->u.store.var))
      look_at_store(t, stmt, stmt->u.store.var, stmt->u.store.indices,
                    stmt->u.store.linear ? 0 : stmt->u.store.num_indices,
                    stmt->u.store.value);
    else
      look_at_register(t, stmt->u.store.var, stmt->u.store.value);
    break;
  case HD_STMT_POINT: {
    const hd_expr_t *place = stmt->u.point.place;
    if (stmt->u.point.kind == HD_POINT_EXPECT)
      break;
    if (is_global(place->u.var))
      look_at_store(t, stmt, place->u.var, place->operands,
                    place->linear ? 0 : place->num_operands,
                    stmt->u.point.value);
    else
      look_at_register(t, place->u.var, stmt->u.point.value);
    break;
  }
  case HD_STMT_FOR:
    look_at_loop(t, stmt);
    break;
  case HD_STMT_MAPFOR:
    look_at_mapfor(t, stmt);
    break;
  case HD_STMT_WHILE:
    look_at_block(t, stmt->u.branch.then);
    break;
  case HD_STMT_IF:
    look_at_if(t, stmt);
    break;
  case HD_STMT_RETURN:
    if (t->within)
      fail(t, "it %s from a loop over tiles", "returns");
    break;
  case HD_STMT_ASSERT:
  case HD_STMT_EVAL:
  case HD_STMT_BREAK:
  case HD_STMT_CONTINUE:
  case HD_STMT_PRINT:
  case HD_STMT_LAUNCH:
  case HD_STMT_COUNT:
    break;
  }
}

static void look_at_block(hd_trim_t *t, hd_block_t block) {
  for (uint32_t i = 0; i < block.size && !t->why; i++)
    look_at_stmt(t, block.stmts[i]);
}

void hd_trim_look(hd_trim_t *t) {
  hd_block_t body = t->kernel->body;
  hd_spreads_init(&t->spreads, t->arena, t->kernel);
  t->leading = true;
  for (uint32_t i = 0; i < body.size && !t->why; i++) {
    const hd_stmt_t *stmt = body.stmts[i];
    t->leading &=
        stmt->kind == HD_STMT_DECLARE ||
        (stmt->kind == HD_STMT_LET && hd_expr_is_pure(stmt->u.let.value));
    look_at_stmt(t, stmt);
    if (t->leading && stmt->kind == HD_STMT_LET)
      hd_ptr_map_set(t->arena, &t->places, stmt->u.let.var,
                     (const void *)(uintptr_t)(i + 1));
  }
  if (!t->conditions.size)
    fail(t, "it writes %s", "nothing");
}
