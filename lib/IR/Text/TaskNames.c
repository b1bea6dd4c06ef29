// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The names of a task, of which none stands for two things.
#include "IR/Text/TaskParser.h"

#include <string.h>

// Names are looked for one after the other.
enum { MAX_NAMES = 500 };

bool hd_task_declares(hd_task_parser_t *t, const char *name, hd_loc_t loc) {
  const hd_task_t *task = t->task;
  size_t count = task->types.size + task->sizes.size + task->packs.size +
                 task->inputs.size + task->outputs.size + task->locals.size +
                 task->monoids.size;
  if (count >= MAX_NAMES) {
    hd_error(t->p->diags, loc, HD_E0307, "the number of a task's names", 1LL,
             (long long)MAX_NAMES, (long long)count + 1);
    return true;
  }
  bool taken = hd_task_find_value(task, name) ||
               hd_task_find_pack(task, name) || hd_task_find_size(task, name) ||
               hd_task_find_type(task, name);
  for (size_t i = 0; i < task->monoids.size; i++)
    taken |= strcmp(task->monoids.data[i]->name, name) == 0;
  for (size_t i = 0; i < t->indices.size; i++)
    taken |= strcmp(t->indices.data[i]->name, name) == 0;
  taken |= hd_find_listed(t, name) != NULL;
  if (taken)
    hd_error(t->p->diags, loc, HD_E0202, name);
  return taken;
}

// A name that the task does not know yet; NULL, and reported, otherwise.
const char *hd_task_new_name(hd_task_parser_t *t, hd_loc_t *loc) {
  const char *name = hd_expect_name(t->p, loc);
  return name && !hd_task_declares(t, name, *loc) ? name : NULL;
}
