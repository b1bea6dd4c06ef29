// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA driver's interface as we use it, declared by ourselves: the driver
// is opened at run time, and nothing of CUDA is needed to build. Numbers and
// layouts are those of the documented, stable driver API.
#ifndef HIDET_RUNTIME_CUDADRIVER_H
#define HIDET_RUNTIME_CUDADRIVER_H

#include <stddef.h>
#include <stdint.h>

// Handles.
typedef struct hd_cu_context *hd_cu_context_t;
typedef struct hd_cu_library *hd_cu_library_t;
typedef struct hd_cu_kernel *hd_cu_kernel_t;
typedef struct hd_cu_function *hd_cu_function_t;
typedef struct hd_cu_stream *hd_cu_stream_t;
typedef struct hd_cu_event *hd_cu_event_t;
typedef struct hd_cu_graph *hd_cu_graph_t;
typedef struct hd_cu_exec *hd_cu_exec_t;
typedef struct hd_cu_node *hd_cu_node_t;
typedef struct hd_cu_link *hd_cu_link_t;

// CUresult.
enum {
  HD_CU_SUCCESS = 0,
  HD_CU_INVALID_VALUE = 1,
  HD_CU_OUT_OF_MEMORY = 2,
  HD_CU_NO_DEVICE = 100,
  HD_CU_NO_BINARY_FOR_GPU = 209,
  HD_CU_INVALID_PTX = 218,
  HD_CU_UNSUPPORTED_PTX = 222,
  HD_CU_ILLEGAL_ADDRESS = 700,
  HD_CU_OUT_OF_RESOURCES = 701,
};

// CUdevice_attribute.
enum {
  HD_CU_DEVICE_MAX_SHARED = 8,
  HD_CU_DEVICE_SMS = 16,
  HD_CU_DEVICE_MEMORY_KHZ = 36,
  HD_CU_DEVICE_MEMORY_BITS = 37, // Of its bus, which moves two a cycle.
  HD_CU_DEVICE_L2_BYTES = 38,
  HD_CU_DEVICE_MAJOR = 75,
  HD_CU_DEVICE_MINOR = 76,
  HD_CU_DEVICE_SM_SHARED = 81,
  HD_CU_DEVICE_MAX_SHARED_OPTIN = 97,
  HD_CU_DEVICE_RESERVED_SHARED = 111, // Of each block, by the system.
};

// CUfunction_attribute.
enum {
  HD_CU_FUNCTION_MAX_THREADS = 0,
  HD_CU_FUNCTION_SHARED_BYTES = 1,
  HD_CU_FUNCTION_LOCAL_BYTES = 3,
  HD_CU_FUNCTION_REGISTERS = 4,
  HD_CU_FUNCTION_MAX_DYNAMIC_SHARED = 8,
  HD_CU_FUNCTION_NON_PORTABLE_CLUSTER = 14,
};

// CUjit_option, CUjitInputType.
enum {
  HD_CU_JIT_INFO_LOG = 3,
  HD_CU_JIT_INFO_LOG_SIZE = 4,
  HD_CU_JIT_ERROR_LOG = 5,
  HD_CU_JIT_ERROR_LOG_SIZE = 6,
  HD_CU_JIT_TARGET = 9,
  HD_CU_JIT_LOG_VERBOSE = 12,
  HD_CU_JIT_INPUT_PTX = 1,
  HD_CU_TARGET_ACCELERATED = 0x10000, // Added to 90 for sm_90a.
};

// CUtensorMapDataType.
enum {
  HD_CU_MAP_U8 = 0,
  HD_CU_MAP_U16 = 1,
  HD_CU_MAP_U32 = 2,
  HD_CU_MAP_I32 = 3,
  HD_CU_MAP_U64 = 4,
  HD_CU_MAP_I64 = 5,
  HD_CU_MAP_F16 = 6,
  HD_CU_MAP_F32 = 7,
  HD_CU_MAP_F64 = 8,
  HD_CU_MAP_BF16 = 9,
};

// CUtensorMap.
typedef struct hd_cu_map {
  _Alignas(64) uint64_t words[16];
} hd_cu_map_t;

enum {
  HD_CU_STREAM_DEFAULT = 0, // Waits for the copies, which are in stream 0.
  HD_CU_CAPTURE_THREAD_LOCAL = 1,
  HD_CU_EVENT_WITHOUT_TIME = 2, // CU_EVENT_DISABLE_TIMING
  HD_CU_LAUNCH_CLUSTER = 4,     // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
  HD_CU_LAUNCH_PROGRAMMATIC = 6,
};

// CUlaunchAttribute: an id, padding to 8 bytes, a union of 64 bytes.
typedef struct hd_cu_launch_attribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int programmatic; // Whether it may begin early.
    uint64_t alignment;
  } value;
} hd_cu_launch_attribute_t;

// CUlaunchConfig.
typedef struct hd_cu_launch {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  hd_cu_stream_t stream;
  hd_cu_launch_attribute_t *attributes;
  unsigned num_attributes;
} hd_cu_launch_t;

// CUDA_KERNEL_NODE_PARAMS_v2.
typedef struct hd_cu_kernel_node {
  hd_cu_function_t function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void **arguments;
  void **extra;
  void *kernel; // Where there is no function.
  hd_cu_context_t context;
} hd_cu_kernel_node_t;

_Static_assert(sizeof(hd_cu_kernel_node_t) == 72, "CUDA_KERNEL_NODE_PARAMS");
_Static_assert(sizeof(hd_cu_launch_attribute_t) == 72, "CUlaunchAttribute");
_Static_assert(sizeof(hd_cu_launch_t) == 56, "CUlaunchConfig");
_Static_assert(offsetof(hd_cu_launch_t, stream) == 32, "CUlaunchConfig");

typedef struct hd_cuda_driver {
  void *library;
#define HD_CUDA(member, symbol, parameters) int(*member) parameters;
#include "Runtime/CudaDriver.def"
#undef HD_CUDA
} hd_cuda_driver_t;

// Opens a driver library. Returns NULL, or why not (static text, or the dynamic
// linker's; valid until the next call of dlopen in this thread).
const char *hd_cuda_driver_open(hd_cuda_driver_t *driver, const char *library);
void hd_cuda_driver_close(hd_cuda_driver_t *driver);

#endif
