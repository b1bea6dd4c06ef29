// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A walk goes through the graph, segment after segment, with the inputs' types
// in hand. A graph that is one segment, whatever is in its inputs, is walked
// once for each set of types, and what comes of it is kept. Another is run:
// by what is known of it (Trail.h), or, on `ref` and where somebody watches,
// while it is walked; its values live until that ends.

#include "Runtime/Saved.h"
#include "Runtime/Trail.h"

#include "Graph/Rewrite/Rewrite.h"

#include <stdlib.h>
#include <string.h>

hd_turn_t *hd_model_begin_turn(hd_model_t *m, const hd_tensor_type_t *inputs) {
  hd_turn_t *turn = calloc(1, sizeof(*turn));
  if (!turn)
    hd_budget_exhausted(&hd_model_context(m)->budget, HD_EXHAUSTED_MEMORY);
  hd_model_end_turn(m, m->running); // Of a walk that unwound.
  m->running = turn;
  hd_store_init(&turn->values, m->module, hd_model_context(m), m->device);
  turn->module = hd_module_fork(m->module);
  size_t size = m->graph->inputs.size;
  turn->inputs =
      HD_ARENA_ARRAY(&turn->values.arena, hd_tensor_type_t, size + 1);
  for (size_t i = 0; i < size; i++)
    turn->inputs[i] = inputs[i];
  return turn;
}

// What a session has of an input is on its device alone.
static bool has_data(const hd_host_tensor_t *data) {
  return data->data || data->count == 0;
}

static hd_turn_t *begin(hd_model_t *m, const hd_tensor_type_t *inputs,
                        const hd_host_tensor_t *data) {
  hd_turn_t *turn = hd_model_begin_turn(m, inputs);
  size_t size = m->graph->inputs.size;
  const hd_host_tensor_t **known =
      HD_ARENA_ARRAY(&turn->values.arena, const hd_host_tensor_t *, size + 1);
  for (size_t i = 0; i < size; i++)
    known[i] = data && has_data(&data[i]) ? &data[i] : NULL;
  // A trail notes what is looked at.
  turn->expander =
      hd_expander_create(turn->module, &turn->module->arena, m->graph,
                         turn->inputs, hd_trail_may(m) ? NULL : known);
  for (size_t i = 0; data && i < size; i++)
    hd_store_find(&turn->values, hd_expander_input(turn->expander, i))->data =
        known[i];
  return turn;
}

// What the passes over graphs make of a segment; NULL after an error. Rewrites
// leave no trace of what they replace: who watches nodes sees them as they are.
const hd_graph_t *hd_model_transform(hd_model_t *m, hd_turn_t *turn,
                                     const hd_graph_t *graph,
                                     hd_ptr_map_t *held) {
  hd_context_t *context = hd_model_context(m);
  bool watched = m->options.watch;
  hd_rewrite_options_t options =
      context->rewrites ? *context->rewrites : hd_rewrite_defaults;
  options.precision = m->options.precision;
  size_t part = hd_times_enter(&context->times, "rewrite");
  bool ok = m->options.unrewritten || watched ||
            hd_graph_rewrite(turn->module, graph, &options, &graph,
                             context->rewrite_stats);
  hd_times_leave(&context->times, part);
  part = hd_times_enter(&context->times, "lower-precision");
  if (ok)
    graph = hd_graph_lower_precision(turn->module, graph, m->options.precision,
                                     watched ? held : NULL);
  hd_times_leave(&context->times, part);
  return ok ? graph : NULL;
}

// Shows what the nodes of the expanded graph have come to.
static bool show(hd_model_t *m, hd_turn_t *run, const hd_graph_t *tasks,
                 const hd_ptr_map_t *held) {
  for (size_t i = 0; i < tasks->nodes.size; i++) {
    const hd_node_t *node = tasks->nodes.data[i];
    for (uint32_t k = 0; k < node->num_outputs; k++) {
      const hd_value_t *value = node->outputs[k];
      const hd_value_t *stands = value ? hd_ptr_map_get(held, value) : NULL;
      const hd_host_tensor_t *data =
          value ? hd_model_fetch(m, run, stands ? stands : value) : NULL;
      if (value && !data)
        return false;
      if (data)
        m->options.watch(m->options.watch_argument, node, k, data);
    }
  }
  return true;
}

// Expands the next segment and transforms it: *tasks as it was expanded, and
// turn->last; held: what stands for its values.
static hd_expand_state_t expand(hd_model_t *m, hd_turn_t *turn,
                                const hd_graph_t **tasks, hd_ptr_map_t *held) {
  uint64_t start = hd_clock_ns();
  size_t part = hd_times_enter(&hd_model_context(m)->times, "expand");
  hd_expand_state_t state = hd_expander_run(turn->expander, &turn->last);
  hd_times_leave(&hd_model_context(m)->times, part);
  *tasks = turn->last;
  if (state != HD_EXPAND_FAILED)
    turn->last = hd_model_transform(m, turn, *tasks, held);
  m->stats.expand_ms += hd_ms_since(start);
  return turn->last ? state : HD_EXPAND_FAILED;
}

// Whether what a first segment came to may be kept for inputs of these types.
static bool is_whole(const hd_model_t *m, const hd_turn_t *turn,
                     hd_expand_state_t state) {
  return state == HD_EXPAND_DONE && m->device && turn->last->nodes.size > 0 &&
         !hd_model_counts_steps(m) && !m->options.watch &&
         !hd_expander_looked(turn->expander);
}

static bool fail(const hd_model_t *m, const char *text) {
  return hd_error(&hd_model_context(m)->diags, m->graph->loc, HD_E1104,
                  m->graph->name, text);
}

// Whether what is not one executable for these types may run.
static bool may_run_parts(const hd_model_t *m, const hd_host_tensor_t *data) {
  if (!data && m->graph->inputs.size)
    return fail(m, "shapes or branches depend on what is in the inputs, and "
                   "types and shapes alone are known here");
  return !m->options.inouts.count ||
         fail(m, m->device ? "an input that is an output takes one executable"
                           : "no input is an output on the evaluator");
}

// What is found in values is on the host, and comes into segments like inputs.
static bool find_values(hd_model_t *m, hd_turn_t *turn, const hd_find_t *find) {
  const hd_host_tensor_t *inputs[HD_FIND_INPUTS], *outputs[HD_FIND_OUTPUTS];
  int64_t count;
  for (uint32_t i = 0; i < find->num_inputs; i++) {
    const hd_value_t *input = find->inputs[i];
    inputs[i] = input ? hd_model_fetch(m, turn, input) : NULL;
    if (input && !inputs[i])
      return false;
  }
  if (!hd_find_run(hd_model_context(m), &turn->values.arena, find, inputs,
                   outputs, &count))
    return false;
  const hd_value_t *const *values = hd_expander_found(turn->expander, count);
  for (uint32_t i = 0; i < find->num_outputs; i++)
    hd_store_find(&turn->values, values[i])->data = outputs[i];
  return true;
}

// Has the walk know what it stopped for.
static bool give_wanted(hd_model_t *m, hd_turn_t *turn) {
  const hd_find_t *find = hd_expander_find(turn->expander);
  if (find)
    return find_values(m, turn, find);
  const hd_value_t *wanted = hd_expander_wanted(turn->expander);
  const hd_host_tensor_t *data = hd_model_fetch(m, turn, wanted);
  if (data)
    hd_expander_give(turn->expander, wanted, data);
  return data != NULL;
}

static bool run_segments(hd_model_t *m, hd_turn_t *turn,
                         const hd_host_tensor_t *data, bool *kept,
                         bool *looks) {
  for (bool first = true;; first = false) {
    const hd_graph_t *tasks;
    hd_ptr_map_t held = {0};
    hd_expand_state_t state = expand(m, turn, &tasks, &held);
    if (state == HD_EXPAND_FAILED)
      return false;
    bool whole = first && is_whole(m, turn, state);
    if (!whole && !may_run_parts(m, data))
      return false;
    if (first && state == HD_EXPAND_MORE && hd_trail_may(m))
      return *looks = true;
    if (turn->last->nodes.size > 0 && !hd_model_run_segment(m, turn, whole))
      return false;
    *kept = whole && turn->segment.slots;
    if (m->options.watch && !show(m, turn, tasks, &held))
      return false;
    if (state == HD_EXPAND_DONE)
      return true;
    if (!give_wanted(m, turn))
      return false;
  }
}

static bool take_outputs(hd_model_t *m, hd_context_t *caller, hd_turn_t *turn,
                         hd_host_tensor_t *outputs) {
  size_t count = turn->last->outputs.size;
  for (size_t i = 0; i < count; i++)
    if (!hd_model_fetch(m, turn, turn->last->outputs.data[i]))
      return false;
  // Nothing here unwinds: the caller has no hold on them yet.
  for (size_t i = 0; i < count; i++) {
    const hd_value_t *value = turn->last->outputs.data[i];
    const hd_host_tensor_t *data = hd_model_fetch(m, turn, value);
    if (!hd_host_tensor_init(&outputs[i], &hd_model_context(m)->diags,
                             &caller->budget, value->name, data->type,
                             data->shape, data->rank))
      return false;
    memcpy(outputs[i].data, data->data, data->bytes);
  }
  return true;
}

// By what the model's file has; *loaded: whether it has one.
static bool load_turn(hd_model_t *m, hd_turn_t *turn, bool *loaded) {
  if (!m->module->artifact || !m->device || m->options.anew || m->options.watch)
    return true;
  uint64_t start = hd_clock_ns();
  size_t part = hd_times_enter(&hd_model_context(m)->times, "load");
  bool ok = hd_saved_take(m, turn, loaded);
  hd_times_leave(&hd_model_context(m)->times, part);
  if (*loaded)
    m->stats.load_ms += hd_ms_since(start);
  return ok;
}

// Makes the executable, by what the model's file has or by walking; *kept:
// whether it is one; *looks: there is none, and runs go by a trail.
static bool make_turn(hd_model_t *m, hd_turn_t *turn,
                      const hd_host_tensor_t *data, bool *loaded, bool *kept,
                      bool *looks) {
  bool ok = load_turn(m, turn, loaded);
  if (!ok || *loaded)
    return *kept = ok;
  return hd_artifact_check_weights(m->module->artifact, UINT64_MAX) &&
         run_segments(m, turn, data, kept, looks);
}

// Makes the executable of a bucket, likewise.
static bool add_bucket(hd_model_t *m, const hd_found_bucket_t *found,
                       bool *loaded, bool *kept) {
  hd_turn_t *turn = m->running;
  hd_ptr_map_t held = {0};
  hd_turn_set_bucket(turn, found);
  *kept = true;
  bool ok = load_turn(m, turn, loaded);
  if (!ok || *loaded)
    return ok;
  if (!hd_artifact_check_weights(m->module->artifact, UINT64_MAX))
    return false;
  turn->last = hd_model_transform(m, turn, found->bucket->graph, &held);
  return turn->last && hd_model_run_segment(m, turn, true);
}

// Walks for these types alone; *looks as above.
static bool walk_exactly(hd_model_t *m, hd_context_t *caller, hd_turn_t *walked,
                         const hd_found_bucket_t *found,
                         const hd_host_tensor_t *data,
                         hd_host_tensor_t *outputs, hd_turn_t **turn,
                         bool *looks) {
  bool kept = false, loaded = false;
  if (m->device) {
    m->device->reclaim = hd_model_reclaim;
    m->device->reclaim_argument = m;
  }
  bool ok = found ? add_bucket(m, found, &loaded, &kept)
                  : make_turn(m, walked, data, &loaded, &kept, looks);
  if (m->device)
    m->device->reclaim = NULL;
  // Constants are there for whatever stream reads them.
  ok = ok && (!kept || m->device->ops->wait(m->device, NULL));
  if (ok && kept) {
    hd_model_keep(m, walked, loaded);
    *turn = walked;
    return true;
  }
  ok = ok && (*looks || !outputs || take_outputs(m, caller, walked, outputs));
  hd_model_end_turn(m, walked);
  m->running = NULL;
  return ok;
}

bool hd_model_walk(hd_model_t *m, hd_context_t *caller,
                   const hd_tensor_type_t *inputs, const hd_host_tensor_t *data,
                   hd_host_tensor_t *outputs, hd_turn_t **turn) {
  m->stats = (hd_session_stats_t){0};
  *turn = NULL;
  if (outputs && hd_trail_knows(m, inputs))
    return hd_trail_run(m, caller, inputs, data, outputs);
  hd_found_bucket_t found;
  size_t part = hd_times_enter(&hd_model_context(m)->times, "bucket");
  bool bounded = hd_model_find_bucket(m, inputs, &found);
  hd_times_leave(&hd_model_context(m)->times, part);
  if (bounded && found.turn) {
    *turn = found.turn;
    return true;
  }
  bool looks = false;
  if (!walk_exactly(m, caller,
                    bounded ? hd_model_begin_turn(m, found.bounds)
                            : begin(m, inputs, data),
                    bounded ? &found : NULL, data, outputs, turn, &looks))
    return false;
  if (!looks)
    return true;
  if (hd_trail_run(m, caller, inputs, data, outputs))
    return true;
  // Where values cannot be between pieces, each run walks.
  return m->trail->unfit && walk_exactly(m, caller, begin(m, inputs, data),
                                         NULL, data, outputs, turn, &looks);
}
