// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of code generation share: text to PTX, and text to functions
// of this process with a small stand-in for the simulator.
#ifndef HIDET_UNITTESTS_CODEGEN_CODEGENTEST_H
#define HIDET_UNITTESTS_CODEGEN_CODEGENTEST_H

#include "CodeGen/CodeGen.h"
#include "CodeGen/SimAbi.h"
#include "IR/Text/Parser.h"
#include "UnitTest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct program {
  hd_context_t context;
  hd_module_t *module;
} program_t;

static inline void program_init(program_t *p, const char *text) {
  hd_context_init(&p->context);
  p->module = hd_module_parse(&p->context, "test", text, strlen(text), 1);
  if (!p->module) {
    hd_buffer_t out = {0};
    hd_diagnostics_print(&p->context.diags, false, &out);
    print_error("%s", hd_buffer_text(&out));
    hd_buffer_fini(&out);
  }
  assert_non_null(p->module);
}

static inline void program_fini(program_t *p) {
  hd_module_destroy(p->module);
  hd_context_fini(&p->context);
}

static inline const hd_func_t *program_kernel(program_t *p) {
  return hd_module_entry(p->module);
}

// PTX for a target; NULL after an error. The caller frees it.
static inline char *program_ptx(program_t *p, const char *target) {
  hd_codegen_options_t options = {.target = hd_target_find(target)};
  hd_buffer_t out = {0};
  char *text = NULL;
  if (hd_codegen_ptx(p->module, program_kernel(p), &options, &out))
    text = strdup(hd_buffer_text(&out));
  hd_buffer_fini(&out);
  return text;
}

// Runs a kernel of the loop form over a grid.
static inline void program_run(program_t *p, void *const *args, int x, int y) {
  hd_codegen_options_t options = {.target = hd_target_find("host")};
  hd_host_code_t *code =
      hd_host_code_create(p->module, program_kernel(p), &options);
  assert_non_null(code);
  assert_false(hd_host_code_is_coroutine(code));
  void (*entry)(void *const *, hd_sim_block_t *);
  *(void **)&entry = hd_host_code_entry(code);
  for (int j = 0; j < y; j++)
    for (int i = 0; i < x; i++) {
      hd_sim_block_t block = {
          .block = {i, j, 0}, .grid_dim = {x, y, 1}, .cluster_dim = 1};
      entry(args, &block);
    }
  hd_host_code_destroy(code);
}

#endif
