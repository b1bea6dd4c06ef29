// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a launch of a kernel's code must give, for programs that launch by
// themselves what hidet_module_emit() returned:
//
//   hidet_module_emit(module, "ptx", "sm_90a", "k", &ptx);
//   hidet_module_launch(module, "k", arguments, 3, sms, &launch);
//   // cuModuleLoadData, cuModuleGetFunction, cuLaunchKernelEx

#ifndef HIDET_LAUNCH_H
#define HIDET_LAUNCH_H

#include "hidet/Device.h"

HIDET_C_BEGIN

typedef struct hidet_launch {
  uint32_t grid[3], block[3], cluster[3]; // In blocks, threads, blocks.
  // Dynamic, for each block. More than 48 KiB must be asked for
  // (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES).
  size_t shared_bytes;
  size_t num_parameters; // Of the code: tensor maps come behind the kernel's.
} hidet_launch_t;

// Works it out for sizes: arguments are one for each parameter of the kernel,
// of which numbers alone are read. sms: the GPU's multiprocessors, which some
// kernels ask for (device.sms). Lowers the module.
HIDET_API hidet_status_t hidet_module_launch(hidet_module_t *module,
                                             const char *kernel,
                                             const hidet_argument_t *arguments,
                                             size_t num_arguments, int sms,
                                             hidet_launch_t *launch);

typedef enum hidet_parameter_kind {
  HIDET_PARAMETER_SCALAR,
  HIDET_PARAMETER_TENSOR, // An address in global memory.
  HIDET_PARAMETER_MAP     // A CUtensorMap, by value.
} hidet_parameter_kind_t;

// Texts live as long as the module.
typedef struct hidet_parameter {
  const char *name;
  hidet_parameter_kind_t kind;
  const char *type; // Of the scalar, or of the tensor's elements: "f16".
  size_t bytes, align;
  int is_written; // A tensor that is `out` or `inout`.
  size_t tensor;  // MAP: the number of the parameter that it describes.
} hidet_parameter_t;

// Parameter number i of the code. HIDET_USAGE where there is none.
HIDET_API hidet_status_t hidet_module_parameter(hidet_module_t *module,
                                                const char *kernel, size_t i,
                                                hidet_parameter_t *parameter);

enum { HIDET_MAP_MAX_RANK = 5 };

// What cuTensorMapEncodeTiled takes (or ..Im2col), in its order and with its
// numbers, beside the tensor's address; interleave and fill are none. Axes are
// counted from the contiguous one on, whose stride is left out. (Drivers up to
// 13.1 encode tensors of less than 128 KiB wrongly: bit 21 of the map's second
// word must be cleared.)
typedef struct hidet_map {
  int is_im2col;
  int data_type, swizzle, l2_promotion;
  unsigned rank;
  uint64_t sizes[HIDET_MAP_MAX_RANK];
  uint64_t strides[HIDET_MAP_MAX_RANK - 1]; // In bytes.
  uint32_t box[HIDET_MAP_MAX_RANK];         // Tiled.
  uint32_t steps[HIDET_MAP_MAX_RANK];
  int lower[HIDET_MAP_MAX_RANK - 2]; // im2col, and what follows.
  int upper[HIDET_MAP_MAX_RANK - 2];
  uint32_t channels, pixels;
} hidet_map_t;

// That of parameter i of the code, a map; arguments as above. HIDET_INVALID
// where the hardware does not take these sizes.
HIDET_API hidet_status_t hidet_module_map(hidet_module_t *module,
                                          const char *kernel,
                                          const hidet_argument_t *arguments,
                                          size_t num_arguments, size_t i,
                                          hidet_map_t *map);

HIDET_C_END

#endif
