// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pass inline: calls of functions that are not the library's, and of those of
// integers alone that are, are replaced by their bodies, so that the passes
// after it see what the arguments are, and what indices are made of.
//
//   fn put(shared s: f32[64, 64], i: i32, x: f32) {
//     if i >= 64 { return }
//     s[i, lane] = x
//   }
//   ...
//   put(tile, row + 8, 0)
//
// becomes
//
//   let i = row + 8
//   if i >= 64 { } else { tile[i, lane] = 0 }
//
// Code generation puts the bodies of all calls in place anyway, so this costs
// no code. Left to it are: the library's other functions; calls that may not be
// evaluated (in a branch of ?:, behind &&); calls among other effects in one
// expression; functions that return from inside a loop; and calls whose bodies
// would nest deeper than programs are written.
//
// A register tensor takes the result where more than one return gives it.

#include "IR/Call.h"
#include "IR/Effects.h"
#include "IR/Exits.h"
#include "IR/Generic.h"
#include "IR/Parts.h"
#include "IR/Passes/Passes.h"
#include "IR/Rewrite.h"
#include "IR/Text/Library.h"

enum { MAX_STATEMENTS = 20000, MAX_NESTING = 100 };

typedef struct inliner {
  hd_module_t *module;
  hd_arena_t *arena;
  int64_t statements; // Made so far.
  unsigned depth;     // Of blocks around the place.
} inliner_t;

typedef struct returns {
  const hd_var_t *result; // Takes returned values; NULL where there are none.
  unsigned depth;         // Of the blocks around the place.
  bool ok;
} returns_t;

static void inline_block(inliner_t *in, hd_block_t block, hd_stmt_list_t *out);
static const hd_expr_t *inline_expr(inliner_t *in, const hd_expr_t *e,
                                    hd_stmt_list_t *out);

static hd_block_t to_block(const hd_stmt_list_t *list) {
  return (hd_block_t){(uint32_t)list->size, list->data};
}

static hd_block_t concat(inliner_t *in, hd_block_t a, hd_block_t b) {
  hd_stmt_list_t list = {0};
  for (size_t i = 0; i < a.size; ++i)
    hd_stmt_list_push(in->arena, &list, a.stmts[i]);
  for (size_t i = 0; i < b.size; ++i)
    hd_stmt_list_push(in->arena, &list, b.stmts[i]);
  return to_block(&list);
}

static const hd_stmt_t *store_result(inliner_t *in, const returns_t *returns,
                                     const hd_stmt_t *stmt) {
  const hd_expr_t **index = HD_ARENA_NEW(in->arena, const hd_expr_t *);
  *index = hd_expr_i32(in->arena, 0);
  hd_stmt_t *store = hd_stmt_make(in->arena, HD_STMT_STORE, stmt->loc);
  store->u.store.var = returns->result;
  store->u.store.num_indices = 1;
  store->u.store.indices = index;
  store->u.store.value = stmt->u.eval.value;
  return store;
}

// A body without returns that does the same: what follows a conditional return
// goes into the other branch.
static hd_block_t without_returns(inliner_t *in, returns_t *returns,
                                  hd_block_t block) {
  hd_stmt_list_t list = {0};
  for (size_t i = 0; i < block.size; ++i) {
    const hd_stmt_t *stmt = block.stmts[i];
    hd_block_t rest = {(uint32_t)(block.size - i - 1), block.stmts + i + 1};
    if (stmt->kind == HD_STMT_RETURN) {
      if (returns->result)
        hd_stmt_list_push(in->arena, &list, store_result(in, returns, stmt));
      return to_block(&list);
    }
    hd_block_t whole = {1, &stmt};
    if (!hd_block_holds_return(whole)) {
      hd_stmt_list_push(in->arena, &list, stmt);
      continue;
    }
    if (stmt->kind != HD_STMT_IF || returns->depth == MAX_NESTING) {
      returns->ok = false;
      return block;
    }
    hd_block_t then = stmt->u.branch.then;
    hd_block_t otherwise = stmt->u.branch.otherwise;
    if (!hd_block_falls_through(then))
      otherwise = concat(in, otherwise, rest);
    else if (!hd_block_falls_through(otherwise))
      then = concat(in, then, rest);
    else if (rest.size > 0)
      returns->ok = false; // What follows would be needed twice.
    hd_stmt_t *copy = hd_stmt_copy(in->arena, stmt);
    ++returns->depth;
    copy->u.branch.then = without_returns(in, returns, then);
    copy->u.branch.otherwise = without_returns(in, returns, otherwise);
    --returns->depth;
    hd_stmt_list_push(in->arena, &list, copy);
    return to_block(&list);
  }
  return to_block(&list);
}

static void push_let(inliner_t *in, const hd_var_t *var, const hd_expr_t *value,
                     hd_stmt_list_t *out) {
  hd_stmt_t *let = hd_stmt_make(in->arena, HD_STMT_LET, value->loc);
  let->u.let.var = var;
  let->u.let.value = value;
  hd_stmt_list_push(in->arena, out, let);
}

// Makes the rewriter put value for var; a let for it, where it is computed,
// goes to out.
static void bind_value(inliner_t *in, hd_rewriter_t *rewriter,
                       const hd_var_t *var, const hd_expr_t *value,
                       hd_stmt_list_t *out) {
  if (!hd_expr_is_trivial(value)) {
    hd_var_t *named =
        hd_var_make(in->arena, var->name, HD_VAR_LET, var->type, var->loc);
    push_let(in, named, value, out);
    value = hd_expr_var(in->arena, named);
  }
  hd_rewriter_substitute(rewriter, var, value);
}

// Makes the rewriter put arguments for parameters.
static void bind_arguments(inliner_t *in, hd_rewriter_t *rewriter,
                           const hd_expr_t *call, hd_stmt_list_t *out) {
  const hd_func_t *callee = call->u.func;
  for (unsigned i = 0; i < callee->num_params; ++i) {
    const hd_var_t *param = callee->params[i];
    const hd_expr_t *argument = call->operands[i];
    if (param->tensor)
      hd_rewriter_map(rewriter, param, argument->u.var);
    else
      bind_value(in, rewriter, param, inline_expr(in, argument, out), out);
  }
  for (unsigned i = 0; i < callee->num_sizes; ++i)
    bind_value(in, rewriter, callee->sizes[i].var,
               hd_call_size(in->arena, callee, call->operands, i), out);
}

// register result: T[lanes]
static const hd_var_t *declare_result(inliner_t *in, const hd_func_t *callee,
                                      hd_loc_t loc, hd_stmt_list_t *out) {
  hd_tensor_t *tensor = HD_ARENA_NEW(in->arena, hd_tensor_t);
  const hd_expr_t **shape = HD_ARENA_NEW(in->arena, const hd_expr_t *);
  *shape = hd_expr_i32(in->arena, callee->result.lanes);
  *tensor = (hd_tensor_t){.scope = HD_SCOPE_REGISTER,
                          .element = hd_type_lane(callee->result),
                          .rank = 1,
                          .shape = shape};
  hd_var_t *var = hd_var_make_tensor(
      in->arena, hd_func_identifier(in->arena, callee), tensor, loc);
  hd_stmt_t *declare = hd_stmt_make(in->arena, HD_STMT_DECLARE, loc);
  declare->u.declare.var = var;
  hd_stmt_list_push(in->arena, out, declare);
  return var;
}

static bool count_stmt(void *argument, const hd_stmt_t *stmt) {
  (void)stmt;
  ++*(int64_t *)argument;
  return true;
}

// Only the last statement returns.
static bool returns_at_end(hd_block_t body) {
  return body.size > 0 && body.stmts[body.size - 1]->kind == HD_STMT_RETURN &&
         !hd_block_holds_return((hd_block_t){body.size - 1, body.stmts});
}

// How deep blocks lie in each other.
static unsigned nesting(hd_block_t block) {
  unsigned deepest = 0;
  for (size_t i = 0; i < block.size; ++i) {
    hd_block_t inner[HD_MAX_BLOCKS];
    unsigned count = hd_stmt_blocks(block.stmts[i], inner);
    for (unsigned k = 0; k < count; ++k) {
      unsigned depth = 1 + nesting(inner[k]);
      deepest = depth > deepest ? depth : deepest;
    }
  }
  return deepest;
}

static bool is_of_integers(const hd_func_t *func) {
  bool all = hd_type_is_integer(func->result);
  for (uint32_t i = 0; i < func->num_params; ++i)
    all &=
        !func->params[i]->tensor && hd_type_is_integer(func->params[i]->type);
  return all;
}

// Pushes the body of a call to out and returns its value (the call itself where
// the function is void and all is done); NULL, and nothing pushed, where the
// call has to stay.
static const hd_expr_t *inline_call(inliner_t *in, const hd_expr_t *call,
                                    hd_stmt_list_t *out) {
  const hd_func_t *callee = call->u.func;
  if ((hd_library_owns(in->module->context, callee) &&
       !is_of_integers(callee)) ||
      callee->kind != HD_FUNC_FN)
    return NULL;
  hd_walk_block(callee->body, count_stmt, NULL, &in->statements);
  if (in->statements > MAX_STATEMENTS)
    return NULL;
  hd_stmt_list_t list = {0};
  hd_rewriter_t rewriter = {.arena = in->arena,
                            .declare = hd_rewriter_copy_var};
  returns_t returns = {.ok = true};
  bool is_void = callee->result.scalar == HD_VOID;
  hd_block_t body = callee->body;
  const hd_expr_t *value = call;
  bind_arguments(in, &rewriter, call, &list);
  if (!is_void && returns_at_end(body)) {
    value = body.stmts[body.size - 1]->u.eval.value;
    body.size--;
  } else if (!is_void) {
    returns.result = declare_result(in, callee, call->loc, &list);
    const hd_expr_t *zero = hd_expr_i32(in->arena, 0);
    value = hd_expr_access(in->arena, HD_EXPR_LOAD, returns.result,
                           callee->result.lanes, &zero, 1);
  }
  body = without_returns(in, &returns, body);
  returns.ok &= in->depth + nesting(body) <= MAX_NESTING;
  if (returns.ok) {
    hd_stmt_list_t copied = {0};
    hd_rewrite_into(&rewriter, body, &copied);
    if (!is_void)
      value = hd_rewrite_expr(&rewriter, value);
    inline_block(in, to_block(&copied), &list);
    for (size_t i = 0; i < list.size; ++i)
      hd_stmt_list_push(in->arena, out, list.data[i]);
  }
  return returns.ok ? value : NULL;
}

// Replaces the calls in e that are certain to be evaluated. Their bodies come
// before the rest of the expression: where that has effects (pure is false),
// those stay that read memory.
static const hd_expr_t *inline_calls(inliner_t *in, const hd_expr_t *e,
                                     bool pure, hd_stmt_list_t *out) {
  if (!e || e->num_operands == 0)
    return e;
  const hd_expr_t **operands =
      HD_ARENA_ARRAY(in->arena, const hd_expr_t *, e->num_operands);
  for (unsigned i = 0; i < e->num_operands; ++i)
    operands[i] = hd_expr_is_lazy(e, i)
                      ? e->operands[i]
                      : inline_calls(in, e->operands[i], pure, out);
  e = hd_expr_with(in->arena, e, operands);
  if (e->kind != HD_EXPR_CALL || !hd_func_is_pure(e->u.func) ||
      !(pure || hd_expr_is_stable(e)))
    return e;
  const hd_expr_t *value = inline_call(in, e, out);
  if (!value)
    return e;
  value = inline_expr(in, value, out);
  if (hd_expr_is_trivial(value))
    return value;
  hd_var_t *var =
      hd_var_make(in->arena, hd_func_identifier(in->arena, e->u.func),
                  HD_VAR_LET, value->type, e->loc);
  push_let(in, var, value, out);
  return hd_expr_var(in->arena, var);
}

static const hd_expr_t *inline_expr(inliner_t *in, const hd_expr_t *e,
                                    hd_stmt_list_t *out) {
  return inline_calls(in, e, e && hd_expr_is_pure(e), out);
}

// The value of a statement: the call itself may have effects, for it is the
// last thing that is evaluated before the statement takes effect.
static const hd_expr_t *inline_root(inliner_t *in, const hd_expr_t *e,
                                    hd_stmt_list_t *out) {
  if (!e || e->kind != HD_EXPR_CALL || hd_func_is_pure(e->u.func))
    return inline_expr(in, e, out);
  const hd_expr_t *value = inline_call(in, e, out);
  return !value ? e : value == e ? NULL : inline_root(in, value, out);
}

static hd_block_t inlined(void *argument, hd_block_t block) {
  inliner_t *in = argument;
  hd_stmt_list_t out = {0};
  ++in->depth;
  inline_block(in, block, &out);
  --in->depth;
  bool same = out.size == block.size;
  for (size_t i = 0; same && i < out.size; ++i)
    same = out.data[i] == block.stmts[i];
  return same ? block : to_block(&out);
}

static void inline_stmt(inliner_t *in, const hd_stmt_t *stmt,
                        hd_stmt_list_t *out) {
  const hd_part_mapper_t blocks = {
      .arena = in->arena, .argument = in, .block = inlined};
  hd_stmt_t copy = *hd_map_parts(&blocks, stmt);
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_LET:
    copy.u.let.value = inline_root(in, stmt->u.let.value, out);
    break;
  case HD_STMT_DECLARE:
    copy.u.declare.init = inline_expr(in, stmt->u.declare.init, out);
    break;
  case HD_STMT_STORE:
    copy.u.store.value = inline_root(in, stmt->u.store.value, out);
    break;
  case HD_STMT_FOR:
    copy.u.loop.first = inline_expr(in, stmt->u.loop.first, out);
    copy.u.loop.limit = inline_calls(in, stmt->u.loop.limit,
                                     hd_expr_is_pure(stmt->u.loop.first) &&
                                         hd_expr_is_pure(stmt->u.loop.limit),
                                     out);
    break;
  case HD_STMT_MAPFOR:
    copy.u.mapfor.worker = inline_expr(in, stmt->u.mapfor.worker, out);
    break;
  case HD_STMT_IF:
    copy.u.branch.condition = inline_expr(in, stmt->u.branch.condition, out);
    break;
  case HD_STMT_EVAL:
  case HD_STMT_RETURN:
  case HD_STMT_BREAK:
  case HD_STMT_CONTINUE:
    copy.u.eval.value = inline_root(in, stmt->u.eval.value, out);
    if (!copy.u.eval.value && stmt->kind == HD_STMT_EVAL)
      return; // All of the call has been put in its place.
    break;
  case HD_STMT_POINT: // Whole, for its lowering, which comes first.
  case HD_STMT_WHILE: // Its condition is evaluated again and again.
  case HD_STMT_ASSERT:
  case HD_STMT_PRINT:
  case HD_STMT_LAUNCH:
  case HD_STMT_COUNT:
    break;
  }
  bool same = memcmp(&copy, stmt, sizeof copy) == 0;
  hd_stmt_list_push(in->arena, out,
                    same ? stmt : hd_stmt_copy(in->arena, &copy));
}

static void inline_block(inliner_t *in, hd_block_t block, hd_stmt_list_t *out) {
  for (size_t i = 0; i < block.size; ++i)
    inline_stmt(in, block.stmts[i], out);
}

const hd_func_t *hd_pass_inline(hd_module_t *module, const hd_func_t *func,
                                const hd_pass_args_t *args) {
  (void)args;
  if (func->kind != HD_FUNC_KERNEL)
    return func; // Others are put into kernels.
  inliner_t in = {.module = module, .arena = &module->arena};
  return hd_func_with_body(&module->arena, func, inlined(&in, func->body));
}
