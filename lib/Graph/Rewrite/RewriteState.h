// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of rewriting share: RewriteGraph.c (a graph that changes),
// RewriteFold.c (its constants), RewriteBytes.c (tables), RewriteAlike.c
// (constants that are one number), RewriteInOut.c (from a graph and back),
// RewriteMatch.c, RewriteApart.c, RewriteApply.c, RewriteRequire.c (what is
// asked of constants), RewriteTerms.c (attributes under a binding),
// RewriteProve.c.
#ifndef HIDET_GRAPH_REWRITE_REWRITESTATE_H
#define HIDET_GRAPH_REWRITE_REWRITESTATE_H

#include "Graph/Bind/Binding.h"
#include "Graph/Rewrite/Rewrite.h"
#include "Support/Map.h"

typedef struct hd_rw_node hd_rw_node_t;

typedef struct hd_rw_value {
  const hd_value_t *value; // Its name and label; changes hands.
  hd_tensor_type_t type;
  bool constant;                // Depends on constants alone.
  bool asked;                   // known was asked for.
  bool fresh;                   // Made by a step; its name is nobody's yet.
  uint32_t num_outputs;         // How often the graph gives it.
  hd_rw_node_t *def;            // NULL: an input or a constant.
  HD_VEC(hd_rw_node_t *) users; // One for each operand that it is.
  const hd_host_tensor_t *known;
} hd_rw_value_t;

struct hd_rw_node {
  hd_node_t node; // Its values are those that follow.
  hd_rw_value_t **inputs;
  hd_rw_value_t **outputs; // An entry is NULL where nobody asks for it.
  hd_rw_node_t *previous, *next;
  bool dead;
  uint8_t visit; // Of the walk that is going on.
  uint32_t rank; // Of a node not above that of those that need it.
};

typedef struct hd_rw_graph {
  hd_module_t *module;
  hd_arena_t *arena; // The module's.
  const hd_graph_t *graph;
  hd_rw_node_t *first, *last; // In order, as far as steps have kept it.
  HD_VEC(hd_rw_value_t *) outputs;
  HD_VEC(hd_rw_value_t *) constants;
  hd_ptr_map_t values; // From hd_value_t of the graph.
  hd_key_map_t names;
  hd_key_map_t known;            // Nodes, by what they compute.
  hd_key_map_t answers;          // See hd_rw_require().
  hd_precision_t precision;      // That the graph will be compiled for.
  HD_VEC(hd_rw_node_t *) made;   // By hd_rw_put(), since it was emptied.
  HD_VEC(hd_rw_node_t *) folded; // Whose results are constants; in no list.
  bool changed;
} hd_rw_graph_t;

// --- RewriteInOut.c ---

// False after an error: the graph is not expanded.
bool hd_rw_begin(hd_rw_graph_t *g, hd_module_t *module,
                 const hd_graph_t *graph);
const hd_graph_t *hd_rw_finish(hd_rw_graph_t *g);

// --- RewriteFold.c ---

// The elements of a small constant; NULL where they are not known. *failed is
// set after an error.
const hd_host_tensor_t *hd_rw_known(hd_rw_graph_t *g, hd_rw_value_t *value,
                                    bool *failed);
// A constant of its own.
hd_rw_value_t *hd_rw_constant(hd_rw_graph_t *g, const char *base,
                              const hd_host_tensor_t *data);
// Sets the outputs of a node of a task for such operands. False after an error.
bool hd_rw_evaluate(hd_rw_graph_t *g, const hd_node_t *node,
                    const hd_host_tensor_t *const *data, const char *base,
                    hd_rw_value_t **outputs);
// Sets the outputs of a node where they can be computed now, as hd_rw_put()
// takes it. False after an error.
bool hd_rw_fold(hd_rw_graph_t *g, const hd_node_t *node,
                hd_rw_value_t *const *inputs, const hd_tensor_type_t *types,
                const char *base, hd_rw_value_t **outputs);

// --- RewriteGraph.c ---

// A value of its own, with a name that nobody has.
hd_value_t *hd_rw_value_make(hd_rw_graph_t *g, const char *base,
                             const hd_tensor_type_t *type);
// What the graph that changes knows of a value.
hd_rw_value_t *hd_rw_enter(hd_rw_graph_t *g, const hd_value_t *value,
                           const hd_tensor_type_t *type);
hd_rw_value_t *hd_rw_enter_constant(hd_rw_graph_t *g, const hd_value_t *value,
                                    const hd_tensor_type_t *type);
void hd_rw_add_user(hd_rw_graph_t *g, hd_rw_value_t *value, hd_rw_node_t *user);
bool hd_rw_is_used(const hd_rw_value_t *value); // NULL: it is not.
// before: NULL: at the end.
void hd_rw_insert(hd_rw_graph_t *g, hd_rw_node_t *node, hd_rw_node_t *before);
void hd_rw_sort(hd_rw_graph_t *g); // Each node after what it needs.
// Puts nodes into order, shares equal ones, computes constants.
bool hd_rw_settle(hd_rw_graph_t *g);
// The results of a node with that operator, operands and attributes (node
// holds all but values): of an equal one that is there, or computed, or of a
// new one, put before `before`. given: an output of the graph that they take
// the place of, or NULL: no equal node's results do, but its own. base: what
// names are made from. NULL after an error.
hd_rw_value_t **hd_rw_put(hd_rw_graph_t *g, const hd_node_t *node,
                          hd_rw_value_t *const *inputs,
                          const hd_tensor_type_t *types, hd_rw_node_t *before,
                          const char *base, const hd_rw_value_t *given);
// What uses old uses value instead, outputs of the graph too, and what nobody
// uses any more is left out. An output of the graph keeps its name: see
// hd_rw_can_replace().
void hd_rw_replace(hd_rw_graph_t *g, hd_rw_value_t *old, hd_rw_value_t *value);
bool hd_rw_can_replace(const hd_rw_value_t *old, const hd_rw_value_t *value);
void hd_rw_drop(hd_rw_graph_t *g, hd_rw_node_t *node); // If nobody uses it.

// --- RewriteBytes.c ---

// Bytes that follow from other bytes, element by element, are looked up in a
// table where computing them takes long. False after an error.
bool hd_rw_look_up_bytes(hd_rw_graph_t *g, bool explains);
// Whether each element of the one result is computed of the same element of the
// operands alone, whatever their shape; what it takes is added to the cost.
bool hd_rw_is_by_element(const hd_node_t *node, unsigned *cost);

// --- RewriteAlike.c ---

// Constants whose elements are all alike become numbers where they are spread
// over a result. False after an error.
bool hd_rw_spread_numbers(hd_rw_graph_t *g, bool explains);

// --- RewriteMatch.c ---

typedef struct hd_rule_step {
  const hd_rule_node_t *node;
  const hd_rule_value_t *from; // Met before: it gives it, or else uses it.
                               // NULL: the first one.
  bool defines;
  bool swaps; // Its two operands may stand in either order.
} hd_rule_step_t;

typedef struct hd_rule {
  const hd_rewrite_t *rewrite;
  hd_rule_step_t *steps; // As many as nodes on the left.
  uint32_t num_steps;
  bool *is_read;        // Of each value: terms read its element.
  bool *is_inner;       // Of each value: it is gone afterwards.
  uint32_t num_tensors; // Of the signature.
  int64_t count;
  // Room for a match; most begin and come to nothing.
  struct hd_rw_value **values;
  struct hd_rw_node **nodes;
  uint32_t *met;
  bool is_late; // Used when rewriting should have ended.
} hd_rule_t;

typedef struct hd_rw_match {
  hd_rw_graph_t *g;
  const hd_rule_t *rule;
  hd_arena_t *scratch;
  hd_rw_value_t **values; // Of the rule's values; NULL: not met.
  hd_rw_node_t **nodes;   // Of the steps.
  uint32_t num_met;       // Values, whose indices the rule has room for.
  const hd_task_binding_t *binding;
  // Of the right side, by value and by node:
  hd_tensor_type_t *types;
  hd_node_t *made;
  const hd_tensor_type_t **made_types; // Of what they give.
  bool failed;                         // After an error.
} hd_rw_match_t;

hd_rule_t *hd_rule_make(hd_arena_t *arena, const hd_rewrite_t *rewrite);
// The operator of the node that a match begins with.
const void *hd_rule_key(const hd_rule_t *rule);
const void *hd_rw_node_key(const hd_node_t *node);
bool hd_rw_match(hd_rw_match_t *m, hd_rw_node_t *root);

// --- RewriteLists.c ---

// Whether each node that has operands, of a rule read for one of each list, has
// some with so many.
bool hd_rewrite_keeps_operands(const hd_rewrite_t *rewrite,
                               const uint32_t *counts);
// Whether the rule for so many operands of each list was used; the graph is
// another one then.
typedef bool hd_rw_lists_fn_t(void *argument, const uint32_t *counts);
// Of a rule with lists, made for one of each: asks for each way to divide the
// operands of nodes around the root among the lists, until one is used.
bool hd_rw_walk_lists(const hd_rule_t *rule, hd_arena_t *scratch,
                      const hd_rw_node_t *root, hd_rw_lists_fn_t *use,
                      void *argument);

// --- RewriteApart.c ---

// Whether what the rule says to be apart is; true where it says nothing.
bool hd_rw_are_apart(hd_rw_match_t *m);

// --- RewriteApply.c ---

// What the right side's nodes are under the match's binding; false where they
// do not fit together, or what they give has another type.
bool hd_rw_plan(hd_rw_match_t *m);
// Does it; *changed where that was something. False after an error.
bool hd_rw_apply(hd_rw_match_t *m, bool *changed);

// --- RewriteRequire.c ---

// Whether what a rule requires is so: node is the rule's, made what it is under
// the match's binding. Not where the constants are not known. m->failed is set
// after an error.
bool hd_rw_require(hd_rw_match_t *m, const hd_rule_node_t *node,
                   const hd_node_t *made);

// --- Magnitudes.c ---

// out, f64 and zero: of x, a float that may be unaligned, the largest
// magnitudes along the axes where out has 1, which else has its shape. NaN is
// the largest.
void hd_magnitudes(hd_arena_t *arena, const hd_host_tensor_t *x,
                   hd_host_tensor_t *out);

// --- RewriteTerms.c ---

typedef HD_VEC(const hd_attribute_t *) hd_attribute_list_t;

// What a rule's attribute is under a binding; NULL where it has no value.
hd_attribute_t *hd_rule_evaluate(const hd_rule_attribute_t *a,
                                 const hd_task_binding_t *binding,
                                 hd_precision_t precision, hd_arena_t *arena);
bool hd_rule_attributes(const hd_rule_node_t *node,
                        const hd_task_binding_t *binding,
                        hd_precision_t precision, hd_arena_t *arena,
                        hd_attribute_list_t *list);
// What a node's attributes say of the signature's names, added to the list;
// false where they contradict it.
bool hd_rule_collect(const hd_rule_node_t *node,
                     const hd_attribute_t *const *attributes,
                     uint32_t num_attributes, hd_arena_t *arena,
                     hd_attribute_list_t *list);
// Whether a node's other attributes are what the rule wants.
bool hd_rule_check(const hd_rule_node_t *node,
                   const hd_attribute_t *const *attributes,
                   uint32_t num_attributes, const hd_task_binding_t *binding,
                   hd_arena_t *arena);
// The type that is written of a value that the right side gives.
hd_tensor_type_t hd_rule_written_type(const hd_task_binding_t *binding,
                                      const hd_rule_value_t *value);
int64_t hd_tensor_type_count(const hd_tensor_type_t *type); // Saturates.

#endif
