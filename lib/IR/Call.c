// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Call.h"

#include "IR/Rewrite.h"

int hd_func_find_size(const hd_func_t *func, uint32_t param, uint32_t place,
                      bool is_stride) {
  for (uint32_t i = 0; i < func->num_sizes; i++) {
    const hd_func_size_t *size = &func->sizes[i];
    if (size->param == param && size->place == place &&
        size->is_stride == is_stride)
      return (int)i;
  }
  return -1;
}

const hd_expr_t *hd_call_size(hd_arena_t *arena, const hd_func_t *func,
                              const hd_expr_t *const *args, uint32_t size) {
  const hd_func_size_t *bound = &func->sizes[size];
  const hd_tensor_t *tensor = args[bound->param]->u.var->tensor;
  const hd_expr_t *found = bound->is_stride
                               ? tensor->layout->items[0].values[bound->place]
                               : tensor->shape[bound->place];
  int64_t value;
  return hd_expr_fold_int(found, &value)
             ? hd_expr_int(arena, bound->var->type, value)
             : found;
}

static bool is_no_argument(void *argument, const hd_expr_t *e) {
  const hd_func_t *const *func = argument;
  for (uint32_t i = 0; e->kind == HD_EXPR_VAR && i < (*func)->num_params; i++)
    if ((*func)->params[i] == e->u.var)
      return false;
  return true;
}

bool hd_func_finds(const hd_func_t *func, const hd_expr_t *number) {
  return hd_walk_expr(number, is_no_argument, &func);
}

// A constant is of any type that holds it.
static bool may_bind(const hd_func_size_t *size, const hd_expr_t *found) {
  int64_t value;
  if (!hd_expr_fold_int(found, &value))
    return hd_type_equal(size->var->type, found->type);
  return value >= 0 &&
         (value <= INT32_MAX ||
          hd_scalar_bits((hd_scalar_t)size->var->type.scalar) == 64);
}

typedef struct check {
  hd_rewriter_t terms; // From the function's to the caller's.
  const hd_func_t *func;
  uint32_t param;
} check_t;

// One number of a shape or a layout.
static bool number_agrees(check_t *c, const hd_expr_t *wanted,
                          const hd_expr_t *found, uint32_t place,
                          bool is_stride) {
  int64_t x, y;
  int size = hd_func_find_size(c->func, c->param, place, is_stride);
  if (size >= 0) {
    bool ok = may_bind(&c->func->sizes[size], found);
    if (ok)
      hd_rewriter_substitute(&c->terms, c->func->sizes[size].var, found);
    return ok;
  }
  if (!hd_func_finds(c->func, wanted)) // Its declaration was reported.
    return true;
  wanted = hd_rewrite_expr(&c->terms, wanted);
  return hd_expr_equal(wanted, found) ||
         (hd_expr_fold_int(wanted, &x) && hd_expr_fold_int(found, &y) &&
          x == y);
}

static bool item_agrees(check_t *c, const hd_layout_item_t *wanted,
                        const hd_layout_item_t *found) {
  if (wanted->kind != found->kind || wanted->num_values != found->num_values ||
      (wanted->mapping && !hd_mapping_equal(wanted->mapping, found->mapping)))
    return false;
  bool is_stride = wanted->kind == HD_LAYOUT_STRIDES;
  for (uint32_t i = 0; i < wanted->num_values; i++)
    if (!number_agrees(c, wanted->values[i], found->values[i],
                       is_stride ? i : UINT32_MAX, is_stride))
      return false;
  return true;
}

// No layout is row-major.
static bool layout_agrees(check_t *c, const hd_layout_t *wanted,
                          const hd_layout_t *found) {
  static const hd_layout_item_t row = {.kind = HD_LAYOUT_ROW};
  uint32_t count = wanted ? wanted->num_items : 1;
  if (count != (found ? found->num_items : 1))
    return false;
  for (uint32_t i = 0; i < count; i++)
    if (!item_agrees(c, wanted ? &wanted->items[i] : &row,
                     found ? &found->items[i] : &row))
      return false;
  return true;
}

static bool tensor_agrees(check_t *c, const hd_tensor_t *wanted,
                          const hd_tensor_t *found) {
  if (wanted->scope != found->scope)
    return false;
  for (uint32_t i = 0; i < wanted->rank; i++)
    if (!number_agrees(c, wanted->shape[i], found->shape[i], i, false))
      return false;
  return layout_agrees(c, wanted->layout, found->layout);
}

int hd_call_disagrees(hd_arena_t *arena, const hd_func_t *func,
                      const hd_expr_t *const *args,
                      const hd_tensor_t **wanted) {
  check_t c = {.terms = {.arena = arena}, .func = func};
  for (uint32_t i = 0; i < func->num_params; i++) {
    const hd_var_t *param = func->params[i];
    const hd_var_t *arg =
        args[i]->kind == HD_EXPR_TENSOR ? args[i]->u.var : NULL;
    if (!param->tensor || !arg || param->tensor->rank != arg->tensor->rank ||
        !hd_type_equal(param->type, arg->type))
      continue;
    c.param = i;
    if (tensor_agrees(&c, param->tensor, arg->tensor))
      continue;
    if (wanted)
      *wanted = hd_rewrite_tensor(&c.terms, param->tensor);
    return (int)i;
  }
  return -1;
}
