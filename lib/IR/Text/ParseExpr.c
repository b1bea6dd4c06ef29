// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expressions: precedence climbing, names and types settled on the way.
#include "IR/Rewrite.h"
#include "IR/Text/ParserState.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static const hd_parsed_t failed = {NULL, false};

static hd_parsed_t typed(const hd_expr_t *e) { return (hd_parsed_t){e, false}; }

const hd_expr_t *hd_at_loc(hd_parser_t *p, const hd_expr_t *e, hd_loc_t loc) {
  if (e->loc.source == loc.source && e->loc.offset == loc.offset)
    return e;
  hd_expr_t like = {.u = e->u, .loc = loc, .linear = e->linear};
  return hd_expr_make(p->arena, (hd_expr_kind_t)e->kind, e->type, &like,
                      e->operands, e->num_operands);
}

// The value, unless it has become too high for what walks it.
static hd_parsed_t bounded(hd_parser_t *p, hd_parsed_t value, hd_loc_t loc) {
  if (!value.e || value.e->height <= HD_MAX_HEIGHT)
    return value;
  hd_error(p->diags, loc, HD_E0105, (int)HD_MAX_HEIGHT);
  return failed;
}

static hd_parsed_t parse_unary(hd_parser_t *p);

static const struct {
  const char *text;
  hd_builtin_t builtin;
} builtins[] = {
#define HD_BUILTIN(name, text, least, greatest, where)                         \
  {text, HD_BUILTIN_##name},
#include "IR/Builtins.def"
#undef HD_BUILTIN
};

// thread, thread.x: a builtin may have one dot.
static hd_parsed_t parse_builtin(hd_parser_t *p, bool *found) {
  const hd_token_t *name = hd_peek(p);
  hd_loc_t loc = hd_here(p);
  const char *text = name->text;
  bool dotted = strcmp(hd_peek_ahead(p, 1)->text, ".") == 0 &&
                hd_peek_ahead(p, 2)->kind == HD_TOKEN_NAME;
  if (dotted)
    text = hd_arena_printf(p->arena, "%s.%s", name->text,
                           hd_peek_ahead(p, 2)->text);
  for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++) {
    if (strcmp(builtins[i].text, text) != 0)
      continue;
    *found = true;
    p->at += dotted ? 3 : 1;
    hd_builtin_t builtin = builtins[i].builtin;
    bool host = hd_builtin_info(builtin)->host;
    bool in_body = p->func && p->func->kind != HD_FUNC_PLAN;
    if (host == in_body) {
      hd_error(p->diags, loc, HD_E0302, hd_arena_printf(p->arena, "'%s'", text),
               in_body ? "in a body" : "here");
      return failed;
    }
    return typed(hd_at_loc(p, hd_expr_builtin(p->arena, builtin), loc));
  }
  return failed;
}

static bool is_vector_access(const hd_tensor_t *tensor, bool linear,
                             int64_t lanes) {
  return lanes >= 2 && lanes <= HD_MAX_LANES && (linear || tensor->rank > 0);
}

// There, in headers and plans, an element of a table is a number.
static const hd_expr_t *where_host_computes(hd_parser_t *p,
                                            const hd_expr_t *e) {
  bool in_code = p->func && p->func->kind != HD_FUNC_PLAN;
  const hd_expr_t *value = in_code ? NULL : hd_expr_fold(p->arena, e);
  return value ? hd_at_loc(p, value, e->loc) : e;
}

const hd_expr_t *hd_parse_access(hd_parser_t *p, const hd_var_t *var,
                                 hd_loc_t loc) {
  HD_VEC(const hd_expr_t *) indices = {0};
  bool linear = hd_at(p, "@[");
  int64_t lanes = 1;
  if (hd_is_vector(p, var) && !hd_at(p, "[") && !linear)
    return hd_vector_value(p, var, loc);
  uint32_t rank = linear ? 1 : var->tensor->rank;
  if (hd_accept(p, "[") || hd_accept(p, "@[")) {
    do {
      const hd_expr_t *index = hd_parse_index(p);
      if (!index) {
        hd_skip_closed(p);
        return NULL;
      }
      hd_vec_push(p->arena, &indices, index);
    } while (hd_accept(p, ","));
    if (hd_accept(p, "+:") && !hd_parse_constant(p, &lanes)) {
      hd_skip_closed(p);
      return NULL;
    }
    if (!hd_expect(p, "]"))
      return NULL;
    if (lanes != 1 && !is_vector_access(var->tensor, linear, lanes)) {
      hd_error(p->diags, loc, HD_E0304,
               lanes > INT_MAX || lanes < INT_MIN ? INT_MAX : (int)lanes,
               "is not possible (2 to 32 along the last axis)");
      return NULL;
    }
  }
  if (indices.size != rank) {
    hd_error(p->diags, loc, HD_E0207, var->name,
             hd_rank_text(p->arena, rank, indices.size));
    return NULL;
  }
  const hd_expr_t *e =
      linear ? hd_expr_access_linear(p->arena, HD_EXPR_LOAD, var,
                                     (unsigned)lanes, indices.data[0])
             : hd_expr_access(p->arena, HD_EXPR_LOAD, var, (unsigned)lanes,
                              indices.data, rank);
  e = hd_at_loc(p, e, loc);
  if (linear || rank == 0 || !hd_at(p, "else"))
    return var->table ? where_host_computes(p, e) : e;
  p->at++;
  hd_parsed_t value = parse_unary(p);
  const hd_expr_t *otherwise = hd_coerce(p, value, e->type);
  if (!otherwise)
    return NULL;
  hd_vec_push(p->arena, &indices, otherwise);
  return hd_at_loc(p,
                   hd_expr_access(p->arena, HD_EXPR_LOADELSE, var,
                                  (unsigned)lanes, indices.data, rank + 1),
                   loc);
}

// T == f16: two types, and so a constant.
static bool at_type_test(const hd_parser_t *p) {
  hd_type_t type;
  const hd_token_t *next = hd_peek_ahead(p, 1);
  return next->kind == HD_TOKEN_PUNCTUATION &&
         (strcmp(next->text, "==") == 0 || strcmp(next->text, "!=") == 0) &&
         hd_find_type(p, hd_peek(p)->text, &type);
}

static hd_parsed_t parse_type_test(hd_parser_t *p) {
  hd_type_t left, right;
  hd_loc_t loc = hd_here(p);
  if (!hd_parse_type(p, &left))
    return failed;
  bool wants_equal = hd_accept(p, "==");
  if ((!wants_equal && !hd_expect(p, "!=")) || !hd_parse_type(p, &right))
    return failed;
  bool holds = hd_type_equal(left, right) == wants_equal;
  return typed(hd_at_loc(p, hd_expr_bool(p->arena, holds), loc));
}

static hd_parsed_t parse_name(hd_parser_t *p) {
  const hd_token_t *token = hd_peek(p);
  hd_loc_t loc = hd_here(p);
  if (at_type_test(p))
    return parse_type_test(p);
  if (hd_at_call(p) || hd_at_generic_call(p)) { // Even of a variable's name.
    p->at++;
    return hd_parse_call(p, token);
  }
  const hd_var_t *var = hd_visible(p, token->text);
  const hd_const_t *constant = hd_find_const(p, token->text);
  if (!var && constant)
    var = constant->table;
  if (var) {
    p->at++;
    if (hd_type_equal(var->type, hd_type(HD_VOID)))
      return failed; // Its declaration was reported.
    if (var->kind != HD_VAR_TENSOR)
      return typed(hd_at_loc(p, hd_expr_var(p->arena, var), loc));
    // A whole tensor is an argument; the call looks whether it may be.
    if (!hd_at(p, "[") && !hd_at(p, "@[") && var->tensor->rank > 0 &&
        !hd_is_vector(p, var))
      return typed(hd_at_loc(p, hd_expr_var(p->arena, var), loc));
    return typed(hd_parse_access(p, var, loc));
  }
  if (constant && constant->value) {
    p->at++;
    return (hd_parsed_t){hd_at_loc(p, constant->value, loc), constant->untyped};
  }
  if (strcmp(token->text, "true") == 0 || strcmp(token->text, "false") == 0) {
    p->at++;
    return typed(
        hd_at_loc(p, hd_expr_bool(p->arena, token->text[0] == 't'), loc));
  }
  if (strcmp(token->text, "inf") == 0 || strcmp(token->text, "nan") == 0) {
    p->at++;
    return hd_untyped_float(p, token->text[0] == 'i' ? INFINITY : NAN, loc);
  }
  bool found = false;
  hd_parsed_t value = parse_builtin(p, &found);
  if (found)
    return value;
  bool dotted = strcmp(hd_peek_ahead(p, 1)->text, ".") == 0 &&
                hd_peek_ahead(p, 2)->kind == HD_TOKEN_NAME;
  const char *text = dotted ? hd_arena_printf(p->arena, "%s.%s", token->text,
                                              hd_peek_ahead(p, 2)->text)
                            : token->text;
  hd_report_unknown(p, text, loc);
  p->at += dotted ? 3 : 1;
  return failed;
}

static hd_parsed_t parse_primary(hd_parser_t *p) {
  const hd_token_t *token = hd_peek(p);
  hd_loc_t loc = hd_here(p);
  if (token->kind == HD_TOKEN_INT) {
    p->at++;
    return hd_untyped_int(p, token->value, loc);
  }
  if (token->kind == HD_TOKEN_FLOAT) {
    p->at++;
    return hd_untyped_float(p, token->number, loc);
  }
  if (token->kind == HD_TOKEN_NAME)
    return parse_name(p);
  if (hd_accept(p, "(")) {
    hd_parsed_t value = hd_parse_value(p);
    if (value.e ? !hd_expect(p, ")") : !hd_skip_closed(p))
      return failed;
    return value;
  }
  hd_expected(p, "an expression");
  return failed;
}

static bool is_number(void *argument, const hd_expr_t *e) {
  (void)argument;
  return e->num_operands > 0 || e->kind == HD_EXPR_CONST;
}

// v[2]: a lane of a vector; v[i] of one that has a name.
static hd_parsed_t parse_lanes(hd_parser_t *p, hd_parsed_t value) {
  while (value.e && !value.untyped && hd_at(p, "[") &&
         !hd_peek(p)->first_on_line) {
    hd_loc_t loc = hd_here(p);
    int64_t lane;
    p->at++;
    const hd_expr_t *index = hd_parse_index(p);
    if (!index || !hd_expect(p, "]"))
      return failed;
    if (value.e->type.lanes == 1) {
      hd_error(p->diags, loc, HD_E0205, "'[]'", hd_type_name(value.e->type));
      return failed;
    }
    if (!hd_expr_fold_int(index, &lane)) {
      if (value.e->kind != HD_EXPR_VAR || !p->func ||
          hd_walk_expr(index, is_number, NULL))
        return hd_not_constant(p, index), failed;
      value.e = hd_lane_at(p, value.e, index, loc);
      continue;
    }
    if (lane < 0 || lane >= value.e->type.lanes) {
      hd_error(p->diags, loc, HD_E0307, "the lane", 0LL,
               (long long)value.e->type.lanes - 1, (long long)lane);
      return failed;
    }
    hd_expr_t like = {.u.i = lane, .loc = loc};
    value.e = hd_expr_make(p->arena, HD_EXPR_LANE, hd_type_lane(value.e->type),
                           &like, &value.e, 1);
  }
  return value;
}

static hd_parsed_t parse_unary(hd_parser_t *p) {
  hd_loc_t loc = hd_here(p);
  static const hd_expr_kind_t kinds[] = {HD_EXPR_NEG, HD_EXPR_NOT,
                                         HD_EXPR_BITNOT};
  if (!hd_enter(p))
    return failed;
  hd_parsed_t value = failed;
  bool found = false;
  for (size_t i = 0; i < 3 && !found; i++)
    if (hd_peek(p)->kind == HD_TOKEN_PUNCTUATION &&
        hd_accept(p, hd_expr_info(kinds[i])->spelling)) {
      found = true;
      value = hd_build_unary(p, kinds[i], parse_unary(p), loc);
    }
  if (!found)
    value = parse_lanes(p, parse_primary(p));
  if (!value.e)
    hd_skip_access(p);
  p->depth--;
  return value;
}

bool hd_find_infix(hd_parser_t *p, int least, hd_expr_kind_t *kind) {
  const hd_token_t *token = hd_peek(p);
  if (token->kind != HD_TOKEN_PUNCTUATION)
    return false;
  for (int k = HD_EXPR_MUL; k < HD_EXPR_SELECT; k++) {
    const hd_expr_info_t *info = hd_expr_info((hd_expr_kind_t)k);
    if (token->text[0] == info->spelling[0] &&
        strcmp(token->text, info->spelling) == 0) {
      *kind = (hd_expr_kind_t)k;
      return info->precedence >= least;
    }
  }
  return false;
}

static hd_parsed_t parse_infix(hd_parser_t *p, int least) {
  hd_parsed_t left = parse_unary(p);
  hd_expr_kind_t kind;
  while (hd_find_infix(p, least, &kind)) {
    hd_loc_t loc = hd_here(p);
    p->at++;
    // All infix operators group to the left; each level is one deeper.
    hd_parsed_t right = parse_infix(p, hd_expr_info(kind)->precedence + 1);
    if (!left.e && !right.e && hd_peek(p)->kind == HD_TOKEN_END)
      return failed;
    left = bounded(p, hd_build_binary(p, kind, left, right, loc), loc);
  }
  return left;
}

hd_parsed_t hd_parse_value(hd_parser_t *p) {
  if (!hd_enter(p))
    return failed;
  hd_parsed_t value = parse_infix(p, 0);
  hd_loc_t loc = hd_here(p);
  if (hd_accept(p, "?")) {
    hd_parsed_t then = hd_parse_value(p);
    hd_parsed_t otherwise = failed;
    if (hd_expect(p, ":"))
      otherwise = hd_parse_value(p);
    value = hd_build_select(p, value, then, otherwise, loc);
  }
  p->depth--;
  return bounded(p, value, loc);
}

static hd_parsed_t parse_proper(hd_parser_t *p) {
  hd_parsed_t value = hd_parse_value(p);
  if (value.e && value.e->kind == HD_EXPR_TENSOR) {
    hd_reject_tensor(p, value.e);
    return failed;
  }
  return value;
}

const hd_expr_t *hd_parse_expr(hd_parser_t *p) {
  return hd_default_type(p, parse_proper(p));
}

const hd_expr_t *hd_parse_as(hd_parser_t *p, hd_type_t type) {
  return hd_coerce(p, parse_proper(p), type);
}

const hd_expr_t *hd_parse_index(hd_parser_t *p) {
  const hd_expr_t *e = hd_parse_expr(p);
  if (e && (!hd_type_is_integer(e->type) || e->type.lanes != 1)) {
    hd_error(p->diags, e->loc, HD_E0203, "i32", hd_type_name(e->type));
    return NULL;
  }
  return e;
}

static bool divides_by_zero(void *argument, const hd_expr_t *e) {
  int64_t divisor;
  (void)argument;
  bool divides = (e->kind == HD_EXPR_DIV || e->kind == HD_EXPR_MOD) &&
                 hd_type_is_integer(e->type);
  return !(divides && hd_expr_fold_int(e->operands[1], &divisor) &&
           divisor == 0);
}

bool hd_not_constant(hd_parser_t *p, const hd_expr_t *e) {
  if (!hd_walk_expr(e, divides_by_zero, NULL))
    return hd_error(p->diags, e->loc, HD_E0216);
  return hd_error(p->diags, e->loc, HD_E0210, "");
}

bool hd_parse_constant(hd_parser_t *p, int64_t *value) {
  const hd_expr_t *e = hd_parse_index(p);
  if (!e)
    return false;
  return hd_expr_fold_int(e, value) || hd_not_constant(p, e);
}
