// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NodeProto.
#include "Graph/ONNX/State.h"

#include <string.h>

static const char *or_empty(const char *text) { return text ? text : ""; }

const char *hd_import_describe(hd_onnx_import_t *im, const HdOnnx__Node *node,
                               size_t index) {
  const char *op = or_empty(node->op_type), *name = or_empty(node->name);
  return name[0]
             ? hd_arena_printf(im->scratch, "node '%.200s' (%.100s)", name, op)
             : hd_arena_printf(im->scratch, "node number %zu (%.100s)", index,
                               op);
}

// The node's label: its name, after those of the calls that it stands in.
static const char *label_of(hd_onnx_import_t *im, const hd_onnx_scope_t *scope,
                            const HdOnnx__Node *node) {
  const char *label = or_empty(node->name);
  for (const hd_onnx_call_t *call = scope->call; call; call = call->outer) {
    const char *outer = or_empty(call->node->name);
    if (outer[0])
      label = label[0] ? hd_arena_printf(im->scratch, "%s/%s", outer, label)
                       : outer;
  }
  return label[0] ? hd_arena_strndup(im->arena, label, strlen(label)) : NULL;
}

static bool read_inputs(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                        const HdOnnx__Node *proto, const char *what,
                        hd_node_t *node) {
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(im->arena, const hd_value_t *, proto->n_input + 1);
  node->num_inputs = (uint32_t)proto->n_input;
  node->inputs = inputs;
  for (size_t i = 0; i < proto->n_input; i++)
    if (proto->input[i][0] &&
        !hd_import_find(scope, proto->input[i], &inputs[i]))
      return hd_import_invalid(
          im, what, proto->input[i],
          "no input, initializer or node before it gives this value");
  return true;
}

static bool read_attributes(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                            const HdOnnx__Node *proto, const char *what,
                            hd_node_t *node) {
  const hd_attribute_t **attributes =
      HD_ARENA_ARRAY(im->arena, const hd_attribute_t *, proto->n_attribute + 1);
  node->attributes = attributes;
  for (size_t i = 0; i < proto->n_attribute; i++) {
    const hd_attribute_t *attribute;
    if (!hd_import_attribute(im, scope, proto->attribute[i], what, &attribute))
      return false;
    if (!attribute)
      continue;
    if (hd_node_attribute(node, attribute->name))
      return hd_import_invalid(im, what, attribute->name,
                               "the attribute is given twice");
    attributes[node->num_attributes++] = attribute;
  }
  return true;
}

// A function's output is called as the node that calls it calls it.
static const char *outer_name(const hd_onnx_scope_t *scope, const char *name) {
  if (scope->outer) // A graph inside a function.
    return name;
  for (const hd_onnx_call_t *call = scope->call; call; call = call->outer) {
    size_t i = 0;
    while (i < call->node->n_output && i < call->function->n_output &&
           strcmp(call->function->output[i], name) != 0)
      i++;
    if (i >= call->node->n_output || i >= call->function->n_output ||
        !call->node->output[i][0])
      break;
    name = call->node->output[i];
    if (call->in_graph)
      break;
  }
  return name;
}

static bool make_outputs(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                         const HdOnnx__Node *proto, const char *what,
                         hd_node_t *node) {
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(im->arena, const hd_value_t *, proto->n_output + 1);
  node->num_outputs = (uint32_t)proto->n_output;
  node->outputs = outputs;
  for (size_t i = 0; i < proto->n_output; i++) {
    if (!proto->output[i][0])
      continue;
    if (!scope->declared ||
        !hd_import_find(scope->declared, proto->output[i], &outputs[i]))
      outputs[i] = hd_import_value(im, outer_name(scope, proto->output[i]));
    if (!hd_import_bind(im, scope, proto->output[i], outputs[i]))
      return hd_import_invalid(im, what, proto->output[i],
                               "another value has this name");
  }
  return true;
}

static bool read_operator(hd_onnx_import_t *im, const hd_onnx_scope_t *scope,
                          const HdOnnx__Node *proto, const char *what,
                          hd_node_t *node) {
  const char *domain = or_empty(proto->domain);
  const hd_onnx_opset_t *opset = hd_import_opset(scope, domain);
  if (!or_empty(proto->op_type)[0])
    return hd_import_invalid(im, what, "", "no operator is named");
  if (!opset)
    return hd_import_invalid(im, what, domain[0] ? domain : "ai.onnx",
                             "the operator set of this domain is not imported");
  node->domain = opset->name;
  node->version = opset->version;
  node->op = hd_import_word(im->arena, proto->op_type);
  return true;
}

static bool count_node(hd_onnx_import_t *im) {
  if ((++im->num_nodes & 0xff) == 0)
    hd_budget_check(&im->context->budget);
  if (im->num_nodes <= HD_ONNX_MAX_NODES)
    return true;
  const char *text = hd_arena_printf(
      im->scratch, "the model has more than %d nodes", HD_ONNX_MAX_NODES);
  return hd_error(im->diags, (hd_loc_t){0}, HD_E0904, text);
}

static bool read_node(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                      const HdOnnx__Node *proto, size_t index) {
  if (!count_node(im))
    return false;
  const char *what = hd_import_describe(im, proto, index);
  const HdOnnx__Function *function = hd_import_function(im, proto);
  if (function)
    return hd_import_call(im, scope, proto, function, what);
  hd_node_t *node = HD_ARENA_NEW(im->arena, hd_node_t);
  node->label = label_of(im, scope, proto);
  if (!read_operator(im, scope, proto, what, node) ||
      !read_inputs(im, scope, proto, what, node) ||
      !read_attributes(im, scope, proto, what, node) ||
      !make_outputs(im, scope, proto, what, node))
    return false;
  hd_vec_push(im->arena, &scope->graph->nodes, node);
  return true;
}

bool hd_import_nodes(hd_onnx_import_t *im, hd_onnx_scope_t *scope,
                     HdOnnx__Node *const *nodes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!read_node(im, scope, nodes[i], i))
      return false;
  return true;
}
