// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names to functions, for the linker of host code.
#include "Sim/Functions.h"
#include "Sim/Sim.h"

#include <stdlib.h>
#include <string.h>

typedef void (*function_t)(void);

static const struct {
  const char *name;
  function_t function;
} symbols[] = {
#define HD_SIM_BLOCK_FUNCTION(name) {#name, (function_t)name},
#define HD_SIM_WARP_FUNCTION(name) {#name, (function_t)name},
#define HD_SIM_THREAD_FUNCTION(name) {#name, (function_t)name},
#define HD_SIM_PURE_FUNCTION(name, result, ...) {#name, (function_t)name},
#include "Sim/Functions.def"
    {"hd_sim_frame", (function_t)hd_sim_frame},
    {"hd_sim_check", (function_t)hd_sim_check},
    {"hd_sim_unwritten", (function_t)hd_sim_unwritten},
    {"hd_sim_wrapped", (function_t)hd_sim_wrapped},
    {"hd_sim_print", (function_t)hd_sim_print},
    {"hd_sim_assert_failed", (function_t)hd_sim_assert_failed},
    {"hd_sim_divided_by_zero", (function_t)hd_sim_divided_by_zero},
};

void *hd_sim_symbol(const char *name) {
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
    if (strcmp(symbols[i].name, name) == 0)
      return (void *)(uintptr_t)symbols[i].function;
  return NULL;
}
