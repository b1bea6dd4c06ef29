// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules' little language: see Rules.def.
#include "Fuzz.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const fuzz_rule_t rules[] = {
#define FUZZ_RULE(task, text) {task, text},
#include "Rules.def"
#undef FUZZ_RULE
};

const char *fuzz_rule_of(const char *task) {
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
    if (strcmp(rules[i].task, task) == 0)
      return rules[i].text;
  return "";
}

const char *fuzz_rule_find(const char *text, const char *name, char mark) {
  size_t size = strlen(name);
  for (const char *at = text; at && *at;) {
    if (strncmp(at, name, size) == 0 && at[size] == mark)
      return at + size + 1;
    at = strchr(at, ' ');
    at += at != NULL;
  }
  return NULL;
}

bool fuzz_rule_has(const char *text, const char *word) {
  size_t size = strlen(word);
  for (const char *at = text; at && *at;) {
    if (strncmp(at, word, size) == 0 && (at[size] == ' ' || !at[size]))
      return true;
    at = strchr(at, ' ');
    at += at != NULL;
  }
  return false;
}

typedef struct reader {
  const char *at;
  fuzz_lookup_t lookup;
  void *argument;
  unsigned axis;
  bool failed;
} reader_t;

static double read_sum(reader_t *r);

static bool take(reader_t *r, char c) {
  bool found = *r->at == c;
  r->at += found;
  return found;
}

static double value_of(reader_t *r, const char *name, size_t size,
                       unsigned axis) {
  double value = 0;
  r->failed |= !r->lookup(r->argument, name, size, axis, &value);
  return value;
}

// prod(a,b): over all axes of each, until there is none.
static double read_product(reader_t *r) {
  double product = 1;
  do {
    const char *name = r->at;
    while (isalnum((unsigned char)*r->at) || *r->at == '_')
      r->at++;
    size_t size = (size_t)(r->at - name);
    double value;
    // What is no pack has its value on any axis.
    if (r->lookup(r->argument, name, size, UINT_MAX, &value)) {
      product *= value;
      continue;
    }
    for (unsigned k = 0; r->lookup(r->argument, name, size, k, &value); k++)
      product *= value;
  } while (take(r, ','));
  r->failed |= !take(r, ')');
  return product;
}

static double read_call(reader_t *r, bool greatest) {
  double a = read_sum(r);
  r->failed |= !take(r, ',');
  double b = read_sum(r);
  r->failed |= !take(r, ')');
  return greatest ? fmax(a, b) : fmin(a, b);
}

static double read_factor(reader_t *r) {
  if (take(r, '-'))
    return -read_factor(r);
  if (take(r, '(')) {
    double value = read_sum(r);
    r->failed |= !take(r, ')');
    return value;
  }
  const char *name = r->at;
  if (isdigit((unsigned char)*name)) {
    // Not strtod(): "0..3" is a range.
    double value = 0, unit = 1;
    while (isdigit((unsigned char)*r->at))
      value = value * 10 + (*r->at++ - '0');
    if (r->at[0] == '.' && isdigit((unsigned char)r->at[1]))
      for (r->at++; isdigit((unsigned char)*r->at); r->at++)
        value += (*r->at - '0') * (unit /= 10);
    return value;
  }
  while (isalnum((unsigned char)*r->at) || *r->at == '_')
    r->at++;
  size_t size = (size_t)(r->at - name);
  if (size == 0) {
    r->failed = true;
    return 0;
  }
  if (!take(r, '('))
    return value_of(r, name, size, r->axis);
  return strncmp(name, "prod", size) == 0
             ? read_product(r)
             : read_call(r, strncmp(name, "max", size) == 0);
}

// Integers are divided as integers are.
static double divide(reader_t *r, double a, double b) {
  if (b == 0) {
    r->failed = true;
    return 0;
  }
  return trunc(a / b);
}

static double read_term(reader_t *r) {
  double value = read_factor(r);
  for (;;)
    if (take(r, '*'))
      value *= read_factor(r);
    else if (take(r, '/'))
      value = divide(r, value, read_factor(r));
    else
      return value;
}

static double read_sum(reader_t *r) {
  double value = read_term(r);
  for (;;)
    if (take(r, '+'))
      value += read_term(r);
    else if (take(r, '-'))
      value -= read_term(r);
    else
      return value;
}

bool fuzz_rule_range(const char *text, random_t *random, fuzz_lookup_t lookup,
                     void *argument, unsigned axis, double *low, double *high) {
  unsigned choices = 1;
  for (const char *at = text; *at && *at != ' '; at++)
    choices += *at == '|';
  for (int64_t pick = random_in(random, 0, choices - 1); pick > 0; pick--)
    text = strchr(text, '|') + 1;
  reader_t r = {text, lookup, argument, axis, false};
  *low = *high = read_sum(&r);
  if (r.at[0] == '.' && r.at[1] == '.') {
    r.at += 2;
    *high = read_sum(&r);
  }
  return !r.failed && (*r.at == 0 || *r.at == ' ' || *r.at == '|');
}
