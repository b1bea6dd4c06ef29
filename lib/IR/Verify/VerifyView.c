// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors of a plan. Views lie in another one: elements are what counts for
// whether two overlap: parts of rows side by side do not, though the ranges
// from their first to their last elements do.
#include "IR/Rewrite.h"
#include "IR/Verify/VerifierState.h"

// The elements of a view in its base: rows of `width` elements, `step` apart,
// from `offset` on. A view that is row-major is one row.
typedef struct span {
  const hd_var_t *base;
  bool known;
  bool moves; // In a loop: looked at when the plan is loaded.
  int64_t offset, width, step, rows;
} span_t;

static bool is_fixed(void *argument, const hd_expr_t *e) {
  (void)argument;
  return e->kind != HD_EXPR_VAR || e->u.var->kind != HD_VAR_LOOP;
}

// The strides that a layout gives, as far as they are row-major from some axis
// on; the axes before are rows.
static bool find_rows(const hd_tensor_t *tensor, span_t *span) {
  const hd_layout_t *layout = tensor->layout;
  if (!hd_tensor_storage_const(tensor, &span->width))
    return false; // Nothing below overflows.
  if (hd_tensor_is_row_major(tensor))
    return true;
  if (layout->num_items != 1 || layout->items[0].kind != HD_LAYOUT_STRIDES ||
      layout->items[0].num_values != tensor->rank)
    return false;
  span->width = 1;
  for (uint32_t i = tensor->rank; i-- > 0;) {
    int64_t size, stride;
    if (!hd_expr_fold_int(tensor->shape[i], &size) || size < 1 ||
        !hd_expr_fold_int(layout->items[0].values[i], &stride))
      return false;
    if (size == 1)
      continue;
    if (span->rows == 1 && stride == span->width)
      span->width *= size;
    else if (span->rows == 1 && stride > span->width) {
      span->step = stride;
      span->rows = size;
    } else if (span->rows > 1 && stride == span->step * span->rows)
      span->rows *= size;
    else
      return false;
  }
  return true;
}

static span_t span_of(const hd_verifier_t *v, const hd_var_t *var) {
  const hd_expr_t *of = hd_ptr_map_get(&v->views, var);
  span_t span = {.base = of ? of->u.var : var, .rows = 1};
  span.moves = of && !hd_walk_expr(of->operands[0], is_fixed, NULL);
  span.known = of && hd_expr_fold_int(of->operands[0], &span.offset) &&
               find_rows(var->tensor, &span);
  return span;
}

// Of two spans of the same rows, whether their places in a row do.
static bool rows_overlap(const span_t *a, const span_t *b) {
  int64_t step = a->rows > 1 ? a->step : b->step;
  int64_t x = a->offset % step, y = b->offset % step;
  bool inside = a->width <= step - x && b->width <= step - y;
  return !inside || (x - y < b->width && y - x < a->width);
}

bool hd_verifier_overlaps(const hd_verifier_t *v, const hd_var_t *a,
                          const hd_var_t *b) {
  if (a == b)
    return true;
  span_t x = span_of(v, a), y = span_of(v, b);
  if (x.base != y.base)
    return false;
  if (x.moves || y.moves)
    return false;
  if (!x.known || !y.known)
    return true;
  if (x.rows == 1 && y.rows == 1)
    return x.offset - y.offset < y.width && y.offset - x.offset < x.width;
  if (x.rows > 1 && y.rows > 1 && x.step != y.step)
    return true;
  return rows_overlap(&x, &y);
}

// A constant offset; others are looked at when the plan is loaded.
static bool check_place(hd_verifier_t *v, const hd_stmt_t *stmt,
                        const hd_var_t *base) {
  const hd_var_t *var = stmt->u.declare.var;
  int64_t offset, size, whole, align = hd_tensor_align(var->tensor);
  if (!hd_expr_fold_int(stmt->u.declare.init->operands[0], &offset))
    return true;
  if (offset < 0 || (hd_tensor_storage_const(var->tensor, &size) &&
                     hd_tensor_storage_const(base->tensor, &whole) &&
                     (size > whole || offset > whole - size))) {
    hd_verify_fault(v, stmt->loc, "view '%s' does not lie in '%s'", var->name,
                    base->name);
    return false;
  }
  if (offset % (align * 8) * (int64_t)hd_type_bits(var->type) % (align * 8)) {
    hd_verify_fault(v, stmt->loc,
                    "view '%s' does not begin at a multiple of %lld bytes",
                    var->name, (long long)align);
    return false;
  }
  return true;
}

void hd_verify_view(hd_verifier_t *v, const hd_stmt_t *stmt) {
  const hd_var_t *var = stmt->u.declare.var;
  const hd_expr_t *of = stmt->u.declare.init;
  const hd_var_t *base = of->u.var;
  if (!of->linear || !base->tensor || base->table ||
      !hd_verifier_sees(v, base) || v->func->kind != HD_FUNC_PLAN) {
    hd_verify_fault(v, stmt->loc, "view '%s' is of no tensor of the plan",
                    var->name);
    return;
  }
  if (hd_ptr_map_get(&v->views, base))
    hd_verify_fault(v, stmt->loc, "'%s' is a view itself", base->name);
  else if (!hd_tensor_is_row_major(base->tensor))
    hd_verify_fault(v, stmt->loc, "'%s' is not row-major", base->name);
  else if (!hd_type_equal(base->type, var->type))
    hd_verify_fault(v, stmt->loc, "view '%s' is %s, and '%s' is %s", var->name,
                    hd_type_name(var->type), base->name,
                    hd_type_name(base->type));
  hd_verify_expr(v, of->operands[0]);
  hd_verify_index(v, of->operands[0]);
  if (check_place(v, stmt, base))
    hd_ptr_map_set(&v->arena, &v->views, var, of);
}
