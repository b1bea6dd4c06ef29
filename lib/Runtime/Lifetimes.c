// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Runtime/Lifetimes.h"

#include <stdlib.h>

static int64_t rounded(int64_t bytes, int64_t align) {
  return (bytes + align - 1) & -align;
}

static int by_size(const void *a, const void *b) {
  const hd_lifetime_t *x = *(hd_lifetime_t *const *)a;
  const hd_lifetime_t *y = *(hd_lifetime_t *const *)b;
  if (x->bytes != y->bytes)
    return x->bytes < y->bytes ? 1 : -1;
  // Ties as they come, for the same answer everywhere.
  return x->first != y->first ? (x->first < y->first ? -1 : 1)
                              : (x < y ? -1 : x > y);
}

// --- Those that live at the same time ---

// What is placed, in a tree over the steps: a tensor stands at the nodes that
// make up its life, the largest that lie in it.
typedef struct standing {
  hd_lifetime_t *life;
  struct standing *next;
} standing_t;

typedef struct node {
  standing_t *standing;
  int64_t top, top_within; // Where these end, and all beneath, at most.
} node_t;

// Looked at for a gap. Where more live at once, tensors are put on top.
enum { MOST_NEIGHBOURS = 250 };

typedef struct tree {
  hd_arena_t *scratch;
  node_t *nodes; // The root is 1, the children of n are 2 n and 2 n + 1.
  size_t steps;  // A power of two.
  hd_lifetime_t *lives;
  uint32_t *seen; // By the search of this number.
  uint32_t search;
  hd_lifetime_t **found;
  size_t num_found;
} tree_t;

// A node, and the steps that are its.
typedef struct span {
  size_t node, first, last;
} span_t;

static span_t half(span_t s, bool upper) {
  size_t middle = s.first + (s.last - s.first) / 2;
  return upper ? (span_t){2 * s.node + 1, middle + 1, s.last}
               : (span_t){2 * s.node, s.first, middle};
}

static span_t root_of(const tree_t *t) { return (span_t){1, 0, t->steps - 1}; }

static void insert(tree_t *t, span_t s, hd_lifetime_t *life, int64_t top) {
  node_t *node = &t->nodes[s.node];
  if (life->last < s.first || s.last < life->first)
    return;
  node->top_within = top > node->top_within ? top : node->top_within;
  if (life->first <= s.first && s.last <= life->last) {
    standing_t *standing = HD_ARENA_NEW(t->scratch, standing_t);
    *standing = (standing_t){life, node->standing};
    node->standing = standing;
    node->top = top > node->top ? top : node->top;
    return;
  }
  insert(t, half(s, false), life, top);
  insert(t, half(s, true), life, top);
}

// Finds those that live when `life` does, MOST_NEIGHBOURS + 1 at most.
static void find_neighbours(tree_t *t, span_t s, const hd_lifetime_t *life) {
  const node_t *node = &t->nodes[s.node];
  if (life->last < s.first || s.last < life->first || !node->top_within)
    return;
  for (standing_t *o = node->standing; o; o = o->next) {
    if (t->num_found > MOST_NEIGHBOURS)
      return;
    uint32_t *seen = &t->seen[o->life - t->lives];
    if (*seen != t->search)
      t->found[t->num_found++] = o->life;
    *seen = t->search;
  }
  if (s.first == s.last || t->num_found > MOST_NEIGHBOURS)
    return;
  find_neighbours(t, half(s, false), life);
  find_neighbours(t, half(s, true), life);
}

// Where all of them end.
static int64_t find_top(const tree_t *t, span_t s, const hd_lifetime_t *life) {
  const node_t *node = &t->nodes[s.node];
  if (life->last < s.first || s.last < life->first)
    return 0;
  if (life->first <= s.first && s.last <= life->last)
    return node->top_within;
  int64_t a = find_top(t, half(s, false), life);
  int64_t b = find_top(t, half(s, true), life);
  a = a > b ? a : b;
  return a > node->top ? a : node->top;
}

static int by_offset(const void *a, const void *b) {
  const hd_lifetime_t *x = *(hd_lifetime_t *const *)a;
  const hd_lifetime_t *y = *(hd_lifetime_t *const *)b;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

// The smallest gap between those that live at the same time; behind them where
// none is large enough.
static int64_t find_gap(tree_t *t, const hd_lifetime_t *life, int64_t align) {
  int64_t size = rounded(life->bytes, align), end = 0, best = -1;
  int64_t best_gap = INT64_MAX;
  t->num_found = 0;
  t->search++;
  find_neighbours(t, root_of(t), life);
  if (t->num_found > MOST_NEIGHBOURS)
    return find_top(t, root_of(t), life);
  if (t->num_found)
    qsort(t->found, t->num_found, sizeof(*t->found), by_offset);
  for (size_t i = 0; i < t->num_found; i++) {
    const hd_lifetime_t *other = t->found[i];
    int64_t gap = other->offset - end;
    if (gap >= size && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    int64_t after = other->offset + rounded(other->bytes, align);
    end = after > end ? after : end;
  }
  return best >= 0 ? best : end;
}

static tree_t make_tree(hd_arena_t *scratch, hd_lifetime_t *lives,
                        size_t count) {
  tree_t t = {.scratch = scratch, .lives = lives, .steps = 1};
  for (size_t i = 0; i < count; i++)
    while (lives[i].first <= lives[i].last && lives[i].last >= t.steps)
      t.steps *= 2;
  t.nodes = HD_ARENA_ARRAY(scratch, node_t, 2 * t.steps);
  t.seen = HD_ARENA_ARRAY(scratch, uint32_t, count + 1);
  t.found = HD_ARENA_ARRAY(scratch, hd_lifetime_t *, MOST_NEIGHBOURS + 1);
  return t;
}

int64_t hd_lifetimes_place(hd_arena_t *scratch, hd_lifetime_t *lives,
                           size_t count, int64_t align) {
  hd_lifetime_t **order = HD_ARENA_ARRAY(scratch, hd_lifetime_t *, count + 1);
  tree_t tree = make_tree(scratch, lives, count);
  int64_t total = 0;
  for (size_t i = 0; i < count; i++)
    order[i] = &lives[i];
  if (count)
    qsort(order, count, sizeof(*order), by_size);
  for (size_t i = 0; i < count; i++) {
    hd_lifetime_t *life = order[i];
    bool lives_once = life->first <= life->last;
    hd_budget_check(scratch->budget);
    life->offset = lives_once ? find_gap(&tree, life, align) : 0;
    int64_t end = life->offset + rounded(life->bytes, align);
    total = end > total ? end : total;
    if (lives_once && life->bytes)
      insert(&tree, root_of(&tree), life, end);
  }
  return total;
}

int64_t hd_lifetimes_bound(hd_arena_t *scratch, const hd_lifetime_t *lives,
                           size_t count, size_t steps, int64_t align) {
  // What begins to live at a step, less what ended before it.
  int64_t *more = HD_ARENA_ARRAY(scratch, int64_t, steps + 1);
  int64_t live = 0, most = 0;
  for (size_t i = 0; i < count; i++) {
    if (lives[i].first > lives[i].last)
      continue;
    int64_t bytes = rounded(lives[i].bytes, align);
    more[lives[i].first] += bytes;
    more[lives[i].last + 1] -= bytes;
  }
  for (size_t step = 0; step < steps; step++) {
    live += more[step];
    most = live > most ? live : most;
  }
  return most;
}
