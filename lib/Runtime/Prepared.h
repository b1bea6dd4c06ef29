// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What depends on constants alone is on a device once, however many graphs that
// were expanded from one model compute it: values are numbered by what computes
// them (tasks, attributes, operands), and two of one number are the same.
#ifndef HIDET_RUNTIME_PREPARED_H
#define HIDET_RUNTIME_PREPARED_H

#include "Graph/Prepare.h"
#include "Runtime/Program.h"
#include "Support/Map.h"

// A value by its number.
typedef struct hd_prepared {
  size_t number;
  hd_slot_t slot; // On the device; no address: not there.
  unsigned users; // Graphs that read it there.
} hd_prepared_t;

typedef struct hd_numbering {
  hd_arena_t *arena; // Outlives what is numbered.
  hd_key_map_t known;
  size_t count;
  // Constants that are the same pointer in every graph.
  const hd_ptr_map_t *shared;
} hd_numbering_t;

// What the nodes of a graph give, which reads constants alone: a hd_prepared_t
// for each value. A value that nothing else can be the same as has one of its
// own. map: empty, in the arena.
void hd_numbering_add(hd_numbering_t *numbering, hd_arena_t *arena,
                      const hd_graph_t *graph, hd_ptr_map_t *map);
// That of a constant, which is entered in the map.
hd_prepared_t *hd_numbering_find(hd_numbering_t *numbering, hd_arena_t *arena,
                                 const hd_value_t *constant, hd_ptr_map_t *map);

#endif
