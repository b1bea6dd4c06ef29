// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes of a bucket that move elements: what is past an extent becomes a
// number; elements that are packed, or lie as another shape has them, come to
// where the bound has them, or the other way.

#include "Fusion/Bucket/BucketState.h"
#include "Schedule/Schedule.h"

// A flat task y = f(x) of one definition that is not there yet.
typedef struct small_task {
  hd_task_t *task;
  hd_task_value_t *x, *y;
  const hd_task_value_t *extents;
  const hd_term_t *places[HD_MAX_RANK]; // The indices of y.
} small_task_t;

static hd_task_value_t *flat_like(hd_bucketer_t *b, const char *name,
                                  hd_value_kind_t kind,
                                  const hd_value_t *value) {
  hd_tensor_type_t type = hd_scheduled_type(value);
  return hd_flat_value_make(b->arena, name, kind, type.type, type.shape,
                            type.rank);
}

static small_task_t small_begin(hd_bucketer_t *b, const hd_value_t *from,
                                const hd_value_t *to) {
  small_task_t s = {.task = HD_ARENA_NEW(b->arena, hd_task_t)};
  s.x = flat_like(b, "x", HD_VALUE_INPUT, from);
  s.y = flat_like(b, "y", HD_VALUE_OUTPUT, to);
  s.extents = hd_bucket_extents(b, s.task);
  hd_vec_push(b->arena, &s.task->inputs, (const hd_task_value_t *)s.x);
  hd_vec_push(b->arena, &s.task->inputs, s.extents);
  hd_vec_push(b->arena, &s.task->outputs, (const hd_task_value_t *)s.y);
  const hd_index_t *indices[HD_MAX_RANK];
  for (unsigned i = 0; i < s.y->rank; i++) {
    indices[i] = hd_flat_index_make(
        b->arena, hd_arena_printf(b->arena, "p%u", i), hd_flat_size(s.y, i));
    s.places[i] = hd_flat_index(b->arena, indices[i]);
  }
  hd_vec_push(
      b->arena, &s.task->definitions,
      (const hd_definition_t *)hd_flat_define(b->arena, s.y, indices, NULL));
  return s;
}

static void small_put(hd_bucketer_t *b, small_task_t *s, const char *op,
                      const hd_term_t *term, const hd_value_t *from,
                      const hd_value_t *to) {
  hd_definition_t *d =
      HD_ARENA_COPY(b->arena, hd_definition_t, s->task->definitions.data[0]);
  const hd_value_t **ends = HD_ARENA_ARRAY(b->arena, const hd_value_t *, 2);
  d->term = term;
  s->task->definitions.data[0] = d;
  ends[0] = from;
  ends[1] = to;
  hd_bucket_put(b, op, s->task, NULL, &ends[0], &ends[1]);
}

static const hd_term_t *number_like(hd_bucketer_t *b, hd_scalar_t type,
                                    double value) {
  return hd_type_is_float(hd_type(type))
             ? hd_flat_float(b->arena, type, value)
             : hd_flat_int(b->arena, type, (int64_t)value);
}

const hd_value_t *hd_bucket_sealed(hd_bucketer_t *b, const hd_value_t *value,
                                   const hd_bucket_seal_t *seal) {
  const hd_bucket_tensor_t *t = hd_bucket_tensor(b, value);
  const hd_value_t *from = hd_bucket_stands(b, value);
  const char *key = hd_arena_printf(b->arena, "%s %g", from->name, seal->value);
  for (unsigned i = 0; i < t->rank; i++)
    if (seal->axes[i])
      key = hd_arena_printf(b->arena, "%s %u", key, i);
  const hd_value_t *known = hd_key_map_find_name(&b->seals, key);
  if (known)
    return known;
  const hd_value_t *to = hd_bucket_value(b, from, "sealed");
  small_task_t s = small_begin(b, from, to);
  const hd_term_t *real = NULL;
  for (unsigned i = 0; i < t->rank; i++)
    if (seal->axes[i])
      real = hd_bucket_both(
          b->arena, real,
          hd_bucket_real(b, s.extents, s.places[i], &t->axes[i]));
  hd_scalar_t type = (hd_scalar_t)value->type;
  small_put(b, &s, "seal",
            hd_flat_select(b->arena, real,
                           hd_flat_load(b->arena, s.x, s.places),
                           number_like(b, type, seal->value)),
            from, to);
  hd_key_map_set_name(b->arena, &b->seals, key, to);
  return to;
}

// --- Elements that lie otherwise ---

static const hd_term_t *extent_of(hd_bucketer_t *b,
                                  const hd_task_value_t *extents,
                                  hd_extent_t extent) {
  return hd_extent_varies(extent) ? hd_bucket_read(b, extents, extent.slot)
                                  : hd_flat_int(b->arena, HD_I64, extent.bound);
}

static const hd_term_t *operate(hd_bucketer_t *b, hd_expr_kind_t op,
                                const hd_term_t *x, const hd_term_t *y) {
  return hd_flat_operate(b->arena, op, x, y);
}

// The number of an element among the true ones, by its places; NULL: those are
// its number.
static const hd_term_t *true_number(hd_bucketer_t *b, const small_task_t *s,
                                    const hd_bucket_tensor_t *t) {
  const hd_term_t *number = hd_flat_int(b->arena, HD_I64, 0);
  if (!t)
    return s->places[0];
  for (unsigned i = 0; i < t->rank; i++)
    number = i == 0 ? s->places[0]
                    : operate(b, HD_EXPR_ADD,
                              operate(b, HD_EXPR_MUL, number,
                                      extent_of(b, s->extents, t->sizes[i])),
                              s->places[i]);
  return number;
}

// Where the element of that number is.
static void true_places(hd_bucketer_t *b, const small_task_t *s,
                        const hd_bucket_tensor_t *t, const hd_term_t *rest,
                        const hd_term_t **places) {
  for (unsigned i = t->rank; i-- > 0;) {
    int64_t stride = 1;
    const hd_term_t *place = NULL;
    for (unsigned k = t->axes[i].count; k-- > 0;) {
      hd_extent_t d = t->axes[i].digits[k];
      const hd_term_t *extent = extent_of(b, s->extents, d);
      const hd_term_t *digit = operate(b, HD_EXPR_MOD, rest, extent);
      rest = operate(b, HD_EXPR_DIV, rest, extent);
      digit =
          operate(b, HD_EXPR_MUL, digit, hd_flat_int(b->arena, HD_I64, stride));
      place = place ? operate(b, HD_EXPR_ADD, digit, place) : digit;
      stride *= d.bound;
    }
    places[i] = place;
  }
}

void hd_bucket_move(hd_bucketer_t *b, const char *op, const hd_value_t *from,
                    const hd_bucket_tensor_t *in, const hd_value_t *to,
                    const hd_bucket_tensor_t *out) {
  small_task_t s = small_begin(b, from, to);
  unsigned rank = s.x->rank;
  const hd_term_t *operands[HD_MAX_RANK + 1];
  const hd_term_t *number = true_number(b, &s, out);
  if (in)
    true_places(b, &s, in, number, operands);
  else
    operands[0] = number;
  operands[rank] = number_like(b, (hd_scalar_t)from->type, 0);
  hd_term_t *load =
      hd_term_make(b->arena, HD_TERM_LOADELSE, s.x->type, operands, rank + 1);
  load->u.value = s.x;
  small_put(b, &s, op, load, from, to);
}

void hd_bucket_put_moved(hd_bucketer_t *b, const hd_node_t *node) {
  hd_bucket_tensor_t *out = hd_bucket_tensor(b, node->outputs[0]);
  for (unsigned i = 0; i < out->rank; i++)
    out->axes[i] = hd_digits_of(out->sizes[i]);
  hd_bucket_move(b, "reshape", hd_bucket_stands(b, node->inputs[0]),
                 hd_bucket_tensor(b, node->inputs[0]), node->outputs[0], out);
}

const hd_value_t *hd_bucket_whole(hd_bucketer_t *b, const hd_value_t *value) {
  const hd_bucket_tensor_t *t = hd_bucket_tensor(b, value);
  const hd_value_t *known = hd_ptr_map_get(&b->whole, value);
  bool holes = false;
  for (unsigned i = 0; i < t->rank; i++)
    holes |= t->axes[i].count > 1;
  if (known || !holes)
    return known ? known : value;
  const hd_value_t *to = hd_bucket_value(b, value, "whole");
  hd_bucket_tensor_t *whole = HD_ARENA_NEW(b->arena, hd_bucket_tensor_t);
  whole->rank = t->rank;
  for (unsigned i = 0; i < t->rank; i++) {
    whole->sizes[i] = t->sizes[i];
    whole->axes[i] = hd_digits_of(t->sizes[i]);
  }
  hd_ptr_map_set(b->arena, &b->tensors, to, whole);
  hd_ptr_map_set(b->arena, &b->whole, value, to);
  hd_bucket_move(b, "whole", hd_bucket_stands(b, value), t, to, whole);
  return to;
}
