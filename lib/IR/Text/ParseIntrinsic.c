// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of intrinsics: the rows of a name that takes the arguments.
#include "IR/Text/CallParser.h"

#include <string.h>

static const hd_parsed_t failed = {NULL, false};

// relaxed, device, ca ...: words that stand for themselves, where a row of the
// intrinsic expects one.
bool hd_parse_intrinsic_word(hd_parser_t *p, const char *callee, unsigned index,
                             hd_parsed_t *value) {
  const hd_token_t *token = hd_peek(p);
  if (token->kind != HD_TOKEN_NAME)
    return false;
  hd_intrinsic_t row = hd_intrinsic_find(callee);
  for (; row < HD_INTRINSIC_COUNT; row++) {
    const hd_intrinsic_info_t *info = hd_intrinsic_info(row);
    if (strcmp(info->name, callee) != 0)
      break;
    if (index >= info->num_params ||
        !hd_param_is_name(info->params[index].form))
      continue;
    int word = hd_intrinsic_name_find(info->params[index].form, token->text);
    if (word < 0)
      continue;
    hd_expr_t like = {.u.i = word, .loc = hd_here(p)};
    *value = (hd_parsed_t){
        hd_expr_make(p->arena, HD_EXPR_CONST, hd_type(HD_I32), &like, NULL, 0),
        false};
    p->at++;
    return true;
  }
  return false;
}

static bool scope_fits(hd_param_form_t form, hd_scope_t scope) {
  switch (form) {
  case HD_PARAM_SHARED:
  case HD_PARAM_MATRIX:
    return scope == HD_SCOPE_SHARED;
  case HD_PARAM_GLOBAL:
    return scope == HD_SCOPE_GLOBAL;
  case HD_PARAM_MEMORY:
    return scope != HD_SCOPE_REGISTER;
  case HD_PARAM_REGISTER:
    return scope == HD_SCOPE_REGISTER;
  case HD_PARAM_VALUE:
  case HD_PARAM_CONST:
  case HD_PARAM_ORDER:
  case HD_PARAM_SCOPE:
  case HD_PARAM_CACHE:
  case HD_PARAM_POLICY:
  case HD_PARAM_MAJOR:
    return false;
  }
  return false;
}

static bool allowed(const hd_intrinsic_info_t *info, hd_type_t type) {
  for (unsigned i = 0; i < info->num_types; i++)
    if (hd_type_equal(info->types[i], type))
      return true;
  return false;
}

// The type that T stands for, from the first argument that settles it.
static bool bind_type(const hd_intrinsic_info_t *info, const hd_args_t *args,
                      hd_type_t *bound) {
  bool is_float = false;
  for (unsigned i = 0; i < args->count; i++) {
    const hd_intrinsic_param_t *param = &info->params[i];
    if (!param->generic)
      continue;
    is_float |= hd_type_is_float(args->values[i].e->type);
    if (args->values[i].untyped)
      continue;
    *bound = args->values[i].e->type;
    return allowed(info, *bound);
  }
  *bound = hd_type(is_float ? HD_F32 : HD_I32);
  return info->num_types == 0 || allowed(info, *bound);
}

static bool row_takes(const hd_intrinsic_info_t *info, const hd_args_t *args,
                      hd_type_t bound) {
  if (args->count < info->num_required || args->count > info->num_params)
    return false;
  for (unsigned i = 0; i < args->count; i++) {
    const hd_intrinsic_param_t *param = &info->params[i];
    const hd_expr_t *e = args->values[i].e;
    hd_type_t type = param->generic ? bound : param->type;
    if (args->are_words[i] != hd_param_is_name(param->form))
      return false;
    if (!hd_param_is_place(param->form)) {
      if (e->kind == HD_EXPR_TENSOR || !hd_may_become(args->values[i], type))
        return false;
      continue;
    }
    if (e->kind != HD_EXPR_LOAD ||
        !scope_fits(param->form, e->u.var->tensor->scope))
      return false;
    if (param->any)
      continue;
    if (param->form == HD_PARAM_REGISTER
            ? e->type.lanes != 1 || e->type.scalar != type.scalar
            : !hd_type_equal(e->type, type))
      return false;
  }
  return true;
}

static hd_parsed_t call_intrinsic(hd_parser_t *p, hd_intrinsic_t row,
                                  const hd_args_t *args, hd_type_t bound,
                                  hd_loc_t loc) {
  const hd_intrinsic_info_t *info = hd_intrinsic_info(row);
  const hd_expr_t *operands[HD_INTRINSIC_MAX_PARAMS];
  for (unsigned i = 0; i < info->num_params; i++) {
    const hd_intrinsic_param_t *param = &info->params[i];
    if (i >= args->count) {
      operands[i] =
          hd_expr_i32(p->arena, hd_intrinsic_name_default(param->form));
      continue;
    }
    const hd_expr_t *e = args->values[i].e;
    if (hd_param_is_place(param->form)) {
      operands[i] = hd_expr_make(p->arena, HD_EXPR_REF, e->type, e, e->operands,
                                 e->num_operands);
      continue;
    }
    operands[i] =
        hd_coerce(p, args->values[i], param->generic ? bound : param->type);
    int64_t value;
    if (!operands[i])
      return failed;
    if (param->form == HD_PARAM_CONST) {
      if (!hd_expr_fold_int(operands[i], &value)) {
        hd_error(p->diags, e->loc, HD_E0210, "");
        return failed;
      }
      operands[i] = hd_expr_int(p->arena, operands[i]->type, value);
    }
  }
  hd_expr_t like = {.u.intrinsic = (int)row, .loc = loc};
  hd_type_t type = info->result_generic ? bound : info->result;
  return (hd_parsed_t){hd_expr_make(p->arena, HD_EXPR_INTRINSIC, type, &like,
                                    operands, info->num_params),
                       false};
}

bool hd_parse_intrinsic(hd_parser_t *p, const char *name, hd_loc_t loc,
                        const hd_args_t *args, bool *exists,
                        hd_parsed_t *result) {
  for (hd_intrinsic_t row = hd_intrinsic_find(name); row < HD_INTRINSIC_COUNT;
       row++) {
    const hd_intrinsic_info_t *info = hd_intrinsic_info(row);
    hd_type_t bound;
    if (strcmp(info->name, name) != 0)
      break;
    *exists = true;
    if (args->count <= info->num_params && bind_type(info, args, &bound) &&
        row_takes(info, args, bound)) {
      *result = call_intrinsic(p, row, args, bound, loc);
      return true;
    }
  }
  return false;
}
