// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The inside of the reference evaluator (Reference.c, ReferenceBuild.c,
// ReferenceRun.c, ReferenceReduce.c, ReferenceLoad.c, ReferenceLanes.c).
//
// A definition's terms become a tree of nodes over levels, the axes of its
// indices. A node computes a strip at once: the values for some consecutive
// points of one level, its lanes. Where a node does not vary with the lanes it
// computes one value; it is computed again only where a level that it depends
// on moved since. So what stands inside of a reduction and does not depend on
// its indices costs nothing, as if it had been moved out of it.
#ifndef HIDET_GRAPH_REFERENCE_REFERENCESTATE_H
#define HIDET_GRAPH_REFERENCE_REFERENCESTATE_H

#include "Graph/Reference/Reference.h"

enum {
  HD_REF_LANES = 128,
  HD_REF_LEVELS = 64, // A bit for each.
  HD_REF_NO_LEVEL = -1,
};

// How a value is held: integers and bool as int64_t, f64 as double, every other
// float as a float, rounded to its type.
typedef enum hd_ref_form {
  HD_REF_INT,
  HD_REF_FLOAT,
  HD_REF_DOUBLE
} hd_ref_form_t;

typedef union hd_ref_lanes {
  void *any;
  int64_t *i;
  float *f;
  double *d;
} hd_ref_lanes_t;

// One axis of an index: where it stands now (the first lane), and when it moved
// last.
typedef struct hd_ref_level {
  int64_t at, extent;
  uint64_t moved;
} hd_ref_level_t;

// base + the sum of coefficients times levels; it does not overflow.
typedef struct hd_ref_affine {
  int64_t base;
  unsigned count;
  struct {
    unsigned level;
    int64_t by;
  } terms[];
} hd_ref_affine_t;

typedef struct hd_ref_node hd_ref_node_t;

typedef struct hd_ref_access {
  const hd_host_tensor_t *tensor;
  const char *name;
  unsigned rank;
  hd_ref_node_t *const *indices; // One for each axis.
  const int64_t *strides;        // In elements.
  bool affine;                   // All of them are.
  bool inside;                   // Wherever the levels stand.
  hd_ref_node_t *otherwise;      // NULL: outside is an error.
} hd_ref_access_t;

// A reduction, or the table of a scan.
typedef struct hd_ref_fold {
  hd_builtin_monoid_t builtin; // HD_MONOID_COUNT: by the results.
  unsigned size;               // Components.
  unsigned first_level, num_levels;
  unsigned bound_level; // Moves whenever left or right do.
  int lane_level;       // Of the bodies where they have lanes of their own.
  uint64_t deps;        // Of the bodies, without the own levels.
  hd_ref_node_t *const *bodies;
  hd_ref_node_t **identities;    // Constants.
  hd_ref_node_t **left, **right; // BOUND, an entry for each component.
  hd_ref_node_t **results;
  hd_ref_lanes_t *sums; // What is combined so far.
  // SCAN:
  hd_scan_part_t part;
  hd_ref_node_t *at;
  hd_ref_lanes_t *tables; // extent + 1 entries, of as many lanes as bodies.
  uint64_t filled;        // When.
} hd_ref_fold_t;

struct hd_ref_node {
  uint8_t kind; // hd_term_kind_t
  uint8_t form; // hd_ref_form_t
  bool varies;  // With the lanes where it stands.
  bool simple;  // Neither fails nor costs much: may be computed for nothing.
  uint8_t num_operands;
  hd_scalar_t type, from; // Of the value; of the first operand.
  uint64_t deps;          // A bit for each level.
  uint64_t computed;      // When, for all lanes; 0: never.
  hd_ref_lanes_t out;
  const hd_ref_affine_t *affine; // Or NULL.
  union {
    hd_number_t number;
    unsigned level;
    hd_expr_kind_t op;
    hd_task_function_t function;
    hd_ref_access_t *access;
    hd_ref_fold_t *fold;
    uint8_t *masks; // SELECT: two, where it needs them.
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
  // While building: which index's axis each level is, and the monoid whose
  // terms are being built.
  const hd_index_t *indices[HD_REF_LEVELS];
  unsigned axes[HD_REF_LEVELS];
  const hd_monoid_t *monoid;
  hd_ref_fold_t *fold;
  int lane_level; // HD_REF_NO_LEVEL: one lane.
  int num_lanes;
  uint64_t clock;
  unsigned steps; // Until the budget is asked.
} hd_ref_t;

static inline hd_ref_form_t hd_ref_form(hd_scalar_t type) {
  return hd_scalar_class(type) != HD_CLASS_FLOAT ? HD_REF_INT
         : type == HD_F64                        ? HD_REF_DOUBLE
                                                 : HD_REF_FLOAT;
}

static inline size_t hd_ref_element(hd_ref_form_t form) {
  return form == HD_REF_FLOAT ? sizeof(float) : sizeof(int64_t);
}

static inline hd_ref_lanes_t hd_ref_lane(hd_ref_lanes_t lanes,
                                         hd_ref_form_t form, size_t lane) {
  return (hd_ref_lanes_t){(char *)lanes.any + lane * hd_ref_element(form)};
}

static inline int hd_ref_count(const hd_ref_t *r, const hd_ref_node_t *node) {
  return node->varies ? r->num_lanes : 1;
}

// --- ReferenceBuild.c ---

// Axes of an index as levels; false after an error (too many).
bool hd_ref_add_index(hd_ref_t *r, const hd_index_t *index);
// The node of a term on an axis of its pack; NULL after an error.
hd_ref_node_t *hd_ref_build(hd_ref_t *r, const hd_term_t *term, unsigned axis);
// The monoid of a scatter: bodies and levels are not there.
hd_ref_fold_t *hd_ref_build_monoid(hd_ref_t *r, const hd_monoid_t *monoid,
                                   hd_scalar_t type);

// A node for each axis of a tensor that is accessed; NULL after an error.
hd_ref_node_t **hd_ref_build_indices(hd_ref_t *r, const hd_task_value_t *value,
                                     const hd_term_t *const *operands,
                                     unsigned *rank);
// Where a value stands in r->tensors.
size_t hd_ref_tensor_at(const hd_task_t *task, const hd_task_value_t *value);

// --- ReferencePlace.c ---

// Says of each node of a tree whether it varies with the lanes of a level.
void hd_ref_place(hd_ref_t *r, hd_ref_node_t *node, int lane_level);
void hd_ref_place_monoid(hd_ref_t *r, hd_ref_fold_t *fold, int lane_level);
// The best level among the first ones for the lanes of a tree, which is not
// placed yet; HD_REF_NO_LEVEL: its reductions have better ones.
int hd_ref_choose(const hd_ref_t *r, hd_ref_node_t *root, unsigned num_levels);
// Calls visit for a tree's nodes, the bodies of reductions too.
void hd_ref_visit(hd_ref_node_t *node,
                  void (*visit)(hd_ref_node_t *node, void *argument),
                  void *argument);

// --- ReferenceRun.c ---

// Computes node->out for the lanes that mask tells of (NULL: all). False after
// an error.
bool hd_ref_run(hd_ref_t *r, hd_ref_node_t *node, const uint8_t *mask);
// Moves a level.
void hd_ref_move(hd_ref_t *r, unsigned level, int64_t at);
// An affine node at the first lane, and from lane to lane.
int64_t hd_ref_affine_at(const hd_ref_t *r, const hd_ref_affine_t *affine,
                         int64_t *step);
// node->out, made where it is not there yet.
hd_ref_lanes_t hd_ref_out(hd_ref_t *r, hd_ref_node_t *node);
void hd_ref_check_budget(hd_ref_t *r);

// --- ReferenceReduce.c ---

// Puts levels at their first point; false where there is none.
bool hd_ref_start(hd_ref_t *r, unsigned first, unsigned count);
// The next point in row-major order; false after the last. skip: a level that
// stays where it is, or HD_REF_NO_LEVEL.
bool hd_ref_advance(hd_ref_t *r, unsigned first, unsigned count, int skip);
bool hd_ref_reduce(hd_ref_t *r, hd_ref_node_t *node, const uint8_t *mask);
bool hd_ref_scan(hd_ref_t *r, hd_ref_node_t *node, const uint8_t *mask);
// sums[0] = sums[0] combined with one value, of a monoid of one component.
bool hd_ref_combine(hd_ref_t *r, hd_ref_fold_t *fold, hd_ref_lanes_t value);

// --- ReferenceLoad.c ---

bool hd_ref_load(hd_ref_t *r, hd_ref_node_t *node, const uint8_t *mask);
// count elements of a tensor, from one on, step apart.
void hd_ref_read(const hd_host_tensor_t *tensor, int64_t first, int64_t step,
                 int count, hd_ref_lanes_t out);
void hd_ref_write(const hd_host_tensor_t *tensor, int64_t first, int64_t step,
                  int count, hd_ref_lanes_t in, bool varies);

// --- ReferenceLanes.c ---

// Lane by lane; an operand that does not vary has one.
void hd_ref_operate(hd_expr_kind_t op, hd_scalar_t result, hd_scalar_t type,
                    int count, hd_ref_lanes_t out, hd_ref_lanes_t a,
                    bool a_varies, hd_ref_lanes_t b, bool b_varies);
void hd_ref_call(hd_task_function_t function, hd_scalar_t type, int count,
                 hd_ref_lanes_t out, const hd_ref_lanes_t *args,
                 const bool *varies);
// Between types of one size, no bool.
void hd_ref_bitcast(hd_scalar_t to, hd_scalar_t from, int count,
                    hd_ref_lanes_t out, hd_ref_lanes_t a);
void hd_ref_convert(hd_scalar_t to, hd_scalar_t from, int count,
                    hd_ref_lanes_t out, hd_ref_lanes_t a);
// Rounds floats that an operation left unrounded to a type narrower than f32.
void hd_ref_round(hd_scalar_t type, int count, float *values);
void hd_ref_fill(hd_ref_form_t form, int count, hd_ref_lanes_t out,
                 hd_ref_lanes_t value);
void hd_ref_set(hd_ref_form_t form, hd_ref_lanes_t out, hd_number_t number);

#endif
