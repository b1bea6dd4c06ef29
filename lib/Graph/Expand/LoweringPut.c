// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an operator's function puts: tasks, reshapes, constants. A task whose
// inputs are all known, and small, is evaluated here.

#include "Graph/Expand/Expander.h"
#include "Graph/Reference/Reference.h"
#include "IR/Text/Library.h"
#include "IR/Text/Parser.h"

#include <string.h>

// More elements than that are computed where the rest is.
// What operators' functions may compute here.
enum { MAX_MADE = 1 << 27 };

static const hd_attribute_t *
add_attribute(hd_lowering_t *l, hd_attributes_t *list, hd_attribute_t like) {
  hd_attribute_t *a = HD_ARENA_NEW(hd_lower_arena(l), hd_attribute_t);
  *a = like;
  hd_vec_push(hd_lower_arena(l), list, a);
  return a;
}

void hd_attributes_int(hd_lowering_t *l, hd_attributes_t *list,
                       const char *name, int64_t value) {
  add_attribute(
      l, list,
      (hd_attribute_t){name, HD_ATTRIBUTE_INT, .count = 0, .u.i = value});
}

void hd_attributes_float(hd_lowering_t *l, hd_attributes_t *list,
                         const char *name, double value) {
  add_attribute(
      l, list,
      (hd_attribute_t){name, HD_ATTRIBUTE_FLOAT, .count = 0, .u.f = value});
}

void hd_attributes_ints(hd_lowering_t *l, hd_attributes_t *list,
                        const char *name, const int64_t *values, size_t count) {
  int64_t *copy = HD_ARENA_ARRAY(hd_lower_arena(l), int64_t, count + 1);
  if (count)
    memcpy(copy, values, count * sizeof(*values));
  add_attribute(l, list,
                (hd_attribute_t){name, HD_ATTRIBUTE_INTS, .count = count,
                                 .u.ints = copy});
}

void hd_attributes_type(hd_lowering_t *l, hd_attributes_t *list,
                        const char *name, hd_scalar_t type) {
  add_attribute(
      l, list,
      (hd_attribute_t){name, HD_ATTRIBUTE_TYPE, .count = 0, .u.type = type});
}

void hd_attributes_graph(hd_lowering_t *l, hd_attributes_t *list,
                         const char *name, const hd_graph_t *graph) {
  add_attribute(
      l, list,
      (hd_attribute_t){name, HD_ATTRIBUTE_GRAPH, .count = 0, .u.graph = graph});
}

const char *hd_lower_value_name(const hd_lowering_t *l) {
  for (uint32_t i = 0; i < l->node->num_outputs; i++)
    if (l->node->outputs[i])
      return l->node->outputs[i]->name;
  return "t";
}

const hd_value_t *hd_lower_known(hd_lowering_t *l,
                                 const hd_host_tensor_t *data) {
  hd_tensor_type_t type = hd_tensor_type_of(data);
  hd_value_t *value = hd_segment_value(l->x, hd_lower_value_name(l), &type);
  hd_constant_t *constant = HD_ARENA_NEW(hd_lower_arena(l), hd_constant_t);
  constant->tensor = data;
  value->constant = constant;
  return value;
}

const hd_value_t *hd_lower_constant(hd_lowering_t *l, hd_scalar_t type,
                                    const int64_t *shape, unsigned rank,
                                    hd_host_tensor_t **data) {
  if (rank > HD_MAX_RANK)
    return hd_lower_unsupported(l,
                                "a tensor of rank %u: at most %d is "
                                "supported",
                                rank, HD_MAX_RANK),
           NULL;
  int64_t count;
  if (!hd_shape_count(shape, rank, &count))
    return hd_lower_invalid(l, "a negative size, or more than 2^62 elements"),
           NULL;
  if (count > MAX_MADE)
    return hd_lower_unsupported(l, "it would make a constant of %lld elements",
                                (long long)count),
           NULL;
  *data = hd_host_tensor_make(hd_lower_arena(l), type, shape, rank);
  return hd_lower_known(l, *data);
}

const hd_value_t *hd_lower_scalar(hd_lowering_t *l, hd_scalar_t type,
                                  double value) {
  hd_host_tensor_t *data;
  const hd_value_t *constant = hd_lower_constant(l, type, NULL, 0, &data);
  if (constant)
    hd_host_tensor_set(data, 0, value);
  return constant;
}

const hd_value_t *hd_lower_ints_constant(hd_lowering_t *l,
                                         const int64_t *values, size_t count) {
  hd_host_tensor_t *data;
  int64_t size = (int64_t)count;
  const hd_value_t *constant = hd_lower_constant(l, HD_I64, &size, 1, &data);
  for (size_t i = 0; constant && i < count; i++)
    hd_host_tensor_set_int(data, (int64_t)i, values[i]);
  return constant;
}

// Whether all inputs of a task are known; *data gets them.
static bool is_known(hd_lowering_t *l, const hd_value_t *const *inputs,
                     uint32_t num_inputs, const hd_host_tensor_t **data) {
  for (uint32_t i = 0; i < num_inputs; i++) {
    data[i] = hd_lower_find_data(l, inputs[i]);
    if (!data[i])
      return false;
  }
  return true;
}

static bool is_small(hd_lowering_t *l, const hd_task_binding_t *binding,
                     const hd_value_t *const *inputs, uint32_t num_inputs) {
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(hd_lower_arena(l), hd_tensor_type_t, num_inputs + 1);
  for (uint32_t i = 0; i < num_inputs; i++)
    types[i] = hd_lower_type(inputs[i]);
  return hd_task_is_small(types, num_inputs, binding->outputs,
                          (unsigned)binding->task->outputs.size);
}

// What a node of the source has chosen so far.
static hd_choices_t *choices_of(hd_arena_t *arena, hd_ptr_map_t *choices,
                                const hd_node_t *node) {
  hd_choices_t *found = hd_ptr_map_find(choices, node);
  if (!found) {
    found = HD_ARENA_NEW(arena, hd_choices_t);
    hd_ptr_map_set(arena, choices, node, found);
  }
  return found;
}

// Whether a bound task is to be evaluated now; *data gets its inputs. Who
// follows another expander does as that did for the same node: another one may
// put a task at one size alone, as a Slice of the whole puts none.
static bool is_folded(hd_lowering_t *l, const hd_task_binding_t *binding,
                      const hd_value_t *const *inputs, uint32_t num_inputs,
                      const hd_host_tensor_t **data) {
  hd_expander_t *x = l->x;
  const hd_node_t *node = l->walk->graph->nodes.data[l->index];
  hd_choices_t *own = choices_of(hd_lower_arena(l), &x->choices, node);
  const hd_choices_t *led =
      x->leader ? hd_ptr_map_get(&x->leader->choices, node) : NULL;
  size_t n = own->folds.size;
  bool folds = led && n < led->folds.size
                   ? led->folds.data[n]
                   : is_small(l, binding, inputs, num_inputs);
  folds = folds && is_known(l, inputs, num_inputs, data);
  hd_vec_push(hd_lower_arena(l), &own->folds, folds);
  return folds;
}

static bool fold(hd_lowering_t *l, const hd_task_binding_t *binding,
                 const hd_host_tensor_t *const *data,
                 const hd_value_t **outputs) {
  hd_host_tensor_t *const *made = hd_task_fold(
      hd_lower_context(l), hd_lower_arena(l), binding, data, l->node->loc);
  for (size_t i = 0; made && i < binding->task->outputs.size; i++)
    outputs[i] = hd_lower_known(l, made[i]);
  return made != NULL;
}

static const hd_task_t *find_task(hd_lowering_t *l, const char *name) {
  const hd_task_t *task = hd_module_find_task(l->x->module, name);
  if (!task)
    task = hd_library_task(hd_lower_context(l), name);
  if (!task)
    hd_lower_unsupported(l, "there is no task '%s'", name);
  return task;
}

static const hd_task_binding_t *bind(hd_lowering_t *l, const hd_task_t *task,
                                     const hd_value_t *const *inputs,
                                     uint32_t num_inputs,
                                     const hd_attributes_t *attributes) {
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(hd_lower_arena(l), hd_tensor_type_t, num_inputs + 1);
  for (uint32_t i = 0; i < num_inputs; i++)
    types[i] = hd_lower_type(inputs[i]);
  const char *what = hd_arena_printf(
      hd_lower_arena(l), "node '%s' (%s)",
      l->node->label ? l->node->label : hd_lower_value_name(l), l->node->op);
  return hd_task_bind(hd_lower_context(l), hd_lower_arena(l), task, types,
                      num_inputs, attributes ? attributes->data : NULL,
                      attributes ? (uint32_t)attributes->size : 0, l->node->loc,
                      what);
}

// NULL stands for what failed or is not known: then nothing is put.
static bool are_tensors(hd_lowering_t *l, const hd_value_t *const *inputs,
                        uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (!inputs[i])
      return false;
    if (inputs[i]->form != HD_HOLDS_TENSOR)
      return hd_lower_invalid(l, "input %u is no tensor", i);
  }
  return true;
}

// The number that the node's group has in what is made; 0: none.
static uint32_t find_group(const hd_lowering_t *l) {
  hd_expander_t *x = l->x;
  if (!l->node->group)
    return 0;
  if (x->group_walk != l->walk || x->source_group != l->node->group)
    x->group++;
  x->group_walk = l->walk;
  x->source_group = l->node->group;
  return x->group;
}

const hd_value_t *hd_lower_task(hd_lowering_t *l, const char *name,
                                const hd_value_t *const *inputs,
                                uint32_t num_inputs,
                                const hd_attributes_t *attributes,
                                const hd_value_t **outputs) {
  hd_arena_t *arena = hd_lower_arena(l);
  if (!are_tensors(l, inputs, num_inputs))
    return NULL;
  const hd_task_t *task = find_task(l, name);
  task = task ? hd_task_for(task, num_inputs) : NULL;
  if (!task)
    return NULL;
  const hd_task_binding_t *binding =
      bind(l, task, inputs, num_inputs, attributes);
  if (!binding)
    return NULL;
  const hd_value_t **made =
      outputs ? outputs
              : HD_ARENA_ARRAY(arena, const hd_value_t *, task->outputs.size);
  const hd_host_tensor_t **data =
      HD_ARENA_ARRAY(arena, const hd_host_tensor_t *, num_inputs + 1);
  if (is_folded(l, binding, inputs, num_inputs, data))
    return fold(l, binding, data, made) ? made[0] : NULL;
  const hd_value_t **copy =
      HD_ARENA_ARRAY(arena, const hd_value_t *, num_inputs + 1);
  for (uint32_t i = 0; i < num_inputs; i++)
    copy[i] = inputs[i];
  hd_node_t node = {
      .op = task->name,
      .task = task,
      .label = l->node->label,
      .loc = l->node->loc,
      .num_inputs = num_inputs,
      .inputs = copy,
      .num_outputs = (uint32_t)task->outputs.size,
      .num_attributes = attributes ? (uint32_t)attributes->size : 0,
      .attributes = attributes ? attributes->data : NULL,
      .group = find_group(l),
      .anchor = l->node->anchor,
      .schedule = l->node->schedule,
      .pin = l->node->pin,
  };
  const hd_node_t *put =
      hd_segment_put(l->x, &node, binding->outputs, hd_lower_value_name(l));
  for (uint32_t i = 0; i < put->num_outputs; i++)
    made[i] = put->outputs[i];
  return made[0];
}

const hd_value_t *hd_lower_unary(hd_lowering_t *l, const char *task,
                                 const hd_value_t *x) {
  return hd_lower_task(l, task, &x, 1, NULL, NULL);
}

const hd_value_t *hd_lower_binary(hd_lowering_t *l, const char *task,
                                  const hd_value_t *a, const hd_value_t *b) {
  const hd_value_t *inputs[] = {a, b};
  return hd_lower_task(l, task, inputs, 2, NULL, NULL);
}

static bool same_shape(const hd_value_t *x, const int64_t *shape,
                       unsigned rank) {
  if (x->rank != (int)rank)
    return false;
  for (unsigned i = 0; i < rank; i++)
    if (hd_lower_size(x, (int)i) != shape[i])
      return false;
  return true;
}

static const hd_host_tensor_t *reshape_data(hd_lowering_t *l,
                                            const hd_host_tensor_t *data,
                                            const hd_tensor_type_t *type) {
  hd_host_tensor_t *view =
      HD_ARENA_COPY(hd_lower_arena(l), hd_host_tensor_t, data);
  view->rank = type->rank;
  memcpy(view->shape, type->shape, sizeof(type->shape[0]) * type->rank);
  return view;
}

// Once for each shape, so that nodes that read it are the same node.
static const hd_value_t *reshape_constant(hd_lowering_t *l, const hd_value_t *x,
                                          const hd_host_tensor_t *data,
                                          const hd_tensor_type_t *type) {
  hd_arena_t *arena = hd_lower_arena(l);
  hd_views_t *views = hd_ptr_map_find(&l->x->views, x);
  for (size_t i = 0; views && i < views->values.size; i++)
    if (same_shape(views->values.data[i], type->shape, type->rank))
      return views->values.data[i];
  if (!views) {
    views = HD_ARENA_NEW(arena, hd_views_t);
    hd_ptr_map_set(arena, &l->x->views, x, views);
  }
  const hd_host_tensor_t *view = reshape_data(l, data, type);
  const hd_value_t *made = hd_lower_known(l, view);
  *made->constant = *x->constant; // The text names the file still.
  made->constant->tensor = view;
  hd_vec_push(arena, &views->values, made);
  return made;
}

const hd_value_t *hd_lower_reshape(hd_lowering_t *l, const hd_value_t *x,
                                   const int64_t *shape, unsigned rank) {
  if (!are_tensors(l, &x, 1))
    return NULL;
  hd_tensor_type_t type = {.type = x->type, .rank = rank};
  int64_t count;
  if (rank > HD_MAX_RANK) {
    hd_lower_unsupported(l, "a tensor of rank %u: at most %d is supported",
                         rank, HD_MAX_RANK);
    return NULL;
  }
  for (unsigned i = 0; i < rank; i++)
    type.shape[i] = shape[i];
  if (!hd_shape_count(type.shape, rank, &count) || count != hd_lower_count(x)) {
    hd_lower_invalid(l, "%lld elements do not fit the new shape",
                     (long long)hd_lower_count(x));
    return NULL;
  }
  bool same = same_shape(x, shape, rank);
  if (same && (x->constant || !l->x->keeps_reshapes))
    return x;
  const hd_host_tensor_t *data = hd_lower_find_data(l, x);
  if (same && data)
    return x;
  if (data && x->constant)
    return reshape_constant(l, x, data, &type);
  if (data)
    return hd_lower_known(l, reshape_data(l, data, &type));
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(hd_lower_arena(l), const hd_value_t *, 1);
  inputs[0] = x;
  hd_node_t node = {.op = "reshape",
                    .label = l->node->label,
                    .loc = l->node->loc,
                    .num_inputs = 1,
                    .inputs = inputs,
                    .num_outputs = 1,
                    .group = find_group(l)};
  return hd_segment_put(l->x, &node, &type, hd_lower_value_name(l))->outputs[0];
}

const hd_value_t *hd_lower_cast(hd_lowering_t *l, const hd_value_t *x,
                                hd_scalar_t type) {
  if (!x || x->type == type)
    return x;
  hd_attributes_t attributes = {0};
  hd_attributes_type(l, &attributes, "U", type);
  return hd_lower_task(l, "cast", &x, 1, &attributes, NULL);
}

const hd_value_t *hd_lower_expand(hd_lowering_t *l, const hd_value_t *x,
                                  const int64_t *shape, unsigned rank) {
  int64_t full[HD_MAX_RANK];
  if (!are_tensors(l, &x, 1))
    return NULL;
  if (same_shape(x, shape, rank))
    return x;
  if (rank > HD_MAX_RANK || (int)rank < x->rank) {
    hd_lower_invalid(l, "a tensor of rank %d does not broadcast to rank %u",
                     x->rank, rank);
    return NULL;
  }
  for (unsigned i = 0; i < rank; i++) {
    int axis = (int)i - ((int)rank - x->rank);
    full[i] = axis < 0 ? 1 : hd_lower_size(x, axis);
    if (full[i] != 1 && full[i] != shape[i]) {
      hd_lower_invalid(l,
                       "its shape does not broadcast: axis %u is %lld, and "
                       "%lld is needed",
                       i, (long long)full[i], (long long)shape[i]);
      return NULL;
    }
  }
  const hd_value_t *aligned = hd_lower_reshape(l, x, full, rank);
  hd_attributes_t attributes = {0};
  hd_attributes_ints(l, &attributes, "sizes", shape, rank);
  return hd_lower_task(l, "expand", &aligned, 1, &attributes, NULL);
}
