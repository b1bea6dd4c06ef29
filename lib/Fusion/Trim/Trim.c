// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of a plan that serves all sizes up to a bound: blocks that compute nothing
// that is needed for the sizes at hand leave at once.
//
//   kernel k(in a: f32[256, 64], out c: f32[256, 64]) grid(8) block(64) {
//     let row = block * 32
//     ...
//     c[row + i, j] = x
//
// of whose c only rows before extents[0] are needed (Need.h) becomes
//
//   kernel k_1(in a: f32[256, 64], out c: f32[256, 64], in extents: i64[1]) ...
//   {
//     let row = block * 32
//     if i64(row) >= extents[0] {
//       return
//     }
//     ...
//
// What others rely on past an extent is stored before that: 0 where they sum
// over it. Blocks that walk over tiles leave out those that are past. An extent
// is the same all through a run, so it is read before a launch waits for the
// one before it. On the simulator what nobody needs becomes NaN.
#include "Fusion/Trim/TrimState.h"

#include "Fusion/Plan/PlanState.h"
#include "IR/Passes/Passes.h"
#include "Schedule/Template/Machine.h"
#include "Schedule/Translate/Build.h"

#include <string.h>

typedef struct trimmer {
  hd_planner_t *p;
  hd_arena_t *arena;
  hd_needs_t *needs;
  hd_ptr_map_t tensors; // Of the plan, to hd_need_t over their shapes.
  hd_key_map_t kernels; // By what they were made of, to made_t.
} trimmer_t;

typedef struct made {
  const hd_func_t *kernel; // NULL: none.
  // Behind the launch's own arguments: the vectors that its kernel also reads.
  HD_VEC(const hd_var_t *) vectors;
} made_t;

// One launch, and the parameters that its kernel needs beside its own.
typedef struct trimming {
  trimmer_t *r;
  const hd_stmt_t *launch;
  HD_VEC(const hd_var_t *) params, vectors;
} trimming_t;

// --- What is needed of tensors ---

static void shape_of(const hd_var_t *var, int64_t *shape) {
  for (uint32_t i = 0; i < var->tensor->rank; i++)
    if (!hd_expr_fold_int(var->tensor->shape[i], &shape[i]))
      shape[i] = -1; // None is as long.
}

// Whether no launch writes a vector that comes in.
static bool is_kept(const trimmer_t *r, const hd_value_t *input) {
  const hd_var_t *var = hd_ptr_map_get(&r->p->tensors, input);
  return var && var->direction == HD_DIR_IN;
}

static bool has_extent(const hd_need_t *need) {
  bool any = false;
  for (unsigned i = 0; i < HD_MAX_RANK; i++)
    any |= need->axes[i].input != NULL;
  return any;
}

static void add_value(trimmer_t *r, const hd_value_t *value) {
  const hd_var_t *var = hd_ptr_map_get(&r->p->tensors, value);
  const hd_need_t *need = hd_need_of(r->needs, value);
  int64_t shape[HD_MAX_RANK];
  if (!var || !need)
    return;
  hd_tensor_type_t type = hd_scheduled_type(value);
  shape_of(var, shape);
  hd_need_t own =
      hd_need_reshape(need, type.shape, type.rank, shape, var->tensor->rank);
  for (unsigned i = 0; i < HD_MAX_RANK; i++)
    if (own.axes[i].input && !is_kept(r, own.axes[i].input))
      own.axes[i] = (hd_extent_at_t){0};
  hd_need_t *known = hd_ptr_map_find(&r->tensors, var);
  for (unsigned i = 0; known && i < HD_MAX_RANK; i++)
    if (known->axes[i].input != own.axes[i].input ||
        known->axes[i].at != own.axes[i].at)
      known->axes[i] = (hd_extent_at_t){0};
  if (known)
    return;
  known = HD_ARENA_NEW(r->arena, hd_need_t);
  *known = own;
  hd_ptr_map_set(r->arena, &r->tensors, var, known);
}

static void add_values(trimmer_t *r) {
  const hd_graph_t *graph = r->p->graph;
  for (size_t i = 0; i < graph->nodes.size; i++)
    for (uint32_t k = 0; k < graph->nodes.data[i]->num_outputs; k++)
      if (graph->nodes.data[i]->outputs[k])
        add_value(r, graph->nodes.data[i]->outputs[k]);
}

static bool is_constant(const trimmer_t *r, const hd_expr_t *arg) {
  for (size_t i = 0; arg->kind == HD_EXPR_TENSOR && i < r->p->params.size; i++)
    if (r->p->params.data[i] == arg->u.var)
      return arg->u.var->direction == HD_DIR_IN;
  return false;
}

// --- Kernels ---

static const hd_var_t *vector_of(void *argument, const hd_value_t *input) {
  trimming_t *g = argument;
  const hd_func_t *kernel = g->launch->u.launch.kernel;
  const hd_var_t *vector = hd_ptr_map_get(&g->r->p->tensors, input);
  for (uint32_t i = 0; i < kernel->num_params; i++)
    if (g->launch->u.launch.args[i]->kind == HD_EXPR_TENSOR &&
        g->launch->u.launch.args[i]->u.var == vector)
      return kernel->params[i];
  for (size_t i = 0; i < g->vectors.size; i++)
    if (g->vectors.data[i] == vector)
      return g->params.data[i];
  hd_var_t *param = HD_ARENA_COPY(g->r->arena, hd_var_t, vector);
  param->direction = HD_DIR_IN;
  hd_vec_push(g->r->arena, &g->vectors, vector);
  hd_vec_push(g->r->arena, &g->params, (const hd_var_t *)param);
  return param;
}

static const hd_expr_t *all_of(const hd_trim_t *t) {
  const hd_expr_t *all = t->conditions.data[0];
  for (size_t i = 1; i < t->conditions.size; i++)
    all = hd_expr_binary(t->arena, HD_EXPR_AND, all, t->conditions.data[i]);
  return all;
}

static bool note_place(void *argument, const hd_expr_t *e) {
  hd_trim_t *t = ((void **)argument)[0];
  uintptr_t *last = ((void **)argument)[1];
  uintptr_t place = e->kind == HD_EXPR_VAR
                        ? (uintptr_t)hd_ptr_map_get(&t->places, e->u.var)
                        : 0;
  *last = place > *last ? place : *last;
  return true;
}

// if past { what is left to do; return }, behind the names that it is told by.
static hd_block_t leave_first(hd_trim_t *t, hd_builder_t *b) {
  hd_block_t body = t->kernel->body, past = hd_trim_past(t, body);
  const hd_expr_t *condition = all_of(t);
  uintptr_t place = 0;
  void *argument[] = {t, &place};
  hd_open_block_t block, then;
  hd_walk_expr(condition, note_place, argument);
  hd_b_open(b, &block);
  for (uint32_t i = 0; i < body.size; i++) {
    if (i == place) {
      hd_b_open(b, &then);
      for (uint32_t k = 0; k < past.size; k++)
        hd_b_push(b, past.stmts[k]);
      hd_b_push(b, hd_stmt_make(t->arena, HD_STMT_RETURN, t->kernel->loc));
      hd_b_if(b, condition, hd_b_close(b), (hd_block_t){0});
    }
    hd_b_push(b, body.stmts[i]);
  }
  return hd_b_close(b);
}

typedef struct walker {
  hd_trim_t *trim;
  hd_builder_t *b;
} walker_t;

// for t in walk { if past { what is left to do } else { body } }
static bool leave_out(hd_rewriter_t *rewriter, const hd_stmt_t *stmt,
                      hd_stmt_list_t *out) {
  walker_t *w = rewriter->argument;
  hd_trim_t *t = w->trim;
  hd_open_block_t block;
  if (stmt->kind != HD_STMT_FOR || !hd_trim_is_walk(t, stmt))
    return false;
  hd_rewriter_t substitute = {.arena = t->arena};
  hd_rewriter_map(&substitute, t->walk->u.loop.var, stmt->u.loop.var);
  const hd_expr_t *past = hd_rewrite_expr(&substitute, all_of(t));
  hd_block_t left = hd_trim_past(t, stmt->u.loop.body);
  hd_stmt_t *copy = hd_stmt_copy(t->arena, stmt);
  hd_b_open(w->b, &block);
  if (left.size)
    hd_b_if(w->b, past, left, stmt->u.loop.body);
  else
    hd_b_if(w->b, hd_expr_unary(t->arena, HD_EXPR_NOT, past), stmt->u.loop.body,
            (hd_block_t){0});
  copy->u.loop.body = hd_b_close(w->b);
  hd_stmt_list_push(t->arena, out, copy);
  return true;
}

static const hd_func_t *make_kernel(trimming_t *g, hd_trim_t *t) {
  trimmer_t *r = g->r;
  hd_builder_t b = {.context = r->p->module->context,
                    .arena = r->arena,
                    .loc = t->kernel->loc};
  walker_t walker = {t, &b};
  hd_rewriter_t rewriter = {
      .arena = r->arena, .argument = &walker, .enter = leave_out};
  hd_func_t *made = HD_ARENA_COPY(r->arena, hd_func_t, t->kernel);
  made->body = t->walk ? hd_rewrite_block(&rewriter, t->kernel->body)
                       : leave_first(t, &b);
  if (t->why)
    return NULL;
  uint32_t count = made->num_params;
  const hd_var_t **params =
      HD_ARENA_ARRAY(r->arena, const hd_var_t *, count + g->params.size + 1);
  memcpy(params, made->params, count * sizeof(*params));
  for (size_t i = 0; i < g->params.size; i++)
    params[count++] = g->params.data[i];
  made->params = params;
  made->num_params = count;
  made->name = hd_module_fresh_name(r->arena, r->p->module, t->kernel->name);
  hd_item_t item = {.kind = HD_ITEM_FUNC, .u.func = made};
  hd_vec_push(r->arena, &r->p->module->items, item);
  return made;
}

// --- Launches ---

// Whether anything is known of what it stores, and a text for all of that.
static bool launch_key(const trimmer_t *r, const hd_stmt_t *stmt,
                       hd_buffer_t *key) {
  const hd_func_t *kernel = stmt->u.launch.kernel;
  bool any = false;
  hd_buffer_printf(key, "%p", (const void *)kernel);
  for (uint32_t i = 0; i < kernel->num_params; i++) {
    const hd_expr_t *arg = stmt->u.launch.args[i];
    bool constant = is_constant(r, arg);
    const hd_need_t *need = arg->kind == HD_EXPR_TENSOR
                                ? hd_ptr_map_get(&r->tensors, arg->u.var)
                                : NULL;
    // A vector that comes in tells what is 0 from some place on.
    any |= (need && has_extent(need)) ||
           (constant && arg->u.var->type.scalar == HD_I64 &&
            arg->u.var->tensor->rank == 1);
    hd_buffer_printf(key, " %c", constant ? 'c' : '-');
    for (unsigned k = 0; need && k < HD_MAX_RANK; k++)
      if (need->axes[k].input)
        hd_buffer_printf(key, "%u:%p.%lld", k,
                         (const void *)need->axes[k].input,
                         (long long)need->axes[k].at);
  }
  return any;
}

static const hd_need_t *need_of_param(const trimmer_t *r, const hd_var_t *param,
                                      const hd_expr_t *arg) {
  const hd_need_t *need = arg->kind == HD_EXPR_TENSOR
                              ? hd_ptr_map_get(&r->tensors, arg->u.var)
                              : NULL;
  int64_t from[HD_MAX_RANK], to[HD_MAX_RANK];
  if (!need || !param->tensor)
    return NULL;
  shape_of(arg->u.var, from);
  shape_of(param, to);
  hd_need_t *made = HD_ARENA_NEW(r->arena, hd_need_t);
  *made = hd_need_reshape(need, from, arg->u.var->tensor->rank, to,
                          param->tensor->rank);
  return made;
}

static made_t *make_for(trimmer_t *r, const hd_stmt_t *stmt) {
  const hd_func_t *kernel = stmt->u.launch.kernel;
  trimming_t g = {.r = r, .launch = stmt};
  const hd_schedule_options_t *schedules = r->p->module->context->schedules;
  hd_pass_args_t args = {0};
  uint32_t count = kernel->num_params;
  const hd_need_t **needs =
      HD_ARENA_ARRAY(r->arena, const hd_need_t *, count + 1);
  bool *constant = HD_ARENA_ARRAY(r->arena, bool, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    needs[i] = need_of_param(r, kernel->params[i], stmt->u.launch.args[i]);
    constant[i] = is_constant(r, stmt->u.launch.args[i]);
  }
  hd_trim_t t = {.arena = r->arena,
                 .kernel = hd_pass_inline(r->p->module, kernel, &args),
                 .needs = needs,
                 .constant = constant,
                 .poisons = schedules && schedules->simulated,
                 .vector = vector_of,
                 .argument = &g};
  hd_trim_look(&t);
  made_t *made = HD_ARENA_NEW(r->arena, made_t);
  made->kernel = t.why ? NULL : make_kernel(&g, &t);
  for (size_t i = 0; i < g.vectors.size; i++)
    hd_vec_push(r->arena, &made->vectors, g.vectors.data[i]);
  if (r->p->explain)
    hd_remark(
        &r->p->module->context->diags, stmt->loc,
        "trim: blocks of '%s' past an extent %s%s", kernel->name,
        made->kernel ? "leave at once" : "stay: ", made->kernel ? "" : t.why);
  return made;
}

static const hd_stmt_t *trim_launch(trimmer_t *r, const hd_stmt_t *stmt) {
  hd_buffer_t key;
  hd_buffer_init_local(&key, r->arena->budget);
  made_t *made = NULL;
  if (launch_key(r, stmt, &key)) {
    const char *text = hd_buffer_text(&key);
    made = hd_key_map_find_name(&r->kernels, text);
    if (!made) {
      text = hd_arena_strndup(r->arena, text, key.size);
      made = make_for(r, stmt);
      hd_key_map_set_name(r->arena, &r->kernels, text, made);
    }
  }
  hd_buffer_fini(&key);
  if (!made || !made->kernel)
    return stmt;
  uint32_t count = stmt->u.launch.num_args;
  const hd_expr_t **args = HD_ARENA_ARRAY(r->arena, const hd_expr_t *,
                                          count + made->vectors.size + 1);
  memcpy(args, stmt->u.launch.args, count * sizeof(*args));
  for (size_t i = 0; i < made->vectors.size; i++)
    args[count++] = hd_expr_var(r->arena, made->vectors.data[i]);
  hd_stmt_t *copy = hd_stmt_copy(r->arena, stmt);
  copy->u.launch.kernel = made->kernel;
  copy->u.launch.num_args = count;
  copy->u.launch.args = args;
  return copy;
}

void hd_planner_trim(hd_planner_t *p) {
  trimmer_t r = {
      .p = p, .arena = p->arena, .needs = hd_needs_find(p->fusion, p->graph)};
  if (!r.needs)
    return;
  add_values(&r);
  for (size_t i = 0; i < p->body.size; i++)
    if (p->body.data[i]->kind == HD_STMT_LAUNCH)
      p->body.data[i] = trim_launch(&r, p->body.data[i]);
}
