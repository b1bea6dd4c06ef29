// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Load points whose rows the data says, by an index that is read: pages of a
// cache, say. Where all tasks of a point's loop have the same place it is read
// before the loop. Else
//
//   for j, p in M on thread { expect k[at + j, p] in row[1, j, p / 8] }
//   ...
//   for j, p in R on thread { row[0, j, p] = row[1, j, p] }
//   for j, p in M on thread { load s[j, p] <- k[at + j, p] in row[0, j, p / 8]
//   }
//
// becomes, where k[j, p] is pool[table[j / 16], j % 16, p],
//
//   for j, p in M on thread {
//     load row_table[1, j, p / 8] <- table[(at + j) / 16]
//   }
//   ...
//   for j, p in R on thread { row_table[0, j, p] = row_table[1, j, p] }
//   register inside: bool = true
//   for j, p in M on thread {
//     if p == 0 { inside = row_table[0, j, p / 8] < pages && inside }
//   }
//   assert inside
//   for j, p in M on thread {
//     load s[j, p] <- pool[row_table[0, j, p / 8], (at + j) % 16, p]
//   }
//
// and without `expect` the table is read in the load's own place.

#include "Schedule/Access/AccessPoint.h"

#include "IR/Effects.h"

typedef struct own {
  const hd_stmt_t *loop;
  bool uses;
} own_t;

static bool is_other(void *argument, const hd_expr_t *e) {
  return e->kind != HD_EXPR_VAR || e->u.var != argument;
}

static bool is_not_own(void *argument, const hd_expr_t *e) {
  own_t *own = argument;
  for (uint32_t i = 0; i < own->loop->u.mapfor.mapping->rank; i++)
    own->uses |=
        e->kind == HD_EXPR_VAR && own->loop->u.mapfor.vars[i] == e->u.var;
  return !own->uses;
}

static bool uses_own(const hd_access_tile_t *tile, const hd_expr_t *e) {
  own_t own = {tile->loop, false};
  return tile->loop && !hd_walk_expr(e, is_not_own, &own);
}

// Whether e changes with what an index is made of, beside what it reads there.
static bool moves_with(const hd_expr_t *e, const hd_expr_t *index) {
  if (e->kind == HD_EXPR_VAR)
    return !hd_walk_expr(index, is_other, (void *)(uintptr_t)e->u.var);
  bool moves = false;
  for (unsigned i = 0; !hd_expr_is_global_load(e) && i < e->num_operands; i++)
    moves = moves || moves_with(e->operands[i], index);
  return moves;
}

// What is asserted of a place, where the element is inside the tensor that the
// kernel reads: elsewhere it is 0, and the place is not looked at. By an index
// that does nothing but choose what says the place, the place is 0 there
// itself, or another row's, if what says it is one line of several; not where
// that index is a choice itself.
static const hd_expr_t *where_inside(hd_accessor_t *a, hd_access_names_t *names,
                                     const hd_expr_t *condition) {
  const hd_expr_t *all = NULL;
  for (size_t i = 0; i < a->guards.size; i++) {
    hd_access_guard_t guard = a->guards.data[i];
    guard.index = hd_rewrite_expr(&names->rewriter, guard.index);
    if (guard.index->kind == HD_EXPR_SELECT ||
        moves_with(condition, guard.index))
      all = hd_b_and(&a->b, all, hd_access_holds(a, &guard));
  }
  return all ? hd_expr_binary(a->b.arena, HD_EXPR_OR,
                              hd_expr_unary(a->b.arena, HD_EXPR_NOT, all),
                              condition)
             : condition;
}

// A place that the data says, and what is asserted of it, before the tile's
// loop, where all of its tasks have the same: what is left is an expression.
// Where they do not, the place is one itself, and what is asserted of it stands
// in a loop of its own before the tile's. *claims: those.
static bool learn_place(const hd_access_tile_t *tile, hd_access_names_t *names,
                        const hd_stmt_t *let, const hd_stmt_t *claim,
                        hd_stmt_list_t *claims) {
  hd_accessor_t *a = tile->a;
  if (let->kind != HD_STMT_LET || claim->kind != HD_STMT_ASSERT ||
      !hd_expr_is_pure(let->u.let.value))
    return false;
  const hd_expr_t *value = hd_access_without_names(names, let->u.let.value);
  if (!value)
    return false;
  bool is_own = uses_own(tile, value);
  if (!is_own)
    value = hd_b_let(&a->b, let->u.let.var->name, hd_access_or_zero(a, value));
  hd_rewriter_substitute(&names->rewriter, let->u.let.var, value);
  hd_stmt_t *copy = hd_stmt_copy(a->b.arena, claim);
  copy->u.assertion.condition = where_inside(
      a, names,
      hd_rewrite_expr(&names->rewriter, claim->u.assertion.condition));
  if (is_own || uses_own(tile, copy->u.assertion.condition))
    hd_vec_push(a->b.arena, claims, copy);
  else
    hd_b_push(&a->b, copy);
  return true;
}

bool hd_access_learn_places(const hd_access_tile_t *tile,
                            hd_access_names_t *names, hd_stmt_list_t *claims) {
  const hd_stmt_list_t *stmts = &names->block.stmts;
  tile->a->b.block = names->block.outer;
  for (size_t i = 0; i < stmts->size; i++) {
    if (i + 1 < stmts->size &&
        learn_place(tile, names, stmts->data[i], stmts->data[i + 1], claims))
      i++;
    else if (!hd_access_learn_name(names, stmts->data[i]))
      return false;
  }
  return true;
}

// Places that are read where they are needed give 0 outside their tensors.
static const hd_expr_t *with_safe_place(hd_rewriter_t *rewriter,
                                        const hd_expr_t *e) {
  hd_accessor_t *a = rewriter->argument;
  if (!hd_expr_is_global_load(e) || e->num_operands == 0)
    return e;
  const hd_expr_t **operands =
      HD_ARENA_ARRAY(a->b.arena, const hd_expr_t *, e->num_operands);
  for (unsigned i = 0; i < e->num_operands; i++)
    operands[i] = i < hd_expr_num_indices(e)
                      ? hd_access_or_zero(a, e->operands[i])
                      : e->operands[i];
  return hd_expr_with(a->b.arena, e, operands);
}

// --- What is asserted ---

static bool depends(const hd_stmt_list_t *claims, const hd_var_t *var) {
  for (size_t i = 0; i < claims->size; i++)
    if (!hd_walk_expr(claims->data[i]->u.assertion.condition, is_other,
                      (void *)(uintptr_t)var))
      return true;
  return false;
}

// The tasks that a worker does one after the other along the last axis; 1: they
// are not the innermost part of the mapping.
static int64_t along_last(const hd_mapping_t *m) {
  const hd_mapping_t *inner = m->kind == HD_MAPPING_COMPOSE ? m->right : NULL;
  if (!inner || inner->kind != HD_MAPPING_REPEAT)
    return 1;
  for (uint32_t i = 0; i + 1 < inner->rank; i++)
    if (inner->dims[i] != 1)
      return 1;
  return inner->dims[inner->rank - 1];
}

// The assertions, by the tile's loop, where those of its variables that they do
// not depend on are 0: once for all tasks that say the same. A worker's
// neighbours along the last axis are one task. What a worker finds of all of
// its tasks is asserted behind the loop: a branch for each would be waited for.
static void push_claims(const hd_access_tile_t *tile,
                        const hd_stmt_list_t *claims,
                        const hd_expr_t *const *conditions) {
  hd_builder_t *b = &tile->a->b;
  hd_stmt_t *loop = hd_stmt_copy(b->arena, tile->loop);
  const hd_mapping_t *mapping = loop->u.mapfor.mapping;
  const hd_var_t *last = loop->u.mapfor.vars[mapping->rank - 1];
  int64_t width = depends(claims, last) ? 1 : along_last(mapping);
  hd_rewriter_t rewriter = {.arena = b->arena};
  const hd_var_t **cells =
      HD_ARENA_ARRAY(b->arena, const hd_var_t *, claims->size + 1);
  for (size_t i = 0; i < claims->size; i++)
    cells[i] =
        hd_access_cell(tile->a, hd_type(HD_BOOL), hd_expr_bool(b->arena, true));
  hd_open_block_t body;
  hd_b_open(b, &body);
  const hd_expr_t *first = NULL;
  for (uint32_t i = 0; i < mapping->rank; i++)
    if (!depends(claims, loop->u.mapfor.vars[i]))
      first = hd_b_and(
          b, first,
          hd_b_op_int(b, HD_EXPR_EQ,
                      hd_expr_var(b->arena, loop->u.mapfor.vars[i]), 0));
  if (width > 1) {
    loop->u.mapfor.mapping = mapping->left;
    hd_rewriter_substitute(
        &rewriter, last,
        hd_b_op_int(b, HD_EXPR_MUL, hd_expr_var(b->arena, last), width));
  }
  hd_open_block_t all;
  hd_b_open(b, &all);
  for (size_t i = 0; i < claims->size; i++) {
    const hd_access_lazy_t lazy = {
        .value =
            hd_b_and(b,
                     hd_rewrite_expr(&rewriter,
                                     hd_access_or_zero(tile->a, conditions[i])),
                     hd_access_get_cell(tile->a, cells[i], hd_type(HD_BOOL)))};
    hd_access_to_cell(tile->a, &lazy, cells[i]);
  }
  hd_b_if(b, first, hd_b_close(b), (hd_block_t){0});
  loop->u.mapfor.body = hd_b_close(b);
  hd_b_push(b, loop);
  for (size_t i = 0; i < claims->size; i++) {
    hd_stmt_t *copy = hd_stmt_copy(b->arena, claims->data[i]);
    copy->u.assertion.condition =
        hd_access_get_cell(tile->a, cells[i], hd_type(HD_BOOL));
    hd_b_push(b, copy);
  }
}

const hd_expr_t *hd_access_with_places(const hd_access_tile_t *tile,
                                       const hd_stmt_list_t *claims,
                                       const hd_expr_t *value) {
  hd_accessor_t *a = tile->a;
  const hd_stmt_t *point = tile->point;
  hd_rewriter_t rewriter = {
      .arena = a->b.arena, .argument = a, .expr = with_safe_place};
  const hd_expr_t *open = value;
  bool is_early = point->u.point.early && !point->u.point.staging;
  const hd_expr_t **conditions =
      HD_ARENA_ARRAY(a->b.arena, const hd_expr_t *, claims->size + 1);
  for (size_t i = 0; i < claims->size; i++) {
    conditions[i] = hd_access_without_zeros(
        a, open, claims->data[i]->u.assertion.condition);
    if (is_early)
      conditions[i] = hd_access_with_early(a, point, 0, open, conditions[i]);
  }
  if (is_early)
    value = hd_access_with_early(a, point, 0, open, value);
  if (claims->size)
    push_claims(tile, claims, conditions);
  return hd_rewrite_expr(&rewriter, value);
}
