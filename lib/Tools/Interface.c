// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/Interface.h"
#include "CodeGen/CodeGen.h"
#include "IR/Generic.h"
#include "IR/SharedPlan.h"
#include "IR/Text/Printer.h"

uint32_t hd_interface_num_params(const hd_func_t *kernel) {
  return kernel->num_params + kernel->num_maps;
}

hd_interface_param_t hd_interface_param(const hd_func_t *kernel, uint32_t i) {
  enum { MAP_BYTES = 128, MAP_ALIGN = 64, ADDRESS_BYTES = 8 };
  if (i >= kernel->num_params)
    return (hd_interface_param_t){kernel->maps[i - kernel->num_params],
                                  MAP_BYTES, MAP_ALIGN};
  const hd_var_t *var = kernel->params[i];
  size_t bytes =
      var->tensor ? ADDRESS_BYTES : (hd_type_bits(var->type) + 7) / 8;
  return (hd_interface_param_t){var, bytes, bytes};
}

static void print_dim(const hd_expr_t *dim, hd_buffer_t *out) {
  int64_t number;
  if (!dim || hd_expr_fold_int(dim, &number))
    hd_buffer_printf(out, "%lld", dim ? (long long)number : 1);
  else
    hd_expr_print(dim, out);
}

static void print_dims(const char *word, const hd_expr_t *const dims[3],
                       hd_buffer_t *out) {
  hd_buffer_printf(out, " %s(", word);
  for (int i = 0; i < 3; i++) {
    hd_buffer_puts(out, i ? ", " : "");
    print_dim(dims[i], out);
  }
  hd_buffer_puts(out, ")");
}

void hd_interface_comment(hd_arena_t *arena, const hd_func_t *kernel,
                          hd_buffer_t *out) {
  hd_buffer_printf(out, "// kernel %s:", hd_func_symbol(arena, kernel));
  print_dims("grid", kernel->launch.grid, out);
  print_dims("block", kernel->launch.block, out);
  print_dims("cluster", kernel->launch.cluster, out);
  hd_buffer_puts(out, "\n//   bytes of dynamic shared memory: ");
  print_dim(hd_shared_plan(arena, kernel)->size, out);
  for (uint32_t i = 0; i < hd_interface_num_params(kernel); i++) {
    hd_buffer_printf(out, "\n//   parameter %u, %zu bytes: ", i,
                     hd_interface_param(kernel, i).bytes);
    hd_param_print(kernel, i, out);
  }
  hd_buffer_puts(out, "\n");
}

static json_t *dim_json(const hd_expr_t *dim) {
  int64_t number = 1;
  if (!dim || hd_expr_fold_int(dim, &number))
    return json_integer((json_int_t)number);
  hd_buffer_t text = {0};
  hd_expr_print(dim, &text);
  json_t *result = json_string(hd_buffer_text(&text));
  hd_buffer_fini(&text);
  return result;
}

static json_t *list_json(const hd_expr_t *const *exprs, uint32_t count) {
  json_t *result = json_array();
  for (uint32_t i = 0; i < count; i++)
    json_array_append_new(result, dim_json(exprs[i]));
  return result;
}

static void set_key(json_t *object, const char *key, json_t *value) {
  json_object_set_new(object, key, value);
}

static void add_tensor(const hd_var_t *var, json_t *object) {
  const hd_tensor_t *tensor = var->tensor;
  const hd_layout_t *layout = tensor->layout;
  set_key(object, "type", json_string(hd_type_name(var->type)));
  set_key(object, "direction", json_string(hd_direction_name(var->direction)));
  set_key(object, "shape", list_json(tensor->shape, tensor->rank));
  if (layout && layout->num_items && layout->items[0].kind == HD_LAYOUT_STRIDES)
    set_key(object, "strides",
            list_json(layout->items[0].values, layout->items[0].num_values));
}

static void add_map(const hd_map_t *map, json_t *object) {
  uint32_t inner = map->tensor->tensor->rank - 2;
  set_key(object, "tensor", json_string(map->tensor->name));
  set_key(object, "swizzle", json_integer(map->swizzle));
  set_key(object, "l2", json_integer(map->l2));
  set_key(object, map->im2col ? "im2col" : "box",
          list_json(map->box, map->num_box));
  if (!map->im2col)
    return;
  set_key(object, "lower", list_json(map->lower, inner));
  set_key(object, "upper", list_json(map->upper, inner));
  set_key(object, "step", list_json(map->step, inner));
}

static json_t *param_json(const hd_func_t *kernel, uint32_t i) {
  hd_interface_param_t param = hd_interface_param(kernel, i);
  const hd_var_t *var = param.var;
  json_t *object = json_pack("{s:s, s:s, s:I, s:I}", "name", var->name, "kind",
                             var->map      ? "tensor_map"
                             : var->tensor ? "tensor"
                                           : "scalar",
                             "bytes", (json_int_t)param.bytes, "align",
                             (json_int_t)param.align);
  if (var->map)
    add_map(var->map, object);
  else if (var->tensor)
    add_tensor(var, object);
  else
    set_key(object, "type", json_string(hd_type_name(var->type)));
  return object;
}

json_t *hd_interface_json(hd_arena_t *arena, const hd_func_t *kernel) {
  const hd_expr_t *shared = hd_shared_plan(arena, kernel)->size;
  json_t *params = json_array();
  for (uint32_t i = 0; i < hd_interface_num_params(kernel); i++)
    json_array_append_new(params, param_json(kernel, i));
  return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "name",
                   hd_func_symbol(arena, kernel), "grid",
                   list_json(kernel->launch.grid, 3), "block",
                   list_json(kernel->launch.block, 3), "cluster",
                   list_json(kernel->launch.cluster, 3), "shared_bytes",
                   dim_json(shared), "parameters", params);
}
