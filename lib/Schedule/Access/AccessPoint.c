// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replacing accesses at fusion points. A point stays one where it can, so that
// the ways that pass lower-points has for it (16 bytes at once, staging, the
// copy engine) remain:
//
//   for i, j in M on thread {
//     yield c[row + i, column + j] <- f16(sum[i, j]) through s[i, j]
//   }
//
// becomes, where the hook of c puts max(value, 0) into d at [at[1], at[0]],
//
//   for i, j in M on thread {
//     yield d[column + j, row + i] <- max(f16(sum[i, j]), 0) through s[i, j]
//   }
//
// For that, what hooks push has to be names of pure values, which are put in
// for the names (places that the data says, and what is asserted of them, stand
// before the loop, where all tasks have the same), and stores; and whoever is
// outside c must be outside d. Else the loop does what the point says element
// by element:
//
//   for i, j in M on thread {
//     if row + i < m && column + j < n { S }
//   }
//
// A load whose tensors are left keeps 0 for what is outside the old one: by the
// bounds of a new tensor where it has the same index and size, else by ?:.

#include "Schedule/Access/AccessPoint.h"

#include "IR/Effects.h"

enum { MAX_NODES = 8000 }; // Of a value: three quantizations of each other.

bool hd_access_is_replaced(const hd_accessor_t *a, const hd_expr_t *e) {
  if (e->kind != HD_EXPR_LOAD && e->kind != HD_EXPR_LOADELSE &&
      e->kind != HD_EXPR_REF)
    return false;
  const hd_access_hook_t *hook = hd_accessor_hook(a, e->u.var);
  return hook && hook->load;
}

static bool is_kept(void *argument, const hd_expr_t *e) {
  return !hd_access_is_replaced(argument, e);
}

bool hd_access_has_point(const hd_accessor_t *a, const hd_stmt_t *point) {
  const hd_access_hook_t *hook =
      hd_accessor_hook(a, point->u.point.place->u.var);
  bool is_expected = point->u.point.kind == HD_POINT_EXPECT;
  return (hook && (hook->store || hook->rows)) ||
         (hook && hook->load && is_expected) ||
         !hd_walk_expr(point->u.point.value, is_kept, (void *)(uintptr_t)a);
}

// --- Putting back ---

void hd_access_push_around(const hd_access_tile_t *tile, hd_block_t body) {
  hd_builder_t *b = &tile->a->b;
  if (!tile->loop) {
    hd_b_if(b, NULL, body, (hd_block_t){0});
    return;
  }
  hd_stmt_t *loop = hd_stmt_copy(b->arena, tile->loop);
  loop->u.mapfor.body = body;
  hd_b_push(b, loop);
}

void hd_access_push_point(const hd_access_tile_t *tile,
                          const hd_stmt_t *point) {
  hd_access_push_around(tile, hd_block_make(tile->a->b.arena, &point, 1));
}

void hd_access_push_value(const hd_access_tile_t *tile,
                          const hd_expr_t *value) {
  hd_stmt_t *point = hd_stmt_copy(tile->a->b.arena, tile->point);
  point->u.point.value = value;
  hd_access_push_point(tile, point);
}

// place = value by the loop, statement by statement.
static void push_store(const hd_access_tile_t *tile, const hd_expr_t *value) {
  hd_builder_t *b = &tile->a->b;
  const hd_expr_t *place = tile->point->u.point.place;
  hd_stmt_t *store = hd_stmt_make(b->arena, HD_STMT_STORE, tile->point->loc);
  store->u.store.var = place->u.var;
  store->u.store.num_indices = place->num_operands;
  store->u.store.indices = place->operands;
  store->u.store.value = value;
  hd_open_block_t body;
  hd_b_open(b, &body);
  hd_access_stmt(tile->a, store);
  hd_access_push_around(tile, hd_b_close(b));
}

// --- Expressions ---

// An element of a vector whose elements are known.
static const hd_expr_t *known_lane(hd_rewriter_t *rewriter,
                                   const hd_expr_t *e) {
  (void)rewriter;
  const hd_expr_t *vector = e->kind == HD_EXPR_LANE ? e->operands[0] : NULL;
  return vector && vector->kind == HD_EXPR_VECTOR &&
                 vector->num_operands == vector->type.lanes
             ? vector->operands[e->u.i]
             : e;
}

void hd_access_begin_names(hd_accessor_t *a, hd_access_names_t *names) {
  *names = (hd_access_names_t){
      .rewriter = {.arena = a->b.arena, .expr = known_lane}};
  hd_b_open(&a->b, &names->block);
}

// The expression without the names that were pushed; NULL where it is too
// large.
const hd_expr_t *hd_access_without_names(hd_access_names_t *names,
                                         const hd_expr_t *e) {
  e = hd_rewrite_expr(&names->rewriter, e);
  return hd_expr_count(e, MAX_NODES) < MAX_NODES ? e : NULL;
}

// Learns what a statement names. False where it does something else, too.
bool hd_access_learn_name(hd_access_names_t *names, const hd_stmt_t *stmt) {
  if (stmt->kind != HD_STMT_LET || !hd_expr_is_pure(stmt->u.let.value))
    return false;
  const hd_expr_t *value = hd_access_without_names(names, stmt->u.let.value);
  if (value)
    hd_rewriter_substitute(&names->rewriter, stmt->u.let.var, value);
  return value;
}

static bool learn_all(hd_accessor_t *a, hd_access_names_t *names) {
  a->b.block = names->block.outer;
  for (size_t i = 0; i < names->block.stmts.size; i++)
    if (!hd_access_learn_name(names, names->block.stmts.data[i]))
      return false;
  return true;
}

// e as one expression; NULL where it takes statements.
const hd_expr_t *hd_access_as_expression(hd_accessor_t *a, const hd_expr_t *e) {
  hd_access_names_t names;
  hd_access_begin_names(a, &names);
  e = hd_access_expr(a, e);
  e = learn_all(a, &names) ? hd_access_without_names(&names, e) : NULL;
  return e;
}

bool hd_access_same_size(const hd_expr_t *x, const hd_expr_t *y) {
  int64_t a, b;
  return hd_expr_equal(x, y) ||
         (hd_expr_fold_int(x, &a) && hd_expr_fold_int(y, &b) && a == b);
}

bool hd_access_is_certain(const hd_access_guard_t *guard) {
  int64_t index, size;
  return hd_expr_fold_int(guard->index, &index) &&
         hd_expr_fold_int(guard->size, &size) && index >= 0 && index < size;
}

const hd_expr_t *hd_access_holds(hd_accessor_t *a,
                                 const hd_access_guard_t *guard) {
  hd_tensor_t line = {.rank = 1, .shape = &guard->size};
  return hd_access_inside(a, &line, &guard->index, 1);
}

static bool says_not(void *argument, const hd_expr_t *e) {
  return !hd_expr_is_global_load(e) || !hd_access_says(e, argument);
}

// --- Loads ---

// Those guards that the value's own loads do not imply; NULL: none.
static const hd_expr_t *guards_of(hd_accessor_t *a, hd_access_names_t *names,
                                  const hd_expr_t *value) {
  const hd_expr_t *all = NULL;
  for (size_t i = 0; i < a->guards.size; i++) {
    hd_access_guard_t guard = a->guards.data[i];
    guard.index = hd_rewrite_expr(&names->rewriter, guard.index);
    if (hd_access_is_certain(&guard) || !hd_walk_expr(value, says_not, &guard))
      continue;
    all = hd_b_and(&a->b, all, hd_access_holds(a, &guard));
  }
  return all;
}

static bool is_no_twin(void *argument, const hd_expr_t *e) {
  const hd_expr_t *load = argument;
  if (!hd_expr_is_global_load(e) || e->u.var != load->u.var ||
      e->type.lanes != load->type.lanes)
    return true;
  for (unsigned i = 0; i < e->num_operands; i++)
    if (!hd_expr_equal(e->operands[i], load->operands[i]))
      return true;
  return false;
}

// x[i] else 0 as x[i], where that is part of the value, too: outside, all of
// the value is 0. So what reads x twice reads it once.
static const hd_expr_t *without_zero(hd_rewriter_t *rewriter,
                                     const hd_expr_t *e) {
  const hd_expr_t *value = rewriter->argument;
  if (e->kind != HD_EXPR_LOADELSE || e->linear ||
      hd_walk_expr(value, is_no_twin, (void *)(uintptr_t)e))
    return e;
  return hd_expr_access(rewriter->arena, HD_EXPR_LOAD, e->u.var, e->type.lanes,
                        e->operands, hd_expr_num_indices(e));
}

const hd_expr_t *hd_access_without_zeros(hd_accessor_t *a,
                                         const hd_expr_t *value,
                                         const hd_expr_t *e) {
  hd_rewriter_t rewriter = {.arena = a->b.arena,
                            .argument = (void *)(uintptr_t)value,
                            .expr = without_zero};
  return hd_rewrite_expr(&rewriter, e);
}

// The value of a load point as one expression; NULL where it takes statements.
static const hd_expr_t *guarded_expression(const hd_access_tile_t *tile,
                                           const hd_expr_t *value) {
  hd_accessor_t *a = tile->a;
  hd_access_names_t names;
  hd_access_begin_names(a, &names);
  a->is_guarded = true;
  a->guards.size = 0;
  value = hd_access_expr(a, value);
  a->is_guarded = false;
  hd_stmt_list_t claims = {0};
  value = hd_access_learn_places(tile, &names, &claims)
              ? hd_access_without_names(&names, value)
              : NULL;
  if (value)
    value = hd_access_with_places(tile, &claims,
                                  hd_access_without_zeros(a, value, value));
  const hd_expr_t *all = value ? guards_of(a, &names, value) : NULL;
  return all ? hd_expr_select(a->b.arena, all, value,
                              hd_access_zero(a, value->type))
             : value;
}

typedef struct insides {
  hd_accessor_t *a;
  const hd_expr_t *all;
} insides_t;

static bool visit_inside(void *argument, const hd_expr_t *e) {
  insides_t *insides = argument;
  if (hd_expr_is_global_load(e))
    insides->all = hd_b_and(&insides->a->b, insides->all,
                            hd_access_inside(insides->a, e->u.var->tensor,
                                             e->operands, e->type.lanes));
  return true;
}

static const hd_expr_t *element_at(hd_accessor_t *a, const hd_expr_t *place) {
  return hd_expr_access(a->b.arena, HD_EXPR_LOAD, place->u.var, 1,
                        place->operands, place->num_operands);
}

// As one expression, whatever is asserted of it; NULL where it takes
// statements.
static const hd_expr_t *expected(hd_accessor_t *a, const hd_expr_t *e) {
  hd_access_names_t names;
  hd_access_begin_names(a, &names);
  e = hd_access_expr(a, e);
  a->b.block = names.block.outer;
  for (size_t i = 0; i < names.block.stmts.size; i++)
    if (names.block.stmts.data[i]->kind != HD_STMT_ASSERT &&
        !hd_access_learn_name(&names, names.block.stmts.data[i]))
      return NULL;
  return hd_access_without_names(&names, e);
}

// What is expected of a tensor that is read is read, but for what comes through
// another one.
static void expect_load(const hd_access_tile_t *tile) {
  hd_accessor_t *a = tile->a;
  const hd_stmt_t *point = tile->point;
  hd_access_yields_t values = {.count = 1};
  a->has_kept = true;
  a->kept = NULL;
  values.values[0] = expected(a, element_at(a, point->u.point.place));
  a->has_kept = false;
  const hd_access_hook_t *hook =
      hd_accessor_hook(a, point->u.point.place->u.var);
  if (values.values[0])
    hd_access_read_early(tile, &values, !hook->load_kept);
}

static void replace_in_load(const hd_access_tile_t *tile) {
  hd_accessor_t *a = tile->a;
  const hd_expr_t *old = tile->point->u.point.value;
  const hd_expr_t *staging = tile->point->u.point.staging;
  a->has_kept = staging;
  a->kept = staging ? element_at(a, staging) : NULL;
  const hd_expr_t *value = guarded_expression(tile, old);
  a->has_kept = false;
  if (value && tile->point->u.point.early && staging)
    value = hd_access_with_early(a, tile->point, 0, value, value);
  if (value) {
    hd_stmt_t *point = hd_stmt_copy(a->b.arena, tile->point);
    point->u.point.value = value;
    if (staging || hd_access_has_early(a, point))
      point->u.point.early = NULL;
    point->u.point.staging = NULL;
    hd_access_push_point(tile, point);
    return;
  }
  insides_t insides = {a, NULL};
  hd_walk_expr(old, visit_inside, &insides);
  push_store(tile, insides.all ? hd_expr_select(a->b.arena, insides.all, old,
                                                hd_access_zero(a, old->type))
                               : old);
}

static void replace_in_register(const hd_access_tile_t *tile) {
  const hd_expr_t *old = tile->point->u.point.value;
  const hd_expr_t *value = hd_access_as_expression(tile->a, old);
  if (value)
    hd_access_push_value(tile, value);
  else
    push_store(tile, old);
}

// --- Rows ---

static void replace_rows(const hd_access_tile_t *tile) {
  hd_accessor_t *a = tile->a;
  const hd_access_hook_t *hook =
      hd_accessor_hook(a, tile->point->u.point.place->u.var);
  if (hook && hook->rows && tile->loop) {
    hook->rows(hook->argument, &a->b, tile->loop);
    return;
  }
  hd_stmt_t *point = hd_stmt_copy(a->b.arena, tile->point);
  point->u.point.kind = HD_POINT_YIELD;
  for (int i = 0; i < HD_ACROSS_COUNT; i++)
    point->u.point.across[i] = 0;
  hd_access_tile_t yield = {a, tile->loop, point};
  hd_access_yield(&yield);
}

// --- Points ---

void hd_access_point(hd_accessor_t *a, const hd_stmt_t *loop,
                     const hd_stmt_t *point) {
  static void (*const replace[])(const hd_access_tile_t *) = {
      [HD_POINT_LOAD] = replace_in_load,
      [HD_POINT_REGISTER] = replace_in_register,
      [HD_POINT_YIELD] = hd_access_yield,
      [HD_POINT_EXPECT] = hd_access_yield,
      [HD_POINT_ROWS] = replace_rows,
  };
  hd_access_tile_t tile = {a, loop, point};
  const hd_access_hook_t *hook =
      hd_accessor_hook(a, point->u.point.place->u.var);
  a->b.loc = point->loc;
  if (point->u.point.kind == HD_POINT_EXPECT && hook && hook->load) {
    expect_load(&tile);
    return;
  }
  replace[point->u.point.kind](&tile);
}
