// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel for NVPTX: a function of calling convention ptx_kernel, its launch
// bounds in nvvm.annotations, its shared memory one external array.
#include "CodeGen/Emit.h"

#include <stdio.h>
#include <string.h>

#define B e->builder

enum {
  PTX_KERNEL = 71, // The calling convention.
  GLOBAL = 1,      // Address spaces.
  SHARED = 3,
};

static LLVMTypeRef param_type(hd_emit_t *e, const hd_var_t *param) {
  if (param->kind == HD_VAR_TENSOR)
    return LLVMPointerTypeInContext(e->context, GLOBAL);
  return hd_emit_memory_type(e, param->type);
}

static void add_attribute(hd_emit_t *e, unsigned param, const char *name,
                          uint64_t value) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  LLVMAttributeRef attribute = LLVMCreateEnumAttribute(e->context, kind, value);
  LLVMAddAttributeAtIndex(e->function, param, attribute);
}

static void bind_param(hd_emit_t *e, uint32_t i) {
  const hd_var_t *param = e->kernel->params[i];
  LLVMValueRef value = LLVMGetParam(e->function, i);
  LLVMSetValueName2(value, param->name, strlen(param->name));
  if (param->kind != HD_VAR_TENSOR) {
    if (hd_type_is_bool(param->type))
      value = LLVMBuildICmp(B, LLVMIntNE, value, LLVMConstNull(e->i8), "");
    hd_emit_bind(e, param, value);
    return;
  }
  bool is_in = param->direction == HD_DIR_IN;
  uint32_t align = param->tensor->align;
  add_attribute(e, i + 1, "noalias", 0);
  add_attribute(e, i + 1, "align", align > 16 ? align : 16);
  if (is_in)
    add_attribute(e, i + 1, "readonly", 0);
  hd_binding_t *binding = hd_emit_bind(e, param, value);
  binding->invariant = is_in;
  binding->number = i;
}

enum { MAP_BYTES = 128, MAP_ALIGN = 64 };

// A tensor map is a parameter by value that stays where it is: grid_constant.
static void bind_map(hd_emit_t *e, uint32_t i) {
  const hd_var_t *map = e->kernel->maps[i];
  uint32_t param = e->kernel->num_params + i;
  LLVMValueRef value = LLVMGetParam(e->function, param);
  LLVMSetValueName2(value, map->name, strlen(map->name));
  unsigned kind = LLVMGetEnumAttributeKindForName("byval", 5);
  LLVMTypeRef type = LLVMArrayType2(e->i8, MAP_BYTES);
  LLVMAddAttributeAtIndex(e->function, param + 1,
                          LLVMCreateTypeAttribute(e->context, kind, type));
  add_attribute(e, param + 1, "align", MAP_ALIGN);
  hd_emit_bind(e, map, LLVMBuildPtrToInt(B, value, e->i64, ""));
}

static LLVMMetadataRef string(hd_emit_t *e, const char *text) {
  return LLVMMDStringInContext2(e->context, text, strlen(text));
}

// !{ptr @kernel, !"grid_constant", !{i32 5, ...}}: parameters from 1 on.
static void annotate_maps(hd_emit_t *e) {
  uint32_t count = e->kernel->num_maps;
  LLVMMetadataRef *params =
      HD_ARENA_ARRAY(&e->arena, LLVMMetadataRef, count + 1);
  if (count == 0)
    return;
  for (uint32_t i = 0; i < count; i++)
    params[i] = LLVMValueAsMetadata(
        LLVMConstInt(e->i32, e->kernel->num_params + i + 1, false));
  LLVMMetadataRef parts[] = {LLVMValueAsMetadata(e->function),
                             string(e, "grid_constant"),
                             LLVMMDNodeInContext2(e->context, params, count)};
  LLVMMetadataRef node = LLVMMDNodeInContext2(e->context, parts, 3);
  LLVMAddNamedMetadataOperand(e->llvm, "nvvm.annotations",
                              LLVMMetadataAsValue(e->context, node));
}

// !{ptr @kernel, !"name", i32 value}
static void annotate(hd_emit_t *e, const char *name, int64_t value) {
  LLVMMetadataRef parts[] = {
      LLVMValueAsMetadata(e->function), string(e, name),
      LLVMValueAsMetadata(LLVMConstInt(e->i32, (uint64_t)value, false))};
  LLVMMetadataRef node = LLVMMDNodeInContext2(e->context, parts, 3);
  LLVMAddNamedMetadataOperand(e->llvm, "nvvm.annotations",
                              LLVMMetadataAsValue(e->context, node));
}

static int64_t constant_dim(const hd_expr_t *dim) {
  int64_t value = 1;
  if (dim && !hd_expr_fold_int(dim, &value))
    return 0;
  return value;
}

static void annotate_launch(hd_emit_t *e) {
  static const char *const threads[] = {"maxntidx", "maxntidy", "maxntidz"};
  const hd_launch_t *launch = &e->kernel->launch;
  for (int i = 0; i < 3; i++)
    annotate(e, threads[i], constant_dim(launch->block[i]));
  if (launch->min_blocks > 0)
    annotate(e, "minctasm", launch->min_blocks);
  if (hd_emit_has_cluster(e) && e->target->sm < 90)
    hd_emit_error(e, e->kernel->loc, HD_E0501, "cluster", "sm_90 or newer",
                  e->target->name);
}

bool hd_emit_has_cluster(const hd_emit_t *e) {
  const hd_launch_t *launch = &e->kernel->launch;
  return launch->cluster[0] || launch->cluster[1] || launch->cluster[2];
}

static void declare_shared_base(hd_emit_t *e) {
  LLVMTypeRef type = LLVMArrayType2(e->i8, 0);
  e->shared_base =
      LLVMAddGlobalInAddressSpace(e->llvm, type, "hd_shared", SHARED);
  LLVMSetAlignment(e->shared_base, 1024);
}

void hd_emit_nvptx_kernel(hd_emit_t *e) {
  const hd_func_t *kernel = e->kernel;
  LLVMTypeRef *types = HD_ARENA_ARRAY(
      &e->arena, LLVMTypeRef, kernel->num_params + kernel->num_maps + 1);
  unsigned count = 0;
  for (uint32_t i = 0; i < kernel->num_params; i++)
    types[count++] = param_type(e, kernel->params[i]);
  for (uint32_t i = 0; i < kernel->num_maps; i++)
    types[count++] = e->ptr;
  LLVMTypeRef type = LLVMFunctionType(e->void_, types, count, false);
  e->function = LLVMAddFunction(e->llvm, kernel->name, type);
  LLVMSetFunctionCallConv(e->function, PTX_KERNEL);
  // What every block may use is put before a mark that is taken out at the end.
  hd_emit_at(e, hd_emit_new_block(e, "entry"));
  LLVMValueRef mark = LLVMBuildAlloca(B, e->i8, "");
  LLVMPositionBuilderBefore(e->entry_builder, mark);
  e->frame.exit = hd_emit_new_block(e, "exit");
  annotate_launch(e);
  if (e->shared->num_tensors)
    declare_shared_base(e);
  for (uint32_t i = 0; i < kernel->num_params; i++)
    bind_param(e, i);
  for (uint32_t i = 0; i < kernel->num_maps; i++)
    bind_map(e, i);
  annotate_maps(e);
  hd_emit_block(e, kernel->body);
  hd_emit_end(e, e->frame.exit);
  LLVMBuildRetVoid(B);
  LLVMInstructionEraseFromParent(mark);
}

// Reads a special register whose value lies in least .. greatest.
static LLVMValueRef special(hd_emit_t *e, const char *name, int64_t least,
                            int64_t greatest) {
  char full[64];
  snprintf(full, sizeof full, "llvm.nvvm.read.ptx.sreg.%s", name);
  LLVMValueRef value = hd_emit_llvm(e, full, NULL, NULL, 0);
  if ((uint64_t)greatest + 1 < UINT64_C(0x80000000))
    hd_emit_set_range(e, value, least, greatest);
  return value;
}

static LLVMValueRef constant(hd_emit_t *e, int64_t value) {
  return LLVMConstInt(e->i32, (uint64_t)value, false);
}

static LLVMValueRef thread(hd_emit_t *e, int axis) {
  static const char *const names[] = {"tid.x", "tid.y", "tid.z"};
  int64_t size = constant_dim(e->kernel->launch.block[axis]);
  if (size == 1)
    return constant(e, 0);
  return special(e, names[axis], 0, size - 1);
}

static LLVMValueRef multiplied(hd_emit_t *e, LLVMValueRef a, LLVMValueRef b) {
  if (LLVMIsAConstantInt(a) && LLVMConstIntGetZExtValue(a) <= 1)
    return LLVMIsNull(a) ? a : b;
  return LLVMBuildMul(B, a, b, "");
}

static LLVMValueRef added(hd_emit_t *e, LLVMValueRef a, LLVMValueRef b) {
  if (LLVMIsAConstantInt(a) && LLVMIsNull(a))
    return b;
  return LLVMIsAConstantInt(b) && LLVMIsNull(b) ? a : LLVMBuildAdd(B, a, b, "");
}

// x + nx (y + ny z)
static LLVMValueRef linear_thread(hd_emit_t *e) {
  const hd_launch_t *launch = &e->kernel->launch;
  LLVMValueRef sum = hd_emit_builtin(e, HD_BUILTIN_THREAD_Z);
  for (int axis = 1; axis >= 0; axis--) {
    LLVMValueRef size = constant(e, constant_dim(launch->block[axis]));
    sum = multiplied(e, sum, size);
    sum = added(
        e, sum,
        hd_emit_builtin(e, axis ? HD_BUILTIN_THREAD_Y : HD_BUILTIN_THREAD_X));
  }
  return sum;
}

static LLVMValueRef block(hd_emit_t *e, int axis) {
  static const char *const names[] = {"ctaid.x", "ctaid.y", "ctaid.z"};
  if (!e->kernel->launch.grid[axis])
    return constant(e, 0);
  return special(e, names[axis], 0, axis ? 65534 : 2147483646);
}

static LLVMValueRef grid_dim(hd_emit_t *e, int axis) {
  static const char *const names[] = {"nctaid.x", "nctaid.y", "nctaid.z"};
  int64_t size = constant_dim(e->kernel->launch.grid[axis]);
  if (size)
    return constant(e, size);
  return special(e, names[axis], 1, axis ? 65535 : 2147483647);
}

static LLVMValueRef linear_block(hd_emit_t *e) {
  LLVMValueRef sum = hd_emit_builtin(e, HD_BUILTIN_BLOCK_Z);
  if (e->kernel->launch.grid[1] || e->kernel->launch.grid[2])
    sum =
        added(e, multiplied(e, sum, hd_emit_builtin(e, HD_BUILTIN_GRID_DIM_Y)),
              hd_emit_builtin(e, HD_BUILTIN_BLOCK_Y));
  if (!LLVMIsAConstantInt(sum) || !LLVMIsNull(sum))
    sum = multiplied(e, sum, hd_emit_builtin(e, HD_BUILTIN_GRID_DIM_X));
  return added(e, sum, hd_emit_builtin(e, HD_BUILTIN_BLOCK_X));
}

static LLVMValueRef grid_blocks(hd_emit_t *e) {
  LLVMValueRef all = multiplied(e, hd_emit_builtin(e, HD_BUILTIN_GRID_DIM_Z),
                                hd_emit_builtin(e, HD_BUILTIN_GRID_DIM_Y));
  return multiplied(e, all, hd_emit_builtin(e, HD_BUILTIN_GRID_DIM_X));
}

static int64_t cluster_size(const hd_emit_t *e) {
  const hd_launch_t *launch = &e->kernel->launch;
  return constant_dim(launch->cluster[0]) * constant_dim(launch->cluster[1]) *
         constant_dim(launch->cluster[2]);
}

static LLVMValueRef shifted(hd_emit_t *e, LLVMValueRef value, unsigned bits) {
  return LLVMBuildLShr(B, value, constant(e, bits), "");
}

LLVMValueRef hd_emit_nvptx_builtin(hd_emit_t *e, hd_builtin_t builtin) {
  const hd_launch_t *launch = &e->kernel->launch;
  int64_t threads = hd_func_block_threads(e->kernel);
  switch (builtin) {
  case HD_BUILTIN_THREAD:
    return linear_thread(e);
  case HD_BUILTIN_THREAD_X:
    return thread(e, 0);
  case HD_BUILTIN_THREAD_Y:
    return thread(e, 1);
  case HD_BUILTIN_THREAD_Z:
    return thread(e, 2);
  case HD_BUILTIN_LANE_ID:
    return LLVMBuildAnd(B, hd_emit_builtin(e, HD_BUILTIN_THREAD),
                        constant(e, 31), "");
  case HD_BUILTIN_WARP:
    return shifted(e, hd_emit_builtin(e, HD_BUILTIN_THREAD), 5);
  case HD_BUILTIN_WARPGROUP:
    return shifted(e, hd_emit_builtin(e, HD_BUILTIN_THREAD), 7);
  case HD_BUILTIN_BLOCK:
    return linear_block(e);
  case HD_BUILTIN_BLOCK_X:
    return block(e, 0);
  case HD_BUILTIN_BLOCK_Y:
    return block(e, 1);
  case HD_BUILTIN_BLOCK_Z:
    return block(e, 2);
  case HD_BUILTIN_BLOCK_DIM:
    return constant(e, threads);
  case HD_BUILTIN_BLOCK_DIM_X:
    return constant(e, constant_dim(launch->block[0]));
  case HD_BUILTIN_BLOCK_DIM_Y:
    return constant(e, constant_dim(launch->block[1]));
  case HD_BUILTIN_BLOCK_DIM_Z:
    return constant(e, constant_dim(launch->block[2]));
  case HD_BUILTIN_GRID_DIM:
    return grid_blocks(e);
  case HD_BUILTIN_GRID_DIM_X:
    return grid_dim(e, 0);
  case HD_BUILTIN_GRID_DIM_Y:
    return grid_dim(e, 1);
  case HD_BUILTIN_GRID_DIM_Z:
    return grid_dim(e, 2);
  case HD_BUILTIN_CLUSTER:
    if (cluster_size(e) == 1)
      return constant(e, 0);
    return special(e, "cluster.ctarank", 0, 15);
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
