// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of ONNX's element types.
#ifndef HIDET_GRAPH_ONNX_TYPES_H
#define HIDET_GRAPH_ONNX_TYPES_H

#include "Graph/ONNX/Wire.h"

// The field that holds elements of a type where raw_data does not; 0 for a
// number that is no type.
hd_onnx_field_t hd_onnx_field(int32_t data_type);

#endif
