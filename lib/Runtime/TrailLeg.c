// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Legs: what a run does after looks that gave just this. A new one is walked
// to, and held against the piece that is for such looks.
#include "Runtime/Trail.h"

#include "Fusion/Bucket/BucketSizes.h"

#include <stdlib.h>
#include <string.h>

// There may be one for each pair of numbers, with a key, a few shapes and
// extents.
enum { LEG_CHUNK = 1024 };

// --- Keys ---

static void put_bytes(hd_arena_t *arena, hd_trail_key_t *key, const void *data,
                      size_t bytes) {
  const unsigned char *from = data;
  for (size_t i = 0; i < bytes; i++)
    hd_vec_push(arena, key, from[i]);
}

static void put_number(hd_arena_t *arena, hd_trail_key_t *key, char kind,
                       int64_t number) {
  put_bytes(arena, key, &kind, 1);
  put_bytes(arena, key, &number, sizeof(number));
}

void hd_trail_key(hd_arena_t *arena, const hd_model_t *m,
                  const hd_tensor_type_t *types, const hd_looks_t *looks,
                  const int64_t *bounds, hd_trail_key_t *key) {
  for (size_t i = 0; i < m->graph->inputs.size; i++) {
    put_number(arena, key, 't', types[i].type);
    put_number(arena, key, 'r', types[i].rank);
    put_bytes(arena, key, types[i].shape,
              sizeof(types[i].shape[0]) * types[i].rank);
  }
  for (size_t i = 0; i < looks->size; i++) {
    const hd_look_t *look = &looks->data[i];
    if (bounds && bounds[i]) {
      put_number(arena, key, 'b', bounds[i]);
    } else if (look->finds) {
      put_number(arena, key, 'n', look->number);
    } else {
      put_number(arena, key, 'd', (int64_t)look->data->bytes);
      put_bytes(arena, key, look->data->data, look->data->bytes);
    }
  }
}

static uint64_t hash_of(const hd_trail_key_t *key) {
  return hd_hash(0, key->data, key->size);
}

// --- What is there ---

static void end_leg(hd_trail_t *trail, hd_leg_t *leg) {
  if (leg->piece && leg->piece->staged == leg)
    leg->piece->staged = NULL;
  trail->leg_bytes -= leg->complete ? hd_arena_bytes(&leg->arena) : 0;
  hd_arena_fini(&leg->arena);
  free(leg);
}

hd_leg_t *hd_trail_find_leg(hd_trail_t *trail, const hd_trail_key_t *key) {
  uint64_t hash = hash_of(key);
  hd_leg_t **at = &trail->legs[hash % HD_TRAIL_CHAINS];
  while (*at) {
    hd_leg_t *leg = *at;
    if (leg->complete && leg->hash == hash && leg->key_bytes == key->size &&
        memcmp(leg->key, key->data, key->size) == 0)
      return leg;
    if (leg->complete) {
      at = &leg->next;
    } else { // The work unwound.
      *at = leg->next;
      end_leg(trail, leg);
    }
  }
  return NULL;
}

// The one used longest ago that this run has not used, of that piece or (NULL)
// of any; NULL: none.
static hd_leg_t **find_oldest(hd_trail_t *trail, const hd_piece_t *of) {
  hd_leg_t **oldest = NULL;
  for (size_t i = 0; i < HD_TRAIL_CHAINS; i++)
    for (hd_leg_t **at = &trail->legs[i]; *at; at = &(*at)->next)
      if ((!of || (*at)->piece == of) && (*at)->used < trail->began &&
          (!oldest || (*at)->used < (*oldest)->used))
        oldest = at;
  return oldest;
}

void hd_trail_drop_legs(hd_model_t *m, size_t most, const hd_piece_t *of) {
  hd_trail_t *trail = m->trail;
  hd_leg_t **at;
  while ((of || !most || trail->leg_bytes > most) &&
         (at = find_oldest(trail, of))) {
    hd_leg_t *leg = *at;
    *at = leg->next;
    end_leg(trail, leg);
  }
}

// --- New ones ---

static hd_leg_t *begin_leg(hd_trail_run_t *r) {
  hd_budget_t *budget = &hd_model_context(r->m)->budget;
  hd_leg_t *leg = calloc(1, sizeof(*leg));
  if (!leg)
    hd_budget_exhausted(budget, HD_EXHAUSTED_MEMORY);
  hd_arena_init(&leg->arena, budget);
  leg->arena.first = LEG_CHUNK;
  leg->hash = hash_of(&r->key);
  hd_leg_t **chain = &r->trail->legs[leg->hash % HD_TRAIL_CHAINS];
  leg->next = *chain; // So that unwinding does not lose it.
  *chain = leg;
  unsigned char *key = hd_arena_alloc(&leg->arena, r->key.size + 1);
  memcpy(key, r->key.data, r->key.size);
  leg->key = key;
  leg->key_bytes = r->key.size;
  return leg;
}

static const hd_host_tensor_t *copy_data(hd_arena_t *arena,
                                         const hd_host_tensor_t *data) {
  hd_host_tensor_t *copy =
      hd_host_tensor_make(arena, data->type, data->shape, data->rank);
  memcpy(copy->data, data->data, data->bytes);
  return copy;
}

// A value of a walk that ends before the leg does; false after an error.
static bool take_value(hd_trail_run_t *r, hd_leg_t *leg, const hd_stop_t *stop,
                       const hd_value_t *value, hd_leg_result_t *result) {
  *result = (hd_leg_result_t){.held = HD_NOT_HELD};
  if (!value)
    return true;
  if (!value->constant) {
    result->held = hd_stop_number(stop, value) - 1;
    return true;
  }
  const hd_host_tensor_t *data = hd_constant_load(r->m->module, value);
  if (!data)
    return false;
  result->constant = hd_ptr_map_get(&r->m->shared, value)
                         ? data
                         : copy_data(&leg->arena, data);
  return true;
}

// What is done behind the piece.
static bool take_stop(hd_trail_run_t *r, hd_leg_t *leg, const hd_stop_t *stop) {
  size_t count = r->m->graph->outputs.size;
  const hd_find_t *find = stop->done ? NULL : hd_expander_find(stop->x);
  leg->done = stop->done;
  if (stop->done) {
    hd_leg_result_t *results =
        HD_ARENA_ARRAY(&leg->arena, hd_leg_result_t, count + 1);
    leg->results = results;
    for (size_t i = 0; i < count; i++)
      if (!take_value(r, leg, stop, stop->results[i], &results[i]))
        return false;
    return true;
  }
  leg->wanted = hd_stop_number(stop, hd_expander_wanted(stop->x)) - 1;
  if (!find)
    return true;
  leg->find = HD_ARENA_COPY(&leg->arena, hd_find_t, find);
  for (uint32_t i = 0; i < find->num_inputs; i++)
    if (!take_value(r, leg, stop, find->inputs[i], &leg->inputs[i]))
      return false;
  return true;
}

static bool takes_same(const hd_stop_t *stop, const hd_piece_t *piece) {
  return stop->inputs.size == piece->num_inputs &&
         stop->graph->outputs.size == piece->num_outputs &&
         (!stop->inputs.size ||
          memcmp(stop->inputs.data, piece->inputs,
                 stop->inputs.size * sizeof(*piece->inputs)) == 0);
}

static void take_shapes(hd_leg_t *leg, const hd_graph_t *graph) {
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(&leg->arena, hd_tensor_type_t, graph->outputs.size + 1);
  for (size_t i = 0; i < graph->outputs.size; i++) {
    const hd_value_t *value = graph->outputs.data[i];
    types[i].type = value->type;
    types[i].rank = (unsigned)value->rank;
    for (int k = 0; k < value->rank; k++)
      types[i].shape[k] = value->shape[k]->u.i;
  }
  leg->outputs = types;
}

// Whether the piece serves the looks: with these extents.
static bool take_fit(hd_trail_run_t *r, hd_leg_t *leg, hd_module_t *module,
                     const hd_stop_t *stop) {
  const hd_bucket_t *bucket = leg->piece->turn->bucket;
  hd_arena_t *arena = &leg->arena;
  if (!bucket)
    return true;
  int64_t *extents = HD_ARENA_ARRAY(arena, int64_t, bucket->num_extents + 1);
  const hd_host_tensor_t **data =
      HD_ARENA_ARRAY(arena, const hd_host_tensor_t *, bucket->given.size + 1);
  const hd_value_t **given =
      HD_ARENA_ARRAY(&r->arena, const hd_value_t *, bucket->given.size + 1);
  if (!hd_bucket_fit(module, &module->arena, bucket, stop->graph, extents,
                     given))
    return false;
  for (size_t i = 0; i < bucket->given.size; i++) {
    const hd_host_tensor_t *found = hd_constant_load(r->m->module, given[i]);
    if (!found)
      return false;
    data[i] = copy_data(arena, found);
  }
  leg->extents = extents;
  leg->given = data;
  return true;
}

static void destroy_module(void *module) { hd_module_destroy(module); }

// False where the piece does not serve the looks, or after an error.
static bool fit(hd_trail_run_t *r, hd_leg_t *leg) {
  hd_budget_t *budget = &hd_model_context(r->m)->budget;
  hd_times_t *times = &hd_model_context(r->m)->times;
  hd_module_t *module = hd_module_fork(r->m->module);
  hd_cleanup_t cleanup;
  hd_stop_t stop;
  hd_budget_defer(budget, &cleanup, destroy_module, module);
  uint64_t start = hd_clock_ns();
  size_t part = hd_times_enter(times, "expand");
  bool ok = hd_trail_walk(r->m, module, r->types, &r->looks, NULL,
                          leg->piece->leader, &stop) &&
            takes_same(&stop, leg->piece);
  hd_times_leave(times, part);
  part = hd_times_enter(times, "bucket");
  ok = ok && take_fit(r, leg, module, &stop) && take_stop(r, leg, &stop);
  if (ok)
    take_shapes(leg, stop.graph);
  hd_times_leave(times, part);
  r->m->stats.expand_ms += hd_ms_since(start);
  hd_budget_clean(budget, &cleanup);
  return ok;
}

static int64_t bound_of(const hd_look_t *look) {
  enum { MOST = 1 << 24 };
  int64_t power = HD_BUCKET_LEAST + 1;
  if (!look->is_number || look->number < HD_BUCKET_LEAST_EXTENT ||
      look->number > MOST || look->most < HD_BUCKET_LEAST)
    return 0;
  while (power < look->number)
    power *= 2;
  return power < look->most ? power : look->most;
}

// Where the last look's bound did not do: the largest that does. It is kept
// with the piece that was made, or refused, for the power of two, and tried
// first, since numbers between the two mostly have the same. 0: there is none.
static int64_t lesser_bound(hd_trail_run_t *r, int64_t *bounds, bool *looked) {
  const hd_look_t *look = &r->looks.data[r->looks.size - 1];
  int64_t *bound = &bounds[r->looks.size - 1], before = *bound;
  *bound = bound_of(look);
  hd_piece_t *piece = hd_trail_find_piece(r, bounds);
  if (*looked && piece)
    piece->limit = -1;
  if (*looked || !piece || piece->limit < 0)
    return 0;
  if (before == *bound && piece->limit >= look->number)
    return piece->limit;
  *looked = true;
  piece->limit = hd_trail_limit(r, bounds);
  return piece->limit < HD_BUCKET_LEAST ? 0 : piece->limit;
}

// With the bounds that the last leg's piece has, and another for the last look;
// where that cannot be, without that, or without any.
static bool settle(hd_trail_run_t *r, hd_leg_t *leg) {
  hd_diagnostics_t *diags = &hd_model_context(r->m)->diags;
  size_t count = r->looks.size;
  int64_t *bounds = HD_ARENA_ARRAY(&r->arena, int64_t, count + 1);
  bool looked = false; // For another bound.
  if (count) {
    memcpy(bounds, r->before->piece->bounds, (count - 1) * sizeof(*bounds));
    bounds[count - 1] = bound_of(&r->looks.data[count - 1]);
  }
  for (;;) {
    bool bounded = false;
    for (size_t i = 0; i < count; i++)
      bounded |= bounds[i] != 0;
    hd_diagnostics_mark_t mark = hd_diagnostics_mark(diags);
    leg->piece = hd_trail_piece(r, bounds);
    if (leg->piece && fit(r, leg))
      return true;
    if (!bounded || r->trail->unfit)
      return false;
    if (leg->piece) // Nobody asked for it with these numbers.
      hd_diagnostics_rewind(diags, mark);
    if (bounds[count - 1])
      bounds[count - 1] = lesser_bound(r, bounds, &looked);
    else
      memset(bounds, 0, count * sizeof(*bounds));
  }
}

hd_leg_t *hd_trail_leg(hd_trail_run_t *r) {
  hd_trail_t *trail = r->trail;
  r->key.size = 0;
  hd_trail_key(&r->arena, r->m, r->types, &r->looks, NULL, &r->key);
  hd_leg_t *leg = hd_trail_find_leg(trail, &r->key);
  if (!leg) {
    leg = begin_leg(r);
    if (!settle(r, leg))
      return NULL;
    leg->complete = true;
    leg->used = ++trail->clock;
    trail->leg_bytes += hd_arena_bytes(&leg->arena);
    hd_trail_drop_legs(r->m, HD_TRAIL_LEG_BYTES, NULL);
  }
  leg->used = leg->piece->used = ++trail->clock;
  return leg;
}
