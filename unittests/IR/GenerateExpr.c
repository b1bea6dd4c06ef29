// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Call.h"
#include "IR/Generator.h"

#include <math.h>

uint64_t hd_random(hd_generator_t *g) {
  // splitmix64
  uint64_t z = g->state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

unsigned hd_random_below(hd_generator_t *g, unsigned limit) {
  return (unsigned)(hd_random(g) % limit);
}

static bool is_value(hd_scalar_t scalar) {
  hd_scalar_class_t class = hd_scalar_class(scalar);
  return class != HD_CLASS_VOID && class != HD_CLASS_OPAQUE;
}

static hd_scalar_t random_scalar(hd_generator_t *g) {
  static const hd_scalar_t common[] = {HD_I32, HD_F32, HD_BOOL, HD_I64, HD_F16};
  hd_scalar_t scalar = common[hd_random_below(g, 5)];
  if (hd_random_below(g, 2))
    do
      scalar = (hd_scalar_t)hd_random_below(g, HD_SCALAR_COUNT);
    while (!is_value(scalar));
  return scalar;
}

hd_type_t hd_random_type(hd_generator_t *g) {
  hd_scalar_t scalar = random_scalar(g);
  unsigned lanes = hd_random_below(g, 5) ? 1 : 1 + hd_random_below(g, 8);
  return hd_type_vector(scalar, lanes);
}

static const hd_expr_t *count(hd_generator_t *g, const hd_expr_t *e) {
  g->counts->exprs[e->kind]++;
  g->counts->scalars[e->type.scalar]++;
  return e;
}

static const hd_expr_t *integer(hd_generator_t *g, hd_type_t type) {
  unsigned bits = hd_scalar_bits((hd_scalar_t)type.scalar);
  uint64_t value = hd_random(g) >> (64 - bits);
  if (hd_random_below(g, 2))
    value &= 7;
  else if (hd_random_below(g, 4) == 0)
    value = UINT64_C(1) << (bits - 1); // The least signed one.
  if (hd_type_is_bool(type))
    return hd_expr_bool(g->arena, value & 1);
  uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
  value &= mask;
  if (hd_type_is_signed(type) && value >> (bits - 1))
    value |= ~mask;
  return hd_expr_int(g->arena, type, (int64_t)value);
}

static const hd_expr_t *number(hd_generator_t *g, hd_type_t type) {
  static const double special[] = {0.0, -0.0, 1.0,      -1.0,   0.5,
                                   3.0, 1e10, INFINITY, 1e-310, -INFINITY};
  double value = special[hd_random_below(g, 10)];
  if (hd_random_below(g, 2))
    value =
        ldexp((double)(int64_t)hd_random(g), (int)hd_random_below(g, 80) - 110);
  if (hd_random_below(g, 30) == 0)
    value = NAN;
  return hd_expr_float(g->arena, type,
                       hd_float_round((hd_scalar_t)type.scalar, value));
}

static const hd_expr_t *constant(hd_generator_t *g, hd_type_t type) {
  hd_type_t lane = hd_type_lane(type);
  const hd_expr_t *e =
      count(g, hd_type_is_float(type) ? number(g, lane) : integer(g, lane));
  if (type.lanes == 1)
    return e;
  return count(g, hd_expr_make(g->arena, HD_EXPR_VECTOR, type, NULL, &e, 1));
}

static const hd_expr_t *leaf(hd_generator_t *g, hd_type_t type) {
  if (hd_random_below(g, 3) == 0)
    return constant(g, type);
  size_t start = g->vars.size ? hd_random(g) % g->vars.size : 0;
  for (size_t i = 0; i < g->vars.size; i++) {
    const hd_var_t *var = g->vars.data[(start + i) % g->vars.size];
    if (!var->tensor && hd_type_equal(var->type, type))
      return count(g, hd_expr_var(g->arena, var));
  }
  if (!hd_type_equal(type, hd_type(HD_I32)) || !g->func)
    return constant(g, type);
  hd_builtin_t builtin = (hd_builtin_t)hd_random_below(g, HD_BUILTIN_COUNT);
  bool host = g->in_launch || g->func->kind == HD_FUNC_PLAN;
  if (hd_builtin_info(builtin)->host != host)
    return constant(g, type);
  g->counts->builtins[builtin]++;
  return count(g, hd_expr_builtin(g->arena, builtin));
}

static const hd_expr_t *operation(hd_generator_t *g, hd_type_t type,
                                  int depth) {
  hd_expr_kind_t kind = (hd_expr_kind_t)hd_random_below(g, HD_EXPR_COUNT);
  hd_expr_form_t form = hd_expr_info(kind)->form;
  if (form == HD_FORM_COMPARE && hd_type_is_bool(type)) {
    hd_type_t operand = hd_type_vector(random_scalar(g), type.lanes);
    if (!hd_expr_defined(kind, operand))
      return leaf(g, type);
    const hd_expr_t *a = hd_generate_expr(g, operand, depth);
    return hd_expr_binary(g->arena, kind, a,
                          hd_generate_expr(g, operand, depth));
  }
  bool fits =
      form == HD_FORM_UNARY || form == HD_FORM_BINARY || form == HD_FORM_CALL;
  if (!fits || !hd_expr_defined(kind, type))
    return leaf(g, type);
  const hd_expr_t *a = hd_generate_expr(g, type, depth);
  return form == HD_FORM_UNARY
             ? hd_expr_unary(g->arena, kind, a)
             : hd_expr_binary(g->arena, kind, a,
                              hd_generate_expr(g, type, depth));
}

static const hd_expr_t *conversion(hd_generator_t *g, hd_type_t type,
                                   int depth) {
  hd_type_t from = hd_type_vector(random_scalar(g), type.lanes);
  hd_expr_kind_t kind = HD_EXPR_CAST;
  if (hd_random_below(g, 2)) {
    from = hd_random_type(g);
    kind = HD_EXPR_BITCAST;
    if (hd_type_bits(from) != hd_type_bits(type) || hd_type_is_bool(from) ||
        hd_type_is_bool(type))
      return leaf(g, type);
  } else if (hd_type_equal(from, type)) {
    return leaf(g, type);
  }
  const hd_expr_t *operand = hd_generate_expr(g, from, depth);
  return hd_expr_make(g->arena, kind, type, NULL, &operand, 1);
}

static const hd_expr_t *vector(hd_generator_t *g, hd_type_t type, int depth) {
  if (type.lanes == 1) {
    unsigned lanes = 2 + hd_random_below(g, 4);
    const hd_expr_t *v = hd_generate_expr(
        g, hd_type_vector((hd_scalar_t)type.scalar, lanes), depth);
    hd_expr_t like = {.u.i = hd_random_below(g, lanes)};
    return hd_expr_make(g->arena, HD_EXPR_LANE, type, &like, &v, 1);
  }
  const hd_expr_t *lanes[HD_MAX_LANES];
  for (unsigned i = 0; i < type.lanes; i++)
    lanes[i] = hd_generate_expr(g, hd_type_lane(type), depth);
  return hd_expr_make(g->arena, HD_EXPR_VECTOR, type, NULL, lanes, type.lanes);
}

static const hd_expr_t *select(hd_generator_t *g, hd_type_t type, int depth) {
  const hd_expr_t *c = hd_generate_expr(g, hd_type(HD_BOOL), depth);
  const hd_expr_t *a = hd_generate_expr(g, type, depth);
  return hd_expr_select(g->arena, c, a, hd_generate_expr(g, type, depth));
}

bool hd_is_given(const hd_expr_t *const *args, uint32_t count,
                 const hd_var_t *tensor) {
  for (uint32_t i = 0; i < count; i++)
    if (args[i]->kind == HD_EXPR_TENSOR && args[i]->u.var == tensor)
      return true;
  return false;
}

const hd_expr_t *hd_generate_map_value(hd_generator_t *g) {
  size_t start = g->vars.size ? hd_random(g) % g->vars.size : 0;
  for (size_t i = 0; i < g->vars.size; i++) {
    const hd_var_t *var = g->vars.data[(start + i) % g->vars.size];
    if (!var->tensor && var->type.scalar == HD_MAP)
      return count(g, hd_expr_var(g->arena, var));
  }
  return NULL;
}

// Whether a variable is a tensor that a function's parameter takes.
static bool is_taken(const hd_var_t *param, const hd_var_t *var) {
  const hd_tensor_t *wanted = param->tensor, *given = var->tensor;
  return given && given->scope == wanted->scope &&
         given->rank == wanted->rank && hd_type_equal(var->type, param->type) &&
         (var->direction != HD_DIR_IN || param->direction <= HD_DIR_IN) &&
         (given->scope == HD_SCOPE_REGISTER ||
          hd_tensor_align(wanted) <= hd_tensor_align(given));
}

static const hd_expr_t *call(hd_generator_t *g, hd_type_t type, int depth) {
  for (size_t i = 0; i < g->module->items.size; i++) {
    const hd_item_t *item = &g->module->items.data[i];
    if (item->kind != HD_ITEM_FUNC || item->u.func->kind != HD_FUNC_FN ||
        item->u.func == g->func || hd_random_below(g, 2) ||
        !hd_type_equal(item->u.func->result, type))
      continue;
    const hd_func_t *func = item->u.func;
    const hd_expr_t *args[8];
    for (uint32_t a = 0; a < func->num_params; a++) {
      const hd_var_t *param = func->params[a];
      if (!param->tensor) {
        args[a] = param->type.scalar == HD_MAP
                      ? hd_generate_map_value(g)
                      : hd_generate_expr(g, param->type, depth);
        if (!args[a])
          return NULL;
        continue;
      }
      args[a] = NULL;
      for (size_t v = 0; v < g->vars.size; v++)
        if (is_taken(param, g->vars.data[v]) &&
            !hd_is_given(args, a, g->vars.data[v]))
          args[a] = count(g, hd_expr_var(g->arena, g->vars.data[v]));
      if (!args[a])
        return NULL;
    }
    if (hd_call_disagrees(g->arena, func, args, NULL) >= 0)
      return NULL;
    hd_expr_t like = {.u.func = func};
    return hd_expr_make(g->arena, HD_EXPR_CALL, type, &like, args,
                        func->num_params);
  }
  return NULL;
}

static const hd_expr_t *any_intrinsic(hd_generator_t *g, hd_type_t type,
                                      int depth) {
  hd_intrinsic_t row = (hd_intrinsic_t)hd_random_below(g, HD_INTRINSIC_COUNT);
  const hd_expr_t *e = hd_generate_intrinsic(g, row, depth);
  return e && hd_type_equal(e->type, type) ? e : NULL;
}

// The type of an operand, T being bound.
static hd_type_t operand_type(const hd_intrinsic_param_t *param,
                              hd_type_t bound) {
  return param->generic ? bound : param->type;
}

const hd_expr_t *hd_generate_in_range(hd_generator_t *g,
                                      const hd_intrinsic_info_t *info,
                                      unsigned i) {
  const hd_intrinsic_param_t *param = &info->params[i];
  if (!param->num_ranges)
    return NULL;
  hd_operand_range_t range =
      param->ranges[hd_random_below(g, param->num_ranges)];
  int64_t steps = range.step ? (range.most - range.least) / range.step : 2;
  unsigned n = hd_random_below(g, (unsigned)steps + 1);
  return count(g,
               hd_expr_i32(g->arena, range.step ? range.least + n * range.step
                                                : range.least << n));
}

// A name that the row takes; by cg it takes some sizes alone.
static const hd_expr_t *name_of(hd_generator_t *g,
                                const hd_intrinsic_info_t *info,
                                hd_param_form_t form) {
  bool is_copy = info->traits & HD_TRAIT_COPY;
  int name;
  do
    name = (int)hd_random_below(g, (unsigned)hd_intrinsic_names(form));
  while (!hd_intrinsic_takes_name(info, form, name) ||
         (is_copy && form == HD_PARAM_CACHE && name == HD_CACHE_CG));
  return hd_expr_i32(g->arena, name);
}

static const hd_expr_t *operand_of(hd_generator_t *g,
                                   const hd_intrinsic_info_t *info, unsigned i,
                                   hd_type_t bound, int depth) {
  const hd_intrinsic_param_t *param = &info->params[i];
  hd_type_t type = operand_type(param, bound);
  const hd_expr_t *in_range = hd_generate_in_range(g, info, i);
  if (in_range)
    return in_range;
  int scope = HD_SCOPE_SHARED;
  switch (param->form) {
  case HD_PARAM_VALUE:
    return hd_generate_expr(g, type, depth);
  case HD_PARAM_CONST:
    return count(g, hd_expr_i32(g->arena, hd_random_below(g, 16)));
  case HD_PARAM_ORDER:
  case HD_PARAM_SCOPE:
  case HD_PARAM_CACHE:
  case HD_PARAM_POLICY:
  case HD_PARAM_MAJOR:
    return name_of(g, info, param->form);
  case HD_PARAM_MATRIX:
  case HD_PARAM_REGISTER:
    return NULL; // In GenerateHopper.c.
  case HD_PARAM_SHARED:
    break;
  case HD_PARAM_GLOBAL:
    scope = HD_SCOPE_GLOBAL;
    break;
  case HD_PARAM_MEMORY:
    scope = hd_random_below(g, 2) ? HD_SCOPE_SHARED : HD_SCOPE_GLOBAL;
    break;
  }
  if (param->any)
    type = hd_type(HD_VOID);
  for (int tries = 0; tries < 4; tries++) {
    const hd_expr_t *e = hd_generate_access(g, HD_EXPR_REF, type, scope, depth);
    if (!e || e->u.var->direction != HD_DIR_IN || !param->writes)
      return e;
  }
  return NULL;
}

const hd_expr_t *hd_generate_intrinsic(hd_generator_t *g, hd_intrinsic_t row,
                                       int depth) {
  const hd_intrinsic_info_t *info = hd_intrinsic_info(row);
  hd_type_t bound = hd_type(HD_I32);
  if (hd_is_prepared(info))
    return NULL;
  if (info->num_types)
    bound = info->types[hd_random_below(g, info->num_types)];
  const hd_expr_t *operands[HD_INTRINSIC_MAX_PARAMS];
  for (unsigned i = 0; i < info->num_params; i++)
    if (!(operands[i] = operand_of(g, info, i, bound, depth)))
      return NULL;
  return hd_generate_row(g, row, operands, bound);
}

const hd_expr_t *hd_generate_row(hd_generator_t *g, hd_intrinsic_t row,
                                 const hd_expr_t *const *operands,
                                 hd_type_t bound) {
  const hd_intrinsic_info_t *info = hd_intrinsic_info(row);
  hd_expr_t like = {.u.intrinsic = (int)row};
  g->counts->intrinsics[row]++;
  return count(g, hd_expr_make(g->arena, HD_EXPR_INTRINSIC,
                               info->result_generic ? bound : info->result,
                               &like, operands, info->num_params));
}

const hd_expr_t *hd_generate_expr(hd_generator_t *g, hd_type_t type,
                                  int depth) {
  if (depth <= 0 || hd_random_below(g, 6) == 0)
    return leaf(g, type);
  depth--;
  bool on_host = g->in_launch || g->func->kind == HD_FUNC_PLAN;
  const hd_expr_t *e = NULL;
  switch (hd_random_below(g, on_host ? 6 : 10)) {
  case 0:
    e = conversion(g, type, depth);
    break;
  case 1:
    e = vector(g, type, depth);
    break;
  case 2:
    e = select(g, type, depth);
    break;
  case 6:
    e = hd_generate_access(g, HD_EXPR_LOAD, type, -1, depth);
    break;
  case 7:
    e = hd_generate_access(g, HD_EXPR_LOADELSE, type, -1, depth);
    break;
  case 8:
    e = call(g, type, depth);
    break;
  case 9:
    e = any_intrinsic(g, type, depth);
    break;
  default:
    e = operation(g, type, depth);
    break;
  }
  return e ? count(g, e) : leaf(g, type);
}
