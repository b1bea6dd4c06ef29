// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The library of tasks: each is found by its name, once.
#include "IR/Text/Library.h"

#include "IR/Graph/Task.h"
#include "UnitTest.h"

#include <string.h>

static void every_task_is_read_when_it_is_named(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  const char *name;
  size_t count = 0;
  for (; (name = hd_library_task_name(&context, count)); count++) {
    const hd_task_t *task = hd_library_task(&context, name);
    if (!task) {
      hd_buffer_t said = {0};
      hd_diagnostics_print(&context.diags, false, &said);
      fail_msg("%s: %s", name, hd_buffer_text(&said));
    }
    assert_string_equal(task->name, name);
    assert_ptr_equal(task, hd_library_task(&context, name));
  }
  assert_true(count > 0);
  assert_int_equal(context.diags.num_errors, 0);
  hd_context_fini(&context);
}

static void tasks_and_functions_are_apart(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  assert_non_null(hd_library_task(&context, "copy"));
  assert_null(hd_library_load(&context, "copy"));
  assert_null(hd_library_task(&context, "ring_next"));
  assert_null(hd_library_task(&context, "no_such_task"));
  assert_non_null(hd_library_load(&context, hd_library_name(&context, 0)));
  assert_int_equal(context.diags.num_errors, 0);
  hd_context_fini(&context);
}

HD_UNIT_TESTS(cmocka_unit_test(every_task_is_read_when_it_is_named),
              cmocka_unit_test(tasks_and_functions_are_apart))
