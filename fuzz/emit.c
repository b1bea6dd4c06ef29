// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What parses is verified, lowered, and becomes PTX and host code, or is
// refused with a diagnostic, within the bounds on memory, time and code.

#include "CodeGen/CodeGen.h"
#include "IR/Text/Parser.h"
#include "IR/Verify/Verifier.h"
#include "Tools/Passes.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct work {
  const char *text;
  size_t size;
  hd_context_t context;
  hd_module_t *module;
} work_t;

static bool lower(hd_module_t *module) {
  static hd_pass_list_t passes;
  if (passes.size == 0)
    hd_pass_list_init(&passes);
  return hd_pass_run(module, hd_pass_list_find(&passes, "lower"),
                     &(hd_pass_args_t){0},
                     &(hd_pass_config_t){.verify_each = true})
      .ok;
}

static void emit(hd_module_t *module, const hd_func_t *kernel) {
  hd_buffer_t ptx = {0};
  hd_codegen_options_t options = {.target = hd_target_find("sm_90a"),
                                  .max_instructions = 2000};
  hd_codegen_ptx(module, kernel, &options, &ptx);
  hd_buffer_fini(&ptx);
  options.target = hd_target_find("host");
  options.sanitize = true;
  hd_buffer_t ir = {0};
  hd_codegen_llvm(module, kernel, &options, &ir);
  hd_buffer_fini(&ir);
}

static void run(void *argument) {
  work_t *work = argument;
  work->module =
      hd_module_parse(&work->context, "fuzz", work->text, work->size, 1);
  if (!work->module || !hd_module_verify(work->module) || !lower(work->module))
    return;
  for (size_t i = 0; i < work->module->items.size; i++) {
    const hd_item_t *item = &work->module->items.data[i];
    if (item->kind == HD_ITEM_FUNC && item->u.func->kind == HD_FUNC_KERNEL)
      emit(work->module, item->u.func);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  work_t work = {.text = (const char *)data, .size = size};
  hd_context_init(&work.context);
  work.context.budget.bytes_limit = (size_t)256 << 20;
  work.context.budget.deadline_ns = hd_clock_ns() + 1000000000u;
  hd_exhausted_t exhausted = hd_budget_guard(&work.context.budget, run, &work);
  if (!work.module && exhausted == HD_EXHAUSTED_NOTHING &&
      work.context.diags.num_errors == 0)
    abort(); // Refused, but nothing said.
  hd_module_destroy(work.module);
  hd_context_fini(&work.context);
  return 0;
}
