// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the worker share: Worker.c (what is asked), Operands.c
// (what candidates read and write), Times.c (what they take).
#ifndef HIDET_TUNE_WORKERSTATE_H
#define HIDET_TUNE_WORKERSTATE_H

#include "IR/Graph/Graph.h"
#include "Runtime/Tolerance.h"
#include "Tune/Candidate.h"
#include "Tune/Message.h"

enum { HD_TUNE_ROUNDS = 11 }; // Each candidate is replayed once in each.

typedef struct hd_tune_entry {
  uint32_t number;
  hd_tune_program_t p;
  hd_recording_t *recording;
  unsigned runs; // Of the recording.
  bool out;      // It is too slow to come first.
  unsigned samples;
  double us[HD_TUNE_ROUNDS];
} hd_tune_entry_t;

typedef struct hd_tune_worker {
  hd_device_t *device;
  hd_context_t *context;
  int socket;
  hd_arena_t arena;                  // Of the group.
  HD_VEC(hd_tune_entry_t *) entries; // The first is the reference.
  uint32_t num_params;
  unsigned num_sets;
  hd_slot_t *slots;           // num_sets times the parameters.
  hd_host_tensor_t *expected; // For each parameter that is written,
  hd_tolerance_t *tolerances; // and how far from that another may be.
  const hd_message_t *message;
  hd_message_kind_t answer;
  hd_buffer_t said;
  bool has_ended; // Its device is of no more use.
} hd_tune_worker_t;

// --- Operands.c ---

// Sets of operands for the reference's parameters. False after an error.
bool hd_tune_make_operands(hd_tune_worker_t *worker);
void hd_tune_end_operands(hd_tune_worker_t *worker);
// Takes what the first set holds for what is expected. False after an error.
bool hd_tune_take_expected(hd_tune_worker_t *worker);
// Makes sure that nobody finds there what another one wrote.
bool hd_tune_wipe_results(hd_tune_worker_t *worker);
// Whether the first set holds what is expected; else worker->answer is WRONG,
// and `said` where, or an error was reported.
bool hd_tune_check_results(hd_tune_worker_t *worker);

// --- Times.c ---

// Measures all entries, and says what they take. False after an error.
bool hd_tune_measure(hd_tune_worker_t *worker);

#endif
