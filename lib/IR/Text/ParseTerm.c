// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Terms of tasks. Names are resolved and bare numbers typed on the way; what
// the rules want besides is the verifier's to say.
#include "IR/Text/TaskParser.h"

#include <math.h>
#include <string.h>

static const hd_term_t *parse_infix(hd_task_parser_t *t, int least);
static const hd_term_t *parse_unary(hd_task_parser_t *t);

// A whole term, which may be a pattern.
static const hd_term_t *parse_whole(hd_task_parser_t *t) {
  hd_pattern_t outer = t->pattern;
  bool begins = hd_begin_pattern(t, false);
  const hd_term_t *term = parse_infix(t, 0);
  if (begins)
    t->pattern = outer;
  return term;
}

bool hd_parse_terms(hd_task_parser_t *t, const char *close, unsigned most,
                    const hd_term_t **terms, unsigned *count) {
  *count = 0;
  if (hd_accept(t->p, close))
    return true;
  do {
    if (*count == most)
      return hd_expected(t->p, "fewer operands");
    if (!(terms[*count] = hd_parse_axis(t)))
      return false;
    ++*count;
  } while (hd_accept(t->p, ","));
  return hd_expect(t->p, close);
}

// name[...] [else x]
static const hd_term_t *parse_load(hd_task_parser_t *t,
                                   const hd_task_value_t *value, hd_loc_t loc) {
  const hd_term_t *operands[HD_MAX_RANK + 1];
  unsigned count;
  if (!hd_expect(t->p, "[") ||
      !hd_parse_terms(t, "]", HD_MAX_RANK, operands, &count))
    return NULL;
  for (unsigned i = 0; i < count; i++)
    if (!(operands[i] = hd_term_settle(t, operands[i])))
      return NULL;
  hd_term_kind_t kind = HD_TERM_LOAD;
  if (hd_accept(t->p, "else")) {
    kind = HD_TERM_LOADELSE;
    operands[count] = hd_term_coerce(t, parse_infix(t, 15), value->type);
    if (!operands[count++])
      return NULL;
  }
  hd_term_t *term = hd_build_term(t, kind, value->type, loc, operands, count);
  term->pack = NULL;
  term->u.value = value;
  return term;
}

static const hd_term_t *parse_reduction(hd_task_parser_t *t, bool is_scan,
                                        hd_loc_t loc) {
  size_t outer = t->indices.size;
  hd_reduction_t *reduction = HD_ARENA_NEW(t->p->arena, hd_reduction_t);
  const hd_term_t *bodies[8];
  unsigned count = 1;
  reduction->monoid = hd_parse_monoid_name(t);
  if (!reduction->monoid || !hd_parse_ranges(t, reduction, is_scan))
    return NULL;
  const hd_monoid_t *monoid = reduction->monoid;
  bool ok = true;
  if (monoid->size > 1) {
    ok = hd_expect(t->p, "(") && hd_parse_terms(t, ")", 8, bodies, &count);
  } else {
    // Products belong to the body, sums do not.
    bodies[0] = parse_infix(t, hd_expr_info(HD_EXPR_MUL)->precedence);
    ok = bodies[0] != NULL;
  }
  t->indices.size = outer;
  for (unsigned i = 0; ok && i < count; i++) {
    if (bodies[i] && hd_term_is_nothing(bodies[i]))
      return hd_expected(t->p, "a component before"), NULL;
    bodies[i] = i < monoid->size
                    ? hd_term_coerce(t, bodies[i], monoid->left[i]->type)
                    : hd_term_settle(t, bodies[i]);
    ok = bodies[i] != NULL;
  }
  if (!ok)
    return NULL;
  hd_term_t *term = hd_build_term(t, is_scan ? HD_TERM_SCAN : HD_TERM_REDUCE,
                                  count ? bodies[0]->type : hd_index_type, loc,
                                  bodies, count);
  term->u.reduction = reduction;
  return term;
}

static const hd_term_t *parse_conversion(hd_task_parser_t *t,
                                         hd_task_type_t type, hd_loc_t loc) {
  const hd_term_t *a = hd_expect(t->p, "(") ? parse_whole(t) : NULL;
  if (!a || !hd_expect(t->p, ")"))
    return NULL;
  if (a->untyped)
    return hd_term_coerce(t, a, type);
  return hd_task_type_equal(a->type, type)
             ? a
             : hd_build_term(t, HD_TERM_CAST, type, loc, &a, 1);
}

// bitcast(type, x)
static const hd_term_t *parse_bitcast(hd_task_parser_t *t, hd_loc_t loc) {
  hd_task_type_t type = {HD_VOID, NULL};
  t->p->at++;
  if (!hd_expect(t->p, "(") || !hd_parse_task_type(t, &type) ||
      !hd_expect(t->p, ","))
    return NULL;
  const hd_term_t *a = hd_term_settle(t, parse_whole(t));
  return a && hd_expect(t->p, ")")
             ? hd_build_term(t, HD_TERM_BITCAST, type, loc, &a, 1)
             : NULL;
}

// largest(type), smallest(type)
static const hd_term_t *parse_limit(hd_task_parser_t *t, hd_limit_t limit,
                                    hd_loc_t loc) {
  hd_task_type_t type = {HD_VOID, NULL};
  t->p->at++;
  if (!hd_expect(t->p, "(") || !hd_parse_task_type(t, &type) ||
      !hd_expect(t->p, ")"))
    return NULL;
  hd_term_t *term = hd_build_term(t, HD_TERM_LIMIT, type, loc, NULL, 0);
  term->u.limit = limit;
  return term;
}

// What a name stands for where it is neither called nor accessed.
static const hd_term_t *parse_variable(hd_task_parser_t *t, const char *name,
                                       hd_loc_t loc) {
  hd_term_t *term;
  for (size_t i = t->variables.size; i-- > 0;)
    if (strcmp(t->variables.data[i]->name, name) == 0) {
      term = hd_build_term(t, HD_TERM_BOUND, t->variables.data[i]->type, loc,
                           NULL, 0);
      term->u.variable = t->variables.data[i];
      return term;
    }
  for (size_t i = t->indices.size; i-- > 0;)
    if (strcmp(t->indices.data[i]->name, name) == 0) {
      const hd_index_t *index = t->indices.data[i];
      term = hd_build_term(t, HD_TERM_INDEX, hd_index_type, loc, NULL, 0);
      term->u.index = index;
      term->pack = index->range ? index->range->pack : NULL;
      return term;
    }
  const hd_size_t *size = hd_task_find_size(t->task, name);
  const hd_pack_t *pack = hd_task_find_pack(t->task, name);
  const hd_task_value_t *value = hd_task_find_value(t->task, name);
  if (size) {
    term = hd_build_term(t, HD_TERM_SIZE, hd_index_type, loc, NULL, 0);
    term->u.size = size;
  } else if (pack) {
    term = hd_build_term(t, HD_TERM_PACK, hd_index_type, loc, NULL, 0);
    term->u.pack = pack;
    term->pack = pack->like ? pack->like : pack;
  } else if (value && value->kind == HD_VALUE_ATTRIBUTE) {
    term = hd_build_term(t, HD_TERM_ATTRIBUTE, value->type, loc, NULL, 0);
    term->u.value = value;
    term->pack =
        value->pack && value->pack->like ? value->pack->like : value->pack;
  } else {
    if (value)
      hd_error(t->p->diags, loc, HD_E0207, name,
               hd_rank_text(t->p->arena, value->rank, 0));
    else
      hd_error(t->p->diags, loc, HD_E0201, name, hd_similar(t->p, name));
    return NULL;
  }
  return term;
}

static bool is_monoid(const hd_task_t *task, const char *name) {
  for (int i = 0; i < HD_MONOID_COUNT; i++)
    if (strcmp(hd_monoid_name((hd_builtin_monoid_t)i), name) == 0)
      return true;
  for (size_t i = 0; i < task->monoids.size; i++)
    if (strcmp(task->monoids.data[i]->name, name) == 0)
      return true;
  return false;
}

// max and min are functions, too: "max(p: n)" binds an index.
static bool binds_index(const hd_parser_t *p) {
  const hd_token_t *next = hd_peek_ahead(p, 2);
  if (strcmp(next->text, "..") == 0 && next->kind == HD_TOKEN_PUNCTUATION)
    return true;
  return next->kind == HD_TOKEN_NAME &&
         strcmp(hd_peek_ahead(p, 3)->text, ":") == 0;
}

static const hd_term_t *parse_name(hd_task_parser_t *t) {
  const hd_token_t *token = hd_peek(t->p);
  hd_loc_t loc = hd_here(t->p);
  hd_type_t scalar;
  if (hd_at_listed_function(t))
    return hd_parse_listed_function(t);
  const char *name = hd_listed_name(t, token->text, loc);
  if (!name)
    return NULL;
  if (strcmp(name, "scan") == 0 &&
      hd_peek_ahead(t->p, 1)->kind == HD_TOKEN_NAME) {
    t->p->at++;
    return parse_reduction(t, true, loc);
  }
  if (hd_at_call(t->p)) {
    hd_task_type_t type = {HD_VOID, NULL};
    if (is_monoid(t->task, name) && binds_index(t->p))
      return parse_reduction(t, false, loc);
    if (hd_type_parse(name, &scalar) || hd_task_find_type(t->task, name))
      return hd_parse_task_type(t, &type) ? parse_conversion(t, type, loc)
                                          : NULL;
    if (strcmp(name, "bitcast") == 0)
      return parse_bitcast(t, loc);
    for (int i = HD_LIMIT_LARGEST; i <= HD_LIMIT_SMALLEST; i++)
      if (strcmp(name, hd_limit_name((hd_limit_t)i)) == 0)
        return parse_limit(t, (hd_limit_t)i, loc);
    hd_pattern_t outer = t->pattern;
    bool begins = hd_begin_pattern(t, true);
    t->p->at++;
    const hd_term_t *call = hd_parse_function(t, name, loc);
    if (begins)
      t->pattern = outer;
    return call;
  }
  t->p->at++;
  const hd_task_value_t *value = hd_task_find_value(t->task, name);
  if (value && value->kind != HD_VALUE_ATTRIBUTE && hd_at(t->p, "["))
    return parse_load(t, value, loc);
  if (strcmp(name, "true") == 0 || strcmp(name, "false") == 0) {
    hd_term_t *term =
        hd_build_term(t, HD_TERM_CONST, hd_bool_type, loc, NULL, 0);
    term->u.i = name[0] == 't';
    return term;
  }
  if (strcmp(name, "inf") == 0 || strcmp(name, "nan") == 0) {
    hd_task_type_t f64 = {HD_F64, NULL};
    hd_term_t *term = hd_build_term(t, HD_TERM_CONST, f64, loc, NULL, 0);
    term->u.f = name[0] == 'i' ? INFINITY : NAN;
    term->untyped = true;
    return term;
  }
  return parse_variable(t, name, loc);
}

static const hd_term_t *parse_primary(hd_task_parser_t *t) {
  const hd_token_t *token = hd_peek(t->p);
  hd_loc_t loc = hd_here(t->p);
  if (token->kind == HD_TOKEN_INT || token->kind == HD_TOKEN_FLOAT) {
    hd_task_type_t f64 = {HD_F64, NULL};
    bool is_int = token->kind == HD_TOKEN_INT;
    hd_term_t *term = hd_build_term(t, HD_TERM_CONST,
                                    is_int ? hd_index_type : f64, loc, NULL, 0);
    term->untyped = true;
    if (is_int)
      term->u.i = (int64_t)token->value;
    else
      term->u.f = token->number;
    t->p->at++;
    if (is_int && token->value > INT64_MAX)
      return hd_error(t->p->diags, loc, HD_E0103, token->text), NULL;
    return term;
  }
  if (token->kind == HD_TOKEN_NAME)
    return parse_name(t);
  if (hd_accept(t->p, "(")) {
    const hd_term_t *term = parse_whole(t);
    return term && hd_expect(t->p, ")") ? term : NULL;
  }
  if (hd_at(t->p, "..."))
    return hd_parse_others(t);
  hd_expected(t->p, "a term");
  return NULL;
}

static const hd_term_t *parse_prefix(hd_task_parser_t *t) {
  static const hd_expr_kind_t ops[] = {HD_EXPR_NEG, HD_EXPR_NOT,
                                       HD_EXPR_BITNOT};
  hd_loc_t loc = hd_here(t->p);
  for (size_t i = 0; i < 3; i++) {
    if (!hd_accept(t->p, hd_expr_info(ops[i])->spelling))
      continue;
    const hd_term_t *a = parse_unary(t);
    if (!a)
      return NULL;
    if (ops[i] == HD_EXPR_NEG && a->untyped && a->kind == HD_TERM_CONST) {
      hd_term_t *number =
          hd_build_term(t, HD_TERM_CONST, a->type, loc, NULL, 0);
      number->untyped = true;
      if (hd_task_type_is_float(a->type))
        number->u.f = -a->u.f;
      else
        number->u.i = (int64_t)(0 - (uint64_t)a->u.i);
      return number;
    }
    hd_term_t *term = hd_build_term(t, HD_TERM_OPERATOR, a->type, loc, &a, 1);
    term->u.op = ops[i];
    term->untyped = a->untyped;
    return term;
  }
  return parse_primary(t);
}

// Whatever nests comes by here.
static const hd_term_t *parse_unary(hd_task_parser_t *t) {
  if (!hd_enter(t->p))
    return NULL;
  const hd_term_t *term = parse_prefix(t);
  t->p->depth--;
  return term;
}

static const hd_term_t *parse_infix(hd_task_parser_t *t, int least) {
  const hd_term_t *left = parse_unary(t);
  hd_expr_kind_t op;
  while (left && hd_find_infix(t->p, least, &op)) {
    hd_loc_t loc = hd_here(t->p);
    t->p->at++;
    const hd_term_t *right = parse_infix(t, hd_expr_info(op)->precedence + 1);
    if (!right || !hd_term_is_nothing(right))
      left = hd_term_binary(t, op, left, right, loc);
  }
  hd_loc_t loc = hd_here(t->p);
  if (!left || least > hd_expr_info(HD_EXPR_SELECT)->precedence ||
      !hd_accept(t->p, "?"))
    return left;
  if (!hd_enter(t->p))
    return NULL;
  const hd_term_t *a = parse_infix(t, 0);
  const hd_term_t *b = a && hd_expect(t->p, ":") ? parse_infix(t, 0) : NULL;
  t->p->depth--;
  if (a && b && hd_term_is_nothing(b))
    return hd_term_coerce(t, left, hd_bool_type) ? a : NULL;
  if (a && b && a->untyped && b->untyped) {
    bool one_float =
        hd_task_type_is_float(a->type) || hd_task_type_is_float(b->type);
    hd_task_type_t type = {one_float ? HD_F32 : HD_I64, NULL};
    a = hd_term_coerce(t, a, type);
    b = hd_term_coerce(t, b, type);
  }
  left = hd_term_coerce(t, left, hd_bool_type);
  if (!left || !hd_term_unify(t, &a, &b, loc))
    return NULL;
  const hd_term_t *operands[] = {left, a, b};
  return hd_build_term(t, HD_TERM_SELECT, a->type, loc, operands, 3);
}

const hd_term_t *hd_parse_term(hd_task_parser_t *t) {
  return hd_term_settle(t, parse_whole(t));
}

const hd_term_t *hd_parse_infix_term(hd_task_parser_t *t) {
  return parse_infix(t, 0);
}

const hd_term_t *hd_parse_primary_term(hd_task_parser_t *t) {
  return parse_primary(t);
}

const hd_term_t *hd_parse_bare_term(hd_task_parser_t *t) {
  return parse_whole(t);
}

const hd_term_t *hd_parse_term_as(hd_task_parser_t *t, hd_task_type_t type) {
  return hd_term_coerce(t, parse_whole(t), type);
}

const hd_term_t *hd_parse_axis(hd_task_parser_t *t) {
  hd_loc_t loc = hd_here(t->p);
  if (!hd_accept(t->p, ".."))
    return parse_whole(t);
  const hd_term_t *term = parse_infix(t, 15);
  if (term && !term->pack)
    return hd_error(t->p->diags, loc, HD_E0102, "a pack after '..'",
                    "a single value"),
           NULL;
  return term;
}
