// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Resident blocks: places that hold one block after another, with the threads,
// their frames and shared memory.
#include "Sim/Bulk.h"
#include "Sim/Check.h"
#include "Sim/State.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hd_sim_fail(hd_sim_run_t *run) {
  atomic_store(&run->failed, true);
  atomic_store(&run->stop, true);
  pthread_mutex_lock(&run->lock);
  for (hd_sim_resident_t *block = run->residents; block; block = block->next)
    __atomic_store_n(&block->head.stop, 1, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&run->lock);
}

const char *hd_sim_thread_name(const hd_sim_fiber_t *fiber, char *text) {
  const hd_sim_block_t *block = fiber->head.block;
  const int32_t *at = block->block, *grid = block->grid_dim;
  int thread = fiber->head.linear;
  if (grid[2] > 1)
    snprintf(text, HD_SIM_NAME_SIZE, "thread %d of block (%d, %d, %d)", thread,
             at[0], at[1], at[2]);
  else if (grid[1] > 1)
    snprintf(text, HD_SIM_NAME_SIZE, "thread %d of block (%d, %d)", thread,
             at[0], at[1]);
  else
    snprintf(text, HD_SIM_NAME_SIZE, "thread %d of block %d", thread, at[0]);
  return text;
}

void hd_sim_resident_destroy(hd_sim_resident_t *block) {
  for (uint32_t i = 0; block->threads && i < block->num_threads; i++) {
    free(block->threads[i].copies);
    free(block->threads[i].waited);
    hd_sim_stores_forget(&block->threads[i]);
  }
  hd_sim_mbarriers_forget(block);
  hd_sim_warpgroups_forget(block);
  free(block->mbarriers);
  free(block->visits);
  free(block->threads);
  free(block->frames);
  free(block->head.shared);
  free(block);
}

// A place for one block, with all its memory but the frames. NULL: no memory.
hd_sim_resident_t *hd_sim_resident_create(hd_sim_worker_t *worker) {
  hd_sim_run_t *run = worker->run;
  hd_sim_resident_t *block = hd_sim_alloc(run, 0, sizeof *block);
  if (!block)
    return NULL;
  size_t shared = (run->kernel->shared_bytes + 1023) / 1024 * 1024;
  block->worker = worker;
  block->num_threads = run->num_threads;
  block->threads =
      hd_sim_alloc(run, 0, run->num_threads * sizeof *block->threads);
  block->head.shared = hd_sim_alloc(run, 1024, shared ? shared : 1024);
  if (!block->threads || !block->head.shared) {
    hd_sim_resident_destroy(block);
    return NULL;
  }
  pthread_mutex_lock(&run->lock);
  block->next = run->residents;
  run->residents = block;
  pthread_mutex_unlock(&run->lock);
  return block;
}

void *hd_sim_frame(hd_sim_thread_t *thread, uint64_t size, uint64_t align) {
  hd_sim_resident_t *block = hd_sim_resident(thread->block);
  hd_sim_run_t *run = block->worker->run;
  if (!block->frames) {
    uint64_t unit = align > 64 ? align : 64;
    block->frame_stride = (size + unit - 1) / unit * unit;
    block->frames =
        hd_sim_alloc(run, unit, block->frame_stride * block->num_threads);
  }
  if (!block->frames || size > block->frame_stride) {
    hd_sim_report_memory(run, "no memory for the simulated threads");
    hd_sim_fail(run);
    hd_sim_leave();
  }
  return block->frames + block->frame_stride * (uint64_t)thread->linear;
}

static void place_thread(hd_sim_resident_t *block, uint32_t linear) {
  hd_sim_fiber_t *fiber = &block->threads[linear];
  const int32_t *dim = block->head.block_dim;
  fiber->head = (hd_sim_thread_t){.block = &block->head};
  fiber->head.linear = (int32_t)linear;
  fiber->head.thread[0] = (int32_t)linear % dim[0];
  fiber->head.thread[1] = (int32_t)linear / dim[0] % dim[1];
  fiber->head.thread[2] = (int32_t)linear / dim[0] / dim[1];
  fiber->state = HD_SIM_UNBORN;
  fiber->barrier = -1;
  fiber->first_copy = fiber->num_copies = 0;
  fiber->open_group = 1;
  fiber->clock = 1;
  fiber->waited_group = 0;
  hd_sim_stores_forget(fiber);
  fiber->open_bulk = 1;
  fiber->num_waited = 0;
  fiber->bulk_read = fiber->bulk_wrote = 0;
  fiber->fenced = fiber->fenced_global = 0;
  fiber->at_cluster = false;
}

// Makes the place hold block `rank` of cluster `unit`.
void hd_sim_resident_begin(hd_sim_resident_t *block, uint32_t unit,
                           uint32_t rank) {
  hd_sim_run_t *run = block->worker->run;
  const hd_sim_kernel_t *kernel = run->kernel;
  uint32_t at[3], clusters[3], position = unit, inner = rank;
  for (int axis = 0; axis < 3; axis++) {
    uint32_t size = (uint32_t)kernel->cluster[axis];
    clusters[axis] = (uint32_t)kernel->grid[axis] / size;
    at[axis] = position % clusters[axis] * size + inner % size;
    position /= clusters[axis];
    inner /= size;
    block->head.block[axis] = (int32_t)at[axis];
    block->head.grid_dim[axis] = kernel->grid[axis];
    block->head.block_dim[axis] = kernel->block[axis];
  }
  block->head.cluster = (int32_t)rank;
  block->head.cluster_dim = (int32_t)run->unit_size;
  // hd_sim_fail() sets the flag of the launch first and then this one.
  __atomic_store_n(&block->head.stop, 0, __ATOMIC_SEQ_CST);
  if (atomic_load(&run->stop))
    __atomic_store_n(&block->head.stop, 1, __ATOMIC_SEQ_CST);
  block->number = at[0] + (uint32_t)kernel->grid[0] *
                              (at[1] + (uint32_t)kernel->grid[1] * at[2]);
  block->num_live = run->num_threads;
  memset(block->barriers, 0, sizeof block->barriers);
  memset(&block->cluster, 0, sizeof block->cluster);
  hd_sim_mbarriers_forget(block);
  hd_sim_warpgroups_forget(block);
  block->free_registers = 0;
  for (size_t i = 0; i < sizeof block->registers / sizeof *block->registers;
       i++)
    block->registers[i] = (uint16_t)hd_sim_launch_registers(run->num_threads);
  // Not zero: who reads what nobody wrote should notice. (All ones is NaN.)
  memset(block->head.shared, 0xff, kernel->shared_bytes);
  for (uint32_t i = 0; i < run->num_threads; i++)
    place_thread(block, i);
  block->active = true;
  if (run->sanitizer)
    hd_sim_check_begin_block(run->sanitizer, block);
}

void hd_sim_resident_end(hd_sim_resident_t *block) {
  hd_sim_run_t *run = block->worker->run;
  if (!block->active)
    return;
  block->active = false;
  if (run->sanitizer)
    hd_sim_check_end_block(run->sanitizer, block);
  atomic_fetch_add(&run->ended_blocks, 1);
}
