// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a kernel or a plan takes and gives what a node does, and what its
// sizes are then. Sizes that stand alone as a tensor's axis are bound by the
// node's values; arithmetic on them is checked after that. Functions return
// why not, or NULL.
#include "IR/Graph/Graph.h"
#include "Support/Map.h"

#include <string.h>

typedef struct fit {
  hd_arena_t *arena;
  const hd_node_t *node;
  const hd_func_t *func;
  const hd_expr_t **sizes; // By the place of their parameter; NULL: not known.
  hd_ptr_map_t places;     // Of scalar parameters: that place, in sizes.
} fit_t;

// The value that parameter i is, being tensor number n of the signature.
static const hd_value_t *value_of(const hd_node_t *node, uint32_t n) {
  return n < node->num_inputs ? node->inputs[n]
                              : node->outputs[n - node->num_inputs];
}

static bool is_symbolic(const hd_tensor_t *tensor) {
  for (uint32_t i = 0; i < tensor->rank; i++)
    if (!hd_expr_is_const(tensor->shape[i]))
      return true;
  return false;
}

static bool find_size(void *argument, const hd_expr_t *leaf,
                      hd_number_t *value) {
  const fit_t *f = argument;
  const hd_expr_t *const *place = leaf->kind == HD_EXPR_VAR
                                      ? hd_ptr_map_get(&f->places, leaf->u.var)
                                      : NULL;
  return place && hd_expr_fold_int(*place, &value->i);
}

// An axis of a parameter, as far as it is known; false where it is not.
static bool axis_size(fit_t *f, const hd_expr_t *axis, int64_t *size) {
  hd_number_t value;
  if (!hd_expr_value(&(hd_fold_t){.leaf = find_size, .argument = f}, axis,
                     &value))
    return false;
  *size = value.i;
  return true;
}

static const char *check_elements(fit_t *f, const hd_var_t *param,
                                  const hd_value_t *value) {
  int64_t wanted = 1, found = 1, room[HD_TENSOR_MAX_RANK];
  for (int i = 0; i < value->rank; i++)
    if (!value->shape[i] || !hd_expr_fold_int(value->shape[i], &room[i]))
      return NULL;
  hd_shape_room(room, (unsigned)value->rank, room);
  for (int i = 0; i < value->rank; i++)
    if (__builtin_mul_overflow(found, room[i], &found))
      return NULL; // No such tensor can be made.
  for (uint32_t i = 0; i < param->tensor->rank; i++) {
    int64_t size;
    if (!hd_expr_fold_int(param->tensor->shape[i], &size) ||
        __builtin_mul_overflow(wanted, size, &wanted))
      return NULL; // The verifier of functions says it.
  }
  return wanted == found
             ? NULL
             : hd_arena_printf(f->arena,
                               "'%s' has %lld elements, and '%s' has %lld",
                               param->name, (long long)wanted, value->name,
                               (long long)found);
}

// Binds a size that stands alone.
static const char *bind_size(fit_t *f, const hd_expr_t *axis, int64_t size) {
  const hd_expr_t *const *place = axis->kind == HD_EXPR_VAR
                                      ? hd_ptr_map_get(&f->places, axis->u.var)
                                      : NULL;
  if (!place || *place)
    return NULL;
  if (!size)
    return hd_arena_printf(f->arena,
                           "'%s' would be 0, and no size of a tensor may be",
                           axis->u.var->name);
  if (axis->type.scalar == HD_I32 && size > INT32_MAX)
    return hd_arena_printf(f->arena, "'%s' is an i32, and would be %lld",
                           axis->u.var->name, (long long)size);
  f->sizes[place - f->sizes] = hd_expr_int(f->arena, axis->type, size);
  return NULL;
}

static const char *bind_axes(fit_t *f, const hd_var_t *param,
                             const hd_value_t *value) {
  const hd_tensor_t *tensor = param->tensor;
  const char *why = NULL;
  if ((uint32_t)value->rank != tensor->rank)
    return hd_arena_printf(
        f->arena,
        "'%s' has rank %u and sizes that are not constants, and "
        "'%s' has rank %d",
        param->name, tensor->rank, value->name, value->rank);
  for (uint32_t i = 0; !why && i < tensor->rank; i++) {
    int64_t size;
    if (value->shape[i] && hd_expr_fold_int(value->shape[i], &size))
      why = bind_size(f, tensor->shape[i], size);
  }
  return why;
}

static const char *check_axes(fit_t *f, const hd_var_t *param,
                              const hd_value_t *value) {
  for (int i = 0; i < value->rank; i++) {
    int64_t wanted, found;
    if (value->shape[i] && hd_expr_fold_int(value->shape[i], &found) &&
        axis_size(f, param->tensor->shape[i], &wanted) && wanted != found)
      return hd_arena_printf(
          f->arena, "axis %d of '%s' is %lld, and of '%s' %lld", i, param->name,
          (long long)wanted, value->name, (long long)found);
  }
  return NULL;
}

// What does not depend on sizes.
static const char *check_param(fit_t *f, const hd_var_t *param, uint32_t n) {
  bool is_input = n < f->node->num_inputs;
  hd_direction_t wanted = is_input ? HD_DIR_IN : HD_DIR_OUT;
  const hd_value_t *value = value_of(f->node, n);
  if (param->direction != wanted)
    return hd_arena_printf(f->arena,
                           "'%s' is an %s tensor where the node has "
                           "an %s",
                           param->name, hd_direction_name(param->direction),
                           is_input ? "input" : "output");
  if (!hd_tensor_is_row_major(param->tensor))
    return hd_arena_printf(f->arena, "'%s' is not row-major", param->name);
  if (value && value->type != HD_VOID &&
      !hd_type_equal(param->type, hd_type(value->type)))
    return hd_arena_printf(f->arena, "'%s' is %s, and '%s' is %s", param->name,
                           hd_type_name(param->type), value->name,
                           hd_scalar_name(value->type));
  return NULL;
}

// Calls check on every tensor whose value and rank are known; symbolic: on
// those whose sizes are not constants, else on the others.
typedef const char *(*check_t)(fit_t *f, const hd_var_t *param,
                               const hd_value_t *value);
static const char *check_all(fit_t *f, bool symbolic, check_t check) {
  const char *why = NULL;
  for (uint32_t i = 0, n = 0; !why && i < f->func->num_params; i++) {
    const hd_var_t *param = f->func->params[i];
    if (!param->tensor)
      continue;
    const hd_value_t *value = value_of(f->node, n++);
    if (value && value->rank >= 0 && is_symbolic(param->tensor) == symbolic)
      why = check(f, param, value);
  }
  return why;
}

static bool fits(hd_type_t type, int64_t value) {
  unsigned bits = hd_scalar_bits((hd_scalar_t)type.scalar);
  bool is_unsigned = hd_type_is_unsigned(type);
  if (bits == 64 || value < 0)
    return !(is_unsigned && value < 0) &&
           (bits == 64 || value >= -(INT64_C(1) << (bits - 1)));
  return value >> (bits - !is_unsigned) == 0;
}

// A scalar has the value of the node's attribute of its name: an integer that
// its type holds, a bool, or a float, rounded to its type.
static const char *bind_attribute(fit_t *f, uint32_t i,
                                  const hd_attribute_t *a) {
  hd_type_t type = f->func->params[i]->type;
  bool is_float = hd_type_is_float(type);
  if (is_float && a->kind == HD_ATTRIBUTE_FLOAT)
    f->sizes[i] = hd_expr_float(
        f->arena, type, hd_float_round((hd_scalar_t)type.scalar, a->u.f));
  else if (hd_type_is_integer(type) && a->kind == HD_ATTRIBUTE_INT &&
           fits(type, a->u.i))
    f->sizes[i] = hd_expr_int(f->arena, type, a->u.i);
  else if (hd_type_is_bool(type) && a->kind == HD_ATTRIBUTE_INT &&
           hd_node_has_bool(f->node, a->name) && a->u.i == (a->u.i & 1))
    f->sizes[i] = hd_expr_bool(f->arena, a->u.i);
  return f->sizes[i] ? NULL
                     : hd_arena_printf(f->arena,
                                       "'%s' is %s, which the attribute is not",
                                       a->name, hd_type_name(type));
}

static const char *bind_attributes(fit_t *f) {
  const char *why = NULL;
  for (uint32_t i = 0; !why && i < f->func->num_params; i++) {
    const hd_var_t *param = f->func->params[i];
    const hd_attribute_t *a =
        param->tensor ? NULL : hd_node_attribute(f->node, param->name);
    if (a && param->type.lanes == 1)
      why = bind_attribute(f, i, a);
  }
  return why;
}

// That every scalar is a tensor's axis, or an attribute.
static const char *check_scalars(fit_t *f) {
  hd_ptr_map_t axes = {0};
  for (uint32_t i = 0; i < f->func->num_params; i++) {
    const hd_tensor_t *tensor = f->func->params[i]->tensor;
    for (uint32_t n = 0; tensor && n < tensor->rank; n++)
      if (tensor->shape[n]->kind == HD_EXPR_VAR)
        hd_ptr_map_set(f->arena, &axes, tensor->shape[n]->u.var, tensor);
  }
  for (uint32_t i = 0; i < f->func->num_params; i++)
    if (!f->func->params[i]->tensor && !f->sizes[i] &&
        !hd_ptr_map_get(&axes, f->func->params[i]))
      return hd_arena_printf(f->arena,
                             "'%s' is the size of no axis and no attribute, "
                             "so nothing says what it is",
                             f->func->params[i]->name);
  return NULL;
}

const char *hd_node_bind_schedule(hd_arena_t *arena, const hd_node_t *node,
                                  const hd_expr_t **sizes) {
  const hd_func_t *func = node->schedule;
  fit_t f = {.arena = arena, .node = node, .func = func, .sizes = sizes};
  uint32_t tensors = 0, wanted = node->num_inputs + node->num_outputs;
  const char *why = NULL;
  for (uint32_t i = 0; i < func->num_params; i++) {
    sizes[i] = NULL;
    if (!func->params[i]->tensor)
      hd_ptr_map_set(arena, &f.places, func->params[i], &sizes[i]);
    tensors += func->params[i]->tensor != NULL;
  }
  if (func->kind == HD_FUNC_FN)
    return "it is neither a kernel nor a plan";
  if (!node->task)
    return "the node is no task";
  if (tensors != wanted)
    return hd_arena_printf(arena, "it has %u tensors, and the node %u", tensors,
                           wanted);
  for (uint32_t i = 0, n = 0; !why && i < func->num_params; i++)
    if (func->params[i]->tensor)
      why = check_param(&f, func->params[i], n++);
  why = why ? why : bind_attributes(&f);
  why = why ? why : check_all(&f, false, check_elements);
  why = why ? why : check_all(&f, true, bind_axes);
  why = why ? why : check_all(&f, true, check_axes);
  return why ? why : check_scalars(&f);
}
