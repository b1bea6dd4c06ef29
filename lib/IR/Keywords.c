// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Keywords.h"

#include "IR/Type.h"

#include <string.h>

bool hd_is_reserved(const char *name) {
  static const char *const words[] = {
#define HD_KEYWORD(word, kind, meaning) word,
#include "IR/Keywords.def"
#undef HD_KEYWORD
  };
  hd_type_t type;
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strcmp(words[i], name) == 0)
      return true;
  return hd_type_parse(name, &type);
}
