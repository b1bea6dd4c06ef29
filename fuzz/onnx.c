// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes are imported as a model or refused with a diagnostic, within the
// bounds on memory and time. What is imported is a sound graph; it is printed,
// and its print parses to the same print.

#include "Graph/ONNX/Import.h"
#include "IR/Text/Parser.h"
#include "IR/Text/Printer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_PRINTED = 10000 }; // Elements of constants.

typedef struct work {
  const uint8_t *data;
  size_t size;
  hd_context_t context;
  hd_module_t *module;
  hd_buffer_t once, twice;
} work_t;

// Elements in all.
static int64_t load_constants(hd_module_t *module, const hd_graph_t *graph) {
  int64_t count = 0;
  for (size_t i = 0; i < graph->constants.size; i++) {
    const hd_host_tensor_t *tensor =
        hd_constant_load(module, graph->constants.data[i]);
    if (!tensor)
      abort(); // All of it is in memory.
    for (int64_t k = 0; k < tensor->count && k < 100; k++)
      (void)hd_host_tensor_get(tensor, k);
    count += tensor->count;
  }
  return count;
}

static void print_twice(work_t *work) {
  hd_module_print(work->module, &work->once);
  hd_module_t *module = hd_module_create(&work->context);
  bool ok = hd_module_parse_into(module, "print", hd_buffer_text(&work->once),
                                 work->once.size, 1);
  if (ok)
    hd_module_print(module, &work->twice);
  if (!ok ||
      strcmp(hd_buffer_text(&work->once), hd_buffer_text(&work->twice)) != 0) {
    fprintf(stderr, "--- once\n%s--- twice\n%s", hd_buffer_text(&work->once),
            hd_buffer_text(&work->twice));
    abort();
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
  if (load_constants(work->module, graph) <= MAX_PRINTED)
    print_twice(work);
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
  hd_buffer_fini(&work.once);
  hd_buffer_fini(&work.twice);
  hd_context_fini(&work.context);
  return 0;
}
