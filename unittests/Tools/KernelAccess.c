// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelAccess.h"

#include "IR/Passes/Passes.h"
#include "Schedule/Access/Access.h"

enum { MAX_HOOKS = 8 };

typedef struct twin {
  hd_var_t *var; // NULL before its first use.
  const hd_var_t *param;
  unsigned calls; // Decide what is made: each kind in turn.
} twin_t;

static const hd_var_t *twin_of(twin_t *t, hd_builder_t *b) {
  if (!t->var) {
    t->var = HD_ARENA_NEW(b->arena, hd_var_t);
    *t->var = *t->param;
    hd_vec_push(b->arena, &b->params, t->var);
  }
  return t->var;
}

// Always true; nobody sees it.
static const hd_expr_t *certainty(hd_builder_t *b) {
  return hd_expr_binary(b->arena, HD_EXPR_LT, hd_b_thread(b),
                        hd_b_i32(b, 4096));
}

static const hd_expr_t *load(void *argument, hd_builder_t *b,
                             const hd_expr_t *const *at) {
  twin_t *t = argument;
  unsigned rank = t->param->tensor->rank;
  const hd_expr_t *x = hd_b_load(b, twin_of(t, b), at, rank);
  switch (t->calls++ % 3) {
  case 0:
    return x;
  case 1:
    return hd_b_let(b, "twin", x);
  default:
    break;
  }
  const hd_var_t *cell =
      hd_b_register(b, "twin", (hd_scalar_t)x->type.scalar, NULL, 0,
                    hd_b_zero(b, (hd_scalar_t)x->type.scalar));
  hd_open_block_t block;
  hd_b_open(b, &block);
  hd_b_set(b, cell, x);
  hd_block_t then = hd_b_close(b);
  hd_b_if(b, certainty(b), then, (hd_block_t){0});
  return hd_b_get(b, cell);
}

static void store(void *argument, hd_builder_t *b, const hd_expr_t *const *at,
                  const hd_expr_t *value) {
  twin_t *t = argument;
  unsigned rank = t->param->tensor->rank;
  hd_open_block_t block;
  hd_b_open(b, &block);
  hd_b_store(b, twin_of(t, b), at, rank, value);
  hd_block_t then = hd_b_close(b);
  hd_b_if(b, t->calls++ % 2 ? certainty(b) : NULL, then, (hd_block_t){0});
}

bool hd_kernel_replace_accesses(hd_module_t *module, hd_func_t *kernel) {
  hd_pass_args_t args = {0};
  const hd_func_t *old = hd_pass_inline(module, kernel, &args);
  twin_t twins[MAX_HOOKS];
  hd_access_hook_t hooks[MAX_HOOKS];
  size_t count = 0;
  for (uint32_t i = 0; i < old->num_params; i++) {
    const hd_var_t *param = old->params[i];
    if (!param->tensor)
      continue;
    bool loads = param->direction == HD_DIR_IN;
    if (hd_access_obstacle(old, param,
                           loads ? HD_ACCESS_LOADS : HD_ACCESS_STORES))
      continue;
    twins[count] = (twin_t){.param = param, .calls = (unsigned)count};
    hooks[count] = (hd_access_hook_t){.param = param,
                                      .argument = &twins[count],
                                      .load = loads ? load : NULL,
                                      .store = loads ? NULL : store};
    count++;
  }
  hd_func_t *made = hd_access_rewrite(module, old, hooks, count, kernel->name);
  const hd_var_t **params =
      HD_ARENA_ARRAY(&module->arena, const hd_var_t *, old->num_params);
  for (uint32_t i = 0; i < old->num_params; i++) {
    params[i] = old->params[i];
    for (size_t k = 0; k < count; k++)
      if (hooks[k].param == params[i] && twins[k].var)
        params[i] = twins[k].var;
  }
  made->params = params;
  made->num_params = old->num_params;
  hd_func_replace(kernel, made);
  return count > 0;
}
