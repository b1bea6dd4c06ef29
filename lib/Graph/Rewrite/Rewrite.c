// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rewriting by rules until none fits. Rules are looked up by the operator of
// the node that they begin with; a sweep goes over the nodes in order, and on
// what a step has made at once, so that a chain is done in one sweep.
//
//   graph main(x: f32[2, 3]) -> z {
//     y: f32[3, 2] = reshape(x)
//     z: f32[6] = reshape(y)
//   }
//   // --rewrite
//   graph main(x: f32[2, 3]) -> z { z: f32[6] = reshape(x) }
#include "Graph/Loops.h"
#include "Graph/Passes.h"
#include "Graph/Rewrite/RewriteState.h"
#include "IR/Text/Library.h"
#include "IR/Text/Parser.h"
#include "Support/Steps.h"

#include <string.h>

// Instances that a rule of the user's is proven on before it is used.
enum { PROVEN = 20 };

typedef HD_VEC(hd_rule_t *) rule_list_t;

typedef struct rewriter {
  hd_rw_graph_t g;
  const hd_rewrite_options_t *options;
  hd_arena_t rules_arena, scratch;
  rule_list_t rules;
  hd_ptr_map_t by_key;     // rule_list_t, by the operator a match begins with.
  rule_list_t listed;      // Rules with lists of operands, for one of each.
  hd_ptr_map_t by_rewrite; // hd_rule_t, of those for other numbers.
  int64_t steps, most_steps;
  bool planted;
  bool failed;
} rewriter_t;

// Whether a module has a rule of the same name, or of the same family.
static bool replaces(const hd_module_t *module, const hd_rewrite_t *rule) {
  for (size_t i = 0; i < module->items.size; i++) {
    const hd_item_t *item = &module->items.data[i];
    if (item->kind == HD_ITEM_REWRITE &&
        (hd_rewrite_is_called(rule, item->u.rewrite->name) ||
         hd_rewrite_is_called(item->u.rewrite, rule->family)))
      return true;
  }
  return false;
}

static bool is_of(const hd_module_t *module, const hd_rewrite_t *rule) {
  size_t cursor = 0;
  const hd_item_t *item;
  while ((item = hd_module_next(module, rule->name, &cursor)))
    if (item->kind == HD_ITEM_REWRITE && item->u.rewrite == rule)
      return true;
  return false;
}

static void add_rules(hd_arena_t *arena, const hd_module_t *module,
                      const hd_module_t *over, hd_rewrites_t *rules) {
  for (size_t i = 0; i < module->items.size; i++) {
    const hd_item_t *item = &module->items.data[i];
    if (item->kind == HD_ITEM_REWRITE &&
        !(over && replaces(over, item->u.rewrite)))
      hd_vec_push(arena, rules, item->u.rewrite);
  }
}

bool hd_rewrites_find(hd_context_t *context, const hd_module_t *module,
                      hd_arena_t *arena, hd_rewrites_t *rules) {
  const hd_module_t *library = hd_library_rewrites(context);
  if (!library)
    return false;
  add_rules(arena, library, module, rules);
  if (module)
    add_rules(arena, module, NULL, rules);
  return true;
}

static bool is_disabled(const rewriter_t *w, const hd_rewrite_t *rewrite) {
  for (size_t i = 0; i < w->options->num_disabled; i++)
    if (hd_rewrite_is_called(rewrite, w->options->disabled[i]))
      return true;
  return false;
}

// A rule of the module is nobody's word but the user's.
static bool is_trusted(rewriter_t *w, const hd_rewrite_t *rewrite) {
  hd_context_t *context = w->g.module->context;
  unsigned valid;
  return !is_of(w->g.module, rewrite) ||
         hd_rewrite_prove(context, rewrite, PROVEN, 1, &valid);
}

static bool find_rules(rewriter_t *w) {
  hd_rewrites_t found = {0};
  hd_arena_t *arena = &w->rules_arena;
  if (!hd_rewrites_find(w->g.module->context, w->g.module, arena, &found))
    return false;
  for (size_t i = 0; i < found.size; i++) {
    if (is_disabled(w, found.data[i]))
      continue;
    if (!is_trusted(w, found.data[i]))
      return false;
    hd_rule_t *rule = hd_rule_make(arena, found.data[i]);
    if (found.data[i]->text) {
      hd_vec_push(arena, &w->listed, rule);
      continue;
    }
    hd_vec_push(arena, &w->rules, rule);
    const void *key = hd_rule_key(rule);
    rule_list_t *list = hd_ptr_map_find(&w->by_key, key);
    if (!list) {
      list = HD_ARENA_NEW(arena, rule_list_t);
      hd_ptr_map_set(arena, &w->by_key, key, list);
    }
    hd_vec_push(arena, list, rule);
  }
  return true;
}

static void explain(const rewriter_t *w, const hd_rw_match_t *m,
                    const char *label) {
  const hd_rewrite_t *r = m->rule->rewrite;
  if (w->options->explain)
    hd_remark(&w->g.module->context->diags, m->nodes[0]->node.loc,
              "rewrite '%s' at '%s'", r->name, label);
}

// Rules that undo each other take turns: all of the last steps are named, the
// user's first.
static bool report_endless(rewriter_t *w, const hd_rule_t *rule) {
  hd_diagnostics_t *diags = &w->g.module->context->diags;
  for (size_t i = w->rules.size; i-- > 0;)
    if (w->rules.data[i]->is_late &&
        replaces(w->g.module, w->rules.data[i]->rewrite))
      rule = w->rules.data[i];
  hd_error(diags, rule->rewrite->loc, HD_E1106, (long long)w->most_steps,
           rule->rewrite->name);
  for (size_t i = 0; i < w->rules.size; i++)
    if (w->rules.data[i]->is_late && w->rules.data[i] != rule)
      hd_note(diags, w->rules.data[i]->rewrite->loc, "and so does '%s'",
              w->rules.data[i]->rewrite->name);
  return false;
}

static bool count_step(rewriter_t *w, hd_rule_t *rule) {
  enum { LAST = 100 };
  rule->count++;
  w->steps++;
  rule->is_late |= w->steps > w->most_steps - LAST;
  return w->steps <= w->most_steps || report_endless(w, rule);
}

static bool is_spent(const rewriter_t *w) {
  return w->failed || w->planted ||
         (w->options->max_steps >= 0 && w->steps >= w->options->max_steps);
}

// For tests of --bisect, which put another graph in the place of this one.
static bool plant(rewriter_t *w) {
  hd_module_t *module = w->g.module;
  const hd_graph_t *graph = hd_rw_finish(&w->g);
  const hd_graph_t *made = hd_step_made(&module->context->steps, module, graph);
  bool changed = w->g.changed;
  if (made == graph)
    return true;
  w->planted = true; // The sweep ends here.
  bool ok = hd_rw_begin(&w->g, module, made);
  w->g.precision = w->options->precision;
  ok = ok && hd_rw_settle(&w->g);
  w->g.changed |= changed;
  return ok;
}

// Whether the rule was used.
static bool use_rule(rewriter_t *w, hd_rule_t *rule, hd_rw_node_t *node) {
  hd_rw_match_t m = {.g = &w->g, .rule = rule};
  bool changed = false;
  hd_arena_init_local(&w->scratch, &w->g.module->context->budget);
  m.scratch = &w->scratch;
  const char *label = node->node.label;
  if (!label)
    label =
        node->outputs[0] ? node->outputs[0]->value->name : rule->rewrite->name;
  hd_context_t *context = w->g.module->context;
  bool done = hd_rw_match(&m, node) &&
              hd_step(&context->steps, HD_STEP_REWRITE, "%s at '%s'",
                      rule->rewrite->name, label);
  if (done)
    w->failed |= !hd_rw_apply(&m, &changed);
  w->failed |= m.failed;
  if (done && context->steps.plant && !w->failed)
    w->failed |= !plant(w);
  if (changed) {
    explain(w, &m, label);
    w->failed |= !count_step(w, rule);
  }
  hd_arena_fini(&w->scratch);
  return changed;
}

// What depends on constants alone is computed once, whatever it takes. Rules
// that tell constants from other operands would turn such nodes round for ever.
static bool is_constant(const hd_rw_node_t *node) {
  for (uint32_t i = 0; i < node->node.num_outputs; i++)
    if (node->outputs[i])
      return node->outputs[i]->constant;
  return false;
}

// --- Lists of operands ---

typedef struct listed_use {
  rewriter_t *w;
  const hd_rewrite_t *rewrite; // The item.
  hd_rw_node_t *node;
} listed_use_t;

// A user's is proven for each number of operands that it is used for.
static hd_rule_t *rule_for(rewriter_t *w, const hd_rewrite_t *item,
                           const uint32_t *counts) {
  const hd_rewrite_t *rewrite = hd_rewrite_for(item, counts);
  hd_rule_t *rule = NULL;
  unsigned valid;
  if (rewrite)
    rule = hd_ptr_map_find(&w->by_rewrite, rewrite);
  if (rule || !rewrite)
    return rule;
  if (rewrite != item && is_of(w->g.module, item) &&
      !hd_rewrite_prove(w->g.module->context, rewrite, PROVEN, 1, &valid))
    return NULL;
  rule = hd_rule_make(&w->rules_arena, rewrite);
  hd_vec_push(&w->rules_arena, &w->rules, rule);
  hd_ptr_map_set(&w->rules_arena, &w->by_rewrite, rewrite, rule);
  return rule;
}

static bool use_counts(void *argument, const uint32_t *counts) {
  const listed_use_t *use = argument;
  hd_rule_t *rule = rule_for(use->w, use->rewrite, counts);
  use->w->failed |= !rule;
  return use->w->failed || use_rule(use->w, rule, use->node);
}

static bool use_listed(rewriter_t *w, hd_rw_node_t *node) {
  for (size_t i = 0; i < w->listed.size && !is_spent(w); i++) {
    listed_use_t use = {w, w->listed.data[i]->rewrite, node};
    hd_arena_t scratch;
    hd_arena_init_local(&scratch, &w->g.module->context->budget);
    bool used =
        hd_rw_walk_lists(w->listed.data[i], &scratch, node, use_counts, &use);
    hd_arena_fini(&scratch);
    if (used)
      return !w->failed;
  }
  return false;
}

static bool use_any(rewriter_t *w, hd_rw_node_t *node) {
  if (is_constant(node))
    return false;
  const rule_list_t *rules =
      hd_ptr_map_get(&w->by_key, hd_rw_node_key(&node->node));
  for (size_t i = 0; rules && i < rules->size && !is_spent(w); i++)
    if (use_rule(w, rules->data[i], node))
      return true;
  return use_listed(w, node);
}

// The node, then what takes its place, and so on.
static bool sweep_node(rewriter_t *w, hd_rw_node_t *node) {
  hd_arena_t *arena = w->g.arena;
  HD_VEC(hd_rw_node_t *) open = {0};
  bool any = false;
  hd_vec_push(arena, &open, node);
  while (open.size) {
    node = open.data[--open.size];
    w->g.made.size = 0;
    while (!node->dead && use_any(w, node))
      any = true;
    for (size_t i = 0; i < w->g.made.size; i++)
      hd_vec_push(arena, &open, w->g.made.data[i]);
  }
  return any;
}

static bool sweep(rewriter_t *w) {
  hd_arena_t *arena = w->g.arena;
  HD_VEC(hd_rw_node_t *) nodes = {0};
  bool any = false;
  for (hd_rw_node_t *node = w->g.first; node; node = node->next)
    hd_vec_push(arena, &nodes, node);
  for (size_t i = 0; i < nodes.size && !is_spent(w); i++) {
    hd_budget_check(&w->g.module->context->budget);
    if (!nodes.data[i]->dead)
      any |= sweep_node(w, nodes.data[i]);
  }
  return any;
}

static bool sweep_all(rewriter_t *w) {
  while (!is_spent(w) && sweep(w)) {
    w->planted = false;
    if (w->failed || !hd_rw_settle(&w->g))
      return false;
  }
  return !w->failed;
}

// Once more behind numbers and tables: what is the same byte stands between
// nothing any more.
static bool run_rules(rewriter_t *w) {
  bool explains = w->options->explain;
  return find_rules(w) && hd_rw_settle(&w->g) && sweep_all(w) &&
         (is_spent(w) || (hd_rw_spread_numbers(&w->g, explains) &&
                          hd_rw_look_up_bytes(&w->g, explains) &&
                          hd_rw_settle(&w->g) && sweep_all(w)));
}

static size_t count_nodes(const hd_rw_graph_t *g) {
  size_t count = 0;
  for (const hd_rw_node_t *node = g->first; node; node = node->next)
    count++;
  return count;
}

static void add_stats(const rewriter_t *w, hd_rewrite_stats_t *stats) {
  for (size_t i = 0; i < w->rules.size; i++) {
    const hd_rule_t *rule = w->rules.data[i];
    size_t at = 0;
    if (!rule->count)
      continue;
    while (at < stats->rules.size &&
           strcmp(stats->rules.data[at].name, rule->rewrite->name) != 0)
      at++;
    if (at == stats->rules.size)
      hd_vec_push(stats->arena, &stats->rules,
                  (hd_rewrite_count_t){
                      hd_arena_strndup(stats->arena, rule->rewrite->name,
                                       strlen(rule->rewrite->name)),
                      0});
    stats->rules.data[at].count += rule->count;
  }
  stats->steps += w->steps;
  stats->nodes_before += w->g.graph->nodes.size;
  stats->nodes_after += count_nodes(&w->g);
}

static bool rewrite(hd_module_t *module, const hd_graph_t *graph,
                    const hd_rewrite_options_t *options,
                    const hd_graph_t **result, hd_rewrite_stats_t *stats) {
  rewriter_t w = {.options = options ? options : &hd_rewrite_defaults};
  *result = graph;
  hd_arena_init_local(&w.rules_arena, &module->context->budget);
  bool ok = hd_rw_begin(&w.g, module, graph);
  w.g.precision = w.options->precision;
  w.most_steps = 1000 + 50 * (int64_t)graph->nodes.size;
  ok = ok && run_rules(&w);
  if (ok && stats)
    add_stats(&w, stats);
  if (ok)
    *result = hd_rw_finish(&w.g);
  hd_arena_fini(&w.rules_arena);
  return ok;
}

typedef struct bodies {
  hd_module_t *module;
  const hd_rewrite_options_t *options;
  hd_rewrite_stats_t *stats;
} bodies_t;

static const hd_graph_t *rewrite_body(void *argument, const hd_graph_t *body) {
  const bodies_t *b = argument;
  const hd_graph_t *result;
  return hd_graph_rewrite(b->module, body, b->options, &result, b->stats)
             ? result
             : NULL;
}

bool hd_graph_rewrite(hd_module_t *module, const hd_graph_t *graph,
                      const hd_rewrite_options_t *options,
                      const hd_graph_t **result, hd_rewrite_stats_t *stats) {
  bodies_t bodies = {module, options, stats};
  if (!rewrite(module, graph, options, result, stats))
    return false;
  *result =
      hd_graph_change_bodies(&module->arena, *result, rewrite_body, &bodies);
  if (!*result)
    return false;
  *result = hd_graph_hoist(module, *result);
  return true;
}

bool hd_pass_rewrite(hd_module_t *module, const hd_graph_t *graph,
                     const hd_pass_args_t *args, hd_item_t *version) {
  hd_context_t *context = module->context;
  hd_rewrite_options_t options =
      context->rewrites ? *context->rewrites : hd_rewrite_defaults;
  options.explain |= args->explain;
  for (int i = 0; i < HD_PRECISIONS; i++)
    if (hd_pass_option_is(args->options, "precision",
                          hd_precision_name((hd_precision_t)i)))
      options.precision = (hd_precision_t)i;
  options.max_steps =
      hd_pass_option_int(args->options, "steps", options.max_steps);
  return hd_graph_rewrite(module, graph, &options, &version->u.graph,
                          context->rewrite_stats);
}
