// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Terms of tasks, with as few parentheses and types as the parser needs.
#include "IR/Text/TaskPrinter.h"

#include "IR/Text/Printer.h"

#include <math.h>

// Tighter than every infix operator, and looser than every access.
enum { UNARY = 15, TIGHT = 20 };

// Whether the parser reads a number without a type, but for its surroundings.
static bool is_number(const hd_term_t *term) {
  if (term->kind == HD_TERM_CONST)
    return term->type.var || term->type.scalar != HD_BOOL;
  if (term->kind != HD_TERM_OPERATOR ||
      hd_expr_info(term->u.op)->form == HD_FORM_COMPARE)
    return false;
  for (unsigned i = 0; i < term->num_operands; i++)
    if (!is_number(term->operands[i]))
      return false;
  return true;
}

// The type that a number gets where nothing asks for another.
static bool is_default(hd_task_type_t type) {
  return !type.var && (type.scalar == HD_I64 || type.scalar == HD_F32);
}

static void print_const(hd_buffer_t *out, const hd_term_t *term, bool asked) {
  hd_task_type_t type = term->type;
  if (!type.var && type.scalar == HD_BOOL) {
    hd_buffer_puts(out, term->u.i ? "true" : "false");
    return;
  }
  bool bare = asked || is_default(type);
  if (!bare)
    hd_buffer_printf(out, "%s(", hd_task_type_name(type));
  if (hd_task_type_is_float(type))
    hd_float_print(type.var ? HD_F64 : type.scalar, term->u.f, out);
  else
    hd_buffer_printf(out, "%lld", (long long)term->u.i);
  if (!bare)
    hd_buffer_puts(out, ")");
}

void hd_print_task_axis(hd_buffer_t *out, const hd_term_t *term, bool asked) {
  if (term->pack)
    hd_buffer_puts(out, "..");
  hd_print_term(out, term, term->pack ? UNARY : 0, asked);
}

void hd_print_task_axes(hd_buffer_t *out, const hd_term_t *const *terms,
                        unsigned count, bool asked) {
  for (unsigned i = 0; i < count; i++) {
    hd_buffer_puts(out, i ? ", " : "");
    hd_print_task_axis(out, terms[i], asked);
  }
}

static void print_index(hd_buffer_t *out, const hd_index_t *index) {
  hd_buffer_printf(out, "%s%s", index->range->pack ? ".." : "", index->name);
  if (index->written) {
    hd_buffer_puts(out, ": ");
    hd_print_term(out, index->range, 0, false);
  }
}

void hd_print_task_indices(hd_buffer_t *out, const hd_index_t *const *indices,
                           unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    hd_buffer_puts(out, i ? ", " : "");
    print_index(out, indices[i]);
  }
}

static void print_reduction(hd_buffer_t *out, const hd_term_t *term) {
  const hd_reduction_t *reduction = term->u.reduction;
  bool is_scan = term->kind == HD_TERM_SCAN;
  hd_buffer_printf(out, "%s%s(", is_scan ? "scan " : "",
                   reduction->monoid->name);
  hd_print_task_indices(out, reduction->indices, reduction->num_indices);
  if (is_scan) {
    hd_buffer_printf(out, " %s ", hd_scan_part_name(reduction->part));
    hd_print_term(out, reduction->at, 0, false);
  }
  hd_buffer_puts(out, ") ");
  if (reduction->monoid->size > 1) {
    hd_buffer_puts(out, "(");
    hd_print_task_axes(out, term->operands, term->num_operands, true);
    hd_buffer_puts(out, ")");
  } else {
    hd_print_term(out, term->operands[0], hd_expr_info(HD_EXPR_MUL)->precedence,
                  reduction->monoid->size > 0);
  }
}

static void print_operator(hd_buffer_t *out, const hd_term_t *term,
                           bool asked) {
  const hd_expr_info_t *info = hd_expr_info(term->u.op);
  const hd_term_t *const *operands = term->operands;
  bool compares = info->form == HD_FORM_COMPARE;
  if (info->form == HD_FORM_UNARY) {
    hd_buffer_puts(out, info->spelling);
    hd_print_term(out, operands[0], UNARY, asked);
    return;
  }
  // A neighbour with a type of its own gives it to a number.
  bool left = (asked && !compares) || !is_number(operands[1]);
  bool right = (asked && !compares) || !is_number(operands[0]);
  if (info->form == HD_FORM_CALL) {
    hd_buffer_printf(out, "%s(", info->spelling);
    hd_print_term(out, operands[0], 0, left);
    hd_buffer_puts(out, ", ");
    hd_print_term(out, operands[1], 0, right);
    hd_buffer_puts(out, ")");
    return;
  }
  hd_print_term(out, operands[0], info->precedence, left);
  hd_buffer_printf(out, " %s ", info->spelling);
  hd_print_term(out, operands[1], info->precedence + 1, right);
}

// A number among them gets the type of one that is none.
static void print_args(hd_buffer_t *out, const hd_term_t *term) {
  bool typed = false;
  for (unsigned i = 0; i < term->num_operands; i++)
    typed |= !is_number(term->operands[i]);
  hd_buffer_printf(out, "%s(", hd_task_function_info(term->u.function)->name);
  for (unsigned i = 0; i < term->num_operands; i++) {
    hd_buffer_puts(out, i ? ", " : "");
    hd_print_term(out, term->operands[i], 0,
                  typed && !is_number(term->operands[0]));
  }
  hd_buffer_puts(out, ")");
}

static void print_broadcast(hd_buffer_t *out, const hd_pack_t *pack) {
  if (pack->name) {
    hd_buffer_printf(out, "..%s", pack->name);
    return;
  }
  hd_buffer_puts(out, "..broadcast(");
  for (uint32_t i = 0; i < pack->num_parts; i++) {
    hd_buffer_puts(out, i ? ", " : "");
    print_broadcast(out, pack->parts[i]);
  }
  hd_buffer_puts(out, ")");
}

static int precedence_of(const hd_term_t *term) {
  bool negative = term->kind == HD_TERM_CONST &&
                  (hd_task_type_is_float(term->type) ? signbit(term->u.f) != 0
                                                     : term->u.i < 0);
  switch ((hd_term_kind_t)term->kind) {
  case HD_TERM_CONST:
    return negative ? UNARY : TIGHT;
  case HD_TERM_OPERATOR:
    return hd_expr_info(term->u.op)->precedence;
  case HD_TERM_SELECT:
    return hd_expr_info(HD_EXPR_SELECT)->precedence;
  case HD_TERM_REDUCE:
  case HD_TERM_SCAN: // Its body takes what follows as far as products go.
    return hd_expr_info(HD_EXPR_ADD)->precedence;
  case HD_TERM_LOADELSE:
    return UNARY;
  case HD_TERM_LIMIT:
  case HD_TERM_SIZE:
  case HD_TERM_PACK:
  case HD_TERM_BROADCAST:
  case HD_TERM_PERMUTE:
  case HD_TERM_INDEX:
  case HD_TERM_ATTRIBUTE:
  case HD_TERM_BOUND:
  case HD_TERM_CAST:
  case HD_TERM_BITCAST:
  case HD_TERM_FUNCTION:
  case HD_TERM_LOAD:
  case HD_TERM_COUNT:
    break;
  }
  return TIGHT;
}

static void print_bare(hd_buffer_t *out, const hd_term_t *term, bool asked) {
  const hd_term_t *const *operands = term->operands;
  unsigned count = term->num_operands;
  switch ((hd_term_kind_t)term->kind) {
  case HD_TERM_CONST:
    print_const(out, term, asked);
    break;
  case HD_TERM_LIMIT:
    hd_buffer_printf(out, "%s(%s)", hd_limit_name(term->u.limit),
                     hd_task_type_name(term->type));
    break;
  case HD_TERM_SIZE:
    hd_buffer_puts(out, term->u.size->name);
    break;
  case HD_TERM_PACK:
    hd_buffer_puts(out, term->u.pack->name);
    break;
  case HD_TERM_BROADCAST: {
    hd_buffer_puts(out, "broadcast(");
    for (uint32_t i = 0; i < term->u.pack->num_parts; i++) {
      hd_buffer_puts(out, i ? ", " : "");
      print_broadcast(out, term->u.pack->parts[i]);
    }
    hd_buffer_puts(out, ")");
    break;
  }
  case HD_TERM_PERMUTE:
    hd_buffer_puts(out, "permute(");
    hd_print_task_axes(out, operands, count, false);
    hd_buffer_puts(out, ")");
    break;
  case HD_TERM_INDEX:
    hd_buffer_puts(out, term->u.index->name);
    break;
  case HD_TERM_ATTRIBUTE:
    hd_buffer_puts(out, term->u.value->name);
    break;
  case HD_TERM_BOUND:
    hd_buffer_puts(out, term->u.variable->name);
    break;
  case HD_TERM_OPERATOR:
    print_operator(out, term, asked);
    break;
  case HD_TERM_SELECT: {
    bool then_number = is_number(operands[1]);
    hd_print_term(out, operands[0], 5, true);
    hd_buffer_puts(out, " ? ");
    hd_print_term(out, operands[1], 0, !is_number(operands[2]));
    hd_buffer_puts(out, " : ");
    hd_print_term(out, operands[2], 0, !then_number);
    break;
  }
  case HD_TERM_CAST: // A number would take the type and not be converted.
    hd_buffer_printf(out, "%s(", hd_task_type_name(term->type));
    if (is_number(operands[0]))
      hd_buffer_printf(out, "%s(", hd_task_type_name(operands[0]->type));
    hd_print_term(out, operands[0], 0, is_number(operands[0]));
    hd_buffer_puts(out, is_number(operands[0]) ? "))" : ")");
    break;
  case HD_TERM_BITCAST:
    hd_buffer_printf(out, "bitcast(%s, ", hd_task_type_name(term->type));
    hd_print_term(out, operands[0], 0, false);
    hd_buffer_puts(out, ")");
    break;
  case HD_TERM_FUNCTION:
    print_args(out, term);
    break;
  case HD_TERM_LOAD:
  case HD_TERM_LOADELSE:
    count -= term->kind == HD_TERM_LOADELSE;
    hd_buffer_printf(out, "%s[", term->u.value->name);
    hd_print_task_axes(out, operands, count, false);
    hd_buffer_puts(out, "]");
    if (term->kind == HD_TERM_LOADELSE) {
      hd_buffer_puts(out, " else ");
      hd_print_term(out, operands[count], UNARY, true);
    }
    break;
  case HD_TERM_REDUCE:
  case HD_TERM_SCAN:
    print_reduction(out, term);
    break;
  case HD_TERM_COUNT:
    break;
  }
}

// least: the loosest precedence that needs no parentheses. asked: where the
// term stands decides the type of numbers.
void hd_print_term(hd_buffer_t *out, const hd_term_t *term, int least,
                   bool asked) {
  bool parenthesize = precedence_of(term) < least;
  hd_buffer_puts(out, parenthesize ? "(" : "");
  print_bare(out, term, asked);
  hd_buffer_puts(out, parenthesize ? ")" : "");
}
