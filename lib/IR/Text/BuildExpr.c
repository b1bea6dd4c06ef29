// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators on what was read: operands of one type, bare numbers bare as long
// as nothing asks for a type.
#include "IR/Text/ParserState.h"

static const hd_parsed_t failed = {NULL, false};

const char *hd_operator_name(hd_parser_t *p, hd_expr_kind_t kind) {
  return hd_arena_printf(p->arena, "'%s'", hd_expr_info(kind)->spelling);
}

void hd_reject_tensor(hd_parser_t *p, const hd_expr_t *e) {
  const hd_var_t *var = e->u.var;
  hd_error(p->diags, e->loc, HD_E0207, var->name,
           hd_rank_text(p->arena, var->tensor->rank, 0));
}

static hd_type_t bare_type(const hd_expr_t *a, const hd_expr_t *b) {
  bool is_float = hd_type_is_float(a->type) || hd_type_is_float(b->type);
  bool is_large = a->type.scalar == HD_U64 || b->type.scalar == HD_U64;
  return hd_type(is_float ? HD_F64 : is_large ? HD_U64 : HD_I64);
}

// Of two bare numbers: bare again, unless they are compared.
static hd_parsed_t build_untyped(hd_parser_t *p, hd_expr_kind_t kind,
                                 hd_parsed_t a, hd_parsed_t b, hd_loc_t loc) {
  bool is_float = hd_type_is_float(a.e->type) || hd_type_is_float(b.e->type);
  bool compares = hd_expr_info(kind)->form == HD_FORM_COMPARE;
  bool is_large = a.e->type.scalar == HD_U64 || b.e->type.scalar == HD_U64;
  hd_type_t type = bare_type(a.e, b.e);
  if (compares && !is_large)
    type = hd_type(is_float                               ? HD_F32
                   : hd_fits_i32(a.e) && hd_fits_i32(b.e) ? HD_I32
                                                          : HD_I64);
  const hd_expr_t *x = hd_coerce(p, a, type), *y = hd_coerce(p, b, type);
  if (!x || !y)
    return failed;
  return (hd_parsed_t){hd_at_loc(p, hd_expr_binary(p->arena, kind, x, y), loc),
                       !compares};
}

// Of two types of numbers the one that holds more of the other's values.
static hd_type_t wider(hd_type_t a, hd_type_t b) {
  bool a_is_float = hd_type_is_float(a), b_is_float = hd_type_is_float(b);
  if (a_is_float != b_is_float)
    return a_is_float ? a : b;
  return hd_type_bits(a) >= hd_type_bits(b) ? a : b;
}

hd_parsed_t hd_build_binary(hd_parser_t *p, hd_expr_kind_t kind, hd_parsed_t a,
                            hd_parsed_t b, hd_loc_t loc) {
  if (!a.e || !b.e)
    return failed;
  hd_type_t type = a.untyped ? b.e->type : a.e->type;
  if (a.e->kind == HD_EXPR_TENSOR || b.e->kind == HD_EXPR_TENSOR) {
    const hd_expr_t *tensor = a.e->kind == HD_EXPR_TENSOR ? a.e : b.e;
    hd_reject_tensor(p, tensor);
    return failed;
  }
  if (!hd_expr_defined(kind, type)) {
    hd_error(p->diags, loc, HD_E0205, hd_operator_name(p, kind),
             hd_type_name(type));
    return failed;
  }
  if (a.untyped && b.untyped)
    return build_untyped(p, kind, a, b, loc);
  if (!a.untyped && !b.untyped && !hd_type_equal(a.e->type, b.e->type)) {
    hd_error(p->diags, loc, HD_E0204, hd_type_name(a.e->type),
             hd_conversion_text(p, b.e->type, wider(a.e->type, b.e->type)));
    return failed;
  }
  const hd_expr_t *x = hd_coerce(p, a, type), *y = hd_coerce(p, b, type);
  if (!x || !y)
    return failed;
  return (hd_parsed_t){hd_at_loc(p, hd_expr_binary(p->arena, kind, x, y), loc),
                       false};
}

hd_parsed_t hd_build_unary(hd_parser_t *p, hd_expr_kind_t kind, hd_parsed_t a,
                           hd_loc_t loc) {
  if (!a.e)
    return failed;
  if (!hd_expr_defined(kind, a.e->type)) {
    hd_error(p->diags, loc, HD_E0205, hd_operator_name(p, kind),
             hd_type_name(a.e->type));
    return failed;
  }
  if (a.e->kind == HD_EXPR_TENSOR) {
    hd_reject_tensor(p, a.e);
    return failed;
  }
  const hd_expr_t *e = hd_expr_unary(p->arena, kind, a.e);
  // "-1" is a number; other operators stay to be seen.
  if (kind == HD_EXPR_NEG && a.untyped && a.e->kind == HD_EXPR_CONST) {
    e = hd_expr_fold(p->arena, e);
    if (a.e->type.scalar == HD_U64 && a.e->u.i != INT64_MIN) {
      hd_error(
          p->diags, loc, HD_E0103,
          hd_arena_printf(p->arena, "-%llu", (unsigned long long)a.e->u.i));
      return failed;
    }
    if (a.e->type.scalar == HD_U64)
      e = hd_expr_int(p->arena, hd_type(HD_I64), INT64_MIN);
  }
  return (hd_parsed_t){hd_at_loc(p, e, loc), a.untyped};
}

hd_parsed_t hd_build_select(hd_parser_t *p, hd_parsed_t condition,
                            hd_parsed_t a, hd_parsed_t b, hd_loc_t loc) {
  if (!condition.e || !a.e || !b.e)
    return failed;
  if (!hd_type_equal(condition.e->type, hd_type(HD_BOOL))) {
    hd_error(p->diags, condition.e->loc, HD_E0203, "bool",
             hd_type_name(condition.e->type));
    return failed;
  }
  if (a.e->kind == HD_EXPR_TENSOR || b.e->kind == HD_EXPR_TENSOR) {
    hd_reject_tensor(p, a.e->kind == HD_EXPR_TENSOR ? a.e : b.e);
    return failed;
  }
  // Of two bare numbers: bare again.
  bool is_bare = a.untyped && b.untyped;
  hd_type_t type = is_bare     ? bare_type(a.e, b.e)
                   : a.untyped ? b.e->type
                               : a.e->type;
  const hd_expr_t *x = hd_coerce(p, a, type), *y = hd_coerce(p, b, type);
  if (!x || !y)
    return failed;
  const hd_expr_t *e = hd_expr_select(p->arena, condition.e, x, y);
  return (hd_parsed_t){hd_at_loc(p, e, loc), is_bare};
}
