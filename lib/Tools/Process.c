// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Signals are taken by one thread, the watchdog, with sigtimedwait: no handler
// runs in the middle of the work. It tells the work by the budget's flag, waits
// for a while, and then ends the process. Files have no name until they are
// complete (Support/File.c), so ending at any moment leaves none half-written.
#include "Tools/Process.h"
#include "Sim/Sim.h"
#include "Support/HostMemory.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// GRACE_MS: what work needs that looks at its budget: it looks every few
// milliseconds, and the simulator is told within ten. Whoever looks less often
// (LLVM, a driver, a kernel's loops) would not look in a second, either.
// FINISH_MS: what is left to do after the work, to write a report and to free.
enum { GRACE_MS = 100, FINISH_MS = 1000, POLL_MS = 5 };

static void on_fault(int signal_number);

// What a tool does with signals. EFBIG and EPIPE are reported.
static const struct {
  int number;
  void (*handler)(int);
} handled[] = {{SIGSEGV, on_fault},
               {SIGBUS, on_fault},
               {SIGPIPE, SIG_IGN},
               {SIGXFSZ, SIG_IGN}};
enum { NUM_HANDLED = sizeof handled / sizeof *handled };
static struct sigaction before[NUM_HANDLED];

static void handle_signals(void) {
  for (size_t i = 0; i < NUM_HANDLED; i++) {
    struct sigaction action = {.sa_handler = handled[i].handler};
    sigaction(handled[i].number, &action, &before[i]);
  }
}

static void restore_signal(int number) {
  for (size_t i = 0; i < NUM_HANDLED; i++)
    if (handled[i].number == number)
      sigaction(number, &before[i], NULL);
}

// A fault that is not a kernel's happens again under what was there before.
static void on_fault(int signal_number) {
  hd_sim_handle_fault();
  restore_signal(signal_number);
}

static void fill_signals(sigset_t *set) {
  sigemptyset(set);
  sigaddset(set, SIGINT);
  sigaddset(set, SIGTERM);
  sigaddset(set, SIGUSR2); // From hd_process_end().
}

static bool is_over(const hd_process_t *process, uint64_t since_ns) {
  uint64_t ms = atomic_load(&process->worked) ? FINISH_MS : GRACE_MS;
  return since_ns && hd_clock_ns() > since_ns + ms * 1000000u;
}

// Whether more is held than the limit and what is allowed beside it, since the
// process began.
static bool holds_too_much(const hd_process_t *process) {
  size_t limit = process->context.budget.bytes_limit;
  size_t most = process->held_at_start + HD_PROCESS_BESIDE;
  if (!limit || !process->held_at_start || limit > SIZE_MAX - most)
    return false;
  return hd_host_memory_held() > limit + most;
}

// Ends the process where the work has not ended in time.
static void *watch(void *argument) {
  hd_process_t *process = argument;
  const hd_budget_t *budget = &process->context.budget;
  sigset_t set;
  fill_signals(&set);
  uint64_t interrupted_ns = 0;
  while (!atomic_load(&process->ended)) {
    struct timespec wait = {.tv_nsec = POLL_MS * 1000000L};
    bool polls = budget->deadline_ns || budget->bytes_limit || interrupted_ns;
    int signal_number = sigtimedwait(&set, NULL, polls ? &wait : NULL);
    if (atomic_load(&process->ended))
      break;
    if (signal_number == SIGINT || signal_number == SIGTERM) {
      // The second Ctrl-C does not wait.
      interrupted_ns = interrupted_ns ? 1 : hd_clock_ns();
      atomic_store(&process->interrupted, true);
    }
    if (is_over(process, interrupted_ns))
      hd_ending_run(&process->ending, HD_EXHAUSTED_INTERRUPT);
    if (is_over(process, budget->deadline_ns))
      hd_ending_run(&process->ending, HD_EXHAUSTED_TIME);
    if (holds_too_much(process))
      hd_ending_run(&process->ending, HD_EXHAUSTED_MEMORY);
  }
  return NULL;
}

// Numbers 0 to 2 that are closed are taken, or the next file to be opened would
// be standard output. Nothing can be written to what takes them.
static void hold_standard_files(void) {
  for (int fd = 0; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
      return;
}

void hd_process_begin(hd_process_t *process, const char *name) {
  *process = (hd_process_t){.name = name};
  process->start_ns = hd_clock_ns();
  hd_context_init(&process->context);
  hd_times_begin(&process->context.times, "the rest", process->start_ns);
  process->context.budget.interrupted = &process->interrupted;
  process->color = isatty(STDERR_FILENO) && !getenv("NO_COLOR");
  handle_signals();
  hd_ending_init(&process->ending, name, &process->context.budget);
  hold_standard_files();
  sigset_t set;
  fill_signals(&set);
  pthread_sigmask(SIG_BLOCK, &set, &process->old_signals);
}

void hd_process_limit(hd_process_t *process, int64_t bytes,
                      int64_t milliseconds) {
  hd_budget_t *budget = &process->context.budget;
  budget->bytes_limit = (size_t)bytes;
  process->ending.time_limit_ms = milliseconds;
  process->held_at_start = bytes ? hd_host_memory_held() : 0;
  if (milliseconds)
    budget->deadline_ns = process->start_ns + (uint64_t)milliseconds * 1000000u;
}

void hd_process_json(hd_process_t *process, const char *path) {
  process->ending.json = path;
}

void hd_process_run(hd_process_t *process, void (*body)(void *),
                    void *argument) {
  hd_budget_t *budget = &process->context.budget;
  process->watched =
      pthread_create(&process->watchdog, NULL, watch, process) == 0;
  if (!process->watched) // Then signals do what they do by themselves.
    pthread_sigmask(SIG_SETMASK, &process->old_signals, NULL);
  hd_exhausted_t why = hd_budget_guard(budget, body, argument);
  atomic_store(&process->worked, true);
  if (why == HD_EXHAUSTED_MEMORY)
    hd_ending_release(&process->ending);
  hd_error_exhausted(&process->context.diags, budget, why,
                     process->ending.time_limit_ms);
}

// An interrupt or a limit outweighs what else was found until then.
static hd_exit_t exit_class(const hd_diagnostics_t *diags) {
  hd_exit_t result = diags->num_errors ? diags->exit_class : HD_EXIT_OK;
  for (const hd_diagnostic_t *d = diags->first; d; d = d->next) {
    if (d->severity != HD_ERROR)
      continue;
    hd_exit_t this = hd_diagnostic_exit(d->code);
    if (this == HD_EXIT_INTERRUPTED)
      return this;
    if (this == HD_EXIT_RESOURCE && result != HD_EXIT_INTERNAL)
      result = this;
  }
  return result;
}

hd_exit_t hd_process_exit(const hd_process_t *process) {
  return exit_class(&process->context.diags);
}

static void print_diagnostics(const hd_process_t *process) {
  hd_buffer_t text = {0};
  const hd_diagnostics_t *diags = &process->context.diags;
  bool shown = true;
  for (const hd_diagnostic_t *d = diags->first; d; d = d->next) {
    if (d->severity != HD_NOTE) // A note goes with what it is on.
      shown = d->severity == HD_ERROR || !process->quiet;
    if (!shown)
      continue;
    if (!d->loc.source && d->severity != HD_NOTE)
      hd_buffer_printf(&text, "%s: ", process->name);
    hd_diagnostic_print(diags, d, process->color, &text);
  }
  fwrite(hd_buffer_text(&text), 1, text.size, stderr);
  hd_buffer_fini(&text);
}

int hd_process_end(hd_process_t *process) {
  fflush(stdout);
  hd_exit_t code = hd_process_exit(process);
  print_diagnostics(process);
  atomic_store(&process->ended, true);
  if (process->watched) {
    pthread_kill(process->watchdog, SIGUSR2);
    pthread_join(process->watchdog, NULL);
  }
  hd_context_fini(&process->context);
  pthread_sigmask(SIG_SETMASK, &process->old_signals, NULL);
  for (size_t i = 0; i < NUM_HANDLED; i++)
    restore_signal(handled[i].number);
  hd_ending_fini(&process->ending);
  return code;
}

void hd_process_color(hd_process_t *process, int64_t choice) {
  if (choice)
    process->color = choice == 1;
}
