// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs that are what an output of the run before was: a cache of keys and
// values. A session has memory for each such pair, on the device. Where the
// plan's parameter of the input is `inout` (Fusion/InPlace.h) nothing moves;
// else a run writes into a second piece of memory, and they change places.
//
// An executable of bounds has them with the strides of its bounds, and zeros
// are past their extents, which it may count on. Another one's strides differ:
// then what is there is moved, once.
#include "Runtime/SessionState.h"
#include "Runtime/Storage.h"

#include <stdio.h>
#include <string.h>

// --- Pairs ---

static const hd_inout_t *pair_at(const hd_session_t *s, size_t n) {
  return &s->model->options.inouts.pairs[n];
}

static int find_pair(const hd_session_t *s, size_t i, bool input) {
  for (size_t n = 0; n < s->model->options.inouts.count; n++)
    if ((input ? pair_at(s, n)->input : pair_at(s, n)->output) == i)
      return (int)n;
  return -1;
}

bool hd_session_has_state(const hd_session_t *s, size_t i, bool input) {
  return find_pair(s, i, input) >= 0;
}

void hd_session_find_callers(hd_session_t *s, const hd_device_tensor_t *in,
                             const hd_device_tensor_t *out) {
  for (size_t n = 0; n < s->model->options.inouts.count; n++) {
    const hd_device_tensor_t *from = in ? &in[pair_at(s, n)->input] : NULL;
    const hd_device_tensor_t *to = in ? &out[pair_at(s, n)->output] : NULL;
    bool same = in && from->address == to->address && from->bytes == to->bytes;
    s->states[n].callers = same ? from->address : 0;
  }
}

size_t hd_session_callers_input(const hd_session_t *s, size_t output) {
  int n = find_pair(s, output, false);
  return n >= 0 && s->states[n].callers ? pair_at(s, (size_t)n)->input
                                        : SIZE_MAX;
}

void hd_session_end_states(hd_session_t *s) {
  for (size_t n = 0; s->states && n < s->model->options.inouts.count; n++) {
    hd_state_t *state = &s->states[n];
    if (state->address)
      s->device->ops->free(s->device, state->address);
    if (state->spare)
      s->device->ops->free(s->device, state->spare);
    *state = (hd_state_t){0};
  }
}

// --- Memory ---

// At least so many bytes; what was there is lost where that is less.
static bool have(hd_session_t *s, const char *name, size_t bytes,
                 hd_address_t *address, size_t *found) {
  if (*address && *found >= bytes)
    return true;
  if (!hd_session_wait(s))
    return false;
  if (*address)
    s->device->ops->free(s->device, *address);
  *address = 0;
  if (!s->device->ops->alloc(s->device, name, bytes, address))
    return false;
  *found = bytes;
  return true;
}

// What a graph of the caller's writes the next contents into stays its.
static bool leave_spare(hd_session_t *s, hd_state_t *state) {
  if (state->captured && !hd_session_keep(s, state->spare))
    return false;
  if (state->captured)
    state->spare = state->spare_bytes = 0;
  state->captured = false;
  return true;
}

static bool have_spare(hd_session_t *s, const char *name, size_t bytes,
                       hd_state_t *state) {
  return (state->spare_bytes >= bytes || leave_spare(s, state)) &&
         have(s, name, bytes, &state->spare, &state->spare_bytes);
}

static void exchange(hd_state_t *state) {
  hd_address_t address = state->address;
  size_t bytes = state->bytes;
  state->address = state->spare;
  state->bytes = state->spare_bytes;
  state->spare = address;
  state->spare_bytes = bytes;
}

// --- Elements ---

typedef bool (*move_fn_t)(hd_session_t *s, hd_address_t to, hd_address_t from,
                          size_t bytes);

static bool bring(hd_session_t *s, hd_address_t to, hd_address_t from,
                  size_t bytes) {
  return s->device->ops->copy(s->device, to, from, bytes, NULL);
}

static bool fetch(hd_session_t *s, hd_address_t to, hd_address_t from,
                  size_t bytes) {
  return s->device->ops->download(s->device, (void *)(uintptr_t)to, from,
                                  bytes);
}

// Moves the elements of a type from where the strides of one shape have them to
// where those of another one do, in pieces that are whole in both.
static bool move(hd_session_t *s, const hd_tensor_type_t *type, hd_address_t to,
                 const int64_t *to_room, hd_address_t from,
                 const int64_t *from_room, move_fn_t move_piece) {
  int64_t count, piece = hd_host_element_bytes(type->type);
  int64_t to_stride = piece, from_stride = piece;
  unsigned axis = type->rank;
  for (bool whole = true; whole && axis > 0;) {
    axis--;
    whole = type->shape[axis] == to_room[axis] &&
            type->shape[axis] == from_room[axis];
    piece *= type->shape[axis];
    to_stride *= to_room[axis];
    from_stride *= from_room[axis];
  }
  hd_shape_count(type->shape, axis, &count);
  for (int64_t i = 0; piece && i < count; i++) {
    int64_t rest = i, into = 0, out_of = 0, a = to_stride, b = from_stride;
    for (unsigned k = axis; k-- > 0; rest /= type->shape[k]) {
      into += rest % type->shape[k] * a;
      out_of += rest % type->shape[k] * b;
      a *= to_room[k];
      b *= from_room[k];
    }
    if (!move_piece(s, to + (hd_address_t)into, from + (hd_address_t)out_of,
                    (size_t)piece))
      return false;
  }
  return true;
}

// Elements from elsewhere, with those strides, in a state's memory with zeros
// around them.
static bool lay_out(hd_session_t *s, const hd_tensor_type_t *type,
                    hd_address_t to, size_t bytes, const int64_t *to_room,
                    hd_address_t from, const int64_t *from_room) {
  return s->device->ops->fill(s->device, to, 0, 1, bytes) &&
         move(s, type, to, to_room, from, from_room, bring) &&
         s->device->ops->wait(s->device, NULL);
}

// --- Before a run ---

// The shape whose strides a value of the executable's graph has: that of the
// bounds, or, where it is one vector of elements, that at hand.
static void find_room(const hd_value_t *value, const hd_tensor_type_t *type,
                      int64_t *room) {
  bool shaped = value->rank == (int)type->rank;
  for (unsigned i = 0; i < type->rank; i++)
    room[i] = shaped ? value->shape[i]->u.i : type->shape[i];
}

static bool fail(hd_session_t *s, const hd_value_t *value, const char *why) {
  char text[300];
  snprintf(text, sizeof(text), "input '%.100s' has no data, and %s",
           hd_value_label(value), why);
  return hd_error(&s->context->diags, (hd_loc_t){0}, HD_E1003, text);
}

// Has a state be what a run begins with, with the strides of a room.
static bool settle(hd_session_t *s, hd_state_t *state, const hd_value_t *value,
                   const hd_tensor_type_t *type, hd_address_t start,
                   const int64_t *room, size_t bytes) {
  size_t size = sizeof(*room) * type->rank;
  int64_t count;
  hd_shape_count(type->shape, type->rank, &count);
  bool starts = start || count == 0;
  if (!starts && !state->there)
    return fail(s, value, "no run has left it");
  if (!starts && !hd_types_equal(&state->type, type, 1))
    return fail(s, value, "what the last run left is of another shape");
  if (!starts && memcmp(room, state->room, size) == 0)
    return true;
  if (!hd_session_wait(s))
    return false;
  state->there = false;
  if (starts)
    return have(s, value->name, bytes, &state->address, &state->bytes) &&
           lay_out(s, type, state->address, bytes, room, start, type->shape);
  if (!have_spare(s, value->name, bytes, state) ||
      !lay_out(s, type, state->spare, bytes, room, state->address, state->room))
    return false;
  exchange(state);
  s->device->ops->free(s->device, state->spare);
  state->spare = 0;
  return true;
}

static void point(hd_ready_t *r, hd_slot_t *slots, int n, hd_address_t address,
                  size_t bytes) {
  r->moved |= slots[n].address != address;
  slots[n] = (hd_slot_t){r->program.entry->params[n], address, bytes};
}

static bool param_bytes(hd_session_t *s, const hd_ready_t *r, int n,
                        size_t *bytes) {
  const hd_env_t none = {0};
  const hd_var_t *param = r->program.entry->params[n];
  hd_arena_t scratch;
  int64_t found = 0;
  hd_arena_init_local(&scratch, &s->context->budget);
  bool ok = hd_storage_bytes(&none, &scratch, param->tensor, &found);
  hd_arena_fini(&scratch);
  *bytes = (size_t)found;
  return ok ||
         hd_error(&s->context->diags, (hd_loc_t){0}, HD_E0309, param->name);
}

// Parameter `to` stores the state's next contents, beside those that it has.
static bool store_apart(hd_session_t *s, hd_ready_t *r, hd_state_t *state,
                        const hd_value_t *value, int to, hd_slot_t *slots) {
  size_t bytes;
  if (!param_bytes(s, r, to, &bytes) ||
      !have_spare(s, value->name, bytes, state))
    return false;
  point(r, slots, to, state->spare, bytes);
  return true;
}

// A run on the caller's memory: where the plan writes what comes out elsewhere,
// that is the state's second piece, and is copied after the run.
static bool take_callers(hd_session_t *s, hd_ready_t *r, hd_state_t *state,
                         const hd_value_t *value, int from, int to,
                         hd_slot_t *slots) {
  size_t bytes = 0;
  state->there = false;
  if (state->callers % HD_SESSION_ALIGN)
    return hd_error(&s->context->diags, (hd_loc_t){0}, HD_E1003,
                    "a tensor does not begin at a multiple of 16 bytes");
  if (from >= 0) {
    if (!param_bytes(s, r, from, &bytes))
      return false;
    point(r, slots, from, state->callers, bytes);
  }
  return to == from || store_apart(s, r, state, value, to, slots);
}

// Whether what comes in, or goes out, comes out nowhere else: it stays on the
// device, where nothing would bring it from to another output.
static bool is_alone(hd_session_t *s, const hd_ready_t *r, size_t n) {
  const hd_inout_t *pair = pair_at(s, n);
  const hd_graph_t *last = r->turn->last;
  const hd_value_t *in = hd_turn_input(r->turn, pair->input);
  const hd_value_t *out = last->outputs.data[pair->output];
  for (size_t i = 0; i < last->outputs.size; i++)
    if (i != pair->output &&
        (last->outputs.data[i] == in || last->outputs.data[i] == out))
      return hd_error(&s->context->diags, (hd_loc_t){0}, HD_E1104, in->name,
                      "it is kept from run to run, and is, or becomes, another "
                      "output, too");
  return true;
}

static bool take_state(hd_session_t *s, hd_ready_t *r, size_t n,
                       const hd_tensor_type_t *type, hd_address_t start,
                       hd_slot_t *slots) {
  hd_state_t *state = &s->states[n];
  const hd_inout_t *pair = pair_at(s, n);
  const hd_value_t *in = hd_turn_input(r->turn, pair->input);
  int from = r->inputs[pair->input], to = r->outputs[pair->output];
  int64_t room[HD_TENSOR_MAX_RANK];
  size_t bytes = 0;
  hd_tensor_type_t out = hd_ready_output(s, r, pair->output);
  if (out.type != type->type || out.rank != type->rank)
    return hd_error(&s->context->diags, (hd_loc_t){0}, HD_E1003,
                    "what comes out is of another type than the input that it "
                    "is one with");
  if (state->callers && to >= 0)
    return take_callers(s, r, state, in, from, to, slots);
  if (!is_alone(s, r, n) || !leave_spare(s, state))
    return false;
  if (from < 0 || to < 0)
    return hd_error(&s->context->diags, (hd_loc_t){0}, HD_E1104, in->name,
                    "it is kept from run to run, and no kernel reads it and "
                    "writes what comes out");
  find_room(in, type, room);
  if (!param_bytes(s, r, from, &bytes) ||
      !settle(s, state, in, type, start, room, bytes))
    return false;
  state->there = false; // Until the run has ended well.
  memcpy(state->room, room, sizeof(*room) * type->rank);
  point(r, slots, from, state->address, bytes);
  return to == from || store_apart(s, r, state, in, to, slots);
}

bool hd_session_can_be_captured(hd_session_t *s, const hd_ready_t *r) {
  for (size_t n = 0; n < s->model->options.inouts.count; n++) {
    int to = r->outputs[pair_at(s, n)->output];
    size_t bytes = 0;
    if (!s->states[n].callers || to < 0)
      return false;
    if (to != r->inputs[pair_at(s, n)->input] &&
        (!param_bytes(s, r, to, &bytes) || s->states[n].spare_bytes < bytes))
      return false;
  }
  return true;
}

void hd_session_hold_states(hd_session_t *s) {
  for (size_t n = 0; n < s->model->options.inouts.count; n++)
    s->states[n].captured = s->states[n].spare != 0;
}

bool hd_session_await_states(hd_session_t *s, const hd_device_tensor_t *in,
                             void *stream) {
  bool starts = false;
  for (size_t n = 0; n < s->model->options.inouts.count; n++)
    starts |= !s->states[n].callers && in[pair_at(s, n)->input].address;
  return !starts || !stream || s->device->ops->follow(s->device, stream, NULL);
}

bool hd_session_take_states(hd_session_t *s, hd_ready_t *r,
                            const hd_tensor_type_t *types,
                            const hd_host_tensor_t *arrays,
                            const hd_device_tensor_t *tensors,
                            hd_slot_t *slots) {
  for (size_t n = 0; n < s->model->options.inouts.count; n++) {
    uint32_t i = pair_at(s, n)->input;
    hd_address_t start =
        arrays ? (uintptr_t)arrays[i].data : tensors[i].address;
    if (!take_state(s, r, n, &types[i], start, slots))
      return false;
  }
  return true;
}

static bool keep_callers(hd_session_t *s, const hd_ready_t *r, size_t n) {
  const hd_state_t *state = &s->states[n];
  int to = r->outputs[pair_at(s, n)->output];
  size_t bytes = 0;
  return to == r->inputs[pair_at(s, n)->input] ||
         (param_bytes(s, r, to, &bytes) &&
          s->device->ops->copy(s->device, state->callers, state->spare, bytes,
                               s->stream));
}

bool hd_session_keep_states(hd_session_t *s, hd_ready_t *r) {
  for (size_t n = 0; n < s->model->options.inouts.count; n++) {
    hd_state_t *state = &s->states[n];
    const hd_inout_t *pair = pair_at(s, n);
    if (state->callers) {
      if (!keep_callers(s, r, n))
        return false;
      continue;
    }
    state->type = hd_ready_output(s, r, pair->output);
    state->there = true;
    if (r->inputs[pair->input] == r->outputs[pair->output])
      continue;
    exchange(state);
    find_room(r->turn->last->outputs.data[pair->output], &state->type,
              state->room);
  }
  return true;
}

bool hd_session_read_state(hd_session_t *s, size_t output,
                           hd_host_tensor_t *data) {
  int n = find_pair(s, output, false);
  *data = (hd_host_tensor_t){0};
  if (n < 0 || !s->states[n].there)
    return hd_error(&s->context->diags, (hd_loc_t){0}, HD_E1003,
                    "no run has left what is asked for");
  const hd_state_t *state = &s->states[n];
  return hd_session_wait(s) &&
         hd_host_tensor_init(data, &s->context->diags, &s->context->budget,
                             s->model->graph->outputs.data[output]->name,
                             state->type.type, state->type.shape,
                             state->type.rank) &&
         move(s, &state->type, (uintptr_t)data->data, state->type.shape,
              state->address, state->room, fetch);
}
