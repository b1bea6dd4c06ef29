// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Keywords.h"

#include "IR/Type.h"

#include <string.h>

bool hd_is_keyword(const char *name) {
  static const char *const words[] = {
#define HD_KEYWORD(word, kind, meaning) word,
#include "IR/Keywords.def"
#undef HD_KEYWORD
  };
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (words[i][0] == name[0] && strcmp(words[i], name) == 0)
      return true;
  return false;
}

bool hd_is_reserved(const char *name) {
  hd_type_t type;
  return hd_is_keyword(name) || hd_type_parse(name, &type);
}
