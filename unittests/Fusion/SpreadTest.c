// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random indices of a kernel, evaluated for every thread of every block: they
// lie where hd_spread_of() says, and what it says is the same for all blocks of
// a cluster.
#include "Random.h"
#include "UnitTest.h"

#include "Fusion/Trim/Spread.h"

enum { KERNELS = 300, INDICES = 20, BLOCKS = 12, THREADS = 96, LOOP = 6 };

typedef struct place {
  int64_t block, thread, turn, cluster;
  const hd_var_t *loop;
} place_t;

static bool leaf_at(void *argument, const hd_expr_t *leaf, hd_number_t *value) {
  const place_t *at = argument;
  if (leaf->kind == HD_EXPR_VAR) {
    *value = (hd_number_t){.i = at->turn};
    return leaf->u.var == at->loop;
  }
  switch (leaf->u.builtin) {
  case HD_BUILTIN_BLOCK:
    *value = (hd_number_t){.i = at->block};
    return true;
  case HD_BUILTIN_THREAD:
    *value = (hd_number_t){.i = at->thread};
    return true;
  case HD_BUILTIN_WARP:
    *value = (hd_number_t){.i = at->thread / 32};
    return true;
  case HD_BUILTIN_CLUSTER:
    *value = (hd_number_t){.i = at->block % at->cluster};
    return true;
  default:
    return false;
  }
}

static int64_t evaluate(const place_t *at, const hd_expr_t *e) {
  place_t place = *at;
  hd_fold_t fold = {.leaf = leaf_at, .argument = &place};
  hd_number_t value = {0};
  assert_true(hd_expr_value(&fold, e, &value));
  return value.i;
}

typedef struct maker {
  random_t random;
  hd_arena_t arena;
  const hd_var_t *loop;
} maker_t;

static const hd_expr_t *number(maker_t *m, int64_t least, int64_t most) {
  return hd_expr_i32(&m->arena, random_in(&m->random, least, most));
}

// A natural number, as indices are.
static const hd_expr_t *draw(maker_t *m, int depth) {
  static const hd_builtin_t builtins[] = {HD_BUILTIN_BLOCK, HD_BUILTIN_BLOCK,
                                          HD_BUILTIN_THREAD, HD_BUILTIN_WARP,
                                          HD_BUILTIN_CLUSTER};
  static const hd_expr_kind_t sums[] = {HD_EXPR_ADD, HD_EXPR_MIN, HD_EXPR_MAX};
  if (depth == 0) {
    int64_t n = random_in(&m->random, 0, 6);
    return n < 5    ? hd_expr_builtin(&m->arena, builtins[n])
           : n == 5 ? hd_expr_var(&m->arena, m->loop)
                    : number(m, 0, 40);
  }
  const hd_expr_t *a = draw(m, depth - 1);
  bool narrow = random_in(&m->random, 0, 3) == 0; // It wraps, and stays one.
  switch (random_in(&m->random, 0, 5)) {
  case 0:
    return hd_expr_binary(&m->arena, HD_EXPR_MUL, a, number(m, 1, 16));
  case 1:
    return hd_expr_binary(&m->arena, HD_EXPR_DIV, a, number(m, 1, 16));
  case 2:
    return hd_expr_binary(&m->arena, HD_EXPR_MOD, a, number(m, 1, 32));
  case 3:
    return hd_expr_cast(
        &m->arena, hd_type(HD_I32),
        hd_expr_cast(&m->arena, hd_type(narrow ? HD_U8 : HD_I64), a));
  default:
    return hd_expr_binary(&m->arena, sums[random_in(&m->random, 0, 2)], a,
                          draw(m, depth - 1));
  }
}

static void check(const hd_expr_t *e, hd_spread_t spread, place_t at) {
  for (at.block = 0; at.block < BLOCKS; at.block++) {
    place_t first = {.block = at.block / at.cluster * at.cluster,
                     .cluster = at.cluster};
    int64_t base = spread.base ? evaluate(&first, spread.base) : 0;
    assert_true(!spread.base || evaluate(&at, spread.base) == base);
    for (at.thread = 0; at.thread < THREADS; at.thread += 5)
      for (at.turn = 1; at.turn < LOOP; at.turn++) {
        int64_t value = evaluate(&at, e);
        assert_true(base + spread.least <= value);
        assert_true(spread.most >= HD_SPREAD_FAR ||
                    value <= base + spread.most);
      }
  }
}

static void holds_every_index(void **state) {
  (void)state;
  maker_t m = {.random = random_begin("holds_every_index")};
  unsigned known = 0, based = 0;
  for (int n = 0; n < KERNELS; n++) {
    hd_arena_init(&m.arena, NULL);
    m.loop =
        hd_var_make(&m.arena, "t", HD_VAR_LOOP, hd_type(HD_I32), (hd_loc_t){0});
    hd_func_t kernel = {.kind = HD_FUNC_KERNEL};
    place_t at = {.loop = m.loop, .cluster = random_in(&m.random, 1, 3)};
    kernel.launch.grid[0] = hd_expr_i32(&m.arena, BLOCKS);
    kernel.launch.block[0] = hd_expr_i32(&m.arena, THREADS);
    kernel.launch.cluster[0] = hd_expr_i32(&m.arena, at.cluster);
    hd_spreads_t spreads;
    hd_spreads_init(&spreads, &m.arena, &kernel);
    hd_spread_set(&spreads, m.loop, (hd_spread_t){true, NULL, 1, LOOP - 1});
    for (int i = 0; i < INDICES; i++) {
      const hd_expr_t *e = draw(&m, (int)random_in(&m.random, 0, 4));
      hd_spread_t spread = hd_spread_of(&spreads, e);
      known += spread.known;
      based += spread.known && spread.base;
      if (spread.known)
        check(e, spread, at);
    }
    hd_arena_fini(&m.arena);
  }
  // It is of use: most are known, and many depend on the block.
  assert_in_range(known, KERNELS * INDICES / 2, KERNELS * INDICES);
  assert_in_range(based, KERNELS * INDICES / 8, KERNELS * INDICES);
}

HD_UNIT_TESTS(cmocka_unit_test(holds_every_index))
