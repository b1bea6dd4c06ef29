// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The walk through a graph (Graph/Expand.h). A node is done once: its function
// puts tasks and sets what its outputs become. A function that asks for a value
// that is not known leaves the node undone; the walk stops there, the segment
// is closed, and after hd_expander_give() the walk begins anew and passes over
// what is done, in graphs of attributes too.
//
// What cannot be lowered is reported, and the walk goes on, so that all of it
// is told at once.

#include "Graph/Expand/Expander.h"
#include "Graph/Expand/LoweringLoop.h"
#include "Graph/Loops.h"
#include "Support/Suggest.h"

#include <string.h>

const hd_value_t hd_value_poison = {.name = "?"};

static hd_context_t *context_of(const hd_expander_t *x) {
  return x->module->context;
}

hd_walk_t *hd_walk_make(hd_expander_t *x, const hd_graph_t *graph,
                        hd_walk_t *outer) {
  hd_arena_t *arena = hd_expander_arena(x);
  hd_walk_t *walk = HD_ARENA_NEW(arena, hd_walk_t);
  walk->graph = graph;
  walk->outer = outer;
  walk->done = HD_ARENA_ARRAY(arena, bool, graph->nodes.size + 1);
  for (size_t i = 0; i < graph->constants.size; i++) {
    const hd_value_t *constant = graph->constants.data[i];
    hd_ptr_map_set(arena, &walk->values, constant,
                   hd_segment_constant(x, constant));
  }
  return walk;
}

const hd_value_t *hd_walk_find(const hd_walk_t *walk, const hd_value_t *value) {
  for (; walk; walk = walk->outer) {
    const hd_value_t *found = hd_ptr_map_get(&walk->values, value);
    if (found)
      return found;
  }
  return NULL;
}

static bool check_inputs(hd_lowering_t *l) {
  const hd_operator_row_t *row = l->row;
  int count = (int)l->node->num_inputs;
  if (row->max_inputs >= 0 && count > row->max_inputs)
    return hd_lower_invalid(l, "it has %d inputs, and the operator takes %d",
                            count, row->max_inputs);
  for (int i = 0; i < row->min_inputs; i++)
    if (i >= count || !l->inputs[i])
      return hd_lower_invalid(l, "input %d is missing", i);
  for (int i = 0; i < count && !hd_operator_takes_lists(row); i++)
    if (l->inputs[i] && l->inputs[i]->form != HD_HOLDS_TENSOR)
      return hd_lower_invalid(
          l, "input %d is a sequence or an optional, and a tensor is needed",
          i);
  return true;
}

// Whether one of names is the attribute's, or it is nobody's business: as ONNX
// has it, __NAME__ is left by a tool for itself.
static bool is_known(const char *name, const char *names, hd_suggestion_t *near,
                     hd_arena_t *arena) {
  size_t length = strlen(name);
  if (length > 4 && strncmp(name, "__", 2) == 0 &&
      strcmp(name + length - 2, "__") == 0)
    return true;
  for (; *names; names += strspn(names, " ")) {
    size_t size = strcspn(names, " ");
    if (size == length && strncmp(name, names, size) == 0)
      return true;
    hd_suggestion_add(near, hd_arena_strndup(arena, names, size));
    names += size;
  }
  return false;
}

// What the operator does not have would do nothing.
static bool check_attributes(hd_lowering_t *l) {
  const hd_node_t *node = l->node;
  const char *names =
      hd_operator_attributes(node->domain, node->op, node->version);
  for (uint32_t i = 0; i < node->num_attributes; i++) {
    const char *name = node->attributes[i]->name;
    hd_suggestion_t near = {.wanted = name};
    char text[100];
    if (!is_known(name, names, &near, hd_lower_arena(l)))
      return hd_lower_invalid(
          l, "version %d of the operator has no attribute '%s'%s",
          node->version, name,
          hd_suggestion_text(&near, "", text, sizeof(text)));
  }
  return true;
}

bool hd_lowering_run(hd_lowering_t *l) {
  const hd_node_t *node = l->node;
  l->row = hd_operator_find(node->domain, node->op, node->version);
  if (!l->row)
    return hd_lower_unsupported(l, "the operator is not supported");
  bool ok =
      check_inputs(l) && check_attributes(l) && l->row->lower(l) && !l->broken;
  for (uint32_t i = 0; ok && i < node->num_outputs; i++)
    if (node->outputs[i] && !l->outputs[i])
      return hd_lower_unsupported(l, "output %u is not supported", i);
  return ok;
}

// A loop of the source: its body is walked once.
static bool lower_loop(hd_lowering_t *l) {
  hd_loop_t loop = hd_node_loop(l->node);
  uint32_t count = l->node->num_inputs;
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(hd_lower_arena(l), const hd_value_t *, count + 2);
  const hd_value_t **results = HD_ARENA_ARRAY(
      hd_lower_arena(l), const hd_value_t *, l->node->num_outputs + 1);
  hd_lower_loop_t made;
  hd_lower_loop_begin(l, &made, loop.steps);
  if (loop.counts)
    inputs[0] = hd_lower_loop_turn(l, &made);
  for (uint32_t i = 0; i < count; i++)
    inputs[loop.counts + i] = i < loop.states
                                  ? hd_lower_loop_state(l, &made, l->inputs[i])
                              : i < loop.states + loop.scanned
                                  ? hd_lower_loop_slice(l, &made, l->inputs[i])
                                  : l->inputs[i];
  bool ok =
      hd_lower_graph_once(l, loop.body, inputs, count + loop.counts, results) &&
      hd_lower_loop_end(l, &made, results, l->node->num_outputs, l->outputs);
  hd_lower_loop_drop(l, &made);
  if (!l->x->wanted)
    return ok;
  l->x->wanted = NULL;
  return hd_lower_unsupported(l, "shapes in a loop's body depend on data");
}

// --- Sizes ---

// What a dimension of a graph on its way is: the size of an input that has it.
static bool size_of(void *argument, const hd_expr_t *leaf, hd_number_t *value) {
  for (const hd_walk_t *walk = argument; walk; walk = walk->outer)
    for (size_t i = 0; i < walk->graph->inputs.size; i++) {
      const hd_value_t *source = walk->graph->inputs.data[i];
      const hd_value_t *made = hd_ptr_map_get(&walk->values, source);
      for (int n = 0; made && n < source->rank && n < made->rank; n++)
        if (leaf->kind == HD_EXPR_VAR && source->shape[n] &&
            source->shape[n]->kind == HD_EXPR_VAR &&
            source->shape[n]->u.var == leaf->u.var)
          return hd_expr_fold_int(made->shape[n], &value->i);
    }
  return false;
}

// False where it divides by zero, passes its type, or is of what is not known.
static bool find_size(const hd_lowering_t *l, const hd_expr_t *size,
                      int64_t *value) {
  bool wrapped = false;
  hd_fold_t fold = {.leaf = size_of, .argument = l->walk, .wrapped = &wrapped};
  hd_number_t number = {0};
  if (!size || !hd_expr_value(&fold, size, &number) || wrapped)
    return false;
  *value = number.i;
  return true;
}

// An attribute of sizes as one of integers.
static const hd_attribute_t *settle_sizes(hd_lowering_t *l,
                                          const hd_attribute_t *a) {
  hd_arena_t *arena = hd_lower_arena(l);
  hd_attribute_t *made = HD_ARENA_COPY(arena, hd_attribute_t, a);
  int64_t *ints = HD_ARENA_ARRAY(arena, int64_t, a->count);
  for (size_t i = 0; i < a->count; i++)
    if (!find_size(l, a->u.sizes[i], &ints[i]))
      return hd_lower_invalid(l, "what attribute '%s' is worth is not known",
                              a->name),
             NULL;
  if (a->kind == HD_ATTRIBUTE_SIZE) {
    made->kind = HD_ATTRIBUTE_INT;
    made->u.i = ints[0];
  } else {
    made->kind = HD_ATTRIBUTE_INTS;
    made->u.ints = ints;
  }
  return made;
}

// Puts a node whose attributes are numbers in the place of one that has sizes.
static bool settle_node(hd_lowering_t *l) {
  hd_arena_t *arena = hd_lower_arena(l);
  uint32_t count = l->node->num_attributes;
  const hd_attribute_t **list = NULL;
  for (uint32_t i = 0; i < count; i++) {
    const hd_attribute_t *a = l->node->attributes[i];
    if (a->kind != HD_ATTRIBUTE_SIZE && a->kind != HD_ATTRIBUTE_SIZES)
      continue;
    if (!list) {
      hd_node_t *node = HD_ARENA_NEW(arena, hd_node_t);
      list = HD_ARENA_ARRAY(arena, const hd_attribute_t *, count);
      memcpy(list, l->node->attributes, count * sizeof *list);
      *node = *l->node;
      node->attributes = list;
      l->node = node;
    }
    if (!(list[i] = settle_sizes(l, a)))
      return false;
  }
  return true;
}

static bool lower_reshape(hd_lowering_t *l) {
  const hd_value_t *to = l->node->outputs[0];
  int64_t shape[HD_TENSOR_MAX_RANK];
  bool ok = to->rank >= 0 && to->rank <= HD_TENSOR_MAX_RANK;
  for (int i = 0; ok && i < to->rank; i++)
    ok = find_size(l, to->shape[i], &shape[i]);
  if (!ok)
    return hd_lower_unsupported(l, "the shape of '%s' is not known", to->name);
  l->outputs[0] = hd_lower_reshape(l, l->inputs[0], shape, (unsigned)to->rank);
  return l->outputs[0] != NULL;
}

// A node of the source that names a task itself.
static bool lower_own(hd_lowering_t *l) {
  const hd_node_t *node = l->node;
  hd_attributes_t attributes = {0};
  for (uint32_t i = 0; i < node->num_attributes; i++)
    hd_vec_push(hd_lower_arena(l), &attributes, node->attributes[i]);
  if (node->task)
    return hd_lower_task(l, node->op, l->inputs, node->num_inputs, &attributes,
                         l->outputs) != NULL;
  return hd_node_is_loop(node) ? lower_loop(l) : lower_reshape(l);
}

// Finds what the inputs have become. False where one of them could not be made.
static bool find_inputs(hd_lowering_t *l) {
  for (uint32_t i = 0; i < l->node->num_inputs; i++) {
    const hd_value_t *input = l->node->inputs[i];
    l->inputs[i] = input ? hd_walk_find(l->walk, input) : NULL;
    if (l->inputs[i] == &hd_value_poison)
      return false;
    if (input && !l->inputs[i])
      return hd_lower_invalid(l, "'%s' is used before it is given",
                              hd_value_label(input));
  }
  return true;
}

// False where the walk stops.
static bool lower_node(hd_expander_t *x, hd_walk_t *walk, size_t index) {
  hd_arena_t *arena = hd_expander_arena(x);
  const hd_node_t *node = walk->graph->nodes.data[index];
  hd_lowering_t l = {.x = x,
                     .walk = walk,
                     .index = index,
                     .node = node,
                     .version = node->version,
                     .num_inputs = node->num_inputs};
  l.inputs = HD_ARENA_ARRAY(arena, const hd_value_t *, node->num_inputs + 1);
  l.outputs = HD_ARENA_ARRAY(arena, const hd_value_t *, node->num_outputs + 1);
  hd_diagnostics_t *diags = &context_of(x)->diags;
  hd_diagnostics_mark_t mark = hd_diagnostics_mark(diags);
  bool ok = find_inputs(&l) && settle_node(&l) &&
            (node->domain ? hd_lowering_run(&l) : lower_own(&l));
  if (!ok)
    hd_diagnostics_name_node(diags, mark, hd_node_label(node));
  if (!ok && x->wanted)
    return false;
  x->failed |= !ok;
  for (uint32_t i = 0; i < node->num_outputs; i++)
    if (node->outputs[i])
      hd_ptr_map_set(arena, &walk->values, node->outputs[i],
                     ok ? l.outputs[i] : &hd_value_poison);
  return true;
}

bool hd_walk_run(hd_expander_t *x, hd_walk_t *walk) {
  for (size_t i = 0; i < walk->graph->nodes.size; i++) {
    if (walk->done[i])
      continue;
    hd_budget_check(&context_of(x)->budget);
    if (!lower_node(x, walk, i))
      return false;
    walk->done[i] = true;
  }
  return true;
}

hd_expander_t *hd_expander_create(hd_module_t *module, hd_arena_t *arena,
                                  const hd_graph_t *graph,
                                  const hd_tensor_type_t *inputs,
                                  const hd_host_tensor_t *const *data) {
  hd_expander_t *x = HD_ARENA_NEW(arena, hd_expander_t);
  x->module = module;
  x->arena = arena;
  x->walk = hd_walk_make(x, graph, NULL);
  for (size_t i = 0; i < graph->inputs.size; i++) {
    const hd_value_t *source = graph->inputs.data[i];
    hd_value_t *value = hd_segment_value(x, source->name, &inputs[i]);
    value->label = source->label;
    hd_ptr_map_set(arena, &x->walk->values, source, value);
    if (data && data[i])
      hd_ptr_map_set(arena, &x->inputs, value, data[i]);
  }
  return x;
}

void hd_expander_follow(hd_expander_t *x, const hd_expander_t *leader) {
  x->leader = leader;
  x->keeps_reshapes = true;
}

const hd_value_t *hd_expander_input(const hd_expander_t *x, size_t i) {
  return hd_ptr_map_get(&x->walk->values, x->walk->graph->inputs.data[i]);
}

// Names the node that gives what no caller can take.
static bool refuse_output(hd_expander_t *x, const hd_value_t *source) {
  const hd_graph_t *graph = x->walk->graph;
  const char *name = hd_value_label(source);
  for (size_t i = 0; i < graph->nodes.size; i++)
    for (uint32_t k = 0; k < graph->nodes.data[i]->num_outputs; k++) {
      hd_lowering_t l = {.x = x, .node = graph->nodes.data[i]};
      if (l.node->outputs[k] == source)
        return hd_lower_unsupported(
            &l, "the output '%s' is a sequence or an optional", name);
    }
  return hd_error(&context_of(x)->diags, source->loc, HD_E1104, name,
                  "an output that is a sequence or an optional");
}

// Sets the outputs of the last segment. False where one could not be made.
static bool take_outputs(hd_expander_t *x) {
  const hd_graph_t *graph = x->walk->graph;
  for (size_t i = 0; i < graph->outputs.size; i++) {
    const hd_value_t *source = graph->outputs.data[i];
    const hd_value_t *value = hd_walk_find(x->walk, source);
    if (!value)
      return hd_error(&context_of(x)->diags, source->loc, HD_E1103,
                      hd_value_label(source), "this output is never given");
    if (value->form != HD_HOLDS_TENSOR)
      return refuse_output(x, source);
    hd_vec_push(hd_expander_arena(x), &x->segment->outputs, value);
  }
  return true;
}

hd_expand_state_t hd_expander_run(hd_expander_t *x,
                                  const hd_graph_t **segment) {
  *segment = NULL;
  x->wanted = NULL;
  x->finding = NULL;
  hd_segment_begin(x);
  bool done = hd_walk_run(x, x->walk);
  if (x->failed || (!done && !x->wanted))
    return HD_EXPAND_FAILED;
  if (!done)
    hd_segment_keep(x);
  else if (!take_outputs(x))
    return HD_EXPAND_FAILED;
  hd_segment_end(x);
  *segment = hd_graph_hoist(x->module, x->segment);
  return done ? HD_EXPAND_DONE : HD_EXPAND_MORE;
}

const hd_value_t *hd_expander_wanted(const hd_expander_t *x) {
  return x->wanted;
}

bool hd_expander_looked(const hd_expander_t *x) { return x->looked; }

void hd_expander_give(hd_expander_t *x, const hd_value_t *value,
                      const hd_host_tensor_t *data) {
  hd_ptr_map_set(hd_expander_arena(x), &x->given, value, data);
}

// Nodes that one operator, which is not supported, stands in the way of.
typedef struct blocked {
  const hd_node_t *first;
  size_t count;
  hd_buffer_t labels; // In quotes, comma between them.
} blocked_t;

typedef struct check {
  hd_expander_t *x;
  HD_VEC(blocked_t) blocked;
} check_t;

enum { MAX_LABELS = 2000 }; // Bytes of a message.

static void add_blocked(check_t *c, const hd_node_t *node) {
  size_t i = 0;
  while (i < c->blocked.size &&
         (strcmp(c->blocked.data[i].first->op, node->op) != 0 ||
          strcmp(c->blocked.data[i].first->domain, node->domain) != 0))
    i++;
  if (i == c->blocked.size) {
    blocked_t blocked = {.first = node};
    hd_vec_push(hd_expander_arena(c->x), &c->blocked, blocked);
  }
  blocked_t *blocked = &c->blocked.data[i];
  const char *label = node->label;
  for (uint32_t k = 0; k < node->num_outputs && !label; k++)
    label = node->outputs[k] ? node->outputs[k]->name : NULL;
  if (blocked->labels.size < MAX_LABELS)
    hd_buffer_printf(&blocked->labels, "%s'%.200s'", blocked->count ? ", " : "",
                     label ? label : node->op);
  blocked->count++;
}

static void check_graph(check_t *c, const hd_graph_t *graph) {
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    if (node->domain && hd_operator_is_refused(hd_operator_find(
                            node->domain, node->op, node->version)))
      add_blocked(c, node);
    for (uint32_t k = 0; k < node->num_attributes; k++)
      if (node->attributes[k]->kind == HD_ATTRIBUTE_GRAPH)
        check_graph(c, node->attributes[k]->u.graph);
  }
}

bool hd_expander_check(hd_module_t *module, const hd_graph_t *graph) {
  hd_expander_t x = {.module = module, .arena = &module->arena};
  check_t c = {.x = &x};
  check_graph(&c, graph);
  for (size_t i = 0; i < c.blocked.size; i++) {
    blocked_t *blocked = &c.blocked.data[i];
    const hd_node_t *node = blocked->first;
    hd_diagnostics_t *diags = &module->context->diags;
    hd_diagnostics_mark_t mark = hd_diagnostics_mark(diags);
    const char *text =
        hd_arena_printf(&module->arena, "operator %s.%s, version %d",
                        node->domain, node->op, node->version);
    hd_error(diags, node->loc, HD_E1104, text,
             hd_arena_printf(&module->arena, "not supported; %zu node%s: %s%s",
                             blocked->count, blocked->count == 1 ? "" : "s",
                             hd_buffer_text(&blocked->labels),
                             blocked->labels.size < MAX_LABELS ? "" : ", ..."));
    hd_diagnostics_name_node(diags, mark, hd_node_label(node));
    hd_buffer_fini(&blocked->labels);
  }
  return c.blocked.size == 0;
}
