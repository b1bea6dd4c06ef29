// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of hidet-run share: Run.c (the tool), RunInput.c, RunOutput.c,
// RunBench.c, RunReport.c, RunTrace.c.
#ifndef HIDET_TOOLS_RUNTOOL_H
#define HIDET_TOOLS_RUNTOOL_H

#include "IR/Graph/HostTensor.h"
#include "Runtime/Artifact.h"
#include "Runtime/Bisect.h"
#include "Runtime/Program.h"
#include "Runtime/Session.h"
#include "Runtime/Tolerance.h"
#include "Tools/Input.h"
#include "Tools/Passes.h"
#include "Tools/Progress.h"
#include "Tune/Tune.h"

enum {
#define HD_OPTION(id, name, letter, type, argument, group, summary) RUN_##id,
#include "Tools/RunOptions.def"
#undef HD_OPTION
  RUN_NUM_OPTIONS
};

// How an output compares with what was expected.
typedef struct hd_run_comparison {
  bool done;
  hd_tolerance_t tolerance;
  double max_abs, max_rel;
  int64_t mismatches, first; // The first element that differs, or -1.
} hd_run_comparison_t;

// A tensor parameter of the entry.
typedef struct hd_run_tensor {
  const hd_var_t *param;
  // What --input said: "@x.npy", "random", "zeros", a number; NULL: nothing.
  const char *input;
  const char *output;   // The file of --output, or NULL.
  const char *expected; // The file of --expected, or NULL.
  bool has_shape;       // By --shape or by the input's file.
  unsigned rank;
  int64_t shape[HD_TENSOR_MAX_RANK];
  hd_host_tensor_t host;  // The input; after the run, the output.
  unsigned char *storage; // The input as the device wants it.
  hd_slot_t slot;
  hd_run_comparison_t comparison;
} hd_run_tensor_t;

typedef struct hd_measurement {
  unsigned runs; // 0: not measured.
  double median_ms, p10_ms, p90_ms, host_us;
  unsigned sets; // Of operands that were rotated.
} hd_measurement_t;

// A row of --compare: a node of the model.
typedef struct hd_run_layer {
  const char *label, *op; // The last task that it has become.
  unsigned tasks;         // Whose results are floats.
  hd_scalar_t type;       // In which its result is stored.
  double error;           // The largest, over
  double largest;         // the largest value.
  bool is_marked;         // One of the worst.
} hd_run_layer_t;

typedef struct hd_run {
  hd_process_t process;
  hd_options_t options;
  hd_command_t command;
  hd_pass_list_t passes;
  hd_arena_t arena;
  hd_module_t *module;
  const hd_func_t *entry;     // Of a graph: its inputs, outputs and dimensions.
  const hd_graph_t *graph;    // NULL: a kernel or a plan is run.
  hd_model_passes_t left_out; // By --disable-pass.
  hd_session_t *session;
  hd_device_t *device; // NULL: ref.
  hd_program_t program;
  hd_env_t env;
  hd_run_tensor_t *tensors; // One for each parameter; scalars' are empty.
  uint32_t num_params;
  const char *name;
  hd_buffer_t input;
  bool has_run;              // Once, at least in part.
  const hd_target_t *target; // --target; NULL: not given.
  double import_ms, compile_ms, load_ms, first_run_ms;
  int64_t kernels, launches; // Distinct kernels; launches of a run.
  hd_moved_t moved;          // By all launches of a run.
  int64_t weights_bytes, arena_bytes, arena_bound; // Of a graph.
  int64_t device_bytes;
  hd_measurement_t measurement;
  unsigned sessions;               // --sessions; 0: not measured.
  double rate, rate_of_one;        // Runs a second of all, and of one alone.
  hd_profile_t profile;            // No rows: not measured.
  HD_VEC(hd_run_layer_t) layers;   // --compare
  const hd_bisection_t *bisection; // --bisect; NULL: not done.
  hd_address_t *sets;              // More operands, to be rotated: RunBench.c.
  size_t num_sets;
  hd_tuner_t *tuner;    // NULL: nobody measures, and nothing is known.
  hd_progress_t tuning; // Its.
  char *tune_cache;     // A folder for its code alone; NULL: there is none.
} hd_run_t;

static inline hd_diagnostics_t *hd_run_diags(hd_run_t *run) {
  return &run->process.context.diags;
}
static inline bool hd_run_is_input(const hd_run_tensor_t *tensor) {
  return tensor->param && tensor->param->direction != HD_DIR_OUT;
}
static inline bool hd_run_is_output(const hd_run_tensor_t *tensor) {
  return tensor->param && tensor->param->direction != HD_DIR_IN;
}

// RunModes.c: refuses, before anything is read, options that do nothing beside
// others; then, by the entry, those that are for models.
bool hd_run_check_modes(hd_run_t *run);
bool hd_run_check_entry(hd_run_t *run);
// Reads --input, --shape, --output and --expected; binds every size. Every
// fault of the command line is reported.
bool hd_run_bind(hd_run_t *run);
// Its halves: what is given; then whether that is all and goes together.
bool hd_run_take_sizes(hd_run_t *run);
bool hd_run_settle_sizes(hd_run_t *run);
// Whether a parameter is a size that nothing has given so far.
bool hd_run_is_open(const hd_run_t *run, uint32_t param);
// Makes the inputs that no file gives, in the host's memory.
bool hd_run_make_inputs(hd_run_t *run);
// Makes the inputs and brings them to the device; makes room for the outputs.
bool hd_run_upload(hd_run_t *run);
// Fetches the outputs; saves, prints, compares or sums them up.
bool hd_run_outputs(hd_run_t *run);
// RunModel.c: takes a graph as what is to be run; then to run it. Of
// --test-data the outputs have been compared then.
bool hd_run_take_graph(hd_run_t *run, const hd_graph_t *graph);
bool hd_run_model(hd_run_t *run);
// --precision.
hd_precision_t hd_run_precision(const hd_run_t *run);
// --buckets: sets options->buckets, which live as long as the run.
bool hd_run_buckets(hd_run_t *run, hd_model_options_t *options);
// --inout: sets options->inouts, likewise.
bool hd_run_inouts(hd_run_t *run, hd_model_options_t *options);
// What the options say of a session.
hd_model_options_t hd_run_session_options(const hd_run_t *run);
// --rtol and --atol.
hd_tolerance_t hd_run_tolerance(const hd_run_t *run);
// --compare, --bisect: on these inputs, one for each of the graph.
bool hd_run_compare(hd_run_t *run, const hd_host_tensor_t *inputs);
bool hd_run_bisect(hd_run_t *run, const hd_host_tensor_t *inputs);
// RunCheck.c, --check: says what of it is not supported, or what would be run.
bool hd_run_check(hd_run_t *run);
// Runs it again; or takes what running its program again has left.
bool hd_run_model_again(hd_run_t *run);
bool hd_run_model_outputs(hd_run_t *run);
// What --bench says, before anything is done; then to do it: whether it could
// be measured. The outputs are those of the last run then.
bool hd_run_check_bench(hd_run_t *run);
bool hd_run_bench(hd_run_t *run);
// --sessions: each runs so often, or (0) for so long (0: a second).
bool hd_run_check_sessions(hd_run_t *run);
bool hd_run_sessions(hd_run_t *run, int64_t count, int64_t ms);
// What a model's inputs are, one for each of the graph.
hd_host_tensor_t *hd_run_model_inputs(hd_run_t *run);
// --profile: on a GPU.
bool hd_run_profile(hd_run_t *run);
// The same for --trace: prints nothing, and does nothing where it cannot.
bool hd_run_time_launches(hd_run_t *run);
// The first lane of a trace for the threads of sessions; threads that compile
// have those before.
enum { HD_RUN_SESSION_LANE = 1024 };
// RunTrace.c, --trace: from here on spans are kept; then what was kept.
bool hd_run_begin_trace(hd_run_t *run);
bool hd_run_write_trace(hd_run_t *run, const char *path);
// RunTune.c, --tune: what the options say, before anything is done.
bool hd_run_check_tune(hd_run_t *run);
// --tune-export and --tune-merge: whether that was asked for, and done.
bool hd_run_copy_measurements(hd_run_t *run);
// Code of candidates goes through a cache: this one, where there is no other.
const char *hd_run_tune_cache(hd_run_t *run);
// The tuner for the device that is open; cache_dir: of its code, or NULL.
bool hd_run_make_tuner(hd_run_t *run, const char *cache_dir);
void hd_run_end_tuner(hd_run_t *run);
// After the first run: exchanges choices in the whole, and runs it again where
// some were.
bool hd_run_exchange(hd_run_t *run);
// --tune-worker: works for another process.
void hd_run_work(hd_run_t *run);
bool hd_run_write_json(hd_run_t *run, const char *path);

static inline bool hd_run_given(const hd_run_t *run, int option) {
  return hd_option_given(&run->options, option);
}

#endif
