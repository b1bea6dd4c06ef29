// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What became of a graph, in the device's cache: the plan, as text, and its
// kernels' code. It is found by the graph as it is about to be fused, the types
// of what it reads, and the place (hd_saved_describe()): by all that the passes
// from there on look at. What weights hold they do not look at, but for single
// elements, which become part of the kernels.
#ifndef HIDET_RUNTIME_PLANCACHE_H
#define HIDET_RUNTIME_PLANCACHE_H

#include "Runtime/Cache.h"
#include "Runtime/ModelState.h"

// The key of what the segment's graph becomes. Zero: that is not kept, for
// there is no cache, something else than the graph decides, or the model brings
// functions of its own.
hd_cache_key_t hd_plan_key(hd_model_t *m, const hd_model_segment_t *segment);
// Where somebody chooses (hd_model_options_t.choose), a plan is kept for just
// what was chosen. Which groups the graph has is kept by its key, so that what
// would be chosen for them is known before they are made: the plan's key then,
// zero where nothing is known of the groups. Else the key itself.
hd_cache_key_t hd_plan_foresee(hd_model_t *m, hd_cache_key_t key);
// The same once it was chosen; the groups are kept. Zero: the plan is not.
hd_cache_key_t hd_plan_chosen(hd_model_t *m, hd_cache_key_t key);
// Makes the segment's module and its program, whose code is on the device then,
// of what the cache has. False where it has nothing that can be used: then
// nothing is made.
bool hd_plan_find(hd_model_t *m, hd_model_segment_t *segment,
                  hd_cache_key_t key);
// Puts them there.
void hd_plan_keep(hd_model_t *m, const hd_model_segment_t *segment,
                  hd_cache_key_t key);

#endif
