// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs: dimensions and what is made of them: types of values, attributes that
// are sizes.
#include "IR/Text/GraphParser.h"

#include <string.h>

// A name that stands alone and that nobody knows.
static bool is_new_dim(const hd_parser_t *p) {
  const hd_token_t *token = hd_peek(p);
  const char *after = hd_peek_ahead(p, 1)->text;
  return token->kind == HD_TOKEN_NAME &&
         (strcmp(after, ",") == 0 || strcmp(after, "]") == 0) &&
         !hd_visible(p, token->text) && !hd_find_const(p, token->text);
}

static bool bind_dim(hd_graph_parser_t *g) {
  hd_parser_t *p = g->p;
  hd_loc_t loc;
  size_t at = p->at;
  const char *name = hd_expect_name(p, &loc);
  if (!name)
    return false;
  const hd_var_t *dim =
      hd_var_make(p->arena, name, HD_VAR_PARAM, hd_type(HD_I64), loc);
  hd_vec_push(p->arena, &g->graph->dims, dim);
  hd_visible_push(&p->visible, dim, name);
  p->at = at; // It is read as any size.
  return true;
}

static bool parse_shape(hd_graph_parser_t *g, hd_value_t *value, bool binds) {
  hd_parser_t *p = g->p;
  HD_VEC(const hd_expr_t *) shape = {0};
  if (hd_accept(p, "..")) {
    value->rank = -1;
    return hd_expect(p, "]");
  }
  while (!hd_at(p, "]")) {
    const hd_expr_t *size = NULL;
    if (!hd_accept(p, "?")) {
      if (binds && is_new_dim(p) && !bind_dim(g))
        return false;
      size = hd_parse_as(p, hd_type(HD_I64));
      if (!size)
        return false;
      const hd_expr_t *number = hd_expr_fold(p->arena, size);
      size = number ? number : size;
    }
    hd_vec_push(p->arena, &shape, size);
    if (!hd_accept(p, ","))
      break;
  }
  value->rank = (int)shape.size;
  value->shape = shape.data;
  return hd_expect(p, "]");
}

bool hd_parse_element_type(hd_graph_parser_t *g, hd_scalar_t *scalar) {
  hd_type_t type;
  hd_loc_t loc = hd_here(g->p);
  if (!hd_parse_type(g->p, &type))
    return false;
  *scalar = (hd_scalar_t)type.scalar;
  hd_scalar_class_t class = hd_scalar_class(*scalar);
  if (type.lanes == 1 && class != HD_CLASS_VOID && class != HD_CLASS_OPAQUE)
    return true;
  return hd_error(g->p->diags, loc, HD_E0205, "a graph", hd_type_name(type));
}

static bool parse_tensor_type(hd_graph_parser_t *g, hd_value_t *value,
                              bool binds) {
  value->rank = -1;
  value->type = HD_VOID;
  if (hd_accept(g->p, "?"))
    return !hd_accept(g->p, "[") || parse_shape(g, value, binds);
  return hd_parse_element_type(g, &value->type) && hd_expect(g->p, "[") &&
         parse_shape(g, value, binds);
}

bool hd_parse_value_type(hd_graph_parser_t *g, hd_value_t *value, bool binds) {
  static const struct {
    const char *word;
    hd_value_form_t form;
  } forms[] = {{"seq", HD_HOLDS_SEQUENCE}, {"optional", HD_HOLDS_OPTIONAL}};
  for (int i = 0; i < 2; i++) {
    if (!hd_accept(g->p, forms[i].word))
      continue;
    value->form = forms[i].form;
    return hd_expect(g->p, "(") && parse_tensor_type(g, value, binds) &&
           hd_expect(g->p, ")");
  }
  value->form = HD_HOLDS_TENSOR;
  return parse_tensor_type(g, value, binds);
}

bool hd_at_size(const hd_parser_t *p, bool in_list) {
  int depth = 0;
  for (size_t i = 0; hd_peek_ahead(p, i)->kind != HD_TOKEN_END; i++) {
    const hd_token_t *token = hd_peek_ahead(p, i);
    const char *text = token->text;
    if (token->kind == HD_TOKEN_NAME && hd_visible(p, text))
      return true;
    if (token->kind != HD_TOKEN_PUNCTUATION)
      continue;
    bool closes = strchr(")]}", text[0]) != NULL;
    bool ends = strcmp(text, "=") == 0 || text[0] == '{'; // Of what is wrong.
    if (ends || (depth == 0 && (closes || (text[0] == ',' && !in_list))))
      return false;
    depth += (strchr("([", text[0]) != NULL) - closes;
  }
  return false;
}

bool hd_parse_sizes(hd_parser_t *p, hd_attribute_t *a, bool is_list) {
  HD_VEC(const hd_expr_t *) sizes = {0};
  do {
    const hd_expr_t *size = hd_parse_as(p, hd_type(HD_I64));
    if (!size)
      return false;
    const hd_expr_t *number = hd_expr_fold(p->arena, size);
    size = number ? number : size;
    hd_vec_push(p->arena, &sizes, size);
  } while (is_list && hd_accept(p, ",") && !hd_at(p, "]"));
  a->kind = is_list ? HD_ATTRIBUTE_SIZES : HD_ATTRIBUTE_SIZE;
  a->u.sizes = sizes.data;
  a->count = sizes.size;
  return !is_list || hd_expect(p, "]");
}
