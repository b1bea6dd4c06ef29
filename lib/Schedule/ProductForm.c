// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The normal form of a definition that is a sum of products.
#include "Schedule/Affine.h"
#include "Schedule/Product.h"

// An index of the definition that is split in two: y[b, f] = sum(p: 8)
// x[b, f / 16 * 8 + p] * w[f, p] is as many products as f / 16 has values.
typedef struct groups {
  hd_arena_t *arena;
  const hd_index_t *index, *group, *member;
  int64_t size; // Of a group.
} groups_t;

// group * size + member
static const hd_term_t *member_of(const groups_t *groups) {
  hd_arena_t *arena = groups->arena;
  return hd_flat_operate(
      arena, HD_EXPR_ADD,
      hd_flat_operate(arena, HD_EXPR_MUL, hd_flat_index(arena, groups->group),
                      hd_flat_int(arena, HD_I64, groups->size)),
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

// Whether a term divides an index of the definition into groups.
static bool note_group(void *argument, const hd_term_t *term) {
  groups_t *groups = argument;
  if (term->kind != HD_TERM_OPERATOR || term->u.op != HD_EXPR_DIV ||
      term->operands[0]->kind != HD_TERM_INDEX ||
      term->operands[1]->kind != HD_TERM_CONST)
    return true;
  int64_t size = term->operands[1]->u.i;
  int64_t range = hd_flat_range(term->operands[0]->u.index);
  if (groups->index || size <= 1 || size >= range || range % size != 0)
    return true;
  groups->index = term->operands[0]->u.index;
  groups->size = size;
  return true;
}

static const hd_term_t *put_member(void *argument, const hd_term_t *term) {
  const groups_t *groups = argument;
  if (term->kind == HD_TERM_INDEX && term->u.index == groups->index)
    return member_of(groups);
  if (term->kind != HD_TERM_LOAD && term->kind != HD_TERM_LOADELSE)
    return term;
  const hd_term_t *operands[HD_MAX_RANK + 1];
  for (unsigned i = 0; i < term->num_operands; i++)
    operands[i] = i < term->u.value->rank
                      ? hd_index_simplify(groups->arena, term->operands[i])
                      : term->operands[i];
  return hd_flat_rebuild(groups->arena, term, operands);
}

// The definition with two indices in the place of the one that has groups; NULL
// where none has.
static const hd_definition_t *
split_groups(hd_arena_t *arena, const hd_definition_t *d, groups_t *groups) {
  *groups = (groups_t){.arena = arena};
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
  hd_form_tensor_load(&form->b, digits, term);
}

// b's rows run along n where neighbours along n are neighbours in memory, or
// may be; but along the sum where pieces of it lie side by side that way alone:
// windows that do not overlap.
static void set_second(hd_product_form_t *form, const hd_form_digits_t *digits,
                       const hd_term_t *term, bool along_n) {
  load_second(form, digits, term, !along_n);
  if (form->b.wide || !along_n)
    return;
  load_second(form, digits, term, true);
  if (!form->b.wide)
    load_second(form, digits, term, false);
}

typedef bool (*contraction_fn_t)(hd_arena_t *, const hd_definition_t *,
                                 hd_contraction_t *);

static const char *find_form(hd_arena_t *arena, const hd_definition_t *d,
                             contraction_fn_t find, hd_product_form_t *form) {
  hd_contraction_t c;
  groups_t groups;
  bool is_whole = find(arena, d, &c);
  const hd_definition_t *split =
      is_whole ? NULL : split_groups(arena, d, &groups);
  if (!is_whole && !(split && find(arena, split, &c)))
    return "it is no sum of products, or a small one";
  if (c.sum->type.scalar != HD_F32)
    return "its products are not summed in f32";
  const hd_term_t *a = hd_form_narrow(c.a), *b = hd_form_narrow(c.b);
  if (!a || !b || a->type.scalar != b->type.scalar) {
    a = c.a;
    b = c.b;
  }
  *form = (hd_product_form_t){.result = {.d = d, .reduced = c.reduced},
                              .type = a->type.scalar};
  hd_form_order_sum(arena, c.sum->u.reduction, a, b, &c.k);
  hd_axis_t axes[HD_PRODUCT_AXES] = {c.batch, c.m, c.n, c.k};
  const hd_index_t *places[HD_PRODUCT_AXES];
  static const char *const names[HD_PRODUCT_AXES] = {"z", "i", "j", "p"};
  for (int n = 0; n < HD_PRODUCT_AXES; n++) {
    form->sizes[n] = axes[n].size;
    places[n] = hd_flat_index_make(arena, names[n], axes[n].size);
  }
  hd_form_digits_t digits = {.arena = arena,
                             .count = HD_PRODUCT_AXES,
                             .axes = axes,
                             .places = places,
                             .split = split ? groups.index : NULL,
                             .as = split ? member_of(&groups) : NULL};
  hd_form_tensor_begin(&form->a, &digits, HD_AXIS_BATCH, HD_AXIS_M, HD_AXIS_K);
  hd_form_tensor_begin(&form->c, &digits, HD_AXIS_BATCH, HD_AXIS_M, HD_AXIS_N);
  hd_form_tensor_load(&form->a, &digits, a);
  set_second(form, &digits, b, hd_reads_along(c.b, c.n.indices, c.n.count));
  hd_form_result_set(&form->result, &digits, &form->c);
  hd_product_image_find(arena, &c, a, form);
  return NULL;
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

void hd_product_form_mark(hd_product_form_t *form, const hd_task_t *flat,
                          uint64_t computed) {
  static const char *const why = "is computed where it is loaded";
  hd_form_tensor_t *operands[] = {&form->a, &form->b};
  for (size_t i = 0; i < flat->inputs.size && i < 64; i++) {
    const hd_task_value_t *input = flat->inputs.data[i];
    for (int k = 0; computed >> i & 1 && k < 2; k++)
      if (operands[k]->same == input)
        operands[k]->no_map = why;
    if (computed >> i & 1 && form->image && form->image->x.same == input) {
      form->image = NULL;
      form->no_image = why;
    }
  }
}
