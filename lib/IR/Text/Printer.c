// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Keywords.h"
#include "IR/Template.h"
#include "IR/Text/PrinterState.h"

#include "IR/Generic.h"
#include "IR/Graph/Graph.h"
#include "IR/Graph/RewriteRule.h"
#include "IR/Text/ParserState.h"

static bool is_taken(const hd_printer_t *p, const char *name) {
  size_t cursor = 0;
  const hd_item_t *item =
      p->module ? hd_module_next(p->module, name, &cursor) : NULL;
  return hd_is_reserved(name) || hd_visible_find(&p->visible, name) ||
         (item && item->kind == HD_ITEM_CONST);
}

const char *hd_print_pick_name(hd_printer_t *p, const hd_var_t *var) {
  const char *name = var->name;
  for (unsigned i = 1; is_taken(p, name); i++) {
    if (hd_visible_find(&p->visible, var->name))
      i = hd_visible_count(&p->visible, var->name);
    name = hd_arena_printf(&p->arena, "%s_%u", var->name, i);
  }
  return name;
}

const char *hd_print_declare(hd_printer_t *p, const hd_var_t *var) {
  const char *name = hd_print_pick_name(p, var);
  hd_visible_push(&p->visible, var, name);
  return name;
}

const char *hd_print_name_of(const hd_printer_t *p, const hd_var_t *var) {
  const char *name = hd_visible_name(&p->visible, var);
  return name ? name : var->name; // A part is printed, or the IR is wrong.
}

// How many bytes at text are a character to be printed as it is; 0: none.
static size_t plain(const char *text) {
  unsigned char c = (unsigned char)*text;
  if (c < 0x80)
    return c >= 32 && c != 127;
  size_t size = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
  return strnlen(text, size) == size && hd_is_text(text, size) ? size : 0;
}

void hd_print_string(hd_printer_t *p, const char *text) {
  hd_buffer_puts(p->out, "\"");
  for (size_t size; *text; text += size) {
    const char *escape = *text == '\n'   ? "\\n"
                         : *text == '\t' ? "\\t"
                         : *text == '"'  ? "\\\""
                         : *text == '\\' ? "\\\\"
                                         : NULL;
    size = plain(text);
    if (escape)
      hd_buffer_puts(p->out, escape);
    else if (size)
      hd_buffer_write(p->out, text, size);
    else
      hd_buffer_printf(p->out, "\\x%02x", (unsigned char)*text);
    size += !size;
  }
  hd_buffer_puts(p->out, "\"");
}

static void print_param(hd_printer_t *p, const hd_func_t *func, uint32_t i) {
  const hd_var_t *param = func->params[i];
  if (param->tensor) {
    for (uint32_t n = 0; n < func->num_sizes; n++)
      if (func->sizes[n].param == i)
        hd_print_declare(p, func->sizes[n].var);
    p->func = func;
    p->param = i;
    const char *word = param->direction != HD_DIR_NONE
                           ? hd_direction_name(param->direction)
                           : hd_scope_name(param->tensor->scope);
    hd_buffer_printf(p->out, "%s %s: ", word, hd_print_declare(p, param));
    hd_print_tensor(p, param->tensor);
    p->func = NULL;
  } else {
    hd_buffer_printf(p->out, "%s: %s", hd_print_declare(p, param),
                     hd_type_name(param->type));
  }
}

static void print_axes(hd_printer_t *p, const char *word,
                       const hd_expr_t *const *values, unsigned count) {
  hd_buffer_printf(p->out, ", %s = [", word);
  hd_print_list(p, values, count);
  hd_buffer_puts(p->out, "]");
}

static void print_map(hd_printer_t *p, const hd_var_t *var) {
  const hd_map_t *map = var->map;
  unsigned inner = map->tensor->tensor->rank - 2;
  hd_buffer_printf(p->out, "map %s: %s %s(", hd_print_declare(p, var),
                   hd_print_name_of(p, map->tensor),
                   map->im2col ? "im2col" : "box");
  hd_print_list(p, map->box, map->num_box);
  if (map->im2col) {
    print_axes(p, "lower", map->lower, inner);
    print_axes(p, "upper", map->upper, inner);
    print_axes(p, "step", map->step, inner);
  }
  hd_buffer_puts(p->out, ")");
  if (map->swizzle)
    hd_buffer_printf(p->out, " swizzle(%u)", map->swizzle);
  hd_buffer_printf(p->out, " l2(%u)", map->l2);
}

static void print_dims(hd_printer_t *p, const char *word,
                       const hd_expr_t *const dims[3]) {
  unsigned count = 3;
  while (count > 0 && !dims[count - 1])
    count--;
  if (count == 0)
    return;
  hd_buffer_printf(p->out, " %s(", word);
  hd_print_list(p, dims, count);
  hd_buffer_puts(p->out, ")");
}

static void print_signature(hd_printer_t *p, const hd_func_t *func) {
  hd_visible_pop(&p->visible, 0);
  hd_buffer_printf(p->out, "%s(", func->name);
  for (uint32_t i = 0; i < func->num_params; i++) {
    if (i)
      hd_buffer_puts(p->out, ", ");
    print_param(p, func, i);
  }
  for (uint32_t i = 0; i < func->num_maps; i++) {
    hd_buffer_puts(p->out, i || func->num_params ? ", " : "");
    print_map(p, func->maps[i]);
  }
  hd_buffer_puts(p->out, ")");
  if (!hd_type_equal(func->result, hd_type(HD_VOID)))
    hd_buffer_printf(p->out, " -> %s", hd_type_name(func->result));
}

static void print_func(hd_printer_t *p, const hd_func_t *func) {
  static const char *const words[] = {"kernel", "fn", "plan"};
  hd_buffer_printf(p->out, "%s ", words[func->kind]);
  print_signature(p, func);
  print_dims(p, "grid", func->launch.grid);
  print_dims(p, "block", func->launch.block);
  print_dims(p, "cluster", func->launch.cluster);
  if (func->launch.min_blocks)
    hd_buffer_printf(p->out, " min_blocks(%d)", func->launch.min_blocks);
  if (func->launch.max_blocks)
    hd_buffer_printf(p->out, " max_blocks(%d)", func->launch.max_blocks);
  hd_print_block(p, func->body);
  hd_buffer_puts(p->out, "\n");
}

static void print_table(hd_printer_t *p, const hd_var_t *table) {
  hd_buffer_printf(p->out, "const %s: ", table->name);
  hd_print_tensor(p, table->tensor);
  hd_buffer_puts(p->out, " = ");
  hd_print_elements(p, table->table);
  hd_buffer_puts(p->out, "\n");
}

static void print_const_item(hd_printer_t *p, const hd_const_t *constant) {
  hd_visible_pop(&p->visible, 0);
  if (constant->table) {
    print_table(p, constant->table);
    return;
  }
  hd_buffer_printf(p->out, "const %s = ", constant->name);
  if (constant->mapping)
    hd_print_mapping(p, constant->mapping);
  else if (constant->untyped && hd_type_is_float(constant->value->type))
    hd_float_print(HD_F64, constant->value->u.f, p->out);
  else if (constant->untyped && constant->value->type.scalar == HD_U64)
    hd_buffer_printf(p->out, "%llu", (unsigned long long)constant->value->u.i);
  else if (constant->untyped)
    hd_buffer_printf(p->out, "%lld", (long long)constant->value->u.i);
  else
    hd_print_expr(p, constant->value, 0);
  hd_buffer_puts(p->out, "\n");
}

static void start(hd_printer_t *p, hd_buffer_t *out) {
  *p = (hd_printer_t){.out = out, .integer = HD_I32};
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
    case HD_ITEM_GENERIC:
      hd_buffer_printf(out, "%s\n", item->u.generic->text);
      break;
    case HD_ITEM_TASK:
      hd_task_print(item->u.task, out);
      break;
    case HD_ITEM_GRAPH:
      hd_print_graph(&p, item->u.graph);
      break;
    case HD_ITEM_REWRITE:
      hd_rewrite_print(item->u.rewrite, out);
      break;
    case HD_ITEM_TEMPLATE:
      hd_buffer_printf(out, "%s\n", item->u.template->text);
      break;
    }
  }
  hd_arena_fini(&p.arena);
}

// Something by itself.
#define PRINT(function, type, ...)                                             \
  void function(const type *x, hd_buffer_t *out) {                             \
    hd_printer_t p;                                                            \
    start(&p, out);                                                            \
    __VA_ARGS__;                                                               \
    hd_arena_fini(&p.arena);                                                   \
  }

PRINT(hd_func_print, hd_func_t, print_func(&p, x))
PRINT(hd_signature_print, hd_func_t, print_signature(&p, x))
PRINT(hd_table_print, hd_var_t, print_table(&p, x))
PRINT(hd_graph_print, hd_graph_t, hd_print_graph(&p, x))
PRINT(hd_expr_print, hd_expr_t, hd_print_expr(&p, x, 0))
PRINT(hd_tensor_print, hd_tensor_t, hd_print_tensor(&p, x))
PRINT(hd_mapping_print, hd_mapping_t, hd_print_mapping(&p, x))

void hd_param_print(const hd_func_t *func, uint32_t i, hd_buffer_t *out) {
  hd_printer_t p;
  hd_buffer_t before = {0}; // Names depend on those before.
  start(&p, &before);
  for (uint32_t k = 0; k <= i; k++) {
    p.out = k == i ? out : &before;
    if (k < func->num_params)
      print_param(&p, func, (uint32_t)k);
    else
      print_map(&p, func->maps[k - func->num_params]);
  }
  hd_buffer_fini(&before);
  hd_arena_fini(&p.arena);
}
