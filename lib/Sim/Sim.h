// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The simulator: runs a kernel's host code (CodeGen/SimAbi.h) on the CPU as a
// GPU would, and under sanitize says where it is wrong.
#ifndef HIDET_SIM_SIM_H
#define HIDET_SIM_SIM_H

#include "Support/Budget.h"
#include "Support/Diagnostic.h"
#include "Support/ThreadPool.h"

#include <stddef.h>
#include <stdint.h>

// When an asynchronous copy takes effect: where it is waited for, or at once.
typedef enum hd_sim_async {
  HD_SIM_ASYNC_LATEST,
  HD_SIM_ASYNC_EARLIEST,
} hd_sim_async_t;

// What launches that may still run do to memory (a set).
enum { HD_SIM_BEFORE_READ = 1, HD_SIM_BEFORE_WRITTEN = 2 };

// Global memory that the kernel may touch; looked at under sanitize alone.
typedef struct hd_sim_buffer {
  const char *name; // The parameter's.
  void *data;
  size_t size;            // In bytes.
  uint32_t element_bytes; // Of the tensor's element; 1 where it is smaller.
  bool read_only;         // An `in` parameter: nobody writes it.
  // One bit for each byte: written. NULL: all are. The caller's; launches set
  // bits, so that it tells of a workspace from launch to launch.
  uint8_t *written;
  unsigned before; // HD_SIM_BEFORE_..., where the launch is programmatic.
} hd_sim_buffer_t;

typedef struct hd_sim_options {
  bool sanitize; // The code was made for it (hd_codegen_options_t).
  uint64_t seed; // Order of threads; 0: as they are numbered.
  hd_sim_async_t async;
  hd_thread_pool_t
      *pool;           // NULL, and under sanitize: the caller's thread alone.
  hd_budget_t *budget; // Deadline and interruption; may be NULL.
} hd_sim_options_t;

typedef struct hd_sim_kernel {
  const char *name;
  void *entry;    // Of hd_host_code_t.
  bool coroutine; // Its form.
  // args[i] points at the value of parameter i (a pointer for tensors).
  void *const *args;
  int32_t grid[3], block[3], cluster[3];
  size_t shared_bytes; // A block's.
  // It may begin before the launches before have ended. It runs after them all
  // the same; under sanitize what it does before griddepcontrol_wait is looked
  // at.
  bool programmatic;
  const hd_sim_buffer_t *buffers;
  uint32_t num_buffers;
} hd_sim_kernel_t;

// Accesses of a warp to shared memory from one place of the text. A pass is
// what the banks serve in one cycle; more passes than the least are conflicts.
typedef struct hd_sim_bank_site {
  hd_loc_t loc;
  const char *tensor;
  uint64_t accesses, passes, least;
} hd_sim_bank_site_t;

enum { HD_SIM_BANK_SITES = 64 };

typedef struct hd_sim_stats {
  uint64_t blocks, threads;
  unsigned findings; // Of the sanitizer, those left out included.
  // Under sanitize: the sites with conflicts, the worst first.
  uint32_t num_bank_sites;
  hd_sim_bank_site_t bank_sites[HD_SIM_BANK_SITES];
} hd_sim_stats_t;

// Runs the kernel to its end. False after errors, which are reported: findings
// (E07xx), an illegal access (E0607), an impossible launch (E0606), memory
// (E0904). Where the budget's deadline passes or the work is interrupted it
// stops and unwinds through hd_budget_check(). stats may be NULL. Several
// launches may run at once from different threads with different pools.
bool hd_sim_launch(const hd_sim_kernel_t *kernel,
                   const hd_sim_options_t *options, hd_diagnostics_t *diags,
                   hd_sim_stats_t *stats);

// For a handler of SIGSEGV and SIGBUS: where the fault is that of a kernel
// which this thread runs, ends that kernel and does not return (E0607). Where
// no handler calls it, such a fault ends the process. Safe in a signal handler.
void hd_sim_handle_fault(void);

// The function of that name that host code may call: those of the table of
// intrinsics, of CodeGen/SimAbi.h, and conversions. NULL: none.
void *hd_sim_symbol(const char *name);

#endif
