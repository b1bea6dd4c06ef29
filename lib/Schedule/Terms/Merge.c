// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Schedule/Terms/Merge.h"

#include "Schedule/Terms/Affine.h"

typedef struct merger {
  hd_arena_t *arena;
  hd_arena_t maps; // What they take: more than the task does.
  hd_merged_t *merged;
  hd_ptr_map_t aliases; // Results of reshapes to what they are made of.
  hd_ptr_map_t tensors; // Values that are no such results to the task's.
  hd_ptr_map_t given;   // Those that parts give.
  // Of the part at hand:
  hd_ptr_map_t values;  // Its inputs to the graph's values.
  hd_ptr_map_t targets; // What it defines to the task's.
  hd_ptr_map_t indices;
  hd_ptr_map_t monoids; // Declared ones, of all parts.
  unsigned num_indices; // Named so far, in the definition at hand.
  unsigned num_locals;
  bool fits;
} merger_t;

static const hd_value_t *resolve(const merger_t *m, const hd_value_t *value) {
  const hd_value_t *of;
  while ((of = hd_ptr_map_get(&m->aliases, value)))
    value = of;
  return value;
}

static unsigned shape_of(const hd_value_t *value, int64_t *shape) {
  for (int i = 0; i < value->rank; i++)
    hd_expr_fold_int(value->shape[i], &shape[i]);
  return (unsigned)value->rank;
}

static const hd_task_value_t *make_tensor(merger_t *m, const hd_value_t *value,
                                          hd_value_kind_t kind) {
  int64_t shape[HD_MAX_RANK];
  unsigned rank = shape_of(value, shape);
  hd_task_t *flat = m->merged->flat;
  const char *name = kind == HD_VALUE_INPUT
                         ? hd_arena_printf(m->arena, "x%zu", flat->inputs.size)
                     : kind == HD_VALUE_OUTPUT
                         ? hd_arena_printf(m->arena, "y%zu", flat->outputs.size)
                         : hd_arena_printf(m->arena, "t%u", m->num_locals++);
  hd_task_value_t *tensor =
      hd_flat_value_make(m->arena, name, kind, value->type, shape, rank);
  tensor->loc = value->loc;
  m->fits &= hd_flat_count(tensor) > 0;
  if (kind == HD_VALUE_INPUT) {
    hd_vec_push(m->arena, &flat->inputs, tensor);
    hd_vec_push(m->arena, &m->merged->inputs, value);
  } else if (kind == HD_VALUE_OUTPUT) {
    hd_vec_push(m->arena, &flat->outputs, tensor);
  } else {
    hd_vec_push(m->arena, &flat->locals, tensor);
  }
  return tensor;
}

// The tensor for a value that is no reshape's result; where parts give it, a
// local one, unless it is there as an output.
static const hd_task_value_t *tensor_of(merger_t *m, const hd_value_t *value) {
  const hd_task_value_t *tensor = hd_ptr_map_get(&m->tensors, value);
  if (tensor)
    return tensor;
  bool inner = hd_ptr_map_get(&m->given, value);
  tensor = make_tensor(m, value, inner ? HD_VALUE_LOCAL : HD_VALUE_INPUT);
  hd_ptr_map_set(&m->maps, &m->tensors, value, tensor);
  return tensor;
}

// --- Terms ---

static const hd_index_t *fresh_index(merger_t *m, const hd_index_t *index) {
  const hd_index_t *known = hd_ptr_map_get(&m->indices, index);
  if (known)
    return known;
  hd_index_t *fresh = hd_flat_index_make(
      m->arena, hd_arena_printf(m->arena, "p%u", m->num_indices++),
      hd_flat_range(index));
  fresh->loc = index->loc;
  hd_ptr_map_set(&m->maps, &m->indices, index, fresh);
  hd_ptr_map_set(&m->maps, &m->indices, fresh, fresh); // Has been put.
  return fresh;
}

static const hd_index_t *const *
fresh_indices(merger_t *m, const hd_index_t *const *indices, uint32_t count) {
  const hd_index_t **fresh =
      HD_ARENA_ARRAY(m->arena, const hd_index_t *, count);
  for (uint32_t i = 0; i < count; i++)
    fresh[i] = fresh_index(m, indices[i]);
  return fresh;
}

static const hd_monoid_t *fresh_monoid(merger_t *m, const hd_monoid_t *monoid) {
  if (monoid->builtin != HD_MONOID_COUNT)
    return monoid;
  const hd_monoid_t *known = hd_ptr_map_get(&m->monoids, monoid);
  if (known)
    return known;
  hd_monoid_t *fresh = HD_ARENA_COPY(m->arena, hd_monoid_t, monoid);
  fresh->name =
      hd_arena_printf(m->arena, "monoid%zu", m->merged->flat->monoids.size);
  hd_vec_push(m->arena, &m->merged->flat->monoids, fresh);
  hd_ptr_map_set(&m->maps, &m->monoids, monoid, fresh);
  hd_ptr_map_set(&m->maps, &m->monoids, fresh, fresh);
  return fresh;
}

// An element of a value of the graph.
static const hd_term_t *put_access(merger_t *m, const hd_term_t *term,
                                   const hd_value_t *value) {
  const hd_value_t *base = resolve(m, value);
  // Bounds are those of the shape that it is read in.
  m->fits &= base == value || term->kind == HD_TERM_LOAD;
  if (!m->fits)
    return term;
  const hd_task_value_t *tensor = tensor_of(m, base);
  const hd_term_t *operands[HD_MAX_RANK + 1];
  for (unsigned i = 0; i < term->num_operands; i++)
    operands[i] = term->operands[i];
  if (base != value) {
    int64_t from[HD_MAX_RANK], to[HD_MAX_RANK];
    unsigned rank = shape_of(value, from);
    shape_of(base, to);
    const hd_term_t *number =
        hd_index_linear(m->arena, from, rank, term->operands);
    hd_index_places(m->arena, number, to, tensor->rank, operands);
  }
  hd_term_t *load =
      hd_term_make(m->arena, (hd_term_kind_t)term->kind, tensor->type, operands,
                   tensor->rank + (term->kind == HD_TERM_LOADELSE));
  load->u.value = tensor;
  load->loc = term->loc;
  return load;
}

static const hd_term_t *put_term(void *argument, const hd_term_t *term) {
  merger_t *m = argument;
  if (term->kind == HD_TERM_INDEX)
    return hd_flat_index(m->arena, fresh_index(m, term->u.index));
  if (hd_flat_is_reduction(term)) {
    hd_reduction_t *r =
        HD_ARENA_COPY(m->arena, hd_reduction_t, term->u.reduction);
    r->monoid = fresh_monoid(m, r->monoid);
    r->indices = fresh_indices(m, r->indices, r->num_indices);
    hd_term_t like = *term;
    like.u.reduction = r;
    return hd_flat_like(m->arena, &like, term->operands);
  }
  if (!hd_flat_is_load(term))
    return term;
  const hd_value_t *value = hd_ptr_map_get(&m->values, term->u.value);
  if (value)
    return put_access(m, term, value);
  const hd_task_value_t *target = hd_ptr_map_get(&m->targets, term->u.value);
  if (!target)
    return term; // Put already, and all that is left of its user.
  hd_term_t like = *term;
  like.u.value = target;
  return hd_flat_like(m->arena, &like, term->operands);
}

// --- Parts ---

static void put_definition(merger_t *m, const hd_definition_t *d) {
  m->fits &= d->kind == HD_DEFINE;
  if (!m->fits)
    return;
  hd_definition_t *copy = HD_ARENA_NEW(m->arena, hd_definition_t);
  const hd_task_value_t **targets =
      HD_ARENA_ARRAY(m->arena, const hd_task_value_t *, d->num_targets);
  for (uint32_t i = 0; i < d->num_targets; i++)
    targets[i] = hd_ptr_map_get(&m->targets, d->targets[i]);
  *copy = *d;
  copy->targets = targets;
  copy->indices = fresh_indices(m, d->indices, d->num_indices);
  copy->term = hd_flat_rewrite(m->arena, d->term, put_term, m);
  hd_vec_push(m->arena, &m->merged->flat->definitions, copy);
}

static const hd_task_value_t *copy_local(merger_t *m,
                                         const hd_task_value_t *value) {
  hd_task_value_t *copy = HD_ARENA_COPY(m->arena, hd_task_value_t, value);
  copy->kind = HD_VALUE_LOCAL;
  copy->name = hd_arena_printf(m->arena, "t%u", m->num_locals++);
  hd_vec_push(m->arena, &m->merged->flat->locals, copy);
  return copy;
}

static void put_part(merger_t *m, const hd_merge_part_t *part) {
  const hd_task_t *flat = part->flat;
  const hd_node_t *node = part->node;
  if (!flat)
    return; // Known as an alias.
  m->values = m->targets = m->indices = (hd_ptr_map_t){0};
  for (size_t i = 0; i < flat->inputs.size; i++)
    hd_ptr_map_set(&m->maps, &m->values, flat->inputs.data[i], node->inputs[i]);
  for (size_t i = 0; i < flat->outputs.size; i++)
    hd_ptr_map_set(&m->maps, &m->targets, flat->outputs.data[i],
                   node->outputs[i] ? tensor_of(m, node->outputs[i])
                                    : copy_local(m, flat->outputs.data[i]));
  for (size_t i = 0; i < flat->locals.size; i++)
    hd_ptr_map_set(&m->maps, &m->targets, flat->locals.data[i],
                   copy_local(m, flat->locals.data[i]));
  for (size_t i = 0; i < flat->definitions.size; i++)
    put_definition(m, flat->definitions.data[i]);
}

// y = x, as a reshape.
static void put_copy(merger_t *m, const hd_task_value_t *y,
                     const hd_value_t *value) {
  const hd_index_t *indices[HD_MAX_RANK];
  const hd_term_t *places[HD_MAX_RANK];
  for (uint32_t i = 0; i < y->rank; i++) {
    indices[i] = hd_flat_index_make(m->arena, "i", hd_flat_size(y, i));
    places[i] = hd_flat_index(m->arena, indices[i]);
  }
  const hd_definition_t *d =
      hd_flat_define(m->arena, y, indices,
                     put_access(m, hd_flat_load(m->arena, y, places), value));
  hd_vec_push(m->arena, &m->merged->flat->definitions, d);
}

// Equal tasks become equal to the letter.
static void name_indices(merger_t *m) {
  hd_task_t *flat = m->merged->flat;
  m->values = m->targets = (hd_ptr_map_t){0};
  for (size_t i = 0; i < flat->definitions.size; i++) {
    hd_definition_t *copy = HD_ARENA_NEW(m->arena, hd_definition_t);
    m->indices = (hd_ptr_map_t){0};
    m->num_indices = 0;
    *copy = *flat->definitions.data[i];
    copy->indices = fresh_indices(m, copy->indices, copy->num_indices);
    copy->term = hd_flat_rewrite(m->arena, copy->term, put_term, m);
    flat->definitions.data[i] = copy;
  }
}

bool hd_flat_merge(hd_arena_t *arena, const char *name,
                   const hd_merge_part_t *parts, size_t size,
                   const hd_value_t *const *outputs, size_t num_outputs,
                   hd_merged_t *merged) {
  *merged = (hd_merged_t){.flat = HD_ARENA_NEW(arena, hd_task_t)};
  merged->flat->name = name;
  merger_t m = {.arena = arena, .merged = merged, .fits = true};
  hd_arena_init_local(&m.maps, arena->budget);
  for (size_t i = 0; i < size; i++) {
    const hd_node_t *node = parts[i].node;
    if (!parts[i].flat)
      hd_ptr_map_set(&m.maps, &m.aliases, node->outputs[0], node->inputs[0]);
    for (uint32_t k = 0; parts[i].flat && k < node->num_outputs; k++)
      if (node->outputs[k])
        hd_ptr_map_set(&m.maps, &m.given, node->outputs[k], node->outputs[k]);
  }
  // An output is what it is a reshape of, unless that is none, or one already.
  const hd_task_value_t **copies =
      HD_ARENA_ARRAY(arena, const hd_task_value_t *, num_outputs);
  for (size_t i = 0; i < num_outputs; i++) {
    const hd_value_t *base = resolve(&m, outputs[i]);
    bool own =
        hd_ptr_map_get(&m.given, base) && !hd_ptr_map_get(&m.tensors, base);
    const hd_task_value_t *tensor =
        make_tensor(&m, own ? base : outputs[i], HD_VALUE_OUTPUT);
    if (own)
      hd_ptr_map_set(&m.maps, &m.tensors, base, tensor);
    else
      copies[i] = tensor;
  }
  for (size_t i = 0; m.fits && i < size; i++)
    put_part(&m, &parts[i]);
  for (size_t i = 0; m.fits && i < num_outputs; i++)
    if (copies[i])
      put_copy(&m, copies[i], outputs[i]);
  if (m.fits) {
    hd_flat_split_axes(arena, merged->flat);
    name_indices(&m);
  }
  hd_arena_fini(&m.maps);
  return m.fits;
}
