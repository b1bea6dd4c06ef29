// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A line that says how far long work is: on a terminal, and not before it has
// taken a second.
#ifndef HIDET_TOOLS_PROGRESS_H
#define HIDET_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hd_progress {
  const char *what;
  uint64_t start_ns, shown_ns;
  bool wanted, shown;
} hd_progress_t;

// quiet: never show it.
void hd_progress_begin(hd_progress_t *progress, const char *what, bool quiet);
// done of total pieces; the time left follows from them.
void hd_progress_step(hd_progress_t *progress, double done, double total);
// Wipes the line.
void hd_progress_end(hd_progress_t *progress);

#endif
