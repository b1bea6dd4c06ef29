// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What LLVM needs once, and the frame around each piece of work with it.
#include "CodeGen/Llvm.h"

#include <llvm-c/Core.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
// Kept for the process's life.
static char *host_triple, *host_cpu, *host_features, *host_all;

static void init(void) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();
  host_triple = LLVMGetDefaultTargetTriple();
  host_cpu = LLVMGetHostCPUName();
  host_features = LLVMGetHostCPUFeatures();
  if (asprintf(&host_all, "%s %s %s", host_triple, host_cpu, host_features) < 0)
    host_all = NULL;
}

static pthread_once_t version_once = PTHREAD_ONCE_INIT;
static char version[40];

static void init_version(void) {
  unsigned major, minor, patch;
  LLVMGetVersion(&major, &minor, &patch);
  snprintf(version, sizeof(version), "LLVM %u.%u.%u", major, minor, patch);
}

const char *hd_codegen_version(void) {
  pthread_once(&version_once, init_version);
  return version;
}

void hd_codegen_on_fatal(void (*report)(const char *reason)) {
  LLVMResetFatalErrorHandler(); // LLVM takes one at a time.
  if (report)
    LLVMInstallFatalErrorHandler(report);
}

// Memory: `operator new` asks a handler of the C++ library, LLVM's own malloc
// one of LLVM. Neither has an interface in C, so they go by their symbols.
typedef void (*new_handler_t)(void);
new_handler_t
set_new_handler(new_handler_t handler) __asm__("_ZSt15set_new_handlerPFvvE");
void install_bad_alloc(void (*handler)(void *, const char *, bool),
                       void *data) __asm__("_ZN4llvm31install_bad_alloc_error_"
                                           "handlerEPFvPvPKcbES0_");
void remove_bad_alloc(void) __asm__(
    "_ZN4llvm30remove_bad_alloc_error_handlerEv");

static void (*on_no_memory)(void);

static void bad_alloc(void *data, const char *reason, bool wants_diagnostics) {
  (void)data, (void)reason, (void)wants_diagnostics;
  on_no_memory();
}

void hd_codegen_on_no_memory(void (*report)(void)) {
  on_no_memory = report;
  set_new_handler(report);
  remove_bad_alloc(); // LLVM takes one at a time.
  if (report)
    install_bad_alloc(bad_alloc, NULL);
}

void hd_llvm_init(void) { pthread_once(&once, init); }

const char *hd_codegen_host(void) {
  hd_llvm_init();
  return host_all;
}

const char *hd_host_triple(void) { return host_triple; }

const char *hd_host_cpu(void) { return host_cpu; }

const char *hd_host_features(void) { return host_features; }

bool hd_host_has_f16(void) { return strstr(host_features, "+f16c") != NULL; }

bool hd_llvm_failed(hd_emit_t *e, char *message) {
  if (!message)
    return false;
  LLVMDisposeMessage(e->message);
  e->message = message;
  hd_emit_error(e, e->kernel->loc, HD_E0504, message);
  return true;
}

bool hd_llvm_error(hd_emit_t *e, LLVMErrorRef error) {
  if (!error)
    return false;
  char *text = LLVMGetErrorMessage(error);
  char *message = LLVMCreateMessage(text);
  LLVMDisposeErrorMessage(text);
  return hd_llvm_failed(e, message);
}

bool hd_llvm_run_passes(hd_emit_t *e, const char *passes) {
  hd_times_t *times = &e->module->context->times;
  size_t part = hd_times_enter(times, "LLVM's passes");
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef error = LLVMRunPasses(e->llvm, passes, e->machine.llvm, options);
  LLVMDisposePassBuilderOptions(options);
  hd_times_leave(times, part);
  return !hd_llvm_error(e, error);
}

LLVMMemoryBufferRef hd_llvm_generate(hd_emit_t *e, LLVMCodeGenFileType type) {
  char *message = NULL;
  hd_times_t *times = &e->module->context->times;
  size_t part = hd_times_enter(times, e->host ? "LLVM's code" : "LLVM's PTX");
  bool failed = LLVMTargetMachineEmitToMemoryBuffer(e->machine.llvm, e->llvm,
                                                    type, &message, &e->output);
  hd_times_leave(times, part);
  if (!failed)
    return e->output;
  e->output = NULL;
  hd_llvm_failed(e, message);
  return NULL;
}

typedef struct job {
  hd_emit_t *e;
  bool (*body)(hd_emit_t *e, void *argument);
  void *argument;
  bool ok;
} job_t;

static void run_job(void *argument) {
  job_t *job = argument;
  job->ok = hd_emit_kernel(job->e) && job->body(job->e, job->argument);
}

bool hd_emit_run(hd_module_t *module, const hd_func_t *kernel,
                 const hd_codegen_options_t *options,
                 bool (*body)(hd_emit_t *e, void *argument), void *argument) {
  hd_emit_t e;
  hd_times_t *times = &module->context->times;
  size_t part = hd_times_enter(times, "emit");
  hd_emit_init(&e, module, kernel, options);
  job_t job = {&e, body, argument, false};
  hd_budget_t *budget = &module->context->budget;
  hd_exhausted_t exhausted = hd_budget_guard(budget, run_job, &job);
  if (exhausted == HD_EXHAUSTED_NOTHING && e.retry) {
    hd_emit_fini(&e);
    hd_emit_init(&e, module, kernel, options);
    e.in_memory = true;
    exhausted = hd_budget_guard(budget, run_job, &job);
  }
  hd_emit_fini(&e);
  hd_times_leave(times, part);
  if (exhausted != HD_EXHAUSTED_NOTHING)
    hd_budget_exhausted(budget, exhausted);
  return job.ok;
}
