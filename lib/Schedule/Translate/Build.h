// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A builder of kernels: a short vocabulary, so that the rules read like the
// kernels that they make. Statements go to the block that is open; sums and
// products of constants are folded. Everything lives in the arena.
#ifndef HIDET_SCHEDULE_TRANSLATE_BUILD_H
#define HIDET_SCHEDULE_TRANSLATE_BUILD_H

#include "IR/Module.h"
#include "IR/Rewrite.h"

// Statements in the making; the one around it.
typedef struct hd_open_block {
  hd_stmt_list_t stmts;
  struct hd_open_block *outer;
} hd_open_block_t;

typedef struct hd_builder {
  hd_context_t *context;
  hd_arena_t *arena;
  hd_loc_t loc; // Of what is made.
  hd_open_block_t *block;
  // Of the kernel being made: its tensor parameters, in order.
  HD_VEC(const hd_var_t *) params;
} hd_builder_t;

// --- Expressions ---

const hd_expr_t *hd_b_int(hd_builder_t *b, hd_scalar_t type, int64_t value);
const hd_expr_t *hd_b_i32(hd_builder_t *b, int64_t value);
// 0, of a float or an integer.
const hd_expr_t *hd_b_zero(hd_builder_t *b, hd_scalar_t type);
const hd_expr_t *hd_b_thread(hd_builder_t *b);
// Integers are folded where both are constants, and x + 0, x * 1 and the like.
const hd_expr_t *hd_b_op(hd_builder_t *b, hd_expr_kind_t op, const hd_expr_t *x,
                         const hd_expr_t *y);
// With a constant of x's type.
const hd_expr_t *hd_b_op_int(hd_builder_t *b, hd_expr_kind_t op,
                             const hd_expr_t *x, int64_t y);
const hd_expr_t *hd_b_and(hd_builder_t *b, const hd_expr_t *x,
                          const hd_expr_t *y); // x or y may be NULL: true.
// The same bits.
const hd_expr_t *hd_b_bitcast(hd_builder_t *b, hd_scalar_t type,
                              const hd_expr_t *x);
const hd_expr_t *hd_b_cast(hd_builder_t *b, hd_scalar_t type,
                           const hd_expr_t *x);
const hd_expr_t *hd_b_load(hd_builder_t *b, const hd_var_t *tensor,
                           const hd_expr_t *const *indices, unsigned count);
// The value of a register without axes.
const hd_expr_t *hd_b_get(hd_builder_t *b, const hd_var_t *cell);
// Intrinsic number row of IR/Intrinsics.def.
const hd_expr_t *hd_b_intrinsic(hd_builder_t *b, int row, hd_type_t type,
                                const hd_expr_t *const *operands,
                                unsigned count);

// --- Statements ---

void hd_b_push(hd_builder_t *b, const hd_stmt_t *stmt);
// x itself where it is a constant or a name.
const hd_expr_t *hd_b_let(hd_builder_t *b, const char *name,
                          const hd_expr_t *x);
void hd_b_store(hd_builder_t *b, const hd_var_t *tensor,
                const hd_expr_t *const *indices, unsigned count,
                const hd_expr_t *value);
void hd_b_set(hd_builder_t *b, const hd_var_t *cell, const hd_expr_t *value);
void hd_b_assert(hd_builder_t *b, const hd_expr_t *condition,
                 const char *message);
void hd_b_call(hd_builder_t *b, const hd_expr_t *call);
// An intrinsic without operands and result.
void hd_b_command(hd_builder_t *b, int row);
void hd_b_barrier(hd_builder_t *b);

// A tensor of constant shape; layout may be NULL, init too. Not a statement.
hd_var_t *hd_b_tensor(hd_builder_t *b, hd_scope_t scope, const char *name,
                      hd_scalar_t type, const int64_t *shape, unsigned rank,
                      const hd_layout_t *layout);
const hd_var_t *hd_b_shared(hd_builder_t *b, const char *name, hd_scalar_t type,
                            const int64_t *shape, unsigned rank,
                            const hd_layout_t *layout);
const hd_var_t *hd_b_register(hd_builder_t *b, const char *name,
                              hd_scalar_t type, const int64_t *shape,
                              unsigned rank, const hd_expr_t *init);

// The statement; init may be NULL.
void hd_b_declare(hd_builder_t *b, const hd_var_t *var, const hd_expr_t *init);

// What is pushed between the two belongs to the block.
void hd_b_open(hd_builder_t *b, hd_open_block_t *block);
hd_block_t hd_b_close(hd_builder_t *b);

// if condition { then } else { otherwise }; condition NULL: then as it is.
void hd_b_if(hd_builder_t *b, const hd_expr_t *condition, hd_block_t then,
             hd_block_t otherwise);
// A variable for a loop, and the loop over first .. limit - 1.
const hd_var_t *hd_b_loop_var(hd_builder_t *b, const char *name,
                              hd_scalar_t type);
void hd_b_for(hd_builder_t *b, const hd_var_t *var, const hd_expr_t *first,
              const hd_expr_t *limit, const hd_expr_t *step, int unroll,
              hd_block_t body);
// for vars in mapping on worker
void hd_b_mapfor(hd_builder_t *b, const hd_var_t *const *vars,
                 const hd_mapping_t *mapping, const hd_expr_t *worker,
                 int unroll, hd_block_t body);

// --- Kernels ---

// A tensor parameter; NULL layout is row-major.
const hd_var_t *hd_b_param(hd_builder_t *b, const char *name,
                           hd_direction_t direction, hd_scalar_t type,
                           const int64_t *shape, unsigned rank);
// A kernel of the parameters so far, which are then forgotten, and added to the
// module under a name of its own that begins with name.
hd_func_t *hd_b_kernel(hd_builder_t *b, hd_module_t *module, const char *name,
                       const int64_t grid[3], int64_t threads, hd_block_t body);
// A plan, of that name. The parameters live as long as the module.
hd_func_t *hd_b_plan(hd_module_t *module, const char *name, hd_loc_t loc,
                     const hd_var_t *const *params, size_t num_params,
                     const hd_stmt_list_t *body);

#endif
