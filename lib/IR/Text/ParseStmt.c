// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statements and blocks. After an error the rest of the statement is skipped.
#include "IR/Text/ParserState.h"
#include "IR/Text/Printer.h"

#include <string.h>

// What may begin a statement by name.
static const hd_stmt_t *parse_let(hd_parser_t *p, hd_loc_t loc);
static const hd_stmt_t *parse_tensor(hd_parser_t *p, hd_loc_t loc);
static const hd_stmt_t *parse_for(hd_parser_t *p, hd_loc_t loc);
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
static const hd_stmt_t *parse_launch(hd_parser_t *p, hd_loc_t loc);

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
    {"for", parse_for, IN_CODE | IN_PLAN},
    {"while", parse_while, IN_CODE},
    {"if", parse_if, IN_CODE},
    {"assert", parse_assert, IN_CODE},
    {"return", parse_return, IN_CODE},
    {"break", parse_break, IN_CODE},
    {"continue", parse_continue, IN_CODE},
    {"printf", hd_parse_print, IN_CODE},
    {"launch", parse_launch, IN_PLAN},
};

// A variable whose declaration failed; uses of it are not reported again.
static void declare_poison(hd_parser_t *p, const char *name, hd_loc_t loc) {
  hd_declare(p, hd_var_make(p->arena, name, HD_VAR_LET, hd_type(HD_VOID), loc));
}

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
    declare_poison(p, name, name_loc);
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
    declare_poison(p, name, name_loc);
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

// view name: T[..] = tensor@[offset]
static const hd_stmt_t *parse_view(hd_parser_t *p, hd_loc_t loc) {
  hd_loc_t name_loc;
  const char *name = hd_expect_name(p, &name_loc);
  if (!name)
    return NULL;
  const hd_tensor_t *tensor =
      hd_expect(p, ":") ? hd_parse_tensor(p, HD_SCOPE_GLOBAL) : NULL;
  if (!tensor) {
    declare_poison(p, name, name_loc);
    return NULL;
  }
  hd_var_t *var = hd_var_make_tensor(p->arena, name, tensor, name_loc);
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_DECLARE, loc);
  hd_loc_t base_loc = hd_here(p);
  const hd_expr_t *e =
      hd_expect(p, "=") ? hd_parse_as(p, tensor->element) : NULL;
  hd_declare(p, var);
  stmt->u.declare.var = var;
  if (!e)
    return NULL;
  if (e->kind != HD_EXPR_LOAD || !e->linear) {
    hd_error(p->diags, base_loc, HD_E0302, "anything but tensor@[offset]",
             "as what a view is of");
    return NULL;
  }
  stmt->u.declare.init = hd_expr_make(p->arena, HD_EXPR_REF, e->type, e,
                                      e->operands, e->num_operands);
  return stmt;
}

// [unroll | unroll(n)]
static bool parse_unroll(hd_parser_t *p, int32_t *unroll) {
  *unroll = 0;
  if (!hd_accept(p, "unroll"))
    return true;
  *unroll = HD_UNROLL_FULL;
  if (!hd_accept(p, "("))
    return true;
  int64_t count;
  hd_loc_t loc = hd_here(p);
  if (!hd_parse_constant(p, &count) || !hd_expect(p, ")"))
    return false;
  if (count < 1 || count > 1024)
    return hd_error(p->diags, loc, HD_E0307, "unroll", 1LL, 1024LL,
                    (long long)count);
  *unroll = (int32_t)count;
  return true;
}

typedef struct names {
  unsigned count;
  const char *names[16];
  hd_loc_t locs[16];
} names_t;

static const hd_stmt_t *parse_mapfor(hd_parser_t *p, hd_loc_t loc,
                                     const names_t *names) {
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_MAPFOR, loc);
  hd_loc_t mapping_loc = hd_here(p);
  stmt->u.mapfor.mapping = hd_parse_mapping(p);
  bool ok = stmt->u.mapfor.mapping != NULL;
  if (ok && hd_accept(p, "on")) {
    stmt->u.mapfor.worker = hd_parse_as(p, hd_type(HD_I32));
    ok = stmt->u.mapfor.worker != NULL;
  }
  ok = ok && parse_unroll(p, &stmt->u.mapfor.unroll);
  if (ok && stmt->u.mapfor.mapping->rank != names->count) {
    hd_buffer_t text = {0};
    hd_mapping_print(stmt->u.mapfor.mapping, &text);
    ok = hd_error(p->diags, mapping_loc, HD_E0401, hd_buffer_text(&text),
                  (int)stmt->u.mapfor.mapping->rank, (int)names->count);
    hd_buffer_fini(&text);
  }
  while (!ok && !hd_at(p, "{") && !hd_peek(p)->first_on_line)
    p->at++; // The body is read for more errors.
  size_t outer = hd_visible_size(&p->visible);
  const hd_var_t **vars =
      HD_ARENA_ARRAY(p->arena, const hd_var_t *, names->count);
  for (unsigned i = 0; i < names->count; i++) {
    vars[i] = hd_var_make(p->arena, names->names[i], HD_VAR_LOOP,
                          hd_type(ok ? HD_I32 : HD_VOID), names->locs[i]);
    hd_declare(p, vars[i]);
  }
  stmt->u.mapfor.vars = vars;
  stmt->u.mapfor.body = hd_parse_block(p);
  hd_visible_pop(&p->visible, outer);
  return ok ? stmt : NULL;
}

// One type for both ends of a range: that of the end that has one.
static bool parse_range(hd_parser_t *p, hd_stmt_t *stmt, hd_parsed_t first) {
  hd_parsed_t limit = hd_parse_value(p);
  if (!first.e || !limit.e)
    return false;
  hd_type_t type = hd_type(HD_I32);
  if (!first.untyped)
    type = first.e->type;
  else if (!limit.untyped)
    type = limit.e->type;
  if (!hd_type_is_integer(type) || type.lanes != 1)
    return hd_error(p->diags, limit.e->loc, HD_E0203, "i32",
                    hd_type_name(type));
  if (!(stmt->u.loop.first = hd_coerce(p, first, type)) ||
      !(stmt->u.loop.limit = hd_coerce(p, limit, type)))
    return false;
  if (hd_accept(p, "step")) {
    stmt->u.loop.step = hd_parse_as(p, type);
    if (!stmt->u.loop.step)
      return false;
  }
  return parse_unroll(p, &stmt->u.loop.unroll);
}

static const hd_stmt_t *parse_for(hd_parser_t *p, hd_loc_t loc) {
  names_t names = {0};
  do {
    if (names.count == 16) {
      hd_error(p->diags, hd_here(p), HD_E0307, "the number of loop variables",
               1LL, 16LL, 17LL);
      return NULL;
    }
    const char *name = hd_expect_name(p, &names.locs[names.count]);
    if (!name)
      return NULL;
    names.names[names.count++] = name;
  } while (hd_accept(p, ","));
  if (!hd_expect(p, "in"))
    return NULL;
  if (names.count > 1 || hd_at_mapping(p))
    return parse_mapfor(p, loc, &names);
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_FOR, loc);
  hd_parsed_t first = hd_parse_value(p);
  bool ok = hd_expect(p, "..") && parse_range(p, stmt, first);
  if (!ok && !hd_at(p, "{"))
    return NULL;
  size_t outer = hd_visible_size(&p->visible);
  hd_type_t type = ok ? stmt->u.loop.first->type : hd_type(HD_VOID);
  stmt->u.loop.var =
      hd_var_make(p->arena, names.names[0], HD_VAR_LOOP, type, names.locs[0]);
  hd_declare(p, stmt->u.loop.var);
  stmt->u.loop.body = hd_parse_block(p);
  hd_visible_pop(&p->visible, outer);
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

// Whether a kernel may take a tensor for one of its parameters: of as many
// axes, or both of constant shape. That it holds enough is seen by the launch.
static bool takes_tensor(const hd_var_t *param, const hd_expr_t *e) {
  int64_t elements;
  return e->kind == HD_EXPR_TENSOR && hd_type_equal(e->type, param->type) &&
         (e->u.var->tensor->rank == param->tensor->rank ||
          (hd_tensor_storage_const(e->u.var->tensor, &elements) &&
           hd_tensor_storage_const(param->tensor, &elements)));
}

static const char *found_text(hd_parser_t *p, const hd_expr_t *e) {
  return e->kind == HD_EXPR_TENSOR
             ? hd_arena_printf(p->arena, ", found one of %s and rank %u",
                               hd_type_name(e->type), e->u.var->tensor->rank)
             : ", found a value";
}

static const hd_stmt_t *parse_launch(hd_parser_t *p, hd_loc_t loc) {
  HD_VEC(const hd_expr_t *) args = {0};
  const hd_token_t *name = hd_peek(p);
  if (name->kind != HD_TOKEN_NAME) {
    hd_expected(p, "a kernel");
    return NULL;
  }
  hd_loc_t kernel_loc = hd_here(p);
  p->at++;
  const hd_func_t *kernel =
      hd_parse_func_name(p, name->text, kernel_loc, HD_KINDS_KERNEL);
  if (!kernel || !hd_expect(p, "("))
    return NULL;
  while (!hd_at(p, ")")) {
    hd_parsed_t value = hd_parse_value(p);
    if (!value.e)
      return NULL;
    const hd_var_t *param =
        args.size < kernel->num_params ? kernel->params[args.size] : NULL;
    const hd_expr_t *e = value.e;
    if (param && param->tensor) {
      if (e->kind == HD_EXPR_LOAD && e->num_operands == 0)
        e = hd_expr_var(p->arena, e->u.var);
      if (!takes_tensor(param, e)) {
        hd_error(p->diags, value.e->loc, HD_E0213, param->name,
                 hd_arena_printf(p->arena, "a tensor of %s and rank %u%s",
                                 hd_type_name(param->type), param->tensor->rank,
                                 found_text(p, e)));
        return NULL;
      }
    } else if (param && !(e = hd_coerce(p, value, param->type))) {
      return NULL;
    }
    hd_vec_push(p->arena, &args, e);
    if (!hd_accept(p, ","))
      break;
  }
  if (!hd_expect(p, ")"))
    return NULL;
  if (args.size != kernel->num_params) {
    hd_error(p->diags, loc, HD_E0206, kernel->name, (int)kernel->num_params,
             "arguments", (int)args.size);
    hd_note_signature(p, kernel);
    return NULL;
  }
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_LAUNCH, loc);
  stmt->u.launch.kernel = kernel;
  stmt->u.launch.args = args.data;
  stmt->u.launch.num_args = (uint32_t)args.size;
  stmt->u.launch.programmatic = hd_accept(p, "programmatic");
  return stmt;
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
    return parse_view(p, loc);
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
    declare_poison(p, name, loc);
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
