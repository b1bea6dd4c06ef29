// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of device functions: emitted in place. Parameters are bound to values,
// tensors to what the argument stands for; an early `return` branches to a
// block after the body.
#include "CodeGen/Emit.h"
#include "IR/Call.h"
#include "IR/Exits.h"

static LLVMValueRef argument_value(hd_emit_t *e, const hd_expr_t *argument) {
  return argument->kind == HD_EXPR_TENSOR ? NULL : hd_emit_expr(e, argument);
}

static void bind_tensor(hd_emit_t *e, const hd_var_t *param,
                        const hd_expr_t *argument) {
  const hd_binding_t *found = hd_emit_find(e, argument->u.var);
  if (!found) {
    hd_emit_error(e, argument->loc, HD_E0301, argument->u.var->name);
    return;
  }
  hd_binding_t source = *found; // The table may move.
  hd_binding_t *binding = hd_emit_bind(e, param, source.value);
  binding->cells = source.cells;
  binding->invariant = source.invariant;
  binding->is_table = source.is_table;
  binding->number = source.number;
  binding->written = source.written;
  binding->exact = source.exact;
}

// All values come before the first binding: an argument may hold a call of the
// same function.
static void bind_params(hd_emit_t *e, const hd_expr_t *x) {
  const hd_func_t *f = x->u.func;
  LLVMValueRef *values =
      HD_ARENA_ARRAY(&e->arena, LLVMValueRef, f->num_params + f->num_sizes + 1);
  for (uint32_t i = 0; i < f->num_params; i++)
    values[i] = argument_value(e, x->operands[i]);
  for (uint32_t i = 0; i < f->num_sizes; i++)
    values[f->num_params + i] =
        hd_emit_expr(e, hd_call_size(&e->arena, f, x->operands, i));
  for (uint32_t i = 0; i < f->num_params; i++) {
    if (values[i])
      hd_emit_bind(e, f->params[i], values[i]);
    else
      bind_tensor(e, f->params[i], x->operands[i]);
  }
  for (uint32_t i = 0; i < f->num_sizes; i++)
    hd_emit_bind(e, f->sizes[i].var, values[f->num_params + i]);
}

// Whether the body's last statement is its only return: then the value goes
// straight to the caller, and a constant stays one.
static bool returns_at_end(const hd_func_t *f) {
  if (!f->body.size || f->body.stmts[f->body.size - 1]->kind != HD_STMT_RETURN)
    return false;
  hd_block_t before = {f->body.size - 1, f->body.stmts};
  return !hd_block_holds_return(before);
}

static LLVMValueRef emit_body(hd_emit_t *e, const hd_func_t *f) {
  bool is_void = f->result.scalar == HD_VOID;
  if (!is_void && returns_at_end(f)) {
    hd_emit_block(e, (hd_block_t){f->body.size - 1, f->body.stmts});
    return hd_emit_expr(e, f->body.stmts[f->body.size - 1]->u.eval.value);
  }
  hd_emit_frame_t outer = e->frame;
  e->frame = (hd_emit_frame_t){.exit = hd_emit_new_block(e, f->name)};
  if (!is_void) {
    e->frame.result_type = hd_emit_type(e, f->result);
    if (e->host)
      e->frame.result = hd_emit_alloca(e, e->frame.result_type, 1, 16, f->name);
    else
      e->frame.result_cell = hd_cells_create(e, e->frame.result_type, 32, 1);
  }
  hd_emit_block(e, f->body);
  hd_emit_end(e, e->frame.exit);
  LLVMValueRef result = NULL;
  if (e->frame.result_cell)
    result = hd_cells_read(e, e->frame.result_cell, 0, 1, e->frame.result_type);
  else if (!is_void)
    result =
        LLVMBuildLoad2(e->builder, e->frame.result_type, e->frame.result, "");
  e->frame = outer;
  return result;
}

LLVMValueRef hd_emit_call(hd_emit_t *e, const hd_expr_t *x) {
  bind_params(e, x);
  e->calls++;
  LLVMValueRef result = emit_body(e, x->u.func);
  e->calls--;
  return result;
}
