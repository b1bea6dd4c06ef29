// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replacing accesses at yields: the value's loads, and the tensor that it goes
// to. See AccessPoint.c.

#include "IR/Effects.h"
#include "IR/Held.h"
#include "Schedule/Access/AccessPoint.h"

#include "IR/Intrinsic.h"

typedef struct zeros {
  hd_accessor_t *a;
  bool all; // Else those that hooks replace.
} zeros_t;

static const hd_expr_t *else_zero(hd_rewriter_t *rewriter, const hd_expr_t *e) {
  const zeros_t *zeros = rewriter->argument;
  const hd_expr_t *operands[HD_MAX_RANK + 1];
  if (!hd_expr_is_global_load(e) || e->num_operands == 0 ||
      !(zeros->all || hd_access_is_replaced(zeros->a, e)))
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
static const hd_expr_t *yielded(const hd_access_tile_t *tile, bool all) {
  const hd_expr_t *value = tile->point->u.point.value;
  if (!tile->point->u.point.staging)
    return value;
  zeros_t zeros = {tile->a, all};
  hd_rewriter_t rewriter = {
      .arena = tile->a->b.arena, .argument = &zeros, .expr = else_zero};
  value = hd_rewrite_expr(&rewriter, value);
  return value;
}

// A staged yield begins with a barrier.
static void push_barrier(const hd_access_tile_t *tile) {
  hd_builder_t *b = &tile->a->b;
  const hd_expr_t *operands[] = {tile->point->u.point.barrier,
                                 tile->point->u.point.threads};
  if (!operands[0])
    hd_b_barrier(b);
  else
    hd_b_call(b, hd_b_intrinsic(b, HD_INTRINSIC_BARRIER_SYNC, hd_type(HD_VOID),
                                operands, 2));
}

// Registers for what a yield's loop leaves; NULL: its text does not say who has
// an element's neighbours.
static const hd_var_t *make_stay(const hd_access_tile_t *tile, hd_scalar_t type,
                                 const hd_expr_t *init) {
  const hd_mapping_t *mapping =
      tile->loop ? tile->loop->u.mapfor.mapping : NULL;
  if (!mapping || mapping->rank != 1 || mapping->kind != HD_MAPPING_REPEAT ||
      !tile->point->u.point.across[HD_ACROSS_LANE])
    return NULL;
  return hd_b_register(&tile->a->b, "stays", type, mapping->dims, 1, init);
}

typedef struct stay {
  const hd_var_t *from, *kept, *at;
} stay_t;

// What is stored where it would stay goes to registers.
static bool keep_store(hd_rewriter_t *rewriter, const hd_stmt_t *stmt,
                       hd_stmt_list_t *out) {
  const stay_t *stay = rewriter->argument;
  if (stmt->kind != HD_STMT_STORE || stmt->u.store.var != stay->from)
    return false;
  hd_stmt_t *kept = hd_stmt_copy(rewriter->arena, stmt);
  const hd_expr_t **at = HD_ARENA_ARRAY(rewriter->arena, const hd_expr_t *, 1);
  at[0] = hd_expr_var(rewriter->arena, stay->at);
  kept->u.store.var = stay->kept;
  kept->u.store.indices = at;
  kept->u.store.num_indices = 1;
  hd_stmt_list_push(rewriter->arena, out, kept);
  return true;
}

// What the hook does, or a store, for each element that is inside. hook: may be
// NULL.
static void yield_by_element(const hd_access_tile_t *tile,
                             const hd_access_hook_t *hook) {
  hd_accessor_t *a = tile->a;
  hd_builder_t *b = &a->b;
  const hd_expr_t *place = tile->point->u.point.place, *at[HD_MAX_RANK];
  const hd_expr_t *value = yielded(tile, true);
  bool is_staged = tile->point->u.point.staging;
  if (is_staged)
    push_barrier(tile);
  hd_open_block_t body, then;
  const hd_var_t *stays = hook ? hook->stays : NULL;
  hd_scalar_t type = stays ? (hd_scalar_t)stays->type.scalar : HD_VOID;
  const hd_var_t *kept =
      stays ? make_stay(tile, type, hd_access_zero(a, stays->type)) : NULL;
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
  if (kept) {
    stay_t stay = {stays, kept, tile->loop->u.mapfor.vars[0]};
    hd_rewriter_t rewriter = {
        .arena = b->arena, .argument = &stay, .enter = keep_store};
    inside = hd_rewrite_block(&rewriter, inside);
  }
  hd_b_if(b, hd_access_inside(a, place->u.var->tensor, at, 1), inside,
          (hd_block_t){0});
  hd_access_push_around(tile, hd_b_close(b));
  if (stays)
    hook->stayed(hook->argument, b, tile->loop, kept);
}

// Learns a store that the hook pushed, under a condition. False where it cannot
// be a yield.
static bool learn_store(hd_access_yields_t *yields, hd_access_names_t *names,
                        const hd_stmt_t *stmt, const hd_expr_t *condition) {
  const hd_var_t *var = stmt->u.store.var;
  const hd_expr_t *indices[HD_MAX_RANK];
  if (stmt->u.store.linear || yields->count == HD_ACCESS_YIELDS ||
      var->tensor->scope != HD_SCOPE_GLOBAL ||
      stmt->u.store.value->type.lanes > 1 || hd_type_bits(var->type) < 8)
    return false;
  for (unsigned i = 0; i < stmt->u.store.num_indices; i++) {
    indices[i] = hd_access_without_names(names, stmt->u.store.indices[i]);
    if (!indices[i])
      return false;
    indices[i] = hd_access_joined(names->rewriter.arena, indices[i]);
  }
  const hd_expr_t *value = hd_access_without_names(names, stmt->u.store.value);
  const hd_expr_t *place =
      hd_expr_access(names->rewriter.arena, HD_EXPR_REF, var, 1, indices,
                     stmt->u.store.num_indices);
  yields->values[yields->count] = value;
  yields->conditions[yields->count] = condition;
  yields->places[yields->count++] = place;
  return value && (!condition || hd_access_says_condition(place, condition));
}

// Learns what the hook pushed. False where it is more than names and stores,
// some of them under conditions that their places say themselves.
static bool learn_stores(hd_access_yields_t *yields, hd_access_names_t *names,
                         const hd_stmt_t *const *stmts, size_t count,
                         const hd_expr_t *condition) {
  for (size_t i = 0; i < count; i++) {
    const hd_stmt_t *stmt = stmts[i];
    const hd_expr_t *also = NULL;
    bool ok = false;
    switch (stmt->kind) {
    case HD_STMT_STORE:
      ok = learn_store(yields, names, stmt, condition);
      break;
    case HD_STMT_IF:
      also = hd_access_without_names(names, stmt->u.branch.condition);
      if (also && condition)
        also =
            hd_expr_binary(names->rewriter.arena, HD_EXPR_AND, condition, also);
      ok = also && stmt->u.branch.otherwise.size == 0 &&
           learn_stores(yields, names, stmt->u.branch.then.stmts,
                        stmt->u.branch.then.size, also);
      break;
    default:
      ok = hd_access_learn_name(names, stmt);
    }
    if (!ok)
      return false;
  }
  return true;
}

// Where each element that is outside the old tensor is outside the new one, or
// all of a staged tile is inside the old one: *whole, a condition without the
// loop's variables, or NULL where there is no need of one. False: neither is
// known.
static bool is_bounded(const hd_access_tile_t *tile, const hd_expr_t *old,
                       const hd_expr_t *place, hd_access_names_t *names,
                       const hd_expr_t **whole) {
  for (unsigned i = 0; i < old->num_operands; i++) {
    hd_access_guard_t guard = {
        hd_rewrite_expr(&names->rewriter, old->operands[i]),
        old->u.var->tensor->shape[i]};
    if (hd_access_is_certain(&guard) || hd_access_says(place, &guard))
      continue;
    const hd_expr_t *all =
        tile->loop && tile->point->u.point.staging
            ? hd_access_all_hold(&tile->a->b, tile->loop, &guard)
            : NULL;
    if (!all)
      return false;
    *whole = hd_b_and(&tile->a->b, *whole, all);
  }
  return true;
}

static bool reads_shared(void *argument, const hd_expr_t *e) {
  (void)argument;
  return !hd_expr_is_access(e) || e->u.var->tensor->scope != HD_SCOPE_SHARED;
}

// is_open: of any value, a name that stands for it. *whole: what is_bounded()
// says, of all places.
static bool find_yields(const hd_access_tile_t *tile,
                        const hd_access_hook_t *hook, bool is_open,
                        hd_access_names_t *names, hd_access_yields_t *yields,
                        const hd_expr_t **whole) {
  hd_accessor_t *a = tile->a;
  const hd_expr_t *place = tile->point->u.point.place, *at[HD_MAX_RANK];
  hd_access_begin_names(a, names);
  const hd_expr_t *value = tile->point->u.point.value;
  if (is_open)
    value = hd_expr_var(a->b.arena, hd_var_make(a->b.arena, "value", HD_VAR_LET,
                                                value->type, tile->point->loc));
  else
    value = hd_b_let(&a->b, "value", hd_access_expr(a, yielded(tile, false)));
  hd_access_name_indices(a, place->operands, place->num_operands, at);
  hd_access_store(a, hook, at, value);
  a->b.block = names->block.outer;
  if (!learn_stores(yields, names, names->block.stmts.data,
                    names->block.stmts.size, NULL))
    return false;
  const hd_expr_t *old = hd_expr_access(a->b.arena, HD_EXPR_REF, place->u.var,
                                        1, at, place->num_operands);
  for (unsigned i = 0; i < yields->count; i++)
    if (!is_bounded(tile, old, yields->places[i], names, whole))
      return false;
  // Each evaluates the value anew, after staging has changed what it may read.
  return yields->count == 1 ||
         (yields->count > 1 && hd_walk_expr(value, reads_shared, NULL) &&
          hd_walk_expr(tile->point->u.point.value, reads_shared, NULL));
}

// Rows that a tensor map may have: of multiples of 16 bytes.
static bool has_map_rows(const hd_tensor_t *tensor) {
  const hd_expr_t *last = tensor->rank ? tensor->shape[tensor->rank - 1] : NULL;
  return last && hd_expr_is_const(last) &&
         last->u.i * hd_type_bits(tensor->element) % 128 == 0;
}

// Whether a yield goes to the same elements of a tensor like the old one, so
// that the old one's maps are maps of the new one: of narrower elements they
// take more.
static bool is_same_place(const hd_expr_t *old, const hd_stmt_t *point) {
  const hd_expr_t *place = point->u.point.place;
  const hd_tensor_t *from = old->u.var->tensor, *to = place->u.var->tensor;
  if (from->layout || to->layout || from->rank != to->rank ||
      (!hd_type_equal(from->element, to->element) &&
       !(point->u.point.staging && has_map_rows(to))))
    return false;
  for (unsigned i = 0; i < from->rank; i++)
    if (!hd_access_same_size(from->shape[i], to->shape[i]) ||
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

// A staging tensor for elements of another type, in the same layout, which
// takes the old one's place; NULL: there would be no room.
static const hd_var_t *staged_as(hd_accessor_t *a, const hd_var_t *from,
                                 hd_type_t type) {
  for (size_t i = 0; i < a->staged.size; i++)
    if (a->staged.data[i].from == from)
      return hd_type_holds(a->staged.data[i].to->type, type)
                 ? a->staged.data[i].to
                 : NULL;
  if (hd_type_bits(type) < 8 || hd_type_bits(type) > hd_type_bits(from->type))
    return NULL;
  hd_tensor_t *tensor = HD_ARENA_COPY(a->b.arena, hd_tensor_t, from->tensor);
  tensor->element = type;
  hd_access_staged_t staged = {
      from, hd_var_make_tensor(a->b.arena, from->name, tensor, from->loc)};
  hd_vec_push(a->b.arena, &a->staged, staged);
  return staged.to;
}

// Of results of other types. Those that go to several places have one where the
// widest has room for the others, one after the other; there is no room for
// several.
static void change_staging(hd_accessor_t *a, hd_stmt_t *point,
                           const hd_type_t *type) {
  const hd_expr_t *staging = point->u.point.staging;
  const hd_var_t *var =
      staging && type ? staged_as(a, staging->u.var, *type) : NULL;
  if (var) {
    point->u.point.staging =
        hd_expr_access(a->b.arena, HD_EXPR_REF, var, 1, staging->operands,
                       staging->num_operands);
    return;
  }
  point->u.point.staging = NULL;
  point->u.point.barrier = point->u.point.threads = NULL;
}

// The type that has room for all; false: none has.
static bool find_widest(const hd_access_yields_t *yields, hd_type_t *type) {
  *type = yields->places[0]->type;
  for (unsigned i = 1; i < yields->count; i++)
    if (!hd_type_holds(*type, yields->places[i]->type))
      *type = yields->places[i]->type;
  for (unsigned i = 0; i < yields->count; i++)
    if (!hd_type_holds(*type, yields->places[i]->type))
      return false;
  return true;
}

// The point, where its condition may hold for some of the tile's elements.
static void push_some(const hd_access_tile_t *tile, const hd_stmt_t *point,
                      const hd_expr_t *condition) {
  hd_builder_t *b = &tile->a->b;
  const hd_expr_t *some = condition && tile->loop
                              ? hd_access_may_hold(b, tile->loop, condition)
                              : NULL;
  if (!some) {
    hd_access_push_point(tile, point);
    return;
  }
  hd_open_block_t then;
  hd_b_open(b, &then);
  hd_access_push_point(tile, point);
  hd_b_if(b, some, hd_b_close(b), (hd_block_t){0});
}

// What a yield's loop leaves in registers, which are returned; NULL: its text
// does not say who has an element's neighbours.
static const hd_var_t *push_stay(const hd_access_tile_t *tile,
                                 const hd_expr_t *value) {
  hd_builder_t *b = &tile->a->b;
  const hd_var_t *kept = make_stay(tile, (hd_scalar_t)value->type.scalar, NULL);
  if (!kept)
    return NULL;
  const hd_expr_t *e = hd_expr_var(b->arena, tile->loop->u.mapfor.vars[0]);
  hd_open_block_t body;
  hd_b_open(b, &body);
  hd_b_store(b, kept, &e, 1, value);
  hd_access_push_around(tile, hd_b_close(b));
  return kept;
}

// open: as yields, of any value, where something is read early; or NULL.
// always: whatever the tile is; else staging's places come round without this.
static void push_yields(const hd_access_tile_t *tile,
                        const hd_access_hook_t *hook,
                        const hd_access_yields_t *yields,
                        const hd_access_yields_t *open, bool always) {
  hd_accessor_t *a = tile->a;
  hd_type_t widest;
  bool together = yields->count && find_widest(yields, &widest);
  const hd_var_t *kept = NULL;
  for (unsigned i = 0; i < yields->count; i++) {
    hd_stmt_t *point = hd_stmt_copy(a->b.arena, tile->point);
    const hd_expr_t *old = point->u.point.place, *place = yields->places[i];
    point->u.point.place = place;
    if (point->u.point.kind == HD_POINT_EXPECT) {
      if (place->u.var == hook->stays)
        continue;
      point->u.point.value = hd_expect_value(a->b.arena, place->type);
      hd_access_push_point(tile, point);
      continue;
    }
    point->u.point.value =
        open ? hd_access_with_early(a, point, i, open->values[i],
                                    yields->values[i])
             : yields->values[i];
    if (place->u.var == hook->stays) {
      kept = push_stay(tile, point->u.point.value);
      continue;
    }
    if (yields->count > 1 || yields->conditions[i] || !always)
      point->u.point.buffers = 1; // The place comes round at once, or early.
    if (!hd_type_equal(old->type, together ? widest : place->type))
      change_staging(a, point, together ? &widest : NULL);
    if (is_same_place(old, point))
      note_moved(a, old->u.var, place->u.var);
    push_some(tile, point, yields->conditions[i]);
  }
  if (hook->stays && tile->point->u.point.kind == HD_POINT_YIELD)
    hook->stayed(hook->argument, &a->b, tile->loop, kept);
}

// Yields where all of the tile is inside; else what is, element by element.
static void push_whole(const hd_access_tile_t *tile,
                       const hd_access_hook_t *hook,
                       const hd_access_yields_t *yields,
                       const hd_access_yields_t *open, const hd_expr_t *whole) {
  hd_builder_t *b = &tile->a->b;
  hd_open_block_t block;
  hd_b_open(b, &block);
  push_yields(tile, hook, yields, open, false);
  hd_block_t then = hd_b_close(b);
  hd_b_open(b, &block);
  yield_by_element(tile, hook);
  hd_b_if(b, whole, then, hd_b_close(b));
}

void hd_access_yield(const hd_access_tile_t *tile) {
  hd_accessor_t *a = tile->a;
  const hd_access_hook_t *hook =
      hd_accessor_hook(a, tile->point->u.point.place->u.var);
  if (hook && hook->store) {
    hd_access_names_t names;
    hd_access_yields_t yields = {0}, open = {0};
    const hd_expr_t *whole = NULL, *same = NULL;
    bool is_expected = tile->point->u.point.kind == HD_POINT_EXPECT;
    bool found = find_yields(tile, hook, is_expected, &names, &yields, &whole);
    if (whole && hook->stays)
      found = false;
    bool is_early = found && !is_expected && tile->point->u.point.early &&
                    find_yields(tile, hook, true, &names, &open, &same);
    if (found && is_expected)
      hd_access_read_early(tile, &yields, false);
    if (found && whole && !is_expected)
      push_whole(tile, hook, &yields, is_early ? &open : NULL, whole);
    else if (found)
      push_yields(tile, hook, &yields, is_early ? &open : NULL, true);
    else if (!is_expected)
      yield_by_element(tile, hook);
    return;
  }
  const hd_expr_t *value = hd_access_as_expression(a, yielded(tile, false));
  if (value)
    hd_access_push_value(tile, value);
  else
    yield_by_element(tile, NULL);
}
