// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options of passes, "key=value,...", against what the pass's row says that
// it takes. See IR/Pass.h.
#include "IR/Passes/Pass.h"
#include "Support/Suggest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const hd_loc_t nowhere;

// A stretch of a text.
typedef struct part {
  const char *text;
  size_t size;
} part_t;

typedef struct pair {
  part_t key, value;
  bool has_value;
} pair_t;

// Takes the next of "key=value,..."; false at the end.
static bool next_pair(const char **at, pair_t *pair) {
  if (!*at || !**at)
    return false;
  size_t size = strcspn(*at, ","), key = strcspn(*at, "=,");
  *pair = (pair_t){.key = {*at, key}, .has_value = key < size};
  if (pair->has_value)
    pair->value = (part_t){*at + key + 1, size - key - 1};
  *at += size;
  if (**at == ',')
    ++*at;
  return true;
}

static bool same(part_t a, part_t b) {
  return a.size == b.size && strncmp(a.text, b.text, a.size) == 0;
}

static bool is_text(part_t a, const char *text) {
  return same(a, (part_t){text, strlen(text)});
}

static bool parse_int(part_t value, int64_t *number) {
  char text[32], *end;
  if (value.size == 0 || value.size >= sizeof(text))
    return false;
  memcpy(text, value.text, value.size);
  text[value.size] = '\0';
  if (text[0] != '-' && (text[0] < '0' || text[0] > '9'))
    return false;
  errno = 0;
  *number = strtoll(text, &end, 10);
  return end[-1] != '-' && *end == '\0' && errno == 0;
}

static bool is_word(part_t words, part_t value) {
  for (const char *w = words.text, *end = w + words.size; w < end;) {
    part_t word = {w, 0};
    while (w < end && *w != '|')
      w++;
    word.size = (size_t)(w++ - word.text);
    if (same(word, value))
      return true;
  }
  return false;
}

static bool fail(hd_diagnostics_t *diags, const hd_pass_t *pass,
                 const char *what, part_t key, const char *rest) {
  char text[300], name[80];
  snprintf(name, sizeof(name), "--%s", pass->name);
  snprintf(text, sizeof(text), "%s '%.*s'%s", what,
           key.size < 80 ? (int)key.size : 80, key.text, rest);
  return hd_error(diags, nowhere, HD_E1002, name, text);
}

static bool fail_unknown(hd_diagnostics_t *diags, const hd_pass_t *pass,
                         part_t key) {
  char wanted[80], names[4][40], text[100];
  if (!pass->options[0])
    return fail(diags, pass, "takes no options, found", key, "");
  snprintf(wanted, sizeof(wanted), "%.*s", (int)(key.size < 79 ? key.size : 79),
           key.text);
  hd_suggestion_t suggestion = {.wanted = wanted};
  const char *at = pass->options;
  pair_t row;
  for (int i = 0; i < 4 && next_pair(&at, &row); i++) {
    snprintf(names[i], sizeof(names[i]), "%.*s", (int)row.key.size,
             row.key.text);
    hd_suggestion_add(&suggestion, names[i]);
  }
  if (!suggestion.best)
    snprintf(text, sizeof(text), "; it takes %.80s", pass->options);
  else
    hd_suggestion_text(&suggestion, "", text, sizeof(text));
  return fail(diags, pass, "has no", key, text);
}

static bool check_value(hd_diagnostics_t *diags, const hd_pass_t *pass,
                        const pair_t *row, const pair_t *given) {
  int64_t number;
  char text[160];
  bool number_wanted = is_text(row->value, "N") || is_text(row->value, "INT");
  bool ok = given->has_value &&
            (number_wanted ? parse_int(given->value, &number) &&
                                 (number >= 0 || is_text(row->value, "INT"))
                           : is_word(row->value, given->value));
  if (ok)
    return true;
  snprintf(text, sizeof(text), "%s%.*s%s%.*s%s",
           number_wanted ? ", a whole number" : ", one of ",
           number_wanted ? 0 : (int)row->value.size, row->value.text,
           given->has_value ? ", found '" : "",
           given->value.size < 60 ? (int)given->value.size : 60,
           given->has_value ? given->value.text : "",
           given->has_value ? "'" : "");
  return fail(diags, pass, "needs a value for", given->key, text);
}

bool hd_pass_check_options(hd_diagnostics_t *diags, const hd_pass_t *pass,
                           const char *options) {
  pair_t given, row, other;
  bool ok = true;
  for (const char *at = options; next_pair(&at, &given);) {
    bool known = false;
    for (const char *rows = pass->options; !known && next_pair(&rows, &row);)
      known = same(row.key, given.key) || is_text(row.key, "NAME");
    if (!known)
      ok = fail_unknown(diags, pass, given.key);
    else
      ok &= check_value(diags, pass, &row, &given);
    for (const char *rest = at; next_pair(&rest, &other);)
      if (same(other.key, given.key))
        ok = fail(diags, pass, "is given", given.key, " twice");
  }
  return ok;
}

bool hd_pass_option_next(const char **options, const char **name, size_t *size,
                         int64_t *number) {
  pair_t pair;
  if (!next_pair(options, &pair))
    return false;
  *name = pair.key.text;
  *size = pair.key.size;
  if (!parse_int(pair.value, number))
    *number = 0;
  return true;
}

int64_t hd_pass_option_int(const char *options, const char *key,
                           int64_t otherwise) {
  pair_t pair;
  int64_t number;
  while (next_pair(&options, &pair))
    if (is_text(pair.key, key) && parse_int(pair.value, &number))
      return number;
  return otherwise;
}

bool hd_pass_option_given(const char *options, const char *key) {
  pair_t pair;
  while (next_pair(&options, &pair))
    if (is_text(pair.key, key))
      return true;
  return false;
}

bool hd_pass_option_is(const char *options, const char *key, const char *word) {
  pair_t pair;
  while (next_pair(&options, &pair))
    if (is_text(pair.key, key))
      return is_text(pair.value, word);
  return false;
}
