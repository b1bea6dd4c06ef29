// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of finding attentions share (AttentionForm.c: the products,
// AttentionRows.c: what is between them).
#ifndef HIDET_SCHEDULE_ATTENTION_ATTENTIONSTATE_H
#define HIDET_SCHEDULE_ATTENTION_ATTENTIONSTATE_H

#include "Schedule/Attention/Attention.h"

enum { HD_MOST_STATISTICS = 2 };

// A reduction over j: what it combines, with j for its own index.
typedef struct hd_statistic {
  bool is_max; // Else a sum.
  const hd_term_t *body;
  const hd_variable_t *cell;
} hd_statistic_t;

typedef struct hd_attention_finder {
  hd_arena_t *arena;
  const hd_task_t *flat;
  hd_contraction_t first, last;
  const hd_variable_t *score;           // Stands for the first one's sum.
  const hd_term_t *places[HD_MAX_RANK]; // Where it is read.
  bool is_read;
  hd_statistic_t rows[HD_MOST_STATISTICS];
  unsigned num_rows;
  unsigned num_terms;
  bool masks_nan;          // Rows with NaN are 0.
  bool masks_empty;        // Rows that are -inf throughout are 0.
  const hd_term_t *weight; // That something is made of; NULL: none was met.
  const char *why;
} hd_attention_finder_t;

// The definition of a value that the task makes; NULL: it comes in.
const hd_definition_t *
hd_attention_definition(const hd_attention_finder_t *finder,
                        const hd_task_value_t *value);
bool hd_attention_uses(const hd_term_t *term, const hd_axis_t *axis);
// Without conversions between floats: what a kernel computes in f32.
const hd_term_t *hd_attention_unrounded(const hd_term_t *term);
// Converted to f32 where it is something else.
const hd_term_t *hd_attention_wide(hd_arena_t *arena, const hd_term_t *term);
bool hd_attention_is_lowest(const hd_term_t *term); // -inf
// A term with others in the place of indices.
const hd_term_t *hd_attention_put(hd_arena_t *arena, const hd_term_t *term,
                                  const hd_index_t *const *indices,
                                  const hd_term_t *const *terms,
                                  uint32_t count);

// What the second product reads by the first one's sum, statistics of rows and
// inputs; where that cannot be, finder->why says why.
const hd_term_t *hd_attention_expand(hd_attention_finder_t *finder,
                                     const hd_term_t *term);
// Takes such a term apart: the form's terms, by the definitions' indices. NULL,
// or why it has no running form.
const char *hd_attention_running(hd_attention_finder_t *finder,
                                 const hd_term_t *weight,
                                 hd_attention_form_t *form);

// Sets limit and inside of a form whose indices and term are set.
void hd_attention_limit(hd_arena_t *arena, hd_attention_form_t *form);
// Then the factor, which is taken out of both terms.
void hd_attention_factor(hd_arena_t *arena, hd_attention_form_t *form);

#endif
