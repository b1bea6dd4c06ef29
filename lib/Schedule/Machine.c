// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Schedule/Machine.h"

#include <stddef.h>

static const hd_machine_t machines[] = {
#define HD_MACHINE(sm, count, clustered, mhz, kib, l2, gbs, launch)            \
  {sm, count, clustered, mhz, (int64_t)kib << 10, l2, gbs, launch, false},
#include "Schedule/Machines.def"
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

void hd_machine_resize(hd_machine_t *machine, int count) {
  if (machine->count)
    machine->clustered =
        (int)((int64_t)machine->clustered * count / machine->count);
  machine->count = count;
}

int hd_machine_reach(const hd_machine_t *machine, int64_t cluster) {
  return cluster > 2 && machine->clustered ? machine->clustered
                                           : machine->count;
}
