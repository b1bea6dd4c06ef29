// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps: what the hardware allows, from the CUDA driver's reference on
// cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col. What sizes decide is
// checked when the launcher encodes the map.
#include "IR/Verify/VerifierState.h"

#include <stddef.h>

static void fault(hd_verifier_t *v, const hd_var_t *var, const char *why) {
  hd_error(v->diags, var->loc, HD_E0312, var->name, why);
  v->errors++;
}

static bool is_copied(hd_scalar_t scalar) {
  static const hd_scalar_t scalars[] = {
      HD_I8,  HD_U8,   HD_I16,  HD_U16, HD_I32, HD_U32,    HD_I64,   HD_U64,
      HD_F16, HD_BF16, HD_TF32, HD_F32, HD_F64, HD_F8E4M3, HD_F8E5M2};
  for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++)
    if (scalars[i] == scalar)
      return true;
  return false;
}

static void verify_layout(hd_verifier_t *v, const hd_var_t *var) {
  const hd_tensor_t *tensor = var->map->tensor->tensor;
  if (!tensor->layout)
    return;
  const hd_layout_item_t *item = &tensor->layout->items[0];
  bool is_dense = item->kind == HD_LAYOUT_ROW;
  bool is_strided = item->kind == HD_LAYOUT_STRIDES &&
                    item->num_values == tensor->rank &&
                    hd_expr_is_int(item->values[item->num_values - 1], 1);
  if (tensor->layout->num_items > 1 || (!is_dense && !is_strided))
    fault(v, var,
          "its tensor must be row-major, or strided with a stride of 1 "
          "along the last axis");
}

// Strides that are known, of all axes but the last. Only what is left of them
// by 16 bytes counts, so that no product is too large.
static void verify_strides(hd_verifier_t *v, const hd_var_t *var) {
  const hd_tensor_t *tensor = var->map->tensor->tensor;
  const hd_layout_item_t *item = tensor->layout ? tensor->layout->items : NULL;
  bool is_strided = item && item->kind == HD_LAYOUT_STRIDES;
  int64_t bytes = hd_type_bits(tensor->element) / 8, rest = bytes, size;
  bool known = true;
  for (uint32_t i = tensor->rank; i-- > 1;) {
    known = is_strided ? hd_expr_fold_int(item->values[i - 1], &size)
                       : known && hd_expr_fold_int(tensor->shape[i], &size);
    if (known)
      rest = (is_strided ? bytes : rest) * (size % 16) % 16;
    if (known && rest) {
      fault(v, var, "its tensor's strides must be multiples of 16 bytes");
      return;
    }
  }
}

// A box of constants, its bytes along the contiguous axis as given.
static void verify_box(hd_verifier_t *v, const hd_var_t *var,
                       const int64_t *most) {
  const hd_map_t *map = var->map;
  int64_t inner = 0;
  for (uint32_t i = 0; i < map->num_box; i++) {
    hd_verify_expr(v, map->box[i]);
    if (!hd_expr_fold_int(map->box[i], &inner)) {
      fault(v, var, "its box must be constant");
      return;
    }
    if (inner < 1 || inner > most[i]) {
      hd_error(v->diags, map->box[i]->loc, HD_E0307, "an extent of a box", 1LL,
               (long long)most[i], (long long)inner);
      v->errors++;
      return;
    }
  }
  int64_t bytes = inner * hd_type_bits(map->tensor->type) / 8;
  if (bytes % 16)
    fault(v, var, "its box must be a multiple of 16 bytes along the last axis");
  if (map->swizzle && bytes > map->swizzle)
    fault(v, var,
          "its box is longer than the swizzle's pattern along the last axis");
}

static void verify_corner(hd_verifier_t *v, const hd_var_t *var,
                          const hd_expr_t *const *values, int64_t least,
                          int64_t most) {
  for (uint32_t i = 0; i + 2 < var->map->tensor->tensor->rank; i++) {
    int64_t value;
    hd_verify_size(v, values[i], "a corner");
    if (hd_expr_fold_int(values[i], &value) &&
        (value < least || value > most)) {
      hd_error(v->diags, values[i]->loc, HD_E0307, "a corner or step",
               (long long)least, (long long)most, (long long)value);
      v->errors++;
    }
  }
}

static void verify_im2col(hd_verifier_t *v, const hd_var_t *var) {
  static const int64_t most[] = {1024, 256}; // Pixels, channels.
  // The corner's bits, by the number of inner axes.
  static const int64_t corner[] = {0, 1 << 15, 1 << 7, 1 << 4};
  const hd_map_t *map = var->map;
  int64_t limit = corner[map->tensor->tensor->rank - 2];
  verify_box(v, var, most);
  verify_corner(v, var, map->lower, -limit, limit - 1);
  verify_corner(v, var, map->upper, -limit, limit - 1);
  verify_corner(v, var, map->step, 1, 8);
}

static void verify_tiled(hd_verifier_t *v, const hd_var_t *var) {
  static const int64_t most[HD_MAP_MAX_RANK] = {256, 256, 256, 256, 256};
  uint32_t rank = var->map->tensor->tensor->rank;
  if (rank < 1 || rank > HD_MAP_MAX_RANK) {
    fault(v, var, "its tensor must have 1 to 5 axes");
  } else if (var->map->num_box != rank) {
    hd_error(v->diags, var->loc, HD_E0206, "box", (int)rank, "extents",
             (int)var->map->num_box);
    v->errors++;
  } else {
    verify_box(v, var, most);
  }
}

void hd_verify_map(hd_verifier_t *v, const hd_var_t *var) {
  const hd_map_t *map = var->map;
  if (map->tensor->tensor->scope != HD_SCOPE_GLOBAL ||
      !hd_verifier_sees(v, map->tensor)) {
    fault(v, var, "it must describe a tensor parameter before it");
    return;
  }
  if (map->tensor->type.lanes != 1 ||
      !is_copied((hd_scalar_t)map->tensor->type.scalar))
    fault(v, var, "tensor maps do not know its tensor's element type");
  if (map->swizzle && map->swizzle != 32 && map->swizzle != 64 &&
      map->swizzle != 128)
    fault(v, var, "a swizzle is of 32, 64 or 128 bytes");
  if (map->l2 && map->l2 != 64 && map->l2 != 128 && map->l2 != 256)
    fault(v, var, "l2 is 0, 64, 128 or 256 bytes");
  unsigned errors = v->errors;
  verify_layout(v, var);
  if (v->errors == errors)
    verify_strides(v, var);
  if (map->im2col)
    verify_im2col(v, var);
  else
    verify_tiled(v, var);
}
