// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that a launch takes beside the tensors: --max-mem holds for it, too.
// Workers allocate side by side, so the launch keeps an account of its own.
#include "Sim/State.h"

#include <stdlib.h>
#include <string.h>

bool hd_sim_charge(hd_sim_run_t *run, size_t bytes) {
  size_t left = atomic_load(&run->memory_left);
  do {
    if (left == SIZE_MAX)
      return true;
    if (bytes > left) {
      atomic_store(&run->over_limit, true);
      return false;
    }
  } while (
      !atomic_compare_exchange_weak(&run->memory_left, &left, left - bytes));
  return true;
}

void hd_sim_refund(hd_sim_run_t *run, size_t bytes) {
  if (atomic_load(&run->memory_left) != SIZE_MAX)
    atomic_fetch_add(&run->memory_left, bytes);
}

void *hd_sim_alloc(hd_sim_run_t *run, size_t align, size_t size) {
  if (size == 0)
    size = 1;
  if (align)
    size = (size + align - 1) / align * align;
  if (!hd_sim_charge(run, size))
    return NULL;
  if (!align)
    return calloc(1, size);
  void *memory = aligned_alloc(align, size);
  if (memory)
    memset(memory, 0, size);
  return memory;
}

bool hd_sim_report_memory(hd_sim_run_t *run, const char *text) {
  if (!atomic_load(&run->over_limit))
    return hd_error(run->diags, (hd_loc_t){0}, HD_E0904, text);
  return hd_error(run->diags, (hd_loc_t){0}, HD_E0901,
                  (long long)run->options->budget->bytes_limit);
}
