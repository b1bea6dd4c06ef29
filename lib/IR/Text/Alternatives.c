// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IR/Text/Alternatives.h"

#include <string.h>

enum { MAX_WAYS = 64 };

static bool is(const hd_token_t *token, const char *text) {
  return (token->kind == HD_TOKEN_PUNCTUATION ||
          token->kind == HD_TOKEN_NAME) &&
         strcmp(token->text, text) == 0;
}

// Behind the bracket that closes the one at a token; 0: none does.
static size_t behind(const hd_parser_t *p, size_t at, const char *open,
                     const char *close) {
  int depth = 0;
  for (; p->tokens[at].kind != HD_TOKEN_END; at++) {
    depth += is(&p->tokens[at], open);
    depth -= is(&p->tokens[at], close);
    if (depth == 0)
      return at + 1;
  }
  return 0;
}

// Before a label and a brace; else it is a name.
static bool is_word(const hd_parser_t *p, size_t at, const char *word) {
  return is(&p->tokens[at], word) && p->tokens[at + 1].kind == HD_TOKEN_NAME &&
         is(&p->tokens[at + 2], "{");
}

static hd_loc_t loc_of(const hd_parser_t *p, size_t at) {
  return (hd_loc_t){p->source, p->tokens[at].offset};
}

static int option_of(const hd_either_t *choice, const char *label) {
  for (unsigned i = 0; i < choice->count; i++)
    if (strcmp(choice->labels[i], label) == 0)
      return (int)i;
  return -1;
}

// The choice that has a label; else their number.
static unsigned choice_of(const hd_alternatives_t *a, const char *label) {
  unsigned i = 0;
  while (i < a->num_choices && option_of(&a->choices[i], label) < 0)
    i++;
  return i;
}

// A label where it is met: of a choice that is there, or of a new one, where
// none may have been met before.
static bool add_branch(hd_parser_t *p, hd_alternatives_t *a, unsigned choice,
                       bool is_new, size_t at) {
  const char *label = p->tokens[at + 1].text;
  hd_either_t *c = &a->choices[choice];
  int option = option_of(c, label);
  if (is_new && (option >= 0 || choice_of(a, label) < choice))
    return hd_error(p->diags, loc_of(p, at + 1), HD_E0202, label);
  if (is_new && c->count == HD_MAX_OPTIONS)
    return hd_error(p->diags, loc_of(p, at + 1), HD_E0307,
                    "the number of a choice's alternatives", 2LL,
                    (long long)HD_MAX_OPTIONS, HD_MAX_OPTIONS + 1LL);
  if (is_new) {
    option = (int)c->count;
    c->labels[c->count++] = label;
  }
  if (option < 0)
    return hd_error(p->diags, loc_of(p, at + 1), HD_E0201, label, "");
  size_t after = behind(p, at + 2, "{", "}");
  if (!after || after > a->limit) // Not within what is around it.
    return hd_error(p->diags, loc_of(p, at + 2), HD_E0109);
  hd_branch_t branch = {.word = at,
                        .first = at + 3,
                        .limit = after - 1,
                        .choice = choice,
                        .option = (unsigned)option};
  for (size_t i = branch.first; i < branch.limit; i++)
    if (is_word(p, i, "either"))
      return hd_error(p->diags, loc_of(p, i), HD_E0302, "'either'",
                      "within another one");
  hd_vec_push(p->arena, &a->branches, branch);
  return true;
}

// either label { ... } or label { ... }; *at is behind it then.
static bool read_group(hd_parser_t *p, hd_alternatives_t *a, size_t *at) {
  unsigned choice = choice_of(a, p->tokens[*at + 1].text);
  bool is_new = choice == a->num_choices;
  if (is_new && choice == HD_MAX_EITHERS)
    return hd_error(p->diags, loc_of(p, *at), HD_E0307,
                    "the number of a rewrite's choices", 1LL,
                    (long long)HD_MAX_EITHERS, HD_MAX_EITHERS + 1LL);
  do {
    if (!add_branch(p, a, choice, is_new, *at))
      return false;
    *at = behind(p, *at + 2, "{", "}");
  } while (is_word(p, *at, "or"));
  a->branches.data[a->branches.size - 1].is_last = true;
  if (is_new && a->choices[a->num_choices++].count < 2) {
    p->at = *at;
    return hd_expected(p, "'or' and another alternative");
  }
  a->count *= is_new ? a->choices[choice].count : 1;
  return a->count <= MAX_WAYS ||
         hd_error(p->diags, loc_of(p, a->first), HD_E0307,
                  "the number of ways to choose", 1LL, (long long)MAX_WAYS,
                  (long long)a->count);
}

bool hd_alternatives_read(hd_parser_t *p, hd_alternatives_t *a) {
  *a = (hd_alternatives_t){.first = p->at, .limit = p->at, .count = 1};
  size_t body = is(hd_peek(p), "(") ? behind(p, p->at, "(", ")") : 0;
  size_t limit =
      body && is(&p->tokens[body], "{") ? behind(p, body, "{", "}") : 0;
  if (!limit)
    return true;
  a->limit = limit;
  for (size_t at = a->first; at < limit;)
    if (!is_word(p, at, "either"))
      at++;
    else if (!read_group(p, a, &at))
      return false;
  return true;
}

static unsigned option_in(const hd_alternatives_t *a, unsigned way,
                          unsigned choice) {
  for (unsigned i = 0; i < choice; i++)
    way /= a->choices[i].count;
  return way % a->choices[choice].count;
}

const char *hd_alternatives_name(const hd_parser_t *p,
                                 const hd_alternatives_t *a, unsigned way,
                                 const char *name) {
  for (unsigned i = 0; i < a->num_choices; i++)
    name = hd_arena_printf(p->arena, "%s_%s", name,
                           a->choices[i].labels[option_in(a, way, i)]);
  return name;
}

typedef HD_VEC(hd_token_t) tokens_t;

// What is chosen of a group whose branches begin at branch; the first one
// behind it. A list has no element where nothing is chosen, and no comma.
static size_t put_group(const hd_parser_t *p, const hd_alternatives_t *a,
                        unsigned way, size_t branch, tokens_t *out,
                        size_t *at) {
  bool is_line = p->tokens[a->branches.data[branch].word].first_on_line;
  size_t before = out->size;
  const hd_branch_t *b;
  do {
    b = &a->branches.data[branch++];
    bool is_chosen = option_in(a, way, b->choice) == b->option;
    for (size_t i = b->first; is_chosen && i < b->limit; i++)
      hd_vec_push(p->arena, out, p->tokens[i]);
  } while (!b->is_last);
  *at = b->limit + 1;
  if (out->size > before && is_line)
    out->data[before].first_on_line = true;
  if (out->size == before && before && is(&out->data[before - 1], ","))
    out->size--;
  else if (out->size == before && is(&p->tokens[*at], ","))
    ++*at;
  return branch;
}

const hd_token_t *hd_alternatives_choose(const hd_parser_t *p,
                                         const hd_alternatives_t *a,
                                         unsigned way) {
  tokens_t out = {0};
  size_t branch = 0;
  for (size_t at = a->first; at < a->limit;) {
    if (branch == a->branches.size || a->branches.data[branch].word != at) {
      hd_vec_push(p->arena, &out, p->tokens[at++]);
      continue;
    }
    bool is_line = p->tokens[at].first_on_line;
    branch = put_group(p, a, way, branch, &out, &at);
    bool again =
        branch < a->branches.size && a->branches.data[branch].word == at;
    if (at < a->limit && !again) {
      hd_vec_push(p->arena, &out, p->tokens[at++]);
      out.data[out.size - 1].first_on_line |= is_line;
    }
  }
  hd_token_t end = p->tokens[a->limit];
  end.kind = HD_TOKEN_END;
  end.text = "";
  end.first_on_line = true;
  hd_vec_push(p->arena, &out, end);
  return out.data;
}
