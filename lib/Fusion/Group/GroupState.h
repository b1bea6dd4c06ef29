// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of a group share (Group.c: what each node is to the anchor,
// GroupTerms.c: what is computed).
#ifndef HIDET_FUSION_GROUP_GROUPSTATE_H
#define HIDET_FUSION_GROUP_GROUPSTATE_H

#include "Fusion/Group/Group.h"

// That a live value belongs to; NULL: it is not live.
static inline const hd_store_point_t *hd_group_store(const hd_group_t *g,
                                                     const hd_value_t *value) {
  return hd_ptr_map_get(&g->live, value);
}

// A number in terms wherever it is read: the element of a constant of one.
bool hd_group_is_literal(const hd_value_t *value);

// --- GroupSize.c ---

// Counts the anchor, where a group begins.
void hd_group_count_anchor(hd_group_t *group);
// Counts a node that joins. NULL, or why the group would be too large; then it
// is not counted.
const char *hd_group_count(hd_group_t *group, const hd_node_t *node,
                           bool is_prologue, uint64_t most_terms);
// Takes out what was counted last.
void hd_group_uncount(hd_group_t *group, const hd_node_t *node);
// NULL, or which bound a group passes.
const char *hd_group_excess(const hd_group_t *group);

// A node's term with the places of its element for its indices.
typedef struct hd_substitution {
  hd_group_t *group;
  const hd_node_t *node;
  const hd_pointwise_t *pointwise;
  const hd_term_t *const *places;
  bool data_decides; // What of the term is evaluated.
} hd_substitution_t;

// For hd_flat_rewrite(): an index of the substitution's definition becomes its
// place.
const hd_term_t *hd_group_put_place(void *substitution, const hd_term_t *term);
// Where in `to` the element lies that is at `at` in `from`, of as many
// elements.
void hd_group_reshape(hd_fusion_t *fusion, const hd_value_t *from,
                      const hd_value_t *to, const hd_term_t *const *at,
                      const hd_term_t **places);

#endif
