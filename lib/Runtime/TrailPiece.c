// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pieces: a segment compiled for all that looks may give up to bounds. It is
// walked to with the bounds, and with a few numbers below them, from which
// comes what depends on them (Fusion/Bucket).
#include "Runtime/Trail.h"

#include "Fusion/Fuse.h"
#include "Runtime/Storage.h"

#include <stdlib.h>
#include <string.h>

// --- What is there ---

static hd_piece_t *find_piece(hd_trail_t *trail, const hd_trail_key_t *key) {
  hd_piece_t *piece = trail->pieces;
  uint64_t hash = hd_hash(0, key->data, key->size);
  while (piece && (piece->hash != hash || piece->key_bytes != key->size ||
                   memcmp(piece->key, key->data, key->size) != 0))
    piece = piece->next;
  return piece;
}

hd_piece_t *hd_trail_find_piece(hd_trail_run_t *r, const int64_t *bounds) {
  hd_trail_key_t key = {0};
  hd_trail_key(&r->arena, r->m, r->types, &r->looks, bounds, &key);
  return find_piece(r->trail, &key);
}

void hd_trail_drop_recording(hd_device_t *device, hd_piece_t *piece) {
  if (piece->recording)
    device->ops->recording_free(device, piece->recording);
  piece->recording = NULL;
}

bool hd_trail_shrink(hd_model_t *m, size_t most) {
  hd_trail_t *trail = m->trail;
  for (bool any = false;; any = true) {
    hd_piece_t **oldest = NULL;
    size_t bytes = 0;
    for (hd_piece_t **at = &trail->pieces; *at; at = &(*at)->next) {
      bytes += (*at)->bytes;
      if ((*at)->used < trail->began &&
          (!oldest || (*at)->used < (*oldest)->used))
        oldest = at;
    }
    if (!oldest || bytes <= most)
      return any;
    hd_piece_t *piece = *oldest;
    *oldest = piece->next;
    hd_trail_drop_legs(m, 0, piece);
    hd_trail_drop_recording(m->device, piece);
    hd_model_end_turn(m, piece->turn);
    free(piece);
  }
}

// With its key, which is taken over; entered.
static hd_piece_t *add_piece(hd_trail_run_t *r, const hd_trail_key_t *key,
                             const hd_piece_t *like) {
  hd_piece_t *piece = malloc(sizeof(*piece) + key->size);
  if (!piece)
    hd_budget_exhausted(&hd_model_context(r->m)->budget, HD_EXHAUSTED_MEMORY);
  *piece = *like;
  piece->key = memcpy(piece + 1, key->data, key->size);
  piece->key_bytes = key->size;
  piece->hash = hd_hash(0, key->data, key->size);
  piece->bytes += sizeof(*piece) + key->size;
  piece->used = ++r->trail->clock;
  piece->next = r->trail->pieces;
  return r->trail->pieces = piece;
}

// --- Why ---

// "up to 64, 3 and up to 8 of 'x'": what looks give.
static const char *looks_text(hd_piece_maker_t *k) {
  hd_arena_t *arena = &k->r->arena;
  const char *text = "";
  for (size_t i = 0; i < k->r->looks.size; i++) {
    const hd_look_t *look = &k->r->looks.data[i];
    const char *comma = i ? ", " : "";
    text = k->bounds[i] ? hd_arena_printf(arena, "%s%sup to %lld %s", text,
                                          comma, (long long)k->bounds[i],
                                          look->finds ? "found" : "looked at")
           : look->is_number
               ? hd_arena_printf(arena, "%s%s%lld %s", text, comma,
                                 (long long)look->number,
                                 look->finds ? "found" : "looked at")
               : hd_arena_printf(arena, "%s%sthese elements", text, comma);
  }
  return text;
}

static void explain(hd_piece_maker_t *k, bool refused) {
  hd_model_t *m = k->r->m;
  hd_diagnostics_t *diags = &hd_model_context(m)->diags;
  const hd_node_t *node = k->refusal.node;
  size_t number = k->r->looks.size;
  if (!m->options.explain)
    return;
  if (!refused)
    hd_remark(diags, m->graph->loc, "segment %zu: compiled%s%s", number,
              number ? " for " : "", looks_text(k));
  else if (node)
    hd_remark(diags, node->loc, "segment %zu: not for %s: node '%s' (%s): %s",
              number, looks_text(k), hd_node_label(node), node->op,
              k->refusal.why);
  else
    hd_remark(diags, m->graph->loc, "segment %zu: not for %s: %s", number,
              looks_text(k),
              k->refusal.why ? k->refusal.why
                             : "the model does not go with the bounds");
}

// --- Programs ---

static bool compile(hd_piece_maker_t *k) {
  hd_model_t *m = k->r->m;
  hd_turn_t *turn = k->turn;
  int64_t weights = m->stats.weights_bytes;
  hd_ptr_map_t held = {0};
  turn->last = hd_model_transform(
      m, turn, turn->bucket ? turn->bucket->graph : k->stop.graph, &held);
  // What is seldom asked for again leaves nothing with the model.
  turn->alone = !k->bounded && k->r->looks.size > 0;
  if (!turn->last || !hd_model_run_segment(m, turn, true))
    return false;
  k->weights_bytes = m->stats.weights_bytes - weights;
  m->stats.weights_bytes = weights; // Each run counts them.
  if (turn->segment.slots && !hd_program_make_ready(&turn->segment.program))
    return false;
  return m->device->ops->wait(m->device, NULL);
}

static int find_param(const hd_turn_t *turn, const hd_value_t *value) {
  const hd_model_segment_t *segment = &turn->segment;
  for (size_t i = 0; i < segment->first_constant; i++)
    if (segment->graph->inputs.data[i] == value)
      return (int)i;
  return -1;
}

// Of inputs and outputs memory is another in each run.
static bool take_slots(hd_piece_maker_t *k, hd_piece_t *piece) {
  static const hd_env_t no_sizes = {0};
  hd_arena_t *arena = &k->turn->values.arena;
  const hd_program_t *program = &k->turn->segment.program;
  uint32_t count = program->entry->num_params;
  piece->slots = HD_ARENA_ARRAY(arena, hd_slot_t, count + 1);
  memcpy(piece->slots, k->turn->segment.slots, count * sizeof(hd_slot_t));
  piece->recorded = HD_ARENA_ARRAY(arena, hd_address_t, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    const hd_var_t *param = program->entry->params[i];
    int64_t bytes;
    if (i >= k->turn->segment.first_constant &&
        i < k->turn->segment.end_constant)
      continue;
    if (!hd_storage_bytes(&no_sizes, arena, param->tensor, &bytes))
      return hd_error(&hd_model_context(k->r->m)->diags, (hd_loc_t){0},
                      HD_E0309, param->name);
    piece->slots[i] = (hd_slot_t){.var = param, .bytes = (size_t)bytes};
  }
  return true;
}

// What a bucket takes besides has memory of its own.
static bool take_inputs(hd_piece_maker_t *k, hd_piece_t *piece) {
  hd_store_t *store = &k->turn->values;
  hd_arena_t *arena = &store->arena;
  const hd_bucket_t *bucket = k->turn->bucket;
  const hd_graph_t *graph = bucket ? bucket->graph : k->stop.graph;
  size_t inputs = k->stop.inputs.size;
  piece->num_extras = graph->inputs.size - inputs;
  piece->params = HD_ARENA_ARRAY(arena, int, inputs + 1);
  piece->extras = HD_ARENA_ARRAY(arena, int, piece->num_extras + 1);
  for (size_t i = 0; i < graph->inputs.size; i++)
    *(i < inputs ? &piece->params[i] : &piece->extras[i - inputs]) =
        find_param(k->turn, graph->inputs.data[i]);
  for (size_t i = 0; i < piece->num_extras; i++) {
    const hd_value_t *value = graph->inputs.data[inputs + i];
    int n = piece->extras[i];
    if (n < 0)
      continue;
    if (!hd_store_place(store, value, piece->slots[n].var, false))
      return false;
    piece->slots[n] = hd_store_find(store, value)->slot;
  }
  return true;
}

static size_t find_value(const hd_value_t *const *values, size_t count,
                         const hd_value_t *value) {
  size_t i = 0;
  while (i < count && values[i] != value)
    i++;
  return i;
}

// What passes have made of outputs: a value that comes in, another output, or
// something that depends on constants alone.
static bool take_outputs(hd_piece_maker_t *k, hd_piece_t *piece) {
  hd_turn_t *turn = k->turn;
  const hd_graph_t *last = turn->last;
  const hd_graph_t *graph = turn->bucket ? turn->bucket->graph : k->stop.graph;
  size_t count = last->outputs.size, n = turn->segment.end_constant;
  hd_piece_output_t *outputs =
      HD_ARENA_ARRAY(&turn->values.arena, hd_piece_output_t, count + 1);
  piece->outputs = outputs;
  for (size_t i = 0; i < count; i++) {
    const hd_value_t *value = last->outputs.data[i];
    size_t input = find_value(graph->inputs.data, piece->num_inputs, value);
    size_t again = find_value(last->outputs.data, i, value);
    if (turn->segment.slots && turn->planned[i])
      outputs[i] = (hd_piece_output_t){HD_GIVES_PARAM, n++, NULL};
    else if (input < piece->num_inputs)
      outputs[i] = (hd_piece_output_t){HD_GIVES_INPUT, input, NULL};
    else if (again < i)
      outputs[i] = (hd_piece_output_t){HD_GIVES_AGAIN, again, NULL};
    else
      outputs[i] = (hd_piece_output_t){HD_GIVES_DATA, 0,
                                       hd_model_fetch(k->r->m, turn, value)};
    if (outputs[i].gives == HD_GIVES_DATA && !outputs[i].data)
      return false;
  }
  return true;
}

static size_t bytes_of(const hd_turn_t *turn) {
  size_t bytes = hd_arena_bytes(&turn->module->arena) +
                 hd_arena_bytes(&turn->values.arena);
  return turn->segment.slots ? bytes + hd_turn_bytes(turn) +
                                   (size_t)turn->segment.program.block_bytes
                             : bytes;
}

// False after an error, or where it is refused.
static bool make_piece(hd_piece_maker_t *k, hd_piece_t *piece) {
  hd_trail_run_t *r = k->r;
  hd_arena_t *arena = &k->turn->values.arena;
  size_t looks = r->looks.size;
  int64_t *numbers = HD_ARENA_ARRAY(&r->arena, int64_t, looks + 1);
  int64_t *bounds = HD_ARENA_ARRAY(arena, int64_t, looks + 1);
  for (size_t i = 0; i < looks; i++) {
    bounds[i] = k->bounds[i];
    numbers[i] = bounds[i] ? bounds[i] : r->looks.data[i].number;
  }
  if (!hd_piece_walk(k, numbers, r->before ? r->before->piece->leader : NULL,
                     &k->stop))
    return false;
  r->trail->unfit |= k->stop.packed;
  size_t nodes = k->stop.graph->nodes.size;
  if (r->trail->unfit || (nodes && k->bounded && !hd_piece_bucket(k, numbers)))
    return false;
  if (nodes && !compile(k))
    return false;
  k->turn->expander = k->stop.x;
  const hd_find_t *find = hd_expander_find(k->stop.x);
  *piece = (hd_piece_t){.turn = k->turn,
                        .leader = k->stop.x,
                        .bounds = bounds,
                        .weights_bytes = k->weights_bytes,
                        .most = find ? find->most : INT64_MAX,
                        .num_inputs = k->stop.inputs.size,
                        .inputs = k->stop.inputs.data,
                        .num_outputs = k->stop.graph->outputs.size};
  if (!nodes)
    return true;
  if (k->turn->segment.slots &&
      (!take_slots(k, piece) || !take_inputs(k, piece)))
    return false;
  return take_outputs(k, piece);
}

hd_piece_t *hd_trail_piece(hd_trail_run_t *r, const int64_t *bounds) {
  hd_model_t *m = r->m;
  hd_diagnostics_t *diags = &hd_model_context(m)->diags;
  hd_trail_key_t key = {0};
  hd_piece_maker_t k = {.r = r, .bounds = bounds};
  hd_piece_t made = {0};
  hd_trail_key(&r->arena, m, r->types, &r->looks, bounds, &key);
  hd_piece_t *piece = find_piece(r->trail, &key);
  if (piece) {
    piece->used = ++r->trail->clock;
    return piece->turn ? piece : NULL;
  }
  for (size_t i = 0; i < r->looks.size; i++)
    k.bounded |= bounds[i] != 0;
  k.turn = hd_model_begin_turn(m, r->types);
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(diags);
  bool ok = make_piece(&k, &made);
  if (!ok && k.bounded)
    hd_diagnostics_rewind(diags, mark);
  if (k.turn->segment.slots || !ok)
    explain(&k, !ok);
  if (!ok) {
    hd_model_end_turn(m, k.turn);
    m->running = NULL;
    if (k.bounded)
      add_piece(r, &key, &(hd_piece_t){0});
    return NULL;
  }
  made.bytes = bytes_of(k.turn);
  piece = add_piece(r, &key, &made);
  m->running = NULL;
  hd_trail_shrink(m, m->options.kept_bytes);
  if (k.turn->segment.slots)
    hd_model_count_compiled(m);
  return piece;
}
