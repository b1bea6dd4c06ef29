// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is left in a module of all that was made for a plan, and kernels as they
// stand in it, held against the machine: what is fused into
// a candidate of a template decides how much shared memory it needs. Where one
// has more than a block has, the plan is made anew without that candidate.
#include "Fusion/Fuse.h"
#include "IR/Rewrite.h"
#include "Schedule/Template/Falls.h"
#include "Support/Map.h"

#include <math.h>

typedef struct marks {
  hd_module_t *module;
  hd_ptr_map_t used;
} marks_t;

// What a plan launches, in its loops, too.
static bool mark_launch(void *argument, const hd_stmt_t *stmt) {
  marks_t *m = argument;
  const hd_func_t *kernel = stmt->u.launch.kernel;
  if (stmt->kind == HD_STMT_LAUNCH)
    hd_ptr_map_set(&m->module->arena, &m->used, kernel, kernel);
  return true;
}

void hd_plan_sweep(hd_module_t *module, size_t added, const hd_func_t *plan) {
  marks_t m = {.module = module};
  hd_ptr_map_set(&module->arena, &m.used, plan, plan);
  hd_walk_block(plan->body, mark_launch, NULL, &m);
  size_t kept = added;
  for (size_t i = added; i < module->items.size; i++) {
    const hd_item_t *item = &module->items.data[i];
    if (item->kind != HD_ITEM_FUNC || hd_ptr_map_get(&m.used, item->u.func))
      module->items.data[kept++] = *item;
  }
  module->items.size = kept;
  hd_module_reindex(module);
}

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
  const char *why = hd_chosen_may_fall(chosen, options->falls, HD_E0505)
                        ? hd_kernel_too_large(arena, &options->machine, kernel)
                        : NULL;
  if (why)
    hd_falls_add(options->falls, &(hd_fall_t){.of = chosen->of,
                                              .why = why,
                                              .code = HD_E0505,
                                              .us = INFINITY});
  f->any |= why != NULL;
  return true;
}

// Whether candidates of its kernels are left out from here on.
static bool has_falls(hd_module_t *module, const hd_func_t *plan) {
  finding_t f = {.module = module};
  hd_walk_block(plan->body, look_at_launch, NULL, &f);
  return f.any;
}

// Each round leaves out a candidate at least, and after HD_FALLS_ROUNDS all of
// a form.
static const hd_func_t *go_on(hd_module_t *module, hd_plan_fn_t make,
                              void *argument) {
  hd_diagnostics_t *diags = &module->context->diags;
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(diags);
  size_t items = module->items.size;
  const hd_func_t *plan = make(argument);
  while (plan && has_falls(module, plan)) {
    hd_diagnostics_rewind(diags, mark);
    module->items.size = items;
    hd_module_reindex(module);
    hd_falls_begin(module->context->schedules->falls);
    plan = make(argument);
  }
  return plan;
}

typedef struct borrowed {
  hd_context_t *context;
  const hd_schedule_options_t *schedules;
} borrowed_t;

static void give_back(void *argument) {
  borrowed_t *b = argument;
  b->context->schedules = b->schedules;
}

const hd_func_t *hd_plan_in_rounds(hd_module_t *module, hd_plan_fn_t make,
                                   void *argument) {
  hd_context_t *context = module->context;
  borrowed_t borrowed = {context, context->schedules};
  if (!borrowed.schedules || !borrowed.schedules->machine.count)
    return make(argument);
  if (borrowed.schedules->falls) // The plan is part of a compilation.
    return go_on(module, make, argument);
  hd_falls_t falls = {.arena = &module->arena};
  hd_schedule_options_t schedules = *borrowed.schedules;
  hd_cleanup_t cleanup;
  schedules.falls = &falls;
  hd_budget_defer(&context->budget, &cleanup, give_back, &borrowed);
  context->schedules = &schedules;
  const hd_func_t *plan = go_on(module, make, argument);
  hd_budget_clean(&context->budget, &cleanup);
  return plan;
}
