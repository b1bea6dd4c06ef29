// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels on the CUDA device: they are compiled and loaded, each a job of the
// pool, and launched. Most of the time goes to the driver's linker, and to its
// compiler where it loads PTX: neither holds a lock (loading a module would).
#include "IR/Generic.h"
#include "Runtime/Compile.h"
#include "Runtime/DeviceCuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hd_loc_t nowhere;

typedef struct cuda_kernel {
  hd_kernel_t base;
  hd_cu_library_t library;
  hd_cu_function_t function;
  int static_shared;
  pthread_mutex_t lock;      // Of the two below, which only grow.
  atomic_int dynamic_shared; // What the function is allowed so far.
  atomic_bool wide_cluster;
} cuda_kernel_t;

static bool read_attributes(const hd_cuda_t *cuda, hd_diagnostics_t *diags,
                            cuda_kernel_t *k) {
  const struct {
    int attribute, *value;
  } rows[] = {
      {HD_CU_FUNCTION_REGISTERS, &k->base.registers},
      {HD_CU_FUNCTION_LOCAL_BYTES, &k->base.local_bytes},
      {HD_CU_FUNCTION_MAX_THREADS, &k->base.max_threads},
      {HD_CU_FUNCTION_SHARED_BYTES, &k->static_shared},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    if (!hd_cuda_check(cuda, diags,
                       cuda->driver.function_attribute(
                           rows[i].value, rows[i].attribute, k->function),
                       "cuFuncGetAttribute"))
      return false;
  return true;
}

void hd_cuda_unload(hd_device_t *device, hd_kernel_t *kernel) {
  cuda_kernel_t *k = (cuda_kernel_t *)kernel;
  if (!k)
    return;
  if (k->library)
    hd_cuda_device_of(device)->cuda->driver.library_unload(k->library);
  pthread_mutex_destroy(&k->lock);
  hd_buffer_fini(&k->base.kept);
  free(k);
}

static cuda_kernel_t *create_kernel(const hd_func_t *func) {
  cuda_kernel_t *k = calloc(1, sizeof(*k));
  if (!k)
    return NULL;
  pthread_mutex_init(&k->lock, NULL);
  k->base.func = func;
  // The maps, which need not begin where the room does, then the arguments.
  k->base.room_bytes = (func->num_maps + 1) * sizeof(hd_cu_map_t) +
                       (func->num_params + func->num_maps) * sizeof(void *);
  return k;
}

static hd_cu_map_t *maps_of(const hd_kernel_launch_t *launch) {
  uintptr_t align = _Alignof(hd_cu_map_t);
  char *room = launch->room;
  return (void *)(room + (align - (uintptr_t)room % align) % align);
}

static void **arguments_of(const hd_kernel_launch_t *launch) {
  return (void *)(maps_of(launch) + launch->num_maps);
}

static bool find_function(const hd_cuda_t *cuda, hd_diagnostics_t *diags,
                          cuda_kernel_t *k) {
  const hd_func_t *func = k->base.func;
  const char *symbol = k->base.code.symbol;
  char what[160];
  hd_cu_kernel_t kernel;
  hd_arena_t scratch;
  snprintf(what, sizeof(what), "loading kernel '%.100s'", func->name);
  hd_arena_init(&scratch, NULL);
  if (!symbol)
    symbol = hd_func_symbol(&scratch, func);
  int error = cuda->driver.library_kernel(&kernel, k->library, symbol);
  hd_arena_fini(&scratch);
  if (!error)
    error = cuda->driver.kernel_function(&k->function, kernel);
  return hd_cuda_check(cuda, diags, error, what) &&
         read_attributes(cuda, diags, k);
}

static hd_kernel_t *load_image(hd_cuda_device_t *d, hd_diagnostics_t *diags,
                               const hd_func_t *func, hd_code_t code) {
  cuda_kernel_t *k = create_kernel(func);
  if (!k) {
    hd_error(diags, nowhere, HD_E0904, "out of memory");
    return NULL;
  }
  k->base.code = code;
  bool entered;
  bool ok =
      hd_cuda_enter(d->cuda, diags, &entered) &&
      hd_cuda_load_code(d->cuda, diags, func->name, code.data, &k->library) &&
      find_function(d->cuda, diags, k);
  if (!ok)
    hd_cuda_unload(&d->base, &k->base);
  hd_cuda_leave(d->cuda, entered);
  return ok ? &k->base : NULL;
}

typedef struct loads {
  hd_cuda_device_t *device;
  const hd_func_t *const *funcs;
  const hd_code_t *given; // No data, or NULL: code is made.
  hd_cuda_code_t *made;
  unsigned count;
  hd_kernel_t **kernels;
} loads_t;

static void end_loads(void *argument) {
  const loads_t *l = argument;
  for (unsigned i = 0; i < l->count; i++)
    hd_buffer_fini(&l->made[i].image);
  free(l->made);
}

// The kernel keeps the code, if that is nobody else's.
static bool load_piece(void *argument, unsigned piece, hd_module_t *module) {
  const loads_t *l = argument;
  hd_times_t *times = &module->context->times;
  hd_cuda_code_t *made = &l->made[piece];
  bool is_given = l->given && l->given[piece].data;
  times->label = l->funcs[piece]->name;
  if (is_given)
    made->origin = HD_CUDA_GIVEN;
  else if (!hd_cuda_compile(l->device, module, l->funcs[piece], made))
    return false;
  hd_code_t code = is_given ? l->given[piece]
                            : (hd_code_t){hd_buffer_text(&made->image),
                                          made->image.size, NULL};
  size_t part = hd_times_enter(times, "load");
  hd_kernel_t *k =
      load_image(l->device, &module->context->diags, l->funcs[piece], code);
  hd_times_leave(times, part);
  if (k && !is_given) {
    k->kept = made->image;
    made->image = (hd_buffer_t){0};
  }
  l->kernels[piece] = k;
  return k != NULL;
}

static void print_loads(const loads_t *l) {
  static const char *const origins[] = {"", " (machine code from the cache)",
                                        " (from the cache)",
                                        " (given with its plan)"};
  for (unsigned i = 0; i < l->count; i++) {
    const hd_kernel_t *k = l->kernels[i];
    fprintf(stderr,
            "%s: %d registers, %d bytes of local memory, %zu bytes of code%s\n",
            l->funcs[i]->name, k->registers, k->local_bytes, k->code.size,
            origins[l->made[i].origin]);
  }
}

bool hd_cuda_load(hd_device_t *device, const hd_func_t *const *funcs,
                  const hd_code_t *given, unsigned count, hd_kernel_t **kernels,
                  hd_failure_t *failures) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  loads_t loads = {d, funcs, given, NULL, count, kernels};
  loads.made = calloc(count ? count : 1, sizeof(*loads.made));
  if (!loads.made)
    return hd_error(hd_cuda_diags(d), nowhere, HD_E0904, "out of memory");
  hd_cleanup_t cleanup;
  hd_budget_defer(&device->context->budget, &cleanup, end_loads, &loads);
  bool ok = hd_compile_all(device->context, count > 1 ? hd_cuda_pool(d) : NULL,
                           count, load_piece, &loads, failures);
  if (ok && device->verbose)
    print_loads(&loads);
  hd_budget_clean(&device->context->budget, &cleanup);
  return ok;
}

static bool allow_more(hd_cuda_device_t *d, cuda_kernel_t *k,
                       const hd_kernel_launch_t *launch, unsigned cluster) {
  const hd_cuda_driver_t *driver = &d->cuda->driver;
  int shared = (int)launch->shared_bytes;
  if (shared > k->dynamic_shared) {
    if (!hd_cuda_device_check(
            d,
            driver->function_set(k->function, HD_CU_FUNCTION_MAX_DYNAMIC_SHARED,
                                 shared),
            "setting the kernel's shared memory"))
      return false;
    k->dynamic_shared = shared;
  }
  if (cluster > 8 && !k->wide_cluster) {
    if (!hd_cuda_device_check(
            d,
            driver->function_set(k->function,
                                 HD_CU_FUNCTION_NON_PORTABLE_CLUSTER, 1),
            "asking for a large cluster"))
      return false;
    k->wide_cluster = true;
  }
  return true;
}

// Shared memory past 48 KiB and clusters past 8 blocks are asked for, once.
static bool allow(hd_cuda_device_t *d, cuda_kernel_t *k,
                  const hd_kernel_launch_t *launch, unsigned cluster) {
  if (launch->shared_bytes <= k->dynamic_shared &&
      (cluster <= 8 || k->wide_cluster))
    return true;
  pthread_mutex_lock(&k->lock);
  bool ok = allow_more(d, k, launch, cluster);
  pthread_mutex_unlock(&k->lock);
  return ok;
}

static bool report_launch(hd_cuda_device_t *d, const cuda_kernel_t *k,
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
  return hd_error(hd_cuda_diags(d), nowhere, HD_E0606, k->base.func->name,
                  text);
}

static bool wait_for(hd_cuda_device_t *d, const char *kernel) {
  int error = d->cuda->driver.stream_wait(d->stream);
  if (!error)
    return true;
  char text[256];
  return hd_error(hd_cuda_diags(d), nowhere, HD_E0607, kernel,
                  hd_cuda_error_text(d->cuda, error, text, sizeof(text)));
}

static unsigned set_attributes(const hd_kernel_launch_t *launch,
                               bool has_cluster,
                               hd_cu_launch_attribute_t attributes[2]) {
  unsigned count = 0;
  if (has_cluster) {
    hd_cu_launch_attribute_t *cluster = &attributes[count++];
    *cluster = (hd_cu_launch_attribute_t){.id = HD_CU_LAUNCH_CLUSTER};
    cluster->value.cluster.x = (unsigned)launch->cluster[0];
    cluster->value.cluster.y = (unsigned)launch->cluster[1];
    cluster->value.cluster.z = (unsigned)launch->cluster[2];
  }
  if (launch->programmatic)
    attributes[count++] = (hd_cu_launch_attribute_t){
        .id = HD_CU_LAUNCH_PROGRAMMATIC, .value.programmatic = 1};
  return count;
}

// The parameters' values, then the maps, encoded: addresses may be others at
// each launch, and the driver copies what the arguments point at. It reads
// them; its type lacks the const.
static bool set_arguments(hd_cuda_device_t *d, const cuda_kernel_t *k,
                          const hd_kernel_launch_t *launch) {
  const hd_func_t *func = k->base.func;
  hd_cu_map_t *maps = maps_of(launch);
  void **args = arguments_of(launch);
  memcpy(args, launch->args, func->num_params * sizeof(*args));
  for (uint32_t i = 0; i < launch->num_maps; i++) {
    if (!hd_cuda_encode_map(d, func, &launch->maps[i], &maps[i]))
      return false;
    args[func->num_params + i] = &maps[i];
  }
  return true;
}

// As much shared memory as lets no more blocks be on a multiprocessor together
// than the kernel says.
static int64_t spread_bytes(const hd_cuda_t *cuda, const cuda_kernel_t *k,
                            const hd_kernel_launch_t *launch) {
  int64_t together = k->base.func->launch.max_blocks;
  if (!together)
    return launch->shared_bytes;
  int64_t least = cuda->sm_shared_bytes / (together + 1);
  int64_t most = cuda->sm_shared_bytes / together - cuda->reserved_shared_bytes;
  int64_t bytes = (least < most ? least : most) - k->static_shared;
  return bytes > launch->shared_bytes ? bytes : launch->shared_bytes;
}

// What a launch is to the driver, with its arguments encoded.
typedef struct prepared {
  hd_kernel_launch_t launch;
  hd_cu_launch_attribute_t attributes[2];
  hd_cu_launch_t config;
} prepared_t;

// All but the arguments.
static bool configure(hd_cuda_device_t *d, cuda_kernel_t *k,
                      const hd_kernel_launch_t *given, prepared_t *p) {
  p->launch = *given;
  p->launch.shared_bytes = spread_bytes(d->cuda, k, given);
  p->config = (hd_cu_launch_t){.shared_bytes = (unsigned)p->launch.shared_bytes,
                               .stream = d->stream,
                               .attributes = p->attributes};
  unsigned cluster = 1;
  for (int i = 0; i < 3; i++) {
    p->config.grid[i] = (unsigned)given->grid[i];
    p->config.block[i] = (unsigned)given->block[i];
    cluster *= (unsigned)given->cluster[i];
  }
  p->config.num_attributes = set_attributes(given, cluster > 1, p->attributes);
  return allow(d, k, &p->launch, cluster);
}

static bool prepare(hd_cuda_device_t *d, cuda_kernel_t *k,
                    const hd_kernel_launch_t *given, prepared_t *p) {
  return configure(d, k, given, p) && set_arguments(d, k, given);
}

// Where the driver does not say, the launch will.
bool hd_cuda_fits(hd_device_t *device, hd_kernel_t *kernel,
                  const hd_kernel_launch_t *launch) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  cuda_kernel_t *k = (cuda_kernel_t *)kernel;
  int cluster = launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
  prepared_t p;
  int count = 0;
  if (cluster == 1)
    return true;
  if (!configure(d, k, launch, &p))
    return false;
  if (d->cuda->driver.active_clusters(&count, k->function, &p.config) || count)
    return true;
  char text[200];
  snprintf(text, sizeof(text),
           "no multiprocessors together have room for its clusters of %d "
           "blocks, each of %lld bytes of shared memory",
           cluster, (long long)p.launch.shared_bytes + k->static_shared);
  return hd_error(hd_cuda_diags(d), nowhere, HD_E0606, kernel->func->name,
                  text);
}

bool hd_cuda_launch(hd_device_t *device, hd_kernel_t *kernel,
                    const hd_kernel_launch_t *launch) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  cuda_kernel_t *k = (cuda_kernel_t *)kernel;
  prepared_t p;
  if (!prepare(d, k, launch, &p))
    return false;
  int error = d->cuda->driver.launch(&p.config, k->function,
                                     arguments_of(launch), NULL);
  if (error)
    return report_launch(d, k, &p.launch, error);
  return d->recording ? hd_cuda_record_node(d)
                      : d->own || wait_for(d, k->base.func->name);
}

bool hd_cuda_update(hd_device_t *device, hd_recording_t *recording, size_t n,
                    hd_kernel_t *kernel, const hd_kernel_launch_t *launch) {
  hd_cuda_device_t *d = hd_cuda_device_of(device);
  cuda_kernel_t *k = (cuda_kernel_t *)kernel;
  prepared_t p;
  if (!prepare(d, k, launch, &p))
    return false;
  hd_cu_kernel_node_t node = {.function = k->function,
                              .shared_bytes = p.config.shared_bytes,
                              .arguments = arguments_of(launch),
                              .context = d->cuda->context};
  memcpy(node.grid, p.config.grid, sizeof(node.grid));
  memcpy(node.block, p.config.block, sizeof(node.block));
  return hd_cuda_set_node(d, recording, n, &node);
}
