// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A candidate as a text and what becomes of it: the module that it is parsed
// into, the program for the graph `group` in it.
#ifndef HIDET_TUNE_CANDIDATE_H
#define HIDET_TUNE_CANDIDATE_H

#include "Runtime/GraphProgram.h"

#define HD_TUNE_GRAPH "group"

typedef struct hd_tune_program {
  hd_module_t *text, *made;
  const hd_graph_t *graph;
  hd_schedule_options_t schedules;
  hd_program_t program;
} hd_tune_program_t;

// Parses the text in the device's context, schedules it as its pins say, and
// lowers it: hd_graph_program_init(). To be ended by
// hd_tune_program_fini() in any case. False after an error.
bool hd_tune_program_init(hd_tune_program_t *program, hd_device_t *device,
                          const char *text, size_t size);
void hd_tune_program_fini(hd_tune_program_t *program);

// What the first error says that a context has; all are forgotten.
void hd_tune_take_error(hd_context_t *context, hd_buffer_t *text);

#endif
