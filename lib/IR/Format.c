// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Format.h"

#include <string.h>

static const char letters[] = "diuxXofFeEgGaA";

static const char *skip_digits(const char *at) {
  const char *first = at;
  while (*at >= '0' && *at <= '9' && at - first < HD_FORMAT_MAX_DIGITS)
    at++;
  return at;
}

bool hd_format_next(const char **format, hd_conversion_t *conversion) {
  const char *at = *format;
  while ((at = strchr(at, '%')) && at[1] == '%')
    at += 2;
  if (!at)
    return false;
  *conversion = (hd_conversion_t){.text = at};
  const char *flags = ++at;
  while (*at && strchr("-+ #0", *at) && at - flags < HD_FORMAT_MAX_FLAGS)
    at++;
  at = skip_digits(at);
  if (*at == '.')
    at = skip_digits(at + 1);
  conversion->letter = *at;
  if (*at && strchr(letters, *at))
    conversion->size = (size_t)(at + 1 - conversion->text);
  *format = *at ? at + 1 : at;
  return true;
}

bool hd_conversion_is_float(const hd_conversion_t *conversion) {
  return strchr("fFeEgGaA", conversion->letter) != NULL;
}

bool hd_conversion_is_signed(const hd_conversion_t *conversion) {
  return conversion->letter == 'd' || conversion->letter == 'i';
}

bool hd_conversion_takes(const hd_conversion_t *conversion, hd_type_t type) {
  return type.lanes == 1 &&
         (hd_conversion_is_float(conversion)
              ? hd_type_is_float(type)
              : hd_type_is_integer(type) || hd_type_is_bool(type));
}

// Writes where out is not NULL; returns the bytes with the final zero.
static size_t widen(const char *format, char *out) {
  hd_conversion_t conversion;
  size_t size = 0;
  const char *from = format;
  for (bool more = true; more; from = format) {
    more = hd_format_next(&format, &conversion);
    const char *end = more ? format - 1 : from + strlen(from);
    if (out)
      memcpy(out + size, from, (size_t)(end - from));
    size += (size_t)(end - from);
    if (!more)
      break;
    if (!hd_conversion_is_float(&conversion)) {
      if (out)
        memcpy(out + size, "ll", 2);
      size += 2;
    }
    if (out)
      out[size] = conversion.letter;
    size++;
  }
  if (out)
    out[size] = 0;
  return size + 1;
}

size_t hd_format_wide_size(const char *format) { return widen(format, NULL); }

void hd_format_widen(const char *format, char *out) { widen(format, out); }
