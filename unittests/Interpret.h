// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the scalar part of a function directly on its IR: what it would store is
// kept as a trace. Loops over mappings run by the definition of the mapping. To
// be compared with the trace of the same function after a pass.

#ifndef HIDET_UNITTESTS_INTERPRET_H
#define HIDET_UNITTESTS_INTERPRET_H

#include "IR/Module.h"
#include "Support/Map.h"
#include "TaskMapping/TaskMapping.h"

typedef struct interpreter {
  hd_arena_t arena;
  hd_ptr_map_t values; // Variables to constants.
  const hd_expr_t *builtins[HD_BUILTIN_COUNT];
  HD_VEC(int64_t) trace;
  bool trapped; // Something had no value: a division by zero.
  int leaving;  // HD_STMT_RETURN, BREAK or CONTINUE, on the way; 0: none is.
} interpreter_t;

static inline void interpreter_init(interpreter_t *in) {
  *in = (interpreter_t){0};
  hd_arena_init(&in->arena, NULL);
}

static inline void interpreter_fini(interpreter_t *in) {
  hd_arena_fini(&in->arena);
}

static inline void interpreter_set(interpreter_t *in, const hd_var_t *var,
                                   int64_t value) {
  hd_ptr_map_set(&in->arena, &in->values, var,
                 hd_expr_int(&in->arena, var->type, value));
}

static bool interpreter_leaf(void *argument, const hd_expr_t *leaf,
                             hd_number_t *value) {
  const interpreter_t *in = argument;
  const hd_expr_t *known = leaf->kind == HD_EXPR_BUILTIN
                               ? in->builtins[leaf->u.builtin]
                               : hd_ptr_map_get(&in->values, leaf->u.var);
  if (known)
    *value = hd_expr_number(known);
  return known != NULL;
}

static int64_t interpreter_eval(interpreter_t *in, const hd_expr_t *e) {
  const hd_fold_t fold = {.leaf = interpreter_leaf, .argument = in};
  hd_number_t value = {0};
  in->trapped |= !hd_expr_value(&fold, e, &value);
  return value.i;
}

static void interpret(interpreter_t *in, hd_block_t block);

// After a turn of a loop: whether there may be another.
static bool interpreter_goes_on(interpreter_t *in) {
  int leaving = in->leaving;
  if (leaving == HD_STMT_BREAK || leaving == HD_STMT_CONTINUE)
    in->leaving = 0;
  return !in->trapped && (leaving == 0 || leaving == HD_STMT_CONTINUE);
}

static void interpret_mapfor(interpreter_t *in, const hd_stmt_t *stmt) {
  const hd_mapping_t *m = stmt->u.mapfor.mapping;
  int64_t worker =
      stmt->u.mapfor.worker ? interpreter_eval(in, stmt->u.mapfor.worker) : 0;
  hd_tasks_t tasks;
  const hd_fold_t fold = {.leaf = interpreter_leaf, .argument = in};
  if (!hd_mapping_tasks(&in->arena, m, worker, &fold, &tasks)) {
    in->trapped = true;
    return;
  }
  bool more = !in->trapped;
  for (int64_t t = 0; t < tasks.count && more; ++t) {
    for (unsigned a = 0; a < m->rank; ++a)
      interpreter_set(in, stmt->u.mapfor.vars[a],
                      tasks.indices[t * m->rank + a]);
    interpret(in, stmt->u.mapfor.body);
    more = interpreter_goes_on(in);
  }
}

static void interpret_for(interpreter_t *in, const hd_stmt_t *stmt) {
  int64_t first = interpreter_eval(in, stmt->u.loop.first);
  int64_t limit = interpreter_eval(in, stmt->u.loop.limit);
  int64_t step =
      stmt->u.loop.step ? interpreter_eval(in, stmt->u.loop.step) : 1;
  bool more = !in->trapped;
  for (int64_t i = first; i < limit && more; i += step) {
    interpreter_set(in, stmt->u.loop.var, i);
    interpret(in, stmt->u.loop.body);
    more = interpreter_goes_on(in);
  }
}

static void interpret_store(interpreter_t *in, const hd_stmt_t *stmt) {
  for (unsigned i = 0; i < stmt->u.store.num_indices; ++i) {
    int64_t index = interpreter_eval(in, stmt->u.store.indices[i]);
    hd_vec_push(&in->arena, &in->trace, index);
  }
  int64_t value = interpreter_eval(in, stmt->u.store.value);
  hd_vec_push(&in->arena, &in->trace, value);
}

static void interpret(interpreter_t *in, hd_block_t block) {
  for (unsigned i = 0; i < block.size && !in->trapped && !in->leaving; ++i) {
    const hd_stmt_t *stmt = block.stmts[i];
    if (stmt->kind == HD_STMT_LET)
      interpreter_set(in, stmt->u.let.var,
                      interpreter_eval(in, stmt->u.let.value));
    else if (stmt->kind == HD_STMT_STORE)
      interpret_store(in, stmt);
    else if (stmt->kind == HD_STMT_FOR)
      interpret_for(in, stmt);
    else if (stmt->kind == HD_STMT_MAPFOR)
      interpret_mapfor(in, stmt);
    else if (stmt->kind == HD_STMT_IF)
      interpret(in, interpreter_eval(in, stmt->u.branch.condition)
                        ? stmt->u.branch.then
                        : stmt->u.branch.otherwise);
    else if (stmt->kind == HD_STMT_RETURN || stmt->kind == HD_STMT_BREAK ||
             stmt->kind == HD_STMT_CONTINUE)
      in->leaving = stmt->kind;
  }
}

#endif
