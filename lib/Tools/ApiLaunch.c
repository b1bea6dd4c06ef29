// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/SharedPlan.h"
#include "Runtime/LaunchDims.h"
#include "Runtime/MapCall.h"
#include "Runtime/Program.h"
#include "Tools/Api.h"
#include "Tools/Interface.h"
#include "hidet/Launch.h"

#include <stdio.h>
#include <string.h>

typedef struct call {
  hidet_module_t *module;
  const char *name;
  const hidet_argument_t *arguments;
  size_t num_arguments, i;
  int sms;
  hidet_launch_t *launch;
  hidet_parameter_t *parameter;
  hidet_map_t *map;
} call_t;

// NULL after an error, which is reported.
static const hd_func_t *find_kernel(const call_t *call) {
  hidet_context_t *context = call->module->owner;
  hd_module_t *module = call->module->module;
  char text[160];
  const hd_func_t *kernel = hd_module_find(module, call->name, -1);
  if (kernel && kernel->kind == HD_FUNC_KERNEL)
    return hd_api_lower(context, module)
               ? hd_module_find(module, call->name, -1)
               : NULL;
  snprintf(text, sizeof(text), "the module has no kernel '%.100s'", call->name);
  hd_api_fail(context, text);
  return NULL;
}

static bool bind_scalars(const call_t *call, const hd_func_t *kernel,
                         hd_env_t *env) {
  hidet_context_t *context = call->module->owner;
  hd_arena_t *arena = &call->module->module->arena;
  if (call->num_arguments != kernel->num_params)
    return hd_api_fail(context, "an argument for each parameter is needed");
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const hd_var_t *param = kernel->params[i];
    if (param->tensor)
      continue;
    if (hd_type_is_float(param->type)) {
      hd_env_add(arena, env, param,
                 (hd_number_t){.f = call->arguments[i].real});
    } else if (!hd_bind_int(&context->context, env, arena, param,
                            call->arguments[i].integer)) {
      return false;
    }
  }
  return true;
}

static void get_launch(void *argument) {
  call_t *call = argument;
  hidet_launch_t *launch = call->launch;
  hd_env_t env = {.sms = call->sms};
  int32_t grid[3], block[3], cluster[3];
  int64_t bytes;
  const hd_func_t *kernel = find_kernel(call);
  if (!kernel || !bind_scalars(call, kernel, &env) ||
      !hd_launch_dims(&call->module->owner->context.diags, &env, kernel, grid,
                      block, cluster))
    return;
  const hd_shared_plan_t *plan =
      hd_shared_plan(&call->module->module->arena, kernel);
  if (!hd_eval_int(&env, plan->size, &bytes)) {
    hd_api_fail(call->module->owner,
                "the size of its shared memory divides by zero");
    return;
  }
  for (int i = 0; i < 3; i++) {
    launch->grid[i] = (uint32_t)grid[i];
    launch->block[i] = (uint32_t)block[i];
    launch->cluster[i] = (uint32_t)cluster[i];
  }
  launch->shared_bytes = (size_t)bytes;
  launch->num_parameters = hd_interface_num_params(kernel);
}

hidet_status_t hidet_module_launch(hidet_module_t *module, const char *kernel,
                                   const hidet_argument_t *arguments,
                                   size_t num_arguments, int sms,
                                   hidet_launch_t *launch) {
  if (launch)
    *launch = (hidet_launch_t){0};
  if (!module || !kernel || (num_arguments && !arguments) || !launch)
    return hd_api_needs();
  call_t call = {.module = module,
                 .name = kernel,
                 .arguments = arguments,
                 .num_arguments = num_arguments,
                 .sms = sms,
                 .launch = launch};
  return hd_api_change(module, get_launch, &call);
}

static bool has_param(const call_t *call, const hd_func_t *kernel) {
  return call->i < hd_interface_num_params(kernel) ||
         hd_api_fail(call->module->owner, "the kernel has fewer parameters");
}

static void get_parameter(void *argument) {
  call_t *call = argument;
  const hd_func_t *kernel = find_kernel(call);
  if (!kernel || !has_param(call, kernel))
    return;
  hd_interface_param_t param = hd_interface_param(kernel, (uint32_t)call->i);
  const hd_var_t *var = param.var, *tensor = var->map ? var->map->tensor : var;
  *call->parameter = (hidet_parameter_t){
      .name = var->name,
      .kind = var->map      ? HIDET_PARAMETER_MAP
              : var->tensor ? HIDET_PARAMETER_TENSOR
                            : HIDET_PARAMETER_SCALAR,
      .type = hd_type_name(tensor->type),
      .bytes = param.bytes,
      .align = param.align,
      .is_written = var->tensor && var->direction != HD_DIR_IN};
  for (uint32_t i = 0; var->map && i < kernel->num_params; i++)
    if (kernel->params[i] == tensor)
      call->parameter->tensor = i;
}

hidet_status_t hidet_module_parameter(hidet_module_t *module,
                                      const char *kernel, size_t i,
                                      hidet_parameter_t *parameter) {
  if (parameter)
    *parameter = (hidet_parameter_t){0};
  if (!module || !kernel || !parameter)
    return hd_api_needs();
  call_t call = {
      .module = module, .name = kernel, .i = i, .parameter = parameter};
  return hd_api_change(module, get_parameter, &call);
}

static void get_map(void *argument) {
  call_t *call = argument;
  hd_env_t env = {0};
  hd_tensor_map_t map;
  const hd_func_t *kernel = find_kernel(call);
  if (!kernel || !has_param(call, kernel))
    return;
  if (call->i < kernel->num_params) {
    hd_api_fail(call->module->owner, "the parameter is no tensor map");
    return;
  }
  if (bind_scalars(call, kernel, &env) &&
      hd_tensor_map_make(&call->module->owner->context.diags, &env, kernel,
                         (uint32_t)call->i - kernel->num_params, &map))
    hd_map_call_make(&map, call->map);
}

hidet_status_t hidet_module_map(hidet_module_t *module, const char *kernel,
                                const hidet_argument_t *arguments,
                                size_t num_arguments, size_t i,
                                hidet_map_t *map) {
  if (map)
    *map = (hidet_map_t){0};
  if (!module || !kernel || (num_arguments && !arguments) || !map)
    return hd_api_needs();
  call_t call = {.module = module,
                 .name = kernel,
                 .arguments = arguments,
                 .num_arguments = num_arguments,
                 .i = i,
                 .map = map};
  return hd_api_change(module, get_map, &call);
}
