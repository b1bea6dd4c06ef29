// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs of a graph that looks at data: from leg to leg. What goes from piece to
// piece stays on the device; what is looked at comes to the host.
#include "Runtime/Trail.h"

#include <stdlib.h>
#include <string.h>

bool hd_trail_may(const hd_model_t *m) {
  return m->device && !m->options.watch && !m->options.inouts.count &&
         !hd_model_counts_steps(m) && !(m->trail && m->trail->unfit);
}

static hd_trail_t *trail_of(hd_model_t *m) {
  if (!m->trail)
    m->trail = calloc(1, sizeof(*m->trail));
  if (!m->trail)
    hd_budget_exhausted(&hd_model_context(m)->budget, HD_EXHAUSTED_MEMORY);
  return m->trail;
}

bool hd_trail_knows(hd_model_t *m, const hd_tensor_type_t *types) {
  hd_trail_key_t key = {0};
  hd_looks_t none = {0};
  hd_arena_t scratch;
  if (!m->trail || !hd_trail_may(m))
    return false;
  hd_arena_init_local(&scratch, &hd_model_context(m)->budget);
  hd_trail_key(&scratch, m, types, &none, NULL, &key);
  bool known = hd_trail_find_leg(m->trail, &key) != NULL;
  hd_arena_fini(&scratch);
  return known;
}

bool hd_trail_reclaim(hd_model_t *m) {
  if (!m->trail)
    return false;
  bool any = hd_trail_shrink(m, 0);
  return hd_trail_free_rooms(m) || any;
}

void hd_trail_end(hd_model_t *m) {
  if (!m->trail)
    return;
  m->trail->began = UINT64_MAX;
  hd_trail_drop_legs(m, 0, NULL);
  hd_trail_shrink(m, 0);
  hd_trail_leave_rooms(m);
  hd_trail_free_rooms(m);
  free(m->trail);
  m->trail = NULL;
}

// --- Pieces ---

static bool upload(hd_trail_run_t *r, const hd_piece_t *piece, int param,
                   const void *data, size_t bytes) {
  hd_device_t *device = r->m->device;
  return param < 0 || !bytes ||
         device->ops->upload(device, piece->slots[param].address, data, bytes);
}

// Extents, and constants that depend on them, where others are on the device.
static bool stage(hd_trail_run_t *r, const hd_leg_t *leg) {
  hd_piece_t *piece = leg->piece;
  const hd_bucket_t *bucket = piece->turn->bucket;
  size_t n = 0;
  if (!bucket || piece->staged == leg)
    return true;
  piece->staged = NULL;
  if (bucket->extents && !upload(r, piece, piece->extras[n++], leg->extents,
                                 bucket->num_extents * sizeof(int64_t)))
    return false;
  for (size_t i = 0; i < bucket->given.size; i++, n++)
    if (!upload(r, piece, piece->extras[n], leg->given[i]->data,
                leg->given[i]->bytes))
      return false;
  piece->staged = leg;
  return true;
}

// Memory for all that the plan is given; rooms: of what it gives.
static bool place(hd_trail_run_t *r, const hd_leg_t *leg, hd_room_t **rooms) {
  hd_piece_t *piece = leg->piece;
  bool bounded = piece->turn->bucket != NULL;
  for (size_t i = 0; i < piece->num_inputs; i++) {
    hd_slot_t *slot =
        piece->params[i] < 0 ? NULL : &piece->slots[piece->params[i]];
    if (slot &&
        !hd_trail_place(r, piece->inputs[i], slot->bytes, &slot->address))
      return false;
  }
  for (size_t i = 0; i < piece->num_outputs; i++) {
    const hd_piece_output_t *output = &piece->outputs[i];
    if (output->gives != HD_GIVES_PARAM)
      continue;
    hd_slot_t *slot = &piece->slots[output->number];
    rooms[i] = hd_trail_room(r->m, slot->var->name, slot->bytes,
                             bounded || !r->m->options.keep_layouts);
    if (!rooms[i])
      return false;
    slot->address = rooms[i]->address;
  }
  return true;
}

static void hold(hd_trail_run_t *r, const hd_leg_t *leg,
                 hd_room_t *const *rooms) {
  const hd_piece_t *piece = leg->piece;
  size_t first = r->held.size;
  for (size_t i = 0; i < piece->num_outputs; i++) {
    const hd_piece_output_t *output = &piece->outputs[i];
    hd_held_t held = {.type = leg->outputs[i], .room = rooms[i]};
    if (output->gives == HD_GIVES_INPUT)
      held = r->held.data[piece->inputs[output->number]];
    else if (output->gives == HD_GIVES_AGAIN)
      held = r->held.data[first + output->number];
    else if (output->gives == HD_GIVES_DATA)
      held.host = output->data;
    hd_vec_push(&r->arena, &r->held, held);
  }
}

static bool is_moved(const hd_piece_t *piece, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (piece->slots[i].address != piece->recorded[i])
      return true;
  return false;
}

// Has the recording be one of a run on what is placed.
static bool settle_recording(hd_device_t *device, hd_piece_t *piece) {
  hd_program_t *program = &piece->turn->segment.program;
  uint32_t count = program->entry->num_params;
  bool updated = false;
  if (piece->recording && !is_moved(piece, count))
    return true;
  for (uint32_t i = 0; i < count; i++)
    piece->recorded[i] = piece->slots[i].address;
  bool ok = !piece->recording || hd_program_update(program, piece->slots,
                                                   piece->recording, &updated);
  if (!updated)
    hd_trail_drop_recording(device, piece);
  if (!ok || updated)
    return ok;
  if (!device->ops->record_begin(device))
    return false;
  ok = hd_program_run(program, piece->slots);
  piece->recording = device->ops->record_end(device);
  if (!ok)
    hd_trail_drop_recording(device, piece);
  return piece->recording != NULL;
}

// What runs again is recorded, where a device does that.
static bool run_program(hd_device_t *device, hd_piece_t *piece) {
  double ms, us;
  if (!device->ops->replay || !piece->ran) {
    piece->ran = hd_program_run(&piece->turn->segment.program, piece->slots);
    return piece->ran;
  }
  return settle_recording(device, piece) &&
         device->ops->replay(device, piece->recording, &ms, &us);
}

static bool run_piece(hd_trail_run_t *r, const hd_leg_t *leg) {
  hd_piece_t *piece = leg->piece;
  hd_model_t *m = r->m;
  hd_room_t **rooms =
      HD_ARENA_ARRAY(&r->arena, hd_room_t *, piece->num_outputs + 1);
  if (piece->slots) {
    hd_model_segment_t *segment = &piece->turn->segment;
    if (!place(r, leg, rooms) || !stage(r, leg))
      return false;
    uint64_t start = hd_clock_ns();
    bool ok = run_program(m->device, piece);
    m->stats.run_ms += hd_ms_since(start);
    hd_model_segment_count(segment, &segment->program, &m->stats);
    m->stats.weights_bytes += piece->weights_bytes;
    if (!ok)
      return false;
  }
  hold(r, leg, rooms);
  return true;
}

// --- Looks ---

static bool find_values(hd_trail_run_t *r, const hd_leg_t *leg,
                        hd_look_t *look) {
  const hd_host_tensor_t *inputs[HD_FIND_INPUTS], *outputs[HD_FIND_OUTPUTS];
  const hd_find_t *find = leg->find;
  for (uint32_t i = 0; i < find->num_inputs; i++) {
    const hd_leg_result_t *input = &leg->inputs[i];
    inputs[i] = input->held == HD_NOT_HELD ? input->constant
                                           : hd_trail_fetch(r, input->held);
    if (input->held != HD_NOT_HELD && !inputs[i])
      return false;
  }
  if (!hd_find_run(hd_model_context(r->m), &r->arena, find, inputs, outputs,
                   &look->number))
    return false;
  look->finds = look->is_number = true;
  for (uint32_t i = 0; i < find->num_outputs; i++) {
    hd_held_t held = {.type = hd_tensor_type_of(outputs[i]),
                      .host = outputs[i]};
    hd_vec_push(&r->arena, &r->held, held);
  }
  return true;
}

static bool take_look(hd_trail_run_t *r, const hd_leg_t *leg) {
  hd_look_t look = {.wanted = leg->wanted, .most = leg->piece->most};
  if (leg->find) {
    if (!find_values(r, leg, &look))
      return false;
  } else {
    look.data = hd_trail_fetch(r, leg->wanted);
    if (!look.data)
      return false;
    look.is_number = look.data->count == 1 &&
                     hd_scalar_class(look.data->type) != HD_CLASS_FLOAT &&
                     hd_scalar_class(look.data->type) != HD_CLASS_BOOL;
    if (look.is_number)
      look.number = hd_host_tensor_get_int(look.data, 0);
  }
  hd_vec_push(&r->arena, &r->looks, look);
  return true;
}

// --- Runs ---

static bool follow(hd_trail_run_t *r) {
  for (;;) {
    hd_budget_check(&hd_model_context(r->m)->budget);
    hd_leg_t *leg = hd_trail_leg(r);
    if (!leg || !run_piece(r, leg))
      return false;
    r->before = leg;
    if (leg->done)
      return true;
    if (!take_look(r, leg))
      return false;
  }
}

// Nothing of the caller's unwinds here but what he has a hold on.
static bool take_outputs(hd_trail_run_t *r, hd_context_t *caller,
                         hd_host_tensor_t *outputs) {
  const hd_graph_t *graph = r->m->graph;
  hd_diagnostics_t *diags = &hd_model_context(r->m)->diags;
  hd_device_t *device = r->m->device;
  for (size_t i = 0; i < graph->outputs.size; i++) {
    const hd_leg_result_t *result = &r->before->results[i];
    const hd_held_t *held =
        result->constant ? NULL : &r->held.data[result->held];
    const hd_host_tensor_t *host = held ? held->host : result->constant;
    hd_tensor_type_t type = host ? hd_tensor_type_of(host) : held->type;
    if (!hd_host_tensor_init(&outputs[i], diags, &caller->budget,
                             graph->outputs.data[i]->name, type.type,
                             type.shape, type.rank))
      return false;
    if (host)
      memcpy(outputs[i].data, host->data, host->bytes);
    else if (outputs[i].bytes &&
             !device->ops->download(device, outputs[i].data,
                                    held->room->address, outputs[i].bytes))
      return false;
  }
  return true;
}

static bool reclaim(void *model) {
  hd_model_t *m = model;
  bool any = hd_model_reclaim(m);
  return hd_trail_reclaim(m) || any;
}

bool hd_trail_run(hd_model_t *m, hd_context_t *caller,
                  const hd_tensor_type_t *types, const hd_host_tensor_t *data,
                  hd_host_tensor_t *outputs) {
  hd_trail_run_t r = {.m = m, .trail = trail_of(m), .types = types};
  r.trail->began = ++r.trail->clock;
  hd_trail_leave_rooms(m);
  hd_arena_init_local(&r.arena, &hd_model_context(m)->budget);
  for (size_t i = 0; i < m->graph->inputs.size; i++) {
    hd_held_t held = {.type = types[i], .host = &data[i]};
    hd_vec_push(&r.arena, &r.held, held);
  }
  m->device->reclaim = reclaim;
  m->device->reclaim_argument = m;
  bool ok = follow(&r) && (!outputs || take_outputs(&r, caller, outputs));
  m->device->reclaim = NULL;
  r.trail->began = ++r.trail->clock; // Nothing is at work any more.
  hd_trail_leave_rooms(m);
  hd_arena_fini(&r.arena);
  return ok;
}
