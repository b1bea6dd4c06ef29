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
#include "Schedule/Contract.h"

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

// Element (i, j) of a thread's results, through what the definition makes of
// the sum, where column is inside (NULL: it is).
static void put_result(hd_product_t *k, const hd_var_t *sum,
                       const hd_expr_t *const at[2],
                       const hd_axis_place_t *column, const hd_expr_t *inside) {
  hd_builder_t *b = &k->draft.b;
  hd_open_block_t block;
  hd_place_use(&k->draft, &k->c.n, column);
  hd_b_open(b, &block);
  const hd_expr_t *value = hd_b_load(b, sum, at, 2);
  hd_draft_store_reduced(&k->draft, &k->c.reduced, &value);
  hd_block_t body = hd_b_close(b);
  hd_b_if(b, inside, body, (hd_block_t){0});
}

// A row of a thread's results as a loop, which vectorize joins where they lie
// side by side: the columns are one index.
static void put_row(hd_product_t *k, const hd_var_t *sum, const hd_expr_t *i,
                    const hd_expr_t *first) {
  hd_builder_t *b = &k->draft.b;
  const hd_contraction_t *c = &k->c;
  const hd_var_t *var = hd_b_loop_var(b, "j", HD_I32);
  const hd_expr_t *at[2] = {i, hd_expr_var(b->arena, var)};
  bool at_once = c->n.size % c->tn == 0; // All inside, or none.
  const hd_expr_t *inside = NULL;
  hd_axis_place_t column;
  hd_open_block_t row, block;
  if (at_once && c->n.size % c->bn) {
    hd_place_find(&k->draft, &c->n, k->tiles[1].first, first, &column);
    inside = hd_place_inside(b, &c->n, &column, c->bn);
  }
  hd_b_open(b, &row);
  hd_b_open(b, &block);
  hd_place_find(&k->draft, &c->n, k->tiles[1].first,
                hd_b_op(b, HD_EXPR_ADD, first, at[1]), &column);
  put_result(k, sum, at, &column,
             at_once ? NULL : hd_place_inside(b, &c->n, &column, c->bn));
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, var, hd_b_i32(b, 0), hd_b_i32(b, c->tn), NULL, HD_UNROLL_FULL,
           body);
  body = hd_b_close(b);
  hd_b_if(b, inside, body, (hd_block_t){0});
}

static void put_results(hd_product_t *k, const hd_var_t *sum,
                        const hd_expr_t *const first[2]) {
  hd_kernel_draft_t *draft = &k->draft;
  hd_builder_t *b = &draft->b;
  const hd_contraction_t *c = &k->c;
  hd_axis_place_t columns[8];
  bool is_row = c->n.count == 1;
  for (int64_t j = 0; !is_row && j < c->tn; j++)
    hd_place_find(draft, &c->n, k->tiles[1].first,
                  hd_b_op_int(b, HD_EXPR_ADD, first[1], j), &columns[j]);
  const hd_var_t *var = hd_b_loop_var(b, "i", HD_I32);
  const hd_expr_t *at[2] = {hd_expr_var(b->arena, var), NULL};
  hd_open_block_t rows, row;
  hd_b_open(b, &rows);
  hd_axis_place_t place;
  hd_place_find(draft, &c->m, k->tiles[0].first,
                hd_b_op(b, HD_EXPR_ADD, first[0], at[0]), &place);
  hd_b_open(b, &row);
  if (is_row)
    put_row(k, sum, at[0], first[1]);
  for (int64_t j = 0; !is_row && j < c->tn; j++) {
    at[1] = hd_b_i32(b, j);
    put_result(k, sum, at, &columns[j],
               hd_place_inside(b, &c->n, &columns[j], c->bn));
  }
  hd_block_t body = hd_b_close(b);
  hd_b_if(b, hd_place_inside(b, &c->m, &place, c->bm), body, (hd_block_t){0});
  body = hd_b_close(b);
  hd_b_for(b, var, hd_b_i32(b, 0), hd_b_i32(b, c->tm), NULL, HD_UNROLL_FULL,
           body);
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
  hd_tile_t tiles[2] = {{.term = c->a, .axis = &c->m, .rows = c->bm},
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
