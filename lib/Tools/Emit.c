// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/Emit.h"
#include "IR/Printer.h"

static const hd_loc_t nowhere;

bool hd_emit_module(hd_module_t *module, hd_emit_t what,
                    const hd_target_t *target, const char *entry,
                    hd_buffer_t *out) {
  (void)target, (void)entry;
  if (what != HD_EMIT_HIR)
    return hd_error(&module->context->diags, nowhere, HD_E0508,
                    "a module of kernels", "anything but hir yet");
  hd_module_print(module, out);
  return true;
}
