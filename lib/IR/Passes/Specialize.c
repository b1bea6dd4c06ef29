// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// specialize: integer parameters whose value is known become constants.
//
//   kernel k(n: i32, in a: f32[n]) grid(n / 64) ...   a[i]
//   --specialize=n=4096
//   kernel k(n: i32, in a: f32[4096]) grid(4096 / 64) ...
//
// The parameter stays in the signature, so launches are as before. Options:
// name=value, for every function that has an integer parameter of that name;
// one at least must have it.
#include "IR/Passes/Specialize.h"
#include "IR/Passes/Facts.h"
#include "IR/Passes/Passes.h"
#include "IR/Rewrite.h"
#include "IR/Verify/Verifier.h"
#include "Support/Suggest.h"

#include <stdarg.h>
#include <string.h>

static const hd_expr_t *replace_sms(hd_rewriter_t *rewriter,
                                    const hd_expr_t *e) {
  const int64_t *sms = rewriter->argument;
  if (e->kind != HD_EXPR_BUILTIN || e->u.builtin != HD_BUILTIN_DEVICE_SMS)
    return e;
  return hd_expr_int(rewriter->arena, e->type, *sms);
}

static const hd_expr_t *number_of(hd_arena_t *arena, hd_type_t type,
                                  int64_t value) {
  double real;
  memcpy(&real, &value, sizeof real);
  return hd_type_is_float(type) ? hd_expr_float(arena, type, real)
                                : hd_expr_int(arena, type, value);
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
        number_of(arena, known[i].var->type, known[i].value));
  const hd_func_t *result = hd_rewrite_func(&rewriter, func);
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

bool hd_func_failed_assert(const hd_func_t *func, const hd_stmt_t **failed) {
  for (uint32_t i = 0; i < func->body.size; i++) {
    const hd_stmt_t *stmt = func->body.stmts[i];
    int64_t holds;
    if (stmt->kind == HD_STMT_ASSERT &&
        hd_expr_fold_int(stmt->u.assertion.condition, &holds) && !holds) {
      *failed = stmt;
      return true;
    }
    // Past anything else nobody may come here.
    if (stmt->kind != HD_STMT_ASSERT && stmt->kind != HD_STMT_LET &&
        stmt->kind != HD_STMT_DECLARE)
      return false;
  }
  return false;
}

static bool fail(hd_module_t *module, hd_loc_t loc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool fail(hd_module_t *module, hd_loc_t loc, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *text = hd_arena_vprintf(&module->arena, format, args);
  va_end(args);
  return hd_error(&module->context->diags, loc, HD_E1002, "--specialize", text);
}

static bool is_integer_param(const hd_var_t *param) {
  return hd_type_is_integer(param->type) && !param->tensor;
}

static const hd_var_t *find_param(const hd_func_t *func, const char *name,
                                  size_t size) {
  for (uint32_t i = 0; i < func->num_params; i++)
    if (is_integer_param(func->params[i]) &&
        strlen(func->params[i]->name) == size &&
        strncmp(func->params[i]->name, name, size) == 0)
      return func->params[i];
  return NULL;
}

// A name that no function has, or NULL.
static const char *find_unknown(hd_module_t *module, const char *options,
                                hd_suggestion_t *near) {
  const char *name;
  size_t size;
  int64_t value;
  while (hd_pass_option_next(&options, &name, &size, &value)) {
    *near = (hd_suggestion_t){.wanted =
                                  hd_arena_strndup(&module->arena, name, size)};
    bool known = false;
    for (size_t i = 0; i < module->items.size; i++) {
      const hd_item_t *item = &module->items.data[i];
      if (item->kind != HD_ITEM_FUNC)
        continue;
      known |= find_param(item->u.func, name, size) != NULL;
      for (uint32_t k = 0; k < item->u.func->num_params; k++)
        if (is_integer_param(item->u.func->params[k]))
          hd_suggestion_add(near, item->u.func->params[k]->name);
    }
    if (!known)
      return near->wanted;
  }
  return NULL;
}

// The values that the options give this function's parameters.
static bool find_values(hd_module_t *module, const hd_func_t *func,
                        const char *options, hd_known_t *known, size_t *count) {
  const char *name;
  size_t size;
  int64_t value;
  while (hd_pass_option_next(&options, &name, &size, &value)) {
    const hd_var_t *param = find_param(func, name, size);
    if (!param)
      continue;
    hd_range_t range = hd_type_range(param->type);
    if (value < range.least || value > range.greatest)
      return fail(module, param->loc,
                  "needs a value of %s for '%s', found %lld",
                  hd_type_name(param->type), param->name, (long long)value);
    known[(*count)++] = (hd_known_t){param, value};
  }
  return true;
}

// A dimension of 0, or what an assertion rules out, is the user's fault, not
// the pass's.
static bool check_instance(hd_module_t *module, const hd_func_t *func) {
  const hd_stmt_t *failed;
  if (hd_func_failed_assert(func, &failed))
    return fail(module, failed->loc, "contradicts this assertion of '%s'",
                func->name);
  hd_context_t scratch;
  hd_context_init(&scratch);
  bool ok = hd_func_verify(&scratch, func);
  if (!ok)
    fail(module, func->loc, "breaks a rule in '%s': %s", func->name,
         scratch.diags.first->message);
  hd_context_fini(&scratch);
  return ok;
}

const hd_func_t *hd_pass_specialize(hd_module_t *module, const hd_func_t *func,
                                    const hd_pass_args_t *args) {
  hd_suggestion_t near;
  const char *unknown = find_unknown(module, args->options, &near);
  char text[100];
  if (unknown) {
    fail(module, (hd_loc_t){0}, "finds no integer parameter '%s'%s", unknown,
         hd_suggestion_text(&near, "", text, sizeof(text)));
    return NULL;
  }
  hd_known_t *known =
      HD_ARENA_ARRAY(&module->arena, hd_known_t, func->num_params + 1);
  size_t count = 0;
  if (!find_values(module, func, args->options, known, &count))
    return NULL;
  const hd_func_t *result =
      count ? hd_func_specialize(&module->arena, func, known, count, 0) : func;
  return result == func || check_instance(module, result) ? result : NULL;
}
