// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs: signatures and nodes. After an error the rest of the statement is
// skipped.
#include "IR/Graph/Loop.h"
#include "IR/Keywords.h"
#include "IR/Text/GraphParser.h"
#include "IR/Text/Library.h"
#include "Support/Suggest.h"

#include <string.h>

struct hd_graph_entry {
  const char *name;
  hd_value_t *value; // NULL: of a graph that has ended.
  hd_loc_t loc;      // Of the last value of that name.
};

typedef HD_VEC(hd_graph_entry_t *) entries_t;

typedef HD_VEC(hd_value_t *) results_t;

static hd_graph_entry_t *find_entry(const hd_graph_parser_t *g,
                                    const char *name) {
  return hd_key_map_find_name(&g->names, name);
}

static void declare(hd_graph_parser_t *g, entries_t *entries,
                    hd_value_t *value) {
  hd_graph_entry_t *entry = find_entry(g, value->name);
  if (entry && entry->value) {
    hd_error(g->p->diags, value->loc, HD_E0202, value->name);
    hd_note(g->p->diags, entry->value->loc, "declared here");
    return;
  }
  if (!entry) {
    entry = HD_ARENA_NEW(g->p->arena, hd_graph_entry_t);
    entry->name = value->name;
    hd_key_map_set_name(g->p->arena, &g->names, entry->name, entry);
    hd_vec_push(g->p->arena, &g->entries, entry);
  }
  entry->value = value;
  entry->loc = value->loc;
  hd_vec_push(g->p->arena, entries, entry);
}

// What has not been given is reported at the end, when it is known whether it
// comes later.
const hd_value_t *hd_graph_use_value(hd_graph_parser_t *g, const char *name,
                                     hd_loc_t loc) {
  hd_graph_entry_t *entry = find_entry(g, name);
  if (entry && entry->value)
    return entry->value;
  hd_unresolved_t unresolved = {name, loc};
  hd_vec_push(g->p->arena, &g->unresolved, unresolved);
  hd_value_t *value = HD_ARENA_NEW(g->p->arena, hd_value_t);
  value->name = name;
  value->rank = -1;
  return value;
}

// Takes time for each name, so only so many are looked at.
enum { MAX_SUGGESTED = 2000 };

static void report_unresolved(hd_graph_parser_t *g) {
  hd_diagnostics_t *diags = g->p->diags;
  for (size_t i = 0; i < g->unresolved.size && !hd_diagnostics_full(diags);
       i++) {
    const hd_unresolved_t *u = &g->unresolved.data[i];
    const hd_graph_entry_t *entry = find_entry(g, u->name);
    if (entry) {
      hd_error(diags, u->loc, HD_E0301, u->name);
      hd_note(diags, entry->loc, "it is given here");
      continue;
    }
    char near[128];
    hd_suggestion_t suggestion = {.wanted = u->name};
    for (size_t n = 0; n < g->entries.size && n < MAX_SUGGESTED; n++)
      hd_suggestion_add(&suggestion, g->entries.data[n]->name);
    hd_error(diags, u->loc, HD_E0201, u->name,
             hd_suggestion_text(&suggestion, "", near, sizeof near));
  }
}

// [as "label"]: a value may be named `as`.
bool hd_parse_label(hd_parser_t *p, const char **label) {
  if (!hd_at(p, "as") || hd_peek_ahead(p, 1)->kind != HD_TOKEN_STRING)
    return true;
  if (*label)
    return hd_error(p->diags, hd_here(p), HD_E0303, "a label");
  *label = hd_peek_ahead(p, 1)->text;
  p->at += 2;
  return true;
}

// name [as "label"]; NULL: an error, reported.
static hd_value_t *parse_declared(hd_graph_parser_t *g) {
  hd_value_t *value = HD_ARENA_NEW(g->p->arena, hd_value_t);
  value->rank = -1;
  value->name = hd_expect_name(g->p, &value->loc);
  return value->name && hd_parse_label(g->p, &value->label) ? value : NULL;
}

static bool parse_inputs(hd_graph_parser_t *g, entries_t *entries) {
  hd_parser_t *p = g->p;
  if (!hd_expect(p, "("))
    return false;
  while (!hd_at(p, ")")) {
    hd_value_t *value = parse_declared(g);
    if (!value || !hd_expect(p, ":") || !hd_parse_value_type(g, value, true))
      return false;
    declare(g, entries, value);
    hd_vec_push(p->arena, &g->graph->inputs, (const hd_value_t *)value);
    if (!hd_accept(p, ","))
      break;
  }
  return hd_expect(p, ")");
}

// The names after the arrow; their values are found when the graph has ended.
static bool parse_outputs(hd_graph_parser_t *g, results_t *outputs) {
  if (!hd_accept(g->p, "->"))
    return true;
  do {
    hd_value_t *output = parse_declared(g);
    if (!output)
      return false;
    hd_vec_push(g->p->arena, outputs, output);
  } while (hd_accept(g->p, ","));
  return true;
}

static void resolve_outputs(hd_graph_parser_t *g, const results_t *outputs) {
  for (size_t i = 0; i < outputs->size; i++) {
    const hd_value_t *output = outputs->data[i];
    hd_graph_entry_t *entry = find_entry(g, output->name);
    if (output->label && entry && entry->value && entry->value->label)
      hd_error(g->p->diags, output->loc, HD_E0303, "a label");
    else if (output->label && entry && entry->value)
      entry->value->label = output->label;
    const hd_value_t *value = hd_graph_use_value(g, output->name, output->loc);
    hd_vec_push(g->p->arena, &g->graph->outputs, value);
  }
}

static bool parse_constant(hd_graph_parser_t *g, entries_t *entries) {
  hd_value_t *value = parse_declared(g);
  if (!value || !hd_expect(g->p, ":") ||
      !hd_parse_value_type(g, value, false) || !hd_expect(g->p, "="))
    return false;
  bool ok = hd_parse_elements(g, value);
  declare(g, entries, value);
  hd_vec_push(g->p->arena, &g->graph->constants, (const hd_value_t *)value);
  return ok;
}

// name [as "label"] [: type] | _, ... before '='
static bool parse_results(hd_graph_parser_t *g, results_t *results) {
  do {
    hd_value_t *value = NULL;
    if (!hd_accept(g->p, "_")) {
      value = parse_declared(g);
      if (!value ||
          (hd_accept(g->p, ":") && !hd_parse_value_type(g, value, false)))
        return false;
    }
    hd_vec_push(g->p->arena, results, value);
  } while (hd_accept(g->p, ","));
  return hd_expect(g->p, "=");
}

static bool parse_one(hd_graph_parser_t *g, entries_t *entries) {
  hd_parser_t *p = g->p;
  results_t results = {0};
  hd_node_t *node = HD_ARENA_NEW(p->arena, hd_node_t);
  if (!hd_parse_anchor(g, node))
    return false;
  const char *after = hd_peek_ahead(p, 1)->text;
  if (strcmp(after, "(") != 0 && strcmp(after, ".") != 0 &&
      !parse_results(g, &results))
    return false;
  bool ok = hd_parse_node(g, node);
  // Also after an error: what uses the results is not wrong for it.
  for (size_t i = 0; i < results.size; i++)
    if (results.data[i])
      declare(g, entries, results.data[i]);
  node->num_outputs = (uint32_t)results.size;
  node->outputs = (const hd_value_t *const *)results.data;
  if (ok)
    hd_settle_node_types(p->arena, node);
  hd_vec_push(p->arena, &g->graph->nodes, (const hd_node_t *)node);
  if (ok && !hd_peek(p)->first_on_line && !hd_at(p, "}"))
    return hd_expected(p, "the end of the line");
  return ok;
}

static bool parse_group(hd_graph_parser_t *g, entries_t *entries);

static bool parse_statement(hd_graph_parser_t *g, entries_t *entries) {
  hd_parser_t *p = g->p;
  hd_loc_t loc = hd_here(p);
  bool is_const = hd_at(p, "const");
  bool is_group =
      hd_at(p, "group") && strcmp(hd_peek_ahead(p, 1)->text, "{") == 0;
  if (!is_const && !is_group)
    return parse_one(g, entries);
  if (g->group)
    return hd_error(p->diags, loc, HD_E0302, is_const ? "'const'" : "'group'",
                    "in a group");
  if (is_group)
    return parse_group(g, entries);
  p->at++;
  return parse_constant(g, entries);
}

// To the next line of the body that the statement at start stands in, or to
// the end of the body.
static void skip_statement(hd_parser_t *p, size_t start) {
  int depth = 0;
  size_t at = start;
  for (; p->tokens[at].kind != HD_TOKEN_END; at++) {
    const hd_token_t *token = &p->tokens[at];
    bool opens = false, closes = false;
    if (token->kind == HD_TOKEN_PUNCTUATION) {
      opens = strcmp(token->text, "{") == 0;
      closes = strcmp(token->text, "}") == 0;
    }
    if (depth == 0 && (closes || (at >= p->at && at > start &&
                                  token->first_on_line && !opens)))
      break;
    depth += opens - closes;
  }
  p->at = at;
}

// What a statement that was reported would have given: uses of it are not.
static void give_up_values(hd_graph_parser_t *g, entries_t *entries,
                           size_t start) {
  hd_parser_t *p = g->p;
  bool begins = true; // A name here is a result's.
  for (size_t at = start; p->tokens[at].kind != HD_TOKEN_END; at++) {
    const hd_token_t *token = &p->tokens[at];
    if ((at > start && token->first_on_line) || strcmp(token->text, "=") == 0 ||
        strcmp(token->text, "{") == 0)
      return;
    bool is_word = strcmp(token->text, "const") == 0 ||
                   strcmp(token->text, "anchor") == 0 ||
                   strcmp(token->text, "group") == 0;
    if (begins && token->kind == HD_TOKEN_NAME && !is_word) {
      const hd_graph_entry_t *entry = find_entry(g, token->text);
      hd_value_t *value = HD_ARENA_NEW(p->arena, hd_value_t);
      value->name = token->text;
      value->loc = (hd_loc_t){p->source, token->offset};
      value->rank = -1;
      if (hd_is_reserved(value->name))
        hd_poison(p, value->name, value->loc);
      else if (!entry || !entry->value)
        declare(g, entries, value);
    }
    begins = is_word || strcmp(token->text, ",") == 0;
  }
}

// Up to the '}'.
static void parse_statements(hd_graph_parser_t *g, entries_t *entries) {
  hd_parser_t *p = g->p;
  while (!hd_at(p, "}") && hd_peek(p)->kind != HD_TOKEN_END &&
         !hd_at_next_item(p) && !hd_diagnostics_full(p->diags)) {
    hd_budget_check(&p->module->context->budget);
    size_t start = p->at;
    if (parse_statement(g, entries))
      continue;
    give_up_values(g, entries, start);
    skip_statement(p, start);
  }
}

// group { node ... }
static bool parse_group(hd_graph_parser_t *g, entries_t *entries) {
  hd_parser_t *p = g->p;
  hd_loc_t loc = hd_here(p), open = {p->source, hd_peek_ahead(p, 1)->offset};
  size_t before = g->graph->nodes.size;
  p->at += 2;
  g->group = ++g->groups;
  parse_statements(g, entries);
  g->group = 0;
  if (!hd_close_block(p, open))
    return false;
  if (g->graph->nodes.size == before)
    hd_error(p->diags, loc, HD_E0315, "it has no node");
  if (!hd_peek(p)->first_on_line && !hd_at(p, "}"))
    return hd_expected(p, "the end of the line");
  return true;
}

bool hd_parse_graph_rest(hd_graph_parser_t *g, hd_graph_t *graph) {
  hd_parser_t *p = g->p;
  hd_graph_t *outer = g->graph;
  uint32_t group = g->group, groups = g->groups;
  size_t dims = hd_visible_size(&p->visible);
  entries_t entries = {0};
  results_t outputs = {0};
  g->graph = graph;
  g->group = g->groups = 0;
  bool ok = parse_inputs(g, &entries) && parse_outputs(g, &outputs);
  hd_loc_t open = hd_here(p);
  ok = ok && hd_expect(p, "{");
  if (ok)
    parse_statements(g, &entries);
  if (ok)
    resolve_outputs(g, &outputs);
  for (size_t i = 0; i < entries.size; i++)
    entries.data[i]->value = NULL;
  hd_visible_pop(&p->visible, dims);
  g->graph = outer;
  g->group = group;
  g->groups = groups;
  return ok && hd_close_block(p, open);
}

bool hd_parse_graph_alone(hd_graph_parser_t *g, hd_graph_t *graph) {
  hd_graph_parser_t outer = *g;
  memset(&g->names, 0, sizeof g->names);
  memset(&g->entries, 0, sizeof g->entries);
  memset(&g->unresolved, 0, sizeof g->unresolved);
  bool ok = hd_parse_graph_rest(g, graph);
  report_unresolved(g);
  outer.repeated = g->repeated;
  *g = outer;
  return ok;
}

bool hd_parse_graph(hd_parser_t *p, hd_graph_t *graph) {
  hd_graph_parser_t g = {.p = p};
  hd_visible_pop(&p->visible, 0);
  p->func = NULL;
  p->odd_block = (hd_loc_t){0};
  bool ok = hd_parse_graph_rest(&g, graph);
  report_unresolved(&g);
  return ok;
}
