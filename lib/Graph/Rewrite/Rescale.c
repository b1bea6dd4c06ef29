// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables of bytes that are straight lines, rounded and clamped: what scales,
// zero points, a relu or a clip make of a byte that is quantized anew.
#include "Graph/Rewrite/Rescale.h"

#include <math.h>
#include <stdint.h>

static const float SHIFT = 12582912; // 1.5 * 2^23

static int value_of(bool is_signed, int bits) {
  return is_signed ? (int8_t)bits : bits;
}

// As the task `rescale` computes it.
static float rescaled(const hd_rescale_t *r, int x) {
  float y = fmaf((float)x - r->zero, r->factor, SHIFT) - (SHIFT - r->to);
  return fminf(fmaxf(y, r->least), r->most);
}

// Factors that take n to v and half of one around it; or to no less, or no
// more.
typedef struct factors {
  double least, most;
} factors_t;

static void at_least(factors_t *f, double n, double v) {
  if (n > 0)
    f->least = fmax(f->least, v / n);
  else
    f->most = fmin(f->most, v / n);
}

static void at_most(factors_t *f, double n, double v) {
  if (n > 0)
    f->most = fmin(f->most, v / n);
  else
    f->least = fmax(f->least, v / n);
}

// With a zero point given.
static bool find_factor(const int *x, const int *y, hd_rescale_t *r) {
  factors_t f = {-INFINITY, INFINITY};
  for (int i = 0; i < HD_BYTES; i++) {
    double n = x[i] - (double)r->zero, v = y[i] - (double)r->to;
    if (n == 0)
      continue;
    if (y[i] > r->least)
      at_least(&f, n, v - 0.5);
    if (y[i] < r->most)
      at_most(&f, n, v + 0.5);
  }
  r->factor = (float)((f.least + f.most) / 2);
  if (!(f.least <= f.most) || !isfinite(r->factor))
    return false;
  for (int i = 0; i < HD_BYTES; i++)
    if (rescaled(r, x[i]) != (float)y[i])
      return false;
  return true;
}

static bool is_clamp(const int *x, const int *y, const hd_rescale_t *r) {
  for (int i = 0; i < HD_BYTES; i++)
    if ((float)y[i] != fminf(fmaxf((float)x[i], r->least), r->most))
      return false;
  return true;
}

bool hd_rescale_find(const unsigned char *table, bool from_signed,
                     bool to_signed, hd_rescale_t *r) {
  int x[HD_BYTES], y[HD_BYTES];
  r->least = INFINITY;
  r->most = -INFINITY;
  for (int i = 0; i < HD_BYTES; i++) {
    x[i] = value_of(from_signed, i);
    y[i] = value_of(to_signed, table[i]);
    r->least = fminf(r->least, (float)y[i]);
    r->most = fmaxf(r->most, (float)y[i]);
  }
  r->is_clamp = is_clamp(x, y, r);
  for (int i = 0; i < HD_BYTES; i++) { // 0 comes first.
    r->zero = (float)x[i];
    r->to = (float)y[i];
    if (find_factor(x, y, r))
      return true;
  }
  return false;
}
