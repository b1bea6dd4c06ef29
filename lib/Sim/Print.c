// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// printf of kernels, to the standard output of the process, as the driver does
// it on a GPU. Each call's text stays together, those of a thread in their
// order.
#include "CodeGen/SimAbi.h"
#include "IR/Format.h"
#include "Support/Buffer.h"

#include <stdio.h>
#include <string.h>

// Text without a conversion: "%%" is a percent sign.
static void put_text(hd_buffer_t *out, const char *text, const char *end) {
  for (; text < end; text++) {
    hd_buffer_write(out, text, 1);
    text += *text == '%';
  }
}

static void put_value(hd_buffer_t *out, const hd_conversion_t *conversion,
                      uint64_t bits) {
  char format[HD_FORMAT_MAX_SIZE + 3];
  size_t size = conversion->size - 1;
  bool is_float = hd_conversion_is_float(conversion);
  double real;
  snprintf(format, sizeof format, "%.*s%s%c", (int)size, conversion->text,
           is_float ? "" : "ll", conversion->letter);
  memcpy(&real, &bits, sizeof real);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  if (is_float)
    hd_buffer_printf(out, format, real);
  else
    hd_buffer_printf(out, format, (long long)bits);
#pragma GCC diagnostic pop
}

void hd_sim_print(const char *format, const uint64_t *values) {
  hd_buffer_t out = {0};
  hd_conversion_t conversion;
  const char *from = format;
  for (; hd_format_next(&format, &conversion); from = format) {
    put_text(&out, from, conversion.text);
    put_value(&out, &conversion, *values++);
  }
  put_text(&out, from, from + strlen(from));
  if (!out.failed)
    fwrite(hd_buffer_text(&out), 1, out.size, stdout);
  hd_buffer_fini(&out);
}
