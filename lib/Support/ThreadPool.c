// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/ThreadPool.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct worker {
  hd_thread_pool_t *pool;
  pthread_t thread;
  unsigned number;
} worker_t;

struct hd_thread_pool {
  pthread_mutex_t turn; // Held while a job runs.
  pthread_mutex_t lock;
  pthread_cond_t wake; // A job has come, or the end.
  pthread_cond_t done; // The last worker has left the job.
  unsigned size;       // The caller included.
  unsigned job;        // Counts the jobs, so that a sleeper sees a new one.
  unsigned pieces, next, running;
  bool ending;
  void (*body)(void *, unsigned, unsigned);
  void *argument;
  worker_t workers[]; // size - 1 of them.
};

// Takes pieces until there are none. The lock is held on entry and on return.
static void work_on_pieces(hd_thread_pool_t *pool, unsigned number) {
  while (pool->next < pool->pieces) {
    unsigned piece = pool->next++;
    pthread_mutex_unlock(&pool->lock);
    pool->body(pool->argument, piece, number);
    pthread_mutex_lock(&pool->lock);
  }
}

static void *worker_main(void *argument) {
  worker_t *self = argument;
  hd_thread_pool_t *pool = self->pool;
  unsigned seen = 0;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (!pool->ending && pool->job == seen)
      pthread_cond_wait(&pool->wake, &pool->lock);
    if (pool->ending)
      break;
    seen = pool->job;
    pool->running++;
    work_on_pieces(pool, self->number);
    if (--pool->running == 0)
      pthread_cond_signal(&pool->done);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

static unsigned usable_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return (unsigned)CPU_COUNT(&set);
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores > 0 ? (unsigned)cores : 1;
}

hd_thread_pool_t *hd_thread_pool_create(unsigned threads) {
  if (threads == 0)
    threads = usable_cores();
  hd_thread_pool_t *pool =
      calloc(1, sizeof *pool + (threads - 1) * sizeof(worker_t));
  if (!pool)
    return NULL;
  pthread_mutex_init(&pool->turn, NULL);
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->wake, NULL);
  pthread_cond_init(&pool->done, NULL);
  pool->size = 1;
  for (unsigned i = 0; i + 1 < threads; i++) {
    worker_t *worker = &pool->workers[i];
    *worker = (worker_t){.pool = pool, .number = i + 1};
    if (pthread_create(&worker->thread, NULL, worker_main, worker))
      break;
    pool->size++;
  }
  return pool;
}

void hd_thread_pool_destroy(hd_thread_pool_t *pool) {
  if (!pool)
    return;
  pthread_mutex_lock(&pool->lock);
  pool->ending = true;
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
  for (unsigned i = 0; i + 1 < pool->size; i++)
    pthread_join(pool->workers[i].thread, NULL);
  pthread_cond_destroy(&pool->done);
  pthread_cond_destroy(&pool->wake);
  pthread_mutex_destroy(&pool->lock);
  pthread_mutex_destroy(&pool->turn);
  free(pool);
}

unsigned hd_thread_pool_size(const hd_thread_pool_t *pool) {
  return pool ? pool->size : 1;
}

void hd_thread_pool_run(hd_thread_pool_t *pool, unsigned pieces,
                        void (*body)(void *, unsigned, unsigned),
                        void *argument) {
  if (!pool || pool->size == 1 || pieces <= 1) {
    for (unsigned piece = 0; piece < pieces; piece++)
      body(argument, piece, 0);
    return;
  }
  pthread_mutex_lock(&pool->turn);
  pthread_mutex_lock(&pool->lock);
  pool->body = body;
  pool->argument = argument;
  pool->next = 0;
  pool->pieces = pieces;
  pool->job++;
  pthread_cond_broadcast(&pool->wake);
  work_on_pieces(pool, 0);
  while (pool->running > 0)
    pthread_cond_wait(&pool->done, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
  pthread_mutex_unlock(&pool->turn);
}
