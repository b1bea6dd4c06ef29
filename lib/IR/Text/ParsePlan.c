// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statements of plans alone: views and launches.
#include "IR/Text/ParserState.h"

// view name: T[..] = tensor@[offset]
const hd_stmt_t *hd_parse_view(hd_parser_t *p, hd_loc_t loc) {
  hd_loc_t name_loc;
  const char *name = hd_expect_name(p, &name_loc);
  if (!name)
    return NULL;
  const hd_tensor_t *tensor =
      hd_expect(p, ":") ? hd_parse_tensor(p, HD_SCOPE_GLOBAL) : NULL;
  if (!tensor) {
    hd_declare_poison(p, name, name_loc);
    return NULL;
  }
  hd_var_t *var = hd_var_make_tensor(p->arena, name, tensor, name_loc);
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_DECLARE, loc);
  hd_loc_t base_loc = hd_here(p);
  const hd_expr_t *e =
      hd_expect(p, "=") ? hd_parse_as(p, tensor->element) : NULL;
  hd_declare(p, var);
  stmt->u.declare.var = var;
  if (!e)
    return NULL;
  if (e->kind != HD_EXPR_LOAD || !e->linear) {
    hd_error(p->diags, base_loc, HD_E0302, "anything but tensor@[offset]",
             "as what a view is of");
    return NULL;
  }
  stmt->u.declare.init = hd_expr_make(p->arena, HD_EXPR_REF, e->type, e,
                                      e->operands, e->num_operands);
  return stmt;
}

// Whether a kernel may take a tensor for one of its parameters: of as many
// axes, or both of constant shape. That it holds enough is seen by the launch.
static bool takes_tensor(const hd_var_t *param, const hd_expr_t *e) {
  int64_t elements;
  return e->kind == HD_EXPR_TENSOR && hd_type_equal(e->type, param->type) &&
         (e->u.var->tensor->rank == param->tensor->rank ||
          (hd_tensor_storage_const(e->u.var->tensor, &elements) &&
           hd_tensor_storage_const(param->tensor, &elements)));
}

static const char *found_text(hd_parser_t *p, const hd_expr_t *e) {
  return e->kind == HD_EXPR_TENSOR
             ? hd_arena_printf(p->arena, ", found one of %s and rank %u",
                               hd_type_name(e->type), e->u.var->tensor->rank)
             : ", found a value";
}

const hd_stmt_t *hd_parse_launch(hd_parser_t *p, hd_loc_t loc) {
  HD_VEC(const hd_expr_t *) args = {0};
  const hd_token_t *name = hd_peek(p);
  if (name->kind != HD_TOKEN_NAME) {
    hd_expected(p, "a kernel");
    return NULL;
  }
  hd_loc_t kernel_loc = hd_here(p);
  p->at++;
  const hd_func_t *kernel =
      hd_parse_func_name(p, name->text, kernel_loc, HD_KINDS_KERNEL);
  if (!kernel || !hd_expect(p, "("))
    return NULL;
  while (!hd_at(p, ")")) {
    hd_parsed_t value = hd_parse_value(p);
    if (!value.e)
      return NULL;
    const hd_var_t *param =
        args.size < kernel->num_params ? kernel->params[args.size] : NULL;
    const hd_expr_t *e = value.e;
    if (param && param->tensor) {
      if (e->kind == HD_EXPR_LOAD && e->num_operands == 0)
        e = hd_expr_var(p->arena, e->u.var);
      if (!takes_tensor(param, e)) {
        hd_error(p->diags, value.e->loc, HD_E0213, param->name,
                 hd_arena_printf(p->arena, "a tensor of %s and rank %u%s",
                                 hd_type_name(param->type), param->tensor->rank,
                                 found_text(p, e)));
        return NULL;
      }
    } else if (param && !(e = hd_coerce(p, value, param->type))) {
      return NULL;
    }
    hd_vec_push(p->arena, &args, e);
    if (!hd_accept(p, ","))
      break;
  }
  if (!hd_expect(p, ")"))
    return NULL;
  if (args.size != kernel->num_params) {
    hd_error(p->diags, loc, HD_E0206, kernel->name, (int)kernel->num_params,
             "arguments", (int)args.size);
    hd_note_signature(p, kernel);
    return NULL;
  }
  hd_stmt_t *stmt = hd_stmt_make(p->arena, HD_STMT_LAUNCH, loc);
  stmt->u.launch.kernel = kernel;
  stmt->u.launch.args = args.data;
  stmt->u.launch.num_args = (uint32_t)args.size;
  stmt->u.launch.programmatic = hd_accept(p, "programmatic");
  return stmt;
}
