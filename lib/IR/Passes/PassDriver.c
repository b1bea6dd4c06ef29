// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running passes: over every function or graph of a module, with verification
// after each and the time it took.

#include "IR/Graph/Graph.h"
#include "IR/Passes/Pass.h"
#include "IR/Passes/Passes.h"
#include "IR/Rewrite.h"
#include "IR/Verify/Verifier.h"

const hd_pass_t hd_ir_passes[] = {
#define HD_PASS HD_PASS_ROW
#include "IR/Passes/Passes.def"
#undef HD_PASS
};
const size_t hd_ir_num_passes = sizeof hd_ir_passes / sizeof hd_ir_passes[0];

// A pass may make known what breaks a rule: the place of registers, a size, the
// step of a loop, that a schedule is for other sizes than its node.
static bool is_inputs_fault(const hd_diagnostic_t *d) {
  for (; d; d = d->next)
    if (d->code != HD_E0307 && d->code != HD_E0312 && d->code != HD_E0313 &&
        d->code != HD_E0316)
      return false;
  return true;
}

// Other invalid IR that a pass leaves behind is our fault. last: of the
// diagnostics before it was verified.
static bool report_invalid(hd_context_t *context, const hd_diagnostic_t *last,
                           hd_loc_t loc, const hd_pass_t *pass) {
  if (is_inputs_fault(last ? last->next : context->diags.first))
    return false;
  hd_error(&context->diags, loc, HD_E0311, pass->name);
  context->diags.exit_class = hd_diagnostic_exit(HD_E0311);
  return false;
}

static bool verify_after(hd_module_t *module, const hd_func_t *func,
                         const hd_pass_t *pass) {
  const hd_diagnostic_t *last = module->context->diags.last;
  size_t part = hd_times_enter(&module->context->times, "verify");
  bool ok = hd_func_verify(module->context, func) ||
            report_invalid(module->context, last, func->loc, pass);
  hd_times_leave(&module->context->times, part);
  return ok;
}

static bool is_no_point(void *point, const hd_stmt_t *stmt) {
  if (stmt->kind == HD_STMT_POINT)
    *(const hd_stmt_t **)point = stmt;
  return stmt->kind != HD_STMT_POINT;
}

static bool is_no_staged_point(void *point, const hd_stmt_t *stmt) {
  return stmt->kind != HD_STMT_POINT || !stmt->u.point.staging ||
         stmt->u.point.kind == HD_POINT_LOAD || is_no_point(point, stmt);
}

static const struct {
  hd_visit_stmt_t visit; // Stops at what stands in the way, and gives it.
  hd_pass_before_t before;
} needs[] = {
    [HD_NEEDS_NOTHING] = {NULL, {NULL, NULL}},
    [HD_NEEDS_NO_POINTS] = {is_no_point, {"lower-points", "fusion points"}},
    [HD_NEEDS_NO_STAGED_POINTS] = {is_no_staged_point,
                                   {"lower-points",
                                    "fusion points through shared memory"}},
};

hd_pass_before_t hd_pass_before(const hd_pass_t *pass) {
  return needs[pass->needs].before;
}

// Whether a function is what the pass can work on; else says what comes first.
static bool check_needs(hd_module_t *module, const hd_func_t *func,
                        const hd_pass_t *pass) {
  const hd_stmt_t *found = NULL;
  if (!needs[pass->needs].visit ||
      hd_walk_block(func->body, needs[pass->needs].visit, NULL, &found))
    return true;
  hd_pass_before_t before = hd_pass_before(pass);
  return hd_error(&module->context->diags, found->loc, HD_E0509, pass->name,
                  before.pass, before.what);
}

static void run_on(hd_module_t *module, hd_func_t *func, const hd_pass_t *pass,
                   const hd_pass_args_t *args, bool verify,
                   hd_pass_result_t *result) {
  const hd_func_t *version =
      check_needs(module, func, pass) ? pass->run(module, func, args) : NULL;
  if (!version)
    result->ok = false;
  if (!version || version == func)
    return;
  result->changed = true;
  hd_func_replace(func, version);
  if (verify)
    result->ok &= verify_after(module, func, pass);
}

static bool verify_item(hd_module_t *module, const hd_item_t *item) {
  return item->kind == HD_ITEM_GRAPH
             ? hd_graph_verify(module->context, item->u.graph)
             : hd_func_verify(module->context, item->u.func);
}

static bool is_ordered(void *argument, const hd_stmt_t *stmt) {
  (void)argument;
  return stmt->kind != HD_STMT_LAUNCH || !stmt->u.launch.programmatic;
}

// Plans whose launches may begin early, and graphs whose nodes name what
// computes them.
static bool depends_on_kernels(const hd_item_t *item) {
  if (item->kind == HD_ITEM_FUNC)
    return item->u.func->kind == HD_FUNC_PLAN &&
           !hd_walk_block(item->u.func->body, is_ordered, NULL, NULL);
  for (size_t i = 0;
       item->kind == HD_ITEM_GRAPH && i < item->u.graph->nodes.size; ++i)
    if (item->u.graph->nodes.data[i]->schedule)
      return true;
  return false;
}

// What other items say of functions that have changed.
static bool verify_users(hd_module_t *module, const hd_pass_t *pass) {
  bool ok = true;
  for (size_t i = 0; i < module->items.size; ++i) {
    const hd_item_t *item = &module->items.data[i];
    const hd_diagnostic_t *last = module->context->diags.last;
    if (depends_on_kernels(item) && !verify_item(module, item))
      ok = report_invalid(module->context, last, hd_item_loc(item), pass);
  }
  return ok;
}

// Callers come before what they call: a pipeline that puts functions in the
// place of calls finds them as they were written. A pass may add items; those
// are its results, not its input.
static void run_on_functions(hd_module_t *module, const hd_pass_t *pass,
                             const hd_pass_args_t *args, bool verify,
                             hd_pass_result_t *result) {
  size_t count = module->items.size;
  for (int fns = 0; fns < 2; ++fns)
    for (size_t i = 0; i < count; ++i) {
      const hd_item_t *item = &module->items.data[i];
      if (item->kind == HD_ITEM_FUNC &&
          (item->u.func->kind == HD_FUNC_FN) == (fns == 1) &&
          (pass->level == HD_LEVEL_KERNEL ||
           item->u.func->kind == HD_FUNC_PLAN))
        run_on(module, item->u.func, pass, args, verify, result);
    }
  if (verify && result->changed)
    result->ok &= verify_users(module, pass);
}

// Tasks that a pass has made, from number added on, stand before what uses
// them.
static void put_tasks_first(hd_module_t *module, size_t added) {
  size_t tasks = 0;
  for (size_t i = added; i < module->items.size; ++i) {
    hd_item_t item = module->items.data[i];
    if (item.kind != HD_ITEM_TASK)
      continue;
    memmove(&module->items.data[tasks + 1], &module->items.data[tasks],
            (i - tasks) * sizeof(item));
    module->items.data[tasks++] = item;
  }
  if (tasks)
    hd_module_reindex(module);
}

static void run_on_graphs(hd_module_t *module, const hd_pass_t *pass,
                          const hd_pass_args_t *args, bool verify,
                          hd_pass_result_t *result) {
  hd_context_t *context = module->context;
  size_t count = module->items.size;
  for (size_t i = 0; i < count; ++i) {
    hd_item_t version = module->items.data[i];
    if (version.kind != HD_ITEM_GRAPH)
      continue;
    const hd_graph_t *graph = version.u.graph;
    size_t first = module->items.size;
    if (!pass->run_graph(module, graph, args, &version)) {
      result->ok = false;
      continue;
    }
    bool same = version.kind == HD_ITEM_GRAPH && version.u.graph == graph;
    result->changed |= !same || module->items.size > first;
    module->items.data[i] = version;
    const hd_diagnostic_t *last = context->diags.last;
    if (verify && !((same || verify_item(module, &version)) &&
                    hd_module_verify_from(module, first)))
      result->ok = report_invalid(context, last, hd_item_loc(&version), pass);
  }
  put_tasks_first(module, count);
}

hd_pass_result_t hd_pass_run(hd_module_t *module, const hd_pass_t *pass,
                             const hd_pass_args_t *args,
                             const hd_pass_config_t *config) {
  static const hd_pass_args_t no_args = {NULL, false};
  hd_pass_result_t result = {.ok = true};
  if (args &&
      !hd_pass_check_options(&module->context->diags, pass, args->options))
    return (hd_pass_result_t){0};
  unsigned errors = module->context->diags.num_errors;
  uint64_t start = hd_clock_ns();
  size_t part = hd_times_enter(&module->context->times, pass->name);
  bool verify = config && config->verify_each;
  switch (pass->level) {
  case HD_LEVEL_KERNEL:
  case HD_LEVEL_PLAN:
    run_on_functions(module, pass, args ? args : &no_args, verify, &result);
    break;
  case HD_LEVEL_GRAPH:
    run_on_graphs(module, pass, args ? args : &no_args, verify, &result);
    break;
  }
  // What was told is an error, whatever the pass made of it.
  result.ok &= module->context->diags.num_errors == errors;
  hd_times_leave(&module->context->times, part);
  result.ns = hd_clock_ns() - start;
  return result;
}
