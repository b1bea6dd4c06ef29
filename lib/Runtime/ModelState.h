// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of a model and its sessions share (Model.c: walks and what is
// kept of them; ModelSegment.c: what a segment of a walk computes;
// ModelCompile.c: its program; Session.c: runs).
#ifndef HIDET_RUNTIME_MODELSTATE_H
#define HIDET_RUNTIME_MODELSTATE_H

#include "Fusion/Bucket/Bucket.h"
#include "Runtime/Model.h"
#include "Runtime/Prepared.h"
#include "Runtime/Session.h"
#include "Runtime/Store.h"
#include "Schedule/Template/Machine.h"

// A segment, compiled.
typedef struct hd_model_segment {
  const hd_graph_t *graph;
  hd_module_t *made; // Its plan and kernels.
  hd_program_t program;
  hd_slot_t *slots; // The plan's parameters.
  // Those that depend on constants alone: from the first to before the end.
  uint32_t first_constant, end_constant;
  hd_inouts_t inouts; // Inputs and outputs of the graph that may be one.
} hd_model_segment_t;

// Sizes that an executable of bounds serves. It does not change.
typedef struct hd_fit {
  // The shapes of the inputs, then of the outputs, one after the other: there
  // is one of these for each length of a text.
  const int64_t *shapes;
  const int64_t *extents; // hd_bucket_t.extents
  const hd_host_tensor_t *const *given;
  struct hd_fit *next;
} hd_fit_t;

// A walk for one set of shapes, and what it made. One that is kept is an
// executable: of its slots, those of inputs and outputs are empty.
typedef struct hd_turn {
  hd_module_t *module; // A fork of the model's: what the walk makes.
  hd_expander_t *expander;
  hd_tensor_type_t *inputs;  // Of a bucket: at the bounds.
  const hd_bucket_t *bucket; // NULL: for these shapes alone.
  hd_tensor_type_t *outputs; // Of a bucket: types and ranks are these.
  _Atomic(hd_fit_t *) fits;  // Of a bucket: shapes that are known to be served.
  const hd_graph_t *last;
  // Which of its outputs have a parameter of their own of the plan, and for
  // each the number of an input's that it is stored in, -1: none; where it is
  // kept.
  const bool *planned;
  const int *stored_in;
  hd_store_t values;                // All but the model's constants.
  HD_VEC(hd_prepared_t *) prepared; // That it reads, where it is kept.
  bool alone;                       // What it prepares is its own.
  hd_model_segment_t segment;       // The one at work.
  size_t bytes;                     // Of what is made, about.
  unsigned users; // Sessions that have it: under the model's lock,
  uint64_t used;  // as is when one took it last.
  struct hd_turn *next;
} hd_turn_t;

struct hd_model {
  hd_module_t *module;
  const hd_graph_t *graph;
  hd_device_t *device;
  hd_model_options_t options;
  hd_session_stats_t stats; // Of the walk at work.
  hd_schedule_options_t schedules;
  bool prepares;            // What is compiled runs once, on constants.
  struct hd_trail *trail;   // Of runs that look at data; NULL: none yet.
  hd_ptr_map_t shared;      // The model's constants.
  hd_store_t constants;     // Those on the device, for every run.
  hd_numbering_t numbering; // Of what depends on them alone.
  hd_prepared_t *saved;     // Of the file: for each section; NULL: none yet.
  hd_fit_t *refused;        // Bounds without a bucket.
  int64_t *limits; // For each policy the largest size that the model goes with,
                   // where a power of two is beyond it; 0: not known.
  hd_turn_t *running; // Not kept yet: so that unwinding does not lose it.
  pthread_mutex_t own_world, *world;
  pthread_mutex_t lock; // Of what follows. Whoever has it waits for nothing.
  hd_turn_t *kept;
  uint64_t clock; // Counts what is taken.
  unsigned compiled, loaded;
};

static inline hd_context_t *hd_model_context(const hd_model_t *m) {
  return m->module->context;
}

static inline double hd_ms_since(uint64_t start) {
  return (double)(hd_clock_ns() - start) * 1e-6;
}

// --- Model.c ---

// Whether the executable is known to be for inputs of these types: one for each
// of the graph's.
bool hd_turn_is_for(const hd_model_t *m, const hd_turn_t *turn,
                    const hd_tensor_type_t *inputs);
// Whether it is for all sizes up to these.
bool hd_turn_has_bounds(const hd_model_t *m, const hd_turn_t *turn,
                        const hd_tensor_type_t *bounds);
// The executable for inputs of these types, or with these bounds, with the
// caller as a user; NULL where there is none.
hd_turn_t *hd_model_find(hd_model_t *m, const hd_tensor_type_t *inputs,
                         bool bounds);
void hd_model_release(hd_model_t *m, hd_turn_t *turn);
// In the model's world: ends executables without users, those used longest ago
// first, until the others take no more than so many bytes; whether there was
// one.
bool hd_model_shrink(hd_model_t *m, size_t bytes);
// For a device (hd_device_t.reclaim): all of those.
bool hd_model_reclaim(void *model);
// Has others see it from here on, with the caller as a user.
void hd_model_keep(hd_model_t *m, hd_turn_t *turn, bool loaded);
void hd_model_end_turn(hd_model_t *m, hd_turn_t *turn);
// Bytes of its code and IR.
size_t hd_turn_bytes(const hd_turn_t *turn);
void hd_model_count_compiled(hd_model_t *m);

// --- ModelWalk.c ---

// A new one, which is at work (m->running): m->module is forked for it.
hd_turn_t *hd_model_begin_turn(hd_model_t *m, const hd_tensor_type_t *inputs);
// What the passes over graphs make of a segment; NULL after an error.
const hd_graph_t *hd_model_transform(hd_model_t *m, hd_turn_t *turn,
                                     const hd_graph_t *graph,
                                     hd_ptr_map_t *held);

// In the model's world: walks through the graph. Where that needs no look at
// what is in the inputs, what comes of it is an executable, kept with the
// caller as a user, and *turn is it; nothing has been run then. Else everything
// has been run, and *turn is NULL: outputs, if that is not NULL, have been made
// by the caller's context. data: NULL, or the inputs' elements; without them a
// walk that needs them ends with E1104. False after an error.
bool hd_model_walk(hd_model_t *m, hd_context_t *caller,
                   const hd_tensor_type_t *inputs, const hd_host_tensor_t *data,
                   hd_host_tensor_t *outputs, hd_turn_t **turn);

// What the executable takes as input i of the graph.
const hd_value_t *hd_turn_input(const hd_turn_t *turn, size_t i);
bool hd_types_equal(const hd_tensor_type_t *a, const hd_tensor_type_t *b,
                    size_t count);

// --- ModelBucket.c ---

// The shapes among those that the executable of bounds serves; NULL: they are
// not known to be.
const hd_fit_t *hd_turn_fit(const hd_model_t *m, const hd_turn_t *turn,
                            const hd_tensor_type_t *inputs);

// In the model's world: looks for a bucket for inputs of these types. NULL
// where there is none. Else *turn is its executable, now known to serve them,
// with the caller as a user, or it is NULL: hd_model_add_bucket() is to make
// it.
typedef struct hd_found_bucket {
  const hd_bucket_t *bucket;
  hd_expander_t *leader;
  const hd_tensor_type_t *bounds; // Of the inputs.
  hd_tensor_type_t *outputs;      // Where it is new.
  hd_fit_t *fit;
  hd_turn_t *turn;
} hd_found_bucket_t;
// Has the turn be what was found, where that has none.
void hd_turn_set_bucket(hd_turn_t *turn, const hd_found_bucket_t *found);
// The type of an output for the sizes.
hd_tensor_type_t hd_fit_output(const hd_model_t *m, const hd_turn_t *turn,
                               const hd_fit_t *fit, size_t i);
bool hd_model_find_bucket(hd_model_t *m, const hd_tensor_type_t *inputs,
                          hd_found_bucket_t *found);

// --- ModelInOut.c ---

// The model's pairs by the inputs of a segment's graph, of those that it reads.
hd_inouts_t hd_model_inouts(const hd_model_t *m, hd_turn_t *run,
                            const hd_graph_t *graph);
// Of a turn that is kept, whose plan is made: which outputs have a parameter of
// the plan (of those planned), and which are stored in an input, since that is
// written.
void hd_model_note_outputs(hd_turn_t *run, const bool *planned);

// --- ModelCompile.c ---

// Makes the program of a segment whose graph is set; loaded: ready to run, else
// its code alone. A candidate of a template whose kernel cannot be compiled or
// loaded, or spills so much that the next is expected to be faster, makes room
// for the next. False after an error.
bool hd_model_compile(hd_model_t *m, hd_model_segment_t *segment, bool loaded);

// --- ModelSegment.c ---

// The elements of a value in the host's memory; NULL after an error.
const hd_host_tensor_t *hd_model_fetch(hd_model_t *m, hd_turn_t *turn,
                                       const hd_value_t *value);
// Whether a compilation is one of those of a search (Support/Steps.h).
bool hd_model_counts_steps(const hd_model_t *m);
// Computes the graph that the turn's expander gave last; keep: what depends on
// constants alone, and the rest, if there is one, is compiled.
bool hd_model_run_segment(hd_model_t *m, hd_turn_t *turn, bool keep);
// Adds what a run of it does to the figures.
void hd_model_segment_count(const hd_model_segment_t *segment,
                            const hd_program_t *program,
                            hd_session_stats_t *stats);
void hd_model_segment_end(hd_model_segment_t *segment);

#endif
