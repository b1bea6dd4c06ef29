// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plan for a graph whose anchors are scheduled. A reshape moves nothing:
// both values are one tensor of the plan; nor does a concatenation whose
// operands are stored in place.
#include "Fusion/Form/Choose.h"
#include "Fusion/Plan/PlanState.h"
#include "Fusion/Views.h"
#include "IR/EarlyLaunch.h"
#include "IR/Graph/Loop.h"
#include "Schedule/Translate/Build.h"

const bool *hd_planned_outputs(hd_arena_t *arena, const hd_graph_t *graph) {
  hd_ptr_map_t seen = {0};
  bool *planned = HD_ARENA_ARRAY(arena, bool, graph->outputs.size + 1);
  for (size_t k = 0; k < graph->inputs.size; k++)
    hd_ptr_map_set(arena, &seen, graph->inputs.data[k], graph);
  for (size_t k = 0; k < graph->constants.size; k++)
    hd_ptr_map_set(arena, &seen, graph->constants.data[k], graph);
  for (size_t k = 0; k < graph->outputs.size; k++) {
    planned[k] = !hd_ptr_map_get(&seen, graph->outputs.data[k]);
    hd_ptr_map_set(arena, &seen, graph->outputs.data[k], graph);
  }
  return planned;
}

static void add_constants(hd_arena_t *arena, const hd_graph_t *graph,
                          hd_values_t *constants) {
  for (size_t i = 0; i < graph->constants.size; i++)
    hd_vec_push(arena, constants, graph->constants.data[i]);
  for (size_t i = 0; i < graph->nodes.size; i++)
    if (hd_node_is_loop(graph->nodes.data[i]))
      add_constants(arena, hd_node_loop(graph->nodes.data[i]).body, constants);
}

hd_values_t hd_planned_constants(hd_arena_t *arena, const hd_graph_t *graph) {
  hd_values_t constants = {0};
  add_constants(arena, graph, &constants);
  return constants;
}

static void add_param(hd_planner_t *p, const hd_value_t *value,
                      hd_direction_t direction) {
  hd_tensor_type_t type = hd_scheduled_type(value);
  hd_var_t *var = hd_scheduled_tensor(p->arena, value->name, &type);
  var->loc = value->loc;
  var->direction = direction;
  hd_vec_push(p->arena, &p->params, (const hd_var_t *)var);
  hd_ptr_map_set(p->arena, &p->tensors, value, var);
}

// --- The graph ---

// What a reshape makes of a value that comes out is given in its place.
static void place_reshaped_outputs(hd_planner_t *p) {
  for (size_t i = p->graph->nodes.size; i-- > 0;) {
    const hd_node_t *node = p->graph->nodes.data[i];
    if (!hd_node_is_reshape(node) || node->group)
      continue;
    const hd_var_t *to = hd_ptr_map_get(&p->tensors, node->outputs[0]);
    bool given = hd_ptr_map_get(&p->fusion->givers, node->inputs[0]);
    if (to && given && !hd_ptr_map_get(&p->tensors, node->inputs[0]))
      hd_ptr_map_set(p->arena, &p->tensors, node->inputs[0], to);
  }
}

// --- Views ---

// The value whose tensor a value lies in, where a node gives it and nothing has
// settled where that tensor is; else NULL.
static const hd_value_t *free_root(hd_planner_t *p, const hd_value_t *value) {
  for (;;) {
    const hd_node_t *giver = hd_ptr_map_get(&p->fusion->givers, value);
    if (!giver || hd_ptr_map_get(&p->tensors, value))
      return NULL;
    if (!hd_node_is_reshape(giver) || giver->group)
      return value;
    value = giver->inputs[0];
  }
}

// Declares a tensor that lies in another one, no view.
static const hd_var_t *put_view(hd_planner_t *p, hd_var_t *var,
                                const hd_var_t *base, const hd_expr_t *offset) {
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_DECLARE, (hd_loc_t){0, 0});
  stmt->u.declare.var = var;
  stmt->u.declare.init =
      hd_expr_access_linear(p->arena, HD_EXPR_REF, base, 1, offset);
  hd_stmt_list_push(p->arena, &p->body, stmt);
  hd_ptr_map_set(p->arena, p->views, var, stmt->u.declare.init);
  return var;
}

const hd_var_t *hd_planner_view(hd_planner_t *p, const hd_value_t *value,
                                const hd_var_t *base, const hd_expr_t *offset) {
  hd_tensor_type_t type = hd_scheduled_type(value);
  return put_view(p, hd_scheduled_tensor(p->arena, value->name, &type), base,
                  offset);
}

// An offset that many elements behind a view's own (NULL: of none).
static const hd_expr_t *place_behind(hd_planner_t *p, const hd_expr_t *outer,
                                     int64_t offset) {
  int64_t other = 0;
  if (outer && !hd_expr_fold_int(outer->operands[0], &other))
    return hd_expr_binary(
        p->arena, HD_EXPR_ADD, outer->operands[0],
        hd_expr_int(p->arena, outer->operands[0]->type, offset));
  offset += other;
  return hd_expr_int(p->arena, hd_type(offset > INT32_MAX ? HD_I64 : HD_I32),
                     offset);
}

// A value's tensor as rows of that width in those of `whole`, which is
// row-major or has rows of the concatenation's pitch itself; NULL where it has
// no such rows.
static hd_var_t *row_tensor(hd_planner_t *p, const hd_value_t *value,
                            const hd_var_t *whole, const hd_concatenation_t *c,
                            unsigned part) {
  hd_tensor_type_t type = hd_scheduled_type(value);
  hd_var_t *var = hd_scheduled_tensor(p->arena, value->name, &type);
  int64_t width = c->pitch, pitch = c->pitch;
  bool has_rows = hd_layout_find_rows(whole->tensor, &width, &pitch);
  if (c->rows == 1 && !has_rows)
    return var;
  if (p->only_pieces || width != c->pitch)
    return NULL;
  hd_tensor_t *tensor = HD_ARENA_COPY(p->arena, hd_tensor_t, var->tensor);
  tensor->layout =
      hd_layout_rows(p->arena, type.shape, type.rank, c->widths[part], pitch);
  var->tensor = tensor;
  return tensor->layout ? var : NULL;
}

// Operands of concatenations are stored in the result.
static void place_operands(hd_planner_t *p, const hd_node_t *node) {
  hd_concatenation_t c;
  const hd_value_t *roots[HD_MAX_PARTS];
  hd_var_t *views[HD_MAX_PARTS];
  if (node->group || node->schedule ||
      !hd_node_concatenates(p->scheduler, node, &c))
    return;
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    roots[i] = free_root(p, node->inputs[i]);
    for (uint32_t k = 0; k < i; k++)
      if (roots[k] == roots[i])
        return;
    if (!roots[i])
      return;
  }
  const hd_var_t *whole = hd_planner_tensor(p, node->outputs[0]);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (!(views[i] = row_tensor(p, roots[i], whole, &c, i)))
      return;
  const hd_expr_t *outer = hd_ptr_map_get(p->views, whole);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    hd_ptr_map_set(p->arena, &p->tensors, roots[i],
                   put_view(p, views[i], outer ? outer->u.var : whole,
                            place_behind(p, outer, c.offsets[i])));
  hd_ptr_map_set(p->arena, &p->viewed, node, node);
}

bool hd_planner_nodes(hd_planner_t *p) {
  const hd_graph_t *graph = p->graph;
  place_reshaped_outputs(p);
  // Backwards: a result that is an operand is placed before its own operands.
  for (size_t i = graph->nodes.size; i-- > 0;)
    place_operands(p, graph->nodes.data[i]);
  for (size_t i = 0; i < graph->nodes.size;) {
    size_t end = i + 1;
    uint32_t group = graph->nodes.data[i]->group;
    while (group && end < graph->nodes.size &&
           graph->nodes.data[end]->group == group)
      end++;
    hd_budget_check(&p->module->context->budget);
    uint32_t first = p->body.size;
    bool ok = group ? hd_planner_group(p, &graph->nodes.data[i], end - i)
                    : hd_planner_node(p, graph->nodes.data[i]);
    if (!ok)
      return false;
    if (p->explain)
      hd_planner_explain(p, &graph->nodes.data[i], end - i, first);
    i = end;
  }
  return true;
}

// What is known of the plan's launches, when it is first asked for.
typedef struct settling {
  hd_planner_t *planner;
  hd_block_t plan;
  hd_early_launches_t *launches;
} settling_t;

static const hd_stmt_t *settle_launch(settling_t *s, const hd_stmt_t *stmt) {
  hd_planner_t *p = s->planner;
  if (!stmt->u.launch.programmatic)
    return stmt;
  if (!s->launches)
    s->launches = hd_early_launches_make(p->arena, s->plan);
  hd_early_proof_t proof = hd_early_launch_prove(s->launches, stmt);
  if (proof.answer == HD_EARLY_YES)
    return stmt;
  hd_stmt_t *copy = hd_stmt_copy(p->arena, stmt);
  copy->u.launch.programmatic = false;
  if (p->explain)
    hd_remark(&p->module->context->diags, stmt->loc,
              "fuse: the launch of '%s' is no longer programmatic: %s",
              stmt->u.launch.kernel->name, proof.why);
  return copy;
}

static hd_block_t settle_block(settling_t *s, hd_block_t block) {
  hd_arena_t *arena = s->planner->arena;
  const hd_stmt_t **stmts =
      HD_ARENA_ARRAY(arena, const hd_stmt_t *, block.size + 1);
  for (uint32_t i = 0; i < block.size; i++) {
    stmts[i] = block.stmts[i];
    if (stmts[i]->kind == HD_STMT_LAUNCH)
      stmts[i] = settle_launch(s, stmts[i]);
    if (stmts[i]->kind != HD_STMT_FOR)
      continue;
    hd_stmt_t *copy = hd_stmt_copy(arena, stmts[i]);
    copy->u.loop.body = settle_block(s, stmts[i]->u.loop.body);
    stmts[i] = copy;
  }
  return hd_block_make(arena, stmts, block.size);
}

// A launch that was proven to be right when it begins early, in the plan that
// it comes from, stands among others now, and its kernel may be another.
static void settle_programmatic(hd_planner_t *p) {
  settling_t s = {.planner = p,
                  .plan = hd_block_make(p->arena, p->body.data, p->body.size)};
  hd_block_t settled = settle_block(&s, s.plan);
  for (uint32_t i = 0; i < settled.size; i++)
    p->body.data[i] = settled.stmts[i];
}

static void add_params(hd_planner_t *p, const hd_inouts_t *inouts) {
  const hd_graph_t *graph = p->graph;
  const bool *planned = hd_planned_outputs(p->arena, graph);
  for (size_t i = 0; i < graph->inputs.size; i++) {
    const hd_inout_t *pair = hd_inouts_find(inouts, i);
    add_param(p, graph->inputs.data[i], pair ? HD_DIR_INOUT : HD_DIR_IN);
    if (pair)
      hd_ptr_map_set(p->arena, &p->tensors, graph->outputs.data[pair->output],
                     p->params.data[i]);
  }
  hd_values_t constants = hd_planned_constants(p->arena, graph);
  for (size_t i = 0; i < constants.size; i++)
    add_param(p, constants.data[i], HD_DIR_IN);
  for (size_t i = 0; i < graph->outputs.size; i++)
    if (planned[i] && !hd_ptr_map_get(&p->tensors, graph->outputs.data[i]))
      add_param(p, graph->outputs.data[i], HD_DIR_OUT);
}

// *fits: whether every launch takes the tensors that it is given, which it does
// where only_pieces.
static const hd_func_t *make_plan(hd_module_t *module,
                                  hd_scheduler_t *scheduler,
                                  const hd_graph_t *graph,
                                  const hd_inouts_t *inouts, bool explain,
                                  bool only_pieces, bool *fits) {
  hd_ptr_map_t views = {0};
  hd_planner_t p = {.module = module,
                    .arena = &module->arena,
                    .graph = graph,
                    .scheduler = scheduler,
                    .explain = explain,
                    .only_pieces = only_pieces,
                    .views = &views};
  p.fusion = hd_fusion_create(module, scheduler, graph);
  add_params(&p, inouts);
  if (!hd_planner_nodes(&p))
    return NULL;
  *fits = hd_planner_fit(&p);
  if (!*fits)
    return NULL;
  hd_planner_trim(&p);
  settle_programmatic(&p);
  return hd_b_plan(module, graph->name ? graph->name : "main", graph->loc,
                   p.params.data, p.params.size, &p.body);
}

const hd_func_t *hd_graph_apply_fusion(hd_module_t *module,
                                       hd_scheduler_t *scheduler,
                                       const hd_graph_t *graph,
                                       const hd_inouts_t *inouts,
                                       bool explain) {
  size_t part = hd_times_enter(&module->context->times, "join");
  hd_diagnostics_t *diags = &module->context->diags;
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(diags);
  const hd_func_t *plan = NULL;
  bool fits = true;
  if (hd_graph_check_tasks(module, graph) &&
      (graph = hd_graph_settle(module, graph)))
    plan = make_plan(module, scheduler, graph, inouts, explain, false, &fits);
  if (!fits) {
    hd_diagnostics_rewind(diags, mark); // What it said is of no plan.
    plan = make_plan(module, scheduler, graph, inouts, explain, true, &fits);
  }
  hd_times_leave(&module->context->times, part);
  return plan;
}

typedef struct unfused {
  hd_module_t *module;
  hd_scheduler_t *scheduler;
} unfused_t;

// What a plan of a graph in groups is made of.
typedef struct compiling {
  hd_module_t *module;
  const hd_graph_t *graph;
  const hd_fuse_options_t *options;
  hd_inouts_t placed;
} compiling_t;

// Of an unfused graph a concatenation is a kernel, too.
static const hd_graph_t *schedule_rest(void *argument,
                                       const hd_graph_t *graph) {
  hd_module_t *module = ((unfused_t *)argument)->module;
  hd_scheduler_t *scheduler = ((unfused_t *)argument)->scheduler;
  hd_graph_t *made = hd_graph_without_nodes(&module->arena, graph);
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    if (node->task && !node->group && !node->schedule)
      node = hd_node_schedule(module, scheduler, node, NULL);
    if (!node)
      return NULL;
    hd_vec_push(&module->arena, &made->nodes, node);
  }
  return hd_graph_change_bodies(&module->arena, made, schedule_rest, argument);
}

// Groups that the graph itself brings are not joined either.
static const hd_graph_t *without_groups(void *argument,
                                        const hd_graph_t *graph) {
  hd_arena_t *arena = &((unfused_t *)argument)->module->arena;
  hd_graph_t *apart = HD_ARENA_COPY(arena, hd_graph_t, graph);
  apart->nodes.data =
      HD_ARENA_ARRAY(arena, const hd_node_t *, graph->nodes.size + 1);
  apart->nodes.capacity = graph->nodes.size + 1;
  for (size_t i = 0; i < graph->nodes.size; i++) {
    hd_node_t *node = HD_ARENA_COPY(arena, hd_node_t, graph->nodes.data[i]);
    node->group = 0;
    node->anchor = false;
    apart->nodes.data[i] = node;
  }
  return hd_graph_change_bodies(arena, apart, without_groups, argument);
}

static const hd_func_t *plan_groups(void *argument) {
  const compiling_t *c = argument;
  hd_module_t *module = c->module;
  hd_scheduler_t *scheduler = hd_scheduler_create(module, &module->arena);
  unfused_t unfused = {module, scheduler};
  const hd_graph_t *graph = hd_graph_choose(module, scheduler, c->graph);
  if (graph)
    graph = hd_graph_schedule_anchors(module, scheduler, graph, true);
  if (graph && c->options->unfused)
    graph = schedule_rest(&unfused, graph);
  return graph ? hd_graph_apply_fusion(module, scheduler, graph, &c->placed,
                                       c->options->explain)
               : NULL;
}

const hd_func_t *hd_graph_compile(hd_module_t *module, const hd_graph_t *graph,
                                  const hd_fuse_options_t *options) {
  if (!hd_graph_check_tasks(module, graph))
    return NULL;
  size_t part = hd_times_enter(&module->context->times, "fuse");
  unfused_t unfused = {.module = module};
  compiling_t c = {.module = module, .options = options};
  size_t added = module->items.size;
  graph = hd_graph_in_place(module, graph, &options->inouts, options->explain,
                            &c.placed);
  if (options->formed)
    c.graph = graph;
  else
    c.graph = options->unfused ? without_groups(&unfused, graph)
                               : hd_graph_fuse(module, graph, options->explain);
  hd_times_leave(&module->context->times, part);
  const hd_func_t *plan =
      c.graph ? hd_plan_in_rounds(module, plan_groups, &c) : NULL;
  if (plan)
    hd_plan_sweep(module, added, plan);
  return plan;
}
