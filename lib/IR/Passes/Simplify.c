// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pass simplify: constants are folded, index arithmetic is simplified by range
// and divisibility, conditions that are known go, names of names are replaced.
//
//   kernel k(out a: f32[8, 256]) block(256) {
//     for i in 0..8 {
//       let x = i * 16 + thread / 16
//       if x < 1000 {
//         a[x / 16, (x % 16) * 16 + thread % 16] = 0
//       }
//     }
//   }
//
// becomes
//
//     for i in 0..8 {
//       let x = i * 16 + (thread >> 4)
//       a[i, thread] = 0
//     }
//
// Requires nothing. The value of no expression changes, for no input; effects
// stay, in their order.

#include "IR/Exits.h"
#include "IR/Parts.h"
#include "IR/Passes/Passes.h"
#include "IR/Passes/Simplifier.h"
#include "IR/Rewrite.h"

static void simplify_block(hd_simplifier_t *s, hd_block_t block,
                           hd_stmt_list_t *out);

static hd_block_t simplified(hd_simplifier_t *s, hd_block_t block) {
  hd_stmt_list_t out = {0};
  simplify_block(s, block, &out);
  bool same = out.size == block.size;
  for (size_t i = 0; same && i < out.size; ++i)
    same = out.data[i] == block.stmts[i];
  return same ? block : (hd_block_t){(uint32_t)out.size, out.data};
}

static hd_block_t simplified_under(hd_simplifier_t *s,
                                   const hd_expr_t *condition, bool holds,
                                   hd_block_t block) {
  hd_facts_mark_t mark = hd_facts_mark(s->facts);
  hd_facts_assume(s->facts, condition, holds);
  block = simplified(s, block);
  hd_facts_reset(s->facts, mark);
  return block;
}

static const hd_expr_t *simplify_root(void *argument, const hd_expr_t *e) {
  return hd_simplify_expr(argument, e);
}

// The expressions of a statement.
static hd_part_mapper_t mapper_of(hd_simplifier_t *s) {
  return (hd_part_mapper_t){
      .arena = s->arena, .argument = s, .expr = simplify_root};
}

static void push(hd_simplifier_t *s, hd_stmt_list_t *out,
                 const hd_stmt_t *stmt) {
  hd_stmt_list_push(s->arena, out, stmt);
}

static void let_known(hd_simplifier_t *s, const hd_var_t *var,
                      const hd_expr_t *value) {
  hd_facts_let(s->facts, var, value);
  if (s->resolve)
    hd_simplify_set_level(s, var, hd_simplify_level(s, value));
}

// var = value from here on: replaced where value is a name or a constant, else
// by a let (the statement like, where it is one).
static void bind(hd_simplifier_t *s, const hd_var_t *var,
                 const hd_expr_t *value, const hd_stmt_t *like,
                 hd_stmt_list_t *out) {
  if (hd_expr_is_trivial(value)) {
    hd_ptr_map_set(s->scratch, &s->values, var, value);
    return;
  }
  if (like->kind == HD_STMT_LET && like->u.let.value == value) {
    let_known(s, var, value);
    push(s, out, like);
    return;
  }
  const hd_var_t *name = var;
  if (var->kind != HD_VAR_LET) {
    name = hd_var_make(s->arena, var->name, HD_VAR_LET, var->type, var->loc);
    hd_ptr_map_set(s->scratch, &s->values, var, hd_expr_var(s->arena, name));
  }
  hd_stmt_t *let = hd_stmt_make(s->arena, HD_STMT_LET, like->loc);
  let->u.let.var = name;
  let->u.let.value = value;
  let_known(s, name, value);
  push(s, out, let);
}

static void simplify_store(hd_simplifier_t *s, const hd_stmt_t *stmt,
                           hd_stmt_list_t *out) {
  const hd_part_mapper_t mapper = mapper_of(s);
  stmt = hd_map_parts(&mapper, stmt);
  if (s->resolve && !stmt->u.store.linear) {
    hd_stmt_t *copy = hd_stmt_copy(s->arena, stmt);
    const hd_expr_t **offset = HD_ARENA_NEW(s->arena, const hd_expr_t *);
    *offset = hd_resolve_offset(s, stmt->u.store.var, stmt->u.store.indices);
    copy->u.store.indices = offset;
    copy->u.store.num_indices = 1;
    copy->u.store.linear = true;
    stmt = copy;
  }
  push(s, out, stmt);
}

static const hd_expr_t *compare(hd_simplifier_t *s, hd_expr_kind_t kind,
                                const hd_expr_t *a, const hd_expr_t *b) {
  return hd_expr_binary(s->scratch, kind, a, b);
}

static void simplify_for(hd_simplifier_t *s, const hd_stmt_t *stmt,
                         hd_stmt_list_t *out) {
  const hd_expr_t *first = hd_simplify_expr(s, stmt->u.loop.first);
  const hd_expr_t *limit = hd_simplify_expr(s, stmt->u.loop.limit);
  const hd_expr_t *step = hd_simplify_expr(s, stmt->u.loop.step);
  const hd_expr_t *by = step ? step : hd_expr_int(s->scratch, first->type, 1);
  bool pure = hd_expr_is_pure(first) && hd_expr_is_pure(limit) &&
              (!step || hd_expr_is_pure(step));
  if (pure &&
      hd_facts_decide(s->facts, compare(s, HD_EXPR_GE, first, limit)) == 1)
    return;
  const hd_expr_t *second = compare(s, HD_EXPR_ADD, first, by);
  // A body that leaves its loop has to have one.
  if (pure && !hd_body_exits(stmt->u.loop.body) &&
      hd_facts_decide(s->facts, compare(s, HD_EXPR_LT, first, limit)) == 1 &&
      hd_facts_decide(s->facts, compare(s, HD_EXPR_GE, second, limit)) == 1) {
    bind(s, stmt->u.loop.var, first, stmt, out);
    simplify_block(s, stmt->u.loop.body, out);
    return;
  }
  hd_stmt_list_t vectors = {0};
  if (s->vectorize && hd_vectorize_loop(s, stmt, &vectors)) {
    simplify_block(s, (hd_block_t){(uint32_t)vectors.size, vectors.data}, out);
    return;
  }
  hd_stmt_t copy = *stmt;
  copy.u.loop.first = first;
  copy.u.loop.limit = limit;
  copy.u.loop.step = step && hd_expr_is_int(step, 1) ? NULL : step;
  hd_facts_mark_t mark = hd_facts_mark(s->facts);
  hd_facts_loop(s->facts, stmt->u.loop.var, first, limit, step);
  ++s->depth;
  if (s->resolve)
    hd_simplify_set_level(s, stmt->u.loop.var,
                          stmt->u.loop.unroll == HD_UNROLL_FULL
                              ? HD_LEVEL_UNROLLED + s->depth
                              : s->depth);
  copy.u.loop.body = simplified(s, stmt->u.loop.body);
  --s->depth;
  hd_facts_reset(s->facts, mark);
  bool same = first == stmt->u.loop.first && limit == stmt->u.loop.limit &&
              copy.u.loop.step == stmt->u.loop.step &&
              hd_block_is(copy.u.loop.body, stmt->u.loop.body);
  push(s, out, same ? stmt : hd_stmt_copy(s->arena, &copy));
}

static void simplify_mapfor(hd_simplifier_t *s, const hd_stmt_t *stmt,
                            hd_stmt_list_t *out) {
  hd_stmt_t copy = *stmt;
  const hd_part_mapper_t mapper = mapper_of(s);
  copy.u.mapfor.mapping = hd_map_bounds(&mapper, stmt->u.mapfor.mapping);
  copy.u.mapfor.worker = hd_simplify_expr(s, stmt->u.mapfor.worker);
  hd_facts_mark_t mark = hd_facts_mark(s->facts);
  const hd_mapping_t *mapping = copy.u.mapfor.mapping;
  for (unsigned a = 0; a < mapping->rank; ++a)
    hd_facts_loop(s->facts, stmt->u.mapfor.vars[a], hd_expr_i32(s->scratch, 0),
                  hd_expr_i32(s->scratch, mapping->dims[a]), NULL);
  copy.u.mapfor.body = simplified(s, stmt->u.mapfor.body);
  hd_facts_reset(s->facts, mark);
  bool same = mapping == stmt->u.mapfor.mapping &&
              copy.u.mapfor.worker == stmt->u.mapfor.worker &&
              hd_block_is(copy.u.mapfor.body, stmt->u.mapfor.body);
  push(s, out, same ? stmt : hd_stmt_copy(s->arena, &copy));
}

static void simplify_if(hd_simplifier_t *s, const hd_stmt_t *stmt,
                        hd_stmt_list_t *out) {
  hd_stmt_t copy = *stmt;
  const hd_expr_t *condition = hd_simplify_expr(s, stmt->u.branch.condition);
  if (hd_expr_is_const(condition)) {
    simplify_block(
        s, condition->u.i ? stmt->u.branch.then : stmt->u.branch.otherwise,
        out);
    return;
  }
  copy.u.branch.condition = condition;
  copy.u.branch.then =
      simplified_under(s, condition, true, stmt->u.branch.then);
  copy.u.branch.otherwise =
      simplified_under(s, condition, false, stmt->u.branch.otherwise);
  bool same = condition == stmt->u.branch.condition &&
              hd_block_is(copy.u.branch.then, stmt->u.branch.then) &&
              hd_block_is(copy.u.branch.otherwise, stmt->u.branch.otherwise);
  push(s, out, same ? stmt : hd_stmt_copy(s->arena, &copy));
}

static void simplify_while(hd_simplifier_t *s, const hd_stmt_t *stmt,
                           hd_stmt_list_t *out) {
  hd_stmt_t copy = *stmt;
  copy.u.branch.condition = hd_simplify_expr(s, stmt->u.branch.condition);
  if (hd_expr_is_const(copy.u.branch.condition) &&
      !copy.u.branch.condition->u.i)
    return;
  copy.u.branch.then =
      simplified_under(s, copy.u.branch.condition, true, stmt->u.branch.then);
  bool same = copy.u.branch.condition == stmt->u.branch.condition &&
              hd_block_is(copy.u.branch.then, stmt->u.branch.then);
  push(s, out, same ? stmt : hd_stmt_copy(s->arena, &copy));
}

static void simplify_assert(hd_simplifier_t *s, const hd_stmt_t *stmt,
                            hd_stmt_list_t *out) {
  const hd_part_mapper_t mapper = mapper_of(s);
  stmt = hd_map_parts(&mapper, stmt);
  const hd_expr_t *condition = stmt->u.assertion.condition;
  if (!hd_expr_is_const(condition) || !condition->u.i)
    push(s, out, stmt);
}

static void simplify_plain(hd_simplifier_t *s, const hd_stmt_t *stmt,
                           hd_stmt_list_t *out) {
  const hd_part_mapper_t mapper = mapper_of(s);
  push(s, out, hd_map_parts(&mapper, stmt));
}

static void simplify_stmt(hd_simplifier_t *s, const hd_stmt_t *stmt,
                          hd_stmt_list_t *out) {
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_LET:
    bind(s, stmt->u.let.var, hd_simplify_expr(s, stmt->u.let.value), stmt, out);
    return;
  case HD_STMT_STORE:
    simplify_store(s, stmt, out);
    return;
  case HD_STMT_FOR:
    simplify_for(s, stmt, out);
    return;
  case HD_STMT_MAPFOR:
    simplify_mapfor(s, stmt, out);
    return;
  case HD_STMT_WHILE:
    simplify_while(s, stmt, out);
    return;
  case HD_STMT_IF:
    simplify_if(s, stmt, out);
    return;
  case HD_STMT_ASSERT:
    simplify_assert(s, stmt, out);
    return;
  case HD_STMT_DECLARE:
  case HD_STMT_POINT:
  case HD_STMT_EVAL:
  case HD_STMT_RETURN:
  case HD_STMT_BREAK:
  case HD_STMT_CONTINUE:
  case HD_STMT_PRINT:
  case HD_STMT_LAUNCH:
  case HD_STMT_COUNT:
    simplify_plain(s, stmt, out);
    return;
  }
}

// What holds past a condition one of whose branches does not come back.
static void assume_past(hd_simplifier_t *s, const hd_stmt_t *branch) {
  if (!hd_block_falls_through(branch->u.branch.then))
    hd_facts_assume(s->facts, branch->u.branch.condition, false);
  else if (!hd_block_falls_through(branch->u.branch.otherwise))
    hd_facts_assume(s->facts, branch->u.branch.condition, true);
}

static void simplify_block(hd_simplifier_t *s, hd_block_t block,
                           hd_stmt_list_t *out) {
  hd_facts_mark_t mark = hd_facts_mark(s->facts);
  for (size_t i = 0; i < block.size; ++i) {
    const hd_stmt_t *stmt = block.stmts[i];
    size_t before = out->size;
    hd_budget_check(s->budget);
    simplify_stmt(s, stmt, out);
    const hd_stmt_t *last =
        out->size > before ? out->data[out->size - 1] : NULL;
    if (last && !hd_stmt_falls_through(last))
      break; // What follows is never reached.
    if (last && stmt->kind == HD_STMT_IF && last->kind == HD_STMT_IF)
      assume_past(s, last);
  }
  hd_facts_reset(s->facts, mark);
}

static bool simplify_launch(hd_simplifier_t *s, hd_launch_t *launch) {
  const hd_expr_t **clauses[] = {launch->grid, launch->block, launch->cluster};
  bool changed = false;
  for (unsigned i = 0; i < 9; ++i) {
    const hd_expr_t **e = &clauses[i / 3][i % 3];
    const hd_expr_t *simpler = hd_simplify_expr(s, *e);
    changed |= simpler != *e;
    *e = simpler;
  }
  return changed;
}

const hd_func_t *hd_simplify_func(hd_module_t *module, const hd_func_t *func,
                                  hd_simplify_mode_t mode) {
  // All memory is the module's: work that runs out of its budget unwinds past
  // this frame.
  hd_simplifier_t s = {.arena = &module->arena,
                       .budget = &module->context->budget,
                       .scratch = &module->arena,
                       .facts = hd_facts_create(&module->arena, func),
                       .resolve = mode == HD_SIMPLIFY_AND_RESOLVE,
                       .vectorize = mode == HD_SIMPLIFY_AND_VECTORIZE};
  hd_func_t version = *func;
  bool changed = simplify_launch(&s, &version.launch);
  version.body = simplified(&s, func->body);
  changed |= !hd_block_is(version.body, func->body);
  if (!changed)
    return func;
  hd_func_t *result = HD_ARENA_NEW(&module->arena, hd_func_t);
  *result = version;
  return result;
}

const hd_func_t *hd_pass_simplify(hd_module_t *module, const hd_func_t *func,
                                  const hd_pass_args_t *args) {
  (void)args;
  return hd_simplify_func(module, func, HD_SIMPLIFY_ALONE);
}
