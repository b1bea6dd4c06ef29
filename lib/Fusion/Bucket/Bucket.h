// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Buckets: one graph of tasks for all sizes up to a bound. Shapes, and so
// strides and kernels, are the bound's; the true sizes, extents, are read from
// an input when it runs. What lies past them is computed and never used.
//
// What depends on a size is found by looking, not declared: a graph that is
// expanded at the bounds is laid beside others of smaller sizes, its probes.
// Where numbers differ (sizes of axes, terms of tasks made flat, elements of
// constants), they are extents; everything else has to agree. Whether a bucket
// serves some sizes is decided by the same comparison, with all of its numbers
// (hd_bucket_fit()), so that nothing is guessed from the probes.
#ifndef HIDET_FUSION_BUCKET_BUCKET_H
#define HIDET_FUSION_BUCKET_BUCKET_H

#include "Fusion/InPlace.h"
#include "Support/Map.h"

typedef struct hd_bucket {
  // Its inputs are those of the graph at the bounds, then `extents`, where
  // there is one, then `given`; its outputs are that graph's. Each has as many
  // elements as there, perhaps in another shape.
  const hd_graph_t *graph;
  // i64, one for each number that kernels read; NULL: none is read.
  const hd_value_t *extents;
  size_t num_extents;
  // Constants that depend on sizes, which come in.
  HD_VEC(const hd_value_t *) given;
  struct hd_bucket_record *record;
} hd_bucket_t;

// Why there is no bucket for a graph.
typedef struct hd_bucket_refusal {
  const char *why;       // NULL: it was an error, which is reported.
  const hd_node_t *node; // Of the graph at the bounds; NULL: none.
} hd_bucket_refusal_t;

enum { HD_BUCKET_GRAPHS = 16 };

// inouts: inputs and outputs of the graphs that are one. Where a graph appends
// to such an input (Fusion/Append.h), and nothing else reads it, both are as at
// the bounds, not packed: its input has the output's shape, and zeros past
// extents, and the output has them then.
// graphs: the one at the bounds, then up to HD_BUCKET_GRAPHS - 1 probes,
// expanded from the same source by the choices of the first
// (hd_expander_follow()). Sizes that are independent are so in the probes. All
// lives in the module's arena; tasks go into its items. NULL where some task
// cannot be made right for its extents.
const hd_bucket_t *hd_bucket_make(hd_module_t *module,
                                  const hd_graph_t *const *graphs, size_t count,
                                  const hd_inouts_t *inouts,
                                  hd_bucket_refusal_t *refusal);

// A number, not 0, for what the inputs of the bucket's graph mean: the same of
// the same source, bounds and compiler.
uint64_t hd_bucket_key(const hd_bucket_t *bucket);

// Whether the bucket computes what this graph does. Sets its extents (one for
// each of num_extents) and what is given (one for each of bucket->given). The
// arena is for what is needed meanwhile.
bool hd_bucket_fit(hd_module_t *module, hd_arena_t *arena,
                   const hd_bucket_t *bucket, const hd_graph_t *graph,
                   int64_t *extents, const hd_value_t **given);

#endif
