// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program's plan as text: with the heads of its kernels, whose code is
// somewhere else.
#include "IR/EarlyLaunch.h"
#include "IR/Generic.h"
#include "IR/Intrinsic.h"
#include "IR/Rewrite.h"
#include "IR/Text/Parser.h"
#include "IR/Text/Printer.h"
#include "IR/Verify/Verifier.h"
#include "Runtime/Saved.h"
#include "Schedule/Schedule.h"
#include "Schedule/Translate/Build.h"
#include "TaskMapping/TaskMapping.h"

#include <string.h>

static bool push_shared(void *builder, const hd_stmt_t *stmt) {
  if (stmt->kind == HD_STMT_DECLARE &&
      stmt->u.declare.var->tensor->scope == HD_SCOPE_SHARED)
    hd_b_push(builder, stmt);
  return true;
}

// What a launch must know of a kernel: all but what it does. One that waits for
// the launch before waits in its head, too: that it does so in time was proven
// of the whole, and launches that may begin early ask for it.
static hd_func_t *head_of(hd_module_t *module, const hd_func_t *func) {
  hd_arena_t *arena = &module->arena;
  hd_func_t *head = HD_ARENA_NEW(arena, hd_func_t);
  hd_builder_t b = {
      .context = module->context, .arena = arena, .loc = func->loc};
  hd_open_block_t block;
  *head = *func;
  head->generic = NULL;
  head->name =
      hd_module_fresh_name(arena, module, hd_func_identifier(arena, func));
  hd_b_open(&b, &block);
  hd_walk_block(func->body, push_shared, NULL, &b);
  if (hd_func_waits(arena, func))
    hd_b_call(&b, hd_b_intrinsic(&b, HD_INTRINSIC_GRIDDEPCONTROL_WAIT,
                                 hd_type(HD_VOID), NULL, 0));
  head->body = hd_b_close(&b);
  return head;
}

typedef struct planner {
  const hd_program_t *program;
  hd_func_t **heads;
} planner_t;

static bool launch_head(hd_rewriter_t *rewriter, const hd_stmt_t *stmt,
                        hd_stmt_list_t *out) {
  const planner_t *p = rewriter->argument;
  if (stmt->kind != HD_STMT_LAUNCH)
    return false;
  size_t site = 0;
  while (p->program->sites.data[site].stmt != stmt)
    site++;
  hd_stmt_t *launch = hd_stmt_copy(rewriter->arena, stmt);
  launch->u.launch.kernel = p->heads[p->program->sites.data[site].variant];
  hd_stmt_list_push(rewriter->arena, out, launch);
  return true;
}

static void add_func(hd_module_t *module, hd_func_t *func) {
  hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = func};
  hd_vec_push(&module->arena, &module->items, item);
}

void hd_saved_print_plan(hd_context_t *context, const hd_program_t *program,
                         hd_buffer_t *text, hd_buffer_t *symbols) {
  hd_module_t *module = hd_module_create(context);
  hd_arena_t *arena = &module->arena;
  size_t count = program->variants.size;
  planner_t planner = {program, HD_ARENA_ARRAY(arena, hd_func_t *, count + 1)};
  for (size_t i = 0; i < count; i++) {
    const hd_kernel_t *kernel = program->kernels[i];
    planner.heads[i] = head_of(module, program->variants.data[i].func);
    add_func(module, planner.heads[i]);
    const char *symbol = kernel->code.symbol
                             ? kernel->code.symbol
                             : hd_func_symbol(arena, kernel->func);
    hd_buffer_write(symbols, symbol, strlen(symbol) + 1);
  }
  hd_rewriter_t rewriter = {
      .arena = arena, .argument = &planner, .enter = launch_head};
  hd_func_t plan = *hd_rewrite_func(&rewriter, program->entry);
  plan.name = hd_module_fresh_name(arena, module, plan.name);
  add_func(module, &plan);
  hd_module_print(module, text);
  hd_module_destroy(module);
}

bool hd_saved_parse_plan(hd_context_t *context, const char *path,
                         const char *text, size_t size, hd_module_t **made) {
  size_t part = hd_times_enter(&context->times, "parse");
  hd_module_t *module = *made = hd_module_create(context);
  bool ok = hd_module_parse_into(module, path, text, size, 1) &&
            hd_module_verify(module);
  for (size_t i = 0; ok && i < module->items.size; i++)
    ok = module->items.data[i].kind == HD_ITEM_FUNC &&
         hd_func_verify_mappings(context, module->items.data[i].u.func);
  hd_times_leave(&context->times, part);
  const hd_func_t *plan = ok ? hd_module_entry(module) : NULL;
  return plan && plan->kind == HD_FUNC_PLAN;
}
