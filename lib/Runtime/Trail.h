// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs of a graph that looks at data, by what is known of earlier ones. Between
// two looks lies a segment. What a look gives is, as far as the walk goes on by
// it, often one number: how many were found (NonZero), one integer (the length
// of a Range). So a segment is compiled once for all numbers up to a bound, a
// power of two or as many as there can be (Fusion/Bucket), and what follows for
// the numbers at hand (extents, shapes) is kept for each set of them:
//
//   piece  a segment's program, for looks up to bounds
//   leg    what a run does after looks that gave just this: a piece with its
//          extents, and what is looked at then, or what comes out
//
// A run goes from leg to leg, and walks where one is new. A segment that cannot
// be so (the bucket says why) has a piece for each set of numbers, as those
// below HD_BUCKET_LEAST_EXTENT have; and whatever else a look gives is compared
// byte by byte. Both are ended by least recent use beyond bounds in bytes.
//
// All is in the model's world: a run belongs to one thread until it ends.
//
// Trail.c: runs; TrailLeg.c: legs; TrailPiece.c: pieces; TrailBucket.c: their
// buckets; TrailWalk.c: walks to where looks lead; TrailRoom.c: memory on the
// device.
#ifndef HIDET_RUNTIME_TRAIL_H
#define HIDET_RUNTIME_TRAIL_H

#include "Runtime/ModelState.h"

enum { HD_TRAIL_CHAINS = 256, HD_TRAIL_LEG_BYTES = 2 << 20 };
#define HD_NOT_HELD SIZE_MAX

// What a look has given.
typedef struct hd_look {
  bool finds;                   // How many were found: number. Else elements,
  const hd_host_tensor_t *data; // of the run,
  bool is_number;               // a single integer, the number.
  int64_t number;
  int64_t most;  // That the number can be; INT64_MAX: it is not known.
  size_t wanted; // The number of the value that was looked at.
} hd_look_t;

typedef HD_VEC(hd_look_t) hd_looks_t;
typedef HD_VEC(unsigned char) hd_trail_key_t;

// Memory on the device, taken for a run.
typedef struct hd_room {
  hd_address_t address;
  size_t bytes;
  bool taken;
  struct hd_room *next;
} hd_room_t;

// A value between pieces. They are numbered: the inputs, then what each segment
// gives and each look finds, as they come.
typedef struct hd_held {
  hd_tensor_type_t type;
  const hd_host_tensor_t *host; // NULL: not there.
  hd_room_t *room;              // Likewise.
} hd_held_t;

typedef enum hd_gives {
  HD_GIVES_PARAM, // The plan's of that number.
  HD_GIVES_INPUT, // What the piece takes at that number.
  HD_GIVES_AGAIN, // What it gives at that number.
  HD_GIVES_DATA,  // Of constants alone.
} hd_gives_t;

typedef struct hd_piece_output {
  hd_gives_t gives;
  size_t number;
  const hd_host_tensor_t *data;
} hd_piece_output_t;

typedef struct hd_piece {
  const unsigned char *key;
  size_t key_bytes;
  uint64_t hash;
  hd_turn_t *turn; // Whose module has all of it. NULL: it was refused.
  const hd_expander_t *leader;
  const int64_t *bounds; // Of each look; 0: it is for what that gave alone.
  int64_t most; // That the next look can find; INT64_MAX: it is not known.
  const hd_graph_t *graph;
  size_t num_inputs, num_outputs, num_extras;
  const size_t *inputs; // The numbers of what it takes.
  // Where something is computed: the plan's parameters, and which are the
  // inputs and the bucket's others; -1: none.
  hd_slot_t *slots;
  int *params, *extras;
  hd_piece_output_t *outputs;
  int64_t limit; // hd_trail_limit() for less; 0: not known, -1: none.
  bool ran;
  hd_recording_t *recording;   // Of the last run; NULL: none.
  hd_address_t *recorded;      // Where the parameters were.
  const struct hd_leg *staged; // Whose extents are on the device.
  int64_t weights_bytes;
  size_t bytes;
  uint64_t used;
  struct hd_piece *next;
} hd_piece_t;

typedef struct hd_leg_result {
  size_t held;                      // A value's number, or HD_NOT_HELD.
  const hd_host_tensor_t *constant; // Likewise; NULL: nothing is there.
} hd_leg_result_t;

typedef struct hd_leg {
  hd_arena_t arena;
  const unsigned char *key;
  size_t key_bytes;
  uint64_t hash, used;
  bool complete; // False where the work unwound.
  hd_piece_t *piece;
  const int64_t *extents;
  const hd_host_tensor_t *const *given;
  const hd_tensor_type_t *outputs; // Of the piece.
  // What is looked at next, values by their numbers; or all that comes out.
  bool done;
  size_t wanted;
  const hd_find_t *find; // NULL: at the elements of that.
  hd_leg_result_t inputs[HD_FIND_INPUTS];
  const hd_leg_result_t *results;
  struct hd_leg *next;
} hd_leg_t;

typedef struct hd_trail {
  hd_leg_t *legs[HD_TRAIL_CHAINS];
  size_t leg_bytes;
  hd_piece_t *pieces;
  hd_room_t *rooms;
  uint64_t clock, began; // When the run at work did.
  bool unfit;            // A value is not what can be between pieces.
} hd_trail_t;

// A run on its way.
typedef struct hd_trail_run {
  hd_model_t *m;
  hd_trail_t *trail;
  hd_arena_t arena;
  const hd_tensor_type_t *types; // Of the inputs.
  HD_VEC(hd_held_t) held;
  hd_looks_t looks;
  hd_trail_key_t key;
  hd_leg_t *before; // The last leg; NULL: none yet.
} hd_trail_run_t;

// --- Trail.c ---

// Whether runs of the model may go by it.
bool hd_trail_may(const hd_model_t *m);
// In the model's world: runs the graph on inputs of these types. False after an
// error, and where trail->unfit is set by then: nothing has come out.
bool hd_trail_run(hd_model_t *m, hd_context_t *caller,
                  const hd_tensor_type_t *types, const hd_host_tensor_t *data,
                  hd_host_tensor_t *outputs);
// Whether a leg is there for inputs of these types.
bool hd_trail_knows(hd_model_t *m, const hd_tensor_type_t *types);
// Ends what no run is at work with; whether there was any.
bool hd_trail_reclaim(hd_model_t *m);
void hd_trail_end(hd_model_t *m);

// --- TrailLeg.c ---

// What looks gave, as a leg or, with bounds, a piece is found by it.
void hd_trail_key(hd_arena_t *arena, const hd_model_t *m,
                  const hd_tensor_type_t *types, const hd_looks_t *looks,
                  const int64_t *bounds, hd_trail_key_t *key);
// The leg for the run's looks, made where there is none; NULL after an error.
hd_leg_t *hd_trail_leg(hd_trail_run_t *r);
hd_leg_t *hd_trail_find_leg(hd_trail_t *trail, const hd_trail_key_t *key);
void hd_trail_drop_legs(hd_model_t *m, size_t most, const hd_piece_t *of);

// --- TrailPiece.c ---

// The piece for the run's looks up to bounds, made where there is none. NULL
// where it is refused (bounds are not all 0), or after an error.
hd_piece_t *hd_trail_piece(hd_trail_run_t *r, const int64_t *bounds);
// What is there for bounds, made or refused; NULL: nothing.
hd_piece_t *hd_trail_find_piece(hd_trail_run_t *r, const int64_t *bounds);
// Ends pieces that this run has not used, the one used longest ago first, until
// the others take no more than so many bytes; whether there was one.
bool hd_trail_shrink(hd_model_t *m, size_t most);
void hd_trail_drop_recording(hd_device_t *device, hd_piece_t *piece);

// --- TrailWalk.c ---

// Where a walk has come to.
typedef struct hd_stop {
  hd_expander_t *x;
  bool done;
  // The segment before it: takes what its nodes read, and gives what they do.
  const hd_graph_t *graph;
  HD_VEC(size_t) inputs;            // The numbers of what it takes.
  hd_ptr_map_t numbers;             // For values their numbers + 1.
  size_t count;                     // Of those.
  bool packed;                      // One of them is of elements below a byte.
  const hd_value_t *const *results; // Where it is done.
} hd_stop_t;

// A value's number + 1; 0: it has none.
size_t hd_stop_number(const hd_stop_t *stop, const hd_value_t *value);

// Walks by looks, whose numbers are these instead where they are not NULL, and
// by the choices of a leader (NULL: its own). All is made in the module. False
// where it does not come there, which may have been reported.
bool hd_trail_walk(const hd_model_t *m, hd_module_t *module,
                   const hd_tensor_type_t *types, const hd_looks_t *looks,
                   const int64_t *numbers, const hd_expander_t *leader,
                   hd_stop_t *stop);

// --- TrailBucket.c ---

// A piece in the making.
typedef struct hd_piece_maker {
  hd_trail_run_t *r;
  hd_turn_t *turn;
  const int64_t *bounds;
  bool bounded;
  int64_t weights_bytes;
  hd_stop_t stop; // At the bounds.
  hd_bucket_refusal_t refusal;
} hd_piece_maker_t;

// Walks to the run's looks with these numbers (NULL: their own), in the turn's
// module.
bool hd_piece_walk(hd_piece_maker_t *k, const int64_t *numbers,
                   const hd_expander_t *leader, hd_stop_t *stop);
// Sets the turn's bucket, of what is at the bounds; numbers: there. False where
// it is refused.
bool hd_piece_bucket(hd_piece_maker_t *k, int64_t *numbers);
// The largest bound of the last look, less than the one among those, with which
// the segment is the same graph as with the numbers at hand.
int64_t hd_trail_limit(hd_trail_run_t *r, const int64_t *bounds);

// --- TrailRoom.c ---

// Memory for a value of so many bytes; cleared: of zeros, where it is new. NULL
// after an error.
hd_room_t *hd_trail_room(hd_model_t *m, const char *name, size_t bytes,
                         bool cleared);
// A run begins, or has ended: nobody has any.
void hd_trail_leave_rooms(hd_model_t *m);
// Frees what nobody has; whether there was some.
bool hd_trail_free_rooms(hd_model_t *m);
// The value in the host's memory; NULL after an error.
const hd_host_tensor_t *hd_trail_fetch(hd_trail_run_t *r, size_t held);
// The value on the device, with at least so many bytes behind it; false after
// an error.
bool hd_trail_place(hd_trail_run_t *r, size_t held, size_t bytes,
                    hd_address_t *address);

#endif
