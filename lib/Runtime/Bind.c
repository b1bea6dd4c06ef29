// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sizes from shapes.
#include "IR/Text/Printer.h"
#include "Runtime/Program.h"
#include "Runtime/Storage.h"

#include <stdio.h>

static const hd_loc_t nowhere;

static bool report_shape(hd_context_t *context, const hd_var_t *var,
                         const int64_t *shape, unsigned rank) {
  char found[400];
  hd_buffer_t needed = {0};
  hd_buffer_puts(&needed, "[");
  for (uint32_t i = 0; i < var->tensor->rank; i++) {
    hd_buffer_puts(&needed, i ? ", " : "");
    const hd_expr_t *size = var->tensor->shape[i];
    if (size->kind == HD_EXPR_CONST) // 4, where the text says i64(4).
      hd_buffer_printf(&needed, "%lld", (long long)size->u.i);
    else
      hd_expr_print(size, &needed);
  }
  hd_buffer_puts(&needed, "]");
  hd_error(&context->diags, nowhere, HD_E0806, var->name,
           hd_shape_text(shape, rank, found, sizeof(found)),
           hd_buffer_text(&needed));
  hd_buffer_fini(&needed);
  return false;
}

bool hd_bind_int(hd_context_t *context, hd_env_t *env, hd_arena_t *arena,
                 const hd_var_t *var, int64_t value) {
  unsigned bits = hd_scalar_bits((hd_scalar_t)var->type.scalar);
  bool is_signed = hd_type_is_signed(var->type);
  unsigned digits = bits - is_signed;
  bool fits = hd_type_is_bool(var->type)
                  ? value == 0 || value == 1
                  : digits >= 63 || (value >> digits == 0 ||
                                     (is_signed && value >> digits == -1));
  if (!fits || (!is_signed && value < 0)) {
    char text[200];
    snprintf(text, sizeof(text), "'%.80s' cannot be %lld: it is of type %s",
             var->name, (long long)value, hd_type_name(var->type));
    return hd_error(&context->diags, nowhere, HD_E0809, text);
  }
  hd_env_add(arena, env, var, (hd_number_t){.i = value});
  return true;
}

bool hd_bind_shape(hd_context_t *context, hd_env_t *env, hd_arena_t *arena,
                   const hd_var_t *tensor, const int64_t *shape,
                   unsigned rank) {
  if (rank != tensor->tensor->rank)
    return report_shape(context, tensor, shape, rank);
  for (unsigned i = 0; i < rank; i++) {
    const hd_expr_t *size = tensor->tensor->shape[i];
    // i64(n): the size behind a conversion.
    while (size->kind == HD_EXPR_CAST)
      size = size->operands[0];
    if (size->kind == HD_EXPR_VAR && !hd_env_find(env, size->u.var) &&
        !hd_bind_int(context, env, arena, size->u.var, shape[i]))
      return false;
  }
  return true;
}

bool hd_bind_check(hd_context_t *context, const hd_env_t *env,
                   const hd_var_t *tensor, const int64_t *shape,
                   unsigned rank) {
  int64_t needed[HD_TENSOR_MAX_RANK];
  bool same = rank == tensor->tensor->rank &&
              hd_storage_shape(env, tensor->tensor, needed);
  for (unsigned i = 0; same && i < rank; i++)
    same = needed[i] == shape[i];
  if (same)
    return true;
  report_shape(context, tensor, shape, rank);
  for (size_t i = 0; i < env->values.size; i++)
    hd_note(&context->diags, nowhere, "%s is %lld",
            env->values.data[i].var->name,
            (long long)env->values.data[i].value.i);
  return false;
}
