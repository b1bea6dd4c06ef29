// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pass cse: an expression that was evaluated before, in this block or in one
// around it, is not evaluated again.
//
//   a[i * 64 + j] = b[i * 64 + j] * 2
//
// becomes
//
//   let common = i * 64 + j
//   a[common] = b[common] * 2
//
// Only expressions that mean the same wherever they stand are shared: those
// without effects that read no memory, or only `in` tensors of a kernel, which
// nobody writes during a launch (a function's may be written by its caller).
// What may not be evaluated at all (the branches of ?:, the right side of &&
// and ||) can use what there is, and adds nothing.
//
// The function is walked twice in the same order: the first walk counts uses,
// the second replaces. Blocks nest, so what is known is a stack.

#include "IR/Effects.h"
#include "IR/Parts.h"
#include "IR/Passes/Passes.h"
#include "IR/Passes/Simplifier.h"
#include "IR/Rewrite.h"
#include "Support/Map.h"

enum { MIN_COST = 2 };

typedef struct entry {
  const hd_expr_t *expr;
  uint64_t hash;
  size_t number;       // Into counts.
  const hd_var_t *var; // What holds the value; NULL: not yet.
  struct entry *next;  // Of the same hash.
} entry_t;

typedef struct cse {
  hd_arena_t *arena;
  HD_VEC(entry_t *) stack;
  hd_key_map_t entries;    // By hash.
  HD_VEC(unsigned) counts; // Uses of each expression, in order of first sight.
  size_t next_number;
  bool kernel;            // Not a function of one.
  bool replace;           // The second walk.
  hd_stmt_list_t *before; // Where lets go: ahead of the statement.
  hd_loc_t loc;           // Of the statement.
} cse_t;

static bool reads_constants(void *argument, const hd_expr_t *e) {
  const cse_t *c = argument;
  if (e->kind == HD_EXPR_LOAD || e->kind == HD_EXPR_LOADELSE)
    return e->u.var->table || (c->kernel && e->u.var->direction == HD_DIR_IN &&
                               e->u.var->tensor->scope == HD_SCOPE_GLOBAL);
  return e->kind != HD_EXPR_REF && e->kind != HD_EXPR_TENSOR;
}

static bool is_sharable(cse_t *c, const hd_expr_t *e) {
  if (e->kind == HD_EXPR_LANE || e->type.scalar == HD_VOID)
    return false;
  bool loads = e->kind == HD_EXPR_LOAD || e->kind == HD_EXPR_LOADELSE;
  return (loads || hd_expr_cost(e) >= MIN_COST) &&
         hd_walk_expr(e, reads_constants, c) && hd_expr_is_pure(e);
}

static entry_t *find_entry(cse_t *c, const hd_expr_t *e, uint64_t hash) {
  entry_t *entry = hd_key_map_find(&c->entries, &hash, sizeof hash);
  while (entry && !hd_expr_equal(entry->expr, e))
    entry = entry->next;
  return entry;
}

static entry_t *add_entry(cse_t *c, const hd_expr_t *e, uint64_t hash) {
  entry_t *entry = HD_ARENA_NEW(c->arena, entry_t);
  *entry = (entry_t){e, hash, c->next_number++, NULL,
                     hd_key_map_find(&c->entries, &hash, sizeof hash)};
  if (!c->replace)
    hd_vec_push(c->arena, &c->counts, 0);
  hd_key_map_set(c->arena, &c->entries, &entry->hash, sizeof hash, entry);
  hd_vec_push(c->arena, &c->stack, entry);
  return entry;
}

static void forget(cse_t *c, size_t size) {
  while (c->stack.size > size) {
    const entry_t *entry = c->stack.data[--c->stack.size];
    hd_key_map_set(c->arena, &c->entries, &entry->hash, sizeof entry->hash,
                   entry->next);
  }
}

static const hd_expr_t *walk_expr(cse_t *c, const hd_expr_t *e, bool lazy);

static const hd_expr_t *walk_operands(cse_t *c, const hd_expr_t *e, bool lazy) {
  const hd_expr_t **copy = NULL;
  for (unsigned i = 0; i < e->num_operands; ++i) {
    const hd_expr_t *operand =
        walk_expr(c, e->operands[i], lazy || hd_expr_is_lazy(e, i));
    if (operand == e->operands[i] && !copy)
      continue;
    if (!copy) {
      copy = HD_ARENA_ARRAY(c->arena, const hd_expr_t *, e->num_operands);
      for (unsigned j = 0; j < i; ++j)
        copy[j] = e->operands[j];
    }
    copy[i] = operand;
  }
  return copy ? hd_expr_with(c->arena, e, copy) : e;
}

static const hd_expr_t *name_value(cse_t *c, entry_t *entry,
                                   const hd_expr_t *value) {
  hd_var_t *var =
      hd_var_make(c->arena, "common", HD_VAR_LET, value->type, value->loc);
  hd_stmt_t *let = hd_stmt_make(c->arena, HD_STMT_LET, c->loc);
  let->u.let.var = var;
  let->u.let.value = value;
  hd_stmt_list_push(c->arena, c->before, let);
  entry->var = var;
  return hd_expr_var(c->arena, var);
}

static const hd_expr_t *walk_expr(cse_t *c, const hd_expr_t *e, bool lazy) {
  if (!e || e->num_operands == 0)
    return e;
  if (!is_sharable(c, e))
    return walk_operands(c, e, lazy);
  uint64_t hash = hd_expr_hash(e);
  entry_t *entry = find_entry(c, e, hash);
  if (entry) {
    if (!c->replace)
      ++c->counts.data[entry->number];
    return entry->var ? hd_expr_var(c->arena, entry->var) : e;
  }
  if (lazy)
    return walk_operands(c, e, lazy);
  entry = add_entry(c, e, hash);
  const hd_expr_t *value = walk_operands(c, e, lazy);
  return c->replace && c->counts.data[entry->number] > 0
             ? name_value(c, entry, value)
             : value;
}

// A let's own variable is the name of its value.
static const hd_expr_t *walk_let(cse_t *c, const hd_stmt_t *stmt) {
  const hd_expr_t *value = stmt->u.let.value;
  if (value->num_operands == 0 || !is_sharable(c, value))
    return walk_expr(c, value, false);
  uint64_t hash = hd_expr_hash(value);
  if (find_entry(c, value, hash))
    return walk_expr(c, value, false);
  entry_t *entry = add_entry(c, value, hash);
  value = walk_operands(c, value, false);
  entry->var = stmt->u.let.var;
  return value;
}

static hd_block_t walk_block(cse_t *c, hd_block_t block);

static const hd_expr_t *walk_root(void *argument, const hd_expr_t *e) {
  return walk_expr(argument, e, false);
}

// Evaluated at every turn: nothing can stand before it.
static const hd_expr_t *walk_again(void *argument, const hd_expr_t *e) {
  return walk_expr(argument, e, true);
}

static hd_block_t walk_inner(void *argument, hd_block_t block) {
  return walk_block(argument, block);
}

static const hd_stmt_t *walk_stmt(cse_t *c, const hd_stmt_t *stmt) {
  c->loc = stmt->loc;
  if (stmt->kind == HD_STMT_POINT)
    return stmt; // Evaluated where and as often as its lowering likes.
  if (stmt->kind == HD_STMT_LET) {
    hd_stmt_t copy = *stmt;
    copy.u.let.value = walk_let(c, stmt);
    return copy.u.let.value == stmt->u.let.value
               ? stmt
               : hd_stmt_copy(c->arena, &copy);
  }
  const hd_part_mapper_t mapper = {
      .arena = c->arena,
      .argument = c,
      .expr = stmt->kind == HD_STMT_WHILE ? walk_again : walk_root,
      .block = walk_inner};
  return hd_map_parts(&mapper, stmt);
}

static hd_block_t walk_block(cse_t *c, hd_block_t block) {
  hd_stmt_list_t out = {0};
  hd_stmt_list_t *outer = c->before;
  size_t mark = c->stack.size;
  bool changed = false;
  c->before = &out;
  for (size_t i = 0; i < block.size; ++i) {
    const hd_stmt_t *stmt = walk_stmt(c, block.stmts[i]);
    changed |= stmt != block.stmts[i];
    hd_stmt_list_push(c->arena, &out, stmt);
  }
  forget(c, mark);
  c->before = outer;
  return changed ? (hd_block_t){(uint32_t)out.size, out.data} : block;
}

const hd_func_t *hd_pass_cse(hd_module_t *module, const hd_func_t *func,
                             const hd_pass_args_t *args) {
  (void)args;
  if (func->kind == HD_FUNC_PLAN)
    return func;
  cse_t c = {.arena = &module->arena, .kernel = func->kind == HD_FUNC_KERNEL};
  walk_block(&c, func->body);
  c.replace = true;
  c.next_number = 0;
  return hd_func_with_body(&module->arena, func, walk_block(&c, func->body));
}
