// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes are gone through from the last to the first, so that all who read a
// value are known before the node that gives it. What a definition reads
// follows from the places that are needed of its target, and from the
// conditions under which it is read. What says where another element is read is
// needed everywhere: it stays inside, wherever it is read by the way.

#include "Fusion/Trim/Need.h"

#include "Fusion/Fuse.h"
#include "IR/Graph/Loop.h"

struct hd_needs {
  hd_arena_t *arena;
  const hd_graph_t *graph;
  hd_fusion_t *fusion;
  hd_ptr_map_t found; // Values to hd_need_t.
};

// That a term is below an extent, where `outer` holds.
typedef struct fact {
  const hd_term_t *term;
  hd_extent_at_t extent;
  const struct fact *outer;
} fact_t;

// One node. Local tensors of its task stand in `locals`.
typedef struct reader {
  hd_needs_t *needs;
  const hd_node_t *node;
  const hd_task_t *flat;
  const hd_definition_t *definition;
  const hd_need_t *target; // NULL: all of it.
  bool places;             // What is read says where something is.
  hd_ptr_map_t locals;
} reader_t;

// --- Needs ---

static bool is_same(hd_extent_at_t a, hd_extent_at_t b) {
  return a.input == b.input && a.at == b.at;
}

// A further read; NULL: of all.
static void add_need(hd_needs_t *needs, hd_ptr_map_t *map, const void *key,
                     const hd_need_t *read) {
  hd_need_t *need = hd_ptr_map_find(map, key);
  if (!need) {
    need = HD_ARENA_NEW(needs->arena, hd_need_t);
    if (read)
      *need = *read;
    hd_ptr_map_set(needs->arena, map, key, need);
    return;
  }
  for (unsigned i = 0; i < HD_MAX_RANK; i++)
    if (!read || !is_same(need->axes[i], read->axes[i]))
      need->axes[i] = (hd_extent_at_t){0};
}

const hd_need_t *hd_need_of(const hd_needs_t *needs, const hd_value_t *value) {
  return needs ? hd_ptr_map_get(&needs->found, value) : NULL;
}

hd_need_t hd_need_reshape(const hd_need_t *need, const int64_t *from,
                          unsigned from_rank, const int64_t *to,
                          unsigned to_rank) {
  hd_need_t made = {0};
  int64_t inner = 1;
  for (unsigned i = from_rank; i-- > 0; inner *= from[i]) {
    int64_t other = 1;
    for (unsigned k = to_rank; need->axes[i].input && k-- > 0; other *= to[k])
      if (other == inner && to[k] == from[i] && from[i] > 1)
        made.axes[k] = need->axes[i];
  }
  return made;
}

// --- Terms ---

// Whether a term is an element of a vector that comes in.
static bool is_extent(const reader_t *r, const hd_term_t *term,
                      hd_extent_at_t *extent) {
  if (term->kind != HD_TERM_LOAD || term->type.scalar != HD_I64 ||
      term->num_operands != 1 || term->operands[0]->kind != HD_TERM_CONST)
    return false;
  const hd_graph_t *graph = r->needs->graph;
  for (size_t i = 0; i < r->flat->inputs.size; i++)
    for (size_t k = 0;
         r->flat->inputs.data[i] == term->u.value && k < graph->inputs.size;
         k++)
      if (graph->inputs.data[k] == r->node->inputs[i]) {
        *extent = (hd_extent_at_t){r->node->inputs[i], term->operands[0]->u.i};
        return true;
      }
  return false;
}

static hd_extent_at_t extent_of_index(const reader_t *r,
                                      const hd_index_t *index) {
  const hd_definition_t *d = r->definition;
  for (uint32_t i = 0; r->target && i < d->num_indices && i < HD_MAX_RANK; i++)
    if (d->indices[i] == index)
      return r->target->axes[i];
  return (hd_extent_at_t){0};
}

// What a place is below, for all that is seen there.
static hd_extent_at_t extent_of(const reader_t *r, const fact_t *facts,
                                const hd_term_t *place) {
  hd_extent_at_t extent = {0};
  for (; facts; facts = facts->outer)
    if (hd_term_equal(facts->term, place))
      return facts->extent;
  if (place->kind == HD_TERM_INDEX)
    return extent_of_index(r, place->u.index);
  if (place->kind == HD_TERM_CAST && place->type.scalar == HD_I64)
    return extent_of(r, NULL, place->operands[0]);
  if (place->kind == HD_TERM_OPERATOR && place->u.op == HD_EXPR_MOD)
    is_extent(r, place->operands[1], &extent);
  return extent;
}

static void read_term(reader_t *r, const fact_t *facts, const hd_term_t *term);

static void read_element(reader_t *r, const fact_t *facts,
                         const hd_term_t *term) {
  const hd_value_t *input = hd_node_input_of(r->node, r->flat, term->u.value);
  hd_need_t need = {0};
  for (unsigned i = 0; i < term->u.value->rank && !r->places; i++)
    need.axes[i] = extent_of(r, facts, term->operands[i]);
  if (input)
    add_need(r->needs, &r->needs->found, input, &need);
  else
    add_need(r->needs, &r->locals, term->u.value, &need);
}

static void read_places(reader_t *r, const hd_term_t *const *places,
                        unsigned count) {
  bool within = r->places;
  r->places = true;
  for (unsigned i = 0; i < count; i++)
    read_term(r, NULL, places[i]);
  r->places = within;
}

enum { MAX_FACTS = 8 };

// What a condition says where it holds; facts lie from *room on.
static const fact_t *learn(const reader_t *r, const fact_t *facts,
                           const hd_term_t *condition, fact_t **room,
                           const fact_t *end) {
  hd_extent_at_t extent;
  if (condition->kind != HD_TERM_OPERATOR)
    return facts;
  if (condition->u.op == HD_EXPR_AND)
    return learn(r, learn(r, facts, condition->operands[0], room, end),
                 condition->operands[1], room, end);
  if (condition->u.op != HD_EXPR_LT || *room == end ||
      !is_extent(r, condition->operands[1], &extent))
    return facts;
  **room = (fact_t){condition->operands[0], extent, facts};
  return (*room)++;
}

static void read_term(reader_t *r, const fact_t *facts, const hd_term_t *term) {
  unsigned first = 0;
  if (hd_flat_is_load(term)) {
    first = term->u.value->rank;
    read_element(r, facts, term);
    read_places(r, term->operands, first);
  }
  if (term->kind == HD_TERM_SELECT) {
    read_term(r, facts, term->operands[0]);
    fact_t own[MAX_FACTS], *room = own;
    read_term(r, learn(r, facts, term->operands[0], &room, own + MAX_FACTS),
              term->operands[1]);
    read_term(r, facts, term->operands[2]);
    return;
  }
  for (unsigned i = first; i < term->num_operands; i++)
    read_term(r, facts, term->operands[i]);
  if (hd_flat_is_reduction(term) && term->u.reduction->at)
    read_term(r, facts, term->u.reduction->at);
}

// --- Nodes ---

// What is needed of a definition's target; false: nothing. Where there are
// several, or places are no indices, it is all.
static bool find_target(reader_t *r) {
  const hd_definition_t *d = r->definition;
  const hd_needs_t *needs = r->needs;
  const hd_need_t *need = NULL;
  bool read = d->num_targets == 0;
  for (uint32_t n = 0; n < d->num_targets; n++) {
    const hd_need_t *found = hd_ptr_map_get(&r->locals, d->targets[n]);
    for (size_t k = 0; k < r->flat->outputs.size; k++)
      if (r->flat->outputs.data[k] == d->targets[n] && r->node->outputs[k])
        found = hd_ptr_map_get(&needs->found, r->node->outputs[k]);
    read |= found != NULL;
    need = found;
  }
  r->target = d->kind == HD_DEFINE && d->num_targets == 1 ? need : NULL;
  return read;
}

static void read_definition(reader_t *r) {
  const hd_definition_t *d = r->definition;
  if (!find_target(r))
    return;
  if (d->term)
    read_term(r, NULL, d->term);
  if (d->at)
    read_places(r, d->at, d->targets[0]->rank);
  const hd_value_t *onto =
      d->onto ? hd_node_input_of(r->node, r->flat, d->onto) : NULL;
  if (onto)
    add_need(r->needs, &r->needs->found, onto, NULL);
}

static void read_reshape(hd_needs_t *needs, const hd_node_t *node) {
  const hd_need_t *need = hd_need_of(needs, node->outputs[0]);
  hd_tensor_type_t from = hd_scheduled_type(node->outputs[0]);
  hd_tensor_type_t to = hd_scheduled_type(node->inputs[0]);
  if (!need)
    return;
  hd_need_t made =
      hd_need_reshape(need, from.shape, from.rank, to.shape, to.rank);
  add_need(needs, &needs->found, node->inputs[0], &made);
}

// False where nothing is known of what it reads.
static bool read_node(hd_needs_t *needs, const hd_node_t *node) {
  if (hd_node_is_reshape(node)) {
    read_reshape(needs, node);
    return true;
  }
  bool own = node->schedule &&
             !hd_scheduler_has_made(needs->fusion->scheduler, node->schedule);
  if (hd_node_is_loop(node) || own)
    return false;
  const hd_flattened_t *flattened = hd_fusion_flatten(needs->fusion, node);
  if (!flattened)
    return false;
  reader_t r = {.needs = needs, .node = node, .flat = flattened->flat};
  for (size_t i = r.flat->definitions.size; i-- > 0;) {
    r.definition = r.flat->definitions.data[i];
    read_definition(&r);
  }
  return true;
}

static bool has_vector(const hd_graph_t *graph) {
  for (size_t i = 0; i < graph->inputs.size; i++)
    if (graph->inputs.data[i]->type == HD_I64 &&
        graph->inputs.data[i]->rank == 1)
      return true;
  return false;
}

hd_needs_t *hd_needs_find(hd_fusion_t *fusion, const hd_graph_t *graph) {
  hd_needs_t *needs = HD_ARENA_NEW(fusion->arena, hd_needs_t);
  *needs =
      (hd_needs_t){.arena = fusion->arena, .graph = graph, .fusion = fusion};
  if (!has_vector(graph))
    return NULL;
  for (size_t i = 0; i < graph->outputs.size; i++)
    add_need(needs, &needs->found, graph->outputs.data[i], NULL);
  for (size_t i = graph->nodes.size; i-- > 0;) {
    const hd_node_t *node = graph->nodes.data[i];
    hd_budget_check(&fusion->module->context->budget);
    bool known = read_node(needs, node);
    for (uint32_t k = 0; !known && k < node->num_inputs; k++)
      if (node->inputs[k])
        add_need(needs, &needs->found, node->inputs[k], NULL);
  }
  return needs;
}
