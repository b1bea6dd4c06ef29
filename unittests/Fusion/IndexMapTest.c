// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inverses of random index maps against trying every element: where the
// condition holds there is one element, the one that is said; elsewhere none.
// Chains of transposes, slices and reversals always have an inverse.
#include "Random.h"
#include "TermEval.h"

#include "Fusion/Group/IndexMap.h"

enum { MAPS = 6000, MAX_AXES = 4, MAX_STEPS = 5, MAX_COUNT = 96 };

typedef struct map {
  random_t random;
  hd_arena_t arena;
  // The result's indices, and where in what is read its element comes from.
  const hd_index_t *indices[MAX_AXES];
  unsigned count;
  const hd_term_t *places[MAX_AXES];
  int64_t shape[MAX_AXES]; // Of what is read so far.
  unsigned rank;
  bool is_invertible; // For all that was done to it.
} map_t;

static const hd_term_t *operate(map_t *m, hd_expr_kind_t op, const hd_term_t *a,
                                int64_t b) {
  return hd_flat_operate(&m->arena, op, a, hd_flat_int(&m->arena, HD_I64, b));
}

static void begin(map_t *m) {
  hd_arena_init(&m->arena, NULL);
  m->is_invertible = true;
  m->count = m->rank = (unsigned)random_in(&m->random, 1, 3);
  for (unsigned i = 0; i < m->rank; i++) {
    m->shape[i] = random_in(&m->random, 1, 6);
    m->indices[i] = hd_flat_index_make(&m->arena, "i", m->shape[i]);
    m->places[i] = hd_flat_index(&m->arena, m->indices[i]);
  }
}

static int64_t elements(const map_t *m) {
  int64_t count = 1;
  for (unsigned i = 0; i < m->rank; i++)
    count *= m->shape[i];
  return count;
}

// A random shape of as many elements. Digits of several axes together are not
// inverted.
static void reshape(map_t *m) {
  m->is_invertible = false;
  int64_t shape[MAX_AXES], left = elements(m);
  unsigned rank = (unsigned)random_in(&m->random, 1, MAX_AXES);
  for (unsigned i = 0; i + 1 < rank; i++) {
    int64_t size = random_in(&m->random, 1, 6);
    shape[i] = left % size ? 1 : size;
    left /= shape[i];
  }
  shape[rank - 1] = left;
  const hd_term_t *places[MAX_AXES];
  hd_index_places(&m->arena,
                  hd_index_linear(&m->arena, m->shape, m->rank, m->places),
                  shape, rank, places);
  m->rank = rank;
  for (unsigned i = 0; i < rank; i++) {
    m->places[i] = places[i];
    m->shape[i] = shape[i];
  }
}

static void transpose(map_t *m) {
  for (unsigned i = m->rank; i > 1; i--) {
    unsigned k = (unsigned)random_in(&m->random, 0, i - 1);
    const hd_term_t *place = m->places[i - 1];
    int64_t size = m->shape[i - 1];
    m->places[i - 1] = m->places[k];
    m->shape[i - 1] = m->shape[k];
    m->places[k] = place;
    m->shape[k] = size;
  }
}

// From an axis that is longer, every so many.
static void slice(map_t *m) {
  unsigned i = (unsigned)random_in(&m->random, 0, m->rank - 1);
  int64_t first = random_in(&m->random, 0, 3),
          step = random_in(&m->random, 1, 3);
  m->places[i] = operate(m, HD_EXPR_ADD,
                         operate(m, HD_EXPR_MUL, m->places[i], step), first);
  m->shape[i] =
      first + (m->shape[i] - 1) * step + 1 + random_in(&m->random, 0, 2);
}

static void flip(map_t *m) {
  unsigned i = (unsigned)random_in(&m->random, 0, m->rank - 1);
  m->places[i] = hd_flat_operate(
      &m->arena, HD_EXPR_SUB, hd_flat_int(&m->arena, HD_I64, m->shape[i] - 1),
      m->places[i]);
}

// The same elements again and again.
static void repeat(map_t *m) {
  unsigned i = (unsigned)random_in(&m->random, 0, m->rank - 1);
  int64_t size = random_in(&m->random, 1, 4);
  m->places[i] = operate(m, HD_EXPR_MOD, m->places[i], size);
  m->shape[i] = size;
  m->is_invertible = false;
}

// One more axis, which has to agree with another.
static void diagonal(map_t *m) {
  if (m->rank == MAX_AXES)
    return;
  unsigned i = (unsigned)random_in(&m->random, 0, m->rank - 1);
  m->places[m->rank] = operate(
      m, HD_EXPR_MOD,
      operate(m, HD_EXPR_DIV, m->places[i], random_in(&m->random, 1, 3)),
      random_in(&m->random, 1, 4));
  m->shape[m->rank++] = 4;
  m->is_invertible = false;
}

// Two axes as one, which may meet.
static void sum(map_t *m) {
  if (m->rank < 2)
    return;
  m->rank--;
  m->places[m->rank - 1] = hd_flat_operate(
      &m->arena, HD_EXPR_ADD,
      operate(m, HD_EXPR_MUL, m->places[m->rank - 1],
              random_in(&m->random, 1, 6)),
      operate(m, HD_EXPR_MUL, m->places[m->rank], random_in(&m->random, 1, 3)));
  m->shape[m->rank - 1] =
      6 * (m->shape[m->rank - 1] - 1) + 3 * (m->shape[m->rank] - 1) + 1;
  m->is_invertible = false;
}

static void make_map(map_t *m) {
  static void (*const steps[])(map_t *) = {
      reshape, transpose, slice, flip, reshape, slice, repeat, diagonal, sum};
  begin(m);
  int64_t kinds = random_in(&m->random, 0, 1) ? 9 : 6;
  int64_t count = random_in(&m->random, 1, MAX_STEPS);
  for (int64_t i = 0; i < count; i++)
    steps[random_in(&m->random, 0, kinds - 1)](m);
}

static bool next_point(unsigned count, const int64_t *shape, int64_t *point) {
  for (unsigned i = 0; i < count; i++) {
    if (++point[i] < shape[i])
      return true;
    point[i] = 0;
  }
  return false;
}

// Finds the elements that a place becomes; the last of them in found.
static unsigned find(const map_t *m, const int64_t *at, int64_t *found) {
  int64_t ranges[MAX_AXES], point[MAX_AXES] = {0};
  unsigned elements = 0;
  for (unsigned i = 0; i < m->count; i++)
    ranges[i] = hd_flat_range(m->indices[i]);
  do {
    term_values_t v = {0};
    bool same = true;
    for (unsigned i = 0; i < m->count; i++)
      term_set(&v, m->indices[i], point[i]);
    for (unsigned i = 0; same && i < m->rank; i++)
      same = term_eval(&v, m->places[i]) == at[i];
    for (unsigned i = 0; same && i < m->count; i++)
      found[i] = point[i];
    elements += same;
  } while (next_point(m->count, ranges, point));
  return elements;
}

// A place of the result's element, by the inverse; false where there is none.
static bool invert(const hd_index_map_t *inverse, const map_t *m,
                   const hd_index_t *const *axes, const int64_t *at,
                   int64_t *found) {
  term_values_t v = {0};
  for (unsigned i = 0; i < m->rank; i++)
    term_set(&v, axes[i], at[i]);
  for (unsigned i = 0; i < inverse->num_lets; i++)
    term_set(&v, inverse->lets[i].index, term_eval(&v, inverse->lets[i].term));
  if (inverse->condition && !term_eval(&v, inverse->condition))
    return false;
  for (unsigned i = 0; i < inverse->num_lets; i++) {
    int64_t value = term_eval(&v, inverse->lets[i].term);
    assert_true(value >= 0 && value < hd_flat_range(inverse->lets[i].index));
  }
  for (unsigned i = 0; i < m->count; i++)
    found[i] = term_eval(&v, inverse->places[i]);
  return true;
}

static void check(const map_t *m, uint64_t seed, const hd_index_map_t *inverse,
                  const hd_index_t *const *axes) {
  int64_t at[MAX_AXES] = {0}, wanted[MAX_AXES], got[MAX_AXES];
  do {
    unsigned count = find(m, at, wanted);
    bool is_there = invert(inverse, m, axes, at, got);
    bool same = count == is_there;
    for (unsigned i = 0; same && is_there && i < m->count; i++)
      same = got[i] == wanted[i];
    if (!same)
      fail_msg("HIDET_TEST_SEED=%llu: %u elements come from [%lld, %lld, "
               "%lld, %lld]; the inverse says %d, [%lld, %lld, %lld]",
               (unsigned long long)seed, count, (long long)at[0],
               (long long)at[1], (long long)at[2], (long long)at[3], is_there,
               (long long)got[0], (long long)got[1], (long long)got[2]);
  } while (next_point(m->rank, m->shape, at));
}

static void inverts_maps(void **state) {
  (void)state;
  map_t m = {.random = random_begin("inverts_maps")};
  unsigned inverted = 0, refused = 0;
  for (unsigned n = 0; n < MAPS; n++) {
    uint64_t seed = m.random.state;
    make_map(&m);
    const hd_index_t *axes[MAX_AXES];
    const hd_term_t *at[MAX_AXES];
    hd_index_map_t inverse;
    for (unsigned i = 0; i < m.rank; i++) {
      axes[i] = hd_flat_index_make(&m.arena, "at", m.shape[i]);
      at[i] = hd_flat_index(&m.arena, axes[i]);
    }
    bool ok = hd_index_invert(&m.arena, m.places, m.rank, m.indices, m.count,
                              at, &inverse);
    if (m.is_invertible && !ok)
      fail_msg("HIDET_TEST_SEED=%llu: not inverted", (unsigned long long)seed);
    inverted += ok;
    refused += !ok;
    if (ok && elements(&m) <= 20000)
      check(&m, seed, &inverse, axes);
    hd_arena_fini(&m.arena);
  }
  print_message("%u of %u maps have an inverse\n", inverted,
                inverted + refused);
  assert_true(inverted > MAPS / 2);
  assert_true(refused > MAPS / 20);
}

HD_UNIT_TESTS(cmocka_unit_test(inverts_maps))
