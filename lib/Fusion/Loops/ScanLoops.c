// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops whose states fade and are added to become scans, and what else is in
// their bodies is computed for all turns at once:
//
//   h, ys = loop(h0, as, bs, cs) { steps = 128, states = 1, scanned = 3,
//     body = graph(h: f32[64, 16], a: .., b: .., c: f32[16, 1]) -> g, y {
//     t = mul(a, h)
//     g = add(t, b)
//     y = matmul(g, c)
//   } }
//
// becomes
//
//   gs = mul_states(as, bs, h0)     gs[i] = as[i] * gs[i - 1] + bs[i]
//   ys = matmul_turns(gs, cs)
//   h = last_turn(gs)
//
// which is a few launches in the place of some for each turn. A state is read
// and written each turn in a loop, too, but there in one place: here those of
// all turns are kept where anything else than the last one is read, up to a
// bound. Requires tasks, known shapes, and bodies whose turns' numbers nobody
// reads.
#include "Fusion/Loops/ScanState.h"
#include "Fusion/Loops/Turns.h"
#include "Fusion/Passes.h"
#include "Graph/Names.h"
#include "Graph/Prepare.h"
#include "Schedule/Schedule.h"
#include "Schedule/Terms/Merge.h"
#include "Schedule/Terms/Prepare.h"
#include "Support/Steps.h"

#include <math.h>
#include <string.h>

enum { MOST_STATES = 64, MOST_NODES = 64 };
// Of a loop's states for all turns, together, bytes.
static const double MOST_BYTES = 0x1p28;

// --- What is known of a body ---

static uint64_t states_of(const hd_scanner_t *s, const hd_value_t *value) {
  const uint64_t *states = value ? hd_ptr_map_get(&s->states, value) : NULL;
  return states ? *states : 0;
}

static void set_states(hd_scanner_t *s, const hd_value_t *value,
                       uint64_t states) {
  uint64_t *box = HD_ARENA_NEW(s->arena, uint64_t);
  *box = states;
  if (value)
    hd_ptr_map_set(s->arena, &s->states, value, box);
}

static uint64_t states_read(const hd_scanner_t *s, const hd_node_t *node) {
  uint64_t states = 0;
  for (uint32_t i = 0; i < node->num_inputs; i++)
    states |= states_of(s, node->inputs[i]);
  return states;
}

static bool reads_value(const hd_graph_t *body, const hd_value_t *value) {
  bool reads = false;
  for (size_t i = 0; i < body->nodes.size; i++)
    for (uint32_t k = 0; k < body->nodes.data[i]->num_inputs; k++)
      reads |= body->nodes.data[i]->inputs[k] == value;
  for (size_t i = 0; i < body->outputs.size; i++)
    reads |= body->outputs.data[i] == value;
  return reads;
}

// NULL, or why a loop stays one.
static const char *look_at_body(hd_scanner_t *s) {
  const hd_graph_t *body = s->loop.body;
  if (!s->loop.states || s->loop.states > MOST_STATES)
    return "it has no states, or many";
  if (body->nodes.size > MOST_NODES)
    return "its body is large";
  if (s->loop.counts && reads_value(body, body->inputs.data[0]))
    return "the turn's number is read";
  for (uint32_t k = 0; k < s->loop.states; k++)
    set_states(s, body->inputs.data[s->loop.counts + k], UINT64_C(1) << k);
  for (size_t i = 0; i < body->nodes.size; i++) {
    const hd_node_t *node = body->nodes.data[i];
    if ((!node->task && !hd_node_is_reshape(node)) || node->group ||
        node->schedule)
      return "its body has more than tasks";
    uint64_t states = states_read(s, node);
    for (uint32_t k = 0; k < node->num_outputs; k++)
      set_states(s, node->outputs[k], states);
  }
  return NULL;
}

static bool is_after(const hd_scanner_t *s, const hd_value_t *value) {
  bool is = false;
  for (uint32_t k = 0; k < s->loop.states; k++)
    is |= s->loop.body->outputs.data[k] == value;
  return is;
}

static bool is_wanted(const hd_scanner_t *s, const hd_value_t *value) {
  return value && hd_ptr_map_get(&s->wanted, value);
}

// Whether a node that knows a state gives what is needed of every turn. What a
// state becomes the scan gives.
static bool is_needed(const hd_scanner_t *s, const hd_node_t *node) {
  bool needed = false;
  for (uint32_t k = 0; k < node->num_outputs; k++)
    needed |= is_wanted(s, node->outputs[k]) && !is_after(s, node->outputs[k]);
  return needed;
}

static void find_wanted(hd_scanner_t *s) {
  const hd_graph_t *body = s->loop.body;
  for (uint32_t k = s->loop.states; k < s->node->num_outputs; k++)
    if (s->node->outputs[k])
      hd_ptr_map_set(s->arena, &s->wanted, body->outputs.data[k], s->node);
  for (size_t i = body->nodes.size; i-- > 0;) {
    const hd_node_t *node = body->nodes.data[i];
    bool needed = states_read(s, node) && is_needed(s, node);
    for (uint32_t k = 0; needed && k < node->num_inputs; k++)
      hd_ptr_map_set(s->arena, &s->wanted, node->inputs[k], node);
  }
}

// --- States ---

// The nodes that a value is made by from states, in the body's order.
static void find_makers(const hd_scanner_t *s, const hd_value_t *value,
                        hd_scan_nodes_t *makers) {
  const hd_graph_t *body = s->loop.body;
  hd_ptr_map_t wanted = {0};
  bool *takes = HD_ARENA_ARRAY(s->arena, bool, body->nodes.size + 1);
  hd_ptr_map_set(s->arena, &wanted, value, value);
  for (size_t i = body->nodes.size; i-- > 0;) {
    const hd_node_t *node = body->nodes.data[i];
    for (uint32_t k = 0; states_read(s, node) && k < node->num_outputs; k++)
      takes[i] |= node->outputs[k] && hd_ptr_map_get(&wanted, node->outputs[k]);
    for (uint32_t k = 0; takes[i] && k < node->num_inputs; k++)
      hd_ptr_map_set(s->arena, &wanted, node->inputs[k], node);
  }
  for (size_t i = 0; i < body->nodes.size; i++)
    if (takes[i])
      hd_vec_push(s->arena, makers, body->nodes.data[i]);
}

// What the state becomes by a turn, as one task.
static bool merge_makers(hd_scanner_t *s, const hd_value_t *after,
                         hd_merged_t *merged) {
  hd_scan_nodes_t makers = {0};
  find_makers(s, after, &makers);
  hd_merge_part_t *parts =
      HD_ARENA_ARRAY(s->arena, hd_merge_part_t, makers.size + 1);
  for (size_t i = 0; i < makers.size; i++) {
    const hd_node_t *node = makers.data[i];
    const hd_flattened_t *flattened =
        node->task ? hd_fusion_flatten(s->fusion, node) : NULL;
    if (node->task && !flattened)
      return false;
    parts[i] = (hd_merge_part_t){flattened ? flattened->flat : NULL, node};
  }
  if (!makers.size ||
      !hd_flat_merge(s->arena, "state", parts, makers.size, &after, 1, merged))
    return false;
  hd_task_inline_all(s->arena, merged->flat);
  return true;
}

static bool is_zeros(hd_scanner_t *s, const hd_value_t *value) {
  const hd_host_tensor_t *data =
      value->constant ? hd_constant_elements(s->arena, value) : NULL;
  hd_tensor_type_t type = hd_scheduled_type(value);
  int64_t count = 1;
  for (unsigned i = 0; i < type.rank; i++)
    count *= type.shape[i];
  bool zeros = data;
  for (int64_t i = 0; zeros && i < count; i++) {
    double x = hd_host_tensor_get(data, i);
    zeros = x == 0 && !signbit(x);
  }
  return zeros;
}

static void put_before(hd_scanner_t *s, const hd_value_t *state,
                       const hd_value_t *given, const hd_value_t *after) {
  hd_tensor_type_t type = hd_scheduled_type(state);
  const hd_value_t *before = hd_scan_value(s, state, s->loop.steps);
  const hd_value_t *inputs[] = {after, given};
  hd_scan_put_task(s,
                   hd_turns_before(s->arena, type.type, type.shape, type.rank,
                                   s->loop.steps),
                   "before_turns", inputs, &before);
  hd_scan_set_outer(s, state, before, true);
}

// Puts the state's values after and before each turn, or the last one alone
// where nobody reads others; NULL, or why not.
static const char *put_state(hd_scanner_t *s, uint32_t k) {
  const hd_value_t *state = s->loop.body->inputs.data[s->loop.counts + k];
  const hd_value_t *after = s->loop.body->outputs.data[k];
  const hd_value_t *to = s->node->outputs[k];
  bool each = is_wanted(s, after) || is_wanted(s, state);
  hd_merged_t merged = {0};
  if (!each && !to)
    return NULL;
  if (states_of(s, after) != UINT64_C(1) << k)
    return "a state is made of others";
  s->bytes += each ? (double)s->loop.steps * hd_scheduled_bytes(state) : 0;
  if (s->bytes > MOST_BYTES)
    return "its states of all turns are large";
  if (!merge_makers(s, after, &merged))
    return "what a state becomes is not one task";
  size_t own = merged.inputs.size, count = 0;
  bool *turned = HD_ARENA_ARRAY(s->arena, bool, merged.inputs.size + 1);
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(s->arena, const hd_value_t *, merged.inputs.size + 1);
  for (size_t i = 0; i < merged.inputs.size; i++) {
    const hd_value_t *value = merged.inputs.data[i];
    if (value == state) {
      own = i;
      continue;
    }
    const hd_scan_outer_t *outer = hd_ptr_map_get(&s->outer, value);
    if (!outer)
      return "what a state is made of is not there before the loop";
    turned[i] = outer->turned;
    inputs[count++] = outer->value;
  }
  inputs[count] = s->node->inputs[k];
  hd_task_t *scan =
      own < merged.inputs.size
          ? hd_turns_fading(s->arena, merged.flat, own, turned, s->loop.steps,
                            is_zeros(s, s->node->inputs[k]), each)
          : NULL;
  if (!scan)
    return "a state is no multiple of itself and something more";
  if (!each) {
    hd_scan_put_task(s, scan, "last_state", inputs, &to);
    return NULL;
  }
  const hd_value_t *all = hd_scan_value(s, after, s->loop.steps);
  hd_scan_put_task(s, scan, "states", inputs, &all);
  hd_scan_set_outer(s, after, all, true);
  if (is_wanted(s, state))
    put_before(s, state, s->node->inputs[k], all);
  return NULL;
}

// --- Other nodes ---

// A constant of the body stands outside under a name of its own.
static void put_constant(hd_scanner_t *s, const hd_value_t *value) {
  hd_value_t *copy = HD_ARENA_COPY(s->arena, hd_value_t, value);
  copy->name = hd_name_unique(s->arena, &s->names, value->name);
  hd_vec_push(s->arena, &s->constants, (const hd_value_t *)copy);
  hd_scan_set_outer(s, value, copy, false);
}

static void put_inputs(hd_scanner_t *s) {
  const hd_graph_t *body = s->loop.body;
  for (uint32_t i = s->loop.states; i < s->node->num_inputs; i++)
    hd_scan_set_outer(s, body->inputs.data[s->loop.counts + i],
                      s->node->inputs[i], i < s->loop.states + s->loop.scanned);
  for (size_t i = 0; i < body->constants.size; i++)
    put_constant(s, body->constants.data[i]);
}

// A node for all turns, once what it reads is there.
static const char *put_node(hd_scanner_t *s, const hd_node_t *node) {
  bool *turned = HD_ARENA_ARRAY(s->arena, bool, node->num_inputs + 1);
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(s->arena, const hd_value_t *, node->num_inputs + 1);
  const hd_value_t **outputs =
      HD_ARENA_ARRAY(s->arena, const hd_value_t *, node->num_outputs + 1);
  bool any = false;
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    const hd_scan_outer_t *outer = hd_ptr_map_get(&s->outer, node->inputs[i]);
    inputs[i] = outer->value;
    any |= turned[i] = outer->turned;
  }
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    if (!node->outputs[i])
      continue;
    outputs[i] = hd_scan_value(s, node->outputs[i], any ? s->loop.steps : 0);
    if (!hd_ptr_map_get(&s->outer, node->outputs[i]))
      hd_scan_set_outer(s, node->outputs[i], outputs[i], any);
  }
  if (hd_node_is_reshape(node)) {
    hd_scan_put_reshape(s, inputs[0], outputs[0]);
    return NULL;
  }
  const hd_flattened_t *flattened = hd_fusion_flatten(s->fusion, node);
  hd_task_t *flat = flattened && any ? hd_turns_task(s->arena, flattened->flat,
                                                     turned, s->loop.steps)
                    : flattened      ? flattened->flat
                                     : NULL;
  if (!flat)
    return "a node of its body cannot be computed for all turns at once";
  hd_scan_put_task(s, flat, hd_arena_printf(s->arena, "%s_turns", node->op),
                   inputs, outputs);
  return NULL;
}

// --- What comes out ---

static const char *put_outputs(hd_scanner_t *s) {
  for (uint32_t k = 0; k < s->node->num_outputs; k++) {
    const hd_value_t *given = s->loop.body->outputs.data[k];
    const hd_value_t *to = s->node->outputs[k];
    const hd_scan_outer_t *outer = hd_ptr_map_get(&s->outer, given);
    hd_tensor_type_t type = hd_scheduled_type(given);
    if (!to || (k < s->loop.states && !outer)) // Or there already.
      continue;
    if (!outer->turned)
      return "a result is the same in all turns";
    if (k >= s->loop.states)
      hd_scan_put_copy(s, outer->value, to);
    else
      hd_scan_put_task(s,
                       hd_turns_last(s->arena, type.type, type.shape, type.rank,
                                     s->loop.steps),
                       "last_turn", &outer->value, &to);
  }
  return NULL;
}

// --- The graph ---

static const char *put_body(hd_scanner_t *s) {
  const hd_graph_t *body = s->loop.body;
  const char *why = look_at_body(s);
  put_inputs(s);
  find_wanted(s);
  // What does not know a state comes first, then the states.
  for (size_t i = 0; !why && i < body->nodes.size; i++)
    if (!states_read(s, body->nodes.data[i]))
      why = put_node(s, body->nodes.data[i]);
  for (uint32_t k = 0; !why && k < s->loop.states; k++)
    why = put_state(s, k);
  for (size_t i = 0; !why && i < body->nodes.size; i++)
    if (states_read(s, body->nodes.data[i]) &&
        is_needed(s, body->nodes.data[i]))
      why = put_node(s, body->nodes.data[i]);
  return why ? why : put_outputs(s);
}

static void take_loop(hd_scanner_t *s, const hd_node_t *node) {
  s->node = node;
  s->loop = hd_node_loop(node);
  s->fusion = hd_fusion_create(s->module, s->scheduler, s->loop.body);
  s->states = s->outer = s->wanted = (hd_ptr_map_t){0};
  s->bytes = 0;
  s->nodes = (hd_scan_nodes_t){0};
  s->constants = (hd_values_t){0};
  const char *why = put_body(s);
  if (s->explain && why)
    hd_remark(&s->module->context->diags, node->loc,
              "scan: loop '%s' stays a loop: %s", hd_node_label(node), why);
  if (why || !hd_step(&s->module->context->steps, HD_STEP_FUSION,
                      "of loop '%s' into scans", hd_node_label(node))) {
    hd_vec_push(s->arena, &s->made->nodes, node);
    return;
  }
  if (s->explain)
    hd_remark(&s->module->context->diags, node->loc,
              "scan: loop '%s' is computed for all %lld turns at once",
              hd_node_label(node), (long long)s->loop.steps);
  for (size_t i = 0; i < s->constants.size; i++)
    hd_vec_push(s->arena, &s->made->constants, s->constants.data[i]);
  for (size_t i = 0; i < s->nodes.size; i++)
    hd_vec_push(s->arena, &s->made->nodes, s->nodes.data[i]);
  s->changed = true;
}

const hd_graph_t *hd_graph_scan_loops(hd_module_t *module,
                                      const hd_graph_t *graph, bool explain) {
  bool any = false;
  for (size_t i = 0; i < graph->nodes.size; i++)
    any |= hd_node_is_loop(graph->nodes.data[i]);
  if (!any)
    return graph;
  hd_scanner_t s = {
      .module = module, .arena = &module->arena, .explain = explain};
  s.scheduler = hd_scheduler_create(module, s.arena);
  s.made = hd_graph_without_nodes(s.arena, graph);
  memset(&s.made->constants, 0, sizeof s.made->constants);
  for (size_t i = 0; i < graph->constants.size; i++)
    hd_vec_push(s.arena, &s.made->constants, graph->constants.data[i]);
  hd_names_take(s.arena, &s.names, graph);
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    if (hd_node_is_loop(node))
      take_loop(&s, node);
    else
      hd_vec_push(s.arena, &s.made->nodes, node);
  }
  if (!s.changed)
    return graph;
  hd_graph_drop_unread(s.arena, s.made);
  return s.made;
}

bool hd_pass_scan_loops(hd_module_t *module, const hd_graph_t *graph,
                        const hd_pass_args_t *args, hd_item_t *version) {
  version->u.graph = hd_graph_check_tasks(module, graph)
                         ? hd_graph_scan_loops(module, graph, args->explain)
                         : NULL;
  return version->u.graph != NULL;
}
