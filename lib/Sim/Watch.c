// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stops a launch when its time is up or the user interrupts it: a thread looks
// now and then, for host code itself does not.
#include "Sim/State.h"

#include <string.h>
#include <time.h>

static hd_exhausted_t must_stop(const hd_budget_t *budget) {
  if (budget->interrupted && atomic_load(budget->interrupted))
    return HD_EXHAUSTED_INTERRUPT;
  bool late = budget->deadline_ns && hd_clock_ns() > budget->deadline_ns;
  return late ? HD_EXHAUSTED_TIME : HD_EXHAUSTED_NOTHING;
}

static void *watch_main(void *argument) {
  hd_sim_watch_t *watch = argument;
  pthread_mutex_lock(&watch->lock);
  while (!watch->over) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 10 * 1000 * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&watch->ended, &watch->lock, &until);
    if (watch->over)
      break;
    watch->stopped = must_stop(watch->run->options->budget);
    if (watch->stopped != HD_EXHAUSTED_NOTHING) {
      hd_sim_fail(watch->run);
      break;
    }
  }
  pthread_mutex_unlock(&watch->lock);
  return NULL;
}

void hd_sim_watch_begin(hd_sim_watch_t *watch, hd_sim_run_t *run) {
  const hd_budget_t *budget = run->options->budget;
  *watch = (hd_sim_watch_t){.run = run};
  if (!budget || (!budget->interrupted && !budget->deadline_ns))
    return;
  pthread_mutex_init(&watch->lock, NULL);
  pthread_cond_init(&watch->ended, NULL);
  watch->started = pthread_create(&watch->thread, NULL, watch_main, watch) == 0;
}

hd_exhausted_t hd_sim_watch_end(hd_sim_watch_t *watch) {
  if (!watch->started)
    return HD_EXHAUSTED_NOTHING;
  pthread_mutex_lock(&watch->lock);
  watch->over = true;
  pthread_cond_signal(&watch->ended);
  pthread_mutex_unlock(&watch->lock);
  pthread_join(watch->thread, NULL);
  pthread_cond_destroy(&watch->ended);
  pthread_mutex_destroy(&watch->lock);
  return watch->stopped;
}
