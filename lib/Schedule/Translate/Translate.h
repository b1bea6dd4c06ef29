// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Terms of flat tasks to expressions and statements of a kernel.
//
// What cannot be said by an expression (a reduction, a choice between two of
// them, an assertion that an index that data decide is inside) is put as
// statements to the block that is open, before the expression is used.
//
// Where every value of an i64 fits i32, as those of indices do mostly, it is
// computed in i32: a value comes with what is known of its range.
#ifndef HIDET_SCHEDULE_TRANSLATE_TRANSLATE_H
#define HIDET_SCHEDULE_TRANSLATE_TRANSLATE_H

#include "IR/Range.h"
#include "Schedule/Terms/Terms.h"
#include "Schedule/Translate/Build.h"
#include "Support/Map.h"

// What a term is worth. Of a term of type i64 the expression may be an i32.
typedef struct hd_worth {
  const hd_expr_t *e;
  hd_range_t range; // Of integers.
} hd_worth_t;

typedef struct hd_translator {
  hd_builder_t *b;
  hd_ptr_map_t tensors;   // Values of the task to variables of the kernel.
  hd_ptr_map_t indices;   // Indices to expressions, i32 or i64.
  hd_ptr_map_t variables; // Those of monoids, to expressions.
  hd_ptr_map_t values;    // Values that are no tensors of the kernel, to
                          // expressions for the element at hand.
  HD_VEC(const hd_task_value_t *) args; // What the parameters stand for.
  HD_VEC(hd_worth_t) facts; // That hold where statements are put just now.
  // Functions of f32 may be off by some units of their last place: nothing but
  // numbers of 16 bits, or rounded ones of a byte, comes out of them.
  bool is_coarse;
} hd_translator_t;

// The kernel's parameter for a tensor; IN where it is met first.
const hd_var_t *hd_translate_tensor(hd_translator_t *t,
                                    const hd_task_value_t *value,
                                    hd_direction_t direction);

// The same, in a shape of as many elements where it is met first.
const hd_var_t *hd_translate_tensor_as(hd_translator_t *t,
                                       const hd_task_value_t *value,
                                       hd_direction_t direction,
                                       const int64_t *shape, unsigned rank);

// An index stands for this expression from now on.
void hd_translate_bind(hd_translator_t *t, const hd_index_t *index,
                       const hd_expr_t *e);
// An index in the type that holds its range.
hd_scalar_t hd_translate_index_type(const hd_index_t *index);

// Whether a conversion is to a byte, of what is rounded before.
bool hd_translate_rounds(const hd_term_t *cast);

hd_worth_t hd_translate_worth(hd_translator_t *t, const hd_term_t *term);
// In the type of the term.
const hd_expr_t *hd_translate(hd_translator_t *t, const hd_term_t *term);
// An index into an axis, for a load or a store that is inside; i32 where the
// axis allows. What is not known to be inside is asserted to be.
const hd_expr_t *hd_translate_place(hd_translator_t *t, const hd_term_t *term,
                                    int64_t size);

// Adds what a condition says of indices, or its opposite, to the facts; whoever
// leaves the place where it holds sets their number back.
void hd_translate_assume(hd_translator_t *t, const hd_term_t *condition,
                         bool holds);

// --- Reductions ---

enum { HD_MAX_COMPONENTS = 8 };

// A register for each component of a reduction, holding the identity.
void hd_translate_begin(hd_translator_t *t, const hd_term_t *reduction,
                        const hd_var_t **cells);
// Combines values, of the components' types, into the registers, as the right
// operands.
void hd_translate_combine(hd_translator_t *t, const hd_term_t *reduction,
                          const hd_var_t *const *cells,
                          const hd_expr_t *const *values);
// What two tuples combine to.
void hd_translate_combination(hd_translator_t *t, const hd_term_t *reduction,
                              const hd_expr_t *const *left,
                              const hd_expr_t *const *right,
                              const hd_expr_t **result);
// Combines what the components are worth where the indices are what they are
// bound to now.
void hd_translate_step(hd_translator_t *t, const hd_term_t *reduction,
                       const hd_var_t *const *cells);
// All of a reduction, one after the other; leaves it in the registers.
void hd_translate_loops(hd_translator_t *t, const hd_term_t *reduction,
                        const hd_var_t *const *cells);

#endif
