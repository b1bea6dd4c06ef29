// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Text/TaskPrinter.h"

#include "IR/Text/Printer.h"

#include <math.h>

// Tighter than every infix operator, and looser than every access.
enum { UNARY = 15, TIGHT = 20 };

static void print_term(hd_buffer_t *out, const hd_term_t *term, int least,
                       bool asked);

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

static bool is_float(hd_task_type_t type) {
  return !(hd_task_type_scalars(type) & ~hd_scalar_set("float"));
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
  if (is_float(type))
    hd_float_print(type.var ? HD_F64 : type.scalar, term->u.f, out);
  else
    hd_buffer_printf(out, "%lld", (long long)term->u.i);
  if (!bare)
    hd_buffer_puts(out, ")");
}

static void print_axis(hd_buffer_t *out, const hd_term_t *term, bool asked) {
  if (term->pack)
    hd_buffer_puts(out, "..");
  print_term(out, term, term->pack ? UNARY : 0, asked);
}

static void print_axes(hd_buffer_t *out, const hd_term_t *const *terms,
                       unsigned count, bool asked) {
  for (unsigned i = 0; i < count; i++) {
    hd_buffer_puts(out, i ? ", " : "");
    print_axis(out, terms[i], asked);
  }
}

static void print_index(hd_buffer_t *out, const hd_index_t *index) {
  hd_buffer_printf(out, "%s%s", index->range->pack ? ".." : "", index->name);
  if (index->written) {
    hd_buffer_puts(out, ": ");
    print_term(out, index->range, 0, false);
  }
}

static void print_indices(hd_buffer_t *out, const hd_index_t *const *indices,
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
  print_indices(out, reduction->indices, reduction->num_indices);
  if (is_scan) {
    hd_buffer_printf(out, " %s ", hd_scan_part_name(reduction->part));
    print_term(out, reduction->at, 0, false);
  }
  hd_buffer_puts(out, ") ");
  if (reduction->monoid->size > 1) {
    hd_buffer_puts(out, "(");
    print_axes(out, term->operands, term->num_operands, true);
    hd_buffer_puts(out, ")");
  } else {
    print_term(out, term->operands[0], hd_expr_info(HD_EXPR_MUL)->precedence,
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
    print_term(out, operands[0], UNARY, asked);
    return;
  }
  // A neighbour with a type of its own gives it to a number.
  bool left = (asked && !compares) || !is_number(operands[1]);
  bool right = (asked && !compares) || !is_number(operands[0]);
  if (info->form == HD_FORM_CALL) {
    hd_buffer_printf(out, "%s(", info->spelling);
    print_term(out, operands[0], 0, left);
    hd_buffer_puts(out, ", ");
    print_term(out, operands[1], 0, right);
    hd_buffer_puts(out, ")");
    return;
  }
  print_term(out, operands[0], info->precedence, left);
  hd_buffer_printf(out, " %s ", info->spelling);
  print_term(out, operands[1], info->precedence + 1, right);
}

// A number among them gets the type of one that is none.
static void print_args(hd_buffer_t *out, const hd_term_t *term) {
  bool typed = false;
  for (unsigned i = 0; i < term->num_operands; i++)
    typed |= !is_number(term->operands[i]);
  hd_buffer_printf(out, "%s(", hd_task_function_info(term->u.function)->name);
  for (unsigned i = 0; i < term->num_operands; i++) {
    hd_buffer_puts(out, i ? ", " : "");
    print_term(out, term->operands[i], 0,
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
  bool negative =
      term->kind == HD_TERM_CONST &&
      (is_float(term->type) ? signbit(term->u.f) != 0 : term->u.i < 0);
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
    print_axes(out, operands, count, false);
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
    print_term(out, operands[0], 5, true);
    hd_buffer_puts(out, " ? ");
    print_term(out, operands[1], 0, !is_number(operands[2]));
    hd_buffer_puts(out, " : ");
    print_term(out, operands[2], 0, !then_number);
    break;
  }
  case HD_TERM_CAST: // A number would take the type and not be converted.
    hd_buffer_printf(out, "%s(", hd_task_type_name(term->type));
    if (is_number(operands[0]))
      hd_buffer_printf(out, "%s(", hd_task_type_name(operands[0]->type));
    print_term(out, operands[0], 0, is_number(operands[0]));
    hd_buffer_puts(out, is_number(operands[0]) ? "))" : ")");
    break;
  case HD_TERM_BITCAST:
    hd_buffer_printf(out, "bitcast(%s, ", hd_task_type_name(term->type));
    print_term(out, operands[0], 0, false);
    hd_buffer_puts(out, ")");
    break;
  case HD_TERM_FUNCTION:
    print_args(out, term);
    break;
  case HD_TERM_LOAD:
  case HD_TERM_LOADELSE:
    count -= term->kind == HD_TERM_LOADELSE;
    hd_buffer_printf(out, "%s[", term->u.value->name);
    print_axes(out, operands, count, false);
    hd_buffer_puts(out, "]");
    if (term->kind == HD_TERM_LOADELSE) {
      hd_buffer_puts(out, " else ");
      print_term(out, operands[count], UNARY, true);
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
static void print_term(hd_buffer_t *out, const hd_term_t *term, int least,
                       bool asked) {
  bool parenthesize = precedence_of(term) < least;
  hd_buffer_puts(out, parenthesize ? "(" : "");
  print_bare(out, term, asked);
  hd_buffer_puts(out, parenthesize ? ")" : "");
}

// Whether the pack of an input's axis is bound there.
static bool binds(const hd_task_t *task, const hd_task_value_t *value,
                  uint32_t axis) {
  const hd_pack_t *pack = value->shape[axis]->u.pack;
  for (size_t i = 0; i < task->inputs.size; i++)
    for (uint32_t n = 0; n < task->inputs.data[i]->rank; n++) {
      const hd_term_t *term = task->inputs.data[i]->shape[n];
      if (term->kind == HD_TERM_PACK && term->u.pack == pack)
        return task->inputs.data[i] == value && n == axis;
    }
  return false;
}

static void print_shape(hd_buffer_t *out, const hd_task_t *task,
                        const hd_task_value_t *value) {
  hd_buffer_puts(out, "[");
  for (uint32_t i = 0; i < value->rank; i++) {
    const hd_term_t *axis = value->shape[i];
    hd_buffer_puts(out, i ? ", " : "");
    print_axis(out, axis, true);
    if (axis->kind == HD_TERM_PACK && axis->u.pack->like &&
        binds(task, value, i))
      hd_buffer_printf(out, " like %s", axis->u.pack->like->name);
    if (axis->kind == HD_TERM_SIZE && axis->u.size->bound) {
      hd_buffer_puts(out, " <= ");
      print_term(out, axis->u.size->bound, 0, false);
    }
  }
  hd_buffer_puts(out, "]");
}

void hd_print_task_axes(hd_buffer_t *out, const hd_term_t *const *terms,
                        unsigned count) {
  print_axes(out, terms, count, false);
}

void hd_print_task_type(hd_buffer_t *out, const hd_task_t *task,
                        const hd_task_value_t *value) {
  hd_buffer_puts(out, hd_task_type_name(value->type));
  if (value->kind != HD_VALUE_ATTRIBUTE) {
    print_shape(out, task, value);
    if (value->by)
      hd_buffer_printf(out, " by %s", value->by->name);
    return;
  }
  if (value->pack)
    hd_buffer_printf(out, " over %s", value->pack->name);
  if (value->initial) {
    hd_buffer_puts(out, " = ");
    print_term(out, value->initial, 0, true);
  }
}

static void print_value(hd_buffer_t *out, const hd_task_t *task,
                        const hd_task_value_t *value) {
  hd_buffer_printf(out, "%s: ", value->name);
  hd_print_task_type(out, task, value);
}

static void print_type_var(hd_buffer_t *out, const hd_type_var_t *var) {
  static const char *const sets[] = {"any", "number", "float", "integer"};
  hd_buffer_puts(out, var->name);
  if (var->accumulates) {
    hd_buffer_printf(out, " = acc(%s)", var->accumulates->name);
    return;
  }
  if (var->either[0]) {
    hd_buffer_printf(out, " = %s or %s", var->either[0]->name,
                     var->either[1]->name);
    return;
  }
  for (int i = 0; i < 4; i++)
    if (var->scalars == hd_scalar_set(sets[i])) {
      hd_buffer_printf(out, " in %s", sets[i]);
      return;
    }
  const char *before = " in {";
  for (int i = 0; i < HD_SCALAR_COUNT; i++)
    if (var->scalars >> i & 1) {
      hd_buffer_printf(out, "%s%s", before, hd_scalar_name((hd_scalar_t)i));
      before = ", ";
    }
  hd_buffer_puts(out, "}");
}

bool hd_print_task_where(hd_buffer_t *out, const hd_task_t *task,
                         const char *before) {
  const char *first = before;
  for (size_t i = 0; i < task->types.size; i++) {
    if (!task->types.data[i]->restricted)
      continue;
    hd_buffer_puts(out, before);
    print_type_var(out, task->types.data[i]);
    before = ", ";
  }
  for (size_t i = 0; i < task->conditions.size; i++) {
    hd_buffer_puts(out, before);
    print_term(out, task->conditions.data[i], 0, true);
    before = ", ";
  }
  return before != first;
}

static void print_monoid(hd_buffer_t *out, const hd_monoid_t *monoid) {
  hd_buffer_printf(out, "  monoid %s(", monoid->name);
  for (uint32_t i = 0; i < monoid->size; i++)
    hd_buffer_printf(out, "%s%s: %s", i ? ", " : "", monoid->left[i]->name,
                     hd_task_type_name(monoid->left[i]->type));
  hd_buffer_puts(out, ")(");
  for (uint32_t i = 0; i < monoid->size; i++)
    hd_buffer_printf(out, "%s%s", i ? ", " : "", monoid->right[i]->name);
  hd_buffer_puts(out, ") from (");
  print_axes(out, monoid->identity, monoid->size, true);
  hd_buffer_puts(out, ") = (");
  print_axes(out, monoid->result, monoid->size, true);
  hd_buffer_puts(out, ")\n");
}

static void print_scatter(hd_buffer_t *out, const hd_definition_t *d) {
  const char *how = d->duplicates == HD_DUPLICATES_FIRST  ? "first"
                    : d->duplicates == HD_DUPLICATES_LAST ? "last"
                                                          : d->monoid->name;
  hd_buffer_printf(out, "scatter %s(", how);
  print_indices(out, d->indices, d->num_indices);
  hd_buffer_printf(out, ") %s[", d->targets[0]->name);
  print_axes(out, d->at, d->targets[0]->rank, true);
  hd_buffer_puts(out, d->drops ? "] else drop = " : "] = ");
  print_term(out, d->term, 0, true);
  if (d->onto)
    hd_buffer_printf(out, " onto %s", d->onto->name);
}

static void print_definition(hd_buffer_t *out, const hd_definition_t *d) {
  bool asked = d->num_targets == 1 && d->targets[0]->kind == HD_VALUE_OUTPUT;
  hd_buffer_puts(out, "  ");
  switch (d->kind) {
  case HD_DEFINE:
    for (uint32_t i = 0; i < d->num_targets; i++) {
      hd_buffer_printf(out, "%s%s[", i ? ", " : "", d->targets[i]->name);
      for (uint32_t n = 0; n < d->num_indices && i; n++)
        hd_buffer_printf(out, "%s%s%s", n ? ", " : "",
                         d->indices[n]->range->pack ? ".." : "",
                         d->indices[n]->name);
      if (!i)
        print_indices(out, d->indices, d->num_indices);
      hd_buffer_puts(out, "]");
    }
    hd_buffer_puts(out, " = ");
    print_term(out, d->term, 0, asked);
    break;
  case HD_SCATTER:
    print_scatter(out, d);
    break;
  case HD_DEFINE_SIZE:
    hd_buffer_printf(out, "size %s = ", d->size->name);
    print_term(out, d->term, 0, true);
    break;
  }
  hd_buffer_puts(out, "\n");
}

void hd_task_print(const hd_task_t *task, hd_buffer_t *out) {
  if (task->text) {
    hd_buffer_printf(out, "%s\n", task->text->text);
    return;
  }
  hd_buffer_printf(out, "task %s(", task->name);
  for (size_t i = 0; i < task->inputs.size; i++) {
    hd_buffer_puts(out, i ? ", " : "");
    print_value(out, task, task->inputs.data[i]);
  }
  hd_buffer_puts(out, ") -> ");
  for (size_t i = 0; i < task->outputs.size; i++) {
    hd_buffer_puts(out, i ? ", " : "");
    print_value(out, task, task->outputs.data[i]);
  }
  hd_print_task_where(out, task, " where ");
  hd_buffer_puts(out, " {\n");
  for (size_t i = 0; i < task->monoids.size; i++)
    print_monoid(out, task->monoids.data[i]);
  for (size_t i = 0; i < task->definitions.size; i++)
    print_definition(out, task->definitions.data[i]);
  hd_buffer_puts(out, "}\n");
}
