// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Support/Embedded.h"
#include "UnitTest.h"

#include <string.h>

static void every_text_is_a_sorted_row(void **state) {
  (void)state;
  for (size_t i = 0; i < hd_embedded_count; i++) {
    const hd_embedded_t *file = &hd_embedded_files[i];
    assert_int_equal(strlen(file->text), file->size);
    if (i > 0)
      assert_true(strcmp(file[-1].name, file->name) < 0);
  }
  assert_null(hd_embedded_files[hd_embedded_count].name);
}

HD_UNIT_TESTS(cmocka_unit_test(every_text_is_a_sorted_row))
