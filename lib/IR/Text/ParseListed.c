// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists of operands (docs/IR.md, "Tasks"), read for a number of operands that
// is known:
//
//   x...: T[p, n..., q]       x_1: T[p, n_1, q], x_2: T[p, n_2, q]
//   n + ...                   n_1 + n_2
//   j < n ? x[j] : ...        j < n_1 ? x_1[j] : x_2[j]
//
// A term that ends with ... is a pattern. It is read for the first operand, and
// where it ends it is read again for the next one.
#include "IR/Text/TaskParser.h"

#include <string.h>

// What stands where no operand is left.
static const hd_term_t nothing;

bool hd_term_is_nothing(const hd_term_t *term) { return term == &nothing; }

const hd_listed_t *hd_find_listed(const hd_task_parser_t *t, const char *name) {
  for (size_t i = 0; i < t->listed.size; i++)
    if (strcmp(t->listed.data[i].name, name) == 0)
      return &t->listed.data[i];
  return NULL;
}

const char *hd_listed_part(const hd_task_parser_t *t, const char *name,
                           uint32_t part) {
  return hd_arena_printf(t->p->arena, "%s_%u", name, part);
}

// --- Operands ---

// n... in the shape of a list's operand: a size of each.
bool hd_bind_listed_size(hd_task_parser_t *t, const hd_term_t **axis) {
  const hd_token_t *token = hd_peek(t->p);
  hd_loc_t loc = hd_here(t->p);
  const hd_listed_t *known = hd_find_listed(t, token->text);
  bool is_other = known && (!known->is_size || known->list != t->num_lists);
  if ((!known && hd_task_declares(t, token->text, loc)) || is_other)
    return !is_other || hd_error(t->p->diags, loc, HD_E0202, token->text);
  if (!known) {
    hd_listed_t listed = {token->text, t->num_lists, true};
    hd_vec_push(t->p->arena, &t->listed, listed);
  }
  const char *name = hd_listed_part(t, token->text, t->pattern.part);
  if (hd_task_declares(t, name, loc))
    return false;
  hd_size_t *size = HD_ARENA_NEW(t->p->arena, hd_size_t);
  *size = (hd_size_t){.name = name, .loc = loc};
  hd_vec_push(t->p->arena, &t->task->sizes, size);
  t->p->at += 2;
  *axis = hd_size_term(t, size);
  return true;
}

// What is said of an operand's type, where there is none of that type.
static void skip_type(hd_parser_t *p) {
  int depth = 0;
  while (hd_peek(p)->kind != HD_TOKEN_END &&
         (depth > 0 || (!hd_at(p, ",") && !hd_at(p, ")")))) {
    depth += hd_at(p, "[");
    depth -= hd_at(p, "]");
    p->at++;
  }
}

bool hd_parse_listed_input(hd_task_parser_t *t, const char *name,
                           hd_loc_t loc) {
  hd_parser_t *p = t->p;
  if (t->num_lists >= t->max_lists)
    return hd_error(p->diags, loc, HD_E0302, "a list of operands",
                    "behind so many others");
  hd_listed_t listed = {name, t->num_lists, false};
  hd_vec_push(p->arena, &t->listed, listed);
  size_t at = p->at;
  uint32_t count = t->counts[t->num_lists];
  if (!count)
    skip_type(p);
  for (uint32_t part = 1; part <= count; part++) {
    const char *own = hd_listed_part(t, name, part);
    p->at = at;
    t->pattern.part = part; // Sizes get its number, too.
    bool ok =
        !hd_task_declares(t, own, loc) && hd_parse_task_input_type(t, own, loc);
    t->pattern.part = 0;
    if (!ok)
      return false;
    if (t->task->inputs.data[t->task->inputs.size - 1]->kind != HD_VALUE_INPUT)
      return hd_error(p->diags, loc, HD_E0302, "a list", "of attributes");
  }
  t->num_lists++;
  return true;
}

// --- Patterns ---

static bool is(const hd_token_t *token, const char *text) {
  return token->kind == HD_TOKEN_PUNCTUATION && strcmp(token->text, text) == 0;
}

static bool opens(const hd_token_t *token) {
  return is(token, "(") || is(token, "[");
}

static bool closes(const hd_token_t *token) {
  return is(token, ")") || is(token, "]") || is(token, "}");
}

// Looks for its end: `...` outside of all brackets; of a call, its last
// argument.
static bool is_pattern(const hd_task_parser_t *t, bool is_call) {
  const hd_token_t *tokens = t->p->tokens;
  int depth = 0;
  if (!t->listed.size || is(&tokens[t->p->at], "..."))
    return false;
  for (size_t at = t->p->at; tokens[at].kind != HD_TOKEN_END; at++) {
    const hd_token_t *token = &tokens[at];
    if (is(token, "...") && depth == is_call)
      return !is_call || is(&tokens[at - 1], ",");
    depth += opens(token);
    depth -= closes(token);
    if (depth < 0 ||
        (depth == 0 &&
         (is_call ? closes(token) : is(token, ",") || is(token, "="))))
      return false;
  }
  return false;
}

bool hd_begin_pattern(hd_task_parser_t *t, bool is_call) {
  size_t start = t->p->at;
  bool is_begun = t->pattern.part && t->pattern.start == start &&
                  t->pattern.is_call == is_call;
  if (is_begun || !is_pattern(t, is_call))
    return false;
  t->pattern = (hd_pattern_t){.start = start, .is_call = is_call, .part = 1};
  return true;
}

// `...` stands where an operand of what is before it would.
static bool check_place(hd_task_parser_t *t, hd_loc_t loc) {
  hd_parser_t *p = t->p;
  const hd_token_t *before = &p->tokens[p->at - 2];
  hd_expr_kind_t op;
  p->at -= 2;
  bool is_operand =
      hd_find_infix(p, 0, &op) || is(before, ":") || is(before, ",");
  p->at += 2;
  const hd_token_t *after = hd_peek(p);
  if (!is_operand || (!closes(after) && !is(after, ",") &&
                      !after->first_on_line && after->kind != HD_TOKEN_END))
    return hd_error(p->diags, loc, HD_E0302, "'...'",
                    "but as the last operand of a term");
  if (!t->pattern.part || !t->pattern.listed)
    return hd_error(p->diags, loc, HD_E0302, "'...'",
                    "behind a term without a name that stands for several");
  if (t->pattern.is_read)
    return hd_error(p->diags, loc, HD_E0302, "'...'", "twice in a term");
  return true;
}

const hd_term_t *hd_parse_others(hd_task_parser_t *t) {
  hd_parser_t *p = t->p;
  hd_loc_t loc = hd_here(p);
  p->at++;
  if (!check_place(t, loc))
    return NULL;
  t->pattern.is_read = true;
  if (t->pattern.part == t->counts[t->pattern.listed->list])
    return &nothing;
  hd_pattern_t pattern = t->pattern;
  size_t at = p->at;
  p->at = pattern.start;
  t->pattern.part++;
  t->pattern.is_read = false;
  const hd_term_t *term =
      pattern.is_call ? hd_parse_primary_term(t) : hd_parse_infix_term(t);
  t->pattern = pattern;
  p->at = at;
  return term;
}

// What a name that stands for several is in the part of the pattern that is
// being read: x_2; the name itself where it is another one. NULL: reported.
const char *hd_listed_name(hd_task_parser_t *t, const char *name,
                           hd_loc_t loc) {
  const hd_listed_t *listed = hd_find_listed(t, name);
  hd_pattern_t *pattern = &t->pattern;
  if (!listed)
    return name;
  if (!pattern->part) {
    hd_error(t->p->diags, loc, HD_E0310,
             hd_arena_printf(t->p->arena,
                             "'%s' stands for several: a term with it ends "
                             "with '...'",
                             name));
    return NULL;
  }
  if (!pattern->listed)
    pattern->listed = listed;
  if (pattern->listed->list != listed->list) {
    hd_error(t->p->diags, loc, HD_E0310,
             hd_arena_printf(t->p->arena,
                             "'%s' is of another list than '%s', which stands "
                             "in the same term",
                             name, pattern->listed->name));
    return NULL;
  }
  return hd_listed_part(t, name, pattern->part);
}

// --- Functions ---

static const hd_term_t *number(hd_task_parser_t *t, int64_t value,
                               hd_loc_t loc) {
  hd_term_t *term =
      hd_build_term(t, HD_TERM_CONST, hd_index_type, loc, NULL, 0);
  term->u.i = value;
  return term;
}

bool hd_at_listed_function(const hd_task_parser_t *t) {
  return (hd_at(t->p, "before") || hd_at(t->p, "count")) &&
         is(hd_peek_ahead(t->p, 1), "(") &&
         hd_find_listed(t, hd_peek_ahead(t->p, 2)->text) &&
         is(hd_peek_ahead(t->p, 3), ")");
}

// before(n): the sum of n of the operands before. count(x): how many there are.
const hd_term_t *hd_parse_listed_function(hd_task_parser_t *t) {
  hd_parser_t *p = t->p;
  hd_loc_t loc = hd_here(p);
  bool is_count = hd_at(p, "count");
  const char *name = hd_peek_ahead(p, 2)->text;
  const hd_listed_t *listed = hd_find_listed(t, name);
  p->at += 4;
  if (is_count)
    return number(t, t->counts[listed->list], loc);
  if (!listed->is_size)
    return hd_error(p->diags, loc, HD_E0213, "before", "a size"), NULL;
  if (!hd_listed_name(t, name, loc))
    return NULL;
  const hd_term_t *sum = NULL;
  for (uint32_t part = 1; part < t->pattern.part; part++) {
    const hd_term_t *size = hd_size_term(
        t, hd_task_find_size(t->task, hd_listed_part(t, name, part)));
    sum = sum ? hd_term_binary(t, HD_EXPR_ADD, sum, size, loc) : size;
  }
  return sum ? sum : number(t, 0, loc);
}
