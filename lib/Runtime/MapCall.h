// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HIDET_RUNTIME_MAPCALL_H
#define HIDET_RUNTIME_MAPCALL_H

#include "IR/TensorMap.h"
#include "hidet/Launch.h"

// A tensor map as the driver's functions take it, all but the address.
void hd_map_call_make(const hd_tensor_map_t *map, hidet_map_t *call);

#endif
