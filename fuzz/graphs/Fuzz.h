// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random graphs of the operator library, run on the simulator and compared with
// the reference evaluator.
//
// A graph is made with its values in hand: each node is evaluated as soon as it
// is there, and stays if its results are tame. So indices are good, divisors
// are not 0 and nothing overflows, without a rule for each chain of operators.
//
// What a difference means is measured. Beside each value go FUZZ_NOISY others,
// of inputs, results and what is summed on the way to a result disturbed as
// another order of summing disturbs them: by units of their type's last place.
// A node whose results these move too far is
// not taken; an integer or a truth that they move is not, either. Two runs may
// differ by a multiple of what remains, so that a difference is a bug.
#ifndef HIDET_FUZZ_GRAPHS_FUZZ_H
#define HIDET_FUZZ_GRAPHS_FUZZ_H

#include "Graph/Bind/Binding.h"
#include "Random.h"

enum {
  FUZZ_NOISY = 2,
  FUZZ_MAX_INPUTS = 16, // Of a task, its attributes among them.
  FUZZ_MAX_TASKS = 320,
  FUZZ_MAX_RULES = 256,
};

typedef struct fuzz_node fuzz_node_t;

typedef struct fuzz_value {
  hd_value_t *value;
  hd_host_tensor_t *data, *noisy[FUZZ_NOISY];
  fuzz_node_t *from; // NULL: a leaf.
  bool constant;     // A leaf that is no input.
  unsigned users;
  double low, high; // Of the finite elements; 0 and 0 where there is none.
  bool infinite;    // There are others.
} fuzz_value_t;

struct fuzz_node {
  hd_node_t node;
  size_t task;                      // In fuzz_tasks.
  const hd_task_binding_t *binding; // NULL: a reshape, or a loop.
  struct fuzz_graph *body;          // Of a loop.
  // Of its leaves those that the inputs go to, in their order.
  fuzz_value_t **params;
  fuzz_value_t *inputs[FUZZ_MAX_INPUTS], *outputs[FUZZ_MAX_INPUTS];
};

typedef struct fuzz_graph {
  hd_context_t *context;
  hd_arena_t arena;
  random_t random;
  int64_t sizes[4]; // What axes are like, so that values fit each other.
  hd_scalar_t type; // What most values are.
  bool wide;        // All types, not that one.
  bool hollow;      // Some sizes are 0; of single tasks, not of motifs.
  HD_VEC(fuzz_value_t *) values;
  HD_VEC(fuzz_node_t *) nodes;
  HD_VEC(fuzz_value_t *) outputs;
  HD_VEC(hd_host_tensor_t *) tensors; // To be ended.
  HD_VEC(struct fuzz_graph *) bodies; // Of loops, also of those refused.
} fuzz_graph_t;

// --- Rules.c: what is known of tasks besides their signatures ---

typedef struct fuzz_rule {
  const char *task;
  const char *text; // See Rules.def.
} fuzz_rule_t;

// "" where nothing is.
const char *fuzz_rule_of(const char *task);
// What a rule's text says of a name, up to the next space: `name=...` (mark
// '='), `name:...` (':'); NULL where it does not.
const char *fuzz_rule_find(const char *text, const char *name, char mark);
bool fuzz_rule_has(const char *text, const char *word);

// What a name stands for in a rule, on an axis of its pack; false where it has
// no value yet.
typedef bool (*fuzz_lookup_t)(void *argument, const char *name, size_t size,
                              unsigned axis, double *value);
// The least and the greatest that a text allows: one of its choices (|) at
// random, a range (..) or an expression. False where a name has no value.
bool fuzz_rule_range(const char *text, random_t *random, fuzz_lookup_t lookup,
                     void *argument, unsigned axis, double *low, double *high);

// --- Tasks.c: the tasks there are, and how often each was taken ---

// The library's in its order, then `reshape` and `loop`.
extern const char *fuzz_tasks[FUZZ_MAX_TASKS];
extern size_t fuzz_num_tasks;
void fuzz_tasks_init(void);
size_t fuzz_task_at(const char *name);

// --- Values.c ---

// Random: least .. greatest; true once in so many times.
int64_t fuzz_in(fuzz_graph_t *g, int64_t least, int64_t greatest);
bool fuzz_once_in(fuzz_graph_t *g, unsigned times);
double fuzz_real(fuzz_graph_t *g, double low, double high);
int64_t fuzz_size(fuzz_graph_t *g);                       // Of an axis.
hd_scalar_t fuzz_type(fuzz_graph_t *g, uint32_t scalars); // Of a set.

hd_tensor_type_t fuzz_type_of(const fuzz_value_t *value);
int64_t fuzz_count(const hd_tensor_type_t *type);
// An input or a constant. low > high: what suits the type.
fuzz_value_t *fuzz_leaf(fuzz_graph_t *g, const hd_tensor_type_t *type,
                        double low, double high, bool constant);
// The same with elements that are there; the tensor is the value's.
fuzz_value_t *fuzz_leaf_of(fuzz_graph_t *g, hd_host_tensor_t *data,
                           bool constant);
// A value that a node gives, not entered into the graph yet. data and noisy are
// taken over.
fuzz_value_t *fuzz_result(fuzz_graph_t *g, const char *name,
                          hd_host_tensor_t *data,
                          hd_host_tensor_t *const *noisy);
// Moves elements by units in the last place as rounding may have; nothing of
// integers. single: units of f32, of f64 too. terms: about how many were added
// for an element. seed picks how.
void fuzz_disturb(hd_host_tensor_t *tensor, bool single, double terms,
                  uint64_t seed);
// The furthest that two tensors of one type are apart; INFINITY where one is
// not finite and the other is something else.
double fuzz_apart(const hd_host_tensor_t *a, const hd_host_tensor_t *b);
double fuzz_scale(const hd_host_tensor_t *tensor); // Greatest finite |x|.
bool fuzz_is_float(hd_scalar_t type);
// Of a type, relative: half a unit in the last place of 1.
double fuzz_epsilon(hd_scalar_t type);

// --- Nodes.c: nodes that stay where their results are tame ---

// NULL where the node is refused. outputs of the task that are asked for are
// those whose bit in wanted is set. Entered into the graph.
fuzz_node_t *fuzz_node(fuzz_graph_t *g, const char *task,
                       fuzz_value_t *const *inputs, uint32_t num_inputs,
                       const hd_attribute_t *const *attributes,
                       uint32_t num_attributes, unsigned wanted);
fuzz_value_t *fuzz_reshape(fuzz_graph_t *g, fuzz_value_t *x,
                           const hd_tensor_type_t *type);
// Evaluates a node on other inputs; outputs are made in the graph's list of
// tensors, and disturbed where it computes, but for a seed of 0. False after an
// error, which is forgotten.
bool fuzz_evaluate(fuzz_graph_t *g, const fuzz_node_t *node,
                   const hd_host_tensor_t *const *inputs,
                   hd_host_tensor_t **outputs, uint64_t seed);
// The same of all nodes: now has a tensor for each leaf, and gets the others.
// random: of the seeds; NULL: nothing is disturbed.
bool fuzz_evaluate_graph(fuzz_graph_t *g, const hd_host_tensor_t **now,
                         random_t *random);
// Whether a node's rule has the word.
bool fuzz_node_has(const fuzz_node_t *node, const char *word);

// --- Loops.c: loops, turn by turn ---

// An empty body of a loop of the graph, which ends it.
fuzz_graph_t *fuzz_body(fuzz_graph_t *g);
// A loop around a body whose outputs are there, states first. inner: leaves of
// the body that outer goes to, states, then what is scanned. The body's other
// leaves that are no constants become inputs of the graph. NULL where it is
// refused.
fuzz_node_t *fuzz_loop(fuzz_graph_t *g, fuzz_graph_t *body,
                       fuzz_value_t *const *inner, fuzz_value_t *const *outer,
                       uint32_t states, uint32_t scanned, int64_t steps);
bool fuzz_evaluate_loop(const fuzz_node_t *node,
                        const hd_host_tensor_t *const *inputs,
                        hd_host_tensor_t **outputs, uint64_t seed);
// A node without a task, not entered; the inputs' values are its operands.
fuzz_node_t *fuzz_new_node(fuzz_graph_t *g, const char *op,
                           fuzz_value_t *const *inputs, uint32_t num_inputs);
// Evaluates such a node and enters it, where its results are tame; NULL.
fuzz_node_t *fuzz_take(fuzz_graph_t *g, fuzz_node_t *node, unsigned wanted);

// --- Pick.c: a task's inputs and attributes, by its signature and its rule ---

// A node of that task; NULL where none came out. first may be NULL: any value;
// else one of the inputs that fits it.
fuzz_node_t *fuzz_pick(fuzz_graph_t *g, const char *task, fuzz_value_t *first);
// A value with elements in a range, made from one by further nodes; NULL.
fuzz_value_t *fuzz_bring(fuzz_graph_t *g, fuzz_value_t *x, double low,
                         double high);

// --- Motifs.c: chains of nodes that stand together in models ---

bool fuzz_motif(fuzz_graph_t *g);

// --- Patterns.c: what rewrites look for ---

extern const char *fuzz_rules[FUZZ_MAX_RULES]; // The library's rewrites.
extern size_t fuzz_num_rules;
void fuzz_rules_init(hd_context_t *context);
void fuzz_pattern(fuzz_graph_t *g);

// --- Make.c: whole graphs ---

// A new graph of about so many nodes; index and seed decide it.
void fuzz_make(fuzz_graph_t *g, hd_context_t *context, uint64_t seed,
               uint64_t index, unsigned nodes);
void fuzz_end(fuzz_graph_t *g);
// The IR of it, in the graph's arena.
const hd_graph_t *fuzz_ir(fuzz_graph_t *g);

// --- Check.c ---

typedef struct fuzz_options {
  uint64_t seed;
  unsigned nodes;
  bool sanitize, slow; // Of all graphs, not some of them.
  bool unfused, unrewritten;
  bool plant;       // Run with a fault, on `ref`.
  const char *keep; // Where what fails is written; NULL: nowhere.
  unsigned seconds; // For a graph.
} fuzz_options_t;

typedef enum fuzz_verdict {
  FUZZ_SAME,
  FUZZ_DIFFERENT,
  FUZZ_FAILED,    // Not compiled, or not run.
  FUZZ_UNSETTLED, // Different, and rounding may make as much.
  FUZZ_IDENTICAL, // The same, to the bit.
  FUZZ_VERDICTS
} fuzz_verdict_t;

typedef struct fuzz_report {
  fuzz_verdict_t verdict;
  char text[2048]; // What is wrong.
  unsigned launches;
  int64_t rewrites[FUZZ_MAX_RULES]; // How often each was done.
} fuzz_report_t;

// way picks how it is run: sanitized, slow, ref.
void fuzz_check(fuzz_graph_t *g, const fuzz_options_t *options, uint64_t way,
                fuzz_report_t *report);
// Writes the graph, its inputs and what is expected; name.hir, name.in0.npy.
bool fuzz_keep(fuzz_graph_t *g, const char *folder, const char *name);

// --- Plant.c ---

typedef enum fuzz_fault {
  FUZZ_FAULT_OPERATOR,  // Another one.
  FUZZ_FAULT_ORDER,     // Of inputs.
  FUZZ_FAULT_ATTRIBUTE, // An integer is off by one; a number by a hundredth.
  FUZZ_FAULT_ELEMENT,   // Of a leaf, likewise, relative to the greatest.
  FUZZ_FAULTS
} fuzz_fault_t;

// Makes a fault somewhere in what is run; what is expected remains. False where
// no place was found.
bool fuzz_plant(fuzz_graph_t *g, fuzz_fault_t *fault);

// --- Reduce.c ---

// Takes out nodes, each check in a process of its own, as long as the verdict
// remains (died stands for a process that ended by a signal).
void fuzz_reduce(fuzz_graph_t *g, const fuzz_options_t *options, uint64_t way,
                 fuzz_verdict_t verdict, bool died);

#endif
