// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pass lower-points: fusion points become copies and stores.
//
//   for i, p in repeat(4, 1) * spatial(32, 8) * repeat(1, 8) on thread {
//     load s[i, p] <- a[row + i, t * 64 + p]
//   }
//
// becomes
//
//   if k % 8 == 0 {
//     for i, p in repeat(4, 1) * spatial(32, 8) on thread {
//       cp_async_zfill(s[i, p * 8], a[row + i, t * 64 + p * 8], 16,
//                      row + i < m && t * 64 + p * 8 < k ? 16 : 0, cg)
//     }
//   } else {
//     for i, p in repeat(4, 1) unroll(1) {          // push_in_batches()
//       16 elements a thread to registers, then to s
//     }
//   }
//
// What a load finds outside the tensors that it reads is 0. It is a copy by
// hardware (cp.async) where its value is an element of a tensor as it is, goes
// to shared memory, and 16 bytes of a row are aligned or it has 4 or 8 itself;
// else values pass through registers. Which thread copies what to shared memory
// is the compiler's choice: all of a tile is there for all after a wait and a
// barrier.
//
// A register point is a store. LowerYield.c has the results.
//
// Requires nothing; looks at loops over mappings, so it comes before they are
// lowered, but after the functions that hold points have been inlined.

#include "TaskMapping/Passes.h"
#include "TaskMapping/Points.h"

#include <string.h>

static bool is_global_load(const hd_expr_t *e) {
  return e->kind == HD_EXPR_LOAD && !e->linear &&
         e->u.var->tensor->scope == HD_SCOPE_GLOBAL;
}

// The tensors' elements that a value reads.
enum { MAX_SOURCES = 8 };
typedef struct sources {
  unsigned count;
  bool ok; // All are scalars, and not too many.
  const hd_expr_t *loads[MAX_SOURCES];
} sources_t;

static bool visit_source(void *argument, const hd_expr_t *e) {
  sources_t *sources = argument;
  if (!is_global_load(e))
    return true;
  sources->ok &= sources->count < MAX_SOURCES && e->type.lanes == 1;
  if (sources->ok)
    sources->loads[sources->count++] = e;
  return sources->ok;
}

static sources_t sources_of(const hd_expr_t *value) {
  sources_t sources = {.ok = true};
  hd_walk_expr(value, visit_source, &sources);
  return sources;
}

typedef struct guard {
  hd_point_lowering_t *l;
  const hd_expr_t *all;
} guard_t;

// After its operands: an index that is itself read is tested first.
static const hd_expr_t *test_load(hd_rewriter_t *rewriter, const hd_expr_t *e) {
  guard_t *guard = rewriter->argument;
  if (is_global_load(e))
    guard->all = hd_inside(guard->l, e, guard->all);
  return e;
}

// The value where all that it reads is there, else 0.
static const hd_expr_t *guarded(hd_point_lowering_t *l,
                                const hd_expr_t *value) {
  const hd_expr_t *zero = hd_zero(l->arena, value->type);
  sources_t sources = sources_of(value);
  if (is_global_load(value) && sources.count == 1 &&
      value->u.var->tensor->rank > 0) {
    const hd_expr_t *operands[HD_MAX_RANK + 1];
    for (unsigned i = 0; i < value->num_operands; ++i)
      operands[i] = value->operands[i];
    operands[value->num_operands] = zero;
    return hd_expr_access(l->arena, HD_EXPR_LOADELSE, value->u.var, 1, operands,
                          value->num_operands + 1);
  }
  guard_t guard = {l, NULL};
  hd_rewriter_t rewriter = {
      .arena = l->arena, .argument = &guard, .expr = test_load};
  hd_rewrite_expr(&rewriter, value);
  return guard.all ? hd_expr_select(l->arena, guard.all, value, zero) : value;
}

// Whether the hardware can copy by itself: an element as it is, to shared
// memory, from a place that no other tensor says.
static bool is_copy(const hd_tile_t *tile) {
  const hd_expr_t *place = tile->point->u.point.place;
  const hd_expr_t *value = tile->point->u.point.value;
  return place->u.var->tensor->scope == HD_SCOPE_SHARED &&
         is_global_load(value) && !value->u.var->table &&
         sources_of(value).count == 1 && value->u.var->tensor->rank > 0;
}

// cp_async of some bytes from one tensor to the other, or of zeros.
static hd_block_t copy_bytes(const hd_tile_t *tile, const hd_expr_t *to,
                             const hd_expr_t *from, int64_t bytes) {
  hd_point_lowering_t *l = tile->l;
  const hd_expr_t *all = hd_expr_i32(l->arena, bytes);
  const hd_expr_t *operands[] = {
      to,
      hd_expr_make(l->arena, HD_EXPR_REF, from->type, from, from->operands,
                   from->num_operands),
      all,
      hd_expr_select(l->arena, hd_inside(l, from, NULL), all,
                     hd_expr_i32(l->arena, 0)),
      // Past the L1 cache, which shorter copies cannot leave out.
      hd_expr_i32(l->arena,
                  bytes == HD_POINT_CHUNK ? HD_CACHE_CG : HD_CACHE_CA)};
  hd_stmt_list_t list = {0};
  hd_push_call(tile, HD_INTRINSIC_CP_ASYNC_ZFILL, operands, 5, &list);
  return hd_block_of(l->arena, &list);
}

static void push_one_by_one(const hd_tile_t *tile, const hd_mapping_t *mapping,
                            int32_t unroll, hd_stmt_list_t *out) {
  const hd_expr_t *to = tile->point->u.point.place;
  const hd_expr_t *from = tile->point->u.point.value;
  int64_t bits = hd_type_bits(to->type);
  hd_nest_t nest = {0};
  if (tile->loop) {
    nest = hd_nest_begin(tile, mapping, 1, unroll);
    to = hd_nest_expr(&nest, to);
    from = hd_nest_expr(&nest, from);
  }
  hd_block_t block =
      is_copy(tile) && (bits == 32 || bits == 64)
          ? copy_bytes(tile, to, from, bits / 8)
          : hd_block_of_one(tile->l->arena,
                            hd_make_store(tile, to, guarded(tile->l, from)));
  if (tile->loop)
    hd_nest_end(&nest, NULL, block, out);
  else
    hd_push_if(tile, NULL, block, (hd_block_t){0}, out);
}

// So many loads of a thread are under way at once.
enum { MAX_BATCH = 16 };

static bool count_node(void *argument, const hd_expr_t *e) {
  (void)e;
  ++*(int64_t *)argument;
  return true;
}

// Of long values fewer: each is a copy of the code.
static int64_t batch_of(const hd_expr_t *value) {
  enum { LONG = 80 };
  int64_t nodes = 0;
  hd_walk_expr(value, count_node, &nodes);
  return nodes > LONG ? MAX_BATCH / 4 : MAX_BATCH;
}

// A mapping repeat * ... in two: repeat(outer) on its own, and what is left,
// with so many rounds at most. False where it is no such mapping.
static bool divide_rounds(hd_arena_t *arena, const hd_mapping_t *m,
                          int64_t most, const hd_mapping_t **outer,
                          const hd_mapping_t **inner) {
  if (m->kind != HD_MAPPING_COMPOSE || m->left->kind != HD_MAPPING_REPEAT ||
      m->left->order)
    return false;
  int64_t rounds[HD_MAPPING_MAX_RANK], batch[HD_MAPPING_MAX_RANK], count = 1;
  for (unsigned a = m->rank; a-- > 0;) {
    int64_t all = m->left->dims[a];
    batch[a] = all < most / count ? all : most / count;
    while (all % batch[a])
      batch[a]--;
    rounds[a] = all / batch[a];
    count *= batch[a];
  }
  *outer = hd_mapping_repeat(arena, rounds, NULL, m->rank);
  *inner = hd_mapping_compose(
      arena, hd_mapping_repeat(arena, batch, NULL, m->rank), m->right);
  return count > 1 && *outer && *inner;
}

// An element of the tile for each worker, by a loop of its own.
static hd_stmt_t *make_loop(hd_point_lowering_t *l, const hd_tile_t *tile,
                            const hd_mapping_t *mapping, int32_t unroll,
                            const hd_expr_t **values) {
  hd_stmt_t *loop = hd_stmt_copy(l->arena, tile->loop);
  const hd_var_t **vars =
      HD_ARENA_ARRAY(l->arena, const hd_var_t *, mapping->rank);
  for (unsigned a = 0; a < mapping->rank; ++a) {
    const hd_var_t *old = tile->loop->u.mapfor.vars[a];
    vars[a] =
        hd_var_make(l->arena, old->name, HD_VAR_LOOP, old->type, old->loc);
    values[a] = hd_expr_var(l->arena, vars[a]);
  }
  loop->u.mapfor.vars = vars;
  loop->u.mapfor.mapping = mapping;
  loop->u.mapfor.worker = mapping->workers == 1 ? NULL : tile->worker;
  loop->u.mapfor.unroll = unroll;
  return loop;
}

static const hd_expr_t *at_tasks(const hd_tile_t *tile, const hd_expr_t *e,
                                 const hd_expr_t *const *tasks) {
  hd_rewriter_t rewriter = {.arena = tile->l->arena};
  for (unsigned a = 0; a < tile->mapping->rank; ++a)
    hd_rewriter_substitute(&rewriter, tile->loop->u.mapfor.vars[a], tasks[a]);
  return hd_rewrite_expr(&rewriter, e);
}

// A register for each element of a batch that a worker has.
static hd_var_t *make_batch(hd_point_lowering_t *l, const hd_tile_t *tile,
                            const hd_mapping_t *inner) {
  hd_type_t type = tile->point->u.point.place->type;
  hd_layout_t *layout =
      hd_arena_alloc(l->arena, sizeof(*layout) + sizeof(layout->items[0]));
  memset(layout, 0, sizeof(*layout) + sizeof(layout->items[0]));
  layout->num_items = 1;
  layout->items[0] =
      (hd_layout_item_t){.kind = HD_LAYOUT_LOCAL, .mapping = inner};
  const hd_expr_t **shape =
      HD_ARENA_ARRAY(l->arena, const hd_expr_t *, inner->rank);
  for (unsigned a = 0; a < inner->rank; ++a)
    shape[a] = hd_expr_i32(l->arena, inner->dims[a]);
  hd_tensor_t *tensor = HD_ARENA_NEW(l->arena, hd_tensor_t);
  *tensor = (hd_tensor_t){.element = type,
                          .scope = HD_SCOPE_REGISTER,
                          .rank = inner->rank,
                          .shape = shape,
                          .layout = layout};
  return hd_var_make_tensor(l->arena, "batch", tensor, tile->point->loc);
}

// Through registers, a batch at a time: its loads are asked for before the
// first of them is stored.
//
//   for i0, p0 in repeat(4, 1) unroll(1) {
//     register batch: f16[32, 8] layout(local(M))
//     for i, p in M on thread unroll { batch[i, p] = a[...] else 0 }
//     for i, p in M on thread unroll { s[...] = batch[i, p] }
//   }
static bool push_in_batches(const hd_tile_t *tile, const hd_mapping_t *mapping,
                            hd_stmt_list_t *out) {
  hd_point_lowering_t *l = tile->l;
  const hd_mapping_t *outer, *inner;
  const hd_expr_t *rounds[HD_MAPPING_MAX_RANK], *at[HD_MAPPING_MAX_RANK];
  if (!divide_rounds(l->arena, mapping, batch_of(tile->point->u.point.value),
                     &outer, &inner))
    return false;
  hd_var_t *batch = make_batch(l, tile, inner);
  hd_stmt_t *declare =
      hd_stmt_make(l->arena, HD_STMT_DECLARE, tile->point->loc);
  declare->u.declare.var = batch;
  hd_stmt_list_t body = {0};
  hd_stmt_list_push(l->arena, &body, declare);
  hd_stmt_t *loop = make_loop(l, tile, outer, 1, rounds);
  for (int stores = 0; stores < 2; stores++) {
    hd_stmt_t *each = make_loop(l, tile, inner, HD_UNROLL_FULL, at);
    const hd_expr_t *tasks[HD_MAPPING_MAX_RANK];
    for (unsigned a = 0; a < inner->rank; ++a)
      tasks[a] =
          hd_expr_binary(l->arena, HD_EXPR_ADD,
                         hd_expr_binary(l->arena, HD_EXPR_MUL, rounds[a],
                                        hd_expr_i32(l->arena, inner->dims[a])),
                         at[a]);
    const hd_expr_t *value =
        at_tasks(tile, guarded(l, tile->point->u.point.value), tasks);
    const hd_expr_t *cell =
        hd_expr_access(l->arena, HD_EXPR_LOAD, batch, 1, at, inner->rank);
    const hd_expr_t *place = at_tasks(tile, tile->point->u.point.place, tasks);
    each->u.mapfor.body =
        hd_block_of_one(l->arena, stores ? hd_make_store(tile, place, cell)
                                         : hd_make_store(tile, cell, value));
    hd_stmt_list_push(l->arena, &body, each);
  }
  loop->u.mapfor.body = hd_block_of(l->arena, &body);
  hd_stmt_list_push(l->arena, out, loop);
  return true;
}

// Elements side by side, where all are there, or zeros.
static hd_block_t store_chunk(const hd_nest_t *nest) {
  const hd_tile_t *tile = nest->tile;
  hd_point_lowering_t *l = tile->l;
  const hd_expr_t *place = tile->point->u.point.place;
  const hd_expr_t *value = tile->point->u.point.value, *inside = NULL;
  sources_t sources = sources_of(value);
  for (unsigned i = 0; i < sources.count; ++i)
    inside = hd_inside(l, hd_nest_first(nest, sources.loads[i]), inside);
  const hd_stmt_t *full =
      hd_make_store(tile, hd_nest_expr(nest, place), hd_nest_expr(nest, value));
  const hd_stmt_t *none = hd_make_store(tile, hd_nest_expr(nest, place),
                                        hd_zero(l->arena, value->type));
  hd_stmt_list_t list = {0};
  hd_push_if(tile, inside, hd_nest_lanes(nest, hd_block_of_one(l->arena, full)),
             hd_nest_lanes(nest, hd_block_of_one(l->arena, none)), &list);
  return hd_block_of(l->arena, &list);
}

// Whether chunks of `width` elements are read, and stored, as one; *all is the
// condition for it.
static bool has_chunks(const hd_tile_t *tile, int64_t width,
                       const hd_expr_t **all) {
  const hd_expr_t *place = tile->point->u.point.place;
  sources_t sources = sources_of(tile->point->u.point.value);
  hd_tile_window_t window;
  *all = NULL;
  if (!sources.ok || sources.count == 0)
    return false;
  if (place->u.var->tensor->scope == HD_SCOPE_SHARED &&
      (!hd_tile_window_find(tile, place, &window) ||
       !hd_tile_window_is_aligned(tile, &window, width, all)))
    return false;
  for (unsigned i = 0; i < sources.count; ++i)
    if (!hd_tile_window_find(tile, sources.loads[i], &window) ||
        !hd_tile_window_is_aligned(tile, &window, width, all))
      return false;
  return true;
}

static void lower_load(const hd_tile_t *tile) {
  const hd_stmt_t *point = tile->point;
  const hd_expr_t *place = point->u.point.place, *value = point->u.point.value;
  hd_point_lowering_t *l = tile->l;
  bool is_shared = place->u.var->tensor->scope == HD_SCOPE_SHARED;
  int64_t bits = hd_type_bits(place->type);
  int64_t width = tile->loop && bits >= 8 ? HD_POINT_CHUNK * 8 / bits : 1;
  int32_t unroll = tile->loop ? tile->loop->u.mapfor.unroll : 0;
  const hd_mapping_t *chunks =
      width > 1 ? hd_mapping_divide(l->arena, tile->mapping, width) : NULL;
  // Element by element, threads next to each other read what lies side by side.
  const hd_mapping_t *spread =
      chunks && is_shared ? hd_tile_spread(tile, 1) : NULL;
  const hd_expr_t *all = NULL;
  hd_stmt_list_t then = {0}, otherwise = {0};
  bool by_registers = spread && !(is_copy(tile) && bits >= 32);
  if (!by_registers || bits < 8 || !push_in_batches(tile, spread, &otherwise))
    push_one_by_one(tile, spread ? spread : tile->mapping,
                    by_registers ? 1 : unroll, &otherwise);
  hd_block_t elements = hd_block_of(l->arena, &otherwise);
  if (!chunks || !has_chunks(tile, width, &all)) {
    hd_push_if(tile, NULL, elements, (hd_block_t){0}, tile->out);
    return;
  }
  hd_nest_t nest = hd_nest_begin(tile, chunks, width, unroll);
  hd_block_t chunk =
      is_copy(tile) ? copy_bytes(tile, hd_nest_first(&nest, place),
                                 hd_nest_first(&nest, value), HD_POINT_CHUNK)
                    : store_chunk(&nest);
  hd_nest_end(&nest, NULL, chunk, &then);
  if (l->explain)
    hd_remark(&l->module->context->diags, point->loc,
              "%s of 16 bytes, where rows are aligned",
              is_copy(tile) ? "asynchronous copies" : "loads and stores");
  hd_push_if(tile, all, hd_block_of(l->arena, &then), elements, tile->out);
}

static void lower_register(const hd_tile_t *tile) {
  const hd_stmt_t *point = tile->point;
  const hd_stmt_t *store =
      hd_make_store(tile, point->u.point.place, point->u.point.value);
  if (!tile->loop) {
    hd_stmt_list_push(tile->l->arena, tile->out, store);
    return;
  }
  hd_stmt_t *loop = hd_stmt_copy(tile->l->arena, tile->loop);
  loop->u.mapfor.body = hd_block_of_one(tile->l->arena, store);
  hd_stmt_list_push(tile->l->arena, tile->out, loop);
}

static void (*const lowerings[])(const hd_tile_t *) = {
    [HD_POINT_LOAD] = lower_load,
    [HD_POINT_REGISTER] = lower_register,
    [HD_POINT_YIELD] = hd_lower_yield,
};

// The worker of a loop that several take the place of: evaluated once.
static const hd_expr_t *name_worker(hd_point_lowering_t *l,
                                    const hd_stmt_t *loop,
                                    hd_stmt_list_t *out) {
  const hd_expr_t *worker = loop->u.mapfor.worker;
  if (!worker || hd_expr_is_trivial(worker))
    return worker;
  hd_stmt_t *let = hd_stmt_make(l->arena, HD_STMT_LET, loop->loc);
  let->u.let.var =
      hd_var_make(l->arena, "worker", HD_VAR_LET, worker->type, worker->loc);
  let->u.let.value = worker;
  hd_stmt_list_push(l->arena, out, let);
  return hd_expr_var(l->arena, let->u.let.var);
}

static bool lower_point(hd_rewriter_t *rewriter, const hd_stmt_t *stmt,
                        hd_stmt_list_t *out) {
  hd_tile_t tile = {.l = rewriter->argument, .out = out, .point = stmt};
  if (stmt->kind == HD_STMT_LET)
    hd_ptr_map_set(rewriter->arena, &tile.l->lets, stmt->u.let.var,
                   stmt->u.let.value);
  if (stmt->kind == HD_STMT_MAPFOR && stmt->u.mapfor.body.size == 1 &&
      stmt->u.mapfor.body.stmts[0]->kind == HD_STMT_POINT) {
    tile.point = stmt->u.mapfor.body.stmts[0];
    tile.loop = stmt;
    tile.mapping = stmt->u.mapfor.mapping;
    tile.worker = name_worker(tile.l, stmt, out);
  } else if (stmt->kind != HD_STMT_POINT) {
    return false;
  }
  lowerings[tile.point->u.point.kind](&tile);
  return true;
}

static void push_wait(hd_point_lowering_t *l, hd_loc_t loc,
                      hd_stmt_list_t *out) {
  hd_stmt_t end = {.loc = loc};
  hd_tile_t tile = {.l = l, .point = &end};
  const hd_expr_t *none = hd_expr_i32(l->arena, 0);
  hd_push_call(&tile, HD_INTRINSIC_BULK_WAIT, &none, 1, out);
}

static bool wait_at_return(hd_rewriter_t *rewriter, const hd_stmt_t *stmt,
                           hd_stmt_list_t *out) {
  if (stmt->kind == HD_STMT_RETURN)
    push_wait(rewriter->argument, stmt->loc, out);
  return false;
}

// A block's shared memory is read until its copies have ended.
static hd_block_t wait_at_ends(hd_point_lowering_t *l, hd_block_t body) {
  hd_stmt_list_t list = {0};
  hd_rewriter_t rewriter = {
      .arena = l->arena, .argument = l, .enter = wait_at_return};
  hd_rewrite_into(&rewriter, body, &list);
  push_wait(l, l->func->loc, &list);
  return hd_block_of(l->arena, &list);
}

const hd_func_t *hd_pass_lower_points(hd_module_t *module,
                                      const hd_func_t *func,
                                      const hd_pass_args_t *args) {
  hd_point_lowering_t l = {.module = module,
                           .arena = &module->arena,
                           .func = func,
                           .explain = args->explain};
  hd_rewriter_t rewriter = {
      .arena = &module->arena, .argument = &l, .enter = lower_point};
  const hd_func_t *result = hd_rewrite_func(&rewriter, func);
  if (!l.has_bulk)
    return result;
  hd_func_t *copy = HD_ARENA_NEW(&module->arena, hd_func_t);
  *copy = *result;
  copy->body = wait_at_ends(&l, result->body);
  return copy;
}
