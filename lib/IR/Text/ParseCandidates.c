// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is said of a call that does not fit: which tensor differs, or which
// functions of the name there are.
#include "IR/Call.h"
#include "IR/Intrinsic.h"
#include "IR/Text/Library.h"
#include "IR/Text/ParserState.h"
#include "IR/Text/Printer.h"

#include <string.h>

// --- Tensors ---

static const char *tensor_text(hd_parser_t *p, const hd_tensor_t *tensor) {
  hd_buffer_t out;
  hd_buffer_init_local(&out, p->arena->budget);
  hd_tensor_print(tensor, &out);
  const char *text = hd_arena_strndup(p->arena, hd_buffer_text(&out), out.size);
  hd_buffer_fini(&out);
  return text;
}

// A size is an i32, unless the function says otherwise.
static void note_types(hd_parser_t *p, const hd_func_t *func,
                       const hd_expr_t *const *operands, uint32_t param) {
  const hd_tensor_t *given = operands[param]->u.var->tensor;
  for (uint32_t i = 0; i < func->num_sizes; i++) {
    const hd_func_size_t *size = &func->sizes[i];
    if (size->param != param || size->is_stride)
      continue;
    const hd_expr_t *found = given->shape[size->place];
    if (!hd_expr_is_const(found) &&
        !hd_type_equal(found->type, size->var->type))
      hd_note(p->diags, size->var->loc, "'%s' is an %s; write '%s: %s'",
              size->var->name, hd_type_name(size->var->type), size->var->name,
              hd_type_name(found->type));
  }
}

bool hd_check_tensors(hd_parser_t *p, const hd_func_t *func,
                      const hd_expr_t *const *operands) {
  const hd_tensor_t *wanted;
  int i = hd_call_disagrees(p->arena, func, operands, &wanted);
  if (i < 0)
    return true;
  hd_error(p->diags, operands[i]->loc, HD_E0221, func->name,
           func->params[i]->name, tensor_text(p, wanted),
           operands[i]->u.var->name,
           tensor_text(p, operands[i]->u.var->tensor));
  hd_note(p->diags, func->params[i]->loc, "declared here");
  note_types(p, func, operands, (uint32_t)i);
  return false;
}

// --- Candidates ---

enum { MOST_NOTED = 8 };

typedef struct candidates {
  hd_parser_t *p;
  const char *name;
  unsigned count;   // Beyond MOST_NOTED they are counted alone.
  const char *text; // Of those that have no place in the text.
} candidates_t;

static const char *signature_text(hd_parser_t *p, const hd_func_t *func) {
  hd_buffer_t out;
  hd_buffer_init_local(&out, p->arena->budget);
  hd_signature_print(func, &out);
  const char *text = hd_arena_strndup(p->arena, hd_buffer_text(&out), out.size);
  hd_buffer_fini(&out);
  return text;
}

void hd_note_signature(hd_parser_t *p, const hd_func_t *func) {
  hd_note(p->diags, func->loc, "there is %s", signature_text(p, func));
}

static void add_text(candidates_t *c, const char *text) {
  c->text =
      *c->text ? hd_arena_printf(c->p->arena, "%s, %s", c->text, text) : text;
}

static void note_funcs(candidates_t *c, const hd_module_t *module,
                       bool is_library) {
  size_t cursor = 0;
  for (const hd_item_t *item;
       module && (item = hd_module_next(module, c->name, &cursor));) {
    if (item->kind != HD_ITEM_FUNC || item->u.func->kind != HD_FUNC_FN ||
        ++c->count > MOST_NOTED)
      continue;
    if (is_library)
      add_text(c, signature_text(c->p, item->u.func));
    else
      hd_note_signature(c->p, item->u.func);
  }
}

static void note_intrinsics(candidates_t *c) {
  hd_intrinsic_t row = hd_intrinsic_find(c->name);
  for (; row < HD_INTRINSIC_COUNT; row++) {
    const hd_intrinsic_info_t *info = hd_intrinsic_info(row);
    if (strcmp(info->name, c->name) != 0)
      return;
    if (++c->count > MOST_NOTED)
      continue;
    const char *text = hd_arena_printf(c->p->arena, "%s%s", info->name,
                                       strchr(info->signature, '('));
    add_text(c, info->num_types ? hd_arena_printf(c->p->arena, "%s of T in %s",
                                                  text, info->type_names)
                                : text);
  }
}

void hd_report_no_call(hd_parser_t *p, const char *name, hd_loc_t loc,
                       const char *given) {
  candidates_t c = {.p = p, .name = name, .text = ""};
  if (hd_diagnostics_full(p->diags) || hd_has_failed(p, name))
    return;
  hd_error(p->diags, loc, HD_E0212, name, given);
  note_funcs(&c, p->module, false);
  note_intrinsics(&c);
  note_funcs(&c, hd_library_load(p->module->context, name), true);
  const char *more =
      c.count > MOST_NOTED
          ? hd_arena_printf(p->arena, " and %u more", c.count - MOST_NOTED)
          : "";
  if (*c.text || *more)
    hd_note(p->diags, loc, "there is %s%s", c.text, more);
}
