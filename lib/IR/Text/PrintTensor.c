// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Text/PrinterState.h"

#include "IR/Call.h"

static void print_ints(hd_printer_t *p, const int64_t *values, unsigned count) {
  for (unsigned i = 0; i < count; i++)
    hd_buffer_printf(p->out, "%s%lld", i ? ", " : "", (long long)values[i]);
}

static void print_custom(hd_printer_t *p, const hd_mapping_t *mapping) {
  size_t outer = hd_visible_size(&p->visible);
  hd_buffer_printf(p->out, "%lld, [", (long long)mapping->workers);
  print_ints(p, mapping->dims, mapping->rank);
  hd_buffer_printf(p->out, "], (%s", hd_print_declare(p, mapping->worker));
  if (mapping->repeat)
    hd_buffer_printf(p->out, ", %s: %lld", hd_print_declare(p, mapping->repeat),
                     (long long)mapping->count);
  hd_buffer_puts(p->out, ") -> [");
  hd_print_list(p, mapping->exprs, mapping->rank);
  hd_buffer_puts(p->out, "]");
  hd_visible_pop(&p->visible, outer);
}

void hd_print_mapping(hd_printer_t *p, const hd_mapping_t *mapping) {
  if (mapping->kind == HD_MAPPING_COMPOSE) {
    bool nested = mapping->right->kind == HD_MAPPING_COMPOSE;
    hd_print_mapping(p, mapping->left);
    hd_buffer_puts(p->out, nested ? " * (" : " * ");
    hd_print_mapping(p, mapping->right);
    hd_buffer_puts(p->out, nested ? ")" : "");
    return;
  }
  hd_buffer_printf(p->out, "%s(", hd_mapping_kind_name(mapping->kind));
  switch (mapping->kind) {
  case HD_MAPPING_SPATIAL:
  case HD_MAPPING_REPEAT:
    print_ints(p, mapping->dims, mapping->rank);
    if (mapping->order) {
      hd_buffer_puts(p->out, ", order = [");
      for (unsigned i = 0; i < mapping->rank; i++)
        hd_buffer_printf(p->out, "%s%u", i ? ", " : "", mapping->order[i]);
      hd_buffer_puts(p->out, "]");
    }
    break;
  case HD_MAPPING_AUTO:
    print_ints(p, mapping->dims, mapping->rank);
    hd_buffer_printf(p->out, ", workers = %lld", (long long)mapping->workers);
    break;
  case HD_MAPPING_CUSTOM:
    print_custom(p, mapping);
    break;
  case HD_MAPPING_WITHIN:
    hd_print_mapping(p, mapping->left);
    hd_buffer_puts(p->out, ", ");
    hd_print_list(p, mapping->bounds, mapping->rank);
    break;
  case HD_MAPPING_IDLE:
    hd_print_mapping(p, mapping->left);
    hd_buffer_printf(p->out, ", %lld", (long long)mapping->workers);
    break;
  case HD_MAPPING_COMPOSE:
    break;
  }
  hd_buffer_puts(p->out, ")");
}

// A size that a function finds here, and that is no i32, is written with its
// type.
static void print_sizes(hd_printer_t *p, const hd_expr_t *const *sizes,
                        uint32_t count, bool is_stride) {
  for (uint32_t i = 0; i < count; i++) {
    hd_buffer_puts(p->out, i ? ", " : "");
    hd_print_expr(p, sizes[i], 0);
    if (p->func && hd_func_find_size(p->func, p->param, i, is_stride) >= 0 &&
        sizes[i]->type.scalar != HD_I32)
      hd_buffer_printf(p->out, ": %s", hd_type_name(sizes[i]->type));
  }
}

void hd_print_layout(hd_printer_t *p, const hd_layout_t *layout) {
  hd_buffer_puts(p->out, "layout(");
  for (uint32_t i = 0; i < layout->num_items; i++) {
    const hd_layout_item_t *item = &layout->items[i];
    hd_buffer_printf(p->out, "%s%s", i ? ", " : "",
                     hd_layout_kind_name(item->kind));
    if (item->kind == HD_LAYOUT_ROW || item->kind == HD_LAYOUT_COLUMN)
      continue;
    hd_buffer_puts(p->out, "(");
    if (item->mapping)
      hd_print_mapping(p, item->mapping);
    print_sizes(p, item->values, item->num_values,
                item->kind == HD_LAYOUT_STRIDES);
    hd_buffer_puts(p->out, ")");
  }
  hd_buffer_puts(p->out, ")");
}

void hd_print_tensor(hd_printer_t *p, const hd_tensor_t *tensor) {
  hd_buffer_puts(p->out, hd_type_name(tensor->element));
  if (tensor->rank) {
    hd_buffer_puts(p->out, "[");
    print_sizes(p, tensor->shape, tensor->rank, false);
    hd_buffer_puts(p->out, "]");
  }
  if (tensor->layout) {
    hd_buffer_puts(p->out, " ");
    hd_print_layout(p, tensor->layout);
  }
  if (tensor->align)
    hd_buffer_printf(p->out, " align(%u)", tensor->align);
  if (tensor->is_overlay)
    hd_buffer_printf(p->out, " overlay(%u)", tensor->overlay);
}
