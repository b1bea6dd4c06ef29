// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The graph that groups make of another: its nodes in the order of the groups,
// with copies of the prologues that several groups have.
#include "Fusion/Form/FormState.h"
#include "Fusion/Views.h"
#include "Graph/Names.h"
#include "Support/Map.h"

#include <stdlib.h>
#include <string.h>

typedef struct writer {
  hd_former_t *f;
  hd_arena_t *arena;
  hd_graph_t *graph;
  uint32_t *waits; // Of each unit: how many it still waits for.
  hd_numbers_t *users;
  hd_key_map_t names; // That are taken.
  uint32_t number;    // Of the last group written.
} writer_t;

// A unit is a group, or a node of none: those come after the groups.
static uint32_t unit_of(const hd_former_t *f, uint32_t node) {
  return f->nodes[node].group ? f->nodes[node].group
                              : (uint32_t)f->groups.size + node;
}

// --- Reshapes at the edges ---

static bool is_read_within(hd_former_t *f, uint32_t node, uint32_t group) {
  const hd_forming_t *g = &f->groups.data[group];
  const hd_value_t *value = f->nodes[node].node->outputs[0];
  for (size_t i = 0; i < g->members.size; i++) {
    const hd_node_t *member = f->nodes[g->members.data[i]].node;
    for (uint32_t k = 0; k < member->num_inputs; k++)
      if (member->inputs[k] == value)
        return true;
  }
  return false;
}

static bool is_given_within(hd_former_t *f, uint32_t node, uint32_t group) {
  const hd_value_t *value = f->nodes[node].node->inputs[0];
  int64_t giver = hd_former_uses(f, value)->giver;
  const hd_forming_t *g = &f->groups.data[group];
  for (size_t i = 0; i < g->members.size; i++)
    if ((int64_t)g->members.data[i] == giver)
      return true;
  return false;
}

// A reshape that the plan can do without a kernel is none of the group's
// business: as its last node, or as its first.
static bool leaves(hd_former_t *f, uint32_t node, uint32_t group) {
  const hd_formed_t *formed = &f->nodes[node];
  if (formed->node->task)
    return false;
  return formed->is_prologue
             ? formed->group == group && !is_given_within(f, node, group) &&
                   hd_former_uses(f, formed->node->outputs[0])->nodes.size == 1
             : !is_read_within(f, node, group);
}

static void trim_group(hd_former_t *f, uint32_t group) {
  hd_numbers_t *members = &f->groups.data[group].members;
  for (bool trimmed = true; trimmed;) {
    trimmed = false;
    for (size_t i = 0; i < members->size; i++) {
      uint32_t node = members->data[i];
      if (!leaves(f, node, group))
        continue;
      memmove(&members->data[i], &members->data[i + 1],
              (members->size - i - 1) * sizeof(members->data[0]));
      members->size--;
      f->nodes[node].group = 0;
      f->nodes[node].is_prologue = false;
      trimmed = true;
      break;
    }
  }
}

void hd_former_trim(hd_former_t *f) {
  for (uint32_t i = 1; i < f->groups.size; i++)
    if (!f->groups.data[i].is_fixed)
      trim_group(f, i);
}

// --- Names ---

static const char *fresh_name(writer_t *w, const char *name) {
  return hd_name_unique(w->arena, &w->names,
                        hd_arena_printf(w->arena, "%s_again", name));
}

// --- Nodes ---

static const hd_value_t *copied(const hd_ptr_map_t *copies,
                                const hd_value_t *value) {
  const hd_value_t *copy = value ? hd_ptr_map_get(copies, value) : NULL;
  return copy ? copy : value;
}

// A node with a group's number; copies says which of its inputs have another
// name there. A copy of the node gives a value of its own.
static void write_node(writer_t *w, uint32_t node, uint32_t number,
                       bool is_anchor, bool is_copy, hd_ptr_map_t *copies) {
  hd_node_t *made = HD_ARENA_COPY(w->arena, hd_node_t, w->f->nodes[node].node);
  made->group = number;
  made->anchor = is_anchor;
  const hd_value_t **inputs =
      HD_ARENA_ARRAY(w->arena, const hd_value_t *, made->num_inputs + 1);
  for (uint32_t i = 0; i < made->num_inputs; i++)
    inputs[i] = copied(copies, made->inputs[i]);
  made->inputs = inputs;
  if (is_copy) {
    hd_value_t *value = HD_ARENA_COPY(w->arena, hd_value_t, made->outputs[0]);
    const hd_value_t **outputs =
        HD_ARENA_ARRAY(w->arena, const hd_value_t *, 1);
    value->label = hd_value_label(value);
    value->name = fresh_name(w, value->name);
    outputs[0] = value;
    hd_ptr_map_set(w->arena, copies, made->outputs[0], value);
    made->outputs = outputs;
  }
  hd_vec_push(w->arena, &w->graph->nodes, (const hd_node_t *)made);
}

// A concatenation of no group is none of a kernel's business: one that is a
// kernel after all is a group by itself.
static bool is_kernel(const hd_former_t *f, uint32_t node) {
  hd_concatenation_t c;
  return hd_node_concatenates(f->fusion->scheduler, f->nodes[node].node, &c);
}

static int by_number(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static void write_unit(writer_t *w, uint32_t unit) {
  hd_former_t *f = w->f;
  hd_ptr_map_t copies = {0};
  if (unit >= f->groups.size) {
    write_node(w, unit - (uint32_t)f->groups.size, 0, false, false, &copies);
    return;
  }
  hd_forming_t *g = &f->groups.data[unit];
  qsort(g->members.data, g->members.size, sizeof(uint32_t), by_number);
  bool alone = g->members.size == 1 && !g->is_fixed && !is_kernel(f, g->anchor);
  uint32_t number = alone ? 0 : ++w->number;
  for (size_t i = 0; i < g->members.size; i++) {
    uint32_t node = g->members.data[i];
    bool anchor =
        g->is_fixed ? f->nodes[node].node->anchor : !alone && node == g->anchor;
    write_node(w, node, number, anchor, f->nodes[node].group != unit, &copies);
  }
}

// --- Order ---

static void add_wait(writer_t *w, uint32_t unit, uint32_t node) {
  const hd_node_t *n = w->f->nodes[node].node;
  for (uint32_t k = 0; k < n->num_inputs; k++) {
    int64_t giver =
        n->inputs[k] ? hd_former_uses(w->f, n->inputs[k])->giver : -1;
    if (giver < 0)
      continue;
    uint32_t other = unit_of(w->f, (uint32_t)giver);
    // What is copied is not waited for.
    if (other == unit || w->f->nodes[giver].is_prologue)
      continue;
    hd_vec_push(w->arena, &w->users[other], unit);
    w->waits[unit]++;
  }
}

typedef struct heap {
  uint64_t *data; // First node of the unit, then its number.
  size_t size;
} heap_t;

static void heap_push(heap_t *h, uint64_t value) {
  size_t i = h->size++;
  for (; i > 0 && h->data[(i - 1) / 2] > value; i = (i - 1) / 2)
    h->data[i] = h->data[(i - 1) / 2];
  h->data[i] = value;
}

static uint64_t heap_pop(heap_t *h) {
  uint64_t top = h->data[0], last = h->data[--h->size];
  size_t i = 0;
  for (;;) {
    size_t child = 2 * i + 1;
    if (child >= h->size)
      break;
    if (child + 1 < h->size && h->data[child + 1] < h->data[child])
      child++;
    if (h->data[child] >= last)
      break;
    h->data[i] = h->data[child];
    i = child;
  }
  h->data[i] = last;
  return top;
}

static uint64_t ready(const writer_t *w, uint32_t unit) {
  const hd_former_t *f = w->f;
  uint32_t first = unit >= f->groups.size ? unit - (uint32_t)f->groups.size
                                          : f->groups.data[unit].anchor;
  return (uint64_t)first << 32 | unit;
}

static bool is_unit(const hd_former_t *f, uint32_t unit) {
  if (unit < f->groups.size)
    return unit > 0;
  return f->nodes[unit - f->groups.size].group == 0;
}

static void write_nodes(writer_t *w) {
  hd_former_t *f = w->f;
  uint32_t units = (uint32_t)(f->groups.size + f->graph->nodes.size);
  w->waits = HD_ARENA_ARRAY(w->arena, uint32_t, units + 1);
  w->users = HD_ARENA_ARRAY(w->arena, hd_numbers_t, units + 1);
  heap_t heap = {.data = HD_ARENA_ARRAY(w->arena, uint64_t, units + 1)};
  for (uint32_t u = 1; u < f->groups.size; u++)
    for (size_t i = 0; i < f->groups.data[u].members.size; i++)
      add_wait(w, u, f->groups.data[u].members.data[i]);
  for (uint32_t i = 0; i < f->graph->nodes.size; i++)
    if (!f->nodes[i].group)
      add_wait(w, unit_of(f, i), i);
  for (uint32_t u = 0; u < units; u++)
    if (is_unit(f, u) && w->waits[u] == 0)
      heap_push(&heap, ready(w, u));
  while (heap.size > 0) {
    uint32_t unit = (uint32_t)heap_pop(&heap);
    write_unit(w, unit);
    for (size_t i = 0; i < w->users[unit].size; i++)
      if (--w->waits[w->users[unit].data[i]] == 0)
        heap_push(&heap, ready(w, w->users[unit].data[i]));
  }
}

const hd_graph_t *hd_former_graph(hd_former_t *f) {
  writer_t w = {.f = f, .arena = f->arena};
  w.graph = hd_graph_without_nodes(f->arena, f->graph);
  hd_names_take(w.arena, &w.names, f->graph);
  write_nodes(&w);
  return w.graph;
}
