// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shuffles, votes and reductions: slots[0] is the result, slots[1] the value.
// They order no memory; warp_sync does.
#include "Sim/Check.h"
#include "Sim/Functions.h"

#define foreach_lane(warp, lane)                                               \
  for (uint32_t lane = 0; lane < HD_SIM_WARP_SIZE; lane++)                     \
    if ((warp)->slots[lane])

void hd_sim_warp_sync(hd_sim_warp_t *warp) { hd_sim_sync_warp(warp); }

// --- Shuffles ---

// Gives each lane the value of the lane that source() names; a lane out of the
// warp is the thread's own.
static void shuffle(hd_sim_warp_t *warp,
                    int32_t (*source)(uint32_t lane, uint32_t operand)) {
  uint64_t values[HD_SIM_WARP_SIZE] = {0};
  foreach_lane(warp, lane) values[lane] = warp->slots[lane][1];
  foreach_lane(warp, lane) {
    int32_t from = source(lane, (uint32_t)warp->slots[lane][2] & 31);
    if (from < 0 || from >= HD_SIM_WARP_SIZE)
      from = (int32_t)lane;
    if (!warp->slots[from]) {
      hd_sim_fiber_t *fiber = hd_sim_fiber(warp->threads[lane]);
      char name[HD_SIM_NAME_SIZE];
      if (hd_sim_sanitizer_of(fiber))
        hd_sim_finding(fiber, HD_E0710, fiber->head.site, NULL,
                       "%s takes the value of lane %d, which has ended",
                       hd_sim_thread_name(fiber, name), from);
    }
    warp->slots[lane][0] = values[from];
  }
}

static int32_t source_xor(uint32_t lane, uint32_t operand) {
  return (int32_t)(lane ^ operand);
}
static int32_t source_up(uint32_t lane, uint32_t operand) {
  return (int32_t)lane - (int32_t)operand;
}
static int32_t source_down(uint32_t lane, uint32_t operand) {
  return (int32_t)(lane + operand);
}
static int32_t source_idx(uint32_t lane, uint32_t operand) {
  (void)lane;
  return (int32_t)operand;
}

void hd_sim_shfl_xor(hd_sim_warp_t *warp) { shuffle(warp, source_xor); }
void hd_sim_shfl_up(hd_sim_warp_t *warp) { shuffle(warp, source_up); }
void hd_sim_shfl_down(hd_sim_warp_t *warp) { shuffle(warp, source_down); }
void hd_sim_shfl_idx(hd_sim_warp_t *warp) { shuffle(warp, source_idx); }

// --- Votes ---

static void give_all(hd_sim_warp_t *warp, uint64_t result) {
  foreach_lane(warp, lane) warp->slots[lane][0] = result;
}

static uint32_t ballot(const hd_sim_warp_t *warp, uint32_t *members) {
  uint32_t mask = 0;
  *members = 0;
  foreach_lane(warp, lane) {
    *members |= 1u << lane;
    mask |= (uint32_t)(warp->slots[lane][1] & 1) << lane;
  }
  return mask;
}

void hd_sim_vote_any(hd_sim_warp_t *warp) {
  uint32_t members;
  give_all(warp, ballot(warp, &members) != 0);
}
void hd_sim_vote_all(hd_sim_warp_t *warp) {
  uint32_t members, mask = ballot(warp, &members);
  give_all(warp, mask == members);
}
void hd_sim_ballot(hd_sim_warp_t *warp) {
  uint32_t members;
  give_all(warp, ballot(warp, &members));
}

static uint32_t lanes_with(const hd_sim_warp_t *warp, uint32_t value) {
  uint32_t mask = 0;
  foreach_lane(warp, lane) {
    if ((uint32_t)warp->slots[lane][1] == value)
      mask |= 1u << lane;
  }
  return mask;
}

void hd_sim_match_any(hd_sim_warp_t *warp) {
  foreach_lane(warp, lane) {
    uint64_t *slots = warp->slots[lane];
    slots[0] = lanes_with(warp, (uint32_t)slots[1]);
  }
}

void hd_sim_match_all(hd_sim_warp_t *warp) {
  uint32_t members, first = 0;
  ballot(warp, &members);
  foreach_lane(warp, lane) {
    first = (uint32_t)warp->slots[lane][1];
    break;
  }
  give_all(warp, lanes_with(warp, first) == members);
}

// --- Reductions ---

#define REDUCTION(name, type, expression)                                      \
  void hd_sim_redux_##name(hd_sim_warp_t *warp) {                              \
    bool begun = false;                                                        \
    type a = 0;                                                                \
    foreach_lane(warp, lane) {                                                 \
      type b = (type)warp->slots[lane][1];                                     \
      a = begun ? (type)(expression) : b;                                      \
      begun = true;                                                            \
    }                                                                          \
    give_all(warp, (uint32_t)a);                                               \
  }
REDUCTION(add_i32, int32_t, (uint32_t)a + (uint32_t)b)
REDUCTION(add_u32, uint32_t, a + b)
REDUCTION(min_i32, int32_t, a < b ? a : b)
REDUCTION(min_u32, uint32_t, a < b ? a : b)
REDUCTION(max_i32, int32_t, a > b ? a : b)
REDUCTION(max_u32, uint32_t, a > b ? a : b)
REDUCTION(and, uint32_t, a &b)
REDUCTION(or, uint32_t, a | b)
REDUCTION(xor, uint32_t, a ^ b)
