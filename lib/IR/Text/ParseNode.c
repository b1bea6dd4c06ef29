// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes of graphs: operators, operands, schedules.
#include "IR/Graph/Loop.h"
#include "IR/Text/GraphParser.h"
#include "IR/Text/Library.h"
#include "Support/Suggest.h"

#include <string.h>

static bool report_no_task(hd_graph_parser_t *g, const hd_node_t *node) {
  hd_parser_t *p = g->p;
  char text[128];
  const char *known;
  hd_suggestion_t near = {.wanted = node->op};
  if (hd_has_failed(p, node->op))
    return false;
  for (size_t i = 0; i < p->module->items.size; i++)
    if (p->module->items.data[i].kind == HD_ITEM_TASK)
      hd_suggestion_add(&near, hd_item_name(&p->module->items.data[i]));
  for (size_t i = 0; (known = hd_library_task_name(i)); i++)
    hd_suggestion_add(&near, known);
  hd_error(p->diags, node->loc, HD_E0201, node->op,
           hd_suggestion_text(&near, "", text, sizeof text));
  hd_note(p->diags, node->loc,
          "a task is meant; an operator of a standard has its domain and "
          "version before it: onnx13.%s",
          node->op);
  return false;
}

// onnx13.Conv, or the name of a task.
static bool parse_operator(hd_graph_parser_t *g, hd_node_t *node) {
  hd_parser_t *p = g->p;
  const hd_token_t *token = hd_peek(p);
  node->loc = hd_here(p);
  node->op = token->text;
  const char *next = hd_peek_ahead(p, 1)->text;
  if (token->kind != HD_TOKEN_NAME ||
      (strcmp(next, "(") != 0 && strcmp(next, ".") != 0))
    return hd_expected(p, "an operator and its operands");
  p->at++;
  if (!hd_accept(p, ".")) {
    if (hd_node_is_reshape(node) || hd_node_is_loop(node))
      return true;
    node->task = hd_module_find_task(p->module, node->op);
    if (!node->task)
      node->task = hd_library_task(p->module->context, node->op);
    return node->task || report_no_task(g, node);
  }
  size_t size = strlen(token->text), digits = 0;
  while (digits < size && token->text[size - digits - 1] >= '0' &&
         token->text[size - digits - 1] <= '9')
    digits++;
  node->domain = hd_arena_strndup(p->arena, token->text, size - digits);
  for (const char *c = token->text + size - digits;
       *c && node->version <= HD_MAX_OPERATOR_VERSION; c++)
    node->version = node->version * 10 + (*c - '0');
  if (hd_peek(p)->kind != HD_TOKEN_NAME)
    return hd_expected(p, "the name of an operator");
  node->op = hd_peek(p)->text;
  p->at++;
  return true;
}

static bool parse_operands(hd_graph_parser_t *g, hd_node_t *node) {
  hd_parser_t *p = g->p;
  HD_VEC(const hd_value_t *) inputs = {0};
  if (!hd_expect(p, "("))
    return false;
  while (!hd_at(p, ")")) {
    const hd_value_t *value = NULL;
    if (!hd_accept(p, "_")) {
      hd_loc_t loc;
      const char *name = hd_expect_name(p, &loc);
      if (!name)
        return false;
      value = hd_graph_use_value(g, name, loc);
    }
    hd_vec_push(p->arena, &inputs, value);
    if (!hd_accept(p, ","))
      break;
  }
  node->inputs = inputs.data;
  node->num_inputs = (uint32_t)inputs.size;
  if (node->task && !(node->task = hd_task_for(node->task, node->num_inputs)))
    return false;
  return hd_expect(p, ")");
}

// `anchor` and `with` mean something before a name; values may be called so,
// too, and then have a label: anchor as "x".
static bool accept_word(hd_parser_t *p, const char *word) {
  if (!hd_at(p, word) || hd_peek_ahead(p, 1)->kind != HD_TOKEN_NAME ||
      (strcmp(hd_peek_ahead(p, 1)->text, "as") == 0 &&
       hd_peek_ahead(p, 2)->kind == HD_TOKEN_STRING))
    return false;
  p->at++;
  return true;
}

// [with NAME[values]], or [with NAME(values)]
static bool parse_schedule(hd_parser_t *p, hd_node_t *node) {
  hd_loc_t loc;
  if (!accept_word(p, "with"))
    return true;
  const char *name = hd_expect_name(p, &loc);
  if (name && hd_at(p, "("))
    return (node->pin = hd_parse_pin(p, name, loc));
  if (name)
    node->schedule = hd_parse_func_name(p, name, loc, HD_KINDS_SCHEDULE);
  return node->schedule;
}

bool hd_parse_node(hd_graph_parser_t *g, hd_node_t *node) {
  return parse_operator(g, node) && parse_operands(g, node) &&
         (!hd_accept(g->p, "{") || hd_parse_attributes(g, node)) &&
         parse_schedule(g->p, node) && hd_parse_label(g->p, &node->label);
}

// [anchor], in a group.
bool hd_parse_anchor(hd_graph_parser_t *g, hd_node_t *node) {
  hd_loc_t loc = hd_here(g->p);
  node->loc = loc; // Until the operator is read.
  node->group = g->group;
  node->anchor = accept_word(g->p, "anchor");
  return !node->anchor || g->group ||
         hd_error(g->p->diags, loc, HD_E0302, "'anchor'", "outside a group");
}
