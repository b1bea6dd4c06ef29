// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What was measured, in a SQLite file: for a group's key, a device and a build
// of the compiler, what each candidate came to. Several processes may use one
// file at once. A file that is damaged, or cannot be opened, is one without
// rows, and a warning says so, once.
#ifndef HIDET_TUNE_DATABASE_H
#define HIDET_TUNE_DATABASE_H

#include "Support/Diagnostic.h"
#include "Support/Vec.h"

typedef struct hd_tune_database hd_tune_database_t;

typedef struct hd_tune_row {
  const char *choice; // "product_mma(BM = 64, ...)"
  const char *status; // "measured", or why it was left out (Tune.h).
  const char *note;   // What was said of it; "" where nothing.
  double us;          // Of a run; of what was left out 0.
} hd_tune_row_t;

typedef HD_VEC(hd_tune_row_t) hd_tune_rows_t;

// device and compiler: what the rows that are asked for and put belong to.
// write: makes the file and its folders where they are not; else a file that is
// not there has no rows, and nothing is said. NULL where memory runs out.
hd_tune_database_t *hd_tune_database_open(hd_diagnostics_t *diags,
                                          const char *path, bool write,
                                          const char *device,
                                          const char *compiler);
void hd_tune_database_close(hd_tune_database_t *database); // NULL is allowed,
                                                           // here and below.

// The rows of a group, by time, in the arena.
void hd_tune_database_list(hd_tune_database_t *database, hd_arena_t *arena,
                           const char *group, hd_tune_rows_t *rows);
// Adds a row, or takes another's place; it is on the disk when this returns.
// text: the group as the user may read it.
void hd_tune_database_put(hd_tune_database_t *database, const char *group,
                          const char *text, const hd_tune_row_t *row);

// The same for what a graph's groups, of one key together, take for what is the
// best of each alone: choice, for a group among them.
void hd_tune_database_exchange(hd_tune_database_t *database, const char *whole,
                               const char *group, const char *choice);
// There are other candidates now: nothing is known of the whole any more.
void hd_tune_database_forget(hd_tune_database_t *database, const char *whole);
// In the arena; NULL: nothing is known.
const char *hd_tune_database_exchanged(hd_tune_database_t *database,
                                       hd_arena_t *arena, const char *whole,
                                       const char *group);

// Copies all rows of a file to another, which is made where it is not there; of
// two for the same candidate the later one stays. *rows: how many were taken
// over. False after an error: E0801, E0802, E0812.
bool hd_tune_database_copy(hd_diagnostics_t *diags, const char *from,
                           const char *to, int64_t *rows);

#endif
