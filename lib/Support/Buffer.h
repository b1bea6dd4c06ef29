// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Growing text on the heap, always NUL-terminated once something was written.
#ifndef HIDET_SUPPORT_BUFFER_H
#define HIDET_SUPPORT_BUFFER_H

#include "Support/Budget.h"

#include <stdarg.h>

typedef struct hd_buffer {
  char *data;
  size_t size, capacity;
  bool failed;         // Memory ran out; what was written since is lost.
  hd_budget_t *budget; // Of a local one; NULL: it is none.
  hd_cleanup_t cleanup;
} hd_buffer_t;

// Empties it. What unwinds ends it, and it unwinds where memory runs out: a
// text that is compared, or a key, is never cut short. Else zeros are an empty
// one.
void hd_buffer_init_local(hd_buffer_t *buffer, hd_budget_t *budget);

void hd_buffer_fini(hd_buffer_t *buffer);
void hd_buffer_end(void *buffer); // The same, for hd_budget_defer().
void hd_buffer_write(hd_buffer_t *buffer, const char *text, size_t size);
void hd_buffer_puts(hd_buffer_t *buffer, const char *text);
void hd_buffer_printf(hd_buffer_t *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void hd_buffer_vprintf(hd_buffer_t *buffer, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

// The text; "" where nothing was written. Belongs to the buffer.
const char *hd_buffer_text(const hd_buffer_t *buffer);

#endif
