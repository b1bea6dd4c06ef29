// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Binds a task, in the order in which one thing needs another: types, ranks of
// packs, attributes, sizes, conditions, outputs, local tensors and ranges.
#include "Graph/Bind/BindingState.h"

#include <string.h>

bool hd_bind_fault(hd_binder_t *b, const char *format, ...) {
  if (b->quiet)
    return false;
  va_list args;
  va_start(args, format);
  const char *text = hd_arena_vprintf(b->arena, format, args);
  va_end(args);
  return hd_error(&b->context->diags, b->loc, HD_E1103, b->what, text);
}

const hd_attribute_t *hd_bind_find(const hd_binder_t *b, const char *name) {
  for (uint32_t i = 0; i < b->num_attributes; i++)
    if (strcmp(b->attributes[i]->name, name) == 0)
      return b->attributes[i];
  return NULL;
}

// Every attribute that is given names something of the task, once.
static bool check_names(hd_binder_t *b) {
  const hd_task_t *task = b->task;
  for (uint32_t i = 0; i < b->num_attributes; i++) {
    const char *name = b->attributes[i]->name;
    if (!hd_task_find_attribute(task, name) && !hd_task_find_type(task, name) &&
        !hd_task_find_pack(task, name))
      return hd_bind_fault(b, "task '%s' has no attribute '%s'", task->name,
                           name);
    if (hd_bind_find(b, name) != b->attributes[i])
      return hd_bind_fault(b, "attribute '%s' is given twice", name);
  }
  return true;
}

// --- Sizes ---

static bool set_size(hd_binder_t *b, const char *name, int64_t value,
                     int64_t *size) {
  *size = value;
  return value >= 0 ||
         hd_bind_fault(b, "size '%s' is %lld", name, (long long)value);
}

// An order that is given names each axis once.
static bool check_order(hd_binder_t *b, size_t input) {
  const hd_task_value_t *value = b->task->inputs.data[input];
  unsigned rank = b->inputs[input].rank;
  uint64_t seen = 0;
  if (!value->by || !value->by->pack)
    return true;
  const hd_bound_attribute_t *order =
      &b->values[hd_task_input_at(b->task, value->by)];
  for (unsigned i = 0; i < order->rank; i++)
    if (order->ints[i] >= 0 && order->ints[i] < rank)
      seen |= UINT64_C(1) << order->ints[i];
  return (order->rank == rank && seen == (UINT64_C(1) << rank) - 1) ||
         hd_bind_fault(b, "attribute '%s' is no order of the axes of '%s'",
                       value->by->name, value->name);
}

static int64_t found_size(const hd_binder_t *b, size_t input, unsigned axis) {
  const hd_tensor_type_t *type = &b->inputs[input];
  return type->shape[hd_binding_place(b->binding, b->task->inputs.data[input],
                                      type->rank, axis)];
}

// An axis of an input: binds what is new, and is the same where it is not.
static bool bind_axis(hd_binder_t *b, size_t input, unsigned axis,
                      const hd_term_t *term, unsigned part) {
  const hd_task_value_t *value = b->task->inputs.data[input];
  int64_t found = found_size(b, input, axis), needed;
  if (term->kind == HD_TERM_SIZE) {
    int64_t *size = &b->sizes[hd_task_size_at(b->task, term->u.size)];
    if (*size == HD_UNBOUND_SIZE)
      return set_size(b, term->u.size->name, found, size);
  }
  if (!hd_binding_extent(b->binding, term, part, &needed))
    return hd_bind_fault(b, "axis %u of input '%s' cannot be computed", axis,
                         value->name);
  return found == needed ||
         hd_bind_fault(b,
                       "axis %u of input '%s' has size %lld, and %lld is "
                       "needed",
                       axis, value->name, (long long)found, (long long)needed);
}

static bool bind_shape(hd_binder_t *b, size_t input) {
  const hd_task_value_t *value = b->task->inputs.data[input];
  unsigned axis = 0;
  if (!check_order(b, input))
    return false;
  for (uint32_t i = 0; i < value->rank; i++) {
    const hd_term_t *term = value->shape[i];
    unsigned rank = term->pack ? hd_binding_rank(b->binding, term->pack) : 1;
    hd_extents_t *pack = term->kind == HD_TERM_PACK
                             ? &b->packs[hd_task_pack_at(b->task, term->u.pack)]
                             : NULL;
    if (pack && !pack->values) {
      int64_t *values = HD_ARENA_ARRAY(b->arena, int64_t, rank + 1);
      for (unsigned n = 0; n < rank; n++)
        values[n] = found_size(b, input, axis + n);
      pack->values = values;
    }
    for (unsigned n = 0; n < rank; n++, axis++)
      if (!bind_axis(b, input, axis, term, n))
        return false;
  }
  return true;
}

// Packs that an attribute brings; after the inputs, broadcasts.
static bool bind_other_packs(hd_binder_t *b, bool broadcasts) {
  for (size_t i = 0; i < b->task->packs.size; i++) {
    const hd_pack_t *pack = b->task->packs.data[i];
    if (pack->name ? broadcasts || !pack->attribute : !broadcasts)
      continue;
    hd_term_t term = {.kind = HD_TERM_BROADCAST, .pack = pack};
    if (pack->name) {
      term.kind = HD_TERM_ATTRIBUTE;
      term.u.value = pack->attribute;
    } else {
      term.u.pack = pack;
    }
    if (!hd_binding_extents(b->binding, b->arena, &term, &b->packs[i]))
      return hd_bind_fault(b, "the inputs' shapes do not broadcast");
    for (unsigned n = 0; n < b->packs[i].rank; n++)
      if (b->packs[i].values[n] < 0)
        return hd_bind_fault(b, "size %u of pack '%s' is %lld", n, pack->name,
                             (long long)b->packs[i].values[n]);
  }
  return true;
}

static bool bind_data_sizes(hd_binder_t *b) {
  for (size_t i = 0; i < b->task->sizes.size; i++) {
    const hd_size_t *size = b->task->sizes.data[i];
    int64_t bound;
    if (!size->bound)
      continue;
    if (!hd_binding_extent(b->binding, size->bound, 0, &bound))
      return hd_bind_fault(b, "the bound of '%s' cannot be computed",
                           size->name);
    if (!set_size(b, size->name, bound, &b->sizes[i]))
      return false;
  }
  return true;
}

// --- What follows ---

static bool check_conditions(hd_binder_t *b) {
  for (size_t i = 0; i < b->task->conditions.size; i++) {
    const hd_term_t *condition = b->task->conditions.data[i];
    unsigned rank =
        condition->pack ? hd_binding_rank(b->binding, condition->pack) : 1;
    for (unsigned n = 0; n < rank; n++) {
      int64_t holds;
      if (hd_binding_extent(b->binding, condition, n, &holds) && holds)
        continue;
      hd_bind_fault(b, "a condition of task '%s' does not hold", b->task->name);
      if (b->quiet)
        return false;
      hd_note(&b->context->diags, condition->loc, "this condition");
      return false;
    }
  }
  return true;
}

static bool check_value(hd_binder_t *b, const hd_task_value_t *value) {
  int64_t shape[HD_MAX_RANK], count;
  unsigned rank = 0;
  for (uint32_t i = 0; i < value->rank; i++) {
    hd_extents_t extents;
    if (!hd_binding_extents(b->binding, b->arena, value->shape[i], &extents))
      return hd_bind_fault(b, "the shape of '%s' cannot be computed",
                           value->name);
    for (unsigned n = 0; n < extents.rank; n++, rank++) {
      if (extents.values[n] < 0)
        return hd_bind_fault(b, "axis %u of '%s' has size %lld", rank,
                             value->name, (long long)extents.values[n]);
      if (rank < HD_MAX_RANK)
        shape[rank] = extents.values[n];
    }
  }
  if (rank > HD_MAX_RANK)
    return hd_bind_fault(b, "'%s' has rank %u, and %d is the most", value->name,
                         rank, (int)HD_MAX_RANK);
  return hd_shape_count(shape, rank, &count) ||
         hd_bind_fault(b,
                       "'%s' spans more than 2^62 elements (a size of 0 counts "
                       "as 1)",
                       value->name);
}

static bool check_range(hd_binder_t *b, const hd_index_t *index) {
  hd_extents_t extents;
  if (!hd_binding_extents(b->binding, b->arena, index->range, &extents))
    return hd_bind_fault(b, "the range of '%s' cannot be computed",
                         index->name);
  for (unsigned n = 0; n < extents.rank; n++)
    if (extents.values[n] < 0)
      return hd_bind_fault(b, "the range of '%s' is %lld", index->name,
                           (long long)extents.values[n]);
  return true;
}

static bool check_term(hd_binder_t *b, const hd_term_t *term) {
  for (unsigned i = 0; i < term->num_operands; i++)
    if (!check_term(b, term->operands[i]))
      return false;
  if (term->kind != HD_TERM_REDUCE && term->kind != HD_TERM_SCAN)
    return true;
  const hd_reduction_t *r = term->u.reduction;
  for (uint32_t i = 0; i < r->num_indices; i++)
    if (!check_range(b, r->indices[i]))
      return false;
  return !r->at || check_term(b, r->at);
}

static bool check_definition(hd_binder_t *b, const hd_definition_t *d) {
  for (uint32_t i = 0; i < d->num_indices; i++)
    if (!check_range(b, d->indices[i]))
      return false;
  for (uint32_t i = 0; d->at && i < d->targets[0]->rank; i++)
    if (!check_term(b, d->at[i]))
      return false;
  int64_t places, count;
  if (d->kind == HD_SORT &&
      hd_binding_extent(b->binding, d->along->range, 0, &places) &&
      hd_binding_extent(b->binding, d->indices[d->num_indices - 1]->range, 0,
                        &count) &&
      places > count)
    return hd_bind_fault(b, "'%s' has %lld places for %lld that are sorted",
                         d->targets[0]->name, (long long)places,
                         (long long)count);
  return check_term(b, d->term);
}

static bool bind_outputs(hd_binder_t *b) {
  const hd_task_t *task = b->task;
  for (size_t i = 0; i < task->outputs.size; i++) {
    if (!check_value(b, task->outputs.data[i]))
      return false;
    b->outputs[i] = hd_binding_tensor(b->binding, task->outputs.data[i]);
  }
  for (size_t i = 0; i < task->locals.size; i++)
    if (!check_value(b, task->locals.data[i]))
      return false;
  for (size_t i = 0; i < task->definitions.size; i++)
    if (!check_definition(b, task->definitions.data[i]))
      return false;
  return true;
}

// The inputs in their places among the attributes.
static bool place_inputs(hd_binder_t *b, const hd_tensor_type_t *inputs,
                         uint32_t num_inputs) {
  uint32_t count = 0;
  for (size_t i = 0; i < b->task->inputs.size; i++) {
    if (b->task->inputs.data[i]->kind != HD_VALUE_INPUT)
      continue;
    if (count < num_inputs)
      b->inputs[i] = inputs[count];
    count++;
  }
  return count == num_inputs ||
         hd_bind_fault(b, "task '%s' has %u inputs, found %u", b->task->name,
                       count, num_inputs);
}

static bool bind_all(hd_binder_t *b) {
  const hd_task_t *task = b->task;
  if (!check_names(b) || !hd_bind_types(b) || !hd_bind_ranks(b))
    return false;
  for (size_t i = 0; i < task->inputs.size; i++)
    if (task->inputs.data[i]->kind == HD_VALUE_ATTRIBUTE &&
        !hd_bind_attribute(b, i))
      return false;
  for (size_t i = 0; i < task->sizes.size; i++)
    b->sizes[i] = HD_UNBOUND_SIZE;
  if (!bind_other_packs(b, false))
    return false;
  for (size_t i = 0; i < task->inputs.size; i++)
    if (task->inputs.data[i]->kind == HD_VALUE_INPUT && !bind_shape(b, i))
      return false;
  return bind_other_packs(b, true) && bind_data_sizes(b) &&
         check_conditions(b) && bind_outputs(b) && hd_bind_bounds(b);
}

static hd_binder_t begin(hd_context_t *context, hd_arena_t *arena,
                         const hd_task_t *task,
                         const hd_attribute_t *const *attributes,
                         uint32_t num_attributes) {
  hd_binder_t b = {
      .context = context,
      .arena = arena,
      .task = task,
      .what = task->name,
      .attributes = attributes,
      .num_attributes = num_attributes,
      .binding = HD_ARENA_NEW(arena, hd_task_binding_t),
      .types = HD_ARENA_ARRAY(arena, hd_scalar_t, task->types.size),
      .sizes = HD_ARENA_ARRAY(arena, int64_t, task->sizes.size),
      .packs = HD_ARENA_ARRAY(arena, hd_extents_t, task->packs.size),
      .inputs = HD_ARENA_ARRAY(arena, hd_tensor_type_t, task->inputs.size),
      .outputs = HD_ARENA_ARRAY(arena, hd_tensor_type_t, task->outputs.size),
      .values = HD_ARENA_ARRAY(arena, hd_bound_attribute_t, task->inputs.size),
  };
  *b.binding = (hd_task_binding_t){
      .task = task,
      .types = b.types,
      .sizes = b.sizes,
      .packs = b.packs,
      .inputs = b.inputs,
      .attributes = b.values,
      .outputs = b.outputs,
  };
  return b;
}

const hd_task_binding_t *
hd_task_bind(hd_context_t *context, hd_arena_t *arena, const hd_task_t *task,
             const hd_tensor_type_t *inputs, uint32_t num_inputs,
             const hd_attribute_t *const *attributes, uint32_t num_attributes,
             hd_loc_t loc, const char *what) {
  hd_binder_t b = begin(context, arena, task, attributes, num_attributes);
  b.loc = loc;
  b.what = what ? what : task->name;
  return place_inputs(&b, inputs, num_inputs) && bind_all(&b) ? b.binding
                                                              : NULL;
}

const hd_task_binding_t *
hd_task_try_bind(hd_context_t *context, hd_arena_t *arena,
                 const hd_task_t *task, const hd_tensor_type_t *inputs,
                 const hd_host_tensor_t *const *known, uint32_t num_inputs,
                 const hd_attribute_t *const *attributes,
                 uint32_t num_attributes) {
  hd_binder_t b = begin(context, arena, task, attributes, num_attributes);
  b.quiet = true;
  if (known) {
    b.known =
        HD_ARENA_ARRAY(arena, const hd_host_tensor_t *, task->inputs.size + 1);
    uint32_t count = 0;
    for (size_t i = 0; i < task->inputs.size && count < num_inputs; i++)
      if (task->inputs.data[i]->kind == HD_VALUE_INPUT)
        b.known[i] = known[count++];
    b.binding->known = b.known;
  }
  return place_inputs(&b, inputs, num_inputs) && bind_all(&b) ? b.binding
                                                              : NULL;
}

bool hd_tensor_type_equal(const hd_tensor_type_t *a,
                          const hd_tensor_type_t *b) {
  return a->type == b->type && a->rank == b->rank &&
         memcmp(a->shape, b->shape, a->rank * sizeof a->shape[0]) == 0;
}
