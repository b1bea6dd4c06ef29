// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows: what the threads of a row have combined becomes what all have. Inside a
// warp by shuffles, from neighbours on, so that operands keep their order;
// between warps, and where neighbours take rows, through shared memory, which
// everyone reads in one order; between the blocks of a cluster likewise. So
// results are the same each time, and in each thread.
#include "Schedule/Rows/Rows.h"

#include "IR/Intrinsic.h"

enum { WARP = 32 };

// The type in which a value is shuffled; HD_I64: as two halves.
static hd_scalar_t shuffled_type(hd_scalar_t type) {
  unsigned bits = hd_scalar_bits(type);
  if (bits == 64)
    return HD_I64;
  return hd_type_is_float(hd_type(type)) ? HD_F32
         : type == HD_U32                ? HD_U32
                                         : HD_I32;
}

static const hd_expr_t *shuffle(hd_builder_t *b, const hd_expr_t *x,
                                int64_t distance) {
  const hd_expr_t *operands[] = {x, hd_b_i32(b, distance)};
  return hd_b_intrinsic(b, HD_INTRINSIC_SHFL_XOR, x->type, operands, 2);
}

// The value of the thread that far away in the warp.
static const hd_expr_t *get_other(hd_builder_t *b, const hd_expr_t *x,
                                  int64_t distance) {
  hd_scalar_t type = (hd_scalar_t)x->type.scalar;
  hd_scalar_t by = shuffled_type(type);
  if (by != HD_I64) {
    const hd_expr_t *other =
        hd_b_let(b, "other", shuffle(b, hd_b_cast(b, by, x), distance));
    return hd_type_is_bool(x->type) ? hd_b_op_int(b, HD_EXPR_NE, other, 0)
                                    : hd_b_cast(b, type, other);
  }
  const hd_expr_t *bits = hd_b_let(b, "bits", hd_b_bitcast(b, HD_U64, x));
  const hd_expr_t *low =
      hd_b_let(b, "low", shuffle(b, hd_b_cast(b, HD_U32, bits), distance));
  const hd_expr_t *high = hd_b_op_int(b, HD_EXPR_SHR, bits, 32);
  high = hd_b_let(b, "high", shuffle(b, hd_b_cast(b, HD_U32, high), distance));
  const hd_expr_t *both =
      hd_b_op(b, HD_EXPR_BITOR,
              hd_b_op_int(b, HD_EXPR_SHL, hd_b_cast(b, HD_U64, high), 32),
              hd_b_cast(b, HD_U64, low));
  return hd_b_bitcast(b, type, both);
}

static void combine_neighbours(hd_row_maker_t *m, const hd_row_step_t *step,
                               int64_t distance) {
  hd_builder_t *b = &m->draft.b;
  const hd_expr_t *left[HD_MAX_COMPONENTS], *right[HD_MAX_COMPONENTS];
  const hd_expr_t *result[HD_MAX_COMPONENTS];
  bool commutes = step->term->u.reduction->monoid->builtin != HD_MONOID_COUNT;
  const hd_expr_t *is_right =
      commutes
          ? NULL
          : hd_b_op_int(b, HD_EXPR_NE,
                        hd_b_op_int(b, HD_EXPR_BITAND, m->worker, distance), 0);
  for (unsigned i = 0; i < step->num_values; i++) {
    const hd_expr_t *own = hd_b_let(b, "own", hd_b_get(b, step->cells[i]));
    const hd_expr_t *other = hd_b_let(b, "other", get_other(b, own, distance));
    left[i] = commutes
                  ? own
                  : hd_b_let(b, "left",
                             hd_expr_select(b->arena, is_right, other, own));
    right[i] = commutes
                   ? other
                   : hd_b_let(b, "right",
                              hd_expr_select(b->arena, is_right, own, other));
  }
  hd_translate_combination(&m->draft.t, step->term, left, right, result);
  for (unsigned i = 0; i < step->num_values; i++)
    result[i] = hd_b_let(b, "both", result[i]);
  for (unsigned i = 0; i < step->num_values; i++)
    hd_b_set(b, step->cells[i], result[i]);
}

// cells = those of all parts, in order. Threads that differ in fast read
// neighbours.
static void gather(hd_row_maker_t *m, const hd_row_step_t *step,
                   const hd_var_t *const *parts, int64_t count) {
  hd_builder_t *b = &m->draft.b;
  const hd_expr_t *values[HD_MAX_COMPONENTS];
  bool along = !m->across[HD_ACROSS_THREAD];
  const hd_expr_t *at[2];
  at[along] = hd_b_i32(b, 0);
  at[!along] = m->slot;
  for (unsigned i = 0; i < step->num_values; i++)
    hd_b_set(b, step->cells[i], hd_b_load(b, parts[i], at, 2));
  const hd_var_t *var = hd_b_loop_var(b, "part", HD_I32);
  hd_open_block_t block;
  hd_b_open(b, &block);
  at[along] = hd_expr_var(b->arena, var);
  for (unsigned i = 0; i < step->num_values; i++)
    values[i] = hd_b_load(b, parts[i], at, 2);
  hd_translate_combine(&m->draft.t, step->term, step->cells, values);
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, var, hd_b_i32(b, 1), hd_b_i32(b, count), NULL, 0, body);
}

static void share(hd_row_maker_t *m, const hd_row_step_t *step, int64_t count,
                  const hd_expr_t *number, const hd_expr_t *writes) {
  hd_builder_t *b = &m->draft.b;
  bool along = !m->across[HD_ACROSS_THREAD];
  int64_t shape[2];
  const hd_var_t *parts[HD_MAX_COMPONENTS];
  const hd_expr_t *at[2];
  shape[along] = count;
  shape[!along] = m->slots;
  at[along] = number;
  at[!along] = m->slot;
  for (unsigned i = 0; i < step->num_values; i++)
    parts[i] = hd_b_shared(b, "parts", step->term->operands[i]->type.scalar,
                           shape, 2, NULL);
  hd_open_block_t block;
  hd_b_open(b, &block);
  for (unsigned i = 0; i < step->num_values; i++)
    hd_b_store(b, parts[i], at, 2, hd_b_get(b, step->cells[i]));
  hd_block_t then = hd_b_close(b);
  hd_b_if(b, writes, then, (hd_block_t){0});
  hd_b_barrier(b);
  bool alone = m->rows->first_alone && step->phase + 1 == m->rows->phases;
  hd_b_open(b, &block);
  gather(m, step, parts, count);
  then = hd_b_close(b);
  hd_b_if(b, alone ? hd_b_op_int(b, HD_EXPR_EQ, m->worker, 0) : NULL, then,
          (hd_block_t){0});
}

// The type in which a value goes to another block.
static hd_scalar_t sent_type(hd_scalar_t type) {
  unsigned bits = hd_scalar_bits(type);
  if (hd_type_is_float(hd_type(type)))
    return bits == 64 ? HD_F64 : HD_F32;
  return bits == 64 ? HD_U64 : type == HD_U32 ? HD_U32 : HD_I32;
}

static const hd_expr_t *convert(hd_builder_t *b, hd_scalar_t type,
                                const hd_expr_t *e) {
  hd_scalar_t from = (hd_scalar_t)e->type.scalar;
  if (from == type)
    return e;
  if (type == HD_BOOL)
    return hd_b_op_int(b, HD_EXPR_NE, e, 0);
  return hd_scalar_bits(from) == 64 ? hd_b_bitcast(b, type, e)
                                    : hd_b_cast(b, type, e);
}

// cells of each component = those that the block of that rank has sent.
static void take_sent(hd_row_maker_t *m, const hd_row_step_t *step,
                      const hd_var_t *const *parts, const hd_expr_t *rank,
                      const hd_expr_t **values) {
  hd_builder_t *b = &m->draft.b;
  const hd_expr_t *at[] = {rank, m->slot};
  for (unsigned i = 0; i < step->num_values; i++)
    values[i] = convert(b, (hd_scalar_t)step->cells[i]->type.scalar,
                        hd_b_load(b, parts[i], at, 2));
}

// A block's shared memory is there once the block has begun.
void hd_rows_arrive(hd_row_maker_t *m) {
  m->arrived = m->across[HD_ACROSS_CLUSTER] > 1 && m->rows->phases > 0;
  if (m->arrived)
    hd_b_command(&m->draft.b, HD_INTRINSIC_CLUSTER_ARRIVE_RELAXED);
}

// Every block's first thread of a row sends what its block has to all of them,
// which combine that in the order of their ranks.
static void combine_blocks(hd_row_maker_t *m, const hd_row_step_t *step) {
  hd_builder_t *b = &m->draft.b;
  int64_t shape[] = {m->across[HD_ACROSS_CLUSTER], m->slots};
  const hd_var_t *parts[HD_MAX_COMPONENTS];
  const hd_expr_t *own = hd_expr_builtin(b->arena, HD_BUILTIN_CLUSTER);
  const hd_expr_t *at[] = {own, m->slot}, *values[HD_MAX_COMPONENTS];
  hd_open_block_t block;
  for (unsigned i = 0; i < step->num_values; i++)
    parts[i] = hd_b_shared(b, "blocks",
                           sent_type((hd_scalar_t)step->cells[i]->type.scalar),
                           shape, 2, NULL);
  if (m->arrived)
    hd_b_command(b, HD_INTRINSIC_CLUSTER_WAIT);
  m->arrived = false;
  const hd_var_t *to = hd_b_loop_var(b, "to", HD_I32);
  hd_b_open(b, &block);
  for (unsigned i = 0; i < step->num_values; i++) {
    const hd_expr_t *operands[] = {
        hd_expr_access(b->arena, HD_EXPR_REF, parts[i], 1, at, 2),
        hd_expr_var(b->arena, to),
        convert(b, (hd_scalar_t)parts[i]->type.scalar,
                hd_b_get(b, step->cells[i]))};
    hd_b_call(b, hd_b_intrinsic(b, HD_INTRINSIC_STORE_REMOTE, hd_type(HD_VOID),
                                operands, 3));
  }
  hd_block_t body = hd_b_close(b);
  hd_b_open(b, &block);
  hd_b_for(b, to, hd_b_i32(b, 0), hd_b_i32(b, shape[0]), NULL, 0, body);
  body = hd_b_close(b);
  hd_b_if(b, hd_b_op_int(b, HD_EXPR_EQ, m->worker, 0), body, (hd_block_t){0});
  hd_b_command(b, HD_INTRINSIC_CLUSTER_SYNC);
  take_sent(m, step, parts, hd_b_i32(b, 0), values);
  for (unsigned i = 0; i < step->num_values; i++)
    hd_b_set(b, step->cells[i], values[i]);
  const hd_var_t *rank = hd_b_loop_var(b, "rank", HD_I32);
  hd_b_open(b, &block);
  take_sent(m, step, parts, hd_expr_var(b->arena, rank), values);
  hd_translate_combine(&m->draft.t, step->term, step->cells, values);
  body = hd_b_close(b);
  hd_b_for(b, rank, hd_b_i32(b, 1), hd_b_i32(b, shape[0]), NULL, 0, body);
}

void hd_rows_leave_parts(hd_row_maker_t *m, const hd_row_step_t *step) {
  hd_builder_t *b = &m->draft.b;
  const hd_expr_t *at[] = {m->row, m->rank};
  hd_open_block_t block;
  hd_b_open(b, &block);
  for (unsigned i = 0; i < step->num_values; i++)
    hd_b_store(b, hd_translate_tensor(&m->draft.t, step->parts[i], HD_DIR_OUT),
               at, 2, hd_b_get(b, step->cells[i]));
  hd_block_t then = hd_b_close(b);
  hd_b_if(b, hd_b_and(b, hd_b_op_int(b, HD_EXPR_EQ, m->worker, 0), m->exists),
          then, (hd_block_t){0});
}

void hd_rows_take_parts(hd_row_maker_t *m, const hd_row_step_t *step) {
  hd_builder_t *b = &m->draft.b;
  int64_t workers =
      (int64_t)m->across[HD_ACROSS_LANE] * m->across[HD_ACROSS_WARP];
  const hd_expr_t *values[HD_MAX_COMPONENTS];
  const hd_var_t *part = hd_b_loop_var(b, "part", HD_I32);
  const hd_expr_t *at[] = {m->row, hd_expr_var(b->arena, part)};
  hd_open_block_t block;
  hd_b_open(b, &block);
  for (unsigned i = 0; i < step->num_values; i++)
    values[i] = hd_b_load(
        b, hd_translate_tensor(&m->draft.t, step->parts[i], HD_DIR_IN), at, 2);
  hd_translate_combine(&m->draft.t, step->term, step->cells, values);
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, part, m->worker, hd_b_i32(b, m->across[HD_ACROSS_GRID]),
           hd_b_i32(b, workers), 0, body);
}

void hd_rows_combine(hd_row_maker_t *m, const hd_row_step_t *step) {
  hd_builder_t *b = &m->draft.b;
  int64_t lanes = m->across[HD_ACROSS_LANE], warps = m->across[HD_ACROSS_WARP];
  int64_t apart = m->across[HD_ACROSS_THREAD];
  for (int64_t distance = 1; distance < lanes; distance *= 2)
    combine_neighbours(m, step, distance);
  if (apart > 1)
    share(m, step, apart, m->worker, NULL);
  if (warps > 1)
    share(m, step, warps, hd_b_op_int(b, HD_EXPR_DIV, m->worker, WARP),
          hd_b_op_int(b, HD_EXPR_EQ,
                      hd_b_op_int(b, HD_EXPR_MOD, m->worker, WARP), 0));
  if (m->across[HD_ACROSS_CLUSTER] > 1)
    combine_blocks(m, step);
}
