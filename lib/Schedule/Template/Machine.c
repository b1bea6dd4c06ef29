// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Schedule/Template/Machine.h"

#include <math.h>
#include <stddef.h>

enum {
  REGISTERS = 65536,     // Of a multiprocessor.
  RESERVED_SHARED = 1024 // Of each block.
};

static const hd_machine_t machines[] = {
// clang-format off
#define HD_MACHINE(sm, count, clustered, mhz, threads, blocks, kib, block_kib, mib, l2, gbs, carried, launch) \
  {sm, count, clustered, mhz, threads, blocks, (int64_t)kib << 10, (int64_t)block_kib << 10, (int64_t)mib << 20, l2, gbs, carried, launch, false},
// clang-format on
#include "Schedule/Template/Machines.def"
#undef HD_MACHINE
};

bool hd_machine_find(int sm, hd_machine_t *machine) {
  int wanted = sm > 200 ? sm / 10 : sm; // sm_90a is 901.
  bool found = false;
  for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
    if (machines[i].sm <= wanted) {
      *machine = machines[i];
      machine->native = sm > 200;
      found = true;
    }
  return found;
}

void hd_machine_fit(hd_machine_t *machine, int count, int64_t cache,
                    double carried) {
  if (count) {
    machine->clustered =
        (int)((int64_t)machine->clustered * count / machine->count);
    machine->count = count;
  }
  if (cache)
    machine->cache = cache;
  if (carried > 0) {
    machine->gbs *= carried / machine->carried;
    machine->carried = carried;
  }
}

double hd_machine_residents(const hd_machine_t *machine, double threads,
                            double registers, double shared) {
  double by_shared = (double)machine->shared / (shared + RESERVED_SHARED);
  double by_threads = fmin(machine->blocks, machine->threads / threads);
  return floor(fmin(by_shared, fmin(REGISTERS / registers, by_threads)));
}

// 32 of an H200's 60 MiB.
int64_t hd_machine_kept(const hd_machine_t *machine) {
  return machine->cache / 15 * 8;
}

int hd_machine_reach(const hd_machine_t *machine, int64_t cluster) {
  return cluster > 2 && machine->clustered ? machine->clustered
                                           : machine->count;
}
