// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Words that mean something in the language.
#ifndef HIDET_IR_KEYWORDS_H
#define HIDET_IR_KEYWORDS_H

#include <stdbool.h>

// Whether a name means something in the language and cannot be declared: a
// keyword (Keywords.def) or the name of a type.
bool hd_is_reserved(const char *name);
bool hd_is_keyword(const char *name);

#endif
