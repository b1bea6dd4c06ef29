// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which build of the compiler this is: what it makes may be kept as long as it
// stays the same.
#ifndef HIDET_SUPPORT_BUILDID_H
#define HIDET_SUPPORT_BUILDID_H

#include <stddef.h>

// Writes the linker's id of the library (or program) that holds this code as
// hex digits, a final zero after them. Returns text; NULL where it has none or
// does not fit size bytes.
const char *hd_build_id(char *text, size_t size);

#endif
