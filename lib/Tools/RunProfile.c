// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --profile: what each kernel adds to the time of a run, the largest first.
#include "Support/File.h"
#include "Tools/RunTool.h"

#include <stdlib.h>

static const hd_loc_t nowhere;

static int by_time(const void *a, const void *b) {
  double x = ((const hd_profile_row_t *)a)->us;
  double y = ((const hd_profile_row_t *)b)->us;
  return (x < y) - (x > y);
}

// The rows of one kernel together.
static size_t add_up(hd_run_t *run, hd_profile_row_t **totals) {
  const hd_profile_t *profile = &run->profile;
  hd_ptr_map_t of_kernel = {0};
  size_t count = 0;
  *totals = HD_ARENA_ARRAY(&run->arena, hd_profile_row_t, profile->rows.size);
  for (size_t i = 0; i < profile->rows.size; i++) {
    const hd_profile_row_t *row = &profile->rows.data[i];
    hd_profile_row_t *total = hd_ptr_map_find(&of_kernel, row->kernel);
    if (!total) {
      total = &(*totals)[count++];
      *total = *row;
      hd_ptr_map_set(&run->arena, &of_kernel, row->kernel, total);
      continue;
    }
    total->launches += row->launches;
    total->bytes += row->bytes;
    total->us += row->us;
  }
  qsort(*totals, count, sizeof(**totals), by_time);
  return count;
}

static void print_row(hd_buffer_t *text, const hd_profile_row_t *row, double us,
                      double peak) {
  const hd_kernel_launch_t *launch = row->launch;
  double gbs = row->us > 0 ? (double)row->bytes * 1e-3 / row->us : 0;
  hd_buffer_printf(text, "%9.2f %5.1f%% %8lld %9.2f %7.0f ", row->us,
                   us > 0 ? row->us / us * 100 : 0, (long long)row->launches,
                   row->us / (double)row->launches, gbs);
  if (peak > 0)
    hd_buffer_printf(text, "%3.0f%% ", gbs / peak * 100);
  hd_buffer_printf(text, "%7lld %6d %5d  %s\n",
                   (long long)launch->grid[0] * launch->grid[1] *
                       launch->grid[2],
                   launch->block[0] * launch->block[1] * launch->block[2],
                   row->kernel->registers, row->kernel->func->name);
}

static bool print_table(hd_run_t *run) {
  hd_profile_row_t *totals;
  const hd_profile_t *profile = &run->profile;
  double peak = run->device->info.memory_gbs;
  size_t count = add_up(run, &totals);
  hd_buffer_t text = {0};
  hd_buffer_printf(&text,
                   "       us  share launches   us each    GB/s %s"
                   " blocks threads regs  kernel\n",
                   peak > 0 ? "peak" : "");
  for (size_t i = 0; i < count; i++)
    print_row(&text, &totals[i], profile->us, peak);
  hd_buffer_printf(&text, "%9.2f us a run, of %lld launches of %zu kernels\n",
                   profile->us, (long long)run->launches, count);
  bool ok = hd_file_write_buffer(hd_run_diags(run), "-", &text);
  hd_buffer_fini(&text);
  return ok;
}

static bool can_measure(const hd_run_t *run) {
  return run->device && run->device->ops->replay;
}

// NULL where shapes of a model depend on data: it is compiled in parts.
static hd_program_t *find_program(hd_run_t *run, const hd_slot_t **slots) {
  if (run->graph)
    return hd_session_program(run->session, slots);
  hd_slot_t *own = HD_ARENA_ARRAY(&run->arena, hd_slot_t, run->num_params);
  for (uint32_t i = 0; i < run->num_params; i++)
    own[i] = run->tensors[i].slot;
  *slots = own;
  return &run->program;
}

// Recordings of the beginnings of a run are not what --trace is to show.
static bool measure(hd_run_t *run, hd_program_t *program,
                    const hd_slot_t *slots) {
  hd_times_t *times = &run->process.context.times;
  hd_trace_t *trace = times->trace;
  times->trace = NULL;
  bool ok = hd_program_profile(program, slots, &run->arena, &run->profile);
  times->trace = trace;
  return ok;
}

bool hd_run_profile(hd_run_t *run) {
  const hd_slot_t *slots;
  if (!can_measure(run))
    return hd_error(hd_run_diags(run), nowhere, HD_E0609, "a profile",
                    run->device ? run->device->ops->kind : "ref");
  hd_program_t *program = find_program(run, &slots);
  if (!program)
    return hd_error(hd_run_diags(run), nowhere, HD_E1002, "--profile",
                    "is for models that are compiled as one part, and shapes "
                    "of this one depend on data");
  return measure(run, program, slots) &&
         (run->process.quiet || print_table(run));
}

bool hd_run_time_launches(hd_run_t *run) {
  const hd_slot_t *slots;
  hd_program_t *program = can_measure(run) ? find_program(run, &slots) : NULL;
  if (can_measure(run) && !program)
    hd_remark(hd_run_diags(run), nowhere,
              "--trace: no launches on the GPU are shown, for shapes of this "
              "model depend on data");
  return run->profile.rows.size || !program || measure(run, program, slots);
}
