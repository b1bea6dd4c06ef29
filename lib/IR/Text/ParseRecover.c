// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// After an error: where reading goes on, and what is not reported because of
// it.
#include "IR/Text/ParserState.h"

#include "IR/Keywords.h"

#include <string.h>

// --- Names ---

void hd_poison(hd_parser_t *p, const char *name, hd_loc_t loc) {
  hd_visible_push(
      &p->visible,
      hd_var_make(p->arena, name, HD_VAR_LET, hd_type(HD_VOID), loc), name);
}

void hd_declare_poison(hd_parser_t *p, const char *name, hd_loc_t loc) {
  hd_declare(p, hd_var_make(p->arena, name, HD_VAR_LET, hd_type(HD_VOID), loc));
}

bool hd_is_poisoned(const hd_parser_t *p, const char *name) {
  const hd_var_t *var = hd_visible_find(&p->visible, name);
  return var ? var->kind == HD_VAR_LET && var->type.scalar == HD_VOID
             : hd_has_failed(p, name);
}

// --- Places ---

bool hd_at_next_item(const hd_parser_t *p) {
  return hd_peek(p)->first_on_line && hd_at_item(p) && !hd_at(p, "const") &&
         hd_peek_ahead(p, 1)->kind == HD_TOKEN_NAME;
}

// The blanks before the line that a place lies in; -1: nobody would count.
static int indentation(const hd_parser_t *p, uint32_t offset) {
  enum { LONG = 200 };
  const char *text = p->diags->sources[p->source - 1].text;
  uint32_t start = offset;
  while (start > 0 && text[start - 1] != '\n')
    if (offset - --start > LONG)
      return -1;
  return (int)strspn(text + start, " \t");
}

bool hd_close_block(hd_parser_t *p, hd_loc_t open) {
  const hd_token_t *token = hd_peek(p);
  if (hd_accept(p, "}")) {
    if (!p->odd_block.source && token->first_on_line &&
        indentation(p, open.offset) != indentation(p, token->offset))
      p->odd_block = open;
    return true;
  }
  if (token->kind != HD_TOKEN_END && !hd_at_next_item(p))
    return hd_expect(p, "}");
  if (!p->gave_up) {
    hd_error(p->diags, open, HD_E0109);
    if (p->odd_block.source)
      hd_note(p->diags, p->odd_block,
              "maybe this one is not; what closes it is indented otherwise");
  }
  p->gave_up = true; // The blocks around it are not closed either.
  return false;
}

void hd_skip_braces(hd_parser_t *p) {
  int depth = 0;
  do {
    if (hd_peek(p)->kind == HD_TOKEN_PUNCTUATION) {
      depth += hd_at(p, "{");
      depth -= hd_at(p, "}");
    }
    if (hd_peek(p)->kind == HD_TOKEN_END)
      return;
    p->at++;
  } while (depth > 0 && !hd_at_next_item(p));
}

static bool is_one_of(const hd_token_t *token, const char *texts) {
  return token->kind == HD_TOKEN_PUNCTUATION && token->text[0] &&
         !token->text[1] && strchr(texts, token->text[0]);
}

static bool opens(const hd_token_t *token) {
  return is_one_of(token, "([") || strcmp(token->text, "@[") == 0;
}

bool hd_skip_closed(hd_parser_t *p) {
  int depth = 0;
  for (size_t at = p->at;; at++) {
    const hd_token_t *token = &p->tokens[at];
    bool begins = token->first_on_line && token->kind == HD_TOKEN_NAME &&
                  hd_is_keyword(token->text);
    if (token->kind == HD_TOKEN_END || is_one_of(token, "{}") || begins)
      return false;
    if (opens(token)) {
      depth++;
    } else if (is_one_of(token, ")]") && depth-- == 0) {
      p->at = at + 1;
      return true;
    }
  }
}

void hd_skip_access(hd_parser_t *p) {
  while ((hd_at(p, "[") || hd_at(p, "@[")) && !hd_peek(p)->first_on_line) {
    p->at++;
    if (!hd_skip_closed(p))
      return;
  }
  if (!hd_peek(p)->first_on_line && hd_accept(p, "else"))
    hd_parse_value(p);
}
