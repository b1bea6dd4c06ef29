// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A session's memory: a block of workspaces, which its executables have in
// turn. It grows with them, and stays where a graph of the caller's has it. And
// one of what comes in from the host and goes out there, likewise: so that many
// sizes take no more than the largest. What is for bounds has memory of its own
// for that, where zeros stay past the sizes at hand, and so have all where the
// sanitizer is to find what is past an end.
#include "Runtime/SessionState.h"

#include <stdlib.h>
#include <string.h>

static bool has_room(const hd_session_t *s, const hd_ready_t *r) {
  return r->program.apart ||
         (s->block && (size_t)r->program.block_bytes <= s->block_bytes);
}

bool hd_session_is_ready(const hd_session_t *s, const hd_tensor_type_t *types) {
  for (const hd_ready_t *r = s->ready; r; r = r->next)
    if (r->complete && hd_turn_is_for(s->model, r->turn, types))
      return has_room(s, r);
  return false;
}

bool hd_session_keep(hd_session_t *s, hd_address_t address) {
  hd_address_t *kept = realloc(s->kept, (s->num_kept + 1) * sizeof(*kept));
  if (!kept)
    return hd_error(&s->context->diags, (hd_loc_t){0}, HD_E0904,
                    "out of memory");
  s->kept = kept;
  s->kept[s->num_kept++] = address;
  return true;
}

// The block, which is to be another one, is nobody's; or stays for a graph of
// the caller's.
static bool leave_block(hd_session_t *s) {
  if (s->captured && !hd_session_keep(s, s->block))
    return false;
  if (!s->captured)
    s->device->ops->free(s->device, s->block);
  s->block = 0;
  s->captured = false;
  return true;
}

bool hd_session_make_room(hd_session_t *s, hd_ready_t *r) {
  size_t bytes = (size_t)r->program.block_bytes;
  if (r->program.apart)
    return true;
  if (!has_room(s, r)) {
    if (!hd_session_wait(s) || (s->block && !leave_block(s)))
      return false;
    hd_session_may_reclaim(s, true);
    bool ok =
        s->device->ops->alloc(s->device, "the workspaces", bytes, &s->block);
    hd_session_may_reclaim(s, false);
    if (!ok)
      return false;
    s->block_bytes = bytes;
  }
  hd_program_place(&r->program, s->block);
  return true;
}

// --- What comes in and goes out ---

enum { ALIGN = 256 };

typedef bool place_fn_t(hd_session_t *s, hd_ready_t *r, const hd_value_t *value,
                        int param);

// Does it to each value that is not a pair's.
static bool for_each(hd_session_t *s, hd_ready_t *r, place_fn_t *place) {
  const hd_graph_t *last = r->turn->last;
  const hd_bucket_t *bucket = r->turn->bucket;
  size_t inputs = s->model->graph->inputs.size;
  bool ok = true;
  for (size_t i = 0; ok && i < inputs; i++)
    ok = r->inputs[i] < 0 || hd_session_has_state(s, i, true) ||
         place(s, r, hd_turn_input(r->turn, i), r->inputs[i]);
  for (size_t i = 0; ok && bucket && i + inputs < bucket->graph->inputs.size;
       i++)
    ok = r->extras[i] < 0 ||
         place(s, r, bucket->graph->inputs.data[inputs + i], r->extras[i]);
  for (size_t i = 0; ok && i < last->outputs.size; i++)
    ok = r->outputs[i] < 0 || hd_session_has_state(s, i, false) ||
         place(s, r, last->outputs.data[i], r->outputs[i]);
  return ok;
}

static bool alone(hd_session_t *s, hd_ready_t *r, const hd_value_t *value,
                  int param) {
  (void)s;
  return hd_store_place(&r->values, value, r->program.entry->params[param],
                        false);
}

// In the session's block, behind what is there; nowhere where there is no block
// yet, so that it is known how large it is to be.
static bool lay(hd_session_t *s, hd_ready_t *r, const hd_value_t *value,
                int param) {
  hd_address_t at = r->placed ? s->values + r->values_bytes : 0;
  if (!hd_store_lay(&r->values, value, r->program.entry->params[param], at))
    return false;
  size_t bytes = hd_store_find(&r->values, value)->slot.bytes;
  r->values_bytes += (bytes + ALIGN - 1) / ALIGN * ALIGN;
  return true;
}

static bool point(hd_session_t *s, hd_ready_t *r, const hd_value_t *value,
                  int param) {
  (void)s;
  r->slots[param] = hd_store_find(&r->values, value)->slot;
  return true;
}

static bool lay_all(hd_session_t *s, hd_ready_t *r) {
  r->placed = 0;
  r->values_bytes = 0;
  if (!for_each(s, r, lay))
    return false;
  size_t bytes = r->values_bytes;
  if (bytes > s->values_bytes) {
    if (s->values)
      s->device->ops->free(s->device, s->values);
    s->values = 0;
    s->values_bytes = 0;
    if (!s->device->ops->alloc(s->device, "inputs and outputs", bytes,
                               &s->values))
      return false;
    s->values_bytes = bytes;
  }
  r->values_bytes = 0;
  r->placed = s->values;
  return for_each(s, r, lay);
}

static void begin_slots(hd_ready_t *r) {
  uint32_t params = r->program.entry->num_params;
  r->slots = HD_ARENA_ARRAY(&r->values.arena, hd_slot_t, params + 1);
  memcpy(r->slots, r->turn->segment.slots, params * sizeof(*r->slots));
}

bool hd_session_place(hd_session_t *s, hd_ready_t *r) {
  bool shares = !r->turn->bucket && !r->program.apart;
  if (r->slots && (!shares || (r->placed && r->placed == s->values)))
    return true;
  hd_session_may_reclaim(s, true);
  if (!r->slots)
    begin_slots(r);
  bool ok =
      (shares ? lay_all(s, r) : for_each(s, r, alone)) && for_each(s, r, point);
  if (!ok || (r->turn->bucket && !hd_session_clear_bucket(s, r)))
    r->slots = NULL;
  hd_session_may_reclaim(s, false);
  return r->slots != NULL;
}
