// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Runtime/Tolerance.h"

#include <math.h>

static double largest(const hd_host_tensor_t *tensor) {
  double result = 0;
  for (int64_t i = 0; i < tensor->count; i++) {
    double value = fabs(hd_host_tensor_get(tensor, i));
    if (isfinite(value) && value > result)
      result = value;
  }
  return result;
}

hd_tolerance_t hd_tolerance_for(hd_tolerance_t given,
                                const hd_host_tensor_t *expected) {
  bool is_float = hd_scalar_class(expected->type) == HD_CLASS_FLOAT;
  if (isnan(given.relative))
    given.relative = is_float ? 1e-3 : 0;
  if (isnan(given.absolute))
    given.absolute = is_float ? 1e-4 * largest(expected) : 0;
  return given;
}

bool hd_tolerance_holds(hd_tolerance_t tolerance, double found,
                        double expected) {
  if (found == expected || (isnan(found) && isnan(expected)))
    return true;
  return isfinite(expected) &&
         fabs(found - expected) <=
             tolerance.absolute + tolerance.relative * fabs(expected);
}
