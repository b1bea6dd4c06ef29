// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the files of pass lower-points share: tiles (loops over a mapping whose
// one statement is a fusion point), how the indices of a tensor run over them,
// and the loops that take their place.
#ifndef HIDET_TASKMAPPING_POINTS_H
#define HIDET_TASKMAPPING_POINTS_H

#include "IR/Intrinsic.h"
#include "IR/Passes/Facts.h"
#include "IR/Passes/Pass.h"
#include "IR/Rewrite.h"
#include "Support/Map.h"

enum { HD_POINT_CHUNK = 16 }; // Bytes: the widest access, and copy.

typedef struct hd_point_lowering {
  hd_module_t *module;
  hd_arena_t *arena;
  const hd_func_t *func;
  bool explain;
  hd_ptr_map_t lets;             // What they are, for those met so far.
  hd_facts_t *facts;             // Of the names at hand,
  HD_VEC(hd_facts_mark_t) marks; // and before each loop around.
  bool has_bulk; // Stores by the copy engine are to be waited for at the end.
} hd_point_lowering_t;

// A point, and the loop that is all its own.
typedef struct hd_tile {
  hd_point_lowering_t *l;
  const hd_stmt_t *point;
  const hd_stmt_t *loop;       // NULL: the point stands alone.
  const hd_mapping_t *mapping; // The loop's; NULL where that is.
  const hd_expr_t *worker;     // May be evaluated again and again; or NULL.
  hd_stmt_list_t *out;
} hd_tile_t;

// How a tensor's indices run over a tile: index t is base[t], plus the variable
// of axis[t]. Each of the tile's axes is met at most once.
typedef struct hd_tile_window {
  const hd_var_t *tensor;
  int axis[HD_MAX_RANK];              // -1: index t does not change.
  const hd_expr_t *base[HD_MAX_RANK]; // NULL: 0.
  unsigned num_axes;                  // Of the tile's, that are met.
} hd_tile_window_t;

// False where the indices of an access (LOAD or REF) are of another form.
bool hd_tile_window_find(const hd_tile_t *tile, const hd_expr_t *access,
                         hd_tile_window_t *window);
// Whether `width` elements from each multiple of it on along the tile's last
// axis lie side by side and aligned in the tensor, where the condition holds:
// *all becomes (all && it); NULL stands for true.
bool hd_tile_window_is_aligned(const hd_tile_t *tile,
                               const hd_tile_window_t *window, int64_t width,
                               const hd_expr_t **all);
// The tasks that are inside the tensor: bounds for `within`, the last divided
// by width, and a condition for what does not change: *all as above. They say
// nothing where *low (likewise) does not hold: the tile begins before the
// tensor does. False where a size is no i32.
bool hd_tile_window_bounds(const hd_tile_t *tile,
                           const hd_tile_window_t *window, int64_t width,
                           const hd_expr_t **bounds, const hd_expr_t **all,
                           const hd_expr_t **low);
// index < size, in a type that holds both; a size is not negative.
const hd_expr_t *hd_is_below(hd_point_lowering_t *l, const hd_expr_t *index,
                             const hd_expr_t *size);
// *all && index >= 0 && index < size, for each index of an access: all of its
// elements are there.
const hd_expr_t *hd_inside(hd_point_lowering_t *l, const hd_expr_t *access,
                           const hd_expr_t *all);
const hd_expr_t *hd_both(hd_point_lowering_t *l, const hd_expr_t *a,
                         const hd_expr_t *b);

// The mapping whose tasks are each `width` of m's, along the last axis: what a
// worker does one after the other. NULL where that is not so.
const hd_mapping_t *hd_mapping_divide(hd_arena_t *arena, const hd_mapping_t *m,
                                      int64_t width);
// The tasks of the tile's shape (its last axis divided by width), dealt out to
// its workers so that neighbours do what lies side by side; some may idle. NULL
// where the last axis is no multiple of width.
const hd_mapping_t *hd_tile_spread(const hd_tile_t *tile, int64_t width);

// A loop in place of the tile's. values are the tile's variables in it.
typedef struct hd_nest {
  const hd_tile_t *tile;
  const hd_mapping_t *mapping;
  int64_t width;
  int32_t unroll;
  const hd_var_t *lane; // Of the inner loop over width elements; NULL for 1.
  const hd_var_t *vars[HD_MAPPING_MAX_RANK];
  const hd_expr_t *values[HD_MAPPING_MAX_RANK]; // With the lane.
  const hd_expr_t *firsts[HD_MAPPING_MAX_RANK]; // The lane left out.
} hd_nest_t;

hd_nest_t hd_nest_begin(const hd_tile_t *tile, const hd_mapping_t *mapping,
                        int64_t width, int32_t unroll);
// e of the tile, in the nest; at its first lane.
const hd_expr_t *hd_nest_expr(const hd_nest_t *nest, const hd_expr_t *e);
const hd_expr_t *hd_nest_first(const hd_nest_t *nest, const hd_expr_t *e);
// The inner loop (the block itself for a width of 1), and the outer one.
hd_block_t hd_nest_lanes(const hd_nest_t *nest, hd_block_t block);
void hd_nest_end(const hd_nest_t *nest, const hd_expr_t *const *bounds,
                 hd_block_t block, hd_stmt_list_t *out);
// Whether by what is known of numbers the lanes' values (of the nest, under a
// condition or NULL) go to the point's place as one vector, and are read so:
// where that is no window, too. fixed: or are the same for all lanes.
bool hd_nest_is_vector(const hd_nest_t *nest, const hd_expr_t *condition,
                       const hd_expr_t *value, bool fixed);

// 0, or the least number of a type without 0 (f8e8m0).
const hd_expr_t *hd_zero(hd_arena_t *arena, hd_type_t type);

// Statements.
hd_block_t hd_block_of(hd_arena_t *arena, const hd_stmt_list_t *list);
hd_block_t hd_block_of_one(hd_arena_t *arena, const hd_stmt_t *stmt);
const hd_stmt_t *hd_make_store(const hd_tile_t *tile, const hd_expr_t *place,
                               const hd_expr_t *value);
// The block where the condition holds (NULL: always), else the other one.
void hd_push_if(const hd_tile_t *tile, const hd_expr_t *condition,
                hd_block_t then, hd_block_t otherwise, hd_stmt_list_t *out);
void hd_push_call(const hd_tile_t *tile, hd_intrinsic_t intrinsic,
                  const hd_expr_t *const *operands, unsigned count,
                  hd_stmt_list_t *out);

// From where they are (of a load: the point's value or 0; of a yield: its
// staging) to the point's place through registers, several elements a thread at
// a time. False, and nothing, where the mapping cannot be divided so.
bool hd_push_in_batches(const hd_tile_t *tile, const hd_mapping_t *mapping,
                        const hd_expr_t *loaded, hd_stmt_list_t *out);

// Staging.c: what leaves through shared memory.

// Elements of 16 bytes: of where they are staged, or else stored.
int64_t hd_tile_widest(const hd_tile_t *tile);
void hd_stage_barrier(const hd_tile_t *tile);
// All of the tile to shared memory, by whom it belongs to. by: the tile as it
// lies there, which is another one where its axes are turned on the way.
void hd_stage(const hd_tile_t *tile, const hd_tile_t *by);
// An element, as it is there.
const hd_expr_t *hd_staged(const hd_tile_t *tile);
bool hd_tile_is_square(const hd_tile_t *tile); // Of two axes.
// The tile with its two axes in the other order. Where it is a square, it lies
// so in shared memory, too, and is read by rows.
hd_tile_t hd_tile_turned(const hd_tile_t *tile);

void hd_lower_load(const hd_tile_t *tile);
void hd_lower_yield(const hd_tile_t *tile);
// Stores value to the staging of a yield by stmatrix; false, and nothing, where
// the tile's mapping is not that of fragments. by: the tile as it lies there,
// which is another one where its axes are turned on the way.
bool hd_push_matrices(const hd_tile_t *tile, const hd_tile_t *by,
                      const hd_expr_t *value);

#endif
