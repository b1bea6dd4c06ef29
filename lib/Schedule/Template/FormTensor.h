// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors of a normal form: what a template's kernel has for the terms of a
// task.
#ifndef HIDET_SCHEDULE_TEMPLATE_FORMTENSOR_H
#define HIDET_SCHEDULE_TEMPLATE_FORMTENSOR_H

#include "Schedule/Rules/Contract.h"
#include "Schedule/Terms/Affine.h"

enum { HD_FORM_RANK = 4, HD_FORM_SPLITS = 4 };

enum { HD_FORM_WIDE = 16 }; // Bytes: the widest copy.

enum { HD_MAX_FORM_TENSORS = 9 }; // That a kernel has parameters for.

// An operand or a result as a function of some of the form's axes, mostly
// three, in the order of the kernel's tensor.
typedef struct hd_form_tensor {
  unsigned rank;
  const hd_index_t *indices[HD_FORM_RANK];
  int64_t shape[HD_FORM_RANK];
  const hd_term_t *term; // An operand's element.
  // The tensor of the task that it is, element for element in row-major order;
  // NULL: it is computed, or lies otherwise.
  const hd_task_value_t *same;
  // Elements from a row of it to the next. More than the last axis has where
  // rows go on behind what is taken of them: a kernel may read that, too, and
  // what it makes of it goes nowhere.
  int64_t pitch;
  // Neighbours along the last axis lie side by side in memory, whole pieces of
  // so many bytes, which the hardware copies: HD_FORM_WIDE, or 8 or 4 of a
  // tensor's rows; 0: they pass through registers, or are copied one by one.
  unsigned piece;
  // What an element is computed from: the bits of one in the largest tensor,
  // and the bytes of all tensors, each once, over the operand's elements.
  unsigned kept;
  double bytes;
  // Where most of it is computed from one narrower tensor, element for element:
  // what it is of a variable that stands for that tensor's element. Else NULL.
  const hd_term_t *through;
  const hd_variable_t *cell;
  const char *no_map; // Why there is no tensor map of an operand, as the end of
                      // a sentence that begins with it; NULL: there is one.
} hd_form_tensor_t;

// What a definition makes of its sum, and where it stores that. The kernel
// gives elements of the target's type where the definition only rounds the sum
// as the task does, else the sum in f32.
typedef struct hd_form_result {
  const hd_definition_t *d;
  hd_reduced_t reduced;
  hd_scalar_t type;       // That the kernel gives.
  const hd_term_t *value; // Of reduced.cell; NULL: it itself.
  // What stands for the other element of a pair (Schedule/Product/Pairs.h), of
  // which reduced.cell is the first; NULL: there are no pairs.
  const hd_variable_t *second;
  const hd_term_t *places[HD_MAX_RANK]; // Of the target, by the tensor's.
} hd_form_result_t;

// The indices of a definition as digits of a form's: each axis of the form is
// some of them, counted row-major.
typedef struct hd_form_digits {
  hd_arena_t *arena;
  unsigned count;
  const hd_axis_t *axes;
  const hd_index_t *const *places; // The form's index for each of the axes.
  // Indices that are none of them, but these terms of others.
  unsigned num_splits;
  const hd_index_t *split[HD_FORM_SPLITS];
  const hd_term_t *as[HD_FORM_SPLITS];
} hd_form_digits_t;

// A term of the definition's indices by those of the form.
const hd_term_t *hd_form_put_digits(const hd_form_digits_t *digits,
                                    const hd_term_t *term);

// A tensor over three of the form's axes, without its element.
void hd_form_tensor_begin(hd_form_tensor_t *tensor,
                          const hd_form_digits_t *digits, unsigned first,
                          unsigned middle, unsigned last);
// What an operand is, by the definition's term for an element. goes_on: its
// last axis is the result's, not the sum's, so that its rows may have a pitch.
void hd_form_tensor_load(hd_form_tensor_t *tensor,
                         const hd_form_digits_t *digits, const hd_term_t *term,
                         bool goes_on);
// Whether the element of a value at these places, terms of the form's indices,
// is that of the tensor, in row-major order both.
bool hd_form_tensor_is(hd_arena_t *arena, const hd_form_tensor_t *tensor,
                       const hd_task_value_t *value,
                       const hd_term_t *const *places);

// Bytes of the widest pieces that the hardware would copy, as `piece` has them,
// if another term stood for an operand's element.
unsigned hd_form_tensor_piece(hd_arena_t *arena, const hd_form_tensor_t *tensor,
                              const hd_term_t *element);

// The bit of the input of a flat task that a tensor is; 0: it is none, or one
// beyond the first 64.
uint64_t hd_form_tensor_input(const hd_form_tensor_t *tensor,
                              const hd_task_t *flat);

// Of a result whose definition and sum are set: the rest, and what the tensor
// that the kernel gives is the same as.
void hd_form_result_set(hd_form_result_t *result,
                        const hd_form_digits_t *digits,
                        hd_form_tensor_t *tensor);

// Where in memory an element that a term loads is, over the indices of its
// places; false where it is no such sum.
bool hd_form_number(hd_arena_t *arena, const hd_term_t *element,
                    hd_linear_t *number);

// wide(x), of x in a type whose values are accumulated in that: x; else NULL.
const hd_term_t *hd_form_narrow(const hd_term_t *term, hd_scalar_t wide);
// Orders a sum's indices by how far apart neighbours along them lie in b, and
// in a where that leaves it open.
void hd_form_order_sum(hd_arena_t *arena, const hd_reduction_t *r,
                       const hd_term_t *a, const hd_term_t *b, hd_axis_t *k);

#endif
