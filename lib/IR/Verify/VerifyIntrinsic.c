// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Intrinsics: operands against the table, and the rules that types cannot say.
// The rules hold on every device, so that the simulator refuses what the GPU
// would.
#include "IR/Verify/VerifierState.h"

#include "IR/Matrix.h"

void hd_verify_intrinsic_fault(hd_verifier_t *v, const hd_expr_t *e,
                               const char *why) {
  const hd_intrinsic_info_t *info = hd_intrinsic_of(e);
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
    else if (!hd_intrinsic_takes_name(info, param->form, (int)operand->u.i))
      hd_verify_intrinsic_fault(
          v, e,
          hd_arena_printf(
              &v->arena, "the hardware knows no '%s' of it",
              hd_intrinsic_name_text(param->form, (int)operand->u.i)));
    return;
  }
  if (param->any)
    return;
  hd_type_t type = param->generic ? bound_type(info, e) : param->type;
  hd_verify_type(v, operand,
                 param->form == HD_PARAM_REGISTER ? hd_type_lane(type) : type);
}

static bool is_bound(const hd_intrinsic_info_t *info, hd_type_t type) {
  for (unsigned i = 0; i < info->num_types; i++)
    if (hd_type_equal(info->types[i], type))
      return true;
  return info->num_types == 0;
}

static const char *range_text(hd_arena_t *arena,
                              const hd_operand_range_t *range) {
  const char *text = range->step == 1 ? ""
                     : range->step == 0
                         ? " and be a power of two"
                         : hd_arena_printf(arena, " and be a multiple of %lld",
                                           (long long)range->step);
  return hd_arena_printf(arena, "between %lld and %lld%s",
                         (long long)range->least, (long long)range->most, text);
}

// A constant that the hardware does not take.
static void verify_range(hd_verifier_t *v, const hd_intrinsic_info_t *info,
                         const hd_expr_t *e, unsigned i) {
  const hd_intrinsic_param_t *param = &info->params[i];
  int64_t value;
  if (!hd_expr_fold_int(e->operands[i], &value) || hd_param_takes(param, value))
    return;
  const char *text = range_text(&v->arena, &param->ranges[0]);
  for (unsigned k = 1; k < param->num_ranges; k++)
    text = hd_arena_printf(&v->arena, "%s, or %s", text,
                           range_text(&v->arena, &param->ranges[k]));
  hd_verify_intrinsic_fault(v, e,
                            hd_arena_printf(&v->arena,
                                            "operand %u must lie %s, found "
                                            "%lld",
                                            i + 1, text, (long long)value));
}

// A copy past the L1 is of whole sectors.
static void verify_copy_size(hd_verifier_t *v, const hd_intrinsic_info_t *info,
                             const hd_expr_t *e) {
  int64_t bytes = 16;
  bool past = false;
  for (unsigned i = 0; i < info->num_params; i++) {
    hd_param_form_t form = info->params[i].form;
    past |= form == HD_PARAM_CACHE && e->operands[i]->u.i == HD_CACHE_CG;
    if (form == HD_PARAM_CONST)
      hd_expr_fold_int(e->operands[i], &bytes);
  }
  if ((info->traits & HD_TRAIT_COPY) && past && bytes != 16)
    hd_verify_intrinsic_fault(v, e, "by cg it copies 16 bytes");
}

// As many register elements as the call takes, from the reference on. Where the
// place is not known yet the code's maker looks.
static void verify_registers(hd_verifier_t *v, const hd_intrinsic_info_t *info,
                             const hd_expr_t *e, unsigned i) {
  const hd_expr_t *x = e->operands[i];
  const hd_tensor_t *tensor = x->u.var->tensor;
  int64_t storage, first = 0, count = hd_intrinsic_elements(info, e, i);
  if (!tensor || !hd_tensor_storage_const(tensor, &storage))
    return;
  const hd_expr_t *offset =
      x->linear              ? x->operands[0]
      : tensor->rank == 0    ? NULL
      : x->num_operands == 0 ? NULL
                             : hd_tensor_offset(&v->arena, tensor, x->operands);
  if (offset && !hd_expr_fold_int(offset, &first))
    first = 0;
  if (first < 0 || first > storage - count)
    hd_verify_intrinsic_fault(
        v, e,
        hd_arena_printf(&v->arena,
                        "it takes %lld elements of '%s' from %lld on, which "
                        "has %lld",
                        (long long)count, x->u.var->name, (long long)first,
                        (long long)storage));
}

// Atomics and the like are stores, too: of what an 'in' parameter holds code is
// made that reads it once, and from a cache that no store reaches.
static void verify_written(hd_verifier_t *v, const hd_intrinsic_info_t *info,
                           const hd_expr_t *operand, unsigned i) {
  if (operand->kind != HD_EXPR_REF || operand->u.var->direction != HD_DIR_IN ||
      !info->params[i].writes)
    return;
  hd_error(v->diags, operand->loc, HD_E0209, operand->u.var->name,
           hd_var_read_only(operand->u.var));
  v->errors++;
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
    verify_written(v, info, operand, i);
  }
  return v->errors == errors;
}

static void verify_matrices(hd_verifier_t *v, const hd_intrinsic_info_t *info,
                            const hd_expr_t *e) {
  for (unsigned i = 0; i < info->num_params; i++) {
    hd_matrix_t matrix;
    if (info->params[i].form != HD_PARAM_MATRIX)
      continue;
    const char *why = hd_matrix_operand(info, e, i, &matrix);
    if (why)
      hd_verify_intrinsic_fault(
          v, e,
          hd_arena_printf(&v->arena, "wgmma cannot read '%s': %s",
                          e->operands[i]->u.var->name, why));
  }
}

void hd_verify_intrinsic(hd_verifier_t *v, const hd_expr_t *e) {
  const hd_intrinsic_info_t *info = hd_intrinsic_of(e);
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
  if (!is_bound(info, bound_type(info, e)))
    hd_verify_fault(v, e->loc, "'%s' is not defined for %s", info->name,
                    hd_type_name(bound_type(info, e)));
  unsigned errors = v->errors;
  for (unsigned i = 0; i < info->num_params; i++)
    verify_range(v, info, e, i);
  verify_copy_size(v, info, e);
  if (v->errors == errors)
    verify_matrices(v, info, e);
  for (unsigned i = 0; i < info->num_params && v->errors == errors; i++)
    if (info->params[i].form == HD_PARAM_REGISTER)
      verify_registers(v, info, e, i);
  if (v->errors == errors)
    hd_verify_copy(v, e);
}
