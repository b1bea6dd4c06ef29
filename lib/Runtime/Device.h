// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices: where kernels run. A device is a table of functions; there are two,
// `cuda` (DeviceCuda.c) and `sim` (DeviceSim.c). Functions that return false or
// NULL have reported why. A device belongs to one thread at a time: threads
// side by side have forks of it.
#ifndef HIDET_RUNTIME_DEVICE_H
#define HIDET_RUNTIME_DEVICE_H

#include "CodeGen/CodeGen.h"
#include "IR/TensorMap.h"
#include "Runtime/Compile.h"
#include "Schedule/Template/Machine.h"
#include "Sim/Sim.h"

#include <pthread.h>

typedef uint64_t hd_address_t; // In the device's memory.

typedef struct hd_device hd_device_t;
typedef struct hd_kernel hd_kernel_t;
typedef struct hd_recording hd_recording_t;

// What code is made and launched for.
typedef struct hd_device_info {
  char name[128];
  const hd_target_t *target; // Of the GPU that the launches are for.
  int sms;
  int64_t l2_bytes;
  double memory_gbs;        // That its memory moves at most; 0: not known.
  int64_t max_shared_bytes; // A block's, with the opt-in.
} hd_device_info_t;

// A tensor among a launch's arguments.
typedef struct hd_launch_tensor {
  const char *name;
  hd_address_t address;
  size_t bytes;
  uint32_t element_bytes;
  bool read_only;
} hd_launch_tensor_t;

typedef struct hd_kernel_launch {
  int32_t grid[3], block[3], cluster[3];
  int64_t shared_bytes;
  // args[i] points at the value of parameter i; after the parameters come the
  // kernel's tensor maps: args[num_params + i] is &maps[i].
  void *const *args;
  const hd_launch_tensor_t *tensors;
  uint32_t num_tensors;
  const hd_tensor_map_t *maps;
  uint32_t num_maps;
  void *room; // The launch's own, of the kernel's room_bytes.
  // May begin before the launch before it has ended: its kernel waits itself
  // (griddepcontrol_wait). A device may take no notice.
  bool programmatic;
} hd_kernel_launch_t;

// Machine code of a kernel, in memory of somebody else's.
typedef struct hd_code {
  const char *data;
  size_t size;
  const char *symbol; // What the kernel is called in it; NULL: as it is.
} hd_code_t;

// A kernel made ready for a device: for any number of threads, with a launch
// each.
struct hd_kernel {
  const hd_func_t *func;
  size_t room_bytes; // What a launch needs for the device's own purposes.
  // What the code needs; -1 where the device does not know.
  int registers, local_bytes, max_threads;
  hd_code_t code;   // That it was loaded from, as make gives it: kept's,
  hd_buffer_t kept; // or, where that is empty, whose it was given.
};

typedef struct hd_device_ops {
  const char *kind; // "cuda", "sim"
  void (*close)(hd_device_t *device);
  // The same device for another piece of work, perhaps on another thread, at
  // the same time: with a context, a stream and an account of memory of its
  // own. Memory and kernels of the one may be used through the other. It is
  // closed before the first. NULL after an error, which is the new context's.
  hd_device_t *(*fork)(hd_device_t *device, hd_context_t *context);
  // name is for messages. No bytes are as good as some.
  bool (*alloc)(hd_device_t *device, const char *name, size_t bytes,
                hd_address_t *address);
  void (*free)(hd_device_t *device, hd_address_t address);
  // Whether memory of the host's is the device's, too, as it is, where nobody
  // writes to it and it outlives its use: *address, whose free does nothing.
  // NULL: never.
  bool (*adopt)(hd_device_t *device, const void *data, hd_address_t *address);
  bool (*upload)(hd_device_t *device, hd_address_t to, const void *from,
                 size_t bytes);
  bool (*download)(hd_device_t *device, void *to, hd_address_t from,
                   size_t bytes);
  // Says what the code of kernels depends on beside the device's description.
  void (*describe)(hd_device_t *device, hd_buffer_t *out);
  // Sets elements of 1, 2, 4 or 8 bytes; in order with the launches.
  bool (*fill)(hd_device_t *device, hd_address_t to, uint64_t bits,
               unsigned element_bytes, size_t count);
  // Machine code of a lowered kernel as bytes, from the cache where it is kept,
  // and into it, and known to the driver: no stream is touched, and nothing
  // stays on the GPU. For threads side by side; module, which is empty, and
  // what is reported are the caller's.
  bool (*make)(hd_device_t *device, hd_module_t *module, const hd_func_t *func,
               hd_buffer_t *code);
  // Makes lowered kernels ready; kernels[i], NULL before, is that of funcs[i].
  // codes[i] is its code, as make gave it on such a device, and outlives it;
  // no data, or codes NULL: it is made. They must not outlive the device or the
  // functions. failures: as hd_compile_all() has them.
  // To be called by hd_device_load(), which unloads those that are there after
  // an error.
  bool (*load)(hd_device_t *device, const hd_func_t *const *funcs,
               const hd_code_t *codes, unsigned count, hd_kernel_t **kernels,
               hd_failure_t *failures);
  void (*unload)(hd_device_t *device, hd_kernel_t *kernel);
  // Whether there is room for the launch, which has been checked
  // (hd_launch_check()), but for its arguments; else E0606. NULL: there is.
  bool (*fits)(hd_device_t *device, hd_kernel_t *kernel,
               const hd_kernel_launch_t *launch);
  // The launch has been checked (hd_launch_check()). Outside a recording the
  // kernel has ended when this returns, and errors name it.
  bool (*launch)(hd_device_t *device, hd_kernel_t *kernel,
                 const hd_kernel_launch_t *launch);
  // Launches and fills between begin and end are kept, not done; replay does
  // them, in order, and measures them. NULL where a device has no clock of its
  // own.
  bool (*record_begin)(hd_device_t *device);
  hd_recording_t *(*record_end)(hd_device_t *device);
  bool (*replay)(hd_device_t *device, hd_recording_t *recording, double *ms,
                 double *host_us);
  void (*recording_free)(hd_device_t *device, hd_recording_t *recording);
  // Streams are the driver's, NULL its default one. Where replay is NULL there
  // are none: everything is done at once.
  // Puts a recording on a stream, and returns.
  bool (*enqueue)(hd_device_t *device, hd_recording_t *recording, void *stream);
  // Gives launch number n of a recording other arguments; all else is the same.
  bool (*update)(hd_device_t *device, hd_recording_t *recording, size_t n,
                 hd_kernel_t *kernel, const hd_kernel_launch_t *launch);
  // Likewise a copy; from: on the device, or the host.
  bool (*copy)(hd_device_t *device, hd_address_t to, hd_address_t from,
               size_t bytes, void *stream);
  // Whether what is put on a stream goes into a graph of the caller's.
  bool (*captures)(hd_device_t *device, void *stream, bool *captures);
  // Launches and fills go to that stream from here on, and are not waited for;
  // NULL: to the device's own again.
  void (*join)(hd_device_t *device, void *stream);
  // What is put on a stream from here on waits for what is on another.
  bool (*follow)(hd_device_t *device, void *after, void *stream);
  // Returns when all that is on the stream has been done.
  bool (*wait)(hd_device_t *device, void *stream);
} hd_device_ops_t;

// Memory of the device from somebody else. Addresses are multiples of 256;
// NULL: there is none left. For any thread, with the device's context current.
typedef struct hd_allocator {
  void *(*allocate)(void *argument, size_t bytes);
  void (*release)(void *argument, void *address, size_t bytes);
  void *argument;
} hd_allocator_t;

// A block of a device's memory.
typedef struct hd_memory {
  hd_address_t address;
  size_t bytes;
  hd_allocator_t from; // That it goes back to; zero: the device itself.
  uint8_t *written;    // sim, sanitizing: a bit for each byte; else NULL.
  // sim: what launches that the next one may overlap do to it
  // (HD_SIM_BEFORE_...); 0 where run is another than the device's.
  unsigned before;
  uint64_t run;
  struct hd_memory *below, *above; // In the tree by address.
} hd_memory_t;

struct hd_device {
  const hd_device_ops_t *ops;
  hd_context_t *context; // Diagnostics and budget.
  hd_device_info_t info;
  hd_device_t *first;       // That it is a fork of; NULL: of none.
  pthread_mutex_t lock;     // Of memory: forks look into their first's.
  hd_memory_t *memory;      // What is allocated, a tree by address,
  size_t bytes, peak_bytes; // and how many bytes that is.
  hd_allocator_t allocator; // Functions NULL: memory is the device's own.
  uint64_t compile_ns;      // Spent in load so far.
  // Of code, the first's of its forks; NULL: none is kept.
  struct hd_cache *cache;
  // Where the GPU's memory is used up: ends what is kept for later, and returns
  // whether there was any; NULL: nothing is. Whoever keeps something sets it
  // for as long as it allocates.
  bool (*reclaim)(void *argument);
  void *reclaim_argument;
  bool verbose;
};

typedef struct hd_device_options {
  const hd_target_t *target; // sim: NULL is sm_90a. cuda: NULL is the GPU's.
  bool sanitize;
  bool quick; // sim: code that is soon made, and slow.
  uint64_t seed;
  hd_sim_async_t async;
  unsigned threads;      // 0: one for each core.
  const char *cache_dir; // Of machine code; NULL: none is kept.
  int64_t cache_bytes;   // The most that it holds; 0: HD_CACHE_BYTES.
  bool verbose;
} hd_device_options_t;

hd_device_t *hd_device_open_sim(hd_context_t *context,
                                const hd_device_options_t *options);
hd_device_t *hd_device_open_cuda(hd_context_t *context, int ordinal,
                                 const hd_device_options_t *options);
// See hd_device_ops_t.
static inline hd_device_t *hd_device_fork(hd_device_t *device,
                                          hd_context_t *context) {
  return device->ops->fork(device, context);
}
static inline void hd_device_close(hd_device_t *device) {
  if (device)
    device->ops->close(device);
}

// Makes kernels ready by the device's load, and keeps the time that it took.
// All or none; but failures (NULL: nobody asks) says of each why it could not
// be, and then those that could are there. Where the work unwinds, the caller
// unloads those that are there.
bool hd_device_load(hd_device_t *device, const hd_func_t *const *funcs,
                    const hd_code_t *codes, unsigned count,
                    hd_kernel_t **kernels, hd_failure_t *failures);

// The GPU that schedules are chosen for, as its driver describes it; *machine
// stays where nobody knows such a GPU.
void hd_device_machine(const hd_device_t *device, hd_machine_t *machine);

// For the devices; hd_device_destroy() ends it. A new one of so many bytes,
// which begin with a hd_device_t; NULL and E0904 where memory runs out.
void *hd_device_create(size_t size, const hd_device_ops_t *ops,
                       hd_context_t *context,
                       const hd_device_options_t *options);
void hd_device_destroy(hd_device_t *device);
// DeviceMemory.c. Enters a block; NULL and E0904 where memory runs out.
hd_memory_t *hd_device_remember(hd_device_t *device, hd_address_t address,
                                size_t bytes);
// The block that an address lies in, of the device's own or of that which it is
// a fork of; NULL where there is none.
hd_memory_t *hd_device_find(hd_device_t *device, hd_address_t address);
// Takes a block out; *memory is a copy of what it was. False where there is
// none.
bool hd_device_forget(hd_device_t *device, hd_address_t address,
                      hd_memory_t *memory);

// Checks a launch against what the device's hardware allows; reports E0606.
bool hd_launch_check(hd_device_t *device, const hd_kernel_t *kernel,
                     const hd_kernel_launch_t *launch);

#endif
