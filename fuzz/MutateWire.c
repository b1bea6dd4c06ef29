// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libFuzzer's mutations for protocol buffers: they work on fields, and set the
// lengths of the messages around them, so that what comes out is still a
// message. One in four is left to libFuzzer's own mutations of bytes.

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed);

enum { MAX_FIELDS = 512, MAX_DEPTH = 30, VARINT = 0, BYTES = 2 };

typedef struct span {
  const uint8_t *data;
  size_t size;
} span_t;

typedef struct field {
  span_t whole, content; // Of BYTES: without the length.
  uint64_t key;
} field_t;

// A growing output of bounded size.
typedef struct out {
  uint8_t *data;
  size_t size, max_size;
} out_t;

static uint32_t pick(uint32_t *random, size_t count) {
  *random = *random * 1664525u + 1013904223u;
  return (uint32_t)((*random >> 8) % count);
}

static bool read_varint(span_t in, size_t *at, uint64_t *value) {
  *value = 0;
  for (unsigned shift = 0; shift < 64 && *at < in.size; shift += 7) {
    uint8_t byte = in.data[(*at)++];
    *value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80)
      return true;
  }
  return false;
}

// The fields of a message; 0 where it is none.
static size_t split(span_t in, field_t *fields) {
  size_t count = 0, at = 0;
  while (at < in.size && count < MAX_FIELDS) {
    field_t *field = &fields[count++];
    size_t begin = at;
    uint64_t length = 0;
    if (!read_varint(in, &at, &field->key) || field->key >> 3 == 0)
      return 0;
    size_t content = at;
    bool ok = true;
    switch (field->key & 7) {
    case VARINT:
      ok = read_varint(in, &at, &length);
      length = 0;
      break;
    case 1:
      length = 8;
      break;
    case BYTES:
      ok = read_varint(in, &at, &length);
      content = at;
      break;
    case 5:
      length = 4;
      break;
    default:
      return 0;
    }
    if (!ok || length > in.size - at)
      return 0;
    at += length;
    field->whole = (span_t){in.data + begin, at - begin};
    field->content = (span_t){in.data + content, at - content};
  }
  return at == in.size ? count : 0;
}

static void put(out_t *out, span_t span) {
  if (span.size > out->max_size - out->size)
    return;
  if (span.size)
    memcpy(out->data + out->size, span.data, span.size);
  out->size += span.size;
}

static void put_varint(out_t *out, uint64_t value) {
  uint8_t bytes[10];
  size_t size = 0;
  for (; value >= 0x80; value >>= 7)
    bytes[size++] = (uint8_t)(value | 0x80);
  bytes[size++] = (uint8_t)value;
  put(out, (span_t){bytes, size});
}

static void put_content(out_t *out, uint64_t key, span_t content) {
  put_varint(out, key);
  put_varint(out, content.size);
  put(out, content);
}

// A number that is rarely met.
static void put_number(out_t *out, uint64_t key, uint32_t *random) {
  static const int64_t numbers[] = {
      0,         1,         2,         3,
      7,         16,        -1,        -2,
      127,       255,       INT32_MAX, INT32_MIN,
      INT64_MAX, INT64_MIN, 1 << 20,   (int64_t)1 << 40};
  put_varint(out, key);
  put_varint(out, (uint64_t)numbers[pick(random, sizeof numbers / 8)]);
}

// Bytes as libFuzzer changes them.
static void put_mutated(out_t *out, const field_t *field) {
  size_t max_size = field->content.size + 16;
  uint8_t *copy = malloc(max_size);
  if (!copy)
    return;
  memcpy(copy, field->content.data, field->content.size);
  size_t size = LLVMFuzzerMutate(copy, field->content.size, max_size);
  put_content(out, field->key, (span_t){copy, size});
  free(copy);
}

static void mutate(span_t in, out_t *out, uint32_t *random, int depth);

static void mutate_inside(const field_t *field, out_t *out, uint32_t *random,
                          int depth) {
  out_t inner = {malloc(out->max_size), 0, out->max_size};
  if (!inner.data)
    return;
  mutate(field->content, &inner, random, depth + 1);
  put_content(out, field->key, (span_t){inner.data, inner.size});
  free(inner.data);
}

static void change_field(const field_t *fields, size_t count, size_t at,
                         out_t *out, uint32_t *random) {
  const field_t *field = &fields[at];
  const field_t *other = &fields[pick(random, count)];
  switch (pick(random, 6)) {
  case 0: // Gone.
    break;
  case 1: // Twice.
    put(out, field->whole);
    put(out, field->whole);
    break;
  case 2: // Another's content.
    if ((other->key & 7) == BYTES)
      put_content(out, field->key, other->content);
    else
      put(out, other->whole);
    break;
  case 3: // Another field's number.
    put_varint(out, other->key);
    put(out, (span_t){field->content.data, field->content.size});
    break;
  case 4:
    put(out, field->whole);
    put(out, other->whole);
    break;
  case 5:
    if ((field->key & 7) == BYTES)
      put_mutated(out, field);
    else
      put_number(out, (field->key & ~(uint64_t)7) | VARINT, random);
    break;
  }
}

static void mutate(span_t in, out_t *out, uint32_t *random, int depth) {
  field_t *fields = malloc(MAX_FIELDS * sizeof *fields);
  size_t count = fields ? split(in, fields) : 0;
  if (count == 0) {
    put(out, in);
    free(fields);
    return;
  }
  size_t chosen = pick(random, count);
  field_t *inner = malloc(MAX_FIELDS * sizeof *inner);
  for (size_t i = 0; i < count; i++) {
    if (i != chosen)
      put(out, fields[i].whole);
    else if (inner && (fields[i].key & 7) == BYTES && depth < MAX_DEPTH &&
             split(fields[i].content, inner) > 0 && pick(random, 4) > 0)
      mutate_inside(&fields[i], out, random, depth);
    else
      change_field(fields, count, i, out, random);
  }
  free(inner);
  free(fields);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed) {
  uint32_t random = seed;
  if (size == 0 || pick(&random, 4) == 0)
    return LLVMFuzzerMutate(data, size, max_size);
  out_t out = {malloc(max_size), 0, max_size};
  if (!out.data)
    return size;
  mutate((span_t){data, size}, &out, &random, 0);
  if (out.size > 0)
    memcpy(data, out.data, out.size);
  size_t result = out.size > 0 ? out.size : size;
  free(out.data);
  return result;
}
