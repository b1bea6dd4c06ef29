// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Command lines. A tool's options are a table (OptOptions.def, RunOptions.def);
// parsing, --help and the man page come from it.
#ifndef HIDET_TOOLS_OPTIONS_H
#define HIDET_TOOLS_OPTIONS_H

#include "Support/Diagnostic.h"
#include "Support/Vec.h"

typedef enum hd_option_type {
  HD_OPTION_FLAG,     // takes no value
  HD_OPTION_TEXT,     // --name=text, which is not empty
  HD_OPTION_READS,    // The same; names a file, behind the @ of `argument`
  HD_OPTION_WRITES,   // where there is one: Tools/Outputs.h
  HD_OPTION_MAYBE,    // --name or --name=text
  HD_OPTION_COUNT,    // an integer from 0
  HD_OPTION_REAL,     // a number from 0
  HD_OPTION_SIZE,     // bytes, with k, M or G for powers of 1024
  HD_OPTION_DURATION, // milliseconds: 30s, 500ms, 2m, 30 (seconds)
  HD_OPTION_BOOL,     // --name, --name=0, --name=1
  HD_OPTION_CHOICE,   // one of those in `argument`, parted by |
} hd_option_type_t;

typedef struct hd_option {
  const char *name; // Without dashes.
  char letter;      // -o; 0 where there is none.
  hd_option_type_t type;
  const char *argument; // What help calls the value.
  const char *group;    // Heading in help; "" hides the option.
  const char *summary;
} hd_option_t;

// One use of an option on the command line, or of a name from `passes`.
typedef struct hd_option_use {
  int option;        // Index into the table; -1 where it is a pass.
  int pass;          // Index into the passes.
  const char *value; // NULL where none was given.
  int64_t number;    // COUNT, SIZE, DURATION, BOOL; the index of a CHOICE.
  double real;       // REAL.
} hd_option_use_t;

// What a tool accepts.
typedef struct hd_command {
  const char *name;    // "hidet-opt"
  const char *usage;   // "[passes and options] [file]"
  const char *summary; // One line.
  const char *details; // Paragraphs for the man page, one a line.
  const hd_option_t *options;
  size_t num_options;
  // Options that stand for passes, in the order of their use; may be none.
  const char *const *passes;
  const char *const *pass_summaries;
  size_t num_passes;
} hd_command_t;

typedef struct hd_options {
  const hd_command_t *command;
  hd_arena_t arena;
  HD_VEC(hd_option_use_t) uses;
  HD_VEC(const char *) files;
} hd_options_t;

// Reports every fault (E1001, E1002) and returns whether there was none. What
// is read and written at once is one, and taken out of the uses:
// hd_outputs_check() is part of it. The strings of argv must outlive the
// options.
bool hd_options_parse(hd_options_t *options, const hd_command_t *command,
                      int argc, char **argv, hd_diagnostics_t *diags);
void hd_options_fini(hd_options_t *options);

// The last use of an option; NULL where it was not given.
const hd_option_use_t *hd_option_find(const hd_options_t *options, int option);
static inline bool hd_option_given(const hd_options_t *options, int option) {
  return hd_option_find(options, option) != NULL;
}
// Values of the last use, or the default.
const char *hd_option_text(const hd_options_t *options, int option,
                           const char *otherwise);
int64_t hd_option_number(const hd_options_t *options, int option,
                         int64_t otherwise);
double hd_option_real(const hd_options_t *options, int option,
                      double otherwise);

void hd_command_help(const hd_command_t *command, hd_buffer_t *out);
void hd_command_man(const hd_command_t *command, hd_buffer_t *out);

// Parses "30s", "500ms", "2m" or "30"; false where it is none.
bool hd_parse_duration(const char *text, int64_t *milliseconds);
// Parses "64", "64k", "2M", "1.5G".
bool hd_parse_size(const char *text, int64_t *bytes);
// What a cache holds at the most: $HIDET_CACHE_SIZE, else HD_CACHE_BYTES; false
// where the variable is no size.
bool hd_parse_cache_size(int64_t *bytes);

#endif
