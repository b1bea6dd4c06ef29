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

// What elements are drawn from, floats above all; integers are small or not.
typedef enum hd_draw_kind {
  HD_DRAW_ORDINARY, // -2 .. 2, f64 for choice.
  HD_DRAW_SPECIAL,  // NaN, infinities, both zeros, and some others.
  HD_DRAW_EXTREME,  // The largest, the smallest and least, zeros, some others.
  HD_DRAW_RANGE,    // Above 0, each operand somewhere in its type's range.
} hd_draw_kind_t;

typedef struct hd_draw {
  hd_draw_kind_t kind;
  // Unless they are ordinary: which of its types each type variable is, modulo
  // their number, and which of the edges is the first element of all.
  unsigned type, first;
} hd_draw_t;

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
  hd_draw_t draw;
  bool positive;                 // Ordinary elements are.
  bool has_constant_edges;       // Not of other operands alone.
  const hd_rule_value_t *spread; // In RANGE the one whose elements differ.
} hd_instance_t;

// False where this draw is none: nothing was reported. It is to be ended
// always.
bool hd_instance_draw(hd_instance_t *instance, hd_context_t *context,
                      hd_arena_t *arena, const hd_rewrite_t *rule,
                      hd_random_t *random, hd_draw_t draw);
// The left side again, of other elements: values holds the operands, and takes
// the others. wide: floats are f64, also where nodes name a type. False where
// that has no meaning.
bool hd_instance_run_left(hd_instance_t *instance,
                          const hd_host_tensor_t **values, bool wide);
// False: the right side's nodes do not fit together, see fault. Where it sets
// `refused` the rule is not for this instance.
bool hd_instance_run_right(hd_instance_t *instance);
void hd_instance_end(hd_instance_t *instance);
// "T = f64, n = 2, s = [3]; x: f64[2, 3] = 1, 2, ..."
void hd_instance_print(const hd_instance_t *instance, hd_buffer_t *out);

// --- RewriteCompare.c ---

enum { HD_OTHER_INSTANCES = 3 };

#define HD_FREEDOM_BIT(name) (UINT32_C(1) << HD_FREEDOM_##name)
#define HD_NO_FREEDOM UINT32_MAX

typedef struct hd_comparison {
  hd_instance_t *instance;
  bool finite;      // All that goes in.
  hd_scalar_t type; // Of the element at hand.
  hd_random_t random;
  const hd_host_tensor_t **most; // Of values: what magnitudes() gave, or NULL.
  // Values of the left side, NULL where they have no meaning: in f64, of the
  // operands' magnitudes, of other operands, and of neighbouring ones in f64.
  bool ran;
  const hd_host_tensor_t **wide, **magnitudes;
  const hd_host_tensor_t **others[HD_OTHER_INSTANCES];
  const hd_host_tensor_t **others_wide[HD_OTHER_INSTANCES];
  const hd_host_tensor_t **moved[HD_OTHER_INSTANCES];
} hd_comparison_t;

void hd_comparison_begin(hd_comparison_t *comparison, hd_instance_t *instance);
// 0 where both sides give the same; else a bit for each freedom of which one is
// enough for the difference; HD_NO_FREEDOM: none is.
uint32_t hd_compare_element(hd_comparison_t *comparison,
                            const hd_rule_value_t *value, int64_t i);

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
