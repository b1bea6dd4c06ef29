// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types of tensors as tests write them: "f32[2, 3]".
#ifndef HIDET_UNITTESTS_TENSORTEXT_H
#define HIDET_UNITTESTS_TENSORTEXT_H

#include "Graph/Bind/Binding.h"
#include "UnitTest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Reads one, and the spaces after it; *at is moved behind them.
static inline hd_tensor_type_t hd_test_read_type(const char **at) {
  char name[32];
  size_t size = strcspn(*at, "[");
  hd_type_t type;
  snprintf(name, sizeof name, "%.*s", (int)size, *at);
  assert_true(hd_type_parse(name, &type));
  hd_tensor_type_t result = {.type = (hd_scalar_t)type.scalar};
  *at += size + 1;
  while (**at != ']') {
    char *end;
    result.shape[result.rank++] = strtoll(*at, &end, 10);
    *at = end + strspn(end, ", ");
  }
  ++*at;
  *at += strspn(*at, " ");
  return result;
}

#endif
