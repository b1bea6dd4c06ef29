// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of joining share: Join.c, the launches of a group;
// JoinHooks.c, what stands where its anchor's kernels load and store.
#ifndef HIDET_FUSION_JOIN_JOINSTATE_H
#define HIDET_FUSION_JOIN_JOINSTATE_H

#include "Fusion/Join/Join.h"
#include "Schedule/Access/Access.h"
#include "Schedule/Translate/Translate.h"

typedef struct hd_joiner {
  hd_fusion_t *fusion;
  hd_arena_t *arena;
  hd_group_t *group;
  const hd_node_t *const *nodes;
  size_t num_nodes;
  const char *name;      // Of the kernels.
  const char *why;       // It cannot be done.
  hd_ptr_map_t reshaped; // Parameters in the shape of a kernel's own result.
  hd_joined_t *joined;
} hd_joiner_t;

typedef HD_VEC(hd_access_hook_t) hd_join_hooks_t;

// Where a value of the anchor is stored; NULL: nothing is done there.
const hd_store_point_t *hd_join_store(const hd_joiner_t *j,
                                      const hd_value_t *value);
// What is to be done to parameter i of a kernel, which stands for a value of
// the anchor: appended to hooks, whose terms t translates. Returns the value
// that the parameter is given; where it cannot be done, j->why says why.
const hd_value_t *hd_join_add_hooks(hd_joiner_t *j, const hd_func_t *kernel,
                                    uint32_t i, const hd_value_t *value,
                                    bool is_output, hd_translator_t *t,
                                    hd_join_hooks_t *hooks);

// What is made of neighbours that stay in registers, where a kernel stores them
// by the point of that loop, in the place of a node over rows. NULL, or why
// that cannot be, as the end of a sentence that begins with the tensor.
const char *hd_join_rows(hd_joiner_t *j, hd_translator_t *t,
                         const hd_node_t *node, hd_builder_t *b,
                         const hd_stmt_t *point_loop, const hd_var_t *kept);

#endif
