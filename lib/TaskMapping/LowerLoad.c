// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Part of pass lower-points: how operands come to a kernel.
#include "IR/Effects.h"
#include "IR/Passes/Simplifier.h"
#include "TaskMapping/Points.h"

// The tensors' elements that a value reads.
enum { MAX_SOURCES = 8, WIDEST = 32, LEAST_COPY = 4 };
typedef struct sources {
  unsigned count;
  bool ok; // All are scalars, and not too many.
  const hd_expr_t *loads[MAX_SOURCES];
} sources_t;

static bool visit_source(void *argument, const hd_expr_t *e) {
  sources_t *sources = argument;
  if (!hd_expr_is_global_load(e))
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
  if (hd_expr_is_global_load(e))
    guard->all = hd_inside(guard->l, e, guard->all);
  return e;
}

// The value where all that it reads is there, else 0.
static const hd_expr_t *guarded(hd_point_lowering_t *l,
                                const hd_expr_t *value) {
  const hd_expr_t *zero = hd_zero(l->arena, value->type);
  sources_t sources = sources_of(value);
  if (hd_expr_is_global_load(value) && sources.count == 1 &&
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
// memory. Where other tensors say the place, they are safe to read.
static bool is_copy(const hd_tile_t *tile, const hd_expr_t *value) {
  const hd_expr_t *place = tile->point->u.point.place;
  if (place->u.var->tensor->scope != HD_SCOPE_SHARED ||
      !hd_expr_is_global_load(value) || value->u.var->table ||
      value->u.var->tensor->rank == 0)
    return false;
  sources_t sources = sources_of(value);
  for (unsigned i = 1; i < sources.count; i++)
    if (sources.loads[i]->kind != HD_EXPR_LOADELSE)
      return false;
  return sources.ok;
}

// cp_async of some bytes from one tensor to the other, or of zeros where they
// are not inside or the condition (NULL: none) does not hold.
static hd_block_t copy_bytes(const hd_tile_t *tile, const hd_expr_t *to,
                             const hd_expr_t *from, const hd_expr_t *condition,
                             int64_t bytes) {
  hd_point_lowering_t *l = tile->l;
  const hd_expr_t *all = hd_expr_i32(l->arena, bytes);
  const hd_expr_t *operands[] = {
      to,
      hd_expr_make(l->arena, HD_EXPR_REF, from->type, from, from->operands,
                   from->num_operands),
      all,
      hd_expr_select(l->arena, hd_inside(l, from, condition), all,
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
      is_copy(tile, tile->point->u.point.value) && (bits == 32 || bits == 64)
          ? copy_bytes(tile, to, from, NULL, bits / 8)
          : hd_block_of_one(tile->l->arena,
                            hd_make_store(tile, to, guarded(tile->l, from)));
  if (tile->loop)
    hd_nest_end(&nest, NULL, block, out);
  else
    hd_push_if(tile, NULL, block, (hd_block_t){0}, out);
}

// What a point loads: the value, or 0 where the condition (NULL: none) does not
// hold.
typedef struct choice {
  const hd_expr_t *condition, *value;
} choice_t;

// Elements side by side, where all are there, or zeros.
static hd_block_t store_chunk(const hd_nest_t *nest, const choice_t *choice) {
  const hd_tile_t *tile = nest->tile;
  hd_point_lowering_t *l = tile->l;
  const hd_expr_t *place = tile->point->u.point.place;
  const hd_expr_t *inside =
      choice->condition ? hd_nest_first(nest, choice->condition) : NULL;
  sources_t sources = sources_of(choice->value);
  for (unsigned i = 0; i < sources.count; ++i)
    inside = hd_inside(l, hd_nest_first(nest, sources.loads[i]), inside);
  const hd_stmt_t *full = hd_make_store(tile, hd_nest_expr(nest, place),
                                        hd_nest_expr(nest, choice->value));
  const hd_stmt_t *none = hd_make_store(tile, hd_nest_expr(nest, place),
                                        hd_zero(l->arena, choice->value->type));
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

// `c ? x : 0` in two; `x[...] else 0` is x[...], for what is outside is 0.
static choice_t choice_of(hd_point_lowering_t *l, const hd_expr_t *value) {
  choice_t choice = {NULL, value};
  while (choice.value->kind == HD_EXPR_SELECT &&
         hd_expr_equal(choice.value->operands[2],
                       hd_zero(l->arena, choice.value->type))) {
    choice.condition = hd_both(l, choice.condition, choice.value->operands[0]);
    choice.value = choice.value->operands[1];
  }
  const hd_expr_t *x = choice.value;
  if (x->kind == HD_EXPR_LOADELSE &&
      hd_expr_equal(x->operands[x->num_operands - 1],
                    hd_zero(l->arena, x->type)))
    choice.value = hd_expr_access(l->arena, HD_EXPR_LOAD, x->u.var, 1,
                                  x->operands, x->num_operands - 1);
  return choice;
}

// Whether chunks are read, and stored, as one wherever they are, which facts
// tell where indices are no windows: `a[0, (row + i) * 768 + head * 64 + p]`.
// *copies: by hardware, which is given the place even where nothing is read
// there, so that it has to be aligned whatever the condition says.
static bool is_chunk(const hd_nest_t *nest, const choice_t *choice,
                     bool *copies) {
  const hd_tile_t *tile = nest->tile;
  const hd_expr_t *value = hd_nest_expr(nest, choice->value);
  const hd_expr_t *inside =
      choice->condition ? hd_nest_expr(nest, choice->condition) : NULL;
  sources_t sources = sources_of(value);
  for (unsigned i = 0; i < sources.count; ++i)
    inside = hd_inside(tile->l, sources.loads[i], inside);
  if (!sources.ok || sources.count == 0 ||
      !hd_nest_is_vector(nest, inside, value, true))
    return false;
  *copies = is_copy(tile, choice->value) &&
            hd_nest_is_vector(nest, NULL, value, false);
  return true;
}

static hd_block_t chunk_of(const hd_nest_t *nest, const choice_t *choice,
                           bool copies) {
  const hd_tile_t *tile = nest->tile;
  const hd_expr_t *place = tile->point->u.point.place;
  if (!copies)
    return store_chunk(nest, choice);
  return copy_bytes(
      tile, hd_nest_first(nest, place), hd_nest_first(nest, choice->value),
      choice->condition ? hd_nest_first(nest, choice->condition) : NULL,
      nest->width * hd_type_bits(place->type) / 8);
}

static bool is_no_register(void *argument, const hd_expr_t *e) {
  (void)argument;
  return !hd_expr_is_access(e) || e->u.var->tensor->scope != HD_SCOPE_REGISTER;
}

// Element by element: threads next to each other read what lies side by side,
// but for a value that takes registers, which threads have of their own tasks.
static hd_block_t by_elements(const hd_tile_t *tile, bool chunked) {
  const hd_expr_t *value = tile->point->u.point.value;
  hd_point_lowering_t *l = tile->l;
  int64_t bits = hd_type_bits(tile->point->u.point.place->type);
  bool spreads = chunked && hd_walk_expr(value, is_no_register, NULL);
  const hd_mapping_t *spread = spreads ? hd_tile_spread(tile, 1) : NULL;
  bool by_registers = spread && !(is_copy(tile, value) && bits >= 32);
  hd_stmt_list_t list = {0};
  if (!by_registers || bits < 8 ||
      !hd_push_in_batches(tile, spread, guarded(l, value), &list))
    push_one_by_one(tile, spread ? spread : tile->mapping,
                    by_registers ? 1
                    : tile->loop ? tile->loop->u.mapfor.unroll
                                 : 0,
                    &list);
  return hd_block_of(l->arena, &list);
}

// Without conditions that always hold here: a batch that the grid bounds, say.
static const hd_expr_t *decided(hd_point_lowering_t *l,
                                const hd_expr_t *value) {
  while (value->kind == HD_EXPR_SELECT &&
         hd_facts_decide(l->facts, value->operands[0]) == 1)
    value = value->operands[1];
  return value;
}

// To registers, where what is loaded lies side by side though it is computed
// with: by the widest chunks that there are. False where there are none.
static bool by_chunks(const hd_tile_t *tile) {
  hd_point_lowering_t *l = tile->l;
  for (int64_t width = WIDEST; width > 1; width /= 2) {
    const hd_mapping_t *chunks =
        hd_mapping_divide(l->arena, tile->mapping, width);
    bool copies;
    if (!chunks)
      continue;
    hd_nest_t nest =
        hd_nest_begin(tile, chunks, width, tile->loop->u.mapfor.unroll);
    choice_t choice = choice_of(l, tile->point->u.point.value);
    if (!is_chunk(&nest, &choice, &copies))
      continue;
    hd_nest_end(&nest, NULL, store_chunk(&nest, &choice), tile->out);
    return true;
  }
  return false;
}

// By chunks of so many bytes, the widest where a place and what goes there are
// aligned so. Narrower ones are for copies by hardware alone, threads next to
// each other doing what lies side by side. False, and nothing, where there are
// none.
static bool by_wide_chunks(const hd_tile_t *tile, int64_t bytes) {
  const hd_expr_t *place = tile->point->u.point.place, *all = NULL;
  hd_point_lowering_t *l = tile->l;
  bool is_shared = place->u.var->tensor->scope == HD_SCOPE_SHARED;
  bool is_widest = bytes == HD_POINT_CHUNK;
  int64_t bits = hd_type_bits(place->type), width = bytes * 8 / bits;
  const hd_mapping_t *chunks =
      width > 1 ? hd_mapping_divide(l->arena, tile->mapping, width) : NULL;
  if (chunks && !is_widest)
    chunks = hd_tile_spread(tile, width);
  if (!chunks)
    return false;
  hd_nest_t nest =
      hd_nest_begin(tile, chunks, width, tile->loop->u.mapfor.unroll);
  choice_t choice = {NULL, tile->point->u.point.value};
  // Parts of bytes have no other way, so facts tell.
  bool is_window = bits >= 8 && has_chunks(tile, width, &all);
  bool copies = is_window && is_copy(tile, choice.value);
  choice_t split = choice_of(l, choice.value);
  bool splits = is_shared && !copies && is_chunk(&nest, &split, &copies);
  if (splits && (copies || !is_window)) {
    choice = split;
    is_window = false;
    all = NULL;
  } else if (!is_window) {
    return false;
  }
  if (!is_widest && !copies)
    return false;
  hd_stmt_list_t list = {0};
  hd_nest_end(&nest, NULL, chunk_of(&nest, &choice, copies), &list);
  if (l->explain)
    hd_remark(&l->module->context->diags, tile->point->loc,
              "%s of %lld bytes%s",
              copies ? "asynchronous copies" : "loads and stores",
              (long long)bytes, is_window ? ", where rows are aligned" : "");
  hd_push_if(tile, all, hd_block_of(l->arena, &list),
             all ? by_elements(tile, is_shared) : (hd_block_t){0}, tile->out);
  return true;
}

static void lower_decided(const hd_tile_t *tile) {
  const hd_expr_t *place = tile->point->u.point.place;
  bool is_shared = place->u.var->tensor->scope == HD_SCOPE_SHARED;
  int64_t bits = hd_type_bits(place->type);
  if (tile->loop && place->u.var->tensor->scope == HD_SCOPE_REGISTER &&
      !hd_expr_is_global_load(tile->point->u.point.value) && by_chunks(tile))
    return;
  bool chunked = tile->loop && (bits >= 8 || is_shared);
  for (int64_t bytes = HD_POINT_CHUNK;
       chunked && bytes >= (is_shared ? LEAST_COPY : HD_POINT_CHUNK);
       bytes /= 2)
    if (by_wide_chunks(tile, bytes))
      return;
  chunked = chunked && is_shared &&
            hd_mapping_divide(tile->l->arena, tile->mapping,
                              HD_POINT_CHUNK * 8 / bits);
  hd_push_if(tile, NULL, by_elements(tile, chunked), (hd_block_t){0},
             tile->out);
}

void hd_lower_load(const hd_tile_t *tile) {
  hd_tile_t copy = *tile;
  const hd_expr_t *value = tile->point->u.point.value;
  const hd_expr_t *known = decided(tile->l, value);
  if (known != value) {
    hd_stmt_t *point = hd_stmt_copy(tile->l->arena, tile->point);
    point->u.point.value = known;
    copy.point = point;
  }
  lower_decided(&copy);
}
