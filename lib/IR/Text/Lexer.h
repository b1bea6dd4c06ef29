// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text to tokens. See docs/IR.md, "Lexical".
#ifndef HIDET_IR_TEXT_LEXER_H
#define HIDET_IR_TEXT_LEXER_H

#include "Support/Diagnostic.h"

typedef enum hd_token_kind {
  HD_TOKEN_END,
  HD_TOKEN_NAME,
  HD_TOKEN_INT,
  HD_TOKEN_FLOAT,
  HD_TOKEN_STRING,
  HD_TOKEN_PUNCTUATION, // One of the table's spellings; see text.
} hd_token_kind_t;

typedef struct hd_token {
  hd_token_kind_t kind;
  bool first_on_line;
  uint32_t offset, size;
  const char *text; // Names, numbers, punctuation: NUL-terminated. Strings:
                    // their value.
  uint64_t value;   // INT
  double number;    // FLOAT
} hd_token_t;

// Reads all tokens of a source; the last is END. Bad characters and numbers are
// reported and left out (a bad number reads as 0). Tokens live in the arena.
hd_token_t *hd_lex(hd_arena_t *arena, hd_diagnostics_t *diags, uint32_t source,
                   const char *text, size_t size, size_t *count);

// Whether bytes are UTF-8 (RFC 3629) without a NUL.
bool hd_is_text(const char *text, size_t size);

#endif
