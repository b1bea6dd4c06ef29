// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is kept of walks (ModelWalk.c, Trail.c), and the world that they are in.

#include "Runtime/Saved.h"
#include "Runtime/Trail.h"

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

void hd_model_end_turn(hd_model_t *m, hd_turn_t *turn) {
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
  hd_module_destroy(turn->module);
  free(turn);
}

void hd_model_destroy(hd_model_t *m) {
  if (!m)
    return;
  while (m->kept) {
    hd_turn_t *turn = m->kept;
    m->kept = turn->next;
    hd_model_end_turn(m, turn);
  }
  hd_model_end_turn(m, m->running);
  hd_trail_end(m);
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

// What is left of a bound on time, an interruption and who is told are the
// caller's.
static void begin_call(hd_context_t *context, const hd_context_t *caller) {
  hd_diagnostics_clear(&context->diags);
  context->budget.deadline_ns = caller->budget.deadline_ns;
  context->budget.interrupted = caller->budget.interrupted;
  context->progress = caller->progress;
  context->progress_argument = caller->progress_argument;
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
    hd_model_end_turn(m, turn);
  }
}

bool hd_model_reclaim(void *model) { return hd_model_shrink(model, 0); }

void hd_model_count_compiled(hd_model_t *m) {
  pthread_mutex_lock(&m->lock);
  m->compiled++;
  pthread_mutex_unlock(&m->lock);
}

size_t hd_turn_bytes(const hd_turn_t *turn) {
  const hd_program_t *program = &turn->segment.program;
  size_t bytes = hd_arena_bytes(&turn->segment.made->arena) +
                 hd_arena_bytes(&program->module->arena);
  for (size_t i = 0; i < program->variants.size; i++)
    bytes += program->kernels[i]->code.size;
  return bytes;
}

void hd_model_keep(hd_model_t *m, hd_turn_t *turn, bool loaded) {
  turn->bytes = hd_turn_bytes(turn);
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
