// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of intrinsics whose operands must be made for them: tensor maps in a
// kernel's signature, shared tensors that maps copy to and from or that wgmma
// reads, registers one after another.
#include "IR/Generator.h"

#include <string.h>

static const hd_scalar_t copied[] = {
    HD_I8,  HD_U8,   HD_I16,  HD_U16, HD_I32, HD_U32,    HD_I64,   HD_U64,
    HD_F16, HD_BF16, HD_TF32, HD_F32, HD_F64, HD_F8E4M3, HD_F8E5M2};

static const hd_expr_t *const *numbers(hd_generator_t *g, const int64_t *values,
                                       unsigned count) {
  const hd_expr_t **exprs = HD_ARENA_ARRAY(g->arena, const hd_expr_t *, count);
  for (unsigned i = 0; i < count; i++)
    exprs[i] = hd_expr_i32(g->arena, values[i]);
  return exprs;
}

// A number between least and most, or a size of the kernel.
static const hd_expr_t *corner(hd_generator_t *g, int64_t least, int64_t most) {
  for (size_t i = 0; i < g->vars.size && hd_random_below(g, 3) == 0; i++) {
    const hd_var_t *var = g->vars.data[i];
    if (!var->tensor && hd_type_equal(var->type, hd_type(HD_I32)))
      return hd_expr_var(g->arena, var);
  }
  return hd_expr_i32(g->arena,
                     least + hd_random_below(g, (unsigned)(most - least + 1)));
}

// A constant, written as one or as a product.
static const hd_expr_t *extent(hd_generator_t *g, int64_t value) {
  const hd_expr_t *e = hd_expr_i32(g->arena, value);
  return hd_random_below(g, 4) || value % 2
             ? e
             : hd_expr_binary(g->arena, HD_EXPR_MUL, hd_expr_i32(g->arena, 2),
                              hd_expr_i32(g->arena, value / 2));
}

static const hd_layout_t *layout(hd_generator_t *g, hd_layout_kind_t kind,
                                 const int64_t *values, unsigned count,
                                 int64_t swizzle) {
  hd_layout_t *made =
      hd_arena_alloc(g->arena, sizeof *made + 2 * sizeof made->items[0]);
  made->num_items = 0;
  if (kind != HD_LAYOUT_ROW || !swizzle || hd_random_below(g, 2))
    made->items[made->num_items++] = hd_generate_item(g, kind, values, count);
  if (swizzle)
    made->items[made->num_items++] =
        hd_generate_item(g, HD_LAYOUT_SWIZZLE, &swizzle, 1);
  return made;
}

// A parameter in global memory: row-major, or its rows any number apart.
static const hd_var_t *described(hd_generator_t *g, unsigned rank) {
  static const int64_t sizes[] = {3, 64, 16, 96, 32}; // Strides of 16 bytes.
  static const int64_t apart[] = {4096, 2048, 1024, 128, 1};
  hd_tensor_t *tensor = HD_ARENA_NEW(g->arena, hd_tensor_t);
  *tensor = (hd_tensor_t){.scope = HD_SCOPE_GLOBAL, .rank = rank};
  tensor->element = hd_type(copied[hd_random_below(g, 15)]);
  const hd_expr_t **shape = HD_ARENA_ARRAY(g->arena, const hd_expr_t *, rank);
  for (unsigned i = 0; i < rank; i++)
    shape[i] = corner(g, sizes[i], sizes[i]);
  tensor->shape = shape;
  if (hd_random_below(g, 3) == 0)
    tensor->layout =
        layout(g, HD_LAYOUT_STRIDES, apart + HD_MAP_MAX_RANK - rank, rank, 0);
  else if (hd_random_below(g, 3) == 0)
    tensor->layout = layout(g, HD_LAYOUT_ROW, NULL, 0, 0);
  hd_var_t *var =
      hd_var_make_tensor(g->arena, hd_random_name(g), tensor, (hd_loc_t){0});
  var->direction = (hd_direction_t)(HD_DIR_IN + hd_random_below(g, 3));
  hd_vec_push(g->arena, &g->vars, var);
  return var;
}

static const hd_var_t *map_of(hd_generator_t *g, const hd_var_t *tensor) {
  static const int64_t corners[] = {0, 1 << 15, 1 << 7, 1 << 4};
  static const uint32_t bytes[] = {0, 32, 64, 128}, l2[] = {0, 64, 128, 256};
  hd_map_t *map = HD_ARENA_NEW(g->arena, hd_map_t);
  unsigned rank = tensor->tensor->rank;
  *map = (hd_map_t){.tensor = tensor, .num_box = rank};
  map->im2col = rank >= 3 && hd_random_below(g, 2);
  map->swizzle = bytes[hd_random_below(g, 4)];
  map->l2 = l2[hd_random_below(g, 4)];
  if (map->im2col)
    map->num_box = 2;
  unsigned most = map->swizzle ? map->swizzle : 128;
  unsigned inner = 16 * (1 + hd_random_below(g, most / 16));
  unsigned last = map->num_box - 1;
  for (unsigned i = 0; i < last; i++)
    map->box[i] = extent(g, 1 + hd_random_below(g, i % 2 ? 4 : 256));
  map->box[last] = extent(g, inner * 8 / hd_type_bits(tensor->type));
  for (unsigned i = 0; map->im2col && i + 2 < rank; i++) {
    map->lower[i] = corner(g, -corners[rank - 2], corners[rank - 2] - 1);
    map->upper[i] = corner(g, -corners[rank - 2], corners[rank - 2] - 1);
    map->step[i] = corner(g, 1, 8);
  }
  hd_var_t *var = hd_var_make(g->arena, hd_random_name(g), HD_VAR_MAP,
                              hd_type(HD_MAP), (hd_loc_t){0});
  var->map = map;
  g->counts->scalars[HD_MAP]++;
  return var;
}

void hd_generate_maps(hd_generator_t *g) {
  hd_func_t *func = g->func;
  uint32_t count = 1 + hd_random_below(g, 4), before = func->num_params;
  const hd_var_t **params =
      HD_ARENA_ARRAY(g->arena, const hd_var_t *, before + count);
  const hd_var_t **maps = HD_ARENA_ARRAY(g->arena, const hd_var_t *, count);
  for (uint32_t i = 0; i < before; i++)
    params[i] = func->params[i];
  for (uint32_t i = 0; i < count; i++)
    params[before + i] = described(g, 1 + hd_random_below(g, HD_MAP_MAX_RANK));
  for (uint32_t i = 0; i < count; i++) // Some tensors twice, some not at all.
    maps[i] = map_of(g, params[before + hd_random_below(g, count)]);
  for (uint32_t i = 0; i < count; i++)
    hd_vec_push(g->arena, &g->vars, maps[i]);
  func->params = params;
  func->num_params = before + count;
  func->maps = maps;
  func->num_maps = count;
}

static bool is_map(const hd_intrinsic_param_t *param) {
  return param->form == HD_PARAM_VALUE && param->type.scalar == HD_MAP;
}

bool hd_is_prepared(const hd_intrinsic_info_t *info) {
  for (unsigned i = 0; i < info->num_params; i++)
    if (info->params[i].form == HD_PARAM_MATRIX || is_map(&info->params[i]) ||
        info->params[i].form == HD_PARAM_REGISTER)
      return true;
  return false;
}

static bool is_summed(hd_scalar_t type) {
  return type == HD_I32 || type == HD_U32 || type == HD_U64 || type == HD_F16 ||
         type == HD_BF16 || type == HD_F32 || type == HD_F64;
}

// A map of the kernel that a row may take.
static const hd_var_t *find_map(hd_generator_t *g,
                                const hd_intrinsic_info_t *info) {
  unsigned coordinates = 0;
  bool im2col = info->traits & HD_TRAIT_IM2COL, loads = true, adds = false;
  for (unsigned i = 0; i < info->num_params; i++)
    if (is_map(&info->params[i])) {
      loads = !info->params[i].writes;
      adds = info->params[i].reads && !loads;
    }
  for (unsigned i = 0; i < info->num_params; i++)
    coordinates += info->params[i].form == HD_PARAM_VALUE &&
                   info->params[i].type.scalar == HD_I32;
  uint32_t count = g->func->num_maps;
  uint32_t start = count ? hd_random_below(g, count) : 0;
  for (uint32_t i = 0; i < count; i++) {
    const hd_var_t *var = g->func->maps[(start + i) % count];
    const hd_var_t *tensor = var->map->tensor;
    if (coordinates == 0 ||
        (var->map->im2col == im2col && tensor->tensor->rank == coordinates &&
         (loads || tensor->direction != HD_DIR_IN) &&
         (!adds || is_summed((hd_scalar_t)tensor->type.scalar))))
      return var;
  }
  return NULL;
}

// A reference of what is declared here and now, from its first element on.
static const hd_expr_t *place(hd_generator_t *g, const hd_tensor_t *tensor,
                              const hd_stmt_t **stmts, size_t *size) {
  static const int64_t zeros[HD_MAX_RANK];
  stmts[(*size)++] = hd_generate_declaration(g, tensor);
  const hd_var_t *var = stmts[*size - 1]->u.declare.var;
  g->counts->exprs[HD_EXPR_REF]++;
  if (hd_random_below(g, 4) == 0)
    return hd_expr_access_linear(g->arena, HD_EXPR_REF, var, 1,
                                 hd_expr_i32(g->arena, 0));
  return hd_expr_access(g->arena, HD_EXPR_REF, var, 1,
                        numbers(g, zeros, tensor->rank), tensor->rank);
}

static hd_tensor_t *tensor_of(hd_generator_t *g, hd_scope_t scope,
                              hd_scalar_t element, const int64_t *sizes,
                              unsigned rank) {
  hd_tensor_t *tensor = HD_ARENA_NEW(g->arena, hd_tensor_t);
  *tensor = (hd_tensor_t){.scope = scope,
                          .element = hd_type(element),
                          .rank = rank,
                          .shape = numbers(g, sizes, rank)};
  return tensor;
}

// Where a map's box lands, or comes from.
static const hd_tensor_t *landing(hd_generator_t *g, const hd_var_t *var) {
  const hd_map_t *map = var->map;
  int64_t sizes[] = {2, 1, 0}, size;
  hd_expr_fold_int(map->box[map->num_box - 1], &sizes[2]);
  for (unsigned i = 0; i + 1 < map->num_box; i++)
    sizes[1] *= hd_expr_fold_int(map->box[i], &size) ? size : 1;
  unsigned rank = sizes[1] > 1 ? 2 + hd_random_below(g, 2) : 1;
  hd_tensor_t *tensor =
      tensor_of(g, HD_SCOPE_SHARED, (hd_scalar_t)map->tensor->type.scalar,
                sizes + 3 - rank, rank);
  if (map->swizzle)
    tensor->layout = layout(g, HD_LAYOUT_ROW, NULL, 0, map->swizzle);
  tensor->align = map->swizzle ? 8 * map->swizzle : 128;
  return tensor;
}

// A matrix of extent rows or columns, in each way that wgmma reads.
static const hd_tensor_t *matrix(hd_generator_t *g, hd_scalar_t element,
                                 hd_major_t major, int64_t extent) {
  int64_t bytes = hd_scalar_bits(element) / 8;
  int64_t swizzle = INT64_C(32) << hd_random_below(g, 3);
  int64_t line = swizzle / bytes, depth = 64, tile[] = {1, 8, 16 / bytes};
  bool is_mn = major == HD_MAJOR_MN, is_wide = is_mn && extent > line;
  bool fits = !is_wide || extent % line == 0;
  unsigned first = is_wide ? 0 : hd_random_below(g, 2); // A further axis.
  if (!fits || hd_random_below(g, 3) == 0) {
    first = hd_random_below(g, 2);
    int64_t sizes[] = {2, is_mn ? depth : extent, is_mn ? extent : depth};
    hd_tensor_t *tensor =
        tensor_of(g, HD_SCOPE_SHARED, element, sizes + first, 3 - first);
    tensor->layout = layout(g, HD_LAYOUT_TILE, tile + first, 3 - first, 0);
    return tensor;
  }
  int64_t sizes[] = {is_wide ? extent / line : 3, is_mn ? depth : extent, line};
  hd_tensor_t *tensor =
      tensor_of(g, HD_SCOPE_SHARED, element, sizes + first, 3 - first);
  tensor->layout = layout(g, HD_LAYOUT_ROW, NULL, 0, swizzle);
  tensor->align = (uint32_t)(8 * swizzle);
  return tensor;
}

// The columns of a product.
static int64_t width(hd_generator_t *g, const hd_intrinsic_info_t *info) {
  return info->count < 0
             ? 8
             : hd_generate_in_range(g, info, (unsigned)info->count)->u.i;
}

typedef struct prepared {
  hd_generator_t *g;
  const hd_intrinsic_info_t *info;
  const hd_stmt_t **stmts;
  size_t *size;
  const hd_var_t *map; // NULL where the row takes none.
  hd_type_t bound;     // T
  int64_t n;
  hd_major_t majors[2]; // In the order of the operands.
} prepared_t;

// Matrices that may be MN-major stand for themselves; others are K-major.
static const hd_expr_t *matrix_operand(prepared_t *h, unsigned i) {
  unsigned before = 0, majors = 0, last = 0;
  for (unsigned k = 0; k < h->info->num_params; k++) {
    bool is_matrix = h->info->params[k].form == HD_PARAM_MATRIX;
    before += is_matrix && k < i;
    majors += h->info->params[k].form == HD_PARAM_MAJOR;
    last = is_matrix ? k : last;
  }
  hd_major_t major = before < majors ? h->majors[before] : HD_MAJOR_K;
  return place(h->g,
               matrix(h->g, (hd_scalar_t)h->info->params[i].type.scalar, major,
                      i == last ? h->n : 64),
               h->stmts, h->size);
}

static const hd_expr_t *register_operand(prepared_t *h, unsigned i) {
  const hd_intrinsic_param_t *param = &h->info->params[i];
  hd_type_t type = param->generic ? h->bound : param->type;
  int64_t count = param->divisor ? h->n / param->divisor : param->type.lanes;
  int64_t sizes[] = {2, count + hd_random_below(h->g, 3)};
  unsigned first = hd_random_below(h->g, 2);
  return place(h->g,
               tensor_of(h->g, HD_SCOPE_REGISTER, (hd_scalar_t)type.scalar,
                         sizes + first, 2 - first),
               h->stmts, h->size);
}

static const hd_expr_t *value_operand(prepared_t *h, unsigned i) {
  hd_type_t type = h->info->params[i].type;
  if (type.scalar == HD_MAP)
    return h->map ? hd_expr_var(h->g->arena, h->map) : NULL;
  return hd_generate_expr(h->g, type, 1);
}

static const hd_expr_t *shared_operand(prepared_t *h, unsigned i) {
  if (h->info->params[i].any)
    return place(h->g, landing(h->g, h->map), h->stmts, h->size);
  static const int64_t sizes[] = {64};
  hd_type_t type =
      h->info->params[i].generic ? h->bound : h->info->params[i].type;
  return place(
      h->g,
      tensor_of(h->g, HD_SCOPE_SHARED, (hd_scalar_t)type.scalar, sizes, 1),
      h->stmts, h->size);
}

static const hd_expr_t *operand_of(prepared_t *h, unsigned i,
                                   unsigned *majors) {
  const hd_intrinsic_param_t *param = &h->info->params[i];
  const hd_expr_t *in_range =
      (int)i == h->info->count ? NULL : hd_generate_in_range(h->g, h->info, i);
  if (in_range)
    return in_range;
  switch (param->form) {
  case HD_PARAM_VALUE:
    return value_operand(h, i);
  case HD_PARAM_CONST:
    return hd_expr_i32(h->g->arena, (int)i == h->info->count
                                        ? h->n
                                        : hd_random_below(h->g, 8));
  case HD_PARAM_ORDER:
  case HD_PARAM_SCOPE:
  case HD_PARAM_CACHE:
  case HD_PARAM_POLICY:
    return hd_expr_i32(
        h->g->arena,
        hd_random_below(h->g, (unsigned)hd_intrinsic_names(param->form)));
  case HD_PARAM_MAJOR:
    return hd_expr_i32(h->g->arena, h->majors[(*majors)++]);
  case HD_PARAM_MATRIX:
    return matrix_operand(h, i);
  case HD_PARAM_SHARED:
    return shared_operand(h, i);
  case HD_PARAM_REGISTER:
    return register_operand(h, i);
  case HD_PARAM_GLOBAL:
  case HD_PARAM_MEMORY:
    break; // No such row has one.
  }
  return NULL;
}

const hd_expr_t *hd_generate_prepared(hd_generator_t *g, hd_intrinsic_t row,
                                      const hd_stmt_t **stmts, size_t *size) {
  prepared_t h = {.g = g, .stmts = stmts, .size = size};
  h.info = hd_intrinsic_info(row);
  h.n = width(g, h.info);
  h.bound = hd_type(HD_VOID);
  if (h.info->num_types)
    h.bound = h.info->types[hd_random_below(g, h.info->num_types)];
  for (unsigned i = 0; i < 2; i++)
    h.majors[i] = (hd_major_t)hd_random_below(g, HD_MAJOR_COUNT);
  bool takes_map = false;
  for (unsigned i = 0; i < h.info->num_params; i++)
    takes_map |= is_map(&h.info->params[i]);
  if (takes_map && !(h.map = find_map(g, h.info)))
    return NULL;
  const hd_expr_t *operands[HD_INTRINSIC_MAX_PARAMS];
  unsigned majors = 0;
  for (unsigned i = 0; i < h.info->num_params; i++)
    if (!(operands[i] = operand_of(&h, i, &majors)))
      return NULL;
  return hd_generate_row(g, row, operands, h.bound);
}
