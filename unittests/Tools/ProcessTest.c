// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a tool ends where LLVM or our own code gives up.
#include "Tools/Process.h"
#include "UnitTest.h"

#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void give_up(void) {
  LLVMDisposeTargetData(LLVMCreateTargetData("no layout"));
}

// `operator new`, as LLVM calls it.
void *new_object(size_t size) __asm__("_Znwm");

static void run_out_of_memory(void) { new_object(SIZE_MAX / 4); }

// The exit code of body in a process of a tool; what it wrote to standard
// error.
static int end_of(void (*body)(void), char *text, size_t size) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    hd_process_t process;
    dup2(ends[1], STDERR_FILENO);
    hd_process_begin(&process, "test");
    body();
    _exit(0);
  }
  close(ends[1]);
  size_t length = 0;
  for (ssize_t got;
       (got = read(ends[0], text + length, size - 1 - length)) > 0;)
    length += (size_t)got;
  text[length] = '\0';
  close(ends[0]);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void ends_where_llvm_gives_up(void **state) {
  (void)state;
  char text[4000];
  assert_int_equal(end_of(give_up, text, sizeof(text)), HD_EXIT_INTERNAL);
  assert_non_null(strstr(text, "error[E0504]: LLVM: "));
}

static void ends_where_we_give_up(void **state) {
  (void)state;
  char text[4000];
  assert_int_equal(end_of(abort, text, sizeof(text)), HD_EXIT_INTERNAL);
  assert_non_null(strstr(text, "error[E1005]"));
}

static void ends_where_memory_runs_out(void **state) {
  (void)state;
  char text[4000];
  assert_int_equal(end_of(run_out_of_memory, text, sizeof(text)),
                   HD_EXIT_RESOURCE);
  assert_string_equal(text, "test: error[E0904]: out of memory\n");
}

HD_UNIT_TESTS(cmocka_unit_test(ends_where_memory_runs_out),
              cmocka_unit_test(ends_where_llvm_gives_up),
              cmocka_unit_test(ends_where_we_give_up))
