// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Places along an axis that follow from the index: nobody reads them from
// memory then, and who reads the elements may compute where they are.
#include "Graph/Expand/Lower/Lower.h"

enum { MOST_EVERY = 64 };

static int64_t place(const hd_spacing_t *s, int64_t i) {
  return (i * s->step + s->add) / s->every;
}

static bool gives(const hd_spacing_t *s, const int64_t *places, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (place(s, i) != places[i])
      return false;
  return true;
}

// The last place, too, says which spacing there can be.
static bool find_parts(const int64_t *places, int64_t count, int64_t every,
                       hd_spacing_t *spacing) {
  int64_t way = places[count - 1] - places[0];
  int64_t least = way > 0 ? (way - 1) * every / (count - 1) : 0;
  int64_t most = (way + 1) * every / (count - 1);
  for (int64_t step = least; step <= most; step++)
    for (int64_t part = 0; part < every; part++) {
      *spacing = (hd_spacing_t){step, places[0] * every + part, every};
      if (gives(spacing, places, count))
        return true;
    }
  return false;
}

bool hd_spacing_find(const int64_t *places, int64_t count,
                     hd_spacing_t *spacing) {
  if (count < 1)
    return false;
  *spacing =
      (hd_spacing_t){count > 1 ? places[1] - places[0] : 1, places[0], 1};
  if (gives(spacing, places, count))
    return spacing->step >= 0;
  // Kernels compute places in 32 bits.
  if (places[count - 1] < places[0] ||
      places[count - 1] >= INT32_MAX / MOST_EVERY - 1)
    return false;
  for (int64_t every = 2; every <= MOST_EVERY; every++)
    if (find_parts(places, count, every, spacing))
      return true;
  return false;
}

const hd_value_t *hd_lower_sample(hd_lowering_t *l, const hd_value_t *x,
                                  const hd_spacing_t *spacing,
                                  const int64_t *size) {
  int64_t start[HD_MAX_RANK], step[HD_MAX_RANK], every[HD_MAX_RANK];
  bool in_parts = false;
  for (int i = 0; i < x->rank; i++) {
    start[i] = spacing[i].add;
    step[i] = spacing[i].step;
    every[i] = spacing[i].every;
    in_parts |= every[i] != 1;
  }
  if (!in_parts)
    return hd_lower_slice(l, x, start, size, step);
  hd_attributes_t list = {0};
  hd_attributes_ints(l, &list, "start", start, (size_t)x->rank);
  hd_attributes_ints(l, &list, "stride", step, (size_t)x->rank);
  hd_attributes_ints(l, &list, "every", every, (size_t)x->rank);
  hd_attributes_ints(l, &list, "size", size, (size_t)x->rank);
  return hd_lower_task(l, "sample", &x, 1, &list, NULL);
}
