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

static bool overlap(const hd_lifetime_t *a, const hd_lifetime_t *b) {
  return a->first <= b->last && b->first <= a->last;
}

// placed is sorted by offset. The smallest gap between those that live at the
// same time; behind them where none is large enough.
static int64_t find_gap(hd_lifetime_t *const *placed, size_t count,
                        const hd_lifetime_t *life, int64_t align) {
  int64_t size = rounded(life->bytes, align), end = 0, best = -1;
  int64_t best_gap = INT64_MAX;
  for (size_t i = 0; i < count; i++) {
    const hd_lifetime_t *other = placed[i];
    if (!overlap(life, other))
      continue;
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

int64_t hd_lifetimes_place(hd_arena_t *scratch, hd_lifetime_t *lives,
                           size_t count, int64_t align) {
  hd_lifetime_t **order = HD_ARENA_ARRAY(scratch, hd_lifetime_t *, count + 1);
  hd_lifetime_t **placed = HD_ARENA_ARRAY(scratch, hd_lifetime_t *, count + 1);
  int64_t total = 0;
  for (size_t i = 0; i < count; i++)
    order[i] = &lives[i];
  if (count)
    qsort(order, count, sizeof(*order), by_size);
  for (size_t i = 0; i < count; i++) {
    hd_lifetime_t *life = order[i];
    hd_budget_check(scratch->budget);
    life->offset = find_gap(placed, i, life, align);
    int64_t end = life->offset + rounded(life->bytes, align);
    total = end > total ? end : total;
    size_t at = i;
    for (; at > 0 && placed[at - 1]->offset > life->offset; at--)
      placed[at] = placed[at - 1];
    placed[at] = life;
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
