// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the threads of resident blocks. A warp is run until each of its threads
// has ended or waits for another warp; then the next one. So a kernel costs two
// looks at a waiting thread for each barrier.
#include "Sim/Check.h"
#include "Sim/State.h"

typedef void *(*enter_t)(void *const *args, hd_sim_thread_t *thread);
typedef void (*resume_t)(void *frame);
typedef void (*warp_function_t)(hd_sim_warp_t *warp);
typedef bool (*block_function_t)(hd_sim_thread_t *thread, uint64_t *slots);

// Runs a thread to its next suspension and notes what it asks for.
static void run_thread(hd_sim_resident_t *block, hd_sim_fiber_t *fiber) {
  fiber->head.request = HD_SIM_NONE;
  if (fiber->state == HD_SIM_UNBORN) {
    const hd_sim_kernel_t *kernel = block->worker->run->kernel;
    enter_t enter = (enter_t)(uintptr_t)kernel->entry;
    fiber->frame = enter(kernel->args, &fiber->head);
  } else {
    (*(resume_t *)fiber->frame)(fiber->frame);
  }
  if (*(resume_t *)fiber->frame == NULL) {
    fiber->state = HD_SIM_ENDED;
    block->num_live--;
    hd_sim_thread_ended(fiber);
    return;
  }
  switch ((hd_sim_request_t)fiber->head.request) {
  case HD_SIM_WARP:
    fiber->state = HD_SIM_AT_WARP;
    break;
  case HD_SIM_BLOCK:
    fiber->state = HD_SIM_AT_BLOCK;
    break;
  case HD_SIM_NONE:
  case HD_SIM_YIELD:
    fiber->state = HD_SIM_YIELDED;
    break;
  }
}

static bool poll_block(hd_sim_fiber_t *fiber) {
  block_function_t ask = (block_function_t)(uintptr_t)fiber->head.function;
  if (!ask(&fiber->head, fiber->head.slots))
    return false;
  fiber->state = HD_SIM_READY;
  return true;
}

// Every live thread of the warp waits for the others: calls their function.
// False: it is to be asked again.
static bool run_collective(hd_sim_fiber_t *threads, uint32_t lanes) {
  hd_sim_warp_t warp = {.wait = false};
  const hd_sim_fiber_t *first = NULL;
  for (uint32_t lane = 0; lane < HD_SIM_WARP_SIZE; lane++) {
    bool takes_part = lane < lanes && threads[lane].state == HD_SIM_AT_WARP;
    warp.threads[lane] = takes_part ? &threads[lane].head : NULL;
    warp.slots[lane] = takes_part ? threads[lane].head.slots : NULL;
    if (!takes_part)
      continue;
    if (!first)
      first = &threads[lane];
    if (!hd_sim_collective_agrees(first, &threads[lane]))
      hd_sim_leave();
  }
  ((warp_function_t)(uintptr_t)first->head.function)(&warp);
  if (warp.wait)
    return false;
  for (uint32_t lane = 0; lane < lanes; lane++)
    if (warp.threads[lane])
      threads[lane].state = HD_SIM_READY;
  return true;
}

// One look at each thread of a warp, in an order drawn from random. Returns
// whether anything was done beyond spinning.
static bool sweep_warp(hd_sim_resident_t *block, hd_sim_fiber_t *threads,
                       uint32_t lanes, uint64_t random) {
  bool moved = false;
  uint32_t waiting = 0, live = 0;
  uint32_t flip = (uint32_t)random & (HD_SIM_WARP_SIZE - 1);
  for (uint32_t i = 0; i < HD_SIM_WARP_SIZE; i++) {
    uint32_t lane = i ^ flip;
    if (lane >= lanes)
      continue;
    hd_sim_fiber_t *fiber = &threads[lane];
    if (fiber->state == HD_SIM_AT_BLOCK)
      moved |= poll_block(fiber);
    while (fiber->state == HD_SIM_READY || fiber->state == HD_SIM_UNBORN) {
      run_thread(block, fiber);
      moved = true;
      if (fiber->state == HD_SIM_AT_BLOCK)
        poll_block(fiber);
    }
    live += fiber->state != HD_SIM_ENDED;
    waiting += fiber->state == HD_SIM_AT_WARP;
  }
  if (live > 0 && waiting == live)
    moved |= run_collective(threads, lanes);
  return moved;
}

// Lets each spinning thread look once more. Returns whether one got away.
static bool wake_spinning(hd_sim_resident_t *block, hd_sim_fiber_t *threads,
                          uint32_t lanes) {
  bool moved = false;
  for (uint32_t lane = 0; lane < lanes; lane++) {
    hd_sim_fiber_t *fiber = &threads[lane];
    if (fiber->state != HD_SIM_YIELDED)
      continue;
    run_thread(block, fiber);
    if (fiber->state == HD_SIM_AT_BLOCK)
      poll_block(fiber);
    moved |= fiber->state != HD_SIM_YIELDED;
  }
  return moved;
}

static bool run_block(hd_sim_worker_t *worker, hd_sim_resident_t *block) {
  hd_sim_run_t *run = worker->run;
  uint32_t warps =
      (block->num_threads + HD_SIM_WARP_SIZE - 1) / HD_SIM_WARP_SIZE;
  uint64_t random = run->options->seed ? hd_sim_random(&worker->random) : 0;
  uint32_t start = (uint32_t)(random >> 32) % warps;
  bool any = false;
  for (uint32_t i = 0; i < warps && block->num_live > 0; i++) {
    uint32_t first = (start + i) % warps * HD_SIM_WARP_SIZE;
    uint32_t lanes = block->num_threads - first;
    if (lanes > HD_SIM_WARP_SIZE)
      lanes = HD_SIM_WARP_SIZE;
    hd_sim_fiber_t *threads = &block->threads[first];
    bool moved = wake_spinning(block, threads, lanes);
    while (sweep_warp(block, threads, lanes, random))
      moved = true;
    if (moved && run->sanitizer)
      hd_sim_banks_settle(run->sanitizer);
    any |= moved;
    if (atomic_load_explicit(&run->stop, memory_order_relaxed))
      hd_sim_leave();
  }
  return any;
}

static bool spins(const hd_sim_resident_t *block) {
  for (uint32_t i = 0; i < block->num_threads; i++)
    if (block->threads[i].state == HD_SIM_YIELDED)
      return true;
  return false;
}

hd_sim_progress_t hd_sim_unit_run(hd_sim_worker_t *worker,
                                  hd_sim_resident_t **unit) {
  hd_sim_run_t *run = worker->run;
  for (;;) {
    bool moved = false, spinning = false;
    uint32_t live = 0;
    for (uint32_t i = 0; i < run->unit_size; i++) {
      if (unit[i]->num_live > 0)
        moved |= run_block(worker, unit[i]);
      live += unit[i]->num_live;
    }
    if (live == 0)
      return HD_SIM_DONE;
    if (moved)
      continue;
    for (uint32_t i = 0; i < run->unit_size; i++)
      spinning |= spins(unit[i]);
    if (spinning)
      return HD_SIM_STUCK;
    hd_sim_unit_explain(unit, run->unit_size);
    hd_sim_fail(run);
    hd_sim_leave();
  }
}
