// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The normal form of a definition that is a sum of products.
#include "Schedule/Product/Product.h"
#include "Schedule/Terms/Affine.h"

// An index of the definition that is split in two: y[b, f] = sum(p: 8)
// x[b, f / 16 * 8 + p] * w[f, p] is as many products as f / 16 has values.
typedef struct groups {
  hd_arena_t *arena;
  const hd_definition_t *d;
  // NULL, or what the index has to be one of, for its groups and its members to
  // be read apart: (i / 2, i % 2) of an axis that both operands use.
  const hd_axis_t *batch;
  const hd_index_t *index, *group, *member;
  int64_t size; // Of a group.
} groups_t;

// group * size + member
static const hd_term_t *member_of(const groups_t *groups) {
  hd_arena_t *arena = groups->arena;
  return hd_flat_operate(
      arena, HD_EXPR_ADD,
      hd_flat_operate_int(arena, HD_EXPR_MUL,
                          hd_flat_index(arena, groups->group), groups->size),
      hd_flat_index(arena, groups->member));
}

void hd_product_form_round(hd_arena_t *arena, hd_product_form_t *form) {
  const hd_task_value_t *target = form->result.d->targets[0];
  form->result.type = target->type.scalar;
  form->result.value = NULL;
  if (hd_form_tensor_is(arena, &form->c, target, form->result.places))
    form->c.same = target;
}

// --- Groups ---

// i, of (i + constant) / size and of its remainder; NULL: it is none.
static const hd_index_t *divided(const groups_t *groups, const hd_term_t *term,
                                 hd_expr_kind_t op) {
  hd_linear_t sum;
  if (term->kind != HD_TERM_OPERATOR || term->u.op != op ||
      term->type.scalar != HD_I64 || term->operands[1]->kind != HD_TERM_CONST ||
      !hd_affine_of(groups->arena, term->operands[0], &sum) || sum.size != 1 ||
      sum.terms[0].factor != 1 || sum.constant < 0 ||
      sum.terms[0].term->kind != HD_TERM_INDEX)
    return NULL;
  const hd_index_t *index = sum.terms[0].term->u.index;
  int64_t size = term->operands[1]->u.i, range = hd_flat_range(index);
  return size > 1 && size < range && range % size == 0 ? index : NULL;
}

typedef struct remainder {
  const groups_t *groups;
  const hd_index_t *index;
  int64_t size;
  bool found;
} remainder_t;

static bool note_remainder(void *argument, const hd_term_t *term) {
  remainder_t *r = argument;
  r->found |= divided(r->groups, term, HD_EXPR_MOD) == r->index &&
              term->operands[1]->u.i == r->size;
  return true;
}

static bool is_read_apart(const groups_t *groups, const hd_index_t *index,
                          int64_t size) {
  remainder_t r = {groups, index, size, false};
  bool in_batch = false;
  for (unsigned i = 0; i < groups->batch->count; i++)
    in_batch |= groups->batch->indices[i] == index;
  if (in_batch)
    hd_flat_walk(groups->d->term, note_remainder, &r);
  return r.found;
}

// Whether a term divides an index of the definition into groups.
static bool note_group(void *argument, const hd_term_t *term) {
  groups_t *groups = argument;
  const hd_index_t *index =
      groups->index ? NULL : divided(groups, term, HD_EXPR_DIV);
  if (!index ||
      (groups->batch && !is_read_apart(groups, index, term->operands[1]->u.i)))
    return true;
  groups->index = index;
  groups->size = term->operands[1]->u.i;
  return true;
}

static const hd_term_t *put_member(void *argument, const hd_term_t *term) {
  const groups_t *groups = argument;
  if (term->kind == HD_TERM_INDEX && term->u.index == groups->index)
    return member_of(groups);
  return hd_index_simplify_load(groups->arena, term);
}

// The definition with two indices in the place of the one that has groups; NULL
// where none has.
static const hd_definition_t *split_groups(hd_arena_t *arena,
                                           const hd_definition_t *d,
                                           const hd_axis_t *batch,
                                           groups_t *groups) {
  *groups = (groups_t){.arena = arena, .d = d, .batch = batch};
  hd_flat_walk(d->term, note_group, groups);
  unsigned at = 0;
  while (at < d->num_indices && d->indices[at] != groups->index)
    at++;
  if (at == d->num_indices || d->num_indices == HD_MAX_RANK)
    return NULL;
  int64_t range = hd_flat_range(groups->index);
  groups->group = hd_flat_index_make(arena, "group", range / groups->size);
  groups->member = hd_flat_index_make(arena, "member", groups->size);
  hd_definition_t *split = HD_ARENA_NEW(arena, hd_definition_t);
  const hd_index_t **indices =
      HD_ARENA_ARRAY(arena, const hd_index_t *, d->num_indices + 1);
  for (unsigned i = 0; i < d->num_indices; i++)
    indices[i < at ? i : i + 1] = d->indices[i];
  indices[at] = groups->group;
  indices[at + 1] = groups->member;
  *split = *d;
  split->num_indices = d->num_indices + 1;
  split->indices = indices;
  split->term = hd_flat_rewrite(arena, d->term, put_member, groups);
  return split;
}

static void load_second(hd_product_form_t *form, const hd_form_digits_t *digits,
                        const hd_term_t *term, bool rows) {
  form->rows = rows;
  hd_form_tensor_begin(&form->b, digits, HD_AXIS_BATCH,
                       rows ? HD_AXIS_N : HD_AXIS_K,
                       rows ? HD_AXIS_K : HD_AXIS_N);
  hd_form_tensor_load(&form->b, digits, term, !rows);
}

// b's rows run along n where neighbours along n are neighbours in memory, or
// may be; but along the sum where pieces of it lie side by side that way alone:
// windows that do not overlap.
static void set_second(hd_product_form_t *form, const hd_form_digits_t *digits,
                       const hd_term_t *term, bool along_n) {
  load_second(form, digits, term, !along_n);
  if (form->b.piece == HD_FORM_WIDE || !along_n)
    return;
  unsigned piece = form->b.piece;
  load_second(form, digits, term, true);
  if (form->b.piece <= piece)
    load_second(form, digits, term, false);
}

static void set_first(hd_product_form_t *form, const hd_form_digits_t *digits,
                      const hd_term_t *term) {
  hd_form_tensor_begin(&form->a, digits, HD_AXIS_BATCH, HD_AXIS_M, HD_AXIS_K);
  hd_form_tensor_load(&form->a, digits, term, false);
  hd_form_tensor_begin(&form->turned_a, digits, HD_AXIS_BATCH, HD_AXIS_K,
                       HD_AXIS_M);
  hd_form_tensor_load(&form->turned_a, digits, term, true);
  form->turned = form->turned_a.piece > form->a.piece;
}

typedef bool (*contraction_fn_t)(hd_arena_t *, const hd_definition_t *,
                                 hd_contraction_t *);

// The contraction of a definition, or of what it is with indices split in two:
// until it is one, and then those that are more rows than products.
static bool find_split(hd_arena_t *arena, const hd_definition_t *d,
                       contraction_fn_t find, hd_contraction_t *c,
                       hd_form_digits_t *digits) {
  bool found = find(arena, d, c);
  for (unsigned n = 0; n < HD_FORM_SPLITS; n++) {
    hd_contraction_t parts;
    groups_t groups;
    d = split_groups(arena, d, found ? &c->batch : NULL, &groups);
    if (!d)
      break;
    digits->split[n] = groups.index;
    digits->as[n] = member_of(&groups);
    if (!find(arena, d, &parts))
      continue;
    *c = parts;
    found = true;
    digits->num_splits = n + 1;
  }
  return found;
}

// Bytes of either sign are multiplied with each other.
static bool go_together(hd_scalar_t a, hd_scalar_t b) {
  return a == b || ((a == HD_I8 || a == HD_U8) && (b == HD_I8 || b == HD_U8));
}

static const char *find_form(hd_arena_t *arena, const hd_definition_t *d,
                             contraction_fn_t find, hd_product_form_t *form) {
  hd_contraction_t c;
  hd_form_digits_t digits = {.arena = arena, .count = HD_PRODUCT_AXES};
  if (!find_split(arena, d, find, &c, &digits))
    return "it is no sum of products, or a small one";
  hd_scalar_t sums = c.sum->type.scalar;
  if (sums != HD_F32 && sums != HD_I32)
    return "its products are summed neither in f32 nor in i32";
  const hd_term_t *a = hd_form_narrow(c.a, sums);
  const hd_term_t *b = hd_form_narrow(c.b, sums);
  if (!a || !b || !go_together(a->type.scalar, b->type.scalar)) {
    a = c.a;
    b = c.b;
  }
  *form = (hd_product_form_t){
      .result = {.d = d, .reduced = c.reduced},
      .type = a->type.scalar,
      .second = a->type.scalar == b->type.scalar ? HD_VOID : b->type.scalar};
  hd_form_order_sum(arena, c.sum->u.reduction, a, b, &c.k);
  hd_axis_t axes[HD_PRODUCT_AXES] = {c.batch, c.m, c.n, c.k};
  const hd_index_t *places[HD_PRODUCT_AXES];
  static const char *const names[HD_PRODUCT_AXES] = {"z", "i", "j", "p"};
  for (int n = 0; n < HD_PRODUCT_AXES; n++) {
    form->sizes[n] = axes[n].size;
    places[n] = hd_flat_index_make(arena, names[n], axes[n].size);
  }
  digits.axes = axes;
  digits.places = places;
  hd_form_tensor_begin(&form->c, &digits, HD_AXIS_BATCH, HD_AXIS_M, HD_AXIS_N);
  set_first(form, &digits, a);
  set_second(form, &digits, b, hd_reads_along(c.b, c.n.indices, c.n.count));
  hd_form_result_set(&form->result, &digits, &form->c);
  hd_product_image_find(arena, &c, a, form);
  hd_product_kept_find(arena, form);
  return NULL;
}

bool hd_product_contraction_find(hd_arena_t *arena, const hd_definition_t *d,
                                 hd_contraction_t *c) {
  hd_form_digits_t digits = {.arena = arena};
  return find_split(arena, d, hd_contraction_find, c, &digits);
}

const char *hd_product_form_find(hd_arena_t *arena, const hd_definition_t *d,
                                 hd_product_form_t *form) {
  return find_form(arena, d, hd_contraction_find, form);
}

const char *hd_product_form_find_few(hd_arena_t *arena,
                                     const hd_definition_t *d,
                                     hd_product_form_t *form) {
  return find_form(arena, d, hd_contraction_find_few, form);
}

const hd_product_form_t *hd_product_forms_get(hd_product_forms_t *forms,
                                              hd_arena_t *arena,
                                              const hd_definition_t *d) {
  static const hd_product_form_t none;
  const hd_product_form_t *known = hd_ptr_map_get(&forms->known, d);
  if (!known) {
    hd_product_form_t form, *found = NULL;
    if (!(forms->few ? hd_product_form_find_few
                     : hd_product_form_find)(arena, d, &form)) {
      found = HD_ARENA_NEW(arena, hd_product_form_t);
      *found = form;
    }
    known = found ? found : &none;
    hd_ptr_map_set(arena, &forms->known, d, known);
  }
  return known == &none ? NULL : known;
}

void hd_product_form_mark(hd_product_form_t *form, const hd_task_t *flat,
                          uint64_t computed) {
  static const char *const why = "is computed where it is loaded";
  hd_form_tensor_t *operands[] = {&form->a, &form->turned_a, &form->b};
  for (int k = 0; k < 3; k++)
    if (computed & hd_form_tensor_input(operands[k], flat))
      operands[k]->no_map = why;
  if (computed & hd_form_tensor_input(&form->kept, flat))
    form->kept.same = NULL;
  if (form->image && computed & hd_form_tensor_input(&form->image->x, flat))
    form->no_image = why;
}
