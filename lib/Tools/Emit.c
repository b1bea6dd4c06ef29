// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A module as text, or the code of its kernels. CodeGen makes one PTX file for
// each kernel; here they become one: the first one's head (.version, .target)
// serves all, and each later body follows.
#include "Tools/Emit.h"
#include "IR/Printer.h"
#include "Support/Suggest.h"

#include <string.h>

static const hd_loc_t nowhere;
static const char head_end[] = ".address_size 64\n";
static const char shared[] = ".extern .shared .align 1024 .b8 hd_shared[];\n";

// Appends a kernel's PTX without what out has already.
static void append_ptx(hd_buffer_t *out, const hd_buffer_t *ptx) {
  const char *body = hd_buffer_text(ptx);
  const char *end = strstr(body, head_end);
  if (out->size && end)
    body = end + strlen(head_end);
  const char *again = strstr(body, shared);
  if (again && strstr(hd_buffer_text(out), shared)) {
    hd_buffer_write(out, body, (size_t)(again - body));
    body = again + strlen(shared);
  }
  hd_buffer_puts(out, body);
}

static bool emit_kernel(hd_module_t *module, hd_emit_t what,
                        const hd_target_t *target, const hd_func_t *kernel,
                        hd_buffer_t *out) {
  hd_codegen_options_t options = {.target = target};
  if (what == HD_EMIT_LLVM)
    return hd_codegen_llvm(module, kernel, &options, out);
  hd_buffer_t ptx = {0};
  bool ok = hd_codegen_ptx(module, kernel, &options, &ptx);
  if (ok)
    append_ptx(out, &ptx);
  hd_buffer_fini(&ptx);
  return ok;
}

static bool emit_code(hd_module_t *module, hd_emit_t what,
                      const hd_target_t *target, const char *entry,
                      hd_buffer_t *out) {
  bool found = false;
  for (size_t i = 0; i < module->items.size; i++) {
    const hd_item_t *item = &module->items.data[i];
    if (item->kind != HD_ITEM_FUNC || item->u.func->kind != HD_FUNC_KERNEL)
      continue;
    if (entry && strcmp(entry, item->u.func->name) != 0)
      continue;
    found = true;
    if (!emit_kernel(module, what, target, item->u.func, out))
      return false;
  }
  if (!found)
    return hd_error(&module->context->diags, nowhere, HD_E0201,
                    entry ? entry : "kernel", "");
  return true;
}

bool hd_emit_module(hd_module_t *module, hd_emit_t what,
                    const hd_target_t *target, const char *entry,
                    hd_buffer_t *out) {
  switch (what) {
  case HD_EMIT_HIR:
    hd_module_print(module, out);
    return true;
  case HD_EMIT_LLVM:
  case HD_EMIT_PTX:
    return emit_code(module, what, target, entry, out);
  case HD_EMIT_CUBIN:
    return hd_error(&module->context->diags, nowhere, HD_E0508,
                    "a module of kernels", "cubin yet");
  case HD_EMIT_DOT:
    return hd_error(&module->context->diags, nowhere, HD_E0508,
                    "a module without graphs", "dot");
  }
  return false;
}

const hd_target_t *hd_tools_find_target(hd_diagnostics_t *diags,
                                        const char *name) {
  const hd_target_t *target = hd_target_find(name);
  if (target)
    return target;
  char text[64];
  hd_suggestion_t near = {.wanted = name};
  for (size_t i = 0; hd_target_get(i); i++)
    hd_suggestion_add(&near, hd_target_get(i)->name);
  hd_error(diags, nowhere, HD_E0502, name,
           hd_suggestion_text(&near, "", text, sizeof text));
  hd_note(diags, nowhere, "the targets are %s", hd_target_names());
  return NULL;
}

const hd_target_t *hd_tools_default_target(void) {
  return hd_target_find("sm_90a");
}
