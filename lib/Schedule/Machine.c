// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Schedule/Machine.h"

#include <stddef.h>

static const hd_machine_t machines[] = {
#define HD_MACHINE(sm, count, mhz, kib, l2, gbs, launch)                       \
  {sm, count, mhz, (int64_t)kib << 10, l2, gbs, launch},
#include "Schedule/Machines.def"
#undef HD_MACHINE
};

bool hd_machine_find(int sm, hd_machine_t *machine) {
  int wanted = sm > 200 ? sm / 10 : sm; // sm_90a is 901.
  bool found = false;
  for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
    if (machines[i].sm <= wanted) {
      *machine = machines[i];
      found = true;
    }
  return found;
}
