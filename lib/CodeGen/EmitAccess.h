// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accesses as they are emitted: where an element is, loads and stores, and what
// host code asks of them under --sanitize. Private to lib/CodeGen.
#ifndef HIDET_CODEGEN_EMITACCESS_H
#define HIDET_CODEGEN_EMITACCESS_H

#include "CodeGen/Emit.h"

// What an access names, whichever node it came from.
typedef struct hd_access {
  const hd_var_t *var;
  bool linear;
  uint32_t num_indices;
  const hd_expr_t *const *indices;
  hd_type_t type; // With the lanes.
  hd_loc_t loc;
  bool bare; // The layout's swizzle is left to the hardware.
} hd_access_t;

// EmitPlace.c, EmitAddress.c
// The address of an element and what is known of it.
typedef struct hd_place {
  const hd_binding_t *binding;
  LLVMValueRef pointer; // On the GPU, of shared memory: the address, an i32.
  int64_t displacement; // In bytes, from the pointer; 0 on the host.
  LLVMValueRef offset;  // In elements; NULL but of registers in memory.
  LLVMValueRef bit;     // Elements of less than a byte: the first bit (i8).
  LLVMValueRef allowed; // i1, under --sanitize; NULL: always.
  LLVMValueRef site;    // Under --sanitize, else NULL.
} hd_place_t;
// Each index once: one that holds accesses is emitted and named.
const hd_expr_t *const *hd_emit_name_indices(hd_emit_t *e,
                                             const hd_expr_t *const *indices,
                                             uint32_t count);
hd_access_t hd_emit_access(hd_emit_t *e, const hd_expr_t *x);
// In elements, from the tensor's base.
const hd_expr_t *hd_emit_offset(hd_emit_t *e, const hd_access_t *a);
// kind: of access, for the sanitizer (HD_SIM_LOAD ...).
hd_place_t hd_emit_access_place(hd_emit_t *e, const hd_access_t *a, int kind);
hd_place_t hd_emit_place(hd_emit_t *e, const hd_expr_t *access, int kind);
// Where a matrix begins: the swizzle is the hardware's to apply.
hd_place_t hd_emit_matrix_place(hd_emit_t *e, const hd_expr_t *matrix);
// On the GPU: fills in the pointer and displacement of an offset in elements,
// from the binding's value.
void hd_emit_address(hd_emit_t *e, const hd_tensor_t *tensor,
                     const hd_expr_t *offset, hd_place_t *place);
// The pointer with its displacement.
LLVMValueRef hd_emit_displaced(hd_emit_t *e, const hd_place_t *place);
// The element of a register tensor that an access begins at; false: it is known
// when the code runs, and emission starts again with the tensor in memory.
bool hd_emit_cell(hd_emit_t *e, const hd_expr_t *access,
                  const hd_cells_t **cells, int64_t *index);
bool hd_emit_access_cell(hd_emit_t *e, const hd_access_t *a,
                         const hd_cells_t **cells, int64_t *index);
static inline unsigned hd_emit_element_bits(hd_type_t type) {
  return hd_scalar_bits((hd_scalar_t)type.scalar);
}
// The operand i of an intrinsic takes several elements of a register tensor,
// from first on: an error where it has not as many. Likewise of a place, as far
// as it is known.
bool hd_emit_has_registers(hd_emit_t *e, const hd_expr_t *call, unsigned i,
                           int64_t first);
hd_place_t hd_emit_registers(hd_emit_t *e, const hd_expr_t *call, unsigned i);
// As hd_emit_check_written(), of an intrinsic's operand.
void hd_emit_check_registers(hd_emit_t *e, const hd_expr_t *x,
                             const hd_place_t *place, unsigned count,
                             LLVMValueRef condition);
LLVMValueRef hd_emit_load(hd_emit_t *e, const hd_expr_t *x);
void hd_emit_store(hd_emit_t *e, const hd_stmt_t *stmt);
void hd_emit_store_to(hd_emit_t *e, const hd_expr_t *place, hd_type_t type,
                      LLVMValueRef value);
LLVMValueRef hd_emit_load_else(hd_emit_t *e, const hd_expr_t *x);
void hd_emit_declare(hd_emit_t *e, const hd_stmt_t *stmt);
// Sets every element of an alloca.
void hd_emit_fill(hd_emit_t *e, LLVMTypeRef type, LLVMValueRef slot,
                  int64_t count, LLVMValueRef value);
// A constant hd_sim_site_t.
LLVMValueRef hd_emit_site(hd_emit_t *e, hd_loc_t loc, const char *name,
                          int access, const hd_binding_t *binding,
                          unsigned rank, unsigned lanes);

// EmitCheck.c: under --sanitize.
// Asks the simulator whether the access may be done; of registers, offset is
// the element. Fills in allowed and site.
void hd_emit_check(hd_emit_t *e, const hd_access_t *a, int kind,
                   LLVMValueRef offset, hd_place_t *place);
// Whether an access at a constant offset cannot be out of bounds.
bool hd_emit_is_inside(hd_emit_t *e, const hd_access_t *a, LLVMValueRef offset);
// An index, in 64 bits.
LLVMValueRef hd_emit_index(hd_emit_t *e, const hd_expr_t *x);
// Reports indices whose arithmetic wraps. Whether one does; NULL: none can.
LLVMValueRef hd_emit_check_overflow(hd_emit_t *e, const hd_access_t *a,
                                    int kind, const hd_binding_t *binding);
// Registers that have been declared without a value; count elements, from a
// place on, are written, or are read, which is reported where one of them was
// not (and the condition, or NULL, holds).
void hd_emit_begin_unwritten(hd_emit_t *e, hd_binding_t *binding,
                             LLVMTypeRef type, int64_t count);
void hd_emit_mark_written(hd_emit_t *e, const hd_place_t *place,
                          unsigned count);
void hd_emit_check_written(hd_emit_t *e, const hd_access_t *a, int kind,
                           const hd_place_t *place, unsigned count,
                           LLVMValueRef condition);

// EmitExact.c: a value, of 32 or 64 bits, without wrapping; NULL: it cannot
// wrap. Builds i32 arithmetic that is followed so.
LLVMValueRef hd_emit_exact(hd_emit_t *e, LLVMValueRef value);
LLVMValueRef hd_emit_wrapping(hd_emit_t *e, LLVMOpcode opcode, LLVMValueRef a,
                              LLVMValueRef b);
// Registers of i32 keep what their elements would be: makes room for that, each
// element being initial (NULL: nothing yet); notes that a value was loaded or
// stored, or that several elements were written by other means.
void hd_emit_begin_exact(hd_emit_t *e, hd_binding_t *binding, int64_t count,
                         LLVMValueRef initial);
void hd_emit_load_exact(hd_emit_t *e, const hd_place_t *place,
                        LLVMValueRef value);
void hd_emit_store_exact(hd_emit_t *e, const hd_place_t *place,
                         LLVMValueRef value);
void hd_emit_renew_exact(hd_emit_t *e, const hd_place_t *place, unsigned count);

#endif
