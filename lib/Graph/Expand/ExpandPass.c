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
} sizes_t;

static const hd_expr_t *lookup(void *argument, const hd_expr_t *leaf) {
  const sizes_t *sizes = argument;
  const char *options = sizes->options, *name;
  size_t size;
  int64_t value;
  if (leaf->kind != HD_EXPR_VAR)
    return NULL;
  while (hd_pass_option_next(&options, &name, &size, &value))
    if (strlen(leaf->u.var->name) == size &&
        strncmp(leaf->u.var->name, name, size) == 0)
      return hd_expr_int(sizes->arena, leaf->type, value);
  return NULL;
}

static bool input_type(hd_module_t *module, const hd_value_t *input,
                       const hd_pass_args_t *args, hd_tensor_type_t *type) {
  hd_diagnostics_t *diags = &module->context->diags;
  const char *name = hd_value_label(input);
  sizes_t sizes = {&module->arena, args->options};
  if (input->form != HD_HOLDS_TENSOR || input->type == HD_VOID ||
      input->rank < 0)
    return hd_error(diags, input->loc, HD_E1104, name,
                    "an input must be a tensor of known type and rank");
  *type =
      (hd_tensor_type_t){.type = input->type, .rank = (unsigned)input->rank};
  for (int i = 0; i < input->rank; i++) {
    const hd_expr_t *size =
        input->shape[i]
            ? hd_expr_fold(&module->arena, input->shape[i], lookup, &sizes)
            : NULL;
    if (!size || !hd_expr_fold_int(size, &type->shape[i]) || type->shape[i] < 0)
      return hd_error(diags, input->loc, HD_E1103, name,
                      hd_arena_printf(&module->arena,
                                      "the size of axis %d is not known: give "
                                      "its dimensions by --expand=NAME=N",
                                      i));
  }
  return true;
}

bool hd_pass_expand(hd_module_t *module, const hd_graph_t *graph,
                    const hd_pass_args_t *args, hd_item_t *version) {
  size_t count = graph->inputs.size;
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(&module->arena, hd_tensor_type_t, count + 1);
  bool ok = true;
  for (size_t i = 0; i < count; i++)
    ok &= input_type(module, graph->inputs.data[i], args, &types[i]);
  if (!ok)
    return false;
  hd_expander_t *x = hd_expander_create(module, graph, types, NULL);
  switch (hd_expander_run(x, &version->u.graph)) {
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
  return true;
}
