// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The normal form of a sum of products, which templates implement:
//
//   c[z, i, j] = sum(p) a[z, i, p] * b[z, p, j]
//
// Each of its axes is some indices of the task's definition, counted row-major.
// An operand is whatever term stands there, in its own type; what the
// definition makes of the sum and where it goes comes behind it.
#ifndef HIDET_SCHEDULE_PRODUCT_H
#define HIDET_SCHEDULE_PRODUCT_H

#include "IR/Template.h"
#include "Schedule/Contract.h"
#include "Schedule/Machine.h"

typedef enum hd_form_axis {
  HD_AXIS_BATCH,
  HD_AXIS_M,
  HD_AXIS_N,
  HD_AXIS_K
} hd_form_axis_t;

// a, b or c as a function of three of the form's axes, in the order of the
// kernel's tensor.
typedef struct hd_form_tensor {
  const hd_index_t *indices[3];
  int64_t shape[3];
  const hd_term_t *term; // An operand's element.
  // The tensor of the task that it is, element for element in row-major order;
  // NULL: it is computed, or lies otherwise.
  const hd_task_value_t *same;
  // Neighbours along the last axis lie side by side in memory, whole pieces of
  // 16 bytes: the hardware copies them.
  bool wide;
  const char *no_map; // Why there is no tensor map of an operand, as the end of
                      // a sentence that begins with it; NULL: there is one.
} hd_form_tensor_t;

typedef struct hd_product_form {
  const hd_definition_t *d;
  hd_reduced_t reduced;
  int64_t sizes[HD_FORM_AXES];
  hd_scalar_t type;   // Of the operands.
  hd_scalar_t result; // Of c.
  bool rows;          // b is [z, j, p]: neighbours along the sum.
  hd_form_tensor_t a, b, c;
  const hd_term_t *places[HD_MAX_RANK]; // Of the target, by c's indices.
  const hd_term_t *value; // What is stored, of reduced.cell; NULL: it itself.
} hd_product_form_t;

// NULL, or why a definition has no such form; accumulated in f32.
const char *hd_product_form_find(hd_arena_t *arena, const hd_definition_t *d,
                                 hd_product_form_t *form);

// Those of a flat task's inputs that will be computed where they are loaded, as
// hd_scheduler_schedule() has it: they are no tensors, although they look like
// some here.
void hd_product_form_mark(hd_product_form_t *form, const hd_task_t *flat,
                          uint64_t computed);

// A template with values for its choices.
typedef struct hd_candidate {
  const hd_template_t *template;
  hd_module_t *home; // That the template's kernel is an item of.
  int64_t values[HD_MAX_CHOICES];
  int64_t figures[HD_FIGURE_COUNT];
  double us;     // What it is expected to take.
  size_t number; // In the order of the heads.
} hd_candidate_t;

// The microseconds that a candidate is expected to take for a product; grows
// with what it does, and is right within a factor of two or so. Source: the
// roofline of a step (tensor cores against the L2 cache), the latency of what
// is not under way, waves of blocks.
double hd_candidate_price(const hd_machine_t *machine,
                          const hd_product_form_t *form,
                          const hd_candidate_t *candidate);

typedef HD_VEC(hd_candidate_t) hd_candidates_t;

// A template that answers with no candidate, and why, as a sentence.
typedef struct hd_refused {
  const hd_template_t *template;
  const char *why;
} hd_refused_t;

typedef HD_VEC(hd_refused_t) hd_refusals_t;

// The candidates of all templates for a form and the machine that the context's
// schedules are for, none left out by name, by what they are expected to take;
// of those that are as good, in the order of the heads. pin, which may be NULL:
// those alone that it allows; it is no HD_PIN_RULES. False after an error: pins
// that no head knows (E0201, E0320). refused: templates without any.
bool hd_candidates_find(hd_context_t *context, hd_arena_t *arena,
                        const hd_product_form_t *form, const hd_pin_t *pin,
                        hd_candidates_t *candidates, hd_refusals_t *refused);

// The same for a flat task: of the first of its definitions that is a product,
// none where there is no such. computed: as hd_scheduler_schedule() has it.
bool hd_task_candidates(hd_context_t *context, hd_arena_t *arena,
                        const hd_task_t *flat, uint64_t computed,
                        hd_candidates_t *candidates);

// All that a candidate settles.
const hd_pin_t *hd_candidate_pin(hd_arena_t *arena,
                                 const hd_candidate_t *candidate);

#endif
