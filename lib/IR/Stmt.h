// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statements. Immutable, in the module's arena, like expressions.
#ifndef HIDET_IR_STMT_H
#define HIDET_IR_STMT_H

#include "IR/Mapping.h"

typedef struct hd_stmt hd_stmt_t;

typedef enum hd_stmt_kind {
#define HD_STMT(name, text, parts) HD_STMT_##name,
#include "IR/Stmts.def"
#undef HD_STMT
  HD_STMT_COUNT
} hd_stmt_kind_t;

typedef struct hd_block {
  uint32_t size;
  const hd_stmt_t *const *stmts;
} hd_block_t;
static inline bool hd_block_is(hd_block_t a, hd_block_t b) {
  return a.size == b.size && a.stmts == b.stmts;
}

// Where a scheduled kernel may be fused with its neighbours. A store whose
// physical form is chosen after fusion, by the pass lower-points.
typedef enum hd_point {
  HD_POINT_LOAD,     // From global memory, to shared memory or a register.
  HD_POINT_REGISTER, // To a register.
  HD_POINT_YIELD,    // A result, to global memory.
  HD_POINT_EXPECT,   // Nothing: here may be read what its yield will read.
  HD_POINT_ROWS, // Elements of a row, to global memory: what a task makes of
                 // a row takes its place.
  HD_POINT_COUNT
} hd_point_t;

// Who has a row of a ROWS point, the fastest first.
typedef enum hd_across {
  HD_ACROSS_LANE,    // Neighbouring lanes of a warp,
  HD_ACROSS_WARP,    // and neighbouring warps of them.
  HD_ACROSS_THREAD,  // Threads of the block, as far apart as it has rows.
  HD_ACROSS_CLUSTER, // Blocks of a cluster.
  HD_ACROSS_GRID,    // Neighbouring blocks of the grid.
  HD_ACROSS_COUNT
} hd_across_t;

const char *hd_point_name(hd_point_t point);
// What stands in place of an EXPECT's value: a 1, which every type has.
const hd_expr_t *hd_expect_value(hd_arena_t *arena, hd_type_t type);
const char *hd_across_name(hd_across_t across);

// How often a loop's body is repeated in the code: 0: as the compiler likes;
// HD_UNROLL_FULL: once for each iteration, its variable a constant; n > 1: n
// copies an iteration; 1: never.
enum { HD_UNROLL_FULL = -1 };

struct hd_stmt {
  uint8_t kind; // hd_stmt_kind_t
  hd_loc_t loc;
  union {
    struct { // let var = value
      const hd_var_t *var;
      const hd_expr_t *value;
    } let;
    struct { // shared | register | workspace var: T[..] [= init for every
             // element]; view var: T[..] = tensor@[offset]
      const hd_var_t *var;
      const hd_expr_t *init; // NULL: uninitialized. REF: a view.
    } declare;
    struct { // var[indices] = value; var[indices +: lanes] = value
      const hd_var_t *var;
      bool linear; // One index, an offset into the storage: var@[x] = value
      uint32_t num_indices;
      const hd_expr_t *const *indices;
      const hd_expr_t *value; // Its lanes settle the width of the store.
    } store;
    // load | register | yield place <- value
    //   [in early] [across lane(n)]
    //   [through staging [buffers(n)] [sync(barrier, threads)]]
    // expect place in early
    // rows place <- value [across lane(n), ...]
    struct {
      uint8_t kind;             // hd_point_t
      uint8_t buffers;          // Of staging, in turns; at least 1.
      const hd_expr_t *place;   // REF
      const hd_expr_t *value;   // A scalar; of EXPECT none.
      const hd_expr_t *early;   // EXPECT, YIELD: a REF in registers, or NULL.
      const hd_expr_t *staging; // YIELD: a REF in shared memory, or NULL.
      const hd_expr_t *barrier; // NULL: that of the whole block.
      const hd_expr_t *threads; // That meet at it; NULL where barrier is.
      uint16_t
          across[HD_ACROSS_COUNT]; // ROWS, YIELD: how many; 0: not named, one.
    } point;
    struct { // for var in first..limit [step step] [unroll]
      const hd_var_t *var;
      const hd_expr_t *first, *limit, *step; // step: NULL is 1, else positive
      int32_t unroll;
      hd_block_t body;
    } loop;
    struct {                       // for vars in mapping [on worker] [unroll]
      const hd_var_t *const *vars; // mapping->rank of them
      const hd_mapping_t *mapping;
      const hd_expr_t *worker; // NULL where the mapping has one worker
      int32_t unroll;
      hd_block_t body;
    } mapfor;
    struct { // if and while
      const hd_expr_t *condition;
      hd_block_t then, otherwise; // while has then alone
    } branch;
    struct {
      const hd_expr_t *condition;
      const char *message; // May be NULL.
    } assertion;
    struct { // a call for its effect; return (value NULL where nothing is
             // returned), break and continue (value NULL)
      const hd_expr_t *value;
    } eval;
    struct { // printf(format, args); see IR/Format.h
      const char *format;
      uint32_t num_args;
      const hd_expr_t *const *args;
    } print;
    struct { // in a plan: launch kernel(arguments); scalars and TENSORs
      const hd_func_t *kernel;
      bool programmatic; // May begin before the launch before it has ended.
      uint32_t num_args;
      const hd_expr_t *const *args;
    } launch;
  } u;
};

// A node with kind, place and payload of like, to be filled in; the caller
// owns it until it is part of a block.
hd_stmt_t *hd_stmt_make(hd_arena_t *arena, hd_stmt_kind_t kind, hd_loc_t loc);
hd_stmt_t *hd_stmt_copy(hd_arena_t *arena, const hd_stmt_t *like);
// A declaration of what is a part of another tensor.
static inline bool hd_stmt_is_view(const hd_stmt_t *stmt) {
  return stmt->kind == HD_STMT_DECLARE && stmt->u.declare.init &&
         stmt->u.declare.init->kind == HD_EXPR_REF;
}
const char *hd_stmt_kind_text(hd_stmt_kind_t kind);

hd_block_t hd_block_make(hd_arena_t *arena, const hd_stmt_t *const *stmts,
                         size_t size);

#endif
