// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Text/PrinterState.h"

#include "IR/Intrinsic.h"
#include "Support/Float.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hd_float_print(hd_scalar_t scalar, double value, hd_buffer_t *out) {
  if (isnan(value)) {
    hd_buffer_puts(out, "nan");
    return;
  }
  if (isinf(value)) {
    hd_buffer_puts(out, value < 0 ? "-inf" : "inf");
    return;
  }
  // The shortest decimal that reads back: so many digits or more do.
  char text[40];
  int least = 1, most = 17;
  while (least < most) {
    int digits = (least + most) / 2;
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (hd_float_round(scalar, strtod(text, NULL)) == value)
      most = digits;
    else
      least = digits + 1;
  }
  snprintf(text, sizeof text, "%.*g", most, value);
  hd_buffer_puts(out, text);
  if (!strpbrk(text, ".e"))
    hd_buffer_puts(out, ".0");
}

// An i32 or f32 constant is printed as a bare number; in a graph an i64 one.
static bool is_bare(const hd_printer_t *p, const hd_expr_t *e) {
  return e->kind == HD_EXPR_CONST && e->type.lanes == 1 &&
         (e->type.scalar == p->integer || e->type.scalar == HD_F32);
}

// Whether the parser will read e as a number without a type: arithmetic on bare
// numbers.
static bool is_untyped(const hd_printer_t *p, const hd_expr_t *e) {
  if (e->kind == HD_EXPR_CONST)
    return is_bare(p, e);
  if (e->kind == HD_EXPR_SELECT)
    return is_untyped(p, e->operands[1]) && is_untyped(p, e->operands[2]);
  switch (hd_expr_info((hd_expr_kind_t)e->kind)->form) {
  case HD_FORM_UNARY:
  case HD_FORM_BINARY:
  case HD_FORM_CALL:
    for (unsigned i = 0; i < e->num_operands; i++)
      if (!is_untyped(p, e->operands[i]))
        return false;
    return true;
  case HD_FORM_LEAF:
  case HD_FORM_COMPARE:
  case HD_FORM_OTHER:
    break;
  }
  return false;
}

// A number that would read back as another type is wrapped in its type.
static void print_const(hd_printer_t *p, const hd_expr_t *e) {
  if (hd_type_is_bool(e->type)) {
    hd_buffer_puts(p->out, e->u.i ? "true" : "false");
    return;
  }
  bool is_float = hd_type_is_float(e->type);
  bool plain = is_bare(p, e);
  if (!plain)
    hd_buffer_printf(p->out, "%s(", hd_type_name(e->type));
  if (is_float)
    hd_float_print((hd_scalar_t)e->type.scalar, e->u.f, p->out);
  else if (hd_type_is_unsigned(e->type))
    hd_buffer_printf(p->out, "%llu", (unsigned long long)e->u.i);
  else if (e->u.i == INT64_MIN) // Its digits alone would not fit.
    hd_buffer_puts(p->out, "-0x8000000000000000");
  else
    hd_buffer_printf(p->out, "%lld", (long long)e->u.i);
  if (!plain)
    hd_buffer_puts(p->out, ")");
}

void hd_print_list(hd_printer_t *p, const hd_expr_t *const *exprs,
                   unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    if (i)
      hd_buffer_puts(p->out, ", ");
    hd_print_expr(p, exprs[i], 0);
  }
}

void hd_print_place(hd_printer_t *p, const hd_var_t *var, bool linear,
                    const hd_expr_t *const *indices, unsigned count,
                    unsigned lanes) {
  hd_buffer_puts(p->out, hd_print_name_of(p, var));
  if (count == 0)
    return;
  hd_buffer_puts(p->out, linear ? "@[" : "[");
  hd_print_list(p, indices, count);
  if (lanes > 1)
    hd_buffer_printf(p->out, " +: %u", lanes);
  hd_buffer_puts(p->out, "]");
}

static void print_intrinsic(hd_printer_t *p, const hd_expr_t *e) {
  const hd_intrinsic_info_t *info = hd_intrinsic_of(e);
  hd_buffer_printf(p->out, "%s(", info->name);
  for (unsigned i = 0; i < e->num_operands; i++) {
    hd_param_form_t form = info->params[i].form;
    if (i)
      hd_buffer_puts(p->out, ", ");
    if (form >= HD_PARAM_ORDER)
      hd_buffer_puts(p->out,
                     hd_intrinsic_name_text(form, (int)e->operands[i]->u.i));
    else
      hd_print_expr(p, e->operands[i], 0);
  }
  hd_buffer_puts(p->out, ")");
}

static void print_call(hd_printer_t *p, const char *name, const hd_expr_t *e) {
  hd_buffer_printf(p->out, "%s(", name);
  hd_print_list(p, e->operands, e->num_operands);
  hd_buffer_puts(p->out, ")");
}

static void print_other(hd_printer_t *p, const hd_expr_t *e) {
  switch ((hd_expr_kind_t)e->kind) {
  case HD_EXPR_SELECT:
    hd_print_expr(p, e->operands[0], 5);
    hd_buffer_puts(p->out, " ? ");
    hd_print_expr(p, e->operands[1], 4);
    hd_buffer_puts(p->out, " : ");
    hd_print_expr(p, e->operands[2], 4);
    break;
  case HD_EXPR_CAST:
    // A bare number would take the type instead of being converted.
    if (is_untyped(p, e->operands[0])) {
      hd_buffer_printf(p->out, "%s(%s(", hd_type_name(e->type),
                       hd_type_name(e->operands[0]->type));
      hd_print_expr(p, e->operands[0], 0);
      hd_buffer_puts(p->out, "))");
      break;
    }
    print_call(p, hd_type_name(e->type), e);
    break;
  case HD_EXPR_VECTOR:
    print_call(p, hd_type_name(e->type), e);
    break;
  case HD_EXPR_BITCAST:
    hd_buffer_printf(p->out, "bitcast(%s, ", hd_type_name(e->type));
    hd_print_expr(p, e->operands[0], 0);
    hd_buffer_puts(p->out, ")");
    break;
  case HD_EXPR_LANE:
    hd_print_expr(p, e->operands[0], 20);
    hd_buffer_printf(p->out, "[%lld]", (long long)e->u.i);
    break;
  case HD_EXPR_LOAD:
  case HD_EXPR_REF:
    hd_print_place(p, e->u.var, e->linear, e->operands, e->num_operands,
                   e->type.lanes);
    break;
  case HD_EXPR_LOADELSE:
    hd_print_place(p, e->u.var, false, e->operands, e->num_operands - 1,
                   e->type.lanes);
    hd_buffer_puts(p->out, " else ");
    hd_print_expr(p, e->operands[e->num_operands - 1], 15);
    break;
  case HD_EXPR_CALL:
    print_call(p, e->u.func->name, e);
    break;
  case HD_EXPR_INTRINSIC:
    print_intrinsic(p, e);
    break;
  default:
    break; // Not of this form.
  }
}

// A negative constant binds like a negation, "x[i] else y" like a unary too.
static int precedence_of(const hd_printer_t *p, const hd_expr_t *e) {
  if (e->kind == HD_EXPR_LOADELSE)
    return 15;
  if (is_bare(p, e) &&
      (hd_type_is_integer(e->type) ? e->u.i < 0
                                   : signbit(e->u.f) && !isnan(e->u.f)))
    return 15;
  return hd_expr_info((hd_expr_kind_t)e->kind)->precedence;
}

// The parser takes "-1" for a number, so the negation of one is printed as the
// number that it is. Returns e where it is none, and else fills in storage.
static const hd_expr_t *as_number(const hd_printer_t *p, const hd_expr_t *e,
                                  hd_expr_t *storage) {
  bool negative = false;
  const hd_expr_t *number = e;
  for (; number->kind == HD_EXPR_NEG; number = number->operands[0])
    negative = !negative;
  if (number == e || !is_bare(p, number))
    return e;
  *storage =
      (hd_expr_t){.kind = HD_EXPR_CONST, .type = number->type, .u = number->u};
  if (negative && number->type.scalar == HD_I32)
    storage->u.i = (int32_t)(0 - (uint32_t)number->u.i);
  else if (negative && number->type.scalar == HD_I64)
    storage->u.i = (int64_t)(0 - (uint64_t)number->u.i);
  else if (negative)
    storage->u.f = -number->u.f;
  return storage;
}

// least: the loosest precedence that needs no parentheses here.
void hd_print_expr(hd_printer_t *p, const hd_expr_t *e, int least) {
  hd_expr_t storage;
  e = as_number(p, e, &storage);
  const hd_expr_info_t *info = hd_expr_info((hd_expr_kind_t)e->kind);
  bool parenthesize = precedence_of(p, e) < least;
  if (parenthesize)
    hd_buffer_puts(p->out, "(");
  switch (info->form) {
  case HD_FORM_LEAF:
    if (e->kind == HD_EXPR_CONST)
      print_const(p, e);
    else if (e->kind == HD_EXPR_BUILTIN)
      hd_buffer_puts(p->out, hd_builtin_info(e->u.builtin)->text);
    else
      hd_buffer_puts(p->out, hd_print_name_of(p, e->u.var));
    break;
  case HD_FORM_UNARY:
    hd_buffer_puts(p->out, info->spelling);
    hd_print_expr(p, e->operands[0], info->precedence);
    break;
  case HD_FORM_BINARY:
  case HD_FORM_COMPARE:
    hd_print_expr(p, e->operands[0], info->precedence);
    hd_buffer_printf(p->out, " %s ", info->spelling);
    hd_print_expr(p, e->operands[1], info->precedence + 1);
    break;
  case HD_FORM_CALL:
    print_call(p, info->spelling, e);
    break;
  case HD_FORM_OTHER:
    print_other(p, e);
    break;
  }
  if (parenthesize)
    hd_buffer_puts(p->out, ")");
}
