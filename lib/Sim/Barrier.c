// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The barriers of a block. Barrier 0 with all threads is barrier().
#include "Sim/Check.h"
#include "Sim/Functions.h"

static bool fault(hd_sim_fiber_t *fiber, const char *text, int a, int b) {
  char name[HD_SIM_NAME_SIZE];
  hd_sim_finding(fiber, HD_E0704, fiber->head.site, NULL, text,
                 hd_sim_thread_name(fiber, name), a, b);
  hd_sim_fail(hd_sim_run_of(fiber));
  hd_sim_leave();
}

// Under sanitize: bar.sync is one instruction of the whole warp, so all its
// threads must meet it at the same place of the text.
static void check_convergence(hd_sim_fiber_t *fiber, int32_t id) {
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  uint32_t self = (uint32_t)fiber->head.linear;
  uint32_t first = self / HD_SIM_WARP_SIZE * HD_SIM_WARP_SIZE;
  for (uint32_t i = first;
       i < first + HD_SIM_WARP_SIZE && i < block->num_threads; i++) {
    const hd_sim_fiber_t *other = &block->threads[i];
    const hd_sim_site_t *there = other->head.site, *here = fiber->head.site;
    if (other == fiber || other->barrier != id || !there || !here ||
        other->barrier_round != block->barriers[id].round ||
        (there->source == here->source && there->offset == here->offset))
      continue;
    char name[HD_SIM_NAME_SIZE], peer[HD_SIM_NAME_SIZE];
    if (hd_sim_finding(fiber, HD_E0704, here, there,
                       "%s and %s, of one warp, wait at different barriers",
                       hd_sim_thread_name(fiber, name),
                       hd_sim_thread_name(other, peer)))
      hd_note(hd_sim_run_of(fiber)->diags, hd_sim_site_loc(there),
              "the other barrier is here");
    return;
  }
}

static void arrive(hd_sim_fiber_t *fiber, int32_t id, uint32_t expected) {
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  hd_sim_named_barrier_t *barrier = &block->barriers[id];
  if (barrier->arrived > 0 && barrier->expected != expected)
    fault(fiber, "%s comes for %d threads to a barrier that waits for %d",
          (int)expected, (int)barrier->expected);
  bool checked = hd_sim_sanitizer_of(fiber) != NULL;
  barrier->expected = expected;
  if (checked)
    hd_sim_sync_give(fiber, &barrier->joined);
  if (++barrier->arrived < expected)
    return;
  barrier->arrived = 0;
  barrier->round++;
  if (!checked)
    return;
  hd_sim_check_event(fiber);
  hd_sim_sync_drop(&barrier->complete);
  barrier->complete = barrier->joined;
  barrier->joined = NULL;
}

// First arrives, then waits for the round's end.
static bool wait_at(hd_sim_fiber_t *fiber, int32_t id, uint32_t expected) {
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  hd_sim_named_barrier_t *barrier = &block->barriers[id];
  bool checked = hd_sim_sanitizer_of(fiber) != NULL;
  if (fiber->barrier < 0) {
    fiber->barrier = id;
    fiber->barrier_round = barrier->round;
    if (checked)
      check_convergence(fiber, id);
    arrive(fiber, id, expected);
  }
  if (barrier->round == fiber->barrier_round)
    return false;
  fiber->barrier = -1;
  if (checked)
    hd_sim_sync_take(fiber, barrier->complete);
  return true;
}

static void check_operands(hd_sim_fiber_t *fiber, int32_t id, int32_t threads) {
  if (id < 0 || id >= HD_SIM_BARRIERS)
    fault(fiber, "%s names barrier %d; there are %d, from 0 on", id,
          HD_SIM_BARRIERS);
  if (threads <= 0 || threads % HD_SIM_WARP_SIZE)
    fault(fiber, "%s waits for %d threads, not a multiple of %d", threads,
          HD_SIM_WARP_SIZE);
  int32_t all = (int32_t)hd_sim_resident_of(fiber)->num_threads;
  all = (all + HD_SIM_WARP_SIZE - 1) / HD_SIM_WARP_SIZE * HD_SIM_WARP_SIZE;
  if (threads > all)
    fault(fiber, "%s waits for %d threads of a block that has %d", threads,
          (int)hd_sim_resident_of(fiber)->num_threads);
}

// A warp counts as a whole, the missing threads of the last one too.
static uint32_t present(const hd_sim_fiber_t *fiber, int32_t threads) {
  uint32_t all = hd_sim_resident_of(fiber)->num_threads;
  return (uint32_t)threads > all ? all : (uint32_t)threads;
}

bool hd_sim_barrier(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)slots;
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  return wait_at(fiber, 0, hd_sim_resident_of(fiber)->num_threads);
}

bool hd_sim_barrier_sync(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  int32_t id = (int32_t)slots[0], threads = (int32_t)slots[1];
  check_operands(fiber, id, threads);
  return wait_at(fiber, id, present(fiber, threads));
}

bool hd_sim_barrier_arrive(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  int32_t id = (int32_t)slots[0], threads = (int32_t)slots[1];
  check_operands(fiber, id, threads);
  arrive(fiber, id, present(fiber, threads));
  return true;
}
