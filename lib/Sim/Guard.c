// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Without --sanitize a kernel's wrong index goes straight to memory. Where that
// faults, the signal ends the kernel and not the process.
#include "Sim/State.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>

typedef struct guard {
  sigjmp_buf point;
  hd_sim_fault_t fault;
} guard_t;

static _Thread_local guard_t *volatile active;

static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE};
enum { NUM_CAUGHT = sizeof caught / sizeof *caught };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static struct sigaction before[NUM_CAUGHT];

static void on_signal(int number, siginfo_t *info, void *context) {
  (void)info;
  (void)context;
  guard_t *guard = active;
  if (guard) {
    guard->fault = number == SIGFPE ? HD_SIM_BAD_NUMBER : HD_SIM_BAD_ACCESS;
    siglongjmp(guard->point, 1);
  }
  // Not ours: the fault happens again under the handler that was there.
  for (int i = 0; i < NUM_CAUGHT; i++)
    if (caught[i] == number)
      sigaction(number, &before[i], NULL);
}

void hd_sim_guard_begin(void) {
  pthread_mutex_lock(&lock);
  if (users++ == 0) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < NUM_CAUGHT; i++)
      sigaction(caught[i], &action, &before[i]);
  }
  pthread_mutex_unlock(&lock);
}

void hd_sim_guard_end(void) {
  pthread_mutex_lock(&lock);
  if (--users == 0)
    for (int i = 0; i < NUM_CAUGHT; i++)
      sigaction(caught[i], &before[i], NULL);
  pthread_mutex_unlock(&lock);
}

hd_sim_fault_t hd_sim_guard(void (*body)(void *), void *argument) {
  guard_t guard = {.fault = HD_SIM_WHOLE};
  guard_t *outer = active;
  if (sigsetjmp(guard.point, 0) == 0) {
    active = &guard;
    body(argument);
  }
  active = outer;
  return guard.fault;
}

_Noreturn void hd_sim_leave(void) {
  active->fault = HD_SIM_LEFT;
  siglongjmp(active->point, 1);
}
