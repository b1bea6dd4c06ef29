// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of a session share (Session.c: runs from their inputs to their
// outputs; SessionSegment.c: what a segment of one computes).
#ifndef HIDET_RUNTIME_SESSIONSTATE_H
#define HIDET_RUNTIME_SESSIONSTATE_H

#include "Runtime/Program.h"
#include "Runtime/Session.h"
#include "Runtime/Store.h"

// A segment, compiled.
typedef struct hd_session_segment {
  const hd_graph_t *graph;
  hd_module_t *made; // Its plan and kernels.
  hd_program_t program;
  hd_slot_t *slots; // The plan's parameters.
  // Those that depend on constants alone: from the first to before the end.
  uint32_t first_constant, end_constant;
} hd_session_segment_t;

// A walk for one set of shapes, and what it made.
typedef struct hd_session_turn {
  hd_expander_t *expander;
  hd_tensor_type_t *inputs;
  const hd_graph_t *last;
  const bool
      *planned;      // Which of its outputs a plan gives; NULL: not known yet.
  hd_store_t values; // All but the model's constants.
  hd_session_segment_t segment; // The one at work.
  struct hd_session_turn *next;
} hd_session_turn_t;

struct hd_session {
  hd_module_t *module;
  const hd_graph_t *graph;
  hd_device_t *device;
  hd_session_options_t options;
  hd_session_stats_t stats;
  hd_schedule_options_t schedules;
  bool prepares;           // What is compiled runs once, on constants.
  hd_ptr_map_t shared;     // The model's constants.
  hd_store_t constants;    // Those on the device, for every run.
  hd_session_turn_t *kept; // Runs that can be run again.
  hd_session_turn_t *now;  // The last; NULL where it was not kept.
  hd_session_turn_t
      *running; // Not kept yet: so that unwinding does not lose it.
};

static inline hd_context_t *hd_session_context(const hd_session_t *s) {
  return s->module->context;
}

static inline double hd_ms_since(uint64_t start) {
  return (double)(hd_clock_ns() - start) * 1e-6;
}

// --- SessionSegment.c ---

// The elements of a value in the host's memory; NULL after an error.
const hd_host_tensor_t *hd_session_fetch(hd_session_t *s,
                                         hd_session_turn_t *run,
                                         const hd_value_t *value);
// Whether a compilation is one of those of a search (Support/Steps.h).
bool hd_session_counts_steps(const hd_session_t *s);
// Makes the program of a segment whose graph is set; false after an error.
bool hd_session_compile(hd_session_t *s, hd_session_segment_t *segment);
// Computes the graph that the run's expander gave last.
bool hd_session_run_segment(hd_session_t *s, hd_session_turn_t *run);
bool hd_session_run_program(hd_session_t *s, hd_session_segment_t *segment);
// Adds what a run of it does to the session's figures.
void hd_session_count(hd_session_t *s, const hd_session_segment_t *segment);
void hd_session_segment_end(hd_session_segment_t *segment);

#endif
