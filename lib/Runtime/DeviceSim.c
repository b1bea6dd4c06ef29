// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The simulator as a device. Its memory is the host's; under sanitize each
// block of memory also keeps which of its bytes were written.
#include "Runtime/Cache.h"
#include "Runtime/CodeKey.h"
#include "Runtime/Compile.h"
#include "Runtime/Device.h"
#include "Support/HostMemory.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hd_loc_t nowhere;

typedef struct sim_device {
  hd_device_t base;
  hd_sim_options_t options;
  bool quick;
  uint64_t run; // Of launches that may overlap; of all devices, its alone.
} sim_device_t;

typedef struct sim_kernel {
  hd_kernel_t base;
  hd_host_code_t *code;
} sim_kernel_t;

static sim_device_t *of(hd_device_t *device) { return (sim_device_t *)device; }

static hd_diagnostics_t *diags_of(const sim_device_t *d) {
  return &d->base.context->diags;
}

static void *pointer(hd_address_t address) {
  return (void *)(uintptr_t)address;
}

// The bits of what was written count against the limit, too.
static size_t written_bytes(const sim_device_t *d, size_t bytes) {
  return d->options.sanitize ? bytes / 8 + 1 : 0;
}

// What comes from an allocator does not count.
static void *take_memory(sim_device_t *d, const char *name, size_t bytes) {
  const hd_allocator_t *allocator = &d->base.allocator;
  if (!allocator->allocate)
    return hd_host_memory_alloc(diags_of(d), &d->base.context->budget, name,
                                bytes);
  void *data = allocator->allocate(allocator->argument, bytes ? bytes : 1);
  if (!data)
    hd_error(diags_of(d), nowhere, HD_E0904, "the allocator has none left");
  return data;
}

static void give_memory(sim_device_t *d, const hd_allocator_t *from, void *data,
                        size_t bytes) {
  if (from->release)
    from->release(from->argument, data, bytes ? bytes : 1);
  else
    hd_host_memory_free(&d->base.context->budget, data, bytes);
}

static void free_memory(hd_device_t *device, hd_address_t address) {
  sim_device_t *d = of(device);
  hd_memory_t m;
  if (!hd_device_forget(device, address, &m))
    return;
  give_memory(d, &m.from, pointer(address), m.bytes);
  hd_host_memory_free(&device->context->budget, m.written,
                      written_bytes(d, m.bytes));
}

static void close_device(hd_device_t *device) {
  while (device->memory)
    free_memory(device, device->memory->address);
  if (!device->first) { // Else they are that one's.
    hd_thread_pool_destroy(of(device)->options.pool);
    hd_cache_close(device->cache);
  }
  hd_device_destroy(device);
}

static bool alloc_memory(hd_device_t *device, const char *name, size_t bytes,
                         hd_address_t *address) {
  sim_device_t *d = of(device);
  void *data = take_memory(d, name, bytes);
  if (!data)
    return false;
  *address = (uintptr_t)data;
  hd_memory_t *m = hd_device_remember(device, *address, bytes);
  if (!m) {
    give_memory(d, &device->allocator, data, bytes);
    return false;
  }
  if (!d->options.sanitize)
    return true;
  m->written = hd_host_memory_alloc(diags_of(d), &device->context->budget, name,
                                    written_bytes(d, bytes));
  if (m->written)
    return true;
  free_memory(device, *address);
  return false;
}

// Under sanitize it is to be known what was written. 256: as allocations are.
static bool adopt(hd_device_t *device, const void *data,
                  hd_address_t *address) {
  if (of(device)->options.sanitize || (uintptr_t)data % 256 != 0)
    return false;
  *address = (uintptr_t)data;
  return true;
}

// The bits of what begins at an address: views begin at multiples of 16 bytes,
// so theirs begin at a byte. NULL: none are kept.
static uint8_t *written_at(const hd_memory_t *m, hd_address_t address) {
  return m && m->written ? m->written + (address - m->address) / 8 : NULL;
}

// What is written whole begins as views do, so the bits can be set bytewise.
static void mark_written(sim_device_t *d, hd_address_t address, size_t bytes) {
  hd_memory_t *m = hd_device_find(&d->base, address);
  uint8_t *written = written_at(m, address);
  if (written)
    memset(written, 0xff, (bytes + 7) / 8);
}

static bool upload(hd_device_t *device, hd_address_t to, const void *from,
                   size_t bytes) {
  if (bytes)
    memcpy(pointer(to), from, bytes);
  mark_written(of(device), to, bytes);
  return true;
}

static bool download(hd_device_t *device, void *to, hd_address_t from,
                     size_t bytes) {
  (void)device;
  if (bytes)
    memcpy(to, pointer(from), bytes);
  return true;
}

static bool fill(hd_device_t *device, hd_address_t to, uint64_t bits,
                 unsigned element_bytes, size_t count) {
  char *data = pointer(to);
  for (size_t i = 0; i < count; i++)
    memcpy(data + i * element_bytes, &bits, element_bytes);
  mark_written(of(device), to, count * element_bytes);
  return true;
}

static bool copy(hd_device_t *device, hd_address_t to, hd_address_t from,
                 size_t bytes, void *stream) {
  (void)stream;
  return upload(device, to, pointer(from), bytes);
}

static bool follow(hd_device_t *device, void *after, void *stream) {
  (void)device, (void)after, (void)stream;
  return true;
}

static bool wait(hd_device_t *device, void *stream) {
  (void)device, (void)stream;
  return true;
}

static void unload(hd_device_t *device, hd_kernel_t *kernel) {
  (void)device;
  sim_kernel_t *k = (sim_kernel_t *)kernel;
  if (!k)
    return;
  if (k->code)
    hd_host_code_destroy(k->code);
  hd_buffer_fini(&k->base.kept);
  free(k);
}

typedef struct jobs {
  sim_device_t *device;
  const hd_func_t *const *funcs;
  const hd_code_t *codes; // NULL: they are made.
  hd_kernel_t **kernels;
} jobs_t;

// Code names the places of barriers, so these are part of its key.
static hd_cache_key_t key_of(const sim_device_t *d, hd_module_t *module,
                             const hd_func_t *func) {
  const char *host = d->base.cache ? hd_codegen_host() : NULL;
  hd_buffer_t salt = {0};
  hd_cache_key_t key = {0, 0};
  hd_cleanup_t cleanup;
  if (!host)
    return key;
  hd_budget_defer(&module->context->budget, &cleanup, hd_buffer_end, &salt);
  hd_buffer_printf(&salt, "host%s %s", d->quick ? " quick" : "", host);
  if (!salt.failed)
    key = hd_code_key(module, func, hd_buffer_text(&salt), true);
  hd_budget_clean(&module->context->budget, &cleanup);
  return key;
}

// The bytes of the code, kept ones where there are some.
static bool make_code(hd_device_t *device, hd_module_t *module,
                      const hd_func_t *func, hd_buffer_t *bytes) {
  const sim_device_t *d = of(device);
  hd_codegen_options_t options = {.target = hd_target_find("host"),
                                  .sanitize = d->options.sanitize,
                                  .quick = d->quick};
  hd_cache_key_t key = key_of(d, module, func);
  if (hd_cache_get(d->base.cache, key, bytes))
    return true;
  if (!hd_host_code_make(module, func, &options, bytes))
    return false;
  hd_cache_put(d->base.cache, key, bytes);
  return true;
}

static bool compile(void *argument, unsigned piece, hd_module_t *module) {
  const jobs_t *jobs = argument;
  const hd_func_t *func = jobs->funcs[piece];
  sim_kernel_t *k = calloc(1, sizeof(*k));
  if (!k)
    return hd_error(&module->context->diags, nowhere, HD_E0904,
                    "out of memory");
  jobs->kernels[piece] = &k->base;
  module->context->times.label = func->name;
  k->base =
      (hd_kernel_t){.func = func,
                    .room_bytes = func->num_params * sizeof(hd_sim_buffer_t),
                    .registers = -1,
                    .local_bytes = -1,
                    .max_threads = 1024};
  if (jobs->codes && jobs->codes[piece].data)
    k->base.code = jobs->codes[piece];
  else if (make_code(&jobs->device->base, module, func, &k->base.kept))
    k->base.code = (hd_code_t){k->base.kept.data, k->base.kept.size, NULL};
  else
    return false;
  k->code = hd_host_code_load(module->context, func, k->base.code.symbol,
                              k->base.code.data, k->base.code.size);
  return k->code != NULL;
}

static bool load(hd_device_t *device, const hd_func_t *const *funcs,
                 const hd_code_t *codes, unsigned count, hd_kernel_t **kernels,
                 hd_failure_t *failures) {
  sim_device_t *d = of(device);
  jobs_t jobs = {d, funcs, codes, kernels};
  return hd_compile_all(device->context, d->options.pool, count, compile, &jobs,
                        failures);
}

static void say_bank_conflicts(sim_device_t *d, const hd_kernel_t *kernel,
                               const hd_sim_stats_t *stats) {
  for (uint32_t i = 0; i < stats->num_bank_sites; i++) {
    const hd_sim_bank_site_t *site = &stats->bank_sites[i];
    hd_remark(
        diags_of(d), site->loc,
        "kernel '%s': bank conflicts at '%s': %llu accesses take %llu "
        "passes, %llu without conflicts",
        kernel->func->name, site->tensor, (unsigned long long)site->accesses,
        (unsigned long long)site->passes, (unsigned long long)site->least);
  }
}

// What launches since the last that waited for all before it do to a block.
static unsigned before_of(const sim_device_t *d, const hd_memory_t *m) {
  return m->run == d->run ? m->before : 0;
}

// A launch that begins when all before have ended forgets what they do. Those
// that may begin early overlap all since: the one before may itself wait still.
static void note_before(hd_device_t *device, const hd_kernel_launch_t *launch) {
  static atomic_ullong runs;
  sim_device_t *d = of(device);
  if (!d->options.sanitize)
    return;
  if (!launch->programmatic)
    d->run = ++runs;
  for (uint32_t i = 0; i < launch->num_tensors; i++) {
    const hd_launch_tensor_t *t = &launch->tensors[i];
    hd_memory_t *m = hd_device_find(device, t->address);
    if (!m)
      continue;
    m->before = before_of(d, m) |
                (t->read_only ? HD_SIM_BEFORE_READ : HD_SIM_BEFORE_WRITTEN);
    m->run = d->run;
  }
}

static bool launch_kernel(hd_device_t *device, hd_kernel_t *kernel,
                          const hd_kernel_launch_t *launch) {
  sim_device_t *d = of(device);
  sim_kernel_t *k = (sim_kernel_t *)kernel;
  hd_sim_buffer_t *buffers = launch->room;
  for (uint32_t i = 0; i < launch->num_tensors; i++) {
    const hd_launch_tensor_t *t = &launch->tensors[i];
    hd_memory_t *m =
        d->options.sanitize ? hd_device_find(device, t->address) : NULL;
    buffers[i] =
        (hd_sim_buffer_t){t->name,
                          pointer(t->address),
                          t->bytes,
                          t->element_bytes,
                          t->read_only,
                          written_at(m, t->address),
                          launch->programmatic && m ? before_of(d, m) : 0};
  }
  hd_sim_kernel_t run = {
      .name = kernel->func->name,
      .entry = hd_host_code_entry(k->code),
      .coroutine = hd_host_code_is_coroutine(k->code),
      .args = launch->args,
      .shared_bytes = (size_t)launch->shared_bytes,
      .programmatic = launch->programmatic,
      .buffers = buffers,
      .num_buffers = launch->num_tensors,
  };
  memcpy(run.grid, launch->grid, sizeof(run.grid));
  memcpy(run.block, launch->block, sizeof(run.block));
  memcpy(run.cluster, launch->cluster, sizeof(run.cluster));
  hd_sim_stats_t stats = {0};
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(diags_of(d));
  bool ok = hd_sim_launch(&run, &d->options, diags_of(d), &stats);
  if (!ok && !k->base.kept.size) // Code from a file names places of its own.
    hd_diagnostics_displace(diags_of(d), mark);
  note_before(device, launch);
  say_bank_conflicts(d, kernel, &stats);
  return ok;
}

static hd_device_t *fork_device(hd_device_t *device, hd_context_t *context) {
  const sim_device_t *first = of(device);
  hd_device_options_t options = {.verbose = device->verbose};
  sim_device_t *d =
      hd_device_create(sizeof(*d), device->ops, context, &options);
  if (!d)
    return NULL;
  d->base.info = device->info;
  d->base.first = device;
  d->options = first->options;
  d->options.budget = &context->budget;
  d->base.cache = device->cache;
  d->base.allocator = device->allocator;
  d->quick = first->quick;
  return &d->base;
}

// The CPU, "x86_64-pc-linux-gnu znver4", and a hash of that and its features.
static void describe_code(hd_device_t *device, hd_buffer_t *out) {
  const char *host = hd_codegen_host();
  if (!host)
    host = "an unknown CPU";
  size_t triple = strcspn(host, " ");
  size_t name = triple + strspn(host + triple, " ");
  name += strcspn(host + name, " ");
  hd_cache_key_t key = hd_cache_key("host", host, strlen(host));
  hd_buffer_printf(out, "%.*s, features %016llx%s", (int)name, host,
                   (unsigned long long)key.low,
                   of(device)->quick ? ", quick" : "");
}

static const hd_device_ops_t ops = {
    .kind = "sim",
    .describe = describe_code,
    .close = close_device,
    .fork = fork_device,
    .alloc = alloc_memory,
    .free = free_memory,
    .adopt = adopt,
    .upload = upload,
    .download = download,
    .fill = fill,
    .make = make_code,
    .load = load,
    .unload = unload,
    .launch = launch_kernel,
    .copy = copy,
    .follow = follow,
    .wait = wait,
};

// SMs and L2 of a usual GPU of each target, so that grids over device.sms and
// rotation are those of the GPU.
static void describe(hd_device_info_t *info) {
  hd_machine_t machine;
  if (hd_machine_find(info->target->sm, &machine)) {
    info->sms = machine.count;
    info->l2_bytes = machine.cache;
  }
  info->max_shared_bytes = info->target->max_shared_bytes;
  snprintf(info->name, sizeof(info->name), "simulator of %s",
           info->target->name);
}

hd_device_t *hd_device_open_sim(hd_context_t *context,
                                const hd_device_options_t *options) {
  const hd_target_t *target =
      options->target ? options->target : hd_target_find("sm_90a");
  if (target->arch != HD_ARCH_NVPTX) {
    hd_error(&context->diags, nowhere, HD_E0503, target->name, "device 'sim'");
    return NULL;
  }
  sim_device_t *d = hd_device_create(sizeof(*d), &ops, context, options);
  if (!d)
    return NULL;
  hd_host_code_set_symbols(hd_sim_symbol);
  d->base.info.target = target;
  describe(&d->base.info);
  d->quick = options->quick;
  // Sanitized code runs once.
  if (options->cache_dir && !options->sanitize)
    d->base.cache = hd_cache_open(options->cache_dir, options->cache_bytes);
  d->options = (hd_sim_options_t){
      .sanitize = options->sanitize,
      .seed = options->seed,
      .async = options->async,
      .pool = hd_thread_pool_create(options->threads),
      .budget = &context->budget,
  };
  return &d->base;
}
