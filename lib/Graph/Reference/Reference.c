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
  hd_reference_made_t made; // NULL: nobody is told.
  void *argument;
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

// The axis where a scan of the tree stands: its table serves all of that axis,
// if that one moves before what the table depends on.
static int scanned_level(const hd_ref_node_t *node) {
  if (node->kind == HD_TERM_SCAN)
    return node->u.fold->at->kind == HD_TERM_INDEX
               ? (int)node->u.fold->at->u.level
               : HD_REF_NO_LEVEL;
  int level = HD_REF_NO_LEVEL;
  for (unsigned i = 0; i < node->num_operands && level < 0; i++)
    level = scanned_level(node->operands[i]);
  return level;
}

// The number of the point where the first levels stand.
static int64_t point_of(const hd_ref_t *r, unsigned num_levels) {
  int64_t point = 0;
  for (unsigned i = 0; i < num_levels; i++)
    point = point * r->levels[i].extent + r->levels[i].at;
  return point;
}

static bool define(evaluation_t *e, hd_ref_t *r) {
  const hd_definition_t *d = e->definition;
  unsigned num_levels = r->num_levels; // The tree's reductions add theirs.
  hd_host_tensor_t **targets =
      HD_ARENA_ARRAY(r->arena, hd_host_tensor_t *, d->num_targets);
  for (uint32_t i = 0; i < d->num_targets; i++) {
    targets[i] = tensor_of(e, d->targets[i]);
    if (!make_tensor(e, d->targets[i]))
      return false;
  }
  const hd_ref_node_t *root = hd_ref_build(r, d->term, 0);
  if (!root)
    return false;
  int innermost = scanned_level(root);
  if (!hd_ref_start(r, 0, num_levels))
    return true;
  do {
    hd_number_t value;
    hd_ref_check_budget(r);
    if (!hd_ref_value(r, root, &value))
      return false;
    int64_t point = point_of(r, num_levels);
    for (uint32_t i = 0; i < d->num_targets; i++)
      hd_ref_set(targets[i], point,
                 d->num_targets > 1 ? root->u.fold->sums[i] : value);
  } while (hd_ref_advance(r, 0, num_levels, innermost));
  return true;
}

// --- Sizes ---

static bool define_size(evaluation_t *e, hd_ref_t *r) {
  const hd_size_t *size = e->definition->size;
  const hd_ref_node_t *root = hd_ref_build(r, e->definition->term, 0);
  hd_number_t value;
  if (!root || !hd_ref_value(r, root, &value))
    return false;
  size_t i = 0;
  while (e->task->sizes.data[i] != size)
    i++;
  int64_t bound = e->sizes[i];
  e->sizes[i] = value.i;
  return (value.i >= 0 && value.i <= bound) ||
         hd_error(&e->context->diags, e->loc, HD_E1103, e->task->name,
                  hd_arena_printf(
                      &e->arena, "size '%s' is %lld, outside of 0 .. %lld",
                      size->name, (long long)value.i, (long long)bound));
}

// --- Scatters ---

typedef struct scatter {
  hd_host_tensor_t *target;
  hd_ref_access_t *at;
  hd_ref_node_t *value;
  hd_ref_fold_t *fold; // Of duplicates that are combined.
  unsigned char *met;  // Of those whose first value stays.
} scatter_t;

// Puts the value of the point where the levels stand.
static bool scatter_one(evaluation_t *e, hd_ref_t *r, scatter_t *s) {
  const hd_definition_t *d = e->definition;
  int64_t place;
  hd_number_t value;
  if (!hd_ref_place(r, s->at, &place))
    return false;
  if (place < 0)
    return d->drops || hd_ref_report_outside(r, s->at, "written");
  if (!hd_ref_value(r, s->value, &value))
    return false;
  switch (d->duplicates) {
  case HD_DUPLICATES_COMBINE: {
    hd_number_t before = hd_ref_get(s->target, place);
    if (!hd_ref_combine(r, s->fold, &before, &value))
      return false;
    value = s->fold->sums[0];
    break;
  }
  case HD_DUPLICATES_FIRST:
    if (s->met[place])
      return true;
    s->met[place] = 1;
    break;
  case HD_DUPLICATES_LAST:
    break;
  }
  hd_ref_set(s->target, place, value);
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
  hd_number_t identity;
  if (!hd_ref_value(r, s->fold->identities[0], &identity))
    return false;
  for (int64_t i = 0; i < s->target->count; i++)
    hd_ref_set(s->target, i, identity);
  return true;
}

static bool scatter(evaluation_t *e, hd_ref_t *r) {
  const hd_definition_t *d = e->definition;
  unsigned num_levels = r->num_levels;
  if (!make_tensor(e, d->targets[0]))
    return false;
  scatter_t s = {.target = tensor_of(e, d->targets[0])};
  s.at = hd_ref_build_access(r, d->targets[0], d->at);
  s.value = hd_ref_build(r, d->term, 0);
  if (!s.at || !s.value)
    return false;
  if (d->duplicates == HD_DUPLICATES_COMBINE &&
      !(s.fold = hd_ref_build_monoid(r, d->monoid, s.target->type)))
    return false;
  if (d->duplicates == HD_DUPLICATES_FIRST)
    s.met = hd_arena_alloc(r->arena, (size_t)s.target->count);
  if (!begin_target(e, r, &s))
    return false;
  if (!hd_ref_start(r, 0, num_levels))
    return true;
  do {
    hd_ref_check_budget(r);
    if (!scatter_one(e, r, &s))
      return false;
  } while (hd_ref_advance(r, 0, num_levels, HD_REF_NO_LEVEL));
  return true;
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
    case HD_SORT:
      ok = make_tensor(e, d->targets[0]) &&
           hd_ref_sort(r, d, tensor_of(e, d->targets[0]));
      break;
    }
  hd_arena_fini(&arena);
  for (uint32_t i = 0; ok && e->made && i < d->num_targets; i++)
    e->made(e->argument, d, d->targets[i], tensor_of(e, d->targets[i]));
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
  return hd_task_evaluate_telling(context, binding, inputs, outputs, loc, NULL,
                                  NULL);
}

bool hd_task_evaluate_telling(hd_context_t *context,
                              const hd_task_binding_t *binding,
                              const hd_host_tensor_t *const *inputs,
                              hd_host_tensor_t *outputs, hd_loc_t loc,
                              hd_reference_made_t made, void *argument) {
  const hd_task_t *task = binding->task;
  size_t num_inputs = task->inputs.size, num_outputs = task->outputs.size;
  evaluation_t e = {.context = context,
                    .task = task,
                    .binding = *binding,
                    .loc = loc,
                    .outputs = outputs,
                    .made = made,
                    .argument = argument};
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

enum { MAX_SMALL = 4096, FEW_BYTES = 16 };

// Saturates.
static int64_t count_of(const hd_tensor_type_t *type) {
  int64_t count = 1;
  for (unsigned i = 0; i < type->rank; i++)
    if (__builtin_mul_overflow(count, type->shape[i], &count))
      count = INT64_MAX;
  return count;
}

bool hd_task_is_small(const hd_tensor_type_t *inputs, unsigned num_inputs,
                      const hd_tensor_type_t *outputs, unsigned num_outputs) {
  bool is_small = true, widens = false;
  int64_t bytes = FEW_BYTES; // Elements of bytes, the most of an input.
  for (unsigned i = 0; i < num_inputs; i++) {
    int64_t count = count_of(&inputs[i]);
    is_small &= count <= MAX_SMALL;
    if (hd_type_is_integer(hd_type(inputs[i].type)) &&
        hd_scalar_bits(inputs[i].type) <= 8 && count > bytes)
      bytes = count;
  }
  for (unsigned i = 0; i < num_outputs; i++) {
    int64_t count = count_of(&outputs[i]);
    is_small &= count <= MAX_SMALL;
    widens |= bytes > FEW_BYTES && count >= bytes &&
              hd_scalar_bits(outputs[i].type) > 8;
  }
  return is_small && !widens;
}

// --- Constants ---

typedef struct folded {
  hd_host_tensor_t *results;
  size_t count;
} folded_t;

static void end_folded(void *argument) {
  folded_t *f = argument;
  for (size_t i = 0; i < f->count; i++)
    hd_host_tensor_fini(&f->results[i]);
}

hd_host_tensor_t *const *hd_task_fold(hd_context_t *context, hd_arena_t *arena,
                                      const hd_task_binding_t *binding,
                                      const hd_host_tensor_t *const *inputs,
                                      hd_loc_t loc) {
  folded_t f = {.count = binding->task->outputs.size};
  f.results = HD_ARENA_ARRAY(arena, hd_host_tensor_t, f.count + 1);
  hd_host_tensor_t **made =
      HD_ARENA_ARRAY(arena, hd_host_tensor_t *, f.count + 1);
  if (!hd_task_evaluate(context, binding, inputs, f.results, loc)) {
    end_folded(&f);
    return NULL;
  }
  hd_cleanup_t cleanup;
  hd_budget_defer(&context->budget, &cleanup, end_folded, &f);
  for (size_t i = 0; i < f.count; i++) {
    const hd_host_tensor_t *result = &f.results[i];
    made[i] =
        hd_host_tensor_make(arena, result->type, result->shape, result->rank);
    memcpy(made[i]->data, result->data, made[i]->bytes);
  }
  hd_budget_clean(&context->budget, &cleanup);
  return made;
}
