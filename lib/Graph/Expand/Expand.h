// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From operators to tasks, for inputs of known shapes: a walk through a graph
// that computes every shape, folds what is known by the reference evaluator,
// takes the branch of an If and the turns of a Loop, and puts tasks for all
// other nodes. What it makes is again a graph (docs/IR.md), whose shapes are
// numbers and whose nodes are tasks and reshapes.
//
// Where a shape or a branch depends on a value that is not known, the walk
// stops: the graph so far is a segment, to be run; then the value is known and
// the walk goes on.
#ifndef HIDET_GRAPH_EXPAND_EXPAND_H
#define HIDET_GRAPH_EXPAND_EXPAND_H

#include "Graph/Bind/Binding.h"

typedef struct hd_expander hd_expander_t;

// What an operator finds by looking at all elements of its operands, on the
// host (which are not zero, which boxes are left): the walk needs to know how
// many alone, and goes on with values whose elements it does not look at.
typedef struct hd_find hd_find_t;
typedef struct hd_finding {
  hd_context_t *context;
  hd_arena_t *arena;
  const hd_find_t *find;
  const hd_host_tensor_t *const *inputs; // NULL: left out.
  const hd_host_tensor_t **outputs;      // To be set, made in the arena.
} hd_finding_t;

enum { HD_FIND_INPUTS = 5, HD_FIND_OUTPUTS = 4 };

struct hd_find {
  bool (*run)(hd_finding_t *finding); // False after an error.
  const hd_node_t *node;              // For messages.
  int64_t options[2];                 // What the node says besides.
  uint32_t num_inputs, num_outputs;
  const hd_value_t *inputs[HD_FIND_INPUTS]; // NULL: left out.
  // A size of -1 is how many were found, at most so many.
  hd_tensor_type_t outputs[HD_FIND_OUTPUTS];
  int64_t most;
};

typedef enum hd_expand_state {
  HD_EXPAND_FAILED, // After errors.
  HD_EXPAND_MORE,   // The segment's outputs are needed to go on.
  HD_EXPAND_DONE,   // The last segment.
} hd_expand_state_t;

// arena: of what is made; the module's, or one that ends before it.
// inputs: type and shape of each of the graph's inputs; data[i] (data may be
// NULL) is what is in it where the walk may look at it, else NULL: its shapes
// and branches may depend on it.
hd_expander_t *hd_expander_create(hd_module_t *module, hd_arena_t *arena,
                                  const hd_graph_t *graph,
                                  const hd_tensor_type_t *inputs,
                                  const hd_host_tensor_t *const *data);

// Before the first run: has the graph be the same for other sizes, where that
// can be. Small tasks are evaluated, or put, as that expander, of the same
// graph for other sizes, has done it (NULL: as ever, to be followed); it
// outlives this one. A reshape to the shape that is there is put, too.
void hd_expander_follow(hd_expander_t *expander, const hd_expander_t *leader);

// What input i has become: the value that segments take.
const hd_value_t *hd_expander_input(const hd_expander_t *expander, size_t i);

// Walks on. *segment is a new graph, with nodes or without. Its inputs are
// inputs of the whole (the first time) or values that earlier segments gave,
// the same pointers. Its outputs: DONE: those of the whole, in order, and
// constants may be among them. MORE: values that the next walk needs to know
// (hd_expander_give()) or later segments use.
hd_expand_state_t hd_expander_run(hd_expander_t *expander,
                                  const hd_graph_t **segment);
// The value that stopped the walk.
const hd_value_t *hd_expander_wanted(const hd_expander_t *expander);
// What is to be found in it, and in the others that it names, whose elements
// the walk does not need then; NULL: it needs the elements.
const hd_find_t *hd_expander_find(const hd_expander_t *expander);
// So many were found: the walk goes on with values for what was, one for each
// output, which segments take.
const hd_value_t *const *hd_expander_found(hd_expander_t *expander,
                                           int64_t count);
// Finds it; how many were.
bool hd_find_run(hd_context_t *context, hd_arena_t *arena,
                 const hd_find_t *find, const hd_host_tensor_t *const *inputs,
                 const hd_host_tensor_t **outputs, int64_t *count);
// Whether shapes or branches depend on what is in the inputs: then another run
// with inputs of the same shapes needs a walk of its own.
bool hd_expander_looked(const hd_expander_t *expander);
// Gives it; the data must live as long as the expander.
void hd_expander_give(hd_expander_t *expander, const hd_value_t *value,
                      const hd_host_tensor_t *data);

// Every node whose operator is not supported, without running: an error E1104
// for each operator, which names its nodes. True where there is none.
bool hd_expander_check(hd_module_t *module, const hd_graph_t *graph);

#endif
