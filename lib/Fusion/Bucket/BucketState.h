// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of a bucket's making share: BucketMatch.c, BucketCompare.c
// (graphs side by side, and the numbers in which they differ), BucketDigits.c
// (which elements of an axis are real), BucketTask.c, BucketPast.c (what a task
// needs to be right), BucketTerms.c, BucketMove.c (tasks that read extents),
// BucketGraph.c (the graph).
#ifndef HIDET_FUSION_BUCKET_BUCKETSTATE_H
#define HIDET_FUSION_BUCKET_BUCKETSTATE_H

#include "Fusion/Bucket/Bucket.h"
#include "Schedule/Terms/Terms.h"

// A size at the bound, and the number that it really is; slot -1: the same.
typedef struct hd_extent {
  int64_t bound;
  int slot;
} hd_extent_t;

// An axis as digits, the first the most significant: a place is real where each
// of them is below its extent, and its true place is the number that the digits
// are by extents. One with a single digit has no holes: its true places are the
// first ones. A digit behind another one is not the same at all sizes.
enum { HD_BUCKET_DIGITS = 4 };
typedef struct hd_digits {
  unsigned count;
  hd_extent_t digits[HD_BUCKET_DIGITS];
} hd_digits_t;

// A tensor of the graph, or of a flat task.
typedef struct hd_bucket_tensor {
  unsigned rank;
  hd_extent_t sizes[HD_MAX_RANK];
  hd_digits_t axes[HD_MAX_RANK];
  // What all of it is past an extent of the axis, where that is known.
  bool known[HD_MAX_RANK];
  double past[HD_MAX_RANK];
} hd_bucket_tensor_t;

typedef struct hd_slot_values {
  int64_t values[HD_BUCKET_GRAPHS]; // In each graph.
} hd_slot_values_t;

typedef enum hd_slot_rule_kind {
  HD_SLOT_TIMES,   // slot = of * factor
  HD_SLOT_OVER,    // slot = of / factor, without a rest
  HD_SLOT_PRODUCT, // of axis: its size is the product of its digits
} hd_slot_rule_kind_t;

// What holds between numbers in all graphs that a bucket serves.
typedef struct hd_slot_rule {
  hd_slot_rule_kind_t kind;
  int slot, of;
  int64_t factor;
  hd_extent_t size;
  hd_digits_t axis;
} hd_slot_rule_t;

// What a graph is held against.
typedef struct hd_bucket_record {
  const hd_graph_t *graph; // At the bounds.
  const bool *differs;     // Of its nodes: they are looked at as flat tasks,
  hd_ptr_map_t flats;      // which these are, at the bounds.
  HD_VEC(int) numbers;     // The slot of each number met, in order.
  HD_VEC(hd_slot_rule_t) rules;
  HD_VEC(int) read; // Slots that kernels read, in the order of the input.
  size_t num_slots;
} hd_bucket_record_t;

// Two nodes that were compared, when a graph is held against a record, and the
// numbers that were met: others of the same task and numbers have the same.
typedef struct hd_bucket_compared {
  const hd_node_t *nodes[2];
  HD_VEC(int64_t) numbers; // Of the first node, of the second, and so on.
  struct hd_bucket_compared *next; // Of the same task.
} hd_bucket_compared_t;

// A node that appends to what comes in, and is what goes out (BucketInOut.c).
typedef struct hd_bucket_append {
  const hd_node_t *node;
  uint32_t input; // Of the node.
  const hd_value_t *in, *out;
  const hd_value_t *own; // What comes in at the bound.
  hd_ptr_map_t reshapes; // Nodes between `in` and the node.
} hd_bucket_append_t;

typedef struct hd_bucketer {
  hd_module_t *module;
  hd_arena_t *arena;
  size_t count; // Of the graphs that lie side by side.
  const hd_graph_t *graphs[HD_BUCKET_GRAPHS];
  hd_bucket_refusal_t refusal;
  hd_bucket_record_t *record;
  bool holds;    // Against the record, which is complete.
  size_t number; // Numbers met.
  HD_VEC(hd_slot_values_t) slots;
  hd_ptr_map_t givers;   // For each value the node.
  hd_ptr_map_t matched;  // For each of the first graph the others' (array).
  hd_ptr_map_t tensors;  // For each value of the first graph.
  hd_ptr_map_t numbers;  // For terms and indices of flat tasks: extents.
  hd_ptr_map_t stands;   // For parts of the others' flat tasks the first one's.
  hd_ptr_map_t compared; // For tasks, the last of hd_bucket_compared_t;
  hd_bucket_compared_t *comparing;  // the one under way.
  HD_VEC(const hd_value_t *) given; // Constants that differ.
  hd_inouts_t inouts;
  HD_VEC(hd_bucket_append_t *) appends;
  // The graph that is made:
  hd_graph_t *made;
  hd_key_map_t names, tasks, seals;
  hd_ptr_map_t whole;    // Values with holes, without them.
  hd_ptr_map_t replaced; // Values that another one stands for.
  hd_value_t *extents;
  hd_term_t *num_extents; // The shape of extents in tasks.
} hd_bucketer_t;

static inline bool hd_extent_varies(hd_extent_t extent) {
  return extent.slot >= 0;
}
static inline bool hd_digits_vary(const hd_digits_t *digits) {
  return digits->count > 1 || hd_extent_varies(digits->digits[0]);
}

// Notes why there is no bucket; false.
bool hd_bucket_refuse(hd_bucketer_t *b, const hd_node_t *node, const char *why);

// --- BucketMatch.c ---

// Whether two nodes are of one task, with as many operands, the same results
// wanted and attributes of the same names.
bool hd_bucket_same_kind(const hd_node_t *x, const hd_node_t *y);
// Whether two nodes of one kind have the same shapes and attributes, to the
// last number.
bool hd_bucket_same_numbers(const hd_node_t *x, const hd_node_t *y);
// Lays the graphs side by side. False where they are not the same.
bool hd_bucket_match(hd_bucketer_t *b);
hd_bucket_tensor_t *hd_bucket_tensor(hd_bucketer_t *b, const hd_value_t *value);

// --- BucketCompare.c ---

// A number of each graph: its slot, or -1 where it is the same in all of them;
// false where it is not what the record says.
bool hd_bucket_meet(hd_bucketer_t *b, const int64_t *values, int *slot);
// Sizes are largest at the bounds; one of 0 is another graph.
bool hd_bucket_is_bounded(const hd_bucketer_t *b, const int64_t *values);
// Compares tasks' nodes term by term; the first one's flat task is kept.
bool hd_bucket_compare(hd_bucketer_t *b, const hd_node_t *const *nodes);
// What a number of a flat task is; one that is the same everywhere where the
// task was not looked at.
hd_extent_t hd_bucket_number(const hd_bucketer_t *b, const void *term,
                             int64_t bound);

// --- BucketDigits.c ---

// The number of a slot for these values, made where there is none.
int hd_bucket_slot(hd_bucketer_t *b, const int64_t *values);
hd_digits_t hd_digits_of(hd_extent_t size);
bool hd_digits_equal(const hd_digits_t *a, const hd_digits_t *b);
// The axes of a result by those of what is reshaped, where nothing moves.
bool hd_bucket_reshape(hd_bucketer_t *b, const hd_node_t *node);
// What the values of slots are that follow from others; false where a rule does
// not hold. known: which are there.
bool hd_bucket_settle(const hd_bucket_record_t *record, int64_t *slots,
                      bool *known);

// --- BucketTask.c ---

typedef struct hd_bucket_index {
  const hd_index_t *index;
  hd_extent_t range;
  hd_digits_t digits;
  bool linked; // Its digits are those of an axis.
  bool valued; // Terms compute with it.
} hd_bucket_index_t;

// One number that all of an input has to be past extents of these axes.
typedef struct hd_bucket_seal {
  bool axes[HD_MAX_RANK];
  bool any;    // Of them: it is not so already.
  bool wanted; // The value is settled.
  double value;
} hd_bucket_seal_t;

typedef struct hd_bucket_node {
  hd_bucketer_t *b;
  const hd_node_t *node;
  const hd_task_t *flat;
  hd_ptr_map_t indices; // To hd_bucket_index_t.
  hd_ptr_map_t tensors; // To hd_bucket_tensor_t.
  // What has to be changed for its results to be right:
  bool numbers;            // Terms have other numbers.
  bool reduces;            // Over what is not real.
  bool guards;             // Reads past an extent what it takes for outside.
  bool risks;              // Where it is not real, it may read outside.
  hd_bucket_seal_t *seals; // Of each input, instead of the middle two.
} hd_bucket_node_t;

// Puts what stands for a node into the graph.
bool hd_bucket_put_task(hd_bucketer_t *b, const hd_node_t *node);
hd_bucket_index_t *hd_bucket_index(const hd_bucket_node_t *n,
                                   const hd_index_t *index);
hd_bucket_tensor_t *hd_bucket_flat_tensor(const hd_bucket_node_t *n,
                                          const hd_task_value_t *value);
// Whether operand i of an access is an index that runs along the axis.
bool hd_bucket_links(const hd_bucket_node_t *n, const hd_term_t *load,
                     unsigned i);
// Whether data say where it is, others than extents.
bool hd_bucket_is_chosen(const hd_bucket_node_t *n, const hd_term_t *place);
// Whether a reduction takes in what is not real.
bool hd_bucket_reduces(const hd_bucket_node_t *n, const hd_term_t *term);

// --- BucketPast.c ---

// Whether the task is right once inputs are what n->seals says then, past their
// extents.
bool hd_bucket_find_seals(hd_bucket_node_t *n);
// Sets what results are past their extents, where inputs are as n->seals says.
void hd_bucket_find_past(hd_bucket_node_t *n);

// --- BucketInOut.c ---

// Finds appends, of the first graph.
void hd_bucket_find_appends(hd_bucketer_t *b);
// The one whose node, input or output it is (others NULL); NULL: none.
hd_bucket_append_t *hd_bucket_append_at(const hd_bucketer_t *b,
                                        const hd_node_t *node,
                                        const hd_value_t *in,
                                        const hd_value_t *out);
// Whether it is a reshape of what comes in, which is not needed.
bool hd_bucket_is_left_out(const hd_bucketer_t *b, const hd_node_t *node);
// What comes in, made.
const hd_value_t *hd_bucket_append_input(hd_bucketer_t *b,
                                         hd_bucket_append_t *append);
// Puts the node, which has been looked at.
bool hd_bucket_put_append(hd_bucket_node_t *n, hd_bucket_append_t *append);

// --- BucketTerms.c ---

// An element of extents.
const hd_term_t *hd_bucket_read(hd_bucketer_t *b,
                                const hd_task_value_t *extents, int slot);
// `extents` as an input of a task whose other names are those of flat.
hd_task_value_t *hd_bucket_extents(hd_bucketer_t *b, const hd_task_t *flat);
// Whether a place on an axis is real; NULL: each is.
const hd_term_t *hd_bucket_real(hd_bucketer_t *b,
                                const hd_task_value_t *extents,
                                const hd_term_t *place,
                                const hd_digits_t *axis);
const hd_term_t *hd_bucket_both(hd_arena_t *arena, const hd_term_t *a,
                                const hd_term_t *b);
// The task, changed as n says; its last input is extents. NULL where that
// cannot be.
hd_task_t *hd_bucket_task(hd_bucket_node_t *n);
// Whether such a task reads extents.
bool hd_bucket_reads(const hd_task_t *task);

// The same task for any float, where it moves elements of one alone.
hd_task_t *hd_bucket_generalize(hd_bucketer_t *b, hd_task_t *task);

// --- BucketGraph.c ---

const hd_value_t *hd_bucket_stands(hd_bucketer_t *b, const hd_value_t *value);
// A value that is like another one, of another name.
hd_value_t *hd_bucket_value(hd_bucketer_t *b, const hd_value_t *like,
                            const char *suffix);
// Makes the graph. False where that cannot be.
bool hd_bucket_build(hd_bucketer_t *b);
// Puts a node of a flat task whose last input is extents, which is not among
// inputs. op begins the task's name. Where there is such a task, it is that.
void hd_bucket_put(hd_bucketer_t *b, const char *op, hd_task_t *task,
                   const hd_node_t *like, const hd_value_t *const *inputs,
                   const hd_value_t *const *outputs);

// --- BucketMove.c ---

// Puts a node that moves the true elements, in their order, from where the axes
// of `in` have them to where the sizes of `out` have them; NULL: one after the
// other.
void hd_bucket_move(hd_bucketer_t *b, const char *op, const hd_value_t *from,
                    const hd_bucket_tensor_t *in, const hd_value_t *to,
                    const hd_bucket_tensor_t *out);
// Puts a reshape that moves elements: hd_bucket_reshape() has none.
void hd_bucket_put_moved(hd_bucketer_t *b, const hd_node_t *node);
// The value without holes in its axes.
const hd_value_t *hd_bucket_whole(hd_bucketer_t *b, const hd_value_t *value);
// The value with a number past its extents.
const hd_value_t *hd_bucket_sealed(hd_bucketer_t *b, const hd_value_t *value,
                                   const hd_bucket_seal_t *seal);

#endif
