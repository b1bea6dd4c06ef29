// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Text/Lexer.h"

#include "Support/Vec.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Longer ones first where one begins with another.
static const char *const punctuation[] = {"...", "+=", "-=", "*=", "->", "=>",
                                          "==",  "!=", "<=", ">=", "<<", ">>",
                                          "&&",  "||", "+:", "..", "@[", "+",
                                          "-",   "*",  "/",  "%",  "<",  ">",
                                          "=",   "!",  "~",  "&",  "|",  "^",
                                          "?",   ":",  ",",  ".",  "(",  ")",
                                          "[",   "]",  "{",  "}"};

typedef struct lexer {
  hd_arena_t *arena;
  hd_diagnostics_t *diags;
  uint32_t source;
  const char *text;
  size_t size, at;
  HD_VEC(hd_token_t) tokens;
} lexer_t;

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static char peek(const lexer_t *lexer, size_t ahead) {
  size_t at = lexer->at + ahead;
  return at < lexer->size ? lexer->text[at] : '\0';
}

static hd_loc_t here(const lexer_t *lexer, size_t offset) {
  return (hd_loc_t){lexer->source, (uint32_t)offset};
}

static hd_token_t *push(lexer_t *lexer, hd_token_kind_t kind, size_t start,
                        bool first_on_line) {
  hd_token_t token = {.kind = kind,
                      .first_on_line = first_on_line,
                      .offset = (uint32_t)start,
                      .size = (uint32_t)(lexer->at - start)};
  if (kind != HD_TOKEN_PUNCTUATION) // Those have their text in the table.
    token.text =
        hd_arena_strndup(lexer->arena, lexer->text + start, token.size);
  hd_vec_push(lexer->arena, &lexer->tokens, token);
  return &lexer->tokens.data[lexer->tokens.size - 1];
}

// Skips blanks and comments; true where a newline was among them.
static bool skip_blank(lexer_t *lexer) {
  bool newline = lexer->at == 0;
  for (;;) {
    char c = peek(lexer, 0);
    if (c == '/' && peek(lexer, 1) == '/') {
      while (lexer->at < lexer->size && peek(lexer, 0) != '\n')
        lexer->at++;
    } else if (c == '\n' || c == ' ' || c == '\t' || c == '\r') {
      newline |= c == '\n';
      lexer->at++;
    } else {
      return newline;
    }
  }
}

// Digits with '_' between them.
static void digits(lexer_t *lexer, bool hex) {
  while (peek(lexer, 0) == '_' ||
         (hex ? is_hex(peek(lexer, 0)) : is_digit(peek(lexer, 0))))
    lexer->at++;
}

static bool exponent(lexer_t *lexer, bool hex) {
  char c = peek(lexer, 0);
  if (hex ? c != 'p' && c != 'P' : c != 'e' && c != 'E')
    return false;
  char sign = peek(lexer, 1);
  size_t skipped = sign == '+' || sign == '-' ? 2 : 1;
  if (!is_digit(peek(lexer, skipped)))
    return false;
  lexer->at += skipped;
  digits(lexer, false);
  return true;
}

// A token's text as the C library reads it: without '_'.
static char *without_underscores(lexer_t *lexer, const hd_token_t *token) {
  char *copy = hd_arena_alloc(lexer->arena, token->size + 1), *to = copy;
  for (const char *from = token->text; *from; from++)
    if (*from != '_')
      *to++ = *from;
  return copy;
}

static void number(lexer_t *lexer, bool first_on_line) {
  size_t start = lexer->at;
  bool hex = peek(lexer, 0) == '0' && peek(lexer, 1) == 'x';
  lexer->at += hex ? 2 : 0;
  size_t first_digit = lexer->at;
  digits(lexer, hex);
  bool malformed = lexer->at == first_digit || peek(lexer, 0) == '_' ||
                   lexer->text[first_digit] == '_' ||
                   lexer->text[lexer->at - 1] == '_';
  bool is_float = false;
  // "0..4" is a range, "1.5" a float.
  if (peek(lexer, 0) == '.' &&
      (hex ? is_hex(peek(lexer, 1)) : is_digit(peek(lexer, 1)))) {
    is_float = true;
    lexer->at++;
    digits(lexer, hex);
    malformed |= lexer->text[lexer->at - 1] == '_';
  }
  is_float |= exponent(lexer, hex);
  malformed |= is_letter(peek(lexer, 0));
  while (is_letter(peek(lexer, 0)) || is_digit(peek(lexer, 0)))
    lexer->at++;
  hd_token_t *token = push(lexer, is_float ? HD_TOKEN_FLOAT : HD_TOKEN_INT,
                           start, first_on_line);
  if (malformed) {
    hd_error(lexer->diags, here(lexer, start), HD_E0108, token->text);
    return;
  }
  const char *text = without_underscores(lexer, token);
  errno = 0;
  if (is_float)
    token->number = strtod(text, NULL);
  else
    token->value = strtoull(text + (hex ? 2 : 0), NULL, hex ? 16 : 10);
  if (is_float ? isinf(token->number) : errno == ERANGE) {
    hd_error(lexer->diags, here(lexer, start), HD_E0103, token->text);
    token->number = 0;
    token->value = 0;
  }
}

static int hex_digit(char c) {
  return is_digit(c) ? c - '0' : is_hex(c) ? (c | 32) - 'a' + 10 : -1;
}

// Of xHH; -1 where something else is there.
static int hex_byte(const char *text, size_t size) {
  if (size < 3 || text[0] != 'x' || !is_hex(text[1]) || !is_hex(text[2]))
    return -1;
  return hex_digit(text[1]) << 4 | hex_digit(text[2]);
}

static void string(lexer_t *lexer, bool first_on_line) {
  static const char escapes[][2] = {
      {'n', '\n'}, {'t', '\t'}, {'"', '"'}, {'\\', '\\'}};
  size_t start = lexer->at++;
  while (lexer->at < lexer->size && peek(lexer, 0) != '"' &&
         peek(lexer, 0) != '\n')
    lexer->at += peek(lexer, 0) == '\\' && peek(lexer, 1) != '\n' ? 2 : 1;
  if (lexer->at > lexer->size)
    lexer->at = lexer->size;
  size_t end = lexer->at;
  if (peek(lexer, 0) == '"')
    lexer->at++;
  else
    hd_error(lexer->diags, here(lexer, start), HD_E0104);
  hd_token_t *token = push(lexer, HD_TOKEN_STRING, start, first_on_line);
  char *value = hd_arena_alloc(lexer->arena, end - start), *to = value;
  for (size_t at = start + 1; at < end; at++) {
    char c = lexer->text[at];
    if (c == '\\' && ++at < end) {
      size_t i = 0;
      int byte = hex_byte(lexer->text + at, end - at);
      if (byte > 0) {
        *to++ = (char)byte;
        at += 2;
        continue;
      }
      while (i < 4 && escapes[i][0] != lexer->text[at])
        i++;
      if (i == 4)
        hd_error(lexer->diags, here(lexer, at), HD_E0101, "\\");
      c = i < 4 ? escapes[i][1] : lexer->text[at];
    }
    *to++ = c;
  }
  token->text = value;
}

// Past the first character.
static bool match(const lexer_t *lexer, const char *spelling) {
  for (size_t i = 1; spelling[i]; i++)
    if (peek(lexer, i) != spelling[i])
      return false;
  return true;
}

static void other(lexer_t *lexer, bool first_on_line) {
  for (size_t i = 0; i < sizeof punctuation / sizeof punctuation[0]; i++)
    if (punctuation[i][0] == peek(lexer, 0) && match(lexer, punctuation[i])) {
      size_t start = lexer->at;
      lexer->at += strlen(punctuation[i]);
      push(lexer, HD_TOKEN_PUNCTUATION, start, first_on_line)->text =
          punctuation[i];
      return;
    }
  // One report for a run of what nobody understands.
  size_t start = lexer->at;
  unsigned char c = (unsigned char)peek(lexer, 0);
  char shown[8] = {(char)c};
  if (c < 32 || c >= 127)
    snprintf(shown, sizeof shown, "\\x%02x", c);
  hd_error(lexer->diags, here(lexer, start), HD_E0101, shown);
  while (lexer->at < lexer->size && ((unsigned char)peek(lexer, 0) == c ||
                                     (unsigned char)peek(lexer, 0) >= 128))
    lexer->at++;
}

// The length of a well-formed character; 0 where there is none.
static size_t character(const unsigned char *at, size_t size) {
  unsigned char first = at[0];
  if (first < 0x80)
    return first != 0;
  size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || length > size)
    return 0;
  for (size_t i = 1; i < length; i++)
    if ((at[i] & 0xc0) != 0x80)
      return 0;
  // Longer than need be, half of a surrogate pair, past U+10FFFF.
  bool wrong =
      (first == 0xe0 && at[1] < 0xa0) || (first == 0xed && at[1] > 0x9f) ||
      (first == 0xf0 && at[1] < 0x90) || (first == 0xf4 && at[1] > 0x8f);
  return wrong ? 0 : length;
}

bool hd_is_text(const char *text, size_t size) {
  const unsigned char *bytes = (const unsigned char *)text;
  for (size_t i = 0, length; i < size; i += length)
    if (!(length = character(bytes + i, size - i)))
      return false;
  return true;
}

hd_token_t *hd_lex(hd_arena_t *arena, hd_diagnostics_t *diags, uint32_t source,
                   const char *text, size_t size, size_t *count) {
  // A token takes four characters or so: most of the list is made at once.
  size_t some = size / 8 + 8;
  lexer_t lexer = {arena,
                   diags,
                   source,
                   text,
                   size,
                   0,
                   {HD_ARENA_ARRAY(arena, hd_token_t, some), .capacity = some}};
  for (;;) {
    bool first_on_line = skip_blank(&lexer);
    size_t start = lexer.at;
    if (start >= size) {
      push(&lexer, HD_TOKEN_END, start, true)->text = "the end of the file";
      break;
    }
    char c = peek(&lexer, 0);
    if (is_letter(c)) {
      while (is_letter(peek(&lexer, 0)) || is_digit(peek(&lexer, 0)))
        lexer.at++;
      push(&lexer, HD_TOKEN_NAME, start, first_on_line);
    } else if (is_digit(c)) {
      number(&lexer, first_on_line);
    } else if (c == '"') {
      string(&lexer, first_on_line);
    } else {
      other(&lexer, first_on_line);
    }
  }
  *count = lexer.tokens.size;
  return lexer.tokens.data;
}
