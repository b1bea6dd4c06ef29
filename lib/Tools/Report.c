// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/Report.h"
#include "IR/Graph/Graph.h"
#include "IR/Rewrite.h"
#include "Schedule/Template/Machine.h"
#include "Tools/Interface.h"
#include "hidet/Version.h"

#include <stdio.h>

static bool count_statement(void *argument, const hd_stmt_t *stmt) {
  (void)stmt;
  ++*(uint64_t *)argument;
  return true;
}

static void count_func(const hd_func_t *func, hd_module_counts_t *counts) {
  switch (func->kind) {
  case HD_FUNC_KERNEL:
    counts->kernels++;
    break;
  case HD_FUNC_FN:
    counts->functions++;
    break;
  case HD_FUNC_PLAN:
    counts->plans++;
    break;
  }
  hd_walk_block(func->body, count_statement, NULL, &counts->statements);
}

// Nodes of a group stand together.
static void count_groups(const hd_graph_t *graph, hd_module_counts_t *counts) {
  uint32_t last = 0;
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    counts->groups += node->group && node->group != last;
    counts->anchors += node->anchor;
    last = node->group;
  }
}

void hd_module_count(const hd_module_t *module, hd_module_counts_t *counts) {
  for (size_t i = 0; i < module->items.size; i++) {
    const hd_item_t *item = &module->items.data[i];
    switch (item->kind) {
    case HD_ITEM_CONST:
      counts->constants++;
      break;
    case HD_ITEM_FUNC:
      count_func(item->u.func, counts);
      break;
    case HD_ITEM_TASK:
      counts->tasks++;
      break;
    case HD_ITEM_GRAPH:
      counts->graphs++;
      count_groups(item->u.graph, counts);
      break;
    case HD_ITEM_GENERIC:
    case HD_ITEM_REWRITE:
    case HD_ITEM_TEMPLATE:
      break;
    }
  }
}

void hd_report_times(hd_times_t *times) {
  double total = (double)hd_times_total(times) * 1e-6;
  fprintf(stderr, "%10s  %6s  %s\n", "time (ms)", "share", "step");
  for (size_t i = 1; i <= times->size; i++) { // What has no name comes last.
    const hd_time_part_t *part = &times->parts[i % times->size];
    double ms = (double)part->ns * 1e-6;
    fprintf(stderr, "%10.3f  %5.1f%%  %s\n", ms,
            total > 0 ? 100 * ms / total : 0, part->name);
  }
  fprintf(stderr, "%10.3f  %5.1f%%  total\n", total, 100.0);
  if (times->threads > 1)
    fprintf(stderr,
            "%u threads did %.3f ms of it side by side, %.3f ms of work; each "
            "step has its share\n",
            times->threads, (double)times->shared_ns * 1e-6,
            (double)times->work_ns * 1e-6);
}

json_t *hd_report_times_json(hd_times_t *times) {
  json_t *rows = json_array();
  hd_times_total(times);
  for (size_t i = 1; i <= times->size; i++) {
    const hd_time_part_t *part = &times->parts[i % times->size];
    json_array_append_new(rows, json_pack("{s:s, s:f}", "name", part->name,
                                          "ms", (double)part->ns * 1e-6));
  }
  return rows;
}

void hd_report_stats(const hd_pass_log_t *log, const hd_module_counts_t *counts,
                     const hd_rewrite_stats_t *rewrites) {
  for (size_t i = 0; i < log->records.size; i++)
    fprintf(stderr, "%-22s %s\n", log->records.data[i].name,
            log->records.data[i].changed ? "changed" : "unchanged");
  fprintf(
      stderr,
      "kernels %u, functions %u, plans %u, constants %u, tasks %u, graphs %u, "
      "groups %u, anchors %u, statements %llu\n",
      counts->kernels, counts->functions, counts->plans, counts->constants,
      counts->tasks, counts->graphs, counts->groups, counts->anchors,
      (unsigned long long)counts->statements);
  for (size_t i = 0; i < rewrites->rules.size; i++)
    fprintf(stderr, "rewrite %-30s %lld\n", rewrites->rules.data[i].name,
            (long long)rewrites->rules.data[i].count);
  if (rewrites->nodes_before)
    fprintf(stderr, "rewrites %lld, nodes %zu before, %zu after\n",
            (long long)rewrites->steps, rewrites->nodes_before,
            rewrites->nodes_after);
}

void hd_report_entries(hd_module_t *module, json_t *entries) {
  for (size_t i = 0; i < module->items.size; i++) {
    const hd_item_t *item = &module->items.data[i];
    if (item->kind == HD_ITEM_FUNC && item->u.func->kind == HD_FUNC_KERNEL)
      json_array_append_new(entries,
                            hd_interface_json(&module->arena, item->u.func));
  }
}

// What schedules were chosen for, if anything.
static void add_machine(json_t *object,
                        const hd_schedule_options_t *schedules) {
  if (!schedules || !schedules->machine.count)
    return;
  const hd_machine_t *machine = &schedules->machine;
  json_object_set_new(object, "machine",
                      json_pack("{s:i, s:i, s:f, s:f}", "sm", machine->sm,
                                "multiprocessors", machine->count, "mhz",
                                machine->mhz, "gbs", machine->gbs));
}

bool hd_report_opt_json(hd_context_t *context, const char *path,
                        const hd_pass_log_t *log,
                        const hd_module_counts_t *counts,
                        const hd_rewrite_stats_t *rewrites, json_t *entries,
                        int exit_code) {
  hd_diagnostics_t *diags = &context->diags;
  json_t *rules = json_array();
  for (size_t i = 0; i < rewrites->rules.size; i++)
    json_array_append_new(
        rules, json_pack("{s:s, s:I}", "name", rewrites->rules.data[i].name,
                         "count", (json_int_t)rewrites->rules.data[i].count));
  json_t *passes = json_array();
  for (size_t i = 0; i < log->records.size; i++) {
    const hd_pass_record_t *record = &log->records.data[i];
    json_array_append_new(passes,
                          json_pack("{s:s, s:f, s:b}", "name", record->name,
                                    "ms", (double)record->ns * 1e-6, "changed",
                                    (int)record->changed));
  }
  json_t *object =
      json_pack("{s:s, s:o, s:i, s:o, s:i, s:i, s:i, s:i, s:I, s:o, s:i, s:o}",
                "version", hidet_version(), "passes", passes, "kernels",
                (int)counts->kernels, "entries", entries, "functions",
                (int)counts->functions, "plans", (int)counts->plans, "groups",
                (int)counts->groups, "anchors", (int)counts->anchors,
                "statements", (json_int_t)counts->statements, "rewrites", rules,
                "exit", exit_code, "diagnostics", hd_json_diagnostics(diags));
  add_machine(object, context->schedules);
  return hd_json_write(diags, path, object);
}
