// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Enumerating the tasks of a worker: the definition of each kind of mapping,
// taken literally. The lowering is tested against it.

#include "TaskMapping/TaskMapping.h"

#include "Support/Gcd.h"

#include <assert.h>
#include <string.h>

typedef struct tasks_env {
  hd_arena_t *arena;
  const hd_fold_t *outer;
  const hd_mapping_t *custom; // Its bound variables have these values.
  int64_t worker, repeat;
} tasks_env_t;

static int64_t product_of(const hd_mapping_t *m) {
  int64_t product = 1;
  for (unsigned a = 0; a < m->rank; ++a)
    product *= m->dims[a];
  return product;
}

// The index of task number `number`, counted in the mapping's order.
static void unrank(const hd_mapping_t *m, int64_t number, int64_t *index) {
  for (unsigned i = m->rank; i-- > 0;) {
    unsigned axis = m->order ? m->order[i] : i;
    index[axis] = number % m->dims[axis];
    number /= m->dims[axis];
  }
}

static int64_t *new_tasks(tasks_env_t *env, const hd_mapping_t *m,
                          int64_t count, hd_tasks_t *tasks) {
  int64_t *indices = HD_ARENA_ARRAY(env->arena, int64_t, count * m->rank);
  *tasks = (hd_tasks_t){m->rank, count, indices};
  return indices;
}

static bool bound_value(void *argument, const hd_expr_t *leaf,
                        hd_number_t *value) {
  const tasks_env_t *env = argument;
  const hd_var_t *var = leaf->kind == HD_EXPR_VAR ? leaf->u.var : NULL;
  if (env->custom && var &&
      (var == env->custom->worker || var == env->custom->repeat)) {
    value->i = var == env->custom->worker ? env->worker : env->repeat;
    return true;
  }
  const hd_fold_t *outer = env->outer;
  return outer && outer->leaf(outer->argument, leaf, value);
}

static bool evaluate(tasks_env_t *env, const hd_expr_t *e, int64_t *value) {
  const hd_fold_t fold = {.leaf = bound_value, .argument = env};
  hd_number_t number;
  if (hd_type_is_float(e->type) || !hd_expr_value(&fold, e, &number))
    return false;
  *value = number.i;
  return true;
}

static bool enumerate(tasks_env_t *env, const hd_mapping_t *m, int64_t worker,
                      hd_tasks_t *tasks);

static bool enumerate_compose(tasks_env_t *env, const hd_mapping_t *m,
                              int64_t worker, hd_tasks_t *tasks) {
  int64_t n = m->right->workers;
  hd_tasks_t left, right;
  if (!enumerate(env, m->left, worker / n, &left) ||
      !enumerate(env, m->right, worker % n, &right))
    return false;
  int64_t *out = new_tasks(env, m, left.count * right.count, tasks);
  for (int64_t s = 0; s < left.count; ++s)
    for (int64_t t = 0; t < right.count; ++t)
      for (unsigned a = 0; a < m->rank; ++a)
        *out++ = left.indices[s * m->rank + a] * m->right->dims[a] +
                 right.indices[t * m->rank + a];
  return true;
}

static bool enumerate_custom(tasks_env_t *env, const hd_mapping_t *m,
                             int64_t worker, hd_tasks_t *tasks) {
  tasks_env_t inner = *env;
  inner.custom = m;
  inner.worker = worker;
  int64_t *out = new_tasks(env, m, m->count, tasks);
  for (int64_t r = 0; r < m->count; ++r) {
    inner.repeat = r;
    for (unsigned a = 0; a < m->rank; ++a)
      if (!evaluate(&inner, m->exprs[a], out++))
        return false;
  }
  return true;
}

static bool enumerate_within(tasks_env_t *env, const hd_mapping_t *m,
                             int64_t worker, hd_tasks_t *tasks) {
  int64_t bounds[HD_MAPPING_MAX_RANK];
  for (unsigned a = 0; a < m->rank; ++a)
    if (!evaluate(env, m->bounds[a], &bounds[a]))
      return false;
  hd_tasks_t all;
  if (!enumerate(env, m->left, worker, &all))
    return false;
  int64_t *out = new_tasks(env, m, all.count, tasks);
  tasks->count = 0;
  for (int64_t t = 0; t < all.count; ++t) {
    const int64_t *task = all.indices + t * m->rank;
    bool inside = true;
    for (unsigned a = 0; a < m->rank; ++a)
      inside &= task[a] < bounds[a];
    if (inside)
      memcpy(out + tasks->count++ * m->rank, task, m->rank * sizeof(*task));
  }
  return true;
}

static bool enumerate(tasks_env_t *env, const hd_mapping_t *m, int64_t worker,
                      hd_tasks_t *tasks) {
  switch (m->kind) {
  case HD_MAPPING_SPATIAL:
    unrank(m, worker, new_tasks(env, m, 1, tasks));
    return true;
  case HD_MAPPING_REPEAT: {
    int64_t count = product_of(m);
    int64_t *out = new_tasks(env, m, count, tasks);
    for (int64_t t = 0; t < count; ++t)
      unrank(m, t, out + t * m->rank);
    return true;
  }
  case HD_MAPPING_COMPOSE:
    return enumerate_compose(env, m, worker, tasks);
  case HD_MAPPING_AUTO:
    return enumerate(env, hd_mapping_expand_auto(env->arena, m, NULL), worker,
                     tasks);
  case HD_MAPPING_CUSTOM:
    return enumerate_custom(env, m, worker, tasks);
  case HD_MAPPING_WITHIN:
    return enumerate_within(env, m, worker, tasks);
  case HD_MAPPING_IDLE:
    if (worker < m->left->workers)
      return enumerate(env, m->left, worker, tasks);
    new_tasks(env, m, 0, tasks);
    return true;
  }
  return false;
}

bool hd_mapping_tasks(hd_arena_t *arena, const hd_mapping_t *mapping,
                      int64_t worker, const hd_fold_t *fold,
                      hd_tasks_t *tasks) {
  assert(worker >= 0 && worker < mapping->workers);
  tasks_env_t env = {.arena = arena, .outer = fold};
  return enumerate(&env, mapping, worker, tasks);
}

int64_t hd_mapping_tasks_per_worker(const hd_mapping_t *m) {
  switch (m->kind) {
  case HD_MAPPING_SPATIAL:
    return 1;
  case HD_MAPPING_REPEAT:
    return product_of(m);
  case HD_MAPPING_COMPOSE: {
    int64_t tasks;
    if (__builtin_mul_overflow(hd_mapping_tasks_per_worker(m->left),
                               hd_mapping_tasks_per_worker(m->right), &tasks))
      return INT64_MAX;
    return tasks;
  }
  case HD_MAPPING_AUTO: {
    int64_t workers = m->workers, tasks = 1;
    for (unsigned a = m->rank; a-- > 0;) {
      int64_t spatial = hd_gcd(workers, m->dims[a]);
      workers /= spatial;
      tasks *= m->dims[a] / spatial;
    }
    return tasks;
  }
  case HD_MAPPING_CUSTOM:
    return m->count;
  case HD_MAPPING_WITHIN:
  case HD_MAPPING_IDLE:
    return hd_mapping_tasks_per_worker(m->left);
  }
  return 0;
}

const hd_mapping_t *hd_mapping_expand_auto(hd_arena_t *arena,
                                           const hd_mapping_t *m,
                                           int64_t *left_over) {
  assert(m->kind == HD_MAPPING_AUTO);
  int64_t *spatial = HD_ARENA_ARRAY(arena, int64_t, m->rank);
  int64_t *repeat = HD_ARENA_ARRAY(arena, int64_t, m->rank);
  int64_t workers = m->workers;
  for (unsigned a = m->rank; a-- > 0;) {
    spatial[a] = hd_gcd(workers, m->dims[a]);
    repeat[a] = m->dims[a] / spatial[a];
    workers /= spatial[a];
  }
  if (left_over)
    *left_over = workers;
  const hd_mapping_t *expanded =
      hd_mapping_compose(arena, hd_mapping_repeat(arena, repeat, NULL, m->rank),
                         hd_mapping_spatial(arena, spatial, NULL, m->rank));
  assert(expanded); // Its products are no larger than the mapping's own.
  return expanded;
}
