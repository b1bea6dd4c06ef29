// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The targets.
#include "CodeGen/CodeGen.h"

#include <string.h>

// A block's shared memory with the opt-in, as CUDA's programming guide lists it
// by compute capability, and the bytes of parameters that PTX knows in the
// version that is made for it. The host takes what the largest of them has.
static const hd_target_t targets[] = {
    {HD_ARCH_NVPTX, 75, "sm_75", 64 << 10, 4096},
    {HD_ARCH_NVPTX, 80, "sm_80", 163 << 10, 4096},
    {HD_ARCH_NVPTX, 86, "sm_86", 99 << 10, 4096},
    {HD_ARCH_NVPTX, 89, "sm_89", 99 << 10, 32764},
    {HD_ARCH_NVPTX, 90, "sm_90", 227 << 10, 32764},
    {HD_ARCH_NVPTX, 901, "sm_90a", 227 << 10, 32764},
    {HD_ARCH_HOST, 0, "host", 227 << 10, 32764},
};

const hd_target_t *hd_target_find(const char *name) {
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
    if (!strcmp(targets[i].name, name))
      return &targets[i];
  return NULL;
}

const hd_target_t *hd_target_get(size_t i) {
  return i < sizeof targets / sizeof *targets ? &targets[i] : NULL;
}

const char *hd_target_names(void) {
  return "sm_75, sm_80, sm_86, sm_89, sm_90, sm_90a, host";
}
