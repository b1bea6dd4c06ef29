// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// specialize: integer parameters whose value is known become constants.
//
//   kernel k(n: i32, in a: f32[n]) grid(n / 64) ...   a[i]
//   --specialize=n=4096
//   kernel k(n: i32, in a: f32[4096]) grid(4096 / 64) ...
//
// The parameter stays in the signature, so launches are as before. Options:
// name=value, for every function that has an integer parameter of that name.
#include "IR/Specialize.h"
#include "IR/Facts.h"
#include "IR/Passes.h"
#include "IR/Rewrite.h"

#include <stdlib.h>
#include <string.h>

static const hd_expr_t *replace_sms(hd_rewriter_t *rewriter,
                                    const hd_expr_t *e) {
  const int64_t *sms = rewriter->argument;
  if (e->kind != HD_EXPR_BUILTIN || e->u.builtin != HD_BUILTIN_DEVICE_SMS)
    return e;
  return hd_expr_int(rewriter->arena, e->type, *sms);
}

const hd_func_t *hd_func_specialize(hd_arena_t *arena, const hd_func_t *func,
                                    const hd_known_t *known, size_t count,
                                    int64_t sms) {
  hd_rewriter_t rewriter = {.arena = arena, .argument = &sms};
  if (sms)
    rewriter.expr = replace_sms;
  for (size_t i = 0; i < count; i++)
    hd_rewriter_substitute(
        &rewriter, known[i].var,
        hd_expr_int(arena, known[i].var->type, known[i].value));
  const hd_func_t *result = hd_rewrite_func(&rewriter, func);
  hd_rewriter_fini(&rewriter);
  return result;
}

static bool is_not(void *argument, const hd_expr_t *e) {
  const hd_var_t *const *param = argument;
  return e->kind != HD_EXPR_VAR || e->u.var != *param;
}

static bool mentions(const hd_expr_t *const *exprs, size_t count,
                     const hd_var_t *param) {
  for (size_t i = 0; i < count; i++)
    if (exprs[i] && !hd_walk_expr(exprs[i], is_not, &param))
      return true;
  return false;
}

static bool shaped_by(const hd_tensor_t *tensor, const hd_var_t *param) {
  if (mentions(tensor->shape, tensor->rank, param))
    return true;
  for (uint32_t i = 0; tensor->layout && i < tensor->layout->num_items; i++) {
    const hd_layout_item_t *item = &tensor->layout->items[i];
    if (mentions(item->values, item->num_values, param))
      return true;
  }
  return false;
}

static bool is_not_shaped(void *argument, const hd_stmt_t *stmt) {
  const hd_var_t *const *param = argument;
  return stmt->kind != HD_STMT_DECLARE ||
         !shaped_by(stmt->u.declare.var->tensor, *param);
}

bool hd_func_is_size(const hd_func_t *func, const hd_var_t *param) {
  if (!hd_type_is_integer(param->type) || param->tensor)
    return false;
  const hd_launch_t *launch = &func->launch;
  if (mentions(launch->grid, 3, param) || mentions(launch->block, 3, param) ||
      mentions(launch->cluster, 3, param))
    return true;
  for (uint32_t i = 0; i < func->num_params; i++)
    if (func->params[i]->tensor && shaped_by(func->params[i]->tensor, param))
      return true;
  return !hd_walk_block(func->body, is_not_shaped, NULL, &param);
}

// The value that options give a name; false where they give none.
static bool find_option(const char *options, const char *name,
                        const char **value) {
  size_t size = strlen(name);
  for (const char *at = options; at && *at;) {
    if (strncmp(at, name, size) == 0 && at[size] == '=') {
      *value = at + size + 1;
      return true;
    }
    at = strchr(at, ',');
    at = at ? at + 1 : NULL;
  }
  return false;
}

const hd_func_t *hd_pass_specialize(hd_module_t *module, const hd_func_t *func,
                                    const hd_pass_args_t *args) {
  hd_rewriter_t rewriter = {.arena = &module->arena};
  for (uint32_t i = 0; i < func->num_params; i++) {
    const hd_var_t *param = func->params[i];
    const char *text;
    if (!hd_type_is_integer(param->type) || param->tensor ||
        !find_option(args->options, param->name, &text))
      continue;
    char *end;
    long long value = strtoll(text, &end, 10);
    if (end == text || (*end && *end != ',')) {
      hd_error(&module->context->diags, param->loc, HD_E1002, "specialize",
               hd_arena_printf(&module->arena, "needs a number for '%s'",
                               param->name));
      return NULL;
    }
    hd_range_t range = hd_type_range(param->type);
    if (value < range.least || value > range.greatest) {
      hd_error(&module->context->diags, param->loc, HD_E1002, "specialize",
               hd_arena_printf(&module->arena, "needs a value of %s for '%s'",
                               hd_type_name(param->type), param->name));
      return NULL;
    }
    hd_rewriter_substitute(&rewriter, param,
                           hd_expr_int(&module->arena, param->type, value));
  }
  const hd_func_t *result =
      rewriter.vars ? hd_rewrite_func(&rewriter, func) : func;
  hd_rewriter_fini(&rewriter);
  return result;
}
