// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The formats of printf: text with conversions, one for each argument.
//
//   %[flags][width][.precision]conversion     flags: - + space # 0
//
//   d i          integers, with their sign
//   u x X o      integers, as the unsigned number of their bits
//   f F e E g G a A  floats
//   %%           a percent sign
//
// No size stands in them (%lld): the argument's type says it.
#ifndef HIDET_IR_FORMAT_H
#define HIDET_IR_FORMAT_H

#include "IR/Type.h"

#include <stdbool.h>
#include <stddef.h>

enum {
  HD_FORMAT_MAX_FLAGS = 5,
  HD_FORMAT_MAX_DIGITS = 3, // Of a width, and of a precision.
  HD_FORMAT_MAX_SIZE = 16,  // Of a conversion.
};

typedef struct hd_conversion {
  const char *text; // From its '%' on.
  size_t size;      // To its letter; 0: it is none that there is.
  char letter;
} hd_conversion_t;

// The conversion that takes the next argument, from *format on, which goes past
// it. False: there is none.
bool hd_format_next(const char **format, hd_conversion_t *conversion);
bool hd_conversion_is_float(const hd_conversion_t *conversion);
bool hd_conversion_is_signed(const hd_conversion_t *conversion);
// Whether values of a type can be converted so. Bools are 0 and 1.
bool hd_conversion_takes(const hd_conversion_t *conversion, hd_type_t type);

// The format as C has it where each integer is a long long and each float a
// double, into out, which has hd_format_wide_size() bytes.
size_t hd_format_wide_size(const char *format);
void hd_format_widen(const char *format, char *out);

#endif
