// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sessions: a graph that runs. For each set of shapes that it is given, the
// graph is expanded, scheduled and compiled, segment by segment
// (Graph/Expand.h); a segment is a program of its own. On the device `ref`
// tasks are evaluated instead. What is compiled is kept for the next run with
// the same shapes, and constants stay on the device. What a walk makes of the
// graph stays in the module's arena: where shapes depend on data, each run adds
// to it.
//
// Where steps matter (Support/Steps.h), a node whose kernel is a step beyond
// the limit is evaluated as it is written, and so are all after it.
#ifndef HIDET_RUNTIME_SESSION_H
#define HIDET_RUNTIME_SESSION_H

#include "Graph/Expand/Expand.h"
#include "Graph/Precision/Precision.h"
#include "Runtime/Program.h"
#include "Schedule/Machine.h"

typedef struct hd_session hd_session_t;

typedef struct hd_session_options {
  bool keep_layouts; // For the sanitizer: indices stay as they are written, and
                     // workspaces share no memory.
  bool explain;
  bool unrewritten;         // No rules are used on the graph.
  bool unfused;             // Every node has kernels of its own.
  bool in_turn;             // No launch begins before the last one has ended.
  hd_precision_t precision; // That the graph is compiled for.
  // Where set, sees what each node of the expanded graph gives, after it was
  // run: what stands for it where the precision is another. Then every one is
  // stored, and nothing is fused.
  void (*watch)(void *argument, const hd_node_t *node, uint32_t output,
                const hd_host_tensor_t *data);
  void *watch_argument;
  // hd_schedule_options_t.choose, but for what runs once.
  hd_choose_fn_t choose;
  void *choose_argument;
} hd_session_options_t;

typedef struct hd_session_stats {
  unsigned segments, kernels, launches;
  int64_t weights_bytes, arena_bytes, arena_bound;
  hd_moved_t moved; // Constants: the model's, and what was prepared of them.
  double expand_ms, compile_ms, load_ms, run_ms;
} hd_session_stats_t;

// device: NULL is `ref`. The module, which holds the graph, and the device
// outlive the session.
hd_session_t *hd_session_create(hd_module_t *module, const hd_graph_t *graph,
                                hd_device_t *device,
                                const hd_session_options_t *options);
void hd_session_destroy(hd_session_t *session);

// Runs it. inputs: one for each input of the graph. outputs: one for each
// output, made here and the caller's to end, also after an error (zero then).
bool hd_session_run(hd_session_t *session, const hd_host_tensor_t *inputs,
                    hd_host_tensor_t *outputs);

// Sets options.choose and its argument for what is compiled from here on.
void hd_session_choose(hd_session_t *session, hd_choose_fn_t choose,
                       void *argument);
hd_device_t *hd_session_device(const hd_session_t *session); // NULL: ref.

// What the last run's graph comes to when it is compiled once more: another
// program for the same slots.
typedef struct hd_session_version {
  hd_module_t *made;
  hd_program_t program;
} hd_session_version_t;

// Compiles it with what options.choose says now, where hd_session_program() is
// not NULL. To be ended, or taken, in any case. False after an error.
bool hd_session_compile_again(hd_session_t *session,
                              hd_session_version_t *version);
void hd_session_version_end(hd_session_version_t *version);
// From here on the last run's shapes are run by it, and what was there before
// is ended; *version is empty then.
void hd_session_version_take(hd_session_t *session,
                             hd_session_version_t *version);

// Of the last run. What was compiled before takes no time.
const hd_session_stats_t *hd_session_stats(const hd_session_t *session);

// The last run as a program that can be run again on the same tensors, with the
// slots that it takes; NULL where it was none (on ref; where the graph fell
// into several segments or none).
hd_program_t *hd_session_program(hd_session_t *session,
                                 const hd_slot_t **slots);

#endif
