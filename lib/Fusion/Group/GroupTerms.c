// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The terms that a group computes: an element of a value, with the prologues
// that it is made of in their places.
#include "Fusion/Fuse.h"
#include "Fusion/Group/GroupState.h"

const hd_task_value_t *hd_group_tensor(hd_group_t *g, const hd_value_t *value) {
  const hd_task_value_t *tensor = hd_ptr_map_get(&g->tensors, value);
  if (tensor)
    return tensor;
  hd_tensor_type_t type = hd_scheduled_type(value);
  tensor = hd_flat_value_make(g->fusion->arena, value->name, HD_VALUE_INPUT,
                              type.type, type.shape, type.rank);
  hd_ptr_map_set(g->fusion->arena, &g->tensors, value, tensor);
  hd_ptr_map_set(g->fusion->arena, &g->values, tensor, value);
  return tensor;
}

const hd_value_t *hd_group_value(const hd_group_t *g,
                                 const hd_task_value_t *tensor) {
  return hd_ptr_map_get(&g->values, tensor);
}

static const hd_term_t *bound(hd_group_t *g, const hd_variable_t *v) {
  hd_term_t *term =
      hd_term_make(g->fusion->arena, HD_TERM_BOUND, v->type, NULL, 0);
  term->u.variable = v;
  return term;
}

// Inside the tensor, as far as the terms do not say so themselves.
static const hd_term_t *is_inside(hd_arena_t *arena, const hd_task_value_t *of,
                                  const hd_term_t *const *places) {
  const hd_term_t *inside = hd_flat_int(arena, HD_BOOL, 1);
  for (uint32_t i = 0; i < of->rank; i++) {
    hd_range_t range = hd_term_range(places[i]);
    int64_t size = hd_flat_size(of, i);
    if (range.least < 0)
      inside =
          hd_flat_operate(arena, HD_EXPR_AND, inside,
                          hd_flat_operate_int(arena, HD_EXPR_GE, places[i], 0));
    if (range.greatest >= size)
      inside = hd_flat_operate(
          arena, HD_EXPR_AND, inside,
          hd_flat_operate_int(arena, HD_EXPR_LT, places[i], size));
  }
  return inside;
}

static const hd_term_t *load_else(hd_group_t *g, const hd_value_t *value,
                                  const hd_term_t *const *places,
                                  const hd_term_t *otherwise) {
  const hd_task_value_t *tensor = hd_group_tensor(g, value);
  const hd_term_t *operands[HD_MAX_RANK + 1];
  for (uint32_t i = 0; i < tensor->rank; i++)
    operands[i] = places[i];
  operands[tensor->rank] = otherwise;
  hd_term_t *term = hd_term_make(g->fusion->arena, HD_TERM_LOADELSE,
                                 tensor->type, operands, tensor->rank + 1);
  term->u.value = tensor;
  return term;
}

// A place that is inside for reasons that do not show in it: conditions on
// indices around it. Said once more, it makes the maps of what is read there
// simple; where the condition is known nothing is computed for it.
static const hd_term_t *confined(hd_arena_t *arena, const hd_term_t *place,
                                 int64_t size) {
  hd_range_t range = hd_term_range(place);
  if (range.least == INT64_MIN || range.greatest == INT64_MAX ||
      hd_flat_has(place, HD_TERM_LOAD) || place->kind == HD_TERM_CONST)
    return place; // Data decide, or did: what is outside is a mistake.
  if (range.least < 0)
    place = hd_flat_operate_int(arena, HD_EXPR_MAX, place, 0);
  if (range.greatest >= size)
    place = hd_flat_operate_int(arena, HD_EXPR_MIN, place, size - 1);
  return place;
}

static const hd_term_t *put_element(void *argument, const hd_term_t *term) {
  hd_substitution_t *s = argument;
  hd_arena_t *arena = s->group->fusion->arena;
  bool loads = hd_flat_is_load(term);
  if (!loads)
    return hd_group_put_place(s, term);
  const hd_task_value_t *input = term->u.value;
  const hd_value_t *value =
      hd_node_input_of(s->node, s->pointwise->flat, input);
  if (!value) // An operand that has been put already and that was all that is
    return term; // left of its user.
  const hd_term_t *places[HD_MAX_RANK];
  for (uint32_t i = 0; i < input->rank; i++)
    places[i] = hd_index_simplify(arena, term->operands[i]);
  if (term->kind == HD_TERM_LOAD) {
    for (uint32_t i = 0; i < input->rank && !s->data_decides; i++)
      places[i] = confined(arena, places[i], hd_flat_size(input, i));
    return hd_group_element(s->group, value, places);
  }
  const hd_term_t *otherwise = term->operands[input->rank];
  if (!hd_group_store(s->group, value) &&
      !hd_ptr_map_get(&s->group->inlined, value))
    return load_else(s->group, value, places, otherwise);
  const hd_term_t *inside = is_inside(arena, input, places);
  if (inside->kind == HD_TERM_CONST)
    return inside->u.i ? hd_group_element(s->group, value, places) : otherwise;
  return hd_flat_select(arena, inside,
                        hd_group_element(s->group, value, places), otherwise);
}

static bool is_access(const hd_term_t *term) {
  return hd_flat_has(term, HD_TERM_LOAD) || hd_flat_has(term, HD_TERM_LOADELSE);
}

// Whether data says what of a term is evaluated. Then it says whether a place
// there is inside, too, and what is outside is a mistake to be found by a run.
static bool depends_on_data(const hd_term_t *term) {
  bool chooses = term->kind == HD_TERM_SELECT ||
                 (term->kind == HD_TERM_OPERATOR &&
                  (term->u.op == HD_EXPR_AND || term->u.op == HD_EXPR_OR));
  if (chooses && is_access(term->operands[0]))
    return true;
  for (unsigned i = 0; i < term->num_operands; i++)
    if (depends_on_data(term->operands[i]))
      return true;
  return false;
}

static const hd_term_t *element_of(hd_group_t *g, const hd_node_t *node,
                                   const hd_term_t *const *places) {
  hd_pointwise_t p;
  const hd_term_t *at[HD_MAX_RANK];
  hd_fusion_pointwise(g->fusion, node, &p);
  if (!node->task) {
    hd_group_reshape(g->fusion, node->outputs[0], node->inputs[0], places, at);
    return hd_group_element(g, node->inputs[0], at);
  }
  hd_substitution_t s = {.group = g,
                         .node = node,
                         .pointwise = &p,
                         .places = places,
                         .data_decides = depends_on_data(p.definition->term)};
  const hd_term_t *term =
      hd_flat_rewrite(g->fusion->arena, p.definition->term, put_element, &s);
  hd_task_type_t type = hd_flat_type(node->outputs[0]->type);
  return hd_task_type_equal(term->type, type)
             ? term
             : hd_term_make(g->fusion->arena, HD_TERM_CAST, type, &term, 1);
}

bool hd_group_is_literal(const hd_value_t *value) {
  if (!value->constant)
    return false;
  hd_tensor_type_t type = hd_scheduled_type(value);
  for (unsigned i = 0; i < type.rank; i++)
    if (type.shape[i] != 1)
      return false;
  return true;
}

// The element of such a constant where it is at hand; else NULL.
static const hd_host_tensor_t *literal(hd_fusion_t *f,
                                       const hd_value_t *value) {
  return hd_group_is_literal(value) ? hd_constant_elements(f->arena, value)
                                    : NULL;
}

void hd_group_literal_key(hd_fusion_t *f, const hd_value_t *value,
                          hd_buffer_t *key) {
  const hd_host_tensor_t *data = literal(f, value);
  hd_buffer_printf(key, data ? "=" : "");
  for (size_t i = 0; data && i < data->bytes; i++)
    hd_buffer_printf(key, "%02x", data->data[i]);
}

static const hd_term_t *load(hd_group_t *g, const hd_value_t *value,
                             const hd_term_t *const *places) {
  hd_arena_t *arena = g->fusion->arena;
  const hd_host_tensor_t *data = literal(g->fusion, value);
  if (!data)
    return hd_flat_load(arena, hd_group_tensor(g, value), places);
  return hd_type_is_float(hd_type(value->type))
             ? hd_flat_float(arena, value->type, hd_host_tensor_get(data, 0))
             : hd_flat_int(arena, value->type, hd_host_tensor_get_int(data, 0));
}

const hd_term_t *hd_group_element(hd_group_t *g, const hd_value_t *value,
                                  const hd_term_t *const *places) {
  const hd_store_point_t *store = hd_group_store(g, value);
  if (store) {
    const hd_epilogue_t *e = hd_ptr_map_get(&g->placed, value);
    return bound(g, e ? e->variable : store->variable);
  }
  const hd_node_t *node = hd_ptr_map_get(&g->inlined, value);
  if (node)
    return element_of(g, node, places);
  return load(g, value, places);
}

const hd_term_t *hd_group_epilogue_term(hd_group_t *g, const hd_epilogue_t *e) {
  return element_of(g, e->node, e->map.places);
}
