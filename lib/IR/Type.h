// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element types: a scalar, or a short vector of one.
#ifndef HIDET_IR_TYPE_H
#define HIDET_IR_TYPE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum hd_scalar {
#define HD_SCALAR(name, text, bits, class, digits, most, least) HD_##name,
#include "IR/Scalars.def"
#undef HD_SCALAR
  HD_SCALAR_COUNT
} hd_scalar_t;

typedef enum hd_scalar_class {
  HD_CLASS_VOID,
  HD_CLASS_BOOL,
  HD_CLASS_SIGNED,
  HD_CLASS_UNSIGNED,
  HD_CLASS_FLOAT,
  HD_CLASS_OPAQUE,
} hd_scalar_class_t;

// The value of a scalar. Integers and bool: i, in the range of their type (u64:
// its bits). Floats: f, rounded to their type.
typedef union hd_number {
  int64_t i;
  double f;
} hd_number_t;

// Small enough to be passed by value. A scalar has one lane.
typedef struct hd_type {
  uint8_t scalar; // hd_scalar_t
  uint8_t lanes;
} hd_type_t;

enum { HD_MAX_LANES = 32 };

static inline hd_type_t hd_type(hd_scalar_t scalar) {
  return (hd_type_t){(uint8_t)scalar, 1};
}
static inline hd_type_t hd_type_vector(hd_scalar_t scalar, unsigned lanes) {
  return (hd_type_t){(uint8_t)scalar, (uint8_t)lanes};
}
static inline bool hd_type_equal(hd_type_t a, hd_type_t b) {
  return a.scalar == b.scalar && a.lanes == b.lanes;
}
// The type of one lane.
static inline hd_type_t hd_type_lane(hd_type_t type) {
  return (hd_type_t){type.scalar, 1};
}

typedef struct hd_scalar_info {
  const char *name;
  uint8_t bits;
  uint8_t class; // hd_scalar_class_t
  uint8_t digits;
  int16_t max_exponent, min_exponent;
} hd_scalar_info_t;

// By hd_scalar_t.
extern const hd_scalar_info_t hd_scalar_infos[HD_SCALAR_COUNT];

static inline hd_scalar_class_t hd_scalar_class(hd_scalar_t scalar) {
  return (hd_scalar_class_t)hd_scalar_infos[scalar].class;
}
static inline const char *hd_scalar_name(hd_scalar_t scalar) {
  return hd_scalar_infos[scalar].name;
}
static inline unsigned hd_scalar_bits(hd_scalar_t scalar) {
  return hd_scalar_infos[scalar].bits;
}
// The next three of floats.
static inline unsigned hd_scalar_digits(hd_scalar_t scalar) {
  return hd_scalar_infos[scalar].digits;
}
static inline int hd_scalar_max_exponent(hd_scalar_t scalar) {
  return hd_scalar_infos[scalar].max_exponent;
}
static inline int hd_scalar_min_exponent(hd_scalar_t scalar) { // Normal ones'.
  return hd_scalar_infos[scalar].min_exponent;
}

// In memory; 0 for void. Sub-byte scalars take whole bytes only as vectors or
// tensors, so ask hd_type_bits() for them.
static inline unsigned hd_type_bits(hd_type_t type) {
  return hd_scalar_infos[type.scalar].bits * (unsigned)type.lanes;
}

// Lanes do not matter.
static inline bool hd_type_is_float(hd_type_t type) {
  return hd_scalar_infos[type.scalar].class == HD_CLASS_FLOAT;
}
static inline bool hd_type_is_signed(hd_type_t type) { // Integers.
  return hd_scalar_infos[type.scalar].class == HD_CLASS_SIGNED;
}
static inline bool hd_type_is_unsigned(hd_type_t type) { // Integers, not bool.
  return hd_scalar_infos[type.scalar].class == HD_CLASS_UNSIGNED;
}
static inline bool hd_type_is_integer(hd_type_t type) { // One of the two.
  return hd_type_is_signed(type) || hd_type_is_unsigned(type);
}
// Equal, or integers that a cast leaves every bit of.
static inline bool hd_type_same_bits(hd_type_t a, hd_type_t b) {
  return hd_type_equal(a, b) ||
         (hd_type_is_integer(a) && hd_type_is_integer(b) &&
          a.lanes == b.lanes && hd_type_bits(a) == hd_type_bits(b));
}
static inline bool hd_type_is_bool(hd_type_t type) {
  return hd_scalar_infos[type.scalar].class == HD_CLASS_BOOL;
}

// Parses "f16" or "f16x2"; false where it names no type.
bool hd_type_parse(const char *text, hd_type_t *type);

// "f16x2". The text lies in a static table and lives for ever.
const char *hd_type_name(hd_type_t type);

#endif
