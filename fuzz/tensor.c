// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes are read as a tensor, a sequence and an optional of ONNX's test
// data, or refused with a diagnostic, within the bounds on memory and time.

#include "Graph/ONNX/Import.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct work {
  const uint8_t *data;
  size_t size;
  hd_value_form_t form;
  hd_context_t context;
  bool ok;
} work_t;

static void run(void *argument) {
  work_t *work = argument;
  hd_onnx_data_t data;
  work->ok = hd_onnx_decode_value(&work->context, "fuzz", work->data,
                                  work->size, work->form, &data);
  for (size_t i = 0; i < data.count; i++)
    for (int64_t k = 0; k < data.tensors[i].count && k < 100; k++)
      (void)hd_host_tensor_get(&data.tensors[i], k);
  hd_onnx_data_fini(&data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const hd_value_form_t forms[] = {HD_HOLDS_TENSOR, HD_HOLDS_SEQUENCE,
                                          HD_HOLDS_OPTIONAL};
  for (int i = 0; i < 3; i++) {
    work_t work = {.data = data, .size = size, .form = forms[i]};
    hd_context_init(&work.context);
    work.context.budget.bytes_limit = (size_t)256 << 20;
    work.context.budget.deadline_ns = hd_clock_ns() + 1000000000u;
    hd_exhausted_t exhausted =
        hd_budget_guard(&work.context.budget, run, &work);
    if (!work.ok && exhausted == HD_EXHAUSTED_NOTHING &&
        work.context.diags.num_errors == 0)
      abort(); // Refused, but nothing said.
    hd_context_fini(&work.context);
  }
  return 0;
}
