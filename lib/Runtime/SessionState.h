// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of a session share (Session.c: executables made ready, and
// runs on the host's arrays; SessionEnqueue.c: runs on the device's).
#ifndef HIDET_RUNTIME_SESSIONSTATE_H
#define HIDET_RUNTIME_SESSIONSTATE_H

#include "Runtime/ModelState.h"

// An executable, with what a run of it changes.
typedef struct hd_ready {
  hd_turn_t *turn;
  hd_program_t program; // It shares the executable's.
  hd_store_t values;    // Inputs and outputs.
  // The plan's parameters, for runs on the host's arrays (NULL: none yet), and
  // on the device's.
  hd_slot_t *slots, *given;
  hd_address_t placed;   // The session's block that slots are in; 0: memory of
                         // their own,
  size_t values_bytes;   // and how much of it they take.
  int *inputs, *outputs; // Of each the number of its parameter; -1: none.
  // Of a bucket: parameters of its extents and of what is given, one after the
  // other; the shapes at hand, and those whose are on the device.
  int *extras;
  const hd_fit_t *fit, *staged;
  hd_recording_t *recording; // Of the last run on the device's; NULL: none.
  hd_address_t recorded_block;
  bool stale;    // Launches were given other addresses than it has, since.
  bool moved;    // What is given lies elsewhere than it did there.
  bool captured; // A graph of the caller's has a run of it: it stays.
  bool complete; // False where the work unwound.
  struct hd_ready *next;
} hd_ready_t;

// What a session has of a pair of an input and an output that are one
// (hd_model_options_t.inouts).
typedef struct hd_state {
  // Its memory, and where a run that does not store it there puts the next.
  hd_address_t address, spare;
  size_t bytes, spare_bytes;
  bool captured;                    // A graph of the caller's has the spare.
  bool there;                       // The last run left something,
  hd_tensor_type_t type;            // of this type,
  int64_t room[HD_TENSOR_MAX_RANK]; // with the strides of this shape.
  hd_address_t callers; // The run at hand is on the caller's memory; 0: on it.
} hd_state_t;

struct hd_session {
  hd_model_t *model;
  bool owns_model;
  hd_context_t *context;
  hd_device_t *device;
  hd_session_stats_t stats;
  hd_ready_t *ready;  // Used last first.
  hd_ready_t *now;    // The last run's; NULL: it has none.
  hd_address_t block; // The workspaces of each, in turn.
  size_t block_bytes;
  hd_address_t values; // Inputs and outputs of each, in turn.
  size_t values_bytes;
  bool captured;      // A graph of the caller's has the block,
  hd_address_t *kept; // or one of these, which it was before.
  size_t num_kept;
  hd_state_t *states; // One for each of the model's pairs.
  void *stream;       // That the last enqueued run is on,
  bool pending;       // and perhaps not done yet.
};

// The type of an output for the sizes at hand.
hd_tensor_type_t hd_ready_output(const hd_session_t *s, const hd_ready_t *r,
                                 size_t i);

// The executable for these types, ready, at the front; compiled where it is
// new. inputs: NULL, or what may be looked at: then what cannot be kept has
// been run, and *ready is NULL. False after an error.
bool hd_session_make_ready(hd_session_t *s, const hd_tensor_type_t *types,
                           const hd_host_tensor_t *inputs,
                           hd_host_tensor_t *outputs, hd_ready_t **ready);
// Whether the device may end what else the session and its model keep, for want
// of memory: while they take some.
void hd_session_may_reclaim(hd_session_t *s, bool may);
// An output for the host; without data where it is a pair's.
bool hd_session_make_output(hd_session_t *s, const hd_ready_t *r, size_t i,
                            hd_host_tensor_t *output);

// --- SessionRoom.c ---

// Whether an executable is ready for these types, and has workspaces: then a
// run takes no memory and compiles nothing.
bool hd_session_is_ready(const hd_session_t *s, const hd_tensor_type_t *types);
// Keeps memory to the session's end. False after an error.
bool hd_session_keep(hd_session_t *s, hd_address_t address);
// Has what comes in and goes out be in memory of the session's own: it is there
// until another executable is placed.
bool hd_session_place(hd_session_t *s, hd_ready_t *r);
// Workspaces for it; where they have to grow, all that was enqueued is done.
bool hd_session_make_room(hd_session_t *s, hd_ready_t *r);

// --- SessionBucket.c ---

// Has an executable of bounds, which is known to serve them, be for inputs of
// these types; true.
bool hd_session_fit(hd_session_t *s, hd_ready_t *r,
                    const hd_tensor_type_t *types);
// Puts zeros where elements come in, so that what is past the first shapes is
// something.
bool hd_session_clear_bucket(hd_session_t *s, hd_ready_t *r);
// Brings extents, and what depends on them, to the device, where others are
// there: waits for what was enqueued then.
bool hd_session_fill_extents(hd_session_t *s, hd_ready_t *r);
// That, and elements of the shapes at hand.
bool hd_session_fill_bucket(hd_session_t *s, hd_ready_t *r,
                            const hd_host_tensor_t *inputs);
// outputs as from hd_session_run().
bool hd_session_take_bucket(hd_session_t *s, hd_ready_t *r,
                            hd_host_tensor_t *outputs);

// --- SessionInOut.c ---

// Whether an input, or an output, belongs to a pair.
bool hd_session_has_state(const hd_session_t *s, size_t i, bool input);
// Finds the pairs whose output the caller has given where its input is: a run
// is on that memory, and the session's is not used. in NULL: it has none.
void hd_session_find_callers(hd_session_t *s, const hd_device_tensor_t *in,
                             const hd_device_tensor_t *out);
// Whether each pair is such a one, and has what a run on it takes: nothing of
// the session's goes from one run to the next, and none takes memory.
bool hd_session_can_be_captured(hd_session_t *s, const hd_ready_t *r);
// Has what such a run is in stay as it is.
void hd_session_hold_states(hd_session_t *s);
// The input that an output is such a pair with; SIZE_MAX: none.
size_t hd_session_callers_input(const hd_session_t *s, size_t output);
// Before states are taken from tensors that a stream's work makes: the default
// stream, which copies what runs begin with, waits for that.
bool hd_session_await_states(hd_session_t *s, const hd_device_tensor_t *in,
                             void *stream);
// Before a run with inputs of these types: has each pair's parameters among the
// slots be its memory. What it begins with is an array's elements or, where
// those are NULL, a tensor's; without data it is what the last run left.
// r->moved is set where one lies elsewhere than it did. All that was enqueued
// is done where memory or layouts change. False after an error.
bool hd_session_take_states(hd_session_t *s, hd_ready_t *r,
                            const hd_tensor_type_t *types,
                            const hd_host_tensor_t *arrays,
                            const hd_device_tensor_t *tensors,
                            hd_slot_t *slots);
// After it, on the session's stream. False after an error.
bool hd_session_keep_states(hd_session_t *s, hd_ready_t *r);
void hd_session_end_states(hd_session_t *s);

// --- SessionEnqueue.c ---

void hd_session_drop_recording(hd_session_t *s, hd_ready_t *r);

#endif
