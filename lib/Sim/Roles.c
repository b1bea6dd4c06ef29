// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A warpgroup's registers, the elected lane, proxy fences.
#include "Sim/Bulk.h"
#include "Sim/Functions.h"

enum {
  FILE_REGISTERS = 65536, // Of a multiprocessor.
  MOST_REGISTERS = 255,   // Of a thread.
  REGISTER_UNIT = 8,
  WARPGROUP_WARPS = 4,
};

static hd_sim_fiber_t *first_of(const hd_sim_warp_t *warp) {
  int lane = 0;
  while (!warp->threads[lane])
    lane++;
  return hd_sim_fiber(warp->threads[lane]);
}

// --- Registers ---

uint32_t hd_sim_launch_registers(uint32_t num_threads) {
  uint32_t share = FILE_REGISTERS / num_threads / REGISTER_UNIT * REGISTER_UNIT;
  return share > MOST_REGISTERS ? MOST_REGISTERS : share;
}

// The code's own number is not known here: each thread is taken to begin with
// an equal share of all there are, the most that it can have.
static void set_registers(hd_sim_warp_t *warp, bool grows) {
  hd_sim_fiber_t *fiber = first_of(warp);
  hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  uint32_t number = (uint32_t)fiber->head.linear / HD_SIM_WARP_SIZE;
  uint32_t wanted = (uint32_t)fiber->head.slots[0];
  uint32_t has = block->registers[number];
  char me[HD_SIM_NAME_SIZE];
  if (!grows && wanted > has)
    hd_sim_refuse(fiber, HD_E0713, fiber->head.site,
                  "%s gives registers back by setmaxnreg_dec, asks to keep %u "
                  "and has no more than %u",
                  hd_sim_thread_name(fiber, me), wanted, has);
  if (grows && wanted <= has) // It may have begun with less.
    return;
  if (grows && (wanted - has) * HD_SIM_WARP_SIZE > block->free_registers) {
    warp->wait = true;
    return;
  }
  if (grows)
    block->free_registers -= (wanted - has) * HD_SIM_WARP_SIZE;
  else
    block->free_registers += (has - wanted) * HD_SIM_WARP_SIZE;
  block->registers[number] = (uint16_t)wanted;
}

void hd_sim_setmaxnreg_inc(hd_sim_warp_t *warp) { set_registers(warp, true); }
void hd_sim_setmaxnreg_dec(hd_sim_warp_t *warp) { set_registers(warp, false); }

bool hd_sim_registers_explain(const hd_sim_fiber_t *fiber) {
  if (fiber->head.function != (void *)(uintptr_t)hd_sim_setmaxnreg_inc)
    return false;
  const hd_sim_resident_t *block = hd_sim_resident_of(fiber);
  uint32_t number = (uint32_t)fiber->head.linear / HD_SIM_WARP_SIZE;
  uint32_t wanted = (uint32_t)fiber->head.slots[0];
  char me[HD_SIM_NAME_SIZE];
  hd_sim_finding(
      fiber, HD_E0713, fiber->head.site, NULL,
      "%s waits for ever for %u registers: its warp has %u a thread, "
      "and %u are free of the %u that a block of %u threads begins "
      "with, %u each",
      hd_sim_thread_name(fiber, me), wanted, block->registers[number],
      block->free_registers,
      block->num_threads * hd_sim_launch_registers(block->num_threads),
      block->num_threads, hd_sim_launch_registers(block->num_threads));
  return true;
}

// --- Others ---

void hd_sim_elect(hd_sim_warp_t *warp) {
  bool first = true;
  for (uint32_t lane = 0; lane < HD_SIM_WARP_SIZE; lane++) {
    if (!warp->slots[lane])
      continue;
    warp->slots[lane][0] = first;
    first = false;
  }
}

void hd_sim_fence_proxy_async(hd_sim_thread_t *thread, uint64_t *slots) {
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  if (hd_sim_sanitizer_of(fiber))
    hd_sim_sync_proxy_fence(fiber, false);
  hd_sim_fence_mbarrier_init(thread, slots);
}

void hd_sim_fence_proxy_async_global(hd_sim_thread_t *thread, uint64_t *slots) {
  (void)slots;
  hd_sim_fiber_t *fiber = hd_sim_fiber(thread);
  if (hd_sim_sanitizer_of(fiber))
    hd_sim_sync_proxy_fence(fiber, true);
}
