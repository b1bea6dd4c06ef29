// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules of rewrites, as far as they are seen without sizes: nodes are calls
// of their tasks, the left side hangs together and says what every name stands
// for, the right side gives what others may use. What it computes is proven by
// running both sides.
#include "IR/Graph/RewriteRule.h"
#include "IR/Verify/TaskVerifier.h"

#include <string.h>

typedef struct rule_verifier {
  hd_diagnostics_t *diags;
  hd_arena_t arena; // Scratch.
  const hd_rewrite_t *rewrite;
  unsigned errors;
} rule_verifier_t;

__attribute__((format(printf, 3, 4))) static void
fault(rule_verifier_t *v, hd_loc_t loc, const char *format, ...) {
  va_list args;
  va_start(args, format);
  hd_error(v->diags, loc, HD_E0317, v->rewrite->name,
           hd_arena_vprintf(&v->arena, format, args));
  va_end(args);
  v->errors++;
}

const hd_rule_value_t *hd_rewrite_typed(const hd_rewrite_t *rewrite,
                                        const hd_task_value_t *type) {
  for (size_t i = 0; i < rewrite->values.size; i++)
    if (rewrite->values.data[i]->type == type)
      return rewrite->values.data[i];
  return NULL;
}

bool hd_rule_attribute_binds(const hd_rule_attribute_t *attribute) {
  switch (attribute->kind) {
  case HD_RULE_TERM:
    return attribute->term->kind == HD_TERM_ATTRIBUTE;
  case HD_RULE_TYPE:
    return attribute->type.var != NULL;
  case HD_RULE_RANK:
    return true;
  case HD_RULE_LIST:
    break;
  }
  return false;
}

bool hd_rule_item_binds(const hd_term_t *item) {
  return item->kind == HD_TERM_ATTRIBUTE && !item->u.value->pack;
}

static bool is_over_pack(const hd_term_t *term) {
  if (term->kind == HD_TERM_PACK || term->kind == HD_TERM_BROADCAST ||
      term->kind == HD_TERM_PERMUTE ||
      (term->kind == HD_TERM_ATTRIBUTE && term->u.value->pack))
    return true;
  for (unsigned i = 0; i < term->num_operands; i++)
    if (is_over_pack(term->operands[i]))
      return true;
  return false;
}

uint32_t hd_rule_leading(const hd_rule_attribute_t *list) {
  uint32_t i = 0;
  while (i < list->count && !is_over_pack(list->terms[i]))
    i++;
  return i;
}

bool hd_rewrite_is_called(const hd_rewrite_t *rewrite, const char *name) {
  return strcmp(rewrite->name, name) == 0 || strcmp(rewrite->family, name) == 0;
}

bool hd_rule_node_is_reshape(const hd_rule_node_t *node) {
  return node->op && !node->task && strcmp(node->op, "reshape") == 0;
}

bool hd_rule_node_is_magnitudes(const hd_rule_node_t *node) {
  return node->op && !node->task && strcmp(node->op, "magnitudes") == 0;
}

// --- Terms ---

// x[], x[0], x[0, 0]: that it is the only one is seen where it is known.
static bool is_first_element(const hd_term_t *term) {
  for (unsigned i = 0; i < term->num_operands; i++)
    if (term->operands[i]->kind != HD_TERM_CONST || term->operands[i]->u.i)
      return false;
  return term->num_operands == term->u.value->rank;
}

// Over sizes, attributes and the one element of constants.
static bool is_known_term(const rule_verifier_t *v, const hd_term_t *term) {
  if (term->kind == HD_TERM_LOAD) {
    const hd_rule_value_t *value = hd_rewrite_typed(v->rewrite, term->u.value);
    return value && value->constant && is_first_element(term);
  }
  if (!hd_term_is_known((hd_term_kind_t)term->kind))
    return false;
  for (unsigned i = 0; i < term->num_operands; i++)
    if (!is_known_term(v, term->operands[i]))
      return false;
  return true;
}

static void verify_term(rule_verifier_t *v, const hd_term_t *term) {
  if (!is_known_term(v, term))
    fault(v, term->loc,
          "a term is over sizes, attributes and the only element of constants");
}

static void verify_shape(rule_verifier_t *v, const hd_task_value_t *value) {
  const char *why = hd_task_order_fault(value);
  if (why)
    fault(v, value->loc, "'%s', the order of the axes of '%s', %s",
          value->by->name, value->name, why);
  for (uint32_t i = 0; i < value->rank; i++)
    verify_term(v, value->shape[i]);
}

static void verify_signature(rule_verifier_t *v) {
  const hd_task_t *s = v->rewrite->signature;
  for (size_t i = 0; i < s->inputs.size; i++)
    verify_shape(v, s->inputs.data[i]);
  for (size_t i = 0; i < s->outputs.size; i++)
    verify_shape(v, s->outputs.data[i]);
  for (size_t i = 0; i < s->conditions.size; i++)
    verify_term(v, s->conditions.data[i]);
  for (size_t i = 0; i < s->sizes.size; i++)
    if (s->sizes.data[i]->bound)
      fault(v, s->sizes.data[i]->loc, "no size is decided by data");
}

// --- Nodes ---

static void verify_attribute(rule_verifier_t *v, const hd_rule_node_t *node,
                             const hd_rule_attribute_t *a) {
  const hd_task_value_t *of = hd_task_find_attribute(node->task, a->name);
  bool is_type = !of && hd_task_find_type(node->task, a->name);
  bool is_rank = !of && !is_type && hd_task_find_pack(node->task, a->name);
  if (!of && !is_type && !is_rank)
    fault(v, a->loc, "task '%s' has no attribute '%s'", node->op, a->name);
  else if (is_type != (a->kind == HD_RULE_TYPE) ||
           (a->kind == HD_RULE_RANK && !is_rank) ||
           (a->kind == HD_RULE_LIST && !(of && of->pack)))
    fault(v, a->loc, "attribute '%s' of task '%s' is %s", a->name, node->op,
          is_type          ? "a type"
          : is_rank        ? "a number of axes"
          : of && of->pack ? "a list of numbers"
                           : "a number");
  if (a->narrow && !node->required)
    fault(v, a->loc, "'narrow' is for what is required");
  if (a->kind == HD_RULE_TERM)
    verify_term(v, a->term);
  for (uint32_t i = 0; i < a->count; i++)
    verify_term(v, a->terms[i]);
}

static uint32_t count_inputs(const hd_task_t *task) {
  uint32_t count = 0;
  for (size_t i = 0; i < task->inputs.size; i++)
    count += task->inputs.data[i]->kind == HD_VALUE_INPUT;
  return count;
}

bool hd_rule_node_gives(const hd_rule_node_t *node, const char *name) {
  for (uint32_t i = 0; i < node->num_attributes; i++)
    if (strcmp(node->attributes[i]->name, name) == 0)
      return true;
  return false;
}

// What depends on constants alone.
static bool is_constant(const hd_rule_value_t *value) {
  if (value->operand)
    return value->constant;
  const hd_rule_node_t *node = value->right ? value->right : value->left;
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (!is_constant(node->inputs[i]))
      return false;
  return node->num_inputs > 0;
}

static void verify_required(rule_verifier_t *v, const hd_rule_node_t *node) {
  const hd_task_t *task = node->task;
  bool gives_bool = task && task->outputs.size == 1 &&
                    !task->outputs.data[0]->rank &&
                    hd_task_type_equal(task->outputs.data[0]->type,
                                       (hd_task_type_t){HD_BOOL, NULL});
  if (!gives_bool)
    fault(v, node->loc, "what is required is a task that gives one bool[]");
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (!is_constant(node->inputs[i]))
      fault(v, node->loc, "'%s' does not depend on constants alone",
            node->inputs[i]->name);
}

static void verify_call(rule_verifier_t *v, const hd_rule_node_t *node) {
  uint32_t inputs = node->task ? count_inputs(node->task) : 1;
  uint32_t outputs = node->required ? 0
                     : node->task   ? (uint32_t)node->task->outputs.size
                                    : 1;
  if (node->required)
    verify_required(v, node);
  if (node->num_inputs != inputs)
    fault(v, node->loc, "'%s' has %u operands, found %u", node->op, inputs,
          node->num_inputs);
  if (node->num_outputs != outputs)
    fault(v, node->loc, "'%s' has %u results, found %u",
          node->op ? node->op : "a name", outputs, node->num_outputs);
  if (!node->task && node->num_attributes)
    fault(v, node->loc, "%s has no attributes", node->op);
  for (uint32_t i = 0; node->task && i < node->num_attributes; i++)
    verify_attribute(v, node, node->attributes[i]);
  for (size_t i = 0; node->task && i < node->task->inputs.size; i++) {
    const hd_task_value_t *a = node->task->inputs.data[i];
    if (a->kind == HD_VALUE_ATTRIBUTE && !a->initial &&
        !hd_rule_node_gives(node, a->name))
      fault(v, node->loc, "attribute '%s' of task '%s' is missing", a->name,
            node->op);
  }
}

// --- Sides ---

bool hd_rule_node_reads(const hd_rule_node_t *node,
                        const hd_rule_value_t *value) {
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (node->inputs[i] == value)
      return true;
  return false;
}

static bool is_used(const hd_rule_node_t *const *nodes, size_t count,
                    const hd_rule_value_t *value) {
  for (size_t i = 0; i < count; i++)
    if (hd_rule_node_reads(nodes[i], value))
      return true;
  return false;
}

// What is apart are two results that the rule keeps.
static void verify_apart(rule_verifier_t *v) {
  const hd_rule_value_t *const *apart = v->rewrite->apart;
  if (!apart[0])
    return;
  if (apart[0] == apart[1])
    fault(v, v->rewrite->loc, "'%s' is not apart from itself", apart[0]->name);
  for (int i = 0; i < 2; i++)
    if (!apart[i]->left || !apart[i]->right)
      fault(v, v->rewrite->loc, "'%s' is apart, but not given by both sides",
            apart[i]->name);
}

// Grows from the last node by what shares a value with it.
static void verify_connected(rule_verifier_t *v) {
  const hd_rewrite_t *r = v->rewrite;
  size_t count = r->left.size, met = 1;
  bool *is_met = HD_ARENA_ARRAY(&v->arena, bool, count + 1);
  bool *seen = HD_ARENA_ARRAY(&v->arena, bool, r->values.size + 1);
  bool again = count > 1;
  if (count)
    is_met[count - 1] = true;
  while (again) {
    again = false;
    for (size_t i = 0; i < count; i++) {
      const hd_rule_node_t *node = r->left.data[i];
      bool touches = is_met[i];
      for (uint32_t n = 0; n < node->num_inputs; n++)
        touches |= seen[node->inputs[n]->index];
      for (uint32_t n = 0; n < node->num_outputs; n++)
        touches |= node->outputs[n] && seen[node->outputs[n]->index];
      if (!touches)
        continue;
      again |= !is_met[i];
      met += !is_met[i];
      is_met[i] = true;
      for (uint32_t n = 0; n < node->num_inputs; n++) {
        again |= !seen[node->inputs[n]->index];
        seen[node->inputs[n]->index] = true;
      }
      for (uint32_t n = 0; n < node->num_outputs; n++)
        if (node->outputs[n])
          seen[node->outputs[n]->index] = true;
    }
  }
  if (count && met < count)
    fault(v, r->loc, "the left side falls into parts that share no value");
}

static void verify_value(rule_verifier_t *v, const hd_rule_value_t *value) {
  const hd_rewrite_t *r = v->rewrite;
  bool left = is_used(r->left.data, r->left.size, value);
  bool right = is_used(r->right.data, r->right.size, value);
  if (value->operand && !left)
    fault(v, value->loc, "the left side does not use operand '%s'",
          value->name);
  if (!value->operand && value->left && !left && !right && !value->right)
    fault(v, value->loc, "the right side does not give '%s'", value->name);
  if (!value->operand && !value->left && !right)
    fault(v, value->loc, "nobody uses '%s'", value->name);
}

static bool binds(const hd_rewrite_t *r, const hd_task_value_t *attribute) {
  for (size_t i = 0; i < r->left.size; i++)
    for (uint32_t n = 0; n < r->left.data[i]->num_attributes; n++) {
      const hd_rule_attribute_t *a = r->left.data[i]->attributes[n];
      if (a->kind == HD_RULE_TERM && a->term->kind == HD_TERM_ATTRIBUTE &&
          a->term->u.value == attribute)
        return true;
      uint32_t leading = a->kind == HD_RULE_LIST ? hd_rule_leading(a) : 0;
      for (uint32_t k = 0; k < leading; k++)
        if (hd_rule_item_binds(a->terms[k]) &&
            a->terms[k]->u.value == attribute)
          return true;
    }
  return false;
}

static void verify_left(rule_verifier_t *v) {
  const hd_rewrite_t *r = v->rewrite;
  if (!r->left.size)
    fault(v, r->loc, "the left side has no node");
  for (size_t i = 0; i < r->left.size; i++) {
    verify_call(v, r->left.data[i]);
    if (!r->left.data[i]->op)
      fault(v, r->left.data[i]->loc, "a node on the left is an operator");
  }
  for (size_t i = 0; i < r->signature->inputs.size; i++) {
    const hd_task_value_t *input = r->signature->inputs.data[i];
    if (input->kind == HD_VALUE_ATTRIBUTE && !binds(r, input))
      fault(v, input->loc, "no node on the left gives '%s'", input->name);
  }
  verify_connected(v);
  verify_apart(v);
}

// What is no node of a graph, and read by what is required alone.
static void verify_magnitudes(rule_verifier_t *v, const hd_rule_node_t *node) {
  const hd_rewrite_t *r = v->rewrite;
  const hd_rule_value_t *value = node->num_outputs ? node->outputs[0] : NULL;
  hd_task_type_t f64 = {HD_F64, NULL};
  if (!value || !value->type || value->left ||
      !hd_task_type_equal(value->type->type, f64))
    fault(v, node->loc,
          "the type of what 'magnitudes' gives must be written, and is f64");
  if (node->num_inputs && !is_constant(node->inputs[0]))
    fault(v, node->loc, "'%s' does not depend on constants alone",
          node->inputs[0]->name);
  for (size_t i = 0; i < r->right.size; i++)
    if (value && !r->right.data[i]->required &&
        hd_rule_node_reads(r->right.data[i], value))
      fault(v, r->right.data[i]->loc, "'%s' is for what is required alone",
            value->name);
}

static void verify_right(rule_verifier_t *v) {
  const hd_rewrite_t *r = v->rewrite;
  bool gives = false;
  for (size_t i = 0; i < r->right.size; i++) {
    const hd_rule_node_t *node = r->right.data[i];
    verify_call(v, node);
    if (hd_rule_node_is_magnitudes(node))
      verify_magnitudes(v, node);
    if (!node->op && node->inputs[0]->right)
      fault(v, node->loc,
            "a name on the right is an operand's, or of the left "
            "side alone");
    for (uint32_t n = 0; n < node->num_outputs; n++) {
      const hd_rule_value_t *value = node->outputs[n];
      gives |= value && value->left;
      if (hd_rule_node_is_reshape(node) && value && !value->type &&
          !value->left)
        fault(v, value->loc, "the type of a reshape's result must be written");
      if (value && value->type && value->type->kind == HD_VALUE_OUTPUT &&
          node->task)
        fault(v, value->loc, "a type is written of a reshape's result alone");
    }
  }
  // A name means one thing: of what both sides give, the right one's.
  for (size_t i = 0; i < r->right.size; i++)
    for (size_t n = i; n < r->right.size; n++)
      for (uint32_t o = 0; o < r->right.data[n]->num_outputs; o++)
        if (r->right.data[n]->outputs[o] &&
            hd_rule_node_reads(r->right.data[i], r->right.data[n]->outputs[o]))
          fault(v, r->right.data[i]->loc, "'%s' is used before it is given",
                r->right.data[n]->outputs[o]->name);
  if (!gives)
    fault(v, r->loc, "the right side gives nothing that the left side does");
}

bool hd_rewrite_verify(hd_context_t *context, const hd_rewrite_t *rewrite) {
  rule_verifier_t v = {.diags = &context->diags, .rewrite = rewrite};
  hd_arena_init_local(&v.arena, &context->budget);
  verify_signature(&v);
  verify_left(&v);
  verify_right(&v);
  for (size_t i = 0; i < rewrite->values.size; i++)
    verify_value(&v, rewrite->values.data[i]);
  hd_arena_fini(&v.arena);
  return v.errors == 0;
}
