// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/ApiModel.h"
#include "Fusion/Bucket/BucketSizes.h"
#include "Graph/ONNX/Import.h"
#include "IR/Verify/Verifier.h"
#include "Runtime/Artifact.h"
#include "Support/File.h"
#include "Tools/Input.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 1 << 30 };

typedef struct call {
  hidet_context_t *context;
  hidet_module_t *module;
  hidet_model_t *model;
  const char *name;
  const void *data;
  size_t bytes;
  bool *flag;
} call_t;

static void import(void *argument) {
  call_t *call = argument;
  hd_context_t *context = &call->context->context;
  if (hd_has_suffix(call->name, ".hidet")) {
    call->module->module = hd_artifact_open(context, call->name);
    return;
  }
  call->module->module = hd_onnx_import(context, call->name);
  if (call->module->module)
    hd_module_verify(call->module->module);
}

static void end_text(void *text) { hd_buffer_fini(text); }

static void parse_file(void *argument) {
  call_t *call = argument;
  hd_context_t *context = &call->context->context;
  hd_buffer_t text = {0};
  hd_cleanup_t cleanup;
  hd_budget_defer(&context->budget, &cleanup, end_text, &text);
  call->module->module = hd_module_create(context);
  hd_module_set_folder(call->module->module, call->name);
  if (hd_file_read(&context->diags, call->name, MAX_TEXT, &text))
    hd_api_parse(call->module->module, call->name, hd_buffer_text(&text),
                 text.size);
  hd_budget_clean(&context->budget, &cleanup);
}

static hidet_status_t read_module(hidet_context_t *context, const char *path,
                                  void (*body)(void *),
                                  hidet_module_t **module) {
  *module = calloc(1, sizeof(**module));
  if (!*module)
    return hd_api_no_memory();
  (*module)->owner = context;
  call_t call = {.context = context, .module = *module, .name = path};
  hidet_status_t status = hd_api_call(context, body, &call);
  if (status != HIDET_OK) {
    hidet_module_destroy(*module);
    *module = NULL;
  }
  return status;
}

hidet_status_t hidet_module_import(hidet_context_t *context, const char *path,
                                   hidet_module_t **module) {
  if (module)
    *module = NULL;
  if (!context || !path || !module)
    return hd_api_needs();
  return read_module(context, path, import, module);
}

static void create(void *argument) {
  call_t *call = argument;
  hidet_model_t *model = call->model;
  const hd_artifact_t *file = call->module->module->artifact;
  model->graph = hd_module_find_graph(
      call->module->module, call->name || !file ? call->name : file->entry);
  if (file)
    model->precision = (hd_precision_t)file->precision;
  if (!model->graph)
    hd_api_fail(call->context, "the module has no such graph");
  else
    call->module->models++;
}

// further: as a part of a call that has read the module.
static hidet_status_t make_model(hidet_module_t *module, const char *graph,
                                 bool further, hidet_model_t **model) {
  *model = calloc(1, sizeof(**model));
  if (!*model)
    return hd_api_no_memory();
  (*model)->module = module;
  call_t call = {.context = module->owner,
                 .module = module,
                 .model = *model,
                 .name = graph};
  hidet_status_t status =
      (further ? hd_api_call_on : hd_api_call)(module->owner, create, &call);
  if (status != HIDET_OK) {
    free(*model);
    *model = NULL;
  }
  return status;
}

hidet_status_t hidet_model_create(hidet_module_t *module, const char *graph,
                                  hidet_model_t **model) {
  if (model)
    *model = NULL;
  if (!module || !model)
    return hd_api_needs();
  return make_model(module, graph, false, model);
}

hidet_status_t hidet_model_load(hidet_context_t *context, const char *path,
                                hidet_model_t **model) {
  if (model)
    *model = NULL;
  if (!context || !path || !model)
    return hd_api_needs();
  hidet_context_t *own = calloc(1, sizeof(*own));
  if (!own)
    return hd_api_no_memory();
  pthread_mutex_lock(&context->lock);
  hd_api_context_init(own, context);
  pthread_mutex_unlock(&context->lock);
  hidet_module_t *module;
  hidet_status_t status = read_module(
      own, path, hd_has_suffix(path, ".hir") ? parse_file : import, &module);
  if (status == HIDET_OK)
    status = make_model(module, NULL, true, model);
  if (status == HIDET_OK) {
    (*model)->own = own;
    return HIDET_OK;
  }
  hidet_module_destroy(module);
  hidet_context_destroy(own);
  return status;
}

void hidet_model_destroy(hidet_model_t *model) {
  if (!model)
    return;
  hidet_context_t *world = hd_api_world(model);
  pthread_mutex_lock(&world->lock);
  while (model->placed) {
    hd_api_placed_t *placed = model->placed;
    model->placed = placed->next;
    hd_model_destroy(placed->model);
    hd_tuner_destroy(placed->tuner);
    hd_device_close(placed->device);
    hidet_device_close(placed->on);
    free(placed);
  }
  model->module->models--;
  pthread_mutex_unlock(&world->lock);
  if (model->own)
    hidet_module_destroy(model->module);
  hidet_context_destroy(model->own);
  free(model->measured);
  free(model);
}

// --- Before the first session ---

static bool is_open(const call_t *call) {
  return !call->model->placed ||
         hd_api_fail(call->context, "the model has sessions already");
}

static const hd_value_t *find_constant(const hd_graph_t *graph,
                                       const char *name) {
  for (size_t i = 0; i < graph->constants.size; i++)
    if (strcmp(hd_value_label(graph->constants.data[i]), name) == 0 ||
        strcmp(graph->constants.data[i]->name, name) == 0)
      return graph->constants.data[i];
  return NULL;
}

static void set_weight(void *argument) {
  call_t *call = argument;
  const hd_value_t *value = find_constant(call->model->graph, call->name);
  int64_t shape[HD_TENSOR_MAX_RANK], count, bytes;
  const char *fault = call->model->module->models > 1
                          ? "another model of the module has the constant"
                      : !value ? "the graph has no such constant"
                               : NULL;
  if (!is_open(call) || (fault && !hd_api_fail(call->context, fault)))
    return;
  for (int i = 0; i < value->rank; i++)
    shape[i] = value->shape[i]->u.i;
  if (!hd_packed_size(value->type, shape, (unsigned)value->rank, &count,
                      &bytes) ||
      (size_t)bytes != call->bytes) {
    hd_api_fail(call->context, "the constant takes another number of bytes");
    return;
  }
  // What the module's file has was made for other elements.
  if (hd_artifact_leave(call->model->module->module))
    *value->constant = (hd_constant_t){.mapped = call->data};
}

hidet_status_t hidet_model_set_weight(hidet_model_t *model, const char *name,
                                      const void *data, size_t bytes) {
  if (!model || !name || !data)
    return hd_api_needs();
  call_t call = {.context = hd_api_world(model),
                 .model = model,
                 .name = name,
                 .data = data,
                 .bytes = bytes};
  return hd_api_call(call.context, set_weight, &call);
}

static void set_flag(void *argument) {
  call_t *call = argument;
  if (is_open(call))
    *call->flag = true;
}

static hidet_status_t raise_flag(hidet_model_t *model, bool *flag) {
  call_t call = {.context = hd_api_world(model), .model = model, .flag = flag};
  return hd_api_call(call.context, set_flag, &call);
}

hidet_status_t hidet_model_set_untrusted(hidet_model_t *model) {
  return model ? raise_flag(model, &model->untrusted) : hd_api_needs();
}

hidet_status_t hidet_model_set_explained(hidet_model_t *model) {
  return model ? raise_flag(model, &model->explained) : hd_api_needs();
}

static void set_precision(void *argument) {
  call_t *call = argument;
  if (!is_open(call))
    return;
  for (int i = 0; i < HD_PRECISIONS; i++)
    if (strcmp(call->name, hd_precision_name((hd_precision_t)i)) == 0) {
      call->model->precision = (hd_precision_t)i;
      return;
    }
  hd_api_fail(call->context,
              "the precision is one of model, f32, tf32, f16 and bf16");
}

hidet_status_t hidet_model_set_precision(hidet_model_t *model,
                                         const char *precision) {
  if (!model || !precision)
    return hd_api_needs();
  call_t call = {
      .context = hd_api_world(model), .model = model, .name = precision};
  return hd_api_call(call.context, set_precision, &call);
}

static void set_measured(void *argument) {
  call_t *call = argument;
  if (!is_open(call))
    return;
  free(call->model->measured);
  call->model->measured = call->name ? strdup(call->name) : NULL;
  if (call->name && !call->model->measured)
    hd_budget_exhausted(&call->context->context.budget, HD_EXHAUSTED_MEMORY);
}

hidet_status_t hidet_model_set_measured(hidet_model_t *model,
                                        const char *file) {
  if (!model)
    return hd_api_needs();
  call_t call = {.context = hd_api_world(model), .model = model, .name = file};
  return hd_api_call(call.context, set_measured, &call);
}

// A policy, in the module's arena, which outlives the model's sessions.
static void set_buckets(void *argument) {
  call_t *call = argument;
  hidet_model_t *model = call->model;
  hd_arena_t *arena = &model->module->module->arena;
  const int64_t *bounds = call->data;
  size_t count = call->bytes;
  if (!is_open(call))
    return;
  if (model->num_buckets == HD_MAX_RANK ||
      !hd_bucket_has_size(arena, model->graph, call->name)) {
    static const char text[] = "the model has no size '%s'";
    hd_api_fail(call->context, hd_arena_printf(arena, text, call->name));
    return;
  }
  for (size_t i = 0; i < count; i++)
    if (bounds[i] < 1 || (i && bounds[i] <= bounds[i - 1])) {
      hd_api_fail(call->context, "the bounds of a size do not ascend");
      return;
    }
  int64_t *copy = HD_ARENA_ARRAY(arena, int64_t, count + 1);
  if (count)
    memcpy(copy, bounds, count * sizeof(*copy));
  model->buckets[model->num_buckets++] = (hd_bucket_policy_t){
      hd_arena_strndup(arena, call->name, strlen(call->name)), copy, count};
}

hidet_status_t hidet_model_set_buckets(hidet_model_t *model, const char *size,
                                       const int64_t *bounds, size_t count) {
  if (!model || !size || (count && !bounds))
    return hd_api_needs();
  call_t call = {.context = hd_api_world(model),
                 .model = model,
                 .name = size,
                 .data = bounds,
                 .bytes = count};
  return hd_api_call(call.context, set_buckets, &call);
}

// --- On a device ---

static hd_api_placed_t *find_placed(const hidet_model_t *model,
                                    const hidet_device_t *device) {
  hd_api_placed_t *placed = model->placed;
  while (placed && placed->on != device)
    placed = placed->next;
  return placed;
}

// Where it fails or unwinds, what is there ends with the model.
static bool fill_placed(hidet_model_t *model, hd_api_placed_t *placed) {
  hidet_context_t *world = hd_api_world(model);
  hd_context_t *context = &world->context;
  if (placed->on && !placed->device)
    placed->device = hd_device_fork(placed->on->device, context);
  if (placed->on && !placed->device)
    return false;
  hd_tune_options_t tune = {.database = model->measured};
  if (placed->on && model->measured && !placed->tuner) {
    placed->tuner = hd_tuner_create(placed->device, &tune);
    if (!placed->tuner)
      hd_budget_exhausted(&context->budget, HD_EXHAUSTED_MEMORY);
  }
  hd_model_options_t options = {.precision = model->precision,
                                .choose =
                                    placed->tuner ? hd_tuner_choose : NULL,
                                .choose_argument = placed->tuner,
                                .choosing = hd_tuner_choosing(placed->tuner),
                                .anew = model->untrusted,
                                .explain = model->explained,
                                .buckets = model->buckets,
                                .num_buckets = model->num_buckets,
                                .inouts = model->inouts,
                                .world = &world->lock};
  placed->model = hd_model_create(model->module->module, model->graph,
                                  placed->device, &options);
  return true;
}

hd_model_t *hd_api_place(hidet_model_t *model, hidet_device_t *device) {
  hd_api_placed_t *placed = find_placed(model, device);
  if (!placed) {
    placed = calloc(1, sizeof(*placed));
    if (!placed)
      hd_budget_exhausted(&hd_api_world(model)->context.budget,
                          HD_EXHAUSTED_MEMORY);
    placed->on = device;
    if (device)
      device->users++;
    placed->next = model->placed;
    model->placed = placed;
  }
  return placed->model || fill_placed(model, placed) ? placed->model : NULL;
}

static void save(void *argument) {
  call_t *call = argument;
  const hd_api_placed_t *placed = find_placed(call->model, call->data);
  if (!placed || !placed->model)
    hd_api_fail(call->context, "the model has no session on the device");
  else if (!hd_has_suffix(call->name, ".hidet"))
    hd_api_fail(call->context, "a compiled model's file ends in .hidet");
  else
    hd_model_save(placed->model, call->name);
}

hidet_status_t hidet_model_save(hidet_model_t *model,
                                const hidet_device_t *device,
                                const char *path) {
  if (!model || !device || !path)
    return hd_api_needs();
  call_t call = {.context = hd_api_world(model),
                 .model = model,
                 .name = path,
                 .data = device};
  return hd_api_call(call.context, save, &call);
}

size_t hidet_model_num_compiled(hidet_model_t *model,
                                const hidet_device_t *device) {
  if (!model)
    return 0;
  pthread_mutex_lock(&hd_api_world(model)->lock);
  const hd_api_placed_t *placed = find_placed(model, device);
  hd_model_t *on = placed ? placed->model : NULL;
  pthread_mutex_unlock(&hd_api_world(model)->lock);
  return on ? hd_model_counts(on).compiled : 0;
}

// --- Inputs and outputs ---

size_t hidet_model_num_inputs(const hidet_model_t *model) {
  return model ? model->graph->inputs.size : 0;
}

size_t hidet_model_num_outputs(const hidet_model_t *model) {
  return model ? model->graph->outputs.size : 0;
}

int64_t hd_api_axis(const hd_value_t *value, int axis) {
  const hd_expr_t *size = value->shape[axis];
  int64_t number;
  return size && hd_expr_fold_int(size, &number) ? number : -1;
}

// NULL: there is none.
static void describe(const hd_value_t *from, hidet_value_t *value) {
  if (!value)
    return;
  *value = (hidet_value_t){.rank = -1};
  if (!from)
    return;
  *value = (hidet_value_t){.name = hd_value_label(from), .rank = from->rank};
  if (from->type != HD_VOID)
    value->type = hd_scalar_name(from->type);
  for (int i = 0; i < from->rank; i++)
    value->shape[i] = hd_api_axis(from, i);
}

void hidet_model_input(const hidet_model_t *model, size_t i,
                       hidet_value_t *value) {
  bool has = i < hidet_model_num_inputs(model);
  describe(has ? model->graph->inputs.data[i] : NULL, value);
}

void hidet_model_output(const hidet_model_t *model, size_t i,
                        hidet_value_t *value) {
  bool has = i < hidet_model_num_outputs(model);
  describe(has ? model->graph->outputs.data[i] : NULL, value);
}
