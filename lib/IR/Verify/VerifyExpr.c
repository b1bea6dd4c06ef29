// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expressions: operands, types, names in scope. The parser builds only right
// ones; this is what finds the mistakes of passes.
#include "IR/Verify/VerifierState.h"

#include "IR/Call.h"
#include "IR/Effects.h"

#include <math.h>

static const char *kind_name(const hd_expr_t *e) {
  return hd_expr_info((hd_expr_kind_t)e->kind)->name;
}

void hd_verify_type(hd_verifier_t *v, const hd_expr_t *e, hd_type_t type) {
  if (!hd_type_equal(e->type, type))
    hd_verify_fault(v, e->loc, "%s has type %s where %s is needed",
                    kind_name(e), hd_type_name(e->type), hd_type_name(type));
}

// A layout, a bound and a check each use the index anew.
void hd_verify_index(hd_verifier_t *v, const hd_expr_t *e) {
  if (!hd_type_is_integer(e->type) || e->type.lanes != 1)
    hd_verify_fault(v, e->loc, "an index has type %s", hd_type_name(e->type));
  if (!hd_expr_is_repeatable(e)) {
    hd_error(v->diags, e->loc, HD_E0302, "what has an effect",
             "in an index; name its value by a let before");
    v->errors++;
  }
}

static void expect_visible(hd_verifier_t *v, const hd_expr_t *e) {
  if (!hd_verifier_sees(v, e->u.var)) {
    hd_error(v->diags, e->loc, HD_E0301, e->u.var->name);
    v->errors++;
  }
}

static void verify_access(hd_verifier_t *v, const hd_expr_t *e) {
  const hd_var_t *var = e->u.var;
  if (!var->tensor) {
    hd_error(v->diags, e->loc, HD_E0208, var->name);
    v->errors++;
    return;
  }
  expect_visible(v, e);
  unsigned indices = hd_expr_num_indices(e);
  unsigned rank = e->linear ? 1 : var->tensor->rank;
  if (indices != rank)
    hd_verify_fault(v, e->loc,
                    "'%s' has rank %u, and is accessed with %u "
                    "indices",
                    var->name, rank, indices);
  for (unsigned i = 0; i < indices && i < e->num_operands; i++)
    hd_verify_index(v, e->operands[i]);
  if (e->type.scalar != var->type.scalar)
    hd_verify_fault(v, e->loc, "an element of '%s' read as %s", var->name,
                    hd_type_name(e->type));
  if (e->kind == HD_EXPR_LOADELSE && e->num_operands) {
    const hd_expr_t *otherwise = e->operands[e->num_operands - 1];
    hd_verify_type(v, otherwise, e->type);
    if (e->type.lanes > 1 && !hd_expr_is_repeatable(otherwise)) {
      hd_error(v->diags, e->loc, HD_E0302, "what has an effect",
               "in the else of a vector; name its value by a let before");
      v->errors++;
    }
  }
  if (e->type.lanes > 1)
    hd_verify_lanes(v, var, e->linear, e->type.lanes, e->loc);
  if (e->kind == HD_EXPR_LOAD && var->type.scalar == HD_MBARRIER)
    hd_verify_fault(v, e->loc, "an mbarrier is no value");
}

// Operand counts by kind; -1: any.
static int arity(const hd_expr_t *e) {
  hd_expr_form_t form = hd_expr_info((hd_expr_kind_t)e->kind)->form;
  switch (form) {
  case HD_FORM_LEAF:
    return 0;
  case HD_FORM_UNARY:
    return 1;
  case HD_FORM_BINARY:
  case HD_FORM_COMPARE:
  case HD_FORM_CALL:
    return 2;
  case HD_FORM_OTHER:
    break;
  }
  return e->kind == HD_EXPR_SELECT ? 3
         : e->kind == HD_EXPR_CAST || e->kind == HD_EXPR_BITCAST ||
                 e->kind == HD_EXPR_LANE
             ? 1
             : -1;
}

static bool is_written(const hd_func_t *func, const hd_var_t *param) {
  return param->direction == HD_DIR_NONE
             ? hd_func_writes(func, param) // In registers, shared memory.
             : param->direction != HD_DIR_IN;
}

// Tensor parameters do not overlap, unless all are read alone.
void hd_verify_distinct(hd_verifier_t *v, const hd_func_t *func,
                        const hd_expr_t *const *args) {
  for (uint32_t i = 0; i < func->num_params; i++) {
    if (args[i]->kind != HD_EXPR_TENSOR)
      continue;
    for (uint32_t j = 0; j < func->num_params; j++) {
      if (i == j || args[j]->kind != HD_EXPR_TENSOR ||
          !hd_verifier_overlaps(v, args[i]->u.var, args[j]->u.var) ||
          !is_written(func, func->params[i]))
        continue;
      hd_error(v->diags, args[i]->loc, HD_E0302, "a tensor that is written",
               args[i]->u.var == args[j]->u.var
                   ? "among the arguments twice"
                   : "among the arguments beside a part of it");
      v->errors++;
      return;
    }
  }
}

// What a function takes by reference begins where it expects it to.
static void verify_alignment(hd_verifier_t *v, const hd_var_t *param,
                             const hd_expr_t *argument) {
  const hd_tensor_t *wanted = param->tensor, *given = argument->u.var->tensor;
  if (wanted->scope != HD_SCOPE_REGISTER &&
      hd_tensor_align(wanted) > hd_tensor_align(given))
    hd_verify_fault(v, argument->loc,
                    "'%s' must be aligned to %u bytes, and '%s' is to %u",
                    param->name, hd_tensor_align(wanted), argument->u.var->name,
                    hd_tensor_align(given));
}

static void verify_call(hd_verifier_t *v, const hd_expr_t *e) {
  const hd_func_t *func = e->u.func;
  hd_verify_type(v, e, func->result);
  if (func->num_params != e->num_operands) {
    hd_error(v->diags, e->loc, HD_E0206, func->name, (int)func->num_params,
             "arguments", (int)e->num_operands);
    v->errors++;
    return;
  }
  for (uint32_t i = 0; i < func->num_params; i++) {
    hd_verify_type(v, e->operands[i], func->params[i]->type);
    const hd_var_t *param = func->params[i];
    bool is_tensor = e->operands[i]->kind == HD_EXPR_TENSOR;
    if (is_tensor != (param->tensor != NULL)) {
      hd_verify_fault(v, e->operands[i]->loc, "'%s' of '%s' must %sbe a tensor",
                      param->name, func->name, is_tensor ? "not " : "");
    } else if (is_tensor &&
               (param->direction == HD_DIR_OUT ||
                param->direction == HD_DIR_INOUT) &&
               e->operands[i]->u.var->direction == HD_DIR_IN) {
      hd_error(v->diags, e->operands[i]->loc, HD_E0209,
               e->operands[i]->u.var->name,
               hd_var_read_only(e->operands[i]->u.var));
      v->errors++;
    }
    if (is_tensor && param->tensor && e->operands[i]->u.var->tensor)
      verify_alignment(v, param, e->operands[i]);
  }
  int i = hd_call_disagrees(&v->arena, func, e->operands, NULL);
  if (i >= 0)
    hd_verify_fault(
        v, e->operands[i]->loc, "'%s' and '%s' of '%s' are not of one type",
        e->operands[i]->u.var->name, func->params[i]->name, func->name);
  hd_verify_distinct(v, func, e->operands);
  hd_verify_copies(v, e);
}

static bool is_value(hd_type_t type) {
  hd_scalar_class_t class = hd_scalar_class((hd_scalar_t)type.scalar);
  return class != HD_CLASS_VOID && class != HD_CLASS_OPAQUE;
}

// Memory and functions belong to the device.
static void verify_side(hd_verifier_t *v, const hd_expr_t *e) {
  if (!v->host || e->kind == HD_EXPR_SELECT || e->kind == HD_EXPR_CAST ||
      e->kind == HD_EXPR_BITCAST || e->kind == HD_EXPR_VECTOR ||
      e->kind == HD_EXPR_LANE)
    return;
  hd_error(v->diags, e->loc, HD_E0302,
           hd_expr_info((hd_expr_kind_t)e->kind)->spelling,
           "where the host computes");
  v->errors++;
}

static void verify_other(hd_verifier_t *v, const hd_expr_t *e) {
  switch ((hd_expr_kind_t)e->kind) {
  case HD_EXPR_SELECT:
    hd_verify_type(v, e->operands[0], hd_type(HD_BOOL));
    hd_verify_type(v, e->operands[1], e->type);
    hd_verify_type(v, e->operands[2], e->type);
    if (!is_value(e->type))
      hd_verify_fault(v, e->loc, "%s is no value to choose",
                      hd_type_name(e->type));
    break;
  case HD_EXPR_CAST:
    if (e->operands[0]->type.lanes != e->type.lanes || !is_value(e->type) ||
        !is_value(e->operands[0]->type) ||
        hd_type_equal(e->operands[0]->type, e->type))
      hd_verify_fault(v, e->loc, "a conversion from %s to %s",
                      hd_type_name(e->operands[0]->type),
                      hd_type_name(e->type));
    break;
  case HD_EXPR_BITCAST:
    if (hd_type_bits(e->operands[0]->type) != hd_type_bits(e->type) ||
        !is_value(e->type) || !is_value(e->operands[0]->type) ||
        hd_type_is_bool(e->type) || hd_type_is_bool(e->operands[0]->type))
      hd_verify_fault(v, e->loc, "a bitcast from %s to %s",
                      hd_type_name(e->operands[0]->type),
                      hd_type_name(e->type));
    break;
  case HD_EXPR_VECTOR:
    if ((e->num_operands != 1 && e->num_operands != e->type.lanes) ||
        e->type.lanes < 2)
      hd_verify_fault(v, e->loc, "a vector of %u lanes from %u values",
                      e->type.lanes, e->num_operands);
    for (uint32_t i = 0; i < e->num_operands; i++)
      hd_verify_type(v, e->operands[i], hd_type_lane(e->type));
    break;
  case HD_EXPR_LANE:
    if (e->u.i < 0 || e->u.i >= e->operands[0]->type.lanes)
      hd_verify_fault(v, e->loc, "lane %lld of %s", (long long)e->u.i,
                      hd_type_name(e->operands[0]->type));
    hd_verify_type(v, e, hd_type_lane(e->operands[0]->type));
    break;
  case HD_EXPR_LOAD:
  case HD_EXPR_LOADELSE:
  case HD_EXPR_REF:
    verify_access(v, e);
    break;
  case HD_EXPR_CALL:
    verify_call(v, e);
    break;
  case HD_EXPR_INTRINSIC:
    hd_verify_intrinsic(v, e);
    break;
  default:
    break; // Not of this form.
  }
}

// A constant is a value of its type: passes compute with it.
static void verify_const(hd_verifier_t *v, const hd_expr_t *e) {
  bool ok = e->type.lanes == 1 && is_value(e->type);
  unsigned bits = hd_scalar_bits((hd_scalar_t)e->type.scalar);
  if (hd_type_is_float(e->type)) {
    double rounded = hd_float_round((hd_scalar_t)e->type.scalar, e->u.f);
    ok &= isnan(e->u.f) || rounded == e->u.f;
  } else if (hd_type_is_bool(e->type)) {
    ok &= e->u.i == 0 || e->u.i == 1;
  } else if (hd_type_is_signed(e->type)) {
    int64_t high = e->u.i >> (bits - 1);
    ok &= high == 0 || high == -1;
  } else if (hd_type_is_unsigned(e->type) && bits < 64) {
    ok &= (uint64_t)e->u.i >> bits == 0;
  }
  if (!ok)
    hd_verify_fault(v, e->loc, "a constant that is no value of %s",
                    hd_type_name(e->type));
}

static void verify_leaf(hd_verifier_t *v, const hd_expr_t *e) {
  if (e->kind == HD_EXPR_CONST)
    verify_const(v, e);
  if (e->kind == HD_EXPR_VAR || e->kind == HD_EXPR_TENSOR) {
    expect_visible(v, e);
    hd_verify_type(v, e, e->u.var->type);
  } else if (e->kind == HD_EXPR_BUILTIN &&
             hd_builtin_info(e->u.builtin)->host != v->host) {
    hd_error(v->diags, e->loc, HD_E0302, hd_builtin_info(e->u.builtin)->text,
             v->host ? "in a launch clause" : "in a body");
    v->errors++;
  }
}

static void expect_defined(hd_verifier_t *v, const hd_expr_t *e) {
  if (!hd_expr_defined((hd_expr_kind_t)e->kind, e->operands[0]->type)) {
    hd_error(v->diags, e->loc, HD_E0205,
             hd_expr_info((hd_expr_kind_t)e->kind)->spelling,
             hd_type_name(e->operands[0]->type));
    v->errors++;
  }
}

void hd_verify_expr(hd_verifier_t *v, const hd_expr_t *e) {
  int expected = arity(e);
  if (expected >= 0 && (uint32_t)expected != e->num_operands) {
    hd_verify_fault(v, e->loc, "%s has %u operands", kind_name(e),
                    e->num_operands);
    return;
  }
  for (uint32_t i = 0; i < e->num_operands; i++)
    hd_verify_expr(v, e->operands[i]);
  switch (hd_expr_info((hd_expr_kind_t)e->kind)->form) {
  case HD_FORM_LEAF:
    verify_leaf(v, e);
    break;
  case HD_FORM_UNARY:
    hd_verify_type(v, e->operands[0], e->type);
    expect_defined(v, e);
    break;
  case HD_FORM_BINARY:
  case HD_FORM_CALL:
    hd_verify_type(v, e->operands[0], e->type);
    hd_verify_type(v, e->operands[1], e->type);
    expect_defined(v, e);
    break;
  case HD_FORM_COMPARE:
    expect_defined(v, e);
    hd_verify_type(v, e->operands[1], e->operands[0]->type);
    hd_verify_type(v, e, hd_type_vector(HD_BOOL, e->operands[0]->type.lanes));
    break;
  case HD_FORM_OTHER:
    verify_side(v, e);
    verify_other(v, e);
    break;
  }
}
