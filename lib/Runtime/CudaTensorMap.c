// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps as the hardware takes them.
#include "Runtime/DeviceCuda.h"
#include "Runtime/MapCall.h"

#include <stdio.h>

// Tensors below this size are described wrongly by drivers up to this version;
// a bit of the map's second word must be cleared, as CUTLASS does.
enum { FAULTY_VERSION = 13010, FAULTY_BYTES = 128 << 10, FAULTY_BIT = 21 };

bool hd_cuda_encode_map(hd_cuda_device_t *d, const hd_func_t *kernel,
                        const hd_tensor_map_t *map, hd_cu_map_t *code) {
  const hd_cuda_driver_t *driver = &d->cuda->driver;
  hidet_map_t call;
  hd_map_call_make(map, &call);
  union { // The driver does not write there.
    uint64_t address;
    void *pointer;
  } base = {map->base};
  int error =
      call.is_im2col
          ? driver->encode_im2col(
                code, call.data_type, call.rank, base.pointer, call.sizes,
                call.strides, call.lower, call.upper, call.channels,
                call.pixels, call.steps, 0, call.swizzle, call.l2_promotion, 0)
          : driver->encode_tiled(code, call.data_type, call.rank, base.pointer,
                                 call.sizes, call.strides, call.box, call.steps,
                                 0, call.swizzle, call.l2_promotion, 0);
  if (d->cuda->version <= FAULTY_VERSION &&
      hd_tensor_map_span(map) < FAULTY_BYTES)
    code->words[1] &= ~(UINT64_C(1) << FAULTY_BIT);
  if (!error)
    return true;
  char text[300], meaning[200];
  snprintf(text, sizeof(text), "the driver refuses tensor map '%.60s': %s",
           map->name,
           hd_cuda_error_text(d->cuda, error, meaning, sizeof(meaning)));
  static const hd_loc_t nowhere;
  return hd_error(hd_cuda_diags(d), nowhere, HD_E0606, kernel->name, text);
}
