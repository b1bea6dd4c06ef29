// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a node that joins a group would have the group wait for itself: a
// path leads out of the group and, not directly, to the node.
//
// It is looked for from both ends, with a bound that grows: one of them is soon
// at its end in all but the strangest graphs, whatever lies beyond the other.
// Walks of their own instead of recursion: chains may be as long as the graph.
#include "Fusion/Form/FormState.h"

enum { FIRST_EDGES = 64, MOST_EDGES = 4096 };

typedef struct walk {
  hd_former_t *f;
  uint32_t node, group;
  unsigned edges, most; // Looked at so far.
} walk_t;

// Nodes of no group are units of their own, the others their groups.
static void open_unit(walk_t *w, uint32_t node, uint32_t group) {
  hd_former_t *f = w->f;
  uint32_t *seen = group ? &f->groups.data[group].seen : &f->nodes[node].seen;
  if (*seen != f->stamp)
    hd_vec_push(f->arena, &f->open, node);
  *seen = f->stamp;
}

// The members of the unit that a node stands for.
static const uint32_t *members_of(const hd_former_t *f, const uint32_t *node,
                                  size_t *count) {
  const hd_numbers_t *members = &f->groups.data[f->nodes[*node].group].members;
  *count = f->nodes[*node].group ? members->size : 1;
  return f->nodes[*node].group ? members->data : node;
}

// Goes on from what is open, by a function that opens what is beyond a node.
static hd_answer_t walk(walk_t *w, hd_answer_t answer,
                        hd_answer_t (*open)(walk_t *w, uint32_t node)) {
  hd_former_t *f = w->f;
  while (answer == HD_NO && f->open.size > 0) {
    size_t count;
    uint32_t next = f->open.data[--f->open.size];
    const uint32_t *members = members_of(f, &next, &count);
    for (size_t i = 0; i < count && answer == HD_NO; i++)
      answer = open(w, members[i]);
  }
  return answer;
}

// --- From the node, against the edges ---

// What gives what a node reads. A prologue is none of it: it is computed by
// whoever reads it, and a member there itself. Nodes before the first of any
// group depend on none.
static hd_answer_t open_givers(walk_t *w, uint32_t node) {
  hd_former_t *f = w->f;
  const hd_node_t *n = f->nodes[node].node;
  for (uint32_t k = 0; k < n->num_inputs; k++) {
    int64_t giver = n->inputs[k] ? hd_former_uses(f, n->inputs[k])->giver : -1;
    if (++w->edges > w->most)
      return HD_NOT_KNOWN;
    if (giver < (int64_t)f->first_grouped || f->nodes[giver].is_prologue)
      continue;
    if (f->nodes[giver].group != w->group)
      open_unit(w, (uint32_t)giver, f->nodes[giver].group);
    else if (node != w->node)
      return HD_YES;
  }
  return HD_NO;
}

static hd_answer_t walk_back(walk_t *w) {
  hd_former_t *f = w->f;
  f->open.size = 0;
  f->stamp++;
  hd_answer_t answer = open_givers(w, w->node);
  return walk(w, answer, open_givers);
}

// --- From the group, along the edges ---

static hd_answer_t open_user(walk_t *w, uint32_t user, bool from_group) {
  const hd_formed_t *formed = &w->f->nodes[user];
  if (user == w->node)
    return from_group ? HD_NO : HD_YES;
  if (formed->group != w->group)
    open_unit(w, user, formed->group);
  for (size_t i = 0; i < formed->copies.size; i++) {
    uint32_t group = formed->copies.data[i];
    if (++w->edges > w->most)
      return HD_NOT_KNOWN;
    if (group != w->group)
      open_unit(w, w->f->groups.data[group].anchor, group);
  }
  return HD_NO;
}

static hd_answer_t open_users(walk_t *w, uint32_t node, bool from_group) {
  const hd_node_t *n = w->f->nodes[node].node;
  hd_answer_t answer = HD_NO;
  for (uint32_t k = 0; k < n->num_outputs; k++) {
    if (!n->outputs[k])
      continue;
    const hd_numbers_t *users = &hd_former_uses(w->f, n->outputs[k])->nodes;
    for (size_t i = 0; i < users->size && answer == HD_NO; i++)
      answer = ++w->edges > w->most ? HD_NOT_KNOWN
                                    : open_user(w, users->data[i], from_group);
  }
  return answer;
}

static hd_answer_t open_others(walk_t *w, uint32_t node) {
  return open_users(w, node, false);
}

static hd_answer_t walk_on(walk_t *w) {
  hd_former_t *f = w->f;
  f->open.size = 0;
  f->stamp++;
  const hd_numbers_t *own = &f->groups.data[w->group].members;
  hd_answer_t answer = HD_NO;
  for (size_t i = 0; i < own->size && answer == HD_NO; i++)
    if (!f->nodes[own->data[i]].is_prologue)
      answer = open_users(w, own->data[i], true);
  return walk(w, answer, open_others);
}

const char *hd_former_cycle(hd_former_t *f, uint32_t node, uint32_t group) {
  hd_answer_t answer = HD_NOT_KNOWN;
  for (unsigned most = FIRST_EDGES;
       answer == HD_NOT_KNOWN && most <= MOST_EDGES; most *= 4) {
    walk_t back = {f, node, group, 0, most}, on = back;
    answer = walk_back(&back);
    if (answer == HD_NOT_KNOWN)
      answer = walk_on(&on);
  }
  return answer == HD_NO    ? NULL
         : answer == HD_YES ? "it waits for something that needs the kernel's "
                              "result"
                            : "too much would have to be looked at to tell "
                              "whether it waits for the kernel's result";
}
