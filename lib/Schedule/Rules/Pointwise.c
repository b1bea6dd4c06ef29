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
//
// Where they are read apart, but those of neighbouring threads side by side, as
// planes are that become channels,
//
//   y[i, j] = x[j % 4, i, j / 4]
//
// a thread takes so many that this is so: each load is of 128 bytes then for
// all threads of a warp, and what is stored is vectors again.
#include "Schedule/Rules/Rules.h"
#include "Schedule/Terms/Affine.h"

enum { THREADS = 256, VECTOR_BYTES = 16, MAX_LANES = 8, WARP = 32 };

// Fewer elements than this leave a GPU waiting if threads take several.
enum { MIN_VECTOR_POINTS = 1 << 16, MIN_TURNED_THREADS = 1 << 15 };

typedef struct walk {
  const hd_index_t *last;
  bool apart, reduces;
} walk_t;

// Whether neighbours along the last axis lie apart in what is read.
static bool is_apart(void *argument, const hd_term_t *term) {
  walk_t *w = argument;
  if (hd_flat_is_reduction(term))
    w->apart = w->reduces = true;
  if (!hd_flat_is_load(term))
    return true;
  uint32_t rank = term->u.value->rank;
  for (uint32_t i = 0; i < rank; i++) {
    const hd_term_t *at = term->operands[i];
    bool alone = at->kind == HD_TERM_INDEX && at->u.index == w->last;
    if (hd_flat_uses(at, w->last) && !(alone && i + 1 == rank))
      w->apart = true;
  }
  return !w->reduces;
}

typedef struct strides {
  hd_arena_t *arena;
  const hd_index_t *last;
  const hd_term_t *split; // thread * lanes + lane, for the last index.
  const hd_index_t *thread;
  bool beside; // So far, in all loads.
} strides_t;

static const hd_term_t *put_split(void *argument, const hd_term_t *term) {
  const strides_t *s = argument;
  return term->kind == HD_TERM_INDEX && term->u.index == s->last ? s->split
                                                                 : term;
}

// Whether a load's places lie side by side from thread to thread, or are the
// same.
static bool lies_beside(void *argument, const hd_term_t *term) {
  strides_t *s = argument;
  if (!hd_flat_is_load(term))
    return s->beside;
  int64_t shape[HD_MAX_RANK];
  const hd_term_t *places[HD_MAX_RANK];
  for (uint32_t i = 0; i < term->u.value->rank; i++) {
    shape[i] = hd_flat_size(term->u.value, i);
    places[i] = hd_flat_rewrite(s->arena, term->operands[i], put_split, s);
  }
  hd_linear_t sum;
  s->beside &= hd_affine_of(
      s->arena, hd_index_linear(s->arena, shape, term->u.value->rank, places),
      &sum);
  for (unsigned i = 0; s->beside && i < sum.size; i++) {
    const hd_term_t *atom = sum.terms[i].term;
    bool self = atom->kind == HD_TERM_INDEX && atom->u.index == s->thread;
    s->beside =
        self ? sum.terms[i].factor == 1 : !hd_flat_uses(atom, s->thread);
  }
  return s->beside;
}

// Whether neighbouring threads, of so many lanes each, read neighbours.
static bool reads_beside(hd_arena_t *arena, const hd_definition_t *d,
                         int64_t lanes) {
  const hd_index_t *last = d->indices[d->num_indices - 1];
  const hd_index_t *thread =
      hd_flat_index_make(arena, "thread", hd_flat_range(last) / lanes);
  const hd_index_t *lane = hd_flat_index_make(arena, "lane", lanes);
  const hd_term_t *first = hd_flat_operate_int(
      arena, HD_EXPR_MUL, hd_flat_index(arena, thread), lanes);
  strides_t s = {
      arena, last,
      hd_flat_operate(arena, HD_EXPR_ADD, first, hd_flat_index(arena, lane)),
      thread, true};
  hd_flat_walk(d->term, lies_beside, &s);
  return s.beside;
}

// --- Axes that change places ---

typedef struct turn {
  hd_arena_t *arena;
  const hd_definition_t *d;
  const hd_term_t *load; // The first one that is read across; NULL: none.
} turn_t;

// The index that a place runs with, by itself.
static const hd_index_t *runs_with(hd_arena_t *arena, const hd_term_t *place) {
  hd_linear_t sum;
  if (!hd_affine_of(arena, place, &sum) || sum.size != 1 ||
      sum.terms[0].factor != 1 || sum.terms[0].term->kind != HD_TERM_INDEX)
    return NULL;
  return sum.terms[0].term->u.index;
}

// Whether all places run with an index each, every element is read once, and a
// warp's worth of them lies together for each along the last axis of what is
// written.
static bool is_across(void *argument, const hd_term_t *term) {
  turn_t *t = argument;
  bool loads = hd_flat_is_load(term);
  bool across = false;
  int64_t together = 1;
  for (uint32_t i = loads ? term->u.value->rank : 0; i-- > 0;) {
    const hd_index_t *index = runs_with(t->arena, term->operands[i]);
    if (!index && term->operands[i]->kind != HD_TERM_CONST)
      return true;
    across |= index == t->d->indices[t->d->num_indices - 1] && together >= WARP;
    together *= index ? hd_flat_range(index) : 1;
  }
  if (across && together == hd_flat_points(t->d->indices, t->d->num_indices))
    t->load = term;
  return !t->load;
}

static bool is_among(const hd_index_t *const *indices, uint32_t count,
                     const hd_index_t *index) {
  for (uint32_t i = 0; i < count; i++)
    if (indices[i] == index)
      return true;
  return false;
}

// The axes of what is written, those of what is read across last, as they stand
// there. False where nothing is.
static bool find_turn(hd_arena_t *arena, const hd_definition_t *d,
                      const hd_index_t **order) {
  turn_t t = {arena, d, NULL};
  const hd_index_t *read[HD_MAX_RANK];
  uint32_t count = 0, n = 0;
  hd_flat_walk(d->term, is_across, &t);
  if (!t.load)
    return false;
  for (uint32_t i = 0; i < t.load->u.value->rank; i++) {
    const hd_index_t *index = runs_with(arena, t.load->operands[i]);
    if (index && is_among(d->indices, d->num_indices, index) &&
        !is_among(read, count, index))
      read[count++] = index;
  }
  for (uint32_t i = 0; i < d->num_indices; i++)
    if (!is_among(read, count, d->indices[i]))
      order[n++] = d->indices[i];
  for (uint32_t i = 0; i < count; i++)
    order[n++] = read[i];
  return true;
}

// --- How many neighbours a thread takes ---

typedef struct share {
  int64_t lanes;
  // The axes in the order in which threads are counted, the last one fastest.
  const hd_index_t *order[HD_MAX_RANK];
} share_t;

static int64_t choose_turned(hd_arena_t *arena, const hd_definition_t *d,
                             int64_t lanes, int64_t points, share_t *share) {
  int64_t range = hd_flat_range(d->indices[d->num_indices - 1]);
  while (lanes > 1 && (range % lanes || points / lanes < MIN_TURNED_THREADS))
    lanes /= 2;
  return lanes > 1 && find_turn(arena, d, share->order) ? lanes : 1;
}

static int64_t choose_lanes(hd_arena_t *arena, const hd_definition_t *d,
                            int64_t points, share_t *share) {
  unsigned bits = hd_scalar_bits(d->targets[0]->type.scalar);
  if (bits < 8)
    return 8 / bits;
  if (d->num_indices == 0 || d->num_targets > 1 || points < MIN_VECTOR_POINTS)
    return 1;
  walk_t w = {.last = d->indices[d->num_indices - 1]};
  int64_t most = VECTOR_BYTES / (bits / 8);
  most = most > MAX_LANES ? MAX_LANES : most;
  hd_flat_walk(d->term, is_apart, &w);
  if (!w.apart)
    return hd_flat_range(w.last) % most ? 1 : most;
  if (w.reduces || reads_beside(arena, d, 1))
    return 1;
  int64_t lanes = most;
  while (lanes > 1 &&
         (hd_flat_range(w.last) % lanes || !reads_beside(arena, d, lanes)))
    lanes /= 2;
  return lanes > 1 ? lanes : choose_turned(arena, d, most, points, share);
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
                    const hd_expr_t *number, const share_t *share) {
  hd_builder_t *b = &draft->b;
  uint32_t rank = d->num_indices;
  int64_t lanes = share->lanes;
  const hd_index_t *indices[HD_MAX_RANK], *last = d->indices[rank - 1];
  const hd_index_t *vectors =
      hd_flat_index_make(b->arena, last->name, hd_flat_range(last) / lanes);
  for (uint32_t i = 0; i < rank; i++)
    indices[i] = share->order[i] == last ? vectors : share->order[i];
  hd_draft_place(draft, number, indices, rank);
  const hd_expr_t *first = hd_b_op_int(
      b, HD_EXPR_MUL, hd_ptr_map_get(&draft->t.indices, vectors), lanes);
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

// Likewise of elements below a byte, wherever a row ends. What is past the end
// repeats the last element.
static void put_bytes(hd_kernel_draft_t *draft, const hd_definition_t *d,
                      const hd_expr_t *number, int64_t lanes, int64_t points) {
  hd_builder_t *b = &draft->b;
  const hd_expr_t *values[8];
  hd_scalar_t type = d->targets[0]->type.scalar;
  const hd_expr_t *first =
      hd_b_let(b, "first", hd_b_op_int(b, HD_EXPR_MUL, number, lanes));
  for (int64_t e = 0; e < lanes; e++) {
    const hd_expr_t *at = hd_b_op_int(b, HD_EXPR_ADD, first, e);
    if (points % lanes)
      at = hd_b_op_int(b, HD_EXPR_MIN, at, points - 1);
    hd_draft_place(draft, hd_b_let(b, "at", at), d->indices, d->num_indices);
    values[e] = hd_b_let(b, "value", hd_translate(&draft->t, d->term));
  }
  const hd_var_t *target = hd_draft_bytes(draft, d->targets[0], HD_DIR_OUT);
  hd_b_store(b, target, &first, 1,
             hd_expr_make(b->arena, HD_EXPR_VECTOR,
                          hd_type_vector(type, (unsigned)lanes), NULL, values,
                          (unsigned)lanes));
}

static bool make_pointwise(hd_rules_t *rules, const hd_definition_t *d,
                           const share_t *share) {
  hd_kernel_draft_t draft;
  int64_t lanes = share->lanes;
  hd_draft_begin(&draft, rules);
  int64_t points = hd_flat_points(d->indices, d->num_indices);
  hd_grid_t grid = hd_grid_linear((points + lanes - 1) / lanes, THREADS);
  hd_open_block_t inner;
  const hd_expr_t *number = hd_draft_open_workers(&draft, &grid, &inner);
  if (hd_scalar_bits(d->targets[0]->type.scalar) < 8) {
    put_bytes(&draft, d, number, lanes, points);
  } else if (lanes > 1) {
    if (!put_row(&draft, d, number, share))
      return false;
  } else {
    hd_draft_place(&draft, number, d->indices, d->num_indices);
    hd_draft_define(&draft, d);
  }
  hd_draft_finish_workers(&draft, &grid, "");
  return true;
}

void hd_rule_pointwise(hd_rules_t *rules, const hd_definition_t *d) {
  share_t share;
  for (uint32_t i = 0; i < d->num_indices; i++)
    share.order[i] = d->indices[i];
  share.lanes =
      choose_lanes(&rules->module->arena, d,
                   hd_flat_points(d->indices, d->num_indices), &share);
  if (make_pointwise(rules, d, &share))
    return;
  share.lanes = 1;
  make_pointwise(rules, d, &share);
}
