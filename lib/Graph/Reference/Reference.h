// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reference evaluator: a task computed as it is written, one element after
// the other. Slow and plain; the other devices are compared with it. It also
// folds constants and shape arithmetic, and is the device `ref`.
#ifndef HIDET_GRAPH_REFERENCE_REFERENCE_H
#define HIDET_GRAPH_REFERENCE_REFERENCE_H

#include "Graph/Bind/Binding.h"

// Computes every output; outputs[i] are made here (hd_host_tensor_init(), with
// the context's budget) and the caller's to end, also after an error (all
// zero). inputs: one for each tensor among the task's inputs. A size that the
// data decides is the output's. Arithmetic is that of docs/IR.md: each
// operation rounded to its type, reductions in row-major order. Reports at loc
// an access outside its tensor; checks the budget now and then.
bool hd_task_evaluate(hd_context_t *context, const hd_task_binding_t *binding,
                      const hd_host_tensor_t *const *inputs,
                      hd_host_tensor_t *outputs, hd_loc_t loc);

// Told of a tensor that a definition gives, an output or a local one, as soon
// as all its elements are there: definitions behind it read what is left there.
typedef void (*hd_reference_made_t)(void *argument,
                                    const hd_definition_t *definition,
                                    const hd_task_value_t *value,
                                    hd_host_tensor_t *tensor);

// hd_task_evaluate(), and made(argument, ...) is called for each tensor.
bool hd_task_evaluate_telling(hd_context_t *context,
                              const hd_task_binding_t *binding,
                              const hd_host_tensor_t *const *inputs,
                              hd_host_tensor_t *outputs, hd_loc_t loc,
                              hd_reference_made_t made, void *argument);

// hd_task_evaluate(), into tensors of the arena, one for each output; NULL
// after an error.
hd_host_tensor_t *const *hd_task_fold(hd_context_t *context, hd_arena_t *arena,
                                      const hd_task_binding_t *binding,
                                      const hd_host_tensor_t *const *inputs,
                                      hd_loc_t loc);

// Whether a task of constants is computed while a graph is made: what is small
// (4,096 elements), but for as many wider elements of more than a few bytes:
// these are weights, which products take as they are.
bool hd_task_is_small(const hd_tensor_type_t *inputs, unsigned num_inputs,
                      const hd_tensor_type_t *outputs, unsigned num_outputs);

// The same of a loop of a graph (IR/Graph/Loop.h).
bool hd_loop_evaluate(hd_module_t *module, const hd_node_t *node,
                      const hd_host_tensor_t *const *inputs,
                      hd_host_tensor_t *outputs);

#endif
