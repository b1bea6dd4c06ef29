// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/ApiModel.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static_assert((int)HIDET_MAX_RANK == (int)HD_TENSOR_MAX_RANK, "one bound");

struct hidet_session {
  hidet_model_t *model;
  hidet_device_t *on;
  hidet_context_t own;
  hd_device_t *device; // A fork, in that.
  hd_session_t *session;
  // Of the last run; the inputs are copies, aligned as devices want them.
  hd_host_tensor_t *inputs, *outputs;
  // Room for what is on the device: inputs, then outputs.
  hd_tensor_type_t *types;
  hd_device_tensor_t *tensors;
};

typedef struct call {
  hidet_context_t *context;
  hidet_session_t *session;
  const hidet_array_t *inputs, *outputs;
  void *stream;
  size_t output;
  hd_model_t *placed;
} call_t;

static void place(void *argument) {
  call_t *call = argument;
  call->placed = hd_api_place(call->session->model, call->session->on);
}

static void create(void *argument) {
  call_t *call = argument;
  hidet_session_t *session = call->session;
  hd_context_t *context = &session->own.context;
  const hd_graph_t *graph = session->model->graph;
  // One more, so that none is a pointer, too.
  session->inputs = calloc(graph->inputs.size + 1, sizeof(*session->inputs));
  session->outputs = calloc(graph->outputs.size + 1, sizeof(*session->outputs));
  size_t count = graph->inputs.size + graph->outputs.size + 1;
  session->types = calloc(count, sizeof(*session->types));
  session->tensors = calloc(count, sizeof(*session->tensors));
  if (!session->inputs || !session->outputs || !session->types ||
      !session->tensors)
    hd_budget_exhausted(&context->budget, HD_EXHAUSTED_MEMORY);
  if (session->on)
    session->device = hd_device_fork(session->on->device, context);
  if (!session->on || session->device)
    session->session = hd_session_join(call->placed, context, session->device);
}

hidet_status_t hidet_session_create(hidet_model_t *model,
                                    hidet_device_t *device,
                                    hidet_session_t **session) {
  if (session)
    *session = NULL;
  if (!model || !session)
    return hd_api_needs();
  hidet_session_t *made = calloc(1, sizeof(*made));
  if (!made)
    return hd_api_no_memory();
  hidet_context_t *world = hd_api_world(model);
  made->model = model;
  made->on = device;
  pthread_mutex_lock(&world->lock);
  hd_api_context_init(&made->own, world);
  pthread_mutex_unlock(&world->lock);
  call_t call = {.context = &made->own, .session = made};
  hidet_status_t status = hd_api_call(world, place, &call);
  // What placing warns of is what is told.
  if (status == HIDET_OK)
    status = hd_api_call_on(&made->own, create, &call);
  if (status == HIDET_OK)
    *session = made;
  else
    hidet_session_destroy(made);
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
  hd_device_close(session->device);
  end_tensors(session->inputs, session->model->graph->inputs.size);
  end_tensors(session->outputs, session->model->graph->outputs.size);
  free(session->inputs);
  free(session->outputs);
  free(session->types);
  free(session->tensors);
  hd_api_context_fini(&session->own);
  free(session);
}

static bool fail_shape(call_t *call, const hd_value_t *value,
                       const hidet_array_t *array) {
  hd_diagnostics_t *diags = &call->context->context.diags;
  char found[HIDET_MAX_RANK * 24];
  hd_buffer_t needed = {0};
  hd_shape_text(array->shape, array->rank, found, sizeof(found));
  hd_buffer_puts(&needed, "[");
  for (int i = 0; i < value->rank; i++) {
    int64_t size = hd_api_axis(value, i);
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
    same =
        hd_api_axis(value, i) < 0 || hd_api_axis(value, i) == array->shape[i];
  return same || fail_shape(call, value, array);
}

// Whether the session has memory for it.
static bool has_state(const hidet_session_t *s, size_t i, bool input) {
  const hd_inouts_t *inouts = &s->model->inouts;
  for (size_t n = 0; n < inouts->count; n++)
    if ((input ? inouts->pairs[n].input : inouts->pairs[n].output) == i)
      return true;
  return false;
}

static bool copy_input(call_t *call, size_t i) {
  hd_context_t *context = &call->context->context;
  const hidet_array_t *array = &call->inputs[i];
  const hd_value_t *value = call->session->model->graph->inputs.data[i];
  hd_host_tensor_t *tensor = &call->session->inputs[i];
  hd_scalar_t type;
  if (!check_input(call, value, array, &type))
    return false;
  if (!array->data && has_state(call->session, i, true))
    return hd_host_tensor_describe(tensor, &context->diags,
                                   hd_value_label(value), type, array->shape,
                                   array->rank);
  if (!hd_host_tensor_init(tensor, &context->diags, &context->budget,
                           hd_value_label(value), type, array->shape,
                           array->rank))
    return false;
  if (tensor->bytes && !array->data)
    return hd_api_fail(call->context, "an input has no data");
  if (tensor->bytes)
    memcpy(tensor->data, array->data, tensor->bytes);
  return true;
}

static hidet_array_t array_of(const hd_host_tensor_t *tensor) {
  hidet_array_t array = {
      hd_scalar_name(tensor->type), tensor->rank, {0}, tensor->data};
  memcpy(array.shape, tensor->shape, sizeof(int64_t) * tensor->rank);
  return array;
}

static void run_session(void *argument) {
  call_t *call = argument;
  for (size_t i = 0; i < call->session->model->graph->inputs.size; i++)
    if (!copy_input(call, i))
      return;
  hd_session_run(call->session->session, call->session->inputs,
                 call->session->outputs);
}

static hidet_status_t check_arrays(const hidet_session_t *session,
                                   const hidet_array_t *inputs,
                                   size_t num_inputs,
                                   const hidet_array_t *outputs,
                                   size_t num_outputs) {
  if (!session || (num_inputs && !inputs) || (num_outputs && !outputs))
    return hd_api_needs();
  const hd_graph_t *graph = session->model->graph;
  return num_inputs == graph->inputs.size && num_outputs == graph->outputs.size
             ? HIDET_OK
             : hd_api_refuse("an array for each input and output is needed");
}

hidet_status_t hidet_session_run(hidet_session_t *session,
                                 const hidet_array_t *inputs, size_t num_inputs,
                                 hidet_array_t *outputs, size_t num_outputs) {
  if (outputs)
    memset(outputs, 0, num_outputs * sizeof(*outputs));
  hidet_status_t status =
      check_arrays(session, inputs, num_inputs, outputs, num_outputs);
  if (status != HIDET_OK)
    return status;
  const hd_graph_t *graph = session->model->graph;
  end_tensors(session->outputs, graph->outputs.size);
  call_t call = {
      .context = &session->own, .session = session, .inputs = inputs};
  status = hd_api_call(&session->own, run_session, &call);
  end_tensors(session->inputs, graph->inputs.size);
  if (status != HIDET_OK)
    end_tensors(session->outputs, graph->outputs.size);
  for (size_t i = 0; status == HIDET_OK && i < num_outputs; i++)
    outputs[i] = array_of(&session->outputs[i]);
  return status;
}

// --- On the device ---

static bool take_input(call_t *call, size_t i) {
  hidet_session_t *s = call->session;
  const hidet_array_t *array = &call->inputs[i];
  const hd_value_t *value = s->model->graph->inputs.data[i];
  hd_tensor_type_t *type = &s->types[i];
  int64_t count, bytes;
  if (!check_input(call, value, array, &type->type))
    return false;
  type->rank = array->rank;
  memcpy(type->shape, array->shape, sizeof(int64_t) * array->rank);
  if (hd_scalar_bits(type->type) < 8)
    return hd_api_fail(call->context,
                       "an input on the device has elements below a byte");
  if (!hd_packed_size(type->type, type->shape, type->rank, &count, &bytes))
    return hd_error(&call->context->context.diags, (hd_loc_t){0}, HD_E0309,
                    hd_value_label(value));
  s->tensors[i] = (hd_device_tensor_t){(uintptr_t)array->data, (size_t)bytes};
  if (!array->data && has_state(s, i, true))
    s->tensors[i].bytes = 0;
  return true;
}

static bool take_inputs(call_t *call) {
  hidet_session_t *s = call->session;
  size_t inputs = s->model->graph->inputs.size;
  for (size_t i = 0; i < inputs; i++)
    if (!take_input(call, i))
      return false;
  return hd_session_describe(s->session, s->types, s->types + inputs,
                             call->stream);
}

// Whether an output that is one with an input is given where that is.
static bool is_callers(const call_t *call, size_t i) {
  const hd_inouts_t *inouts = &call->session->model->inouts;
  for (size_t n = 0; n < inouts->count; n++)
    if (inouts->pairs[n].output == i)
      return call->outputs[i].data &&
             call->inputs[inouts->pairs[n].input].data == call->outputs[i].data;
  return false;
}

static bool take_output(call_t *call, size_t i) {
  hidet_session_t *s = call->session;
  const hidet_array_t *array = &call->outputs[i];
  size_t n = s->model->graph->inputs.size + i;
  const hd_tensor_type_t *type = &s->types[n];
  int64_t count, bytes;
  bool same =
      array->type && array->rank == type->rank &&
      strcmp(array->type, hd_scalar_name(type->type)) == 0 &&
      memcmp(array->shape, type->shape, sizeof(int64_t) * type->rank) == 0;
  if (hd_scalar_bits(type->type) < 8)
    return hd_api_fail(call->context,
                       "an output on the device has elements below a byte");
  if (!same ||
      !hd_packed_size(type->type, type->shape, type->rank, &count, &bytes))
    return hd_api_fail(call->context,
                       "an output is not of the type and shape that comes out");
  s->tensors[n] = (hd_device_tensor_t){(uintptr_t)array->data, (size_t)bytes};
  if (has_state(s, i, false) && !is_callers(call, i))
    s->tensors[n] = (hd_device_tensor_t){0};
  return true;
}

static void prepare(void *argument) { take_inputs(argument); }

static void enqueue(void *argument) {
  call_t *call = argument;
  hidet_session_t *s = call->session;
  const hd_graph_t *graph = s->model->graph;
  size_t inputs = graph->inputs.size;
  if (!take_inputs(call))
    return;
  for (size_t i = 0; i < graph->outputs.size; i++)
    if (!take_output(call, i))
      return;
  for (size_t i = 0; i < inputs + graph->outputs.size; i++)
    if (s->tensors[i].bytes && !s->tensors[i].address) {
      hd_api_fail(call->context, "a tensor has no data");
      return;
    }
  hd_session_enqueue(s->session, s->types, s->tensors, s->tensors + inputs,
                     call->stream);
}

static void wait(void *argument) {
  call_t *call = argument;
  hd_session_wait(call->session->session);
}

hidet_status_t hidet_session_prepare(hidet_session_t *session,
                                     const hidet_array_t *inputs,
                                     size_t num_inputs, hidet_array_t *outputs,
                                     size_t num_outputs) {
  if (outputs)
    memset(outputs, 0, num_outputs * sizeof(*outputs));
  hidet_status_t status =
      check_arrays(session, inputs, num_inputs, outputs, num_outputs);
  if (status != HIDET_OK)
    return status;
  call_t call = {
      .context = &session->own, .session = session, .inputs = inputs};
  status = hd_api_call(&session->own, prepare, &call);
  for (size_t i = 0; status == HIDET_OK && i < num_outputs; i++) {
    const hd_tensor_type_t *type = &session->types[num_inputs + i];
    outputs[i].type = hd_scalar_name(type->type);
    outputs[i].rank = type->rank;
    memcpy(outputs[i].shape, type->shape, sizeof(int64_t) * type->rank);
  }
  return status;
}

hidet_status_t hidet_session_enqueue(hidet_session_t *session,
                                     const hidet_array_t *inputs,
                                     size_t num_inputs,
                                     const hidet_array_t *outputs,
                                     size_t num_outputs, void *stream) {
  hidet_status_t status =
      check_arrays(session, inputs, num_inputs, outputs, num_outputs);
  if (status != HIDET_OK)
    return status;
  call_t call = {.context = &session->own,
                 .session = session,
                 .inputs = inputs,
                 .outputs = outputs,
                 .stream = stream};
  return hd_api_call(&session->own, enqueue, &call);
}

static void read_state(void *argument) {
  call_t *call = argument;
  hd_session_read_state(call->session->session, call->output,
                        &call->session->outputs[call->output]);
}

hidet_status_t hidet_session_read(hidet_session_t *session, size_t output,
                                  hidet_array_t *array) {
  if (array)
    *array = (hidet_array_t){0};
  if (!session || !array)
    return hd_api_needs();
  if (output >= session->model->graph->outputs.size ||
      !has_state(session, output, false))
    return hd_api_refuse("the session has no memory for such an output");
  hd_host_tensor_t *tensor = &session->outputs[output];
  call_t call = {
      .context = &session->own, .session = session, .output = output};
  hd_host_tensor_fini(tensor);
  *tensor = (hd_host_tensor_t){0};
  hidet_status_t status = hd_api_call(&session->own, read_state, &call);
  if (status == HIDET_OK)
    *array = array_of(tensor);
  return status;
}

hidet_status_t hidet_session_wait(hidet_session_t *session) {
  if (!session)
    return hd_api_needs();
  call_t call = {.context = &session->own, .session = session};
  return hd_api_call(&session->own, wait, &call);
}
