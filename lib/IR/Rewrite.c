// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Rewrite.h"

#include "IR/Parts.h"
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

const hd_var_t *hd_rewriter_copy_var(hd_rewriter_t *rewriter,
                                     const hd_var_t *var) {
  hd_var_t *copy = HD_ARENA_COPY(rewriter->arena, hd_var_t, var);
  return copy;
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

static const hd_expr_t *map_expr(void *argument, const hd_expr_t *e) {
  return hd_rewrite_expr(argument, e);
}

static const hd_expr_t *const *rewrite_exprs(hd_rewriter_t *rewriter,
                                             const hd_expr_t *const *exprs,
                                             size_t count) {
  const hd_part_mapper_t mapper = {
      .arena = rewriter->arena, .argument = rewriter, .expr = map_expr};
  return hd_map_exprs(&mapper, exprs, count);
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

const hd_tensor_t *hd_rewrite_tensor(hd_rewriter_t *rewriter,
                                     const hd_tensor_t *tensor) {
  const hd_expr_t *const *shape =
      rewrite_exprs(rewriter, tensor->shape, tensor->rank);
  const hd_layout_t *layout = rewrite_layout(rewriter, tensor->layout);
  if (shape == tensor->shape && layout == tensor->layout)
    return tensor;
  hd_tensor_t *copy = HD_ARENA_COPY(rewriter->arena, hd_tensor_t, tensor);
  copy->shape = shape;
  copy->layout = layout;
  return copy;
}

// A declared variable: redirected by the callback, or where its type mentions
// variables that were replaced.
static const hd_var_t *declare(hd_rewriter_t *rewriter, const hd_var_t *var) {
  const hd_var_t *result = map_var(rewriter, var);
  if (rewriter->declare)
    result = rewriter->declare(rewriter, result);
  const hd_tensor_t *tensor =
      result->tensor ? hd_rewrite_tensor(rewriter, result->tensor) : NULL;
  if (tensor != result->tensor) {
    hd_var_t *copy = HD_ARENA_COPY(rewriter->arena, hd_var_t, result);
    copy->tensor = tensor;
    result = copy;
  }
  if (result != var)
    hd_rewriter_map(rewriter, var, result);
  return result;
}

static const hd_mapping_t *map_mapping(void *argument,
                                       const hd_mapping_t *mapping) {
  hd_rewriter_t *rewriter = argument;
  const hd_part_mapper_t mapper = {
      .arena = rewriter->arena, .argument = rewriter, .expr = map_expr};
  return hd_map_bounds(&mapper, mapping);
}

static const hd_var_t *map_declared(void *argument, const hd_var_t *var) {
  return declare(argument, var);
}

static const hd_var_t *map_used(void *argument, const hd_var_t *var) {
  return map_var(argument, var);
}

static hd_block_t map_block(void *argument, hd_block_t block) {
  return hd_rewrite_block(argument, block);
}

static const hd_stmt_t *rewrite_parts(hd_rewriter_t *rewriter,
                                      const hd_stmt_t *stmt) {
  const hd_part_mapper_t mapper = {.arena = rewriter->arena,
                                   .argument = rewriter,
                                   .expr = map_expr,
                                   .mapping = map_mapping,
                                   .declare = map_declared,
                                   .use = map_used,
                                   .block = map_block};
  return hd_map_parts(&mapper, stmt);
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
    hd_var_t *copy = HD_ARENA_COPY(rewriter->arena, hd_var_t, result);
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
  hd_func_size_t *sizes =
      HD_ARENA_ARRAY(rewriter->arena, hd_func_size_t, func->num_sizes);
  for (uint32_t i = 0; i < func->num_sizes; i++) {
    sizes[i] = func->sizes[i];
    sizes[i].var = declare(rewriter, func->sizes[i].var);
    changed |= sizes[i].var != func->sizes[i].var;
  }
  if (changed)
    new_func.sizes = sizes;
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
  if (!changed && hd_block_is(new_func.body, func->body))
    return func;
  hd_func_t *copy = HD_ARENA_NEW(rewriter->arena, hd_func_t);
  *copy = new_func;
  return copy;
}
