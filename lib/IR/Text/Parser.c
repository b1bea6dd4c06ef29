// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modules: items, names, recovery. Two rounds over the tokens: the first reads
// constants and the headers of functions, so that functions may be called
// before they are defined; the second reads the bodies.
#include "IR/Text/Parser.h"

#include "IR/Graph/Graph.h"
#include "IR/Graph/RewriteRule.h"
#include "IR/Keywords.h"
#include "IR/Template.h"
#include "IR/Text/Alternatives.h"
#include "IR/Text/Library.h"
#include "IR/Text/ParserState.h"
#include "IR/Verify/Verifier.h"

#include <string.h>

enum { MAX_DEPTH = 200 };

const hd_token_t *hd_peek_ahead(const hd_parser_t *p, size_t ahead) {
  size_t at = p->at;
  while (ahead-- && p->tokens[at].kind != HD_TOKEN_END)
    at++;
  return &p->tokens[at];
}

bool hd_accept(hd_parser_t *p, const char *text) {
  if (!hd_at(p, text))
    return false;
  p->at++;
  return true;
}

hd_loc_t hd_here(const hd_parser_t *p) {
  return (hd_loc_t){p->source, hd_peek(p)->offset};
}

const char *hd_text_of_tokens(hd_parser_t *p, size_t first, size_t limit) {
  const hd_token_t *last = &p->tokens[limit - 1];
  uint32_t start = p->tokens[first].offset;
  return hd_arena_strndup(p->arena,
                          p->diags->sources[p->source - 1].text + start,
                          last->offset + last->size - start);
}

hd_parser_t hd_parser_again(const hd_parser_t *p, hd_module_t *module,
                            uint32_t source, const hd_token_t *tokens) {
  return (hd_parser_t){.module = module,
                       .arena = p->arena,
                       .diags = p->diags,
                       .source = source,
                       .tokens = tokens,
                       .visible = {.arena = p->arena},
                       .bound = {.arena = p->arena},
                       .failed = p->failed};
}

bool hd_expected(hd_parser_t *p, const char *what) {
  if (p->gave_up)
    return false;
  const hd_token_t *token = hd_peek(p);
  const char *quote = token->kind == HD_TOKEN_END ? "" : "'";
  return hd_error(
      p->diags, hd_here(p), HD_E0102, what,
      hd_arena_printf(p->arena, "%s%.60s%s", quote, token->text, quote));
}

bool hd_expect(hd_parser_t *p, const char *text) {
  if (hd_accept(p, text))
    return true;
  return hd_expected(p, hd_arena_printf(p->arena, "'%s'", text));
}

bool hd_enter(hd_parser_t *p) {
  if (p->depth >= MAX_DEPTH) {
    hd_error(p->diags, hd_here(p), HD_E0105, MAX_DEPTH);
    p->gave_up = true;
    while (hd_peek(p)->kind != HD_TOKEN_END)
      p->at++;
    return false;
  }
  p->depth++;
  return true;
}

const char *hd_expect_name(hd_parser_t *p, hd_loc_t *loc) {
  const hd_token_t *token = hd_peek(p);
  *loc = hd_here(p);
  if (token->kind != HD_TOKEN_NAME) {
    hd_expected(p, "a name");
    return NULL;
  }
  if (hd_is_reserved(token->text)) {
    if (hd_visible(p, token->text)) // It was reported here.
      return NULL;
    bool is_keyword = hd_is_keyword(token->text);
    hd_error(p->diags, *loc, HD_E0302,
             hd_arena_printf(p->arena, "%s '%s'",
                             is_keyword ? "the keyword" : "the type",
                             token->text),
             "as a name");
    if (p->func) // What uses it is not wrong for that.
      hd_poison(p, token->text, *loc);
    return NULL;
  }
  p->at++;
  return token->text;
}

const hd_var_t *hd_visible(const hd_parser_t *p, const char *name) {
  return hd_visible_find(&p->visible, name);
}

void hd_declare(hd_parser_t *p, const hd_var_t *var) {
  const hd_var_t *old = hd_visible(p, var->name);
  const hd_const_t *constant = hd_find_const(p, var->name);
  if (old || constant) {
    hd_error(p->diags, var->loc, HD_E0202, var->name);
    hd_note(p->diags, old ? old->loc : constant->loc, "declared here");
  }
  hd_visible_push(&p->visible, var, var->name);
}

const hd_const_t *hd_find_const(const hd_parser_t *p, const char *name) {
  const hd_bound_t *bound = hd_find_bound(p, name);
  if (bound)
    return &bound->constant;
  size_t cursor = 0;
  for (const hd_item_t *item;
       (item = hd_module_next(p->module, name, &cursor));)
    if (item->kind == HD_ITEM_CONST && !item->u.constant->is_local)
      return item->u.constant;
  return NULL;
}

// What is read in the second round: a function's body; a graph or a rewrite but
// for its name.
typedef struct pending {
  hd_func_t *func; // One of three.
  hd_graph_t *graph;
  hd_rewrite_t *rewrite;
  const hd_token_t *tokens; // Of an alternative of a rewrite; NULL: the text's.
  size_t at;                // The body's first token, '{'; of others '('.
  bool follows; // It is a further alternative of the rewrite before.
} pending_t;

static bool is_new(hd_parser_t *p, const char *name, hd_loc_t loc) {
  size_t cursor = 0;
  const hd_item_t *old = hd_module_next(p->module, name, &cursor);
  if (!old)
    return true;
  hd_error(p->diags, loc, HD_E0202, name);
  hd_note(p->diags, hd_item_loc(old), "declared here");
  return false;
}

hd_const_t *hd_parse_const(hd_parser_t *p, const char *name, hd_loc_t loc) {
  hd_const_t *constant = HD_ARENA_NEW(p->arena, hd_const_t);
  *constant = (hd_const_t){.name = name, .loc = loc};
  if (hd_at_mapping(p)) {
    constant->mapping = hd_parse_mapping(p);
    return constant->mapping ? constant : NULL;
  }
  hd_parsed_t value = hd_parse_value(p);
  if (!value.e)
    return NULL;
  constant->value = hd_expr_fold(p->arena, value.e);
  constant->untyped = value.untyped;
  if (!constant->value)
    hd_not_constant(p, value.e);
  return constant->value ? constant : NULL;
}

static bool parse_const(hd_parser_t *p) {
  hd_loc_t loc;
  const char *name = hd_expect_name(p, &loc);
  bool is_table = name && hd_accept(p, ":");
  if (!name || (!is_table && !hd_expect(p, "=")) || !is_new(p, name, loc))
    return false;
  if (is_table)
    return hd_parse_table(p, name, loc);
  hd_const_t *constant = hd_parse_const(p, name, loc);
  if (!constant)
    return false;
  hd_item_t item = {.kind = HD_ITEM_CONST, .u.constant = constant};
  hd_vec_push(p->arena, &p->module->items, item);
  return true;
}

bool hd_at_item(const hd_parser_t *p) {
  return hd_at(p, "const") || hd_at(p, "fn") || hd_at(p, "kernel") ||
         hd_at(p, "plan") || hd_at(p, "task") || hd_at(p, "graph") ||
         hd_at(p, "rewrite") || hd_at(p, "template");
}

typedef HD_VEC(pending_t) pendings_t;

static bool parse_task(hd_parser_t *p) {
  const char *name = hd_peek(p)->text;
  // See hd_node_is_reshape() and hd_node_is_loop().
  if (strcmp(name, "reshape") == 0 || strcmp(name, "loop") == 0)
    return hd_error(p->diags, hd_here(p), HD_E0302,
                    hd_arena_printf(p->arena, "'%s'", name),
                    "as the name of a task");
  return is_new(p, hd_peek(p)->text, hd_here(p)) && hd_parse_task(p);
}

static bool skip_body(hd_parser_t *p) {
  while (!hd_at(p, "{") && hd_peek(p)->kind != HD_TOKEN_END &&
         !(hd_at_item(p) && hd_peek(p)->first_on_line))
    p->at++;
  if (hd_at(p, "{"))
    hd_skip_braces(p);
  return true;
}

// Its tasks may come later.
static bool parse_graph(hd_parser_t *p, pendings_t *pendings) {
  hd_graph_t *graph = HD_ARENA_NEW(p->arena, hd_graph_t);
  graph->name = hd_expect_name(p, &graph->loc);
  if (!graph->name || !is_new(p, graph->name, graph->loc))
    return false;
  hd_item_t item = {.kind = HD_ITEM_GRAPH, .u.graph = graph};
  hd_vec_push(p->arena, &p->module->items, item);
  pending_t pending = {.graph = graph, .at = p->at};
  hd_vec_push(p->arena, pendings, pending);
  return skip_body(p);
}

// Its tasks may come later.
static bool parse_rewrite(hd_parser_t *p, pendings_t *pendings) {
  hd_loc_t loc;
  hd_alternatives_t alternatives;
  const char *name = hd_expect_name(p, &loc);
  if (!name || !hd_alternatives_read(p, &alternatives))
    return false;
  bool is_listed = alternatives.limit > p->at && hd_at_listed_signature(p);
  if (is_listed && alternatives.num_choices)
    return hd_error(p->diags, loc, HD_E0302, "a list of operands",
                    "in a rewrite with alternatives");
  for (unsigned way = 0; way < alternatives.count; way++) {
    hd_rewrite_t *rewrite = HD_ARENA_NEW(p->arena, hd_rewrite_t);
    rewrite->name = hd_alternatives_name(p, &alternatives, way, name);
    rewrite->family = name;
    rewrite->loc = loc;
    if (!is_new(p, rewrite->name, loc))
      return false;
    hd_item_t item = {.kind = HD_ITEM_REWRITE, .u.rewrite = rewrite};
    hd_vec_push(p->arena, &p->module->items, item);
    if (is_listed)
      hd_rewrite_keep_text(p, rewrite, p->at - 2, alternatives.limit);
    pending_t pending = {.rewrite = rewrite, .at = p->at};
    if (alternatives.num_choices) {
      pending.tokens = hd_alternatives_choose(p, &alternatives, way);
      pending.at = 0;
      pending.follows = way > 0;
    }
    hd_vec_push(p->arena, pendings, pending);
  }
  if (alternatives.limit > p->at) {
    p->at = alternatives.limit;
    return true;
  }
  return skip_body(p);
}

static bool parse_template(hd_parser_t *p) {
  hd_template_t *template = HD_ARENA_NEW(p->arena, hd_template_t);
  template->name = hd_expect_name(p, &template->loc);
  return template->name && is_new(p, template->name, template->loc) &&
         hd_parse_template(p, template);
}

// A function; with [name: type] behind its name, one with compile-time
// parameters, with [name = value] an instance of such.
static bool parse_func(hd_parser_t *p, hd_func_kind_t kind,
                       pendings_t *pendings) {
  hd_loc_t loc;
  size_t first = p->at - 1;
  const char *name = hd_expect_name(p, &loc);
  if (!name)
    return false;
  if (hd_at(p, "[") && strcmp(hd_peek_ahead(p, 2)->text, "=") != 0)
    return is_new(p, name, loc) && hd_parse_generic(p, kind, first, name, loc);
  if (hd_at(p, "["))
    name = hd_parse_instance_name(p, name);
  hd_func_t *func = name ? hd_parse_signature(p, kind, name, loc) : NULL;
  if (!func)
    return false;
  hd_check_duplicate(p, func);
  hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = func};
  hd_vec_push(p->arena, &p->module->items, item);
  pending_t pending = {.func = func, .at = p->at};
  hd_vec_push(p->arena, pendings, pending);
  hd_skip_braces(p);
  return true;
}

static bool parse_item(hd_parser_t *p, pendings_t *pendings) {
  static const struct {
    const char *word;
    hd_func_kind_t kind;
  } kinds[] = {
      {"kernel", HD_FUNC_KERNEL}, {"fn", HD_FUNC_FN}, {"plan", HD_FUNC_PLAN}};
  if (hd_accept(p, "const")) {
    hd_visible_pop(&p->visible, 0);
    p->func = NULL;
    return parse_const(p);
  }
  if (hd_accept(p, "task"))
    return parse_task(p);
  if (hd_accept(p, "graph"))
    return parse_graph(p, pendings);
  if (hd_accept(p, "rewrite"))
    return parse_rewrite(p, pendings);
  if (hd_accept(p, "template"))
    return parse_template(p);
  for (size_t i = 0; i < 3; i++)
    if (hd_accept(p, kinds[i].word))
      return parse_func(p, kinds[i].kind, pendings);
  return hd_expected(p, "'const', 'fn', 'kernel', 'plan', 'task', 'graph', "
                        "'rewrite' or 'template'");
}

// Other tokens than the text has are read by another parser.
static bool parse_chosen(const hd_parser_t *p, const pending_t *pending) {
  hd_parser_t reader = *p;
  reader.tokens = pending->tokens;
  reader.at = 0;
  reader.depth = 0;
  reader.gave_up = false;
  return hd_parse_rewrite(&reader, pending->rewrite);
}

static void parse_pending(hd_parser_t *p, const pending_t *pending) {
  p->at = pending->at;
  p->depth = 0;
  p->gave_up = false;
  if (pending->graph)
    hd_parse_graph(p, pending->graph);
  else if (pending->rewrite && pending->rewrite->text)
    hd_parse_rewrite_text(p, pending->rewrite);
  else if (pending->rewrite)
    hd_parse_rewrite(p, pending->rewrite);
  else
    hd_parse_body(p, pending->func);
}

// The name of the item that begins at a token.
static void note_failed(hd_parser_t *p, hd_visible_t *failed, size_t start) {
  const hd_token_t *name = &p->tokens[start + 1];
  if (p->tokens[start].kind == HD_TOKEN_END || name->kind != HD_TOKEN_NAME)
    return;
  hd_loc_t loc = {p->source, name->offset};
  hd_visible_push(
      failed,
      hd_var_make(p->arena, name->text, HD_VAR_LET, hd_type(HD_VOID), loc),
      name->text);
}

static void parse_module(hd_parser_t *p, bool as_library) {
  pendings_t pendings = {0};
  hd_visible_t failed = {.arena = p->arena};
  p->failed = &failed;
  size_t first = p->module->items.size;
  while (hd_peek(p)->kind != HD_TOKEN_END && !hd_diagnostics_full(p->diags)) {
    p->depth = 0;
    p->gave_up = false;
    size_t start = p->at;
    if (parse_item(p, &pendings))
      continue;
    note_failed(p, &failed, start);
    // To the next item that begins a line, over the braces of this one.
    if (hd_at_item(p) && !hd_peek(p)->first_on_line)
      p->at++;
    while (hd_peek(p)->kind != HD_TOKEN_END &&
           !(hd_at_item(p) && hd_peek(p)->first_on_line)) {
      if (hd_at(p, "{") && hd_peek(p)->kind == HD_TOKEN_PUNCTUATION)
        hd_skip_braces(p);
      else
        p->at++;
    }
  }
  if (!as_library)
    hd_parse_unasked(p, first);
  bool ok = true; // What is wrong in one alternative is not said of all.
  for (size_t i = 0; i < pendings.size && !hd_diagnostics_full(p->diags); i++) {
    const pending_t *pending = &pendings.data[i];
    if (!pending->tokens)
      parse_pending(p, pending);
    else if (ok || !pending->follows)
      ok = parse_chosen(p, pending);
  }
  p->failed = NULL;
}

static bool parse_text(hd_module_t *module, const char *name, const char *text,
                       size_t size, uint32_t first_line, bool as_library) {
  hd_diagnostics_t *diags = &module->context->diags;
  unsigned errors = diags->num_errors;
  uint32_t source =
      hd_diagnostics_add_source(diags, name, text, size, first_line);
  if (!source)
    hd_budget_exhausted(&module->context->budget, HD_EXHAUSTED_MEMORY);
  if (size > INT32_MAX || !hd_is_text(text, size))
    return hd_error(diags, (hd_loc_t){source, 0}, HD_E0107);
  size_t count;
  hd_parser_t p = {.module = module,
                   .arena = &module->arena,
                   .diags = diags,
                   .source = source,
                   .visible = {.arena = &module->arena},
                   .bound = {.arena = &module->arena}};
  p.tokens = hd_lex(p.arena, diags, source, text, size, &count);
  size_t first = module->items.size;
  parse_module(&p, as_library);
  if (diags->num_errors != errors)
    return false;
  // What needs whole functions - scopes, shapes, layouts, recursion - is the
  // verifier's to say.
  return hd_module_verify_text(module, first);
}

bool hd_module_parse_into(hd_module_t *module, const char *name,
                          const char *text, size_t size, uint32_t first_line) {
  return parse_text(module, name, text, size, first_line, false);
}

bool hd_module_parse_library(hd_module_t *module, const char *name,
                             const char *text, size_t size,
                             uint32_t first_line) {
  return parse_text(module, name, text, size, first_line, true);
}

hd_module_t *hd_module_parse(hd_context_t *context, const char *name,
                             const char *text, size_t size,
                             uint32_t first_line) {
  hd_module_t *module = hd_module_create(context);
  if (hd_module_parse_into(module, name, text, size, first_line))
    return module;
  hd_module_destroy(module);
  return NULL;
}
