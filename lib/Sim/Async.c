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

static void remember(hd_sim_fiber_t *fiber, const hd_sim_copy_t *copy) {
  if (fiber->num_copies == fiber->cap_copies) {
    uint32_t capacity = fiber->cap_copies ? fiber->cap_copies * 2 : 16;
    void *copies = realloc(fiber->copies, capacity * sizeof(hd_sim_copy_t));
    if (!copies) {
      hd_sim_run_t *run = hd_sim_run_of(fiber);
      hd_error(run->diags, (hd_loc_t){0}, HD_E0904,
               "no memory for asynchronous copies");
      hd_sim_fail(run);
      hd_sim_leave();
    }
    fiber->copies = copies;
    fiber->cap_copies = capacity;
  }
  fiber->copies[fiber->num_copies++] = *copy;
}

// Lands what belongs to groups up to the last one.
static void land_through(hd_sim_fiber_t *fiber, uint32_t group) {
  while (fiber->first_copy < fiber->num_copies &&
         fiber->copies[fiber->first_copy].group <= group)
    land(&fiber->copies[fiber->first_copy++]);
  if (fiber->first_copy == fiber->num_copies)
    fiber->first_copy = fiber->num_copies = 0;
  if (hd_sim_sanitizer_of(fiber))
    hd_sim_sync_copies(fiber, group);
}

static void issue(hd_sim_thread_t *thread, const uint64_t *slots,
                  int64_t read) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  uint32_t bytes = (uint32_t)slots[4];
  if (read < 0 || read > (int64_t)bytes)
    read = read < 0 ? 0 : bytes;
  hd_sim_copy_t copy = {.to = (char *)(uintptr_t)slots[0],
                        .from = (const char *)(uintptr_t)slots[2],
                        .bytes = bytes,
                        .read = (uint32_t)read,
                        .group = fiber->open_group};
  if (hd_sim_sanitizer_of(fiber)) {
    const hd_sim_site_t *to = (const hd_sim_site_t *)(uintptr_t)slots[1];
    const hd_sim_site_t *from = (const hd_sim_site_t *)(uintptr_t)slots[3];
    bool allowed = hd_sim_touch(fiber, fiber, to, slots[0], bytes,
                                HD_SIM_WRITES | HD_SIM_COPIES, 0);
    if (read > 0 && !hd_sim_touch(fiber, fiber, from, slots[2], (uint32_t)read,
                                  HD_SIM_READS, 0))
      copy.read = 0;
    if (!allowed)
      return;
  }
  if (hd_sim_run_of(fiber)->options->async == HD_SIM_ASYNC_EARLIEST)
    land(&copy);
  else
    remember(fiber, &copy);
}

void hd_sim_cp_async(hd_sim_thread_t *thread, uint64_t *slots) {
  issue(thread, slots, (int64_t)slots[4]);
}

void hd_sim_cp_async_zfill(hd_sim_thread_t *thread, uint64_t *slots) {
  issue(thread, slots, (int32_t)slots[5]);
}

void hd_sim_cp_async_commit(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)slots;
  hd_sim_fiber(thread)->open_group++;
}

void hd_sim_cp_async_wait(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  uint32_t closed = fiber->open_group - 1, left = (uint32_t)slots[0];
  if (closed > left)
    land_through(fiber, closed - left);
}

void hd_sim_cp_async_wait_all(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)slots;
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  land_through(fiber, fiber->open_group);
  fiber->open_group++; // What is issued from now on is of another group.
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
