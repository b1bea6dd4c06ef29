// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What threads learn at mbarriers and cluster barriers, and what fences between
// the proxies tell.
#include "Sim/Sanitizer.h"

#include <stdlib.h>

static hd_sim_clocks_t *keep(hd_sim_clocks_t *clocks) {
  if (clocks)
    clocks->refs++;
  return clocks;
}

void hd_sim_memo_drop(hd_sim_memo_t *memo) {
  hd_sim_sync_drop(&memo->from);
  hd_sim_sync_drop(&memo->to);
}

// What the fiber knows becomes what the memo says; false where it cannot tell.
static bool take_memo(hd_sim_fiber_t *fiber, const hd_sim_memo_t *memo) {
  if (!memo->from || memo->from != fiber->clocks)
    return false;
  hd_sim_sync_drop(&fiber->clocks);
  fiber->clocks = keep(memo->to);
  return true;
}

static void set_clocks(hd_sim_fiber_t *fiber, hd_sim_clocks_t *own,
                       hd_sim_memo_t *memo) {
  hd_sim_memo_drop(memo);
  *memo = (hd_sim_memo_t){fiber->clocks, keep(own)};
  fiber->clocks = own; // The memo has the fiber's reference to the old ones.
}

void hd_sim_sync_arrive(hd_sim_fiber_t *fiber, const hd_sim_resident_t *block,
                        hd_sim_clocks_t **joined) {
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  hd_sim_clocks_t *mine = hd_sim_clocks_snapshot(fiber);
  if (!*joined) {
    *joined = hd_sim_clocks_create(run, block->number);
  } else if ((*joined)->refs > 1) {
    hd_sim_clocks_t *own = hd_sim_clocks_copy(run, *joined);
    hd_sim_sync_drop(joined);
    *joined = own;
  }
  hd_sim_clocks_learn(run, *joined, mine);
  hd_sim_sync_drop(&mine);
  fiber->clock++;
}

void hd_sim_sync_learn(hd_sim_fiber_t *fiber, hd_sim_clocks_t *clocks,
                       hd_sim_memo_t *memo) {
  if (!clocks)
    return;
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  hd_sim_clocks_of(fiber);
  if (take_memo(fiber, memo))
    return;
  hd_sim_clocks_t *own = hd_sim_clocks_copy(run, fiber->clocks);
  hd_sim_clocks_learn(run, own, clocks);
  set_clocks(fiber, own, memo);
}

void hd_sim_sync_mark(hd_sim_fiber_t *fiber, uint32_t entry, uint32_t clock,
                      hd_sim_memo_t *memo) {
  if (hd_sim_clocks_of(fiber)->at[entry] >= clock || take_memo(fiber, memo))
    return;
  hd_sim_clocks_t *own =
      hd_sim_clocks_copy(hd_sim_run_of(fiber), fiber->clocks);
  own->at[entry] = clock;
  set_clocks(fiber, own, memo);
}

void hd_sim_sync_proxy_fence(hd_sim_fiber_t *fiber, bool global) {
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  hd_sim_clocks_t *own = hd_sim_clocks_copy(run, hd_sim_clocks_of(fiber));
  uint32_t kind = global ? HD_SIM_ENTRY_FENCED_GLOBAL : HD_SIM_ENTRY_FENCED;
  uint32_t first = hd_sim_entry(run, kind, 0);
  for (uint32_t i = 0; i < run->num_threads; i++)
    if (own->at[first + i] < own->at[i])
      own->at[first + i] = own->at[i];
  hd_sim_sync_drop(&fiber->clocks);
  fiber->clocks = own;
  *(global ? &fiber->fenced_global : &fiber->fenced) = fiber->clock++;
}

// What a thread copied counts as written by it when it had waited for it.
static bool copies_fenced(const hd_sim_fiber_t *fiber,
                          const hd_sim_stamp_t *stamp) {
  const hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  uint32_t thread =
      stamp->agent - hd_sim_entry(hd_sim_run_of(fiber), HD_SIM_ENTRY_COPIES, 0);
  if (stamp->block != block->number || thread >= block->num_threads)
    return true; // Copies go to the own block's memory alone.
  const hd_sim_fiber_t *copier = &block->threads[thread];
  uint32_t i = 0;
  while (i < copier->num_waited && copier->waited[i].group < stamp->clock)
    i++;
  hd_sim_stamp_t write = *stamp;
  write.agent = (uint16_t)thread;
  write.clock = i < copier->num_waited ? copier->waited[i].clock : UINT32_MAX;
  return hd_sim_fenced(fiber, &write, false);
}

bool hd_sim_fenced(const hd_sim_fiber_t *fiber, const hd_sim_stamp_t *stamp,
                   bool global) {
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  if (stamp->agent >= run->num_threads)
    return copies_fenced(fiber, stamp);
  if (stamp->block == hd_sim_resident_of(fiber)->number &&
      stamp->agent == (uint32_t)fiber->head.linear &&
      (global ? fiber->fenced_global : fiber->fenced) >= stamp->clock)
    return true;
  hd_sim_stamp_t fence = *stamp;
  uint32_t kind = global ? HD_SIM_ENTRY_FENCED_GLOBAL : HD_SIM_ENTRY_FENCED;
  fence.agent = (uint16_t)hd_sim_entry(run, kind, stamp->agent);
  return hd_sim_clocks_cover(fiber->clocks, &fence);
}

void hd_sim_sync_cluster(hd_sim_resident_t *const *unit, uint32_t num_blocks) {
  hd_sim_run_t *run = unit[0]->worker->run;
  for (uint32_t i = 0; i < num_blocks; i++) {
    hd_sim_cluster_t *cluster = &unit[i]->cluster;
    hd_sim_sync_drop(&cluster->complete);
    hd_sim_memo_drop(&cluster->memo);
    cluster->complete = cluster->joined
                            ? hd_sim_clocks_copy(run, cluster->joined)
                            : hd_sim_clocks_create(run, unit[i]->number);
    for (uint32_t j = 0; j < num_blocks; j++)
      if (j != i && unit[j]->cluster.joined)
        hd_sim_clocks_learn(run, cluster->complete, unit[j]->cluster.joined);
  }
  for (uint32_t i = 0; i < num_blocks; i++)
    hd_sim_sync_drop(&unit[i]->cluster.joined);
}

// --- Visits: accesses to another block's shared memory ---

typedef struct hd_sim_visits {
  uint32_t count, capacity;
  hd_sim_stamp_t of[]; // The last of each thread.
} visits_t;

static hd_sim_stamp_t *visit_of(hd_sim_run_t *run, hd_sim_resident_t *block,
                                const hd_sim_stamp_t *stamp) {
  visits_t *visits = block->visits;
  for (uint32_t i = 0; visits && i < visits->count; i++)
    if (visits->of[i].block == stamp->block &&
        visits->of[i].agent == stamp->agent)
      return &visits->of[i];
  if (!visits || visits->count == visits->capacity) {
    uint32_t capacity = visits ? visits->capacity * 2 : 16;
    bool is_new = !visits;
    visits = realloc(visits, sizeof *visits + capacity * sizeof *visits->of);
    if (!visits)
      hd_sim_no_memory(run);
    visits->capacity = capacity;
    if (is_new)
      visits->count = 0;
    block->visits = visits;
  }
  return &visits->of[visits->count++];
}

void hd_sim_check_visit(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                        hd_sim_resident_t *block, const hd_sim_agent_t *agent) {
  hd_sim_run_t *run = hd_sim_run_of(fiber);
  hd_sim_resident_t *own = hd_sim_resident_of(fiber);
  if (!agent && block == own)
    return;
  hd_sim_agent_t self = {own->number, (uint32_t)fiber->head.linear,
                         fiber->clock};
  agent = agent ? agent : &self;
  hd_sim_stamp_t stamp = {
      .block = agent->block,
      .clock = agent->clock,
      .site = hd_sim_site_number(run->sanitizer, site),
      .agent = (uint16_t)agent->entry,
      .flags = HD_SIM_VALID,
  };
  *visit_of(run, block, &stamp) = stamp;
}

static void report_visit(hd_sim_fiber_t *last, const hd_sim_stamp_t *stamp) {
  hd_sim_run_t *run = hd_sim_run_of(last);
  const hd_sim_site_t *site = run->sanitizer->sites[stamp->site].site;
  bool is_copy = stamp->agent >= hd_sim_entry(run, HD_SIM_ENTRY_MBARRIERS, 0);
  char you[HD_SIM_NAME_SIZE], place[HD_SIM_PLACE_SIZE];
  uint32_t block = hd_sim_resident_of(last)->number;
  hd_sim_place_name(site, NULL, place);
  if (is_copy)
    hd_sim_finding(
        last, HD_E0714, site, NULL,
        "a copy into block %u touches %s in block %u, which may have "
        "ended: none of its threads knows that the phase of the "
        "mbarrier is over",
        stamp->block, place, block);
  else
    hd_sim_finding(last, HD_E0714, site, NULL,
                   "%s touches %s in block %u, which may have ended: no "
                   "cluster_sync stands between this and its end",
                   hd_sim_stamp_name(run, stamp, you), place, block);
}

// The block's shared memory is gone now: whoever was in it must be known to
// have left by one of its threads at least.
void hd_sim_check_visits(hd_sim_fiber_t *last) {
  hd_sim_resident_t *block = hd_sim_resident_of(last);
  hd_sim_run_t *run = hd_sim_run_of(last);
  visits_t *visits = block->visits;
  if (!visits || visits->count == 0)
    return;
  hd_sim_clocks_t *all = hd_sim_clocks_create(run, block->number);
  for (uint32_t i = 0; i < block->num_threads; i++)
    if (block->threads[i].clocks)
      hd_sim_clocks_learn(run, all, block->threads[i].clocks);
  for (uint32_t i = 0; i < visits->count; i++)
    if (!hd_sim_clocks_cover(all, &visits->of[i]))
      report_visit(last, &visits->of[i]);
  hd_sim_sync_drop(&all);
  visits->count = 0;
}
