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
#include "IR/Facts.h"
#include "IR/Passes.h"
#include "IR/Rewrite.h"

#include <stdlib.h>
#include <string.h>

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
