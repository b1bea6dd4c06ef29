// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hidet-run: runs a kernel or a plan of a module on a device.
#include "Runtime/Cache.h"
#include "Runtime/Cuda.h"
#include "Support/File.h"
#include "Support/HostMemory.h"
#include "Support/Suggest.h"
#include "Tools/Docs.h"
#include "Tools/Emit.h"
#include "Tools/Report.h"
#include "Tools/Rewrites.h"
#include "Tools/RunTool.h"
#include "Tools/Templates.h"
#include "hidet/Tools.h"
#include "hidet/Version.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const hd_option_t table[] = {
#define HD_OPTION(id, name, letter, type, argument, group, summary)            \
  {name, letter, HD_OPTION_##type, argument, group, summary},
#include "Tools/RunOptions.def"
#undef HD_OPTION
};

static const hd_loc_t nowhere;

static bool fail(hd_run_t *run, const char *text) {
  return hd_error(hd_run_diags(run), nowhere, HD_E1003, text);
}

static bool find_entry(hd_run_t *run) {
  const hd_artifact_t *file = run->module->artifact;
  const char *name =
      hd_option_text(&run->options, RUN_ENTRY, file ? file->entry : NULL);
  const hd_graph_t *graph = hd_module_find_graph(run->module, name);
  if (graph)
    return hd_run_take_graph(run, graph);
  if (!hd_tools_make_entry(run->module, &name))
    return false;
  hd_suggestion_t near = {.wanted = name ? name : ""};
  run->entry = name ? NULL : hd_module_entry(run->module);
  for (size_t i = 0; name && i < run->module->items.size; i++) {
    const hd_item_t *item = &run->module->items.data[i];
    if (item->kind == HD_ITEM_GRAPH || item->kind == HD_ITEM_GENERIC)
      hd_suggestion_add(&near, hd_item_name(item));
    if (item->kind != HD_ITEM_FUNC || item->u.func->kind == HD_FUNC_FN)
      continue;
    if (strcmp(item->u.func->name, name) == 0)
      run->entry = item->u.func;
    hd_suggestion_add(&near, item->u.func->name);
  }
  if (run->entry)
    return true;
  char text[300], suggestion[100];
  snprintf(text, sizeof(text),
           "--entry: '%s' has no graph, kernel or plan '%s'%s", run->name,
           name ? name : "",
           hd_suggestion_text(&near, "", suggestion, sizeof(suggestion)));
  return fail(run,
              name ? text
                   : "the module has no graph, no kernel and no plan to run");
}

// The passes of --disable-pass.
static bool leave_out_passes(hd_run_t *run) {
  bool ok = true;
  for (size_t i = 0; i < run->options.uses.size; i++) {
    const hd_option_use_t *use = &run->options.uses.data[i];
    if (use->option != RUN_NO_PASS)
      continue;
    hd_model_pass_t pass = hd_model_pass_find(use->value);
    if (pass < HD_NUM_MODEL_PASSES) {
      run->left_out |= UINT32_C(1) << pass;
      continue;
    }
    hd_buffer_t text = {0};
    hd_buffer_printf(&text, "--disable-pass: there is no pass '%s'; there are",
                     use->value);
    for (unsigned k = 0; k < HD_NUM_MODEL_PASSES; k++)
      hd_buffer_printf(&text, "%s %s", k ? "," : "",
                       hd_model_pass_name((hd_model_pass_t)k));
    ok = fail(run, hd_arena_printf(&run->arena, "%s", hd_buffer_text(&text)));
    hd_buffer_fini(&text);
  }
  return ok;
}

static bool read_module(hd_run_t *run) {
  if (!leave_out_passes(run) ||
      !hd_tools_read_input(&run->process, &run->options, &run->name,
                           &run->input))
    return false;
  hd_text_part_t part = {hd_buffer_text(&run->input), run->input.size, 1};
  return hd_tools_parse(&run->process, &run->options, RUN_LOAD, run->name,
                        &part, &run->module) &&
         hd_tools_rewrite_options(&run->process.context, &run->arena,
                                  &run->options, RUN_NO_RULE, run->module) &&
         hd_tools_schedule_options(&run->process.context, &run->arena,
                                   &run->options, RUN_NO_TEMPLATE, run->module,
                                   NULL, false);
}

static bool import_module(hd_run_t *run) {
  uint64_t start = hd_clock_ns();
  if (run->options.files.size == 0)
    return fail(run, "no input file is given (- is standard input)");
  if (!read_module(run) || !find_entry(run))
    return false;
  run->num_params = run->entry->num_params;
  run->tensors =
      HD_ARENA_ARRAY(&run->arena, hd_run_tensor_t, run->num_params + 1);
  for (uint32_t i = 0; i < run->num_params; i++)
    if (run->entry->params[i]->tensor)
      run->tensors[i].param = run->entry->params[i];
  run->import_ms = (double)(hd_clock_ns() - start) * 1e-6;
  return true;
}

static const char *settle_device(hd_run_t *run) {
  const char *device = hd_option_text(&run->options, RUN_DEVICE, "auto");
  if (strcmp(device, "auto") != 0)
    return device;
  bool wants_sim = hd_run_given(run, RUN_SANITIZE) ||
                   hd_run_given(run, RUN_SEED) || hd_run_given(run, RUN_ASYNC);
  device = !wants_sim && hd_cuda_present_sm() ? "cuda" : "sim";
  if (!run->process.quiet)
    fprintf(stderr, "hidet-run: running on %s\n",
            device[0] == 'c' ? "the GPU"
            : wants_sim      ? "the simulator"
                             : "the simulator: there is no GPU");
  return device;
}

// An unknown target is one wherever the work is done.
static bool settle_target(hd_run_t *run) {
  const char *target = hd_option_text(&run->options, RUN_TARGET, NULL);
  if (target)
    run->target = hd_tools_find_target(hd_run_diags(run), target);
  return !target || run->target;
}

// Code of the simulator is soon made and large: it is kept where somebody asks.
static bool device_options(hd_run_t *run, bool sim,
                           hd_device_options_t *options, char **cache_dir) {
  *options = (hd_device_options_t){
      .target = run->target,
      .sanitize = hd_run_given(run, RUN_SANITIZE),
      .seed = (uint64_t)hd_option_number(&run->options, RUN_SEED, 0),
      .async = (hd_sim_async_t)hd_option_number(&run->options, RUN_ASYNC, 0),
      .threads = (unsigned)hd_option_number(&run->options, RUN_JOBS, 0),
      .verbose = hd_run_given(run, RUN_VERBOSE),
  };
  if (options->threads > 1024)
    return fail(run, "-j takes at most 1024");
  if (!hd_run_given(run, RUN_CACHE_SIZE) &&
      !hd_parse_cache_size(&options->cache_bytes))
    return fail(run, "$HIDET_CACHE_SIZE is no size such as 512M");
  options->cache_bytes =
      hd_option_number(&run->options, RUN_CACHE_SIZE, options->cache_bytes);
  if (!hd_run_given(run, RUN_NO_CACHE) && options->cache_bytes) {
    const char *dir = hd_option_text(&run->options, RUN_CACHE_DIR, NULL);
    *cache_dir = dir ? strdup(dir) : sim ? NULL : hd_cache_default_dir();
    options->cache_dir = *cache_dir;
    if (dir && !hd_cache_may_keep(dir))
      hd_warning(hd_run_diags(run), nowhere, "nothing is kept in '%s': %s", dir,
                 strerror(errno));
  }
  if (!options->cache_dir)
    options->cache_dir = hd_run_tune_cache(run);
  return true;
}

static bool open_device(hd_run_t *run) {
  hd_device_options_t options = {0};
  char *cache_dir = NULL;
  const char *device = settle_device(run);
  bool sim = strcmp(device, "sim") == 0;
  int ordinal = hd_cuda_ordinal(device);
  if (!sim && (hd_run_given(run, RUN_SANITIZE) || hd_run_given(run, RUN_SEED) ||
               hd_run_given(run, RUN_ASYNC)))
    return fail(run, "--sanitize, --seed and --async are for --device=sim");
  if (strcmp(device, "ref") == 0 && run->entry)
    return run->graph ||
           hd_error(hd_run_diags(run), nowhere, HD_E0609,
                    run->entry->kind == HD_FUNC_PLAN ? "a plan" : "a kernel",
                    "ref");
  if (!sim && ordinal < 0)
    return hd_error(hd_run_diags(run), nowhere, HD_E1002, "--device",
                    "is one of auto, cuda, cuda:N, sim and ref");
  if (device_options(run, sim, &options, &cache_dir))
    run->device =
        sim ? hd_device_open_sim(&run->process.context, &options)
            : hd_device_open_cuda(&run->process.context, ordinal, &options);
  bool ok = run->device && hd_run_make_tuner(run, cache_dir);
  free(cache_dir);
  return ok;
}

static bool compile(hd_run_t *run) {
  // Indices stay as written where findings are to name them.
  const char *keep = hd_run_given(run, RUN_SANITIZE) ? "layouts=keep" : NULL;
  hd_pass_args_t args = {keep, hd_run_given(run, RUN_EXPLAIN)};
  hd_pass_config_t config = {.verify_each = true};
  hd_pass_prints_t prints = {0};
  hd_program_options_t options = {
      .specialize = hd_option_number(&run->options, RUN_SPECIALIZE, 1) != 0,
      .explain = args.explain,
      .apart = hd_run_given(run, RUN_SANITIZE)};
  uint64_t start = hd_clock_ns();
  bool ok = hd_program_init(&run->program, run->device, run->module, run->entry,
                            &run->env, &options);
  ok = ok &&
       hd_tools_run_pass(run->program.module,
                         hd_pass_list_find(&run->passes, "lower"), &args,
                         &config, &prints, NULL) &&
       hd_program_load(&run->program);
  run->compile_ms = (double)(hd_clock_ns() - start) * 1e-6;
  if (ok) {
    run->kernels = (int64_t)run->program.variants.size;
    run->launches = run->program.num_launches;
    run->moved = hd_program_moved(&run->program, 0, 0);
  }
  return ok;
}

static bool first_run(hd_run_t *run) {
  hd_slot_t *slots =
      HD_ARENA_ARRAY(&run->arena, hd_slot_t, run->num_params + 1);
  for (uint32_t i = 0; i < run->num_params; i++)
    slots[i] = run->tensors[i].slot;
  uint64_t start = hd_clock_ns();
  bool ok = hd_program_run(&run->program, slots);
  run->first_run_ms = (double)(hd_clock_ns() - start) * 1e-6;
  run->has_run = true;
  run->device_bytes = (int64_t)run->device->peak_bytes; // Without --bench's.
  if (ok && hd_run_given(run, RUN_VERBOSE))
    fprintf(stderr,
            "hidet-run: %lld launches on %s; compiled in %.1f ms, run in %.3f "
            "ms\n",
            (long long)run->program.num_launches, run->device->info.name,
            run->compile_ms, run->first_run_ms);
  return ok;
}

static bool load_data(hd_run_t *run) {
  uint64_t start = hd_clock_ns();
  bool ok = hd_run_upload(run);
  run->load_ms = (double)(hd_clock_ns() - start) * 1e-6;
  return ok;
}

// Of what writes its own inputs, each run has others.
static bool changes_inputs(const hd_run_t *run) {
  for (uint32_t i = 0; i < run->num_params; i++)
    if (hd_run_is_input(&run->tensors[i]) && hd_run_is_output(&run->tensors[i]))
      return true;
  return false;
}

// The outputs are those of the last run that is measured, as it is measured.
static void report(hd_run_t *run) {
  bool last = hd_run_given(run, RUN_BENCH) && !changes_inputs(run);
  bool done = run->graph && hd_run_given(run, RUN_TEST_DATA);
  if (!last && !done)
    hd_run_outputs(run);
  if (hd_run_given(run, RUN_BENCH) && !hd_run_bench(run))
    return;
  if (last && !done)
    hd_run_outputs(run);
  if (hd_run_given(run, RUN_PROFILE))
    hd_run_profile(run);
  if (hd_run_given(run, RUN_TRACE))
    hd_run_time_launches(run);
}

static void body(void *argument) {
  hd_run_t *run = argument;
  if (!hd_run_check_modes(run) || !hd_run_check_bench(run) ||
      !hd_run_check_tune(run) || !settle_target(run) ||
      hd_run_copy_measurements(run))
    return;
  if (hd_run_given(run, RUN_TUNE_WORKER)) {
    if (open_device(run))
      hd_run_work(run);
    return;
  }
  if (!import_module(run) || !hd_run_check_entry(run))
    return;
  if (hd_run_given(run, RUN_CHECK)) {
    hd_run_check(run);
    return;
  }
  if (!open_device(run))
    return;
  if (run->graph) {
    if (hd_run_model(run) && run->has_run)
      report(run);
    return;
  }
  if (hd_run_bind(run) && compile(run) && load_data(run) && first_run(run))
    report(run);
}

static void docs(const hd_run_t *run, hd_buffer_t *out) {
  if (hd_option_number(&run->options, RUN_DOCS, 0) == 0)
    hd_command_man(&run->command, out);
  else
    hd_docs_options(&run->command, out);
}

// What needs no input. Returns whether there was such a thing to do.
static bool answer(hd_run_t *run) {
  hd_buffer_t text = {0};
  if (hd_run_given(run, RUN_HELP))
    hd_command_help(&run->command, &text);
  else if (hd_run_given(run, RUN_VERSION))
    hd_buffer_printf(&text, "hidet-run %s\n", hidet_version());
  else if (hd_run_given(run, RUN_DOCS))
    docs(run, &text);
  else
    return false;
  hd_file_write_buffer(hd_run_diags(run), "-", &text);
  hd_buffer_fini(&text);
  return true;
}

static void init_command(hd_run_t *run) {
  run->command = (hd_command_t){
      .name = "hidet-run",
      .usage = "[options] file",
      .summary = "Run a kernel or a plan on a GPU or on the simulator.",
      .details = "Compiles a .hir module, binds sizes from the inputs' shapes, "
                 "runs its entry, and saves, prints, compares or sums up the "
                 "outputs. Reports go to standard error, results to standard "
                 "output.\n\nTypes that NumPy lacks travel as raw bits: bf16 "
                 "as uint16, the f8 types as uint8; i4, u4, i2, u2 and f4 take "
                 "a byte for each element.",
      .options = table,
      .num_options = RUN_NUM_OPTIONS,
  };
}

static void free_all(hd_run_t *run) {
  hd_budget_t *budget = &run->process.context.budget;
  for (size_t i = 0; run->device && i < run->num_sets; i++)
    run->device->ops->free(run->device, run->sets[i]);
  for (uint32_t i = 0; run->tensors && i < run->num_params; i++) {
    hd_run_tensor_t *t = &run->tensors[i];
    hd_host_memory_free(budget, t->storage, t->slot.bytes);
    hd_host_tensor_fini(&t->host);
    if (run->device && t->slot.address)
      run->device->ops->free(run->device, t->slot.address);
  }
  hd_session_destroy(run->session);
  hd_run_end_tuner(run);
  hd_program_fini(&run->program);
  hd_device_close(run->device);
  hd_module_destroy(run->module);
  hd_buffer_fini(&run->input);
  hd_options_fini(&run->options);
  hd_trace_destroy(run->process.context.times.trace);
  hd_arena_fini(&run->arena);
}

int hidet_run_main(int argc, char **argv) {
  if (argc > 0 && !argv)
    return HD_EXIT_USAGE;
  hd_run_t run = {0};
  hd_process_begin(&run.process, "hidet-run");
  hd_arena_init(&run.arena, NULL);
  hd_pass_list_init(&run.passes);
  init_command(&run);
  bool ok = hd_options_parse(&run.options, &run.command, argc, argv,
                             hd_run_diags(&run));
  hd_process_color(&run.process, hd_option_number(&run.options, RUN_COLOR, 0));
  run.process.quiet = hd_run_given(&run, RUN_QUIET);
  bool answered = ok && answer(&run);
  if (ok && !answered) {
    hd_process_limit(&run.process,
                     hd_option_number(&run.options, RUN_MAX_MEM, 0),
                     hd_option_number(&run.options, RUN_MAX_TIME, 0));
    hd_process_json(&run.process, hd_option_text(&run.options, RUN_JSON, NULL));
    if (!hd_run_given(&run, RUN_TRACE) || hd_run_begin_trace(&run))
      hd_process_run(&run.process, body, &run);
    if (hd_run_given(&run, RUN_TIME))
      hd_report_times(&run.process.context.times);
    if (hd_run_given(&run, RUN_TRACE))
      hd_run_write_trace(&run, hd_option_text(&run.options, RUN_TRACE, NULL));
  }
  const char *json = hd_option_text(&run.options, RUN_JSON, NULL);
  if (json && !answered)
    hd_run_write_json(&run, json);
  free_all(&run);
  return hd_process_end(&run.process);
}
