// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ReferenceHelp.h"

#include "Graph/Reference/Reference.h"

#include <math.h>
#include <string.h>

void hd_reference_begin(hd_reference_run_t *run, const hd_test_case_t *test) {
  *run = (hd_reference_run_t){0};
  hd_context_init(&run->context);
  run->binding = hd_test_bind(&run->context, test);
  if (!run->binding) {
    hd_buffer_t said = {0};
    hd_diagnostics_print(&run->context.diags, false, &said);
    fail_msg("%s\n%s", test->task, hd_buffer_text(&said));
  }
  for (const char *at = test->inputs; *at; at += strspn(at, " ")) {
    hd_tensor_type_t type = hd_test_type(at);
    at += strcspn(at, "]") + 1;
    hd_host_tensor_t *tensor = &run->inputs[run->num_inputs++];
    assert_true(hd_host_tensor_init(tensor, &run->context.diags, NULL, "input",
                                    type.type, type.shape, type.rank));
    hd_host_tensor_fill_random(tensor, 1, run->num_inputs);
  }
}

bool hd_reference_evaluate(hd_reference_run_t *run) {
  const hd_host_tensor_t *inputs[HD_REFERENCE_MOST];
  for (unsigned i = 0; i < run->num_inputs; i++)
    inputs[i] = &run->inputs[i];
  return hd_task_evaluate(&run->context, run->binding, inputs, run->outputs,
                          (hd_loc_t){0});
}

void hd_reference_compute(hd_reference_run_t *run) {
  if (hd_reference_evaluate(run))
    return;
  hd_buffer_t said = {0};
  hd_diagnostics_print(&run->context.diags, false, &said);
  fail_msg("%s", hd_buffer_text(&said));
}

void hd_reference_end(hd_reference_run_t *run) {
  for (unsigned i = 0; i < HD_REFERENCE_MOST; i++) {
    hd_host_tensor_fini(&run->inputs[i]);
    hd_host_tensor_fini(&run->outputs[i]);
  }
  hd_context_fini(&run->context);
}

void hd_reference_set(hd_reference_run_t *run, unsigned input,
                      const double *values) {
  hd_host_tensor_t *tensor = &run->inputs[input];
  for (int64_t i = 0; i < tensor->count; i++)
    hd_host_tensor_set(tensor, i, values[i]);
}

// The output is exactly this; a NaN is a NaN.
void hd_reference_expect(const hd_reference_run_t *run, unsigned output,
                         size_t count, const double *values) {
  const hd_host_tensor_t *tensor = &run->outputs[output];
  assert_int_equal(tensor->count, count);
  for (size_t i = 0; i < count; i++) {
    double found = hd_host_tensor_get(tensor, (int64_t)i);
    if (found != values[i] && !(isnan(found) && isnan(values[i])))
      fail_msg("output %u, element %zu: %.17g, not %.17g", output, i, found,
               values[i]);
  }
}
