// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Schedule/Terms/Terms.h"

#include <string.h>

#include <math.h>

int64_t hd_flat_count(const hd_task_value_t *value) {
  int64_t count = 1;
  for (uint32_t i = 0; i < value->rank; i++)
    count *= hd_flat_size(value, i);
  return count;
}

int64_t hd_flat_points(const hd_index_t *const *indices, unsigned count) {
  int64_t points = 1;
  for (unsigned i = 0; i < count; i++)
    if (hd_flat_range(indices[i]) == 0)
      return 0;
  for (unsigned i = 0; i < count; i++)
    if (__builtin_mul_overflow(points, hd_flat_range(indices[i]), &points))
      return INT64_MAX;
  return points;
}

const hd_term_t *hd_flat_int(hd_arena_t *arena, hd_scalar_t type,
                             int64_t value) {
  hd_term_t *term =
      hd_term_make(arena, HD_TERM_CONST, hd_flat_type(type), NULL, 0);
  term->u.i = value;
  return term;
}

const hd_term_t *hd_flat_float(hd_arena_t *arena, hd_scalar_t type,
                               double value) {
  hd_term_t *term =
      hd_term_make(arena, HD_TERM_CONST, hd_flat_type(type), NULL, 0);
  term->u.f = hd_float_round(type, value);
  return term;
}

const hd_term_t *hd_flat_index(hd_arena_t *arena, const hd_index_t *index) {
  if (hd_flat_range(index) == 1)
    return hd_flat_int(arena, HD_I64, 0);
  hd_term_t *term =
      hd_term_make(arena, HD_TERM_INDEX, hd_flat_type(HD_I64), NULL, 0);
  term->u.index = index;
  return term;
}

const hd_term_t *hd_flat_load(hd_arena_t *arena, const hd_task_value_t *value,
                              const hd_term_t *const *operands) {
  hd_term_t *term =
      hd_term_make(arena, HD_TERM_LOAD, value->type, operands, value->rank);
  term->u.value = value;
  term->loc = value->loc;
  return term;
}

hd_index_t *hd_flat_index_make(hd_arena_t *arena, const char *name,
                               int64_t range) {
  hd_index_t *index = HD_ARENA_NEW(arena, hd_index_t);
  index->name = name;
  index->range = hd_flat_int(arena, HD_I64, range);
  index->written = true;
  return index;
}

hd_task_value_t *hd_flat_value_make(hd_arena_t *arena, const char *name,
                                    hd_value_kind_t kind, hd_scalar_t type,
                                    const int64_t *shape, unsigned rank) {
  hd_task_value_t *value = HD_ARENA_NEW(arena, hd_task_value_t);
  const hd_term_t **sizes = HD_ARENA_ARRAY(arena, const hd_term_t *, rank);
  for (unsigned i = 0; i < rank; i++)
    sizes[i] = hd_flat_int(arena, HD_I64, shape[i]);
  *value = (hd_task_value_t){.name = name,
                             .kind = kind,
                             .type = hd_flat_type(type),
                             .rank = rank,
                             .shape = sizes};
  return value;
}

static int64_t least_int(hd_scalar_t type) {
  return hd_type_is_signed(hd_type(type))
             ? (int64_t)(UINT64_MAX << (hd_scalar_bits(type) - 1))
             : 0;
}

static int64_t most_int(hd_scalar_t type) {
  unsigned bits = hd_scalar_bits(type) - hd_type_is_signed(hd_type(type));
  return (int64_t)(bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1);
}

const hd_term_t *hd_flat_identity(hd_arena_t *arena, const hd_monoid_t *monoid,
                                  unsigned component, hd_scalar_t type) {
  bool is_float = hd_type_is_float(hd_type(type));
  switch (monoid->builtin) {
  case HD_MONOID_SUM:
  case HD_MONOID_ANY:
    return is_float ? hd_flat_float(arena, type, 0)
                    : hd_flat_int(arena, type, 0);
  case HD_MONOID_PROD:
  case HD_MONOID_ALL:
    return is_float ? hd_flat_float(arena, type, 1)
                    : hd_flat_int(arena, type, 1);
  case HD_MONOID_MAX:
    return is_float ? hd_flat_float(arena, type, -INFINITY)
                    : hd_flat_int(arena, type, least_int(type));
  case HD_MONOID_MIN:
    return is_float ? hd_flat_float(arena, type, INFINITY)
                    : hd_flat_int(arena, type, most_int(type));
  case HD_MONOID_COUNT:
    break;
  }
  return monoid->identity[component];
}

// --- Folding: of i64 and bool alone, which indices and conditions are made of.

static bool compare(hd_expr_kind_t op, int64_t a, int64_t b) {
  return op == HD_EXPR_LT   ? a < b
         : op == HD_EXPR_LE ? a <= b
         : op == HD_EXPR_GT ? a > b
         : op == HD_EXPR_GE ? a >= b
         : op == HD_EXPR_EQ ? a == b
                            : a != b;
}

// Wrapping, as the language says.
static bool fold_ints(hd_expr_kind_t op, int64_t a, int64_t b, int64_t *value) {
  uint64_t x = (uint64_t)a, y = (uint64_t)b;
  if ((op == HD_EXPR_DIV || op == HD_EXPR_MOD) && (b == 0 || b == -1))
    return false;
  if (op == HD_EXPR_ADD)
    *value = (int64_t)(x + y);
  else if (op == HD_EXPR_SUB)
    *value = (int64_t)(x - y);
  else if (op == HD_EXPR_MUL)
    *value = (int64_t)(x * y);
  else if (op == HD_EXPR_DIV)
    *value = a / b;
  else if (op == HD_EXPR_MOD)
    *value = a % b;
  else if (op == HD_EXPR_MIN)
    *value = a < b ? a : b;
  else if (op == HD_EXPR_MAX)
    *value = a > b ? a : b;
  else
    return false;
  return true;
}

static const hd_term_t *fold_operator(hd_arena_t *arena,
                                      const hd_term_t *term) {
  const hd_term_t *a = term->operands[0];
  const hd_term_t *b = term->num_operands > 1 ? term->operands[1] : NULL;
  hd_expr_kind_t op = term->u.op;
  bool a_known = a->kind == HD_TERM_CONST;
  bool b_known = b && b->kind == HD_TERM_CONST;
  bool are_bool = a->type.scalar == HD_BOOL;
  if (op == HD_EXPR_NOT && a_known)
    return hd_flat_int(arena, HD_BOOL, !a->u.i);
  if (are_bool && (op == HD_EXPR_AND || op == HD_EXPR_OR)) {
    bool decides = op == HD_EXPR_OR;
    if (a_known)
      return !a->u.i == !decides ? a : b;
    return b_known && !b->u.i != !decides ? a : NULL;
  }
  if (a->type.scalar != HD_I64)
    return NULL;
  int64_t value;
  if (op == HD_EXPR_NEG && a_known)
    return hd_flat_int(arena, HD_I64, (int64_t)(0 - (uint64_t)a->u.i));
  if (a_known && b_known && hd_expr_info(op)->form == HD_FORM_COMPARE)
    return hd_flat_int(arena, HD_BOOL, compare(op, a->u.i, b->u.i));
  if (a_known && b_known)
    return fold_ints(op, a->u.i, b->u.i, &value)
               ? hd_flat_int(arena, HD_I64, value)
               : NULL;
  // min(min(x, c), d)
  bool bounds = op == HD_EXPR_MIN || op == HD_EXPR_MAX;
  if (bounds && b_known && a->kind == HD_TERM_OPERATOR && a->u.op == op &&
      a->operands[1]->kind == HD_TERM_CONST &&
      fold_ints(op, a->operands[1]->u.i, b->u.i, &value))
    return hd_flat_operate(arena, op, a->operands[0],
                           hd_flat_int(arena, HD_I64, value));
  bool adds = op == HD_EXPR_ADD || op == HD_EXPR_SUB;
  bool scales = op == HD_EXPR_MUL || op == HD_EXPR_DIV;
  if (b && ((adds && hd_flat_is_int(b, 0)) || (scales && hd_flat_is_int(b, 1))))
    return a;
  if ((op == HD_EXPR_ADD && hd_flat_is_int(a, 0)) ||
      (op == HD_EXPR_MUL && hd_flat_is_int(a, 1)))
    return b;
  if (b &&
      ((op == HD_EXPR_MUL && (hd_flat_is_int(a, 0) || hd_flat_is_int(b, 0))) ||
       (op == HD_EXPR_MOD && hd_flat_is_int(b, 1))))
    return hd_flat_int(arena, HD_I64, 0);
  // An index that never comes as far as b.
  if (b_known && a->kind == HD_TERM_INDEX &&
      hd_flat_range(a->u.index) <= b->u.i)
    return op == HD_EXPR_DIV   ? hd_flat_int(arena, HD_I64, 0)
           : op == HD_EXPR_MOD ? a
                               : NULL;
  return NULL;
}

hd_term_t *hd_flat_like(hd_arena_t *arena, const hd_term_t *like,
                        const hd_term_t *const *operands) {
  hd_term_t *copy = hd_term_make(arena, (hd_term_kind_t)like->kind, like->type,
                                 operands, like->num_operands);
  copy->u = like->u;
  copy->loc = like->loc;
  return copy;
}

hd_definition_t *hd_flat_define(hd_arena_t *arena,
                                const hd_task_value_t *target,
                                const hd_index_t *const *indices,
                                const hd_term_t *term) {
  const hd_task_value_t **targets =
      HD_ARENA_ARRAY(arena, const hd_task_value_t *, 1);
  const hd_index_t **own =
      HD_ARENA_ARRAY(arena, const hd_index_t *, target->rank);
  targets[0] = target;
  for (uint32_t i = 0; i < target->rank; i++)
    own[i] = indices[i];
  hd_definition_t *d = HD_ARENA_NEW(arena, hd_definition_t);
  *d = (hd_definition_t){.kind = HD_DEFINE,
                         .loc = target->loc,
                         .num_targets = 1,
                         .targets = targets,
                         .num_indices = target->rank,
                         .indices = own,
                         .term = term};
  return d;
}

const hd_term_t *hd_flat_rebuild(hd_arena_t *arena, const hd_term_t *term,
                                 const hd_term_t *const *operands) {
  if (term->kind == HD_TERM_SELECT && operands[0]->kind == HD_TERM_CONST)
    return operands[operands[0]->u.i ? 1 : 2];
  if (term->kind == HD_TERM_CAST &&
      hd_task_type_equal(operands[0]->type, term->type))
    return operands[0];
  const hd_term_t *copy = hd_flat_like(arena, term, operands);
  const hd_term_t *folded =
      term->kind == HD_TERM_OPERATOR ? fold_operator(arena, copy) : NULL;
  return folded ? folded : copy;
}

const hd_term_t *hd_flat_rewrite(hd_arena_t *arena, const hd_term_t *term,
                                 hd_flat_leave_t leave, void *argument) {
  const hd_term_t *small[8];
  const hd_term_t **operands =
      term->num_operands <= 8
          ? small
          : HD_ARENA_ARRAY(arena, const hd_term_t *, term->num_operands);
  bool changed = false;
  for (unsigned i = 0; i < term->num_operands; i++) {
    operands[i] = hd_flat_rewrite(arena, term->operands[i], leave, argument);
    changed |= operands[i] != term->operands[i];
  }
  if (changed)
    term = hd_flat_rebuild(arena, term, operands);
  if (term->kind == HD_TERM_SCAN) {
    const hd_reduction_t *r = term->u.reduction;
    const hd_term_t *at = hd_flat_rewrite(arena, r->at, leave, argument);
    if (at != r->at) {
      hd_reduction_t *copy = HD_ARENA_COPY(arena, hd_reduction_t, r);
      copy->at = at;
      hd_term_t shape = *term;
      shape.u.reduction = copy;
      term = hd_flat_like(arena, &shape, term->operands);
    }
  }
  return leave(argument, term);
}

const hd_term_t *hd_flat_operate(hd_arena_t *arena, hd_expr_kind_t op,
                                 const hd_term_t *a, const hd_term_t *b) {
  bool compares = hd_expr_info(op)->form == HD_FORM_COMPARE;
  const hd_term_t *operands[] = {a, b};
  hd_term_t *term =
      hd_term_make(arena, HD_TERM_OPERATOR,
                   compares ? hd_flat_type(HD_BOOL) : a->type, operands, 2);
  term->u.op = op;
  const hd_term_t *folded = fold_operator(arena, term);
  return folded ? folded : term;
}

const hd_term_t *hd_flat_operate_int(hd_arena_t *arena, hd_expr_kind_t op,
                                     const hd_term_t *a, int64_t b) {
  return hd_flat_operate(arena, op, a, hd_flat_int(arena, HD_I64, b));
}

const hd_term_t *hd_flat_cast(hd_arena_t *arena, const hd_term_t *term,
                              hd_scalar_t type) {
  return term->type.scalar == type
             ? term
             : hd_term_make(arena, HD_TERM_CAST, hd_flat_type(type), &term, 1);
}

const hd_term_t *hd_flat_select(hd_arena_t *arena, const hd_term_t *condition,
                                const hd_term_t *a, const hd_term_t *b) {
  const hd_term_t *operands[] = {condition, a, b};
  return hd_term_make(arena, HD_TERM_SELECT, a->type, operands, 3);
}

typedef struct replacement {
  const hd_term_t *from, *to;
} replacement_t;

static const hd_term_t *replace(void *argument, const hd_term_t *term) {
  const replacement_t *r = argument;
  return term == r->from ? r->to : term;
}

const hd_term_t *hd_flat_replace(hd_arena_t *arena, const hd_term_t *term,
                                 const hd_term_t *from, const hd_term_t *to) {
  replacement_t r = {from, to};
  return hd_flat_rewrite(arena, term, replace, &r);
}

void hd_flat_walk(const hd_term_t *term, hd_flat_visit_t visit,
                  void *argument) {
  if (!visit(argument, term))
    return;
  for (unsigned i = 0; i < term->num_operands; i++)
    hd_flat_walk(term->operands[i], visit, argument);
  if (term->kind == HD_TERM_SCAN)
    hd_flat_walk(term->u.reduction->at, visit, argument);
}

typedef struct search {
  const hd_index_t *index;
  hd_term_kind_t kind;
  bool found;
} search_t;

static bool find_term(void *argument, const hd_term_t *term) {
  search_t *s = argument;
  s->found |= s->index
                  ? term->kind == HD_TERM_INDEX && term->u.index == s->index
                  : (hd_term_kind_t)term->kind == s->kind;
  return !s->found;
}

bool hd_flat_uses(const hd_term_t *term, const hd_index_t *index) {
  search_t s = {.index = index};
  hd_flat_walk(term, find_term, &s);
  return s.found;
}

typedef struct reader {
  const hd_task_value_t *value;
  bool found;
} reader_t;

static bool find_read(void *argument, const hd_term_t *term) {
  reader_t *r = argument;
  r->found |= hd_flat_is_load(term) && term->u.value == r->value;
  return !r->found;
}

bool hd_flat_reads(const hd_term_t *term, const hd_task_value_t *value) {
  reader_t r = {value, false};
  hd_flat_walk(term, find_read, &r);
  return r.found;
}

bool hd_flat_has(const hd_term_t *term, hd_term_kind_t kind) {
  search_t s = {.kind = kind};
  hd_flat_walk(term, find_term, &s);
  return s.found;
}

static bool is_indexed_load(void *argument, const hd_term_t *term) {
  bool *found = argument;
  for (uint32_t i = 0; term->kind == HD_TERM_LOAD && i < term->num_operands;
       i++)
    *found |= hd_flat_has(term->operands[i], HD_TERM_INDEX);
  return !*found;
}

static bool is_gathering(void *argument, const hd_term_t *term) {
  bool *found = argument;
  for (uint32_t i = 0; term->kind == HD_TERM_LOAD && i < term->num_operands;
       i++)
    hd_flat_walk(term->operands[i], is_indexed_load, found);
  return !*found;
}

bool hd_flat_gathers(const hd_term_t *term) {
  bool found = false;
  hd_flat_walk(term, is_gathering, &found);
  return found;
}

bool hd_flat_is_reduction(const hd_term_t *term) {
  return term->kind == HD_TERM_REDUCE || term->kind == HD_TERM_SCAN;
}

bool hd_flat_is_lazy(const hd_term_t *term, unsigned i) {
  if (term->kind == HD_TERM_LOADELSE)
    return i + 1u == term->num_operands;
  bool logic = term->kind == HD_TERM_OPERATOR &&
               (term->u.op == HD_EXPR_AND || term->u.op == HD_EXPR_OR);
  return i > 0 && (term->kind == HD_TERM_SELECT || logic);
}

static bool find_risk(void *argument, const hd_term_t *term) {
  bool *risky = argument;
  for (uint32_t i = 0; term->kind == HD_TERM_LOAD && i < term->num_operands;
       i++)
    *risky |= term->operands[i]->kind != HD_TERM_INDEX &&
              term->operands[i]->kind != HD_TERM_CONST;
  return !*risky;
}

bool hd_flat_is_risky(const hd_term_t *term) {
  bool risky = false;
  hd_flat_walk(term, find_risk, &risky);
  return risky;
}

void hd_flat_forget_local(hd_task_t *task, const hd_task_value_t *value) {
  size_t kept = 0;
  for (size_t i = 0; i < task->locals.size; i++)
    if (task->locals.data[i] != value)
      task->locals.data[kept++] = task->locals.data[i];
  task->locals.size = kept;
}

bool hd_flat_is_among(const hd_index_t *const *indices, unsigned count,
                      const hd_index_t *index) {
  while (count > 0 && indices[count - 1] != index)
    count--;
  return count > 0;
}

hd_task_t *hd_flat_emptied(hd_arena_t *arena, const hd_task_t *flat) {
  hd_task_t *task = HD_ARENA_COPY(arena, hd_task_t, flat);
  memset(&task->inputs, 0, sizeof(task->inputs));
  memset(&task->definitions, 0, sizeof(task->definitions));
  return task;
}
