// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a product is expected to take by a candidate, from the figures in its
// head and the machine's. A step of a block is bound by the tensor cores, by
// what the L2 cache gives a multiprocessor, by how fast its warps issue their
// instructions, or, where too little is under way, by the latency of a load;
// blocks that are on a multiprocessor together share the first three and hide
// the last.
//
// The numbers were fitted to what an H200 takes for pairs of products of 128
// and 512 rows, 768 to 3072 columns and back, by 60 candidates each.
#include "Schedule/Product.h"

#include <math.h>

enum {
  LOAD_CYCLES = 570,   // Of a load that comes from the L2 cache.
  CROWD_CYCLES = 1100, // The same, of loads through registers.
  BEGIN_CYCLES = 800,  // Before the first step, behind the last one.
  SYNC_CYCLES = 800,   // Of a cluster: it begins, and waits twice.
  COPY_CYCLES = 6,     // That a warp takes to issue a copy of 16 bytes each.
  COPY_BYTES = 16,
  SCHEDULERS = 4,         // Of a multiprocessor: so many warps issue at once.
  BATCH = 16,             // Loads of a thread through registers at once,
  ELEMENT_CYCLES = 12,    // and what one costs beside its latency.
  REMOTE_BYTES = 8,       // A cycle, to another block's shared memory.
  FULL_WARPS = 5,         // That keep the tensor cores busy.
  RESERVED_SHARED = 1024, // Of each block.
  OWN_REGISTERS = 48      // Of a thread, beside its sums.
};

static double at_most(double a, double b) { return a < b ? a : b; }
static double at_least(double a, double b) { return a > b ? a : b; }

// Blocks that share a multiprocessor, by shared memory and threads.
static double residents(const hd_machine_t *machine, const hd_candidate_t *c) {
  double by_shared =
      floor((double)machine->shared /
            (double)(c->figures[HD_FIGURE_SHARED] + RESERVED_SHARED));
  // Half of the registers' file for accumulators is what kernels come to.
  double sums =
      (double)(c->figures[HD_FIGURE_TILE_M] * c->figures[HD_FIGURE_TILE_N]);
  double threads = (double)c->figures[HD_FIGURE_THREADS];
  double registers = c->figures[HD_FIGURE_REGISTERS]
                         ? (double)c->figures[HD_FIGURE_REGISTERS] * threads
                         : sums * 1.6 + OWN_REGISTERS * threads;
  return floor(
      at_most(by_shared, at_most(65536 / registers, 2048.0 / threads)));
}

double hd_candidate_price(const hd_machine_t *machine,
                          const hd_product_form_t *form,
                          const hd_candidate_t *c) {
  double bm = (double)c->figures[HD_FIGURE_TILE_M];
  double bn = (double)c->figures[HD_FIGURE_TILE_N];
  double bk = (double)c->figures[HD_FIGURE_TILE_K];
  double split = (double)c->figures[HD_FIGURE_SPLIT];
  double share = (double)c->figures[HD_FIGURE_SHARE];
  double bytes = hd_scalar_bits(form->type) / 8.0;
  double blocks = (double)form->sizes[HD_AXIS_BATCH] *
                  ceil((double)form->sizes[HD_AXIS_M] / (bm * share)) * share *
                  ceil((double)form->sizes[HD_AXIS_N] / bn) * split;
  double most = residents(machine, c);
  if (most < 1)
    return INFINITY;
  double reach = hd_machine_reach(machine, c->figures[HD_FIGURE_SPLIT] *
                                               c->figures[HD_FIGURE_SHARE]);
  double together = at_most(most, ceil(blocks / reach));
  double waves = ceil(blocks / (reach * together));
  double steps = ceil(ceil((double)form->sizes[HD_AXIS_K] / bk) / split);
  double warps = (double)c->figures[HD_FIGURE_THREADS] / 32 * together;
  double multiply =
      together * bm * bn * bk /
      ((double)c->figures[HD_FIGURE_RATE] * at_most(1, warps / FULL_WARPS));
  double load = together * (bm + bn / share) * bk * bytes / machine->l2;
  double wait = LOAD_CYCLES / (double)(c->figures[HD_FIGURE_STAGES] - 1);
  // What passes through registers is waited for, a batch at a time.
  double elements = (form->a.wide ? 0 : bm * bk) + (form->b.wide ? 0 : bn * bk);
  double by_thread = elements / (double)c->figures[HD_FIGURE_THREADS];
  const bool *maps = c->template->maps; // The copy engine needs no warps.
  double copied = (form->a.wide && !maps[0] ? bm * bk : 0) +
                  (form->b.wide && !maps[1] ? bn * bk : 0);
  double copies =
      copied * bytes / COPY_BYTES / (double)c->figures[HD_FIGURE_THREADS];
  double issue = warps / SCHEDULERS *
                 ((double)c->figures[HD_FIGURE_ISSUE] + copies * COPY_CYCLES);
  double step = at_least(at_least(multiply, issue), at_least(load, wait)) +
                (double)c->figures[HD_FIGURE_BARRIER] +
                by_thread * together * ELEMENT_CYCLES +
                ceil(by_thread / BATCH) * CROWD_CYCLES;
  double cycles = BEGIN_CYCLES + LOAD_CYCLES + waves * steps * step;
  if (split > 1)
    cycles += SYNC_CYCLES + waves * together * bm * bn * 4 *
                                ((split - 1) / split) / REMOTE_BYTES;
  cycles += waves * together * bm * bn / split *
            (double)c->figures[HD_FIGURE_RESULT] * 0.01;
  double moved =
      bytes * (double)form->sizes[HD_AXIS_BATCH] *
      ((double)form->sizes[HD_AXIS_M] * (double)form->sizes[HD_AXIS_K] +
       (double)form->sizes[HD_AXIS_N] * (double)form->sizes[HD_AXIS_K] +
       (double)form->sizes[HD_AXIS_M] * (double)form->sizes[HD_AXIS_N]);
  return machine->launch +
         at_least(cycles / machine->mhz, moved / machine->gbs * 1e-3);
}
