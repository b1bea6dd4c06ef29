// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libFuzzer's mutations for the language: they work on tokens and lines, so
// that most of what comes out still parses and reaches the code behind the
// parser. One in four is left to libFuzzer's own mutations of bytes.

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>

#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed);

typedef struct span {
  size_t begin, end;
} span_t;

typedef struct text {
  uint8_t *data;
  size_t size, max_size;
  uint32_t random;
} text_t;

static const char *const numbers[] = {
    "0",  "1",  "2",  "3",  "4",   "7",    "8",          "16",
    "31", "32", "33", "64", "128", "1024", "2147483647", "9223372036854775807"};

static const char *const types[] = {
    "f16x2", "f32x2", "f32x4", "i8x4", "bf16x8",
#define HD_SCALAR(id, name, ...) name,
#include "IR/Scalars.def"
#undef HD_SCALAR
};

// What may be called or read by its name alone.
static const char *const names[] = {
#define HD_INTRINSIC(id, name, ...) name,
#include "IR/Intrinsics.def"
#undef HD_INTRINSIC
#define HD_BUILTIN(id, name, ...) name,
#include "IR/Builtins.def"
#undef HD_BUILTIN
#define HD_TASK_FUNCTION(id, name, ...) name,
#include "IR/Graph/TaskFunctions.def"
#undef HD_TASK_FUNCTION
#define HD_MONOID(id, name, ...) name,
#include "IR/Graph/Monoids.def"
#undef HD_MONOID
    "spatial", "repeat", "auto_map", "custom",  "ceildiv",
    "min",     "max",    "barrier",  "bitcast", "swizzle",
};

static uint32_t pick(text_t *text, size_t count) {
  text->random = text->random * 1664525u + 1013904223u;
  return (uint32_t)((text->random >> 8) % count);
}

static bool is_word(uint8_t c) { return isalnum(c) || c == '_'; }

// Puts `with` where the span is; does nothing where it does not fit.
static void replace(text_t *text, span_t span, const void *with, size_t size) {
  size_t rest = text->size - span.end;
  if (span.begin + size + rest > text->max_size)
    return;
  uint8_t copy[256];
  if (size > sizeof copy)
    return;
  memcpy(copy, with, size); // It may lie in what moves.
  memmove(text->data + span.begin + size, text->data + span.end, rest);
  memcpy(text->data + span.begin, copy, size);
  text->size = span.begin + size + rest;
}

// A token: a word, a number, or one other character.
static span_t any_token(text_t *text) {
  size_t begin = pick(text, text->size), end = begin + 1;
  if (is_word(text->data[begin])) {
    while (begin > 0 && is_word(text->data[begin - 1]))
      begin--;
    while (end < text->size && is_word(text->data[end]))
      end++;
  }
  return (span_t){begin, end};
}

static span_t any_line(text_t *text) {
  size_t begin = pick(text, text->size), end = begin;
  while (begin > 0 && text->data[begin - 1] != '\n')
    begin--;
  while (end < text->size && text->data[end] != '\n')
    end++;
  return (span_t){begin, end < text->size ? end + 1 : end};
}

// Words give way to words and punctuation to punctuation, now and then to
// something of another kind.
static void replace_token(text_t *text) {
  span_t to = any_token(text), from = any_token(text);
  for (int tries = 0; tries < 8; tries++) {
    if (!!isalpha(text->data[to.begin]) == !!isalpha(text->data[from.begin]) &&
        !isspace(text->data[from.begin]))
      break;
    from = any_token(text);
  }
  replace(text, to, text->data + from.begin, from.end - from.begin);
}

typedef struct words {
  const char *const *words;
  size_t count;
  int (*is_kind)(int); // Of the character that the replaced token begins with.
} words_t;

#define WORDS(words, is_kind)                                                  \
  (words_t) { words, sizeof words / sizeof words[0], is_kind }

static void replace_from(text_t *text, words_t words) {
  span_t token = any_token(text);
  for (int tries = 0; tries < 16 && !words.is_kind(text->data[token.begin]);
       tries++)
    token = any_token(text);
  const char *word = words.words[pick(text, words.count)];
  replace(text, token, word, strlen(word));
}

static void copy_line(text_t *text) {
  span_t from = any_line(text), to = any_line(text);
  replace(text, (span_t){to.begin, to.begin}, text->data + from.begin,
          from.end - from.begin);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed) {
  text_t text = {data, size, max_size, seed};
  if (size == 0 || pick(&text, 4) == 0)
    return LLVMFuzzerMutate(data, size, max_size);
  for (uint32_t count = 1 + pick(&text, 3); count > 0 && text.size > 0; count--)
    switch (pick(&text, 7)) {
    case 0:
    case 1:
      replace_token(&text);
      break;
    case 2:
      replace_from(&text, WORDS(numbers, isdigit));
      break;
    case 3:
      replace_from(&text, WORDS(types, isalpha));
      break;
    case 4:
      replace(&text, any_line(&text), "", 0);
      break;
    case 5:
      copy_line(&text);
      break;
    case 6:
      replace_from(&text, WORDS(names, isalpha));
      break;
    }
  return text.size;
}
