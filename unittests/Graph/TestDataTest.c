// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sequences and optionals as ONNX's test data has them, by the numbers of
// onnx-data.proto; test/Graph/ONNX/read-pb.test reads tensors.
#include "Graph/ONNX/Import.h"
#include "Graph/OnnxWriter.h"
#include "UnitTest.h"

#include <string.h>

enum { INT64 = 7, STRING = 8 };
enum { TENSORS = 1, SEQUENCES = 3, MAPS = 4 }; // Of SequenceProto.DataType.

typedef struct reading {
  hd_context_t context;
  hd_buffer_t bytes;
  hd_value_form_t form;
  bool ok;
  hd_onnx_data_t data;
} reading_t;

static void decode(void *argument) {
  reading_t *r = argument;
  r->ok =
      hd_onnx_decode_value(&r->context, "value.pb", hd_buffer_text(&r->bytes),
                           r->bytes.size, r->form, &r->data);
}

static void read(reading_t *r, hd_buffer_t bytes, hd_value_form_t form) {
  *r = (reading_t){.bytes = bytes, .form = form};
  hd_context_init(&r->context);
  assert_int_equal(hd_budget_guard(&r->context.budget, decode, r),
                   HD_EXHAUSTED_NOTHING);
}

static void end(reading_t *r) {
  hd_onnx_data_fini(&r->data);
  hd_context_fini(&r->context);
  hd_buffer_fini(&r->bytes);
}

static void refused(reading_t *r, hd_diagnostic_code_t code) {
  assert_false(r->ok);
  assert_int_equal(r->data.count, 0);
  assert_string_equal(hd_diagnostic_code_name(r->context.diags.first->code),
                      hd_diagnostic_code_name(code));
  end(r);
}

// A tensor of one element.
static hd_buffer_t one(int64_t value) {
  hd_buffer_t tensor = make_tensor("", INT64, (const int64_t[]){1, -1});
  put_int(&tensor, 7, value);
  return tensor;
}

static hd_buffer_t sequence(int kind, int64_t first, int64_t second) {
  hd_buffer_t bytes = {0}, a = one(first), b = one(second);
  put_int(&bytes, 2, kind);
  put_message(&bytes, 3, &a);
  put_message(&bytes, 3, &b);
  return bytes;
}

static void reads_tensors(void **state) {
  (void)state;
  reading_t r;
  read(&r, one(-5), HD_HOLDS_TENSOR);
  assert_true(r.ok && r.data.present);
  assert_int_equal(r.data.form, HD_HOLDS_TENSOR);
  assert_int_equal(r.data.count, 1);
  assert_int_equal(hd_host_tensor_get_int(&r.data.tensors[0], 0), -5);
  end(&r);
}

static void reads_sequences(void **state) {
  (void)state;
  reading_t r;
  read(&r, sequence(TENSORS, 3, 4), HD_HOLDS_SEQUENCE);
  assert_true(r.ok && r.data.present);
  assert_int_equal(r.data.count, 2);
  assert_int_equal(hd_host_tensor_get_int(&r.data.tensors[0], 0), 3);
  assert_int_equal(hd_host_tensor_get_int(&r.data.tensors[1], 0), 4);
  end(&r);

  hd_buffer_t empty = {0};
  put_int(&empty, 2, TENSORS);
  read(&r, empty, HD_HOLDS_SEQUENCE);
  assert_true(r.ok && r.data.present);
  assert_int_equal(r.data.count, 0);
  end(&r);

  read(&r, sequence(MAPS, 3, 4), HD_HOLDS_SEQUENCE);
  refused(&r, HD_E1104);
}

static void reads_optionals(void **state) {
  (void)state;
  reading_t r;
  hd_buffer_t tensor = one(9), bytes = {0};
  put_int(&bytes, 2, TENSORS);
  put_message(&bytes, 3, &tensor);
  read(&r, bytes, HD_HOLDS_OPTIONAL);
  assert_true(r.ok && r.data.present);
  assert_int_equal(r.data.form, HD_HOLDS_OPTIONAL);
  assert_int_equal(hd_host_tensor_get_int(&r.data.tensors[0], 0), 9);
  end(&r);

  hd_buffer_t held = sequence(TENSORS, 1, 2);
  bytes = (hd_buffer_t){0};
  put_int(&bytes, 2, SEQUENCES);
  put_message(&bytes, 5, &held);
  read(&r, bytes, HD_HOLDS_OPTIONAL);
  assert_true(r.ok && r.data.present);
  assert_int_equal(r.data.form, HD_HOLDS_SEQUENCE);
  assert_int_equal(r.data.count, 2);
  end(&r);

  read(&r, (hd_buffer_t){0}, HD_HOLDS_OPTIONAL);
  assert_true(r.ok);
  assert_false(r.data.present);
  end(&r);
}

// What was read before the fault is freed.
static void refuses_what_is_wrong(void **state) {
  (void)state;
  reading_t r;
  hd_buffer_t first = one(1), bytes = {0};
  hd_buffer_t second = make_tensor("", INT64, (const int64_t[]){3, -1});
  put_message(&bytes, 3, &first);
  put_message(&bytes, 3, &second);
  read(&r, bytes, HD_HOLDS_SEQUENCE);
  refused(&r, HD_E1103);

  hd_buffer_t text = make_tensor("", STRING, (const int64_t[]){1, -1});
  put_text(&text, 6, "text");
  read(&r, text, HD_HOLDS_TENSOR);
  refused(&r, HD_E1104);

  bytes = one(1);
  bytes.size--;
  read(&r, bytes, HD_HOLDS_TENSOR);
  refused(&r, HD_E1101);
}

HD_UNIT_TESTS(cmocka_unit_test(reads_tensors),
              cmocka_unit_test(reads_sequences),
              cmocka_unit_test(reads_optionals),
              cmocka_unit_test(refuses_what_is_wrong))
