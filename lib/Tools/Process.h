// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tool as a process: limits on time, Ctrl-C, crashes, and the exit code.
#ifndef HIDET_TOOLS_PROCESS_H
#define HIDET_TOOLS_PROCESS_H

#include "Tools/Ending.h"

#include <pthread.h>
#include <signal.h>

typedef struct hd_process {
  const char *name;
  hd_context_t context;
  // worked: hd_process_run() is at its end; ended: hd_process_end() was called.
  atomic_bool interrupted, worked, ended;
  hd_ending_t ending;
  uint64_t start_ns;
  size_t held_at_start; // See hd_host_memory_held(); 0: there is no limit.
  pthread_t watchdog;
  bool watched;
  sigset_t old_signals;
  bool color;
  bool quiet; // Print errors alone.
} hd_process_t;

// What the process may hold beside the limit of hd_process_limit(): LLVM and
// other libraries take it for the smallest kernel.
enum { HD_PROCESS_BESIDE = 32 << 20 };

// Starts a context whose work SIGINT and SIGTERM interrupt. Where the work does
// not look at its budget for 100 ms (LLVM, the driver and some loops of kernels
// do not), the process ends by itself: with exit 130, or 5 at the time limit.
// So it does (5) where memory runs out inside LLVM, and where all that the
// process holds grows by more than the limit on memory and HD_PROCESS_BESIDE.
// Code that aborts, or LLVM where it gives up, ends with exit 70. A kernel's
// fault on the simulator ends the kernel. A reader that has gone is an output
// that cannot be written (exit 2), not a signal.
void hd_process_begin(hd_process_t *process, const char *name);

// Sets the limits; 0 is none. To be called before hd_process_run().
void hd_process_limit(hd_process_t *process, int64_t bytes,
                      int64_t milliseconds);

// Where a report is to be written if the process ends by itself: `version`,
// `exit`, `diagnostics`. The path lives as long as the process.
void hd_process_json(hd_process_t *process, const char *path);

// Runs body(argument) inside the context's budget; running out of something is
// reported as an error.
void hd_process_run(hd_process_t *process, void (*body)(void *),
                    void *argument);

// Prints what was reported, ends the context and returns the exit code.
int hd_process_end(hd_process_t *process);

// The exit code as it stands.
hd_exit_t hd_process_exit(const hd_process_t *process);

// choice: 0 auto, 1 always, 2 never.
void hd_process_color(hd_process_t *process, int64_t choice);

#endif
