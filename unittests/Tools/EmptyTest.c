// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What has no elements needs no memory: NULL is as good.
#include "UnitTest.h"

#include <hidet/Launch.h>

static void takes_null_of_no_elements(void **state) {
  (void)state;
  hidet_context_t *context = hidet_context_create();
  hidet_device_t *device;
  hidet_module_t *empty = NULL;
  hidet_tensor_t *scalar = NULL;
  const int64_t none[] = {0};
  assert_int_equal(hidet_device_open(context, "sim", &device), HIDET_OK);
  assert_int_equal(hidet_module_parse(context, "m", NULL, 0, &empty), HIDET_OK);
  assert_int_equal(hidet_tensor_create(device, "f32", NULL, 0, &scalar),
                   HIDET_OK);
  assert_int_equal(hidet_tensor_size(scalar), sizeof(float));
  hidet_tensor_destroy(scalar);
  assert_int_equal(hidet_tensor_create(device, "f32", none, 1, &scalar),
                   HIDET_OK);
  assert_int_equal(hidet_tensor_write(scalar, NULL), HIDET_OK);
  assert_int_equal(hidet_tensor_read(scalar, NULL), HIDET_OK);
  hidet_tensor_destroy(scalar);
  hidet_module_destroy(empty);
  hidet_device_close(device);
  hidet_context_destroy(context);
}

HD_UNIT_TESTS(cmocka_unit_test(takes_null_of_no_elements))
