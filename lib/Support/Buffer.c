// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/Buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void unwind(void *argument) {
  hd_buffer_t *buffer = argument;
  free(buffer->data);
  *buffer = (hd_buffer_t){0};
}

void hd_buffer_init_local(hd_buffer_t *buffer, hd_budget_t *budget) {
  *buffer = (hd_buffer_t){.budget = budget};
  if (budget)
    hd_budget_defer(budget, &buffer->cleanup, unwind, buffer);
}

void hd_buffer_fini(hd_buffer_t *buffer) {
  if (buffer->budget)
    hd_budget_keep(buffer->budget, &buffer->cleanup);
  unwind(buffer);
}

void hd_buffer_end(void *buffer) { hd_buffer_fini(buffer); }

static bool reserve(hd_buffer_t *buffer, size_t more) {
  if (buffer->capacity - buffer->size > more)
    return true;
  size_t capacity = buffer->capacity ? buffer->capacity * 2 : 256;
  while (capacity - buffer->size <= more)
    capacity *= 2;
  char *data = realloc(buffer->data, capacity);
  if (!data && buffer->budget)
    hd_budget_exhausted(buffer->budget, HD_EXHAUSTED_MEMORY);
  if (!data) {
    buffer->failed = true;
    return false;
  }
  buffer->data = data;
  buffer->capacity = capacity;
  return true;
}

void hd_buffer_write(hd_buffer_t *buffer, const char *text, size_t size) {
  if (!reserve(buffer, size))
    return;
  if (size)
    memcpy(buffer->data + buffer->size, text, size);
  buffer->size += size;
  buffer->data[buffer->size] = '\0';
}

void hd_buffer_puts(hd_buffer_t *buffer, const char *text) {
  hd_buffer_write(buffer, text, strlen(text));
}

void hd_buffer_vprintf(hd_buffer_t *buffer, const char *format, va_list args) {
  if (!reserve(buffer, 0))
    return;
  va_list again;
  va_copy(again, args);
  size_t room = buffer->capacity - buffer->size;
  int size = vsnprintf(buffer->data + buffer->size, room, format, again);
  va_end(again);
  if (size < 0 || (size_t)size >= room) { // Once more, with room.
    buffer->data[buffer->size] = '\0';
    if (size < 0 || !reserve(buffer, (size_t)size))
      return;
    vsnprintf(buffer->data + buffer->size, (size_t)size + 1, format, args);
  }
  buffer->size += (size_t)size;
}

void hd_buffer_printf(hd_buffer_t *buffer, const char *format, ...) {
  va_list args;
  va_start(args, format);
  hd_buffer_vprintf(buffer, format, args);
  va_end(args);
}

const char *hd_buffer_text(const hd_buffer_t *buffer) {
  return buffer->data ? buffer->data : "";
}
