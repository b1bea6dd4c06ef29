// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a device is given before anything is on it: memory, and a cache.
#include "Runtime/Cache.h"
#include "Tools/Api.h"
#include "Tools/Options.h"
#include "hidet/Device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct allocator_call {
  hidet_device_t *device;
  hd_allocator_t allocator;
} allocator_call_t;

static void set_allocator(void *argument) {
  allocator_call_t *call = argument;
  hidet_device_t *device = call->device;
  if (device->users > 1 || device->device->memory)
    hd_api_fail(&device->own, "an allocator is set before memory is taken");
  else
    device->device->allocator = call->allocator;
}

hidet_status_t hidet_device_set_allocator(hidet_device_t *device,
                                          hidet_allocate_t allocate,
                                          hidet_release_t release,
                                          void *argument) {
  if (!device || !allocate || !release)
    return hd_api_needs();
  allocator_call_t call = {device, {allocate, release, argument}};
  return hd_api_call(&device->own, set_allocator, &call);
}

typedef struct cache_call {
  hidet_device_t *device;
  const char *folder;
  int64_t bytes;
} cache_call_t;

// Nobody has asked for a folder that is found by itself: where it cannot be,
// that is said, and there is no cache.
static void open_cache(hidet_device_t *device, const char *folder,
                       bool is_given, int64_t bytes) {
  hd_diagnostics_t *diags = &device->own.context.diags;
  if (!hd_cache_may_be(folder)) {
    if (is_given)
      hd_error(diags, (hd_loc_t){0}, HD_E0802, folder, strerror(errno));
    else
      hd_warning(diags, (hd_loc_t){0}, "nothing is kept in '%s': %s", folder,
                 strerror(errno));
    return;
  }
  device->device->cache = hd_cache_open(folder, bytes);
  if (!device->device->cache)
    hd_budget_exhausted(&device->own.context.budget, HD_EXHAUSTED_MEMORY);
}

static void set_cache(void *argument) {
  cache_call_t *call = argument;
  hidet_device_t *device = call->device;
  int64_t bytes = call->bytes;
  if (device->users > 1 || device->device->peak_bytes || device->device->cache)
    hd_api_fail(&device->own, "a cache is set once, before memory is taken");
  else if (bytes < 0 || (!bytes && !hd_parse_cache_size(&bytes)))
    hd_api_fail(&device->own, "$HIDET_CACHE_SIZE, or what is given in its "
                              "place, is no size such as 512M");
  else if (bytes && device->keeps) {
    char *own = call->folder ? NULL : hd_cache_default_dir();
    if (call->folder || own)
      open_cache(device, call->folder ? call->folder : own, call->folder,
                 bytes);
    free(own);
  }
}

hidet_status_t hidet_device_set_cache(hidet_device_t *device,
                                      const char *folder, int64_t max_bytes) {
  if (!device)
    return hd_api_needs();
  cache_call_t call = {device, folder, max_bytes};
  return hd_api_call(&device->own, set_cache, &call);
}
