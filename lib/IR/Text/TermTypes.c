// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types of terms while they are read: bare numbers take that of their
// neighbour, or of what they are needed for.
#include "IR/Text/TaskParser.h"

hd_term_t *hd_build_term(hd_task_parser_t *t, hd_term_kind_t kind,
                         hd_task_type_t type, hd_loc_t loc,
                         const hd_term_t *const *operands, unsigned count) {
  hd_term_t *term = hd_term_make(t->p->arena, kind, type, operands, count);
  term->loc = loc;
  for (unsigned i = 0; i < count; i++)
    if (operands[i]->pack)
      term->pack = operands[i]->pack;
  return term;
}

static bool is_number(hd_task_type_t type) {
  return !(hd_task_type_scalars(type) & ~hd_scalar_set("number"));
}

static hd_term_t *coerce_const(hd_task_parser_t *t, const hd_term_t *term,
                               hd_task_type_t type) {
  hd_term_t *result = hd_build_term(t, HD_TERM_CONST, type, term->loc, NULL, 0);
  bool from_float = hd_task_type_is_float(term->type);
  if (!is_number(type) || (from_float && !hd_task_type_is_float(type))) {
    hd_error(t->p->diags, term->loc, HD_E0203, hd_task_type_name(type),
             from_float ? "a float" : "an integer");
    return NULL;
  }
  if (!hd_task_type_is_float(type)) {
    result->u.i = term->u.i; // Every type that it may be is asked below.
    for (int i = 0; i < HD_SCALAR_COUNT; i++) {
      hd_type_t scalar = hd_type((hd_scalar_t)i);
      if (hd_task_type_scalars(type) >> i & 1 && hd_type_is_integer(scalar) &&
          !hd_int_fits(scalar, term->u.i)) {
        hd_error(t->p->diags, term->loc, HD_E0214,
                 hd_arena_printf(t->p->arena, "%lld", (long long)term->u.i),
                 type.var ? hd_arena_printf(t->p->arena, "%s, which %s may be",
                                            hd_scalar_name((hd_scalar_t)i),
                                            type.var->name)
                          : hd_scalar_name((hd_scalar_t)i));
        return NULL;
      }
    }
    return result;
  }
  double number = from_float ? term->u.f : (double)term->u.i;
  result->u.f = type.var ? number : hd_float_round(type.scalar, number);
  return result;
}

// Arithmetic on bare numbers takes a type as a whole; bare: for now only.
static const hd_term_t *retype(hd_task_parser_t *t, const hd_term_t *term,
                               hd_task_type_t type, bool bare) {
  const hd_term_t *operands[3] = {NULL};
  hd_term_t *result;
  if (term->kind == HD_TERM_CONST) {
    result = coerce_const(t, term, type);
    if (!result)
      return NULL;
  } else {
    for (unsigned i = 0; i < term->num_operands; i++)
      if (!(operands[i] = retype(t, term->operands[i], type, bare)))
        return NULL;
    result = hd_build_term(t, (hd_term_kind_t)term->kind, type, term->loc,
                           operands, term->num_operands);
    result->u = term->u;
  }
  result->untyped = bare;
  return result;
}

const hd_term_t *hd_term_coerce(hd_task_parser_t *t, const hd_term_t *term,
                                hd_task_type_t type) {
  if (term && term->untyped)
    return retype(t, term, type, false);
  if (!term || hd_task_type_equal(term->type, type))
    return term;
  hd_error(t->p->diags, term->loc, HD_E0203, hd_task_type_name(type),
           hd_task_type_name(term->type));
  return NULL;
}

// A bare number without a neighbour: i64 or f32.
const hd_term_t *hd_term_settle(hd_task_parser_t *t, const hd_term_t *term) {
  if (!term || !term->untyped)
    return term;
  hd_task_type_t f32 = {HD_F32, NULL};
  return hd_term_coerce(
      t, term, hd_task_type_is_float(term->type) ? f32 : hd_index_type);
}

// Two operands in one type.
const hd_term_t *hd_term_permute(hd_task_parser_t *t,
                                 const hd_term_t *const *args, unsigned count,
                                 hd_loc_t loc) {
  if (count != 2) {
    hd_error(t->p->diags, loc, HD_E0206, "permute", 2, "arguments", (int)count);
    return NULL;
  }
  const hd_term_t *operands[2];
  for (unsigned i = 0; i < 2; i++)
    if (!(operands[i] = hd_term_settle(t, args[i])))
      return NULL;
  if (!operands[0]->pack || operands[0]->pack != operands[1]->pack) {
    hd_error(t->p->diags, loc, HD_E0213, "permute",
             "a pack of values, and an order over it");
    return NULL;
  }
  return hd_build_term(t, HD_TERM_PERMUTE, operands[0]->type, loc, operands, 2);
}

bool hd_term_unify(hd_task_parser_t *t, const hd_term_t **a,
                   const hd_term_t **b, hd_loc_t loc) {
  if (!*a || !*b)
    return false;
  if ((*a)->untyped && (*b)->untyped) {
    bool one_float =
        hd_task_type_is_float((*a)->type) || hd_task_type_is_float((*b)->type);
    hd_task_type_t type = {one_float ? HD_F64 : HD_I64, NULL};
    *a = hd_task_type_equal((*a)->type, type) ? *a : retype(t, *a, type, true);
    *b = hd_task_type_equal((*b)->type, type) ? *b : retype(t, *b, type, true);
    return *a && *b;
  }
  if ((*a)->untyped)
    return (*a = hd_term_coerce(t, *a, (*b)->type)) != NULL;
  if ((*b)->untyped)
    return (*b = hd_term_coerce(t, *b, (*a)->type)) != NULL;
  if (hd_task_type_equal((*a)->type, (*b)->type))
    return true;
  return hd_error(t->p->diags, loc, HD_E0204, hd_task_type_name((*a)->type),
                  hd_task_type_name((*b)->type));
}

const hd_term_t *hd_term_binary(hd_task_parser_t *t, hd_expr_kind_t op,
                                const hd_term_t *a, const hd_term_t *b,
                                hd_loc_t loc) {
  bool untyped = a && b && a->untyped && b->untyped;
  bool compares = hd_expr_info(op)->form == HD_FORM_COMPARE;
  if (compares && untyped) {
    a = hd_term_settle(t, a);
    b = hd_term_settle(t, b);
  }
  if (!hd_term_unify(t, &a, &b, loc))
    return NULL;
  const hd_term_t *operands[] = {a, b};
  hd_term_t *term = hd_build_term(
      t, HD_TERM_OPERATOR, compares ? hd_bool_type : a->type, loc, operands, 2);
  term->u.op = op;
  term->untyped = untyped && !compares;
  if (term->height <= HD_MAX_HEIGHT)
    return term;
  hd_error(t->p->diags, loc, HD_E0105, (int)HD_MAX_HEIGHT);
  return NULL;
}
