// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Diagnostics: what the user is told. One mechanism serves text, devices and
// files: a function that can fail takes (or reaches) a hd_diagnostics_t,
// reports there and returns false or NULL. The table Diagnostics.def holds
// every code, its exit class and its wording.
#ifndef HIDET_SUPPORT_DIAGNOSTIC_H
#define HIDET_SUPPORT_DIAGNOSTIC_H

#include "Support/Arena.h"
#include "Support/Buffer.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum hd_diagnostic_code {
#define HD_DIAGNOSTIC(code, class, format) HD_##code,
#include "Support/Diagnostics.def"
#undef HD_DIAGNOSTIC
  HD_DIAGNOSTIC_COUNT
} hd_diagnostic_code_t;

// Exit codes of the tools.
typedef enum hd_exit {
  HD_EXIT_OK = 0,
  HD_EXIT_MISMATCH = 1,
  HD_EXIT_USAGE = 2,
  HD_EXIT_INVALID = 3,
  HD_EXIT_UNSUPPORTED = 4,
  HD_EXIT_RESOURCE = 5,
  HD_EXIT_DEVICE = 6,
  HD_EXIT_INTERNAL = 70,
  HD_EXIT_INTERRUPTED = 130,
} hd_exit_t;

typedef enum hd_severity {
  HD_ERROR,
  HD_WARNING,
  HD_REMARK,
  HD_NOTE
} hd_severity_t;

// A place in a text. All zero: nowhere.
typedef struct hd_loc {
  uint32_t source; // 1 + index into hd_diagnostics_t.sources.
  uint32_t offset; // In bytes.
} hd_loc_t;

typedef struct hd_source {
  const char *name;
  const char *text;
  size_t size;
  uint32_t first_line; // 1, or more where the text is a part of a file.
} hd_source_t;

typedef struct hd_diagnostic {
  hd_severity_t severity;
  hd_diagnostic_code_t code; // Of an error; a note carries its error's.
  hd_loc_t loc;
  const char *message;
  struct hd_diagnostic *next; // Notes follow their error.
  const char *node; // The node of a model that it is about; NULL: none.
} hd_diagnostic_t;

// Locked inside: several threads may report to one object.
typedef struct hd_diagnostics {
  pthread_mutex_t lock;
  // Of its own, without a budget: errors can be told always. Where memory runs
  // out they are counted alone.
  hd_arena_t arena;
  hd_source_t *sources;
  uint32_t num_sources, cap_sources;
  hd_diagnostic_t *first, *last;
  unsigned num_errors;
  unsigned max_errors;  // 0: no bound.
  hd_exit_t exit_class; // That of the first error.
} hd_diagnostics_t;

void hd_diagnostics_init(hd_diagnostics_t *diags);
void hd_diagnostics_fini(hd_diagnostics_t *diags);

// Copies name and text. Returns the source's id for hd_loc_t; 0 where memory
// runs out.
uint32_t hd_diagnostics_add_source(hd_diagnostics_t *diags, const char *name,
                                   const char *text, size_t size,
                                   uint32_t first_line);

// Reports an error; the arguments are those of the code's format. Returns
// false, so that a caller can `return hd_error(...)`.
bool hd_error(hd_diagnostics_t *diags, hd_loc_t loc, hd_diagnostic_code_t code,
              ...);
bool hd_verror(hd_diagnostics_t *diags, hd_loc_t loc, hd_diagnostic_code_t code,
               va_list args);
// Reports that a budget is used up, if it is (E0901 to E0904); returns whether
// it is not. milliseconds: the limit that its deadline was made of.
bool hd_error_exhausted(hd_diagnostics_t *diags, const hd_budget_t *budget,
                        hd_exhausted_t what, int64_t milliseconds);
// Adds to the error before it.
void hd_note(hd_diagnostics_t *diags, hd_loc_t loc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void hd_remark(hd_diagnostics_t *diags, hd_loc_t loc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void hd_warning(hd_diagnostics_t *diags, hd_loc_t loc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Reports to `to` what was reported to `from`, in order; places are of `to`'s
// sources.
void hd_diagnostics_take(hd_diagnostics_t *to, const hd_diagnostics_t *from);
// For one without sources of its own, which ends before `from`: it has those
// that `from` has now.
void hd_diagnostics_see_sources(hd_diagnostics_t *diags,
                                const hd_diagnostics_t *from);

// What has been reported until now; rewinding forgets what came after it. For
// work that may fail without anybody being told, on the thread that reports.
typedef struct hd_diagnostics_mark {
  hd_diagnostic_t *last;
  unsigned num_errors;
  hd_exit_t exit_class;
} hd_diagnostics_mark_t;
hd_diagnostics_mark_t hd_diagnostics_mark(hd_diagnostics_t *diags);
void hd_diagnostics_rewind(hd_diagnostics_t *diags, hd_diagnostics_mark_t mark);

// What has been reported since is about a node, as the model names it, but for
// what is about one already. Copies the name.
void hd_diagnostics_name_node(hd_diagnostics_t *diags,
                              hd_diagnostics_mark_t mark, const char *node);

// The first of what has been reported since; NULL: nothing.
const hd_diagnostic_t *hd_diagnostics_since(hd_diagnostics_t *diags,
                                            hd_diagnostics_mark_t mark);

// Adds a note to each error since the mark, behind those it has.
void hd_diagnostics_note_each(hd_diagnostics_t *diags,
                              hd_diagnostics_mark_t mark, hd_loc_t loc,
                              const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// Forgets what came after the mark, but for errors that keep() wants.
void hd_diagnostics_sift(hd_diagnostics_t *diags, hd_diagnostics_mark_t mark,
                         bool (*keep)(hd_diagnostic_code_t));

// What was reported since the mark stands in texts that are not here.
void hd_diagnostics_displace(hd_diagnostics_t *diags,
                             hd_diagnostics_mark_t mark);

// Whether further errors would be counted, but not shown.
bool hd_diagnostics_full(const hd_diagnostics_t *diags);

// "E0312".
const char *hd_diagnostic_code_name(hd_diagnostic_code_t code);
hd_exit_t hd_diagnostic_exit(hd_diagnostic_code_t code);

// 1-based line and column of a place; false for nowhere. Columns count bytes.
bool hd_diagnostics_locate(const hd_diagnostics_t *diags, hd_loc_t loc,
                           const char **name, uint32_t *line, uint32_t *column);

// Writes `file:line:col: error[E0102]: message`, the line and a caret.
void hd_diagnostic_print(const hd_diagnostics_t *diags,
                         const hd_diagnostic_t *diagnostic, bool color,
                         hd_buffer_t *out);
// Writes all that were reported since the last clear.
void hd_diagnostics_print(const hd_diagnostics_t *diags, bool color,
                          hd_buffer_t *out);
// Forgets diagnostics (not sources) and the error count.
void hd_diagnostics_clear(hd_diagnostics_t *diags);

#endif
