// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models: a graph that does not change any more, for instance that of an ONNX
// file, from which sessions (hidet/Session.h) are made. Any number of threads
// may use a model at once, with a session each: its weights are on a device
// once, and code for inputs of given shapes is made once, while others who want
// it wait.

#ifndef HIDET_MODEL_H
#define HIDET_MODEL_H

#include "hidet/Device.h"

HIDET_C_BEGIN

typedef struct hidet_model hidet_model_t;

enum { HIDET_MAX_RANK = 16 };

// What is known of an input or an output before a run.
typedef struct hidet_value {
  const char *name; // As the model names it. Lives as long as the module.
  const char *type; // NULL: not known.
  int rank;         // -1: not known.
  int64_t shape[HIDET_MAX_RANK]; // -1: the size varies, or is not known.
} hidet_value_t;

// Reads an ONNX model, or one that was saved (ending in .hidet). On HIDET_OK
// *module is a new module with the graph `main`, or the one that was saved; it
// keeps the model's file mapped until hidet_module_destroy().
HIDET_API hidet_status_t hidet_module_import(hidet_context_t *context,
                                             const char *path,
                                             hidet_module_t **module);

// A model of a graph of the module; graph NULL: the last one, or of a module
// that hidet_model_save() wrote the one it wrote. The module
// changes no more: calls that would change it end with HIDET_USAGE until the
// model has ended. It is compiled in the module's context, so other calls on
// that wait then. The model is ended by hidet_model_destroy(), after its
// sessions and before the module.
HIDET_API hidet_status_t hidet_model_create(hidet_module_t *module,
                                            const char *graph,
                                            hidet_model_t **model);
// The same of a file, ONNX, (ending in .hir) the language, its last graph, or
// (ending in .hidet) what hidet_model_save() wrote: in a context of its own
// with the limits of the one given. Of the last, what was compiled for a device
// like the session's, by this build of the library, is loaded and not compiled,
// and the precision is what it was. It holds machine code, which is run: of a
// file from somebody who is not trusted use hidet_model_set_untrusted().
HIDET_API hidet_status_t hidet_model_load(hidet_context_t *context,
                                          const char *path,
                                          hidet_model_t **model);
HIDET_API void hidet_model_destroy(hidet_model_t *model);

// Writes the model to a file, with its weights and all code that its sessions
// on the device have had compiled (and that was not ended since, for want of
// room). The file, whose name ends in .hidet, appears when all of it is
// written. HIDET_USAGE where the model has no session there, HIDET_UNSUPPORTED
// where nothing was compiled, or what was is not kept, since shapes depend on
// what is in the inputs.
HIDET_API hidet_status_t hidet_model_save(hidet_model_t *model,
                                          const hidet_device_t *device,
                                          const char *path);

// The seven that follow: before the model's first session, HIDET_USAGE after.

// Of a file that hidet_model_save() wrote the graph and the weights alone are
// used, and all code is made anew. Does nothing for other models.
HIDET_API hidet_status_t hidet_model_set_untrusted(hidet_model_t *model);

// Of what is compiled it is told why: a call that compiles leaves remarks in
// hidet_messages(), lines as the tools' --explain prints. `plan:` names the
// kernels of a node and those in one with it, in the order in which they run;
// `schedule:` says what a template is expected to take, at the first node that
// it serves; a note has that place at the others' `plan:`.
HIDET_API hidet_status_t hidet_model_set_explained(hidet_model_t *model);

// The elements of the graph's constant of that name are these, wherever the
// text says that they are: bytes of them, row-major, as many as its type and
// shape take (elements below a byte packed, the first in the low bits). They
// are read where they are while the module lives, by later models of it, too.
// HIDET_USAGE where there is no such constant, of another size, and where the
// module has another model, which would find them changed.
HIDET_API hidet_status_t hidet_model_set_weight(hidet_model_t *model,
                                                const char *name,
                                                const void *data, size_t bytes);

// "model" (the default: as the model says), "f32", "tf32", "f16" or "bf16":
// f32, or products of narrower operands with the rest in f32.
HIDET_API hidet_status_t hidet_model_set_precision(hidet_model_t *model,
                                                   const char *precision);

// What is compiled takes the schedules that `hidet-run --tune` has found to be
// the fastest, on a device of the same name and by the same build of the
// library, and kept in the file (docs/TUNING.md); what is not known is chosen
// by what is expected. NULL: all is. A file that is not there holds nothing,
// nor does one that is damaged: the first session on a device warns of it.
HIDET_API hidet_status_t hidet_model_set_measured(hidet_model_t *model,
                                                  const char *file);

// One executable for all values of a size up to each of count bounds
// (ascending), or up to each power of two from 4 on where count is 0 (and to
// the largest size that the model goes with, where a power is beyond that);
// size: a dimension of the model, or the axis of an input whose size it leaves
// open ("image_0"). Larger values have an executable each, as 0 and 1 have, and
// so have all where the model does not allow it: a branch or a loop that the
// size decides, a scatter. What a compiled model's file has is used where the
// bounds are the same. HIDET_USAGE where there is no such size. May be called
// for several.
HIDET_API hidet_status_t hidet_model_set_buckets(hidet_model_t *model,
                                                 const char *size,
                                                 const int64_t *bounds,
                                                 size_t count);

// An input and an output are one tensor, of which each session has its own on
// its device from run to run: a cache of keys and values. What comes out of a
// run is what comes in at the next (hidet/Session.h says how it begins). Where
// the model puts what is new into it (a Concat in a bucket of sizes, a
// TensorScatter, a scatter), and reads what was there nowhere else, it is put
// in place and nothing is copied; else a run copies on the device. Both by the
// names that hidet_model_input() and hidet_model_output() say; tensors of one
// type, of a byte or more. HIDET_USAGE for others, and where one of them has a
// pair already. May be called for several.
HIDET_API hidet_status_t hidet_model_set_inout(hidet_model_t *model,
                                               const char *input,
                                               const char *output);

HIDET_API size_t hidet_model_num_inputs(const hidet_model_t *model);
HIDET_API size_t hidet_model_num_outputs(const hidet_model_t *model);
// i is less than their number, or *value is one of which nothing is known.
HIDET_API void hidet_model_input(const hidet_model_t *model, size_t i,
                                 hidet_value_t *value);
HIDET_API void hidet_model_output(const hidet_model_t *model, size_t i,
                                  hidet_value_t *value);

// How often the model was compiled on a device so far: for so many sets of
// shapes, or, where shapes depend on what is in the inputs, segments and
// buckets of what they look at; or again where they had been ended for want of
// room.
HIDET_API size_t hidet_model_num_compiled(hidet_model_t *model,
                                          const hidet_device_t *device);

HIDET_C_END

#endif
