// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of products: matrix products, batched or not, convolutions.
//
//   y[b, f, i] = g(sum(p, q) w[f, p, q] * x[b, p, i + q])
//
// The factors fall into two groups, a and b. A domain's index that only a uses
// belongs to m, only b to n, both to the batch; those of the reduction are k.
// Numbered row-major, each set is one axis, so what is computed is
// c[batch, m, n] = sum(k) a[batch, m, k] * b[batch, k, n], whose elements are
// the factors as they are written, with their conversions and their values
// outside. A block makes a tile of c in steps along k:
//
//   for step in 0..steps {
//     a's and b's tiles to shared memory, 0 past the end of k
//     barrier()
//     for p in 0..16 {
//       every thread: its 8 x 8 part += 8 of a times 8 of b
//     }
//     barrier()
//   }
//
// Neighbouring threads read neighbours along the axis that is contiguous. Where
// one of the reduction's indices has a range of whole steps it counts fastest,
// so that the others are the same all through a step.
#include "Schedule/Rules.h"

#include "IR/Intrinsic.h"

// Rows in shared memory are padded, which keeps the stores of threads that
// differ in k off each other's banks.
enum { BK = 16, MAX_FACTORS = 8, MAX_SHARE = 64, LEAST = 8, PADDING = 4 };

// Some indices as one axis.
typedef struct axis {
  const hd_index_t *indices[HD_MAX_RANK];
  unsigned count;
  int64_t size;
} axis_t;

typedef struct contraction {
  const hd_definition_t *d;
  hd_reduced_t reduced;
  const hd_term_t *sum;   // The reduction.
  const hd_term_t *a, *b; // What is multiplied.
  axis_t batch, m, n, k;
  bool whole;                      // A step is along the last of k alone.
  int64_t bm, bn, tm, tn, threads; // Tiles of a block and of a thread.
} contraction_t;

// --- Recognition ---

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

static void add_index(axis_t *axis, const hd_index_t *index) {
  axis->indices[axis->count++] = index;
}

// The longest index of whole steps last.
static void order_k(contraction_t *c) {
  const hd_reduction_t *r = c->sum->u.reduction;
  const hd_index_t *inner = NULL;
  for (uint32_t i = 0; i < r->num_indices; i++) {
    int64_t range = hd_flat_range(r->indices[i]);
    if (range % BK == 0 && (!inner || range >= hd_flat_range(inner)))
      inner = r->indices[i];
  }
  for (uint32_t i = 0; i < r->num_indices; i++)
    if (r->indices[i] != inner)
      add_index(&c->k, r->indices[i]);
  if (inner)
    add_index(&c->k, inner);
  c->whole = inner != NULL;
}

// Two groups; the one that has the domain's last index is b, whose neighbours
// are neighbours in the result.
static bool split(hd_arena_t *arena, contraction_t *c) {
  const hd_definition_t *d = c->d;
  const hd_term_t *factors[MAX_FACTORS];
  unsigned count = 0;
  if (d->num_indices > HD_MAX_RANK ||
      c->sum->u.reduction->num_indices > HD_MAX_RANK ||
      !collect_factors(c->sum->operands[0], factors, &count))
    return false;
  uint32_t all = 0, sets[2] = {0};
  const hd_term_t *groups[2] = {NULL, NULL};
  for (uint32_t i = 0; i < d->num_indices; i++)
    if (hd_flat_range(d->indices[i]) > 1)
      all |= UINT32_C(1) << i;
  for (unsigned i = 0; i < count; i++) {
    uint32_t set = used(d, factors[i]);
    bool first =
        !groups[0] || !(set & ~sets[0]) || (!groups[1] && set == sets[0]);
    groups[first ? 0 : 1] = times(arena, groups[first ? 0 : 1], factors[i]);
    sets[first ? 0 : 1] |= set;
  }
  if (!groups[1] || (sets[0] | sets[1]) != all)
    return false;
  bool swap = (sets[0] & ~sets[1]) > (sets[1] & ~sets[0]);
  c->a = groups[swap];
  c->b = groups[!swap];
  for (uint32_t i = 0; i < d->num_indices; i++) {
    bool in_a = sets[swap] >> i & 1, in_b = sets[!swap] >> i & 1;
    add_index(in_a && in_b ? &c->batch
              : in_a       ? &c->m
              : in_b       ? &c->n
                           : &c->batch,
              d->indices[i]);
  }
  order_k(c);
  axis_t *axes[] = {&c->batch, &c->m, &c->n, &c->k};
  for (int i = 0; i < 4; i++) {
    axes[i]->size = hd_flat_points(axes[i]->indices, axes[i]->count);
    if (axes[i]->size > INT32_MAX / 2)
      return false;
  }
  return true;
}

static bool recognize(hd_arena_t *arena, const hd_definition_t *d,
                      contraction_t *c) {
  *c = (contraction_t){.d = d};
  if (d->num_targets > 1 || !hd_reduced_find(arena, d, &c->reduced))
    return false;
  c->sum = c->reduced.reduction;
  return c->sum->num_operands == 1 &&
         c->sum->u.reduction->monoid->builtin == HD_MONOID_SUM &&
         hd_scalar_bits(c->sum->type.scalar) >= 8 && split(arena, c) &&
         c->m.size >= LEAST && c->n.size >= LEAST && c->k.size >= LEAST;
}

// --- Tiles ---

static int64_t tile_of(int64_t size, int64_t most) {
  int64_t tile = 32;
  while (tile < most && tile < size)
    tile *= 2;
  return tile;
}

static int64_t blocks_of(const contraction_t *c) {
  return c->batch.size * ((c->m.size + c->bm - 1) / c->bm) *
         ((c->n.size + c->bn - 1) / c->bn);
}

// Large tiles where they leave blocks enough for the GPU's multiprocessors.
static void choose_tiles(contraction_t *c) {
  enum { ENOUGH = 128 };
  c->bm = tile_of(c->m.size, 128);
  c->bn = tile_of(c->n.size, 128);
  if (blocks_of(c) < ENOUGH && c->bm == 128)
    c->bm = 64;
  if (blocks_of(c) < ENOUGH && c->bn == 128)
    c->bn = 64;
  c->tm = c->bm == 32 ? 4 : 8;
  c->tn = 8;
  c->threads = c->bm / c->tm * (c->bn / c->tn);
}

// --- What goes to shared memory ---

// A tile of one operand: rows along m or n.
typedef struct tile {
  const hd_term_t *term;
  const axis_t *axis;
  const hd_var_t *shared; // [BK, rows + PADDING]
  int64_t rows;
  const hd_expr_t *first; // Row of the tile.
  bool k_is_fast;         // Neighbouring threads differ in k.
} tile_t;

typedef struct maker {
  hd_kernel_draft_t draft;
  contraction_t c;
  tile_t tiles[2];
} maker_t;

// What an axis' indices are at one place of a tile.
typedef struct place {
  const hd_expr_t *number; // In the tile,
  const hd_expr_t *at;     // and in the axis.
  const hd_expr_t *values[HD_MAX_RANK];
} place_t;

static void find_place(hd_kernel_draft_t *draft, const axis_t *axis,
                       const hd_expr_t *first, const hd_expr_t *number,
                       place_t *place) {
  place->number = number;
  place->at =
      hd_b_let(&draft->b, "at", hd_b_op(&draft->b, HD_EXPR_ADD, first, number));
  hd_draft_place(draft, place->at, axis->indices, axis->count);
  for (unsigned i = 0; i < axis->count; i++)
    place->values[i] = hd_ptr_map_get(&draft->t.indices, axis->indices[i]);
}

static void use_place(hd_kernel_draft_t *draft, const axis_t *axis,
                      const place_t *place) {
  for (unsigned i = 0; i < axis->count; i++)
    hd_translate_bind(&draft->t, axis->indices[i], place->values[i]);
}

// at < size, where that is not so by the sizes; else NULL.
static const hd_expr_t *is_inside(hd_builder_t *b, const axis_t *axis,
                                  const place_t *place, int64_t tile) {
  return axis->size % tile ? hd_b_op_int(b, HD_EXPR_LT, place->at, axis->size)
                           : NULL;
}

static const hd_expr_t *zero_of(hd_builder_t *b, hd_scalar_t type) {
  return hd_type_is_float(hd_type(type))
             ? hd_expr_float(b->arena, hd_type(type), 0)
             : hd_b_int(b, type, 0);
}

// inside ? what a term is worth : 0
static const hd_expr_t *guarded(hd_kernel_draft_t *draft,
                                const hd_expr_t *inside,
                                const hd_term_t *term) {
  hd_builder_t *b = &draft->b;
  hd_scalar_t type = term->type.scalar;
  if (!inside)
    return hd_translate(&draft->t, term);
  hd_open_block_t block;
  hd_b_open(b, &block);
  const hd_expr_t *value = hd_translate(&draft->t, term);
  if (block.stmts.size == 0) {
    hd_b_close(b);
    return hd_expr_select(b->arena, inside, value, zero_of(b, type));
  }
  const hd_var_t *cell =
      hd_b_tensor(b, HD_SCOPE_REGISTER, "element", type, NULL, 0, NULL);
  hd_b_set(b, cell, value);
  hd_block_t then = hd_b_close(b);
  hd_b_declare(b, cell, zero_of(b, type));
  hd_b_if(b, inside, then, (hd_block_t){0});
  return hd_b_get(b, cell);
}

// The places, along the fast and the slow axis, of what a thread copies:
// element e of it lies at fast[e % num_fast], slow[e / num_fast].
typedef struct share {
  unsigned num_fast, num_slow;
  const hd_expr_t *fast[MAX_SHARE], *slow[MAX_SHARE];
} share_t;

static void make_share(maker_t *k, int64_t fast, int64_t slow, share_t *s) {
  hd_builder_t *b = &k->draft.b;
  int64_t threads = k->c.threads;
  const hd_expr_t *thread = hd_b_thread(b);
  bool wide = threads >= fast;
  s->num_fast = wide ? 1 : (unsigned)(fast / threads);
  s->num_slow = (unsigned)(wide ? (slow * fast + threads - 1) / threads : slow);
  for (unsigned i = 0; i < s->num_fast; i++)
    s->fast[i] = wide ? hd_b_op_int(b, HD_EXPR_MOD, thread, fast)
                      : hd_b_op_int(b, HD_EXPR_ADD, thread, i * threads);
  for (unsigned i = 0; i < s->num_slow; i++)
    s->slow[i] = wide ? hd_b_op_int(b, HD_EXPR_ADD,
                                    hd_b_op_int(b, HD_EXPR_DIV, thread, fast),
                                    i * (threads / fast))
                      : hd_b_i32(b, i);
}

// Rows are found before the loop over k, what lies along k in it.
typedef struct copy {
  share_t share;
  unsigned num_rows;
  place_t rows[MAX_SHARE];
} copy_t;

static void begin_copy(maker_t *k, tile_t *tile, copy_t *copy) {
  if (tile->k_is_fast)
    make_share(k, BK, tile->rows, &copy->share);
  else
    make_share(k, tile->rows, BK, &copy->share);
  const hd_expr_t *const *rows =
      tile->k_is_fast ? copy->share.slow : copy->share.fast;
  copy->num_rows =
      tile->k_is_fast ? copy->share.num_slow : copy->share.num_fast;
  for (unsigned i = 0; i < copy->num_rows; i++)
    find_place(&k->draft, tile->axis, tile->first, rows[i], &copy->rows[i]);
}

// Where a step of whole ones begins: the last index of k, and what is the same
// all through it.
static const hd_expr_t *begin_step(maker_t *k, const hd_expr_t *step) {
  hd_builder_t *b = &k->draft.b;
  const axis_t *axis = &k->c.k;
  if (!k->c.whole)
    return hd_b_let(b, "first_k", hd_b_op_int(b, HD_EXPR_MUL, step, BK));
  int64_t steps = hd_flat_range(axis->indices[axis->count - 1]) / BK;
  if (axis->count > 1)
    hd_draft_place(&k->draft, hd_b_op_int(b, HD_EXPR_DIV, step, steps),
                   axis->indices, axis->count - 1);
  if (axis->count > 1)
    step = hd_b_op_int(b, HD_EXPR_MOD, step, steps);
  return hd_b_let(b, "first_k", hd_b_op_int(b, HD_EXPR_MUL, step, BK));
}

static void find_k(maker_t *k, const hd_expr_t *first, const hd_expr_t *number,
                   place_t *place) {
  if (!k->c.whole) {
    find_place(&k->draft, &k->c.k, first, number, place);
    return;
  }
  place->number = number;
  place->at = hd_b_let(&k->draft.b, "at",
                       hd_b_op(&k->draft.b, HD_EXPR_ADD, first, number));
}

static void use_k(maker_t *k, const place_t *place) {
  const axis_t *axis = &k->c.k;
  if (k->c.whole)
    hd_translate_bind(&k->draft.t, axis->indices[axis->count - 1], place->at);
  else
    use_place(&k->draft, axis, place);
}

// The access of a tile that may be outside, where there is one; NULL: none, or
// several.
typedef struct guarded_access {
  const hd_term_t *access;
  unsigned count;
} guarded_access_t;

static bool find_access(void *argument, const hd_term_t *term) {
  guarded_access_t *g = argument;
  if (term->kind == HD_TERM_LOADELSE) {
    g->access = term;
    g->count++;
  }
  return true;
}

// Whether the access is inside all through a step, for the row at hand; what
// follows is assumed from then on. NULL where that is not so, or not to be
// seen.
static const hd_expr_t *assume_inside(maker_t *k, const hd_term_t *access) {
  hd_builder_t *b = &k->draft.b;
  hd_translator_t *t = &k->draft.t;
  const hd_index_t *inner = k->c.k.indices[k->c.k.count - 1];
  const hd_expr_t *inside = NULL;
  for (uint32_t i = 0; i < access->u.value->rank; i++) {
    int64_t size = hd_flat_size(access->u.value, i);
    hd_worth_t at = hd_translate_worth(t, access->operands[i]);
    if (at.least >= 0 && at.most < size)
      continue;
    if (hd_flat_uses(access->operands[i], inner))
      return NULL;
    if (at.least < 0)
      inside = hd_b_and(b, inside, hd_b_op_int(b, HD_EXPR_GE, at.e, 0));
    if (at.most >= size)
      inside = hd_b_and(b, inside, hd_b_op_int(b, HD_EXPR_LT, at.e, size));
    hd_fact_t fact = {at.e, 0, size - 1};
    hd_vec_push(b->arena, &t->facts, fact);
  }
  return inside;
}

// What is copied of one row.
typedef struct row_copy {
  const tile_t *tile;
  const place_t *row;
  const place_t *along;
  unsigned num_along;
} row_copy_t;

// term NULL is 0.
static hd_block_t copy_row(maker_t *k, const row_copy_t *copy,
                           const hd_term_t *term) {
  hd_builder_t *b = &k->draft.b;
  const tile_t *tile = copy->tile;
  hd_open_block_t block;
  hd_b_open(b, &block);
  for (unsigned i = 0; i < copy->num_along; i++) {
    const place_t *along = &copy->along[i];
    use_k(k, along);
    const hd_expr_t *at[] = {along->number, copy->row->number};
    const hd_expr_t *value =
        term ? guarded(&k->draft, is_inside(b, &k->c.k, along, BK), term)
             : zero_of(b, tile->term->type.scalar);
    hd_b_store(b, tile->shared, at, 2, value);
  }
  return hd_b_close(b);
}

// A row, where it is one of the matrix'.
static hd_block_t put_row(maker_t *k, const row_copy_t *copy) {
  hd_builder_t *b = &k->draft.b;
  hd_translator_t *t = &k->draft.t;
  const hd_term_t *term = copy->tile->term;
  guarded_access_t g = {0};
  size_t facts = t->facts.size;
  hd_open_block_t block;
  hd_b_open(b, &block);
  use_place(&k->draft, copy->tile->axis, copy->row);
  use_k(k, &copy->along[0]);
  hd_flat_walk(term, find_access, &g);
  const hd_expr_t *inside =
      k->c.whole && g.count == 1 ? assume_inside(k, g.access) : NULL;
  if (inside) {
    hd_block_t then = copy_row(k, copy, term);
    t->facts.size = facts;
    const hd_term_t *outside =
        hd_flat_replace(b->arena, term, g.access,
                        g.access->operands[g.access->num_operands - 1]);
    hd_b_if(b, inside, then, copy_row(k, copy, outside));
  } else {
    t->facts.size = facts;
    hd_b_if(b, NULL, copy_row(k, copy, term), (hd_block_t){0});
  }
  return hd_b_close(b);
}

static void put_copy(maker_t *k, const tile_t *tile, const copy_t *copy,
                     const hd_expr_t *first) {
  hd_builder_t *b = &k->draft.b;
  const share_t *s = &copy->share;
  const hd_expr_t *const *ks = tile->k_is_fast ? s->fast : s->slow;
  unsigned count = tile->k_is_fast ? s->num_fast : s->num_slow;
  place_t *along = HD_ARENA_ARRAY(b->arena, place_t, count);
  for (unsigned i = 0; i < count; i++)
    find_k(k, first, ks[i], &along[i]);
  for (unsigned i = 0; i < copy->num_rows; i++) {
    row_copy_t row = {tile, &copy->rows[i], along, count};
    const hd_expr_t *exists = is_inside(b, tile->axis, row.row, tile->rows);
    hd_block_t then = put_row(k, &row);
    hd_b_if(b, exists, then,
            exists ? copy_row(k, &row, NULL) : (hd_block_t){0});
  }
}

// --- The product ---

// part[i] = shared[p, first + i]
static const hd_var_t *read_part(hd_builder_t *b, const hd_var_t *part,
                                 const hd_var_t *shared, const hd_expr_t *p,
                                 const hd_expr_t *first, int64_t size) {
  const hd_var_t *var = hd_b_loop_var(b, "i", HD_I32);
  const hd_expr_t *i = hd_expr_var(b->arena, var);
  const hd_expr_t *at[] = {p, hd_b_op(b, HD_EXPR_ADD, first, i)};
  hd_open_block_t block;
  hd_b_open(b, &block);
  hd_b_store(b, part, &i, 1, hd_b_load(b, shared, at, 2));
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, var, hd_b_i32(b, 0), hd_b_i32(b, size), NULL, HD_UNROLL_FULL,
           body);
  return part;
}

static const hd_expr_t *multiply_add(hd_builder_t *b, const hd_expr_t *x,
                                     const hd_expr_t *y, const hd_expr_t *z) {
  const hd_expr_t *operands[] = {x, y, z};
  if (x->type.scalar == HD_F32 || x->type.scalar == HD_F64)
    return hd_b_intrinsic(b, HD_INTRINSIC_FMA, x->type, operands, 3);
  return hd_expr_binary(b->arena, HD_EXPR_ADD, z,
                        hd_expr_binary(b->arena, HD_EXPR_MUL, x, y));
}

// Products are written as vectors where the language has them, which a CPU
// computes by one instruction and a GPU by one for each lane.
static unsigned lanes_of(hd_scalar_t type) {
  return type == HD_F32 || type == HD_I32 || type == HD_U32 ? 4 : 1;
}

// sum[i, lanes j +: lanes] += part_a[i] * part_b[lanes j +: lanes]
static void put_product(maker_t *k, const hd_var_t *sum,
                        const hd_var_t *const parts[2],
                        const hd_var_t *const vars[2]) {
  hd_builder_t *b = &k->draft.b;
  hd_scalar_t type = k->c.sum->type.scalar;
  unsigned lanes = lanes_of(type);
  const hd_expr_t *at[] = {
      hd_expr_var(b->arena, vars[0]),
      hd_b_op_int(b, HD_EXPR_MUL, hd_expr_var(b->arena, vars[1]), lanes)};
  const hd_expr_t *x = hd_b_load(b, parts[0], &at[0], 1);
  if (lanes > 1)
    x = hd_expr_make(b->arena, HD_EXPR_VECTOR, hd_type_vector(type, lanes),
                     NULL, &x, 1);
  const hd_expr_t *y =
      hd_expr_access(b->arena, HD_EXPR_LOAD, parts[1], lanes, &at[1], 1);
  const hd_expr_t *z =
      hd_expr_access(b->arena, HD_EXPR_LOAD, sum, lanes, at, 2);
  hd_b_store(b, sum, at, 2, multiply_add(b, x, y, z));
}

static void put_products(maker_t *k, const hd_var_t *sum,
                         const hd_expr_t *const first[2]) {
  hd_builder_t *b = &k->draft.b;
  const contraction_t *c = &k->c;
  hd_scalar_t type = c->sum->type.scalar;
  const hd_var_t *parts[2], *vars[2];
  int64_t sizes[2] = {c->tm, c->tn};
  const hd_var_t *p = hd_b_loop_var(b, "p", HD_I32);
  hd_open_block_t steps, rows, columns;
  hd_b_open(b, &steps);
  for (int i = 0; i < 2; i++) {
    parts[i] =
        hd_b_register(b, i ? "part_b" : "part_a", type, &sizes[i], 1, NULL);
    read_part(b, parts[i], k->tiles[i].shared, hd_expr_var(b->arena, p),
              first[i], sizes[i]);
    vars[i] = hd_b_loop_var(b, i ? "j" : "i", HD_I32);
  }
  hd_b_open(b, &rows);
  hd_b_open(b, &columns);
  put_product(k, sum, parts, vars);
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, vars[1], hd_b_i32(b, 0), hd_b_i32(b, c->tn / lanes_of(type)),
           NULL, HD_UNROLL_FULL, body);
  body = hd_b_close(b);
  hd_b_for(b, vars[0], hd_b_i32(b, 0), hd_b_i32(b, c->tm), NULL, HD_UNROLL_FULL,
           body);
  body = hd_b_close(b);
  hd_b_for(b, p, hd_b_i32(b, 0), hd_b_i32(b, BK), NULL, 1, body);
}

// The results, through what the definition makes of the sum.
static void put_results(maker_t *k, const hd_var_t *sum,
                        const hd_expr_t *const first[2]) {
  hd_kernel_draft_t *draft = &k->draft;
  hd_builder_t *b = &draft->b;
  const contraction_t *c = &k->c;
  place_t columns[8];
  for (int64_t j = 0; j < c->tn; j++)
    find_place(draft, &c->n, k->tiles[1].first,
               hd_b_op_int(b, HD_EXPR_ADD, first[1], j), &columns[j]);
  const hd_var_t *var = hd_b_loop_var(b, "i", HD_I32);
  const hd_expr_t *at[2] = {hd_expr_var(b->arena, var), NULL};
  hd_open_block_t rows, row, column;
  hd_b_open(b, &rows);
  place_t place;
  find_place(draft, &c->m, k->tiles[0].first,
             hd_b_op(b, HD_EXPR_ADD, first[0], at[0]), &place);
  hd_b_open(b, &row);
  for (int64_t j = 0; j < c->tn; j++) {
    use_place(draft, &c->n, &columns[j]);
    at[1] = hd_b_i32(b, j);
    hd_b_open(b, &column);
    const hd_expr_t *value = hd_b_load(b, sum, at, 2);
    hd_draft_store_reduced(draft, &c->reduced, &value);
    hd_block_t body = hd_b_close(b);
    hd_b_if(b, is_inside(b, &c->n, &columns[j], c->bn), body, (hd_block_t){0});
  }
  hd_block_t body = hd_b_close(b);
  hd_b_if(b, is_inside(b, &c->m, &place, c->bm), body, (hd_block_t){0});
  body = hd_b_close(b);
  hd_b_for(b, var, hd_b_i32(b, 0), hd_b_i32(b, c->tm), NULL, HD_UNROLL_FULL,
           body);
}

// Which tile of the result the block makes.
static void place_block(maker_t *k) {
  hd_builder_t *b = &k->draft.b;
  contraction_t *c = &k->c;
  int64_t rows = (c->m.size + c->bm - 1) / c->bm;
  int64_t columns = (c->n.size + c->bn - 1) / c->bn;
  const hd_expr_t *number = hd_expr_builtin(b->arena, HD_BUILTIN_BLOCK);
  if (blocks_of(c) == 1)
    number = hd_b_i32(b, 0);
  const hd_expr_t *column = hd_b_op_int(b, HD_EXPR_MOD, number, columns);
  number = hd_b_op_int(b, HD_EXPR_DIV, number, columns);
  const hd_expr_t *row =
      c->batch.size > 1 ? hd_b_op_int(b, HD_EXPR_MOD, number, rows) : number;
  k->tiles[0].first =
      hd_b_let(b, "row", hd_b_op_int(b, HD_EXPR_MUL, row, c->bm));
  k->tiles[1].first =
      hd_b_let(b, "column", hd_b_op_int(b, HD_EXPR_MUL, column, c->bn));
  hd_draft_place(&k->draft, hd_b_op_int(b, HD_EXPR_DIV, number, rows),
                 c->batch.indices, c->batch.count);
}

static void make_tiles(maker_t *k) {
  contraction_t *c = &k->c;
  tile_t tiles[2] = {{.term = c->a, .axis = &c->m, .rows = c->bm},
                     {.term = c->b, .axis = &c->n, .rows = c->bn}};
  for (int i = 0; i < 2; i++) {
    int64_t shape[] = {BK, tiles[i].rows + PADDING};
    tiles[i].shared = hd_b_shared(&k->draft.b, i ? "tile_b" : "tile_a",
                                  c->sum->type.scalar, shape, 2, NULL);
    const axis_t *axis = tiles[i].axis;
    tiles[i].k_is_fast =
        !hd_reads_along(tiles[i].term, axis->indices, axis->count);
    k->tiles[i] = tiles[i];
  }
}

bool hd_rule_contract(hd_rules_t *rules, const hd_definition_t *d) {
  maker_t *k = HD_ARENA_NEW(&rules->module->arena, maker_t);
  contraction_t *c = &k->c;
  if (!recognize(&rules->module->arena, d, c))
    return false;
  choose_tiles(c);
  hd_draft_begin(&k->draft, rules);
  hd_builder_t *b = &k->draft.b;
  make_tiles(k);
  place_block(k);
  int64_t shape[] = {c->tm, c->tn};
  hd_scalar_t type = c->sum->type.scalar;
  const hd_var_t *sum =
      hd_b_register(b, "sum", type, shape, 2, zero_of(b, type));
  const hd_expr_t *thread = hd_b_thread(b), *first[2];
  first[0] =
      hd_b_op_int(b, HD_EXPR_MUL,
                  hd_b_op_int(b, HD_EXPR_DIV, thread, c->bn / c->tn), c->tm);
  first[1] =
      hd_b_op_int(b, HD_EXPR_MUL,
                  hd_b_op_int(b, HD_EXPR_MOD, thread, c->bn / c->tn), c->tn);
  for (int i = 0; i < 2; i++)
    first[i] = hd_b_let(b, i ? "own_column" : "own_row", first[i]);
  copy_t *copies = HD_ARENA_ARRAY(b->arena, copy_t, 2);
  for (int i = 0; i < 2; i++)
    begin_copy(k, &k->tiles[i], &copies[i]);
  const hd_var_t *step = hd_b_loop_var(b, "step_k", HD_I32);
  hd_open_block_t block;
  hd_b_open(b, &block);
  const hd_expr_t *first_k = begin_step(k, hd_expr_var(b->arena, step));
  for (int i = 0; i < 2; i++)
    put_copy(k, &k->tiles[i], &copies[i], first_k);
  hd_b_barrier(b);
  put_products(k, sum, first);
  hd_b_barrier(b);
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, step, hd_b_i32(b, 0), hd_b_i32(b, (c->k.size + BK - 1) / BK),
           NULL, 1, body);
  put_results(k, sum, first);
  hd_draft_finish_linear(&k->draft, "", blocks_of(c), c->threads);
  return true;
}
