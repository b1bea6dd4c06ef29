// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A walk goes through the graph, segment after segment, with the inputs' types
// in hand. A graph that is one segment, whatever is in its inputs, is walked
// once for each set of types, and what comes of it is kept. Another is run
// while it is walked: its values live on the device (or, for `ref`, in the
// host's memory) until that ends.

#include "Runtime/Saved.h"

#include "Fusion/Fuse.h"
#include "Graph/Rewrite/Rewrite.h"

#include <stdlib.h>
#include <string.h>

static bool share(void *model, const hd_value_t *constant) {
  hd_model_t *m = model;
  hd_ptr_map_set(&m->constants.arena, &m->shared, constant, constant);
  return true;
}

// Templates are chosen for the GPU that the launches are for.
static void settle_schedules(hd_model_t *m) {
  const hd_schedule_options_t *given = hd_model_context(m)->schedules;
  if (given)
    m->schedules = *given;
  m->schedules.module = m->module;
  m->schedules.explain = m->options.explain;
  if (m->device)
    hd_device_machine(m->device, &m->schedules.machine);
  m->schedules.simulated = m->device && !m->device->ops->replay;
}

static void destroy_model(void *model) { hd_model_destroy(model); }

hd_model_t *hd_model_create(hd_module_t *module, const hd_graph_t *graph,
                            hd_device_t *device,
                            const hd_model_options_t *options) {
  hd_model_t *m = calloc(1, sizeof(*m));
  if (!m)
    hd_budget_exhausted(&module->context->budget, HD_EXHAUSTED_MEMORY);
  m->module = module;
  m->graph = graph;
  m->device = device;
  m->options = *options;
  if (!m->options.kept_bytes)
    m->options.kept_bytes = HD_MODEL_KEPT_BYTES;
  pthread_mutex_init(&m->own_world, NULL);
  pthread_mutex_init(&m->lock, NULL);
  m->world = options->world ? options->world : &m->own_world;
  settle_schedules(m);
  hd_store_init(&m->constants, module, module->context, device);
  m->numbering =
      (hd_numbering_t){.arena = &m->constants.arena, .shared = &m->shared};
  hd_cleanup_t cleanup;
  hd_budget_defer(&module->context->budget, &cleanup, destroy_model, m);
  m->limits =
      HD_ARENA_ARRAY(&m->constants.arena, int64_t, options->num_buckets + 1);
  hd_graph_walk_constants(graph, share, m);
  hd_budget_keep(&module->context->budget, &cleanup);
  return m;
}

static void end_turn(hd_model_t *m, hd_turn_t *turn) {
  if (!turn)
    return;
  for (size_t i = 0; i < turn->prepared.size; i++) {
    hd_prepared_t *prepared = turn->prepared.data[i];
    if (--prepared->users == 0 && prepared->slot.address) {
      m->device->ops->free(m->device, prepared->slot.address);
      prepared->slot = (hd_slot_t){0};
    }
  }
  hd_model_segment_end(&turn->segment);
  hd_store_fini(&turn->values);
  free(turn);
}

void hd_model_destroy(hd_model_t *m) {
  if (!m)
    return;
  while (m->kept) {
    hd_turn_t *turn = m->kept;
    m->kept = turn->next;
    end_turn(m, turn);
  }
  end_turn(m, m->running);
  hd_store_fini(&m->constants);
  pthread_mutex_destroy(&m->lock);
  pthread_mutex_destroy(&m->own_world);
  free(m);
}

hd_model_counts_t hd_model_counts(hd_model_t *m) {
  pthread_mutex_lock(&m->lock);
  hd_model_counts_t counts = {.compiled = m->compiled, .loaded = m->loaded};
  for (const hd_turn_t *turn = m->kept; turn; turn = turn->next)
    counts.kept++;
  pthread_mutex_unlock(&m->lock);
  return counts;
}

// --- The world ---

// What is left of a bound on time and of an interruption is the caller's.
static void begin_call(hd_context_t *context, const hd_context_t *caller) {
  hd_diagnostics_clear(&context->diags);
  context->budget.deadline_ns = caller->budget.deadline_ns;
  context->budget.interrupted = caller->budget.interrupted;
}

void hd_model_enter(hd_model_t *m, hd_context_t *caller,
                    void (*body)(void *argument), void *argument) {
  hd_context_t *context = hd_model_context(m);
  pthread_mutex_lock(m->world);
  if (context != caller)
    begin_call(context, caller);
  hd_exhausted_t what = hd_budget_guard(&context->budget, body, argument);
  if (context->schedules == &m->schedules) // It unwound.
    context->schedules = NULL;
  m->prepares = false;
  if (m->device) // Likewise.
    m->device->reclaim = NULL;
  if (context != caller) {
    if (context->diags.first)
      hd_diagnostics_see_sources(&caller->diags, &context->diags);
    hd_diagnostics_take(&caller->diags, &context->diags);
    hd_diagnostics_clear(&context->diags);
  }
  pthread_mutex_unlock(m->world);
  if (what != HD_EXHAUSTED_NOTHING)
    hd_budget_exhausted(&caller->budget, what);
}

// --- What is kept ---

hd_turn_t *hd_model_find(hd_model_t *m, const hd_tensor_type_t *inputs,
                         bool bounds) {
  pthread_mutex_lock(&m->lock);
  hd_turn_t *turn = m->kept;
  while (turn && !(bounds ? hd_turn_has_bounds(m, turn, inputs)
                          : hd_turn_is_for(m, turn, inputs)))
    turn = turn->next;
  if (turn) {
    turn->users++;
    turn->used = ++m->clock;
  }
  pthread_mutex_unlock(&m->lock);
  return turn;
}

void hd_model_release(hd_model_t *m, hd_turn_t *turn) {
  pthread_mutex_lock(&m->lock);
  turn->users--;
  pthread_mutex_unlock(&m->lock);
}

// The one without users that was used least recently, where all together are
// too many; taken out.
static hd_turn_t *take_oldest(hd_model_t *m, size_t most) {
  hd_turn_t **oldest = NULL;
  size_t bytes = 0;
  for (hd_turn_t **at = &m->kept; *at; at = &(*at)->next) {
    bytes += (*at)->bytes;
    if (!(*at)->users && (!oldest || (*at)->used < (*oldest)->used))
      oldest = at;
  }
  if (!oldest || bytes <= most)
    return NULL;
  hd_turn_t *turn = *oldest;
  *oldest = turn->next;
  return turn;
}

bool hd_model_shrink(hd_model_t *m, size_t bytes) {
  bool any = false;
  for (;; any = true) {
    pthread_mutex_lock(&m->lock);
    hd_turn_t *turn = take_oldest(m, bytes);
    pthread_mutex_unlock(&m->lock);
    if (!turn)
      return any;
    end_turn(m, turn);
  }
}

static bool reclaim(void *model) { return hd_model_shrink(model, 0); }

static size_t bytes_of(const hd_turn_t *turn) {
  const hd_program_t *program = &turn->segment.program;
  size_t bytes = hd_arena_bytes(&turn->segment.made->arena) +
                 hd_arena_bytes(&program->module->arena);
  for (size_t i = 0; i < program->variants.size; i++)
    bytes += program->kernels[i]->code.size;
  return bytes;
}

// Others see it from here on.
static void keep(hd_model_t *m, hd_turn_t *turn, bool loaded) {
  turn->bytes = bytes_of(turn);
  turn->users = 1;
  m->running = NULL;
  pthread_mutex_lock(&m->lock);
  turn->used = ++m->clock;
  turn->next = m->kept;
  m->kept = turn;
  *(loaded ? &m->loaded : &m->compiled) += 1;
  pthread_mutex_unlock(&m->lock);
  hd_model_shrink(m, m->options.kept_bytes);
}

// --- A walk ---

static hd_turn_t *begin_turn(hd_model_t *m, const hd_tensor_type_t *inputs) {
  hd_turn_t *turn = calloc(1, sizeof(*turn));
  if (!turn)
    hd_budget_exhausted(&hd_model_context(m)->budget, HD_EXHAUSTED_MEMORY);
  end_turn(m, m->running); // Of a walk that unwound.
  m->running = turn;
  hd_store_init(&turn->values, m->module, hd_model_context(m), m->device);
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
  hd_turn_t *turn = begin_turn(m, inputs);
  size_t size = m->graph->inputs.size;
  const hd_host_tensor_t **known =
      HD_ARENA_ARRAY(&turn->values.arena, const hd_host_tensor_t *, size + 1);
  for (size_t i = 0; i < size; i++)
    known[i] = data && has_data(&data[i]) ? &data[i] : NULL;
  turn->expander = hd_expander_create(m->module, &m->module->arena, m->graph,
                                      turn->inputs, known);
  for (size_t i = 0; data && i < size; i++)
    hd_store_find(&turn->values, hd_expander_input(turn->expander, i))->data =
        known[i];
  return turn;
}

// What the passes over graphs make of a segment; NULL after an error. Rewrites
// leave no trace of what they replace: who watches nodes sees them as they are.
static const hd_graph_t *transform(hd_model_t *m, const hd_graph_t *graph,
                                   hd_ptr_map_t *held) {
  hd_context_t *context = hd_model_context(m);
  bool watched = m->options.watch;
  hd_rewrite_options_t options =
      context->rewrites ? *context->rewrites : hd_rewrite_defaults;
  options.precision = m->options.precision;
  size_t part = hd_times_enter(&context->times, "rewrite");
  bool ok = m->options.unrewritten || watched ||
            hd_graph_rewrite(m->module, graph, &options, &graph,
                             context->rewrite_stats);
  hd_times_leave(&context->times, part);
  part = hd_times_enter(&context->times, "lower-precision");
  if (ok)
    graph = hd_graph_lower_precision(m->module, graph, m->options.precision,
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
    turn->last = transform(m, *tasks, held);
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

static bool run_segments(hd_model_t *m, hd_turn_t *turn,
                         const hd_host_tensor_t *data, bool *kept) {
  for (bool first = true;; first = false) {
    const hd_graph_t *tasks;
    hd_ptr_map_t held = {0};
    hd_expand_state_t state = expand(m, turn, &tasks, &held);
    if (state == HD_EXPAND_FAILED)
      return false;
    bool whole = first && is_whole(m, turn, state);
    if (!whole && !may_run_parts(m, data))
      return false;
    if (turn->last->nodes.size > 0 && !hd_model_run_segment(m, turn, whole))
      return false;
    *kept = whole && turn->segment.slots;
    if (m->options.watch && !show(m, turn, tasks, &held))
      return false;
    if (state == HD_EXPAND_DONE)
      return true;
    const hd_value_t *wanted = hd_expander_wanted(turn->expander);
    const hd_host_tensor_t *found = hd_model_fetch(m, turn, wanted);
    if (!found)
      return false;
    hd_expander_give(turn->expander, wanted, found);
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
// whether it is one.
static bool make_turn(hd_model_t *m, hd_turn_t *turn,
                      const hd_host_tensor_t *data, bool *loaded, bool *kept) {
  bool ok = load_turn(m, turn, loaded);
  if (!ok || *loaded)
    return *kept = ok;
  return hd_artifact_check_weights(m->module->artifact, UINT64_MAX) &&
         run_segments(m, turn, data, kept);
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
  turn->last = transform(m, found->bucket->graph, &held);
  return turn->last && hd_model_run_segment(m, turn, true);
}

bool hd_model_walk(hd_model_t *m, hd_context_t *caller,
                   const hd_tensor_type_t *inputs, const hd_host_tensor_t *data,
                   hd_host_tensor_t *outputs, hd_turn_t **turn) {
  m->stats = (hd_session_stats_t){0};
  hd_found_bucket_t found;
  size_t part = hd_times_enter(&hd_model_context(m)->times, "bucket");
  bool bounded = hd_model_find_bucket(m, inputs, &found);
  hd_times_leave(&hd_model_context(m)->times, part);
  if (bounded && found.turn) {
    *turn = found.turn;
    return true;
  }
  hd_turn_t *walked =
      bounded ? begin_turn(m, found.bounds) : begin(m, inputs, data);
  bool kept = false, loaded = false;
  *turn = NULL;
  if (m->device) {
    m->device->reclaim = reclaim;
    m->device->reclaim_argument = m;
  }
  bool ok = bounded ? add_bucket(m, &found, &loaded, &kept)
                    : make_turn(m, walked, data, &loaded, &kept);
  if (m->device)
    m->device->reclaim = NULL;
  // Constants are there for whatever stream reads them.
  ok = ok && (!kept || m->device->ops->wait(m->device, NULL));
  if (ok && kept) {
    keep(m, walked, loaded);
    *turn = walked;
    return true;
  }
  ok = ok && (!outputs || take_outputs(m, caller, walked, outputs));
  end_turn(m, walked);
  m->running = NULL;
  return ok;
}
