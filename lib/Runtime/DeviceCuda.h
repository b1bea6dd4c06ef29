// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA device's own state, shared by DeviceCuda.c (memory, opening),
// CudaKernel.c (compiling, launching) and CudaRecording.c (CUDA graphs).
#ifndef HIDET_RUNTIME_DEVICECUDA_H
#define HIDET_RUNTIME_DEVICECUDA_H

#include "Runtime/Cache.h"
#include "Runtime/Cuda.h"
#include "Runtime/Device.h"

#include <pthread.h>

typedef struct hd_cuda_device {
  hd_device_t base;
  hd_cuda_t *cuda;
  hd_cu_stream_t stream;
  hd_cu_event_t start, stop;
  hd_cu_event_t order;          // Between streams.
  struct hd_cuda_device *first; // That it is a fork of, or itself: whose are
  hd_thread_pool_t *pool;       // the driver and the threads.
  pthread_mutex_t lock;         // While the threads are made.
  unsigned threads;
  bool recording;
  hd_cu_stream_t own;  // While stream is one of the caller's; else NULL.
  hd_cu_node_t *nodes; // Of the recording under way: its launches, in order.
  size_t num_nodes, cap_nodes;
} hd_cuda_device_t;

static inline hd_cuda_device_t *hd_cuda_device_of(hd_device_t *device) {
  return (hd_cuda_device_t *)device;
}

static inline hd_diagnostics_t *hd_cuda_diags(const hd_cuda_device_t *d) {
  return &d->base.context->diags;
}

static inline bool hd_cuda_device_check(hd_cuda_device_t *d, int error,
                                        const char *what) {
  return hd_cuda_check(d->cuda, hd_cuda_diags(d), error, what);
}

typedef enum hd_cuda_origin {
  HD_CUDA_MADE,      // just now
  HD_CUDA_FROM_PTX,  // kept: PTX was made, but not linked
  HD_CUDA_FROM_TEXT, // kept: nothing was made
  HD_CUDA_GIVEN,     // likewise: somebody else has it
} hd_cuda_origin_t;

// Machine code, or PTX with its final zero.
typedef struct hd_cuda_code {
  hd_buffer_t image;
  hd_cuda_origin_t origin;
} hd_cuda_code_t;

// CudaCompile.c. The threads that compile, made at first use; NULL: the
// caller's alone.
hd_thread_pool_t *hd_cuda_pool(hd_cuda_device_t *d);
// Machine code of a lowered kernel. Any threads may do so at once: the module,
// which is empty, and its context are the caller's. code is zeros before, and
// its image the caller's to free in any case. False after errors.
bool hd_cuda_compile(hd_cuda_device_t *d, hd_module_t *module,
                     const hd_func_t *func, hd_cuda_code_t *code);

// The rows of hd_device_ops_t.
bool hd_cuda_make(hd_device_t *device, hd_module_t *module,
                  const hd_func_t *func, hd_buffer_t *out);
bool hd_cuda_load(hd_device_t *device, const hd_func_t *const *funcs,
                  const hd_code_t *codes, unsigned count, hd_kernel_t **kernels,
                  hd_failure_t *failures);
void hd_cuda_unload(hd_device_t *device, hd_kernel_t *kernel);
bool hd_cuda_fits(hd_device_t *device, hd_kernel_t *kernel,
                  const hd_kernel_launch_t *launch);
bool hd_cuda_launch(hd_device_t *device, hd_kernel_t *kernel,
                    const hd_kernel_launch_t *launch);
bool hd_cuda_record_begin(hd_device_t *device);
hd_recording_t *hd_cuda_record_end(hd_device_t *device);
bool hd_cuda_replay(hd_device_t *device, hd_recording_t *recording, double *ms,
                    double *host_us);
void hd_cuda_recording_free(hd_device_t *device, hd_recording_t *recording);

// After a launch into a recording: keeps its node.
bool hd_cuda_record_node(hd_cuda_device_t *d);
// The node's arguments from here on.
bool hd_cuda_set_node(hd_cuda_device_t *d, hd_recording_t *recording, size_t n,
                      const hd_cu_kernel_node_t *kernel);
bool hd_cuda_update(hd_device_t *device, hd_recording_t *recording, size_t n,
                    hd_kernel_t *kernel, const hd_kernel_launch_t *launch);
bool hd_cuda_enqueue(hd_device_t *device, hd_recording_t *recording,
                     void *stream);

// The map as the hardware takes it; kernel is for messages.
bool hd_cuda_encode_map(hd_cuda_device_t *d, const hd_func_t *kernel,
                        const hd_tensor_map_t *map, hd_cu_map_t *code);

#endif
