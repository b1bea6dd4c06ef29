// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/Passes.h"
#include "Fusion/Passes.h"
#include "Graph/Passes.h"
#include "IR/Text/Printer.h"
#include "TaskMapping/Passes.h"

#include <stdio.h>

static void add_table(hd_pass_list_t *list, const hd_pass_t *passes,
                      size_t count) {
  for (size_t i = 0; i < count; i++) {
    list->passes[list->size] = &passes[i];
    list->names[list->size] = passes[i].name;
    list->summaries[list->size] = passes[i].summary;
    list->size++;
  }
}

void hd_pass_list_init(hd_pass_list_t *list) {
  list->size = 0;
  add_table(list, hd_ir_passes, hd_ir_num_passes);
  add_table(list, hd_task_mapping_passes, hd_task_mapping_num_passes);
  add_table(list, hd_graph_passes, hd_graph_num_passes);
  add_table(list, hd_fusion_passes, hd_fusion_num_passes);
}

const hd_pass_t *hd_pass_list_find(const hd_pass_list_t *list,
                                   const char *name) {
  for (size_t i = 0; i < list->size; i++)
    if (strcmp(list->names[i], name) == 0)
      return list->passes[i];
  return NULL;
}

const char *hd_pass_level_name(hd_pass_level_t level) {
  switch (level) {
  case HD_LEVEL_KERNEL:
    return "kernel";
  case HD_LEVEL_PLAN:
    return "plan";
  case HD_LEVEL_GRAPH:
    return "graph";
  }
  return "";
}

static void print_ir(const hd_module_t *module, const char *when,
                     const char *name) {
  hd_buffer_t text = {0};
  hd_module_print(module, &text);
  fprintf(stderr, "// ----- IR %s %s -----\n%s", when, name,
          hd_buffer_text(&text));
  hd_buffer_fini(&text);
}

static bool is_named(const char *option, const hd_pass_t *pass) {
  return option && strcmp(option, pass->name) == 0;
}

static bool is_left_out(const hd_pass_config_t *config, const hd_pass_t *pass) {
  for (size_t i = 0; i < config->num_left_out; i++)
    if (is_named(config->left_out[i], pass))
      return true;
  return false;
}

static bool run_one(hd_module_t *module, const hd_pass_t *pass,
                    const hd_pass_args_t *args, const hd_pass_config_t *config,
                    const hd_pass_prints_t *prints, hd_pass_log_t *log) {
  if (is_left_out(config, pass))
    return true;
  if (prints && is_named(prints->before, pass))
    print_ir(module, "before", pass->name);
  hd_pass_result_t result = hd_pass_run(module, pass, args, config);
  if (prints && (is_named(prints->after, pass) || prints->after_all ||
                 (prints->after_change && result.changed)))
    print_ir(module, "after", pass->name);
  hd_pass_record_t record = {pass->name, result.ns, result.changed};
  if (log)
    hd_vec_push(log->arena, &log->records, record);
  return result.ok;
}

// The passes of the pipeline one by one, so that each is seen.
static bool run_lower(hd_module_t *module, const hd_pass_args_t *args,
                      const hd_pass_config_t *config,
                      const hd_pass_prints_t *prints, hd_pass_log_t *log) {
  hd_pass_list_t list;
  hd_pass_args_t inner = {NULL, args->explain};
  hd_pass_list_init(&list);
  for (size_t i = 0; hd_lower_pipeline[i]; i++) {
    bool left_out = hd_pass_option_given(args->options, "layouts") &&
                    strcmp(hd_lower_pipeline[i], "resolve-layouts") == 0;
    const hd_pass_t *pass = hd_pass_list_find(&list, hd_lower_pipeline[i]);
    if (!left_out && !run_one(module, pass, &inner, config, prints, log))
      return false;
  }
  return true;
}

bool hd_tools_run_pass(hd_module_t *module, const hd_pass_t *pass,
                       const hd_pass_args_t *args,
                       const hd_pass_config_t *config,
                       const hd_pass_prints_t *prints, hd_pass_log_t *log) {
  if (strcmp(pass->name, "lower") == 0 && !is_left_out(config, pass))
    return hd_pass_check_options(&module->context->diags, pass,
                                 args->options) &&
           run_lower(module, args, config, prints, log);
  return run_one(module, pass, args, config, prints, log);
}
