// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything about a graph that its text might lose.
#include "IR/Generator.h"

#include <math.h>

static void dump_text(hd_buffer_t *out, const char *text) {
  hd_buffer_printf(out, "%s|", text ? text : "-");
}

static void dump_constant(const hd_value_t *value, hd_buffer_t *out) {
  const hd_constant_t *constant = value->constant;
  dump_text(out, constant->file);
  hd_buffer_printf(out, "%lld", (long long)constant->offset);
  for (size_t i = 0; constant->tensor && i < constant->tensor->bytes; i++)
    hd_buffer_printf(out, " %02x", constant->tensor->data[i]);
}

static void dump_value(const hd_value_t *value, hd_buffer_t *out,
                       hd_dump_expr_t expr, void *argument) {
  if (!value) {
    hd_buffer_puts(out, "none\n");
    return;
  }
  dump_text(out, value->name);
  dump_text(out, value->label);
  hd_buffer_printf(out, "%d %d %d:\n", value->form, value->type, value->rank);
  for (int i = 0; i < value->rank; i++)
    if (value->shape[i])
      expr(argument, value->shape[i]);
    else
      hd_buffer_puts(out, "?\n");
  if (value->constant)
    dump_constant(value, out);
}

static void dump_float(double value, hd_buffer_t *out) {
  hd_buffer_printf(out, "%a|", isnan(value) ? (double)NAN : value);
}

static void dump_attribute(const hd_attribute_t *a, hd_buffer_t *out,
                           hd_dump_expr_t expr, void *argument) {
  hd_buffer_printf(out, "%s %d %zu ", a->name, a->kind, a->count);
  switch (a->kind) {
  case HD_ATTRIBUTE_INT:
    hd_buffer_printf(out, "%lld", (long long)a->u.i);
    break;
  case HD_ATTRIBUTE_FLOAT:
    dump_float(a->u.f, out);
    break;
  case HD_ATTRIBUTE_STRING:
    dump_text(out, a->u.s);
    break;
  case HD_ATTRIBUTE_INTS:
    for (size_t i = 0; i < a->count; i++)
      hd_buffer_printf(out, "%lld ", (long long)a->u.ints[i]);
    break;
  case HD_ATTRIBUTE_FLOATS:
    for (size_t i = 0; i < a->count; i++)
      dump_float(a->u.floats[i], out);
    break;
  case HD_ATTRIBUTE_STRINGS:
    for (size_t i = 0; i < a->count; i++)
      dump_text(out, a->u.strings[i]);
    break;
  case HD_ATTRIBUTE_TENSOR:
    dump_value(a->u.tensor, out, expr, argument);
    break;
  case HD_ATTRIBUTE_GRAPH:
    hd_dump_graph(a->u.graph, out, expr, argument);
    break;
  case HD_ATTRIBUTE_TYPE:
    hd_buffer_printf(out, "%d", a->u.type);
    break;
  case HD_ATTRIBUTE_SIZE:
  case HD_ATTRIBUTE_SIZES:
    for (size_t i = 0; i < a->count; i++)
      expr(argument, a->u.sizes[i]);
    break;
  case HD_ATTRIBUTE_KINDS:
    break;
  }
  hd_buffer_puts(out, "\n");
}

static void dump_node(const hd_node_t *node, hd_buffer_t *out,
                      hd_dump_expr_t expr, void *argument) {
  dump_text(out, node->domain);
  dump_text(out, node->op);
  dump_text(out, node->task ? node->task->name : NULL);
  dump_text(out, node->label);
  dump_text(out, node->schedule ? node->schedule->name : NULL);
  hd_buffer_printf(out, "%d %u %u %u %d\n", node->version, node->num_inputs,
                   node->num_outputs, node->group, node->anchor);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    dump_text(out, node->inputs[i] ? node->inputs[i]->name : NULL);
  for (uint32_t i = 0; i < node->num_attributes; i++)
    dump_attribute(node->attributes[i], out, expr, argument);
  for (uint32_t i = 0; i < node->num_outputs; i++)
    dump_value(node->outputs[i], out, expr, argument);
}

void hd_dump_graph(const hd_graph_t *graph, hd_buffer_t *out,
                   hd_dump_expr_t expr, void *argument) {
  dump_text(out, graph->name);
  hd_buffer_printf(out, "%zu dims\n", graph->dims.size);
  for (size_t i = 0; i < graph->inputs.size; i++)
    dump_value(graph->inputs.data[i], out, expr, argument);
  for (size_t i = 0; i < graph->constants.size; i++)
    dump_value(graph->constants.data[i], out, expr, argument);
  for (size_t i = 0; i < graph->nodes.size; i++)
    dump_node(graph->nodes.data[i], out, expr, argument);
  for (size_t i = 0; i < graph->outputs.size; i++)
    dump_text(out, graph->outputs.data[i]->name);
  hd_buffer_puts(out, "\n");
}
