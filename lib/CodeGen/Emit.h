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
#include "IR/SharedPlan.h"
#include "Support/Map.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

enum {
  HD_EMIT_SHARED = 3,       // Shared memory's address space on the GPU.
  HD_EMIT_SLOTS = 32,       // 64 bits each.
  HD_EMIT_WIDE_SLOTS = 128, // With accumulators of 128 registers.
};

// A register tensor whose elements are values (EmitCells.c).
typedef struct hd_cells {
  uint32_t first, count;  // Its cells among the kernel's.
  unsigned bits;          // Of an element; 32 where none share a word.
  LLVMTypeRef type;       // Of an element.
  LLVMBasicBlockRef home; // Where it was declared.
  // Of each: the latest block that had been begun when it was last written.
  uint32_t *written;
} hd_cells_t;
typedef struct hd_open_phi hd_open_phi_t;

// A block that emission has come to (EmitBlocks.c).
typedef struct hd_flow {
  LLVMBasicBlockRef block;
  struct hd_flow *dominator; // The nearest above it; NULL: there is none.
  uint32_t depth;            // Of dominators.
  uint32_t order;            // In which blocks are begun, from 1 on.
  struct hd_flow *loop;      // The innermost loop's head; NULL: there is none.
  // Of the head of a loop: while it is open, its way back is missing.
  bool is_loop, is_open;
  LLVMBasicBlockRef entered_from;
  struct hd_flow *outer; // The next loop's head.
  hd_open_phi_t *phis;
  const hd_cells_t **written;
  uint32_t num_written;
} hd_flow_t;

// What a variable stands for while its scope is emitted.
typedef struct hd_binding {
  const hd_var_t *var;
  LLVMValueRef value; // A value; of a tensor, the address of its first element
                      // (of a shared one on the GPU, an i32).
  const hd_cells_t *cells; // Of a register tensor that has none.
  bool invariant;          // Tensor that nobody writes during the launch.
  bool is_table;           // A constant of the module.
  LLVMValueRef written;    // Of registers under --sanitize: a byte an element;
                           // NULL where they have an initial value.
  LLVMValueRef exact; // Of those of i32: the elements without wrapping, i64.
  uint32_t number;    // hd_sim_site_t.declaration
} hd_binding_t;

// Where `return` goes, of the kernel or of a fn that is being inlined.
typedef struct hd_emit_frame {
  LLVMBasicBlockRef exit;
  LLVMValueRef result;           // An alloca, of the host;
  const hd_cells_t *result_cell; // of the GPU. Both NULL for void.
  LLVMTypeRef result_type;
} hd_emit_frame_t;

// Where `break` and `continue` go, of the innermost loop; NULL: none has been
// met yet.
typedef struct hd_emit_exits {
  LLVMBasicBlockRef end, next;
} hd_emit_exits_t;

// What LLVM makes a target machine of; equal ones are exchangeable. The strings
// live as long as the process.
typedef struct hd_llvm_machine {
  const char *triple, *cpu, *features;
  LLVMCodeGenOptLevel level;
  LLVMRelocMode reloc;
  LLVMCodeModel model;
} hd_llvm_machine_t;

// A target machine, while a kernel has it (TargetMachine.c).
typedef struct hd_target_machine {
  hd_llvm_machine_t of;
  LLVMTargetMachineRef llvm; // NULL: there is none.
  unsigned kernels;          // That it has served before.
} hd_target_machine_t;

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
  hd_loc_t place;          // In the kernel's own text, of what is emitted.
  unsigned calls;          // Whose bodies are being emitted.
  unsigned stmts_in_block; // At most, of the block at hand.
  hd_dynamic_t *dynamic;   // The first; NULL: there is none.
  hd_arena_t arena;        // Scratch.

  LLVMContextRef context;
  LLVMModuleRef llvm;
  hd_target_machine_t machine;
  LLVMMemoryBufferRef output; // These two may be NULL.
  char *message;              // LLVM's last.
  LLVMBuilderRef builder;
  LLVMBuilderRef entry_builder; // At the end of the block of allocas.
  LLVMValueRef function;
  LLVMTypeRef i1, i8, i16, i32, i64, half, f32, f64, ptr, void_;

  hd_ptr_map_t bindings; // hd_binding_t by variable.
  uint32_t num_declarations;
  hd_emit_frame_t frame;
  hd_emit_exits_t *exits;
  uint64_t copies; // Of what is emitted, by the unrolled loops around it.

  hd_key_map_t numbered; // Operations that were emitted (EmitBlocks.c).
  hd_ptr_map_t flows;    // hd_flow_t by block.
  hd_ptr_map_t raised;   // What EmitNarrow.c knows of floats that it made.
  hd_ptr_map_t packed;   // Vectors of bytes and less: their bits in memory.
  hd_ptr_map_t bytes;    // Bytes that are part of a word: by EmitNarrow.c.
  uint32_t num_flows;
  hd_flow_t *loop; // The innermost loop that is open.

  // Register tensors as values, where every index is known while emitting.
  bool in_memory;    // One was not: they are allocas, left to LLVM's passes.
  bool is_tied;      // An instruction writes the registers that it reads.
  bool retry;        // That was found out just now: emission starts again so.
  hd_ptr_map_t held; // What cells hold at the ends of blocks (EmitCells.c).
  uint32_t num_cells;
  int depth; // Of blocks being looked through.
  hd_open_phi_t *postponed;
  LLVMValueRef builtins[HD_BUILTIN_COUNT]; // On the GPU: read at the entry.

  const hd_shared_plan_t *shared;
  LLVMValueRef shared_base; // On the GPU an i32.
  LLVMValueRef printed;     // What printf is given; NULL: no call so far.
  uint32_t num_printed;     // It holds so many values.

  // Of the host's forms.
  LLVMValueRef thread, block;   // hd_sim_thread_t (coroutine), hd_sim_block_t
  LLVMValueRef thread_index[3]; // i32
  LLVMValueRef linear;          // i32; the linear thread index
  unsigned num_slots;
  LLVMValueRef slots;        // Of intrinsics, and copies of registers.
  LLVMValueRef check_values; // Of hd_sim_check().
  hd_ptr_map_t exacts; // By the load of an i32, or a constant that wrapped: the
                       // value without wrapping.
  LLVMValueRef coro_handle;
  LLVMBasicBlockRef coro_suspend; // Where a suspension returns to the caller.
  LLVMBasicBlockRef stopped;      // Where a loop goes that was told to stop.
} hd_emit_t;

// What the kernel is called in host code; in the arena.
const char *hd_emit_host_symbol(hd_emit_t *e);

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
// A table is bound when it is first looked for.
const hd_binding_t *hd_emit_find(hd_emit_t *e, const hd_var_t *var);
// Counts an expression or statement against the budget; false: stop.
bool hd_emit_count(hd_emit_t *e);

// EmitNvptx.c, EmitHost.c: the function around the body.
void hd_emit_nvptx_kernel(hd_emit_t *e);
void hd_emit_host_kernel(hd_emit_t *e);
bool hd_emit_has_cluster(const hd_emit_t *e);
bool hd_emit_needs_coroutine(hd_module_t *module, const hd_func_t *kernel,
                             bool sanitize);
// What a target reads of the launch, along an axis (of clusters: 0).
typedef enum hd_launch_value {
  HD_LAUNCH_THREAD,
  HD_LAUNCH_BLOCK,
  HD_LAUNCH_GRID_DIM,
  HD_LAUNCH_CLUSTER,
} hd_launch_value_t;
LLVMValueRef hd_emit_nvptx_read(hd_emit_t *e, hd_launch_value_t what, int axis);
LLVMValueRef hd_emit_host_read(hd_emit_t *e, hd_launch_value_t what, int axis);

// EmitBuiltin.c
LLVMValueRef hd_emit_builtin(hd_emit_t *e, hd_builtin_t builtin);
// A dimension of the launch: 1 where none is given, 0 where it is no constant.
int64_t hd_emit_dim(const hd_expr_t *dim);

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
// condition ? a : b, folded where the condition is a constant.
LLVMValueRef hd_emit_select(hd_emit_t *e, LLVMValueRef condition,
                            LLVMValueRef a, LLVMValueRef b);
// Calls an LLVM intrinsic, overloaded on type (NULL: not overloaded).
LLVMValueRef hd_emit_llvm(hd_emit_t *e, const char *name, LLVMTypeRef overload,
                          LLVMValueRef *args, unsigned num_args);
// Calls a C function of the simulator's table.
LLVMValueRef hd_emit_c_call(hd_emit_t *e, const char *name, LLVMTypeRef result,
                            LLVMValueRef *args, unsigned num_args);

// EmitBlocks.c: every branch into a block but a loop's last comes before the
// block is begun.
LLVMBasicBlockRef hd_emit_new_block(hd_emit_t *e, const char *name);
void hd_emit_at(hd_emit_t *e, LLVMBasicBlockRef block);
bool hd_emit_terminated(hd_emit_t *e);
// Branches to block unless the current block has ended already.
void hd_emit_go(hd_emit_t *e, LLVMBasicBlockRef block);
// Puts the builder before block's end.
void hd_emit_before_end(hd_emit_t *e, LLVMBasicBlockRef block);
// Goes on in block; or where it is, and without block, if nothing goes there.
void hd_emit_end(hd_emit_t *e, LLVMBasicBlockRef block);
// A conditional branch, or none where the condition is a constant.
void hd_emit_branch(hd_emit_t *e, LLVMValueRef condition,
                    LLVMBasicBlockRef then, LLVMBasicBlockRef otherwise);
// NULL: emission has not come to it.
hd_flow_t *hd_emit_flow(const hd_emit_t *e, LLVMBasicBlockRef block);
// A block that branches into another, from a use of that; steps to the next.
LLVMBasicBlockRef hd_emit_way_in(LLVMUseRef *use);
// Where the value of an operation is kept: *result is NULL if it was not
// emitted yet where it could be used here. Until the next call. Arithmetic of
// integers that two branches have in common goes to where they part.
LLVMValueRef *hd_emit_number(hd_emit_t *e, uint32_t kind, uint32_t type,
                             const void *a, const void *b);

// EmitCells.c: register tensors as values. Indices past the end read poison and
// write nothing.
hd_cells_t *hd_cells_create(hd_emit_t *e, LLVMTypeRef type, unsigned bits,
                            uint32_t count);
// n elements, as any type of as many bits.
LLVMValueRef hd_cells_read(hd_emit_t *e, const hd_cells_t *cells, int64_t index,
                           unsigned n, LLVMTypeRef type);
void hd_cells_write(hd_emit_t *e, const hd_cells_t *cells, int64_t index,
                    unsigned n, LLVMValueRef value);
// Begins a loop's head, branched to from the current block, and closes it once
// the branch back is there. The body (and the condition, or NULL) says what the
// loop may write.
void hd_emit_open_loop(hd_emit_t *e, LLVMBasicBlockRef head,
                       const hd_expr_t *condition, hd_block_t body);
void hd_emit_close_loop(hd_emit_t *e, LLVMBasicBlockRef head);
// A bitcast, or what it would undo.
LLVMValueRef hd_emit_cast(hd_emit_t *e, LLVMValueRef value, LLVMTypeRef type);

// EmitExpr.c
LLVMValueRef hd_emit_expr(hd_emit_t *e, const hd_expr_t *x);
bool hd_emit_is_cheap(const hd_expr_t *x);
// A sum's part without its constant, which is added to *constant.
LLVMValueRef hd_emit_split(LLVMValueRef value, uint64_t *constant);
// x's operation on these values, or the value it had when it was emitted.
LLVMValueRef hd_emit_operation(hd_emit_t *e, const hd_expr_t *x, LLVMValueRef a,
                               LLVMValueRef b);

// EmitKnown.c: whether value + constant is the same in more bits: it does not
// overflow.
bool hd_emit_is_exact_sum(hd_emit_t *e, LLVMValueRef value, int64_t constant,
                          bool is_signed);
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
// EmitBytes.c: bytes that were rounded and clamped, as a vector of them; NULL:
// by inserting each.
LLVMValueRef hd_emit_bytes(hd_emit_t *e, hd_type_t type,
                           const LLVMValueRef *lanes);

// EmitNarrow.c: of the GPU; NULL: by instructions that convert.
LLVMValueRef hd_emit_int_to_f16(hd_emit_t *e, LLVMValueRef value,
                                hd_type_t from);
// The same of one byte that is known to be part of a word, to f32.
LLVMValueRef hd_emit_byte_to_f32(hd_emit_t *e, LLVMValueRef value,
                                 hd_type_t from);
// A number of 16 bits as two bytes: a cast LLVM may take through local memory.
LLVMValueRef hd_emit_split_bytes(hd_emit_t *e, LLVMValueRef word);
// A lane of a vector; of one whose bytes are packed, that it is part of a word.
LLVMValueRef hd_emit_byte_lane(hd_emit_t *e, LLVMValueRef value, unsigned lane);
// Byte `at` of a word of 16 or 32 bits, which is noted.
LLVMValueRef hd_emit_note_byte(hd_emit_t *e, LLVMValueRef byte,
                               LLVMValueRef word, unsigned at);
// The word of 32 bits that is four bytes, where they are parts of words already
// as they stand in it; else NULL.
LLVMValueRef hd_emit_word_of(hd_emit_t *e, const LLVMValueRef *bytes);
// x, a difference, where a is such a conversion and the other a small integer
// constant: in one step. NULL: it is none.
LLVMValueRef hd_emit_int_minus(hd_emit_t *e, const hd_expr_t *x,
                               LLVMValueRef a);
// EmitFloat.c: formats of less than 32 bits and tf32, by integer arithmetic.
LLVMValueRef hd_emit_small_to_f32(hd_emit_t *e, LLVMValueRef value,
                                  hd_scalar_t from);
LLVMValueRef hd_emit_f32_to_small(hd_emit_t *e, LLVMValueRef value,
                                  hd_scalar_t to);
LLVMValueRef hd_emit_f64_to_f32_odd(hd_emit_t *e, LLVMValueRef value);

// EmitPrint.c
void hd_emit_print(hd_emit_t *e, const hd_stmt_t *stmt);

// EmitTable.c
const hd_binding_t *hd_emit_bind_table(hd_emit_t *e, const hd_var_t *table);
// The element that a load of a table reads, as a constant; NULL where the
// offset is none.
LLVMValueRef hd_emit_table_element(hd_emit_t *e, const hd_expr_t *load,
                                   LLVMValueRef offset);

// EmitRegisters.c: the registers of PTX that a value takes.
enum { HD_EMIT_MAX_REGISTERS = 160 };
unsigned hd_emit_asm_bits(hd_type_t type);  // Of one register.
unsigned hd_emit_asm_count(hd_type_t type); // How many.
LLVMTypeRef hd_emit_asm_type(hd_emit_t *e, hd_type_t type);
const char *hd_emit_constraint(const hd_emit_t *e, LLVMTypeRef type);
// An instruction that LLVM has no intrinsic for, as inline assembly; a pure
// function of its arguments, at most HD_EMIT_MAX_REGISTERS, unless it has an
// effect.
LLVMValueRef hd_emit_ptx(hd_emit_t *e, const char *code,
                         const char *constraints, LLVMTypeRef result,
                         LLVMValueRef *args, unsigned num_args, bool effect);
// The product of two values of 32 bits in 64; the GPU's instruction.
LLVMValueRef hd_emit_multiply_wide(hd_emit_t *e, LLVMValueRef a, LLVMValueRef b,
                                   bool is_signed);
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
// --- EmitLoop.c ---

void hd_emit_for(hd_emit_t *e, const hd_stmt_t *stmt);
void hd_emit_while(hd_emit_t *e, const hd_stmt_t *stmt);
// break and continue: to a block of e->exits, which is made at its first use.
void hd_emit_exit(hd_emit_t *e, LLVMBasicBlockRef *to);

void hd_emit_block(hd_emit_t *e, hd_block_t block);
// EmitCall.c: inlines.
LLVMValueRef hd_emit_call(hd_emit_t *e, const hd_expr_t *x);

// EmitIntrinsic.c, EmitAsm.c, EmitSim.c
LLVMValueRef hd_emit_intrinsic(hd_emit_t *e, const hd_expr_t *x);
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
const char *hd_host_triple(void);
const char *hd_host_cpu(void);
const char *hd_host_features(void);
// Runs body(argument) with e set up; what it allocated in LLVM is freed even
// where a budget runs out. False after an error.
bool hd_emit_run(hd_module_t *module, const hd_func_t *kernel,
                 const hd_codegen_options_t *options,
                 bool (*body)(hd_emit_t *e, void *argument), void *argument);

#endif
