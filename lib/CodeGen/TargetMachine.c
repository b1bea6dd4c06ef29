// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's target machines. To make one (its tables of types and operations)
// takes a tenth of the time of a small kernel, and nothing of a kernel stays in
// it but names; so those that no kernel uses are kept, for whichever thread
// asks next. A machine serves one kernel at a time.
#include "CodeGen/Llvm.h"

#include <pthread.h>
#include <string.h>

// Names of parameters stay with a machine that they were made up on, so it ends
// after so many kernels.
enum { MOST_KEPT = 16, MOST_KERNELS = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hd_target_machine_t kept[MOST_KEPT];
static unsigned num_kept;

static bool is_same(const hd_llvm_machine_t *a, const hd_llvm_machine_t *b) {
  return a->level == b->level && a->reloc == b->reloc && a->model == b->model &&
         !strcmp(a->cpu, b->cpu) && !strcmp(a->features, b->features) &&
         !strcmp(a->triple, b->triple);
}

static hd_target_machine_t take_kept(const hd_llvm_machine_t *of) {
  hd_target_machine_t machine = {.of = *of};
  pthread_mutex_lock(&lock);
  for (unsigned i = num_kept; i-- > 0 && !machine.llvm;) {
    if (!is_same(&kept[i].of, of))
      continue;
    machine = kept[i];
    kept[i] = kept[--num_kept];
  }
  pthread_mutex_unlock(&lock);
  return machine;
}

// False where it is not to be kept.
static bool keep_machine(const hd_target_machine_t *machine) {
  if (machine->kernels >= MOST_KERNELS)
    return false;
  pthread_mutex_lock(&lock);
  bool has_room = num_kept < MOST_KEPT;
  if (has_room)
    kept[num_kept++] = *machine;
  pthread_mutex_unlock(&lock);
  return has_room;
}

static bool make_machine(hd_emit_t *e, const hd_llvm_machine_t *of) {
  LLVMTargetRef target;
  char *message = NULL;
  if (LLVMGetTargetFromTriple(of->triple, &target, &message))
    return !hd_llvm_failed(e, message);
  e->machine.llvm =
      LLVMCreateTargetMachine(target, of->triple, of->cpu, of->features,
                              of->level, of->reloc, of->model);
  return true;
}

bool hd_llvm_machine(hd_emit_t *e, const hd_llvm_machine_t *of) {
  hd_llvm_machine_leave(e);
  e->machine = take_kept(of);
  if (!e->machine.llvm && !make_machine(e, of))
    return false;
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(e->machine.llvm);
  LLVMSetModuleDataLayout(e->llvm, layout);
  LLVMDisposeTargetData(layout);
  LLVMSetTarget(e->llvm, of->triple);
  return true;
}

void hd_llvm_machine_leave(hd_emit_t *e) {
  e->machine.kernels++;
  if (e->machine.llvm && !keep_machine(&e->machine))
    LLVMDisposeTargetMachine(e->machine.llvm);
  e->machine.llvm = NULL;
}
