// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the files of pass vectorize share. Vectorize.c has the loops,
// VectorFits.c says which and how wide, VectorPlaces.c answers what can be
// asked of accesses and conditions.
#ifndef HIDET_IR_PASSES_VECTORIZER_H
#define HIDET_IR_PASSES_VECTORIZER_H

#include "IR/Passes/Simplifier.h"

enum {
  HD_VECTOR_MAX_WIDTH = 32,
  HD_VECTOR_MAX_LOADS = 32,
  HD_VECTOR_BITS = 128
};

typedef struct hd_vector_load {
  const hd_expr_t *load;
  // What is loaded in its place, ahead of all lanes: itself, or where that may
  // be done needlessly, with a 0 for what is outside.
  const hd_expr_t *access;
  // The lanes, in this chunk: vectors of so many each; 0: stays scalar.
  int64_t width;
  const hd_expr_t *values[HD_VECTOR_MAX_WIDTH / 2];
} hd_vector_load_t;

typedef struct hd_vectorizer {
  hd_simplifier_t *s;
  hd_arena_t *arena;
  const hd_stmt_t *loop;
  hd_stmt_list_t *out;
  int64_t first, trips, width;
  unsigned num_loads;
  hd_vector_load_t loads[HD_VECTOR_MAX_LOADS];
  hd_ptr_map_t stores; // Tensors that the loop stores to, to a statement.
  hd_ptr_map_t stored; // Of those, the ones that statements so far stored to.
  hd_ptr_map_t lets;   // The body's, to their values: for looking at indices.
  hd_ptr_map_t copies; // The body's, to this chunk's copies, by lanes.
  int64_t turn;        // The iteration at hand; < 0: any.
  int64_t lane;        // Its lane; < 0: no vectors.
  bool fixed;          // An element may be loaded for all lanes.
} hd_vectorizer_t;

// e with the loop's variable (where turn >= 0) and the body's lets replaced by
// what they are: by this iteration's copies, or with copies off by their
// values.
const hd_expr_t *hd_vector_copy(hd_vectorizer_t *v, const hd_expr_t *e,
                                bool copies);
const hd_expr_t *const *hd_vector_copies(hd_vectorizer_t *v,
                                         const hd_expr_t *const *exprs,
                                         unsigned count, bool copies);

// Whether the accesses of every `width` iterations are one of a vector.
bool hd_vector_is_access(hd_vectorizer_t *v, const hd_var_t *var,
                         const hd_expr_t *const *indices, unsigned rank,
                         int64_t width);

// The same for a load, whose last axes may have one element alone: [c, 0, 0]
// runs along, too, and is loaded by its offset.
bool hd_vector_is_load(hd_vectorizer_t *v, const hd_expr_t *load,
                       int64_t width);
// How many of a load's axes are left without those.
unsigned hd_vector_axes(const hd_expr_t *load);

// Whether no index changes with the loop.
bool hd_vector_is_fixed(hd_vectorizer_t *v, const hd_expr_t *const *indices,
                        unsigned rank);

// Whether a load gives the same in all iterations: of one place, which the loop
// does not store, registers included.
bool hd_vector_is_same(hd_vectorizer_t *v, const hd_expr_t *load);

// Whether a condition is the same in every `width` iterations, the first of
// which is a multiple of that behind the loop's first: `j < n` is, where the
// first j and n have the width as a common divisor.
bool hd_vector_is_uniform(hd_vectorizer_t *v, const hd_expr_t *condition,
                          int64_t width);

// --- VectorNarrow.c ---

// What is stored, in all lanes of this chunk at once, where it is computed from
// narrow integers in 16 bits as well as lane by lane: a vector of the value's
// type. NULL: it is not.
const hd_expr_t *hd_vector_narrow(hd_vectorizer_t *v, const hd_expr_t *value);

// --- VectorFits.c ---

bool hd_vector_is_store(const hd_stmt_t *stmt); // To memory.
// The value of a let or a store, the condition of an assertion.
const hd_expr_t *hd_vector_given(const hd_stmt_t *stmt);
// Notes the loads of a block, but for those of its branches, which are certain
// to be done where the block is, or harmless there.
void hd_vector_note_loads(hd_vectorizer_t *v, hd_block_t block);
// The facts of a branch: of any iteration, and of the first.
hd_facts_mark_t hd_vector_enter(hd_vectorizer_t *v, const hd_expr_t *condition,
                                bool holds);
// Whether every store of a block is of a vector, and every condition the same
// for it; *any for one store.
bool hd_vector_fits(hd_vectorizer_t *v, hd_block_t block, int64_t width,
                    bool *any);
bool hd_vector_is_possible(hd_vectorizer_t *v);
// The most lanes for which every store is of a vector, or where there is none,
// a load; 1: none. Notes the loads of the body.
int64_t hd_vector_width(hd_vectorizer_t *v);

#endif
