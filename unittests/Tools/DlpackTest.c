// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// DLPack's tensors and ours, by the fields of its header (dlpack.h): what is
// row-major is taken, all else is refused and said, and after a call that is
// right nothing is said of the one before.
#include "UnitTest.h"

#include <hidet/Session.h>
#include <string.h>

typedef struct dl_tensor {
  void *data;
  int32_t device_type, device_id;
  int32_t rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} dl_tensor_t;

enum { ON_CPU = 1, FLOAT = 2, COMPLEX = 5 };

static float data[8];

static hidet_status_t take(int64_t a, int64_t b, int64_t stride,
                           hidet_array_t *array) {
  int64_t shape[] = {a, b}, strides[] = {stride, 1};
  dl_tensor_t tensor = {data, ON_CPU, 0, 2, FLOAT, 32, 1, shape, strides, 4};
  return hidet_array_from_dlpack(NULL, &tensor, array);
}

static void refused(hidet_status_t status, const char *text) {
  assert_int_equal(status, HIDET_USAGE);
  assert_non_null(strstr(hidet_messages(), text));
}

static void what_is_row_major_is_taken(void **state) {
  (void)state;
  hidet_array_t array;
  refused(take(2, 3, 4, &array), "not row-major");
  assert_int_equal(array.rank, 0);
  assert_int_equal(take(2, 3, 3, &array), HIDET_OK);
  assert_string_equal(hidet_messages(), "");
  assert_string_equal(array.type, "f32");
  assert_int_equal(array.shape[1], 3);
  assert_ptr_equal(array.data, data + 1);
  assert_int_equal(take(0, 3, 77, &array), HIDET_OK); // No element is there.
  refused(take(-2, 3, 3, &array), "a size is negative");
  refused(take(INT64_C(1) << 60, 8, 8, &array), "pass 2^62");
  dl_tensor_t tensor = {
      .device_type = ON_CPU, .code = COMPLEX, .bits = 64, .lanes = 1};
  refused(hidet_array_from_dlpack(NULL, &tensor, &array), "no array has");
  tensor = (dl_tensor_t){
      .device_type = ON_CPU, .code = FLOAT, .bits = 32, .lanes = 4};
  refused(hidet_array_from_dlpack(NULL, &tensor, &array), "no array has");
}

static void arrays_are_given(void **state) {
  (void)state;
  int64_t strides[HIDET_MAX_RANK];
  dl_tensor_t tensor;
  hidet_array_t array = {"i4", 3, {2, 3, 4}, data};
  refused(hidet_array_to_dlpack(NULL, &array, strides, &tensor),
          "DLPack has no such elements");
  array.type = "f32";
  assert_int_equal(hidet_array_to_dlpack(NULL, &array, strides, &tensor),
                   HIDET_OK);
  assert_string_equal(hidet_messages(), "");
  assert_int_equal(tensor.rank, 3);
  assert_int_equal(tensor.strides[0], 12);
  assert_int_equal(tensor.strides[1], 4);
  assert_int_equal(tensor.strides[2], 1);
  assert_ptr_equal(tensor.shape, array.shape);
  array.shape[2] = INT64_MAX;
  refused(hidet_array_to_dlpack(NULL, &array, strides, &tensor), "pass 2^62");
  array.shape[2] = -1;
  refused(hidet_array_to_dlpack(NULL, &array, strides, &tensor),
          "a size is negative");
}

HD_UNIT_TESTS(cmocka_unit_test(what_is_row_major_is_taken),
              cmocka_unit_test(arrays_are_given))
