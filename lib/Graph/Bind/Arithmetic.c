// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Graph/Bind/Arithmetic.h"

// Whether a value may be a float, whose type is to be chosen where it is a
// variable.
static bool may_be_float(hd_task_type_t type) {
  return (hd_task_type_scalars(type) & hd_scalar_set("float")) != 0;
}

static const hd_term_t *strip_casts(const hd_term_t *term) {
  while (term->kind == HD_TERM_CAST)
    term = term->operands[0];
  return term;
}

// Whether elements that may be floats decide what a term is.
static bool reads_elements(const hd_term_t *term) {
  if ((term->kind == HD_TERM_LOAD || term->kind == HD_TERM_LOADELSE) &&
      may_be_float(term->u.value->type))
    return true;
  for (unsigned i = 0; i < term->num_operands; i++)
    if (reads_elements(term->operands[i]))
      return true;
  return false;
}

static bool is_compare(hd_expr_kind_t op) {
  switch (op) {
  case HD_EXPR_EQ:
  case HD_EXPR_NE:
  case HD_EXPR_LT:
  case HD_EXPR_LE:
  case HD_EXPR_GT:
  case HD_EXPR_GE:
    return true;
  default:
    return false;
  }
}

// The condition of a choice between a and b: rounding keeps order, so comparing
// the very two chooses as well as before; x != x is for NaN.
static bool chooses(const hd_term_t *condition, const hd_term_t *a,
                    const hd_term_t *b) {
  if (!reads_elements(condition))
    return true;
  if (condition->kind != HD_TERM_OPERATOR)
    return false;
  if (is_compare(condition->u.op)) {
    const hd_term_t *x = condition->operands[0], *y = condition->operands[1];
    return hd_term_equal(x, y) ||
           ((hd_term_equal(x, a) || hd_term_equal(x, b)) &&
            (hd_term_equal(y, a) || hd_term_equal(y, b)));
  }
  for (unsigned i = 0; i < condition->num_operands; i++)
    if (!chooses(condition->operands[i], a, b))
      return false;
  return true;
}

static bool picks(const hd_term_t *term);

static bool picks_operands(const hd_term_t *term) {
  for (unsigned i = 0; i < term->num_operands; i++)
    if (!picks(term->operands[i]))
      return false;
  return true;
}

// Where it reads does not depend on elements.
static bool picks_element(const hd_term_t *term) {
  unsigned places = term->num_operands - (term->kind == HD_TERM_LOADELSE);
  for (unsigned i = 0; i < places; i++)
    if (reads_elements(term->operands[i]))
      return false;
  return term->kind == HD_TERM_LOAD || picks(term->operands[places]);
}

// The greatest, the least, or what a declared monoid chooses.
static bool picks_best(const hd_term_t *term) {
  const hd_monoid_t *monoid = term->u.reduction->monoid;
  if (term->num_operands != 1 || !picks(term->operands[0]))
    return false;
  if (monoid->builtin == HD_MONOID_COUNT)
    return picks(monoid->result[0]);
  return monoid->builtin == HD_MONOID_MAX || monoid->builtin == HD_MONOID_MIN;
}

// Whether a term is one of the elements, negated or not, or a constant.
static bool picks(const hd_term_t *term) {
  switch ((hd_term_kind_t)term->kind) {
  case HD_TERM_CONST:
  case HD_TERM_LIMIT:
  case HD_TERM_ATTRIBUTE:
  case HD_TERM_BOUND:
    return true;
  case HD_TERM_CAST:
    return may_be_float(term->operands[0]->type)
               ? picks(term->operands[0])
               : strip_casts(term)->kind == HD_TERM_CONST;
  case HD_TERM_OPERATOR:
    return (term->u.op == HD_EXPR_NEG || term->u.op == HD_EXPR_MIN ||
            term->u.op == HD_EXPR_MAX) &&
           picks_operands(term);
  case HD_TERM_FUNCTION:
    return term->u.function == HD_TASK_ABS && picks_operands(term);
  case HD_TERM_SELECT:
    return chooses(term->operands[0], term->operands[1], term->operands[2]) &&
           picks(term->operands[1]) && picks(term->operands[2]);
  case HD_TERM_LOAD:
  case HD_TERM_LOADELSE:
    return picks_element(term);
  case HD_TERM_REDUCE:
    return picks_best(term);
  case HD_TERM_SIZE:
  case HD_TERM_PACK:
  case HD_TERM_BROADCAST:
  case HD_TERM_PERMUTE:
  case HD_TERM_INDEX:
  case HD_TERM_BITCAST:
  case HD_TERM_SCAN:
  case HD_TERM_COUNT:
    return false;
  }
  return false;
}

static bool definition_picks(const hd_definition_t *definition) {
  if (definition->kind == HD_DEFINE_SIZE)
    return !reads_elements(definition->term);
  if (definition->num_targets != 1 || definition->kind == HD_SORT)
    return false; // What was told apart may be equal when it is rounded.
  if (!may_be_float(definition->targets[0]->type))
    return chooses(definition->term, definition->term, definition->term);
  if (definition->kind == HD_SCATTER) {
    if (definition->duplicates == HD_DUPLICATES_COMBINE)
      return false;
    for (uint32_t i = 0; i < definition->targets[0]->rank; i++)
      if (reads_elements(definition->at[i]))
        return false;
  }
  return picks(definition->term);
}

// The input that a factor is, converted to the type of accumulation.
static const hd_task_value_t *factor(const hd_term_t *term) {
  if (term->kind != HD_TERM_CAST || !term->type.var ||
      !term->type.var->accumulates)
    return NULL;
  const hd_term_t *load = term->operands[0];
  if ((load->kind != HD_TERM_LOAD && load->kind != HD_TERM_LOADELSE) ||
      load->u.value->kind != HD_VALUE_INPUT ||
      load->u.value->type.var != term->type.var->accumulates)
    return NULL;
  return load->u.value;
}

// Which inputs are factors of products that are summed; a bit for each.
static uint64_t factors(const hd_task_t *task, const hd_term_t *term) {
  uint64_t found = 0;
  for (unsigned i = 0; i < term->num_operands; i++)
    found |= factors(task, term->operands[i]);
  if (term->kind != HD_TERM_REDUCE ||
      term->u.reduction->monoid->builtin != HD_MONOID_SUM)
    return found;
  const hd_term_t *product = term->operands[0];
  if (product->kind != HD_TERM_OPERATOR || product->u.op != HD_EXPR_MUL)
    return found;
  const hd_task_value_t *a = factor(product->operands[0]);
  const hd_task_value_t *b = factor(product->operands[1]);
  for (size_t i = 0; a != b && i < task->inputs.size && i < 64; i++)
    if (task->inputs.data[i] == a || task->inputs.data[i] == b)
      found |= UINT64_C(1) << i;
  return found;
}

// Whether something is computed in the inputs' own type.
static bool computes_narrowly(const hd_term_t *term) {
  if ((term->kind == HD_TERM_OPERATOR || term->kind == HD_TERM_FUNCTION ||
       term->kind == HD_TERM_REDUCE || term->kind == HD_TERM_SCAN) &&
      term->type.var && !term->type.var->accumulates)
    return true;
  for (unsigned i = 0; i < term->num_operands; i++)
    if (computes_narrowly(term->operands[i]))
      return true;
  return false;
}

static bool is_product(const hd_task_t *task) {
  uint64_t found = 0;
  for (size_t i = 0; i < task->definitions.size; i++) {
    const hd_definition_t *definition = task->definitions.data[i];
    if (definition->kind != HD_DEFINE || computes_narrowly(definition->term))
      return false;
    found |= factors(task, definition->term);
  }
  for (size_t i = 0; i < task->inputs.size && i < 64; i++) {
    const hd_task_value_t *input = task->inputs.data[i];
    if (input->kind == HD_VALUE_INPUT && may_be_float(input->type) &&
        !(found >> i & 1))
      return false;
  }
  return found != 0 && task->inputs.size <= 64;
}

hd_arithmetic_t hd_task_arithmetic(const hd_task_t *task) {
  bool none = true;
  for (size_t i = 0; none && i < task->definitions.size; i++)
    none = definition_picks(task->definitions.data[i]);
  return none               ? HD_ARITHMETIC_NONE
         : is_product(task) ? HD_ARITHMETIC_PRODUCT
                            : HD_ARITHMETIC_OTHER;
}
