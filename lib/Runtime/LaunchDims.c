// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Runtime/LaunchDims.h"
#include "IR/Rewrite.h"
#include "IR/Text/Printer.h"

#include <stdio.h>
#include <string.h>

typedef struct mention {
  const hd_env_t *env;
  hd_buffer_t *text;
} mention_t;

// " n = 3000000", each size once.
static bool mention(void *argument, const hd_expr_t *e) {
  mention_t *m = argument;
  const hd_number_t *value =
      e->kind == HD_EXPR_VAR ? hd_env_find(m->env, e->u.var) : NULL;
  char text[120];
  if (!value)
    return true;
  snprintf(text, sizeof(text), " %.80s = %lld", e->u.var->name,
           (long long)value->i);
  if (!strstr(hd_buffer_text(m->text), text))
    hd_buffer_puts(m->text, text);
  return true;
}

static bool fail(hd_diagnostics_t *diags, const hd_env_t *env,
                 const hd_func_t *kernel, const char *what, int axis,
                 const hd_expr_t *dim, bool wrapped) {
  hd_buffer_t why = {0}, sizes = {0};
  mention_t m = {env, &sizes};
  hd_walk_expr(dim, mention, &m);
  hd_buffer_printf(&why, "%s.%c, ", what, "xyz"[axis]);
  hd_expr_print(dim, &why);
  hd_buffer_printf(&why, ", %s%s%s",
                   wrapped ? "does not fit i32" : "divides by zero",
                   sizes.size ? " with" : "", hd_buffer_text(&sizes));
  hd_error(diags, (hd_loc_t){0}, HD_E0608, kernel->name, hd_buffer_text(&why));
  hd_buffer_fini(&why);
  hd_buffer_fini(&sizes);
  return false;
}

bool hd_launch_dims(hd_diagnostics_t *diags, const hd_env_t *env,
                    const hd_func_t *kernel, int32_t grid[3], int32_t block[3],
                    int32_t cluster[3]) {
  const hd_launch_t *launch = &kernel->launch;
  const struct {
    const char *what;
    const hd_expr_t *const *exprs;
    int32_t *dims;
  } rows[] = {{"grid", launch->grid, grid},
              {"block", launch->block, block},
              {"cluster", launch->cluster, cluster}};
  for (int row = 0; row < 3; row++)
    for (int axis = 0; axis < 3; axis++) {
      const hd_expr_t *dim = rows[row].exprs[axis];
      int64_t value = 1;
      bool wrapped;
      if (dim && !hd_eval_size(env, dim, &value, &wrapped))
        return fail(diags, env, kernel, rows[row].what, axis, dim, wrapped);
      rows[row].dims[axis] = (int32_t)value; // Of that type.
    }
  return true;
}
