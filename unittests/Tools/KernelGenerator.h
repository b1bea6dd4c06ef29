// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random kernels that run: every access in bounds, barriers where all threads
// come, no race, no division by zero, so that they have one answer. In two
// writings of the same program: one as a user writes it, one with loops over
// mappings spelled out by the mappings' definition and loops around registers
// marked unroll, which needs no pass at all before code is made.
#ifndef HIDET_UNITTESTS_TOOLS_KERNELGENERATOR_H
#define HIDET_UNITTESTS_TOOLS_KERNELGENERATOR_H

#include "Random.h"

#include "Support/Arena.h"
#include "Support/Vec.h"

enum { HD_RANDOM_BLOCKS = 2, HD_RANDOM_THREADS = 64 };

// A kernel k(n: i32, m: i32, in x: i32[n, 16], in f: f32[64],
//   inout y: i32[2, 64, 16], inout g: f32[2, 64, 8], inout z: i32[2, 16, 16],
//   inout h: i32[8]). Text is the arena's.
const char *hd_random_kernel(hd_arena_t *arena, uint64_t seed, bool reference);
// What a launch of the kernel of that seed gives n and m.
int64_t hd_random_size(uint64_t seed, bool second);

// --- For the generator's own files. ---

typedef enum hd_kind {
  HD_K_I32,
  HD_K_I64,
  HD_K_F32,
  HD_K_BOOL,
  HD_K_X4
} hd_kind_t;

// A name for a value.
typedef struct hd_name {
  const char *text;
  hd_kind_t kind;
  int64_t least, greatest; // Of an i32.
  bool counter;            // A constant once loops are unrolled.
  bool assignable;         // A scalar register.
} hd_name_t;

typedef struct hd_array { // register text: i32[size]
  const char *text;
  int size;
} hd_array_t;

typedef struct hd_made_tile { // shared text: i32[64, columns]
  const char *text, *layout;
  int columns;
  bool open; // Each thread writes and reads its own row; else all may read.
} hd_made_tile_t;

typedef struct hd_maker {
  random_t random;
  hd_arena_t *arena;
  bool reference;
  HD_VEC(hd_name_t) names;
  HD_VEC(hd_array_t) arrays;
  HD_VEC(hd_made_tile_t) tiles;
  unsigned serial;
  int quiet;         // > 0: nothing that has an effect.
  bool in_fn;        // Only what is in names and arrays.
  bool z_is_taken;   // By a loop over a mapping: it writes each element once.
  const char *lane;  // Of the loop to be vectorized; NULL: none.
  int loops;         // Around the place.
  bool in_loop;      // What stands here may break or continue.
  const char *start; // Where the loop of lane stores.
  const char *row;   // Known to be one of x's; NULL: none is.
} hd_maker_t;

#define hd_text(m, ...) hd_arena_printf((m)->arena, __VA_ARGS__)
int hd_pick(hd_maker_t *m, int least, int greatest);
static inline bool hd_chance(hd_maker_t *m, int percent) {
  return hd_pick(m, 0, 99) < percent;
}
const char *hd_new_name(hd_maker_t *m, const char *stem);
const char *hd_value(hd_maker_t *m, hd_kind_t kind, int depth);
// An i32 in 0 .. size - 1 that has no effect.
const char *hd_index(hd_maker_t *m, int size);
// One that is a constant once loops are unrolled.
const char *hd_constant_index(hd_maker_t *m, int size);
const char *hd_kind_text(hd_kind_t kind);
// A visible name of a kind within a range, or NULL.
const hd_name_t *hd_find_name(hd_maker_t *m, hd_kind_t kind, int64_t least,
                              int64_t greatest, bool counter);
// Of x, which has n rows; an access to it that is in bounds where a condition
// says so, and only there; an index that may be outside.
const char *hd_row(hd_maker_t *m);
const char *hd_guarded(hd_maker_t *m, const char *column);
const char *hd_guess(hd_maker_t *m);

// An i32 of effects and of what they change, whose order counts.
const char *hd_hazard(hd_maker_t *m);
const char *hd_effect(hd_maker_t *m, int depth);

// Statements, each line indented.
const char *hd_statements(hd_maker_t *m, int count, int depth, bool uniform);
const char *hd_observe(hd_maker_t *m, size_t names, size_t arrays);
const char *hd_mapping_loop(hd_maker_t *m, int depth);
// A register tensor, declared; a name that what follows may use.
const char *hd_array(hd_maker_t *m);
void hd_add_name(hd_maker_t *m, hd_name_t name);

#endif
