// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Schedule/Template/Machine.h"

#include <math.h>
#include <stddef.h>

enum { KIB = 1024, MIB = 1024 * KIB };

// Of the L2 cache: 32 of an H200's 60 MiB are there for the next kernel.
enum { KEPT = 8, OF_CACHE = 15 };

enum { T4, A100, RTX_3090, RTX_4090, H200, MACHINES };

static const hd_machine_t machines[MACHINES] = {
#define HD_MACHINE(type, field, t4, a100, rtx3090, rtx4090, h200, text)        \
  [T4].field = (t4), [A100].field = (a100), [RTX_3090].field = (rtx3090),      \
  [RTX_4090].field = (rtx4090), [H200].field = (h200),
#define HD_ALIKE(type, field, value, text)                                     \
  HD_MACHINE(type, field, value, value, value, value, value, text)
#include "Schedule/Template/Machines.def"
#undef HD_MACHINE
#undef HD_ALIKE
};

bool hd_machine_find(int sm, hd_machine_t *machine) {
  int wanted = sm > 200 ? sm / 10 : sm; // sm_90a is 901.
  bool found = false;
  for (size_t i = 0; i < MACHINES; i++)
    if (machines[i].sm <= wanted) {
      *machine = machines[i];
      machine->native = sm > 200;
      found = true;
    }
  return found;
}

void hd_machine_find_largest(hd_machine_t *machine) {
  *machine = machines[MACHINES - 1];
}

void hd_machine_print(const hd_machine_t *machine, hd_buffer_t *text) {
#define HD_MACHINE(type, field, t4, a100, rtx3090, rtx4090, h200, meaning)     \
  hd_buffer_printf(text, " " #field " %.17g", (double)machine->field);
#define HD_ALIKE(type, field, value, meaning)                                  \
  HD_MACHINE(type, field, value, value, value, value, value, meaning)
#include "Schedule/Template/Machines.def"
#undef HD_MACHINE
#undef HD_ALIKE
  hd_buffer_printf(text, " native %d", machine->native);
}

void hd_machine_fit(hd_machine_t *machine, int count, int64_t cache,
                    double carried) {
  double share = machine->carried / machine->count;
  if (count) {
    machine->clustered =
        (int)((int64_t)machine->clustered * count / machine->count);
    machine->clustered_large =
        (int)((int64_t)machine->clustered_large * count / machine->count);
    machine->count = count;
  }
  if (cache)
    machine->cache = cache;
  if (carried > 0) {
    machine->gbs *= carried / machine->carried;
    machine->carried = carried;
  }
  machine->memory_bytes *= machine->carried / machine->count / share;
}

static int of_type(hd_scalar_t type, int half, int tf32, int bytes, int f8) {
  switch ((int)type) {
  case HD_F16:
  case HD_BF16:
    return half;
  case HD_TF32:
    return tf32;
  case HD_I8:
  case HD_U8:
    return bytes;
  case HD_F8E4M3:
  case HD_F8E5M2:
    return f8;
  default:
    return 0;
  }
}

int hd_machine_mma(const hd_machine_t *m, hd_scalar_t type) {
  return of_type(type, m->mma_16, m->mma_32, m->mma_i8, m->mma_f8);
}

int hd_machine_wgmma(const hd_machine_t *m, hd_scalar_t type) {
  return of_type(type, m->wgmma_16, m->wgmma_32, m->wgmma_i8, m->wgmma_f8);
}

double hd_machine_residents(const hd_machine_t *machine, double threads,
                            double registers, double shared) {
  double by_shared =
      (double)machine->shared / (shared + (double)machine->reserved_shared);
  double by_threads = fmin(machine->blocks, machine->threads / threads);
  double by_registers = (double)machine->registers / registers;
  return floor(fmin(by_shared, fmin(by_registers, by_threads)));
}

int64_t hd_machine_kept(const hd_machine_t *machine) {
  return machine->cache / OF_CACHE * KEPT;
}

double hd_machine_cluster_reduce(const hd_machine_t *machine) {
  return machine->cluster_cycles + machine->exchange_cycles;
}

int hd_machine_reach(const hd_machine_t *machine, int64_t cluster) {
  int reached = cluster > machine->portable_cluster ? machine->clustered_large
                : cluster > 2                       ? machine->clustered
                                                    : machine->count;
  return reached ? reached : machine->count;
}
