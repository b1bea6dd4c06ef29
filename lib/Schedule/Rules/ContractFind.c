// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which definitions are sums of products, and what their tiles are.
#include "Schedule/Rules/Contract.h"

enum { MAX_FACTORS = 8, LEAST = 8 };

static bool collect_factors(const hd_term_t *term, const hd_term_t **factors,
                            unsigned *count) {
  if (term->kind == HD_TERM_OPERATOR && term->u.op == HD_EXPR_MUL)
    return collect_factors(term->operands[0], factors, count) &&
           collect_factors(term->operands[1], factors, count);
  if (*count == MAX_FACTORS || hd_flat_has(term, HD_TERM_REDUCE) ||
      hd_flat_has(term, HD_TERM_SCAN))
    return false;
  factors[(*count)++] = term;
  return true;
}

// Indices of the domain that a term uses, a bit for each.
static uint32_t used(const hd_definition_t *d, const hd_term_t *term) {
  uint32_t set = 0;
  for (uint32_t i = 0; i < d->num_indices; i++)
    if (hd_flat_uses(term, d->indices[i]))
      set |= UINT32_C(1) << i;
  return set;
}

static const hd_term_t *times(hd_arena_t *arena, const hd_term_t *a,
                              const hd_term_t *b) {
  if (!a)
    return b;
  const hd_term_t *operands[] = {a, b};
  hd_term_t *product =
      hd_term_make(arena, HD_TERM_OPERATOR, b->type, operands, 2);
  product->u.op = HD_EXPR_MUL;
  return product;
}

static void add_index(hd_axis_t *axis, const hd_index_t *index) {
  axis->indices[axis->count++] = index;
}

// The longest index of whole steps last.
static void order_k(hd_contraction_t *c) {
  const hd_reduction_t *r = c->sum->u.reduction;
  const hd_index_t *inner = NULL;
  for (uint32_t i = 0; i < r->num_indices; i++) {
    int64_t range = hd_flat_range(r->indices[i]);
    if (range % HD_CONTRACT_STEP == 0 &&
        (!inner || range >= hd_flat_range(inner)))
      inner = r->indices[i];
  }
  for (uint32_t i = 0; i < r->num_indices; i++)
    if (r->indices[i] != inner)
      add_index(&c->k, r->indices[i]);
  if (inner)
    add_index(&c->k, inner);
  c->whole = inner != NULL;
}

// The factors in two groups, and the indices that each uses.
typedef struct factors {
  const hd_term_t *data[MAX_FACTORS], *groups[2];
  unsigned count;
  uint32_t used[MAX_FACTORS], sets[2];
} factors_t;

static void add_factor(hd_arena_t *arena, factors_t *f, int group, unsigned i) {
  f->groups[group] = times(arena, f->groups[group], f->data[i]);
  f->sets[group] |= f->used[i];
}

static bool is_summed(const hd_reduction_t *r, const hd_term_t *term) {
  for (uint32_t i = 0; i < r->num_indices; i++)
    if (hd_flat_uses(term, r->indices[i]))
      return true;
  return false;
}

// A row by a matrix: the factors of the fewest indices by the others, where
// those use them, too.
static void part_row(hd_arena_t *arena, const hd_reduction_t *r, factors_t *f) {
  uint32_t row = f->sets[0];
  for (unsigned i = 0; i < f->count; i++)
    row &= f->used[i];
  f->groups[0] = NULL;
  f->sets[0] = 0;
  for (unsigned i = 0; i < f->count; i++)
    add_factor(arena, f, f->used[i] != row || !is_summed(r, f->data[i]), i);
}

// A factor goes with the first one where that has all of its indices.
static void part_factors(hd_arena_t *arena, const hd_reduction_t *r,
                         factors_t *f) {
  for (unsigned i = 0; i < f->count; i++)
    add_factor(arena, f, f->groups[0] && (f->used[i] & ~f->sets[0]), i);
  if (!f->groups[1])
    part_row(arena, r, f);
}

// Two groups; the one that has the domain's last index of several values is b,
// whose neighbours are neighbours in the result.
static bool split(hd_arena_t *arena, hd_contraction_t *c) {
  const hd_definition_t *d = c->d;
  const hd_reduction_t *r = c->sum->u.reduction;
  factors_t f = {0};
  if (d->num_indices > HD_MAX_RANK || r->num_indices > HD_MAX_RANK ||
      !collect_factors(c->sum->operands[0], f.data, &f.count))
    return false;
  uint32_t all = 0;
  for (uint32_t i = 0; i < d->num_indices; i++)
    if (hd_flat_range(d->indices[i]) > 1)
      all |= UINT32_C(1) << i;
  for (unsigned i = 0; i < f.count; i++)
    f.used[i] = used(d, f.data[i]);
  part_factors(arena, r, &f);
  const uint32_t *sets = f.sets;
  if (!f.groups[0] || !f.groups[1] || ((sets[0] | sets[1]) & all) != all)
    return false;
  bool swap = (sets[0] & ~sets[1] & all) > (sets[1] & ~sets[0] & all);
  c->a = f.groups[swap];
  c->b = f.groups[!swap];
  for (uint32_t i = 0; i < d->num_indices; i++) {
    bool in_a = sets[swap] >> i & 1, in_b = sets[!swap] >> i & 1;
    add_index(in_a && in_b ? &c->batch
              : in_a       ? &c->m
              : in_b       ? &c->n
                           : &c->batch,
              d->indices[i]);
  }
  order_k(c);
  hd_axis_t *axes[] = {&c->batch, &c->m, &c->n, &c->k};
  for (int i = 0; i < 4; i++) {
    axes[i]->size = hd_flat_points(axes[i]->indices, axes[i]->count);
    if (axes[i]->size > INT32_MAX / 2)
      return false;
  }
  return true;
}

static int64_t tile_of(int64_t size, int64_t most) {
  int64_t tile = 32;
  while (tile < most && tile < size)
    tile *= 2;
  return tile;
}

int64_t hd_contraction_blocks(const hd_contraction_t *c) {
  return c->batch.size * ((c->m.size + c->bm - 1) / c->bm) *
         ((c->n.size + c->bn - 1) / c->bn);
}

// Large tiles where they leave blocks enough for the GPU's multiprocessors.
static void choose_tiles(hd_contraction_t *c) {
  enum { ENOUGH = 128 };
  c->bm = tile_of(c->m.size, 128);
  c->bn = tile_of(c->n.size, 128);
  if (hd_contraction_blocks(c) < ENOUGH && c->bm == 128)
    c->bm = 64;
  if (hd_contraction_blocks(c) < ENOUGH && c->bn == 128)
    c->bn = 64;
  c->tm = c->bm == 32 ? 4 : 8;
  c->tn = 8;
  c->threads = c->bm / c->tm * (c->bn / c->tn);
}

static bool find_contraction(hd_arena_t *arena, const hd_definition_t *d,
                             int64_t least_m, hd_contraction_t *c) {
  *c = (hd_contraction_t){.d = d};
  if (d->num_targets > 1 || !hd_reduced_find(arena, d, &c->reduced))
    return false;
  c->sum = c->reduced.reduction;
  if (!(c->sum->num_operands == 1 &&
        c->sum->u.reduction->monoid->builtin == HD_MONOID_SUM &&
        hd_scalar_bits(c->sum->type.scalar) >= 8 && split(arena, c) &&
        c->m.size >= least_m && c->n.size >= LEAST && c->k.size >= LEAST))
    return false;
  choose_tiles(c);
  return true;
}

bool hd_contraction_find(hd_arena_t *arena, const hd_definition_t *d,
                         hd_contraction_t *c) {
  return find_contraction(arena, d, LEAST, c);
}

bool hd_contraction_find_few(hd_arena_t *arena, const hd_definition_t *d,
                             hd_contraction_t *c) {
  return find_contraction(arena, d, 1, c);
}
