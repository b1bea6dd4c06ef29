// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the printer share: Printer.c (functions), PrintStmt.c,
// PrintExpr.c, PrintTensor.c (tensors, layouts, mappings), PrintGraph.c,
// PrintConstant.c (attributes and constants of graphs).
#ifndef HIDET_IR_TEXT_PRINTERSTATE_H
#define HIDET_IR_TEXT_PRINTERSTATE_H

#include "IR/Graph/Graph.h"
#include "IR/Text/Printer.h"
#include "IR/Visible.h"

typedef struct hd_printer {
  hd_buffer_t *out;
  hd_arena_t arena; // For names.
  hd_visible_t visible;
  const hd_module_t *module; // Its constants' names are taken; may be NULL.
  int indent;
  const hd_func_t *func; // Whose parameter `param` is printed; else NULL.
  uint32_t param;
  hd_scalar_t integer; // Of integers that are printed without their type.
} hd_printer_t;

// Names are unique among the visible ones: a variable that passes have left
// with a taken name is printed with a number behind it.
const char *hd_print_declare(hd_printer_t *p, const hd_var_t *var);
// The name that it would get, which is not visible yet.
const char *hd_print_pick_name(hd_printer_t *p, const hd_var_t *var);
const char *hd_print_name_of(const hd_printer_t *p, const hd_var_t *var);

// least: the loosest precedence that needs no parentheses here.
void hd_print_expr(hd_printer_t *p, const hd_expr_t *e, int least);
void hd_print_list(hd_printer_t *p, const hd_expr_t *const *exprs,
                   unsigned count);
// name[indices +: lanes]
void hd_print_place(hd_printer_t *p, const hd_var_t *var, bool linear,
                    const hd_expr_t *const *indices, unsigned count,
                    unsigned lanes);
void hd_print_mapping(hd_printer_t *p, const hd_mapping_t *mapping);
void hd_print_layout(hd_printer_t *p, const hd_layout_t *layout);
void hd_print_tensor(hd_printer_t *p, const hd_tensor_t *tensor);

// " { ... }", its variables visible in it alone.
void hd_print_block(hd_printer_t *p, hd_block_t block);

// In quotes; bytes that are no text by \xHH.
void hd_print_string(hd_printer_t *p, const char *text);

// Graphs: the element type and shape of a value, its elements, an attribute
// of a node.
void hd_print_graph(hd_printer_t *p, const hd_graph_t *graph);
void hd_print_value_type(hd_printer_t *p, const hd_value_t *value);
void hd_print_constant(hd_printer_t *p, const hd_value_t *value);
// The same elements where their type stands before them.
void hd_print_elements(hd_printer_t *p, const hd_host_tensor_t *tensor);
void hd_print_attribute(hd_printer_t *p, const hd_node_t *node,
                        const hd_attribute_t *attribute);

#endif
