// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random index terms are worth after simplification what they were before, at
// every point, and lie in the range that is said of them.
#include "Random.h"
#include "TermEval.h"

#include "Schedule/Terms/Affine.h"

enum { TERMS = 20000, INDICES = 3, MAX_RANGE = 7, MAX_DEPTH = 6 };

typedef struct maker {
  random_t random;
  hd_arena_t arena;
  const hd_index_t *indices[INDICES];
  unsigned count;
} maker_t;

static void make_indices(maker_t *m) {
  m->count = (unsigned)random_in(&m->random, 1, INDICES);
  for (unsigned i = 0; i < m->count; i++)
    m->indices[i] =
        hd_flat_index_make(&m->arena, "i", random_in(&m->random, 1, MAX_RANGE));
}

static const hd_term_t *constant(maker_t *m, int64_t least, int64_t most) {
  return hd_flat_int(&m->arena, HD_I64, random_in(&m->random, least, most));
}

// Not folded on the way, so that simplification has something to do.
static const hd_term_t *apply(maker_t *m, hd_expr_kind_t op, const hd_term_t *a,
                              const hd_term_t *b) {
  const hd_term_t *operands[] = {a, b};
  hd_term_t *term = hd_term_make(&m->arena, HD_TERM_OPERATOR,
                                 hd_flat_type(HD_I64), operands, 2);
  term->u.op = op;
  return term;
}

static const hd_term_t *make_term(maker_t *m, unsigned depth) {
  int64_t kind = depth == 0 ? 0 : random_in(&m->random, 0, 9);
  if (kind == 0)
    return hd_flat_index(&m->arena,
                         m->indices[random_in(&m->random, 0, m->count - 1)]);
  const hd_term_t *a = make_term(m, depth - 1);
  if (kind <= 2)
    return apply(m, HD_EXPR_ADD, a, make_term(m, depth - 1));
  if (kind == 3)
    return apply(m, HD_EXPR_SUB, a, make_term(m, depth - 1));
  if (kind == 4)
    return apply(m, HD_EXPR_MUL, a, constant(m, -3, 6));
  if (kind == 5)
    return apply(m, HD_EXPR_ADD, a, constant(m, -9, 9));
  if (kind == 6)
    return apply(m, random_in(&m->random, 0, 1) ? HD_EXPR_MIN : HD_EXPR_MAX, a,
                 make_term(m, depth - 1));
  return apply(m, kind == 7 ? HD_EXPR_MOD : HD_EXPR_DIV, a, constant(m, 1, 8));
}

// The next point of the indices' domain; false after the last.
static bool next_point(const maker_t *m, term_values_t *values) {
  for (unsigned i = 0; i < m->count; i++) {
    if (++values->values[i] < hd_flat_range(m->indices[i]))
      return true;
    values->values[i] = 0;
  }
  return false;
}

static void first_point(const maker_t *m, term_values_t *values) {
  *values = (term_values_t){0};
  for (unsigned i = 0; i < m->count; i++)
    term_set(values, m->indices[i], 0);
}

static void keeps_values(void **state) {
  (void)state;
  maker_t m = {.random = random_begin("keeps_values")};
  unsigned changed = 0;
  for (unsigned n = 0; n < TERMS; n++) {
    uint64_t seed = m.random.state;
    hd_arena_init(&m.arena, NULL);
    make_indices(&m);
    const hd_term_t *term =
        make_term(&m, (unsigned)random_in(&m.random, 1, MAX_DEPTH));
    const hd_term_t *simple = hd_index_simplify(&m.arena, term);
    hd_range_t range = hd_term_range(term), tight = hd_term_range(simple);
    changed += simple != term;
    term_values_t at;
    first_point(&m, &at);
    do {
      int64_t wanted = term_eval(&at, term), got = term_eval(&at, simple);
      if (got != wanted || wanted < range.least || wanted > range.greatest ||
          wanted < tight.least || wanted > tight.greatest)
        fail_msg("HIDET_TEST_SEED=%llu: %lld became %lld; ranges %lld .. %lld, "
                 "%lld .. %lld",
                 (unsigned long long)seed, (long long)wanted, (long long)got,
                 (long long)range.least, (long long)range.greatest,
                 (long long)tight.least, (long long)tight.greatest);
    } while (next_point(&m, &at));
    hd_arena_fini(&m.arena);
  }
  assert_true(changed > TERMS / 2);
}

// To another shape and back is no change at all, where axes are split and put
// together.
static void undoes_reshapes(void **state) {
  (void)state;
  static const int64_t shapes[][4] = {{2, 3, 4, 5},   {6, 20, 1, 1},
                                      {120, 1, 1, 1}, {2, 12, 5, 1},
                                      {1, 24, 1, 5},  {2, 3, 20, 1}};
  enum { SHAPES = sizeof shapes / sizeof shapes[0] };
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  for (size_t a = 0; a < SHAPES; a++)
    for (size_t b = 0; b < SHAPES; b++) {
      const hd_term_t *from[4], *there[4], *back[4];
      for (unsigned i = 0; i < 4; i++)
        from[i] = shapes[a][i] == 1
                      ? hd_flat_int(&arena, HD_I64, 0)
                      : hd_flat_index(&arena, hd_flat_index_make(&arena, "i",
                                                                 shapes[a][i]));
      hd_index_places(&arena, hd_index_linear(&arena, shapes[a], 4, from),
                      shapes[b], 4, there);
      hd_index_places(&arena, hd_index_linear(&arena, shapes[b], 4, there),
                      shapes[a], 4, back);
      for (unsigned i = 0; i < 4; i++)
        if (!hd_term_equal(back[i], from[i]))
          fail_msg("axis %u of shape %zu, by shape %zu", i, a, b);
    }
  hd_arena_fini(&arena);
}

// What does not fit 64 bits is left alone.
static void survives_large_numbers(void **state) {
  (void)state;
  hd_arena_t arena;
  hd_arena_init(&arena, NULL);
  const hd_term_t *i =
      hd_flat_index(&arena, hd_flat_index_make(&arena, "i", INT64_MAX));
  const hd_term_t *large = hd_flat_int(&arena, HD_I64, INT64_MAX / 2);
  maker_t m = {.arena = arena};
  const hd_term_t *term =
      apply(&m, HD_EXPR_DIV, apply(&m, HD_EXPR_MUL, i, large),
            hd_flat_int(&m.arena, HD_I64, 7));
  const hd_term_t *simple = hd_index_simplify(&m.arena, term);
  hd_range_t range = hd_term_range(simple);
  assert_int_equal(range.least, INT64_MIN / 7); // Of anything.
  assert_int_equal(range.greatest, INT64_MAX / 7);
  hd_arena_fini(&m.arena);
}

HD_UNIT_TESTS(cmocka_unit_test(keeps_values), cmocka_unit_test(undoes_reshapes),
              cmocka_unit_test(survives_large_numbers))
