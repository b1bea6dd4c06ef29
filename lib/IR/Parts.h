// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What statements are made of, as Stmts.def says: who treats a part alike
// wherever it stands needs no case for each kind of statement.
#ifndef HIDET_IR_PARTS_H
#define HIDET_IR_PARTS_H

#include "IR/Stmt.h"

typedef enum hd_part_form {
  HD_PART_END,
  HD_PART_EXPR,    // const hd_expr_t *, which may be NULL
  HD_PART_EXPRS,   // const hd_expr_t *const *
  HD_PART_MAPPING, // const hd_mapping_t *
  HD_PART_VAR,     // const hd_var_t *, declared
  HD_PART_VARS,    // const hd_var_t *const *, declared
  HD_PART_USE,     // const hd_var_t *
  HD_PART_BLOCK,   // hd_block_t
} hd_part_form_t;

typedef struct hd_part {
  uint8_t form; // hd_part_form_t
  // Where it is, and how many EXPRS are: bytes from the statement's beginning.
  uint8_t at, count;
} hd_part_t;

// In their order; ends with HD_PART_END.
const hd_part_t *hd_stmt_parts(hd_stmt_kind_t kind);

// The blocks of a statement; returns how many.
enum { HD_MAX_BLOCKS = 2 };
unsigned hd_stmt_blocks(const hd_stmt_t *stmt, hd_block_t *blocks);

// What takes the place of parts. Callbacks may be NULL: such parts stay. Each
// is called with what is there, never with NULL.
typedef struct hd_part_mapper {
  hd_arena_t *arena;
  void *argument;
  const hd_expr_t *(*expr)(void *argument, const hd_expr_t *e);
  const hd_mapping_t *(*mapping)(void *argument, const hd_mapping_t *mapping);
  const hd_var_t *(*declare)(void *argument, const hd_var_t *var);
  const hd_var_t *(*use)(void *argument, const hd_var_t *var);
  hd_block_t (*block)(void *argument, hd_block_t block);
} hd_part_mapper_t;

// Maps the parts of a statement in their order; expressions of a list; the
// bounds of all mappings that one is made of. What did not change is returned
// as it came.
const hd_stmt_t *hd_map_parts(const hd_part_mapper_t *mapper,
                              const hd_stmt_t *stmt);
const hd_expr_t *const *hd_map_exprs(const hd_part_mapper_t *mapper,
                                     const hd_expr_t *const *exprs,
                                     size_t count);
const hd_mapping_t *hd_map_bounds(const hd_part_mapper_t *mapper,
                                  const hd_mapping_t *mapping);

#endif
