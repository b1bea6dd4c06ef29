// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pass lower-task-mapping: loops over task mappings become ordinary loops.
//
//   for i, k in within(repeat(8, 1) * spatial(16, 16), n, 16) on thread {
//     body
//   }
//
// becomes
//
//   for i_0 in 0..8 {
//     let i = i_0 * 16 + thread / 16
//     let k = thread % 16
//     if i < n {
//       body
//     }
//   }
//
// The loops are those of the mapping's repeat parts, from left to right, which
// is the order that composition asks for. A loop variable that is an index as
// it stands keeps its name; loops over one value vanish. An index is computed,
// and a bound of `within` tested, in the outermost loop where it is known. The
// worker and the bounds are evaluated once, before the first task.
//
// A body that breaks or continues needs one loop to do it to: over the number
// of the task, of which the other variables are digits.
//
// A point that goes through shared memory is stored by its loop as a whole, so
// lower-points comes before. Leaves no mapping behind, save in layouts.

#include "IR/Exits.h"
#include "IR/Rewrite.h"
#include "TaskMapping/Passes.h"
#include "TaskMapping/TaskMapping.h"

typedef struct task_loop {
  hd_var_t *var;
  int64_t extent;
} task_loop_t;

// A condition for the body, to be tested inside the first `depth` loops.
typedef struct task_guard {
  const hd_expr_t *index; // NULL: condition stands alone (idle).
  const hd_expr_t *limit;
  size_t depth;
} task_guard_t;

// One loop over a mapping, taken apart.
typedef struct nest {
  hd_rewriter_t *rewriter;
  hd_arena_t *arena;
  const hd_stmt_t *stmt;
  hd_stmt_list_t *out; // Where lets before the loops go.
  HD_VEC(task_loop_t) loops;
  HD_VEC(task_guard_t) guards;
} nest_t;

static const hd_expr_t *zero(nest_t *nest) {
  return hd_expr_i32(nest->arena, 0);
}

static const hd_expr_t *arith(nest_t *nest, hd_expr_kind_t kind,
                              const hd_expr_t *a, int64_t b) {
  if (b == 1)
    return kind == HD_EXPR_MOD ? zero(nest) : a;
  const hd_expr_t *e =
      hd_expr_binary(nest->arena, kind, a, hd_expr_i32(nest->arena, b));
  const hd_expr_t *folded = hd_expr_fold(nest->arena, e);
  return folded ? folded : e;
}

static const hd_expr_t *add_terms(nest_t *nest, const hd_expr_t *a,
                                  const hd_expr_t *b) {
  if (hd_expr_is_int(a, 0))
    return b;
  if (hd_expr_is_int(b, 0))
    return a;
  return hd_expr_binary(nest->arena, HD_EXPR_ADD, a, b);
}

static const hd_expr_t *new_loop(nest_t *nest, const hd_var_t *like,
                                 int64_t extent) {
  if (extent == 1)
    return zero(nest);
  hd_var_t *var =
      hd_var_make(nest->arena, hd_arena_printf(nest->arena, "%s_0", like->name),
                  HD_VAR_LOOP, hd_type(HD_I32), like->loc);
  task_loop_t loop = {var, extent};
  hd_vec_push(nest->arena, &nest->loops, loop);
  return hd_expr_var(nest->arena, var);
}

// How many of the loops have to enclose e.
typedef struct depth_search {
  const nest_t *nest;
  size_t depth;
} depth_search_t;

static bool visit_depth(void *argument, const hd_expr_t *e) {
  depth_search_t *search = argument;
  if (e->kind != HD_EXPR_VAR)
    return true;
  for (size_t i = search->depth; i < search->nest->loops.size; ++i)
    if (search->nest->loops.data[i].var == e->u.var)
      search->depth = i + 1;
  return true;
}

static size_t depth_of(const nest_t *nest, const hd_expr_t *e) {
  depth_search_t search = {nest, 0};
  hd_walk_expr(e, visit_depth, &search);
  return search.depth;
}

// A name for a value that is not to be computed twice.
static const hd_expr_t *name_value(nest_t *nest, const char *name,
                                   const hd_expr_t *value) {
  if (hd_expr_is_trivial(value))
    return value;
  hd_var_t *var =
      hd_var_make(nest->arena, name, HD_VAR_LET, value->type, value->loc);
  hd_stmt_t *let = hd_stmt_make(nest->arena, HD_STMT_LET, nest->stmt->loc);
  let->u.let.var = var;
  let->u.let.value = value;
  hd_stmt_list_push(nest->arena, nest->out, let);
  return hd_expr_var(nest->arena, var);
}

static void take_apart(nest_t *nest, const hd_mapping_t *m,
                       const hd_expr_t *worker, const hd_expr_t **index);

// Axis by axis from the fastest: its index is worker / stride % dim. Nothing
// lies beyond the slowest axis, so that one needs no remainder.
static void take_spatial(nest_t *nest, const hd_mapping_t *m,
                         const hd_expr_t *worker, const hd_expr_t **index) {
  int64_t stride = 1;
  for (unsigned i = m->rank; i-- > 0;) {
    unsigned axis = m->order ? m->order[i] : i;
    index[axis] = arith(nest, HD_EXPR_DIV, worker, stride);
    stride *= m->dims[axis];
    if (m->dims[axis] == 1)
      index[axis] = zero(nest);
    else if (stride < m->workers)
      index[axis] = arith(nest, HD_EXPR_MOD, index[axis], m->dims[axis]);
  }
}

static void take_compose(nest_t *nest, const hd_mapping_t *m,
                         const hd_expr_t *worker, const hd_expr_t **index) {
  const hd_expr_t *inner[HD_MAPPING_MAX_RANK];
  int64_t n = m->right->workers;
  const hd_expr_t *left =
      m->left->workers == 1 ? zero(nest) : arith(nest, HD_EXPR_DIV, worker, n);
  const hd_expr_t *right =
      m->left->workers == 1 ? worker : arith(nest, HD_EXPR_MOD, worker, n);
  take_apart(nest, m->left, left, index);
  take_apart(nest, m->right, right, inner);
  for (unsigned a = 0; a < m->rank; ++a)
    index[a] = add_terms(
        nest, arith(nest, HD_EXPR_MUL, index[a], m->right->dims[a]), inner[a]);
}

static void take_custom(nest_t *nest, const hd_mapping_t *m,
                        const hd_expr_t *worker, const hd_expr_t **index) {
  hd_rewriter_substitute(nest->rewriter, m->worker, worker);
  const hd_var_t *like = m->repeat ? m->repeat : m->worker;
  const hd_expr_t *turn = new_loop(nest, like, m->count);
  if (m->repeat)
    hd_rewriter_substitute(nest->rewriter, m->repeat, turn);
  for (unsigned a = 0; a < m->rank; ++a)
    index[a] = hd_rewrite_expr(nest->rewriter, m->exprs[a]);
}

static void take_within(nest_t *nest, const hd_mapping_t *m,
                        const hd_expr_t *worker, const hd_expr_t **index) {
  take_apart(nest, m->left, worker, index);
  for (unsigned a = 0; a < m->rank; ++a) {
    const hd_expr_t *limit = hd_rewrite_expr(nest->rewriter, m->bounds[a]);
    if (hd_expr_is_const(limit) && limit->u.i >= m->dims[a])
      continue;
    limit = name_value(nest, "bound", limit);
    task_guard_t guard = {index[a], limit, depth_of(nest, index[a])};
    hd_vec_push(nest->arena, &nest->guards, guard);
  }
}

static void take_idle(nest_t *nest, const hd_mapping_t *m,
                      const hd_expr_t *worker, const hd_expr_t **index) {
  if (m->left->workers < m->workers) {
    const hd_expr_t *busy =
        hd_expr_binary(nest->arena, HD_EXPR_LT, worker,
                       hd_expr_i32(nest->arena, m->left->workers));
    task_guard_t guard = {NULL, busy, 0};
    hd_vec_push(nest->arena, &nest->guards, guard);
  }
  take_apart(nest, m->left, worker, index);
}

// Finds the task's index along each axis, and the loops and conditions that it
// needs on the way.
static void take_apart(nest_t *nest, const hd_mapping_t *m,
                       const hd_expr_t *worker, const hd_expr_t **index) {
  switch (m->kind) {
  case HD_MAPPING_SPATIAL:
    take_spatial(nest, m, worker, index);
    return;
  case HD_MAPPING_REPEAT:
    for (unsigned i = 0; i < m->rank; ++i) {
      unsigned axis = m->order ? m->order[i] : i;
      index[axis] =
          new_loop(nest, nest->stmt->u.mapfor.vars[axis], m->dims[axis]);
    }
    return;
  case HD_MAPPING_COMPOSE:
    take_compose(nest, m, worker, index);
    return;
  case HD_MAPPING_AUTO:
    take_apart(nest, hd_mapping_expand_auto(nest->arena, m, NULL), worker,
               index);
    return;
  case HD_MAPPING_CUSTOM:
    take_custom(nest, m, worker, index);
    return;
  case HD_MAPPING_WITHIN:
    take_within(nest, m, worker, index);
    return;
  case HD_MAPPING_IDLE:
    take_idle(nest, m, worker, index);
    return;
  }
}

// Whether the body leaves a task where there is no loop to do it to, or leaves
// all of several loops.
static bool needs_one_loop(const nest_t *nest) {
  hd_block_t body = nest->stmt->u.mapfor.body;
  return nest->loops.size == 0 ? hd_body_exits(body)
                               : nest->loops.size > 1 && hd_body_breaks(body);
}

// Puts one loop in the place of all, the slowest first.
static void make_one_loop(nest_t *nest, const hd_expr_t **index) {
  unsigned rank = nest->stmt->u.mapfor.mapping->rank;
  hd_rewriter_t digits = {.arena = nest->arena};
  task_loop_t all = {hd_var_make(nest->arena, "turn", HD_VAR_LOOP,
                                 hd_type(HD_I32), nest->stmt->loc),
                     1};
  for (size_t i = nest->loops.size; i-- > 0;) {
    const task_loop_t *loop = &nest->loops.data[i];
    const hd_expr_t *digit =
        arith(nest, HD_EXPR_DIV, hd_expr_var(nest->arena, all.var), all.extent);
    if (i > 0)
      digit = arith(nest, HD_EXPR_MOD, digit, loop->extent);
    hd_rewriter_substitute(&digits, loop->var, digit);
    all.extent *= loop->extent;
  }
  nest->loops.size = 0;
  hd_vec_push(nest->arena, &nest->loops, all);
  const hd_expr_t *now[HD_MAPPING_MAX_RANK];
  for (unsigned a = 0; a < rank; ++a)
    now[a] = hd_rewrite_expr(&digits, index[a]);
  for (size_t g = 0; g < nest->guards.size; ++g) {
    task_guard_t *guard = &nest->guards.data[g];
    if (!guard->index)
      continue;
    const hd_expr_t *test = NULL; // An axis' own index has the axis' name.
    for (unsigned a = 0; a < rank; ++a)
      test = guard->index == index[a] ? now[a] : test;
    guard->index = test ? test : hd_rewrite_expr(&digits, guard->index);
    guard->depth = depth_of(nest, guard->index);
  }
  for (unsigned a = 0; a < rank; ++a)
    index[a] = now[a];
}

// What a variable of the loop becomes.
typedef struct axis {
  const hd_var_t *var; // A let; NULL where a loop variable took its place.
  const hd_expr_t *value;
  size_t depth;
} axis_t;

// Where an index is a loop's variable as it stands, that loop takes the name.
static void bind_axes(nest_t *nest, const hd_expr_t *const *index,
                      axis_t *axes) {
  const hd_stmt_t *stmt = nest->stmt;
  for (unsigned a = 0; a < stmt->u.mapfor.mapping->rank; ++a) {
    const hd_var_t *old = stmt->u.mapfor.vars[a];
    size_t depth = depth_of(nest, index[a]);
    axes[a] = (axis_t){NULL, index[a], depth};
    if (index[a]->kind == HD_EXPR_VAR && depth > 0) {
      nest->loops.data[depth - 1].var->name = old->name;
      hd_rewriter_map(nest->rewriter, old, index[a]->u.var);
      continue;
    }
    axes[a].var =
        hd_var_make(nest->arena, old->name, HD_VAR_LET, old->type, old->loc);
    hd_rewriter_map(nest->rewriter, old, axes[a].var);
  }
}

static void push_if(nest_t *nest, const hd_expr_t *condition, hd_block_t then,
                    hd_stmt_list_t *out) {
  hd_stmt_t *stmt = hd_stmt_make(nest->arena, HD_STMT_IF, nest->stmt->loc);
  stmt->u.branch.condition = condition;
  stmt->u.branch.then = then;
  hd_stmt_list_push(nest->arena, out, stmt);
}

static hd_block_t to_block(nest_t *nest, const hd_stmt_list_t *list) {
  return hd_block_make(nest->arena, list->data, list->size);
}

// The condition of a guard, in terms of the axes' names where there are.
static const hd_expr_t *guard_condition(nest_t *nest, const task_guard_t *guard,
                                        const axis_t *axes) {
  if (!guard->index)
    return guard->limit;
  const hd_expr_t *index = guard->index;
  for (unsigned a = 0; a < nest->stmt->u.mapfor.mapping->rank; ++a)
    if (axes[a].value == index && axes[a].var)
      index = hd_expr_var(nest->arena, axes[a].var);
  return hd_expr_binary(nest->arena, HD_EXPR_LT, index, guard->limit);
}

// Guards of a depth, from the last to the first, around block.
static hd_block_t wrap_guards(nest_t *nest, size_t depth, bool idle,
                              const axis_t *axes, hd_block_t block) {
  const hd_expr_t *all = NULL;
  for (size_t g = 0; g < nest->guards.size; ++g) {
    const task_guard_t *guard = &nest->guards.data[g];
    if (guard->depth != depth || !guard->index != idle)
      continue;
    const hd_expr_t *condition = guard_condition(nest, guard, axes);
    all = all ? hd_expr_binary(nest->arena, HD_EXPR_AND, all, condition)
              : condition;
  }
  if (!all)
    return block;
  hd_stmt_list_t list = {0};
  push_if(nest, all, block, &list);
  return to_block(nest, &list);
}

static hd_block_t wrap_lets(nest_t *nest, size_t depth, const axis_t *axes,
                            hd_block_t block) {
  hd_stmt_list_t list = {0};
  for (unsigned a = 0; a < nest->stmt->u.mapfor.mapping->rank; ++a) {
    if (!axes[a].var || axes[a].depth != depth)
      continue;
    hd_stmt_t *let = hd_stmt_make(nest->arena, HD_STMT_LET, nest->stmt->loc);
    let->u.let.var = axes[a].var;
    let->u.let.value = axes[a].value;
    hd_stmt_list_push(nest->arena, &list, let);
  }
  if (list.size == 0)
    return block;
  for (size_t i = 0; i < block.size; ++i)
    hd_stmt_list_push(nest->arena, &list, block.stmts[i]);
  return to_block(nest, &list);
}

static hd_block_t wrap_loop(nest_t *nest, size_t depth, hd_block_t block) {
  const task_loop_t *loop = &nest->loops.data[depth - 1];
  int32_t unroll = nest->stmt->u.mapfor.unroll;
  hd_stmt_t *stmt = hd_stmt_make(nest->arena, HD_STMT_FOR, nest->stmt->loc);
  stmt->u.loop.var = loop->var;
  stmt->u.loop.first = zero(nest);
  stmt->u.loop.limit = hd_expr_i32(nest->arena, loop->extent);
  // A count of copies is meant for the loop that runs fastest.
  if (unroll == HD_UNROLL_FULL || unroll == 1 || depth == nest->loops.size)
    stmt->u.loop.unroll = loop->extent == 1 ? HD_UNROLL_FULL : unroll;
  stmt->u.loop.body = block;
  hd_stmt_list_t list = {0};
  hd_stmt_list_push(nest->arena, &list, stmt);
  return to_block(nest, &list);
}

static bool lower_mapfor(hd_rewriter_t *rewriter, const hd_stmt_t *stmt,
                         hd_stmt_list_t *out) {
  if (stmt->kind != HD_STMT_MAPFOR)
    return false;
  nest_t nest = {
      .rewriter = rewriter, .arena = rewriter->arena, .stmt = stmt, .out = out};
  const hd_mapping_t *mapping = stmt->u.mapfor.mapping;
  const hd_expr_t *worker = zero(&nest);
  if (stmt->u.mapfor.worker && mapping->workers > 1)
    worker = name_value(&nest, "worker",
                        hd_rewrite_expr(rewriter, stmt->u.mapfor.worker));
  const hd_expr_t *index[HD_MAPPING_MAX_RANK];
  take_apart(&nest, mapping, worker, index);
  if (needs_one_loop(&nest))
    make_one_loop(&nest, index);

  axis_t axes[HD_MAPPING_MAX_RANK];
  bind_axes(&nest, index, axes);
  hd_block_t block = hd_rewrite_block(rewriter, stmt->u.mapfor.body);
  for (size_t depth = nest.loops.size + 1; depth-- > 0;) {
    block = wrap_guards(&nest, depth, false, axes, block);
    block = wrap_lets(&nest, depth, axes, block);
    block = wrap_guards(&nest, depth, true, axes, block);
    if (depth > 0)
      block = wrap_loop(&nest, depth, block);
  }
  for (size_t i = 0; i < block.size; ++i)
    hd_stmt_list_push(nest.arena, out, block.stmts[i]);
  return true;
}

const hd_func_t *hd_pass_lower_task_mapping(hd_module_t *module,
                                            const hd_func_t *func,
                                            const hd_pass_args_t *args) {
  (void)args;
  hd_rewriter_t rewriter = {.arena = &module->arena, .enter = lower_mapfor};
  const hd_func_t *result = hd_rewrite_func(&rewriter, func);
  return result;
}
