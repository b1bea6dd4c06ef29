// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of choosing layouts share (Layouts.c: which axis is last in
// memory, LayoutTasks.c: the graph that comes out).
#ifndef HIDET_FUSION_LAYOUT_LAYOUTSTATE_H
#define HIDET_FUSION_LAYOUT_LAYOUTSTATE_H

#include "Fusion/Layout/Layouts.h"
#include "Schedule/Product/Product.h"
#include "Schedule/Terms/Terms.h"
#include "Support/Map.h"

// That are copied as one: rows that are copied are multiples of it.
enum { HD_LAYOUT_PIECE_BITS = 128 };

typedef struct hd_laid_value hd_laid_value_t;

// Which axes of a value are last in memory: so many, in their order, up to this
// one; -1: they lie as in the graph.
typedef struct hd_last {
  int axis;
  unsigned count;
} hd_last_t;

// Where the one value has these axes last, the other one should have those.
typedef struct hd_layout_link {
  hd_last_t last;
  hd_laid_value_t *other;
  hd_last_t other_last;
} hd_layout_link_t;

struct hd_laid_value {
  const hd_value_t *value;
  bool fixed;    // Stays as it is.
  bool prepared; // Depends on constants alone: may be had in any layout.
  hd_last_t last;
  HD_VEC(hd_layout_link_t) links;
  const hd_value_t *made; // What stands for it; NULL: not made yet.
};

typedef struct hd_layouts {
  hd_module_t *module;
  hd_arena_t *arena;
  const hd_graph_t *graph;
  hd_ptr_map_t values;              // To hd_laid_value_t.
  const hd_task_t **flats;          // Of each node; NULL: has none.
  hd_product_forms_t forms;         // Of the flat tasks' definitions.
  hd_key_map_t known;               // Flat tasks by what nodes compute,
  hd_key_map_t tasks;               // tasks by their texts,
  hd_key_map_t copies;              // copies by name and how they lie,
  hd_key_map_t prices;              // what flat tasks take by texts: double.
  hd_key_map_t names;               // Of values.
  HD_VEC(hd_laid_value_t *) chosen; // Whose layout changes, in order.
  hd_graph_t *made;
} hd_layouts_t;

// NULL of NULL.
static inline hd_laid_value_t *hd_laid_value(const hd_layouts_t *l,
                                             const hd_value_t *value) {
  return hd_ptr_map_find(&l->values, value);
}

// How many axes up to an axis of a load and one of the result are one axis: the
// digits that an index of the result has in the load, or indices of the result
// that are digits of a place. More than one of one side alone.
typedef struct hd_layout_digits {
  unsigned load, result;
} hd_layout_digits_t;
hd_layout_digits_t hd_layout_digits(hd_arena_t *arena, const hd_term_t *load,
                                    unsigned axis, const hd_definition_t *d,
                                    unsigned result_axis);
// The axis of the result whose last digit an axis of a load is; -1: of none.
int hd_layout_digit_of(hd_arena_t *arena, const hd_term_t *load, unsigned axis,
                       const hd_definition_t *d);
// The last of the result's axes that are so many of a load's up to an axis, in
// whatever order; -1: they do not stand side by side there.
int hd_layout_block(const hd_term_t *load, unsigned axis,
                    const hd_definition_t *d, unsigned count);

// An index in a flat task's terms: 0 where it runs over one value alone.
static inline const hd_term_t *hd_layout_index_term(hd_arena_t *arena,
                                                    const hd_index_t *index) {
  return hd_flat_range(index) == 1 ? hd_flat_int(arena, HD_I64, 0)
                                   : hd_flat_index(arena, index);
}

// The index that alone, and once, says where an access is along an axis; NULL.
const hd_index_t *hd_layout_index(hd_arena_t *arena, const hd_term_t *place);

// Chooses which axes are last, once values are linked: what products and
// windows want, and what spreads from there (LayoutSeeds.c).
void hd_layouts_seed(hd_layouts_t *l);

// A value of another shape for one of the new graph, named after it.
hd_value_t *hd_layouts_value(hd_layouts_t *l, const hd_value_t *like,
                             const int64_t *shape, unsigned rank,
                             const char *suffix);
// Begins the graph that is made: the same, without nodes.
void hd_layouts_begin(hd_layouts_t *l);
// Puts a node that computes a task instead of its own, under a name of its own
// and `what`, into the graph that is made; NULL: its own, elsewhere.
void hd_layouts_put_task(hd_layouts_t *l, const hd_node_t *node,
                         const hd_task_t *task, const char *what,
                         const hd_value_t *const *inputs,
                         const hd_value_t *const *outputs);
// y[indices] = x[places] else 0, of a tensor like `from` (LayoutCopies.c).
const hd_task_t *hd_layouts_copying_task(hd_arena_t *arena,
                                         const hd_task_value_t *from,
                                         const int64_t *shape, unsigned rank,
                                         const hd_index_t *const *indices,
                                         const hd_term_t *const *places);
// Puts a node of such a task, which the module will have, into the graph that
// is made. Returns what it gives, named after the value and by `what`.
const hd_value_t *hd_layouts_put_copy(hd_layouts_t *l, const hd_value_t *value,
                                      const hd_task_t *task, const char *what,
                                      hd_loc_t loc);
// The graph with padded copies for convolutions of few channels; the same where
// there are none (LayoutPads.c).
const hd_graph_t *hd_layouts_pad(hd_layouts_t *l, bool explain);
// The graph with the weights of images of few channels packed for kernels that
// read these as they lie; the same where there are none (LayoutPixels.c).
const hd_graph_t *hd_layouts_read_pixels(hd_layouts_t *l, bool explain);
// The microseconds that node number n of the graph is expected to take so; 0:
// it is none such, or nothing is known of it.
double hd_layouts_price_of_pixels(hd_layouts_t *l, size_t n);

// The microseconds that the best candidate for a flat task is expected to take;
// 0: there is none (LayoutRows.c).
double hd_layouts_price(hd_layouts_t *l, const hd_task_t *flat);
// Those of a copy between layouts, with the launch that waits for it.
double hd_layouts_price_of_copy(const hd_layouts_t *l,
                                const hd_task_value_t *from,
                                const hd_task_value_t *to);
// The graph with copies of operands of products whose rows are no multiples of
// 16 bytes, in rows that are; the same where there are none (LayoutRows.c).
const hd_graph_t *hd_layouts_pad_rows(hd_layouts_t *l, bool explain);

// The graph with layouts as they were chosen. NULL after an error.
const hd_graph_t *hd_layouts_apply(hd_layouts_t *l);

// How many of a load's places use an index.
unsigned hd_layout_count_places(const hd_term_t *load, const hd_index_t *index);
// Whether a task's term loads from a tensor in one place alone.
bool hd_layout_is_read_once(const hd_term_t *term,
                            const hd_task_value_t *tensor);

#endif
