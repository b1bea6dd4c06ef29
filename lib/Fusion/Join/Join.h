// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of a group: the anchor's, with prologues in the place of its
// loads and epilogues in the place of its stores.
#ifndef HIDET_FUSION_JOIN_JOIN_H
#define HIDET_FUSION_JOIN_JOIN_H

#include "Fusion/Group/Group.h"

// An argument of a launch: a value of the graph, a tensor of the anchor's
// schedule that is none (a workspace, or a result that nobody reads), or an
// expression without tensors.
typedef struct hd_joined_arg {
  const hd_value_t *value;
  const hd_var_t *workspace;
  const hd_expr_t *expr;
} hd_joined_arg_t;

typedef struct hd_joined_launch {
  const hd_func_t *kernel; // An item of the module.
  bool programmatic;       // As the anchor's was: to be proven anew.
  const hd_joined_arg_t *args;
} hd_joined_launch_t;

typedef struct hd_joined {
  HD_VEC(hd_joined_launch_t) launches;
} hd_joined_t;

// The nodes of a group, in the graph's order; exactly one is the anchor and has
// a schedule. NULL, or why they cannot be joined.
const char *hd_group_join(hd_fusion_t *fusion, const hd_node_t *const *nodes,
                          size_t num_nodes, hd_joined_t *joined);

#endif
