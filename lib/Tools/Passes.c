// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/Passes.h"

void hd_pass_list_init(hd_pass_list_t *list) { list->size = 0; }

const hd_pass_t *hd_pass_list_find(const hd_pass_list_t *list,
                                   const char *name) {
  for (size_t i = 0; i < list->size; i++)
    if (strcmp(list->names[i], name) == 0)
      return list->passes[i];
  return NULL;
}

const char *hd_pass_level_name(hd_pass_level_t level) {
  switch (level) {
  case HD_LEVEL_KERNEL:
    return "kernel";
  case HD_LEVEL_GRAPH:
    return "graph";
  }
  return "";
}
