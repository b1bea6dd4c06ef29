// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names that values and tasks have, so that a new one gets another.
#ifndef HIDET_GRAPH_NAMES_H
#define HIDET_GRAPH_NAMES_H

#include "IR/Graph/Graph.h"
#include "Support/Map.h"

// name itself, or name_1, ... where it is taken; that is taken from now on.
// The names and the result live in the arena, or as long as name. names belongs
// to these calls alone.
const char *hd_name_unique(hd_arena_t *arena, hd_key_map_t *names,
                           const char *name);

// Takes the names of all values of a graph, not those of inner ones.
void hd_names_take(hd_arena_t *arena, hd_key_map_t *names,
                   const hd_graph_t *graph);

// The task of the module that is the same to the letter but for its name, of
// those that this has put there (`tasks`, by their texts, which belongs to
// these calls alone); else a copy of it under a fresh name. All live in the
// arena.
const hd_task_t *hd_task_shared(hd_arena_t *arena, hd_module_t *module,
                                hd_key_map_t *tasks, const hd_task_t *made,
                                const char *name);

#endif
