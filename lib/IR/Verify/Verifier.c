// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modules, functions and statements.
#include "IR/Verify/Verifier.h"

#include "IR/Exits.h"
#include "IR/Format.h"
#include "IR/Generic.h"
#include "IR/Graph/Graph.h"
#include "IR/Graph/RewriteRule.h"
#include "IR/Rewrite.h"
#include "IR/Verify/VerifierState.h"

void hd_verify_fault(hd_verifier_t *v, hd_loc_t loc, const char *format, ...) {
  va_list args;
  va_start(args, format);
  hd_error(v->diags, loc, HD_E0310, hd_arena_vprintf(&v->arena, format, args));
  va_end(args);
  v->errors++;
}

bool hd_verifier_sees(const hd_verifier_t *v, const hd_var_t *var) {
  return var->table || hd_visible_name(&v->visible, var) != NULL;
}

void hd_verifier_declare(hd_verifier_t *v, const hd_var_t *var) {
  if (hd_verifier_sees(v, var))
    hd_verify_fault(v, var->loc, "'%s' is declared twice", var->name);
  hd_visible_push(&v->visible, var, var->name);
}

static void verify_extent(hd_verifier_t *v, const char *what,
                          const hd_expr_t *const dims[3], const int64_t most[3],
                          int64_t most_product) {
  int64_t product = 1;
  for (int i = 0; i < 3; i++) {
    int64_t size;
    if (!dims[i])
      continue;
    if (!hd_expr_fold_int(dims[i], &size)) {
      hd_error(v->diags, dims[i]->loc, HD_E0210, " launch size");
      v->errors++;
      return;
    }
    if (size < 1 || size > most[i]) {
      hd_error(v->diags, dims[i]->loc, HD_E0307, what, 1LL, (long long)most[i],
               (long long)size);
      v->errors++;
      return;
    }
    product *= size;
  }
  if (product > most_product) {
    hd_error(v->diags, v->func->loc, HD_E0307, what, 1LL,
             (long long)most_product, (long long)product);
    v->errors++;
  }
}

static void verify_launch_clauses(hd_verifier_t *v) {
  static const int64_t most_block[] = {1024, 1024, 64};
  static const int64_t most_cluster[] = {16, 16, 16};
  const hd_launch_t *launch = &v->func->launch;
  v->host = true;
  for (int i = 0; i < 3; i++) {
    if (launch->grid[i])
      hd_verify_value(v, launch->grid[i], hd_type(HD_I32), "a grid dimension");
    if (launch->block[i])
      hd_verify_value(v, launch->block[i], hd_type(HD_I32),
                      "a block dimension");
    if (launch->cluster[i])
      hd_verify_value(v, launch->cluster[i], hd_type(HD_I32),
                      "a cluster dimension");
  }
  verify_extent(v, "the threads of a block", launch->block, most_block, 1024);
  verify_extent(v, "the blocks of a cluster", launch->cluster, most_cluster,
                16);
  v->host = false;
}

static void verify_func(hd_verifier_t *v, const hd_func_t *func) {
  v->func = func;
  for (uint32_t i = 0; i < func->num_sizes; i++)
    hd_verifier_declare(v, func->sizes[i].var);
  v->signature = func->kind == HD_FUNC_FN;
  for (uint32_t i = 0; i < func->num_params; i++) {
    const hd_var_t *param = func->params[i];
    if (param->tensor)
      hd_verify_tensor(v, param);
    else if ((hd_scalar_class((hd_scalar_t)param->type.scalar) ==
                  HD_CLASS_OPAQUE &&
              !(hd_type_equal(param->type, hd_type(HD_MAP)) &&
                func->kind == HD_FUNC_FN)) ||
             hd_type_bits(param->type) == 0)
      hd_verify_fault(v, param->loc, "a parameter of type %s",
                      hd_type_name(param->type));
    hd_verifier_declare(v, param);
  }
  v->signature = false;
  if (hd_scalar_class((hd_scalar_t)func->result.scalar) == HD_CLASS_OPAQUE)
    hd_verify_fault(v, func->loc, "a result of type %s",
                    hd_type_name(func->result));
  for (uint32_t i = 0; i < func->num_maps; i++) {
    hd_verify_map(v, func->maps[i]);
    hd_verifier_declare(v, func->maps[i]);
  }
  if (func->kind == HD_FUNC_KERNEL)
    verify_launch_clauses(v);
  v->host = func->kind == HD_FUNC_PLAN;
  hd_verify_block(v, func->body);
  v->host = false;
  if (!hd_type_equal(func->result, hd_type(HD_VOID)) &&
      hd_block_falls_through(func->body)) {
    hd_error(v->diags, func->loc, HD_E0308, func->name);
    v->errors++;
  }
}

bool hd_func_verify(hd_context_t *context, const hd_func_t *func) {
  hd_verifier_t v = {.diags = &context->diags};
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(&context->diags);
  hd_arena_init_local(&v.arena, &context->budget);
  v.visible.arena = &v.arena;
  verify_func(&v, func);
  hd_arena_fini(&v.arena);
  hd_func_note_instance(&context->diags, mark, func);
  return v.errors == 0;
}

// Of one with a list of operands what it is for each number that was asked for.
static bool verify_task_item(hd_context_t *context, const hd_task_t *task) {
  bool ok = true;
  if (!task->text)
    return hd_task_verify(context, task);
  for (uint32_t i = 0; i < HD_MAX_LISTED && ok; i++)
    ok = !task->text->tasks[i] || hd_task_verify(context, task->text->tasks[i]);
  return ok;
}

// Calls come first: other rules look into what is called, which has to end.
bool hd_module_verify_from(hd_module_t *module, size_t first) {
  bool ok = true;
  if (!hd_calls_verify(module, first))
    return false;
  for (size_t i = first; i < module->items.size; i++)
    switch (module->items.data[i].kind) {
    case HD_ITEM_FUNC:
      ok &= hd_func_verify(module->context, module->items.data[i].u.func);
      break;
    case HD_ITEM_TASK:
      ok &= verify_task_item(module->context, module->items.data[i].u.task);
      break;
    case HD_ITEM_GRAPH:
      ok &= hd_graph_verify(module->context, module->items.data[i].u.graph);
      break;
    case HD_ITEM_REWRITE:
      ok &= hd_rewrite_verify(module->context, module->items.data[i].u.rewrite);
      break;
    case HD_ITEM_CONST:    // Its uses have its value.
    case HD_ITEM_TEMPLATE: // Its parser has looked at all there is.
    case HD_ITEM_GENERIC:  // Its instances are functions.
      break;
    }
  return ok;
}

bool hd_module_verify_text(hd_module_t *module, size_t first) {
  if (!hd_module_verify_from(module, first))
    return false;
  bool ok = true;
  for (size_t i = first; i < module->items.size; i++)
    if (module->items.data[i].kind == HD_ITEM_FUNC)
      ok &=
          hd_func_verify_bounds(module->context, module->items.data[i].u.func);
  return ok;
}

bool hd_module_verify(hd_module_t *module) {
  return hd_module_verify_from(module, 0);
}
