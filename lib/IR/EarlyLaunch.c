// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dominance on structured code needs no graph: the statements are walked in the
// order of their evaluation with what is known of the ways there, whether all
// of them, and whether some, have passed a wait. Where ways meet, both are
// joined. What a thread has passed stays passed, so the first round of a loop
// is its worst, and a body is walked once.
//
//   if n > 0 { griddepcontrol_wait() }   // some ways
//   let x = s[i]                         // not known
//   griddepcontrol_wait()                // all ways
//   c[i] = x                             // proven
//
// A function is walked once, as if nobody had waited; what it does is then
// put after what its caller has done.
#include "IR/EarlyLaunch.h"

#include "IR/Intrinsic.h"
#include "IR/Rewrite.h"
#include "Support/Map.h"

// Of the ways that lead to a place.
typedef struct ways {
  bool all, some; // Have passed a wait.
  hd_loc_t wait;  // One of those, where some have.
} ways_t;

static const ways_t no_way = {.all = true}; // Behind a return or a break.

static ways_t join(ways_t a, ways_t b) {
  return (ways_t){a.all && b.all, a.some || b.some, a.some ? a.wait : b.wait};
}

static ways_t follow(ways_t a, ways_t b) {
  return (ways_t){a.all || b.all, a.some || b.some, a.some ? a.wait : b.wait};
}

// A place that not all ways reach after a wait.
typedef struct lack {
  const hd_var_t *param; // That is accessed; NULL: the function ends.
  bool found, writes;
  ways_t ways;
  hd_loc_t loc;
} lack_t;

// Of two, the one that is certain, the one that was met first.
static void keep_worse(lack_t *lack, lack_t other) {
  if (!other.ways.all &&
      (!lack->found || (lack->ways.some && !other.ways.some)))
    *lack = other;
}

// What a function does, seen from its beginning.
typedef struct summary {
  ways_t end;       // Of the ways out.
  lack_t exit;      // One without a wait.
  lack_t *accesses; // To what each parameter is, tensor or map.
} summary_t;

struct hd_early_launches {
  hd_arena_t *arena;
  hd_ptr_map_t summaries; // Of functions.
  hd_ptr_map_t views;     // Tensors of the plan to what they are parts of.
  hd_ptr_map_t declared;  // Workspaces.
  hd_ptr_map_t written;   // By launches.
};

// Of a loop: the ways of its breaks and of its continues.
typedef struct exits {
  ways_t end, next;
} exits_t;

typedef struct walk {
  hd_early_launches_t *launches;
  const hd_func_t *func;
  summary_t *summary;
  ways_t now;
  exits_t *exits; // Of the innermost loop; NULL: there is none.
} walk_t;

static const summary_t *summary_of(hd_early_launches_t *launches,
                                   const hd_func_t *func);

// --- Expressions ---

static void note_access(walk_t *w, ways_t ways, const hd_var_t *var,
                        bool writes, hd_loc_t loc) {
  if (var->tensor && var->tensor->scope != HD_SCOPE_GLOBAL)
    return;
  var = var->map ? var->map->tensor : var;
  for (uint32_t i = 0; i < w->func->num_params; i++)
    if (w->func->params[i] == var)
      keep_worse(&w->summary->accesses[i],
                 (lack_t){var, true, writes, ways, loc});
}

static bool is_map(const hd_expr_t *e) {
  return e->kind == HD_EXPR_VAR && e->type.scalar == HD_MAP;
}

static void visit_intrinsic(walk_t *w, const hd_expr_t *e) {
  const hd_intrinsic_info_t *info = hd_intrinsic_of(e);
  for (unsigned i = 0; i < e->num_operands && i < info->num_params; i++) {
    const hd_expr_t *x = e->operands[i];
    const hd_intrinsic_param_t *param = &info->params[i];
    if ((param->reads || param->writes) &&
        (is_map(x) || x->kind == HD_EXPR_REF))
      note_access(w, w->now, x->u.var, param->writes, e->loc);
  }
  if (info->traits & HD_TRAIT_AWAITS_LAUNCH)
    w->now = (ways_t){true, true, e->loc};
}

static void visit_call(walk_t *w, const hd_expr_t *e) {
  const hd_func_t *func = e->u.func;
  const summary_t *callee = summary_of(w->launches, func);
  for (uint32_t i = 0; i < e->num_operands && i < func->num_params; i++) {
    const lack_t *access = &callee->accesses[i];
    const hd_expr_t *x = e->operands[i];
    if (access->found && (is_map(x) || x->kind == HD_EXPR_TENSOR))
      note_access(w, follow(w->now, access->ways), x->u.var, access->writes,
                  access->loc);
  }
  w->now = follow(w->now, callee->end);
}

static void visit_expr(walk_t *w, const hd_expr_t *e) {
  if (!e)
    return;
  unsigned strict = 0;
  while (strict < e->num_operands && !hd_expr_is_lazy(e, strict))
    visit_expr(w, e->operands[strict++]);
  ways_t before = w->now, after = no_way; // The lazy operands.
  for (unsigned i = strict; i < e->num_operands; i++) {
    w->now = before;
    visit_expr(w, e->operands[i]);
    after = join(after, w->now);
  }
  // Of ?: one branch is evaluated for certain.
  w->now = e->kind == HD_EXPR_SELECT ? after : join(before, after);
  if (e->kind == HD_EXPR_LOAD || e->kind == HD_EXPR_LOADELSE)
    note_access(w, before, e->u.var, false, e->loc);
  else if (e->kind == HD_EXPR_INTRINSIC)
    visit_intrinsic(w, e);
  else if (e->kind == HD_EXPR_CALL)
    visit_call(w, e);
}

static void visit_exprs(walk_t *w, const hd_expr_t *const *exprs,
                        uint32_t count) {
  for (uint32_t i = 0; exprs && i < count; i++)
    visit_expr(w, exprs[i]);
}

// --- Statements ---

static void visit_block(walk_t *w, hd_block_t block);

static void leave(walk_t *w, hd_loc_t loc) {
  keep_worse(&w->summary->exit, (lack_t){NULL, true, false, w->now, loc});
  w->summary->end = join(w->summary->end, w->now);
  w->now = no_way;
}

static void leave_loop(walk_t *w, bool ends) {
  if (w->exits && ends)
    w->exits->end = join(w->exits->end, w->now);
  else if (w->exits)
    w->exits->next = join(w->exits->next, w->now);
  w->now = no_way;
}

// The body of a loop, which may have no round where it is not certain. Without
// an end of its own only a break leads out.
static void visit_body(walk_t *w, hd_block_t body, bool certain, bool ends) {
  ways_t before = w->now;
  exits_t exits = {no_way, no_way}, *outer = w->exits;
  w->exits = &exits;
  visit_block(w, body);
  w->exits = outer;
  w->now = join(w->now, exits.next);
  if (!certain)
    w->now = join(before, w->now);
  w->now = ends ? join(w->now, exits.end) : exits.end;
}

static bool has_round(const hd_stmt_t *loop) {
  int64_t first, limit;
  return hd_expr_fold_int(loop->u.loop.first, &first) &&
         hd_expr_fold_int(loop->u.loop.limit, &limit) && first < limit;
}

// Evaluates what a mapping asks of the run; whether every worker has a task.
static bool visit_mapping(walk_t *w, const hd_mapping_t *mapping) {
  if (!mapping)
    return true;
  bool left = visit_mapping(w, mapping->left);
  bool right = visit_mapping(w, mapping->right);
  visit_exprs(w, mapping->bounds, mapping->rank);
  visit_exprs(w, mapping->exprs, mapping->rank);
  return left && right && mapping->kind != HD_MAPPING_WITHIN &&
         mapping->kind != HD_MAPPING_IDLE;
}

static void visit_point(walk_t *w, const hd_stmt_t *stmt) {
  const hd_expr_t *place = stmt->u.point.place;
  if (stmt->u.point.kind == HD_POINT_EXPECT)
    return;
  visit_expr(w, stmt->u.point.value);
  visit_expr(w, place);
  visit_expr(w, stmt->u.point.staging);
  visit_expr(w, stmt->u.point.barrier);
  visit_expr(w, stmt->u.point.threads);
  note_access(w, w->now, place->u.var, true, stmt->loc);
}

static void visit_if(walk_t *w, const hd_stmt_t *stmt) {
  visit_expr(w, stmt->u.branch.condition);
  ways_t before = w->now;
  visit_block(w, stmt->u.branch.then);
  ways_t then = w->now;
  w->now = before;
  visit_block(w, stmt->u.branch.otherwise);
  w->now = join(then, w->now);
}

static void visit_stmt(walk_t *w, const hd_stmt_t *stmt) {
  switch ((hd_stmt_kind_t)stmt->kind) {
  case HD_STMT_LET:
    visit_expr(w, stmt->u.let.value);
    break;
  case HD_STMT_DECLARE:
    visit_expr(w, stmt->u.declare.init);
    break;
  case HD_STMT_STORE:
    visit_expr(w, stmt->u.store.value);
    visit_exprs(w, stmt->u.store.indices, stmt->u.store.num_indices);
    note_access(w, w->now, stmt->u.store.var, true, stmt->loc);
    break;
  case HD_STMT_POINT:
    visit_point(w, stmt);
    break;
  case HD_STMT_FOR:
    visit_expr(w, stmt->u.loop.first);
    visit_expr(w, stmt->u.loop.limit);
    visit_expr(w, stmt->u.loop.step);
    visit_body(w, stmt->u.loop.body, has_round(stmt), true);
    break;
  case HD_STMT_MAPFOR:
    visit_expr(w, stmt->u.mapfor.worker);
    visit_body(w, stmt->u.mapfor.body, visit_mapping(w, stmt->u.mapfor.mapping),
               true);
    break;
  case HD_STMT_WHILE:
    visit_expr(w, stmt->u.branch.condition);
    visit_body(w, stmt->u.branch.then, false,
               !hd_expr_is_const(stmt->u.branch.condition) ||
                   !stmt->u.branch.condition->u.i);
    break;
  case HD_STMT_IF:
    visit_if(w, stmt);
    break;
  case HD_STMT_ASSERT:
    visit_expr(w, stmt->u.assertion.condition);
    break;
  case HD_STMT_EVAL:
    visit_expr(w, stmt->u.eval.value);
    break;
  case HD_STMT_RETURN:
    visit_expr(w, stmt->u.eval.value);
    leave(w, stmt->loc);
    break;
  case HD_STMT_BREAK:
  case HD_STMT_CONTINUE:
    leave_loop(w, stmt->kind == HD_STMT_BREAK);
    break;
  case HD_STMT_PRINT:
    visit_exprs(w, stmt->u.print.args, stmt->u.print.num_args);
    break;
  case HD_STMT_LAUNCH: // In plans alone.
  case HD_STMT_COUNT:
    break;
  }
}

static void visit_block(walk_t *w, hd_block_t block) {
  for (uint32_t i = 0; i < block.size; i++)
    visit_stmt(w, block.stmts[i]);
}

// --- Functions ---

static const summary_t *summary_of(hd_early_launches_t *launches,
                                   const hd_func_t *func) {
  const summary_t *known = hd_ptr_map_get(&launches->summaries, func);
  if (known)
    return known;
  summary_t *summary = HD_ARENA_NEW(launches->arena, summary_t);
  summary->end = no_way;
  summary->accesses =
      HD_ARENA_ARRAY(launches->arena, lack_t, func->num_params + 1);
  hd_ptr_map_set(launches->arena, &launches->summaries, func, summary);
  walk_t w = {.launches = launches, .func = func, .summary = summary};
  visit_block(&w, func->body);
  leave(&w, func->loc);
  return summary;
}

static bool is_no_wait(void *argument, const hd_expr_t *e) {
  (void)argument;
  return !hd_expr_has_trait(e, HD_TRAIT_AWAITS_LAUNCH);
}

bool hd_func_waits(hd_arena_t *arena, const hd_func_t *func) {
  return !hd_walk_calls(arena, func->body, is_no_wait, NULL);
}

// --- Plans ---

// The tensor of the plan that another is a part of, or itself.
static const hd_var_t *whole(const hd_early_launches_t *launches,
                             const hd_var_t *var) {
  const hd_var_t *of;
  while ((of = hd_ptr_map_get(&launches->views, var)))
    var = of;
  return var;
}

static bool is_tensor(const hd_expr_t *arg) {
  return arg->kind == HD_EXPR_TENSOR;
}

static bool enter(void *argument, const hd_stmt_t *stmt) {
  hd_early_launches_t *launches = argument;
  const hd_var_t *var =
      stmt->kind == HD_STMT_DECLARE ? stmt->u.declare.var : NULL;
  if (hd_stmt_is_view(stmt))
    hd_ptr_map_set(launches->arena, &launches->views, var,
                   stmt->u.declare.init->u.var);
  else if (var)
    hd_ptr_map_set(launches->arena, &launches->declared, var, var);
  if (stmt->kind != HD_STMT_LAUNCH)
    return true;
  const hd_func_t *kernel = stmt->u.launch.kernel;
  for (uint32_t i = 0; i < stmt->u.launch.num_args && i < kernel->num_params;
       i++) {
    const hd_expr_t *arg = stmt->u.launch.args[i];
    if (is_tensor(arg) && kernel->params[i]->direction != HD_DIR_IN) {
      const hd_var_t *written = whole(launches, arg->u.var);
      hd_ptr_map_set(launches->arena, &launches->written, written, written);
    }
  }
  return true;
}

hd_early_launches_t *hd_early_launches_make(hd_arena_t *arena,
                                            hd_block_t plan) {
  hd_early_launches_t *launches = HD_ARENA_NEW(arena, hd_early_launches_t);
  launches->arena = arena;
  hd_walk_block(plan, enter, NULL, launches);
  return launches;
}

bool hd_early_launch_is_constant(const hd_early_launches_t *launches,
                                 const hd_expr_t *arg) {
  if (!is_tensor(arg))
    return true;
  const hd_var_t *var = whole(launches, arg->u.var);
  return !hd_ptr_map_get(&launches->declared, var) &&
         !hd_ptr_map_get(&launches->written, var);
}

static const char *what(hd_arena_t *arena, const lack_t *lack) {
  return lack->param ? hd_arena_printf(arena, "%s '%s'",
                                       lack->writes ? "writes" : "reads",
                                       lack->param->name)
                     : "ends";
}

hd_early_proof_t hd_early_launch_prove(hd_early_launches_t *launches,
                                       const hd_stmt_t *launch) {
  const hd_func_t *kernel = launch->u.launch.kernel;
  const summary_t *summary = summary_of(launches, kernel);
  lack_t worst = {0};
  for (uint32_t i = 0; i < launch->u.launch.num_args && i < kernel->num_params;
       i++) {
    const hd_expr_t *arg = launch->u.launch.args[i];
    const lack_t *access = &summary->accesses[i];
    if (access->found && !hd_early_launch_is_constant(launches, arg))
      keep_worse(&worst, *access);
  }
  if (summary->exit.found)
    keep_worse(&worst, summary->exit);
  if (!worst.found)
    return (hd_early_proof_t){.answer = HD_EARLY_YES};
  bool known = !worst.ways.some;
  return (hd_early_proof_t){
      .answer = known ? HD_EARLY_NO : HD_EARLY_UNKNOWN,
      .why = hd_arena_printf(launches->arena,
                             known ? "it %s before griddepcontrol_wait()"
                                   : "it is not known to have called "
                                     "griddepcontrol_wait() before it %s",
                             what(launches->arena, &worst)),
      .place = worst.loc,
      .wait = worst.ways.wait};
}
