// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel for the host, in one of the two forms of CodeGen/SimAbi.h.
//
// The loop form:                          The coroutine form:
//   void K(args, block) {                   void *K(args, thread) {
//     for z, y, x                             frame = hd_sim_frame(...)
//       body                                  body, with suspensions
//   }                                         final suspension
//                                           }
#include "CodeGen/Emit.h"
#include "CodeGen/SimAbi.h"
#include "IR/Generic.h"
#include "IR/Rewrite.h"

#include <string.h>

#define B e->builder

static LLVMValueRef field(hd_emit_t *e, LLVMValueRef object, size_t offset,
                          LLVMTypeRef type, const char *name) {
  LLVMValueRef index = LLVMConstInt(e->i64, offset, false);
  LLVMValueRef at = LLVMBuildInBoundsGEP2(B, e->i8, object, &index, 1, "");
  return LLVMBuildLoad2(B, type, at, name);
}

static void set_field(hd_emit_t *e, LLVMValueRef object, size_t offset,
                      LLVMValueRef value) {
  LLVMValueRef index = LLVMConstInt(e->i64, offset, false);
  LLVMBuildStore(B, value,
                 LLVMBuildInBoundsGEP2(B, e->i8, object, &index, 1, ""));
}

static bool is_free_of_threads(void *argument, const hd_expr_t *x) {
  (void)argument;
  if (x->kind != HD_EXPR_INTRINSIC)
    return true;
  const hd_intrinsic_info_t *info = hd_intrinsic_of(x);
  return info->kind == HD_INTRINSIC_PURE ||
         info->traits & (HD_TRAIT_LOAD | HD_TRAIT_STORE);
}

bool hd_emit_needs_coroutine(hd_module_t *module, const hd_func_t *kernel,
                             bool sanitize) {
  return sanitize ||
         !hd_walk_calls(&module->arena, kernel->body, is_free_of_threads, NULL);
}

// Binds the parameters to what args points at.
static void bind_params(hd_emit_t *e, LLVMValueRef args) {
  for (uint32_t i = 0; i < e->kernel->num_params; i++) {
    const hd_var_t *param = e->kernel->params[i];
    LLVMValueRef at = field(e, args, i * sizeof(void *), e->ptr, "");
    if (param->kind == HD_VAR_TENSOR) {
      LLVMValueRef base = LLVMBuildLoad2(B, e->ptr, at, param->name);
      hd_binding_t *binding = hd_emit_bind(e, param, base);
      binding->invariant = param->direction == HD_DIR_IN;
      binding->number = i;
      continue;
    }
    LLVMTypeRef type = hd_emit_memory_type(e, param->type);
    LLVMValueRef value = LLVMBuildLoad2(B, type, at, param->name);
    if (hd_type_is_bool(param->type))
      value = LLVMBuildICmp(B, LLVMIntNE, value, LLVMConstNull(type), "");
    hd_emit_bind(e, param, value);
  }
  // The simulator's object of each tensor map, after the parameters.
  for (uint32_t i = 0; i < e->kernel->num_maps; i++) {
    uint32_t place = (e->kernel->num_params + i) * (uint32_t)sizeof(void *);
    LLVMValueRef map = field(e, args, place, e->i64, "map");
    hd_emit_bind(e, e->kernel->maps[i], map);
  }
}

static LLVMAttributeRef attribute(hd_emit_t *e, const char *name) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  return LLVMCreateEnumAttribute(e->context, kind, 0);
}

// The prefix keeps a kernel's name apart from those of C functions.
const char *hd_emit_host_symbol(hd_emit_t *e) {
  return hd_arena_printf(&e->arena, HD_EMIT_HOST_PREFIX "%s",
                         hd_func_symbol(&e->arena, e->kernel));
}

static void add_function(hd_emit_t *e, LLVMTypeRef result) {
  LLVMTypeRef types[] = {e->ptr, e->ptr};
  const char *name = hd_emit_host_symbol(e);
  LLVMTypeRef type = LLVMFunctionType(result, types, 2, false);
  e->function = LLVMAddFunction(e->llvm, name, type);
  LLVMAddAttributeAtIndex(e->function, (unsigned)LLVMAttributeFunctionIndex,
                          attribute(e, "nounwind"));
}

// No operands of as many registers as the call says: wgmma's.
static bool has_few_registers(void *argument, const hd_expr_t *x) {
  (void)argument;
  return x->kind != HD_EXPR_INTRINSIC || hd_intrinsic_of(x)->count < 0;
}

// Slots of intrinsics and copies of registers: one area for all, so that a
// coroutine's frame holds it once. Likewise the values of checks.
static void make_scratch(hd_emit_t *e) {
  bool is_wide =
      !hd_walk_calls(&e->arena, e->kernel->body, has_few_registers, NULL);
  e->num_slots = is_wide ? HD_EMIT_WIDE_SLOTS : HD_EMIT_SLOTS;
  e->slots = hd_emit_alloca(e, e->i64, e->num_slots, 16, "slots");
  if (e->sanitize)
    e->check_values =
        hd_emit_alloca(e, e->i64, HD_SIM_CHECK_VALUES, 16, "values");
}

static void load_shared_base(hd_emit_t *e) {
  if (e->shared->num_tensors)
    e->shared_base =
        field(e, e->block, offsetof(hd_sim_block_t, shared), e->ptr, "shared");
}

// One loop over an axis of the block; returns its latch's parts to finish.
typedef struct thread_loop {
  LLVMBasicBlockRef head, after;
  LLVMValueRef phi;
  int64_t size;
} thread_loop_t;

static thread_loop_t open_loop(hd_emit_t *e, int64_t size) {
  thread_loop_t loop = {.size = size};
  LLVMBasicBlockRef before = LLVMGetInsertBlock(B);
  loop.head = hd_emit_new_block(e, "threads");
  loop.after = hd_emit_new_block(e, "threads_end");
  LLVMBuildBr(B, loop.head);
  hd_emit_at(e, loop.head);
  loop.phi = LLVMBuildPhi(B, e->i32, "");
  LLVMValueRef zero = LLVMConstNull(e->i32);
  LLVMAddIncoming(loop.phi, &zero, &before, 1);
  return loop;
}

static void close_loop(hd_emit_t *e, const thread_loop_t *loop) {
  LLVMValueRef next =
      LLVMBuildNSWAdd(B, loop->phi, LLVMConstInt(e->i32, 1, false), "");
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(B);
  LLVMAddIncoming(loop->phi, &next, &latch, 1);
  LLVMValueRef end = LLVMConstInt(e->i32, (uint64_t)loop->size, false);
  LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntSLT, next, end, ""), loop->head,
                  loop->after);
  hd_emit_at(e, loop->after);
}

static LLVMValueRef linear_of(hd_emit_t *e) {
  LLVMValueRef sum = e->thread_index[2];
  for (int axis = 1; axis >= 0; axis--) {
    int64_t size = hd_emit_dim(e->kernel->launch.block[axis]);
    LLVMValueRef dim = LLVMConstInt(e->i32, (uint64_t)size, false);
    sum = LLVMBuildMul(B, sum, dim, "");
    sum = LLVMBuildAdd(B, sum, e->thread_index[axis], "");
  }
  return sum;
}

static void emit_loops(hd_emit_t *e) {
  add_function(e, e->void_);
  LLVMBasicBlockRef entry = hd_emit_new_block(e, "entry");
  LLVMBasicBlockRef start = hd_emit_new_block(e, "start");
  e->stopped = hd_emit_new_block(e, "stopped");
  LLVMPositionBuilderAtEnd(e->entry_builder, entry);
  hd_emit_at(e, start);
  e->block = LLVMGetParam(e->function, 1);
  e->thread = LLVMConstNull(e->ptr);
  bind_params(e, LLVMGetParam(e->function, 0));
  load_shared_base(e);
  thread_loop_t loops[3];
  for (int axis = 2; axis >= 0; axis--) {
    int64_t size = hd_emit_dim(e->kernel->launch.block[axis]);
    loops[axis] = open_loop(e, size);
    e->thread_index[axis] = loops[axis].phi;
  }
  e->linear = linear_of(e);
  e->frame.exit = hd_emit_new_block(e, "thread_end");
  hd_emit_block(e, e->kernel->body);
  hd_emit_go(e, e->frame.exit);
  hd_emit_at(e, e->frame.exit);
  for (int axis = 0; axis < 3; axis++)
    close_loop(e, &loops[axis]);
  LLVMBuildBr(B, e->stopped);
  hd_emit_at(e, e->stopped);
  LLVMBuildRetVoid(B);
  LLVMBuildBr(e->entry_builder, start);
}

static LLVMValueRef none_token(hd_emit_t *e) {
  return LLVMConstNull(LLVMTokenTypeInContext(e->context));
}

// llvm.coro.suspend: 0 on resumption; the frame is never destroyed by LLVM.
static void suspend(hd_emit_t *e, bool is_final, LLVMBasicBlockRef resumed) {
  LLVMValueRef args[] = {none_token(e), LLVMConstInt(e->i1, is_final, false)};
  LLVMValueRef which = hd_emit_llvm(e, "llvm.coro.suspend", NULL, args, 2);
  LLVMBasicBlockRef destroyed = hd_emit_new_block(e, "destroyed");
  LLVMValueRef choice = LLVMBuildSwitch(B, which, e->coro_suspend, 2);
  LLVMAddCase(choice, LLVMConstInt(e->i8, 0, false), resumed);
  LLVMAddCase(choice, LLVMConstInt(e->i8, 1, false), destroyed);
  hd_emit_at(e, destroyed);
  LLVMBuildBr(B, e->coro_suspend);
}

void hd_emit_suspend(hd_emit_t *e, int request, LLVMValueRef function,
                     LLVMValueRef site, LLVMValueRef slots) {
  set_field(e, e->thread, offsetof(hd_sim_thread_t, request),
            LLVMConstInt(e->i32, (uint64_t)request, false));
  set_field(e, e->thread, offsetof(hd_sim_thread_t, site), site);
  if (function) {
    set_field(e, e->thread, offsetof(hd_sim_thread_t, function), function);
    set_field(e, e->thread, offsetof(hd_sim_thread_t, slots), slots);
  }
  LLVMBasicBlockRef resumed = hd_emit_new_block(e, "resumed");
  suspend(e, false, resumed);
  hd_emit_at(e, resumed);
}

static void open_coroutine(hd_emit_t *e) {
  LLVMValueRef null = LLVMConstNull(e->ptr);
  LLVMValueRef id_args[] = {LLVMConstInt(e->i32, 0, false), null, null, null};
  LLVMValueRef id = hd_emit_llvm(e, "llvm.coro.id", NULL, id_args, 4);
  LLVMValueRef size = hd_emit_llvm(e, "llvm.coro.size", e->i64, NULL, 0);
  LLVMValueRef align = hd_emit_llvm(e, "llvm.coro.align", e->i64, NULL, 0);
  LLVMValueRef frame_args[] = {e->thread, size, align};
  LLVMValueRef memory =
      hd_emit_c_call(e, "hd_sim_frame", e->ptr, frame_args, 3);
  LLVMValueRef begin_args[] = {id, memory};
  e->coro_handle = hd_emit_llvm(e, "llvm.coro.begin", NULL, begin_args, 2);
}

static void close_coroutine(hd_emit_t *e) {
  LLVMBasicBlockRef never = hd_emit_new_block(e, "never");
  suspend(e, true, never);
  hd_emit_at(e, never);
  LLVMBuildUnreachable(B);
  hd_emit_at(e, e->coro_suspend);
  LLVMValueRef args[] = {e->coro_handle, LLVMConstInt(e->i1, 0, false),
                         none_token(e)};
  hd_emit_llvm(e, "llvm.coro.end", NULL, args, 3);
  LLVMBuildRet(B, e->coro_handle);
}

static LLVMValueRef thread_field(hd_emit_t *e, size_t offset, int64_t size) {
  LLVMValueRef value = field(e, e->thread, offset, e->i32, "thread");
  if (size > 0)
    hd_emit_set_range(e, value, 0, size - 1);
  return value;
}

static void emit_coroutine(hd_emit_t *e) {
  add_function(e, e->ptr);
  LLVMAddAttributeAtIndex(e->function, (unsigned)LLVMAttributeFunctionIndex,
                          attribute(e, "presplitcoroutine"));
  LLVMBasicBlockRef entry = hd_emit_new_block(e, "entry");
  LLVMBasicBlockRef start = hd_emit_new_block(e, "start");
  e->coro_suspend = hd_emit_new_block(e, "suspend");
  e->frame.exit = hd_emit_new_block(e, "final");
  e->stopped = e->frame.exit;
  LLVMPositionBuilderAtEnd(e->entry_builder, entry);
  hd_emit_at(e, start);
  e->thread = LLVMGetParam(e->function, 1);
  open_coroutine(e);
  make_scratch(e);
  e->block =
      field(e, e->thread, offsetof(hd_sim_thread_t, block), e->ptr, "block");
  bind_params(e, LLVMGetParam(e->function, 0));
  load_shared_base(e);
  for (size_t axis = 0; axis < 3; axis++)
    e->thread_index[axis] =
        hd_emit_dim(e->kernel->launch.block[axis]) == 1
            ? LLVMConstNull(e->i32)
            : thread_field(e, offsetof(hd_sim_thread_t, thread) + 4 * axis,
                           hd_emit_dim(e->kernel->launch.block[axis]));
  e->linear = thread_field(e, offsetof(hd_sim_thread_t, linear),
                           hd_func_block_threads(e->kernel));
  hd_emit_block(e, e->kernel->body);
  hd_emit_go(e, e->frame.exit);
  hd_emit_at(e, e->frame.exit);
  close_coroutine(e);
  LLVMBuildBr(e->entry_builder, start);
}

void hd_emit_host_kernel(hd_emit_t *e) {
  e->coroutine = hd_emit_needs_coroutine(e->module, e->kernel, e->sanitize);
  if (e->coroutine)
    emit_coroutine(e);
  else
    emit_loops(e);
}

LLVMValueRef hd_emit_host_read(hd_emit_t *e, hd_launch_value_t what, int axis) {
  static const size_t offsets[] = {
      [HD_LAUNCH_BLOCK] = offsetof(hd_sim_block_t, block),
      [HD_LAUNCH_GRID_DIM] = offsetof(hd_sim_block_t, grid_dim),
      [HD_LAUNCH_CLUSTER] = offsetof(hd_sim_block_t, cluster),
  };
  if (what == HD_LAUNCH_THREAD)
    return e->thread_index[axis];
  return field(e, e->block, offsets[what] + 4 * (size_t)axis, e->i32, "");
}
