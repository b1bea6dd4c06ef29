// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Rewrite.h"

#include "Support/Vec.h"

// What takes a variable's place.
typedef struct replacement {
  const hd_var_t *to;     // Either this
  const hd_expr_t *value; // or this.
} replacement_t;

static void map_add(hd_rewriter_t *rewriter, const hd_var_t *from,
                    const hd_var_t *to, const hd_expr_t *value) {
  replacement_t *entry = HD_ARENA_NEW(rewriter->arena, replacement_t);
  *entry = (replacement_t){to, value};
  hd_ptr_map_set(rewriter->arena, &rewriter->vars, from, entry);
}

void hd_rewriter_map(hd_rewriter_t *rewriter, const hd_var_t *old,
                     const hd_var_t *new_var) {
  map_add(rewriter, old, new_var, NULL);
}

void hd_rewriter_substitute(hd_rewriter_t *rewriter, const hd_var_t *old,
                            const hd_expr_t *value) {
  map_add(rewriter, old, NULL, value);
}

static const replacement_t *lookup(hd_rewriter_t *rewriter,
                                   const hd_var_t *var) {
  return hd_ptr_map_get(&rewriter->vars, var);
}

static const hd_var_t *map_var(hd_rewriter_t *rewriter, const hd_var_t *var) {
  const replacement_t *entry = lookup(rewriter, var);
  return entry && entry->to ? entry->to : var;
}

static const hd_expr_t *const *rewrite_exprs(hd_rewriter_t *rewriter,
                                             const hd_expr_t *const *exprs,
                                             size_t count) {
  const hd_expr_t **copy = NULL;
  for (size_t i = 0; i < count; i++) {
    const hd_expr_t *e = hd_rewrite_expr(rewriter, exprs[i]);
    if (e != exprs[i] && !copy) {
      copy = HD_ARENA_ARRAY(rewriter->arena, const hd_expr_t *, count);
      for (size_t j = 0; j < i; j++)
        copy[j] = exprs[j];
    }
    if (copy)
      copy[i] = e;
  }
  return copy ? (const hd_expr_t *const *)copy : exprs;
}

static bool has_var(const hd_expr_t *e) {
  return hd_expr_info((hd_expr_kind_t)e->kind)->payload == HD_PAYLOAD_VAR;
}

const hd_expr_t *hd_rewrite_expr(hd_rewriter_t *rewriter, const hd_expr_t *e) {
  if (!e)
    return NULL;
  const hd_expr_t *const *operands =
      rewrite_exprs(rewriter, e->operands, e->num_operands);
  const replacement_t *entry = has_var(e) ? lookup(rewriter, e->u.var) : NULL;
  if (entry && entry->value)
    return entry->value; // Already as it should be.
  if (operands != e->operands || entry) {
    hd_expr_t like = {.u = e->u, .loc = e->loc, .linear = e->linear};
    hd_type_t type = e->type;
    if (entry) {
      like.u.var = entry->to;
      type =
          hd_expr_is_access(e)
              ? hd_type_vector((hd_scalar_t)entry->to->type.scalar, type.lanes)
              : entry->to->type;
    }
    e = hd_expr_make(rewriter->arena, (hd_expr_kind_t)e->kind, type, &like,
                     operands, e->num_operands);
  }
  return rewriter->expr ? rewriter->expr(rewriter, e) : e;
}

static const hd_mapping_t *rewrite_mapping(hd_rewriter_t *rewriter,
                                           const hd_mapping_t *mapping) {
  if (!mapping)
    return NULL;
  const hd_mapping_t *left = rewrite_mapping(rewriter, mapping->left);
  const hd_mapping_t *right = rewrite_mapping(rewriter, mapping->right);
  const hd_expr_t *const *bounds =
      mapping->bounds ? rewrite_exprs(rewriter, mapping->bounds, mapping->rank)
                      : NULL;
  if (left == mapping->left && right == mapping->right &&
      bounds == mapping->bounds)
    return mapping;
  hd_mapping_t *copy = HD_ARENA_NEW(rewriter->arena, hd_mapping_t);
  *copy = *mapping;
  copy->left = left;
  copy->right = right;
  copy->bounds = bounds;
  return copy;
}

static const hd_layout_t *rewrite_layout(hd_rewriter_t *rewriter,
                                         const hd_layout_t *layout) {
  if (!layout)
    return NULL;
  hd_layout_t *copy = NULL;
  for (uint32_t i = 0; i < layout->num_items; i++) {
    const hd_layout_item_t *item = &layout->items[i];
    const hd_expr_t *const *values =
        rewrite_exprs(rewriter, item->values, item->num_values);
    if (values == item->values)
      continue;
    if (!copy) {
      size_t size =
          sizeof *layout + layout->num_items * sizeof layout->items[0];
      copy = hd_arena_alloc(rewriter->arena, size);
      memcpy(copy, layout, size);
    }
    copy->items[i].values = values;
  }
  return copy ? copy : layout;
}

// A declared variable: redirected by the callback, or where its type mentions
// variables that were replaced.
static const hd_var_t *declare(hd_rewriter_t *rewriter, const hd_var_t *var) {
  const hd_var_t *result = map_var(rewriter, var);
  if (rewriter->declare)
    result = rewriter->declare(rewriter, result);
  const hd_tensor_t *tensor = result->tensor;
  if (tensor) {
    const hd_expr_t *const *shape =
        rewrite_exprs(rewriter, tensor->shape, tensor->rank);
    const hd_layout_t *layout = rewrite_layout(rewriter, tensor->layout);
    if (shape != tensor->shape || layout != tensor->layout) {
      hd_tensor_t *type = HD_ARENA_NEW(rewriter->arena, hd_tensor_t);
      *type = *tensor;
      type->shape = shape;
      type->layout = layout;
      hd_var_t *copy = HD_ARENA_NEW(rewriter->arena, hd_var_t);
      *copy = *result;
      copy->tensor = type;
      result = copy;
    }
  }
  if (result != var)
    hd_rewriter_map(rewriter, var, result);
  return result;
}

static bool same_block(hd_block_t a, hd_block_t b) {
  return a.size == b.size && a.stmts == b.stmts;
}

// Rewrites the parts of a statement; the same pointer where none changed.
static const hd_stmt_t *rewrite_parts(hd_rewriter_t *rewriter,
                                      const hd_stmt_t *stmt) {
  hd_stmt_t new_stmt = *stmt;
  bool changed = false;
#define PART(member, value)                                                    \
  do {                                                                         \
    new_stmt.member = value;                                                   \
    changed |= new_stmt.member != stmt->member;                                \
  } while (0)
#define EXPR(member) PART(member, hd_rewrite_expr(rewriter, stmt->member))
#define BLOCK(member)                                                          \
  do {                                                                         \
    new_stmt.member = hd_rewrite_block(rewriter, stmt->member);                \
    changed |= !same_block(new_stmt.member, stmt->member);                     \
  } while (0)
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_LET:
    EXPR(u.let.value);
    PART(u.let.var, declare(rewriter, stmt->u.let.var));
    break;
  case HD_STMT_DECLARE:
    EXPR(u.declare.init);
    PART(u.declare.var, declare(rewriter, stmt->u.declare.var));
    break;
  case HD_STMT_STORE:
    PART(u.store.var, map_var(rewriter, stmt->u.store.var));
    PART(u.store.indices, rewrite_exprs(rewriter, stmt->u.store.indices,
                                        stmt->u.store.num_indices));
    EXPR(u.store.value);
    break;
  case HD_STMT_POINT:
    EXPR(u.point.place);
    EXPR(u.point.value);
    EXPR(u.point.staging);
    EXPR(u.point.barrier);
    EXPR(u.point.threads);
    break;
  case HD_STMT_FOR:
    EXPR(u.loop.first);
    EXPR(u.loop.limit);
    EXPR(u.loop.step);
    PART(u.loop.var, declare(rewriter, stmt->u.loop.var));
    BLOCK(u.loop.body);
    break;
  case HD_STMT_MAPFOR: {
    PART(u.mapfor.mapping, rewrite_mapping(rewriter, stmt->u.mapfor.mapping));
    EXPR(u.mapfor.worker);
    unsigned rank = stmt->u.mapfor.mapping->rank;
    const hd_var_t **vars =
        HD_ARENA_ARRAY(rewriter->arena, const hd_var_t *, rank);
    bool vars_changed = false;
    for (unsigned i = 0; i < rank; i++) {
      vars[i] = declare(rewriter, stmt->u.mapfor.vars[i]);
      vars_changed |= vars[i] != stmt->u.mapfor.vars[i];
    }
    if (vars_changed)
      PART(u.mapfor.vars, (const hd_var_t *const *)vars);
    BLOCK(u.mapfor.body);
    break;
  }
  case HD_STMT_WHILE:
  case HD_STMT_IF:
    EXPR(u.branch.condition);
    BLOCK(u.branch.then);
    BLOCK(u.branch.otherwise);
    break;
  case HD_STMT_ASSERT:
    EXPR(u.assertion.condition);
    break;
  case HD_STMT_EVAL:
  case HD_STMT_RETURN:
  case HD_STMT_BREAK:
  case HD_STMT_CONTINUE:
    EXPR(u.eval.value);
    break;
  case HD_STMT_LAUNCH:
    PART(u.launch.args,
         rewrite_exprs(rewriter, stmt->u.launch.args, stmt->u.launch.num_args));
    break;
  case HD_STMT_COUNT:
    break;
  }
#undef BLOCK
#undef EXPR
#undef PART
  return changed ? hd_stmt_copy(rewriter->arena, &new_stmt) : stmt;
}

void hd_stmt_list_push(hd_arena_t *arena, hd_stmt_list_t *list,
                       const hd_stmt_t *stmt) {
  hd_vec_push(arena, list, stmt);
}

void hd_rewrite_into(hd_rewriter_t *rewriter, hd_block_t block,
                     hd_stmt_list_t *out) {
  for (uint32_t i = 0; i < block.size; i++) {
    const hd_stmt_t *stmt = block.stmts[i];
    if (rewriter->enter && rewriter->enter(rewriter, stmt, out))
      continue;
    stmt = rewrite_parts(rewriter, stmt);
    if (rewriter->leave && rewriter->leave(rewriter, stmt, out))
      continue;
    hd_stmt_list_push(rewriter->arena, out, stmt);
  }
}

hd_block_t hd_rewrite_block(hd_rewriter_t *rewriter, hd_block_t block) {
  hd_stmt_list_t out = {0};
  hd_rewrite_into(rewriter, block, &out);
  bool same = out.size == block.size;
  for (uint32_t i = 0; same && i < block.size; i++)
    same = out.data[i] == block.stmts[i];
  if (same)
    return block;
  return (hd_block_t){(uint32_t)out.size, out.data};
}

static bool rewrite_array(hd_rewriter_t *rewriter, const hd_expr_t **exprs,
                          unsigned count) {
  bool changed = false;
  for (unsigned i = 0; i < count; i++) {
    const hd_expr_t *e = hd_rewrite_expr(rewriter, exprs[i]);
    changed |= e != exprs[i];
    exprs[i] = e;
  }
  return changed;
}

// A tensor map: redirected by the callback, or where its tensor or its numbers
// changed.
static const hd_var_t *declare_map(hd_rewriter_t *rewriter,
                                   const hd_var_t *var) {
  const hd_var_t *result = map_var(rewriter, var);
  if (rewriter->declare)
    result = rewriter->declare(rewriter, result);
  hd_map_t map = *result->map;
  map.tensor = map_var(rewriter, map.tensor);
  bool changed = map.tensor != result->map->tensor;
  changed |= rewrite_array(rewriter, map.box, map.num_box);
  changed |= rewrite_array(rewriter, map.lower, HD_MAP_MAX_SPATIAL);
  changed |= rewrite_array(rewriter, map.upper, HD_MAP_MAX_SPATIAL);
  changed |= rewrite_array(rewriter, map.step, HD_MAP_MAX_SPATIAL);
  if (changed) {
    hd_map_t *new_map = HD_ARENA_NEW(rewriter->arena, hd_map_t);
    *new_map = map;
    hd_var_t *copy = HD_ARENA_NEW(rewriter->arena, hd_var_t);
    *copy = *result;
    copy->map = new_map;
    result = copy;
  }
  if (result != var)
    hd_rewriter_map(rewriter, var, result);
  return result;
}

const hd_func_t *hd_rewrite_func(hd_rewriter_t *rewriter,
                                 const hd_func_t *func) {
  hd_func_t new_func = *func;
  const hd_var_t **params =
      HD_ARENA_ARRAY(rewriter->arena, const hd_var_t *, func->num_params);
  bool changed = false;
  for (uint32_t i = 0; i < func->num_params; i++) {
    params[i] = declare(rewriter, func->params[i]);
    changed |= params[i] != func->params[i];
  }
  if (changed)
    new_func.params = params;
  const hd_var_t **maps =
      HD_ARENA_ARRAY(rewriter->arena, const hd_var_t *, func->num_maps);
  for (uint32_t i = 0; i < func->num_maps; i++) {
    maps[i] = declare_map(rewriter, func->maps[i]);
    changed |= maps[i] != func->maps[i];
  }
  if (func->num_maps)
    new_func.maps = maps;
  const hd_expr_t **old_launch[] = {new_func.launch.grid, new_func.launch.block,
                                    new_func.launch.cluster};
  for (int i = 0; i < 9; i++) {
    const hd_expr_t **e = &old_launch[i / 3][i % 3];
    const hd_expr_t *rewritten = hd_rewrite_expr(rewriter, *e);
    changed |= rewritten != *e;
    *e = rewritten;
  }
  new_func.body = hd_rewrite_block(rewriter, func->body);
  if (!changed && same_block(new_func.body, func->body))
    return func;
  hd_func_t *copy = HD_ARENA_NEW(rewriter->arena, hd_func_t);
  *copy = new_func;
  return copy;
}
