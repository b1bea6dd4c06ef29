// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps of a launch: what the copy engine must know, worked out from a
// kernel's signature (hd_map_t) and its sizes, the same for every device. The
// CUDA device encodes it for the hardware, the simulator reads it as it is.
#ifndef HIDET_IR_TENSORMAP_H
#define HIDET_IR_TENSORMAP_H

#include "IR/Eval.h"

// Axes are in the tensor's order, the contiguous one last, as in hd_map_t.
typedef struct hd_tensor_map {
  const char *name;                 // The map's; for messages.
  const char *tensor;               // The parameter's.
  uint64_t base;                    // Address of the tensor in global memory.
  hd_scalar_t type;                 // Of an element.
  uint32_t element_bytes;           // 1, 2, 4 or 8.
  uint32_t rank;                    // 1 .. 5
  int64_t sizes[HD_MAP_MAX_RANK];   // In elements.
  int64_t strides[HD_MAP_MAX_RANK]; // In bytes; the last is element_bytes.
  uint32_t swizzle;                 // In bytes: 0, 32, 64, 128.
  uint32_t l2;                      // Promotion in bytes: 0, 64, 128, 256.
  bool im2col;
  uint32_t box[HD_MAP_MAX_RANK]; // Tiled: extents in elements.
  // im2col, of a tensor [n, d.., c]: how many pixels and channels one copy
  // takes, and for each axis between the first and the last the corners of the
  // window's positions (the lower one relative to 0, the upper one to the size
  // - 1) and the step from one position to the next.
  uint32_t pixels, channels;
  int32_t lower[HD_MAP_MAX_SPATIAL];
  int32_t upper[HD_MAP_MAX_SPATIAL];
  int32_t step[HD_MAP_MAX_SPATIAL];
} hd_tensor_map_t;

// Works out map number i of a kernel, all but its base. env holds the kernel's
// scalar parameters. Reports E0611 where sizes, strides, box or corners are not
// what the hardware takes; the rules are those of cuTensorMapEncodeTiled and
// cuTensorMapEncodeIm2col in the CUDA driver's reference.
bool hd_tensor_map_make(hd_diagnostics_t *diags, const hd_env_t *env,
                        const hd_func_t *kernel, uint32_t i,
                        hd_tensor_map_t *map);

// Gives the map its base; reports E0611 where it is not aligned to 16 bytes.
bool hd_tensor_map_place(hd_diagnostics_t *diags, const hd_func_t *kernel,
                         hd_tensor_map_t *map, uint64_t base);

// From the tensor's first byte to behind its last.
int64_t hd_tensor_map_span(const hd_tensor_map_t *map);

#endif
