// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hidet-run --bisect: which step of the compilation changes a result.
#include "Support/File.h"
#include "Tools/RunTool.h"

#include <stdio.h>

static const hd_loc_t nowhere;

static void progress(uint64_t low, uint64_t high) {
  fprintf(stderr, "hidet-run: the step is one of %llu to %llu\n",
          (unsigned long long)low, (unsigned long long)high);
}

static bool report_none(hd_run_t *run, const hd_bisection_t *b) {
  hd_buffer_t text = {0};
  hd_buffer_printf(&text, "%s: none of %llu steps changes a result\n",
                   run->name, (unsigned long long)b->steps);
  bool ok = hd_file_write_buffer(hd_run_diags(run), "-", &text);
  hd_buffer_fini(&text);
  return ok;
}

static bool report(hd_run_t *run, const hd_bisection_t *b) {
  if (b->always)
    return hd_error(hd_run_diags(run), nowhere, HD_E1006,
                    "the result is wrong before the first step: what shares "
                    "equal nodes or computes constants changes it");
  const hd_value_t *output = run->graph->outputs.data[b->output];
  const char *change =
      b->element < 0
          ? "it has another shape"
          : hd_arena_printf(&run->arena, "element %lld is %.9g, should be %.9g",
                            (long long)b->element, b->found, b->wanted);
  return hd_error(
      hd_run_diags(run), nowhere, HD_E1006,
      hd_arena_printf(
          &run->arena, "step %llu of %llu changes output '%s': %s %s; %s",
          (unsigned long long)b->number, (unsigned long long)b->steps,
          hd_value_label(output), hd_step_kind_name(b->kind), b->name, change));
}

bool hd_run_bisect(hd_run_t *run, const hd_host_tensor_t *inputs) {
  hd_model_options_t options = hd_run_session_options(run);
  hd_bisection_t *b = HD_ARENA_NEW(&run->arena, hd_bisection_t);
  bool verbose = hd_option_given(&run->options, RUN_VERBOSE);
  if (!run->device)
    return hd_error(hd_run_diags(run), nowhere, HD_E1003,
                    "--bisect compares a device with ref: give --device=sim or "
                    "--device=cuda");
  if (!hd_bisect(run->module, run->graph, run->device, &options, inputs,
                 hd_run_tolerance(run), verbose ? progress : NULL, b))
    return false;
  run->bisection = b;
  return b->number ? report(run, b) : report_none(run, b);
}
