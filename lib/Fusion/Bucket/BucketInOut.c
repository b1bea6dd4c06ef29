// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs and outputs that are one tensor, in a bucket. What is put behind the
// past of a cache is put into memory that has room for the bound:
//
//   graph main(past: f32[1, 2, p, 8], x: f32[1, 2, 1, 8]) -> present {
//     present = onnx13.Concat(past, x) { axis = 2 }
//   }
//   // p <= 8:
//   task concat_to(x_1: f32[2, 9, 8], x_2: f32[2, 1, 8], extents: i64[1])
//     -> y: f32[2, 9, 8] {
//     scatter last(i: 2, r: 1, k: 8) y[i, extents[0], k] else drop
//       = x_2[i, 0, k] onto x_1
//   }
//   graph main(past: f32[1, 2, 9, 8], x: f32[1, 2, 1, 8], extents: i64[1])
//     -> present { ... }
//
// Past their extents such tensors are 0: so they begin, and nothing else is put
// there.
#include "Fusion/Append.h"
#include "Fusion/Bucket/BucketState.h"

// The node that alone reads a value, reshapes left aside, which are entered.
// *read is what it reads. NULL where there are several, or where it goes out.
static const hd_node_t *only_reader(hd_bucketer_t *b, const hd_value_t *value,
                                    const hd_value_t **read,
                                    hd_ptr_map_t *reshapes) {
  const hd_graph_t *graph = b->graphs[0];
  for (;;) {
    const hd_node_t *reader = NULL;
    for (size_t i = 0; i < graph->outputs.size; i++)
      if (graph->outputs.data[i] == value)
        return NULL;
    for (size_t i = 0; i < graph->nodes.size; i++)
      for (uint32_t k = 0; k < graph->nodes.data[i]->num_inputs; k++)
        if (graph->nodes.data[i]->inputs[k] == value) {
          if (reader)
            return NULL;
          reader = graph->nodes.data[i];
        }
    *read = value;
    if (!reader || !hd_node_is_reshape(reader))
      return reader;
    hd_ptr_map_set(b->arena, reshapes, reader, reader);
    value = reader->outputs[0];
  }
}

static const hd_node_t *giver_of(const hd_bucketer_t *b,
                                 const hd_value_t *value) {
  const hd_node_t *giver = hd_ptr_map_get(&b->givers, value);
  while (giver && hd_node_is_reshape(giver))
    giver = hd_ptr_map_get(&b->givers, giver->inputs[0]);
  return giver;
}

static uint32_t number_of(const hd_node_t *node, const hd_value_t *input) {
  uint32_t i = 0;
  while (node->inputs[i] != input)
    i++;
  return i;
}

static bool may_append(hd_bucketer_t *b, const hd_node_t *node,
                       uint32_t input) {
  const hd_task_t *flat = hd_ptr_map_get(&b->record->flats, node);
  hd_definition_t scatter;
  return flat && flat->definitions.size == 1 && flat->outputs.size == 1 &&
         !node->schedule && !node->pin && !node->group &&
         hd_append_find(b->arena, flat->definitions.data[0],
                        flat->inputs.data[input], &scatter);
}

void hd_bucket_find_appends(hd_bucketer_t *b) {
  for (size_t i = 0; i < b->inouts.count; i++) {
    const hd_inout_t *pair = &b->inouts.pairs[i];
    const hd_value_t *in = b->graphs[0]->inputs.data[pair->input];
    const hd_value_t *out = b->graphs[0]->outputs.data[pair->output];
    const hd_value_t *read;
    hd_ptr_map_t reshapes = {0};
    const hd_node_t *reader = only_reader(b, in, &read, &reshapes);
    if (!reader || reader != giver_of(b, out) ||
        !may_append(b, reader, number_of(reader, read)))
      continue;
    hd_bucket_append_t *append = HD_ARENA_NEW(b->arena, hd_bucket_append_t);
    *append = (hd_bucket_append_t){.node = reader,
                                   .input = number_of(reader, read),
                                   .in = in,
                                   .out = out,
                                   .reshapes = reshapes};
    hd_vec_push(b->arena, &b->appends, append);
  }
}

hd_bucket_append_t *hd_bucket_append_at(const hd_bucketer_t *b,
                                        const hd_node_t *node,
                                        const hd_value_t *in,
                                        const hd_value_t *out) {
  for (size_t i = 0; i < b->appends.size; i++) {
    hd_bucket_append_t *a = b->appends.data[i];
    if (a->node == node || a->in == in || a->out == out)
      return a;
  }
  return NULL;
}

bool hd_bucket_is_left_out(const hd_bucketer_t *b, const hd_node_t *node) {
  for (size_t i = 0; i < b->appends.size; i++)
    if (hd_ptr_map_get(&b->appends.data[i]->reshapes, node))
      return true;
  return false;
}

const hd_value_t *hd_bucket_append_input(hd_bucketer_t *b,
                                         hd_bucket_append_t *append) {
  hd_value_t *own = HD_ARENA_COPY(b->arena, hd_value_t, append->in);
  own->shape = append->out->shape;
  own->rank = append->out->rank;
  append->own = own;
  return own;
}

// What comes in, in the shape of what the node gives.
static const hd_value_t *shaped_input(hd_bucket_node_t *n,
                                      const hd_bucket_append_t *append) {
  hd_bucketer_t *b = n->b;
  const hd_value_t *like = n->node->outputs[0];
  if (like == append->out)
    return append->own;
  hd_value_t *value = hd_bucket_value(b, append->own, "shaped");
  hd_node_t *node = HD_ARENA_NEW(b->arena, hd_node_t);
  const hd_value_t **ends = HD_ARENA_ARRAY(b->arena, const hd_value_t *, 2);
  value->rank = like->rank;
  value->shape = like->shape;
  ends[0] = append->own;
  ends[1] = value;
  *node = (hd_node_t){.op = "reshape",
                      .loc = n->node->loc,
                      .num_inputs = 1,
                      .inputs = &ends[0],
                      .num_outputs = 1,
                      .outputs = &ends[1]};
  hd_vec_push(b->arena, &b->made->nodes, (const hd_node_t *)node);
  return value;
}

// Whether another input than the cache has a size that varies.
static bool varies(const hd_bucket_node_t *n, uint32_t cache) {
  for (uint32_t i = 0; i < n->node->num_inputs; i++) {
    const hd_bucket_tensor_t *t = hd_bucket_tensor(n->b, n->node->inputs[i]);
    for (unsigned k = 0; i != cache && k < t->rank; k++)
      if (hd_digits_vary(&t->axes[k]))
        return true;
  }
  return false;
}

// What is past an extent of the result is not put there.
static void leave_out(hd_bucket_node_t *n, const hd_task_value_t *extents,
                      hd_definition_t *scatter) {
  hd_arena_t *arena = n->b->arena;
  const hd_bucket_tensor_t *t =
      hd_bucket_flat_tensor(n, n->flat->outputs.data[0]);
  const hd_term_t *real = NULL;
  for (unsigned i = 0; i < t->rank; i++)
    real = hd_bucket_both(
        arena, real,
        hd_bucket_real(n->b, extents, scatter->at[i], &t->axes[i]));
  if (!real)
    return;
  const hd_term_t **at = HD_ARENA_ARRAY(arena, const hd_term_t *, t->rank + 1);
  for (unsigned i = 0; i < t->rank; i++)
    at[i] = scatter->at[i]->kind != HD_TERM_SELECT
                ? scatter->at[i]
                : hd_flat_select(arena, real, scatter->at[i],
                                 hd_flat_int(arena, HD_I64, -1));
  scatter->at = at;
}

bool hd_bucket_put_append(hd_bucket_node_t *n, hd_bucket_append_t *append) {
  hd_bucketer_t *b = n->b;
  const hd_task_value_t *y = n->flat->outputs.data[0];
  n->risks = false; // What is past an extent is not gone over.
  hd_task_t *task = hd_bucket_task(n);
  hd_definition_t *scatter = HD_ARENA_NEW(b->arena, hd_definition_t);
  if (!task || !hd_append_find(b->arena, task->definitions.data[0],
                               task->inputs.data[append->input], scatter))
    return hd_bucket_refuse(b, n->node, "it does not append to a cache");
  if (varies(n, append->input))
    leave_out(n, task->inputs.data[task->inputs.size - 1], scatter);
  hd_task_value_t *cache =
      HD_ARENA_COPY(b->arena, hd_task_value_t, scatter->onto);
  cache->shape = y->shape;
  scatter->onto = cache;
  task->inputs.data[append->input] = cache;
  task->definitions.data[0] = scatter;
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(b->arena, const hd_value_t *, n->node->num_inputs + 1);
  for (uint32_t i = 0; i < n->node->num_inputs; i++)
    inputs[i] = i == append->input ? shaped_input(n, append)
                                   : hd_bucket_stands(b, n->node->inputs[i]);
  hd_bucket_put(b, n->node->op, task, n->node, inputs, n->node->outputs);
  hd_bucket_tensor_t *t = hd_bucket_flat_tensor(n, y);
  for (unsigned i = 0; i < t->rank; i++)
    t->known[i] = hd_digits_vary(&t->axes[i]);
  return true;
}
