// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading what epilogues read before it is needed. A kernel says where it has
// time and registers for it:
//
//   for i, j in M on thread { expect c[row + i, column + j] in early[i, j] }
//   ...
//   for i, j in M on thread {
//     yield c[row + i, column + j] <- f16(sum[i, j]) in early[i, j]
//   }
//
// becomes, where value + b[at[1]] is stored in place of the value,
//
//   for i, j in M on thread { load early_b[i, j] <- b[column + j] }
//   ...
//   for i, j in M on thread {
//     yield d[row + i, column + j] <- f16(sum[i, j]) + early_b[i, j] in ...
//   }
//
// Loads are told by their order in the value, which is the same at both points.

#include "Schedule/Access/AccessPoint.h"

#include "IR/Mapping.h"

enum {
  MOST_LOADS = 16, // In a value.
  MOST_CELLS = 80  // A thread's registers for what is read early.
};

// The global loads of a value, each once.
typedef struct loads {
  unsigned count;
  const hd_expr_t *loads[MOST_LOADS];
} loads_t;

static bool is_load(const hd_expr_t *e) {
  return (e->kind == HD_EXPR_LOAD || e->kind == HD_EXPR_LOADELSE) &&
         !e->linear && e->u.var->tensor->scope == HD_SCOPE_GLOBAL;
}

static unsigned number_of(const loads_t *loads, const hd_expr_t *e) {
  unsigned i = 0;
  while (i < loads->count && !hd_expr_equal(loads->loads[i], e))
    i++;
  return i;
}

static bool collect(void *argument, const hd_expr_t *e) {
  loads_t *loads = argument;
  if (!is_load(e) || number_of(loads, e) < loads->count)
    return true;
  if (loads->count == MOST_LOADS)
    return false;
  loads->loads[loads->count++] = e;
  return true;
}

static bool is_no_load(void *argument, const hd_expr_t *e) {
  (void)argument;
  return !hd_expr_is_access(e);
}

static bool is_no_use(void *argument, const hd_expr_t *e) {
  return e->kind != HD_EXPR_VAR || e->u.var != argument;
}

static bool uses(const hd_expr_t *e, const hd_var_t *var) {
  return !hd_walk_expr(e, is_no_use, (void *)(uintptr_t)var);
}

// Whether the load is the same for all elements along an axis of the register:
// its index there is a variable of the loop, which the load does not use.
static bool is_same_along(const hd_access_tile_t *tile, const hd_expr_t *load,
                          unsigned axis) {
  const hd_expr_t *index = tile->point->u.point.early->operands[axis];
  if (!tile->loop || index->kind != HD_EXPR_VAR)
    return false;
  bool of_loop = false;
  for (uint32_t i = 0; i < tile->loop->u.mapfor.mapping->rank; i++)
    of_loop |= tile->loop->u.mapfor.vars[i] == index->u.var;
  for (unsigned i = 0; i < hd_expr_num_indices(load); i++)
    of_loop &= !uses(load->operands[i], index->u.var);
  return of_loop;
}

// Whether tasks that have one element of the register read one place: what the
// load's indices have of the loop's variables are whole indices of the
// register. In r[j, p / 8] are x[j] and x[p / 8], and no x[p]; in r[j, e * 2],
// as pairs of columns have it, is x[e].
static bool is_told(const hd_access_tile_t *tile, const hd_expr_t *e) {
  const hd_expr_t *early = tile->point->u.point.early;
  for (unsigned i = 0; i < early->num_operands; i++) {
    const hd_expr_t *index = early->operands[i];
    int64_t factor;
    if (hd_expr_equal(e, index) ||
        (index->kind == HD_EXPR_MUL && hd_expr_equal(e, index->operands[0]) &&
         hd_expr_fold_int(index->operands[1], &factor) && factor != 0))
      return true;
  }
  for (uint32_t i = 0; i < tile->loop->u.mapfor.mapping->rank; i++)
    if (e->kind == HD_EXPR_VAR && e->u.var == tile->loop->u.mapfor.vars[i])
      return false;
  for (unsigned i = 0; i < e->num_operands; i++)
    if (!is_told(tile, e->operands[i]))
      return false;
  return true;
}

// Tasks a worker has along an axis.
static int64_t tasks_along(const hd_mapping_t *m, unsigned axis) {
  switch (m->kind) {
  case HD_MAPPING_SPATIAL:
    return 1;
  case HD_MAPPING_REPEAT:
    return m->dims[axis];
  case HD_MAPPING_COMPOSE:
    return tasks_along(m->left, axis) * tasks_along(m->right, axis);
  default:
    return MOST_CELLS + 1;
  }
}

// Registers of a thread that the load takes; narrow elements share them.
static int64_t cells_of(const hd_access_tile_t *tile, const hd_expr_t *load) {
  const hd_tensor_t *like = tile->point->u.point.early->u.var->tensor;
  const hd_layout_t *layout = like->layout;
  const hd_mapping_t *mapping =
      layout && layout->num_items == 1 ? layout->items[0].mapping : NULL;
  int64_t count = mapping ? 1 : MOST_CELLS + 1;
  for (unsigned i = 0; mapping && i < like->rank; i++)
    if (!is_same_along(tile, load, i))
      count *= tasks_along(mapping, i);
  int64_t bits = hd_type_bits(load->type);
  return bits < 32 ? (count * bits + 31) / 32 : count * (bits / 32);
}

static hd_access_early_t *find_early(const hd_accessor_t *a,
                                     const hd_var_t *like, unsigned yield,
                                     unsigned number) {
  for (size_t i = 0; i < a->early.size; i++) {
    hd_access_early_t *early = &a->early.data[i];
    if (early->like == like && early->yield == yield && early->number == number)
      return early;
  }
  return NULL;
}

bool hd_access_has_early(const hd_accessor_t *a, const hd_stmt_t *point) {
  const hd_expr_t *early = point->u.point.early;
  for (size_t i = 0; early && i < a->early.size; i++)
    if (a->early.data[i].like == early->u.var)
      return true;
  return false;
}

// Whether a yield reads it whatever comes: registers between which it chooses
// would be one register that is not known by its index. A part of the result is
// not stored for every tile: what it alone reads is read where it is.
static bool is_read(const hd_access_yields_t *yields, unsigned i,
                    const hd_expr_t *load) {
  for (unsigned k = 0; yields->conditions[i] && k < yields->count; k++)
    if (!hd_expr_evaluates(yields->values[k], load))
      return false;
  return hd_expr_evaluates(yields->values[i], load);
}

// Out of bounds the register has 0, and not what `else` says.
static bool may_be_early(const hd_access_tile_t *tile,
                         const hd_access_yields_t *yields, unsigned yield,
                         const hd_expr_t *load) {
  for (unsigned i = 0; i < hd_expr_num_indices(load); i++)
    if (!hd_walk_expr(load->operands[i], is_no_load, NULL) ||
        (tile->loop && !is_told(tile, load->operands[i])))
      return false;
  return load->kind == HD_EXPR_LOAD && load->type.lanes == 1 &&
         load->u.var->direction == HD_DIR_IN && is_read(yields, yield, load);
}

// cells: those that have it already, or NULL.
static hd_access_early_t *make_early(const hd_access_tile_t *tile,
                                     unsigned yield, unsigned number,
                                     const hd_var_t *loaded,
                                     const hd_var_t *cells) {
  hd_accessor_t *a = tile->a;
  const hd_var_t *like = tile->point->u.point.early->u.var;
  hd_tensor_t *tensor = HD_ARENA_COPY(a->b.arena, hd_tensor_t, like->tensor);
  tensor->element = loaded->tensor->element;
  bool shares = cells != NULL;
  if (!cells)
    cells = hd_var_make_tensor(a->b.arena, loaded->name, tensor, like->loc);
  hd_access_early_t early = {like, yield, number, loaded, cells, shares};
  hd_vec_push(a->b.arena, &a->early, early);
  return &a->early.data[a->early.size - 1];
}

static void push_load(const hd_access_tile_t *tile,
                      const hd_access_early_t *early, const hd_expr_t *load) {
  hd_arena_t *arena = tile->a->b.arena;
  const hd_expr_t *at = tile->point->u.point.early;
  hd_stmt_t *point = hd_stmt_copy(arena, tile->point);
  point->u.point.kind = HD_POINT_LOAD;
  point->u.point.early = NULL;
  point->u.point.place = hd_expr_access(arena, HD_EXPR_REF, early->cells, 1,
                                        at->operands, at->num_operands);
  point->u.point.value =
      hd_expr_access(arena, HD_EXPR_LOAD, load->u.var, 1, load->operands,
                     hd_expr_num_indices(load));
  hd_access_push_point(tile, point);
}

// What is loaded at a point, and the registers that have it then.
typedef struct loaded {
  loads_t loads;
  const hd_var_t *cells[MOST_LOADS];
  int64_t taken; // Registers.
} loaded_t;

// The number-th load of a yield's value: parts of a result may read the same.
// Where two do not that did at another point, nobody has it early.
static void load_early(const hd_access_tile_t *tile, loaded_t *loaded,
                       const hd_access_yields_t *yields, unsigned i,
                       unsigned number, const hd_expr_t *load) {
  hd_accessor_t *a = tile->a;
  hd_access_early_t *early =
      find_early(a, tile->point->u.point.early->u.var, i, number);
  unsigned same = number_of(&loaded->loads, load);
  bool is_loaded = same < loaded->loads.count;
  int64_t cells = is_loaded ? 0 : cells_of(tile, load);
  if (!early && may_be_early(tile, yields, i, load) &&
      loaded->taken + cells <= MOST_CELLS && same < MOST_LOADS)
    early = make_early(tile, i, number, load->u.var,
                       is_loaded ? loaded->cells[same] : NULL);
  if (!early || early->tensor != load->u.var)
    return;
  if (early->shares) {
    if (!is_loaded || early->cells != loaded->cells[same])
      early->tensor = NULL;
    return;
  }
  loaded->taken += cells;
  if (!is_loaded && same < MOST_LOADS) {
    loaded->loads.loads[loaded->loads.count] = load;
    loaded->cells[loaded->loads.count++] = early->cells;
  }
  push_load(tile, early, load);
}

typedef struct place {
  const hd_expr_t *load;
  bool is_one;
} place_t;

static bool visit_index(void *argument, const hd_expr_t *e) {
  place_t *p = argument;
  p->is_one |= is_load(e) && hd_expr_equal(e, p->load);
  return !p->is_one;
}

static bool visit_indices(void *argument, const hd_expr_t *e) {
  place_t *p = argument;
  for (unsigned i = 0; is_load(e) && i < hd_expr_num_indices(e); i++)
    hd_walk_expr(e->operands[i], visit_index, p);
  return !p->is_one;
}

// Whether a load of the value says where another one is.
static bool is_place(const hd_expr_t *value, const hd_expr_t *load) {
  place_t p = {load, false};
  hd_walk_expr(value, visit_indices, &p);
  return p.is_one;
}

void hd_access_read_early(const hd_access_tile_t *tile,
                          const hd_access_yields_t *yields, bool places) {
  loaded_t loaded = {0};
  for (unsigned i = 0; i < yields->count; i++) {
    loads_t loads = {0};
    if (!hd_walk_expr(yields->values[i], collect, &loads))
      continue;
    for (unsigned n = 0; n < loads.count; n++)
      if (!places || is_place(yields->values[i], loads.loads[n]))
        load_early(tile, &loaded, yields, i, n, loads.loads[n]);
  }
}

typedef struct with_early {
  const hd_accessor_t *a;
  const hd_expr_t *early;
  unsigned yield;
  const loads_t *loads;
} with_early_t;

static const hd_expr_t *in_register(hd_rewriter_t *rewriter,
                                    const hd_expr_t *e) {
  const with_early_t *with = rewriter->argument;
  if (!is_load(e))
    return e;
  const hd_access_early_t *early = find_early(
      with->a, with->early->u.var, with->yield, number_of(with->loads, e));
  if (!early || early->tensor != e->u.var)
    return e;
  return hd_expr_access(rewriter->arena, HD_EXPR_LOAD, early->cells, 1,
                        with->early->operands, with->early->num_operands);
}

const hd_expr_t *hd_access_with_early(hd_accessor_t *a, const hd_stmt_t *point,
                                      unsigned yield, const hd_expr_t *open,
                                      const hd_expr_t *value) {
  loads_t loads = {0};
  if (!hd_walk_expr(open, collect, &loads))
    return value;
  with_early_t with = {a, point->u.point.early, yield, &loads};
  hd_rewriter_t rewriter = {
      .arena = a->b.arena, .argument = &with, .expr = in_register};
  return hd_rewrite_expr(&rewriter, value);
}
