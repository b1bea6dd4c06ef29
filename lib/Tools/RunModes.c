// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Options of hidet-run that would do nothing beside others: who asks for a
// comparison that is not made, or for a file that is not written, is told.
#include "Tools/RunTool.h"

static const hd_loc_t nowhere;

enum { MOST = 14 };

// A mode, what of it the message says, and the options that say nothing in it.
typedef struct {
  int mode;
  const char *does;
  int idle[MOST]; // Ends at RUN_HELP, which is never one.
} mode_t;

// clang-format off
static const mode_t modes[] = {
    {RUN_CHECK, "runs nothing",
     {RUN_OUTPUT, RUN_PRINT, RUN_EXPECTED, RUN_TEST_DATA, RUN_BENCH,
      RUN_PROFILE, RUN_TUNE, RUN_SAVE, RUN_SANITIZE, RUN_BISECT, RUN_COMPARE}},
    {RUN_BISECT, "compares each step with ref, for the sizes given",
     {RUN_OUTPUT, RUN_PRINT, RUN_EXPECTED, RUN_TEST_DATA, RUN_BENCH,
      RUN_PROFILE, RUN_SAVE, RUN_BUCKETS, RUN_INOUT}},
    {RUN_COMPARE, "compares each node with f32, for the sizes given",
     {RUN_OUTPUT, RUN_PRINT, RUN_EXPECTED, RUN_TEST_DATA, RUN_BENCH,
      RUN_PROFILE, RUN_SAVE, RUN_BUCKETS, RUN_INOUT}},
    {RUN_TEST_DATA, "has the inputs and what is expected",
     {RUN_INPUT, RUN_SHAPE, RUN_OUTPUT, RUN_EXPECTED}},
};
// clang-format on

// What a kernel or a plan has no use for.
static const int of_models[] = {RUN_PRECISION, RUN_COMPARE,   RUN_BISECT,
                                RUN_CHECK,     RUN_TEST_DATA, RUN_SAVE,
                                RUN_BUCKETS,   RUN_INOUT,     RUN_TUNE};

static bool refuse(hd_run_t *run, int option, const char *why) {
  const char *name = run->command.options[option].name;
  return hd_error(hd_run_diags(run), nowhere, HD_E1002,
                  hd_arena_printf(&run->arena, "--%s", name), why);
}

bool hd_run_check_modes(hd_run_t *run) {
  bool ok = true;
  for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
    const mode_t *m = &modes[i];
    for (int k = 0; hd_run_given(run, m->mode) && m->idle[k]; k++)
      if (hd_run_given(run, m->idle[k]))
        ok = refuse(
            run, m->idle[k],
            hd_arena_printf(&run->arena, "does nothing beside --%s, which %s",
                            run->command.options[m->mode].name, m->does));
  }
  return ok;
}

bool hd_run_check_entry(hd_run_t *run) {
  bool ok = true;
  for (size_t i = 0; i < sizeof(of_models) / sizeof(of_models[0]); i++)
    if (!run->graph && hd_run_given(run, of_models[i]))
      ok = refuse(run, of_models[i], "is for models");
  return ok;
}
