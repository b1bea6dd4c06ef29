// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bare numbers, which have no type until they meet one.
#include "IR/Text/ParserState.h"

bool hd_int_fits(hd_type_t type, int64_t value) {
  unsigned bits = hd_scalar_bits((hd_scalar_t)type.scalar);
  if (hd_type_is_bool(type))
    return false;
  if (bits == 64)
    return hd_type_is_signed(type) || value >= 0;
  int64_t one = 1;
  if (hd_type_is_unsigned(type))
    return value >= 0 && value < one << bits;
  return value >= -(one << (bits - 1)) && value < one << (bits - 1);
}

static const hd_expr_t *retype_const(hd_parser_t *p, const hd_expr_t *e,
                                     hd_type_t type) {
  bool is_float = hd_type_is_float(e->type);
  bool is_large = e->type.scalar == HD_U64; // Above 2^63 - 1.
  if (hd_type_is_float(type)) {
    double number = is_float   ? e->u.f
                    : is_large ? (double)(uint64_t)e->u.i
                               : (double)e->u.i;
    return hd_expr_float(p->arena, type,
                         hd_float_round((hd_scalar_t)type.scalar, number));
  }
  if (is_float || !hd_type_is_integer(type)) {
    hd_error(p->diags, e->loc, HD_E0203, hd_type_name(type),
             is_float ? "a float" : "an integer");
    return NULL;
  }
  if (is_large ? type.scalar != HD_U64 : !hd_int_fits(type, e->u.i)) {
    hd_error(p->diags, e->loc, HD_E0214,
             is_large
                 ? hd_arena_printf(p->arena, "%llu", (unsigned long long)e->u.i)
                 : hd_arena_printf(p->arena, "%lld", (long long)e->u.i),
             hd_type_name(type));
    return NULL;
  }
  return hd_expr_int(p->arena, type, e->u.i);
}

// Arithmetic on bare numbers takes a type as a whole: in f32, 1 / 2 is 0.5.
static const hd_expr_t *retype(hd_parser_t *p, const hd_expr_t *e,
                               hd_type_t type) {
  const hd_expr_t *operands[3], *result;
  if (hd_type_equal(e->type, type))
    return e;
  if (e->kind == HD_EXPR_CONST) {
    result = retype_const(p, e, type);
    return result ? hd_at_loc(p, result, e->loc) : NULL;
  }
  if (e->kind != HD_EXPR_SELECT &&
      !hd_expr_defined((hd_expr_kind_t)e->kind, type)) {
    hd_error(p->diags, e->loc, HD_E0205,
             hd_operator_name(p, (hd_expr_kind_t)e->kind), hd_type_name(type));
    return NULL;
  }
  bool is_choice = e->kind == HD_EXPR_SELECT; // The condition has a type.
  operands[0] = e->operands[0];
  for (unsigned i = is_choice; i < e->num_operands; i++)
    if (!(operands[i] = retype(p, e->operands[i], type)))
      return NULL;
  return hd_expr_make(p->arena, (hd_expr_kind_t)e->kind, type, e, operands,
                      e->num_operands);
}

const char *hd_conversion_text(hd_parser_t *p, hd_type_t found, hd_type_t to) {
  bool converts = (hd_type_is_float(found) || hd_type_is_integer(found)) &&
                  (hd_type_is_float(to) || hd_type_is_integer(to)) &&
                  found.lanes == to.lanes;
  return converts ? hd_arena_printf(p->arena, "%s; %s(...) converts",
                                    hd_type_name(found), hd_type_name(to))
                  : hd_type_name(found);
}

const hd_expr_t *hd_coerce(hd_parser_t *p, hd_parsed_t value, hd_type_t type) {
  const hd_expr_t *e = value.e;
  if (!e)
    return NULL;
  if (!value.untyped) {
    if (hd_type_equal(e->type, type))
      return e;
    hd_error(p->diags, e->loc, HD_E0203, hd_type_name(type),
             hd_conversion_text(p, e->type, type));
    return NULL;
  }
  const hd_expr_t *result = retype(p, e, hd_type_lane(type));
  if (result && type.lanes > 1)
    result = hd_expr_make(p->arena, HD_EXPR_VECTOR, type, NULL, &result, 1);
  return result;
}

// True where every bare number of the tree fits i32.
bool hd_fits_i32(const hd_expr_t *e) {
  if (e->kind == HD_EXPR_CONST)
    return e->type.scalar != HD_U64 && hd_int_fits(hd_type(HD_I32), e->u.i);
  for (unsigned i = e->kind == HD_EXPR_SELECT; i < e->num_operands; i++)
    if (!hd_fits_i32(e->operands[i]))
      return false;
  return true;
}

const hd_expr_t *hd_default_type(hd_parser_t *p, hd_parsed_t value) {
  if (!value.e || !value.untyped)
    return value.e;
  hd_scalar_t scalar = hd_type_is_float(value.e->type) ? HD_F32
                       : hd_fits_i32(value.e)          ? HD_I32
                                                       : HD_I64;
  return hd_coerce(p, value, hd_type(scalar));
}

// Bare numbers are i64 or f64 until they meet a type; u64 where they are too
// large for i64.
hd_parsed_t hd_untyped_int(hd_parser_t *p, uint64_t value, hd_loc_t loc) {
  hd_type_t type = hd_type(value > INT64_MAX ? HD_U64 : HD_I64);
  return (hd_parsed_t){
      hd_at_loc(p, hd_expr_int(p->arena, type, (int64_t)value), loc), true};
}

hd_parsed_t hd_untyped_float(hd_parser_t *p, double value, hd_loc_t loc) {
  return (hd_parsed_t){
      hd_at_loc(p, hd_expr_float(p->arena, hd_type(HD_F64), value), loc), true};
}
