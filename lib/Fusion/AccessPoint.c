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
// for the names, and stores; and whoever is outside c must be outside d. Else
// the loop does what the point says element by element:
//
//   for i, j in M on thread {
//     if row + i < m && column + j < n { S }
//   }
//
// A load whose tensors are left keeps 0 for what is outside the old one: by the
// bounds of a new tensor where it has the same index and size, else by ?:.

#include "Fusion/AccessState.h"

#include "IR/Effects.h"
#include "IR/Intrinsic.h"

enum { MAX_NODES = 1000, MAX_YIELDS = 8 }; // Of a value; from one point.

// A point, and the loop that is all its own, or NULL.
typedef struct tile {
  hd_accessor_t *a;
  const hd_stmt_t *loop, *point;
} tile_t;

static bool replaces_load(const hd_accessor_t *a, const hd_expr_t *e) {
  if (e->kind != HD_EXPR_LOAD && e->kind != HD_EXPR_LOADELSE &&
      e->kind != HD_EXPR_REF)
    return false;
  const hd_access_hook_t *hook = hd_accessor_hook(a, e->u.var);
  return hook && hook->load;
}

static bool is_kept(void *argument, const hd_expr_t *e) {
  return !replaces_load(argument, e);
}

bool hd_access_has_point(const hd_accessor_t *a, const hd_stmt_t *point) {
  const hd_access_hook_t *hook =
      hd_accessor_hook(a, point->u.point.place->u.var);
  return (hook && hook->store) ||
         !hd_walk_expr(point->u.point.value, is_kept, (void *)(uintptr_t)a);
}

// --- Putting back ---

static void push_around(const tile_t *tile, hd_block_t body) {
  hd_builder_t *b = &tile->a->b;
  if (!tile->loop) {
    hd_b_if(b, NULL, body, (hd_block_t){0});
    return;
  }
  hd_stmt_t *loop = hd_stmt_copy(b->arena, tile->loop);
  loop->u.mapfor.body = body;
  hd_b_push(b, loop);
}

static void push_point(const tile_t *tile, const hd_stmt_t *point) {
  push_around(tile, hd_block_make(tile->a->b.arena, &point, 1));
}

static void push_value(const tile_t *tile, const hd_expr_t *value) {
  hd_stmt_t *point = hd_stmt_copy(tile->a->b.arena, tile->point);
  point->u.point.value = value;
  push_point(tile, point);
}

// place = value by the loop, statement by statement.
static void push_store(const tile_t *tile, const hd_expr_t *value) {
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
  push_around(tile, hd_b_close(b));
}

// --- Expressions ---

// Begins what ends by end_names().
typedef struct names {
  hd_open_block_t block;
  hd_rewriter_t rewriter; // Puts values for names.
} names_t;

static void begin_names(hd_accessor_t *a, names_t *names) {
  *names = (names_t){.rewriter = {.arena = a->b.arena}};
  hd_b_open(&a->b, &names->block);
}

// The expression without the names that were pushed; NULL where it is too
// large.
static const hd_expr_t *without_names(names_t *names, const hd_expr_t *e) {
  e = hd_rewrite_expr(&names->rewriter, e);
  return hd_expr_count(e, MAX_NODES) < MAX_NODES ? e : NULL;
}

// Learns what a statement names. False where it does something else, too.
static bool learn_name(names_t *names, const hd_stmt_t *stmt) {
  if (stmt->kind != HD_STMT_LET || !hd_expr_is_pure(stmt->u.let.value))
    return false;
  const hd_expr_t *value = without_names(names, stmt->u.let.value);
  if (value)
    hd_rewriter_substitute(&names->rewriter, stmt->u.let.var, value);
  return value;
}

static bool learn_all(hd_accessor_t *a, names_t *names) {
  a->b.block = names->block.outer;
  for (size_t i = 0; i < names->block.stmts.size; i++)
    if (!learn_name(names, names->block.stmts.data[i]))
      return false;
  return true;
}

// e as one expression; NULL where it takes statements.
static const hd_expr_t *as_expression(hd_accessor_t *a, const hd_expr_t *e) {
  names_t names;
  begin_names(a, &names);
  e = hd_access_expr(a, e);
  e = learn_all(a, &names) ? without_names(&names, e) : NULL;
  hd_rewriter_fini(&names.rewriter);
  return e;
}

static bool same_size(const hd_expr_t *x, const hd_expr_t *y) {
  int64_t a, b;
  return hd_expr_equal(x, y) ||
         (hd_expr_fold_int(x, &a) && hd_expr_fold_int(y, &b) && a == b);
}

// Whether an access is outside its tensor wherever the guard is not held.
static bool says(const hd_expr_t *access, const hd_access_guard_t *guard) {
  for (unsigned i = 0; i < access->num_operands; i++)
    if (hd_expr_equal(access->operands[i], guard->index) &&
        same_size(access->u.var->tensor->shape[i], guard->size))
      return true;
  return false;
}

static bool is_certain(const hd_access_guard_t *guard) {
  int64_t index, size;
  return hd_expr_fold_int(guard->index, &index) &&
         hd_expr_fold_int(guard->size, &size) && index >= 0 && index < size;
}

static bool is_global_load(const hd_expr_t *e) {
  return e->kind == HD_EXPR_LOAD && !e->linear &&
         e->u.var->tensor->scope == HD_SCOPE_GLOBAL;
}

static bool says_not(void *argument, const hd_expr_t *e) {
  return !is_global_load(e) || !says(e, argument);
}

// --- Loads ---

// Those guards that the value's own loads do not imply; NULL: none.
static const hd_expr_t *guards_of(hd_accessor_t *a, names_t *names,
                                  const hd_expr_t *value) {
  const hd_expr_t *all = NULL;
  for (size_t i = 0; i < a->guards.size; i++) {
    hd_access_guard_t guard = a->guards.data[i];
    guard.index = hd_rewrite_expr(&names->rewriter, guard.index);
    if (is_certain(&guard) || !hd_walk_expr(value, says_not, &guard))
      continue;
    hd_tensor_t line = {.rank = 1, .shape = &guard.size};
    all = hd_b_and(&a->b, all, hd_access_inside(a, &line, &guard.index, 1));
  }
  return all;
}

// The value of a load point as one expression; NULL where it takes statements.
static const hd_expr_t *guarded_expression(hd_accessor_t *a,
                                           const hd_expr_t *value) {
  names_t names;
  begin_names(a, &names);
  a->is_guarded = true;
  a->guards.size = 0;
  value = hd_access_expr(a, value);
  a->is_guarded = false;
  value = learn_all(a, &names) ? without_names(&names, value) : NULL;
  const hd_expr_t *all = value ? guards_of(a, &names, value) : NULL;
  hd_rewriter_fini(&names.rewriter);
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
  if (is_global_load(e))
    insides->all = hd_b_and(&insides->a->b, insides->all,
                            hd_access_inside(insides->a, e->u.var->tensor,
                                             e->operands, e->type.lanes));
  return true;
}

static void replace_in_load(const tile_t *tile) {
  hd_accessor_t *a = tile->a;
  const hd_expr_t *old = tile->point->u.point.value;
  const hd_expr_t *value = guarded_expression(a, old);
  if (value) {
    push_value(tile, value);
    return;
  }
  insides_t insides = {a, NULL};
  hd_walk_expr(old, visit_inside, &insides);
  push_store(tile, insides.all ? hd_expr_select(a->b.arena, insides.all, old,
                                                hd_access_zero(a, old->type))
                               : old);
}

static void replace_in_register(const tile_t *tile) {
  const hd_expr_t *old = tile->point->u.point.value;
  const hd_expr_t *value = as_expression(tile->a, old);
  if (value)
    push_value(tile, value);
  else
    push_store(tile, old);
}

// --- Yields ---

typedef struct zeros {
  hd_accessor_t *a;
  bool all; // Else those that hooks replace.
} zeros_t;

static const hd_expr_t *else_zero(hd_rewriter_t *rewriter, const hd_expr_t *e) {
  const zeros_t *zeros = rewriter->argument;
  const hd_expr_t *operands[HD_MAX_RANK + 1];
  if (!is_global_load(e) || e->num_operands == 0 ||
      !(zeros->all || replaces_load(zeros->a, e)))
    return e;
  for (unsigned i = 0; i < e->num_operands; i++)
    operands[i] = e->operands[i];
  operands[e->num_operands] = hd_access_zero(zeros->a, e->type);
  return hd_expr_access(rewriter->arena, HD_EXPR_LOADELSE, e->u.var,
                        e->type.lanes, operands, e->num_operands + 1);
}

// The value, where an element outside its tensor is 0 if the yield is staged,
// for then the value is evaluated outside, too. all: of every tensor; those
// that stay are the point's business otherwise.
static const hd_expr_t *yielded(const tile_t *tile, bool all) {
  const hd_expr_t *value = tile->point->u.point.value;
  if (!tile->point->u.point.staging)
    return value;
  zeros_t zeros = {tile->a, all};
  hd_rewriter_t rewriter = {
      .arena = tile->a->b.arena, .argument = &zeros, .expr = else_zero};
  value = hd_rewrite_expr(&rewriter, value);
  hd_rewriter_fini(&rewriter);
  return value;
}

// A staged yield begins with a barrier.
static void push_barrier(const tile_t *tile) {
  hd_builder_t *b = &tile->a->b;
  const hd_expr_t *operands[] = {tile->point->u.point.barrier,
                                 tile->point->u.point.threads};
  if (!operands[0])
    hd_b_barrier(b);
  else
    hd_b_call(b, hd_b_intrinsic(b, HD_INTRINSIC_BARRIER_SYNC, hd_type(HD_VOID),
                                operands, 2));
}

// What the hook does, or a store, for each element that is inside. hook: may be
// NULL.
static void yield_by_element(const tile_t *tile, const hd_access_hook_t *hook) {
  hd_accessor_t *a = tile->a;
  hd_builder_t *b = &a->b;
  const hd_expr_t *place = tile->point->u.point.place, *at[HD_MAX_RANK];
  const hd_expr_t *value = yielded(tile, true);
  bool is_staged = tile->point->u.point.staging;
  if (is_staged)
    push_barrier(tile);
  hd_open_block_t body, then;
  hd_b_open(b, &body);
  if (is_staged)
    value = hd_b_let(b, "value", hd_access_expr(a, value));
  hd_access_name_indices(a, place->operands, place->num_operands, at);
  hd_b_open(b, &then);
  if (!is_staged)
    value = hd_b_let(b, "value", hd_access_expr(a, value));
  if (hook)
    hd_access_store(a, hook, at, value);
  else
    hd_b_store(b, place->u.var, at, place->num_operands, value);
  hd_block_t inside = hd_b_close(b);
  hd_b_if(b, hd_access_inside(a, place->u.var->tensor, at, 1), inside,
          (hd_block_t){0});
  push_around(tile, hd_b_close(b));
}

// What a yield becomes: yields of these values at these places.
typedef struct yields {
  unsigned count;
  const hd_expr_t *places[MAX_YIELDS], *values[MAX_YIELDS];
} yields_t;

// Learns a store that the hook pushed. False where it cannot be a yield.
static bool learn_store(yields_t *yields, names_t *names,
                        const hd_stmt_t *stmt) {
  const hd_var_t *var = stmt->kind == HD_STMT_STORE ? stmt->u.store.var : NULL;
  const hd_expr_t *indices[HD_MAX_RANK];
  if (!var || stmt->u.store.linear || yields->count == MAX_YIELDS ||
      var->tensor->scope != HD_SCOPE_GLOBAL ||
      stmt->u.store.value->type.lanes > 1 || hd_type_bits(var->type) < 8)
    return false;
  for (unsigned i = 0; i < stmt->u.store.num_indices; i++) {
    indices[i] = without_names(names, stmt->u.store.indices[i]);
    if (!indices[i])
      return false;
  }
  const hd_expr_t *value = without_names(names, stmt->u.store.value);
  yields->values[yields->count] = value;
  yields->places[yields->count++] =
      hd_expr_access(names->rewriter.arena, HD_EXPR_REF, var, 1, indices,
                     stmt->u.store.num_indices);
  return value;
}

// Whether each element that is outside the old tensor is outside the new one.
static bool is_bounded(const hd_expr_t *old, const hd_expr_t *place,
                       names_t *names) {
  for (unsigned i = 0; i < old->num_operands; i++) {
    hd_access_guard_t guard = {
        hd_rewrite_expr(&names->rewriter, old->operands[i]),
        old->u.var->tensor->shape[i]};
    if (!is_certain(&guard) && !says(place, &guard))
      return false;
  }
  return true;
}

static bool reads_shared(void *argument, const hd_expr_t *e) {
  (void)argument;
  return !hd_expr_is_access(e) || e->u.var->tensor->scope != HD_SCOPE_SHARED;
}

static bool find_yields(const tile_t *tile, const hd_access_hook_t *hook,
                        names_t *names, yields_t *yields) {
  hd_accessor_t *a = tile->a;
  const hd_expr_t *place = tile->point->u.point.place, *at[HD_MAX_RANK];
  begin_names(a, names);
  const hd_expr_t *value =
      hd_b_let(&a->b, "value", hd_access_expr(a, yielded(tile, false)));
  hd_access_name_indices(a, place->operands, place->num_operands, at);
  hd_access_store(a, hook, at, value);
  a->b.block = names->block.outer;
  for (size_t i = 0; i < names->block.stmts.size; i++)
    if (!learn_name(names, names->block.stmts.data[i]) &&
        !learn_store(yields, names, names->block.stmts.data[i]))
      return false;
  const hd_expr_t *old = hd_expr_access(a->b.arena, HD_EXPR_REF, place->u.var,
                                        1, at, place->num_operands);
  for (unsigned i = 0; i < yields->count; i++)
    if (!is_bounded(old, yields->places[i], names))
      return false;
  // Each evaluates the value anew, after staging has changed what it may read.
  return yields->count == 1 ||
         (yields->count > 1 && hd_walk_expr(value, reads_shared, NULL) &&
          hd_walk_expr(tile->point->u.point.value, reads_shared, NULL));
}

// Whether a yield goes to the same elements of a tensor like the old one, so
// that the old one's maps are maps of the new one.
static bool is_same_place(const hd_expr_t *old, const hd_expr_t *place) {
  const hd_tensor_t *from = old->u.var->tensor, *to = place->u.var->tensor;
  if (from->layout || to->layout || from->rank != to->rank ||
      !hd_type_equal(from->element, to->element))
    return false;
  for (unsigned i = 0; i < from->rank; i++)
    if (!same_size(from->shape[i], to->shape[i]) ||
        !hd_expr_equal(old->operands[i], place->operands[i]))
      return false;
  return true;
}

static void note_moved(hd_accessor_t *a, const hd_var_t *from,
                       const hd_var_t *to) {
  for (size_t i = 0; i < a->moved.size; i++)
    if (a->moved.data[i].from == from && a->moved.data[i].to == to)
      return;
  hd_access_moved_t moved = {from, to};
  hd_vec_push(a->b.arena, &a->moved, moved);
}

static void push_yields(const tile_t *tile, const yields_t *yields) {
  hd_accessor_t *a = tile->a;
  for (unsigned i = 0; i < yields->count; i++) {
    hd_stmt_t *point = hd_stmt_copy(a->b.arena, tile->point);
    const hd_expr_t *old = point->u.point.place, *place = yields->places[i];
    point->u.point.place = place;
    point->u.point.value = yields->values[i];
    if (yields->count > 1)
      point->u.point.buffers = 1; // The place comes round at once.
    if (!hd_type_equal(old->type, place->type)) {
      point->u.point.staging = NULL;
      point->u.point.barrier = point->u.point.threads = NULL;
    }
    if (is_same_place(old, place))
      note_moved(a, old->u.var, place->u.var);
    push_point(tile, point);
  }
}

static void replace_in_yield(const tile_t *tile) {
  hd_accessor_t *a = tile->a;
  const hd_access_hook_t *hook =
      hd_accessor_hook(a, tile->point->u.point.place->u.var);
  if (hook && hook->store) {
    names_t names;
    yields_t yields = {0};
    if (find_yields(tile, hook, &names, &yields))
      push_yields(tile, &yields);
    else
      yield_by_element(tile, hook);
    hd_rewriter_fini(&names.rewriter);
    return;
  }
  const hd_expr_t *value = as_expression(a, yielded(tile, false));
  if (value)
    push_value(tile, value);
  else
    yield_by_element(tile, NULL);
}

void hd_access_point(hd_accessor_t *a, const hd_stmt_t *loop,
                     const hd_stmt_t *point) {
  static void (*const replace[])(const tile_t *) = {
      [HD_POINT_LOAD] = replace_in_load,
      [HD_POINT_REGISTER] = replace_in_register,
      [HD_POINT_YIELD] = replace_in_yield,
  };
  tile_t tile = {a, loop, point};
  a->b.loc = point->loc;
  replace[point->u.point.kind](&tile);
}
