// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sessions: runs of a model, on arrays in the caller's memory.
//
//   hidet_model_load(context, "model.onnx", &model);
//   hidet_session_create(model, device, &session);
//   hidet_session_run(session, inputs, 1, outputs, 1);

#ifndef HIDET_SESSION_H
#define HIDET_SESSION_H

#include "hidet/Model.h"

HIDET_C_BEGIN

typedef struct hidet_session hidet_session_t;

// An array, row-major. type is an element type of the language ("f32", "i64",
// "bool"); an element below a byte takes one.
typedef struct hidet_array {
  const char *type;
  unsigned rank;
  int64_t shape[HIDET_MAX_RANK];
  const void *data;
} hidet_array_t;

// DLPack (https://dmlc.github.io/dlpack): tensor is a DLTensor, of whatever
// version, such as `dl_tensor` of what a framework gives. Nothing is copied and
// nothing is owned: whoever has the memory keeps it while it is used. device:
// that the array is for; NULL: the host, for hidet_session_run().
// HIDET_USAGE for a tensor in another device's memory, of elements that no
// array has, of more axes, of sizes below 0 or that multiply to more than 2^62,
// or not row-major without gaps; *array is zero then.
HIDET_API hidet_status_t hidet_array_from_dlpack(const hidet_device_t *device,
                                                 const void *tensor,
                                                 hidet_array_t *array);
// Fills in *tensor, whose shape is the array's own, and whose strides, of the
// first `rank` numbers there, are the caller's; they live as long as the
// tensor. HIDET_USAGE for elements that DLPack has not, and for such sizes.
// "sim" has the host's memory.
HIDET_API hidet_status_t hidet_array_to_dlpack(const hidet_device_t *device,
                                               hidet_array_t *array,
                                               int64_t *strides, void *tensor);

// A session of the model on a device; device NULL: the reference evaluator,
// which compiles nothing. Nothing is compiled here: that is done for the first
// run with inputs of other shapes than any session of the model had on the
// device before. The session is ended by hidet_session_destroy(), before the
// model and the device. One thread at a time may use it; sessions are for side
// by side.
HIDET_API hidet_status_t hidet_session_create(hidet_model_t *model,
                                              hidet_device_t *device,
                                              hidet_session_t **session);
HIDET_API void hidet_session_destroy(hidet_session_t *session);

// Runs it and returns when the run is done. inputs and outputs: one for each,
// in order; HIDET_USAGE otherwise, and where an input has not the type or shape
// that it must have. The inputs are only read. outputs take type, shape and
// data of the results, which belong to the session and are valid until its next
// run or its end. After an error they are all zero. Of an input that is one
// with an output (hidet_model_set_inout()) data may be NULL: it is what the
// last run left, whose type and shape are given; of the output data is NULL.
HIDET_API hidet_status_t hidet_session_run(hidet_session_t *session,
                                           const hidet_array_t *inputs,
                                           size_t num_inputs,
                                           hidet_array_t *outputs,
                                           size_t num_outputs);

// Brings what the last run left of an output that is one with an input to the
// host: *array, whose data belong to the session and are valid until its next
// run or its end. HIDET_USAGE for other outputs, and where no run left it (or
// one that failed).
HIDET_API hidet_status_t hidet_session_read(hidet_session_t *session,
                                            size_t output,
                                            hidet_array_t *array);

// What follows is for inputs and outputs that lie in the device's memory: of an
// array, data is an address there (for "sim", which is the host, a pointer),
// row-major, from a multiple of 16 bytes on, of a type of one byte or more.

// What comes out for inputs of these types and shapes, whose data are not
// looked at: outputs take type and shape. Compiles where that is new.
// HIDET_UNSUPPORTED where shapes depend on what is in the inputs (or nothing is
// left to run): hidet_session_run() runs that.
HIDET_API hidet_status_t hidet_session_prepare(hidet_session_t *session,
                                               const hidet_array_t *inputs,
                                               size_t num_inputs,
                                               hidet_array_t *outputs,
                                               size_t num_outputs);

// Enqueues a run, and returns. outputs are of the types and shapes that
// hidet_session_prepare() says, and lie apart from each other and from the
// inputs; nothing is copied, but where one executable is for all sizes up to a
// bound (hidet_model_set_buckets()): there inputs and outputs are, on the
// stream. stream: a CUstream of the device's primary context, NULL the default
// stream; "sim" has none, and is done at return. Of a stream that is being
// captured the run becomes part of the graph: on these tensors, and in the
// session's memory, so that the session outlives the graph, and has no run on
// another stream while that runs; HIDET_USAGE where it was not prepared for
// such inputs, HIDET_UNSUPPORTED with bounds, or where an input and an output
// are one and not the caller's tensor, in a run before, too. Runs of a session
// follow one another, whatever their streams. Where addresses are those of the
// session's last run of these shapes, it takes one call of the driver and no
// memory. An input that is one with an output is copied into the session's
// memory, or has data NULL, as in hidet_session_run(); the output's are not
// looked at, unless they are the input's: then the run is on them, in place
// where that can be, and the session has nothing for later runs
// (HIDET_UNSUPPORTED where an executable of bounds would be run so).
// HIDET_USAGE for a session without a device.
HIDET_API hidet_status_t hidet_session_enqueue(
    hidet_session_t *session, const hidet_array_t *inputs, size_t num_inputs,
    const hidet_array_t *outputs, size_t num_outputs, void *stream);

// Returns when everything that was enqueued has been done; what went wrong
// there is reported here, if not before.
HIDET_API hidet_status_t hidet_session_wait(hidet_session_t *session);

// Objects of another library that a session's weights were taken from, and what
// they said then: where elements lie, and how often they were written. NULL: an
// object is no more. `address` stores the first and returns 0, or something
// else where there is none. All belong to the caller.
typedef struct hidet_sources {
  const void *const *objects;
  size_t num_objects;
  int32_t (*address)(const void *object, void **result);
  int64_t (*version)(const void *object);
  void *const *addresses;
  const int64_t *versions;
} hidet_sources_t;

// Whether all say so now, to be asked before each run: 1 or 0, as where one is
// no more. None is asked for its version before all have said their address.
// Any thread.
HIDET_API int hidet_sources_unchanged(const hidet_sources_t *sources);

HIDET_C_END

#endif
