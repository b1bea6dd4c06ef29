// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A run on tensors in the device's memory, on a stream of the caller's. Where a
// device records (hd_device_ops_t.replay), what a run launches is recorded once
// for an executable and enqueued as a whole; where addresses are others, the
// launches that are given them are updated. Else it is done at once.

#include "Runtime/SessionState.h"

#include <string.h>

hd_tensor_type_t hd_ready_output(const hd_session_t *s, const hd_ready_t *r,
                                 size_t i) {
  const hd_value_t *value = r->turn->last->outputs.data[i];
  if (r->turn->bucket)
    return hd_fit_output(s->model, r->turn, r->fit, i);
  hd_tensor_type_t type = {.type = value->type, .rank = (unsigned)value->rank};
  for (int k = 0; k < value->rank; k++)
    type.shape[k] = value->shape[k]->u.i;
  return type;
}

// Whether the stream is being captured. What is to become part of the caller's
// graph has to be there before.
static bool find_capture(hd_session_t *s, const hd_tensor_type_t *types,
                         void *stream, bool *captures) {
  *captures = false;
  if (!s->device->ops->captures)
    return true;
  if (!s->device->ops->captures(s->device, stream, captures))
    return false;
  if (!*captures || hd_session_is_ready(s, types))
    return true;
  return hd_error(&s->context->diags, (hd_loc_t){0}, HD_E1003,
                  "the stream is being captured, and the session has not been "
                  "prepared for these inputs (hidet_session_prepare())");
}

bool hd_session_describe(hd_session_t *s, const hd_tensor_type_t *inputs,
                         hd_tensor_type_t *outputs, void *stream) {
  hd_ready_t *r = NULL;
  hd_context_t *context = s->context;
  if (!s->device)
    return hd_error(&context->diags, (hd_loc_t){0}, HD_E1003,
                    "the session has no device");
  bool captures;
  if (!find_capture(s, inputs, stream, &captures) ||
      !hd_session_make_ready(s, inputs, NULL, NULL, &r))
    return false;
  if (!r)
    return hd_error(&context->diags, s->model->graph->loc, HD_E1104,
                    s->model->graph->name,
                    "nothing of it runs on the device, or its results are not "
                    "one program's");
  for (size_t i = 0; i < r->turn->last->outputs.size; i++)
    outputs[i] = hd_ready_output(s, r, i);
  return hd_session_make_room(s, r);
}

// --- Where things are ---

// Takes the caller's addresses.
static bool give(hd_session_t *s, hd_ready_t *r, const hd_device_tensor_t *in,
                 const hd_device_tensor_t *out) {
  const hd_func_t *entry = r->program.entry;
  size_t inputs = s->model->graph->inputs.size;
  size_t count = inputs + r->turn->last->outputs.size;
  for (size_t i = 0; i < count; i++) {
    int n = i < inputs ? r->inputs[i] : r->outputs[i - inputs];
    const hd_device_tensor_t *t = i < inputs ? &in[i] : &out[i - inputs];
    if (n < 0 || (i < inputs ? hd_session_has_state(s, i, true)
                             : hd_session_has_state(s, i - inputs, false)))
      continue;
    if (t->address % HD_SESSION_ALIGN && t->bytes)
      return hd_error(&s->context->diags, (hd_loc_t){0}, HD_E1003,
                      "a tensor does not begin at a multiple of 16 bytes");
    hd_slot_t *slot = &r->given[n];
    r->moved |= slot->address != t->address;
    *slot = (hd_slot_t){entry->params[n], t->address, t->bytes};
  }
  return true;
}

// Whether what a run writes lies apart from what else it is given.
static bool are_apart(const hd_session_t *s, size_t inputs, size_t outputs,
                      const hd_device_tensor_t *in,
                      const hd_device_tensor_t *out) {
  for (size_t i = 0; i < outputs; i++) {
    size_t own = hd_session_callers_input(s, i);
    for (size_t k = 0; k < inputs + i; k++) {
      const hd_device_tensor_t *t = k < inputs ? &in[k] : &out[k - inputs];
      if (k == own)
        continue;
      if (t->bytes && out[i].bytes && out[i].address < t->address + t->bytes &&
          t->address < out[i].address + out[i].bytes)
        return hd_error(&s->context->diags, (hd_loc_t){0}, HD_E1003,
                        "an output lies in the memory of another tensor");
    }
  }
  return true;
}

// An executable of bounds has room for them: what comes in is copied there, and
// what goes out from there.
static bool place_bucket(hd_session_t *s, hd_ready_t *r,
                         const hd_tensor_type_t *types,
                         const hd_device_tensor_t *in) {
  if (!hd_session_place(s, r) || !hd_session_fill_extents(s, r) ||
      !hd_session_take_states(s, r, types, NULL, in, r->slots))
    return false;
  memcpy(r->given, r->slots, r->program.entry->num_params * sizeof(*r->given));
  return true;
}

static bool copy_bucket(hd_session_t *s, hd_ready_t *r, const int *params,
                        size_t count, const hd_device_tensor_t *tensors,
                        bool in) {
  for (size_t i = 0; i < count; i++) {
    const hd_device_tensor_t *t = &tensors[i];
    if (params[i] < 0 || !t->bytes || hd_session_has_state(s, i, in))
      continue;
    hd_address_t own = r->slots[params[i]].address;
    if (!s->device->ops->copy(s->device, in ? own : t->address,
                              in ? t->address : own, t->bytes, s->stream))
      return false;
  }
  return true;
}

// --- Runs ---

void hd_session_drop_recording(hd_session_t *s, hd_ready_t *r) {
  if (r->recording)
    s->device->ops->recording_free(s->device, r->recording);
  r->recording = NULL;
}

static bool record(hd_session_t *s, hd_ready_t *r) {
  hd_device_t *device = s->device;
  hd_session_drop_recording(s, r);
  if (!device->ops->record_begin(device))
    return false;
  bool ok = hd_program_run(&r->program, r->given);
  r->recording = device->ops->record_end(device);
  r->recorded_block = s->block;
  r->stale = false;
  if (!ok)
    hd_session_drop_recording(s, r);
  return r->recording != NULL;
}

// Outputs that no launch writes: inputs that come out, and constants.
static bool copy_rest(hd_session_t *s, hd_ready_t *r,
                      const hd_device_tensor_t *in,
                      const hd_device_tensor_t *out) {
  const hd_graph_t *last = r->turn->last;
  for (size_t i = 0; i < last->outputs.size; i++) {
    const hd_value_t *value = last->outputs.data[i];
    hd_address_t from = 0;
    if (r->outputs[i] >= 0 || !out[i].bytes ||
        hd_session_has_state(s, i, false))
      continue;
    for (size_t k = 0; k < s->model->graph->inputs.size; k++)
      if (hd_turn_input(r->turn, k) == value)
        from = in[k].address;
    for (size_t k = 0; k < i; k++)
      if (last->outputs.data[k] == value)
        from = hd_session_has_state(s, k, false)
                   ? r->given[r->outputs[k]].address
                   : out[k].address;
    if (!from)
      from = (uintptr_t)hd_store_find(&r->values, value)->data->data;
    if (!s->device->ops->copy(s->device, out[i].address, from, out[i].bytes,
                              s->stream))
      return false;
  }
  return true;
}

// Has the recording be one of a run on what is given.
static bool settle_recording(hd_session_t *s, hd_ready_t *r) {
  bool same = r->recording && !r->stale && r->recorded_block == s->block;
  bool updated = false;
  if (same && !r->moved)
    return true;
  if (same &&
      !hd_program_update(&r->program, r->given, r->recording, &updated)) {
    hd_session_drop_recording(s, r); // Some of it is updated.
    return false;
  }
  r->moved = !updated && !record(s, r);
  return !r->moved;
}

static bool enqueue_ready(hd_session_t *s, hd_ready_t *r) {
  hd_device_t *device = s->device;
  if (!device->ops->replay)
    return hd_program_run(&r->program, r->given);
  return settle_recording(s, r) &&
         device->ops->enqueue(device, r->recording, s->stream);
}

// What an executable of bounds has lies with their strides.
static bool are_placed(const hd_session_t *s, const hd_ready_t *r) {
  for (size_t i = 0; r->turn->bucket && i < r->turn->last->outputs.size; i++)
    if (hd_session_callers_input(s, i) != SIZE_MAX)
      return hd_error(&s->context->diags, s->model->graph->loc, HD_E1104,
                      s->model->graph->name,
                      "an executable of bounds has its own memory for an input "
                      "and an output that are one");
  return true;
}

static void leave_stream(void *device) {
  ((hd_device_t *)device)->ops->join(device, NULL);
}

// Puts the launches themselves on a stream that is being captured: they become
// part of the caller's graph, which has what they are given from then on. No
// memory is taken or given back meanwhile, nor a graph ended: a capture may be
// of all threads, and each of that would end it.
static bool capture(hd_session_t *s, hd_ready_t *r,
                    const hd_tensor_type_t *types, const hd_device_tensor_t *in,
                    const hd_device_tensor_t *out, void *stream) {
  size_t inputs = s->model->graph->inputs.size;
  if (r->turn->bucket || !hd_session_can_be_captured(s, r))
    return hd_error(&s->context->diags, s->model->graph->loc, HD_E1104,
                    s->model->graph->name,
                    "an executable of bounds, or with an input and an output "
                    "that are one, but not the caller's tensor in this and an "
                    "earlier run, cannot be part of a CUDA graph");
  if (!are_apart(s, inputs, r->turn->last->outputs.size, in, out) ||
      !hd_session_make_room(s, r) || !give(s, r, in, out) ||
      !hd_session_take_states(s, r, types, NULL, in, r->given))
    return false;
  r->stale = r->captured = s->captured = true;
  hd_session_hold_states(s);
  hd_cleanup_t cleanup;
  hd_budget_defer(&s->context->budget, &cleanup, leave_stream, s->device);
  s->device->ops->join(s->device, stream);
  bool ok = hd_program_run(&r->program, r->given);
  hd_budget_clean(&s->context->budget, &cleanup);
  void *before = s->stream;
  s->stream = stream;
  ok = ok && copy_rest(s, r, in, out) && hd_session_keep_states(s, r);
  s->stream = before;
  return ok;
}

bool hd_session_enqueue(hd_session_t *s, const hd_tensor_type_t *types,
                        const hd_device_tensor_t *in,
                        const hd_device_tensor_t *out, void *stream) {
  hd_ready_t *r = NULL;
  bool captures;
  if (!find_capture(s, types, stream, &captures))
    return false;
  if (!hd_session_make_ready(s, types, NULL, NULL, &r))
    return false;
  if (!r)
    return hd_error(&s->context->diags, s->model->graph->loc, HD_E1104,
                    s->model->graph->name, "nothing of it runs on the device");
  hd_session_find_callers(s, in, out);
  if (captures)
    return capture(s, r, types, in, out, stream);
  bool bounded = r->turn->bucket != NULL;
  size_t inputs = s->model->graph->inputs.size;
  size_t outputs = r->turn->last->outputs.size;
  if (!are_placed(s, r) || !are_apart(s, inputs, outputs, in, out) ||
      !hd_session_make_room(s, r) || !hd_session_await_states(s, in, stream) ||
      !(bounded ? place_bucket(s, r, types, in)
                : give(s, r, in, out) &&
                      hd_session_take_states(s, r, types, NULL, in, r->given)))
    return false;
  // Its workspaces are one run's after the other.
  if (s->pending && stream != s->stream &&
      !s->device->ops->follow(s->device, s->stream, stream))
    return false;
  s->stream = stream;
  s->pending = true;
  if ((bounded && !copy_bucket(s, r, r->inputs, inputs, in, true)) ||
      !enqueue_ready(s, r))
    return false;
  return (!bounded || copy_bucket(s, r, r->outputs, outputs, out, false)) &&
         copy_rest(s, r, in, out) && hd_session_keep_states(s, r);
}

bool hd_session_wait(hd_session_t *s) {
  if (!s->pending)
    return true;
  s->pending = false;
  return s->device->ops->wait(s->device, s->stream);
}
