// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What pass vectorize asks of accesses and of conditions.
#include "IR/Passes/Vectorizer.h"

const hd_expr_t *hd_vector_copy(hd_vectorizer_t *v, const hd_expr_t *e,
                                bool copies) {
  if (e->kind == HD_EXPR_VAR && e->u.var == v->loop->u.loop.var)
    return v->turn < 0 ? e : hd_expr_int(v->arena, e->type, v->turn);
  if (e->kind == HD_EXPR_VAR) {
    const hd_expr_t *const *lanes =
        copies ? hd_ptr_map_get(&v->copies, e->u.var) : NULL;
    const hd_expr_t *value = copies ? NULL : hd_ptr_map_get(&v->lets, e->u.var);
    return lanes ? lanes[v->lane] : value ? hd_vector_copy(v, value, false) : e;
  }
  // Where it is needed alone, too, if it is certain to be done elsewhere.
  for (unsigned i = 0; copies && i < v->num_loads; ++i)
    if (v->loads[i].width && v->lane >= 0 &&
        hd_expr_equal(v->loads[i].load, e)) {
      const hd_vector_load_t *load = &v->loads[i];
      hd_expr_t like = {.u.i = v->lane % load->width, .loc = e->loc};
      return hd_expr_make(v->arena, HD_EXPR_LANE, e->type, &like,
                          &load->values[v->lane / load->width], 1);
    }
  if (e->num_operands == 0)
    return e;
  const hd_expr_t **operands =
      HD_ARENA_ARRAY(v->arena, const hd_expr_t *, e->num_operands);
  for (unsigned i = 0; i < e->num_operands; ++i)
    operands[i] = hd_vector_copy(v, e->operands[i], copies);
  return hd_expr_with(v->arena, e, operands);
}

const hd_expr_t *const *hd_vector_copies(hd_vectorizer_t *v,
                                         const hd_expr_t *const *exprs,
                                         unsigned count, bool copies) {
  const hd_expr_t **list = HD_ARENA_ARRAY(v->arena, const hd_expr_t *, count);
  for (unsigned i = 0; i < count; ++i)
    list[i] = hd_vector_copy(v, exprs[i], copies);
  return list;
}

static bool is_other_var(void *argument, const hd_expr_t *e) {
  const hd_vectorizer_t *v = argument;
  return e->kind != HD_EXPR_VAR || e->u.var != v->loop->u.loop.var;
}

static bool depends(hd_vectorizer_t *v, const hd_expr_t *e) {
  return !hd_walk_expr(e, is_other_var, v);
}

// An index with the body's lets replaced by their values: j % 64 may turn out
// to be a sum, and j / 64 not to change.
static const hd_expr_t *index_of(hd_vectorizer_t *v, const hd_expr_t *index) {
  return hd_simplify_expr(v->s, hd_vector_copy(v, index, false));
}

// Whether the last index is the loop's variable plus something that does not
// change with it, and the others do not change.
static bool runs_along(hd_vectorizer_t *v, const hd_expr_t *const *indices,
                       unsigned rank) {
  v->turn = -1;
  for (unsigned a = 0; a + 1 < rank; ++a)
    if (depends(v, index_of(v, indices[a])))
      return false;
  hd_linear_t sum;
  if (rank == 0 || !hd_linear_of(v->s->facts, index_of(v, indices[rank - 1]),
                                 HD_LINEAR_DEEP, &sum))
    return false;
  bool found = false;
  for (unsigned i = 0; i < sum.size; ++i) {
    const hd_expr_t *atom = sum.terms[i].expr;
    bool self = atom->kind == HD_EXPR_VAR && atom->u.var == v->loop->u.loop.var;
    if (self && sum.terms[i].factor == 1)
      found = true;
    else if (depends(v, atom))
      return false;
  }
  return found;
}

static bool stays_together(const hd_tensor_t *tensor, int64_t width) {
  const hd_layout_t *layout = tensor->layout;
  for (unsigned i = 0; layout && i < layout->num_items; ++i) {
    const hd_layout_item_t *item = &layout->items[i];
    int64_t unit = 0;
    if (item->kind == HD_LAYOUT_SWIZZLE && item->num_values == 1)
      unit = HD_VECTOR_BITS / hd_type_bits(tensor->element);
    else if (item->kind == HD_LAYOUT_SWIZZLE &&
             hd_expr_fold_int(item->values[1], &unit))
      unit = unit < 6 ? INT64_C(1) << unit : HD_VECTOR_MAX_WIDTH;
    else if (item->kind == HD_LAYOUT_ROW ||
             (item->kind == HD_LAYOUT_STRIDES &&
              hd_expr_is_int(item->values[item->num_values - 1], 1)))
      unit = HD_VECTOR_MAX_WIDTH;
    if (unit < width)
      return false;
  }
  return true;
}

static bool is_not_stored(void *argument, const hd_expr_t *e) {
  const hd_vectorizer_t *v = argument;
  return !hd_expr_is_access(e) || !hd_ptr_map_get(&v->stores, e->u.var);
}

// Whether the place is the same wherever in its iteration it is found: vectors
// are loaded ahead of what the loop stores, registers too, and stored after.
static bool has_fixed_place(hd_vectorizer_t *v, const hd_expr_t *const *indices,
                            unsigned rank) {
  v->turn = -1;
  for (unsigned a = 0; a < rank; ++a)
    if (!hd_walk_expr(hd_vector_copy(v, indices[a], false), is_not_stored, v))
      return false;
  return true;
}

// Of the indices, those of the first `axes` axes may not be 0. Vectors are
// whole bytes.
static bool is_vector(hd_vectorizer_t *v, const hd_var_t *var,
                      const hd_expr_t *const *indices, unsigned rank,
                      unsigned axes, int64_t width) {
  const hd_tensor_t *tensor = var->tensor;
  int64_t bits = hd_type_bits(tensor->element);
  if (tensor->scope == HD_SCOPE_REGISTER || bits * width % 8 != 0 ||
      hd_type_is_bool(tensor->element) || bits * width > HD_VECTOR_BITS ||
      !stays_together(tensor, width) || !has_fixed_place(v, indices, rank) ||
      !runs_along(v, indices, axes))
    return false;
  v->turn = v->first;
  const hd_expr_t *offset = hd_tensor_offset(
      v->arena, tensor, hd_vector_copies(v, indices, rank, false));
  return hd_facts_divisor(v->s->facts, offset) % width == 0;
}

bool hd_vector_is_access(hd_vectorizer_t *v, const hd_var_t *var,
                         const hd_expr_t *const *indices, unsigned rank,
                         int64_t width) {
  return is_vector(v, var, indices, rank, rank, width);
}

unsigned hd_vector_axes(const hd_expr_t *load) {
  const hd_tensor_t *tensor = load->u.var->tensor;
  unsigned axes = hd_expr_num_indices(load);
  if (load->kind == HD_EXPR_LOADELSE)
    return axes;
  while (axes > 1 && !tensor->layout &&
         hd_expr_is_int(tensor->shape[axes - 1], 1) &&
         hd_expr_is_int(load->operands[axes - 1], 0))
    axes--;
  return axes;
}

bool hd_vector_is_fixed(hd_vectorizer_t *v, const hd_expr_t *const *indices,
                        unsigned rank) {
  v->turn = -1;
  for (unsigned a = 0; a < rank; ++a)
    if (depends(v, index_of(v, indices[a])))
      return false;
  return true;
}

bool hd_vector_is_same(hd_vectorizer_t *v, const hd_expr_t *load) {
  return !load->linear && !hd_ptr_map_get(&v->stores, load->u.var) &&
         hd_vector_is_fixed(v, load->operands, load->num_operands) &&
         has_fixed_place(v, load->operands, load->num_operands);
}

// Whether a - b, where it is `constant + v + what does not change` or the same
// with -v, has one sign for every `width` iterations; before: a < b is asked,
// else a <= b.
static bool has_one_side(hd_vectorizer_t *v, const hd_expr_t *a,
                         const hd_expr_t *b, bool before, int64_t width) {
  hd_linear_t left, right;
  hd_facts_t *facts = v->s->facts;
  if (!hd_linear_of(facts, a, HD_LINEAR_DEEP, &left) ||
      !hd_linear_of(facts, b, HD_LINEAR_DEEP, &right) ||
      !hd_linear_is_exact(facts, &left) || !hd_linear_is_exact(facts, &right) ||
      !hd_linear_add(&left, &right, -1))
    return false;
  // Of the first iteration's difference, moved to where 0 is the side's end.
  int64_t factor = 0, rest = before ? 0 : -1;
  if (__builtin_add_overflow(rest, left.constant, &rest))
    return false;
  for (unsigned i = 0; i < left.size; ++i) {
    const hd_expr_t *atom = left.terms[i].expr;
    if (atom->kind == HD_EXPR_VAR && atom->u.var == v->loop->u.loop.var)
      factor = left.terms[i].factor;
    else if (depends(v, atom) || (hd_facts_divisor(facts, atom) % width != 0 &&
                                  left.terms[i].factor % width != 0))
      return false;
  }
  int64_t first;
  if (factor == 1)
    return !__builtin_add_overflow(rest, v->first, &first) &&
           first % width == 0;
  return factor == -1 && !__builtin_sub_overflow(rest, v->first - 1, &first) &&
         first % width == 0;
}

static bool compares_integers(const hd_expr_t *e) {
  hd_type_t type = e->operands[0]->type;
  return type.lanes == 1 && hd_type_is_signed(type) && !hd_type_is_float(type);
}

bool hd_vector_is_uniform(hd_vectorizer_t *v, const hd_expr_t *condition,
                          int64_t width) {
  v->turn = -1;
  condition = index_of(v, condition);
  if (!depends(v, condition))
    return true;
  const hd_expr_t *const *x = condition->operands;
  switch ((hd_expr_kind_t)condition->kind) {
  case HD_EXPR_AND:
  case HD_EXPR_OR:
    return hd_vector_is_uniform(v, x[0], width) &&
           hd_vector_is_uniform(v, x[1], width);
  case HD_EXPR_NOT:
    return hd_vector_is_uniform(v, x[0], width);
  case HD_EXPR_LT:
  case HD_EXPR_GE:
  case HD_EXPR_LE:
  case HD_EXPR_GT:
    return compares_integers(condition) &&
           has_one_side(v, x[0], x[1],
                        condition->kind == HD_EXPR_LT ||
                            condition->kind == HD_EXPR_GE,
                        width);
  default:
    return false;
  }
}

// Whether of every `width` iterations all are inside the tensor, or none is,
// and a constant stands for them.
static bool is_all_or_none(hd_vectorizer_t *v, const hd_expr_t *load,
                           int64_t width) {
  unsigned last = hd_expr_num_indices(load) - 1;
  const hd_expr_t *index = load->operands[last];
  const hd_expr_t *size = load->u.var->tensor->shape[last];
  if (!hd_expr_is_const(load->operands[last + 1]) ||
      !hd_type_equal(index->type, size->type))
    return false;
  const hd_expr_t *zero = hd_expr_int(v->arena, index->type, 0);
  return hd_vector_is_uniform(
             v, hd_expr_binary(v->arena, HD_EXPR_GE, index, zero), width) &&
         hd_vector_is_uniform(
             v, hd_expr_binary(v->arena, HD_EXPR_LT, index, size), width);
}

bool hd_vector_is_load(hd_vectorizer_t *v, const hd_expr_t *load,
                       int64_t width) {
  return is_vector(v, load->u.var, load->operands, hd_expr_num_indices(load),
                   hd_vector_axes(load), width) &&
         (load->kind == HD_EXPR_LOAD || is_all_or_none(v, load, width));
}
