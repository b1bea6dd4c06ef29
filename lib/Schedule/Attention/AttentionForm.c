// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which flat tasks are two products with rows between them that have a running
// form (AttentionRows.c).
#include "Schedule/Attention/AttentionState.h"

#include "Schedule/Terms/Affine.h"
#include "Support/Gcd.h"

#include <string.h>

const hd_definition_t *hd_attention_definition(const hd_attention_finder_t *f,
                                               const hd_task_value_t *value) {
  for (size_t i = 0; i < f->flat->definitions.size; i++)
    for (uint32_t k = 0; k < f->flat->definitions.data[i]->num_targets; k++)
      if (f->flat->definitions.data[i]->targets[k] == value)
        return f->flat->definitions.data[i];
  return NULL;
}

static bool reads_made(const hd_attention_finder_t *f, const hd_term_t *term) {
  bool loads = hd_flat_is_load(term);
  if (loads && hd_attention_definition(f, term->u.value))
    return true;
  for (unsigned i = 0; i < term->num_operands; i++)
    if (reads_made(f, term->operands[i]))
      return true;
  return false;
}

// The first definition that is a sum of products of what comes in.
static bool find_scores(hd_attention_finder_t *f) {
  for (size_t i = 0; i + 1 < f->flat->definitions.size; i++) {
    const hd_definition_t *d = f->flat->definitions.data[i];
    if (d->kind == HD_DEFINE && d->num_targets == 1 &&
        !reads_made(f, d->term) &&
        hd_contraction_find_few(f->arena, d, &f->first))
      return true;
  }
  return false;
}

// --- Heads that share keys ---

typedef struct sharing {
  const hd_index_t *index;
  int64_t heads; // That look at the same keys and values: index / heads.
} sharing_t;

static bool note_sharing(void *argument, const hd_term_t *term) {
  sharing_t *s = argument;
  if (term->kind == HD_TERM_INDEX && term->u.index == s->index)
    s->heads = 1;
  bool divides = term->kind == HD_TERM_OPERATOR && term->u.op == HD_EXPR_DIV &&
                 term->operands[0]->kind == HD_TERM_INDEX &&
                 term->operands[0]->u.index == s->index &&
                 term->operands[1]->kind == HD_TERM_CONST;
  if (divides)
    s->heads = hd_gcd(term->operands[1]->u.i, s->heads);
  return !divides;
}

// How many heads that an index counts look at the same keys; 1: each has its
// own, or groups of them are not whole.
static int64_t sharing_heads(const hd_term_t *const operands[3],
                             const hd_index_t *index) {
  int64_t range = hd_flat_range(index);
  sharing_t s = {index, range};
  hd_flat_walk(operands[1], note_sharing, &s);
  hd_flat_walk(operands[2], note_sharing, &s);
  return range % s.heads ? 1 : s.heads;
}

// The n-th index of z becomes heads * group + head, whose group takes its
// place; head may be NULL, 0.
static void put_group(hd_form_digits_t *digits, hd_axis_t *z, unsigned n,
                      int64_t heads, const hd_index_t *head) {
  hd_arena_t *arena = digits->arena;
  const hd_index_t *group =
      hd_flat_index_make(arena, "group", hd_flat_range(z->indices[n]) / heads);
  const hd_term_t *first = hd_flat_operate_int(
      arena, HD_EXPR_MUL, hd_flat_index(arena, group), heads);
  digits->split[0] = z->indices[n];
  digits->as[0] = head ? hd_flat_operate(arena, HD_EXPR_ADD, first,
                                         hd_flat_index(arena, head))
                       : first;
  digits->num_splits = 1;
  z->indices[n] = group;
  z->size /= heads;
}

// Heads that share keys are rows of one, behind the queries' own, where there
// is room for them in a fragment: keys are read once for all of them.
static void share_keys(const hd_term_t *const operands[3], hd_axis_t axes[],
                       hd_form_digits_t *digits) {
  hd_axis_t *z = &axes[HD_ATTENTION_BATCH], *i = &axes[HD_ATTENTION_QUERY];
  for (unsigned n = 0; n < z->count && i->count < HD_MAX_RANK; n++) {
    int64_t heads = sharing_heads(operands, z->indices[n]);
    if (heads < 2 || i->size * heads > HD_FRAGMENT_ROWS)
      continue;
    const hd_index_t *head = hd_flat_index_make(digits->arena, "head", heads);
    put_group(digits, z, n, heads, head);
    i->indices[i->count++] = head;
    i->size *= heads;
    return;
  }
}

// Keys and values as they are where `sharing` neighbouring heads have the same:
// of the last index of z that counts something.
static void share_maps(hd_attention_form_t *form,
                       const hd_form_digits_t *digits,
                       const hd_term_t *const operands[3]) {
  hd_form_digits_t own = *digits;
  hd_axis_t axes[HD_ATTENTION_AXES];
  const hd_index_t *places[HD_ATTENTION_AXES];
  memcpy(axes, digits->axes, sizeof axes);
  memcpy(places, form->indices, sizeof places);
  hd_axis_t *z = &axes[HD_ATTENTION_BATCH];
  unsigned n = z->count;
  while (n && hd_flat_range(z->indices[n - 1]) == 1)
    n--;
  form->sharing =
      n && !own.num_splits ? sharing_heads(operands, z->indices[n - 1]) : 1;
  form->given =
      hd_arena_printf(own.arena, "SHARING = %lld", (long long)form->sharing);
  form->map_k = form->k;
  form->map_v = form->v;
  if (form->sharing < 2)
    return;
  put_group(&own, z, n - 1, form->sharing, NULL);
  places[HD_ATTENTION_BATCH] = hd_flat_index_make(own.arena, "z", z->size);
  own.axes = axes;
  own.places = places;
  hd_form_tensor_begin(&form->map_k, &own, HD_ATTENTION_BATCH, HD_ATTENTION_KEY,
                       HD_ATTENTION_INNER);
  hd_form_tensor_begin(&form->map_v, &own, HD_ATTENTION_BATCH, HD_ATTENTION_KEY,
                       HD_ATTENTION_VALUE);
  hd_form_tensor_load(&form->map_k, &own, operands[1], false);
  hd_form_tensor_load(&form->map_v, &own, operands[2], false);
}

// How rows that several indices count are arranged, the last of which counts
// queries, and the others heads that share keys.
typedef enum rows {
  ROWS_PLAIN,
  ROWS_APART,     // Of many queries: heads become the last of z.
  ROWS_OF_QUERIES // Of few: a query's heads are behind each other.
} rows_t;

// False: the rows are not so.
static bool arrange(hd_axis_t axes[], rows_t rows) {
  enum { MANY = 64 };
  hd_axis_t *z = &axes[HD_ATTENTION_BATCH], *i = &axes[HD_ATTENTION_QUERY];
  unsigned last = i->count;
  while (last && hd_flat_range(i->indices[last - 1]) == 1)
    last--;
  int64_t queries = last ? hd_flat_range(i->indices[last - 1]) : 0;
  if (rows == ROWS_PLAIN)
    return true;
  if (!queries || queries == i->size || z->count + last > HD_MAX_RANK ||
      (rows == ROWS_APART ? queries < MANY : i->size > HD_FRAGMENT_ROWS))
    return false;
  const hd_index_t *query = i->indices[last - 1];
  if (rows == ROWS_OF_QUERIES) {
    memmove(i->indices + 1, i->indices,
            (last - 1) * sizeof(const hd_index_t *));
  } else {
    memcpy(z->indices + z->count, i->indices,
           (last - 1) * sizeof(const hd_index_t *));
    z->count += last - 1;
    z->size *= i->size / queries;
    i->count = 1;
    i->size = queries;
  }
  i->indices[0] = query;
  return true;
}

// By the form's own indices. False: the rows are not to be arranged so.
static bool set_form(const hd_attention_finder_t *f, hd_attention_form_t *form,
                     const hd_axis_t *i, const hd_axis_t *e,
                     const hd_term_t *const operands[3], rows_t rows) {
  static const char *const names[] = {"z", "i", "j", "p", "e"};
  hd_axis_t axes[] = {f->last.batch, *i, f->last.k, f->first.k, *e};
  if (!arrange(axes, rows))
    return false;
  hd_form_digits_t digits = {.arena = f->arena,
                             .count = HD_ATTENTION_AXES,
                             .axes = axes,
                             .places = form->indices};
  share_keys(operands, axes, &digits);
  hd_form_order_sum(f->arena, f->first.sum->u.reduction, operands[0],
                    operands[1], &axes[HD_ATTENTION_INNER]);
  for (int n = 0; n < HD_ATTENTION_AXES; n++) {
    form->sizes[n] = axes[n].size;
    form->indices[n] = hd_flat_index_make(f->arena, names[n], axes[n].size);
  }
  enum { Z = HD_ATTENTION_BATCH, I, J, P, E };
  hd_form_tensor_begin(&form->q, &digits, Z, I, P);
  hd_form_tensor_begin(&form->k, &digits, Z, J, P);
  hd_form_tensor_begin(&form->v, &digits, Z, J, E);
  hd_form_tensor_begin(&form->o, &digits, Z, I, E);
  hd_form_tensor_load(&form->q, &digits, operands[0], false);
  hd_form_tensor_load(&form->k, &digits, operands[1], false);
  hd_form_tensor_load(&form->v, &digits, operands[2], false);
  form->gathered =
      hd_flat_gathers(form->k.term) || hd_flat_gathers(form->v.term);
  share_maps(form, &digits, operands);
  form->term = hd_form_put_digits(&digits, form->term);
  form->divisor = hd_form_put_digits(&digits, form->divisor);
  if (form->weighed)
    form->weighed = hd_form_put_digits(&digits, form->weighed);
  hd_attention_limit(f->arena, form);
  hd_attention_factor(f->arena, form);
  hd_form_result_set(&form->result, &digits, &form->o);
  return true;
}

const char *hd_attention_form_find(hd_arena_t *arena, const hd_task_t *flat,
                                   hd_attention_form_t *form) {
  size_t count = flat->definitions.size;
  hd_attention_finder_t f = {.arena = arena, .flat = flat};
  const hd_definition_t *d = count ? flat->definitions.data[count - 1] : NULL;
  if (flat->outputs.size != 1 || !d || d->kind != HD_DEFINE ||
      d->num_targets != 1 || d->targets[0] != flat->outputs.data[0] ||
      !hd_contraction_find_few(arena, d, &f.last) || !find_scores(&f))
    return "it is no product of what follows from another product";
  bool swap = reads_made(&f, f.last.b);
  const hd_term_t *weight = swap ? f.last.b : f.last.a;
  const hd_term_t *value = swap ? f.last.a : f.last.b;
  const hd_axis_t *i = swap ? &f.last.n : &f.last.m;
  const hd_axis_t *e = swap ? &f.last.m : &f.last.n;
  if (reads_made(&f, value))
    return "both operands of the second product are computed";
  // Pages of keys, and keys of a page, as they lie.
  hd_form_order_sum(arena, f.last.sum->u.reduction, weight, value, &f.last.k);
  f.score = f.first.reduced.cell;
  *form = (hd_attention_form_t){.result = {.d = d, .reduced = f.last.reduced}};
  weight = hd_attention_expand(&f, weight);
  if (!f.why && !f.is_read)
    f.why = "the second product does not follow from the first one";
  if (!f.why)
    f.why = hd_attention_running(&f, weight, form);
  if (f.why)
    return f.why;
  const hd_definition_t *s = f.first.d;
  const hd_term_t *x =
      hd_attention_put(arena, f.first.a, s->indices, f.places, s->num_indices);
  const hd_term_t *y =
      hd_attention_put(arena, f.first.b, s->indices, f.places, s->num_indices);
  bool y_is_q = hd_attention_uses(y, i);
  const hd_term_t *operands[3] = {hd_form_narrow(y_is_q ? y : x, HD_F32),
                                  hd_form_narrow(y_is_q ? x : y, HD_F32),
                                  hd_form_narrow(value, HD_F32)};
  for (int n = 0; n < 3; n++)
    if (!operands[n] || operands[n]->type.scalar != operands[0]->type.scalar)
      return "the products' operands are not of one narrow type";
  if (f.first.sum->type.scalar != HD_F32 || f.last.sum->type.scalar != HD_F32)
    return "the products are not summed in f32";
  if (hd_attention_uses(operands[0], &f.last.k) ||
      hd_attention_uses(operands[0], e) || hd_attention_uses(operands[1], i) ||
      hd_attention_uses(operands[1], e) || hd_attention_uses(operands[2], i))
    return "the two products do not run along the same axes";
  form->type = operands[0]->type.scalar;
  // Keys that a row need not look at are known where they are more from row to
  // row.
  const hd_attention_form_t plain = *form;
  bool knows = false;
  for (int rows = ROWS_OF_QUERIES; !knows && rows >= ROWS_PLAIN; rows--) {
    hd_attention_form_t arranged = plain;
    if (!set_form(&f, &arranged, i, e, operands, (rows_t)rows))
      continue;
    knows = arranged.limit->kind != HD_TERM_CONST;
    *form = arranged;
  }
  return NULL;
}

const hd_attention_form_t *hd_flattened_attention(hd_arena_t *arena,
                                                  hd_flattened_t *flattened) {
  hd_attention_form_t form;
  if (flattened->is_asked)
    return flattened->attention;
  flattened->is_asked = true;
  if (!hd_attention_form_find(arena, flattened->flat, &form)) {
    hd_attention_form_t *found = HD_ARENA_NEW(arena, hd_attention_form_t);
    *found = form;
    flattened->attention = found;
  }
  return flattened->attention;
}

void hd_attention_form_mark(hd_attention_form_t *form, const hd_task_t *flat,
                            uint64_t computed, uint64_t gathered) {
  hd_form_tensor_t *operands[] = {&form->q, &form->k, &form->v, &form->map_k,
                                  &form->map_v};
  for (int k = 0; k < 5; k++) {
    uint64_t input = computed & hd_form_tensor_input(operands[k], flat);
    if (!input)
      continue;
    operands[k]->piece = 0;
    operands[k]->no_map = "is computed where it is loaded";
    form->gathered |= k > 0 && (gathered & input);
  }
}
