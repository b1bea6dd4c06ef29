// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A warp of one block without a scheduler, for the functions that take one.
#ifndef HIDET_UNITTESTS_SIM_WARP_H
#define HIDET_UNITTESTS_SIM_WARP_H

#include "Kernel.h"
#include "Sim/State.h"

// A warp of one block, called as the scheduler does.
typedef struct fixture {
  hd_sim_kernel_t kernel;
  hd_sim_options_t options;
  hd_sim_run_t run;
  hd_sim_worker_t worker;
  hd_sim_resident_t block;
  hd_sim_fiber_t fibers[32];
  hd_sim_warp_t warp;
  uint64_t slots[32][8];
} fixture_t;

static inline void make_warp(fixture_t *x, uint32_t missing) {
  memset(x, 0, sizeof *x);
  x->run.kernel = &x->kernel;
  x->run.options = &x->options;
  x->run.num_threads = 32;
  x->worker.run = &x->run;
  x->block.worker = &x->worker;
  x->block.num_threads = 32;
  x->block.threads = x->fibers;
  for (uint32_t lane = 0; lane < 32; lane++) {
    x->fibers[lane].head.block = &x->block.head;
    x->fibers[lane].head.linear = (int32_t)lane;
    if (missing >> lane & 1)
      continue;
    x->warp.threads[lane] = &x->fibers[lane].head;
    x->warp.slots[lane] = x->slots[lane];
  }
}

#endif
