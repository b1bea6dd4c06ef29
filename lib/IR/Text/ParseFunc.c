// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions: signatures and launch clauses, then bodies.
#include "IR/Text/ParserState.h"

#include <string.h>

// [in | out | inout | shared | register] name: T[...] | name: T
static const hd_var_t *parse_param(hd_parser_t *p, hd_func_kind_t kind) {
  static const struct {
    const char *word;
    hd_scope_t scope;
    hd_direction_t direction;
  } words[] = {{"in", HD_SCOPE_GLOBAL, HD_DIR_IN},
               {"out", HD_SCOPE_GLOBAL, HD_DIR_OUT},
               {"inout", HD_SCOPE_GLOBAL, HD_DIR_INOUT},
               {"shared", HD_SCOPE_SHARED, HD_DIR_NONE},
               {"register", HD_SCOPE_REGISTER, HD_DIR_NONE}};
  size_t word = 0;
  hd_loc_t word_loc = hd_here(p), loc;
  while (word < 5 && !hd_accept(p, words[word].word))
    word++;
  const char *name = hd_expect_name(p, &loc);
  if (!name || !hd_expect(p, ":"))
    return NULL;
  if (word == 5) {
    hd_type_t type;
    if (!hd_parse_type(p, &type))
      return NULL;
    if (hd_at(p, "[")) {
      hd_expected(p, "'in', 'out' or 'inout' before a tensor parameter, then "
                     "','");
      return NULL;
    }
    return hd_var_make(p->arena, name, HD_VAR_PARAM, type, loc);
  }
  if (kind != HD_FUNC_FN && words[word].scope != HD_SCOPE_GLOBAL) {
    hd_error(p->diags, word_loc, HD_E0302,
             hd_arena_printf(p->arena, "'%s'", words[word].word),
             "as a parameter of a kernel or plan");
    return NULL;
  }
  const hd_tensor_t *tensor = hd_parse_tensor(p, words[word].scope);
  if (!tensor)
    return NULL;
  hd_var_t *var = hd_var_make_tensor(p->arena, name, tensor, loc);
  var->direction = words[word].direction;
  return var;
}

static bool parse_params(hd_parser_t *p, hd_func_t *func) {
  HD_VEC(const hd_var_t *) params = {0}, maps = {0};
  if (!hd_expect(p, "("))
    return false;
  while (!hd_at(p, ")")) {
    hd_loc_t loc = hd_here(p);
    bool is_map = hd_accept(p, "map");
    if (is_map && func->kind != HD_FUNC_KERNEL)
      return hd_error(p->diags, loc, HD_E0302, "'map'",
                      "outside a kernel's signature; a fn takes 'name: map'");
    const hd_var_t *param =
        is_map ? hd_parse_map(p) : parse_param(p, func->kind);
    if (!param)
      return false;
    hd_declare(p, param);
    hd_func_sizes_t *sizes = p->sizes;
    for (size_t i = sizes ? sizes->size : 0; i-- > 0;)
      if (sizes->data[i].param == UINT32_MAX)
        sizes->data[i].param = (uint32_t)params.size;
    if (is_map)
      hd_vec_push(p->arena, &maps, param);
    else
      hd_vec_push(p->arena, &params, param);
    if (!hd_accept(p, ","))
      break;
  }
  func->maps = maps.data;
  func->num_maps = (uint32_t)maps.size;
  func->params = params.data;
  func->num_params = (uint32_t)params.size;
  return hd_expect(p, ")");
}

static bool parse_dims(hd_parser_t *p, const hd_expr_t *dims[3]) {
  if (dims[0])
    return hd_error(p->diags, hd_here(p), HD_E0303, "a launch clause");
  if (!hd_expect(p, "("))
    return false;
  for (int i = 0; i < 3; i++) {
    dims[i] = hd_parse_as(p, hd_type(HD_I32));
    if (!dims[i])
      return false;
    if (!hd_accept(p, ","))
      break;
  }
  return hd_expect(p, ")");
}

// Of an SM.
static bool parse_blocks(hd_parser_t *p, const char *clause, int32_t *blocks) {
  int64_t count;
  hd_loc_t loc = hd_here(p);
  if (!hd_expect(p, "(") || !hd_parse_constant(p, &count) || !hd_expect(p, ")"))
    return false;
  if (count < 1 || count > 32)
    return hd_error(p->diags, loc, HD_E0307, clause, 1LL, 32LL,
                    (long long)count);
  *blocks = (int32_t)count;
  return true;
}

static bool parse_launch_clauses(hd_parser_t *p, hd_launch_t *launch) {
  for (;;) {
    if (hd_accept(p, "grid")) {
      if (!parse_dims(p, launch->grid))
        return false;
    } else if (hd_accept(p, "block")) {
      if (!parse_dims(p, launch->block))
        return false;
    } else if (hd_accept(p, "cluster")) {
      if (!parse_dims(p, launch->cluster))
        return false;
    } else if (hd_accept(p, "min_blocks")) {
      if (!parse_blocks(p, "min_blocks", &launch->min_blocks))
        return false;
    } else if (hd_accept(p, "max_blocks")) {
      if (!parse_blocks(p, "max_blocks", &launch->max_blocks))
        return false;
    } else {
      return true;
    }
  }
}

// Overloads of a fn differ in their parameters' types; other names are unique.
static bool is_duplicate(const hd_func_t *a, const hd_func_t *b) {
  if (strcmp(a->name, b->name) != 0)
    return false;
  if (a->kind != HD_FUNC_FN || b->kind != HD_FUNC_FN)
    return true;
  if (a->num_params != b->num_params)
    return false;
  for (uint32_t i = 0; i < a->num_params; i++) {
    const hd_var_t *x = a->params[i], *y = b->params[i];
    if (!hd_type_equal(x->type, y->type) || !x->tensor != !y->tensor)
      return false;
    if (x->tensor && (x->tensor->rank != y->tensor->rank ||
                      x->tensor->scope != y->tensor->scope))
      return false;
  }
  return true;
}

// Each overload is looked at for each call.
enum { MAX_OVERLOADS = 256 };

void hd_check_duplicate(hd_parser_t *p, const hd_func_t *func) {
  size_t cursor = 0;
  for (const hd_item_t *item;
       (item = hd_module_next(p->module, func->name, &cursor));) {
    if (cursor > MAX_OVERLOADS) {
      hd_error(p->diags, func->loc, HD_E0307, "the number of overloads", 1LL,
               (long long)MAX_OVERLOADS, (long long)cursor);
      return;
    }
    if (item->kind != HD_ITEM_FUNC || is_duplicate(item->u.func, func)) {
      hd_error(p->diags, func->loc, HD_E0202, func->name);
      hd_note(p->diags, hd_item_loc(item), "declared here");
      return;
    }
  }
}

hd_func_t *hd_parse_signature(hd_parser_t *p, hd_func_kind_t kind,
                              const char *name, hd_loc_t loc) {
  hd_func_t *func = HD_ARENA_NEW(p->arena, hd_func_t);
  func->kind = kind;
  func->name = name;
  func->loc = loc;
  func->result = hd_type(HD_VOID);
  hd_visible_pop(&p->visible, 0);
  p->func = NULL; // Host builtins are allowed in launch clauses.
  hd_func_sizes_t sizes = {0};
  p->sizes = kind == HD_FUNC_FN ? &sizes : NULL;
  bool ok = parse_params(p, func);
  p->sizes = NULL;
  func->sizes = sizes.data;
  func->num_sizes = (uint32_t)sizes.size;
  if (!ok)
    return NULL;
  if (kind == HD_FUNC_FN && hd_accept(p, "->") &&
      !hd_parse_type(p, &func->result))
    return NULL;
  if (kind == HD_FUNC_KERNEL && !parse_launch_clauses(p, &func->launch))
    return NULL;
  if (!hd_at(p, "{")) {
    hd_expect(p, "{");
    return NULL;
  }
  return func;
}

// A parameter, where the body is read. Constants that follow were not known
// when the header was read; other names that are taken have been reported.
static void declare_again(hd_parser_t *p, const hd_var_t *var) {
  const hd_const_t *constant = hd_find_const(p, var->name);
  if (constant && constant->loc.source == var->loc.source &&
      constant->loc.offset > var->loc.offset)
    hd_declare(p, var);
  else
    hd_visible_push(&p->visible, var, var->name);
}

void hd_parse_body(hd_parser_t *p, hd_func_t *func) {
  p->func = func;
  p->odd_block = (hd_loc_t){0};
  hd_visible_pop(&p->visible, 0);
  for (uint32_t i = 0; i < func->num_sizes; i++)
    declare_again(p, func->sizes[i].var);
  for (uint32_t i = 0; i < func->num_params; i++)
    declare_again(p, func->params[i]);
  for (uint32_t i = 0; i < func->num_maps; i++)
    declare_again(p, func->maps[i]);
  func->body = hd_parse_block(p);
  func->has_body = true;
}
