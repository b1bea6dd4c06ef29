// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels for views of rows. A schedule is made for tensors that are row-major;
// what is stored into a concatenation lies in parts of its rows. So a launch
// that is given such a view gets a kernel that is the same but for the layout
// of that parameter.
#include "Fusion/Plan/PlanState.h"
#include "Fusion/Views.h"

#include <string.h>

typedef struct fitting {
  hd_planner_t *p;
  hd_key_map_t kernels; // By what they were made of.
  hd_ptr_map_t params;  // Of the kernel at hand, to new ones.
  bool ok;
} fitting_t;

// The parameter with the argument's rows.
static const hd_var_t *with_rows(fitting_t *f, const hd_var_t *param,
                                 int64_t width, int64_t pitch) {
  hd_arena_t *arena = f->p->arena;
  int64_t shape[HD_MAX_RANK];
  for (uint32_t i = 0; i < param->tensor->rank; i++)
    if (!hd_expr_fold_int(param->tensor->shape[i], &shape[i]))
      return NULL;
  hd_tensor_t *tensor = HD_ARENA_COPY(arena, hd_tensor_t, param->tensor);
  tensor->layout =
      hd_layout_rows(arena, shape, param->tensor->rank, width, pitch);
  hd_var_t *var = HD_ARENA_COPY(arena, hd_var_t, param);
  var->tensor = tensor;
  return tensor->layout ? var : NULL;
}

static const hd_var_t *declare_param(hd_rewriter_t *rewriter,
                                     const hd_var_t *var) {
  const fitting_t *f = rewriter->argument;
  const hd_var_t *made = hd_ptr_map_get(&f->params, var);
  return made ? made : var;
}

static const hd_func_t *make_kernel(fitting_t *f, const hd_func_t *kernel) {
  hd_planner_t *p = f->p;
  hd_rewriter_t rewriter = {
      .arena = p->arena, .argument = f, .declare = declare_param};
  hd_func_t *made =
      HD_ARENA_COPY(p->arena, hd_func_t, hd_rewrite_func(&rewriter, kernel));
  made->name = hd_module_fresh_name(p->arena, p->module, kernel->name);
  hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = made};
  hd_vec_push(p->arena, &p->module->items, item);
  return made;
}

// Adds to the key, and to the new parameters, what is given in rows.
static void note_rows(fitting_t *f, const hd_stmt_t *stmt, uint32_t n,
                      hd_buffer_t *key) {
  const hd_var_t *param = stmt->u.launch.kernel->params[n];
  const hd_expr_t *arg = stmt->u.launch.args[n];
  int64_t width, pitch;
  if (!param->tensor || param->tensor->layout || arg->kind != HD_EXPR_TENSOR ||
      !arg->u.var->tensor ||
      !hd_layout_find_rows(arg->u.var->tensor, &width, &pitch))
    return;
  const hd_var_t *made = with_rows(f, param, width, pitch);
  f->ok &= made != NULL;
  hd_ptr_map_set(f->p->arena, &f->params, param, made);
  hd_buffer_printf(key, " %u:%lld,%lld", n, (long long)width, (long long)pitch);
}

static const hd_stmt_t *fit_launch(fitting_t *f, const hd_stmt_t *stmt) {
  const hd_func_t *kernel = stmt->u.launch.kernel;
  hd_buffer_t key;
  hd_buffer_init_local(&key, f->p->arena->budget);
  memset(&f->params, 0, sizeof(f->params));
  for (uint32_t i = 0; i < kernel->num_params; i++)
    note_rows(f, stmt, i, &key);
  if (!f->ok || key.size == 0) {
    hd_buffer_fini(&key);
    return stmt;
  }
  hd_buffer_printf(&key, " %p", (const void *)kernel);
  const char *text = hd_buffer_text(&key);
  const hd_func_t *made = hd_key_map_find_name(&f->kernels, text);
  if (!made) {
    made = make_kernel(f, kernel);
    hd_key_map_set_name(f->p->arena, &f->kernels,
                        hd_arena_strndup(f->p->arena, text, key.size), made);
  }
  hd_buffer_fini(&key);
  hd_stmt_t *copy = hd_stmt_copy(f->p->arena, stmt);
  copy->u.launch.kernel = made;
  return copy;
}

static bool enter_launch(hd_rewriter_t *rewriter, const hd_stmt_t *stmt,
                         hd_stmt_list_t *out) {
  if (stmt->kind != HD_STMT_LAUNCH)
    return false;
  hd_stmt_list_push(rewriter->arena, out, fit_launch(rewriter->argument, stmt));
  return true;
}

bool hd_planner_fit(hd_planner_t *p) {
  fitting_t f = {.p = p, .ok = true};
  hd_rewriter_t rewriter = {
      .arena = p->arena, .argument = &f, .enter = enter_launch};
  hd_stmt_list_t fitted = {0};
  hd_rewrite_into(&rewriter,
                  hd_block_make(p->arena, p->body.data, p->body.size), &fitted);
  p->body = fitted;
  return f.ok;
}
