// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Support/File.h"
#include "UnitTest.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A folder of its own for each test, removed with what a test leaves in it.
typedef struct fixture {
  char folder[64];
  char path[80];
  hd_diagnostics_t diags;
  hd_buffer_t text;
} fixture_t;

static int set_up(void **state) {
  fixture_t *f = calloc(1, sizeof(*f));
  strcpy(f->folder, "/tmp/hidet-file-test-XXXXXX");
  assert_non_null(mkdtemp(f->folder));
  snprintf(f->path, sizeof(f->path), "%s/a", f->folder);
  hd_diagnostics_init(&f->diags);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture_t *f = *state;
  unlink(f->path);
  // Fails where a temporary file was left behind.
  assert_int_equal(rmdir(f->folder), 0);
  hd_diagnostics_fini(&f->diags);
  hd_buffer_fini(&f->text);
  free(f);
  return 0;
}

static bool write_text(fixture_t *f, const char *path, const char *text) {
  hd_file_part_t part = {text, strlen(text)};
  return hd_file_write(&f->diags, path, &part, 1);
}

static void writes_parts_and_reads_them(void **state) {
  fixture_t *f = *state;
  hd_file_part_t parts[] = {{"ab", 2}, {"", 0}, {"c\0d", 3}};
  assert_true(hd_file_write(&f->diags, f->path, parts, 3));
  assert_true(hd_file_read(&f->diags, f->path, 5, &f->text));
  assert_int_equal(f->text.size, 5);
  assert_memory_equal(f->text.data, "abc\0d", 5);
}

static void replaces_a_file_and_keeps_its_mode(void **state) {
  fixture_t *f = *state;
  assert_true(write_text(f, f->path, "old and long"));
  assert_int_equal(chmod(f->path, 0640), 0);
  assert_true(write_text(f, f->path, "new"));
  assert_true(hd_file_read(&f->diags, f->path, 0, &f->text));
  assert_string_equal(hd_buffer_text(&f->text), "new");
  struct stat status;
  assert_int_equal(stat(f->path, &status), 0);
  assert_int_equal(status.st_mode & 0777, 0640);
}

static void reads_an_empty_file(void **state) {
  fixture_t *f = *state;
  assert_true(write_text(f, f->path, ""));
  assert_true(hd_file_read(&f->diags, f->path, 0, &f->text));
  assert_int_equal(f->text.size, 0);
}

static void fails(fixture_t *f, bool result, hd_diagnostic_code_t code) {
  assert_false(result);
  assert_int_equal(f->diags.num_errors, 1);
  assert_int_equal(f->diags.first->code, code);
  assert_int_equal(f->text.size, 0);
}

static void a_missing_file_is_told(void **state) {
  fixture_t *f = *state;
  fails(f, hd_file_read(&f->diags, f->path, 0, &f->text), HD_E0801);
}

static void a_folder_is_no_file(void **state) {
  fixture_t *f = *state;
  fails(f, hd_file_read(&f->diags, f->folder, 0, &f->text), HD_E0801);
}

static void a_limit_holds(void **state) {
  fixture_t *f = *state;
  assert_true(write_text(f, f->path, "123456"));
  fails(f, hd_file_read(&f->diags, f->path, 5, &f->text), HD_E0904);
}

static void a_folder_cannot_be_written(void **state) {
  fixture_t *f = *state;
  fails(f, write_text(f, f->folder, "x"), HD_E0802);
}

static void a_missing_folder_cannot_be_written_to(void **state) {
  fixture_t *f = *state;
  fails(f, write_text(f, "/nowhere/at/all", "x"), HD_E0802);
}

static void a_full_disk_is_a_limit(void **state) {
  fixture_t *f = *state;
  fails(f, write_text(f, "/dev/full", "x"), HD_E0807);
  assert_int_equal(f->diags.exit_class, HD_EXIT_RESOURCE);
}

static void makes_folders(void **state) {
  fixture_t *f = *state;
  char path[100];
  snprintf(path, sizeof(path), "%s/x/y", f->folder);
  assert_true(hd_file_make_folders(path));
  assert_true(hd_file_make_folders(path));
  assert_int_equal(rmdir(path), 0);
  snprintf(path, sizeof(path), "%s/x", f->folder);
  assert_int_equal(rmdir(path), 0);
  assert_false(hd_file_make_folders("/dev/null/x"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
HD_UNIT_TESTS(TEST(writes_parts_and_reads_them),
              TEST(replaces_a_file_and_keeps_its_mode),
              TEST(reads_an_empty_file), TEST(a_missing_file_is_told),
              TEST(a_folder_is_no_file), TEST(a_limit_holds),
              TEST(a_folder_cannot_be_written),
              TEST(a_missing_folder_cannot_be_written_to),
              TEST(a_full_disk_is_a_limit), TEST(makes_folders))
