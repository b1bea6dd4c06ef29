// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Monoids of tasks: their names, and those that a task declares.
#include "IR/Text/TaskParser.h"

#include <string.h>

const hd_monoid_t *hd_parse_monoid_name(hd_task_parser_t *t) {
  const char *name = hd_peek(t->p)->text;
  for (size_t i = 0; i < t->task->monoids.size; i++)
    if (strcmp(t->task->monoids.data[i]->name, name) == 0) {
      t->p->at++;
      return t->task->monoids.data[i];
    }
  for (int i = 0; i < HD_MONOID_COUNT; i++)
    if (strcmp(hd_monoid_name((hd_builtin_monoid_t)i), name) == 0) {
      hd_monoid_t *monoid = HD_ARENA_NEW(t->p->arena, hd_monoid_t);
      *monoid = (hd_monoid_t){.builtin = (hd_builtin_monoid_t)i, .name = name};
      t->p->at++;
      return monoid;
    }
  hd_expected(t->p, "a monoid");
  return NULL;
}

typedef HD_VEC(const hd_term_t *) terms_t;
typedef HD_VEC(const hd_variable_t *) variables_t;

// (v: T, i: i64) or, where types is not NULL, (w, j) of the same types.
static bool parse_variables(hd_task_parser_t *t, variables_t *out,
                            const variables_t *types) {
  if (!hd_expect(t->p, "("))
    return false;
  do {
    hd_variable_t *variable = HD_ARENA_NEW(t->p->arena, hd_variable_t);
    variable->name = hd_task_new_name(t, &variable->loc);
    if (!variable->name)
      return false;
    if (types && out->size < types->size)
      variable->type = types->data[out->size]->type;
    else if (types)
      return hd_expected(t->p, "')'");
    else if (!hd_expect(t->p, ":") || !hd_parse_task_type(t, &variable->type))
      return false;
    hd_vec_push(t->p->arena, out, variable);
    hd_vec_push(t->p->arena, &t->variables, variable);
  } while (hd_accept(t->p, ","));
  if (types && out->size < types->size)
    return hd_expected(t->p, "','");
  return hd_expect(t->p, ")");
}

static bool parse_tuple(hd_task_parser_t *t, const variables_t *types,
                        terms_t *out) {
  if (!hd_expect(t->p, "("))
    return false;
  for (size_t i = 0; i < types->size; i++) {
    const hd_term_t *term = hd_parse_term_as(t, types->data[i]->type);
    if (!term || (i + 1 < types->size && !hd_expect(t->p, ",")))
      return false;
    hd_vec_push(t->p->arena, out, term);
  }
  return hd_expect(t->p, ")");
}

bool hd_parse_monoid(hd_task_parser_t *t, hd_loc_t loc, bool in_order) {
  variables_t left = {0}, right = {0};
  terms_t identity = {0}, result = {0};
  hd_monoid_t *monoid = HD_ARENA_NEW(t->p->arena, hd_monoid_t);
  monoid->builtin = HD_MONOID_COUNT;
  monoid->in_order = in_order;
  monoid->loc = loc;
  monoid->name = hd_task_new_name(t, &monoid->loc);
  bool ok = monoid->name && parse_variables(t, &left, NULL) &&
            parse_variables(t, &right, &left) && hd_expect(t->p, "from");
  size_t count = t->variables.size;
  t->variables.size = 0; // An identity is a constant.
  ok = ok && parse_tuple(t, &left, &identity) && hd_expect(t->p, "=");
  t->variables.size = count;
  ok = ok && parse_tuple(t, &left, &result);
  t->variables.size = 0;
  monoid->size = (uint32_t)left.size;
  monoid->left = left.data;
  monoid->right = right.data;
  monoid->identity = identity.data;
  monoid->result = result.data;
  if (ok)
    hd_vec_push(t->p->arena, &t->task->monoids, monoid);
  return ok;
}
