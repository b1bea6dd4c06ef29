// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prologues in the place of what a kernel loads, epilogues in the place of what
// it stores: what is translated where, over which indices.
#include "Fusion/Join/JoinState.h"
#include "Schedule/Terms/Affine.h"

#include <string.h>

// What is done to one parameter of a kernel.
typedef struct hook {
  hd_joiner_t *j;
  hd_translator_t *t;
  const hd_var_t *param;
  const hd_index_t *indices[HD_MAX_RANK]; // Of the parameter.
  const hd_term_t *term;                  // What is loaded.
  const hd_store_point_t *store;
  const hd_term_t *places[HD_MAX_RANK]; // Of the value that is stored.
  const hd_term_t **terms;              // Of the store's epilogues.
  const hd_expr_t *const *at;           // The place at hand.
  const hd_var_t *stays; // What rows are made of; NULL: there are none.
  const hd_func_t *kernel;
} hook_t;

static void bind(hook_t *h, hd_builder_t *b, const hd_expr_t *const *at) {
  h->t->b = b;
  h->at = at;
  for (uint32_t i = 0; i < h->param->tensor->rank; i++)
    hd_translate_bind(h->t, h->indices[i], at[i]);
}

static const hd_expr_t *on_load(void *argument, hd_builder_t *b,
                                const hd_expr_t *const *at) {
  hook_t *h = argument;
  bind(h, b, at);
  h->t->is_coarse = false; // Who knows what becomes of it.
  return hd_translate(h->t, h->term);
}

// The shape of a parameter; false where it is not known.
static bool param_shape(const hd_var_t *param, int64_t *shape) {
  for (uint32_t i = 0; i < param->tensor->rank; i++)
    if (!hd_expr_fold_int(param->tensor->shape[i], &shape[i]))
      return false;
  return true;
}

// A parameter for a tensor whose elements are those of the kernel's own result
// in their order, in the result's shape: its places are plain there. NULL: it
// is another one, or has that shape.
static const hd_var_t *in_shape_of_result(hook_t *h,
                                          const hd_task_value_t *tensor,
                                          const hd_term_t *const *places) {
  const hd_store_point_t *store = h->store;
  hd_tensor_type_t type = hd_scheduled_type(store->value);
  int64_t shape[HD_MAX_RANK], own[HD_MAX_RANK];
  uint32_t rank = h->param->tensor->rank;
  for (uint32_t i = 0; i < tensor->rank; i++)
    shape[i] = hd_flat_size(tensor, i);
  if (h->param->tensor->layout || !param_shape(h->param, own) ||
      (tensor->rank == rank && memcmp(own, shape, rank * sizeof(own[0])) == 0))
    return NULL;
  const hd_var_t *known = hd_ptr_map_get(&h->t->tensors, tensor);
  if (known ||
      !hd_index_same_number(
          h->j->arena, &(hd_index_place_t){tensor->rank, shape, places},
          &(hd_index_place_t){type.rank, type.shape, store->places}))
    return known && hd_ptr_map_get(&h->j->reshaped, known) ? known : NULL;
  const hd_var_t *var =
      hd_translate_tensor_as(h->t, tensor, HD_DIR_OUT, own, rank);
  hd_ptr_map_set(h->j->arena, &h->j->reshaped, var, var);
  return var;
}

// A place with each axis in two whose index is c x + y with y in 0 .. c - 1: so
// that an index is inside its axis where x and y are, each by itself.
typedef struct split {
  unsigned rank;
  int64_t shape[HD_MAX_RANK];
  const hd_term_t *places[HD_MAX_RANK];
} split_t;

static void add_axis(split_t *s, int64_t size, const hd_term_t *place) {
  s->shape[s->rank] = size;
  s->places[s->rank++] = place;
}

static bool divides(const hd_linear_t *sum, int64_t size, int64_t c,
                    hd_linear_t *x, hd_linear_t *y) {
  if (c < 2 || size % c != 0 || c == size)
    return false;
  hd_linear_split(sum, c, x, y);
  return x->size > 0 && y->size > 0 && hd_linear_is_below(NULL, y, c);
}

// left: axes that come behind it, for which there has to be room.
static void split_axis(hd_arena_t *arena, split_t *s, int64_t size,
                       const hd_term_t *place, unsigned left) {
  hd_linear_t sum, x, y;
  bool ok =
      s->rank + 2 + left <= HD_MAX_RANK && hd_affine_of(arena, place, &sum);
  for (unsigned i = 0; ok && i < sum.size; i++)
    if (divides(&sum, size, sum.terms[i].factor, &x, &y)) {
      split_axis(arena, s, size / sum.terms[i].factor,
                 hd_affine_term(arena, &x), left + 1);
      add_axis(s, sum.terms[i].factor, hd_affine_term(arena, &y));
      return;
    }
  add_axis(s, size, place);
}

static void put_store(hook_t *h, const hd_value_t *value,
                      const hd_term_t *const *places, const hd_expr_t *e) {
  const hd_task_value_t *tensor = hd_group_tensor(h->j->group, value);
  const hd_var_t *param = in_shape_of_result(h, tensor, places);
  if (param) {
    hd_b_store(h->t->b, param, h->at, param->tensor->rank, e);
    return;
  }
  split_t split = {0};
  for (uint32_t i = 0; i < tensor->rank; i++)
    split_axis(h->j->arena, &split, hd_flat_size(tensor, i), places[i],
               tensor->rank - i - 1);
  // A tensor that is a parameter already, as an output of the kernel may be,
  // keeps its shape.
  if (split.rank > tensor->rank)
    param = hd_translate_tensor_as(h->t, tensor, HD_DIR_OUT, split.shape,
                                   split.rank);
  if (param && param->tensor->rank != split.rank)
    param = NULL;
  uint32_t rank = param ? split.rank : tensor->rank;
  const hd_expr_t *at[HD_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++)
    at[i] = hd_translate_worth(h->t, param ? split.places[i] : places[i]).e;
  if (!param)
    param = hd_translate_tensor(h->t, tensor, HD_DIR_OUT);
  hd_b_store(h->t->b, param, at, rank, e);
}

static void emit_scope(hook_t *h, unsigned scope) {
  hd_translator_t *t = h->t;
  const hd_store_point_t *store = h->store;
  for (size_t i = 0; i < store->epilogues.size; i++) {
    const hd_epilogue_t *e = store->epilogues.data[i];
    if (e->scope != scope)
      continue;
    const hd_value_t *value = e->node->outputs[0];
    const hd_expr_t *x = hd_translate(t, h->terms[i]);
    x = hd_b_let(t->b, value->name, x);
    hd_ptr_map_set(h->j->arena, &t->variables, e->variable, x);
    if (hd_group_is_kept(h->j->group, value))
      put_store(h, value, e->map.places, x);
  }
  for (unsigned s = 1; s < store->scopes.size; s++) {
    const hd_index_map_t *map = store->scopes.data[s].map;
    if (store->scopes.data[s].outer != scope)
      continue;
    for (unsigned i = 0; i < map->num_lets; i++) {
      const hd_index_let_t *let = &map->lets[i];
      hd_translate_bind(
          t, let->index,
          hd_b_let(t->b, let->index->name, hd_translate_worth(t, let->term).e));
    }
    const hd_expr_t *condition = hd_translate(t, map->condition);
    size_t facts = t->facts.size;
    hd_open_block_t block;
    hd_b_open(t->b, &block);
    hd_translate_assume(t, map->condition, true);
    emit_scope(h, s);
    t->facts.size = facts;
    hd_block_t then = hd_b_close(t->b);
    hd_b_if(t->b, condition, then, (hd_block_t){0});
  }
}

static bool is_constant(const hd_term_t *term) {
  while (term->kind == HD_TERM_CAST)
    term = term->operands[0];
  return term->kind == HD_TERM_CONST;
}

static bool note_cut(void *argument, const hd_term_t *term) {
  bool *cuts = argument;
  *cuts |= term->kind == HD_TERM_CAST && !is_constant(term) &&
           hd_type_is_integer(hd_type(term->type.scalar)) &&
           hd_type_is_float(hd_type(term->operands[0]->type.scalar)) &&
           !hd_translate_rounds(term);
  return !*cuts;
}

// Whether a fraction is cut off somewhere: then a little less may be one less.
static bool cuts(const hook_t *h) {
  bool cuts = false;
  for (size_t i = 0; i < h->store->epilogues.size; i++)
    hd_flat_walk(h->terms[i], note_cut, &cuts);
  return cuts;
}

// Nothing but numbers of 16 bits leaves, and bytes that are rounded.
static bool stores_narrow(const hook_t *h) {
  const hd_store_point_t *store = h->store;
  bool narrow = !store->rows, has_bytes = false;
  for (size_t i = 0; i <= store->epilogues.size; i++) {
    const hd_value_t *value = i == store->epilogues.size
                                  ? store->value
                                  : store->epilogues.data[i]->node->outputs[0];
    hd_scalar_t type = hd_scheduled_type(value).type;
    bool is_byte = type == HD_I8 || type == HD_U8;
    if (!hd_group_is_kept(h->j->group, value))
      continue;
    narrow &= type == HD_F16 || type == HD_BF16 || is_byte;
    has_bytes |= is_byte;
  }
  return narrow && !(has_bytes && cuts(h));
}

static void on_store(void *argument, hd_builder_t *b,
                     const hd_expr_t *const *at, const hd_expr_t *value) {
  hook_t *h = argument;
  const hd_store_point_t *store = h->store;
  bind(h, b, at);
  h->t->is_coarse = stores_narrow(h);
  unsigned rank = (unsigned)store->value->rank;
  for (unsigned i = 0; i < rank; i++)
    if (store->indices[i] != h->indices[i])
      hd_translate_bind(h->t, store->indices[i],
                        hd_b_let(b, store->indices[i]->name,
                                 hd_translate_worth(h->t, h->places[i]).e));
  value = hd_b_let(b, "value", value);
  hd_ptr_map_set(h->j->arena, &h->t->variables, store->variable, value);
  if (hd_group_is_kept(h->j->group, store->value))
    hd_b_store(b, h->param, at, h->param->tensor->rank, value);
  emit_scope(h, 0);
  if (h->stays)
    hd_b_store(
        b, h->stays, at, h->stays->tensor->rank,
        hd_translate(h->t, hd_group_element(h->j->group, store->rows->inputs[0],
                                            store->places)));
}

static void refuse(hd_joiner_t *j, const hd_func_t *kernel,
                   const hd_var_t *param, const char *why) {
  j->why = hd_arena_printf(j->arena, "'%s' of kernel '%s' %s", param->name,
                           kernel->name, why);
}

static void on_stayed(void *argument, hd_builder_t *b, const hd_stmt_t *loop,
                      const hd_var_t *kept) {
  hook_t *h = argument;
  const char *why = hd_join_rows(h->j, h->t, h->store->rows, b, loop, kept);
  if (why)
    refuse(h->j, h->kernel, h->param, why);
}

static bool same_shape(const hd_tensor_type_t *type, const int64_t *shape,
                       unsigned rank) {
  return type->rank == rank &&
         memcmp(type->shape, shape, rank * sizeof(shape[0])) == 0;
}

// Names the parameter's indices; places says where its element is in a value of
// as many elements. like: names to take where the shapes are the same.
static void name_indices(hook_t *h, const hd_value_t *value,
                         const int64_t *shape, const hd_index_t *const *like,
                         const hd_term_t **places) {
  hd_arena_t *arena = h->j->arena;
  hd_tensor_type_t type = hd_scheduled_type(value);
  unsigned rank = h->param->tensor->rank;
  bool same = same_shape(&type, shape, rank);
  const hd_term_t *own[HD_MAX_RANK];
  for (unsigned i = 0; i < rank; i++) {
    h->indices[i] =
        same && like ? like[i]
                     : hd_flat_index_make(
                           arena, hd_arena_printf(arena, "i%u", i), shape[i]);
    own[i] = hd_flat_index(arena, h->indices[i]);
    places[i] = own[i];
  }
  if (!same)
    hd_index_places(arena, hd_index_linear(arena, shape, rank, own), type.shape,
                    type.rank, places);
}

static hook_t *make_hook(hd_joiner_t *j, hd_translator_t *t,
                         const hd_var_t *param) {
  hook_t *h = HD_ARENA_NEW(j->arena, hook_t);
  h->j = j;
  h->t = t;
  h->param = param;
  return h;
}

static hook_t *hook_load(hd_joiner_t *j, hd_translator_t *t,
                         const hd_var_t *param, const int64_t *shape,
                         const hd_value_t *value) {
  hook_t *h = make_hook(j, t, param);
  const hd_term_t *places[HD_MAX_RANK];
  name_indices(h, value, shape, NULL, places);
  h->term = hd_group_element(j->group, value, places);
  return h;
}

static hook_t *hook_store(hd_joiner_t *j, hd_translator_t *t,
                          const hd_var_t *param, const int64_t *shape,
                          const hd_store_point_t *store) {
  hook_t *h = make_hook(j, t, param);
  h->store = store;
  name_indices(h, store->value, shape, store->indices, h->places);
  h->terms =
      HD_ARENA_ARRAY(j->arena, const hd_term_t *, store->epilogues.size + 1);
  for (size_t i = 0; i < store->epilogues.size; i++)
    h->terms[i] = hd_group_epilogue_term(j->group, store->epilogues.data[i]);
  if (store->rows) {
    hd_builder_t b = {.arena = j->arena};
    h->stays = hd_b_tensor(&b, HD_SCOPE_GLOBAL, "stays",
                           hd_scheduled_type(store->rows->inputs[0]).type,
                           shape, param->tensor->rank, NULL);
  }
  return h;
}

const hd_store_point_t *hd_join_store(const hd_joiner_t *j,
                                      const hd_value_t *value) {
  for (size_t i = 0; i < j->group->stores.size; i++)
    if (j->group->stores.data[i]->value == value)
      return j->group->stores.data[i];
  return NULL;
}

// The tensor that is loaded, element for element in row-major order, so that it
// may take the parameter's place; NULL: none.
static const hd_value_t *loaded_as_it_is(const hook_t *h,
                                         const int64_t *shape) {
  hd_arena_t *arena = h->j->arena;
  const hd_tensor_t *tensor = h->param->tensor;
  if (h->term->kind != HD_TERM_LOAD || tensor->layout)
    return NULL;
  const hd_task_value_t *value = h->term->u.value;
  const hd_term_t *own[HD_MAX_RANK];
  int64_t given[HD_MAX_RANK], count = 1;
  for (uint32_t i = 0; i < tensor->rank; i++) {
    own[i] = hd_flat_index(arena, h->indices[i]);
    count *= shape[i];
  }
  for (uint32_t i = 0; i < value->rank; i++)
    given[i] = hd_flat_size(value, i);
  return value->type.scalar == h->param->type.scalar &&
                 hd_flat_count(value) == count &&
                 hd_index_same_number(
                     arena,
                     &(hd_index_place_t){value->rank, given, h->term->operands},
                     &(hd_index_place_t){tensor->rank, shape, own})
             ? hd_group_value(h->j->group, value)
             : NULL;
}

const hd_value_t *hd_join_add_hooks(hd_joiner_t *j, const hd_func_t *kernel,
                                    uint32_t i, const hd_value_t *value,
                                    bool is_output, hd_translator_t *t,
                                    hd_join_hooks_t *hooks) {
  const hd_var_t *param = kernel->params[i];
  const hd_store_point_t *store = is_output ? hd_join_store(j, value) : NULL;
  bool loads = !is_output && hd_ptr_map_get(&j->group->inlined, value);
  bool stores = store && (store->epilogues.size > 0 || store->rows);
  int64_t shape[HD_MAX_RANK];
  if (!loads && !stores) {
    hd_tensor_type_t type = hd_scheduled_type(value);
    if (param_shape(param, shape) &&
        same_shape(&type, shape, param->tensor->rank) && !is_output)
      hd_ptr_map_set(j->arena, &t->tensors, hd_group_tensor(j->group, value),
                     param);
    return value;
  }
  if (!param_shape(param, shape)) {
    refuse(j, kernel, param, "has no constant shape");
    return value;
  }
  hook_t *h = loads ? hook_load(j, t, param, shape, value)
                    : hook_store(j, t, param, shape, store);
  const hd_value_t *same = loads ? loaded_as_it_is(h, shape) : NULL;
  if (same)
    return same;
  const char *why = hd_access_obstacle(
      kernel, param, loads ? HD_ACCESS_LOADS : HD_ACCESS_STORES);
  if (why) {
    refuse(j, kernel, param, why);
    return value;
  }
  h->kernel = kernel;
  hd_access_hook_t hook = {.param = param,
                           .stays = h->stays,
                           .stayed = on_stayed,
                           .argument = h,
                           .load = loads ? on_load : NULL,
                           .store = loads ? NULL : on_store};
  hd_vec_push(j->arena, hooks, hook);
  return value;
}
