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

// A signed sum, difference or product that is not what mathematics says.
static bool wraps(const hd_expr_t *e, int64_t a, int64_t b) {
  hd_scalar_t type = (hd_scalar_t)e->type.scalar;
  int64_t exact = 0;
  bool over = e->kind == HD_EXPR_ADD   ? __builtin_add_overflow(a, b, &exact)
              : e->kind == HD_EXPR_SUB ? __builtin_sub_overflow(a, b, &exact)
              : e->kind == HD_EXPR_MUL ? __builtin_mul_overflow(a, b, &exact)
              : e->kind == HD_EXPR_NEG
                  ? __builtin_sub_overflow((int64_t)0, a, &exact)
                  : false;
  return hd_scalar_class(type) == HD_CLASS_SIGNED &&
         (over || hd_int_wrap(type, exact) != exact);
}

static bool fold_node(const hd_fold_t *fold, const hd_expr_t *e, hd_number_t a,
                      hd_number_t b, hd_number_t *value) {
  hd_expr_form_t form = hd_expr_info((hd_expr_kind_t)e->kind)->form;
  hd_type_t from = e->operands[0]->type;
  bool is_cast = e->kind == HD_EXPR_CAST;
  if ((!is_cast && form == HD_FORM_OTHER) ||
      (hd_type_is_float(from) && !is_folded_float(from)) ||
      (hd_type_is_float(e->type) && !is_folded_float(e->type)))
    return false;
  if (fold->wrapped && wraps(e, a.i, b.i)) {
    *fold->wrapped = true;
    return false;
  }
  if (!is_cast)
    return hd_scalar_operate((hd_expr_kind_t)e->kind, (hd_scalar_t)from.scalar,
                             a, b, value);
  *value = hd_scalar_convert((hd_scalar_t)e->type.scalar,
                             (hd_scalar_t)from.scalar, a);
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

static bool fold_table(const hd_expr_t *e, hd_number_t *value) {
  const hd_host_tensor_t *table = e->u.var->table;
  int64_t i;
  if (e->kind != HD_EXPR_LOAD || !table || !hd_table_find(e, &i))
    return false;
  *value = hd_type_is_float(e->type)
               ? (hd_number_t){.f = hd_host_tensor_get(table, i)}
               : (hd_number_t){.i = hd_host_tensor_get_int(table, i)};
  return true;
}

// Takes no memory: it is asked of every shape and every bound.
bool hd_expr_value(const hd_fold_t *fold, const hd_expr_t *e,
                   hd_number_t *value) {
  hd_number_t a, b = {0};
  if (e->type.lanes != 1)
    return false;
  if (e->kind == HD_EXPR_CONST) {
    *value = hd_expr_number(e);
    return true;
  }
  if (e->kind == HD_EXPR_VAR || e->kind == HD_EXPR_BUILTIN)
    return fold->leaf && fold->leaf(fold->argument, e, value);
  if (hd_expr_is_access(e))
    return fold_table(e, value);
  if (e->num_operands == 0 || e->num_operands > 3 ||
      !hd_expr_value(fold, e->operands[0], &a))
    return false;
  if (e->kind == HD_EXPR_SELECT)
    return hd_expr_value(fold, e->operands[a.i ? 1 : 2], value);
  // The right side counts only where the left one leaves it open.
  if ((e->kind == HD_EXPR_AND && !a.i) || (e->kind == HD_EXPR_OR && a.i)) {
    *value = a;
    return true;
  }
  return (e->num_operands < 2 || hd_expr_value(fold, e->operands[1], &b)) &&
         fold_node(fold, e, a, b, value);
}

const hd_expr_t *hd_expr_fold(hd_arena_t *arena, const hd_expr_t *e) {
  hd_number_t value;
  if (e->kind == HD_EXPR_CONST)
    return e;
  if (!hd_expr_value(&(hd_fold_t){0}, e, &value))
    return NULL;
  return hd_type_is_float(e->type) ? hd_expr_float(arena, e->type, value.f)
                                   : hd_expr_int(arena, e->type, value.i);
}

bool hd_expr_fold_int(const hd_expr_t *e, int64_t *value) {
  hd_number_t number;
  if (hd_type_is_float(e->type) || !hd_expr_value(&(hd_fold_t){0}, e, &number))
    return false;
  *value = number.i;
  return true;
}
