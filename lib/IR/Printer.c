// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Printer.h"

#include "IR/Intrinsic.h"
#include "IR/ParserState.h"
#include "IR/Task.h"
#include "Support/Float.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct hd_printer {
  hd_buffer_t *out;
  hd_arena_t arena; // For names.
  hd_visible_t visible;
  const hd_module_t *module; // Its constants' names are taken; may be NULL.
  int indent;
} hd_printer_t;

static void print_expr(hd_printer_t *p, const hd_expr_t *e, int least);
static void print_block(hd_printer_t *p, hd_block_t block);
static void print_mapping(hd_printer_t *p, const hd_mapping_t *mapping);

static bool is_taken(const hd_printer_t *p, const char *name) {
  size_t cursor = 0;
  const hd_item_t *item =
      p->module ? hd_module_next(p->module, name, &cursor) : NULL;
  return hd_is_reserved(name) || hd_visible_find(&p->visible, name) ||
         (item && item->kind == HD_ITEM_CONST);
}

// Names are unique among the visible ones: a variable that passes have left
// with a taken name is printed with a number behind it.
static const char *pick_name(hd_printer_t *p, const hd_var_t *var) {
  const char *name = var->name;
  for (unsigned i = 1; is_taken(p, name); i++) {
    if (hd_visible_find(&p->visible, var->name))
      i = hd_visible_count(&p->visible, var->name);
    name = hd_arena_printf(&p->arena, "%s_%u", var->name, i);
  }
  return name;
}

static const char *declare(hd_printer_t *p, const hd_var_t *var) {
  const char *name = pick_name(p, var);
  hd_visible_push(&p->visible, var, name);
  return name;
}

static const char *name_of(const hd_printer_t *p, const hd_var_t *var) {
  const char *name = hd_visible_name(&p->visible, var);
  return name ? name : var->name; // A part is printed, or the IR is wrong.
}

void hd_float_print(hd_scalar_t scalar, double value, hd_buffer_t *out) {
  if (isnan(value)) {
    hd_buffer_puts(out, "nan");
    return;
  }
  if (isinf(value)) {
    hd_buffer_puts(out, value < 0 ? "-inf" : "inf");
    return;
  }
  // The shortest decimal that reads back.
  char text[40];
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    double back;
    if (sscanf(text, "%lf", &back) == 1 &&
        hd_float_round(scalar, back) == value)
      break;
  }
  hd_buffer_puts(out, text);
  if (!strpbrk(text, ".e"))
    hd_buffer_puts(out, ".0");
}

// An i32 or f32 constant is printed as a bare number.
static bool is_bare(const hd_expr_t *e) {
  return e->kind == HD_EXPR_CONST && e->type.lanes == 1 &&
         (e->type.scalar == HD_I32 || e->type.scalar == HD_F32);
}

// Whether the parser will read e as a number without a type: arithmetic on bare
// numbers.
static bool is_untyped(const hd_expr_t *e) {
  if (e->kind == HD_EXPR_CONST)
    return is_bare(e);
  switch (hd_expr_info((hd_expr_kind_t)e->kind)->form) {
  case HD_FORM_UNARY:
  case HD_FORM_BINARY:
  case HD_FORM_CALL:
    for (unsigned i = 0; i < e->num_operands; i++)
      if (!is_untyped(e->operands[i]))
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
  bool plain = is_bare(e);
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

static void print_list(hd_printer_t *p, const hd_expr_t *const *exprs,
                       unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    if (i)
      hd_buffer_puts(p->out, ", ");
    print_expr(p, exprs[i], 0);
  }
}

static void print_place(hd_printer_t *p, const hd_var_t *var, bool linear,
                        const hd_expr_t *const *indices, unsigned count,
                        unsigned lanes) {
  hd_buffer_puts(p->out, name_of(p, var));
  if (count == 0)
    return;
  hd_buffer_puts(p->out, linear ? "@[" : "[");
  print_list(p, indices, count);
  if (lanes > 1)
    hd_buffer_printf(p->out, " +: %u", lanes);
  hd_buffer_puts(p->out, "]");
}

static void print_intrinsic(hd_printer_t *p, const hd_expr_t *e) {
  const hd_intrinsic_info_t *info =
      hd_intrinsic_info((hd_intrinsic_t)e->u.intrinsic);
  hd_buffer_printf(p->out, "%s(", info->name);
  for (unsigned i = 0; i < e->num_operands; i++) {
    hd_param_form_t form = info->params[i].form;
    if (i)
      hd_buffer_puts(p->out, ", ");
    if (form >= HD_PARAM_ORDER)
      hd_buffer_puts(p->out,
                     hd_intrinsic_name_text(form, (int)e->operands[i]->u.i));
    else
      print_expr(p, e->operands[i], 0);
  }
  hd_buffer_puts(p->out, ")");
}

static void print_call(hd_printer_t *p, const char *name, const hd_expr_t *e) {
  hd_buffer_printf(p->out, "%s(", name);
  print_list(p, e->operands, e->num_operands);
  hd_buffer_puts(p->out, ")");
}

static void print_other(hd_printer_t *p, const hd_expr_t *e) {
  switch ((hd_expr_kind_t)e->kind) {
  case HD_EXPR_SELECT:
    print_expr(p, e->operands[0], 5);
    hd_buffer_puts(p->out, " ? ");
    print_expr(p, e->operands[1], 4);
    hd_buffer_puts(p->out, " : ");
    print_expr(p, e->operands[2], 4);
    break;
  case HD_EXPR_CAST:
    // A bare number would take the type instead of being converted.
    if (is_untyped(e->operands[0])) {
      hd_buffer_printf(p->out, "%s(%s(", hd_type_name(e->type),
                       hd_type_name(e->operands[0]->type));
      print_expr(p, e->operands[0], 0);
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
    print_expr(p, e->operands[0], 0);
    hd_buffer_puts(p->out, ")");
    break;
  case HD_EXPR_LANE:
    print_expr(p, e->operands[0], 20);
    hd_buffer_printf(p->out, "[%lld]", (long long)e->u.i);
    break;
  case HD_EXPR_LOAD:
  case HD_EXPR_REF:
    print_place(p, e->u.var, e->linear, e->operands, e->num_operands,
                e->type.lanes);
    break;
  case HD_EXPR_LOADELSE:
    print_place(p, e->u.var, false, e->operands, e->num_operands - 1,
                e->type.lanes);
    hd_buffer_puts(p->out, " else ");
    print_expr(p, e->operands[e->num_operands - 1], 15);
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
static int precedence_of(const hd_expr_t *e) {
  if (e->kind == HD_EXPR_LOADELSE)
    return 15;
  if (is_bare(e) &&
      (e->type.scalar == HD_I32 ? e->u.i < 0
                                : signbit(e->u.f) && !isnan(e->u.f)))
    return 15;
  return hd_expr_info((hd_expr_kind_t)e->kind)->precedence;
}

// The parser takes "-1" for a number, so the negation of one is printed as the
// number that it is. Returns e where it is none, and else fills in storage.
static const hd_expr_t *as_number(const hd_expr_t *e, hd_expr_t *storage) {
  bool negative = false;
  const hd_expr_t *number = e;
  for (; number->kind == HD_EXPR_NEG; number = number->operands[0])
    negative = !negative;
  if (number == e || !is_bare(number))
    return e;
  *storage =
      (hd_expr_t){.kind = HD_EXPR_CONST, .type = number->type, .u = number->u};
  if (negative && number->type.scalar == HD_I32)
    storage->u.i = (int32_t)(0 - (uint32_t)number->u.i);
  else if (negative)
    storage->u.f = -number->u.f;
  return storage;
}

// least: the loosest precedence that needs no parentheses here.
static void print_expr(hd_printer_t *p, const hd_expr_t *e, int least) {
  hd_expr_t storage;
  e = as_number(e, &storage);
  const hd_expr_info_t *info = hd_expr_info((hd_expr_kind_t)e->kind);
  bool parenthesize = precedence_of(e) < least;
  if (parenthesize)
    hd_buffer_puts(p->out, "(");
  switch (info->form) {
  case HD_FORM_LEAF:
    if (e->kind == HD_EXPR_CONST)
      print_const(p, e);
    else if (e->kind == HD_EXPR_BUILTIN)
      hd_buffer_puts(p->out, hd_builtin_info(e->u.builtin)->text);
    else
      hd_buffer_puts(p->out, name_of(p, e->u.var));
    break;
  case HD_FORM_UNARY:
    hd_buffer_puts(p->out, info->spelling);
    print_expr(p, e->operands[0], info->precedence);
    break;
  case HD_FORM_BINARY:
  case HD_FORM_COMPARE:
    print_expr(p, e->operands[0], info->precedence);
    hd_buffer_printf(p->out, " %s ", info->spelling);
    print_expr(p, e->operands[1], info->precedence + 1);
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

static void print_ints(hd_printer_t *p, const int64_t *values, unsigned count) {
  for (unsigned i = 0; i < count; i++)
    hd_buffer_printf(p->out, "%s%lld", i ? ", " : "", (long long)values[i]);
}

static void print_custom(hd_printer_t *p, const hd_mapping_t *mapping) {
  size_t outer = hd_visible_size(&p->visible);
  hd_buffer_printf(p->out, "%lld, [", (long long)mapping->workers);
  print_ints(p, mapping->dims, mapping->rank);
  hd_buffer_printf(p->out, "], (%s", declare(p, mapping->worker));
  if (mapping->repeat)
    hd_buffer_printf(p->out, ", %s: %lld", declare(p, mapping->repeat),
                     (long long)mapping->count);
  hd_buffer_puts(p->out, ") -> [");
  print_list(p, mapping->exprs, mapping->rank);
  hd_buffer_puts(p->out, "]");
  hd_visible_pop(&p->visible, outer);
}

static void print_mapping(hd_printer_t *p, const hd_mapping_t *mapping) {
  if (mapping->kind == HD_MAPPING_COMPOSE) {
    bool nested = mapping->right->kind == HD_MAPPING_COMPOSE;
    print_mapping(p, mapping->left);
    hd_buffer_puts(p->out, nested ? " * (" : " * ");
    print_mapping(p, mapping->right);
    hd_buffer_puts(p->out, nested ? ")" : "");
    return;
  }
  hd_buffer_printf(p->out, "%s(", hd_mapping_kind_name(mapping->kind));
  switch (mapping->kind) {
  case HD_MAPPING_SPATIAL:
  case HD_MAPPING_REPEAT:
    print_ints(p, mapping->dims, mapping->rank);
    if (mapping->order) {
      hd_buffer_puts(p->out, ", order = [");
      for (unsigned i = 0; i < mapping->rank; i++)
        hd_buffer_printf(p->out, "%s%u", i ? ", " : "", mapping->order[i]);
      hd_buffer_puts(p->out, "]");
    }
    break;
  case HD_MAPPING_AUTO:
    print_ints(p, mapping->dims, mapping->rank);
    hd_buffer_printf(p->out, ", workers = %lld", (long long)mapping->workers);
    break;
  case HD_MAPPING_CUSTOM:
    print_custom(p, mapping);
    break;
  case HD_MAPPING_WITHIN:
    print_mapping(p, mapping->left);
    hd_buffer_puts(p->out, ", ");
    print_list(p, mapping->bounds, mapping->rank);
    break;
  case HD_MAPPING_IDLE:
    print_mapping(p, mapping->left);
    hd_buffer_printf(p->out, ", %lld", (long long)mapping->workers);
    break;
  case HD_MAPPING_COMPOSE:
    break;
  }
  hd_buffer_puts(p->out, ")");
}

static void print_layout(hd_printer_t *p, const hd_layout_t *layout) {
  hd_buffer_puts(p->out, "layout(");
  for (uint32_t i = 0; i < layout->num_items; i++) {
    const hd_layout_item_t *item = &layout->items[i];
    hd_buffer_printf(p->out, "%s%s", i ? ", " : "",
                     hd_layout_kind_name(item->kind));
    if (item->kind == HD_LAYOUT_ROW || item->kind == HD_LAYOUT_COLUMN)
      continue;
    hd_buffer_puts(p->out, "(");
    if (item->mapping)
      print_mapping(p, item->mapping);
    print_list(p, item->values, item->num_values);
    hd_buffer_puts(p->out, ")");
  }
  hd_buffer_puts(p->out, ")");
}

static void print_tensor(hd_printer_t *p, const hd_tensor_t *tensor) {
  hd_buffer_puts(p->out, hd_type_name(tensor->element));
  if (tensor->rank) {
    hd_buffer_puts(p->out, "[");
    print_list(p, tensor->shape, tensor->rank);
    hd_buffer_puts(p->out, "]");
  }
  if (tensor->layout) {
    hd_buffer_puts(p->out, " ");
    print_layout(p, tensor->layout);
  }
  if (tensor->align)
    hd_buffer_printf(p->out, " align(%u)", tensor->align);
}

static void print_string(hd_printer_t *p, const char *text) {
  hd_buffer_puts(p->out, "\"");
  for (; *text; text++) {
    const char *escape = *text == '\n'   ? "\\n"
                         : *text == '\t' ? "\\t"
                         : *text == '"'  ? "\\\""
                         : *text == '\\' ? "\\\\"
                                         : NULL;
    if (escape)
      hd_buffer_puts(p->out, escape);
    else
      hd_buffer_write(p->out, text, 1);
  }
  hd_buffer_puts(p->out, "\"");
}

static void print_unroll(hd_printer_t *p, int32_t unroll) {
  if (unroll == HD_UNROLL_FULL)
    hd_buffer_puts(p->out, " unroll");
  else if (unroll > 0)
    hd_buffer_printf(p->out, " unroll(%d)", unroll);
}

static void print_store(hd_printer_t *p, const hd_stmt_t *stmt) {
  print_place(p, stmt->u.store.var, stmt->u.store.linear, stmt->u.store.indices,
              stmt->u.store.num_indices, stmt->u.store.value->type.lanes);
  hd_buffer_puts(p->out, " = ");
  print_expr(p, stmt->u.store.value, 0);
}

static void print_declare(hd_printer_t *p, const hd_stmt_t *stmt) {
  const hd_var_t *var = stmt->u.declare.var;
  hd_scope_t scope = var->tensor->scope;
  hd_buffer_puts(p->out,
                 scope == HD_SCOPE_GLOBAL ? "workspace" : hd_scope_name(scope));
  // The name is visible after its type.
  const char *name = pick_name(p, var);
  hd_buffer_printf(p->out, " %s: ", name);
  print_tensor(p, var->tensor);
  if (stmt->u.declare.init) {
    hd_buffer_puts(p->out, " = ");
    print_expr(p, stmt->u.declare.init, 0);
  }
  hd_visible_push(&p->visible, var, name);
}

static void print_for(hd_printer_t *p, const hd_stmt_t *stmt) {
  size_t outer = hd_visible_size(&p->visible);
  const char *name = pick_name(p, stmt->u.loop.var);
  hd_buffer_printf(p->out, "for %s in ", name);
  print_expr(p, stmt->u.loop.first, 5);
  hd_buffer_puts(p->out, "..");
  print_expr(p, stmt->u.loop.limit, 5);
  if (stmt->u.loop.step) {
    hd_buffer_puts(p->out, " step ");
    print_expr(p, stmt->u.loop.step, 5);
  }
  print_unroll(p, stmt->u.loop.unroll);
  hd_visible_push(&p->visible, stmt->u.loop.var, name);
  print_block(p, stmt->u.loop.body);
  hd_visible_pop(&p->visible, outer);
}

static void print_mapfor(hd_printer_t *p, const hd_stmt_t *stmt) {
  unsigned rank = stmt->u.mapfor.mapping->rank;
  size_t outer = hd_visible_size(&p->visible);
  const char **names = HD_ARENA_ARRAY(&p->arena, const char *, rank);
  hd_buffer_puts(p->out, "for ");
  for (unsigned i = 0; i < rank; i++) {
    names[i] = declare(p, stmt->u.mapfor.vars[i]);
    hd_buffer_printf(p->out, "%s%s", i ? ", " : "", names[i]);
  }
  hd_visible_pop(&p->visible, outer); // The mapping does not see them.
  hd_buffer_puts(p->out, " in ");
  print_mapping(p, stmt->u.mapfor.mapping);
  if (stmt->u.mapfor.worker) {
    hd_buffer_puts(p->out, " on ");
    print_expr(p, stmt->u.mapfor.worker, 5);
  }
  print_unroll(p, stmt->u.mapfor.unroll);
  for (unsigned i = 0; i < rank; i++)
    hd_visible_push(&p->visible, stmt->u.mapfor.vars[i], names[i]);
  print_block(p, stmt->u.mapfor.body);
  hd_visible_pop(&p->visible, outer);
}

static void print_if(hd_printer_t *p, const hd_stmt_t *stmt) {
  hd_buffer_puts(p->out, "if ");
  print_expr(p, stmt->u.branch.condition, 0);
  print_block(p, stmt->u.branch.then);
  hd_block_t otherwise = stmt->u.branch.otherwise;
  if (otherwise.size == 0)
    return;
  hd_buffer_puts(p->out, " else");
  if (otherwise.size == 1 && otherwise.stmts[0]->kind == HD_STMT_IF) {
    hd_buffer_puts(p->out, " ");
    print_if(p, otherwise.stmts[0]);
  } else {
    print_block(p, otherwise);
  }
}

static void print_stmt(hd_printer_t *p, const hd_stmt_t *stmt) {
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_LET: {
    const char *name = pick_name(p, stmt->u.let.var);
    hd_buffer_printf(p->out, "let %s = ", name);
    print_expr(p, stmt->u.let.value, 0);
    hd_visible_push(&p->visible, stmt->u.let.var, name);
    break;
  }
  case HD_STMT_DECLARE:
    print_declare(p, stmt);
    break;
  case HD_STMT_STORE:
    print_store(p, stmt);
    break;
  case HD_STMT_FOR:
    print_for(p, stmt);
    break;
  case HD_STMT_MAPFOR:
    print_mapfor(p, stmt);
    break;
  case HD_STMT_WHILE:
    hd_buffer_puts(p->out, "while ");
    print_expr(p, stmt->u.branch.condition, 0);
    print_block(p, stmt->u.branch.then);
    break;
  case HD_STMT_IF:
    print_if(p, stmt);
    break;
  case HD_STMT_ASSERT:
    hd_buffer_puts(p->out, "assert ");
    print_expr(p, stmt->u.assertion.condition, 0);
    if (stmt->u.assertion.message) {
      hd_buffer_puts(p->out, ", ");
      print_string(p, stmt->u.assertion.message);
    }
    break;
  case HD_STMT_EVAL:
    print_expr(p, stmt->u.eval.value, 0);
    break;
  case HD_STMT_RETURN:
    hd_buffer_puts(p->out, "return");
    if (stmt->u.eval.value) {
      hd_buffer_puts(p->out, " ");
      print_expr(p, stmt->u.eval.value, 0);
    }
    break;
  case HD_STMT_LAUNCH:
    hd_buffer_printf(p->out, "launch %s(", stmt->u.launch.kernel->name);
    print_list(p, stmt->u.launch.args, stmt->u.launch.num_args);
    hd_buffer_puts(p->out, ")");
    break;
  case HD_STMT_COUNT:
    break;
  }
}

static void print_block(hd_printer_t *p, hd_block_t block) {
  size_t outer = hd_visible_size(&p->visible);
  hd_buffer_puts(p->out, " {\n");
  p->indent += 2;
  for (uint32_t i = 0; i < block.size; i++) {
    hd_buffer_printf(p->out, "%*s", p->indent, "");
    print_stmt(p, block.stmts[i]);
    hd_buffer_puts(p->out, "\n");
  }
  p->indent -= 2;
  hd_buffer_printf(p->out, "%*s}", p->indent, "");
  hd_visible_pop(&p->visible, outer);
}

static void print_param(hd_printer_t *p, const hd_var_t *param) {
  if (param->tensor) {
    const char *word = param->direction != HD_DIR_NONE
                           ? hd_direction_name(param->direction)
                           : hd_scope_name(param->tensor->scope);
    hd_buffer_printf(p->out, "%s %s: ", word, declare(p, param));
    print_tensor(p, param->tensor);
  } else {
    hd_buffer_printf(p->out, "%s: %s", declare(p, param),
                     hd_type_name(param->type));
  }
}

static void print_dims(hd_printer_t *p, const char *word,
                       const hd_expr_t *const dims[3]) {
  unsigned count = 3;
  while (count > 0 && !dims[count - 1])
    count--;
  if (count == 0)
    return;
  hd_buffer_printf(p->out, " %s(", word);
  print_list(p, dims, count);
  hd_buffer_puts(p->out, ")");
}

static void print_func(hd_printer_t *p, const hd_func_t *func) {
  static const char *const words[] = {"kernel", "fn", "plan"};
  hd_visible_pop(&p->visible, 0);
  hd_buffer_printf(p->out, "%s %s(", words[func->kind], func->name);
  for (uint32_t i = 0; i < func->num_params; i++) {
    if (i)
      hd_buffer_puts(p->out, ", ");
    print_param(p, func->params[i]);
  }
  hd_buffer_puts(p->out, ")");
  if (!hd_type_equal(func->result, hd_type(HD_VOID)))
    hd_buffer_printf(p->out, " -> %s", hd_type_name(func->result));
  print_dims(p, "grid", func->launch.grid);
  print_dims(p, "block", func->launch.block);
  print_dims(p, "cluster", func->launch.cluster);
  if (func->launch.min_blocks)
    hd_buffer_printf(p->out, " min_blocks(%d)", func->launch.min_blocks);
  print_block(p, func->body);
  hd_buffer_puts(p->out, "\n");
}

static void print_const_item(hd_printer_t *p, const hd_const_t *constant) {
  hd_visible_pop(&p->visible, 0);
  hd_buffer_printf(p->out, "const %s = ", constant->name);
  if (constant->mapping)
    print_mapping(p, constant->mapping);
  else if (constant->untyped && hd_type_is_float(constant->value->type))
    hd_float_print(HD_F64, constant->value->u.f, p->out);
  else if (constant->untyped && constant->value->type.scalar == HD_U64)
    hd_buffer_printf(p->out, "%llu", (unsigned long long)constant->value->u.i);
  else if (constant->untyped)
    hd_buffer_printf(p->out, "%lld", (long long)constant->value->u.i);
  else
    print_expr(p, constant->value, 0);
  hd_buffer_puts(p->out, "\n");
}

static void start(hd_printer_t *p, hd_buffer_t *out) {
  *p = (hd_printer_t){.out = out};
  hd_arena_init(&p->arena, NULL);
  p->visible.arena = &p->arena;
}

void hd_module_print(const hd_module_t *module, hd_buffer_t *out) {
  hd_printer_t p;
  start(&p, out);
  p.module = module;
  for (size_t i = 0; i < module->items.size; i++) {
    const hd_item_t *item = &module->items.data[i];
    bool both_const = i && item->kind == HD_ITEM_CONST &&
                      module->items.data[i - 1].kind == HD_ITEM_CONST;
    if (i && !both_const)
      hd_buffer_puts(out, "\n");
    switch (item->kind) {
    case HD_ITEM_CONST:
      print_const_item(&p, item->u.constant);
      break;
    case HD_ITEM_FUNC:
      print_func(&p, item->u.func);
      break;
    case HD_ITEM_TASK:
      hd_task_print(item->u.task, out);
      break;
    }
  }
  hd_arena_fini(&p.arena);
}

void hd_func_print(const hd_func_t *func, hd_buffer_t *out) {
  hd_printer_t p;
  start(&p, out);
  print_func(&p, func);
  hd_arena_fini(&p.arena);
}

void hd_expr_print(const hd_expr_t *e, hd_buffer_t *out) {
  hd_printer_t p;
  start(&p, out);
  print_expr(&p, e, 0);
  hd_arena_fini(&p.arena);
}

void hd_mapping_print(const hd_mapping_t *mapping, hd_buffer_t *out) {
  hd_printer_t p;
  start(&p, out);
  print_mapping(&p, mapping);
  hd_arena_fini(&p.arena);
}

void hd_layout_print(const hd_layout_t *layout, hd_buffer_t *out) {
  hd_printer_t p;
  start(&p, out);
  print_layout(&p, layout);
  hd_arena_fini(&p.arena);
}
