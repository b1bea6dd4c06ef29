// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The type that is written of a node's result says what the node leaves open:
//
//   y: f16[4] = cast(x)           // { U = f16 }
//   z: f32[8, 8] = matmul(a, b)   // of f16: { R = f32 }
#include "IR/Text/GraphParser.h"

static bool is_operand(const hd_task_t *task, const hd_type_var_t *var) {
  for (size_t i = 0; i < task->inputs.size; i++)
    if (task->inputs.data[i]->kind == HD_VALUE_INPUT &&
        task->inputs.data[i]->type.var == var)
      return true;
  return false;
}

// The type that an operand gives a variable; VOID: none does.
static hd_scalar_t operand_type(const hd_node_t *node,
                                const hd_type_var_t *var) {
  uint32_t n = 0;
  for (size_t i = 0; i < node->task->inputs.size; i++) {
    const hd_task_value_t *input = node->task->inputs.data[i];
    if (input->kind != HD_VALUE_INPUT)
      continue;
    if (n < node->num_inputs && node->inputs[n] && input->type.var == var)
      return node->inputs[n]->type;
    n++;
  }
  return HD_VOID;
}

// Whether a result's type says something: what a variable is that operands
// leave open, or which of two it is, where that is not the first.
static bool says_type(const hd_node_t *node, const hd_task_value_t *output,
                      const hd_value_t *value) {
  const hd_type_var_t *var = output->type.var;
  if (!value || value->type == HD_VOID || !var || var->accumulates ||
      hd_node_attribute(node, var->name) || is_operand(node->task, var))
    return false;
  if (!var->either[0])
    return true;
  hd_scalar_t first = operand_type(node, var->either[0]);
  return first != HD_VOID && first != value->type;
}

void hd_settle_node_types(hd_arena_t *arena, hd_node_t *node) {
  size_t outputs = node->task ? node->task->outputs.size : 0;
  for (size_t i = 0; i < outputs && i < node->num_outputs; i++) {
    const hd_task_value_t *output = node->task->outputs.data[i];
    if (!says_type(node, output, node->outputs[i]))
      continue;
    const hd_attribute_t **attributes =
        HD_ARENA_ARRAY(arena, const hd_attribute_t *, node->num_attributes + 1);
    hd_attribute_t *type = HD_ARENA_NEW(arena, hd_attribute_t);
    *type = (hd_attribute_t){.name = output->type.var->name,
                             .kind = HD_ATTRIBUTE_TYPE,
                             .loc = node->outputs[i]->loc,
                             .u.type = node->outputs[i]->type};
    for (uint32_t k = 0; k < node->num_attributes; k++)
      attributes[k] = node->attributes[k];
    attributes[node->num_attributes++] = type;
    node->attributes = attributes;
  }
}
