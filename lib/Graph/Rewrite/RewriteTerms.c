// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes of a rule's nodes: what they bind, and what they are under a
// binding of the rule's signature.
#include "Graph/Rewrite/RewriteState.h"

#include <string.h>

static bool is_float(hd_scalar_t type) {
  return hd_scalar_class(type) == HD_CLASS_FLOAT;
}

static hd_attribute_t *make_attribute(hd_arena_t *arena, const char *name,
                                      hd_attribute_kind_t kind) {
  hd_attribute_t *a = HD_ARENA_NEW(arena, hd_attribute_t);
  a->name = name;
  a->kind = kind;
  return a;
}

static hd_attribute_t *evaluate_one(const hd_rule_attribute_t *a,
                                    const hd_task_binding_t *b,
                                    hd_arena_t *arena) {
  hd_number_t number;
  bool floats = is_float(hd_binding_type(b, a->term->type));
  if (!hd_binding_number(b, a->term, 0, &number))
    return NULL;
  hd_attribute_t *made = make_attribute(
      arena, a->name, floats ? HD_ATTRIBUTE_FLOAT : HD_ATTRIBUTE_INT);
  if (floats)
    made->u.f = number.f;
  else
    made->u.i = number.i;
  return made;
}

// Terms over packs one after the other.
static hd_attribute_t *evaluate_list(const char *name,
                                     const hd_term_t *const *terms,
                                     uint32_t count, const hd_task_binding_t *b,
                                     hd_arena_t *arena) {
  HD_VEC(int64_t) ints = {0};
  HD_VEC(double) numbers = {0};
  bool floats = count && is_float(hd_binding_type(b, terms[0]->type));
  for (uint32_t i = 0; i < count; i++) {
    unsigned rank = terms[i]->pack ? hd_binding_rank(b, terms[i]->pack) : 1;
    for (unsigned n = 0; n < rank; n++) {
      hd_number_t number;
      if (!hd_binding_number(b, terms[i], n, &number))
        return NULL;
      if (floats)
        hd_vec_push(arena, &numbers, number.f);
      else
        hd_vec_push(arena, &ints, number.i);
    }
  }
  hd_attribute_t *made = make_attribute(
      arena, name, floats ? HD_ATTRIBUTE_FLOATS : HD_ATTRIBUTE_INTS);
  static const int64_t none;
  static const double no_number;
  made->count = floats ? numbers.size : ints.size;
  if (floats)
    made->u.floats = numbers.size ? numbers.data : &no_number;
  else
    made->u.ints = ints.size ? ints.data : &none;
  return made;
}

hd_attribute_t *hd_rule_evaluate(const hd_rule_attribute_t *a,
                                 const hd_task_binding_t *b,
                                 hd_precision_t precision, hd_arena_t *arena) {
  hd_attribute_t *made;
  switch (a->kind) {
  case HD_RULE_TERM:
    return a->term->pack ? evaluate_list(a->name, &a->term, 1, b, arena)
                         : evaluate_one(a, b, arena);
  case HD_RULE_LIST:
    return evaluate_list(a->name, a->terms, a->count, b, arena);
  case HD_RULE_TYPE:
    made = make_attribute(arena, a->name, HD_ATTRIBUTE_TYPE);
    made->u.type = hd_binding_type(b, a->type);
    if (a->narrow)
      made->u.type = hd_precision_operand(precision, made->u.type);
    return made;
  case HD_RULE_RANK:
    made = make_attribute(arena, a->name, HD_ATTRIBUTE_INT);
    made->u.i = hd_binding_rank(b, a->pack);
    return made;
  }
  return NULL;
}

// --- Of nodes ---

static const hd_attribute_t *
attribute_named(const hd_attribute_t *const *attributes, size_t count,
                const char *name) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(attributes[i]->name, name) == 0)
      return attributes[i];
  return NULL;
}

// What a task's attribute is that a node leaves out.
static const hd_attribute_t *default_of(const hd_task_t *task, const char *name,
                                        hd_arena_t *arena) {
  for (size_t i = 0; i < task->inputs.size; i++) {
    const hd_task_value_t *value = task->inputs.data[i];
    if (value->kind != HD_VALUE_ATTRIBUTE || strcmp(value->name, name) != 0 ||
        !value->initial || value->initial->kind != HD_TERM_CONST)
      continue;
    bool floats = hd_task_type_is_float(value->type);
    hd_attribute_t *a = make_attribute(
        arena, name, floats ? HD_ATTRIBUTE_FLOAT : HD_ATTRIBUTE_INT);
    if (floats)
      a->u.f = value->initial->u.f;
    else
      a->u.i = value->initial->u.i;
    return a;
  }
  return NULL;
}

static const char *bound_name(const hd_rule_attribute_t *a) {
  switch (a->kind) {
  case HD_RULE_TERM:
    return a->term->u.value->name;
  case HD_RULE_TYPE:
    return a->type.var->name;
  case HD_RULE_RANK:
    return a->pack->name;
  case HD_RULE_LIST:
    break;
  }
  return NULL;
}

static double number_at(const hd_attribute_t *a, size_t i, bool *ok) {
  switch (a->kind) {
  case HD_ATTRIBUTE_INT:
    return (double)a->u.i;
  case HD_ATTRIBUTE_FLOAT:
    return a->u.f;
  case HD_ATTRIBUTE_INTS:
    return (double)a->u.ints[i];
  case HD_ATTRIBUTE_FLOATS:
    return a->u.floats[i];
  case HD_ATTRIBUTE_STRING:
  case HD_ATTRIBUTE_STRINGS:
  case HD_ATTRIBUTE_TENSOR:
  case HD_ATTRIBUTE_GRAPH:
  case HD_ATTRIBUTE_TYPE:
  case HD_ATTRIBUTE_SIZE:
  case HD_ATTRIBUTE_SIZES:
  case HD_ATTRIBUTE_KINDS:
    break;
  }
  *ok = false;
  return 0;
}

static bool is_list(const hd_attribute_t *a) {
  return a->kind == HD_ATTRIBUTE_INTS || a->kind == HD_ATTRIBUTE_FLOATS;
}

// Learns what a name stands for; false where it has been something else.
static bool learn(hd_arena_t *arena, hd_attribute_list_t *list,
                  const hd_attribute_t *given, const char *name) {
  const hd_attribute_t *before = attribute_named(list->data, list->size, name);
  if (before)
    return hd_attribute_equal(before, given);
  hd_attribute_t *bound = HD_ARENA_COPY(arena, hd_attribute_t, given);
  bound->name = name;
  hd_vec_push(arena, list, (const hd_attribute_t *)bound);
  return true;
}

// Names that stand alone in a list, before what is over packs.
static bool learn_items(hd_arena_t *arena, hd_attribute_list_t *list,
                        const hd_rule_attribute_t *wanted,
                        const hd_attribute_t *given) {
  bool ok = true;
  for (uint32_t i = 0; ok && i < hd_rule_leading(wanted); i++) {
    if (!hd_rule_item_binds(wanted->terms[i]))
      continue;
    hd_attribute_t *item =
        make_attribute(arena, wanted->name, HD_ATTRIBUTE_INT);
    ok = given->kind == HD_ATTRIBUTE_INT ||
         (given->kind == HD_ATTRIBUTE_INTS && i < given->count);
    if (ok)
      item->u.i = is_list(given) ? given->u.ints[i] : given->u.i;
    ok = ok && learn(arena, list, item, wanted->terms[i]->u.value->name);
  }
  return ok;
}

bool hd_rule_collect(const hd_rule_node_t *node,
                     const hd_attribute_t *const *attributes,
                     uint32_t num_attributes, hd_arena_t *arena,
                     hd_attribute_list_t *list) {
  for (uint32_t i = 0; i < node->num_attributes; i++) {
    const hd_rule_attribute_t *wanted = node->attributes[i];
    const hd_attribute_t *given =
        attribute_named(attributes, num_attributes, wanted->name);
    if (!given)
      given = default_of(node->task, wanted->name, arena);
    if (wanted->kind == HD_RULE_LIST) {
      if (given && !learn_items(arena, list, wanted, given))
        return false;
      continue;
    }
    if (!hd_rule_attribute_binds(wanted))
      continue;
    if (!given && wanted->kind != HD_RULE_TERM)
      continue; // The operands say it.
    if (!given || !learn(arena, list, given, bound_name(wanted)))
      return false;
  }
  return true;
}

// One number stands for every axis.
static bool says_same(const hd_attribute_t *a, const hd_attribute_t *b) {
  if (a->kind == HD_ATTRIBUTE_TYPE || b->kind == HD_ATTRIBUTE_TYPE)
    return hd_attribute_equal(a, b);
  size_t count = is_list(a) ? a->count : is_list(b) ? b->count : 1;
  if (is_list(a) && is_list(b) && a->count != b->count)
    return false;
  bool ok = true;
  for (size_t i = 0; i < count; i++)
    if (number_at(a, i, &ok) != number_at(b, i, &ok))
      return false;
  return ok;
}

// Of two types, of which the first is the default.
static bool is_choice(const hd_task_t *task, const char *name) {
  const hd_type_var_t *type = task ? hd_task_find_type(task, name) : NULL;
  return type && type->either[0];
}

bool hd_rule_check(const hd_rule_node_t *node,
                   const hd_attribute_t *const *attributes,
                   uint32_t num_attributes, const hd_task_binding_t *binding,
                   hd_arena_t *arena) {
  for (uint32_t i = 0; i < node->num_attributes; i++) {
    const hd_rule_attribute_t *wanted = node->attributes[i];
    if (hd_rule_attribute_binds(wanted))
      continue;
    const hd_attribute_t *given =
        attribute_named(attributes, num_attributes, wanted->name);
    const hd_attribute_t *value =
        hd_rule_evaluate(wanted, binding, HD_PRECISION_MODEL, arena);
    if (!given)
      given = default_of(node->task, wanted->name, arena);
    if (!given || !value || !says_same(given, value))
      return false;
  }
  // What the rule does not speak of has its default.
  for (uint32_t i = 0; i < num_attributes; i++) {
    const char *name = attributes[i]->name;
    if (!hd_rule_node_gives(node, name) && is_choice(node->task, name))
      return false;
    if (hd_rule_node_gives(node, name) ||
        !hd_task_find_attribute(node->task, name))
      continue;
    const hd_attribute_t *usual = default_of(node->task, name, arena);
    if (!usual || !says_same(usual, attributes[i]))
      return false;
  }
  return true;
}

// A default is not written.
bool hd_rule_attributes(const hd_rule_node_t *node, const hd_task_binding_t *b,
                        hd_precision_t precision, hd_arena_t *arena,
                        hd_attribute_list_t *list) {
  for (uint32_t i = 0; i < node->num_attributes; i++) {
    const hd_attribute_t *a =
        hd_rule_evaluate(node->attributes[i], b, precision, arena);
    if (!a)
      return false;
    const hd_attribute_t *usual =
        node->task ? default_of(node->task, a->name, arena) : NULL;
    if (!usual || !says_same(usual, a))
      hd_vec_push(arena, list, a);
  }
  return true;
}

// --- Types ---

hd_tensor_type_t hd_rule_written_type(const hd_task_binding_t *binding,
                                      const hd_rule_value_t *value) {
  const hd_task_t *signature = binding->task;
  size_t i = 0;
  while (signature->outputs.data[i] != value->type)
    i++;
  return binding->outputs[i];
}

int64_t hd_tensor_type_count(const hd_tensor_type_t *type) {
  int64_t count;
  return hd_shape_count(type->shape, type->rank, &count) ? count : INT64_MAX;
}
