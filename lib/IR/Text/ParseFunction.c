// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Terms that call a function.
#include "IR/Text/TaskParser.h"

#include <string.h>

static const hd_pack_t *broadcast_of(hd_task_parser_t *t,
                                     const hd_term_t *const *terms,
                                     unsigned count) {
  const hd_pack_t **parts =
      HD_ARENA_ARRAY(t->p->arena, const hd_pack_t *, count);
  for (unsigned i = 0; i < count; i++)
    parts[i] = terms[i]->u.pack;
  for (size_t i = 0; i < t->task->packs.size; i++) {
    const hd_pack_t *pack = t->task->packs.data[i];
    if (!pack->name && pack->num_parts == count &&
        memcmp(pack->parts, parts, count * sizeof parts[0]) == 0)
      return pack;
  }
  hd_pack_t *pack = HD_ARENA_NEW(t->p->arena, hd_pack_t);
  *pack = (hd_pack_t){.num_parts = count, .parts = parts, .loc = terms[0]->loc};
  hd_vec_push(t->p->arena, &t->task->packs, pack);
  return pack;
}

// b stands twice in what ceildiv(a, b) is short for, and twice in that again.
enum { MAX_DIVISOR = 64 };

static unsigned count_terms(const hd_term_t *term, unsigned limit) {
  unsigned count = 1;
  for (unsigned i = 0; i < term->num_operands && count < limit; i++)
    count += count_terms(term->operands[i], limit - count);
  return count < limit ? count : limit;
}

const hd_term_t *hd_parse_function(hd_task_parser_t *t, const char *name,
                                   hd_loc_t loc) {
  const hd_term_t *args[8];
  unsigned count;
  if (!hd_expect(t->p, "(") || !hd_parse_terms(t, ")", 8, args, &count))
    return NULL;
  bool is_min = strcmp(name, "min") == 0, is_max = strcmp(name, "max") == 0;
  bool is_ceildiv = strcmp(name, "ceildiv") == 0;
  if (strcmp(name, "broadcast") == 0) {
    for (unsigned i = 0; i < count; i++)
      if (args[i]->kind != HD_TERM_PACK && args[i]->kind != HD_TERM_BROADCAST)
        return hd_error(t->p->diags, args[i]->loc, HD_E0213, name, "packs"),
               NULL;
    if (count < 2)
      return hd_error(t->p->diags, loc, HD_E0206, name, 2, "arguments or more",
                      (int)count),
             NULL;
    hd_term_t *term =
        hd_build_term(t, HD_TERM_BROADCAST, hd_index_type, loc, NULL, 0);
    term->u.pack = term->pack = broadcast_of(t, args, count);
    return term;
  }
  if (strcmp(name, "permute") == 0)
    return hd_term_permute(t, args, count, loc);
  hd_task_function_t function = HD_TASK_ABS;
  while (function < HD_TASK_FUNCTION_COUNT &&
         strcmp(hd_task_function_info(function)->name, name) != 0)
    function++;
  bool is_two = is_min || is_max || is_ceildiv;
  if (count && hd_term_is_nothing(args[count - 1]))
    return count == 2 ? args[0]
                      : (hd_expected(t->p, "2 operands before"), NULL);
  if (!is_two && function == HD_TASK_FUNCTION_COUNT)
    return hd_error(t->p->diags, loc, HD_E0201, name, hd_similar(t->p, name)),
           NULL;
  unsigned arity = is_two ? 2 : hd_task_function_info(function)->arity;
  if (count != arity)
    return hd_error(t->p->diags, loc, HD_E0206, name, (int)arity,
                    arity == 1 ? "argument" : "arguments", (int)count),
           NULL;
  if (is_min || is_max)
    return hd_term_binary(t, is_min ? HD_EXPR_MIN : HD_EXPR_MAX, args[0],
                          args[1], loc);
  if (is_ceildiv && count_terms(args[1], MAX_DIVISOR) == MAX_DIVISOR)
    return hd_error(t->p->diags, loc, HD_E0213, name,
                    "a divisor that is written shorter"),
           NULL;
  if (is_ceildiv) {
    hd_term_t *one =
        hd_build_term(t, HD_TERM_CONST, hd_index_type, loc, NULL, 0);
    one->u.i = 1;
    one->untyped = true;
    const hd_term_t *sum =
        hd_term_binary(t, HD_EXPR_ADD, args[0], args[1], loc);
    sum = hd_term_binary(t, HD_EXPR_SUB, sum, one, loc);
    return hd_term_binary(t, HD_EXPR_DIV, sum, args[1], loc);
  }
  for (unsigned i = 1; i < count; i++)
    if (!hd_term_unify(t, &args[0], &args[i], loc))
      return NULL;
  for (unsigned i = 0; i < count; i++)
    args[i] = args[i]->untyped ? hd_term_settle(t, args[i]) : args[i];
  for (unsigned i = 0; i < count; i++)
    if (!args[i] || !hd_term_unify(t, &args[0], &args[i], loc))
      return NULL;
  hd_term_t *term =
      hd_build_term(t, HD_TERM_FUNCTION, args[0]->type, loc, args, count);
  term->u.function = function;
  return term;
}
