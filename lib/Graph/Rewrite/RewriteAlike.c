// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A constant whose elements are all alike is one number, where a node spreads
// its operands over its result: a mask that hides nothing.
//
//   const m: f32[128, 128] = 0.0
//   y: f32[12, 128, 128] = add(x, m)
//
// becomes
//
//   const n: f32[] = 0.0
//   y: f32[12, 128, 128] = add(x, n)
//
// m may be computed, element by element, of others that are alike. A vector
// stays: rules look for one, and reading it takes no time.
#include "Graph/Rewrite/RewriteState.h"

#include <string.h>

// Of more elements nobody is asked whether they are alike, nor of what more
// nodes one behind the other make of them.
enum { MAX_LOOKED_AT = 1 << 20, MAX_DEPTH = 64 };

typedef struct alike {
  hd_rw_graph_t *g;
  hd_ptr_map_t numbers; // Of values: the number; themselves: there is none.
  bool failed;          // After an error.
} alike_t;

static bool are_alike(const hd_host_tensor_t *tensor) {
  size_t size = tensor->bytes / (size_t)tensor->count;
  return memcmp(tensor->data, tensor->data + size, tensor->bytes - size) == 0;
}

// A constant's elements, where they are bytes each, and at hand: files that
// nobody has looked into stay closed.
static const hd_host_tensor_t *elements_of(alike_t *a,
                                           const hd_rw_value_t *value) {
  int64_t count = hd_tensor_type_count(&value->type);
  bool is_small = count > 1 && count <= MAX_LOOKED_AT;
  return is_small && hd_scalar_bits(value->type.type) % 8 == 0
             ? hd_constant_elements(a->g->arena, value->value)
             : NULL;
}

static hd_rw_value_t *first_of(alike_t *a, const hd_rw_value_t *value,
                               const hd_host_tensor_t *tensor) {
  hd_host_tensor_t *number =
      HD_ARENA_COPY(a->g->arena, hd_host_tensor_t, tensor);
  number->rank = 0;
  number->bytes = tensor->bytes / (size_t)tensor->count;
  number->count = 1;
  return hd_rw_constant(a->g, value->value->name, number);
}

static hd_rw_value_t *number_of(alike_t *a, hd_rw_value_t *value, int depth);

// What a node is of numbers, where all its operands are such.
static hd_rw_value_t *computed_of(alike_t *a, const hd_rw_node_t *def,
                                  int depth) {
  const hd_node_t *node = &def->node;
  unsigned cost = 0;
  hd_rw_value_t *result;
  if (hd_node_is_reshape(node))
    return number_of(a, def->inputs[0], depth);
  if (!node->num_inputs || !hd_rw_is_by_element(node, &cost))
    return NULL;
  const hd_host_tensor_t **data =
      HD_ARENA_ARRAY(a->g->arena, const hd_host_tensor_t *, node->num_inputs);
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    hd_rw_value_t *number = number_of(a, def->inputs[i], depth);
    data[i] = number ? hd_rw_known(a->g, number, &a->failed) : NULL;
    if (!data[i])
      return NULL;
  }
  if (hd_rw_evaluate(a->g, node, data, def->outputs[0]->value->name, &result))
    return result;
  a->failed = true;
  return NULL;
}

// NULL: its elements are not alike, or nobody knows.
static hd_rw_value_t *number_of(alike_t *a, hd_rw_value_t *value, int depth) {
  hd_rw_value_t *number = hd_ptr_map_find(&a->numbers, value);
  if (number)
    return number != value ? number : NULL;
  if (!value->constant || a->failed || depth == 0)
    return NULL;
  if (value->type.rank == 0)
    return value->def ? NULL : value;
  if (value->def) {
    number = computed_of(a, value->def, depth - 1);
  } else {
    const hd_host_tensor_t *tensor = elements_of(a, value);
    if (tensor && are_alike(tensor))
      number = first_of(a, value, tensor);
  }
  hd_ptr_map_set(a->g->arena, &a->numbers, value, number ? number : value);
  return number;
}

static bool has_several_axes(const hd_tensor_type_t *type) {
  int longer = 0;
  for (int64_t i = 0; i < type->rank; i++)
    longer += type->shape[i] > 1;
  return longer > 1;
}

// Whether a node's result is what it is without that operand's shape: another
// one of those that it is to read has it, and no axes are said to be those of
// both.
static bool is_spread(const hd_rw_node_t *node, hd_rw_value_t *const *reads,
                      uint32_t at) {
  const hd_task_value_t *const *inputs = node->node.task->inputs.data;
  const hd_task_value_t *own = inputs[at];
  const hd_tensor_type_t *y = &node->outputs[0]->type;
  bool has_shape = false;
  if (own->rank != 1 || own->shape[0]->kind != HD_TERM_PACK || own->by ||
      node->node.task->definitions.data[0]->indices[0]->range->kind !=
          HD_TERM_BROADCAST)
    return false;
  for (uint32_t i = 0; i < node->node.num_inputs; i++) {
    const hd_tensor_type_t *x = &reads[i]->type;
    if (i == at)
      continue;
    if (inputs[i]->rank > 0 && inputs[i]->shape[0]->kind == HD_TERM_PACK &&
        inputs[i]->shape[0]->u.pack == own->shape[0]->u.pack)
      return false;
    has_shape |= x->rank == y->rank &&
                 memcmp(x->shape, y->shape, y->rank * sizeof y->shape[0]) == 0;
  }
  return has_shape;
}

static bool visit(alike_t *a, hd_rw_node_t *node, bool explains) {
  hd_rw_graph_t *g = a->g;
  hd_rw_value_t *y = node->node.num_outputs ? node->outputs[0] : NULL;
  unsigned cost = 0;
  if (node->dead || !y || y->constant ||
      !hd_rw_is_by_element(&node->node, &cost))
    return true;
  hd_rw_value_t **inputs =
      HD_ARENA_ARRAY(g->arena, hd_rw_value_t *, node->node.num_inputs + 1);
  bool changed = false;
  for (uint32_t i = 0; i < node->node.num_inputs; i++)
    inputs[i] = node->inputs[i];
  for (uint32_t i = 0; i < node->node.num_inputs; i++) {
    hd_rw_value_t *x = inputs[i];
    hd_rw_value_t *number =
        x->constant && has_several_axes(&x->type) && is_spread(node, inputs, i)
            ? number_of(a, x, MAX_DEPTH)
            : NULL;
    if (number)
      inputs[i] = number;
    changed |= number != NULL;
  }
  const char *label = node->node.label ? node->node.label : y->value->name;
  if (a->failed || !changed ||
      !hd_step(&g->module->context->steps, HD_STEP_REWRITE,
               "one number at '%s'", label))
    return !a->failed;
  hd_rw_value_t **outputs =
      hd_rw_put(g, &node->node, inputs, &y->type, node, y->value->name, NULL);
  if (outputs && hd_rw_can_replace(y, outputs[0])) {
    if (explains)
      hd_remark(&g->module->context->diags, node->node.loc,
                "what '%s' reads is one number", label);
    hd_rw_replace(g, y, outputs[0]);
  }
  return outputs;
}

bool hd_rw_spread_numbers(hd_rw_graph_t *g, bool explains) {
  alike_t a = {.g = g};
  HD_VEC(hd_rw_node_t *) nodes = {0};
  for (hd_rw_node_t *node = g->first; node; node = node->next)
    hd_vec_push(g->arena, &nodes, node);
  for (size_t i = 0; i < nodes.size; i++)
    if (!visit(&a, nodes.data[i], explains))
      return false;
  return true;
}
