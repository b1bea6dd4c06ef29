// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass `lower-precision`: chooses the type in which each node computes. To
// it f32, f16 and bf16 are one float, however the model wrote it; f64, integers
// and bools stay.
//
//   c = matmul(a, b)            a_f16 = cast(a) { U = f16 }
//   d = add(c, bias)            b_f16 = cast(b) { U = f16 }
//   e = transpose(d) { ... }    c = matmul(a_f16, b_f16) { R = f32 }
//   f = matmul(e, w)            d = add(c, bias)                // f32
//                               d_f16 = cast(d) { U = f16 }
//                               e_f16 = transpose(d_f16) { ... }
//                               f = matmul(e_f16, w_f16) { R = f32 }
//
// What a task computes says how it is treated (Graph/Arithmetic.h). Products
// take narrow operands and give f32; where their result is wanted narrow and
// nothing stands between, they round it themselves. What moves elements does so
// in the type in which they are wanted. All else is f32: softmax, norms, sums
// and exponentials for their range, and what follows a product because it is
// fused with it, so that a result is rounded once, where it is stored. A value
// that a product wants is stored narrow, and whoever else reads it takes that:
// it is not stored twice. tf32 takes as many bytes as f32, so there operands
// alone are rounded. What depends on constants alone is computed in f32.
//
// Requires: the graph is expanded.

#include "Graph/Loops.h"
#include "Graph/Precision/PrecisionState.h"
#include "IR/Text/Library.h"

// What stands for a value in the new graph, by type.
typedef struct versions {
  struct versions *self; // For who finds it read alone.
  const hd_value_t *as[HD_SCALAR_COUNT];
  hd_scalar_t stored; // The one that its node gives; others come of it.
} versions_t;

static const struct {
  const char *name;
  hd_scalar_t narrow;
} precisions[HD_PRECISIONS] = {
    [HD_PRECISION_MODEL] = {"model", HD_VOID},
    [HD_PRECISION_F32] = {"f32", HD_VOID},
    [HD_PRECISION_TF32] = {"tf32", HD_TF32},
    [HD_PRECISION_F16] = {"f16", HD_F16},
    [HD_PRECISION_BF16] = {"bf16", HD_BF16},
};

const char *hd_precision_name(hd_precision_t precision) {
  return precisions[precision].name;
}

hd_scalar_t hd_precision_operand(hd_precision_t precision, hd_scalar_t type) {
  hd_scalar_t narrow = precisions[precision].narrow;
  if (precision == HD_PRECISION_MODEL || !hd_precision_is_float(type))
    return type;
  return narrow == HD_VOID ? HD_F32 : narrow;
}

static versions_t *versions_of(hd_precision_pass_t *l,
                               const hd_value_t *value) {
  const versions_t *found = hd_ptr_map_get(&l->versions, value);
  if (found)
    return found->self;
  versions_t *versions = HD_ARENA_NEW(l->arena, versions_t);
  versions->self = versions;
  hd_ptr_map_set(l->arena, &l->versions, value, versions);
  return versions;
}

static void push_node(hd_precision_pass_t *l, const hd_node_t *node) {
  hd_vec_push(l->arena, &l->to->nodes, node);
}

// A new value like that one, of a type.
static const hd_value_t *like(hd_precision_pass_t *l, const hd_value_t *value,
                              hd_scalar_t type) {
  hd_value_t *copy = HD_ARENA_COPY(l->arena, hd_value_t, value);
  copy->type = type;
  copy->constant = NULL;
  copy->label = NULL;
  copy->name = hd_name_unique(
      l->arena, &l->names,
      hd_arena_printf(l->arena, "%s_%s", value->name, hd_scalar_name(type)));
  return copy;
}

static const hd_attribute_t *type_attribute(hd_precision_pass_t *l,
                                            const char *name, hd_scalar_t type,
                                            hd_loc_t loc) {
  hd_attribute_t *attribute = HD_ARENA_NEW(l->arena, hd_attribute_t);
  *attribute = (hd_attribute_t){
      .name = name, .kind = HD_ATTRIBUTE_TYPE, .loc = loc, .u.type = type};
  return attribute;
}

static void put_cast(hd_precision_pass_t *l, const hd_value_t *from,
                     const hd_value_t *to) {
  const hd_node_t *node = hd_node_between(
      l->arena, "cast", hd_library_task(l->module->context, "cast"), from, to,
      type_attribute(l, "U", to->type, to->loc), to->loc);
  push_node(l, node);
  l->changed = true;
}

// A constant of one element, rounded here and now: who reads it has a number
// then, and no tensor. NULL: it is none.
static const hd_value_t *rounded(hd_precision_pass_t *l,
                                 const hd_value_t *value, hd_scalar_t type) {
  const hd_host_tensor_t *data =
      value->constant ? hd_constant_elements(l->arena, value) : NULL;
  if (!data || data->count != 1)
    return NULL;
  hd_value_t *made = HD_ARENA_COPY(l->arena, hd_value_t, like(l, value, type));
  hd_host_tensor_t *tensor =
      hd_host_tensor_make(l->arena, type, data->shape, data->rank);
  hd_host_tensor_set(tensor, 0, hd_host_tensor_get(data, 0));
  made->constant = HD_ARENA_NEW(l->arena, hd_constant_t);
  made->constant->tensor = tensor;
  hd_vec_push(l->arena, &l->to->constants, (const hd_value_t *)made);
  l->changed = true;
  return made;
}

// The value in a type, converted where it is not there yet.
static const hd_value_t *as_type(hd_precision_pass_t *l,
                                 const hd_value_t *value, hd_scalar_t type) {
  versions_t *versions = versions_of(l, value);
  if (versions->as[type])
    return versions->as[type];
  const hd_value_t *from = versions->as[versions->stored];
  const hd_value_t *to = rounded(l, from, type);
  if (!to) {
    to = like(l, value, type);
    put_cast(l, from, to);
  }
  versions->as[type] = to;
  return to;
}

static void store(hd_precision_pass_t *l, const hd_value_t *value,
                  const hd_value_t *version) {
  versions_t *versions = versions_of(l, value);
  *versions = (versions_t){.self = versions};
  versions->as[version->type] = version;
  versions->stored = version->type;
}

// Settles what stands for a value that its node has given. An output of the
// graph is there in its own type; what is wanted narrow is stored so, and in no
// other type.
static void settle(hd_precision_pass_t *l, const hd_value_t *value,
                   const hd_value_t *version) {
  const hd_precision_facts_t *facts = hd_precision_facts(l, value);
  store(l, value, version);
  if (facts->output && version != value) {
    put_cast(l, version, value);
    versions_of(l, value)->as[value->type] = value;
  } else if (hd_precision_stores_narrow(l, value) &&
             version->type != l->narrow) {
    store(l, value, as_type(l, value, l->narrow));
  }
}

// The type in which elements are moved: that in which they are wanted, else
// that in which they are.
static hd_scalar_t moving_type(hd_precision_pass_t *l, const hd_node_t *node) {
  const hd_value_t *first = NULL;
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (hd_precision_stores_narrow(l, node->outputs[i]))
      return l->narrow;
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    const hd_value_t *input = node->inputs[i];
    if (!hd_precision_is_float(input->type))
      continue;
    if (first && versions_of(l, first)->stored != versions_of(l, input)->stored)
      return HD_F32;
    first = input;
  }
  hd_scalar_t type = versions_of(l, first)->stored;
  return !node->task || hd_precision_takes(node, type) ? type : HD_F32;
}

// Lets a product leave its result as it was summed up, in f32, where its task
// has that choice. node: in the graph; copy: with the operands that it takes
// now.
static void choose_result(hd_precision_pass_t *l, const hd_node_t *node,
                          hd_node_t *copy, bool wide) {
  const char *choice = node->task ? hd_precision_choice(node->task) : NULL;
  if (!choice)
    return;
  hd_task_type_t result = node->task->outputs.data[0]->type;
  const hd_attribute_t *given = hd_node_attribute(node, choice);
  wide |= given && given->u.type == HD_F32;
  const hd_attribute_t **attributes = HD_ARENA_ARRAY(
      l->arena, const hd_attribute_t *, node->num_attributes + 1);
  copy->attributes = attributes;
  copy->num_attributes = 0;
  for (uint32_t i = 0; i < node->num_attributes; i++)
    if (node->attributes[i] != given)
      attributes[copy->num_attributes++] = node->attributes[i];
  if (wide && hd_precision_resolve(copy, result, HD_VOID) != HD_F32)
    attributes[copy->num_attributes++] =
        type_attribute(l, choice, HD_F32, node->loc);
}

// Puts a node that computes in a type; results in what follows from it.
static void put_in(hd_precision_pass_t *l, const hd_node_t *node,
                   hd_scalar_t type, bool wide) {
  hd_node_t *copy = HD_ARENA_COPY(l->arena, hd_node_t, node);
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(l->arena, const hd_value_t *, node->num_inputs + 1);
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(l->arena, const hd_value_t *, node->num_outputs + 1);
  copy->inputs = inputs;
  copy->outputs = outputs;
  bool same = true;
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    inputs[i] = as_type(l, node->inputs[i],
                        hd_precision_is_float(node->inputs[i]->type)
                            ? type
                            : node->inputs[i]->type);
    same &= inputs[i] == node->inputs[i];
  }
  choose_result(l, node, copy, wide);
  same &= copy->num_attributes == node->num_attributes;
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    const hd_value_t *output = node->outputs[i];
    if (!output)
      continue;
    hd_scalar_t result =
        node->task ? hd_precision_resolve(
                         copy, copy->task->outputs.data[i]->type, HD_VOID)
                   : type;
    outputs[i] = output->type == result ? output : like(l, output, result);
    same &= outputs[i] == output;
  }
  push_node(l, same ? node : copy);
  l->changed |= !same;
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (node->outputs[i])
      settle(l, node->outputs[i], outputs[i]);
}

// Puts a node as it is: each operand in its own type.
static void put_as_is(hd_precision_pass_t *l, const hd_node_t *node) {
  hd_node_t *copy = HD_ARENA_NEW(l->arena, hd_node_t);
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(l->arena, const hd_value_t *, node->num_inputs + 1);
  bool same = true;
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    inputs[i] = as_type(l, node->inputs[i], node->inputs[i]->type);
    same &= inputs[i] == node->inputs[i];
  }
  *copy = *node;
  copy->inputs = inputs;
  push_node(l, same ? node : copy);
  l->changed |= !same;
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (node->outputs[i])
      store(l, node->outputs[i], node->outputs[i]);
}

// A conversion gives what it is given.
static void put_alias(hd_precision_pass_t *l, const hd_node_t *node) {
  const hd_value_t *from = node->inputs[0], *to = node->outputs[0];
  if (hd_precision_facts(l, to)->output) {
    const versions_t *versions = versions_of(l, from);
    put_cast(l, versions->as[versions->stored], to);
    store(l, to, to);
    return;
  }
  hd_ptr_map_set(l->arena, &l->versions, to, versions_of(l, from));
  l->changed = true;
}

static void put_product(hd_precision_pass_t *l, const hd_node_t *node) {
  bool narrow = true;
  for (uint32_t i = 0; i < node->num_outputs; i++)
    narrow &= hd_precision_stores_narrow(l, node->outputs[i]);
  put_in(l, node, l->narrow, !narrow);
}

static void put_node(hd_precision_pass_t *l, const hd_node_t *node,
                     hd_treatment_t treatment) {
  switch (treatment) {
  case HD_TREAT_KEEP:
    put_as_is(l, node);
    break;
  case HD_TREAT_MOVE:
    put_in(l, node, moving_type(l, node), false);
    break;
  case HD_TREAT_PRODUCT:
    put_product(l, node);
    break;
  case HD_TREAT_WIDE:
    put_in(l, node, HD_F32, false);
    break;
  case HD_TREAT_ALIAS:
    put_alias(l, node);
    break;
  }
}

// A conversion that a group's node asks for, and that none before the group
// did, stands within the group: it joins it.
static void close_groups(hd_precision_pass_t *l) {
  const hd_node_t **nodes = l->to->nodes.data;
  for (size_t i = 0, next = 0; i < l->to->nodes.size; i++) {
    uint32_t group = i ? nodes[i - 1]->group : 0;
    next = next < i ? i : next;
    while (next < l->to->nodes.size && !nodes[next]->group)
      next++;
    if (!group || nodes[i]->group || next == l->to->nodes.size ||
        nodes[next]->group != group)
      continue;
    hd_node_t *copy = HD_ARENA_COPY(l->arena, hd_node_t, nodes[i]);
    copy->group = group;
    nodes[i] = copy;
  }
  hd_graph_settle_groups(l->arena, l->to);
}

static void build(hd_precision_pass_t *l) {
  const hd_graph_t *graph = l->from;
  for (size_t i = 0; i < graph->inputs.size; i++)
    store(l, graph->inputs.data[i], graph->inputs.data[i]);
  for (size_t i = 0; i < graph->constants.size; i++)
    settle(l, graph->constants.data[i], graph->constants.data[i]);
  for (size_t i = 0; i < graph->nodes.size; i++) {
    hd_budget_check(&l->module->context->budget);
    put_node(l, l->nodes[i], l->treatments[i]);
  }
  close_groups(l);
}

static void tell(hd_precision_pass_t *l, const hd_value_t *value,
                 hd_ptr_map_t *held) {
  const versions_t *versions = versions_of(l, value);
  hd_ptr_map_set(l->arena, held, value,
                 hd_precision_facts(l, value)->output
                     ? value
                     : versions->as[versions->stored]);
}

static const hd_graph_t *lower(hd_module_t *module, const hd_graph_t *graph,
                               hd_precision_t precision, hd_ptr_map_t *held) {
  hd_precision_pass_t l = {.module = module,
                           .arena = &module->arena,
                           .from = graph,
                           .precision = precision,
                           .narrow = precisions[precision].narrow};
  if (precision == HD_PRECISION_MODEL)
    return graph;
  l.stores_narrow = l.narrow != HD_VOID && hd_scalar_bits(l.narrow) < 32;
  l.nodes = HD_ARENA_ARRAY(l.arena, const hd_node_t *, graph->nodes.size + 1);
  l.treatments = HD_ARENA_ARRAY(l.arena, hd_treatment_t, graph->nodes.size + 1);
  if (!hd_precision_plan(&l))
    return NULL;
  hd_graph_t *to = hd_graph_without_nodes(l.arena, graph);
  l.to = to;
  hd_names_take(l.arena, &l.names, graph);
  build(&l);
  for (size_t i = 0; held && i < graph->nodes.size; i++)
    for (uint32_t k = 0; k < graph->nodes.data[i]->num_outputs; k++)
      if (graph->nodes.data[i]->outputs[k])
        tell(&l, graph->nodes.data[i]->outputs[k], held);
  return l.changed ? to : graph;
}

typedef struct bodies {
  hd_module_t *module;
  hd_precision_t precision;
} bodies_t;

static const hd_graph_t *lower_body(void *argument, const hd_graph_t *body) {
  const bodies_t *b = argument;
  return hd_graph_lower_precision(b->module, body, b->precision, NULL);
}

// What goes around and out of a loop keeps its type; conversions of what does
// not depend on the turn come before the loop.
const hd_graph_t *hd_graph_lower_precision(hd_module_t *module,
                                           const hd_graph_t *graph,
                                           hd_precision_t precision,
                                           hd_ptr_map_t *held) {
  bodies_t bodies = {module, precision};
  graph = lower(module, graph, precision, held);
  if (graph)
    graph = hd_graph_change_bodies(&module->arena, graph, lower_body, &bodies);
  return graph ? hd_graph_hoist(module, graph) : NULL;
}
