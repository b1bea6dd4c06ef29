// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types, from the inputs and the node; attributes as the node gives them.
#include "Graph/Bind/BindingState.h"

#include <string.h>

// --- Types ---

static bool bind_type(hd_binder_t *b, const hd_task_value_t *value,
                      hd_scalar_t scalar) {
  const hd_task_t *task = b->task;
  hd_scalar_t bound = value->type.scalar;
  if (hd_task_type_is_free(value->type)) {
    size_t i = 0;
    while (task->types.data[i] != value->type.var)
      i++;
    if (b->types[i] == HD_VOID)
      b->types[i] = scalar;
    bound = b->types[i];
  } else if (value->type.var) {
    return true; // Compared when all are bound.
  }
  return bound == scalar ||
         hd_bind_fault(b, "input '%s' has type %s, and %s is needed",
                       value->name, hd_scalar_name(scalar),
                       hd_scalar_name(bound));
}

// Of the two types that a variable may be the one that is given, or the first.
static bool settle_choice(hd_binder_t *b, size_t i) {
  const hd_type_var_t *var = b->task->types.data[i];
  hd_scalar_t types[2];
  for (int k = 0; k < 2; k++)
    types[k] =
        hd_binding_type(b->binding, (hd_task_type_t){HD_VOID, var->either[k]});
  if (b->types[i] == HD_VOID)
    b->types[i] = types[0];
  return b->types[i] == types[0] || b->types[i] == types[1] ||
         hd_bind_fault(b, "type %s of task '%s' is %s or %s, not %s", var->name,
                       b->task->name, hd_scalar_name(types[0]),
                       hd_scalar_name(types[1]), hd_scalar_name(b->types[i]));
}

// Variables that accumulate, and choices, follow from others.
static bool settle_type(hd_binder_t *b, size_t i) {
  const hd_type_var_t *var = b->task->types.data[i];
  const char *name = b->task->name;
  if (var->either[0])
    return settle_choice(b, i);
  if (var->accumulates)
    b->types[i] = hd_scalar_accumulator(hd_binding_type(
        b->binding, (hd_task_type_t){HD_VOID, var->accumulates}));
  if (b->types[i] == HD_VOID)
    return hd_bind_fault(b,
                         "type %s of task '%s' is not known: give it by an "
                         "attribute '%s'",
                         var->name, name, var->name);
  if (var->accumulates || var->scalars >> b->types[i] & 1)
    return true;
  if (b->quiet)
    return false;
  return hd_error(&b->context->diags, b->loc, HD_E1104, b->what,
                  hd_arena_printf(b->arena, "task '%s' does not take type %s",
                                  name, hd_scalar_name(b->types[i])));
}

bool hd_bind_types(hd_binder_t *b) {
  const hd_task_t *task = b->task;
  for (size_t i = 0; i < task->types.size; i++) {
    const hd_attribute_t *a = hd_bind_find(b, task->types.data[i]->name);
    if (!a)
      continue;
    if (a->kind != HD_ATTRIBUTE_TYPE || task->types.data[i]->accumulates)
      return hd_bind_fault(b, "attribute '%s' is a type", a->name);
    b->types[i] = a->u.type;
  }
  for (size_t i = 0; i < task->inputs.size; i++)
    if (task->inputs.data[i]->kind == HD_VALUE_INPUT &&
        !bind_type(b, task->inputs.data[i], b->inputs[i].type))
      return false;
  for (int pass = 0; pass < 3; pass++) // What others follow from, first.
    for (size_t i = 0; i < task->types.size; i++)
      if ((task->types.data[i]->accumulates != NULL) +
                  2 * (task->types.data[i]->either[0] != NULL) ==
              pass &&
          !settle_type(b, i))
        return false;
  for (size_t i = 0; i < task->inputs.size; i++) {
    const hd_task_value_t *value = task->inputs.data[i];
    hd_scalar_t needed = hd_binding_type(b->binding, value->type);
    if (value->kind == HD_VALUE_INPUT && needed != b->inputs[i].type)
      return hd_bind_fault(b, "input '%s' has type %s, and %s is needed",
                           value->name, hd_scalar_name(b->inputs[i].type),
                           hd_scalar_name(needed));
  }
  return true;
}

// --- Attributes ---

// Number i of an attribute that is given, as its type holds it.
static bool read_number(hd_binder_t *b, const hd_attribute_t *a, size_t i,
                        hd_scalar_t type, hd_number_t *out) {
  bool is_int = a->kind == HD_ATTRIBUTE_INT || a->kind == HD_ATTRIBUTE_INTS;
  if (hd_scalar_class(type) == HD_CLASS_FLOAT) {
    hd_number_t given = {0};
    if (is_int)
      given.i = a->kind == HD_ATTRIBUTE_INT ? a->u.i : a->u.ints[i];
    else
      given.f = a->kind == HD_ATTRIBUTE_FLOAT ? a->u.f : a->u.floats[i];
    *out = hd_scalar_convert(type, is_int ? HD_I64 : HD_F64, given);
    return true;
  }
  if (!is_int)
    return hd_bind_fault(b, "attribute '%s' is an integer", a->name);
  int64_t value = a->kind == HD_ATTRIBUTE_INT ? a->u.i : a->u.ints[i];
  out->i = hd_int_wrap(type, value);
  bool fits = out->i == value && (type != HD_U64 || value >= 0);
  return fits || hd_bind_fault(b,
                               "attribute '%s' is %lld, which %s does not "
                               "hold",
                               a->name, (long long)value, hd_scalar_name(type));
}

static bool check_kind(hd_binder_t *b, const hd_task_value_t *value,
                       const hd_attribute_t *a, unsigned count) {
  bool one = a->kind == HD_ATTRIBUTE_INT || a->kind == HD_ATTRIBUTE_FLOAT;
  bool list = a->kind == HD_ATTRIBUTE_INTS || a->kind == HD_ATTRIBUTE_FLOATS;
  if (!one && !list)
    return hd_bind_fault(b, "attribute '%s' is a number", value->name);
  if (list && !value->pack)
    return hd_bind_fault(b, "attribute '%s' is one number", value->name);
  if (list && a->count != count)
    return hd_bind_fault(
        b, "attribute '%s' has %zu values, and pack '%s' has %u axes",
        value->name, a->count, value->pack->name, count);
  return true;
}

bool hd_bind_attribute(hd_binder_t *b, size_t input) {
  const hd_task_value_t *value = b->task->inputs.data[input];
  const hd_attribute_t *a = hd_bind_find(b, value->name);
  hd_scalar_t type = hd_binding_type(b->binding, value->type);
  unsigned count = value->pack ? hd_binding_rank(b->binding, value->pack) : 1;
  bool is_float = hd_scalar_class(type) == HD_CLASS_FLOAT;
  if (!a && !value->initial)
    return hd_bind_fault(b, "attribute '%s' is missing", value->name);
  if (a && !check_kind(b, value, a, count))
    return false;
  // One more, so that there is an address where there are no axes.
  int64_t *ints = HD_ARENA_ARRAY(b->arena, int64_t, is_float ? 0 : count + 1);
  double *floats = HD_ARENA_ARRAY(b->arena, double, is_float ? count + 1 : 0);
  for (unsigned i = 0; i < count; i++) {
    hd_number_t number;
    if (!a)
      number = hd_binding_constant(b->binding, value->initial);
    else if (!read_number(b, a, i, type, &number))
      return false;
    if (is_float)
      floats[i] = number.f;
    else
      ints[i] = number.i;
  }
  b->values[input] = (hd_bound_attribute_t){count, is_float ? NULL : ints,
                                            is_float ? floats : NULL};
  return true;
}
