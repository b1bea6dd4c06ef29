// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables: constants of a module that code reads by indices.
//
//   const weights: f32[2, 2] = [0.5, 1, 1.5, 2]
//
// One that stands in a block is known there alone, and an item of the module
// behind its function: in the text that is printed it is like any other.
#include "IR/Graph/HostTensor.h"
#include "IR/Text/ParserState.h"

#include <string.h>

enum { MAX_ELEMENTS = 1 << 20 };

static bool set_element(hd_parser_t *p, hd_host_tensor_t *table, int64_t i) {
  const hd_expr_t *e = hd_parse_as(p, hd_type(table->type));
  const hd_expr_t *value = e ? hd_expr_fold(p->arena, e) : NULL;
  if (e && !value)
    return hd_not_constant(p, e);
  if (value && i < table->count && hd_type_is_float(value->type))
    hd_host_tensor_set(table, i, value->u.f);
  else if (value && i < table->count)
    hd_host_tensor_set_int(table, i, value->u.i);
  return value != NULL;
}

// [a, b, ...], all of them; or one element, for all.
static bool parse_elements(hd_parser_t *p, hd_host_tensor_t *table,
                           const char *name, hd_loc_t loc) {
  if (!hd_accept(p, "[")) {
    if (!set_element(p, table, 0))
      return false;
    size_t size = hd_host_element_bytes(table->type);
    for (size_t i = size; i < table->bytes; i++)
      table->data[i] = table->data[i - size];
    return true;
  }
  int64_t count = 0;
  while (!hd_at(p, "]")) {
    if (!set_element(p, table, count++))
      return false;
    if (!hd_accept(p, ","))
      break;
  }
  if (!hd_expect(p, "]"))
    return false;
  return count == table->count ||
         hd_error(p->diags, loc, HD_E0206,
                  hd_arena_printf(p->arena, "'%s'", name), (int)table->count,
                  "elements", count > INT32_MAX ? INT32_MAX : (int)count);
}

// The shape in numbers; the tensor's own becomes these.
static bool settle_shape(hd_parser_t *p, hd_tensor_t *tensor, int64_t *sizes,
                         hd_loc_t loc) {
  const hd_expr_t **shape =
      HD_ARENA_ARRAY(p->arena, const hd_expr_t *, tensor->rank);
  int64_t count = 1;
  for (uint32_t i = 0; i < tensor->rank; i++) {
    if (!hd_expr_fold_int(tensor->shape[i], &sizes[i]))
      return hd_not_constant(p, tensor->shape[i]);
    if (__builtin_mul_overflow(count, sizes[i], &count))
      count = INT64_MAX;
    if (sizes[i] < 1 || count > MAX_ELEMENTS)
      return hd_error(p->diags, loc, HD_E0307, "the elements of a table", 1LL,
                      (long long)MAX_ELEMENTS,
                      (long long)(sizes[i] < 1 ? sizes[i] : count));
    shape[i] = hd_expr_i32(p->arena, sizes[i]);
  }
  tensor->shape = shape;
  return true;
}

static hd_var_t *parse_table(hd_parser_t *p, const char *name, hd_loc_t loc) {
  hd_loc_t type_loc = hd_here(p);
  const hd_tensor_t *type = hd_parse_tensor(p, HD_SCOPE_GLOBAL);
  if (!type)
    return NULL;
  hd_tensor_t tensor = *type;
  int64_t sizes[HD_TENSOR_MAX_RANK];
  hd_scalar_class_t class = hd_scalar_class((hd_scalar_t)tensor.element.scalar);
  if (tensor.rank == 0 || tensor.rank > HD_TENSOR_MAX_RANK || tensor.layout ||
      tensor.element.lanes > 1 || class == HD_CLASS_OPAQUE ||
      class == HD_CLASS_VOID) {
    hd_error(p->diags, type_loc, HD_E0302,
             "anything but scalars in row-major order", "in a table");
    return NULL;
  }
  if (!settle_shape(p, &tensor, sizes, type_loc) || !hd_expect(p, "="))
    return NULL;
  hd_host_tensor_t *table = hd_host_tensor_make(
      p->arena, (hd_scalar_t)tensor.element.scalar, sizes, tensor.rank);
  if (!parse_elements(p, table, name, loc))
    return NULL;
  hd_tensor_t *kept = HD_ARENA_NEW(p->arena, hd_tensor_t);
  *kept = tensor;
  hd_var_t *var = hd_var_make_tensor(p->arena, name, kept, loc);
  var->direction = HD_DIR_IN;
  var->table = table;
  return var;
}

static const hd_const_t *push_table(hd_parser_t *p, const hd_var_t *table,
                                    bool is_local) {
  hd_const_t *constant = HD_ARENA_NEW(p->arena, hd_const_t);
  *constant = (hd_const_t){.name = table->name,
                           .table = table,
                           .is_local = is_local,
                           .loc = table->loc};
  hd_item_t item = {.kind = HD_ITEM_CONST, .u.constant = constant};
  if (!p->probing)
    hd_vec_push(p->arena, &p->module->items, item);
  return constant;
}

bool hd_parse_table(hd_parser_t *p, const char *name, hd_loc_t loc) {
  const hd_var_t *table = parse_table(p, name, loc);
  return table && push_table(p, table, false);
}

// function_name, or where that is taken function_name_1...
static const char *name_in_module(hd_parser_t *p, const char *name) {
  int length = (int)strcspn(p->func->name, "["); // Of an instance.
  const char *plain =
      hd_arena_printf(p->arena, "%.*s_%s", length, p->func->name, name);
  const char *fresh = plain;
  size_t cursor = 0;
  for (unsigned i = 1; hd_module_next(p->module, fresh, &cursor); i++) {
    fresh = hd_arena_printf(p->arena, "%s_%u", plain, i);
    cursor = 0;
  }
  return fresh;
}

const hd_const_t *hd_parse_local_table(hd_parser_t *p, const char *name,
                                       hd_loc_t loc) {
  hd_var_t *table = parse_table(p, name, loc);
  if (!table)
    return NULL;
  table->name = name_in_module(p, name);
  return push_table(p, table, true);
}
