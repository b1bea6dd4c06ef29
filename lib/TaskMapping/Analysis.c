// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a mapping does each task exactly once.
//
// spatial and repeat do by definition. A composition's tasks are the pairs of
// its parts' tasks, and (s, t) -> s * d + t is one to one for t < d: so it is
// exact when its parts are. Only custom mappings have to be looked at task by
// task.

#include "TaskMapping/TaskMapping.h"

#include <stdlib.h>
#include <string.h>

static const int64_t max_enumerated = INT64_C(1) << 20;

static hd_mapping_facts_t fault(hd_mapping_fault_t kind, const hd_mapping_t *m,
                                const int64_t *task, int64_t worker) {
  hd_mapping_facts_t facts = {.fault = kind, .mapping = m, .worker = worker};
  if (task)
    memcpy(facts.task, task, m->rank * sizeof(*task));
  return facts;
}

// The place of a task in row-major order; false where it is outside the shape.
static bool rank_of(const hd_mapping_t *m, const int64_t *task,
                    int64_t *place) {
  *place = 0;
  for (unsigned a = 0; a < m->rank; ++a) {
    if (task[a] < 0 || task[a] >= m->dims[a])
      return false;
    *place = *place * m->dims[a] + task[a];
  }
  return true;
}

// Marks one worker's tasks as done.
static hd_mapping_facts_t mark(const hd_mapping_t *m, int64_t worker,
                               const hd_tasks_t *tasks, bool *done) {
  for (int64_t t = 0; t < tasks->count; ++t) {
    const int64_t *task = tasks->indices + t * m->rank;
    int64_t place;
    if (!rank_of(m, task, &place))
      return fault(HD_MAPPING_OUTSIDE, m, task, worker);
    if (done[place])
      return fault(HD_MAPPING_TWICE, m, task, worker);
    done[place] = true;
  }
  return fault(HD_MAPPING_EXACT, m, NULL, 0);
}

static hd_mapping_facts_t find_missed(const hd_mapping_t *m, const bool *done,
                                      int64_t total) {
  for (int64_t place = 0; place < total; ++place) {
    if (done[place])
      continue;
    int64_t task[HD_MAPPING_MAX_RANK], rest = place;
    for (unsigned a = m->rank; a-- > 0;) {
      task[a] = rest % m->dims[a];
      rest /= m->dims[a];
    }
    return fault(HD_MAPPING_MISSED, m, task, 0);
  }
  return fault(HD_MAPPING_EXACT, m, NULL, 0);
}

static hd_mapping_facts_t analyze_custom(const hd_mapping_t *m) {
  int64_t total = 1;
  for (unsigned a = 0; a < m->rank; ++a)
    total *= m->dims[a];
  bool *done = NULL;
  if (total <= max_enumerated && m->workers * m->count <= max_enumerated)
    done = calloc((size_t)total, sizeof(*done));
  if (!done)
    return fault(HD_MAPPING_UNKNOWN, m, NULL, 0);
  hd_mapping_facts_t facts = fault(HD_MAPPING_EXACT, m, NULL, 0);
  for (int64_t w = 0; w < m->workers && facts.fault == HD_MAPPING_EXACT; ++w) {
    hd_arena_t scratch; // One worker's: all of them might take much memory.
    hd_arena_init(&scratch, NULL);
    hd_tasks_t tasks;
    facts = hd_mapping_tasks(&scratch, m, w, NULL, &tasks)
                ? mark(m, w, &tasks, done)
                : fault(HD_MAPPING_UNKNOWN, m, NULL, w);
    hd_arena_fini(&scratch);
  }
  if (facts.fault == HD_MAPPING_EXACT)
    facts = find_missed(m, done, total);
  free(done);
  return facts;
}

static hd_mapping_facts_t analyze_auto(const hd_mapping_t *m) {
  hd_arena_t scratch;
  hd_arena_init(&scratch, NULL);
  int64_t left_over;
  hd_mapping_expand_auto(&scratch, m, &left_over);
  hd_arena_fini(&scratch);
  return fault(left_over > 1 ? HD_MAPPING_LEFT_OVER : HD_MAPPING_EXACT, m, NULL,
               m->workers / left_over);
}

hd_mapping_facts_t hd_mapping_analyze(const hd_mapping_t *m) {
  switch (m->kind) {
  case HD_MAPPING_SPATIAL:
  case HD_MAPPING_REPEAT:
    break;
  case HD_MAPPING_COMPOSE: {
    hd_mapping_facts_t facts = hd_mapping_analyze(m->left);
    return facts.fault == HD_MAPPING_EXACT ? hd_mapping_analyze(m->right)
                                           : facts;
  }
  case HD_MAPPING_AUTO:
    return analyze_auto(m);
  case HD_MAPPING_CUSTOM:
    return analyze_custom(m);
  case HD_MAPPING_WITHIN:
  case HD_MAPPING_IDLE:
    return hd_mapping_analyze(m->left);
  }
  return fault(HD_MAPPING_EXACT, m, NULL, 0);
}
