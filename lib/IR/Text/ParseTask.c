// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tasks: signatures. After an error the rest of the task is skipped.
#include "IR/Keywords.h"
#include "IR/Text/TaskParser.h"

#include <string.h>

static const hd_task_type_t bool_type = {HD_BOOL, NULL};

bool hd_parse_task_type(hd_task_parser_t *t, hd_task_type_t *type) {
  const hd_token_t *token = hd_peek(t->p);
  hd_loc_t loc = hd_here(t->p);
  hd_type_t scalar;
  bool is_variable = token->kind == HD_TOKEN_NAME && token->text[0] >= 'A' &&
                     token->text[0] <= 'Z';
  if (!is_variable) {
    if (!hd_parse_type(t->p, &scalar))
      return false;
    *type = (hd_task_type_t){(hd_scalar_t)scalar.scalar, NULL};
    hd_scalar_class_t class = hd_scalar_class(type->scalar);
    if (scalar.lanes == 1 && class != HD_CLASS_VOID && class != HD_CLASS_OPAQUE)
      return true;
    return hd_error(t->p->diags, loc, HD_E0205, "a task", hd_type_name(scalar));
  }
  hd_type_var_t *var = hd_task_find_type(t->task, token->text);
  t->p->at++;
  if (!var) {
    if (hd_task_declares(t, token->text, loc))
      return false;
    var = HD_ARENA_NEW(t->p->arena, hd_type_var_t);
    *var = (hd_type_var_t){.name = token->text, .loc = loc};
    var->scalars = hd_scalar_set("number");
    hd_vec_push(t->p->arena, &t->task->types, var);
  }
  *type = (hd_task_type_t){HD_VOID, var};
  return true;
}

// A name alone binds a size, or a pack, that is new.
static bool bind_axis(hd_task_parser_t *t) {
  bool is_pack = hd_at(t->p, "..");
  const hd_token_t *token = hd_peek_ahead(t->p, is_pack);
  const char *after = hd_peek_ahead(t->p, is_pack + 1)->text;
  bool is_like = is_pack && strcmp(after, "like") == 0;
  hd_loc_t loc = {t->p->source, token->offset};
  if (token->kind != HD_TOKEN_NAME || hd_is_reserved(token->text) ||
      (strcmp(after, ",") != 0 && strcmp(after, "]") != 0 && !is_like) ||
      hd_task_find_size(t->task, token->text) ||
      hd_task_find_pack(t->task, token->text) ||
      hd_task_find_value(t->task, token->text))
    return true;
  if (hd_task_declares(t, token->text, loc))
    return false;
  if (is_pack) {
    hd_pack_t *pack = HD_ARENA_NEW(t->p->arena, hd_pack_t);
    *pack = (hd_pack_t){.name = token->text, .loc = loc};
    if (is_like) {
      const hd_token_t *other = hd_peek_ahead(t->p, 3);
      pack->like = hd_task_find_pack(t->task, other->text);
      if (!pack->like)
        return hd_error(t->p->diags, (hd_loc_t){t->p->source, other->offset},
                        HD_E0201, other->text, "");
      if (pack->like->like)
        pack->like = pack->like->like;
    }
    hd_vec_push(t->p->arena, &t->task->packs, pack);
  } else {
    hd_size_t *size = HD_ARENA_NEW(t->p->arena, hd_size_t);
    *size = (hd_size_t){.name = token->text, .loc = loc};
    hd_vec_push(t->p->arena, &t->task->sizes, size);
  }
  return true;
}

// count <= bound: a size that the data decides.
static bool bind_data_size(hd_task_parser_t *t) {
  const hd_token_t *token = hd_peek(t->p);
  hd_loc_t loc = hd_here(t->p);
  if (token->kind != HD_TOKEN_NAME ||
      strcmp(hd_peek_ahead(t->p, 1)->text, "<=") != 0)
    return true;
  if (hd_task_declares(t, token->text, loc))
    return false;
  t->p->at += 2;
  hd_size_t *size = HD_ARENA_NEW(t->p->arena, hd_size_t);
  *size = (hd_size_t){.name = token->text, .loc = loc};
  size->bound = hd_parse_term(t);
  hd_vec_push(t->p->arena, &t->task->sizes, size);
  return size->bound != NULL;
}

const hd_term_t *hd_size_term(hd_task_parser_t *t, const hd_size_t *size) {
  hd_task_type_t i64 = {HD_I64, NULL};
  hd_term_t *term = hd_term_make(t->p->arena, HD_TERM_SIZE, i64, NULL, 0);
  term->u.size = size;
  term->loc = size->loc;
  return term;
}

// [axis, ...] after the bracket.
static bool parse_shape(hd_task_parser_t *t, hd_task_value_t *value) {
  HD_VEC(const hd_term_t *) shape = {0};
  bool is_input = value->kind == HD_VALUE_INPUT;
  while (!hd_at(t->p, "]")) {
    size_t sizes = t->task->sizes.size;
    const hd_term_t *axis = NULL;
    bool is_listed = is_input && t->pattern.part &&
                     strcmp(hd_peek_ahead(t->p, 1)->text, "...") == 0;
    if (!(is_listed  ? hd_bind_listed_size(t, &axis)
          : is_input ? bind_axis(t)
                     : bind_data_size(t)))
      return false;
    bool is_data = !is_input && t->task->sizes.size > sizes;
    if (!axis)
      axis = is_data ? hd_size_term(t, t->task->sizes.data[sizes])
                     : hd_parse_axis(t);
    axis = hd_term_coerce(t, axis, (hd_task_type_t){HD_I64, NULL});
    if (!axis)
      return false;
    if (axis->kind == HD_TERM_PACK && axis->u.pack->like &&
        hd_accept(t->p, "like"))
      t->p->at++; // Seen when it was bound.
    hd_vec_push(t->p->arena, &shape, axis);
    if (!hd_accept(t->p, ","))
      break;
  }
  value->shape = shape.data;
  value->rank = (uint32_t)shape.size;
  return hd_expect(t->p, "]");
}

// by name: how the tensor's axes lie.
static bool parse_order(hd_task_parser_t *t, hd_task_value_t *value) {
  if (!hd_accept(t->p, "by"))
    return true;
  hd_task_order_t order = {.value = value};
  order.name = hd_expect_name(t->p, &order.loc);
  hd_vec_push(t->p->arena, &t->orders, order);
  return order.name != NULL;
}

bool hd_settle_task_orders(hd_task_parser_t *t) {
  for (size_t i = 0; i < t->orders.size; i++) {
    const hd_task_order_t *order = &t->orders.data[i];
    order->value->by = hd_task_find_value(t->task, order->name);
    if (!order->value->by)
      return hd_error(t->p->diags, order->loc, HD_E0201, order->name, "");
  }
  t->orders.size = 0;
  return true;
}

// A pack that is known; or a new one, whose sizes are the attribute's values.
static bool parse_over(hd_task_parser_t *t, hd_task_value_t *value) {
  const hd_token_t *token = hd_peek(t->p);
  hd_loc_t loc = hd_here(t->p);
  value->pack = hd_task_find_pack(t->task, token->text);
  if (value->pack) {
    t->p->at++;
    return true;
  }
  bool is_i64 = !value->type.var && value->type.scalar == HD_I64;
  if (token->kind == HD_TOKEN_NAME && !is_i64)
    return hd_error(t->p->diags, loc, HD_E0201, token->text, "");
  const char *name = hd_task_new_name(t, &loc);
  if (!name)
    return false;
  hd_pack_t *pack = HD_ARENA_NEW(t->p->arena, hd_pack_t);
  *pack = (hd_pack_t){.name = name, .loc = loc, .attribute = value};
  hd_vec_push(t->p->arena, &t->task->packs, pack);
  value->pack = pack;
  return true;
}

bool hd_parse_task_input(hd_task_parser_t *t) {
  hd_loc_t loc;
  const char *name = hd_task_new_name(t, &loc);
  if (!name)
    return false;
  return hd_accept(t->p, "...") ? hd_parse_listed_input(t, name, loc)
                                : hd_parse_task_input_type(t, name, loc);
}

bool hd_parse_task_input_type(hd_task_parser_t *t, const char *name,
                              hd_loc_t loc) {
  hd_task_value_t *value = HD_ARENA_NEW(t->p->arena, hd_task_value_t);
  value->name = name;
  value->loc = loc;
  if (!hd_expect(t->p, ":"))
    return false;
  if (t->allows_const)
    hd_accept(t->p, "const");
  if (!hd_parse_task_type(t, &value->type))
    return false;
  if (hd_accept(t->p, "[")) {
    if (!parse_shape(t, value) || !parse_order(t, value))
      return false;
  } else {
    value->kind = HD_VALUE_ATTRIBUTE;
    if (hd_accept(t->p, "over") && !parse_over(t, value))
      return false;
    if (hd_accept(t->p, "=")) {
      if (!(value->initial = hd_parse_bare_term(t)))
        return false;
      hd_vec_push(t->p->arena, &t->defaults, value);
    }
  }
  hd_vec_push(t->p->arena, &t->task->inputs, value);
  return true;
}

const hd_task_value_t *hd_parse_task_result(hd_task_parser_t *t,
                                            const char *name, hd_loc_t loc,
                                            bool binds) {
  hd_task_value_t *value = HD_ARENA_NEW(t->p->arena, hd_task_value_t);
  value->kind = binds ? HD_VALUE_INPUT : HD_VALUE_OUTPUT;
  value->name = name;
  value->loc = loc;
  if (!hd_parse_task_type(t, &value->type) || !hd_expect(t->p, "[") ||
      !parse_shape(t, value) || !parse_order(t, value))
    return NULL;
  if (binds)
    hd_vec_push(t->p->arena, &t->task->inputs, value);
  else
    hd_vec_push(t->p->arena, &t->task->outputs, value);
  return value;
}

static bool parse_output(hd_task_parser_t *t) {
  hd_loc_t loc;
  const char *name = hd_task_new_name(t, &loc);
  return name && hd_expect(t->p, ":") &&
         hd_parse_task_result(t, name, loc, false);
}

// Whether another variable is one of two that this one is among, or, of sums
// alone, accumulates its values.
static bool is_followed(const hd_task_t *task, const hd_type_var_t *var,
                        bool by_sums) {
  for (size_t i = 0; i < task->types.size; i++) {
    const hd_type_var_t *other = task->types.data[i];
    if (other->accumulates == var ||
        (!by_sums && (other->either[0] == var || other->either[1] == var)))
      return true;
  }
  return false;
}

// acc(T) | T or A
static bool derive_type(hd_task_parser_t *t, hd_type_var_t *var) {
  bool is_sum =
      hd_at(t->p, "acc") && strcmp(hd_peek_ahead(t->p, 1)->text, "(") == 0;
  t->p->at += is_sum ? 2 : 0;
  const hd_type_var_t *of[2] = {NULL, NULL};
  for (int i = 0; i < (is_sum ? 1 : 2); i++) {
    hd_task_type_t type;
    if (i && !hd_expect(t->p, "or"))
      return false;
    size_t at = t->p->at;
    if (!hd_parse_task_type(t, &type))
      return false;
    of[i] = type.var;
    if (!type.var || type.var == var || type.var->either[0] ||
        (is_sum && type.var->accumulates) ||
        is_followed(t->task, var, is_sum)) {
      t->p->at = at;
      return hd_expected(t->p, "another type variable");
    }
  }
  if (is_sum)
    var->accumulates = of[0];
  else
    memcpy(var->either, of, sizeof of);
  return !is_sum || hd_expect(t->p, ")");
}

// in {f16, f32} | in float | = acc(T) | = T or A
static bool restrict_type(hd_task_parser_t *t, hd_type_var_t *var) {
  hd_loc_t loc = hd_here(t->p);
  if (var->restricted)
    return hd_error(t->p->diags, loc, HD_E0303, var->name);
  var->restricted = true;
  if (hd_accept(t->p, "="))
    return derive_type(t, var);
  if (!hd_expect(t->p, "in"))
    return false;
  if (!hd_accept(t->p, "{")) {
    var->scalars = hd_scalar_set(hd_peek(t->p)->text);
    if (!var->scalars)
      return hd_expected(t->p, "'any', 'number', 'float', 'integer' or '{'");
    t->p->at++;
    return true;
  }
  var->scalars = 0;
  do {
    hd_task_type_t type;
    if (!hd_parse_task_type(t, &type))
      return false;
    if (type.var)
      return hd_error(t->p->diags, loc, HD_E0211, type.var->name, "");
    var->scalars |= UINT32_C(1) << type.scalar;
  } while (hd_accept(t->p, ","));
  return hd_expect(t->p, "}");
}

bool hd_parse_task_condition(hd_task_parser_t *t) {
  const char *next = hd_peek_ahead(t->p, 1)->text;
  if (strcmp(next, "in") == 0 || strcmp(next, "=") == 0) {
    hd_task_type_t type;
    if (!hd_parse_task_type(t, &type))
      return false;
    if (!type.var)
      return hd_expected(t->p, "a type variable before");
    return restrict_type(t, hd_task_find_type(t->task, type.var->name));
  }
  const hd_term_t *condition = hd_parse_term_as(t, bool_type);
  if (condition)
    hd_vec_push(t->p->arena, &t->task->conditions, condition);
  return condition != NULL;
}

bool hd_settle_task_defaults(hd_task_parser_t *t) {
  for (size_t i = 0; i < t->defaults.size; i++) {
    hd_task_value_t *value = t->defaults.data[i];
    value->initial = hd_term_coerce(t, value->initial, value->type);
    if (!value->initial)
      return false;
  }
  return true;
}

static bool parse_signature(hd_task_parser_t *t) {
  if (!hd_expect(t->p, "("))
    return false;
  while (!hd_at(t->p, ")")) {
    if (!hd_parse_task_input(t))
      return false;
    if (!hd_accept(t->p, ","))
      break;
  }
  if (!hd_expect(t->p, ")") || !hd_settle_task_orders(t) ||
      !hd_expect(t->p, "->"))
    return false;
  do {
    if (!parse_output(t))
      return false;
  } while (hd_accept(t->p, ","));
  if (hd_accept(t->p, "where"))
    do {
      if (!hd_parse_task_condition(t))
        return false;
    } while (hd_accept(t->p, ","));
  return hd_settle_task_orders(t) && hd_settle_task_defaults(t);
}

// { definition, ... }
static bool parse_definitions(hd_task_parser_t *t) {
  hd_parser_t *p = t->p;
  hd_loc_t open = hd_here(p);
  if (!hd_expect(p, "{"))
    return false;
  while (!hd_at(p, "}")) {
    if (hd_peek(p)->kind == HD_TOKEN_END || hd_at_next_item(p))
      return hd_close_block(p, open);
    hd_budget_check(&p->module->context->budget);
    if (!hd_parse_definition(t))
      return false;
    if (!hd_peek(p)->first_on_line && !hd_at(p, "}"))
      return hd_expected(p, "the end of the line");
  }
  p->at++;
  return true;
}

hd_task_t *hd_parse_task_rest(hd_parser_t *p, const char *name, hd_loc_t loc,
                              const uint32_t *counts, uint32_t num_lists) {
  hd_task_t *task = HD_ARENA_NEW(p->arena, hd_task_t);
  task->name = name;
  task->loc = loc;
  hd_task_parser_t t = {
      .p = p, .task = task, .counts = counts, .max_lists = num_lists};
  return parse_signature(&t) && parse_definitions(&t) ? task : NULL;
}

bool hd_parse_task(hd_parser_t *p) {
  hd_loc_t loc;
  const char *name = hd_expect_name(p, &loc);
  if (!name)
    return false;
  if (hd_at_listed_signature(p))
    return hd_parse_task_text(p, name, loc);
  hd_task_t *task = hd_parse_task_rest(p, name, loc, NULL, 0);
  if (!task)
    return false;
  hd_item_t item = {.kind = HD_ITEM_TASK, .u.task = task};
  hd_vec_push(p->arena, &p->module->items, item);
  return true;
}
