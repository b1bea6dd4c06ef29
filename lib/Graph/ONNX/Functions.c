// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of the model: their nodes are put in the place of each node that
// calls them. Inside, only the formal inputs are visible, and attributes that
// refer to the function's own become what the call gives.
#include "Graph/ONNX/State.h"

#include <string.h>

enum { IDENTITY_VERSION = 25 }; // It takes every type.

static const char *or_empty(const char *text) { return text ? text : ""; }

// Domain, name and overload.
static const char *key_of(hd_arena_t *arena, const char *domain,
                          const char *name, const char *overload) {
  domain = or_empty(domain);
  if (strcmp(domain, "ai.onnx") == 0)
    domain = "";
  return hd_arena_printf(arena, "%s\n%s\n%s", domain, or_empty(name),
                         or_empty(overload));
}

bool hd_import_add_functions(hd_onnx_import_t *im) {
  for (size_t i = 0; i < im->model->n_functions; i++) {
    const HdOnnx__Function *proto = im->model->functions[i];
    const char *key =
        key_of(im->scratch, proto->domain, proto->name, proto->overload);
    if (hd_key_map_find_name(&im->functions, key))
      return hd_import_invalid(im, "function", or_empty(proto->name),
                               "it is defined twice");
    hd_key_map_set_name(im->scratch, &im->functions, key, proto);
  }
  return true;
}

const HdOnnx__Function *hd_import_function(const hd_onnx_import_t *im,
                                           const HdOnnx__Node *node) {
  const char *key =
      key_of(im->scratch, node->domain, node->op_type, node->overload);
  return hd_key_map_find_name(&im->functions, key);
}

static bool check_calls(hd_onnx_import_t *im, const hd_onnx_call_t *call,
                        const char *what) {
  int depth = 0;
  for (const hd_onnx_call_t *outer = call->outer; outer; outer = outer->outer) {
    depth++;
    if (outer->function == call->function)
      return hd_import_invalid(im, what, or_empty(call->function->name),
                               "the function calls itself");
  }
  if (depth < HD_ONNX_MAX_CALLS)
    return true;
  const char *text = hd_arena_printf(im->scratch,
                                     "functions of the model call each other "
                                     "more than %d levels deep",
                                     HD_ONNX_MAX_CALLS);
  return hd_error(im->diags, (hd_loc_t){0}, HD_E0904, text);
}

static bool is_given(const hd_onnx_call_t *call, const char *name) {
  for (size_t i = 0; i < call->attributes.size; i++)
    if (strcmp(call->attributes.data[i]->name, name) == 0)
      return true;
  return false;
}

// The attributes of the call, then defaults for those that it leaves out.
static bool read_attributes(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                            hd_onnx_scope_t *body, const HdOnnx__Node *node,
                            const char *what, hd_onnx_call_t *call) {
  const hd_attribute_t *attribute;
  for (size_t i = 0; i < node->n_attribute; i++) {
    if (!hd_import_attribute(im, scope, node->attribute[i], what, &attribute))
      return false;
    if (attribute)
      hd_vec_push(im->scratch, &call->attributes, attribute);
  }
  const HdOnnx__Function *function = call->function;
  for (size_t i = 0; i < function->n_attribute_proto; i++) {
    if (!hd_import_attribute(im, body, function->attribute_proto[i], what,
                             &attribute))
      return false;
    if (attribute && !is_given(call, attribute->name))
      hd_vec_push(im->scratch, &call->attributes, attribute);
  }
  return true;
}

static bool bind_inputs(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                        hd_onnx_scope_t *body, const HdOnnx__Node *node,
                        const HdOnnx__Function *function, const char *what) {
  if (node->n_input > function->n_input)
    return hd_import_invalid(im, what, or_empty(function->name),
                             "the function has %zu inputs, and %zu are given",
                             function->n_input, node->n_input);
  for (size_t i = 0; i < function->n_input; i++) {
    const hd_value_t *value = NULL;
    const char *given = i < node->n_input ? node->input[i] : "";
    if (given[0] && !hd_import_find(scope, given, &value))
      return hd_import_invalid(im, what, given,
                               "nothing before the node gives this input");
    if (!hd_import_bind(im, body, function->input[i], value))
      return hd_import_invalid(im, what, function->input[i],
                               "the function names two inputs so");
  }
  return true;
}

// An output of the function that is one of its inputs gets a node of its own:
// the caller's name is to be found.
static const hd_value_t *copy_input(hd_onnx_import_t *im, hd_graph_t *graph,
                                    const hd_value_t *value, const char *name) {
  hd_value_t *copy = hd_import_value(im, name);
  const hd_value_t **values = HD_ARENA_ARRAY(im->arena, const hd_value_t *, 2);
  values[0] = value;
  values[1] = copy;
  hd_node_t *node = HD_ARENA_NEW(im->arena, hd_node_t);
  *node = (hd_node_t){.domain = "onnx",
                      .version = IDENTITY_VERSION,
                      .op = "Identity",
                      .num_inputs = 1,
                      .inputs = values,
                      .num_outputs = 1,
                      .outputs = values + 1};
  hd_vec_push(im->arena, &graph->nodes, node);
  return copy;
}

static bool is_input(const hd_onnx_scope_t *body,
                     const HdOnnx__Function *function,
                     const hd_value_t *value) {
  const hd_value_t *input;
  for (size_t i = 0; i < function->n_input; i++)
    if (hd_import_find(body, function->input[i], &input) && input == value)
      return true;
  return false;
}

static bool bind_outputs(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                         hd_onnx_scope_t *body, const HdOnnx__Node *node,
                         const HdOnnx__Function *function, const char *what) {
  if (node->n_output > function->n_output)
    return hd_import_invalid(im, what, or_empty(function->name),
                             "the function has %zu outputs, and %zu are wanted",
                             function->n_output, node->n_output);
  for (size_t i = 0; i < node->n_output; i++) {
    const hd_value_t *value = NULL;
    if (!node->output[i][0])
      continue;
    if (!hd_import_find(body, function->output[i], &value) || !value)
      return hd_import_invalid(im, what, function->output[i],
                               "no node of the function gives this output");
    if (is_input(body, function, value))
      value = copy_input(im, scope->graph, value, node->output[i]);
    if (!hd_import_bind(im, scope, node->output[i], value))
      return hd_import_invalid(im, what, node->output[i],
                               "another value has this name");
  }
  return true;
}

bool hd_import_call(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                    const HdOnnx__Node *node, const HdOnnx__Function *function,
                    const char *what) {
  hd_onnx_call_t call = {.outer = scope->call,
                         .function = function,
                         .node = node,
                         .in_graph = scope->outer != NULL};
  hd_onnx_scope_t body = {.graph = scope->graph};
  if (!check_calls(im, &call, what) ||
      !hd_import_opsets(im, function->opset_import, function->n_opset_import,
                        &body) ||
      !read_attributes(im, scope, &body, node, what, &call))
    return false;
  body.call = &call;
  return bind_inputs(im, scope, &body, node, function, what) &&
         hd_import_nodes(im, &body, function->node, function->n_node) &&
         bind_outputs(im, scope, &body, node, function, what);
}
