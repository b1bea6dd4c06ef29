// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What LLVM needs once, and the frame around each piece of work with it.
#include "CodeGen/Emit.h"

#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <pthread.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char *host_cpu, *host_features; // Kept for the process's life.

static void init(void) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();
  // Addresses of shared memory take 32 bits instead of 64.
  const char *options[] = {"hidet", "-nvptx-short-ptr"};
  LLVMParseCommandLineOptions(2, options, NULL);
  host_cpu = LLVMGetHostCPUName();
  host_features = LLVMGetHostCPUFeatures();
}

void hd_llvm_init(void) { pthread_once(&once, init); }

const char *hd_host_cpu(void) { return host_cpu; }

const char *hd_host_features(void) { return host_features; }

bool hd_host_has_f16(void) { return strstr(host_features, "+f16c") != NULL; }

typedef struct job {
  hd_emit_t *e;
  bool (*body)(hd_emit_t *e, void *argument);
  void *argument;
  bool ok;
} job_t;

static void run(void *argument) {
  job_t *job = argument;
  job->ok = hd_emit_kernel(job->e) && job->body(job->e, job->argument);
}

bool hd_emit_run(hd_module_t *module, const hd_func_t *kernel,
                 const hd_codegen_options_t *options,
                 bool (*body)(hd_emit_t *e, void *argument), void *argument) {
  hd_emit_t e;
  hd_emit_init(&e, module, kernel, options);
  job_t job = {&e, body, argument, false};
  hd_budget_t *budget = &module->context->budget;
  hd_exhausted_t exhausted = hd_budget_guard(budget, run, &job);
  if (exhausted == HD_EXHAUSTED_NOTHING && e.retry) {
    hd_emit_fini(&e);
    hd_emit_init(&e, module, kernel, options);
    e.in_memory = true;
    exhausted = hd_budget_guard(budget, run, &job);
  }
  hd_emit_fini(&e);
  if (exhausted != HD_EXHAUSTED_NOTHING)
    hd_budget_exhausted(budget, exhausted);
  return job.ok;
}
