// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where each shared tensor of a kernel lies. Tensors follow one another in
// order of declaration, each aligned as it asks for:
//
//   shared a: f16[64, 32]          ->  a at 0
//   shared b: f32[n]               ->  b at 4096
//   shared c: f32[8]               ->  c at align(4096 + 4 n, 16)
//   shared d: f32[9000] overlay(0) ->  d at 0; what follows is behind the
//                                      furthest end of them all
#include "IR/SharedPlan.h"
#include "IR/Rewrite.h"

typedef HD_VEC(const hd_var_t *) tensors_t;

typedef struct collect {
  hd_arena_t *arena;
  tensors_t tensors;
} collect_t;

static bool collect(void *argument, const hd_stmt_t *stmt) {
  collect_t *c = argument;
  if (stmt->kind == HD_STMT_DECLARE &&
      stmt->u.declare.var->tensor->scope == HD_SCOPE_SHARED)
    hd_vec_push(c->arena, &c->tensors, stmt->u.declare.var);
  return true;
}

static const hd_expr_t *constant(hd_arena_t *arena, int64_t value) {
  return hd_expr_int(arena, hd_type(HD_I64), value);
}

static const hd_expr_t *binary(hd_arena_t *arena, hd_expr_kind_t kind,
                               const hd_expr_t *a, const hd_expr_t *b) {
  const hd_expr_t *e = hd_expr_binary(arena, kind, a, b);
  const hd_expr_t *folded = hd_expr_fold(arena, e);
  return folded ? folded : e;
}

static const hd_expr_t *round_up(hd_arena_t *arena, const hd_expr_t *offset,
                                 int64_t align) {
  offset = binary(arena, HD_EXPR_ADD, offset, constant(arena, align - 1));
  return binary(arena, HD_EXPR_BITAND, offset, constant(arena, -align));
}

static const hd_expr_t *bytes(hd_arena_t *arena, const hd_tensor_t *tensor) {
  unsigned bits = hd_type_bits(tensor->element);
  int64_t elements;
  if (hd_tensor_storage_const(tensor, &elements))
    return constant(arena, elements / 8 * bits + (elements % 8 * bits + 7) / 8);
  const hd_expr_t *storage = hd_tensor_storage(arena, tensor);
  if (storage->type.scalar != HD_I64)
    storage = hd_expr_cast(arena, hd_type(HD_I64), storage);
  storage = binary(arena, HD_EXPR_MUL, storage, constant(arena, bits));
  storage = binary(arena, HD_EXPR_ADD, storage, constant(arena, 7));
  return binary(arena, HD_EXPR_DIV, storage, constant(arena, 8));
}

const hd_shared_plan_t *hd_shared_plan(hd_arena_t *arena,
                                       const hd_func_t *kernel) {
  collect_t c = {.arena = arena};
  hd_walk_block(kernel->body, collect, NULL, &c);
  hd_shared_plan_t *plan = HD_ARENA_NEW(arena, hd_shared_plan_t);
  const hd_expr_t **offsets =
      HD_ARENA_ARRAY(arena, const hd_expr_t *, c.tensors.size + 1);
  const hd_expr_t *end = constant(arena, 0);
  for (size_t i = 0; i < c.tensors.size; i++) {
    const hd_tensor_t *tensor = c.tensors.data[i]->tensor;
    offsets[i] = tensor->is_overlay
                     ? constant(arena, tensor->overlay)
                     : round_up(arena, end, hd_tensor_align(tensor));
    const hd_expr_t *last =
        binary(arena, HD_EXPR_ADD, offsets[i], bytes(arena, tensor));
    end = tensor->is_overlay ? binary(arena, HD_EXPR_MAX, end, last) : last;
  }
  plan->num_tensors = (uint32_t)c.tensors.size;
  plan->tensors = c.tensors.data;
  plan->offsets = offsets;
  plan->size = end;
  return plan;
}
