// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the launch gives a thread. A target reads the numbers along the axes;
// what is constant is not read, and the rest follows from them.
#include "CodeGen/Emit.h"

#define B e->builder

int64_t hd_emit_dim(const hd_expr_t *dim) {
  int64_t value = 1;
  if (dim && !hd_expr_fold_int(dim, &value))
    return 0;
  return value;
}

static LLVMValueRef constant(hd_emit_t *e, int64_t value) {
  return LLVMConstInt(e->i32, (uint64_t)value, false);
}

static LLVMValueRef read(hd_emit_t *e, hd_launch_value_t what, int axis) {
  return e->host ? hd_emit_host_read(e, what, axis)
                 : hd_emit_nvptx_read(e, what, axis);
}

static LLVMValueRef thread(hd_emit_t *e, int axis) {
  bool is_alone = hd_emit_dim(e->kernel->launch.block[axis]) == 1;
  return is_alone ? constant(e, 0) : read(e, HD_LAUNCH_THREAD, axis);
}

static LLVMValueRef block(hd_emit_t *e, int axis) {
  return e->kernel->launch.grid[axis] ? read(e, HD_LAUNCH_BLOCK, axis)
                                      : constant(e, 0);
}

static LLVMValueRef grid_dim(hd_emit_t *e, int axis) {
  int64_t size = hd_emit_dim(e->kernel->launch.grid[axis]);
  return size ? constant(e, size) : read(e, HD_LAUNCH_GRID_DIM, axis);
}

static int64_t block_dim(const hd_emit_t *e, int axis) {
  return hd_emit_dim(e->kernel->launch.block[axis]);
}

static int64_t cluster_size(const hd_emit_t *e) {
  const hd_launch_t *launch = &e->kernel->launch;
  return hd_emit_dim(launch->cluster[0]) * hd_emit_dim(launch->cluster[1]) *
         hd_emit_dim(launch->cluster[2]);
}

static LLVMValueRef product(hd_emit_t *e, LLVMValueRef a, LLVMValueRef b) {
  if (LLVMIsAConstantInt(a) && LLVMConstIntGetZExtValue(a) <= 1)
    return LLVMIsNull(a) ? a : b;
  return LLVMBuildMul(B, a, b, "");
}

static LLVMValueRef sum(hd_emit_t *e, LLVMValueRef a, LLVMValueRef b) {
  if (LLVMIsAConstantInt(a) && LLVMIsNull(a))
    return b;
  return LLVMIsAConstantInt(b) && LLVMIsNull(b) ? a : LLVMBuildAdd(B, a, b, "");
}

static LLVMValueRef along(hd_emit_t *e, hd_builtin_t x, int axis) {
  return hd_emit_builtin(e, (hd_builtin_t)(x + axis));
}

// x + nx (y + ny z), each by its builtin along x; those of y and z follow.
static LLVMValueRef linear(hd_emit_t *e, hd_builtin_t index, hd_builtin_t dim) {
  LLVMValueRef result = along(e, index, 2);
  for (int axis = 1; axis >= 0; axis--) {
    bool is_zero = LLVMIsAConstantInt(result) && LLVMIsNull(result);
    if (!is_zero)
      result = product(e, result, along(e, dim, axis));
    result = sum(e, result, along(e, index, axis));
  }
  return result;
}

static LLVMValueRef grid_blocks(hd_emit_t *e) {
  LLVMValueRef yz = product(e, along(e, HD_BUILTIN_GRID_DIM_X, 2),
                            along(e, HD_BUILTIN_GRID_DIM_X, 1));
  return product(e, yz, along(e, HD_BUILTIN_GRID_DIM_X, 0));
}

static LLVMValueRef of_thread(hd_emit_t *e, bool is_rest, unsigned bits) {
  LLVMValueRef thread = hd_emit_builtin(e, HD_BUILTIN_THREAD);
  return is_rest ? LLVMBuildAnd(B, thread, constant(e, (1 << bits) - 1), "")
                 : LLVMBuildLShr(B, thread, constant(e, bits), "");
}

static LLVMValueRef make_builtin(hd_emit_t *e, hd_builtin_t builtin) {
  switch (builtin) {
  case HD_BUILTIN_THREAD:
    if (e->host)
      return e->linear;
    return linear(e, HD_BUILTIN_THREAD_X, HD_BUILTIN_BLOCK_DIM_X);
  case HD_BUILTIN_THREAD_X:
  case HD_BUILTIN_THREAD_Y:
  case HD_BUILTIN_THREAD_Z:
    return thread(e, (int)builtin - HD_BUILTIN_THREAD_X);
  case HD_BUILTIN_LANE_ID:
    return of_thread(e, true, 5);
  case HD_BUILTIN_WARP:
    return of_thread(e, false, 5);
  case HD_BUILTIN_WARPGROUP:
    return of_thread(e, false, 7);
  case HD_BUILTIN_BLOCK:
    return linear(e, HD_BUILTIN_BLOCK_X, HD_BUILTIN_GRID_DIM_X);
  case HD_BUILTIN_BLOCK_X:
  case HD_BUILTIN_BLOCK_Y:
  case HD_BUILTIN_BLOCK_Z:
    return block(e, (int)builtin - HD_BUILTIN_BLOCK_X);
  case HD_BUILTIN_BLOCK_DIM:
    return constant(e, hd_func_block_threads(e->kernel));
  case HD_BUILTIN_BLOCK_DIM_X:
  case HD_BUILTIN_BLOCK_DIM_Y:
  case HD_BUILTIN_BLOCK_DIM_Z:
    return constant(e, block_dim(e, (int)builtin - HD_BUILTIN_BLOCK_DIM_X));
  case HD_BUILTIN_GRID_DIM:
    return grid_blocks(e);
  case HD_BUILTIN_GRID_DIM_X:
  case HD_BUILTIN_GRID_DIM_Y:
  case HD_BUILTIN_GRID_DIM_Z:
    return grid_dim(e, (int)builtin - HD_BUILTIN_GRID_DIM_X);
  case HD_BUILTIN_CLUSTER:
    return cluster_size(e) == 1 ? constant(e, 0)
                                : read(e, HD_LAUNCH_CLUSTER, 0);
  case HD_BUILTIN_CLUSTER_DIM:
    return constant(e, cluster_size(e));
  case HD_BUILTIN_DEVICE_SMS:
  case HD_BUILTIN_COUNT:
    break;
  }
  hd_emit_error(e, e->kernel->loc, HD_E0302, hd_builtin_info(builtin)->text,
                "in a kernel's body");
  return LLVMGetPoison(e->i32);
}

// Special registers are read once, at the entry, where they serve all blocks.
LLVMValueRef hd_emit_builtin(hd_emit_t *e, hd_builtin_t builtin) {
  if (e->host)
    return make_builtin(e, builtin);
  LLVMValueRef *value = &e->builtins[builtin];
  if (!*value) {
    LLVMBuilderRef outer = e->builder;
    e->builder = e->entry_builder;
    *value = make_builtin(e, builtin);
    e->builder = outer;
  }
  return *value;
}
