// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The library of tasks: each is found by its name, once.
#include "IR/Text/Library.h"

#include "IR/Graph/Task.h"
#include "IR/Text/LibraryIndex.h"
#include "IR/Text/Parser.h"
#include "Support/Embedded.h"
#include "UnitTest.h"

#include <string.h>

static void every_task_is_read_when_it_is_named(void **state) {
  (void)state;
  hd_context_t context;
  hd_context_init(&context);
  const char *name;
  size_t count = 0;
  for (; (name = hd_library_task_name(count)); count++) {
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
  assert_non_null(hd_library_load(&context, hd_library_name(0)));
  assert_int_equal(context.diags.num_errors, 0);
  hd_context_fini(&context);
}

// Overloads stand together, in the order of the files.
static void the_index_finds_every_item(void **state) {
  (void)state;
  for (int shelf = 0; shelf < HD_NUM_SHELVES; shelf++) {
    const hd_library_item_t *items;
    const uint16_t *numbers;
    size_t size = hd_library_items(shelf, &items), found = 0;
    assert_true(size > 0);
    for (size_t i = 0; i < size; i++) {
      size_t count = hd_library_find(shelf, items[i].name, &numbers);
      for (size_t k = 0; k < count; k++) {
        assert_string_equal(items[numbers[k]].name, items[i].name);
        assert_true(k == 0 || numbers[k - 1] < numbers[k]);
        found += numbers[k] == i;
      }
    }
    assert_int_equal(found, size);
    assert_int_equal(hd_library_find(shelf, "", &numbers), 0);
    assert_int_equal(hd_library_find(shelf, "zzz", &numbers), 0);
  }
}

// As a user's files are: with an instance of each function that has defaults,
// and what needs no values of the others.
static void every_file_is_right(void **state) {
  (void)state;
  static const char *const folders[] = {"IR/library/", "Schedule/templates/"};
  hd_context_t context;
  hd_context_init(&context);
  size_t count = 0;
  for (size_t i = 0; i < hd_embedded_count; i++)
    for (size_t k = 0; k < 2; k++) {
      const hd_embedded_t *file = &hd_embedded_files[i];
      if (strncmp(file->name, folders[k], strlen(folders[k])) != 0)
        continue;
      hd_module_t *module =
          hd_module_parse(&context, file->name, file->text, file->size, 1);
      if (!module) {
        hd_buffer_t said = {0};
        hd_diagnostics_print(&context.diags, false, &said);
        fail_msg("%s", hd_buffer_text(&said));
      }
      hd_module_destroy(module);
      count++;
    }
  assert_true(count > 2);
  hd_context_fini(&context);
}

HD_UNIT_TESTS(cmocka_unit_test(every_file_is_right),
              cmocka_unit_test(every_task_is_read_when_it_is_named),
              cmocka_unit_test(the_index_finds_every_item),
              cmocka_unit_test(tasks_and_functions_are_apart))
