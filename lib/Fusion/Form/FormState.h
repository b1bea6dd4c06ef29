// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the formation of groups share (Form.c: the sweeps, Cost.c:
// what pays, FormGraph.c: the graph that comes out).
#ifndef HIDET_FUSION_FORM_FORMSTATE_H
#define HIDET_FUSION_FORM_FORMSTATE_H

#include "Fusion/Fuse.h"
#include "Schedule/Product/Product.h"

// Who gives a value and who reads it: numbers of nodes.
typedef struct hd_uses {
  int64_t giver; // -1: comes from outside.
  bool is_output;
  hd_numbers_t nodes;
} hd_uses_t;

// Why a node did not go into the kernel of a group.
typedef struct hd_refusal {
  uint32_t group; // 0: of all groups that it would have had to go into.
  const char *why;
} hd_refusal_t;

// A node.
typedef struct hd_formed {
  const hd_node_t *node;
  const char *why; // It is not pointwise; NULL: it is.
  // What was said when it was tried last: as an epilogue, of each group that
  // tried; as a prologue (why NULL: it was not tried).
  HD_VEC(hd_refusal_t) no_epilogue;
  hd_refusal_t no_prologue;
  double cost;    // Of one element, in simple operations.
  uint32_t group; // 0: none yet.
  bool is_prologue;
  bool is_view; // It moves nothing: a concatenation of what kernels store.
  hd_numbers_t copies; // Of a prologue: the groups that have it.
  uint32_t seen;       // By the search that has this stamp.
} hd_formed_t;

typedef struct hd_forming {
  hd_group_t *group;
  uint32_t anchor;
  bool is_fixed;        // It was there before: nobody joins.
  bool is_heavy;        // The anchor is no pointwise node.
  const char *closed;   // Why it takes no epilogues; NULL: it does.
  hd_numbers_t members; // Prologues may belong to several groups.
  hd_ptr_map_t times;   // Prologues to how many elements are computed, double.
  uint32_t seen;        // By the search that has this stamp.
} hd_forming_t;

typedef struct hd_former {
  hd_module_t *module;
  hd_arena_t *arena;
  const hd_graph_t *graph;
  hd_fusion_t *fusion;
  hd_ptr_map_t uses; // Values to hd_uses_t.
  hd_formed_t *nodes;
  HD_VEC(hd_forming_t) groups; // The first is none.
  hd_ptr_map_t placed;         // Values that lie in a concatenation.
  hd_product_forms_t forms;    // Of what anchors compute.
  hd_ptr_map_t candidates;     // Flat tasks of anchors to hd_candidates_t.
  uint32_t stamp;
  hd_numbers_t open;      // What the search has still to look at.
  uint32_t first_grouped; // No node before it is in a group.
} hd_former_t;

hd_uses_t *hd_former_uses(hd_former_t *former, const hd_value_t *value);

// --- FormGrow.c ---

// A group of this node; its number.
uint32_t hd_former_begin(hd_former_t *former, uint32_t anchor);
// Takes in those that read what its members give, and so on, as far as they can
// be epilogues. Does nothing where the group is closed.
void hd_former_grow(hd_former_t *former, uint32_t group);
// A node's group is this one; or it is in this one, too.
void hd_former_join(hd_former_t *former, uint32_t node, uint32_t group);
void hd_former_add(hd_former_t *former, uint32_t node, uint32_t group);
// Whether the node is to join: a step of the compilation, which --bisect may
// ask to leave out.
bool hd_former_asks(hd_former_t *former, uint32_t node, uint32_t group);
// A test of --bisect may put another node in the place of one that joins.
void hd_former_plant(hd_former_t *former, uint32_t node, uint32_t group,
                     bool is_epilogue);

// Why an anchor's output may not be changed on its way; NULL: nobody says so.
const char *hd_former_read_again(hd_former_t *former, const hd_node_t *anchor,
                                 uint32_t output);

// --- FormCycles.c ---

typedef enum hd_answer { HD_NO, HD_YES, HD_NOT_KNOWN } hd_answer_t;

// NULL where a node may join a group; else why the group would wait for itself.
const char *hd_former_cycle(hd_former_t *former, uint32_t node, uint32_t group);

// --- Cost.c ---

// Simple operations for an element.
double hd_fusion_cost(const hd_pointwise_t *pointwise);
// Whether a node moves elements and computes next to nothing.
bool hd_former_is_cheap(const hd_former_t *former, uint32_t node);
// NULL where computing a node again wherever the groups read it costs less than
// storing it once; else the estimate, in words.
const char *hd_former_dear(hd_former_t *former, uint32_t node,
                           const uint32_t *groups, size_t num_groups);
// The most terms that pay in one place: the kernels of products load in many.
unsigned hd_former_most_terms(const hd_former_t *former, uint32_t group);
// Whether a node reads what a group computes from its anchor on.
bool hd_former_reads_live(hd_former_t *former, uint32_t node, uint32_t group);

// --- FormCopies.c ---

// Whether a prologue would make an anchor load element by element what it
// copies now.
bool hd_former_spoils_copies(hd_former_t *former, uint32_t node,
                             uint32_t group);

// --- FormGraph.c ---

// Takes reshapes that cost no kernel out of the groups at whose edges they are.
void hd_former_trim(hd_former_t *former);
const hd_graph_t *hd_former_graph(hd_former_t *former);

// --- FormExplain.c ---

// Remarks: why nodes that follow each other are one kernel or two.
void hd_former_explain(hd_former_t *former);

// --- FormSpread.c ---

// Whether a member of a group makes, of a value that the group computes, what
// better is made where it is read: of one that is stored anyway, or together
// with other members much more than the value itself. All of it is as soon
// computed again, and read by nodes that compute with single elements.
bool hd_former_is_spread(hd_former_t *former, const hd_forming_t *group,
                         const hd_node_t *node);

#endif
