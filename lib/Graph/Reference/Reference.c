// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goes through a task's definitions: makes the tensors, runs each definition's
// tree over its domain, and puts the results where they belong.
#include "Graph/Reference/ReferenceState.h"

#include <string.h>

typedef struct evaluation {
  hd_context_t *context;
  const hd_task_t *task;
  hd_task_binding_t binding; // A copy, whose sizes the data decides.
  int64_t *sizes;
  hd_loc_t loc;
  hd_arena_t arena;
  hd_host_tensor_t *outputs, *locals;
  const hd_host_tensor_t **tensors; // Inputs, outputs, locals.
  const hd_definition_t *definition;
} evaluation_t;

static hd_host_tensor_t *tensor_of(evaluation_t *e,
                                   const hd_task_value_t *value) {
  size_t i = hd_ref_tensor_at(e->task, value) - e->task->inputs.size;
  return i < e->task->outputs.size ? &e->outputs[i]
                                   : &e->locals[i - e->task->outputs.size];
}

static bool make_tensor(evaluation_t *e, const hd_task_value_t *value) {
  hd_tensor_type_t type = hd_binding_tensor(&e->binding, value);
  return hd_host_tensor_init(tensor_of(e, value), &e->context->diags,
                             &e->context->budget, value->name, type.type,
                             type.shape, type.rank);
}

// --- Definitions of elements ---

static void strides_of(const hd_host_tensor_t *tensor, int64_t *strides) {
  int64_t stride = 1;
  for (unsigned i = tensor->rank; i-- > 0;) {
    strides[i] = stride;
    stride *= tensor->shape[i];
  }
}

// Stores what the tree's root gave for the strip at hand.
static void store(evaluation_t *e, hd_ref_t *r, hd_ref_node_t *root,
                  const int64_t *strides, unsigned num_levels) {
  const hd_definition_t *d = e->definition;
  int64_t first = 0;
  for (unsigned i = 0; i < num_levels; i++)
    first += r->levels[i].at * strides[i];
  int64_t step = r->lane_level < 0 ? 0 : strides[r->lane_level];
  for (uint32_t i = 0; i < d->num_targets; i++) {
    hd_ref_lanes_t values =
        d->num_targets > 1 ? root->u.fold->sums[i] : root->out;
    hd_ref_write(tensor_of(e, d->targets[i]), first, step, r->num_lanes, values,
                 root->varies);
  }
}

typedef bool (*strip_fn_t)(evaluation_t *e, hd_ref_t *r, void *argument);

// Calls strip for all of the domain, a strip of lanes at a time.
static bool each_strip(evaluation_t *e, hd_ref_t *r, unsigned num_levels,
                       int lane_level, strip_fn_t strip, void *argument) {
  if (!hd_ref_start(r, 0, num_levels))
    return true;
  int64_t extent = lane_level < 0 ? 1 : r->levels[lane_level].extent;
  r->lane_level = lane_level;
  do {
    for (int64_t at = 0; at < extent; at += HD_REF_LANES) {
      hd_ref_check_budget(r);
      r->num_lanes =
          extent - at < HD_REF_LANES ? (int)(extent - at) : HD_REF_LANES;
      if (lane_level >= 0 && r->levels[lane_level].at != at)
        hd_ref_move(r, (unsigned)lane_level, at);
      if (!strip(e, r, argument))
        return false;
    }
  } while (hd_ref_advance(r, 0, num_levels, lane_level));
  return true;
}

typedef struct elements {
  hd_ref_node_t *root;
  unsigned num_levels;
  int64_t strides[HD_MAX_RANK];
} elements_t;

static bool define_strip(evaluation_t *e, hd_ref_t *r, void *argument) {
  elements_t *elements = argument;
  if (!hd_ref_run(r, elements->root, NULL))
    return false;
  store(e, r, elements->root, elements->strides, elements->num_levels);
  return true;
}

static bool define(evaluation_t *e, hd_ref_t *r) {
  const hd_definition_t *d = e->definition;
  elements_t elements = {.num_levels = r->num_levels};
  for (uint32_t i = 0; i < d->num_targets; i++)
    if (!make_tensor(e, d->targets[i]))
      return false;
  strides_of(tensor_of(e, d->targets[0]), elements.strides);
  elements.root = hd_ref_build(r, d->term, 0);
  if (!elements.root)
    return false;
  int lane_level = hd_ref_choose(r, elements.root, elements.num_levels);
  hd_ref_place(r, elements.root, lane_level);
  return each_strip(e, r, elements.num_levels, lane_level, define_strip,
                    &elements);
}

// --- Sizes ---

static bool define_size(evaluation_t *e, hd_ref_t *r) {
  const hd_size_t *size = e->definition->size;
  hd_ref_node_t *root = hd_ref_build(r, e->definition->term, 0);
  if (!root)
    return false;
  hd_ref_place(r, root, HD_REF_NO_LEVEL);
  if (!hd_ref_run(r, root, NULL))
    return false;
  size_t i = 0;
  while (e->task->sizes.data[i] != size)
    i++;
  int64_t value = root->out.i[0], bound = e->sizes[i];
  e->sizes[i] = value;
  return (value >= 0 && value <= bound) ||
         hd_error(&e->context->diags, e->loc, HD_E1103, e->task->name,
                  hd_arena_printf(
                      &e->arena, "size '%s' is %lld, outside of 0 .. %lld",
                      size->name, (long long)value, (long long)bound));
}

// --- Scatters ---

typedef struct scatter {
  hd_host_tensor_t *target;
  const char *name;
  bool drops;
  unsigned rank;
  hd_ref_node_t **at, *value;
  hd_ref_fold_t *fold; // Of duplicates that are combined.
  int64_t strides[HD_MAX_RANK];
  unsigned char *met; // Of those whose first value stays.
} scatter_t;

static bool report_outside(hd_ref_t *r, const scatter_t *s, int lane) {
  int64_t at[HD_MAX_RANK];
  char index[HD_MAX_RANK * 24], shape[HD_MAX_RANK * 24];
  for (unsigned n = 0; n < s->rank; n++)
    at[n] = s->at[n]->out.i[s->at[n]->varies ? lane : 0];
  hd_shape_text(at, s->rank, index, sizeof index);
  hd_shape_text(s->target->shape, s->rank, shape, sizeof shape);
  return hd_error(
      &r->context->diags, r->loc, HD_E1103, r->binding->task->name,
      hd_arena_printf(r->arena,
                      "'%s' is written at %s, outside of its shape %s", s->name,
                      index, shape));
}

// The elements that the lanes go to, and which of them lie inside of the
// target.
static bool find_places(hd_ref_t *r, scatter_t *s, int64_t *places,
                        uint8_t *inside) {
  memset(places, 0, sizeof *places * HD_REF_LANES);
  memset(inside, 1, HD_REF_LANES);
  for (unsigned n = 0; n < s->rank; n++) {
    const hd_ref_node_t *at = s->at[n];
    if (!hd_ref_run(r, s->at[n], NULL))
      return false;
    for (int i = 0; i < r->num_lanes; i++) {
      int64_t index = at->out.i[at->varies ? i : 0];
      bool is_inside = index >= 0 && index < s->target->shape[n];
      inside[i] &= is_inside;
      places[i] += is_inside ? index * s->strides[n] : 0;
    }
  }
  for (int i = 0; i < r->num_lanes && !s->drops; i++)
    if (!inside[i])
      return report_outside(r, s, i);
  return true;
}

static bool scatter_one(evaluation_t *e, hd_ref_t *r, scatter_t *s,
                        int64_t place, hd_ref_lanes_t value) {
  switch (e->definition->duplicates) {
  case HD_DUPLICATES_COMBINE:
    hd_ref_read(s->target, place, 0, 1, s->fold->sums[0]);
    if (!hd_ref_combine(r, s->fold, value))
      return false;
    value = s->fold->sums[0];
    break;
  case HD_DUPLICATES_FIRST:
    if (s->met[place])
      return true;
    s->met[place] = 1;
    break;
  case HD_DUPLICATES_LAST:
    break;
  }
  hd_ref_write(s->target, place, 0, 1, value, false);
  return true;
}

static bool scatter_strip(evaluation_t *e, hd_ref_t *r, void *argument) {
  scatter_t *s = argument;
  int64_t places[HD_REF_LANES];
  uint8_t inside[HD_REF_LANES];
  if (!find_places(r, s, places, inside))
    return false;
  int count = 0;
  for (int i = 0; i < r->num_lanes; i++)
    count += inside[i];
  if (count == 0)
    return true;
  if (!hd_ref_run(r, s->value, count == r->num_lanes ? NULL : inside))
    return false;
  for (int i = 0; i < r->num_lanes; i++)
    if (inside[i] &&
        !scatter_one(e, r, s, places[i],
                     hd_ref_lane(s->value->out, (hd_ref_form_t)s->value->form,
                                 s->value->varies ? (size_t)i : 0)))
      return false;
  return true;
}

// What the elements are that are not met.
static bool begin_target(evaluation_t *e, hd_ref_t *r, scatter_t *s) {
  const hd_definition_t *d = e->definition;
  if (d->onto) {
    const hd_host_tensor_t *onto =
        e->tensors[hd_ref_tensor_at(e->task, d->onto)];
    memcpy(s->target->data, onto->data, s->target->bytes);
    return true;
  }
  hd_ref_node_t *identity = s->fold->identities[0];
  if (!hd_ref_run(r, identity, NULL))
    return false;
  for (int64_t i = 0; i < s->target->count; i++)
    hd_ref_write(s->target, i, 0, 1, identity->out, false);
  return true;
}

static bool scatter(evaluation_t *e, hd_ref_t *r) {
  const hd_definition_t *d = e->definition;
  unsigned num_levels = r->num_levels;
  int lane_level = HD_REF_NO_LEVEL; // In order, so the last one.
  for (unsigned i = 0; i < num_levels; i++)
    if (r->levels[i].extent > 1)
      lane_level = (int)i;
  if (!make_tensor(e, d->targets[0]))
    return false;
  scatter_t s = {.target = tensor_of(e, d->targets[0]),
                 .name = d->targets[0]->name,
                 .drops = d->drops};
  strides_of(s.target, s.strides);
  s.at = hd_ref_build_indices(r, d->targets[0], d->at, &s.rank);
  s.value = hd_ref_build(r, d->term, 0);
  if (!s.at || !s.value)
    return false;
  for (unsigned i = 0; i < s.rank; i++)
    hd_ref_place(r, s.at[i], lane_level);
  hd_ref_place(r, s.value, lane_level);
  if (d->duplicates == HD_DUPLICATES_COMBINE) {
    s.fold = hd_ref_build_monoid(r, d->monoid, s.target->type);
    if (!s.fold)
      return false;
    hd_ref_place_monoid(r, s.fold, HD_REF_NO_LEVEL);
  } else if (d->duplicates == HD_DUPLICATES_FIRST) {
    s.met = hd_arena_alloc(r->arena, (size_t)s.target->count);
  }
  return begin_target(e, r, &s) &&
         each_strip(e, r, num_levels, lane_level, scatter_strip, &s);
}

// --- All of them ---

static bool run_definition(evaluation_t *e, const hd_definition_t *d) {
  hd_arena_t arena;
  hd_arena_init_local(&arena, &e->context->budget);
  hd_ref_t *r = HD_ARENA_NEW(&arena, hd_ref_t);
  r->context = e->context;
  r->binding = &e->binding;
  r->loc = e->loc;
  r->arena = &arena;
  r->tensors = e->tensors;
  r->lane_level = HD_REF_NO_LEVEL;
  r->num_lanes = 1;
  r->clock = 1;
  e->definition = d;
  bool ok = true;
  for (uint32_t i = 0; ok && i < d->num_indices; i++)
    ok = hd_ref_add_index(r, d->indices[i]);
  if (ok)
    switch (d->kind) {
    case HD_DEFINE:
      ok = define(e, r);
      break;
    case HD_SCATTER:
      ok = scatter(e, r);
      break;
    case HD_DEFINE_SIZE:
      ok = define_size(e, r);
      break;
    }
  hd_arena_fini(&arena);
  return ok;
}

static void end_locals(evaluation_t *e) {
  for (size_t i = 0; i < e->task->locals.size; i++)
    hd_host_tensor_fini(&e->locals[i]);
}

static void end_outputs(evaluation_t *e) {
  for (size_t i = 0; i < e->task->outputs.size; i++)
    hd_host_tensor_fini(&e->outputs[i]);
}

static void end_all(void *argument) {
  end_locals(argument);
  end_outputs(argument);
}

bool hd_task_evaluate(hd_context_t *context, const hd_task_binding_t *binding,
                      const hd_host_tensor_t *const *inputs,
                      hd_host_tensor_t *outputs, hd_loc_t loc) {
  const hd_task_t *task = binding->task;
  size_t num_inputs = task->inputs.size, num_outputs = task->outputs.size;
  evaluation_t e = {.context = context,
                    .task = task,
                    .binding = *binding,
                    .loc = loc,
                    .outputs = outputs};
  memset(outputs, 0, num_outputs * sizeof *outputs);
  hd_arena_init_local(&e.arena, &context->budget);
  e.sizes = HD_ARENA_ARRAY(&e.arena, int64_t, task->sizes.size + 1);
  if (task->sizes.size)
    memcpy(e.sizes, binding->sizes, task->sizes.size * sizeof *e.sizes);
  e.binding.sizes = e.sizes;
  e.locals = HD_ARENA_ARRAY(&e.arena, hd_host_tensor_t, task->locals.size + 1);
  e.tensors = HD_ARENA_ARRAY(&e.arena, const hd_host_tensor_t *,
                             num_inputs + num_outputs + task->locals.size);
  for (size_t i = 0; i < num_inputs; i++)
    if (task->inputs.data[i]->kind == HD_VALUE_INPUT)
      e.tensors[i] = *inputs++;
  for (size_t i = 0; i < num_outputs; i++)
    e.tensors[num_inputs + i] = &outputs[i];
  for (size_t i = 0; i < task->locals.size; i++)
    e.tensors[num_inputs + num_outputs + i] = &e.locals[i];
  hd_cleanup_t cleanup;
  hd_budget_defer(&context->budget, &cleanup, end_all, &e);
  bool ok = true;
  for (size_t i = 0; ok && i < task->definitions.size; i++)
    ok = run_definition(&e, task->definitions.data[i]);
  hd_budget_keep(&context->budget, &cleanup);
  end_locals(&e);
  if (!ok)
    end_outputs(&e);
  hd_arena_fini(&e.arena);
  return ok;
}
