// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is written as one thing and stands for several: a register tensor that
// is stored to as a whole, a vector that can be stored to, a lane by an index
// that a loop gives.
//
//   t = x                    for k in 0..64 unroll { t@[k] = x }
//   register v: f32x4 = w    register v: f32[4]
//                            v[0 +: 4] = w
//   w[i]                     register w: f32[4]
//                            w[0 +: 4] = w, then w[i]
#include "IR/Text/ParserState.h"

static const hd_expr_t *zero(hd_parser_t *p) {
  return hd_expr_i32(p->arena, 0);
}

// var[0 +: lanes]
static const hd_expr_t *all_lanes(hd_parser_t *p, const hd_var_t *var,
                                  unsigned lanes, hd_loc_t loc) {
  const hd_expr_t *first = zero(p);
  return hd_at_loc(
      p, hd_expr_access(p->arena, HD_EXPR_LOAD, var, lanes, &first, 1), loc);
}

static const hd_stmt_t *store_lanes(hd_parser_t *p, const hd_var_t *var,
                                    const hd_expr_t *value, hd_loc_t loc) {
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_STORE, loc);
  const hd_expr_t *place = all_lanes(p, var, value->type.lanes, loc);
  stmt->u.store.var = var;
  stmt->u.store.num_indices = 1;
  stmt->u.store.indices = place->operands;
  stmt->u.store.value = value;
  return stmt;
}

static const hd_stmt_t *declare(hd_parser_t *p, const hd_var_t *var) {
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_DECLARE, var->loc);
  stmt->u.declare.var = var;
  return stmt;
}

// register name: T[lanes]
static hd_var_t *make_lanes(hd_parser_t *p, const char *name, hd_type_t type,
                            hd_loc_t loc) {
  hd_tensor_t *tensor = HD_ARENA_NEW(p->arena, hd_tensor_t);
  const hd_expr_t **shape = HD_ARENA_NEW(p->arena, const hd_expr_t *);
  *shape = hd_expr_i32(p->arena, type.lanes);
  *tensor = (hd_tensor_t){.scope = HD_SCOPE_REGISTER,
                          .element = hd_type_lane(type),
                          .rank = 1,
                          .shape = shape};
  return hd_var_make_tensor(p->arena, name, tensor, loc);
}

// --- Vectors that can be stored to ---

const hd_stmt_t *hd_parse_vector(hd_parser_t *p, const char *name,
                                 hd_type_t type, hd_loc_t loc) {
  const hd_var_t *var = make_lanes(p, name, type, loc);
  const hd_expr_t *init = NULL;
  bool ok = true;
  if (hd_accept(p, "=")) {
    init = hd_parse_as(p, type);
    ok = init != NULL;
  }
  hd_declare(p, var);
  hd_ptr_map_set(p->arena, &p->vectors, var, var);
  if (!ok || !init)
    return ok ? declare(p, var) : NULL;
  hd_stmt_list_push(p->arena, &p->ahead, declare(p, var));
  return store_lanes(p, var, init, loc);
}

bool hd_is_vector(const hd_parser_t *p, const hd_var_t *var) {
  return hd_ptr_map_get(&p->vectors, var) != NULL;
}

const hd_expr_t *hd_vector_value(hd_parser_t *p, const hd_var_t *var,
                                 hd_loc_t loc) {
  int64_t lanes = var->tensor->shape[0]->u.i;
  return all_lanes(p, var, (unsigned)lanes, loc);
}

// --- Lanes by an index ---

// The vector's value never changes, so a copy serves for as long as the name
// that it has, which nobody can write, is visible.
const hd_expr_t *hd_lane_at(hd_parser_t *p, const hd_expr_t *vector,
                            const hd_expr_t *index, hd_loc_t loc) {
  const hd_var_t *var = vector->u.var;
  const char *hidden = hd_arena_printf(p->arena, "%s[]", var->name);
  const hd_var_t *copy = hd_visible(p, hidden);
  if (!copy) {
    copy = make_lanes(p, var->name, vector->type, loc);
    hd_visible_push(&p->visible, copy, hidden);
    hd_stmt_list_push(p->arena, &p->ahead, declare(p, copy));
    hd_stmt_list_push(p->arena, &p->ahead, store_lanes(p, copy, vector, loc));
  }
  return hd_at_loc(
      p, hd_expr_access(p->arena, HD_EXPR_LOAD, copy, 1, &index, 1), loc);
}

// --- Whole tensors ---

// A name for a value that is computed, so that it is computed once.
static const hd_expr_t *name_value(hd_parser_t *p, const hd_expr_t *value) {
  if (hd_expr_is_trivial(value))
    return value;
  hd_stmt_t *let = hd_stmt_make(p->arena, HD_STMT_LET, value->loc);
  let->u.let.var =
      hd_var_make(p->arena, "value", HD_VAR_LET, value->type, value->loc);
  let->u.let.value = value;
  hd_stmt_list_push(p->arena, &p->ahead, let);
  return hd_at_loc(p, hd_expr_var(p->arena, let->u.let.var), value->loc);
}

const hd_stmt_t *hd_parse_fill(hd_parser_t *p, const hd_var_t *var,
                               hd_loc_t loc) {
  const hd_tensor_t *tensor = var->tensor;
  int64_t count;
  if (tensor->scope != HD_SCOPE_REGISTER) {
    hd_error(p->diags, loc, HD_E0209, var->name,
             "all at once: a loop over a mapping says which thread stores "
             "which element");
    return NULL;
  }
  if (!hd_expect(p, "="))
    return NULL;
  const hd_expr_t *value = hd_parse_as(p, tensor->element);
  if (!value)
    return NULL;
  if (!hd_tensor_storage_const(tensor, &count) || count > INT32_MAX) {
    hd_error(p->diags, loc, HD_E0305, var->name);
    return NULL;
  }
  value = name_value(p, value);
  hd_var_t *at = hd_var_make(p->arena, "k", HD_VAR_LOOP, hd_type(HD_I32), loc);
  const hd_expr_t **index = HD_ARENA_NEW(p->arena, const hd_expr_t *);
  *index = hd_expr_var(p->arena, at);
  hd_stmt_t *store = hd_stmt_make(p->arena, HD_STMT_STORE, loc);
  store->u.store.var = var;
  store->u.store.linear = true;
  store->u.store.num_indices = 1;
  store->u.store.indices = index;
  store->u.store.value = value;
  const hd_stmt_t *body = store;
  hd_stmt_t *loop = hd_stmt_make(p->arena, HD_STMT_FOR, loc);
  loop->u.loop.var = at;
  loop->u.loop.first = zero(p);
  loop->u.loop.limit = hd_expr_i32(p->arena, count);
  loop->u.loop.unroll = HD_UNROLL_FULL;
  loop->u.loop.body = hd_block_make(p->arena, &body, 1);
  return loop;
}
