// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Support/Steps.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const kind_names[HD_STEP_KINDS] = {
    [HD_STEP_REWRITE] = "rewrite", [HD_STEP_PRECISION] = "precision",
    [HD_STEP_FUSION] = "fusion",   [HD_STEP_KERNEL] = "kernel",
    [HD_STEP_PASS] = "pass",
};

const char *hd_step_kind_name(hd_step_kind_t kind) { return kind_names[kind]; }

bool hd_step(hd_steps_t *steps, hd_step_kind_t kind, const char *format, ...) {
  uint64_t number = ++steps->count;
  bool done = !steps->limited || number <= steps->limit;
  if (!steps->watch && !steps->plant)
    return done;
  va_list args;
  va_start(args, format);
  vsnprintf(steps->name, sizeof steps->name, format, args);
  va_end(args);
  steps->last = (hd_step_info_t){number, kind, steps->name, done};
  if (steps->watch)
    steps->watch(steps->watch_argument, &steps->last);
  return done;
}

const void *hd_step_made(hd_steps_t *steps, void *module, const void *made) {
  if (!steps->plant || !steps->last.done)
    return made;
  return steps->plant(steps->plant_argument, &steps->last, module, made);
}
