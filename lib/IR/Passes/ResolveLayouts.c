// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pass resolve-layouts: indices become offsets in the tensors' storage.
//
//   shared s: f16[64, 32] layout(row, swizzle(64))
//   for i in 0..4 unroll {
//     s[i * 16 + lane, 8] = a[j, i] else 0
//   }
//
// becomes
//
//   for i in 0..4 unroll {
//     s@[(lane * 32 + ((lane >> 1 & 3 ^ 1) << 3)) + i * 512] =
//       u32(j) < u32(n) ? a@[...] : 0
//   }
//
// Offsets are sums. They are put in the order in which their terms change: what
// holds for the launch first, then what changes with the outer loops, then with
// the inner ones, and the variables of unrolled loops last, which become a
// constant in each copy. So the part that does not change is one value for all
// copies, and the rest goes into the instructions' immediate offsets.
//
// An index that holds much stays one, for it would stand in the test and in the
// offset: accesses in each other's indices would double at every level.
//
// Simplifies on the way (it is the same walk). The sanitizer, which wants
// indices to check, works on IR without this pass.

#include "IR/Passes/Passes.h"
#include "IR/Passes/Simplifier.h"

enum { MAX_EXPANSIONS = 32, MAX_INDEX = 128 };

void hd_simplify_set_level(hd_simplifier_t *s, const hd_var_t *var,
                           unsigned level) {
  unsigned *box = HD_ARENA_NEW(s->scratch, unsigned);
  *box = level;
  hd_ptr_map_set(s->scratch, &s->levels, var, box);
}

unsigned hd_simplify_level(hd_simplifier_t *s, const hd_expr_t *e) {
  unsigned level = 0;
  if (e->kind == HD_EXPR_VAR) {
    const unsigned *known = hd_ptr_map_get(&s->levels, e->u.var);
    level = known ? *known : 0;
  } else if (!hd_expr_is_stable(e)) {
    level = s->depth; // What it reads may change at every turn.
  }
  for (unsigned i = 0; i < e->num_operands; ++i) {
    unsigned other = hd_simplify_level(s, e->operands[i]);
    if (other > level)
      level = other;
  }
  return level;
}

// Replaces lets that stand for sums with variables of unrolled loops in them.
static void expand_unrolled(hd_simplifier_t *s, hd_linear_t *sum) {
  for (unsigned n = 0, i = 0; i < sum->size && n < MAX_EXPANSIONS;) {
    hd_linear_term_t term = sum->terms[i];
    const hd_expr_t *value =
        term.expr->kind == HD_EXPR_VAR &&
                hd_simplify_level(s, term.expr) >= HD_LEVEL_UNROLLED
            ? hd_facts_value(s->facts, term.expr->u.var)
            : NULL;
    hd_linear_t inner, self, other = *sum;
    hd_linear_of_atom(term.expr, &self);
    if (!value || !hd_linear_of(s->facts, value, HD_LINEAR_DEEP, &inner) ||
        !hd_linear_add(&other, &self, -term.factor) ||
        !hd_linear_add(&other, &inner, term.factor)) {
      ++i;
      continue;
    }
    *sum = other;
    i = 0;
    ++n;
  }
}

// By level; terms of one level keep their order.
static void sort_terms(hd_simplifier_t *s, hd_linear_t *sum) {
  unsigned levels[HD_LINEAR_MAX_TERMS];
  for (unsigned i = 0; i < sum->size; ++i) {
    hd_linear_term_t term = sum->terms[i];
    unsigned level = hd_simplify_level(s, term.expr), at = i;
    for (; at > 0 && levels[at - 1] > level; --at) {
      levels[at] = levels[at - 1];
      sum->terms[at] = sum->terms[at - 1];
    }
    levels[at] = level;
    sum->terms[at] = term;
  }
}

static const hd_expr_t *arrange(hd_simplifier_t *s, const hd_expr_t *offset) {
  hd_linear_t sum;
  if (!hd_linear_of(s->facts, offset, HD_LINEAR_DEEP, &sum))
    return offset;
  expand_unrolled(s, &sum);
  sort_terms(s, &sum);
  bool unrolled =
      sum.size > 0 &&
      hd_simplify_level(s, sum.terms[sum.size - 1].expr) >= HD_LEVEL_UNROLLED;
  const hd_expr_t *other = hd_linear_build(s->facts, s->arena, &sum);
  if (hd_expr_equal(other, offset))
    return offset;
  return unrolled || hd_expr_cost(other) <= hd_expr_cost(offset) ? other
                                                                 : offset;
}

typedef struct variance {
  hd_simplifier_t *simplifier;
  bool found;
} variance_t;

static bool visit_variance(void *argument, const hd_expr_t *e) {
  variance_t *v = argument;
  v->found |= e->kind != HD_EXPR_CONST && e->num_operands == 0 &&
              hd_simplify_level(v->simplifier, e) < HD_LEVEL_UNROLLED;
  return !v->found;
}

// Whether the offset is no constant, not even in the copies of unrolled loops.
static bool varies(hd_simplifier_t *s, const hd_expr_t *offset) {
  variance_t v = {s, false};
  hd_walk_expr(offset, visit_variance, &v);
  return v.found;
}

const hd_expr_t *hd_resolve_offset(hd_simplifier_t *s, const hd_var_t *tensor,
                                   const hd_expr_t *const *indices) {
  const hd_expr_t *offset = hd_tensor_offset(s->arena, tensor->tensor, indices);
  const hd_expr_t *result = arrange(s, hd_simplify_expr(s, offset));
  if (tensor->tensor->scope != HD_SCOPE_REGISTER || !varies(s, result))
    return result;
  // Which register it is follows from the layout alone; a condition such as
  // i < 3 makes i % 4 to i, which is right, but depends on the thread.
  hd_facts_t *facts = s->facts;
  s->facts = hd_facts_unconditional(facts);
  const hd_expr_t *other = arrange(s, hd_simplify_expr(s, offset));
  s->facts = facts;
  return varies(s, other) ? result : other;
}

static const hd_expr_t * and
    (hd_simplifier_t * s, const hd_expr_t *a, const hd_expr_t *b) {
  return a ? hd_expr_binary(s->arena, HD_EXPR_AND, a, b) : b;
}

static const hd_expr_t *widen(hd_simplifier_t *s, hd_type_t type,
                              const hd_expr_t *e) {
  return hd_type_equal(e->type, type) ? e : hd_expr_cast(s->arena, type, e);
}

static const hd_expr_t *as_unsigned(hd_simplifier_t *s, const hd_expr_t *e) {
  if (!hd_type_is_signed(e->type))
    return e;
  hd_type_t type = hd_type(e->type.scalar == HD_I64 ? HD_U64 : HD_U32);
  return hd_simplify_node(s, hd_expr_cast(s->arena, type, e));
}

static bool is_i32(hd_type_t type) {
  return hd_range_inside(hd_type_range(type), hd_type_range(hd_type(HD_I32)));
}

// condition && 0 <= first && last < size, as far as not known. Sizes are not
// negative, so one comparison of unsigned numbers tests both.
static const hd_expr_t *test_axis(hd_simplifier_t *s,
                                  const hd_expr_t *condition,
                                  const hd_expr_t *first, unsigned lanes,
                                  const hd_expr_t *size) {
  // i32 where it holds both, lest what is far out of bounds wraps into them. A
  // u64 past i64 becomes negative, so it stays out.
  bool small = is_i32(first->type) && is_i32(size->type);
  hd_type_t type = hd_type(small ? HD_I32 : HD_I64);
  first = widen(s, type, first);
  size = widen(s, type, size);
  const hd_expr_t *low = hd_expr_binary(s->arena, HD_EXPR_GE, first,
                                        hd_expr_int(s->arena, type, 0));
  const hd_expr_t *last = first;
  if (lanes > 1)
    last = hd_expr_binary(s->arena, HD_EXPR_ADD, first,
                          hd_expr_int(s->arena, type, lanes - 1));
  const hd_expr_t *high = hd_expr_binary(s->arena, HD_EXPR_LT, last, size);
  bool low_known = hd_facts_decide(s->facts, low) == 1;
  bool high_known = hd_facts_decide(s->facts, high) == 1;
  if (lanes == 1 && !low_known && !high_known)
    return and(s, condition,
               hd_expr_binary(s->arena, HD_EXPR_LT, as_unsigned(s, first),
                              as_unsigned(s, size)));
  if (!low_known)
    condition = and(s, condition, low);
  return high_known ? condition : and(s, condition, high);
}

static const hd_expr_t *merge_tests(hd_simplifier_t *s, const hd_expr_t *e) {
  if (e->kind != HD_EXPR_AND)
    return e;
  const hd_expr_t *a = merge_tests(s, e->operands[0]);
  const hd_expr_t *b = merge_tests(s, e->operands[1]);
  if (a->kind == HD_EXPR_GE && b->kind == HD_EXPR_LT &&
      hd_expr_is_int(a->operands[1], 0) &&
      (a->operands[0]->type.scalar == HD_I32 ||
       a->operands[0]->type.scalar == HD_I64) &&
      hd_expr_is_pure(a->operands[0]) &&
      hd_expr_equal(a->operands[0], b->operands[0]) &&
      hd_facts_nonnegative(s->facts, b->operands[1]))
    return hd_expr_binary(s->arena, HD_EXPR_LT, as_unsigned(s, b->operands[0]),
                          as_unsigned(s, b->operands[1]));
  return a == e->operands[0] && b == e->operands[1] ? e : and(s, a, b);
}

const hd_expr_t *hd_resolve_select(hd_simplifier_t *s, const hd_expr_t *e) {
  const hd_expr_t *condition = merge_tests(s, e->operands[0]);
  return condition == e->operands[0]
             ? e
             : hd_expr_select(s->arena, condition, e->operands[1],
                              e->operands[2]);
}

// That a vector (one lane: an element) at these indices is in bounds; NULL
// where that is known.
static const hd_expr_t *test_bounds(hd_simplifier_t *s,
                                    const hd_tensor_t *tensor,
                                    const hd_expr_t *const *indices,
                                    unsigned lanes) {
  const hd_expr_t *condition = NULL;
  for (unsigned a = 0; a < tensor->rank; ++a)
    condition = test_axis(s, condition, indices[a],
                          a + 1 == tensor->rank ? lanes : 1, tensor->shape[a]);
  return condition;
}

// A vector is aligned to its size, so that it does not stick out of rows that
// are multiples of it.
static bool may_stick_out(hd_simplifier_t *s, const hd_expr_t *e) {
  const hd_tensor_t *tensor = e->u.var->tensor;
  int64_t lanes = e->type.lanes;
  return lanes > 1 &&
         hd_facts_divisor(s->facts, tensor->shape[tensor->rank - 1]) % lanes;
}

// The lanes of a vector that sticks out, each with its own test.
static const hd_expr_t *load_lanes(hd_simplifier_t *s, const hd_expr_t *e) {
  const hd_var_t *var = e->u.var;
  unsigned rank = var->tensor->rank;
  hd_type_t type = hd_type_lane(e->type);
  hd_expr_t like = {.linear = 1, .loc = e->loc, .u.var = var};
  const hd_expr_t *lanes[HD_MAX_LANES];
  const hd_expr_t **indices = HD_ARENA_ARRAY(s->arena, const hd_expr_t *, rank);
  for (unsigned a = 0; a < rank; ++a)
    indices[a] = e->operands[a];
  for (unsigned i = 0; i < e->type.lanes; ++i) {
    const hd_expr_t *last = e->operands[rank - 1];
    indices[rank - 1] = hd_simplify_node(
        s, hd_expr_binary(s->arena, HD_EXPR_ADD, last,
                          hd_expr_int(s->arena, last->type, i)));
    const hd_expr_t *condition = test_bounds(s, var->tensor, indices, 1);
    const hd_expr_t *offset = hd_resolve_offset(s, var, indices);
    const hd_expr_t *load =
        hd_expr_make(s->arena, HD_EXPR_LOAD, type, &like, &offset, 1);
    hd_expr_t lane = {.loc = e->loc, .u.i = i};
    const hd_expr_t *otherwise =
        hd_simplify_node(s, hd_expr_make(s->arena, HD_EXPR_LANE, type, &lane,
                                         &e->operands[rank], 1));
    lanes[i] =
        condition ? hd_expr_select(s->arena, condition, load, otherwise) : load;
  }
  return hd_expr_make(s->arena, HD_EXPR_VECTOR, e->type, e, lanes,
                      e->type.lanes);
}

// Whether an index is too much to be written several times.
static bool is_large(const hd_expr_t *const *indices, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    if (hd_expr_count(indices[i], MAX_INDEX) == MAX_INDEX)
      return true;
  return false;
}

const hd_expr_t *hd_resolve_matrix(hd_simplifier_t *s, const hd_expr_t *e) {
  if (e->linear)
    return hd_simplify_expr(s, e);
  const hd_expr_t **indices =
      HD_ARENA_ARRAY(s->arena, const hd_expr_t *, e->num_operands);
  for (unsigned i = 0; i < e->num_operands; ++i)
    indices[i] = hd_simplify_expr(s, e->operands[i]);
  const hd_expr_t *offset =
      hd_tensor_bare_offset(s->arena, e->u.var->tensor, indices);
  offset = arrange(s, hd_simplify_expr(s, offset));
  hd_expr_t like = {.linear = 1, .loc = e->loc, .u.var = e->u.var};
  return hd_expr_make(s->arena, HD_EXPR_REF, e->type, &like, &offset, 1);
}

const hd_expr_t *hd_resolve_access(hd_simplifier_t *s, const hd_expr_t *e) {
  if (e->linear || is_large(e->operands, hd_expr_num_indices(e)))
    return e;
  const hd_var_t *var = e->u.var;
  const hd_tensor_t *tensor = var->tensor;
  const hd_expr_t *offset = hd_resolve_offset(s, var, e->operands);
  hd_expr_t like = {.linear = 1, .loc = e->loc, .u.var = var};
  if (e->kind != HD_EXPR_LOADELSE)
    return hd_expr_make(s->arena, (hd_expr_kind_t)e->kind, e->type, &like,
                        &offset, 1);
  const hd_expr_t *condition =
      test_bounds(s, tensor, e->operands, e->type.lanes);
  const hd_expr_t *load =
      hd_expr_make(s->arena, HD_EXPR_LOAD, e->type, &like, &offset, 1);
  if (!condition)
    return load;
  return hd_expr_select(s->arena, condition, load,
                        may_stick_out(s, e) ? load_lanes(s, e)
                                            : e->operands[tensor->rank]);
}

const hd_func_t *hd_pass_resolve_layouts(hd_module_t *module,
                                         const hd_func_t *func,
                                         const hd_pass_args_t *args) {
  (void)args;
  return hd_simplify_func(module, func, HD_SIMPLIFY_AND_RESOLVE);
}
