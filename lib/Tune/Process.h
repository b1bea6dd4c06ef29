// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The worker as the tuner sees it: a process of its own, spawned, never forked
// and gone on with, for a driver's state does not survive that.
#ifndef HIDET_TUNE_PROCESS_H
#define HIDET_TUNE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct hd_tune_process {
  pid_t pid; // 0: there is none.
  int socket;
} hd_tune_process_t;

// command: the program and its arguments, NULL behind the last; its standard
// input is the socket. loud: what it prints to standard error is seen. False
// where the system gives none.
bool hd_tune_process_start(hd_tune_process_t *process,
                           const char *const *command, bool loud);
// Kills it, whatever it does; nothing where there is none.
void hd_tune_process_end(hd_tune_process_t *process);

#endif
