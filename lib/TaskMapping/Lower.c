// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of this folder: their table, `verify`, and the pipeline `lower`.

#include "IR/Passes/Passes.h"
#include "IR/Verify/Verifier.h"
#include "TaskMapping/Passes.h"
#include "TaskMapping/TaskMapping.h"

#include <string.h>

const hd_pass_t hd_task_mapping_passes[] = {
#define HD_PASS HD_PASS_ROW
#include "TaskMapping/Passes.def"
#undef HD_PASS
};
const size_t hd_task_mapping_num_passes =
    sizeof hd_task_mapping_passes / sizeof hd_task_mapping_passes[0];

const hd_func_t *hd_pass_verify(hd_module_t *module, const hd_func_t *func,
                                const hd_pass_args_t *args) {
  (void)args;
  return hd_func_verify(module->context, func) &&
                 hd_func_verify_mappings(module->context, func)
             ? func
             : NULL;
}

// A point is inlined as a whole; what it calls, after it has been lowered.
const char *const hd_lower_pipeline[] = {
    "inline",   "lower-points", "inline",    "lower-task-mapping",
    "simplify", "unroll",       "vectorize", "resolve-layouts",
    "cse",      "dce",          NULL,
};

// Without them a kernel runs as well.
static const char *const optional[] = {
    "simplify", "unroll", "vectorize", "resolve-layouts", "cse", "dce",
};

static bool is_optional(const char *pass) {
  for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++)
    if (strcmp(optional[i], pass) == 0)
      return true;
  return false;
}

// --bisect may leave a pass out.
static const hd_func_t *try_step(hd_module_t *module, const hd_func_t *func,
                                 const hd_pass_t *pass,
                                 const hd_pass_args_t *args) {
  hd_steps_t *steps = &module->context->steps;
  if (!is_optional(pass->name))
    return pass->run(module, func, args);
  if (!hd_step(steps, HD_STEP_PASS, "%s on '%s'", pass->name, func->name))
    return func;
  const hd_func_t *made = pass->run(module, func, args);
  return made ? hd_step_made(steps, module, made) : NULL;
}

static const hd_func_t *run_step(hd_module_t *module, const hd_func_t *func,
                                 const hd_pass_t *pass,
                                 const hd_pass_args_t *args) {
  size_t part = hd_times_enter(&module->context->times, pass->name);
  func = try_step(module, func, pass, args);
  hd_times_leave(&module->context->times, part);
  return func;
}

static const hd_pass_t *find_pass(const char *name) {
  for (size_t i = 0; i < hd_task_mapping_num_passes; ++i)
    if (strcmp(hd_task_mapping_passes[i].name, name) == 0)
      return &hd_task_mapping_passes[i];
  for (size_t i = 0; i < hd_ir_num_passes; ++i)
    if (strcmp(hd_ir_passes[i].name, name) == 0)
      return &hd_ir_passes[i];
  return NULL;
}

// With layouts=keep accesses keep their indices, for the simulator's checks to
// name; the emitter works out the offsets.
const hd_func_t *hd_pass_lower(hd_module_t *module, const hd_func_t *func,
                               const hd_pass_args_t *args) {
  hd_pass_args_t inner = {NULL, args->explain};
  bool keep = hd_pass_option_given(args->options, "layouts");
  for (size_t i = 0; func && hd_lower_pipeline[i]; ++i)
    if (!keep || strcmp(hd_lower_pipeline[i], "resolve-layouts") != 0)
      func = run_step(module, func, find_pass(hd_lower_pipeline[i]), &inner);
  return func;
}
