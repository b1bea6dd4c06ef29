// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   kernel k(n: i32, in x: f32[n], out y: f32[n]) grid(n) ...
//   plan p(m: i32, in x: f32[m], out y: f32[m]) { launch k(m, x, y) }
//
// for a node of 4 elements:
//
//   kernel k_4(in x: f32[4], out y: f32[4]) grid(4) ...
//   plan p_4(in x: f32[4], out y: f32[4]) { launch k_4(x, y) }
#include "Schedule/Settle.h"

#include "IR/Generic.h"
#include "IR/Passes/Specialize.h"
#include "IR/Rewrite.h"
#include "IR/Verify/Verifier.h"

#include <string.h>

typedef struct settled {
  const struct settled *next; // Of the same function.
  const hd_func_t *func;
  const hd_known_t *known; // A value for each scalar, in order.
  size_t count;
} settled_t;

static const hd_func_t *find_settled(const hd_settler_t *s,
                                     const hd_func_t *func,
                                     const hd_known_t *known, size_t count) {
  for (const settled_t *made = hd_ptr_map_get(&s->made, func); made;
       made = made->next) {
    bool same = made->count == count;
    for (size_t i = 0; same && i < count; i++)
      same = made->known[i].var == known[i].var &&
             made->known[i].value == known[i].value;
    if (same)
      return made->func;
  }
  return NULL;
}

// k_4_8, or k_4_8_1, ... where that is taken.
static const char *make_name(hd_settler_t *s, const hd_func_t *func,
                             const hd_known_t *known, size_t count) {
  hd_arena_t *arena = &s->module->arena;
  const char *name = hd_func_identifier(arena, func), *fresh;
  for (size_t i = 0; i < count; i++)
    name = hd_arena_printf(arena, "%s_%llu", name,
                           (unsigned long long)known[i].value);
  size_t cursor = 0;
  fresh = name;
  for (unsigned i = 1; hd_module_next(s->module, fresh, &cursor); i++) {
    fresh = hd_arena_printf(arena, "%s_%u", name, i);
    cursor = 0;
  }
  return fresh;
}

// func without the parameters that are known.
static hd_func_t *without(hd_arena_t *arena, const hd_func_t *func,
                          const hd_known_t *known, size_t count) {
  hd_func_t *copy = HD_ARENA_COPY(arena, hd_func_t, func);
  const hd_var_t **params =
      HD_ARENA_ARRAY(arena, const hd_var_t *, func->num_params + 1);
  copy->params = params;
  copy->num_params = 0;
  for (uint32_t i = 0; i < func->num_params; i++) {
    bool is_known = false;
    for (size_t k = 0; k < count; k++)
      is_known |= known[k].var == func->params[i];
    if (!is_known)
      params[copy->num_params++] = func->params[i];
  }
  return copy;
}

static bool settle_block(hd_settler_t *s, hd_block_t *block);

// The function for known values of some scalars, which lie in the arena.
static const hd_func_t *settle(hd_settler_t *s, const hd_func_t *func,
                               const hd_known_t *known, size_t count) {
  hd_arena_t *arena = &s->module->arena;
  const hd_func_t *found = find_settled(s, func, known, count);
  if (found)
    return found;
  const hd_func_t *special = hd_func_specialize(arena, func, known, count, 0);
  hd_func_t *made = without(arena, special, known, count);
  if (made->kind == HD_FUNC_PLAN && !settle_block(s, &made->body))
    return NULL;
  bool same = !count && made->body.stmts == func->body.stmts;
  if (!same) {
    made->name = make_name(s, func, known, count);
    if (!hd_func_verify(s->module->context, made))
      return NULL;
    hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = made};
    hd_vec_push(arena, &s->module->items, item);
  }
  settled_t *settled = HD_ARENA_NEW(arena, settled_t);
  *settled = (settled_t){hd_ptr_map_get(&s->made, func), same ? func : made,
                         known, count};
  hd_ptr_map_set(arena, &s->made, func, settled);
  return settled->func;
}

// The launch of a kernel whose scalars are constants, without them.
static const hd_stmt_t *settle_launch(hd_settler_t *s, const hd_stmt_t *stmt) {
  hd_arena_t *arena = &s->module->arena;
  const hd_func_t *kernel = stmt->u.launch.kernel;
  uint32_t num_args = stmt->u.launch.num_args, kept = 0;
  hd_known_t *known = HD_ARENA_ARRAY(arena, hd_known_t, num_args + 1);
  const hd_expr_t **args =
      HD_ARENA_ARRAY(arena, const hd_expr_t *, num_args + 1);
  size_t count = 0;
  for (uint32_t i = 0; i < num_args; i++) {
    const hd_expr_t *arg = stmt->u.launch.args[i];
    const hd_var_t *param = kernel->params[i];
    int64_t value;
    if (!param->tensor && hd_type_is_integer(param->type) &&
        hd_expr_fold_int(arg, &value))
      known[count++] = (hd_known_t){param, value};
    else
      args[kept++] = arg;
  }
  if (!count)
    return stmt;
  const hd_func_t *made = settle(s, kernel, known, count);
  if (!made)
    return NULL;
  hd_stmt_t *copy = hd_stmt_copy(arena, stmt);
  copy->u.launch.kernel = made;
  copy->u.launch.num_args = kept;
  copy->u.launch.args = args;
  return copy;
}

// Of a plan, whose loops may hold launches, too. NULL after an error.
static const hd_stmt_t *settle_stmt(hd_settler_t *s, const hd_stmt_t *stmt) {
  if (stmt->kind == HD_STMT_LAUNCH)
    return settle_launch(s, stmt);
  if (stmt->kind != HD_STMT_FOR)
    return stmt;
  hd_block_t body = stmt->u.loop.body;
  if (!settle_block(s, &body))
    return NULL;
  if (body.stmts == stmt->u.loop.body.stmts)
    return stmt;
  hd_stmt_t *copy = hd_stmt_copy(&s->module->arena, stmt);
  copy->u.loop.body = body;
  return copy;
}

static bool settle_block(hd_settler_t *s, hd_block_t *block) {
  hd_arena_t *arena = &s->module->arena;
  const hd_stmt_t **stmts =
      HD_ARENA_ARRAY(arena, const hd_stmt_t *, block->size + 1);
  bool changed = false;
  for (uint32_t i = 0; i < block->size; i++) {
    stmts[i] = settle_stmt(s, block->stmts[i]);
    if (!stmts[i])
      return false;
    changed |= stmts[i] != block->stmts[i];
  }
  if (changed)
    *block = hd_block_make(arena, stmts, block->size);
  return true;
}

// The value of a number, as hd_known_t has it.
static int64_t bits_of(const hd_expr_t *e) {
  int64_t bits;
  if (!hd_type_is_float(e->type))
    return e->u.i;
  memcpy(&bits, &e->u.f, sizeof bits);
  return bits;
}

const hd_func_t *hd_settler_settle(hd_settler_t *s, const hd_node_t *node) {
  hd_arena_t *arena = &s->module->arena;
  const hd_func_t *func = node->schedule;
  const hd_expr_t **sizes =
      HD_ARENA_ARRAY(arena, const hd_expr_t *, func->num_params + 1);
  hd_known_t *known = HD_ARENA_ARRAY(arena, hd_known_t, func->num_params + 1);
  size_t count = 0;
  const char *why = hd_node_bind_schedule(arena, node, sizes);
  for (uint32_t i = 0; !why && i < func->num_params; i++) {
    if (func->params[i]->tensor)
      continue;
    if (sizes[i])
      known[count++] = (hd_known_t){func->params[i], bits_of(sizes[i])};
    else
      why = hd_arena_printf(arena, "'%s' is not known", func->params[i]->name);
  }
  if (!why)
    return settle(s, func, known, count);
  hd_error(&s->module->context->diags, node->loc, HD_E0316, func->name,
           node->op, why);
  return NULL;
}
