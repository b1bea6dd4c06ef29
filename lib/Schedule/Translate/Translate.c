// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything but integers with a range (TranslateInt.c) and reductions
// (TranslateReduce.c).
#include "Schedule/Translate/TranslateState.h"

#include "IR/Graph/HostTensor.h"
#include "IR/Intrinsic.h"
#include "IR/Text/Library.h"

const hd_var_t *hd_translate_tensor_as(hd_translator_t *t,
                                       const hd_task_value_t *value,
                                       hd_direction_t direction,
                                       const int64_t *shape, unsigned rank) {
  const hd_var_t *var = hd_ptr_map_get(&t->tensors, value);
  if (var)
    return var;
  var =
      hd_b_param(t->b, value->name, direction, value->type.scalar, shape, rank);
  hd_ptr_map_set(t->b->arena, &t->tensors, value, var);
  hd_vec_push(t->b->arena, &t->args, value);
  return var;
}

const hd_var_t *hd_translate_tensor(hd_translator_t *t,
                                    const hd_task_value_t *value,
                                    hd_direction_t direction) {
  int64_t shape[HD_MAX_RANK];
  for (uint32_t i = 0; i < value->rank; i++)
    shape[i] = hd_flat_size(value, i);
  hd_shape_room(shape, value->rank, shape);
  return hd_translate_tensor_as(t, value, direction, shape, value->rank);
}

void hd_translate_bind(hd_translator_t *t, const hd_index_t *index,
                       const hd_expr_t *e) {
  hd_ptr_map_set(t->b->arena, &t->indices, index, e);
}

hd_scalar_t hd_translate_index_type(const hd_index_t *index) {
  return hd_flat_range(index) <= INT32_MAX ? HD_I32 : HD_I64;
}

// --- Functions ---

static const hd_expr_t *call_intrinsic(hd_translator_t *t, const char *name,
                                       hd_type_t type,
                                       const hd_expr_t *const *args,
                                       unsigned count) {
  hd_intrinsic_t row =
      hd_intrinsic_overload(hd_intrinsic_find(name), type, count);
  return row < HD_INTRINSIC_COUNT
             ? hd_b_intrinsic(t->b, (int)row, type, args, count)
             : NULL;
}

static const hd_func_t *find_overload(hd_context_t *context, const char *name,
                                      hd_type_t type, unsigned count) {
  hd_module_t *library = hd_library_load(context, name);
  size_t cursor = 0;
  const hd_item_t *item;
  while (library && (item = hd_module_next(library, name, &cursor))) {
    const hd_func_t *func = item->kind == HD_ITEM_FUNC ? item->u.func : NULL;
    bool fits = func && func->num_params == count;
    for (unsigned i = 0; fits && i < count; i++)
      fits = hd_type_equal(func->params[i]->type, type);
    if (fits)
      return func;
  }
  return NULL;
}

static const hd_expr_t *call_library(hd_translator_t *t, const char *name,
                                     hd_type_t type,
                                     const hd_expr_t *const *args,
                                     unsigned count) {
  const hd_func_t *func = find_overload(t->b->context, name, type, count);
  if (!func)
    return NULL;
  hd_expr_t like = {.u.func = func, .loc = t->b->loc};
  return hd_expr_make(t->b->arena, HD_EXPR_CALL, type, &like, args, count);
}

// Where is_coarse, by what the library has for that. Types that have no
// overload are computed in f32.
static const hd_expr_t *translate_function(hd_translator_t *t,
                                           const hd_term_t *term) {
  const hd_task_function_info_t *info = hd_task_function_info(term->u.function);
  hd_type_t type = hd_type(term->type.scalar);
  const hd_expr_t *args[3];
  for (unsigned i = 0; i < info->arity; i++)
    args[i] = hd_translate(t, term->operands[i]);
  const hd_expr_t *call = NULL;
  if (t->is_coarse && type.scalar == HD_F32)
    call =
        call_library(t, hd_arena_printf(t->b->arena, "%s_coarse", info->name),
                     type, args, info->arity);
  if (!call)
    call = call_intrinsic(t, info->name, type, args, info->arity);
  if (!call)
    call = call_library(t, info->name, type, args, info->arity);
  if (call)
    return call;
  hd_type_t f32 = hd_type(HD_F32);
  for (unsigned i = 0; i < info->arity; i++)
    args[i] = hd_b_cast(t->b, HD_F32, args[i]);
  call = call_intrinsic(t, info->name, f32, args, info->arity);
  if (!call)
    call = call_library(t, info->name, f32, args, info->arity);
  return hd_b_cast(t->b, term->type.scalar, call);
}

// --- Choices ---

// a, or b, whose statements are in the blocks.
static hd_worth_t join(hd_translator_t *t, const hd_expr_t *condition,
                       hd_worth_t values[2], hd_open_block_t blocks[2]) {
  hd_translate_unify(t, &values[0], &values[1]);
  if (blocks[0].stmts.size + blocks[1].stmts.size == 0)
    return (hd_worth_t){
        hd_expr_select(t->b->arena, condition, values[0].e, values[1].e),
        hd_range_hull(values[0].range, values[1].range)};
  const hd_var_t *cell = hd_b_register(
      t->b, "chosen", (hd_scalar_t)values[0].e->type.scalar, NULL, 0, NULL);
  hd_block_t done[2];
  for (int i = 0; i < 2; i++) {
    hd_open_block_t *block = &blocks[i];
    block->outer = t->b->block;
    t->b->block = block;
    hd_b_set(t->b, cell, values[i].e);
    done[i] = hd_b_close(t->b);
  }
  hd_b_if(t->b, condition, done[0], done[1]);
  return (hd_worth_t){hd_b_get(t->b, cell),
                      hd_range_hull(values[0].range, values[1].range)};
}

// condition ? then : otherwise; NULL stands for a bool.
static hd_worth_t choose(hd_translator_t *t, const hd_term_t *condition,
                         const hd_term_t *const branches[2], bool otherwise) {
  const hd_expr_t *test = hd_translate(t, condition);
  int64_t known;
  if (hd_expr_is_const(test) && hd_expr_fold_int(test, &known)) {
    const hd_term_t *taken = branches[known ? 0 : 1];
    return taken ? hd_translate_worth(t, taken)
                 : hd_translate_any(hd_expr_bool(t->b->arena, otherwise));
  }
  hd_worth_t values[2];
  hd_open_block_t blocks[2];
  size_t facts = t->facts.size;
  for (int i = 0; i < 2; i++) {
    hd_b_open(t->b, &blocks[i]);
    hd_translate_assume(t, condition, i == 0);
    values[i] = branches[i]
                    ? hd_translate_worth(t, branches[i])
                    : hd_translate_any(hd_expr_bool(t->b->arena, otherwise));
    t->facts.size = facts;
    t->b->block = blocks[i].outer;
  }
  return join(t, test, values, blocks);
}

// a && b, a || b: b is evaluated where it matters, and knows what a says.
static hd_worth_t translate_logic(hd_translator_t *t, const hd_term_t *term) {
  bool is_and = term->u.op == HD_EXPR_AND;
  const hd_term_t *branches[2] = {is_and ? term->operands[1] : NULL,
                                  is_and ? NULL : term->operands[1]};
  hd_worth_t value = choose(t, term->operands[0], branches, !is_and);
  // An operator says it shorter.
  const hd_expr_t *e = value.e;
  if (e->kind == HD_EXPR_SELECT)
    value.e = hd_expr_binary(t->b->arena, term->u.op, e->operands[0],
                             e->operands[is_and ? 1 : 2]);
  return value;
}

// --- Accesses ---

const hd_expr_t *hd_translate_place(hd_translator_t *t, const hd_term_t *term,
                                    int64_t size) {
  hd_worth_t at = hd_translate_axis(t, term);
  bool above = at.range.least < 0, below = at.range.greatest >= size;
  if (above || below) {
    at.e = hd_b_let(t->b, "place", at.e);
    const hd_expr_t *is_above =
        above ? hd_b_op_int(t->b, HD_EXPR_GE, at.e, 0) : NULL;
    const hd_expr_t *is_below =
        below ? hd_b_op_int(t->b, HD_EXPR_LT, at.e, size) : NULL;
    hd_b_assert(t->b, hd_b_and(t->b, is_above, is_below),
                "an index is outside its tensor");
  }
  return hd_b_cast(t->b, size <= INT32_MAX ? HD_I32 : HD_I64, at.e);
}

static const hd_expr_t *translate_load(hd_translator_t *t,
                                       const hd_term_t *term) {
  const hd_task_value_t *value = term->u.value;
  const hd_expr_t *known = hd_ptr_map_get(&t->values, value);
  if (known)
    return known;
  const hd_var_t *tensor = hd_translate_tensor(t, value, HD_DIR_IN);
  const hd_expr_t *places[HD_MAX_RANK];
  for (uint32_t i = 0; i < value->rank; i++)
    places[i] =
        hd_translate_place(t, term->operands[i], hd_flat_size(value, i));
  // Each place of what has no elements is outside, as is said by now.
  for (uint32_t i = 0; hd_flat_count(value) == 0 && i < value->rank; i++)
    places[i] = hd_b_i32(t->b, 0);
  return hd_b_load(t->b, tensor, places, value->rank);
}

// Where the element that stands for one outside takes statements, they are
// evaluated where it is needed alone.
static const hd_expr_t *translate_guarded(hd_translator_t *t,
                                          const hd_term_t *term) {
  const hd_task_value_t *value = term->u.value;
  const hd_var_t *tensor = hd_translate_tensor(t, value, HD_DIR_IN);
  const hd_expr_t *places[HD_MAX_RANK + 1];
  const hd_expr_t *inside = NULL;
  for (uint32_t i = 0; i < value->rank; i++) {
    hd_worth_t at = hd_translate_axis(t, term->operands[i]);
    places[i] = at.e;
    int64_t size = hd_flat_size(value, i);
    if (at.range.least < 0)
      inside = hd_b_and(t->b, inside, hd_b_op_int(t->b, HD_EXPR_GE, at.e, 0));
    if (at.range.greatest >= size)
      inside =
          hd_b_and(t->b, inside, hd_b_op_int(t->b, HD_EXPR_LT, at.e, size));
  }
  const hd_expr_t *load = hd_b_load(t->b, tensor, places, value->rank);
  if (!inside)
    return load;
  hd_open_block_t blocks[2] = {0};
  hd_b_open(t->b, &blocks[1]);
  const hd_expr_t *otherwise = hd_translate(t, term->operands[value->rank]);
  t->b->block = blocks[1].outer;
  if (blocks[1].stmts.size) {
    hd_worth_t values[2] = {hd_translate_any(load),
                            hd_translate_any(otherwise)};
    return join(t, inside, values, blocks).e;
  }
  places[value->rank] = otherwise;
  return hd_expr_access(t->b->arena, HD_EXPR_LOADELSE, tensor, 1, places,
                        value->rank + 1);
}

// --- All terms ---

static const hd_expr_t *translate_const(hd_translator_t *t,
                                        const hd_term_t *term) {
  hd_type_t type = hd_type(term->type.scalar);
  return hd_type_is_float(type) ? hd_expr_float(t->b->arena, type, term->u.f)
                                : hd_expr_int(t->b->arena, type, term->u.i);
}

static hd_worth_t translate_operator(hd_translator_t *t,
                                     const hd_term_t *term) {
  hd_expr_kind_t op = term->u.op;
  if (op == HD_EXPR_AND || op == HD_EXPR_OR)
    return translate_logic(t, term);
  const hd_expr_t *a = hd_translate(t, term->operands[0]);
  if (term->num_operands == 1)
    return hd_translate_any(hd_expr_unary(t->b->arena, op, a));
  const hd_expr_t *b = hd_translate(t, term->operands[1]);
  return hd_translate_any(hd_expr_binary(t->b->arena, op, a, b));
}

static hd_worth_t translate_reduce(hd_translator_t *t, const hd_term_t *term) {
  const hd_var_t *cells[HD_MAX_COMPONENTS];
  hd_translate_begin(t, term, cells);
  hd_translate_loops(t, term, cells);
  return hd_translate_any(hd_b_get(t->b, cells[0]));
}

hd_worth_t hd_translate_worth(hd_translator_t *t, const hd_term_t *term) {
  bool is_index = term->type.scalar == HD_I64;
  switch ((hd_term_kind_t)term->kind) {
  case HD_TERM_CONST:
    return is_index ? hd_translate_number(t, term->u.i)
                    : hd_translate_any(translate_const(t, term));
  case HD_TERM_INDEX:
    return hd_translate_index(t, term->u.index);
  case HD_TERM_BOUND:
    return hd_translate_any(hd_ptr_map_get(&t->variables, term->u.variable));
  case HD_TERM_OPERATOR:
    return term->operands[0]->type.scalar == HD_I64
               ? hd_translate_integers(t, term)
               : translate_operator(t, term);
  case HD_TERM_SELECT:
    return choose(t, term->operands[0], &term->operands[1], false);
  case HD_TERM_CAST:
    return hd_translate_cast(t, term);
  case HD_TERM_BITCAST:
    return hd_translate_any(hd_b_bitcast(t->b, term->type.scalar,
                                         hd_translate(t, term->operands[0])));
  case HD_TERM_FUNCTION:
    return hd_translate_any(translate_function(t, term));
  case HD_TERM_LOAD:
    return hd_translate_any(translate_load(t, term));
  case HD_TERM_LOADELSE:
    return hd_translate_any(translate_guarded(t, term));
  case HD_TERM_REDUCE:
  case HD_TERM_SCAN:
    return translate_reduce(t, term);
  case HD_TERM_LIMIT:
  case HD_TERM_SIZE:
  case HD_TERM_PACK:
  case HD_TERM_BROADCAST:
  case HD_TERM_PERMUTE:
  case HD_TERM_ATTRIBUTE:
  case HD_TERM_COUNT:
    break; // Not in a flat task.
  }
  return (hd_worth_t){0};
}

const hd_expr_t *hd_translate(hd_translator_t *t, const hd_term_t *term) {
  return hd_b_cast(t->b, term->type.scalar, hd_translate_worth(t, term).e);
}
