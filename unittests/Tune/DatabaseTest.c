// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tune/Database.h"
#include "UnitTest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct fixture {
  char folder[40], path[60], other[60];
  hd_diagnostics_t diags;
  hd_arena_t arena;
} fixture_t;

static int set_up(void **state) {
  fixture_t *f = calloc(1, sizeof *f);
  strcpy(f->folder, "/tmp/hidet-database-XXXXXX");
  assert_non_null(mkdtemp(f->folder));
  snprintf(f->path, sizeof f->path, "%s/tune.db", f->folder);
  snprintf(f->other, sizeof f->other, "%s/other.db", f->folder);
  hd_diagnostics_init(&f->diags);
  hd_arena_init(&f->arena, NULL);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture_t *f = *state;
  unlink(f->path);
  unlink(f->other);
  assert_int_equal(rmdir(f->folder), 0); // Nothing else was left there.
  hd_arena_fini(&f->arena);
  hd_diagnostics_fini(&f->diags);
  free(f);
  return 0;
}

static hd_tune_database_t *open_as(fixture_t *f, bool write, const char *device,
                                   const char *compiler) {
  return hd_tune_database_open(&f->diags, f->path, write, device, compiler);
}

static hd_tune_database_t *open_file(fixture_t *f, bool write) {
  return open_as(f, write, "gpu", "1");
}

static void put(hd_tune_database_t *d, const char *group, const char *choice,
                const char *status, double us) {
  hd_tune_row_t row = {choice, status, "", us};
  hd_tune_database_put(d, group, "graph", &row);
}

static hd_tune_rows_t list(fixture_t *f, hd_tune_database_t *d,
                           const char *group) {
  hd_tune_rows_t rows = {0};
  hd_tune_database_list(d, &f->arena, group, &rows);
  return rows;
}

static unsigned count_warnings(const fixture_t *f) {
  unsigned count = 0;
  for (const hd_diagnostic_t *d = f->diags.first; d; d = d->next)
    count += d->severity == HD_WARNING;
  return count;
}

static void rows_come_back_by_time(void **state) {
  fixture_t *f = *state;
  hd_tune_database_t *d = open_file(f, true);
  put(d, "a", "x(B = 1)", "measured", 3.5);
  put(d, "a", "x(B = 2)", "measured", 2.25);
  put(d, "a", "it's(\"quoted\")", "hangs", 0);
  put(d, "b", "x(B = 1)", "measured", 1);
  put(d, "a", "x(B = 1)", "measured", 2); // Takes the place of the first.
  hd_tune_database_close(d);
  d = open_file(f, false);
  hd_tune_rows_t rows = list(f, d, "a");
  assert_int_equal(rows.size, 3);
  assert_string_equal(rows.data[0].choice, "it's(\"quoted\")");
  assert_string_equal(rows.data[0].status, "hangs");
  assert_string_equal(rows.data[1].choice, "x(B = 1)");
  assert_true(rows.data[1].us == 2);
  assert_true(rows.data[2].us == 2.25);
  assert_int_equal(list(f, d, "c").size, 0);
  hd_tune_database_close(d);
  assert_int_equal(count_warnings(f), 0);
}

static void others_do_not_see_them(void **state) {
  fixture_t *f = *state;
  hd_tune_database_t *d = open_file(f, true);
  put(d, "a", "x()", "measured", 1);
  hd_tune_database_close(d);
  static const char *const others[][2] = {{"gpu", "2"}, {"another gpu", "1"}};
  for (int i = 0; i < 2; i++) {
    d = open_as(f, false, others[i][0], others[i][1]);
    assert_int_equal(list(f, d, "a").size, 0);
    hd_tune_database_close(d);
  }
}

static void no_file_is_no_rows(void **state) {
  fixture_t *f = *state;
  hd_tune_database_t *d = open_file(f, false);
  assert_int_equal(list(f, d, "a").size, 0);
  put(d, "a", "x()", "measured", 1); // Goes nowhere.
  hd_tune_database_close(d);
  assert_int_equal(access(f->path, F_OK), -1);
  assert_int_equal(count_warnings(f), 0);
}

// What was written is there for processes that have the file open, and many may
// write at once.
static void processes_share_it(void **state) {
  fixture_t *f = *state;
  enum { PROCESSES = 4, ROWS = 10 };
  hd_tune_database_t *d = open_file(f, true);
  hd_tune_database_close(d);
  for (int p = 0; p < PROCESSES; p++) {
    if (fork())
      continue;
    d = open_file(f, true);
    for (int i = 0; i < ROWS; i++) {
      char choice[30];
      snprintf(choice, sizeof choice, "x(P = %d, I = %d)", p, i);
      put(d, "a", choice, "measured", i);
    }
    hd_tune_database_close(d);
    _exit(count_warnings(f) > 0);
  }
  for (int p = 0; p < PROCESSES; p++) {
    int status;
    wait(&status);
    assert_int_equal(status, 0);
  }
  d = open_file(f, false);
  assert_int_equal(list(f, d, "a").size, PROCESSES * ROWS);
  hd_tune_database_close(d);
}

static void overwrite(const char *path, long at, size_t size) {
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  fseek(file, at, SEEK_SET);
  for (size_t i = 0; i < size; i++)
    fputc(0xa5, file);
  fclose(file);
}

static void fill(fixture_t *f) {
  hd_tune_database_t *d = open_file(f, true);
  for (int i = 0; i < 400; i++) {
    char choice[80];
    snprintf(choice, sizeof choice, "a_template_with_a_long_name(NUMBER = %d)",
             i);
    put(d, "a", choice, "measured", i);
  }
  hd_tune_database_close(d);
}

// Whatever is damaged: there are no wrong rows, and one warning at most.
static void damage_is_a_miss(void **state) {
  fixture_t *f = *state;
  static const long places[] = {0, 100, 4096, 8192 + 200};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    unlink(f->path);
    fill(f);
    overwrite(f->path, places[i], 4000);
    hd_diagnostics_clear(&f->diags);
    for (int write = 0; write < 2; write++) {
      hd_tune_database_t *d = open_file(f, write);
      hd_tune_rows_t rows = list(f, d, "a");
      for (size_t k = 0; k < rows.size; k++)
        assert_string_equal(rows.data[k].status, "measured");
      put(d, "a", "x()", "measured", 1);
      put(d, "b", "x()", "measured", 1);
      hd_tune_database_close(d);
      assert_true(count_warnings(f) <= 1u + (unsigned)write);
      assert_true(count_warnings(f) >= 1);
    }
    assert_int_equal(f->diags.num_errors, 0);
  }
}

static void copies_keep_the_later(void **state) {
  fixture_t *f = *state;
  int64_t rows;
  hd_tune_database_t *d = open_file(f, true);
  put(d, "a", "x()", "measured", 1);
  put(d, "a", "y()", "measured", 2);
  hd_tune_database_close(d);
  assert_true(hd_tune_database_copy(&f->diags, f->path, f->other, &rows));
  assert_int_equal(rows, 2);
  sleep(1); // Times are in seconds.
  d = open_file(f, true);
  put(d, "a", "x()", "measured", 5);
  hd_tune_database_close(d);
  // The other one has an older x(), and nothing new.
  assert_true(hd_tune_database_copy(&f->diags, f->other, f->path, &rows));
  assert_int_equal(rows, 0);
  assert_true(hd_tune_database_copy(&f->diags, f->path, f->other, &rows));
  assert_int_equal(rows, 1);
  d = hd_tune_database_open(&f->diags, f->other, false, "gpu", "1");
  hd_tune_rows_t found = list(f, d, "a");
  assert_int_equal(found.size, 2);
  assert_string_equal(found.data[1].choice, "x()");
  assert_true(found.data[1].us == 5);
  hd_tune_database_close(d);
  assert_int_equal(f->diags.num_errors, 0);
}

static void exchanges_belong_to_the_whole(void **state) {
  fixture_t *f = *state;
  int64_t rows;
  hd_tune_database_t *d = open_file(f, true);
  assert_null(hd_tune_database_exchanged(d, &f->arena, "w", "a"));
  hd_tune_database_exchange(d, "w", "a", "x()");
  hd_tune_database_exchange(d, "w", "a", "y()");
  hd_tune_database_exchange(d, "v", "a", "z()");
  hd_tune_database_close(d);
  assert_true(hd_tune_database_copy(&f->diags, f->path, f->other, &rows));
  d = hd_tune_database_open(&f->diags, f->other, false, "gpu", "1");
  assert_string_equal(hd_tune_database_exchanged(d, &f->arena, "w", "a"),
                      "y()");
  assert_string_equal(hd_tune_database_exchanged(d, &f->arena, "v", "a"),
                      "z()");
  assert_null(hd_tune_database_exchanged(d, &f->arena, "w", "b"));
  hd_tune_database_close(d);
  d = open_file(f, true);
  hd_tune_database_forget(d, "w");
  assert_null(hd_tune_database_exchanged(d, &f->arena, "w", "a"));
  assert_string_equal(hd_tune_database_exchanged(d, &f->arena, "v", "a"),
                      "z()");
  hd_tune_database_close(d);
  d = hd_tune_database_open(&f->diags, f->other, false, "gpu", "2");
  assert_null(hd_tune_database_exchanged(d, &f->arena, "w", "a"));
  hd_tune_database_close(d);
  assert_int_equal(count_warnings(f), 0);
}

static void strangers_are_refused(void **state) {
  fixture_t *f = *state;
  int64_t rows;
  assert_false(hd_tune_database_copy(&f->diags, f->other, f->path, &rows));
  FILE *file = fopen(f->other, "w");
  assert_non_null(file);
  fputs("no database", file);
  fclose(file);
  assert_false(hd_tune_database_copy(&f->diags, f->other, f->path, &rows));
  assert_int_equal(f->diags.num_errors, 2);
  // And are left as they are: nothing is made where something else is.
  hd_tune_database_t *d =
      hd_tune_database_open(&f->diags, f->other, true, "gpu", "1");
  put(d, "a", "x()", "measured", 1);
  hd_tune_database_close(d);
  char text[20] = "";
  file = fopen(f->other, "r");
  assert_non_null(fgets(text, sizeof text, file));
  fclose(file);
  assert_string_equal(text, "no database");
}

#define DATABASE_TEST(name)                                                    \
  cmocka_unit_test_setup_teardown(name, set_up, tear_down)

HD_UNIT_TESTS(DATABASE_TEST(rows_come_back_by_time),
              DATABASE_TEST(others_do_not_see_them),
              DATABASE_TEST(no_file_is_no_rows),
              DATABASE_TEST(processes_share_it),
              DATABASE_TEST(damage_is_a_miss),
              DATABASE_TEST(copies_keep_the_later),
              DATABASE_TEST(exchanges_belong_to_the_whole),
              DATABASE_TEST(strangers_are_refused))
