// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cp.async and its groups. A copy takes effect at once or where its thread
// waits for its group; one that nobody waits for never does.
//   cp_async        slots: to, site, from, site, bytes, cache
//   cp_async_zfill  slots: to, site, from, site, bytes, read, cache
#include "Sim/Check.h"
#include "Sim/Functions.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

static void land(const hd_sim_copy_t *copy) {
  if (copy->read > 0)
    memcpy(copy->to, copy->from, copy->read);
  memset(copy->to + copy->read, 0, copy->bytes - copy->read);
}

static void remember(hd_sim_task_t *task, const hd_sim_copy_t *copy) {
  if (task->num_copies == task->cap_copies) {
    uint32_t capacity = task->cap_copies ? task->cap_copies * 2 : 16;
    void *copies = realloc(task->copies, capacity * sizeof(hd_sim_copy_t));
    if (!copies) {
      hd_sim_run_t *run = hd_sim_run_of(task);
      hd_error(run->diags, (hd_loc_t){0}, HD_E0904,
               "no memory for asynchronous copies");
      hd_sim_fail(run);
      hd_sim_leave();
    }
    task->copies = copies;
    task->cap_copies = capacity;
  }
  task->copies[task->num_copies++] = *copy;
}

// Lands what belongs to groups up to the last one.
static void land_through(hd_sim_task_t *task, uint32_t group) {
  while (task->first_copy < task->num_copies &&
         task->copies[task->first_copy].group <= group)
    land(&task->copies[task->first_copy++]);
  if (task->first_copy == task->num_copies)
    task->first_copy = task->num_copies = 0;
  if (hd_sim_sanitizer_of(task))
    hd_sim_sync_copies(task, group);
}

static void issue(hd_sim_thread_t *thread, const uint64_t *slots,
                  int64_t read) {
  hd_sim_task_t *task = hd_sim_task(thread);
  uint32_t bytes = (uint32_t)slots[4];
  if (read < 0 || read > (int64_t)bytes)
    read = read < 0 ? 0 : bytes;
  hd_sim_copy_t copy = {.to = (char *)(uintptr_t)slots[0],
                        .from = (const char *)(uintptr_t)slots[2],
                        .bytes = bytes,
                        .read = (uint32_t)read,
                        .group = task->open_group};
  if (hd_sim_sanitizer_of(task)) {
    const hd_sim_site_t *to = (const hd_sim_site_t *)(uintptr_t)slots[1];
    const hd_sim_site_t *from = (const hd_sim_site_t *)(uintptr_t)slots[3];
    bool allowed = hd_sim_touch(task, task, to, slots[0], bytes,
                                HD_SIM_WRITES | HD_SIM_COPIES, 0);
    if (read > 0 && !hd_sim_touch(task, task, from, slots[2], (uint32_t)read,
                                  HD_SIM_READS, 0))
      copy.read = 0;
    if (!allowed)
      return;
  }
  if (hd_sim_run_of(task)->options->async == HD_SIM_ASYNC_EARLIEST)
    land(&copy);
  else
    remember(task, &copy);
}

void hd_sim_cp_async(hd_sim_thread_t *thread, uint64_t *slots) {
  issue(thread, slots, (int64_t)slots[4]);
}

void hd_sim_cp_async_zfill(hd_sim_thread_t *thread, uint64_t *slots) {
  issue(thread, slots, (int32_t)slots[5]);
}

void hd_sim_cp_async_commit(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)slots;
  hd_sim_task(thread)->open_group++;
}

void hd_sim_cp_async_wait(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_task_t *task = hd_sim_task(thread);
  uint32_t closed = task->open_group - 1, left = (uint32_t)slots[0];
  if (closed > left)
    land_through(task, closed - left);
}

void hd_sim_cp_async_wait_all(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)slots;
  hd_sim_task_t *task = hd_sim_task(thread);
  land_through(task, task->open_group);
  task->open_group++; // What is issued from now on is of another group.
}

void hd_sim_prefetch(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)thread;
  (void)slots;
}

void hd_sim_clock(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)thread;
  slots[0] = (uint32_t)hd_clock_ns();
}

void hd_sim_clock64(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)thread;
  slots[0] = hd_clock_ns();
}

void hd_sim_globaltimer(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)thread;
  slots[0] = hd_clock_ns();
}

void hd_sim_nanosleep(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)thread;
  (void)slots;
  sched_yield();
}
