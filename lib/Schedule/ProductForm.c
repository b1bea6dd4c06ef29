// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The normal form of a definition that is a sum of products.
#include "Schedule/Affine.h"
#include "Schedule/Product.h"

// An index of the definition as digits of the form's.
typedef struct digits {
  hd_arena_t *arena;
  const hd_axis_t *axes;           // By hd_form_axis_t.
  const hd_index_t *const *places; // The form's index for each of them.
  const struct groups *groups;     // NULL: no index was split.
} digits_t;

// An index of the definition that is split in two: y[b, f] = sum(p: 8)
// x[b, f / 16 * 8 + p] * w[f, p] is as many products as f / 16 has values.
typedef struct groups {
  hd_arena_t *arena;
  const hd_index_t *index, *group, *member;
  int64_t size; // Of a group.
} groups_t;

static const hd_term_t *digit_of(const digits_t *digits, unsigned n,
                                 unsigned at) {
  hd_arena_t *arena = digits->arena;
  const hd_axis_t *axis = &digits->axes[n];
  const hd_term_t *number = hd_flat_index(arena, digits->places[n]);
  int64_t stride = 1, range = hd_flat_range(axis->indices[at]);
  for (unsigned i = at + 1; i < axis->count; i++)
    stride *= hd_flat_range(axis->indices[i]);
  if (range == 1)
    return hd_flat_int(arena, HD_I64, 0);
  number = hd_flat_operate(arena, HD_EXPR_DIV, number,
                           hd_flat_int(arena, HD_I64, stride));
  return hd_flat_operate(arena, HD_EXPR_MOD, number,
                         hd_flat_int(arena, HD_I64, range));
}

// group * size + member
static const hd_term_t *member_of(const groups_t *groups) {
  hd_arena_t *arena = groups->arena;
  return hd_flat_operate(
      arena, HD_EXPR_ADD,
      hd_flat_operate(arena, HD_EXPR_MUL, hd_flat_index(arena, groups->group),
                      hd_flat_int(arena, HD_I64, groups->size)),
      hd_flat_index(arena, groups->member));
}

// For hd_flat_rewrite().
static const hd_term_t *put_digit(void *argument, const hd_term_t *term) {
  const digits_t *digits = argument;
  const groups_t *groups = digits->groups;
  if (groups && term->kind == HD_TERM_INDEX && term->u.index == groups->index)
    return hd_flat_rewrite(digits->arena, member_of(groups), put_digit,
                           argument);
  if (term->kind == HD_TERM_INDEX)
    for (unsigned n = 0; n < HD_FORM_AXES; n++)
      for (unsigned i = 0; i < digits->axes[n].count; i++)
        if (digits->axes[n].indices[i] == term->u.index)
          return digit_of(digits, n, i);
  if (term->kind != HD_TERM_LOAD && term->kind != HD_TERM_LOADELSE)
    return term;
  const hd_term_t *operands[HD_MAX_RANK + 1];
  for (unsigned i = 0; i < term->num_operands; i++)
    operands[i] = i < term->u.value->rank
                      ? hd_index_simplify(digits->arena, term->operands[i])
                      : term->operands[i];
  return hd_flat_rebuild(digits->arena, term, operands);
}

static bool same_number(hd_arena_t *arena, const hd_form_tensor_t *tensor,
                        const hd_task_value_t *value,
                        const hd_term_t *const *places) {
  int64_t shape[HD_MAX_RANK];
  const hd_term_t *own[3];
  for (uint32_t i = 0; i < value->rank; i++)
    shape[i] = hd_flat_size(value, i);
  for (int i = 0; i < 3; i++)
    own[i] = hd_flat_index(arena, tensor->indices[i]);
  return hd_flat_count(value) ==
             tensor->shape[0] * tensor->shape[1] * tensor->shape[2] &&
         hd_index_same_number(arena,
                              &(hd_index_place_t){value->rank, shape, places},
                              &(hd_index_place_t){3, tensor->shape, own});
}

static void set_axes(hd_form_tensor_t *tensor, const digits_t *digits,
                     const int64_t *sizes, unsigned middle, unsigned last) {
  unsigned axes[3] = {HD_AXIS_BATCH, middle, last};
  for (int i = 0; i < 3; i++) {
    tensor->indices[i] = digits->places[axes[i]];
    tensor->shape[i] = sizes[axes[i]];
  }
}

static bool is_element(const hd_term_t *term) {
  return term->kind == HD_TERM_LOAD || term->kind == HD_TERM_LOADELSE;
}

// Where in memory an element is, over the indices of its places.
static bool number_of(hd_arena_t *arena, const hd_term_t *element,
                      hd_linear_t *number) {
  int64_t shape[HD_MAX_RANK];
  const hd_task_value_t *value = element->u.value;
  for (uint32_t i = 0; i < value->rank; i++)
    shape[i] = hd_flat_size(value, i);
  return hd_affine_of(
      arena, hd_index_linear(arena, shape, value->rank, element->operands),
      number);
}

typedef struct pieces {
  hd_arena_t *arena;
  const hd_index_t *last;
  const hd_term_t *as; // What stands for it.
} pieces_t;

static const hd_term_t *put_pieces(void *argument, const hd_term_t *term) {
  const pieces_t *p = argument;
  return term->kind == HD_TERM_INDEX && term->u.index == p->last ? p->as : term;
}

// Whether it is an element of a tensor, whose neighbours along the last index
// lie side by side in pieces of 16 bytes: that index is piece * more + rest,
// and all but rest moves by whole pieces.
static bool is_wide(hd_arena_t *arena, const hd_form_tensor_t *tensor) {
  const hd_term_t *term = tensor->term;
  int64_t piece = 128 / (int64_t)hd_scalar_bits(term->type.scalar);
  if (!is_element(term) || tensor->shape[2] % piece != 0)
    return false;
  const hd_index_t *more =
      hd_flat_index_make(arena, "more", tensor->shape[2] / piece);
  const hd_index_t *rest = hd_flat_index_make(arena, "rest", piece);
  pieces_t pieces = {
      arena, tensor->indices[2],
      hd_flat_operate(arena, HD_EXPR_ADD,
                      hd_flat_operate(arena, HD_EXPR_MUL,
                                      hd_flat_index(arena, more),
                                      hd_flat_int(arena, HD_I64, piece)),
                      hd_flat_index(arena, rest))};
  hd_linear_t number;
  if (!number_of(arena, hd_flat_rewrite(arena, term, put_pieces, &pieces),
                 &number) ||
      number.constant % piece != 0)
    return false;
  bool along = false;
  for (unsigned i = 0; i < number.size; i++) {
    const hd_linear_term_t *part = &number.terms[i];
    bool is_rest = part->term->kind == HD_TERM_INDEX &&
                   part->term->u.index == rest && part->factor == 1;
    along |= is_rest;
    if (part->factor % piece != 0 && !is_rest)
      return false;
  }
  return along;
}

// How far apart neighbours along an index lie; INT64_MAX: not known.
static int64_t stride_of(hd_arena_t *arena, const hd_term_t *term,
                         const hd_index_t *index) {
  hd_linear_t number;
  if (!is_element(term) || !number_of(arena, term, &number))
    return INT64_MAX;
  for (unsigned i = 0; i < number.size; i++)
    if (number.terms[i].term->kind == HD_TERM_INDEX &&
        number.terms[i].term->u.index == index)
      return number.terms[i].factor;
  return INT64_MAX;
}

// The sum's indices, along which b lies, and a where it leaves that open.
static void order_sum(hd_arena_t *arena, const hd_reduction_t *r,
                      const hd_term_t *a, const hd_term_t *b, hd_axis_t *k) {
  int64_t strides[2][HD_MAX_RANK];
  k->count = 0;
  for (uint32_t i = 0; i < r->num_indices; i++) {
    int64_t along_a = stride_of(arena, a, r->indices[i]);
    int64_t along_b = stride_of(arena, b, r->indices[i]);
    unsigned at = k->count++;
    while (at > 0 &&
           (strides[0][at - 1] < along_b ||
            (strides[0][at - 1] == along_b && strides[1][at - 1] < along_a))) {
      k->indices[at] = k->indices[at - 1];
      strides[0][at] = strides[0][at - 1];
      strides[1][at] = strides[1][at - 1];
      at--;
    }
    k->indices[at] = r->indices[i];
    strides[0][at] = along_b;
    strides[1][at] = along_a;
  }
}

static void set_operand(hd_form_tensor_t *tensor, digits_t *digits,
                        const hd_term_t *term) {
  tensor->term = hd_flat_rewrite(digits->arena, term, put_digit, digits);
  if (tensor->term->kind == HD_TERM_LOAD &&
      same_number(digits->arena, tensor, tensor->term->u.value,
                  tensor->term->operands))
    tensor->same = tensor->term->u.value;
  tensor->wide = is_wide(digits->arena, tensor);
  int64_t row = tensor->shape[2] * (int64_t)hd_scalar_bits(term->type.scalar);
  if (tensor->term->kind != HD_TERM_LOAD)
    tensor->no_map = "is computed where it is loaded";
  else if (!tensor->same)
    tensor->no_map = "does not lie row after row in memory";
  else if (row % 128 != 0)
    tensor->no_map = "has rows that are no multiples of 16 bytes";
}

// f32(x), of x in a narrower type.
static const hd_term_t *without_cast(const hd_term_t *term) {
  return term->kind == HD_TERM_CAST && term->type.scalar == HD_F32
             ? term->operands[0]
             : NULL;
}

static void set_result(hd_product_form_t *form, digits_t *digits) {
  const hd_definition_t *d = form->d;
  const hd_term_t *result = form->reduced.result;
  hd_scalar_t target = d->targets[0]->type.scalar;
  bool is_cell = result->kind == HD_TERM_BOUND ||
                 (result->kind == HD_TERM_CAST &&
                  result->operands[0]->kind == HD_TERM_BOUND);
  // Rounded as the task rounds, where it does nothing else.
  bool plain = is_cell && result->type.scalar == target &&
               hd_scalar_bits(target) >= 16 &&
               hd_type_is_float(hd_type(target));
  form->result = plain ? target : HD_F32;
  form->value =
      plain ? NULL : hd_flat_rewrite(digits->arena, result, put_digit, digits);
  for (uint32_t i = 0; i < d->num_indices; i++)
    form->places[i] = hd_index_simplify(
        digits->arena,
        hd_flat_rewrite(digits->arena,
                        hd_flat_index(digits->arena, d->indices[i]), put_digit,
                        digits));
  if (plain &&
      same_number(digits->arena, &form->c, d->targets[0], form->places))
    form->c.same = d->targets[0];
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

const char *hd_product_form_find(hd_arena_t *arena, const hd_definition_t *d,
                                 hd_product_form_t *form) {
  hd_contraction_t c;
  groups_t groups;
  bool is_whole = hd_contraction_find(arena, d, &c);
  const hd_definition_t *split =
      is_whole ? NULL : split_groups(arena, d, &groups);
  if (!is_whole && !(split && hd_contraction_find(arena, split, &c)))
    return "it is no sum of products, or a small one";
  const hd_term_t *a = without_cast(c.a), *b = without_cast(c.b);
  if (!a || !b || c.sum->type.scalar != HD_F32 ||
      a->type.scalar != b->type.scalar)
    return "its operands are not of one narrow type, summed in f32";
  *form =
      (hd_product_form_t){.d = d, .reduced = c.reduced, .type = a->type.scalar};
  order_sum(arena, c.sum->u.reduction, a, b, &c.k);
  hd_axis_t axes[HD_FORM_AXES] = {c.batch, c.m, c.n, c.k};
  const hd_index_t *places[HD_FORM_AXES];
  static const char *const names[HD_FORM_AXES] = {"z", "i", "j", "p"};
  for (int n = 0; n < HD_FORM_AXES; n++) {
    form->sizes[n] = axes[n].size;
    places[n] = hd_flat_index_make(arena, names[n], axes[n].size);
  }
  digits_t digits = {arena, axes, places, split ? &groups : NULL};
  form->rows = !hd_reads_along(c.b, c.n.indices, c.n.count);
  set_axes(&form->a, &digits, form->sizes, HD_AXIS_M, HD_AXIS_K);
  set_axes(&form->b, &digits, form->sizes, form->rows ? HD_AXIS_N : HD_AXIS_K,
           form->rows ? HD_AXIS_K : HD_AXIS_N);
  set_axes(&form->c, &digits, form->sizes, HD_AXIS_M, HD_AXIS_N);
  set_operand(&form->a, &digits, a);
  set_operand(&form->b, &digits, b);
  set_result(form, &digits);
  return NULL;
}

void hd_product_form_mark(hd_product_form_t *form, const hd_task_t *flat,
                          uint64_t computed) {
  hd_form_tensor_t *operands[HD_FORM_OPERANDS] = {&form->a, &form->b};
  for (int k = 0; k < HD_FORM_OPERANDS; k++)
    for (size_t i = 0; i < flat->inputs.size && i < 64; i++)
      if (computed >> i & 1 && operands[k]->same &&
          operands[k]->same == flat->inputs.data[i])
        operands[k]->no_map = "is computed where it is loaded";
}
