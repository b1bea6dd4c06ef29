// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tune/Database.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// Of the tables below; a file with another one is none of ours.
enum { FORMAT = 1, BUSY_MS = 5000 };

static const hd_loc_t nowhere;

static const char tables[] =
    "PRAGMA application_id = 1751737444;" // hidt
    "PRAGMA user_version = 1;"
    "CREATE TABLE IF NOT EXISTS groups (name TEXT PRIMARY KEY, text TEXT NOT "
    "NULL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS measured (name TEXT NOT NULL, device TEXT NOT "
    "NULL, compiler TEXT NOT NULL, choice TEXT NOT NULL, status TEXT NOT NULL, "
    "note TEXT NOT NULL, us REAL NOT NULL, at INTEGER NOT NULL, "
    "PRIMARY KEY (name, device, compiler, choice)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS exchanged (whole TEXT NOT NULL, name TEXT NOT "
    "NULL, device TEXT NOT NULL, compiler TEXT NOT NULL, choice TEXT NOT NULL, "
    "at INTEGER NOT NULL, PRIMARY KEY (whole, name, device, compiler)) "
    "WITHOUT ROWID;";

// Of each of them; no row.
static const char columns[] =
    "SELECT m.name, m.device, m.compiler, m.choice, m.status, m.note, m.us, "
    "m.at, g.name, g.text, e.whole, e.name, e.device, e.compiler, e.choice, "
    "e.at FROM measured AS m, groups AS g, exchanged AS e LIMIT 0";

struct hd_tune_database {
  hd_diagnostics_t *diags;
  char *path, *device, *compiler;
  sqlite3 *file; // NULL: there is none, or it is of no use.
};

// What is wrong with a file.
static const char *fault_of(const char *path, sqlite3 *file) {
  struct stat status;
  bool is_there = stat(path, &status) == 0;
  if (is_there && S_ISDIR(status.st_mode))
    return "it is a folder";
  if (is_there && S_ISREG(status.st_mode) && status.st_size == 0)
    return "it is empty";
  return file && sqlite3_errcode(file) != SQLITE_OK
             ? sqlite3_errmsg(file)
             : "it holds no measurements of this kind";
}

// From here on it has no rows.
static void give_up(hd_tune_database_t *d) {
  if (d->file)
    hd_warning(d->diags, nowhere,
               "what was measured cannot be kept or read: '%s': %s", d->path,
               fault_of(d->path, d->file));
  sqlite3_close(d->file);
  d->file = NULL;
}

static int number_of(sqlite3 *file, const char *question) {
  sqlite3_stmt *statement = NULL;
  int number = -1;
  if (sqlite3_prepare_v2(file, question, -1, &statement, NULL) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW)
    number = sqlite3_column_int(statement, 0);
  sqlite3_finalize(statement);
  return number;
}

// *file may be set after an error, too: it says what went wrong.
static bool open_file(const char *path, bool write, sqlite3 **file) {
  int flags =
      write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  if (sqlite3_open_v2(path, file, flags | SQLITE_OPEN_NOMUTEX, NULL) !=
      SQLITE_OK)
    return false;
  sqlite3_busy_timeout(*file, BUSY_MS);
  // The file may be a stranger's.
  sqlite3_db_config(*file, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  sqlite3_db_config(*file, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  int format = number_of(*file, "PRAGMA user_version");
  bool is_new = format == 0 && write &&
                number_of(*file, "SELECT count(*) FROM sqlite_schema") == 0;
  if (is_new)
    return sqlite3_exec(*file, tables, NULL, NULL, NULL) == SQLITE_OK;
  // What is no database has said so by now.
  return format == FORMAT &&
         sqlite3_exec(*file, columns, NULL, NULL, NULL) == SQLITE_OK &&
         sqlite3_exec(*file, "SELECT us FROM measured LIMIT 1", NULL, NULL,
                      NULL) == SQLITE_OK;
}

hd_tune_database_t *hd_tune_database_open(hd_diagnostics_t *diags,
                                          const char *path, bool write,
                                          const char *device,
                                          const char *compiler) {
  hd_tune_database_t *d = calloc(1, sizeof(*d));
  if (!d)
    return NULL;
  *d = (hd_tune_database_t){.diags = diags,
                            .path = strdup(path),
                            .device = strdup(device),
                            .compiler = strdup(compiler)};
  if (!d->path || !d->device || !d->compiler) {
    hd_tune_database_close(d);
    return NULL;
  }
  if ((write || access(path, F_OK) == 0) && !open_file(path, write, &d->file))
    give_up(d);
  return d;
}

void hd_tune_database_close(hd_tune_database_t *d) {
  if (!d)
    return;
  sqlite3_close(d->file);
  free(d->path);
  free(d->device);
  free(d->compiler);
  free(d);
}

// NULL: of no use any more.
static sqlite3_stmt *prepare(hd_tune_database_t *d, const char *text) {
  sqlite3_stmt *statement = NULL;
  if (d && d->file &&
      sqlite3_prepare_v2(d->file, text, -1, &statement, NULL) != SQLITE_OK)
    give_up(d);
  return statement;
}

static void bind(sqlite3_stmt *statement, int number, const char *text) {
  sqlite3_bind_text(statement, number, text, -1, SQLITE_TRANSIENT);
}

static const char *text_of(hd_arena_t *arena, sqlite3_stmt *statement,
                           int column) {
  const unsigned char *text = sqlite3_column_text(statement, column);
  return hd_arena_printf(arena, "%s", text ? (const char *)text : "");
}

void hd_tune_database_list(hd_tune_database_t *d, hd_arena_t *arena,
                           const char *group, hd_tune_rows_t *rows) {
  sqlite3_stmt *s = prepare(
      d, "SELECT choice, status, note, us FROM measured WHERE name = ?1 AND "
         "device = ?2 AND compiler = ?3 ORDER BY us, choice");
  if (!s)
    return;
  bind(s, 1, group);
  bind(s, 2, d->device);
  bind(s, 3, d->compiler);
  int code;
  while ((code = sqlite3_step(s)) == SQLITE_ROW) {
    hd_tune_row_t row = {text_of(arena, s, 0), text_of(arena, s, 1),
                         text_of(arena, s, 2), sqlite3_column_double(s, 3)};
    hd_vec_push(arena, rows, row);
  }
  sqlite3_finalize(s);
  if (code != SQLITE_DONE)
    give_up(d);
}

static bool run_statement(hd_tune_database_t *d, sqlite3_stmt *s) {
  bool ok = sqlite3_step(s) == SQLITE_DONE;
  sqlite3_finalize(s);
  if (!ok)
    give_up(d);
  return ok;
}

void hd_tune_database_put(hd_tune_database_t *d, const char *group,
                          const char *text, const hd_tune_row_t *row) {
  sqlite3_stmt *s = prepare(d, "INSERT OR IGNORE INTO groups VALUES (?1, ?2)");
  if (!s)
    return;
  bind(s, 1, group);
  bind(s, 2, text);
  if (!run_statement(d, s))
    return;
  s = prepare(d, "INSERT OR REPLACE INTO measured VALUES "
                 "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
  if (!s)
    return;
  bind(s, 1, group);
  bind(s, 2, d->device);
  bind(s, 3, d->compiler);
  bind(s, 4, row->choice);
  bind(s, 5, row->status);
  bind(s, 6, row->note);
  sqlite3_bind_double(s, 7, row->us);
  sqlite3_bind_int64(s, 8, (sqlite3_int64)time(NULL));
  run_statement(d, s);
}

void hd_tune_database_exchange(hd_tune_database_t *d, const char *whole,
                               const char *group, const char *choice) {
  sqlite3_stmt *s = prepare(
      d, "INSERT OR REPLACE INTO exchanged VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
  if (!s)
    return;
  bind(s, 1, whole);
  bind(s, 2, group);
  bind(s, 3, d->device);
  bind(s, 4, d->compiler);
  bind(s, 5, choice);
  sqlite3_bind_int64(s, 6, (sqlite3_int64)time(NULL));
  run_statement(d, s);
}

void hd_tune_database_forget(hd_tune_database_t *d, const char *whole) {
  sqlite3_stmt *s = prepare(d, "DELETE FROM exchanged WHERE whole = ?1 AND "
                               "device = ?2 AND compiler = ?3");
  if (!s)
    return;
  bind(s, 1, whole);
  bind(s, 2, d->device);
  bind(s, 3, d->compiler);
  run_statement(d, s);
}

const char *hd_tune_database_exchanged(hd_tune_database_t *d, hd_arena_t *arena,
                                       const char *whole, const char *group) {
  const char *choice = NULL;
  sqlite3_stmt *s =
      prepare(d, "SELECT choice FROM exchanged WHERE whole = ?1 AND name = ?2 "
                 "AND device = ?3 AND compiler = ?4");
  if (!s)
    return NULL;
  bind(s, 1, whole);
  bind(s, 2, group);
  bind(s, 3, d->device);
  bind(s, 4, d->compiler);
  int code = sqlite3_step(s);
  if (code == SQLITE_ROW)
    choice = text_of(arena, s, 0);
  sqlite3_finalize(s);
  if (code != SQLITE_ROW && code != SQLITE_DONE)
    give_up(d);
  return choice;
}

// --- Copies ---

static bool fail(hd_diagnostics_t *diags, const char *path, sqlite3 *file) {
  return hd_error(diags, nowhere, HD_E0812, path, fault_of(path, file));
}

static bool copy_rows(sqlite3 *to, const char *from, int64_t *rows) {
  static const char take[] =
      "BEGIN IMMEDIATE;"
      "INSERT OR IGNORE INTO main.groups SELECT name, text FROM given.groups;"
      "INSERT INTO main.measured SELECT name, device, compiler, choice, "
      "status, note, us, at FROM given.measured WHERE true "
      "ON CONFLICT DO UPDATE SET status = excluded.status, note = "
      "excluded.note, us = excluded.us, at = excluded.at "
      "WHERE excluded.at > at;";
  static const char take_exchanged[] =
      "INSERT INTO main.exchanged SELECT whole, name, device, compiler, "
      "choice, at FROM given.exchanged WHERE true ON CONFLICT DO UPDATE SET "
      "choice = excluded.choice, at = excluded.at WHERE excluded.at > at;";
  sqlite3_stmt *attach = NULL;
  bool ok = sqlite3_prepare_v2(to, "ATTACH ?1 AS given", -1, &attach, NULL) ==
            SQLITE_OK;
  if (ok) {
    bind(attach, 1, from);
    ok = sqlite3_step(attach) == SQLITE_DONE;
  }
  sqlite3_finalize(attach);
  ok = ok && sqlite3_exec(to, take, NULL, NULL, NULL) == SQLITE_OK;
  *rows = sqlite3_changes(to);
  ok = ok && sqlite3_exec(to, take_exchanged, NULL, NULL, NULL) == SQLITE_OK;
  return ok && sqlite3_exec(to, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
}

static bool is_same_file(const char *a, const char *b) {
  struct stat left, right;
  return stat(a, &left) == 0 && stat(b, &right) == 0 &&
         left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

bool hd_tune_database_copy(hd_diagnostics_t *diags, const char *from,
                           const char *to, int64_t *rows) {
  sqlite3 *file = NULL;
  if (access(from, R_OK) != 0)
    return hd_error(diags, nowhere, HD_E0801, from, strerror(errno));
  if (is_same_file(from, to))
    return hd_error(diags, nowhere, HD_E0802, to,
                    "it is what the measurements are copied from");
  bool ok = open_file(from, false, &file) || fail(diags, from, file);
  sqlite3_close(file);
  file = NULL;
  ok = ok && ((open_file(to, true, &file) && copy_rows(file, from, rows)) ||
              fail(diags, to, file));
  sqlite3_close(file);
  return ok;
}
