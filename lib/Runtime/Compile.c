// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Runtime/Compile.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

// How far all of them are, and who is told.
typedef struct progress {
  const hd_context_t *context;
  pthread_mutex_t lock;
  unsigned done, count;
} progress_t;

typedef struct job {
  hd_context_t context;
  hd_module_t module;
  hd_compile_fn_t compile;
  void *argument;
  hd_trace_t *trace; // NULL: none is kept.
  progress_t *progress;
  unsigned piece;
  hd_exhausted_t exhausted;
  bool ok;
} job_t;

static void init_job(job_t *job, const hd_budget_t *budget, unsigned share) {
  hd_context_init(&job->context);
  hd_budget_t *own = &job->context.budget;
  own->deadline_ns = budget->deadline_ns;
  own->interrupted = budget->interrupted;
  if (budget->bytes_limit)
    own->bytes_limit = budget->bytes_used < budget->bytes_limit
                           ? (budget->bytes_limit - budget->bytes_used) / share
                           : 0;
  // 0 would be no limit.
  if (budget->bytes_limit && !own->bytes_limit)
    own->bytes_limit = 1;
  job->module.context = &job->context;
  hd_arena_init(&job->module.arena, own);
}

static void run_job(void *argument) {
  job_t *job = argument;
  job->ok = job->compile(job->argument, job->piece, &job->module);
}

static void report_progress(progress_t *p) {
  if (!p->context->progress)
    return;
  pthread_mutex_lock(&p->lock);
  p->context->progress(p->context->progress_argument, ++p->done, p->count);
  pthread_mutex_unlock(&p->lock);
}

static void run_piece(void *argument, unsigned piece, unsigned worker) {
  job_t *job = &((job_t *)argument)[piece];
  hd_times_t *times = &job->context.times;
  uint64_t start = hd_clock_ns();
  hd_times_begin(times, "code", start);
  times->trace = job->trace;
  times->lane = worker;
  job->exhausted = hd_budget_guard(&job->context.budget, run_job, job);
  hd_arena_fini(&job->module.arena);
  hd_times_total(times);
  hd_trace_add(job->trace, worker, "kernel", times->label, start,
               hd_clock_ns());
  report_progress(job->progress);
}

// What the threads' parts took, as parts of the time that passed.
static void share_times(hd_context_t *context, const job_t *jobs,
                        unsigned count, unsigned threads, uint64_t ns) {
  const hd_times_t **times = calloc(count + 1, sizeof(hd_times_t *));
  for (unsigned i = 0; times && i < count; i++)
    times[i] = &jobs[i].context.times;
  if (times)
    hd_times_share(&context->times, ns, threads, times, count);
  free(times);
}

// The first error of a job, if it has one.
static void keep_failure(const job_t *job, hd_failure_t *failure) {
  const hd_diagnostic_t *d = job->context.diags.first;
  *failure = (hd_failure_t){.code = HD_DIAGNOSTIC_COUNT};
  while (d && d->severity != HD_ERROR)
    d = d->next;
  if (job->ok || !d)
    return;
  failure->code = d->code;
  snprintf(failure->why, sizeof failure->why, "%s", d->message);
}

// Up to the first failure, in the order of the kernels.
static bool conclude(hd_context_t *context, job_t *jobs, unsigned count,
                     hd_exhausted_t *exhausted, hd_failure_t *failures) {
  bool ok = true;
  for (unsigned i = 0; i < count; i++) {
    if (failures)
      keep_failure(&jobs[i], &failures[i]);
    if (ok) {
      hd_diagnostics_take(&context->diags, &jobs[i].context.diags);
      *exhausted = jobs[i].exhausted;
      ok = jobs[i].ok && *exhausted == HD_EXHAUSTED_NOTHING;
    }
    hd_context_fini(&jobs[i].context);
  }
  return ok;
}

bool hd_compile_all(hd_context_t *context, hd_thread_pool_t *pool,
                    unsigned count, hd_compile_fn_t compile, void *argument,
                    hd_failure_t *failures) {
  job_t *jobs = calloc(count ? count : 1, sizeof(*jobs));
  if (!jobs)
    return hd_error(&context->diags, (hd_loc_t){0}, HD_E0904, "out of memory");
  unsigned share = hd_thread_pool_size(pool);
  progress_t progress = {.context = context, .count = count};
  pthread_mutex_init(&progress.lock, NULL);
  for (unsigned i = 0; i < count; i++) {
    jobs[i].compile = compile;
    jobs[i].argument = argument;
    jobs[i].piece = i;
    jobs[i].trace = context->times.trace;
    jobs[i].progress = &progress;
    init_job(&jobs[i], &context->budget, share < count ? share : count);
  }
  uint64_t start = hd_clock_ns();
  size_t part = hd_times_enter(&context->times, "code");
  hd_thread_pool_run(pool, count, run_piece, jobs);
  pthread_mutex_destroy(&progress.lock);
  share_times(context, jobs, count, share < count ? share : count,
              hd_clock_ns() - start);
  hd_times_leave(&context->times, part);
  hd_exhausted_t exhausted = HD_EXHAUSTED_NOTHING;
  bool ok = conclude(context, jobs, count, &exhausted, failures);
  free(jobs);
  if (exhausted != HD_EXHAUSTED_NOTHING)
    hd_budget_exhausted(&context->budget, exhausted);
  return ok;
}
