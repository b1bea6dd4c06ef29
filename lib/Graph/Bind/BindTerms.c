// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What terms over sizes, packs and attributes are worth under a binding, or
// under one that is being made.
#include "Graph/Bind/BindingState.h"

#include <assert.h>

size_t hd_task_pack_at(const hd_task_t *task, const hd_pack_t *pack) {
  size_t i = 0;
  while (task->packs.data[i] != pack)
    i++;
  return i;
}

size_t hd_task_size_at(const hd_task_t *task, const hd_size_t *size) {
  size_t i = 0;
  while (task->sizes.data[i] != size)
    i++;
  return i;
}

size_t hd_task_input_at(const hd_task_t *task, const hd_task_value_t *value) {
  size_t i = 0;
  while (task->inputs.data[i] != value)
    i++;
  return i;
}

hd_scalar_t hd_binding_type(const hd_task_binding_t *binding,
                            hd_task_type_t type) {
  if (!type.var)
    return type.scalar;
  size_t i = 0;
  while (binding->task->types.data[i] != type.var)
    i++;
  return binding->types[i];
}

unsigned hd_binding_rank(const hd_task_binding_t *binding,
                         const hd_pack_t *pack) {
  unsigned rank = 0;
  pack = hd_pack_root(pack);
  if (pack->name)
    return binding->packs[hd_task_pack_at(binding->task, pack)].rank;
  for (uint32_t i = 0; i < pack->num_parts; i++) {
    unsigned part = hd_binding_rank(binding, pack->parts[i]);
    rank = part > rank ? part : rank;
  }
  return rank;
}

// The size of a pack's axis. Of a broadcast: the size that is not 1, if there
// is one; two different ones do not go together.
static bool pack_size(const hd_task_binding_t *b, const hd_pack_t *pack,
                      unsigned axis, int64_t *size) {
  if (pack->name) {
    const hd_extents_t *extents = &b->packs[hd_task_pack_at(b->task, pack)];
    if (!extents->values)
      return false;
    *size = extents->values[axis];
    return true;
  }
  unsigned rank = hd_binding_rank(b, pack);
  *size = 1;
  for (uint32_t i = 0; i < pack->num_parts; i++) {
    unsigned missing = rank - hd_binding_rank(b, pack->parts[i]);
    int64_t part;
    if (axis < missing)
      continue;
    if (!pack_size(b, pack->parts[i], axis - missing, &part) ||
        (part != 1 && *size != 1 && part != *size))
      return false;
    *size = part == 1 ? *size : part;
  }
  return true;
}

hd_number_t hd_binding_constant(const hd_task_binding_t *binding,
                                const hd_term_t *term) {
  assert(term->kind == HD_TERM_CONST);
  hd_scalar_t type = hd_binding_type(binding, term->type);
  // Where the type may be a float or not, the text held an integer.
  return hd_task_type_is_float(term->type)
             ? hd_scalar_convert(type, HD_F64, (hd_number_t){.f = term->u.f})
             : hd_scalar_convert(type, HD_I64, (hd_number_t){.i = term->u.i});
}

hd_number_t hd_binding_attribute(const hd_task_binding_t *binding,
                                 const hd_task_value_t *value, unsigned axis) {
  const hd_bound_attribute_t *a =
      &binding->attributes[hd_task_input_at(binding->task, value)];
  return a->ints ? (hd_number_t){.i = a->ints[axis]}
                 : (hd_number_t){.f = a->floats[axis]};
}

static bool number_of(const hd_task_binding_t *b, const hd_term_t *term,
                      unsigned axis, hd_number_t *out);

static bool known_element(const hd_task_binding_t *b,
                          const hd_task_value_t *value, hd_number_t *out) {
  const hd_host_tensor_t *known =
      b->known && value->kind == HD_VALUE_INPUT
          ? b->known[hd_task_input_at(b->task, value)]
          : NULL;
  if (!known || known->count != 1)
    return false;
  if (hd_scalar_class(known->type) == HD_CLASS_FLOAT)
    out->f = hd_host_tensor_get(known, 0);
  else
    out->i = hd_host_tensor_get_int(known, 0);
  return true;
}

// Sizes do not wrap.
static bool operate(const hd_task_binding_t *b, const hd_term_t *term,
                    unsigned axis, hd_number_t *out) {
  hd_scalar_t type = hd_binding_type(b, term->operands[0]->type);
  hd_number_t x, y = {0};
  if (!number_of(b, term->operands[0], axis, &x))
    return false;
  if ((term->u.op == HD_EXPR_AND && !x.i) ||
      (term->u.op == HD_EXPR_OR && x.i)) {
    *out = x;
    return true;
  }
  if (term->num_operands > 1 && !number_of(b, term->operands[1], axis, &y))
    return false;
  if (type == HD_I64 && term->u.op == HD_EXPR_ADD)
    return !__builtin_add_overflow(x.i, y.i, &out->i);
  if (type == HD_I64 && term->u.op == HD_EXPR_SUB)
    return !__builtin_sub_overflow(x.i, y.i, &out->i);
  if (type == HD_I64 && term->u.op == HD_EXPR_MUL)
    return !__builtin_mul_overflow(x.i, y.i, &out->i);
  return hd_scalar_operate(term->u.op, type, x, y, out);
}

static bool number_of(const hd_task_binding_t *b, const hd_term_t *term,
                      unsigned axis, hd_number_t *out) {
  if (!term->pack)
    axis = 0;
  switch ((hd_term_kind_t)term->kind) {
  case HD_TERM_CONST:
    *out = hd_binding_constant(b, term);
    return true;
  case HD_TERM_LIMIT:
    *out = hd_scalar_limit(term->u.limit, hd_binding_type(b, term->type));
    return true;
  case HD_TERM_SIZE:
    out->i = b->sizes[hd_task_size_at(b->task, term->u.size)];
    return out->i != HD_UNBOUND_SIZE;
  case HD_TERM_PACK:
  case HD_TERM_BROADCAST:
    return pack_size(b, term->u.pack, axis, &out->i);
  case HD_TERM_PERMUTE: {
    hd_number_t from;
    return number_of(b, term->operands[1], axis, &from) && from.i >= 0 &&
           from.i < hd_binding_rank(b, term->pack) &&
           number_of(b, term->operands[0], (unsigned)from.i, out);
  }
  case HD_TERM_ATTRIBUTE:
    *out = hd_binding_attribute(b, term->u.value, axis);
    return true;
  case HD_TERM_OPERATOR:
    return operate(b, term, axis, out);
  case HD_TERM_SELECT:
    return number_of(b, term->operands[0], axis, out) &&
           number_of(b, term->operands[out->i ? 1 : 2], axis, out);
  case HD_TERM_CAST: {
    hd_number_t x;
    if (!number_of(b, term->operands[0], axis, &x))
      return false;
    *out = hd_scalar_convert(hd_binding_type(b, term->type),
                             hd_binding_type(b, term->operands[0]->type), x);
    return true;
  }
  case HD_TERM_LOAD:
    return known_element(b, term->u.value, out);
  case HD_TERM_INDEX:
  case HD_TERM_BOUND:
  case HD_TERM_BITCAST:
  case HD_TERM_FUNCTION:
  case HD_TERM_LOADELSE:
  case HD_TERM_REDUCE:
  case HD_TERM_SCAN:
  case HD_TERM_COUNT:
    break;
  }
  return false;
}

bool hd_binding_extent(const hd_task_binding_t *binding, const hd_term_t *term,
                       unsigned axis, int64_t *extent) {
  hd_number_t number;
  if (!number_of(binding, term, axis, &number))
    return false;
  *extent = number.i;
  return true;
}

bool hd_binding_number(const hd_task_binding_t *binding, const hd_term_t *term,
                       unsigned axis, hd_number_t *number) {
  return number_of(binding, term, axis, number);
}

bool hd_binding_extents(const hd_task_binding_t *binding, hd_arena_t *arena,
                        const hd_term_t *term, hd_extents_t *extents) {
  unsigned rank = term->pack ? hd_binding_rank(binding, term->pack) : 1;
  int64_t *values = HD_ARENA_ARRAY(arena, int64_t, rank);
  for (unsigned i = 0; i < rank; i++)
    if (!hd_binding_extent(binding, term, i, &values[i]))
      return false;
  *extents = (hd_extents_t){rank, values};
  return true;
}

unsigned hd_binding_place(const hd_task_binding_t *binding,
                          const hd_task_value_t *value, unsigned rank,
                          unsigned axis) {
  if (!value->by)
    return axis;
  const hd_bound_attribute_t *order =
      &binding->attributes[hd_task_input_at(binding->task, value->by)];
  if (!value->by->pack)
    return order->ints[0] && axis + 2 >= rank ? 2 * rank - 3 - axis : axis;
  int64_t place = axis < order->rank ? order->ints[axis] : -1;
  return place >= 0 && place < rank ? (unsigned)place : axis;
}

hd_tensor_type_t hd_binding_tensor(const hd_task_binding_t *binding,
                                   const hd_task_value_t *value) {
  hd_tensor_type_t type = {hd_binding_type(binding, value->type), 0, {0}};
  int64_t shape[HD_MAX_RANK];
  for (uint32_t i = 0; i < value->rank; i++) {
    const hd_term_t *axis = value->shape[i];
    unsigned rank = axis->pack ? hd_binding_rank(binding, axis->pack) : 1;
    for (unsigned n = 0; n < rank; n++, type.rank++) {
      bool known = type.rank < HD_MAX_RANK &&
                   hd_binding_extent(binding, axis, n, &shape[type.rank]);
      assert(known && "asked when it was bound");
      (void)known;
    }
  }
  for (unsigned axis = 0; axis < type.rank; axis++)
    type.shape[hd_binding_place(binding, value, type.rank, axis)] = shape[axis];
  return type;
}
