// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel and what it became, run side by side on the simulator.
#include "AccessHelp.h"
#include "IR/Passes/Passes.h"
#include "IR/Text/Parser.h"
#include "IR/Text/Printer.h"
#include "IR/Verify/Verifier.h"
#include "Runtime/Storage.h"
#include "TaskMapping/Passes.h"
#include <stdlib.h>
#include <string.h>

typedef struct hd_access_launch {
  hd_access_run_t *run;
  const hd_func_t *kernel;
  hd_arena_t arena;
  hd_env_t env;
  hd_device_t *device;
  hd_program_t program;
  hd_host_tensor_t tensors[HD_MAX_PARAMS];
  hd_slot_t slots[HD_MAX_PARAMS];
} launch_t;

static bool is_straight(const hd_var_t *param) {
  return strstr(param->name, HD_STRAIGHT) != NULL;
}

static bool is_mirror(const hd_var_t *param) {
  return strstr(param->name, HD_MIRRORED) || is_straight(param);
}

// Which of the kernel's parameters a parameter is, or stands for.
static uint32_t original(const launch_t *l, const hd_var_t *param) {
  size_t size =
      strlen(param->name) - (is_mirror(param) ? strlen(HD_MIRRORED) : 0);
  for (uint32_t k = 0; k < l->run->kernel->num_params; k++) {
    const char *name = l->run->kernel->params[k]->name;
    if (strlen(name) == size && strncmp(name, param->name, size) == 0)
      return k;
  }
  fail_msg("there is no parameter %s", param->name);
  return 0;
}

// The place of a tensor's element in what stands for it.
static int64_t mirrored(const hd_var_t *param, const hd_host_tensor_t *tensor,
                        int64_t i) {
  if (!is_mirror(param) || is_straight(param))
    return i;
  int64_t index[HD_TENSOR_MAX_RANK], place = 0;
  for (unsigned a = tensor->rank; a-- > 0; i /= tensor->shape[a])
    index[a] = i % tensor->shape[a];
  for (unsigned a = tensor->rank; a-- > 0;)
    place = place * tensor->shape[a] + index[a];
  return place;
}

static void make_data(launch_t *l, uint32_t i) {
  const hd_var_t *param = l->kernel->params[i];
  hd_host_tensor_t *to = &l->tensors[i], drawn;
  int64_t shape[HD_TENSOR_MAX_RANK], reversed[HD_TENSOR_MAX_RANK];
  unsigned rank = param->tensor->rank;
  hd_scalar_t type = (hd_scalar_t)param->type.scalar;
  assert_true(hd_storage_shape(&l->env, param->tensor, shape));
  for (unsigned a = 0; a < rank; a++)
    reversed[a] = shape[is_straight(param) ? a : rank - 1 - a];
  hd_diagnostics_t *diags = &l->run->context.diags;
  assert_true(hd_host_tensor_init(to, diags, NULL, "x", type, shape, rank));
  hd_host_tensor_t *filled = to;
  if (is_mirror(param)) {
    assert_true(
        hd_host_tensor_init(&drawn, diags, NULL, "x", type, reversed, rank));
    filled = &drawn;
  }
  hd_host_tensor_fill_random(filled, 1, original(l, param));
  if (!is_mirror(param))
    return;
  for (int64_t e = 0; e < to->count; e++)
    hd_host_tensor_set(to, mirrored(param, &drawn, e),
                       hd_access_coded(type, hd_host_tensor_get(&drawn, e)));
  hd_host_tensor_fini(&drawn);
}

static void upload(launch_t *l, uint32_t i) {
  const hd_tensor_t *tensor = l->kernel->params[i]->tensor;
  hd_slot_t *slot = &l->slots[i];
  int64_t bytes;
  assert_true(hd_storage_bytes(&l->env, &l->arena, tensor, &bytes));
  unsigned char *storage = calloc(1, (size_t)bytes);
  slot->bytes = (size_t)bytes;
  slot->var = l->kernel->params[i];
  assert_true(hd_storage_pack(&l->env, &l->arena, tensor, &l->tensors[i],
                              storage, slot->bytes));
  const hd_device_ops_t *ops = l->device->ops;
  assert_true(ops->alloc(l->device, "x", slot->bytes, &slot->address));
  assert_true(ops->upload(l->device, slot->address, storage, slot->bytes));
  free(storage);
}

static void download(launch_t *l, uint32_t i) {
  const hd_slot_t *slot = &l->slots[i];
  unsigned char *storage = calloc(1, slot->bytes);
  assert_true(
      l->device->ops->download(l->device, storage, slot->address, slot->bytes));
  assert_true(hd_storage_unpack(&l->env, &l->arena,
                                l->kernel->params[i]->tensor, storage,
                                slot->bytes, &l->tensors[i]));
  l->device->ops->free(l->device, slot->address);
  free(storage);
}

static void lower_and_run(launch_t *l, const hd_module_t *module) {
  size_t lower = 0;
  while (strcmp(hd_task_mapping_passes[lower].name, "lower") != 0)
    lower++;
  hd_pass_args_t args = {.options = "layouts=keep"};
  hd_pass_config_t config = {.verify_each = true};
  hd_program_options_t options = {.specialize = true, .apart = true};
  if (!hd_program_init(&l->program, l->device, module, l->kernel, &l->env,
                       &options) ||
      !hd_pass_run(l->program.module, &hd_task_mapping_passes[lower], &args,
                   &config)
           .ok ||
      !hd_program_load(&l->program))
    hd_access_fail(l->run, "not compiled");
  for (uint32_t i = 0; i < l->kernel->num_params; i++)
    if (l->kernel->params[i]->tensor)
      upload(l, i);
  if (!hd_program_run(&l->program, l->slots))
    hd_access_fail(l->run, "not run");
  for (uint32_t i = 0; i < l->kernel->num_params; i++)
    if (l->kernel->params[i]->tensor)
      download(l, i);
  for (const hd_diagnostic_t *d = l->run->context.diags.first; d; d = d->next)
    if (d->severity != HD_REMARK)
      hd_access_fail(l->run, "something was said");
}

static void launch_init(launch_t *l, hd_access_run_t *run,
                        const hd_module_t *module, const hd_func_t *kernel) {
  *l = (launch_t){.run = run, .kernel = kernel};
  hd_arena_init(&l->arena, NULL);
  hd_device_options_t options = {.threads = 1, .sanitize = true};
  l->device = hd_device_open_sim(&run->context, &options);
  l->env.sms = l->device->info.sms;
  for (uint32_t i = 0; i < l->kernel->num_params; i++) {
    const hd_var_t *param = l->kernel->params[i];
    if (!param->tensor)
      assert_true(hd_bind_int(&run->context, &l->env, &l->arena, param,
                              run->sizes[original(l, param)]));
  }
  for (uint32_t i = 0; i < l->kernel->num_params; i++)
    if (l->kernel->params[i]->tensor)
      make_data(l, i);
  lower_and_run(l, module);
}

static void launch_fini(launch_t *l) {
  for (uint32_t i = 0; i < l->kernel->num_params; i++)
    if (l->kernel->params[i]->tensor)
      hd_host_tensor_fini(&l->tensors[i]);
  hd_program_fini(&l->program);
  hd_device_close(l->device);
  hd_arena_fini(&l->arena);
}

static void compare(launch_t *before, launch_t *after) {
  for (uint32_t i = 0; i < after->kernel->num_params; i++) {
    const hd_var_t *param = after->kernel->params[i];
    uint32_t k = original(after, param);
    const hd_host_tensor_t *x = &before->tensors[k], *y = &after->tensors[i];
    for (int64_t e = 0; param->tensor && e < x->count; e++) {
      double wanted = hd_host_tensor_get(x, e);
      int64_t place = mirrored(param, x, e);
      if (is_mirror(param))
        wanted = hd_access_coded(x->type, wanted);
      double got = hd_host_tensor_get(y, place);
      if (!(got == wanted || (got != got && wanted != wanted)))
        fail_msg("%s: element %lld is %.9g and not %.9g\n%s", param->name,
                 (long long)e, got, wanted,
                 hd_buffer_text(&before->run->printed));
    }
  }
}

void hd_access_end(hd_access_run_t *run) {
  if (run->before)
    launch_fini(run->before);
  hd_buffer_fini(&run->printed);
  hd_context_fini(&run->context);
}

void hd_access_compare(hd_access_run_t *run) {
  const char *text = hd_buffer_text(&run->printed);
  launch_t after;
  hd_module_t *again = hd_access_parse(run, text);
  if (!run->before) {
    run->before = HD_ARENA_NEW(&run->module->arena, launch_t);
    launch_init(run->before, run, run->module,
                hd_access_kernel(run->module, run->kernel->name));
  }
  launch_init(&after, run, again, hd_access_kernel(again, NULL));
  compare(run->before, &after);
  launch_fini(&after);
}

unsigned hd_access_compare_all(hd_access_run_t *run) {
  hd_buffer_t all = {0};
  unsigned count = 0;
  for (uint32_t i = 0; i < run->kernel->num_params; i++) {
    const hd_var_t *param = run->kernel->params[i];
    if (!param->tensor ||
        hd_access_obstacle(run->kernel, param, hd_access_kind(param)))
      continue;
    count++;
    hd_buffer_printf(&all, "%s ", param->name);
    hd_access_change(run, param->name, (hd_hook_style_t)(i % HD_HOOK_STYLES));
    hd_access_compare(run);
  }
  for (int style = 0; count && style < HD_HOOK_STYLES; style++) {
    hd_access_change(run, hd_buffer_text(&all), (hd_hook_style_t)style);
    hd_access_compare(run);
  }
  hd_buffer_fini(&all);
  return count;
}

void hd_access_expect_same(const char *text, unsigned params) {
  static const int64_t sizes[] = {37, 21, 5, 3};
  hd_access_run_t run;
  hd_access_begin(&run, text, NULL, sizes);
  assert_int_equal(hd_access_compare_all(&run), params);
  hd_access_end(&run);
}
