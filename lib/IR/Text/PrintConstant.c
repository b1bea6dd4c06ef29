// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What graphs hold: types of values, elements of constants, attributes.
#include "IR/Text/PrinterState.h"

void hd_print_value_type(hd_printer_t *p, const hd_value_t *value) {
  static const char *const before[] = {"", "seq(", "optional("};
  hd_buffer_puts(p->out, before[value->form]);
  hd_buffer_puts(p->out,
                 value->type == HD_VOID ? "?" : hd_scalar_name(value->type));
  if (value->rank < 0 && value->type != HD_VOID)
    hd_buffer_puts(p->out, "[..]");
  for (int i = 0; i < value->rank; i++) {
    hd_buffer_puts(p->out, i ? ", " : "[");
    if (value->shape[i])
      hd_print_expr(p, value->shape[i], 0);
    else
      hd_buffer_puts(p->out, "?");
  }
  if (value->rank >= 0)
    hd_buffer_puts(p->out, value->rank ? "]" : "[]");
  hd_buffer_puts(p->out, value->form == HD_HOLDS_TENSOR ? "" : ")");
}

static void print_int(hd_printer_t *p, hd_scalar_t type, int64_t value) {
  if (type == HD_BOOL)
    hd_buffer_puts(p->out, value ? "true" : "false");
  else if (type == HD_U64)
    hd_buffer_printf(p->out, "%llu", (unsigned long long)value);
  else
    hd_buffer_printf(p->out, "%lld", (long long)value);
}

static void print_element(hd_printer_t *p, const hd_host_tensor_t *tensor,
                          int64_t i) {
  if (hd_scalar_class(tensor->type) == HD_CLASS_FLOAT)
    hd_float_print(tensor->type, hd_host_tensor_get(tensor, i), p->out);
  else
    print_int(p, tensor->type, hd_host_tensor_get_int(tensor, i));
}

// Whether one element, repeated, is all of them.
static bool is_one(const hd_host_tensor_t *tensor) {
  size_t size = hd_host_element_bytes(tensor->type);
  return tensor->count == 1 ||
         (tensor->count > 1 &&
          memcmp(tensor->data, tensor->data + size, tensor->bytes - size) == 0);
}

void hd_print_elements(hd_printer_t *p, const hd_host_tensor_t *tensor) {
  if (is_one(tensor)) {
    print_element(p, tensor, 0);
    return;
  }
  hd_buffer_puts(p->out, "[");
  for (int64_t i = 0; i < tensor->count; i++) {
    hd_buffer_puts(p->out, i ? ", " : "");
    print_element(p, tensor, i);
  }
  hd_buffer_puts(p->out, "]");
}

void hd_print_constant(hd_printer_t *p, const hd_value_t *value) {
  const hd_constant_t *constant = value->constant;
  if (constant->file) {
    hd_buffer_puts(p->out, "file(");
    hd_print_string(p, constant->file);
    hd_buffer_printf(p->out, ", %lld)", (long long)constant->offset);
    return;
  }
  const hd_host_tensor_t *tensor = hd_constant_elements(&p->arena, value);
  if (!tensor) { // The graph is wrong.
    hd_buffer_puts(p->out, "?");
    return;
  }
  hd_print_elements(p, tensor);
}

// An empty list says by a word what it is a list of.
static void print_list(hd_printer_t *p, const hd_attribute_t *a,
                       hd_scalar_t ints, hd_scalar_t floats) {
  if (a->count == 0 && a->kind != HD_ATTRIBUTE_INTS &&
      a->kind != HD_ATTRIBUTE_SIZES)
    hd_buffer_puts(p->out,
                   a->kind == HD_ATTRIBUTE_FLOATS ? "floats " : "strings ");
  hd_buffer_puts(p->out, "[");
  for (size_t i = 0; i < a->count; i++) {
    hd_buffer_puts(p->out, i ? ", " : "");
    if (a->kind == HD_ATTRIBUTE_INTS)
      print_int(p, ints, a->u.ints[i]);
    else if (a->kind == HD_ATTRIBUTE_FLOATS)
      hd_float_print(floats, a->u.floats[i], p->out);
    else if (a->kind == HD_ATTRIBUTE_SIZES)
      hd_print_expr(p, a->u.sizes[i], 0);
    else
      hd_print_string(p, a->u.strings[i]);
  }
  hd_buffer_puts(p->out, "]");
}

// Numbers that no bool has are none: the binding will say so.
static bool are_bools(const hd_node_t *node, const hd_attribute_t *a) {
  if (!hd_node_has_bool(node, a->name))
    return false;
  for (size_t i = 0; a->kind == HD_ATTRIBUTE_INTS && i < a->count; i++)
    if (a->u.ints[i] != (a->u.ints[i] & 1))
      return false;
  return a->kind != HD_ATTRIBUTE_INT || a->u.i == (a->u.i & 1);
}

void hd_print_attribute(hd_printer_t *p, const hd_node_t *node,
                        const hd_attribute_t *a) {
  hd_scalar_t ints = are_bools(node, a) ? HD_BOOL : HD_I64;
  hd_scalar_t floats = hd_node_float_type(node);
  hd_buffer_printf(p->out, "%s = ", a->name);
  switch (a->kind) {
  case HD_ATTRIBUTE_INT:
    print_int(p, ints, a->u.i);
    break;
  case HD_ATTRIBUTE_FLOAT:
    hd_float_print(floats, a->u.f, p->out);
    break;
  case HD_ATTRIBUTE_STRING:
    hd_print_string(p, a->u.s);
    break;
  case HD_ATTRIBUTE_INTS:
  case HD_ATTRIBUTE_FLOATS:
  case HD_ATTRIBUTE_STRINGS:
  case HD_ATTRIBUTE_SIZES:
    print_list(p, a, ints, floats);
    break;
  case HD_ATTRIBUTE_TENSOR:
    hd_print_value_type(p, a->u.tensor);
    hd_buffer_puts(p->out, " ");
    hd_print_constant(p, a->u.tensor);
    break;
  case HD_ATTRIBUTE_GRAPH:
    hd_print_graph(p, a->u.graph);
    break;
  case HD_ATTRIBUTE_TYPE:
    hd_buffer_puts(p->out, hd_scalar_name(a->u.type));
    break;
  case HD_ATTRIBUTE_SIZE:
    hd_print_expr(p, a->u.sizes[0], 0);
    break;
  case HD_ATTRIBUTE_KINDS:
    break;
  }
}
