// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the IR's verifier cannot know without the algebra: that mappings do each
// task once, and that loops have as many workers as their mapping is for.

#include "IR/Exits.h"
#include "IR/Generic.h"
#include "IR/Text/Printer.h"
#include "TaskMapping/TaskMapping.h"

#include <inttypes.h>

static void print_task(hd_buffer_t *out, const hd_mapping_facts_t *facts) {
  hd_buffer_puts(out, "task [");
  for (unsigned a = 0; a < facts->mapping->rank; ++a)
    hd_buffer_printf(out, "%s%" PRId64, a ? ", " : "", facts->task[a]);
  hd_buffer_puts(out, "]");
}

static void describe(hd_buffer_t *out, const hd_mapping_facts_t *facts) {
  switch (facts->fault) {
  case HD_MAPPING_EXACT:
    return;
  case HD_MAPPING_OUTSIDE:
    print_task(out, facts);
    hd_buffer_printf(out, " of worker %" PRId64 " is outside the task shape",
                     facts->worker);
    return;
  case HD_MAPPING_TWICE:
    print_task(out, facts);
    hd_buffer_printf(out, " is done twice, the second time by worker %" PRId64,
                     facts->worker);
    return;
  case HD_MAPPING_MISSED:
    print_task(out, facts);
    hd_buffer_puts(out, " is done by no worker");
    return;
  case HD_MAPPING_LEFT_OVER:
    hd_buffer_printf(out, "there are tasks for %" PRId64 " workers only",
                     facts->worker);
    return;
  case HD_MAPPING_UNKNOWN:
    hd_buffer_puts(out, "its tasks cannot be checked: more than 2^20 of them, "
                        "or an expression that is not constant");
    return;
  }
}

bool hd_mapping_verify(hd_context_t *context, const hd_mapping_t *mapping,
                       hd_loc_t loc) {
  hd_mapping_facts_t facts = hd_mapping_analyze(mapping);
  if (facts.fault == HD_MAPPING_EXACT)
    return true;
  hd_buffer_t name = {0}, text = {0};
  hd_mapping_print(facts.mapping, &name);
  describe(&text, &facts);
  if (facts.mapping->loc.source)
    loc = facts.mapping->loc;
  hd_error(&context->diags, loc, HD_E0404, hd_buffer_text(&name),
           hd_buffer_text(&text));
  hd_buffer_fini(&name);
  hd_buffer_fini(&text);
  return false;
}

typedef struct verification {
  hd_context_t *context;
  const hd_func_t *func;
  bool ok;
} verification_t;

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t axis_threads(const hd_func_t *func, unsigned axis) {
  int64_t value = 1;
  const hd_expr_t *e = func->launch.block[axis];
  return !e || hd_expr_fold_int(e, &value) ? value : 0;
}

// How many values a builtin takes, 0 up; 0 where the launch does not settle it.
static int64_t builtin_count(const hd_func_t *func, hd_builtin_t builtin) {
  int64_t threads = hd_func_block_threads(func);
  if (builtin == HD_BUILTIN_THREAD)
    return threads;
  if (builtin == HD_BUILTIN_LANE_ID)
    return threads < 32 ? threads : 32;
  if (builtin == HD_BUILTIN_WARP)
    return ceil_div(threads, 32);
  if (builtin == HD_BUILTIN_WARPGROUP)
    return ceil_div(threads, 128);
  if (builtin == HD_BUILTIN_THREAD_X)
    return axis_threads(func, 0);
  if (builtin == HD_BUILTIN_THREAD_Y)
    return axis_threads(func, 1);
  if (builtin == HD_BUILTIN_THREAD_Z)
    return axis_threads(func, 2);
  return 0;
}

// Likewise for builtin / c and builtin % c, and those of them again.
static int64_t worker_count(const hd_func_t *func, const hd_expr_t *e) {
  int64_t divisor, count;
  if (e->kind == HD_EXPR_BUILTIN)
    return builtin_count(func, e->u.builtin);
  if ((e->kind != HD_EXPR_DIV && e->kind != HD_EXPR_MOD) ||
      !hd_expr_fold_int(e->operands[1], &divisor) || divisor < 1)
    return 0;
  count = worker_count(func, e->operands[0]);
  if (count == 0)
    return 0;
  if (e->kind == HD_EXPR_DIV)
    return ceil_div(count, divisor);
  return count < divisor ? count : divisor;
}

// Under a condition, or where some may have left, workers may stay out, so
// there only too few are known to be wrong.
static void verify_workers(verification_t *v, const hd_stmt_t *stmt,
                           bool conditional) {
  const hd_mapping_t *mapping = stmt->u.mapfor.mapping;
  const hd_expr_t *worker = stmt->u.mapfor.worker;
  int64_t given = 1;
  hd_buffer_t name = {0}, by = {0};
  if (worker) {
    given = v->func->kind == HD_FUNC_KERNEL ? worker_count(v->func, worker) : 0;
    hd_expr_print(worker, &by);
  } else {
    hd_buffer_puts(&by, "a loop without 'on'");
  }
  bool wrong = given != 0 && mapping->workers != given &&
               (!worker || !conditional || mapping->workers > given);
  if (wrong) {
    hd_mapping_print(mapping, &name);
    hd_error(&v->context->diags, worker ? worker->loc : stmt->loc, HD_E0402,
             hd_buffer_text(&name), (long long)mapping->workers,
             hd_buffer_text(&by), (long long)given);
    v->ok = false;
  }
  hd_buffer_fini(&name);
  hd_buffer_fini(&by);
}

static void verify_layout(verification_t *v, const hd_var_t *var) {
  const hd_layout_t *layout = var->tensor ? var->tensor->layout : NULL;
  for (unsigned i = 0; layout && i < layout->num_items; ++i)
    if (layout->items[i].mapping)
      v->ok &=
          hd_mapping_verify(v->context, layout->items[i].mapping, var->loc);
}

// Whether some workers may not come to a loop's later turns.
static bool may_end_early(hd_block_t body) {
  return hd_body_breaks(body) || hd_block_holds_return(body);
}

static void verify_block(verification_t *v, hd_block_t block,
                         bool conditional) {
  for (size_t i = 0; i < block.size; ++i) {
    const hd_stmt_t *stmt = block.stmts[i];
    if (stmt->kind == HD_STMT_MAPFOR) {
      if (hd_mapping_verify(v->context, stmt->u.mapfor.mapping, stmt->loc))
        verify_workers(v, stmt, conditional);
      else
        v->ok = false;
      verify_block(v, stmt->u.mapfor.body,
                   conditional || may_end_early(stmt->u.mapfor.body));
    } else if (stmt->kind == HD_STMT_DECLARE) {
      verify_layout(v, stmt->u.declare.var);
    } else if (stmt->kind == HD_STMT_FOR) {
      verify_block(v, stmt->u.loop.body,
                   conditional || may_end_early(stmt->u.loop.body));
    } else if (stmt->kind == HD_STMT_IF || stmt->kind == HD_STMT_WHILE) {
      verify_block(v, stmt->u.branch.then, true);
      verify_block(v, stmt->u.branch.otherwise, true);
    }
    conditional = conditional || hd_stmt_may_leave(stmt);
  }
}

bool hd_func_verify_mappings(hd_context_t *context, const hd_func_t *func) {
  verification_t v = {context, func, true};
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(&context->diags);
  verify_block(&v, func->body, false);
  hd_func_note_instance(&context->diags, mark, func);
  return v.ok;
}
