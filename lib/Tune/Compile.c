// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A candidate is a job, from its text to its code, with a context of its own.
#include "Runtime/Compile.h"
#include "Tune/Candidate.h"
#include "Tune/TunerState.h"

#include <stdio.h>
#include <string.h>

typedef struct job {
  hd_tune_work_t *work;
  size_t candidate;
  const char *text;
  bool ok;
  char why[300];
} job_t;

typedef struct jobs {
  hd_tuner_t *tuner;
  HD_VEC(job_t) list;
} jobs_t;

static void end_program(void *program) { hd_tune_program_fini(program); }

static bool make_kernels(hd_device_t *device, hd_module_t *module,
                         const hd_program_t *program) {
  bool ok = true;
  for (size_t i = 0; ok && i < program->variants.size; i++) {
    hd_buffer_t code = {0};
    hd_cleanup_t cleanup;
    hd_budget_t *budget = &module->context->budget;
    hd_budget_defer(budget, &cleanup, hd_buffer_end, &code);
    ok = device->ops->make(device, module, program->variants.data[i].func,
                           &code);
    hd_budget_clean(budget, &cleanup);
  }
  return ok;
}

// True whatever becomes of it: the others go on.
static bool compile(void *argument, unsigned piece, hd_module_t *module) {
  jobs_t *jobs = argument;
  job_t *job = &jobs->list.data[piece];
  hd_context_t *context = module->context;
  hd_device_t *device = jobs->tuner->device;
  // What making a program asks of a device, with the job's context.
  hd_device_t description = {
      .ops = device->ops, .context = context, .info = device->info};
  hd_tune_program_t p = {0};
  hd_cleanup_t cleanup;
  hd_budget_defer(&context->budget, &cleanup, end_program, &p);
  job->ok =
      hd_tune_program_init(&p, &description, job->text, strlen(job->text)) &&
      make_kernels(device, module, &p.program);
  hd_budget_clean(&context->budget, &cleanup);
  hd_buffer_t why = {0};
  if (!job->ok)
    hd_tune_take_error(context, &why);
  snprintf(job->why, sizeof job->why, "%s", hd_buffer_text(&why));
  hd_buffer_fini(&why);
  hd_diagnostics_clear(&context->diags);
  return true;
}

static void add_job(jobs_t *jobs, hd_tune_work_t *work, size_t candidate,
                    const char *text) {
  job_t job = {.work = work, .candidate = candidate, .text = text};
  hd_vec_push(&jobs->tuner->arena, &jobs->list, job);
}

void hd_tuner_compile(hd_tuner_t *tuner, hd_tune_work_t *works, size_t count) {
  jobs_t jobs = {.tuner = tuner};
  for (size_t i = 0; i < count; i++) {
    add_job(&jobs, &works[i], SIZE_MAX, works[i].reference);
    for (size_t k = 0; k < works[i].tuned->candidates.size; k++)
      if (works[i].tuned->candidates.data[k].status == HD_TUNE_OPEN &&
          works[i].texts[k] != works[i].reference)
        add_job(&jobs, &works[i], k, works[i].texts[k]);
  }
  hd_compile_all(tuner->device->context, tuner->pool, (unsigned)jobs.list.size,
                 compile, &jobs, NULL);
  for (size_t i = 0; i < jobs.list.size; i++) {
    const job_t *job = &jobs.list.data[i];
    if (!job->ok && job->candidate != SIZE_MAX)
      hd_tuner_settle(tuner, job->work, job->candidate, HD_TUNE_REFUSED, 0,
                      job->why);
  }
}
