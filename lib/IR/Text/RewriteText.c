// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rewrites with lists of operands: kept as text, and read anew for the numbers
// of operands that nodes are found to have.
#include "IR/Graph/RewriteRule.h"
#include "IR/Text/Parser.h"
#include "IR/Text/ParserState.h"

#include <string.h>

static bool read_rewrite(hd_parser_t *p, hd_rewrite_t *rewrite) {
  const hd_rewrite_text_t *text = rewrite->text;
  hd_parser_t reader =
      hd_parser_again(p, text->module, text->source, text->tokens);
  return hd_parse_rewrite(&reader, rewrite) &&
         hd_rewrite_verify(text->module->context, rewrite);
}

void hd_rewrite_keep_text(hd_parser_t *p, hd_rewrite_t *rewrite, size_t first,
                          size_t limit) {
  hd_rewrite_text_t *text = HD_ARENA_NEW(p->arena, hd_rewrite_text_t);
  *text = (hd_rewrite_text_t){
      .module = p->module, .source = p->source, .tokens = &p->tokens[p->at]};
  text->text = hd_text_of_tokens(p, first, limit);
  rewrite->text = text;
  for (int i = 0; i < HD_MAX_LISTS; i++)
    rewrite->counts[i] = 1;
  hd_vec_push(p->arena, &text->rewrites, rewrite);
}

// Two of each list show what is wrong with any number.
bool hd_parse_rewrite_text(hd_parser_t *p, hd_rewrite_t *rewrite) {
  static const uint32_t two[HD_MAX_LISTS] = {2, 2, 2, 2, 2, 2, 2, 2};
  return read_rewrite(p, rewrite) && hd_rewrite_for(rewrite, two);
}

const hd_rewrite_t *hd_rewrite_for(const hd_rewrite_t *rewrite,
                                   const uint32_t *counts) {
  hd_rewrite_text_t *text = rewrite->text;
  size_t size = text->num_lists * sizeof *counts;
  for (size_t i = 0; i < text->rewrites.size; i++)
    if (memcmp(text->rewrites.data[i]->counts, counts, size) == 0)
      return text->rewrites.data[i];
  hd_parser_t p = {.arena = &text->module->arena,
                   .diags = &text->module->context->diags};
  hd_rewrite_t *made = HD_ARENA_NEW(p.arena, hd_rewrite_t);
  *made = (hd_rewrite_t){.name = rewrite->name,
                         .family = rewrite->family,
                         .loc = rewrite->loc,
                         .text = text};
  memcpy(made->counts, counts, size);
  if (!read_rewrite(&p, made))
    return NULL;
  hd_vec_push(p.arena, &text->rewrites, made);
  return made;
}
