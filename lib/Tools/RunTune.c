// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --tune and what belongs to it.
#include "Runtime/Cache.h"
#include "Support/File.h"
#include "Tools/RunTool.h"
#include "Tune/Database.h"
#include "Tune/Worker.h"

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { MOST = 8, LIMIT_MS = 5000, MOST_ARGUMENTS = 12 };

static const hd_loc_t nowhere;

// off, all, a number of candidates or a time, which has a unit.
static bool parse_tune(const char *text, hd_tune_options_t *options) {
  char *end;
  options->most = MOST;
  if (!text || strcmp(text, "off") == 0) {
    options->most = 0;
    return true;
  }
  if (strcmp(text, "all") == 0) {
    options->most = UINT32_MAX;
    return true;
  }
  unsigned long count = strtoul(text, &end, 10);
  if (text[0] < '0' || text[0] > '9')
    return false;
  if (*end)
    return hd_parse_duration(text, &options->time_ms);
  options->most = (unsigned)count;
  return count > 0 && count < UINT32_MAX;
}

bool hd_run_check_tune(hd_run_t *run) {
  hd_tune_options_t options = {0};
  const char *device = hd_option_text(&run->options, RUN_DEVICE, "auto");
  if (!parse_tune(hd_option_text(&run->options, RUN_TUNE, NULL), &options))
    return hd_error(hd_run_diags(run), nowhere, HD_E1002, "--tune",
                    "is off, all, a number of candidates, or a time such as "
                    "30s");
  if (hd_option_number(&run->options, RUN_TUNE_LIMIT, LIMIT_MS) < 1)
    return hd_error(hd_run_diags(run), nowhere, HD_E1002, "--tune-limit",
                    "needs a time of 1 ms or more");
  return !options.most || strcmp(device, "ref") != 0 ||
         hd_error(hd_run_diags(run), nowhere, HD_E0609, "--tune", device);
}

// --- The database ---

// In the arena; NULL: there is none. The folder of the cache is made for what
// is written, as it is for kernels; others are there, or it is said.
static const char *database_path(hd_run_t *run, const char *cache_dir,
                                 bool write) {
  const char *path = hd_option_text(&run->options, RUN_TUNE_DB, NULL);
  if (path || !cache_dir)
    return path;
  if (write)
    hd_file_make_folders(cache_dir);
  return hd_arena_printf(&run->arena, "%s/tune.db", cache_dir);
}

bool hd_run_copy_measurements(hd_run_t *run) {
  const char *to = hd_option_text(&run->options, RUN_TUNE_EXPORT, NULL);
  if (!to && !hd_run_given(run, RUN_TUNE_MERGE))
    return false;
  const char *dir = hd_option_text(&run->options, RUN_CACHE_DIR, NULL);
  char *own = hd_run_given(run, RUN_NO_CACHE) ? NULL
              : dir                           ? strdup(dir)
                                              : hd_cache_default_dir();
  const char *path = database_path(run, own, hd_run_given(run, RUN_TUNE_MERGE));
  free(own);
  int64_t rows = 0, all = 0;
  bool ok = path || hd_error(hd_run_diags(run), nowhere, HD_E1002, "--tune-db",
                             "is needed: there is no folder for a cache");
  for (size_t i = 0; ok && i < run->options.uses.size; i++) {
    const hd_option_use_t *use = &run->options.uses.data[i];
    if (use->option != RUN_TUNE_MERGE)
      continue;
    ok = hd_tune_database_copy(hd_run_diags(run), use->value, path, &rows);
    all += rows;
  }
  if (ok && to) {
    ok = hd_tune_database_copy(hd_run_diags(run), path, to, &rows);
    all += rows;
  }
  if (ok && !run->process.quiet)
    fprintf(stderr, "hidet-run: %lld measurements taken over\n",
            (long long)all);
  return true;
}

// --- The tuner ---

const char *hd_run_tune_cache(hd_run_t *run) {
  const char *place = getenv("TMPDIR");
  char folder[4096];
  snprintf(folder, sizeof folder, "%s/hidet-tune-XXXXXX",
           place && *place ? place : "/tmp");
  hd_tune_options_t options = {0};
  parse_tune(hd_option_text(&run->options, RUN_TUNE, NULL), &options);
  if (options.most && !run->tune_cache && mkdtemp(folder))
    run->tune_cache = strdup(folder);
  return run->tune_cache;
}

static int remove_entry(const char *path, const struct stat *status, int type,
                        struct FTW *walk) {
  (void)status;
  (void)type;
  (void)walk;
  return remove(path);
}

void hd_run_end_tuner(hd_run_t *run) {
  hd_tuner_destroy(run->tuner);
  run->tuner = NULL;
  if (run->tune_cache)
    nftw(run->tune_cache, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
  free(run->tune_cache);
  run->tune_cache = NULL;
}

static void show_progress(void *argument, double done, double total) {
  hd_run_t *run = argument;
  hd_progress_step(&run->tuning, done, total);
  if (done >= total)
    hd_progress_end(&run->tuning);
}

// This program on the same device, with the same cache.
static const char *const *worker_command(hd_run_t *run, const char *cache_dir) {
  const char **command =
      HD_ARENA_ARRAY(&run->arena, const char *, MOST_ARGUMENTS);
  const char *device = hd_option_text(&run->options, RUN_DEVICE, "auto");
  const char *cache = cache_dir ? cache_dir : run->tune_cache;
  size_t n = 0;
  command[n++] = "/proc/self/exe";
  command[n++] = "--tune-worker";
  command[n++] = "--quiet";
  command[n++] = hd_arena_printf(&run->arena, "--device=%s",
                                 strcmp(device, "auto")     ? device
                                 : run->device->ops->replay ? "cuda"
                                                            : "sim");
  if (cache)
    command[n++] = hd_arena_printf(&run->arena, "--cache-dir=%s", cache);
  // It takes the candidates' code from there, whatever else is kept.
  int64_t bytes;
  hd_parse_cache_size(&bytes);
  bytes = hd_option_number(&run->options, RUN_CACHE_SIZE, bytes);
  command[n++] = hd_arena_printf(&run->arena, "--cache-size=%lld",
                                 (long long)(bytes ? bytes : HD_CACHE_BYTES));
  if (run->target)
    command[n++] =
        hd_arena_printf(&run->arena, "--target=%s", run->target->name);
  return command;
}

bool hd_run_make_tuner(hd_run_t *run, const char *cache_dir) {
  hd_tune_options_t options = {
      .limit_ms = hd_option_number(&run->options, RUN_TUNE_LIMIT, LIMIT_MS),
      .threads = (unsigned)hd_option_number(&run->options, RUN_JOBS, 0),
      .verbose = hd_run_given(run, RUN_VERBOSE),
      .progress = show_progress,
      .progress_argument = run};
  parse_tune(hd_option_text(&run->options, RUN_TUNE, NULL), &options);
  options.database = database_path(run, cache_dir, options.most > 0);
  bool looks = hd_run_given(run, RUN_SANITIZE) ||
               hd_run_given(run, RUN_BISECT) || hd_run_given(run, RUN_COMPARE);
  if (options.most && looks)
    return hd_error(
        hd_run_diags(run), nowhere, HD_E1002, "--tune",
        "measures, which --sanitize, --bisect and --compare do not");
  bool knows = options.database && access(options.database, F_OK) == 0;
  if (!run->graph || looks || (!options.most && !knows))
    return true;
  options.worker = worker_command(run, cache_dir);
  hd_progress_begin(&run->tuning, "tune: candidates", run->process.quiet);
  run->tuner = hd_tuner_create(run->device, &options);
  return run->tuner ||
         hd_error(hd_run_diags(run), nowhere, HD_E0904, "out of memory");
}

bool hd_run_exchange(hd_run_t *run) {
  if (!run->tuner)
    return true;
  if (!hd_tuner_exchange(run->tuner, run->session))
    return false;
  const hd_tune_report_t *report = hd_tuner_report(run->tuner);
  bool changed = false;
  if (hd_run_given(run, RUN_TUNE) && !report->groups.size &&
      !run->process.quiet)
    fprintf(stderr,
            "hidet-run: --tune has nothing to measure: no template "
            "answers for a product or rows of this model (--explain)\n");
  for (size_t i = 0; i < report->exchanges.size; i++)
    changed |= report->exchanges.data[i].taken;
  return !changed || hd_run_model_again(run);
}

// --- The worker ---

void hd_run_work(hd_run_t *run) {
  // Its parent may be killed while a kernel hangs here.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (run->device)
    hd_tune_work(run->device, STDIN_FILENO);
}
