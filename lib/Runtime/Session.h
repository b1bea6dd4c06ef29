// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sessions: runs of a model, one after the other. A session has what a run
// changes: memory for inputs, outputs and workspaces, and for each executable
// (Runtime/Model.h) that it has used lately the launches, worked out. It has a
// context and a device of its own, so that sessions of a model may be on
// threads side by side.
//
// Where steps matter (Support/Steps.h), a node whose kernel is a step beyond
// the limit is evaluated as it is written, and so are all after it.
#ifndef HIDET_RUNTIME_SESSION_H
#define HIDET_RUNTIME_SESSION_H

#include "Runtime/Model.h"

typedef struct hd_session hd_session_t;

typedef struct hd_session_stats {
  unsigned segments, kernels, launches;
  int64_t weights_bytes, arena_bytes, arena_bound;
  hd_moved_t moved; // Constants: the model's, and what was prepared of them.
  double expand_ms, compile_ms, load_ms, run_ms;
} hd_session_stats_t;

// context: what the session's runs report to and take memory of. device: the
// model's, of the same context, or a fork of it (hd_device_fork()) of this one;
// NULL where the model has none. They outlive the session. Unwinds where memory
// runs out.
hd_session_t *hd_session_join(hd_model_t *model, hd_context_t *context,
                              hd_device_t *device);
// The same with a model of its own, in the module's context.
hd_session_t *hd_session_create(hd_module_t *module, const hd_graph_t *graph,
                                hd_device_t *device,
                                const hd_model_options_t *options);
void hd_session_destroy(hd_session_t *session);

// Runs it. inputs: one for each input of the graph. outputs: one for each
// output, made here and the caller's to end, also after an error (zero then).
// An input and an output that are one (hd_model_options_t.inouts) have memory
// of the session's, on the device: the output comes without data, and the input
// may, of that type and shape; then it is what the last run left.
bool hd_session_run(hd_session_t *session, const hd_host_tensor_t *inputs,
                    hd_host_tensor_t *outputs);

// What comes out for inputs of these types, which is compiled where it is new.
// stream: that a run will be enqueued on; NULL: none. False after an error:
// where nothing is kept for them, since shapes depend on what is in the inputs,
// E1104; where the stream is being captured, and it is new, E1003.
bool hd_session_describe(hd_session_t *session, const hd_tensor_type_t *inputs,
                         hd_tensor_type_t *outputs, void *stream);

// Row-major, from a multiple of so many bytes on.
enum { HD_SESSION_ALIGN = 16 };
typedef struct hd_device_tensor {
  hd_address_t address;
  size_t bytes;
} hd_device_tensor_t;

// Brings what the last run left of such an output to the host; the caller's to
// end, zero after an error.
bool hd_session_read_state(hd_session_t *session, size_t output,
                           hd_host_tensor_t *data);

// Enqueues a run on a stream of the device's driver (NULL: its default one):
// inputs and outputs, one for each, of the types that hd_session_describe()
// says, stay where they are until it has ended. A device without streams is
// done then. Runs of a session follow one another, whatever their streams. An
// input of memory of the session's is copied there, or has address 0 and is
// what the last run left; such an output has address 0.
bool hd_session_enqueue(hd_session_t *session, const hd_tensor_type_t *types,
                        const hd_device_tensor_t *inputs,
                        const hd_device_tensor_t *outputs, void *stream);
// Waits for all that was enqueued.
bool hd_session_wait(hd_session_t *session);

hd_model_t *hd_session_model(const hd_session_t *session);

// What the last run's graph comes to when it is compiled once more: another
// program for the same slots.
typedef struct hd_session_version {
  hd_module_t *made;
  hd_program_t program;
} hd_session_version_t;

// Of a session in the model's context, the only one: compiles it with what the
// model's choose says now, where hd_session_program() is not NULL. To be ended,
// or taken, in any case. False after an error.
bool hd_session_compile_again(hd_session_t *session,
                              hd_session_version_t *version);
void hd_session_version_end(hd_session_version_t *version);
// From here on the last run's shapes are run by it, and what was there before
// is ended; *version is empty then. False after an error.
bool hd_session_version_take(hd_session_t *session,
                             hd_session_version_t *version);

// Of the last run. What was compiled before takes no time.
const hd_session_stats_t *hd_session_stats(const hd_session_t *session);

// The last run as a program that can be run again on the same tensors, with the
// slots that it takes; NULL where it was none (on ref; where the graph fell
// into several segments or none).
hd_program_t *hd_session_program(hd_session_t *session,
                                 const hd_slot_t **slots);
// The outputs that running that program again has left, as from
// hd_session_run(), whose inputs are still there. Only where there is such a
// program.
bool hd_session_outputs(hd_session_t *session, hd_host_tensor_t *outputs);

#endif
