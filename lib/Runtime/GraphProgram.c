// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Runtime/GraphProgram.h"
#include "Fusion/Fuse.h"
#include "Fusion/Passes.h"
#include "TaskMapping/Passes.h"

#include <string.h>

static const hd_pass_t *find_pass(const hd_pass_t *passes, const char *name) {
  while (strcmp(passes->name, name) != 0)
    passes++;
  return passes;
}

// The graph's plan, and its kernels.
static const hd_func_t *make_plan(hd_module_t *made, const hd_graph_t *graph,
                                  const hd_schedule_options_t *schedules,
                                  const hd_graph_program_options_t *options,
                                  const hd_pass_config_t *config) {
  hd_fuse_options_t fuse = {options->unfused, options->formed, options->explain,
                            options->inouts};
  hd_pass_args_t args = {NULL, options->explain};
  const hd_pass_t *early = find_pass(hd_fusion_passes, "early-launches");
  const hd_func_t *plan = hd_graph_compile(made, graph, &fuse);
  // What runs one after the other gains nothing, but may be looked at.
  bool overlaps = !schedules->simulated || options->keep_layouts;
  return !plan || options->in_turn || !overlaps ||
                 hd_pass_run(made, early, &args, config).ok
             ? plan
             : NULL;
}

bool hd_graph_program_init(hd_program_t *program, hd_device_t *device,
                           hd_module_t *made, const hd_graph_t *graph,
                           const hd_schedule_options_t *schedules,
                           const hd_graph_program_options_t *options) {
  hd_context_t *context = made->context;
  hd_pass_args_t args = {options->keep_layouts ? "layouts=keep" : NULL,
                         options->explain};
  hd_pass_config_t config = {.verify_each = true};
  hd_program_options_t how = {.specialize = true,
                              .apart = options->keep_layouts};
  const hd_env_t none = {0};
  const hd_schedule_options_t *outer = context->schedules;
  context->schedules = schedules;
  const hd_func_t *plan = make_plan(made, graph, schedules, options, &config);
  context->schedules = outer;
  return plan && hd_program_init(program, device, made, plan, &none, &how) &&
         hd_pass_run(program->module,
                     find_pass(hd_task_mapping_passes, "lower"), &args, &config)
             .ok;
}
