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

static const char *const types[] = {"f32",  "f16",   "i32", "u8",   "bool",
                                    "f64",  "bf16",  "i64", "i4",   "f8e4m3",
                                    "tf32", "f16x2", "u32", "f32x4"};

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

static void replace_from(text_t *text, const char *const *words, size_t count,
                         int (*is_kind)(int)) {
  span_t token = any_token(text);
  for (int tries = 0; tries < 16 && !is_kind(text->data[token.begin]); tries++)
    token = any_token(text);
  const char *word = words[pick(text, count)];
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
    switch (pick(&text, 6)) {
    case 0:
    case 1:
      replace_token(&text);
      break;
    case 2:
      replace_from(&text, numbers, sizeof numbers / sizeof numbers[0], isdigit);
      break;
    case 3:
      replace_from(&text, types, sizeof types / sizeof types[0], isalpha);
      break;
    case 4:
      replace(&text, any_line(&text), "", 0);
      break;
    case 5:
      copy_line(&text);
      break;
    }
  return text.size;
}
