// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables: constants of the code, in global memory on the GPU, where threads
// that read different elements do not wait for one another. Elements of less
// than a byte are packed, as in every tensor.
#include "CodeGen/Emit.h"

#include "IR/Generic.h"
#include "IR/Graph/HostTensor.h"

#include <string.h>

enum { GLOBAL = 1 }; // An address space.

static size_t packed_bytes(const hd_host_tensor_t *table, unsigned bits) {
  return ((size_t)table->count * bits + 7) / 8;
}

static const char *pack(hd_emit_t *e, const hd_host_tensor_t *table,
                        unsigned bits) {
  if (bits >= 8)
    return (const char *)table->data;
  unsigned char *packed = hd_arena_alloc(&e->arena, packed_bytes(table, bits));
  hd_host_tensor_pack(table, bits, packed);
  return (const char *)packed;
}

const hd_binding_t *hd_emit_bind_table(hd_emit_t *e, const hd_var_t *var) {
  const hd_host_tensor_t *table = var->table;
  unsigned bits = hd_scalar_bits(table->type);
  if (table->type == HD_BOOL)
    bits = 8;
  LLVMValueRef bytes =
      LLVMConstStringInContext(e->context, pack(e, table, bits),
                               (unsigned)packed_bytes(table, bits), true);
  const char *name =
      hd_arena_printf(&e->arena, "%s_table_%s",
                      hd_func_identifier(&e->arena, e->kernel), var->name);
  LLVMValueRef global =
      e->host ? LLVMAddGlobal(e->llvm, LLVMTypeOf(bytes), name)
              : LLVMAddGlobalInAddressSpace(e->llvm, LLVMTypeOf(bytes), name,
                                            GLOBAL);
  LLVMSetInitializer(global, bytes);
  LLVMSetGlobalConstant(global, true);
  LLVMSetLinkage(global, LLVMInternalLinkage);
  LLVMSetAlignment(global, hd_tensor_align(var->tensor));
  hd_binding_t *binding = hd_emit_bind(e, var, global);
  binding->invariant = binding->is_table = true;
  return binding;
}

LLVMValueRef hd_emit_table_element(hd_emit_t *e, const hd_expr_t *load,
                                   LLVMValueRef offset) {
  const hd_host_tensor_t *table = load->u.var->table;
  if (!LLVMIsAConstantInt(offset) || load->type.lanes > 1)
    return NULL;
  int64_t i = LLVMConstIntGetSExtValue(offset);
  if (i < 0 || i >= table->count)
    return NULL;
  const hd_expr_t *value =
      hd_type_is_float(load->type)
          ? hd_expr_float(&e->arena, load->type, hd_host_tensor_get(table, i))
          : hd_expr_int(&e->arena, load->type,
                        hd_host_tensor_get_int(table, i));
  return hd_emit_expr(e, value);
}
