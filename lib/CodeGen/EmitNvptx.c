// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel for NVPTX: a function of calling convention ptx_kernel, its launch
// bounds in nvvm.annotations, its shared memory one external array.
#include "CodeGen/Emit.h"
#include "IR/EarlyLaunch.h"
#include "IR/Generic.h"

#include <stdio.h>
#include <string.h>

#define B e->builder

enum {
  PTX_KERNEL = 71, // The calling convention.
  GLOBAL = 1,      // The address space.
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

// waits: the launch before this one may still write what it gives.
static void bind_param(hd_emit_t *e, uint32_t i, bool waits) {
  const hd_var_t *param = e->kernel->params[i];
  LLVMValueRef value = LLVMGetParam(e->function, i);
  LLVMSetValueName2(value, param->name, strlen(param->name));
  if (param->kind != HD_VAR_TENSOR) {
    if (hd_type_is_bool(param->type))
      value = LLVMBuildICmp(B, LLVMIntNE, value, LLVMConstNull(e->i8), "");
    hd_emit_bind(e, param, value);
    return;
  }
  add_attribute(e, i + 1, "align", hd_tensor_align(param->tensor));
  // Constant. Of all others nothing is promised: LLVM would take a value that
  // was read before a barrier for one behind it.
  bool is_constant = param->direction == HD_DIR_IN && !waits;
  if (is_constant) {
    add_attribute(e, i + 1, "noalias", 0);
    add_attribute(e, i + 1, "readonly", 0);
  }
  hd_binding_t *binding = hd_emit_bind(e, param, value);
  binding->invariant = is_constant;
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

static void annotate_launch(hd_emit_t *e) {
  static const char *const threads[] = {"maxntidx", "maxntidy", "maxntidz"};
  const hd_launch_t *launch = &e->kernel->launch;
  for (int i = 0; i < 3; i++)
    annotate(e, threads[i], hd_emit_dim(launch->block[i]));
  if (launch->min_blocks > 0)
    annotate(e, "minctasm", launch->min_blocks);
  if (hd_emit_has_cluster(e) && e->target->sm < 90)
    hd_emit_error(e, e->kernel->loc, HD_E0501, "cluster", "sm_90 or newer",
                  e->target->name);
}

bool hd_emit_has_cluster(const hd_emit_t *e) {
  for (int i = 0; i < 3; i++) {
    const hd_expr_t *dim = e->kernel->launch.cluster[i];
    int64_t size;
    // One block is a cluster on any GPU.
    if (dim && !(hd_expr_fold_int(dim, &size) && size == 1))
      return true;
  }
  return false;
}

static void declare_shared_base(hd_emit_t *e) {
  LLVMTypeRef type = LLVMArrayType2(e->i8, 0);
  LLVMValueRef base =
      LLVMAddGlobalInAddressSpace(e->llvm, type, "hd_shared", HD_EMIT_SHARED);
  LLVMSetAlignment(base, 1024);
  e->shared_base = LLVMConstPtrToInt(base, e->i32);
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
  e->function =
      LLVMAddFunction(e->llvm, hd_func_symbol(&e->arena, kernel), type);
  LLVMSetFunctionCallConv(e->function, PTX_KERNEL);
  // What every block may use is put before a mark that is taken out at the end.
  hd_emit_at(e, hd_emit_new_block(e, "entry"));
  LLVMValueRef mark = LLVMBuildAlloca(B, e->i8, "");
  LLVMPositionBuilderBefore(e->entry_builder, mark);
  e->frame.exit = hd_emit_new_block(e, "exit");
  annotate_launch(e);
  if (e->shared->num_tensors)
    declare_shared_base(e);
  bool waits = hd_func_waits(&e->arena, kernel);
  for (uint32_t i = 0; i < kernel->num_params; i++)
    bind_param(e, i, waits);
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

LLVMValueRef hd_emit_nvptx_read(hd_emit_t *e, hd_launch_value_t what,
                                int axis) {
  static const char *const names[][3] = {
      [HD_LAUNCH_THREAD] = {"tid.x", "tid.y", "tid.z"},
      [HD_LAUNCH_BLOCK] = {"ctaid.x", "ctaid.y", "ctaid.z"},
      [HD_LAUNCH_GRID_DIM] = {"nctaid.x", "nctaid.y", "nctaid.z"},
      [HD_LAUNCH_CLUSTER] = {"cluster.ctarank"},
  };
  enum { MOST_X = 2147483647, MOST_YZ = 65535, MOST_CLUSTER = 16 };
  int64_t blocks = axis ? MOST_YZ : MOST_X;
  const int64_t ranges[][2] = {
      [HD_LAUNCH_THREAD] = {0, hd_emit_dim(e->kernel->launch.block[axis]) - 1},
      [HD_LAUNCH_BLOCK] = {0, blocks - 1},
      [HD_LAUNCH_GRID_DIM] = {1, blocks},
      [HD_LAUNCH_CLUSTER] = {0, MOST_CLUSTER - 1},
  };
  return special(e, names[what][axis], ranges[what][0], ranges[what][1]);
}
