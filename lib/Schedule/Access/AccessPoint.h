// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the files share that replace accesses at fusion points.
#ifndef HIDET_SCHEDULE_ACCESS_ACCESSPOINT_H
#define HIDET_SCHEDULE_ACCESS_ACCESSPOINT_H

#include "Schedule/Access/AccessState.h"

// A point, and the loop that is all its own, or NULL.
typedef struct hd_access_tile {
  hd_accessor_t *a;
  const hd_stmt_t *loop, *point;
} hd_access_tile_t;

void hd_access_yield(const hd_access_tile_t *tile);

enum { HD_ACCESS_YIELDS = 8 }; // From one point.

// What a yield becomes: yields of these values at these places. Where one does
// not go to all of them a condition says when; NULL: always. It holds wherever
// the place is inside its tensor.
typedef struct hd_access_yields {
  unsigned count;
  const hd_expr_t *places[HD_ACCESS_YIELDS], *values[HD_ACCESS_YIELDS],
      *conditions[HD_ACCESS_YIELDS];
} hd_access_yields_t;

// Reads what these yields' values will read, as far as registers are there for
// it: an element of point->early for each of theirs. places: only what says
// where something else is read.
void hd_access_read_early(const hd_access_tile_t *tile,
                          const hd_access_yields_t *yields, bool places);
// The value of a point's yield, by its number, of which `open` is what hooks
// add to any, with what was read before by the registers that it was read into.
const hd_expr_t *hd_access_with_early(hd_accessor_t *a, const hd_stmt_t *point,
                                      unsigned yield, const hd_expr_t *open,
                                      const hd_expr_t *value);

// Whether anything was read before into registers that lie as the point says.
// Else what is expected of it stays so.
bool hd_access_has_early(const hd_accessor_t *a, const hd_stmt_t *point);

// The block by the tile's loop.
void hd_access_push_around(const hd_access_tile_t *tile, hd_block_t body);
// The point by the tile's loop; the tile's own with another value.
void hd_access_push_point(const hd_access_tile_t *tile, const hd_stmt_t *point);
void hd_access_push_value(const hd_access_tile_t *tile, const hd_expr_t *value);

bool hd_access_is_replaced(const hd_accessor_t *a, const hd_expr_t *load);

// What is pushed while it is open, and the values of the names in it.
typedef struct hd_access_names {
  hd_open_block_t block;
  hd_rewriter_t rewriter; // Puts values for names; to be ended.
} hd_access_names_t;

void hd_access_begin_names(hd_accessor_t *a, hd_access_names_t *names);
// Learns what a statement names. False where it does something else, too.
bool hd_access_learn_name(hd_access_names_t *names, const hd_stmt_t *stmt);
// The expression without the names that were learned; NULL where it is too
// large.
const hd_expr_t *hd_access_without_names(hd_access_names_t *names,
                                         const hd_expr_t *e);
// e as one expression; NULL where it takes statements.
const hd_expr_t *hd_access_as_expression(hd_accessor_t *a, const hd_expr_t *e);

// Learns the names of a load point's value and the places that the data says
// (AccessRows.c); false where something else was pushed. *claims: what is
// asserted of places that are not the same for all tasks of the loop.
bool hd_access_learn_places(const hd_access_tile_t *tile,
                            hd_access_names_t *names, hd_stmt_list_t *claims);
// e, where what the value reads outside anyway is not read as 0 there.
const hd_expr_t *hd_access_without_zeros(hd_accessor_t *a,
                                         const hd_expr_t *value,
                                         const hd_expr_t *e);
// Pushes those, and gives the value with what was read early for its places, if
// anything was.
const hd_expr_t *hd_access_with_places(const hd_access_tile_t *tile,
                                       const hd_stmt_list_t *claims,
                                       const hd_expr_t *value);

bool hd_access_same_size(const hd_expr_t *x, const hd_expr_t *y);
// Whether a guard holds always; whether an access is outside its tensor
// wherever the guard does not hold.
bool hd_access_is_certain(const hd_access_guard_t *guard);
bool hd_access_says(const hd_expr_t *access, const hd_access_guard_t *guard);
// That its index is one of the places; NULL: always.
const hd_expr_t *hd_access_holds(hd_accessor_t *a,
                                 const hd_access_guard_t *guard);
// e with numbers whole again that were taken apart: x / c * c + x % c is x.
const hd_expr_t *hd_access_joined(hd_arena_t *arena, const hd_expr_t *e);
// Whether a condition holds wherever an access is inside its tensor.
bool hd_access_says_condition(const hd_expr_t *access,
                              const hd_expr_t *condition);
// A condition, without the loop's variables, that holds where the other one
// holds for some of the loop's tasks; NULL: none is known.
const hd_expr_t *hd_access_may_hold(hd_builder_t *b, const hd_stmt_t *loop,
                                    const hd_expr_t *condition);
// One that holds where the guard holds for all of them; NULL: none is known.
const hd_expr_t *hd_access_all_hold(hd_builder_t *b, const hd_stmt_t *loop,
                                    const hd_access_guard_t *guard);

#endif
