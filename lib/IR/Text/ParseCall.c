// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls: conversions, operators spelled as functions, device functions and
// intrinsics, with their overloads.
#include "IR/Rewrite.h"
#include "IR/Text/CallParser.h"
#include "IR/Text/Library.h"

#include <string.h>

static const hd_parsed_t failed = {NULL, false};

static const hd_expr_t *make_expr(hd_parser_t *p, hd_expr_kind_t kind,
                                  hd_type_t type, hd_loc_t loc,
                                  const hd_expr_t *const *operands,
                                  unsigned count) {
  hd_expr_t like = {.loc = loc};
  return hd_expr_make(p->arena, kind, type, &like, operands, count);
}

bool hd_at_call(const hd_parser_t *p) {
  const hd_token_t *next = hd_peek_ahead(p, 1);
  return hd_peek(p)->kind == HD_TOKEN_NAME &&
         next->kind == HD_TOKEN_PUNCTUATION && strcmp(next->text, "(") == 0;
}

static bool parse_args(hd_parser_t *p, const char *callee, hd_args_t *args) {
  args->count = 0;
  bool ok = true;
  if (!hd_expect(p, "("))
    return false;
  if (hd_accept(p, ")"))
    return true;
  do {
    hd_loc_t loc = hd_here(p);
    if (args->count == HD_MAX_ARGS)
      return hd_error(p->diags, loc, HD_E0206, callee, HD_MAX_ARGS, "arguments",
                      HD_MAX_ARGS + 1);
    hd_parsed_t *value = &args->values[args->count];
    bool *is_word = &args->are_words[args->count];
    *is_word = hd_parse_intrinsic_word(p, callee, args->count, value);
    if (!*is_word)
      *value = hd_parse_value(p);
    ok &= value->e != NULL;
    args->count++;
  } while (hd_accept(p, ","));
  if (!ok)
    hd_skip_closed(p);
  return ok && hd_expect(p, ")");
}

static bool count_is(hd_parser_t *p, hd_loc_t loc, const char *callee,
                     const hd_args_t *args, unsigned count) {
  if (args->count == count)
    return true;
  hd_error(p->diags, loc, HD_E0206, callee, (int)count,
           count == 1 ? "argument" : "arguments", (int)args->count);
  return false;
}

// f16(x), f32x4(a, b, c, d), f32x4(x).
static hd_parsed_t conversion(hd_parser_t *p, hd_type_t type, hd_loc_t loc,
                              const hd_args_t *args) {
  const char *name = hd_type_name(type);
  const hd_expr_t *operands[HD_MAX_LANES];
  hd_type_t lane = hd_type_lane(type);
  if (type.lanes > 1 && args->count == type.lanes) {
    for (unsigned i = 0; i < args->count; i++)
      if (!(operands[i] = hd_coerce(p, args->values[i], lane)))
        return failed;
    return (hd_parsed_t){
        make_expr(p, HD_EXPR_VECTOR, type, loc, operands, args->count), false};
  }
  if (!count_is(p, loc, name, args, 1))
    return failed;
  hd_parsed_t value = args->values[0];
  hd_scalar_class_t class = hd_scalar_class((hd_scalar_t)type.scalar);
  if (class == HD_CLASS_VOID || class == HD_CLASS_OPAQUE ||
      value.e->kind == HD_EXPR_TENSOR) {
    hd_error(p->diags, loc, HD_E0205, "conversion",
             value.e->kind == HD_EXPR_TENSOR ? "a tensor" : name);
    return failed;
  }
  if (value.untyped) {
    bool exact = hd_type_is_float(lane) || !hd_type_is_float(value.e->type);
    if (exact && !hd_type_is_bool(lane))
      return (hd_parsed_t){hd_coerce(p, value, type), false};
    value.e = hd_default_type(p, value);
  }
  if (!value.e || hd_type_equal(value.e->type, type))
    return (hd_parsed_t){value.e, false};
  if (value.e->type.lanes == type.lanes)
    return (hd_parsed_t){make_expr(p, HD_EXPR_CAST, type, loc, &value.e, 1),
                         false};
  if (value.e->type.lanes == 1 && hd_type_equal(value.e->type, lane))
    return (hd_parsed_t){make_expr(p, HD_EXPR_VECTOR, type, loc, &value.e, 1),
                         false};
  hd_error(p->diags, loc, HD_E0203, hd_type_name(lane),
           hd_type_name(value.e->type));
  return failed;
}

// bitcast(T, x)
static hd_parsed_t bitcast(hd_parser_t *p, hd_loc_t loc) {
  hd_type_t type;
  if (!hd_expect(p, "(") || !hd_parse_type(p, &type) || !hd_expect(p, ","))
    return failed;
  const hd_expr_t *e = hd_parse_expr(p);
  if (!e || !hd_expect(p, ")"))
    return failed;
  if (hd_type_bits(type) != hd_type_bits(e->type) || hd_type_bits(type) == 0 ||
      hd_type_is_bool(type) || hd_type_is_bool(e->type)) {
    hd_error(p->diags, loc, HD_E0205,
             hd_arena_printf(p->arena, "bitcast to %s", hd_type_name(type)),
             hd_type_name(e->type));
    return failed;
  }
  return (hd_parsed_t){make_expr(p, HD_EXPR_BITCAST, type, loc, &e, 1), false};
}

// bits(T): of a value of that type, a bare number.
static hd_parsed_t bits(hd_parser_t *p, hd_loc_t loc) {
  hd_type_t type;
  if (!hd_expect(p, "(") || !hd_parse_type(p, &type) || !hd_expect(p, ")"))
    return failed;
  return hd_untyped_int(p, hd_type_bits(type), loc);
}

// b stands twice in what ceildiv is short for, and twice in that again.
enum { MAX_DIVISOR = 64 };

// What a function does is not known before all of them are read.
static bool is_plain(void *argument, const hd_expr_t *e) {
  (void)argument;
  return e->kind != HD_EXPR_CALL &&
         (e->kind != HD_EXPR_INTRINSIC ||
          hd_intrinsic_of(e)->kind == HD_INTRINSIC_PURE);
}

// (a + b - 1) / b
static hd_parsed_t ceildiv(hd_parser_t *p, hd_loc_t loc,
                           const hd_args_t *args) {
  if (hd_expr_count(args->values[1].e, MAX_DIVISOR) == MAX_DIVISOR) {
    hd_error(p->diags, loc, HD_E0213, "ceildiv",
             "a divisor that is written shorter");
    return failed;
  }
  if (!hd_walk_expr(args->values[1].e, is_plain, NULL)) {
    hd_error(p->diags, loc, HD_E0302,
             "a call with an effect, or of a function,",
             "in the divisor of ceildiv; name its value by a let before");
    return failed;
  }
  hd_parsed_t one = {hd_expr_int(p->arena, hd_type(HD_I64), 1), true};
  hd_parsed_t sum =
      hd_build_binary(p, HD_EXPR_ADD, args->values[0], args->values[1], loc);
  sum = hd_build_binary(p, HD_EXPR_SUB, sum, one, loc);
  return hd_build_binary(p, HD_EXPR_DIV, sum, args->values[1], loc);
}

// "f32, i32, a number" for messages.
static const char *list_types(hd_parser_t *p, const hd_args_t *args) {
  const char *text = "";
  for (unsigned i = 0; i < args->count; i++) {
    const hd_expr_t *e = args->values[i].e;
    text = hd_arena_printf(p->arena, "%s%s%s%s", text, i ? ", " : "",
                           args->values[i].untyped ? "number"
                                                   : hd_type_name(e->type),
                           e->kind == HD_EXPR_TENSOR ? "[...]" : "");
  }
  return text;
}

// A number without a type may become this one.
bool hd_may_become(hd_parsed_t value, hd_type_t type) {
  if (!value.untyped)
    return hd_type_equal(value.e->type, type);
  return hd_type_is_float(type) ||
         (hd_type_is_integer(type) && !hd_type_is_float(value.e->type));
}

// How well a function's parameters take the arguments: 0 not at all; more for
// numbers that get their default type.
static int rate_func(const hd_func_t *func, const hd_args_t *args) {
  int rate = 1;
  if (func->num_params != args->count)
    return 0;
  for (unsigned i = 0; i < args->count; i++) {
    const hd_var_t *param = func->params[i];
    const hd_expr_t *e = args->values[i].e;
    if (param->tensor) {
      bool place = e->kind == HD_EXPR_TENSOR ||
                   (e->kind == HD_EXPR_LOAD && e->num_operands == 0);
      if (!place || e->u.var->tensor->rank != param->tensor->rank ||
          e->u.var->tensor->scope != param->tensor->scope ||
          !hd_type_equal(e->u.var->type, param->type))
        return 0;
    } else if (e->kind == HD_EXPR_TENSOR ||
               !hd_may_become(args->values[i], param->type)) {
      return 0;
    } else if (args->values[i].untyped) {
      bool is_float = hd_type_is_float(e->type);
      rate += param->type.scalar == (is_float ? HD_F32 : HD_I32);
    }
  }
  return rate;
}

static const hd_func_t *best_func(const hd_module_t *module, const char *name,
                                  const hd_args_t *args, bool *exists) {
  const hd_func_t *best = NULL;
  int best_rate = 0;
  size_t cursor = 0;
  for (const hd_item_t *item;
       module && (item = hd_module_next(module, name, &cursor));) {
    if (item->kind != HD_ITEM_FUNC || item->u.func->kind != HD_FUNC_FN)
      continue;
    *exists = true;
    int rate = rate_func(item->u.func, args);
    if (rate > best_rate) {
      best = item->u.func;
      best_rate = rate;
    }
  }
  return best;
}

static hd_parsed_t call_func(hd_parser_t *p, const hd_func_t *func,
                             const hd_args_t *args, hd_loc_t loc) {
  const hd_expr_t *operands[HD_MAX_ARGS];
  for (unsigned i = 0; i < args->count; i++) {
    const hd_var_t *param = func->params[i];
    const hd_expr_t *e = args->values[i].e;
    if (param->tensor && e->kind == HD_EXPR_LOAD) // Of rank 0.
      operands[i] = hd_expr_var(p->arena, e->u.var);
    else if (param->tensor)
      operands[i] = e;
    else if (!(operands[i] = hd_coerce(p, args->values[i], param->type)))
      return failed;
  }
  if (!hd_check_tensors(p, func, operands))
    return failed;
  hd_expr_t like = {.u.func = func, .loc = loc};
  return (hd_parsed_t){hd_expr_make(p->arena, HD_EXPR_CALL, func->result, &like,
                                    operands, args->count),
                       false};
}

static hd_parsed_t call_named(hd_parser_t *p, const char *name, hd_loc_t loc,
                              const hd_args_t *args) {
  bool exists = false;
  const hd_func_t *func = best_func(p->module, name, args, &exists);
  if (func)
    return call_func(p, func, args, loc);
  hd_parsed_t result;
  if (hd_parse_intrinsic(p, name, loc, args, &exists, &result))
    return result;
  func =
      best_func(hd_library_load(p->module->context, name), name, args, &exists);
  if (func)
    return call_func(p, func, args, loc);
  if (exists)
    hd_report_no_call(p, name, loc, list_types(p, args));
  else
    hd_report_unknown(p, name, loc);
  return failed;
}

// f[name = value](...): of the function that comes of these values.
static hd_parsed_t call_generic(hd_parser_t *p, const char *name,
                                hd_loc_t loc) {
  hd_args_t args;
  const hd_func_t *func = hd_parse_func_name(p, name, loc, HD_KINDS_FN);
  if (!func || !parse_args(p, func->name, &args))
    return failed;
  if (rate_func(func, &args))
    return call_func(p, func, &args, loc);
  hd_report_no_call(p, func->name, loc, list_types(p, &args));
  return failed;
}

hd_parsed_t hd_parse_call(hd_parser_t *p, const hd_token_t *name) {
  hd_loc_t loc = {p->source, name->offset};
  hd_args_t args;
  hd_type_t type;
  if (strcmp(name->text, "bitcast") == 0)
    return bitcast(p, loc);
  if (strcmp(name->text, "bits") == 0 &&
      hd_find_type(p, hd_peek_ahead(p, 1)->text, &type))
    return bits(p, loc);
  if (hd_at(p, "[") || hd_is_generic_fn(p, name->text))
    return call_generic(p, name->text, loc);
  if (!parse_args(p, name->text, &args))
    return failed;
  if (hd_find_type(p, name->text, &type))
    return conversion(p, type, loc, &args);
  static const hd_expr_kind_t calls[] = {HD_EXPR_MIN, HD_EXPR_MAX};
  for (size_t i = 0; i < 2; i++)
    if (strcmp(name->text, hd_expr_info(calls[i])->spelling) == 0)
      return count_is(p, loc, name->text, &args, 2)
                 ? hd_build_binary(p, calls[i], args.values[0], args.values[1],
                                   loc)
                 : failed;
  if (strcmp(name->text, "ceildiv") == 0)
    return count_is(p, loc, name->text, &args, 2) ? ceildiv(p, loc, &args)
                                                  : failed;
  return call_named(p, name->text, loc, &args);
}
