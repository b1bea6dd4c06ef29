// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles of the factors, from global to shared memory: elements are read as the
// task writes them. Rows are found before the loop over k, what lies along k in
// it.
#include "Schedule/Rules/Contract.h"

void hd_place_find(hd_kernel_draft_t *draft, const hd_axis_t *axis,
                   const hd_expr_t *first, const hd_expr_t *number,
                   hd_axis_place_t *place) {
  place->number = number;
  place->at =
      hd_b_let(&draft->b, "at", hd_b_op(&draft->b, HD_EXPR_ADD, first, number));
  hd_draft_place(draft, place->at, axis->indices, axis->count);
  for (unsigned i = 0; i < axis->count; i++)
    place->values[i] = hd_ptr_map_get(&draft->t.indices, axis->indices[i]);
}

void hd_place_use(hd_kernel_draft_t *draft, const hd_axis_t *axis,
                  const hd_axis_place_t *place) {
  for (unsigned i = 0; i < axis->count; i++)
    hd_translate_bind(&draft->t, axis->indices[i], place->values[i]);
}

// at < size, where that is not so by the sizes; else NULL.
const hd_expr_t *hd_place_inside(hd_builder_t *b, const hd_axis_t *axis,
                                 const hd_axis_place_t *place, int64_t tile) {
  return axis->size % tile ? hd_b_op_int(b, HD_EXPR_LT, place->at, axis->size)
                           : NULL;
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
    return hd_expr_select(b->arena, inside, value, hd_b_zero(b, type));
  }
  const hd_var_t *cell =
      hd_b_tensor(b, HD_SCOPE_REGISTER, "element", type, NULL, 0, NULL);
  hd_b_set(b, cell, value);
  hd_block_t then = hd_b_close(b);
  hd_b_declare(b, cell, hd_b_zero(b, type));
  hd_b_if(b, inside, then, (hd_block_t){0});
  return hd_b_get(b, cell);
}

static void make_share(hd_product_t *k, int64_t fast, int64_t slow,
                       hd_share_t *s) {
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

void hd_copy_begin(hd_product_t *k, hd_operand_tile_t *tile,
                   hd_tile_copy_t *copy) {
  if (tile->k_is_fast)
    make_share(k, HD_CONTRACT_STEP, tile->rows, &copy->share);
  else
    make_share(k, tile->rows, HD_CONTRACT_STEP, &copy->share);
  const hd_expr_t *const *rows =
      tile->k_is_fast ? copy->share.slow : copy->share.fast;
  copy->num_rows =
      tile->k_is_fast ? copy->share.num_slow : copy->share.num_fast;
  for (unsigned i = 0; i < copy->num_rows; i++)
    hd_place_find(&k->draft, tile->axis, tile->first, rows[i], &copy->rows[i]);
}

// Where a step of whole ones begins: the last index of k, and what is the same
// all through it.
const hd_expr_t *hd_copy_step(hd_product_t *k, const hd_expr_t *step) {
  hd_builder_t *b = &k->draft.b;
  const hd_axis_t *axis = &k->c.k;
  if (!k->c.whole)
    return hd_b_let(b, "first_k",
                    hd_b_op_int(b, HD_EXPR_MUL, step, HD_CONTRACT_STEP));
  int64_t steps =
      hd_flat_range(axis->indices[axis->count - 1]) / HD_CONTRACT_STEP;
  if (axis->count > 1)
    hd_draft_place(&k->draft, hd_b_op_int(b, HD_EXPR_DIV, step, steps),
                   axis->indices, axis->count - 1);
  if (axis->count > 1)
    step = hd_b_op_int(b, HD_EXPR_MOD, step, steps);
  return hd_b_let(b, "first_k",
                  hd_b_op_int(b, HD_EXPR_MUL, step, HD_CONTRACT_STEP));
}

static void find_k(hd_product_t *k, const hd_expr_t *first,
                   const hd_expr_t *number, hd_axis_place_t *place) {
  if (!k->c.whole) {
    hd_place_find(&k->draft, &k->c.k, first, number, place);
    return;
  }
  place->number = number;
  place->at = hd_b_let(&k->draft.b, "at",
                       hd_b_op(&k->draft.b, HD_EXPR_ADD, first, number));
}

static void use_k(hd_product_t *k, const hd_axis_place_t *place) {
  const hd_axis_t *axis = &k->c.k;
  if (k->c.whole)
    hd_translate_bind(&k->draft.t, axis->indices[axis->count - 1], place->at);
  else
    hd_place_use(&k->draft, axis, place);
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
static const hd_expr_t *assume_inside(hd_product_t *k,
                                      const hd_term_t *access) {
  hd_builder_t *b = &k->draft.b;
  hd_translator_t *t = &k->draft.t;
  const hd_index_t *inner = k->c.k.indices[k->c.k.count - 1];
  const hd_expr_t *inside = NULL;
  for (uint32_t i = 0; i < access->u.value->rank; i++) {
    int64_t size = hd_flat_size(access->u.value, i);
    hd_worth_t at = hd_translate_worth(t, access->operands[i]);
    if (at.range.least >= 0 && at.range.greatest < size)
      continue;
    if (hd_flat_uses(access->operands[i], inner))
      return NULL;
    if (at.range.least < 0)
      inside = hd_b_and(b, inside, hd_b_op_int(b, HD_EXPR_GE, at.e, 0));
    if (at.range.greatest >= size)
      inside = hd_b_and(b, inside, hd_b_op_int(b, HD_EXPR_LT, at.e, size));
    hd_worth_t fact = {at.e, {0, size - 1}};
    hd_vec_push(b->arena, &t->facts, fact);
  }
  return inside;
}

// What is copied of one row.
typedef struct row_copy {
  const hd_operand_tile_t *tile;
  const hd_axis_place_t *row;
  const hd_axis_place_t *along;
  unsigned num_along;
} row_copy_t;

// term NULL is 0.
static hd_block_t copy_row(hd_product_t *k, const row_copy_t *copy,
                           const hd_term_t *term) {
  hd_builder_t *b = &k->draft.b;
  const hd_operand_tile_t *tile = copy->tile;
  hd_open_block_t block;
  hd_b_open(b, &block);
  for (unsigned i = 0; i < copy->num_along; i++) {
    const hd_axis_place_t *along = &copy->along[i];
    use_k(k, along);
    const hd_expr_t *at[] = {along->number, copy->row->number};
    const hd_expr_t *value =
        term ? guarded(&k->draft,
                       hd_place_inside(b, &k->c.k, along, HD_CONTRACT_STEP),
                       term)
             : hd_b_zero(b, tile->term->type.scalar);
    hd_b_store(b, tile->shared, at, 2, value);
  }
  return hd_b_close(b);
}

// A row, where it is one of the matrix'.
static hd_block_t put_row(hd_product_t *k, const row_copy_t *copy) {
  hd_builder_t *b = &k->draft.b;
  hd_translator_t *t = &k->draft.t;
  const hd_term_t *term = copy->tile->term;
  guarded_access_t g = {0};
  size_t facts = t->facts.size;
  hd_open_block_t block;
  hd_b_open(b, &block);
  hd_place_use(&k->draft, copy->tile->axis, copy->row);
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

void hd_copy_put(hd_product_t *k, const hd_operand_tile_t *tile,
                 const hd_tile_copy_t *copy, const hd_expr_t *first) {
  hd_builder_t *b = &k->draft.b;
  const hd_share_t *s = &copy->share;
  const hd_expr_t *const *ks = tile->k_is_fast ? s->fast : s->slow;
  unsigned count = tile->k_is_fast ? s->num_fast : s->num_slow;
  hd_axis_place_t *along = HD_ARENA_ARRAY(b->arena, hd_axis_place_t, count);
  for (unsigned i = 0; i < count; i++)
    find_k(k, first, ks[i], &along[i]);
  for (unsigned i = 0; i < copy->num_rows; i++) {
    row_copy_t row = {tile, &copy->rows[i], along, count};
    const hd_expr_t *exists =
        hd_place_inside(b, tile->axis, row.row, tile->rows);
    hd_block_t then = put_row(k, &row);
    hd_b_if(b, exists, then,
            exists ? copy_row(k, &row, NULL) : (hd_block_t){0});
  }
}
