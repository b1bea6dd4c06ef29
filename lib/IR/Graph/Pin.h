// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is settled of a node's schedule before the model of the hardware is
// asked: a template, and values for its parameters, some or all. A pin stands
// in the text (`with product_mma(BM = 128)`), or comes from measurements.
#ifndef HIDET_IR_GRAPH_PIN_H
#define HIDET_IR_GRAPH_PIN_H

#include "Support/Buffer.h"
#include "Support/Diagnostic.h"

#include <stdint.h>

typedef struct hd_pin_value {
  const char *name; // Of a parameter in the template's head.
  int64_t value;
  hd_loc_t loc;
} hd_pin_value_t;

typedef struct hd_pin {
  // HD_PIN_RULES: no template, but the rules, which take every task.
  const char *name;
  hd_loc_t loc;
  uint32_t num_values;
  const hd_pin_value_t *values; // Each parameter at most once.
  // Where it comes from, for messages: "as measured"; NULL: the text.
  const char *origin;
} hd_pin_t;

#define HD_PIN_RULES "rules"

// product_mma(BM = 128, BN = 64)
void hd_pin_print(const hd_pin_t *pin, hd_buffer_t *out);

#endif
