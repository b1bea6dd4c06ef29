// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes that become one before groups are formed.
#ifndef HIDET_FUSION_COMPOSE_COMPOSE_H
#define HIDET_FUSION_COMPOSE_COMPOSE_H

#include "Fusion/Group/Group.h"

// A graph in which reductions over the same rows, and what stands between them,
// are one node, whose task is added to the module; the graph itself where there
// are none. Its nodes are tasks, and shapes are known. Asks for each one as a
// step of fusion (Support/Steps.h).
const hd_graph_t *hd_graph_compose(hd_fusion_t *fusion, const hd_graph_t *graph,
                                   bool explain);

// The same for products of matrices that are written as products of elements,
// broadcast, and a sum, where that is expected to be faster.
const hd_graph_t *hd_graph_compose_sums(hd_fusion_t *fusion,
                                        const hd_graph_t *graph, bool explain);

// The same for two products with rows between them, where a template makes one
// kernel of them (Schedule/Attention/Attention.h). explain: says of each pair
// that is not, why.
const hd_graph_t *hd_graph_compose_products(hd_fusion_t *fusion,
                                            const hd_graph_t *graph,
                                            bool explain);

// Puts the nodes that this would make one of into the set, and changes nothing.
void hd_graph_find_composed(hd_fusion_t *fusion, const hd_graph_t *graph,
                            hd_ptr_map_t *nodes);

// The same for products and what their matrices are computed from, where that
// is expected to be faster. prepares: those that depend on constants alone, as
// long as they would be computed once, for all runs.
const hd_graph_t *hd_graph_compose_weights(hd_fusion_t *fusion,
                                           const hd_graph_t *graph,
                                           bool prepares, bool explain);

// The same for rows by matrices that an index chooses, where a template orders
// the rows by their matrices (Schedule/Grouped/Grouped.h) and is expected to
// take less. explain: says of each that is not, why.
const hd_graph_t *hd_graph_compose_chosen(hd_fusion_t *fusion,
                                          const hd_graph_t *graph,
                                          bool explain);

#endif
