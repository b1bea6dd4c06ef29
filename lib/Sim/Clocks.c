// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who knows what of whom: vector clocks, and the edges that carry them.
#include "Sim/Sanitizer.h"

#include <stdlib.h>
#include <string.h>

// What is known of other blocks, sorted by number. Never changed once made.
struct hd_sim_foreign {
  uint32_t refs, count;
  uint32_t room; // For so many.
  hd_sim_clocks_t *of[];
};

// --- Values ---

static hd_sim_clocks_t *retain(hd_sim_clocks_t *clocks) {
  clocks->refs++;
  return clocks;
}

static size_t foreign_bytes(uint32_t room) {
  return sizeof(hd_sim_foreign_t) + room * sizeof(hd_sim_clocks_t *);
}

static size_t clocks_bytes(uint32_t count) {
  return sizeof(hd_sim_clocks_t) + count * sizeof(uint32_t);
}

static void foreign_release(hd_sim_run_t *run, hd_sim_foreign_t *foreign) {
  if (!foreign || --foreign->refs > 0)
    return;
  for (uint32_t i = 0; i < foreign->count; i++)
    hd_sim_sync_drop(&foreign->of[i]);
  hd_sim_refund(run, foreign_bytes(foreign->room));
  free(foreign);
}

void hd_sim_sync_drop(hd_sim_clocks_t **clocks) {
  hd_sim_clocks_t *old = *clocks;
  *clocks = NULL;
  if (!old || --old->refs > 0)
    return;
  hd_sim_sync_drop(&old->merged);
  hd_sim_sync_drop(&old->bare);
  foreign_release(old->run, old->foreign);
  hd_sim_refund(old->run, clocks_bytes(old->count));
  free(old);
}

hd_sim_clocks_t *hd_sim_clocks_create(hd_sim_run_t *run, uint32_t block) {
  uint32_t count = hd_sim_entries(run);
  hd_sim_clocks_t *clocks = hd_sim_alloc(run, 0, clocks_bytes(count));
  if (!clocks)
    hd_sim_no_memory(run);
  clocks->run = run;
  clocks->refs = 1;
  clocks->block = block;
  clocks->count = count;
  return clocks;
}

hd_sim_clocks_t *hd_sim_clocks_copy(hd_sim_run_t *run,
                                    const hd_sim_clocks_t *from) {
  hd_sim_clocks_t *clocks = hd_sim_clocks_create(run, from->block);
  memcpy(clocks->at, from->at, from->count * sizeof *from->at);
  clocks->foreign = from->foreign;
  if (clocks->foreign)
    clocks->foreign->refs++;
  return clocks;
}

// For the lists of foreign views, which would else hold one another for ever.
static hd_sim_clocks_t *bare_of(hd_sim_run_t *run, hd_sim_clocks_t *clocks) {
  if (!clocks->foreign)
    return clocks;
  if (!clocks->bare) {
    clocks->bare = hd_sim_clocks_create(run, clocks->block);
    memcpy(clocks->bare->at, clocks->at, clocks->count * sizeof *clocks->at);
  }
  return clocks->bare;
}

void hd_sim_clocks_raise(hd_sim_clocks_t *into, const hd_sim_clocks_t *from) {
  for (uint32_t i = 0; i < into->count; i++)
    if (into->at[i] < from->at[i])
      into->at[i] = from->at[i];
}

static bool covers(const hd_sim_clocks_t *all, const hd_sim_clocks_t *part) {
  for (uint32_t i = 0; i < all->count; i++)
    if (all->at[i] < part->at[i])
      return false;
  return true;
}

static const hd_sim_clocks_t *find_foreign(const hd_sim_foreign_t *foreign,
                                           uint32_t block) {
  uint32_t low = 0, high = foreign ? foreign->count : 0;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (foreign->of[middle]->block < block)
      low = middle + 1;
    else
      high = middle;
  }
  return foreign && low < foreign->count && foreign->of[low]->block == block
             ? foreign->of[low]
             : NULL;
}

// Of two views of one block, one that holds both.
static hd_sim_clocks_t *join_views(hd_sim_run_t *run, hd_sim_clocks_t *a,
                                   hd_sim_clocks_t *b) {
  if (a == b || covers(a, b))
    return retain(a);
  if (covers(b, a))
    return retain(b);
  hd_sim_clocks_t *both = hd_sim_clocks_create(run, a->block);
  hd_sim_clocks_raise(both, a);
  hd_sim_clocks_raise(both, b);
  return both;
}

// Merges the sorted lists; entries of block `self` are left out.
static hd_sim_foreign_t *join_foreign(hd_sim_run_t *run,
                                      const hd_sim_foreign_t *a,
                                      hd_sim_clocks_t *const *b, uint32_t count,
                                      uint32_t self) {
  uint32_t old = a ? a->count : 0, i = 0, j = 0;
  hd_sim_foreign_t *all = hd_sim_alloc(run, 0, foreign_bytes(old + count));
  if (!all)
    hd_sim_no_memory(run);
  all->refs = 1;
  all->room = old + count;
  while (i < old || j < count) {
    if (j < count && b[j]->block == self)
      j++;
    else if (j == count || (i < old && a->of[i]->block < b[j]->block))
      all->of[all->count++] = retain(a->of[i++]);
    else if (i == old || b[j]->block < a->of[i]->block)
      all->of[all->count++] = retain(b[j++]);
    else
      all->of[all->count++] = join_views(run, a->of[i++], b[j++]);
  }
  return all;
}

static void learn_foreign(hd_sim_run_t *run, hd_sim_clocks_t *into,
                          hd_sim_clocks_t *const *views, uint32_t count) {
  bool news = false;
  for (uint32_t i = 0; i < count; i++) {
    if (views[i]->block == into->block) {
      hd_sim_clocks_raise(into, views[i]);
      continue;
    }
    const hd_sim_clocks_t *old = find_foreign(into->foreign, views[i]->block);
    news |= !old || (old != views[i] && !covers(old, views[i]));
  }
  if (!news)
    return;
  hd_sim_foreign_t *all =
      join_foreign(run, into->foreign, views, count, into->block);
  foreign_release(run, into->foreign);
  into->foreign = all;
}

// into, which nobody shares, learns all that from knows.
void hd_sim_clocks_learn(hd_sim_run_t *run, hd_sim_clocks_t *into,
                         hd_sim_clocks_t *from) {
  if (from->block == into->block) {
    hd_sim_clocks_raise(into, from);
  } else {
    hd_sim_clocks_t *view = bare_of(run, from);
    learn_foreign(run, into, &view, 1);
  }
  if (from->foreign && from->foreign != into->foreign)
    learn_foreign(run, into, from->foreign->of, from->foreign->count);
}

// --- Threads ---

static uint32_t own_entry(const hd_sim_fiber_t *fiber) {
  return (uint32_t)fiber->head.linear;
}

hd_sim_clocks_t *hd_sim_clocks_of(hd_sim_fiber_t *fiber) {
  if (!fiber->clocks)
    fiber->clocks = hd_sim_clocks_create(hd_sim_run_of(fiber),
                                         hd_sim_resident_of(fiber)->number);
  return fiber->clocks;
}

// Enters its own doings, of which nobody tells it.
static void add_own(const hd_sim_fiber_t *fiber, hd_sim_clocks_t *clocks) {
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  const uint32_t own[HD_SIM_ENTRY_MBARRIERS] = {
      [HD_SIM_ENTRY_THREADS] = fiber->clock,
      [HD_SIM_ENTRY_COPIES] = fiber->waited_group,
      [HD_SIM_ENTRY_FENCED] = fiber->fenced,
      [HD_SIM_ENTRY_FENCED_GLOBAL] = fiber->fenced_global,
      [HD_SIM_ENTRY_BULK_READS] = fiber->bulk_read,
      [HD_SIM_ENTRY_BULK_WRITES] = fiber->bulk_wrote,
  };
  for (uint32_t i = 0; i < HD_SIM_ENTRY_MBARRIERS; i++) {
    uint32_t *at = &clocks->at[hd_sim_entry(run, i, own_entry(fiber))];
    if (*at < own[i])
      *at = own[i];
  }
}

hd_sim_clocks_t *hd_sim_clocks_snapshot(hd_sim_fiber_t *fiber) {
  hd_sim_clocks_t *clocks =
      hd_sim_clocks_copy(hd_sim_run_of(fiber), hd_sim_clocks_of(fiber));
  add_own(fiber, clocks);
  return clocks;
}

// How far it has waited for its own asynchronous agent.
static bool waited_for(const hd_sim_fiber_t *fiber, uint32_t agent,
                       uint32_t *waited) {
  const hd_sim_run_t *run = hd_sim_run_of(fiber);
  uint32_t own = own_entry(fiber);
  if (agent == hd_sim_entry(run, HD_SIM_ENTRY_COPIES, own))
    *waited = fiber->waited_group;
  else if (agent == hd_sim_entry(run, HD_SIM_ENTRY_BULK_READS, own))
    *waited = fiber->bulk_read;
  else if (agent == hd_sim_entry(run, HD_SIM_ENTRY_BULK_WRITES, own))
    *waited = fiber->bulk_wrote;
  else
    return false;
  return true;
}

bool hd_sim_clocks_cover(const hd_sim_clocks_t *clocks,
                         const hd_sim_stamp_t *stamp) {
  if (clocks && stamp->block != clocks->block)
    clocks = find_foreign(clocks->foreign, stamp->block);
  return clocks && clocks->at[stamp->agent] >= stamp->clock;
}

bool hd_sim_knows(const hd_sim_fiber_t *fiber, const hd_sim_stamp_t *stamp) {
  const hd_sim_clocks_t *clocks = fiber->clocks;
  if (stamp->block != hd_sim_resident_of(fiber)->number) {
    clocks = find_foreign(clocks ? clocks->foreign : NULL, stamp->block);
  } else {
    if (stamp->agent == own_entry(fiber))
      return true;
    uint32_t waited;
    if (waited_for(fiber, stamp->agent, &waited) && waited >= stamp->clock)
      return true;
  }
  return clocks && clocks->at[stamp->agent] >= stamp->clock;
}

bool hd_sim_knows_block(const hd_sim_fiber_t *fiber, uint32_t block) {
  return fiber->clocks && find_foreign(fiber->clocks->foreign, block);
}

bool hd_sim_knows_of_any(const hd_sim_fiber_t *fiber, uint32_t entry,
                         uint32_t clock) {
  const hd_sim_clocks_t *clocks = fiber->clocks;
  if (!clocks || clocks->at[entry] >= clock)
    return clocks != NULL;
  const hd_sim_foreign_t *foreign = clocks->foreign;
  for (uint32_t i = 0; foreign && i < foreign->count; i++)
    if (foreign->of[i]->at[entry] >= clock)
      return true;
  return false;
}

void hd_sim_sync_copies(hd_sim_fiber_t *fiber, uint32_t group) {
  if (fiber->waited_group >= group)
    return;
  fiber->waited_group = group;
  if (fiber->num_waited == fiber->cap_waited) {
    uint32_t capacity = fiber->cap_waited ? fiber->cap_waited * 2 : 8;
    void *waited = realloc(fiber->waited, capacity * sizeof *fiber->waited);
    if (!waited)
      hd_sim_no_memory(hd_sim_run_of(fiber));
    fiber->waited = waited;
    fiber->cap_waited = capacity;
  }
  fiber->waited[fiber->num_waited++] =
      (struct hd_sim_waited){group, fiber->clock};
}

// --- Barriers ---

void hd_sim_sync_give(hd_sim_fiber_t *fiber, hd_sim_clocks_t **joined) {
  hd_sim_clocks_t *mine = hd_sim_clocks_of(fiber);
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  if (!*joined)
    *joined = hd_sim_clocks_copy(run, mine);
  else if ((*joined)->merged != mine)
    hd_sim_clocks_learn(run, *joined, mine);
  retain(mine);
  hd_sim_sync_drop(&(*joined)->merged);
  (*joined)->merged = mine;
  add_own(fiber, *joined);
  fiber->clock++;
}

// A view of a block with nothing but the phases of mbarriers.
static hd_sim_clocks_t *phases_of(hd_sim_run_t *run,
                                  const hd_sim_clocks_t *clocks) {
  uint32_t first = hd_sim_entry(run, HD_SIM_ENTRY_MBARRIERS, 0);
  uint32_t end = hd_sim_entry(run, HD_SIM_ENTRY_WARPGROUPS, 0);
  hd_sim_clocks_t *phases = hd_sim_clocks_create(run, clocks->block);
  memcpy(phases->at + first, clocks->at + first,
         (end - first) * sizeof *clocks->at);
  return phases;
}

void hd_sim_sync_give_phases(hd_sim_fiber_t *fiber, hd_sim_clocks_t **joined) {
  const hd_sim_clocks_t *mine = hd_sim_clocks_of(fiber);
  const hd_sim_foreign_t *foreign = mine->foreign;
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  if (!*joined)
    *joined = hd_sim_clocks_create(run, mine->block);
  for (uint32_t i = 0; i <= (foreign ? foreign->count : 0); i++) {
    hd_sim_clocks_t *phases = phases_of(run, i ? foreign->of[i - 1] : mine);
    hd_sim_clocks_learn(run, *joined, phases);
    hd_sim_sync_drop(&phases);
  }
}

void hd_sim_sync_take(hd_sim_fiber_t *fiber, hd_sim_clocks_t *joined) {
  if (!joined)
    return;
  hd_sim_sync_drop(&joined->merged);
  retain(joined);
  hd_sim_sync_drop(&fiber->clocks);
  fiber->clocks = joined;
}

void hd_sim_sync_warp(const hd_sim_warp_t *warp) {
  hd_sim_clocks_t *joined = NULL;
  for (unsigned lane = 0; lane < HD_SIM_WARP_SIZE; lane++) {
    if (warp->threads[lane]) {
      hd_sim_fiber_t *fiber = hd_sim_fiber(warp->threads[lane]);
      if (!hd_sim_sanitizer_of(fiber))
        return;
      hd_sim_sync_give(fiber, &joined);
    }
  }
  for (unsigned lane = 0; lane < HD_SIM_WARP_SIZE; lane++)
    if (warp->threads[lane])
      hd_sim_sync_take(hd_sim_fiber(warp->threads[lane]), joined);
  hd_sim_sync_drop(&joined);
}
