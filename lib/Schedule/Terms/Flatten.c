// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Schedule/Terms/Flatten.h"

#include "IR/Keywords.h"
#include "Schedule/Terms/Affine.h"
#include "Schedule/Terms/Terms.h"
#include "Support/Map.h"

#include <string.h>

typedef struct flattener {
  hd_context_t *context;
  hd_arena_t *arena;
  const hd_task_binding_t *binding;
  hd_task_t *flat;
  hd_ptr_map_t values;    // To values of the flat task.
  hd_ptr_map_t indices;   // To the terms that an index stands for, one an axis.
  hd_ptr_map_t monoids;   // Declared ones.
  hd_ptr_map_t variables; // Of monoids.
} flattener_t;

static const hd_term_t *flatten(flattener_t *f, const hd_term_t *term,
                                unsigned axis);

static hd_task_type_t flat_type(const flattener_t *f, hd_task_type_t type) {
  return hd_flat_type(hd_binding_type(f->binding, type));
}

// Where an item stands in a vector of the task.
static size_t position(const void *const *items, size_t count,
                       const void *item) {
  size_t i = 0;
  while (i < count && items[i] != item)
    i++;
  return i;
}
#define POSITION(vec, item)                                                    \
  position((const void *const *)(const void *)(vec).data, (vec).size, item)

static const hd_extents_t *pack_extents(const flattener_t *f,
                                        const hd_pack_t *pack) {
  return &f->binding->packs[POSITION(f->binding->task->packs, pack)];
}

// --- Values ---

static const hd_task_value_t *flat_value(flattener_t *f,
                                         const hd_task_value_t *value) {
  const hd_task_value_t *known = hd_ptr_map_get(&f->values, value);
  if (known)
    return known;
  hd_tensor_type_t type = hd_binding_tensor(f->binding, value);
  hd_task_value_t *flat = hd_flat_value_make(f->arena, value->name, value->kind,
                                             type.type, type.shape, type.rank);
  flat->loc = value->loc;
  if (value->kind == HD_VALUE_INPUT)
    hd_vec_push(f->arena, &f->flat->inputs, flat);
  else if (value->kind == HD_VALUE_OUTPUT)
    hd_vec_push(f->arena, &f->flat->outputs, flat);
  else
    hd_vec_push(f->arena, &f->flat->locals, flat);
  hd_ptr_map_set(f->arena, &f->values, value, flat);
  return flat;
}

typedef HD_VEC(const hd_index_t *) indices_t;

// The indices, one for each axis, that an index stands for.
static void flat_indices(flattener_t *f, const hd_index_t *const *indices,
                         unsigned count, indices_t *out) {
  for (unsigned i = 0; i < count; i++) {
    const hd_index_t *index = indices[i];
    hd_extents_t extents = {0};
    bool known =
        hd_binding_extents(f->binding, f->arena, index->range, &extents);
    const hd_term_t **terms =
        HD_ARENA_ARRAY(f->arena, const hd_term_t *, extents.rank + 1);
    for (unsigned axis = 0; known && axis < extents.rank; axis++) {
      const char *name = index->range->pack ? hd_arena_printf(f->arena, "%s%u",
                                                              index->name, axis)
                                            : index->name;
      if (hd_is_reserved(name)) // i2, a type.
        name = hd_arena_printf(f->arena, "%s_", name);
      hd_index_t *flat =
          hd_flat_index_make(f->arena, name, extents.values[axis]);
      flat->loc = index->loc;
      hd_vec_push(f->arena, out, flat);
      terms[axis] = hd_flat_index(f->arena, flat);
    }
    hd_ptr_map_set(f->arena, &f->indices, index, terms);
  }
}

// --- Terms ---

static const hd_term_t *flat_const(flattener_t *f, const hd_term_t *term) {
  hd_scalar_t type = hd_binding_type(f->binding, term->type);
  bool of_floats = hd_task_type_is_float(term->type);
  if (!hd_type_is_float(hd_type(type)))
    return hd_flat_int(f->arena, type, term->u.i);
  return hd_flat_float(f->arena, type,
                       of_floats ? term->u.f : (double)term->u.i);
}

static const hd_term_t *flat_limit(flattener_t *f, const hd_term_t *term) {
  hd_scalar_t type = hd_binding_type(f->binding, term->type);
  hd_number_t number = hd_scalar_limit(term->u.limit, type);
  return hd_type_is_float(hd_type(type))
             ? hd_flat_float(f->arena, type, number.f)
             : hd_flat_int(f->arena, type, number.i);
}

static const hd_term_t *flat_attribute(flattener_t *f, const hd_term_t *term,
                                       unsigned axis) {
  size_t i = POSITION(f->binding->task->inputs, term->u.value);
  const hd_bound_attribute_t *bound = &f->binding->attributes[i];
  hd_scalar_t type = hd_binding_type(f->binding, term->type);
  unsigned at = term->u.value->pack ? axis : 0;
  if (bound->ints)
    return hd_flat_int(f->arena, type, bound->ints[at]);
  return hd_flat_float(f->arena, type, bound->floats[at]);
}

// One index for each axis of a tensor, where it lies. An index over axes to
// which those of the tensor broadcast is 0 where the tensor's size is 1.
static void flat_places(flattener_t *f, const hd_task_value_t *value,
                        const hd_term_t *const *operands,
                        const hd_term_t **places) {
  const hd_task_value_t *flat = flat_value(f, value);
  unsigned count = 0;
  for (uint32_t i = 0; i < value->rank; i++) {
    hd_extents_t own = {.rank = 1}, from = {.rank = 1};
    const hd_pack_t *pack = value->shape[i]->pack;
    bool stretches = pack && operands[i]->pack != pack;
    if (pack)
      hd_binding_extents(f->binding, f->arena, value->shape[i], &own);
    if (stretches)
      from = *pack_extents(f, operands[i]->pack);
    for (unsigned axis = 0; axis < own.rank; axis++, count++) {
      unsigned at = hd_binding_place(f->binding, value, flat->rank, count);
      places[at] =
          stretches && hd_flat_size(flat, at) == 1
              ? hd_flat_int(f->arena, HD_I64, 0)
              : flatten(f, operands[i],
                        stretches ? from.rank - own.rank + axis : axis);
    }
  }
}

// Whether an access is never outside, by the ranges of its indices.
static bool is_inside(const hd_task_value_t *value,
                      const hd_term_t *const *places) {
  for (uint32_t i = 0; i < value->rank; i++) {
    hd_range_t range = hd_term_range(places[i]);
    if (range.least < 0 || range.greatest >= hd_flat_size(value, i))
      return false;
  }
  return true;
}

static const hd_term_t *flat_load(flattener_t *f, const hd_term_t *term) {
  const hd_task_value_t *value = flat_value(f, term->u.value);
  const hd_term_t *operands[HD_MAX_RANK + 1];
  bool is_guarded = term->kind == HD_TERM_LOADELSE;
  if (is_guarded)
    operands[value->rank] =
        flatten(f, term->operands[term->num_operands - 1u], 0);
  if (hd_flat_count(value) == 0 && is_guarded)
    return operands[value->rank];
  flat_places(f, term->u.value, term->operands, operands);
  is_guarded &= !is_inside(value, operands);
  hd_term_t *load =
      hd_term_make(f->arena, is_guarded ? HD_TERM_LOADELSE : HD_TERM_LOAD,
                   value->type, operands, value->rank + is_guarded);
  load->u.value = value;
  load->loc = term->loc;
  return load;
}

static const hd_monoid_t *flat_monoid(flattener_t *f,
                                      const hd_monoid_t *monoid) {
  if (monoid->builtin != HD_MONOID_COUNT)
    return monoid;
  const hd_monoid_t *known = hd_ptr_map_get(&f->monoids, monoid);
  if (known)
    return known;
  uint32_t size = monoid->size;
  hd_monoid_t *flat = HD_ARENA_COPY(f->arena, hd_monoid_t, monoid);
  const hd_variable_t **sides[2];
  const hd_term_t **terms[2];
  for (int side = 0; side < 2; side++) {
    sides[side] = HD_ARENA_ARRAY(f->arena, const hd_variable_t *, size);
    terms[side] = HD_ARENA_ARRAY(f->arena, const hd_term_t *, size);
    for (uint32_t i = 0; i < size; i++) {
      const hd_variable_t *old = side ? monoid->right[i] : monoid->left[i];
      hd_variable_t *variable = HD_ARENA_COPY(f->arena, hd_variable_t, old);
      variable->type = flat_type(f, old->type);
      sides[side][i] = variable;
      hd_ptr_map_set(f->arena, &f->variables, old, variable);
    }
  }
  for (uint32_t i = 0; i < size; i++) {
    terms[0][i] = flatten(f, monoid->identity[i], 0);
    terms[1][i] = flatten(f, monoid->result[i], 0);
  }
  flat->left = sides[0];
  flat->right = sides[1];
  flat->identity = terms[0];
  flat->result = terms[1];
  hd_vec_push(f->arena, &f->flat->monoids, flat);
  hd_ptr_map_set(f->arena, &f->monoids, monoid, flat);
  return flat;
}

// A reduction over one value alone: that value, but where the identity and it
// are something else together: 0 + -0 is 0, the greater of -inf and NaN -inf.
static const hd_term_t *combined_once(flattener_t *f, const hd_monoid_t *monoid,
                                      const hd_term_t *operand) {
  hd_scalar_t type = (hd_scalar_t)operand->type.scalar;
  bool changes = monoid->builtin == HD_MONOID_SUM ||
                 monoid->builtin == HD_MONOID_MAX ||
                 monoid->builtin == HD_MONOID_MIN;
  if (!changes || !hd_type_is_float(hd_type(type)))
    return operand;
  return hd_flat_operate(f->arena, hd_monoid_operator(monoid->builtin),
                         hd_flat_identity(f->arena, monoid, 0, type), operand);
}

// A reduction over nothing is the identity.
static const hd_term_t *flat_reduction(flattener_t *f, const hd_term_t *term) {
  const hd_reduction_t *r = term->u.reduction;
  indices_t indices = {0};
  hd_reduction_t *flat = HD_ARENA_COPY(f->arena, hd_reduction_t, r);
  flat->monoid = flat_monoid(f, r->monoid);
  if (term->kind == HD_TERM_SCAN)
    flat->at = flatten(f, r->at, 0);
  flat_indices(f, r->indices, r->num_indices, &indices);
  int64_t points = hd_flat_points(indices.data, (unsigned)indices.size);
  const hd_term_t *operands[8];
  for (unsigned i = 0; i < term->num_operands; i++)
    operands[i] =
        points == 0 ? hd_flat_identity(
                          f->arena, flat->monoid, i,
                          hd_binding_type(f->binding, term->operands[i]->type))
                    : flatten(f, term->operands[i], 0);
  bool is_plain = term->kind == HD_TERM_REDUCE && points <= 1;
  if (is_plain && term->num_operands == 1)
    return points ? combined_once(f, flat->monoid, operands[0]) : operands[0];
  if (points == 0) // Of a tuple: what is combined is the identity.
    indices.data[0] = hd_flat_index_make(f->arena, "one", 1);
  for (size_t i = 0; points == 0 && i < indices.size; i++)
    if (hd_flat_range(indices.data[i]) == 0)
      indices.data[i] = indices.data[0];
  size_t kept = 0;
  for (size_t i = 0; i < indices.size; i++)
    if (hd_flat_range(indices.data[i]) > 1 && points > 0)
      indices.data[kept++] = indices.data[i];
  if (kept == 0 && indices.size)
    kept = 1;
  flat->indices = indices.data;
  flat->num_indices = (uint32_t)kept;
  hd_term_t *result =
      hd_term_make(f->arena, (hd_term_kind_t)term->kind, operands[0]->type,
                   operands, term->num_operands);
  result->u.reduction = flat;
  result->loc = term->loc;
  return result;
}

static const hd_term_t *flat_inner(flattener_t *f, const hd_term_t *term,
                                   unsigned axis) {
  const hd_term_t *operands[3];
  for (unsigned i = 0; i < term->num_operands; i++)
    operands[i] = flatten(f, term->operands[i], axis);
  hd_term_t shape = *term;
  shape.type = flat_type(f, term->type);
  shape.pack = NULL;
  return hd_flat_rebuild(f->arena, &shape, operands);
}

// The value of a term; that of one axis where it is over a pack.
static const hd_term_t *flatten(flattener_t *f, const hd_term_t *term,
                                unsigned axis) {
  switch ((hd_term_kind_t)term->kind) {
  case HD_TERM_CONST:
    return flat_const(f, term);
  case HD_TERM_LIMIT:
    return flat_limit(f, term);
  case HD_TERM_SIZE:
    return hd_flat_int(
        f->arena, HD_I64,
        f->binding->sizes[POSITION(f->binding->task->sizes, term->u.size)]);
  case HD_TERM_PACK:
  case HD_TERM_BROADCAST:
    return hd_flat_int(f->arena, HD_I64,
                       pack_extents(f, term->u.pack)->values[axis]);
  case HD_TERM_PERMUTE: {
    int64_t from = 0;
    hd_binding_extent(f->binding, term->operands[1], axis, &from);
    return flatten(f, term->operands[0], (unsigned)from);
  }
  case HD_TERM_INDEX: {
    const hd_term_t *const *terms = hd_ptr_map_get(&f->indices, term->u.index);
    return terms[term->pack ? axis : 0];
  }
  case HD_TERM_ATTRIBUTE:
    return flat_attribute(f, term, axis);
  case HD_TERM_BOUND: {
    hd_term_t *bound = hd_term_make(f->arena, HD_TERM_BOUND,
                                    flat_type(f, term->type), NULL, 0);
    bound->u.variable = hd_ptr_map_get(&f->variables, term->u.variable);
    return bound;
  }
  case HD_TERM_OPERATOR:
  case HD_TERM_SELECT:
  case HD_TERM_CAST:
  case HD_TERM_BITCAST:
  case HD_TERM_FUNCTION:
    return flat_inner(f, term, axis);
  case HD_TERM_LOAD:
  case HD_TERM_LOADELSE:
    return flat_load(f, term);
  case HD_TERM_REDUCE:
  case HD_TERM_SCAN:
    return flat_reduction(f, term);
  case HD_TERM_COUNT:
    break;
  }
  return NULL;
}

// --- Definitions ---

static void flat_definition(flattener_t *f, const hd_definition_t *d) {
  hd_definition_t *flat = HD_ARENA_COPY(f->arena, hd_definition_t, d);
  const hd_task_value_t **targets =
      HD_ARENA_ARRAY(f->arena, const hd_task_value_t *, d->num_targets);
  for (uint32_t i = 0; i < d->num_targets; i++)
    targets[i] = flat_value(f, d->targets[i]);
  flat->targets = targets;
  // Nothing computes what has no elements; a scatter into it is wrong wherever
  // it sends a value.
  bool is_empty = hd_flat_count(targets[0]) == 0;
  if (is_empty && (d->kind != HD_SCATTER || d->drops))
    return;
  indices_t indices = {0};
  for (uint32_t i = 0; i < d->num_indices; i++) {
    flat_indices(f, &d->indices[i], 1, &indices);
    if (d->kind == HD_SORT && d->indices[i] == d->along)
      flat->along = indices.data[indices.size - 1];
  }
  flat->indices = indices.data;
  flat->num_indices = (uint32_t)indices.size;
  if (is_empty && hd_flat_points(indices.data, (unsigned)indices.size) == 0)
    return;
  flat->term = flatten(f, d->term, 0);
  if (d->kind == HD_SCATTER) {
    const hd_term_t **at =
        HD_ARENA_ARRAY(f->arena, const hd_term_t *, targets[0]->rank);
    flat_places(f, d->targets[0], d->at, at);
    flat->at = at;
    flat->monoid = d->monoid ? flat_monoid(f, d->monoid) : NULL;
    flat->onto = d->onto ? flat_value(f, d->onto) : NULL;
  }
  hd_vec_push(f->arena, &f->flat->definitions, flat);
}

hd_task_t *hd_task_flatten(hd_context_t *context, hd_arena_t *arena,
                           const hd_task_binding_t *binding, hd_loc_t loc) {
  const hd_task_t *task = binding->task;
  flattener_t f = {.context = context,
                   .arena = arena,
                   .binding = binding,
                   .flat = HD_ARENA_NEW(arena, hd_task_t)};
  f.flat->name = task->name;
  f.flat->loc = task->loc;
  for (size_t i = 0; i < task->sizes.size; i++)
    if (task->sizes.data[i]->bound) {
      hd_error(&context->diags, loc, HD_E1104, task->name,
               "a kernel for a task whose data decide a size is not supported");
      return NULL;
    }
  // All of them, in the task's order.
  for (size_t i = 0; i < task->inputs.size; i++)
    if (task->inputs.data[i]->kind == HD_VALUE_INPUT)
      flat_value(&f, task->inputs.data[i]);
  for (size_t i = 0; i < task->outputs.size; i++)
    flat_value(&f, task->outputs.data[i]);
  for (size_t i = 0; i < task->definitions.size; i++)
    flat_definition(&f, task->definitions.data[i]);
  return f.flat;
}
