// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Intrinsics: operands against the table, and the rules that types cannot say.
// The rules hold on every device, so that the simulator refuses what the GPU
// would.
#include "IR/VerifierState.h"

#include "IR/Matrix.h"

#include <string.h>

static void fault(hd_verifier_t *v, const hd_expr_t *e, const char *why) {
  const hd_intrinsic_info_t *info =
      hd_intrinsic_info((hd_intrinsic_t)e->u.intrinsic);
  hd_error(v->diags, e->loc, HD_E0313, info->name, why);
  v->errors++;
}

// What T stands for: the type of the first operand or result that has it.
static hd_type_t bound_type(const hd_intrinsic_info_t *info,
                            const hd_expr_t *e) {
  if (info->result_generic)
    return e->type;
  for (unsigned i = 0; i < info->num_params; i++)
    if (info->params[i].generic)
      return e->operands[i]->type;
  return hd_type(HD_VOID);
}

static void verify_operand(hd_verifier_t *v, const hd_intrinsic_info_t *info,
                           const hd_expr_t *e, unsigned i) {
  const hd_intrinsic_param_t *param = &info->params[i];
  const hd_expr_t *operand = e->operands[i];
  int names = hd_intrinsic_names(param->form);
  if (names) {
    if (operand->u.i < 0 || operand->u.i >= names)
      hd_verify_fault(v, operand->loc, "operand %u of '%s' names nothing",
                      i + 1, info->name);
    return;
  }
  if (param->any)
    return;
  hd_type_t type = param->generic ? bound_type(info, e) : param->type;
  hd_verify_type(v, operand,
                 hd_param_is_register(param->form) ? hd_type_lane(type) : type);
}

static bool verify_operands(hd_verifier_t *v, const hd_intrinsic_info_t *info,
                            const hd_expr_t *e) {
  unsigned errors = v->errors;
  for (unsigned i = 0; i < info->num_params; i++) {
    const hd_expr_t *operand = e->operands[i];
    hd_param_form_t form = info->params[i].form;
    bool is_place = hd_param_is_place(form);
    if (is_place != (operand->kind == HD_EXPR_REF))
      hd_verify_fault(v, operand->loc, "operand %u of '%s' must%s be a place",
                      i + 1, info->name, is_place ? "" : " not");
    else if (!is_place && form != HD_PARAM_VALUE && !hd_expr_is_const(operand))
      hd_verify_fault(v, operand->loc, "operand %u of '%s' must be a constant",
                      i + 1, info->name);
    else
      verify_operand(v, info, e, i);
  }
  return v->errors == errors;
}

// The operand of a form, counted from nth = 0 on; NULL where there is none.
static const hd_expr_t *find_operand(const hd_intrinsic_info_t *info,
                                     const hd_expr_t *e, hd_param_form_t form,
                                     unsigned nth) {
  for (unsigned i = 0; i < info->num_params; i++)
    if (info->params[i].form == form && nth-- == 0)
      return e->operands[i];
  return NULL;
}

// A map and what it copies to or from: coordinates for each axis, elements of
// one size, and a box that fits the shared tensor's rows.
static void verify_copy(hd_verifier_t *v, const hd_intrinsic_info_t *info,
                        const hd_expr_t *e) {
  const hd_var_t *map = NULL;
  unsigned coordinates = 0;
  for (unsigned i = 0; i < info->num_params; i++) {
    if (info->params[i].form != HD_PARAM_VALUE)
      continue;
    if (info->params[i].type.scalar == HD_MAP)
      map = e->operands[i]->u.var;
    else if (info->params[i].type.scalar == HD_I32)
      coordinates++;
  }
  if (!map || !map->map)
    return; // A fn's; known once it is inlined.
  const hd_tensor_t *tensor = map->map->tensor->tensor;
  bool is_im2col = strstr(info->name, "im2col") != NULL;
  if (is_im2col != map->map->im2col) {
    fault(v, e,
          is_im2col ? "the map is not declared with im2col"
                    : "the map is declared with im2col");
    return;
  }
  if (coordinates != tensor->rank) {
    fault(v, e, "it takes a coordinate for each axis of the map's tensor");
    return;
  }
  const hd_expr_t *place = find_operand(info, e, HD_PARAM_SHARED, 0);
  if (!place)
    return;
  const hd_tensor_t *shared = place->u.var->tensor;
  int64_t row, inner;
  if (hd_type_bits(shared->element) != hd_type_bits(tensor->element))
    fault(v, e, "the tensors' elements differ in size");
  else if (shared->rank < 1 ||
           !hd_expr_fold_int(shared->shape[shared->rank - 1], &row) ||
           !hd_expr_fold_int(map->map->box[map->map->num_box - 1], &inner) ||
           row != inner)
    fault(v, e, "the box must be as long as the shared tensor's last axis");
  else if (hd_matrix_swizzle(shared) != map->map->swizzle)
    fault(v, e, "the map's swizzle is not that of the shared tensor's layout");
  else if (map->map->swizzle ? shared->align < 8 * map->map->swizzle
                             : shared->align < 128)
    fault(v, e,
          map->map->swizzle
              ? "a swizzled tile must be aligned to eight rows of the "
                "pattern: align(1024) for swizzle(128)"
              : "the shared tensor must be aligned: align(128)");
}

// n of m64nNk..: a multiple of 8 up to 256; integers know fewer.
static bool is_width(int64_t n, hd_scalar_t scalar) {
  if (n < 8 || n > 256 || n % 8)
    return false;
  bool is_integer = scalar == HD_I8 || scalar == HD_U8;
  return !is_integer || n == 8 || n == 24 || n % 16 == 0;
}

static void verify_wgmma(hd_verifier_t *v, const hd_intrinsic_info_t *info,
                         const hd_expr_t *e) {
  const hd_expr_t *b = NULL;
  for (unsigned i = 0; i < info->num_params; i++)
    if (info->params[i].form == HD_PARAM_MATRIX)
      b = e->operands[i];
  if (!is_width(e->operands[info->count]->u.i, (hd_scalar_t)b->type.scalar)) {
    fault(
        v, e,
        "there is no instruction of this n (a multiple of 8 from 8 to 256; of "
        "8-bit integers past 32 a multiple of 16)");
    return;
  }
  for (unsigned i = 0; i < info->num_params; i++) {
    hd_matrix_t matrix;
    if (info->params[i].form != HD_PARAM_MATRIX)
      continue;
    const char *why = hd_matrix_operand(info, e, i, &matrix);
    if (why)
      fault(v, e,
            hd_arena_printf(&v->arena, "wgmma cannot read '%s': %s",
                            e->operands[i]->u.var->name, why));
  }
}

// The rules of an intrinsic, by the beginning of its name.
static const struct {
  const char *prefix;
  void (*verify)(hd_verifier_t *v, const hd_intrinsic_info_t *info,
                 const hd_expr_t *e);
} rules[] = {{"tma_load", verify_copy},
             {"tma_store", verify_copy},
             {"tma_reduce", verify_copy},
             {"wgmma_m64", verify_wgmma}};

void hd_verify_intrinsic(hd_verifier_t *v, const hd_expr_t *e) {
  const hd_intrinsic_info_t *info =
      hd_intrinsic_info((hd_intrinsic_t)e->u.intrinsic);
  if (info->num_params != e->num_operands) {
    hd_error(v->diags, e->loc, HD_E0206, info->name, (int)info->num_params,
             "arguments", (int)e->num_operands);
    v->errors++;
    return;
  }
  if (!verify_operands(v, info, e))
    return;
  if (!info->result_generic)
    hd_verify_type(v, e, info->result);
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
    if (strncmp(info->name, rules[i].prefix, strlen(rules[i].prefix)) == 0)
      rules[i].verify(v, info, e);
}
