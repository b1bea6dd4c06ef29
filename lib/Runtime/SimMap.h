// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tensor map on the simulator: what cuTensorMapEncode* would encode. The
// device makes one for each map of a kernel's signature (hd_map_t, its
// expressions evaluated) and gives its address as an argument after the
// parameters (CodeGen/SimAbi.h). It must live as long as the launch.
#ifndef HIDET_RUNTIME_SIMMAP_H
#define HIDET_RUNTIME_SIMMAP_H

#include "IR/Type.h"

#include <stdbool.h>
#include <stdint.h>

enum { HD_SIM_MAP_RANK = 5, HD_SIM_MAP_SPATIAL = 3 };

// Axes are in the tensor's order, the contiguous one last, as in hd_map_t.
typedef struct hd_sim_map {
  const char *name;                 // The map's; for messages.
  const char *tensor;               // The parameter's.
  char *base;                       // Of the tensor, in global memory.
  hd_scalar_t type;                 // Of an element.
  uint32_t element_bytes;           // 1, 2, 4 or 8.
  uint32_t rank;                    // 1 .. 5
  int64_t sizes[HD_SIM_MAP_RANK];   // In elements.
  int64_t strides[HD_SIM_MAP_RANK]; // In bytes; the last is element_bytes.
  uint32_t swizzle;                 // In bytes: 0, 32, 64, 128.
  bool im2col;
  uint32_t box[HD_SIM_MAP_RANK]; // Tiled: extents in elements.
  // im2col, of a tensor [n, d.., c]: how many pixels and channels one copy
  // takes, and for each axis between the first and the last the corners of the
  // window's positions (the lower one relative to 0, the upper one to the size
  // - 1) and the step from one position to the next.
  uint32_t pixels, channels;
  int32_t lower[HD_SIM_MAP_SPATIAL];
  int32_t upper[HD_SIM_MAP_SPATIAL];
  int32_t step[HD_SIM_MAP_SPATIAL];
} hd_sim_map_t;

#endif
