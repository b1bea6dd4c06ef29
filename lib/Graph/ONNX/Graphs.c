// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GraphProto: the model's graph, and those that are attributes of If, Loop and
// Scan.
#include "Graph/ONNX/State.h"

#include <string.h>

static const char *or_empty(const char *text) { return text ? text : ""; }

static bool add_constant(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                         hd_value_t *value, const char *what,
                         const char *name) {
  if (!value)
    return false;
  if (!name[0])
    return hd_import_invalid(im, what, "", "it has no name");
  if (!hd_import_bind(im, scope, name, value))
    return hd_import_invalid(im, what, name, "another value has this name");
  hd_vec_push(im->arena, &scope->graph->constants, value);
  return true;
}

static bool add_constants(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                          const HdOnnx__Graph *proto) {
  const char *const what = "initializer";
  for (size_t i = 0; i < proto->n_initializer; i++) {
    const char *name = or_empty(proto->initializer[i]->name);
    hd_value_t *value =
        hd_import_constant(im, proto->initializer[i], what, name);
    if (!add_constant(im, scope, value, what, name))
      return false;
  }
  for (size_t i = 0; i < proto->n_sparse_initializer; i++) {
    const HdOnnx__SparseTensor *sparse = proto->sparse_initializer[i];
    const char *name = or_empty(sparse->values ? sparse->values->name : NULL);
    hd_value_t *value = hd_import_sparse(im, sparse, what, name);
    if (!add_constant(im, scope, value, what, name))
      return false;
  }
  return true;
}

// Inputs that have an initializer, as older models list them, are constants.
static bool add_inputs(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                       const HdOnnx__Graph *proto) {
  bool whole = !scope->outer;
  for (size_t i = 0; i < proto->n_input; i++) {
    const HdOnnx__ValueInfo *info = proto->input[i];
    const char *name = or_empty(info->name);
    const hd_value_t *known = NULL;
    if (!name[0])
      return hd_import_invalid(im, "input", "", "it has no name");
    hd_onnx_scope_t own = *scope;
    own.outer = NULL;
    if (hd_import_find(&own, name, &known) && known->constant)
      continue;
    hd_value_t *value = hd_import_value(im, name);
    if (!hd_import_declare(im, scope->graph, value, info->type, "input", whole))
      return false;
    if (!hd_import_bind(im, scope, name, value))
      return hd_import_invalid(im, "input", name,
                               "another value has this name");
    hd_vec_push(im->arena, &scope->graph->inputs, value);
  }
  return true;
}

// What a body declares of its results is all that is known of them where a loop
// takes no turn. Inputs, constants and values of a graph around are known.
static bool declare_results(hd_onnx_import_t *im, hd_onnx_scope_t *declared,
                            const HdOnnx__Graph *proto) {
  for (size_t i = 0; i < proto->n_output; i++) {
    const HdOnnx__Type *type = proto->output[i]->type;
    const char *name = or_empty(proto->output[i]->name);
    const hd_value_t *known;
    if (!name[0] || !type ||
        type->value_case != HD_ONNX__TYPE__VALUE_TENSOR_TYPE ||
        hd_import_find(declared, name, &known))
      continue;
    hd_value_t *value = hd_import_value(im, name);
    if (!hd_import_declare(im, declared->graph, value, type, "output", false) ||
        !hd_import_bind(im, declared, name, value))
      return false;
  }
  return true;
}

static bool add_outputs(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                        const HdOnnx__Graph *proto) {
  for (size_t i = 0; i < proto->n_output; i++) {
    const char *name = or_empty(proto->output[i]->name);
    const hd_value_t *value = NULL;
    if (!hd_import_find(scope, name, &value) || !value)
      return hd_import_invalid(im, "output", name, "no node gives this value");
    hd_vec_push(im->arena, &scope->graph->outputs, value);
  }
  return true;
}

static hd_graph_t *read_graph(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                              const HdOnnx__Graph *proto) {
  hd_graph_t *graph = HD_ARENA_NEW(im->arena, hd_graph_t);
  if (scope->outer)
    graph->outer = scope->outer->graph;
  scope->graph = graph;
  hd_onnx_scope_t declared = {.outer = scope, .graph = graph};
  if (!add_constants(im, scope, proto) || !add_inputs(im, scope, proto) ||
      (scope->outer && !declare_results(im, &declared, proto)))
    return NULL;
  declared.outer = NULL;
  scope->declared = &declared;
  bool ok = hd_import_nodes(im, scope, proto->node, proto->n_node) &&
            add_outputs(im, scope, proto);
  scope->declared = NULL;
  return ok ? graph : NULL;
}

const hd_graph_t *hd_import_subgraph(hd_onnx_import_t *im,
                                     const hd_onnx_scope_t *outer,
                                     const HdOnnx__Graph *proto) {
  hd_onnx_scope_t scope = {.outer = outer,
                           .call = outer->call,
                           .opsets = outer->opsets,
                           .num_opsets = outer->num_opsets};
  return read_graph(im, &scope, proto);
}

hd_graph_t *hd_import_graph(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                            const HdOnnx__Graph *proto) {
  hd_graph_t *graph = read_graph(im, scope, proto);
  if (graph)
    graph->name = "main";
  return graph;
}
