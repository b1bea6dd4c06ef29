// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HIDET_GRAPH_REWRITE_RESCALE_H
#define HIDET_GRAPH_REWRITE_RESCALE_H

#include <stdbool.h>

enum { HD_BYTES = 256 };

// (x - zero) * factor + to, rounded to even and clamped: integers all but the
// factor. With nothing between least and most the clamps are the table's own.
typedef struct hd_rescale {
  float zero, factor, to, least, most;
  bool is_clamp; // x itself, clamped, is the same.
} hd_rescale_t;

// Whether a table of bytes, in order of their bits, of one sign and to one, is
// that for all of them. No state: any thread.
bool hd_rescale_find(const unsigned char *table, bool from_signed,
                     bool to_signed, hd_rescale_t *r);

#endif
