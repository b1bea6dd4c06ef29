// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tasks with a list of operands: kept as text, and read anew for each number of
// operands that somebody asks for.
#include "IR/Text/Parser.h"
#include "IR/Text/TaskParser.h"
#include "IR/Verify/Verifier.h"

#include <string.h>

// name...: among what is in parentheses.
bool hd_at_listed_signature(const hd_parser_t *p) {
  const hd_token_t *tokens = p->tokens;
  int depth = 0;
  for (size_t at = p->at; tokens[at].kind != HD_TOKEN_END; at++) {
    const char *text = tokens[at].text;
    if (tokens[at].kind != HD_TOKEN_PUNCTUATION)
      continue;
    depth += strcmp(text, "(") == 0;
    depth -= strcmp(text, ")") == 0;
    if (depth <= 0)
      return false;
    if (strcmp(text, "...") == 0 && strcmp(tokens[at + 1].text, ":") == 0)
      return true;
  }
  return false;
}

static const hd_task_t *read_task(hd_parser_t *p, hd_task_text_t *text,
                                  const char *name, hd_loc_t loc,
                                  uint32_t count) {
  hd_parser_t reader =
      hd_parser_again(p, p->module, text->source, text->tokens);
  hd_task_t *task = hd_parse_task_rest(&reader, name, loc, &count, 1);
  if (task)
    task->text = text;
  p->at = reader.at;
  return task;
}

// Two show what is wrong with any number of them.
bool hd_parse_task_text(hd_parser_t *p, const char *name, hd_loc_t loc) {
  hd_task_text_t *text = HD_ARENA_NEW(p->arena, hd_task_text_t);
  size_t first = p->at - 2;
  *text = (hd_task_text_t){
      .module = p->module, .source = p->source, .tokens = &p->tokens[p->at]};
  for (uint32_t count = 1; count <= 2; count++) {
    p->at = 0;
    text->tasks[count - 1] = read_task(p, text, name, loc, count);
    p->at += first + 2;
    if (!text->tasks[count - 1])
      return false;
  }
  const hd_task_t *task = text->tasks[0];
  for (size_t i = 0; i < task->inputs.size; i++)
    text->num_others += task->inputs.data[i]->kind == HD_VALUE_INPUT;
  text->num_others--;
  text->text = hd_text_of_tokens(p, first, p->at);
  hd_item_t item = {.kind = HD_ITEM_TASK, .u.task = task};
  hd_vec_push(p->arena, &p->module->items, item);
  return true;
}

const hd_task_t *hd_task_for(const hd_task_t *task, uint32_t num_inputs) {
  hd_task_text_t *text = task->text;
  if (!text)
    return task;
  uint32_t count =
      num_inputs > text->num_others ? num_inputs - text->num_others : 1;
  count = count > HD_MAX_LISTED ? HD_MAX_LISTED : count;
  const hd_task_t **slot = &text->tasks[count - 1];
  hd_context_t *context = text->module->context;
  hd_parser_t p = {.module = text->module,
                   .arena = &text->module->arena,
                   .diags = &context->diags};
  if (!*slot) {
    *slot = read_task(&p, text, task->name, task->loc, count);
    if (*slot && !hd_task_verify(context, *slot))
      *slot = NULL;
  }
  return *slot;
}
