// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A group of nodes that become one kernel: what each node is to the anchor, and
// what is to be computed where the anchor's kernel loads and stores.
//
// A node that depends on the anchor is an epilogue. Its element is computed
// where the anchor's kernel stores the element that it is made of, and stored
// where the inverse of its index map says. A node that does not depend on the
// anchor is a prologue: it is computed wherever somebody in the group reads it.
// Both are pointwise: one definition without a reduction.
//
// Everything is derived from the nodes' flat tasks.
#ifndef HIDET_FUSION_GROUP_GROUP_H
#define HIDET_FUSION_GROUP_GROUP_H

#include "Fusion/Group/IndexMap.h"
#include "Schedule/Schedule.h"
#include "Support/Map.h"

typedef HD_VEC(uint32_t) hd_numbers_t; // Of nodes, in a graph.

// What groups of one graph share.
typedef struct hd_fusion {
  hd_module_t *module;
  hd_arena_t *arena;
  hd_scheduler_t *scheduler;
  hd_ptr_map_t givers;    // Values to the nodes that give them.
  hd_ptr_map_t readers;   // Values to how many read them.
  hd_ptr_map_t flattened; // Nodes of tasks to what is known of them.
} hd_fusion_t;

// What a node's element is, as a function of its place.
typedef struct hd_pointwise {
  const hd_task_t *flat;
  const hd_definition_t *definition;
} hd_pointwise_t;

// One epilogue, over the indices of the anchor's output.
typedef struct hd_epilogue {
  const hd_node_t *node;
  hd_index_map_t map;
  unsigned scope;                // Within which it is computed.
  const hd_variable_t *variable; // Its value.
} hd_epilogue_t;

// Where a condition holds. Scope 0 is everywhere.
typedef struct hd_guard {
  unsigned outer;
  const hd_index_map_t *map;
} hd_guard_t;

// What is made of one output of the anchor.
typedef struct hd_store_point {
  const hd_value_t *value;
  const hd_index_t *indices[HD_MAX_RANK];
  const hd_term_t *places[HD_MAX_RANK]; // The indices, as terms.
  const hd_variable_t *variable;
  HD_VEC(hd_epilogue_t *) epilogues; // In the order of the nodes.
  HD_VEC(hd_guard_t) scopes;
  const hd_node_t *rows; // Of neighbours of what is stored; NULL: none.
} hd_store_point_t;

typedef struct hd_group {
  hd_fusion_t *fusion;
  const hd_node_t *anchor;
  HD_VEC(hd_store_point_t *) stores; // One for each output that is used.
  hd_ptr_map_t live; // Values of the anchor and of epilogues, to their stores.
  hd_ptr_map_t inlined; // Values of prologues, to their nodes.
  hd_ptr_map_t tensors; // Values that are read, to hd_task_value_t.
  hd_ptr_map_t values;  // The other way round.
  hd_ptr_map_t placed;  // Values of epilogues, to hd_epilogue_t.
  // How large it is (GroupSize.c).
  hd_ptr_map_t counts;   // Values to what is known of who reads them.
  uint64_t terms;        // Computed in all places.
  uint64_t largest;      // Of the elements that the last node changed, terms.
  unsigned tensors_read; // From memory,
  unsigned tensors_kept; // and stored for others.
  size_t own_bytes;      // Of parameters, apart from those tensors.
} hd_group_t;

hd_fusion_t *hd_fusion_create(hd_module_t *module, hd_scheduler_t *scheduler,
                              const hd_graph_t *graph);
// NULL after an error.
hd_flattened_t *hd_fusion_flatten(hd_fusion_t *fusion, const hd_node_t *node);

// Whether a node is pointwise: NULL, or why not. A reshape is, without a
// definition.
const char *hd_fusion_pointwise(hd_fusion_t *fusion, const hd_node_t *node,
                                hd_pointwise_t *pointwise);

// Whether data decide which element of a value a pointwise node reads. That it
// is inside is checked where it is loaded, so it has to be in memory.
bool hd_fusion_reads_by_data(hd_fusion_t *fusion, const hd_node_t *node,
                             const hd_value_t *value);

// How many nodes read a value; that it comes out counts as one.
unsigned hd_fusion_readers(const hd_fusion_t *fusion, const hd_value_t *value);
// The values of these nodes that others read, too, in the nodes' order.
typedef HD_VEC(const hd_value_t *) hd_values_t;
hd_values_t hd_fusion_leaving(const hd_fusion_t *fusion,
                              const hd_node_t *const *nodes, size_t count);

hd_group_t *hd_group_begin(hd_fusion_t *fusion, const hd_node_t *anchor);
// Adds a node that reads what the group computes. NULL, or why that cannot be;
// then the group is as it was.
const char *hd_group_add_epilogue(hd_group_t *group, const hd_node_t *node);
// Takes out the epilogue that was added last.
void hd_group_drop_epilogue(hd_group_t *group, const hd_node_t *node);
// Adds a node that computes rows of a few neighbours of what the group
// computes, and reads nothing else. NULL, or why that cannot be.
const char *hd_group_add_rows(hd_group_t *group, const hd_node_t *node);
void hd_group_drop_rows(hd_group_t *group, const hd_node_t *node);
// Adds a node of which the group reads what it gives. No element may come to be
// made of more than so many terms.
const char *hd_group_add_prologue(hd_group_t *group, const hd_node_t *node,
                                  uint64_t most_terms);
void hd_group_drop_prologue(hd_group_t *group, const hd_node_t *node);

// Whether somebody outside of the group reads a value that it gives.
bool hd_group_is_kept(const hd_group_t *group, const hd_value_t *value);
// The nodes of the group that read a value, one by one; NULL past the last.
const hd_node_t *hd_group_reader(const hd_group_t *group,
                                 const hd_value_t *value, size_t i);

// Whether a value is another one, or what prologues make that one of.
bool hd_group_leads_to(const hd_group_t *group, const hd_value_t *value,
                       const hd_value_t *to);

// The element of a value at a place, which is given by terms, one for each
// axis: what is computed for a prologue, the variable of what is live (at the
// place that is being stored), a load of everything else.
const hd_term_t *hd_group_element(hd_group_t *group, const hd_value_t *value,
                                  const hd_term_t *const *places);
// Adds to a text what of a value stands in terms as a number: the element of a
// constant that has only one.
void hd_group_literal_key(hd_fusion_t *fusion, const hd_value_t *value,
                          hd_buffer_t *key);
// What an epilogue computes.
const hd_term_t *hd_group_epilogue_term(hd_group_t *group,
                                        const hd_epilogue_t *epilogue);
// The tensor that stands for a value in terms.
const hd_task_value_t *hd_group_tensor(hd_group_t *group,
                                       const hd_value_t *value);
const hd_value_t *hd_group_value(const hd_group_t *group,
                                 const hd_task_value_t *tensor);

#endif
