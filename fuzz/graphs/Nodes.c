// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes: bound, evaluated with what goes beside the values, and taken where the
// results are tame.
#include "Fuzz.h"

#include "Graph/Reference/Reference.h"
#include "IR/Text/Library.h"
#include "IR/Text/Parser.h"

#include <math.h>
#include <string.h>

enum { MAX_ELEMENTS = 20000, MAX_WORK = 2000000 };

bool fuzz_node_has(const fuzz_node_t *node, const char *word) {
  return fuzz_rule_has(fuzz_rule_of(fuzz_tasks[node->task]), word);
}

// About what it takes to evaluate a task.
static double work_of(const hd_task_binding_t *b) {
  double work = 1;
  for (size_t i = 0; i < b->task->sizes.size; i++)
    work *= (double)(b->sizes[i] ? b->sizes[i] : 1);
  for (size_t i = 0; i < b->task->packs.size; i++)
    for (unsigned k = 0; b->task->packs.data[i]->name && k < b->packs[i].rank;
         k++)
      work *= (double)(b->packs[i].values[k] ? b->packs[i].values[k] : 1);
  return work;
}

// It is done many times.
static bool is_small(const hd_task_binding_t *b) {
  if (work_of(b) > MAX_WORK)
    return false;
  for (size_t i = 0; i < b->task->outputs.size; i++)
    if (fuzz_count(&b->outputs[i]) > MAX_ELEMENTS)
      return false;
  return true;
}

// How many terms the longest sum may have: all go into the smallest tensor.
static double terms_of(const hd_task_binding_t *b) {
  double fewest = INFINITY;
  for (size_t i = 0; i < b->task->outputs.size; i++)
    fewest = fmin(fewest, (double)fuzz_count(&b->outputs[i]));
  for (size_t i = 0; i < b->task->locals.size; i++) {
    hd_tensor_type_t type = hd_binding_tensor(b, b->task->locals.data[i]);
    fewest = fmin(fewest, (double)fuzz_count(&type));
  }
  return work_of(b) / fmax(1, fewest);
}

static bool is_sum(const hd_monoid_t *monoid) {
  return monoid && (monoid->builtin == HD_MONOID_SUM ||
                    monoid->builtin == HD_MONOID_PROD);
}

static bool has_sum(const hd_term_t *term) {
  bool is_fold = term->kind == HD_TERM_REDUCE || term->kind == HD_TERM_SCAN;
  bool found = is_fold && is_sum(term->u.reduction->monoid);
  for (unsigned i = 0; !found && i < term->num_operands; i++)
    found = has_sum(term->operands[i]);
  return found;
}

typedef struct noise {
  const fuzz_node_t *node;
  random_t random;
} noise_t;

// Results move, and so does what is summed on the way to them, a mean for
// instance: what is made of that may make more of it.
static void disturb(void *argument, const hd_definition_t *definition,
                    const hd_task_value_t *value, hd_host_tensor_t *tensor) {
  noise_t *noise = argument;
  const fuzz_node_t *node = noise->node;
  uint64_t seed = random_bits(&noise->random) | 1;
  bool moves = value->kind == HD_VALUE_OUTPUT || is_sum(definition->monoid) ||
               has_sum(definition->term);
  if (moves && !fuzz_node_has(node, "exact"))
    fuzz_disturb(tensor, fuzz_node_has(node, "single"), terms_of(node->binding),
                 seed);
}

static hd_host_tensor_t *view(fuzz_graph_t *g, const hd_host_tensor_t *x,
                              const hd_value_t *as) {
  hd_host_tensor_t *y = HD_ARENA_NEW(&g->arena, hd_host_tensor_t);
  *y = *x;
  y->rank = (unsigned)as->rank;
  for (int i = 0; i < as->rank; i++)
    y->shape[i] = as->shape[i]->u.i;
  return y;
}

bool fuzz_evaluate(fuzz_graph_t *g, const fuzz_node_t *node,
                   const hd_host_tensor_t *const *inputs,
                   hd_host_tensor_t **outputs, uint64_t seed) {
  noise_t noise = {node, {seed}};
  if (node->body)
    return fuzz_evaluate_loop(node, inputs, outputs, seed);
  if (!node->binding) {
    outputs[0] = view(g, inputs[0], node->node.outputs[0]);
    return true;
  }
  size_t count = node->binding->task->outputs.size;
  hd_host_tensor_t made[FUZZ_MAX_INPUTS] = {0};
  bool ok =
      hd_task_evaluate_telling(g->context, node->binding, inputs, made,
                               (hd_loc_t){0, 0}, seed ? disturb : NULL, &noise);
  hd_diagnostics_clear(&g->context->diags);
  for (size_t i = 0; ok && i < count; i++) {
    outputs[i] = HD_ARENA_NEW(&g->arena, hd_host_tensor_t);
    *outputs[i] = made[i];
    hd_vec_push(&g->arena, &g->tensors, outputs[i]);
  }
  return ok;
}

static size_t index_of(const fuzz_graph_t *g, const fuzz_value_t *v) {
  size_t i = 0;
  while (i < g->values.size && g->values.data[i] != v)
    i++;
  return i;
}

bool fuzz_evaluate_graph(fuzz_graph_t *g, const hd_host_tensor_t **now,
                         random_t *random) {
  for (size_t n = 0; n < g->nodes.size; n++) {
    const fuzz_node_t *node = g->nodes.data[n];
    const hd_host_tensor_t *inputs[FUZZ_MAX_INPUTS] = {0};
    hd_host_tensor_t *outputs[FUZZ_MAX_INPUTS];
    for (uint32_t k = 0; k < node->node.num_inputs; k++)
      inputs[k] = now[index_of(g, node->inputs[k])];
    if (!fuzz_evaluate(g, node, inputs, outputs,
                       random ? random_bits(random) | 1 : 0))
      return false;
    for (uint32_t k = 0; k < node->node.num_outputs; k++)
      if (node->outputs[k])
        now[index_of(g, node->outputs[k])] = outputs[k];
  }
  return true;
}

// How far what is beside a value may be from it, in parts of its scale.
static double bound_of(hd_scalar_t type) {
  if (!fuzz_is_float(type))
    return 0;
  return hd_scalar_bits(type) >= 32 && type != HD_TF32 ? 1e-3
         : hd_scalar_bits(type) >= 16                  ? 0.05
                                                       : 0.5;
}

static bool is_tame(const hd_host_tensor_t *data,
                    hd_host_tensor_t *const *noisy, bool infinite) {
  double bound = bound_of(data->type) * (fuzz_scale(data) + 1e-3);
  for (int64_t i = 0; fuzz_is_float(data->type) && i < data->count; i++) {
    double x = hd_host_tensor_get(data, i);
    if (isnan(x) || (isinf(x) && !infinite) || (isfinite(x) && fabs(x) > 1e4))
      return false;
  }
  for (int k = 0; k < FUZZ_NOISY; k++)
    if (fuzz_apart(data, noisy[k]) > bound)
      return false;
  return true;
}

typedef struct results {
  hd_host_tensor_t *data[FUZZ_MAX_INPUTS];
  hd_host_tensor_t *noisy[FUZZ_NOISY][FUZZ_MAX_INPUTS];
} results_t;

static bool evaluate_all(fuzz_graph_t *g, const fuzz_node_t *node,
                         results_t *r) {
  const hd_host_tensor_t *inputs[FUZZ_MAX_INPUTS] = {0};
  for (uint32_t i = 0; i < node->node.num_inputs; i++)
    inputs[i] = node->inputs[i]->data;
  if (!fuzz_evaluate(g, node, inputs, r->data, 0))
    return false;
  for (int k = 0; k < FUZZ_NOISY; k++) {
    for (uint32_t i = 0; i < node->node.num_inputs; i++)
      inputs[i] = node->inputs[i]->noisy[k];
    if (!fuzz_evaluate(g, node, inputs, r->noisy[k],
                       random_bits(&g->random) | 1))
      return false;
  }
  return true;
}

static bool are_tame(const fuzz_node_t *node, const results_t *r,
                     unsigned wanted) {
  bool infinite = fuzz_node_has(node, "infinite");
  for (uint32_t i = 0; i < node->node.num_inputs; i++)
    infinite |= node->inputs[i]->infinite;
  for (uint32_t i = 0; i < node->node.num_outputs; i++) {
    hd_host_tensor_t *noisy[FUZZ_NOISY];
    for (int k = 0; k < FUZZ_NOISY; k++)
      noisy[k] = r->noisy[k][i];
    if (wanted >> i & 1 && !is_tame(r->data[i], noisy, infinite))
      return false;
  }
  return true;
}

static void enter(fuzz_graph_t *g, fuzz_node_t *node, const results_t *r,
                  unsigned wanted) {
  const hd_value_t **values =
      HD_ARENA_ARRAY(&g->arena, const hd_value_t *, node->node.num_outputs + 1);
  for (uint32_t i = 0; i < node->node.num_outputs; i++) {
    if (!(wanted >> i & 1))
      continue;
    hd_host_tensor_t *noisy[FUZZ_NOISY];
    for (int k = 0; k < FUZZ_NOISY; k++)
      noisy[k] = r->noisy[k][i];
    fuzz_value_t *v =
        fuzz_result(g, hd_arena_printf(&g->arena, "t%zu", g->values.size),
                    r->data[i], noisy);
    v->from = node;
    node->outputs[i] = v;
    values[i] = v->value;
    hd_vec_push(&g->arena, &g->values, v);
  }
  node->node.outputs = values;
  for (uint32_t i = 0; i < node->node.num_inputs; i++)
    node->inputs[i]->users++;
  hd_vec_push(&g->arena, &g->nodes, node);
}

fuzz_node_t *fuzz_new_node(fuzz_graph_t *g, const char *task,
                           fuzz_value_t *const *inputs, uint32_t num_inputs) {
  fuzz_node_t *node = HD_ARENA_NEW(&g->arena, fuzz_node_t);
  const hd_value_t **values =
      HD_ARENA_ARRAY(&g->arena, const hd_value_t *, num_inputs + 1);
  for (uint32_t i = 0; i < num_inputs; i++) {
    node->inputs[i] = inputs[i];
    values[i] = inputs[i]->value;
  }
  node->node.op = hd_arena_printf(&g->arena, "%s", task);
  node->node.num_inputs = num_inputs;
  node->node.inputs = values;
  node->task = fuzz_task_at(task);
  return node;
}

// f8e8m0 has powers of two alone: no zero for a sum to begin with, so that what
// a sum of them is depends on how often it begins. It is moved and converted.
static bool is_scale(fuzz_value_t *const *inputs, uint32_t num_inputs,
                     const char *task) {
  bool any = false;
  for (uint32_t i = 0; i < num_inputs; i++)
    any |= inputs[i]->data->type == HD_F8E8M0;
  return any && !fuzz_rule_has(fuzz_rule_of(task), "exact") &&
         strncmp(task, "cast", 4) != 0;
}

fuzz_node_t *fuzz_take(fuzz_graph_t *g, fuzz_node_t *node, unsigned wanted) {
  results_t r = {0};
  if (!evaluate_all(g, node, &r) || !are_tame(node, &r, wanted))
    return NULL;
  enter(g, node, &r, wanted);
  return node;
}

fuzz_node_t *fuzz_node(fuzz_graph_t *g, const char *task,
                       fuzz_value_t *const *inputs, uint32_t num_inputs,
                       const hd_attribute_t *const *attributes,
                       uint32_t num_attributes, unsigned wanted) {
  if (is_scale(inputs, num_inputs, task))
    return NULL;
  fuzz_node_t *node = fuzz_new_node(g, task, inputs, num_inputs);
  hd_tensor_type_t types[FUZZ_MAX_INPUTS];
  for (uint32_t i = 0; i < num_inputs; i++)
    types[i] = fuzz_type_of(inputs[i]);
  node->node.task = hd_task_for(hd_library_task(g->context, task), num_inputs);
  node->node.num_attributes = num_attributes;
  const hd_attribute_t **list =
      HD_ARENA_ARRAY(&g->arena, const hd_attribute_t *, num_attributes + 1);
  for (uint32_t i = 0; i < num_attributes; i++)
    list[i] = attributes[i];
  node->node.attributes = list;
  node->binding =
      hd_task_bind(g->context, &g->arena, node->node.task, types, num_inputs,
                   list, num_attributes, (hd_loc_t){0, 0}, task);
  hd_diagnostics_clear(&g->context->diags);
  if (!node->binding || !is_small(node->binding))
    return NULL;
  node->node.num_outputs = (uint32_t)node->node.task->outputs.size;
  return fuzz_take(g, node, wanted);
}

fuzz_value_t *fuzz_reshape(fuzz_graph_t *g, fuzz_value_t *x,
                           const hd_tensor_type_t *type) {
  fuzz_node_t *node = fuzz_new_node(g, "reshape", &x, 1);
  results_t r = {0};
  const hd_value_t *as =
      fuzz_result(
          g, "shape",
          hd_host_tensor_make(&g->arena, type->type, type->shape, type->rank),
          x->noisy)
          ->value;
  r.data[0] = view(g, x->data, as);
  for (int k = 0; k < FUZZ_NOISY; k++)
    r.noisy[k][0] = view(g, x->noisy[k], as);
  node->node.num_outputs = 1;
  enter(g, node, &r, 1);
  return node->outputs[0];
}
