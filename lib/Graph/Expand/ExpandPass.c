// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass `expand`: the walk of Graph/Expand.h for inputs whose sizes are
// numbers, or are given to the pass by name. A graph whose shapes depend on its
// data is no one graph of tasks: that is an error, which names the value.
//
//   graph main(x: f32[n, 8]) -> y { y = onnx13.Relu(x) }
//   // --expand=n=4
//   graph main(x: f32[4, 8]) -> y { y: f32[4, 8] = relu(x) }

#include "Graph/Expand/Expand.h"
#include "Graph/Passes.h"
#include "IR/Rewrite.h"
#include "Support/Suggest.h"

#include <string.h>

const hd_pass_t hd_graph_passes[] = {
#define HD_PASS HD_PASS_ROW
#include "Graph/Passes.def"
#undef HD_PASS
};
const size_t hd_graph_num_passes =
    sizeof hd_graph_passes / sizeof hd_graph_passes[0];

typedef struct sizes {
  hd_arena_t *arena;
  const char *options;
  const char *missing; // The name of a size that was not given.
} sizes_t;

static bool fail(hd_module_t *module, hd_loc_t loc, const char *text) {
  return hd_error(&module->context->diags, loc, HD_E1002, "--expand", text);
}

static bool find_option(const char *options, const char *wanted,
                        int64_t *value) {
  const char *name;
  size_t size;
  while (hd_pass_option_next(&options, &name, &size, value))
    if (strlen(wanted) == size && strncmp(wanted, name, size) == 0)
      return true;
  return false;
}

static bool size_of(void *argument, const hd_expr_t *leaf, hd_number_t *value) {
  const sizes_t *sizes = argument;
  return leaf->kind == HD_EXPR_VAR &&
         find_option(sizes->options, leaf->u.var->name, &value->i);
}

// Stops at a size that was not given, and keeps its name.
static bool is_given(void *argument, const hd_expr_t *e) {
  sizes_t *sizes = argument;
  hd_number_t value;
  if (e->kind == HD_EXPR_VAR && !size_of(sizes, e, &value))
    sizes->missing = e->u.var->name;
  return !sizes->missing;
}

// A size that the graph leaves open is found by the name of its axis.
static bool find_size(sizes_t *sizes, const hd_value_t *input, int axis,
                      int64_t *value) {
  const hd_expr_t *size = input->shape[axis];
  if (!size) {
    sizes->missing = hd_value_axis_name(sizes->arena, input, axis);
    return find_option(sizes->options, sizes->missing, value);
  }
  sizes->missing = NULL;
  hd_walk_expr(size, is_given, sizes);
  const hd_fold_t fold = {.leaf = size_of, .argument = sizes};
  hd_number_t number = {0};
  bool known = hd_expr_value(&fold, size, &number);
  *value = number.i;
  return known;
}

static bool input_type(hd_module_t *module, const hd_value_t *input,
                       const hd_pass_args_t *args, hd_tensor_type_t *type) {
  hd_diagnostics_t *diags = &module->context->diags;
  hd_arena_t *arena = &module->arena;
  const char *name = hd_value_label(input);
  sizes_t sizes = {arena, args->options, NULL};
  if (input->form != HD_HOLDS_TENSOR || input->type == HD_VOID ||
      input->rank < 0)
    return hd_error(diags, input->loc, HD_E1104, name,
                    "an input must be a tensor of known type and rank");
  *type =
      (hd_tensor_type_t){.type = input->type, .rank = (unsigned)input->rank};
  for (int i = 0; i < input->rank; i++) {
    if (!find_size(&sizes, input, i, &type->shape[i]))
      return fail(module, input->loc,
                  hd_arena_printf(arena,
                                  "needs %s=N, for the size of axis %d of '%s'",
                                  sizes.missing, i, name));
    if (type->shape[i] < 0)
      return fail(module, input->loc,
                  hd_arena_printf(arena,
                                  "makes the size of axis %d of '%s' %lld", i,
                                  name, (long long)type->shape[i]));
  }
  return true;
}

// Whether a name is a size of some graph; they are all suggestions.
static bool is_size(hd_module_t *module, hd_suggestion_t *near) {
  bool known = false;
  for (size_t i = 0; i < module->items.size; i++) {
    if (module->items.data[i].kind != HD_ITEM_GRAPH)
      continue;
    const hd_graph_t *graph = module->items.data[i].u.graph;
    for (size_t k = 0; k < graph->dims.size; k++) {
      known |= !strcmp(graph->dims.data[k]->name, near->wanted);
      hd_suggestion_add(near, graph->dims.data[k]->name);
    }
    for (size_t k = 0; k < graph->inputs.size; k++)
      for (int axis = 0; axis < graph->inputs.data[k]->rank; axis++) {
        const hd_value_t *input = graph->inputs.data[k];
        if (input->shape[axis])
          continue;
        const char *name = hd_value_axis_name(&module->arena, input, axis);
        known |= !strcmp(name, near->wanted);
        hd_suggestion_add(near, name);
      }
  }
  return known;
}

// The graphs are expanded in order: the first one finds all as they were.
static bool is_first(const hd_module_t *module, const hd_graph_t *graph) {
  size_t i = 0;
  while (module->items.data[i].kind != HD_ITEM_GRAPH)
    i++;
  return module->items.data[i].u.graph == graph;
}

static bool check_names(hd_module_t *module, const char *options) {
  const char *name;
  size_t size;
  int64_t value;
  char text[100];
  bool ok = true;
  while (hd_pass_option_next(&options, &name, &size, &value)) {
    hd_suggestion_t near = {.wanted =
                                hd_arena_strndup(&module->arena, name, size)};
    if (!is_size(module, &near))
      ok = fail(
          module, (hd_loc_t){0},
          hd_arena_printf(&module->arena, "finds no size '%s'%s", near.wanted,
                          hd_suggestion_text(&near, "", text, sizeof(text))));
  }
  return ok;
}

// The graph takes what it took before, in that order, whether it is used or
// not: who gives the inputs need not know what expand made of them.
static const hd_graph_t *with_inputs(hd_arena_t *arena, const hd_expander_t *x,
                                     const hd_graph_t *made, size_t count) {
  hd_graph_t *graph = HD_ARENA_COPY(arena, hd_graph_t, made);
  memset(&graph->inputs, 0, sizeof(graph->inputs));
  for (size_t i = 0; i < count; i++)
    hd_vec_push(arena, &graph->inputs, hd_expander_input(x, i));
  return graph;
}

bool hd_pass_expand(hd_module_t *module, const hd_graph_t *graph,
                    const hd_pass_args_t *args, hd_item_t *version) {
  size_t count = graph->inputs.size;
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(&module->arena, hd_tensor_type_t, count + 1);
  bool ok = !is_first(module, graph) || check_names(module, args->options);
  for (size_t i = 0; i < count; i++)
    ok &= input_type(module, graph->inputs.data[i], args, &types[i]);
  if (!ok)
    return false;
  hd_expander_t *x =
      hd_expander_create(module, &module->arena, graph, types, NULL);
  const hd_graph_t *made;
  switch (hd_expander_run(x, &made)) {
  case HD_EXPAND_FAILED:
    return false;
  case HD_EXPAND_MORE:
    return hd_error(&module->context->diags, graph->loc, HD_E1104, graph->name,
                    hd_arena_printf(&module->arena,
                                    "shapes depend on the data of '%s'",
                                    hd_expander_wanted(x)->name));
  case HD_EXPAND_DONE:
    break;
  }
  version->u.graph = with_inputs(&module->arena, x, made, count);
  return true;
}
