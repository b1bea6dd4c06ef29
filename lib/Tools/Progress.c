// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/Progress.h"
#include "Support/Budget.h"

#include <stdio.h>
#include <unistd.h>

static const uint64_t first_ns = 1000000000u, every_ns = 100000000u;

void hd_progress_begin(hd_progress_t *progress, const char *what, bool quiet) {
  *progress = (hd_progress_t){.what = what,
                              .start_ns = hd_clock_ns(),
                              .wanted = !quiet && isatty(STDERR_FILENO)};
}

void hd_progress_step(hd_progress_t *progress, double done, double total) {
  if (!progress->wanted)
    return;
  uint64_t now = hd_clock_ns();
  if (now - progress->start_ns < first_ns ||
      now - progress->shown_ns < every_ns)
    return;
  progress->shown_ns = now;
  progress->shown = true;
  double left = 0;
  if (done > 0)
    left = (double)(now - progress->start_ns) * 1e-9 * (total / done - 1);
  fprintf(stderr, "\r\033[K%s: %.0f of %.0f, %.0f s left", progress->what, done,
          total, left);
}

void hd_progress_end(hd_progress_t *progress) {
  if (progress->shown)
    fprintf(stderr, "\r\033[K");
}
