// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An executable of a model in a file (Runtime/Artifact.h): SavedWrite.c writes
// those that a model has, SavedRead.c makes one of what it finds. Its table is
// a row of i64, little-endian:
//
//   HD_SAVED_WORDS  as named below
//   inputs, of the model:  the plan's parameter or -1, a type; of an executable
//                          of bounds that at the bounds, and behind them the
//                          others of its graph (hd_bucket_t)
//   constants, the plan's parameters from first to end:  a WEIGHT or a DATA
//   outputs, of the model: what gives it, which one of those, a type
//
// and a type is the scalar, the rank, and each size.
#ifndef HIDET_RUNTIME_SAVED_H
#define HIDET_RUNTIME_SAVED_H

#include "Runtime/Artifact.h"
#include "Runtime/ModelState.h"

typedef enum hd_saved_word {
  HD_SAVED_MADE_FOR, // Sections,
  HD_SAVED_PLAN,
  HD_SAVED_NAMES,
  HD_SAVED_CODE,    // the first of them.
  HD_SAVED_KERNELS, // How many.
  HD_SAVED_FIRST_CONSTANT,
  HD_SAVED_END_CONSTANT,
  HD_SAVED_BUCKET, // hd_bucket_key(); 0: for these sizes alone.
  HD_SAVED_INOUTS, // hd_saved_inouts_key()
  HD_SAVED_INPUTS,
  HD_SAVED_OUTPUTS,
  HD_SAVED_WORDS
} hd_saved_word_t;

typedef enum hd_saved_output {
  HD_SAVED_PARAM,  // Of the plan.
  HD_SAVED_INPUT,  // Of the model.
  HD_SAVED_AGAIN,  // An output before.
  HD_SAVED_DATA,   // The section of a constant, as the host has it.
  HD_SAVED_STORED, // The plan's parameter of an input, which it is stored in.
  HD_SAVED_GIVERS
} hd_saved_output_t;

// What the code of an executable depends on, beside its text: one that is made
// for another text is not used.
void hd_saved_describe(const hd_model_t *m, hd_buffer_t *out);

// A number for the model's inputs and outputs that are one; 0: there are none.
int64_t hd_saved_inouts_key(const hd_model_t *m);

// Whether a table of bounds, or not, and of such inputs and outputs is one that
// the model may ask for; a remark says why not.
bool hd_saved_is_asked(hd_model_t *m, bool bounds, int64_t inouts);

// Whether a plan's parameter for an input may have an output stored in it.
bool hd_saved_may_store(const hd_model_t *m, const hd_var_t *param,
                        size_t input);
// Whether an output of that type is stored in the plan's parameter of a number,
// an input's of the segment's graph.
bool hd_saved_is_stored(const hd_model_t *m, const hd_turn_t *turn,
                        size_t output, int64_t number,
                        const hd_tensor_type_t *type);
// How many inputs' parameters a plan writes.
size_t hd_saved_count_stores(const hd_turn_t *turn);

// Whether what the file's section says code was made for is here; *ok: false
// after an error. A remark says where it was made.
bool hd_saved_is_here(hd_model_t *m, int64_t number, bool *ok);

// The text of a program's plan with its kernels' heads, and the symbols of the
// kernels in their code, each with a zero behind it.
void hd_saved_print_plan(hd_context_t *context, const hd_program_t *program,
                         hd_buffer_t *text, hd_buffer_t *symbols);
// Such a text as a module, whose entry is the plan; path is for messages.
// *made is the caller's to end, false or not.
bool hd_saved_parse_plan(hd_context_t *context, const char *path,
                         const char *text, size_t size, hd_module_t **made);

// In the model's world: makes of the turn the executable that the model's file
// has for its inputs, or for its bucket. *found: whether it has one. False
// after an error.
bool hd_saved_take(hd_model_t *m, hd_turn_t *turn, bool *found);

// The first words of a table, HD_SAVED_WORDS, and the types of the inputs that
// it is for. False after an error.
bool hd_saved_read_head(hd_artifact_t *file, const hd_graph_t *graph,
                        uint32_t number, int64_t *head,
                        hd_tensor_type_t *types);

// The types of inputs that all executables of a file are for; not found where
// they differ, or are for sizes up to bounds. False after an error.
bool hd_saved_find_types(hd_arena_t *arena, hd_artifact_t *file,
                         const hd_graph_t *graph, hd_tensor_type_t *types,
                         bool *found);

// In the model's world: has the model keep an executable for each set of types
// that its file has one for. False after an error.
bool hd_saved_take_all(hd_model_t *m);

#endif
