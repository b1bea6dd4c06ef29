// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays as DLPack describes tensors (https://dmlc.github.io/dlpack), and back.
#include "IR/Graph/HostTensor.h"
#include "Tools/Api.h"
#include "hidet/Session.h"

#include <string.h>

// DLDataType, DLDevice and DLTensor, as every version since 0.2 has them.
typedef struct dl_type {
  uint8_t code, bits;
  uint16_t lanes;
} dl_type_t;

typedef struct dl_device {
  int32_t type, id;
} dl_device_t;

typedef struct dl_tensor {
  void *data;
  dl_device_t device;
  int32_t rank;
  dl_type_t type;
  int64_t *shape;
  int64_t *strides; // In elements. NULL, before 1.2: row-major, without gaps.
  uint64_t byte_offset;
} dl_tensor_t;

// DLDeviceType.
enum { ON_CPU = 1, ON_CUDA = 2, ON_CUDA_HOST = 3, ON_CUDA_MANAGED = 13 };

// DLDataTypeCode, and how many bits.
static const struct {
  const char *name;
  uint8_t code, bits;
} types[] = {
    {"i8", 0, 8},      {"i16", 0, 16},        {"i32", 0, 32},
    {"i64", 0, 64},    {"u8", 1, 8},          {"u16", 1, 16},
    {"u32", 1, 32},    {"u64", 1, 64},        {"f16", 2, 16},
    {"f32", 2, 32},    {"f64", 2, 64},        {"bf16", 4, 16},
    {"bool", 6, 8},    {"f8e4m3", 10, 8},     {"f8e4m3fnuz", 11, 8},
    {"f8e5m2", 12, 8}, {"f8e5m2fnuz", 13, 8}, {"f8e8m0", 14, 8},
};
enum { NUM_TYPES = sizeof(types) / sizeof(types[0]) };

static bool is_cuda(const hidet_device_t *device) {
  return device && device->ordinal >= 0;
}

// Whether a device of ours may look at what lies there.
static bool is_near(const hidet_device_t *device, dl_device_t at) {
  if (is_cuda(device))
    return at.type == ON_CUDA_MANAGED ||
           (at.type == ON_CUDA && at.id == device->ordinal);
  return at.type == ON_CPU || at.type == ON_CUDA_HOST ||
         at.type == ON_CUDA_MANAGED;
}

static bool is_row_major(const dl_tensor_t *t) {
  int64_t step = 1;
  bool is_empty = false;
  for (int i = 0; i < t->rank; i++)
    is_empty |= t->shape[i] == 0;
  for (int i = t->rank; t->strides && !is_empty && i-- > 0; step *= t->shape[i])
    if (t->shape[i] != 1 && t->strides[i] != step)
      return false;
  return true;
}

static const char *find_type(dl_type_t type) {
  for (int i = 0; i < NUM_TYPES; i++)
    if (types[i].code == type.code && types[i].bits == type.bits)
      return types[i].name;
  return NULL;
}

hidet_status_t hidet_array_from_dlpack(const hidet_device_t *device,
                                       const void *tensor,
                                       hidet_array_t *array) {
  const dl_tensor_t *t = tensor;
  if (array)
    *array = (hidet_array_t){0};
  if (!t || !array || (t->rank > 0 && !t->shape))
    return hd_api_needs();
  if (!is_near(device, t->device))
    return hd_api_refuse("the tensor is in another device's memory");
  if (t->rank < 0 || t->rank > HIDET_MAX_RANK)
    return hd_api_refuse("a tensor has at most 16 axes");
  int64_t count;
  if (!hd_shape_count(t->shape, (unsigned)t->rank, &count))
    return hd_api_refuse("a size is negative, or all of them pass 2^62");
  const char *type = t->type.lanes == 1 ? find_type(t->type) : NULL;
  if (!type)
    return hd_api_refuse("the tensor has elements that no array has");
  if (!is_row_major(t))
    return hd_api_refuse("the tensor is not row-major, or has gaps");
  array->type = type;
  array->rank = (unsigned)t->rank;
  for (int i = 0; i < t->rank; i++)
    array->shape[i] = t->shape[i];
  array->data = t->data ? (const char *)t->data + t->byte_offset : NULL;
  return hd_api_done();
}

hidet_status_t hidet_array_to_dlpack(const hidet_device_t *device,
                                     hidet_array_t *array, int64_t *strides,
                                     void *tensor) {
  if (!array || !array->type || !strides || !tensor)
    return hd_api_needs();
  if (array->rank > HIDET_MAX_RANK)
    return hd_api_refuse("an array has at most 16 axes");
  int64_t step = 1, count;
  if (!hd_shape_count(array->shape, array->rank, &count))
    return hd_api_refuse("a size is negative, or all of them pass 2^62");
  for (unsigned i = array->rank; i-- > 0; step *= array->shape[i])
    strides[i] = step;
  dl_tensor_t *t = tensor;
  for (int i = 0; i < NUM_TYPES; i++) {
    if (strcmp(types[i].name, array->type) != 0)
      continue;
    *t = (dl_tensor_t){.data = (void *)(uintptr_t)array->data,
                       .device = is_cuda(device)
                                     ? (dl_device_t){ON_CUDA, device->ordinal}
                                     : (dl_device_t){ON_CPU, 0},
                       .rank = (int32_t)array->rank,
                       .type = {types[i].code, types[i].bits, 1},
                       .shape = array->shape,
                       .strides = strides};
    return hd_api_done();
  }
  return hd_api_refuse("DLPack has no such elements");
}
