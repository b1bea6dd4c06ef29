// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statements and blocks. After an error the rest of the statement is skipped.
#include "IR/Text/ParserState.h"
#include "IR/Text/Printer.h"

#include <string.h>

// What may begin a statement by name.
static const hd_stmt_t *parse_let(hd_parser_t *p, hd_loc_t loc);
static const hd_stmt_t *parse_tensor(hd_parser_t *p, hd_loc_t loc);
// False where neither is there a condition, nor the block behind one, which
// would be read for more errors.
static bool parse_condition(hd_parser_t *p, hd_stmt_t *stmt) {
  stmt->u.branch.condition = hd_parse_as(p, hd_type(HD_BOOL));
  return stmt->u.branch.condition || hd_at(p, "{");
}

static const hd_stmt_t *parse_while(hd_parser_t *p, hd_loc_t loc);
static const hd_stmt_t *parse_if(hd_parser_t *p, hd_loc_t loc);
static const hd_stmt_t *parse_assert(hd_parser_t *p, hd_loc_t loc);
static const hd_stmt_t *parse_return(hd_parser_t *p, hd_loc_t loc);
static const hd_stmt_t *parse_break(hd_parser_t *p, hd_loc_t loc);
static const hd_stmt_t *parse_continue(hd_parser_t *p, hd_loc_t loc);

enum { IN_CODE = 1, IN_PLAN = 2 }; // Kernels and fns; plans.

static const struct {
  const char *word;
  const hd_stmt_t *(*parse)(hd_parser_t *, hd_loc_t);
  int where;
} words[] = {
    {"let", parse_let, IN_CODE},
    {"shared", parse_tensor, IN_CODE},
    {"register", parse_tensor, IN_CODE},
    {"workspace", parse_tensor, IN_PLAN},
    {"for", hd_parse_for, IN_CODE | IN_PLAN},
    {"while", parse_while, IN_CODE},
    {"if", parse_if, IN_CODE},
    {"assert", parse_assert, IN_CODE},
    {"return", parse_return, IN_CODE},
    {"break", parse_break, IN_CODE},
    {"continue", parse_continue, IN_CODE},
    {"printf", hd_parse_print, IN_CODE},
    {"launch", hd_parse_launch, IN_PLAN},
};

static const hd_stmt_t *parse_let(hd_parser_t *p, hd_loc_t loc) {
  hd_loc_t name_loc;
  hd_type_t type;
  const hd_expr_t *value = NULL;
  const char *name = hd_expect_name(p, &name_loc);
  if (!name)
    return NULL;
  if (hd_accept(p, ":")) {
    if (hd_parse_type(p, &type) && hd_expect(p, "="))
      value = hd_parse_as(p, type);
  } else if (hd_expect(p, "=")) {
    value = hd_parse_expr(p);
  }
  if (value && hd_type_equal(value->type, hd_type(HD_VOID))) {
    hd_error(p->diags, value->loc, HD_E0302, "a call that returns nothing",
             "as a value");
    value = NULL;
  }
  if (!value) {
    hd_declare_poison(p, name, name_loc);
    return NULL;
  }
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_LET, loc);
  stmt->u.let.value = value;
  stmt->u.let.var =
      hd_var_make(p->arena, name, HD_VAR_LET, value->type, name_loc);
  hd_declare(p, stmt->u.let.var);
  return stmt;
}

static const hd_stmt_t *parse_tensor(hd_parser_t *p, hd_loc_t loc) {
  const char *word = p->tokens[p->at - 1].text;
  hd_scope_t scope = word[0] == 's'   ? HD_SCOPE_SHARED
                     : word[0] == 'r' ? HD_SCOPE_REGISTER
                                      : HD_SCOPE_GLOBAL;
  hd_loc_t name_loc;
  const char *name = hd_expect_name(p, &name_loc);
  if (!name)
    return NULL;
  const hd_tensor_t *tensor =
      hd_expect(p, ":") ? hd_parse_tensor(p, scope) : NULL;
  if (!tensor) {
    hd_declare_poison(p, name, name_loc);
    return NULL;
  }
  if (scope == HD_SCOPE_REGISTER && tensor->rank == 0 &&
      tensor->element.lanes > 1)
    return hd_parse_vector(p, name, tensor->element, name_loc);
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_DECLARE, loc);
  hd_var_t *var = hd_var_make_tensor(p->arena, name, tensor, name_loc);
  stmt->u.declare.var = var;
  bool ok = true;
  if (hd_accept(p, "=")) {
    stmt->u.declare.init = hd_parse_as(p, tensor->element);
    ok = stmt->u.declare.init != NULL;
  }
  hd_declare(p, var);
  return ok ? stmt : NULL;
}

// In an instance, what is known when it is read.
static bool is_known(const hd_parser_t *p, const hd_expr_t *condition,
                     int64_t *value) {
  return p->nested && !p->probing && condition &&
         hd_expr_fold_int(condition, value);
}

static const hd_stmt_t *parse_while(hd_parser_t *p, hd_loc_t loc) {
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_WHILE, loc);
  if (!parse_condition(p, stmt))
    return NULL;
  stmt->u.branch.then = hd_parse_block(p);
  return stmt->u.branch.condition ? stmt : NULL;
}

// An if of which one branch is left: its statements take its place.
static bool is_settled_if(const hd_parser_t *p, const hd_stmt_t *stmt) {
  int64_t value;
  return stmt->kind == HD_STMT_IF &&
         is_known(p, stmt->u.branch.condition, &value);
}

static bool is_settled_assert(const hd_parser_t *p, const hd_stmt_t *stmt) {
  int64_t value;
  return stmt->kind == HD_STMT_ASSERT &&
         is_known(p, stmt->u.assertion.condition, &value);
}

// [else if ... { }]* [else { }]
static void skip_else(hd_parser_t *p) {
  while (hd_accept(p, "else")) {
    while (!hd_at(p, "{") && hd_peek(p)->kind != HD_TOKEN_END)
      p->at++;
    hd_skip_braces(p);
  }
}

static bool parse_else(hd_parser_t *p, hd_block_t *block) {
  hd_loc_t loc = hd_here(p);
  if (!hd_accept(p, "if")) {
    *block = hd_parse_block(p);
    return true;
  }
  const hd_stmt_t *nested = parse_if(p, loc);
  if (nested && is_settled_if(p, nested))
    *block = nested->u.branch.then;
  else if (nested)
    *block = hd_block_make(p->arena, &nested, 1);
  return nested;
}

// What a known condition does not choose need not mean anything for these
// values, and is not read.
static bool parse_branches(hd_parser_t *p, hd_stmt_t *stmt) {
  int64_t chosen;
  if (!is_known(p, stmt->u.branch.condition, &chosen)) {
    stmt->u.branch.then = hd_parse_block(p);
    return !hd_accept(p, "else") || parse_else(p, &stmt->u.branch.otherwise);
  }
  stmt->u.branch.condition = hd_expr_bool(p->arena, true);
  if (chosen) {
    stmt->u.branch.then = hd_parse_block(p);
    skip_else(p);
    return true;
  }
  hd_skip_braces(p);
  return !hd_accept(p, "else") || parse_else(p, &stmt->u.branch.then);
}

static const hd_stmt_t *parse_if(hd_parser_t *p, hd_loc_t loc) {
  if (!hd_enter(p))
    return NULL;
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_IF, loc);
  bool ok = parse_condition(p, stmt) && parse_branches(p, stmt) &&
            stmt->u.branch.condition;
  p->depth--;
  return ok ? stmt : NULL;
}

static const hd_stmt_t *parse_assert(hd_parser_t *p, hd_loc_t loc) {
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_ASSERT, loc);
  stmt->u.assertion.condition = hd_parse_as(p, hd_type(HD_BOOL));
  if (!stmt->u.assertion.condition)
    return NULL;
  if (hd_accept(p, ",")) {
    if (hd_peek(p)->kind != HD_TOKEN_STRING) {
      hd_expected(p, "a string");
      return NULL;
    }
    stmt->u.assertion.message = hd_peek(p)->text;
    p->at++;
  }
  const char *message = stmt->u.assertion.message;
  int64_t holds;
  if (is_known(p, stmt->u.assertion.condition, &holds) && !holds)
    hd_error(p->diags, loc, HD_E0219, message ? message : "for these values");
  return stmt;
}

static const hd_stmt_t *parse_return(hd_parser_t *p, hd_loc_t loc) {
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_RETURN, loc);
  bool is_void = hd_type_equal(p->func->result, hd_type(HD_VOID));
  if (is_void)
    return stmt;
  stmt->u.eval.value = hd_parse_as(p, p->func->result);
  return stmt->u.eval.value ? stmt : NULL;
}

// Whether there is a loop to leave is the verifier's to say.
static const hd_stmt_t *parse_break(hd_parser_t *p, hd_loc_t loc) {
  return hd_stmt_make(p->arena, HD_STMT_BREAK, loc);
}

static const hd_stmt_t *parse_continue(hd_parser_t *p, hd_loc_t loc) {
  return hd_stmt_make(p->arena, HD_STMT_CONTINUE, loc);
}

// = e, += e, -= e, *= e
static const hd_stmt_t *parse_store(hd_parser_t *p, const hd_expr_t *place) {
  static const struct {
    const char *text;
    hd_expr_kind_t kind;
  } compounds[] = {
      {"+=", HD_EXPR_ADD}, {"-=", HD_EXPR_SUB}, {"*=", HD_EXPR_MUL}};
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_STORE, place->loc);
  stmt->u.store.var = place->u.var;
  stmt->u.store.linear = place->linear;
  stmt->u.store.num_indices = place->num_operands;
  stmt->u.store.indices = place->operands;
  for (size_t i = 0; i < 3; i++) {
    hd_loc_t loc = hd_here(p);
    if (!hd_accept(p, compounds[i].text))
      continue;
    hd_parsed_t value = hd_parse_value(p);
    stmt->u.store.value =
        hd_build_binary(p, compounds[i].kind, (hd_parsed_t){place, false},
                        value, loc)
            .e;
    return stmt->u.store.value ? stmt : NULL;
  }
  if (!hd_expect(p, "="))
    return NULL;
  stmt->u.store.value = hd_parse_as(p, place->type);
  return stmt->u.store.value ? stmt : NULL;
}

// Why a name is no place, and what would be.
static const char *fixed_text(hd_parser_t *p, const hd_var_t *var) {
  const char *type = hd_type_name(var->type);
  switch (var->kind) {
  case HD_VAR_LET:
    return hd_arena_printf(p->arena,
                           "it is a name for a value; what changes is declared "
                           "by 'register %s: %s = ...'",
                           var->name, type);
  case HD_VAR_LOOP:
    return "it is the variable of a loop";
  case HD_VAR_PARAM:
    return hd_arena_printf(p->arena,
                           "it is a parameter; what changes is declared by "
                           "'register ...: %s = %s'",
                           type, var->name);
  case HD_VAR_TENSOR:
  case HD_VAR_MAPPING:
  case HD_VAR_MAP:
    break;
  }
  return "it is no tensor";
}

static bool may_store(hd_parser_t *p, const hd_var_t *var, hd_loc_t loc) {
  const char *why =
      var->kind == HD_VAR_TENSOR ? hd_var_read_only(var) : fixed_text(p, var);
  if (why)
    hd_error(p->diags, loc, HD_E0209, var->name, why);
  return !why;
}

// A store, or a call for its effect.
static const hd_stmt_t *parse_plain(hd_parser_t *p, hd_loc_t loc) {
  const hd_token_t *token = hd_peek(p);
  if (token->kind != HD_TOKEN_NAME) {
    hd_expected(p, "a statement");
    return NULL;
  }
  bool calls = hd_at_call(p) || hd_at_generic_call(p);
  const hd_var_t *var = calls ? NULL : hd_visible(p, token->text);
  const hd_const_t *constant =
      calls || var ? NULL : hd_find_const(p, token->text);
  if (constant && constant->table)
    var = constant->table;
  if (var) {
    p->at++;
    if (hd_type_equal(var->type, hd_type(HD_VOID)))
      return NULL;
    if (!may_store(p, var, loc))
      return NULL;
    if (hd_at(p, "=") && var->tensor->rank > 0 && !hd_is_vector(p, var))
      return hd_parse_fill(p, var, loc);
    const hd_expr_t *place = hd_parse_access(p, var, loc);
    return place ? parse_store(p, place) : NULL;
  }
  if (!calls) {
    hd_report_unknown(p, token->text, loc);
    return NULL;
  }
  p->at++;
  hd_parsed_t value = hd_parse_call(p, token);
  if (!value.e)
    return NULL;
  if (value.e->kind != HD_EXPR_CALL && value.e->kind != HD_EXPR_INTRINSIC) {
    hd_error(p->diags, loc, HD_E0302, "an expression", "as a statement");
    return NULL;
  }
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_EVAL, loc);
  stmt->u.eval.value = value.e;
  return stmt;
}

static const hd_stmt_t *parse_stmt(hd_parser_t *p) {
  hd_loc_t loc = hd_here(p);
  if (hd_at_point(p))
    return hd_parse_point(p, loc);
  int here = p->func->kind == HD_FUNC_PLAN ? IN_PLAN : IN_CODE;
  if (here == IN_PLAN && hd_accept(p, "view"))
    return hd_parse_view(p, loc);
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (hd_peek(p)->kind != HD_TOKEN_NAME || !hd_at(p, words[i].word))
      continue;
    if (!(words[i].where & here)) {
      hd_error(p->diags, loc, HD_E0302,
               hd_arena_printf(p->arena, "'%s'", words[i].word),
               here == IN_PLAN ? "in a plan" : "outside a plan");
      return NULL;
    }
    p->at++;
    return words[i].parse(p, loc);
  }
  if (here == IN_PLAN) {
    hd_expected(p, "'workspace', 'view', 'for' or 'launch'");
    return NULL;
  }
  return parse_plain(p, loc);
}

// To the first token of a line at this depth, or the closing brace.
static void skip_statement(hd_parser_t *p, size_t start) {
  int depth = 0;
  if (p->at > start && hd_peek(p)->first_on_line)
    return;
  while (hd_peek(p)->kind != HD_TOKEN_END && !hd_at_next_item(p)) {
    if (hd_at(p, "}") && hd_peek(p)->kind == HD_TOKEN_PUNCTUATION) {
      if (depth == 0)
        return;
      depth--;
    } else if (hd_at(p, "{") && hd_peek(p)->kind == HD_TOKEN_PUNCTUATION) {
      depth++;
    } else if (depth == 0 && p->at > start && hd_peek(p)->first_on_line) {
      return;
    }
    p->at++;
  }
}

typedef HD_VEC(const hd_stmt_t *) stmts_t;

// const name = value or const name: type = elements, visible to the end of the
// block.
static bool parse_local_const(hd_parser_t *p) {
  hd_loc_t loc;
  const char *name = hd_expect_name(p, &loc);
  if (!name)
    return false;
  const hd_const_t *constant = NULL;
  if (hd_accept(p, ":"))
    constant = hd_parse_local_table(p, name, loc);
  else if (hd_expect(p, "="))
    constant = hd_parse_const(p, name, loc);
  if (!constant) {
    hd_declare_poison(p, name, loc);
    return false;
  }
  hd_bound_t *bound = hd_bound_make(p, name, loc);
  bound->constant = *constant;
  hd_declare(p, &bound->var); // Reports a name that is taken.
  hd_visible_pop(&p->visible, hd_visible_size(&p->visible) - 1);
  hd_visible_push(&p->bound, &bound->var, name);
  return true;
}

static bool parse_into(hd_parser_t *p, stmts_t *stmts) {
  if (hd_accept(p, "const"))
    return parse_local_const(p);
  const hd_stmt_t *stmt = parse_stmt(p);
  for (size_t i = 0; i < p->ahead.size; i++)
    hd_vec_push(p->arena, stmts, p->ahead.data[i]);
  p->ahead.size = 0;
  if (!stmt)
    return false;
  bool is_if = is_settled_if(p, stmt);
  for (uint32_t i = 0; is_if && i < stmt->u.branch.then.size; i++)
    hd_vec_push(p->arena, stmts, stmt->u.branch.then.stmts[i]);
  if (!is_if && !is_settled_assert(p, stmt))
    hd_vec_push(p->arena, stmts, stmt);
  return true;
}

hd_block_t hd_parse_block(hd_parser_t *p) {
  stmts_t stmts = {0};
  hd_block_t none = {0, NULL};
  hd_loc_t open = hd_here(p);
  if (!hd_expect(p, "{"))
    return none;
  if (!hd_enter(p))
    return none;
  hd_stmt_list_t outside = p->ahead; // It stands before this block.
  p->ahead = (hd_stmt_list_t){0};
  size_t outer = hd_visible_size(&p->visible);
  size_t outer_bound = hd_visible_size(&p->bound);
  while (!hd_at(p, "}") && hd_peek(p)->kind != HD_TOKEN_END &&
         !hd_at_next_item(p) && !hd_diagnostics_full(p->diags)) {
    size_t start = p->at;
    hd_budget_check(&p->module->context->budget);
    bool ok = parse_into(p, &stmts);
    if (ok && !hd_peek(p)->first_on_line && !hd_at(p, "}"))
      ok = hd_expected(p, "the end of the line");
    if (!ok)
      skip_statement(p, start);
  }
  p->ahead = outside;
  hd_visible_pop(&p->visible, outer);
  hd_visible_pop(&p->bound, outer_bound);
  p->depth--;
  if (!hd_close_block(p, open))
    return none;
  return (hd_block_t){(uint32_t)stmts.size, stmts.data};
}
