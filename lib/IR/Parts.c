// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Parts.h"

#include <string.h>

const hd_part_t *hd_stmt_parts(hd_stmt_kind_t kind) {
#define AT(member) offsetof(hd_stmt_t, u.member)
#define EXPR(member) {HD_PART_EXPR, AT(member), 0},
#define EXPRS(member, count) {HD_PART_EXPRS, AT(member), AT(count)},
#define MAPPING(member) {HD_PART_MAPPING, AT(member), 0},
#define VAR(member) {HD_PART_VAR, AT(member), 0},
#define VARS(member) {HD_PART_VARS, AT(member), 0},
#define USE(member) {HD_PART_USE, AT(member), 0},
#define BLOCK(member) {HD_PART_BLOCK, AT(member), 0},
#define HD_STMT(name, text, parts)                                             \
  [HD_STMT_##name] = {parts{HD_PART_END, 0, 0}},
  static const hd_part_t parts[HD_STMT_COUNT][7] = {
#include "IR/Stmts.def"
  };
#undef HD_STMT
#undef BLOCK
#undef USE
#undef VARS
#undef VAR
#undef MAPPING
#undef EXPRS
#undef EXPR
#undef AT
  return parts[kind];
}

unsigned hd_stmt_blocks(const hd_stmt_t *stmt, hd_block_t *blocks) {
  unsigned count = 0;
  for (const hd_part_t *part = hd_stmt_parts((hd_stmt_kind_t)stmt->kind);
       part->form; part++)
    if (part->form == HD_PART_BLOCK)
      memcpy(&blocks[count++], (const char *)stmt + part->at, sizeof *blocks);
  return count;
}

const hd_expr_t *const *hd_map_exprs(const hd_part_mapper_t *mapper,
                                     const hd_expr_t *const *exprs,
                                     size_t count) {
  const hd_expr_t **copy = NULL;
  for (size_t i = 0; i < count; i++) {
    const hd_expr_t *e =
        exprs[i] ? mapper->expr(mapper->argument, exprs[i]) : NULL;
    if (e != exprs[i] && !copy) {
      copy = HD_ARENA_ARRAY(mapper->arena, const hd_expr_t *, count);
      for (size_t j = 0; j < i; j++)
        copy[j] = exprs[j];
    }
    if (copy)
      copy[i] = e;
  }
  return copy ? (const hd_expr_t *const *)copy : exprs;
}

const hd_mapping_t *hd_map_bounds(const hd_part_mapper_t *mapper,
                                  const hd_mapping_t *mapping) {
  if (!mapping)
    return NULL;
  const hd_mapping_t *left = hd_map_bounds(mapper, mapping->left);
  const hd_mapping_t *right = hd_map_bounds(mapper, mapping->right);
  const hd_expr_t *const *bounds =
      mapping->bounds ? hd_map_exprs(mapper, mapping->bounds, mapping->rank)
                      : NULL;
  if (left == mapping->left && right == mapping->right &&
      bounds == mapping->bounds)
    return mapping;
  hd_mapping_t *copy = HD_ARENA_COPY(mapper->arena, hd_mapping_t, mapping);
  copy->left = left;
  copy->right = right;
  copy->bounds = bounds;
  return copy;
}

static const hd_var_t *const *map_vars(const hd_part_mapper_t *mapper,
                                       const hd_var_t *const *vars,
                                       unsigned count) {
  const hd_var_t **copy =
      HD_ARENA_ARRAY(mapper->arena, const hd_var_t *, count);
  bool changed = false;
  for (unsigned i = 0; i < count; i++) {
    copy[i] = mapper->declare(mapper->argument, vars[i]);
    changed |= copy[i] != vars[i];
  }
  return changed ? (const hd_var_t *const *)copy : vars;
}

static void map_part(const hd_part_mapper_t *mapper, const hd_part_t *part,
                     hd_stmt_t *stmt) {
  void *at = (char *)stmt + part->at;
  switch ((hd_part_form_t)part->form) {
  case HD_PART_EXPR: {
    const hd_expr_t **e = at;
    if (mapper->expr && *e)
      *e = mapper->expr(mapper->argument, *e);
    return;
  }
  case HD_PART_EXPRS: {
    const hd_expr_t *const **exprs = at;
    void *count = (char *)stmt + part->count;
    if (mapper->expr)
      *exprs = hd_map_exprs(mapper, *exprs, *(uint32_t *)count);
    return;
  }
  case HD_PART_MAPPING: {
    const hd_mapping_t **mapping = at;
    if (mapper->mapping)
      *mapping = mapper->mapping(mapper->argument, *mapping);
    return;
  }
  case HD_PART_VAR: {
    const hd_var_t **var = at;
    if (mapper->declare)
      *var = mapper->declare(mapper->argument, *var);
    return;
  }
  case HD_PART_VARS: {
    const hd_var_t *const **vars = at;
    if (mapper->declare)
      *vars = map_vars(mapper, *vars, stmt->u.mapfor.mapping->rank);
    return;
  }
  case HD_PART_USE: {
    const hd_var_t **var = at;
    if (mapper->use)
      *var = mapper->use(mapper->argument, *var);
    return;
  }
  case HD_PART_BLOCK: {
    hd_block_t *block = at;
    if (mapper->block)
      *block = mapper->block(mapper->argument, *block);
    return;
  }
  case HD_PART_END:
    return;
  }
}

const hd_stmt_t *hd_map_parts(const hd_part_mapper_t *mapper,
                              const hd_stmt_t *stmt) {
  hd_stmt_t copy = *stmt;
  const hd_part_t *part = hd_stmt_parts((hd_stmt_kind_t)stmt->kind);
  for (; part->form; part++)
    map_part(mapper, part, &copy);
  bool same = memcmp(&copy, stmt, sizeof copy) == 0;
  return same ? stmt : hd_stmt_copy(mapper->arena, &copy);
}
