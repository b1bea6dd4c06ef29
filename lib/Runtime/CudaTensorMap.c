// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps as the hardware takes them. The driver counts axes from the
// contiguous one on, so every array is turned around.
#include "Runtime/DeviceCuda.h"

#include <stdio.h>

// Copies keep every bit, so tf32 travels as f32: as type tf32 the engine would
// round what it loads, which no other access does.
static int data_type(hd_scalar_t type) {
  static const struct {
    hd_scalar_t type;
    int code;
  } rows[] = {{HD_F16, HD_CU_MAP_F16},   {HD_BF16, HD_CU_MAP_BF16},
              {HD_F32, HD_CU_MAP_F32},   {HD_TF32, HD_CU_MAP_F32},
              {HD_F64, HD_CU_MAP_F64},   {HD_U8, HD_CU_MAP_U8},
              {HD_I8, HD_CU_MAP_U8},     {HD_F8E4M3, HD_CU_MAP_U8},
              {HD_F8E5M2, HD_CU_MAP_U8}, {HD_U16, HD_CU_MAP_U16},
              {HD_I16, HD_CU_MAP_U16},   {HD_U32, HD_CU_MAP_U32},
              {HD_I32, HD_CU_MAP_I32},   {HD_U64, HD_CU_MAP_U64},
              {HD_I64, HD_CU_MAP_I64}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    if (rows[i].type == type)
      return rows[i].code;
  return -1; // The driver refuses it; the verifier did before.
}

// CUtensorMapSwizzle and CUtensorMapL2promotion: 0, and from `first` bytes on
// the next doubling each.
static int doublings(uint32_t bytes, uint32_t first) {
  int code = bytes > 0;
  for (uint32_t at = first; at < bytes; at *= 2)
    code++;
  return code;
}

// Tensors below this size are described wrongly by drivers up to this version;
// a bit of the map's second word must be cleared, as CUTLASS does.
enum { FAULTY_VERSION = 13010, FAULTY_BYTES = 128 << 10, FAULTY_BIT = 21 };

bool hd_cuda_encode_map(hd_cuda_device_t *d, const hd_func_t *kernel,
                        const hd_tensor_map_t *map, hd_cu_map_t *code) {
  const hd_cuda_driver_t *driver = &d->cuda->driver;
  uint64_t sizes[HD_MAP_MAX_RANK], strides[HD_MAP_MAX_RANK];
  uint32_t box[HD_MAP_MAX_RANK], steps[HD_MAP_MAX_RANK];
  int lower[HD_MAP_MAX_SPATIAL], upper[HD_MAP_MAX_SPATIAL];
  uint32_t rank = map->rank;
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t axis = rank - 1 - i;
    bool inner = map->im2col && axis > 0 && axis + 1 < rank;
    sizes[i] = (uint64_t)map->sizes[axis];
    box[i] = map->box[axis];
    steps[i] = inner ? (uint32_t)map->step[axis - 1] : 1;
    if (i > 0) // That of the contiguous axis is left out.
      strides[i - 1] = (uint64_t)map->strides[axis];
    if (inner) {
      lower[i - 1] = map->lower[axis - 1];
      upper[i - 1] = map->upper[axis - 1];
    }
  }
  int type = data_type(map->type);
  int swizzle = doublings(map->swizzle, 32), l2 = doublings(map->l2, 64);
  union { // The driver does not write there.
    uint64_t address;
    void *pointer;
  } base = {map->base};
  int error =
      map->im2col
          ? driver->encode_im2col(code, type, rank, base.pointer, sizes,
                                  strides, lower, upper, map->channels,
                                  map->pixels, steps, 0, swizzle, l2, 0)
          : driver->encode_tiled(code, type, rank, base.pointer, sizes, strides,
                                 box, steps, 0, swizzle, l2, 0);
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
