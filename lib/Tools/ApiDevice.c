// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Runtime/Cuda.h"
#include "Runtime/Program.h"
#include "Runtime/Storage.h"
#include "Sim/Sim.h"
#include "Tools/Api.h"
#include "Tools/Input.h"
#include "hidet/Device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hidet_tensor {
  hidet_device_t *owner;
  hd_scalar_t type;
  unsigned rank;
  int64_t shape[HD_TENSOR_MAX_RANK];
  hd_address_t address;
  size_t bytes;
  bool wraps; // Memory of the caller's.
};

struct hidet_program {
  hidet_device_t *owner;
  hidet_context_t *context; // The module's, in which it runs on
  hd_device_t *device;      // a fork of the device.
  hd_program_t program;
  hd_slot_t *slots;
};

typedef struct call {
  hidet_context_t *context;
  hidet_device_t *device;
  const char *name;
  hidet_tensor_t *tensor;
  const char *type;
  const int64_t *shape;
  const void *from;
  void *to;
  hidet_module_t *module;
  hidet_program_t *program;
  const hidet_argument_t *arguments;
  size_t num_arguments;
} call_t;

static void open_device(void *argument) {
  call_t *call = argument;
  hd_context_t *context = &call->device->own.context;
  const char *name = call->name;
  hd_device_options_t options = {.sanitize = !strcmp(name, "sim:sanitize")};
  if (strcmp(name, "auto") == 0)
    name = hd_cuda_present_sm() ? "cuda" : "sim";
  int ordinal = hd_cuda_ordinal(name);
  call->device->ordinal = ordinal;
  call->device->keeps = !options.sanitize;
  if (options.sanitize || strcmp(name, "sim") == 0)
    call->device->device = hd_device_open_sim(context, &options);
  else if (ordinal >= 0)
    call->device->device = hd_device_open_cuda(context, ordinal, &options);
  else
    hd_api_fail(
        &call->device->own,
        "the device is one of auto, cuda, cuda:N, sim and sim:sanitize");
}

hidet_status_t hidet_device_open(hidet_context_t *context, const char *name,
                                 hidet_device_t **device) {
  if (device)
    *device = NULL;
  if (!context || !name || !device)
    return hd_api_needs();
  *device = calloc(1, sizeof(**device));
  if (!*device)
    return hd_api_no_memory();
  (*device)->users = 1;
  pthread_mutex_lock(&context->lock);
  hd_api_context_init(&(*device)->own, context);
  pthread_mutex_unlock(&context->lock);
  call_t call = {.device = *device, .name = name};
  hidet_status_t status = hd_api_call(&(*device)->own, open_device, &call);
  if (status != HIDET_OK) {
    hidet_device_close(*device);
    *device = NULL;
  }
  return status;
}

// Models give back what they have on a device when they end, which may be
// after it was closed.
void hidet_device_close(hidet_device_t *device) {
  if (!device || --device->users)
    return;
  hd_device_close(device->device);
  hd_api_context_fini(&device->own);
  free(device);
}

const char *hidet_device_kind(const hidet_device_t *device) {
  return device ? device->device->ops->kind : NULL;
}

void hidet_handle_fault(void) { hd_sim_handle_fault(); }

static bool check_tensor(call_t *call, int64_t *bytes) {
  hidet_context_t *context = &call->device->own;
  hidet_tensor_t *t = call->tensor;
  hd_type_t type;
  if (!hd_type_parse(call->type, &type) || type.lanes != 1 ||
      hd_type_bits(type) < 8 || hd_scalar_class(type.scalar) == HD_CLASS_OPAQUE)
    return hd_api_fail(context, "the type is no element type of whole bytes");
  if (t->rank > HD_TENSOR_MAX_RANK)
    return hd_api_fail(context, "a tensor has at most 16 axes");
  t->type = (hd_scalar_t)type.scalar;
  *bytes = hd_type_bits(type) / 8;
  for (unsigned i = 0; i < t->rank; i++) {
    t->shape[i] = call->shape[i];
    if (t->shape[i] < 0)
      return hd_api_fail(context, "a size is negative");
    if (__builtin_mul_overflow(*bytes, t->shape[i], bytes))
      return hd_error(&context->context.diags, (hd_loc_t){0}, HD_E0309,
                      "tensor");
  }
  return true;
}

static void create_tensor(void *argument) {
  call_t *call = argument;
  int64_t bytes = 0;
  if (!check_tensor(call, &bytes))
    return;
  call->tensor->bytes = (size_t)bytes;
  if (call->tensor->wraps)
    return;
  hd_device_t *device = call->device->device;
  device->ops->alloc(device, "tensor", (size_t)bytes, &call->tensor->address);
}

static hidet_status_t make_tensor(hidet_device_t *device, const char *type,
                                  const int64_t *shape, unsigned rank,
                                  bool wraps, void *address,
                                  hidet_tensor_t **tensor) {
  *tensor = calloc(1, sizeof(**tensor));
  if (!*tensor)
    return hd_api_no_memory();
  **tensor = (hidet_tensor_t){.owner = device,
                              .rank = rank,
                              .wraps = wraps,
                              .address = (uintptr_t)address};
  call_t call = {
      .device = device, .tensor = *tensor, .type = type, .shape = shape};
  hidet_status_t status = hd_api_call(&device->own, create_tensor, &call);
  if (status != HIDET_OK) {
    free(*tensor);
    *tensor = NULL;
  }
  return status;
}

hidet_status_t hidet_tensor_create(hidet_device_t *device, const char *type,
                                   const int64_t *shape, unsigned rank,
                                   hidet_tensor_t **tensor) {
  if (tensor)
    *tensor = NULL;
  if (!device || !type || (rank && !shape) || !tensor)
    return hd_api_needs();
  return make_tensor(device, type, shape, rank, false, NULL, tensor);
}

hidet_status_t hidet_tensor_wrap(hidet_device_t *device, const char *type,
                                 const int64_t *shape, unsigned rank,
                                 void *address, hidet_tensor_t **tensor) {
  if (tensor)
    *tensor = NULL;
  if (!device || !type || (rank && !shape) || !address || !tensor)
    return hd_api_needs();
  return make_tensor(device, type, shape, rank, true, address, tensor);
}

void *hidet_tensor_data(const hidet_tensor_t *tensor) {
  return tensor ? (void *)(uintptr_t)tensor->address : NULL;
}

void hidet_tensor_destroy(hidet_tensor_t *tensor) {
  if (!tensor)
    return;
  hd_device_t *device = tensor->owner->device;
  pthread_mutex_lock(&tensor->owner->own.lock);
  if (!tensor->wraps)
    device->ops->free(device, tensor->address);
  pthread_mutex_unlock(&tensor->owner->own.lock);
  free(tensor);
}

size_t hidet_tensor_size(const hidet_tensor_t *tensor) {
  return tensor ? tensor->bytes : 0;
}

static void write_tensor(void *argument) {
  call_t *call = argument;
  hd_device_t *device = call->device->device;
  device->ops->upload(device, call->tensor->address, call->from,
                      call->tensor->bytes);
}

hidet_status_t hidet_tensor_write(hidet_tensor_t *tensor, const void *data) {
  if (!tensor || (tensor->bytes && !data))
    return hd_api_needs();
  call_t call = {.device = tensor->owner, .tensor = tensor, .from = data};
  return hd_api_call(&tensor->owner->own, write_tensor, &call);
}

static void read_tensor(void *argument) {
  call_t *call = argument;
  hd_device_t *device = call->device->device;
  device->ops->download(device, call->to, call->tensor->address,
                        call->tensor->bytes);
}

hidet_status_t hidet_tensor_read(hidet_tensor_t *tensor, void *data) {
  if (!tensor || (tensor->bytes && !data))
    return hd_api_needs();
  call_t call = {.device = tensor->owner, .tensor = tensor, .to = data};
  return hd_api_call(&tensor->owner->own, read_tensor, &call);
}

static bool fail_argument(hidet_context_t *context, const hd_var_t *param,
                          const char *why) {
  char text[200];
  snprintf(text, sizeof(text), "argument '%.80s' %s", param->name, why);
  return hd_api_fail(context, text);
}

// A tensor argument as the program wants it.
static bool check_argument(const call_t *call, const hd_var_t *param,
                           const hidet_tensor_t *tensor) {
  hidet_context_t *context = call->context;
  const hidet_device_t *device = call->device;
  if (!tensor || tensor->owner != device)
    return fail_argument(context, param, "is no tensor of this device");
  if (tensor->type != (hd_scalar_t)param->type.scalar)
    return hd_error(&context->context.diags, (hd_loc_t){0}, HD_E0805,
                    param->name, hd_scalar_name(tensor->type),
                    hd_type_name(param->type));
  return hd_storage_is_plain(param->tensor) ||
         fail_argument(context, param, "has a layout that is not row-major");
}

// Sizes and scalars: given ones first, then what shapes say, then all checked.
static bool bind(call_t *call, const hd_func_t *entry, hd_env_t *env,
                 hd_arena_t *arena) {
  hd_context_t *context = &call->context->context;
  for (uint32_t i = 0; i < entry->num_params; i++) {
    const hd_var_t *param = entry->params[i];
    const hidet_argument_t *value = &call->arguments[i];
    if (param->tensor) {
      if (!check_argument(call, param, value->tensor))
        return false;
    } else if (hd_type_is_float(param->type)) {
      hd_env_add(arena, env, param, (hd_number_t){.f = value->real});
    } else if (!hd_bind_int(context, env, arena, param, value->integer)) {
      return false;
    }
  }
  for (uint32_t i = 0; i < entry->num_params; i++) {
    const hidet_tensor_t *tensor = call->arguments[i].tensor;
    if (entry->params[i]->tensor &&
        !hd_bind_check(context, env, entry->params[i], tensor->shape,
                       tensor->rank))
      return false;
  }
  return true;
}

static void create_program(void *argument) {
  call_t *call = argument;
  hidet_program_t *program = call->program;
  hd_module_t *module = call->module->module;
  hd_context_t *context = &call->context->context;
  if (call->module->models && hd_tools_wants_instance(module, call->name)) {
    hd_api_fail(call->context, "models are made of the module: it takes no "
                               "more instances of kernels");
    return;
  }
  program->device = hd_device_fork(call->device->device, context);
  if (!program->device || !hd_tools_make_entry(module, &call->name))
    return;
  const hd_func_t *entry = call->name ? hd_module_find(module, call->name, -1)
                                      : hd_module_entry(module);
  if (!entry || entry->kind == HD_FUNC_FN) {
    hd_api_fail(call->context, "the module has no such kernel or plan");
    return;
  }
  if (call->num_arguments != entry->num_params) {
    hd_error(&context->diags, (hd_loc_t){0}, HD_E1003,
             "an argument for each parameter is needed");
    return;
  }
  program->slots = calloc(entry->num_params + 1, sizeof(*program->slots));
  hd_arena_t *arena = &module->arena;
  hd_env_t env = {.sms = call->device->device->info.sms};
  hd_program_options_t options = {.specialize = true};
  if (program->slots && bind(call, entry, &env, arena) &&
      hd_program_init(&program->program, program->device, module, entry, &env,
                      &options) &&
      hd_api_lower(call->context, program->program.module))
    hd_program_load(&program->program);
}

hidet_status_t hidet_program_create(hidet_device_t *device,
                                    hidet_module_t *module, const char *entry,
                                    const hidet_argument_t *arguments,
                                    size_t num_arguments,
                                    hidet_program_t **program) {
  if (program)
    *program = NULL;
  if (!device || !module || (num_arguments && !arguments) || !program)
    return hd_api_needs();
  *program = calloc(1, sizeof(**program));
  if (!*program)
    return hd_api_no_memory();
  (*program)->owner = device;
  (*program)->context = module->owner;
  call_t call = {.context = module->owner,
                 .device = device,
                 .name = entry,
                 .module = module,
                 .program = *program,
                 .arguments = arguments,
                 .num_arguments = num_arguments};
  hidet_status_t status = hd_api_call(module->owner, create_program, &call);
  if (status == HIDET_OK && !(*program)->slots)
    status = HIDET_RESOURCE;
  if (status != HIDET_OK) {
    hidet_program_destroy(*program);
    *program = NULL;
  }
  return status;
}

void hidet_program_destroy(hidet_program_t *program) {
  if (!program)
    return;
  pthread_mutex_lock(&program->context->lock);
  hd_program_fini(&program->program);
  hd_device_close(program->device);
  pthread_mutex_unlock(&program->context->lock);
  free(program->slots);
  free(program);
}

// Scalars are constants of the code by now.
static bool check_scalar(const call_t *call, const hd_var_t *param,
                         const hidet_argument_t *value) {
  const hd_number_t *known = hd_env_find(&call->program->program.env, param);
  bool same =
      !known || (hd_type_is_float(param->type)
                     ? memcmp(&known->f, &value->real, sizeof known->f) == 0
                     : known->i == value->integer);
  return same || fail_argument(call->context, param,
                               "is not what the program was compiled for");
}

static void run_program(void *argument) {
  call_t *call = argument;
  hd_program_t *program = &call->program->program;
  const hd_func_t *entry = program->entry;
  hd_context_t *context = &call->context->context;
  if (call->num_arguments != entry->num_params) {
    hd_api_fail(call->context, "an argument for each parameter is needed");
    return;
  }
  for (uint32_t i = 0; i < entry->num_params; i++) {
    const hd_var_t *param = entry->params[i];
    const hidet_tensor_t *tensor = call->arguments[i].tensor;
    if (!param->tensor) {
      if (!check_scalar(call, param, &call->arguments[i]))
        return;
      continue;
    }
    if (!check_argument(call, param, tensor) ||
        !hd_bind_check(context, &program->env, param, tensor->shape,
                       tensor->rank))
      return;
    call->program->slots[i] =
        (hd_slot_t){param, tensor->address, tensor->bytes};
  }
  hd_program_run(program, call->program->slots);
}

hidet_status_t hidet_program_run(hidet_program_t *program,
                                 const hidet_argument_t *arguments,
                                 size_t num_arguments) {
  if (!program || (num_arguments && !arguments))
    return hd_api_needs();
  call_t call = {.context = program->context,
                 .device = program->owner,
                 .program = program,
                 .arguments = arguments,
                 .num_arguments = num_arguments};
  return hd_api_call(program->context, run_program, &call);
}
