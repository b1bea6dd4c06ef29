// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first look at bytes that nobody vouches for (docs/ARCHITECTURE.md,
// "Models from strangers"): a walk over the wire format of protocol buffers
// that checks all that protobuf-c takes on trust (it recurses without a bound,
// copies every byte field, and spends 40 times its size on a file of empty
// messages), and leaves it a copy without weights.
#ifndef HIDET_GRAPH_ONNX_WIRE_H
#define HIDET_GRAPH_ONNX_WIRE_H

#include "Graph/ONNX/Import.h"
#include "Graph/ONNX/onnx.pb-c.h" // Generated from onnx.proto.

enum {
  HD_ONNX_MAX_NESTING = 100, // As other readers of protocol buffers have it.
  HD_ONNX_MAX_MESSAGES = 1 << 20,
  HD_ONNX_MAX_BYTES = 96 << 20, // Of messages in memory, without weights.
};

// The fields of a TensorProto that hold elements.
typedef enum hd_onnx_field {
  HD_ONNX_FLOAT_DATA = 4,
  HD_ONNX_INT32_DATA = 5,
  HD_ONNX_STRING_DATA = 6,
  HD_ONNX_INT64_DATA = 7,
  HD_ONNX_RAW_DATA = 9,
  HD_ONNX_DOUBLE_DATA = 10,
  HD_ONNX_UINT64_DATA = 11,
} hd_onnx_field_t;

// Where elements of a tensor stand in the input. Packed: one after the other.
// Else each has its key before it (key_size bytes).
typedef struct hd_onnx_piece {
  hd_onnx_field_t field;
  uint32_t key_size; // 0: packed, or raw_data.
  const unsigned char *data;
  size_t size;
} hd_onnx_piece_t;

typedef struct hd_onnx_message {
  const ProtobufCMessage *root;  // Of the type asked for, in the arena.
  const hd_onnx_piece_t *pieces; // Tensor.first_piece is an index into these.
} hd_onnx_message_t;

// Walks and unpacks. Everything lives in the arena; pieces point into bytes.
// name is for messages. False after an error: E1101 (malformed: where), E0904
// (more than the bounds above).
bool hd_onnx_unpack(hd_context_t *context, hd_arena_t *arena, const char *name,
                    const ProtobufCMessageDescriptor *type, const void *bytes,
                    size_t size, hd_onnx_message_t *message);

// Reads a base-128 number; false where it does not end.
bool hd_onnx_read_varint(const unsigned char **at, const unsigned char *end,
                         uint64_t *value);

#endif
