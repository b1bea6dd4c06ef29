// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Math/Inputs.h"
#include "Support/Float.h"

#include <math.h>
#include <string.h>

uint64_t draw(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

// In [0, 1).
static double draw_unit(uint64_t *state) {
  return (double)(draw(state) >> 11) * 0x1p-53;
}

void fill_patterns(const reference_t *row, const format_t *format,
                   uint64_t step, uint64_t first, uint32_t n, void *x,
                   void *z) {
  (void)row;
  if (format->bytes == 4)
    for (uint32_t i = 0; i < n; i++)
      ((uint32_t *)x)[i] = (uint32_t)((first + i) * step);
  else
    for (uint32_t i = 0; i < n; i++)
      ((uint16_t *)x)[i] = (uint16_t)((first + i) * step);
  memcpy(z, x, (size_t)n * format->bytes);
}

// Numbers at which functions change their mind.
static const double special[] = {0.0,   -0.0,   1.0,        -1.0,      2.0,
                                 -2.0,  0.5,    -0.5,       3.0,       -3.0,
                                 1e-45, -1e-45, INFINITY,   -INFINITY, NAN,
                                 3e38,  -3e38,  16777215.0, 16777216.0};
enum { NUM_SPECIAL = sizeof special / sizeof special[0] };

static void put(const format_t *format, void *data, uint32_t i, double value) {
  float single = (float)value;
  uint16_t half;
  switch (format->bytes) {
  case 8:
    memcpy((double *)data + i, &value, sizeof value);
    return;
  case 4:
    memcpy((float *)data + i, &single, sizeof single);
    return;
  default:
    half = format == &f16_format ? hd_f16_from_f32(single)
                                 : hd_bf16_from_f32(single);
    memcpy((uint16_t *)data + i, &half, sizeof half);
  }
}

static void put_pattern(const format_t *format, void *data, uint32_t i,
                        uint64_t bits) {
  memcpy((char *)data + (size_t)i * format->bytes, &bits, format->bytes);
}

void fill_f64(const reference_t *row, const format_t *format, uint64_t step,
              uint64_t first, uint32_t n, void *x, void *z) {
  (void)row;
  uint64_t state = first ^ step << 40;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t bits = draw(&state);
    if (first == 0 && i < NUM_SPECIAL)
      put(format, x, i, special[i]);
    else if (bits & 1)
      put(format, x, i, (draw_unit(&state) - 0.5) * 64);
    else
      put_pattern(format, x, i, draw(&state));
  }
  memcpy(z, x, (size_t)n * format->bytes);
}

// A second argument for which the result is neither too large nor too small:
// for pow, x^y is in the type's range; for atan2, y is near x.
static double second(const reference_t *row, const format_t *format, double x,
                     uint64_t *state) {
  if (strcmp(row->name, "pow") != 0)
    return x * ldexp(1 + draw_unit(state), (int)(draw(state) % 33) - 16);
  double least = format->least - format->digits, greatest = format->greatest;
  double exponent = least - 2 + draw_unit(state) * (greatest + 4 - least);
  double y = exponent / log2(fabs(x));
  return x < 0 ? rint(y) : y;
}

void fill_pairs(const reference_t *row, const format_t *format, uint64_t step,
                uint64_t first, uint32_t n, void *x, void *z) {
  uint64_t state = first ^ step << 40;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t bits = draw(&state);
    if (bits & 1) // Near 1, where logarithms are small.
      put(format, x, i, 1 + (draw_unit(&state) - 0.5));
    else
      put_pattern(format, x, i, draw(&state));
    if (bits & 6)
      put(format, x, i,
          fabs(value_of(format, (char *)x + (size_t)i * format->bytes)));
    double a = value_of(format, (char *)x + (size_t)i * format->bytes);
    if (bits & 24)
      put(format, z, i, second(row, format, a, &state));
    else
      put_pattern(format, z, i, draw(&state));
    if (first == 0 && i < NUM_SPECIAL * NUM_SPECIAL) {
      put(format, x, i, special[i / NUM_SPECIAL]);
      put(format, z, i, special[i % NUM_SPECIAL]);
    }
  }
}
