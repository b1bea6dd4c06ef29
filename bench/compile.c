// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How long the compiler takes: text in memory to PTX in memory, everything in
// between included (context, library, passes, target machine), in one process.
//
// usage: bench_compile [--json FILE] file.hir...
//
// A line for each file: the median of 20 runs after one to warm up, the part
// that passes and code generation take, and the bytes of PTX.

#include "CodeGen/CodeGen.h"
#include "IR/Text/Parser.h"
#include "Support/File.h"
#include "TaskMapping/Passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 20 };

typedef struct run {
  double total_ms, parse_ms, lower_ms, emit_ms;
  size_t ptx_bytes;
} run_t;

static double ms_since(uint64_t start) {
  return (double)(hd_clock_ns() - start) * 1e-6;
}

static bool lower(hd_module_t *module) {
  const hd_pass_args_t args = {NULL, false};
  const hd_pass_config_t config = {.verify_each = false};
  for (size_t i = 0; i < hd_task_mapping_num_passes; i++) {
    const hd_pass_t *pass = &hd_task_mapping_passes[i];
    if (strcmp(pass->name, "lower") == 0)
      return hd_pass_run(module, pass, &args, &config).ok;
  }
  return false;
}

static bool emit(hd_module_t *module, hd_buffer_t *out) {
  const hd_codegen_options_t options = {.target = hd_target_find("sm_90a")};
  for (size_t i = 0; i < module->items.size; i++) {
    const hd_item_t *item = &module->items.data[i];
    if (item->kind == HD_ITEM_FUNC && item->u.func->kind == HD_FUNC_KERNEL &&
        !hd_codegen_ptx(module, item->u.func, &options, out))
      return false;
  }
  return true;
}

static bool compile(const char *name, const char *text, size_t size,
                    run_t *run) {
  uint64_t start = hd_clock_ns(), from = start;
  hd_context_t context;
  hd_context_init(&context);
  hd_buffer_t ptx = {0};
  hd_module_t *module = hd_module_parse(&context, name, text, size, 1);
  run->parse_ms = ms_since(from);
  from = hd_clock_ns();
  bool ok = module && lower(module);
  run->lower_ms = ms_since(from);
  from = hd_clock_ns();
  ok = ok && emit(module, &ptx);
  run->emit_ms = ms_since(from);
  run->total_ms = ms_since(start);
  run->ptx_bytes = ptx.size;
  if (!ok) {
    hd_buffer_t said = {0};
    hd_diagnostics_print(&context.diags, false, &said);
    fputs(hd_buffer_text(&said), stderr);
    hd_buffer_fini(&said);
  }
  hd_buffer_fini(&ptx);
  hd_module_destroy(module);
  hd_context_fini(&context);
  return ok;
}

static int by_total(const void *a, const void *b) {
  double x = ((const run_t *)a)->total_ms, y = ((const run_t *)b)->total_ms;
  return (x > y) - (x < y);
}

static bool measure(const char *path, FILE *json, bool first) {
  hd_diagnostics_t diags;
  hd_diagnostics_init(&diags);
  hd_buffer_t text = {0};
  bool ok = hd_file_read(&diags, path, 0, &text);
  run_t runs[RUNS + 1] = {0};
  for (int i = 0; ok && i <= RUNS; i++)
    ok = compile(path, hd_buffer_text(&text), text.size, &runs[i]);
  hd_buffer_fini(&text);
  hd_diagnostics_fini(&diags);
  if (!ok)
    return false;
  qsort(runs + 1, RUNS, sizeof *runs, by_total);
  const run_t *r = &runs[1 + RUNS / 2];
  const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  printf("%-22s %7.2f ms  (parse %5.2f, lower %5.2f, emit %6.2f)  %7zu bytes\n",
         name, r->total_ms, r->parse_ms, r->lower_ms, r->emit_ms, r->ptx_bytes);
  if (json)
    fprintf(json,
            "%s\n {\"file\": \"%s\", \"median_ms\": %.4f, \"first_ms\": %.4f, "
            "\"parse_ms\": %.4f, \"lower_ms\": %.4f, \"emit_ms\": %.4f, "
            "\"ptx_bytes\": %zu}",
            first ? "" : ",", name, r->total_ms, runs[0].total_ms, r->parse_ms,
            r->lower_ms, r->emit_ms, r->ptx_bytes);
  return true;
}

int main(int argc, char **argv) {
  FILE *json = NULL;
  int first = 1;
  if (argc > 2 && strcmp(argv[1], "--json") == 0) {
    json = fopen(argv[2], "w");
    first = 3;
  }
  if (first >= argc) {
    fprintf(stderr, "usage: %s [--json FILE] file.hir...\n", argv[0]);
    return 2;
  }
  bool ok = true;
  if (json)
    fprintf(json, "[");
  for (int i = first; i < argc; i++)
    ok = measure(argv[i], json, i == first) && ok;
  if (json) {
    fprintf(json, "\n]\n");
    fclose(json);
  }
  return ok ? 0 : 1;
}
