// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constant folding: what an expression over constants is worth, by the rules of
// docs/IR.md, the same as the emitted code would give.
#include "IR/Graph/HostTensor.h"
#include "IR/Scalar.h"
#include "IR/Tensor.h"

// Types whose arithmetic in double and one more rounding is right: a double
// holds more than twice an f32's digits, and division and the sum of two f32
// round the same (double rounding is innocuous at 2p + 2 digits).
static bool is_folded_float(hd_type_t type) {
  return type.scalar == HD_F32 || type.scalar == HD_F64;
}

// What an expression is worth.
typedef struct value {
  hd_type_t type;
  hd_number_t number;
} value_t;

static bool fold_node(value_t *out, const hd_expr_t *e,
                      const value_t *operands) {
  hd_expr_form_t form = hd_expr_info((hd_expr_kind_t)e->kind)->form;
  const value_t *a = &operands[0];
  const value_t *b = e->num_operands > 1 ? &operands[1] : a;
  bool is_cast = e->kind == HD_EXPR_CAST;
  if ((!is_cast && (form == HD_FORM_OTHER || form == HD_FORM_LEAF)) ||
      (hd_type_is_float(a->type) && !is_folded_float(a->type)) ||
      (hd_type_is_float(e->type) && !is_folded_float(e->type)))
    return false;
  out->type = e->type;
  if (!is_cast)
    return hd_scalar_operate((hd_expr_kind_t)e->kind,
                             (hd_scalar_t)a->type.scalar, a->number, b->number,
                             &out->number);
  out->number = hd_scalar_convert((hd_scalar_t)e->type.scalar,
                                  (hd_scalar_t)a->type.scalar, a->number);
  return true;
}

static bool fold_leaf(const hd_expr_t *e, hd_lookup_t lookup, void *argument,
                      value_t *out) {
  if (e->kind != HD_EXPR_CONST)
    e = lookup ? lookup(argument, e) : NULL;
  if (!e)
    return false;
  *out = (value_t){.type = e->type};
  if (hd_type_is_float(e->type))
    out->number.f = e->u.f;
  else
    out->number.i = e->u.i;
  return true;
}

bool hd_table_find(const hd_expr_t *access, int64_t *element) {
  const hd_tensor_t *tensor = access->u.var->tensor;
  *element = 0;
  for (uint32_t i = 0; i < access->num_operands; i++) {
    int64_t index, size = access->u.var->table->count;
    if (!hd_expr_fold_int(access->operands[i], &index) ||
        (!access->linear && !hd_expr_fold_int(tensor->shape[i], &size)) ||
        index < 0 || index >= size)
      return false;
    *element = *element * size + index;
  }
  return true;
}

static bool fold_table(const hd_expr_t *e, value_t *out) {
  const hd_host_tensor_t *table = e->u.var->table;
  int64_t i;
  if (e->kind != HD_EXPR_LOAD || !table || !hd_table_find(e, &i))
    return false;
  *out = (value_t){.type = e->type};
  if (hd_type_is_float(e->type))
    out->number.f = hd_host_tensor_get(table, i);
  else
    out->number.i = hd_host_tensor_get_int(table, i);
  return true;
}

// Takes no memory: it is asked of every shape and every bound.
static bool fold(const hd_expr_t *e, hd_lookup_t lookup, void *argument,
                 value_t *out) {
  if (e->kind == HD_EXPR_CONST || e->kind == HD_EXPR_VAR ||
      e->kind == HD_EXPR_BUILTIN)
    return fold_leaf(e, lookup, argument, out);
  if (e->type.lanes != 1 || e->num_operands == 0)
    return false;
  if (hd_expr_is_access(e))
    return fold_table(e, out);
  if (e->num_operands > 3)
    return false;
  value_t operands[3];
  if (!fold(e->operands[0], lookup, argument, &operands[0]))
    return false;
  if (e->kind == HD_EXPR_SELECT)
    return fold(e->operands[operands[0].number.i ? 1 : 2], lookup, argument,
                out);
  // The right side counts only where the left one leaves it open.
  bool settles = e->kind == HD_EXPR_AND
                     ? !operands[0].number.i
                     : e->kind == HD_EXPR_OR && operands[0].number.i;
  if (settles) {
    *out = operands[0];
    return true;
  }
  for (unsigned i = 1; i < e->num_operands; i++)
    if (!fold(e->operands[i], lookup, argument, &operands[i]))
      return false;
  return fold_node(out, e, operands);
}

const hd_expr_t *hd_expr_fold(hd_arena_t *arena, const hd_expr_t *e,
                              hd_lookup_t lookup, void *argument) {
  value_t value;
  if (e->kind == HD_EXPR_CONST)
    return e;
  if (!fold(e, lookup, argument, &value))
    return NULL;
  return hd_type_is_float(value.type)
             ? hd_expr_float(arena, value.type, value.number.f)
             : hd_expr_int(arena, value.type, value.number.i);
}

bool hd_expr_fold_int(const hd_expr_t *e, int64_t *value) {
  value_t result;
  bool ok = fold(e, NULL, NULL, &result) && !hd_type_is_float(result.type);
  if (ok)
    *value = result.number.i;
  return ok;
}
