// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Post-scheduling fusion, as in Hidet (ASPLOS'23, section 4.2): which nodes of
// a graph become one kernel, and the kernels themselves.
#ifndef HIDET_FUSION_FUSE_H
#define HIDET_FUSION_FUSE_H

#include "Fusion/Group/Group.h"
#include "Fusion/InPlace.h"
#include "IR/Passes/Pass.h"

// A graph of the same nodes, in groups. Each task that is not pointwise is the
// anchor of a group; epilogues come first, as far as they go, then prologues
// where computing them again costs less than storing them; what is left forms
// groups of pointwise nodes. A prologue that several groups take is there once
// for each. Groups that are there stay as they are. Of graphs whose shapes are
// known and whose nodes are tasks. NULL after an error.
const hd_graph_t *hd_graph_fuse(hd_module_t *module, const hd_graph_t *graph,
                                bool explain);

// A graph in which loops are scans whose states become multiples of themselves
// and something more, element by element, and what else is in their bodies is
// computed for all turns at once. Of tasks with known shapes.
const hd_graph_t *hd_graph_scan_loops(hd_module_t *module,
                                      const hd_graph_t *graph, bool explain);

// A graph in which products whose matrices are computed from constants of fewer
// bits are one node with what computes them, where that is expected to be
// faster than to read the whole matrix, as few rows are, or read them turned;
// the same where none is. Of tasks with known shapes, in their final types,
// before what depends on constants alone is taken out.
const hd_graph_t *hd_graph_fold_weights(hd_module_t *module,
                                        const hd_graph_t *graph, bool explain);

// A graph in which two products of one operand that meet element by element, a
// product and its gate, are one node, and one product of which two columns do,
// where that is expected to be faster: their matrices become one, which
// constants are put together for. Of such graphs, too.
const hd_graph_t *hd_graph_pair_products(hd_module_t *module,
                                         const hd_graph_t *graph, bool explain);

// A graph whose anchors, and nodes of no group, name their schedules: plans
// that are added to the module, one for nodes that compute the same. Those
// that are there are settled. joins: hd_graph_apply_fusion() follows with this
// scheduler, so that a kernel may need what is behind it in its group; else
// each is right by itself. NULL after an error: E0316, E1103, E1104.
const hd_graph_t *hd_graph_schedule_anchors(hd_module_t *module,
                                            hd_scheduler_t *scheduler,
                                            const hd_graph_t *graph,
                                            bool joins);

// The same graph; schedules that are there are made for their nodes' sizes.
// NULL after an error: E0316.
const hd_graph_t *hd_graph_settle(hd_module_t *module, const hd_graph_t *graph);

// Which inputs of an anchor other nodes of its group give, reshapes left aside,
// as hd_surroundings_t has them. group: `count` nodes, in their order.
uint64_t hd_node_computed(const hd_node_t *node, const hd_node_t *const *group,
                          size_t count);

// Which of those, `computed`, are loaded from where elements of a table say.
uint64_t hd_node_gathered(hd_scheduler_t *scheduler, const hd_node_t *node,
                          const hd_node_t *const *group, size_t count,
                          uint64_t computed);

// The input of a node that a tensor of its flat task is; NULL: another of its
// tensors.
const hd_value_t *hd_node_input_of(const hd_node_t *node, const hd_task_t *flat,
                                   const hd_task_value_t *tensor);

// A node that gives `to` as `from` with its axes in this order: axis i is axis
// order[i] of `from`.
const hd_node_t *hd_node_transposing(hd_context_t *context, hd_arena_t *arena,
                                     const hd_value_t *from,
                                     const hd_value_t *to,
                                     const unsigned *order, hd_loc_t loc);

// Nodes that will be one kernel, in their order. Those before the anchor that
// it reads are computed where it loads, but for reshapes.
typedef struct hd_members {
  const hd_fusion_t *fusion; // Of their graph; NULL: the anchor's kernel has
                             // to be right without those behind it, too.
  const hd_node_t *const *nodes;
  size_t count, anchor; // nodes[anchor] is the one to be scheduled.
} hd_members_t;

// A node that names its schedule. group: NULL where it stays alone. NULL after
// an error.
const hd_node_t *hd_node_schedule(hd_module_t *module,
                                  hd_scheduler_t *scheduler,
                                  const hd_node_t *node,
                                  const hd_members_t *group);

// Whether a graph can be scheduled: of tasks, and of known shapes. Reports
// E1104.
bool hd_graph_check_tasks(hd_module_t *module, const hd_graph_t *graph);

// The plan for a graph with schedules; a concatenation that has none, and no
// group, stores its operands in place where nodes give them (Fusion/Views.h):
// the kernels of anchors, into whose loads and stores the rest of their groups
// are put. Its parameters are the graph's inputs, hd_planned_constants(), then
// those of its outputs that hd_planned_outputs() names and that do not lie in
// an input, each in the graph's order. inouts: which do (hd_graph_in_place()).
// A group that cannot be joined after all (a remark says why) becomes
// several kernels. NULL after an error.
const hd_func_t *hd_graph_apply_fusion(hd_module_t *module,
                                       hd_scheduler_t *scheduler,
                                       const hd_graph_t *graph,
                                       const hd_inouts_t *inouts, bool explain);

// Which of the outputs are parameters of the plan: those that are no input, no
// constant and no output before.
const bool *hd_planned_outputs(hd_arena_t *arena, const hd_graph_t *graph);

// The constants that are: the graph's, then those of its loops' bodies.
hd_values_t hd_planned_constants(hd_arena_t *arena, const hd_graph_t *graph);

// Makes a plan, and all that it launches, as items of the module; NULL after an
// error.
typedef const hd_func_t *(*hd_plan_fn_t)(void *argument);

// A plan whose kernels a block of the machine has room for, where other
// candidates of templates see to that: make is called until they do. Of what it
// added to the module, and reported, the last call's is left.
const hd_func_t *hd_plan_in_rounds(hd_module_t *module, hd_plan_fn_t make,
                                   void *argument);

// Of the module's items from number added on, takes out the plans and kernels
// that plan neither is nor runs: schedules of anchors that went into it.
void hd_plan_sweep(hd_module_t *module, size_t added, const hd_func_t *plan);

// All of it; `fuse` leaves out the first step. Of the module's items the plan
// and the kernels that it runs are left.
typedef struct hd_fuse_options {
  bool unfused; // Every node a kernel of its own, or several.
  bool formed;  // hd_graph_fuse() has been used: its groups are kernels.
  bool explain;
  hd_inouts_t inouts; // The plan's parameter of such an input is `inout` where
                      // the output is stored in it.
} hd_fuse_options_t;

const hd_func_t *hd_graph_compile(hd_module_t *module, const hd_graph_t *graph,
                                  const hd_fuse_options_t *options);

#endif
