// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pass lower-points leaves valid IR without fusion points behind, whatever the
// tensors, mappings and values of generated modules are.
#include "IR/Generator.h"
#include "IR/Rewrite.h"
#include "IR/Verify/Verifier.h"
#include "TaskMapping/Passes.h"
#include "UnitTest.h"

#include <string.h>

enum { MODULES = 5000 };

static bool is_no_point(void *argument, const hd_stmt_t *stmt) {
  (void)argument;
  return stmt->kind != HD_STMT_POINT;
}

static const hd_pass_t *find_pass(const char *name) {
  for (size_t i = 0; i < hd_task_mapping_num_passes; i++)
    if (strcmp(hd_task_mapping_passes[i].name, name) == 0)
      return &hd_task_mapping_passes[i];
  fail_msg("there is no pass %s", name);
  return NULL;
}

static void test_generated(void **state) {
  (void)state;
  const hd_pass_t *pass = find_pass("lower-points");
  hd_generated_t counts = {0};
  hd_pass_args_t args = {0};
  hd_pass_config_t config = {.verify_each = true};
  unsigned changed = 0;
  for (uint64_t seed = 1; seed <= MODULES; seed++) {
    hd_context_t context;
    hd_context_init(&context);
    hd_module_t *module = hd_generate_module(&context, seed, &counts);
    hd_pass_result_t result = hd_pass_run(module, pass, &args, &config);
    if (!result.ok) {
      hd_buffer_t said = {0};
      hd_diagnostics_print(&context.diags, false, &said);
      fail_msg("module of seed %llu: %s", (unsigned long long)seed,
               hd_buffer_text(&said));
    }
    changed += result.changed;
    for (size_t i = 0; i < module->items.size; i++)
      if (module->items.data[i].kind == HD_ITEM_FUNC)
        assert_true(hd_walk_block(module->items.data[i].u.func->body,
                                  is_no_point, NULL, NULL));
    hd_module_destroy(module);
    hd_context_fini(&context);
  }
  assert_true(changed > MODULES / 10);
  assert_true(counts.staged > 0);
}

HD_UNIT_TESTS(cmocka_unit_test(test_generated))
