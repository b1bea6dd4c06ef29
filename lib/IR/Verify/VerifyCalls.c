// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls among functions: none may lead back to itself, and chains of calls are
// short enough to be walked recursively.
//
// A depth-first walk over the call graph. A function that is met while it is on
// the path calls itself. Each body is walked once.
#include "IR/Rewrite.h"
#include "IR/Verify/Verifier.h"
#include "Support/Map.h"

enum { MAX_CALLS = 64 };

typedef struct caller {
  const hd_func_t *func;
  bool on_path;
  unsigned height; // Calls below it; 0 until it has been walked.
} caller_t;

typedef struct calls {
  hd_diagnostics_t *diags;
  hd_arena_t arena;
  hd_ptr_map_t callers; // By function.
  caller_t *top;        // The function being walked.
  unsigned depth;
  bool ok;
} calls_t;

static void walk(calls_t *calls, caller_t *caller);

static caller_t *caller_of(calls_t *calls, const hd_func_t *func) {
  caller_t *caller = hd_ptr_map_find(&calls->callers, func);
  if (!caller) {
    caller = HD_ARENA_NEW(&calls->arena, caller_t);
    caller->func = func;
    hd_ptr_map_set(&calls->arena, &calls->callers, func, caller);
  }
  return caller;
}

static bool visit_call(void *argument, const hd_expr_t *e) {
  calls_t *calls = argument;
  if (e->kind != HD_EXPR_CALL)
    return true;
  caller_t *callee = caller_of(calls, e->u.func);
  if (callee->on_path) {
    calls->ok = hd_error(calls->diags, e->loc, HD_E0215, callee->func->name);
    return true;
  }
  walk(calls, callee);
  if (calls->top->height <= callee->height)
    calls->top->height = callee->height + 1;
  return true;
}

static void walk(calls_t *calls, caller_t *caller) {
  // A walk that was cut short is taken up again from the module's items.
  if (caller->height || calls->depth > MAX_CALLS)
    return;
  caller_t *outer = calls->top;
  calls->top = caller;
  calls->depth++;
  caller->on_path = true;
  caller->height = 1;
  hd_walk_block(caller->func->body, NULL, visit_call, calls);
  caller->on_path = false;
  calls->depth--;
  calls->top = outer;
  if (caller->height > MAX_CALLS) {
    calls->ok =
        hd_error(calls->diags, caller->func->loc, HD_E0105, (int)MAX_CALLS);
    caller->height = 1; // Reported once for the chain.
  }
}

bool hd_calls_verify(const hd_module_t *module, size_t first) {
  calls_t calls = {.diags = &module->context->diags, .ok = true};
  hd_arena_init_local(&calls.arena, &module->context->budget);
  for (size_t i = first; i < module->items.size; i++)
    if (module->items.data[i].kind == HD_ITEM_FUNC)
      walk(&calls, caller_of(&calls, module->items.data[i].u.func));
  hd_arena_fini(&calls.arena);
  return calls.ok;
}
