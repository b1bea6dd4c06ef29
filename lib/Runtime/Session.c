// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A run walks the graph with its inputs in hand, segment after segment; values
// live on the device (or, for `ref`, in the host's memory) until the run ends.

#include "Runtime/Session.h"
#include "Graph/Reference.h"
#include "IR/Constant.h"
#include "Runtime/Storage.h"
#include "Schedule/Schedule.h"
#include "Support/HostMemory.h"
#include "Support/PtrMap.h"
#include "TaskMapping/Passes.h"

#include <stdlib.h>
#include <string.h>

static const hd_loc_t nowhere;

// Where a value is, while the session runs.
typedef struct stored {
  const hd_value_t *value;
  hd_host_tensor_t host;        // Owned where it has data.
  const hd_host_tensor_t *data; // host, or what another owns; NULL: not here.
  hd_slot_t slot;               // On the device; no address: not there.
} stored_t;

struct hd_session {
  hd_module_t *module;
  const hd_graph_t *graph;
  hd_device_t *device;
  hd_session_options_t options;
  hd_session_stats_t stats;
  hd_arena_t arena; // Of a run.
  hd_ptr_map_t values;
  HD_VEC(stored_t *) stored;
  hd_module_t *made;    // The segment's plan and kernels.
  hd_program_t program; // The segment's.
};

static hd_context_t *context_of(const hd_session_t *s) {
  return s->module->context;
}

static double ms_since(uint64_t start) {
  return (double)(hd_clock_ns() - start) * 1e-6;
}

hd_session_t *hd_session_create(hd_module_t *module, const hd_graph_t *graph,
                                hd_device_t *device,
                                const hd_session_options_t *options) {
  hd_session_t *s = calloc(1, sizeof(*s));
  if (!s)
    hd_budget_exhausted(&module->context->budget, HD_EXHAUSTED_MEMORY);
  s->module = module;
  s->graph = graph;
  s->device = device;
  s->options = *options;
  hd_arena_init(&s->arena, &module->context->budget);
  return s;
}

static void end_segment(hd_session_t *s) {
  hd_program_fini(&s->program);
  hd_module_destroy(s->made);
  s->made = NULL;
}

static void end_run(hd_session_t *s) {
  end_segment(s);
  for (size_t i = 0; i < s->stored.size; i++) {
    stored_t *stored = s->stored.data[i];
    hd_host_tensor_fini(&stored->host);
    if (s->device && stored->slot.address)
      s->device->ops->free(s->device, stored->slot.address);
  }
  hd_arena_fini(&s->arena);
  hd_arena_init(&s->arena, &context_of(s)->budget);
  s->values = (hd_ptr_map_t){0};
  s->stored.data = NULL;
  s->stored.size = s->stored.capacity = 0;
}

void hd_session_destroy(hd_session_t *s) {
  if (!s)
    return;
  end_run(s);
  hd_arena_fini(&s->arena);
  free(s);
}

const hd_session_stats_t *hd_session_stats(const hd_session_t *s) {
  return &s->stats;
}

static stored_t *find(hd_session_t *s, const hd_value_t *value) {
  stored_t *stored = NULL;
  for (const void *found = hd_ptr_map_get(&s->values, value); found;
       found = NULL)
    memcpy(&stored, &found, sizeof(stored));
  if (stored)
    return stored;
  stored = HD_ARENA_NEW(&s->arena, stored_t);
  stored->value = value;
  hd_ptr_map_set(&s->arena, &s->values, value, stored);
  hd_vec_push(&s->arena, &s->stored, stored);
  return stored;
}

// The value's elements in the host's memory, fetched where they are not there.
static const hd_host_tensor_t *fetch(hd_session_t *s, const hd_value_t *value) {
  stored_t *stored = find(s, value);
  if (stored->data)
    return stored->data;
  if (value->constant)
    return stored->data = hd_constant_load(s->module, value);
  hd_context_t *context = context_of(s);
  const hd_tensor_t *like = stored->slot.var->tensor;
  hd_env_t none = {0};
  hd_tensor_type_t type = {.type = value->type, .rank = (unsigned)value->rank};
  for (int i = 0; i < value->rank; i++)
    type.shape[i] = value->shape[i]->u.i;
  if (!hd_host_tensor_init(&stored->host, &context->diags, &context->budget,
                           value->name, type.type, type.shape, type.rank))
    return NULL;
  size_t bytes = stored->slot.bytes;
  unsigned char *storage = hd_host_memory_alloc(
      &context->diags, &context->budget, value->name, bytes);
  bool ok =
      storage &&
      s->device->ops->download(s->device, storage, stored->slot.address,
                               bytes) &&
      hd_storage_unpack(&none, &s->arena, like, storage, bytes, &stored->host);
  hd_host_memory_free(&context->budget, storage, bytes);
  return ok ? stored->data = &stored->host : NULL;
}

static bool evaluate(hd_session_t *s, const hd_node_t *node) {
  hd_arena_t *arena = &s->arena;
  const hd_host_tensor_t **inputs =
      HD_ARENA_ARRAY(arena, const hd_host_tensor_t *, node->num_inputs + 1);
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(arena, hd_tensor_type_t, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    inputs[i] = fetch(s, node->inputs[i]);
    if (!inputs[i])
      return false;
    types[i] = (hd_tensor_type_t){inputs[i]->type, inputs[i]->rank, {0}};
    memcpy(types[i].shape, inputs[i]->shape, sizeof(inputs[i]->shape));
  }
  stored_t *first = find(s, node->outputs[0]);
  if (!node->task) { // A reshape: the same elements.
    hd_host_tensor_t *view = HD_ARENA_NEW(arena, hd_host_tensor_t);
    *view = *inputs[0];
    view->rank = (unsigned)first->value->rank;
    for (int i = 0; i < first->value->rank; i++)
      view->shape[i] = first->value->shape[i]->u.i;
    first->data = view;
    return true;
  }
  const hd_task_binding_t *binding =
      hd_task_bind(context_of(s), arena, node->task, types, node->num_inputs,
                   node->attributes, node->num_attributes, node->loc, node->op);
  if (!binding)
    return false;
  hd_host_tensor_t *outputs =
      HD_ARENA_ARRAY(arena, hd_host_tensor_t, node->num_outputs + 1);
  bool ok =
      hd_task_evaluate(context_of(s), binding, inputs, outputs, node->loc);
  for (uint32_t i = 0; ok && i < node->num_outputs; i++) {
    stored_t *stored = find(s, node->outputs[i]);
    stored->host = outputs[i];
    stored->data = &stored->host;
  }
  return ok;
}

static bool run_reference(hd_session_t *s, const hd_graph_t *segment) {
  for (size_t i = 0; i < segment->nodes.size; i++) {
    hd_budget_check(&context_of(s)->budget);
    if (!evaluate(s, segment->nodes.data[i]))
      return false;
  }
  return true;
}

static const hd_pass_t *lower_pass(void) {
  for (size_t i = 0; i < hd_task_mapping_num_passes; i++)
    if (strcmp(hd_task_mapping_passes[i].name, "lower") == 0)
      return &hd_task_mapping_passes[i];
  return NULL;
}

static bool compile(hd_session_t *s, const hd_func_t *plan) {
  hd_pass_args_t args = {s->options.keep_layouts ? "layouts=keep" : NULL,
                         s->options.explain};
  hd_pass_config_t config = {.verify_each = true};
  hd_program_options_t options = {.specialize = true};
  hd_env_t none = {0};
  return hd_program_init(&s->program, s->device, s->made, plan, &none,
                         &options) &&
         hd_pass_run(s->program.module, lower_pass(), &args, &config).ok &&
         hd_program_load(&s->program);
}

// Brings a value to the device, or makes room for it.
static bool place(hd_session_t *s, const hd_value_t *value,
                  const hd_var_t *param, bool fill) {
  hd_context_t *context = context_of(s);
  stored_t *stored = find(s, value);
  hd_env_t none = {0};
  int64_t bytes;
  if (stored->slot.address)
    return true;
  if (!hd_storage_bytes(&none, &s->arena, param->tensor, &bytes))
    return hd_error(&context->diags, nowhere, HD_E0309, value->name);
  stored->slot = (hd_slot_t){.var = param, .bytes = (size_t)bytes};
  if (!s->device->ops->alloc(s->device, value->name, (size_t)bytes,
                             &stored->slot.address))
    return false;
  if (!fill)
    return true;
  const hd_host_tensor_t *data = fetch(s, value);
  if (!data)
    return false;
  if (value->constant)
    s->stats.weights_bytes += bytes;
  if (hd_storage_is_plain(param->tensor))
    return s->device->ops->upload(s->device, stored->slot.address, data->data,
                                  (size_t)bytes);
  unsigned char *storage = hd_host_memory_alloc(
      &context->diags, &context->budget, value->name, (size_t)bytes);
  bool ok = storage &&
            hd_storage_pack(&none, &s->arena, param->tensor, data, storage,
                            (size_t)bytes) &&
            s->device->ops->upload(s->device, stored->slot.address, storage,
                                   (size_t)bytes);
  hd_host_memory_free(&context->budget, storage, (size_t)bytes);
  return ok;
}

// The plan's parameters: the segment's inputs, constants and outputs.
static bool place_params(hd_session_t *s, const hd_graph_t *segment,
                         const hd_func_t *plan, hd_slot_t *slots) {
  uint32_t n = 0;
  for (size_t i = 0; i < segment->inputs.size; i++, n++)
    if (!place(s, segment->inputs.data[i], plan->params[n], true))
      return false;
  for (size_t i = 0; i < segment->constants.size; i++, n++)
    if (!place(s, segment->constants.data[i], plan->params[n], true))
      return false;
  for (size_t i = 0; i < segment->outputs.size; i++)
    if (hd_scheduled_output(segment, i) &&
        !place(s, segment->outputs.data[i], plan->params[n++], false))
      return false;
  n = 0;
  for (size_t i = 0; i < segment->inputs.size; i++)
    slots[n++] = find(s, segment->inputs.data[i])->slot;
  for (size_t i = 0; i < segment->constants.size; i++)
    slots[n++] = find(s, segment->constants.data[i])->slot;
  for (size_t i = 0; i < segment->outputs.size; i++)
    if (hd_scheduled_output(segment, i))
      slots[n++] = find(s, segment->outputs.data[i])->slot;
  return true;
}

static bool run_device(hd_session_t *s, const hd_graph_t *segment) {
  end_segment(s);
  s->made = hd_module_create(context_of(s));
  uint64_t start = hd_clock_ns();
  const hd_func_t *plan = hd_schedule_graph(s->made, segment);
  bool ok = plan && compile(s, plan);
  s->stats.compile_ms += ms_since(start);
  if (!ok)
    return false;
  s->stats.kernels += (unsigned)s->program.variants.size;
  s->stats.launches += s->program.num_launches;
  hd_slot_t *slots = HD_ARENA_ARRAY(&s->arena, hd_slot_t, plan->num_params + 1);
  start = hd_clock_ns();
  ok = place_params(s, segment, plan, slots);
  s->stats.load_ms += ms_since(start);
  start = hd_clock_ns();
  ok = ok && hd_program_run(&s->program, slots);
  s->stats.run_ms += ms_since(start);
  s->stats.moved_bytes += ok ? hd_program_moved_bytes(&s->program) : 0;
  return ok;
}

static hd_expander_t *begin(hd_session_t *s, const hd_host_tensor_t *inputs) {
  size_t count = s->graph->inputs.size;
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(&s->arena, hd_tensor_type_t, count + 1);
  const hd_host_tensor_t **data =
      HD_ARENA_ARRAY(&s->arena, const hd_host_tensor_t *, count + 1);
  for (size_t i = 0; i < count; i++) {
    types[i] = (hd_tensor_type_t){inputs[i].type, inputs[i].rank, {0}};
    memcpy(types[i].shape, inputs[i].shape, sizeof(inputs[i].shape));
    data[i] = &inputs[i];
  }
  hd_expander_t *x = hd_expander_create(s->module, s->graph, types, data);
  for (size_t i = 0; i < count; i++)
    find(s, hd_expander_input(x, i))->data = &inputs[i];
  return x;
}

static bool run_segments(hd_session_t *s, hd_expander_t *x,
                         const hd_graph_t **last) {
  for (;;) {
    uint64_t start = hd_clock_ns();
    hd_expand_state_t state = hd_expander_run(x, last);
    s->stats.expand_ms += ms_since(start);
    if (state == HD_EXPAND_FAILED)
      return false;
    s->stats.segments += (*last)->nodes.size > 0;
    if ((*last)->nodes.size > 0 &&
        !(s->device ? run_device(s, *last) : run_reference(s, *last)))
      return false;
    if (state == HD_EXPAND_DONE)
      return true;
    const hd_value_t *wanted = hd_expander_wanted(x);
    const hd_host_tensor_t *data = fetch(s, wanted);
    if (!data)
      return false;
    hd_expander_give(x, wanted, data);
  }
}

static bool take_outputs(hd_session_t *s, const hd_graph_t *last,
                         hd_host_tensor_t *outputs) {
  hd_context_t *context = context_of(s);
  for (size_t i = 0; i < last->outputs.size; i++) {
    const hd_value_t *value = last->outputs.data[i];
    const hd_host_tensor_t *data = fetch(s, value);
    if (!data ||
        !hd_host_tensor_init(&outputs[i], &context->diags, &context->budget,
                             value->name, data->type, data->shape, data->rank))
      return false;
    memcpy(outputs[i].data, data->data, data->bytes);
  }
  return true;
}

bool hd_session_run(hd_session_t *s, const hd_host_tensor_t *inputs,
                    hd_host_tensor_t *outputs) {
  memset(outputs, 0, sizeof(*outputs) * s->graph->outputs.size);
  s->stats = (hd_session_stats_t){0};
  hd_expander_t *x = begin(s, inputs);
  const hd_graph_t *last = NULL;
  bool ok = run_segments(s, x, &last) && take_outputs(s, last, outputs);
  end_run(s);
  return ok;
}
