// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes are imported as a model or refused with a diagnostic, within the
// bounds on memory and time. What is imported is a sound graph.

#include "Graph/ONNX/Import.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct work {
  const uint8_t *data;
  size_t size;
  hd_context_t context;
  hd_module_t *module;
} work_t;

static void load_constants(hd_module_t *module, const hd_graph_t *graph) {
  for (size_t i = 0; i < graph->constants.size; i++) {
    const hd_host_tensor_t *tensor =
        hd_constant_load(module, graph->constants.data[i]);
    if (!tensor)
      abort(); // All of it is in memory.
    for (int64_t k = 0; k < tensor->count && k < 100; k++)
      (void)hd_host_tensor_get(tensor, k);
  }
}

static void run(void *argument) {
  work_t *work = argument;
  work->module = hd_onnx_import_memory(&work->context, "fuzz", work->data,
                                       work->size, NULL);
  if (!work->module)
    return;
  const hd_graph_t *graph = hd_module_find_graph(work->module, "main");
  if (!graph || !hd_graph_verify(&work->context, graph))
    abort();
  load_constants(work->module, graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  work_t work = {.data = data, .size = size};
  hd_context_init(&work.context);
  work.context.budget.bytes_limit = (size_t)256 << 20;
  work.context.budget.deadline_ns = hd_clock_ns() + 1000000000u;
  hd_exhausted_t exhausted = hd_budget_guard(&work.context.budget, run, &work);
  if (!work.module && exhausted == HD_EXHAUSTED_NOTHING &&
      work.context.diags.num_errors == 0)
    abort(); // Refused, but nothing said.
  hd_buffer_t said = {0};
  hd_diagnostics_print(&work.context.diags, false, &said);
  hd_buffer_fini(&said);
  hd_context_fini(&work.context);
  return 0;
}
