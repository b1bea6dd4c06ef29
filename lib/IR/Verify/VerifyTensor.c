// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor types: shapes, layouts, vector accesses.
#include "IR/LayoutParts.h"
#include "IR/Verify/VerifierState.h"

#include "IR/Call.h"
#include "IR/Rewrite.h"

static void layout_fault(hd_verifier_t *v, const hd_var_t *var,
                         const char *why) {
  hd_error(v->diags, var->loc, HD_E0306, why);
  v->errors++;
}

// Sizes are known before the launch.
static bool is_size(void *argument, const hd_expr_t *e) {
  (void)argument;
  return e->kind == HD_EXPR_VAR
             ? e->u.var->kind == HD_VAR_PARAM
             : e->kind != HD_EXPR_BUILTIN && !hd_expr_is_access(e) &&
                   e->kind != HD_EXPR_CALL && e->kind != HD_EXPR_INTRINSIC;
}

void hd_verify_size(hd_verifier_t *v, const hd_expr_t *e, const char *what) {
  hd_verify_expr(v, e);
  if (!hd_type_is_integer(e->type) || e->type.lanes != 1)
    hd_verify_fault(v, e->loc, "%s has type %s", what, hd_type_name(e->type));
  if (!hd_walk_expr(e, is_size, NULL)) {
    hd_error(v->diags, e->loc, HD_E0302, "what is no constant and no parameter",
             "in a size");
    v->errors++;
  }
}

// A fn finds the sizes of a tensor in the tensor.
static void verify_found(hd_verifier_t *v, const hd_expr_t *size) {
  if (v->signature && !hd_func_finds(v->func, size)) {
    hd_error(
        v->diags, size->loc, HD_E0302, "an argument",
        "in the type of a fn's tensor: the fn finds sizes there, and takes "
        "no argument for them");
    v->errors++;
  }
}

static bool is_local_mapping(const hd_mapping_t *mapping) {
  if (mapping->kind == HD_MAPPING_COMPOSE)
    return is_local_mapping(mapping->left) && is_local_mapping(mapping->right);
  return mapping->kind == HD_MAPPING_SPATIAL ||
         mapping->kind == HD_MAPPING_REPEAT;
}

static void verify_local(hd_verifier_t *v, const hd_var_t *var,
                         const hd_mapping_t *mapping) {
  const hd_tensor_t *tensor = var->tensor;
  if (tensor->scope != HD_SCOPE_REGISTER) {
    layout_fault(v, var, "'local' is for register tensors");
    return;
  }
  if (!is_local_mapping(mapping)) {
    layout_fault(v, var,
                 "'local' takes spatial, repeat and their compositions");
    return;
  }
  bool same = mapping->rank == tensor->rank;
  for (uint32_t i = 0; same && i < tensor->rank; i++) {
    int64_t size;
    same =
        hd_expr_fold_int(tensor->shape[i], &size) && size == mapping->dims[i];
  }
  if (!same)
    layout_fault(v, var, "the tensor's shape is not the mapping's task shape");
}

static void verify_permute(hd_verifier_t *v, const hd_var_t *var,
                           const hd_layout_item_t *item) {
  uint32_t seen = 0;
  for (uint32_t i = 0; i < item->num_values; i++) {
    int64_t axis;
    if (!hd_expr_fold_int(item->values[i], &axis) || axis < 0 ||
        axis >= item->num_values || seen >> axis & 1) {
      layout_fault(v, var, "'permute' must name each axis once");
      return;
    }
    seen |= UINT32_C(1) << axis;
  }
}

static void verify_swizzle(hd_verifier_t *v, const hd_var_t *var,
                           const hd_layout_item_t *item) {
  int64_t bytes = 0;
  if (item->num_values == 1) {
    hd_expr_fold_int(item->values[0], &bytes);
    if (bytes != 32 && bytes != 64 && bytes != 128)
      layout_fault(v, var,
                   "'swizzle' takes 32, 64 or 128 bytes, or (bits, "
                   "base, shift)");
  } else if (item->num_values != 3 ||
             !hd_layout_item_within(item, 0, HD_MAX_SWIZZLE_BITS) ||
             hd_expr_is_int(item->values[2], 0)) {
    // Bits combined with themselves would all be 0.
    layout_fault(v, var,
                 "'swizzle' takes 32, 64 or 128 bytes, or (bits, "
                 "base, shift), each at most 10 and the shift at least 1");
  }
}

static void verify_layout_item(hd_verifier_t *v, const hd_var_t *var,
                               uint32_t index) {
  const hd_layout_item_t *item = &var->tensor->layout->items[index];
  bool per_axis = item->num_values == var->tensor->rank;
  if (item->kind != HD_LAYOUT_SWIZZLE && index > 0) {
    layout_fault(v, var, "a base comes first, and only swizzles follow it");
    return;
  }
  switch (item->kind) {
  case HD_LAYOUT_ROW:
  case HD_LAYOUT_COLUMN:
    break;
  case HD_LAYOUT_STRIDES:
    for (uint32_t i = 0; i < item->num_values; i++) {
      int64_t stride;
      hd_verify_size(v, item->values[i], "a stride");
      verify_found(v, item->values[i]);
      if (hd_expr_fold_int(item->values[i], &stride) && stride < 0)
        layout_fault(v, var, "a stride is not negative");
    }
    if (!per_axis)
      layout_fault(v, var, "'strides' takes one value for each axis");
    break;
  case HD_LAYOUT_PERMUTE:
    if (!per_axis)
      layout_fault(v, var, "'permute' takes one value for each axis");
    else
      verify_permute(v, var, item);
    break;
  case HD_LAYOUT_TILE:
    if (!per_axis || !hd_layout_item_within(item, 1, HD_MAX_TILE))
      layout_fault(v, var, "'tile' takes one positive constant for each axis");
    break;
  case HD_LAYOUT_SWIZZLE:
    verify_swizzle(v, var, item);
    break;
  case HD_LAYOUT_LOCAL:
    verify_local(v, var, item->mapping);
    break;
  }
}

// Strides may be sizes; a shape of constants does not make them known.
static bool has_constant_strides(const hd_tensor_t *tensor) {
  const hd_layout_item_t *base = tensor->layout ? tensor->layout->items : NULL;
  int64_t stride;
  if (!base || base->kind != HD_LAYOUT_STRIDES)
    return true;
  for (uint32_t i = 0; i < base->num_values; i++)
    if (!hd_expr_fold_int(base->values[i], &stride))
      return false;
  return true;
}

static void verify_storage(hd_verifier_t *v, const hd_var_t *var) {
  const hd_tensor_t *tensor = var->tensor;
  bool constant = true;
  for (uint32_t i = 0; i < tensor->rank; i++) {
    int64_t size;
    bool known = hd_expr_fold_int(tensor->shape[i], &size);
    constant &= known;
    if (known && (size < 1 || size > INT32_MAX)) {
      hd_error(v->diags, tensor->shape[i]->loc, HD_E0307, "a dimension", 1LL,
               (long long)INT32_MAX, (long long)size);
      v->errors++;
      return;
    }
  }
  constant &= has_constant_strides(tensor);
  int64_t elements = 0;
  if (constant && (!hd_tensor_storage_const(tensor, &elements) ||
                   elements > (INT64_C(1) << 62) / 8)) {
    hd_error(v->diags, var->loc, HD_E0309, var->name);
    v->errors++;
  } else if (tensor->scope == HD_SCOPE_REGISTER && !constant && !v->signature) {
    hd_error(v->diags, var->loc, HD_E0305, var->name);
    v->errors++;
  } else if (tensor->scope == HD_SCOPE_REGISTER && elements > 4096) {
    hd_error(v->diags, var->loc, HD_E0307, "the size of a register tensor", 1LL,
             4096LL, (long long)elements);
    v->errors++;
  }
}

void hd_verify_tensor(hd_verifier_t *v, const hd_var_t *var) {
  const hd_tensor_t *tensor = var->tensor;
  if (tensor->rank > HD_MAX_RANK) {
    hd_error(v->diags, var->loc, HD_E0307, "the rank of a tensor", 0LL,
             (long long)HD_MAX_RANK, (long long)tensor->rank);
    v->errors++;
    return;
  }
  unsigned errors = v->errors;
  if (tensor->element.lanes != 1 || tensor->element.scalar == HD_VOID)
    hd_verify_fault(v, var->loc, "a tensor's element type is a scalar, not %s",
                    hd_type_name(tensor->element));
  if (tensor->element.scalar == HD_MAP)
    hd_verify_fault(v, var->loc, "a tensor of type map");
  if (tensor->element.scalar == HD_MBARRIER && tensor->scope != HD_SCOPE_SHARED)
    hd_verify_fault(v, var->loc, "an mbarrier lies in shared memory");
  for (uint32_t i = 0; i < tensor->rank; i++) {
    hd_verify_size(v, tensor->shape[i], "a dimension");
    verify_found(v, tensor->shape[i]);
  }
  if (tensor->layout && tensor->layout->num_items == 0)
    layout_fault(v, var, "it says nothing");
  for (uint32_t i = 0; tensor->layout && i < tensor->layout->num_items; i++)
    verify_layout_item(v, var, i);
  if (tensor->is_overlay && v->signature)
    hd_verify_fault(v, var->loc, "a parameter lies where its argument does");
  if (tensor->is_overlay && tensor->overlay % hd_tensor_align(tensor))
    hd_verify_fault(
        v, var->loc,
        "overlay(%u) is no multiple of what the tensor is aligned to, "
        "%u bytes",
        tensor->overlay, hd_tensor_align(tensor));
  if (v->errors == errors)
    verify_storage(v, var);
}

void hd_verify_lanes(hd_verifier_t *v, const hd_var_t *var, bool linear,
                     unsigned lanes, hd_loc_t loc) {
  const char *why = linear ? NULL : hd_tensor_why_apart(var->tensor, lanes);
  unsigned bits = hd_type_bits(var->type) * lanes;
  bool in_memory = var->tensor->scope != HD_SCOPE_REGISTER;
  if (!why && in_memory && (bits % 8 || (bits & (bits - 1))))
    why = "must take a power of two of bytes";
  if (!why && in_memory && bits > 128)
    why = "takes more than 16 bytes";
  if (why) {
    hd_error(v->diags, loc, HD_E0304, (int)lanes, why);
    v->errors++;
  }
}
