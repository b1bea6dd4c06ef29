// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver counts axes from the contiguous one on, so every array is turned
// around.
#include "Runtime/MapCall.h"
#include "Runtime/CudaDriver.h"

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

void hd_map_call_make(const hd_tensor_map_t *map, hidet_map_t *call) {
  uint32_t rank = map->rank;
  *call = (hidet_map_t){.is_im2col = map->im2col,
                        .data_type = data_type(map->type),
                        .swizzle = doublings(map->swizzle, 32),
                        .l2_promotion = doublings(map->l2, 64),
                        .rank = rank,
                        .channels = map->channels,
                        .pixels = map->pixels};
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t axis = rank - 1 - i;
    bool inner = map->im2col && axis > 0 && axis + 1 < rank;
    call->sizes[i] = (uint64_t)map->sizes[axis];
    call->box[i] = map->box[axis];
    call->steps[i] = inner ? (uint32_t)map->step[axis - 1] : 1;
    if (i > 0) // That of the contiguous axis is left out.
      call->strides[i - 1] = (uint64_t)map->strides[axis];
    if (inner) {
      call->lower[i - 1] = map->lower[axis - 1];
      call->upper[i - 1] = map->upper[axis - 1];
    }
  }
}
