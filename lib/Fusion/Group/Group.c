// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Fusion/Group/GroupState.h"
#include "IR/Graph/Loop.h"

enum { MAX_POINTWISE = 200 }; // Terms.

// Who reads a value: nodes one after the other, then the graph.
typedef struct readers {
  const void *last;
  unsigned count;
} readers_t;

static void add_reader(hd_arena_t *arena, hd_ptr_map_t *map,
                       const hd_value_t *value, const void *reader) {
  if (!value)
    return;
  readers_t *readers = hd_ptr_map_find(map, value);
  if (!readers) {
    readers = HD_ARENA_NEW(arena, readers_t);
    hd_ptr_map_set(arena, map, value, readers);
  }
  readers->count += readers->last != reader;
  readers->last = reader;
}

static unsigned count_readers(const hd_ptr_map_t *map,
                              const hd_value_t *value) {
  const readers_t *readers = hd_ptr_map_get(map, value);
  return readers ? readers->count : 0;
}

hd_fusion_t *hd_fusion_create(hd_module_t *module, hd_scheduler_t *scheduler,
                              const hd_graph_t *graph) {
  hd_fusion_t *f = HD_ARENA_NEW(&module->arena, hd_fusion_t);
  f->module = module;
  f->arena = &module->arena;
  f->scheduler = scheduler;
  for (size_t i = 0; i < graph->nodes.size; i++) {
    const hd_node_t *node = graph->nodes.data[i];
    for (uint32_t k = 0; k < node->num_inputs; k++)
      add_reader(f->arena, &f->readers, node->inputs[k], node);
    for (uint32_t k = 0; k < node->num_outputs; k++)
      if (node->outputs[k])
        hd_ptr_map_set(f->arena, &f->givers, node->outputs[k], node);
  }
  for (size_t i = 0; i < graph->outputs.size; i++)
    add_reader(f->arena, &f->readers, graph->outputs.data[i], graph);
  return f;
}

unsigned hd_fusion_readers(const hd_fusion_t *f, const hd_value_t *value) {
  return count_readers(&f->readers, value);
}

hd_values_t hd_fusion_leaving(const hd_fusion_t *f,
                              const hd_node_t *const *nodes, size_t count) {
  hd_values_t leaving = {0};
  hd_ptr_map_t inside = {0}; // Values to how many of the nodes read them.
  for (size_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < nodes[i]->num_inputs; k++)
      add_reader(f->arena, &inside, nodes[i]->inputs[k], nodes[i]);
  for (size_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < nodes[i]->num_outputs; k++) {
      const hd_value_t *value = nodes[i]->outputs[k];
      if (value && count_readers(&inside, value) < hd_fusion_readers(f, value))
        hd_vec_push(f->arena, &leaving, value);
    }
  return leaving;
}

hd_flattened_t *hd_fusion_flatten(hd_fusion_t *f, const hd_node_t *node) {
  hd_flattened_t *flattened = hd_ptr_map_find(&f->flattened, node);
  if (flattened)
    return flattened;
  flattened = hd_scheduler_flatten(f->scheduler, node);
  if (flattened)
    hd_ptr_map_set(f->arena, &f->flattened, node, flattened);
  return flattened;
}

// --- Pointwise nodes ---

static bool count_terms(void *argument, const hd_term_t *term) {
  unsigned *count = argument;
  (void)term;
  return ++*count <= MAX_POINTWISE;
}

static bool is_empty(const hd_value_t *value) {
  hd_tensor_type_t type = hd_scheduled_type(value);
  for (unsigned i = 0; i < type.rank; i++)
    if (type.shape[i] == 0)
      return true;
  return false;
}

const char *hd_fusion_pointwise(hd_fusion_t *f, const hd_node_t *node,
                                hd_pointwise_t *pointwise) {
  *pointwise = (hd_pointwise_t){0};
  if (hd_node_is_loop(node))
    return "it is a loop";
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (is_empty(node->inputs[i]))
      return "what has no elements is not fused";
  if (node->num_outputs != 1 || !node->outputs[0])
    return "it gives several results";
  if (is_empty(node->outputs[0]))
    return "what has no elements is not fused";
  if (!node->task)
    return NULL;
  if (node->schedule)
    return "it has a schedule of its own";
  const hd_flattened_t *flattened = hd_fusion_flatten(f, node);
  if (!flattened || flattened->flat->definitions.size != 1)
    return "it is computed in several steps";
  const hd_definition_t *d = flattened->flat->definitions.data[0];
  if (d->kind != HD_DEFINE || d->num_targets != 1)
    return "it scatters";
  if (hd_flat_has(d->term, HD_TERM_REDUCE) ||
      hd_flat_has(d->term, HD_TERM_SCAN))
    return "it reduces";
  unsigned count = 0;
  hd_flat_walk(d->term, count_terms, &count);
  if (count > MAX_POINTWISE)
    return "its term is too large";
  *pointwise = (hd_pointwise_t){flattened->flat, d};
  return NULL;
}

// --- Groups ---

static hd_variable_t *variable(hd_group_t *g, const hd_value_t *value) {
  hd_variable_t *v = HD_ARENA_NEW(g->fusion->arena, hd_variable_t);
  v->name = value->name;
  v->type = hd_flat_type(value->type);
  return v;
}

hd_group_t *hd_group_begin(hd_fusion_t *f, const hd_node_t *anchor) {
  hd_group_t *g = HD_ARENA_NEW(f->arena, hd_group_t);
  g->fusion = f;
  g->anchor = anchor;
  for (uint32_t i = 0; i < anchor->num_outputs; i++) {
    const hd_value_t *value = anchor->outputs[i];
    if (!value)
      continue;
    hd_store_point_t *store = HD_ARENA_NEW(f->arena, hd_store_point_t);
    hd_tensor_type_t type = hd_scheduled_type(value);
    store->value = value;
    store->variable = variable(g, value);
    for (unsigned k = 0; k < type.rank; k++) {
      store->indices[k] = hd_flat_index_make(
          f->arena, hd_arena_printf(f->arena, "i%u", k), type.shape[k]);
      store->places[k] = hd_flat_index(f->arena, store->indices[k]);
    }
    hd_vec_push(f->arena, &store->scopes, (hd_guard_t){0});
    hd_vec_push(f->arena, &g->stores, store);
    hd_ptr_map_set(f->arena, &g->live, value, store);
  }
  hd_group_count_anchor(g);
  return g;
}

// An access to a tensor at a place that another one says.
typedef struct by_data {
  const hd_task_value_t *value;
  bool found;
} by_data_t;

static bool find_by_data(void *argument, const hd_term_t *term) {
  by_data_t *b = argument;
  bool loads = hd_flat_is_load(term);
  for (uint32_t i = 0; loads && term->u.value == b->value && i < b->value->rank;
       i++)
    b->found |= hd_flat_has(term->operands[i], HD_TERM_LOAD) ||
                hd_flat_has(term->operands[i], HD_TERM_LOADELSE);
  return !b->found;
}

// Where a live value's element is, and in which scope.
static void live_at(const hd_group_t *g, const hd_store_point_t *store,
                    const hd_value_t *value, const hd_term_t *const **places,
                    unsigned *scope) {
  const hd_epilogue_t *e = hd_ptr_map_get(&g->placed, value);
  *places = e ? e->map.places : store->places;
  *scope = e ? e->scope : 0;
}

static bool is_within(const hd_store_point_t *store, unsigned scope,
                      unsigned outer) {
  while (scope > outer)
    scope = store->scopes.data[scope].outer;
  return scope == outer;
}

// --- Maps of epilogues ---

// The places at which a task's input is read: all the same.
typedef struct reading {
  const hd_task_value_t *input;
  const hd_term_t *load;
  bool differs, guarded;
} reading_t;

static bool find_loads(void *argument, const hd_term_t *term) {
  reading_t *r = argument;
  bool loads = hd_flat_is_load(term);
  if (!loads || term->u.value != r->input)
    return true;
  r->guarded |= term->kind == HD_TERM_LOADELSE;
  for (unsigned i = 0; r->load && i < r->input->rank; i++)
    r->differs |= !hd_term_equal(r->load->operands[i], term->operands[i]);
  r->load = term;
  return true;
}

static const char *read_input(hd_arena_t *arena, const hd_pointwise_t *p,
                              uint32_t input, reading_t *r) {
  *r = (reading_t){.input = p->flat->inputs.data[input]};
  hd_flat_walk(p->definition->term, find_loads, r);
  if (r->differs)
    return "it reads several elements of it for one of its own";
  // An element that reads nothing of it would not be made.
  bool outside = r->guarded;
  for (unsigned i = 0; r->load && i < r->input->rank; i++) {
    hd_range_t range =
        hd_term_range(hd_index_simplify(arena, r->load->operands[i]));
    outside |= range.least < 0 || range.greatest >= hd_flat_size(r->input, i);
  }
  return outside ? "some of its elements are made of something else" : NULL;
}

void hd_group_reshape(hd_fusion_t *f, const hd_value_t *from,
                      const hd_value_t *to, const hd_term_t *const *at,
                      const hd_term_t **places) {
  hd_tensor_type_t a = hd_scheduled_type(from), b = hd_scheduled_type(to);
  const hd_term_t *number = hd_index_linear(f->arena, a.shape, a.rank, at);
  hd_index_places(f->arena, number, b.shape, b.rank, places);
}

const hd_term_t *hd_group_put_place(void *argument, const hd_term_t *term) {
  const hd_substitution_t *s = argument;
  const hd_definition_t *d = s->pointwise->definition;
  if (term->kind == HD_TERM_INDEX)
    for (uint32_t i = 0; i < d->num_indices; i++)
      if (d->indices[i] == term->u.index)
        return s->places[i];
  return term;
}

// The terms that the lets of a map are names for.
static const hd_term_t *put_let(void *argument, const hd_term_t *term) {
  const hd_index_map_t *map = argument;
  for (unsigned i = 0; term->kind == HD_TERM_INDEX && i < map->num_lets; i++)
    if (map->lets[i].index == term->u.index)
      return map->lets[i].term;
  return term;
}

// Whether a read of a live value, at these places of the epilogue, is of the
// element at hand.
static bool is_aligned(hd_group_t *g, const hd_node_t *node,
                       const hd_pointwise_t *p, const reading_t *r,
                       hd_index_map_t *map, const hd_term_t *const *wanted) {
  hd_arena_t *arena = g->fusion->arena;
  hd_substitution_t s = {
      .group = g, .node = node, .pointwise = p, .places = map->places};
  for (unsigned i = 0; i < r->input->rank; i++) {
    const hd_term_t *at =
        hd_flat_rewrite(arena, r->load->operands[i], hd_group_put_place, &s);
    at = hd_index_simplify(arena, hd_flat_rewrite(arena, at, put_let, map));
    if (!hd_term_equal(at, hd_index_simplify(arena, wanted[i])))
      return false;
  }
  return true;
}

static const char *map_pointwise(hd_group_t *g, const hd_node_t *node,
                                 const hd_pointwise_t *p,
                                 const hd_store_point_t *store,
                                 hd_epilogue_t *e) {
  hd_arena_t *arena = g->fusion->arena;
  const hd_definition_t *d = p->definition;
  bool mapped = false;
  for (int pass = 0; pass < 2; pass++) // First the map, then whether all agree.
    for (uint32_t i = 0; i < node->num_inputs; i++) {
      if (!hd_group_store(g, node->inputs[i]))
        continue;
      const hd_term_t *const *at;
      unsigned scope;
      reading_t r;
      const char *why = read_input(arena, p, i, &r);
      if (why)
        return why;
      if (!r.load)
        continue;
      live_at(g, store, node->inputs[i], &at, &scope);
      if (pass == 0 && !mapped) {
        if (!hd_index_invert(arena, r.load->operands, r.input->rank, d->indices,
                             d->num_indices, at, &e->map))
          return "which of its elements an element becomes cannot be said";
        mapped = true;
      }
      if (pass == 1 && !is_aligned(g, node, p, &r, &e->map, at))
        return "it reads other elements than are at hand";
      if (is_within(store, scope, e->scope))
        e->scope = scope;
      else if (!is_within(store, e->scope, scope))
        return "what it reads is computed under different conditions";
    }
  return mapped ? NULL : "it reads nothing of the group";
}

const char *hd_group_add_epilogue(hd_group_t *g, const hd_node_t *node) {
  hd_arena_t *arena = g->fusion->arena;
  hd_pointwise_t p;
  const char *why = hd_fusion_pointwise(g->fusion, node, &p);
  hd_store_point_t *store = NULL;
  for (uint32_t i = 0; !why && i < node->num_inputs; i++) {
    hd_store_point_t *of = hd_ptr_map_find(&g->live, node->inputs[i]);
    if (of && store && of != store)
      why = "it reads several results of the anchor";
    store = of ? of : store;
  }
  if (!why && !store)
    why = "it reads nothing of the group";
  if (why)
    return why;
  hd_epilogue_t *e = HD_ARENA_NEW(arena, hd_epilogue_t);
  e->node = node;
  if (node->task) {
    why = map_pointwise(g, node, &p, store, e);
    if (why)
      return why;
  } else {
    const hd_term_t *const *at;
    live_at(g, store, node->inputs[0], &at, &e->scope);
    hd_group_reshape(g->fusion, node->inputs[0], node->outputs[0], at,
                     e->map.places);
  }
  why = hd_group_count(g, node, false, UINT64_MAX);
  if (why)
    return why;
  if (e->map.condition) {
    hd_vec_push(arena, &store->scopes, ((hd_guard_t){e->scope, &e->map}));
    e->scope = (unsigned)store->scopes.size - 1;
  }
  e->variable = variable(g, node->outputs[0]);
  hd_vec_push(arena, &store->epilogues, e);
  hd_ptr_map_set(arena, &g->placed, node->outputs[0], e);
  hd_ptr_map_set(arena, &g->live, node->outputs[0], store);
  return NULL;
}

void hd_group_drop_epilogue(hd_group_t *g, const hd_node_t *node) {
  hd_store_point_t *store = hd_ptr_map_find(&g->live, node->outputs[0]);
  const hd_epilogue_t *e = store->epilogues.data[--store->epilogues.size];
  if (e->map.condition)
    store->scopes.size--;
  hd_group_uncount(g, node);
  hd_ptr_map_set(g->fusion->arena, &g->placed, node->outputs[0], NULL);
  hd_ptr_map_set(g->fusion->arena, &g->live, node->outputs[0], NULL);
}

bool hd_fusion_reads_by_data(hd_fusion_t *f, const hd_node_t *node,
                             const hd_value_t *value) {
  hd_pointwise_t p;
  if (hd_fusion_pointwise(f, node, &p) || !p.definition)
    return false;
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    if (node->inputs[i] != value)
      continue;
    by_data_t b = {.value = p.flat->inputs.data[i]};
    hd_flat_walk(p.definition->term, find_by_data, &b);
    if (b.found)
      return true;
  }
  return false;
}

bool hd_group_leads_to(const hd_group_t *g, const hd_value_t *value,
                       const hd_value_t *to) {
  if (value == to)
    return true;
  const hd_node_t *node = hd_ptr_map_get(&g->inlined, to);
  for (uint32_t i = 0; node && i < node->num_inputs; i++)
    if (hd_group_leads_to(g, value, node->inputs[i]))
      return true;
  return false;
}

const char *hd_group_add_prologue(hd_group_t *g, const hd_node_t *node,
                                  uint64_t most_terms) {
  hd_pointwise_t p;
  const char *why = hd_fusion_pointwise(g->fusion, node, &p);
  if (why)
    return why;
  for (uint32_t i = 0; i < node->num_inputs; i++)
    if (hd_group_store(g, node->inputs[i]))
      return "it depends on the anchor";
  why = hd_group_count(g, node, true, most_terms);
  if (why)
    return why;
  hd_ptr_map_set(g->fusion->arena, &g->inlined, node->outputs[0], node);
  return NULL;
}

void hd_group_drop_prologue(hd_group_t *g, const hd_node_t *node) {
  hd_group_uncount(g, node);
  hd_ptr_map_set(g->fusion->arena, &g->inlined, node->outputs[0], NULL);
}
