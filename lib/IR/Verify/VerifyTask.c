// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules of tasks: each definition reads what is known before it, each
// output and each size that data decides is defined once, every index is bound,
// ranks, packs and types fit.
#include "IR/Graph/Task.h"

typedef struct task_verifier {
  hd_diagnostics_t *diags;
  hd_arena_t arena; // Scratch.
  const hd_task_t *task;
  HD_VEC(const hd_index_t *) indices; // In scope.
  const hd_monoid_t *monoid;          // Whose terms are being looked at.
  bool in_identity;
  HD_VEC(const hd_task_value_t *) defined;
  HD_VEC(const hd_size_t *) sizes; // Defined ones, of those that data decides.
  bool in_definitions;             // Where those must be known.
  unsigned errors;
} task_verifier_t;

static void verify_term(task_verifier_t *v, const hd_term_t *term);

__attribute__((format(printf, 3, 4))) static void
fault(task_verifier_t *v, hd_loc_t loc, const char *format, ...) {
  va_list args;
  va_start(args, format);
  hd_error(v->diags, loc, HD_E0310, hd_arena_vprintf(&v->arena, format, args));
  va_end(args);
  v->errors++;
}

static bool is_subset(hd_task_type_t type, const char *set) {
  return !(hd_task_type_scalars(type) & ~hd_scalar_set(set));
}

static bool is_bool(hd_task_type_t type) {
  return !type.var && type.scalar == HD_BOOL;
}

static void expect_type(task_verifier_t *v, const hd_term_t *term,
                        hd_task_type_t type) {
  if (hd_task_type_equal(term->type, type))
    return;
  hd_error(v->diags, term->loc, HD_E0203, hd_task_type_name(type),
           hd_task_type_name(term->type));
  v->errors++;
}

static void expect_i64(task_verifier_t *v, const hd_term_t *term) {
  expect_type(v, term, (hd_task_type_t){HD_I64, NULL});
}

static void expect_single(task_verifier_t *v, const hd_term_t *term) {
  if (term->pack)
    fault(v, term->loc, "a pack of values stands where one is needed");
}

// Known before any element is: constants, sizes, packs, attributes and
// arithmetic on them.
static bool is_shape_term(const hd_term_t *term) {
  switch ((hd_term_kind_t)term->kind) {
  case HD_TERM_CONST:
  case HD_TERM_LIMIT:
  case HD_TERM_SIZE:
  case HD_TERM_PACK:
  case HD_TERM_BROADCAST:
  case HD_TERM_PERMUTE:
  case HD_TERM_ATTRIBUTE:
  case HD_TERM_OPERATOR:
  case HD_TERM_SELECT:
  case HD_TERM_CAST:
    break;
  case HD_TERM_INDEX:
  case HD_TERM_BOUND:
  case HD_TERM_BITCAST:
  case HD_TERM_FUNCTION:
  case HD_TERM_LOAD:
  case HD_TERM_LOADELSE:
  case HD_TERM_REDUCE:
  case HD_TERM_SCAN:
  case HD_TERM_COUNT:
    return false;
  }
  for (unsigned i = 0; i < term->num_operands; i++)
    if (!is_shape_term(term->operands[i]))
      return false;
  return true;
}

static void verify_extent(task_verifier_t *v, const hd_term_t *term,
                          const char *what) {
  verify_term(v, term);
  expect_i64(v, term);
  if (!is_shape_term(term))
    fault(v, term->loc,
          "%s is computed from sizes, attributes and constants alone", what);
}

static bool is_defined(const task_verifier_t *v, const hd_task_value_t *value) {
  if (value->kind == HD_VALUE_INPUT || value->kind == HD_VALUE_ATTRIBUTE)
    return true;
  for (size_t i = 0; i < v->defined.size; i++)
    if (v->defined.data[i] == value)
      return true;
  return false;
}

static void expect_defined(task_verifier_t *v, const hd_task_value_t *value,
                           hd_loc_t loc) {
  if (!is_defined(v, value))
    fault(v, loc, "'%s' is read before it is defined", value->name);
}

// operands index the axes of shape.
static void verify_axes(task_verifier_t *v, const hd_task_value_t *value,
                        const hd_term_t *const *operands, unsigned count,
                        hd_loc_t loc) {
  if (count != value->rank) {
    hd_error(v->diags, loc, HD_E0207, value->name,
             hd_rank_text(&v->arena, value->rank, count));
    v->errors++;
    return;
  }
  for (unsigned i = 0; i < count; i++) {
    const hd_pack_t *axes = value->shape[i]->pack;
    if (!is_subset(operands[i]->type, "integer"))
      fault(v, operands[i]->loc, "an index has type %s",
            hd_task_type_name(operands[i]->type));
    if (!axes != !operands[i]->pack)
      fault(v, operands[i]->loc,
            axes ? "these axes are indexed by a pack, '..'"
                 : "this axis is indexed by one value");
    else if (axes && !hd_pack_reaches(operands[i]->pack, axes))
      fault(v, operands[i]->loc,
            "an index over one pack does not index another that does not "
            "broadcast to it");
  }
}

static bool is_in_scope(const task_verifier_t *v, const hd_index_t *index) {
  for (size_t i = v->indices.size; i-- > 0;)
    if (v->indices.data[i] == index)
      return true;
  return false;
}

static bool is_variable_of(const hd_monoid_t *monoid,
                           const hd_variable_t *variable) {
  for (uint32_t i = 0; monoid && i < monoid->size; i++)
    if (monoid->left[i] == variable || monoid->right[i] == variable)
      return true;
  return false;
}

// Defined for every scalar that the type may be.
static bool op_is_defined(hd_expr_kind_t op, hd_task_type_t type) {
  uint32_t scalars = hd_task_type_scalars(type);
  for (int i = 0; i < HD_SCALAR_COUNT; i++)
    if (scalars >> i & 1 && !hd_expr_defined(op, hd_type((hd_scalar_t)i)))
      return false;
  return true;
}

static void verify_operator(task_verifier_t *v, const hd_term_t *term) {
  const hd_expr_info_t *info = hd_expr_info(term->u.op);
  unsigned arity = info->form == HD_FORM_UNARY ? 1 : 2;
  if (info->form == HD_FORM_LEAF || info->form == HD_FORM_OTHER ||
      term->num_operands != arity) {
    fault(v, term->loc, "%s is no operator of %u operands", info->name,
          term->num_operands);
    return;
  }
  const hd_term_t *a = term->operands[0];
  if (!op_is_defined(term->u.op, a->type)) {
    hd_error(v->diags, term->loc, HD_E0205, info->spelling,
             hd_task_type_name(a->type));
    v->errors++;
  }
  if (arity == 2) {
    const hd_term_t *b = term->operands[1];
    expect_type(v, b, a->type);
    if (a->pack && b->pack && a->pack != b->pack)
      fault(v, term->loc, "the operands are packs of different axes");
  }
  bool compares = info->form == HD_FORM_COMPARE;
  expect_type(v, term, compares ? (hd_task_type_t){HD_BOOL, NULL} : a->type);
}

static void verify_ranges(task_verifier_t *v, const hd_index_t *const *indices,
                          unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    verify_extent(v, indices[i]->range, "a range");
    if (is_in_scope(v, indices[i]))
      fault(v, indices[i]->loc, "'%s' is bound twice", indices[i]->name);
  }
  for (unsigned i = 0; i < count; i++)
    hd_vec_push(&v->arena, &v->indices, indices[i]);
}

static void verify_reduction(task_verifier_t *v, const hd_term_t *term) {
  const hd_reduction_t *r = term->u.reduction;
  const hd_monoid_t *monoid = r->monoid;
  bool is_declared = monoid->builtin == HD_MONOID_COUNT;
  size_t outer = v->indices.size;
  if (term->kind == HD_TERM_SCAN) {
    verify_term(v, r->at);
    expect_i64(v, r->at);
    expect_single(v, r->at);
    if (r->num_indices != 1 || r->indices[0]->range->pack)
      fault(v, term->loc, "a scan runs along one axis");
  }
  verify_ranges(v, r->indices, r->num_indices);
  unsigned size = is_declared ? monoid->size : 1;
  if (term->num_operands != size) {
    hd_error(v->diags, term->loc, HD_E0206, monoid->name, (int)size,
             size == 1 ? "component" : "components", (int)term->num_operands);
    v->errors++;
  }
  for (unsigned i = 0; i < term->num_operands; i++) {
    verify_term(v, term->operands[i]);
    expect_single(v, term->operands[i]);
    if (is_declared && i < size)
      expect_type(v, term->operands[i], monoid->left[i]->type);
  }
  v->indices.size = outer;
  if (!is_declared && term->num_operands &&
      !op_is_defined(hd_monoid_operator(monoid->builtin),
                     term->operands[0]->type)) {
    hd_error(v->diags, term->loc, HD_E0205, monoid->name,
             hd_task_type_name(term->operands[0]->type));
    v->errors++;
  }
}

// A size that the data decides stands in a signature, and after it is defined.
static void verify_size(task_verifier_t *v, const hd_term_t *term) {
  bool known = !v->in_definitions || !term->u.size->bound;
  for (size_t i = 0; !known && i < v->sizes.size; i++)
    known = v->sizes.data[i] == term->u.size;
  if (!known)
    fault(v, term->loc, "the size '%s' is used before it is defined",
          term->u.size->name);
}

static void verify_leaf(task_verifier_t *v, const hd_term_t *term) {
  if (term->kind == HD_TERM_SIZE)
    verify_size(v, term);
  else if (term->kind == HD_TERM_INDEX && !is_in_scope(v, term->u.index)) {
    hd_error(v->diags, term->loc, HD_E0301, term->u.index->name);
    v->errors++;
  } else if (term->kind == HD_TERM_BOUND &&
             (v->in_identity || !is_variable_of(v->monoid, term->u.variable))) {
    hd_error(v->diags, term->loc, HD_E0301, term->u.variable->name);
    v->errors++;
  } else if (term->kind == HD_TERM_ATTRIBUTE &&
             term->u.value->kind != HD_VALUE_ATTRIBUTE) {
    fault(v, term->loc, "'%s' is no attribute", term->u.value->name);
  }
}

// Of whatever the types may be; a bool has no bits of its own.
static bool same_bits(hd_task_type_t a, hd_task_type_t b) {
  uint32_t scalars = hd_task_type_scalars(a) | hd_task_type_scalars(b);
  unsigned bits = 0;
  for (int i = 0; i < HD_SCALAR_COUNT; i++) {
    unsigned these = hd_scalar_bits((hd_scalar_t)i);
    if (!(scalars >> i & 1))
      continue;
    if (i == HD_BOOL || these == 0 || (bits && these != bits))
      return false;
    bits = these;
  }
  return true;
}

static void verify_one(task_verifier_t *v, const hd_term_t *term) {
  unsigned count = term->num_operands;
  switch ((hd_term_kind_t)term->kind) {
  case HD_TERM_LIMIT:
    if (is_subset(term->type, "number"))
      break;
    hd_error(v->diags, term->loc, HD_E0205, hd_limit_name(term->u.limit),
             hd_task_type_name(term->type));
    v->errors++;
    break;
  case HD_TERM_CONST:
  case HD_TERM_SIZE:
  case HD_TERM_PACK:
  case HD_TERM_BROADCAST:
  case HD_TERM_INDEX:
  case HD_TERM_ATTRIBUTE:
  case HD_TERM_BOUND:
    verify_leaf(v, term);
    break;
  case HD_TERM_PERMUTE:
    verify_extent(v, term->operands[1], "an order");
    break;
  case HD_TERM_OPERATOR:
    verify_operator(v, term);
    break;
  case HD_TERM_SELECT:
    expect_type(v, term->operands[0], (hd_task_type_t){HD_BOOL, NULL});
    expect_type(v, term->operands[1], term->type);
    expect_type(v, term->operands[2], term->type);
    break;
  case HD_TERM_CAST:
    if (hd_task_type_equal(term->type, term->operands[0]->type))
      fault(v, term->loc, "a conversion to the type at hand");
    break;
  case HD_TERM_BITCAST:
    if (!same_bits(term->type, term->operands[0]->type))
      fault(v, term->loc, "a bitcast between types of different sizes");
    break;
  case HD_TERM_FUNCTION:
    if (count != hd_task_function_info(term->u.function)->arity ||
        !is_subset(term->type, "float")) {
      hd_error(v->diags, term->loc, HD_E0205,
               hd_task_function_info(term->u.function)->name,
               hd_task_type_name(term->type));
      v->errors++;
    }
    for (unsigned i = 0; i < count; i++)
      expect_type(v, term->operands[i], term->type);
    break;
  case HD_TERM_LOAD:
  case HD_TERM_LOADELSE:
    expect_defined(v, term->u.value, term->loc);
    count -= term->kind == HD_TERM_LOADELSE;
    verify_axes(v, term->u.value, term->operands, count, term->loc);
    expect_type(v, term, term->u.value->type);
    if (term->kind == HD_TERM_LOADELSE)
      expect_type(v, term->operands[count], term->type);
    break;
  case HD_TERM_REDUCE:
  case HD_TERM_SCAN:
  case HD_TERM_COUNT:
    break;
  }
}

static void verify_term(task_verifier_t *v, const hd_term_t *term) {
  if (term->kind == HD_TERM_REDUCE || term->kind == HD_TERM_SCAN) {
    verify_reduction(v, term);
    return;
  }
  for (unsigned i = 0; i < term->num_operands; i++) {
    const hd_term_t *operand = term->operands[i];
    verify_term(v, operand);
    bool is_tuple =
        (operand->kind == HD_TERM_REDUCE || operand->kind == HD_TERM_SCAN) &&
        operand->num_operands > 1;
    if (is_tuple)
      fault(v, operand->loc, "a tuple is no operand: define several tensors");
  }
  verify_one(v, term);
}

static void verify_value(task_verifier_t *v, const hd_task_value_t *value) {
  if (value->rank > HD_MAX_RANK) {
    hd_error(v->diags, value->loc, HD_E0307, "the rank of a tensor", 0LL,
             (long long)HD_MAX_RANK, (long long)value->rank);
    v->errors++;
  }
  for (uint32_t i = 0; i < value->rank; i++) {
    const hd_term_t *axis = value->shape[i];
    verify_extent(v, axis, "a dimension");
    if (axis->kind == HD_TERM_SIZE && axis->u.size->bound)
      verify_extent(v, axis->u.size->bound, "a bound");
  }
  const char *why = value->kind == HD_VALUE_INPUT ? hd_task_order_fault(value)
                    : value->by ? "is for tensors that are read"
                                : NULL;
  if (why)
    fault(v, value->loc, "'%s', the order of the axes of '%s', %s",
          value->by->name, value->name, why);
  if (value->initial) {
    verify_term(v, value->initial);
    expect_type(v, value->initial, value->type);
    if (value->initial->kind != HD_TERM_CONST)
      fault(v, value->initial->loc, "a default is a constant");
  }
}

static void verify_monoid(task_verifier_t *v, const hd_monoid_t *monoid) {
  v->monoid = monoid;
  for (uint32_t i = 0; i < monoid->size; i++) {
    hd_task_type_t type = monoid->left[i]->type;
    if (!hd_task_type_equal(type, monoid->right[i]->type))
      fault(v, monoid->loc, "the two sides of '%s' differ in type",
            monoid->name);
    v->in_identity = true;
    verify_term(v, monoid->identity[i]);
    v->in_identity = false;
    verify_term(v, monoid->result[i]);
    expect_type(v, monoid->identity[i], type);
    expect_type(v, monoid->result[i], type);
  }
  v->monoid = NULL;
}

static void define(task_verifier_t *v, const hd_task_value_t *value,
                   hd_loc_t loc) {
  if (value->kind != HD_VALUE_OUTPUT && value->kind != HD_VALUE_LOCAL)
    fault(v, loc, "'%s' is read alone", value->name);
  else if (is_defined(v, value))
    fault(v, loc, "'%s' is defined already", value->name);
  hd_vec_push(&v->arena, &v->defined, value);
}

static void verify_targets(task_verifier_t *v, const hd_definition_t *d) {
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
    expect_type(v, is_tuple ? d->term->operands[i] : d->term, target->type);
    bool same = target->rank == d->num_indices;
    for (uint32_t n = 0; same && n < d->num_indices; n++)
      same = hd_term_equal(target->shape[n], d->indices[n]->range);
    if (!same)
      fault(v, d->loc, "the indices do not run over the shape of '%s'",
            target->name);
  }
}

static void verify_scatter(task_verifier_t *v, const hd_definition_t *d) {
  const hd_task_value_t *target = d->targets[0];
  for (uint32_t i = 0; i < target->rank; i++) {
    verify_term(v, d->at[i]);
    if (target->shape[i]->kind == HD_TERM_SIZE)
      verify_size(v, target->shape[i]);
  }
  verify_axes(v, target, d->at, target->rank, d->loc);
  expect_type(v, d->term, target->type);
  if (!d->onto && d->duplicates != HD_DUPLICATES_COMBINE)
    fault(v, d->loc, "what is not met needs a value: 'onto'");
  if (d->duplicates == HD_DUPLICATES_COMBINE &&
      (d->monoid->builtin == HD_MONOID_COUNT
           ? d->monoid->size != 1
           : !op_is_defined(hd_monoid_operator(d->monoid->builtin),
                            target->type)))
    fault(v, d->loc, "'%s' does not combine values of type %s", d->monoid->name,
          hd_task_type_name(target->type));
  if (!d->onto)
    return;
  expect_defined(v, d->onto, d->loc);
  bool same = d->onto->rank == target->rank &&
              hd_task_type_equal(d->onto->type, target->type);
  for (uint32_t i = 0; same && i < target->rank; i++)
    same = hd_term_equal(d->onto->shape[i], target->shape[i]);
  if (!same)
    fault(v, d->loc, "'%s' has not the type and shape of '%s'", d->onto->name,
          target->name);
}

static void verify_definition(task_verifier_t *v, const hd_definition_t *d) {
  v->indices.size = 0;
  verify_ranges(v, d->indices, d->num_indices);
  verify_term(v, d->term);
  expect_single(v, d->term);
  switch (d->kind) {
  case HD_DEFINE:
    verify_targets(v, d);
    break;
  case HD_SCATTER:
    verify_scatter(v, d);
    break;
  case HD_DEFINE_SIZE:
    expect_i64(v, d->term);
    for (size_t i = 0; i < v->sizes.size; i++)
      if (v->sizes.data[i] == d->size)
        fault(v, d->loc, "'%s' is defined already", d->size->name);
    hd_vec_push(&v->arena, &v->sizes, d->size);
    break;
  }
  for (uint32_t i = 0; i < d->num_targets; i++)
    define(v, d->targets[i], d->loc);
}

static void verify_completeness(task_verifier_t *v) {
  const hd_task_t *task = v->task;
  if (task->outputs.size == 0)
    fault(v, task->loc, "a task has an output");
  for (size_t i = 0; i < task->outputs.size; i++)
    if (!is_defined(v, task->outputs.data[i]))
      fault(v, task->outputs.data[i]->loc, "'%s' is never defined",
            task->outputs.data[i]->name);
  for (size_t i = 0; i < task->sizes.size; i++) {
    const hd_size_t *size = task->sizes.data[i];
    bool found = !size->bound;
    for (size_t n = 0; n < v->sizes.size; n++)
      found |= v->sizes.data[n] == size;
    if (!found)
      fault(v, size->loc, "the size '%s' is never defined", size->name);
  }
}

bool hd_task_verify(hd_context_t *context, const hd_task_t *task) {
  task_verifier_t v = {.diags = &context->diags, .task = task};
  hd_arena_init_local(&v.arena, &context->budget);
  for (size_t i = 0; i < task->inputs.size; i++)
    verify_value(&v, task->inputs.data[i]);
  for (size_t i = 0; i < task->outputs.size; i++)
    verify_value(&v, task->outputs.data[i]);
  for (size_t i = 0; i < task->conditions.size; i++) {
    const hd_term_t *condition = task->conditions.data[i];
    verify_term(&v, condition);
    if (!is_bool(condition->type) || !is_shape_term(condition))
      fault(&v, condition->loc,
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
