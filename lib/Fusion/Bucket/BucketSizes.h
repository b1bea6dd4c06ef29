// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sizes of a graph that buckets are for: its dimensions, and axes of inputs
// whose size it leaves open, each by its name.
#ifndef HIDET_FUSION_BUCKET_BUCKETSIZES_H
#define HIDET_FUSION_BUCKET_BUCKETSIZES_H

#include "Fusion/Bucket/Bucket.h"
#include "Graph/Expand/Expand.h"

enum {
  // Twice as many probes, the graph at the bounds and one more.
  HD_BUCKET_SIZES = 7,
  // Smaller extents have none: axes of 1 broadcast, those of 0 are not there;
  // so a bound of 2 would be for one extent alone.
  HD_BUCKET_LEAST_EXTENT = 2,
  HD_BUCKET_LEAST = 3,
};

typedef struct hd_bucket_sizes {
  size_t count;
  const char *names[HD_BUCKET_SIZES];
  int64_t values[HD_BUCKET_SIZES];
  bool fixed[HD_BUCKET_SIZES]; // No bound: there is one value.
} hd_bucket_sizes_t;

// Whether inputs of the graph have a size of that name.
bool hd_bucket_has_size(hd_arena_t *arena, const hd_graph_t *graph,
                        const char *name);
// By the types of the inputs; false where there are none, too many, or they do
// not agree. Names live in the arena.
bool hd_bucket_sizes_find(hd_arena_t *arena, const hd_graph_t *graph,
                          const hd_tensor_type_t *types,
                          hd_bucket_sizes_t *sizes);
// The types of the inputs by sizes. Else *missing is the name of one that is
// not there; NULL: an input is no tensor of known type and rank, or has a size
// below 0.
bool hd_bucket_types(hd_arena_t *arena, const hd_graph_t *graph,
                     const hd_bucket_sizes_t *sizes, hd_tensor_type_t *types,
                     const char **missing);

// Expands the graph, all of whose inputs stay, by the leader's choices (NULL:
// its own); *expander is who did it. Both are in the arena, the module's or one
// that ends before it. NULL where shapes depend on data, or after an error.
const hd_graph_t *hd_bucket_expand(hd_module_t *module, hd_arena_t *arena,
                                   const hd_graph_t *graph,
                                   const hd_tensor_type_t *types,
                                   const hd_expander_t *leader,
                                   hd_expander_t **expander);

// A bucket of these bounds; *leader is the expander at them. NULL where there
// is none.
const hd_bucket_t *hd_bucket_of(hd_module_t *module, const hd_graph_t *graph,
                                const hd_bucket_sizes_t *bounds,
                                const hd_inouts_t *inouts,
                                hd_expander_t **leader,
                                hd_bucket_refusal_t *refusal);

#endif
