// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How each node is treated, which follows from what its task computes, and
// which values are wanted narrow, which follows from who reads them.

#include "Graph/Bind/Arithmetic.h"
#include "Graph/Precision/PrecisionState.h"
#include "IR/Graph/Loop.h"

#include <string.h>

// The types that are one float here.
bool hd_precision_is_float(hd_scalar_t type) {
  return type == HD_F32 || type == HD_F16 || type == HD_BF16;
}

hd_precision_facts_t *hd_precision_facts(hd_precision_pass_t *l,
                                         const hd_value_t *value) {
  const hd_precision_facts_t *found = hd_ptr_map_get(&l->facts, value);
  if (found)
    return found->self;
  hd_precision_facts_t *facts = HD_ARENA_NEW(l->arena, hd_precision_facts_t);
  facts->self = facts;
  hd_ptr_map_set(l->arena, &l->facts, value, facts);
  return facts;
}

// Whether a result is stored in the narrow type: what a product wants, but for
// outputs of the graph, which would be rounded for it.
bool hd_precision_stores_narrow(hd_precision_pass_t *l,
                                const hd_value_t *result) {
  const hd_precision_facts_t *facts =
      result ? hd_precision_facts(l, result) : NULL;
  return facts && l->stores_narrow && facts->wanted && !facts->output;
}

// The value that stands for a tensor of the task; NULL: an attribute does.
static const hd_value_t *operand_of(const hd_node_t *node, size_t input) {
  uint32_t tensor = 0;
  for (size_t i = 0; i < input; i++)
    tensor += node->task->inputs.data[i]->kind == HD_VALUE_INPUT;
  return node->task->inputs.data[input]->kind == HD_VALUE_INPUT
             ? node->inputs[tensor]
             : NULL;
}

// What a type is where the variables of floats that the operands bind are f32
// or, if that is not VOID, another; VOID where no operand binds it.
hd_scalar_t hd_precision_resolve(const hd_node_t *node, hd_task_type_t type,
                                 hd_scalar_t floats) {
  if (!type.var)
    return type.scalar;
  if (type.var->accumulates) {
    hd_task_type_t base = {HD_VOID, type.var->accumulates};
    hd_scalar_t of = hd_precision_resolve(node, base, floats);
    return of == HD_VOID ? of : hd_scalar_accumulator(of);
  }
  if (type.var->either[0]) {
    const hd_attribute_t *given = hd_node_attribute(node, type.var->name);
    hd_task_type_t first = {HD_VOID, type.var->either[0]};
    return given ? given->u.type : hd_precision_resolve(node, first, floats);
  }
  for (size_t i = 0; i < node->task->inputs.size; i++) {
    const hd_value_t *operand = operand_of(node, i);
    if (operand && node->task->inputs.data[i]->type.var == type.var)
      return hd_precision_is_float(operand->type) && floats != HD_VOID
                 ? floats
                 : operand->type;
  }
  return HD_VOID;
}

// Whether an operand's type is one float, and another one than asked for.
static bool is_fixed(hd_task_type_t type, hd_scalar_t floats) {
  return !type.var && floats != HD_VOID && type.scalar != floats &&
         hd_precision_is_float(type.scalar);
}

// Whether a node may compute in a type: every variable takes it, and every
// result has a type that follows from the operands'.
bool hd_precision_takes(const hd_node_t *node, hd_scalar_t floats) {
  const hd_task_t *task = node->task;
  for (size_t i = 0; i < task->inputs.size; i++) {
    hd_task_type_t type = task->inputs.data[i]->type;
    hd_scalar_t now = hd_precision_resolve(node, type, floats);
    if (operand_of(node, i) && (now == HD_VOID || is_fixed(type, floats) ||
                                !(hd_task_type_scalars(type) >> now & 1)))
      return false;
  }
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (hd_precision_resolve(node, task->outputs.data[i]->type, floats) ==
        HD_VOID)
      return false;
  return true;
}

static bool has_floats(const hd_node_t *node) {
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (hd_precision_is_float(node->inputs[i]->type))
      return true;
  return false;
}

const char *hd_precision_choice(const hd_task_t *task) {
  const hd_type_var_t *var = task->outputs.data[0]->type.var;
  return var && var->either[0] ? var->name : NULL;
}

// A type that the node gives, which its operands do not.
static const hd_attribute_t *given_type(const hd_node_t *node) {
  const char *choice = hd_precision_choice(node->task);
  for (uint32_t i = 0; i < node->num_attributes; i++)
    if (node->attributes[i]->kind == HD_ATTRIBUTE_TYPE &&
        (!choice || strcmp(node->attributes[i]->name, choice) != 0))
      return node->attributes[i];
  return NULL;
}

static const char *label_of(const hd_node_t *node) {
  return node->label ? node->label : node->op;
}

static bool of_constants(hd_precision_pass_t *l, const hd_node_t *node) {
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (!hd_precision_facts(l, node->inputs[i])->constant)
      return false;
  return true;
}

static hd_treatment_t treat_product(hd_precision_pass_t *l,
                                    const hd_node_t *node) {
  if (l->narrow == HD_VOID || of_constants(l, node) ||
      !hd_precision_takes(node, l->narrow))
    return HD_TREAT_WIDE;
  return hd_step(&l->module->context->steps, HD_STEP_PRECISION,
                 "%s for %s '%s'", hd_precision_name(l->precision), node->op,
                 label_of(node))
             ? HD_TREAT_PRODUCT
             : HD_TREAT_KEEP;
}

static hd_treatment_t treat(hd_precision_pass_t *l, const hd_node_t *node) {
  if (node->schedule || !has_floats(node) || hd_node_is_loop(node))
    return HD_TREAT_KEEP;
  if (!node->task)
    return HD_TREAT_MOVE;
  const hd_attribute_t *type = given_type(node);
  if (type && strcmp(node->op, "cast") == 0 &&
      hd_precision_is_float(type->u.type))
    return HD_TREAT_ALIAS;
  if (type || !hd_precision_takes(node, HD_F32))
    return HD_TREAT_KEEP;
  switch (hd_task_arithmetic(node->task)) {
  case HD_ARITHMETIC_NONE:
    return l->narrow == HD_VOID || hd_precision_takes(node, l->narrow)
               ? HD_TREAT_MOVE
               : HD_TREAT_WIDE;
  case HD_ARITHMETIC_PRODUCT:
    return treat_product(l, node);
  case HD_ARITHMETIC_OTHER:
    return HD_TREAT_WIDE;
  }
  return HD_TREAT_KEEP;
}

// Forward: what depends on constants alone, and how each node is treated.
// Backward: which values are wanted narrow.
bool hd_precision_plan(hd_precision_pass_t *l) {
  const hd_graph_t *graph = l->from;
  hd_steps_t *steps = &l->module->context->steps;
  for (size_t i = 0; i < graph->constants.size; i++)
    hd_precision_facts(l, graph->constants.data[i])->constant = true;
  for (size_t i = 0; i < graph->outputs.size; i++)
    hd_precision_facts(l, graph->outputs.data[i])->output = true;
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    if (node->domain)
      return hd_error(&l->module->context->diags, node->loc, HD_E1104,
                      label_of(node),
                      "--lower-precision takes tasks; --expand makes them");
    l->treatments[i] = treat(l, node);
    l->nodes[i] = l->treatments[i] == HD_TREAT_PRODUCT
                      ? hd_step_made(steps, l->module, node)
                      : node;
    for (uint32_t k = 0; k < node->num_outputs; k++)
      if (node->outputs[k])
        hd_precision_facts(l, node->outputs[k])->constant =
            of_constants(l, node);
  }
  for (size_t i = graph->nodes.size; i-- > 0 && l->narrow != HD_VOID;) {
    const hd_node_t *node = graph->nodes.data[i];
    hd_treatment_t treatment = l->treatments[i];
    bool wanted = treatment == HD_TREAT_PRODUCT;
    for (uint32_t k = 0; k < node->num_outputs; k++)
      wanted |= (treatment == HD_TREAT_MOVE || treatment == HD_TREAT_ALIAS) &&
                hd_precision_stores_narrow(l, node->outputs[k]);
    for (uint32_t k = 0; wanted && k < node->num_inputs; k++)
      if (hd_precision_is_float(node->inputs[k]->type))
        hd_precision_facts(l, node->inputs[k])->wanted = true;
  }
  return true;
}
