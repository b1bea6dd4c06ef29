// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Axes are split until places are plain indices:
//
//   m[i]       = sum(p: 768) x[i / 128, i % 128, p]      i: 256
//   d[a, b, p] = x[a, b, p] - m[a * 128 + b]
//
// becomes
//
//   m[i0, i1]  = sum(p: 768) x[i0, i1, p]                i0: 2, i1: 128
//   d[a, b, p] = x[a, b, p] - m[a, b]
//
// An axis of a tensor and the indices that run along it in its definition are
// split together. A place that is no such sum or digit is left as it is, and so
// is the axis of a scan.
#include "Schedule/Terms/Merge.h"

#include "Schedule/Terms/Affine.h"

enum { MOST_SPLITS = 64 };

typedef struct splitter {
  hd_arena_t *arena;
  hd_task_t *task;
  const hd_definition_t *definition; // At hand.
  // What is found: an index to be split, or an axis of a tensor; at a number
  // that divides its size.
  const hd_index_t *index;
  const hd_task_value_t *value;
  unsigned axis;
  int64_t at;
} splitter_t;

// --- Where to split ---

static bool divides(int64_t at, int64_t size) {
  return at > 1 && at < size && size % at == 0;
}

static bool in_scan(const splitter_t *s, const hd_index_t *index);

// i / d, i % m and (i / d) % m split i.
static bool look_at_digit(splitter_t *s, const hd_term_t *atom) {
  if (atom->kind != HD_TERM_OPERATOR || atom->num_operands != 2 ||
      (atom->u.op != HD_EXPR_DIV && atom->u.op != HD_EXPR_MOD))
    return false;
  const hd_term_t *of = atom->operands[0];
  if (look_at_digit(s, of))
    return true;
  if (of->kind != HD_TERM_INDEX || atom->operands[1]->kind != HD_TERM_CONST ||
      !divides(atom->operands[1]->u.i, hd_flat_range(of->u.index)) ||
      in_scan(s, of->u.index))
    return false;
  s->index = of->u.index;
  s->at = atom->operands[1]->u.i;
  return true;
}

// a * c + b with 0 <= b < c splits the axis.
static bool look_at_sum(splitter_t *s, const hd_linear_t *sum,
                        const hd_task_value_t *value, unsigned axis) {
  unsigned top = 0;
  for (unsigned i = 1; i < sum->size; i++)
    if (sum->terms[i].factor > sum->terms[top].factor)
      top = i;
  int64_t at = sum->terms[top].factor;
  hd_linear_t rest = *sum;
  rest.terms[top] = rest.terms[--rest.size];
  hd_range_t range = hd_linear_range(NULL, &rest);
  if (sum->constant != 0 || range.least < 0 || range.greatest >= at ||
      hd_term_range(sum->terms[top].term).least < 0 ||
      !divides(at, hd_flat_size(value, axis)) || value->rank == HD_MAX_RANK)
    return false;
  s->value = value;
  s->axis = axis;
  s->at = at;
  return true;
}

static bool look_at_place(splitter_t *s, const hd_term_t *place,
                          const hd_task_value_t *value, unsigned axis) {
  hd_linear_t sum;
  if (place->kind == HD_TERM_CONST || place->kind == HD_TERM_INDEX ||
      !hd_affine_of(s->arena, place, &sum) || sum.size == 0)
    return false;
  for (unsigned i = 0; i < sum.size; i++)
    if (look_at_digit(s, sum.terms[i].term))
      return true;
  return look_at_sum(s, &sum, value, axis);
}

static bool look_at_term(void *argument, const hd_term_t *term) {
  splitter_t *s = argument;
  bool loads = hd_flat_is_load(term);
  for (uint32_t i = 0; loads && !s->at && i < term->u.value->rank; i++)
    look_at_place(s, term->operands[i], term->u.value, i);
  return !s->at;
}

// --- What scans stays ---

typedef struct scan_search {
  const hd_index_t *index;
  bool found;
} scan_search_t;

static bool find_scan(void *argument, const hd_term_t *term) {
  scan_search_t *s = argument;
  s->found |=
      term->kind == HD_TERM_SCAN && term->u.reduction->indices[0] == s->index;
  return !s->found;
}

static bool in_scan(const splitter_t *s, const hd_index_t *index) {
  scan_search_t search = {index, false};
  hd_flat_walk(s->definition->term, find_scan, &search);
  return search.found;
}

// --- Splitting ---

typedef struct halves {
  const hd_index_t *high, *low;
} halves_t;

static halves_t split_index(hd_arena_t *arena, const hd_index_t *index,
                            int64_t at) {
  return (halves_t){
      hd_flat_index_make(arena, hd_arena_printf(arena, "%s0", index->name),
                         hd_flat_range(index) / at),
      hd_flat_index_make(arena, hd_arena_printf(arena, "%s1", index->name),
                         at)};
}

// The list with the halves in the place of the index.
static const hd_index_t *const *
put_halves(hd_arena_t *arena, const hd_index_t *const *indices, uint32_t *count,
           const hd_index_t *index, const halves_t *halves) {
  const hd_index_t **list =
      HD_ARENA_ARRAY(arena, const hd_index_t *, *count + 1);
  uint32_t size = 0;
  for (uint32_t i = 0; i < *count; i++) {
    list[size++] = indices[i] == index ? halves->high : indices[i];
    if (indices[i] == index)
      list[size++] = halves->low;
  }
  *count = size;
  return list;
}

typedef struct rewriting {
  splitter_t *s;
  const hd_index_t *index; // To be split, or NULL.
  halves_t halves;
  const hd_task_value_t *from, *to; // The tensor whose axis is split, or NULL.
} rewriting_t;

static const hd_term_t *put_index(const rewriting_t *r) {
  hd_arena_t *arena = r->s->arena;
  return hd_flat_operate(
      arena, HD_EXPR_ADD,
      hd_flat_operate_int(arena, HD_EXPR_MUL,
                          hd_flat_index(arena, r->halves.high),
                          hd_flat_range(r->halves.low)),
      hd_flat_index(arena, r->halves.low));
}

static const hd_term_t *put_reduction(const rewriting_t *r,
                                      const hd_term_t *term) {
  hd_arena_t *arena = r->s->arena;
  hd_reduction_t *copy =
      HD_ARENA_COPY(arena, hd_reduction_t, term->u.reduction);
  copy->indices = put_halves(arena, copy->indices, &copy->num_indices, r->index,
                             &r->halves);
  hd_term_t *made = hd_flat_like(arena, term, term->operands);
  made->u.reduction = copy;
  return made;
}

// Also says every place in its normal form.
static const hd_term_t *put_load(const rewriting_t *r, const hd_term_t *term) {
  hd_arena_t *arena = r->s->arena;
  const hd_task_value_t *value = term->u.value;
  const hd_term_t *operands[HD_MAX_RANK + 1];
  bool splits = value == r->from;
  unsigned count = 0;
  for (unsigned i = 0; i < term->num_operands; i++) {
    const hd_term_t *place = term->operands[i];
    if (i >= value->rank) {
      operands[count++] = place;
    } else if (splits && i == r->s->axis) {
      operands[count++] = hd_index_simplify(
          arena, hd_flat_operate_int(arena, HD_EXPR_DIV, place, r->s->at));
      operands[count++] = hd_index_simplify(
          arena, hd_flat_operate_int(arena, HD_EXPR_MOD, place, r->s->at));
    } else {
      operands[count++] = hd_index_simplify(arena, place);
    }
  }
  hd_term_t *made = hd_term_make(arena, (hd_term_kind_t)term->kind, term->type,
                                 operands, count);
  made->u.value = splits ? r->to : value;
  made->loc = term->loc;
  return made;
}

static const hd_term_t *put_term(void *argument, const hd_term_t *term) {
  const rewriting_t *r = argument;
  if (term->kind == HD_TERM_INDEX && term->u.index == r->index)
    return put_index(r);
  if (r->index && term->kind == HD_TERM_REDUCE)
    return put_reduction(r, term);
  if (hd_flat_is_load(term))
    return put_load(r, term);
  return term;
}

static const hd_task_value_t *split_tensor(splitter_t *s,
                                           const hd_task_value_t *value) {
  int64_t shape[HD_MAX_RANK + 1];
  uint32_t rank = 0;
  for (uint32_t i = 0; i < value->rank; i++) {
    int64_t size = hd_flat_size(value, i);
    shape[rank++] = i == s->axis ? size / s->at : size;
    if (i == s->axis)
      shape[rank++] = s->at;
  }
  hd_task_value_t *made = hd_flat_value_make(s->arena, value->name, value->kind,
                                             value->type.scalar, shape, rank);
  made->loc = value->loc;
  return made;
}

static hd_definition_t *rewrite_definition(rewriting_t *r, size_t i) {
  hd_arena_t *arena = r->s->arena;
  const hd_definition_t **slot = &r->s->task->definitions.data[i];
  hd_definition_t *copy = HD_ARENA_COPY(arena, hd_definition_t, *slot);
  copy->term = hd_flat_rewrite(arena, copy->term, put_term, r);
  *slot = copy;
  return copy;
}

static void replace(const hd_task_value_t **values, size_t count,
                    const hd_task_value_t *from, const hd_task_value_t *to) {
  for (size_t i = 0; i < count; i++)
    if (values[i] == from)
      values[i] = to;
}

static void split_value(splitter_t *s, const hd_task_value_t *value) {
  hd_task_t *task = s->task;
  rewriting_t r = {.s = s, .from = value, .to = split_tensor(s, value)};
  replace(task->inputs.data, task->inputs.size, value, r.to);
  replace(task->outputs.data, task->outputs.size, value, r.to);
  replace(task->locals.data, task->locals.size, value, r.to);
  for (size_t i = 0; i < task->definitions.size; i++) {
    hd_definition_t *d = rewrite_definition(&r, i);
    const hd_task_value_t **targets =
        HD_ARENA_ARRAY(s->arena, const hd_task_value_t *, d->num_targets);
    memcpy(targets, d->targets, d->num_targets * sizeof(targets[0]));
    replace(targets, d->num_targets, value, r.to);
    d->targets = targets;
  }
}

// The axis of everything that a definition defines, and its index.
static void split_domain(splitter_t *s, size_t i) {
  const hd_definition_t *d = s->task->definitions.data[i];
  const hd_index_t *index = d->indices[s->axis];
  for (uint32_t k = 0; k < d->num_targets; k++)
    split_value(s, s->task->definitions.data[i]->targets[k]);
  rewriting_t r = {.s = s, .index = index};
  r.halves = split_index(s->arena, index, s->at);
  hd_definition_t *copy = rewrite_definition(&r, i);
  copy->indices =
      put_halves(s->arena, copy->indices, &copy->num_indices, index, &r.halves);
}

static bool defines(const hd_definition_t *d, const hd_task_value_t *value) {
  for (uint32_t k = 0; k < d->num_targets; k++)
    if (d->targets[k] == value)
      return true;
  return false;
}

static bool split(splitter_t *s, size_t found) {
  const hd_task_t *task = s->task;
  if (s->value) {
    for (size_t i = 0; i < task->definitions.size; i++) {
      const hd_definition_t *d = task->definitions.data[i];
      if (!defines(d, s->value))
        continue;
      s->definition = d;
      if (in_scan(s, d->indices[s->axis]))
        return false;
      split_domain(s, i);
      return true;
    }
    split_value(s, s->value);
    return true;
  }
  const hd_definition_t *d = task->definitions.data[found];
  for (uint32_t k = 0; k < d->num_indices; k++)
    if (d->indices[k] == s->index) {
      s->axis = k;
      if (d->num_indices == HD_MAX_RANK)
        return false;
      split_domain(s, found);
      return true;
    }
  rewriting_t r = {.s = s, .index = s->index};
  r.halves = split_index(s->arena, s->index, s->at);
  rewrite_definition(&r, found);
  return true;
}

void hd_flat_split_axes(hd_arena_t *arena, hd_task_t *task) {
  splitter_t none = {.arena = arena, .task = task};
  rewriting_t plain = {.s = &none};
  for (size_t i = 0; i < task->definitions.size; i++)
    rewrite_definition(&plain, i);
  bool more = true;
  for (int splits = 0; more && splits < MOST_SPLITS; splits++) {
    more = false;
    for (size_t i = 0; !more && i < task->definitions.size; i++) {
      splitter_t s = {.arena = arena,
                      .task = task,
                      .definition = task->definitions.data[i]};
      hd_flat_walk(s.definition->term, look_at_term, &s);
      more = s.at && split(&s, i);
    }
  }
}
