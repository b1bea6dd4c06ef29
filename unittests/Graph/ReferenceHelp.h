// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A task, its operands and its results: what tests of the evaluator share.
#ifndef HIDET_UNITTESTS_GRAPH_REFERENCEHELP_H
#define HIDET_UNITTESTS_GRAPH_REFERENCEHELP_H

#include "TaskHelp.h"

enum { HD_REFERENCE_MOST = 8 };

typedef struct hd_reference_run {
  hd_context_t context;
  const hd_task_binding_t *binding;
  hd_host_tensor_t inputs[HD_REFERENCE_MOST], outputs[HD_REFERENCE_MOST];
  unsigned num_inputs;
} hd_reference_run_t;

// Binds the task, and fills its inputs with random numbers; the test fails
// where it does not bind.
void hd_reference_begin(hd_reference_run_t *run, const hd_test_case_t *test);
void hd_reference_end(hd_reference_run_t *run);
// False after an error, which hd_reference_compute() fails at.
bool hd_reference_evaluate(hd_reference_run_t *run);
void hd_reference_compute(hd_reference_run_t *run);

void hd_reference_set(hd_reference_run_t *run, unsigned input,
                      const double *values);
#define SET(run, input, ...)                                                   \
  do {                                                                         \
    const double values_[] = {__VA_ARGS__};                                    \
    assert_int_equal(sizeof values_ / sizeof values_[0],                       \
                     (run)->inputs[input].count);                              \
    hd_reference_set(run, input, values_);                                     \
  } while (0)

// The output is exactly this; a NaN is a NaN.
void hd_reference_expect(const hd_reference_run_t *run, unsigned output,
                         size_t count, const double *values);
#define EXPECT(run, output, ...)                                               \
  do {                                                                         \
    const double values_[] = {__VA_ARGS__};                                    \
    hd_reference_expect(run, output, sizeof values_ / sizeof values_[0],       \
                        values_);                                              \
  } while (0)

#endif
