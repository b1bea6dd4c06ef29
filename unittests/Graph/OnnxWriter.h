// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes ONNX's messages byte by byte, wrong ones as well, by the numbers of
// the public schema.
#ifndef HIDET_UNITTESTS_GRAPH_ONNXWRITER_H
#define HIDET_UNITTESTS_GRAPH_ONNXWRITER_H

#include "Support/Buffer.h"

#include <stdint.h>

void put_varint(hd_buffer_t *out, uint64_t value);
void put_int(hd_buffer_t *out, unsigned field, int64_t value);
void put_bytes(hd_buffer_t *out, unsigned field, const void *bytes,
               size_t size);
void put_text(hd_buffer_t *out, unsigned field, const char *text);
void put_float(hd_buffer_t *out, unsigned field, float value);
// A message as a field; ends it.
void put_message(hd_buffer_t *out, unsigned field, hd_buffer_t *message);

// TensorProto without elements; dims end with -1.
hd_buffer_t make_tensor(const char *name, int type, const int64_t *dims);
// ValueInfoProto of a tensor. A dimension of -1 has the name "n", one of -2
// has none; dims end with -9.
hd_buffer_t make_value_info(const char *name, int type, const int64_t *dims);
// NodeProto; inputs and outputs are lists with commas between.
hd_buffer_t make_node(const char *op, const char *inputs, const char *outputs);
// A whole model around a GraphProto; ends it. version: of the operator set.
hd_buffer_t make_model(hd_buffer_t *graph, int version);

#endif
