// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A host program may use the same LLVM as this library: what it finds there is
// as it was, and what it sets for itself changes no kernel of ours.
#include "CodeGenTest.h"

#include <llvm-c/Core.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

static const char text[] =
    "kernel reverse(in a: f32[64], out c: f32[64]) grid(1) block(64) {\n"
    "  shared s: f32[64]\n"
    "  s[thread] = a[thread]\n"
    "  barrier()\n"
    "  c[thread] = s[63 - thread]\n"
    "}\n";

// The layout of the host's own modules for NVPTX; for LLVMDisposeMessage().
static char *nvptx_layout(void) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMTargetRef target;
  const char *triple = "nvptx64-nvidia-cuda";
  assert_int_equal(LLVMGetTargetFromTriple(triple, &target, NULL), 0);
  LLVMTargetMachineRef machine = LLVMCreateTargetMachine(
      target, triple, "sm_90", "", LLVMCodeGenLevelDefault, LLVMRelocDefault,
      LLVMCodeModelDefault);
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
  char *result = LLVMCopyStringRepOfTargetData(layout);
  LLVMDisposeTargetData(layout);
  LLVMDisposeTargetMachine(machine);
  return result;
}

static void compile(void) {
  program_t p;
  program_init(&p, text);
  char *ptx = program_ptx(&p, "sm_90a");
  assert_non_null(ptx);
  assert_non_null(strstr(ptx, "st.shared"));
  assert_non_null(strstr(ptx, "ld.shared"));
  free(ptx);
  program_fini(&p);
}

static void nvptx_stays_as_it_was(void **state) {
  (void)state;
  char *before = nvptx_layout();
  assert_null(strstr(before, "p3:"));
  compile();
  char *after = nvptx_layout();
  assert_string_equal(after, before);
  LLVMDisposeMessage(before);
  LLVMDisposeMessage(after);
}

// An option may be given once: it is the host's to give.
static void options_are_the_host_programs(void **state) {
  (void)state;
  const char *options[] = {"host", "-nvptx-short-ptr"};
  LLVMParseCommandLineOptions(2, options, NULL);
  char *layout = nvptx_layout();
  assert_non_null(strstr(layout, "p3:32:32"));
  LLVMDisposeMessage(layout);
  compile();
}

HD_UNIT_TESTS(cmocka_unit_test(nvptx_stays_as_it_was),
              cmocka_unit_test(options_are_the_host_programs))
