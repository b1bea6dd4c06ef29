// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A random instance of a rewrite: types, sizes, attributes and elements for
// which its left side has a meaning and its conditions hold.
#ifndef HIDET_GRAPH_REWRITE_REWRITEINSTANCE_H
#define HIDET_GRAPH_REWRITE_REWRITEINSTANCE_H

#include "Graph/Rewrite/RewriteState.h"

typedef struct hd_random {
  uint64_t state;
} hd_random_t;

uint64_t hd_random_next(hd_random_t *random);
// 0 .. below - 1.
int64_t hd_random_pick(hd_random_t *random, int64_t below);

typedef struct hd_instance {
  hd_context_t *context;
  hd_arena_t *arena;
  const hd_rewrite_t *rule;
  hd_random_t *random;
  const hd_task_binding_t *binding;       // Of the signature.
  const hd_host_tensor_t **left, **right; // Of the rule's values.
  HD_VEC(hd_host_tensor_t *) made;        // To be ended.
  hd_cleanup_t cleanup;
  const char *fault; // Why the right side has no meaning.
  bool refused;      // The rule requires something else of the constants.
  // While it is drawn:
  hd_scalar_t *types;
  int64_t *sizes;
  hd_extents_t *packs;
  hd_bound_attribute_t *attributes;
  const hd_host_tensor_t **known; // Of the signature's inputs.
  int64_t palette[3];
  bool positive; // Elements are.
  bool special;  // Some are infinite or NaN, of what is not constant.
} hd_instance_t;

// False where this draw is none: nothing was reported. It is to be ended
// always.
bool hd_instance_draw(hd_instance_t *instance, hd_context_t *context,
                      hd_arena_t *arena, const hd_rewrite_t *rule,
                      hd_random_t *random);
// False: the right side's nodes do not fit together, see fault. Where it sets
// `refused` the rule is not for this instance.
bool hd_instance_run_right(hd_instance_t *instance);
void hd_instance_end(hd_instance_t *instance);
// "T = f64, n = 2, s = [3]; x: f64[2, 3] = 1, 2, ..."
void hd_instance_print(const hd_instance_t *instance, hd_buffer_t *out);

// --- RewriteDraw.c: what the names of the signature stand for ---

// Types, ranks and sizes; attributes; what conditions fix.
void hd_draw_names(hd_instance_t *instance, hd_task_binding_t *binding);
// Axes that nothing has fixed, so that a value has so many elements; false
// where there are none such.
bool hd_draw_axes(hd_instance_t *instance, const hd_task_binding_t *binding,
                  const hd_task_value_t *value, int64_t count);
void hd_draw_elements(hd_instance_t *instance, const hd_rule_value_t *value,
                      hd_host_tensor_t *tensor);

#endif
