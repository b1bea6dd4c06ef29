// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The barriers of a block. Barrier 0 with all threads is barrier().
#include "Sim/Check.h"
#include "Sim/Functions.h"

static bool fault(hd_sim_task_t *task, const char *text, int a, int b) {
  char name[HD_SIM_NAME_SIZE];
  hd_sim_finding(task, HD_E0704, task->head.site, NULL, text,
                 hd_sim_thread_name(task, name), a, b);
  hd_sim_fail(hd_sim_run_of(task));
  hd_sim_leave();
}

// Under sanitize: bar.sync is one instruction of the whole warp, so all its
// threads must meet it at the same place of the text.
static void check_convergence(hd_sim_task_t *task, int32_t id) {
  hd_sim_resident_t *block = hd_sim_resident_of(task);
  uint32_t self = (uint32_t)task->head.linear;
  uint32_t first = self / HD_SIM_WARP_SIZE * HD_SIM_WARP_SIZE;
  for (uint32_t i = first;
       i < first + HD_SIM_WARP_SIZE && i < block->num_threads; i++) {
    const hd_sim_task_t *other = &block->threads[i];
    const hd_sim_site_t *there = other->head.site, *here = task->head.site;
    if (other == task || other->barrier != id || !there || !here ||
        other->barrier_round != block->barriers[id].round ||
        (there->source == here->source && there->offset == here->offset))
      continue;
    char name[HD_SIM_NAME_SIZE], peer[HD_SIM_NAME_SIZE];
    if (hd_sim_finding(task, HD_E0704, here, there,
                       "%s and %s, of one warp, wait at different barriers",
                       hd_sim_thread_name(task, name),
                       hd_sim_thread_name(other, peer)))
      hd_note(hd_sim_run_of(task)->diags, hd_sim_site_loc(there),
              "the other barrier is here");
    return;
  }
}

static void arrive(hd_sim_task_t *task, int32_t id, uint32_t expected) {
  hd_sim_resident_t *block = hd_sim_resident_of(task);
  hd_sim_named_barrier_t *barrier = &block->barriers[id];
  if (barrier->arrived > 0 && barrier->expected != expected)
    fault(task, "%s comes for %d threads to a barrier that waits for %d",
          (int)expected, (int)barrier->expected);
  bool checked = hd_sim_sanitizer_of(task) != NULL;
  barrier->expected = expected;
  if (checked)
    hd_sim_sync_give(task, &barrier->joined);
  if (++barrier->arrived < expected)
    return;
  barrier->arrived = 0;
  barrier->round++;
  if (!checked)
    return;
  hd_sim_check_event(task);
  hd_sim_sync_drop(&barrier->complete);
  barrier->complete = barrier->joined;
  barrier->joined = NULL;
}

// First arrives, then waits for the round's end.
static bool wait_at(hd_sim_task_t *task, int32_t id, uint32_t expected) {
  hd_sim_resident_t *block = hd_sim_resident_of(task);
  hd_sim_named_barrier_t *barrier = &block->barriers[id];
  bool checked = hd_sim_sanitizer_of(task) != NULL;
  if (task->barrier < 0) {
    task->barrier = id;
    task->barrier_round = barrier->round;
    if (checked)
      check_convergence(task, id);
    arrive(task, id, expected);
  }
  if (barrier->round == task->barrier_round)
    return false;
  task->barrier = -1;
  if (checked)
    hd_sim_sync_take(task, barrier->complete);
  return true;
}

static void check_operands(hd_sim_task_t *task, int32_t id, int32_t threads) {
  if (id < 0 || id >= HD_SIM_BARRIERS)
    fault(task, "%s names barrier %d; there are %d, from 0 on", id,
          HD_SIM_BARRIERS);
  if (threads <= 0 || threads % HD_SIM_WARP_SIZE)
    fault(task, "%s waits for %d threads, not a multiple of %d", threads,
          HD_SIM_WARP_SIZE);
  int32_t all = (int32_t)hd_sim_resident_of(task)->num_threads;
  all = (all + HD_SIM_WARP_SIZE - 1) / HD_SIM_WARP_SIZE * HD_SIM_WARP_SIZE;
  if (threads > all)
    fault(task, "%s waits for %d threads of a block that has %d", threads,
          (int)hd_sim_resident_of(task)->num_threads);
}

// A warp counts as a whole, the missing threads of the last one too.
static uint32_t present(const hd_sim_task_t *task, int32_t threads) {
  uint32_t all = hd_sim_resident_of(task)->num_threads;
  return (uint32_t)threads > all ? all : (uint32_t)threads;
}

bool hd_sim_barrier(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)slots;
  hd_sim_task_t *task = hd_sim_task(thread);
  return wait_at(task, 0, hd_sim_resident_of(task)->num_threads);
}

bool hd_sim_barrier_sync(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_task_t *task = hd_sim_task(thread);
  int32_t id = (int32_t)slots[0], threads = (int32_t)slots[1];
  check_operands(task, id, threads);
  return wait_at(task, id, present(task, threads));
}

bool hd_sim_barrier_arrive(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_task_t *task = hd_sim_task(thread);
  int32_t id = (int32_t)slots[0], threads = (int32_t)slots[1];
  check_operands(task, id, threads);
  arrive(task, id, present(task, threads));
  return true;
}
