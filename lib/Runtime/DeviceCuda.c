// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA device. PTX is made kernel by kernel; the driver's linker, where
// most of the time goes, turns it into machine code on all cores (the driver
// holds a lock while it loads PTX, but not while it links).
#include "Runtime/Cache.h"
#include "Runtime/Cuda.h"
#include "Runtime/Device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hd_loc_t nowhere;

typedef struct cuda_device {
  hd_device_t base;
  hd_cuda_t *cuda;
  hd_cu_stream_t stream;
  hd_cu_event_t start, stop;
  hd_thread_pool_t *pool;
  unsigned threads;
  hd_cache_t *cache;
  bool recording;
} cuda_device_t;

typedef struct cuda_kernel {
  hd_kernel_t base;
  hd_cu_module_t module;
  hd_cu_function_t function;
  int static_shared;
  int dynamic_shared; // What the function is allowed so far.
  bool wide_cluster;
} cuda_kernel_t;

struct hd_recording {
  hd_cu_exec_t exec;
};

static cuda_device_t *of(hd_device_t *device) {
  return (cuda_device_t *)device;
}

static hd_diagnostics_t *diags_of(const cuda_device_t *d) {
  return &d->base.context->diags;
}

static bool check(cuda_device_t *d, int error, const char *what) {
  return hd_cuda_check(d->cuda, diags_of(d), error, what);
}

static void close_device(hd_device_t *device) {
  cuda_device_t *d = of(device);
  if (d->cuda) {
    const hd_cuda_driver_t *driver = &d->cuda->driver;
    if (d->start)
      driver->event_destroy(d->start);
    if (d->stop)
      driver->event_destroy(d->stop);
    if (d->stream)
      driver->stream_destroy(d->stream);
  }
  hd_cuda_close(d->cuda);
  hd_thread_pool_destroy(d->pool);
  hd_cache_close(d->cache);
  free(d);
}

static bool alloc_memory(hd_device_t *device, const char *name, size_t bytes,
                         hd_address_t *address) {
  cuda_device_t *d = of(device);
  (void)name;
  // An empty tensor has an address too.
  int error = d->cuda->driver.mem_alloc(address, bytes ? bytes : 1);
  if (error == HD_CU_OUT_OF_MEMORY) {
    size_t free_bytes = 0, total = 0;
    d->cuda->driver.mem_info(&free_bytes, &total);
    return hd_error(diags_of(d), nowhere, HD_E0605, (long long)bytes,
                    (long long)free_bytes);
  }
  if (!check(d, error, "cuMemAlloc"))
    return false;
  device->bytes += bytes;
  if (device->bytes > device->peak_bytes)
    device->peak_bytes = device->bytes;
  return true;
}

static void free_memory(hd_device_t *device, hd_address_t address) {
  of(device)->cuda->driver.mem_free(address);
}

static bool upload(hd_device_t *device, hd_address_t to, const void *from,
                   size_t bytes) {
  cuda_device_t *d = of(device);
  return !bytes || check(d, d->cuda->driver.copy_to_device(to, from, bytes),
                         "cuMemcpyHtoD");
}

static bool download(hd_device_t *device, void *to, hd_address_t from,
                     size_t bytes) {
  cuda_device_t *d = of(device);
  return !bytes || check(d, d->cuda->driver.copy_to_host(to, from, bytes),
                         "cuMemcpyDtoH");
}

static bool fill(hd_device_t *device, hd_address_t to, uint64_t bits,
                 unsigned element_bytes, size_t count) {
  cuda_device_t *d = of(device);
  const hd_cuda_driver_t *driver = &d->cuda->driver;
  if (!count)
    return true;
  switch (element_bytes) {
  case 1:
    return check(d, driver->set_8(to, (unsigned char)bits, count, d->stream),
                 "cuMemsetD8Async");
  case 2:
    return check(d, driver->set_16(to, (unsigned short)bits, count, d->stream),
                 "cuMemsetD16Async");
  case 4:
    return check(d, driver->set_32(to, (unsigned)bits, count, d->stream),
                 "cuMemsetD32Async");
  default: // The halves of each 8 bytes, one after the other.
    return check(d,
                 driver->set_32_pitched(to, 8, (unsigned)bits, 1, count,
                                        d->stream),
                 "cuMemsetD2D32Async") &&
           check(d,
                 driver->set_32_pitched(to + 4, 8, (unsigned)(bits >> 32), 1,
                                        count, d->stream),
                 "cuMemsetD2D32Async");
  }
}

// Compiling: PTX by this thread, machine code by the pool.
typedef struct job {
  const hd_func_t *func;
  hd_buffer_t ptx, cubin;
  hd_cache_key_t key;
  bool cached, ok;
} job_t;

typedef struct jobs {
  cuda_device_t *device;
  job_t *jobs;
} jobs_t;

static void link_piece(void *argument, unsigned piece, unsigned worker) {
  (void)worker;
  const jobs_t *jobs = argument;
  cuda_device_t *d = jobs->device;
  job_t *job = &jobs->jobs[piece];
  if (job->cached || !hd_cuda_enter(d->cuda, diags_of(d)))
    return;
  // PTX of an older target becomes code of this GPU all the same.
  int target = d->base.info.target->sm;
  job->ok = hd_cuda_link(d->cuda, diags_of(d), job->func->name,
                         target > 120 ? target : d->cuda->sm,
                         hd_buffer_text(&job->ptx), job->ptx.size, &job->cubin);
  if (job->ok)
    hd_cache_put(d->cache, job->key, &job->cubin);
}

static bool make_ptx(cuda_device_t *d, hd_module_t *module, job_t *job) {
  hd_codegen_options_t options = {.target = d->base.info.target};
  if (!hd_codegen_ptx(module, job->func, &options, &job->ptx))
    return false;
  char salt[64];
  snprintf(salt, sizeof(salt), "cubin %d %d", d->cuda->sm, d->cuda->version);
  job->key = hd_cache_key(salt, hd_buffer_text(&job->ptx), job->ptx.size);
  job->cached = job->ok = hd_cache_get(d->cache, job->key, &job->cubin);
  return true;
}

static bool read_attributes(cuda_device_t *d, cuda_kernel_t *k) {
  const hd_cuda_driver_t *driver = &d->cuda->driver;
  const struct {
    int attribute, *value;
  } rows[] = {
      {HD_CU_FUNCTION_REGISTERS, &k->base.registers},
      {HD_CU_FUNCTION_LOCAL_BYTES, &k->base.local_bytes},
      {HD_CU_FUNCTION_MAX_THREADS, &k->base.max_threads},
      {HD_CU_FUNCTION_SHARED_BYTES, &k->static_shared},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    if (!check(d,
               driver->function_attribute(rows[i].value, rows[i].attribute,
                                          k->function),
               "cuFuncGetAttribute"))
      return false;
  return true;
}

static void unload(hd_device_t *device, hd_kernel_t *kernel) {
  cuda_kernel_t *k = (cuda_kernel_t *)kernel;
  if (!k)
    return;
  if (k->module)
    of(device)->cuda->driver.module_unload(k->module);
  free(k);
}

static hd_kernel_t *load_cubin(cuda_device_t *d, const job_t *job) {
  cuda_kernel_t *k = calloc(1, sizeof(*k));
  char what[160];
  snprintf(what, sizeof(what), "loading kernel '%.100s'", job->func->name);
  if (!k) {
    hd_error(diags_of(d), nowhere, HD_E0904, "out of memory");
    return NULL;
  }
  k->base.func = job->func;
  k->base.code_bytes = job->cubin.size;
  const hd_cuda_driver_t *driver = &d->cuda->driver;
  if (check(d, driver->module_load(&k->module, hd_buffer_text(&job->cubin)),
            what) &&
      check(d,
            driver->module_function(&k->function, k->module, job->func->name),
            what) &&
      read_attributes(d, k)) {
    if (d->base.verbose)
      fprintf(
          stderr,
          "%s: %d registers, %d bytes of local memory, %zu bytes of code%s\n",
          job->func->name, k->base.registers, k->base.local_bytes,
          job->cubin.size, job->cached ? " (from the cache)" : "");
    return &k->base;
  }
  unload(&d->base, &k->base);
  return NULL;
}

static bool load_all(cuda_device_t *d, hd_module_t *module, job_t *jobs,
                     unsigned count, hd_kernel_t **kernels) {
  for (unsigned i = 0; i < count; i++)
    if (!make_ptx(d, module, &jobs[i]))
      return false;
  unsigned missing = 0;
  for (unsigned i = 0; i < count; i++)
    missing += !jobs[i].cached;
  if (missing > 1 && !d->pool)
    d->pool = hd_thread_pool_create(d->threads);
  jobs_t argument = {d, jobs};
  hd_thread_pool_run(missing > 1 ? d->pool : NULL, count, link_piece,
                     &argument);
  for (unsigned i = 0; i < count; i++) {
    kernels[i] = jobs[i].ok ? load_cubin(d, &jobs[i]) : NULL;
    if (!kernels[i])
      return false;
  }
  return true;
}

static bool load(hd_device_t *device, hd_module_t *module,
                 const hd_func_t *const *funcs, unsigned count,
                 hd_kernel_t **kernels) {
  cuda_device_t *d = of(device);
  uint64_t start = hd_clock_ns();
  job_t *jobs = calloc(count ? count : 1, sizeof(*jobs));
  if (!jobs)
    return hd_error(diags_of(d), nowhere, HD_E0904, "out of memory");
  memset(kernels, 0, count * sizeof(*kernels));
  for (unsigned i = 0; i < count; i++)
    jobs[i].func = funcs[i];
  bool ok = load_all(d, module, jobs, count, kernels);
  for (unsigned i = 0; i < count; i++) {
    hd_buffer_fini(&jobs[i].ptx);
    hd_buffer_fini(&jobs[i].cubin);
    if (!ok) {
      unload(device, kernels[i]);
      kernels[i] = NULL;
    }
  }
  free(jobs);
  device->compile_ns += hd_clock_ns() - start;
  return ok;
}

// Shared memory past 48 KiB and clusters past 8 blocks are asked for.
static bool allow(cuda_device_t *d, cuda_kernel_t *k,
                  const hd_kernel_launch_t *launch, unsigned cluster) {
  const hd_cuda_driver_t *driver = &d->cuda->driver;
  if (launch->shared_bytes > k->dynamic_shared) {
    k->dynamic_shared = (int)launch->shared_bytes;
    if (!check(d,
               driver->function_set(k->function,
                                    HD_CU_FUNCTION_MAX_DYNAMIC_SHARED,
                                    k->dynamic_shared),
               "setting the kernel's shared memory"))
      return false;
  }
  if (cluster > 8 && !k->wide_cluster) {
    k->wide_cluster = true;
    return check(d,
                 driver->function_set(k->function,
                                      HD_CU_FUNCTION_NON_PORTABLE_CLUSTER, 1),
                 "asking for a large cluster");
  }
  return true;
}

static bool report_launch(cuda_device_t *d, const cuda_kernel_t *k,
                          const hd_kernel_launch_t *launch, int error) {
  char text[400], meaning[200];
  int threads = launch->block[0] * launch->block[1] * launch->block[2];
  hd_cuda_error_text(d->cuda, error, meaning, sizeof(meaning));
  snprintf(
      text, sizeof(text),
      "%s; %d threads a block, %d registers a thread, %lld bytes of shared "
      "memory",
      meaning, threads, k->base.registers,
      (long long)launch->shared_bytes + k->static_shared);
  return hd_error(diags_of(d), nowhere, HD_E0606, k->base.func->name, text);
}

static bool wait_for(cuda_device_t *d, const char *kernel) {
  int error = d->cuda->driver.stream_wait(d->stream);
  if (!error)
    return true;
  char text[256];
  return hd_error(diags_of(d), nowhere, HD_E0607, kernel,
                  hd_cuda_error_text(d->cuda, error, text, sizeof(text)));
}

static bool launch_kernel(hd_device_t *device, hd_kernel_t *kernel,
                          const hd_kernel_launch_t *launch) {
  cuda_device_t *d = of(device);
  cuda_kernel_t *k = (cuda_kernel_t *)kernel;
  unsigned cluster = 1;
  hd_cu_launch_attribute_t attribute = {.id = HD_CU_LAUNCH_CLUSTER};
  attribute.value.cluster.x = (unsigned)launch->cluster[0];
  attribute.value.cluster.y = (unsigned)launch->cluster[1];
  attribute.value.cluster.z = (unsigned)launch->cluster[2];
  hd_cu_launch_t config = {.shared_bytes = (unsigned)launch->shared_bytes,
                           .stream = d->stream,
                           .attributes = &attribute};
  for (int i = 0; i < 3; i++) {
    config.grid[i] = (unsigned)launch->grid[i];
    config.block[i] = (unsigned)launch->block[i];
    cluster *= (unsigned)launch->cluster[i];
  }
  config.num_attributes = cluster > 1;
  if (!allow(d, k, launch, cluster))
    return false;
  // The driver reads the arguments; its type lacks the const.
  void *args[256];
  if (k->base.func->num_params > 256)
    return hd_error(diags_of(d), nowhere, HD_E0606, k->base.func->name,
                    "it has more than 256 parameters");
  memcpy(args, launch->args, k->base.func->num_params * sizeof(*args));
  int error = d->cuda->driver.launch(&config, k->function, args, NULL);
  if (error)
    return report_launch(d, k, launch, error);
  return d->recording || wait_for(d, k->base.func->name);
}

static bool record_begin(hd_device_t *device) {
  cuda_device_t *d = of(device);
  const hd_cuda_driver_t *driver = &d->cuda->driver;
  if (!d->start &&
      (!check(d, driver->event_create(&d->start, 0), "cuEventCreate") ||
       !check(d, driver->event_create(&d->stop, 0), "cuEventCreate")))
    return false;
  d->recording =
      check(d, driver->capture_begin(d->stream, HD_CU_CAPTURE_THREAD_LOCAL),
            "cuStreamBeginCapture");
  return d->recording;
}

static hd_recording_t *record_end(hd_device_t *device) {
  cuda_device_t *d = of(device);
  const hd_cuda_driver_t *driver = &d->cuda->driver;
  hd_cu_graph_t graph = NULL;
  d->recording = false;
  bool ok =
      check(d, driver->capture_end(d->stream, &graph), "cuStreamEndCapture");
  hd_recording_t *recording = ok ? calloc(1, sizeof(*recording)) : NULL;
  ok = recording &&
       check(d, driver->graph_instantiate(&recording->exec, graph, 0),
             "cuGraphInstantiate");
  if (graph)
    driver->graph_destroy(graph);
  if (ok)
    return recording;
  free(recording);
  return NULL;
}

static bool replay(hd_device_t *device, hd_recording_t *recording, double *ms,
                   double *host_us) {
  cuda_device_t *d = of(device);
  const hd_cuda_driver_t *driver = &d->cuda->driver;
  float elapsed = 0;
  if (!check(d, driver->event_record(d->start, d->stream), "cuEventRecord"))
    return false;
  uint64_t start = hd_clock_ns();
  int error = driver->graph_launch(recording->exec, d->stream);
  *host_us = (double)(hd_clock_ns() - start) * 1e-3;
  if (!check(d, error, "cuGraphLaunch") ||
      !check(d, driver->event_record(d->stop, d->stream), "cuEventRecord") ||
      !check(d, driver->event_wait(d->stop), "running the recorded launches") ||
      !check(d, driver->event_elapsed(&elapsed, d->start, d->stop),
             "cuEventElapsedTime"))
    return false;
  *ms = (double)elapsed;
  return true;
}

static void recording_free(hd_device_t *device, hd_recording_t *recording) {
  of(device)->cuda->driver.exec_destroy(recording->exec);
  free(recording);
}

static const hd_device_ops_t ops = {
    .kind = "cuda",
    .close = close_device,
    .alloc = alloc_memory,
    .free = free_memory,
    .upload = upload,
    .download = download,
    .fill = fill,
    .load = load,
    .unload = unload,
    .launch = launch_kernel,
    .record_begin = record_begin,
    .record_end = record_end,
    .replay = replay,
    .recording_free = recording_free,
};

// PTX for sm_90a is for 9.0 alone; other PTX is for its architecture and all
// later ones.
static bool settle_target(cuda_device_t *d, const hd_target_t *wanted) {
  int sm = d->cuda->sm;
  char name[32];
  snprintf(name, sizeof(name), sm == 90 ? "sm_90a" : "sm_%d", sm);
  const hd_target_t *target = wanted ? wanted : hd_target_find(name);
  // A GPU that is newer than we are runs what the last one did.
  for (size_t i = 0; !target && sm > 90 && hd_target_get(i); i++)
    if (hd_target_get(i)->sm == 90)
      target = hd_target_get(i);
  if (!target)
    return hd_error(diags_of(d), nowhere, HD_E0502, name, "");
  bool fits = target->sm > 120 ? target->sm / 10 == sm : target->sm <= sm;
  if (target->arch != HD_ARCH_NVPTX || !fits) {
    snprintf(name, sizeof(name), "sm_%d", sm);
    return hd_error(diags_of(d), nowhere, HD_E0610, target->name, name);
  }
  d->base.info.target = target;
  return true;
}

static bool init(cuda_device_t *d, int ordinal,
                 const hd_device_options_t *options) {
  d->cuda = hd_cuda_open(diags_of(d), ordinal);
  if (!d->cuda || !settle_target(d, options->target))
    return false;
  hd_device_info_t *info = &d->base.info;
  memcpy(info->name, d->cuda->name, sizeof(info->name));
  info->sms = d->cuda->sms;
  info->l2_bytes = d->cuda->l2_bytes;
  info->max_shared_bytes = d->cuda->max_shared_bytes;
  d->threads = options->threads;
  if (options->cache_dir)
    d->cache = hd_cache_open(options->cache_dir);
  return check(d,
               d->cuda->driver.stream_create(&d->stream, HD_CU_STREAM_DEFAULT),
               "cuStreamCreate");
}

hd_device_t *hd_device_open_cuda(hd_context_t *context, int ordinal,
                                 const hd_device_options_t *options) {
  cuda_device_t *d = calloc(1, sizeof(*d));
  if (!d) {
    hd_error(&context->diags, nowhere, HD_E0904, "out of memory");
    return NULL;
  }
  d->base.ops = &ops;
  d->base.context = context;
  d->base.verbose = options->verbose;
  if (init(d, ordinal, options))
    return &d->base;
  close_device(&d->base);
  return NULL;
}
