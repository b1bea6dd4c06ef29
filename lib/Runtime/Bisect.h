// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the step of a compilation that changes a result: the first rewrite,
// change of precision, fusion, kernel or pass (Support/Steps.h). The truth is
// what the expanded graph gives on `ref`, in the model's own precision. As
// LLVM's opt-bisect: a binary search over how many steps are done. What it
// finds makes a good result bad; it is the first such step where a bad result
// stays bad.
#ifndef HIDET_RUNTIME_BISECT_H
#define HIDET_RUNTIME_BISECT_H

#include "Runtime/Session.h"
#include "Runtime/Tolerance.h"

typedef struct hd_bisection {
  uint64_t steps;  // Of the whole compilation.
  uint64_t number; // Of the step that was found; 0: no result changes.
  hd_step_kind_t kind;
  char name[200];
  bool always; // It is no step that does: the result is wrong without any.
  unsigned runs;
  // What it changes first: an output, an element of it (-1: the shape).
  size_t output;
  int64_t element;
  double found, wanted;
} hd_bisection_t;

// Runs the graph again and again on a device, each time compiled anew. A
// result is right where the tolerance holds for each element. options and
// inputs: as for a session. progress (may be NULL) is called before each run
// with the range in which the step lies. False after an error that it has
// reported.
bool hd_bisect(hd_module_t *module, const hd_graph_t *graph,
               hd_device_t *device, const hd_model_options_t *options,
               const hd_host_tensor_t *inputs, hd_tolerance_t tolerance,
               void (*progress)(uint64_t low, uint64_t high),
               hd_bisection_t *bisection);

#endif
