// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes. A pass is a row of a table (lib/*/Passes.def):
//   HD_PASS(name, function, level, needs, options, summary)
// and a function of its level: one that takes a function of a module (KERNEL),
// of which some are for its plans alone (PLAN) and may replace the kernels that
// these launch, or one that takes a graph (GRAPH). The driver runs it over all
// of these in the module, and leaves the others alone; it verifies, prints,
// times.
#ifndef HIDET_IR_PASSES_PASS_H
#define HIDET_IR_PASSES_PASS_H

#include "IR/Module.h"

typedef struct hd_pass_args {
  const char *options; // "key=value,..." as given, checked; may be NULL.
  bool explain;        // Say by remarks why something was or was not done.
} hd_pass_args_t;

// Returns what takes the function's place: the same pointer where nothing
// changed, NULL after an error that it has reported.
typedef const hd_func_t *(*hd_pass_fn_t)(hd_module_t *module,
                                         const hd_func_t *func,
                                         const hd_pass_args_t *args);

// Sets *version to the item that takes the graph's place, a graph or a plan of
// the same name; it is the graph's at first. Other items (kernels, plans of
// further segments) may be pushed onto the module. False after an error that it
// has reported.
typedef bool (*hd_graph_pass_fn_t)(hd_module_t *module, const hd_graph_t *graph,
                                   const hd_pass_args_t *args,
                                   hd_item_t *version);

typedef enum hd_pass_level {
  HD_LEVEL_KERNEL,
  HD_LEVEL_PLAN,
  HD_LEVEL_GRAPH
} hd_pass_level_t;

typedef enum hd_pass_needs {
  HD_NEEDS_NOTHING,
  HD_NEEDS_NO_POINTS,        // No fusion points.
  HD_NEEDS_NO_STAGED_POINTS, // None that go through shared memory.
} hd_pass_needs_t;

typedef struct hd_pass {
  const char *name; // As in --name.
  hd_pass_fn_t run; // KERNEL, PLAN
  hd_pass_level_t level;
  const char *options;          // What it takes: see IR/Passes.def.
  const char *summary;          // One line.
  hd_graph_pass_fn_t run_graph; // GRAPH
  hd_pass_needs_t needs;        // KERNEL
} hd_pass_t;

// What a pass needs to be run first, and what of; NULL: nothing.
typedef struct hd_pass_before {
  const char *pass, *what;
} hd_pass_before_t;
hd_pass_before_t hd_pass_before(const hd_pass_t *pass);

// A row of a table as an hd_pass_t, and the declaration of its function.
#define HD_PASS_ROW(name_, function, level_, needs_, options_, summary_)       \
  {.name = name_,                                                              \
   .level = HD_LEVEL_##level_,                                                 \
   .needs = HD_NEEDS_##needs_,                                                 \
   .options = options_,                                                        \
   .summary = summary_,                                                        \
   HD_PASS_RUN_##level_ = function},
#define HD_PASS_RUN_KERNEL .run
#define HD_PASS_RUN_PLAN .run
#define HD_PASS_RUN_GRAPH .run_graph
#define HD_PASS_DECLARATION(name, function, level, needs, options, summary)    \
  HD_PASS_DECLARE_##level(function)
#define HD_PASS_DECLARE_KERNEL(function)                                       \
  const hd_func_t *function(hd_module_t *module, const hd_func_t *func,        \
                            const hd_pass_args_t *args);
#define HD_PASS_DECLARE_PLAN HD_PASS_DECLARE_KERNEL
#define HD_PASS_DECLARE_GRAPH(function)                                        \
  bool function(hd_module_t *module, const hd_graph_t *graph,                  \
                const hd_pass_args_t *args, hd_item_t *version);

// Whether a pass takes the options (may be NULL); reports E1002 for each that
// it does not.
bool hd_pass_check_options(hd_diagnostics_t *diags, const hd_pass_t *pass,
                           const char *options);
// For the pass, on options that were checked. Those of an option not given:
int64_t hd_pass_option_int(const char *options, const char *key,
                           int64_t otherwise);
bool hd_pass_option_given(const char *options, const char *key);
bool hd_pass_option_is(const char *options, const char *key, const char *word);
// Takes the next name=INT; false at the end.
bool hd_pass_option_next(const char **options, const char **name, size_t *size,
                         int64_t *number);

// What a run of a pass did.
typedef struct hd_pass_result {
  bool ok, changed;
  uint64_t ns;
} hd_pass_result_t;

typedef struct hd_pass_config {
  bool verify_each;
  const char *const *left_out; // Names of passes that are not run, so many.
  size_t num_left_out;
} hd_pass_config_t;

// Checks the options and, of each function, what the pass needs (E0509); runs
// one pass over every function, or every graph, of the module (not over the
// library's).
hd_pass_result_t hd_pass_run(hd_module_t *module, const hd_pass_t *pass,
                             const hd_pass_args_t *args,
                             const hd_pass_config_t *config);

// The passes of lib/IR. Other folders have tables of their own; Tools joins
// them.
extern const hd_pass_t hd_ir_passes[];
extern const size_t hd_ir_num_passes;

#endif
