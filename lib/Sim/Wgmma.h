// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products under way, as wgmma (Wgmma.c) and its checks (WgmmaCheck.c)
// share them.
#ifndef HIDET_SIM_WGMMA_H
#define HIDET_SIM_WGMMA_H

#include "Sim/Bulk.h"
#include "Sim/Product.h"

enum {
  HD_SIM_GROUP_WARPS = 4,
  HD_SIM_FRAGMENT = 16,
  HD_SIM_USED_WORDS = 8 // For more elements than a thread has registers.
};

// The accumulators of a warp that are under way, or that no wait has given
// back.
typedef struct hd_sim_sums {
  struct hd_sim_sums *next;
  uint64_t which;
  uint32_t count, bytes; // Elements of a lane; of an element.
  uint32_t under_way;    // Products.
  const hd_sim_site_t *site;
  char data[]; // Of each lane.
} hd_sim_sums_t;

typedef struct hd_sim_product {
  struct hd_sim_product *next;
  hd_sim_shape_t shape;
  uint32_t n;
  bool keep, in_registers;
  hd_sim_view_t a, b;
  uint32_t group; // The same for each warp.
  uint32_t asked; // A bit for each warp.
  hd_sim_sums_t *sums[HD_SIM_GROUP_WARPS];
  char fragments[HD_SIM_GROUP_WARPS][HD_SIM_WARP_SIZE][HD_SIM_FRAGMENT];
  uint64_t which[HD_SIM_GROUP_WARPS]; // Registers those are.
} hd_sim_product_t;

// Under sanitize, what threads have read and written of a register tensor since
// their warp's fence.
typedef struct hd_sim_used {
  struct hd_sim_used *next;
  uint64_t declaration;
  uint64_t elements[HD_SIM_GROUP_WARPS][HD_SIM_USED_WORDS]; // A bit for each.
  const hd_sim_site_t *site[HD_SIM_GROUP_WARPS];            // The last one's.
} hd_sim_used_t;

struct hd_sim_warpgroup {
  hd_sim_product_t *first, **last;
  hd_sim_product_t *next[HD_SIM_GROUP_WARPS]; // That a warp has not asked for;
                                              // NULL: a new one.
  uint32_t open[HD_SIM_GROUP_WARPS]; // The group that the next commit closes,
                                     // from 1 on.
  bool fenced[HD_SIM_GROUP_WARPS];
  hd_sim_sums_t *sums[HD_SIM_GROUP_WARPS];
  hd_sim_used_t *used;
  hd_sim_memo_t memo;
};

// A fiber's warpgroup, and its warp within.
static inline uint32_t hd_sim_group_of(const hd_sim_fiber_t *fiber) {
  return (uint32_t)fiber->head.linear / (HD_SIM_GROUP_WARPS * HD_SIM_WARP_SIZE);
}
static inline uint32_t hd_sim_group_warp(const hd_sim_fiber_t *fiber) {
  return (uint32_t)fiber->head.linear / HD_SIM_WARP_SIZE % HD_SIM_GROUP_WARPS;
}

// The launch ends where a descriptor leads out of shared memory.
void hd_sim_wgmma_check_reach(hd_sim_fiber_t *fiber, const hd_sim_site_t *site,
                              const hd_sim_view_t *view);
// A fence of the warp orders what its threads did to registers.
void hd_sim_wgmma_forget_used(hd_sim_warpgroup_t *group, uint32_t warp);
// Under sanitize: fences, and what the warp's part of the product reads.
void hd_sim_wgmma_check(hd_sim_fiber_t *fiber, const hd_sim_warpgroup_t *group,
                        const hd_sim_product_t *p);

#endif
