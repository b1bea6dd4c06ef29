// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conditional accesses of the GPU as predicated instructions, without branches:
//
//   inside ? a@[x] : 0            mov v, 0;  @p ld.global.nc v, [a + x];
//   if inside { c@[x] = v }       @p st.global [c + x], v;
//
// So several of them are under way at once, and LLVM has one block to work on
// in place of two or three for each. The load is a pure function where what the
// tensor holds does not change, and where the predicate is false nothing is
// read. Where it may change (the launch before may write it until this one has
// waited) it has effects for LLVM, and stays in its place among stores,
// barriers and other loads; it is a weak load, by which nobody polls. As a
// branch it would come to registers of its own, that are moved under the same
// predicate: ptxas has seven of these, so that every load would be waited for
// before a few others are asked for.
#include "CodeGen/EmitAccess.h"

#include <stdio.h>
#include <string.h>

#define B e->builder

enum { MAX_NODES = 96, MAX_TEXT = 256, MAX_STORES = 8 };

static bool is_global(const hd_var_t *var) {
  return var->tensor->scope == HD_SCOPE_GLOBAL;
}

// Whether a type's registers are what its memory holds.
static bool is_plain(hd_type_t type) {
  unsigned bits = hd_scalar_bits((hd_scalar_t)type.scalar) * type.lanes;
  return !hd_type_is_bool(type) &&
         hd_scalar_bits((hd_scalar_t)type.scalar) >= 8 && bits <= 128 &&
         (bits & (bits - 1)) == 0;
}

static bool divides_by_number(const hd_expr_t *x) {
  const hd_expr_t *divisor = x->operands[1];
  return hd_type_is_integer(x->type) && hd_expr_is_const(divisor) &&
         divisor->u.i != 0 && divisor->u.i != -1;
}

// Whether an expression may be evaluated where the program would not: it reads
// no memory but registers and divides by numbers alone.
static bool is_harmless(const hd_expr_t *x, unsigned *nodes) {
  if ((*nodes)++ == MAX_NODES)
    return false;
  switch ((hd_expr_kind_t)x->kind) {
  case HD_EXPR_LOAD:
    if (x->u.var->tensor->scope != HD_SCOPE_REGISTER)
      return false;
    break;
  case HD_EXPR_LOADELSE:
  case HD_EXPR_REF:
  case HD_EXPR_TENSOR:
  case HD_EXPR_CALL:
  case HD_EXPR_INTRINSIC:
    return false;
  case HD_EXPR_DIV:
  case HD_EXPR_MOD:
    if (!divides_by_number(x))
      return false;
    break;
  default:
    break;
  }
  for (uint32_t i = 0; i < x->num_operands; i++)
    if (!is_harmless(x->operands[i], nodes))
      return false;
  return true;
}

static bool is_bytes(hd_type_t type) {
  return hd_scalar_bits((hd_scalar_t)type.scalar) == 8 && type.lanes > 1;
}

bool hd_emit_is_predicable_load(hd_emit_t *e, const hd_expr_t *load,
                                const hd_expr_t *otherwise) {
  unsigned nodes = 0;
  if (e->host || load->kind != HD_EXPR_LOAD || !load->linear ||
      !is_global(load->u.var) || !is_plain(load->type))
    return false;
  const hd_binding_t *binding = hd_emit_find(e, load->u.var);
  return binding && is_harmless(load->operands[0], &nodes) &&
         is_harmless(otherwise, &nodes);
}

// ".v4.b32 {$0, $1, $2, $3}", from register first on.
static int list(char *text, size_t size, hd_type_t type, unsigned first) {
  unsigned count = hd_emit_asm_count(type);
  int n = 0;
  n += snprintf(text, size, count > 1 ? ".v%u.b%u {" : "%.0u.b%u ",
                count > 1 ? count : 0, hd_emit_asm_bits(type));
  for (unsigned i = 0; i < count; i++)
    n +=
        snprintf(text + n, size - (size_t)n, "%s$%u", i ? ", " : "", first + i);
  n += snprintf(text + n, size - (size_t)n, "%s", count > 1 ? "}" : "");
  return n;
}

// "+16", or nothing. PTX has no "-16" behind a register, but "+-16".
static const char *displacement(hd_emit_t *e, const hd_place_t *place) {
  return place->displacement ? hd_arena_printf(&e->arena, "+%lld",
                                               (long long)place->displacement)
                             : "";
}

LLVMValueRef hd_emit_predicated_load(hd_emit_t *e, LLVMValueRef condition,
                                     const hd_expr_t *load,
                                     const hd_expr_t *otherwise) {
  hd_type_t type = load->type;
  hd_place_t place = hd_emit_place(e, load, 0);
  LLVMValueRef value = hd_emit_expr(e, otherwise);
  LLVMValueRef args[HD_EMIT_MAX_REGISTERS];
  unsigned count = hd_emit_asm_count(type);
  hd_emit_take_apart(e, value, type, args);
  args[count] = condition;
  args[count + 1] = place.pointer;
  LLVMTypeRef one = hd_emit_asm_type(e, type), all[HD_EMIT_MAX_REGISTERS];
  char code[MAX_TEXT], constraints[MAX_TEXT] = "";
  size_t used = 0;
  for (unsigned i = 0; i < count; i++) {
    all[i] = one;
    used += (size_t)snprintf(constraints + used, MAX_TEXT - used, "=%s,",
                             hd_emit_constraint(e, one));
  }
  for (unsigned i = 0; i < count; i++)
    used += (size_t)snprintf(constraints + used, MAX_TEXT - used, "%u,", i);
  // What changes is read where the text says.
  bool is_pure = hd_emit_find(e, load->u.var)->invariant;
  snprintf(constraints + used, MAX_TEXT - used, "b,l%s",
           is_pure ? "" : ",~{memory}");
  // Operands: results, what they are tied to, the predicate, the address.
  int n = snprintf(code, MAX_TEXT, "@$%u ld.global%s", 2 * count,
                   is_pure ? ".nc" : "");
  n += list(code + n, MAX_TEXT - (size_t)n, type, 0);
  snprintf(code + n, MAX_TEXT - (size_t)n, ", [$%u%s];", 2 * count + 1,
           displacement(e, &place));
  LLVMTypeRef result =
      count == 1 ? one : LLVMStructTypeInContext(e->context, all, count, false);
  LLVMValueRef loaded =
      hd_emit_ptx(e, code, constraints, result, args, count + 2, !is_pure);
  LLVMValueRef registers[HD_EMIT_MAX_REGISTERS];
  for (unsigned i = 0; i < count; i++)
    registers[i] =
        count == 1 ? loaded : LLVMBuildExtractValue(B, loaded, i, "");
  LLVMValueRef all_of_it = hd_emit_put_together(e, registers, type);
  if (count == 1 && is_bytes(type))
    hd_ptr_map_set(&e->arena, &e->packed, all_of_it, loaded);
  return all_of_it;
}

static bool is_predicable_store(const hd_stmt_t *stmt, unsigned *nodes) {
  return stmt->u.store.linear && is_global(stmt->u.store.var) &&
         is_plain(stmt->u.store.value->type) &&
         is_harmless(stmt->u.store.indices[0], nodes) &&
         is_harmless(stmt->u.store.value, nodes);
}

bool hd_emit_is_predicable_block(const hd_emit_t *e, hd_block_t block) {
  unsigned nodes = 0, stores = 0;
  for (uint32_t i = 0; !e->host && i < block.size; i++) {
    const hd_stmt_t *stmt = block.stmts[i];
    bool ok = stmt->kind == HD_STMT_LET ? is_harmless(stmt->u.let.value, &nodes)
                                        : stmt->kind == HD_STMT_STORE &&
                                              is_predicable_store(stmt, &nodes);
    stores += stmt->kind == HD_STMT_STORE;
    if (!ok || stores > MAX_STORES)
      return false;
  }
  return !e->host && block.size > 0;
}

static void emit_store(hd_emit_t *e, LLVMValueRef condition,
                       const hd_stmt_t *stmt) {
  hd_type_t type = stmt->u.store.value->type;
  LLVMValueRef value = hd_emit_expr(e, stmt->u.store.value);
  const hd_expr_t *ref =
      hd_expr_access_linear(&e->arena, HD_EXPR_REF, stmt->u.store.var,
                            type.lanes, stmt->u.store.indices[0]);
  hd_place_t place = hd_emit_place(e, ref, 0);
  if (e->failed)
    return;
  unsigned count = hd_emit_asm_count(type);
  LLVMValueRef args[HD_EMIT_MAX_REGISTERS] = {condition, place.pointer};
  hd_emit_take_apart(e, value, type, args + 2);
  char code[MAX_TEXT], constraints[MAX_TEXT] = "b,l";
  size_t used = strlen(constraints);
  for (unsigned i = 0; i < count; i++)
    used += (size_t)snprintf(constraints + used, MAX_TEXT - used, ",%s",
                             hd_emit_constraint(e, LLVMTypeOf(args[2 + i])));
  snprintf(constraints + used, MAX_TEXT - used, ",~{memory}");
  char registers[MAX_TEXT];
  int n = list(registers, MAX_TEXT, type, 2);
  // The type stands before the address, the registers after it.
  char *space = memchr(registers, ' ', (size_t)n);
  snprintf(code, MAX_TEXT, "@$0 st.global%.*s [$1%s],%s;",
           (int)(space - registers), registers, displacement(e, &place), space);
  hd_emit_ptx(e, code, constraints, e->void_, args, count + 2, true);
}

void hd_emit_predicated_block(hd_emit_t *e, LLVMValueRef condition,
                              hd_block_t block) {
  for (uint32_t i = 0; i < block.size; i++) {
    const hd_stmt_t *stmt = block.stmts[i];
    if (stmt->kind == HD_STMT_LET) {
      LLVMValueRef value = hd_emit_expr(e, stmt->u.let.value);
      hd_emit_bind(e, stmt->u.let.var, value);
    } else {
      emit_store(e, condition, stmt);
    }
  }
}
