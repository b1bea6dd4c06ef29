// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the search for rows is made of: RowsAxes.c, which indices are the same
// axis; RowsFind.c, the steps.
#ifndef HIDET_SCHEDULE_ROWS_ROWSFIND_H
#define HIDET_SCHEDULE_ROWS_ROWSFIND_H

#include "Schedule/Rows/Rows.h"

typedef enum hd_row_role {
  HD_ROLE_UNKNOWN,
  HD_ROLE_ROW,
  HD_ROLE_ELEMENT,
} hd_row_role_t;

// Indices that are the same axis form a class, which the one without `same`
// stands for.
typedef struct hd_row_axis {
  struct hd_row_axis *same;
  const hd_index_t *index;
  hd_row_role_t role;
} hd_row_axis_t;

typedef struct hd_rows_finder {
  hd_arena_t *arena;
  const hd_task_t *flat;
  size_t first, end;
  hd_rows_t *rows;
  hd_ptr_map_t axes;   // Indices to axes.
  hd_ptr_map_t makers; // What is defined to its definition.
  hd_ptr_map_t hints;  // Inputs to the axes where the seed reads them.
  hd_row_axis_t *row[HD_MAX_RANK], *element[HD_MAX_RANK];
  const hd_term_t *seed; // The longest reduction,
  const hd_definition_t *seeded;
  const hd_definition_t *definition; // At hand.
  bool fits;
} hd_rows_finder_t;

static inline bool hd_rows_is_load(const hd_term_t *term) {
  return term->kind == HD_TERM_LOAD || term->kind == HD_TERM_LOADELSE;
}

static inline int64_t hd_rows_reduced_points(const hd_term_t *term) {
  const hd_reduction_t *r = term->u.reduction;
  return hd_flat_points(r->indices, r->num_indices);
}

// The axis of an index, that of all that are the same.
hd_row_axis_t *hd_rows_axis(hd_rows_finder_t *f, const hd_index_t *index);
// Makes of the indices by which d reads what others define the axes of those,
// and notes what d defines; f->fits says whether that can be.
void hd_rows_link(hd_rows_finder_t *f, const hd_definition_t *d);
// Finds the longest reduction of those that were linked, which decides what the
// axes of rows and of elements are. False: there is none.
bool hd_rows_plant_seed(hd_rows_finder_t *f);

// The axes of a domain's or a reduction's indices.
typedef struct hd_row_placing {
  hd_rows_finder_t *f;
  const hd_index_t *const *indices;
  unsigned count;
  // For each index; NULL where it has one value or is not known.
  hd_row_axis_t **axes;
} hd_row_placing_t;

// Axes for all indices, none of them twice; term is read at them. of_rows: they
// may be those of rows.
bool hd_rows_place(hd_row_placing_t *p, const hd_term_t *term, bool of_rows);
unsigned hd_rows_count_role(const hd_row_placing_t *p, hd_row_role_t role);
// From now on the indices are those axes.
void hd_rows_keep_places(const hd_row_placing_t *p);

#endif
