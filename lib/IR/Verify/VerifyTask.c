// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules of tasks: each definition reads what is known before it, each
// output and each size that data decides is defined once, every index is bound,
// ranks, packs and types fit.
#include "IR/Verify/TaskVerifier.h"

static bool is_bool(hd_task_type_t type) {
  return !type.var && type.scalar == HD_BOOL;
}

static void verify_value(hd_task_verifier_t *v, const hd_task_value_t *value) {
  if (value->rank > HD_MAX_RANK) {
    hd_error(v->diags, value->loc, HD_E0307, "the rank of a tensor", 0LL,
             (long long)HD_MAX_RANK, (long long)value->rank);
    v->errors++;
  }
  for (uint32_t i = 0; i < value->rank; i++) {
    const hd_term_t *axis = value->shape[i];
    hd_verify_extent(v, axis, "a dimension");
    if (axis->kind == HD_TERM_SIZE && axis->u.size->bound)
      hd_verify_extent(v, axis->u.size->bound, "a bound");
  }
  const char *why = value->kind == HD_VALUE_INPUT ? hd_task_order_fault(value)
                    : value->by ? "is for tensors that are read"
                                : NULL;
  if (why)
    hd_task_fault(v, value->loc, "'%s', the order of the axes of '%s', %s",
                  value->by->name, value->name, why);
  if (value->initial) {
    hd_verify_term(v, value->initial);
    hd_expect_type(v, value->initial, value->type);
    if (value->initial->kind != HD_TERM_CONST)
      hd_task_fault(v, value->initial->loc, "a default is a constant");
  }
}

static void verify_monoid(hd_task_verifier_t *v, const hd_monoid_t *monoid) {
  v->monoid = monoid;
  for (uint32_t i = 0; i < monoid->size; i++) {
    hd_task_type_t type = monoid->left[i]->type;
    if (!hd_task_type_equal(type, monoid->right[i]->type))
      hd_task_fault(v, monoid->loc, "the two sides of '%s' differ in type",
                    monoid->name);
    v->in_identity = true;
    hd_verify_term(v, monoid->identity[i]);
    v->in_identity = false;
    hd_verify_term(v, monoid->result[i]);
    hd_expect_type(v, monoid->identity[i], type);
    hd_expect_type(v, monoid->result[i], type);
  }
  v->monoid = NULL;
}

static void define(hd_task_verifier_t *v, const hd_task_value_t *value,
                   hd_loc_t loc) {
  if (value->kind != HD_VALUE_OUTPUT && value->kind != HD_VALUE_LOCAL)
    hd_task_fault(v, loc, "'%s' is read alone", value->name);
  else if (hd_task_is_defined(v, value))
    hd_task_fault(v, loc, "'%s' is defined already", value->name);
  hd_vec_push(&v->arena, &v->defined, value);
}

static void verify_targets(hd_task_verifier_t *v, const hd_definition_t *d) {
  bool is_tuple = d->num_targets > 1;
  bool reduces =
      d->term->kind == HD_TERM_REDUCE || d->term->kind == HD_TERM_SCAN;
  unsigned components = reduces ? d->term->num_operands : 1;
  if (components != d->num_targets) {
    hd_error(v->diags, d->loc, HD_E0206, "the definition", (int)components,
             components == 1 ? "tensor" : "tensors", (int)d->num_targets);
    v->errors++;
    return;
  }
  for (uint32_t i = 0; i < d->num_targets; i++) {
    const hd_task_value_t *target = d->targets[i];
    hd_expect_type(v, is_tuple ? d->term->operands[i] : d->term, target->type);
    bool same = target->rank == d->num_indices;
    for (uint32_t n = 0; same && n < d->num_indices; n++)
      same = hd_term_equal(target->shape[n], d->indices[n]->range);
    if (!same)
      hd_task_fault(v, d->loc, "the indices do not run over the shape of '%s'",
                    target->name);
  }
}

static void verify_scatter(hd_task_verifier_t *v, const hd_definition_t *d) {
  const hd_task_value_t *target = d->targets[0];
  for (uint32_t i = 0; i < target->rank; i++) {
    hd_verify_term(v, d->at[i]);
    if (target->shape[i]->kind == HD_TERM_SIZE)
      hd_verify_data_size(v, target->shape[i]);
  }
  hd_verify_axes(v, target, d->at, target->rank, d->loc);
  hd_expect_type(v, d->term, target->type);
  if (!d->onto && d->duplicates != HD_DUPLICATES_COMBINE)
    hd_task_fault(v, d->loc, "what is not met needs a value: 'onto'");
  if (d->duplicates == HD_DUPLICATES_COMBINE &&
      (d->monoid->builtin == HD_MONOID_COUNT
           ? d->monoid->size != 1 || d->monoid->in_order
           : !hd_task_op_is_defined(hd_monoid_operator(d->monoid->builtin),
                                    target->type)))
    hd_task_fault(v, d->loc, "'%s' does not combine values of type %s",
                  d->monoid->name, hd_task_type_name(target->type));
  if (!d->onto)
    return;
  hd_expect_defined(v, d->onto, d->loc);
  bool same = d->onto->rank == target->rank &&
              hd_task_type_equal(d->onto->type, target->type);
  for (uint32_t i = 0; same && i < target->rank; i++)
    same = hd_term_equal(d->onto->shape[i], target->shape[i]);
  if (!same)
    hd_task_fault(v, d->loc, "'%s' has not the type and shape of '%s'",
                  d->onto->name, target->name);
}

static bool uses_index(const hd_term_t *term, const hd_index_t *index) {
  if (term->kind == HD_TERM_INDEX && term->u.index == index)
    return true;
  for (unsigned i = 0; i < term->num_operands; i++)
    if (uses_index(term->operands[i], index))
      return true;
  return (term->kind == HD_TERM_SCAN &&
          uses_index(term->u.reduction->at, index));
}

static void verify_sort(hd_task_verifier_t *v, const hd_definition_t *d) {
  const hd_task_value_t *target = d->targets[0];
  uint32_t own = d->num_indices - 1;
  bool same = d->num_targets == 1 && target->rank == own, is_own = false;
  for (uint32_t n = 0; same && n < own; n++) {
    same = hd_term_equal(target->shape[n], d->indices[n]->range);
    is_own |= d->indices[n] == d->along;
  }
  if (!same || !is_own)
    hd_task_fault(v, d->loc, "the indices do not run over the shape of '%s'",
                  target->name);
  if (!hd_task_type_equal(target->type, (hd_task_type_t){HD_I64, NULL}))
    hd_task_fault(v, d->loc, "'%s' is to hold indices, which are i64",
                  target->name);
  if (!hd_task_op_is_defined(HD_EXPR_LT, d->term->type))
    hd_task_fault(v, d->term->loc, "values of type %s have no order",
                  hd_task_type_name(d->term->type));
  if (uses_index(d->term, d->along))
    hd_task_fault(v, d->term->loc, "what is sorted depends on '%s', its place",
                  d->along->name);
}

static void verify_definition(hd_task_verifier_t *v, const hd_definition_t *d) {
  v->indices.size = 0;
  hd_verify_ranges(v, d->indices, d->num_indices);
  hd_verify_term(v, d->term);
  hd_expect_single(v, d->term);
  switch (d->kind) {
  case HD_DEFINE:
    verify_targets(v, d);
    break;
  case HD_SCATTER:
    verify_scatter(v, d);
    break;
  case HD_SORT:
    verify_sort(v, d);
    break;
  case HD_DEFINE_SIZE:
    hd_expect_i64(v, d->term);
    for (size_t i = 0; i < v->sizes.size; i++)
      if (v->sizes.data[i] == d->size)
        hd_task_fault(v, d->loc, "'%s' is defined already", d->size->name);
    hd_vec_push(&v->arena, &v->sizes, d->size);
    break;
  }
  for (uint32_t i = 0; i < d->num_targets; i++)
    define(v, d->targets[i], d->loc);
}

static void verify_completeness(hd_task_verifier_t *v) {
  const hd_task_t *task = v->task;
  if (task->outputs.size == 0)
    hd_task_fault(v, task->loc, "a task has an output");
  for (size_t i = 0; i < task->outputs.size; i++)
    if (!hd_task_is_defined(v, task->outputs.data[i]))
      hd_task_fault(v, task->outputs.data[i]->loc, "'%s' is never defined",
                    task->outputs.data[i]->name);
  for (size_t i = 0; i < task->sizes.size; i++) {
    const hd_size_t *size = task->sizes.data[i];
    bool found = !size->bound;
    for (size_t n = 0; n < v->sizes.size; n++)
      found |= v->sizes.data[n] == size;
    if (!found)
      hd_task_fault(v, size->loc, "the size '%s' is never defined", size->name);
  }
}

bool hd_task_verify(hd_context_t *context, const hd_task_t *task) {
  hd_task_verifier_t v = {.diags = &context->diags, .task = task};
  hd_arena_init_local(&v.arena, &context->budget);
  for (size_t i = 0; i < task->inputs.size; i++)
    verify_value(&v, task->inputs.data[i]);
  for (size_t i = 0; i < task->outputs.size; i++)
    verify_value(&v, task->outputs.data[i]);
  for (size_t i = 0; i < task->conditions.size; i++) {
    const hd_term_t *condition = task->conditions.data[i];
    hd_verify_term(&v, condition);
    if (!is_bool(condition->type) || !hd_term_is_shape(condition))
      hd_task_fault(&v, condition->loc,
                    "a condition is a bool over sizes and attributes");
  }
  for (size_t i = 0; i < task->monoids.size; i++)
    verify_monoid(&v, task->monoids.data[i]);
  v.in_definitions = true;
  for (size_t i = 0; i < task->definitions.size; i++)
    verify_definition(&v, task->definitions.data[i]);
  verify_completeness(&v);
  hd_arena_fini(&v.arena);
  return v.errors == 0;
}
