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
//   the parts to shared memory
//   barrier()
//   for e in 0..16 {
//     every thread: g of 4 neighbours of a row, 64 threads side by side
//   }
//
// So what becomes of the sums stands in one place, however much fusion adds,
// and rows are written as they lie. Neighbouring threads read neighbours along
// the axis that is contiguous. Where one of the reduction's indices has a range
// of whole steps it counts fastest, so that the others are the same all through
// a step.
#include "Schedule/Rules/Contract.h"

#include "IR/Intrinsic.h"

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
static void put_product(hd_product_t *k, const hd_var_t *sum,
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

static void put_products(hd_product_t *k, const hd_var_t *sum,
                         const hd_expr_t *const first[2]) {
  hd_builder_t *b = &k->draft.b;
  const hd_contraction_t *c = &k->c;
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
  hd_b_for(b, p, hd_b_i32(b, 0), hd_b_i32(b, HD_CONTRACT_STEP), NULL, 1, body);
}

// Bytes of shared memory that results may take beside the tiles.
enum { RESULT_BYTES = 32 << 10, RESULT_LANES = 4 };

// A part of the block's results on its way out through shared memory.
typedef struct results {
  const hd_var_t *shared; // [rows, bn]
  int64_t parts, part;
  int64_t height;      // Rows of a thread in a part.
  int64_t rows, lanes; // Of a part; that a thread takes at once.
} results_t;

static void find_results(hd_product_t *k, results_t *r) {
  const hd_contraction_t *c = &k->c;
  hd_scalar_t type = c->sum->type.scalar;
  int64_t row = (c->bn + HD_CONTRACT_PADDING) * hd_scalar_bits(type) / 8;
  *r = (results_t){.parts = 1};
  while (r->parts < c->tm && c->bm / r->parts * row > RESULT_BYTES)
    r->parts *= 2;
  r->height = c->tm / r->parts;
  r->rows = c->bm / r->parts;
  // Neighbours become vectors where the columns are one index.
  r->lanes =
      c->n.count == 1 && c->n.size % RESULT_LANES == 0 ? RESULT_LANES : 1;
  int64_t shape[] = {r->rows, c->bn + HD_CONTRACT_PADDING};
  r->shared = hd_b_shared(&k->draft.b, "result", type, shape, 2, NULL);
}

// Each thread's sums, to shared memory.
static void put_sums(hd_product_t *k, const hd_var_t *sum,
                     const hd_expr_t *const first[2], const results_t *r) {
  hd_builder_t *b = &k->draft.b;
  const hd_contraction_t *c = &k->c;
  const hd_var_t *vars[2] = {hd_b_loop_var(b, "i", HD_I32),
                             hd_b_loop_var(b, "j", HD_I32)};
  const hd_expr_t *i = hd_expr_var(b->arena, vars[0]);
  const hd_expr_t *j = hd_expr_var(b->arena, vars[1]);
  const hd_expr_t *row =
      hd_b_op_int(b, HD_EXPR_DIV, first[0], r->parts); // A multiple of tm.
  const hd_expr_t *from[] = {
      hd_b_op_int(b, HD_EXPR_ADD, i, r->part * r->height), j};
  const hd_expr_t *to[] = {hd_b_op(b, HD_EXPR_ADD, row, i),
                           hd_b_op(b, HD_EXPR_ADD, first[1], j)};
  hd_open_block_t rows, columns;
  hd_b_open(b, &rows);
  hd_b_open(b, &columns);
  hd_b_store(b, r->shared, to, 2, hd_b_load(b, sum, from, 2));
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, vars[1], hd_b_i32(b, 0), hd_b_i32(b, c->tn), NULL, HD_UNROLL_FULL,
           body);
  body = hd_b_close(b);
  hd_b_for(b, vars[0], hd_b_i32(b, 0), hd_b_i32(b, r->height), NULL,
           HD_UNROLL_FULL, body);
}

// The row of the tile that row number `slot` of the part is.
static const hd_expr_t *row_of(hd_product_t *k, const results_t *r,
                               const hd_expr_t *slot) {
  hd_builder_t *b = &k->draft.b;
  if (r->parts == 1)
    return slot;
  const hd_expr_t *owner = hd_b_op_int(b, HD_EXPR_DIV, slot, r->height);
  const hd_expr_t *own = hd_b_op_int(b, HD_EXPR_MOD, slot, r->height);
  return hd_b_op(b, HD_EXPR_ADD, hd_b_op_int(b, HD_EXPR_MUL, owner, k->c.tm),
                 hd_b_op_int(b, HD_EXPR_ADD, own, r->part * r->height));
}

// An element, through what the definition makes of the sum.
static void put_result(hd_product_t *k, const results_t *r,
                       const hd_expr_t *slot, const hd_expr_t *column) {
  hd_builder_t *b = &k->draft.b;
  hd_axis_place_t place;
  hd_place_find(&k->draft, &k->c.n, k->tiles[1].first, column, &place);
  const hd_expr_t *at[] = {slot, column};
  hd_open_block_t block;
  hd_b_open(b, &block);
  const hd_expr_t *value = hd_b_load(b, r->shared, at, 2);
  hd_draft_store_reduced(&k->draft, &k->c.reduced, &value);
  hd_block_t body = hd_b_close(b);
  bool is_inside = r->lanes > 1; // All of them are, as has been asked.
  hd_b_if(b, is_inside ? NULL : hd_place_inside(b, &k->c.n, &place, k->c.bn),
          body, (hd_block_t){0});
}

// Neighbours of a row, where they are inside.
static void put_lanes(hd_product_t *k, const results_t *r,
                      const hd_expr_t *slot, const hd_expr_t *column) {
  hd_builder_t *b = &k->draft.b;
  if (r->lanes == 1) {
    put_result(k, r, slot, column);
    return;
  }
  hd_axis_place_t place;
  const hd_expr_t *inside = NULL;
  if (k->c.n.size % k->c.bn) {
    hd_place_find(&k->draft, &k->c.n, k->tiles[1].first, column, &place);
    inside = hd_place_inside(b, &k->c.n, &place, k->c.bn);
  }
  const hd_var_t *var = hd_b_loop_var(b, "j", HD_I32);
  hd_open_block_t then, lane;
  hd_b_open(b, &then);
  hd_b_open(b, &lane);
  put_result(k, r, slot,
             hd_b_op(b, HD_EXPR_ADD, column, hd_expr_var(b->arena, var)));
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, var, hd_b_i32(b, 0), hd_b_i32(b, r->lanes), NULL, HD_UNROLL_FULL,
           body);
  body = hd_b_close(b);
  hd_b_if(b, inside, body, (hd_block_t){0});
}

// A part by all threads, neighbours next to each other.
static void put_part(hd_product_t *k, const results_t *r) {
  hd_builder_t *b = &k->draft.b;
  const hd_contraction_t *c = &k->c;
  int64_t across = c->bn / r->lanes;
  const hd_var_t *var = hd_b_loop_var(b, "e", HD_I32);
  hd_open_block_t block, then;
  hd_b_open(b, &block);
  const hd_expr_t *number = hd_b_op(
      b, HD_EXPR_ADD,
      hd_b_op_int(b, HD_EXPR_MUL, hd_expr_var(b->arena, var), c->threads),
      hd_b_thread(b));
  const hd_expr_t *slot =
      hd_b_let(b, "slot", hd_b_op_int(b, HD_EXPR_DIV, number, across));
  const hd_expr_t *column = hd_b_let(
      b, "lane_column",
      hd_b_op_int(b, HD_EXPR_MUL, hd_b_op_int(b, HD_EXPR_MOD, number, across),
                  r->lanes));
  hd_axis_place_t place;
  hd_place_find(&k->draft, &c->m, k->tiles[0].first, row_of(k, r, slot),
                &place);
  hd_b_open(b, &then);
  put_lanes(k, r, slot, column);
  hd_block_t body = hd_b_close(b);
  hd_b_if(b, hd_place_inside(b, &c->m, &place, c->bm), body, (hd_block_t){0});
  body = hd_b_close(b);
  hd_b_for(b, var, hd_b_i32(b, 0), hd_b_i32(b, r->rows * across / c->threads),
           NULL, 1, body);
}

// The results leave by rows, so that what becomes of them stands in one place
// and neighbours store what lies side by side.
static void put_results(hd_product_t *k, const hd_var_t *sum,
                        const hd_expr_t *const first[2]) {
  results_t r;
  find_results(k, &r);
  for (; r.part < r.parts; r.part++) {
    if (r.part > 0)
      hd_b_barrier(&k->draft.b);
    put_sums(k, sum, first, &r);
    hd_b_barrier(&k->draft.b);
    put_part(k, &r);
  }
}

// Which tile of the result the block makes.
static void place_block(hd_product_t *k) {
  hd_builder_t *b = &k->draft.b;
  hd_contraction_t *c = &k->c;
  int64_t rows = (c->m.size + c->bm - 1) / c->bm;
  int64_t columns = (c->n.size + c->bn - 1) / c->bn;
  const hd_expr_t *number = hd_expr_builtin(b->arena, HD_BUILTIN_BLOCK);
  if (hd_contraction_blocks(c) == 1)
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

static void make_tiles(hd_product_t *k) {
  hd_contraction_t *c = &k->c;
  hd_operand_tile_t tiles[2] = {{.term = c->a, .axis = &c->m, .rows = c->bm},
                                {.term = c->b, .axis = &c->n, .rows = c->bn}};
  for (int i = 0; i < 2; i++) {
    int64_t shape[] = {HD_CONTRACT_STEP, tiles[i].rows + HD_CONTRACT_PADDING};
    tiles[i].shared = hd_b_shared(&k->draft.b, i ? "tile_b" : "tile_a",
                                  c->sum->type.scalar, shape, 2, NULL);
    const hd_axis_t *axis = tiles[i].axis;
    tiles[i].k_is_fast =
        !hd_reads_along(tiles[i].term, axis->indices, axis->count);
    k->tiles[i] = tiles[i];
  }
}

bool hd_rule_contract(hd_rules_t *rules, const hd_definition_t *d) {
  hd_product_t *k = HD_ARENA_NEW(&rules->module->arena, hd_product_t);
  hd_contraction_t *c = &k->c;
  if (!hd_contraction_find(&rules->module->arena, d, c))
    return false;
  hd_draft_begin(&k->draft, rules);
  hd_builder_t *b = &k->draft.b;
  make_tiles(k);
  place_block(k);
  int64_t shape[] = {c->tm, c->tn};
  hd_scalar_t type = c->sum->type.scalar;
  const hd_var_t *sum =
      hd_b_register(b, "sum", type, shape, 2, hd_b_zero(b, type));
  const hd_expr_t *thread = hd_b_thread(b), *first[2];
  first[0] =
      hd_b_op_int(b, HD_EXPR_MUL,
                  hd_b_op_int(b, HD_EXPR_DIV, thread, c->bn / c->tn), c->tm);
  first[1] =
      hd_b_op_int(b, HD_EXPR_MUL,
                  hd_b_op_int(b, HD_EXPR_MOD, thread, c->bn / c->tn), c->tn);
  for (int i = 0; i < 2; i++)
    first[i] = hd_b_let(b, i ? "own_column" : "own_row", first[i]);
  hd_tile_copy_t *copies = HD_ARENA_ARRAY(b->arena, hd_tile_copy_t, 2);
  for (int i = 0; i < 2; i++)
    hd_copy_begin(k, &k->tiles[i], &copies[i]);
  const hd_var_t *step = hd_b_loop_var(b, "step_k", HD_I32);
  hd_open_block_t block;
  hd_b_open(b, &block);
  const hd_expr_t *first_k = hd_copy_step(k, hd_expr_var(b->arena, step));
  for (int i = 0; i < 2; i++)
    hd_copy_put(k, &k->tiles[i], &copies[i], first_k);
  hd_b_barrier(b);
  put_products(k, sum, first);
  hd_b_barrier(b);
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, step, hd_b_i32(b, 0),
           hd_b_i32(b, (c->k.size + HD_CONTRACT_STEP - 1) / HD_CONTRACT_STEP),
           NULL, 1, body);
  put_results(k, sum, first);
  hd_draft_finish_linear(&k->draft, "", hd_contraction_blocks(c), c->threads);
  return true;
}
