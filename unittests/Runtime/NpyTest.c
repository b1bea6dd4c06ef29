// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files are put together here by the words of numpy/lib/format.py; test/Runtime
// exchanges files with NumPy itself.

#include "Runtime/Npy.h"
#include "UnitTest.h"

#include <stdio.h>
#include <string.h>

typedef struct file {
  unsigned char bytes[512];
  size_t size;
} file_t;

static file_t make(int version, const char *header, const void *data,
                   size_t size) {
  file_t file = {0};
  size_t length = strlen(header);
  memcpy(file.bytes, "\x93NUMPY", 6);
  file.bytes[6] = (unsigned char)version;
  file.bytes[8] = (unsigned char)(length & 0xff);
  file.bytes[9] = (unsigned char)(length >> 8);
  size_t start = version == 1 ? 10 : 12;
  memcpy(file.bytes + start, header, length);
  memcpy(file.bytes + start + length, data, size);
  file.size = start + length + size;
  return file;
}

typedef struct result {
  hd_diagnostics_t diags;
  hd_host_tensor_t tensor;
  bool ok;
} result_t;

static result_t decode(const file_t *file, hd_scalar_t wanted) {
  result_t r;
  hd_diagnostics_init(&r.diags);
  r.ok = hd_npy_decode(&r.diags, NULL, "x.npy", file->bytes, file->size, wanted,
                       &r.tensor);
  return r;
}

static void fini(result_t *r) {
  hd_host_tensor_fini(&r->tensor);
  hd_diagnostics_fini(&r->diags);
}

#define HEADER(descr, order, shape)                                            \
  "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }\n"

static void fails(const file_t *file, hd_scalar_t wanted,
                  hd_diagnostic_code_t code, const char *message) {
  result_t r = decode(file, wanted);
  assert_false(r.ok);
  assert_int_equal(r.diags.num_errors, 1);
  assert_int_equal(r.diags.first->code, code);
  if (!strstr(r.diags.first->message, message))
    fail_msg("'%s' in '%s'", message, r.diags.first->message);
  assert_null(r.tensor.data);
  fini(&r);
}

static void bad_header(const char *header, hd_diagnostic_code_t code,
                       const char *message) {
  file_t file = make(1, header, "\0\0\0\0", 4);
  fails(&file, HD_VOID, code, message);
}

static const int16_t six[] = {1, -2, 3, 4, 5, 6};

static void every_version_is_read(void **state) {
  (void)state;
  for (int version = 1; version <= 3; version++) {
    file_t file =
        make(version, HEADER("<i2", "False", "(2, 3)"), six, sizeof(six));
    result_t r = decode(&file, HD_I16);
    assert_true(r.ok);
    assert_int_equal(r.tensor.type, HD_I16);
    assert_int_equal(r.tensor.rank, 2);
    assert_int_equal(r.tensor.shape[0], 2);
    assert_int_equal(r.tensor.shape[1], 3);
    for (int i = 0; i < 6; i++)
      assert_int_equal(hd_host_tensor_get_int(&r.tensor, i), six[i]);
    fini(&r);
  }
}

static void columns_are_turned(void **state) {
  (void)state;
  file_t file = make(1, HEADER("<i2", "True", "(2, 3)"), six, sizeof(six));
  static const int rows[] = {1, 3, 5, -2, 4, 6};
  result_t r = decode(&file, HD_VOID);
  assert_true(r.ok);
  for (int i = 0; i < 6; i++)
    assert_int_equal(hd_host_tensor_get_int(&r.tensor, i), rows[i]);
  fini(&r);
}

static void big_endian_is_turned(void **state) {
  (void)state;
  file_t file = make(1, HEADER(">f4", "False", "(1,)"), "\x40\x49\x0f\xdb", 4);
  result_t r = decode(&file, HD_F32);
  assert_true(r.ok);
  assert_true(hd_host_tensor_get(&r.tensor, 0) == (double)3.14159274f);
  fini(&r);
}

static void scalars_and_empty_arrays(void **state) {
  (void)state;
  file_t file = make(1, HEADER("<f8", "False", "()"), &(double){0.5}, 8);
  result_t r = decode(&file, HD_F64);
  assert_true(r.ok);
  assert_int_equal(r.tensor.rank, 0);
  assert_int_equal(r.tensor.count, 1);
  assert_true(hd_host_tensor_get(&r.tensor, 0) == 0.5);
  fini(&r);
  file = make(1, HEADER("<f8", "False", "(3, 0)"), "", 0);
  r = decode(&file, HD_F64);
  assert_true(r.ok);
  assert_int_equal(r.tensor.count, 0);
  fini(&r);
}

static void other_spellings_are_read(void **state) {
  (void)state;
  file_t file = make(1, "{\"shape\":(1L,),'fortran_order':False,'descr':'=i4'}",
                     &(int32_t){7}, 4);
  result_t r = decode(&file, HD_I32);
  assert_true(r.ok);
  assert_int_equal(hd_host_tensor_get_int(&r.tensor, 0), 7);
  fini(&r);
}

static void raw_types_are_read(void **state) {
  (void)state;
  uint16_t one = 0x3f80;
  file_t file = make(1, HEADER("<V2", "False", "(1,)"), &one, 2);
  result_t r = decode(&file, HD_BF16);
  assert_true(r.ok);
  assert_true(hd_host_tensor_get(&r.tensor, 0) == 1.0);
  fini(&r);
  file = make(1, HEADER("|u1", "False", "(1,)"), "\x38", 1);
  r = decode(&file, HD_F8E4M3);
  assert_true(r.ok);
  assert_true(hd_host_tensor_get(&r.tensor, 0) == 1.0);
  fini(&r);
  file = make(1, HEADER("|i1", "False", "(1,)"), "\x0f", 1);
  r = decode(&file, HD_I4);
  assert_true(r.ok);
  assert_int_equal(hd_host_tensor_get_int(&r.tensor, 0), -1);
  fini(&r);
}

static void bools_are_zero_or_one(void **state) {
  (void)state;
  file_t file = make(1, HEADER("|b1", "False", "(2,)"), "\x02\x00", 2);
  result_t r = decode(&file, HD_BOOL);
  assert_true(r.ok);
  assert_int_equal(r.tensor.data[0], 1);
  assert_int_equal(r.tensor.data[1], 0);
  fini(&r);
}

static void every_truncation_is_told(void **state) {
  (void)state;
  file_t file = make(2, HEADER("<i2", "False", "(2, 3)"), six, sizeof(six));
  size_t size = file.size;
  for (file.size = 0; file.size < size; file.size++)
    fails(&file, HD_I16, file.size < 6 ? HD_E0803 : HD_E0804,
          file.size < 6 ? "\\x93NUMPY" : "truncated");
}

static void what_follows_is_told(void **state) {
  (void)state;
  file_t file = make(1, HEADER("<i2", "False", "(2, 2)"), six, sizeof(six));
  fails(&file, HD_I16, HD_E0803, "follows its data");
}

static void versions_are_checked(void **state) {
  (void)state;
  file_t file = make(4, HEADER("<i2", "False", "(6,)"), six, sizeof(six));
  fails(&file, HD_I16, HD_E0803, "version");
  file = make(1, HEADER("<i2", "False", "(6,)"), six, sizeof(six));
  file.bytes[7] = 1;
  fails(&file, HD_I16, HD_E0803, "version");
}

static void types_are_checked(void **state) {
  (void)state;
  file_t file = make(1, HEADER("<i2", "False", "(6,)"), six, sizeof(six));
  fails(&file, HD_F16, HD_E0805, "has type i16, and f16 is needed");
  bad_header(HEADER("<c8", "False", "(1,)"), HD_E0810, "'<c8'");
  bad_header(HEADER("|O", "False", "(1,)"), HD_E0810, "'|O'");
  bad_header(HEADER("<U4", "False", "(1,)"), HD_E0810, "'<U4'");
  bad_header("{'descr': [('a', '<f4')], 'fortran_order': False, "
             "'shape': (1,)}",
             HD_E0810, "records");
}

static void headers_are_checked(void **state) {
  (void)state;
  bad_header("", HD_E0803, "no dict");
  bad_header("[]", HD_E0803, "no dict");
  bad_header("{", HD_E0803, "no dict");
  bad_header("{}", HD_E0803, "lacks");
  bad_header("{'descr' '<f4'}", HD_E0803, "no dict");
  bad_header("{'descr': '<f4'", HD_E0803, "no dict");
  bad_header("{'descr': '<f4', 'fortran_order': False}", HD_E0803, "lacks");
  bad_header("{'descr': '<f4', 'descr': '<f4'}", HD_E0803, "twice");
  bad_header("{'colour': 1}", HD_E0803, "unknown key");
  bad_header("{'descr': 4}", HD_E0803, "no string");
  bad_header("{'descr': '<f4}", HD_E0803, "no string");
  bad_header(HEADER("<f4", "Maybe", "(1,)"), HD_E0803, "neither True");
  bad_header(HEADER("<f4", "False", "1"), HD_E0803, "no tuple");
  bad_header(HEADER("<f4", "False", "(1)"), HD_E0803, "no tuple");
  bad_header(HEADER("<f4", "False", "(-1,)"), HD_E0803, "no tuple");
  bad_header(HEADER("<f4", "False", "(1.5,)"), HD_E0803, "no tuple");
  bad_header(HEADER("<f4", "False", "(1, 1"), HD_E0803, "no tuple");
  bad_header(HEADER("<f4", "False", "(99999999999999999999,)"), HD_E0803,
             "no tuple");
  bad_header(HEADER("<f4", "False", "(1,)") "x", HD_E0803, "follows the dict");
}

static void sizes_are_checked_before_memory_is_taken(void **state) {
  (void)state;
  bad_header(HEADER("<f4", "False", "(4611686018427387904, 4)"), HD_E0309,
             "2^62");
  bad_header(HEADER("<f4", "False", "(1099511627776,)"), HD_E0804, "truncated");
  bad_header(HEADER("<f4", "False",
                    "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)"),
             HD_E0810, "16 axes");
}

static void a_budget_holds(void **state) {
  (void)state;
  file_t file = make(1, HEADER("<i2", "False", "(6,)"), six, sizeof(six));
  hd_budget_t budget = {.bytes_limit = 11};
  result_t r;
  hd_diagnostics_init(&r.diags);
  assert_false(hd_npy_decode(&r.diags, &budget, "x.npy", file.bytes, file.size,
                             HD_I16, &r.tensor));
  assert_int_equal(r.diags.first->code, HD_E0901);
  hd_diagnostics_clear(&r.diags);
  budget.bytes_limit = 12;
  assert_true(hd_npy_decode(&r.diags, &budget, "x.npy", file.bytes, file.size,
                            HD_I16, &r.tensor));
  fini(&r);
  assert_int_equal(budget.bytes_used, 0);
}

// What is written is read back, for each type and rank.
static void writes_what_it_reads(void **state) {
  (void)state;
  static const int64_t shape[] = {2, 1, 3};
  for (int type = HD_BOOL; type <= HD_F64; type++)
    for (unsigned rank = 0; rank <= 3; rank++) {
      result_t r;
      hd_diagnostics_init(&r.diags);
      assert_true(hd_host_tensor_init(&r.tensor, &r.diags, NULL, "t",
                                      (hd_scalar_t)type, shape, rank));
      hd_host_tensor_fill_random(&r.tensor, 1, 0);
      hd_buffer_t text = {0};
      hd_npy_header(&r.tensor, &text);
      assert_int_equal(text.size % 64, 0);
      hd_buffer_write(&text, (const char *)r.tensor.data, r.tensor.bytes);
      hd_host_tensor_t back;
      assert_true(hd_npy_decode(&r.diags, NULL, "t", text.data, text.size,
                                (hd_scalar_t)type, &back));
      assert_int_equal(back.rank, rank);
      assert_int_equal(back.bytes, r.tensor.bytes);
      assert_memory_equal(back.data, r.tensor.data, back.bytes);
      hd_host_tensor_fini(&back);
      hd_buffer_fini(&text);
      fini(&r);
    }
}

HD_UNIT_TESTS(cmocka_unit_test(every_version_is_read),
              cmocka_unit_test(columns_are_turned),
              cmocka_unit_test(big_endian_is_turned),
              cmocka_unit_test(scalars_and_empty_arrays),
              cmocka_unit_test(other_spellings_are_read),
              cmocka_unit_test(raw_types_are_read),
              cmocka_unit_test(bools_are_zero_or_one),
              cmocka_unit_test(every_truncation_is_told),
              cmocka_unit_test(what_follows_is_told),
              cmocka_unit_test(versions_are_checked),
              cmocka_unit_test(types_are_checked),
              cmocka_unit_test(headers_are_checked),
              cmocka_unit_test(sizes_are_checked_before_memory_is_taken),
              cmocka_unit_test(a_budget_holds),
              cmocka_unit_test(writes_what_it_reads))
