// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a unit test includes: cmocka, with the headers that it wants before it.
// A test file ends with
//
//   HD_UNIT_TESTS(cmocka_unit_test(adds_numbers), ...)

#ifndef HIDET_UNITTESTS_UNITTEST_H
#define HIDET_UNITTESTS_UNITTEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define HD_UNIT_TESTS(...)                                                     \
  int main(void) {                                                             \
    const struct CMUnitTest tests[] = {__VA_ARGS__};                           \
    return cmocka_run_group_tests(tests, NULL, NULL);                          \
  }

#endif
