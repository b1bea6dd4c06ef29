// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// "did you mean": the nearest of the names that were possible.
#ifndef HIDET_SUPPORT_SUGGEST_H
#define HIDET_SUPPORT_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

// The best so far; start with zeros and the name that was not found.
typedef struct hd_suggestion {
  const char *wanted;
  const char *best; // NULL where no name was near enough.
  size_t distance;
} hd_suggestion_t;

// Takes a possible name into account. It must outlive the suggestion.
void hd_suggestion_add(hd_suggestion_t *suggestion, const char *name);

// "; did you mean '--emit'?" with the prefix before the name, or "". At most
// size bytes with the final zero; returns text.
const char *hd_suggestion_text(const hd_suggestion_t *suggestion,
                               const char *prefix, char *text, size_t size);

#endif
