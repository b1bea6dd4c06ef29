// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions between element types, by the tables of ONNX's operator Cast.
#include "Graph/Expand/Lower/Lower.h"

#include <string.h>

// The floats of 8 bits that have values beyond the greatest finite one: the
// least number that rounds past it (to nearest, ties to even), and what such
// numbers, their negatives and NaN become without saturation.
typedef struct overflow {
  hd_scalar_t type;
  double limit;
  unsigned char special[3];
} overflow_t;

static const overflow_t overflows[] = {
    // 464 is between 448 and 480 and goes to the even one, 448.
    {HD_F8E4M3, 0x1.d000000000001p8, {0x7f, 0xff, 0x7f}},
    {HD_F8E4M3FNUZ, 248, {0x80, 0x80, 0x80}},
    {HD_F8E5M2, 61440, {0x7c, 0xfc, 0x7f}},
    {HD_F8E5M2FNUZ, 61440, {0x80, 0x80, 0x80}},
};

static const hd_value_t *bytes(hd_lowering_t *l, hd_scalar_t type,
                               const unsigned char *values, int64_t count) {
  hd_host_tensor_t *data;
  const hd_value_t *value = hd_lower_constant(l, type, &count, 1, &data);
  if (value)
    memcpy(data->data, values, (size_t)count);
  return value;
}

static const hd_value_t *cast_overflow(hd_lowering_t *l, const hd_value_t *x,
                                       const overflow_t *overflow) {
  hd_attributes_t attributes = {0};
  hd_attributes_float(l, &attributes, "limit", overflow->limit);
  const hd_value_t *inputs[] = {x,
                                bytes(l, overflow->type, overflow->special, 3)};
  return inputs[1]
             ? hd_lower_task(l, "cast_overflow", inputs, 2, &attributes, NULL)
             : NULL;
}

static const hd_value_t *cast_power(hd_lowering_t *l, const hd_value_t *x,
                                    bool saturate) {
  static const char *const modes[] = {"down", "nearest", "up"};
  const char *name = hd_lower_string(l, "round_mode", "up");
  int mode = 0;
  while (mode < 3 && strcmp(modes[mode], name) != 0)
    mode++;
  if (mode == 3) {
    hd_lower_invalid(l, "round_mode is '%s', not 'up', 'down' or 'nearest'",
                     name);
    return NULL;
  }
  hd_attributes_t attributes = {0};
  hd_attributes_int(l, &attributes, "mode", mode);
  hd_attributes_int(l, &attributes, "saturate", saturate);
  static const unsigned char nan[] = {0xff};
  const hd_value_t *inputs[] = {x, bytes(l, HD_F8E8M0, nan, 1)};
  return inputs[1]
             ? hd_lower_task(l, "cast_power", inputs, 2, &attributes, NULL)
             : NULL;
}

const hd_value_t *hd_lower_convert(hd_lowering_t *l, const hd_value_t *x,
                                   hd_scalar_t type) {
  if (type == x->type)
    return x;
  if (type == HD_BOOL)
    return hd_lower_unary(l, "cast_bool", x);
  // Out of the range of integers of a byte and more is undefined; of smaller
  // ones the tests of ONNX want the low bits.
  bool is_float = hd_type_is_float(hd_type(x->type));
  bool wraps = is_float && hd_scalar_bits(type) < 8;
  if (is_float && type == HD_F4E2M1)
    return hd_lower_unary(l, "cast_f4", x);
  hd_attributes_t attributes = {0};
  hd_attributes_type(l, &attributes, "U", type);
  return hd_lower_task(l, wraps ? "cast_wrap" : "cast", &x, 1, &attributes,
                       NULL);
}

static bool cast(hd_lowering_t *l, hd_scalar_t type) {
  const hd_value_t *x = hd_lower_input(l, 0), *y = NULL;
  bool saturate = hd_lower_int(l, "saturate", 1) != 0;
  bool is_float = hd_type_is_float(hd_type(x->type));
  const overflow_t *overflow = NULL;
  for (size_t i = 0; i < sizeof overflows / sizeof *overflows; i++)
    if (overflows[i].type == type)
      overflow = &overflows[i];
  if (x->type == type)
    y = x;
  else if (overflow && !saturate && x->type != HD_BOOL)
    y = cast_overflow(l, x, overflow);
  else if (type == HD_F8E8M0 && is_float)
    y = cast_power(l, x, saturate);
  else
    y = hd_lower_convert(l, x, type);
  return hd_lower_output(l, 0, y);
}

bool hd_onnx_cast(hd_lowering_t *l) {
  hd_scalar_t type = hd_lower_scalar_type(l, "to", HD_VOID);
  if (type == HD_VOID)
    return hd_node_attribute(hd_lower_node(l), "to")
               ? false
               : hd_lower_invalid(l, "the attribute 'to' is missing");
  return cast(l, type);
}

bool hd_onnx_cast_like(hd_lowering_t *l) {
  return cast(l, hd_lower_input(l, 1)->type);
}

// A bool has the bits of a number 0 or 1.
bool hd_onnx_bit_cast(hd_lowering_t *l) {
  const hd_value_t *x = hd_lower_input(l, 0), *y;
  hd_scalar_t type = hd_lower_scalar_type(l, "to", HD_VOID);
  if (type == HD_VOID)
    return false;
  if (hd_scalar_bits(type) != hd_scalar_bits(x->type))
    return hd_lower_invalid(l, "%s and %s differ in size",
                            hd_scalar_name(x->type), hd_scalar_name(type));
  hd_scalar_t number = x->type == HD_BOOL ? HD_U8 : x->type;
  hd_scalar_t wanted = type == HD_BOOL ? HD_U8 : type;
  y = hd_lower_convert(l, x, number);
  if (y && wanted != number) {
    hd_attributes_t attributes = {0};
    hd_attributes_type(l, &attributes, "U", wanted);
    const char *task =
        hd_arena_printf(hd_lower_arena(l), "bitcast_%u", hd_scalar_bits(type));
    y = hd_lower_task(l, task, &y, 1, &attributes, NULL);
  }
  y = y ? hd_lower_convert(l, y, type) : NULL;
  return hd_lower_output(l, 0, y);
}
