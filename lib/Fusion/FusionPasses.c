// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Fusion/Fuse.h"
#include "Fusion/Passes.h"
#include "Graph/Loops.h"
#include "IR/Rewrite.h"
#include "Support/Map.h"

const hd_pass_t hd_fusion_passes[] = {
#define HD_PASS HD_PASS_ROW
#include "Fusion/Passes.def"
#undef HD_PASS
};
const size_t hd_fusion_num_passes =
    sizeof hd_fusion_passes / sizeof hd_fusion_passes[0];

static bool take_graph(hd_item_t *version, const hd_graph_t *graph) {
  version->u.graph = graph;
  return graph;
}

bool hd_pass_fuse(hd_module_t *module, const hd_graph_t *graph,
                  const hd_pass_args_t *args, hd_item_t *version) {
  return hd_graph_check_tasks(module, graph) &&
         take_graph(version, hd_graph_fuse(module, graph, args->explain));
}

bool hd_pass_pair_products(hd_module_t *module, const hd_graph_t *graph,
                           const hd_pass_args_t *args, hd_item_t *version) {
  return hd_graph_check_tasks(module, graph) &&
         take_graph(version,
                    hd_graph_pair_products(module, graph, args->explain));
}

bool hd_pass_schedule_anchors(hd_module_t *module, const hd_graph_t *graph,
                              const hd_pass_args_t *args, hd_item_t *version) {
  (void)args;
  return take_graph(
      version,
      hd_graph_schedule_anchors(
          module, hd_scheduler_create(module, &module->arena), graph, false));
}

// --- What is left over ---

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

// Of the items from number added on, takes out the plans and kernels that the
// last one, the plan of the whole, does not run: schedules of anchors that went
// into it. Then the plan takes the graph's place.
static void take_plan(hd_module_t *module, size_t added, hd_item_t *version) {
  marks_t m = {.module = module};
  *version = module->items.data[--module->items.size];
  hd_walk_block(version->u.func->body, mark_launch, NULL, &m);
  size_t kept = added;
  for (size_t i = added; i < module->items.size; i++)
    if (hd_ptr_map_get(&m.used, module->items.data[i].u.func))
      module->items.data[kept++] = module->items.data[i];
  module->items.size = kept;
  hd_module_reindex(module);
}

// A plan that stands alone gives every output of the graph; one in a session
// need not give what is there already (hd_planned_outputs()).
static const hd_func_t *make_plan(hd_module_t *module,
                                  hd_scheduler_t *scheduler,
                                  const hd_graph_t *graph,
                                  const hd_pass_args_t *args) {
  const hd_inouts_t none = {0};
  return hd_graph_apply_fusion(module, scheduler,
                               hd_graph_outputs_apart(module, graph), &none,
                               args->explain);
}

bool hd_pass_apply_fusion(hd_module_t *module, const hd_graph_t *graph,
                          const hd_pass_args_t *args, hd_item_t *version) {
  size_t added = module->items.size;
  hd_scheduler_t *scheduler = hd_scheduler_create(module, &module->arena);
  const hd_func_t *plan = make_plan(module, scheduler, graph, args);
  if (!plan)
    return false;
  take_plan(module, added, version);
  return true;
}

typedef struct scheduling {
  hd_module_t *module;
  const hd_graph_t *graph;
  const hd_pass_args_t *args;
} scheduling_t;

static const hd_func_t *schedule(void *argument) {
  const scheduling_t *s = argument;
  hd_scheduler_t *scheduler = hd_scheduler_create(s->module, &s->module->arena);
  const hd_graph_t *scheduled =
      hd_graph_schedule_anchors(s->module, scheduler, s->graph, true);
  return scheduled ? make_plan(s->module, scheduler, scheduled, s->args) : NULL;
}

bool hd_pass_schedule(hd_module_t *module, const hd_graph_t *graph,
                      const hd_pass_args_t *args, hd_item_t *version) {
  size_t added = module->items.size;
  scheduling_t scheduling = {module, graph, args};
  const hd_func_t *plan = hd_plan_in_rounds(module, schedule, &scheduling);
  if (!plan)
    return false;
  take_plan(module, added, version);
  return true;
}
