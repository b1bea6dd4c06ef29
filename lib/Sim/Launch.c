// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A launch: workers start blocks in the order of their numbers. A block that
// waits for others (it spins, and nothing else in it can go on) stays resident
// while its worker starts the next ones, so barriers over the grid work as long
// as a real GPU would hold all its blocks at once.
#include "Sim/Check.h"
#include "Sim/State.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What the largest GPU of the targets holds: 132 multiprocessors of 2048
// threads and 32 blocks.
enum { RESIDENT_THREADS = 132 * 2048, RESIDENT_BLOCKS = 132 * 32 };

// --- Units: the blocks of a cluster ---

static hd_sim_resident_t **create_unit(hd_sim_worker_t *worker) {
  uint32_t size = worker->run->unit_size;
  hd_sim_resident_t **unit = calloc(size, sizeof(hd_sim_resident_t *));
  for (uint32_t i = 0; unit && i < size; i++) {
    unit[i] = hd_sim_resident_create(worker);
    if (unit[i])
      unit[i]->unit = unit;
    else { // The list of the launch owns those that were made.
      free(unit);
      return NULL;
    }
  }
  return unit;
}

// A unit to put the next cluster in; NULL: all are in use and there may not be
// more, or (with *failed) memory has run out.
static hd_sim_resident_t **free_unit(hd_sim_worker_t *worker, bool *failed) {
  for (uint32_t i = 0; i < worker->num_units; i++)
    if (!worker->units[i][0]->active)
      return worker->units[i];
  if (worker->num_units == worker->run->max_resident)
    return NULL;
  if (worker->num_units == worker->cap_units) {
    uint32_t capacity = worker->cap_units ? worker->cap_units * 2 : 4;
    void *units =
        realloc(worker->units, capacity * sizeof(hd_sim_resident_t **));
    if (!units) {
      *failed = true;
      return NULL;
    }
    worker->units = units;
    worker->cap_units = capacity;
  }
  hd_sim_resident_t **unit = create_unit(worker);
  *failed = !unit;
  if (unit)
    worker->units[worker->num_units++] = unit;
  return unit;
}

// Starts the launch's next cluster; false where none is left or none fits.
static bool begin_unit(hd_sim_worker_t *worker) {
  hd_sim_run_t *run = worker->run;
  if (atomic_load(&run->next_unit) >= run->num_units)
    return false;
  bool failed = false;
  hd_sim_resident_t **unit = free_unit(worker, &failed);
  if (failed) {
    hd_sim_report_memory(run, "no memory for the simulated blocks");
    hd_sim_fail(run);
  }
  if (!unit)
    return false;
  uint32_t number = atomic_fetch_add(&run->next_unit, 1);
  if (number >= run->num_units)
    return false;
  for (uint32_t i = 0; i < run->unit_size; i++)
    hd_sim_resident_begin(unit[i], number, i);
  return true;
}

// Lets each resident unit go as far as it can. Returns whether one ended.
static bool sweep_units(hd_sim_worker_t *worker) {
  hd_sim_run_t *run = worker->run;
  bool ended = false;
  for (uint32_t i = 0; i < worker->num_units; i++) {
    hd_sim_resident_t **unit = worker->units[i];
    if (!unit[0]->active || hd_sim_unit_run(worker, unit) == HD_SIM_STUCK)
      continue;
    for (uint32_t j = 0; j < run->unit_size; j++)
      hd_sim_resident_end(unit[j]);
    ended = true;
  }
  return ended;
}

static bool any_active(const hd_sim_worker_t *worker) {
  for (uint32_t i = 0; i < worker->num_units; i++)
    if (worker->units[i][0]->active)
      return true;
  return false;
}

static void run_coroutines(void *argument) {
  hd_sim_worker_t *worker = argument;
  hd_sim_run_t *run = worker->run;
  while (!atomic_load_explicit(&run->stop, memory_order_relaxed)) {
    bool begun = begin_unit(worker);
    if (!begun && !any_active(worker))
      return;
    bool ended = sweep_units(worker);
    if (begun || ended)
      continue;
    if (run->sanitizer && hd_sim_check_spinning(run->sanitizer, worker))
      return;
    sched_yield();
  }
}

typedef void (*loop_t)(void *const *args, hd_sim_block_t *block);

static void run_loops(void *argument) {
  hd_sim_worker_t *worker = argument;
  hd_sim_run_t *run = worker->run;
  loop_t body = (loop_t)(uintptr_t)run->kernel->entry;
  while (!atomic_load_explicit(&run->stop, memory_order_relaxed) &&
         begin_unit(worker)) {
    hd_sim_resident_t **unit = worker->units[0];
    for (uint32_t i = 0; i < run->unit_size; i++) {
      body(run->kernel->args, &unit[i]->head);
      hd_sim_resident_end(unit[i]);
    }
  }
}

static void run_worker(void *argument, unsigned piece, unsigned number) {
  (void)number;
  hd_sim_worker_t *worker = &((hd_sim_worker_t *)argument)[piece];
  hd_sim_run_t *run = worker->run;
  hd_sim_fault_t fault =
      hd_sim_guard(run->kernel->coroutine ? run_coroutines : run_loops, worker);
  if (fault == HD_SIM_WHOLE || fault == HD_SIM_LEFT)
    return;
  hd_error(run->diags, (hd_loc_t){0}, HD_E0607, run->kernel->name,
           "illegal memory access; --sanitize finds the place");
  hd_sim_fail(run);
}

// --- The launch ---

static bool refuse(hd_diagnostics_t *diags, const hd_sim_kernel_t *kernel,
                   const char *why) {
  return hd_error(diags, (hd_loc_t){0}, HD_E0606, kernel->name, why);
}

static bool refuse_grid(hd_diagnostics_t *diags,
                        const hd_sim_kernel_t *kernel) {
  char text[120];
  snprintf(text, sizeof text,
           "the grid has %d x %d x %d blocks, and the simulator runs 2^31 - 1",
           kernel->grid[0], kernel->grid[1], kernel->grid[2]);
  return refuse(diags, kernel, text);
}

static bool check_shape(const hd_sim_kernel_t *kernel,
                        hd_diagnostics_t *diags) {
  uint64_t blocks = 1, threads = 1, cluster = 1;
  for (int axis = 0; axis < 3; axis++) {
    if (kernel->grid[axis] < 0 || kernel->block[axis] < 1 ||
        kernel->cluster[axis] < 1)
      return refuse(diags, kernel, "a launch dimension is below one");
    if (kernel->grid[axis] % kernel->cluster[axis])
      return refuse(diags, kernel, "clusters do not divide the grid");
    if (axis > 0 && kernel->grid[axis] > 65535)
      return refuse(diags, kernel, "grid.y and grid.z end at 65535");
    threads *= (uint64_t)kernel->block[axis];
    cluster *= (uint64_t)kernel->cluster[axis];
    blocks *= (uint64_t)kernel->grid[axis];
    if (threads > 1024 || kernel->block[2] > 64)
      return refuse(diags, kernel, "a block has more than 1024 threads");
    if (cluster > 16)
      return refuse(diags, kernel, "a cluster has more than 16 blocks");
    if (blocks > INT32_MAX)
      return refuse_grid(diags, kernel);
  }
  return true;
}

static void init_run(hd_sim_run_t *run, const hd_sim_kernel_t *kernel,
                     const hd_sim_options_t *options, hd_diagnostics_t *diags) {
  memset(run, 0, sizeof *run);
  run->kernel = kernel;
  run->options = options;
  run->diags = diags;
  run->num_blocks = run->num_threads = run->unit_size = 1;
  for (int axis = 0; axis < 3; axis++) {
    run->num_blocks *= (uint32_t)kernel->grid[axis];
    run->num_threads *= (uint32_t)kernel->block[axis];
    run->unit_size *= (uint32_t)kernel->cluster[axis];
  }
  run->num_units = run->num_blocks / run->unit_size;
  run->num_workers = options->sanitize ? 1 : hd_thread_pool_size(options->pool);
  if (run->num_workers > run->num_units)
    run->num_workers = run->num_units;
  uint32_t blocks = RESIDENT_THREADS / run->num_threads;
  if (blocks > RESIDENT_BLOCKS)
    blocks = RESIDENT_BLOCKS;
  uint32_t workers = run->num_workers ? run->num_workers : 1;
  run->max_resident = blocks / run->unit_size / workers;
  if (run->max_resident == 0)
    run->max_resident = 1;
  pthread_mutex_init(&run->lock, NULL);
  const hd_budget_t *budget = options->budget;
  size_t limit = budget ? budget->bytes_limit : 0;
  atomic_store(&run->memory_left, !limit ? SIZE_MAX
                                  : budget->bytes_used < limit
                                      ? limit - budget->bytes_used
                                      : 0);
}

static void fini_run(hd_sim_run_t *run, hd_sim_worker_t *workers) {
  for (uint32_t i = 0; workers && i < run->num_workers; i++) {
    for (uint32_t j = 0; j < workers[i].num_units; j++)
      free(workers[i].units[j]);
    free(workers[i].units);
  }
  for (hd_sim_resident_t *block = run->residents, *next; block; block = next) {
    next = block->next;
    if (run->sanitizer)
      hd_sim_check_drop_block(run->sanitizer, block);
    hd_sim_resident_destroy(block);
  }
  hd_sim_sanitizer_destroy(run->sanitizer);
  pthread_mutex_destroy(&run->lock);
  free(workers);
}

static bool run_all(hd_sim_run_t *run, hd_sim_worker_t *workers,
                    hd_exhausted_t *stopped) {
  const hd_sim_options_t *options = run->options;
  for (uint32_t i = 0; i < run->num_workers; i++)
    workers[i] = (hd_sim_worker_t){
        .run = run,
        .random = (options->seed + i) * 0x9e3779b97f4a7c15ull | 1,
    };
  hd_sim_watch_t watch;
  hd_sim_watch_begin(&watch, run);
  hd_thread_pool_run(options->sanitize ? NULL : options->pool, run->num_workers,
                     run_worker, workers);
  *stopped = hd_sim_watch_end(&watch);
  return !atomic_load(&run->failed);
}

bool hd_sim_launch(const hd_sim_kernel_t *kernel,
                   const hd_sim_options_t *options, hd_diagnostics_t *diags,
                   hd_sim_stats_t *stats) {
  if (stats)
    memset(stats, 0, sizeof *stats);
  if (!check_shape(kernel, diags))
    return false;
  hd_sim_run_t run;
  init_run(&run, kernel, options, diags);
  hd_sim_worker_t *workers = calloc(run.num_workers + 1, sizeof *workers);
  if (options->sanitize)
    run.sanitizer = hd_sim_sanitizer_create(&run);
  bool good = workers && (run.sanitizer || !options->sanitize);
  if (!good)
    hd_sim_report_memory(&run, "no memory for the simulator");
  hd_exhausted_t stopped = HD_EXHAUSTED_NOTHING;
  if (good && run.num_blocks > 0)
    good = run_all(&run, workers, &stopped);
  if (stats) {
    stats->blocks = atomic_load(&run.ended_blocks);
    stats->threads = stats->blocks * run.num_threads;
  }
  if (run.sanitizer)
    good &= hd_sim_sanitizer_conclude(run.sanitizer, stats);
  fini_run(&run, workers);
  if (stopped != HD_EXHAUSTED_NOTHING)
    hd_budget_exhausted(options->budget, stopped);
  hd_budget_check(options->budget);
  return good;
}
