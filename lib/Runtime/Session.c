// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A run looks for the executable of its inputs' types: among those that the
// session has, then in the model, which makes it where there is none.

#include "Runtime/SessionState.h"
#include "Runtime/Trail.h"

#include <stdlib.h>
#include <string.h>

// How many executables a session keeps ready.
enum { MAX_READY = 64 };

hd_session_t *hd_session_join(hd_model_t *model, hd_context_t *context,
                              hd_device_t *device) {
  hd_session_t *s = calloc(1, sizeof(*s));
  if (!s)
    hd_budget_exhausted(&context->budget, HD_EXHAUSTED_MEMORY);
  s->model = model;
  s->context = context;
  s->device = device;
  s->states = calloc(model->options.inouts.count + 1, sizeof(*s->states));
  if (s->states)
    return s;
  free(s);
  hd_budget_exhausted(&context->budget, HD_EXHAUSTED_MEMORY);
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

static void end_ready(hd_session_t *s, hd_ready_t *r) {
  hd_session_drop_recording(s, r);
  hd_program_fini(&r->program);
  hd_store_fini(&r->values);
  hd_model_release(s->model, r->turn);
  free(r);
}

void hd_session_destroy(hd_session_t *s) {
  if (!s)
    return;
  if (s->device)
    s->device->reclaim = NULL;
  hd_session_wait(s);
  while (s->ready) {
    hd_ready_t *r = s->ready;
    s->ready = r->next;
    end_ready(s, r);
  }
  if (s->block)
    s->device->ops->free(s->device, s->block);
  if (s->values)
    s->device->ops->free(s->device, s->values);
  for (size_t i = 0; i < s->num_kept; i++)
    s->device->ops->free(s->device, s->kept[i]);
  free(s->kept);
  hd_session_end_states(s);
  free(s->states);
  if (s->owns_model)
    hd_model_destroy(s->model);
  free(s);
}

hd_model_t *hd_session_model(const hd_session_t *s) { return s->model; }

const hd_session_stats_t *hd_session_stats(const hd_session_t *s) {
  return &s->stats;
}

// --- Executables made ready ---

// Ends all from one on, but those that graphs of the caller's have. Returns
// whether there was any.
static bool end_from(hd_session_t *s, hd_ready_t **at) {
  bool any = false;
  while (*at) {
    hd_ready_t *r = *at;
    if (r->captured) {
      at = &r->next;
      continue;
    }
    if (!any)
      hd_session_wait(s); // It may be at work.
    any = true;
    *at = r->next;
    end_ready(s, r);
  }
  return any;
}

// Those beyond the bound that were used longest ago.
static void end_oldest(hd_session_t *s) {
  hd_ready_t **at = &s->ready;
  for (int i = 0; i < MAX_READY && *at; i++)
    at = &(*at)->next;
  end_from(s, at);
}

static void shrink_model(void *model) {
  hd_model_shrink(model, 0);
  hd_trail_reclaim(model);
}

// All but the one at work, and what nobody else has of the model.
static bool reclaim(void *session) {
  hd_session_t *s = session;
  s->device->reclaim = NULL;
  if (s->ready)
    end_from(s, &s->ready->next);
  hd_model_enter(s->model, s->context, shrink_model, s->model);
  return true;
}

void hd_session_may_reclaim(hd_session_t *s, bool may) {
  s->device->reclaim = may ? reclaim : NULL;
  s->device->reclaim_argument = s;
}

// The plan's parameter that an input of its graph is; -1: none.
static int find_param(const hd_ready_t *r, const hd_value_t *value) {
  const hd_model_segment_t *segment = &r->turn->segment;
  for (size_t k = 0; k < segment->first_constant; k++)
    if (segment->graph->inputs.data[k] == value)
      return (int)k;
  return -1;
}

// Which parameters of the plan are what comes in and goes out.
static void number_params(hd_session_t *s, hd_ready_t *r) {
  const hd_model_segment_t *segment = &r->turn->segment;
  hd_arena_t *arena = &r->values.arena;
  size_t inputs = s->model->graph->inputs.size;
  size_t outputs = r->turn->last->outputs.size;
  uint32_t count = r->program.entry->num_params;
  int n = (int)segment->end_constant;
  r->inputs = HD_ARENA_ARRAY(arena, int, inputs + 1);
  r->outputs = HD_ARENA_ARRAY(arena, int, outputs + 1);
  for (size_t i = 0; i < inputs; i++)
    r->inputs[i] = find_param(r, hd_turn_input(r->turn, i));
  const hd_bucket_t *bucket = r->turn->bucket;
  size_t extras = bucket ? bucket->graph->inputs.size - inputs : 0;
  r->extras = HD_ARENA_ARRAY(arena, int, extras + 1);
  for (size_t i = 0; i < extras; i++)
    r->extras[i] = find_param(r, bucket->graph->inputs.data[inputs + i]);
  for (size_t i = 0; i < outputs; i++)
    r->outputs[i] = r->turn->planned[i] ? n++ : r->turn->stored_in[i];
  r->given = HD_ARENA_ARRAY(arena, hd_slot_t, count + 1);
  memcpy(r->given, segment->slots, count * sizeof(*r->given));
}

typedef struct fetching {
  hd_session_t *session;
  hd_ready_t *ready;
  hd_stored_t **stored; // For each output; NULL: a run gives it.
  bool ok;
} fetching_t;

// An input that comes out, or what a run gives for another output, too.
static bool is_given(const fetching_t *f, const hd_value_t *value) {
  const hd_turn_t *turn = f->ready->turn;
  for (size_t i = 0; i < turn->last->outputs.size; i++)
    if (turn->last->outputs.data[i] == value &&
        (turn->planned[i] || turn->stored_in[i] >= 0))
      return true;
  for (size_t i = 0; i < f->session->model->graph->inputs.size; i++)
    if (hd_turn_input(f->ready->turn, i) == value)
      return true;
  return false;
}

// In the model's world, out of which the session's memory does not unwind: none
// of it is taken here.
static void fetch_constants(void *argument) {
  fetching_t *f = argument;
  const hd_graph_t *last = f->ready->turn->last;
  for (size_t i = 0; f->ok && i < last->outputs.size; i++) {
    if (!f->stored[i])
      continue;
    f->stored[i]->data = hd_model_fetch(f->session->model, f->ready->turn,
                                        last->outputs.data[i]);
    f->ok = f->stored[i]->data != NULL;
  }
}

// Outputs that no run gives: constants, and what depends on them alone. Where
// there are none, nobody's compilation is waited for.
static bool take_constants(hd_session_t *s, hd_ready_t *r) {
  const hd_graph_t *last = r->turn->last;
  fetching_t f = {.session = s, .ready = r, .ok = true};
  f.stored =
      HD_ARENA_ARRAY(&r->values.arena, hd_stored_t *, last->outputs.size + 1);
  bool any = false;
  for (size_t i = 0; i < last->outputs.size; i++)
    if (!is_given(&f, last->outputs.data[i])) {
      f.stored[i] = hd_store_find(&r->values, last->outputs.data[i]);
      any = true;
    }
  if (any)
    hd_model_enter(s->model, s->context, fetch_constants, &f);
  return f.ok;
}

// It has the caller's use of the turn.
static hd_ready_t *add_ready(hd_session_t *s, hd_turn_t *turn) {
  hd_ready_t *r = calloc(1, sizeof(*r));
  if (!r) {
    hd_model_release(s->model, turn);
    hd_budget_exhausted(&s->context->budget, HD_EXHAUSTED_MEMORY);
  }
  r->turn = turn;
  r->next = s->ready;
  s->ready = r; // So that unwinding does not lose it.
  hd_store_init(&r->values, s->model->module, s->context, s->device);
  if (!hd_program_share(&r->program, &turn->segment.program, s->device))
    return NULL;
  number_params(s, r);
  r->complete = take_constants(s, r);
  end_oldest(s);
  return r->complete ? r : NULL;
}

// One that is ready, moved to the front, for these types or (NULL) of that
// executable; what unwinding left is ended.
static hd_ready_t *find_ready(hd_session_t *s, const hd_tensor_type_t *types,
                              const hd_turn_t *turn) {
  for (hd_ready_t **at = &s->ready; *at;) {
    hd_ready_t *r = *at;
    if (!r->complete) {
      *at = r->next;
      end_ready(s, r);
    } else if (types ? hd_turn_is_for(s->model, r->turn, types)
                     : r->turn == turn) {
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
  w->turn = hd_model_find(s->model, w->types, false);
  w->ok = w->turn || hd_model_walk(s->model, s->context, w->types, w->inputs,
                                   w->outputs, &w->turn);
  if (w->ok)
    s->stats = s->model->stats;
}

bool hd_session_make_ready(hd_session_t *s, const hd_tensor_type_t *types,
                           const hd_host_tensor_t *inputs,
                           hd_host_tensor_t *outputs, hd_ready_t **ready) {
  s->stats = (hd_session_stats_t){0};
  s->now = *ready = find_ready(s, types, NULL);
  if (*ready)
    return hd_session_fit(s, *ready, types);
  walking_t w = {.session = s,
                 .types = types,
                 .inputs = inputs,
                 .outputs = outputs,
                 .turn = hd_model_find(s->model, types, false),
                 .ok = true};
  if (!w.turn)
    hd_model_enter(s->model, s->context, walk, &w);
  if (!w.ok || !w.turn) // It has been run, or failed.
    return w.ok;
  // One of bounds may be there for other sizes.
  *ready = find_ready(s, NULL, w.turn);
  if (*ready)
    hd_model_release(s->model, w.turn);
  else
    *ready = add_ready(s, w.turn);
  s->now = *ready;
  return *ready && hd_session_fit(s, *ready, types);
}

static bool give_inputs(hd_session_t *s, hd_ready_t *r,
                        const hd_host_tensor_t *inputs) {
  for (size_t i = 0; i < s->model->graph->inputs.size; i++)
    if (!hd_session_has_state(s, i, true) &&
        !hd_store_update(&r->values, hd_turn_input(r->turn, i), &inputs[i]))
      return false;
  return true;
}

bool hd_session_make_output(hd_session_t *s, const hd_ready_t *r, size_t i,
                            hd_host_tensor_t *output) {
  hd_tensor_type_t type = hd_ready_output(s, r, i);
  hd_diagnostics_t *diags = &s->context->diags;
  const char *name = s->model->graph->outputs.data[i]->name;
  return hd_session_has_state(s, i, false)
             ? hd_host_tensor_describe(output, diags, name, type.type,
                                       type.shape, type.rank)
             : hd_host_tensor_init(output, diags, &s->context->budget, name,
                                   type.type, type.shape, type.rank);
}

// What a run has given is on the device, and what was read before is not it.
static bool take_outputs(hd_session_t *s, hd_ready_t *r,
                         hd_host_tensor_t *outputs) {
  const hd_graph_t *last = r->turn->last;
  if (r->turn->bucket)
    return hd_session_take_bucket(s, r, outputs);
  for (size_t i = 0; i < last->outputs.size; i++)
    if (r->turn->planned[i])
      hd_store_find(&r->values, last->outputs.data[i])->data = NULL;
  for (size_t i = 0; i < last->outputs.size; i++)
    if (!hd_session_has_state(s, i, false) &&
        !hd_store_fetch(&r->values, last->outputs.data[i]))
      return false;
  // Nothing here unwinds: the caller has no hold on them yet.
  for (size_t i = 0; i < last->outputs.size; i++) {
    if (!hd_session_make_output(s, r, i, &outputs[i]))
      return false;
    if (hd_session_has_state(s, i, false))
      continue;
    const hd_host_tensor_t *data =
        hd_store_fetch(&r->values, last->outputs.data[i]);
    memcpy(outputs[i].data, data->data, data->bytes);
  }
  return true;
}

static bool run_ready(hd_session_t *s, hd_ready_t *r,
                      const hd_tensor_type_t *types,
                      const hd_host_tensor_t *inputs,
                      hd_host_tensor_t *outputs) {
  hd_model_segment_count(&r->turn->segment, &r->program, &s->stats);
  bool bounded = r->turn->bucket != NULL;
  if (!hd_session_make_room(s, r) || !hd_session_place(s, r) ||
      !(bounded ? hd_session_fill_bucket(s, r, inputs)
                : give_inputs(s, r, inputs)))
    return false;
  hd_session_find_callers(s, NULL, NULL);
  if (!hd_session_take_states(s, r, types, inputs, NULL, r->slots))
    return false;
  uint64_t start = hd_clock_ns();
  bool ok = hd_program_run(&r->program, r->slots);
  s->stats.run_ms += hd_ms_since(start);
  return ok && hd_session_keep_states(s, r) && take_outputs(s, r, outputs);
}

bool hd_session_run(hd_session_t *s, const hd_host_tensor_t *inputs,
                    hd_host_tensor_t *outputs) {
  size_t count = s->model->graph->inputs.size;
  hd_arena_t scratch;
  hd_ready_t *r = NULL;
  memset(outputs, 0, sizeof(*outputs) * s->model->graph->outputs.size);
  if (!hd_session_wait(s)) // The workspaces are its.
    return false;
  hd_arena_init_local(&scratch, &s->context->budget);
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(&scratch, hd_tensor_type_t, count + 1);
  for (size_t i = 0; i < count; i++)
    types[i] = hd_tensor_type_of(&inputs[i]);
  bool ok = hd_session_make_ready(s, types, inputs, outputs, &r) &&
            (!r || run_ready(s, r, types, inputs, outputs));
  hd_arena_fini(&scratch);
  return ok;
}

hd_program_t *hd_session_program(hd_session_t *s, const hd_slot_t **slots) {
  if (!s->now)
    return NULL;
  *slots = s->now->slots;
  return &s->now->program;
}

bool hd_session_outputs(hd_session_t *s, hd_host_tensor_t *outputs) {
  memset(outputs, 0, sizeof(*outputs) * s->model->graph->outputs.size);
  return take_outputs(s, s->now, outputs);
}
