// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Runtime/Device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hd_loc_t nowhere;

static bool fail(hd_device_t *device, const hd_kernel_t *kernel,
                 const char *why) {
  return hd_error(&device->context->diags, nowhere, HD_E0606,
                  kernel->func->name, why);
}

static bool check_block(hd_device_t *device, const hd_kernel_t *kernel,
                        const hd_kernel_launch_t *launch) {
  static const int32_t limits[3] = {1024, 1024, 64};
  char text[200];
  int64_t threads = 1;
  for (int i = 0; i < 3; i++) {
    if (launch->block[i] < 1 || launch->block[i] > limits[i]) {
      snprintf(text, sizeof(text), "block.%c is %d, and 1 to %d are possible",
               "xyz"[i], launch -> block[i], limits[i]);
      return fail(device, kernel, text);
    }
    threads *= launch->block[i];
  }
  if (threads > 1024) {
    snprintf(text, sizeof(text), "a block of %lld threads; 1024 are possible",
             (long long)threads);
    return fail(device, kernel, text);
  }
  if (threads <= kernel->max_threads)
    return true;
  snprintf(text, sizeof(text),
           "its %d registers a thread leave room for %d threads a block, and "
           "it asks for %lld",
           kernel->registers, kernel->max_threads, (long long)threads);
  return fail(device, kernel, text);
}

static bool check_grid(hd_device_t *device, const hd_kernel_t *kernel,
                       const hd_kernel_launch_t *launch) {
  static const int32_t limits[3] = {INT32_MAX, 65535, 65535};
  char text[200];
  int64_t cluster = 1;
  for (int i = 0; i < 3; i++) {
    if (launch->grid[i] < 0 || launch->grid[i] > limits[i]) {
      snprintf(text, sizeof(text), "grid.%c is %d, and 0 to %d are possible",
               "xyz"[i], launch -> grid[i], limits[i]);
      return fail(device, kernel, text);
    }
    if (launch->cluster[i] < 1 || launch->grid[i] % launch->cluster[i]) {
      snprintf(text, sizeof(text),
               "grid.%c is %d, no multiple of cluster.%c, %d", "xyz"[i],
               launch -> grid[i], "xyz"[i], launch -> cluster[i]);
      return fail(device, kernel, text);
    }
    cluster *= launch->cluster[i];
  }
  if (cluster > 16)
    return fail(device, kernel, "a cluster of more than 16 blocks");
  int sm = device->info.target->sm;
  if (cluster > 1 && sm < 90)
    return fail(device, kernel, "clusters need sm_90 or later");
  return true;
}

bool hd_launch_check(hd_device_t *device, const hd_kernel_t *kernel,
                     const hd_kernel_launch_t *launch) {
  if (!check_block(device, kernel, launch) ||
      !check_grid(device, kernel, launch))
    return false;
  if (launch->shared_bytes <= device->info.max_shared_bytes)
    return true;
  char text[200];
  snprintf(text, sizeof(text),
           "it needs %lld bytes of shared memory a block, and %s has %lld",
           (long long)launch->shared_bytes, device->info.name,
           (long long)device->info.max_shared_bytes);
  return fail(device, kernel, text);
}

static bool check_params(hd_device_t *device, const hd_func_t *func,
                         hd_failure_t *failure) {
  const hd_target_t *target = device->info.target;
  size_t bytes = hd_func_param_bytes(func);
  if (bytes <= (size_t)target->max_param_bytes)
    return true;
  char text[200];
  snprintf(text, sizeof(text),
           "its parameters take %zu bytes, and %lld are possible on %s", bytes,
           (long long)target->max_param_bytes, target->name);
  if (failure) {
    failure->code = HD_E0606;
    snprintf(failure->why, sizeof failure->why, "%s", text);
  }
  return hd_error(&device->context->diags, func->loc, HD_E0606, func->name,
                  text);
}

bool hd_device_load(hd_device_t *device, const hd_func_t *const *funcs,
                    const hd_code_t *codes, unsigned count,
                    hd_kernel_t **kernels, hd_failure_t *failures) {
  uint64_t start = hd_clock_ns();
  memset(kernels, 0, count * sizeof(*kernels));
  for (unsigned i = 0; failures && i < count; i++)
    failures[i] = (hd_failure_t){.code = HD_DIAGNOSTIC_COUNT};
  for (unsigned i = 0; i < count; i++)
    if (!check_params(device, funcs[i], failures ? &failures[i] : NULL))
      return false;
  bool ok = device->ops->load(device, funcs, codes, count, kernels, failures);
  for (unsigned i = 0; !ok && !failures && i < count; i++) {
    if (kernels[i])
      device->ops->unload(device, kernels[i]);
    kernels[i] = NULL;
  }
  device->compile_ns += hd_clock_ns() - start;
  return ok;
}

void hd_device_machine(const hd_device_t *device, hd_machine_t *machine) {
  const hd_device_info_t *info = &device->info;
  if (hd_machine_find(info->target->sm, machine))
    hd_machine_fit(machine, info->sms, info->l2_bytes, info->memory_gbs);
}

void *hd_device_create(size_t size, const hd_device_ops_t *ops,
                       hd_context_t *context,
                       const hd_device_options_t *options) {
  hd_device_t *device = calloc(1, size);
  if (!device) {
    hd_error(&context->diags, nowhere, HD_E0904, "out of memory");
    return NULL;
  }
  device->ops = ops;
  device->context = context;
  device->verbose = options->verbose;
  pthread_mutex_init(&device->lock, NULL);
  return device;
}

void hd_device_destroy(hd_device_t *device) {
  pthread_mutex_destroy(&device->lock);
  free(device);
}
