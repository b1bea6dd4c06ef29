// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models: a graph that runs on one device, in any number of sessions
// (Runtime/Session.h), perhaps on threads side by side. For each set of shapes
// that they ask for, the graph is expanded, scheduled and compiled once, while
// others who want it wait; what comes of it is an executable: code on the
// device and constants, which nothing changes any more. Constants are on the
// device once, whoever reads them.
//
// What compiles, what is reported and what memory it takes belong to the
// module's context, a world that one thread at a time is in, under a lock
// (hd_model_enter()). What is done there unwinds by that context alone, or the
// lock would stay with who has left.
#ifndef HIDET_RUNTIME_MODEL_H
#define HIDET_RUNTIME_MODEL_H

#include "Fusion/InPlace.h"
#include "Graph/Expand/Expand.h"
#include "Graph/Precision/Precision.h"
#include "Runtime/ModelPasses.h"
#include "Runtime/Program.h"
#include "Schedule/Template/Machine.h"

typedef struct hd_model hd_model_t;

// Executables that serve all values of a size up to a bound: the least of
// `bounds` (ascending) that is not below it or, where there are none, the next
// power of two, or the largest size that the model goes with before that. What
// is beyond them has executables of its own, as 1 and 2 have. A model in which
// a size cannot be bounded does without (Fusion/Bucket/Bucket.h says why;
// `explain` has it told).
typedef struct hd_bucket_policy {
  const char *name; // A dimension, or an axis of an input (image_0).
  const int64_t *bounds;
  size_t count;
} hd_bucket_policy_t;

// What choose() goes by, as text, for plans that are kept (PlanCache.h).
typedef struct hd_choosing {
  // The groups that choose() was asked for since the last call, which lives as
  // long as its argument; NULL: they were of several graphs.
  const char *(*asked)(void *argument);
  // Appends what it would choose for such groups: for those that it was asked
  // for last, what it has chosen. False where that is no such text.
  bool (*foresee)(void *argument, const char *groups, hd_buffer_t *out);
} hd_choosing_t;

typedef struct hd_model_options {
  bool keep_layouts; // For the sanitizer: indices stay as they are written, and
                     // workspaces share no memory.
  bool explain;
  bool unrewritten;           // No rules are used on the graph.
  bool unfused;               // Every node has kernels of its own.
  bool in_turn;               // No launch begins before the last one has ended.
  hd_model_passes_t left_out; // Between rewriting and the choice of groups.
  hd_precision_t precision;   // That the graph is compiled for.
  // Where set, sees what each node of the expanded graph gives, after it was
  // run: what stands for it where the precision is another. Then every one is
  // stored, and nothing is fused.
  void (*watch)(void *argument, const hd_node_t *node, uint32_t output,
                const hd_host_tensor_t *data);
  void *watch_argument;
  // hd_schedule_options_t.choose, but for what runs once.
  hd_choose_fn_t choose;
  void *choose_argument;
  const hd_choosing_t *choosing; // NULL: what it chose is not kept.
  // Code and IR of all executables, beyond which those that no session has are
  // ended, the one used longest ago first; 0: HD_MODEL_KEPT_BYTES.
  size_t kept_bytes;
  bool anew; // Executables of the module's file are left where they are.
  // They outlive the model.
  const hd_bucket_policy_t *buckets;
  size_t num_buckets;
  // Inputs and outputs of the graph that a session has memory for, from run to
  // run (Runtime/Session.h). The pairs outlive the model.
  hd_inouts_t inouts;
  // What locks the module's context where models share it (on other devices);
  // NULL: a lock of its own.
  pthread_mutex_t *world;
} hd_model_options_t;

enum { HD_MODEL_KEPT_BYTES = 256 << 20 };

// What was done for all of its sessions together.
typedef struct hd_model_counts {
  unsigned compiled; // Executables that were made,
  unsigned loaded;   // those that came from the model's file,
  unsigned kept;     // and those that are there.
} hd_model_counts_t;

// device: NULL is `ref`, where tasks are evaluated. The module, which holds the
// graph, and the device, of the module's context, outlive the model, and the
// model its sessions. Unwinds where memory runs out.
hd_model_t *hd_model_create(hd_module_t *module, const hd_graph_t *graph,
                            hd_device_t *device,
                            const hd_model_options_t *options);
void hd_model_destroy(hd_model_t *model);

hd_model_counts_t hd_model_counts(hd_model_t *model);

// In the model's world: writes the graph, its weights and all executables that
// are there to a file (Runtime/Artifact.h). False after an error: E0815 where
// there are none, and where the file cannot be written.
bool hd_model_save(hd_model_t *model, const char *path);

// Runs body(argument) in the module's context: with the deadline and the
// interruption of the caller's, which gets what is reported, and unwinds where
// the work did. The two contexts may be the same.
void hd_model_enter(hd_model_t *model, hd_context_t *caller,
                    void (*body)(void *argument), void *argument);

#endif
