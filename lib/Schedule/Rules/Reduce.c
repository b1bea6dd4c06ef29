// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A group of threads for each element of a definition that is a function of one
// reduction:
//
//   y[i] = g(sum(p: n) f(x[i, p]))
//
// Each worker of a group combines a part; the parts meet in shared memory and
// are combined in their order, sixteen at a time, so that results are the same
// each time and sums of many numbers stay accurate. Of a monoid that may not
// commute a worker takes neighbours, of others every n-th: then neighbouring
// threads read neighbours.
//
// Few elements of very long reductions are made in two definitions first: parts
// of the axis, then what they combine to.
#include "Schedule/Rules/Rules.h"

enum {
  THREADS = 256,
  RADIX = 16,
  SMALL = 64,     // Points that a thread goes over by itself.
  MANY = 1 << 14, // Elements that keep a GPU busy, a thread each;
  FEW = 512,      // that take a block each,
  SINGLE = 64,    // that take several.
  LONG = 1 << 16, // Points for which that pays.
  PART = 1 << 13, // Of these to a part, at least.
  MOST_PARTS = 1 << 10,
};

typedef struct maker {
  hd_kernel_draft_t draft;
  hd_reduced_t reduced;
  int64_t points, elements;
  int64_t group, groups; // Workers of an element; elements of a block.
  bool along;            // Neighbours lie along the reduction.
  bool commutes;
  const hd_expr_t *worker, *element;
  const hd_var_t *shared[HD_MAX_COMPONENTS]; // See part_at().
} maker_t;

static bool find_reduction(hd_rules_t *rules, const hd_definition_t *d,
                           maker_t *m) {
  if (!hd_reduced_find(&rules->module->arena, d, &m->reduced))
    return false;
  const hd_term_t *term = m->reduced.reduction;
  const hd_reduction_t *r = term->u.reduction;
  m->points = hd_flat_points(r->indices, r->num_indices);
  m->elements = hd_flat_points(d->indices, d->num_indices);
  m->commutes = r->monoid->builtin != HD_MONOID_COUNT;
  m->along = false;
  for (unsigned i = 0; i < term->num_operands; i++) {
    m->along |= hd_reads_along(term->operands[i], r->indices, r->num_indices);
    if (hd_scalar_bits(term->operands[i]->type.scalar) < 8)
      return false;
  }
  return m->points <= INT32_MAX / 2 && m->elements <= INT32_MAX / 2;
}

// --- Parts ---

// A point of the reduction by its number, as terms.
static void number_points(hd_arena_t *arena, const hd_reduction_t *r,
                          const hd_term_t *number, const hd_term_t **places) {
  for (uint32_t i = r->num_indices; i-- > 0;) {
    int64_t range = hd_flat_range(r->indices[i]);
    const hd_term_t *size = hd_flat_int(arena, HD_I64, range);
    places[i] =
        i == 0 ? number : hd_flat_operate(arena, HD_EXPR_MOD, number, size);
    number = hd_flat_operate(arena, HD_EXPR_DIV, number, size);
  }
}

typedef struct substitution {
  const hd_reduction_t *r;
  const hd_term_t **places;
} substitution_t;

static const hd_term_t *put_place(void *argument, const hd_term_t *term) {
  const substitution_t *s = argument;
  for (uint32_t i = 0; term->kind == HD_TERM_INDEX && i < s->r->num_indices;
       i++)
    if (term->u.index == s->r->indices[i])
      return s->places[i];
  return term;
}

static const hd_term_t *reduce_over(hd_arena_t *arena, const hd_term_t *like,
                                    const hd_index_t *index,
                                    const hd_term_t *const *operands) {
  hd_reduction_t *r = HD_ARENA_NEW(arena, hd_reduction_t);
  const hd_index_t **indices = HD_ARENA_ARRAY(arena, const hd_index_t *, 1);
  indices[0] = index;
  *r = (hd_reduction_t){.monoid = like->u.reduction->monoid,
                        .num_indices = 1,
                        .indices = indices};
  hd_term_t *term = hd_term_make(arena, HD_TERM_REDUCE, operands[0]->type,
                                 operands, like->num_operands);
  term->u.reduction = r;
  return term;
}

// Splits d into the definition of local parts and what is to be made of them.
static void split(hd_rules_t *rules, const maker_t *m, hd_definition_t *parts,
                  hd_definition_t *rest) {
  hd_arena_t *arena = &rules->module->arena;
  const hd_definition_t *d = m->reduced.definition;
  const hd_term_t *term = m->reduced.reduction;
  const hd_reduction_t *r = term->u.reduction;
  int64_t count = m->points / PART < MOST_PARTS ? m->points / PART : MOST_PARTS;
  int64_t size = (m->points + count - 1) / count;
  count = (m->points + size - 1) / size;
  hd_index_t *part = hd_flat_index_make(arena, "part", count);
  hd_index_t *point = hd_flat_index_make(arena, "point", size);
  uint32_t rank = d->num_indices + 1;
  const hd_index_t **domain = HD_ARENA_ARRAY(arena, const hd_index_t *, rank);
  const hd_term_t **places = HD_ARENA_ARRAY(arena, const hd_term_t *, rank);
  int64_t shape[HD_MAX_RANK + 1];
  for (uint32_t i = 0; i < rank; i++) {
    domain[i] = i ? d->indices[i - 1] : part;
    shape[i] = hd_flat_range(domain[i]);
    places[i] = hd_flat_index(arena, domain[i]);
  }
  const hd_term_t *number = hd_flat_operate(
      arena, HD_EXPR_ADD,
      hd_flat_operate_int(arena, HD_EXPR_MUL, hd_flat_index(arena, part), size),
      hd_flat_index(arena, point));
  substitution_t s = {r,
                      HD_ARENA_ARRAY(arena, const hd_term_t *, r->num_indices)};
  number_points(arena, r, number, s.places);
  const hd_term_t *inside =
      count * size == m->points
          ? NULL
          : hd_flat_operate_int(arena, HD_EXPR_LT, number, m->points);
  const hd_task_value_t **targets =
      HD_ARENA_ARRAY(arena, const hd_task_value_t *, term->num_operands);
  const hd_term_t *bodies[HD_MAX_COMPONENTS], *loads[HD_MAX_COMPONENTS];
  for (unsigned i = 0; i < term->num_operands; i++) {
    hd_scalar_t type = term->operands[i]->type.scalar;
    bodies[i] = hd_flat_rewrite(arena, term->operands[i], put_place, &s);
    if (inside)
      bodies[i] = hd_flat_select(arena, inside, bodies[i],
                                 hd_flat_identity(arena, r->monoid, i, type));
    targets[i] =
        hd_flat_value_make(arena, "parts", HD_VALUE_LOCAL, type, shape, rank);
    hd_vec_push(arena, &rules->flat->locals, targets[i]);
    loads[i] = hd_flat_load(arena, targets[i], places);
  }
  *parts = (hd_definition_t){.kind = HD_DEFINE,
                             .loc = d->loc,
                             .num_targets = term->num_operands,
                             .targets = targets,
                             .num_indices = rank,
                             .indices = domain,
                             .term = reduce_over(arena, term, point, bodies)};
  *rest = *d;
  const hd_term_t *whole = reduce_over(arena, term, part, loads);
  rest->term = hd_flat_replace(arena, d->term, term, whole);
}

// --- The kernel ---

static bool choose_groups(maker_t *m) {
  bool busy = m->elements >= MANY;
  if (m->points <= SMALL || (busy && !m->along))
    return false;
  m->group = m->elements <= FEW && m->points >= 2 * THREADS ? THREADS : RADIX;
  m->groups = THREADS / m->group;
  return true;
}

// What a worker combines by itself.
static void put_part(maker_t *m, const hd_var_t *const *cells) {
  hd_kernel_draft_t *draft = &m->draft;
  hd_builder_t *b = &draft->b;
  const hd_term_t *term = m->reduced.reduction;
  const hd_reduction_t *r = term->u.reduction;
  int64_t each = (m->points + m->group - 1) / m->group;
  const hd_var_t *turn = hd_b_loop_var(b, "turn", HD_I32);
  const hd_expr_t *at = hd_expr_var(b->arena, turn);
  hd_open_block_t block, inner;
  hd_b_open(b, &block);
  at = m->commutes
           ? hd_b_op(b, HD_EXPR_ADD, hd_b_op_int(b, HD_EXPR_MUL, at, m->group),
                     m->worker)
           : hd_b_op(b, HD_EXPR_ADD,
                     hd_b_op_int(b, HD_EXPR_MUL, m->worker, each), at);
  at = hd_b_let(b, "point", at);
  hd_b_open(b, &inner);
  hd_draft_place(draft, at, r->indices, r->num_indices);
  hd_translate_step(&draft->t, term, cells);
  hd_block_t then = hd_b_close(b);
  hd_b_if(b,
          each * m->group == m->points
              ? NULL
              : hd_b_op_int(b, HD_EXPR_LT, at, m->points),
          then, (hd_block_t){0});
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, turn, hd_b_i32(b, 0), hd_b_i32(b, each), NULL, 0, body);
}

// Where a worker's part lies: neighbouring threads beside each other, rows one
// longer than the banks would like.
static void part_at(const maker_t *m, const hd_expr_t *worker,
                    const hd_expr_t **at) {
  bool fast = m->along || m->groups == 1;
  at[fast] = worker;
  at[!fast] = m->element;
}

static void put_shared(maker_t *m, const hd_var_t *const *cells) {
  hd_builder_t *b = &m->draft.b;
  const hd_expr_t *at[2];
  part_at(m, m->worker, at);
  for (unsigned i = 0; i < m->reduced.reduction->num_operands; i++)
    hd_b_store(b, m->shared[i], at, 2, hd_b_get(b, cells[i]));
}

// cells = those of count workers, stride apart, of whom the worker at hand is
// the first.
static void gather(maker_t *m, const hd_var_t *const *cells, int64_t stride,
                   int64_t count) {
  hd_builder_t *b = &m->draft.b;
  const hd_term_t *term = m->reduced.reduction;
  const hd_var_t *var = hd_b_loop_var(b, "other", HD_I32);
  hd_open_block_t block;
  hd_b_open(b, &block);
  const hd_expr_t *other =
      hd_b_op(b, HD_EXPR_ADD,
              hd_b_op_int(b, HD_EXPR_MUL, hd_expr_var(b->arena, var), stride),
              m->worker);
  const hd_expr_t *at[2];
  part_at(m, other, at);
  const hd_expr_t *values[HD_MAX_COMPONENTS];
  for (unsigned i = 0; i < term->num_operands; i++)
    values[i] = hd_b_load(b, m->shared[i], at, 2);
  hd_translate_combine(&m->draft.t, term, cells, values);
  hd_block_t body = hd_b_close(b);
  hd_b_for(b, var, hd_b_i32(b, 1), hd_b_i32(b, count), NULL, 0, body);
}

// The first worker of each group has the result in the end.
static void put_tree(maker_t *m, const hd_var_t *const *cells) {
  hd_builder_t *b = &m->draft.b;
  put_shared(m, cells);
  hd_b_barrier(b);
  for (int64_t stride = 1; stride * RADIX < m->group; stride *= RADIX) {
    hd_open_block_t block;
    hd_b_open(b, &block);
    gather(m, cells, stride, RADIX);
    put_shared(m, cells);
    hd_block_t then = hd_b_close(b);
    hd_b_if(b,
            hd_b_op_int(b, HD_EXPR_EQ,
                        hd_b_op_int(b, HD_EXPR_MOD, m->worker, stride * RADIX),
                        0),
            then, (hd_block_t){0});
    hd_b_barrier(b);
  }
}

static void place_thread(maker_t *m) {
  hd_builder_t *b = &m->draft.b;
  const hd_expr_t *thread = hd_b_thread(b);
  bool fast = m->along || m->groups == 1;
  int64_t divisor = fast ? m->group : m->groups;
  const hd_expr_t *low = hd_b_let(
      b, fast ? "worker" : "element",
      m->groups == 1 ? thread : hd_b_op_int(b, HD_EXPR_MOD, thread, divisor));
  const hd_expr_t *high =
      m->groups == 1 ? hd_b_i32(b, 0)
                     : hd_b_let(b, fast ? "element" : "worker",
                                hd_b_op_int(b, HD_EXPR_DIV, thread, divisor));
  m->worker = fast ? low : high;
  m->element = fast ? high : low;
}

static void make_reduction(hd_rules_t *rules, maker_t *m) {
  hd_kernel_draft_t *draft = &m->draft;
  const hd_definition_t *d = m->reduced.definition;
  const hd_term_t *term = m->reduced.reduction;
  hd_draft_begin(draft, rules);
  hd_builder_t *b = &draft->b;
  bool fast = m->along || m->groups == 1;
  int64_t shape[] = {fast ? m->groups : m->group,
                     (fast ? m->group : m->groups) + 1};
  for (unsigned i = 0; i < term->num_operands; i++)
    m->shared[i] =
        hd_b_shared(b, "parts", term->operands[i]->type.scalar, shape, 2, NULL);
  place_thread(m);
  int64_t blocks = (m->elements + m->groups - 1) / m->groups;
  const hd_expr_t *number = m->element;
  if (blocks > 1)
    number = hd_b_op(b, HD_EXPR_ADD,
                     hd_b_op_int(b, HD_EXPR_MUL,
                                 hd_expr_builtin(b->arena, HD_BUILTIN_BLOCK),
                                 m->groups),
                     number);
  number = hd_b_let(b, "n", number);
  const hd_expr_t *exists =
      m->elements % m->groups ? hd_b_op_int(b, HD_EXPR_LT, number, m->elements)
                              : NULL;
  hd_draft_place(draft, number, d->indices, d->num_indices);
  const hd_var_t *cells[HD_MAX_COMPONENTS];
  const hd_expr_t *values[HD_MAX_COMPONENTS];
  hd_translate_begin(&draft->t, term, cells);
  hd_open_block_t block;
  hd_b_open(b, &block);
  put_part(m, cells);
  hd_block_t then = hd_b_close(b);
  hd_b_if(b, exists, then, (hd_block_t){0});
  put_tree(m, cells);
  hd_b_open(b, &block);
  gather(m, cells, m->group / RADIX, RADIX);
  for (unsigned i = 0; i < term->num_operands; i++)
    values[i] = hd_b_get(b, cells[i]);
  hd_draft_store_reduced(draft, &m->reduced, values);
  then = hd_b_close(b);
  hd_b_if(b, hd_b_and(b, exists, hd_b_op_int(b, HD_EXPR_EQ, m->worker, 0)),
          then, (hd_block_t){0});
  hd_draft_finish_linear(draft, "", blocks, THREADS);
}

bool hd_rule_reduce(hd_rules_t *rules, const hd_definition_t *d) {
  maker_t *m = HD_ARENA_NEW(&rules->module->arena, maker_t);
  if (!find_reduction(rules, d, m))
    return false;
  if (m->elements < SINGLE && m->points >= LONG &&
      d->num_indices < HD_MAX_RANK) {
    hd_definition_t parts,
        *rest = HD_ARENA_NEW(&rules->module->arena, hd_definition_t);
    split(rules, m, &parts, rest);
    hd_rules_apply(rules, &parts);
    hd_rules_apply(rules, rest);
    return true;
  }
  if (!hd_can_share(m->reduced.reduction) || !choose_groups(m))
    return false;
  make_reduction(rules, m);
  return true;
}
