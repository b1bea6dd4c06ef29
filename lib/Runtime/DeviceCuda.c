// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA device: its memory, and how it is opened.
#include "Runtime/DeviceCuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hd_loc_t nowhere;

// The driver's error. An empty tensor has an address too.
static int take_memory(hd_cuda_device_t *d, size_t bytes,
                       hd_address_t *address) {
  const hd_allocator_t *allocator = &d->base.allocator;
  if (!allocator->allocate)
    return d->cuda->driver.mem_alloc(address, bytes ? bytes : 1);
  *address =
      (uintptr_t)allocator->allocate(allocator->argument, bytes ? bytes : 1);
  return *address ? HD_CU_SUCCESS : HD_CU_OUT_OF_MEMORY;
}

static void give_memory(hd_cuda_device_t *d, const hd_allocator_t *from,
                        hd_address_t address, size_t bytes) {
  if (from->release)
    from->release(from->argument, (void *)(uintptr_t)address,
                  bytes ? bytes : 1);
  else
    d->cuda->driver.mem_free(address);
}

static bool alloc_memory(hd_device_t *device, const char *name, size_t bytes,
                         hd_address_t *address) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  (void)name;
  int error = take_memory(d, bytes, address);
  if (error == HD_CU_OUT_OF_MEMORY && device->reclaim &&
      device->reclaim(device->reclaim_argument))
    error = take_memory(d, bytes, address);
  if (error == HD_CU_OUT_OF_MEMORY) {
    size_t free_bytes = 0, total = 0;
    d->cuda->driver.mem_info(&free_bytes, &total);
    return hd_error(hd_cuda_diags(d), nowhere, HD_E0605, (long long)bytes,
                    (long long)free_bytes);
  }
  if (!hd_cuda_device_check(d, error, "cuMemAlloc"))
    return false;
  if (hd_device_remember(device, *address, bytes))
    return true;
  give_memory(d, &device->allocator, *address, bytes);
  return false;
}

static void free_memory(hd_device_t *device, hd_address_t address) {
  hd_memory_t memory;
  if (hd_device_forget(device, address, &memory))
    give_memory(hd_cuda_device_of(device), &memory.from, address, memory.bytes);
}

static void close_device(hd_device_t *device) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  if (d->cuda) {
    const hd_cuda_driver_t *driver = &d->cuda->driver;
    bool entered;
    hd_cuda_enter(d->cuda, hd_cuda_diags(d), &entered);
    while (device->memory)
      free_memory(device, device->memory->address);
    if (d->start)
      driver->event_destroy(d->start);
    if (d->stop)
      driver->event_destroy(d->stop);
    if (d->order)
      driver->event_destroy(d->order);
    if (d->stream)
      driver->stream_destroy(d->stream);
    hd_cuda_leave(d->cuda, entered);
  }
  if (d->first == d) {
    hd_cuda_close(d->cuda);
    hd_thread_pool_destroy(d->pool);
    hd_cache_close(device->cache);
  }
  pthread_mutex_destroy(&d->lock);
  free(d->nodes);
  hd_device_destroy(device);
}

static bool upload(hd_device_t *device, hd_address_t to, const void *from,
                   size_t bytes) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  return !bytes || hd_cuda_device_check(
                       d, d->cuda->driver.copy_to_device(to, from, bytes),
                       "cuMemcpyHtoD");
}

static bool download(hd_device_t *device, void *to, hd_address_t from,
                     size_t bytes) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  return !bytes ||
         hd_cuda_device_check(d, d->cuda->driver.copy_to_host(to, from, bytes),
                              "cuMemcpyDtoH");
}

static bool fill(hd_device_t *device, hd_address_t to, uint64_t bits,
                 unsigned element_bytes, size_t count) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  const hd_cuda_driver_t *driver = &d->cuda->driver;
  if (!count)
    return true;
  switch (element_bytes) {
  case 1:
    return hd_cuda_device_check(
        d, driver->set_8(to, (unsigned char)bits, count, d->stream),
        "cuMemsetD8Async");
  case 2:
    return hd_cuda_device_check(
        d, driver->set_16(to, (unsigned short)bits, count, d->stream),
        "cuMemsetD16Async");
  case 4:
    return hd_cuda_device_check(
        d, driver->set_32(to, (unsigned)bits, count, d->stream),
        "cuMemsetD32Async");
  default: // The halves of each 8 bytes, one after the other.
    return hd_cuda_device_check(d,
                                driver->set_32_pitched(to, 8, (unsigned)bits, 1,
                                                       count, d->stream),
                                "cuMemsetD2D32Async") &&
           hd_cuda_device_check(d,
                                driver->set_32_pitched(to + 4, 8,
                                                       (unsigned)(bits >> 32),
                                                       1, count, d->stream),
                                "cuMemsetD2D32Async");
  }
}

static bool copy(hd_device_t *device, hd_address_t to, hd_address_t from,
                 size_t bytes, void *stream) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  return !bytes ||
         hd_cuda_device_check(d, d->cuda->driver.copy(to, from, bytes, stream),
                              "cuMemcpyAsync");
}

static bool follow(hd_device_t *device, void *after, void *stream) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  const hd_cuda_driver_t *driver = &d->cuda->driver;
  if (!d->order &&
      !hd_cuda_device_check(
          d, driver->event_create(&d->order, HD_CU_EVENT_WITHOUT_TIME),
          "cuEventCreate"))
    return false;
  return hd_cuda_device_check(d, driver->event_record(d->order, after),
                              "cuEventRecord") &&
         hd_cuda_device_check(d, driver->stream_follow(stream, d->order, 0),
                              "cuStreamWaitEvent");
}

static bool captures(hd_device_t *device, void *stream, bool *captures) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  const hd_cu_node_t *last;
  hd_cu_graph_t graph;
  uint64_t id;
  size_t num_last;
  int status = 0;
  // The default stream cannot be captured, nor asked while others are.
  bool ok = !stream || hd_cuda_device_check(
                           d,
                           d->cuda->driver.capture_info(
                               stream, &status, &id, &graph, &last, &num_last),
                           "cuStreamGetCaptureInfo");
  *captures = status != 0;
  return ok;
}

static void join(hd_device_t *device, void *stream) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  if (d->own)
    d->stream = d->own;
  d->own = stream ? d->stream : NULL;
  if (stream)
    d->stream = stream;
}

static bool wait(hd_device_t *device, void *stream) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  return hd_cuda_device_check(d, d->cuda->driver.stream_wait(stream),
                              "running what was enqueued");
}

static bool make_stream(hd_cuda_device_t *d) {
  bool entered;
  bool ok =
      hd_cuda_enter(d->cuda, hd_cuda_diags(d), &entered) &&
      hd_cuda_device_check(
          d, d->cuda->driver.stream_create(&d->stream, HD_CU_STREAM_DEFAULT),
          "cuStreamCreate");
  hd_cuda_leave(d->cuda, entered);
  return ok;
}

static hd_device_t *fork_device(hd_device_t *device, hd_context_t *context) {
  hd_cuda_device_t *of = hd_cuda_device_of(device);
  hd_device_options_t options = {.verbose = device->verbose};
  hd_cuda_device_t *d =
      hd_device_create(sizeof(*d), device->ops, context, &options);
  if (!d)
    return NULL;
  pthread_mutex_init(&d->lock, NULL);
  d->base.info = device->info;
  d->base.first = device;
  d->first = of->first;
  d->base.allocator = device->allocator;
  d->cuda = of->cuda;
  d->base.cache = device->cache;
  if (make_stream(d))
    return &d->base;
  close_device(&d->base);
  return NULL;
}

// --- In the device's context ---

// A row of the table whose work is done by a function of the same parameters,
// with the context current.
#define IN_CONTEXT(row, work, parameters, arguments)                           \
  static bool row parameters {                                                 \
    hd_cuda_device_t *d = hd_cuda_device_of(device);                           \
    bool entered;                                                              \
    bool ok =                                                                  \
        hd_cuda_enter(d->cuda, hd_cuda_diags(d), &entered) && work arguments;  \
    hd_cuda_leave(d->cuda, entered);                                           \
    return ok;                                                                 \
  }
// One that gives nothing back.
#define ENDS_IN_CONTEXT(row, work, parameters, arguments)                      \
  static void row parameters {                                                 \
    hd_cuda_device_t *d = hd_cuda_device_of(device);                           \
    bool entered;                                                              \
    if (hd_cuda_enter(d->cuda, hd_cuda_diags(d), &entered))                    \
      work arguments;                                                          \
    hd_cuda_leave(d->cuda, entered);                                           \
  }

// clang-format off
IN_CONTEXT(alloc_row, alloc_memory,
           (hd_device_t *device, const char *name, size_t bytes, hd_address_t *address),
           (device, name, bytes, address))
ENDS_IN_CONTEXT(free_row, free_memory,
                (hd_device_t *device, hd_address_t address), (device, address))
IN_CONTEXT(upload_row, upload,
           (hd_device_t *device, hd_address_t to, const void *from, size_t bytes),
           (device, to, from, bytes))
IN_CONTEXT(download_row, download,
           (hd_device_t *device, void *to, hd_address_t from, size_t bytes),
           (device, to, from, bytes))
IN_CONTEXT(fill_row, fill,
           (hd_device_t *device, hd_address_t to, uint64_t bits, unsigned element_bytes, size_t count),
           (device, to, bits, element_bytes, count))
ENDS_IN_CONTEXT(unload_row, hd_cuda_unload,
                (hd_device_t *device, hd_kernel_t *kernel), (device, kernel))
IN_CONTEXT(fits_row, hd_cuda_fits,
           (hd_device_t *device, hd_kernel_t *kernel, const hd_kernel_launch_t *launch),
           (device, kernel, launch))
IN_CONTEXT(launch_row, hd_cuda_launch,
           (hd_device_t *device, hd_kernel_t *kernel, const hd_kernel_launch_t *launch),
           (device, kernel, launch))
IN_CONTEXT(record_begin_row, hd_cuda_record_begin, (hd_device_t *device), (device))
IN_CONTEXT(replay_row, hd_cuda_replay,
           (hd_device_t *device, hd_recording_t *recording, double *ms, double *host_us),
           (device, recording, ms, host_us))
ENDS_IN_CONTEXT(recording_free_row, hd_cuda_recording_free,
                (hd_device_t *device, hd_recording_t *recording), (device, recording))
IN_CONTEXT(update_row, hd_cuda_update,
           (hd_device_t *device, hd_recording_t *recording, size_t n, hd_kernel_t *kernel, const hd_kernel_launch_t *launch),
           (device, recording, n, kernel, launch))
IN_CONTEXT(enqueue_row, hd_cuda_enqueue,
           (hd_device_t *device, hd_recording_t *recording, void *stream),
           (device, recording, stream))
IN_CONTEXT(copy_row, copy,
           (hd_device_t *device, hd_address_t to, hd_address_t from, size_t bytes, void *stream),
           (device, to, from, bytes, stream))
IN_CONTEXT(follow_row, follow,
           (hd_device_t *device, void *after, void *stream), (device, after, stream))
IN_CONTEXT(captures_row, captures,
           (hd_device_t *device, void *stream, bool *does), (device, stream, does))
IN_CONTEXT(wait_row, wait, (hd_device_t *device, void *stream), (device, stream))
// clang-format on

static hd_recording_t *record_end_row(hd_device_t *device) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  bool entered;
  d->recording = false;
  hd_recording_t *recording = hd_cuda_enter(d->cuda, hd_cuda_diags(d), &entered)
                                  ? hd_cuda_record_end(device)
                                  : NULL;
  hd_cuda_leave(d->cuda, entered);
  return recording;
}

static void describe_code(hd_device_t *device, hd_buffer_t *out) {
  const hd_cuda_t *cuda = hd_cuda_device_of(device)->cuda;
  hd_buffer_printf(out, "sm_%d, driver %d", cuda->sm, cuda->version);
}

static const hd_device_ops_t ops = {
    .kind = "cuda",
    .describe = describe_code,
    .close = close_device,
    .fork = fork_device,
    .alloc = alloc_row,
    .free = free_row,
    .upload = upload_row,
    .download = download_row,
    .fill = fill_row,
    .make = hd_cuda_make,
    .load = hd_cuda_load,
    .unload = unload_row,
    .fits = fits_row,
    .launch = launch_row,
    .record_begin = record_begin_row,
    .record_end = record_end_row,
    .replay = replay_row,
    .recording_free = recording_free_row,
    .enqueue = enqueue_row,
    .update = update_row,
    .copy = copy_row,
    .captures = captures_row,
    .join = join,
    .follow = follow_row,
    .wait = wait_row,
};

// PTX for sm_90a is for 9.0 alone; other PTX is for its architecture and all
// later ones.
static bool settle_target(hd_cuda_device_t *d, const hd_target_t *wanted) {
  int sm = d->cuda->sm;
  char name[32];
  snprintf(name, sizeof(name), sm == 90 ? "sm_90a" : "sm_%d", sm);
  const hd_target_t *target = wanted ? wanted : hd_target_find(name);
  // A GPU that is newer than we are runs what the last one did.
  for (size_t i = 0; !target && sm > 90 && hd_target_get(i); i++)
    if (hd_target_get(i)->sm == 90)
      target = hd_target_get(i);
  if (!target)
    return hd_error(hd_cuda_diags(d), nowhere, HD_E0502, name, "");
  bool fits = target->sm > 120 ? target->sm / 10 == sm : target->sm <= sm;
  if (target->arch != HD_ARCH_NVPTX || !fits) {
    snprintf(name, sizeof(name), "sm_%d", sm);
    return hd_error(hd_cuda_diags(d), nowhere, HD_E0610, target->name, name);
  }
  d->base.info.target = target;
  return true;
}

// A start of the driver takes a quarter of a second, whatever is run then.
static bool open_driver(hd_cuda_device_t *d, int ordinal) {
  hd_times_t *times = &d->base.context->times;
  size_t part = hd_times_enter(times, "driver");
  d->cuda = hd_cuda_open(hd_cuda_diags(d), ordinal);
  bool ok = d->cuda && make_stream(d);
  hd_times_leave(times, part);
  return ok;
}

static bool init(hd_cuda_device_t *d, int ordinal,
                 const hd_device_options_t *options) {
  if (!open_driver(d, ordinal) || !settle_target(d, options->target))
    return false;
  hd_device_info_t *info = &d->base.info;
  memcpy(info->name, d->cuda->name, sizeof(info->name));
  info->sms = d->cuda->sms;
  info->l2_bytes = d->cuda->l2_bytes;
  info->memory_gbs = d->cuda->memory_gbs;
  info->max_shared_bytes = d->cuda->max_shared_bytes;
  d->threads = options->threads;
  if (options->cache_dir)
    d->base.cache = hd_cache_open(options->cache_dir, options->cache_bytes);
  return true;
}

hd_device_t *hd_device_open_cuda(hd_context_t *context, int ordinal,
                                 const hd_device_options_t *options) {
  hd_cuda_device_t *d = hd_device_create(sizeof(*d), &ops, context, options);
  if (!d)
    return NULL;
  pthread_mutex_init(&d->lock, NULL);
  d->first = d;
  if (init(d, ordinal, options))
    return &d->base;
  close_device(&d->base);
  return NULL;
}
