// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The .hir library (operators, rewrites, templates, device functions) as it is
// compiled into libhidet. The table is generated: see cmake/HidetEmbed.cmake.

#ifndef HIDET_SUPPORT_EMBEDDED_H
#define HIDET_SUPPORT_EMBEDDED_H

#include <stddef.h>

typedef struct hd_embedded {
  const char *name; // path under lib/, such as "Graph/operators/matmul.hir"
  const char *text; // `size` bytes, then a zero
  size_t size;
} hd_embedded_t;

// Sorted by name; a row of zeros ends it.
extern const hd_embedded_t hd_embedded_files[];
extern const size_t hd_embedded_count;

#endif
