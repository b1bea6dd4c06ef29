// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What --explain says of what is known of a group.
#include "Tune/TunerState.h"

#include <string.h>

static bool has_choice(const hd_tuned_t *tuned, const char *choice) {
  for (size_t i = 0; i < tuned->candidates.size; i++)
    if (strcmp(tuned->candidates.data[i].choice, choice) == 0)
      return true;
  return false;
}

void hd_tuned_note_gone(hd_tuned_t *tuned, const hd_tune_rows_t *rows) {
  for (size_t i = 0; i < rows->size && !tuned->gone; i++) {
    const hd_tune_row_t *row = &rows->data[i];
    if (strcmp(row->status, hd_tune_status_text(HD_TUNE_MEASURED)) != 0 ||
        has_choice(tuned, row->choice))
      continue;
    tuned->gone = row->choice;
    tuned->gone_us = row->us;
  }
}

void hd_tuner_explain(hd_tuner_t *t, const hd_tuned_t *tuned, hd_loc_t loc) {
  hd_diagnostics_t *diags = &t->device->context->diags;
  for (size_t i = 0; i < tuned->candidates.size; i++) {
    const hd_tune_candidate_t *c = &tuned->candidates.data[i];
    const char *from = c->was_known ? ", as the database has it" : "";
    const char *expected =
        c->expected_us > 0
            ? hd_arena_printf(&t->arena, ", %.2f expected", c->expected_us)
            : "";
    if (c->status == HD_TUNE_MEASURED)
      hd_remark(diags, loc, "tune: %s: %s: %.2f us%s%s", tuned->name, c->choice,
                c->us, expected, from);
    else
      hd_remark(diags, loc, "tune: %s: %s: %s%s", tuned->name, c->choice,
                hd_tune_status_text(c->status), from);
  }
  if (tuned->gone)
    hd_remark(diags, loc,
              "tune: %s: %s: no candidate here, %.2f us as the database has it",
              tuned->name, tuned->gone, tuned->gone_us);
}
