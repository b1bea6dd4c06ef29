// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether weights are what they were: hundreds of objects, asked at each call.
#include "hidet/Session.h"

int hidet_sources_unchanged(const hidet_sources_t *sources) {
  if (!sources)
    return 0;
  for (size_t i = 0; i < sources->num_objects; i++) {
    void *address = NULL;
    if (!sources->objects[i] ||
        sources->address(sources->objects[i], &address) ||
        address != sources->addresses[i])
      return 0;
  }
  for (size_t i = 0; i < sources->num_objects; i++)
    if (sources->version(sources->objects[i]) != sources->versions[i])
      return 0;
  return 1;
}
