// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread for each row along the axis of a scan: it carries what was combined
// so far.
//
//   y[i, j] = scan sum(p: n to j) x[i, p]
//
// becomes, for row i,
//
//   register acc: f32 = 0
//   for p in 0..n {
//     acc = acc + x[i, p]
//     y[i, p] = acc
//   }
//
// From the end on (`from`, `after`) the row is walked backwards and values are
// combined from the left. What some neighbours are made of is asked for at
// once, before they are combined one after the other. Of a monoid's components
// those that nobody reads stay in registers. A scan that stands at the end of
// its axis stores what the whole row combines to.
#include "Schedule/Rules/Rules.h"

// A few rows of this many elements are made in chunks, which are scanned side
// by side, each from what those before it combine to: of monoids alone, a fold
// is not associative.
enum { THREADS = 128, LONG = 4096, FEW = 256, CHUNK = 256, MOST_CHUNKS = 2048 };
enum { AHEAD = 16 }; // Elements that are asked for at once.

// Which of the domain's indices a scan stands at, where it has a row of its own
// to walk; -1: none.
static int find_axis(const hd_definition_t *d) {
  if (d->term->kind != HD_TERM_SCAN)
    return -1;
  const hd_reduction_t *r = d->term->u.reduction;
  for (uint32_t i = 0; i < d->num_indices; i++) {
    const hd_index_t *index = d->indices[i];
    bool stands = r->at->kind == HD_TERM_INDEX && r->at->u.index == index &&
                  hd_flat_range(index) == hd_flat_range(r->indices[0]);
    for (unsigned k = 0; stands && k < d->term->num_operands; k++)
      stands = !hd_flat_uses(d->term->operands[k], index);
    if (stands)
      return (int)i;
  }
  return -1;
}

// Whether a scan combines its whole axis, in this order.
static bool stands_at_end(const hd_definition_t *d) {
  if (d->term->kind != HD_TERM_SCAN)
    return false;
  const hd_reduction_t *r = d->term->u.reduction;
  return r->part == HD_SCAN_TO &&
         hd_flat_is_int(r->at, hd_flat_range(r->indices[0]) - 1);
}

// From the left where the row is walked backwards.
static void combine(hd_kernel_draft_t *draft, const hd_term_t *scan,
                    const hd_var_t *const *cells,
                    const hd_expr_t *const *values, bool backwards) {
  hd_translator_t *t = &draft->t;
  if (!backwards) {
    hd_translate_combine(t, scan, cells, values);
    return;
  }
  const hd_expr_t *right[HD_MAX_COMPONENTS];
  const hd_expr_t *result[HD_MAX_COMPONENTS];
  for (unsigned i = 0; i < scan->num_operands; i++)
    right[i] = hd_b_get(&draft->b, cells[i]);
  hd_translate_combination(t, scan, values, right, result);
  for (unsigned i = 0; i < scan->num_operands; i++)
    result[i] = hd_b_let(&draft->b, "both", result[i]);
  for (unsigned i = 0; i < scan->num_operands; i++)
    hd_b_set(&draft->b, cells[i], result[i]);
}

// Whether a definition of the task gives a local tensor that none reads.
static bool is_unread(const hd_task_t *flat, const hd_task_value_t *value) {
  bool given = false, read = false;
  for (size_t i = 0; i < flat->definitions.size; i++) {
    const hd_definition_t *d = flat->definitions.data[i];
    for (uint32_t k = 0; k < d->num_targets; k++)
      given |= d->targets[k] == value;
    read |= d->kind != HD_DEFINE || hd_flat_reads(d->term, value);
  }
  return value->kind == HD_VALUE_LOCAL && given && !read;
}

static void store(hd_kernel_draft_t *draft, const hd_definition_t *d,
                  const hd_var_t *const *cells) {
  for (uint32_t i = 0; i < d->num_targets; i++)
    if (!is_unread(draft->rules->flat, d->targets[i]))
      hd_draft_store(draft, d, i, hd_b_get(&draft->b, cells[i]));
}

// Part of a row: from first on, so many elements, those past the row's end left
// out. The cells hold what was combined before it.
typedef struct stretch {
  const hd_expr_t *first; // NULL: 0.
  int64_t size;
  bool ends; // What comes out of it is stored alone, behind it.
} stretch_t;

// How many elements are asked for at once: as many as the stretch has a
// multiple of, one where some may be past the row's end.
static int64_t ahead_of(const hd_definition_t *d, const hd_index_t *axis,
                        const stretch_t *stretch) {
  int64_t most = AHEAD / d->term->num_operands, ahead = 1;
  while (hd_flat_range(axis) % stretch->size == 0 && 2 * ahead <= most &&
         stretch->size % (2 * ahead) == 0)
    ahead *= 2;
  return ahead;
}

// `ahead` elements from number `turn` of so many on: their values, then each in
// its turn.
static void put_elements(hd_kernel_draft_t *draft, const hd_definition_t *d,
                         const hd_index_t *axis, const hd_expr_t *const *at,
                         int64_t ahead, bool stores,
                         const hd_var_t *const *cells) {
  hd_translator_t *t = &draft->t;
  const hd_term_t *scan = d->term;
  const hd_reduction_t *r = scan->u.reduction;
  bool backwards = r->part == HD_SCAN_FROM || r->part == HD_SCAN_AFTER;
  bool first = r->part == HD_SCAN_TO || r->part == HD_SCAN_FROM;
  const hd_expr_t *values[AHEAD][HD_MAX_COMPONENTS];
  for (int64_t k = 0; k < ahead; k++) {
    hd_translate_bind(t, r->indices[0], at[k]);
    for (unsigned i = 0; i < scan->num_operands; i++)
      values[k][i] =
          hd_b_let(&draft->b, "value", hd_translate(t, scan->operands[i]));
  }
  for (int64_t k = 0; k < ahead; k++) {
    hd_translate_bind(t, axis, at[k]);
    if (stores && !first)
      store(draft, d, cells);
    combine(draft, scan, cells, values[k], backwards);
    if (stores && first)
      store(draft, d, cells);
  }
}

static void put_row(hd_kernel_draft_t *draft, const hd_definition_t *d,
                    const hd_index_t *axis, const stretch_t *stretch,
                    const hd_var_t *const *cells) {
  hd_builder_t *b = &draft->b;
  const hd_reduction_t *r = d->term->u.reduction;
  bool backwards = r->part == HD_SCAN_FROM || r->part == HD_SCAN_AFTER;
  hd_scalar_t type = hd_translate_index_type(axis);
  const hd_var_t *var = hd_b_loop_var(b, r->indices[0]->name, type);
  int64_t ahead = ahead_of(d, axis, stretch);
  const hd_expr_t *at[AHEAD];
  hd_open_block_t block, inner;
  hd_b_open(b, &block);
  for (int64_t k = 0; k < ahead; k++) {
    at[k] = hd_b_op_int(
        b, HD_EXPR_ADD,
        hd_b_op_int(b, HD_EXPR_MUL, hd_expr_var(b->arena, var), ahead), k);
    if (backwards)
      at[k] =
          hd_b_op(b, HD_EXPR_SUB, hd_b_int(b, type, stretch->size - 1), at[k]);
    if (stretch->first)
      at[k] = hd_b_op(b, HD_EXPR_ADD, stretch->first, at[k]);
    at[k] = hd_b_let(b, "at", at[k]);
  }
  hd_b_open(b, &inner);
  put_elements(draft, d, axis, at, ahead, !stretch->ends, cells);
  hd_block_t then = hd_b_close(b);
  hd_b_if(b,
          hd_flat_range(axis) % stretch->size
              ? hd_b_op_int(b, HD_EXPR_LT, at[0], hd_flat_range(axis))
              : NULL,
          then, (hd_block_t){0});
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, var, hd_b_int(b, type, 0),
           hd_b_int(b, type, stretch->size / ahead), NULL, 0, body);
  if (stretch->ends)
    store(draft, d, cells);
}

// --- Few long rows, in chunks ---

// What is made of a scan: what each chunk combines to, what comes before it,
// and the rows again, each chunk from there on.
typedef struct chunks {
  const hd_index_t *chunk, *point;
  const hd_index_t **domain; // The rows, then the chunk.
  uint32_t rank;
  int64_t size;
  const hd_task_value_t **before; // A tensor for each component.
} chunks_t;

typedef struct substitution {
  const hd_index_t *index;
  const hd_term_t *place;
} substitution_t;

static const hd_term_t *put_place(void *argument, const hd_term_t *term) {
  const substitution_t *s = argument;
  return term->kind == HD_TERM_INDEX && term->u.index == s->index ? s->place
                                                                  : term;
}

static const hd_task_value_t **make_tensors(hd_rules_t *rules,
                                            const chunks_t *c,
                                            const hd_term_t *scan,
                                            const char *name) {
  hd_arena_t *arena = &rules->module->arena;
  const hd_task_value_t **values =
      HD_ARENA_ARRAY(arena, const hd_task_value_t *, scan->num_operands);
  int64_t shape[HD_MAX_RANK];
  for (uint32_t i = 0; i < c->rank; i++)
    shape[i] = hd_flat_range(c->domain[i]);
  for (unsigned i = 0; i < scan->num_operands; i++) {
    values[i] =
        hd_flat_value_make(arena, name, HD_VALUE_LOCAL,
                           scan->operands[i]->type.scalar, shape, c->rank);
    hd_vec_push(arena, &rules->flat->locals, values[i]);
  }
  return values;
}

static void define(hd_rules_t *rules, const chunks_t *c,
                   const hd_task_value_t **targets, const hd_term_t *scan,
                   const hd_reduction_t *r, hd_term_kind_t kind,
                   const hd_term_t *const *operands) {
  hd_arena_t *arena = &rules->module->arena;
  hd_term_t *term = hd_term_make(arena, kind, operands[0]->type, operands,
                                 scan->num_operands);
  term->u.reduction = r;
  hd_definition_t d = {.kind = HD_DEFINE,
                       .loc = rules->loc,
                       .num_targets = scan->num_operands,
                       .targets = targets,
                       .num_indices = c->rank,
                       .indices = c->domain,
                       .term = term};
  hd_rules_apply(rules, &d);
}

// parts[.., chunk] = reduction(point) of the chunk's elements
static const hd_task_value_t **
define_parts(hd_rules_t *rules, const chunks_t *c, const hd_term_t *scan) {
  hd_arena_t *arena = &rules->module->arena;
  const hd_reduction_t *old = scan->u.reduction;
  const hd_task_value_t **parts = make_tensors(rules, c, scan, "parts");
  const hd_index_t **indices = HD_ARENA_ARRAY(arena, const hd_index_t *, 1);
  indices[0] = c->point;
  hd_reduction_t *r = HD_ARENA_NEW(arena, hd_reduction_t);
  *r = (hd_reduction_t){
      .monoid = old->monoid, .num_indices = 1, .indices = indices};
  int64_t range = hd_flat_range(old->indices[0]);
  substitution_t s = {old->indices[0], NULL};
  s.place = hd_flat_operate(arena, HD_EXPR_ADD,
                            hd_flat_operate_int(arena, HD_EXPR_MUL,
                                                hd_flat_index(arena, c->chunk),
                                                c->size),
                            hd_flat_index(arena, c->point));
  const hd_term_t *bodies[HD_MAX_COMPONENTS];
  for (unsigned i = 0; i < scan->num_operands; i++) {
    bodies[i] = hd_flat_rewrite(arena, scan->operands[i], put_place, &s);
    if (range % c->size)
      bodies[i] = hd_flat_select(
          arena, hd_flat_operate_int(arena, HD_EXPR_LT, s.place, range),
          bodies[i],
          hd_flat_identity(arena, old->monoid, i,
                           scan->operands[i]->type.scalar));
  }
  define(rules, c, parts, scan, r, HD_TERM_REDUCE, bodies);
  return parts;
}

// before[.., chunk] = scan(other before chunk, or after it) parts[.., other]
static void define_before(hd_rules_t *rules, chunks_t *c, const hd_term_t *scan,
                          const hd_task_value_t *const *parts) {
  hd_arena_t *arena = &rules->module->arena;
  const hd_reduction_t *old = scan->u.reduction;
  bool backwards = old->part == HD_SCAN_FROM || old->part == HD_SCAN_AFTER;
  const hd_index_t **indices = HD_ARENA_ARRAY(arena, const hd_index_t *, 1);
  indices[0] = hd_flat_index_make(arena, "other", hd_flat_range(c->chunk));
  hd_reduction_t *r = HD_ARENA_NEW(arena, hd_reduction_t);
  *r = (hd_reduction_t){.monoid = old->monoid,
                        .num_indices = 1,
                        .indices = indices,
                        .part = backwards ? HD_SCAN_AFTER : HD_SCAN_BEFORE,
                        .at = hd_flat_index(arena, c->chunk)};
  const hd_term_t *places[HD_MAX_RANK], *loads[HD_MAX_COMPONENTS];
  for (uint32_t i = 0; i + 1 < c->rank; i++)
    places[i] = hd_flat_index(arena, c->domain[i]);
  places[c->rank - 1] = hd_flat_index(arena, indices[0]);
  for (unsigned i = 0; i < scan->num_operands; i++)
    loads[i] = hd_flat_load(arena, parts[i], places);
  c->before = make_tensors(rules, c, scan, "before");
  define(rules, c, c->before, scan, r, HD_TERM_SCAN, loads);
}

static void put_chunks(hd_rules_t *rules, const hd_definition_t *d,
                       const hd_index_t *axis, const chunks_t *c) {
  hd_kernel_draft_t draft;
  hd_draft_begin(&draft, rules);
  hd_builder_t *b = &draft.b;
  hd_grid_t grid = hd_grid_linear(hd_flat_points(c->domain, c->rank), THREADS);
  hd_open_block_t inner;
  const hd_expr_t *number = hd_draft_open_workers(&draft, &grid, &inner);
  hd_draft_place(&draft, number, c->domain, c->rank);
  const hd_var_t *cells[HD_MAX_COMPONENTS];
  const hd_term_t *places[HD_MAX_RANK];
  for (uint32_t i = 0; i < c->rank; i++)
    places[i] = hd_flat_index(b->arena, c->domain[i]);
  for (unsigned i = 0; i < d->term->num_operands; i++)
    cells[i] = hd_b_register(
        b, "acc", d->term->operands[i]->type.scalar, NULL, 0,
        hd_translate(&draft.t, hd_flat_load(b->arena, c->before[i], places)));
  const hd_expr_t *first =
      hd_b_op_int(b, HD_EXPR_MUL,
                  hd_b_cast(b, hd_translate_index_type(axis),
                            hd_ptr_map_get(&draft.t.indices, c->chunk)),
                  c->size);
  stretch_t stretch = {hd_b_let(b, "first", first), c->size, false};
  put_row(&draft, d, axis, &stretch, cells);
  hd_draft_finish_workers(&draft, &grid, "_scan");
}

static bool split(hd_rules_t *rules, const hd_definition_t *d,
                  const hd_index_t *axis, const hd_index_t *const *rows,
                  unsigned count) {
  hd_arena_t *arena = &rules->module->arena;
  int64_t range = hd_flat_range(axis);
  if (d->term->u.reduction->monoid->in_order || range < LONG ||
      hd_flat_points(rows, count) >= FEW)
    return false;
  chunks_t c = {.rank = count + 1, .size = CHUNK};
  if (range / c.size > MOST_CHUNKS)
    c.size = (range + MOST_CHUNKS - 1) / MOST_CHUNKS;
  c.domain = HD_ARENA_ARRAY(arena, const hd_index_t *, c.rank);
  for (unsigned i = 0; i < count; i++)
    c.domain[i] = rows[i];
  c.chunk = hd_flat_index_make(arena, "chunk", (range + c.size - 1) / c.size);
  c.point = hd_flat_index_make(arena, "point", c.size);
  c.domain[count] = c.chunk;
  define_before(rules, &c, d->term, define_parts(rules, &c, d->term));
  put_chunks(rules, d, axis, &c);
  return true;
}

bool hd_rule_scan(hd_rules_t *rules, const hd_definition_t *d) {
  int at = find_axis(d);
  bool ends = stands_at_end(d);
  if (at < 0 && !ends)
    return false;
  const hd_index_t *axis =
      ends ? d->term->u.reduction->indices[0] : d->indices[at];
  const hd_index_t *rows[HD_MAX_RANK];
  unsigned count = 0;
  for (uint32_t i = 0; i < d->num_indices; i++)
    if ((int)i != at)
      rows[count++] = d->indices[i];
  if (!ends && split(rules, d, axis, rows, count))
    return true;
  hd_kernel_draft_t draft;
  hd_draft_begin(&draft, rules);
  hd_grid_t grid = hd_grid_linear(hd_flat_points(rows, count), THREADS);
  hd_open_block_t inner;
  const hd_expr_t *number = hd_draft_open_workers(&draft, &grid, &inner);
  hd_draft_place(&draft, number, rows, count);
  const hd_var_t *cells[HD_MAX_COMPONENTS];
  hd_translate_begin(&draft.t, d->term, cells);
  stretch_t whole = {NULL, hd_flat_range(axis), ends};
  put_row(&draft, d, axis, &whole, cells);
  hd_draft_finish_workers(&draft, &grid, "_scan");
  return true;
}
