// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Generator.h"
#include "IR/Passes/Facts.h"

// An expression without effects: an index may be used several times, and so may
// what stands for lanes out of bounds. Counts what it keeps.
static const hd_expr_t *repeatable(hd_generator_t *g, hd_type_t type,
                                   int depth) {
  for (int tries = 0; tries < 16; tries++) {
    hd_generated_t counts = *g->counts;
    const hd_expr_t *e = hd_generate_expr(g, type, depth);
    if (hd_expr_is_repeatable(e))
      return e;
    *g->counts = counts;
  }
  return hd_generate_expr(g, type, 0);
}

static const hd_expr_t *index_of(hd_generator_t *g, int depth) {
  static const hd_scalar_t types[] = {HD_I32, HD_I32, HD_I32, HD_I64, HD_U8};
  return repeatable(g, hd_type(types[hd_random_below(g, 5)]),
                    depth < 2 ? depth : 2);
}

// The index of an axis, within it wherever its size is a constant or becomes
// one: constants outside are not read back. NULL: the lanes have no room.
static const hd_expr_t *not_outside(hd_generator_t *g, const hd_var_t *var,
                                    unsigned axis, unsigned lanes,
                                    const hd_expr_t *index) {
  int64_t size = 1, more = axis + 1 == var->tensor->rank ? lanes - 1 : 0;
  const hd_expr_t *shape = var->tensor->shape[axis];
  bool is_const = hd_expr_fold_int(shape, &size);
  if (is_const && size <= more)
    return NULL;
  if (index->type.scalar == HD_U8 && size - more > UINT8_MAX)
    return index;
  const hd_expr_t *last = hd_expr_int(g->arena, index->type, size - 1 - more);
  if (!is_const && index->type.scalar == HD_U8)
    last = hd_expr_int(g->arena, index->type, 0);
  else if (!is_const)
    last = hd_expr_binary(g->arena, HD_EXPR_SUB,
                          hd_expr_cast(g->arena, index->type, shape),
                          hd_expr_int(g->arena, index->type, 1 + more));
  index = hd_expr_binary(g->arena, HD_EXPR_MAX, index,
                         hd_expr_int(g->arena, index->type, 0));
  return hd_expr_binary(g->arena, HD_EXPR_MIN, index, last);
}

// Whether lanes elements from a place on may be accessed at once; the rules of
// docs/IR.md, but for layouts: only plain ones are asked.
static bool takes_lanes(const hd_var_t *var, unsigned lanes) {
  unsigned bits = hd_type_bits(var->type) * lanes;
  if (lanes == 1)
    return true;
  return !var->tensor->layout && bits % 8 == 0 && (bits & (bits - 1)) == 0 &&
         (var->tensor->scope == HD_SCOPE_REGISTER || bits <= 128);
}

// Whether a variable serves; a type of void is any scalar.
static bool serves(const hd_var_t *var, hd_expr_kind_t kind, hd_type_t type,
                   int scope, bool linear) {
  if (!var->tensor || (scope >= 0 && (int)var->tensor->scope != scope))
    return false;
  if (type.scalar == HD_VOID)
    return var->type.scalar != HD_MBARRIER;
  if (var->type.scalar != type.scalar || !takes_lanes(var, type.lanes))
    return false;
  return linear ? kind != HD_EXPR_LOADELSE
                : var->tensor->rank > 0 ||
                      (type.lanes == 1 && kind != HD_EXPR_LOADELSE);
}

const hd_expr_t *hd_generate_access(hd_generator_t *g, hd_expr_kind_t kind,
                                    hd_type_t type, int scope, int depth) {
  const hd_expr_t *operands[8];
  bool linear = hd_random_below(g, 8) == 0;
  size_t start = g->vars.size ? hd_random(g) % g->vars.size : 0;
  for (size_t i = 0; i < g->vars.size; i++) {
    const hd_var_t *var = g->vars.data[(start + i) % g->vars.size];
    if (!serves(var, kind, type, scope, linear))
      continue;
    if (type.scalar == HD_VOID)
      type = var->type;
    if (linear) {
      operands[0] = index_of(g, depth);
      g->counts->exprs[kind]++;
      return hd_expr_access_linear(g->arena, kind, var, type.lanes,
                                   operands[0]);
    }
    unsigned rank = var->tensor->rank;
    bool fits = true;
    for (unsigned d = 0; d < rank; d++) {
      operands[d] = not_outside(g, var, d, type.lanes, index_of(g, depth));
      fits &= operands[d] != NULL;
    }
    if (!fits)
      continue;
    if (kind == HD_EXPR_LOADELSE)
      operands[rank++] = repeatable(g, type, depth);
    g->counts->exprs[kind]++;
    return hd_expr_access(g->arena, kind, var, type.lanes, operands, rank);
  }
  return NULL;
}

static const hd_mapping_t *grid(hd_generator_t *g, hd_mapping_kind_t kind,
                                unsigned rank) {
  int64_t dims[4];
  uint32_t order[4];
  for (unsigned i = 0; i < rank; i++) {
    dims[i] = 1 + hd_random_below(g, 4);
    order[i] = i;
  }
  for (unsigned i = rank; i > 1; i--) {
    unsigned j = hd_random_below(g, i);
    uint32_t t = order[i - 1];
    order[i - 1] = order[j];
    order[j] = t;
  }
  const uint32_t *used = hd_random_below(g, 2) ? order : NULL;
  return kind == HD_MAPPING_SPATIAL
             ? hd_mapping_spatial(g->arena, dims, used, rank)
             : hd_mapping_repeat(g->arena, dims, used, rank);
}

static const hd_mapping_t *custom(hd_generator_t *g, unsigned rank) {
  int64_t dims[4];
  const hd_expr_t *exprs[4];
  hd_loc_t nowhere = {0};
  const hd_var_t *worker = hd_var_make(
      g->arena, hd_random_name(g), HD_VAR_MAPPING, hd_type(HD_I32), nowhere);
  const hd_var_t *repeat = NULL;
  if (hd_random_below(g, 2))
    repeat = hd_var_make(g->arena, hd_random_name(g), HD_VAR_MAPPING,
                         hd_type(HD_I32), nowhere);
  for (unsigned i = 0; i < rank; i++) {
    dims[i] = 1 + hd_random_below(g, 4);
    const hd_expr_t *w = hd_expr_var(
        g->arena, repeat && hd_random_below(g, 2) ? repeat : worker);
    exprs[i] = hd_expr_binary(g->arena, HD_EXPR_ADD, w,
                              hd_expr_i32(g->arena, (int)i - 1));
  }
  return hd_mapping_custom(g->arena, 4, dims, rank, worker, repeat,
                           repeat ? 3 : 1, exprs);
}

static const hd_mapping_t *within(hd_generator_t *g, const hd_mapping_t *inner,
                                  bool constant) {
  const hd_expr_t *bounds[4];
  for (unsigned i = 0; i < inner->rank; i++)
    bounds[i] = hd_generate_expr(g, hd_type(HD_I32), constant ? 0 : 2);
  for (unsigned i = 0; constant && i < inner->rank; i++)
    bounds[i] = hd_expr_i32(g->arena, i + 1);
  return hd_mapping_within(g->arena, inner, bounds);
}

const hd_mapping_t *hd_generate_mapping(hd_generator_t *g, unsigned rank,
                                        int depth, bool constant) {
  hd_mapping_kind_t kind =
      (hd_mapping_kind_t)hd_random_below(g, HD_GENERATED_MAPPINGS);
  int64_t dims[4] = {4, 6, 2, 3};
  const hd_mapping_t *mapping = NULL, *left;
  if (depth == 0)
    kind = HD_MAPPING_REPEAT;
  g->counts->mappings[kind]++;
  switch (kind) {
  case HD_MAPPING_SPATIAL:
  case HD_MAPPING_REPEAT:
    mapping = grid(g, kind, rank);
    break;
  case HD_MAPPING_COMPOSE:
    left = hd_generate_mapping(g, rank, depth - 1, constant);
    mapping = hd_mapping_compose(
        g->arena, left, hd_generate_mapping(g, rank, depth - 1, constant));
    break;
  case HD_MAPPING_AUTO:
    mapping = hd_mapping_auto(g->arena, dims, rank, 4);
    break;
  case HD_MAPPING_CUSTOM:
    mapping = custom(g, rank);
    break;
  case HD_MAPPING_WITHIN:
    mapping =
        within(g, hd_generate_mapping(g, rank, depth - 1, constant), constant);
    break;
  case HD_MAPPING_IDLE:
    left = hd_generate_mapping(g, rank, depth - 1, constant);
    mapping =
        hd_mapping_idle(g->arena, left, left->workers + hd_random_below(g, 3));
    break;
  }
  return mapping ? mapping : grid(g, HD_MAPPING_REPEAT, rank);
}

// Spatial and repeat alone, whose task shape a local tensor has.
static const hd_mapping_t *local_mapping(hd_generator_t *g, unsigned rank) {
  const hd_mapping_t *mapping = grid(g, HD_MAPPING_REPEAT, rank);
  return hd_mapping_compose(g->arena, mapping,
                            grid(g, HD_MAPPING_SPATIAL, rank));
}

hd_layout_item_t hd_generate_item(hd_generator_t *g, hd_layout_kind_t kind,
                                  const int64_t *values, unsigned count) {
  const hd_expr_t **exprs = HD_ARENA_ARRAY(g->arena, const hd_expr_t *, count);
  for (unsigned i = 0; i < count; i++)
    exprs[i] = hd_expr_i32(g->arena, values[i]);
  g->counts->layouts[kind]++;
  return (hd_layout_item_t){kind, count, exprs, NULL};
}

static const hd_layout_t *layout_of(hd_generator_t *g, hd_tensor_t *tensor) {
  static const int64_t strides[] = {64, 8, 1, 0}, axes[] = {2, 0, 1},
                       tile[] = {2, 2, 1}, bytes[] = {32, 64, 128},
                       swizzle[] = {2, 1, 3}, swapped[] = {1, 0, 2};
  hd_layout_t *layout =
      hd_arena_alloc(g->arena, sizeof *layout + 3 * sizeof layout->items[0]);
  hd_layout_kind_t kind =
      (hd_layout_kind_t)hd_random_below(g, HD_GENERATED_LAYOUTS);
  unsigned rank = tensor->rank;
  if (kind == HD_LAYOUT_LOCAL && tensor->scope == HD_SCOPE_REGISTER && rank) {
    layout->items[0] = hd_generate_item(g, kind, NULL, 0);
    const hd_mapping_t *mapping = local_mapping(g, rank);
    layout->items[0].mapping = mapping;
    layout->num_items = 1;
    const hd_expr_t **shape = HD_ARENA_ARRAY(g->arena, const hd_expr_t *, rank);
    for (unsigned i = 0; i < rank; i++)
      shape[i] = hd_expr_i32(g->arena, mapping->dims[i]);
    tensor->shape = shape;
    return layout;
  }
  if (kind != HD_LAYOUT_SWIZZLE && kind != HD_LAYOUT_LOCAL) {
    const int64_t *values = kind == HD_LAYOUT_STRIDES ? strides
                            : kind == HD_LAYOUT_TILE  ? tile
                            : rank == 3               ? axes
                                                      : swapped;
    bool bare = kind == HD_LAYOUT_ROW || kind == HD_LAYOUT_COLUMN;
    if (kind == HD_LAYOUT_PERMUTE && rank < 2)
      values = strides + 3;
    layout->items[layout->num_items++] =
        hd_generate_item(g, kind, values, bare ? 0 : rank);
  }
  if (layout->num_items == 0 || hd_random_below(g, 2))
    layout->items[layout->num_items++] =
        hd_random_below(g, 2)
            ? hd_generate_item(g, HD_LAYOUT_SWIZZLE,
                               &bytes[hd_random_below(g, 3)], 1)
            : hd_generate_item(g, HD_LAYOUT_SWIZZLE, swizzle, 3);
  return layout;
}

// A new size of the function's, or arithmetic on one that it has; else NULL.
static const hd_expr_t *found_size(hd_generator_t *g, uint32_t place) {
  if (hd_random_below(g, 3) == 0)
    return NULL;
  if (g->sizes.size && hd_random_below(g, 8) == 0) {
    const hd_expr_t *size = hd_expr_var(g->arena, g->sizes.data[0].var);
    return hd_expr_binary(g->arena, HD_EXPR_ADD, size, size);
  }
  hd_scalar_t scalar = hd_random_below(g, 4) ? HD_I32 : HD_I64;
  const hd_var_t *var = hd_var_make(g->arena, hd_random_name(g), HD_VAR_PARAM,
                                    hd_type(scalar), (hd_loc_t){0});
  hd_func_size_t size = {.var = var, .param = UINT32_MAX, .place = place};
  hd_vec_push(g->arena, &g->sizes, size);
  return hd_expr_var(g->arena, var);
}

const hd_tensor_t *hd_generate_tensor(hd_generator_t *g, hd_scope_t scope,
                                      hd_type_t element) {
  size_t sizes = g->sizes.size;
  hd_tensor_t *tensor = HD_ARENA_NEW(g->arena, hd_tensor_t);
  tensor->scope = scope;
  tensor->element = element;
  tensor->rank = hd_random_below(g, 4);
  const hd_expr_t **shape =
      HD_ARENA_ARRAY(g->arena, const hd_expr_t *, tensor->rank);
  for (unsigned i = 0; i < tensor->rank; i++) {
    shape[i] = hd_expr_i32(g->arena, 1 + hd_random_below(g, 8));
    const hd_expr_t *found = g->in_signature ? found_size(g, i) : NULL;
    shape[i] = found ? found : shape[i];
    if (g->in_signature)
      continue;
    if (scope == HD_SCOPE_REGISTER || hd_random_below(g, 2))
      continue;
    for (size_t v = 0; v < g->vars.size; v++) // A size.
      if (g->vars.data[v]->kind == HD_VAR_PARAM &&
          hd_type_equal(g->vars.data[v]->type, hd_type(HD_I32)))
        shape[i] =
            hd_expr_binary(g->arena, HD_EXPR_ADD,
                           hd_expr_var(g->arena, g->vars.data[v]), shape[i]);
  }
  tensor->shape = shape;
  if (hd_random_below(g, 3) == 0 && element.scalar != HD_MBARRIER &&
      tensor->rank)
    tensor->layout = layout_of(g, tensor);
  if (tensor->shape != shape) // That of a mapping.
    g->sizes.size = sizes;
  if (hd_random_below(g, 3) == 0)
    tensor->align = 16u << hd_random_below(g, 4);
  return tensor;
}
