// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hidet-run of a graph. To the rest of the tool its inputs, outputs and
// dimensions are the parameters of an entry, so that --input, --shape and
// --output mean what they mean for a kernel.
#include "Graph/ONNX/Import.h"
#include "Support/File.h"
#include "Tools/Outputs.h"
#include "Tools/RunTool.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const hd_loc_t nowhere;

typedef HD_VEC(const hd_var_t *) vars_t;

// A size that the model leaves open gets a name, so that --shape can give it.
static const hd_expr_t *open_size(hd_run_t *run, const hd_value_t *value,
                                  int axis, vars_t *params) {
  hd_arena_t *arena = &run->arena;
  hd_var_t *var = hd_var_make(arena, hd_value_axis_name(arena, value, axis),
                              HD_VAR_PARAM, hd_type(HD_I64), value->loc);
  hd_vec_push(arena, params, var);
  return hd_expr_var(arena, var);
}

// The first node that reads a value, or that gives it.
static const hd_node_t *find_node(const hd_graph_t *graph,
                                  const hd_value_t *value) {
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    for (uint32_t k = 0; k < node->num_inputs; k++)
      if (node->inputs[k] == value)
        return node;
    for (uint32_t k = 0; k < node->num_outputs; k++)
      if (node->outputs[k] == value)
        return node;
  }
  return NULL;
}

// What goes in and out of a run is a tensor.
static bool refuse(hd_run_t *run, const hd_graph_t *graph,
                   const hd_value_t *value, const char *what) {
  const hd_node_t *node = find_node(graph, value);
  return hd_error(hd_run_diags(run), value->loc, HD_E1104,
                  hd_arena_printf(&run->arena, "%s '%s'%s%s", what,
                                  hd_value_label(value), node ? " of " : "",
                                  node ? node->op : ""),
                  value->form == HD_HOLDS_TENSOR
                      ? "it must be a tensor of known type and rank"
                  : value->form == HD_HOLDS_SEQUENCE
                      ? "it is a sequence, and must be a tensor"
                      : "it is optional, and must be a tensor");
}

static bool add_input(hd_run_t *run, const hd_graph_t *graph,
                      const hd_value_t *value, vars_t *params) {
  hd_arena_t *arena = &run->arena;
  if (value->form != HD_HOLDS_TENSOR || value->type == HD_VOID ||
      value->rank < 0)
    return refuse(run, graph, value, "input");
  hd_tensor_t *tensor = HD_ARENA_NEW(arena, hd_tensor_t);
  const hd_expr_t **shape =
      HD_ARENA_ARRAY(arena, const hd_expr_t *, value->rank + 1);
  for (int i = 0; i < value->rank; i++)
    shape[i] =
        value->shape[i] ? value->shape[i] : open_size(run, value, i, params);
  *tensor = (hd_tensor_t){.element = hd_type(value->type),
                          .rank = (uint32_t)value->rank,
                          .shape = shape};
  hd_var_t *var =
      hd_var_make_tensor(arena, hd_value_label(value), tensor, value->loc);
  var->direction = HD_DIR_IN;
  hd_vec_push(arena, params, var);
  return true;
}

// Its type and shape are known when it has been computed.
static bool add_output(hd_run_t *run, const hd_graph_t *graph,
                       const hd_value_t *value, vars_t *params) {
  if (value->form != HD_HOLDS_TENSOR)
    return refuse(run, graph, value, "output");
  hd_tensor_t *tensor = HD_ARENA_NEW(&run->arena, hd_tensor_t);
  *tensor = (hd_tensor_t){
      .element = hd_type(value->type == HD_VOID ? HD_F32 : value->type)};
  hd_var_t *var = hd_var_make_tensor(&run->arena, hd_value_label(value), tensor,
                                     value->loc);
  var->direction = HD_DIR_OUT;
  hd_vec_push(&run->arena, params, var);
  return true;
}

bool hd_run_take_graph(hd_run_t *run, const hd_graph_t *graph) {
  vars_t params = {0};
  bool ok = true;
  for (size_t i = 0; i < graph->dims.size; i++)
    hd_vec_push(&run->arena, &params, graph->dims.data[i]);
  for (size_t i = 0; i < graph->inputs.size; i++)
    ok &= add_input(run, graph, graph->inputs.data[i], &params);
  for (size_t i = 0; i < graph->outputs.size; i++)
    ok &= add_output(run, graph, graph->outputs.data[i], &params);
  hd_func_t *entry = HD_ARENA_NEW(&run->arena, hd_func_t);
  *entry = (hd_func_t){.kind = HD_FUNC_PLAN,
                       .name = graph->name,
                       .loc = graph->loc,
                       .num_params = (uint32_t)params.size,
                       .params = params.data};
  run->graph = graph;
  run->entry = entry;
  return ok;
}

// The tool's tensors of the graph's inputs, or of its outputs, in order.
static hd_run_tensor_t **tensors_of(hd_run_t *run, bool inputs) {
  hd_run_tensor_t **tensors =
      HD_ARENA_ARRAY(&run->arena, hd_run_tensor_t *, run->num_params + 1);
  size_t count = 0;
  for (uint32_t i = 0; i < run->num_params; i++)
    if (inputs ? hd_run_is_input(&run->tensors[i])
               : hd_run_is_output(&run->tensors[i]))
      tensors[count++] = &run->tensors[i];
  return tensors;
}

static void verbose(const hd_run_t *run) {
  const hd_session_stats_t *stats = hd_session_stats(run->session);
  fprintf(stderr,
          "hidet-run: %u segments, %u kernels, %u launches; expanded in %.1f "
          "ms, compiled in %.1f ms, loaded in %.1f ms, run in %.3f ms\n",
          stats->segments, stats->kernels, stats->launches, stats->expand_ms,
          stats->compile_ms, stats->load_ms, stats->run_ms);
}

static void take_stats(hd_run_t *run) {
  const hd_session_stats_t *stats = hd_session_stats(run->session);
  run->has_run = true;
  run->compile_ms += stats->expand_ms + stats->compile_ms;
  run->load_ms += stats->load_ms;
  run->first_run_ms = stats->run_ms;
  run->kernels = stats->kernels;
  run->launches = stats->launches;
  run->moved = stats->moved;
  run->weights_bytes = stats->weights_bytes;
  run->arena_bytes = stats->arena_bytes;
  run->arena_bound = stats->arena_bound;
  if (run->device)
    run->device_bytes = (int64_t)run->device->peak_bytes;
}

// The tensors of the outputs take what has come out.
static void keep_outputs(hd_run_t *run, const hd_host_tensor_t *out) {
  hd_run_tensor_t **outputs = tensors_of(run, false);
  for (size_t i = 0; i < run->graph->outputs.size; i++) {
    hd_host_tensor_fini(&outputs[i]->host);
    outputs[i]->host = out[i];
    outputs[i]->rank = out[i].rank;
    memcpy(outputs[i]->shape, out[i].shape, sizeof(out[i].shape));
  }
}

static hd_host_tensor_t *make_outputs(hd_run_t *run) {
  return HD_ARENA_ARRAY(&run->arena, hd_host_tensor_t,
                        run->graph->outputs.size + 1);
}

// What the session has is brought here, too.
static bool read_states(hd_run_t *run, hd_host_tensor_t *out) {
  bool ok = true;
  for (size_t i = 0; ok && i < run->graph->outputs.size; i++)
    if (!out[i].data && out[i].count)
      ok = hd_session_read_state(run->session, i, &out[i]);
  return ok;
}

hd_host_tensor_t *hd_run_model_inputs(hd_run_t *run) {
  size_t count = run->graph->inputs.size;
  hd_run_tensor_t **tensors = tensors_of(run, true);
  hd_host_tensor_t *inputs =
      HD_ARENA_ARRAY(&run->arena, hd_host_tensor_t, count + 1);
  for (size_t i = 0; i < count; i++)
    inputs[i] = tensors[i]->host;
  return inputs;
}

// Runs the graph on the inputs that the tensors hold.
static bool run_once(hd_run_t *run) {
  hd_host_tensor_t *in = hd_run_model_inputs(run);
  hd_host_tensor_t *out = make_outputs(run);
  bool ok = hd_session_run(run->session, in, out) && read_states(run, out);
  take_stats(run);
  keep_outputs(run, out);
  if (ok && hd_option_given(&run->options, RUN_VERBOSE))
    verbose(run);
  return ok;
}

// The element type and the shape of a file's tensor are the input's.
static bool check_input(hd_run_t *run, hd_run_tensor_t *t, const char *path) {
  if (t->host.type != (hd_scalar_t)t->param->type.scalar)
    return hd_error(hd_run_diags(run), nowhere, HD_E0805, path,
                    hd_scalar_name(t->host.type), hd_type_name(t->param->type));
  t->rank = t->host.rank;
  memcpy(t->shape, t->host.shape, sizeof(t->shape));
  return hd_bind_shape(&run->process.context, &run->env, &run->arena, t->param,
                       t->host.shape, t->host.rank);
}

static const char *data_path(hd_run_t *run, const char *folder,
                             const char *kind, size_t i) {
  return hd_arena_printf(&run->arena, "%s/%s_%zu.pb", folder, kind, i);
}

// A file that belongs to no tensor of the graph: the folder is of another
// model.
static bool check_count(hd_run_t *run, const char *folder, const char *kind,
                        size_t count) {
  const char *path = data_path(run, folder, kind, count);
  return access(path, F_OK) != 0 ||
         hd_error(hd_run_diags(run), nowhere, HD_E1003,
                  hd_arena_printf(&run->arena,
                                  "--test-data: '%s' is one too many: '%s' has "
                                  "%zu %s%s",
                                  path, run->entry->name, count, kind,
                                  count == 1 ? "" : "s"));
}

// One test_data_set folder: its inputs are run, its outputs are expected.
static bool run_folder(hd_run_t *run, const char *folder) {
  hd_run_tensor_t **inputs = tensors_of(run, true);
  hd_run_tensor_t **outputs = tensors_of(run, false);
  run->env.values.size = 0; // Another set may have other sizes.
  if (!check_count(run, folder, "input", run->graph->inputs.size) ||
      !check_count(run, folder, "output", run->graph->outputs.size))
    return false;
  for (size_t i = 0; i < run->graph->inputs.size; i++) {
    const char *path = data_path(run, folder, "input", i);
    hd_host_tensor_fini(&inputs[i]->host);
    if (!hd_outputs_spare(&run->options, hd_run_diags(run), path) ||
        !hd_onnx_read_tensor(&run->process.context, path, &inputs[i]->host) ||
        !check_input(run, inputs[i], path))
      return false;
  }
  for (size_t i = 0; i < run->graph->inputs.size; i++)
    if (!hd_bind_check(&run->process.context, &run->env, inputs[i]->param,
                       inputs[i]->shape, inputs[i]->rank))
      return false;
  for (size_t i = 0; i < run->graph->outputs.size; i++) {
    const char *path = data_path(run, folder, "output", i);
    if (!hd_outputs_spare(&run->options, hd_run_diags(run), path))
      return false;
    outputs[i]->expected = hd_arena_printf(&run->arena, "@%s", path);
  }
  return run_once(run) && hd_run_outputs(run);
}

typedef HD_VEC(const char *) names_t;

static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_data_set(const char *name) {
  return strncmp(name, "test_data_set_", 14) == 0;
}

// The test_data_set folders in a folder, by name.
static bool list_folders(hd_run_t *run, const char *folder, names_t *names) {
  DIR *dir = opendir(folder);
  if (!dir)
    return hd_error(hd_run_diags(run), nowhere, HD_E0801, folder,
                    strerror(errno));
  for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
    if (is_data_set(entry->d_name))
      hd_vec_push(&run->arena, names,
                  hd_arena_printf(&run->arena, "%s/%s", folder, entry->d_name));
  closedir(dir);
  if (names->size)
    qsort(names->data, names->size, sizeof(*names->data), by_name);
  return true;
}

// DIR of --test-data is such a folder, or holds some.
static bool run_test_data(hd_run_t *run) {
  bool ok = true;
  for (size_t i = 0; i < run->options.uses.size; i++) {
    const hd_option_use_t *use = &run->options.uses.data[i];
    names_t names = {0};
    if (use->option != RUN_TEST_DATA)
      continue;
    if (!list_folders(run, use->value, &names))
      return false;
    if (names.size == 0)
      hd_vec_push(&run->arena, &names, use->value);
    for (size_t k = 0; k < names.size; k++)
      ok &= run_folder(run, names.data[k]);
  }
  return ok;
}

hd_precision_t hd_run_precision(const hd_run_t *run) {
  const hd_artifact_t *file = run->module->artifact;
  return (hd_precision_t)hd_option_number(&run->options, RUN_PRECISION,
                                          file ? file->precision
                                               : HD_PRECISION_MODEL);
}

// Whether the options ask for code that a compiled model's file has not.
static bool is_anew(const hd_run_t *run) {
  static const int options[] = {
      RUN_UNTRUSTED,   RUN_SANITIZE,  RUN_EXPLAIN,
      RUN_NO_REWRITES, RUN_NO_FUSION, RUN_NO_EARLY_LAUNCHES,
      RUN_NO_TEMPLATE, RUN_NO_RULE,   RUN_NO_PASS,
      RUN_TUNE,        RUN_LOAD};
  for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
    if (hd_option_given(&run->options, options[i]))
      return true;
  return false;
}

bool hd_run_model_again(hd_run_t *run) { return run_once(run); }

bool hd_run_model_outputs(hd_run_t *run) {
  hd_host_tensor_t *out = make_outputs(run);
  bool ok = hd_session_outputs(run->session, out) && read_states(run, out);
  keep_outputs(run, out);
  return ok;
}

static bool is_left_out(const hd_run_t *run, int option, hd_model_pass_t pass) {
  return hd_option_given(&run->options, option) ||
         hd_model_pass_in(run->left_out, pass);
}

hd_model_options_t hd_run_session_options(const hd_run_t *run) {
  return (hd_model_options_t){
      .keep_layouts = hd_option_given(&run->options, RUN_SANITIZE),
      .explain = hd_option_given(&run->options, RUN_EXPLAIN),
      .unrewritten = is_left_out(run, RUN_NO_REWRITES, HD_MODEL_PASS_REWRITE),
      .unfused = is_left_out(run, RUN_NO_FUSION, HD_MODEL_PASS_FUSE),
      .in_turn =
          is_left_out(run, RUN_NO_EARLY_LAUNCHES, HD_MODEL_PASS_EARLY_LAUNCHES),
      .left_out = run->left_out,
      .choose = run->tuner ? hd_tuner_choose : NULL,
      .choose_argument = run->tuner,
      .choosing = hd_tuner_choosing(run->tuner),
      .anew = is_anew(run),
      .precision = hd_run_precision(run)};
}

// --compare and --bisect, in the place of a plain run.
// A file's code has no steps: it is made anew of the graph.
static bool examine(hd_run_t *run) {
  hd_host_tensor_t *inputs = hd_run_model_inputs(run);
  return hd_artifact_leave(run->module) &&
         (!hd_option_given(&run->options, RUN_COMPARE) ||
          hd_run_compare(run, inputs)) &&
         (!hd_option_given(&run->options, RUN_BISECT) ||
          hd_run_bisect(run, inputs));
}

// --- Saving ---

typedef struct saving {
  hd_run_t *run;
  const char *path;
  bool ok;
} saving_t;

static void save_model(void *argument) {
  saving_t *s = argument;
  s->ok = hd_model_save(hd_session_model(s->run->session), s->path);
}

static bool save(hd_run_t *run) {
  saving_t s = {run, hd_option_text(&run->options, RUN_SAVE, NULL), true};
  if (s.path)
    hd_model_enter(hd_session_model(run->session), &run->process.context,
                   save_model, &s);
  return s.ok;
}

// By its name a file is read again; and there is code of a device alone.
static bool can_save(hd_run_t *run) {
  const char *path = hd_option_text(&run->options, RUN_SAVE, ".hidet");
  if (hd_run_given(run, RUN_SAVE) && !run->device)
    return hd_error(&run->process.context.diags, (hd_loc_t){0}, HD_E0815,
                    run->entry->name, "ref makes no code");
  return hd_has_suffix(path, ".hidet") ||
         hd_error(&run->process.context.diags, (hd_loc_t){0}, HD_E1003,
                  hd_arena_printf(&run->arena,
                                  "--save takes a file that ends in .hidet, "
                                  "found '%s'",
                                  path));
}

// Where the file alone is asked for, nothing is run.
static bool saves_alone(const hd_run_t *run) {
  static const int options[] = {RUN_INPUT,    RUN_OUTPUT,    RUN_PRINT,
                                RUN_EXPECTED, RUN_TEST_DATA, RUN_BENCH,
                                RUN_PROFILE,  RUN_TUNE};
  for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
    if (hd_option_given(&run->options, options[i]))
      return false;
  return hd_option_given(&run->options, RUN_SAVE);
}

static bool compile_alone(hd_run_t *run) {
  size_t count = run->graph->inputs.size;
  hd_run_tensor_t **inputs = tensors_of(run, true);
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(&run->arena, hd_tensor_type_t, count + 1);
  hd_tensor_type_t *outputs = HD_ARENA_ARRAY(&run->arena, hd_tensor_type_t,
                                             run->graph->outputs.size + 1);
  for (size_t i = 0; i < count; i++) {
    types[i] =
        (hd_tensor_type_t){.type = (hd_scalar_t)inputs[i]->param->type.scalar,
                           .rank = inputs[i]->rank};
    memcpy(types[i].shape, inputs[i]->shape, sizeof(inputs[i]->shape));
  }
  return hd_session_describe(run->session, types, outputs, NULL);
}

bool hd_run_model(hd_run_t *run) {
  hd_model_options_t options = hd_run_session_options(run);
  if (hd_option_given(&run->options, RUN_COMPARE) ||
      hd_option_given(&run->options, RUN_BISECT))
    return hd_run_bind(run) && hd_run_make_inputs(run) && examine(run);
  if (!can_save(run) || !hd_run_buckets(run, &options) ||
      !hd_run_inouts(run, &options))
    return false;
  run->session =
      hd_session_create(run->module, run->graph, run->device, &options);
  if (saves_alone(run))
    return hd_run_bind(run) && compile_alone(run) && save(run);
  if (hd_option_given(&run->options, RUN_TEST_DATA))
    return run_test_data(run) && save(run);
  return hd_run_bind(run) && hd_run_make_inputs(run) && run_once(run) &&
         hd_run_exchange(run) && save(run);
}
