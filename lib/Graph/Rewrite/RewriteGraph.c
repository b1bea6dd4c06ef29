// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A graph that changes: values know who uses them, nodes hang in a list. What
// is dead is taken out at once, equal nodes are found by a table of what they
// compute.
#include "Graph/Rewrite/RewriteState.h"

#include "Graph/Names.h"

#include <string.h>

// What a node computes, and the latest that does.
typedef struct known_node {
  uint64_t key;
  hd_rw_node_t *node;
} known_node_t;

// --- Names and values ---

hd_value_t *hd_rw_value_make(hd_rw_graph_t *g, const char *base,
                             const hd_tensor_type_t *type) {
  return hd_value_make(g->arena, hd_name_unique(g->arena, &g->names, base),
                       type->type, type->shape, type->rank, (hd_loc_t){0});
}

hd_rw_value_t *hd_rw_enter(hd_rw_graph_t *g, const hd_value_t *value,
                           const hd_tensor_type_t *type) {
  hd_rw_value_t *entered = HD_ARENA_NEW(g->arena, hd_rw_value_t);
  entered->value = value;
  entered->type = *type;
  return entered;
}

hd_rw_value_t *hd_rw_enter_constant(hd_rw_graph_t *g, const hd_value_t *value,
                                    const hd_tensor_type_t *type) {
  hd_rw_value_t *entered = hd_rw_enter(g, value, type);
  entered->constant = true;
  hd_vec_push(g->arena, &g->constants, entered);
  return entered;
}

// --- The list ---

void hd_rw_insert(hd_rw_graph_t *g, hd_rw_node_t *node, hd_rw_node_t *before) {
  hd_rw_node_t *previous = before ? before->previous : g->last;
  node->previous = previous;
  node->next = before;
  *(previous ? &previous->next : &g->first) = node;
  *(before ? &before->previous : &g->last) = node;
}

static void take_out(hd_rw_graph_t *g, hd_rw_node_t *node) {
  *(node->previous ? &node->previous->next : &g->first) = node->next;
  *(node->next ? &node->next->previous : &g->last) = node->previous;
}

void hd_rw_add_user(hd_rw_graph_t *g, hd_rw_value_t *value,
                    hd_rw_node_t *user) {
  hd_vec_push(g->arena, &value->users, user);
}

static void remove_user(hd_rw_value_t *value, const hd_rw_node_t *user) {
  size_t i = value->users.size;
  while (value->users.data[--i] != user)
    ;
  value->users.data[i] = value->users.data[--value->users.size];
}

bool hd_rw_is_used(const hd_rw_value_t *value) {
  return value && (value->users.size || value->num_outputs);
}

void hd_rw_drop(hd_rw_graph_t *g, hd_rw_node_t *node) {
  HD_VEC(hd_rw_node_t *) open = {0};
  hd_vec_push(g->arena, &open, node);
  while (open.size) {
    node = open.data[--open.size];
    bool used = node->dead;
    for (uint32_t i = 0; i < node->node.num_outputs; i++)
      used |= hd_rw_is_used(node->outputs[i]);
    if (used)
      continue;
    node->dead = true;
    g->changed = true;
    take_out(g, node);
    for (uint32_t i = 0; i < node->node.num_inputs; i++) {
      hd_rw_value_t *input = node->inputs[i];
      remove_user(input, node);
      if (input->def && !hd_rw_is_used(input))
        hd_vec_push(g->arena, &open, input->def);
    }
  }
}

bool hd_rw_can_replace(const hd_rw_value_t *old, const hd_rw_value_t *value) {
  return !old->num_outputs || (value->def && !value->num_outputs);
}

// A node's rank is `rank` at least, and so is that of what needs it.
static void raise_rank(hd_rw_graph_t *g, hd_rw_node_t *node, uint32_t rank) {
  HD_VEC(hd_rw_node_t *) open = {0};
  if (node->rank >= rank)
    return;
  hd_vec_push(g->arena, &open, node);
  while (open.size) {
    node = open.data[--open.size];
    if (node->rank >= rank)
      continue;
    node->rank = rank;
    for (uint32_t i = 0; i < node->node.num_outputs; i++)
      for (size_t u = 0; node->outputs[i] && u < node->outputs[i]->users.size;
           u++)
        hd_vec_push(g->arena, &open, node->outputs[i]->users.data[u]);
  }
}

void hd_rw_replace(hd_rw_graph_t *g, hd_rw_value_t *old, hd_rw_value_t *value) {
  g->changed = true;
  for (size_t i = 0; i < old->users.size; i++) {
    hd_rw_node_t *user = old->users.data[i];
    for (uint32_t n = 0; n < user->node.num_inputs; n++)
      if (user->inputs[n] == old) {
        user->inputs[n] = value;
        hd_rw_add_user(g, value, user);
      }
    if (value->def)
      raise_rank(g, user, value->def->rank);
  }
  old->users.size = 0;
  if (old->num_outputs || (value->fresh && old->def)) {
    const hd_value_t *name = old->value; // It goes over to what is new.
    old->value = value->value;
    value->value = name;
    value->fresh = false;
    value->num_outputs += old->num_outputs;
    old->num_outputs = 0;
    for (size_t i = 0; i < g->outputs.size; i++)
      if (g->outputs.data[i] == old)
        g->outputs.data[i] = value;
  }
  if (old->def)
    hd_rw_drop(g, old->def);
}

// --- Equal nodes ---

static uint64_t node_key(const hd_node_t *node, hd_rw_value_t *const *inputs,
                         const hd_tensor_type_t *types) {
  uint64_t key = (uint64_t)(uintptr_t)hd_rw_node_key(node);
  key = hd_hash(key, inputs, node->num_inputs * sizeof(*inputs));
  for (uint32_t i = 0; i < node->num_attributes; i++)
    key = hd_attribute_key(key, node->attributes[i]);
  if (hd_node_is_reshape(node))
    key = hd_hash(key, types[0].shape, types[0].rank * sizeof(int64_t));
  return key;
}

static bool computes(const hd_rw_node_t *there, const hd_node_t *node,
                     hd_rw_value_t *const *inputs,
                     const hd_tensor_type_t *types) {
  const hd_node_t *a = &there->node;
  if (there->dead || hd_rw_node_key(a) != hd_rw_node_key(node) ||
      a->num_inputs != node->num_inputs ||
      a->num_outputs != node->num_outputs || !hd_attributes_equal(a, node) ||
      memcmp(there->inputs, inputs, a->num_inputs * sizeof(*inputs)) != 0)
    return false;
  for (uint32_t i = 0; i < a->num_outputs; i++)
    if (!there->outputs[i] ||
        !hd_tensor_type_equal(&there->outputs[i]->type, &types[i]))
      return false;
  return true;
}

static known_node_t *find_known(const hd_rw_graph_t *g, uint64_t key) {
  return hd_key_map_find(&g->known, &key, sizeof(key));
}

static void remember(hd_rw_graph_t *g, uint64_t key, hd_rw_node_t *node) {
  known_node_t *known = find_known(g, key);
  if (!known) {
    known = HD_ARENA_NEW(g->arena, known_node_t);
    known->key = key;
    hd_key_map_set(g->arena, &g->known, &known->key, sizeof(key), known);
  }
  known->node = node;
}

static hd_rw_node_t *make_node(hd_rw_graph_t *g, const hd_node_t *node,
                               hd_rw_value_t *const *inputs,
                               hd_rw_value_t **outputs) {
  hd_rw_node_t *made = HD_ARENA_NEW(g->arena, hd_rw_node_t);
  made->node = *node;
  made->outputs = outputs;
  made->inputs =
      HD_ARENA_ARRAY(g->arena, hd_rw_value_t *, node->num_inputs + 1);
  for (uint32_t i = 0; i < node->num_inputs; i++)
    made->inputs[i] = inputs[i];
  return made;
}

// What was computed of constants is not computed again.
static hd_rw_value_t **remember_folded(hd_rw_graph_t *g, uint64_t key,
                                       const hd_node_t *node,
                                       hd_rw_value_t *const *inputs,
                                       hd_rw_value_t **outputs) {
  hd_rw_node_t *made = make_node(g, node, inputs, outputs);
  hd_vec_push(g->arena, &g->folded, made);
  remember(g, key, made);
  return outputs;
}

hd_rw_value_t **hd_rw_put(hd_rw_graph_t *g, const hd_node_t *node,
                          hd_rw_value_t *const *inputs,
                          const hd_tensor_type_t *types, hd_rw_node_t *before,
                          const char *base, const hd_rw_value_t *given) {
  uint64_t key = node_key(node, inputs, types);
  const known_node_t *known = find_known(g, key);
  if (known && computes(known->node, node, inputs, types) &&
      (!given || known->node->outputs[0] == given))
    return known->node->outputs;
  hd_rw_value_t **outputs =
      HD_ARENA_ARRAY(g->arena, hd_rw_value_t *, node->num_outputs + 1);
  if (!given && !hd_rw_fold(g, node, inputs, types, base, outputs))
    return NULL;
  if (node->num_outputs && outputs[0])
    return remember_folded(g, key, node, inputs, outputs);
  hd_rw_node_t *made = make_node(g, node, inputs, outputs);
  bool constant = true;
  for (uint32_t i = 0; i < node->num_inputs; i++) {
    constant &= inputs[i]->constant;
    hd_rw_add_user(g, inputs[i], made);
    if (inputs[i]->def && inputs[i]->def->rank > made->rank)
      made->rank = inputs[i]->def->rank;
  }
  for (uint32_t i = 0; i < node->num_outputs; i++) {
    outputs[i] =
        hd_rw_enter(g, hd_rw_value_make(g, base, &types[i]), &types[i]);
    outputs[i]->def = made;
    outputs[i]->constant = constant;
    outputs[i]->fresh = true;
  }
  hd_rw_insert(g, made, before);
  hd_vec_push(g->arena, &g->made, made);
  remember(g, key, made);
  return outputs;
}

// --- Order ---

enum { NEW, OPEN, DONE };

// After what it needs; a walk of its own, for chains may be long.
static void place(hd_rw_graph_t *g, hd_rw_node_t *node) {
  HD_VEC(hd_rw_node_t *) open = {0};
  hd_vec_push(g->arena, &open, node);
  while (open.size) {
    node = open.data[open.size - 1];
    size_t before = open.size;
    for (uint32_t i = 0; node->visit == NEW && i < node->node.num_inputs; i++) {
      hd_rw_node_t *def = node->inputs[i]->def;
      if (def && def->visit == NEW)
        hd_vec_push(g->arena, &open, def);
    }
    if (open.size > before) {
      node->visit = OPEN;
      continue;
    }
    open.size--;
    if (node->visit != DONE)
      hd_rw_insert(g, node, NULL);
    node->visit = DONE;
  }
}

void hd_rw_sort(hd_rw_graph_t *g) {
  HD_VEC(hd_rw_node_t *) nodes = {0};
  for (hd_rw_node_t *node = g->first; node; node = node->next) {
    node->visit = NEW;
    hd_vec_push(g->arena, &nodes, node);
  }
  g->first = g->last = NULL;
  for (size_t i = 0; i < nodes.size; i++)
    if (nodes.data[i]->visit != DONE)
      place(g, nodes.data[i]);
  uint32_t rank = 0;
  for (hd_rw_node_t *node = g->first; node; node = node->next)
    node->rank = ++rank;
}

// An equal node before it, or its value, takes a node's place.
static bool settle_node(hd_rw_graph_t *g, hd_rw_node_t *node) {
  const hd_node_t *n = &node->node;
  hd_tensor_type_t *types =
      HD_ARENA_ARRAY(g->arena, hd_tensor_type_t, n->num_outputs + 1);
  for (uint32_t i = 0; i < n->num_outputs; i++)
    if (node->outputs[i])
      types[i] = node->outputs[i]->type;
    else
      return true; // Left as it is: rare.
  uint64_t key = node_key(n, node->inputs, types);
  const known_node_t *known = find_known(g, key);
  hd_rw_value_t **outputs =
      HD_ARENA_ARRAY(g->arena, hd_rw_value_t *, n->num_outputs + 1);
  bool given = false; // The values that the graph gives stay.
  for (uint32_t i = 0; i < n->num_outputs; i++)
    given |= node->outputs[i]->num_outputs > 0;
  if (given)
    outputs[0] = NULL;
  else if (known && known->node != node &&
           computes(known->node, n, node->inputs, types))
    outputs = known->node->outputs;
  else if (!hd_rw_fold(g, n, node->inputs, types,
                       n->num_outputs ? node->outputs[0]->value->name : "t",
                       outputs))
    return false;
  for (uint32_t i = 0; n->num_outputs && outputs[0] && i < n->num_outputs; i++)
    hd_rw_replace(g, node->outputs[i], outputs[i]);
  if (!node->dead)
    remember(g, key, node);
  return true;
}

bool hd_rw_settle(hd_rw_graph_t *g) {
  hd_rw_sort(g);
  g->known = (hd_key_map_t){0};
  for (size_t i = 0; i < g->folded.size; i++) {
    hd_rw_node_t *node = g->folded.data[i];
    remember(g, node_key(&node->node, node->inputs, &node->outputs[0]->type),
             node);
  }
  hd_rw_node_t *next;
  for (hd_rw_node_t *node = g->first; node; node = next) {
    next = node->next;
    if (!settle_node(g, node))
      return false;
  }
  return true;
}
