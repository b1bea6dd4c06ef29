// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes: that there is such an operator, and of a task what it takes and gives,
// as far as that is seen before sizes are known; binding does the rest.
#include "IR/Graph/Loop.h"
#include "IR/Verify/GraphVerifier.h"

#include <string.h>

static void fault_count(hd_graph_verifier_t *g, const hd_node_t *node,
                        const char *what, uint32_t wanted, uint32_t found) {
  hd_error(g->v.diags, node->loc, HD_E0206, node->op, (int)wanted, what,
           (int)found);
  g->v.errors++;
}

static bool is_complete(const hd_value_t *const *values, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!values[i])
      return false;
  return true;
}

// Of elements; false where it is not known.
static bool count_elements(const hd_value_t *value, int64_t *count) {
  *count = 1;
  if (!hd_value_is_concrete(value))
    return false;
  for (int i = 0; i < value->rank; i++)
    if (__builtin_mul_overflow(*count, value->shape[i]->u.i, count))
      return false;
  return true;
}

static void verify_reshape(hd_graph_verifier_t *g, const hd_node_t *node) {
  if (node->num_inputs != 1 || !is_complete(node->inputs, 1)) {
    fault_count(g, node, "input", 1, node->num_inputs);
    return;
  }
  if (node->num_outputs != 1 || !is_complete(node->outputs, 1)) {
    fault_count(g, node, "output", 1, node->num_outputs);
    return;
  }
  const hd_value_t *from = node->inputs[0], *to = node->outputs[0];
  int64_t before, after;
  if (node->num_attributes)
    hd_verify_fault(&g->v, node->loc, "reshape has no attributes");
  if (to->type == HD_VOID || to->rank < 0 || to->form != HD_HOLDS_TENSOR)
    hd_verify_fault(&g->v, to->loc,
                    "the type of a reshape's result must be written");
  else if (from->type != HD_VOID && from->type != to->type)
    hd_verify_fault(&g->v, to->loc, "a reshape makes %s of %s",
                    hd_scalar_name(to->type), hd_scalar_name(from->type));
  else if (count_elements(from, &before) && count_elements(to, &after) &&
           before != after)
    hd_verify_fault(&g->v, to->loc, "a reshape of %lld elements to %lld",
                    (long long)before, (long long)after);
}

static bool is_attribute(const hd_task_value_t *value) {
  return value->kind == HD_VALUE_ATTRIBUTE;
}

// An attribute of integers takes integers, one of floats those too; one over a
// pack a list or a number that stands for every axis.
static bool takes(const hd_task_value_t *value, hd_attribute_kind_t kind) {
  uint32_t scalars = hd_task_type_scalars(value->type);
  bool floats = scalars & hd_scalar_set("float");
  return kind == HD_ATTRIBUTE_INT || kind == HD_ATTRIBUTE_SIZE ||
         (floats && kind == HD_ATTRIBUTE_FLOAT) ||
         (value->pack &&
          (kind == HD_ATTRIBUTE_INTS || kind == HD_ATTRIBUTE_SIZES ||
           (floats && kind == HD_ATTRIBUTE_FLOATS)));
}

static void verify_task_attribute(hd_graph_verifier_t *g, const hd_node_t *node,
                                  const hd_attribute_t *a) {
  const hd_task_value_t *value = hd_task_find_attribute(node->task, a->name);
  const hd_type_var_t *type = hd_task_find_type(node->task, a->name);
  bool fits = value  ? takes(value, a->kind)
              : type ? a->kind == HD_ATTRIBUTE_TYPE
                     : a->kind == HD_ATTRIBUTE_INT;
  if (!value && !type && !hd_task_find_pack(node->task, a->name))
    hd_verify_fault(&g->v, a->loc, "task '%s' has no attribute '%s'", node->op,
                    a->name);
  else if (!fits)
    hd_verify_fault(&g->v, a->loc, "attribute '%s' of task '%s' is not %s",
                    a->name, node->op, hd_attribute_kind_name(a->kind));
  else if (type && !(hd_task_type_scalars((hd_task_type_t){HD_VOID, type}) >>
                         a->u.type &
                     1))
    hd_verify_fault(&g->v, a->loc, "'%s' of task '%s' cannot be %s", a->name,
                    node->op, hd_scalar_name(a->u.type));
}

// What the inputs and attributes say that type variables stand for, by their
// place in the task; HD_VOID where nothing does.
typedef struct bound {
  const hd_task_t *task;
  hd_scalar_t *types;
} bound_t;

static hd_scalar_t *bound_type(const bound_t *bound, const hd_type_var_t *var) {
  size_t i = 0;
  while (bound->task->types.data[i] != var)
    i++;
  return &bound->types[i];
}

// VOID: it is not known.
static hd_scalar_t type_of(const bound_t *bound, const hd_type_var_t *var) {
  if (!var->accumulates)
    return *bound_type(bound, var);
  hd_scalar_t of = *bound_type(bound, var->accumulates);
  return of == HD_VOID ? of : hd_scalar_accumulator(of);
}

// A result whose type is one of two: the node says which, or it is the first.
static void verify_choice(hd_graph_verifier_t *g, const hd_node_t *node,
                          const bound_t *bound, const hd_task_value_t *wanted,
                          const hd_value_t *value, hd_loc_t loc) {
  const hd_type_var_t *var = wanted->type.var;
  hd_scalar_t said = *bound_type(bound, var);
  hd_scalar_t first = type_of(bound, var->either[0]);
  hd_scalar_t second = type_of(bound, var->either[1]);
  hd_scalar_t type = said == HD_VOID ? first : said;
  if (first == HD_VOID || second == HD_VOID)
    return;
  if (type != first && type != second)
    hd_verify_fault(&g->v, loc, "'%s' of task '%s' is %s or %s, not %s",
                    wanted->name, node->op, hd_scalar_name(first),
                    hd_scalar_name(second), hd_scalar_name(type));
  else if (type != value->type)
    hd_verify_fault(&g->v, loc, "'%s' of task '%s' is %s where %s is %s",
                    wanted->name, node->op, hd_scalar_name(value->type),
                    var->name, hd_scalar_name(type));
}

static void verify_operand(hd_graph_verifier_t *g, const hd_node_t *node,
                           const bound_t *bound, const hd_task_value_t *wanted,
                           const hd_value_t *value, hd_loc_t loc) {
  hd_task_type_t type = wanted->type;
  if (value->form != HD_HOLDS_TENSOR)
    hd_verify_fault(&g->v, loc, "'%s' is no tensor, and a task takes no other",
                    value->name);
  if (value->type != HD_VOID &&
      !(hd_task_type_scalars(type) >> value->type & 1)) {
    hd_verify_fault(&g->v, loc, "'%s' of task '%s' cannot be %s", wanted->name,
                    node->op, hd_scalar_name(value->type));
  } else if (value->type != HD_VOID && type.var && type.var->either[0]) {
    verify_choice(g, node, bound, wanted, value, loc);
  } else if (value->type != HD_VOID && hd_task_type_is_free(type)) {
    hd_scalar_t *known = bound_type(bound, type.var);
    if (*known != HD_VOID && *known != value->type)
      hd_verify_fault(&g->v, loc, "'%s' of task '%s' is %s where %s is %s",
                      wanted->name, node->op, hd_scalar_name(value->type),
                      type.var->name, hd_scalar_name(*known));
    else
      *known = value->type;
  }
  int sizes = 0, packs = 0;
  for (uint32_t i = 0; i < wanted->rank; i++)
    *(wanted->shape[i]->pack ? &packs : &sizes) += 1;
  if (value->rank >= 0 && (packs ? value->rank < sizes : value->rank != sizes))
    hd_verify_fault(&g->v, loc, "'%s' of task '%s' has rank %d, not %d",
                    wanted->name, node->op, sizes, value->rank);
}

static void verify_operands(hd_graph_verifier_t *g, const hd_node_t *node) {
  const hd_task_t *task = node->task;
  bound_t bound = {
      task, HD_ARENA_ARRAY(&g->v.arena, hd_scalar_t, task->types.size + 1)};
  for (uint32_t i = 0; i < node->num_attributes; i++) {
    const hd_type_var_t *var =
        hd_task_find_type(task, node->attributes[i]->name);
    if (var && node->attributes[i]->kind == HD_ATTRIBUTE_TYPE)
      *bound_type(&bound, var) = node->attributes[i]->u.type;
  }
  for (size_t i = 0, n = 0; i < task->inputs.size; i++)
    if (!is_attribute(task->inputs.data[i])) {
      const hd_value_t *value = node->inputs[n++];
      verify_operand(g, node, &bound, task->inputs.data[i], value, node->loc);
    }
  for (size_t i = 0; i < task->outputs.size; i++)
    if (node->outputs[i])
      verify_operand(g, node, &bound, task->outputs.data[i], node->outputs[i],
                     node->outputs[i]->loc);
}

static void verify_task(hd_graph_verifier_t *g, const hd_node_t *node) {
  const hd_task_t *task = node->task;
  uint32_t inputs = 0;
  for (uint32_t i = 0; i < node->num_attributes; i++)
    verify_task_attribute(g, node, node->attributes[i]);
  for (size_t i = 0; i < task->inputs.size; i++) {
    const hd_task_value_t *value = task->inputs.data[i];
    inputs += !is_attribute(value);
    if (is_attribute(value) && !value->initial &&
        !hd_node_attribute(node, value->name))
      hd_verify_fault(&g->v, node->loc,
                      "attribute '%s' of task '%s' is missing", value->name,
                      node->op);
  }
  bool counts =
      node->num_inputs == inputs && node->num_outputs == task->outputs.size;
  if (node->num_inputs != inputs)
    fault_count(g, node, inputs == 1 ? "input" : "inputs", inputs,
                node->num_inputs);
  else if (!is_complete(node->inputs, inputs))
    hd_verify_fault(&g->v, node->loc, "a task's inputs cannot be left out");
  else if (counts)
    verify_operands(g, node);
  if (node->num_outputs != task->outputs.size)
    hd_verify_fault(&g->v, node->loc, "task '%s' gives %zu results, not %u",
                    node->op, task->outputs.size, node->num_outputs);
}

void hd_verify_node(hd_graph_verifier_t *g, const hd_node_t *node) {
  if (node->domain) {
    size_t size = strlen(node->domain);
    if (!hd_verify_is_name(node->domain) ||
        (node->domain[size - 1] >= '0' && node->domain[size - 1] <= '9') ||
        node->version < 1 || node->version > HD_MAX_OPERATOR_VERSION)
      hd_verify_fault(&g->v, node->loc, "'%s%d' is no domain with a version",
                      node->domain, node->version);
    if (node->task)
      hd_verify_fault(&g->v, node->loc, "a task with a domain");
  } else if (hd_node_is_reshape(node)) {
    verify_reshape(g, node);
  } else if (hd_node_is_loop(node)) {
    hd_verify_loop(g, node);
  } else if (!node->task || strcmp(node->task->name, node->op) != 0) {
    hd_verify_fault(&g->v, node->loc, "'%s' is no task", node->op);
  } else {
    verify_task(g, node);
  }
}
