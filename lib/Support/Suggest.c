// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/Suggest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 64 };

// Insertions, deletions, substitutions and swaps of neighbours, one each
// (optimal string alignment). Names longer than LONGEST are never near.
static size_t distance(const char *a, const char *b) {
  size_t m = strlen(a), n = strlen(b);
  if (m > LONGEST || n > LONGEST)
    return SIZE_MAX;
  size_t rows[3][LONGEST + 1];
  size_t *before = rows[0], *last = rows[1], *row = rows[2];
  for (size_t j = 0; j <= n; j++)
    last[j] = j;
  for (size_t i = 1; i <= m; i++) {
    row[0] = i;
    for (size_t j = 1; j <= n; j++) {
      size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
      if (last[j] + 1 < best)
        best = last[j] + 1;
      if (row[j - 1] + 1 < best)
        best = row[j - 1] + 1;
      bool swapped =
          i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped && before[j - 2] + 1 < best)
        best = before[j - 2] + 1;
      row[j] = best;
    }
    size_t *oldest = before;
    before = last;
    last = row;
    row = oldest;
  }
  return last[n];
}

void hd_suggestion_add(hd_suggestion_t *suggestion, const char *name) {
  size_t length = strlen(suggestion->wanted);
  size_t limit = length / 3 > 1 ? length / 3 : length > 1;
  size_t d = distance(suggestion->wanted, name);
  if (d > limit || (suggestion->best && d >= suggestion->distance))
    return;
  suggestion->best = name;
  suggestion->distance = d;
}

const char *hd_suggestion_text(const hd_suggestion_t *suggestion,
                               const char *prefix, char *text, size_t size) {
  if (!suggestion->best)
    return "";
  snprintf(text, size, "; did you mean '%s%s'?", prefix, suggestion->best);
  return text;
}
