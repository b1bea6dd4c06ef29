// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Graph/ONNX/Import.h"
#include "IR/Verify/Verifier.h"
#include "Runtime/Session.h"
#include "Tools/Api.h"
#include "Tune/Tune.h"
#include "hidet/Session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static_assert((int)HIDET_MAX_RANK == (int)HD_TENSOR_MAX_RANK, "one bound");

struct hidet_session {
  hidet_module_t *module;
  const hd_graph_t *graph;
  hd_session_t *session;
  // Of the last run; the inputs are copies, aligned as devices want them.
  hd_host_tensor_t *inputs, *outputs;
  hd_tuner_t *tuner; // That knows what was measured; NULL: nobody does.
};

typedef struct call {
  hidet_context_t *context;
  hidet_module_t *module;
  const char *name;
  hidet_device_t *device;
  hidet_session_t *session;
  const hidet_array_t *inputs;
} call_t;

static void import(void *argument) {
  call_t *call = argument;
  call->module->module = hd_onnx_import(&call->context->context, call->name);
  if (call->module->module)
    hd_module_verify(call->module->module);
}

hidet_status_t hidet_module_import(hidet_context_t *context, const char *path,
                                   hidet_module_t **module) {
  if (module)
    *module = NULL;
  if (!context || !path || !module)
    return hd_api_needs(context);
  *module = calloc(1, sizeof(**module));
  if (!*module)
    return HIDET_RESOURCE;
  (*module)->owner = context;
  call_t call = {.context = context, .module = *module, .name = path};
  hidet_status_t status = hd_api_call(context, import, &call);
  if (status != HIDET_OK) {
    hidet_module_destroy(*module);
    *module = NULL;
  }
  return status;
}

static void create(void *argument) {
  call_t *call = argument;
  hidet_session_t *session = call->session;
  hd_module_t *module = call->module->module;
  static const hd_model_options_t options = {0};
  session->graph = hd_module_find_graph(module, call->name);
  if (!session->graph) {
    hd_api_fail(call->context, "the module has no such graph");
    return;
  }
  // One more, so that none is a pointer, too.
  session->inputs =
      calloc(session->graph->inputs.size + 1, sizeof(*session->inputs));
  session->outputs =
      calloc(session->graph->outputs.size + 1, sizeof(*session->outputs));
  if (!session->inputs || !session->outputs)
    hd_budget_exhausted(&module->context->budget, HD_EXHAUSTED_MEMORY);
  session->session =
      hd_session_create(module, session->graph,
                        call->device ? call->device->device : NULL, &options);
}

hidet_status_t hidet_session_create(hidet_module_t *module, const char *graph,
                                    hidet_device_t *device,
                                    hidet_session_t **session) {
  if (session)
    *session = NULL;
  if (!module || !session)
    return hd_api_needs(module ? module->owner : NULL);
  *session = calloc(1, sizeof(**session));
  if (!*session)
    return HIDET_RESOURCE;
  (*session)->module = module;
  call_t call = {.context = module->owner,
                 .module = module,
                 .name = graph,
                 .device = device,
                 .session = *session};
  hidet_status_t status = hd_api_call(module->owner, create, &call);
  if (status != HIDET_OK) {
    hidet_session_destroy(*session);
    *session = NULL;
  }
  return status;
}

static void end_tensors(hd_host_tensor_t *tensors, size_t count) {
  for (size_t i = 0; tensors && i < count; i++)
    hd_host_tensor_fini(&tensors[i]);
}

void hidet_session_destroy(hidet_session_t *session) {
  if (!session)
    return;
  hd_session_destroy(session->session);
  hd_tuner_destroy(session->tuner);
  if (session->graph) {
    end_tensors(session->inputs, session->graph->inputs.size);
    end_tensors(session->outputs, session->graph->outputs.size);
  }
  free(session->inputs);
  free(session->outputs);
  free(session);
}

static void use_measured(void *argument) {
  call_t *call = argument;
  hidet_session_t *session = call->session;
  hd_device_t *device = hd_model_device(hd_session_model(session->session));
  hd_tune_options_t options = {.database = call->name};
  if (!device) {
    hd_api_fail(call->context, "the session has no device");
    return;
  }
  hd_tuner_t *tuner = call->name ? hd_tuner_create(device, &options) : NULL;
  if (call->name && !tuner)
    hd_budget_exhausted(&device->context->budget, HD_EXHAUSTED_MEMORY);
  hd_model_choose(hd_session_model(session->session),
                  tuner ? hd_tuner_choose : NULL, tuner);
  hd_tuner_destroy(session->tuner);
  session->tuner = tuner;
}

hidet_status_t hidet_session_use_measured(hidet_session_t *session,
                                          const char *file) {
  if (!session)
    return hd_api_needs(NULL);
  call_t call = {
      .context = session->module->owner, .session = session, .name = file};
  return hd_api_call(session->module->owner, use_measured, &call);
}

size_t hidet_session_num_inputs(const hidet_session_t *session) {
  return session ? session->graph->inputs.size : 0;
}

size_t hidet_session_num_outputs(const hidet_session_t *session) {
  return session ? session->graph->outputs.size : 0;
}

// -1: not a constant.
static int64_t size_of(const hd_value_t *value, int axis) {
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
    value->shape[i] = size_of(from, i);
}

void hidet_session_input(const hidet_session_t *session, size_t i,
                         hidet_value_t *value) {
  bool has = i < hidet_session_num_inputs(session);
  describe(has ? session->graph->inputs.data[i] : NULL, value);
}

void hidet_session_output(const hidet_session_t *session, size_t i,
                          hidet_value_t *value) {
  bool has = i < hidet_session_num_outputs(session);
  describe(has ? session->graph->outputs.data[i] : NULL, value);
}

static bool fail_shape(call_t *call, const hd_value_t *value,
                       const hidet_array_t *array) {
  hd_diagnostics_t *diags = &call->context->context.diags;
  char found[HIDET_MAX_RANK * 24];
  hd_buffer_t needed = {0};
  hd_shape_text(array->shape, array->rank, found, sizeof(found));
  hd_buffer_puts(&needed, "[");
  for (int i = 0; i < value->rank; i++) {
    int64_t size = size_of(value, i);
    hd_buffer_puts(&needed, i ? ", " : "");
    if (size >= 0)
      hd_buffer_printf(&needed, "%lld", (long long)size);
    else
      hd_buffer_puts(&needed, "any");
  }
  hd_buffer_puts(&needed, "]");
  hd_error(diags, (hd_loc_t){0}, HD_E0806, hd_value_label(value), found,
           hd_buffer_text(&needed));
  hd_buffer_fini(&needed);
  return false;
}

// Type and shape are those of the graph's input, where it says so; a dimension
// that varies is for the run to find fault with.
static bool check_input(call_t *call, const hd_value_t *value,
                        const hidet_array_t *array, hd_scalar_t *type) {
  hd_diagnostics_t *diags = &call->context->context.diags;
  hd_type_t found;
  if (!array->type || !hd_type_parse(array->type, &found) || found.lanes != 1 ||
      hd_scalar_class(found.scalar) == HD_CLASS_OPAQUE ||
      hd_scalar_class(found.scalar) == HD_CLASS_VOID)
    return hd_api_fail(call->context, "an input's type is no element type");
  *type = (hd_scalar_t)found.scalar;
  if (value->type != HD_VOID && value->type != *type)
    return hd_error(diags, (hd_loc_t){0}, HD_E0805, hd_value_label(value),
                    hd_scalar_name(*type), hd_scalar_name(value->type));
  if (array->rank > HIDET_MAX_RANK)
    return hd_api_fail(call->context, "a tensor has at most 16 axes");
  for (unsigned i = 0; i < array->rank; i++)
    if (array->shape[i] < 0)
      return hd_api_fail(call->context, "a size is negative");
  bool same = value->rank < 0 || (unsigned)value->rank == array->rank;
  for (int i = 0; same && i < value->rank; i++)
    same = size_of(value, i) < 0 || size_of(value, i) == array->shape[i];
  return same || fail_shape(call, value, array);
}

static bool copy_input(call_t *call, size_t i) {
  hd_context_t *context = &call->context->context;
  const hidet_array_t *array = &call->inputs[i];
  const hd_value_t *value = call->session->graph->inputs.data[i];
  hd_host_tensor_t *tensor = &call->session->inputs[i];
  hd_scalar_t type;
  if (!check_input(call, value, array, &type) ||
      !hd_host_tensor_init(tensor, &context->diags, &context->budget,
                           hd_value_label(value), type, array->shape,
                           array->rank))
    return false;
  if (tensor->bytes && !array->data)
    return hd_api_fail(call->context, "an input has no data");
  if (tensor->bytes)
    memcpy(tensor->data, array->data, tensor->bytes);
  return true;
}

static void run_session(void *argument) {
  call_t *call = argument;
  for (size_t i = 0; i < call->session->graph->inputs.size; i++)
    if (!copy_input(call, i))
      return;
  hd_session_run(call->session->session, call->session->inputs,
                 call->session->outputs);
}

hidet_status_t hidet_session_run(hidet_session_t *session,
                                 const hidet_array_t *inputs, size_t num_inputs,
                                 hidet_array_t *outputs, size_t num_outputs) {
  if (outputs)
    memset(outputs, 0, num_outputs * sizeof(*outputs));
  if (!session || (num_inputs && !inputs) || (num_outputs && !outputs))
    return hd_api_needs(session ? session->module->owner : NULL);
  hidet_context_t *context = session->module->owner;
  size_t size_inputs = session->graph->inputs.size;
  size_t size_outputs = session->graph->outputs.size;
  end_tensors(session->outputs, size_outputs);
  call_t call = {.context = context, .session = session, .inputs = inputs};
  if (num_inputs != size_inputs || num_outputs != size_outputs) {
    hd_diagnostics_clear(&context->context.diags);
    hd_api_fail(context, "an array for each input and output is needed");
    return HIDET_USAGE;
  }
  hidet_status_t status = hd_api_call(context, run_session, &call);
  end_tensors(session->inputs, size_inputs);
  if (status != HIDET_OK)
    end_tensors(session->outputs, size_outputs);
  for (size_t i = 0; status == HIDET_OK && i < num_outputs; i++) {
    const hd_host_tensor_t *tensor = &session->outputs[i];
    outputs[i] = (hidet_array_t){
        hd_scalar_name(tensor->type), tensor->rank, {0}, tensor->data};
    memcpy(outputs[i].shape, tensor->shape, sizeof(int64_t) * tensor->rank);
  }
  return status;
}
