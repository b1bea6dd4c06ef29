// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The emitter's state and what its files offer one another. Private to
// lib/CodeGen.
//
// How values are held: bool as i1; integers as LLVM integers, those of less
// than a byte in an i8, extended by their own sign; f16 as half; bf16 as i16,
// f8 and f4 as i8 (their bits); tf32 as float; vectors as LLVM vectors of
// these. In memory bool takes a byte and sub-byte elements are packed, from the
// low bits up; register tensors give each element of less than a byte a byte.
//
// After an error (reported once) emission goes on with poison, so that callers
// need not check each result; hd_emit_t.failed says that all is in vain.
#ifndef HIDET_CODEGEN_EMIT_H
#define HIDET_CODEGEN_EMIT_H

#include "CodeGen/CodeGen.h"
#include "IR/Intrinsic.h"

#include <llvm-c/Core.h>

enum {
  HD_EMIT_NUMBERED = 1024,   // A power of two.
  HD_EMIT_SLOTS = 32,        // 64 bits each.
  HD_EMIT_WIDE_SLOTS = 128,  // With accumulators of 128 registers.
  HD_EMIT_CHECK_VALUES = 32, // So ranks up to 16.
};

// What a variable stands for while its scope is emitted.
typedef struct hd_binding {
  const hd_var_t *var;
  LLVMValueRef value; // A value; of a tensor, the address of its first element.
  bool invariant;     // Tensor that nobody writes during the launch.
  uint32_t number;    // hd_sim_site_t.declaration
} hd_binding_t;

// Where `return` goes, of the kernel or of a fn that is being inlined.
typedef struct hd_emit_frame {
  LLVMBasicBlockRef exit;
  LLVMValueRef result; // An alloca; NULL for void.
  LLVMTypeRef result_type;
} hd_emit_frame_t;

// An index of a register tensor that was no constant while emitting; and the
// name of the metadata that marks its address.
typedef struct hd_dynamic {
  hd_loc_t loc;
  const char *tensor;
} hd_dynamic_t;
#define HD_EMIT_DYNAMIC "hidet.dynamic"
#define HD_EMIT_HOST_PREFIX "hidet."

typedef struct hd_emit {
  hd_module_t *module;
  const hd_func_t *kernel;
  const hd_codegen_options_t *options;
  const hd_target_t *target;
  bool host, sanitize, coroutine;
  bool quick; // To compile: checks make much code that runs once.
  bool failed;
  bool native_f16; // Conversions between half and float are instructions.
  int64_t instructions_left;
  hd_dynamic_t *dynamic; // The first; NULL: there is none.
  hd_arena_t arena;      // Scratch.

  LLVMContextRef context;
  LLVMModuleRef llvm;
  LLVMBuilderRef builder;
  LLVMBuilderRef entry_builder; // At the end of the block of allocas.
  LLVMValueRef function;
  LLVMTypeRef i1, i8, i16, i32, i64, half, f32, f64, ptr, void_;

  hd_binding_t *bindings; // An open-addressing table.
  size_t num_bindings, cap_bindings;
  uint32_t num_declarations;
  hd_emit_frame_t frame;

  // Integer operations of the block that is being emitted, by what they are of.
  struct hd_numbered {
    LLVMBasicBlockRef block;
    LLVMValueRef a, b, value;
    uint32_t kind, type;
  } numbered[HD_EMIT_NUMBERED];
  LLVMValueRef builtins[HD_BUILTIN_COUNT]; // On the GPU: read at the entry.

  const hd_shared_plan_t *shared;
  LLVMValueRef shared_base;

  // Of the host's forms.
  LLVMValueRef thread, block;   // hd_sim_thread_t (coroutine), hd_sim_block_t
  LLVMValueRef thread_index[3]; // i32
  LLVMValueRef linear;          // i32; the linear thread index
  unsigned num_slots;
  LLVMValueRef slots;        // Of intrinsics, and copies of registers.
  LLVMValueRef check_values; // Of hd_sim_check().
  LLVMValueRef coro_handle;
  LLVMBasicBlockRef coro_suspend; // Where a suspension returns to the caller.
  LLVMBasicBlockRef stopped;      // Where a loop goes that was told to stop.
} hd_emit_t;

// Emit.c: a module with one kernel in it. init leaves everything ready for the
// body; hd_emit_kernel_body() is called by the targets' own code.
bool hd_emit_init(hd_emit_t *e, hd_module_t *module, const hd_func_t *kernel,
                  const hd_codegen_options_t *options);
void hd_emit_fini(hd_emit_t *e);
// Emits the whole kernel and verifies it; false after an error.
bool hd_emit_kernel(hd_emit_t *e);
void hd_emit_error(hd_emit_t *e, hd_loc_t loc, hd_diagnostic_code_t code, ...);
hd_binding_t *hd_emit_bind(hd_emit_t *e, const hd_var_t *var,
                           LLVMValueRef value);
const hd_binding_t *hd_emit_find(hd_emit_t *e, const hd_var_t *var);
// Counts an expression or statement against the budget; false: stop.
bool hd_emit_count(hd_emit_t *e, hd_loc_t loc);

// EmitNvptx.c, EmitHost.c: the function around the body.
void hd_emit_nvptx_kernel(hd_emit_t *e);
void hd_emit_host_kernel(hd_emit_t *e);
bool hd_emit_has_cluster(const hd_emit_t *e);
bool hd_emit_needs_coroutine(hd_module_t *module, const hd_func_t *kernel,
                             bool sanitize);
LLVMValueRef hd_emit_nvptx_builtin(hd_emit_t *e, hd_builtin_t builtin);
LLVMValueRef hd_emit_host_builtin(hd_emit_t *e, hd_builtin_t builtin);

// EmitType.c
LLVMTypeRef hd_emit_type(hd_emit_t *e, hd_type_t type);
// Of one element in memory, of one byte at least.
LLVMTypeRef hd_emit_memory_type(hd_emit_t *e, hd_type_t element);
// Bits of an element in a register tensor.
unsigned hd_emit_register_bits(hd_type_t element);
LLVMValueRef hd_emit_poison(hd_emit_t *e, hd_type_t type);
LLVMValueRef hd_emit_zero(hd_emit_t *e, hd_type_t type);
// An integer constant of an LLVM type; of every lane of a vector type.
LLVMValueRef hd_emit_int(LLVMTypeRef type, uint64_t value);
LLVMValueRef hd_emit_real(LLVMTypeRef type, double value);
// The vector type of like's lanes (or the scalar) with another element type.
LLVMTypeRef hd_emit_like(LLVMTypeRef like, LLVMTypeRef element);
LLVMValueRef hd_emit_splat(hd_emit_t *e, LLVMValueRef scalar, unsigned lanes);
LLVMValueRef hd_emit_lane(hd_emit_t *e, LLVMValueRef value, unsigned lane);
// The bits of a value as one integer, packed as in memory, and back.
LLVMValueRef hd_emit_to_bits(hd_emit_t *e, LLVMValueRef value, hd_type_t type);
LLVMValueRef hd_emit_from_bits(hd_emit_t *e, LLVMValueRef bits, hd_type_t type);
LLVMValueRef hd_emit_alloca(hd_emit_t *e, LLVMTypeRef type, int64_t count,
                            unsigned align, const char *name);
LLVMBasicBlockRef hd_emit_new_block(hd_emit_t *e, const char *name);
void hd_emit_at(hd_emit_t *e, LLVMBasicBlockRef block);
bool hd_emit_terminated(hd_emit_t *e);
// Branches to block unless the current block has ended already.
void hd_emit_go(hd_emit_t *e, LLVMBasicBlockRef block);
// Calls an LLVM intrinsic, overloaded on type (NULL: not overloaded).
LLVMValueRef hd_emit_llvm(hd_emit_t *e, const char *name, LLVMTypeRef overload,
                          LLVMValueRef *args, unsigned num_args);
// Calls a C function of the simulator's table.
LLVMValueRef hd_emit_c_call(hd_emit_t *e, const char *name, LLVMTypeRef result,
                            LLVMValueRef *args, unsigned num_args);

// EmitExpr.c
LLVMValueRef hd_emit_expr(hd_emit_t *e, const hd_expr_t *x);
bool hd_emit_is_cheap(const hd_expr_t *x);

// EmitKnown.c: the integer constant that a value is, bit by bit; else itself.
LLVMValueRef hd_emit_known(hd_emit_t *e, LLVMValueRef value);
// Says that a call's or load's value lies in least .. greatest.
void hd_emit_set_range(hd_emit_t *e, LLVMValueRef value, int64_t least,
                       int64_t greatest);

// EmitArith.c: one operation on values of a type.
LLVMValueRef hd_emit_unary(hd_emit_t *e, const hd_expr_t *x, LLVMValueRef a);
LLVMValueRef hd_emit_binary(hd_emit_t *e, const hd_expr_t *x, LLVMValueRef a,
                            LLVMValueRef b);

// EmitCast.c
LLVMValueRef hd_emit_convert(hd_emit_t *e, LLVMValueRef value, hd_type_t from,
                             hd_type_t to);
// EmitFloat.c: formats of less than 32 bits and tf32, by integer arithmetic.
LLVMValueRef hd_emit_small_to_f32(hd_emit_t *e, LLVMValueRef value,
                                  hd_scalar_t from);
LLVMValueRef hd_emit_f32_to_small(hd_emit_t *e, LLVMValueRef value,
                                  hd_scalar_t to);
LLVMValueRef hd_emit_f64_to_f32_odd(hd_emit_t *e, LLVMValueRef value);

// EmitAccess.c
// The address of an element and what is known of it.
typedef struct hd_place {
  const hd_binding_t *binding;
  LLVMValueRef pointer;
  LLVMValueRef bit;     // Elements of less than a byte: the first bit (i8).
  LLVMValueRef allowed; // i1, under --sanitize; NULL: always.
  LLVMValueRef site;    // Under --sanitize, else NULL.
} hd_place_t;
hd_place_t hd_emit_place(hd_emit_t *e, const hd_expr_t *access, int kind);
LLVMValueRef hd_emit_load(hd_emit_t *e, const hd_expr_t *x);
void hd_emit_store(hd_emit_t *e, const hd_stmt_t *stmt);
void hd_emit_store_to(hd_emit_t *e, const hd_expr_t *place, hd_type_t type,
                      LLVMValueRef value);
LLVMValueRef hd_emit_load_else(hd_emit_t *e, const hd_expr_t *x);
void hd_emit_declare(hd_emit_t *e, const hd_stmt_t *stmt);
// A constant hd_sim_site_t.
LLVMValueRef hd_emit_site(hd_emit_t *e, hd_loc_t loc, const char *name,
                          int access, const hd_binding_t *binding,
                          unsigned rank, unsigned lanes);

// EmitRegisters.c: the registers of PTX that a value takes.
enum { HD_EMIT_MAX_REGISTERS = 160 };
unsigned hd_emit_asm_bits(hd_type_t type);  // Of one register.
unsigned hd_emit_asm_count(hd_type_t type); // How many.
LLVMTypeRef hd_emit_asm_type(hd_emit_t *e, hd_type_t type);
const char *hd_emit_constraint(const hd_emit_t *e, LLVMTypeRef type);
void hd_emit_take_apart(hd_emit_t *e, LLVMValueRef value, hd_type_t type,
                        LLVMValueRef *registers);
LLVMValueRef hd_emit_put_together(hd_emit_t *e, const LLVMValueRef *registers,
                                  hd_type_t type);

// EmitPredicated.c
bool hd_emit_is_predicable_load(hd_emit_t *e, const hd_expr_t *load,
                                const hd_expr_t *otherwise);
LLVMValueRef hd_emit_predicated_load(hd_emit_t *e, LLVMValueRef condition,
                                     const hd_expr_t *load,
                                     const hd_expr_t *otherwise);
bool hd_emit_is_predicable_block(const hd_emit_t *e, hd_block_t block);
void hd_emit_predicated_block(hd_emit_t *e, LLVMValueRef condition,
                              hd_block_t block);

// EmitStmt.c
void hd_emit_block(hd_emit_t *e, hd_block_t block);
// EmitCall.c: inlines.
LLVMValueRef hd_emit_call(hd_emit_t *e, const hd_expr_t *x);

// EmitIntrinsic.c, EmitAsm.c, EmitSim.c
LLVMValueRef hd_emit_intrinsic(hd_emit_t *e, const hd_expr_t *x);
LLVMValueRef hd_emit_llvm_row(hd_emit_t *e, const char *name,
                              const hd_expr_t *x);
LLVMValueRef hd_emit_asm(hd_emit_t *e, const hd_expr_t *x);
LLVMValueRef hd_emit_sim(hd_emit_t *e, const hd_expr_t *x);
// What T stands for in a call.
hd_type_t hd_emit_intrinsic_type(const hd_expr_t *x);
// Suspends the coroutine with a request set.
void hd_emit_suspend(hd_emit_t *e, int request, LLVMValueRef function,
                     LLVMValueRef site, LLVMValueRef slots);

// Llvm.c
void hd_llvm_init(void); // Once for the process; thread-safe.
bool hd_host_has_f16(void);
const char *hd_host_cpu(void);
const char *hd_host_features(void);
// Runs body(argument) with e set up; what it allocated in LLVM is freed even
// where a budget runs out. False after an error.
bool hd_emit_run(hd_module_t *module, const hd_func_t *kernel,
                 const hd_codegen_options_t *options,
                 bool (*body)(hd_emit_t *e, void *argument), void *argument);

#endif
