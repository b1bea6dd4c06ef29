// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rewrites. Their operands and attributes, and the types written behind
// results, are a task's signature; so they are read by the parser of tasks.
#include "IR/Graph/RewriteRule.h"
#include "IR/Text/Library.h"
#include "IR/Text/TaskParser.h"

#include <string.h>

typedef struct rule_parser {
  hd_task_parser_t t;
  hd_rewrite_t *rewrite;
  bool right;
} rule_parser_t;

// Names are looked for one after the other.
enum { MAX_VALUES = 200 };

static hd_rule_value_t *find_value(const rule_parser_t *r, const char *name) {
  for (size_t i = 0; i < r->rewrite->values.size; i++)
    if (strcmp(r->rewrite->values.data[i]->name, name) == 0)
      return r->rewrite->values.data[i];
  return NULL;
}

static hd_rule_value_t *add_value(rule_parser_t *r, const char *name,
                                  hd_loc_t loc) {
  hd_parser_t *p = r->t.p;
  if (r->rewrite->values.size >= MAX_VALUES) {
    hd_error(p->diags, loc, HD_E0307, "the number of a rewrite's values", 1LL,
             (long long)MAX_VALUES, (long long)MAX_VALUES + 1);
    return NULL;
  }
  hd_rule_value_t *value = HD_ARENA_NEW(p->arena, hd_rule_value_t);
  *value = (hd_rule_value_t){
      .name = name, .loc = loc, .index = (uint32_t)r->rewrite->values.size};
  hd_vec_push(p->arena, &r->rewrite->values, value);
  return value;
}

// name[...]: [const] T[shape] | name: T [over pack] [= constant]
static bool parse_parameter(rule_parser_t *r) {
  bool is_list = strcmp(hd_peek_ahead(r->t.p, 1)->text, "...") == 0;
  const hd_token_t *type = hd_peek_ahead(r->t.p, is_list ? 3 : 2);
  bool is_const =
      strcmp(type->text, "const") == 0 && type->kind == HD_TOKEN_NAME;
  const hd_task_t *task = r->t.task;
  size_t first = task->inputs.size;
  uint32_t lists = r->t.num_lists;
  if (!hd_parse_task_input(&r->t))
    return false;
  for (size_t i = first; i < task->inputs.size; i++) {
    const hd_task_value_t *input = task->inputs.data[i];
    if (input->kind == HD_VALUE_ATTRIBUTE)
      return !is_const || hd_error(r->t.p->diags, input->loc, HD_E0302,
                                   "'const'", "before an attribute");
    hd_rule_value_t *value = add_value(r, input->name, input->loc);
    if (!value)
      return false;
    value->operand = true;
    value->list = r->t.num_lists > lists ? r->t.num_lists : 0;
    value->constant = is_const;
    value->type = input;
  }
  return true;
}

static bool parse_parameters(rule_parser_t *r) {
  if (!hd_expect(r->t.p, "("))
    return false;
  while (!hd_at(r->t.p, ")")) {
    if (!parse_parameter(r))
      return false;
    if (!hd_accept(r->t.p, ","))
      break;
  }
  return hd_expect(r->t.p, ")");
}

// --- Nodes ---

// One new name, or on the right one that the left side gives.
static hd_rule_value_t *parse_result(rule_parser_t *r) {
  hd_parser_t *p = r->t.p;
  hd_loc_t loc;
  const char *name = hd_expect_name(p, &loc);
  if (!name)
    return NULL;
  hd_rule_value_t *value = find_value(r, name);
  if (value && (!r->right || !value->left || value->right)) {
    hd_error(p->diags, loc, HD_E0202, name);
    hd_note(p->diags, value->loc, "declared here");
    return NULL;
  }
  if (!value && hd_task_declares(&r->t, name, loc))
    return NULL;
  if (!value && !(value = add_value(r, name, loc)))
    return NULL;
  if (hd_accept(p, ":")) {
    if (value->type) {
      hd_error(p->diags, loc, HD_E0303, "a type");
      return NULL;
    }
    value->type = hd_parse_task_result(&r->t, name, loc, !r->right);
    if (!value->type)
      return NULL;
  }
  return value;
}

typedef HD_VEC(hd_rule_value_t *) results_t;

static bool parse_results(rule_parser_t *r, results_t *results) {
  do {
    hd_rule_value_t *value = NULL;
    if (!hd_accept(r->t.p, "_") && !(value = parse_result(r)))
      return false;
    hd_vec_push(r->t.p->arena, results, value);
  } while (hd_accept(r->t.p, ","));
  return hd_expect(r->t.p, "=");
}

static const hd_rule_value_t *parse_use(rule_parser_t *r) {
  hd_parser_t *p = r->t.p;
  hd_loc_t loc;
  const char *name = hd_expect_name(p, &loc);
  hd_rule_value_t *value = name ? find_value(r, name) : NULL;
  if (name && !value)
    hd_error(p->diags, loc, HD_E0201, name, "");
  return value;
}

typedef HD_VEC(const hd_rule_value_t *) inputs_t;

// name | name..., all operands of a list
static bool parse_operand(rule_parser_t *r, inputs_t *inputs) {
  hd_parser_t *p = r->t.p;
  if (strcmp(hd_peek_ahead(p, 1)->text, "...") != 0) {
    const hd_rule_value_t *value = parse_use(r);
    hd_vec_push(p->arena, inputs, value);
    return value != NULL;
  }
  const char *name = hd_peek(p)->text;
  const hd_listed_t *listed = hd_find_listed(&r->t, name);
  if (!listed || listed->is_size)
    return hd_expected(p, "a list of operands before '...'");
  for (uint32_t part = 1; part <= r->t.counts[listed->list]; part++)
    hd_vec_push(p->arena, inputs,
                (const hd_rule_value_t *)find_value(
                    r, hd_listed_part(&r->t, name, part)));
  p->at += 2;
  return true;
}

static bool parse_operands(rule_parser_t *r, hd_rule_node_t *node) {
  inputs_t inputs = {0};
  if (!hd_expect(r->t.p, "("))
    return false;
  while (!hd_at(r->t.p, ")")) {
    if (!parse_operand(r, &inputs))
      return false;
    if (!hd_accept(r->t.p, ","))
      break;
  }
  node->inputs = inputs.data;
  node->num_inputs = (uint32_t)inputs.size;
  if (node->task && !(node->task = hd_task_for(node->task, node->num_inputs)))
    return false;
  return hd_expect(r->t.p, ")");
}

static bool is_type_name(const hd_parser_t *p) {
  const char *name = hd_peek(p)->text;
  hd_type_t type;
  return hd_peek(p)->kind == HD_TOKEN_NAME &&
         strcmp(hd_peek_ahead(p, 1)->text, "(") != 0 &&
         ((name[0] >= 'A' && name[0] <= 'Z') || hd_type_parse(name, &type));
}

static bool parse_list(rule_parser_t *r, hd_rule_attribute_t *a) {
  HD_VEC(const hd_term_t *) terms = {0};
  a->kind = HD_RULE_LIST;
  while (!hd_at(r->t.p, "]")) {
    const hd_term_t *term = hd_term_settle(&r->t, hd_parse_axis(&r->t));
    if (!term)
      return false;
    hd_vec_push(r->t.p->arena, &terms, term);
    if (!hd_accept(r->t.p, ","))
      break;
  }
  a->terms = terms.data;
  a->count = (uint32_t)terms.size;
  return hd_expect(r->t.p, "]");
}

// narrow(T)
static bool parse_narrow(rule_parser_t *r, hd_rule_attribute_t *a) {
  a->kind = HD_RULE_TYPE;
  a->narrow = true;
  r->t.p->at += 2;
  return hd_parse_task_type(&r->t, &a->type) && hd_expect(r->t.p, ")");
}

// The token that the value begins at may be the attribute's name.
static bool parse_value(rule_parser_t *r, hd_rule_attribute_t *a) {
  hd_parser_t *p = r->t.p;
  if (hd_accept(p, "["))
    return parse_list(r, a);
  if (strcmp(hd_peek(p)->text, "narrow") == 0 &&
      strcmp(hd_peek_ahead(p, 1)->text, "(") == 0)
    return parse_narrow(r, a);
  if (is_type_name(p)) {
    a->kind = HD_RULE_TYPE;
    return hd_parse_task_type(&r->t, &a->type);
  }
  const hd_token_t *token = hd_peek(p);
  a->pack = token->kind == HD_TOKEN_NAME
                ? hd_task_find_pack(r->t.task, token->text)
                : NULL;
  a->kind = a->pack ? HD_RULE_RANK : HD_RULE_TERM;
  if (a->pack) {
    p->at++;
    return true;
  }
  a->term = hd_term_settle(&r->t, hd_parse_axis(&r->t));
  return a->term != NULL;
}

// { name = value, name, ... }: a name alone is its own value.
static bool parse_attributes(rule_parser_t *r, hd_rule_node_t *node) {
  hd_parser_t *p = r->t.p;
  HD_VEC(const hd_rule_attribute_t *) attributes = {0};
  while (!hd_at(p, "}")) {
    hd_rule_attribute_t *a = HD_ARENA_NEW(p->arena, hd_rule_attribute_t);
    const hd_token_t *token = hd_peek(p);
    a->loc = hd_here(p);
    a->name = token->text;
    if (token->kind != HD_TOKEN_NAME)
      return hd_expected(p, "the name of an attribute");
    if (strcmp(hd_peek_ahead(p, 1)->text, "=") == 0)
      p->at += 2;
    for (size_t i = 0; i < attributes.size; i++)
      if (strcmp(attributes.data[i]->name, a->name) == 0)
        return hd_error(p->diags, a->loc, HD_E0202, a->name);
    if (!parse_value(r, a))
      return false;
    hd_vec_push(p->arena, &attributes, (const hd_rule_attribute_t *)a);
    if (!hd_accept(p, ","))
      break;
  }
  node->attributes = attributes.data;
  node->num_attributes = (uint32_t)attributes.size;
  return hd_expect(p, "}");
}

// A task of the module or the library, reshape, magnitudes, or the name of a
// value.
static bool parse_operation(rule_parser_t *r, hd_rule_node_t *node) {
  hd_parser_t *p = r->t.p;
  const hd_token_t *token = hd_peek(p);
  node->loc = hd_here(p);
  if (strcmp(hd_peek_ahead(p, 1)->text, "(") != 0) {
    const hd_rule_value_t **input =
        HD_ARENA_ARRAY(p->arena, const hd_rule_value_t *, 1);
    input[0] = parse_use(r);
    node->inputs = input;
    node->num_inputs = 1;
    return input[0] != NULL;
  }
  if (token->kind != HD_TOKEN_NAME)
    return hd_expected(p, "an operator");
  node->op = token->text;
  p->at++;
  if (!hd_rule_node_is_reshape(node) &&
      !(r->right && hd_rule_node_is_magnitudes(node))) {
    node->task = hd_module_find_task(p->module, node->op);
    if (!node->task)
      node->task = hd_library_task(p->module->context, node->op);
    if (!node->task)
      return hd_error(p->diags, node->loc, HD_E0201, node->op, "");
  }
  return parse_operands(r, node) &&
         (!hd_accept(p, "{") || parse_attributes(r, node));
}

// Before the name of a task; else it is one itself.
static bool at_require(rule_parser_t *r) {
  return r->right && strcmp(hd_peek(r->t.p)->text, "require") == 0 &&
         hd_peek_ahead(r->t.p, 1)->kind == HD_TOKEN_NAME;
}

static bool parse_node(rule_parser_t *r) {
  hd_parser_t *p = r->t.p;
  results_t results = {0};
  hd_rule_node_t *node = HD_ARENA_NEW(p->arena, hd_rule_node_t);
  node->required = at_require(r);
  p->at += node->required;
  if ((!node->required && !parse_results(r, &results)) ||
      !parse_operation(r, node))
    return false;
  node->outputs = (const hd_rule_value_t *const *)results.data;
  node->num_outputs = (uint32_t)results.size;
  for (size_t i = 0; i < results.size; i++)
    if (results.data[i] && r->right)
      results.data[i]->right = node;
    else if (results.data[i])
      results.data[i]->left = node;
  if (r->right)
    hd_vec_push(p->arena, &r->rewrite->right, (const hd_rule_node_t *)node);
  else
    hd_vec_push(p->arena, &r->rewrite->left, (const hd_rule_node_t *)node);
  return hd_peek(p)->first_on_line || hd_at(p, "}") ||
         hd_expected(p, "the end of the line");
}

// Before 'change'; else it is a name.
static bool at_may(const hd_parser_t *p) {
  return hd_at(p, "may") && strcmp(hd_peek_ahead(p, 1)->text, "change") == 0;
}

// Before two names; else it is a name.
static bool at_apart(const hd_parser_t *p) {
  return hd_at(p, "apart") && hd_peek_ahead(p, 1)->kind == HD_TOKEN_NAME &&
         strcmp(hd_peek_ahead(p, 2)->text, ",") == 0 &&
         hd_peek_ahead(p, 2)->kind != HD_TOKEN_STRING;
}

static bool parse_nodes(rule_parser_t *r, const char *first_end,
                        const char *end) {
  while (!hd_at(r->t.p, first_end) && !hd_at(r->t.p, end) && !at_may(r->t.p) &&
         !at_apart(r->t.p)) {
    hd_budget_check(&r->t.p->module->context->budget);
    if (!parse_node(r))
      return false;
  }
  return true;
}

// may change freedom, ...
static bool parse_freedoms(rule_parser_t *r) {
  hd_parser_t *p = r->t.p;
  if (!hd_expect(p, "change"))
    return false;
  do {
    hd_loc_t loc = hd_here(p);
    int i = 0;
    while (i < HD_FREEDOM_COUNT &&
           !hd_accept(p, hd_freedom_name((hd_freedom_t)i)))
      i++;
    if (i == HD_FREEDOM_COUNT)
      return hd_expected(p,
                         "'rounding', 'order', 'overflow', 'zeros' or 'nan'");
    if (r->rewrite->freedoms >> i & 1)
      return hd_error(p->diags, loc, HD_E0303,
                      hd_freedom_name((hd_freedom_t)i));
    r->rewrite->freedoms |= UINT32_C(1) << i;
  } while (hd_accept(p, ","));
  return true;
}

// left nodes [where condition, ...] [apart result, result]
// [may change freedom, ...] => right nodes }
static bool parse_sides(rule_parser_t *r) {
  hd_parser_t *p = r->t.p;
  if (!hd_expect(p, "{") || !parse_nodes(r, "where", "=>"))
    return false;
  if (hd_accept(p, "where"))
    do {
      if (!hd_parse_task_condition(&r->t))
        return false;
    } while (hd_accept(p, ","));
  if (at_apart(p)) {
    p->at++;
    r->rewrite->apart[0] = parse_use(r);
    if (!r->rewrite->apart[0] || !hd_expect(p, ",") ||
        !(r->rewrite->apart[1] = parse_use(r)))
      return false;
  }
  if (at_may(p)) {
    p->at++;
    if (!parse_freedoms(r))
      return false;
  }
  r->right = true;
  return hd_expect(p, "=>") && parse_nodes(r, "}", "}") && hd_expect(p, "}");
}

bool hd_parse_rewrite(hd_parser_t *p, hd_rewrite_t *rewrite) {
  hd_task_t *signature = HD_ARENA_NEW(p->arena, hd_task_t);
  signature->name = rewrite->name;
  signature->loc = rewrite->loc;
  rewrite->signature = signature;
  rule_parser_t r = {.t = {.p = p, .task = signature, .allows_const = true},
                     .rewrite = rewrite};
  r.t.counts = rewrite->counts;
  r.t.max_lists = rewrite->text ? HD_MAX_LISTS : 0;
  if (!parse_parameters(&r))
    return false;
  if (rewrite->text)
    rewrite->text->num_lists = r.t.num_lists;
  return hd_settle_task_orders(&r.t) && parse_sides(&r) &&
         hd_settle_task_orders(&r.t) && hd_settle_task_defaults(&r.t);
}
