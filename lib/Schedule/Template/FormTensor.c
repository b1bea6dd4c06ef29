// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Terms of a definition as tensors of a normal form.
#include "Schedule/Template/FormTensor.h"

enum { LEAST_PIECE = 4 };

static const hd_term_t *digit_of(const hd_form_digits_t *digits, unsigned n,
                                 unsigned at) {
  hd_arena_t *arena = digits->arena;
  const hd_axis_t *axis = &digits->axes[n];
  const hd_term_t *number = hd_flat_index(arena, digits->places[n]);
  int64_t stride = 1, range = hd_flat_range(axis->indices[at]);
  for (unsigned i = at + 1; i < axis->count; i++)
    stride *= hd_flat_range(axis->indices[i]);
  if (range == 1)
    return hd_flat_int(arena, HD_I64, 0);
  number = hd_flat_operate_int(arena, HD_EXPR_DIV, number, stride);
  return hd_flat_operate_int(arena, HD_EXPR_MOD, number, range);
}

// For hd_flat_rewrite().
static const hd_term_t *put_digit(void *argument, const hd_term_t *term) {
  const hd_form_digits_t *digits = argument;
  for (unsigned n = 0; n < digits->num_splits; n++)
    if (term->kind == HD_TERM_INDEX && term->u.index == digits->split[n])
      return hd_flat_rewrite(digits->arena, digits->as[n], put_digit, argument);
  if (term->kind == HD_TERM_INDEX)
    for (unsigned n = 0; n < digits->count; n++)
      for (unsigned i = 0; i < digits->axes[n].count; i++)
        if (digits->axes[n].indices[i] == term->u.index)
          return digit_of(digits, n, i);
  return hd_index_simplify_load(digits->arena, term);
}

const hd_term_t *hd_form_put_digits(const hd_form_digits_t *digits,
                                    const hd_term_t *term) {
  hd_form_digits_t copy = *digits;
  return hd_flat_rewrite(digits->arena, term, put_digit, &copy);
}

bool hd_form_tensor_is(hd_arena_t *arena, const hd_form_tensor_t *tensor,
                       const hd_task_value_t *value,
                       const hd_term_t *const *places) {
  int64_t shape[HD_MAX_RANK];
  const hd_term_t *own[HD_FORM_RANK];
  int64_t count = 1;
  for (uint32_t i = 0; i < value->rank; i++)
    shape[i] = hd_flat_size(value, i);
  for (unsigned i = 0; i < tensor->rank; i++) {
    own[i] = hd_flat_index(arena, tensor->indices[i]);
    count *= tensor->shape[i];
  }
  return hd_flat_count(value) == count &&
         hd_index_same_number(
             arena, &(hd_index_place_t){value->rank, shape, places},
             &(hd_index_place_t){tensor->rank, tensor->shape, own});
}

void hd_form_tensor_begin(hd_form_tensor_t *tensor,
                          const hd_form_digits_t *digits, unsigned first,
                          unsigned middle, unsigned last) {
  unsigned axes[3] = {first, middle, last};
  *tensor = (hd_form_tensor_t){.rank = 3};
  for (int i = 0; i < 3; i++) {
    tensor->indices[i] = digits->places[axes[i]];
    tensor->shape[i] = digits->axes[axes[i]].size;
  }
  tensor->pitch = tensor->shape[2];
}

bool hd_form_number(hd_arena_t *arena, const hd_term_t *element,
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
// lie side by side in pieces of so many elements: that index is piece * more +
// rest, and all but rest moves by whole pieces.
static bool has_pieces(hd_arena_t *arena, const hd_form_tensor_t *tensor,
                       const hd_term_t *term, int64_t piece) {
  if (!hd_flat_is_load(term) || tensor->pitch % piece != 0)
    return false;
  const hd_index_t *more =
      hd_flat_index_make(arena, "more", tensor->pitch / piece);
  const hd_index_t *rest = hd_flat_index_make(arena, "rest", piece);
  pieces_t pieces = {
      arena, tensor->indices[2],
      hd_flat_operate(arena, HD_EXPR_ADD,
                      hd_flat_operate_int(arena, HD_EXPR_MUL,
                                          hd_flat_index(arena, more), piece),
                      hd_flat_index(arena, rest))};
  hd_linear_t number;
  if (!hd_form_number(arena, hd_flat_rewrite(arena, term, put_pieces, &pieces),
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

// Bytes of the widest such pieces that the hardware copies; 0: of none.
static unsigned widest_piece(hd_arena_t *arena, const hd_form_tensor_t *tensor,
                             const hd_term_t *element, unsigned least) {
  unsigned bits = hd_scalar_bits(element->type.scalar);
  for (unsigned bytes = HD_FORM_WIDE; bytes >= least; bytes /= 2)
    if (bytes * 8 >= bits &&
        has_pieces(arena, tensor, element, (int64_t)(bytes * 8 / bits)))
      return bytes;
  return 0;
}

unsigned hd_form_tensor_piece(hd_arena_t *arena, const hd_form_tensor_t *tensor,
                              const hd_term_t *element) {
  return widest_piece(arena, tensor, element, LEAST_PIECE);
}

// How far apart neighbours along an index lie; INT64_MAX: not known.
static int64_t stride_of(hd_arena_t *arena, const hd_term_t *term,
                         const hd_index_t *index) {
  hd_linear_t number;
  if (!hd_flat_is_load(term) || !hd_form_number(arena, term, &number))
    return INT64_MAX;
  for (unsigned i = 0; i < number.size; i++)
    if (number.terms[i].term->kind == HD_TERM_INDEX &&
        number.terms[i].term->u.index == index)
      return number.terms[i].factor;
  return INT64_MAX;
}

void hd_form_order_sum(hd_arena_t *arena, const hd_reduction_t *r,
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

// What a term reads, each tensor once.
typedef struct source {
  hd_form_tensor_t *tensor;
  int64_t elements; // Of the operand.
  int64_t largest;  // Of the tensors so far.
  HD_VEC(const hd_task_value_t *) seen;
  hd_arena_t *arena;
} source_t;

static bool note_source(void *argument, const hd_term_t *term) {
  source_t *s = argument;
  if (!hd_flat_is_load(term))
    return true;
  const hd_task_value_t *value = term->u.value;
  for (size_t i = 0; i < s->seen.size; i++)
    if (s->seen.data[i] == value)
      return true;
  hd_vec_push(s->arena, &s->seen, value);
  int64_t count = hd_flat_count(value);
  count = count < s->elements ? count : s->elements;
  unsigned bits = hd_scalar_bits(value->type.scalar);
  s->tensor->bytes += (double)count * bits / 8 / (double)s->elements;
  if (count > s->largest)
    s->tensor->kept = bits;
  s->largest = count > s->largest ? count : s->largest;
  return true;
}

static void find_sources(hd_arena_t *arena, hd_form_tensor_t *tensor) {
  source_t s = {.tensor = tensor, .arena = arena, .elements = 1};
  for (unsigned i = 0; i < tensor->rank; i++)
    s.elements *= tensor->shape[i];
  hd_flat_walk(tensor->term, note_source, &s);
}

// The tensor of the task that an operand is, and the pitch of its rows.
static void find_same(hd_arena_t *arena, hd_form_tensor_t *tensor,
                      bool goes_on) {
  if (tensor->term->kind != HD_TERM_LOAD)
    return;
  const hd_task_value_t *value = tensor->term->u.value;
  hd_form_tensor_t longer = *tensor;
  if (goes_on && value->rank > 0 &&
      hd_flat_size(value, value->rank - 1) > tensor->pitch)
    longer.pitch = hd_flat_size(value, value->rank - 1);
  longer.shape[longer.rank - 1] = longer.pitch;
  if (!hd_form_tensor_is(arena, &longer, value, tensor->term->operands))
    return;
  tensor->same = value;
  tensor->pitch = longer.pitch;
}

void hd_form_tensor_load(hd_form_tensor_t *tensor,
                         const hd_form_digits_t *digits, const hd_term_t *term,
                         bool goes_on) {
  tensor->term = hd_form_put_digits(digits, term);
  find_same(digits->arena, tensor, goes_on);
  // Where narrow ones of a window are takes long to find, for each by itself.
  tensor->piece = widest_piece(digits->arena, tensor, tensor->term,
                               tensor->same ? LEAST_PIECE : HD_FORM_WIDE);
  find_sources(digits->arena, tensor);
  int64_t row = tensor->pitch * (int64_t)hd_scalar_bits(term->type.scalar);
  if (tensor->term->kind != HD_TERM_LOAD)
    tensor->no_map = "is computed where it is loaded";
  else if (!tensor->same)
    tensor->no_map = "does not lie row after row in memory";
  else if (row % 128 != 0)
    tensor->no_map = "has rows that are no multiples of 16 bytes";
}

uint64_t hd_form_tensor_input(const hd_form_tensor_t *tensor,
                              const hd_task_t *flat) {
  for (size_t i = 0; i < flat->inputs.size && i < 64; i++)
    if (tensor->same == flat->inputs.data[i])
      return UINT64_C(1) << i;
  return 0;
}

void hd_form_result_set(hd_form_result_t *result,
                        const hd_form_digits_t *digits,
                        hd_form_tensor_t *tensor) {
  const hd_definition_t *d = result->d;
  const hd_term_t *made = result->reduced.result;
  hd_scalar_t target = d->targets[0]->type.scalar;
  bool is_cell =
      made->kind == HD_TERM_BOUND ||
      (made->kind == HD_TERM_CAST && made->operands[0]->kind == HD_TERM_BOUND);
  // Rounded as the task rounds, where it does nothing else.
  hd_scalar_t sum = result->reduced.reduction->type.scalar;
  bool plain = is_cell && made->type.scalar == target &&
               hd_scalar_bits(target) >= 16 &&
               (target == sum || hd_type_is_float(hd_type(target)));
  result->type = plain ? target : sum;
  result->value = plain ? NULL : hd_form_put_digits(digits, made);
  for (uint32_t i = 0; i < d->num_indices; i++)
    result->places[i] = hd_index_simplify(
        digits->arena,
        hd_form_put_digits(digits,
                           hd_flat_index(digits->arena, d->indices[i])));
  if (plain &&
      hd_form_tensor_is(digits->arena, tensor, d->targets[0], result->places))
    tensor->same = d->targets[0];
}

const hd_term_t *hd_form_narrow(const hd_term_t *term, hd_scalar_t wide) {
  return term->kind == HD_TERM_CAST && term->type.scalar == wide
             ? term->operands[0]
             : NULL;
}
