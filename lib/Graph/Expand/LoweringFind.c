// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What operators find in the elements of their operands (hd_find_t). Where they
// are constants it is found here, and is one. Else the walk stops, whoever runs
// the segment finds it, and says how many they are: the walk that goes on is
// the same for all elements of which as many are found.
#include "Graph/Expand/Expander.h"

#include <string.h>

static hd_found_t *found_at(hd_lowering_t *l) {
  const hd_node_t *node = l->walk->graph->nodes.data[l->index];
  hd_found_t *found = hd_ptr_map_find(&l->walk->found, node);
  if (!found) {
    found = HD_ARENA_NEW(hd_lower_arena(l), hd_found_t);
    hd_ptr_map_set(hd_lower_arena(l), &l->walk->found, node, found);
  }
  return found;
}

// The first input that is not known; NULL: all are, and data has them.
static const hd_value_t *find_unknown(hd_lowering_t *l, const hd_find_t *find,
                                      const hd_host_tensor_t **data) {
  for (uint32_t i = 0; i < find->num_inputs; i++) {
    const hd_value_t *input = find->inputs[i];
    data[i] = input ? hd_lower_find_data(l, input) : NULL;
    if (input && !data[i])
      return input;
  }
  return NULL;
}

static bool find_now(hd_lowering_t *l, const hd_find_t *find,
                     const hd_host_tensor_t *const *data,
                     const hd_value_t **outputs) {
  const hd_host_tensor_t *made[HD_FIND_OUTPUTS];
  int64_t count;
  if (!hd_find_run(hd_lower_context(l), hd_lower_arena(l), find, data, made,
                   &count))
    return false;
  for (uint32_t i = 0; i < find->num_outputs; i++)
    outputs[i] = hd_lower_known(l, made[i]);
  return true;
}

bool hd_lower_find(hd_lowering_t *l, const hd_find_t *find,
                   const hd_value_t **outputs) {
  const hd_host_tensor_t *data[HD_FIND_INPUTS];
  hd_found_t *found = found_at(l);
  if (found->values) {
    memcpy(outputs, found->values, find->num_outputs * sizeof(*outputs));
    return true;
  }
  const hd_value_t *unknown = find_unknown(l, find, data);
  if (!unknown)
    return find_now(l, find, data, outputs);
  found->find = *find;
  found->find.node = l->walk->graph->nodes.data[l->index];
  l->x->wanted = unknown;
  l->x->finding = found;
  return false;
}

const hd_find_t *hd_expander_find(const hd_expander_t *x) {
  return x->finding ? &x->finding->find : NULL;
}

const hd_value_t *const *hd_expander_found(hd_expander_t *x, int64_t count) {
  hd_found_t *found = x->finding;
  const hd_find_t *find = &found->find;
  const hd_value_t *named = NULL;
  for (uint32_t i = 0; i < find->node->num_outputs && !named; i++)
    named = find->node->outputs[i];
  found->values = HD_ARENA_ARRAY(hd_expander_arena(x), const hd_value_t *,
                                 find->num_outputs + 1);
  for (uint32_t i = 0; i < find->num_outputs; i++) {
    hd_tensor_type_t type = find->outputs[i];
    for (unsigned k = 0; k < type.rank; k++)
      if (type.shape[k] < 0)
        type.shape[k] = count;
    found->values[i] = hd_segment_value(x, named ? named->name : "t", &type);
  }
  return found->values;
}

bool hd_find_run(hd_context_t *context, hd_arena_t *arena,
                 const hd_find_t *find, const hd_host_tensor_t *const *inputs,
                 const hd_host_tensor_t **outputs, int64_t *count) {
  hd_finding_t finding = {context, arena, find, inputs, outputs};
  *count = 0;
  if (!find->run(&finding))
    return false;
  for (uint32_t i = 0; i < find->num_outputs; i++)
    for (unsigned k = 0; k < find->outputs[i].rank; k++)
      if (find->outputs[i].shape[k] < 0)
        *count = outputs[i]->shape[k];
  return true;
}
