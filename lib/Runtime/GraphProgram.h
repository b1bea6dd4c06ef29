// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a graph of tasks to a program whose kernels are lowered: everything that
// needs no device but its description.
#ifndef HIDET_RUNTIME_GRAPHPROGRAM_H
#define HIDET_RUNTIME_GRAPHPROGRAM_H

#include "Fusion/InPlace.h"
#include "Runtime/Program.h"
#include "Schedule/Template/Machine.h"

typedef struct hd_graph_program_options {
  bool keep_layouts, explain, unfused, in_turn; // As hd_model_options_t.
  bool formed;                                  // As hd_fuse_options_t.
  hd_inouts_t inouts;                           // Likewise.
} hd_graph_program_options_t;

// Fuses and schedules the graph, whose shapes are known, into a module that is
// empty, and lowers what it launches; program, made or not, is to be ended by
// hd_program_fini(). Of the device its context, which is the module's, and its
// description are used: threads may have copies of one device with a context
// each. Where it unwinds, the context's schedules may be left as they are
// given. False after an error.
bool hd_graph_program_init(hd_program_t *program, hd_device_t *device,
                           hd_module_t *made, const hd_graph_t *graph,
                           const hd_schedule_options_t *schedules,
                           const hd_graph_program_options_t *options);

#endif
