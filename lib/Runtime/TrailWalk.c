// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A walk to where looks lead. Nothing is run: what they gave, or might have
// given, is enough. Values are numbered on the way, so that those of two walks
// are known by each other.
#include "Runtime/Trail.h"

#include <string.h>

typedef struct walker {
  hd_arena_t *arena;
  hd_stop_t *stop;
} walker_t;

static void add_number(walker_t *w, const hd_value_t *value) {
  hd_ptr_map_set(w->arena, &w->stop->numbers, value,
                 (const void *)(uintptr_t)++w->stop->count);
  w->stop->packed |= hd_value_is_packed(value);
}

size_t hd_stop_number(const hd_stop_t *stop, const hd_value_t *value) {
  return (size_t)(uintptr_t)hd_ptr_map_get(&stop->numbers, value);
}

// The segment with what its nodes read, and what they give of what comes out.
static void take_segment(walker_t *w, const hd_graph_t *segment) {
  hd_stop_t *stop = w->stop;
  hd_graph_t *graph = HD_ARENA_COPY(w->arena, hd_graph_t, segment);
  hd_ptr_map_t read = {0};
  memset(&graph->inputs, 0, sizeof(graph->inputs));
  memset(&graph->outputs, 0, sizeof(graph->outputs));
  memset(&graph->constants, 0, sizeof(graph->constants));
  stop->inputs.size = 0;
  for (size_t i = 0; i < segment->nodes.size; i++)
    for (uint32_t k = 0; k < segment->nodes.data[i]->num_inputs; k++)
      if (segment->nodes.data[i]->inputs[k])
        hd_ptr_map_set(w->arena, &read, segment->nodes.data[i]->inputs[k],
                       segment);
  for (size_t i = 0; i < segment->inputs.size; i++) {
    const hd_value_t *value = segment->inputs.data[i];
    if (!hd_ptr_map_get(&read, value))
      continue;
    hd_vec_push(w->arena, &graph->inputs, value);
    hd_vec_push(w->arena, &stop->inputs, hd_stop_number(stop, value) - 1);
  }
  for (size_t i = 0; i < segment->constants.size; i++)
    if (hd_ptr_map_get(&read, segment->constants.data[i]))
      hd_vec_push(w->arena, &graph->constants, segment->constants.data[i]);
  for (size_t i = 0; i < segment->outputs.size; i++) {
    const hd_value_t *value = segment->outputs.data[i];
    if (value->constant || hd_stop_number(stop, value))
      continue;
    hd_vec_push(w->arena, &graph->outputs, value);
    add_number(w, value);
  }
  stop->graph = graph;
  stop->results = segment->outputs.data;
}

static bool has_shape(const hd_value_t *value, const hd_host_tensor_t *data) {
  bool same = value->rank == (int)data->rank && value->type == data->type;
  for (int i = 0; same && i < value->rank; i++)
    same = value->shape[i]->u.i == data->shape[i];
  return same;
}

// Has the walk know what the look gave: that number, if it is one.
static bool give(walker_t *w, const hd_look_t *look, int64_t number) {
  hd_expander_t *x = w->stop->x;
  const hd_find_t *find = hd_expander_find(x);
  const hd_value_t *wanted = hd_expander_wanted(x);
  if (look->finds != (find != NULL) ||
      hd_stop_number(w->stop, wanted) != look->wanted + 1)
    return false;
  if (find) {
    const hd_value_t *const *values = hd_expander_found(x, number);
    for (uint32_t i = 0; i < find->num_outputs; i++)
      add_number(w, values[i]);
    return true;
  }
  if (!has_shape(wanted, look->data))
    return false;
  const hd_host_tensor_t *data = look->data;
  hd_host_tensor_t *own =
      hd_host_tensor_make(w->arena, data->type, data->shape, data->rank);
  memcpy(own->data, data->data, data->bytes);
  if (look->is_number)
    hd_host_tensor_set_int(own, 0, number);
  hd_expander_give(x, wanted, own);
  return true;
}

bool hd_trail_walk(const hd_model_t *m, hd_module_t *module,
                   const hd_tensor_type_t *types, const hd_looks_t *looks,
                   const int64_t *numbers, const hd_expander_t *leader,
                   hd_stop_t *stop) {
  walker_t w = {&module->arena, stop};
  *stop = (hd_stop_t){0};
  stop->x = hd_expander_create(module, w.arena, m->graph, types, NULL);
  hd_expander_follow(stop->x, leader);
  for (size_t i = 0; i < m->graph->inputs.size; i++)
    add_number(&w, hd_expander_input(stop->x, i));
  for (size_t i = 0;; i++) {
    const hd_graph_t *segment;
    hd_expand_state_t state = hd_expander_run(stop->x, &segment);
    if (state == HD_EXPAND_FAILED)
      return false;
    take_segment(&w, segment);
    stop->done = state == HD_EXPAND_DONE;
    if (i == looks->size)
      return true;
    if (stop->done || !give(&w, &looks->data[i],
                            numbers ? numbers[i] : looks->data[i].number))
      return false;
  }
}
