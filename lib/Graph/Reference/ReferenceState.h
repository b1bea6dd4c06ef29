// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The inside of the reference evaluator.
//
// ReferenceBuild.c makes of a definition's term a tree of nodes in which sizes,
// types and attributes are numbers, over levels: the axes of its indices.
// ReferenceValue.c says what a node is worth where the levels stand, one number
// at a time, by the arithmetic of IR/Scalar.h; ReferenceFold.c what a reduction
// or a scan is, ReferenceSort.c what a sort is. Reference.c goes through the
// points of each definition.
//
// Nothing is remembered but reductions and scans, and what an index comes to
// that is not one of the levels, until a level moves that they depend on.
// Without that a sum over what is around it would take the square of its time,
// and each element of a gathered row would ask for its row again.
#ifndef HIDET_GRAPH_REFERENCE_REFERENCESTATE_H
#define HIDET_GRAPH_REFERENCE_REFERENCESTATE_H

#include "Graph/Reference/Reference.h"

enum {
  HD_REF_LEVELS = 64, // A bit for each.
  HD_REF_NO_LEVEL = -1,
};

// One axis of an index: where it stands now, and when it moved last.
typedef struct hd_ref_level {
  const hd_index_t *index;
  unsigned axis;
  int64_t at, extent;
  uint64_t moved;
} hd_ref_level_t;

typedef struct hd_ref_node hd_ref_node_t;

// What an index of an access came to.
typedef struct hd_ref_known {
  hd_number_t at;
  uint64_t computed; // When; 0: never.
} hd_ref_known_t;

// A tensor and the element of it: a node for each axis.
typedef struct hd_ref_access {
  const hd_host_tensor_t *tensor;
  const char *name;
  unsigned rank;
  hd_ref_node_t *const *indices;
  hd_ref_known_t *known;    // Of each.
  hd_ref_node_t *otherwise; // NULL: outside is an error.
} hd_ref_access_t;

// A reduction or a scan of so many components, or the monoid of a scatter,
// which has no levels and no bodies. Arrays have an entry for each component.
typedef struct hd_ref_fold {
  hd_builtin_monoid_t builtin; // HD_MONOID_COUNT: by the results.
  hd_scalar_t type;            // Of a builtin one.
  unsigned size;
  unsigned first_level, num_levels;
  uint64_t deps; // Of the bodies, without the own levels.
  hd_ref_node_t *const *bodies;
  hd_ref_node_t **identities, **results;
  hd_number_t *left, *right; // What a declared monoid's variables stand for,
  unsigned bound_level;      // and what moves whenever they do.
  hd_number_t *sums;         // What is combined so far: the value.
  hd_number_t *values;       // Of the bodies.
  uint64_t computed;         // When; 0: never.
  // SCAN: the sums of 0, 1, 2... bodies, from the left or from the right.
  hd_scan_part_t part;
  hd_ref_node_t *at;
  hd_number_t *table;
} hd_ref_fold_t;

struct hd_ref_node {
  uint8_t kind; // hd_term_kind_t
  uint8_t num_operands;
  hd_scalar_t type, from; // Of the value; of the first operand.
  uint64_t deps;          // The levels that it varies with.
  union {
    hd_number_t number;
    unsigned level;
    const hd_number_t *bound;
    hd_expr_kind_t op;
    hd_task_function_t function;
    const hd_ref_access_t *access;
    hd_ref_fold_t *fold;
  } u;
  hd_ref_node_t *operands[];
};

// The evaluation of one definition.
typedef struct hd_ref {
  hd_context_t *context;
  const hd_task_binding_t *binding;
  hd_loc_t loc;
  hd_arena_t *arena; // Lives as long as the definition's tree.
  const hd_host_tensor_t *const *tensors; // Inputs, outputs, locals.
  hd_ref_level_t levels[HD_REF_LEVELS];
  unsigned num_levels;
  const hd_monoid_t *monoid; // Whose terms are being built,
  hd_ref_fold_t *fold;       // and for which fold.
  uint64_t clock;
  unsigned steps; // Until the budget is asked.
} hd_ref_t;

// --- ReferenceBuild.c ---

// Axes of an index as levels; false after an error (too many).
bool hd_ref_add_index(hd_ref_t *r, const hd_index_t *index);
// The node of a term on an axis of its pack; NULL after an error.
hd_ref_node_t *hd_ref_build(hd_ref_t *r, const hd_term_t *term, unsigned axis);
hd_ref_fold_t *hd_ref_build_monoid(hd_ref_t *r, const hd_monoid_t *monoid,
                                   hd_scalar_t type);
// An element of a tensor; NULL after an error.
hd_ref_access_t *hd_ref_build_access(hd_ref_t *r, const hd_task_value_t *value,
                                     const hd_term_t *const *operands);
// Where a value stands in r->tensors.
size_t hd_ref_tensor_at(const hd_task_t *task, const hd_task_value_t *value);

// --- ReferenceValue.c ---

// What a node is worth where the levels stand. False after an error.
bool hd_ref_value(hd_ref_t *r, const hd_ref_node_t *node, hd_number_t *out);
// The number of the element, or -1 where it is outside of the tensor.
bool hd_ref_place(hd_ref_t *r, const hd_ref_access_t *access, int64_t *place);
// Says where the element is, which is outside; false.
bool hd_ref_report_outside(hd_ref_t *r, const hd_ref_access_t *access,
                           const char *what);
hd_number_t hd_ref_get(const hd_host_tensor_t *tensor, int64_t i);
void hd_ref_set(hd_host_tensor_t *tensor, int64_t i, hd_number_t number);
// Asks the budget now and then.
void hd_ref_check_budget(hd_ref_t *r);

// --- ReferenceFold.c ---

void hd_ref_move(hd_ref_t *r, unsigned level, int64_t at);
// Puts levels at their first point; false where there is none.
bool hd_ref_start(hd_ref_t *r, unsigned first, unsigned count);
// The next point in row-major order; false after the last. Where a level is
// innermost, that one moves first.
bool hd_ref_advance(hd_ref_t *r, unsigned first, unsigned count, int innermost);
// Whether a value that was computed then still is what it was.
bool hd_ref_is_current(const hd_ref_t *r, uint64_t deps, uint64_t computed);
// Sets fold->sums.
bool hd_ref_reduce(hd_ref_t *r, hd_ref_fold_t *fold);
bool hd_ref_scan(hd_ref_t *r, hd_ref_fold_t *fold);
// sums = left combined with right, an entry for each component.
bool hd_ref_combine(hd_ref_t *r, hd_ref_fold_t *fold, const hd_number_t *left,
                    const hd_number_t *right);

// --- ReferenceSort.c ---

// All elements of a definition that sorts, whose levels are the last ones.
bool hd_ref_sort(hd_ref_t *r, const hd_definition_t *d,
                 hd_host_tensor_t *target);

#endif
