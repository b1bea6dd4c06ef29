// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Draws an instance and evaluates a side of it by the reference evaluator.
#include "Graph/Rewrite/RewriteInstance.h"

#include "Graph/Bind/BindingState.h"
#include "Graph/Reference/Reference.h"

#include <string.h>

static void end_made(void *argument) {
  hd_instance_t *n = argument;
  for (size_t i = 0; i < n->made.size; i++)
    hd_host_tensor_fini(n->made.data[i]);
  n->made.size = 0;
}

void hd_instance_end(hd_instance_t *n) {
  hd_budget_clean(&n->context->budget, &n->cleanup);
}

static bool known_type(const hd_task_binding_t *b, const hd_task_value_t *value,
                       hd_tensor_type_t *type) {
  unsigned rank = 0;
  int64_t count;
  for (uint32_t i = 0; i < value->rank; i++) {
    const hd_term_t *axis = value->shape[i];
    unsigned axes = axis->pack ? hd_binding_rank(b, axis->pack) : 1;
    for (unsigned a = 0; a < axes; a++, rank++)
      if (rank >= HD_MAX_RANK ||
          !hd_binding_extent(b, axis, a, &type->shape[rank]))
        return false;
  }
  type->rank = rank;
  type->type = hd_binding_type(b, value->type);
  return hd_shape_count(type->shape, rank, &count) && count < 100000;
}

// --- Nodes ---

static const hd_host_tensor_t *reshaped(hd_instance_t *n,
                                        const hd_host_tensor_t *x,
                                        const hd_tensor_type_t *type) {
  hd_host_tensor_t *view = HD_ARENA_COPY(n->arena, hd_host_tensor_t, x);
  view->rank = type->rank;
  memcpy(view->shape, type->shape, type->rank * sizeof(int64_t));
  return view;
}

// Evaluating may find that the data is no data for the task (an index outside):
// then this is no instance, and nobody is told.
static bool evaluate_quietly(hd_instance_t *n, const hd_task_binding_t *binding,
                             const hd_host_tensor_t *const *data,
                             hd_host_tensor_t *results) {
  hd_diagnostics_t *diags = &n->context->diags;
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(diags);
  bool ok = hd_task_evaluate(n->context, binding, data, results, (hd_loc_t){0});
  if (!ok)
    hd_diagnostics_rewind(diags, mark);
  return ok;
}

// Types that a node names become f64 where all floats are.
static void widen(hd_instance_t *n, hd_attribute_list_t *attributes) {
  for (size_t i = 0; i < attributes->size; i++) {
    const hd_attribute_t *a = attributes->data[i];
    if (a->kind != HD_ATTRIBUTE_TYPE ||
        hd_scalar_class(a->u.type) != HD_CLASS_FLOAT)
      continue;
    hd_attribute_t *wide = HD_ARENA_COPY(n->arena, hd_attribute_t, a);
    wide->u.type = HD_F64;
    attributes->data[i] = wide;
  }
}

static bool run_task(hd_instance_t *n, const hd_rule_node_t *node,
                     const hd_attribute_list_t *attributes,
                     const hd_host_tensor_t **values) {
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(n->arena, hd_tensor_type_t, node->num_inputs + 1);
  const hd_host_tensor_t **data =
      HD_ARENA_ARRAY(n->arena, const hd_host_tensor_t *, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    data[i] = values[node->inputs[i]->index];
    types[i] = hd_tensor_type_of(data[i]);
  }
  const hd_task_binding_t *binding = hd_task_try_bind(
      n->context, n->arena, node->task, types, NULL, node->num_inputs,
      attributes->data, (uint32_t)attributes->size);
  if (!binding)
    return false;
  uint32_t count = (uint32_t)node->task->outputs.size;
  hd_host_tensor_t *results =
      HD_ARENA_ARRAY(n->arena, hd_host_tensor_t, count + 1);
  if (!evaluate_quietly(n, binding, data, results))
    return false;
  for (uint32_t i = 0; i < count; i++) {
    hd_vec_push(n->arena, &n->made, &results[i]);
    if (!node->required && node->outputs[i])
      values[node->outputs[i]->index] = &results[i];
  }
  if (node->required)
    n->refused = hd_host_tensor_get_int(&results[0], 0) == 0;
  return true;
}

static bool run_left_reshape(hd_instance_t *n, hd_task_binding_t *b,
                             const hd_rule_node_t *node) {
  const hd_host_tensor_t *x = n->left[node->inputs[0]->index];
  const hd_rule_value_t *value = node->outputs[0];
  hd_tensor_type_t type;
  if (!value->type || !hd_draw_axes(n, b, value->type, x->count) ||
      !known_type(b, value->type, &type) ||
      hd_tensor_type_count(&type) != x->count || type.type != x->type)
    return false;
  n->left[value->index] = reshaped(n, x, &type);
  return true;
}

// What an axis is that only a node's result binds.
static void learn(hd_instance_t *n, const hd_task_binding_t *b,
                  const hd_rule_value_t *value) {
  const hd_task_t *s = b->task;
  const hd_host_tensor_t *tensor = value ? n->left[value->index] : NULL;
  unsigned at = 0;
  for (uint32_t i = 0; value && value->type && i < value->type->rank; i++) {
    const hd_term_t *axis = value->type->shape[i];
    unsigned rank = axis->pack ? hd_binding_rank(b, axis->pack) : 1;
    if (at + rank > tensor->rank)
      return;
    if (axis->kind == HD_TERM_SIZE) {
      int64_t *size = &n->sizes[hd_task_size_at(s, axis->u.size)];
      if (*size == HD_UNBOUND_SIZE)
        *size = tensor->shape[at];
    } else if (axis->kind == HD_TERM_PACK) {
      hd_extents_t *pack = &n->packs[hd_task_pack_at(s, axis->u.pack)];
      if (!pack->values)
        pack->values = tensor->shape + at;
    }
    at += rank;
  }
}

static bool run_left(hd_instance_t *n, hd_task_binding_t *b,
                     hd_attribute_list_t *collected) {
  for (size_t i = 0; i < n->rule->left.size; i++) {
    const hd_rule_node_t *node = n->rule->left.data[i];
    if (!node->task) {
      if (!run_left_reshape(n, b, node))
        return false;
      continue;
    }
    hd_attribute_list_t attributes = {0};
    if (!hd_rule_attributes(node, b, HD_PRECISION_MODEL, n->arena,
                            &attributes) ||
        !run_task(n, node, &attributes, n->left) ||
        !hd_rule_collect(node, attributes.data, (uint32_t)attributes.size,
                         n->arena, collected))
      return false;
    for (uint32_t o = 0; o < node->num_outputs; o++)
      learn(n, b, node->outputs[o]);
  }
  return true;
}

bool hd_instance_run_left(hd_instance_t *n, const hd_host_tensor_t **values,
                          bool wide) {
  for (size_t i = 0; i < n->rule->left.size; i++) {
    const hd_rule_node_t *node = n->rule->left.data[i];
    if (!node->task) {
      size_t to = node->outputs[0]->index;
      hd_tensor_type_t type = hd_tensor_type_of(n->left[to]);
      values[to] = reshaped(n, values[node->inputs[0]->index], &type);
      continue;
    }
    hd_attribute_list_t attributes = {0};
    if (!hd_rule_attributes(node, n->binding, HD_PRECISION_MODEL, n->arena,
                            &attributes))
      return false;
    if (wide)
      widen(n, &attributes);
    if (!run_task(n, node, &attributes, values))
      return false;
  }
  return true;
}

static bool run_magnitudes(hd_instance_t *n, const hd_rule_node_t *node) {
  const hd_rule_value_t *value = node->outputs[0];
  hd_tensor_type_t type = hd_rule_written_type(n->binding, value);
  const hd_host_tensor_t *x = n->right[node->inputs[0]->index];
  hd_host_tensor_t *made =
      hd_host_tensor_make(n->arena, HD_F64, type.shape, type.rank);
  bool fits = type.rank == x->rank;
  for (unsigned i = 0; fits && i < type.rank; i++)
    fits = type.shape[i] == 1 || type.shape[i] == x->shape[i];
  if (fits)
    hd_magnitudes(n->arena, x, made);
  n->right[value->index] = made;
  return fits;
}

static bool run_right_reshape(hd_instance_t *n, const hd_rule_node_t *node) {
  const hd_rule_value_t *value = node->outputs[0];
  const hd_host_tensor_t *x = n->right[node->inputs[0]->index];
  hd_tensor_type_t type = value->left ? hd_tensor_type_of(n->left[value->index])
                                      : hd_rule_written_type(n->binding, value);
  if (hd_tensor_type_count(&type) != x->count || type.type != x->type)
    return false;
  n->right[value->index] = reshaped(n, x, &type);
  return true;
}

bool hd_instance_run_right(hd_instance_t *n) {
  for (size_t i = 0; i < n->rule->right.size; i++) {
    const hd_rule_node_t *node = n->rule->right.data[i];
    hd_attribute_list_t attributes = {0};
    bool ok = true;
    if (!node->op)
      n->right[node->outputs[0]->index] = n->right[node->inputs[0]->index];
    else if (hd_rule_node_is_magnitudes(node))
      ok = run_magnitudes(n, node);
    else if (!node->task)
      ok = run_right_reshape(n, node);
    else
      ok = hd_rule_attributes(node, n->binding, HD_PRECISION_MODEL, n->arena,
                              &attributes) &&
           run_task(n, node, &attributes, n->right);
    if (ok && n->refused)
      return true;
    if (ok)
      continue;
    n->fault = hd_arena_printf(n->arena,
                               "node %zu of the right side (%s) has no meaning",
                               i + 1, node->op ? node->op : "a name");
    return false;
  }
  return true;
}

// --- All of it ---

static bool draw_operands(hd_instance_t *n, const hd_task_binding_t *b) {
  for (size_t i = 0; i < n->rule->values.size; i++) {
    const hd_rule_value_t *value = n->rule->values.data[i];
    hd_tensor_type_t type;
    if (!value->operand)
      continue;
    if (!known_type(b, value->type, &type))
      return false;
    const hd_host_tensor_t *known =
        n->known[hd_task_input_at(b->task, value->type)];
    hd_host_tensor_t *tensor =
        hd_host_tensor_make(n->arena, type.type, type.shape, type.rank);
    if (known && tensor->count == 1)
      memcpy(tensor->data, known->data, tensor->bytes);
    else
      hd_draw_elements(n, value, tensor);
    n->left[value->index] = tensor;
  }
  return true;
}

// The binder has the last word: also on conditions.
static bool bind(hd_instance_t *n, const hd_attribute_list_t *collected) {
  const hd_task_t *s = n->rule->signature;
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(n->arena, hd_tensor_type_t, s->inputs.size + 1);
  const hd_host_tensor_t **known =
      HD_ARENA_ARRAY(n->arena, const hd_host_tensor_t *, s->inputs.size + 1);
  uint32_t count = 0;
  for (size_t i = 0; i < s->inputs.size; i++) {
    const hd_rule_value_t *value = hd_rewrite_typed(n->rule, s->inputs.data[i]);
    if (!value)
      continue;
    types[count] = hd_tensor_type_of(n->left[value->index]);
    const hd_host_tensor_t *tensor = n->left[value->index];
    known[count++] = tensor->count == 1 ? tensor : NULL;
  }
  n->binding = hd_task_try_bind(n->context, n->arena, s, types, known, count,
                                collected->data, (uint32_t)collected->size);
  return n->binding != NULL;
}

bool hd_instance_draw(hd_instance_t *n, hd_context_t *context,
                      hd_arena_t *arena, const hd_rewrite_t *rule,
                      hd_random_t *random, hd_draw_t draw) {
  hd_task_binding_t drawn;
  hd_attribute_list_t collected = {0};
  *n = (hd_instance_t){.context = context,
                       .arena = arena,
                       .rule = rule,
                       .random = random,
                       .draw = draw};
  n->left =
      HD_ARENA_ARRAY(arena, const hd_host_tensor_t *, rule->values.size + 1);
  n->right =
      HD_ARENA_ARRAY(arena, const hd_host_tensor_t *, rule->values.size + 1);
  n->positive = hd_random_pick(random, 2);
  n->has_constant_edges = hd_random_pick(random, 2);
  n->spread =
      rule->values.data[hd_random_pick(random, 2 * (int64_t)rule->values.size) %
                        (int64_t)rule->values.size];
  hd_budget_defer(&context->budget, &n->cleanup, end_made, n);
  hd_draw_names(n, &drawn);
  if (!draw_operands(n, &drawn) || !run_left(n, &drawn, &collected) ||
      !bind(n, &collected))
    return false;
  for (size_t i = 0; i < rule->values.size; i++)
    n->right[i] = n->left[i];
  return true;
}

// --- For people ---

static void print_numbers(hd_buffer_t *out, const char *name,
                          const int64_t *values, unsigned count) {
  char text[200];
  hd_buffer_printf(out, ", %s = %s", name,
                   hd_shape_text(values, count, text, sizeof text));
}

static void print_attribute(hd_buffer_t *out, const char *name,
                            const hd_bound_attribute_t *a) {
  hd_buffer_printf(out, ", %s = ", name);
  for (unsigned i = 0; i < a->rank; i++)
    if (a->ints)
      hd_buffer_printf(out, "%s%lld", i ? " " : "", (long long)a->ints[i]);
    else
      hd_buffer_printf(out, "%s%g", i ? " " : "", a->floats[i]);
}

static void print_tensor(hd_buffer_t *out, const char *name,
                         const hd_host_tensor_t *tensor) {
  enum { MOST = 8 };
  char text[200];
  hd_buffer_printf(
      out, "; %s: %s%s =", name, hd_scalar_name(tensor->type),
      hd_shape_text(tensor->shape, tensor->rank, text, sizeof text));
  for (int64_t i = 0; i < tensor->count && i < MOST; i++) {
    hd_buffer_puts(out, " ");
    hd_host_tensor_print_element(tensor, i, out);
  }
  hd_buffer_puts(out, tensor->count > MOST ? " ..." : "");
}

void hd_instance_print(const hd_instance_t *n, hd_buffer_t *out) {
  const hd_task_t *s = n->rule->signature;
  const hd_task_binding_t *b = n->binding;
  hd_buffer_puts(out, "for");
  for (size_t i = 0; i < s->types.size; i++)
    hd_buffer_printf(out, "%s %s = %s", i ? "," : "", s->types.data[i]->name,
                     hd_scalar_name(b->types[i]));
  for (size_t i = 0; i < s->sizes.size; i++)
    hd_buffer_printf(out, "%s %s = %lld", i || s->types.size ? "," : "",
                     s->sizes.data[i]->name, (long long)b->sizes[i]);
  for (size_t i = 0; i < s->packs.size; i++)
    if (s->packs.data[i]->name)
      print_numbers(out, s->packs.data[i]->name, b->packs[i].values,
                    b->packs[i].rank);
  for (size_t i = 0; i < s->inputs.size; i++)
    if (s->inputs.data[i]->kind == HD_VALUE_ATTRIBUTE)
      print_attribute(out, s->inputs.data[i]->name, &b->attributes[i]);
  for (size_t i = 0; i < n->rule->values.size; i++)
    if (n->rule->values.data[i]->operand)
      print_tensor(out, n->rule->values.data[i]->name, n->left[i]);
}
