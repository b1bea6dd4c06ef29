// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs for Graphviz: a box for each node, an arrow for each value that one
// uses of another; groups and graphs of attributes are frames. Constants are
// left out but for those that a graph gives.
#include "IR/Text/PrinterState.h"

#include "Support/Map.h"

typedef struct dot {
  hd_printer_t p;
  hd_ptr_map_t places; // Of values: the text of the box that gives them.
  unsigned count;      // Boxes and frames.
} dot_t;

static void print_text(dot_t *d, const char *text) {
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\')
      hd_buffer_puts(d->p.out, "\\");
    hd_buffer_write(d->p.out, c < 32 ? " " : text, 1);
  }
}

// A box; what stands in it follows.
static const char *begin_box(dot_t *d, const char *style) {
  const char *box = hd_arena_printf(&d->p.arena, "b%u", d->count++);
  hd_buffer_printf(d->p.out, "%*s%s [%s, label=\"", d->p.indent, "", box,
                   style);
  return box;
}

static void end_box(dot_t *d) { hd_buffer_puts(d->p.out, "\"]\n"); }

static void print_value_box(dot_t *d, const hd_value_t *value,
                            const char *style) {
  const char *box = begin_box(d, style);
  print_text(d, hd_value_label(value));
  hd_buffer_puts(d->p.out, "\\n");
  hd_print_value_type(&d->p, value);
  end_box(d);
  hd_ptr_map_set(&d->p.arena, &d->places, value, box);
}

static void print_arrow(dot_t *d, const hd_value_t *value, const char *box) {
  const char *from = hd_ptr_map_get(&d->places, value);
  if (!from)
    return;
  hd_buffer_printf(d->p.out, "%*s%s -> %s", d->p.indent, "", from, box);
  if (value->type != HD_VOID || value->rank >= 0) {
    hd_buffer_puts(d->p.out, " [label=\"");
    hd_print_value_type(&d->p, value);
    hd_buffer_puts(d->p.out, "\"]");
  }
  hd_buffer_puts(d->p.out, "\n");
}

static void print_frame(dot_t *d, const hd_graph_t *graph, const char *name);

static void print_node_box(dot_t *d, const hd_node_t *node) {
  const char *box =
      begin_box(d, node->anchor ? "shape=box, style=bold" : "shape=box");
  if (node->domain)
    hd_buffer_printf(d->p.out, "%s%d.", node->domain, node->version);
  print_text(d, node->op);
  if (node->label) {
    hd_buffer_puts(d->p.out, "\\n");
    print_text(d, node->label);
  }
  if (node->schedule)
    hd_buffer_printf(d->p.out, "\\nwith %s", node->schedule->name);
  else if (node->pin) {
    hd_buffer_puts(d->p.out, "\\nwith ");
    hd_pin_print(node->pin, d->p.out);
  }
  end_box(d);
  hd_ptr_map_set(&d->p.arena, &d->places, node, box);
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (node->outputs[i])
      hd_ptr_map_set(&d->p.arena, &d->places, node->outputs[i], box);
}

static void print_arrows(dot_t *d, const hd_node_t *node) {
  const char *box = hd_ptr_map_get(&d->places, node);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (node->inputs[i])
      print_arrow(d, node->inputs[i], box);
  for (uint32_t i = 0; i < node->num_attributes; i++)
    if (node->attributes[i]->kind == HD_ATTRIBUTE_GRAPH)
      print_frame(d, node->attributes[i]->u.graph,
                  hd_arena_printf(&d->p.arena, "%s of %s",
                                  node->attributes[i]->name, node->op));
}

static void begin_frame(dot_t *d, const char *style, const char *name) {
  hd_buffer_printf(d->p.out, "%*ssubgraph cluster_%u {\n", d->p.indent, "",
                   d->count++);
  d->p.indent += 2;
  hd_buffer_printf(d->p.out, "%*s%slabel=\"", d->p.indent, "", style);
  print_text(d, name);
  hd_buffer_puts(d->p.out, "\"\n");
}

static void end_frame(dot_t *d) {
  d->p.indent -= 2;
  hd_buffer_printf(d->p.out, "%*s}\n", d->p.indent, "");
}

// A group is a frame, too; arrows stand outside, as they would draw the boxes
// that they come from into it. Returns where the next nodes begin.
static size_t print_group(dot_t *d, const hd_graph_t *graph, size_t first) {
  const hd_node_t *const *nodes = graph->nodes.data;
  uint32_t group = nodes[first]->group;
  size_t end = first + 1;
  while (group && end < graph->nodes.size && nodes[end]->group == group)
    end++;
  if (group)
    begin_frame(d, "style=dashed; ",
                hd_arena_printf(&d->p.arena, "group %u", group));
  for (size_t i = first; i < end; i++)
    print_node_box(d, nodes[i]);
  if (group)
    end_frame(d);
  for (size_t i = first; i < end; i++)
    print_arrows(d, nodes[i]);
  return end;
}

static void print_output(dot_t *d, const hd_value_t *value) {
  if (value->constant && !hd_ptr_map_get(&d->places, value))
    print_value_box(d, value, "shape=note");
  const char *box = begin_box(d, "shape=oval, style=bold");
  print_text(d, hd_value_label(value));
  end_box(d);
  print_arrow(d, value, box);
}

static void print_frame(dot_t *d, const hd_graph_t *graph, const char *name) {
  begin_frame(d, "", name);
  for (size_t i = 0; i < graph->inputs.size; i++)
    print_value_box(d, graph->inputs.data[i], "shape=oval");
  for (size_t i = 0; i < graph->nodes.size;)
    i = print_group(d, graph, i);
  for (size_t i = 0; i < graph->outputs.size; i++)
    print_output(d, graph->outputs.data[i]);
  end_frame(d);
}

void hd_graph_print_dot(const hd_graph_t *graph, hd_buffer_t *out) {
  dot_t d = {.p = {.out = out, .integer = HD_I64, .indent = 2}};
  hd_arena_init(&d.p.arena, NULL);
  d.p.visible.arena = &d.p.arena;
  hd_buffer_printf(out, "digraph \"%s\" {\n", graph->name);
  print_frame(&d, graph, graph->name);
  hd_buffer_puts(out, "}\n");
  hd_arena_fini(&d.p.arena);
}
