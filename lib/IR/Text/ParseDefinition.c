// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Definitions of tasks: ranges of indices, scatters, sizes, sorts.
#include "IR/Text/TaskParser.h"

#include <string.h>

enum { MAX_TARGETS = 8, MAX_DEFINITIONS = 1000 };

// Whether what stands on the next line belongs to something else.
static bool ends_term(const hd_token_t *last) {
  return last->kind != HD_TOKEN_PUNCTUATION || strcmp(last->text, "]") == 0 ||
         strcmp(last->text, ")") == 0;
}

// The range of an index that is written without one: that of the axis where it
// stands alone in the first access to do so. Looked for in the tokens, for the
// terms need it.
static const hd_term_t *find_range(hd_task_parser_t *t, const char *name,
                                   bool is_pack) {
  const hd_token_t *tokens = t->p->tokens;
  for (size_t at = t->p->at; tokens[at].kind != HD_TOKEN_END; at++) {
    if (tokens[at].first_on_line && ends_term(&tokens[at - 1]))
      break;
    const hd_task_value_t *value =
        tokens[at].kind == HD_TOKEN_NAME
            ? hd_task_find_value(t->task, tokens[at].text)
            : NULL;
    if (!value || strcmp(tokens[at + 1].text, "[") != 0)
      continue;
    uint32_t axis = 0;
    int depth = 0;
    for (size_t i = at + 1; tokens[i].kind != HD_TOKEN_END; i++) {
      const char *text = tokens[i].text;
      bool opens = strcmp(text, "[") == 0 || strcmp(text, "(") == 0;
      bool separates =
          (opens && i == at + 1) || (depth == 1 && strcmp(text, ",") == 0);
      axis += depth == 1 && strcmp(text, ",") == 0;
      depth += opens;
      depth -= strcmp(text, "]") == 0 || strcmp(text, ")") == 0;
      if (depth == 0)
        break;
      size_t entry = i + 1 + is_pack;
      if (!separates || axis >= value->rank ||
          (is_pack && strcmp(tokens[i + 1].text, "..") != 0) ||
          strcmp(tokens[entry].text, name) != 0)
        continue;
      const char *after = tokens[entry + 1].text;
      if (strcmp(after, ",") == 0 || strcmp(after, "]") == 0)
        return value->shape[axis];
    }
  }
  return NULL;
}

static hd_index_t *parse_index(hd_task_parser_t *t, bool *is_pack) {
  hd_index_t *index = HD_ARENA_NEW(t->p->arena, hd_index_t);
  *is_pack = hd_accept(t->p, "..");
  index->name = hd_task_new_name(t, &index->loc);
  if (!index->name)
    return NULL;
  if (hd_accept(t->p, ":")) {
    index->range = hd_parse_term(t);
    index->written = true;
    if (!index->range)
      return NULL;
  }
  return index;
}

static bool check_range(hd_task_parser_t *t, const hd_index_t *index,
                        bool is_pack) {
  if (!index->range)
    return hd_error(t->p->diags, index->loc, HD_E0310,
                    "the range of this index is not known: write 'index: "
                    "range'");
  if ((index->range->pack != NULL) == is_pack)
    return true;
  return hd_error(t->p->diags, index->loc, HD_E0310,
                  is_pack ? "an index with '..' runs over a pack"
                          : "an index over a pack is written with '..'");
}

bool hd_parse_ranges(hd_task_parser_t *t, hd_reduction_t *reduction,
                     bool is_scan) {
  HD_VEC(const hd_index_t *) indices = {0};
  if (!hd_expect(t->p, "("))
    return false;
  do {
    bool is_pack;
    hd_index_t *index = parse_index(t, &is_pack);
    if (!index)
      return false;
    if (!index->written)
      return hd_expected(t->p, "':' and a range");
    if (!check_range(t, index, is_pack))
      return false;
    hd_vec_push(t->p->arena, &indices, index);
  } while (!is_scan && hd_accept(t->p, ","));
  if (is_scan) {
    while (reduction->part < HD_SCAN_PARTS &&
           !hd_accept(t->p, hd_scan_part_name(reduction->part)))
      if (++reduction->part == HD_SCAN_PARTS)
        return hd_expected(t->p, "'to', 'before', 'from' or 'after'");
    if (!(reduction->at = hd_parse_term(t)))
      return false;
  }
  for (size_t i = 0; i < indices.size; i++)
    hd_vec_push(t->p->arena, &t->indices, indices.data[i]);
  reduction->indices = indices.data;
  reduction->num_indices = (uint32_t)indices.size;
  return hd_expect(t->p, ")");
}

typedef HD_VEC(const hd_term_t *) terms_t;

// scatter how(i: n, ...) target[at, ...] [else drop] = term [onto value]
static bool parse_scatter(hd_task_parser_t *t, hd_definition_t *definition) {
  terms_t at = {0};
  hd_reduction_t domain = {0};
  definition->kind = HD_SCATTER;
  if (hd_accept(t->p, "first"))
    definition->duplicates = HD_DUPLICATES_FIRST;
  else if (hd_accept(t->p, "last"))
    definition->duplicates = HD_DUPLICATES_LAST;
  else if (!(definition->monoid = hd_parse_monoid_name(t)))
    return false;
  if (!hd_parse_ranges(t, &domain, false))
    return false;
  definition->indices = domain.indices;
  definition->num_indices = domain.num_indices;
  const hd_task_value_t **target =
      HD_ARENA_ARRAY(t->p->arena, const hd_task_value_t *, 1);
  *target = hd_task_find_value(t->task, hd_peek(t->p)->text);
  if (!*target || (*target)->kind != HD_VALUE_OUTPUT)
    return hd_expected(t->p, "an output");
  t->p->at++;
  if (!hd_expect(t->p, "["))
    return false;
  while (!hd_at(t->p, "]")) {
    const hd_term_t *term =
        hd_term_coerce(t, hd_parse_axis(t), (hd_task_type_t){HD_I64, NULL});
    if (!term)
      return false;
    hd_vec_push(t->p->arena, &at, term);
    if (!hd_accept(t->p, ","))
      break;
  }
  if (at.size != (*target)->rank)
    return hd_error(t->p->diags, hd_here(t->p), HD_E0207, (*target)->name,
                    hd_rank_text(t->p->arena, (*target)->rank, at.size));
  definition->at = at.data;
  definition->targets = target;
  definition->num_targets = 1;
  if (!hd_expect(t->p, "]"))
    return false;
  definition->drops = hd_accept(t->p, "else");
  if ((definition->drops && !hd_expect(t->p, "drop")) ||
      !hd_expect(t->p, "=") ||
      !(definition->term = hd_parse_term_as(t, (*target)->type)))
    return false;
  if (hd_accept(t->p, "onto")) {
    definition->onto = hd_task_find_value(t->task, hd_peek(t->p)->text);
    if (!definition->onto || definition->onto->kind == HD_VALUE_ATTRIBUTE)
      return hd_expected(t->p, "a tensor");
    t->p->at++;
  }
  return true;
}

static bool parse_size(hd_task_parser_t *t, hd_definition_t *definition) {
  definition->kind = HD_DEFINE_SIZE;
  definition->size = hd_task_find_size(t->task, hd_peek(t->p)->text);
  if (!definition->size || !definition->size->bound)
    return hd_expected(t->p, "a size declared with '<='");
  t->p->at++;
  if (!hd_expect(t->p, "="))
    return false;
  definition->term = hd_parse_term_as(t, (hd_task_type_t){HD_I64, NULL});
  return definition->term != NULL;
}

typedef struct targets {
  unsigned count;
  hd_task_value_t *locals[MAX_TARGETS]; // New ones, else NULL.
  const hd_task_value_t *values[MAX_TARGETS];
} targets_t;

// [index, ...] of the first target; the others repeat the names.
static bool parse_domain(hd_task_parser_t *t, const targets_t *targets,
                         hd_index_t **indices, bool *is_pack, unsigned *count) {
  bool is_first = targets->count == 1;
  unsigned n = 0;
  if (!hd_expect(t->p, "["))
    return false;
  while (!hd_at(t->p, "]")) {
    if (n == HD_MAX_RANK)
      return hd_expected(t->p, "']'");
    if (is_first) {
      if (!(indices[n] = parse_index(t, &is_pack[n])))
        return false;
    } else if (n >= *count || (is_pack[n] && !hd_accept(t->p, "..")) ||
               !hd_accept(t->p, indices[n]->name)) {
      return hd_expected(t->p, "the indices of the first target");
    }
    n++;
    if (!hd_accept(t->p, ","))
      break;
  }
  if (is_first)
    *count = n;
  else if (n != *count)
    return hd_expected(t->p, "the indices of the first target");
  return hd_expect(t->p, "]");
}

// A target is an output, or the local tensor that it makes.
static bool parse_target(hd_task_parser_t *t, targets_t *targets) {
  const hd_token_t *token = hd_peek(t->p);
  hd_loc_t loc;
  if (targets->count == MAX_TARGETS)
    return hd_expected(t->p, "'='");
  const hd_task_value_t *value = hd_task_find_value(t->task, token->text);
  unsigned i = targets->count++;
  targets->values[i] = value;
  if (value && value->kind == HD_VALUE_OUTPUT) {
    t->p->at++;
    return true;
  }
  const char *name = hd_task_new_name(t, &loc);
  if (!name)
    return false;
  hd_task_value_t *local = HD_ARENA_NEW(t->p->arena, hd_task_value_t);
  *local = (hd_task_value_t){.name = name, .loc = loc, .kind = HD_VALUE_LOCAL};
  targets->locals[i] = local;
  targets->values[i] = local;
  return true;
}

// The ranges that are not written: of an output's shape, or found.
static bool settle_ranges(hd_task_parser_t *t, const hd_task_value_t *target,
                          hd_index_t *const *indices, const bool *is_pack,
                          unsigned count) {
  bool is_output = target->kind == HD_VALUE_OUTPUT;
  if (is_output && target->rank != count)
    return hd_error(t->p->diags, hd_here(t->p), HD_E0207, target->name,
                    hd_rank_text(t->p->arena, target->rank, count));
  for (unsigned i = 0; i < count; i++) {
    if (!indices[i]->range)
      indices[i]->range = is_output
                              ? target->shape[i]
                              : find_range(t, indices[i]->name, is_pack[i]);
    if (!check_range(t, indices[i], is_pack[i]))
      return false;
    hd_vec_push(t->p->arena, &t->indices, indices[i]);
  }
  return true;
}

static bool at_sort(const hd_task_parser_t *t) {
  const char *how = hd_peek_ahead(t->p, 1)->text;
  return hd_at(t->p, "sort") &&
         (strcmp(how, "ascending") == 0 || strcmp(how, "descending") == 0);
}

// sort ascending(r: n to j) term, behind '='; the index that is sorted.
static const hd_index_t *parse_sort(hd_task_parser_t *t,
                                    hd_definition_t *definition,
                                    const targets_t *targets) {
  bool is_pack;
  t->p->at++;
  definition->kind = HD_SORT;
  definition->descends = hd_accept(t->p, "descending");
  if (!definition->descends)
    t->p->at++;
  hd_index_t *sorted = hd_expect(t->p, "(") ? parse_index(t, &is_pack) : NULL;
  if (!sorted)
    return NULL;
  if (is_pack || !sorted->written)
    return hd_expected(t->p, "one index and its range"), NULL;
  if (!check_range(t, sorted, false) || !hd_expect(t->p, "to"))
    return NULL;
  for (size_t i = 0; i < t->indices.size; i++)
    if (strcmp(t->indices.data[i]->name, hd_peek(t->p)->text) == 0)
      definition->along = t->indices.data[i];
  if (!definition->along || definition->along->range->pack)
    return hd_expected(t->p, "an index of the target"), NULL;
  t->p->at++;
  if (targets->count > 1)
    return hd_expected(t->p, "one target"), NULL;
  if (!hd_expect(t->p, ")"))
    return NULL;
  hd_vec_push(t->p->arena, &t->indices, sorted);
  return sorted;
}

// target[index, ...], ... = term
static bool parse_define(hd_task_parser_t *t, hd_definition_t *definition) {
  targets_t targets = {0};
  hd_index_t *indices[HD_MAX_RANK];
  bool is_pack[HD_MAX_RANK];
  unsigned count = 0;
  hd_arena_t *arena = t->p->arena;
  do {
    if (!parse_target(t, &targets) ||
        !parse_domain(t, &targets, indices, is_pack, &count))
      return false;
  } while (hd_accept(t->p, ","));
  if (!hd_expect(t->p, "=") ||
      !settle_ranges(t, targets.values[0], indices, is_pack, count))
    return false;
  const hd_task_value_t *first = targets.values[0];
  bool sorts = at_sort(t);
  const hd_index_t *sorted = NULL;
  if (sorts && !(sorted = parse_sort(t, definition, &targets)))
    return false;
  const hd_term_t *term =
      first->kind == HD_VALUE_OUTPUT && targets.count == 1 && !sorts
          ? hd_parse_term_as(t, first->type)
          : hd_parse_term(t);
  if (!term)
    return false;
  if (targets.count > 1 && term->num_operands < targets.count)
    return hd_error(t->p->diags, term->loc, HD_E0310,
                    "several tensors are defined by a reduction or a scan of "
                    "as many components");
  const hd_term_t **shape = HD_ARENA_ARRAY(arena, const hd_term_t *, count);
  const hd_index_t **domain =
      HD_ARENA_ARRAY(arena, const hd_index_t *, count + sorts);
  const hd_task_value_t **values =
      HD_ARENA_ARRAY(arena, const hd_task_value_t *, targets.count);
  for (unsigned i = 0; i < count; i++) {
    domain[i] = indices[i];
    shape[i] = indices[i]->range;
  }
  for (unsigned i = 0; i < targets.count; i++) {
    values[i] = targets.values[i];
    hd_task_value_t *local = targets.locals[i];
    if (!local)
      continue;
    local->shape = shape;
    local->rank = count;
    local->type = sorts               ? hd_index_type
                  : targets.count > 1 ? term->operands[i]->type
                                      : term->type;
    hd_vec_push(arena, &t->task->locals, local);
  }
  definition->targets = values;
  definition->num_targets = targets.count;
  if (sorts)
    domain[count] = sorted;
  definition->indices = domain;
  definition->num_indices = count + sorts;
  definition->term = term;
  return true;
}

bool hd_parse_definition(hd_task_parser_t *t) {
  hd_loc_t loc = hd_here(t->p);
  if (hd_accept(t->p, "monoid"))
    return hd_parse_monoid(t, loc, false);
  if (hd_accept(t->p, "fold"))
    return hd_parse_monoid(t, loc, true);
  if (t->task->definitions.size == MAX_DEFINITIONS)
    return hd_error(t->p->diags, loc, HD_E0307,
                    "the number of a task's definitions", 1LL,
                    (long long)MAX_DEFINITIONS, MAX_DEFINITIONS + 1LL);
  hd_definition_t *definition = HD_ARENA_NEW(t->p->arena, hd_definition_t);
  definition->loc = loc;
  bool ok = hd_accept(t->p, "scatter") ? parse_scatter(t, definition)
            : hd_accept(t->p, "size")  ? parse_size(t, definition)
                                       : parse_define(t, definition);
  t->indices.size = 0;
  if (ok)
    hd_vec_push(t->p->arena, &t->task->definitions, definition);
  return ok;
}
