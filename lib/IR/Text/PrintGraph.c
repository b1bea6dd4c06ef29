// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs. A value's label stands in the list of outputs where the value is one
// of them, so that a signature shows the model's names, and else where the
// value is given.
#include "IR/Text/PrinterState.h"

#include "Support/Map.h"

// What the graph gives itself, and whether its label has been printed.
static const char own, labelled;

static void print_label(hd_printer_t *p, const char *label) {
  if (!label)
    return;
  hd_buffer_puts(p->out, " as ");
  hd_print_string(p, label);
}

static void find_own(hd_printer_t *p, const hd_graph_t *graph,
                     hd_ptr_map_t *values) {
  for (size_t i = 0; i < graph->constants.size; i++)
    hd_ptr_map_set(&p->arena, values, graph->constants.data[i], &own);
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    for (uint32_t n = 0; n < node->num_outputs; n++)
      if (node->outputs[n])
        hd_ptr_map_set(&p->arena, values, node->outputs[n], &own);
  }
}

static void print_inputs(hd_printer_t *p, const hd_graph_t *graph) {
  hd_buffer_puts(p->out, "(");
  for (size_t i = 0; i < graph->inputs.size; i++) {
    const hd_value_t *value = graph->inputs.data[i];
    hd_buffer_printf(p->out, "%s%s", i ? ", " : "", value->name);
    print_label(p, value->label);
    hd_buffer_puts(p->out, ": ");
    hd_print_value_type(p, value);
  }
  hd_buffer_puts(p->out, ")");
}

static void print_outputs(hd_printer_t *p, const hd_graph_t *graph,
                          hd_ptr_map_t *values) {
  for (size_t i = 0; i < graph->outputs.size; i++) {
    const hd_value_t *value = graph->outputs.data[i];
    hd_buffer_printf(p->out, "%s%s", i ? ", " : " -> ", value->name);
    if (hd_ptr_map_get(values, value) != &own)
      continue;
    print_label(p, value->label);
    hd_ptr_map_set(&p->arena, values, value, &labelled);
  }
}

// name [as "label"] [: type], or _ for what nobody asks for.
static void print_result(hd_printer_t *p, const hd_value_t *value,
                         const hd_ptr_map_t *values) {
  hd_buffer_puts(p->out, value ? value->name : "_");
  if (!value)
    return;
  if (hd_ptr_map_get(values, value) == &own)
    print_label(p, value->label);
  if (value->form == HD_HOLDS_TENSOR && value->type == HD_VOID &&
      value->rank < 0)
    return;
  hd_buffer_puts(p->out, ": ");
  hd_print_value_type(p, value);
}

static void print_node(hd_printer_t *p, const hd_node_t *node,
                       const hd_ptr_map_t *values) {
  hd_buffer_printf(p->out, "%*s%s", p->indent, "",
                   node->anchor ? "anchor " : "");
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    hd_buffer_puts(p->out, i ? ", " : "");
    print_result(p, node->outputs[i], values);
  }
  hd_buffer_puts(p->out, node->num_outputs ? " = " : "");
  if (node->domain)
    hd_buffer_printf(p->out, "%s%d.", node->domain, node->version);
  hd_buffer_printf(p->out, "%s(", node->op);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    hd_buffer_printf(p->out, "%s%s", i ? ", " : "",
                     node->inputs[i] ? node->inputs[i]->name : "_");
  hd_buffer_puts(p->out, ")");
  for (uint32_t i = 0; i < node->num_attributes; i++) {
    hd_buffer_puts(p->out, i ? ", " : " { ");
    hd_print_attribute(p, node, node->attributes[i]);
  }
  hd_buffer_puts(p->out, node->num_attributes ? " }" : "");
  if (node->schedule)
    hd_buffer_printf(p->out, " with %s", node->schedule->name);
  else if (node->pin) {
    hd_buffer_puts(p->out, " with ");
    hd_pin_print(node->pin, p->out);
  }
  print_label(p, node->label);
  hd_buffer_puts(p->out, "\n");
}

static void print_nodes(hd_printer_t *p, const hd_graph_t *graph,
                        const hd_ptr_map_t *values) {
  uint32_t group = 0;
  for (size_t i = 0; i <= graph->nodes.size; i++) {
    const hd_node_t *node = i < graph->nodes.size ? graph->nodes.data[i] : NULL;
    uint32_t next = node ? node->group : 0;
    if (group && group != next) {
      p->indent -= 2;
      hd_buffer_printf(p->out, "%*s}\n", p->indent, "");
    }
    if (next && group != next) {
      hd_buffer_printf(p->out, "%*sgroup {\n", p->indent, "");
      p->indent += 2;
    }
    group = next;
    if (node)
      print_node(p, node, values);
  }
}

void hd_print_graph(hd_printer_t *p, const hd_graph_t *graph) {
  hd_ptr_map_t values = {0};
  hd_scalar_t integer = p->integer;
  if (graph->name)
    hd_visible_pop(&p->visible, 0);
  size_t outside = hd_visible_size(&p->visible);
  p->integer = HD_I64;
  for (size_t i = 0; i < graph->dims.size; i++)
    hd_print_declare(p, graph->dims.data[i]);
  find_own(p, graph, &values);
  hd_buffer_printf(p->out, "graph%s%s", graph->name ? " " : "",
                   graph->name ? graph->name : "");
  print_inputs(p, graph);
  print_outputs(p, graph, &values);
  hd_buffer_puts(p->out, " {\n");
  p->indent += 2;
  for (size_t i = 0; i < graph->constants.size; i++) {
    hd_buffer_printf(p->out, "%*sconst ", p->indent, "");
    print_result(p, graph->constants.data[i], &values);
    hd_buffer_puts(p->out, " = ");
    hd_print_constant(p, graph->constants.data[i]);
    hd_buffer_puts(p->out, "\n");
  }
  print_nodes(p, graph, &values);
  p->indent -= 2;
  hd_buffer_printf(p->out, "%*s}%s", p->indent, "", graph->name ? "\n" : "");
  hd_visible_pop(&p->visible, outside);
  p->integer = integer;
}
