// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hidet-opt: reads a module, runs passes in the order given, writes it.
#include "IR/Text/Printer.h"
#include "Runtime/Artifact.h"
#include "Schedule/Template/Machine.h"
#include "Support/File.h"
#include "Support/Suggest.h"
#include "Tools/Docs.h"
#include "Tools/Emit.h"
#include "Tools/Input.h"
#include "Tools/Passes.h"
#include "Tools/Report.h"
#include "Tools/Rewrites.h"
#include "Tools/Templates.h"
#include "Tools/VerifyDiagnostics.h"
#include "hidet/Tools.h"
#include "hidet/Version.h"

#include <stdio.h>

enum {
#define HD_OPTION(id, name, letter, type, argument, group, summary) OPT_##id,
#include "Tools/OptOptions.def"
#undef HD_OPTION
  NUM_OPTIONS
};

static const hd_option_t table[] = {
#define HD_OPTION(id, name, letter, type, argument, group, summary)            \
  {name, letter, HD_OPTION_##type, argument, group, summary},
#include "Tools/OptOptions.def"
#undef HD_OPTION
};

static const hd_loc_t nowhere;

typedef struct opt {
  hd_process_t process;
  hd_options_t options;
  hd_command_t command;
  hd_pass_list_t passes;
  hd_arena_t arena;
  hd_pass_log_t log;
  HD_VEC(const char *) left_out; // By --disable-pass.
  hd_module_t *module;           // Of the part that is being worked on.
  const char *name;
  const hd_target_t *target;
  hd_buffer_t input, output;
  hd_module_counts_t counts;
  json_t *entries; // Where a report is wanted.
  hd_rewrite_stats_t rewrites;
  unsigned parts;
  bool failed; // Some part had errors.
} opt_t;

static const hd_option_use_t *find_option(const opt_t *o, int option) {
  return hd_option_find(&o->options, option);
}

static hd_emit_format_t emit_kind(const opt_t *o) {
  return (hd_emit_format_t)hd_option_number(&o->options, OPT_EMIT, HD_EMIT_HIR);
}

static bool run_pass(opt_t *o, const hd_pass_t *pass, const char *options) {
  hd_pass_args_t args = {options, find_option(o, OPT_EXPLAIN) != NULL};
  hd_pass_config_t config = {
      hd_option_number(&o->options, OPT_VERIFY_EACH, 1) != 0, o->left_out.data,
      o->left_out.size};
  hd_pass_prints_t prints = {hd_option_text(&o->options, OPT_BEFORE, NULL),
                             hd_option_text(&o->options, OPT_AFTER, NULL),
                             find_option(o, OPT_AFTER_ALL) != NULL,
                             find_option(o, OPT_AFTER_CHANGE) != NULL};
  return hd_tools_run_pass(o->module, pass, &args, &config, &prints, &o->log);
}

static bool run_passes(opt_t *o) {
  for (size_t i = 0; i < o->options.uses.size; i++) {
    const hd_option_use_t *use = &o->options.uses.data[i];
    if (use->option < 0 &&
        !run_pass(o, o->passes.passes[use->pass], use->value))
      return false;
  }
  hd_emit_format_t emit = emit_kind(o);
  if (emit != HD_EMIT_LLVM && emit != HD_EMIT_PTX && emit != HD_EMIT_CUBIN)
    return true;
  return run_pass(o, hd_pass_list_find(&o->passes, "lower"), NULL);
}

static bool work_on_module(opt_t *o, const hd_text_part_t *part,
                           hd_buffer_t *out) {
  const char *entry = hd_option_text(&o->options, OPT_ENTRY, NULL);
  return hd_tools_parse(&o->process, &o->options, OPT_LOAD, o->name, part,
                        &o->module) &&
         hd_artifact_leave(o->module) &&
         hd_tools_rewrite_options(&o->process.context, &o->arena, &o->options,
                                  OPT_NO_RULE, o->module) &&
         hd_tools_schedule_options(&o->process.context, &o->arena, &o->options,
                                   OPT_NO_TEMPLATE, o->module, o->target,
                                   find_option(o, OPT_EXPLAIN) != NULL) &&
         hd_tools_make_entry(o->module, &entry) && run_passes(o) &&
         hd_emit_module(o->module, emit_kind(o), o->target, entry, out);
}

static void work_on_part(void *argument, const hd_text_part_t *part) {
  opt_t *o = argument;
  hd_diagnostics_t *diags = &o->process.context.diags;
  size_t start = o->output.size;
  if (o->parts++ && emit_kind(o) == HD_EMIT_HIR)
    hd_buffer_puts(&o->output, "// -----\n");
  bool ok = work_on_module(o, part, &o->output);
  if (!ok)
    o->output.size = start;
  if (ok) {
    hd_module_count(o->module, &o->counts);
    if (o->entries)
      hd_report_entries(o->module, o->entries);
  }
  if (find_option(o, OPT_EXPECTED))
    ok = hd_verify_diagnostics(diags, o->name, part);
  o->failed |= !ok;
  hd_module_destroy(o->module);
  o->module = NULL;
}

// --print-ir-before and -after and --disable-pass name passes.
static bool check_pass_name(opt_t *o, int option, const char *name) {
  if (!name || hd_pass_list_find(&o->passes, name))
    return true;
  hd_suggestion_t suggestion = {.wanted = name};
  for (size_t i = 0; i < o->passes.size; i++)
    hd_suggestion_add(&suggestion, o->passes.names[i]);
  char near[100], text[200];
  snprintf(text, sizeof(text), "--%s: there is no pass '%s'%s",
           table[option].name, name,
           hd_suggestion_text(&suggestion, "", near, sizeof(near)));
  return hd_error(&o->process.context.diags, nowhere, HD_E1003, text);
}

static bool check_pass_names(opt_t *o) {
  bool ok = true;
  for (size_t i = 0; i < o->options.uses.size; i++) {
    const hd_option_use_t *use = &o->options.uses.data[i];
    if (use->option == OPT_BEFORE || use->option == OPT_AFTER ||
        use->option == OPT_NO_PASS)
      ok &= check_pass_name(o, use->option, use->value);
    if (use->option == OPT_NO_PASS)
      hd_vec_push(&o->arena, &o->left_out, use->value);
  }
  return ok;
}

// All of them, before a file is read.
static bool check_pass_options(opt_t *o) {
  bool ok = true;
  for (size_t i = 0; i < o->options.uses.size; i++) {
    const hd_option_use_t *use = &o->options.uses.data[i];
    if (use->option < 0)
      ok &= hd_pass_check_options(&o->process.context.diags,
                                  o->passes.passes[use->pass], use->value);
  }
  return ok;
}

// Code is for a target, and so are schedules of graphs: else no driver is asked
// which GPU there is.
static bool wants_target(const opt_t *o) {
  hd_emit_format_t emit = emit_kind(o);
  bool wants = emit != HD_EMIT_HIR && emit != HD_EMIT_DOT;
  for (size_t i = 0; i < o->options.uses.size; i++) {
    const hd_option_use_t *use = &o->options.uses.data[i];
    wants |=
        use->option < 0 && o->passes.passes[use->pass]->level == HD_LEVEL_GRAPH;
  }
  return wants;
}

static bool settle_target(opt_t *o) {
  const char *name = hd_option_text(&o->options, OPT_TARGET, NULL);
  if (name)
    o->target = hd_tools_find_target(&o->process.context.diags, name);
  else if (wants_target(o))
    o->target = hd_tools_default_target();
  return o->target || !name;
}

static void write_results(opt_t *o) {
  hd_diagnostics_t *diags = &o->process.context.diags;
  const char *path = hd_option_text(&o->options, OPT_OUTPUT, "-");
  if (!o->failed || find_option(o, OPT_EXPECTED))
    hd_file_write_buffer(diags, path, &o->output);
  if (find_option(o, OPT_TIME))
    hd_report_times(&o->process.context.times);
  if (find_option(o, OPT_STATS))
    hd_report_stats(&o->log, &o->counts, &o->rewrites);
}

// However the work ended: what failed is in the report.
static void write_json(opt_t *o) {
  const char *json = hd_option_text(&o->options, OPT_JSON, NULL);
  if (json)
    hd_report_opt_json(&o->process.context, json, &o->log, &o->counts,
                       &o->rewrites, o->entries, hd_process_exit(&o->process));
}

static bool parse_instances(opt_t *o, unsigned *wanted) {
  enum { USUAL = 100, MOST = 1000000 };
  const char *text = find_option(o, OPT_PROVE)->value;
  int64_t count = USUAL;
  if (text && (!hd_parse_size(text, &count) || count < 1 || count > MOST))
    return hd_error(&o->process.context.diags, nowhere, HD_E1002,
                    "prove-rewrites", "takes a number from 1 to 1000000");
  *wanted = (unsigned)count;
  return true;
}

// A module of the files that are named: of none, an empty one.
static bool read_files(opt_t *o) {
  hd_text_part_t part = {"", 0, 1};
  o->name = "-";
  if (o->options.files.size &&
      !hd_tools_read_input(&o->process, &o->options, &o->name, &o->input))
    return false;
  if (o->options.files.size)
    part = (hd_text_part_t){hd_buffer_text(&o->input), o->input.size, 1};
  return hd_tools_parse(&o->process, &o->options, OPT_LOAD, o->name, &part,
                        &o->module) &&
         hd_artifact_leave(o->module);
}

// Of the library, and of the files that are named.
static void report_templates(opt_t *o) {
  hd_context_t *context = &o->process.context;
  if (read_files(o) &&
      hd_tools_list_templates(context, &o->arena, o->module, &o->output))
    hd_file_write_buffer(&context->diags,
                         hd_option_text(&o->options, OPT_OUTPUT, "-"),
                         &o->output);
}

static void report_rewrites(opt_t *o) {
  hd_context_t *context = &o->process.context;
  unsigned wanted;
  if (find_option(o, OPT_LIST_RULES)) {
    if (!read_files(o) ||
        !hd_tools_list_rewrites(context, &o->arena, o->module, &o->output))
      return;
  } else {
    if (!parse_instances(o, &wanted))
      return;
    if (read_files(o))
      hd_tools_prove_rewrites(context, &o->arena, o->module, wanted,
                              &o->output);
  }
  hd_file_write_buffer(&context->diags,
                       hd_option_text(&o->options, OPT_OUTPUT, "-"),
                       &o->output);
}

static void body(void *argument) {
  opt_t *o = argument;
  if (find_option(o, OPT_LIST_TEMPLATES)) {
    report_templates(o);
    return;
  }
  if (find_option(o, OPT_PROVE) || find_option(o, OPT_LIST_RULES)) {
    report_rewrites(o);
    return;
  }
  if (!check_pass_names(o) || !check_pass_options(o) || !settle_target(o) ||
      !hd_tools_read_input(&o->process, &o->options, &o->name, &o->input))
    return;
  const char *text = hd_buffer_text(&o->input);
  if (find_option(o, OPT_SPLIT) && !hd_has_suffix(o->name, ".onnx"))
    hd_text_split(text, o->input.size, work_on_part, o);
  else
    work_on_part(o, &(hd_text_part_t){text, o->input.size, 1});
  write_results(o);
}

static void list_passes(const opt_t *o, hd_buffer_t *out) {
  for (size_t i = 0; i < o->passes.size; i++) {
    const hd_pass_t *pass = o->passes.passes[i];
    hd_buffer_printf(out, "%-22s %-7s %s\n", pass->name,
                     hd_pass_level_name(pass->level), pass->summary);
  }
}

static void docs(opt_t *o, int64_t what, hd_buffer_t *out) {
  if (what == 0)
    hd_docs_passes(&o->passes, out);
  else if (what == 1)
    hd_command_man(&o->command, out);
  else if (what == 2)
    hd_docs_intrinsics(out);
  else if (what == 3)
    hd_docs_diagnostics(out);
  else if (what == 4)
    hd_docs_operators(&o->arena, out);
  else if (what == 5)
    hd_docs_options(&o->command, out);
  else if (what == 6)
    hd_docs_keywords(out);
  else
    hd_docs_tasks(&o->process.context, out);
}

// What needs no input. Returns whether there was such a thing to do.
static bool answer(opt_t *o) {
  hd_buffer_t text = {0};
  if (find_option(o, OPT_HELP))
    hd_command_help(&o->command, &text);
  else if (find_option(o, OPT_VERSION))
    hd_buffer_printf(&text, "hidet-opt %s\n", hidet_version());
  else if (find_option(o, OPT_LIST_PASSES))
    list_passes(o, &text);
  else if (find_option(o, OPT_DOCS))
    docs(o, find_option(o, OPT_DOCS)->number, &text);
  else
    return false;
  hd_file_write_buffer(&o->process.context.diags, "-", &text);
  hd_buffer_fini(&text);
  return true;
}

static void init_command(opt_t *o) {
  hd_pass_list_init(&o->passes);
  o->command = (hd_command_t){
      .name = "hidet-opt",
      .usage = "[passes and options] [file]",
      .summary = "Run passes of the Hidet compiler on a module.",
      .details =
          "Reads a .hir module or an ONNX model (or standard input), runs "
          "the passes given "
          "as options in the order given, and prints the module, or code "
          "made from it. Reports go to standard error.",
      .options = table,
      .num_options = NUM_OPTIONS,
      .passes = o->passes.names,
      .pass_summaries = o->passes.summaries,
      .num_passes = o->passes.size,
  };
}

int hidet_opt_main(int argc, char **argv) {
  if (argc > 0 && !argv)
    return HD_EXIT_USAGE;
  opt_t o = {0};
  hd_process_begin(&o.process, "hidet-opt");
  hd_arena_init(&o.arena, NULL);
  o.log.arena = &o.arena;
  o.rewrites.arena = &o.arena;
  o.process.context.rewrite_stats = &o.rewrites;
  init_command(&o);
  bool ok = hd_options_parse(&o.options, &o.command, argc, argv,
                             &o.process.context.diags);
  hd_process_color(&o.process, hd_option_number(&o.options, OPT_COLOR, 0));
  bool answered = ok && answer(&o);
  if (!answered && hd_option_given(&o.options, OPT_JSON))
    o.entries = json_array();
  if (ok && !answered) {
    hd_process_limit(&o.process, hd_option_number(&o.options, OPT_MAX_MEM, 0),
                     hd_option_number(&o.options, OPT_MAX_TIME, 0));
    hd_process_json(&o.process, hd_option_text(&o.options, OPT_JSON, NULL));
    hd_process_run(&o.process, body, &o);
  }
  if (!answered)
    write_json(&o);
  hd_module_destroy(o.module);
  hd_buffer_fini(&o.input);
  hd_buffer_fini(&o.output);
  hd_options_fini(&o.options);
  hd_arena_fini(&o.arena);
  return hd_process_end(&o.process);
}
