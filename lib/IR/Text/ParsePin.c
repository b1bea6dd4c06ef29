// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// with product_mma(BM = 128, BN = 64)
#include "IR/Text/GraphParser.h"

#include <string.h>

typedef HD_VEC(hd_pin_value_t) values_t;

static bool parse_value(hd_parser_t *p, values_t *values) {
  hd_pin_value_t value;
  value.name = hd_expect_name(p, &value.loc);
  if (!value.name || !hd_expect(p, "=") || !hd_parse_constant(p, &value.value))
    return false;
  for (size_t i = 0; i < values->size; i++)
    if (strcmp(values->data[i].name, value.name) == 0)
      return hd_error(p->diags, value.loc, HD_E0202, value.name);
  hd_vec_push(p->arena, values, value);
  return true;
}

const hd_pin_t *hd_parse_pin(hd_parser_t *p, const char *name, hd_loc_t loc) {
  hd_pin_t *pin = HD_ARENA_NEW(p->arena, hd_pin_t);
  values_t values = {0};
  if (!hd_expect(p, "("))
    return NULL;
  while (!hd_accept(p, ")"))
    if (!parse_value(p, &values) || (!hd_at(p, ")") && !hd_expect(p, ",")))
      return NULL;
  *pin = (hd_pin_t){.name = name,
                    .loc = loc,
                    .num_values = (uint32_t)values.size,
                    .values = values.data};
  return pin;
}
