// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Says why a block cannot go on.
#include "Sim/Check.h"

#include <stdio.h>
#include <string.h>

static const char *site_name(const hd_sim_fiber_t *fiber) {
  const hd_sim_site_t *site = fiber->head.site;
  return site && site->tensor ? site->tensor : "a collective";
}

bool hd_sim_collective_agrees(const hd_sim_fiber_t *a,
                              const hd_sim_fiber_t *b) {
  const hd_sim_site_t *here = a->head.site, *there = b->head.site;
  bool same_place =
      here == there || !here || !there ||
      (here->source == there->source && here->offset == there->offset);
  if (a->head.function == b->head.function &&
      (same_place || !here || here->access != HD_SIM_ALIGNED))
    return true;
  char name[HD_SIM_NAME_SIZE];
  if (hd_sim_finding(a, HD_E0710, here, there,
                     "%s is at %s, and thread %d of its warp at %s%s",
                     hd_sim_thread_name(a, name), site_name(a), b->head.linear,
                     site_name(b), same_place ? "" : " elsewhere"))
    hd_note(hd_sim_run_of(a)->diags, hd_sim_site_loc(there),
            "the other thread is here");
  hd_sim_fail(hd_sim_run_of(a));
  return false;
}

static uint32_t count_state(const hd_sim_resident_t *block,
                            hd_sim_state_t state) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < block->num_threads; i++)
    count += block->threads[i].state == state;
  return count;
}

static const hd_sim_fiber_t *first_in(const hd_sim_resident_t *block,
                                      hd_sim_state_t state) {
  for (uint32_t i = 0; i < block->num_threads; i++)
    if (block->threads[i].state == state)
      return &block->threads[i];
  return NULL;
}

static void note_thread(const hd_sim_fiber_t *fiber, const char *what) {
  char name[HD_SIM_NAME_SIZE];
  hd_note(hd_sim_run_of(fiber)->diags, hd_sim_site_loc(fiber->head.site),
          "%s %s", hd_sim_thread_name(fiber, name), what);
}

// Threads wait at a barrier that the others will never reach.
static void explain_barrier(const hd_sim_resident_t *block,
                            const hd_sim_fiber_t *fiber) {
  const hd_sim_named_barrier_t *barrier = &block->barriers[fiber->barrier];
  char name[HD_SIM_NAME_SIZE];
  const hd_sim_fiber_t *elsewhere = NULL;
  for (uint32_t i = 0; i < block->num_threads && !elsewhere; i++)
    if (block->threads[i].state == HD_SIM_AT_BLOCK &&
        block->threads[i].barrier != fiber->barrier)
      elsewhere = &block->threads[i];
  if (!hd_sim_finding(fiber, HD_E0704, fiber->head.site, NULL,
                      "%s waits at barrier %d for ever: %u of %u threads "
                      "have come, %u have ended",
                      hd_sim_thread_name(fiber, name), fiber->barrier,
                      barrier->arrived, barrier->expected,
                      count_state(block, HD_SIM_ENDED)))
    return;
  if (elsewhere)
    note_thread(elsewhere, "waits at another barrier");
  const hd_sim_fiber_t *collective = first_in(block, HD_SIM_AT_WARP);
  if (collective)
    note_thread(collective, "waits for the other threads of its warp");
}

// Lanes wait for lanes that are at a barrier, or spin.
static void explain_warp(const hd_sim_resident_t *block,
                         const hd_sim_fiber_t *fiber) {
  uint32_t first =
      (uint32_t)fiber->head.linear / HD_SIM_WARP_SIZE * HD_SIM_WARP_SIZE;
  const hd_sim_fiber_t *other = NULL;
  if (hd_sim_wgmma_explain(fiber))
    return;
  for (uint32_t i = first;
       i < first + HD_SIM_WARP_SIZE && i < block->num_threads; i++)
    if (block->threads[i].state == HD_SIM_AT_BLOCK ||
        block->threads[i].state == HD_SIM_YIELDED)
      other = &block->threads[i];
  char name[HD_SIM_NAME_SIZE];
  if (hd_sim_finding(fiber, HD_E0710, fiber->head.site,
                     other ? other->head.site : NULL,
                     "%s waits at %s for the other threads of its warp, "
                     "which do not come",
                     hd_sim_thread_name(fiber, name), site_name(fiber)) &&
      other)
    note_thread(other, other->state == HD_SIM_YIELDED ? "spins here"
                                                      : "waits at a barrier");
}

// Warps that wait for registers hold up those that wait for them.
static bool explain_registers(const hd_sim_resident_t *block) {
  for (uint32_t i = 0; i < block->num_threads; i++)
    if (block->threads[i].state == HD_SIM_AT_WARP &&
        hd_sim_registers_explain(&block->threads[i]))
      return true;
  return false;
}

// The others that wait at something else, a few of them.
static void note_others(const hd_sim_resident_t *block,
                        const hd_sim_fiber_t *reported) {
  const hd_sim_fiber_t *last = reported;
  for (uint32_t i = 0, notes = 0; i < block->num_threads && notes < 3; i++) {
    const hd_sim_fiber_t *fiber = &block->threads[i];
    if (fiber->state != HD_SIM_AT_BLOCK ||
        fiber->head.function == last->head.function)
      continue;
    note_thread(fiber, "waits here");
    last = fiber;
    notes++;
  }
}

static bool explain_block(const hd_sim_resident_t *block) {
  const hd_sim_fiber_t *collective = first_in(block, HD_SIM_AT_WARP);
  const hd_sim_fiber_t *barrier = first_in(block, HD_SIM_AT_BLOCK);
  const hd_sim_fiber_t *bytes = hd_sim_mbarrier_short(block);
  // What others wait for comes first: bytes that never come, registers, then
  // a warp that is torn apart, of which the barrier at which some of it waits
  // is a consequence.
  if (bytes && hd_sim_mbarrier_explain(bytes))
    note_others(block, bytes);
  else if (collective && explain_registers(block))
    return true;
  else if (collective)
    explain_warp(block, collective);
  else if (barrier && barrier->barrier >= 0)
    explain_barrier(block, barrier);
  else if (barrier && (hd_sim_mbarrier_explain(barrier) ||
                       hd_sim_cluster_explain(barrier)))
    note_others(block, barrier);
  return collective || barrier;
}

void hd_sim_unit_explain(hd_sim_resident_t *const *unit, uint32_t num_blocks) {
  for (uint32_t i = 0; i < num_blocks; i++)
    if (explain_block(unit[i]))
      return;
}
