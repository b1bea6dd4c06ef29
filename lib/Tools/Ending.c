// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tools/Ending.h"
#include "CodeGen/CodeGen.h"
#include "Tools/Json.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Enough for a diagnostic and its report, where the system gives no more.
enum { RESERVE = 1 << 20 };

// What handlers reach: they take no argument.
static hd_ending_t *current;
static struct sigaction before;
static atomic_flag is_ending = ATOMIC_FLAG_INIT;
// Set where hd_ending_run() itself runs out of memory; 0: it does not run.
static volatile sig_atomic_t ending_exit;

// By what a signal's handler may call alone.
static void say(const char *name, const char *text) {
  const char *const parts[] = {name, ": ", text, "\n"};
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
    if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0)
      return;
}

static void on_abort(int signal_number) {
  (void)signal_number;
  if (ending_exit)
    _exit(ending_exit); // It has said why, or had no memory for that, either.
  say("hidet", "error[E1005]: internal error: the compiler aborted; this is a "
               "fault of ours, please report it with the input");
  _exit(HD_EXIT_INTERNAL);
}

static void on_fatal(const char *reason) {
  char text[240];
  snprintf(text, sizeof(text), "error[E0504]: LLVM: %.200s", reason);
  say("hidet", text);
  _exit(HD_EXIT_INTERNAL);
}

// The limit was not passed, or the watchdog would have seen it: the system has
// no more.
static void on_no_memory(void) {
  hd_budget_t none = {0};
  current->budget = &none;
  hd_ending_run(current, HD_EXHAUSTED_MEMORY);
}

void hd_ending_init(hd_ending_t *ending, const char *name,
                    const hd_budget_t *budget) {
  *ending =
      (hd_ending_t){.name = name, .budget = budget, .reserve = malloc(RESERVE)};
  if (!ending->reserve) {
    say(name, "error[E0904]: out of memory");
    _exit(HD_EXIT_RESOURCE);
  }
  current = ending;
  struct sigaction action = {.sa_handler = on_abort};
  sigaction(SIGABRT, &action, &before);
  hd_codegen_on_fatal(on_fatal);
  hd_codegen_on_no_memory(on_no_memory);
}

void hd_ending_fini(hd_ending_t *ending) {
  hd_codegen_on_no_memory(NULL);
  hd_codegen_on_fatal(NULL);
  sigaction(SIGABRT, &before, NULL);
  hd_ending_release(ending);
  current = NULL;
}

void hd_ending_release(hd_ending_t *ending) {
  free(atomic_exchange(&ending->reserve, NULL));
}

_Noreturn void hd_ending_run(hd_ending_t *ending, hd_exhausted_t why) {
  while (atomic_flag_test_and_set(&is_ending))
    pause(); // Another thread is at it.
  ending_exit =
      why == HD_EXHAUSTED_INTERRUPT ? HD_EXIT_INTERRUPTED : HD_EXIT_RESOURCE;
  hd_ending_release(ending);
  hd_diagnostics_t diags;
  hd_diagnostics_init(&diags);
  hd_error_exhausted(&diags, ending->budget, why, ending->time_limit_ms);
  char text[240];
  snprintf(text, sizeof(text), "error[%s]: %.200s",
           hd_diagnostic_code_name(diags.first->code), diags.first->message);
  say(ending->name, text);
  if (ending->json)
    hd_json_write(&diags, ending->json,
                  hd_json_ended(&diags, diags.exit_class));
  _exit(ending_exit);
}
