// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Fusion/Fuse.h"
#include "Fusion/Passes.h"
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

bool hd_pass_schedule_anchors(hd_module_t *module, const hd_graph_t *graph,
                              const hd_pass_args_t *args, hd_item_t *version) {
  (void)args;
  return take_graph(
      version, hd_graph_schedule_anchors(
                   module, hd_scheduler_create(module, &module->arena), graph));
}

// --- What is left over ---

static void mark_func(hd_module_t *module, hd_ptr_map_t *used,
                      const hd_func_t *func) {
  if (hd_ptr_map_get(used, func))
    return;
  hd_ptr_map_set(&module->arena, used, func, func);
  for (uint32_t i = 0; func->kind == HD_FUNC_PLAN && i < func->body.size; i++)
    if (func->body.stmts[i]->kind == HD_STMT_LAUNCH)
      mark_func(module, used, func->body.stmts[i]->u.launch.kernel);
}

// Of the items from number added on, takes out the plans and kernels that the
// last one, the plan of the whole, does not run: schedules of anchors that went
// into it. Then the plan takes the graph's place.
static void take_plan(hd_module_t *module, size_t added, hd_item_t *version) {
  hd_ptr_map_t used = {0};
  *version = module->items.data[--module->items.size];
  mark_func(module, &used, version->u.func);
  size_t kept = added;
  for (size_t i = added; i < module->items.size; i++)
    if (hd_ptr_map_get(&used, module->items.data[i].u.func))
      module->items.data[kept++] = module->items.data[i];
  module->items.size = kept;
  hd_module_reindex(module);
}

bool hd_pass_apply_fusion(hd_module_t *module, const hd_graph_t *graph,
                          const hd_pass_args_t *args, hd_item_t *version) {
  size_t added = module->items.size;
  hd_scheduler_t *scheduler = hd_scheduler_create(module, &module->arena);
  const hd_func_t *plan =
      hd_graph_apply_fusion(module, scheduler, graph, args->explain);
  if (!plan)
    return false;
  take_plan(module, added, version);
  return true;
}

bool hd_pass_schedule(hd_module_t *module, const hd_graph_t *graph,
                      const hd_pass_args_t *args, hd_item_t *version) {
  size_t added = module->items.size;
  hd_scheduler_t *scheduler = hd_scheduler_create(module, &module->arena);
  const hd_graph_t *scheduled =
      hd_graph_schedule_anchors(module, scheduler, graph);
  const hd_func_t *plan =
      scheduled
          ? hd_graph_apply_fusion(module, scheduler, scheduled, args->explain)
          : NULL;
  if (!plan)
    return false;
  take_plan(module, added, version);
  return true;
}
