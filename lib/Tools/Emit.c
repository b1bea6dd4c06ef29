// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CodeGen makes a whole module of PTX for each kernel. Where several kernels
// are printed, they become one module that ptxas takes: its head (.version,
// .target, .address_size, declarations) is printed once. Before each kernel
// stands what its launch must give.
#include "Tools/Emit.h"
#include "IR/Graph/Graph.h"
#include "IR/Text/Printer.h"
#include "Runtime/Cuda.h"
#include "Support/Suggest.h"
#include "Tools/Interface.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hd_loc_t nowhere;

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
           hd_suggestion_text(&near, "", text, sizeof(text)));
  hd_note(diags, nowhere, "the targets are %s", hd_target_names());
  return NULL;
}

const hd_target_t *hd_tools_default_target(void) {
  int sm = hd_cuda_present_sm();
  char name[16];
  snprintf(name, sizeof(name), sm == 90 ? "sm_90a" : "sm_%d", sm);
  const hd_target_t *target = sm ? hd_target_find(name) : NULL;
  return target ? target : hd_target_find("sm_90a");
}

static bool is_head(const char *line, size_t size) {
  static const char *const starts[] = {".version", ".target", ".address_size",
                                       ".extern", "//"};
  for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
    size_t length = strlen(starts[i]);
    if (size >= length && memcmp(line, starts[i], length) == 0)
      return true;
  }
  return false;
}

// Past a line, or past the declaration of a function, which ends with a
// semicolon some lines on.
static const char *next_part(const char *line, const char *end) {
  static const char function[] = ".extern .func";
  size_t size = (size_t)(end - line);
  bool is_function = size >= sizeof(function) - 1 &&
                     memcmp(line, function, sizeof(function) - 1) == 0;
  const char *last = is_function ? memchr(line, ';', size) : line;
  const char *newline = last ? memchr(last, '\n', (size_t)(end - last)) : NULL;
  return newline ? newline + 1 : end;
}

// Appends a module of PTX to those before it, if any.
static void append_ptx(hd_buffer_t *out, const hd_buffer_t *ptx, bool first) {
  const char *text = hd_buffer_text(ptx), *end = text + ptx->size;
  for (const char *line = text; line < end;) {
    const char *next = next_part(line, end);
    size_t size = (size_t)(next - line);
    bool known = false;
    if (!first && is_head(line, size)) {
      char *copy = strndup(line, size);
      known = copy && strstr(hd_buffer_text(out), copy) != NULL;
      free(copy);
    }
    if (!known)
      hd_buffer_write(out, line, size);
    line = next;
  }
}

static bool emit_cubin(hd_module_t *module, const hd_func_t *kernel,
                       const hd_target_t *target, const hd_buffer_t *ptx,
                       hd_buffer_t *out) {
  hd_diagnostics_t *diags = &module->context->diags;
  hd_cuda_t *cuda = hd_cuda_open(diags, 0);
  bool is_slow;
  bool ok = cuda && hd_cuda_link(cuda, diags, kernel->name, target->sm,
                                 hd_buffer_text(ptx), ptx->size, out, &is_slow);
  hd_cuda_close(cuda);
  if (ok && is_slow)
    hd_warning(diags, kernel->loc,
               "the driver's linker says that code of '%s' is slow; hidet-run "
               "loads its PTX",
               kernel->name);
  return ok;
}

static bool emit_kernel(hd_module_t *module, const hd_func_t *kernel,
                        hd_emit_format_t what, const hd_target_t *target,
                        hd_buffer_t *out) {
  hd_codegen_options_t options = {.target = target, .keep_names = true};
  hd_buffer_t text = {0};
  hd_cleanup_t cleanup;
  hd_budget_defer(&module->context->budget, &cleanup, hd_buffer_end, &text);
  bool ok = what == HD_EMIT_LLVM
                ? hd_codegen_llvm(module, kernel, &options, &text)
                : hd_codegen_ptx(module, kernel, &options, &text);
  if (ok && what == HD_EMIT_PTX) {
    bool first = out->size == 0;
    hd_interface_comment(&module->arena, kernel, out);
    append_ptx(out, &text, first);
  } else if (ok && what == HD_EMIT_LLVM)
    hd_buffer_write(out, hd_buffer_text(&text), text.size);
  else if (ok)
    ok = emit_cubin(module, kernel, target, &text, out);
  hd_budget_clean(&module->context->budget, &cleanup);
  return ok;
}

static bool emit_code(hd_module_t *module, hd_emit_format_t what,
                      const hd_target_t *target, const char *entry,
                      hd_buffer_t *out) {
  hd_diagnostics_t *diags = &module->context->diags;
  if (target->arch == HD_ARCH_HOST && what != HD_EMIT_LLVM)
    return hd_error(diags, nowhere, HD_E0508, "code for the host",
                    what == HD_EMIT_PTX ? "ptx" : "cubin");
  size_t count = 0;
  bool ok = true;
  for (size_t i = 0; i < module->items.size; i++) {
    const hd_item_t *item = &module->items.data[i];
    if (item->kind != HD_ITEM_FUNC || item->u.func->kind != HD_FUNC_KERNEL ||
        (entry && strcmp(item->u.func->name, entry) != 0))
      continue;
    if (count++ && what == HD_EMIT_CUBIN)
      return hd_error(diags, nowhere, HD_E1003,
                      "--emit=cubin takes one kernel; name it by --entry=NAME");
    ok &= emit_kernel(module, item->u.func, what, target, out);
  }
  if (count == 0)
    return hd_error(diags, nowhere, HD_E1003,
                    entry ? hd_arena_printf(&module->arena,
                                            "the module has no kernel "
                                            "'%s'",
                                            entry)
                          : "the module has no kernel to make code of");
  return ok;
}

static bool emit_dot(hd_module_t *module, const char *entry, hd_buffer_t *out) {
  const hd_graph_t *graph = hd_module_find_graph(module, entry);
  if (graph) {
    hd_graph_print_dot(graph, out);
    return true;
  }
  return entry
             ? hd_error(&module->context->diags, nowhere, HD_E1003,
                        hd_arena_printf(&module->arena,
                                        "the module has no graph '%s'", entry))
             : hd_error(&module->context->diags, nowhere, HD_E0508,
                        "a module without a graph", "dot");
}

bool hd_emit_module(hd_module_t *module, hd_emit_format_t what,
                    const hd_target_t *target, const char *entry,
                    hd_buffer_t *out) {
  switch (what) {
  case HD_EMIT_HIR: {
    size_t part = hd_times_enter(&module->context->times, "print");
    hd_module_print(module, out);
    hd_times_leave(&module->context->times, part);
    return true;
  }
  case HD_EMIT_LLVM:
  case HD_EMIT_PTX:
  case HD_EMIT_CUBIN:
    return emit_code(module, what, target, entry, out);
  case HD_EMIT_DOT:
    return emit_dot(module, entry, out);
  }
  return false;
}
