// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Graph/ONNX/Types.h"

typedef struct row {
  const char *name;
  hd_scalar_t scalar;
  hd_onnx_field_t field;
} row_t;

static const row_t rows[] = {
#define HD_ONNX_TYPE(number, name, scalar, field)                              \
  [number] = {name, HD_##scalar, HD_ONNX_##field},
#include "Graph/ONNX/Types.def"
#undef HD_ONNX_TYPE
};

static const row_t *row_of(int32_t data_type) {
  static const row_t unknown = {"unknown", HD_VOID, (hd_onnx_field_t)0};
  return data_type > 0 && (size_t)data_type < sizeof rows / sizeof rows[0]
             ? &rows[data_type]
             : &unknown;
}

hd_scalar_t hd_onnx_scalar(int32_t data_type) {
  return row_of(data_type)->scalar;
}

const char *hd_onnx_type_name(int32_t data_type) {
  return row_of(data_type)->name;
}

hd_onnx_field_t hd_onnx_field(int32_t data_type) {
  return row_of(data_type)->field;
}
