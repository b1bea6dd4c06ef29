// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The normal form of two products with rows between them, attention above all:
//
//   s[z, i, j] = sum(p) q[z, i, p] * k[z, j, p]
//   t[z, i, j] = any term of s[z, i, j] and of z, i and j
//   r[z, i, j] = exp(t[z, i, j] - max(j) t) / d(max(j) t, sum(j) exp(...))
//   o[z, i, e] = sum(j) w[z, i, j] * v[z, j, e]
//
// w being r, or any term of r[z, i, j] and of z, i and j.
//
// What is between the products has a running form: the maximum and the sum over
// the j seen so far are all that has to be known of them, and what was summed
// up is made smaller when a larger t comes. So nothing of size i x j needs to
// be in memory.
#ifndef HIDET_SCHEDULE_ATTENTION_ATTENTION_H
#define HIDET_SCHEDULE_ATTENTION_ATTENTION_H

#include "Schedule/Schedule.h"
#include "Schedule/Template/Candidates.h"
#include "Schedule/Template/FormTensor.h"

// Queries of heads that share keys are rows behind each other where they come
// to no more than a fragment has.
enum { HD_FRAGMENT_ROWS = 16 };

typedef enum hd_attention_axis {
  HD_ATTENTION_BATCH,
  HD_ATTENTION_QUERY, // i
  HD_ATTENTION_KEY,   // j
  HD_ATTENTION_INNER, // p
  HD_ATTENTION_VALUE, // e
  HD_ATTENTION_AXES
} hd_attention_axis_t;

typedef struct hd_attention_form {
  hd_form_result_t result; // In o, of the second product's sum.
  int64_t sizes[HD_ATTENTION_AXES];
  hd_scalar_t type; // Of q, k and v.
  const hd_index_t *indices[HD_ATTENTION_AXES];
  hd_form_tensor_t q, k, v, o; // [z, i, p], [z, j, p], [z, j, e], [z, i, e]
  // Keys and values for kernels that have tensor maps of them: [z / sharing, j,
  // p], of which `sharing` neighbours along z have the same each.
  hd_form_tensor_t map_k, map_v;
  int64_t sharing;
  bool gathered;     // Data says where rows of keys or values are: pages, say.
  const char *given; // "SHARING = 4" of such a kernel.
  // t over factor, of `score` (f32); d, of `top` and `total` (f32), which is
  // infinite where a row is to be 0 whatever stands in it.
  const hd_variable_t *score, *top, *total;
  const hd_term_t *term, *divisor;
  // What the second product reads of `weight` (f32), which is exp(t - max(j) t)
  // / d; NULL: that itself.
  const hd_variable_t *weight;
  const hd_term_t *weighed;
  double factor; // Above 0.
  // Keys from there on are -inf in a row, by the terms alone; grows with i, and
  // is that of the keys' number where nothing is known.
  const hd_term_t *limit;
  const hd_term_t *inside; // `term` of keys before the limit.
} hd_attention_form_t;

// NULL, or why a flat task, prepared or not, is no attention with products of
// narrow operands summed in f32.
const char *hd_attention_form_find(hd_arena_t *arena, const hd_task_t *flat,
                                   hd_attention_form_t *form);

// The same of a flattened task, looked for once; NULL: it is none. The arena
// lives as long as what was flattened.
const hd_attention_form_t *hd_flattened_attention(hd_arena_t *arena,
                                                  hd_flattened_t *flattened);

// As hd_product_form_mark() does.
void hd_attention_form_mark(hd_attention_form_t *form, const hd_task_t *flat,
                            uint64_t computed, uint64_t gathered);

// Weighed, where weights are made something of, else attention.
hd_form_kind_t hd_attention_form_kind(const hd_attention_form_t *form);

// The form as templates are asked about it.
hd_form_t hd_attention_form_ask(hd_arena_t *arena,
                                const hd_attention_form_t *form);

// NULL, or why a flat task does not become one kernel on the machine that the
// context's schedules are for.
const char *hd_attention_obstacle(hd_context_t *context, hd_arena_t *arena,
                                  const hd_task_t *flat);

#endif
