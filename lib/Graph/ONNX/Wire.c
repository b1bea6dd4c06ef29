// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The walk follows protobuf-c's own descriptors, so there is one description of
// the messages: onnx.proto. It writes what it has checked to a buffer, field by
// field; only then does protobuf-c see it. Each length is written in five bytes
// and set when its message is complete.
#include "Graph/ONNX/Wire.h"

#include "IR/Text/Lexer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
  VARINT = PROTOBUF_C_WIRE_TYPE_VARINT,
  FIXED64 = PROTOBUF_C_WIRE_TYPE_64BIT,
  BYTES = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
  FIXED32 = PROTOBUF_C_WIRE_TYPE_32BIT,
  // The importer's own fields: taken from no file.
  FIRST_PIECE = 1000,
  NUM_PIECES = 1001,
  FIRST_OWN_FIELD = 1000,
  MAX_FIELDS = 64, // Of a message, as onnx.proto has it.
  LENGTH_BYTES = 5,
  // What protobuf-c takes while it unpacks: an entry for each field of a
  // message beyond the first sixteen, in blocks that double.
  SCANNED_BYTES = 96,
  FREE_FIELDS = 16,
};

typedef struct walk {
  hd_context_t *context;
  const char *name;
  const unsigned char *begin; // For places in messages.
  hd_arena_t *arena;
  hd_buffer_t out;
  HD_VEC(hd_onnx_piece_t) pieces;
  size_t messages, memory;
} walk_t;

typedef struct field {
  uint32_t number;
  int wire;
  const unsigned char *key;  // Where it begins,
  const unsigned char *data; // what it holds, without a length,
  size_t size;
  const unsigned char *end; // and where it ends.
} field_t;

static bool malformed(walk_t *walk, const unsigned char *at, const char *what) {
  const char *text = hd_arena_printf(walk->arena, "%s, at byte %zu", what,
                                     (size_t)(at - walk->begin));
  return hd_error(&walk->context->diags, (hd_loc_t){0}, HD_E1101, walk->name,
                  text);
}

static bool too_large(walk_t *walk, const char *what, size_t limit) {
  const char *text = hd_arena_printf(walk->arena, "'%s' holds more than %zu %s",
                                     walk->name, limit, what);
  return hd_error(&walk->context->diags, (hd_loc_t){0}, HD_E0904, text);
}

bool hd_onnx_read_varint(const unsigned char **at, const unsigned char *end,
                         uint64_t *value) {
  *value = 0;
  for (unsigned shift = 0; shift < 70 && *at < end; shift += 7) {
    unsigned char byte = *(*at)++;
    *value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80)
      return true;
  }
  return false;
}

// Reads a field's key and finds where the field ends.
static bool read_field(walk_t *walk, const unsigned char **at,
                       const unsigned char *end, field_t *field) {
  field->key = *at;
  uint64_t key, length = 0;
  if (!hd_onnx_read_varint(at, end, &key) || key >> 3 == 0 ||
      key >> 3 >= 1 << 29)
    return malformed(walk, field->key, "no field begins here");
  field->number = (uint32_t)(key >> 3);
  field->wire = key & 7;
  field->data = *at;
  bool fits = true;
  switch (field->wire) {
  case VARINT:
    fits = hd_onnx_read_varint(at, end, &length);
    length = 0;
    break;
  case FIXED32:
    length = 4;
    break;
  case FIXED64:
    length = 8;
    break;
  case BYTES:
    fits = hd_onnx_read_varint(at, end, &length);
    field->data = *at;
    break;
  default:
    return malformed(walk, field->key, "a field of no known kind");
  }
  if (!fits || length > (size_t)(end - *at))
    return malformed(walk, field->key, "a field passes the end");
  *at += length;
  field->end = *at;
  field->size = (size_t)(field->end - field->data);
  return true;
}

static int wire_of(ProtobufCType type) {
  switch (type) {
  case PROTOBUF_C_TYPE_INT32:
  case PROTOBUF_C_TYPE_SINT32:
  case PROTOBUF_C_TYPE_INT64:
  case PROTOBUF_C_TYPE_SINT64:
  case PROTOBUF_C_TYPE_UINT32:
  case PROTOBUF_C_TYPE_UINT64:
  case PROTOBUF_C_TYPE_BOOL:
  case PROTOBUF_C_TYPE_ENUM:
    return VARINT;
  case PROTOBUF_C_TYPE_SFIXED32:
  case PROTOBUF_C_TYPE_FIXED32:
  case PROTOBUF_C_TYPE_FLOAT:
    return FIXED32;
  case PROTOBUF_C_TYPE_SFIXED64:
  case PROTOBUF_C_TYPE_FIXED64:
  case PROTOBUF_C_TYPE_DOUBLE:
    return FIXED64;
  case PROTOBUF_C_TYPE_STRING:
  case PROTOBUF_C_TYPE_BYTES:
  case PROTOBUF_C_TYPE_MESSAGE:
    return BYTES;
  }
  return BYTES;
}

static bool take_memory(walk_t *walk, size_t bytes) {
  walk->memory += bytes;
  if (walk->memory > HD_ONNX_MAX_BYTES)
    return too_large(walk, "bytes beside weights", HD_ONNX_MAX_BYTES);
  return true;
}

static void write_bytes(walk_t *walk, const void *bytes, size_t size) {
  hd_buffer_write(&walk->out, bytes, size);
  if (walk->out.failed)
    hd_budget_exhausted(&walk->context->budget, HD_EXHAUSTED_MEMORY);
}

static void write_varint(walk_t *walk, uint64_t value) {
  char bytes[10];
  size_t size = 0;
  for (; value >= 0x80; value >>= 7)
    bytes[size++] = (char)(value | 0x80);
  bytes[size++] = (char)value;
  write_bytes(walk, bytes, size);
}

static bool is_data(uint32_t number) {
  switch ((hd_onnx_field_t)number) {
  case HD_ONNX_FLOAT_DATA:
  case HD_ONNX_INT32_DATA:
  case HD_ONNX_STRING_DATA:
  case HD_ONNX_INT64_DATA:
  case HD_ONNX_RAW_DATA:
  case HD_ONNX_DOUBLE_DATA:
  case HD_ONNX_UINT64_DATA:
    return true;
  }
  return false;
}

// Notes where elements stand. Elements with keys join those before them.
static bool keep_piece(walk_t *walk, size_t first, const field_t *field) {
  hd_onnx_field_t number = (hd_onnx_field_t)field->number;
  bool text = number == HD_ONNX_RAW_DATA || number == HD_ONNX_STRING_DATA;
  int wire = number == HD_ONNX_FLOAT_DATA    ? FIXED32
             : number == HD_ONNX_DOUBLE_DATA ? FIXED64
             : text                          ? BYTES
                                             : VARINT;
  if (field->wire != wire && field->wire != BYTES)
    return malformed(walk, field->key, "a tensor's data of a wrong kind");
  bool packed = field->wire == BYTES;
  hd_onnx_piece_t piece = {number, 0, field->data, field->size};
  if (!packed) {
    piece = (hd_onnx_piece_t){number, (uint32_t)(field->data - field->key),
                              field->key, (size_t)(field->end - field->key)};
    hd_onnx_piece_t *last = walk->pieces.size > first
                                ? &walk->pieces.data[walk->pieces.size - 1]
                                : NULL;
    if (last && last->field == number && last->key_size == piece.key_size &&
        last->data + last->size == piece.data) {
      last->size += piece.size;
      return true;
    }
  } else if (number == HD_ONNX_STRING_DATA && walk->pieces.size > first) {
    return true; // That there are strings is all that matters.
  }
  if (!take_memory(walk, 2 * sizeof piece))
    return false;
  hd_vec_push(walk->arena, &walk->pieces, piece);
  return true;
}

// What has at most one value has one.
static bool check_once(walk_t *walk, const ProtobufCMessageDescriptor *type,
                       const ProtobufCFieldDescriptor *info, uint64_t *seen,
                       const field_t *field) {
  if (info->label == PROTOBUF_C_LABEL_REPEATED)
    return true;
  uint64_t same = 0;
  for (unsigned i = 0; i < type->n_fields; i++) {
    const ProtobufCFieldDescriptor *other = &type->fields[i];
    if (other == info || (info->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
                          other->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
                          other->quantifier_offset == info->quantifier_offset))
      same |= (uint64_t)1 << i;
  }
  if (*seen & same)
    return malformed(walk, field->key, "a field is given twice");
  *seen |= same;
  return true;
}

// The memory that protobuf-c needs for a field that is no message.
static bool count_field(walk_t *walk, const ProtobufCFieldDescriptor *info,
                        const field_t *field) {
  size_t bytes = 16;
  if (info->type == PROTOBUF_C_TYPE_STRING ||
      info->type == PROTOBUF_C_TYPE_BYTES)
    bytes = field->size + 48;
  else if (field->wire == BYTES) // Packed: a number may take one byte.
    bytes = field->size * 8;
  return take_memory(walk, bytes + (size_t)(field->end - field->key));
}

static bool walk_message(walk_t *walk, const ProtobufCMessageDescriptor *type,
                         const unsigned char *at, const unsigned char *end,
                         unsigned depth);

static bool walk_submessage(walk_t *walk, const ProtobufCFieldDescriptor *info,
                            const field_t *field, unsigned depth) {
  if (depth == HD_ONNX_MAX_NESTING)
    return malformed(walk, field->key, "messages are nested too deeply");
  write_varint(walk, (uint64_t)field->number << 3 | BYTES);
  write_bytes(walk, "\0\0\0\0\0", LENGTH_BYTES);
  size_t begin = walk->out.size;
  if (!walk_message(walk, info->descriptor, field->data, field->end, depth + 1))
    return false;
  size_t length = walk->out.size - begin;
  for (int i = 0; i < LENGTH_BYTES; i++)
    walk->out.data[begin - LENGTH_BYTES + (size_t)i] =
        (char)((length >> (7 * i) & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
  return true;
}

static bool walk_field(walk_t *walk, const ProtobufCMessageDescriptor *type,
                       const field_t *field, uint64_t *seen, unsigned depth) {
  const ProtobufCFieldDescriptor *info =
      field->number < FIRST_OWN_FIELD
          ? protobuf_c_message_descriptor_get_field(type, field->number)
          : NULL;
  if (!info)
    return true;
  int wire = wire_of(info->type);
  if (field->wire != wire &&
      !(field->wire == BYTES && info->label == PROTOBUF_C_LABEL_REPEATED))
    return malformed(walk, field->key, "a field of a wrong kind");
  if (!check_once(walk, type, info, seen, field))
    return false;
  if (info->type == PROTOBUF_C_TYPE_MESSAGE)
    return walk_submessage(walk, info, field, depth);
  if (info->type == PROTOBUF_C_TYPE_STRING &&
      !hd_is_text((const char *)field->data, field->size))
    return malformed(walk, field->key, "a name that is not UTF-8");
  if (!count_field(walk, info, field))
    return false;
  write_bytes(walk, (const char *)field->key,
              (size_t)(field->end - field->key));
  return true;
}

static bool walk_message(walk_t *walk, const ProtobufCMessageDescriptor *type,
                         const unsigned char *at, const unsigned char *end,
                         unsigned depth) {
  if (++walk->messages > HD_ONNX_MAX_MESSAGES)
    return too_large(walk, "messages", HD_ONNX_MAX_MESSAGES);
  if (!take_memory(walk, type->sizeof_message + 4 * sizeof(void *)))
    return false;
  bool tensor = type == &hd_onnx__tensor__descriptor;
  size_t first = walk->pieces.size;
  uint64_t seen = 0, raw = 0;
  for (size_t count = 0, kept = 0; at < end; count++) {
    field_t field;
    size_t written = walk->out.size;
    if (!read_field(walk, &at, end, &field))
      return false;
    if (!tensor || !is_data(field.number)) {
      if (!walk_field(walk, type, &field, &seen, depth))
        return false;
    } else if (!keep_piece(walk, first, &field)) {
      return false;
    } else if (field.number == HD_ONNX_RAW_DATA && raw++ > 0) {
      return malformed(walk, field.key, "raw_data is given twice");
    }
    if (walk->out.size > written && ++kept > FREE_FIELDS &&
        !take_memory(walk, SCANNED_BYTES))
      return false;
    if ((count & 0xfff) == 0xfff)
      hd_budget_check(&walk->context->budget);
  }
  if (walk->pieces.size > first) {
    write_varint(walk, FIRST_PIECE << 3 | VARINT);
    write_varint(walk, first);
    write_varint(walk, NUM_PIECES << 3 | VARINT);
    write_varint(walk, walk->pieces.size - first);
  }
  return true;
}

static void *allocate(void *arena, size_t size) {
  return hd_arena_alloc(arena, size);
}

static void release(void *arena, void *memory) {
  (void)arena, (void)memory; // The arena frees all at once.
}

bool hd_onnx_unpack(hd_context_t *context, hd_arena_t *arena, const char *name,
                    const ProtobufCMessageDescriptor *type, const void *bytes,
                    size_t size, hd_onnx_message_t *message) {
  walk_t walk = {
      .context = context, .name = name, .begin = bytes, .arena = arena};
  hd_cleanup_t cleanup;
  hd_budget_defer(&context->budget, &cleanup, hd_buffer_end, &walk.out);
  bool ok =
      walk_message(&walk, type, bytes, (const unsigned char *)bytes + size, 0);
  if (ok) {
    ProtobufCAllocator allocator = {allocate, release, arena};
    message->root =
        protobuf_c_message_unpack(type, &allocator, walk.out.size,
                                  (const uint8_t *)hd_buffer_text(&walk.out));
    message->pieces = walk.pieces.data;
    ok = message->root || malformed(&walk, bytes, "protobuf-c refuses it");
  }
  hd_budget_clean(&context->budget, &cleanup);
  return ok;
}
