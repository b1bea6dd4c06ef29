// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Graph/Pin.h"

void hd_pin_print(const hd_pin_t *pin, hd_buffer_t *out) {
  hd_buffer_printf(out, "%s(", pin->name);
  for (uint32_t i = 0; i < pin->num_values; i++)
    hd_buffer_printf(out, "%s%s = %lld", i ? ", " : "", pin->values[i].name,
                     (long long)pin->values[i].value);
  hd_buffer_puts(out, ")");
}
