// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "AccessHelp.h"

#include "IR/Passes/Passes.h"
#include "IR/Text/Parser.h"
#include "IR/Text/Printer.h"
#include "IR/Verify/Verifier.h"
#include "Runtime/Storage.h"
#include "TaskMapping/Passes.h"

#include <stdlib.h>
#include <string.h>

// A parameter that is replaced by one whose axes are reversed.
typedef struct mirror {
  hd_access_run_t *run;
  const hd_var_t *param;
  hd_var_t *var;
  hd_hook_style_t style;
} mirror_t;

void hd_access_fail(hd_access_run_t *run, const char *what) {
  hd_buffer_t said = {0};
  hd_diagnostics_print(&run->context.diags, false, &said);
  fail_msg("%s\n%s\n%s", what, hd_buffer_text(&said),
           run->printed.data ? hd_buffer_text(&run->printed) : "");
}

const hd_var_t *hd_access_param(const hd_access_run_t *run, const char *name) {
  for (uint32_t i = 0; i < run->kernel->num_params; i++)
    if (strcmp(run->kernel->params[i]->name, name) == 0)
      return run->kernel->params[i];
  fail_msg("there is no parameter %s", name);
  return NULL;
}

// --- The code: 2 x of floats that double without rounding, x + 3 of integers
// as wide as their arithmetic, else x. ---

static bool is_doubled(hd_scalar_t type) {
  return type == HD_F32 || type == HD_F64;
}
static bool is_moved(hd_scalar_t type) {
  return type == HD_I32 || type == HD_I64;
}

double hd_access_coded(hd_scalar_t type, double x) {
  return is_doubled(type) ? 2 * x : is_moved(type) ? x + 3 : x;
}

static const hd_expr_t *decode(hd_builder_t *b, const hd_expr_t *x) {
  hd_scalar_t type = (hd_scalar_t)x->type.scalar;
  if (is_doubled(type))
    return hd_expr_binary(b->arena, HD_EXPR_MUL, x,
                          hd_expr_float(b->arena, x->type, 0.5));
  return is_moved(type) ? hd_b_op_int(b, HD_EXPR_SUB, x, 3) : x;
}

static const hd_expr_t *encode(hd_builder_t *b, const hd_expr_t *x) {
  hd_scalar_t type = (hd_scalar_t)x->type.scalar;
  if (is_doubled(type))
    return hd_expr_binary(b->arena, HD_EXPR_ADD, x, x);
  return is_moved(type) ? hd_b_op_int(b, HD_EXPR_ADD, x, 3) : x;
}

// --- Hooks ---

static bool has_order(const mirror_t *m) {
  return m->style == HD_HOOK_STRAIGHT || m->style == HD_HOOK_FLAT;
}

// The axis of the parameter that is the mirror's axis i.
static unsigned axis_of(const mirror_t *m, unsigned i) {
  return has_order(m) ? i : m->param->tensor->rank - 1 - i;
}

static void declare_mirror(mirror_t *m, hd_builder_t *b) {
  if (m->var)
    return;
  const hd_tensor_t *old = m->param->tensor;
  hd_tensor_t *tensor = HD_ARENA_NEW(b->arena, hd_tensor_t);
  const hd_expr_t **shape =
      HD_ARENA_ARRAY(b->arena, const hd_expr_t *, old->rank);
  for (unsigned i = 0; i < old->rank; i++)
    shape[i] = old->shape[axis_of(m, i)];
  *tensor =
      (hd_tensor_t){.element = old->element, .rank = old->rank, .shape = shape};
  for (unsigned i = 1; m->style == HD_HOOK_FLAT && i < old->rank; i++)
    shape[0] = hd_b_op(b, HD_EXPR_MUL, shape[0], shape[i]);
  if (m->style == HD_HOOK_FLAT)
    tensor->rank = 1;
  m->var = hd_var_make_tensor(
      b->arena,
      hd_arena_printf(b->arena, "%s%s", m->param->name,
                      has_order(m) ? HD_STRAIGHT : HD_MIRRORED),
      tensor, m->param->loc);
  m->var->direction = m->param->direction;
  hd_vec_push(b->arena, &b->params, m->var);
}

static void reverse(const mirror_t *m, hd_builder_t *b,
                    const hd_expr_t *const *at, const hd_expr_t **place) {
  const hd_tensor_t *tensor = m->param->tensor;
  for (unsigned i = 0; i < tensor->rank; i++) {
    assert_true(hd_expr_is_trivial(at[i]));
    assert_true(at[i]->type.scalar == HD_I32 || at[i]->type.scalar == HD_I64);
    place[i] = at[axis_of(m, i)];
  }
  if (m->style != HD_HOOK_FLAT)
    return;
  place[0] = hd_b_cast(b, HD_I64, place[0]);
  for (unsigned i = 1; i < tensor->rank; i++)
    place[0] = hd_b_op(b, HD_EXPR_ADD,
                       hd_b_op(b, HD_EXPR_MUL, place[0],
                               hd_b_cast(b, HD_I64, tensor->shape[i])),
                       hd_b_cast(b, HD_I64, place[i]));
}

static const hd_expr_t *load_mirror(void *argument, hd_builder_t *b,
                                    const hd_expr_t *const *at) {
  mirror_t *m = argument;
  const hd_expr_t *place[HD_MAX_RANK];
  hd_scalar_t type = (hd_scalar_t)m->param->type.scalar;
  declare_mirror(m, b);
  reverse(m, b, at, place);
  const hd_expr_t *x = hd_b_load(b, m->var, place, m->var->tensor->rank);
  if (m->style == HD_HOOK_EXPRESSION || has_order(m))
    return decode(b, x);
  if (m->style == HD_HOOK_NAMES)
    return decode(b, hd_b_let(b, "mirrored", x));
  const hd_var_t *cell = hd_b_register(b, "cell", type, NULL, 0, NULL);
  hd_open_block_t then, otherwise;
  hd_b_open(b, &then);
  hd_b_set(b, cell, decode(b, x));
  hd_block_t some = hd_b_close(b);
  hd_b_open(b, &otherwise);
  hd_b_set(b, cell, hd_b_load(b, m->var, place, m->var->tensor->rank));
  hd_block_t none = hd_b_close(b);
  hd_b_if(b,
          hd_expr_binary(b->arena, HD_EXPR_GE, hd_b_thread(b), hd_b_i32(b, 0)),
          some, none);
  return hd_b_get(b, cell);
}

static void store_mirror(void *argument, hd_builder_t *b,
                         const hd_expr_t *const *at, const hd_expr_t *value) {
  mirror_t *m = argument;
  const hd_expr_t *place[HD_MAX_RANK];
  assert_true(hd_expr_is_trivial(value));
  declare_mirror(m, b);
  reverse(m, b, at, place);
  const hd_expr_t *x = encode(b, value);
  if (m->style == HD_HOOK_NAMES || m->style == HD_HOOK_STATEMENTS)
    x = hd_b_let(b, "mirrored", x);
  if (m->style != HD_HOOK_STATEMENTS) {
    hd_b_store(b, m->var, place, m->var->tensor->rank, x);
    return;
  }
  hd_open_block_t then;
  hd_b_open(b, &then);
  hd_b_store(b, m->var, place, m->var->tensor->rank, x);
  hd_b_if(b,
          hd_expr_binary(b->arena, HD_EXPR_GE, hd_b_thread(b), hd_b_i32(b, 0)),
          hd_b_close(b), (hd_block_t){0});
}

hd_access_kind_t hd_access_kind(const hd_var_t *param) {
  return param->direction == HD_DIR_IN ? HD_ACCESS_LOADS : HD_ACCESS_STORES;
}

static bool is_named(const char *names, const char *name) {
  size_t size = strlen(name);
  for (const char *at = strstr(names, name); at; at = strstr(at + 1, name))
    if ((at == names || at[-1] == ' ') && (!at[size] || at[size] == ' '))
      return true;
  return false;
}

// --- Kernels ---

hd_module_t *hd_access_parse(hd_access_run_t *run, const char *text) {
  hd_module_t *module =
      hd_module_parse(&run->context, "test.hir", text, strlen(text), 1);
  if (!module || !hd_module_verify(module))
    hd_access_fail(run, text);
  return module;
}

const hd_func_t *hd_access_kernel(const hd_module_t *module, const char *name) {
  for (size_t i = module->items.size; i-- > 0;) {
    const hd_item_t *item = &module->items.data[i];
    if (item->kind == HD_ITEM_FUNC && item->u.func->kind == HD_FUNC_KERNEL &&
        (!name || strcmp(item->u.func->name, name) == 0))
      return item->u.func;
  }
  fail_msg("there is no kernel");
  return NULL;
}

void hd_access_begin(hd_access_run_t *run, const char *text, const char *kernel,
                     const int64_t *sizes) {
  *run = (hd_access_run_t){0};
  hd_context_init(&run->context);
  run->module = hd_access_parse(run, text);
  hd_pass_args_t args = {0};
  run->kernel =
      hd_pass_inline(run->module, hd_access_kernel(run->module, kernel), &args);
  for (uint32_t i = 0; i < run->kernel->num_params; i++)
    if (!run->kernel->params[i]->tensor)
      run->sizes[i] = *sizes++;
}

void hd_access_change(hd_access_run_t *run, const char *names,
                      hd_hook_style_t style) {
  mirror_t mirrors[HD_MAX_PARAMS];
  hd_access_hook_t hooks[HD_MAX_PARAMS];
  size_t count = 0;
  for (uint32_t i = 0; i < run->kernel->num_params; i++) {
    const hd_var_t *param = run->kernel->params[i];
    if (!param->tensor || !is_named(names, param->name))
      continue;
    assert_null(hd_access_obstacle(run->kernel, param, hd_access_kind(param)));
    bool loads = hd_access_kind(param) == HD_ACCESS_LOADS;
    mirrors[count] = (mirror_t){run, param, NULL, style};
    hooks[count] = (hd_access_hook_t){.param = param,
                                      .argument = &mirrors[count],
                                      .load = loads ? load_mirror : NULL,
                                      .store = loads ? NULL : store_mirror};
    count++;
  }
  hd_module_t *made = hd_module_create(&run->context);
  run->changed = hd_access_rewrite(made, run->kernel, hooks, count, "changed");
  hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = run->changed};
  hd_vec_push(&made->arena, &made->items, item);
  hd_buffer_fini(&run->printed);
  run->printed = (hd_buffer_t){0};
  // With the functions that it calls.
  for (size_t i = 0; i < run->module->items.size; i++) {
    item = run->module->items.data[i];
    if (item.kind == HD_ITEM_FUNC && item.u.func->kind == HD_FUNC_FN)
      hd_vec_push(&made->arena, &made->items, item);
  }
  hd_module_print(made, &run->printed);
  if (!hd_module_verify(made))
    hd_access_fail(run, "what was made breaks a rule");
  hd_module_t *again = hd_access_parse(run, hd_buffer_text(&run->printed));
  hd_buffer_t second = {0};
  hd_module_print(again, &second);
  assert_string_equal(hd_buffer_text(&run->printed), hd_buffer_text(&second));
  hd_buffer_fini(&second);
  run->changed = (hd_func_t *)(uintptr_t)hd_access_kernel(again, NULL);
}

bool hd_access_has(const hd_access_run_t *run, const char *part) {
  hd_buffer_t copy = run->printed;
  return strstr(hd_buffer_text(&copy), part) != NULL;
}
