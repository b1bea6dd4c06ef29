// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Graph/OnnxWriter.h"

#include <string.h>

enum { VARINT = 0, BYTES = 2, FIXED32 = 5 };

void put_varint(hd_buffer_t *out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    hd_buffer_write(out, &(char){(char)(value | 0x80)}, 1);
  hd_buffer_write(out, &(char){(char)value}, 1);
}

void put_int(hd_buffer_t *out, unsigned field, int64_t value) {
  put_varint(out, field << 3 | VARINT);
  put_varint(out, (uint64_t)value);
}

void put_bytes(hd_buffer_t *out, unsigned field, const void *bytes,
               size_t size) {
  put_varint(out, field << 3 | BYTES);
  put_varint(out, size);
  hd_buffer_write(out, bytes, size);
}

void put_text(hd_buffer_t *out, unsigned field, const char *text) {
  put_bytes(out, field, text, strlen(text));
}

void put_float(hd_buffer_t *out, unsigned field, float value) {
  put_varint(out, field << 3 | FIXED32);
  hd_buffer_write(out, (const char *)&value, 4);
}

void put_message(hd_buffer_t *out, unsigned field, hd_buffer_t *message) {
  put_bytes(out, field, hd_buffer_text(message), message->size);
  hd_buffer_fini(message);
}

hd_buffer_t make_tensor(const char *name, int type, const int64_t *dims) {
  hd_buffer_t tensor = {0};
  for (; *dims != -1; dims++)
    put_int(&tensor, 1, *dims);
  put_int(&tensor, 2, type);
  put_text(&tensor, 8, name);
  return tensor;
}

hd_buffer_t make_value_info(const char *name, int type, const int64_t *dims) {
  hd_buffer_t info = {0}, proto = {0}, tensor = {0}, shape = {0};
  for (; *dims != -9; dims++) {
    hd_buffer_t dim = {0};
    if (*dims == -1)
      put_text(&dim, 2, "n");
    else if (*dims != -2)
      put_int(&dim, 1, *dims);
    put_message(&shape, 1, &dim);
  }
  put_int(&tensor, 1, type);
  put_message(&tensor, 2, &shape);
  put_message(&proto, 1, &tensor);
  put_text(&info, 1, name);
  put_message(&info, 2, &proto);
  return info;
}

static void put_list(hd_buffer_t *out, unsigned field, const char *list) {
  while (*list) {
    size_t size = strcspn(list, ",");
    put_bytes(out, field, list, size);
    list += size + (list[size] == ',');
  }
}

hd_buffer_t make_node(const char *op, const char *inputs, const char *outputs) {
  hd_buffer_t node = {0};
  put_list(&node, 1, inputs);
  put_list(&node, 2, outputs);
  put_text(&node, 4, op);
  return node;
}

hd_buffer_t make_model(hd_buffer_t *graph, int version) {
  hd_buffer_t model = {0}, opset = {0};
  put_int(&model, 1, 8);
  put_message(&model, 7, graph);
  put_text(&opset, 1, "");
  put_int(&opset, 2, version);
  put_message(&model, 8, &opset);
  return model;
}
