// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs tasks by the scheduler's kernels on the simulator. What is made is
// verified, and printed and parsed again.
#ifndef HIDET_UNITTESTS_SCHEDULE_SCHEDULEHELP_H
#define HIDET_UNITTESTS_SCHEDULE_SCHEDULEHELP_H

#include "IR/Graph/HostTensor.h"
#include "Runtime/Program.h"
#include "Schedule/Schedule.h"
#include "UnitTest.h"

enum { MAX_TENSORS = 16 };

typedef struct hd_task_run {
  hd_context_t context;
  hd_device_t *device;
  hd_module_t *tasks; // Of the text.
  hd_module_t *made;  // Kernels and a plan.
  const hd_task_binding_t *binding;
  unsigned num_inputs, num_outputs;
  hd_host_tensor_t inputs[MAX_TENSORS], outputs[MAX_TENSORS];
  hd_buffer_t printed; // What was made.
  double compile_ms, run_ms;
} hd_task_run_t;

// text holds the task, first of its items, or is the name of one of the
// library; inputs are types, separated by
// spaces: "f32[2, 3] i64[]"; attributes "strides=[2, 2] eps=1e-5 U=f16". Inputs
// are random. The test fails on every error.
void hd_run_prepare(hd_task_run_t *run, const char *text, const char *inputs,
                    const char *attributes);
// Computes the outputs.
void hd_run_task(hd_task_run_t *run);
// Likewise, by the simulator's checks: for races, bounds and what was never
// written. May come after the other.
void hd_run_task_checked(hd_task_run_t *run);
void hd_run_end(hd_task_run_t *run);

// What the reference evaluator says, to be ended by the caller.
void hd_run_evaluate(hd_task_run_t *run, hd_host_tensor_t *outputs);

// How many kernels were made.
unsigned hd_run_kernels(const hd_task_run_t *run);
// Whether what was made has this in its text.
bool hd_run_has(const hd_task_run_t *run, const char *part);

static inline float *hd_f32(hd_host_tensor_t *tensor) {
  return (float *)(void *)tensor->data;
}

// Fails where an output differs by more from what is expected, relative to the
// largest of it.
void hd_expect_close(const hd_host_tensor_t *got, const double *expected,
                     double tolerance);

#endif
