// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread for each element, the last axis fastest over the threads:
//
//   y[i, j] = x[i, j] + b[j]
//
// becomes, a thread taking four neighbours,
//
//   let n = block * 256 + thread
//   if n < 12800 {
//     let j = n % 64
//     let i = n / 64
//     for e in 0..4 unroll {
//       y[i, j * 4 + e] = x[i, j * 4 + e] + b[j * 4 + e]
//     }
//   }
//
// which the pass vectorize makes accesses of 16 bytes. Neighbours go to one
// thread where all is read along the last axis as it is written, and nothing
// but expressions is computed. Elements below a byte always go by whole bytes.
#include "Schedule/Rules.h"

enum { THREADS = 256, VECTOR_BYTES = 16, MAX_LANES = 8 };

// Fewer elements than this leave a GPU waiting if threads take several.
enum { MIN_VECTOR_POINTS = 1 << 16 };

typedef struct walk {
  const hd_index_t *last;
  bool apart;
} walk_t;

// Whether neighbours along the last axis lie apart in what is read.
static bool is_apart(void *argument, const hd_term_t *term) {
  walk_t *w = argument;
  if (hd_flat_is_reduction(term))
    w->apart = true;
  if (term->kind != HD_TERM_LOAD && term->kind != HD_TERM_LOADELSE)
    return !w->apart;
  uint32_t rank = term->u.value->rank;
  for (uint32_t i = 0; i < rank; i++) {
    const hd_term_t *at = term->operands[i];
    bool alone = at->kind == HD_TERM_INDEX && at->u.index == w->last;
    if (hd_flat_uses(at, w->last) && !(alone && i + 1 == rank))
      w->apart = true;
  }
  return !w->apart;
}

// How many neighbours a thread takes.
static int64_t choose_lanes(const hd_definition_t *d, int64_t points) {
  unsigned bits = hd_scalar_bits(d->targets[0]->type.scalar);
  if (bits < 8)
    return 8 / bits;
  if (d->num_indices == 0 || d->num_targets > 1 || points < MIN_VECTOR_POINTS)
    return 1;
  walk_t w = {.last = d->indices[d->num_indices - 1]};
  int64_t lanes = VECTOR_BYTES / (bits / 8);
  lanes = lanes > MAX_LANES ? MAX_LANES : lanes;
  hd_flat_walk(d->term, is_apart, &w);
  return w.apart || hd_flat_range(w.last) % lanes ? 1 : lanes;
}

static bool is_simple(hd_block_t block) {
  for (uint32_t i = 0; i < block.size; i++)
    if (block.stmts[i]->kind != HD_STMT_LET &&
        block.stmts[i]->kind != HD_STMT_STORE)
      return false;
  return true;
}

// The elements number * lanes .. number * lanes + lanes - 1, of one row.
static bool put_row(hd_kernel_draft_t *draft, const hd_definition_t *d,
                    const hd_expr_t *number, int64_t lanes) {
  hd_builder_t *b = &draft->b;
  uint32_t rank = d->num_indices;
  const hd_index_t *indices[HD_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++)
    indices[i] = d->indices[i];
  const hd_index_t *last = indices[rank - 1];
  indices[rank - 1] =
      hd_flat_index_make(b->arena, last->name, hd_flat_range(last) / lanes);
  hd_draft_place(draft, number, indices, rank);
  const hd_expr_t *first =
      hd_b_op_int(b, HD_EXPR_MUL,
                  hd_ptr_map_get(&draft->t.indices, indices[rank - 1]), lanes);
  const hd_var_t *var = hd_b_loop_var(b, "e", (hd_scalar_t)first->type.scalar);
  hd_open_block_t block;
  hd_b_open(b, &block);
  hd_translate_bind(&draft->t, last,
                    hd_b_op(b, HD_EXPR_ADD, first, hd_expr_var(b->arena, var)));
  hd_draft_define(draft, d);
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, var, hd_expr_int(b->arena, var->type, 0),
           hd_expr_int(b->arena, var->type, lanes), NULL, HD_UNROLL_FULL, body);
  return is_simple(body);
}

// Likewise, wherever a row ends.
static void put_bytes(hd_kernel_draft_t *draft, const hd_definition_t *d,
                      const hd_expr_t *number, int64_t lanes, int64_t points) {
  hd_builder_t *b = &draft->b;
  const hd_expr_t *first = hd_b_op_int(b, HD_EXPR_MUL, number, lanes);
  const hd_var_t *var = hd_b_loop_var(b, "e", (hd_scalar_t)first->type.scalar);
  hd_open_block_t block, inner;
  hd_b_open(b, &block);
  const hd_expr_t *at = hd_b_let(
      b, "at", hd_b_op(b, HD_EXPR_ADD, first, hd_expr_var(b->arena, var)));
  hd_b_open(b, &inner);
  hd_draft_place(draft, at, d->indices, d->num_indices);
  hd_draft_define(draft, d);
  hd_block_t then = hd_b_close(b);
  hd_b_if(b, points % lanes ? hd_b_op_int(b, HD_EXPR_LT, at, points) : NULL,
          then, (hd_block_t){0});
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, var, hd_expr_int(b->arena, var->type, 0),
           hd_expr_int(b->arena, var->type, lanes), NULL, 0, body);
}

static bool make(hd_rules_t *rules, const hd_definition_t *d, int64_t lanes) {
  hd_kernel_draft_t draft;
  hd_draft_begin(&draft, rules);
  hd_builder_t *b = &draft.b;
  int64_t points = hd_flat_points(d->indices, d->num_indices);
  int64_t workers = (points + lanes - 1) / lanes;
  int64_t threads = workers >= THREADS ? THREADS : (workers + 31) / 32 * 32;
  int64_t blocks = (workers + threads - 1) / threads;
  hd_scalar_t type =
      points <= INT32_MAX - THREADS * MAX_LANES ? HD_I32 : HD_I64;
  const hd_expr_t *block =
      blocks == 1
          ? hd_b_int(b, type, 0)
          : hd_b_cast(b, type, hd_expr_builtin(b->arena, HD_BUILTIN_BLOCK));
  const hd_expr_t *number =
      hd_b_op(b, HD_EXPR_ADD, hd_b_op_int(b, HD_EXPR_MUL, block, threads),
              hd_b_cast(b, type, hd_b_thread(b)));
  number = hd_b_let(b, "n", number);
  bool good = true, is_packed = hd_scalar_bits(d->targets[0]->type.scalar) < 8;
  hd_open_block_t inner;
  hd_b_open(b, &inner);
  if (is_packed) {
    put_bytes(&draft, d, number, lanes, points);
  } else if (lanes > 1) {
    good = put_row(&draft, d, number, lanes);
  } else {
    hd_draft_place(&draft, number, d->indices, d->num_indices);
    hd_draft_define(&draft, d);
  }
  hd_block_t then = hd_b_close(b);
  if (!good)
    return false;
  hd_b_if(
      b, workers % threads ? hd_b_op_int(b, HD_EXPR_LT, number, workers) : NULL,
      then, (hd_block_t){0});
  hd_draft_finish_linear(&draft, "", blocks, threads);
  return true;
}

void hd_rule_pointwise(hd_rules_t *rules, const hd_definition_t *d) {
  int64_t lanes = choose_lanes(d, hd_flat_points(d->indices, d->num_indices));
  if (!make(rules, d, lanes))
    make(rules, d, 1);
}
