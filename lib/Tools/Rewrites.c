// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/Rewrites.h"

#include "Support/Suggest.h"

static const hd_loc_t nowhere;

static void print_nodes(hd_buffer_t *out, const hd_rule_node_t *const *nodes,
                        size_t count) {
  const char *comma = "";
  for (size_t i = 0; i < count; i++) {
    if (nodes[i]->required || hd_rule_node_is_magnitudes(nodes[i]))
      continue;
    hd_buffer_printf(out, "%s%s", comma,
                     nodes[i]->op ? nodes[i]->op : nodes[i]->inputs[0]->name);
    comma = ", ";
  }
}

bool hd_tools_list_rewrites(hd_context_t *context, hd_arena_t *arena,
                            const hd_module_t *module, hd_buffer_t *out) {
  hd_rewrites_t rules = {0};
  if (!hd_rewrites_find(context, module, arena, &rules))
    return false;
  for (size_t i = 0; i < rules.size; i++) {
    const hd_rewrite_t *rule = rules.data[i];
    hd_buffer_printf(out, "%-30s ", rule->name);
    print_nodes(out, rule->left.data, rule->left.size);
    hd_buffer_puts(out, " => ");
    print_nodes(out, rule->right.data, rule->right.size);
    hd_freedoms_print(rule, " (may change ", ")", out);
    hd_buffer_puts(out, "\n");
  }
  return true;
}

static bool is_rule(const hd_rewrites_t *rules, const char *name) {
  for (size_t i = 0; i < rules->size; i++)
    if (hd_rewrite_is_called(rules->data[i], name))
      return true;
  return false;
}

static bool report_unknown(hd_context_t *context, hd_arena_t *arena,
                           const hd_rewrites_t *rules, const char *name) {
  char near[100];
  hd_suggestion_t suggestion = {.wanted = name};
  for (size_t i = 0; i < rules->size; i++)
    hd_suggestion_add(&suggestion, rules->data[i]->name);
  return hd_error(
      &context->diags, nowhere, HD_E1003,
      hd_arena_printf(arena, "there is no rewrite '%s'%s", name,
                      hd_suggestion_text(&suggestion, "", near, sizeof near)));
}

bool hd_tools_rewrite_options(hd_context_t *context, hd_arena_t *arena,
                              const hd_options_t *options, int disable,
                              const hd_module_t *module) {
  hd_rewrite_options_t *made = HD_ARENA_NEW(arena, hd_rewrite_options_t);
  HD_VEC(const char *) names = {0};
  hd_rewrites_t rules = {0};
  bool ok = true;
  for (size_t i = 0; i < options->uses.size; i++)
    if (options->uses.data[i].option == disable)
      hd_vec_push(arena, &names, options->uses.data[i].value);
  if (names.size && !hd_rewrites_find(context, module, arena, &rules))
    return false;
  for (size_t i = 0; i < names.size; i++)
    if (!is_rule(&rules, names.data[i]))
      ok = report_unknown(context, arena, &rules, names.data[i]);
  *made = hd_rewrite_defaults;
  made->disabled = names.data;
  made->num_disabled = names.size;
  context->rewrites = made;
  return ok;
}

bool hd_tools_prove_rewrites(hd_context_t *context, hd_arena_t *arena,
                             const hd_module_t *module, unsigned wanted,
                             hd_buffer_t *out) {
  hd_rewrites_t rules = {0};
  bool ok = hd_rewrites_find(context, module, arena, &rules);
  for (size_t i = 0; i < rules.size; i++) {
    unsigned valid;
    ok &= hd_rewrite_prove(context, rules.data[i], wanted, 1, &valid);
    hd_buffer_printf(out, "%-30s %u\n", rules.data[i]->name, valid);
  }
  return ok;
}
