// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A graph in two: what depends on constants alone, to be run once, and the
// rest.
#ifndef HIDET_GRAPH_PREPARE_H
#define HIDET_GRAPH_PREPARE_H

#include "IR/Graph/Graph.h"
#include "Support/Map.h"

// The values that depend on constants alone: those, and what nodes give that
// read nothing else. Each is in the map.
hd_ptr_map_t hd_graph_known(hd_arena_t *arena, const hd_graph_t *graph);

// prepare has no inputs; its outputs are what the rest reads of it, and are
// inputs of the rest, after the graph's own. The rest has the graph's outputs,
// in order. Values are those of the graph. One of the two may have no nodes.
void hd_graph_split(hd_arena_t *arena, const hd_graph_t *graph,
                    const hd_graph_t **prepare, const hd_graph_t **rest);

// The nodes of a graph that its outputs need. Values are those of the graph.
const hd_graph_t *hd_graph_needed(hd_arena_t *arena, const hd_graph_t *graph);
// Takes the others out of a graph in the making; its constants all stay.
void hd_graph_drop_unread(hd_arena_t *arena, hd_graph_t *graph);

// The first nodes of a graph, so many; its outputs are what they give that
// later nodes read or that comes out. Values are those of the graph.
const hd_graph_t *hd_graph_first(hd_arena_t *arena, const hd_graph_t *graph,
                                 size_t count);

// The same graph, which also gives what each of its nodes does.
const hd_graph_t *hd_graph_exposed(hd_arena_t *arena, const hd_graph_t *graph);

#endif
