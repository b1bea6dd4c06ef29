// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Fusion/Shaped.h"

#include "Schedule/Schedule.h"
#include "Schedule/Terms/Terms.h"

// A value of the same elements in the tensor's shape.
static const hd_value_t *shaped_like(hd_arena_t *arena, hd_key_map_t *names,
                                     const hd_value_t *value,
                                     const hd_task_value_t *tensor) {
  int64_t shape[HD_MAX_RANK];
  for (uint32_t i = 0; i < tensor->rank; i++)
    shape[i] = hd_flat_size(tensor, i);
  const char *name = hd_arena_printf(arena, "%s_split", value->name);
  return hd_value_make(arena, hd_name_unique(arena, names, name), value->type,
                       shape, tensor->rank, value->loc);
}

void hd_put_shaped(hd_arena_t *arena, hd_key_map_t *names,
                   const hd_node_t *node, hd_put_node_fn_t put,
                   void *argument) {
  const hd_task_t *flat = node->task;
  hd_node_t *made = HD_ARENA_COPY(arena, hd_node_t, node);
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(arena, const hd_value_t *, node->num_inputs + 1);
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(arena, const hd_value_t *, node->num_outputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    inputs[i] = node->inputs[i];
    if (hd_scheduled_has_shape(inputs[i], flat->inputs.data[i]))
      continue;
    inputs[i] = shaped_like(arena, names, inputs[i], flat->inputs.data[i]);
    put(argument, hd_node_between(arena, "reshape", NULL, node->inputs[i],
                                  inputs[i], NULL, node->loc));
  }
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    outputs[i] = node->outputs[i];
    if (outputs[i] &&
        !hd_scheduled_has_shape(outputs[i], flat->outputs.data[i]))
      outputs[i] = shaped_like(arena, names, outputs[i], flat->outputs.data[i]);
  }
  made->inputs = inputs;
  made->outputs = outputs;
  put(argument, made);
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (outputs[i] != node->outputs[i])
      put(argument, hd_node_between(arena, "reshape", NULL, outputs[i],
                                    node->outputs[i], NULL, node->loc));
}
