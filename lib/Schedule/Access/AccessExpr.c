// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replacing loads in expressions. Where a hook pushes statements, they come
// before the statement that the load stands in; so what was evaluated before
// the load and has effects, or may see them, gets a name before, and what was
// evaluated only where it was needed becomes an `if`:
//
//   y = i > 0 ? x[i - 1] : 0
//
// becomes, where the hook of x pushes S and gives v,
//
//   register chosen: f32
//   if i > 0 { S  chosen = v } else { chosen = 0 }
//   y = chosen
//
// and stays as it is, with v for x[i - 1], where it pushes nothing or names
// alone that may be evaluated anywhere.

#include "Schedule/Access/AccessState.h"

#include "IR/Effects.h"
#include "IR/Intrinsic.h"
#include "TaskMapping/Points.h"

#include <assert.h>

static const hd_expr_t *translate(hd_accessor_t *a, const hd_expr_t *e);

const hd_access_hook_t *hd_accessor_hook(const hd_accessor_t *a,
                                         const hd_var_t *param) {
  for (size_t i = 0; i < a->num_hooks; i++)
    if (a->hooks[i].param == param)
      return &a->hooks[i];
  return NULL;
}

bool hd_access_is_cached_load(const hd_expr_t *e) {
  return hd_expr_has_trait(e, HD_TRAIT_LOAD);
}

bool hd_access_is_cached_store(const hd_expr_t *e) {
  return hd_expr_has_trait(e, HD_TRAIT_STORE);
}

bool hd_access_is_prefetch(const hd_expr_t *e) {
  return hd_expr_has_trait(e, HD_TRAIT_PREFETCH);
}

// --- Order ---

// What gives e's value later, too, whatever happens before.
static const hd_expr_t *fixed(hd_accessor_t *a, const hd_expr_t *e) {
  if (e->kind == HD_EXPR_TENSOR)
    return e;
  if (e->kind != HD_EXPR_REF)
    return hd_expr_is_stable(e) ? e : hd_b_let(&a->b, "value", e);
  const hd_expr_t **indices =
      HD_ARENA_ARRAY(a->b.arena, const hd_expr_t *, e->num_operands);
  for (unsigned i = 0; i < e->num_operands; i++)
    indices[i] = fixed(a, e->operands[i]);
  return hd_expr_make(a->b.arena, HD_EXPR_REF, e->type, e, indices,
                      e->num_operands);
}

static void push_all(hd_accessor_t *a, const hd_stmt_list_t *stmts) {
  for (size_t i = 0; i < stmts->size; i++)
    hd_b_push(&a->b, stmts->data[i]);
}

static void translate_all(hd_accessor_t *a, const hd_expr_t *const *exprs,
                          size_t count, const hd_expr_t **out) {
  for (size_t i = 0; i < count; i++) {
    hd_open_block_t block;
    hd_b_open(&a->b, &block);
    out[i] = exprs[i] ? translate(a, exprs[i]) : NULL;
    a->b.block = block.outer;
    for (size_t j = 0; a->has_effects && block.stmts.size && j < i; j++)
      if (out[j])
        out[j] = fixed(a, out[j]);
    push_all(a, &block.stmts);
  }
}

void hd_access_exprs(hd_accessor_t *a, const hd_expr_t *const *exprs,
                     size_t count, const hd_expr_t **out) {
  a->has_effects = !hd_exprs_are_pure(exprs, count);
  a->roots = exprs;
  a->num_roots = count;
  a->known.size = 0;
  translate_all(a, exprs, count, out);
}

// --- What is loaded twice ---

typedef struct count {
  const hd_expr_t *load;
  unsigned found;
} count_t;

static bool count_load(void *argument, const hd_expr_t *e) {
  count_t *count = argument;
  count->found += e == count->load || hd_expr_equal(e, count->load);
  return count->found < 2;
}

static bool is_loaded_twice(const hd_accessor_t *a, const hd_expr_t *load) {
  count_t count = {load, 0};
  for (size_t i = 0; i < a->num_roots; i++)
    if (a->roots[i] && !hd_walk_expr(a->roots[i], count_load, &count))
      return true;
  return false;
}

// NULL where nothing is known of a load.
static const hd_expr_t *find_known(const hd_accessor_t *a,
                                   const hd_expr_t *load) {
  for (size_t i = 0; !a->has_effects && i < a->known.size; i++)
    if (hd_expr_equal(a->known.data[i].load, load))
      return a->known.data[i].value;
  return NULL;
}

// Names the value of a load that the expressions have once more, and knows it
// from here on.
static const hd_expr_t *make_known(hd_accessor_t *a, const hd_expr_t *load,
                                   const hd_expr_t *value) {
  if (a->has_effects || !is_loaded_twice(a, load))
    return value;
  hd_access_known_t known = {load, hd_b_let(&a->b, load->u.var->name, value)};
  hd_vec_push(a->b.arena, &a->known, known);
  return known.value;
}

// --- Laziness ---

// Cheap, and the same and without harm wherever it is evaluated.
static bool is_harmless(void *argument, const hd_expr_t *e) {
  (void)argument;
  bool divides = e->kind == HD_EXPR_DIV || e->kind == HD_EXPR_MOD;
  return !hd_expr_is_access(e) && e->kind != HD_EXPR_CALL &&
         e->kind != HD_EXPR_INTRINSIC &&
         (!divides || (hd_expr_is_const(e->operands[1]) &&
                       !hd_expr_is_int(e->operands[1], 0)));
}

// Ends the open block. Where it holds harmless names alone, they go to the
// block around it.
static hd_access_lazy_t end_lazy(hd_accessor_t *a, const hd_expr_t *value) {
  hd_access_lazy_t lazy = {a->b.block->stmts, value};
  a->b.block = a->b.block->outer;
  for (size_t i = 0; i < lazy.stmts.size; i++) {
    const hd_stmt_t *stmt = lazy.stmts.data[i];
    if (stmt->kind != HD_STMT_LET ||
        !hd_walk_expr(stmt->u.let.value, is_harmless, NULL))
      return lazy;
  }
  push_all(a, &lazy.stmts);
  lazy.stmts.size = 0;
  return lazy;
}

static hd_access_lazy_t translate_lazily(hd_accessor_t *a, const hd_expr_t *e) {
  hd_open_block_t block;
  size_t known = a->known.size;
  hd_b_open(&a->b, &block);
  e = translate(a, e);
  a->known.size = known; // No one outside has the names.
  return end_lazy(a, e);
}

const hd_var_t *hd_access_cell(hd_accessor_t *a, hd_type_t type,
                               const hd_expr_t *init) {
  int64_t lanes = type.lanes;
  return hd_b_register(&a->b, "chosen", (hd_scalar_t)type.scalar, &lanes,
                       lanes > 1, init);
}

const hd_expr_t *hd_access_get_cell(hd_accessor_t *a, const hd_var_t *cell,
                                    hd_type_t type) {
  const hd_expr_t *first = hd_b_i32(&a->b, 0);
  return hd_expr_access(a->b.arena, HD_EXPR_LOAD, cell, type.lanes, &first,
                        cell->tensor->rank);
}

void hd_access_to_cell(hd_accessor_t *a, const hd_access_lazy_t *lazy,
                       const hd_var_t *cell) {
  const hd_expr_t *first = hd_b_i32(&a->b, 0);
  push_all(a, &lazy->stmts);
  hd_b_store(&a->b, cell, &first, cell->tensor->rank, lazy->value);
}

static hd_block_t to_cell(hd_accessor_t *a, const hd_access_lazy_t *lazy,
                          const hd_var_t *cell) {
  hd_open_block_t block;
  hd_b_open(&a->b, &block);
  hd_access_to_cell(a, lazy, cell);
  return hd_b_close(&a->b);
}

// condition ? x : y, as an expression or by statements.
static const hd_expr_t *choose(hd_accessor_t *a, const hd_expr_t *condition,
                               const hd_access_lazy_t *x,
                               const hd_access_lazy_t *y) {
  if (!condition)
    condition = hd_expr_bool(a->b.arena, true);
  if (x->stmts.size == 0 && y->stmts.size == 0)
    return hd_expr_select(a->b.arena, condition, x->value, y->value);
  const hd_var_t *cell = hd_access_cell(a, x->value->type, NULL);
  hd_b_if(&a->b, condition, to_cell(a, x, cell), to_cell(a, y, cell));
  return hd_access_get_cell(a, cell, x->value->type);
}

// --- Bounds ---

// What is an index to the language, in a type that holds it and is signed.
static const hd_expr_t *to_index(hd_accessor_t *a, const hd_expr_t *e) {
  switch ((hd_scalar_t)e->type.scalar) {
  case HD_I32:
  case HD_I64:
    return e;
  case HD_U32:
  case HD_U64:
    return hd_b_cast(&a->b, HD_I64, e);
  default:
    return hd_b_cast(&a->b, HD_I32, e);
  }
}

void hd_access_name_indices(hd_accessor_t *a, const hd_expr_t *const *indices,
                            unsigned count, const hd_expr_t **at) {
  for (unsigned i = 0; i < count; i++)
    at[i] = hd_b_let(&a->b, "at", to_index(a, indices[i]));
}

const hd_expr_t *hd_access_inside(hd_accessor_t *a, const hd_tensor_t *tensor,
                                  const hd_expr_t *const *at, unsigned lanes) {
  hd_builder_t *b = &a->b;
  const hd_expr_t *all = NULL;
  for (unsigned i = 0; i < tensor->rank; i++) {
    const hd_expr_t *index = to_index(a, at[i]), *size = tensor->shape[i];
    if (index->type.scalar != size->type.scalar) {
      index = hd_b_cast(b, HD_I64, index);
      size = hd_b_cast(b, HD_I64, size);
    }
    if (i + 1 == tensor->rank)
      size = hd_b_op_int(b, HD_EXPR_SUB, size, lanes - 1);
    const hd_expr_t *zero = hd_expr_int(b->arena, index->type, 0);
    all = hd_b_and(b, all, hd_expr_binary(b->arena, HD_EXPR_GE, index, zero));
    all = hd_b_and(b, all, hd_expr_binary(b->arena, HD_EXPR_LT, index, size));
  }
  return all;
}

const hd_expr_t *hd_access_zero(hd_accessor_t *a, hd_type_t type) {
  const hd_expr_t *zero = hd_zero(a->b.arena, hd_type_lane(type));
  return type.lanes == 1
             ? zero
             : hd_expr_make(a->b.arena, HD_EXPR_VECTOR, type, NULL, &zero, 1);
}

// --- Accesses ---

// e, where those loads that it evaluates where it needs them give 0 outside.
static const hd_expr_t *with_zeros(hd_accessor_t *a, const hd_expr_t *e,
                                   bool is_lazy) {
  const hd_expr_t **operands =
      HD_ARENA_ARRAY(a->b.arena, const hd_expr_t *, e->num_operands + 1);
  for (unsigned i = 0; i < e->num_operands; i++)
    operands[i] =
        with_zeros(a, e->operands[i], is_lazy || hd_expr_is_lazy(e, i));
  if (!is_lazy || e->kind != HD_EXPR_LOAD || e->num_operands == 0 ||
      e->u.var->tensor->scope != HD_SCOPE_GLOBAL)
    return hd_expr_with(a->b.arena, e, operands);
  operands[e->num_operands] = hd_access_zero(a, e->type);
  return hd_expr_access(a->b.arena, HD_EXPR_LOADELSE, e->u.var, e->type.lanes,
                        operands, e->num_operands + 1);
}

const hd_expr_t *hd_access_or_zero(hd_accessor_t *a, const hd_expr_t *e) {
  return with_zeros(a, e, true);
}

// What the hook has in place of an element. In the value of a load point, a
// load outside its tensor makes all of it 0, whether it is needed or not: what
// the hook evaluates where it needs it must not.
static const hd_expr_t *call_hook(hd_accessor_t *a,
                                  const hd_access_hook_t *hook,
                                  const hd_expr_t *const *at, bool is_lazy) {
  hd_stmt_list_t *stmts = &a->b.block->stmts;
  size_t before = stmts->size;
  const hd_expr_t *value =
      a->has_kept && hook->load_kept
          ? hook->load_kept(hook->argument, &a->b, at, a->kept)
          : hook->load(hook->argument, &a->b, at);
  assert(hd_type_equal(value->type, hook->param->type));
  if (!a->is_guarded)
    return value;
  for (size_t i = before; i < stmts->size; i++) {
    if (stmts->data[i]->kind != HD_STMT_LET)
      continue;
    hd_stmt_t *copy = hd_stmt_copy(a->b.arena, stmts->data[i]);
    copy->u.let.value = with_zeros(a, copy->u.let.value, is_lazy);
    stmts->data[i] = copy;
  }
  return with_zeros(a, value, is_lazy);
}

// The indices of an access, evaluated now.
static void translate_indices(hd_accessor_t *a, const hd_expr_t *access,
                              const hd_expr_t **at) {
  const hd_expr_t *indices[HD_MAX_RANK];
  unsigned count = hd_expr_num_indices(access);
  translate_all(a, access->operands, count, indices);
  hd_access_name_indices(a, indices, count, at);
}

// place: the LOAD, or the REF of a call.
static const hd_expr_t *replace_load(hd_accessor_t *a, const hd_expr_t *place,
                                     const hd_access_hook_t *hook,
                                     hd_type_t type) {
  const hd_expr_t *at[HD_MAX_RANK];
  translate_indices(a, place, at);
  for (unsigned i = 0; a->is_guarded && i < place->num_operands; i++) {
    hd_access_guard_t guard = {at[i], hook->param->tensor->shape[i]};
    hd_vec_push(a->b.arena, &a->guards, guard);
  }
  return type.lanes == 1 ? call_hook(a, hook, at, false)
                         : hd_access_load_lanes(a, hook, at, type);
}

// a[i] else x
static const hd_expr_t *replace_load_else(hd_accessor_t *a, const hd_expr_t *e,
                                          const hd_access_hook_t *hook) {
  const hd_tensor_t *tensor = hook->param->tensor;
  const hd_expr_t *at[HD_MAX_RANK];
  translate_indices(a, e, at);
  hd_open_block_t block;
  hd_b_open(&a->b, &block);
  const hd_expr_t *value =
      e->type.lanes == 1 ? call_hook(a, hook, at, true) : NULL;
  hd_access_lazy_t x = end_lazy(a, value);
  hd_access_lazy_t y = translate_lazily(a, e->operands[tensor->rank]);
  return value ? choose(a, hd_access_inside(a, tensor, at, 1), &x, &y)
               : hd_access_load_some_lanes(a, hook, at, e->type, &y);
}

// --- Operators that evaluate what they need ---

static const hd_expr_t *translate_select(hd_accessor_t *a, const hd_expr_t *e) {
  const hd_expr_t *condition = translate(a, e->operands[0]);
  hd_access_lazy_t x = translate_lazily(a, e->operands[1]);
  hd_access_lazy_t y = translate_lazily(a, e->operands[2]);
  const hd_expr_t *operands[] = {condition, x.value, y.value};
  return x.stmts.size || y.stmts.size ? choose(a, condition, &x, &y)
                                      : hd_expr_with(a->b.arena, e, operands);
}

static const hd_expr_t *translate_logic(hd_accessor_t *a, const hd_expr_t *e) {
  const hd_expr_t *left = translate(a, e->operands[0]);
  hd_access_lazy_t right = translate_lazily(a, e->operands[1]);
  const hd_expr_t *operands[] = {left, right.value};
  if (right.stmts.size == 0)
    return hd_expr_with(a->b.arena, e, operands);
  const hd_var_t *cell = hd_access_cell(a, e->type, left);
  const hd_expr_t *open = hd_access_get_cell(a, cell, e->type);
  if (e->kind == HD_EXPR_OR)
    open = hd_expr_unary(a->b.arena, HD_EXPR_NOT, open);
  hd_b_if(&a->b, open, to_cell(a, &right, cell), (hd_block_t){0});
  return hd_access_get_cell(a, cell, e->type);
}

// a[i] else x, where a stays.
static const hd_expr_t *translate_load_else(hd_accessor_t *a,
                                            const hd_expr_t *e) {
  const hd_expr_t *operands[HD_MAX_RANK + 1], *at[HD_MAX_RANK + 1];
  unsigned rank = hd_expr_num_indices(e);
  translate_all(a, e->operands, rank, operands);
  hd_access_lazy_t otherwise = translate_lazily(a, e->operands[rank]);
  operands[rank] = otherwise.value;
  if (otherwise.stmts.size == 0)
    return hd_expr_with(a->b.arena, e, operands);
  hd_access_name_indices(a, operands, rank, at);
  hd_access_lazy_t element = {.value = hd_expr_access(a->b.arena, HD_EXPR_LOAD,
                                                      e->u.var, e->type.lanes,
                                                      at, rank)};
  if (e->type.lanes > 1) { // Some lanes may be there.
    at[rank] = otherwise.value;
    otherwise.value = hd_expr_access(a->b.arena, HD_EXPR_LOADELSE, e->u.var,
                                     e->type.lanes, at, rank + 1);
  }
  return choose(a, hd_access_inside(a, e->u.var->tensor, at, e->type.lanes),
                &element, &otherwise);
}

// NULL: the expression is no load that a hook replaces.
static const hd_expr_t *translate_load(hd_accessor_t *a, const hd_expr_t *e) {
  bool is_cached = hd_access_is_cached_load(e);
  const hd_expr_t *place = is_cached ? e->operands[0] : e;
  if (!is_cached && e->kind != HD_EXPR_LOAD && e->kind != HD_EXPR_LOADELSE)
    return NULL;
  const hd_access_hook_t *hook = hd_accessor_hook(a, place->u.var);
  if (!hook || !hook->load)
    return NULL;
  const hd_expr_t *value = find_known(a, e);
  if (value)
    return value;
  hd_loc_t outer = a->b.loc;
  a->b.loc = e->loc;
  if (e->kind == HD_EXPR_LOADELSE)
    value = replace_load_else(a, e, hook);
  else
    value = replace_load(a, place, hook, e->type);
  if (e->kind == HD_EXPR_LOAD)
    value = make_known(a, e, value);
  a->b.loc = outer;
  return value;
}

static const hd_expr_t *translate(hd_accessor_t *a, const hd_expr_t *e) {
  if (e->num_operands == 0 && e->kind != HD_EXPR_LOAD)
    return e;
  const hd_expr_t *value = translate_load(a, e);
  if (value)
    return value;
  if (e->kind == HD_EXPR_SELECT)
    return translate_select(a, e);
  if (e->kind == HD_EXPR_AND || e->kind == HD_EXPR_OR)
    return translate_logic(a, e);
  if (e->kind == HD_EXPR_LOADELSE)
    return translate_load_else(a, e);
  const hd_expr_t **operands =
      HD_ARENA_ARRAY(a->b.arena, const hd_expr_t *, e->num_operands);
  translate_all(a, e->operands, e->num_operands, operands);
  return hd_expr_with(a->b.arena, e, operands);
}
