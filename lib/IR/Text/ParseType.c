// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types, layouts and mappings.
#include "IR/Graph/Task.h"
#include "IR/Keywords.h"
#include "IR/Text/ParserState.h"

#include <string.h>

enum { MOST_SHARED = 1 << 20 }; // Bytes, more than any GPU has.

// acc(T): what values of T are accumulated in.
static bool parse_accumulator(hd_parser_t *p, hd_type_t *type) {
  p->at += 2;
  size_t at = p->at;
  if (!hd_parse_type(p, type))
    return false;
  if (type->lanes != 1) {
    p->at = at;
    return hd_expected(p, "a scalar type");
  }
  *type = hd_type(hd_scalar_accumulator(type->scalar));
  return hd_expect(p, ")");
}

bool hd_parse_type(hd_parser_t *p, hd_type_t *type) {
  const hd_token_t *token = hd_peek(p);
  if (hd_at(p, "acc") && strcmp(hd_peek_ahead(p, 1)->text, "(") == 0)
    return parse_accumulator(p, type);
  if (token->kind != HD_TOKEN_NAME)
    return hd_expected(p, "a type");
  if (!hd_find_type(p, token->text, type))
    return hd_error(p->diags, hd_here(p), HD_E0211, token->text, "");
  p->at++;
  return true;
}

typedef HD_VEC(const hd_expr_t *) expr_vec_t;
typedef HD_VEC(int64_t) int_vec_t;

// A name that nothing has, alone in a shape or among strides: a size that the
// function finds there. Who reads the
// parameters says of which.
static const hd_expr_t *parse_new_size(hd_parser_t *p, size_t place,
                                       bool is_stride) {
  hd_loc_t loc;
  hd_type_t type = hd_type(HD_I32);
  const char *name = hd_expect_name(p, &loc);
  hd_loc_t type_loc = hd_here(p);
  if (!name || (hd_accept(p, ":") && !hd_parse_type(p, &type)))
    return NULL;
  if (type.scalar != HD_I32 && type.scalar != HD_I64) {
    hd_error(p->diags, type_loc, HD_E0203, "i32", hd_type_name(type));
    return NULL;
  }
  const hd_var_t *var = hd_var_make(p->arena, name, HD_VAR_PARAM, type, loc);
  hd_func_size_t size = {var, UINT32_MAX, (uint32_t)place, is_stride};
  hd_vec_push(p->arena, p->sizes, size);
  hd_declare(p, var);
  return hd_at_loc(p, hd_expr_var(p->arena, var), loc);
}

static bool at_new_size(const hd_parser_t *p) {
  const hd_token_t *name = hd_peek(p), *next = hd_peek_ahead(p, 1);
  static const char *const after[] = {",", "]", ")", ":"};
  if (!p->sizes || name->kind != HD_TOKEN_NAME || hd_is_reserved(name->text) ||
      hd_visible(p, name->text) || hd_find_const(p, name->text) ||
      next->kind != HD_TOKEN_PUNCTUATION)
    return false;
  for (size_t i = 0; i < 4; i++)
    if (strcmp(next->text, after[i]) == 0)
      return true;
  return false;
}

static bool parse_sizes(hd_parser_t *p, const char *close, bool is_stride,
                        expr_vec_t *out) {
  do {
    const hd_expr_t *e = at_new_size(p)
                             ? parse_new_size(p, out->size, is_stride)
                             : hd_parse_index(p);
    if (!e)
      return false;
    hd_vec_push(p->arena, out, e);
  } while (hd_accept(p, ","));
  return hd_expect(p, close);
}

// index, index, ... up to the closing text, which is taken.
static bool parse_indices(hd_parser_t *p, const char *close, expr_vec_t *out) {
  do {
    const hd_expr_t *e = hd_parse_index(p);
    if (!e)
      return false;
    hd_vec_push(p->arena, out, e);
  } while (hd_accept(p, ","));
  return hd_expect(p, close);
}

static bool parse_ints(hd_parser_t *p, const char *close, int_vec_t *out) {
  do {
    int64_t value;
    if (!hd_parse_constant(p, &value))
      return false;
    hd_vec_push(p->arena, out, value);
  } while (hd_accept(p, ","));
  return hd_expect(p, close);
}

static bool parse_layout_item(hd_parser_t *p, hd_layout_item_t *item) {
  for (int kind = 0; kind <= HD_LAYOUT_LOCAL; kind++) {
    if (!hd_accept(p, hd_layout_kind_name((hd_layout_kind_t)kind)))
      continue;
    *item = (hd_layout_item_t){.kind = (hd_layout_kind_t)kind};
    if (kind == HD_LAYOUT_ROW || kind == HD_LAYOUT_COLUMN)
      return true;
    if (!hd_expect(p, "("))
      return false;
    if (kind == HD_LAYOUT_LOCAL) {
      item->mapping = hd_parse_mapping(p);
      return item->mapping && hd_expect(p, ")");
    }
    expr_vec_t values = {0};
    if (kind == HD_LAYOUT_STRIDES ? !parse_sizes(p, ")", true, &values)
                                  : !parse_indices(p, ")", &values))
      return false;
    item->values = values.data;
    item->num_values = (uint32_t)values.size;
    return true;
  }
  return hd_expected(p, "a layout");
}

static const hd_layout_t *parse_layout(hd_parser_t *p) {
  HD_VEC(hd_layout_item_t) items = {0};
  if (!hd_expect(p, "("))
    return NULL;
  do {
    hd_layout_item_t item;
    if (!parse_layout_item(p, &item))
      return NULL;
    int64_t bytes = 1; // swizzle(0), as a parameter may have it, is none.
    if (item.kind == HD_LAYOUT_SWIZZLE && item.num_values == 1)
      hd_expr_fold_int(item.values[0], &bytes);
    if (bytes != 0 || items.size == 0)
      hd_vec_push(p->arena, &items, item);
  } while (hd_accept(p, ","));
  if (!hd_expect(p, ")"))
    return NULL;
  hd_layout_t *layout = hd_arena_alloc(
      p->arena, sizeof *layout + items.size * sizeof layout->items[0]);
  layout->num_items = (uint32_t)items.size;
  memcpy(layout->items, items.data, items.size * sizeof items.data[0]);
  return layout;
}

// ( n )
static bool parse_number(hd_parser_t *p, int64_t *n) {
  return hd_expect(p, "(") && hd_parse_constant(p, n) && hd_expect(p, ")");
}

static bool parse_align(hd_parser_t *p, uint32_t *result) {
  int64_t align;
  hd_loc_t loc = hd_here(p);
  if (!parse_number(p, &align))
    return false;
  if (align < 1 || align > 4096 || (align & (align - 1)))
    return hd_error(p->diags, loc, HD_E0310,
                    "an alignment is a power of two up to 4096");
  *result = (uint32_t)align;
  return true;
}

static bool parse_overlay(hd_parser_t *p, hd_tensor_t *tensor) {
  int64_t overlay;
  hd_loc_t loc = hd_here(p);
  if (!parse_number(p, &overlay))
    return false;
  if (tensor->scope != HD_SCOPE_SHARED)
    return hd_error(p->diags, loc, HD_E0310,
                    "a shared tensor alone lies over others");
  if (overlay < 0 || overlay > MOST_SHARED)
    return hd_error(p->diags, loc, HD_E0310,
                    "a place in shared memory is 0 to 1,048,576 bytes");
  tensor->is_overlay = true;
  tensor->overlay = (uint32_t)overlay;
  return true;
}

const hd_tensor_t *hd_parse_tensor(hd_parser_t *p, hd_scope_t scope) {
  hd_tensor_t tensor = {.scope = scope};
  expr_vec_t shape = {0};
  if (!hd_parse_type(p, &tensor.element))
    return NULL;
  if (hd_accept(p, "[") && !parse_sizes(p, "]", false, &shape))
    return NULL;
  tensor.rank = (uint32_t)shape.size;
  tensor.shape = shape.data;
  bool ok = true;
  for (;;) {
    if (hd_accept(p, "layout"))
      ok = (tensor.layout = parse_layout(p)) != NULL;
    else if (hd_accept(p, "align"))
      ok = parse_align(p, &tensor.align);
    else if (hd_accept(p, "overlay"))
      ok = parse_overlay(p, &tensor);
    else
      break;
    if (!ok)
      return NULL;
  }
  hd_tensor_t *result = HD_ARENA_NEW(p->arena, hd_tensor_t);
  *result = tensor;
  return result;
}

// d, ... [, order = [a, ...]] ) with each order entry an axis, once.
static const hd_mapping_t *parse_grid(hd_parser_t *p, hd_loc_t loc,
                                      hd_mapping_kind_t kind) {
  int_vec_t dims = {0}, order = {0};
  do {
    if (hd_at(p, "order")) {
      p->at++;
      if (!hd_expect(p, "=") || !hd_expect(p, "[") ||
          !parse_ints(p, "]", &order))
        return NULL;
      break;
    }
    int64_t value;
    if (!hd_parse_constant(p, &value))
      return NULL;
    hd_vec_push(p->arena, &dims, value);
  } while (hd_accept(p, ","));
  if (!hd_expect(p, ")"))
    return NULL;
  uint32_t *axes = NULL;
  if (order.size) {
    axes = HD_ARENA_ARRAY(p->arena, uint32_t, order.size);
    uint64_t seen = 0;
    bool ok = order.size == dims.size && dims.size <= 16;
    for (size_t i = 0; ok && i < order.size; i++) {
      ok = order.data[i] >= 0 && order.data[i] < (int64_t)dims.size &&
           !(seen >> order.data[i] & 1);
      if (ok) {
        seen |= UINT64_C(1) << order.data[i];
        axes[i] = (uint32_t)order.data[i];
      }
    }
    if (!ok) {
      hd_error(p->diags, loc, HD_E0404, hd_mapping_kind_name(kind),
               "order must name each axis once");
      return NULL;
    }
  }
  return kind == HD_MAPPING_SPATIAL
             ? hd_mapping_spatial(p->arena, dims.data, axes,
                                  (unsigned)dims.size)
             : hd_mapping_repeat(p->arena, dims.data, axes,
                                 (unsigned)dims.size);
}

static const hd_mapping_t *parse_auto(hd_parser_t *p) {
  int_vec_t dims = {0};
  int64_t value;
  while (!hd_at(p, "workers")) {
    if (!hd_parse_constant(p, &value) || !hd_expect(p, ","))
      return NULL;
    hd_vec_push(p->arena, &dims, value);
  }
  if (!hd_expect(p, "workers") || !hd_expect(p, "=") ||
      !hd_parse_constant(p, &value) || !hd_expect(p, ")"))
    return NULL;
  return hd_mapping_auto(p->arena, dims.data, (unsigned)dims.size, value);
}

static const hd_mapping_t *parse_custom(hd_parser_t *p) {
  int64_t workers, count = 1;
  int_vec_t dims = {0};
  expr_vec_t exprs = {0};
  hd_loc_t loc;
  if (!hd_parse_constant(p, &workers) || !hd_expect(p, ",") ||
      !hd_expect(p, "[") || !parse_ints(p, "]", &dims) || !hd_expect(p, ",") ||
      !hd_expect(p, "("))
    return NULL;
  const char *name = hd_expect_name(p, &loc);
  if (!name)
    return NULL;
  size_t outer = hd_visible_size(&p->visible);
  const hd_var_t *worker =
      hd_var_make(p->arena, name, HD_VAR_MAPPING, hd_type(HD_I32), loc);
  const hd_var_t *repeat = NULL;
  hd_declare(p, worker);
  if (hd_accept(p, ",")) {
    name = hd_expect_name(p, &loc);
    if (!name || !hd_expect(p, ":") || !hd_parse_constant(p, &count))
      return NULL;
    repeat = hd_var_make(p->arena, name, HD_VAR_MAPPING, hd_type(HD_I32), loc);
    hd_declare(p, repeat);
  }
  bool ok = hd_expect(p, ")") && hd_expect(p, "->") && hd_expect(p, "[") &&
            parse_indices(p, "]", &exprs) && hd_expect(p, ")");
  hd_visible_pop(&p->visible, outer);
  if (!ok)
    return NULL;
  if (exprs.size != dims.size) {
    hd_error(p->diags, loc, HD_E0404, "custom",
             hd_arena_printf(p->arena, "a task has %zu indices, found %zu",
                             dims.size, exprs.size));
    return NULL;
  }
  return hd_mapping_custom(p->arena, workers, dims.data, (unsigned)dims.size,
                           worker, repeat, count, exprs.data);
}

static const hd_mapping_t *parse_within(hd_parser_t *p, hd_loc_t loc) {
  const hd_mapping_t *inner = hd_parse_mapping(p);
  expr_vec_t bounds = {0};
  if (!inner || !hd_expect(p, ","))
    return NULL;
  if (!parse_indices(p, ")", &bounds))
    return NULL;
  if (bounds.size != inner->rank) {
    hd_error(p->diags, loc, HD_E0404, "within",
             hd_arena_printf(p->arena, "it takes %u bounds, found %zu",
                             inner->rank, bounds.size));
    return NULL;
  }
  return hd_mapping_within(p->arena, inner, bounds.data);
}

static const hd_mapping_t *parse_idle(hd_parser_t *p) {
  const hd_mapping_t *inner = hd_parse_mapping(p);
  int64_t workers;
  if (!inner || !hd_expect(p, ",") || !hd_parse_constant(p, &workers) ||
      !hd_expect(p, ")"))
    return NULL;
  return hd_mapping_idle(p->arena, inner, workers);
}

static const hd_mapping_t *parse_kind(hd_parser_t *p, hd_mapping_kind_t kind,
                                      hd_loc_t loc) {
  switch (kind) {
  case HD_MAPPING_SPATIAL:
  case HD_MAPPING_REPEAT:
    return parse_grid(p, loc, kind);
  case HD_MAPPING_AUTO:
    return parse_auto(p);
  case HD_MAPPING_CUSTOM:
    return parse_custom(p);
  case HD_MAPPING_WITHIN:
    return parse_within(p, loc);
  case HD_MAPPING_IDLE:
    return parse_idle(p);
  case HD_MAPPING_COMPOSE:
    break; // Infix.
  }
  return NULL;
}

static const hd_mapping_t *parse_term(hd_parser_t *p) {
  hd_loc_t loc = hd_here(p);
  if (hd_accept(p, "(")) {
    const hd_mapping_t *mapping = hd_parse_mapping(p);
    return mapping && hd_expect(p, ")") ? mapping : NULL;
  }
  const hd_token_t *token = hd_peek(p);
  if (token->kind == HD_TOKEN_NAME) {
    for (int kind = 0; kind <= HD_MAPPING_IDLE; kind++) {
      if (kind == HD_MAPPING_COMPOSE ||
          !hd_accept(p, hd_mapping_kind_name((hd_mapping_kind_t)kind)))
        continue;
      unsigned errors = p->diags->num_errors, silenced = p->silenced;
      if (!hd_expect(p, "("))
        return NULL;
      const hd_mapping_t *mapping = parse_kind(p, (hd_mapping_kind_t)kind, loc);
      if (!mapping && p->diags->num_errors == errors && p->silenced == silenced)
        hd_error(p->diags, loc, HD_E0404,
                 hd_mapping_kind_name((hd_mapping_kind_t)kind),
                 "dimensions and workers must be at least 1, fit each other "
                 "and multiply to less than 2^31");
      return mapping;
    }
    const hd_const_t *constant = hd_find_const(p, token->text);
    if (constant && constant->mapping) {
      p->at++;
      return constant->mapping;
    }
    if (hd_is_poisoned(p, token->text)) {
      p->silenced++;
      return NULL;
    }
  }
  hd_expected(p, "a mapping");
  return NULL;
}

static bool is_mapping_word(const char *text) {
  for (int kind = 0; kind <= HD_MAPPING_IDLE; kind++)
    if (strcmp(text, hd_mapping_kind_name((hd_mapping_kind_t)kind)) == 0)
      return true;
  return false;
}

// Of a name whose declaration was reported: whether what stands behind it, on
// its line and before a block, is what stands behind mappings.
static bool may_be_mapping(const hd_token_t *token) {
  for (token++; token->kind != HD_TOKEN_END && !token->first_on_line; token++) {
    if (strcmp(token->text, "..") == 0)
      return false;
    if (strcmp(token->text, "{") == 0 || strcmp(token->text, "on") == 0 ||
        is_mapping_word(token->text))
      return true;
  }
  return false;
}

bool hd_at_mapping(const hd_parser_t *p) {
  const hd_token_t *token = hd_peek(p);
  while (token->kind == HD_TOKEN_PUNCTUATION && strcmp(token->text, "(") == 0)
    token++;
  if (token->kind != HD_TOKEN_NAME)
    return false;
  if (is_mapping_word(token->text))
    return true;
  const hd_const_t *constant = hd_find_const(p, token->text);
  return constant ? constant->mapping != NULL
                  : hd_is_poisoned(p, token->text) && may_be_mapping(token);
}

const hd_mapping_t *hd_parse_mapping(hd_parser_t *p) {
  hd_loc_t loc = hd_here(p);
  if (!hd_enter(p))
    return NULL;
  const hd_mapping_t *mapping = parse_term(p);
  while (mapping && hd_accept(p, "*")) {
    const hd_mapping_t *right = parse_term(p);
    if (!right) {
      mapping = NULL;
    } else if (right->rank != mapping->rank) {
      hd_error(p->diags, loc, HD_E0403, (int)mapping->rank, (int)right->rank);
      mapping = NULL;
    } else {
      mapping = hd_mapping_compose(p->arena, mapping, right);
      if (!mapping)
        hd_error(p->diags, loc, HD_E0404, "composition", "it is too large");
    }
  }
  p->depth--;
  return mapping;
}
