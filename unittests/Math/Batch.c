// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Math/Batch.h"
#include "IR/Text/Parser.h"
#include "Sim/Sim.h"
#include "TaskMapping/Passes.h"
#include "UnitTest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A thread takes EACH elements, 256 apart: blocks begin and end at a cost.
enum { EACH = 64, BLOCK = 256 * EACH };
static void fail_with_diagnostics(batch_t *b, const char *name) {
  hd_buffer_t said = {0};
  hd_diagnostics_print(&b->context.diags, false, &said);
  fail_msg("%s: %s", name, hd_buffer_text(&said));
}

static const hd_func_t *lower(batch_t *b, const char *name) {
  const hd_pass_args_t args = {NULL, false};
  const hd_pass_config_t config = {.verify_each = false};
  for (size_t i = 0; i < hd_task_mapping_num_passes; i++) {
    const hd_pass_t *pass = &hd_task_mapping_passes[i];
    if (strcmp(pass->name, "lower") == 0 &&
        !hd_pass_run(b->module, pass, &args, &config).ok)
      fail_with_diagnostics(b, name);
  }
  return hd_module_find(b->module, "measured", HD_FUNC_KERNEL);
}

void batch_init(batch_t *b, const char *name, const char *type,
                unsigned arguments) {
  *b = (batch_t){0};
  char text[800];
  snprintf(text, sizeof text,
           "kernel measured(n: i32, in x: %s[n], in z: %s[n], out y: %s[n])\n"
           "  grid(ceildiv(n, %d)) block(256)\n"
           "{\n"
           "  for j in 0..%d {\n"
           "    let i = block * %d + j * 256 + thread\n"
           "    if i < n {\n"
           "      y[i] = %s(x[i]%s)\n"
           "    }\n"
           "  }\n"
           "}\n",
           type, type, type, BLOCK, EACH, BLOCK, name,
           arguments == 2 ? ", z[i]" : "");
  hd_context_init(&b->context);
  b->module = hd_module_parse(&b->context, "math", text, strlen(text), 1);
  if (!b->module)
    fail_with_diagnostics(b, name);
  const hd_codegen_options_t options = {.target = hd_target_find("host")};
  b->code = hd_host_code_create(b->module, lower(b, name), &options);
  if (!b->code)
    fail_with_diagnostics(b, name);
}

void batch_fini(batch_t *b) {
  hd_host_code_destroy(b->code);
  hd_module_destroy(b->module);
  hd_context_fini(&b->context);
}

void batch_call(batch_t *b, int32_t n, const void *x, const void *z, void *y) {
  void *args[] = {&n, &x, &z, &y};
  const hd_sim_kernel_t kernel = {
      .name = "measured",
      .entry = hd_host_code_entry(b->code),
      .coroutine = hd_host_code_is_coroutine(b->code),
      .args = args,
      .grid = {(n + BLOCK - 1) / BLOCK, 1, 1},
      .block = {256, 1, 1},
      .cluster = {1, 1, 1},
  };
  const hd_sim_options_t options = {0};
  // Not an assertion: pool threads cannot jump back into the test.
  if (!hd_sim_launch(&kernel, &options, &b->context.diags, NULL))
    abort();
}
