// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the pass share: PrecisionPlan.c decides how each node is
// treated, Precision.c makes the graph.
#ifndef HIDET_GRAPH_PRECISION_PRECISIONSTATE_H
#define HIDET_GRAPH_PRECISION_PRECISIONSTATE_H

#include "Graph/Names.h"
#include "Graph/Precision/Precision.h"

typedef enum hd_treatment {
  HD_TREAT_KEEP,    // As it is, in the types that it was written for.
  HD_TREAT_MOVE,    // In the type of what it moves.
  HD_TREAT_PRODUCT, // Narrow operands, a wide result.
  HD_TREAT_WIDE,    // f32.
  HD_TREAT_ALIAS,   // A conversion between floats: nothing is left of it.
} hd_treatment_t;

// What is known of a value before the new graph is made.
typedef struct hd_precision_facts {
  struct hd_precision_facts *self;
  bool wanted; // Narrow, by a product.
  bool output; // Of the graph.
  bool constant;
} hd_precision_facts_t;

typedef struct hd_precision_pass {
  hd_module_t *module;
  hd_arena_t *arena;
  const hd_graph_t *from;
  hd_graph_t *to;
  hd_precision_t precision;
  hd_scalar_t narrow; // VOID: none.
  bool stores_narrow; // Which takes fewer bytes than f32.
  hd_key_map_t names;
  hd_ptr_map_t facts, versions;
  const hd_node_t **nodes;    // Those of `from`, as they are treated.
  hd_treatment_t *treatments; // Of nodes.
  bool changed;
} hd_precision_pass_t;

// f32, f16 and bf16, which are one float here.
bool hd_precision_is_float(hd_scalar_t type);
// Never NULL: nothing is known where nothing was entered.
hd_precision_facts_t *hd_precision_facts(hd_precision_pass_t *l,
                                         const hd_value_t *value);
// Whether a result is stored in the narrow type: what a product wants, but for
// outputs of the graph, which would be rounded for it.
bool hd_precision_stores_narrow(hd_precision_pass_t *l,
                                const hd_value_t *result);
// What a type of the node's task is where the variables of floats that the
// operands bind are `floats` or, where that is VOID, as they are; VOID where no
// operand binds it.
hd_scalar_t hd_precision_resolve(const hd_node_t *node, hd_task_type_t type,
                                 hd_scalar_t floats);
// The type variable of a task's result that a node may choose, by name; NULL:
// it follows from the operands.
const char *hd_precision_choice(const hd_task_t *task);
// Whether a node may compute in a type: every variable takes it, and every
// result has a type that follows from the operands'.
bool hd_precision_takes(const hd_node_t *node, hd_scalar_t floats);
// Fills facts, nodes and treatments. False after an error.
bool hd_precision_plan(hd_precision_pass_t *l);

#endif
