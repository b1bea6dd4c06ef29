// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Fuzz.h"

#include "IR/Text/Library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *fuzz_tasks[FUZZ_MAX_TASKS];
size_t fuzz_num_tasks;

static void add(const char *name) {
  if (fuzz_num_tasks == FUZZ_MAX_TASKS) {
    fprintf(stderr, "graph_fuzz: more than %d tasks\n", FUZZ_MAX_TASKS);
    exit(2);
  }
  fuzz_tasks[fuzz_num_tasks++] = strdup(name);
}

void fuzz_tasks_init(void) {
  const char *name;
  for (size_t i = 0; (name = hd_library_task_name(i)); i++)
    add(name);
  add("reshape");
  add("loop");
}

size_t fuzz_task_at(const char *name) {
  size_t i = 0;
  while (strcmp(fuzz_tasks[i], name) != 0)
    i++;
  return i;
}
