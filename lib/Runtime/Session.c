// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A run looks for the executable of its inputs' types: among those that the
// session has, then in the model, which makes it where there is none.

#include "Runtime/ModelState.h"

#include <stdlib.h>
#include <string.h>

// How many executables a session keeps ready.
enum { MAX_READY = 64 };

// An executable, with what a run of it changes.
typedef struct ready {
  hd_turn_t *turn;
  hd_program_t program; // It shares the executable's.
  hd_store_t values;    // Inputs and outputs.
  hd_slot_t *slots;
  bool complete; // False where the work unwound.
  struct ready *next;
} ready_t;

struct hd_session {
  hd_model_t *model;
  bool owns_model;
  hd_context_t *context;
  hd_device_t *device;
  hd_session_stats_t stats;
  ready_t *ready, *now; // Used last first; the last run's, NULL: it has none.
  hd_address_t block;   // The workspaces of each, in turn.
  size_t block_bytes;
};

hd_session_t *hd_session_join(hd_model_t *model, hd_context_t *context,
                              hd_device_t *device) {
  hd_session_t *s = calloc(1, sizeof(*s));
  if (!s)
    hd_budget_exhausted(&context->budget, HD_EXHAUSTED_MEMORY);
  s->model = model;
  s->context = context;
  s->device = device;
  return s;
}

static void destroy_model(void *model) { hd_model_destroy(model); }

hd_session_t *hd_session_create(hd_module_t *module, const hd_graph_t *graph,
                                hd_device_t *device,
                                const hd_model_options_t *options) {
  hd_model_t *model = hd_model_create(module, graph, device, options);
  hd_budget_t *budget = &module->context->budget;
  hd_cleanup_t cleanup;
  hd_budget_defer(budget, &cleanup, destroy_model, model);
  hd_session_t *s = hd_session_join(model, module->context, device);
  hd_budget_keep(budget, &cleanup);
  s->owns_model = true;
  return s;
}

static void end_ready(hd_session_t *s, ready_t *r) {
  hd_program_fini(&r->program);
  hd_store_fini(&r->values);
  hd_model_release(s->model, r->turn);
  free(r);
}

void hd_session_destroy(hd_session_t *s) {
  if (!s)
    return;
  while (s->ready) {
    ready_t *r = s->ready;
    s->ready = r->next;
    end_ready(s, r);
  }
  if (s->block)
    s->device->ops->free(s->device, s->block);
  if (s->owns_model)
    hd_model_destroy(s->model);
  free(s);
}

hd_model_t *hd_session_model(const hd_session_t *s) { return s->model; }

const hd_session_stats_t *hd_session_stats(const hd_session_t *s) {
  return &s->stats;
}

// --- Executables made ready ---

// Those beyond the bound that were used longest ago.
static void end_oldest(hd_session_t *s) {
  ready_t **at = &s->ready;
  for (int i = 0; i < MAX_READY && *at; i++)
    at = &(*at)->next;
  while (*at) {
    ready_t *r = *at;
    *at = r->next;
    end_ready(s, r);
  }
}

// The parameters that come in and go out get memory of the session's own.
static bool place_params(ready_t *r) {
  const hd_model_segment_t *segment = &r->turn->segment;
  const hd_func_t *entry = r->program.entry;
  const hd_graph_t *last = r->turn->last;
  uint32_t count = entry->num_params, n = 0;
  r->slots = HD_ARENA_ARRAY(&r->values.arena, hd_slot_t, count + 1);
  memcpy(r->slots, segment->slots, count * sizeof(*r->slots));
  for (size_t i = 0; i < segment->first_constant; i++, n++) {
    const hd_value_t *value = segment->graph->inputs.data[i];
    if (!hd_store_place(&r->values, value, entry->params[n], true))
      return false;
    r->slots[n] = hd_store_find(&r->values, value)->slot;
  }
  n = segment->end_constant;
  for (size_t i = 0; i < last->outputs.size; i++) {
    const hd_value_t *value = last->outputs.data[i];
    if (!r->turn->planned[i])
      continue;
    if (!hd_store_place(&r->values, value, entry->params[n], false))
      return false;
    r->slots[n++] = hd_store_find(&r->values, value)->slot;
  }
  return true;
}

typedef struct fetching {
  hd_session_t *session;
  ready_t *ready;
  bool ok;
} fetching_t;

// Outputs that no run gives: constants, and what depends on them alone. (An
// input that comes out is there.)
static void fetch_constants(void *argument) {
  fetching_t *f = argument;
  hd_turn_t *turn = f->ready->turn;
  for (size_t i = 0; f->ok && i < turn->last->outputs.size; i++) {
    const hd_value_t *value = turn->last->outputs.data[i];
    hd_stored_t *stored = hd_store_find(&f->ready->values, value);
    if (!turn->planned[i] && !stored->data && !stored->slot.address)
      stored->data = hd_model_fetch(f->session->model, turn, value);
    f->ok = turn->planned[i] || stored->data || stored->slot.address;
  }
}

// It has the caller's use of the turn.
static ready_t *add_ready(hd_session_t *s, hd_turn_t *turn,
                          const hd_host_tensor_t *inputs) {
  ready_t *r = calloc(1, sizeof(*r));
  if (!r) {
    hd_model_release(s->model, turn);
    hd_budget_exhausted(&s->context->budget, HD_EXHAUSTED_MEMORY);
  }
  r->turn = turn;
  r->next = s->ready;
  s->ready = r; // So that unwinding does not lose it.
  hd_store_init(&r->values, s->model->module, s->context, s->device);
  for (size_t i = 0; i < s->model->graph->inputs.size; i++)
    hd_store_find(&r->values, hd_expander_input(turn->expander, i))->data =
        &inputs[i];
  if (!hd_program_share(&r->program, &turn->segment.program, s->device) ||
      !place_params(r))
    return NULL;
  fetching_t f = {s, r, true};
  hd_model_enter(s->model, s->context, fetch_constants, &f);
  r->complete = f.ok;
  end_oldest(s);
  return f.ok ? r : NULL;
}

static bool is_for(const hd_session_t *s, const ready_t *r,
                   const hd_host_tensor_t *inputs) {
  const hd_tensor_type_t *types = r->turn->inputs;
  for (size_t i = 0; i < s->model->graph->inputs.size; i++)
    if (types[i].type != inputs[i].type || types[i].rank != inputs[i].rank ||
        memcmp(types[i].shape, inputs[i].shape,
               sizeof(int64_t) * inputs[i].rank) != 0)
      return false;
  return true;
}

// One that is ready, moved to the front; what unwinding left is ended.
static ready_t *find_ready(hd_session_t *s, const hd_host_tensor_t *inputs) {
  for (ready_t **at = &s->ready; *at;) {
    ready_t *r = *at;
    if (!r->complete) {
      *at = r->next;
      end_ready(s, r);
    } else if (is_for(s, r, inputs)) {
      *at = r->next;
      r->next = s->ready;
      s->ready = r;
      return r;
    } else {
      at = &r->next;
    }
  }
  return NULL;
}

// --- Runs ---

typedef struct walking {
  hd_session_t *session;
  const hd_tensor_type_t *types;
  const hd_host_tensor_t *inputs;
  hd_host_tensor_t *outputs;
  hd_turn_t *turn;
  bool ok;
} walking_t;

// Another thread may have made it while this one waited.
static void walk(void *argument) {
  walking_t *w = argument;
  hd_session_t *s = w->session;
  w->turn = hd_model_find(s->model, w->types);
  w->ok = w->turn || hd_model_walk(s->model, s->context, w->types, w->inputs,
                                   w->outputs, &w->turn);
  if (w->ok)
    s->stats = s->model->stats;
}

static bool make_room(hd_session_t *s, ready_t *r) {
  size_t bytes = (size_t)r->program.block_bytes;
  if (r->program.apart)
    return true;
  if (!s->block || bytes > s->block_bytes) {
    if (s->block)
      s->device->ops->free(s->device, s->block);
    s->block = 0;
    if (!s->device->ops->alloc(s->device, "the workspaces", bytes, &s->block))
      return false;
    s->block_bytes = bytes;
  }
  hd_program_place(&r->program, s->block);
  return true;
}

static bool give_inputs(hd_session_t *s, ready_t *r,
                        const hd_host_tensor_t *inputs) {
  for (size_t i = 0; i < s->model->graph->inputs.size; i++)
    if (!hd_store_update(&r->values, hd_expander_input(r->turn->expander, i),
                         &inputs[i]))
      return false;
  for (size_t i = 0; i < r->turn->last->outputs.size; i++)
    if (r->turn->planned[i])
      hd_store_find(&r->values, r->turn->last->outputs.data[i])->data = NULL;
  return true;
}

static bool take_outputs(hd_session_t *s, ready_t *r,
                         hd_host_tensor_t *outputs) {
  const hd_graph_t *last = r->turn->last;
  for (size_t i = 0; i < last->outputs.size; i++)
    if (!hd_store_fetch(&r->values, last->outputs.data[i]))
      return false;
  // Nothing here unwinds: the caller has no hold on them yet.
  for (size_t i = 0; i < last->outputs.size; i++) {
    const hd_value_t *value = last->outputs.data[i];
    const hd_host_tensor_t *data = hd_store_fetch(&r->values, value);
    if (!hd_host_tensor_init(&outputs[i], &s->context->diags,
                             &s->context->budget, value->name, data->type,
                             data->shape, data->rank))
      return false;
    memcpy(outputs[i].data, data->data, data->bytes);
  }
  return true;
}

static bool run_ready(hd_session_t *s, ready_t *r,
                      const hd_host_tensor_t *inputs,
                      hd_host_tensor_t *outputs) {
  s->now = r;
  hd_model_segment_count(&r->turn->segment, &r->program, &s->stats);
  if (!make_room(s, r) || !give_inputs(s, r, inputs))
    return false;
  uint64_t start = hd_clock_ns();
  bool ok = hd_program_run(&r->program, r->slots);
  s->stats.run_ms += hd_ms_since(start);
  return ok && take_outputs(s, r, outputs);
}

bool hd_session_run(hd_session_t *s, const hd_host_tensor_t *inputs,
                    hd_host_tensor_t *outputs) {
  size_t count = s->model->graph->inputs.size;
  memset(outputs, 0, sizeof(*outputs) * s->model->graph->outputs.size);
  s->stats = (hd_session_stats_t){0};
  s->now = NULL;
  ready_t *r = find_ready(s, inputs);
  if (r)
    return run_ready(s, r, inputs, outputs);
  hd_arena_t scratch;
  hd_arena_init_local(&scratch, &s->context->budget);
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(&scratch, hd_tensor_type_t, count + 1);
  for (size_t i = 0; i < count; i++)
    types[i] = hd_tensor_type_of(&inputs[i]);
  walking_t w = {.session = s,
                 .types = types,
                 .inputs = inputs,
                 .outputs = outputs,
                 .turn = hd_model_find(s->model, types),
                 .ok = true};
  if (!w.turn)
    hd_model_enter(s->model, s->context, walk, &w);
  hd_arena_fini(&scratch);
  if (!w.ok || !w.turn) // It has been run, or failed.
    return w.ok;
  r = add_ready(s, w.turn, inputs);
  return r && run_ready(s, r, inputs, outputs);
}

hd_program_t *hd_session_program(hd_session_t *s, const hd_slot_t **slots) {
  if (!s->now)
    return NULL;
  *slots = s->now->slots;
  return &s->now->program;
}

// --- Versions ---

bool hd_session_compile_again(hd_session_t *s, hd_session_version_t *version) {
  hd_model_t *m = s->model;
  hd_model_segment_t segment = {.graph = s->now->turn->segment.graph};
  bool explain = m->options.explain;
  *version = (hd_session_version_t){0};
  m->options.explain = m->schedules.explain = false; // It has been said.
  bool ok = hd_model_compile(m, &segment, true);
  m->options.explain = m->schedules.explain = explain;
  *version = (hd_session_version_t){segment.made, segment.program};
  return ok;
}

void hd_session_version_end(hd_session_version_t *version) {
  hd_program_fini(&version->program);
  hd_module_destroy(version->made);
  *version = (hd_session_version_t){0};
}

bool hd_session_version_take(hd_session_t *s, hd_session_version_t *version) {
  ready_t *r = s->now;
  hd_model_segment_t *segment = &r->turn->segment;
  hd_session_version_t before = {segment->made, segment->program};
  hd_program_fini(&r->program);
  segment->made = version->made;
  segment->program = version->program;
  *version = (hd_session_version_t){0};
  hd_session_version_end(&before);
  r->complete = hd_program_share(&r->program, &segment->program, s->device) &&
                make_room(s, r);
  return r->complete;
}
