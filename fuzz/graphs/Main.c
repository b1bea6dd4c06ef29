// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// graph_fuzz: random graphs, run and compared. Each index is a graph, whatever
// the number of processes; what dies takes one process with it, and is named.
#include "Session.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
    "usage: graph_fuzz [option]...\n"
    "  --seed=S       of all graphs (1)\n"
    "  --first=N      the first graph's number (0)\n"
    "  --count=N      so many graphs (1000)\n"
    "  --time=S       or as many as come in so many seconds\n"
    "  --nodes=N      about so many nodes in each (20)\n"
    "  --jobs=N       processes (1)\n"
    "  --least=N      fail where a task was taken less often\n"
    "  --keep=FOLDER  write what fails, and the least of it that fails\n"
    "  --limit=S      seconds for a graph (60)\n"
    "  --sanitize     check all graphs, not one in eight\n"
    "  --slow         compile all graphs as hidet-run does, not one in eight\n"
    "  --unfused, --unrewritten\n"
    "  --plant        run with a fault each, on `ref`: what is noticed?\n"
    "  --print        show the graphs, run nothing\n"
    "  --tasks        how often each task was taken\n";

enum { GRAPHS_A_PROCESS = 400 };

// --- One graph ---

typedef struct job {
  fuzz_session_t *f;
  hd_context_t context;
  fuzz_graph_t g;
  int64_t index;
} job_t;

static void make_body(void *argument) {
  job_t *job = argument;
  fuzz_make(&job->g, &job->context, job->f->options.seed, (uint64_t)job->index,
            job->f->options.nodes);
}

static void begin_job(job_t *job, fuzz_session_t *f, int64_t index) {
  *job = (job_t){.f = f, .index = index};
  hd_context_init(&job->context);
  // Where memory runs out here, the process ends: that is no graph's fault.
  hd_budget_guard(&job->context.budget, make_body, job);
}

static void end_job(job_t *job) {
  fuzz_end(&job->g);
  hd_context_fini(&job->context);
}

static void count_nodes(job_t *job) {
  fuzz_board_t *board = job->f->board;
  for (size_t i = 0; i < job->g.nodes.size; i++) {
    const fuzz_node_t *node = job->g.nodes.data[i];
    board->taken[node->task]++;
    for (uint32_t k = node->node.num_outputs; k-- > 0;)
      if (node->outputs[k])
        board->types[node->task] |= 1u << node->outputs[k]->data->type;
  }
  board->nodes += (int64_t)job->g.nodes.size;
}

static void print_graph(job_t *job) {
  hd_buffer_t text = {0};
  hd_graph_print(fuzz_ir(&job->g), &text);
  fputs(hd_buffer_text(&text), stdout);
  hd_buffer_fini(&text);
}

static void keep(job_t *job, const char *what) {
  const char *folder = job->f->options.keep;
  char name[64];
  snprintf(name, sizeof name, "%llu-%lld%s",
           (unsigned long long)job->f->options.seed, (long long)job->index,
           what);
  if (folder && !fuzz_keep(&job->g, folder, name))
    fprintf(stderr, "graph_fuzz: cannot write to %s\n", folder);
}

static const char *const verdicts[FUZZ_VERDICTS] = {
    [FUZZ_DIFFERENT] = "different",
    [FUZZ_FAILED] = "failed",
    [FUZZ_UNSETTLED] = "unsettled",
};

static void tell(job_t *job, const char *verdict, const char *text) {
  const fuzz_options_t *o = &job->f->options;
  fprintf(stderr,
          "\n%s: graph_fuzz --seed=%llu --first=%lld --count=1 --nodes=%u\n%s"
          "%s",
          verdict, (unsigned long long)o->seed, (long long)job->index, o->nodes,
          text, *text && text[strlen(text) - 1] != '\n' ? "\n" : "");
}

static void reduce(job_t *job, fuzz_verdict_t verdict, bool died) {
  hd_buffer_t text = {0};
  keep(job, "");
  fuzz_reduce(&job->g, &job->f->options, (uint64_t)job->index, verdict, died);
  keep(job, "-small");
  hd_graph_print(fuzz_ir(&job->g), &text);
  fprintf(stderr, "%s\n", hd_buffer_text(&text));
  hd_buffer_fini(&text);
}

static void check(job_t *job) {
  const fuzz_options_t *options = &job->f->options;
  fuzz_board_t *board = job->f->board;
  fuzz_report_t report;
  fuzz_fault_t fault = FUZZ_FAULTS;
  if (options->plant && !fuzz_plant(&job->g, &fault))
    return;
  fuzz_check(&job->g, options, (uint64_t)job->index, &report);
  board->verdicts[report.verdict]++;
  board->launches += report.launches;
  for (size_t i = 0; i < fuzz_num_rules; i++)
    board->rewrites[i] += report.rewrites[i];
  if (options->plant) {
    board->noticed[fault] += report.verdict == FUZZ_DIFFERENT;
    board->missed[fault] +=
        report.verdict == FUZZ_SAME || report.verdict == FUZZ_UNSETTLED;
    return;
  }
  if (verdicts[report.verdict])
    tell(job, verdicts[report.verdict], report.text);
  if (report.verdict == FUZZ_DIFFERENT || report.verdict == FUZZ_FAILED)
    reduce(job, report.verdict, false);
}

static void run_one(fuzz_session_t *f, int64_t index) {
  job_t job;
  begin_job(&job, f, index);
  count_nodes(&job);
  if (f->print) {
    print_graph(&job);
  } else if (job.g.nodes.size > 0) {
    check(&job);
  }
  end_job(&job);
}

// --- Processes ---

static bool is_over(const fuzz_session_t *f) {
  return f->time && fuzz_seconds_since(f->start) > (double)f->time;
}

static _Noreturn void work(fuzz_session_t *f, int worker) {
  fuzz_board_t *board = f->board;
  for (int done = 0; done < GRAPHS_A_PROCESS && !is_over(f); done++) {
    int64_t index = board->next++;
    if (index >= f->first + f->count)
      break;
    board->current[worker] = index;
    alarm(3 * f->options.seconds);
    run_one(f, index);
    board->current[worker] = -1;
  }
  fflush(NULL);
  _exit(0);
}

// Of a graph that ended its process.
static void look_into(fuzz_session_t *f, int64_t index, int status) {
  char text[64];
  f->board->died++;
  snprintf(text, sizeof text,
           WIFSIGNALED(status) ? "signal %d" : "it ends the process: exit %d",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  job_t job = {.f = f, .index = index};
  tell(&job, "died", text);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    begin_job(&job, f, index);
    reduce(&job, FUZZ_FAILED, true);
    fflush(NULL);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static bool has_more(const fuzz_session_t *f) {
  return f->board->next < f->first + f->count && !is_over(f);
}

static pid_t start(fuzz_session_t *f, int worker) {
  f->board->current[worker] = -1;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0)
    work(f, worker);
  if (child < 0) {
    perror("graph_fuzz: fork");
    exit(2);
  }
  return child;
}

static void run_all(fuzz_session_t *f) {
  pid_t workers[FUZZ_MAX_JOBS] = {0};
  int running = 0;
  for (int i = 0; i < (int)f->jobs; i++, running++)
    workers[i] = start(f, i);
  while (running > 0) {
    int status;
    pid_t child = wait(&status);
    if (child < 0 && errno == EINTR)
      continue;
    int i = 0;
    while (i < (int)f->jobs && workers[i] != child)
      i++;
    if (i == (int)f->jobs)
      continue;
    if (status != 0 && f->board->current[i] >= 0)
      look_into(f, f->board->current[i], status);
    if (has_more(f))
      workers[i] = start(f, i);
    else
      running--;
  }
}

// --- Options ---

enum {
  SEED,
  FIRST,
  COUNT,
  TIME,
  NODES,
  JOBS,
  LEAST,
  KEEP,
  LIMIT,
  SANITIZE,
  SLOW,
  UNFUSED,
  UNREWRITTEN,
  PLANT,
  PRINT,
  TASKS
};

static const struct option long_options[] = {
    {"seed", required_argument, NULL, SEED},
    {"first", required_argument, NULL, FIRST},
    {"count", required_argument, NULL, COUNT},
    {"time", required_argument, NULL, TIME},
    {"nodes", required_argument, NULL, NODES},
    {"jobs", required_argument, NULL, JOBS},
    {"least", required_argument, NULL, LEAST},
    {"keep", required_argument, NULL, KEEP},
    {"limit", required_argument, NULL, LIMIT},
    {"sanitize", no_argument, NULL, SANITIZE},
    {"slow", no_argument, NULL, SLOW},
    {"unfused", no_argument, NULL, UNFUSED},
    {"unrewritten", no_argument, NULL, UNREWRITTEN},
    {"plant", no_argument, NULL, PLANT},
    {"print", no_argument, NULL, PRINT},
    {"tasks", no_argument, NULL, TASKS},
    {0}};

static int64_t number(const char *text, int64_t least, int64_t most) {
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 0);
  if (errno || end == text || *end || value < least || value > most) {
    fprintf(stderr, "graph_fuzz: '%s' is no number from %lld to %lld\n", text,
            (long long)least, (long long)most);
    exit(2);
  }
  return value;
}

static void take_option(fuzz_session_t *f, int option) {
  fuzz_options_t *o = &f->options;
  switch (option) {
  case SEED:
    o->seed = (uint64_t)number(optarg, 0, INT64_MAX);
    break;
  case FIRST:
    f->first = number(optarg, 0, INT64_MAX / 2);
    break;
  case COUNT:
    f->count = number(optarg, 0, INT64_MAX / 2);
    break;
  case TIME:
    f->time = number(optarg, 1, 1000000);
    break;
  case NODES:
    o->nodes = (unsigned)number(optarg, 1, 1000);
    break;
  case JOBS:
    f->jobs = number(optarg, 1, FUZZ_MAX_JOBS);
    break;
  case LEAST:
    f->least = number(optarg, 0, INT64_MAX);
    break;
  case KEEP:
    o->keep = optarg;
    break;
  case LIMIT:
    o->seconds = (unsigned)number(optarg, 1, 10000);
    break;
  case SANITIZE:
    o->sanitize = true;
    break;
  case SLOW:
    o->slow = true;
    break;
  case UNFUSED:
    o->unfused = true;
    break;
  case UNREWRITTEN:
    o->unrewritten = true;
    break;
  case PLANT:
    o->plant = true;
    break;
  case PRINT:
    f->print = true;
    break;
  case TASKS:
    f->tasks = true;
    break;
  default:
    fputs(usage, stderr);
    exit(2);
  }
}

static void begin(fuzz_session_t *f) {
  hd_context_t context;
  hd_context_init(&context);
  fuzz_tasks_init();
  fuzz_rules_init(&context);
  hd_context_fini(&context);
  f->board = mmap(NULL, sizeof *f->board, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (f->board == MAP_FAILED) {
    perror("graph_fuzz: mmap");
    exit(2);
  }
  f->board->next = f->first;
  f->start = hd_clock_ns();
}

int main(int argc, char **argv) {
  fuzz_session_t f = {.options = {.seed = 1, .nodes = 20, .seconds = 60},
                      .count = 1000,
                      .jobs = 1};
  int option;
  while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
    take_option(&f, option);
  if (optind < argc) {
    fputs(usage, stderr);
    return 2;
  }
  begin(&f);
  run_all(&f);
  return f.options.plant ? fuzz_conclude_planted(&f) : fuzz_conclude(&f);
}
