// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels as they stand in a plan, held against the machine: what is fused into
// a candidate of a template decides how much shared memory it needs. Where one
// has more than a block has, the plan is made anew without that candidate.
#include "Fusion/Fuse.h"
#include "IR/Rewrite.h"
#include "Schedule/Template/Falls.h"
#include "Support/Map.h"

#include <math.h>

// Each leaves at least one candidate out.
enum { MAX_ROUNDS = 64 };

typedef struct finding {
  hd_module_t *module;
  hd_ptr_map_t seen; // Kernels.
  bool any;
} finding_t;

static bool look_at_launch(void *argument, const hd_stmt_t *stmt) {
  finding_t *f = argument;
  const hd_schedule_options_t *options = f->module->context->schedules;
  hd_arena_t *arena = &f->module->arena;
  if (stmt->kind != HD_STMT_LAUNCH)
    return true;
  const hd_func_t *kernel = stmt->u.launch.kernel;
  if (hd_ptr_map_get(&f->seen, kernel))
    return true;
  hd_ptr_map_set(arena, &f->seen, kernel, kernel);
  const hd_chosen_t *chosen = kernel->chosen;
  const char *why = chosen && !chosen->is_pinned
                        ? hd_kernel_too_large(arena, &options->machine, kernel)
                        : NULL;
  if (why) {
    hd_chosen_fall(chosen, options->falls, arena, why, INFINITY);
    f->any = true;
  }
  return true;
}

// Whether candidates of its kernels are left out from here on.
static bool has_falls(hd_module_t *module, const hd_func_t *plan) {
  const hd_schedule_options_t *options = module->context->schedules;
  finding_t f = {.module = module};
  if (options && options->falls && options->machine.count)
    hd_walk_block(plan->body, look_at_launch, NULL, &f);
  return f.any;
}

const hd_func_t *hd_plan_in_rounds(hd_module_t *module, hd_plan_fn_t make,
                                   void *argument) {
  hd_diagnostics_t *diags = &module->context->diags;
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(diags);
  size_t items = module->items.size;
  const hd_func_t *plan = make(argument);
  for (int i = 1; i < MAX_ROUNDS && plan && has_falls(module, plan); i++) {
    hd_diagnostics_rewind(diags, mark);
    module->items.size = items;
    hd_module_reindex(module);
    hd_falls_begin(module->context->schedules->falls, true);
    plan = make(argument);
  }
  return plan;
}
